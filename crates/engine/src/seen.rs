//! A set of numbers that is nearly always tiny.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Up to this many, looking through a list beats hashing.
const FEW: usize = 24;

/// A set of `u32` that starts as a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    few: SmallVec<[u32; FEW]>,
    many: FxHashSet<u32>,
}

impl Seen {
    /// Adds a number; whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        if self.few.contains(&number) {
            return false;
        }
        if self.few.len() < FEW {
            self.few.push(number);
            return true;
        }
        self.many.insert(number)
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        if !self.few.is_empty() {
            self.few.clear();
            if !self.many.is_empty() {
                self.many.clear();
            }
        }
    }
}
