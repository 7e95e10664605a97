//! A cache of masks, keyed by what their computation looked at.
//!
//! The mask of a thread depends on its state, on its counters as far as a single token can see, and on the top of its
//! stack, as deep as some token reaches when it runs out of one rule into what follows. Only the computation finds out
//! how deep that is. So the memo is a tree: a state leads to a mask, or to "look at this node of the stack", and so on.
//! Where stacks fork, a node has several frames, which are interned as one.
//!
//! ```text
//!   state 17 ──▶ look at 0 ── frame A ──▶ mask
//!                     └────── frame B ──▶ look at 1 ── frames C, D ──▶ mask
//! ```
//! So the inside of a string in a list, five levels deep, shares its mask with the one at level four.

use core::hash::BuildHasher;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use super::bitset::{Words, ones};
use crate::program::words::Question;
use crate::store::{Slices, Store};
use crate::tuning::{FastPath, may_take, tuning};

/// One part of a mask; a mask is the union of a few.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// These tokens, in any order and possibly with duplicates.
    List(Box<[u32]>),
    /// All tokens of a shared bitset, and these.
    Shared { base: Words, more: Box<[u32]> },
    /// A bitset that is close to an earlier one.
    Difference(Difference),
}

/// A bitset with some tokens removed and some added. Masks of one grammar differ in a few tokens: of 295 bitsets of a
/// grammar for Cypher, nine in ten differ in fewer than 250 tokens from an earlier one.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    pub(crate) base: Words,
    pub(crate) more: Box<[u32]>,
    pub(crate) less: Box<[u32]>,
}

impl Difference {
    fn new(words: &[u32], base: &Words) -> Self {
        let (mut more, mut less) = (Vec::new(), Vec::new());
        // PERF: nearly all chunks are equal, and are compared with the processor's widest instructions.
        for (chunk, (words, base)) in
            words.chunks(WORDS_PER_CHUNK).zip(base.chunks(WORDS_PER_CHUNK)).enumerate()
        {
            if words != base {
                let first = (chunk * WORDS_PER_CHUNK * 32) as u32;
                more.extend(ones(words.iter().zip(base).map(|(a, b)| a & !b)).map(|token| first + token));
                less.extend(ones(words.iter().zip(base).map(|(a, b)| b & !a)).map(|token| first + token));
            }
        }
        Self { base: base.clone(), more: more.into(), less: less.into() }
    }

    /// Creates a bitset with additional tokens.
    pub(crate) fn with_more(base: Words, tokens: &[u32]) -> Self {
        let is_new = |token: &u32| base[*token as usize / 32] >> (token % 32) & 1 == 0;
        let more = tokens.iter().copied().filter(is_new).collect();
        Self { base, more, less: Box::default() }
    }

    pub(crate) fn contains(&self, token: u32) -> bool {
        let in_base = self.base[token as usize / 32] >> (token % 32) & 1 == 1;
        if in_base { !self.less.contains(&token) } else { self.more.contains(&token) }
    }
}

/// Bitsets that others are compared with.
#[derive(Debug, Default)]
struct Bases(Vec<Words>);

/// The number of words that are compared at a time.
const WORDS_PER_CHUNK: usize = 16;

/// Returns the greatest number of tokens of a difference. PERF: this is a sixteenth of a bitset; longer differences
/// made warm masks slow.
pub(crate) fn max_difference(words: usize) -> usize {
    words / 16
}

impl Bases {
    /// Returns a bitset as its difference from an earlier one, or as a new one.
    fn difference(&mut self, words: &[u32]) -> Difference {
        if !tuning().has(FastPath::MaskDifferences) {
            return Difference { base: words.into(), more: Box::default(), less: Box::default() };
        }
        let mut most = max_difference(words.len());
        let mut nearest = None;
        for base in &self.0 {
            if let Some(distance) = distance(words, base, most) {
                (most, nearest) = (distance.saturating_sub(1), Some(base));
                if distance == 0 {
                    break;
                }
            }
        }
        let difference = nearest.map(|base| Difference::new(words, base));
        if let Some(difference) = difference
            && difference.more.len() + difference.less.len() <= max_difference(words.len())
            && may_take(FastPath::MaskDifferences)
        {
            return difference;
        }
        let base: Words = words.into();
        if self.0.len() < tuning().difference_bases {
            self.0.push(base.clone());
        }
        Difference { base, more: Box::default(), less: Box::default() }
    }
}

