//! A fuzzer that looks for disagreements: between what the engine lets a model write and what validators of JSON Schema call valid, and between masks
//! and the plain meaning of a mask.
//!
//! A *round* is made from a seed and nothing else, so a find can be seen again. There are seven kinds:
//!
//! | kind | what is drawn | what must hold |
//! |---|---|---|
//! | `pairs` | a schema, options, and documents: made for the schema, at random, by walking under the mask, and by changing others a little | the engine and both validators agree, but for what [`judge`] lists |
//! | `walks` | walks under the mask of a schema, in several styles, some within a budget | no walk is stuck, budgets are kept, and what is finished is valid |
//! | `orders` | documents as for `pairs` | the schema's order of keys takes a document in some order of its keys if and only if any order does |
//! | `masks` | walks under a schema | every mask is what trying every token gives |
//! | `joints` | walks under a schema that has several readings of what is written | the tokens of several bytes that hold brackets, quotes, commas or colons are in a mask if and only if they are accepted |
//! | `grammars` | one tree, written as regular expression, EBNF, GBNF and Lark | the same, the oracle agrees, and all notations mean the same |
//! | `tags` | a structural tag | as for `masks` |
//!
//! The program runs for as long as one likes (`make fuzz-schema`), the test of this crate runs a fixed number of rounds. What is found is made small
//! ([`shrink`]) before it is shown. Confirmed finds become cases in `testdata/json_schema`.

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
