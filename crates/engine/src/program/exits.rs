//! Which places can be left without a value that may have to differ from others.
//!
//! Where values must differ, a text can come to a dead end: all values were seen. It cannot, if there is a way to the end of every open
//! rule on which no check may fail. Whether there is one inside a rule is a property of its nodes, found once for a program:
//!
//! ```text
//!   [ item ("," item)* ]      behind an item: "]" leads out      behind the comma: an item comes first, and must be new
//! ```
//! In front of a leaf with infinitely many values, its check counts as passed. A scope that requires some values is passed if all of them can
//! be written, whatever was written before ([`super::required`]).

use maskwright_automata::Grouped;

use super::network::{Callee, Network, Node, NodeId};
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

/// Which of the [words](Network::words) every way from a node to the end of its machine writes, a bit each: if one of them was seen, the
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
        // From everything down to what is so for every way. What changes is carried to those that it concerns.
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

    /// By every way through a machine.
    pub(crate) fn machine(&self, machine: u32) -> u128 {
        self.machines[machine as usize]
    }

    /// By every way from a state to the end of its machine.
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

/// What is known of the nodes and machines of a network.
#[derive(Debug)]
pub(crate) struct Exits {
    nodes: Box<[bool]>,
    machines: Box<[bool]>,
    /// Scopes that can be completed from their start, as far as values are required.
    scopes: Box<[bool]>,
}

impl Exits {
    pub(super) fn of(network: &Network, back: &Backward, scopes: Box<[bool]>) -> Self {
        let mut exits = Self {
            nodes: vec![false; network.nodes.len()].into(),
            machines: vec![false; network.machines.len()].into(),
            scopes,
        };
        let ends = (0..).map(NodeId).zip(&network.nodes).filter(|(_, node)| matches!(node, Node::Final));
        let mut work: Vec<NodeId> = ends.map(|(id, _)| id).collect();
        while let Some(node) = work.pop() {
            if network.endless_checks.contains(&node) {
                // Behind the value it may fail; before it, there is another value.
                let is_leaf = |from: &&NodeId| {
                    matches!(network.nodes[from.index()], Node::Call { callee: Callee::Leaf(_), .. })
                };
                work.extend(back.nodes.of(node.0).iter().filter(is_leaf));
                continue;
            }
            if core::mem::replace(&mut exits.nodes[node.index()], true) {
                continue;
            }
            work.extend(back.nodes.of(node.0).iter().filter(|&&from| exits.passes(network, from)));
            for &machine in back.starts.of(node.0) {
                if !core::mem::replace(&mut exits.machines[machine as usize], true) {
                    // The calls of it that lead on to an end.
                    let leads_on = |call: &&NodeId| match network.nodes[call.index()] {
                        Node::Call { next, .. } => exits.nodes[next.index()] && exits.passes(network, **call),
                        _ => false,
                    };
                    work.extend(back.calls.of(machine).iter().filter(leads_on));
                }
            }
        }
        exits
    }

    /// Whether a node can be passed, if what follows leads to an end.
    pub(super) fn passes(&self, network: &Network, node: NodeId) -> bool {
        match network.nodes[node.index()] {
            Node::Call { callee: Callee::Check, .. } => network.endless_checks.contains(&node),
            Node::Call { callee: Callee::Scope(index), .. } => {
                let scope = &network.scopes[index as usize];
                if scope.required.is_empty() { self.machines[scope.body as usize] } else { self.scope(index) }
            }
            Node::Call { callee, .. } => {
                network.machine_of(callee).is_none_or(|machine| self.machines[machine as usize])
            }
            Node::Byte { .. } | Node::Split { .. } | Node::Final => true,
        }
    }

    /// Whether a machine has a way from its start to its end.
    pub(crate) fn machine(&self, machine: u32) -> bool {
        self.machines[machine as usize]
    }

    /// Whether a scope that requires some values can be completed from its start.
    pub(crate) fn scope(&self, index: u32) -> bool {
        self.scopes[index as usize]
    }

    /// Whether a node has a way to the end of its machine.
    pub(super) fn leads_out(&self, node: NodeId) -> bool {
        self.nodes[node.index()]
    }

    /// Whether a state has a way to the end of its machine.
    pub(crate) fn state(&self, program: &Program, state: NetState) -> bool {
        match program.place(state) {
            Place::Done => true,
            Place::Node { .. } => state.node().is_some_and(|node| self.nodes[node.index()]),
            Place::Cell(cell) => cell.returns || cell.nodes.iter().any(|node| self.nodes[node.index()]),
        }
    }
}
