//! Samples a token from a row of logits.
//!
//! The steps are always in this order, and each is only done if requested:
//!
//! | step | what it does |
//! |---|---|
//! | mask | tokens that the constraint forbids get −∞; nothing below can bring them back |
//! | weights | a weighted grammar adds its scores to the best tokens, and drops the others |
//! | repetition penalty | tokens of the prompt and of the answer: positive logits are divided, negative ones multiplied |
//! | frequency and presence penalty | tokens of the answer: a number is subtracted for each occurrence, or once |
//! | logit bias | a number is added, for tokens by id |
//! | temperature | logits are divided by the temperature of the request, or of a rule of the grammar; at 0 the best token is taken and the rest is skipped |
//! | top-k | the k best tokens are kept |
//! | top-p | of those, the smallest set of best tokens with the total share p |
//! | min-p | of those, the tokens with at least that share of the best one |
//! | draw | one of them, at random, weighted by share |
//!
//! "Better" means a larger logit, and of equal logits the smaller id, so that nothing depends on the order of a sort.
//!
//! The random numbers are a function of only the seed and the *position* in the answer ([`rng`]): the same request with
//! the same seed gives the same answer, regardless of the rest of the batch, and of whether earlier tokens were forced.
//!
//! Log-probabilities are those of the model among the allowed tokens: after the mask, and before everything else. The
//! *mass* of a mask is the share that the model gives to all allowed tokens together, also before everything else:
//! where it is small, the constraint contradicts the model.
//!
//! A *try* ([`Sampler::attempt`]) reverses the order: everything except the mask comes first, and the token that is
//! then drawn may turn out not to be allowed. See [`maskwright::exact`].

mod mass;
mod params;
pub mod rng;
#[cfg(test)]
mod tests;

use std::{cell::RefCell, cmp::Ordering, collections::BTreeMap, fmt};

use maskwright::exact::{Mode, Place, Prefixes, Row, Step};
use maskwright_vocab::{TokenId, apply};

pub use params::{MAX_TOP_LOGPROBS, Sampling, SamplingError};
use rng::Rng;

/// The state of sampling for one answer.
#[derive(Debug, Clone)]
pub struct Sampler {
    params: Sampling,
    rng: Rng,
    /// The tokens of prompt and answer, with the number of their occurrences in the answer. Empty if there are no
    /// penalties.
    seen: BTreeMap<TokenId, u32>,
    /// The number of tokens of the answer.
    position: u64,
    /// The temperature for the next token, if it differs from the request's.
    wanted: Option<f32>,
}

/// The buffers of a draw. They are as large as the vocabulary, so there is one set for each thread: one for each answer
/// would allocate and free a megabyte with every request.
#[derive(Default)]
struct Room {
    candidates: Vec<Candidate>,
    /// The cumulative weights of the candidates.
    sums: Vec<f64>,
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

/// The chosen token.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The token.
    pub token: TokenId,
    /// The log-probabilities, if requested.
    pub logprobs: Option<Logprobs>,
    /// The natural logarithm of the model's probability of all allowed tokens together, if it was requested and there
    /// was a mask.
    pub mass: Option<f32>,
}

/// The reason why a try has no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untaken {
    /// The model chose a token that is not allowed.
    Rejected,
    /// No token is possible.
    NoToken,
}

/// The model's log-probabilities at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Logprobs {
    /// The natural logarithm of the probability of the chosen token.
    pub chosen: f32,
    /// The most likely tokens, as many as requested, best first.
    pub top: Vec<(TokenId, f32)>,
}

impl Sampler {
    /// Creates a sampler for the answer with this index (of several answers to one prompt).
    ///
    /// # Errors
    ///
    /// Fails if a number is out of range.
    pub fn new(params: &Sampling, prompt: &[TokenId], number: u64) -> Result<Self, SamplingError> {
        params.check()?;
        let mut seen = BTreeMap::new();
        if params.repeats_matter() {
            seen.extend(prompt.iter().map(|&token| (token, 0)));
        }
        Ok(Self {
            rng: Rng::new(params.seed, number),
            params: params.clone(),
            seen,
            position: 0,
            wanted: None,
        })
    }

    /// Sets the temperature for the following tokens; `None` restores that of the request.
    pub fn set_temperature(&mut self, wanted: Option<f32>) {
        self.wanted = wanted;
    }

    /// Returns the temperature that was set, if any.
    pub(crate) fn wanted(&self) -> Option<f32> {
        self.wanted
    }

    fn temperature(&self) -> f32 {
        self.wanted.unwrap_or(self.params.temperature)
    }

