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
//! The language is described in `docs/lark.md`, with examples that the tests run. The modules, in the order in which a
//! grammar passes through them:
//!
//! | file | from → to |
//! |---|---|
//! | `lex` | text → tokens |
//! | `parse` | tokens → [`ast::Source`], with spans; `parse/head` definitions, `atom` items, `value` JSON and parameters |
//! | `common` | the terminals that can be imported |
//! | `params` | the 64-bit parameter of parametric rules |
//! | `resolve` | names → definitions: undefined, defined twice, unused, a rule where a terminal is required |
//! | `race` | which terminals begin where a lazy one does |
//! | `named` | grammars that are given beside the source, and called as `@name` |
//! | `lower` | definitions → [`Grammar`]; `terminal` patterns, `ending` lazy matches, `substring` `%regex`, `schema` `%json` |
//! | `warn` | grammars that are valid but probably not intended |
//! | `empty` | which part is the reason if no text matches |
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

/// The options for reading a source.
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
    /// The rule that a whole text must match; `start` by default.
    pub start: String,
    /// The grammars that the source may call as `@name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub grammars: BTreeMap<String, Named>,
    /// Whether ignored text is allowed before everything else, where the source does not decide this itself; true by
    /// default.
    pub ignored_first: bool,
    /// Whether `stop=x` keeps x in the text, as `suffix=x` does; false by default. If true, the text of x is captured
    /// under the empty name.
    pub stops_are_written: bool,
    /// The limits on the size of a source.
    pub limits: Limits,
}

/// The limits on the size of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The length of the source in bytes; 16 MiB by default.
    pub source_bytes: usize,
    /// The number of definitions and directives; 200,000 by default.
    pub definitions: usize,
    /// The nesting depth of groups, complements, conditions and nested grammars; 100 by default. The parser recurses
    /// once per level, so a much greater depth needs a larger stack.
    pub depth: usize,
    /// The greatest number in a repetition; 1,000,000 by default.
    pub repetition: u32,
    /// The number of parts that may be built for the values of parameters and the arguments of templates; 500,000 by
    /// default.
    pub expansion: usize,
    /// The number of chunks in `%regex`; 100,000 by default.
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

/// Reads a source and lowers it. Returns the grammar with its warnings, or the errors. `schemas` are the options for
/// reading schemas in `%json`.
pub fn grammar(
    source: &str,
    options: &Options,
    schemas: &json_schema::Options,
) -> Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>> {
    let source = parse(source, options)?;
    lower(&source, options, schemas)
}

/// Finds the part of a source because of which no text matches it. `is_empty` decides whether no text matches a
/// grammar, and returns `None` if it does not know.
///
/// Returns `None` if there is no such part, or it cannot be found.
pub fn why_empty(
    source: &str,
    options: &Options,
    schemas: &json_schema::Options,
    is_empty: impl FnMut(&Grammar) -> Option<bool>,
) -> Option<Diagnostic> {
    empty::why_empty(source, options, schemas, is_empty)
}
