//! Strings: length, `pattern` and `format`, as one language over the decoded text.
//!
//! The length alone is a counted repetition of any character, for which the engine needs no table. Otherwise the conditions are
//! intersected, and a negated schema is the complement of what it says:
//!
//! ```text
//! {"pattern": "^a", "maxLength": 9, "not": {"format": "date"}}  =  a.* ∧ .{0,9} ∧ ¬date
//! ```

use super::super::json::Value;
use maskwright_grammar::{Expr, ExprId};

use super::super::error::Reason;
use super::super::keywords::{Keywords, Window};
use super::super::schemas::SchemaId;
use super::Lowerer;
use super::expand::Case;
use super::node::NodeId;
use crate::regex;

impl<'s> Lowerer<'s> {
    /// The strings of a case.
    pub(super) fn string(&mut self, case: &Case) -> ExprId {
        let Some(text) = self.text(case) else { return self.grammar.never() };
        match self.is_empty_text(text) {
            Some(false) => self.grammar.json_string(text),
            Some(true) => {
                let path = self.path_of(&case.locals);
                let keywords = case.locals.first().map(|local| self.keywords(local.id));
                let (keyword, why) = match keywords {
                    Some(keywords) if keywords.length.is_empty() => {
                        ("minLength", "`minLength` exceeds `maxLength`, so no string is possible")
                    }
                    Some(keywords) if keywords.pattern.is_some() => {
                        ("pattern", "no string matches `pattern` and the other keywords about strings")
                    }
                    _ => ("", "no string satisfies these keywords together"),
                };
                self.nothing(path, keyword, why)
            }
            None => {
                let path = self.path_of(&case.locals);
                self.halt(
                    path,
                    "pattern",
                    "finding out whether any string is possible takes too many steps".to_owned(),
                );
                self.grammar.never()
            }
        }
    }

    /// Whether no text is in a language; `None` if that takes too long to find out.
    pub(super) fn is_empty_text(&mut self, text: ExprId) -> Option<bool> {
        match self.windowed(text) {
            Some((language, window)) => self.languages.is_empty_within(&self.grammar, language, window, text),
            None => self.languages.is_empty(&self.grammar, text),
        }
    }

    /// The language and the window of an intersection that has one.
    fn windowed(&mut self, text: ExprId) -> Option<(ExprId, Window)> {
        let Expr::And(parts) = self.grammar.expr(text) else { return None };
        let window = |id: ExprId| match *self.grammar.expr(id) {
            Expr::Repeat { body, min, max } if body == self.leaves.character => Some(Window { min, max }),
            _ => None,
        };
        let found = parts.iter().find_map(|&part| Some((part, window(part)?)));
        let (length, window) = found?;
        let others: Vec<ExprId> = parts.iter().copied().filter(|part| *part != length).collect();
        Some((self.grammar.and(others), window))
    }

    /// The decoded texts of the strings of a case; `None` after a problem.
    pub(super) fn text(&mut self, case: &Case) -> Option<ExprId> {
        let mut window = Window::default();
        let mut parts: Vec<ExprId> = Vec::new();
        for local in &case.locals {
            let keywords = self.keywords(local.id);
            if local.negative {
                let said = self.said(local.id, &keywords)?;
                parts.push(self.complement(said));
            } else {
                window = window.and(keywords.length);
                if let Some(pattern) = keywords.pattern {
                    parts.push(self.pattern(local.id, "pattern", pattern)?);
                }
                if let Some(format) = keywords.format {
                    parts.push(self.format(format));
                }
            }
        }
        if window.is_empty() {
            return Some(self.grammar.never());
        }
        if parts.is_empty() {
            return Some(self.grammar.repeat(self.leaves.character, window.min, window.max));
        }
        parts.sort_unstable();
        parts.dedup();
        if let [only] = *parts {
            return Some(self.within(only, window));
        }
        if !window.is_open() {
            parts.push(self.grammar.repeat(self.leaves.character, window.min, window.max));
        }
        Some(self.grammar.and(parts))
    }

    /// The texts of a language that have a length in the window.
    fn within(&mut self, language: ExprId, window: Window) -> ExprId {
        if window.is_open() {
            return language;
        }
        let (shortest, longest) = self.lengths(language, 64);
        if shortest >= window.min
            && window.max.is_none_or(|max| longest.is_some_and(|longest| longest <= max))
        {
            return language;
        }
        if let Expr::Repeat { body, min, max } = *self.grammar.expr(language)
            && matches!(self.grammar.expr(body), Expr::Class(_))
        {
            // A run of one class of characters: the windows meet.
            let both = window.and(Window { min, max });
            return self.grammar.repeat(body, both.min, both.max);
        }
        let length = self.grammar.repeat(self.leaves.character, window.min, window.max);
        self.grammar.and([language, length])
    }

