//! Compares the engine with the oracle, with brute force, and with its own slow paths.

mod ahead;
mod ambiguous;
mod bounded;
mod distinct;
mod index;
mod laws;
mod support;
mod tokens;
mod word_sets;
mod words;
