//! Merges the threads of a generation, that is, those that have taken the same bytes.
//!
//! Threads in the same place become one where that does not change what they can do.

use super::stack::Stacks;
use super::thread::Thread;
use crate::count::Bounds;
use crate::program::{At, Program};
use crate::tuning::tuning;

/// Adds a thread to a generation and merges it with the threads in the same place. If there are many threads, [`merge`]
/// does that later.
#[inline]
pub(super) fn add<S: Stacks>(program: &Program, stacks: &mut S, thread: Thread, next: &mut Vec<Thread>) {
    if next.len() >= tuning().compared_threads {
        next.push(thread);
        return;
    }
    for at in 0..next.len() {
        if next[at].at == thread.at {
            return add_beside(program, stacks, thread, next, at);
        }
    }
    next.push(thread);
}

/// Adds a thread where `next[at]` is in the same place. PERF: uniting many stacks one by one is quadratic, so that is
/// left to [`merge`], too.
fn add_beside<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    thread: Thread,
    next: &mut Vec<Thread>,
    at: usize,
) {
    if next[at].count == thread.count && next[at].stack != thread.stack && stacks.is_wide(next[at].stack) {
        return next.push(thread);
    }
    add_similar(program, stacks, thread, next, at);
}

/// Merges the threads that [`add`] has left unmerged because there were too many.
#[inline]
pub(super) fn merge<S: Stacks>(program: &Program, stacks: &mut S, next: &mut Vec<Thread>) {
    if next.len() > 1 {
        merge_many(program, stacks, next);
    }
}

fn merge_many<S: Stacks>(program: &Program, stacks: &mut S, next: &mut Vec<Thread>) {
    let is_left = |(at, thread): (usize, &Thread)| {
        stacks.is_wide(thread.stack)
            && next[at + 1..].iter().any(|other| (other.at, other.count) == (thread.at, thread.count))
    };
    if next.len() > tuning().compared_threads || next.iter().enumerate().any(is_left) {
        merge_crowd(program, stacks, next);
    }
}

#[cold]
fn merge_crowd<S: Stacks>(program: &Program, stacks: &mut S, next: &mut Vec<Thread>) {
    let mut crowd = core::mem::take(next);
    crowd.sort_unstable_by_key(|thread| (thread.at, thread.count, thread.stack));
    for place in crowd.chunk_by(|a, b| a.at == b.at) {
        let from = next.len();
        for same in place.chunk_by(|a, b| a.count == b.count) {
            let stack = stacks.union_all(program, &mut same.iter().map(|thread| thread.stack));
            add_similar(program, stacks, Thread { stack, ..same[0] }, next, from);
        }
    }
}

/// Adds a thread where others may be in the same place, the first of them at `from` or later. Threads with equal counts
/// share the union of their stacks, and threads with equal stacks the union of their counts. Otherwise a thread is
/// dropped if another one can do everything that it can.
fn add_similar<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    mut thread: Thread,
    next: &mut Vec<Thread>,
    from: usize,
) {
    let bounds = match thread.at {
        At::Network(_) => Bounds { min: 0, max: 0 },
        At::Leaf(leaf, _) => program.leaf(leaf).bounds(),
    };
    let mut at = from;
    while at < next.len() {
        let other = next[at];
        if other.at != thread.at {
            at += 1;
            continue;
        }
        let counts = program.counts();
        if other.count == thread.count {
            thread.stack = stacks.union(program, other.stack, thread.stack);
        } else if !stacks.merges() {
            at += 1;
            continue;
        } else if other.stack == thread.stack {
            thread.count = counts.union(other.count, thread.count, bounds);
        } else if counts.contains(other.count, thread.count, bounds)
            && stacks.covers(program, other.stack, thread.stack)
        {
            return;
        } else if !counts.contains(thread.count, other.count, bounds)
            || !stacks.covers(program, thread.stack, other.stack)
        {
            at += 1;
            continue;
        }
        if thread == other {
            return;
        }
        // `thread` now includes the other one, so it may be merged with threads that were compared before.
        next.swap_remove(at);
        at = from;
    }
    next.push(thread);
}
