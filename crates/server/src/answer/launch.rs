//! Converts prompts and a constraint to requests for the scheduler: heals prompts, compiles the constraint, and sets a
//! budget.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use maskwright::{
    heal, json_schema::Report, locate::Follower, service::CompiledConstraint, weighted::Weights,
};
use maskwright_runtime::{Guide, MatcherGuide, Request, Unkept, WeightedGuide};
use maskwright_vocab::TokenId;

use crate::{
    error::{ApiError, Result},
    request::{Requested, decoding::Decoding, extras::Extras, sampling::Choosing, weights::Weighing},
    settings::Finish,
    state::{State, Turn},
    turns::aside,
};

/// How long a request keeps its turn while its constraint is compiled. Most take a tenth of that.
const TURN_PATIENCE: Duration = Duration::from_millis(5);
/// The maximum number of schema warnings that become headers.
const MAX_WARNINGS: usize = 8;

/// Whether a constrained answer is complete when its tokens are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finishing {
    No,
    /// Yes, if the distance to the end is known.
    IfKnown,
    Yes,
}

impl Finishing {
    /// Combines the settings of the server and of a request.
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

/// The duration of compiling a constraint.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Compile {
    /// The time until the constraint was compiled.
    pub(crate) time: Duration,
    /// The part of it before a worker started, because the workers were busy with other constraints.
    pub(crate) waited: Duration,
}

/// The data that all prompts of an order share.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) choosing: Choosing,
    pub(crate) requested: Option<Requested>,
    pub(crate) finishing: Finishing,
    pub(crate) decoding: Decoding,
    /// Whether the constraint begins in the middle of a text, so that it may include the end of a prompt.
    pub(crate) is_inside: bool,
}

/// Everything that the scheduler needs.
pub(crate) struct Launch {
    pub(crate) requests: Vec<Request>,
    /// For each prompt, how many bytes at the beginning of its answers belong to the prompt.
    pub(crate) prefixes: Vec<usize>,
    pub(crate) compile: Compile,
    pub(crate) is_cached: bool,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
    /// The grammar with probabilities that evaluates the answers, if requested.
    pub(crate) weights: Option<Arc<Weights>>,
}

impl Plan {
    /// Compiles the constraint, and creates a request for each prompt. The turn is kept for that, unless it takes long.
    /// `reserved` tokens of the context are needed for something else.
    pub(crate) async fn launch(
        &self,
        state: &Arc<State>,
        prompts: Vec<Vec<TokenId>>,
        reserved: usize,
        turn: Option<Turn>,
    ) -> Result<Launch> {
        let begin = Instant::now();
        let (prompts, prefixes) = self.healed(state, prompts)?;
        let (mut compiled, mut waited, mut is_cached) = (Vec::new(), Duration::ZERO, false);
        let mut warnings = Vec::new();
        if let Some(requested) = &self.requested {
            let compile = async {
                for prefix in &prefixes {
                    let mut requested = requested.clone();
                    requested.options.prefix.clone_from(prefix);
                    let found = state.engine.compile(&requested).await?;
                    waited += found.waited;
                    is_cached = !found.is_new;
                    compiled.push(found.compiled);
                }
                Ok::<_, ApiError>(())
            };
            briefly(turn, compile).await?;
            self.check_temperatures(requested, &compiled)?;
            let report = compiled.first().and_then(|compiled| compiled.remarks().report.as_ref());
            warnings
                .extend(report.map(|report| schema_warnings(report, &requested.param)).unwrap_or_default());
        }
        let compile = Compile { time: begin.elapsed(), waited };
        let is_judged = self.weighing().is_some_and(|weighing| weighing.report);
        let weights = compiled.first().filter(|_| is_judged).and_then(|one| one.remarks().weights.clone());
        let guides = if compiled.is_empty() {
            prompts.iter().map(|_| None).collect()
        } else {
            let lengths = prompts.iter().map(|prompt| prompt.len().saturating_add(reserved)).collect();
            let (guides, unknown) = self.guides(state, compiled, lengths).await?;
            if let Some(reason) = unknown {
                warnings.push(format!("the answer may be cut off at its last token: {reason}"));
            }
            guides
        };
        let request = |(prompt, guide)| {
            let Choosing { sampling, max_tokens, stop, stop_tokens, answers, .. } = self.choosing.clone();
            Request { prompt, sampling, guide, max_tokens, stop_tokens, stop, answers, round: None }
        };
        let requests = prompts.into_iter().zip(guides).map(request).collect();
        let prefixes = prefixes.iter().map(String::len).collect();
        Ok(Launch { requests, prefixes, compile, is_cached, warnings, weights })
    }

    /// Refuses rules with temperatures for exact draws, which use a single temperature.
    fn check_temperatures(&self, requested: &Requested, compiled: &[Arc<CompiledConstraint>]) -> Result<()> {
        let has_some = compiled.iter().any(|one| one.remarks().temperatures.is_some());
        if !has_some || self.decoding.tries.is_none() {
            return Ok(());
        }
        let message = format!(
            "'maskwright.sampling': an exact draw is one of the model's own distribution, which the temperatures of rules in '{}' change; leave one of them out",
            requested.param
        );
        Err(ApiError::invalid("maskwright.sampling", "conflicting_parameters", message))
    }

    fn weighing(&self) -> Option<&Weighing> {
        self.requested.as_ref()?.weighing.as_ref()
    }

