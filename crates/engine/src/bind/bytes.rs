//! What a vocabulary knows of single bytes.
//!
//! Take a state that leads to itself by the bytes of a class C, like the inside of `[a-z0-9]*`. Every token made of such
//! bytes alone is allowed there, and there can be a hundred thousand of them. They need not be read one by one:
//!
//! * for each byte there is the set of tokens that contain it, so "only bytes of C" is what is left after taking the others
//!   away, a few dozen passes over 16 KB; and for each length the set of tokens that are no longer, for states that count;
//! * for each node of the trie there is the set of bytes that occur below it, so a walk that looks for the other tokens
//!   passes by every subtree that has none.
//!
//! They are exact for ASCII; all other bytes count as one, which is never part of a class.

use maskwright_vocab::{Trie, Vocabulary};

use crate::leaf::{Action, Automaton};

/// Tokens by the bytes that they contain.
#[derive(Debug)]
pub(crate) struct Bytes {
    /// For each node of the trie, the bytes on the edges below it.
    below: Box<[u128]>,
    /// For each class bit, the tokens with such a byte.
    with: Vec<Box<[u32]>>,
    /// The tokens that have at most so many bytes, and at least one.
    no_longer: Vec<Box<[u32]>>,
}

/// The bit of a byte. Zero, which no JSON text contains, shares its bit with everything beyond ASCII.
#[inline]
pub(crate) fn class(byte: u8) -> u128 {
    if byte < 0x80 { 1 << byte } else { 1 }
}

/// The bytes by which a state leads to itself, and whether each of them begins a unit.
pub(crate) fn loop_class(automaton: &Automaton, state: u32) -> (u128, bool) {
    let mut classes = [0u128; 2];
    for byte in 1..0x80u8 {
        let step = automaton.step(state, byte);
        if step.target() == state && step.action() != Action::Close {
            classes[usize::from(step.action() == Action::Unit)] |= class(byte);
        }
    }
    let [passes, counts] = classes;
    if counts.count_ones() > passes.count_ones() { (counts, true) } else { (passes, false) }
}

impl Bytes {
    pub(crate) fn of(vocabulary: &Vocabulary) -> Self {
        let words = vocabulary.size().div_ceil(32);
        let mut with = vec![vec![0u32; words]; 128];
        let mut no_longer = vec![vec![0u32; words]; vocabulary.max_token_bytes() + 1];
        for (token, bytes) in vocabulary.ordinary().filter(|(_, bytes)| !bytes.is_empty()) {
            let (word, bit) = (token.index() / 32, 1 << (token.index() % 32));
            no_longer[bytes.len()][word] |= bit;
            for &byte in bytes {
                with[class(byte).trailing_zeros() as usize][word] |= bit;
            }
        }
        for length in 1..no_longer.len() {
            let (shorter, same) = no_longer.split_at_mut(length);
            same[0].iter_mut().zip(&shorter[length - 1]).for_each(|(word, shorter)| *word |= shorter);
        }
        let boxed = |lists: Vec<Vec<u32>>| lists.into_iter().map(Vec::into_boxed_slice).collect();
        Self { below: below(vocabulary.trie()), with: boxed(with), no_longer: boxed(no_longer) }
    }

    /// The bytes below a node of the vocabulary's trie.
    #[inline]
    pub(crate) fn below(&self, node: u32) -> u128 {
        self.below[node as usize]
    }

    /// The tokens that consist of bytes of a class.
    pub(crate) fn run(&self, class: u128) -> Vec<u32> {
        let mut words = self.no_longer[self.longest()].to_vec();
        for (bit, with) in self.with.iter().enumerate() {
            if class >> bit & 1 == 0 {
                words.iter_mut().zip(with).for_each(|(word, with)| *word &= !with);
            }
        }
        words
    }

    /// Those of some tokens that have at most so many bytes.
    pub(crate) fn no_longer(&self, words: &[u32], length: usize) -> Vec<u32> {
        let no_longer = &self.no_longer[length.min(self.longest())];
        words.iter().zip(no_longer).map(|(word, no_longer)| word & no_longer).collect()
    }

    /// The length of the longest token.
    pub(crate) fn longest(&self) -> usize {
        self.no_longer.len() - 1
    }

    /// The length of a bitset.
    pub(crate) fn words(&self) -> usize {
        self.no_longer[0].len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let bitsets = self.with.iter().chain(&self.no_longer);
        size_of_val(&*self.below) + bitsets.map(|words| size_of_val(&**words)).sum::<usize>()
    }
}

/// Children come after their parents, so one pass from the end is enough.
fn below(trie: &Trie) -> Box<[u128]> {
    let mut below = vec![0u128; trie.len()];
    for node in (0..trie.len() as u32).rev() {
        let classes = trie.children(node).map(|child| below[child as usize] | class(trie.byte(child)));
        below[node as usize] = classes.fold(0, |a, b| a | b);
    }
    below.into()
}
