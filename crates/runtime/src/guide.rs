//! What a constraint is to the scheduler.
//!
//! A [`Guide`] follows one answer: it says which tokens may come next, takes the one that was chosen, and knows when nothing
//! is left to write. Matchers are guides; the scheduler knows nothing else of constraints, and an answer without one
//! costs nothing.

use std::fmt;

use maskwright::{Matcher, backend::Status, service};
use maskwright_vocab::TokenId;

/// Follows one answer under a constraint.
pub trait Guide: Send {
    /// Writes the mask: bit t % 32 of word t / 32 says whether token t may come next.
    fn fill(&mut self, words: &mut [u32]) -> Result<(), GuideError>;

    /// Takes a token.
    fn accept(&mut self, token: TokenId) -> Result<(), GuideError>;

    /// Whether the text is complete and nothing can follow.
    fn is_finished(&mut self) -> bool;

    /// Tokens that must come next, whatever the model thinks of them, given the last tokens of the text. They are not accepted yet.
    fn forced(&mut self, before: &[TokenId]) -> Vec<TokenId>;

    /// An independent guide at the same place.
    fn fork(&self) -> Box<dyn Guide>;
}

/// Why a constraint cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuideError(pub String);

impl fmt::Display for GuideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the constraint cannot go on: {}", self.0)
    }
}

impl std::error::Error for GuideError {}

impl From<maskwright::MatchError> for GuideError {
    fn from(error: maskwright::MatchError) -> Self {
        Self(error.to_string())
    }
}

/// A matcher of the engine as a guide.
pub struct EngineGuide {
    matcher: Matcher,
}

impl EngineGuide {
    /// A guide that asks the model for every token.
    pub fn new(matcher: Matcher) -> Self {
        Self { matcher }
    }
}

impl fmt::Debug for EngineGuide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineGuide").field("steps", &self.matcher.steps()).finish_non_exhaustive()
    }
}

impl Guide for EngineGuide {
    fn fill(&mut self, words: &mut [u32]) -> Result<(), GuideError> {
        Ok(self.matcher.fill_mask(words)?)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), GuideError> {
        Ok(self.matcher.accept(token)?)
    }

    fn is_finished(&mut self) -> bool {
        self.matcher.is_stopped()
    }

    fn forced(&mut self, _before: &[TokenId]) -> Vec<TokenId> {
        Vec::new()
    }

    fn fork(&self) -> Box<dyn Guide> {
        Box::new(Self { matcher: self.matcher.fork() })
    }
}

impl Guide for service::Matcher {
    fn fill(&mut self, words: &mut [u32]) -> Result<(), GuideError> {
        Ok(self.fill_mask(words)?)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), GuideError> {
        Ok(Self::accept(self, token)?)
    }

    fn is_finished(&mut self) -> bool {
        matches!(self.status(), Status::Stopped | Status::Terminated)
    }

    fn forced(&mut self, _before: &[TokenId]) -> Vec<TokenId> {
        Vec::new()
    }

    fn fork(&self) -> Box<dyn Guide> {
        Box::new(Self::fork(self))
    }
}
