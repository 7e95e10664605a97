//! What a vocabulary does in one state of a leaf, worked out once and shared by all grammars.
//!
//! Take a state of a leaf and read a token from it, byte by byte. Either the leaf is still alive at the token's end –
//! then the token is *inner*, and allowed whatever follows the leaf – or there is one first byte on which the
//! leaf dies. The token is then allowed only if the leaf could end right there and what is left of the token, its
//! *rest*, can begin what follows:
//!
//! ```text
//!   state: inside a JSON string        token  hello      inner
//!                                      token  o", "      dies on the comma; the rest is  , "
//! ```
//! (The leaf might also end *before* it must. That matters only if what follows can begin with a byte by which the leaf
//! could go on; [`crate::leaf::Automaton::open`] lists those bytes, and where the two overlap the plain walk is
//! taken instead.)
//!
//! Most tokens are inner, and rests repeat: the 1,301 tokens of Llama 3.1 that hold a closing quote have 576
//! distinct ones. So a mask is one shared bitset and a short walk over a small trie of rests.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use maskwright_automata::ByteSet;
use maskwright_vocab::Trie;

use crate::leaf::{Action, Automaton};

/// A bitset over the vocabulary, 32 tokens a word.
pub(crate) type Words = Arc<[u32]>;

/// Tokens read from one state of one leaf.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Inner tokens, ascending by the number of units that they begin and that must begin after them.
    inner: Box<[u32]>,
    /// Where the tokens with at most `k` units end in `inner`.
    inner_ends: Box<[u32]>,
    /// The inner tokens with at most `k` units, as a bitset; the last is all of them.
    bitsets: Box<[OnceLock<Words>]>,
    /// All inner and all closing tokens: what is allowed whatever follows, if nothing is counted.
    unbounded: OnceLock<Words>,
    /// The tokens that end exactly where a counted part is closed, with their units, ascending by units.
    closing: Box<[(u32, u32)]>,
    /// Nodes of the vocabulary's trie at which the leaf can end, with the units begun before.
    exits: Box<[(u32, u32)]>,
    /// The bytes by which tokens go on behind the exits.
    exit_bytes: ByteSet,
    /// Rests by their first byte.
    rests: OnceLock<Box<[OnceLock<Box<Rests>>]>>,
}

/// A trie with a number of its own, by which things can be remembered about it. The vocabulary's has number 0.
#[derive(Debug)]
pub(crate) struct NumberedTrie {
    pub(crate) trie: Trie,
    pub(crate) number: u32,
}

