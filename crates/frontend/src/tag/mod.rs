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
//! The notation is that of `XGrammar`, including the older `structures` and `triggers`; `docs/structural-tags.md`
//! describes it with examples that the tests run. The modules:
//!
//! | file | from → to |
//! |---|---|
//! | `read` | JSON → [`Format`], the typed tree of `format` |
//! | `lower` | tree → grammar, from the end to the start |
//! | `free` | free text and its markers → rules |
//! | `spelling` | the ways to write a marker: with special tokens and without |
//! | `write` | tree → JSON |
//! | `schema` | the schemas in it → grammars |
//! | `types` | the types that the values of a schema can have |
//! | `wire` | how the styles of documents write a value, as data |
//! | `parameters` | the constraints of a schema on such values |
//! | `xml` | documents that are written value by value |
//! | `literal` | documents that are written as the arguments of a call |
//! | `contains` | whether the end of a tag can occur inside its content |
//! | `number_end` | whether a reader can find the end of a number |
//!
//! # Free text
//!
//! Free text ends with the first marker that may follow it: a trigger, the end of the enclosing tag, or a following
//! `const_string`. Until then it contains none of them. Every trigger counts, even one with which no tag begins: such a
//! trigger cannot be written. Special tokens are allowed in free text unless they are excluded; see
//! [`Options::specials`].
//!
//! # Errors
//!
//! Errors are reported by JSON pointer, several at a time. Conflicting markers are refused instead of guessing what was
//! meant:
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

/// The options for reading a structural tag.
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
    /// The options for schemas in the tag.
    pub json_schema: json_schema::Options,
    /// The options for patterns in the tag: ECMA-262 by default.
    pub regex: regex::Options,
    /// The options for EBNF grammars in the tag.
    pub ebnf: ebnf::Options,
    /// The options for Lark grammars in the tag.
    pub lark: lark::Options,
    /// The names of the special tokens of the vocabulary. Where a marker contains such a name, the token may be written
    /// instead, and free text may contain special tokens except for those that end the text. If the list is empty,
    /// texts consist of characters only.
    pub specials: Vec<String>,
    /// The maximum number of bytes of JSON; 64 MiB by default.
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

/// Reads a structural tag: the whole document, or only a format.
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

/// Like [`parse`], for JSON that is already parsed.
pub fn parse_value(value: &serde_json::Value) -> Result<Format, TagError> {
    read::document(value)
}

/// Lowers a tree to a grammar.
pub fn lower(format: &Format, options: &Options) -> Result<Grammar, TagError> {
    lower::lower(format, options)
}

/// Reads a structural tag and lowers it to a grammar.
pub fn grammar(source: &str, options: &Options) -> Result<Grammar, TagError> {
    lower(&parse(source, options)?, options)
}
