//! The interface between constraints and the scheduler.
//!
//! A [`Guide`] follows one answer: it computes which tokens may come next, accepts the chosen token, and knows when the
//! answer is finished. Matchers are guides. The scheduler knows nothing else about constraints, and an answer without a
//! constraint costs nothing.

use std::{fmt, sync::Arc};

use maskwright::{
    Budget, BudgetError, Category, MatchError, TokenHealing,
    backend::{Matching, Status},
    locate::{Follower, LocateError},
};
use maskwright_tokenizers::Tokenizer;
use maskwright_vocab::TokenId;

/// Follows one answer under a constraint. Its methods may be slow: they are called on separate threads, with a [cancel
/// token](maskwright::CancelToken).
pub trait Guide: Send {
    /// Writes the mask: bit t % 32 of word t / 32 is set if token t may come next.
    fn fill(&mut self, words: &mut [u32]) -> Result<(), GuideError>;

    /// Accepts a token.
    fn accept(&mut self, token: TokenId) -> Result<(), GuideError>;

    /// Returns whether the text is complete and nothing can follow.
    fn is_finished(&mut self) -> Result<bool, GuideError>;

    /// Returns tokens that must come next, whatever the model prefers, given the last tokens of the text. They are not
    /// accepted yet.
    fn forced(&mut self, before: &[TokenId]) -> Result<Vec<TokenId>, GuideError>;

    /// Returns whether the text is complete after these bytes. A guide that does not know returns `false`.
    fn completes(&mut self, bytes: &[u8]) -> Result<bool, GuideError> {
        Ok(bytes.is_empty() && self.is_finished()?)
    }

    /// Returns whether a mask has lost tokens because the budget would not have sufficed to complete the text after
    /// them.
    fn is_squeezed(&mut self) -> bool {
        false
    }

    /// Returns the temperature for the next token, if the constraint requests one. It is called after the mask was
    /// filled.
    fn temperature(&mut self) -> Option<f32> {
        None
    }

    /// Changes the logits after the mask was applied. All answers wait for this call. Does nothing by default.
    fn weigh(&mut self, logits: &mut [f32]) -> Result<(), GuideError> {
        let _ = logits;
        Ok(())
    }

    /// Returns an independent guide in the same state.
    fn fork(&self) -> Box<dyn Guide>;
}

/// The reason why a budget of tokens cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unkept {
    /// Completing the text takes more tokens, including the one that ends it.
    TooSmall {
        /// The tokens of the budget.
        tokens: usize,
        /// The number of tokens that suffices.
        need: usize,
    },
    /// The distance to the end is unknown, for this reason.
    Unknown(String),
}

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { tokens, need } => {
                write!(
                    f,
                    "{tokens} tokens are too few to complete the answer; {need} are needed, the token that ends it included"
                )
            }
            Self::Unknown(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Unkept {}

/// The reason why a constraint cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuideError {
    /// It failed, for this reason.
    Failed(String),
    /// It exceeded a limit, such as [`Limits::mask_steps`](maskwright::Limits::mask_steps). The sentence names the
    /// limit and the place.
    Limit(String),
    /// It was cancelled.
    Cancelled,
}

impl fmt::Display for GuideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(reason) | Self::Limit(reason) => {
                write!(f, "the constraint cannot continue: {reason}")
            }
            Self::Cancelled => f.write_str("the work on the constraint was cancelled"),
        }
    }
}

impl std::error::Error for GuideError {}

