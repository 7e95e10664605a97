//! A language model that feeds many sequences in one step.
//!
//! A model holds *sequences*: texts that it has read so far, each with its keys and values (its KV cache). One
//! [`step`](Model::step) feeds any number of tokens to any number of sequences – for example a whole prompt to one, and
//! a single token to fifteen others – and returns rows of raw logits, one number for each token of the vocabulary:
//!
//! ```text
//!   feeds                         what the matrices see            logits
//!   A: [12 7 99 3]  Last  ─┐      12 7 99 3 5 8   (six rows,  ┌─▶  row 0: after 3, in A
//!   B: [5]          Last  ─┼──▶   read once for all of them) ─┼─▶  row 1: after 5, in B
//!   C: [8]          None  ─┘                                  └    (C wants none)
//! ```
//!
//! This is why batching pays off: with one token in each step, nearly all of the time is spent on reading the weights
//! from memory, and a batch reads them once for all sequences. Each row is computed as if it were alone: with the model
//! of [`llama`], **a batch changes no bit of the result**.
//!
//! A sequence can be [forked](Model::fork) at any length, which shares what was computed, and
//! [truncated](Model::truncate), which forgets its end. [`llama`] is the built-in model; with the feature `llama-cpp`
//! there is also one that uses llama.cpp, in `llama_cpp`. [`ByText`] is a fake for tests.

mod blocks;
mod by_text;
pub mod config;
mod error;
mod formats;
mod gguf;
mod kernel;
mod kv;
pub mod llama;
#[cfg(feature = "llama-cpp")]
pub mod llama_cpp;
mod safetensors;
mod weights;

use std::{collections::HashSet, fmt};

use maskwright_vocab::TokenId;

pub use by_text::{ByText, chance};
pub use config::Config;
pub use error::LoadError;
pub use llama::{Llama, LoadOptions};

/// The id of a sequence. Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub u64);

/// Tokens for one sequence in a step.
#[derive(Debug, Clone, Copy)]
pub struct Feed<'t> {
    /// The sequence.
    pub sequence: SequenceId,
    /// The tokens to append; at least one.
    pub tokens: &'t [TokenId],
    /// The rows of logits that are needed.
    pub wanted: Wanted,
}

/// Which of the fed tokens get a row of logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// None, as for the first part of a long prompt.
    None,
    /// The last one, for choosing the next token.
    Last,
    /// All of them, in order.
    All,
}

impl Wanted {
    /// Returns the number of rows for this number of tokens.
    pub fn rows(self, tokens: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Last => 1,
            Self::All => tokens,
        }
    }
}

/// Rows of raw logits, in the order in which they were requested. The memory is reused from step to step.
#[derive(Debug, Clone, Default)]
pub struct Logits {
    width: usize,
    values: Vec<f32>,
}

impl Logits {
    /// Creates an empty list of rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns a row, if it exists.
    pub fn row(&self, index: usize) -> Option<&[f32]> {
        self.values.chunks_exact(self.width.max(1)).nth(index)
    }

    /// Returns a mutable row, if it exists.
    pub fn row_mut(&mut self, index: usize) -> Option<&mut [f32]> {
        self.values.chunks_exact_mut(self.width.max(1)).nth(index)
    }

    /// Returns all rows, mutably.
    pub fn rows_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [f32]> {
        self.values.chunks_exact_mut(self.width.max(1))
    }

    /// Makes room for rows of zeros, and returns them to be filled by a model.
    pub fn reset(&mut self, rows: usize, width: usize) -> &mut [f32] {
        self.width = width;
        self.values.clear();
        self.values.resize(rows * width, 0.0);
        &mut self.values
    }
}

/// A language model; see the [module](self).
///
/// A call that fails changes nothing.
pub trait Model: fmt::Debug + Send {
    /// Returns the number of logits in a row. It is at least the number of tokens in the vocabulary.
    fn width(&self) -> usize;

    /// Returns the maximum number of tokens of a sequence.
    fn context(&self) -> usize;

    /// Creates a new, empty sequence.
    fn open(&mut self) -> SequenceId;

    /// Creates a sequence with the first `length` tokens of another one, which must have that many.
    fn fork(&mut self, of: SequenceId, length: usize) -> Result<SequenceId, ModelError>;

    /// Forgets the tokens of a sequence from `length` on.
    fn truncate(&mut self, sequence: SequenceId, length: usize) -> Result<(), ModelError>;

    /// Removes a sequence. An unknown sequence is not an error.
    fn close(&mut self, sequence: SequenceId);

