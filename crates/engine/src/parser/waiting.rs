//! Steps the same threads by many different bytes.
//!
//! [`wait`] finds everything that may take the next byte once, and [`step_waiting`] then steps it by each byte.

use maskwright_automata::ByteSet;

use super::merge::merge;
use super::meter::THREAD_STEPS;
use super::stack::Stacks;
use super::step::{Buffers, Work, arrive, call_from, may_end, step_leaf, visit_waiting};
use super::thread::Thread;
use crate::program::{At, Place, Program};

/// A place that may take the next byte: a leaf, or a state of the network without its calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// The bytes that it may take.
    pub(crate) first: ByteSet,
    pub(crate) thread: Thread,
}

/// Finds everything that may take the next byte: the places of some threads, the places they return to, and what these
/// call. Together with [`step_waiting`] this does the same as [`step_all`](super::step::step_all), for callers that try
/// many bytes on the same threads. Unless `returning`, no thread returns before the byte.
pub(crate) fn wait<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    threads: &[Thread],
    returning: bool,
    out: &mut Vec<Waiting>,
) {
    buffers.begin();
    buffers.meter.spend(2 * threads.len() as u32);
    for &thread in threads {
        if thread.is_in_network() {
            buffers.work.push(Work::Enter(thread.at, thread.stack));
            continue;
        }
        out.push(Waiting { first: program.live_at(thread.at), thread });
        if returning && may_end(program, &thread) {
            buffers.work.push(Work::Return(thread.stack));
        }
    }
    let all = |_: At| true;
    visit_waiting(program, stacks, buffers, returning, all, |stacks, _, at, stack, calls| {
        let thread = Thread::new(at, stack);
        let At::Network(state) = at else {
            return out.push(Waiting { first: program.live_at(at), thread });
        };
        match program.place(state) {
            Place::Done => {}
            Place::Node { low, high, .. } => {
                out.push(Waiting { first: ByteSet::range(low, high), thread });
            }
            Place::Cell(cell) => {
                let first = cell.bytes();
                if !first.is_empty() {
                    out.push(Waiting { first, thread });
                }
                for call in &cell.calls {
                    calls.extend(call_from(program, stacks, call, stack));
                }
            }
        }
    });
}

/// Steps all waiting places by a byte.
pub(crate) fn step_waiting<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    waiting: &[Waiting],
    byte: u8,
    next: &mut Vec<Thread>,
) {
    buffers.begin();
    // Skipping a place is cheap, but there may be tens of thousands.
    let mut taken = 1 + waiting.len() as u32 / 8;
    for Waiting { thread, .. } in waiting.iter().filter(|waiting| waiting.first.contains(byte)) {
        taken += THREAD_STEPS;
        let state = match thread.at {
            At::Network(state) => state,
            At::Leaf(leaf, state) => {
                step_leaf(program, stacks, buffers, (leaf, state), thread, byte, next);
                continue;
            }
        };
        let state = match program.place(state) {
            Place::Done => None,
            Place::Node { next: node, .. } => Some(program.state_at(node)),
            Place::Cell(cell) => program.step(cell, byte),
        };
        if let Some(state) = state {
            arrive(program, stacks, buffers, Thread::network(state, thread.stack), next);
        }
    }
    merge(program, stacks, next);
    taken = taken.saturating_add(stacks.effort());
    buffers.meter.spend(taken);
}
