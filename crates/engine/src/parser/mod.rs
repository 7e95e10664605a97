//! The parser: threads that follow a text through a [`Program`](crate::program::Program), byte by byte and token by
//! token.
//!
//! A *thread* is one partial parse: a place in the program and a stack of frames to return to.
//!
//! ```text
//!   stack ← thread ← merge, words ← inside ← step ← waiting ← line ← sets ← walk ← mask
//! ```
//! [`stack`] holds the stacks of threads. [`step`] steps threads by a byte, [`inside`] by bytes that stay within a
//! leaf, and [`waiting`] steps the same threads by many bytes. [`walk`] reads the tokens of a trie, and [`mask`] builds
//! the mask of a thread from cached knowledge about leaves and a walk over the rest. [`merge`] unites threads in the
//! same place, and [`words`] drops threads that have no new word left to write. [`meter`] counts the steps of all this.

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
