//! From the events of the scheduler to what clients are told.
//!
//! | module | what it does |
//! |---|---|
//! | [`conversation`] | what the chat and the responses API have in common |
//! | [`run`] | puts a request together, and waits for its events |
//! | [`launch`] | what the scheduler is asked for: prompts healed, the constraint compiled and held to a budget |
//! | [`notes`] | how an answer was written: its mass, its tries, its draft |
//! | [`gather`] | puts the events of one answer together: text, reasoning, calls, tokens |
//! | [`plan`] | what an answer must look like, and how it is taken apart |
//! | [`items`] | the items of a response and their events |
//! | [`sse`] | the same as a stream of server-sent events |
//! | [`judged`] | what a weighted grammar thinks of finished answers |
//! | [`logprobs`] | what the model thought of its tokens |

pub(crate) mod conversation;
pub(crate) mod gather;
pub(crate) mod items;
pub(crate) mod judged;
pub(crate) mod launch;
pub(crate) mod logprobs;
pub(crate) mod notes;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod sse;

pub(crate) use conversation::Conversation;
pub(crate) use gather::{Gathered, Part};
pub(crate) use launch::{Compile, Finishing};
pub(crate) use notes::Notes;
pub(crate) use run::{Answers, Order, noted};
