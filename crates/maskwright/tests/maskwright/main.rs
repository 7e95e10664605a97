//! What people depend on, on made-up and on real vocabularies. One binary, because linking fifteen took minutes.

mod ablation;
mod assets;
mod backends;
mod batches;
mod budgets;
mod categories;
mod dead_ends;
mod different;
mod documents;
mod exact;
mod exports;
mod flight;
mod forks;
mod grammars;
mod index;
mod json_schema_suite;
mod large;
mod readme;
mod real_vocabulary;
mod remarks;
mod service;
mod tag_support;
mod tags;
mod tool_calls;
mod walks;
mod warm;