/// Counts the words in which two bitsets differ; `None` if there are more than `most`.
fn distance(a: &[u32], b: &[u32], most: usize) -> Option<usize> {
    let mut distance = 0;
    for (a, b) in a.chunks(256).zip(b.chunks(256)) {
        distance += a.iter().zip(b).map(|(a, b)| u32::from(a != b)).sum::<u32>() as usize;
        if distance > most {
            return None;
        }
    }
    (a.len() == b.len()).then_some(distance)
}

impl Part {
    /// Returns the tokens of its bitset that the part does not contain.
    pub(crate) fn less(&self) -> &[u32] {
        match self {
            Self::Difference(difference) => &difference.less,
            Self::List(_) | Self::Shared { .. } => &[],
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::List(list) => list.len() * 4,
            // A bitset without another owner is ours.
            Self::Shared { base, more } => {
                let owned = if Arc::strong_count(base) == 1 { base.len() } else { 0 };
                (owned + more.len()) * 4
            }
            Self::Difference(difference) => {
                let owned = if Arc::strong_count(&difference.base) == 1 { difference.base.len() } else { 0 };
                (owned + difference.more.len() + difference.less.len()) * 4
            }
        }
    }
}

/// A key of the memo: a state, or a frame below something that was looked at before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The answer that said to look here; [`AnswerId::START`] for a state.
    pub(crate) above: AnswerId,
    pub(crate) what: u64,
    pub(crate) counters: u64,
}

#[derive(Debug)]
pub(crate) enum Answer {
    /// A part of a mask, and those of its tokens that contain more than one value: where values must differ, these need
    /// a trial.
    Mask(Part, Box<[u32]>),
    /// The tokens that a mask lacks in comparison with another one: that of a plain string, for a string that must not
    /// be one of some words; or that of a leaf without a limit.
    Less(Box<[Words]>),
    /// By how many tokens one token can move the end away, at most; a very large number if that is not known.
    Growth(i64),
    /// The answer depends on this node of the stack. The nodes are numbered as they are found.
    Look(Look),
}

/// The number of an answer in a memo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AnswerId(u32);

impl AnswerId {
    /// The start of a lookup. It is no entry.
    pub(crate) const START: Self = Self(0);

    #[cfg(test)]
    pub(crate) fn new(entry: u32) -> Self {
        Self(entry)
    }
}

/// A node of the stack below a thread. Nodes are numbered in the order in which an answer looks at them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineNodeId(u32);

impl LineNodeId {
    /// The top of the thread's stack.
    pub(crate) const TOP: Self = Self(0);

    pub(crate) fn new(index: usize) -> Self {
        Self(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn raw(self) -> u32 {
        self.0
    }
}

/// The next node to look at.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) node: LineNodeId,
    /// If the node is a counted repetition: from this much room on, more room made no difference to any answer. Grows
    /// while answers are found.
    enough: AtomicU32,
    /// If the node is a scope with a set of words: the questions that any answer depends on. Grows in the same way.
    asked: AtomicU32,
}

/// A list of questions about the words of a scope, by its number in a memo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked(u32);

impl Asked {
    const NOTHING: Self = Self(0);
    const EVERYTHING: Self = Self(u32::MAX);
    /// With more questions than this, the whole set of words is the key.
    const MAX_QUESTIONS: usize = 32;
}

impl Look {
    pub(crate) fn at(node: LineNodeId) -> Self {
        Self { node, enough: AtomicU32::new(0), asked: AtomicU32::new(Asked::NOTHING.0) }
    }

