//! Grammars in the language of Lark, as llguidance and the custom tools of `OpenAI` understand it.
//!
//! ```
//! use maskwright_frontend::{json_schema, lark};
//!
//! let source = r#"
//!     start: sum
//!     sum: sum "+" term | term        // left recursion is fine
//!     term: NUMBER | "(" sum ")"
//!     %import common (NUMBER, WS)
//!     %ignore WS
//! "#;
//! let (grammar, warnings) =
//!     lark::grammar(source, &lark::Options::default(), &json_schema::Options::default()).unwrap();
//! assert_eq!(grammar.rule(grammar.root()).name(), "text");
//! assert!(warnings.is_empty());
//! ```
//!
//! The language is described, with examples that the tests run, in `docs/lark.md`. The way of a grammar through this folder:
//!
//! | file        | from → to                                                                                   |
//! |-------------|---------------------------------------------------------------------------------------------|
//! | `lex`       | text → tokens                                                                               |
//! | `parse`     | tokens → [`ast::Source`], with spans; `parse/head` definitions, `atom` items, `value` JSON and parameters |
//! | `common`    | the terminals that can be imported                                                          |
//! | `params`    | the 64-bit parameter of parametric rules                                                    |
//! | `resolve`   | names → definitions: undefined, defined twice, unused, a rule where a terminal must stand     |
//! | `race`      | which terminals begin where a lazy one does                                                 |
//! | `named`     | grammars that are given beside the source, and called as `@name`                            |
//! | `lower`     | definitions → [`Grammar`]; `terminal` patterns, `ending` lazy matches, `substring` `%regex`, `schema` `%json` |
//! | `warn`      | what is right, but perhaps not meant                                                        |
//! | `empty`     | which part is to blame if no text matches                                                   |
//!
//! Errors and warnings are [`Diagnostic`]s, as in [`ebnf`](crate::ebnf).

pub mod ast;
mod common;
mod empty;
mod lex;
mod lower;
pub mod named;
pub mod params;
mod parse;
mod race;
mod resolve;
mod schema;
mod terminal;
mod warn;

use std::collections::BTreeMap;

use maskwright_grammar::{Diagnostic, Grammar};

pub use lower::lower;
pub use named::Named;
pub use parse::parse;

use crate::json_schema;

/// How a source is read.
///
/// ```
/// use maskwright_frontend::lark::Options;
///
/// let options = Options { start: "query".into(), ..Options::default() };
/// assert_eq!(Options::default().start, "start");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Options {
    /// The rule that a whole text must match; `start` unless told otherwise.
    pub start: String,
    /// The grammars that the source may call, as `@name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub grammars: BTreeMap<String, Named>,
    /// Whether ignored text may stand before everything else, where the source does not say so itself; it may unless told otherwise.
    pub ignored_first: bool,
    /// Whether `stop=x` leaves x in the text, as `suffix=x` does; it does not unless told otherwise. Its text is captured under the empty name then.
    pub stops_are_written: bool,
    /// How large a source may be.
    pub limits: Limits,
}

/// How large a source may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The length of the source in bytes; 16 MiB unless told otherwise.
    pub source_bytes: usize,
    /// The number of definitions and directives; 200,000 unless told otherwise.
    pub definitions: usize,
    /// How deep groups, complements, conditions and nested grammars may nest; 100 unless told otherwise. The reader calls itself for
    /// every level, so a much greater depth wants a larger stack as well.
    pub depth: usize,
    /// The greatest number in a repetition; 1,000,000 unless told otherwise.
    pub repetition: u32,
    /// How many parts may be built for the values of parameters and the arguments of templates; 500,000 unless told otherwise.
    pub expansion: usize,
    /// The number of chunks in `%regex`; 100,000 unless told otherwise.
    pub chunks: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            start: "start".into(),
            grammars: BTreeMap::new(),
            ignored_first: true,
            stops_are_written: false,
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes: 16 << 20,
            definitions: 200_000,
            depth: 100,
            repetition: 1_000_000,
            expansion: 500_000,
            chunks: 100_000,
        }
    }
}

/// Reads a source and lowers it: the grammar with its warnings, or the errors. Schemas in `%json` are read with their own options.
pub fn grammar(
    source: &str,
    options: &Options,
    schemas: &json_schema::Options,
) -> Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>> {
    let source = parse(source, options)?;
    lower(&source, options, schemas)
}

/// Where in a source the reason stands that no text matches it. `is_empty` is asked whether no text matches a grammar; it says `None` if it does not know.
///
/// `None` if there is no such place, or it cannot be found.
pub fn why_empty(
    source: &str,
    options: &Options,
    schemas: &json_schema::Options,
    is_empty: impl FnMut(&Grammar) -> Option<bool>,
) -> Option<Diagnostic> {
    empty::why_empty(source, options, schemas, is_empty)
}