impl From<MatchError> for GuideError {
    fn from(error: MatchError) -> Self {
        match error {
            MatchError::Cancelled => Self::Cancelled,
            error if error.is_limit() => Self::Limit(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<LocateError> for GuideError {
    fn from(error: LocateError) -> Self {
        match error.category() {
            Category::Cancelled => Self::Cancelled,
            Category::Limit => Self::Limit(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// A matcher as a guide: of our engine, of a [service](maskwright::service), or of another backend.
pub struct MatcherGuide {
    matcher: Box<dyn Matching>,
    /// The tokenizer that encodes forced text. If `None`, the model is asked for every token.
    tokenizer: Option<Arc<Tokenizer>>,
    /// Reports the temperatures that rules request, if any do.
    follower: Option<Box<Follower>>,
}

/// The maximum number of forced bytes that one call computes. The next call finds those after them.
const MAX_FORCED: usize = 512;

impl MatcherGuide {
    /// Creates a guide that asks the model for every token.
    pub fn new(matcher: impl Matching + 'static) -> Self {
        Self { matcher: Box::new(matcher), tokenizer: None, follower: None }
    }

    /// Enables jumps: forced text is written as the tokenizer encodes it, without asking the model. Backends other than
    /// ours still ask for every token.
    #[must_use]
    pub fn with_jumps(mut self, tokenizer: Arc<Tokenizer>) -> Self {
        self.tokenizer = Some(tokenizer);
        self
    }

    /// Enables the temperatures that the rules of the constraint request. The follower must belong to the same
    /// constraint, and be at the same place.
    #[must_use]
    pub fn with_temperatures(mut self, follower: Follower) -> Self {
        self.follower = Some(Box::new(follower));
        self
    }

    /// Returns an independent guide in the same state.
    pub(crate) fn copy(&self) -> Self {
        let Self { matcher, tokenizer, follower } = self;
        Self { matcher: matcher.fork(), tokenizer: tokenizer.clone(), follower: follower.clone() }
    }

    /// Limits the rest of the answer to this number of tokens, including the one that ends the text, within which it
    /// will be complete. If that is impossible, nothing changes.
    pub fn set_budget(&mut self, tokens: usize) -> Result<(), Unkept> {
        let Some(matcher) = self.matcher.as_engine() else {
            return Err(Unkept::Unknown(
                "the backend of the constraint cannot keep a budget of tokens".into(),
            ));
        };
        let budget = Budget::new(u32::try_from(tokens).unwrap_or(u32::MAX));
        matcher.set_budget(Some(budget)).map_err(|error| match error {
            BudgetError::TooSmall { need, .. } => Unkept::TooSmall { tokens, need: need as usize },
            error => Unkept::Unknown(error.to_string()),
        })
    }
}

impl fmt::Debug for MatcherGuide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MatcherGuide")
            .field("matcher", &self.matcher)
            .field("jumps", &self.tokenizer.is_some())
            .field("has_temperatures", &self.follower.is_some())
            .finish_non_exhaustive()
    }
}

impl Guide for MatcherGuide {
    fn fill(&mut self, words: &mut [u32]) -> Result<(), GuideError> {
        Ok(self.matcher.fill_mask(words)?)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), GuideError> {
        self.matcher.accept(token)?;
        match &mut self.follower {
            Some(follower) if self.matcher.status() != Status::Terminated => Ok(follower.accept(token)?),
            _ => Ok(()),
        }
    }

    fn is_finished(&mut self) -> Result<bool, GuideError> {
        Ok(matches!(self.matcher.status(), Status::Stopped | Status::Terminated))
    }

    fn forced(&mut self, before: &[TokenId]) -> Result<Vec<TokenId>, GuideError> {
        let (Some(tokenizer), Some(matcher)) = (&self.tokenizer, self.matcher.as_engine()) else {
            return Ok(Vec::new());
        };
        // Text that the tokenizer cannot encode is left to the model.
        let encode = |text: &str| tokenizer.encode(text).ok();
        Ok(matcher.forced_tokens(before, MAX_FORCED, TokenHealing::Cut, &encode).tokens)
    }

    fn completes(&mut self, bytes: &[u8]) -> Result<bool, GuideError> {
        if bytes.is_empty() {
            return Ok(self.matcher.status() != Status::Open);
        }
        let mut fork = self.matcher.fork();
        let Some(matcher) = fork.as_engine() else { return Ok(false) };
        // Completeness of the text does not depend on the budget.
        matcher.set_budget(None).map_err(|error| GuideError::Failed(error.to_string()))?;
        match matcher.accept_bytes(bytes) {
            Ok(()) => Ok(matcher.is_accepting()),
            Err(error) if error.is_undecided() => Err(error.into()),
            Err(_) => Ok(false),
        }
    }

    fn is_squeezed(&mut self) -> bool {
        self.matcher.as_engine().is_some_and(|matcher| matcher.is_squeezed())
    }

    fn temperature(&mut self) -> Option<f32> {
        self.follower.as_ref()?.temperature(self.matcher.as_engine()?)
    }

    fn fork(&self) -> Box<dyn Guide> {
        Box::new(self.copy())
    }
}
