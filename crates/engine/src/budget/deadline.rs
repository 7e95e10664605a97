//! Computes how many tokens threads still need, and how many they have.
//!
//! A thread needs the rest of its current state or leaf, and then what its stack returns to, frame by frame. What it
//! has is bounded by *deadlines*: the end of a budget, at the bottom of every stack, and the frames of limited parts in
//! between. A deadline is the number of a token, so nothing has to be counted down:
//!
//! ```text
//!   thread ── 3 ──▶ frame ── 2 ──▶ limit (before token 40) ──▶ frame ── 1 ──▶ finish (before token 100)
//!              needs 5 tokens before token 40, and 6 before token 100
//! ```
//! The *latest* token before which a thread must continue is the minimum of "deadline minus what is needed on the way".
//! While it is not less than the number of the next token, everything can be finished in time.

use rustc_hash::FxHashMap;

use super::Deadlines;
use super::least::{CurrentValue, ENDLESS, LeastView};
use crate::count::{Count, UNBOUNDED, Window, Windows};
use crate::distinct::Distinct;
use crate::library::{BoundProgram, NEVER};
use crate::parser::stack::{Arena, Frame, Resume, StackId, Top};
use crate::parser::thread::Thread;
use crate::program::{At, LeafId, NetState, Program};

/// Measures the threads of one matcher.
pub(crate) struct DeadlineView<'m> {
    pub(crate) bound: &'m BoundProgram,
    pub(crate) arena: &'m Arena,
    /// The number of the token before which the text must be complete.
    pub(crate) finish: i64,
    /// Number of tokens needed from each state, so that each is looked up once.
    pub(crate) states: &'m mut FxHashMap<u32, u32>,
    /// The least numbers of tokens.
    pub(crate) least: LeastView<'m>,
}

/// The effect of a frame on those above it.
pub(crate) enum Bound {
    /// This many tokens come first.
    Needs(i64),
    /// They must be done before this token; [`Below`] tells whether the frames below count as well.
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
        let least = LeastView::new(bound, arena, finish, distinct, !deadlines.has_upper_bound_only);
        Self { bound, arena, finish, states: &mut deadlines.distances, least }
    }

    /// Checks whether one of these threads is in time if it continues with this token. The upper bound is tried first,
    /// because it is faster to find than the least number.
    pub(crate) fn is_in_time(&mut self, threads: &[Thread], token: u32) -> bool {
        let token = i64::from(token);
        threads.iter().any(|thread| self.latest(thread) >= token)
            || self.least.is_in_time(threads, None, token, CurrentValue::AsSeen)
    }

    fn program(&self) -> &Program {
        self.bound.program()
    }

    /// Returns the number of tokens that a thread needs to the end of its state's machine or its leaf.
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

    /// Returns the maximum of that number over all places in a leaf with this count; [`ENDLESS`] if unknown.
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

    /// Returns the latest token before which a thread must continue, by the upper bound; if it has passed, the thread
    /// is too late. Where scopes require values, or values may run out, there is no such bound.
    pub(crate) fn latest(&mut self, thread: &Thread) -> i64 {
        if !self.program().has_plain_scopes() {
            return -ENDLESS;
        }
        self.latest_of(thread.stack) - self.needs(thread)
    }

    /// Returns the same for what follows when everything above this stack is done.
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

    /// Returns how many tokens a thread needs to the end of the text by the upper bound, if it continues with this
    /// token. Returns `None` if that is too late for something on its stack, if there is no bound, or if the program
    /// has limits and the stack forks.
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

    /// Returns the same for a stack that forks: the best branch counts. Every stack is visited once.
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

/// Returns counts of units that together represent a set of counts: each stands for a part of the windows that the set
/// leaves.
fn counts(program: &Program, leaf: LeafId, count: Count) -> impl Iterator<Item = u32> {
    let bounds = program.leaf(leaf).bounds();
    let windows = match count.single() {
        Some(_) => Windows::new(),
        None => program.counts().windows(count, bounds),
    };
    // For each window, the smallest count that leaves no more room, and one that needs no less.
    let parts = windows.into_iter().flat_map(move |Window { need, room }| {
        let by_room = if bounds.max == UNBOUNDED { 0 } else { bounds.max - room.min(bounds.max) };
        [by_room, by_room.max(bounds.min.saturating_sub(need))]
    });
    count.single().into_iter().chain(parts)
}

fn tokens(distance: u32) -> i64 {
    if distance == NEVER { ENDLESS } else { i64::from(distance) }
}
