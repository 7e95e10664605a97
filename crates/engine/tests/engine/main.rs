//! The engine, judged by the oracle, by brute force and by itself done the slow way.

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
