//! A fake model whose logits are a function of the text so far. It allows tests and fuzzers to run a scheduler or a
//! server without weights.
//!
//! ```
//! use maskwright_runtime::model::{ByText, Feed, Logits, Model, Wanted, chance};
//! use maskwright_vocab::TokenId;
//!
//! let mut model = ByText::new(258, 100, |text: &[TokenId], row: &mut [f32]| chance(text, row));
//! let (sequence, mut logits) = (model.open(), Logits::new());
//! model.step(&[Feed { sequence, tokens: &[TokenId(1), TokenId(2)], wanted: Wanted::Last }], &mut logits)?;
//! assert_eq!(model.length(sequence)?, 2);
//! # Ok::<(), maskwright_runtime::model::ModelError>(())
//! ```

use std::collections::BTreeMap;

use maskwright_vocab::TokenId;

use super::{Feed, Logits, Model, ModelError, SequenceId, Wanted, check_feeds};
use crate::sampler::rng::Rng;

/// A model that calls a function for its logits, with the text and a row of zeros.
pub struct ByText<F> {
    width: usize,
    context: usize,
    write: F,
    texts: BTreeMap<SequenceId, Vec<TokenId>>,
    next: u64,
}

impl<F: FnMut(&[TokenId], &mut [f32]) + Send> ByText<F> {
    /// Creates a model with this number of tokens, and this maximum length of texts.
    pub fn new(width: usize, context: usize, write: F) -> Self {
        Self { width, context, write, texts: BTreeMap::new(), next: 0 }
    }
}

/// Fills in random logits between 0 and 4, always the same ones for a text.
pub fn chance(text: &[TokenId], row: &mut [f32]) {
    let state =
        text.iter().fold(7_u64, |state, token| state.wrapping_mul(31).wrapping_add(u64::from(token.0)));
    let rng = Rng::new(Some(state), 0);
    for (id, logit) in (0..).zip(row) {
        *logit = (rng.at(id) * 4.0) as f32;
    }
}

impl<F> std::fmt::Debug for ByText<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByText")
            .field("width", &self.width)
            .field("texts", &self.texts.len())
            .finish_non_exhaustive()
    }
}

impl<F: FnMut(&[TokenId], &mut [f32]) + Send> Model for ByText<F> {
    fn width(&self) -> usize {
        self.width
    }

    fn context(&self) -> usize {
        self.context
    }

    fn open(&mut self) -> SequenceId {
        self.next += 1;
        self.texts.insert(SequenceId(self.next), Vec::new());
        SequenceId(self.next)
    }

    fn fork(&mut self, of: SequenceId, length: usize) -> Result<SequenceId, ModelError> {
        let text = self.texts.get(&of).ok_or(ModelError::NoSequence(of))?;
        let text =
            text.get(..length).ok_or(ModelError::TooShort { asked: length, length: text.len() })?.to_vec();
        let id = self.open();
        self.texts.insert(id, text);
        Ok(id)
    }

    fn truncate(&mut self, sequence: SequenceId, length: usize) -> Result<(), ModelError> {
        let text = self.texts.get_mut(&sequence).ok_or(ModelError::NoSequence(sequence))?;
        if length > text.len() {
            return Err(ModelError::TooShort { asked: length, length: text.len() });
        }
        text.truncate(length);
        Ok(())
    }

    fn close(&mut self, sequence: SequenceId) {
        self.texts.remove(&sequence);
    }

    fn length(&self, sequence: SequenceId) -> Result<usize, ModelError> {
        Ok(self.texts.get(&sequence).ok_or(ModelError::NoSequence(sequence))?.len())
    }

    fn step(&mut self, feeds: &[Feed<'_>], logits: &mut Logits) -> Result<(), ModelError> {
        check_feeds(feeds, self.context, self.width, |sequence| self.length(sequence))?;
        let mut rows = Vec::new();
        for feed in feeds {
            let text = self.texts.entry(feed.sequence).or_default();
            for (at, token) in feed.tokens.iter().enumerate() {
                text.push(*token);
                let is_wanted = match feed.wanted {
                    Wanted::None => false,
                    Wanted::Last => at + 1 == feed.tokens.len(),
                    Wanted::All => true,
                };
                if is_wanted {
                    rows.resize(rows.len() + self.width, 0.0);
                    let begin = rows.len() - self.width;
                    (self.write)(text, &mut rows[begin..]);
                }
            }
        }
        logits.reset(rows.len() / self.width.max(1), self.width).copy_from_slice(&rows);
        Ok(())
    }

    fn cache_bytes(&self) -> usize {
        self.texts.values().map(|text| size_of_val(text.as_slice())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_continued_in_the_same_way() {
        let mut model = ByText::new(4, 3, chance);
        let mut logits = Logits::new();
        let tokens = [TokenId(1), TokenId(2)];
        let one = model.open();
        model.step(&[Feed { sequence: one, tokens: &tokens, wanted: Wanted::All }], &mut logits).unwrap();
        assert_eq!(logits.len(), 2);
        let after = logits.row(1).unwrap().to_vec();
        let other = model.fork(one, 1).unwrap();
        model
            .step(&[Feed { sequence: other, tokens: &tokens[1..], wanted: Wanted::Last }], &mut logits)
            .unwrap();
        assert_eq!(logits.row(0).unwrap(), after);
        assert!(after.iter().all(|logit| (0.0..4.0).contains(logit)));
        model.truncate(one, 1).unwrap();
        assert_eq!(model.length(one), Ok(1));
        assert_eq!(model.truncate(one, 2), Err(ModelError::TooShort { asked: 2, length: 1 }));
        let long = Feed { sequence: other, tokens: &tokens, wanted: Wanted::None };
        assert_eq!(model.step(&[long], &mut logits), Err(ModelError::Full { length: 4, context: 3 }));
        assert_eq!(model.length(other), Ok(2), "a step that fails changes nothing");
        model.close(one);
        assert_eq!(model.length(one), Err(ModelError::NoSequence(one)));
    }
}
