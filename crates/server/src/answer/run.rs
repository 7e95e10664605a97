//! The execution of a request: from the client's order to the events of its answers.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    http::{HeaderValue, StatusCode},
    response::Response,
};
use maskwright_runtime::{
    Event, Failure, Reason, Request, Tries, Usage, What,
    scheduler::{Sink, Turn as Next},
};
use maskwright_vocab::TokenId;
use tokio::sync::mpsc;

use super::{
    judged::Judged,
    launch::{Compile, Finishing, Launch, Plan},
    notes::Notes,
};
use crate::{
    engine::unsubmitted,
    error::{ApiError, Result},
    request::{
        Requested,
        decoding::{Decoding, Draft},
        sampling::Choosing,
    },
    state::{State, Turn},
};

/// An order for answers.
#[derive(Debug)]
pub(crate) struct Order {
    /// One or more prompts. Each gets the same number of answers.
    pub(crate) prompts: Vec<Vec<TokenId>>,
    pub(crate) choosing: Choosing,
    pub(crate) requested: Option<Requested>,
    pub(crate) finishing: Finishing,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
    pub(crate) decoding: Decoding,
    /// Whether the prompts are texts, so that a constraint begins in the middle of one.
    pub(crate) is_inside: bool,
}

/// The events of all answers to an order. Dropping it cancels the unfinished answers.
#[derive(Debug)]
pub(crate) struct Answers {
    events: mpsc::UnboundedReceiver<Event>,
    deadline: tokio::time::Instant,
    timeout: Duration,
    /// The number of answers that have not ended.
    left: usize,
    /// The number of answers.
    pub(crate) count: usize,
    pub(crate) compile: Compile,
    /// The field that contained the constraint.
    param: Option<String>,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
    /// The evaluation of the answers by a weighted grammar, if requested.
    judged: Option<Judged>,
    record: Record,
    /// Notes on how the answers were written.
    pub(crate) notes: Notes,
    state: Arc<State>,
    plan: Plan,
    stage: Stage,
    /// Events that were not sent yet.
    ready: VecDeque<Event>,
    /// For each answer, how many bytes at its beginning still belong to its prompt.
    prefixes: Vec<usize>,
}

/// What the model is doing.
#[derive(Debug)]
enum Stage {
    /// It writes the answers.
    Writing,
    /// It writes a draft.
    Drafting(Drafting),
    /// It tries answers for an exact draw.
    Trying(Box<Tries>),
}

impl Order {
    /// Compiles the constraint, and passes the prompts to the scheduler. The turn is kept for that, unless it takes
    /// long.
    pub(crate) async fn start(self, state: &Arc<State>, turn: Turn) -> Result<Answers> {
        let Self { prompts, mut choosing, requested, mut finishing, mut warnings, decoding, is_inside } =
            self;
        let timeout = state.settings.request_timeout;
        let deadline = tokio::time::Instant::now() + timeout;
        let begin = turn.since;
        choosing.sampling.mass = decoding.mass;
        check_count(choosing.answers, state.engine.max_batch())?;
        check(&decoding, prompts.len(), choosing.answers, requested.as_ref())?;
        if decoding.tries.is_some() {
            finishing = exact_finish(finishing)?;
        }
        let count = choosing.answers.saturating_mul(prompts.len());
        let notes = Notes::new(decoding.mass);
        let draft = decoding.draft.clone();
        let plan = Plan { choosing, requested, finishing, decoding, is_inside };
        let then = draft.as_ref().map(|draft| then(state, &draft.then)).transpose()?.unwrap_or_default();
        let reserved = draft.as_ref().map_or(0, |draft| draft.max_tokens.saturating_add(then.len()));
        if let (Some(draft), Some(prompt)) = (&draft, prompts.first()) {
            check_draft(state, draft, prompt.len(), then.len())?;
        }
        let first = draft.as_ref().and(prompts.first()).cloned();
        // Errors are found before anything is written.
        let launch = plan.launch(state, prompts, reserved, Some(turn)).await?;
        let record = Record::new(state, &plan, begin, &launch);
        let param = plan.requested.as_ref().map(|requested| requested.param.clone());
        warnings.extend(launch.warnings.iter().cloned());
        // The first request creates its own channel.
        let (_, events) = mpsc::unbounded_channel();
        let mut answers = Answers {
            events,
            deadline,
            timeout,
            left: count,
            count,
            compile: launch.compile,
            param,
            warnings,
            judged: None,
            record,
            notes,
            state: state.clone(),
            plan,
            stage: Stage::Writing,
            ready: VecDeque::new(),
            prefixes: Vec::new(),
        };
        answers.judged = launch.weights.clone().map(|weights| Judged::new(state.clone(), weights));
        match (draft, first) {
            (Some(draft), Some(prompt)) => answers.draft(draft.max_tokens, prompt, then)?,
            _ => answers.write(launch)?,
        }
        Ok(answers)
    }
}

