//! Which places can be left without a value that may have to differ from others.
//!
//! Where values must differ, a text can come to a dead end: all values were seen. It cannot, if there is a path to the end of every open
//! rule on which no check can fail, or only those of words that were not seen. Whether there is one inside a rule is a property of its nodes, found once for a program:
//!
//! ```text
//!   [ item ("," item)* ]      behind an item: "]" leads out      behind the comma: an item comes first, and must be new
//! ```
//! In front of a leaf with infinitely many values, its check counts as passed. A scope that requires some values is passed if all of them can
//! be written, whatever was written before ([`super::required`]).

use maskwright_automata::Grouped;

use super::network::{Callee, MAX_WORDS, Network, Node, NodeId, Scope};
use super::{NetState, Place, Program};

/// The edges of a network, backwards.
pub(super) struct Backward {
    /// The nodes that lead to a node.
    nodes: Grouped<NodeId>,
    /// The calls of a machine.
    calls: Grouped<NodeId>,
    /// The machines that a node is a start of.
    starts: Grouped<u32>,
}

impl Backward {
    pub(super) fn of(network: &Network) -> Self {
        let mut nodes: Vec<(u32, NodeId)> = Vec::new();
        let mut calls: Vec<(u32, NodeId)> = Vec::new();
        for (id, node) in (0..).map(NodeId).zip(&network.nodes) {
            match *node {
                Node::Byte { next, .. } => nodes.push((next.0, id)),
                Node::Split { start, len } => {
                    nodes.extend(network.targets(start, len).iter().map(|to| (to.0, id)));
                }
                Node::Call { callee, next } => {
                    nodes.push((next.0, id));
                    calls.extend(network.machine_of(callee).map(|machine| (machine, id)));
                }
                Node::Final => {}
            }
        }
        let starts = (0u32..).zip(&network.machines);
        let starts = starts.flat_map(|(at, machine)| machine.start.iter().map(move |node| (node.0, at)));
        Self {
            nodes: Grouped::new(network.nodes.len(), nodes.iter().copied()),
            calls: Grouped::new(network.machines.len(), calls.iter().copied()),
            starts: Grouped::new(network.nodes.len(), starts),
        }
    }
}

/// Which of the [words](Network::words) every path from a node to the end of its machine writes, a bit each: if one of them was seen, the
/// node is a dead end.
#[derive(Debug)]
pub(crate) struct Needed {
    nodes: Box<[u128]>,
    machines: Box<[u128]>,
}

impl Needed {
    pub(crate) fn of(network: &Network) -> Self {
        let back = Backward::of(network);
        let mut needed = Self {
            nodes: vec![u128::MAX; network.nodes.len()].into(),
            machines: vec![u128::MAX; network.machines.len()].into(),
        };
        // From everything down to what is so for every path. What changes is carried to those that it concerns.
        let mut work: Vec<NodeId> = (0..network.nodes.len() as u32).map(NodeId).rev().collect();
        while let Some(node) = work.pop() {
            let new = needed.of_node(network, node);
            if core::mem::replace(&mut needed.nodes[node.index()], new) == new {
                continue;
            }
            work.extend_from_slice(back.nodes.of(node.0));
            for &machine in back.starts.of(node.0) {
                let start = network.machines[machine as usize].start.iter();
                let new = start.fold(u128::MAX, |all, node| all & needed.nodes[node.index()]);
                if core::mem::replace(&mut needed.machines[machine as usize], new) != new {
                    work.extend_from_slice(back.calls.of(machine));
                }
            }
        }
        needed
    }

    fn of_node(&self, network: &Network, id: NodeId) -> u128 {
        match network.nodes[id.index()] {
            Node::Final => 0,
            Node::Byte { next, .. } => self.nodes[next.index()],
            Node::Split { start, len } => {
                let targets = network.targets(start, len).iter();
                targets.fold(u128::MAX, |all, to| all & self.nodes[to.index()])
            }
            Node::Call { callee, next } => {
                let called = match callee {
                    Callee::Check => network.word_checks.get(&id).map_or(0, |word| 1 << word),
                    // Its values are told apart by themselves.
                    Callee::Scope(_) | Callee::Leaf(_) => 0,
                    _ => network.machine_of(callee).map_or(0, |machine| self.machines[machine as usize]),
                };
                called | self.nodes[next.index()]
            }
        }
    }

    /// By every path through a machine.
    pub(crate) fn machine(&self, machine: u32) -> u128 {
        self.machines[machine as usize]
    }

    /// By every path from a state to the end of its machine.
    pub(crate) fn state(&self, program: &Program, state: NetState) -> u128 {
        match program.place(state) {
            Place::Done => 0,
            Place::Node { .. } => state.node().map_or(0, |node| self.nodes[node.index()]),
            Place::Cell(cell) if cell.returns => 0,
            Place::Cell(cell) => {
                cell.nodes.iter().fold(u128::MAX, |all, node| all & self.nodes[node.index()])
            }
        }
    }
}

