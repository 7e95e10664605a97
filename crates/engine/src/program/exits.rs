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
use rustc_hash::{FxHashMap, FxHashSet};

use super::components::components;
use super::network::{Callee, MAX_WORDS, MachineId, Network, Node, NodeId, Scope, ScopeId};
use super::{NetState, Place, Program};
use crate::leaf::Leaf;

/// The edges of a network, backwards.
pub(super) struct Backward {
    /// The nodes that lead to a node.
    nodes: Grouped<NodeId>,
    /// The calls of a machine.
    calls: Grouped<NodeId>,
    /// The machines that a node is a start of.
    starts: Grouped<MachineId>,
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
                    calls.extend(network.machine_of(callee).map(|machine| (machine.0, id)));
                }
                Node::Final => {}
            }
        }
        let starts = network.machine_ids().zip(&network.machines);
        let starts = starts.flat_map(|(at, machine)| machine.start.iter().map(move |node| (node.0, at)));
        Self {
            nodes: Grouped::new(network.nodes.len(), nodes.iter().copied()),
            calls: Grouped::new(network.machines.len(), calls.iter().copied()),
            starts: Grouped::new(network.nodes.len(), starts),
        }
    }

    /// The nodes that lead to a node in the same machine.
    pub(super) fn nodes(&self, node: NodeId) -> &[NodeId] {
        self.nodes.of(node.0)
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
                let start = network.machines[machine.index()].start.iter();
                let new = start.fold(u128::MAX, |all, node| all & needed.nodes[node.index()]);
                if core::mem::replace(&mut needed.machines[machine.index()], new) != new {
                    work.extend_from_slice(back.calls.of(machine.0));
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
                    Callee::Check => network.followed_word(id).map_or(0, |word| 1 << word),
                    // Its values are told apart by themselves.
                    Callee::Scope(_) | Callee::Leaf(_) => 0,
                    _ => network.machine_of(callee).map_or(0, |machine| self.machines[machine.index()]),
                };
                called | self.nodes[next.index()]
            }
        }
    }

    /// By every path through a machine.
    pub(crate) fn machine(&self, machine: MachineId) -> u128 {
        self.machines[machine.index()]
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

/// A path to the end of a machine: the [words](Network::words) that are written on it, a bit each. If none of them was seen, the path leads out.
type Words = u128;

/// For the nodes and machines of a network, a path to the end on which no check can fail but those of words.
#[derive(Debug, Default)]
struct Paths {
    nodes: Box<[Option<Words>]>,
    machines: Box<[Option<Words>]>,
}

impl Paths {
    fn new(network: &Network) -> Self {
        Self {
            nodes: vec![None; network.nodes.len()].into(),
            machines: vec![None; network.machines.len()].into(),
        }
    }
}

/// What is known of the paths to the ends of a network's machines.
///
/// A path is *infinite* if it passes a leaf with infinitely many values, or a machine that calls itself and writes more with each round. A value that is written on
/// such a path can always be new, whatever its scope has seen.
#[derive(Debug)]
pub(crate) struct Exits {
    paths: Paths,
    /// Infinite paths. Empty where all values that must be new are words, or leaves with infinitely many values.
    infinite: Paths,
    /// The leaves with infinitely many values. Empty as well.
    infinite_leaves: Box<[bool]>,
    /// The nodes behind which a digit that is not zero may come, in the same machine or one that it calls. Empty as well.
    nonzero: Box<[bool]>,
    scopes: Box<[Fresh]>,
}

/// What is known of a scope that requires values, while it has seen nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fresh {
    /// All that it requires can be written.
    pub(super) is_open: bool,
    /// On infinite paths, so that there are infinitely many such values.
    pub(super) is_infinite: bool,
    /// It can be completed by a path with a single check, which does not fail.
    pub(super) is_single: bool,
}

/// A path that was found while all are looked for.
struct Found {
    node: NodeId,
    words: Words,
    is_infinite: bool,
}

/// Looks for all paths, from the ends of the machines backwards.
struct Finder<'n> {
    network: &'n Network,
    back: &'n Backward,
    exits: Exits,
    /// What follows the checks of values that are neither words nor leaves with infinitely many values.
    behind: FxHashMap<NodeId, Words>,
    /// Paths by their number of words. Those with fewer come first: the first path that is found is the one to keep.
    work: Vec<Vec<Found>>,
}

