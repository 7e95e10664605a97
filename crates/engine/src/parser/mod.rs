//! The parser: threads that follow a text through a [`Program`](crate::program::Program), byte by byte and token by token.
//!
//! ```text
//!   stack ← thread ← merge, words ← inside ← step ← waiting ← line ← sets ← walk ← mask
//! ```
//! [`stack`] holds the stacks that threads stand on, [`step`] takes a byte, [`inside`] the bytes that stay within a leaf, [`waiting`] many bytes on the same threads, [`walk`] takes the tokens of a trie, and [`mask`] puts the mask of
//! a thread together from what is known of leaves and a walk over the rest. [`merge`] makes one of threads that stand in the same place, and [`words`] drops those that have no word left to write. [`meter`] counts the steps that this takes.

pub(crate) mod frames;
pub(crate) mod inside;
pub(crate) mod line;
pub(crate) mod log;
pub(crate) mod mask;
mod merge;
pub(crate) mod meter;
mod returned;
pub(crate) mod row;
pub(crate) mod sets;
pub(crate) mod stack;
pub(crate) mod step;
pub(crate) mod thread;
pub(crate) mod waiting;
pub(crate) mod walk;
pub(crate) mod words;
