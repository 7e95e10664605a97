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
//! Source and grammars are read as one text, in which each has a place of its own: a span never means two things. Whoever gets a remark has the source alone, so a remark about
//! another grammar is moved to where that is called first, and says where in it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use maskwright_grammar::{Diagnostic, Grammar, Span};

use super::lex::{Kind, Token, lex};
use crate::notation::remarks::Remarks;
use crate::{ebnf, gbnf, json_schema, regex};

/// A grammar that a source may call by its name. It has names and ignored text of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Named {
    /// A grammar in the language of Lark, which may call others.
    Lark(String),
    /// JSON that satisfies a schema.
    JsonSchema {
        /// The schema, in JSON.
        schema: String,
        /// How it is read, if not as schemas in the source are.
        #[serde(default)]
        options: Option<Box<json_schema::Options>>,
    },
    /// Texts that match a regular expression.
    Regex {
        /// The expression.
        pattern: String,
        /// How it is read, if not in the usual way.
        #[serde(default)]
        options: Option<Box<regex::Options>>,
    },
    /// A grammar in EBNF.
    Ebnf {
        /// The grammar.
        source: String,
        /// How it is read, if not in the usual way.
        #[serde(default)]
        options: Option<Box<ebnf::Options>>,
    },
    /// A grammar as llama.cpp writes it.
    Gbnf {
        /// The grammar.
        source: String,
        /// How it is read, if not in the usual way.
        #[serde(default)]
        options: Option<Box<ebnf::Options>>,
    },
}

/// What the reader of another language says of its text.
type Foreign = Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>>;

impl Named {
    /// The grammar of a text in another language than Lark and JSON Schema, with remarks as they would be about a text alone. `None` for those two.
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

/// Remarks about a text in another language, at the place where it is called.
pub(super) fn at_call(remarks: Vec<Diagnostic>, name: &str, text: &str, call: Span) -> Vec<Diagnostic> {
    let moved = |mut remark: Diagnostic| {
        let (line, column) = remark.line_column(text);
        remark.message = format!("in `@{name}`, line {line}, column {column}: {}", remark.message);
        remark.span = call;
        remark
    };
    remarks.into_iter().map(moved).collect()
}

/// A grammar that was called: where it stands in the whole text, and where it was called first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    name: Box<str>,
    text: Box<str>,
    start: usize,
    call: Span,
}

/// The source and all grammars of the language of Lark behind it, and where each stands.
pub(super) fn whole<'s>(
    source: &'s str,
    named: &BTreeMap<String, Named>,
) -> (Cow<'s, str>, BTreeMap<Box<str>, Span>) {
    let mut text = Cow::Borrowed(source);
    let mut places = BTreeMap::new();
    for (name, grammar) in named {
        if let Named::Lark(grammar) = grammar {
            let text = text.to_mut();
            // An end of the source and a beginning of a grammar are two places.
            text.push('\n');
            let start = text.len();
            text.push_str(grammar);
            places.insert(name.as_str().into(), Span::new(start, text.len()));
        }
    }
    (text, places)
}

/// The tokens of a part of the whole text.
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

    /// The line and the column of a place, as people count.
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

/// Remarks at places of the source: those about other grammars stand where these are called.
pub(super) fn in_source(mut remarks: Vec<Diagnostic>, origins: &[Origin]) -> Vec<Diagnostic> {
    for remark in &mut remarks {
        if let Some(origin) = origins.iter().find(|origin| origin.holds(remark.span.start)) {
            let (line, column) = origin.line(remark.span.start);
            remark.message =
                format!("in `@{}`, line {line}, column {column}: {}", origin.name, remark.message);
        }
        // A grammar that was called by another one, and so on: each is called before those that it calls.
        while let Some(origin) = origins.iter().find(|origin| origin.holds(remark.span.start)) {
            remark.span = origin.call;
        }
    }
    remarks
}
