//! Scores of a weighted grammar, for use beside a mask.
//!
//! The mask engine computes in a microsecond which tokens may come. A weighted grammar adds how likely it finds each of
//! them, log P(token | text so far). That is needed only for tokens that have a chance: the model's best few.
//! [`Weights`] is what requests share, a [`Scorer`] is the state of one text, and [`Guidance`] is the influence of the
//! grammar.
//!
//! ```
//! use std::sync::Arc;
//! use maskwright_vocab::{TokenId, VocabularyBuilder};
//! use maskwright_weighted::{Guidance, Options, Pcfg, Weights};
//!
//! let mut vocabulary = VocabularyBuilder::new();
//! for (id, token) in (0..).zip(["tea", "coffee", "milk"]) {
//!     vocabulary.token(TokenId(id), token.as_bytes())?;
//! }
//! vocabulary.special(TokenId(3), "<end>")?.eos(TokenId(3));
//! let vocabulary = Arc::new(vocabulary.finish()?);
//! let grammar = Pcfg::parse("S -> tea [0.5] | coffee [0.4] | milk [0.1]", &Options::default()).unwrap();
//! let mut scorer = Arc::new(Weights::new(grammar).unwrap()).scorer(vocabulary);
//!
//! let mut logits = [1.0, 0.9, 0.8, f32::NEG_INFINITY];           // what the model says, under a mask
//! scorer.weigh(&mut logits, &Guidance::new(2.0, 2)?)?;           // the two best, + 2 · log P
//! assert!((logits[0] - (1.0 + 2.0 * 0.5f32.ln())).abs() < 1e-6);
//! assert!((logits[1] - (0.9 + 2.0 * 0.4f32.ln())).abs() < 1e-6);
//! assert_eq!(logits[2], f32::NEG_INFINITY);                      // not among the two best
//! scorer.accept(TokenId(1))?;
//! assert!((scorer.prefix_logprob() - 0.4f64.ln()).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Numerical range
//!
//! Plain probabilities with a scale for each column are fast, but lose everything that is 10²⁸⁰ times less likely than
//! the rest at the same position. A text can turn to exactly that: two hundred bytes that a literal explains better,
//! and then one that only a pattern allows. The mask allows that byte, so it must have a score. As soon as a weight is
//! that faint, the scorer reads its text again with logarithms and continues with those.

use core::cmp::Ordering;
use core::fmt;
use std::sync::Arc;

use maskwright_grammar::Diagnostic;
use maskwright_vocab::{TokenId, Vocabulary};
use serde_json::{Value, json};

use crate::adapter::Adapter;
use crate::bytes::ByteParser;
use crate::pcfg::{Pcfg, RuleId};
use crate::semiring::{Log, Real};
use crate::train::{Counts, expected_counts_of_text};
use crate::tree::Tree;
use crate::viterbi::best_parse_of_text;

/// The default number of steps that one call may take; a step takes about twenty nanoseconds.
pub const STEPS: u64 = 2_000_000;

/// The number of items that the chart of one text may keep, about forty bytes each.
pub const ITEMS: u64 = 4_000_000;

/// A weighted grammar, ready for any number of texts.
#[derive(Debug)]
pub struct Weights {
    grammar: Arc<Pcfg>,
    /// A parser at the beginning of a text.
    real: ByteParser<Real>,
}

/// The evaluation of a finished text by a weighted grammar.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The logarithm of the probability of all texts with this prefix.
    pub prefix_logprob: f64,
    /// The logarithm of the probability of the text itself; minus infinity if it is not complete.
    pub logprob: f64,
    /// Its best derivation, if it is complete.
    pub best_parse: Option<Tree>,
    /// The expected number of uses of each rule in its derivations, if it is complete.
    pub counts: Option<Counts>,
}

impl Weights {
    /// Prepares a grammar. An error names a loop whose weights do not converge.
    pub fn new(grammar: Pcfg) -> Result<Self, Diagnostic> {
        let real = ByteParser::new(&grammar)?;
        Ok(Self { grammar: Arc::new(grammar), real })
    }

