//! From conversations and text to the tokens that a model reads.

pub mod chat;
mod prompt;

pub use prompt::{encode_prompt, shielded};
