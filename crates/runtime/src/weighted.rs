//! A guide that uses the probabilities of a weighted grammar: it adds λ · log P(token | text so far) to the model's
//! logits.
//!
//! The mask is that of the matcher, filled while the model computes. The scores need the logits, because only the best
//! tokens are scored. So they are computed when a token is chosen, which takes about ten microseconds, or some hundred
//! with a pattern. A grammar that would take much longer, because it is very ambiguous, ends its answer with an error.

use maskwright::weighted::{Guidance, ScoreError, Scorer};
use maskwright_vocab::TokenId;

use crate::guide::{Guide, GuideError, MatcherGuide};

/// The maximum number of steps for the scores at one place. All answers wait for them, so the limit is lower than that
/// for a mask: some milliseconds.
const MAX_SCORE_STEPS: u64 = 300_000;

/// A matcher of a weighted grammar, and its scores.
#[derive(Debug)]
pub struct WeightedGuide {
    matcher: MatcherGuide,
    scorer: Scorer,
    guidance: Guidance,
}

impl WeightedGuide {
    /// Creates a guide for a text that has not begun. The scorer must belong to the same grammar.
    pub fn new(matcher: MatcherGuide, scorer: Scorer, guidance: Guidance) -> Self {
        Self { matcher, scorer: scorer.with_steps(MAX_SCORE_STEPS), guidance }
    }
}

impl From<ScoreError> for GuideError {
    fn from(error: ScoreError) -> Self {
        match error {
            ScoreError::Limit(_) => Self::Limit(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl Guide for WeightedGuide {
    fn fill(&mut self, words: &mut [u32]) -> Result<(), GuideError> {
        self.matcher.fill(words)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), GuideError> {
        self.matcher.accept(token)?;
        Ok(self.scorer.accept(token)?)
    }

    fn is_finished(&mut self) -> Result<bool, GuideError> {
        self.matcher.is_finished()
    }

    fn forced(&mut self, before: &[TokenId]) -> Result<Vec<TokenId>, GuideError> {
        self.matcher.forced(before)
    }

    fn completes(&mut self, bytes: &[u8]) -> Result<bool, GuideError> {
        self.matcher.completes(bytes)
    }

    fn is_squeezed(&mut self) -> bool {
        self.matcher.is_squeezed()
    }

    fn temperature(&mut self) -> Option<f32> {
        self.matcher.temperature()
    }

    fn weigh(&mut self, logits: &mut [f32]) -> Result<(), GuideError> {
        self.scorer.weigh(logits, &self.guidance)?;
        Ok(())
    }

    fn fork(&self) -> Box<dyn Guide> {
        Box::new(Self { matcher: self.matcher.copy(), scorer: self.scorer.clone(), guidance: self.guidance })
    }
}
