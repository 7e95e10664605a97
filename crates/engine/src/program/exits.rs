//! Finds the places that can be left without a value that may have to differ from others.
//!
//! Where values must differ, a text can reach a dead end: all possible values were seen. That cannot happen if every
//! open rule has a path to its end on which no check can fail, or only checks of words that were not seen. Whether a
//! rule has such a path from a node is a property of the node, computed once for a program:
//!
//! ```text
//!   [ item ("," item)* ]      after an item: "]" leads out      after the comma: an item comes first, and must be new
//! ```
//! Before a leaf with infinitely many values, its check counts as passed. A scope that requires some values counts as
//! passed if all of them can be written, no matter what was written before ([`super::required`]).

use maskwright_automata::Grouped;
use rustc_hash::{FxHashMap, FxHashSet};

use super::components::components;
use super::joints::{Joint, Joints, bytes_from, successors};
use super::network::{Callee, MAX_WORDS, MachineId, Network, Node, NodeId, Scope, ScopeId};
use super::{NetState, Place, Program};
use crate::leaf::Leaf;

/// The edges of a network, reversed.
pub(super) struct Backward {
    /// The joints that lead to a joint in the same machine.
    pub(super) joints: Grouped<Joint>,
    /// The calls of a machine.
    pub(super) calls: Grouped<Joint>,
    /// The machines that a joint is a start of.
    pub(super) starts: Grouped<MachineId>,
}

impl Backward {
    pub(super) fn of(network: &Network, joints: &Joints) -> Self {
        let mut before: Vec<(u32, Joint)> = Vec::new();
        let mut calls: Vec<(u32, Joint)> = Vec::new();
        for joint in joints.all() {
            before.extend(joints.successors(network, joint).map(|to| (to.0, joint)));
            if let Node::Call { callee, .. } = joints.get(network, joint) {
                calls.extend(network.machine_of(callee).map(|machine| (machine.0, joint)));
            }
        }
        let starts = network.machine_ids().zip(&network.machines);
        let starts =
            starts.flat_map(|(at, machine)| machine.start.iter().map(move |node| (joints.at(*node).0, at)));
        Self {
            joints: Grouped::new(joints.len(), before.iter().copied()),
            calls: Grouped::new(network.machines.len(), calls.iter().copied()),
            starts: Grouped::new(joints.len(), starts),
        }
    }
}

/// The [words](Network::words) that every path from a joint to the end of its machine writes, a bit each. If one of
/// them was seen, the joint is a dead end.
#[derive(Debug)]
pub(crate) struct Needed {
    joints: Box<[u128]>,
    machines: Box<[u128]>,
}

impl Needed {
    pub(crate) fn of(network: &Network, joints: &Joints) -> Self {
        let back = Backward::of(network, joints);
        let mut needed = Self {
            joints: vec![u128::MAX; joints.len()].into(),
            machines: vec![u128::MAX; network.machines.len()].into(),
        };
        // Starts from all words and removes those that are not on every path. Changes are propagated to predecessors
        // and callers.
        let mut work: Vec<Joint> = joints.all().rev().collect();
        while let Some(joint) = work.pop() {
            let new = needed.of_joint(network, joints, joint);
            if core::mem::replace(&mut needed.joints[joint.index()], new) == new {
                continue;
            }
            work.extend_from_slice(back.joints.of(joint.0));
            for &machine in back.starts.of(joint.0) {
                let start = network.machines[machine.index()].start.iter();
                let new = start.fold(u128::MAX, |all, node| all & needed.joints[joints.at(*node).index()]);
                if core::mem::replace(&mut needed.machines[machine.index()], new) != new {
                    work.extend_from_slice(back.calls.of(machine.0));
                }
            }
        }
        needed
    }

    fn of_joint(&self, network: &Network, joints: &Joints, joint: Joint) -> u128 {
        let called = match joints.get(network, joint) {
            Node::Final => return 0,
            Node::Byte { .. } | Node::Split { .. } => 0,
            Node::Call { callee: Callee::Check, .. } => {
                network.followed_word(joints.node(joint)).map_or(0, |word| 1 << word)
            }
            // The values inside it are compared separately.
            Node::Call { callee: Callee::Scope(_) | Callee::Leaf(_), .. } => 0,
            Node::Call { callee, .. } => {
                network.machine_of(callee).map_or(0, |machine| self.machines[machine.index()])
            }
        };
        let next = joints.successors(network, joint);
        called | next.fold(u128::MAX, |all, next| all & self.joints[next.index()])
    }