impl NumberedTrie {
    fn build(entries: impl Iterator<Item = (Vec<u8>, u32)>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self { trie: Trie::build(entries), number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

/// Nodes that have yet to be read, and how the leaf stands before them.
struct Below {
    children: Range<u32>,
    state: u32,
    units: u32,
    /// A counted part has been closed.
    closed: bool,
}

/// The rests that begin with one byte.
#[derive(Debug)]
struct Rests {
    all: NumberedTrie,
    /// By the units begun before them, ascending.
    by_units: Box<[(u32, NumberedTrie)]>,
}

/// Up to this many units, bitsets are built ahead for the states that matter most.
const PREPARED: usize = 17;

/// How many tokens make a bitset better than a list.
pub(crate) const MANY: usize = 192;

impl Entry {
    /// Reads every token below a node of a trie, from `state`: one walk over the part where the leaf is alive.
    pub(crate) fn new(automaton: &Automaton, state: u32, trie: &Trie, from: u32) -> Self {
        // Inner tokens with their units. They are sorted by counting, at the end.
        let mut found: Vec<(u32, u32)> = Vec::new();
        let mut closing = Vec::new();
        let mut exits = Vec::new();
        let mut exit_bytes = ByteSet::EMPTY;
        // PERF: the nodes of a subtree lie one behind the other, so this reads the trie forward.
        let mut work = vec![Below { children: trie.children(from), state, units: 0, closed: false }];
        while let Some(below) = work.last_mut() {
            let Some(node) = below.children.next() else {
                work.pop();
                continue;
            };
            let step = automaton.step(below.state, trie.byte(node));
            if step.is_dead() {
                continue;
            }
            let state = step.target();
            let units = below.units + u32::from(step.action() == Action::Unit);
            let closed = below.closed || step.action() == Action::Close;
            for &token in trie.tokens(node) {
                if closed {
                    closing.push((units, token));
                } else {
                    found.push((units + automaton.tail(state), token));
                }
            }
            let children = trie.children(node);
            if children.is_empty() {
                continue;
            }
            if automaton.is_accepting(state) {
                let bytes = trie.child_bytes(node).iter();
                let dead = bytes.filter(|&&byte| automaton.step(state, byte).is_dead());
                let mut bytes = ByteSet::EMPTY;
                dead.for_each(|&byte| bytes.insert(byte));
                if !bytes.is_empty() {
                    exits.push((node, units));
                    exit_bytes = exit_bytes.union(bytes);
                }
            }
            work.push(Below { children, state, units, closed });
        }
        closing.sort_unstable();
        let buckets = found.iter().map(|&(units, _)| units as usize + 1).max().unwrap_or(1);
        let mut ends = vec![0u32; buckets + 1];
        for &(units, _) in &found {
            ends[units as usize + 1] += 1;
        }
        for bucket in 0..buckets {
            ends[bucket + 1] += ends[bucket];
        }
        let mut inner = vec![0; found.len()];
        for (units, token) in found {
            inner[ends[units as usize] as usize] = token;
            ends[units as usize] += 1;
        }
        // Each bucket has moved to its own end; the last number counts everything.
        ends.truncate(buckets);
        Self {
            bitsets: ends.iter().map(|_| OnceLock::new()).collect(),
            inner_ends: ends.into(),
            inner: inner.into(),
            unbounded: OnceLock::new(),
            closing: closing.into(),
            exits: exits.into(),
            exit_bytes,
            rests: OnceLock::new(),
        }
    }

    /// The inner tokens for which there is room for `room` units, as a list.
    pub(crate) fn inner(&self, room: u32) -> &[u32] {
        let at = (room as usize).min(self.inner_ends.len() - 1);
        &self.inner[..self.inner_ends[at] as usize]
    }

    /// The same as a bitset, if they are many.
    pub(crate) fn inner_bitset(&self, room: u32, size: usize) -> Option<&Words> {
        let at = (room as usize).min(self.inner_ends.len() - 1);
        (self.inner_ends[at] as usize >= MANY).then(|| self.bitset_at(at, size))
    }

    /// The inner and the closing tokens as one bitset, if they are many.
    pub(crate) fn unbounded_bitset(&self, size: usize) -> Option<&Words> {
        (self.inner.len() >= MANY).then(|| {
            self.unbounded.get_or_init(|| {
                let mut words = self.bitset_at(self.bitsets.len() - 1, size).to_vec();
                for &(_, token) in &self.closing {
                    words[token as usize / 32] |= 1 << (token % 32);
                }
                words.into()
            })
        })
    }

    fn bitset_at(&self, at: usize, size: usize) -> &Words {
        self.bitsets[at].get_or_init(|| {
            let last = self.bitsets.len() - 1;
            let (inside, beyond) = self.inner.split_at(self.inner_ends[at] as usize);
            if at == last || inside.len() < beyond.len() {
                return bitset(inside, size);
            }
            // Most tokens begin few units: it is quicker to take the others away.
            let mut words = self.bitset_at(last, size).to_vec();
            for &token in beyond {
                words[token as usize / 32] &= !(1 << (token % 32));
            }
            words.into()
        })
    }

    /// Builds the bitsets for few units now, because they are the ones that take long.
    pub(crate) fn prepare(&self, size: usize) {
        for room in 0..self.bitsets.len().min(PREPARED) {
            self.inner_bitset(room as u32, size);
        }
        self.unbounded_bitset(size);
    }

    /// The tokens that close the counted part with their last byte, having begun `need` to `room` units.
    pub(crate) fn closing(&self, need: u32, room: u32) -> impl Iterator<Item = u32> {
        let from = self.closing.partition_point(|&(units, _)| units < need);
        self.closing[from..].iter().take_while(move |&&(units, _)| units <= room).map(|&(_, token)| token)
    }

    /// Whether any token goes on behind the leaf.
    pub(crate) fn has_exits(&self) -> bool {
        !self.exits.is_empty()
    }

    /// The bytes that rests can begin with.
    #[inline]
    pub(crate) fn exit_bytes(&self) -> &ByteSet {
        &self.exit_bytes
    }

    /// The tries of rests that begin with `byte`, for exits after `need` to `room` units. Each trie has the byte as the only
    /// child of its root.
    pub(crate) fn rests<'e>(
        &'e self,
        byte: u8,
        need: u32,
        room: u32,
        trie: &Trie,
    ) -> impl Iterator<Item = &'e NumberedTrie> {
        let by_byte = self.rests.get_or_init(|| (0..256).map(|_| OnceLock::new()).collect());
        let rests = by_byte[byte as usize].get_or_init(|| Box::new(self.gather(byte, trie)));
        let most = rests.by_units.last().map_or(0, |(units, _)| *units);
        let all = (need == 0 && room >= most).then_some(&rests.all);
        let some = if all.is_some() { &[][..] } else { &rests.by_units };
        let some = some.iter().filter(move |(units, _)| (need..=room).contains(units)).map(|(_, trie)| trie);
        all.into_iter().filter(|rests| rests.trie.len() > 1).chain(some)
    }

    /// Collects the rests that begin with a byte, from the trie that the entry was made for.
    fn gather(&self, byte: u8, trie: &Trie) -> Rests {
        let mut found: Vec<(u32, Vec<u8>, u32)> = Vec::new();
        for &(exit, units) in &self.exits {
            let Some(child) = trie.child(exit, byte) else { continue };
            let mut path = vec![byte];
            let mut work = vec![(child, 1usize)];
            while let Some((node, depth)) = work.pop() {
                path.truncate(depth - 1);
                path.push(trie.byte(node));
                found.extend(trie.tokens(node).iter().map(|&token| (units, path.clone(), token)));
                work.extend(trie.children(node).map(|child| (child, depth + 1)));
            }
        }
        found.sort_unstable();
        let entry = |(_, path, token): &(u32, Vec<u8>, u32)| (path.clone(), *token);
        Rests {
            all: NumberedTrie::build(found.iter().map(entry)),
            by_units: found
                .chunk_by(|a, b| a.0 == b.0)
                .map(|group| (group[0].0, NumberedTrie::build(group.iter().map(entry))))
                .collect(),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let bitsets = self.bitsets.iter().filter_map(OnceLock::get).map(|words| words.len() * 4);
        let by_byte = self.rests.get().map_or(&[][..], |rests| rests);
        let rests = by_byte.iter().filter_map(OnceLock::get).map(|r| {
            r.all.trie.heap_bytes() + r.by_units.iter().map(|(_, r)| r.trie.heap_bytes() + 64).sum::<usize>()
        });
        self.inner.len() * 4
            + self.inner_ends.len() * 4
            + (self.closing.len() + self.exits.len()) * 8
            + bitsets.sum::<usize>()
            + rests.sum::<usize>()
            + size_of_val(by_byte)
    }
}

/// A bitset with these tokens.
pub(crate) fn bitset(tokens: &[u32], size: usize) -> Words {
    let mut words = vec![0u32; size.div_ceil(32)];
    for &token in tokens {
        words[token as usize / 32] |= 1 << (token % 32);
    }
    words.into()
}
