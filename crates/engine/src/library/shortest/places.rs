//! Sets of nodes of the vocabulary's trie: where the token that is being written may stand.

use std::sync::Arc;

use maskwright_vocab::{Trie, TrieNode};
use rustc_hash::FxHashMap;

/// An interned set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PlaceSet(u32);

impl PlaceSet {
    /// Between two tokens: the root of the trie, and nothing else.
    pub(crate) const BETWEEN: Self = Self(0);
}

/// All sets of one program.
#[derive(Debug)]
pub(super) struct PlaceSets {
    sets: Vec<Arc<[TrieNode]>>,
    index: FxHashMap<Arc<[TrieNode]>, PlaceSet>,
    /// The nodes of all sets together.
    nodes: usize,
}

impl PlaceSets {
    pub(super) fn new() -> Self {
        let mut sets = Self { sets: Vec::new(), index: FxHashMap::default(), nodes: 0 };
        sets.intern(vec![Trie::ROOT]);
        sets
    }

    /// The set of these nodes.
    pub(super) fn intern(&mut self, mut nodes: Vec<TrieNode>) -> PlaceSet {
        nodes.sort_unstable();
        nodes.dedup();
        if let Some(known) = self.index.get(&*nodes) {
            return *known;
        }
        let set = PlaceSet(self.sets.len() as u32);
        let nodes: Arc<[TrieNode]> = nodes.into();
        self.nodes += nodes.len();
        self.sets.push(Arc::clone(&nodes));
        self.index.insert(nodes, set);
        set
    }

    pub(super) fn nodes(&self, set: PlaceSet) -> Arc<[TrieNode]> {
        Arc::clone(&self.sets[set.0 as usize])
    }

    /// How many nodes there are in all sets together.
    pub(super) fn len(&self) -> usize {
        self.nodes
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.nodes * size_of::<TrieNode>() + self.sets.len() * 64
    }
}
