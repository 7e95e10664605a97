//! A map that many threads read, that grows rarely, and that drops all its entries when it is full.
//!
//! A dropped entry can always be computed again, and users of an entry keep their own copy of it. So the map does not
//! need to track who uses what.

use core::borrow::Borrow;
use core::hash::Hash;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use rustc_hash::FxHashMap;

#[derive(Debug)]
pub(crate) struct ClearingMap<K, V> {
    map: RwLock<FxHashMap<K, V>>,
    most: usize,
}

impl<K: Eq + Hash, V> ClearingMap<K, V> {
    /// Creates a map with these entries. After that it holds at most `most` entries.
    pub(crate) fn new(entries: impl IntoIterator<Item = (K, V)>, most: usize) -> Self {
        Self { map: RwLock::new(entries.into_iter().collect()), most }
    }

    /// Locks the map for reading. A poisoned lock is fine: entries are computed before they are inserted, so a writer
    /// that panicked has left the map as it was.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, FxHashMap<K, V>> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a copy of the value of a key.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        V: Clone,
    {
        self.read().get(key).cloned()
    }

    /// Adds an entry, unless another thread has already added one, and passes the entry that is now in the map to
    /// `get`.
    pub(crate) fn add<T>(&self, key: K, value: V, get: impl FnOnce(&V) -> T) -> T {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= self.most {
            map.clear();
        }
        get(map.entry(key).or_insert(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_forgets_everything_and_goes_on() {
        let map = ClearingMap::new([], 4);
        for key in 0..10u32 {
            assert_eq!(map.get(&key), None);
            assert_eq!(map.add(key, key * 2, |value| *value), key * 2);
            assert_eq!(map.get(&key), Some(key * 2));
            assert!(map.read().len() <= 4);
        }
        assert_eq!(
            (map.get(&3), map.get(&8), map.get(&9)),
            (None, Some(16), Some(18)),
            "cleared at 4 and at 8"
        );
    }

    #[test]
    fn what_is_there_stays() {
        let map = ClearingMap::new([(1, "first")], 4);
        assert_eq!(map.add(1, "second", |value| *value), "first");
    }
}
