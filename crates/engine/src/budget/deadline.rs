//! How many tokens threads still need, and how many they have.
//!
//! A thread needs what is left of the thing it stands in, and then what its stack returns to, frame by frame. What it has is bounded by
//! *deadlines*: the end of a budget, at the bottom of every stack, and the frames of limited parts in between. A deadline is the number
//! of a token, so nothing has to be counted down:
//!
//! ```text
//!   thread ── 3 ──▶ frame ── 2 ──▶ limit (before token 40) ──▶ frame ── 1 ──▶ finish (before token 100)
//!              needs 5 tokens before token 40, and 6 before token 100
//! ```
//! The *latest* token before which a thread must go on is the least of "deadline minus what is needed on the way". While
//! that is no less than the number of the next token, everything can be finished in time.

use rustc_hash::FxHashMap;

use super::Deadlines;
use super::least::{Begun, ENDLESS, LeastView};
use crate::count::{Count, UNBOUNDED, Window, Windows};
use crate::distinct::Distinct;
use crate::library::{BoundProgram, NEVER};
use crate::parser::stack::{Arena, Frame, Resume, StackId, Top};
use crate::parser::thread::Thread;
use crate::program::{At, LeafId, NetState, Program};

/// Measures threads of one matcher.
pub(crate) struct DeadlineView<'m> {
    pub(crate) bound: &'m BoundProgram,
    pub(crate) arena: &'m Arena,
    /// The number of the first token that is beyond the budget.
    pub(crate) finish: i64,
    /// What states need, to be looked up once.
    pub(crate) states: &'m mut FxHashMap<u32, u32>,
    /// The least numbers.
    pub(crate) least: LeastView<'m>,
}

/// What a frame means for those above it.
pub(crate) enum Bound {
    /// So many tokens come first.
    Needs(i64),
    /// They must be done before this token; what is below counts as well, or not.
    Before(i64, Below),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    Counts,
    IsNothing,
}

impl<'m> DeadlineView<'m> {
    pub(crate) fn new(
        bound: &'m BoundProgram,
        arena: &'m Arena,
        deadlines: &'m mut Deadlines,
        distinct: Option<&'m Distinct>,
    ) -> Self {
        let finish = deadlines.finish();
        let least = LeastView::new(bound, arena, finish, distinct, !deadlines.is_rough);
        Self { bound, arena, finish, states: &mut deadlines.distances, least }
    }

    /// Whether there is time for one of these threads if it goes on with this token. The upper bound is quicker to find than the least number.
    pub(crate) fn is_in_time(&mut self, threads: &[Thread], token: u32) -> bool {
        let token = i64::from(token);
        threads.iter().any(|thread| self.latest(thread) >= token)
            || self.least.is_in_time(threads, None, token, Begun::AsSeen)
    }

    fn program(&self) -> &Program {
        self.bound.program()
    }

    /// The tokens that a thread needs where it stands.
    pub(crate) fn needs(&mut self, thread: &Thread) -> i64 {
        let (leaf, state) = match thread.at {
            At::DONE => return 0,
            At::Network(state) => return self.state(state),
            At::Leaf(leaf, state) => (leaf, state),
        };
        let needs = |count| self.bound.distances().leaves().leaf(self.program(), leaf, state, count);
        let counts = counts(self.program(), leaf, thread.count);
        counts.map(|count| tokens(needs(count))).min().unwrap_or(ENDLESS)
    }

    /// The same for every place in a leaf that has come so far; [`ENDLESS`] if that is not known.
    pub(crate) fn needs_at_most(&self, leaf: LeafId, count: Count) -> i64 {
        let most = |count| self.bound.distances().leaves().farthest(self.program(), leaf, count);
        counts(self.program(), leaf, count).map(|count| tokens(most(count))).min().unwrap_or(ENDLESS)
    }

    fn state(&mut self, state: NetState) -> i64 {
        let (ahead, program) = (self.bound.distances(), self.bound.program());
        tokens(*self.states.entry(state.raw()).or_insert_with(|| ahead.state(program, state)))
    }

    pub(crate) fn frame(&mut self, frame: Frame) -> Bound {
        match frame.resume() {
            Resume::At(state) => Bound::Needs(self.state(state)),
            Resume::Loop { index, rounds } => {
                let counted = self.program().counted(index);
                let left = self.program().counts().need(rounds, counted.bounds());
                Bound::Needs(tokens(self.bound.distances().rounds(counted.body, left)))
            }
            Resume::Scope { .. } | Resume::Words { .. } => Bound::Needs(0),
            Resume::Limit { deadline } => Bound::Before(i64::from(deadline), Below::Counts),
            Resume::Finish => Bound::Before(self.finish, Below::IsNothing),
        }
    }

