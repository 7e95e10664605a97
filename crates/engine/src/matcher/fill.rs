//! The mask copied into a row of the caller's.

use super::mask::Sink;
use super::{MatchError, Matcher};
use crate::bind::{Library, Part, Words, set_bits};

/// Writes the union of parts into a row of words.
pub(super) struct Fill<'w> {
    words: &'w mut [u32],
    started: bool,
    several: &'w mut Vec<u32>,
}

impl<'w> Fill<'w> {
    pub(super) fn new(words: &'w mut [u32], several: &'w mut Vec<u32>) -> Self {
        Self { words, started: false, several }
    }

    /// Adds to what the words hold already.
    pub(super) fn onto(words: &'w mut [u32], several: &'w mut Vec<u32>) -> Self {
        Self { words, started: true, several }
    }

    fn set(&mut self, tokens: &[u32]) {
        set_bits(self.words, tokens);
    }

    fn clear(&mut self, tokens: impl Iterator<Item = u32>) {
        for token in tokens {
            self.words[token as usize / 32] &= !(1 << (token % 32));
        }
    }

    /// To be called behind the last part.
    pub(super) fn finish(&mut self) {
        if !self.started {
            self.words.fill(0);
        }
    }
}

impl Sink for Fill<'_> {
    #[inline]
    fn part(&mut self, _: &Library, _: Option<u32>, part: &Part, several: &[u32], less: &[Words]) {
        self.several.extend_from_slice(several);
        // What another part allows stays allowed.
        let is_ours = |words: &[u32], token: u32| words[token as usize / 32] >> (token % 32) & 1 == 0;
        let tokens = less.iter().flat_map(|list| list.iter().copied());
        let ours: Option<Vec<u32>> =
            self.started.then(|| tokens.clone().filter(|&token| is_ours(self.words, token)).collect());
        match part {
            Part::List(list) => {
                self.finish();
                self.set(list);
            }
            Part::Shared { base, more } => {
                if self.started {
                    self.words.iter_mut().zip(base.iter()).for_each(|(word, base)| *word |= base);
                } else {
                    let (used, beyond) = self.words.split_at_mut(base.len());
                    used.copy_from_slice(base);
                    beyond.fill(0);
                }
                self.set(more);
            }
        }
        match ours {
            Some(ours) => self.clear(ours.into_iter()),
            None => self.clear(tokens),
        }
        self.started = true;
    }
}

/// Fills the masks of many matchers at once, in parallel. `masks` holds one row of `stride` words for each.
pub fn fill_masks(matchers: &mut [Matcher], masks: &mut [u32], stride: usize) -> Result<(), MatchError> {
    use rayon::prelude::*;
    if masks.len() < matchers.len() * stride {
        return Err(MatchError::MaskTooShort { words: matchers.len() * stride });
    }
    matchers
        .par_iter_mut()
        .zip(masks.par_chunks_mut(stride.max(1)))
        .try_for_each(|(matcher, row)| matcher.fill_mask(row))
}
