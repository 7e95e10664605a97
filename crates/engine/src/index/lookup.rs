//! Queries of an index.
//!
//! The words of an index may come from a forged file, so nothing here trusts a number that it reads: every access is
//! checked, and what points nowhere is dead. Loading therefore has to check the bounds of the sections, but not their
//! content.

use maskwright_vocab::TokenId;

use super::file::{Section, packed_byte, packed_half};
use super::masks::NO_BASE;
use super::{FIRST, Index, NotAllowed, StateId};
use crate::error::MatchError;

impl Index {
    /// Returns the state at the beginning of a text.
    pub fn initial_state(&self) -> StateId {
        if self.layout.states > 0 { StateId(FIRST) } else { StateId::DEAD }
    }

    /// Checks whether the text is complete in a state.
    pub fn is_terminal(&self, state: StateId) -> bool {
        state == StateId::ENDED || self.row(state).is_some_and(|row| self.accepts(row))
    }

    /// Returns the state after a token. An end token leads from a terminal state to [`StateId::ENDED`].
    pub fn next_state(&self, state: StateId, token: TokenId) -> Result<StateId, NotAllowed> {
        self.target(state, token).ok_or(NotAllowed { state, token })
    }

    /// Checks whether a token may come next.
    pub fn allows(&self, state: StateId, token: TokenId) -> bool {
        self.target(state, token).is_some()
    }

    /// Returns the tokens that may come next, ascending; none in the dead state.
    pub fn allowed_tokens(&self, state: StateId) -> Vec<TokenId> {
        let mut words = vec![0; self.mask_words()];
        self.mask(state).write(&mut words);
        let bits = |(at, word): (usize, u32)| {
            (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| TokenId(at as u32 * 32 + bit))
        };
        words.into_iter().enumerate().flat_map(bits).collect()
    }

    /// Writes the mask: bit t % 32 of word t / 32 says whether token t may come next. Words beyond the vocabulary are
    /// cleared. End tokens are allowed where the text is complete.
    pub fn fill_mask(&self, state: StateId, words: &mut [u32]) -> Result<(), MatchError> {
        if words.len() < self.mask_words() {
            return Err(MatchError::MaskTooShort { words: self.mask_words() });
        }
        self.mask(state).write(words);
        Ok(())
    }

