//! Constraint languages (regex, choice, EBNF, GBNF, Lark, JSON Schema, structural tags), lowered to the grammar
//! representation.

pub mod choice;
mod culprit;
mod dialect;
pub mod ebnf;
pub mod gbnf;
pub mod json_schema;
pub mod lark;
mod notation;
mod problems;
pub mod regex;
pub mod regular;
mod stopped;
pub mod tag;
mod translate;

pub use dialect::Dialect;
pub use problems::Problems;