    /// Returns the grammar.
    pub fn grammar(&self) -> &Arc<Pcfg> {
        &self.grammar
    }

    /// Creates the scorer of a text that has not begun.
    pub fn scorer(self: &Arc<Self>, vocabulary: Arc<Vocabulary>) -> Scorer {
        let adapter = Adapter::behind(self.real.clone(), Arc::clone(&self.grammar), vocabulary);
        Scorer {
            weights: Arc::clone(self),
            adapter: Numbers::Real(adapter),
            tokens: Vec::new(),
            steps: STEPS,
        }
    }

    /// Evaluates a finished text. It takes at most `steps` steps ([`STEPS`]), and more are an error.
    ///
    /// ```
    /// use maskwright_weighted::{Options, Pcfg, STEPS, Weights};
    /// let grammar = Pcfg::parse("S -> a S [0.25] | b [0.75]", &Options::default()).unwrap();
    /// let judgement = Weights::new(grammar).unwrap().judge(b"aab", STEPS).unwrap();
    /// assert!((judgement.logprob.exp() - 0.25 * 0.25 * 0.75).abs() < 1e-12);
    /// assert_eq!(judgement.counts.unwrap().rules.len(), 2);
    /// ```
    pub fn judge(&self, text: &[u8], steps: u64) -> Result<Judgement, Diagnostic> {
        let mut parser = ByteParser::<Log>::new(&self.grammar)?;
        let is_complete = parser.read_within(text, steps, |_| {})?;
        let is_read = parser.position() == text.len();
        Ok(Judgement {
            prefix_logprob: if is_read { parser.prefix_logprob() } else { f64::NEG_INFINITY },
            logprob: if is_complete { parser.sentence_logprob() } else { f64::NEG_INFINITY },
            best_parse: best_parse_of_text(&self.grammar, text, steps)?,
            counts: expected_counts_of_text(&self.grammar, text, steps)?,
        })
    }

    /// Returns the memory in bytes, approximately.
    pub fn heap_bytes(&self) -> usize {
        self.real.heap_bytes() + self.grammar.heap_bytes()
    }
}

impl Judgement {
    /// Converts to JSON, which has no infinity: `null` represents it, and everything that an incomplete text does not
    /// have. Rules that are not used are left out of `expected_counts`.
    pub fn json(&self, grammar: &Pcfg) -> Value {
        let finite = |log: f64| log.is_finite().then_some(log);
        let counts = self.counts.as_ref().map(|counts| {
            let used = (0..).map(RuleId).zip(&counts.rules).filter(|(_, count)| **count > 0.0);
            used.map(|(rule, count)| json!({"rule": grammar.show_rule(rule), "count": count}))
                .collect::<Vec<_>>()
        });
        json!({
            "prefix_logprob": finite(self.prefix_logprob),
            "logprob": finite(self.logprob),
            "best_parse": self.best_parse.as_ref().map(|tree| tree.brackets(grammar)),
            "expected_counts": counts,
        })
    }
}

/// The influence of a grammar beside a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guidance {
    lambda: f64,
    top_k: usize,
}

/// The error for an invalid guidance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuidanceError(f64);

impl Guidance {
    /// The default number of best tokens that are scored.
    pub const TOP_K: usize = 64;
    /// The greatest λ.
    pub const GREATEST: f64 = 1000.0;

    /// Creates a guidance. `lambda` is the factor of the grammar's log probabilities: with 0 the grammar is ignored,
    /// with 1 it counts as much as the model. `top_k` is the number of the model's best tokens that are scored; the
    /// others are removed. With 0 all are scored, which is slow.
    ///
    /// ```
    /// use maskwright_weighted::Guidance;
    /// assert_eq!(Guidance::new(0.5, 64)?.lambda(), 0.5);
    /// assert!(Guidance::new(f64::NAN, 64).unwrap_err().to_string().contains("lambda is NaN"));
    /// assert!(Guidance::new(-1.0, 64).is_err());
    /// # Ok::<(), maskwright_weighted::GuidanceError>(())
    /// ```
    pub fn new(lambda: f64, top_k: usize) -> Result<Self, GuidanceError> {
        if !(0.0..=Self::GREATEST).contains(&lambda) {
            return Err(GuidanceError(lambda));
        }
        Ok(Self { lambda, top_k })
    }

