//! Masks that were computed before, by what their computation looked at.
//!
//! The mask of a thread depends on its state, on its counters as far as a single token can see, and on the top of its
//! stack – as deep as some token reaches when it runs out of one rule and into what follows. How deep that is,
//! only the computation finds out. So the memo is a tree: from a state one comes to a mask, or to "look at this node of the
//! stack", and so on. Where stacks fork, a node has several frames, which are interned as one.
//!
//! ```text
//!   state 17 ──▶ look at 0 ── frame A ──▶ mask
//!                     └────── frame B ──▶ look at 1 ── frames C, D ──▶ mask
//! ```
//! Thus the inside of a string in a list, five levels deep, shares its mask with the one at level four.

use core::hash::BuildHasher;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use super::entry::Words;
use crate::store::Store;

/// One part of a mask; a mask is the union of a few.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// These tokens, in no order, perhaps some of them twice.
    List(Box<[u32]>),
    /// All tokens of a shared bitset, and these.
    Shared { base: Words, more: Box<[u32]> },
    /// A bitset of which other masks share most.
    Chunked(Chunked),
}

/// A part of a bitset.
pub(crate) type Chunk = [u32; CHUNK];
const CHUNK: usize = 64;
/// The number of the empty chunk, which is the first in the store.
const EMPTY: u16 = 1;

/// A bitset in chunks, each of which is there once. Masks of one grammar differ in a few tokens, so most chunks of a new one are known: a mask of
/// a grammar for SQL takes 1 KB instead of 16.
#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    numbers: Box<[u16]>,
    chunks: Arc<Store<Chunk>>,
}

impl Chunked {
    /// `None` if there are too many chunks.
    fn new(words: &[u32], chunks: &Arc<Store<Chunk>>) -> Option<Self> {
        let hash = |chunk: &Chunk| FxBuildHasher.hash_one(chunk);
        let intern = |chunk: Chunk| chunks.intern(hash(&chunk), |known| *known == chunk, hash, || chunk);
        if chunks.len() == 0 {
            intern([0; CHUNK]);
        }
        let number = |words: &[u32]| {
            let mut chunk = [0; CHUNK];
            chunk[..words.len()].copy_from_slice(words);
            u16::try_from(intern(chunk)).ok()
        };
        let numbers: Option<_> = words.chunks(CHUNK).map(number).collect();
        Some(Self { numbers: numbers?, chunks: chunks.clone() })
    }

    pub(crate) fn contains(&self, token: u32) -> bool {
        let (word, bit) = (token as usize / 32, token % 32);
        let number = self.numbers.get(word / CHUNK);
        number.is_some_and(|&number| self.chunks.get(u32::from(number))[word % CHUNK] >> bit & 1 == 1)
    }

    /// Adds its bits to a row, or makes it the row's only ones. What it has beyond the end of the row is cut off.
    pub(crate) fn write(&self, row: &mut [u32], is_first: bool) {
        for (row, &number) in row.chunks_mut(CHUNK).zip(&self.numbers) {
            if number == EMPTY && !is_first {
                continue;
            }
            let chunk = self.chunks.get(u32::from(number));
            match (is_first, <&mut Chunk>::try_from(&mut *row)) {
                (true, Ok(row)) => *row = *chunk,
                (false, Ok(row)) => row.iter_mut().zip(chunk).for_each(|(word, more)| *word |= more),
                (true, Err(_)) => row.copy_from_slice(&chunk[..row.len()]),
                (false, Err(_)) => row.iter_mut().zip(chunk).for_each(|(word, more)| *word |= more),
            }
        }
        if is_first && let Some(beyond) = row.get_mut(self.numbers.len() * CHUNK..) {
            beyond.fill(0);
        }
    }
}

impl Part {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::List(list) => list.len() * 4,
            // A bitset that nobody else holds is ours.
            Self::Shared { base, more } => {
                let owned = if Arc::strong_count(base) == 1 { base.len() } else { 0 };
                (owned + more.len()) * 4
            }
            Self::Chunked(chunked) => size_of_val(&*chunked.numbers),
        }
    }
}

