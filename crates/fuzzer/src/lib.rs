//! A fuzzer that searches for disagreements: between the engine and validators of JSON Schema, and between masks and
//! their definition.
//!
//! A *round* only depends on a seed, so it can be repeated. There are seven kinds:
//!
//! | kind | what is drawn | what is checked |
//! |---|---|---|
//! | `pairs` | a schema, options, and documents: made for the schema, at random, by walking under the mask, and by small changes to others | the engine and both validators agree, except for what [`judge`] lists |
//! | `walks` | walks under the mask of a schema, in several styles, some with a budget | no walk is stuck, budgets are kept, and finished texts are valid |
//! | `orders` | documents as for `pairs` | the schema's order of keys accepts a document in some order of its keys if and only if any order does |
//! | `masks` | walks under a schema | every mask equals the result of trying every token |
//! | `joints` | walks under a schema with several ways to read the text | tokens of several bytes that contain brackets, quotes, commas or colons are in a mask if and only if they are accepted |
//! | `grammars` | one tree, written as regular expression, EBNF, GBNF and Lark | the same, the oracle agrees, and all notations have the same meaning |
//! | `tags` | a structural tag | the same as for `masks` |
//!
//! The program runs for any time (`make fuzz-schema`); the test of this crate runs a fixed number of rounds. Finds are
//! made smaller ([`shrink`]) before they are shown. Confirmed finds become cases in `testdata/json_schema`.

pub mod document;
pub mod find;
pub mod judge;
pub mod notation;
pub mod run;
pub mod sample;
pub mod satisfy;
pub mod schema;
mod second;
pub mod settings;
pub mod shrink;
pub mod walk;
