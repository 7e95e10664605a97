//! Texts that the model has read, for prompts that begin like them.
//!
//! A conversation sends its whole history with every turn, and a thousand requests may share one long instruction. When an
//! answer ends, its text is kept for a while, and a prompt starts from the text – kept or running – with which it has
//! the longest beginning in common. Keys and values of a beginning do not depend on what follows, so the result is
//! the same to the last bit.
//!
//! Some models have room for so much only. What is kept is in nobody's way there: when a model runs short, [`Kept::make_room`] lets go of
//! one text after the other until it has enough.

use std::collections::VecDeque;

use maskwright_vocab::TokenId;

use crate::model::{Model, ModelError, SequenceId};

/// The texts that are kept, oldest first.
#[derive(Debug)]
pub(super) struct Kept {
    texts: VecDeque<Text>,
    tokens: usize,
    max_texts: usize,
    max_tokens: usize,
}

/// What a sequence of the model has read.
#[derive(Debug)]
struct Text {
    sequence: SequenceId,
    tokens: Vec<TokenId>,
}

impl Kept {
    pub(super) fn new(max_texts: usize, max_tokens: usize) -> Self {
        Self { texts: VecDeque::new(), tokens: 0, max_texts, max_tokens }
    }

    /// Keeps a text, and lets go of others if there are too many. One that is the beginning of the new one is of no use any more.
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

    /// Asks the model for something, and lets go of texts as long as it has no room for that. One text can be spared.
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

    /// The text that has the most in common with a prompt, and how much. It is the last one to be let go of now.
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

/// How many tokens two texts have in common at their beginning.
pub(super) fn common(left: &[TokenId], right: &[TokenId]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}
