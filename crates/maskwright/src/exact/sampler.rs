//! Draws exact samples, given any function that returns logits.

use core::fmt;

use hashbrown::HashMap;
use maskwright_engine::{Budget, BudgetError, MatchError};
use maskwright_vocab::{TokenId, Vocabulary};

use super::{Known, Mode, Place, Prefixes, Row, Step};
use crate::backend::{Matching, Status};

/// The maximum number of tries for one draw.
pub const MAX_TRIES: usize = 10_000;

/// How texts are drawn.
///
/// ```
/// use maskwright::exact;
///
/// // Few tries of short texts, and the defaults for the rest.
/// let options = exact::Options { tries: 16, max_tokens: 32, ..exact::Options::default() };
/// assert!(options.tries <= exact::MAX_TRIES);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The maximum number of tries for one draw, from 1 to [`MAX_TRIES`].
    pub tries: usize,
    /// The maximum number of tokens of a text, including the one that ends it. A text that does not fit counts as
    /// invalid.
    pub max_tokens: usize,
    /// The maximum size of cached logits in bytes. Cached logits are not requested from the model again.
    pub kept_bytes: usize,
}

impl Default for Options {
    /// 64 tries, 256 tokens, 64 MiB.
    fn default() -> Self {
        Self { tries: 64, max_tokens: 256, kept_bytes: 64 << 20 }
    }
}

/// Draws texts from a model's distribution, given that they are valid. It learns: the more texts were drawn, the fewer
/// tries a draw takes.
///
/// ```
/// use std::sync::Arc;
/// use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder, exact};
///
/// let mut vocabulary = VocabularyBuilder::new();
/// for (id, token) in (0..).zip(["a", "b", "x", "y"]) {
///     vocabulary.token(TokenId(id), token.as_bytes())?;
/// }
/// vocabulary.special(TokenId(4), "<end>")?.eos(TokenId(4));
/// let vocabulary = Arc::new(vocabulary.finish()?);
/// let compiler = Compiler::new(vocabulary.clone());
/// let matcher = compiler.compile(&Constraint::choice(["ax", "by"]))?.matcher();
///
/// let mut sampler = exact::Sampler::new(matcher, &vocabulary, exact::Options::default())?;
/// // A model that likes to begin with `a`, and then would rather not write `x`.
/// let next_logits = |text: &[TokenId]| {
///     Ok::<_, std::convert::Infallible>(match text {
///         [] => vec![2.0, 0.0, -9.0, -9.0, -9.0],
///         [TokenId(0)] => vec![0.0, 0.0, -4.0, 0.0, 0.0],
///         [TokenId(1)] => vec![-9.0, -9.0, -9.0, 0.0, -9.0],
///         _ => vec![-9.0, -9.0, -9.0, -9.0, 0.0],
///     })
/// };
/// let mut seed = 1_u64;
/// let mut chance = || {
///     seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
///     (seed >> 11) as f64 / (1_u64 << 53) as f64
/// };
/// let drawn = sampler.draw(next_logits, &mut chance)?;
/// assert!(drawn.is_exact);
/// assert_eq!(drawn.tokens.len(), 3); // two letters and the end
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    start: Box<dyn Matching>,
    /// Whether the vocabulary has tokens that end a text. If not, a text ends where nothing can follow.
    has_end: bool,
    words: usize,
    options: Options,
    prefixes: Prefixes,
    kept: HashMap<Place, Row>,
    kept_bytes: usize,
}