/// What is known of the nodes and machines of a network: the [words](Network::words), a bit each, that are written on some path to the end. If
/// none of them was seen, the path leads out.
#[derive(Debug)]
pub(crate) struct Exits {
    nodes: Box<[Option<u128>]>,
    machines: Box<[Option<u128>]>,
    /// Scopes that can be completed from their start, as far as values are required.
    scopes: Box<[bool]>,
}

impl Exits {
    pub(super) fn of(network: &Network, back: &Backward, scopes: Box<[bool]>) -> Self {
        let mut exits = Self {
            nodes: vec![None; network.nodes.len()].into(),
            machines: vec![None; network.machines.len()].into(),
            scopes,
        };
        // Paths with fewer words first: the first path that is found is the one to keep.
        let mut work: Vec<Vec<(NodeId, u128)>> = vec![Vec::new(); MAX_WORDS + 1];
        let ends = (0..).map(NodeId).zip(&network.nodes).filter(|(_, node)| matches!(node, Node::Final));
        work[0].extend(ends.map(|(id, _)| (id, 0)));
        let mut least = 0;
        while least < work.len() {
            let Some((node, words)) = work[least].pop() else {
                least += 1;
                continue;
            };
            let mut add = |node: NodeId, words: u128| work[words.count_ones() as usize].push((node, words));
            if network.endless_checks.contains_key(&node) {
                // Behind the value it may fail; before it, there is another value.
                let is_leaf = |from: &&NodeId| {
                    matches!(network.nodes[from.index()], Node::Call { callee: Callee::Leaf(_), .. })
                };
                back.nodes.of(node.0).iter().filter(is_leaf).for_each(|&from| add(from, words));
                continue;
            }
            if exits.nodes[node.index()].is_some() {
                continue;
            }
            exits.nodes[node.index()] = Some(words);
            for &from in back.nodes.of(node.0) {
                if let Some(all) = join(exits.written(network, from), Some(words)) {
                    add(from, all);
                }
            }
            for &machine in back.starts.of(node.0) {
                if exits.machines[machine as usize].is_some() {
                    continue;
                }
                exits.machines[machine as usize] = Some(words);
                // The calls of it that lead on to an end.
                for &call in back.calls.of(machine) {
                    let Node::Call { next, .. } = network.nodes[call.index()] else { continue };
                    if let Some(all) = join(exits.written(network, call), exits.nodes[next.index()]) {
                        add(call, all);
                    }
                }
            }
        }
        exits
    }

    /// The words that a node itself writes; `None` if it cannot be passed.
    fn written(&self, network: &Network, node: NodeId) -> Option<u128> {
        match network.nodes[node.index()] {
            Node::Call { callee: Callee::Check, .. } if network.endless_checks.contains_key(&node) => Some(0),
            Node::Call { callee: Callee::Check, .. } => network.word_checks.get(&node).map(|word| 1 << word),
            Node::Call { callee: Callee::Scope(index), .. } => {
                // Its values are told apart by themselves.
                self.scope_at(index, &network.scopes[index as usize]).then_some(0)
            }
            Node::Call { callee, .. } => {
                let Some(machine) = network.machine_of(callee) else { return Some(0) };
                let words = self.machines[machine as usize]?;
                (words == 0 || network.rounds(callee).min <= 1).then_some(words)
            }
            Node::Byte { .. } | Node::Split { .. } | Node::Final => Some(0),
        }
    }

    /// Whether a node can be passed without a check that may fail, if what follows leads to an end.
    pub(super) fn passes(&self, network: &Network, node: NodeId) -> bool {
        self.written(network, node) == Some(0)
    }

    /// Whether a machine has a path from its start to its end on which no check can fail.
    pub(crate) fn machine(&self, machine: u32) -> bool {
        self.machines[machine as usize] == Some(0)
    }

    /// Whether a scope that has seen nothing can be completed: its body by any words, or all that it requires can be written.
    pub(crate) fn scope_at(&self, index: u32, scope: &Scope) -> bool {
        if scope.required.is_empty() {
            self.machines[scope.body as usize].is_some()
        } else {
            self.scopes[index as usize]
        }
    }

    /// Whether a node has a path to the end of its machine on which no check can fail.
    pub(super) fn leads_out(&self, node: NodeId) -> bool {
        self.nodes[node.index()] == Some(0)
    }

    /// The words on a path from a state to the end of its machine.
    pub(crate) fn state(&self, program: &Program, state: NetState) -> Option<u128> {
        match program.place(state) {
            Place::Done => Some(0),
            Place::Node { .. } => self.nodes[state.node()?.index()],
            Place::Cell(cell) if cell.returns => Some(0),
            Place::Cell(cell) => {
                let paths = cell.nodes.iter().filter_map(|node| self.nodes[node.index()]);
                paths.min_by_key(|words| words.count_ones())
            }
        }
    }
}

/// The words of two paths, one after the other; `None` if one of them comes twice.
pub(crate) fn join(a: Option<u128>, b: Option<u128>) -> Option<u128> {
    let (a, b) = (a?, b?);
    (a & b == 0).then_some(a | b)
}