/// What is asked: a state, or a frame below something that was looked at before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The node above; 0 for a state.
    pub(crate) above: u32,
    pub(crate) what: u64,
    pub(crate) counters: u64,
}

#[derive(Debug)]
pub(crate) enum Answer {
    /// A part, and those of its tokens that contain more than one value: they have to be tried where values must differ.
    Mask(Part, Box<[u32]>),
    /// The tokens that a mask lacks, compared with another: that of a plain string, for a string that must not be one of some words; or that of a
    /// leaf without a limit.
    Less(Box<[Words]>),
    /// By how many tokens the end moves away, at most, by one token; never, if that is not known.
    Growth(i64),
    /// It depends on this node of the stack. The nodes are numbered as they are found.
    Look(Look),
}

/// Where to look next.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) node: u32,
    /// If the node is a counted repetition: from so much room on, more room made no difference to any answer. Grows with what is found out.
    enough: AtomicU32,
}

impl Look {
    pub(crate) fn at(node: u32) -> Self {
        Self { node, enough: AtomicU32::new(0) }
    }

    #[inline]
    pub(crate) fn enough(&self) -> u32 {
        self.enough.load(Ordering::Relaxed)
    }

    /// An answer needs so much room to be told apart.
    pub(crate) fn needs(&self, room: u32) -> u32 {
        self.enough.fetch_max(room, Ordering::Relaxed).max(room)
    }
}

/// The tree of answers of one program and one vocabulary.
#[derive(Debug)]
pub(crate) struct Memo {
    nodes: Store<(Key, Answer)>,
    /// The frames of nodes where stacks fork.
    forks: Store<Box<[u64]>>,
    chunks: Arc<Store<Chunk>>,
}

impl Memo {
    pub(crate) fn new() -> Self {
        Self { nodes: Store::new(), forks: Store::new(), chunks: Arc::new(Store::new()) }
    }

    #[inline]
    pub(crate) fn find(&self, key: &Key) -> Option<u32> {
        self.nodes.find(hash(key), |(k, _)| k == key)
    }

    #[inline]
    pub(crate) fn answer(&self, node: u32) -> &Answer {
        &self.nodes.get(node).1
    }

    /// Adds an answer. If another thread was faster, its answer – the same – stays.
    pub(crate) fn insert(&self, key: Key, answer: Answer) -> u32 {
        self.nodes.intern(hash(&key), |(k, _)| *k == key, |(k, _)| hash(k), || (key, answer))
    }

    /// A bitset as a part of a mask.
    pub(crate) fn bitset(&self, words: &[u32]) -> Part {
        Chunked::new(words, &self.chunks)
            .map_or_else(|| Part::Shared { base: words.into(), more: Box::default() }, Part::Chunked)
    }

    /// The number of a list of frames, the same for equal ones.
    pub(crate) fn forks(&self, frames: &[u64]) -> u32 {
        let hash = |frames: &[u64]| FxBuildHasher.hash_one(frames);
        self.forks.intern(hash(frames), |known| **known == *frames, |known| hash(known), || frames.into())
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let parts = self.nodes.iter().map(|(_, answer)| match answer {
            Answer::Mask(part, several) => part.heap_bytes() + several.len() * 4,
            // Lists that somebody else holds are shared.
            Answer::Less(less) => {
                let owned = less.iter().filter(|list| Arc::strong_count(list) == 1);
                size_of_val(&**less) + owned.map(|list| list.len() * 4).sum::<usize>()
            }
            Answer::Look(_) | Answer::Growth(_) => 0,
        });
        let forks =
            self.forks.heap_bytes() + self.forks.iter().map(|frames| size_of_val(&**frames)).sum::<usize>();
        self.nodes.heap_bytes() + parts.sum::<usize>() + forks + self.chunks.heap_bytes()
    }
}

#[inline]
fn hash(key: &Key) -> u64 {
    FxBuildHasher.hash_one(key)
}
