//! Upper bounds on the distance to the end: for each place of a program, a number of tokens that is enough to finish
//! it.
//!
//! ```text
//!   "{" sp "\"name\"" sp ":" …          tokens  {"  name  ":  "  "}
//!   ▲ 5 tokens from here                         └ 4 ┘└ 3 ┘ …
//! ```
//! Where the bound is n, some token leads to a place where it is at most n − 1. So a text with n tokens left will be
//! finished if it takes only such tokens. It is not the least number, which [`super::shortest`] finds, because tokens
//! that run from one part of a grammar into the next are not counted. But it is quick to compute, and adds up along a
//! stack. If it says that there is time, there is.
//!
//! * A **node** of the network: to the end of its machine. A literal is spelled in the fewest tokens, a call costs as
//!   much as the callee. All nodes are found by Knuth's generalization of Dijkstra's algorithm: the nearest first, each
//!   once.
//! * A **leaf**: see [`super::leaf_distance`].
//! * A **check** that a value is new: see [`super::new_values`].
//!
//! The distances of a stack's frames add up, see [`crate::matcher`].

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

use maskwright_automata::Grouped;
use maskwright_vocab::{Trie, Vocabulary};

use super::leaf_distance::{LeafDistances, NEVER};
use super::new_values::NewValues;
use crate::program::network::{Callee, MachineId, Network, Node, NodeId};
use crate::program::{NetState, Place, Program};

/// In networks with more nodes, literals are spelled byte by byte.
const MAX_NODES_FOR_TOKENS: usize = 400_000;
/// The greatest number of nodes that are visited to find the tokens that begin at one of them.
const MAX_SPELLING_NODES: usize = 96;

/// The distances of one program with one vocabulary.
#[derive(Debug)]
pub(crate) struct Distances {
    to_end: ToEnd,
    /// The distances if no value had to be new: a search for a way out is guided by them.
    unchecked: OnceLock<ToEnd>,
    leaves: LeafDistances,
    new_values: NewValues,
}

/// The distances in a network.
#[derive(Debug)]
pub(crate) struct ToEnd {
    /// From each node to the end of its machine.
    nodes: Box<[u32]>,
    /// From the start to the end of each machine.
    machines: Box<[u32]>,
}

impl Distances {
    pub(crate) fn new(program: &Program, vocabulary: &Vocabulary) -> Self {
        let leaves = LeafDistances::new(program, vocabulary);
        let new_values = NewValues::of(program, &leaves);
        let to_end = ToEnd::new(program, &leaves, Some(&new_values), vocabulary);
        Self { to_end, unchecked: OnceLock::new(), leaves, new_values }
    }

    /// Returns the distances for [`ToEnd::state`] and [`ToEnd::rounds`] if no value had to be new.
    pub(crate) fn unchecked(&self, program: &Program, vocabulary: &Vocabulary) -> &ToEnd {
        self.unchecked.get_or_init(|| ToEnd::new(program, &self.leaves, None, vocabulary))
    }

    pub(crate) fn leaves(&self) -> &LeafDistances {
        &self.leaves
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let parts = self.unchecked.get().into_iter().chain([&self.to_end]);
        parts.map(ToEnd::heap_bytes).sum::<usize>() + self.leaves.heap_bytes()
    }

    /// Returns the costs of values that must be new.
    pub(crate) fn new_values(&self) -> &NewValues {
        &self.new_values
    }

    /// Returns the distance from a state to the end of its machine.
    pub(crate) fn state(&self, program: &Program, state: NetState) -> u32 {
        self.to_end.state(program, state)
    }

    /// Returns the distance for `rounds` more rounds of a machine.
    pub(crate) fn rounds(&self, machine: MachineId, rounds: u32) -> u32 {
        self.to_end.rounds(machine, rounds)
    }
}

impl ToEnd {
    fn new(
        program: &Program,
        leaves: &LeafDistances,
        new_values: Option<&NewValues>,
        vocabulary: &Vocabulary,
    ) -> Self {
        let through: Vec<u32> = program.leaf_ids().map(|leaf| leaves.through(program, leaf)).collect();
        let search = NodeSearch::new(program.network(), &through, new_values, vocabulary.trie());
        let (nodes, machines) = search.run();
        Self { nodes, machines }
    }

    fn heap_bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.machines)
    }

    /// Returns the distance from a state to the end of its machine.
    pub(crate) fn state(&self, program: &Program, state: NetState) -> u32 {
        if let Some(node) = state.node() {
            return self.nodes[node.index()];
        }
        match program.place(state) {
            Place::Cell(cell) if cell.returns => 0,
            Place::Cell(cell) => {
                cell.nodes.iter().map(|node| self.nodes[node.index()]).min().unwrap_or(NEVER)
            }
            Place::Done => 0,
            Place::Node { .. } => NEVER,
        }
    }

    /// Returns the distance for `rounds` more rounds of a machine.
    pub(crate) fn rounds(&self, machine: MachineId, rounds: u32) -> u32 {
        match self.machines[machine.index()] {
            NEVER if rounds > 0 => NEVER,
            through => through.saturating_mul(rounds),
        }
    }
}

