//! Many requests, one model: continuous batching.
//!
//! A worker thread owns the model and repeats one step in a loop. Requests join and leave *between* steps, so a long
//! answer does not block others, and a free place is used at once:
//!
//! ```text
//!        ┌──────────────── a step ─────────────────┐
//! queue ─▶ admit ─▶ feed all answers to the model ─▶ choose a token for each ─▶ send ─▶ (next step)
//!                   meanwhile: fill their masks
//! ```
//!
//! * **Feeding.** An answer has tokens that the model has not read: a prompt, the last chosen token, forced tokens
//!   after it. All of them are treated alike, so a prompt is a long feed, and a jump over forced tokens is a feed of
//!   several tokens. Long prompts are split, so that other answers can continue meanwhile.
//! * **Masks.** The mask for the next token depends on the last token and not on the model. So it is filled on [another
//!   thread](masks) while the model reads that last token, and costs no time as long as it is faster than the model.
//! * **Slow constraints.** A constraint may take long for a mask or a token, up to its
//!   [limit](maskwright::Limits::mask_steps). In each step the other answers wait for it for at most 20 ms, and not at
//!   all if it was late the last time. Then they continue without it, and it joins them again when it is ready.
//! * **Prefixes.** A prompt with the same beginning as a text that the model has read – a running one, or one of the
//!   last that ended – starts from a fork of it ([`prefix`]). Several answers to one prompt read it only once.
//! * **Leaving.** If the receiver of a request is dropped, the request ends by the next step, and work on its
//!   constraint is cancelled by its [cancel token](maskwright::CancelToken). An error in one request – a constraint
//!   that fails or exceeds a limit, a panic in a guide – only ends that request.
//!
//! ```no_run
//! use maskwright_runtime::{Loaded, Request, What, model::LoadOptions, scheduler::Options};
//!
//! let loaded = Loaded::open("model.gguf", &LoadOptions::default())?;
//! let prompt = loaded.tokenizer.encode("The capital of France is")?;
//! let scheduler = loaded.schedule(Options::default());
//! for event in scheduler.stream(Request::new(prompt))? {
//!     if let What::More { text, .. } = event.what {
//!         print!("{text}");
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod masks;
mod prefix;
mod request;
mod search;
mod tries;
mod worker;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use maskwright::StopStrings;
use maskwright_vocab::Vocabulary;

pub use request::{Event, Failure, Reason, Request, Round, Sink, Stream, SubmitError, Usage, What, Written};
pub use tries::{Report, Tries, Turn};
use worker::Worker;

use crate::model::Model;

/// The maximum number of stop strings of a request.
const MAX_STOPS: usize = 16;
/// The maximum length of a stop string in bytes.
const MAX_STOP_BYTES: usize = 1024;

/// The settings of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The maximum number of answers that are written at the same time.
    pub max_batch: usize,
    /// The maximum number of waiting requests.
    pub max_queue: usize,
    /// The maximum number of prompt tokens in a step, if there is only one answer. With a slow model there are fewer.
    pub prefill: usize,
    /// The same, if other answers wait for the step.
    pub prefill_beside: usize,
    /// How many texts are kept after their end, for prompts with the same beginning.
    pub kept_texts: usize,
    /// The maximum number of tokens of these texts together.
    pub kept_tokens: usize,
    /// Whether forced tokens are written without asking the model.
    pub jump_forward: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_batch: 16,
            max_queue: 256,
            prefill: 512,
            prefill_beside: 64,
            kept_texts: 16,
            kept_tokens: 16_384,
            jump_forward: true,
        }
    }
}

/// Statistics of a scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The number of waiting requests.
    pub waiting: usize,
    /// The number of running answers.
    pub running: usize,
    /// The number of steps of the model.
    pub steps: u64,
    /// The number of prompt tokens that were computed.
    pub prompt_tokens: u64,
    /// The number of prompt tokens that were reused.
    pub reused_tokens: u64,
    /// The number of tokens of answers.
    pub answer_tokens: u64,
    /// The number of those that were forced.
    pub forced_tokens: u64,
    /// The computing time of the model.
    pub model: Duration,
    /// The time spent on masks.
    pub mask: Duration,
    /// The time that the model's thread waited for masks.
    pub mask_wait: Duration,
    /// The time spent on choosing tokens.
    pub sample: Duration,
    /// The size of the keys and values in bytes.
    pub cache_bytes: usize,
    /// The mass of masks, for tokens for which it was requested.
    pub masses: Masses,
}

/// A histogram of the mass of masks: −log of the model's probability of the allowed tokens. 0 means that the mask
/// changes nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Masses {
    /// How many were at most the bound with the same index in [`Self::BOUNDS`], and above the previous bound; the last
    /// count is for those above all bounds.
    pub counts: [u64; 11],
    /// The sum of all, in millionths.
    pub micros: u64,
}

impl Masses {
    /// The bounds, in natural logarithms: 0.7 is one half, 2.3 a tenth, 6.9 a thousandth.
    pub const BOUNDS: [f32; 10] = [0.001, 0.01, 0.1, 0.3, 0.7, 1.5, 2.3, 4.6, 6.9, 13.8];

    #[expect(clippy::cast_sign_loss, reason = "logarithms of shares are not positive")]
    fn count(&mut self, log: f32) {
        let place = Self::BOUNDS.iter().position(|&bound| -log <= bound).unwrap_or(Self::BOUNDS.len());
        self.counts[place] += 1;
        self.micros = self.micros.saturating_add((-log * 1e6) as u64);
    }
}

