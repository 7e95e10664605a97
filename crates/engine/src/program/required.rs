//! Finds the places of a scope from which everything that it requires can be written.
//!
//! With keys in any order, an object may close only when it has all required keys. There is no dead end as long as each
//! of them can still be written, no matter which of the others were. That is a property of the nodes of the scope's
//! body:
//!
//! ```text
//!   "{" ( "a": … | "b": … | other: … ) ("," ( "a": … | "b": … | other: … ))* "}"       required: a, b
//!                                      ^ here, a leads back here, and so does b: both can be written, in any order
//! ```
//! A node is *open* if each required key has a path from the node that passes no check but the key's own and leads back
//! to an open node, from which there is a path to the end. A key that others need counts as required. The greatest set
//! of open nodes is computed by removing nodes that are not open until none is left. The result may be too small, as
//! where keys are counted, but never too large.
//!
//! In this file, a node is a [joint](super::joints).

use maskwright_automata::Grouped;
use maskwright_grammar::ExprId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::exits::{Backward, Exits, Fresh};
use super::joints::{Joint, Joints};
use super::network::{Callee, LoopId, MachineId, Need, Network, Node, NodeId, Scope, ScopeId};
use super::{NetState, Place, Program};
use crate::count::{Bounds, UNBOUNDED};
use crate::leaf::Leaf;

/// The number of node visits that may be made for a program. Beyond it, no more scopes are analyzed, and a search
/// decides about their texts.
const MAX_STEPS: usize = 20_000_000;
/// The number of required keys that are tracked at once.
const KEYS_PER_BATCH: usize = u64::BITS as usize;

/// The open nodes of all scopes that require something.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// The scopes for which a node is open.
    nodes: FxHashMap<Joint, SmallVec<[ScopeId; 1]>>,
    /// The scopes for which a loop without a maximum is open between two rounds.
    loops: FxHashMap<LoopId, SmallVec<[ScopeId; 1]>>,
    /// Whether each node belongs only to machines in which no value is checked.
    without_checks: Box<[bool]>,
    /// For each open scope, whether each required key has infinitely many values; see [`Exits`].
    infinite: FxHashMap<ScopeId, Box<[bool]>>,
    /// The scopes in which a value, even the first one, may be a dead end. Empty if there are none.
    dead_ends: Box<[bool]>,
}

/// Computes which places can be left, and which are open.
pub(super) fn exits(network: &Network, joints: &Joints, leaves: &[Leaf]) -> (Exits, Open) {
    let back = Backward::of(network, joints);
    let fresh = |scope: &Scope| Fresh { is_open: scope.listed().is_empty(), ..Fresh::default() };
    let mut scopes: Box<[Fresh]> = network.scopes.iter().map(fresh).collect();
    let machines = Machines::of(network, joints);
    let mut open = Open { without_checks: machines.without_checks(), ..Open::default() };
    let mut steps = MAX_STEPS;
    // Inner scopes are resolved first, so there are as many rounds as levels. A scope that is open stays open.
    loop {
        let exits = Exits::of(network, leaves, joints, &back, scopes.clone());
        let mut changed = false;
        for (index, scope) in (0..).map(ScopeId).zip(&mut scopes) {
            if !scope.is_open && open.add(network, &exits, &machines, index, &mut steps) {
                let is_infinite = open.infinite.get(&index).is_some_and(|names| names.contains(&true));
                (*scope, changed) = (Fresh { is_open: true, is_infinite, ..*scope }, true);
            }
            let about = &network.scopes[index.index()];
            if about.wanted.is_empty()
                && !exits.scope_at(index, about)
                && has_single_check(network, &exits, &machines, about, &mut steps)
            {
                (scope.is_single, changed) = (true, true);
            }
        }
        if !changed {
            let scope_has_dead_ends = |(index, scope): (ScopeId, &Scope)| {
                open.scope_has_dead_ends(network, &exits, &machines, index, scope)
            };
            let dead_ends: Box<[bool]> =
                (0..).map(ScopeId).zip(&network.scopes).map(scope_has_dead_ends).collect();
            if dead_ends.contains(&true) {
                open.dead_ends = dead_ends;
            }
            return (exits, open);
        }
    }
}