/// Checks the number of answers to a prompt, which are all written at the same time. This check comes first, before
/// anything is allocated for each answer.
fn check_count(answers: usize, most: usize) -> Result<()> {
    if answers <= most {
        return Ok(());
    }
    Err(ApiError::value("n", format!("'n' is {answers}, but must be between 1 and {most}")))
}

/// Refuses combinations that are not supported.
fn check(decoding: &Decoding, prompts: usize, answers: usize, requested: Option<&Requested>) -> Result<()> {
    let is_constrained = requested.is_some();
    let conflict = |field: &str, message: &str| {
        let param = format!("maskwright.{field}");
        Err(ApiError::invalid(&param, "conflicting_parameters", format!("'{param}': {message}")))
    };
    if decoding.tries.is_some() && !is_constrained {
        return conflict("sampling", "an exact draw needs a constraint; without one every draw is exact");
    }
    if decoding.tries.is_some() && requested.is_some_and(|requested| requested.weighing.is_some()) {
        return conflict(
            "sampling",
            "an exact draw is one of the model's own distribution, which a grammar with probabilities changes",
        );
    }
    if decoding.tries.is_some() && prompts > 1 {
        return conflict("sampling", "there are several prompts; ask for one at a time");
    }
    if decoding.draft.is_some() && !is_constrained {
        return conflict("draft", "a draft comes before a constrained answer, and there is no constraint");
    }
    if decoding.draft.is_some() && (prompts > 1 || answers > 1) {
        return conflict("draft", "a draft is for one answer to one prompt; ask for one at a time");
    }
    Ok(())
}

/// Returns the finishing of an exact draw: always, because it draws complete texts.
fn exact_finish(finishing: Finishing) -> Result<Finishing> {
    if finishing == Finishing::No {
        let message = "'maskwright.sampling': an exact draw is one of complete answers; it needs 'maskwright': {'finish': true}";
        return Err(ApiError::invalid("maskwright.finish", "conflicting_parameters", message));
    }
    Ok(Finishing::Yes)
}

/// Returns the tokens between a draft and the answer.
fn then(state: &State, text: &str) -> Result<Vec<TokenId>> {
    let tokens = state.engine.tokenizer().encode(text);
    tokens.map_err(|error| ApiError::value("maskwright.draft.then", error.to_string()))
}

/// Checks that a draft leaves room for an answer.
fn check_draft(state: &State, draft: &Draft, prompt: usize, then: usize) -> Result<()> {
    let context = state.engine.context();
    let most = context.saturating_sub(prompt.saturating_add(then).saturating_add(1));
    if draft.max_tokens <= most {
        return Ok(());
    }
    let message = format!(
        "'maskwright.draft.max_tokens' is {}, but the prompt has {prompt} tokens, and the model's context of {context} leaves room for a draft of {most} at the most; \
         give fewer",
        draft.max_tokens
    );
    Err(ApiError::too_long("maskwright.draft.max_tokens", message))
}

