//! Counts the nodes that are visited to build new states of the network.
//!
//! States are built on demand, deep inside a step, and are then cached for everybody. The cost of building one depends
//! on the grammar: after the removal of left recursion a state may be a set of thousands of nodes, and the step takes
//! as long as a thousand others. So the nodes are counted here, per OS thread, and the meter of a mask adds the count
//! from time to time.

use core::cell::Cell;

thread_local! {
    static VISITED_NODES: Cell<u64> = const { Cell::new(0) };
}

/// The cost of visiting one node while a new state is built, in steps of a mask.
pub(crate) const NODE_STEPS: u64 = 4;

/// Adds this many visited nodes to the count.
#[inline]
pub(crate) fn count(nodes: usize) {
    VISITED_NODES.set(VISITED_NODES.get().saturating_add(nodes as u64));
}

/// Adds this many mask steps to the count. For code that has no meter.
pub(crate) fn count_steps(steps: u64) {
    count((steps / NODE_STEPS) as usize);
}

/// Returns the number of nodes that this OS thread has visited since the last call, and resets it.
pub(crate) fn take() -> u64 {
    VISITED_NODES.take()
}
