//! Steps threads by one byte. This is the core of matching, both for accepting tokens and for walking tries.
//!
//! A thread is a place and a stack of what comes after it. Stepping a thread by a byte tries the place itself,
//! everything that it can call, and, if it may end, everything that its stack returns to. Everything that takes the
//! byte becomes a thread of the next generation.

use maskwright_automata::ByteSet;
use smallvec::SmallVec;

use super::inside::step_inside;
use super::merge::{add, merge};
use super::meter::{Meter, THREAD_STEPS};
use super::returned::Returned;
use super::stack::{Frame, Resume, StackId, Stacks, When};
use super::thread::Thread;
use super::words::{self, add_living, may_close};
use crate::count::Count;
use crate::leaf::LeafState;
use crate::program::network::{Callee, LoopId};
use crate::program::words::Words;
use crate::program::{At, Call, Cell, LeafId, NetState, OnArrival, Place, Program};
use crate::tuning::tuning;

/// Buffers that stepping reuses.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(super) work: Vec<Work>,
    frames: Vec<(Frame, StackId)>,
    arrived: Vec<Thread>,
    ended: Vec<StackId>,
    checked: Vec<StackId>,
    /// The stacks that were returned to before the byte, and after it.
    before: Returned,
    after: Returned,
    /// The places that wait to take the byte, and the places that they call.
    level: Vec<(At, StackId)>,
    calls: Vec<(At, StackId)>,
    /// Threads that have not been merged yet.
    gathered: Vec<Thread>,
    /// The steps that may still be taken.
    pub(crate) meter: Meter,
    /// The number of parts of masks that were not in the memo.
    pub(crate) computed: u64,
}

impl Buffers {
    /// Starts a new generation of threads.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.before.clear();
        self.after.clear();
    }
}

/// An item that has yet to take the byte.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// A state of the network, or a leaf at its start. The leaf cannot end there: the network has a path around a leaf
    /// that may be empty.
    Enter(At, StackId),
    /// The stack of a part that has ended.
    Return(StackId),
}

/// Steps all threads of a generation by a byte. Places that are equal, or that call the same thing, continue as one
/// thread on the union of their stacks. Without that, the number of stacks would double with every byte of an ambiguous
/// text.
#[inline]
pub(crate) fn step_all<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    threads: &[Thread],
    byte: u8,
    next: &mut Vec<Thread>,
) {
    if !buffers.meter.spend(THREAD_STEPS * threads.len() as u32) {
        return;
    }
    if threads.len() > 1 && step_inside(program, stacks, threads, byte, next) {
        return merge(program, stacks, next);
    }
    buffers.begin();
    if let [thread] = threads
        && step_one(program, stacks, buffers, *thread, byte, next)
    {
        return merge(program, stacks, next);
    }
    for &thread in threads {
        if let Some((leaf, state)) = thread.leaf() {
            step_leaf(program, stacks, buffers, (leaf, state), &thread, byte, next);
            if may_end(program, &thread) {
                buffers.work.push(Work::Return(thread.stack));
            }
        } else {
            buffers.work.push(Work::Enter(thread.at, thread.stack));
        }
    }
    step_merged(program, stacks, buffers, byte, next);
    merge(program, stacks, next);
}