impl Answers {
    /// Returns the next event; `None` when all answers have ended. If one answer cannot be completed, all end.
    pub(crate) async fn next(&mut self) -> Option<Result<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                let event = match self.told(event) {
                    Ok(event) => event,
                    Err(error) => return Some(Err(error)),
                };
                if let Some(judged) = &mut self.judged
                    && let Err(error) = judged.note(&event, &self.notes).await
                {
                    return Some(Err(self.fail(error)));
                }
                return Some(Ok(event));
            }
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
            if let Err(error) = self.take(event).await {
                return Some(Err(self.fail(error)));
            }
        }
    }

    /// Processes an event, and starts the next stage if this one is complete.
    async fn take(&mut self, event: Event) -> Result<()> {
        match &mut self.stage {
            Stage::Writing => self.ready.push_back(event),
            Stage::Drafting(drafting) => {
                if let Some(prompt) = drafting.take(event.what, &self.notes)? {
                    let launch = self.plan.launch(&self.state.clone(), vec![prompt], 0, None).await?;
                    self.write(launch)?;
                }
            }
            Stage::Trying(tries) => match tries.take(event) {
                Next::Wait => {}
                Next::Next(request) => {
                    let sink = self.channel();
                    self.state.engine.submit(request, Box::new(sink))?;
                }
                Next::Done(events) => {
                    self.notes.exact(&tries.report());
                    self.ready.extend(events);
                }
                Next::Failed(failure) => return Err(failed(&failure, self.param.as_deref())),
            },
        }
        Ok(())
    }

    /// Creates a new channel for events. The previous one is closed, which ends its senders.
    fn channel(&mut self) -> Channel {
        let (sender, events) = mpsc::unbounded_channel();
        self.events = events;
        Channel { sender, first: 0 }
    }

    /// Makes the model write a draft.
    fn draft(&mut self, max_tokens: usize, prompt: Vec<TokenId>, then: Vec<TokenId>) -> Result<()> {
        let mut request = Request::new(prompt.clone());
        request.sampling = self.plan.choosing.sampling.clone();
        (request.sampling.logprobs, request.sampling.mass) = (None, false);
        request.max_tokens = Some(max_tokens);
        // The text after it is in the middle of a text.
        self.plan.is_inside = true;
        let sink = self.channel();
        self.stage = Stage::Drafting(Drafting { prompt, then, tokens: Vec::new(), text: String::new() });
        self.state.engine.submit(request, Box::new(sink))
    }

    /// Makes the model write the answers.
    fn write(&mut self, launch: Launch) -> Result<()> {
        let Channel { sender, .. } = self.channel();
        let answers = self.plan.choosing.answers;
        self.prefixes =
            launch.prefixes.iter().flat_map(|&length| std::iter::repeat_n(length, answers)).collect();
        self.stage = Stage::Writing;
        for (number, request) in launch.requests.into_iter().enumerate() {
            let sink = Box::new(Channel { sender: sender.clone(), first: number * answers });
            let Some(tries) = self.plan.decoding.tries else {
                self.state.engine.submit(request, sink)?;
                continue;
            };
            // Leaves rows for other requests.
            let rows = (self.state.engine.max_batch() / 2).max(1);
            let mut tries = Tries::new(request, tries, rows).map_err(|error| unsubmitted(&error))?;
            self.state.engine.submit(tries.first(), sink)?;
            self.stage = Stage::Trying(Box::new(tries));
        }
        Ok(())
    }

    /// Removes from an event the text that belongs to the prompt.
    fn told(&mut self, mut event: Event) -> Result<Event> {
        if let (Some(left), What::More { text, .. } | What::Finished { text, .. }) =
            (self.prefixes.get_mut(event.answer), &mut event.what)
        {
            // Text that was cut off the prompt is not part of the answer.
            let cut = (*left).min(text.len());
            *left -= cut;
            // It ends with a character, so this does not lose any text.
            if text.is_char_boundary(cut) {
                text.drain(..cut);
            }
        }
        match &event.what {
            What::Failed(failure) => {
                let error = failed(failure, self.param.as_deref());
                return Err(self.fail(error));
            }
            What::Finished { reason, usage, .. } => {
                self.left -= 1;
                self.record.finished(event.answer, usage);
                self.record.prompt = usage.prompt_tokens;
                self.record.is_squeezed |= usage.is_squeezed;
                if self.record.reason != Some(Reason::Length) {
                    self.record.reason = Some(*reason);
                }
            }
            What::More { tokens, .. } => self.record.more(event.answer, tokens.len()),
        }
        self.record.is_over = self.left == 0;
        Ok(event)
    }

    fn fail(&mut self, error: ApiError) -> ApiError {
        self.record.error = Some(error.code.unwrap_or("unknown"));
        error
    }
}

/// A draft that is being written.
#[derive(Debug)]
struct Drafting {
    prompt: Vec<TokenId>,
    /// The tokens after it.
    then: Vec<TokenId>,
    tokens: Vec<TokenId>,
    text: String,
}