/// What scopes require but cannot write.
#[derive(Debug, Default)]
pub(crate) struct Unwritable {
    /// The scopes that require such a value.
    pub(crate) scopes: Vec<ExprId>,
    /// Whether all required values are in the network, so that they need themselves in an endless recursion.
    pub(crate) is_endless: bool,
    /// A scope in which a value that can be written needs one that cannot.
    pub(crate) need: Option<(ExprId, Need)>,
}

/// Finds what scopes require but cannot write. The value of a key may be impossible, so that the key is not in the
/// network, or it may need a value of the same kind in an endless recursion.
pub(crate) fn find_unwritable(network: &Network) -> Unwritable {
    let mut unwritable = Unwritable::default();
    let asks = |scope: &Scope| !scope.required.is_empty() || !scope.needs.is_empty();
    if !network.scopes.iter().any(asks) {
        return unwritable;
    }
    let joints = Joints::of(network);
    let endings = Endings::of(network, &joints);
    unwritable.is_endless = true;
    for (index, scope) in (0..).map(ScopeId).zip(&network.scopes) {
        if !endings.scopes[index.index()] {
            unwritable.scopes.push(scope.expr);
            unwritable.is_endless &= endings.has_required(scope, |_| true);
        } else if !scope.needs.is_empty()
            && let Some(written) = endings.written(scope, |joint| endings.joints[joint.index()])
            && let Some(need) = scope
                .needs
                .iter()
                .find(|(one, other)| written.contains(&**one) && !written.contains(&**other))
        {
            unwritable.need.get_or_insert_with(|| (scope.expr, need.clone()));
        }
    }
    unwritable
}

/// The joints and scopes that come to an end. The least such set, so no value has to contain itself forever.
struct Endings<'n> {
    machines: Machines<'n>,
    /// Whether there is a path from each joint to the end of its machine.
    joints: Vec<bool>,
    /// Whether each scope can be completed, as far as its required values matter.
    scopes: Vec<bool>,
}

impl<'n> Endings<'n> {
    fn of(network: &'n Network, joints: &'n Joints) -> Self {
        let back = Backward::of(network, joints);
        let mut endings = Self {
            machines: Machines::of(network, joints),
            joints: vec![false; joints.len()],
            scopes: vec![false; network.scopes.len()],
        };
        let mut ended = vec![false; network.machines.len()];
        let mut work: Vec<Joint> = joints.all().rev().collect();
        while !work.is_empty() {
            while let Some(joint) = work.pop() {
                if endings.joints[joint.index()] || !endings.ends(joint, &ended) {
                    continue;
                }
                endings.joints[joint.index()] = true;
                work.extend_from_slice(back.joints.of(joint.0));
                for &machine in back.starts.of(joint.0) {
                    if !core::mem::replace(&mut ended[machine.index()], true) {
                        work.extend_from_slice(back.calls.of(machine.0));
                    }
                }
            }
            for (index, scope) in network.scopes.iter().enumerate() {
                let ends = |joint: Joint| endings.joints[joint.index()];
                if ended[scope.body.index()] && !endings.scopes[index] && endings.has_required(scope, ends) {
                    endings.scopes[index] = true;
                    work.extend_from_slice(back.calls.of(scope.body.0));
                }
            }
        }
        endings
    }

    /// Checks whether a joint is an end or leads to one.
    fn ends(&self, joint: Joint, ended: &[bool]) -> bool {
        let network = self.machines.network;
        let passes = match self.machines.get(joint) {
            Node::Final => return true,
            Node::Call { callee: Callee::Scope(index), .. } => self.scopes[index.index()],
            Node::Call { callee, .. } => network
                .machine_of(callee)
                .is_none_or(|machine| ended[machine.index()] || network.rounds(callee).min == 0),
            Node::Byte { .. } | Node::Split { .. } => true,
        };
        passes && self.machines.successors(joint).any(|next| self.joints[next.index()])
    }

    /// Checks whether everything that a scope requires can be written at some of its joints.
    fn has_required(&self, scope: &Scope, among: impl Fn(Joint) -> bool) -> bool {
        scope.required.is_empty()
            || self
                .written(scope, among)
                .is_none_or(|written| scope.required.iter().all(|name| written.contains(&**name)))
    }