    #[inline]
    pub(crate) fn enough(&self) -> u32 {
        self.enough.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn asked(&self) -> Asked {
        Asked(self.asked.load(Ordering::Acquire))
    }

    /// Records that an answer depends on whether there is this much room.
    pub(crate) fn needs(&self, room: u32) -> u32 {
        self.enough.fetch_max(room, Ordering::Relaxed).max(room)
    }
}

/// A unique number of a memo in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoId(u64);

/// The tree of answers of one program and one vocabulary.
#[derive(Debug)]
pub(crate) struct Memo {
    id: MemoId,
    nodes: Store<(Key, Answer)>,
    /// The frames of nodes where stacks fork.
    forks: Slices<u64>,
    /// Lists of questions about words, ascending.
    questions: Slices<Question>,
    bases: Mutex<Bases>,
}

impl Memo {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = MemoId(NEXT.fetch_add(1, Ordering::Relaxed));
        Self {
            id,
            nodes: Store::new(),
            forks: Slices::new(),
            questions: Slices::new(),
            bases: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> MemoId {
        self.id
    }

    #[inline]
    pub(crate) fn find(&self, key: &Key) -> Option<AnswerId> {
        self.nodes.find(hash(key), |(k, _)| k == key).map(AnswerId)
    }

    #[inline]
    pub(crate) fn answer(&self, id: AnswerId) -> &Answer {
        &self.nodes.get(id.0).1
    }

    /// Adds an answer. If another thread was faster, its answer, which is equal, is kept.
    pub(crate) fn insert(&self, key: Key, answer: Answer) -> AnswerId {
        AnswerId(self.nodes.intern(hash(&key), |(k, _)| *k == key, |(k, _)| hash(k), || (key, answer)))
    }

    /// Wraps a bitset as a part of a mask.
    pub(crate) fn bitset(&self, words: &[u32]) -> Part {
        // A thread that panicked left the list unchanged.
        Part::Difference(self.bases.lock().unwrap_or_else(PoisonError::into_inner).difference(words))
    }

    /// Returns the number of a list of frames; equal lists have equal numbers.
    pub(crate) fn forks(&self, frames: &[u64]) -> u32 {
        self.forks.number(frames)
    }

    /// Adds questions to those of a node.
    pub(crate) fn ask(&self, look: &Look, questions: impl Iterator<Item = Question>) {
        let new: SmallVec<[Question; 8]> = questions.collect();
        if new.is_empty() {
            return;
        }
        let mut before = look.asked();
        loop {
            let mut all = match before {
                Asked::EVERYTHING => return,
                before => self.questions(before).to_vec(),
            };
            all.extend_from_slice(&new);
            all.sort_unstable();
            all.dedup();
            let after = if all.len() > Asked::MAX_QUESTIONS || all.contains(&Question::Everything) {
                Asked::EVERYTHING
            } else {
                Asked(self.questions.number(&all))
            };
            let set = look.asked.compare_exchange(before.0, after.0, Ordering::AcqRel, Ordering::Acquire);
            match set {
                Ok(_) => return,
                Err(other) => before = Asked(other),
            }
        }
    }

    /// Returns the answers to the questions about a scope that has seen a set of words, packed into a number.
    pub(crate) fn answers(&self, asked: Asked, set: u32, answer: impl Fn(Question) -> bool) -> u64 {
        if asked == Asked::EVERYTHING {
            return 1 << 63 | u64::from(set);
        }
        let questions = self.questions(asked).iter().enumerate();
        let answers = questions.fold(0, |all, (at, question)| all | u64::from(answer(*question)) << at);
        u64::from(asked.0) << 32 | answers
    }

    fn questions(&self, asked: Asked) -> &[Question] {
        if asked == Asked::NOTHING { &[] } else { self.questions.get(asked.0) }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let parts = self.nodes.iter().map(|(_, answer)| match answer {
            Answer::Mask(part, several) => part.heap_bytes() + several.len() * 4,
            // Lists with another owner are shared.
            Answer::Less(less) => {
                let owned = less.iter().filter(|list| Arc::strong_count(list) == 1);
                size_of_val(&**less) + owned.map(|list| list.len() * 4).sum::<usize>()
            }
            Answer::Look(_) | Answer::Growth(_) => 0,
        });
        let forks = self.forks.heap_bytes() + self.questions.heap_bytes();
        let bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        let bases: usize = bases.0.iter().map(|base| size_of_val(&**base)).sum();
        self.nodes.heap_bytes() + parts.sum::<usize>() + forks + bases
    }
}

#[inline]
fn hash(key: &Key) -> u64 {
    FxBuildHasher.hash_one(key)
}