/// A text that was drawn.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::exact;
/// # let vocabulary = compiler.vocabulary().clone();
/// let matcher = compiler.compile(&Constraint::choice(["a", "b"]))?.matcher();
/// let mut sampler = exact::Sampler::new(matcher, &vocabulary, exact::Options::default())?;
/// let even = |_: &[TokenId]| Ok::<_, std::convert::Infallible>(vec![0.0; 257]); // a model without an opinion
/// let drawn = sampler.draw(even, || 0.5)?;
/// assert!(drawn.tokens.len() == 2 && drawn.tries >= 1); // a letter and the end
/// let known = drawn.known;
/// assert!((known.valid + known.lost + known.unaccounted - 1.0).abs() < 1e-9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Its tokens, including the one that ends it.
    pub tokens: Vec<TokenId>,
    /// Whether it was drawn from the model's distribution over valid texts. If not, all tries failed, and it was drawn
    /// under the mask, weighted by what was learned: it is valid, but its distribution is not exact.
    pub is_exact: bool,
    /// The number of tries.
    pub tries: usize,
    /// How often the model was called.
    pub asked: usize,
    /// What is known about the model's mass.
    pub known: Known,
}

/// The reason why a sampler cannot be created.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::exact;
/// let matcher = compiler.compile(&Constraint::choice(["a", "b"]))?.matcher();
/// let none = exact::Options { tries: 0, ..exact::Options::default() };
/// let refused = exact::Sampler::new(matcher, compiler.vocabulary(), none).unwrap_err();
/// assert_eq!(refused, exact::SetupError::Tries(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetupError {
    /// The number of tries is out of range.
    Tries(usize),
    /// No text can be completed within this many tokens, or it is unknown whether one can.
    Budget(BudgetError),
    /// The backend of the constraint does not support token budgets.
    Backend,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tries(tries) => write!(f, "there are {tries} tries, but there must be 1 to {MAX_TRIES}"),
            Self::Budget(error) => write!(f, "max_tokens cannot be kept: {error}"),
            Self::Backend => f.write_str(
                "the backend of the constraint cannot keep a budget of tokens; use the backend maskwright",
            ),
        }
    }
}

impl std::error::Error for SetupError {}

/// The reason why a draw failed.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::exact;
/// # let vocabulary = compiler.vocabulary().clone();
/// let matcher = compiler.compile(&Constraint::choice(["a", "b"]))?.matcher();
/// let mut sampler = exact::Sampler::new(matcher, &vocabulary, exact::Options::default())?;
/// let broken = sampler.draw(|_: &[TokenId]| Err::<Vec<f32>, _>("the model is gone"), || 0.5);
/// assert!(matches!(broken, Err(exact::DrawError::Model("the model is gone"))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DrawError<E> {
    /// The model returned no logits.
    Model(E),
    /// The constraint exceeded a limit, or the work was cancelled.
    Match(MatchError),
    /// No allowed token has a finite logit.
    NoToken,
}

