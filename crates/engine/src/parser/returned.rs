//! Which stacks were returned to. Without this, ambiguous grammars would visit every path through a graph of stacks, and not every stack.

use rustc_hash::FxHashSet;

use super::stack::{Frame, StackId, Stacks};
use crate::seen::Seen;

/// The stacks that were returned to.
#[derive(Debug, Default)]
pub(super) struct Returned {
    stacks: Seen<StackId>,
    /// Their frames, where there are many: different unions have common members.
    frames: FxHashSet<(Frame, StackId)>,
}

/// Up to so many frames of a stack, nobody asks whether they were returned to.
const FEW_FRAMES: usize = 8;

impl Returned {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.stacks.clear();
        if !self.frames.is_empty() {
            self.frames.clear();
        }
    }

    /// Returns to a stack. Whether that is new.
    #[inline]
    pub(super) fn insert(&mut self, stack: StackId) -> bool {
        self.stacks.insert(stack)
    }

    /// The frames of a stack, each with what is below, without those that were returned to already if they are many.
    #[inline]
    pub(super) fn pop<S: Stacks>(
        &mut self,
        stacks: &mut S,
        stack: StackId,
        frames: &mut Vec<(Frame, StackId)>,
    ) {
        stacks.pop(stack, frames);
        if frames.len() > FEW_FRAMES {
            frames.retain(|frame| self.frames.insert(*frame));
        }
    }
}