impl Finder<'_> {
    fn add(&mut self, node: NodeId, words: Option<Words>, is_infinite: bool) {
        let Some(words) = words else { return };
        let paths = &mut self.work[words.count_ones() as usize];
        paths.push(Found { node, words, is_infinite: false });
        if is_infinite && self.network.other_values {
            paths.push(Found { node, words, is_infinite });
        }
    }

    fn run(&mut self) {
        let mut least = 0;
        while let Some(paths) = self.work.get_mut(least) {
            match paths.pop() {
                Some(found) => self.visit(&found),
                None => least += 1,
            }
        }
    }

    fn visit(&mut self, &Found { node, words, is_infinite }: &Found) {
        let (network, back) = (self.network, self.back);
        if is_value_check(network, node) {
            // Behind the value it may fail; before it, there is another value.
            self.behind.entry(node).or_insert(words);
            let is_endless = network.endless_checks.contains_key(&node);
            for &from in back.nodes.of(node.0) {
                let is_leaf =
                    matches!(network.nodes[from.index()], Node::Call { callee: Callee::Leaf(_), .. });
                let value =
                    if is_endless && is_leaf { Some(0) } else { self.exits.infinitely(network, from) };
                self.add(from, join(value, Some(words)), true);
            }
            return;
        }
        let paths = if is_infinite { &mut self.exits.infinite } else { &mut self.exits.paths };
        if paths.nodes[node.index()].is_some() {
            return;
        }
        paths.nodes[node.index()] = Some(words);
        for &from in back.nodes.of(node.0) {
            let is_check = is_value_check(network, from);
            let is_word = is_infinite && network.set_checks.contains(&from);
            let written = if is_check {
                Some(0)
            } else if is_word {
                // Somewhere the scope goes on, but not everywhere infinitely.
                network.followed_word(from).map(|word| 1 << word)
            } else {
                self.exits.written(network, from)
            };
            self.add(from, join(written, Some(words)), is_infinite);
            if !is_infinite {
                self.add(from, join(self.exits.infinitely(network, from), Some(words)), true);
            }
        }
        for &machine in back.starts.of(node.0) {
            self.add_machine(machine, words, is_infinite);
        }
    }

    /// A path through a machine was found. Follows the calls of it that lead on to an end.
    fn add_machine(&mut self, machine: MachineId, words: Words, is_infinite: bool) {
        let paths = if is_infinite { &mut self.exits.infinite } else { &mut self.exits.paths };
        if paths.machines[machine.index()].is_some() {
            return;
        }
        paths.machines[machine.index()] = Some(words);
        for &call in self.back.calls.of(machine.0) {
            let Node::Call { next, .. } = self.network.nodes[call.index()] else { continue };
            let written = self.exits.written(self.network, call);
            let after = self.exits.paths.nodes[next.index()];
            self.add(call, join(written, after), false);
            if self.network.other_values {
                self.add(call, join(written, self.exits.infinite.nodes[next.index()]), true);
                let after = after.or_else(|| self.behind.get(&next).copied());
                self.add(call, join(self.exits.infinitely(self.network, call), after), true);
            }
        }
    }

    /// The machines that call themselves, perhaps through others, with a digit that is not zero or a bracket in front of the call: with each round, there is another
    /// value.
    fn growing(&self) -> Vec<MachineId> {
        let network = self.network;
        let count = network.machines.len();
        let mut calls: Vec<Vec<MachineId>> = vec![Vec::new(); count];
        let mut grown: Vec<(MachineId, MachineId)> = Vec::new();
        for (index, machine) in network.machine_ids().zip(&network.machines) {
            let mut seen: FxHashSet<(NodeId, bool)> = FxHashSet::default();
            let mut work: Vec<(NodeId, bool)> = machine.start.iter().map(|node| (*node, false)).collect();
            while let Some((node, grows)) = work.pop() {
                if !seen.insert((node, grows)) {
                    continue;
                }
                if let Node::Call { callee, next } = network.nodes[node.index()]
                    && let Some(called) = network.machine_of(callee)
                    && self.exits.leads_out(next)
                    && !matches!(callee, Callee::Limit(_))
                {
                    calls[index.index()].push(called);
                    if grows {
                        grown.push((index, called));
                    }
                }
                if !self.exits.passes(network, node) {
                    continue;
                }
                match network.nodes[node.index()] {
                    Node::Byte { low, high, next } => {
                        let is_bracket = low == high && matches!(low, b'[' | b'{');
                        work.push((next, grows || takes_nonzero(low, high) || is_bracket));
                    }
                    Node::Call { next, .. } => work.push((next, grows)),
                    Node::Split { start, len } => {
                        work.extend(network.targets(start, len).iter().map(|next| (*next, grows)));
                    }
                    Node::Final => {}
                }
            }
        }
        let component = components(&calls);
        let is_cycle =
            |(from, to): &&(MachineId, MachineId)| component[from.index()] == component[to.index()];
        grown.iter().filter(is_cycle).map(|(from, _)| *from).collect()
    }
}

