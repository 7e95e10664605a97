//! Words on stacks: whether a word is new to its scope, and whether one of those that a place awaits is.
//!
//! See [`crate::program::words`]. Where a stack forks, each branch has a scope of its own, and only those are kept on which it goes on.

use smallvec::SmallVec;

use super::stack::{Frame, Resume, StackId, Stacks};
use super::thread::Thread;
use crate::count::Count;
use crate::program::network::WordId;
use crate::program::words::{Awaited, Question, WordListId};
use crate::program::{At, Kind, NetState, Program};

/// The frames from the top of a stack down to a place, the first on top, and what is below.
struct Path {
    above: SmallVec<[Frame; 4]>,
    stack: StackId,
}

impl Path {
    fn new(stack: StackId) -> Self {
        Self { above: SmallVec::new(), stack }
    }
}

/// What becomes of a frame.
pub(crate) enum Replaced {
    /// It is passed: what is looked for lies below.
    Passed,
    /// Another takes its place.
    By(Frame),
    /// The stack ends there, and is none to go on with.
    Dead,
}

/// Replaces the nearest frames of a kind, one on each branch where a stack forks, and adds the stacks that this makes.
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
    /// What a place awaits, if not just anything may come.
    #[inline]
    fn awaited(&self, at: At) -> Option<Awaited> {
        match at {
            At::Network(state) => self.awaited_at(state),
            At::Leaf(..) => None,
        }
    }
}

/// Adds the stacks on which a word is new, with scopes that have seen it.
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
        // There is no set to be in.
        Resume::Scope { .. } | Resume::Finish => Replaced::By(frame),
        Resume::At(_) | Resume::Loop { .. } | Resume::Limit { .. } => Replaced::Passed,
    };
    replace_nearest(program, stacks, stack, replace, out);
}

/// Adds a thread if it can go on, perhaps without some of its stacks.
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
    let standing = Standing {
        lists: SmallVec::from_slice(&[awaited.list]),
        may_end: awaited.may_end,
        is_last: awaited.is_last,
    };
    // Nearly always the scope is the first frame.
    let (mut frames, mut stack, mut at) = (Vec::new(), thread.stack, standing.clone());
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
    fork(program, stacks, thread.stack, standing, &mut living);
    for stack in living {
        add(stacks, Thread { stack, ..thread });
    }
}

/// Whether what is called may be left again, on some of the stacks.
#[cold]
pub(super) fn leads_back<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    behind: NetState,
    stack: StackId,
) -> bool {
    let Some(awaited) = program.awaited_at(behind) else { return true };
    let mut is_alive = false;
    for_living(program, stacks, awaited, Thread::network(behind, stack), &mut |_, _| is_alive = true);
    is_alive
}

/// What may come first on the way from a place down a stack.
#[derive(Clone)]
struct Standing {
    /// A word of one of these lists.
    lists: SmallVec<[WordListId; 2]>,
    /// What was passed so far may end.
    may_end: bool,
    /// Another value, behind which only the end may come.
    is_last: bool,
}

impl Standing {
    /// Goes on with the next frame. Returns whether there is a word that is new, or another way to go on, if that is known.
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
            // Nothing follows but the end of that machine.
            Resume::At(state) if program.standing(At::Network(state), Count::default()) == Kind::End => {
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

/// Asks the words that a scope has seen.
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

/// The answer of a frame to a question.
pub(super) fn answer(program: &Program, frame: Frame, question: Question) -> bool {
    let Resume::Words { index, set } = frame.resume() else { return true };
    program.word_scope(index).is_none_or(|(words, scope)| words.answer(scope, set, question))
}

/// Whether a scope may end that has seen these words.
pub(super) fn may_close<S: Stacks>(program: &Program, stacks: &mut S, frame: Frame, below: StackId) -> bool {
    ask(program, stacks, frame, below, Question::MayClose)
}

/// The same where stacks fork: adds the branches that go on.
fn fork<S: Stacks>(
    program: &Program,
    stacks: &mut S,
    stack: StackId,
    standing: Standing,
    out: &mut Vec<StackId>,
) {
    let mut work = vec![(Path::new(stack), standing)];
    let mut frames = Vec::new();
    while let Some((path, standing)) = work.pop() {
        frames.clear();
        stacks.pop(path.stack, &mut frames);
        for &(frame, below) in &frames {
            let mut next = standing.clone();
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
