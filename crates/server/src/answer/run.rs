//! A request on its way: from what a client asked for to the events of its answers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::StatusCode;
use maskwright_runtime::{Event, Failure, Guide, MatcherGuide, Request, What, scheduler::Sink};
use maskwright_vocab::TokenId;
use tokio::sync::mpsc;

use crate::{
    error::{ApiError, Result},
    request::{Requested, sampling::Choosing},
    state::{State, Turn},
};

/// How long a request keeps its turn while its constraint is compiled. Most take a tenth of that.
const BRIEFLY: Duration = Duration::from_millis(5);

/// What is to be generated.
#[derive(Debug)]
pub(crate) struct Order {
    /// One or more prompts, each answered as often as was asked for.
    pub(crate) prompts: Vec<Vec<TokenId>>,
    pub(crate) choosing: Choosing,
    pub(crate) requested: Option<Requested>,
    /// Whether a constrained answer must be complete when its tokens are used up.
    pub(crate) finishes: bool,
}

/// The events of all answers to an order. Dropping it cancels what is not finished.
#[derive(Debug)]
pub(crate) struct Answers {
    events: mpsc::UnboundedReceiver<Event>,
    deadline: tokio::time::Instant,
    timeout: Duration,
    /// How many answers have not ended.
    left: usize,
    /// How many there are.
    pub(crate) count: usize,
    pub(crate) compile: Compile,
    /// The field with the constraint.
    param: Option<String>,
}

/// How long a constraint took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Compile {
    /// Until it was there.
    pub(crate) time: Duration,
    /// What of it passed before a worker took it up: those were at the constraints of others.
    pub(crate) waited: Duration,
}

impl Order {
    /// Compiles the constraint, and gives the prompts to the scheduler. The turn is kept for that, unless it takes long.
    pub(crate) async fn start(self, state: &Arc<State>, turn: Turn) -> Result<Answers> {
        let timeout = state.settings.request_timeout;
        let deadline = tokio::time::Instant::now() + timeout;
        let begin = Instant::now();
        let (compiled, waited) = match &self.requested {
            Some(requested) => {
                let (compiled, waited) = briefly(turn, state.engine.compile(requested)).await?;
                (Some(compiled), waited)
            }
            None => (None, Duration::ZERO),
        };
        let compile = Compile { time: begin.elapsed(), waited };
        let (sender, events) = mpsc::unbounded_channel();
        let answers = self.choosing.answers;
        let count = answers.saturating_mul(self.prompts.len());
        for (number, prompt) in self.prompts.into_iter().enumerate() {
            let Choosing { sampling, max_tokens, stop, stop_tokens, answers } = self.choosing.clone();
            let mut guide: Option<Box<dyn Guide>> = None;
            if let (Some(compiled), Some(requested)) = (&compiled, &self.requested) {
                let mut found =
                    MatcherGuide::new(compiled.matcher()).with_jumps(state.engine.tokenizer().clone());
                if self.finishes {
                    let room = state.engine.context().saturating_sub(prompt.len());
                    let budget = max_tokens.unwrap_or(room).min(room);
                    found = found.with_budget(budget).map_err(|error| {
                        ApiError::invalid(&requested.param, "budget_too_small", error.to_string())
                    })?;
                }
                guide = Some(Box::new(found));
            }
            let request = Request { prompt, sampling, guide, max_tokens, stop_tokens, stop, answers };
            let sink = Channel { sender: sender.clone(), first: number * answers };
            state.engine.submit(request, Box::new(sink))?;
        }
        let param = self.requested.map(|requested| requested.param);
        Ok(Answers { events, deadline, timeout, left: count, count, compile, param })
    }
}

/// Waits for something and keeps the turn for it, but not for long: what takes long keeps nobody waiting.
async fn briefly<T>(turn: Turn, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(BRIEFLY, &mut work).await {
        return done;
    }
    drop(turn);
    work.await
}

impl Answers {
    /// The next event; `None` when all answers have ended. An answer that cannot be completed ends all of them.
    pub(crate) async fn next(&mut self) -> Option<Result<Event>> {
        if self.left == 0 {
            return None;
        }
        let event = match tokio::time::timeout_at(self.deadline, self.events.recv()).await {
            Ok(Some(event)) => event,
            Ok(None) => return Some(Err(ApiError::stopping())),
            Err(_) => {
                let message = format!(
                    "the answer took longer than the limit of {} seconds; ask for fewer tokens",
                    self.timeout.as_secs()
                );
                return Some(Err(ApiError::timeout(message)));
            }
        };
        match event.what {
            What::Failed(failure) => Some(Err(failed(&failure, self.param.as_deref()))),
            What::Finished { .. } => {
                self.left -= 1;
                Some(Ok(event))
            }
            What::More { .. } => Some(Ok(event)),
        }
    }
}

fn failed(failure: &Failure, param: Option<&str>) -> ApiError {
    let constraint = param.unwrap_or("constraint");
    match failure {
        Failure::Stopped => ApiError::stopping(),
        Failure::Limit(reason) => ApiError::constraint_limit(constraint, reason),
        Failure::Guide(_) | Failure::NoToken => {
            let error = ApiError::other(
                StatusCode::INTERNAL_SERVER_ERROR,
                "server_error",
                "constraint_failed",
                failure.to_string(),
            );
            ApiError { param: param.map(str::to_owned), ..error }
        }
        other => ApiError::internal(other.to_string()),
    }
}

/// Where the scheduler sends events to. It holds no more than the tokens of the answers, which are limited.
struct Channel {
    sender: mpsc::UnboundedSender<Event>,
    /// The number of the first answer to this prompt.
    first: usize,
}

impl Sink for Channel {
    fn send(&mut self, mut event: Event) {
        event.answer += self.first;
        // If nobody listens, the scheduler will find out by itself.
        let _ = self.sender.send(event);
    }

    fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}