    /// Chooses a token from a row of logits, which is modified. The mask has a bit for each token; without a mask, all
    /// tokens are allowed. The token only becomes part of the answer with [`Self::accept`].
    pub fn choose(&mut self, logits: &mut [f32], mask: Option<&[u32]>) -> Result<Choice, NoToken> {
        self.choose_by(logits, mask, |_| {})
    }

    /// Does the same, with a function that changes the logits after the mask was applied.
    pub fn choose_by(
        &mut self,
        logits: &mut [f32],
        mask: Option<&[u32]>,
        weigh: impl FnOnce(&mut [f32]),
    ) -> Result<Choice, NoToken> {
        let mass = mask.filter(|_| self.params.mass).and_then(|words| mass::share(logits, words));
        if let Some(words) = mask {
            apply::mask(logits, words);
        }
        let before = self.params.logprobs.map(|top| (Shares::of(logits, top), logits.to_vec()));
        weigh(logits);
        self.penalise(logits);
        let token = if self.temperature() == 0.0 { best(logits) } else { self.draw(logits) };
        let token = token.ok_or(NoToken)?;
        let logprobs = before.map(|(shares, logits)| Logprobs {
            chosen: shares.log(logits[token.index()]),
            top: shares.top.iter().map(|one| (one.token, shares.log(one.logit))).collect(),
        });
        Ok(Choice { token, logprobs, mass })
    }

    /// Draws a token as the model would without the mask, using what is known about the prefix. Temperature, penalties
    /// and biases apply; top-k, top-p and min-p do not. Also returns the new prefix.
    pub fn attempt(
        &mut self,
        logits: &mut [f32],
        mask: &[u32],
        (prefixes, at, mode): (&mut Prefixes, Option<Place>, Mode),
    ) -> Result<(Choice, Option<Place>), Untaken> {
        let mass = if self.params.mass { mass::share(logits, mask) } else { None };
        let told = self.params.logprobs.map(|_| {
            let mut allowed = logits.to_vec();
            apply::mask(&mut allowed, mask);
            allowed
        });
        self.penalise(logits);
        heat(logits, self.temperature());
        let row = Row::new(logits, mask);
        let (token, place) = match prefixes.step(at, &row, self.rng.at(self.position), mode) {
            Step::Token(token, place) => (token, place),
            Step::Rejected => return Err(Untaken::Rejected),
            Step::Nothing => return Err(Untaken::NoToken),
        };
        let logprobs = self.params.logprobs.zip(told).map(|(top, allowed)| {
            let shares = Shares::of(&allowed, top);
            let chosen = allowed.get(token.index()).map_or(f32::NEG_INFINITY, |logit| shares.log(*logit));
            Logprobs {
                chosen,
                top: shares.top.iter().map(|one| (one.token, shares.log(one.logit))).collect(),
            }
        });
        Ok((Choice { token, logprobs, mass }, place))
    }

    /// Whether every token must be chosen, so that none may be written without asking the model.
    pub(crate) fn asks_for_all(&self) -> bool {
        self.params.mass
    }

    /// Adds a token to the answer, chosen or forced.
    pub fn accept(&mut self, token: TokenId) {
        self.position += 1;
        if self.params.repeats_matter() {
            *self.seen.entry(token).or_default() += 1;
        }
    }

    fn penalise(&self, logits: &mut [f32]) {
        let Sampling { repetition_penalty, frequency_penalty, presence_penalty, .. } = self.params;
        for (token, &count) in &self.seen {
            let Some(logit) = logits.get_mut(token.index()) else { continue };
            if *logit > 0.0 {
                *logit /= repetition_penalty;
            } else {
                *logit *= repetition_penalty;
            }
            if count > 0 {
                *logit -= frequency_penalty * count as f32 + presence_penalty;
            }
        }
        for (token, bias) in &self.params.logit_bias {
            if let Some(logit) = logits.get_mut(token.index()) {
                *logit += bias;
            }
        }
    }

    /// Applies temperature, top-k, top-p and min-p, and draws.
    fn draw(&self, logits: &mut [f32]) -> Option<TokenId> {
        heat(logits, self.temperature());
        ROOM.with_borrow_mut(|room| {
            room.candidates.clear();
            room.candidates.extend(candidates_of(logits));
            keep(&mut room.candidates, &self.params);
            pick(room, self.rng.at(self.position))
        })
    }
}

/// Divides logits by a temperature that is not 0. The best logit becomes 0, so that none becomes infinite, however low
/// the temperature is.
fn heat(logits: &mut [f32], temperature: f32) {
    let best = logits.iter().copied().filter(|logit| logit.is_finite()).fold(f32::NEG_INFINITY, f32::max);
    if best == f32::NEG_INFINITY || temperature.to_bits() == 1f32.to_bits() {
        return;
    }
    for logit in logits {
        *logit = (*logit - best) / temperature;
    }
}

/// A token that may be drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    logit: f32,
    token: TokenId,
}

