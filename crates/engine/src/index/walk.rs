//! Reads all tokens from a state at once.
//!
//! The row of a state tells for every token where it leads. Reading tokens one by one would take a step for each of
//! their bytes; three things reduce that to a small part:
//!
//! * Tokens are read along a trie, so a prefix is read once, and where it dies all tokens below it are dead.
//! * The trie is the smallest that the automaton can read ([`crate::library::tries`]), in which `cat` and `dog` may be
//!   one path. If there are many states, all bytes that *this* automaton does not distinguish are merged first.
//! * If a state leads to itself by every byte that occurs below a node, then so does everything below it.
//!
//! Tokens are identified by their *positions* in the trie, in whose order everything below a node is one range. So a
//! row is a short list of [`Run`]s.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::borrow::Cow;

use maskwright_automata::{Dfa, DfaState};
use maskwright_vocab::{ByteClasses, ClassTrie, Trie, TrieNodes};
use rayon::prelude::*;

use super::{FIRST, IndexError, IndexLimits, Resource};
use crate::library::Library;
use crate::library::tries::{Prepared, prepared};

/// Positions `start..end` lead to `target`, a state of the index; while rows are read, of the automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) target: u32,
}

/// The states that tokens can reach, and their rows.
pub(super) struct Rows<'l> {
    /// For each state, its state in the automaton.
    pub(super) states: Vec<DfaState>,
    /// All rows, concatenated.
    pub(super) runs: Vec<Run>,
    /// The end of each row.
    ends: Vec<usize>,
    /// The token at each position.
    pub(super) tokens: Cow<'l, [u32]>,
}

impl Rows<'_> {
    /// Returns the row of each state.
    pub(super) fn rows(&self) -> impl Iterator<Item = &[Run]> {
        (0..self.ends.len()).map(|state| self.row(state))
    }

    /// Returns the row of the state with this position.
    pub(super) fn row(&self, state: usize) -> &[Run] {
        let start = state.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.runs[start..self.ends[state]]
    }

    /// Returns the number of states.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Copies the tokens, so that the trie is no longer borrowed.
    fn into_owned(self) -> Rows<'static> {
        Rows { tokens: Cow::Owned(self.tokens.into_owned()), ..self }
    }
}

/// Reads the rows of all states that are reachable from the start.
pub(super) fn read_rows<'l>(
    dfa: &Dfa,
    library: &'l Library,
    limits: &IndexLimits,
) -> Result<Rows<'l>, IndexError> {
    let prepared = prepared(dfa, library.vocabulary(), library.tries(), library.bytes());
    // Merging pays off if much is read. Only reading shows how much, so reading starts again with merged bytes once it
    // has taken as long as merging would.
    let trie = prepared.trie;
    let before_merging =
        trie.len() * if prepared.skips.is_some() { 4 * STEPS_PER_MERGED_NODE } else { STEPS_PER_MERGED_NODE };
    if let Some(rows) = (Reader { dfa, prepared }).rows(limits.steps.min(before_merging), limits)? {
        return Ok(rows);
    }
    let classes = ByteClasses::of(|byte| dfa.classes().class(byte));
    let merged = ClassTrie::build(trie, classes);
    let reader = Reader { dfa, prepared: Prepared { trie: merged.trie(), skips: None } };
    let rows = reader.rows(limits.steps, limits)?;
    rows.map(Rows::into_owned).ok_or(IndexError::TooLarge { resource: Resource::Steps, limit: limits.steps })
}

/// Number of states read between checks of the limits.
const STATES_PER_CHECK: usize = 512;

/// Number of steps before other threads help. PERF: waking them takes longer than a small index.
const MIN_PARALLEL_STEPS: usize = 100_000;

/// Number of steps of reading that take as long as merging one node of a trie. A trie that distinguishes all of ASCII
/// becomes only slightly smaller by merging, and the knowledge of the bytes below its nodes is lost, so there it counts
/// four times. PERF: about 100 and 6 nanoseconds on one machine.
const STEPS_PER_MERGED_NODE: usize = 16;

struct Reader<'d, 'l> {
    dfa: &'d Dfa,
    prepared: Prepared<'l>,
}

