//! Lowers JSON Schema to the grammar representation.
//!
//! ```
//! use maskwright_frontend::json_schema::{Options, grammar};
//!
//! let schema = r#"{
//!     "type": "object",
//!     "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
//!     "required": ["name"],
//!     "additionalProperties": false
//! }"#;
//! let (grammar, report) = grammar(schema, &Options::default()).unwrap();
//! assert_eq!(grammar.rule(grammar.root()).name(), "root");
//! assert_eq!(report.entries()[0].pointer, "/type");
//! ```
//!
//! Every text that the grammar allows is a JSON document that satisfies the schema. Every document that satisfies the
//! schema can be written in at least one spelling. Keywords that the frontend cannot enforce are refused, each with its
//! JSON pointer:
//!
//! ```
//! # use maskwright_frontend::json_schema::{Options, grammar};
//! let error = grammar(r#"{"properties": {"a": {"pattern": "(x)\\1"}}}"#, &Options::default()).unwrap_err();
//! assert_eq!(error.problems()[0].pointer, "/properties/a/pattern");
//! ```
//!
//! # The stages
//!
//! ```text
//! text ─ json ─> Value ─ schemas ─> store of schemas ─ cases ─> conjunctions ─ emit ─> Grammar
//! ```
//!
//! | folder | what it is | uses |
//! |---|---|---|
//! | [`schemas`] | the store: every schema read, every reference resolved; frozen before lowering starts | – |
//! | [`cases`] | the algebra: sets of signed schemas, split into cases; overlap; validation of single values | `schemas` |
//! | [`emit`] | the emitter: cases to strings, numbers, arrays, objects and rules | `cases`, `schemas` |
//! | [`formats`] | the regular expressions of `format` | – |
//!
//! [`lower()`] runs the stages.
//!
//! # Decisions
//!
//! - **Order of keys**: `properties` in the schema's order, then `required` names that `properties` does not list, then
//!   other keys in any order. Merged schemas contribute their keys from left to right. Optional keys may be left out.
//!   [`KeyOrder::Any`] allows every order. No key is repeated.
//! - **Spelling**: keys that the schema names, and the values of `enum` and `const`, have one spelling. Strings escape
//!   only quotes, backslashes and control characters; numbers keep the digits of the schema, and `1.0` may also be
//!   written `1`. Everything else may be spelled in any way that JSON allows; [`Numbers`] limits the length of numbers.
//! - **Integers** are written in plain digits: not `1.0`, not `1e2`. Numbers with a bound other than zero are written
//!   without an exponent.
//! - **White space** is allowed between tokens as [`Whitespace`] says, and never around the whole value.
//! - **Dialects**: draft-04 to 2020-12, chosen by `$schema`; 2020-12 without one. Keywords newer than the draft
//!   constrain nothing. The old spellings of `definitions`, `dependencies` and tuple `items` are always understood. Up
//!   to draft-07 the keywords beside a `$ref` are ignored.
//! - **Annotations**, unknown keywords and unknown formats constrain nothing, as the standard says, and are listed in
//!   the [`Report`].
//! - **`$$ANY$$`** in place of a schema stands for any JSON value.

mod cases;
mod context;
mod decimal;
mod emit;
mod error;
mod formats;
mod json;
mod lower;
mod options;
pub(crate) mod path;
mod report;
mod same;
mod schemas;
mod to_regex;
mod types;

use maskwright_grammar::Grammar;

use json::Value;
use lower::{is_deeper, lower};

pub use error::{Problem, Reason, SchemaError};
pub use options::{Formats, KeyOrder, Limits, Numbers, Options, Resolver, Strictness, Whitespace};
pub use report::{Coverage, Entry, Note, Report};
pub use to_regex::to_regex;

/// Stands for any JSON value, in place of a schema's text.
const ANY: &str = "$$ANY$$";

/// The nesting limit for a schema's text: the recursion limit of `serde_json`.
const MAX_TEXT_DEPTH: usize = 128;

/// Lowers a schema, given as text.
pub fn grammar(schema_text: &str, options: &Options) -> Result<(Grammar, Report), SchemaError> {
    let limit = options.limits.schema_bytes;
    if schema_text.len() > limit {
        let message = format!("the schema has {} bytes, and the limit is {limit}", schema_text.len());
        return Err(whole(
            Reason::Limit,
            message,
            "make the schema smaller, or raise the limit `schema_bytes`",
        ));
    }
    if schema_text.trim() == ANY {
        return lower(&Value::Bool(true), options);
    }
    if let Some(schema) = Value::read(schema_text, options.limits.depth) {
        return lower(&schema, options);
    }
    let schema: serde_json::Value = serde_json::from_str(schema_text).map_err(|error| not_json(&error))?;
    grammar_of(&schema, options)
}

/// Lowers a schema that has been parsed already.
pub fn grammar_of(schema: &serde_json::Value, options: &Options) -> Result<(Grammar, Report), SchemaError> {
    if is_deeper(schema, options.limits.depth) {
        return Err(too_deep(options.limits.depth));
    }
    lower(&Value::of(schema), options)
}

fn not_json(error: &serde_json::Error) -> SchemaError {
    // serde_json reports this error only in its message; its category is that of any syntax error.
    if error.to_string().starts_with("recursion limit exceeded") {
        let message = format!(
            "line {}: the schema is nested more than {MAX_TEXT_DEPTH} levels deep, the limit of the JSON reader",
            error.line()
        );
        return whole(Reason::Limit, message, "move inner schemas into `$defs` and refer to them");
    }
    whole(Reason::NotJson, format!("this is not JSON: {error}"), "fix the text")
}

fn whole(reason: Reason, message: String, help: &str) -> SchemaError {
    let (pointer, keyword) = (String::new(), String::new());
    SchemaError::of(Problem { reason, pointer, keyword, message, help: help.into() })
}

fn too_deep(limit: usize) -> SchemaError {
    let message = format!("the schema is nested more than {limit} levels deep");
    let help = "move inner schemas into `$defs` and refer to them, or raise the limit `depth`";
    whole(Reason::Limit, message, help)
}
