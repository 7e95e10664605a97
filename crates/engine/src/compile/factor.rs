//! Left-factors wide choices: alternatives with the same first bytes share the nodes of these bytes.
//!
//! ```text
//!   "name" | "nick" | "age"        ⟨split⟩ ─▶ (b'n') ─▶ ⟨split⟩ ─▶ (b'a') ─▶ (b'm') …
//!                                     │                    └─────▶ (b'i') ─▶ (b'c') …
//!                                     └─────▶ (b'a') ─▶ (b'g') …
//! ```
//! A cell is a set of nodes, one for each alternative that a text may be in. Where thousands of alternatives have a
//! common prefix, each byte of that prefix makes a set of thousands of nodes. In a tree, it is one node.
//!
//! This matters most for choices that are spread over a *chain*: `a? b? c? …` as nested splits, and the optional keys
//! of an object as rules, each of which may end with a call of the next.
//!
//! ```text
//!   from0 ::= "\"name\"" … | from1
//!   from1 ::= "\"nick\"" … | from2
//! ```
//! Cells follow such tail calls ([`Network::wide_closure`]). Without trees there is a set of n nodes for every place in
//! the chain, and all of them together are quadratic in n. The tree of `from0` is the tree of `from1` with one more
//! word: only the nodes along that word are new, and all others are shared with `from1`. So the trees of a chain
//! together have about as many nodes as its words have bytes.
//!
//! Narrow choices are left alone: their cells are small, and building trees would cost more than it saves.

use maskwright_automata::{must_stop, must_stop_now};
use smallvec::SmallVec;

use super::CompileError;
use crate::program::network::{Callee, MachineId, Network, Node, NodeId, NodeRange};
use crate::small_set::SmallSet;

/// A choice with more alternatives than this becomes a tree.
pub(crate) const WIDE_CHOICE: usize = 64;
/// The start of a machine may hold this many nodes that are not a single byte. They cannot be shared, and each tree of
/// a chain has a copy of their list.
const MAX_OTHERS: usize = 16;
/// A split with more branches than this is used as it is.
const MAX_BRANCHES: usize = 256 + MAX_OTHERS;
/// The length up to which common prefixes are shared.
const MAX_DEPTH: usize = 256;
/// The number of branches that may be written for each node of the network. Without a limit, trees that have much in
/// common would be merged again and again.
const BRANCHES_PER_NODE: usize = 32;

/// Makes trees of the wide splits from node `first` on. Except in loops, splits come after the splits that they lead
/// to.
pub(crate) fn factor_splits(network: &mut Network, first: NodeId) -> Result<(), CompileError> {
    let range = NodeRange { start: first, end: network.end() };
    let mut trees = Trees { fuel: range.len() as usize * BRANCHES_PER_NODE, network };
    for node in range.iter() {
        let Node::Split { start, len } = trees.network.nodes[node.index()] else { continue };
        if trees.network.split_width(node) as usize <= WIDE_CHOICE || trees.fuel == 0 {
            continue;
        }
        let targets = trees.network.targets(start, len).to_vec();
        let mut choice = Choice::default();
        for target in targets {
            if must_stop() {
                return Err(CompileError::Stopped);
            }
            for branch in trees.branches(target) {
                trees.add(&mut choice, branch, 0);
            }
        }
        let list = choice.into_list();
        trees.network.nodes[node.index()] = trees.network.split_node(&list);
    }
    Ok(())
}

/// Makes trees of the starts of machines that begin long chains of tail calls, and records the width of every start.
pub(crate) fn factor_starts(network: &mut Network, max_nodes: usize) -> Result<(), CompileError> {
    let starts: usize = network.machines.iter().map(|machine| machine.start.len()).sum();
    if starts <= WIDE_CHOICE {
        return Ok(());
    }
    let mut is_tree = vec![false; network.machines.len()];
    let room = max_nodes.saturating_sub(network.nodes.len());
    let mut trees = Trees { fuel: network.nodes.len().saturating_mul(BRANCHES_PER_NODE).min(room), network };
    for machine in callees_first(trees.network)? {
        if must_stop_now() {
            return Err(CompileError::Stopped);
        }
        let width = width(trees.network, machine);
        trees.network.machines[machine.index()].width = width;
        if width as usize > WIDE_CHOICE && trees.fuel > 0 {
            is_tree[machine.index()] = trees.make_start(machine, &is_tree);
        }
    }
    Ok(())
}