    /// Returns the factor of the log probabilities.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }

    /// Returns the number of tokens that are scored; 0 means all.
    pub fn top_k(&self) -> usize {
        self.top_k
    }
}

impl Default for Guidance {
    fn default() -> Self {
        Self { lambda: 1.0, top_k: Self::TOP_K }
    }
}

impl fmt::Display for GuidanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lambda is {}, and must be a number from 0 to {}", self.0, Guidance::GREATEST)
    }
}

impl std::error::Error for GuidanceError {}

/// The state of one text, which scores the tokens that may come next.
#[derive(Clone, Debug)]
pub struct Scorer {
    weights: Arc<Weights>,
    adapter: Numbers,
    /// The accepted tokens, to read them again with logarithms.
    tokens: Vec<TokenId>,
    steps: u64,
}

#[derive(Clone, Debug)]
enum Numbers {
    Real(Adapter<Real>),
    Log(Adapter<Log>),
}

/// The reason why there are no scores. The scorer is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScoreError {
    /// The grammar does not allow this token here.
    Token(TokenId),
    /// More than this number of steps would be needed, or more memory than allowed.
    Limit(u64),
    /// The tables of the grammar cannot be computed with logarithms, for this reason.
    Tables(String),
}

impl fmt::Display for ScoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(token) => write!(f, "the weighted grammar does not allow token {} here", token.0),
            Self::Limit(steps) => write!(
                f,
                "the weighted grammar is too ambiguous for a text of this length: it takes more than {steps} steps or {ITEMS} items; make it less ambiguous, or score fewer tokens"
            ),
            Self::Tables(reason) => {
                write!(f, "the weighted grammar cannot continue with logarithms: {reason}")
            }
        }
    }
}

impl std::error::Error for ScoreError {}

/// Evaluates an expression for either kind of numbers.
macro_rules! with {
    ($numbers:expr, $adapter:ident => $what:expr) => {
        match $numbers {
            Numbers::Real($adapter) => $what,
            Numbers::Log($adapter) => $what,
        }
    };
}

