//! Grammars in the `root ::= …` notation of `XGrammar`. The same code reads [GBNF](crate::gbnf).
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
//! The notation is described in `docs/ebnf.md`, with examples that the tests run. The modules, in the order in which a
//! grammar passes through them:
//!
//! | file | from → to |
//! |---|---|
//! | `lex` | text → tokens; literals, classes and bounds are read here |
//! | `parse` | tokens → [`ast::Document`], with spans |
//! | `resolve` | names → rules: undefined, defined twice, no root, not reachable |
//! | `lower` | rules → [`Grammar`], without the rules that `root` does not reach |
//!
//! # Errors and warnings
//!
//! Errors are returned as [`Diagnostic`]s with places, several at a time where that is useful and at most
//! [`MAX_REMARKS`] of them. Nothing is repaired silently: a source with an error gives no grammar.
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
//! A source may be untrusted. Every way in which it could grow is bounded by [`Limits`], and all passes take time and
//! memory proportional to the source.

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

/// The two similar notations that are read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// The notation of this module.
    Ebnf,
    /// The notation of [`crate::gbnf`].
    Gbnf,
}

/// The options for reading a source.
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
    /// The rule that a whole text must match; `root` by default.
    pub root: String,
    /// The limits on the size of a source.
    pub limits: Limits,
}

/// The limits on the size of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The length of the source in bytes; 16 MiB by default.
    pub source_bytes: usize,
    /// The number of rules; 200,000 by default.
    pub rules: usize,
    /// The maximum number of groups that are open at the same time; 250 by default. Lowering recurses once per open
    /// group, so a much greater depth needs a larger stack.
    pub depth: usize,
    /// The greatest number in a repetition `{n,m}`; 1,000,000 by default.
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

/// Reads a source and lowers it. Returns the grammar with its warnings, or the errors.
pub fn grammar(source: &str, options: &Options) -> Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>> {
    let document = parse(source, options)?;
    lower(&document, options)
}
