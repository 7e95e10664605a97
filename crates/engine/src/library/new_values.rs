//! Computes the cost of a value that must be new.
//!
//! A value that must differ from those already seen may have to be longer than the shortest value. An upper bound on
//! how much longer is computed once for the leaf of such values: if more than [`MAX_SEEN_VALUES`] texts have at most
//! this many bytes, one of them is new.
//!
//! ```text
//!   "[^"]*"    2 bytes: 1 text    3 bytes: 93 and more    4 bytes: more than 8,000     a new value has at most 4 bytes, 2 more than the shortest
//! ```
//! This is about values that have not begun. For one that has begun, [`NewValues::bytes_left`] uses the values that
//! were seen.
//!
//! Only strings without a maximum length are measured: other values may run out, or have several spellings.

use maskwright_automata::ByteSet;
use rustc_hash::FxHashMap;

use super::leaf_distance::{InLeaf, LeafDistances, NEVER, after};
use crate::count::UNBOUNDED;
use crate::leaf::{Automaton, Leaf, LeafState, json_string};
use crate::program::network::{Callee, Node, NodeId};
use crate::program::{LeafId, Program};

/// The number of values of a scope that may have been seen.
pub(crate) const MAX_SEEN_VALUES: u32 = 4_096;
/// Tables with more states are not measured.
const MAX_STATES: usize = 512;
/// The greatest number of bytes beyond the shortest value for which new values are looked for.
const MAX_EXTRA_BYTES: usize = 64;
/// The greatest number of prefixes of seen values that are examined.
const MAX_PREFIXES: usize = 4_096;

/// The cost of a new value of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    /// The greatest number of bytes of a new value.
    whole: u32,
    /// The greatest number of bytes beyond the shortest way to the end, from any state.
    more: u32,
}

/// The costs of new values in a program.
#[derive(Debug, Default)]
pub(crate) struct NewValues {
    leaves: FxHashMap<LeafId, Cost>,
    checks: FxHashMap<NodeId, LeafId>,
    /// Whether the cost of every value that must be new is known.
    covers_all_checks: bool,
}

impl NewValues {
    pub(super) fn of(program: &Program, distances: &LeafDistances) -> Self {
        let network = program.network();
        let mut values = Self { covers_all_checks: !network.nested_values, ..Self::default() };
        if network.scopes.is_empty() {
            return values;
        }
        for (at, node) in (0..).map(NodeId).zip(&network.nodes) {
            if !matches!(node, Node::Call { callee: Callee::Check, .. })
                || network.followed_word(at).is_some()
            {
                continue;
            }
            let leaf = network.endless_checks.get(&at).copied().filter(|leaf| {
                let is_known = values.leaves.contains_key(leaf);
                let cost = if is_known { None } else { measure(program, distances, *leaf) };
                cost.is_some_and(|cost| values.leaves.insert(*leaf, cost).is_none()) || is_known
            });
            match leaf {
                Some(leaf) => drop(values.checks.insert(at, leaf)),
                None => values.covers_all_checks = false,
            }
        }
        values
    }

    /// Checks whether the cost of every value that must be new is known.
    pub(crate) fn covers_all_checks(&self) -> bool {
        self.covers_all_checks
    }

    /// Returns an upper bound on the number of tokens that write a new value at a check.
    pub(crate) fn of_check(&self, check: NodeId) -> Option<u32> {
        self.checks.get(&check).map(|leaf| self.leaves[leaf].whole)
    }

    /// Returns how many bytes beyond the shortest value it takes to pass a check.
    pub(super) fn more(&self, check: NodeId) -> Option<u32> {
        self.checks.get(&check).map(|leaf| self.leaves[leaf].more)
    }