    /// The latest token before which a thread must go on, by the upper bound. It is too late if that has passed. Where scopes require values, or values may run
    /// out, there is no such bound.
    pub(crate) fn latest(&mut self, thread: &Thread) -> i64 {
        if !self.program().has_plain_scopes() {
            return -ENDLESS;
        }
        self.latest_of(thread.stack) - self.needs(thread)
    }

    /// The same for what comes when something on this stack is done.
    pub(crate) fn latest_of(&mut self, stack: StackId) -> i64 {
        let (mut stack, mut needs, mut latest) = (stack, 0, ENDLESS);
        loop {
            let (frame, below) = match self.arena.top(stack) {
                Top::Frame(frame, below) => (frame, below),
                Top::Union([]) => return latest.min(self.finish - needs),
                Top::Union(_) => return latest.min(self.latest_of_union(stack) - needs),
            };
            match self.frame(frame) {
                Bound::Needs(more) => needs = (needs + more).min(ENDLESS),
                Bound::Before(deadline, below) => {
                    latest = latest.min(deadline - needs);
                    if below == Below::IsNothing {
                        return latest;
                    }
                }
            }
            stack = below;
        }
    }

    /// How many tokens a thread needs to the end of the text by the upper bound, if it goes on with this token; `None` if that is too late for something on its stack, or
    /// if there is no bound. Where the stack forks and something on it must end before some token, it is not looked for.
    pub(crate) fn needs_in_all(&mut self, thread: &Thread, token: i64) -> Option<i64> {
        let latest = self.latest(thread);
        if latest < token || latest <= -ENDLESS {
            return None;
        }
        if !self.program().has_limits() {
            return Some(self.finish - latest).filter(|needs| *needs < ENDLESS);
        }
        let (mut stack, mut needs) = (thread.stack, self.needs(thread));
        loop {
            let (frame, below) = match self.arena.top(stack) {
                Top::Frame(frame, below) => (frame, below),
                Top::Union([]) => break,
                Top::Union(_) => return None,
            };
            match self.frame(frame) {
                Bound::Needs(more) => needs = (needs + more).min(ENDLESS),
                Bound::Before(_, Below::Counts) => {}
                Bound::Before(_, Below::IsNothing) => break,
            }
            stack = below;
        }
        Some(needs).filter(|needs| *needs < ENDLESS)
    }

    /// Where stacks fork, the best way counts. Every stack is looked at once.
    fn latest_of_union(&mut self, stack: StackId) -> i64 {
        let mut known: FxHashMap<StackId, i64> = FxHashMap::from_iter([(StackId::BOTTOM, self.finish)]);
        let mut work = vec![stack];
        while let Some(&stack) = work.last() {
            if known.contains_key(&stack) {
                work.pop();
                continue;
            }
            let waiting = work.len();
            let latest = match self.arena.top(stack) {
                Top::Union(members) => {
                    work.extend(members.iter().filter(|member| !known.contains_key(*member)));
                    members.iter().filter_map(|member| known.get(member)).copied().max().unwrap_or(-ENDLESS)
                }
                Top::Frame(frame, below) => match (self.frame(frame), known.get(&below)) {
                    (Bound::Before(deadline, Below::IsNothing), _) => deadline,
                    (Bound::Before(deadline, Below::Counts), Some(latest)) => deadline.min(*latest),
                    (Bound::Needs(needs), Some(latest)) => latest - needs,
                    (_, None) => {
                        work.push(below);
                        0
                    }
                },
            };
            if work.len() == waiting {
                known.insert(stack, latest);
            }
        }
        known.get(&stack).copied().unwrap_or(-ENDLESS)
    }
}

/// Numbers of units, each with a part of the windows that a count leaves, so that something is known of all of them.
fn counts(program: &Program, leaf: LeafId, count: Count) -> impl Iterator<Item = u32> {
    let bounds = program.leaf(leaf).bounds();
    let windows = match count.single() {
        Some(_) => Windows::new(),
        None => program.counts().windows(count, bounds),
    };
    // The window of the fewest units that leave no more room than there is, and the one of those that need no less.
    let parts = windows.into_iter().flat_map(move |Window { need, room }| {
        let by_room = if bounds.max == UNBOUNDED { 0 } else { bounds.max - room.min(bounds.max) };
        [by_room, by_room.max(bounds.min.saturating_sub(need))]
    });
    count.single().into_iter().chain(parts)
}

fn tokens(distance: u32) -> i64 {
    if distance == NEVER { ENDLESS } else { i64::from(distance) }
}
