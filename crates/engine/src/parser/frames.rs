//! Visits the frames of stacks that fork.

use smallvec::SmallVec;

use super::stack::{Arena, Frame, StackId, Top};
use crate::small_set::SmallSet;

/// A walk down some stacks that visits each node once, even if several paths lead to it. The caller decides which paths
/// to follow.
pub(crate) struct Frames<'a> {
    arena: &'a Arena,
    work: SmallVec<[StackId; 8]>,
    /// Whether a union was found. Without one, no node can be visited twice.
    forks: bool,
    visited: SmallSet<StackId>,
}

impl<'a> Frames<'a> {
    /// Starts at the tops of some stacks.
    pub(crate) fn of(arena: &'a Arena, stacks: impl IntoIterator<Item = StackId>) -> Self {
        let work: SmallVec<[StackId; 8]> = stacks.into_iter().collect();
        Self { arena, forks: work.len() > 1, work, visited: SmallSet::default() }
    }

    /// Returns another frame and the stack below it.
    pub(crate) fn next(&mut self) -> Option<(Frame, StackId)> {
        while let Some(stack) = self.work.pop() {
            if self.forks && !self.visited.insert(stack) {
                continue;
            }
            match self.arena.top(stack) {
                Top::Frame(frame, below) => return Some((frame, below)),
                Top::Union(members) => {
                    self.forks = true;
                    self.work.extend_from_slice(members);
                }
            }
        }
        None
    }

    /// Continues below a frame.
    pub(crate) fn follow(&mut self, below: StackId) {
        self.work.push(below);
    }
}
