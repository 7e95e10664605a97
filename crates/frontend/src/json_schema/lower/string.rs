//! Strings with a least and a greatest length, counted in characters of the decoded text.

use maskwright_grammar::ExprId;

use super::super::keywords::Keywords;
use super::super::path::PathId;
use super::Lowerer;

impl Lowerer<'_> {
    /// The strings that the keywords allow.
    pub(super) fn string(&mut self, keywords: &Keywords<'_>, path: PathId) -> ExprId {
        let window = keywords.length;
        if window.is_empty() {
            return self.nothing(
                path,
                "minLength",
                "`minLength` exceeds `maxLength`, so no string is possible",
            );
        }
        let text = self.grammar.repeat(self.leaves.character, window.min, window.max);
        self.grammar.json_string(text)
    }
}

/// Appends a text as a JSON string in its one canonical spelling: quotes, backslashes and control characters are
/// escaped, with the short escapes where there are any, and nothing else is.
pub(super) fn push_quoted(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x00..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling() {
        let mut out = Vec::new();
        push_quoted(&mut out, "a\"b\\c/\n\u{8}\u{1f}\u{7f}é😀");
        assert_eq!(String::from_utf8_lossy(&out), "\"a\\\"b\\\\c/\\n\\b\\u001f\u{7f}é😀\"");
    }
}
