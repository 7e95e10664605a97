//! A request on its way: from what a client asked for to the events of its answers.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    http::{HeaderValue, StatusCode},
    response::Response,
};
use maskwright::{json_schema::Report, service::CompiledConstraint, weighted::Guidance};
use maskwright_runtime::{
    Event, Failure, Guide, MatcherGuide, Reason, Request, Unkept, WeightedGuide, What, scheduler::Sink,
};
use maskwright_vocab::TokenId;
use serde_json::Value;
use tokio::sync::mpsc;

use super::judged::Judged;
use crate::{
    error::{ApiError, Result},
    request::{Requested, extras::Extras, sampling::Choosing, weights::Weighing},
    settings::Finish,
    state::{State, Turn},
    turns::aside,
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
    pub(crate) finishing: Finishing,
    /// What the client should know.
    pub(crate) warnings: Vec<String>,
}

/// Whether a constrained answer is complete when its tokens are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finishing {
    No,
    /// Yes, if it is known how far it is to the end.
    IfKnown,
    Yes,
}

impl Finishing {
    /// What the server and a request say together.
    pub(crate) fn of(state: &State, extras: &Extras) -> Result<Self> {
        match (extras.finish, state.settings.finish) {
            (Some(true), Finish::Never) => {
                Err(ApiError::unsupported("maskwright.finish", "it was started with --finish never"))
            }
            (Some(true), _) => Ok(Self::Yes),
            (None, Finish::Always) => Ok(Self::IfKnown),
            (Some(false) | None, _) => Ok(Self::No),
        }
    }
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
    /// What the client should know.
    pub(crate) warnings: Vec<String>,
    /// What a weighted grammar thinks of the answers, if that was asked for.
    judged: Option<Judged>,
    record: Record,
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
        let Self { prompts, choosing, requested, finishing, mut warnings } = self;
        let timeout = state.settings.request_timeout;
        let deadline = tokio::time::Instant::now() + timeout;
        let begin = Instant::now();
        let (mut compiled, mut waited, mut is_cached) = (None, Duration::ZERO, false);
        if let Some(requested) = &requested {
            let found = briefly(turn, state.engine.compile(requested)).await?;
            (compiled, waited) = (Some(found.compiled), found.waited);
            is_cached = !found.is_new;
            let report = compiled.as_ref().and_then(|compiled| compiled.remarks().report.as_ref());
            let misses = report.map(Report::near_misses).unwrap_or_default();
            warnings.extend(misses.into_iter().map(|(pointer, word)| {
                format!("'{}': {pointer} constrains nothing; did you mean {word}?", requested.param)
            }));
        }
        let compile = Compile { time: begin.elapsed(), waited };
        let mut judged = None;
        let guides = match compiled {
            None => prompts.iter().map(|_| None).collect(),
            Some(compiled) => {
                let lengths: Vec<usize> = prompts.iter().map(Vec::len).collect();
                let weighing = requested.as_ref().and_then(|requested| requested.weighing.as_ref());
                if let (Some(Weighing { report: true, .. }), Some(weights)) =
                    (weighing, &compiled.remarks().weights)
                {
                    judged = Some(Judged::new(state.clone(), weights.clone()));
                }
                let guidance = weighing.map(|weighing| weighing.guidance);
                let (guides, unknown) =
                    guides(state, compiled, &lengths, &choosing, (finishing, guidance)).await?;
                if let Some(reason) = unknown {
                    warnings.push(format!("the answer may be cut off at its last token: {reason}"));
                }
                guides
            }
        };
        let (sender, events) = mpsc::unbounded_channel();
        let count = choosing.answers.saturating_mul(prompts.len());
        for (number, (prompt, guide)) in prompts.into_iter().zip(guides).enumerate() {
            let Choosing { sampling, max_tokens, stop, stop_tokens, answers, .. } = choosing.clone();
            let request = Request { prompt, sampling, guide, max_tokens, stop_tokens, stop, answers };
            let sink = Channel { sender: sender.clone(), first: number * answers };
            state.engine.submit(request, Box::new(sink))?;
        }
        let record = Record::new(requested.as_ref(), begin, compile.time, is_cached);
        let param = requested.map(|requested| requested.param);
        Ok(Answers {
            events,
            deadline,
            timeout,
            left: count,
            count,
            compile,
            param,
            warnings,
            judged,
            record,
        })
    }
}

type Guides = Vec<Option<Box<dyn Guide>>>;

/// A guide for each prompt; and why it does not keep its budget, if that is so. How far it is to the end of a text may take a while to find out.
async fn guides(
    state: &Arc<State>,
    compiled: Arc<CompiledConstraint>,
    prompts: &[usize],
    choosing: &Choosing,
    (finishing, guidance): (Finishing, Option<Guidance>),
) -> Result<(Guides, Option<String>)> {
    let tokenizer = state.engine.tokenizer().clone();
    let weights = compiled.remarks().weights.clone();
    let vocabulary = state.engine.vocabulary().clone();
    let guide = move || MatcherGuide::new(compiled.matcher()).with_jumps(tokenizer.clone());
    let weighed = move |guide: MatcherGuide| -> Box<dyn Guide> {
        match (guidance, &weights) {
            (Some(guidance), Some(weights)) if guidance.lambda() > 0.0 => {
                Box::new(WeightedGuide::new(guide, weights.scorer(vocabulary.clone()), guidance))
            }
            _ => Box::new(guide),
        }
    };
    if finishing == Finishing::No {
        return Ok((prompts.iter().map(|_| Some(weighed(guide()))).collect(), None));
    }
    let (max_tokens, length) = (choosing.max_tokens, choosing.length);
    let rooms: Vec<usize> =
        prompts.iter().map(|prompt| state.engine.context().saturating_sub(*prompt)).collect();
    aside(state, move || {
        let (mut guides, mut unknown): (Guides, _) = (Vec::new(), None);
        for room in rooms {
            let mut one = guide();
            let budget = max_tokens.unwrap_or(room).min(room);
            match one.set_budget(budget) {
                Ok(()) => {}
                Err(Unkept::Unknown(reason)) if finishing == Finishing::IfKnown => unknown = Some(reason),
                Err(error) => return Err(unkept(&error, length, max_tokens, room)),
            }
            guides.push(Some(weighed(one)));
        }
        Ok((guides, unknown))
    })
    .await
}

