//! A trie of all tokens: tokens with a common prefix share a path.
//!
//! The walk that computes a mask visits one node per distinct prefix, so its speed is limited by memory. The children
//! of a node are contiguous, sorted by byte. After them come the children of the first of them with everything below
//! it, then those of the second, and so on. So a walk into one small subtree stays in a few cache lines. For the tokens
//! `a`=7, `ab`=8, `b`=9, `bc`=6, `abc`=5:
//!
//! ```text
//! node      0 (root)   1 "a"   2 "b"   3 "ab"   4 "abc"   5 "bc"
//! byte      0          'a'     'b'     'b'      'c'       'c'      on the edge into the node
//! first     1          3       5       4        5         6        where its children begin
//! children  2          1       1       1        0         0        how many there are
//! token                7       9       8        5         6        if it has exactly one, as nearly all nodes do
//! post      0          0       1       2        3         4    5   tokens of i: ids[post[i] .. post[i + 1]]
//! ids       7          9       8       5        6
//! ```
//!
//! All rows except the last two are fields of one record of twelve bytes, so a step costs one cache line: it finds the
//! child among its few siblings, and has the child's token and the position of its children. Where there are many
//! siblings, the byte is searched in an array that contains only bytes. A child comes after its parent. Tokens with
//! equal bytes share a node.

use std::ops::Range;

/// A set of byte strings, each with the ids of the tokens that spell it; see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trie {
    pub(crate) bytes: Vec<u8>,
    nodes: Vec<Node>,
    /// Has one entry more than there are nodes.
    post: Vec<u32>,
    pub(crate) ids: Vec<u32>,
    /// The child of the root by byte, 0 where there is none. Empty for a root with few children.
    root: Vec<u32>,
}

/// A node of a [`Trie`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrieNode(u32);

impl TrieNode {
    /// Creates the node with this number. The root is 0, and a child has a greater number than its parent.
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns its number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns its number as an index into a list.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Contiguous nodes, such as the children of one node, as an iterator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrieNodes(Range<u32>);

impl TrieNodes {
    /// Checks whether a node is one of them.
    pub fn contains(&self, node: TrieNode) -> bool {
        self.0.contains(&node.0)
    }

    /// Checks whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the node after the last of them.
    #[inline]
    pub fn end(&self) -> TrieNode {
        TrieNode(self.0.end)
    }

    /// Returns the first of them; if there are none, the node where they would begin.
    #[inline]
    pub fn first(&self) -> TrieNode {
        TrieNode(self.0.start)
    }

    fn range(&self) -> Range<usize> {
        self.0.start as usize..self.0.end as usize
    }
}

impl Iterator for TrieNodes {
    type Item = TrieNode;

    #[inline]
    fn next(&mut self) -> Option<TrieNode> {
        self.0.next().map(TrieNode)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for TrieNodes {
    fn next_back(&mut self) -> Option<TrieNode> {
        self.0.next_back().map(TrieNode)
    }
}

impl ExactSizeIterator for TrieNodes {}

/// The result of [`Trie::visit`].
#[derive(Debug, Clone)]
pub struct Visit {
    /// The byte on the edge into the node; 0 for the root.
    pub byte: u8,
    /// Its tokens.
    pub token: VisitTokens,
    /// Its children.
    pub children: TrieNodes,
}

/// The tokens of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisitTokens {
    /// No token.
    None,
    /// One token.
    One(u32),
    /// Several tokens: see [`Trie::tokens`].
    Many,
}

/// Everything that a walk needs of a node, in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    first: u32,
    /// Its token, if it has exactly one.
    token: u32,
    children: u16,
    byte: u8,
    /// The number of its tokens: 0, 1, or 2 for more than one.
    tokens: u8,
}

impl Node {
    fn new(byte: u8, first: u32, children: u16, ids: &[u32]) -> Self {
        let token = ids.first().copied().unwrap_or(0);
        Self { first, token, children, byte, tokens: ids.len().min(2) as u8 }
    }
}

/// Up to this number of siblings, a byte is searched in their records, which have to be read anyway.
const FEW_SIBLINGS: u16 = 6;

/// From this number of children on, the root gets a table.
const ROOT_TABLE_FROM: u32 = 9;

impl Trie {
    /// The root of every trie.
    pub const ROOT: TrieNode = TrieNode(0);

