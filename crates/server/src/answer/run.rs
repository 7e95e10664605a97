//! A request on its way: from what a client asked for to the events of its answers.

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
    pub(crate) decoding: Decoding,
    /// Whether the prompts are texts, so that a constraint begins in the middle of one.
    pub(crate) is_inside: bool,
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
    /// How the answers were written.
    pub(crate) notes: Notes,
    state: Arc<State>,
    plan: Plan,
    stage: Stage,
    /// Events that are yet to be told.
    ready: VecDeque<Event>,
    /// How many bytes of each answer belong to its prompt, as far as they are yet to come.
    prefixes: Vec<usize>,
}

/// What the model is at.
#[derive(Debug)]
enum Stage {
    /// It writes the answers.
    Writing,
    /// It writes a draft.
    Drafting(Drafting),
    /// It tries answers.
    Trying(Box<Tries>),
}

impl Order {
    /// Compiles the constraint, and gives the prompts to the scheduler. The turn is kept for that, unless it takes long.
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
        // What is refused is refused before anything is written.
        let launch = plan.launch(state, prompts, reserved, Some(turn)).await?;
        let record = Record::new(state, &plan, begin, &launch);
        let param = plan.requested.as_ref().map(|requested| requested.param.clone());
        warnings.extend(launch.warnings.iter().cloned());
        // The first request brings its own.
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

/// All answers to a prompt are written at the same time. This comes first: what is made for each answer must not be more than there can be.
fn check_count(answers: usize, most: usize) -> Result<()> {
    if answers <= most {
        return Ok(());
    }
    Err(ApiError::value("n", format!("'n' is {answers}, but must be between 1 and {most}")))
}

/// What cannot go together.
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

/// Whether an exact draw is finished: always, because it is one of complete texts.
fn exact_finish(finishing: Finishing) -> Result<Finishing> {
    if finishing == Finishing::No {
        let message = "'maskwright.sampling': an exact draw is one of complete answers; it needs 'maskwright': {'finish': true}";
        return Err(ApiError::invalid("maskwright.finish", "conflicting_parameters", message));
    }
    Ok(Finishing::Yes)
}

/// The tokens between a draft and the answer.
fn then(state: &State, text: &str) -> Result<Vec<TokenId>> {
    let tokens = state.engine.tokenizer().encode(text);
    tokens.map_err(|error| ApiError::value("maskwright.draft.then", error.to_string()))
}

/// A draft must leave room for an answer.
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
    /// The next event; `None` when all answers have ended. An answer that cannot be completed ends all of them.
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

    /// Takes an event in, and goes to the next stage if this one is over.
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

    /// A new channel for events. What is sent to the one before does not matter any more, and what sends it ends.
    fn channel(&mut self) -> Channel {
        let (sender, events) = mpsc::unbounded_channel();
        self.events = events;
        Channel { sender, first: 0 }
    }

    /// Has the model write a draft.
    fn draft(&mut self, max_tokens: usize, prompt: Vec<TokenId>, then: Vec<TokenId>) -> Result<()> {
        let mut request = Request::new(prompt.clone());
        request.sampling = self.plan.choosing.sampling.clone();
        (request.sampling.logprobs, request.sampling.mass) = (None, false);
        request.max_tokens = Some(max_tokens);
        // What is said behind it belongs to the middle of a text.
        self.plan.is_inside = true;
        let sink = self.channel();
        self.stage = Stage::Drafting(Drafting { prompt, then, tokens: Vec::new(), text: String::new() });
        self.state.engine.submit(request, Box::new(sink))
    }

    /// Has the model write the answers.
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
            // Others want to write, too.
            let rows = (self.state.engine.max_batch() / 2).max(1);
            let mut tries = Tries::new(request, tries, rows).map_err(|error| unsubmitted(&error))?;
            self.state.engine.submit(tries.first(), sink)?;
            self.stage = Stage::Trying(Box::new(tries));
        }
        Ok(())
    }

    /// An event as the client is told it.
    fn told(&mut self, mut event: Event) -> Result<Event> {
        if let (Some(left), What::More { text, .. } | What::Finished { text, .. }) =
            (self.prefixes.get_mut(event.answer), &mut event.what)
        {
            // What was cut off the prompt is no part of the answer.
            let cut = (*left).min(text.len());
            *left -= cut;
            // It ends with a character, so that this leaves out nothing.
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
    /// What comes behind it.
    then: Vec<TokenId>,
    tokens: Vec<TokenId>,
    text: String,
}

impl Drafting {
    /// Takes what happened; gives the prompt of the answer when the draft is there.
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
    state: Arc<State>,
    /// How fast each answer is written. Exact draws are told as a whole at their end.
    paces: Option<HashMap<usize, Pace>>,
}

/// How fast an answer is written.
#[derive(Debug)]
struct Pace {
    /// When its first tokens were there.
    first: Instant,
    /// When its last ones were.
    last: Instant,
    /// How many came behind the first ones.
    behind: u32,
}

impl Record {
    fn new(state: &Arc<State>, plan: &Plan, begin: Instant, launch: &Launch) -> Self {
        // The same constraint has the same number in every process.
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

    /// The kind of the constraint, as a label.
    fn kind(&self) -> &'static str {
        self.constraint.as_ref().map_or("none", |(kind, _)| kind)
    }

    /// An answer has more tokens.
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

    /// An answer is written.
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