impl Candidate {
    /// Orders better candidates first.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "sorts call it with references")]
    fn order(left: &Self, right: &Self) -> Ordering {
        right.logit.total_cmp(&left.logit).then(left.token.cmp(&right.token))
    }

    /// Returns its weight relative to the best candidate.
    fn weight(self, best: f32) -> f64 {
        // PERF: single precision is accurate to seven digits, and half of the time of a draw from 50,000 tokens is
        // spent here.
        f64::from((self.logit - best).exp())
    }
}

/// Returns the tokens whose logits are finite.
fn candidates_of(logits: &[f32]) -> impl Iterator<Item = Candidate> {
    let all = (0..).zip(logits).map(|(id, &logit)| Candidate { logit, token: TokenId(id) });
    all.filter(|one| one.logit.is_finite())
}

fn best(logits: &[f32]) -> Option<TokenId> {
    candidates_of(logits).min_by(Candidate::order).map(|one| one.token)
}

/// Keeps the candidates that pass top-k, top-p and min-p.
fn keep(candidates: &mut Vec<Candidate>, params: &Sampling) {
    let Some(best) = candidates.iter().map(|one| one.logit).max_by(f32::total_cmp) else { return };
    let k = params.top_k as usize;
    if k > 0 && k < candidates.len() {
        candidates.select_nth_unstable_by(k - 1, Candidate::order);
        candidates.truncate(k);
    }
    if params.top_p < 1.0 {
        let kept = nucleus(candidates, best, f64::from(params.top_p));
        candidates.truncate(kept);
    }
    if params.min_p > 0.0 {
        candidates.retain(|one| one.weight(best) >= f64::from(params.min_p));
    }
}

/// Returns how many of the best candidates reach the share p. Afterwards these are at the beginning.
///
/// PERF: nearly always a few hundred are enough, so only those are sorted; if not, four times as many are.
fn nucleus(candidates: &mut [Candidate], best: f32, p: f64) -> usize {
    // In the order of ids, so that the sum does not depend on earlier sorting.
    candidates.sort_unstable_by_key(|one| one.token);
    let goal = p * candidates.iter().map(|one| one.weight(best)).sum::<f64>();
    let mut sorted = 256;
    loop {
        let cut = sorted.min(candidates.len());
        if cut < candidates.len() {
            candidates.select_nth_unstable_by(cut, Candidate::order);
        }
        candidates[..cut].sort_unstable_by(Candidate::order);
        let mut sum = 0.0;
        for (index, one) in candidates[..cut].iter().enumerate() {
            sum += one.weight(best);
            if sum >= goal {
                return index + 1;
            }
        }
        if cut == candidates.len() {
            return cut;
        }
        sorted *= 4;
    }
}

/// Returns the candidate at a place between 0 and 1 if their shares are lined up by id.
fn pick(room: &mut Room, place: f64) -> Option<TokenId> {
    let Room { candidates: by_id, sums } = room;
    let best = by_id.iter().map(|one| one.logit).max_by(f32::total_cmp)?;
    by_id.sort_unstable_by_key(|one| one.token);
    let mut sum = 0.0;
    sums.clear();
    sums.extend(by_id.iter().map(|one| {
        sum += one.weight(best);
        sum
    }));
    let goal = place * sum;
    let found = sums.partition_point(|&sum| sum <= goal);
    // Because of rounding, the goal may be at the very end; then the last candidate with any weight is taken.
    let last = || by_id.iter().rev().find(|one| one.weight(best) > 0.0);
    by_id.get(found).or_else(last).map(|one| one.token)
}

/// The reference for log-probabilities, and the best tokens.
struct Shares {
    /// The logarithm of the sum of all weights.
    total: f64,
    top: Vec<Candidate>,
}

impl Shares {
    fn of(logits: &[f32], top: u8) -> Self {
        let mut candidates: Vec<Candidate> = candidates_of(logits).collect();
        let best = candidates.iter().map(|one| one.logit).max_by(f32::total_cmp).unwrap_or(0.0);
        let sum: f64 = candidates.iter().map(|one| one.weight(best)).sum();
        let top = usize::from(top);
        if top < candidates.len() {
            candidates.select_nth_unstable_by(top, Candidate::order);
            candidates.truncate(top);
        }
        candidates.sort_unstable_by(Candidate::order);
        Self { total: f64::from(best) + sum.ln(), top: candidates }
    }

    fn log(&self, logit: f32) -> f32 {
        (f64::from(logit) - self.total) as f32
    }
}

/// No token is possible: the mask forbids all, or no logit is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoToken;

impl fmt::Display for NoToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no token can come next: the mask forbids all of them, or the model's logits are not numbers",
        )
    }
}

impl std::error::Error for NoToken {}
