//! Computes the distance to the end of a text, and a completion.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use maskwright_grammar::{Expr, ExprId};
use rustc_hash::FxHashSet;

use crate::chart::{Atom, Position, Waiting};
use crate::facts::Facts;
use crate::{Oracle, State};

impl Oracle {
    /// Returns an upper bound on the number of bytes that complete the text; `None` if it cannot be completed, and 0 if
    /// and only if it is complete. Some byte always decreases it.
    pub fn distance(&self, state: &State) -> Option<u64> {
        if self.is_accepting(state) { Some(0) } else { self.nearest(state).map(|(distance, _)| distance) }
    }

    /// Returns bytes that complete the text, not many more than necessary; `None` if it cannot be completed.
    pub fn completion(&self, state: &State) -> Option<Vec<u8>> {
        let mut state = state.clone();
        let mut bytes = Vec::new();
        let mut before = u64::MAX;
        while !self.is_accepting(&state) {
            let (distance, atom) = self.nearest(&state)?;
            assert!(distance < before, "a viable text comes nearer to its end by some byte");
            before = distance;
            let byte = self.arena.borrow_mut().nearest_byte(atom.rest).unwrap_or_else(|e| panic!("{e}"))?;
            self.push(&mut state.sets, byte);
            bytes.push(byte);
        }
        Some(bytes)
    }

    /// Returns the distance of an incomplete text, and the atom that reads the next byte towards the end.
    ///
    /// The nearest end is found like a shortest path: from the atoms to the expressions that wait for them, and so on
    /// to the root.
    fn nearest(&self, state: &State) -> Option<(u64, Atom)> {
        let atoms = state.sets.last().map_or(&[][..], |set| &set.atoms);
        let mut reached: FxHashSet<(ExprId, Position)> = FxHashSet::default();
        let mut queue: BinaryHeap<Reverse<(u64, ExprId, Position, usize)>> = BinaryHeap::new();
        for (i, atom) in atoms.iter().enumerate() {
            let distance = self.arena.borrow_mut().distance(atom.rest).unwrap_or_else(|e| panic!("{e}"));
            // An atom that is done has already produced other atoms, or the text is complete.
            if let Some(distance) = distance.filter(|&distance| distance > 0) {
                queue.push(Reverse((distance, atom.expr, atom.origin, i)));
            }
        }
        while let Some(Reverse((total, expr, origin, i))) = queue.pop() {
            if (expr, origin) == (self.facts.root(), 0) {
                return Some((total, atoms[i]));
            }
            if reached.insert((expr, origin)) {
                for item in state.sets[origin as usize].waiting_for(expr) {
                    if !reached.contains(&(item.expr, item.origin)) {
                        let total = total.saturating_add(after(&self.facts, item));
                        queue.push(Reverse((total, item.expr, item.origin, i)));
                    }
                }
            }
        }
        None
    }

    /// Returns every byte that may come next, with the state after it.
    pub fn next_bytes(&self, state: &State) -> Vec<(u8, State)> {
        let after = (0..=u8::MAX).map(|byte| (byte, self.step(state, byte)));
        after.filter(|(_, next)| self.is_viable(next)).collect()
    }
}

/// Returns what an expression needs after the operand that it waits for.
fn after(facts: &Facts, item: &Waiting) -> u64 {
    let distance = |expr: ExprId| facts.distance(expr).unwrap_or(u64::MAX);
    match facts.expr(item.expr) {
        Expr::Seq(parts) => parts[item.progress as usize + 1..]
            .iter()
            .fold(0u64, |sum, &part| sum.saturating_add(distance(part))),
        Expr::Repeat { .. } => facts.bounds(item.expr).map_or(0, |bounds| {
            let missing = bounds.min.saturating_sub(item.progress.saturating_add(1));
            distance(bounds.body).saturating_mul(missing.into())
        }),
        _ => 0,
    }
}
