//! The frames on stacks that fork.

use smallvec::SmallVec;

use super::stack::{Arena, Frame, StackId, Top};
use crate::seen::Seen;

/// Goes down stacks, and comes to each of their nodes once, however many ways lead there. Whoever asks says which ways to follow.
pub(crate) struct Frames<'a> {
    arena: &'a Arena,
    work: SmallVec<[StackId; 8]>,
    /// Where nothing forks, nothing comes twice.
    forks: bool,
    visited: Seen<StackId>,
}

impl<'a> Frames<'a> {
    /// Begins on top of some stacks.
    pub(crate) fn of(arena: &'a Arena, stacks: impl IntoIterator<Item = StackId>) -> Self {
        let work: SmallVec<[StackId; 8]> = stacks.into_iter().collect();
        Self { arena, forks: work.len() > 1, work, visited: Seen::default() }
    }

    /// Another frame, and what is below it.
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

    /// Follows a way.
    pub(crate) fn follow(&mut self, below: StackId) {
        self.work.push(below);
    }
}
