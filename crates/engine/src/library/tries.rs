//! The trie by which an automaton reads the vocabulary.
//!
//! A trie that distinguishes fewer bytes is smaller, but it must distinguish all bytes that the automaton does. Of
//! these four, the first one is used that is fine enough for the automaton:
//!
//! | trie | distinguishes | nodes, Llama 3.1 | for |
//! |---|---|---|---|
//! | merged | kinds of characters | 22,000 | phone numbers, addresses, words |
//! | split | these, and hexadecimal digits | 46,000 | identifiers such as UUIDs |
//! | text | all of ASCII, and otherwise what UTF-8 depends on | 190,000 | literals, JSON |
//! | whole | all bytes | 274,000 | letters beyond ASCII |
//!
//! The first two come with a [`Vocabulary`]; the third is built when an index first needs it.
//!
//! # Skipping subtrees
//!
//! Each node of the larger two tries has the set of bytes below it. If the automaton reaches the node in a state that
//! has a loop on all of these bytes, everything below leads to that state and need not be read. ASCII bytes have a bit
//! each. Zero shares its bit with everything beyond ASCII that may leave the state. In the third trie, *whole
//! characters* beyond ASCII have the bit of DEL, so the hundred thousand tokens that stay inside a string are skipped
//! in any language.

use std::sync::OnceLock;

use maskwright_automata::{Dfa, DfaState};
use maskwright_vocab::{ByteClasses, ClassTrie, Trie, TrieNode, Vocabulary};

use super::bytes::{Bytes, class as byte_bit};

/// Data that the indexes of one vocabulary share.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    all: OnceLock<Box<[u32]>>,
    text: OnceLock<Text>,
    /// The subtrees of the vocabulary's trie.
    whole: OnceLock<Box<[Subtree]>>,
}

#[derive(Debug)]
struct Text {
    trie: ClassTrie,
    subtrees: Box<[Subtree]>,
}

/// The summary of everything below a node. PERF: stored together, because a walk reads all of it.
#[derive(Debug)]
struct Subtree {
    /// The bytes, see the [module](self).
    bytes: u128,
    /// The range of positions; empty if there are no children.
    start: u32,
    end: u32,
}

/// A trie, and the subtrees that may be skipped in it.
pub(crate) struct Prepared<'l> {
    pub(crate) trie: &'l Trie,
    pub(crate) skips: Option<Skips<'l>>,
}

/// What is known of the subtrees of a trie and of the loops of an automaton.
pub(crate) struct Skips<'l> {
    subtrees: &'l [Subtree],
    /// For each state of the automaton, the bytes on which it has a loop.
    loops: Vec<u128>,
}

impl Skips<'_> {
    /// Returns the positions below a node, if a state has a loop on everything there.
    #[inline]
    pub(crate) fn stays_below(&self, state: DfaState, node: TrieNode) -> Option<core::ops::Range<u32>> {
        let subtree = &self.subtrees[node.index()];
        (subtree.bytes & !self.loops[state.index()] == 0).then_some(subtree.start..subtree.end)
    }
}

impl Tries {
    /// Returns the memory in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let text =
            self.text.get().map_or(0, |text| text.trie.trie().heap_bytes() + size_of_val(&*text.subtrees));
        text + self.all.get().map_or(0, |all| size_of_val(&**all))
            + self.whole.get().map_or(0, |whole| size_of_val(&**whole))
    }

    /// Returns all tokens of a vocabulary that have bytes, as a bitset.
    pub(crate) fn all(&self, vocabulary: &Vocabulary) -> &[u32] {
        self.all.get_or_init(|| {
            let mut words = vec![0; vocabulary.size().div_ceil(32)];
            for &token in vocabulary.trie().all_tokens() {
                words[token as usize / 32] |= 1 << (token % 32);
            }
            words.into()
        })
    }

    fn text(&self, vocabulary: &Vocabulary) -> &Text {
        self.text.get_or_init(|| {
            let trie = ClassTrie::build(vocabulary.trie(), text_classes());
            let bytes = below_text(trie.trie());
            Text { subtrees: subtrees(trie.trie(), bytes.into_iter()), trie }
        })
    }
}

