//! Computes the JSON pointer of the end of a document's text.

use super::chart::Unit;

/// An open object or array.
enum Open {
    /// The key of the member that the text ends in, if any.
    Object(Option<String>),
    /// The number of complete items, and whether the text ends inside an item.
    Array(usize, bool),
}

/// Returns the JSON pointer of the value that the text of a document ends in. Returns `None` if the text contains
/// something that no document does.
pub(super) fn pointer(document: &[Unit]) -> Option<String> {
    let mut open: Vec<Open> = Vec::new();
    let mut units = document.iter();
    let mut is_key = false;
    let mut in_literal = false;
    while let Some(unit) = units.next() {
        let Unit::Byte(byte) = *unit else { return None };
        if in_literal && matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r') {
            in_literal = false;
            leave(&mut open);
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | b':' => {}
            b'{' => {
                enter(&mut open);
                open.push(Open::Object(None));
                is_key = true;
            }
            b'[' => {
                enter(&mut open);
                open.push(Open::Array(0, false));
                is_key = false;
            }
            b'}' | b']' => {
                open.pop();
                is_key = false;
                leave(&mut open);
            }
            b',' => match open.last_mut() {
                Some(Open::Object(key)) => (*key, is_key) = (None, true),
                Some(Open::Array(..)) | None => {}
            },
            b'"' => {
                let Some(raw) = string(&mut units) else {
                    // Inside a key, it is not known yet which key it will be.
                    if !is_key {
                        enter(&mut open);
                    }
                    break;
                };
                if is_key {
                    let key = serde_json::from_slice(&raw).ok()?;
                    if let Some(Open::Object(last)) = open.last_mut() {
                        *last = Some(key);
                    }
                    is_key = false;
                } else {
                    enter(&mut open);
                    leave(&mut open);
                }
            }
            _ => {
                if !in_literal {
                    enter(&mut open);
                }
                in_literal = true;
            }
        }
    }
    let mut pointer = String::new();
    for part in &open {
        match part {
            Open::Object(Some(key)) => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Open::Array(index, true) => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
            Open::Object(None) | Open::Array(_, false) => {}
        }
    }
    Some(pointer)
}

/// Enters a value.
fn enter(open: &mut [Open]) {
    if let Some(Open::Array(_, inside)) = open.last_mut() {
        *inside = true;
    }
}

/// Leaves a value.
fn leave(open: &mut [Open]) {
    match open.last_mut() {
        Some(Open::Object(key)) => *key = None,
        Some(Open::Array(index, inside)) if *inside => (*index, *inside) = (*index + 1, false),
        _ => {}
    }
}

/// Reads a string after its opening quote and returns it with quotes; `None` if it is not complete.
fn string<'u>(units: &mut impl Iterator<Item = &'u Unit>) -> Option<Vec<u8>> {
    let mut raw = vec![b'"'];
    let mut is_escaped = false;
    for unit in units {
        let Unit::Byte(byte) = *unit else { return None };
        raw.push(byte);
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(raw),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_a_document_has_a_path() {
        let of = |text: &str| pointer(&text.bytes().map(Unit::Byte).collect::<Vec<_>>()).unwrap();
        for (text, path) in [
            ("", ""),
            ("{", ""),
            ("{\"a", ""),
            ("{\"a\"", "/a"),
            ("{\"a\": ", "/a"),
            ("{\"a\": tr", "/a"),
            ("{\"a\": true", "/a"),
            ("{\"a\": true ", ""),
            ("{\"a\": \"x\"", ""),
            ("{\"a\": 1, \"b\": [", "/b"),
            ("{\"a\": 1, \"b\": [7", "/b/0"),
            ("{\"a\": 1, \"b\": [7,", "/b"),
            ("{\"a\": 1, \"b\": [7, {\"~/\": \"\\\"", "/b/1/~0~1"),
            ("{\"a\": 1, \"b\": [7, {\"\\u0041\": [[], []", "/b/1/A"),
            ("{\"a\": 1, \"b\": [7, {\"\\u0041\": [[], [[", "/b/1/A/1/0"),
            ("{\"a\": 1, \"b\": [7]", ""),
            ("{\"a\": 1}", ""),
        ] {
            assert_eq!(of(text), path, "{text}");
        }
    }
}
