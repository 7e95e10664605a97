//! From a row of logits to a token.
//!
//! Always in this order, and each step only if it was asked for:
//!
//! | step | what it does |
//! |---|---|
//! | mask | tokens that the constraint forbids get −∞; nothing below can bring them back |
//! | weights | a weighted grammar adds what it thinks of the best tokens, and leaves the others out |
//! | repetition penalty | tokens of the prompt and of the answer: positive logits are divided, negative ones multiplied |
//! | frequency and presence penalty | tokens of the answer: minus a number for each time, minus a number once |
//! | logit bias | plus a number, for tokens by their id |
//! | temperature | logits are divided by that of the request, or by the one that a rule of the grammar wants; at 0 the best token is taken and the rest is skipped |
//! | top-k | the k best tokens are kept |
//! | top-p | of those, the fewest best that together have the share p |
//! | min-p | of those, the ones that are at least that share of the best |
//! | draw | one of them, by chance, weighed by their shares |
//!
//! "Better" is a larger logit, and of equal logits the smaller id, so that nothing depends on the order of a sort.
//!
//! Chance is a function of the seed and of the *position* in the answer, and of nothing else ([`rng`]): the same request
//! with the same seed gives the same answer, whatever else is in the batch, and whether or not tokens before were
//! forced.
//!
//! Log-probabilities are those of the model among the allowed tokens: after the mask, and before everything else. The *mass* of a mask is the share that the model gives to
//! the allowed tokens together, before everything else, too: where it is small, the constraint fights the model.
//!
//! A *try* ([`Sampler::attempt`]) turns the order around: everything but the mask comes first, and what is drawn then may turn out not to be allowed. See [`maskwright::exact`].

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
    /// Tokens of prompt and answer, with how often they stand in the answer. Empty if no penalty wants to know.
    seen: BTreeMap<TokenId, u32>,
    /// How many tokens the answer has.
    position: u64,
    /// The temperature of the next token, if it is not that of all.
    wanted: Option<f32>,
}

/// What a draw needs for its time. It is as large as the vocabulary, so there is one for all answers of a thread: one for each would be a
/// megabyte that comes and goes with every request.
#[derive(Default)]
struct Room {
    candidates: Vec<Candidate>,
    /// The weights of candidates, added up.
    sums: Vec<f64>,
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

/// A token that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The token.
    pub token: TokenId,
    /// What the model thought of it, if log-probabilities were asked for.
    pub logprobs: Option<Logprobs>,
    /// The natural logarithm of the model's probability of all allowed tokens together, if that was asked for and there was a mask.
    pub mass: Option<f32>,
}

/// Why a try has no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untaken {
    /// The model wrote what is not allowed.
    Rejected,
    /// No token is possible.
    NoToken,
}

/// What a model thought of the tokens at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Logprobs {
    /// The natural logarithm of the probability of the token that was taken.
    pub chosen: f32,
    /// The most likely tokens, as many as were asked for, best first.
    pub top: Vec<(TokenId, f32)>,
}

impl Sampler {
    /// A sampler for the answer with this number (of several to one prompt).
    ///
    /// # Errors
    ///
    /// If a number is out of its range.
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

    /// From now on tokens are drawn at this temperature, whatever the request says; or at that of the request again.
    pub fn set_temperature(&mut self, wanted: Option<f32>) {
        self.wanted = wanted;
    }

    /// The temperature that was set, if one was.
    pub(crate) fn wanted(&self) -> Option<f32> {
        self.wanted
    }

    fn temperature(&self) -> f32 {
        self.wanted.unwrap_or(self.params.temperature)
    }

    /// Chooses a token from a row of logits, which is changed on the way. The mask has a bit for each token; without one, all are
    /// allowed. The choice is not yet a part of the answer; see [`Self::accept`].
    pub fn choose(&mut self, logits: &mut [f32], mask: Option<&[u32]>) -> Result<Choice, NoToken> {
        self.choose_by(logits, mask, |_| {})
    }

    /// The same, with logits that somebody changes behind the mask.
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

    /// Draws a token as the model would without the mask, by what is known of the prefix that it stands behind. Temperature, penalties and biases count; top-k, top-p and min-p
    /// do not. Says which prefix the text has then.
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

    /// Takes note of a token of the answer, chosen or forced.
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

    /// Temperature, top-k, top-p, min-p, and the draw.
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

/// Divides logits by a temperature that is not 0. The best becomes 0, so that none becomes infinite, however low the temperature is.
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
    /// The better one first.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "sorts call it with references")]
    fn order(left: &Self, right: &Self) -> Ordering {
        right.logit.total_cmp(&left.logit).then(left.token.cmp(&right.token))
    }

    /// Its weight beside one of weight 1.
    fn weight(self, best: f32) -> f64 {
        // PERF: single precision is accurate to seven digits, and half of the time of a draw from 50,000 tokens is spent here.
        f64::from((self.logit - best).exp())
    }
}

/// The tokens that have a chance at all. What is not a number has none.
fn candidates_of(logits: &[f32]) -> impl Iterator<Item = Candidate> {
    let all = (0..).zip(logits).map(|(id, &logit)| Candidate { logit, token: TokenId(id) });
    all.filter(|one| one.logit.is_finite())
}

fn best(logits: &[f32]) -> Option<TokenId> {
    candidates_of(logits).min_by(Candidate::order).map(|one| one.token)
}

/// Keeps the candidates that top-k, top-p and min-p leave.
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

/// How many of the best candidates reach the share p. They stand first afterwards.
///
/// PERF: nearly always a few hundred are enough, so that only those are sorted; if not, four times as many are.
fn nucleus(candidates: &mut [Candidate], best: f32, p: f64) -> usize {
    // In the order of ids, so that the sum does not depend on what was sorted before.
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

/// The candidate at a place between 0 and 1, if they are laid side by side, by their ids.
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
    // Rounding may leave the goal at the very end; then it is the last one that has any weight.
    let last = || by_id.iter().rev().find(|one| one.weight(best) > 0.0);
    by_id.get(found).or_else(last).map(|one| one.token)
}

/// What log-probabilities are relative to, and the best tokens.
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

/// No token has a chance: the mask forbids all, or no logit is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoToken;

impl fmt::Display for NoToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no token can come next: the mask forbids all of them, or the model's logits are no numbers",
        )
    }
}

impl std::error::Error for NoToken {}
