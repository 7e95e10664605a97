//! What is asked of a [`Scheduler`](super::Scheduler), and what it answers.

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

/// A prompt, and how it is to be continued.
pub struct Request {
    /// The tokens that the model reads first. At least one, and less than the model's context.
    pub prompt: Vec<TokenId>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// What the answer must look like. `None`: anything, at no cost.
    pub guide: Option<Box<dyn Guide>>,
    /// The most tokens of an answer. `None`: as many as the context holds.
    pub max_tokens: Option<usize>,
    /// Tokens that end an answer, besides the end tokens of the vocabulary.
    pub stop_tokens: Vec<TokenId>,
    /// Strings that end an answer. They are not a part of it.
    pub stop: Vec<String>,
    /// How many answers are wanted, each with its own chance.
    pub answers: usize,
    /// Whether the answers are tries of an exact draw, and what these know. See [`Tries`](super::Tries), which makes such requests.
    pub round: Option<Round>,
}

/// Answers that are tries of an exact draw.
#[derive(Debug, Clone)]
pub struct Round {
    /// What is known of prefixes; it is the same for all tries of a round.
    pub prefixes: Arc<Mutex<Prefixes>>,
    /// Whether a try may fail.
    pub mode: Mode,
    /// The number of the first try, so that each has its own chance.
    pub first: u64,
}

impl Request {
    /// One answer to a prompt, with the defaults of everything.
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
        // Prompts are nobody's business.
        f.debug_struct("Request")
            .field("prompt", &self.prompt.len())
            .field("sampling", &self.sampling)
            .field("is_guided", &self.guide.is_some())
            .field("max_tokens", &self.max_tokens)
            .field("answers", &self.answers)
            .finish_non_exhaustive()
    }
}

/// Something that happened to an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Which of the answers to the request.
    pub answer: usize,
    /// What happened.
    pub what: What,
}

/// What happened.
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
        /// Why it ended.
        reason: Reason,
        /// What it cost.
        usage: Usage,
    },
    /// The answer cannot be completed. Nothing follows.
    Failed(Failure),
}

/// A token of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The token.
    pub token: TokenId,
    /// Whether the constraint left no choice, so that the model was not asked.
    pub is_forced: bool,
    /// What the model thought of it, if that was asked for and it was asked.
    pub logprobs: Option<Logprobs>,
    /// How long the mask took that it was chosen under, if there was one.
    pub mask: Option<Duration>,
    /// The logarithm of the model's probability of all tokens that the mask allowed, if that was asked for.
    pub mass: Option<f32>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The model ended it, a stop string or stop token came, or the constraint was fulfilled.
    Stop,
    /// It has as many tokens as were asked for, or as the context holds.
    Length,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that need not be computed, because an earlier text began with them.
    pub reused_tokens: usize,
    /// Tokens of the answer.
    pub answer_tokens: usize,
    /// Those of them that were forced.
    pub forced_tokens: usize,
    /// From the request to the first step.
    pub queued: Duration,
    /// From the first step to the first token.
    pub prefill: Duration,
    /// From the first token to the end.
    pub decode: Duration,
    /// Spent on masks, nearly all of it while the model was computing.
    pub mask: Duration,
    /// How many masks there were.
    pub masks: usize,
    /// Whether a mask lost tokens because there would not have been enough of them left to complete the answer.
    pub is_squeezed: bool,
}

/// Why an answer cannot be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The constraint gave up.
    Guide(String),
    /// The constraint met a limit. The sentence names it, the place, and what to change.
    Limit(String),
    /// No token is possible.
    NoToken,
    /// A try of an exact draw has failed: the model wrote what is not allowed.
    Rejected,
    /// The model refused.
    Model(String),
    /// A defect in this program. Other requests go on.
    Internal(String),
    /// The scheduler was stopped.
    Stopped,
}

impl Failure {
    /// What a panic said.
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
            Self::Model(reason) => write!(f, "the model cannot go on: {reason}"),
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

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitError {
    /// A field makes no sense.
    Invalid {
        /// Which one, as APIs call it.
        field: &'static str,
        /// A whole sentence.
        problem: String,
    },
    /// Too many requests are waiting.
    Busy {
        /// How many may wait.
        limit: usize,
    },
    /// The scheduler takes no more requests.
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

/// Where the events of a request go. An asynchronous server brings its own.
pub trait Sink: Send {
    /// Takes an event. It must not block.
    fn send(&mut self, event: Event);

    /// Whether nobody listens any more, which cancels the request.
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

    /// Waits for the next event; `None` behind the last one.
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
        // If nobody listens, the next look at `is_closed` ends the request.
        let _ = self.sender.send(event);
    }

    fn is_closed(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed)
    }
}