    /// Builds a trie from byte strings and ids, in any order. Equal strings share a node, with their ids in ascending
    /// order.
    ///
    /// Takes time linear in the number of bytes plus one sort, for ten strings as for 128,000.
    ///
    /// # Panics
    ///
    /// If all strings together have 2³² bytes or more.
    ///
    /// ```
    /// use maskwright_vocab::Trie;
    /// let trie = Trie::build([("a", 7), ("ab", 8), ("b", 9)]);
    /// assert_eq!(trie.child_bytes(Trie::ROOT), b"ab");
    /// assert_eq!(trie.find(b"ab").map(|node| trie.tokens(node)), Some(&[8][..]));
    /// ```
    pub fn build<B: AsRef<[u8]>>(entries: impl IntoIterator<Item = (B, u32)>) -> Self {
        let entries: Vec<(B, u32)> = entries.into_iter().collect();
        let sorted = Sorted::new(&entries);
        let mut out = TrieWriter::with_capacity(entries.len());
        // Breadth first: node i of the trie is entry i of the queue, a run of sorted strings that
        // share their first `depth` bytes.
        let mut queue = vec![(0, entries.len() as u32)];
        let mut depth = 0;
        let mut level_end = 1;
        let mut node = 0;
        while node < queue.len() {
            if node == level_end {
                depth += 1;
                level_end = queue.len();
            }
            let (mut low, high) = queue[node];
            while low < high && sorted.len(low) == depth {
                out.ids.push(sorted.id(low));
                low += 1;
            }
            while low < high {
                let byte = sorted.byte(low, depth);
                let start = low;
                while low < high && sorted.byte(low, depth) == byte {
                    low += 1;
                }
                out.child(byte);
                queue.push((start, low));
            }
            out.end_node();
            node += 1;
        }
        out.finish()
    }

    /// Returns the children of `node`, in the order of their bytes.
    #[inline]
    pub fn children(&self, node: TrieNode) -> TrieNodes {
        let Node { first, children, .. } = self.nodes[node.index()];
        TrieNodes(first..first + u32::from(children))
    }

    /// Returns the bytes on the edges to [`children`](Self::children), ascending.
    #[inline]
    pub fn child_bytes(&self, node: TrieNode) -> &[u8] {
        &self.bytes[self.children(node).range()]
    }

    /// Returns the bytes on the edges into some nodes.
    #[inline]
    pub fn bytes(&self, nodes: &TrieNodes) -> &[u8] {
        &self.bytes[nodes.range()]
    }

    /// Returns the byte on the edge into `node`; 0 for the root.
    #[inline]
    pub fn byte(&self, node: TrieNode) -> u8 {
        self.nodes[node.index()].byte
    }

    /// Returns the tokens whose bytes are exactly the path from the root to `node`, ascending.
    #[inline]
    pub fn tokens(&self, node: TrieNode) -> &[u32] {
        let record = &self.nodes[node.index()];
        match record.tokens {
            0 => &[],
            1 => core::slice::from_ref(&record.token),
            _ => {
                let Range { start, end } = self.positions(node);
                &self.ids[start as usize..end as usize]
            }
        }
    }

    /// Returns the byte on the edge into `node`, its children, and its token if it has at most one, as most nodes do.
    /// When many nodes are visited, this is faster than separate calls.
    #[inline]
    pub fn visit(&self, node: TrieNode) -> Visit {
        let Node { first, token, children, byte, tokens } = self.nodes[node.index()];
        let token = match tokens {
            0 => VisitTokens::None,
            1 => VisitTokens::One(token),
            _ => VisitTokens::Many,
        };
        Visit { byte, token, children: TrieNodes(first..first + u32::from(children)) }
    }

    /// Returns the positions of the tokens of `node` in [`all_tokens`](Self::all_tokens).
    ///
    /// Positions are in the order of the nodes: those of siblings form a range, and those of everything below a node
    /// form another.
    #[inline]
    pub fn positions(&self, node: TrieNode) -> Range<u32> {
        self.post[node.index()]..self.post[node.index() + 1]
    }

