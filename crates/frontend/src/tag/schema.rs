//! The schemas in a tag: each becomes a grammar of its own.

use maskwright_grammar::Grammar;
use serde_json::Value;

use super::error::{Reason, TagError};
use super::format::Json;
use crate::json_schema::{self, KeyOrder, Options, Problem, SchemaError, Whitespace};

/// The grammar of the documents that satisfy a schema. It belongs to `json`, and stands at a place below the schema of the whole.
pub(super) fn grammar(
    schema: &Value,
    json: &Json,
    below: &str,
    options: &Options,
) -> Result<Grammar, TagError> {
    read(schema, json, options).map_err(|error| told(&error, json, below))
}

/// The same; `None` if nothing satisfies the schema.
pub(super) fn possible_grammar(
    schema: &Value,
    json: &Json,
    below: &str,
    options: &Options,
) -> Result<Option<Grammar>, TagError> {
    let is_empty = |problem: &Problem| problem.reason == json_schema::Reason::Unsatisfiable;
    match read(schema, json, options) {
        Ok(grammar) => Ok(Some(grammar)),
        Err(error) if error.problems().iter().all(is_empty) => Ok(None),
        Err(error) => Err(told(&error, json, below)),
    }
}

fn read(schema: &Value, json: &Json, options: &Options) -> Result<Grammar, SchemaError> {
    let mut options = options.clone();
    if json.any_order {
        options.key_order = KeyOrder::Any;
    }
    if let Some(max_run) = json.max_whitespace {
        options.whitespace = Whitespace::Flexible { max_run };
    }
    json_schema::grammar_of(schema, &options).map(|(grammar, _report)| grammar)
}

/// The problems of a schema that stands somewhere in a tag.
fn told(error: &SchemaError, json: &Json, below: &str) -> TagError {
    let mut problems = TagError::default();
    for problem in error.problems() {
        let at = format!("{}{below}{}", json.at, problem.pointer);
        problems.push(Reason::Content, &at, problem.message.clone(), problem.help.clone());
    }
    problems
}
