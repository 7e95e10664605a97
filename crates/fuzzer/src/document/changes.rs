//! Small changes to documents, for finding disagreements and for shrinking them.

use maskwright_oracle::generate::Rng;

use super::{Document, encode, plain_number, respell_number, respell_string};

/// Returns the document with one change at a random place. `other` draws new values.
pub fn change(document: &Document, rng: &mut Rng, other: &mut dyn FnMut(&mut Rng) -> Document) -> Document {
    let mut changed = document.clone();
    let at = rng.below(count(document));
    let mut left = at;
    at_node(&mut changed, &mut left, &mut |node| change_here(node, rng, other));
    changed
}

fn count(document: &Document) -> usize {
    1 + match document {
        Document::Scalar(_) => 0,
        Document::Array(items) => items.iter().map(count).sum(),
        Document::Object(members) => members.iter().map(|(_, value)| count(value)).sum(),
    }
}

/// Calls a function with the node of this index, in the order of the text.
fn at_node(node: &mut Document, left: &mut usize, act: &mut dyn FnMut(&mut Document)) -> bool {
    if *left == 0 {
        act(node);
        return true;
    }
    *left -= 1;
    match node {
        Document::Scalar(_) => false,
        Document::Array(items) => items.iter_mut().any(|item| at_node(item, left, act)),
        Document::Object(members) => members.iter_mut().any(|(_, value)| at_node(value, left, act)),
    }
}

fn change_here(node: &mut Document, rng: &mut Rng, other: &mut dyn FnMut(&mut Rng) -> Document) {
    if rng.one_in(6) {
        *node = other(rng);
        return;
    }
    match node {
        Document::Scalar(text) => *text = change_scalar(text, rng, other),
        Document::Array(items) => {
            let at = rng.below(items.len().max(1));
            match rng.below(4) {
                0 => items.insert(at, other(rng)),
                _ if items.is_empty() => items.push(other(rng)),
                1 => {
                    items.remove(at);
                }
                2 => items.push(items[at].clone()),
                _ => {
                    let last = items.len() - 1;
                    items.swap(at, last);
                }
            }
        }
        Document::Object(members) => {
            let at = rng.below(members.len().max(1));
            let name = encode(KEYS[rng.below(KEYS.len())]);
            match rng.below(6) {
                0 => members.insert(at, (name, other(rng))),
                _ if members.is_empty() => members.push((name, other(rng))),
                1 => {
                    members.remove(at);
                }
                2 => {
                    let again = (members[at].0.clone(), other(rng));
                    members.push(again);
                }
                3 => members[at].0 = name,
                4 => members[at].0 = respell_string(&members[at].0, rng),
                _ => {
                    let last = members.len() - 1;
                    members.swap(at, last);
                }
            }
        }
    }
}

/// Keys that occur in schemas, and some that do not.
pub(crate) const KEYS: [&str; 8] = ["a", "b", "c", "d", "ab", "é", "", "a\"b"];

fn change_scalar(text: &str, rng: &mut Rng, other: &mut dyn FnMut(&mut Rng) -> Document) -> String {
    if text.starts_with('"') {
        return match (rng.below(4), super::decode(text)) {
            (0 | 1, _) => respell_string(text, rng),
            (2, Some(string)) => {
                let more = ["a", "b", "0", "é", "\n", "-"][rng.below(6)];
                encode(&format!("{string}{more}"))
            }
            (_, Some(mut string)) => {
                string.pop();
                encode(&string)
            }
            (_, None) => text.to_owned(),
        };
    }
    match plain_number(text) {
        Some(_) if rng.one_in(2) => respell_number(text, rng),
        Some(plain) => match plain.parse::<f64>() {
            Ok(number) => {
                let step = [1.0, -1.0, 0.5, -0.5, 10.0, 0.25][rng.below(6)];
                // Steps and pools are halves and quarters, so this is exact where it matters.
                plain_number(&format!("{}", number + step)).unwrap_or(plain)
            }
            Err(_) => plain,
        },
        None => match other(rng) {
            Document::Scalar(other) => other,
            _ => "null".to_owned(),
        },
    }
}

/// Returns smaller documents to try, the smallest first.
pub fn smaller(document: &Document) -> Vec<Document> {
    let mut all = Vec::new();
    match document {
        Document::Scalar(text) => {
            for simple in ["0", "\"\"", "null", "1", "\"a\""] {
                if simple.len() < text.len() {
                    all.push(Document::Scalar(simple.to_owned()));
                }
            }
            if let Some(string) = super::decode(text) {
                let mut shorter = |characters: Vec<char>| {
                    let spelled = encode(&characters.into_iter().collect::<String>());
                    if spelled.len() < text.len() {
                        all.push(Document::Scalar(spelled));
                    }
                };
                let characters: Vec<char> = string.chars().collect();
                shorter(characters.clone());
                shorter(characters[..characters.len() / 2].to_vec());
                for at in 0..characters.len().min(12) {
                    let mut less = characters.clone();
                    less.remove(at);
                    shorter(less);
                }
            }
        }
        Document::Array(items) => {
            all.push(Document::Array(Vec::new()));
            all.extend(items.iter().cloned());
            for at in 0..items.len() {
                let mut less = items.clone();
                less.remove(at);
                all.push(Document::Array(less));
            }
            for (at, item) in items.iter().enumerate() {
                all.extend(smaller(item).into_iter().map(|item| {
                    let mut other = items.clone();
                    other[at] = item;
                    Document::Array(other)
                }));
            }
        }
        Document::Object(members) => {
            all.push(Document::Object(Vec::new()));
            all.extend(members.iter().map(|(_, value)| value.clone()));
            for at in 0..members.len() {
                let mut less = members.clone();
                less.remove(at);
                all.push(Document::Object(less));
            }
            for (at, (key, value)) in members.iter().enumerate() {
                all.extend(smaller(value).into_iter().map(|value| {
                    let mut other = members.clone();
                    other[at].1 = value;
                    Document::Object(other)
                }));
                let plain = super::decode(key).map(|key| encode(&key));
                if plain.as_ref().is_some_and(|plain| plain != key) {
                    let mut other = members.clone();
                    other[at].0 = plain.unwrap_or_default();
                    all.push(Document::Object(other));
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stay_json() {
        let mut rng = Rng::new(3);
        let mut document = Document::parse(r#"{"a":[1,"x"],"b":{"c":null}}"#).unwrap();
        for _ in 0..500 {
            document = change(&document, &mut rng, &mut |_| Document::Scalar("true".to_owned()));
            assert_eq!(Document::parse(&document.to_string()), Some(document.clone()));
        }
    }

    #[test]
    fn smaller_ones_are_shorter() {
        let document = Document::parse(r#"{"a":[10,"xyz"],"b":{"c":false}}"#).unwrap();
        let length = document.to_string().len();
        assert!(smaller(&document).iter().all(|other| other.to_string().len() < length));
    }
}
