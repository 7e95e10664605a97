//! All tokens read from a state at once.
//!
//! A state's row says for every token where it leads. Reading tokens one by one would take a step for each byte of each of
//! them; three things make it a small part of that:
//!
//! * tokens are read along a trie, so a prefix is read once, and where it dies all tokens below it are dead;
//! * if the automaton does not tell apart the bytes of a prepared class trie, that trie is read, in which `cat` and `dog` are
//!   one path; and if there are many states, the bytes that *this* automaton does not tell apart are merged first;
//! * if a state leads to itself by every byte that occurs below a node, then so does everything below it.
//!
//! Tokens are named by their *positions* in the trie, in whose order everything below a node is one range. So a row is a
//! short list of [`Run`]s.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use maskwright_automata::Dfa;
use maskwright_vocab::{ByteClasses, ClassTrie, Trie, Vocabulary};
use rayon::prelude::*;

use super::{FIRST, IndexError, IndexLimits, Resource};
use crate::bind::{Bytes, Library, byte_bit};

/// Positions `start..end` lead to `target`, a state of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) target: u32,
}

/// The states that tokens can reach, and their rows.
pub(super) struct Rows {
    /// For each state, its state in the automaton.
    pub(super) states: Vec<u32>,
    pub(super) rows: Vec<Box<[Run]>>,
    /// Which token each position is.
    pub(super) tokens: Vec<u32>,
}

/// Reads the rows of all states that the start can reach.
pub(super) fn read_rows(dfa: &Dfa, library: &Library, limits: &IndexLimits) -> Result<Rows, IndexError> {
    let vocabulary = library.vocabulary();
    let own = own_trie(dfa, vocabulary);
    let reader = Reader::new(dfa, library, own.as_ref());
    let mut number = vec![u32::MAX; dfa.len()];
    let (mut states, mut rows) = (vec![dfa.start()], Vec::<Box<[Run]>>::new());
    number[dfa.start() as usize] = FIRST;
    let (steps, mut runs) = (AtomicUsize::new(0), 0);
    while rows.len() < states.len() {
        let next = rows.len()..states.len().min(rows.len() + AT_ONCE);
        let read = |&state: &u32| reader.row(state, &steps, limits.steps);
        let found: Vec<Box<[Run]>> = match &states[next] {
            [only] => vec![read(only)],
            many => many.par_iter().map(read).collect(),
        };
        if steps.load(Ordering::Relaxed) > limits.steps {
            return Err(IndexError::TooLarge { resource: Resource::Steps, limit: limits.steps });
        }
        for mut row in found {
            for run in &mut row {
                let known = &mut number[run.target as usize];
                if *known == u32::MAX {
                    *known = FIRST + states.len() as u32;
                    states.push(run.target);
                }
                run.target = *known;
            }
            runs += row.len();
            rows.push(row);
        }
        if runs * size_of::<Run>() > limits.bytes {
            return Err(IndexError::TooLarge { resource: Resource::Bytes, limit: limits.bytes });
        }
    }
    Ok(Rows { states, rows, tokens: reader.trie.all_tokens().to_vec() })
}

/// So many states are read before limits are looked at again.
const AT_ONCE: usize = 512;

/// From this many states on, merging the bytes of a trie pays. See `mwbench regex`: `permissive_any` has thousands.
const MERGE_FROM: usize = 96;

/// A trie in which bytes are merged that the automaton does not tell apart, if that is worth its price.
fn own_trie(dfa: &Dfa, vocabulary: &Vocabulary) -> Option<ClassTrie> {
    let classes = ByteClasses::of(|byte| dfa.classes().class(byte));
    (dfa.len() >= MERGE_FROM).then(|| ClassTrie::build(prepared(dfa, vocabulary).0, classes))
}

