//! Sums over all paths of a graph, loops included.
//!
//! With P(X, Y) as the weight of one step from X to Y, the weight of all paths is 1 + P + P² + … = (1 − P)⁻¹. For a
//! grammar with thousands of symbols that matrix would be huge, so it is never built. Only loops need to be solved:
//! each strongly connected component has its own small closure, found by elimination, which needs no subtraction but
//! only [`star`](Semiring::star). Between components weights flow in one direction.

use std::collections::BinaryHeap;

use crate::scc::{Components, components, cycle};
use crate::semiring::Semiring;

/// A weighted graph with its loops solved.
#[derive(Debug)]
pub(crate) struct Closure<S: Semiring> {
    edges: Vec<Vec<(u32, S::Value)>>,
    parts: Components,
    /// For each component, the weights of all paths inside it, row by row; empty if it has no loop.
    blocks: Vec<Vec<S::Value>>,
}

/// The reason why a graph has no closure.
#[derive(Debug)]
pub(crate) enum Unsolved {
    /// The weight of this loop is at least one, so its sum diverges.
    Loop(Vec<u32>),
    /// A component has this many symbols.
    TooLarge(usize),
}

/// The greatest number of symbols in one loop: elimination takes its cube.
pub(crate) const LARGEST_LOOP: usize = 1_500;

/// The buffers of one computation, reused.
#[derive(Clone, Debug)]
pub(crate) struct Flow<S: Semiring> {
    amount: Vec<S::Value>,
    waiting: BinaryHeap<u32>,
    queued: Vec<bool>,
}

impl<S: Semiring> Closure<S> {
    pub(crate) fn new(edges: Vec<Vec<(u32, S::Value)>>) -> Result<Self, Unsolved> {
        let targets: Vec<Vec<u32>> =
            edges.iter().map(|row| row.iter().map(|edge| edge.0).collect()).collect();
        let parts = components(edges.len(), |node| &targets[node as usize]);
        let mut blocks = Vec::with_capacity(parts.members.len());
        for (number, members) in parts.members.iter().enumerate() {
            let block = block::<S>(&edges, members)?;
            blocks.push(block.ok_or_else(|| {
                Unsolved::Loop(cycle(&parts, number as u32, |node| &targets[node as usize]))
            })?);
        }
        Ok(Self { edges, parts, blocks })
    }

    /// Returns the memory in bytes, approximately.
    pub(crate) fn heap_bytes(&self) -> usize {
        let edges = self.edges.iter().map(|row| 24 + size_of_val(&**row)).sum::<usize>();
        // Each node is a member of one component, which has a block.
        edges + self.blocks.iter().map(|block| 60 + size_of_val(&**block)).sum::<usize>()
    }

    pub(crate) fn flow(&self) -> Flow<S> {
        Flow {
            amount: vec![S::ZERO; self.edges.len()],
            waiting: BinaryHeap::new(),
            queued: vec![false; self.blocks.len()],
        }
    }

    /// Returns how much reaches each node from these sources, in ascending order of the nodes.
    pub(crate) fn reach(&self, sources: &[(u32, S::Value)], flow: &mut Flow<S>) -> Vec<(u32, S::Value)> {
        let mut out = Vec::new();
        for &(node, amount) in sources {
            self.pour(node, amount, flow);
        }
        // A component has a greater number than its successors.
        while let Some(component) = flow.waiting.pop() {
            flow.queued[component as usize] = false;
            let first = out.len();
            self.settle(component, flow, &mut out);
            for &(node, amount) in &out[first..] {
                for &(target, weight) in &self.edges[node as usize] {
                    if self.parts.of[target as usize] != component {
                        self.pour(target, S::mul(amount, weight), flow);
                    }
                }
            }
        }
        out.sort_unstable_by_key(|reached| reached.0);
        out
    }

    fn pour(&self, node: u32, amount: S::Value, flow: &mut Flow<S>) {
        if S::is_zero(amount) {
            return;
        }
        let component = self.parts.of[node as usize];
        flow.amount[node as usize] = S::add(flow.amount[node as usize], amount);
        if !std::mem::replace(&mut flow.queued[component as usize], true) {
            flow.waiting.push(component);
        }
    }