    /// Returns the number of tokens of a sequence.
    fn length(&self, sequence: SequenceId) -> Result<usize, ModelError>;

    /// Feeds tokens to sequences, each at most once in a step, and writes the wanted logits.
    fn step(&mut self, feeds: &[Feed<'_>], logits: &mut Logits) -> Result<(), ModelError>;

    /// Returns the size of the keys and values of all sequences in bytes, counting shared parts once.
    fn cache_bytes(&self) -> usize;
}

/// Checks the feeds of a step, for any model: `length` returns the number of tokens of a sequence, and `tokens` is the
/// number of tokens that the model has.
fn check_feeds(
    feeds: &[Feed<'_>],
    context: usize,
    tokens: usize,
    length: impl Fn(SequenceId) -> Result<usize, ModelError>,
) -> Result<(), ModelError> {
    let mut seen = HashSet::new();
    for feed in feeds {
        let length = length(feed.sequence)? + feed.tokens.len();
        if !seen.insert(feed.sequence) {
            return Err(ModelError::Twice(feed.sequence));
        }
        if feed.tokens.is_empty() {
            return Err(ModelError::NoTokens(feed.sequence));
        }
        if length > context {
            return Err(ModelError::Full { length, context });
        }
        if let Some(&token) = feed.tokens.iter().find(|token| token.index() >= tokens) {
            return Err(ModelError::NoToken { token, tokens });
        }
    }
    Ok(())
}

/// The reason why a step was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelError {
    /// The sequence was never opened, or was closed.
    NoSequence(SequenceId),
    /// A sequence occurs twice in a step.
    Twice(SequenceId),
    /// A sequence was fed no tokens.
    NoTokens(SequenceId),
    /// The tokens do not fit into the model's context.
    Full {
        /// The number of tokens that the sequence would have.
        length: usize,
        /// The maximum number of tokens.
        context: usize,
    },
    /// The model has no such token.
    NoToken {
        /// The token.
        token: TokenId,
        /// The number of tokens that the model has.
        tokens: usize,
    },
    /// A fork or a truncation beyond the end of a sequence.
    TooShort {
        /// The requested number of tokens.
        asked: usize,
        /// The actual number of tokens.
        length: usize,
    },
    /// The maximum number of sequences already hold tokens.
    NoSlot {
        /// The maximum number of sequences.
        sequences: usize,
    },
    /// The cache that all sequences share has too few free places.
    NoRoom {
        /// The number of tokens that were fed.
        asked: usize,
        /// The number of free places.
        free: usize,
        /// The number of all places.
        tokens: usize,
    },
    /// The library that computes the model failed, with this message.
    Failed(String),
}

impl ModelError {
    /// Whether the step would work if other sequences were closed.
    pub fn is_shortage(&self) -> bool {
        matches!(self, Self::NoSlot { .. } | Self::NoRoom { .. })
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSequence(id) => write!(f, "sequence {} is not open", id.0),
            Self::Twice(id) => write!(f, "sequence {} is fed twice in one step; join its tokens", id.0),
            Self::NoTokens(id) => write!(f, "sequence {} is fed no tokens; leave it out of the step", id.0),
            Self::Full { length, context } => write!(
                f,
                "the text has {length} tokens, but the model's context is {context}; shorten the prompt or ask for fewer tokens"
            ),
            Self::NoToken { token, tokens } => {
                write!(
                    f,
                    "token {} is not one of the model's {tokens}; is the tokenizer of another model?",
                    token.0
                )
            }
            Self::TooShort { asked, length } => {
                write!(f, "{asked} tokens were asked for, but the sequence has {length}")
            }
            Self::NoSlot { sequences } => write!(
                f,
                "the model has slots for {sequences} texts, and all of them are taken; try again later, or load it with more"
            ),
            Self::NoRoom { asked, free, tokens } => write!(
                f,
                "{asked} tokens were to be read, but {free} of the {tokens} places that all texts share are free; try again later, or load the model with more"
            ),
            Self::Failed(reason) => write!(f, "the model could not be computed: {reason}"),
        }
    }
}

impl std::error::Error for ModelError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_by_the_width() {
        let mut logits = Logits::new();
        assert_eq!((logits.len(), logits.row(0)), (0, None));
        logits.reset(2, 3).copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!((logits.len(), logits.row(1)), (2, Some(&[4.0, 5.0, 6.0][..])));
        assert_eq!(logits.row(2), None);
        logits.reset(0, 3);
        assert!(logits.is_empty());
    }
}