/// The smallest trie of the vocabulary that this automaton can read, and whether it is the one of whole bytes.
fn prepared<'v>(dfa: &Dfa, vocabulary: &'v Vocabulary) -> (&'v Trie, bool) {
    let same = |a: u8, b: u8| dfa.classes().class(a) == dfa.classes().class(b);
    let class_trie = vocabulary.class_tries().iter().find(|trie| trie.respects(same));
    class_trie.map_or((vocabulary.trie(), true), |trie| (trie.trie(), false))
}

struct Reader<'a> {
    dfa: &'a Dfa,
    trie: &'a Trie,
    /// What is known of the bytes below each node, if the trie is the vocabulary's.
    bytes: Option<&'a Bytes>,
    /// For each state, the bytes by which it leads to itself, where that is of use.
    loops: Vec<u128>,
}

impl<'a> Reader<'a> {
    fn new(dfa: &'a Dfa, library: &'a Library, own: Option<&'a ClassTrie>) -> Self {
        let (trie, whole_bytes) = match own {
            Some(own) => (own.trie(), false),
            None => prepared(dfa, library.vocabulary()),
        };
        let bytes = whole_bytes.then(|| library.bytes());
        let loops = if whole_bytes { loops(dfa) } else { Vec::new() };
        Self { dfa, trie, bytes, loops }
    }

    /// The row of a state, whose targets are states of the automaton. Gives up when all rows together took too many steps.
    fn row(&self, state: u32, steps: &AtomicUsize, limit: usize) -> Box<[Run]> {
        let mut row = Row(Vec::new());
        let mut work = vec![Below::Nodes(self.trie.children(Trie::ROOT), state)];
        while let Some(below) = work.pop() {
            let (siblings, state) = match below {
                Below::Nodes(siblings, state) => (siblings, state),
                Below::All(positions, target) => {
                    row.add(positions, target);
                    continue;
                }
            };
            let used = siblings.len();
            if steps.fetch_add(used, Ordering::Relaxed) + used > limit {
                return Box::default();
            }
            // The tokens of siblings come before everything below them, and what is below the first before the rest.
            let waiting = work.len();
            for (node, &byte) in siblings.clone().zip(self.trie.bytes(siblings)) {
                let next = self.dfa.next(state, byte);
                if next == Dfa::DEAD {
                    continue;
                }
                row.add(self.trie.positions(node), next);
                let children = self.trie.children(node);
                if children.is_empty() {
                    continue;
                }
                work.push(if self.stays_below(next, node) {
                    Below::All(self.trie.positions_below(node), next)
                } else {
                    Below::Nodes(children, next)
                });
            }
            work[waiting..].reverse();
        }
        row.0.into()
    }

    #[inline]
    fn stays_below(&self, state: u32, node: u32) -> bool {
        self.bytes.is_some_and(|bytes| bytes.below(node) & !self.loops[state as usize] == 0)
    }
}

/// What has yet to be read.
enum Below {
    /// These siblings, from a state.
    Nodes(Range<u32>, u32),
    /// All of these positions lead to a state.
    All(Range<u32>, u32),
}

/// For each state the ASCII bytes by which it leads to itself.
fn loops(dfa: &Dfa) -> Vec<u128> {
    let representatives = dfa.classes().representatives();
    let mut members = vec![0u128; representatives.len()];
    // Zero shares its bit with bytes beyond ASCII, so it is never part of a loop here.
    for byte in 1..0x80 {
        members[usize::from(dfa.classes().class(byte))] |= byte_bit(byte);
    }
    let of = |state: u32| {
        let stay = representatives.iter().zip(&members).filter(|(byte, _)| dfa.next(state, **byte) == state);
        stay.fold(0, |bits, (_, members)| bits | members)
    };
    (0..dfa.len() as u32).map(of).collect()
}

/// Runs, ascending.
struct Row(Vec<Run>);

impl Row {
    #[inline]
    fn add(&mut self, positions: Range<u32>, target: u32) {
        match self.0.last_mut() {
            _ if positions.is_empty() => {}
            Some(last) if last.end == positions.start && last.target == target => last.end = positions.end,
            _ => self.0.push(Run { start: positions.start, end: positions.end, target }),
        }
    }
}
