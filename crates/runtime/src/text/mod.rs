//! Between text and tokens: prompts in, pieces of answers out.

pub mod chat;
mod pieces;
mod prompt;

pub use pieces::{Pieces, StopError};
pub use prompt::{encode_prompt, shielded};
