//! The server over real connections, with a model that says what it is told to say, and once with a real one.

#![allow(missing_docs, reason = "tests are read by their names")]

mod answers;
mod client;
mod connections;
mod constraints;
mod decoding;
mod dialogue;
mod docs;
mod fake;
mod logs;
mod pages;
mod refusals;
mod smollm2;
mod tools;
mod weights;
