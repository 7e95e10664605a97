//! What a constraint is to the scheduler.
//!
//! A [`Guide`] follows one answer: it says which tokens may come next, takes the one that was chosen, and knows when nothing
//! is left to write. Matchers are guides; the scheduler knows nothing else of constraints, and an answer without one
//! costs nothing.

use std::{fmt, sync::Arc};

use maskwright::{
    Budget, BudgetError, Category, MatchError, TokenHealing,
    backend::{Matching, Status},
    locate::{Follower, LocateError},
};
use maskwright_tokenizers::Tokenizer;
use maskwright_vocab::TokenId;

/// Follows one answer under a constraint. Its calls may take a while: they are made on threads of their own, which obey a
/// [cancel token](maskwright::CancelToken).
pub trait Guide: Send {
    /// Writes the mask: bit t % 32 of word t / 32 says whether token t may come next.
    fn fill(&mut self, words: &mut [u32]) -> Result<(), GuideError>;

    /// Takes a token.
    fn accept(&mut self, token: TokenId) -> Result<(), GuideError>;

    /// Whether the text is complete and nothing can follow.
    fn is_finished(&mut self) -> Result<bool, GuideError>;

    /// Tokens that must come next, whatever the model thinks of them, given the last tokens of the text. They are not accepted yet.
    fn forced(&mut self, before: &[TokenId]) -> Result<Vec<TokenId>, GuideError>;

    /// Whether the text is complete if these bytes follow. A guide that cannot tell says no.
    fn completes(&mut self, bytes: &[u8]) -> Result<bool, GuideError> {
        Ok(bytes.is_empty() && self.is_finished()?)
    }

    /// Whether a mask has lost tokens because there would not have been enough of them left to complete the text.
    fn is_squeezed(&mut self) -> bool {
        false
    }

    /// The temperature at which the next token is to be drawn, if the constraint wants one. It is asked for behind the mask.
    fn temperature(&mut self) -> Option<f32> {
        None
    }

    /// Changes the logits of what may come next, to which the mask has been applied. All answers wait for it. A guide without an opinion leaves them.
    fn weigh(&mut self, logits: &mut [f32]) -> Result<(), GuideError> {
        let _ = logits;
        Ok(())
    }

    /// An independent guide at the same place.
    fn fork(&self) -> Box<dyn Guide>;
}

/// Why a budget of tokens cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unkept {
    /// It takes more tokens to complete the text, the one that ends it included.
    TooSmall {
        /// The tokens of the budget.
        tokens: usize,
        /// How many are enough.
        need: usize,
    },
    /// How far it is to the end is not known, for this reason.
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

/// Why a constraint cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuideError {
    /// It gave up, for this reason.
    Failed(String),
    /// It met a limit, such as [`Limits::mask_steps`](maskwright::Limits::mask_steps). The sentence names it, and the place.
    Limit(String),
    /// It was told to stop.
    Cancelled,
}

impl fmt::Display for GuideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(reason) | Self::Limit(reason) => {
                write!(f, "the constraint cannot go on: {reason}")
            }
            Self::Cancelled => f.write_str("the constraint was told to stop"),
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

/// A matcher as a guide: one of the engine, one of a [service](maskwright::service), or one of another backend.
pub struct MatcherGuide {
    matcher: Box<dyn Matching>,
    /// Cuts forced text into tokens. `None`: the model is asked for every token.
    tokenizer: Option<Arc<Tokenizer>>,
    /// Tells the temperatures that rules want, if some do.
    follower: Option<Box<Follower>>,
}

/// So many forced bytes are looked at in one go. What is forced behind them is found the next time.
const MAX_FORCED: usize = 512;

impl MatcherGuide {
    /// A guide that asks the model for every token.
    pub fn new(matcher: impl Matching + 'static) -> Self {
        Self { matcher: Box::new(matcher), tokenizer: None, follower: None }
    }

    /// Text that must come is written as the tokenizer cuts it, without asking the model. Backends other than ours are asked as before.
    #[must_use]
    pub fn with_jumps(mut self, tokenizer: Arc<Tokenizer>) -> Self {
        self.tokenizer = Some(tokenizer);
        self
    }

    /// Tokens are drawn at the temperatures that the rules of the constraint want. The follower must be of the same constraint, and at the same place.
    #[must_use]
    pub fn with_temperatures(mut self, follower: Follower) -> Self {
        self.follower = Some(Box::new(follower));
        self
    }

    /// An independent guide at the same place.
    pub(crate) fn copy(&self) -> Self {
        let Self { matcher, tokenizer, follower } = self;
        Self { matcher: matcher.fork(), tokenizer: tokenizer.clone(), follower: follower.clone() }
    }

    /// From now on the answer is complete after so many tokens, the end-of-text token included. If that cannot be, nothing changes.
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
        // A text that the tokenizer cannot cut is left to the model, as all text is without jumps.
        let encode = |text: &str| tokenizer.encode(text).ok();
        Ok(matcher.forced_tokens(before, MAX_FORCED, TokenHealing::Cut, &encode).tokens)
    }

    fn completes(&mut self, bytes: &[u8]) -> Result<bool, GuideError> {
        if bytes.is_empty() {
            return Ok(self.matcher.status() != Status::Open);
        }
        let mut fork = self.matcher.fork();
        let Some(matcher) = fork.as_engine() else { return Ok(false) };
        // It is about the text, and not about when it ends.
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