    /// Removes from the prompts the tokens that the constraint must begin with, and returns the rest and the text of
    /// these tokens.
    fn healed(&self, state: &State, prompts: Vec<Vec<TokenId>>) -> Result<(Vec<Vec<TokenId>>, Vec<String>)> {
        let refusal = if self.weighing().is_some() {
            Some("a grammar with probabilities would count the end of the prompt as well")
        } else if state.engine.can_heal() {
            None
        } else {
            Some("the backend of the server cannot begin a constraint with the end of a prompt")
        };
        if let (Some(true), Some(why)) = (self.decoding.heal, refusal) {
            return Err(ApiError::unsupported("maskwright.heal", why));
        }
        let can_begin = self.requested.is_some() && refusal.is_none();
        let is_wanted = self.is_inside && can_begin && self.decoding.heal.unwrap_or(true);
        let cut = |mut prompt: Vec<TokenId>| {
            if !is_wanted {
                return (prompt, String::new());
            }
            let healed = heal(state.engine.vocabulary(), &prompt);
            prompt.truncate(healed.kept);
            (prompt, healed.prefix)
        };
        Ok(prompts.into_iter().map(cut).unzip())
    }

    /// Creates a guide for each prompt, given the lengths of the prompts, and returns why the budget is not kept, if
    /// so. Finding the distance to the end of a text may take a while.
    async fn guides(
        &self,
        state: &Arc<State>,
        compiled: Vec<Arc<CompiledConstraint>>,
        prompts: Vec<usize>,
    ) -> Result<(Guides, Option<String>)> {
        let tokenizer = state.engine.tokenizer().clone();
        let param = self.requested.as_ref().map_or("constraint", |requested| &requested.param).to_owned();
        let field = param.clone();
        let guide = move |compiled: &Arc<CompiledConstraint>| {
            let guide = MatcherGuide::new(compiled.matcher()).with_jumps(tokenizer.clone());
            let Some(temperatures) = &compiled.remarks().temperatures else { return Ok(guide) };
            let follower = Follower::new(temperatures).map_err(|error| {
                let reason = format!("its rules have temperatures, and {error}");
                ApiError::constraint(&field, "invalid_grammar", error.category(), reason)
            })?;
            Ok::<_, ApiError>(guide.with_temperatures(follower))
        };
        let vocabulary = state.engine.vocabulary().clone();
        let guidance = self.weighing().map(|weighing| weighing.guidance);
        let weighed = move |guide: MatcherGuide, compiled: &CompiledConstraint| -> Box<dyn Guide> {
            match (guidance, &compiled.remarks().weights) {
                (Some(guidance), Some(weights)) if guidance.lambda() > 0.0 => {
                    Box::new(WeightedGuide::new(guide, weights.scorer(vocabulary.clone()), guidance))
                }
                _ => Box::new(guide),
            }
        };
        let finishing = self.finishing;
        if finishing == Finishing::No {
            let guides =
                compiled.iter().map(|one| Ok(Some(weighed(guide(one)?, one)))).collect::<Result<_>>()?;
            return Ok((guides, None));
        }
        let (max_tokens, length) = (self.choosing.max_tokens, self.choosing.length);
        let context = state.engine.context();
        aside(state, move || {
            let (mut guides, mut unknown): (Guides, _) = (Vec::new(), None);
            for (compiled, prompt) in compiled.iter().zip(prompts) {
                let mut one = guide(compiled)?;
                let room = context.saturating_sub(prompt);
                let budget = max_tokens.unwrap_or(room).min(room);
                match one.set_budget(budget) {
                    Ok(()) => {}
                    Err(Unkept::Unknown(reason)) if finishing == Finishing::IfKnown => unknown = Some(reason),
                    Err(error) => return Err(unkept(&error, &param, length, max_tokens, (room, context))),
                }
                guides.push(Some(weighed(one, compiled)));
            }
            Ok((guides, unknown))
        })
        .await
    }
}

type Guides = Vec<Option<Box<dyn Guide>>>;

/// Returns the error for a budget that cannot be kept.
fn unkept(
    error: &Unkept,
    param: &str,
    length: &str,
    max_tokens: Option<usize>,
    (room, context): (usize, usize),
) -> ApiError {
    match error {
        Unkept::TooSmall { need, .. } if *need >= context => {
            let message = format!(
                "'{param}': the shortest answer has {need} tokens, the one that ends it included, which is more than the model's context of {context} tokens holds"
            );
            ApiError::too_long(param, message)
        }
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

/// Returns the probable mistakes in a schema. Each becomes a header, and some clients accept only a few headers.
fn schema_warnings(report: &Report, param: &str) -> Vec<String> {
    let all = report.warnings();
    let left = all.len().saturating_sub(MAX_WARNINGS);
    let first = all.into_iter().take(MAX_WARNINGS);
    let mut warnings: Vec<String> =
        first.map(|(pointer, message)| format!("'{param}': {pointer} {message}")).collect();
    if left > 0 {
        warnings.push(format!("'{param}': {left} more warnings; /v1/grammar/check lists all of them"));
    }
    warnings
}

/// Waits for a future and keeps the turn, but not for long: slow work must not block others.
async fn briefly<T>(turn: Option<Turn>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(TURN_PATIENCE, &mut work).await {
        return done;
    }
    drop(turn);
    work.await
}
