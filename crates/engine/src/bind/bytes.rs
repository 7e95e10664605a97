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

use maskwright_vocab::{TokenId, Trie, Vocabulary};

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
    /// How many bytes each token has.
    lengths: Box<[u16]>,
    /// For each node of the trie, how many bytes the longest token goes on below it, up to 254.
    heights: Box<[u8]>,
}

/// The bit of a byte. Zero, which no JSON text contains, shares its bit with everything beyond ASCII.
#[inline]
pub(crate) fn class(byte: u8) -> u128 {
    if byte < 0x80 { 1 << byte } else { 1 }
}

/// The bytes by which the states of an automaton lead to themselves, found when they are asked for. All count units, or none.
pub(crate) struct Loops<'b> {
    automaton: &'b Automaton,
    pub(crate) bytes: &'b Bytes,
    classes: Vec<u128>,
    counts: bool,
}

/// Not known yet. No class has all bits, because the first stands for bytes beyond ASCII.
const UNKNOWN: u128 = u128::MAX;

impl<'b> Loops<'b> {
    pub(crate) fn new(automaton: &'b Automaton, bytes: &'b Bytes) -> Self {
        Self { automaton, bytes, classes: vec![UNKNOWN; automaton.len()], counts: automaton.counts() }
    }

    /// Whether the bytes of loops begin a unit each.
    pub(crate) fn counts(&self) -> bool {
        self.counts
    }

    /// The bytes by which a state leads to itself, and whether they count.
    #[inline]
    pub(crate) fn of(&mut self, state: u32) -> (u128, bool) {
        if self.classes[state as usize] == UNKNOWN {
            let action = if self.counts { Action::Unit } else { Action::Pass };
            let step = crate::leaf::Step::new(state, action);
            let members = (1..0x80u8).filter(|&byte| self.automaton.step(state, byte) == step);
            self.classes[state as usize] = members.map(class).fold(0, |a, b| a | b);
        }
        (self.classes[state as usize], self.counts)
    }

    /// Whether no token below a node of the vocabulary leaves a state.
    #[inline]
    pub(crate) fn stays_below(&mut self, state: u32, node: u32) -> bool {
        self.bytes.below(node) & !self.of(state).0 == 0
    }
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
        let length = |id: usize| vocabulary.bytes(TokenId(id as u32)).len().min(usize::from(u16::MAX)) as u16;
        let lengths = (0..vocabulary.size()).map(length).collect();
        let boxed = |lists: Vec<Vec<u32>>| lists.into_iter().map(Vec::into_boxed_slice).collect();
        Self {
            below: below(vocabulary.trie()),
            with: boxed(with),
            no_longer: boxed(no_longer),
            lengths,
            heights: heights(vocabulary.trie()),
        }
    }

    /// The tokens that contain a byte of ASCII.
    pub(crate) fn with(&self, byte: u8) -> &[u32] {
        &self.with[class(byte).trailing_zeros() as usize]
    }

    /// The bytes below a node of the vocabulary's trie.
    #[inline]
    pub(crate) fn below(&self, node: u32) -> u128 {
        self.below[node as usize]
    }

    /// The same for all nodes.
    pub(crate) fn all_below(&self) -> &[u128] {
        &self.below
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

    /// How far the longest token goes on below a node of the vocabulary's trie.
    #[inline]
    pub(crate) fn height(&self, node: u32) -> u8 {
        self.heights[node as usize]
    }

    /// How many bytes a token has.
    #[inline]
    pub(crate) fn length(&self, token: u32) -> u32 {
        u32::from(self.lengths[token as usize])
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
        size_of_val(&*self.below)
            + self.heights.len()
            + self.lengths.len() * 2
            + bitsets.map(|words| size_of_val(&**words)).sum::<usize>()
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

fn heights(trie: &Trie) -> Box<[u8]> {
    let mut heights = vec![0u8; trie.len()];
    for node in (0..trie.len() as u32).rev() {
        let highest =
            trie.children(node).map(|child| heights[child as usize].saturating_add(1).min(254)).max();
        heights[node as usize] = highest.unwrap_or(0);
    }
    heights.into()
}