/// Lets everything that waits take the byte. Equal places are merged before they are stepped.
fn step_merged<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    byte: u8,
    next: &mut Vec<Thread>,
) {
    // PERF: white space may continue in one place while everything that may follow it waits on stacks that fork. Those
    // need not be united.
    let takes = |at: At| match at {
        At::Leaf(..) => program.live_at(at).contains(byte),
        At::Network(state) => match program.place(state) {
            Place::Node { low, high, .. } => low <= byte && byte <= high,
            Place::Cell(cell) => cell.first.contains(byte),
            Place::Done => false,
        },
    };
    visit_waiting(program, stacks, buffers, true, takes, |stacks, buffers, at, stack, calls| {
        let state = match at {
            At::Network(state) => state,
            At::Leaf(leaf, state) => {
                let thread = Thread::new(at, stack);
                return step_leaf(program, stacks, buffers, (leaf, state), &thread, byte, next);
            }
        };
        match program.place(state) {
            Place::Node { next: node, .. } => {
                arrive(program, stacks, buffers, Thread::network(program.state_at(node), stack), next);
            }
            Place::Cell(cell) => {
                if let Some(state) = program.step(cell, byte) {
                    arrive(program, stacks, buffers, Thread::network(state, stack), next);
                }
                for call in cell.calls.iter().filter(|call| call.first.contains(byte)) {
                    calls.extend(call_from(program, stacks, call, stack));
                }
            }
            Place::Done => {}
        }
    });
}

/// Visits everything that waits, what it returns to if `returning`, and, level by level, what the visitor calls. Equal
/// places are visited once, on the union of their stacks. Places that are not `wanted` are skipped.
#[inline]
pub(super) fn visit_waiting<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    returning: bool,
    wanted: impl Fn(At) -> bool,
    mut visit: impl FnMut(&mut S, &mut Buffers, At, StackId, &mut Vec<(At, StackId)>),
) {
    let mut level = core::mem::take(&mut buffers.level);
    let mut calls = core::mem::take(&mut buffers.calls);
    // 1. Places that may end return, and the places returned to wait.
    while let Some(work) = buffers.work.pop() {
        match work {
            Work::Return(stack) => resume(program, stacks, buffers, stack),
            Work::Enter(at, stack) => {
                if let At::Network(state) = at
                    && returning
                    && program.may_return(state)
                {
                    buffers.work.push(Work::Return(stack));
                }
                level.push((at, stack));
            }
        }
    }
    // 2. Waiting places are visited and make calls; the callees are visited and make calls, and so on.
    while !level.is_empty() {
        let steps = (THREAD_STEPS * level.len() as u32).saturating_add(stacks.effort());
        if !buffers.meter.spend(steps) {
            level.clear();
            break;
        }
        if level.len() > 1 {
            level.sort_unstable();
        }
        for group in level.chunk_by(|a, b| a.0 == b.0) {
            if !wanted(group[0].0) {
                continue;
            }
            let (at, stack) = match group {
                [only] => *only,
                _ => (group[0].0, stacks.union_all(program, &mut group.iter().map(|one| one.1))),
            };
            visit(stacks, buffers, at, stack, &mut calls);
        }
        level.clear();
        core::mem::swap(&mut level, &mut calls);
    }
    (buffers.level, buffers.calls) = (level, calls);
}

/// Makes a call: pushes the place to return to and enters the callee. Returns `None` if the call leads to a dead end.
#[inline]
pub(crate) fn call_from<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    call: &Call,
    stack: StackId,
) -> Option<(At, StackId)> {
    if program.words().is_some_and(Words::looks_before_calls)
        && matches!(call.callee, Callee::Leaf(_))
        && !call.tail
        && !words::may_return_from(program, stacks, program.returning(call), stack)
    {
        return None;
    }
    let stack =
        if call.tail { stack } else { stacks.push(program, Frame::at(program.returning(call)), stack) };
    enter(program, stacks, call.callee, stack)
}

/// Steps a single thread and adds the results to `next`. Returns false, without doing anything, if the thread may end
/// where it is.
#[inline]
fn step_one<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    thread: Thread,
    byte: u8,
    next: &mut Vec<Thread>,
) -> bool {
    let state = match thread.at {
        At::Network(state) => state,
        At::Leaf(leaf, state) => {
            if may_end(program, &thread) {
                return false;
            }
            step_leaf(program, stacks, buffers, (leaf, state), &thread, byte, next);
            return true;
        }
    };
    match program.place(state) {
        Place::Done => {}
        Place::Node { low, high, next: node } => {
            if low <= byte && byte <= high {
                let state = program.state_at(node);
                arrive(program, stacks, buffers, Thread::network(state, thread.stack), next);
            }
        }
        Place::Cell(cell) if cell.returns => return false,
        Place::Cell(cell) => {
            step_cell(program, stacks, buffers, cell, |_| true, thread.stack, byte, next);
            finish_step(program, stacks, buffers, byte, next);
        }
    }
    true
}

