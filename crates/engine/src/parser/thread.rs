//! Threads: partial parses.

use super::stack::StackId;
use crate::count::Count;
use crate::leaf::LeafState;
use crate::program::{At, LeafId, NetState};

/// One partial parse: a place in the program, a count, and a stack to return to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Thread {
    pub(crate) at: At,
    /// The number of units that the leaf has begun. Without a maximum, it stops at the minimum.
    pub(crate) count: Count,
    pub(crate) stack: StackId,
}

impl Thread {
    /// Creates a thread that has just arrived at a place.
    #[inline]
    pub(crate) fn new(at: At, stack: StackId) -> Self {
        Self { at, count: Count::ZERO, stack }
    }

    #[inline]
    pub(crate) fn network(state: NetState, stack: StackId) -> Self {
        Self::new(At::Network(state), stack)
    }

    pub(super) const DONE: Self = Self { at: At::DONE, count: Count::ZERO, stack: StackId::BOTTOM };

    /// Checks whether the text is complete and nothing can follow.
    pub(crate) fn is_done(&self) -> bool {
        self.at == At::DONE
    }

    /// Checks whether its place is a state of the network.
    pub(crate) fn is_in_network(&self) -> bool {
        matches!(self.at, At::Network(_))
    }

    /// Returns its leaf and the state there, if it is in a leaf.
    #[inline]
    pub(crate) fn leaf(&self) -> Option<(LeafId, LeafState)> {
        match self.at {
            At::Leaf(leaf, state) => Some((leaf, state)),
            At::Network(_) => None,
        }
    }
}