    /// Returns all nodes below `node`. They are contiguous.
    pub fn below(&self, node: TrieNode) -> TrieNodes {
        // The nodes below the last child that has children come last.
        let mut block = self.children(node);
        let first = block.0.start;
        while let Some(last) = block.clone().rev().find(|&child| self.nodes[child.index()].children > 0) {
            block = self.children(last);
        }
        TrieNodes(first..block.0.end)
    }

    /// Like [`Self::below`], for a node with these `children` and these `later` siblings, where everything below all
    /// siblings comes before the node `end`. Faster, for a walk that knows them.
    #[inline]
    pub fn below_sibling(&self, children: &TrieNodes, later: &TrieNodes, end: TrieNode) -> TrieNodes {
        let end = if later.is_empty() { end.0 } else { self.nodes[later.0.start as usize].first };
        TrieNodes(children.0.start..end)
    }

    /// Returns the positions of the tokens of some nodes in [`all_tokens`](Self::all_tokens).
    #[inline]
    pub fn positions_of(&self, nodes: &TrieNodes) -> Range<u32> {
        let Range { start, end } = nodes.range();
        self.post[start]..self.post[end]
    }

    /// Returns the tokens of all nodes below `node`, in the order of the nodes.
    pub fn tokens_below(&self, node: TrieNode) -> &[u32] {
        let Range { start, end } = self.positions_below(node);
        &self.ids[start as usize..end as usize]
    }

    /// Returns the positions of the tokens below `node` in [`all_tokens`](Self::all_tokens).
    pub fn positions_below(&self, node: TrieNode) -> Range<u32> {
        self.positions_of(&self.below(node))
    }

    /// Returns the node reached from `node` by `byte`.
    #[inline]
    pub fn child(&self, node: TrieNode, byte: u8) -> Option<TrieNode> {
        if node == Self::ROOT && !self.root.is_empty() {
            let child = self.root[usize::from(byte)];
            return (child != 0).then_some(TrieNode(child));
        }
        let Node { first, children, .. } = self.nodes[node.index()];
        let siblings = first as usize..first as usize + usize::from(children);
        let at = if children <= FEW_SIBLINGS {
            self.nodes[siblings].iter().position(|node| node.byte == byte)?
        } else if children <= 16 {
            self.bytes[siblings].iter().position(|&b| b == byte)?
        } else {
            self.bytes[siblings].binary_search(&byte).ok()?
        };
        Some(TrieNode(first + at as u32))
    }

    /// Returns the node at the end of `path`, from the root.
    pub fn find(&self, path: &[u8]) -> Option<TrieNode> {
        path.iter().try_fold(Self::ROOT, |node, &byte| self.child(node, byte))
    }

    /// Returns all nodes, the root first.
    pub fn nodes(&self) -> TrieNodes {
        TrieNodes(0..self.bytes.len() as u32)
    }

    /// Returns the number of nodes, including the root.
    #[expect(clippy::len_without_is_empty, reason = "a trie always has its root")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns all tokens of the trie, in the order of the nodes.
    pub fn all_tokens(&self) -> &[u32] {
        &self.ids
    }

    /// Returns the memory on the heap in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.nodes.capacity() * size_of::<Node>()
            + 4 * (self.ids.capacity() + self.post.capacity() + self.root.capacity())
    }

    /// Returns three arrays: for each node the first child, the number of children, and the position of its tokens. The
    /// last array has one entry more.
    pub(crate) fn arrays(&self) -> [Vec<u32>; 3] {
        [
            self.nodes.iter().map(|node| node.first).collect(),
            self.nodes.iter().map(|node| u32::from(node.children)).collect(),
            self.post.clone(),
        ]
    }

