//! Whether one can tell where a number ends. All other documents tell by themselves.

use super::contains::may_contain;
use super::format::{Json, Style};
use super::parameters::restricted;
use super::types::{Types, types_of};
use crate::json_schema;

impl Json {
    /// Whether a number of the schema with this text behind it contains the text too early, as `10` does with `0` behind it. All other
    /// documents tell by themselves where they end.
    pub fn may_go_on_with(&self, text: &str) -> bool {
        let is_number = !types_of(&self.schema).and(Types::NUMBER).is_empty();
        if self.style != Style::Json || !is_number || !is_of_numbers(text) {
            return false;
        }
        let numbers = restricted(&self.schema, Types::NUMBER);
        match json_schema::grammar_of(&numbers, &json_schema::Options::default()) {
            Ok((grammar, _)) => may_contain(&grammar, text),
            // No number satisfies the schema, or nothing can be said about it.
            Err(error) => {
                error.problems().iter().any(|problem| problem.reason != json_schema::Reason::Unsatisfiable)
            }
        }
    }
}

/// Whether a text begins with a character that numbers are made of.
pub fn is_of_numbers(text: &str) -> bool {
    text.starts_with(|c: char| "0123456789+-.eE".contains(c))
}
