//! Sets of nodes of the vocabulary's trie: the possible positions within the token that is being written.

use core::hash::Hash;
use std::sync::Arc;

use maskwright_vocab::{Trie, TrieNode};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::tuning::tuning;

/// Each of the first `SINGLE_STEP_NODES` nodes counts as a step; of the nodes beyond, `NODES_PER_STEP` together.
const SINGLE_STEP_NODES: usize = 256;
pub(super) const NODES_PER_STEP: usize = 16;

/// Checks whether a set with this many nodes is large.
pub(super) fn is_large(nodes: usize) -> bool {
    nodes >= tuning().large_nodes
}

/// Returns how many steps it takes to process this many nodes at once.
pub(super) fn steps(nodes: usize) -> u64 {
    (nodes.min(SINGLE_STEP_NODES) + nodes / NODES_PER_STEP + 1) as u64
}

/// An interned set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PlaceSet(u32);

impl PlaceSet {
    /// Between two tokens: only the root of the trie.
    pub(crate) const BETWEEN: Self = Self(0);
}

/// All sets of one program.
#[derive(Debug)]
pub(super) struct PlaceSets {
    sets: Vec<Arc<[TrieNode]>>,
    index: FxHashMap<Arc<[TrieNode]>, PlaceSet>,
    /// The total number of nodes in all sets.
    nodes: usize,
}

impl PlaceSets {
    pub(super) fn new() -> Self {
        let mut sets = Self { sets: Vec::new(), index: FxHashMap::default(), nodes: 0 };
        sets.intern(vec![Trie::ROOT]);
        sets
    }

    /// Returns the set of these nodes.
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

    /// Returns the total number of nodes in all sets.
    pub(super) fn len(&self) -> usize {
        self.nodes
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.nodes * size_of::<TrieNode>() + self.sets.len() * 64
    }
}

/// For each key, the nodes that were seen.
///
/// PERF: a free text may end in the middle of nearly every token. Such sets have tens of thousands of nodes, and a
/// search meets dozens of them; hashing every node was most of the time that a first budget took (`speed budget`).
#[derive(Debug)]
pub(super) struct SeenNodes<K> {
    few: FxHashSet<(K, TrieNode)>,
    /// The keys that occurred with a large set, with a bit for each node.
    many: FxHashMap<K, Vec<u64>>,
}

impl<K> Default for SeenNodes<K> {
    fn default() -> Self {
        Self { few: FxHashSet::default(), many: FxHashMap::default() }
    }
}

impl<K: Copy + Eq + Hash> SeenNodes<K> {
    /// Adds a node. Returns whether it is new.
    pub(super) fn insert(&mut self, key: K, node: TrieNode) -> bool {
        // PERF: nearly always there are no large sets.
        if self.many.is_empty() {
            return self.few.insert((key, node));
        }
        match self.many.get_mut(&key) {
            Some(bits) => set_bit(bits, node),
            None => self.few.insert((key, node)),
        }
    }

    /// Adds some nodes. Returns those that are new.
    pub(super) fn insert_all(&mut self, key: K, nodes: &[TrieNode]) -> Vec<TrieNode> {
        if is_large(nodes.len()) && !self.many.contains_key(&key) {
            let mut bits = Vec::new();
            for (_, node) in self.few.iter().filter(|(of, _)| *of == key) {
                set_bit(&mut bits, *node);
            }
            self.many.insert(key, bits);
        }
        let nodes = nodes.iter().copied();
        match self.many.get_mut(&key) {
            Some(bits) => nodes.filter(|node| set_bit(bits, *node)).collect(),
            None => nodes.filter(|node| self.few.insert((key, *node))).collect(),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.few.len() * size_of::<(K, TrieNode)>()
            + self.many.values().map(|bits| size_of_val(&**bits)).sum::<usize>()
    }
}

/// Sets the bit of a node. Returns whether it was not set.
fn set_bit(bits: &mut Vec<u64>, node: TrieNode) -> bool {
    let (word, bit) = (node.index() / 64, 1 << (node.index() % 64));
    if word >= bits.len() {
        bits.resize(word + 1, 0);
    }
    let is_new = bits[word] & bit == 0;
    bits[word] |= bit;
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Large and small sets, in every order, behave like a plain set.
    #[test]
    fn seen_nodes_are_a_set_for_each_key() {
        let mut seed = 1u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..40 {
            let (mut seen, mut plain) = (SeenNodes::default(), FxHashSet::default());
            for _ in 0..12 {
                let key = draw(3);
                let count = if draw(2) == 0 { draw(8) } else { tuning().large_nodes as u64 - 4 + draw(8) };
                let mut nodes: Vec<TrieNode> = (0..count).map(|_| TrieNode::new(draw(900) as u32)).collect();
                nodes.sort_unstable();
                nodes.dedup();
                let wanted: Vec<TrieNode> =
                    nodes.iter().copied().filter(|node| plain.insert((key, *node))).collect();
                assert_eq!(seen.insert_all(key, &nodes), wanted);
                let (key, node) = (draw(3), TrieNode::new(draw(900) as u32));
                assert_eq!(seen.insert(key, node), plain.insert((key, node)));
            }
        }
    }
}
