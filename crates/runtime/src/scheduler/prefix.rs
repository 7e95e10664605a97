//! Texts that the model has read, for prompts with the same beginning.
//!
//! A conversation sends its whole history with every turn, and a thousand requests may share one long instruction. When
//! an answer ends, its text is kept for a while, and a prompt starts from the text – kept or running – with the longest
//! common prefix. Keys and values of a prefix do not depend on what follows, so the result is identical to the last
//! bit.
//!
//! Some models have limited room. There, kept texts do not block anything: when the model runs out of room,
//! [`Kept::make_room`] drops one text after the other until there is enough.

use std::collections::VecDeque;

use maskwright_vocab::TokenId;

use crate::model::{Model, ModelError, SequenceId};

/// The kept texts, oldest first.
#[derive(Debug)]
pub(super) struct Kept {
    texts: VecDeque<Text>,
    tokens: usize,
    max_texts: usize,
    max_tokens: usize,
}

/// A text that a sequence of the model has read.
#[derive(Debug)]
struct Text {
    sequence: SequenceId,
    tokens: Vec<TokenId>,
}

impl Kept {
    pub(super) fn new(max_texts: usize, max_tokens: usize) -> Self {
        Self { texts: VecDeque::new(), tokens: 0, max_texts, max_tokens }
    }

    /// Keeps a text, and drops others if there are too many. A text that is a prefix of the new one is also dropped.
    pub(super) fn put(&mut self, model: &mut dyn Model, sequence: SequenceId, tokens: Vec<TokenId>) {
        if tokens.is_empty() || tokens.len() > self.max_tokens || self.max_texts == 0 {
            return model.close(sequence);
        }
        let covered = |text: &Text| tokens.starts_with(&text.tokens);
        while let Some(at) = self.texts.iter().position(covered) {
            self.remove(model, at);
        }
        self.tokens += tokens.len();
        self.texts.push_back(Text { sequence, tokens });
        while self.texts.len() > self.max_texts || self.tokens > self.max_tokens {
            self.remove(model, 0);
        }
    }

    /// Calls a function of the model, and drops texts as long as there is not enough room for it. The text `spared` is
    /// not dropped.
    pub(super) fn make_room<T>(
        &mut self,
        model: &mut dyn Model,
        spared: Option<SequenceId>,
        mut ask: impl FnMut(&mut dyn Model) -> Result<T, ModelError>,
    ) -> Result<T, ModelError> {
        loop {
            let error = match ask(model) {
                Err(error) if error.is_shortage() => error,
                result => return result,
            };
            let oldest = self.texts.iter().position(|text| Some(text.sequence) != spared);
            self.remove(model, oldest.ok_or(error)?);
        }
    }

    fn remove(&mut self, model: &mut dyn Model, at: usize) {
        if let Some(text) = self.texts.remove(at) {
            self.tokens -= text.tokens.len();
            model.close(text.sequence);
        }
    }

    /// Returns the text with the longest common prefix with a prompt, and its length. That text is now the last one to
    /// be dropped.
    pub(super) fn longest(&mut self, prompt: &[TokenId]) -> Option<(SequenceId, usize)> {
        let lengths = self.texts.iter().map(|text| common(&text.tokens, prompt));
        let (at, length) =
            lengths.enumerate().max_by_key(|&(_, length)| length).filter(|&(_, length)| length > 0)?;
        let text = self.texts.remove(at)?;
        let sequence = text.sequence;
        self.texts.push_back(text);
        Some((sequence, length))
    }
}

/// Returns the length of the longest common prefix.
pub(super) fn common(left: &[TokenId], right: &[TokenId]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}
