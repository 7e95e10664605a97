//! Tables of leaves that were built before.

use std::sync::Arc;

use super::automaton::Automaton;
use crate::clearing_map::ClearingMap;

/// Tables that were built before, by the content of their expression. Give one cache to all compiles of a
/// process; it is bounded, and simply forgets everything when it is full.
#[derive(Debug)]
pub struct AutomatonCache {
    tables: ClearingMap<Box<[u8]>, Arc<Automaton>>,
}

impl Default for AutomatonCache {
    fn default() -> Self {
        Self::with_entries(Vec::new())
    }
}

/// How many tables the cache keeps.
const CACHED: usize = 4_096;
/// What an entry takes beside its key and its table: two words of key, a pointer, and room to grow.
const ENTRY_BYTES: usize = 48;

impl AutomatonCache {
    /// How much memory the cache holds; tables that somebody else uses as well are counted there.
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

    /// All tables with what they were made of.
    pub(crate) fn entries(&self) -> Vec<(Box<[u8]>, Arc<Automaton>)> {
        let tables = self.tables.read();
        tables.iter().map(|(key, table)| (key.clone(), table.clone())).collect()
    }

    /// A cache of these tables.
    pub(crate) fn with_entries(tables: Vec<(Box<[u8]>, Arc<Automaton>)>) -> Self {
        Self { tables: ClearingMap::new(tables, CACHED) }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Arc<Automaton>> {
        self.tables.get(key)
    }

    pub(crate) fn put(&self, key: Vec<u8>, automaton: &Arc<Automaton>) {
        self.tables.add(key.into(), automaton.clone(), |_| ());
    }
}