/// Finds the distances of nodes, the nearest first.
struct NodeSearch<'n> {
    network: &'n Network,
    /// The distance from the start to the end of each leaf.
    leaves: &'n [u32],
    /// The costs of values that must be new; `None` if they are ignored.
    new_values: Option<&'n NewValues>,
    nodes: Vec<u32>,
    machines: Vec<u32>,
    /// The predecessors of each node by one token, a split or a call; and the machines that start at it.
    before: Grouped<NodeId>,
    starts: Grouped<MachineId>,
    /// The calls of each machine.
    calls: Grouped<NodeId>,
    work: BinaryHeap<Reverse<(u32, Item)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Node(NodeId),
    Machine(MachineId),
}

impl<'n> NodeSearch<'n> {
    fn new(network: &'n Network, leaves: &'n [u32], new_values: Option<&'n NewValues>, trie: &Trie) -> Self {
        let mut before = Vec::new();
        let mut calls = Vec::new();
        for (at, node) in (0..).map(NodeId).zip(&network.nodes) {
            match *node {
                Node::Byte { .. } => spellings(network, trie, at, |to| before.push((to.0, at))),
                Node::Split { start, len } => {
                    before.extend(network.targets(start, len).iter().map(|to| (to.0, at)));
                }
                Node::Call { callee, next } => {
                    before.push((next.0, at));
                    calls.extend(network.machine_of(callee).map(|machine| (machine.0, at)));
                }
                Node::Final => {}
            }
        }
        let starts = network
            .machine_ids()
            .zip(&network.machines)
            .flat_map(|(machine, m)| m.start.iter().map(move |node| (node.0, machine)));
        let ends = (0..).map(NodeId).zip(&network.nodes).filter(|(_, node)| matches!(node, Node::Final));
        Self {
            network,
            leaves,
            new_values,
            nodes: vec![NEVER; network.nodes.len()],
            machines: vec![NEVER; network.machines.len()],
            before: Grouped::new(network.nodes.len(), before.iter().copied()),
            starts: Grouped::new(network.nodes.len(), starts),
            calls: Grouped::new(network.machines.len(), calls.iter().copied()),
            work: ends.map(|(node, _)| Reverse((0, Item::Node(node)))).collect(),
        }
    }

    fn run(mut self) -> (Box<[u32]>, Box<[u32]>) {
        while let Some(Reverse((tokens, item))) = self.work.pop() {
            let known = match item {
                Item::Node(node) => &mut self.nodes[node.index()],
                Item::Machine(machine) => &mut self.machines[machine.index()],
            };
            if tokens >= *known {
                continue;
            }
            *known = tokens;
            match item {
                Item::Node(node) => self.node_known(node, tokens),
                Item::Machine(machine) => {
                    for &call in self.calls.of(machine.0) {
                        if let Node::Call { callee, next } = self.network.nodes[call.index()] {
                            let total = self.call(call, callee).saturating_add(self.nodes[next.index()]);
                            self.work.push(Reverse((total, Item::Node(call))));
                        }
                    }
                }
            }
        }
        (self.nodes.into(), self.machines.into())
    }

    fn node_known(&mut self, node: NodeId, tokens: u32) {
        for &from in self.before.of(node.0) {
            let more = match self.network.nodes[from.index()] {
                Node::Byte { .. } => 1,
                Node::Call { callee, .. } => self.call(from, callee),
                Node::Split { .. } | Node::Final => 0,
            };
            self.work.push(Reverse((tokens.saturating_add(more), Item::Node(from))));
        }
        for &machine in self.starts.of(node.0) {
            self.work.push(Reverse((tokens, Item::Machine(machine))));
        }
    }

    /// Returns the distance through a callee, as far as it is known.
    fn call(&self, node: NodeId, callee: Callee) -> u32 {
        match callee {
            Callee::Leaf(leaf) => self.leaves[leaf.index()],
            Callee::Check => self.new_values.map_or(0, |values| values.more(node).unwrap_or(NEVER)),
            _ => self.network.machine_of(callee).map_or(NEVER, |machine| {
                let through = self.machines[machine.index()];
                match callee {
                    Callee::Loop(index) => {
                        through.saturating_mul(self.network.loops[index.index()].min.max(1))
                    }
                    Callee::Limit(index) if through > self.network.limits[index.index()].tokens => NEVER,
                    _ => through,
                }
            }),
        }
    }
}

/// Finds the nodes that one token leads to from a byte node, along bytes and splits.
fn spellings(network: &Network, trie: &Trie, from: NodeId, mut found: impl FnMut(NodeId)) {
    let is_large = network.nodes.len() > MAX_NODES_FOR_TOKENS;
    let mut work = vec![(from, Trie::ROOT)];
    let mut left = MAX_SPELLING_NODES;
    while let Some((node, place)) = work.pop().filter(|_| left > 0) {
        left -= 1;
        match network.nodes[node.index()] {
            Node::Byte { low, high, next } => {
                let mut ends = false;
                let children = (low..=high).filter_map(|byte| trie.child(place, byte));
                for (count, child) in children.enumerate() {
                    ends |= !trie.tokens(child).is_empty();
                    // A few members represent a whole class.
                    if count < 4 && !is_large && !trie.children(child).is_empty() {
                        work.push((next, child));
                    }
                }
                if ends {
                    found(next);
                }
            }
            Node::Split { start, len } if place != Trie::ROOT => {
                work.extend(network.targets(start, len).iter().map(|to| (*to, place)));
            }
            _ => {}
        }
    }
}