    /// Returns the names that can be written in a scope at some of its joints, or `None` if that is not known for one
    /// of its values.
    fn written(&self, scope: &Scope, among: impl Fn(Joint) -> bool) -> Option<FxHashSet<&[u8]>> {
        let Machines { network, joints, nodes, .. } = &self.machines;
        let parts = self.machines.parts(scope.body);
        let mut written = FxHashSet::default();
        for joint in parts.iter().flat_map(|part| &nodes[part.index()]).filter(|joint| among(**joint)) {
            let node = joints.node(*joint);
            if network.unnamed_checks.contains(&node) {
                return None;
            }
            let names = network.name_checks.get(&node).into_iter().flatten();
            written.extend(names.map(|at| &*network.names[*at as usize]));
        }
        Some(written)
    }
}

impl Open {
    /// Returns the scopes for which everything required can be written from a state.
    pub(crate) fn state(&self, program: &Program, state: NetState) -> SmallVec<[ScopeId; 4]> {
        if self.nodes.is_empty() {
            return SmallVec::new();
        }
        let of = |node: &NodeId| self.node(program.joints().at(*node));
        match program.place(state) {
            Place::Done => SmallVec::new(),
            Place::Node { .. } => state.node().iter().flat_map(of).collect(),
            Place::Cell(cell) => cell.nodes.iter().flat_map(of).collect(),
        }
    }

    /// Checks whether no value is checked in the machine of a state.
    pub(crate) fn has_no_checks(&self, program: &Program, state: NetState) -> bool {
        let has_no_checks = |node: NodeId| self.without_checks[program.joints().at(node).index()];
        match program.place(state) {
            Place::Done => true,
            Place::Node { .. } => state.node().is_some_and(has_no_checks),
            Place::Cell(cell) => cell.nodes.iter().all(|node| has_no_checks(*node)),
        }
    }

    fn node(&self, node: Joint) -> impl Iterator<Item = ScopeId> + '_ {
        self.nodes.get(&node).into_iter().flatten().copied()
    }

    /// Returns the scopes for which a loop is open between two rounds.
    pub(crate) fn counted(&self, index: LoopId) -> &[ScopeId] {
        self.loops.get(&index).map_or(&[], |scopes| scopes)
    }

    /// Checks whether a value of some scope may be a dead end.
    pub(crate) fn has_dead_ends(&self) -> bool {
        !self.dead_ends.is_empty()
    }

    /// Checks whether a value of a scope, even the first one, may be a dead end because what must follow it may not be
    /// new.
    pub(crate) fn may_have_dead_ends(&self, index: ScopeId) -> bool {
        self.dead_ends.get(index.index()) == Some(&true)
    }

    fn scope_has_dead_ends(
        &self,
        network: &Network,
        exits: &Exits,
        machines: &Machines<'_>,
        index: ScopeId,
        scope: &Scope,
    ) -> bool {
        let parts = machines.parts(scope.body);
        let mut nodes = parts.iter().flat_map(|part| &machines.nodes[part.index()]);
        nodes.any(|&node| {
            let Node::Call { callee, next } = machines.get(node) else { return false };
            let part = machines.part_at(node);
            let next = machines.joints.at(next);
            let leads_on = |node| {
                scope.needs.is_empty() && exits.leads_out(node) || self.node(node).any(|open| open == index)
            };
            let must_go_on = network.rounds(callee).min > 1;
            (callee == Callee::Check || part.is_some()) && !leads_on(next)
                || part.is_some_and(|part| must_go_on && !exits.machine(part))
        })
    }

    /// For each value that an open scope may lack, returns whether the member with this key has infinitely many values.
    pub(crate) fn infinite(&self, index: ScopeId) -> &[bool] {
        self.infinite.get(&index).map_or(&[], |names| names)
    }

    /// Adds the open nodes of a scope. Returns whether one of its start nodes is open.
    fn add(
        &mut self,
        network: &Network,
        exits: &Exits,
        machines: &Machines<'_>,
        index: ScopeId,
        steps: &mut usize,
    ) -> bool {
        let scope = &network.scopes[index.index()];
        let Some((open, infinite)) = open_nodes(network, exits, machines, scope, steps) else { return false };
        if network.other_values {
            self.infinite.insert(index, infinite);
        }
        for &node in &open {
            push(self.nodes.entry(node).or_default(), index);
            if let Node::Call { callee: callee @ Callee::Loop(counted), .. } = machines.get(node)
                && network.rounds(callee).max == UNBOUNDED
            {
                push(self.loops.entry(counted).or_default(), index);
            }
        }
        machines.starts(scope.body).any(|node| open.contains(&node))
    }
}

