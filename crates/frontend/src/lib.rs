//! Constraint languages (regex, choice, EBNF, JSON Schema) lowered to the grammar representation.

pub mod choice;
pub mod ebnf;
pub mod gbnf;
pub mod json_schema;
mod notation;
pub mod regex;
mod translate;
