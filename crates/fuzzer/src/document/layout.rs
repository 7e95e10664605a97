//! White space, and the order of keys.

use core::fmt::Write as _;

use maskwright_oracle::generate::Rng;

use super::Document;

/// The layout of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `{"a":[1,2]}`
    Compact,
    /// `{"a": [1, 2]}`
    Spaced,
    /// One line for each member or item, indented by two spaces per level.
    Indented,
    /// Random spaces and line breaks between all tokens, drawn from this seed.
    Random(u64),
}

impl Layout {
    /// Writes a document with this layout.
    pub fn write(self, document: &Document) -> String {
        let mut writer = Writer { layout: self, out: String::new(), rng: Rng::new(0) };
        if let Self::Random(seed) = self {
            writer.rng = Rng::new(seed);
        }
        writer.value(document, 0);
        writer.out
    }
}

struct Writer {
    layout: Layout,
    out: String,
    rng: Rng,
}

impl Writer {
    fn value(&mut self, document: &Document, level: usize) {
        match document {
            Document::Scalar(text) => self.out.push_str(text),
            Document::Array(items) => {
                self.members('[', ']', items.len(), level, |writer, at| writer.value(&items[at], level + 1));
            }
            Document::Object(members) => self.members('{', '}', members.len(), level, |writer, at| {
                let (key, value) = &members[at];
                writer.out.push_str(key);
                writer.blank("", "");
                writer.out.push(':');
                writer.blank(" ", " ");
                writer.value(value, level + 1);
            }),
        }
    }

    fn members(
        &mut self,
        open: char,
        close: char,
        count: usize,
        level: usize,
        write: impl Fn(&mut Self, usize),
    ) {
        let indent = |level: usize| format!("\n{}", "  ".repeat(level));
        self.out.push(open);
        for at in 0..count {
            if at > 0 {
                self.blank("", "");
                self.out.push(',');
            }
            self.blank(if at > 0 { " " } else { "" }, &indent(level + 1));
            write(self, at);
        }
        self.blank("", &if count > 0 { indent(level) } else { String::new() });
        self.out.push(close);
    }

    /// Writes the white space between two tokens.
    fn blank(&mut self, spaced: &str, indented: &str) {
        match self.layout {
            Layout::Compact => {}
            Layout::Spaced => self.out.push_str(spaced),
            Layout::Indented => self.out.push_str(indented),
            Layout::Random(_) => {
                for _ in 0..self.rng.below(4) {
                    let blank = [' ', ' ', '\n', '\t', '\r'][self.rng.below(5)];
                    // Writing to a string cannot fail.
                    let _ = self.out.write_char(blank);
                }
            }
        }
    }
}

/// Returns documents with the keys of all objects in other orders, this one first; at most `limit`.
pub fn permutations(document: &Document, limit: usize) -> Vec<Document> {
    let mut all = match document {
        Document::Scalar(_) => vec![document.clone()],
        Document::Array(items) => product(items.iter(), limit).into_iter().map(Document::Array).collect(),
        Document::Object(members) => {
            let keys: Vec<&String> = members.iter().map(|(key, _)| key).collect();
            let values = product(members.iter().map(|(_, value)| value), limit);
            let mut all = Vec::new();
            for order in orders(members.len(), limit) {
                for values in &values {
                    let member = |&at: &usize| (keys[at].clone(), values[at].clone());
                    all.push(Document::Object(order.iter().map(member).collect()));
                    if all.len() >= limit {
                        return all;
                    }
                }
            }
            all
        }
    };
    all.truncate(limit);
    all
}

/// Returns every combination of one permutation of each part.
fn product<'a>(parts: impl Iterator<Item = &'a Document>, limit: usize) -> Vec<Vec<Document>> {
    let mut all = vec![Vec::new()];
    for part in parts {
        let ways = permutations(part, limit);
        let longer = |so_far: Vec<Document>| {
            ways.iter()
                .map(move |way| {
                    let mut longer = so_far.clone();
                    longer.push(way.clone());
                    longer
                })
                .collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).take(limit).collect();
    }
    all
}

/// Returns the orders of the numbers below `count`, the natural one first; at most `limit`.
pub fn orders(count: usize, limit: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let longer = |order: Vec<usize>| {
            (0..count)
                .filter(|at| !order.contains(at))
                .map(|at| [&order[..], &[at]].concat())
                .collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).take(limit).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let document = Document::parse(r#"{"a":[1,{}],"b":[]}"#).unwrap();
        assert_eq!(Layout::Spaced.write(&document), r#"{"a": [1, {}], "b": []}"#);
        assert_eq!(Layout::Indented.write(&document), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
        assert_eq!(Document::parse(&Layout::Random(7).write(&document)), Some(document));
    }

    #[test]
    fn orders_of_keys() {
        let document = Document::parse(r#"{"a":1,"b":[{"c":1,"d":2}],"e":0}"#).unwrap();
        let all = permutations(&document, 1000);
        assert_eq!(all.len(), 12);
        assert_eq!(all[0], document);
        assert_eq!(permutations(&document, 5).len(), 5);
    }
}