    /// Returns the words on every path through a machine.
    pub(crate) fn machine(&self, machine: MachineId) -> u128 {
        self.machines[machine.index()]
    }

    /// Returns the words on every path from a state to the end of its machine.
    pub(crate) fn state(&self, program: &Program, state: NetState) -> u128 {
        let of = |node: NodeId| self.joints[program.joints().at(node).index()];
        match program.place(state) {
            Place::Done => 0,
            Place::Node { .. } => state.node().map_or(0, of),
            Place::Cell(cell) if cell.returns => 0,
            Place::Cell(cell) => cell.nodes.iter().fold(u128::MAX, |all, node| all & of(*node)),
        }
    }
}

/// The [words](Network::words) on a path to the end of a machine, a bit each. If none of them was seen, the path leads
/// out.
type Words = u128;

/// For each joint and machine, a path to the end on which no check can fail except those of words.
#[derive(Debug, Default)]
struct Paths {
    joints: Box<[Option<Words>]>,
    machines: Box<[Option<Words>]>,
}

impl Paths {
    fn new(network: &Network, joints: &Joints) -> Self {
        Self { joints: vec![None; joints.len()].into(), machines: vec![None; network.machines.len()].into() }
    }
}

/// The paths to the ends of a network's machines.
///
/// A path is *infinite* if it passes a leaf with infinitely many values, or a machine that calls itself and writes more
/// with each round. A value that is written on such a path can always be new, no matter what its scope has seen.
#[derive(Debug)]
pub(crate) struct Exits {
    paths: Paths,
    /// The infinite paths. Empty if all values that must be new are words or leaves with infinitely many values.
    infinite: Paths,
    /// Whether each leaf has infinitely many values. Empty in the same case.
    infinite_leaves: Box<[bool]>,
    /// Whether a nonzero digit may come after each joint, in the same machine or one that it calls. Empty in the same
    /// case.
    nonzero: Box<[bool]>,
    scopes: Box<[Fresh]>,
}

/// Properties of a scope that has seen nothing yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fresh {
    /// Whether everything that it requires can be written.
    pub(super) is_open: bool,
    /// Whether it can be written on infinite paths, so that there are infinitely many such values.
    pub(super) is_infinite: bool,
    /// Whether the scope can be completed by a path with a single check, which cannot fail.
    pub(super) is_single: bool,
}

/// A path that was found, to be extended backwards.
struct Found {
    joint: Joint,
    words: Words,
    is_infinite: bool,
}

/// Searches all paths, from the ends of the machines backwards.
struct Finder<'n> {
    network: &'n Network,
    joints: &'n Joints,
    back: &'n Backward,
    exits: Exits,
    /// The words on a path from the check of a value to the end of its machine.
    after_checks: FxHashMap<NodeId, Words>,
    /// Paths by their number of words. Those with the fewest come first, so the first path that is found is the one to
    /// keep.
    work: Vec<Vec<Found>>,
}

