//! Finds keys that occur twice in one object, which is ambiguous.

use std::collections::BTreeSet;

/// Returns a key, in its original spelling, that occurs twice in one object of a JSON text. The text was parsed before,
/// so it is known to be JSON.
pub(super) fn twice(text: &[u8]) -> Option<String> {
    // The keys of each open object, and `None` for each open array.
    let mut open: Vec<Option<BTreeSet<String>>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' => open.push(Some(BTreeSet::new())),
            b'[' => open.push(None),
            b'}' | b']' => _ = open.pop(),
            b'"' => {
                let end = at + string_length(&text[at..]);
                let is_key = text[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                if let (true, Some(Some(keys))) = (is_key, open.last_mut()) {
                    // The same key can be spelled in different ways.
                    let key: String = serde_json::from_slice(&text[at..end]).ok()?;
                    if keys.contains(&key) {
                        return Some(String::from_utf8_lossy(&text[at..end]).into_owned());
                    }
                    keys.insert(key);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the length of the string that a text begins with, including its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_compared_within_one_object() {
        assert_eq!(twice(br#"{"a": {"a": ["a", "a", ":"]}, "b": [{"a": 1}, {"a": 1}], "c": "a"}"#), None);
        assert_eq!(twice(br#"{"a": 1, "b": {"c": "\"}", "d": 2, "c": 3}}"#).as_deref(), Some("\"c\""));
        assert_eq!(twice(br#"{"a\"": 1, "\u0061\"": 2}"#).as_deref(), Some(r#""\u0061\"""#));
        assert_eq!(twice(b"[]"), None);
    }
}