/// Runs requests on a model; see the [module](self). Dropping it ends all of them.
#[derive(Debug)]
pub struct Scheduler {
    inbox: Option<mpsc::Sender<Job>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    limits: Limits,
}

/// The state that the worker and its clients share.
#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicUsize,
    is_stopped: AtomicBool,
    is_hurried: AtomicBool,
    statistics: Mutex<Statistics>,
}

/// The limits for checking requests.
#[derive(Debug, Clone, Copy)]
struct Limits {
    width: usize,
    context: usize,
    max_batch: usize,
    max_queue: usize,
}

/// A submitted request.
struct Job {
    request: Request,
    stops: StopStrings,
    sink: Box<dyn Sink>,
    since: Instant,
}

impl Scheduler {
    /// Starts a worker for a model and the vocabulary of its tokenizer.
    pub fn start(model: Box<dyn Model>, vocabulary: Arc<Vocabulary>, options: Options) -> Self {
        let limits = Limits {
            width: model.width(),
            context: model.context(),
            max_batch: options.max_batch.max(1),
            max_queue: options.max_queue,
        };
        let shared = Arc::new(Shared::default());
        let (inbox, jobs) = mpsc::channel();
        let for_worker = shared.clone();
        let run = move || Worker::new(model, vocabulary, options, for_worker, jobs).run();
        let thread = std::thread::Builder::new().name("scheduler".into()).spawn(run);
        // Without a thread the inbox is closed, and every request gets an error.
        Self { inbox: Some(inbox), shared, thread: thread.ok(), limits }
    }

    /// Submits a request; its events go to the sink, in order.
    pub fn submit(&self, request: Request, sink: Box<dyn Sink>) -> Result<(), SubmitError> {
        let stops = self.limits.check(&request)?;
        let inbox = self.inbox.as_ref().ok_or(SubmitError::Closed)?;
        let limit = self.limits.max_queue;
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) >= limit {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(SubmitError::Busy { limit });
        }
        inbox.send(Job { request, stops, sink, since: Instant::now() }).map_err(|_| {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            SubmitError::Closed
        })
    }

    /// Submits a request, and returns a stream of its events.
    pub fn stream(&self, request: Request) -> Result<Stream, SubmitError> {
        let (stream, sink) = Stream::new();
        self.submit(request, Box::new(sink))?;
        Ok(stream)
    }

    /// Returns the statistics.
    pub fn statistics(&self) -> Statistics {
        let mut statistics =
            *self.shared.statistics.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        statistics.waiting = self.shared.waiting.load(Ordering::Relaxed);
        statistics
    }

    /// Prepares for the end of the server: from now on, answers whose constraint is late end with [`Failure::Stopped`].
    /// All others continue.
    pub fn hurry(&self) {
        self.shared.is_hurried.store(true, Ordering::Relaxed);
    }

    /// Accepts no more requests, and waits until all submitted ones are answered.
    pub fn finish(mut self) {
        self.inbox = None;
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of the worker was already printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if self.inbox.take().is_some() {
            self.shared.is_stopped.store(true, Ordering::Relaxed);
        }
        self.join();
    }
}

impl Limits {
    /// Checks a request, and returns the automaton for its stop strings.
    fn check(&self, request: &Request) -> Result<StopStrings, SubmitError> {
        let invalid = |field: &'static str, problem: String| Err(SubmitError::Invalid { field, problem });
        if let Err(error) = request.sampling.check() {
            return invalid(error.field, error.to_string());
        }
        if request.stop.len() > MAX_STOPS {
            let problem =
                format!("there are {} stop strings, but at most {MAX_STOPS} are allowed", request.stop.len());
            return invalid("stop", problem);
        }
        if let Some(stop) = request.stop.iter().find(|stop| stop.len() > MAX_STOP_BYTES) {
            let problem =
                format!("a stop string has {} bytes, but at most {MAX_STOP_BYTES} are allowed", stop.len());
            return invalid("stop", problem);
        }
        let stops = match StopStrings::new(&request.stop) {
            Ok(stops) => stops,
            Err(error) => return invalid("stop", error.to_string()),
        };
        let length = request.prompt.len();
        if length == 0 {
            return invalid(
                "prompt",
                "the prompt is empty; a model needs at least one token to continue".into(),
            );
        }
        if length >= self.context {
            let problem = format!(
                "the prompt has {length} tokens, which leaves no room for an answer in the model's context of {}; shorten it",
                self.context
            );
            return invalid("prompt", problem);
        }
        let biased = request.sampling.logit_bias.iter().map(|(token, _)| ("logit_bias", token));
        let prompt = request.prompt.iter().map(|token| ("prompt", token));
        let ends = request.stop_tokens.iter().map(|token| ("stop_token_ids", token));
        for (field, token) in biased.chain(prompt).chain(ends) {
            if token.index() >= self.width {
                return invalid(
                    field,
                    format!("{field} has the token {}, but the model has {} tokens", token.0, self.width),
                );
            }
        }
        if request.max_tokens == Some(0) {
            return invalid("max_tokens", "max_tokens is 0, but must be at least 1".into());
        }
        if request.answers == 0 || request.answers > self.max_batch {
            let problem = format!("n is {}, but must be between 1 and {}", request.answers, self.max_batch);
            return invalid("n", problem);
        }
        Ok(stops)
    }
}
