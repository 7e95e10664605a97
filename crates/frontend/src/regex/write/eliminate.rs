//! Converts an automaton to a regular expression, by state elimination.
//!
//! ```text
//!   p ──a──▶ q ──b──▶ r        q goes:     p ──a c* b──▶ r
//!            ↺ c
//! ```
//!
//! Every pair of an arrow into a state and an arrow out of it becomes one arrow past it, until only the start and the
//! end are left. The order decides how long the result is. The state whose removal adds the least is removed first, by
//! the measure of Delgado and Morais ("Approximation to the smallest regular expression for a given regular language",
//! 2004).

use std::collections::BTreeMap;

use super::letters::Letters;
use super::parts::{PartId, Parts};

/// Returns the language of an automaton, or `None` if some arrow becomes longer than the limit.
pub(super) fn eliminate(letters: &Letters, parts: &mut Parts, limit: u64) -> Option<PartId> {
    let mut graph = Graph::new(letters, parts);
    let mut left: Vec<usize> = (0..letters.states.len()).collect();
    while let Some((place, &state)) =
        left.iter().enumerate().min_by_key(|&(_, &state)| graph.weight(state, parts))
    {
        left.swap_remove(place);
        graph.remove(state, parts, limit)?;
    }
    Some(graph.arrow(graph.begin, graph.end))
}

/// Arrows by source and by target. Ordered maps keep the result the same on every run.
struct Graph {
    leaving: Vec<BTreeMap<usize, PartId>>,
    arriving: Vec<BTreeMap<usize, PartId>>,
    begin: usize,
    end: usize,
}

impl Graph {
    fn new(letters: &Letters, parts: &mut Parts) -> Self {
        let count = letters.states.len();
        let (begin, end) = (count, count + 1);
        let mut graph = Self {
            leaving: vec![BTreeMap::new(); count + 2],
            arriving: vec![BTreeMap::new(); count + 2],
            begin,
            end,
        };
        if count > 0 {
            graph.add(begin, 0, PartId::EMPTY, parts);
        }
        for (from, state) in letters.states.iter().enumerate() {
            for (set, to) in &state.arrows {
                let class = parts.class(set.clone());
                graph.add(from, *to, class, parts);
            }
            if state.accepts {
                graph.add(from, end, PartId::EMPTY, parts);
            }
        }
        graph
    }

    fn arrow(&self, from: usize, to: usize) -> PartId {
        self.leaving[from].get(&to).copied().unwrap_or(PartId::NEVER)
    }

    fn add(&mut self, from: usize, to: usize, part: PartId, parts: &mut Parts) {
        let both = match self.arrow(from, to) {
            PartId::NEVER => part,
            known => parts.alt([known, part]),
        };
        self.leaving[from].insert(to, both);
        self.arriving[to].insert(from, both);
    }

    /// Returns how much longer the whole expression becomes when this state is removed.
    fn weight(&self, state: usize, parts: &Parts) -> u64 {
        let others = |map: &BTreeMap<usize, PartId>| {
            let others = map.iter().filter(|(other, _)| **other != state);
            others.fold((0u64, 0u64), |(count, sum), (_, part)| {
                (count + 1, sum.saturating_add(parts.length(*part)))
            })
        };
        let ((ins, in_length), (outs, out_length)) =
            (others(&self.arriving[state]), others(&self.leaving[state]));
        let own = match self.arrow(state, state) {
            PartId::NEVER => 0,
            own => parts.length(own),
        };
        let grown = |length: u64, times: u64| length.saturating_mul(times.saturating_sub(1));
        grown(in_length, outs)
            .saturating_add(grown(out_length, ins))
            .saturating_add(grown(own, ins.saturating_mul(outs)))
    }

    fn remove(&mut self, state: usize, parts: &mut Parts, limit: u64) -> Option<()> {
        let mut arriving = core::mem::take(&mut self.arriving[state]);
        let mut leaving = core::mem::take(&mut self.leaving[state]);
        let own = leaving.remove(&state).unwrap_or(PartId::NEVER);
        arriving.remove(&state);
        let around = parts.repeat(own, 0, None);
        for from in arriving.keys() {
            self.leaving[*from].remove(&state);
        }
        for to in leaving.keys() {
            self.arriving[*to].remove(&state);
        }
        for (&from, &before) in &arriving {
            for (&to, &after) in &leaving {
                let past = parts.seq([before, around, after]);
                if parts.length(past) > limit {
                    return None;
                }
                self.add(from, to, past, parts);
            }
        }
        Some(())
    }
}