/// Checks whether a scope can be completed by a path with only one check that may fail. The first value of a scope is
/// new, so the check passes.
fn has_single_check(
    network: &Network,
    exits: &Exits,
    machines: &Machines<'_>,
    scope: &Scope,
    steps: &mut usize,
) -> bool {
    let parts = machines.parts(scope.body);
    let nodes: Vec<Joint> = parts.iter().flat_map(|part| &machines.nodes[part.index()]).copied().collect();
    // The nodes with such a path to the end of their machine.
    let mut single: FxHashSet<Joint> = FxHashSet::default();
    loop {
        let Some(left) = steps.checked_sub(nodes.len()) else { return false };
        *steps = left;
        let before = single.len();
        for &node in nodes.iter().rev() {
            let is_single = match machines.get(node) {
                Node::Call { callee: Callee::Check, next } => exits.leads_out(machines.joints.at(next)),
                Node::Call { callee, next } => match machines.part_at(node) {
                    Some(part) => {
                        network.rounds(callee).min <= 1
                            && exits.leads_out(machines.joints.at(next))
                            && machines.starts(part).any(|node| single.contains(&node))
                    }
                    None => false,
                },
                _ => false,
            };
            if is_single || machines.passes_to(exits, node, &single) {
                single.insert(node);
            }
        }
        if single.len() == before {
            return machines.starts(parts[0]).any(|node| single.contains(&node));
        }
    }
}

fn push(scopes: &mut SmallVec<[ScopeId; 1]>, index: ScopeId) {
    if !scopes.contains(&index) {
        scopes.push(index);
    }
}

/// Finds the open nodes of a scope's body and of the machines that it calls, and which required values can be written
/// on an infinite path from each of them. Returns `None` if the steps run out, or if a required value is not in
/// `Network::names`.
fn open_nodes(
    network: &Network,
    exits: &Exits,
    machines: &Machines<'_>,
    scope: &Scope,
    steps: &mut usize,
) -> Option<(Vec<Joint>, Box<[bool]>)> {
    let place = |name: &[u8]| {
        let found = network.names.binary_search_by(|one| (**one).cmp(name));
        found.ok().map(|at| at as u32)
    };
    let names = scope.wanted.iter().map(|name| place(name)).collect::<Option<Vec<u32>>>()?;
    let parts = machines.parts(scope.body);
    // The approximate number of node visits for the machines, and for each round after them.
    let size: usize = parts.iter().map(|part| machines.nodes[part.index()].len()).sum();
    let round = size * names.len().div_ceil(KEYS_PER_BATCH) * 4;
    *steps = steps.checked_sub(round)?;
    let batches: Vec<Written<'_>> = names
        .chunks(KEYS_PER_BATCH)
        .map(|names| Written::of(network, exits, machines, &parts, names))
        .collect();
    // Callers first. The nodes are visited in reverse, so callees are known before their callers.
    let nodes: Vec<Joint> = parts.iter().flat_map(|part| &machines.nodes[part.index()]).copied().collect();
    let mut open: FxHashSet<Joint> = nodes.iter().copied().collect();
    loop {
        *steps = steps.checked_sub(round)?;
        let before = open.len();
        // By now something was written, so there must be a path to the end.
        let done: FxHashSet<Joint> = open.iter().copied().filter(|node| exits.leads_out(*node)).collect();
        let ends = Ends { all: reaching(machines, exits, &nodes, &done), infinite: None };
        for batch in &batches {
            let bits = batch.then(&nodes, &ends, Some(&open));
            open.retain(|node| bits.get(node).is_some_and(|bits| *bits == batch.all));
        }
        if open.len() == before {
            let infinite = infinite_names(machines, exits, &nodes, &batches, &ends, &open);
            return Some((nodes.into_iter().filter(|node| open.contains(node)).collect(), infinite));
        }
    }
}

/// Returns for each required value, in order, whether it can be written on an infinite path from every open node.
fn infinite_names(
    machines: &Machines<'_>,
    exits: &Exits,
    nodes: &[Joint],
    batches: &[Written<'_>],
    ends: &Ends,
    open: &FxHashSet<Joint>,
) -> Box<[bool]> {
    if !machines.network.other_values {
        return Box::default();
    }
    let infinite = reaching_infinitely(machines, exits, nodes, &ends.all);
    let ends = Ends { all: ends.all.clone(), infinite: Some(infinite) };
    let of_batch = |batch: &Written<'_>| {
        let bits = batch.then(nodes, &ends, Some(open));
        let all = open.iter().fold(batch.all, |all, node| all & bits.get(node).copied().unwrap_or(0));
        (0..batch.all.count_ones()).map(move |at| all >> at & 1 == 1).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of_batch).collect()
}

