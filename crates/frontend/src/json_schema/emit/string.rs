//! Strings, and the spelling of one string.

use maskwright_grammar::ExprId;

use super::super::cases::{Case, Languages, Signed};
use super::Emitter;

/// The maximum number of strings that are marked as distinct one by one.
const MAX_SINGLE_STRINGS: usize = 64;

impl Emitter<'_> {
    /// Returns the strings of a case.
    pub(super) fn string(&mut self, case: &Case) -> ExprId {
        let Some(texts) = self.algebra.text_ways(case) else { return self.algebra.grammar.never() };
        let mut ways = Vec::with_capacity(texts.len());
        for text in texts {
            let is_empty =
                if case.locals.is_empty() { Some(false) } else { self.algebra.is_empty_text(text) };
            match is_empty {
                Some(false) => ways.push(self.algebra.grammar.json_string(text)),
                Some(true) => {}
                None => {
                    let what = "finding out whether a string is possible";
                    self.algebra.exceed_language(case.locals[0].id, "pattern", what);
                    return self.algebra.grammar.never();
                }
            }
        }
        if !ways.is_empty() {
            return self.algebra.grammar.alt(ways);
        }
        let Some(first) = case.locals.first() else { return self.algebra.grammar.never() };
        let keywords = self.algebra.keywords(first.id);
        let (keyword, why) = if keywords.length.is_empty() {
            ("minLength", "`minLength` exceeds `maxLength`, so no string is possible")
        } else if keywords.pattern.is_some() {
            ("pattern", "no string matches `pattern` and the other keywords about strings")
        } else {
            ("", "no string satisfies these keywords together")
        };
        self.nothing(self.algebra.path(first.id), keyword, why)
    }

    /// Returns the strings of a conjunction as one language, if that is better than cases.
    pub(super) fn combined_string(&mut self, members: &[Signed]) -> Option<ExprId> {
        let text = self.algebra.combined_text(members)?;
        // If one large automaton takes too long, many small ones may not.
        let is_empty = self.algebra.is_empty_text(text)?;
        let grammar = &mut self.algebra.grammar;
        Some(if is_empty { grammar.never() } else { grammar.json_string(text) })
    }

    /// Returns the JSON strings of a language one by one if they are few, and none otherwise.
    pub(super) fn few_strings(&mut self, language: ExprId) -> Vec<ExprId> {
        let grammar = &mut self.algebra.grammar;
        if !Languages::has_few(grammar, language, MAX_SINGLE_STRINGS) {
            return Vec::new();
        }
        let texts = Languages::texts(grammar, language, MAX_SINGLE_STRINGS).unwrap_or_default();
        let mut strings = Vec::with_capacity(texts.len());
        for text in texts {
            let text = grammar.bytes(text.as_bytes());
            strings.push(grammar.json_string(text));
        }
        strings
    }

    /// Returns a string in its single spelling.
    pub(super) fn string_literal(&mut self, text: &str) -> ExprId {
        let mut out = Vec::with_capacity(text.len() + 2);
        push_quoted(&mut out, text);
        self.algebra.grammar.bytes(&out)
    }
}

/// Appends a text as a JSON string. Only quotes, backslashes and control characters are escaped, with the short escape
/// if there is one.
fn push_quoted(out: &mut Vec<u8>, text: &str) {
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
