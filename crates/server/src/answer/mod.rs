//! Converts the events of the scheduler to responses for clients.
//!
//! | module | what it does |
//! |---|---|
//! | [`conversation`] | the common part of the chat and the responses API |
//! | [`run`] | starts a request, and waits for its events |
//! | [`launch`] | creates the requests for the scheduler: heals prompts, compiles the constraint, sets a budget |
//! | [`notes`] | how an answer was written: its mass, its tries, its draft |
//! | [`gather`] | collects one answer from its events: text, reasoning, calls, tokens |
//! | [`plan`] | how an answer is constrained, and how it is parsed |
//! | [`items`] | the items of a response and their events |
//! | [`sse`] | sends answers as a stream of server-sent events |
//! | [`judged`] | evaluates finished answers with a weighted grammar |
//! | [`logprobs`] | log-probabilities of tokens |

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