/// Returns the nodes from which an infinite path leads to `set`, whose nodes reach their ends.
fn reaching_infinitely(
    machines: &Machines<'_>,
    exits: &Exits,
    body: &[Joint],
    set: &FxHashSet<Joint>,
) -> FxHashSet<Joint> {
    grow(body, FxHashSet::default(), |node, reaching| {
        let is_infinite = exits.infinitely(machines.network, machines.joints.node(node)) == Some(0);
        is_infinite && machines.successors(node).any(|next| set.contains(&next))
            || machines.passes_to(exits, node, reaching)
    })
}

/// Returns the nodes from which a node of `set` can be reached without a check that may fail.
fn reaching(
    machines: &Machines<'_>,
    exits: &Exits,
    body: &[Joint],
    set: &FxHashSet<Joint>,
) -> FxHashSet<Joint> {
    grow(body, set.clone(), |node, reaching| machines.passes_to(exits, node, reaching))
}

/// Adds nodes that belong to a set, until there are no more.
fn grow(
    body: &[Joint],
    mut set: FxHashSet<Joint>,
    belongs: impl Fn(Joint, &FxHashSet<Joint>) -> bool,
) -> FxHashSet<Joint> {
    until_stable(|| {
        let before = set.len();
        for &node in body.iter().rev() {
            if belongs(node, &set) {
                set.insert(node);
            }
        }
        set.len() != before
    });
    set
}

fn until_stable(mut step: impl FnMut() -> bool) {
    while step() {}
}

/// The nodes of all machines, and whether values of an enclosing scope are checked in them.
pub(super) struct Machines<'n> {
    pub(super) network: &'n Network,
    pub(super) joints: &'n Joints,
    pub(super) nodes: Vec<Vec<Joint>>,
    checks: Vec<bool>,
}

impl<'n> Machines<'n> {
    pub(super) fn of(network: &'n Network, joints: &'n Joints) -> Self {
        let mut seen = vec![MachineId(u32::MAX); joints.len()];
        let nodes: Vec<Vec<Joint>> =
            network.machine_ids().map(|machine| nodes_of(network, joints, machine, &mut seen)).collect();
        let has_check = |nodes: &Vec<Joint>| {
            let is_check =
                |node| matches!(joints.get(network, node), Node::Call { callee: Callee::Check, .. });
            nodes.iter().copied().any(is_check)
        };
        let checks = nodes.iter().map(has_check).collect();
        let mut machines = Self { network, joints, nodes, checks };
        machines.add_callers();
        machines
    }

    /// Marks machines that call a machine in which values are checked.
    fn add_callers(&mut self) {
        let calls = |(machine, nodes): (MachineId, &Vec<Joint>)| {
            let called = nodes.iter().filter_map(|node| self.called(*node));
            called.map(|called| (called.0, machine)).collect::<Vec<_>>()
        };
        let calls: Vec<(u32, MachineId)> =
            self.network.machine_ids().zip(&self.nodes).flat_map(calls).collect();
        let callers = Grouped::new(self.nodes.len(), calls.into_iter());
        let mut work: Vec<MachineId> =
            self.network.machine_ids().filter(|machine| self.checks[machine.index()]).collect();
        while let Some(machine) = work.pop() {
            for &caller in callers.of(machine.0) {
                if !core::mem::replace(&mut self.checks[caller.index()], true) {
                    work.push(caller);
                }
            }
        }
    }

    #[inline]
    fn get(&self, node: Joint) -> Node {
        self.joints.get(self.network, node)
    }