impl<'l> Reader<'_, 'l> {
    /// Returns the rows of all states, or `None` if that takes too many steps.
    fn rows(&self, limit: usize, limits: &IndexLimits) -> Result<Option<Rows<'l>>, IndexError> {
        let mut number = vec![u32::MAX; self.dfa.len()];
        let (mut states, mut runs, mut ends) = (vec![self.dfa.start()], Vec::<Run>::new(), Vec::new());
        number[self.dfa.start().index()] = FIRST;
        let (steps, mut work) = (AtomicUsize::new(0), Vec::new());
        while ends.len() < states.len() {
            let most = if steps.load(Ordering::Relaxed) < MIN_PARALLEL_STEPS { 8 } else { STATES_PER_CHECK };
            let numbered = runs.len();
            match &states[ends.len()..states.len().min(ends.len() + most)] {
                few if few.len() <= 8 => {
                    for &state in few {
                        steps.fetch_add(self.row(state, limit, &mut runs, &mut work), Ordering::Relaxed);
                        ends.push(runs.len());
                    }
                }
                many => {
                    let read = |work: &mut Vec<Below>, &state: &DfaState| {
                        let mut row = Vec::new();
                        steps.fetch_add(self.row(state, limit, &mut row, work), Ordering::Relaxed);
                        row
                    };
                    let found: Vec<Vec<Run>> = many.par_iter().map_init(Vec::new, read).collect();
                    for row in found {
                        runs.extend(row);
                        ends.push(runs.len());
                    }
                }
            }
            if steps.load(Ordering::Relaxed) > limit {
                return Ok(None);
            }
            for run in &mut runs[numbered..] {
                let known = &mut number[run.target as usize];
                if *known == u32::MAX {
                    *known = FIRST + states.len() as u32;
                    states.push(DfaState(run.target));
                }
                run.target = *known;
            }
            limits.check_bytes(size_of_val(&*runs))?;
        }
        let tokens = Cow::Borrowed(self.prepared.trie.all_tokens());
        Ok(Some(Rows { states, runs, ends, tokens }))
    }

    /// Adds the row of a state, whose targets are states of the automaton, and returns how many steps that took. After
    /// too many steps it gives up and leaves the row incomplete.
    fn row(&self, state: DfaState, limit: usize, runs: &mut Vec<Run>, work: &mut Vec<Below>) -> usize {
        let Prepared { trie, skips } = &self.prepared;
        let classes = self.dfa.classes();
        let mut used = 0;
        let mut row = Row::after(runs);
        work.push(Below::Nodes(trie.children(Trie::ROOT), state));
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
                work.clear();
                break;
            }
            // The tokens of siblings come before everything below them, and everything below the first sibling comes
            // before the rest.
            let waiting = work.len();
            let targets = self.dfa.row(state);
            for (node, &byte) in siblings.clone().zip(trie.bytes(&siblings)) {
                let next = targets[usize::from(classes.class(byte))];
                if next == Dfa::DEAD {
                    continue;
                }
                row.add(trie.positions(node), next);
                let children = trie.children(node);
                if children.is_empty() {
                    continue;
                }
                let skipped = skips.as_ref().and_then(|skips| skips.stays_below(next, node));
                work.push(match skipped {
                    Some(positions) => Below::All(positions, next),
                    None => Below::Nodes(children, next),
                });
            }
            work[waiting..].reverse();
        }
        row.finish();
        used
    }
}

/// A part that has yet to be read.
enum Below {
    /// These siblings, from a state.
    Nodes(TrieNodes, DfaState),
    /// All of these positions lead to a state.
    All(Range<u32>, DfaState),
}

/// The runs of a row in ascending order, appended to those of other rows.
struct Row<'r> {
    runs: &'r mut Vec<Run>,
    /// The last run, which may still be extended.
    open: Run,
}

impl<'r> Row<'r> {
    fn after(runs: &'r mut Vec<Run>) -> Self {
        Self { runs, open: Run { start: 0, end: 0, target: Dfa::DEAD.0 } }
    }

    #[inline]
    fn add(&mut self, positions: Range<u32>, target: DfaState) {
        if positions.is_empty() {
            return;
        }
        if self.open.end == positions.start && self.open.target == target.0 {
            self.open.end = positions.end;
        } else {
            self.close();
            self.open = Run { start: positions.start, end: positions.end, target: target.0 };
        }
    }

    #[inline]
    fn close(&mut self) {
        if self.open.target != Dfa::DEAD.0 {
            self.runs.push(self.open);
        }
    }

    fn finish(mut self) {
        self.close();
    }
}