    /// Distributes the amounts within a component, with all its loops.
    fn settle(&self, component: u32, flow: &mut Flow<S>, out: &mut Vec<(u32, S::Value)>) {
        let members = &self.parts.members[component as usize];
        let block = &self.blocks[component as usize];
        let size = members.len();
        let poured: Vec<S::Value> =
            members.iter().map(|node| std::mem::replace(&mut flow.amount[*node as usize], S::ZERO)).collect();
        for (at, node) in members.iter().enumerate() {
            let amount = if block.is_empty() {
                poured[at]
            } else {
                let ways =
                    poured.iter().enumerate().map(|(from, amount)| S::mul(*amount, block[from * size + at]));
                ways.fold(S::ZERO, S::add)
            };
            if !S::is_zero(amount) {
                out.push((*node, amount));
            }
        }
    }
}

/// Computes the weights of all paths inside a component: `None` if there are none, an error if the sum diverges.
fn block<S: Semiring>(
    edges: &[Vec<(u32, S::Value)>],
    members: &[u32],
) -> Result<Option<Vec<S::Value>>, Unsolved> {
    let size = members.len();
    let is_loop = |node: u32| edges[node as usize].iter().any(|edge| edge.0 == node);
    if let [node] = members
        && !is_loop(*node)
    {
        return Ok(Some(Vec::new()));
    }
    if size > LARGEST_LOOP {
        return Err(Unsolved::TooLarge(size));
    }
    let mut matrix = vec![S::ZERO; size * size];
    for (row, node) in members.iter().enumerate() {
        for &(target, weight) in &edges[*node as usize] {
            if let Ok(column) = members.binary_search(&target) {
                let cell = &mut matrix[row * size + column];
                *cell = S::add(*cell, weight);
            }
        }
    }
    Ok(star::<S>(matrix, size))
}

/// Computes 1 + A + A² + … by elimination. After round k, a cell contains the paths that pass only through the first k
/// nodes.
pub(crate) fn star<S: Semiring>(mut matrix: Vec<S::Value>, size: usize) -> Option<Vec<S::Value>> {
    for middle in 0..size {
        let around = S::star(matrix[middle * size + middle])?;
        let through: Vec<S::Value> = matrix[middle * size..(middle + 1) * size].to_vec();
        for row in 0..size {
            let there = S::mul(matrix[row * size + middle], around);
            if S::is_zero(there) {
                continue;
            }
            for (column, &onward) in through.iter().enumerate() {
                let cell = &mut matrix[row * size + column];
                *cell = S::add(*cell, S::mul(there, onward));
            }
        }
    }
    for at in 0..size {
        matrix[at * size + at] = S::add(matrix[at * size + at], S::ONE);
    }
    Some(matrix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semiring::{Boolean, Real};

    #[test]
    fn loops_add_up_to_the_inverse() {
        // 0 → 1 (½), 1 → 0 (½), 1 → 2 (¼): from 0, node 0 is visited 1/(1 − ¼) times.
        let edges = vec![vec![(1, 0.5)], vec![(0, 0.5), (2, 0.25)], vec![]];
        let closure = Closure::<Real>::new(edges).unwrap();
        let reached = closure.reach(&[(0, 1.0)], &mut closure.flow());
        let expected = [(0, 4.0 / 3.0), (1, 2.0 / 3.0), (2, 1.0 / 6.0)];
        for (got, wanted) in reached.iter().zip(expected) {
            assert!(got.0 == wanted.0 && (got.1 - wanted.1).abs() < 1e-15, "{reached:?}");
        }
    }

    #[test]
    fn a_certain_loop_is_named() {
        let edges = vec![vec![(1, 1.0)], vec![(2, 0.5), (1, 0.5)], vec![(1, 1.0)]];
        let Err(Unsolved::Loop(way)) = Closure::<Real>::new(edges) else { panic!("the loop was not found") };
        assert_eq!(way, [1, 1]);
    }

    #[test]
    fn booleans_reach_everything_that_can_be_reached() {
        let edges = vec![vec![(1, true)], vec![(0, true)], vec![(0, true)]];
        let closure = Closure::<Boolean>::new(edges).unwrap();
        assert_eq!(closure.reach(&[(1, true)], &mut closure.flow()), [(0, true), (1, true)]);
    }
}
