//! Handles bytes that keep a thread inside its leaf or literal: nothing is called and nothing ends. Most bytes are of
//! this kind.

use super::merge::add;
use super::stack::Stacks;
use super::thread::Thread;
use crate::count::{Bounds, Count};
use crate::leaf::{Leaf, TextNext};
use crate::program::{At, NetState, OnArrival, Place, Program};
use crate::tuning::{FastPath, may_take, tuning};

/// Steps threads by a byte if each of them stays inside its leaf or literal, or dies. Otherwise returns false and
/// leaves `next` as it was.
#[inline]
pub(super) fn step_inside<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    threads: &[Thread],
    byte: u8,
    next: &mut Vec<Thread>,
) -> bool {
    let before = next.len();
    for thread in threads {
        match inside(program, thread, byte) {
            Inside::Stays(thread) => add(program, stacks, thread, next),
            Inside::Dies => {}
            Inside::Leaves => {
                next.truncate(before);
                return false;
            }
        }
    }
    true
}

/// What a byte does to a thread.
enum Inside {
    /// The thread stays in its leaf or literal, which cannot end there.
    Stays(Thread),
    Dies,
    /// The thread calls or returns, or may do so.
    Leaves,
}

#[inline]
fn inside(program: &Program, thread: &Thread, byte: u8) -> Inside {
    let Thread { at, count, stack } = *thread;
    match at {
        At::Network(state) => match program.place(state) {
            Place::Done => Inside::Dies,
            Place::Node { low, high, .. } if byte < low || high < byte => Inside::Dies,
            Place::Node { next, .. } => match program.byte_state_at(next) {
                Some(state) => Inside::Stays(Thread::network(state, stack)),
                None => Inside::Leaves,
            },
            Place::Cell(_) => Inside::Leaves,
        },
        At::Leaf(..) if program.may_end_at(at, count) => Inside::Leaves,
        At::Leaf(leaf, state) => match program.step_leaf(leaf, state, count, byte) {
            None => Inside::Dies,
            Some((at, count)) if program.on_arrival(at, count) == OnArrival::Stay => {
                Inside::Stays(Thread { at, count, stack })
            }
            Some(_) => Inside::Leaves,
        },
    }
}

/// Takes bytes as long as they keep a thread inside its leaf or literal, where nothing is called and nothing can end.
/// Has the same effect as [`step_all`](super::step::step_all) for each of them. Returns the number of bytes taken.
/// PERF: most bytes are of this kind, and the rest of a step costs ten times as much.
#[inline]
pub(crate) fn run_inside_leaf(program: &Program, thread: &mut Thread, bytes: &[u8]) -> usize {
    let may_run = tuning().has(FastPath::RunInsideLeaf);
    let taken = if may_run { run_inside(program, thread, bytes) } else { 0 };
    if taken > 0 { taken * usize::from(may_take(FastPath::RunInsideLeaf)) } else { 0 }
}

fn run_inside(program: &Program, thread: &mut Thread, bytes: &[u8]) -> usize {
    let mut taken = 0;
    let (leaf, mut state) = match thread.at {
        At::Leaf(leaf, state) => (leaf, state),
        At::Network(state) => {
            let Some(mut node) = state.node() else { return 0 };
            for &byte in bytes {
                let Some(next) = program.literal(node, byte) else { break };
                node = next;
                taken += 1;
            }
            if taken > 0 {
                thread.at = At::Network(NetState::of_node(node));
            }
            return taken;
        }
    };
    match program.leaf(leaf) {
        Leaf::Window { automaton, min, max } => {
            let Some(mut count) = thread.count.single() else { return 0 };
            if count >= *min && automaton.is_accepting(state) {
                return 0;
            }
            for &byte in bytes {
                let step = automaton.step(state, byte);
                let Some(next) = automaton.count_step(step, count, Bounds { min: *min, max: *max }) else {
                    break;
                };
                if next >= *min && automaton.is_accepting(step.target()) {
                    break;
                }
                (state, count) = (step.target(), next);
                taken += 1;
            }
            thread.count = Count::of(count);
        }
        Leaf::Text(text) => {
            for &byte in bytes {
                let TextNext::Stay(next) = text.next(state, byte) else { break };
                state = next;
                taken += 1;
            }
        }
    }
    thread.at = At::Leaf(leaf, state);
    taken
}

/// Returns the only byte that a thread inside a literal may take, and the thread after it. Returns `None` elsewhere,
/// and for the last byte of a literal.
#[inline]
pub(crate) fn literal_byte(program: &Program, thread: &Thread) -> Option<(u8, Thread)> {
    let At::Network(state) = thread.at else { return None };
    match program.place(state) {
        Place::Node { low, high, next } if low == high => {
            Some((low, Thread::network(program.byte_state_at(next)?, thread.stack)))
        }
        _ => None,
    }
}
