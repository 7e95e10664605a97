//! Tokens that lead to dead ends, as long as the text stays in one string.
//!
//! Where values may run out, the tokens that end a string are tried one by one. If the string belongs to no value that must be new, what comes of them does not
//! depend on what is written in it: the answer for its first character holds up to its end.

use smallvec::SmallVec;

use crate::library::Key;
use crate::parser::stack::StackId;

/// The last answer, and where the text was. To be forgotten with the stacks by which it is known.
#[derive(Debug, Default)]
pub(crate) struct KnownOuts {
    place: Place,
    out: Vec<u32>,
}

/// The threads as far as a token can tell.
pub(super) type Place = SmallVec<[(Key, StackId); 2]>;

impl KnownOuts {
    pub(super) fn clear(&mut self) {
        self.place.clear();
    }

    /// The tokens that lead to a dead end.
    pub(super) fn at(&self, place: &Place) -> Option<&[u32]> {
        (self.place == *place).then_some(&*self.out)
    }

    pub(super) fn learn(&mut self, place: Place, out: Vec<u32>) {
        *self = Self { place, out };
    }
}
