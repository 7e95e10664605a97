//! Regular expressions, lowered to the grammar representation.
//!
//! ```
//! use maskwright_frontend::regex::{Options, grammar, parse};
//!
//! let date = grammar(r"\d{4}-\d\d-\d\d", &Options::default()).unwrap();
//! assert_eq!(date.rules().len(), 1);
//!
//! let remark = parse("a{5,2}", &Options::default()).unwrap_err();
//! assert_eq!(remark.render("pattern", "a{5,2}"), "\
//! pattern:1:2: error: the repetition {5,2} asks for at least 5 but at most 2
//!   |
//! 1 | a{5,2}
//!   |  ^^^^^
//! ");
//! ```
//!
//! # Meaning of a pattern
//!
//! A pattern describes whole texts: it must match from the first to the last character, unless [`Options::anchored`] is
//! off. Greedy, lazy and capturing operators do not change which texts match, so they are read and ignored. There are
//! three dialects: [`Dialect::Rust`], as the Rust `regex` crate reads patterns, [`Dialect::Ecma`], which JSON Schema
//! requires, and [`Dialect::Python`], as the module `re` reads them.
//!
//! # Anchors and look-around
//!
//! Anchors, word boundaries and look-around are conditions on the text around a position. They are lowered exactly, by
//! intersection and complement, wherever they are outside an unbounded repetition; `lower.rs` explains how. Constructs
//! that no regular language can express (back-references), and those that exist only for backtracking (possessive
//! repetition, atomic groups), are refused with their place.
//!
//! # Why not the parser of regex-syntax
//!
//! regex-syntax does not read look-around, and JSON Schema needs another dialect with other classes. The Unicode tables
//! (`\w`, `\p{…}`, case folding) do come from regex-syntax; only `unicode.rs` uses it.

mod ast;
mod class;
mod empty;
mod escape;
mod look;
mod lower;
mod parse;
mod unicode;
mod write;

use core::fmt;
use core::str::FromStr;

use maskwright_automata::{Dfa, Exprs, Limits};
use maskwright_grammar::{Diagnostic, ExprId, Grammar, GrammarBuilder, Span};

use crate::translate::translate;

pub use ast::{Ast, Kind, Look, Place};
pub use write::{WriteError, WriteErrorKind, WriteLimits, write};

/// The options for reading a pattern.
///
/// ```
/// use maskwright_frontend::regex::{Dialect, Options};
///
/// let options = Options { ignore_case: true, ..Options::default().with_dialect(Dialect::Python) };
/// assert!(options.anchored); // a whole text must match, unless told otherwise
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "flags are independent of each other")]
pub struct Options {
    /// The syntax, and the meaning of the classes.
    pub dialect: Dialect,
    /// Whether the pattern must match the whole text (the default) or any part of it.
    pub anchored: bool,
    /// Whether `\d`, `\w`, `\s` and `\b` are limited to ASCII. They always are in [`Dialect::Ecma`], apart from `\s`.
    /// The same as starting the pattern with `(?a)`.
    pub ascii: bool,
    /// Whether the case of letters is ignored. The same as starting the pattern with `(?i)`.
    pub ignore_case: bool,
    /// Whether `^` and `$` also match at the start and end of a line. The same as starting the pattern with `(?m)`.
    pub multi_line: bool,
    /// Whether `.` matches every character. The same as starting the pattern with `(?s)`.
    pub dot_all: bool,
    /// Whether blanks and comments are skipped, as after `(?x)`. Ignored in [`Dialect::Ecma`].
    pub extended: bool,
    /// The maximum nesting depth of groups, classes and repetitions.
    pub nesting: usize,
    /// The maximum number of bytes of a pattern.
    pub source_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dialect: Dialect::Rust,
            anchored: true,
            ascii: false,
            ignore_case: false,
            multi_line: false,
            dot_all: false,
            extended: false,
            nesting: 250,
            source_bytes: 2 << 20,
        }
    }
}

impl Options {
    /// Sets the dialect.
    #[must_use]
    pub fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Returns the options for the keyword `pattern` of JSON Schema: ECMA-262, and a match anywhere in the text.
    pub fn json_schema() -> Self {
        Self { dialect: Dialect::Ecma, anchored: false, ..Self::default() }
    }
}

