//! Grammars that are given beside a source, and called there as `@name`.
//!
//! ```
//! use maskwright_frontend::{json_schema, lark};
//!
//! let mut options = lark::Options::default();
//! options.grammars.insert("pair".into(), lark::Named::Lark("start: X \",\" X\nX: /[0-9]/".into()));
//! let source = "start: \"(\" @pair \")\"";
//! assert!(lark::grammar(source, &options, &json_schema::Options::default()).is_ok());
//! ```
//!
//! The source and the grammars are read as one concatenated text, so that a span is unambiguous. The caller has only
//! the source, so a remark about another grammar is moved to the first call of that grammar, and names the line and
//! column in it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use maskwright_grammar::{Diagnostic, Grammar, Span};

use super::lex::{Kind, Token, lex};
use crate::notation::remarks::Remarks;
use crate::{ebnf, gbnf, json_schema, regex};

/// A grammar that a source may call by name. It has its own names and ignored text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Named {
    /// A grammar in the language of Lark, which may call others.
    Lark(String),
    /// JSON that satisfies a schema.
    JsonSchema {
        /// The schema, as JSON text.
        schema: String,
        /// The options for reading it, if they differ from those for schemas in the source.
        #[serde(default)]
        options: Option<Box<json_schema::Options>>,
    },
    /// Texts that match a regular expression.
    Regex {
        /// The expression.
        pattern: String,
        /// The options for reading it, if they differ from the defaults.
        #[serde(default)]
        options: Option<Box<regex::Options>>,
    },
    /// A grammar in EBNF.
    Ebnf {
        /// The grammar.
        source: String,
        /// The options for reading it, if they differ from the defaults.
        #[serde(default)]
        options: Option<Box<ebnf::Options>>,
    },
    /// A grammar in the notation of llama.cpp.
    Gbnf {
        /// The grammar.
        source: String,
        /// The options for reading it, if they differ from the defaults.
        #[serde(default)]
        options: Option<Box<ebnf::Options>>,
    },
}

/// The result of reading a text in another language.
type Foreign = Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>>;

impl Named {
    /// Reads a grammar in a language other than Lark and JSON Schema. Remarks have places in that text alone. Returns
    /// `None` for Lark and JSON Schema.
    pub(super) fn foreign(&self) -> Option<(&str, Foreign)> {
        Some(match self {
            Self::Lark(_) | Self::JsonSchema { .. } => return None,
            Self::Regex { pattern, options } => {
                let read = regex::grammar(pattern, &options.as_deref().cloned().unwrap_or_default());
                (pattern, read.map(|grammar| (grammar, Vec::new())).map_err(|error| vec![error]))
            }
            Self::Ebnf { source, options } => {
                (source, ebnf::grammar(source, &options.as_deref().cloned().unwrap_or_default()))
            }
            Self::Gbnf { source, options } => {
                (source, gbnf::grammar(source, &options.as_deref().cloned().unwrap_or_default()))
            }
        })
    }
}

/// Moves remarks about a text in another language to the place where it is called.
pub(super) fn at_call(remarks: Vec<Diagnostic>, name: &str, text: &str, call: Span) -> Vec<Diagnostic> {
    let moved = |mut remark: Diagnostic| {
        let (line, column) = remark.line_column(text);
        remark.message = format!("in `@{name}`, line {line}, column {column}: {}", remark.message);
        remark.span = call;
        remark
    };
    remarks.into_iter().map(moved).collect()
}

/// A grammar that was called: its place in the concatenated text, and the place of its first call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    name: Box<str>,
    text: Box<str>,
    start: usize,
    call: Span,
}

/// Returns the source followed by all Lark grammars, and the place of each grammar.
pub(super) fn whole<'s>(
    source: &'s str,
    named: &BTreeMap<String, Named>,
) -> (Cow<'s, str>, BTreeMap<Box<str>, Span>) {
    let mut text = Cow::Borrowed(source);
    let mut places = BTreeMap::new();
    for (name, grammar) in named {
        if let Named::Lark(grammar) = grammar {
            let text = text.to_mut();
            // Separates the end of the source from the start of the grammar.
            text.push('\n');
            let start = text.len();
            text.push_str(grammar);
            places.insert(name.as_str().into(), Span::new(start, text.len()));
        }
    }
    (text, places)
}

/// Returns the tokens of a part of the concatenated text.
pub(super) fn tokens(whole: &str, part: Span, errors: &mut Remarks) -> Vec<Token> {
    let mut found = Remarks::default();
    let mut tokens = lex(&whole[part.start..part.end], &mut found);
    let moved = |span: Span| Span::new(span.start + part.start, span.end + part.start);
    for token in &mut tokens {
        token.span = moved(token.span);
        if let Kind::Regex { pattern, flags } = &mut token.kind {
            (*pattern, *flags) = (moved(*pattern), moved(*flags));
        }
    }
    for mut remark in found.into_vec() {
        remark.span = moved(remark.span);
        errors.push(remark);
    }
    tokens
}

impl Origin {
    pub(super) fn new(name: &str, whole: &str, part: Span, call: Span) -> Self {
        Self { name: name.into(), text: whole[part.start..part.end].into(), start: part.start, call }
    }

    fn holds(&self, place: usize) -> bool {
        (self.start..=self.start + self.text.len()).contains(&place)
    }

    /// Returns the line and the column of a place, counted from 1.
    fn line(&self, place: usize) -> (usize, usize) {
        let mut before = place - self.start;
        while !self.text.is_char_boundary(before) {
            before -= 1;
        }
        let before = &self.text[..before];
        let line = before.rsplit('\n').next().unwrap_or("");
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }
}

/// Moves remarks about other grammars to the places where these are called.
pub(super) fn in_source(mut remarks: Vec<Diagnostic>, origins: &[Origin]) -> Vec<Diagnostic> {
    for remark in &mut remarks {
        if let Some(origin) = origins.iter().find(|origin| origin.holds(remark.span.start)) {
            let (line, column) = origin.line(remark.span.start);
            remark.message =
                format!("in `@{}`, line {line}, column {column}: {}", origin.name, remark.message);
        }
        // A grammar may have been called by another one, and so on. Each is called before those that it calls.
        while let Some(origin) = origins.iter().find(|origin| origin.holds(remark.span.start)) {
            remark.span = origin.call;
        }
    }
    remarks
}