/// Steps a thread that is in a cell, without the calls that are [`SeparateCalls`](crate::program::SeparateCalls).
pub(crate) fn step_others<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    thread: Thread,
    byte: u8,
    next: &mut Vec<Thread>,
) {
    buffers.begin();
    if let At::Network(state) = thread.at
        && let Place::Cell(cell) = program.place(state)
    {
        let separate =
            if cell.returns { program.separate_calls_at_end(cell) } else { program.separate_calls(cell) };
        step_cell(program, stacks, buffers, cell, |call| !separate.contains(call), thread.stack, byte, next);
    }
    finish_step(program, stacks, buffers, byte, next);
    merge(program, stacks, next);
}

/// Checks whether only the end of the text is below a stack.
pub(crate) fn is_last<S: Stacks>(stacks: &mut S, buffers: &mut Buffers, stack: StackId) -> bool {
    let mut frames = core::mem::take(&mut buffers.frames);
    frames.clear();
    stacks.pop(stack, &mut frames);
    let is_end = |(frame, _): &(Frame, StackId)| matches!(frame.resume(), Resume::Finish);
    let is_last = !frames.is_empty() && frames.iter().all(is_end);
    frames.clear();
    buffers.frames = frames;
    is_last
}

/// Lets everything that waits take the byte. There are usually few items, so they are not merged at first.
fn finish_step<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    byte: u8,
    next: &mut Vec<Thread>,
) {
    let mut taken = 0;
    while let Some(work) = buffers.work.pop() {
        // Rules that call each other in many ways have too many paths to follow each: `r0 ::= r1? r1? "a"`, `r1 ::= r2?
        // r2? "a"`, …
        if taken == tuning().unmerged_threads {
            buffers.work.push(work);
            return step_merged(program, stacks, buffers, byte, next);
        }
        taken += 1;
        match work {
            Work::Return(stack) => resume(program, stacks, buffers, stack),
            Work::Enter(at @ At::Leaf(leaf, state), stack) => {
                let thread = Thread::new(at, stack);
                step_leaf(program, stacks, buffers, (leaf, state), &thread, byte, next);
            }
            Work::Enter(At::Network(state), stack) => match program.place(state) {
                Place::Done => {}
                Place::Node { low, high, next: node } => {
                    if low <= byte && byte <= high {
                        arrive(
                            program,
                            stacks,
                            buffers,
                            Thread::network(program.state_at(node), stack),
                            next,
                        );
                    }
                }
                Place::Cell(cell) => {
                    step_cell(program, stacks, buffers, cell, |_| true, stack, byte, next);
                }
            },
        }
    }
}

#[inline]
#[expect(clippy::too_many_arguments, reason = "the borrowed parts of one step")]
fn step_cell<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    cell: &Cell,
    calls: impl Fn(usize) -> bool,
    stack: StackId,
    byte: u8,
    next: &mut Vec<Thread>,
) {
    if cell.first.contains(byte) {
        if let Some(state) = program.step(cell, byte) {
            arrive(program, stacks, buffers, Thread::network(state, stack), next);
        }
        for (at, call) in cell.calls.iter().enumerate() {
            if !call.first.contains(byte) || !calls(at) {
                continue;
            }
            let called = call_from(program, stacks, call, stack);
            buffers.work.extend(called.map(|(at, stack)| Work::Enter(at, stack)));
        }
    }
    if cell.returns {
        buffers.work.push(Work::Return(stack));
    }
}

