//! How much was looked at to find states of the network that nobody had visited before.
//!
//! States are found where they are asked for, deep inside a step, and remembered for everybody. What finding one costs depends on the
//! grammar: after left recursion a state may be a set of thousands of nodes, and a step takes as long as a thousand others. So it is counted
//! here, for each thread, and the meter of a mask asks now and then.

use core::cell::Cell;

thread_local! {
    static LOOKED: Cell<u64> = const { Cell::new(0) };
}

/// What a node costs that is looked at to find a new state, in steps of a mask.
pub(crate) const NODE_STEPS: u64 = 4;

/// So many nodes were looked at.
#[inline]
pub(crate) fn count(nodes: usize) {
    LOOKED.set(LOOKED.get().saturating_add(nodes as u64));
}

/// So many steps of a mask were taken where there is no meter.
pub(crate) fn count_steps(steps: u64) {
    count((steps / NODE_STEPS) as usize);
}

/// How many nodes were looked at by this thread since the last call.
pub(crate) fn take() -> u64 {
    LOOKED.take()
}