/// A budget that cannot be kept.
fn unkept(error: &Unkept, length: &str, max_tokens: Option<usize>, room: usize) -> ApiError {
    match error {
        Unkept::TooSmall { need, .. } if *need > room => {
            let message = format!(
                "the shortest answer has {need} tokens, the one that ends it included, and the prompt leaves room for {room}; shorten it"
            );
            ApiError::too_long("prompt", message)
        }
        Unkept::TooSmall { need, .. } => {
            let given = max_tokens.unwrap_or(room);
            let message = format!(
                "'{length}' is {given}, but the shortest answer has {need} tokens, the one that ends it included; give at least {need}, or let the answer be cut \
                 off with 'maskwright': {{'finish': false}}"
            );
            ApiError::invalid(length, "budget_too_small", message)
        }
        Unkept::Unknown(reason) => {
            ApiError::unsupported("maskwright.finish", &format!("for this constraint: {reason}"))
        }
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
            Ok(None) => return Some(Err(self.fail(ApiError::stopping()))),
            Err(_) => {
                let message = format!(
                    "the answer took longer than the limit of {} seconds; ask for fewer tokens",
                    self.timeout.as_secs()
                );
                return Some(Err(self.fail(ApiError::timeout(message))));
            }
        };
        match &event.what {
            What::Failed(failure) => {
                let error = failed(failure, self.param.as_deref());
                return Some(Err(self.fail(error)));
            }
            What::Finished { reason, usage, .. } => {
                self.left -= 1;
                self.record.prompt = usage.prompt_tokens;
                self.record.is_squeezed |= usage.is_squeezed;
                if self.record.reason != Some(Reason::Length) {
                    self.record.reason = Some(*reason);
                }
            }
            What::More { tokens, .. } => self.record.tokens += tokens.len(),
        }
        self.record.is_over = self.left == 0;
        if let Some(judged) = &mut self.judged
            && let Err(error) = judged.note(&event).await
        {
            return Some(Err(self.fail(error)));
        }
        Some(Ok(event))
    }

    /// What a weighted grammar thinks of an answer that has just ended, if that was asked for.
    pub(crate) fn judgement(&mut self, answer: usize) -> Option<Value> {
        self.judged.as_mut()?.take(answer)
    }

    fn fail(&mut self, error: ApiError) -> ApiError {
        self.record.error = Some(error.code.unwrap_or("unknown"));
        error
    }
}

/// What is written down about answers when they end. Nothing of what they say is.
#[derive(Debug)]
struct Record {
    span: tracing::Span,
    begin: Instant,
    /// The kind of the constraint, and a number that tells it from others.
    constraint: Option<(&'static str, String)>,
    is_cached: bool,
    compile: Duration,
    prompt: usize,
    tokens: usize,
    reason: Option<Reason>,
    is_squeezed: bool,
    error: Option<&'static str>,
    is_over: bool,
}

impl Record {
    fn new(requested: Option<&Requested>, begin: Instant, compile: Duration, is_cached: bool) -> Self {
        // The same constraint has the same number in every process.
        let hash = BuildHasherDefault::<DefaultHasher>::default();
        let constraint = requested.map(|requested| {
            (requested.constraint.kind().name(), format!("{:016x}", hash.hash_one(&requested.constraint)))
        });
        Self {
            span: tracing::Span::current(),
            begin,
            constraint,
            is_cached,
            compile,
            prompt: 0,
            tokens: 0,
            reason: None,
            is_squeezed: false,
            error: None,
            is_over: false,
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let (kind, hash) = match &self.constraint {
            Some((kind, hash)) => (Some(*kind), Some(hash.as_str())),
            None => (None, None),
        };
        let finish = match (self.error, self.is_over, self.reason) {
            (Some(_), ..) => "error",
            (None, false, _) => "client_left",
            (None, true, Some(Reason::Length)) => "length",
            (None, true, _) => "stop",
        };
        let cache = kind.map(|_| if self.is_cached { "hit" } else { "miss" });
        let _entered = self.span.enter();
        tracing::info!(
            constraint = kind,
            hash,
            cache,
            compile_micros = kind.map(|_| self.compile.as_micros() as u64),
            prompt_tokens = (self.prompt > 0).then_some(self.prompt),
            tokens = self.tokens,
            finish,
            squeezed = self.is_squeezed,
            error = self.error,
            micros = self.begin.elapsed().as_micros() as u64,
            "generated"
        );
    }
}

/// Puts into the headers of an answer what is not in its body.
pub(crate) fn noted(mut response: Response, warnings: &[String], is_squeezed: bool) -> Response {
    let headers = response.headers_mut();
    for warning in warnings {
        // Headers have no characters but those of ASCII.
        let plain: String = warning.chars().map(|c| if c.is_ascii_graphic() { c } else { ' ' }).collect();
        if let Ok(value) = HeaderValue::try_from(plain) {
            headers.append("x-maskwright-warning", value);
        }
    }
    if is_squeezed {
        headers.insert("x-maskwright-squeezed", HeaderValue::from_static("true"));
    }
    response
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
