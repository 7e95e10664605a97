//! Grammars in the `root ::= …` notation that users of `XGrammar` know. [GBNF](crate::gbnf) is read by the same code.
//!
//! ```
//! use maskwright_frontend::ebnf;
//!
//! let source = r#"
//!     root ::= sum
//!     sum  ::= sum "+" term | term      # left recursion is fine
//!     term ::= [0-9]+ | "(" sum ")"
//! "#;
//! let (grammar, warnings) = ebnf::grammar(source, &ebnf::Options::default()).unwrap();
//! assert_eq!(grammar.rules().len(), 3);
//! assert!(warnings.is_empty());
//! ```
//!
//! The notation is described, with examples that the tests run, in `docs/ebnf.md`. The way of a
//! grammar through this folder:
//!
//! | file      | from → to                                                                         |
//! |-----------|-----------------------------------------------------------------------------------|
//! | `lex`     | text → tokens; literals, classes and bounds are read here                         |
//! | `parse`   | tokens → [`ast::Document`], with spans                                            |
//! | `resolve` | names → rules: undefined, defined twice, no root, not reachable                   |
//! | `lower`   | rules → [`Grammar`], without the rules that `root` does not reach                 |
//!
//! # Errors and warnings
//!
//! Whatever is wrong comes back as [`Diagnostic`]s with places, several at a time where that makes
//! sense and at most [`MAX_REMARKS`] of them. Nothing is repaired silently: a source with an error
//! gives no grammar.
//!
//! ```
//! # use maskwright_frontend::ebnf;
//! let source = "root ::= digits\ndigit ::= [0-9]";
//! let errors = ebnf::grammar(source, &ebnf::Options::default()).unwrap_err();
//! assert_eq!(
//!     errors[0].render("date.ebnf", source),
//!     "date.ebnf:1:10: error: rule `digits` is not defined\n  \
//!        |\n\
//!      1 | root ::= digits\n  \
//!        |          ^^^^^^\n  \
//!        = help: did you mean `digit`?\n"
//! );
//! ```
//!
//! # Limits
//!
//! A source may come from anybody. Every way in which it could grow is bounded by [`Limits`], and all
//! passes take time and memory in proportion to the source.

pub mod ast;
mod attributes;
mod lex;
mod lower;
mod macros;
mod parse;
mod resolve;

use maskwright_grammar::{Diagnostic, Grammar};

pub use crate::notation::remarks::MAX_REMARKS;
pub(crate) use lex::has_tokens;
pub use lower::lower;
pub use parse::parse;
pub(crate) use parse::parse_as;

/// The two notations that are read here; they differ in little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// The one of this module.
    Ebnf,
    /// The one of [`crate::gbnf`].
    Gbnf,
}

/// How a source is read.
///
/// ```
/// use maskwright_frontend::ebnf::Options;
///
/// let options = Options { root: "query".into(), ..Options::default() };
/// assert_eq!(Options::default().root, "root");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Options {
    /// The rule that a whole text must match; `root` unless told otherwise.
    pub root: String,
    /// How large a source may be.
    pub limits: Limits,
}

/// How large a source may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The length of the source in bytes; 16 MiB unless told otherwise.
    pub source_bytes: usize,
    /// The number of rules; 200,000 unless told otherwise.
    pub rules: usize,
    /// How many groups may be open at once; 250 unless told otherwise. Lowering calls itself once for
    /// every open group, so a much greater depth wants a larger stack as well.
    pub depth: usize,
    /// The greatest number in a repetition `{n,m}`; 1,000,000 unless told otherwise.
    pub repetition: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { root: "root".into(), limits: Limits::default() }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { source_bytes: 16 << 20, rules: 200_000, depth: 250, repetition: 1_000_000 }
    }
}

/// Reads a source and lowers it: the grammar with its warnings, or the errors.
pub fn grammar(source: &str, options: &Options) -> Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>> {
    let document = parse(source, options)?;
    lower(&document, options)
}
