//! The order in which tokens are tried one after the other, and those that need not be.

use maskwright_vocab::{TokenId, Trie, Vocabulary};
use rustc_hash::FxHashMap;

/// For each token of a vocabulary.
#[derive(Debug)]
pub(crate) struct TokenOrder {
    /// Its place among all spellings, ascending.
    places: Box<[u32]>,
    /// The first token that differs from it by nothing but white space in front.
    bare: Box<[u32]>,
}

impl TokenOrder {
    pub(super) fn of(vocabulary: &Vocabulary) -> Self {
        let mut places: Box<[u32]> = vec![0; vocabulary.size()].into();
        let mut bare: Box<[u32]> = (0..vocabulary.size() as u32).collect();
        let mut first: FxHashMap<&[u8], u32> = FxHashMap::default();
        let trie = vocabulary.trie();
        let (mut work, mut place) = (vec![Trie::ROOT], 0);
        while let Some(node) = work.pop() {
            for &token in trie.tokens(node) {
                places[token as usize] = place;
                let spelling = vocabulary.spelling(TokenId(token)).trim_ascii_start();
                bare[token as usize] = *first.entry(spelling).or_insert(token);
            }
            place += 1;
            work.extend(trie.children(node).rev());
        }
        Self { places, bare }
    }

    pub(crate) fn place(&self, token: u32) -> u32 {
        self.places[token as usize]
    }

    pub(crate) fn bare(&self, token: u32) -> u32 {
        self.bare[token as usize]
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.places) + size_of_val(&*self.bare)
    }
}
