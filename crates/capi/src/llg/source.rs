//! Converts a type and a text to a constraint.

use maskwright::Constraint;
use serde_json::Value;

use crate::status::{Failure, Status};

/// Reads `"regex"`, `"json"`, `"json_schema"`, `"json_object"`, `"lark"`, and `"llguidance"` or `"guidance"`: a Lark
/// grammar, or a list of grammars in JSON.
pub(super) fn read_source(kind: &str, data: &str) -> Result<Constraint, Failure> {
    match kind {
        "regex" => Ok(Constraint::regex(data)),
        "json" | "json_schema" => Ok(Constraint::json_schema(data)),
        "json_object" => Ok(Constraint::json_schema(r#"{"type":"object"}"#)),
        "lark" => Ok(Constraint::lark(data)),
        "llguidance" | "guidance" if data.trim_start().starts_with('{') => read_list(data),
        "llguidance" | "guidance" => Ok(Constraint::lark(data)),
        _ => Err(refused(format!("there is no constraint type {kind:?}"))),
    }
}

/// Reads `{"grammars": [{"json_schema": …}]}` or `{"grammars": [{"lark_grammar": "…"}]}`.
fn read_list(data: &str) -> Result<Constraint, Failure> {
    let list: Value = serde_json::from_str(data).map_err(|error| refused(format!("no JSON: {error}")))?;
    let known = |value: &Value, keys: &[&str]| {
        let mut given = value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        match given.find(|(key, _)| !keys.contains(&key.as_str())) {
            Some((key, _)) => Err(refused(format!("{key:?} in a list of grammars is not supported"))),
            None => Ok(()),
        }
    };
    known(&list, &["grammars"])?;
    let grammar = match list["grammars"].as_array().map(Vec::as_slice) {
        Some([grammar]) => grammar,
        Some([_, _, ..]) => {
            return Err(refused(
                "a list of several grammars is not supported; nest them with %lark and %json",
            ));
        }
        _ => return Err(refused("there is no grammar in the list")),
    };
    known(grammar, &["name", "json_schema", "lark_grammar"])?;
    match (&grammar["json_schema"], &grammar["lark_grammar"]) {
        (Value::Null, Value::String(lark)) => Ok(Constraint::lark(lark)),
        (schema, Value::Null) if !schema.is_null() => Ok(Constraint::json_schema(schema.to_string())),
        _ => Err(refused("a grammar in a list has either a json_schema or a lark_grammar")),
    }
}

fn refused(text: impl core::fmt::Display) -> Failure {
    Failure::new(Status::Constraint, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_languages() {
        let read = |kind, data| read_source(kind, data).unwrap();
        assert_eq!(read("regex", "a"), Constraint::regex("a"));
        assert_eq!(read("json", "{}"), Constraint::json_schema("{}"));
        assert_eq!(read("json_object", "anything"), Constraint::json_schema(r#"{"type":"object"}"#));
        assert_eq!(read("guidance", "start: \"a\""), Constraint::lark("start: \"a\""));
        let list =
            r#" {"grammars": [{"name": "a", "json_schema": {"b": 1.50, "a": 2}, "lark_grammar": null}]}"#;
        assert_eq!(read("llguidance", list), Constraint::json_schema(r#"{"b":1.50,"a":2}"#));
        let list = r#"{"grammars": [{"lark_grammar": "start: \"a\""}], "max_tokens": null}"#;
        assert_eq!(read("llguidance", list), Constraint::lark("start: \"a\""));
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let message = |kind, data| read_source(kind, data).unwrap_err().to_string();
        assert_eq!(message("gbnf", ""), r#"there is no constraint type "gbnf""#);
        assert!(message("llguidance", "{").starts_with("no JSON: "));
        assert_eq!(message("llguidance", "{}"), "there is no grammar in the list");
        assert!(message("llguidance", r#"{"grammars": [{}, {}]}"#).starts_with("a list of several"));
        assert!(message("llguidance", r#"{"grammars": [{}]}"#).contains("either a json_schema or"));
        assert!(
            message("llguidance", r#"{"grammars": [{"greedy": 1}]}"#).starts_with(r#""greedy" in a list"#)
        );
        assert!(
            message("llguidance", r#"{"grammars": [], "max_tokens": 5}"#).starts_with(r#""max_tokens" in"#)
        );
    }
}