    fn successors(&self, node: Joint) -> impl Iterator<Item = Joint> + '_ {
        self.joints.successors(self.network, node)
    }

    fn starts(&self, machine: MachineId) -> impl Iterator<Item = Joint> + '_ {
        self.network.machines[machine.index()].start.iter().map(|node| self.joints.at(*node))
    }

    /// See [`Exits::passes`].
    fn passes(&self, exits: &Exits, node: Joint) -> bool {
        exits.passes(self.network, self.joints.node(node))
    }

    /// Checks whether a node leads to a node of `set` without a check that may fail.
    fn passes_to(&self, exits: &Exits, node: Joint, set: &FxHashSet<Joint>) -> bool {
        self.passes(exits, node) && self.successors(node).any(|next| set.contains(&next))
    }

    /// Computes for each node whether it belongs only to machines without checks.
    fn without_checks(&self) -> Box<[bool]> {
        let mut without_checks: Box<[bool]> = vec![true; self.joints.len()].into();
        for (nodes, _) in self.nodes.iter().zip(&self.checks).filter(|(_, checks)| **checks) {
            for node in nodes {
                without_checks[node.index()] = false;
            }
        }
        without_checks
    }

    /// Returns the machine that a node calls, if values of the same scope are checked there.
    pub(super) fn part_at(&self, node: Joint) -> Option<MachineId> {
        self.called(node).filter(|machine| self.checks[machine.index()])
    }

    /// Returns a machine and those it calls in which values of the same scope are checked.
    pub(super) fn parts(&self, body: MachineId) -> Vec<MachineId> {
        let (mut parts, mut at) = (vec![body], 0);
        let mut seen: FxHashSet<MachineId> = FxHashSet::from_iter([body]);
        while let Some(&machine) = parts.get(at) {
            let nodes = self.nodes[machine.index()].iter();
            parts.extend(nodes.filter_map(|node| self.part_at(*node)).filter(|part| seen.insert(*part)));
            at += 1;
        }
        parts
    }

    /// Keeps only the machines that check words themselves.
    pub(super) fn with_words(&self, mut parts: Vec<MachineId>) -> Vec<MachineId> {
        let is_word = |node: &Joint| self.network.word_checks.contains_key(&self.joints.node(*node));
        parts.retain(|part| self.nodes[part.index()].iter().any(is_word));
        parts
    }

    /// Returns the machine that a node calls within the same scope.
    fn called(&self, node: Joint) -> Option<MachineId> {
        match self.get(node) {
            Node::Call { callee: Callee::Scope(_), .. } => None,
            Node::Call { callee, .. } => self.network.machine_of(callee),
            _ => None,
        }
    }
}

/// Returns the nodes of a machine in the order in which they are found. `seen` holds the machine that last visited each
/// node.
fn nodes_of(network: &Network, joints: &Joints, machine: MachineId, seen: &mut [MachineId]) -> Vec<Joint> {
    let start = network.machines[machine.index()].start.iter();
    let mut work: Vec<Joint> = start.map(|node| joints.at(*node)).collect();
    let mut nodes = Vec::new();
    while let Some(node) = work.pop() {
        if core::mem::replace(&mut seen[node.index()], machine) != machine {
            nodes.push(node);
            work.extend(joints.successors(network, node));
        }
    }
    nodes
}

/// The required values that can be written on a path through machines, up to [`KEYS_PER_BATCH`] of them, a bit each.
struct Written<'n> {
    network: &'n Network,
    exits: &'n Exits,
    all_machines: &'n Machines<'n>,
    /// All bits.
    all: u64,
    /// The bits of checks.
    checks: FxHashMap<Joint, u64>,
    /// The bits of one path through a machine that passes no other check.
    machines: FxHashMap<MachineId, u64>,
    /// The bits of such a path that is infinite.
    infinite_machines: FxHashMap<MachineId, u64>,
}

/// The nodes at which paths may end.
struct Ends {
    all: FxHashSet<Joint>,
    /// If only infinite paths count, the nodes from which the rest of the path is infinite.
    infinite: Option<FxHashSet<Joint>>,
}

impl<'n> Written<'n> {
    fn of(
        network: &'n Network,
        exits: &'n Exits,
        all_machines: &'n Machines<'n>,
        parts: &[MachineId],
        names: &[u32],
    ) -> Self {
        let all = u64::MAX >> (KEYS_PER_BATCH - names.len());
        let bit = |name: &u32| names.iter().position(|one| one == name).map_or(0, |at| 1u64 << at);
        let mut checks = FxHashMap::default();
        for node in parts.iter().flat_map(|part| &all_machines.nodes[part.index()]) {
            let names = network.name_checks.get(&all_machines.joints.node(*node));
            let bits = names.map_or(0, |names| names.iter().map(bit).fold(0, |a, b| a | b));
            if bits != 0 {
                checks.insert(*node, bits);
            }
        }
        let (machines, infinite_machines) = (FxHashMap::default(), FxHashMap::default());
        let mut written = Self { network, exits, all_machines, all, checks, machines, infinite_machines };
        until_stable(|| written.add_machines(parts, false));
        if network.other_values {
            until_stable(|| written.add_machines(parts, true));
        }
        written
    }