    /// Returns the mask as the index stores it, without a copy.
    pub fn mask(&self, state: StateId) -> MaskRef<'_> {
        let Some(row) = self.row(state) else { return MaskRef::default() };
        let end = if self.accepts(row) { self.section(Section::End) } else { &[] };
        let none = MaskRef { end, ..MaskRef::default() };
        let Some(&number) = self.section(Section::StateMasks).get(row) else { return none };
        let masks = self.section(Section::Masks);
        let at = (number as usize).saturating_mul(3);
        let Some(&[base, start, added, _, stop]) = masks.get(at..at.saturating_add(5)) else { return none };
        let patches = self.section(Section::Patches);
        let patch = patches.get(start as usize..stop as usize).unwrap_or_default();
        let (add, remove) = patch.split_at_checked(added as usize).unwrap_or_default();
        let words = self.mask_words();
        let first = (base as usize).saturating_mul(words);
        let dense = self.section(Section::Bases).get(first..first.saturating_add(words));
        match dense {
            Some(dense) if base != NO_BASE => MaskRef { base: Some((base, dense)), add, remove, end },
            _ => MaskRef { base: None, add, remove: &[], end },
        }
    }

    /// Returns the number of states, not counting the dead one and the one after the end.
    pub fn len(&self) -> usize {
        self.layout.states
    }

    /// Checks whether there are no states. The index of a constraint has at least one.
    pub fn is_empty(&self) -> bool {
        self.layout.states == 0
    }

    /// Returns all states, the first one first.
    pub fn states(&self) -> impl ExactSizeIterator<Item = StateId> + use<> {
        (0..self.layout.states as u32).map(|row| StateId(FIRST + row))
    }

    /// Returns the number of classes of tokens that lead different ways.
    pub fn classes(&self) -> usize {
        self.layout.classes
    }

    /// Returns the number of different masks.
    pub fn masks(&self) -> usize {
        (self.section(Section::Masks).len() / 3).saturating_sub(1)
    }

    /// Returns the number of masks that are bitsets. [`MaskRef::base`] contains a number below this.
    pub fn bases(&self) -> usize {
        self.section(Section::Bases).len() / self.mask_words().max(1)
    }

    /// Returns the number of words of a mask.
    pub fn mask_words(&self) -> usize {
        self.layout.vocabulary_size.div_ceil(32)
    }

    /// Returns the number of tokens of the vocabulary, including unused ids.
    pub fn vocabulary_size(&self) -> usize {
        self.layout.vocabulary_size
    }

    /// Returns the [`fingerprint`](maskwright_vocab::Vocabulary::fingerprint) of the vocabulary that the index was
    /// built for.
    pub fn vocabulary(&self) -> u128 {
        self.layout.fingerprint
    }

    /// Returns the size of the index in bytes, on disk as in memory.
    pub fn byte_len(&self) -> usize {
        4 * self.words().len()
    }

    /// Returns the position of a state in the sections, if it is a state of the automaton.
    fn row(&self, state: StateId) -> Option<usize> {
        let row = state.0.checked_sub(FIRST)? as usize;
        (row < self.layout.states).then_some(row)
    }

    fn accepts(&self, row: usize) -> bool {
        self.section(Section::Accepting).get(row / 32).is_some_and(|word| word >> (row % 32) & 1 == 1)
    }

    fn target(&self, state: StateId, token: TokenId) -> Option<StateId> {
        let row = self.row(state)?;
        if self.section(Section::End).contains(&token.0) {
            return self.accepts(row).then_some(StateId::ENDED);
        }
        let class = self.class(token)?;
        let starts = self.section(Section::RowStarts);
        let (&start, &end) = (starts.get(row)?, starts.get(row + 1)?);
        let target = if self.layout.narrow {
            let row = self.section(Section::Rows).get(start as usize..end as usize)?;
            let end = row.partition_point(|entry| entry >> 16 <= class);
            row.get(end.checked_sub(1)?)? & 0xFFFF
        } else {
            let row = self
                .section(Section::Rows)
                .get((start as usize).checked_mul(2)?..(end as usize).checked_mul(2)?)?;
            let row = row.as_chunks::<2>().0;
            let end = row.partition_point(|entry| entry[0] <= class);
            row.get(end.checked_sub(1)?)?[1]
        };
        self.row(StateId(target)).map(|_| StateId(target))
    }

    /// Returns the class of a token: from the list of its page, or the common one.
    fn class(&self, token: TokenId) -> Option<u32> {
        let (page, low) = (token.index() / 256, token.0 % 256);
        let pages = self.section(Section::Pages);
        let (mut first, end) = (*pages.get(page)? as usize, *pages.get(page + 1)? as usize);
        let mut limit = end;
        let lows = self.section(Section::Lows);
        while first < limit {
            let middle = first + (limit - first) / 2;
            if packed_byte(lows, middle)? < low {
                first = middle + 1;
            } else {
                limit = middle;
            }
        }
        if first < end && packed_byte(lows, first) == Some(low) {
            let classes = self.section(Section::TokenClasses);
            return if self.layout.narrow {
                packed_half(classes, first)
            } else {
                classes.get(first).copied()
            };
        }
        // All other tokens in the common base are of the common class.
        let base = self.layout.common_base.checked_mul(self.mask_words())?;
        let common = self.section(Section::Bases).get(base.checked_add(token.index() / 32)?)?;
        (common >> (token.0 % 32) & 1 == 1).then_some(self.layout.common_class)
    }
}

/// A mask as an [`Index`] stores it: a shared bitset and the differences from it, or a list.
///
/// A caller that keeps the bases somewhere else, such as on a GPU, needs only the number of the base and the lists.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaskRef<'i> {
    /// The number of a bitset, and the bitset; `None` for a list.
    pub base: Option<(u32, &'i [u32])>,
    /// Additional tokens that are allowed.
    pub add: &'i [u32],
    /// Tokens of the base that are not allowed.
    pub remove: &'i [u32],
    /// The end tokens, if the text is complete.
    pub end: &'i [u32],
}

impl MaskRef<'_> {
    /// Writes the mask into a row. Words beyond the mask are cleared, and tokens beyond the row are ignored.
    pub fn write(&self, words: &mut [u32]) {
        let base = self.base.map_or(&[][..], |(_, base)| base);
        let shared = base.len().min(words.len());
        let (covered, beyond) = words.split_at_mut(shared);
        covered.copy_from_slice(&base[..shared]);
        beyond.fill(0);
        for &token in self.add.iter().chain(self.end) {
            if let Some(word) = words.get_mut(token as usize / 32) {
                *word |= 1 << (token % 32);
            }
        }
        for &token in self.remove {
            if let Some(word) = words.get_mut(token as usize / 32) {
                *word &= !(1 << (token % 32));
            }
        }
    }
}
