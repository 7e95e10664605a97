//! One partial parse.

use super::stack::StackId;
use crate::count::Count;
use crate::leaf::LeafState;
use crate::program::{At, LeafId, NetState};

/// One partial parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Thread {
    pub(crate) at: At,
    /// Units that the leaf has begun. It stops at the minimum if there is no maximum.
    pub(crate) count: Count,
    pub(crate) stack: StackId,
}

impl Thread {
    /// A thread that has just come to a place.
    #[inline]
    pub(crate) fn new(at: At, stack: StackId) -> Self {
        Self { at, count: Count::ZERO, stack }
    }

    #[inline]
    pub(crate) fn network(state: NetState, stack: StackId) -> Self {
        Self::new(At::Network(state), stack)
    }

    pub(super) const DONE: Self = Self { at: At::DONE, count: Count::ZERO, stack: StackId::BOTTOM };

    /// Whether the text is complete and nothing can follow.
    pub(crate) fn is_done(&self) -> bool {
        self.at == At::DONE
    }

    /// Whether it stands in the network.
    pub(crate) fn is_in_network(&self) -> bool {
        matches!(self.at, At::Network(_))
    }

    /// The leaf that it stands in, and the state there.
    #[inline]
    pub(crate) fn leaf(&self) -> Option<(LeafId, LeafState)> {
        match self.at {
            At::Leaf(leaf, state) => Some((leaf, state)),
            At::Network(_) => None,
        }
    }
}