    /// Updates the machines after the first. Returns whether something changed.
    fn add_machines(&mut self, parts: &[MachineId], infinite: bool) -> bool {
        let mut changed = false;
        for machine in parts[1..].iter().rev() {
            let nodes = &self.all_machines.nodes[machine.index()];
            let filter =
                |is_end: &dyn Fn(Joint) -> bool| nodes.iter().copied().filter(|node| is_end(*node)).collect();
            let ends = Ends {
                all: filter(&|node| self.exits.leads_out(node)),
                infinite: infinite.then(|| filter(&|node| self.exits.leads_out_infinitely(node))),
            };
            let bits = self.then(nodes, &ends, None);
            let start = self.all_machines.starts(*machine);
            let bits = start.fold(0, |all, node| all | bits.get(&node).copied().unwrap_or(0));
            let machines = if infinite { &mut self.infinite_machines } else { &mut self.machines };
            changed |= machines.insert(*machine, bits).unwrap_or(0) != bits;
        }
        changed
    }

    /// Computes for each node what one path from it to a node of `ends` can write, if it passes no other check. With
    /// `open`, the path may end inside a called machine, and a loop may return to its open nodes.
    fn then(&self, nodes: &[Joint], ends: &Ends, open: Option<&FxHashSet<Joint>>) -> FxHashMap<Joint, u64> {
        let mut bits: FxHashMap<Joint, u64> = FxHashMap::default();
        until_stable(|| {
            let mut changed = false;
            for &node in nodes.iter().rev() {
                let mut new = self.at(node, ends, open);
                if self.all_machines.passes(self.exits, node) {
                    let next = self.all_machines.successors(node);
                    new |= next.fold(0, |all, next| all | bits.get(&next).copied().unwrap_or(0));
                }
                if open.is_some() {
                    new |= self.inside(node, &bits);
                }
                if new != 0 {
                    changed |= bits.insert(node, new) != Some(new);
                }
            }
            changed
        });
        bits
    }

    /// Returns what can be written inside the machine that a node calls, if what follows leads to an end.
    fn inside(&self, node: Joint, bits: &FxHashMap<Joint, u64>) -> u64 {
        let Some(machine) = self.all_machines.part_at(node) else { return 0 };
        if !self.all_machines.successors(node).all(|next| self.exits.leads_out(next)) {
            return 0;
        }
        let start = self.all_machines.starts(machine);
        start.fold(0, |all, node| all | bits.get(&node).copied().unwrap_or(0))
    }

    /// Returns what a node itself can write on a path to `ends`.
    fn at(&self, node: Joint, ends: &Ends, open: Option<&FxHashSet<Joint>>) -> u64 {
        let Node::Call { callee, next } = self.all_machines.get(node) else { return 0 };
        let next = self.all_machines.joints.at(next);
        let leads_on = ends.all.contains(&next);
        // Whether the rest of the path is sufficient, no matter what comes before it.
        let is_enough = ends.infinite.as_ref().map_or(leads_on, |infinite| infinite.contains(&next));
        if callee == Callee::Check {
            return if is_enough { self.checks.get(&node).copied().unwrap_or(0) } else { 0 };
        }
        let Some(machine) = self.all_machines.part_at(node) else { return 0 };
        let Bounds { min, max } = self.network.rounds(callee);
        // The other rounds must pass without a check.
        if min > 1 && !self.exits.machine(machine) {
            return 0;
        }
        let comes_back = max == UNBOUNDED && open.is_some_and(|open| open.contains(&node));
        let of = |machines: &FxHashMap<MachineId, u64>| machines.get(&machine).copied().unwrap_or(0);
        let plain = if is_enough || comes_back && ends.infinite.is_none() { of(&self.machines) } else { 0 };
        let infinite = if leads_on || comes_back { of(&self.infinite_machines) } else { 0 };
        plain | infinite
    }
}