/// Returns the smallest trie that this automaton can read.
pub(crate) fn prepared<'l>(
    dfa: &Dfa,
    vocabulary: &'l Vocabulary,
    tries: &'l Tries,
    bytes: &Bytes,
) -> Prepared<'l> {
    let same = |a: u8, b: u8| dfa.classes().class(a) == dfa.classes().class(b);
    if let Some(small) = vocabulary.class_tries().iter().find(|trie| trie.respects(same)) {
        return Prepared { trie: small.trie(), skips: None };
    }
    if text_classes().respects(same) {
        let text = tries.text(vocabulary);
        let skips = Skips { subtrees: &text.subtrees, loops: loops(dfa, true) };
        return Prepared { trie: text.trie.trie(), skips: Some(skips) };
    }
    let whole = || subtrees(vocabulary.trie(), bytes.all_below());
    let skips = Skips { subtrees: tries.whole.get_or_init(whole), loops: loops(dfa, false) };
    Prepared { trie: vocabulary.trie(), skips: Some(skips) }
}

fn text_classes() -> ByteClasses {
    let merged = ByteClasses::merged();
    ByteClasses::of(|byte| if byte.is_ascii() { byte } else { merged.representative(byte) })
}

/// The bit that whole characters beyond ASCII share with DEL.
const CHARACTERS: u128 = 1 << 0x7F;
/// The bit of bytes that may leave a state.
const MAY_LEAVE: u128 = 1;

/// Computes for each state the bytes on which it has a loop; with `text`, the characters beyond ASCII as well.
fn loops(dfa: &Dfa, text: bool) -> Vec<u128> {
    let representatives = dfa.classes().representatives();
    let mut members = vec![0u128; representatives.len()];
    for byte in 1..0x80 {
        members[usize::from(dfa.classes().class(byte))] |= byte_bit(byte);
    }
    let of = |state: DfaState| {
        let stay = representatives.iter().zip(&members).filter(|(byte, _)| dfa.next(state, **byte) == state);
        let bytes = stay.fold(0, |bits, (_, members)| bits | members);
        let stays = bytes & CHARACTERS != 0 && (!text || characters_stay(dfa, state));
        if stays { bytes } else { bytes & !CHARACTERS }
    };
    dfa.states().map(of).collect()
}

/// Checks whether every character beyond ASCII leads from a state back to it.
fn characters_stay(dfa: &Dfa, state: DfaState) -> bool {
    let leads = [0xC2, 0xE0, 0xE1, 0xED, 0xF0, 0xF1, 0xF4];
    let mut work: Vec<(DfaState, Inside)> =
        leads.iter().map(|&byte| (dfa.next(state, byte), Inside::Between.after(byte))).collect();
    while let Some((now, inside)) = work.pop() {
        for byte in [0x80, 0x90, 0xA0] {
            match inside.after(byte) {
                Inside::Broken => {}
                Inside::Between if dfa.next(now, byte) == state => {}
                Inside::Between => return false,
                further => work.push((dfa.next(now, byte), further)),
            }
        }
    }
    true
}

/// The position of a text of representatives within a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Between,
    /// This many continuation bytes are missing.
    Missing(u8),
    /// Bytes are missing, and the first of them must be in this range.
    Special {
        low: u8,
        high: u8,
        missing: u8,
    },
    Broken,
}

impl Inside {
    fn after(self, byte: u8) -> Self {
        let missing = |missing: u8| if missing == 1 { Self::Between } else { Self::Missing(missing - 1) };
        match (self, byte) {
            (Self::Between, 0..0x80) => Self::Between,
            (Self::Between, 0xC2..=0xDF) => Self::Missing(1),
            (Self::Between, 0xE0) => Self::Special { low: 0xA0, high: 0xBF, missing: 2 },
            (Self::Between, 0xED) => Self::Special { low: 0x80, high: 0x9F, missing: 2 },
            (Self::Between, 0xE1..=0xEF) => Self::Missing(2),
            (Self::Between, 0xF0) => Self::Special { low: 0x90, high: 0xBF, missing: 3 },
            (Self::Between, 0xF4) => Self::Special { low: 0x80, high: 0x8F, missing: 3 },
            (Self::Between, 0xF1..=0xF3) => Self::Missing(3),
            (Self::Missing(n), 0x80..=0xBF) => missing(n),
            (Self::Special { low, high, missing: n }, _) if (low..=high).contains(&byte) => missing(n),
            _ => Self::Broken,
        }
    }
}