/// Enters a callee. The place to return to is already on the stack.
fn enter<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    callee: Callee,
    stack: StackId,
) -> Option<(At, StackId)> {
    let (body, frame) = match callee {
        Callee::Leaf(leaf) => return Some((program.leaf_start(leaf), stack)),
        Callee::Machine(machine) => return Some((At::Network(program.start(machine)), stack)),
        // A check is passed on arrival, so no thread waits there.
        Callee::Check => return None,
        Callee::Loop(index) => {
            let counted = program.counted(index);
            (counted.body, Frame::counted(index, Count::first(counted.bounds())))
        }
        Callee::Scope(index) => {
            let scope = program.scope(index);
            match program.word_scope(index) {
                None => (scope.body, Frame::scope(index, stacks.fresh(scope))),
                Some((words, known)) => {
                    let listed = Frame::scope(index, stacks.fresh(scope));
                    let below = if known.has_others { stacks.push(program, listed, stack) } else { stack };
                    let stack = stacks.push(program, Frame::words(index, words.empty(index, known)), below);
                    return Some((At::Network(program.start(scope.body)), stack));
                }
            }
        }
        Callee::Limit(index) => {
            let limit = program.limit(index);
            (limit.body, Frame::limit(index, stacks.token().saturating_add(limit.tokens)))
        }
    };
    Some((At::Network(program.start(body)), stacks.push(program, frame, stack)))
}

/// Continues after a part that ended before the byte.
fn resume<S: Stacks>(program: &Program, stacks: &mut S, buffers: &mut Buffers, stack: StackId) {
    if !buffers.before.insert(stack) || !buffers.meter.spend(THREAD_STEPS) {
        return;
    }
    let mut frames = core::mem::take(&mut buffers.frames);
    buffers.before.pop(stacks, stack, &mut frames);
    buffers.meter.spend(frames.len() as u32);
    for (frame, below) in frames.drain(..) {
        match frame.resume() {
            Resume::At(state) => resume_at(program, stacks, buffers, state, below),
            Resume::Finish => {}
            Resume::Loop { index, rounds } => {
                let (again, leave) = next_round(program, stacks, index, rounds, below);
                if let Some(rounds) = again {
                    let stack = stacks.push(program, Frame::counted(index, rounds), below);
                    let body = program.start(program.counted(index).body);
                    buffers.work.push(Work::Enter(At::Network(body), stack));
                }
                if leave {
                    buffers.work.push(Work::Return(below));
                }
            }
            Resume::Scope { register, .. } => {
                if register.may_close() {
                    buffers.work.push(Work::Return(below));
                }
            }
            Resume::Words { .. } => {
                if may_close(program, stacks, frame, below) {
                    buffers.work.push(Work::Return(below));
                }
            }
            Resume::Limit { deadline } => {
                if stacks.token() < deadline {
                    buffers.work.push(Work::Return(below));
                }
            }
        }
    }
    buffers.frames = frames;
}

/// Continues at a state, after its checks.
#[inline]
fn resume_at<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    state: NetState,
    stack: StackId,
) {
    let thread = Thread::network(state, stack);
    let OnArrival::Check { stay } = on_arrival(program, &thread) else {
        return buffers.work.push(Work::Enter(thread.at, stack));
    };
    if stay {
        buffers.work.push(Work::Enter(thread.at, stack));
    }
    // After a check may come another one, of a value that ends at the same position.
    let mut left = vec![thread];
    while let Some(thread) = left.pop() {
        check(program, stacks, buffers, &thread, When::BeforeByte, |buffers, thread| {
            match on_arrival(program, &thread) {
                OnArrival::Check { .. } => left.push(thread),
                _ => buffers.work.push(Work::Enter(thread.at, thread.stack)),
            }
        });
    }
}

/// After a round of a counted repetition, returns the count to continue with, if another round is allowed, and whether
/// the loop may end.
fn next_round<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    index: LoopId,
    rounds: Count,
    below: StackId,
) -> (Option<Count>, bool) {
    let bounds = program.counted(index).bounds();
    let next = program.counts().advance(rounds, bounds);
    stacks.counts(index, below, next.map(|next| program.counts().room(next, bounds)));
    (next, program.counts().may_stop(rounds, bounds))
}