impl Drafting {
    /// Processes an event; returns the prompt of the answer when the draft is complete.
    fn take(&mut self, what: What, notes: &Notes) -> Result<Option<Vec<TokenId>>> {
        match what {
            What::More { tokens, text } => {
                self.tokens.extend(tokens.iter().map(|written| written.token));
                self.text += &text;
                Ok(None)
            }
            What::Finished { text, reason, .. } => {
                self.text += &text;
                notes.draft(&self.text, self.tokens.len(), reason == Reason::Length);
                let mut prompt = std::mem::take(&mut self.prompt);
                prompt.append(&mut self.tokens);
                prompt.append(&mut self.then);
                Ok(Some(prompt))
            }
            What::Failed(failure) => Err(failed(&failure, None)),
        }
    }
}

/// The data that is logged when answers end. Their content is not logged.
#[derive(Debug)]
struct Record {
    span: tracing::Span,
    begin: Instant,
    /// The kind of the constraint, and a hash that identifies it.
    constraint: Option<(&'static str, String)>,
    is_cached: bool,
    compile: Duration,
    prompt: usize,
    tokens: usize,
    reason: Option<Reason>,
    is_squeezed: bool,
    error: Option<&'static str>,
    is_over: bool,
    state: Arc<State>,
    /// The speed of each answer. Exact draws are reported as a whole at their end.
    paces: Option<HashMap<usize, Pace>>,
}

/// The speed of an answer.
#[derive(Debug)]
struct Pace {
    /// The time of its first tokens.
    first: Instant,
    /// The time of its last tokens.
    last: Instant,
    /// The number of tokens after the first ones.
    behind: u32,
}

impl Record {
    fn new(state: &Arc<State>, plan: &Plan, begin: Instant, launch: &Launch) -> Self {
        // The same constraint has the same hash in every process.
        let hash = BuildHasherDefault::<DefaultHasher>::default();
        let constraint = plan.requested.as_ref().map(|requested| {
            (requested.constraint.kind().name(), format!("{:016x}", hash.hash_one(&requested.constraint)))
        });
        Self {
            span: tracing::Span::current(),
            begin,
            constraint,
            is_cached: launch.is_cached,
            compile: launch.compile.time,
            prompt: 0,
            tokens: 0,
            reason: None,
            is_squeezed: false,
            error: None,
            is_over: false,
            state: state.clone(),
            paces: plan.decoding.tries.is_none().then(HashMap::new),
        }
    }

    /// Returns the kind of the constraint, as a label.
    fn kind(&self) -> &'static str {
        self.constraint.as_ref().map_or("none", |(kind, _)| kind)
    }

    /// Counts new tokens of an answer.
    fn more(&mut self, answer: usize, tokens: usize) {
        if self.tokens == 0 {
            self.state.metrics.first_token(self.kind(), self.begin.elapsed());
        }
        self.tokens += tokens;
        let Some(paces) = &mut self.paces else { return };
        let now = Instant::now();
        paces
            .entry(answer)
            .and_modify(|pace| {
                pace.last = now;
                pace.behind = pace.behind.saturating_add(u32::try_from(tokens).unwrap_or(u32::MAX));
            })
            .or_insert(Pace { first: now, last: now, behind: 0 });
    }

    /// Counts a finished answer.
    fn finished(&mut self, answer: usize, usage: &Usage) {
        let pace = self.paces.as_mut().and_then(|paces| paces.remove(&answer)).filter(|pace| pace.behind > 0);
        let token = pace.map(|pace| (pace.last - pace.first) / pace.behind);
        self.state.metrics.answer(self.kind(), usage.queued, token);
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

/// Adds to the headers of a response what is not in its body.
pub(crate) fn noted(mut response: Response, warnings: &[String], is_squeezed: bool) -> Response {
    let headers = response.headers_mut();
    for warning in warnings {
        // Headers can only contain ASCII characters.
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

/// The channel to which the scheduler sends events. It holds at most the tokens of the answers, which are limited.
struct Channel {
    sender: mpsc::UnboundedSender<Event>,
    /// The index of the first answer to this prompt.
    first: usize,
}

impl Sink for Channel {
    fn send(&mut self, mut event: Event) {
        event.answer += self.first;
        // If the receiver is gone, the scheduler notices that.
        let _ = self.sender.send(event);
    }

    fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}