    /// A least and a greatest number of characters of the texts of a language; they may be too small and too large.
    fn lengths(&self, language: ExprId, depth: usize) -> (u32, Option<u32>) {
        if depth == 0 {
            return (0, None);
        }
        match self.grammar.expr(language) {
            Expr::Never | Expr::Empty => (0, Some(0)),
            Expr::Bytes(bytes) => {
                let count = String::from_utf8_lossy(bytes).chars().count() as u32;
                (count, Some(count))
            }
            Expr::Class(_) => (1, Some(1)),
            Expr::Seq(parts) => parts.iter().fold((0, Some(0)), |(low, high), part| {
                let (a, b) = self.lengths(*part, depth - 1);
                (low.saturating_add(a), high.zip(b).and_then(|(high, b)| high.checked_add(b)))
            }),
            Expr::Alt(parts) => parts.iter().fold((u32::MAX, Some(0)), |(low, high), part| {
                let (a, b) = self.lengths(*part, depth - 1);
                (low.min(a), high.zip(b).map(|(high, b)| high.max(b)))
            }),
            Expr::Repeat { body, min, max } => {
                let (a, b) = self.lengths(*body, depth - 1);
                (a.saturating_mul(*min), max.zip(b).and_then(|(max, b)| b.checked_mul(max)))
            }
            _ => (0, None),
        }
    }

    /// What a schema says about strings by itself, as a language.
    pub(super) fn said(&mut self, id: SchemaId, keywords: &Keywords<'s>) -> Option<ExprId> {
        let mut parts = Vec::with_capacity(4);
        if !keywords.length.is_open() {
            parts.push(self.grammar.repeat(self.leaves.character, keywords.length.min, keywords.length.max));
        }
        if let Some(pattern) = keywords.pattern {
            parts.push(self.pattern(id, "pattern", pattern)?);
        }
        if let Some(format) = keywords.format {
            parts.push(self.format(format));
        }
        if let Some(values) = keywords.listed() {
            let words: Vec<ExprId> = values
                .iter()
                .filter_map(Value::as_str)
                .map(|word| self.grammar.bytes(word.as_bytes()))
                .collect();
            parts.push(self.grammar.alt(words));
        }
        Some(self.grammar.and(parts))
    }

    /// Every text that is not in a language. The complement of a complement is spelled without both.
    pub(super) fn complement(&mut self, language: ExprId) -> ExprId {
        match *self.grammar.expr(language) {
            Expr::Not(inner) => inner,
            Expr::Never => self.grammar.any_text(),
            Expr::Repeat { body, min: 0, max: None } if matches!(self.grammar.expr(body), Expr::Class(set) if set.is_all()) => {
                self.grammar.never()
            }
            Expr::Repeat { body, min, max: None } if matches!(self.grammar.expr(body), Expr::Class(set) if set.is_all()) => {
                self.grammar.repeat(body, 0, Some(min - 1))
            }
            Expr::Repeat { body, min: 0, max: Some(max) }
                if max < u32::MAX && matches!(self.grammar.expr(body), Expr::Class(set) if set.is_all()) =>
            {
                self.grammar.repeat(body, max + 1, None)
            }
            _ => self.grammar.not(language),
        }
    }

    /// The texts that a pattern matches somewhere; `None`, and a problem, if it cannot be used.
    pub(super) fn pattern(
        &mut self,
        id: SchemaId,
        keyword: &'static str,
        pattern: &'s str,
    ) -> Option<ExprId> {
        if let Some(&known) = self.patterns.get(pattern) {
            return known;
        }
        let lowered = match regex::lower(pattern, &regex::Options::json_schema(), &mut self.grammar) {
            Ok(expr) => Some(expr),
            Err(error) => {
                let path = self.schemas.path(id);
                let message = format!("the pattern `{pattern}` cannot be used: {error}");
                let help = error.help.as_deref().unwrap_or("fix the pattern or remove it");
                if self.context.options.strictness == super::Strictness::Lenient {
                    self.context.cover(path, keyword, super::Coverage::Unenforced);
                    Some(self.grammar.any_text())
                } else {
                    self.context.problem(Reason::Unsupported, path, keyword, message, help);
                    None
                }
            }
        };
        self.patterns.insert(pattern, lowered);
        lowered
    }

    /// The texts that the strings of a node may have, for `propertyNames`; `None` after a problem.
    pub(super) fn texts_of(&mut self, node: NodeId) -> Option<ExprId> {
        if node == NodeId::NEVER {
            return Some(self.grammar.never());
        }
        let members = self.nodes.members(node);
        let cases = self.cases(&members, super::TypeSet::STRING)?;
        let mut texts = Vec::with_capacity(cases.len());
        for case in &cases {
            if let Some(id) = self.listing(case) {
                let keywords = self.keywords(id);
                for value in keywords.listed().unwrap_or_default() {
                    if let Value::String(text) = value
                        && self.satisfies(value, &members)
                    {
                        texts.push(self.grammar.bytes(text.as_bytes()));
                    }
                }
            } else {
                texts.push(self.text(case)?);
            }
        }
        Some(self.grammar.alt(texts))
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