/// Returns the machine that a node calls, if the caller ends where the callee does.
fn tail_callee(network: &Network, node: NodeId) -> Option<MachineId> {
    match network.nodes[node.index()] {
        Node::Call { callee: Callee::Machine(machine), next }
            if matches!(network.nodes[next.index()], Node::Final) =>
        {
            Some(machine)
        }
        _ => None,
    }
}

/// Returns all machines, each after those that its start calls in tail position. The order exists because left
/// recursion was removed.
fn callees_first(network: &Network) -> Result<Vec<MachineId>, CompileError> {
    let mut order = Vec::with_capacity(network.machines.len());
    let mut is_done = vec![false; network.machines.len()];
    let mut work = Vec::new();
    // Callees usually come after their callers, so there is little to put on the stack.
    for machine in network.machine_ids().rev() {
        work.push(machine);
        while let Some(&machine) = work.last() {
            if must_stop() {
                return Err(CompileError::Stopped);
            }
            let waiting = work.len();
            if !is_done[machine.index()] {
                let start = network.machines[machine.index()].start.iter();
                let callees = start.filter_map(|&node| tail_callee(network, node));
                work.extend(callees.filter(|&callee| !is_done[callee.index()]));
            }
            if work.len() == waiting {
                work.pop();
                if !core::mem::replace(&mut is_done[machine.index()], true) {
                    order.push(machine);
                }
            }
        }
    }
    Ok(order)
}

/// Returns the number of nodes at a start, with tail calls followed. A node that is reached twice counts twice.
fn width(network: &Network, machine: MachineId) -> u32 {
    let of = |&node: &NodeId| match tail_callee(network, node) {
        Some(callee) => network.machines[callee.index()].width,
        None => 1,
    };
    network.machines[machine.index()].start.iter().map(of).fold(0, u32::saturating_add)
}

/// The alternatives of a tree.
#[derive(Default)]
struct Choice {
    /// Nodes that take a single byte each, all of them different.
    singles: Vec<NodeId>,
    others: Vec<NodeId>,
}

impl Choice {
    fn into_list(mut self) -> Vec<NodeId> {
        self.singles.append(&mut self.others);
        self.singles.sort_unstable();
        self.singles.dedup();
        self.singles
    }
}

struct Trees<'n> {
    network: &'n mut Network,
    /// The number of branches that may still be written.
    fuel: usize,
}

