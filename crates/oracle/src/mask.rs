//! The oracle's answer for every token of a vocabulary.

use std::sync::Arc;

use crate::{Oracle, State};

/// A set of tokens: token `t` is bit `t % 32` of word `t / 32`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mask {
    words: Vec<u32>,
}

impl Mask {
    /// Creates an empty mask for `size` tokens.
    pub fn new(size: usize) -> Self {
        Self { words: vec![0; size.div_ceil(32)] }
    }

    /// Checks whether the token is in the set.
    pub fn contains(&self, token: u32) -> bool {
        self.words.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// Adds a token.
    pub fn insert(&mut self, token: u32) {
        self.words[token as usize / 32] |= 1 << (token % 32);
    }

    /// Removes a token.
    pub fn remove(&mut self, token: u32) {
        self.words[token as usize / 32] &= !(1 << (token % 32));
    }

    /// Checks whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Returns the tokens of the set, ascending.
    pub fn tokens(&self) -> impl Iterator<Item = u32> {
        let bits = |(i, &word): (usize, &u32)| {
            (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| i as u32 * 32 + bit)
        };
        self.words.iter().enumerate().flat_map(bits)
    }

    /// Returns the words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Returns the words for writing.
    pub fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words
    }
}

/// The tokens of a vocabulary that may be allowed at all, in the order of their bytes.
///
/// Special tokens and tokens without bytes are left out: no grammar of bytes allows them. [`Self::with_eos`] sets the
/// tokens that end a text; the [laws](crate::laws) use them, [`Oracle::mask`] does not.
#[derive(Clone, Debug)]
pub struct Tokens {
    size: usize,
    sorted: Vec<(Box<[u8]>, u32)>,
    /// The position of each id in `sorted`.
    places: Vec<Option<u32>>,
    eos: Vec<u32>,
}

impl Tokens {
    /// Collects the tokens of a vocabulary with ids below `size`. Tokens without bytes are left out.
    ///
    /// # Panics
    /// If an id is not below `size`, or comes twice.
    pub fn new<'a>(size: usize, tokens: impl IntoIterator<Item = (u32, &'a [u8])>) -> Self {
        let mut sorted: Vec<(Box<[u8]>, u32)> =
            tokens.into_iter().filter(|(_, bytes)| !bytes.is_empty()).map(|(id, b)| (b.into(), id)).collect();
        sorted.sort_unstable();
        let mut places = vec![None; size];
        for (place, &(_, id)) in sorted.iter().enumerate() {
            let before = places[id as usize].replace(place as u32);
            assert!(before.is_none(), "token {id} comes twice");
        }
        Self { size, sorted, places, eos: Vec::new() }
    }

    /// Creates tokens with the ids 0, 1, 2 and so on.
    pub fn from_list(tokens: &[Vec<u8>]) -> Self {
        Self::new(tokens.len(), (0..).zip(tokens.iter().map(Vec::as_slice)))
    }

    /// Sets the tokens that end a text. They are in the mask if and only if the text is complete.
    #[must_use]
    pub fn with_eos(mut self, eos: impl IntoIterator<Item = u32>) -> Self {
        self.eos = eos.into_iter().collect();
        assert!(
            self.eos.iter().all(|&id| self.bytes(id).is_none()),
            "a token that ends a text spells nothing"
        );
        self
    }

    /// Returns the number of ids.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the bytes of a token; `None` for tokens that are never allowed.
    pub fn bytes(&self, token: u32) -> Option<&[u8]> {
        let place = (*self.places.get(token as usize)?)?;
        Some(&self.sorted[place as usize].0)
    }

    /// Returns the tokens that end a text.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// Checks whether every single byte is a token, so that every text can be written.
    pub fn spell_everything(&self) -> bool {
        let single = |byte: u8| self.sorted.binary_search_by(|(bytes, _)| (**bytes).cmp(&[byte])).is_ok();
        (0..=u8::MAX).all(single)
    }

    /// Returns the tokens that are prefixes of `text`.
    pub(crate) fn prefixes_of(&self, text: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        for length in 1..=text.len() {
            let prefix = &text[..length];
            let place = self.sorted.partition_point(|(bytes, _)| &**bytes < prefix);
            let same = self.sorted[place..].iter().take_while(|(bytes, _)| &**bytes == prefix);
            found.extend(same.map(|&(_, id)| id));
            if !self.sorted.get(place).is_some_and(|(bytes, _)| bytes.starts_with(prefix)) {
                break;
            }
        }
        found
    }
}

impl Oracle {
    /// Computes the tokens after which the text can still be completed.
    ///
    /// Tokens are processed in the order of their bytes, so that those with a common prefix share its states.
    pub fn mask(&self, state: &State, tokens: &Tokens) -> Mask {
        let mut mask = Mask::new(tokens.size);
        let start = state.sets.len();
        let mut sets = state.sets.clone();
        let mut path: Vec<u8> = Vec::new();
        let mut dead: &[u8] = &[];
        for (bytes, id) in &tokens.sorted {
            if !dead.is_empty() && bytes.starts_with(dead) {
                continue;
            }
            let shared = path.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            path.truncate(shared);
            sets.truncate(start + shared);
            let mut viable = true;
            for &byte in &bytes[shared..] {
                self.push(&mut sets, byte);
                path.push(byte);
                if sets.last().is_none_or(|set: &Arc<_>| set.is_empty()) {
                    sets.pop();
                    path.pop();
                    dead = &bytes[..=path.len()];
                    viable = false;
                    break;
                }
            }
            if viable {
                mask.insert(*id);
            }
        }
        mask
    }
}
