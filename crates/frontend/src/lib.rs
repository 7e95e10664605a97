//! Constraint languages (regex, choice, EBNF, JSON Schema) lowered to the grammar representation.

pub mod choice;
pub mod ebnf;
pub mod json_schema;
pub mod regex;
mod translate;
