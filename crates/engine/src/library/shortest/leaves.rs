//! The moves of tokens inside a leaf's table: the states they lead to, and the places in tokens where the leaf may end.

use maskwright_vocab::{Trie, TrieNode};
use rustc_hash::FxHashSet;

use super::places;
use crate::leaf::{Action, Automaton, LeafState};
use crate::library::reader::{self, Next, Reader, Visited};

/// The moves of tokens, or of their rest below some node of the trie, from one state of a table. Units are counted from
/// there.
#[derive(Debug, Default)]
pub(crate) struct LeafMoves {
    /// The positions at which tokens end inside the leaf.
    pub(crate) inside: Vec<Inside>,
    /// The nodes at which the leaf may end in the middle of a token, and the units until then, sorted.
    pub(crate) ends: Vec<(TrieNode, u32)>,
    /// The cost of computing this in steps, cached or not: a fraction of the visited nodes of the trie.
    pub(crate) steps: u64,
}

/// Visiting this many nodes of the trie counts as a step.
const TRIE_NODES_PER_STEP: u64 = 32;

/// A position after a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inside {
    pub(crate) state: LeafState,
    pub(crate) units: u32,
    /// The counted part is over, so the minimum must have been reached.
    pub(crate) is_closed: bool,
}

impl LeafMoves {
    pub(crate) fn below(automaton: &Automaton, state: LeafState, trie: &Trie, node: TrieNode) -> Self {
        let mut reader = Moving { automaton, inside: FxHashSet::default(), moves: Self::default() };
        reader::read(trie, node, Inside { state, units: 0, is_closed: false }, &mut reader);
        let Moving { inside, mut moves, .. } = reader;
        moves.steps =
            moves.steps / TRIE_NODES_PER_STEP + (moves.ends.len() / places::NODES_PER_STEP) as u64 + 1;
        moves.ends.sort_unstable();
        moves.inside = inside.into_iter().collect();
        moves.inside.sort_unstable_by_key(|to| (to.state, to.units, to.is_closed));
        moves
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.inside) + size_of_val(&*self.ends) + size_of::<Self>()
    }
}

/// A leaf that takes the bytes of tokens.
struct Moving<'r> {
    automaton: &'r Automaton,
    inside: FxHashSet<Inside>,
    moves: LeafMoves,
}

impl Reader for Moving<'_> {
    type State = Inside;

    #[inline]
    fn take(&mut self, before: &mut Inside, node: &Visited<'_>) -> Next<Inside> {
        self.moves.steps += 1;
        let step = self.automaton.step(before.state, node.byte);
        if step.is_dead() {
            return Next::Past;
        }
        let to = Inside {
            state: step.target(),
            units: before.units + u32::from(step.action() == Action::Unit),
            is_closed: before.is_closed || step.action() == Action::Close,
        };
        if node.has_token() {
            self.inside.insert(to);
        }
        if !node.children.is_empty() && self.automaton.is_accepting(to.state) {
            self.moves.ends.push((node.node, to.units));
        }
        Next::Below(to)
    }
}
