//! What tokens do inside a leaf's table: the states they lead to, and the places in tokens where the leaf may end.

use std::sync::Arc;

use maskwright_vocab::{Trie, TrieNode};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::leaf::{Action, Automaton, LeafState};
use crate::program::LeafId;

/// What tokens do from one state of a table, or what is left of them below some node of the trie. Units are counted from there on.
#[derive(Debug, Default)]
pub(super) struct LeafMoves {
    /// Where tokens end inside the leaf.
    pub(super) inside: Vec<Inside>,
    /// Where the leaf may end in the middle of a token, and the units until then.
    pub(super) ends: Vec<(TrieNode, u32)>,
    /// How many nodes of the trie were looked at.
    pub(super) steps: u64,
}

/// Behind a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inside {
    pub(super) state: LeafState,
    pub(super) units: u32,
    /// The counted part is over, so the minimum must have been reached.
    pub(super) is_closed: bool,
}

/// Remembers what whole tokens do, and tokens of which only the first byte is written: those are many.
#[derive(Debug, Default)]
pub(super) struct LeafMovesCache {
    known: FxHashMap<(LeafId, LeafState, TrieNode), Arc<LeafMoves>>,
}

impl LeafMovesCache {
    /// What tokens do from a state of a leaf, below a node of the trie. Also returns how many nodes had to be looked at.
    pub(super) fn moves(
        &mut self,
        (leaf, automaton): (LeafId, &Automaton),
        state: LeafState,
        trie: &Trie,
        node: TrieNode,
    ) -> (Arc<LeafMoves>, u64) {
        let is_kept = node == Trie::ROOT || trie.children(Trie::ROOT).contains(node);
        if is_kept && let Some(known) = self.known.get(&(leaf, state, node)) {
            return (Arc::clone(known), 1);
        }
        let moves = Arc::new(LeafMoves::below(automaton, state, trie, node));
        if is_kept {
            self.known.insert((leaf, state, node), Arc::clone(&moves));
        }
        let steps = moves.steps;
        (moves, steps)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let bytes = |moves: &Arc<LeafMoves>| size_of_val(&*moves.inside) + size_of_val(&*moves.ends) + 96;
        self.known.values().map(bytes).sum()
    }
}

impl LeafMoves {
    fn below(automaton: &Automaton, state: LeafState, trie: &Trie, node: TrieNode) -> Self {
        let mut inside = FxHashSet::default();
        let mut moves = Self::default();
        let mut work = vec![(Inside { state, units: 0, is_closed: false }, node)];
        while let Some((from, node)) = work.pop() {
            for child in trie.children(node) {
                moves.steps += 1;
                let step = automaton.step(from.state, trie.byte(child));
                if step.is_dead() {
                    continue;
                }
                let to = Inside {
                    state: step.target(),
                    units: from.units + u32::from(step.action() == Action::Unit),
                    is_closed: from.is_closed || step.action() == Action::Close,
                };
                if !trie.tokens(child).is_empty() {
                    inside.insert(to);
                }
                if !trie.children(child).is_empty() {
                    if automaton.is_accepting(to.state) {
                        moves.ends.push((child, to.units));
                    }
                    work.push((to, child));
                }
            }
        }
        moves.inside = inside.into_iter().collect();
        moves.inside.sort_unstable_by_key(|to| (to.state, to.units, to.is_closed));
        moves
    }
}