/// A dialect of regular expressions.
///
/// ```
/// use maskwright_frontend::regex::{Dialect, Options, parse};
///
/// // A set operation in one dialect is a class of three signs and a letter in another.
/// let pattern = "[a&&b]";
/// assert!(parse(pattern, &Options::default().with_dialect(Dialect::Rust)).is_ok());
/// assert_eq!(Dialect::ALL.len(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// As the Rust `regex` crate reads it, plus look-around, `\uXXXX`, `(?#…)` and `(?a)`: Unicode classes, nested
    /// classes with set operations, POSIX classes, `\A` and `\z`.
    Rust,
    /// ECMA-262 with the flag `u`, slightly more lenient: an escaped punctuation character stands for itself, and so
    /// does a brace that begins no repetition.
    Ecma,
    /// As the module `re` of Python reads a pattern that is a `str`: Unicode classes unless `(?a)`, no set operations,
    /// `$` also before a final line feed.
    Python,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 3] = [Self::Ecma, Self::Python, Self::Rust];

    /// Returns the name, as used in programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Ecma => "ecma",
            Self::Python => "python",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|dialect| dialect.name() == text);
        named.ok_or_else(|| {
            format!("there is no dialect `{text}`; known are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// Reads a pattern.
pub fn parse(pattern: &str, options: &Options) -> Result<Ast, Diagnostic> {
    parse::parse(pattern, options)
}

/// Reads a pattern and builds the expression that matches the same texts.
pub fn lower(pattern: &str, options: &Options, builder: &mut GrammarBuilder) -> Result<ExprId, Diagnostic> {
    let ast = parse(pattern, options)?;
    lower::lower(&ast, options, builder)
}

/// Builds the expression that matches the same texts as a parsed pattern.
pub(crate) fn lower_ast(
    ast: &Ast,
    options: &Options,
    builder: &mut GrammarBuilder,
) -> Result<ExprId, Diagnostic> {
    lower::lower(ast, options, builder)
}

/// Reads a pattern and returns a grammar whose only rule is `root`.
pub fn grammar(pattern: &str, options: &Options) -> Result<Grammar, Diagnostic> {
    one_rule(pattern, |builder| lower(pattern, options, builder))
}

fn one_rule(
    pattern: &str,
    lower: impl FnOnce(&mut GrammarBuilder) -> Result<ExprId, Diagnostic>,
) -> Result<Grammar, Diagnostic> {
    let mut builder = GrammarBuilder::new();
    let body = lower(&mut builder)?;
    let root = builder.declare("root");
    builder.define(root, body);
    builder.finish(root).map_err(|error| Diagnostic::error(Span::new(0, pattern.len()), error.to_string()))
}

/// Finds the part of a pattern because of which no text matches it. `is_empty` decides whether no text matches a
/// grammar, and returns `None` if it does not know.
///
/// Returns `None` if there is no such part, or it cannot be found.
pub fn why_empty(
    pattern: &str,
    options: &Options,
    is_empty: impl FnMut(&Grammar) -> Option<bool>,
) -> Option<Diagnostic> {
    empty::why_empty(pattern, options, is_empty)
}

/// Reads a pattern and builds its minimal automaton.
///
/// ```
/// use maskwright_automata::Limits;
/// use maskwright_frontend::regex::{Options, automaton};
/// let year = automaton(r"[0-9]{4}", &Options::default(), &Limits::default()).unwrap();
/// assert!(year.matches(b"2026") && !year.matches(b"26"));
/// ```
pub fn automaton(pattern: &str, options: &Options, limits: &Limits) -> Result<Dfa, Diagnostic> {
    let whole = Span::new(0, pattern.len());
    let grammar = grammar(pattern, options)?;
    let mut exprs = Exprs::new();
    let root = grammar.rule(grammar.root()).expr();
    // A pattern has no rules, tokens or JSON strings, so the translation cannot fail on one.
    let root = translate(|id| grammar.expr(id), |_| None, root, &mut exprs)
        .map_err(|_| Diagnostic::error(whole, "the pattern is more than a regular expression"))?;
    Dfa::build(&mut exprs, root, limits).map_err(|error| Diagnostic::error(whole, error.to_string()))
}
