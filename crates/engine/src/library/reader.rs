//! Reads the tokens of a trie byte by byte: one loop for everything that reads a vocabulary.
//!
//! A [`Reader`] takes the bytes. Its state may be a state of a leaf, a set of threads, or a pair of states. It is given
//! one node of the trie after another, each with the state before the node's byte, and returns the state after it. It
//! can skip the subtree below a node if it needs no details of it:
//!
//! ```text
//!   a number      ·─ 1 ─▶ state ─ 2 ─▶ state      below is read
//!                        └ a ─▶ dead               below is nothing
//!   a string      ·─ h ─▶ state                    the tokens below consist of letters: all of them are taken as they are
//! ```
//! Below a node, the nodes are contiguous in memory, so a reading moves through memory in one direction.

use core::ops::Range;

use maskwright_vocab::{Trie, TrieNode, TrieNodes, VisitTokens};

/// Something that takes the bytes of tokens.
pub(crate) trait Reader {
    /// The state after a node.
    type State;

    /// Takes the byte of a node. `before` is the state before it, and may be changed for its later siblings.
    fn take(&mut self, before: &mut Self::State, node: &Visited<'_>) -> Next<Self::State>;
}

/// Where a reading continues.
pub(crate) enum Next<S> {
    /// With the nodes below, if there are any.
    Below(S),
    /// With the next sibling.
    Past,
    /// Nowhere: the reading is given up.
    Stop,
}

/// The node that is being read.
pub(crate) struct Visited<'t> {
    trie: &'t Trie,
    pub(crate) node: TrieNode,
    pub(crate) byte: u8,
    token: VisitTokens,
    pub(crate) children: TrieNodes,
    /// Its siblings that are still to be read, and the node after everything below them.
    later: &'t TrieNodes,
    end: TrieNode,
}

impl<'t> Visited<'t> {
    /// Calls `found` with the tokens that end here.
    #[inline]
    pub(crate) fn tokens(&self, mut found: impl FnMut(&[u32])) {
        match self.token {
            VisitTokens::None => {}
            VisitTokens::One(token) => found(&[token]),
            VisitTokens::Many => found(self.trie.tokens(self.node)),
        }
    }

    /// Checks whether a token ends here.
    #[inline]
    pub(crate) fn has_token(&self) -> bool {
        self.token != VisitTokens::None
    }

    /// Returns all nodes below.
    #[inline]
    pub(crate) fn below(&self) -> TrieNodes {
        self.trie.below_sibling(&self.children, self.later, self.end)
    }

    /// Returns every token below.
    #[inline]
    pub(crate) fn tokens_below(&self) -> &'t [u32] {
        let Range { start, end } = self.positions_below();
        &self.trie.all_tokens()[start as usize..end as usize]
    }

    /// Returns the positions of these tokens among all tokens of the trie.
    #[inline]
    pub(crate) fn positions_below(&self) -> Range<u32> {
        self.trie.positions_of(&self.below())
    }

    /// Returns the bytes that come next in the tokens below.
    pub(crate) fn next_bytes(&self) -> &'t [u8] {
        self.trie.bytes(&self.children)
    }
}

/// Siblings that are being read.
struct Level<S> {
    children: TrieNodes,
    /// The node after everything below the siblings.
    end: TrieNode,
    state: S,
}

/// Reads all tokens below a node, beginning with this state. Returns `false` if the reader gave up.
#[inline]
pub(crate) fn read<R: Reader>(trie: &Trie, from: TrieNode, state: R::State, reader: &mut R) -> bool {
    let mut level = Level { children: trie.children(from), end: trie.below(from).end(), state };
    // PERF: the innermost level stays in registers.
    let mut above: Vec<Level<R::State>> = Vec::new();
    loop {
        let Some(node) = level.children.next() else {
            let Some(outer) = above.pop() else { return true };
            level = outer;
            continue;
        };
        let visit = trie.visit(node);
        let (byte, token, children) = (visit.byte, visit.token, visit.children);
        let visited = Visited { trie, node, byte, token, children, later: &level.children, end: level.end };
        let state = match reader.take(&mut level.state, &visited) {
            Next::Below(state) => state,
            Next::Past => continue,
            Next::Stop => return false,
        };
        if visited.children.is_empty() {
            continue;
        }
        let end = visited.below().end();
        let inner = Level { children: visited.children, end, state };
        let outer = core::mem::replace(&mut level, inner);
        if !outer.children.is_empty() {
            above.push(outer);
        }
    }
}