impl<E: fmt::Display> fmt::Display for DrawError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => write!(f, "{error}"),
            Self::Match(error) => write!(f, "{error}"),
            Self::NoToken => {
                f.write_str("no token can come next: no allowed token has a logit that is a number")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for DrawError<E> {}

/// The result of a try.
enum Try {
    Text(Vec<TokenId>),
    Rejected,
    Nothing,
}

impl Sampler {
    /// Creates a sampler for the texts that a matcher allows from its current state.
    pub fn new(
        mut matcher: impl Matching + 'static,
        vocabulary: &Vocabulary,
        options: Options,
    ) -> Result<Self, SetupError> {
        if options.tries == 0 || options.tries > MAX_TRIES {
            return Err(SetupError::Tries(options.tries));
        }
        let budget = Budget::new(u32::try_from(options.max_tokens).unwrap_or(u32::MAX));
        let engine = matcher.as_engine().ok_or(SetupError::Backend)?;
        engine.set_budget(Some(budget)).map_err(SetupError::Budget)?;
        Ok(Self {
            start: Box::new(matcher),
            has_end: !vocabulary.eos().is_empty(),
            words: vocabulary.size().div_ceil(32),
            options,
            prefixes: Prefixes::new(),
            kept: HashMap::new(),
            kept_bytes: 0,
        })
    }

    /// Returns what is known about the model's mass.
    pub fn known(&self) -> Known {
        self.prefixes.known()
    }

    /// Draws a text. `next_logits` returns the logits after some tokens, and `chance` returns random numbers that are
    /// at least 0 and less than 1.
    pub fn draw<E>(
        &mut self,
        mut next_logits: impl FnMut(&[TokenId]) -> Result<Vec<f32>, E>,
        mut chance: impl FnMut() -> f64,
    ) -> Result<Drawn, DrawError<E>> {
        let mut asked = 0;
        let mut next = |tokens: &[TokenId]| {
            asked += 1;
            next_logits(tokens)
        };
        let mut tries = 0;
        while tries < self.options.tries {
            tries += 1;
            match self.once(Mode::Try, &mut next, &mut chance)? {
                Try::Text(tokens) => {
                    let known = self.prefixes.known();
                    return Ok(Drawn { tokens, is_exact: true, tries, asked, known });
                }
                Try::Rejected => {}
                // Every further try would end here, too.
                Try::Nothing => break,
            }
        }
        match self.once(Mode::Masked, &mut next, &mut chance)? {
            Try::Text(tokens) => {
                let known = self.prefixes.known();
                Ok(Drawn { tokens, is_exact: false, tries, asked, known })
            }
            Try::Rejected | Try::Nothing => Err(DrawError::NoToken),
        }
    }

    fn once<E>(
        &mut self,
        mode: Mode,
        next_logits: &mut impl FnMut(&[TokenId]) -> Result<Vec<f32>, E>,
        chance: &mut impl FnMut() -> f64,
    ) -> Result<Try, DrawError<E>> {
        let result = self.walk(mode, next_logits, chance);
        self.prefixes.learn();
        result
    }

    fn walk<E>(
        &mut self,
        mode: Mode,
        next_logits: &mut impl FnMut(&[TokenId]) -> Result<Vec<f32>, E>,
        chance: &mut impl FnMut() -> f64,
    ) -> Result<Try, DrawError<E>> {
        let mut matcher = self.start.fork();
        let mut at = Some(self.prefixes.root());
        let mut tokens = Vec::new();
        loop {
            let asked;
            let row = if let Some(row) = at.and_then(|at| self.kept.get(&at)) {
                row
            } else {
                asked = self.ask(&mut *matcher, &tokens, next_logits)?;
                self.keep(at, &asked);
                &asked
            };
            match self.prefixes.step(at, row, chance(), mode) {
                Step::Token(token, place) => {
                    matcher.accept(token).map_err(DrawError::Match)?;
                    tokens.push(token);
                    at = place;
                }
                Step::Rejected => return Ok(Try::Rejected),
                Step::Nothing => return Ok(Try::Nothing),
            }
            let is_over = match matcher.status() {
                Status::Terminated => true,
                Status::Stopped => !self.has_end,
                Status::Open | Status::Accepting => false,
            };
            if is_over {
                self.prefixes.end(at);
                return Ok(Try::Text(tokens));
            }
        }
    }

    fn ask<E>(
        &self,
        matcher: &mut dyn Matching,
        tokens: &[TokenId],
        next_logits: &mut impl FnMut(&[TokenId]) -> Result<Vec<f32>, E>,
    ) -> Result<Row, DrawError<E>> {
        let logits = next_logits(tokens).map_err(DrawError::Model)?;
        let mut words = vec![0; self.words];
        matcher.fill_mask(&mut words).map_err(DrawError::Match)?;
        Ok(Row::new(&logits, &words))
    }

    fn keep(&mut self, at: Option<Place>, row: &Row) {
        let Some(at) = at else { return };
        let bytes = row.heap_bytes() + size_of::<(Place, Row)>();
        if self.kept_bytes + bytes <= self.options.kept_bytes {
            self.kept_bytes += bytes;
            self.kept.insert(at, row.clone());
        }
    }
}
