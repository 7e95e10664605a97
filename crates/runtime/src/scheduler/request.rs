//! Requests to a [`Scheduler`](super::Scheduler), and their events.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use maskwright::exact::{Mode, Prefixes};
use maskwright_vocab::TokenId;

use crate::{
    guide::{Guide, GuideError},
    sampler::{Logprobs, Sampling},
};

/// A prompt, and how to continue it.
pub struct Request {
    /// The tokens that the model reads first. At least one, and fewer than the model's context.
    pub prompt: Vec<TokenId>,
    /// How tokens are sampled.
    pub sampling: Sampling,
    /// The constraint of the answer. `None` allows any answer, without any cost.
    pub guide: Option<Box<dyn Guide>>,
    /// The maximum number of tokens of an answer. `None`: as many as fit into the context.
    pub max_tokens: Option<usize>,
    /// Tokens that end an answer, in addition to the end tokens of the vocabulary.
    pub stop_tokens: Vec<TokenId>,
    /// Strings that end an answer. They are not part of it.
    pub stop: Vec<String>,
    /// The number of answers, each with its own random numbers.
    pub answers: usize,
    /// The round, if the answers are tries of an exact draw. [`Tries`](super::Tries) creates such requests.
    pub round: Option<Round>,
}

/// A round of tries of an exact draw.
#[derive(Debug, Clone)]
pub struct Round {
    /// The knowledge about prefixes, shared by all tries of a round.
    pub prefixes: Arc<Mutex<Prefixes>>,
    /// Whether a try may fail.
    pub mode: Mode,
    /// The index of the first try, so that each has its own random numbers.
    pub first: u64,
}

impl Request {
    /// Creates a request for one answer, with default settings.
    pub fn new(prompt: Vec<TokenId>) -> Self {
        Self {
            prompt,
            sampling: Sampling::default(),
            guide: None,
            max_tokens: None,
            stop_tokens: Vec::new(),
            stop: Vec::new(),
            answers: 1,
            round: None,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Prompts are private.
        f.debug_struct("Request")
            .field("prompt", &self.prompt.len())
            .field("sampling", &self.sampling)
            .field("is_guided", &self.guide.is_some())
            .field("max_tokens", &self.max_tokens)
            .field("answers", &self.answers)
            .finish_non_exhaustive()
    }
}

/// An event of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The index of the answer.
    pub answer: usize,
    /// What happened.
    pub what: What,
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The answer has grown.
    More {
        /// The tokens.
        tokens: Vec<Written>,
        /// The text that is certain now; it may lag behind the tokens.
        text: String,
    },
    /// The answer is complete. Nothing follows.
    Finished {
        /// Text that was held back until the end.
        text: String,
        /// The reason why it ended.
        reason: Reason,
        /// Its usage.
        usage: Usage,
    },
    /// The answer failed. Nothing follows.
    Failed(Failure),
}

/// A token of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The token.
    pub token: TokenId,
    /// Whether the constraint left no choice, so that the model was not asked.
    pub is_forced: bool,
    /// The model's log-probabilities, if they were requested and the token was not forced.
    pub logprobs: Option<Logprobs>,
    /// How long its mask took, if there was one.
    pub mask: Option<Duration>,
    /// The logarithm of the model's probability of all tokens that the mask allowed, if requested.
    pub mass: Option<f32>,
}

/// The reason why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The model ended it, a stop string or stop token came, or the constraint allows nothing more.
    Stop,
    /// It has reached the maximum number of tokens, or the end of the context.
    Length,
}

/// The usage of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of tokens of the prompt.
    pub prompt_tokens: usize,
    /// The number of those that were reused from an earlier text with the same beginning.
    pub reused_tokens: usize,
    /// The number of tokens of the answer.
    pub answer_tokens: usize,
    /// The number of those that were forced.
    pub forced_tokens: usize,
    /// The time from the request to the first step.
    pub queued: Duration,
    /// The time from the first step to the first token.
    pub prefill: Duration,
    /// The time from the first token to the end.
    pub decode: Duration,
    /// The time spent on masks, nearly all of it while the model was computing.
    pub mask: Duration,
    /// The number of masks.
    pub masks: usize,
    /// Whether a mask lost tokens because the budget would not have sufficed to complete the answer after them.
    pub is_squeezed: bool,
}

/// The reason why an answer failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The constraint failed.
    Guide(String),
    /// The constraint exceeded a limit. The sentence names the limit, the place, and what to change.
    Limit(String),
    /// No token is possible.
    NoToken,
    /// A try of an exact draw has failed: the model chose a token that is not allowed.
    Rejected,
    /// The model failed.
    Model(String),
    /// A bug in this program. Other requests continue.
    Internal(String),
    /// The scheduler was stopped.
    Stopped,
}

impl Failure {
    /// Creates a failure from a panic.
    pub(super) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Internal(format!("panic: {}", text.unwrap_or("without a message")))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guide(reason) | Self::Limit(reason) => f.write_str(reason),
            Self::NoToken => crate::sampler::NoToken.fmt(f),
            Self::Rejected => f.write_str("the try has failed: the model wrote what is not allowed"),
            Self::Model(reason) => write!(f, "the model cannot continue: {reason}"),
            Self::Internal(reason) => write!(f, "internal error, please report it: {reason}"),
            Self::Stopped => f.write_str("the server is stopping; try again later"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<GuideError> for Failure {
    fn from(error: GuideError) -> Self {
        match error {
            GuideError::Cancelled => Self::Stopped,
            GuideError::Limit(_) => Self::Limit(error.to_string()),
            GuideError::Failed(_) => Self::Guide(error.to_string()),
        }
    }
}

/// The reason why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitError {
    /// A field is invalid.
    Invalid {
        /// The name of the field in APIs.
        field: &'static str,
        /// A complete sentence.
        problem: String,
    },
    /// Too many requests are waiting.
    Busy {
        /// The maximum number of waiting requests.
        limit: usize,
    },
    /// The scheduler accepts no more requests.
    Closed,
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { problem, .. } => f.write_str(problem),
            Self::Busy { limit } => write!(f, "{limit} requests are waiting already; try again later"),
            Self::Closed => f.write_str("the server is stopping; try again later"),
        }
    }
}

impl std::error::Error for SubmitError {}

/// The receiver of a request's events. An asynchronous server implements its own.
pub trait Sink: Send {
    /// Receives an event. It must not block.
    fn send(&mut self, event: Event);

    /// Whether the receiver is gone, which cancels the request.
    fn is_closed(&self) -> bool;
}

/// The events of a request, for a thread that waits for them. Dropping it cancels the request.
#[derive(Debug)]
pub struct Stream {
    events: mpsc::Receiver<Event>,
    is_dropped: Arc<AtomicBool>,
}

impl Stream {
    pub(super) fn new() -> (Self, impl Sink) {
        let (sender, events) = mpsc::channel();
        let is_dropped = Arc::new(AtomicBool::new(false));
        (Self { events, is_dropped: is_dropped.clone() }, Channel { sender, is_dropped })
    }
}

impl Iterator for Stream {
    type Item = Event;

    /// Waits for the next event; returns `None` after the last one.
    fn next(&mut self) -> Option<Event> {
        self.events.recv().ok()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

struct Channel {
    sender: mpsc::Sender<Event>,
    is_dropped: Arc<AtomicBool>,
}

impl Sink for Channel {
    fn send(&mut self, event: Event) {
        // If the receiver is gone, the next check of `is_closed` ends the request.
        let _ = self.sender.send(event);
    }

    fn is_closed(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed)
    }
}
