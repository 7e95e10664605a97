//! The place of a thread, and what a byte does there: one interface for the network and for both kinds of leaves.
//!
//! ```text
//!   start         the network: Program::start      a leaf: Program::leaf_start
//!   step          Program::step (a cell)           Program::step_leaf
//!   is it alive   Program::live_at
//!   may it end    Program::may_end_at
//!   must it end   Program::on_arrival
//! ```
//! Nothing here depends on a stack. Calls, and what follows an end, are resolved in [`crate::parser`].

use maskwright_automata::ByteSet;

use super::{LeafId, NetState, OnArrival, Place, Program};
use crate::count::{Bounds, Count};
use crate::leaf::{Action, Automaton, Leaf, LeafState, Step, TextNext};

/// The place of a thread: a state of the network or of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum At {
    Network(NetState),
    Leaf(LeafId, LeafState),
}

// PERF: threads are compared and copied all the time.
const _: () = assert!(size_of::<At>() == 8);

impl At {
    /// The root is done, and nothing can follow.
    pub(crate) const DONE: Self = Self::Network(NetState::DONE);

    /// Returns a number that identifies the place.
    #[inline]
    pub(crate) fn key(self) -> u64 {
        match self {
            Self::Network(state) => u64::from(state.raw()),
            Self::Leaf(leaf, state) => (leaf.index() as u64 + 1) << 32 | u64::from(state.0),
        }
    }
}

impl Program {
    /// Returns the start of a leaf.
    #[inline]
    pub(crate) fn leaf_start(&self, leaf: LeafId) -> At {
        At::Leaf(leaf, self.leaf(leaf).start())
    }

    /// Returns the place that a byte leads to inside a leaf and the count after it, or `None` if it leads nowhere.
    #[inline]
    pub(crate) fn step_leaf(
        &self,
        leaf: LeafId,
        state: LeafState,
        count: Count,
        byte: u8,
    ) -> Option<(At, Count)> {
        match self.leaf(leaf) {
            Leaf::Window { automaton, min, max } => {
                let step = automaton.step(state, byte);
                let count = self.count_step(automaton, step, count, Bounds { min: *min, max: *max })?;
                Some((At::Leaf(leaf, step.target()), count))
            }
            Leaf::Text(text) => match text.next(state, byte) {
                TextNext::Dead => None,
                TextNext::Stay(state) => Some((At::Leaf(leaf, state), count)),
                TextNext::Plain(state) => Some((At::Leaf(self.plain_string(), state), count)),
            },
        }
    }

    /// Returns the count of a leaf after a step, or `None` if the step cannot be made.
    #[inline]
    pub(crate) fn count_step(
        &self,
        automaton: &Automaton,
        step: Step,
        count: Count,
        bounds: Bounds,
    ) -> Option<Count> {
        match count.single() {
            Some(one) => automaton.count_step(step, one, bounds).map(Count::of),
            None => self.count_set(automaton, step, count, bounds),
        }
    }

    /// Does the same for a count that is a set.
    #[cold]
    fn count_set(&self, automaton: &Automaton, step: Step, count: Count, bounds: Bounds) -> Option<Count> {
        if step.is_dead() {
            return None;
        }
        let counts = self.counts();
        let count = match step.action() {
            Action::Pass => count,
            Action::Unit => counts.advance(count, bounds)?,
            Action::Close => return counts.may_stop(count, bounds).then_some(count),
        };
        (automaton.tail(step.target()) <= counts.room(count, bounds)).then_some(count)
    }

    /// Returns the bytes that a place and what it calls may take, and perhaps a few more.
    #[inline]
    pub(crate) fn live_at(&self, at: At) -> ByteSet {
        match at {
            At::Network(state) => match self.place(state) {
                Place::Done => ByteSet::EMPTY,
                Place::Node { low, high, .. } => ByteSet::range(low, high),
                Place::Cell(cell) => cell.first,
            },
            At::Leaf(leaf, state) => match self.leaf(leaf) {
                Leaf::Window { automaton, .. } => *automaton.live(state),
                Leaf::Text(text) => text.live(state),
            },
        }
    }

    /// Checks whether the part at a place may end there, if its count allows it.
    #[inline]
    pub(crate) fn accepts_at(&self, at: At) -> bool {
        match at {
            At::Network(state) => self.may_return(state),
            At::Leaf(leaf, state) => match self.leaf(leaf) {
                Leaf::Window { automaton, .. } => automaton.is_accepting(state),
                Leaf::Text(_) => false,
            },
        }
    }

    /// Checks whether the part at a place may end there.
    #[inline]
    pub(crate) fn may_end_at(&self, at: At, count: Count) -> bool {
        self.accepts_at(at)
            && match at {
                At::Network(_) => true,
                At::Leaf(leaf, _) => self.counts().may_stop(count, self.leaf(leaf).bounds()),
            }
    }

    /// Returns what a thread at a place must do at once.
    #[inline]
    pub(crate) fn on_arrival(&self, at: At, count: Count) -> OnArrival {
        match at {
            At::Network(state) => match self.place(state) {
                Place::Done | Place::Node { .. } => OnArrival::Stay,
                Place::Cell(cell) => cell.on_arrival,
            },
            At::Leaf(leaf, state) => match self.leaf(leaf) {
                Leaf::Window { automaton, min, max }
                    if automaton.may_have_to_end(state)
                        && self.has_to_end(automaton, state, count, Bounds { min: *min, max: *max }) =>
                {
                    OnArrival::End
                }
                Leaf::Window { .. } | Leaf::Text(_) => OnArrival::Stay,
            },
        }
    }

    /// Checks whether a leaf has to end in a state in which it may have to.
    fn has_to_end(&self, automaton: &Automaton, state: LeafState, count: Count, bounds: Bounds) -> bool {
        let counts = self.counts();
        counts.may_stop(count, bounds)
            && (automaton.live(state).is_empty() || counts.room(count, bounds) == 0)
    }
}