    /// Returns an upper bound on the number of bytes to the end of a new value. `rests` are the completions that would
    /// repeat a seen value, or `None` in the middle of an escape.
    pub(crate) fn bytes_left(
        &self,
        program: &Program,
        distances: &LeafDistances,
        place: InLeaf,
        rests: Option<Vec<&[u8]>>,
    ) -> Option<u32> {
        let left = |(leaf, state, count)| distances.leaf(program, leaf, state, count);
        let Some(rests) = rests else {
            let more = self.leaves.values().map(|cost| cost.more).max()?;
            return left(place).checked_add(more).filter(|bytes| *bytes < NEVER);
        };
        // Breadth-first along the values that were seen: any other byte leads away from all of them.
        let mut best = NEVER;
        let (mut level, mut depth, mut visited) = (vec![(place, rests)], 0u32, 0);
        while !level.is_empty() && depth + 1 < best && visited < MAX_PREFIXES {
            let mut next = Vec::new();
            depth += 1;
            for (place, rests) in level {
                visited += 1;
                for byte in plain_bytes().intersection(distances.singles()).iter() {
                    let Some(place) = after(program, place, byte) else { continue };
                    let seen = rests.iter().filter(|rest| rest.first() == Some(&byte));
                    let seen: Vec<&[u8]> = seen.map(|rest| &rest[1..]).collect();
                    if seen.is_empty() {
                        best = best.min(left(place).saturating_add(depth));
                    } else if seen.iter().all(|rest| !rest.is_empty()) {
                        next.push((place, seen));
                    }
                }
            }
            level = next;
        }
        (best != NEVER).then_some(best)
    }
}

/// Returns the bytes of characters that have only one spelling without escapes.
fn plain_bytes() -> ByteSet {
    ByteSet::range(b' ', u8::MAX).difference(ByteSet::byte(b'\\'))
}

fn measure(program: &Program, distances: &LeafDistances, id: LeafId) -> Option<Cost> {
    let (leaf, start) = (program.leaf(id), program.leaf(id).start());
    if !leaf.is_string() || leaf.bounds().max != UNBOUNDED || !distances.is_by_bytes() {
        return None;
    }
    let (automaton, more) = match leaf {
        Leaf::Window { automaton, .. } => (&**automaton, 0),
        // One more character, because of the words that it must not be.
        Leaf::Text(_) => (&**json_string(), 1),
    };
    let shortest = |state: LeafState| match leaf {
        Leaf::Window { min, .. } => distances.leaf(program, id, state, *min),
        Leaf::Text(_) => distances.leaf(program, program.plain_string(), state, 0),
    };
    let lengths = lengths(automaton, distances.singles())?;
    let mut most = 0;
    // Where nothing can follow, the value is complete.
    for state in automaton.live_states().filter(|state| !automaton.live(*state).is_empty()) {
        most = most.max(lengths[state.index()]?.checked_sub(shortest(state))?);
    }
    let whole = distances.leaf(program, id, start, 0);
    let more = most + more;
    (whole < NEVER).then_some(Cost { whole: whole + more, more })
}

/// Computes for each state a length such that more than [`MAX_SEEN_VALUES`] different strings of at most this length
/// are reachable.
fn lengths(automaton: &Automaton, bytes: ByteSet) -> Option<Vec<Option<u32>>> {
    if automaton.len() > MAX_STATES {
        return None;
    }
    let targets = |state: LeafState, among: ByteSet| {
        let live = automaton.live(state).intersection(bytes).intersection(among);
        live.iter().map(move |byte| automaton.step(state, byte).target()).filter(|to| !to.is_dead())
    };
    let plain = |state: LeafState| targets(state, plain_bytes()).collect::<Vec<_>>();
    let mut is_plain = vec![false; automaton.len()];
    let mut work = vec![automaton.start()];
    while let Some(state) = work.pop() {
        if !core::mem::replace(&mut is_plain[state.index()], true) {
            work.extend(plain(state));
        }
    }
    let next: Vec<Vec<LeafState>> = (0..automaton.len() as u32)
        .map(LeafState)
        .map(
            |state| {
                if is_plain[state.index()] { plain(state) } else { targets(state, ByteSet::ALL).collect() }
            },
        )
        .collect();
    // The number of texts of one length from each state to the end, and the number of texts up to that length.
    let mut count: Vec<u32> = (0..automaton.len() as u32)
        .map(|state| u32::from(automaton.is_accepting(LeafState(state))))
        .collect();
    let mut sum = count.clone();
    let mut found = vec![None; automaton.len()];
    for length in 0..MAX_EXTRA_BYTES as u32 {
        for state in 0..automaton.len() {
            if sum[state] > MAX_SEEN_VALUES && found[state].is_none() {
                found[state] = Some(length);
            }
        }
        let of = |state: usize| {
            let counts = next[state].iter().map(|to| count[to.index()]);
            // Inside an escape, only the way with the most texts counts.
            if is_plain[state] { counts.fold(0u32, u32::saturating_add) } else { counts.max().unwrap_or(0) }
        };
        count = (0..automaton.len()).map(of).collect();
        sum.iter_mut().zip(&count).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
    }
    Some(found)
}
