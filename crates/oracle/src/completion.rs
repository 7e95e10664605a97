//! How far is the end, and one way to get there.

use core::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use maskwright_grammar::{Expr, ExprId};

use crate::chart::{Position, Waiting};
use crate::facts::Facts;
use crate::{Oracle, State};

impl Oracle {
    /// At most so many more bytes are needed to complete the text; `None` if it cannot be completed, and 0
    /// exactly when it is complete. Some byte always makes it smaller.
    ///
    /// The nearest end is looked for like a shortest path: from what reads the next byte to what waits for
    /// that, and so on to the root.
    pub fn distance(&self, state: &State) -> Option<u64> {
        if self.is_accepting(state) {
            return Some(0);
        }
        let root = (self.facts.root(), 0);
        let mut reached: BTreeSet<(ExprId, Position)> = BTreeSet::new();
        let mut queue: BinaryHeap<Reverse<(u64, ExprId, Position)>> = BinaryHeap::new();
        for atom in state.sets.last().map_or(&[][..], |set| &set.atoms) {
            let distance = self.arena.borrow_mut().distance(atom.rest);
            if let Some(distance) = distance.unwrap_or_else(|unknown| panic!("{unknown}")) {
                queue.push(Reverse((distance, atom.expr, atom.origin)));
            }
        }
        while let Some(Reverse((total, expr, origin))) = queue.pop() {
            if (expr, origin) == root {
                return Some(total);
            }
            if !reached.insert((expr, origin)) {
                continue;
            }
            for item in &state.sets[origin as usize].waiting.list {
                if item.awaited == expr {
                    let total = total.saturating_add(after(&self.facts, item));
                    queue.push(Reverse((total, item.expr, item.origin)));
                }
            }
        }
        None
    }

    /// Bytes that complete the text, not many more than necessary; `None` if it cannot be completed.
    pub fn completion(&self, state: &State) -> Option<Vec<u8>> {
        let mut state = state.clone();
        let mut bytes = Vec::new();
        let mut distance = self.distance(&state)?;
        while distance > 0 {
            let nearest = self.next_bytes(&state).into_iter().filter_map(|(byte, next)| {
                self.distance(&next).map(|distance| (distance, byte, next))
            });
            let (now, byte, next) = nearest.min_by_key(|(distance, byte, _)| (*distance, *byte))?;
            assert!(now < distance, "a viable state comes nearer to its end by some byte");
            (distance, state) = (now, next);
            bytes.push(byte);
        }
        Some(bytes)
    }

    /// Every byte that may come next, with the state after it.
    pub fn next_bytes(&self, state: &State) -> Vec<(u8, State)> {
        let after = (0..=u8::MAX).map(|byte| (byte, self.step(state, byte)));
        after.filter(|(_, next)| self.is_viable(next)).collect()
    }
}

/// What an expression needs after the operand that it waits for.
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
