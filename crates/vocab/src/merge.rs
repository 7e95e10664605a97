//! Merges subtrees of tries into one trie.
//!
//! A class trie is such a union: it merges siblings whose bytes belong to one class. It is built in one breadth-first
//! pass in which a new node represents a list of old nodes. Each old node is read once, and only short lists of
//! siblings are sorted.

use crate::trie::{Trie, TrieNode, TrieWriter};

/// The identity map of bytes.
pub(crate) const SAME_BYTES: [u8; 256] = {
    let mut map = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        map[byte] = byte as u8;
        byte += 1;
    }
    map
};

/// Builds the trie whose root has an edge for each of `tops`, which are nodes of `trie` and keep their edge bytes and
/// subtrees. Every byte is replaced by `map`, and equal edges are merged.
pub(crate) fn merge(trie: &Trie, tops: &[TrieNode], map: &[u8; 256]) -> Trie {
    let mut merge = Merge {
        trie,
        map,
        out: TrieWriter::with_capacity(tops.len()),
        sources: Vec::new(),
        nodes: vec![(0, 0)],
        siblings: Siblings::default(),
    };
    for &top in tops {
        merge.siblings.push(map[usize::from(trie.byte(top))], top.number());
    }
    merge.write_children();
    let mut node = 1;
    while node < merge.nodes.len() {
        let (low, high) = merge.nodes[node];
        merge.write_node(low as usize, high as usize);
        node += 1;
    }
    merge.out.finish()
}

struct Merge<'a> {
    trie: &'a Trie,
    map: &'a [u8; 256],
    out: TrieWriter,
    /// For each new node, breadth-first, the old nodes that it represents: `sources[nodes[i].0..nodes[i].1]`.
    sources: Vec<u32>,
    nodes: Vec<(u32, u32)>,
    siblings: Siblings,
}

impl Merge<'_> {
    fn write_node(&mut self, low: usize, high: usize) {
        let posted = self.out.ids.len();
        for index in low..high {
            let node = TrieNode::new(self.sources[index]);
            self.out.ids.extend_from_slice(self.trie.tokens(node));
            let children = self.trie.children(node);
            for (child, &byte) in children.zip(self.trie.child_bytes(node)) {
                self.siblings.push(self.map[usize::from(byte)], child.number());
            }
        }
        if high - low > 1 {
            self.out.ids[posted..].sort_unstable();
        }
        self.write_children();
    }

    /// Turns the collected siblings into the children of the current new node.
    fn write_children(&mut self) {
        let mut last = None;
        for &(byte, source) in self.siblings.by_byte() {
            let end = self.sources.len() as u32;
            if last != Some(byte) {
                last = Some(byte);
                self.out.child(byte);
                self.nodes.push((end, end));
            }
            self.sources.push(source);
            if let Some(node) = self.nodes.last_mut() {
                node.1 = end + 1;
            }
        }
        self.siblings.clear();
        self.out.end_node();
    }
}

/// Old nodes with their new edge bytes.
#[derive(Default)]
struct Siblings {
    list: Vec<(u8, u32)>,
    sorted: Vec<(u8, u32)>,
    ascending: bool,
}

/// From this length on, counting is faster than sorting. Not measured closely.
const COUNT_FROM: usize = 96;

impl Siblings {
    fn push(&mut self, byte: u8, source: u32) {
        self.ascending = match self.list.last() {
            None => true,
            Some(last) => self.ascending && last.0 <= byte,
        };
        self.list.push((byte, source));
    }

    fn clear(&mut self) {
        self.list.clear();
    }

    /// Returns the siblings, ascending by byte.
    fn by_byte(&mut self) -> &[(u8, u32)] {
        if self.ascending {
            return &self.list;
        }
        if self.list.len() < COUNT_FROM {
            self.list.sort_unstable();
            return &self.list;
        }
        let mut place = [0_u32; 256];
        for &(byte, _) in &self.list {
            place[usize::from(byte)] += 1;
        }
        let mut sum = 0;
        for count in &mut place {
            sum += *count;
            *count = sum - *count;
        }
        self.sorted.resize(self.list.len(), (0, 0));
        for &(byte, source) in &self.list {
            let at = &mut place[usize::from(byte)];
            self.sorted[*at as usize] = (byte, source);
            *at += 1;
        }
        &self.sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_trie_equals_one_built_from_the_mapped_strings() {
        let mut strings: Vec<Vec<u8>> = Vec::new();
        let mut seed = 3_u64;
        for _ in 0..4000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let len = 1 + (seed >> 61) as usize;
            strings.push((0..len).map(|i| (seed >> (8 + 5 * i)) as u8).collect());
        }
        let trie = Trie::build(strings.iter().zip(0..));
        let tops: Vec<TrieNode> = trie.children(Trie::ROOT).collect();
        let map: [u8; 256] = std::array::from_fn(|byte| byte as u8 & 0xE3);
        for map in [&map, &SAME_BYTES] {
            let mapped = |text: &[u8]| text.iter().map(|&b| map[usize::from(b)]).collect::<Vec<u8>>();
            let expected = Trie::build(strings.iter().map(|s| mapped(s)).zip(0..));
            assert_eq!(merge(&trie, &tops, map), expected);
        }
    }

    #[test]
    fn tops_keep_their_own_byte() {
        let trie = Trie::build([("a,1", 1), ("bb,", 2), ("b,12", 3)]);
        let at = |path: &str| trie.find(path.as_bytes()).unwrap();
        let merged = merge(&trie, &[at("a,"), at("bb,"), at("b,")], &SAME_BYTES);
        assert_eq!(merged, Trie::build([(",1", 1), (",", 2), (",12", 3)]));
    }
}
