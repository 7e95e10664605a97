//! A map that is read by many, grows now and then, and forgets everything when it is full.
//!
//! What is forgotten can be made again, and whoever uses it holds it: so nothing has to be known about who uses what.

use core::hash::Hash;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use rustc_hash::FxHashMap;

#[derive(Debug)]
pub(super) struct ClearingMap<K, V> {
    map: RwLock<FxHashMap<K, V>>,
    most: usize,
}

impl<K: Eq + Hash, V> ClearingMap<K, V> {
    /// A map with these entries, and later no more than so many.
    pub(super) fn new(entries: impl IntoIterator<Item = (K, V)>, most: usize) -> Self {
        Self { map: RwLock::new(entries.into_iter().collect()), most }
    }

    /// A writer that panicked left the map as it was: entries are made before.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, FxHashMap<K, V>> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry, unless somebody was faster, and hands over what is there.
    pub(super) fn add<T>(&self, key: K, value: V, get: impl FnOnce(&V) -> T) -> T {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= self.most {
            map.clear();
        }
        get(map.entry(key).or_insert(value))
    }
}
