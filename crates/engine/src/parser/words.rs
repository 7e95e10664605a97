//! Checks on stacks whether a word is new to its scope, and whether one of the words that a place awaits is.
//!
//! See [`crate::program::words`]. Where a stack forks, each branch has its own scope, and only the branches that can
//! continue are kept.

use smallvec::SmallVec;

use super::stack::{Frame, Resume, StackId, Stacks};
use super::thread::Thread;
use crate::count::Count;
use crate::program::network::WordId;
use crate::program::words::{Awaited, Question, WordListId};
use crate::program::{At, NetState, OnArrival, Program};

/// The frames from the top of a stack down to some level, the top one first, and the stack below them.
struct Path {
    above: SmallVec<[Frame; 4]>,
    stack: StackId,
}

impl Path {
    fn new(stack: StackId) -> Self {
        Self { above: SmallVec::new(), stack }
    }
}

/// The result for a frame.
pub(crate) enum Replaced {
    /// The frame is kept, and the search continues below it.
    Passed,
    /// The frame is replaced by another one.
    By(Frame),
    /// This branch of the stack cannot continue and is dropped.
    Dead,
}

/// Replaces the nearest matching frame on each branch of a stack and appends the resulting stacks.
pub(crate) fn replace_nearest<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    stack: StackId,
    mut replace: impl FnMut(&mut S, Frame, StackId) -> Replaced,
    out: &mut Vec<StackId>,
) {
    let mut work = vec![Path::new(stack)];
    let mut frames = Vec::new();
    while let Some(path) = work.pop() {
        frames.clear();
        stacks.pop(path.stack, &mut frames);
        for &(frame, below) in &frames {
            let mut above = path.above.clone();
            match replace(stacks, frame, below) {
                Replaced::Passed => {
                    above.push(frame);
                    work.push(Path { above, stack: below });
                }
                Replaced::By(frame) => {
                    above.push(frame);
                    out.push(push_all(program, stacks, &above, below));
                }
                Replaced::Dead => {}
            }
        }
    }
}

impl Program {
    /// Returns what a place awaits, if it restricts what may come.
    #[inline]
    fn awaited(&self, at: At) -> Option<Awaited> {
        match at {
            At::Network(state) => self.awaited_at(state),
            At::Leaf(..) => None,
        }
    }
}

/// Appends the stacks on which a word is new, with the word added to their sets.
#[cold]
pub(super) fn pass<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    stack: StackId,
    word: WordId,
    out: &mut Vec<StackId>,
) {
    let replace = |stacks: &mut S, frame: Frame, below: StackId| match frame.resume() {
        Resume::Words { index, set } => {
            stacks.asks(frame, below, Question::Everything);
            let with = program.word_scope(index).and_then(|(words, scope)| words.with(scope, set, word));
            with.map_or(Replaced::Dead, |set| Replaced::By(Frame::words(index, set)))
        }
        // There is no set to add the word to.
        Resume::Scope { .. } | Resume::Finish => Replaced::By(frame),
        Resume::At(_) | Resume::Loop { .. } | Resume::Limit { .. } => Replaced::Passed,
    };
    replace_nearest(program, stacks, stack, replace, out);
}

/// Adds a thread if it can continue, perhaps without some of its stacks.
#[inline]
pub(super) fn add_living<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    thread: Thread,
    mut add: impl FnMut(&mut S, Thread),
) {
    if program.words().is_some()
        && let Some(awaited) = program.awaited(thread.at)
    {
        return for_living(program, stacks, awaited, thread, &mut add);
    }
    add(stacks, thread);
}

#[cold]
fn for_living<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    awaited: Awaited,
    thread: Thread,
    add: &mut impl FnMut(&mut S, Thread),
) {
    let expected = Expected {
        lists: SmallVec::from_slice(&[awaited.list]),
        may_end: awaited.may_end,
        is_last: awaited.is_last,
    };
    // Nearly always the scope is the first frame.
    let (mut frames, mut stack, mut at) = (Vec::new(), thread.stack, expected.clone());
    loop {
        frames.clear();
        stacks.pop(stack, &mut frames);
        let &[(frame, below)] = &*frames else { break };
        match at.then(program, stacks, frame, below) {
            Some(true) => return add(stacks, thread),
            Some(false) => return,
            None => stack = below,
        }
    }
    let mut living = Vec::new();
    fork(program, stacks, thread.stack, expected, &mut living);
    for stack in living {
        add(stacks, Thread { stack, ..thread });
    }
}

