//! All tokens read from a state at once.
//!
//! A state's row says for every token where it leads. Reading tokens one by one would take a step for each byte of each of
//! them; three things make it a small part of that:
//!
//! * tokens are read along a trie, so a prefix is read once, and where it dies all tokens below it are dead;
//! * the trie is the smallest that the automaton can read ([`super::tries`]), in which `cat` and `dog` may be one path; and if
//!   there are many states, all bytes that *this* automaton does not tell apart are merged first;
//! * if a state leads to itself by every byte that occurs below a node, then so does everything below it.
//!
//! Tokens are named by their *positions* in the trie, in whose order everything below a node is one range. So a row is a
//! short list of [`Run`]s.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use maskwright_automata::Dfa;
use maskwright_vocab::{ByteClasses, ClassTrie, Trie};
use rayon::prelude::*;

use super::tries::{Prepared, prepared};
use super::{FIRST, IndexError, IndexLimits, Resource};
use crate::bind::Library;

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
    pub(super) runs: Vec<Box<[Run]>>,
    /// Which token each position is.
    pub(super) tokens: Vec<u32>,
}

/// Reads the rows of all states that the start can reach.
pub(super) fn read_rows(dfa: &Dfa, library: &Library, limits: &IndexLimits) -> Result<Rows, IndexError> {
    let prepared = prepared(dfa, library);
    // Merging pays if much is read. How much, only reading shows: so when it has taken as long as merging would, begin again.
    let trie = prepared.trie;
    let before_merging = trie.len() * if prepared.skips.is_some() { 4 * MERGING } else { MERGING };
    if let Some(rows) = (Reader { dfa, prepared }).rows(limits.steps.min(before_merging), limits)? {
        return Ok(rows);
    }
    let classes = ByteClasses::of(|byte| dfa.classes().class(byte));
    let merged = ClassTrie::build(trie, classes);
    let reader = Reader { dfa, prepared: Prepared { trie: merged.trie(), skips: None } };
    let rows = reader.rows(limits.steps, limits)?;
    rows.ok_or(IndexError::TooLarge { resource: Resource::Steps, limit: limits.steps })
}

/// So many states are read before limits are looked at again.
const AT_ONCE: usize = 512;

/// So many steps are taken before other threads are asked to help. PERF: waking them takes longer than a small index.
const ALONE: usize = 100_000;

/// How many steps of reading take as long as merging one node of a trie. A trie that tells apart all of ASCII becomes little
/// smaller by merging, and what is known of the bytes below its nodes is lost, so there it takes four times as many. PERF: about
/// 100 and 6 nanoseconds on one machine.
const MERGING: usize = 16;

struct Reader<'a> {
    dfa: &'a Dfa,
    prepared: Prepared<'a>,
}

impl Reader<'_> {
    /// The rows of all states, or nothing if that takes too many steps.
    fn rows(&self, limit: usize, limits: &IndexLimits) -> Result<Option<Rows>, IndexError> {
        let mut number = vec![u32::MAX; self.dfa.len()];
        let (mut states, mut rows) = (vec![self.dfa.start()], Vec::<Box<[Run]>>::new());
        number[self.dfa.start() as usize] = FIRST;
        let (steps, mut runs) = (AtomicUsize::new(0), 0);
        while rows.len() < states.len() {
            let most = if steps.load(Ordering::Relaxed) < ALONE { 8 } else { AT_ONCE };
            let next = rows.len()..states.len().min(rows.len() + most);
            let read = |&state: &u32| self.row(state, &steps, limit);
            let found: Vec<Box<[Run]>> = match &states[next] {
                few if few.len() <= 8 => few.iter().map(read).collect(),
                many => many.par_iter().map(read).collect(),
            };
            if steps.load(Ordering::Relaxed) > limit {
                return Ok(None);
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
            limits.check_bytes(runs * size_of::<Run>())?;
        }
        Ok(Some(Rows { states, runs: rows, tokens: self.prepared.trie.all_tokens().to_vec() }))
    }

    /// The row of a state, whose targets are states of the automaton. Gives up when all rows together took too many steps.
    fn row(&self, state: u32, steps: &AtomicUsize, limit: usize) -> Box<[Run]> {
        let Prepared { trie, skips } = &self.prepared;
        let mut used = 0;
        let mut row = Row(Vec::new());
        let mut work = vec![Below::Nodes(trie.children(Trie::ROOT), state)];
        while let Some(below) = work.pop() {
            let (siblings, state) = match below {
                Below::Nodes(siblings, state) => (siblings, state),
                Below::All(positions, target) => {
                    row.add(positions, target);
                    continue;
                }
            };
            used += siblings.len();
            if used > limit {
                break;
            }
            // The tokens of siblings come before everything below them, and what is below the first before the rest.
            let waiting = work.len();
            for (node, &byte) in siblings.clone().zip(trie.bytes(siblings)) {
                let next = self.dfa.next(state, byte);
                if next == Dfa::DEAD {
                    continue;
                }
                row.add(trie.positions(node), next);
                let children = trie.children(node);
                if children.is_empty() {
                    continue;
                }
                work.push(match skips {
                    Some(skips) if skips.stays_below(next, node) => {
                        Below::All(skips.positions_below(trie, node), next)
                    }
                    _ => Below::Nodes(children, next),
                });
            }
            work[waiting..].reverse();
        }
        // What was read beyond the limit is thrown away by whoever looks at the sum.
        steps.fetch_add(used, Ordering::Relaxed);
        row.0.into()
    }
}

/// What has yet to be read.
enum Below {
    /// These siblings, from a state.
    Nodes(Range<u32>, u32),
    /// All of these positions lead to a state.
    All(Range<u32>, u32),
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
