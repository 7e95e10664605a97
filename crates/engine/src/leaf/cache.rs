//! A cache of the tables of leaves.

use std::sync::Arc;

use super::automaton::Automaton;
use crate::clearing_map::ClearingMap;

/// A cache of leaf tables, keyed by the content of their expression. Give one cache to all compiles of a process. It is
/// bounded, and forgets everything when it is full.
#[derive(Debug)]
pub struct AutomatonCache {
    tables: ClearingMap<Box<[u8]>, Arc<Automaton>>,
}

impl Default for AutomatonCache {
    fn default() -> Self {
        Self::with_entries(Vec::new())
    }
}

/// The greatest number of tables in the cache.
const MAX_TABLES: usize = 4_096;
/// The bytes of an entry besides its key and its table: two words of key, a pointer, and room to grow.
const ENTRY_BYTES: usize = 48;

impl AutomatonCache {
    /// Returns how much memory the cache holds, without the tables that are also used elsewhere: those are counted
    /// there.
    pub fn heap_bytes(&self) -> usize {
        let tables = self.tables.read();
        let own = |automaton: &Arc<Automaton>| {
            if Arc::strong_count(automaton) == 1 {
                automaton.heap_bytes() + size_of::<Automaton>()
            } else {
                0
            }
        };
        tables.iter().map(|(key, automaton)| key.len() + ENTRY_BYTES + own(automaton)).sum()
    }

    /// Returns all tables with their keys.
    pub(crate) fn entries(&self) -> Vec<(Box<[u8]>, Arc<Automaton>)> {
        let tables = self.tables.read();
        tables.iter().map(|(key, table)| (key.clone(), table.clone())).collect()
    }

    /// Creates a cache that contains these tables.
    pub(crate) fn with_entries(tables: Vec<(Box<[u8]>, Arc<Automaton>)>) -> Self {
        Self { tables: ClearingMap::new(tables, MAX_TABLES) }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Arc<Automaton>> {
        self.tables.get(key)
    }

    pub(crate) fn put(&self, key: Vec<u8>, automaton: &Arc<Automaton>) {
        self.tables.add(key.into(), automaton.clone(), |_| ());
    }
}