    /// Builds a trie from stored arrays, or returns what is wrong with them.
    ///
    /// After the checks no method panics for a node below [`len`](Self::len), and every walk terminates, because a
    /// child has a greater number than its parent.
    pub(crate) fn from_arrays(
        bytes: Vec<u8>,
        [first, children, post]: [&[u32]; 3],
        ids: Vec<u32>,
        id_limit: u32,
    ) -> Result<Self, &'static str> {
        let len = bytes.len();
        if len == 0 || first.len() != len || children.len() != len || post.len() != len + 1 {
            return Err("the arrays of a trie differ in length");
        }
        // PERF: counting has no early exit, so the compiler can use vector instructions. Loading consists mostly of
        // these checks.
        if post.windows(2).filter(|pair| pair[0] > pair[1]).count() > 0 || post[len] as usize != ids.len() {
            return Err("the tokens of a trie are out of order");
        }
        if ids.iter().fold(0, |max, &id| id.max(max)) >= id_limit && !ids.is_empty() {
            return Err("a trie names a token that does not exist");
        }
        let mut nodes = Vec::with_capacity(len);
        for (node, ((&first, &children), post)) in
            (0u32..).zip(first.iter().zip(children).zip(post.windows(2)))
        {
            let end = first.checked_add(children).filter(|&end| end as usize <= len);
            let (Some(end), true, true) = (end, first > node, children <= 256) else {
                return Err("the children of a trie are out of order");
            };
            if children > 1 && !bytes[first as usize..end as usize].is_sorted_by(|a, b| a < b) {
                return Err("the children of a trie node are not sorted");
            }
            let ids = &ids[post[0] as usize..post[1] as usize];
            nodes.push(Node::new(bytes[node as usize], first, children as u16, ids));
        }
        Ok(Self { root: root_table(&nodes), bytes, nodes, post: post.to_vec(), ids })
    }
}

/// Writes the arrays of a trie in breadth-first order: for each node its tokens (pushed to `ids`) and its children,
/// then [`end_node`](Self::end_node).
pub(crate) struct TrieWriter {
    bytes: Vec<u8>,
    first: Vec<u32>,
    post: Vec<u32>,
    pub(crate) ids: Vec<u32>,
}

impl TrieWriter {
    pub(crate) fn with_capacity(entries: usize) -> Self {
        let nodes = entries + entries / 8 + 1;
        let mut writer = Self {
            bytes: Vec::with_capacity(nodes),
            first: Vec::with_capacity(nodes + 1),
            post: Vec::with_capacity(nodes + 1),
            ids: Vec::with_capacity(entries),
        };
        writer.bytes.push(0);
        writer.first.push(1);
        writer.post.push(0);
        writer
    }

    /// Adds a child of the current node. Bytes must come in ascending order.
    pub(crate) fn child(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(crate) fn end_node(&mut self) {
        self.first.push(self.bytes.len() as u32);
        self.post.push(self.ids.len() as u32);
    }

    /// Brings the nodes into their final order.
    pub(crate) fn finish(self) -> Trie {
        let len = self.bytes.len();
        let (mut post, mut ids) = (Vec::with_capacity(len + 1), Vec::with_capacity(self.ids.len()));
        let mut nodes = vec![Node::new(0, len as u32, 0, &[]); len];
        // For each node in the new order, its old number.
        let mut old = vec![0; len];
        let mut next = 1;
        let mut work: Vec<Range<u32>> = Some(0..1).into_iter().collect();
        while let Some(siblings) = work.last_mut() {
            let Some(node) = siblings.next() else {
                work.pop();
                continue;
            };
            let was = old[node as usize] as usize;
            let children = self.first[was]..self.first[was + 1];
            let end = next + (children.end - children.start);
            for (node, was) in (next..end).zip(children) {
                old[node as usize] = was;
            }
            let posted = &self.ids[self.post[was] as usize..self.post[was + 1] as usize];
            nodes[node as usize] = Node::new(self.bytes[was], next, (end - next) as u16, posted);
            if next < end {
                work.push(next..end);
            }
            next = end;
        }
        for was in old {
            post.push(ids.len() as u32);
            let posted = self.post[was as usize]..self.post[was as usize + 1];
            ids.extend_from_slice(&self.ids[posted.start as usize..posted.end as usize]);
        }
        post.push(ids.len() as u32);
        let bytes = nodes.iter().map(|node| node.byte).collect();
        Trie { root: root_table(&nodes), bytes, nodes, post, ids }
    }
}

fn root_table(nodes: &[Node]) -> Vec<u32> {
    let root = nodes[0];
    if u32::from(root.children) < ROOT_TABLE_FROM {
        return Vec::new();
    }
    let mut table = vec![0; 256];
    for child in root.first..root.first + u32::from(root.children) {
        table[usize::from(nodes[child as usize].byte)] = child;
    }
    table
}

/// The strings in order, copied one after another so that the pass over a level reads forward.
struct Sorted {
    text: Vec<u8>,
    /// The position of each string; one entry more than there are strings.
    start: Vec<u32>,
    ids: Vec<u32>,
}

impl Sorted {
    fn new<B: AsRef<[u8]>>(entries: &[(B, u32)]) -> Self {
        // PERF: comparing the first bytes as one number decides nearly every comparison.
        let mut order: Vec<(u128, u32)> = entries
            .iter()
            .enumerate()
            .map(|(index, (bytes, _))| (first_bytes(bytes.as_ref()), index as u32))
            .collect();
        order.sort_unstable_by(|left, right| {
            left.0.cmp(&right.0).then_with(|| {
                let (left, right) = (&entries[left.1 as usize], &entries[right.1 as usize]);
                left.0.as_ref().cmp(right.0.as_ref()).then(left.1.cmp(&right.1))
            })
        });
        let total: usize = entries.iter().map(|(bytes, _)| bytes.as_ref().len()).sum();
        assert!(u32::try_from(total).is_ok(), "the strings of a trie have 2^32 bytes or more");
        let mut sorted = Self {
            text: Vec::with_capacity(total),
            start: Vec::with_capacity(entries.len() + 1),
            ids: Vec::with_capacity(entries.len()),
        };
        for (_, index) in order {
            let (bytes, id) = &entries[index as usize];
            sorted.start.push(sorted.text.len() as u32);
            sorted.text.extend_from_slice(bytes.as_ref());
            sorted.ids.push(*id);
        }
        sorted.start.push(sorted.text.len() as u32);
        sorted
    }

