//! Attributes in brackets between the name of a rule and its `::=`, in the notation of `XGrammar`.
//!
//! ```text
//! value[max_tokens=32, max_chars=128, capture="answer", lazy, temperature=0.7] ::= [a-z]+
//! ```

use maskwright_grammar::{Span, Temperature};

use super::ast::Attributes;
use crate::notation::nearest;

const NAMES: [&str; 5] = ["capture", "lazy", "max_chars", "max_tokens", "temperature"];

/// The value after a `=`.
pub(super) enum Value {
    Text(Box<str>),
    Word(String),
}

/// Adds an attribute to the others, or returns what is wrong with it and how to fix it.
pub(super) fn set(
    name: &str,
    value: Option<&Value>,
    span: Span,
    limit: u32,
    found: &mut Attributes,
) -> Result<(), (String, String)> {
    let number = |least: u32| match value {
        Some(Value::Word(word)) => word.parse().ok().filter(|count| *count >= least),
        _ => None,
    };
    let wants = |what: &str, example: &str| (format!("`{name}` wants {what}"), format!("write `{example}`"));
    match (name, value) {
        ("lazy", None) => found.lazy = Some(span),
        ("lazy", _) => return Err(wants("no value", "lazy")),
        ("capture", None) => found.capture = Some(Box::default()),
        ("capture", Some(Value::Text(text))) if !text.is_empty() => found.capture = Some(text.clone()),
        ("capture", _) => return Err(wants("a name between quotes, or nothing", "capture=\"answer\"")),
        ("max_tokens", _) => {
            found.max_tokens =
                Some(number(1).ok_or_else(|| wants("a number of tokens, at least 1", "max_tokens=32"))?);
        }
        ("max_chars", _) => {
            let count = number(0).ok_or_else(|| wants("a number of characters", "max_chars=128"))?;
            if count > limit {
                let help = "leave it out, or raise the limit `repetition`";
                return Err((format!("`max_chars` is more than the limit of {limit}"), help.to_owned()));
            }
            found.max_chars = Some((count, span));
        }
        ("temperature", Some(Value::Word(word))) => {
            let value = word.parse().ok().and_then(Temperature::new);
            let value = value.ok_or_else(|| wants("a number that is not negative", "temperature=0.7"))?;
            found.temperature = Some((value, span));
        }
        ("temperature", _) => return Err(wants("a number that is not negative", "temperature=0.7")),
        _ => {
            let near = nearest(name, NAMES.into_iter());
            let help = near.map_or_else(
                || format!("there are {}", NAMES.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err((format!("there is no attribute `{name}`"), help));
        }
    }
    Ok(())
}