/// Steps a thread that is in a leaf.
#[inline]
pub(super) fn step_leaf<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    (leaf, state): (LeafId, LeafState),
    thread: &Thread,
    byte: u8,
    next: &mut Vec<Thread>,
) {
    if let Some((at, count)) = program.step_leaf(leaf, state, thread.count, byte) {
        arrive(program, stacks, buffers, Thread { at, count, stack: thread.stack }, next);
    }
}

/// Adds a thread. One that can only return, or that has to pass a check, continues at once, so that equal places look
/// equal.
#[inline]
pub(super) fn arrive<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    thread: Thread,
    next: &mut Vec<Thread>,
) {
    if on_arrival(program, &thread) == OnArrival::Stay {
        return add_living(program, stacks, thread, |stacks, thread| add(program, stacks, thread, next));
    }
    buffers.arrived.push(thread);
    epsilon_closure(program, stacks, buffers, &mut |stacks, thread| add(program, stacks, thread, next));
}

/// Adds the threads that continue after a part that has ended. Call [`Buffers::begin`] before the first of a
/// generation.
pub(crate) fn leave<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    stack: StackId,
    next: &mut Vec<Thread>,
) {
    buffers.ended.push(stack);
    epsilon_closure(program, stacks, buffers, &mut |stacks, thread| add(program, stacks, thread, next));
    merge(program, stacks, next);
}

/// Fills the empty list `after` with the threads that continue after a leaf. Returns the bytes that they may take.
pub(crate) fn threads_after_leaf<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    stack: StackId,
    after: &mut Vec<Thread>,
) -> ByteSet {
    buffers.begin();
    leave(program, stacks, buffers, stack, after);
    live(program, stacks, buffers, after)
}

/// Moves threads that have arrived, and stacks of parts that have ended, on to where the next byte is taken.
fn epsilon_closure<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    add: &mut impl FnMut(&mut S, Thread),
) {
    loop {
        while let Some(thread) = buffers.arrived.pop() {
            match on_arrival(program, &thread) {
                OnArrival::Stay => add_living(program, stacks, thread, &mut *add),
                OnArrival::End => buffers.ended.push(thread.stack),
                OnArrival::Check { stay } => {
                    if stay {
                        add_living(program, stacks, thread, &mut *add);
                    }
                    check(program, stacks, buffers, &thread, When::AfterByte, |buffers, thread| {
                        buffers.arrived.push(thread);
                    });
                }
            }
        }
        let Some(stack) = buffers.ended.pop() else { return };
        if !buffers.after.insert(stack) {
            continue;
        }
        if !buffers.meter.spend(THREAD_STEPS) {
            buffers.ended.clear();
            return;
        }
        let mut frames = core::mem::take(&mut buffers.frames);
        buffers.after.pop(stacks, stack, &mut frames);
        // If there are thousands of frames, they cost more than the stack itself.
        buffers.meter.spend(frames.len() as u32);
        for (frame, below) in frames.drain(..) {
            match frame.resume() {
                Resume::Finish => add(stacks, Thread::DONE),
                Resume::At(state) => buffers.arrived.push(Thread::network(state, below)),
                Resume::Loop { index, rounds } => {
                    let (again, leave) = next_round(program, stacks, index, rounds, below);
                    if let Some(rounds) = again {
                        let stack = stacks.push(program, Frame::counted(index, rounds), below);
                        let body = program.start(program.counted(index).body);
                        add_living(program, stacks, Thread::network(body, stack), &mut *add);
                    }
                    if leave {
                        buffers.ended.push(below);
                    }
                }
                Resume::Scope { register, .. } => {
                    if register.may_close() {
                        buffers.ended.push(below);
                    }
                }
                Resume::Words { .. } => {
                    if may_close(program, stacks, frame, below) {
                        buffers.ended.push(below);
                    }
                }
                Resume::Limit { deadline } => {
                    if stacks.token() < deadline {
                        buffers.ended.push(below);
                    }
                }
            }
        }
        buffers.frames = frames;
    }
}

