//! A set that is nearly always tiny.

use core::hash::Hash;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Up to this many items, searching a list is faster than hashing.
const MAX_LISTED: usize = 24;

/// A set that starts as a list and overflows into a hash set.
#[derive(Clone, Debug)]
pub(crate) struct SmallSet<T> {
    few: SmallVec<[T; MAX_LISTED]>,
    many: FxHashSet<T>,
}

impl<T> Default for SmallSet<T> {
    fn default() -> Self {
        Self { few: SmallVec::new(), many: FxHashSet::default() }
    }
}

impl<T: Copy + Eq + Hash> SmallSet<T> {
    /// Adds an item. Returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, item: T) -> bool {
        if self.few.contains(&item) {
            return false;
        }
        if self.few.len() < MAX_LISTED {
            self.few.push(item);
            return true;
        }
        self.many.insert(item)
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
