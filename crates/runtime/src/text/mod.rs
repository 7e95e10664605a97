//! Converts conversations and text to the tokens that a model reads.

pub mod chat;
mod prompt;

pub use prompt::{MARK, encode_prompt, shielded};
