//! Structural tags: texts that are free in some places and constrained in others, as a tree in JSON.
//!
//! ```
//! use maskwright_frontend::tag;
//!
//! let source = r#"{
//!     "type": "structural_tag",
//!     "format": {
//!         "type": "triggered_tags",
//!         "triggers": ["<function="],
//!         "tags": [{
//!             "begin": "<function=weather>",
//!             "content": {"type": "json_schema", "json_schema": {"type": "object"}},
//!             "end": "</function>"
//!         }]
//!     }
//! }"#;
//! let grammar = tag::grammar(source, &tag::Options::default()).unwrap();
//! assert_eq!(grammar.rule(grammar.root()).name(), "root");
//! ```
//!
//! The notation is that of `XGrammar`, the older `structures` and `triggers` included; `docs/structural-tags.md` describes it with examples that the tests
//! run. The way of a tag through this folder:
//!
//! | file | from → to |
//! |---|---|
//! | `read` | JSON → [`Format`], the typed tree of `format` |
//! | `lower` | tree → grammar, from the back to the front |
//! | `free` | free text and its markers → rules |
//! | `spelling` | the ways to write a marker: with special tokens and without |
//! | `write` | tree → JSON |
//! | `schema` | the schemas in it → grammars |
//! | `types` | the types that the values of a schema can have |
//! | `wire` | how the styles of documents write a value, as data |
//! | `parameters` | what a schema says about such values |
//! | `xml` | documents that are written value by value |
//! | `contains` | can the end of a tag occur inside its content? |
//! | `number_end` | can one tell where a number ends? |
//!
//! # What free text is
//!
//! Free text ends with the first marker that may follow it: a trigger, the end of the tag it stands in, a `const_string` behind it. As long as it
//! lasts, it contains none of them. Every trigger counts, also one that no tag begins with: it cannot be written.
//! Special tokens are free in free text unless they are excluded; see [`Options::specials`].
//!
//! # Errors
//!
//! What is wrong is told by JSON pointers, several at a time. Markers that get in each other's way are refused and not
//! guessed about:
//!
//! ```
//! # use maskwright_frontend::tag;
//! let source = r#"{"type": "triggered_tags", "triggers": ["<a", "<ab"], "tags": [
//!     {"begin": "<ab>", "content": {"type": "any_text"}, "end": "</ab>"}
//! ]}"#;
//! let error = tag::grammar(source, &tag::Options::default()).unwrap_err();
//! assert_eq!(
//!     error.problems()[0].to_string(),
//!     "/triggers/1: \"<ab\" begins with \"<a\" (/triggers/0), which ends the free text before, \
//!      so it could never be completed; keep only \"<a\": a trigger that is a prefix of others serves all of them"
//! );
//! ```

mod contains;
mod error;
mod format;
mod free;
mod literal;
mod lower;
mod number_end;
mod parameters;
mod read;
mod schema;
mod spelling;
mod text;
mod types;
mod wire;
mod write;
mod xml;

use maskwright_grammar::Grammar;

use crate::{ebnf, json_schema, lark, regex};

pub use error::{Problem, Reason, TagError};
pub use format::{
    AnyText, Arm, Dispatch, Format, Json, Kind, Marker, Role, Separated, Style, Syntax, Tag, Then,
};
pub use number_end::is_of_numbers;
pub use parameters::{Inside, Others, Parameter, inside, others, parameters};
pub use types::Types;
pub use wire::{Wire, wire};

/// How a structural tag is read.
///
/// ```
/// use maskwright_frontend::tag::Options;
///
/// let options = Options { specials: vec!["<tool>".into()], ..Options::default() };
/// assert!(Options::default().specials.is_empty()); // then texts are made of characters alone
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// For the schemas in it.
    pub json_schema: json_schema::Options,
    /// For the patterns in it: ECMA-262 unless told otherwise.
    pub regex: regex::Options,
    /// For the grammars in it.
    pub ebnf: ebnf::Options,
    /// For the grammars in it that are written in Lark.
    pub lark: lark::Options,
    /// The names of the special tokens of the vocabulary. Where a marker contains such a name, the token may be written in its place; and
    /// free text may contain special tokens, but for those that end the text. Empty, and texts are made of characters alone.
    pub specials: Vec<String>,
    /// How many bytes of JSON are read; 64 MiB unless told otherwise.
    pub source_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            json_schema: json_schema::Options::default(),
            regex: regex::Options::default().with_dialect(regex::Dialect::Ecma),
            ebnf: ebnf::Options::default(),
            lark: lark::Options::default(),
            specials: Vec::new(),
            source_bytes: 64 << 20,
        }
    }
}

/// Reads a structural tag: the whole document, or a format alone.
pub fn parse(source: &str, options: &Options) -> Result<Format, TagError> {
    if source.len() > options.source_bytes {
        let message =
            format!("the tag has {} bytes, more than the limit of {}", source.len(), options.source_bytes);
        return Err(TagError::of(
            Reason::Limit,
            "",
            message,
            "make it smaller, or raise the limit `source_bytes`",
        ));
    }
    let value = serde_json::from_str(source).map_err(|error| {
        TagError::of(Reason::NotJson, "", format!("this is not JSON: {error}"), "fix the text")
    })?;
    parse_value(&value)
}

/// The same for JSON that has been read already.
pub fn parse_value(value: &serde_json::Value) -> Result<Format, TagError> {
    read::document(value)
}

/// Makes a grammar of a tree.
pub fn lower(format: &Format, options: &Options) -> Result<Grammar, TagError> {
    lower::lower(format, options)
}

/// Reads a structural tag and makes a grammar of it.
pub fn grammar(source: &str, options: &Options) -> Result<Grammar, TagError> {
    lower(&parse(source, options)?, options)
}