impl Exits {
    pub(super) fn of(network: &Network, leaves: &[Leaf], back: &Backward, scopes: Box<[Fresh]>) -> Self {
        let (leaves, infinite) = if network.other_values {
            (leaves, Paths::new(network))
        } else {
            (&[] as &[Leaf], Paths::default())
        };
        let infinite_leaves = leaves.iter().map(Leaf::starts_infinite).collect();
        let nonzero = if network.other_values { nonzero(network, back) } else { Box::default() };
        let exits = Self { paths: Paths::new(network), infinite, infinite_leaves, nonzero, scopes };
        let work = (0..=MAX_WORDS).map(|_| Vec::new()).collect();
        let mut finder = Finder { network, back, exits, behind: FxHashMap::default(), work };
        for (node, _) in (0..).map(NodeId).zip(&network.nodes).filter(|(_, node)| matches!(node, Node::Final))
        {
            finder.add(node, Some(0), false);
        }
        finder.run();
        if network.other_values {
            for machine in finder.growing() {
                finder.add_machine(machine, 0, true);
            }
            finder.run();
        }
        finder.exits
    }

    /// The words that a node itself writes; `None` if it cannot be passed.
    fn written(&self, network: &Network, node: NodeId) -> Option<Words> {
        match network.nodes[node.index()] {
            Node::Call { callee: Callee::Check, .. } if network.endless_checks.contains_key(&node) => Some(0),
            // A scope that keeps a set of words can always go on.
            Node::Call { callee: Callee::Check, .. } if network.set_checks.contains(&node) => Some(0),
            Node::Call { callee: Callee::Check, .. } => network.followed_word(node).map(|word| 1 << word),
            Node::Call { callee: Callee::Scope(index), .. } => {
                // Its values are told apart by themselves.
                self.scope_at(index, &network.scopes[index.index()]).then_some(0)
            }
            Node::Call { callee, .. } => {
                let Some(machine) = network.machine_of(callee) else { return Some(0) };
                let words = self.paths.machines[machine.index()]?;
                (words == 0 || network.rounds(callee).min <= 1).then_some(words)
            }
            Node::Byte { .. } | Node::Split { .. } | Node::Final => Some(0),
        }
    }

    /// The same on an infinite path through it.
    pub(super) fn infinitely(&self, network: &Network, node: NodeId) -> Option<Words> {
        let Node::Call { callee, .. } = network.nodes[node.index()] else { return None };
        match callee {
            Callee::Leaf(leaf) => (self.infinite_leaves.get(leaf.index()) == Some(&true)).then_some(0),
            Callee::Scope(index) => {
                let scope = &network.scopes[index.index()];
                let is_infinite = if scope.listed().is_empty() {
                    self.infinite_machine(scope.body).is_some()
                } else {
                    self.scopes[index.index()].is_infinite
                };
                is_infinite.then_some(0)
            }
            Callee::Machine(machine) => self.infinite_machine(machine),
            Callee::Loop(_) => {
                let machine = network.machine_of(callee)?;
                // The other rounds must pass.
                let others = if network.rounds(callee).min <= 1 {
                    Some(0)
                } else {
                    self.paths.machines[machine.index()]
                };
                (others == Some(0)).then(|| self.infinite_machine(machine))?
            }
            // So many tokens write finitely many values.
            Callee::Limit(_) | Callee::Check => None,
        }
    }

    /// Whether a node can be passed without a check that may fail, if what follows leads to an end.
    pub(super) fn passes(&self, network: &Network, node: NodeId) -> bool {
        self.written(network, node) == Some(0)
    }

    /// Whether a machine has a path from its start to its end on which no check can fail.
    pub(crate) fn machine(&self, machine: MachineId) -> bool {
        self.paths.machines[machine.index()] == Some(0)
    }