impl Scorer {
    /// Sets the limit of steps for each call, in place of [`STEPS`].
    #[must_use]
    pub fn with_steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }

    /// Returns log P(token | text so far) for each of these tokens, in their order: the change of the logarithm of the
    /// prefix probability, or for an end token the change if the text ends. Minus infinity for a token that may not
    /// come.
    pub fn scores(&mut self, tokens: &[TokenId]) -> Result<Vec<f64>, ScoreError> {
        self.limited(|numbers| with!(numbers, adapter => adapter.scores_of(tokens)))
    }

    /// Accepts a token.
    pub fn accept(&mut self, token: TokenId) -> Result<(), ScoreError> {
        let took = self.limited(|numbers| with!(numbers, adapter => adapter.step_with_token(token)))?;
        if !took {
            return Err(ScoreError::Token(token));
        }
        self.tokens.push(token);
        Ok(())
    }

    /// Takes back the last tokens, at most all of them.
    pub fn rollback(&mut self, tokens: usize) {
        with!(&mut self.adapter, adapter => adapter.rollback(tokens));
        self.tokens.truncate(self.tokens.len().saturating_sub(tokens));
    }

    /// Goes back to the beginning.
    pub fn reset(&mut self) {
        self.rollback(self.tokens.len());
    }

    /// Returns how many tokens have been accepted.
    pub fn position(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the logarithm of the probability of all texts with this prefix.
    pub fn prefix_logprob(&self) -> f64 {
        with!(&self.adapter, adapter => adapter.parser().prefix_logprob())
    }

    /// Returns the logarithm of the probability of this text; minus infinity if it is not complete.
    pub fn logprob(&self) -> f64 {
        with!(&self.adapter, adapter => adapter.parser().sentence_logprob())
    }

    /// Returns the grammar.
    pub fn weights(&self) -> &Arc<Weights> {
        &self.weights
    }

    /// Adds λ · log P(token | text so far) to the logits of the best tokens, and removes the others. The mask must have
    /// been applied before: tokens of minus infinity may not come, and stay so. Of equal logits, the smaller token is
    /// better. Returns how many tokens are left; with λ = 0 nothing changes.
    pub fn weigh(&mut self, logits: &mut [f32], guidance: &Guidance) -> Result<usize, ScoreError> {
        let mut best: Vec<(f32, TokenId)> =
            logits.iter().copied().zip((0..).map(TokenId)).filter(|entry| entry.0.is_finite()).collect();
        if guidance.lambda == 0.0 {
            return Ok(best.len());
        }
        let order =
            |a: &(f32, TokenId), b: &(f32, TokenId)| -> Ordering { b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)) };
        if (1..best.len()).contains(&guidance.top_k) {
            best.select_nth_unstable_by(guidance.top_k - 1, order);
            best.truncate(guidance.top_k);
        }
        let tokens: Vec<TokenId> = best.iter().map(|entry| entry.1).collect();
        let scores = self.scores(&tokens)?;
        logits.fill(f32::NEG_INFINITY);
        let mut left = 0;
        for ((logit, token), score) in best.into_iter().zip(scores) {
            let weighed = (f64::from(logit) + guidance.lambda * score) as f32;
            if score > f64::NEG_INFINITY {
                // A value beyond the range of a float is still allowed.
                logits[token.0 as usize] = weighed.max(f32::MIN);
                left += 1;
            }
        }
        Ok(left)
    }

    /// Runs an operation within the limits. If a weight gets faint, the operation is repeated with logarithms, which
    /// are used from then on.
    fn limited<T>(&mut self, mut what: impl FnMut(&mut Numbers) -> T) -> Result<T, ScoreError> {
        let steps = self.steps;
        let limited = |numbers: &mut Numbers, what: &mut dyn FnMut(&mut Numbers) -> T| {
            with!(&mut *numbers, adapter => adapter.parser_mut().set_limits(steps, ITEMS));
            let done = what(numbers);
            let is_exhausted = with!(&*numbers, adapter => adapter.parser().is_exhausted());
            if is_exhausted { Err(ScoreError::Limit(steps)) } else { Ok(done) }
        };
        let done = limited(&mut self.adapter, &mut what);
        let Numbers::Real(adapter) = &mut self.adapter else { return done };
        if !adapter.parser().is_faint() {
            return done;
        }
        // A token that was just accepted is not in `tokens` yet, and is accepted again.
        adapter.rollback(adapter.tokens() - self.tokens.len());
        let mut precise = self.precise()?;
        let done = limited(&mut precise, &mut what);
        self.adapter = precise;
        done
    }

    /// Reads the same text with logarithms.
    fn precise(&self) -> Result<Numbers, ScoreError> {
        let Numbers::Real(adapter) = &self.adapter else { return Ok(self.adapter.clone()) };
        let parser = ByteParser::<Log>::new(&self.weights.grammar)
            .map_err(|error| ScoreError::Tables(error.to_string()))?;
        let mut precise =
            Adapter::behind(parser, Arc::clone(&self.weights.grammar), Arc::clone(adapter.vocabulary()));
        for token in &self.tokens {
            precise.parser_mut().set_limits(self.steps, ITEMS);
            if !precise.step_with_token(*token) {
                let is_exhausted = precise.parser().is_exhausted();
                return Err(if is_exhausted {
                    ScoreError::Limit(self.steps)
                } else {
                    ScoreError::Token(*token)
                });
            }
        }
        Ok(Numbers::Log(precise))
    }
}