/// Computes the bytes below each node, with whole characters as one bit. A node inside a character gets [`MAY_LEAVE`].
fn below_text(trie: &Trie) -> Vec<u128> {
    let mut inside = vec![Inside::Between; trie.len()];
    for node in trie.nodes() {
        for child in trie.children(node) {
            inside[child.index()] = inside[node.index()].after(trie.byte(child));
        }
    }
    let mut below = vec![0u128; trie.len()];
    for node in trie.nodes().rev() {
        let bits = trie.children(node).map(|child| {
            let bit = match (inside[child.index()], trie.byte(child)) {
                (Inside::Broken, _) => MAY_LEAVE,
                (Inside::Between, byte) if byte.is_ascii() => byte_bit(byte),
                (Inside::Between, _) => CHARACTERS,
                // A token that ends here is in another state.
                _ if !trie.tokens(child).is_empty() => MAY_LEAVE,
                _ => CHARACTERS,
            };
            bit | below[child.index()]
        });
        below[node.index()] = bits.fold(0, |a, b| a | b);
    }
    for (bits, inside) in below.iter_mut().zip(inside) {
        *bits |= if inside == Inside::Between { 0 } else { MAY_LEAVE };
    }
    below
}

/// Combines the bytes below each node with its positions.
fn subtrees(trie: &Trie, bytes: impl Iterator<Item = u128>) -> Box<[Subtree]> {
    let mut subtrees: Box<[Subtree]> = bytes.map(|bytes| Subtree { bytes, start: 0, end: 0 }).collect();
    for node in trie.nodes().rev() {
        let children = trie.children(node);
        let Some(last) = children.clone().next_back() else { continue };
        let start = trie.positions(children.first()).start;
        // The nodes below the children come after the children, and those below the last such child come last.
        let inner = children.rev().find(|&child| !trie.children(child).is_empty());
        let end = inner.map_or(trie.positions(last).end, |child| subtrees[child.index()].end);
        let subtree = &mut subtrees[node.index()];
        (subtree.start, subtree.end) = (start, end);
    }
    subtrees
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_below_are_those_of_the_trie() {
        let texts = ["a", "ab", "abc", "b", "bcd", "bce", "é", "éa", "c", "cab", "ca"];
        let trie = Trie::build(texts.iter().zip(0..));
        let subtrees = subtrees(&trie, below_text(&trie).into_iter());
        for (node, subtree) in trie.nodes().zip(&subtrees) {
            if trie.children(node).is_empty() {
                assert_eq!(subtree.start, subtree.end);
            } else {
                assert_eq!(subtree.start..subtree.end, trie.positions_below(node));
            }
        }
    }

    #[test]
    fn characters_are_whole_or_in_doubt() {
        let tokens: [&[u8]; 6] =
            ["xé".as_bytes(), b"x\xC3", "yé漢".as_bytes(), b"y\xFF", "z漢".as_bytes(), b"zq"];
        let trie = Trie::build(tokens.iter().zip(0..));
        let below = below_text(&trie);
        let of = |byte: u8| below[trie.child(Trie::ROOT, byte).unwrap().index()];
        assert_eq!(of(b'x'), CHARACTERS | MAY_LEAVE, "a token ends inside a character");
        assert_eq!(of(b'y'), CHARACTERS | MAY_LEAVE, "a byte that is in no character");
        assert_eq!(of(b'z'), CHARACTERS | byte_bit(b'q'));
        let lead = trie.find(b"z\xE6").unwrap();
        assert_eq!(below[lead.index()] & MAY_LEAVE, MAY_LEAVE, "inside a character");
    }
}