/// Moves a thread that has just arrived on to where it can stay. Returns no threads if it cannot.
pub(crate) fn epsilon_closure_of<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    thread: Thread,
) -> SmallVec<[Thread; 2]> {
    let mut threads = SmallVec::new();
    if program.has_scopes() {
        buffers.begin();
        buffers.arrived.push(thread);
        epsilon_closure(program, stacks, buffers, &mut |_, thread| threads.push(thread));
    } else {
        threads.push(thread);
    }
    threads
}

/// Passes the checks of the cell that a thread is in, if the value that has just ended is new.
#[cold]
fn check<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    thread: &Thread,
    when: When,
    mut passed: impl FnMut(&mut Buffers, Thread),
) {
    let At::Network(state) = thread.at else { return };
    let Place::Cell(cell) = program.place(state) else { return };
    let mut checked = core::mem::take(&mut buffers.checked);
    checked.clear();
    let mut word = None;
    // Checks without a word come before those with one.
    for (at, call) in cell.calls.iter().filter(|call| call.callee == Callee::Check).enumerate() {
        if at == 0 || call.word != word {
            checked.clear();
            word = call.word;
            match word {
                None => stacks.check(thread.stack, when, &mut checked),
                Some(word) => words::pass(program, stacks, thread.stack, word, &mut checked),
            }
        }
        let state = program.returning(call);
        for &stack in &checked {
            passed(buffers, Thread::network(state, stack));
        }
    }
    buffers.checked = checked;
}

/// Returns what a thread must do at once.
#[inline]
fn on_arrival(program: &Program, thread: &Thread) -> OnArrival {
    program.on_arrival(thread.at, thread.count)
}

/// Returns the bytes that at least one of the threads may take, and perhaps a few more.
pub(crate) fn live<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    threads: &[Thread],
) -> ByteSet {
    if let [thread] = threads
        && !program.accepts_at(thread.at)
    {
        return program.live_at(thread.at);
    }
    let mut live = ByteSet::EMPTY;
    buffers.begin();
    let mut look = |buffers: &mut Buffers, at: At, may_end: bool, stack: StackId| {
        live = live.union(program.live_at(at));
        if may_end {
            buffers.work.push(Work::Return(stack));
        }
    };
    for thread in threads {
        look(buffers, thread.at, may_end(program, thread), thread.stack);
    }
    while let Some(work) = buffers.work.pop() {
        match work {
            Work::Return(stack) => resume(program, stacks, buffers, stack),
            Work::Enter(at, stack) => look(buffers, at, program.accepts_at(at), stack),
        }
    }
    live
}

/// Adds everything that threads may return to before the next byte: the threads that continue after parts that may end
/// here. Returns whether the root itself may end.
pub(crate) fn returns<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    buffers: &mut Buffers,
    threads: &mut Vec<Thread>,
) -> bool {
    let mut done = false;
    let mut at = 0;
    let before = threads.len();
    buffers.begin();
    while at < threads.len() {
        let thread = threads[at];
        at += 1;
        if thread.is_done() {
            done = true;
        } else if may_end(program, &thread) {
            // Not merged yet: a thread that is merged into one that was already visited would not be visited.
            buffers.ended.push(thread.stack);
            epsilon_closure(program, stacks, buffers, &mut |_, thread| threads.push(thread));
        }
    }
    if threads.len() > before {
        buffers.gathered.clear();
        buffers.gathered.append(threads);
        for thread in &buffers.gathered {
            add(program, stacks, *thread, threads);
        }
        merge(program, stacks, threads);
    }
    done
}

/// Checks whether the part that a thread is in may end there.
#[inline]
pub(crate) fn may_end(program: &Program, thread: &Thread) -> bool {
    program.may_end_at(thread.at, thread.count)
}