    /// The words on an infinite path through a machine.
    pub(crate) fn infinite_machine(&self, machine: MachineId) -> Option<Words> {
        self.infinite.machines.get(machine.index()).copied().flatten()
    }

    /// Whether a scope that has seen nothing can be completed: its body by any words or by one value, or all that it requires can be written.
    pub(crate) fn scope_at(&self, index: ScopeId, scope: &Scope) -> bool {
        if scope.wanted.is_empty() {
            self.paths.machines[scope.body.index()].is_some() || self.scopes[index.index()].is_single
        } else {
            self.scopes[index.index()].is_open
        }
    }

    /// Whether a node has a path to the end of its machine on which no check can fail.
    pub(super) fn leads_out(&self, node: NodeId) -> bool {
        self.paths.nodes[node.index()] == Some(0)
    }

    /// The same for an infinite path.
    pub(super) fn leads_out_infinitely(&self, node: NodeId) -> bool {
        self.infinite.nodes.get(node.index()) == Some(&Some(0))
    }

    /// The words on a path from a state to the end of its machine.
    pub(crate) fn state(&self, program: &Program, state: NetState) -> Option<Words> {
        match program.place(state) {
            Place::Done => Some(0),
            Place::Cell(cell) if cell.returns => Some(0),
            place => least(&self.paths, &place, state),
        }
    }

    /// Whether a digit that is not zero may come before the end of the machine, as far as that is known.
    pub(crate) fn reaches_nonzero(&self, program: &Program, state: NetState) -> bool {
        let is_nonzero = |node: NodeId| self.nonzero.get(node.index()) != Some(&false);
        match program.place(state) {
            Place::Done => false,
            Place::Node { .. } => state.node().is_some_and(is_nonzero),
            Place::Cell(cell) => cell.nodes.iter().any(|node| is_nonzero(*node)),
        }
    }

    /// The words on an infinite path from a state to the end of its machine.
    pub(crate) fn infinite_state(&self, program: &Program, state: NetState) -> Option<Words> {
        if self.infinite.nodes.is_empty() {
            return None;
        }
        least(&self.infinite, &program.place(state), state)
    }
}

/// Whether a node is the check of a value that has to be one of infinitely many.
fn is_value_check(network: &Network, node: NodeId) -> bool {
    matches!(network.nodes[node.index()], Node::Call { callee: Callee::Check, .. })
        && (network.endless_checks.contains_key(&node)
            || network.other_values && network.followed_word(node).is_none())
}

/// Whether a range of bytes has a digit that is not zero.
fn takes_nonzero(low: u8, high: u8) -> bool {
    low <= b'9' && b'1' <= high
}

/// The nodes behind which a digit that is not zero may come.
fn nonzero(network: &Network, back: &Backward) -> Box<[bool]> {
    let mut found: Box<[bool]> = vec![false; network.nodes.len()].into();
    let is_digit = |(_, node): &(NodeId, &Node)| match node {
        Node::Byte { low, high, .. } => takes_nonzero(*low, *high),
        Node::Call { callee: Callee::Leaf(_), .. } => true,
        _ => false,
    };
    let digits = (0..).map(NodeId).zip(&network.nodes).filter(is_digit);
    let mut work: Vec<NodeId> = digits.map(|(node, _)| node).collect();
    while let Some(node) = work.pop() {
        if !core::mem::replace(&mut found[node.index()], true) {
            work.extend_from_slice(back.nodes.of(node.0));
            let machines = back.starts.of(node.0).iter();
            machines.for_each(|machine| work.extend_from_slice(back.calls.of(machine.0)));
        }
    }
    found
}

/// The path with the fewest words from a place.
fn least(paths: &Paths, place: &Place<'_>, state: NetState) -> Option<Words> {
    match place {
        Place::Done => None,
        Place::Node { .. } => paths.nodes[state.node()?.index()],
        Place::Cell(cell) => {
            let words = cell.nodes.iter().filter_map(|node| paths.nodes[node.index()]);
            words.min_by_key(|words| words.count_ones())
        }
    }
}

/// The words of two paths, one after the other; `None` if one of them comes twice.
pub(crate) fn join(a: Option<u128>, b: Option<u128>) -> Option<u128> {
    let (a, b) = (a?, b?);
    (a & b == 0).then_some(a | b)
}