    fn id(&self, index: u32) -> u32 {
        self.ids[index as usize]
    }

    fn len(&self, index: u32) -> u32 {
        self.start[index as usize + 1] - self.start[index as usize]
    }

    fn byte(&self, index: u32, depth: u32) -> u8 {
        self.text[(self.start[index as usize] + depth) as usize]
    }
}

fn first_bytes(bytes: &[u8]) -> u128 {
    let mut key = [0; 16];
    let len = bytes.len().min(16);
    key[..len].copy_from_slice(&bytes[..len]);
    u128::from_be_bytes(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects every string of a trie with its tokens, by walking it.
    fn spelled(trie: &Trie) -> Vec<(Vec<u8>, Vec<u32>)> {
        let mut found = Vec::new();
        let mut stack = vec![(Trie::ROOT, Vec::new())];
        while let Some((node, path)) = stack.pop() {
            if !trie.tokens(node).is_empty() {
                found.push((path.clone(), trie.tokens(node).to_vec()));
            }
            for child in trie.children(node) {
                let mut path = path.clone();
                path.push(trie.byte(child));
                stack.push((child, path));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn layout_is_the_documented_one() {
        let trie = Trie::build([("b", 9), ("ab", 8), ("bc", 6), ("a", 7), ("abc", 5)]);
        assert_eq!(trie.bytes, *b"\0abbcc");
        assert_eq!(trie.nodes.iter().map(|node| node.first).collect::<Vec<_>>(), [1, 3, 5, 4, 5, 6]);
        assert_eq!(trie.nodes.iter().map(|node| node.children).collect::<Vec<_>>(), [2, 1, 1, 1, 0, 0]);
        assert_eq!(
            trie.nodes.iter().map(|node| (node.tokens, node.token)).collect::<Vec<_>>(),
            [(0, 0), (1, 7), (1, 9), (1, 8), (1, 5), (1, 6)]
        );
        assert_eq!(trie.post, [0, 0, 1, 2, 3, 4, 5]);
        assert_eq!(trie.ids, [7, 9, 8, 5, 6]);
    }

    #[test]
    fn holds_exactly_the_strings_given() {
        let mut entries: Vec<(Vec<u8>, u32)> = Vec::new();
        let mut seed = 7_u64;
        for id in 0..3000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let len = (seed >> 60) as usize;
            entries.push(((0..len).map(|i| (seed >> (8 + 3 * i)) as u8 & 0x83).collect(), id));
        }
        let trie = Trie::build(entries.iter().map(|(bytes, id)| (bytes, *id)));
        let mut expected = std::collections::BTreeMap::<Vec<u8>, Vec<u32>>::new();
        for (bytes, id) in entries {
            expected.entry(bytes).or_default().push(id);
        }
        assert_eq!(spelled(&trie), expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn child_agrees_with_children_at_small_and_large_nodes() {
        let strings = (0..=255_u8).flat_map(|b| [vec![b], vec![b'x', b], vec![b'y', b / 32 * 32]]);
        let trie = Trie::build(strings.zip(0..));
        for node in trie.nodes() {
            for byte in 0..=255 {
                let slow = trie.children(node).find(|&child| trie.byte(child) == byte);
                assert_eq!(trie.child(node, byte), slow, "{node:?}, byte {byte}");
            }
        }
    }

    #[test]
    fn the_tokens_below_a_node_are_those_of_its_subtree() {
        let strings = ["a", "ab", "abc", "ax", "b", "ba", "bab", "bb", "c", "ca", "cab", "cb", "d"];
        let trie = Trie::build(strings.iter().zip(0..));
        for node in trie.nodes() {
            let (mut slow, mut work) = (Vec::new(), vec![node]);
            while let Some(node) = work.pop() {
                for child in trie.children(node) {
                    slow.extend_from_slice(trie.tokens(child));
                    work.push(child);
                }
            }
            let mut fast = trie.tokens_below(node).to_vec();
            slow.sort_unstable();
            fast.sort_unstable();
            assert_eq!(fast, slow, "{node:?}");
            let each = trie.below(node).flat_map(|below| trie.tokens(below)).copied();
            assert_eq!(each.collect::<Vec<_>>(), trie.tokens_below(node), "{node:?}");
            let (mut siblings, end) = (trie.children(node), trie.below(node).end());
            while let Some(child) = siblings.next() {
                let below = trie.below_sibling(&trie.children(child), &siblings, end);
                assert_eq!(below, trie.below(child), "{child:?}");
            }
        }
    }

    #[test]
    fn empty_trie_and_empty_string() {
        let empty = Trie::build(std::iter::empty::<(&[u8], u32)>());
        assert_eq!(
            (empty.len(), empty.children(Trie::ROOT).len(), empty.child(Trie::ROOT, b'a')),
            (1, 0, None)
        );
        let root = Trie::build([("", 5), ("", 3)]);
        assert_eq!(root.tokens(Trie::ROOT), [3, 5]);
    }

    #[test]
    fn stored_arrays_are_checked() {
        let good = Trie::build([("a", 0), ("ab", 1), ("b", 0)]);
        let [first, children, post] = good.arrays();
        let with = |first: &[u32], children: &[u32], post: &[u32], limit: u32| {
            Trie::from_arrays(good.bytes.clone(), [first, children, post], good.ids.clone(), limit)
        };
        assert_eq!(with(&first, &children, &post, 2).as_ref(), Ok(&good));
        assert!(with(&first, &children, &post, 1).is_err(), "token out of range");
        assert!(with(&first, &[2, 2, 0, 0], &post, 2).is_err(), "more children than nodes");
        assert!(with(&[1, 1, 4, 4], &children, &post, 2).is_err(), "a node that is its own child");
        assert!(with(&[1, u32::MAX, 4, 4], &children, &post, 2).is_err(), "a number that wraps");
        assert!(with(&[1, 4, 4, 4], &[3, 0, 0, 0], &post, 2).is_err(), "children that are not sorted");
        assert!(with(&first, &[70_000, 0, 0, 0], &post, 2).is_err(), "more children than bytes");
        assert!(with(&first, &children, &[0, 0, 9, 2, 3], 2).is_err(), "tokens out of order");
        assert!(with(&first, &children, &[0, 0, 1, 2, 9], 2).is_err(), "more tokens than ids");
        assert!(with(&first[1..], &children, &post, 2).is_err(), "too short an array");
        assert!(Trie::from_arrays(vec![], [&[], &[], &[0]], vec![], 2).is_err(), "no root");
    }
}
