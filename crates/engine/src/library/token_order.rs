//! The order in which tokens are tried one after another.

use maskwright_vocab::{Trie, Vocabulary};

/// For each token of a vocabulary, the rank of its spelling in ascending order.
#[derive(Debug)]
pub(crate) struct TokenOrder {
    places: Box<[u32]>,
}

impl TokenOrder {
    pub(super) fn of(vocabulary: &Vocabulary) -> Self {
        let mut places: Box<[u32]> = vec![0; vocabulary.size()].into();
        let trie = vocabulary.trie();
        let (mut work, mut place) = (vec![Trie::ROOT], 0);
        while let Some(node) = work.pop() {
            for &token in trie.tokens(node) {
                places[token as usize] = place;
            }
            place += 1;
            work.extend(trie.children(node).rev());
        }
        Self { places }
    }

    pub(crate) fn place(&self, token: u32) -> u32 {
        self.places[token as usize]
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.places)
    }
}
