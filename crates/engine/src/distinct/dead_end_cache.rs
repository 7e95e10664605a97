//! Remembers which tokens lead to dead ends while the text stays in one string.
//!
//! Where values may run out, the tokens that end a string are tried one by one. If the string is not part of a value
//! that must be new, the result does not depend on its content: the answer found at its first character holds up to its
//! end.

use smallvec::SmallVec;

use crate::library::Key;
use crate::parser::stack::StackId;

/// The last answer, and the position for which it was found. It must be cleared when its stack numbers become invalid.
#[derive(Debug, Default)]
pub(crate) struct DeadEndCache {
    place: Place,
    dead_ends: Vec<u32>,
}

/// A position: the threads, reduced to what a token can distinguish.
pub(super) type Place = SmallVec<[(Key, StackId); 2]>;

impl DeadEndCache {
    pub(super) fn clear(&mut self) {
        self.place.clear();
    }

    /// Returns the tokens that lead to a dead end, if `place` is the remembered position.
    pub(super) fn at(&self, place: &Place) -> Option<&[u32]> {
        (self.place == *place).then_some(&*self.dead_ends)
    }

    pub(super) fn learn(&mut self, place: Place, dead_ends: Vec<u32>) {
        *self = Self { place, dead_ends };
    }
}