impl Finder<'_> {
    fn add(&mut self, joint: Joint, words: Option<Words>, is_infinite: bool) {
        let Some(words) = words else { return };
        let paths = &mut self.work[words.count_ones() as usize];
        paths.push(Found { joint, words, is_infinite: false });
        if is_infinite && self.network.other_values {
            paths.push(Found { joint, words, is_infinite });
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

    fn visit(&mut self, &Found { joint, words, is_infinite }: &Found) {
        let (network, joints, back) = (self.network, self.joints, self.back);
        let node = joints.node(joint);
        if is_value_check(network, node) {
            // After the value, the check may fail. Before it, another value can still be chosen.
            self.after_checks.entry(node).or_insert(words);
            let is_endless = network.endless_checks.contains_key(&node);
            for &from in back.joints.of(joint.0) {
                if !successors(network, joints.node(from)).any(|next| next == node) {
                    // There are literal bytes between this joint and the check, so the joint may lie before the value.
                    continue;
                }
                let is_leaf = matches!(joints.get(network, from), Node::Call { callee: Callee::Leaf(_), .. });
                let value = if is_endless && is_leaf { Some(0) } else { self.infinitely(from) };
                self.add(from, join(value, Some(words)), true);
            }
            return;
        }
        let paths = if is_infinite { &mut self.exits.infinite } else { &mut self.exits.paths };
        if paths.joints[joint.index()].is_some() {
            return;
        }
        paths.joints[joint.index()] = Some(words);
        for &from in back.joints.of(joint.0) {
            let from_node = joints.node(from);
            let is_check = is_value_check(network, from_node);
            let is_word = is_infinite && network.set_checks.contains(&from_node);
            let written = if is_check {
                Some(0)
            } else if is_word {
                // A scope with a word set can always continue, but not always on an infinite path. So the word counts
                // here.
                network.followed_word(from_node).map(|word| 1 << word)
            } else {
                self.exits.written(network, from_node)
            };
            self.add(from, join(written, Some(words)), is_infinite);
            if !is_infinite {
                self.add(from, join(self.infinitely(from), Some(words)), true);
            }
        }
        for &machine in back.starts.of(joint.0) {
            self.add_machine(machine, words, is_infinite);
        }
    }

    fn infinitely(&self, joint: Joint) -> Option<Words> {
        self.exits.infinitely(self.network, self.joints.node(joint))
    }

    /// Records a path through a machine, and extends it to the calls after which a path leads to an end.
    fn add_machine(&mut self, machine: MachineId, words: Words, is_infinite: bool) {
        let paths = if is_infinite { &mut self.exits.infinite } else { &mut self.exits.paths };
        if paths.machines[machine.index()].is_some() {
            return;
        }
        paths.machines[machine.index()] = Some(words);
        for &call in self.back.calls.of(machine.0) {
            let node = self.joints.node(call);
            let Node::Call { next, .. } = self.network.nodes[node.index()] else { continue };
            let written = self.exits.written(self.network, node);
            let at = self.joints.at(next).index();
            let after = self.exits.paths.joints[at];
            self.add(call, join(written, after), false);
            if self.network.other_values {
                self.add(call, join(written, self.exits.infinite.joints[at]), true);
                let after = after.or_else(|| self.after_checks.get(&next).copied());
                self.add(call, join(self.infinitely(call), after), true);
            }
        }
    }

    /// Returns the machines that reach a call of themselves, or of another such machine, after a nonzero digit or a
    /// bracket. Each round of such a machine makes another value. Where a scope keeps a word set, a round may write at
    /// most one of its words, and only in a new scope, because no word comes twice.
    fn growing(&self) -> Vec<MachineId> {
        let (network, joints) = (self.network, self.joints);
        let count = network.machines.len();
        // Each machine has two nodes here: for a scope that has seen nothing, and for one that may have seen all words
        // of a set.
        let at =
            |machine: MachineId, has_seen: bool| MachineId(machine.0 + u32::from(has_seen) * count as u32);
        let mut calls: Vec<Vec<MachineId>> = vec![Vec::new(); 2 * count];
        let mut grown: Vec<(MachineId, MachineId)> = Vec::new();
        let grows_from = |node: NodeId| {
            let is_bracket = |low: u8, high: u8| low == high && matches!(low, b'[' | b'{');
            bytes_from(network, node).any(|(low, high)| takes_nonzero(low, high) || is_bracket(low, high))
        };
        let mut seen: FxHashSet<(Joint, bool, bool)> = FxHashSet::default();
        let both = network.machine_ids().flat_map(|index| [(index, false), (index, true)]);
        for (index, has_seen) in both {
            seen.clear();
            let starts = network.machines[index.index()].start.iter();
            let mut work: Vec<(Joint, bool, bool)> =
                starts.map(|node| (joints.at(*node), grows_from(*node), has_seen)).collect();
            while let Some((joint, grows, writes)) = work.pop() {
                if !seen.insert((joint, grows, writes)) {
                    continue;
                }
                let node = joints.node(joint);
                if let Node::Call { callee, next } = network.nodes[node.index()]
                    && let Some(called) = network.machine_of(callee)
                    && self.exits.leads_out(joints.at(next))
                    && !matches!(callee, Callee::Limit(_))
                {
                    let (from, to) =
                        (at(index, has_seen), at(called, writes && !matches!(callee, Callee::Scope(_))));
                    calls[from.index()].push(to);
                    if grows {
                        grown.push((from, to));
                    }
                }
                let is_word = network.set_checks.contains(&node);
                if self.exits.passes(network, node) && !(is_word && writes) {
                    let next = successors(network, node);
                    work.extend(
                        next.map(|next| (joints.at(next), grows || grows_from(next), writes || is_word)),
                    );
                }
            }
        }
        let component = components(&calls);
        let is_cycle =
            |(from, to): &&(MachineId, MachineId)| component[from.index()] == component[to.index()];
        let mut work: Vec<MachineId> = grown.iter().filter(is_cycle).map(|(from, _)| *from).collect();
        let edges =
            calls.iter().zip(0..).flat_map(|(to, from)| to.iter().map(move |to| (to.0, MachineId(from))));
        let callers = Grouped::new(2 * count, edges);
        let mut growing = vec![false; 2 * count];
        while let Some(machine) = work.pop() {
            if !core::mem::replace(&mut growing[machine.index()], true) {
                work.extend_from_slice(callers.of(machine.0));
            }
        }
        network.machine_ids().filter(|machine| growing[at(*machine, true).index()]).collect()
    }
}

impl Exits {
    pub(super) fn of(
        network: &Network,
        leaves: &[Leaf],
        joints: &Joints,
        back: &Backward,
        scopes: Box<[Fresh]>,
    ) -> Self {
        let (leaves, infinite) = if network.other_values {
            (leaves, Paths::new(network, joints))
        } else {
            (&[] as &[Leaf], Paths::default())
        };
        let infinite_leaves = leaves.iter().map(Leaf::starts_infinite).collect();
        let nonzero =
            if network.other_values { nonzero(network, leaves, joints, back) } else { Box::default() };
        let exits = Self { paths: Paths::new(network, joints), infinite, infinite_leaves, nonzero, scopes };
        let work = (0..=MAX_WORDS).map(|_| Vec::new()).collect();
        let mut finder = Finder { network, joints, back, exits, after_checks: FxHashMap::default(), work };
        for joint in joints.all().filter(|joint| matches!(joints.get(network, *joint), Node::Final)) {
            finder.add(joint, Some(0), false);
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

    /// Returns the words that a node itself writes, or `None` if it cannot be passed.
    fn written(&self, network: &Network, node: NodeId) -> Option<Words> {
        match network.nodes[node.index()] {
            Node::Call { callee: Callee::Check, .. } if network.endless_checks.contains_key(&node) => Some(0),
            // A scope that keeps a set of words can always continue.
            Node::Call { callee: Callee::Check, .. } if network.set_checks.contains(&node) => Some(0),
            Node::Call { callee: Callee::Check, .. } => network.followed_word(node).map(|word| 1 << word),
            Node::Call { callee: Callee::Scope(index), .. } => {
                // The values inside it are compared separately.
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

    /// Returns the words that a node itself writes on an infinite path through it.
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
                // The other rounds must be passable.
                let others = if network.rounds(callee).min <= 1 {
                    Some(0)
                } else {
                    self.paths.machines[machine.index()]
                };
                (others == Some(0)).then(|| self.infinite_machine(machine))?
            }
            // A limited number of tokens writes only finitely many values.
            Callee::Limit(_) | Callee::Check => None,
        }
    }

    /// Checks whether a node can be passed without a check that may fail, if what follows leads to an end.
    pub(super) fn passes(&self, network: &Network, node: NodeId) -> bool {
        self.written(network, node) == Some(0)
    }

    /// Checks whether a machine has a path from its start to its end on which no check can fail.
    pub(crate) fn machine(&self, machine: MachineId) -> bool {
        self.paths.machines[machine.index()] == Some(0)
    }

    /// Returns the words on an infinite path through a machine.
    pub(crate) fn infinite_machine(&self, machine: MachineId) -> Option<Words> {
        self.infinite.machines.get(machine.index()).copied().flatten()
    }

    /// Checks whether a scope that has seen nothing can be completed: its body by any words or by one value, or
    /// everything that it requires can be written.
    pub(crate) fn scope_at(&self, index: ScopeId, scope: &Scope) -> bool {
        if scope.wanted.is_empty() {
            self.paths.machines[scope.body.index()].is_some() || self.scopes[index.index()].is_single
        } else {
            self.scopes[index.index()].is_open
        }
    }

    /// Checks whether a joint has a path to the end of its machine on which no check can fail.
    pub(super) fn leads_out(&self, joint: Joint) -> bool {
        self.paths.joints[joint.index()] == Some(0)
    }

    /// Checks the same for an infinite path.
    pub(super) fn leads_out_infinitely(&self, joint: Joint) -> bool {
        self.infinite.joints.get(joint.index()) == Some(&Some(0))
    }

    /// Returns the words on a path from a state to the end of its machine.
    pub(crate) fn state(&self, program: &Program, state: NetState) -> Option<Words> {
        match program.place(state) {
            Place::Done => Some(0),
            Place::Cell(cell) if cell.returns => Some(0),
            place => least(program, &self.paths, &place, state),
        }
    }

    /// Checks whether a nonzero digit may come before the end of the machine. Returns true if that is not known.
    pub(crate) fn reaches_nonzero(&self, program: &Program, state: NetState) -> bool {
        let is_nonzero = |node: NodeId| {
            self.nonzero.get(program.joints().at(node).index()) != Some(&false)
                || has_nonzero(program.network(), node)
        };
        match program.place(state) {
            Place::Done => false,
            Place::Node { .. } => state.node().is_some_and(is_nonzero),
            Place::Cell(cell) => cell.nodes.iter().any(|node| is_nonzero(*node)),
        }
    }

    /// Returns the words on an infinite path from a state to the end of its machine.
    pub(crate) fn infinite_state(&self, program: &Program, state: NetState) -> Option<Words> {
        if self.infinite.joints.is_empty() {
            return None;
        }
        least(program, &self.infinite, &program.place(state), state)
    }
}

/// Checks whether a node is a check that certainly passes only if there are infinitely many values to choose from.
fn is_value_check(network: &Network, node: NodeId) -> bool {
    matches!(network.nodes[node.index()], Node::Call { callee: Callee::Check, .. })
        && (network.endless_checks.contains_key(&node)
            || network.other_values && network.followed_word(node).is_none())
}

/// Checks whether a range of bytes contains a nonzero digit.
fn takes_nonzero(low: u8, high: u8) -> bool {
    low <= b'9' && b'1' <= high
}

/// Checks whether a nonzero digit may come between a node and its joint.
fn has_nonzero(network: &Network, node: NodeId) -> bool {
    bytes_from(network, node).any(|(low, high)| takes_nonzero(low, high))
}

/// Finds the joints after which a nonzero digit may come.
fn nonzero(network: &Network, leaves: &[Leaf], joints: &Joints, back: &Backward) -> Box<[bool]> {
    let mut found: Box<[bool]> = vec![false; joints.len()].into();
    let leaves: Vec<bool> = leaves.iter().map(Leaf::may_have_nonzero).collect();
    let begins = |joint: &Joint| match joints.get(network, *joint) {
        Node::Call { callee: Callee::Leaf(leaf), .. } => leaves[leaf.index()],
        Node::Call { callee, .. } if network.machine_of(callee).is_some_and(starts_nonzero(network)) => true,
        _ => successors(network, joints.node(*joint)).any(|next| has_nonzero(network, next)),
    };
    let mut work: Vec<Joint> = joints.all().filter(begins).collect();
    while let Some(joint) = work.pop() {
        if !core::mem::replace(&mut found[joint.index()], true) {
            work.extend_from_slice(back.joints.of(joint.0));
            let machines = back.starts.of(joint.0).iter();
            machines.for_each(|machine| work.extend_from_slice(back.calls.of(machine.0)));
        }
    }
    found
}

/// Checks whether a nonzero digit may be among the first literal bytes of a machine.
fn starts_nonzero(network: &Network) -> impl Fn(MachineId) -> bool + '_ {
    |machine| network.machines[machine.index()].start.iter().any(|node| has_nonzero(network, *node))
}

/// Returns the path with the fewest words from a place.
fn least(program: &Program, paths: &Paths, place: &Place<'_>, state: NetState) -> Option<Words> {
    let of = |node: NodeId| paths.joints[program.joints().at(node).index()];
    match place {
        Place::Done => None,
        Place::Node { .. } => of(state.node()?),
        Place::Cell(cell) => {
            let words = cell.nodes.iter().filter_map(|node| of(*node));
            words.min_by_key(|words| words.count_ones())
        }
    }
}

/// Combines the words of two consecutive paths. Returns `None` if a word comes twice.
pub(crate) fn join(a: Option<u128>, b: Option<u128>) -> Option<u128> {
    let (a, b) = (a?, b?);
    (a & b == 0).then_some(a | b)
}
