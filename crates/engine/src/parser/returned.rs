//! The stacks that a step has already returned to.
//!
//! Without this, an ambiguous grammar would visit every path through the graph of stacks instead of every stack.

use rustc_hash::FxHashSet;

use super::stack::{Frame, StackId, Stacks};
use crate::small_set::SmallSet;

/// The stacks that were already returned to.
#[derive(Debug, Default)]
pub(super) struct Returned {
    stacks: SmallSet<StackId>,
    /// Their frames, for stacks with many of them, because different unions have common members.
    frames: FxHashSet<(Frame, StackId)>,
}

/// Stacks with at most this many frames are not checked for repeated frames.
const MAX_UNCHECKED_FRAMES: usize = 8;

impl Returned {
    #[inline]
    pub(super) fn clear(&mut self) {
        self.stacks.clear();
        if !self.frames.is_empty() {
            self.frames.clear();
        }
    }

    /// Marks a stack as returned to. Returns whether that is new.
    #[inline]
    pub(super) fn insert(&mut self, stack: StackId) -> bool {
        self.stacks.insert(stack)
    }

    /// Appends the frames of a stack, each with the stack below. If there are many, skips those that were already
    /// returned to.
    #[inline]
    pub(super) fn pop<S: Stacks>(
        &mut self,
        stacks: &mut S,
        stack: StackId,
        frames: &mut Vec<(Frame, StackId)>,
    ) {
        stacks.pop(stack, frames);
        if frames.len() > MAX_UNCHECKED_FRAMES {
            frames.retain(|frame| self.frames.insert(*frame));
        }
    }
}