impl Trees<'_> {
    /// Gives a machine a start in which common prefixes are shared. If too much cannot be shared, leaves the machine as
    /// it is and returns false.
    fn make_start(&mut self, machine: MachineId, is_tree: &[bool]) -> bool {
        let (nodes, targets) = (self.network.nodes.len(), self.network.targets.len());
        let Some(list) = self.start(machine, is_tree) else {
            self.network.nodes.truncate(nodes);
            self.network.targets.truncate(targets);
            return false;
        };
        let last = self.network.end();
        let made = &mut self.network.machines[machine.index()];
        made.start = list.into();
        made.shared = NodeRange { start: NodeId(nodes as u32), end: last };
        let width = width(self.network, machine);
        self.network.machines[machine.index()].width = width;
        true
    }

    fn start(&mut self, machine: MachineId, is_tree: &[bool]) -> Option<Vec<NodeId>> {
        let (mut own, mut called) = (Vec::new(), SmallVec::<[MachineId; 8]>::new());
        for &node in &self.network.machines[machine.index()].start {
            match tail_callee(self.network, node) {
                Some(callee) if is_tree[callee.index()] => called.push(callee),
                Some(callee) if self.network.machines[callee.index()].width as usize <= WIDE_CHOICE => {
                    let mut nodes = SmallVec::new();
                    self.network.wide_closure(&self.network.machines[callee.index()].start, &mut nodes);
                    own.extend_from_slice(&nodes);
                }
                _ => own.push(node),
            }
        }
        // The other trees are merged into the largest one.
        called.sort_by_key(|&callee| self.network.machines[callee.index()].start.len());
        let mut choice = Choice::default();
        if let Some(largest) = called.pop() {
            let nodes = self.network.machines[largest.index()].start.iter();
            (choice.singles, choice.others) = nodes.partition(|node| self.single(**node).is_some());
        }
        for callee in called {
            own.extend_from_slice(&self.network.machines[callee.index()].start);
        }
        for node in own {
            self.add(&mut choice, node, 0);
            if self.fuel == 0 || choice.others.len() > MAX_OTHERS {
                return None;
            }
        }
        Some(choice.into_list())
    }

    /// Returns the byte that a node takes and the next node, if it takes only one byte.
    fn single(&self, node: NodeId) -> Option<(u8, NodeId)> {
        match self.network.nodes[node.index()] {
            Node::Byte { low, high, next } if low == high => Some((low, next)),
            _ => None,
        }
    }

    /// Adds an alternative to a choice.
    fn add(&mut self, choice: &mut Choice, node: NodeId, depth: usize) {
        let Some((byte, next)) = self.single(node) else {
            if choice.others.last() != Some(&node) {
                choice.others.push(node);
            }
            return;
        };
        let same = |other: &NodeId| matches!(self.single(*other), Some((taken, _)) if taken == byte);
        let Some(at) = choice.singles.iter().position(same) else {
            choice.singles.push(node);
            return;
        };
        if let Some((_, known)) = self.single(choice.singles[at])
            && known != next
        {
            let next = self.union(known, next, depth + 1);
            choice.singles[at] = self.network.push(Node::Byte { low: byte, high: byte, next });
        }
    }

    /// Returns a node that continues as both of these do.
    fn union(&mut self, a: NodeId, b: NodeId, depth: usize) -> NodeId {
        if must_stop() {
            // What was built so far is not a tree, but matches the same texts. The caller checks for cancellation
            // itself.
            self.fuel = 0;
        }
        if depth == MAX_DEPTH || self.fuel == 0 {
            return self.network.split(&[a, b]);
        }
        let (singles, others) = self.branches(a).into_iter().partition(|&node| self.single(node).is_some());
        let mut choice = Choice { singles, others };
        for node in self.branches(b) {
            self.add(&mut choice, node, depth);
        }
        let list = choice.into_list();
        self.fuel = self.fuel.saturating_sub(list.len());
        self.network.split(&list)
    }

    /// Returns the nodes that splits lead to from a node, or the node itself if there are too many.
    fn branches(&self, node: NodeId) -> SmallVec<[NodeId; 8]> {
        let is_split = |node: NodeId| matches!(self.network.nodes[node.index()], Node::Split { .. });
        let mut found = SmallVec::new();
        let Node::Split { start, len } = self.network.nodes[node.index()] else {
            found.push(node);
            return found;
        };
        let targets = self.network.targets(start, len);
        if targets.len() <= MAX_BRANCHES && !targets.iter().any(|&target| is_split(target)) {
            found.extend_from_slice(targets);
            return found;
        }
        let (mut seen, mut work) = (SmallSet::default(), vec![node]);
        while let Some(at) = work.pop() {
            match self.network.nodes[at.index()] {
                _ if !seen.insert(at) => {}
                Node::Split { start, len } if found.len() + work.len() + len as usize <= MAX_BRANCHES => {
                    work.extend_from_slice(self.network.targets(start, len));
                }
                Node::Split { .. } => {
                    found.clear();
                    found.push(node);
                    return found;
                }
                _ => found.push(at),
            }
        }
        found
    }
}
