//! Checks whether a reader can find the end of a number. All other documents mark their own end.

use super::contains::may_contain;
use super::format::{Json, Style};
use super::parameters::restricted;
use super::types::{Types, types_of};
use crate::json_schema;

impl Json {
    /// Checks whether a number of the schema, followed by this text, may contain the text too early, as `10` followed
    /// by `0` does. All other documents mark their own end.
    pub fn may_go_on_with(&self, text: &str) -> bool {
        let is_number = !types_of(&self.schema).and(Types::NUMBER).is_empty();
        if self.style != Style::Json || !is_number || !is_of_numbers(text) {
            return false;
        }
        let numbers = restricted(&self.schema, Types::NUMBER);
        match json_schema::grammar_of(&numbers, &json_schema::Options::default()) {
            Ok((grammar, _)) => may_contain(&grammar, text),
            // If no number satisfies the schema, the answer is no; after any other error it is yes.
            Err(error) => {
                error.problems().iter().any(|problem| problem.reason != json_schema::Reason::Unsatisfiable)
            }
        }
    }
}

/// Checks whether a text begins with a character that occurs in numbers.
pub fn is_of_numbers(text: &str) -> bool {
    text.starts_with(|c: char| "0123456789+-.eE".contains(c))
}