/// Checks whether a call may return on at least one of the stacks.
#[cold]
pub(super) fn may_return_from<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    after: NetState,
    stack: StackId,
) -> bool {
    let Some(awaited) = program.awaited_at(after) else { return true };
    let mut is_alive = false;
    for_living(program, stacks, awaited, Thread::network(after, stack), &mut |_, _| is_alive = true);
    is_alive
}

/// What may come first on the path from a place down a stack.
#[derive(Clone)]
struct Expected {
    /// The lists of words of which one may come first.
    lists: SmallVec<[WordListId; 2]>,
    /// Whether everything passed so far may end.
    may_end: bool,
    /// Whether another value may come, after which only the end may follow.
    is_last: bool,
}

impl Expected {
    /// Continues with the next frame. Returns whether there is a new word or another way to continue, or `None` if that
    /// depends on the frames below.
    fn then<S: Stacks>(
        &mut self,
        program: &Program,
        stacks: &mut S,
        frame: Frame,
        below: StackId,
    ) -> Option<bool> {
        let (state, may_leave) = match frame.resume() {
            Resume::Words { .. } => {
                let lists = self.lists.iter().map(|list| Question::IsAnyNew(*list));
                let mut questions = lists.chain((self.may_end || self.is_last).then_some(Question::MayClose));
                return Some(questions.any(|question| ask(program, stacks, frame, below, question)));
            }
            Resume::Finish | Resume::Scope { .. } => return Some(true),
            _ if !self.may_end => return None,
            Resume::Limit { .. } => return None,
            // Only the end of that machine follows.
            Resume::At(state)
                if program.on_arrival(At::Network(state), Count::default()) == OnArrival::End =>
            {
                return None;
            }
            Resume::At(state) => (state, false),
            Resume::Loop { index, rounds } => {
                let counted = program.counted(index);
                let may_stop = program.counts().may_stop(rounds, counted.bounds());
                (program.start(counted.body), may_stop)
            }
        };
        let Some(awaited) = program.awaited_at(state) else { return Some(true) };
        self.lists.push(awaited.list);
        self.may_end = awaited.may_end || may_leave;
        self.is_last |= awaited.is_last;
        None
    }
}

/// Answers a question about the words that a scope has seen, and records that it was asked.
fn ask<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    frame: Frame,
    below: StackId,
    question: Question,
) -> bool {
    stacks.asks(frame, below, question);
    answer(program, frame, question)
}

/// Answers a question about the words of a frame.
pub(super) fn answer(program: &Program, frame: Frame, question: Question) -> bool {
    let Resume::Words { index, set } = frame.resume() else { return true };
    program.word_scope(index).is_none_or(|(words, scope)| words.answer(scope, set, question))
}

/// Checks whether a scope with these words may end.
pub(super) fn may_close<S: Stacks>(program: &Program, stacks: &mut S, frame: Frame, below: StackId) -> bool {
    ask(program, stacks, frame, below, Question::MayClose)
}

/// Appends the branches of a stack that can continue.
fn fork<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    stack: StackId,
    expected: Expected,
    out: &mut Vec<StackId>,
) {
    let mut work = vec![(Path::new(stack), expected)];
    let mut frames = Vec::new();
    while let Some((path, expected)) = work.pop() {
        frames.clear();
        stacks.pop(path.stack, &mut frames);
        for &(frame, below) in &frames {
            let mut next = expected.clone();
            let mut above = path.above.clone();
            above.push(frame);
            match next.then(program, stacks, frame, below) {
                Some(true) => out.push(push_all(program, stacks, &above, below)),
                Some(false) => {}
                None => work.push((Path { above, stack: below }, next)),
            }
        }
    }
}

fn push_all<S: Stacks>(program: &Program, stacks: &mut S, above: &[Frame], below: StackId) -> StackId {
    above.iter().rev().fold(below, |stack, frame| stacks.push(program, *frame, stack))
}
