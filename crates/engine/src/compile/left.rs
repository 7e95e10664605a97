//! Removes left recursion, and finds the start nodes of each machine.
//!
//! A machine that calls itself before it has taken a byte would be entered forever. It is rebuilt with the same
//! language. Let K be a set of machines that reach each other by *left* calls, that is, by calls made before any byte.
//! To match A ∈ K, match for some B ∈ K a beginning of B that is not such a call, and then go up again: whenever a B is
//! complete, continue after a left call to B in any member of K. When A is complete, the match may also end.
//!
//! ```text
//!   e ::= e "+" t | t        A = B = e:   ─▶ (call t) ─▶ ⟨e complete⟩ ─▶ ((final))
//!                                             ▲              │
//!                                             └─ (call t) ◀─ (b'+')
//! ```
//! So A gets a copy of the nodes of all members. In the copy, the final node of B is a split to what follows the left
//! calls to B. Recursion through an empty prefix (`a ::= b? a "x"`) needs no special case: "before any byte" means
//! everything that is reachable from the start by splits, including paths around calls.

use maskwright_automata::{must_stop, must_stop_now};
use smallvec::SmallVec;

use super::{CompileError, Place};
use crate::program::components::components;
use crate::program::network::{Callee, Machine, MachineId, Network, Node, NodeId, NodeRange};

/// Finds the start nodes of each machine, and rebuilds the machines that begin with themselves.
pub(crate) fn resolve_left_recursion(network: &mut Network, max_nodes: usize) -> Result<(), CompileError> {
    for machine in 0..network.machines.len() {
        if must_stop_now() {
            return Err(CompileError::Stopped);
        }
        let mut start = SmallVec::new();
        network.closure(&network.machines[machine].start, &mut start);
        network.machines[machine].start = Box::from(&*start);
    }
    let left = left_calls(network);
    let components = components(&left);
    let mut members: Vec<Vec<MachineId>> = vec![Vec::new(); network.machines.len()];
    for (machine, &component) in network.machine_ids().zip(&components) {
        members[component as usize].push(machine);
    }
    let recursive: Vec<Vec<MachineId>> = members
        .into_iter()
        .filter(|m| m.len() > 1 || m.first().is_some_and(|&a| left[a.index()].contains(&a)))
        .collect();
    for members in recursive {
        let old: Vec<_> = members.iter().map(|&m| network.machines[m.index()].clone()).collect();
        // Every member gets a copy of all members, so the number of nodes is known before anything is copied.
        let size: usize = old.iter().map(|machine| machine.nodes.len() as usize + 1).sum();
        if size.saturating_mul(members.len()).saturating_add(network.nodes.len()) > max_nodes {
            let (place, rules) = (Place::of(old[0].expr), members.len());
            return Err(CompileError::LeftRecursionTooBig { place, rules, nodes: max_nodes });
        }
        for at in 0..members.len() {
            rebuild(network, &members, &old, at)?;
        }
    }
    Ok(())
}

/// Returns the machines that each machine calls before its first byte.
fn left_calls(network: &Network) -> Vec<Vec<MachineId>> {
    let callees = |machine: &Machine| {
        let mut callees: Vec<MachineId> = machine
            .start
            .iter()
            .filter_map(|&node| match network.nodes[node.index()] {
                Node::Call { callee, .. } => network.machine_of(callee),
                _ => None,
            })
            .collect();
        callees.sort_unstable();
        callees.dedup();
        callees
    };
    network.machines.iter().map(callees).collect()
}

/// Gives `members[at]` its copy of the whole component. `old` holds the original members.
fn rebuild(
    network: &mut Network,
    members: &[MachineId],
    old: &[Machine],
    at: usize,
) -> Result<(), CompileError> {
    let is_member = |m: MachineId| members.binary_search(&m);
    // 1. Copy the nodes of the members one after another, with shifted targets.
    let base = network.end();
    let mut offset = base.0;
    let mut shift = Vec::with_capacity(old.len());
    for machine in old {
        // Copies come after everything else, so nodes only move up.
        shift.push(offset - machine.nodes.start.0);
        offset += machine.nodes.len();
    }
    for (machine, &shift) in old.iter().zip(&shift) {
        if must_stop() {
            return Err(CompileError::Stopped);
        }
        let moved = |node: NodeId| NodeId(node.0 + shift);
        for index in machine.nodes.iter() {
            let node = match network.nodes[index.index()] {
                Node::Byte { low, high, next } => Node::Byte { low, high, next: moved(next) },
                Node::Call { callee, next } => Node::Call { callee, next: moved(next) },
                Node::Final => Node::Final,
                Node::Split { start, len } => {
                    let targets: Vec<NodeId> =
                        network.targets(start, len).iter().map(|&t| moved(t)).collect();
                    network.split_node(&targets)
                }
            };
            network.nodes.push(node);
        }
    }
    let exit = network.push(Node::Final);
    // 2. The new start consists of the first bytes and the first calls out of the component. For a left call to a
    // member B, the node after it is added to the places where a complete B continues.
    let mut start = Vec::new();
    let mut after: Vec<Vec<NodeId>> = vec![Vec::new(); old.len()];
    for (machine, &shift) in old.iter().zip(&shift) {
        if must_stop_now() {
            return Err(CompileError::Stopped);
        }
        let moved = |node: NodeId| NodeId(node.0 + shift);
        for &node in &machine.start {
            let called = match network.nodes[node.index()] {
                Node::Call { callee, next } => {
                    network.machine_of(callee).and_then(|m| is_member(m).ok()).map(|b| (b, callee, next))
                }
                _ => None,
            };
            match called {
                None => start.push(moved(node)),
                Some((b, Callee::Machine(_), next)) => after[b].push(moved(next)),
                Some(_) => {
                    return Err(CompileError::LeftRecursionInRepeat { place: Place::of(machine.expr) });
                }
            }
        }
    }
    // 3. Replace the final nodes.
    for (b, machine) in old.iter().enumerate() {
        let mut targets = core::mem::take(&mut after[b]);
        if b == at {
            targets.push(exit);
        }
        let split = network.split_node(&targets);
        network.nodes[(machine.nodes.start.0 + shift[b]) as usize] = split;
    }
    // A member after which only the end can follow, as in `a ::= b` and `b ::= a`, ends there itself. A call before it
    // is then a tail call.
    let finals = old.iter().zip(&shift).map(|(machine, shift)| NodeId(machine.nodes.start.0 + shift));
    let only_ends = |node: &NodeId| {
        let mut reached = SmallVec::new();
        network.closure(&[*node], &mut reached) && reached.is_empty()
    };
    let ends: Vec<NodeId> = finals.filter(only_ends).collect();
    for node in ends {
        network.nodes[node.index()] = Node::Final;
    }
    let machine = &mut network.machines[members[at].index()];
    start.sort_unstable();
    machine.start = start.into();
    machine.nodes = NodeRange { start: base, end: NodeId(exit.0 + 1) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use maskwright_automata::{CancelToken, with_cancel};
    use maskwright_grammar::{Expr, GrammarBuilder};

    use super::*;

    /// Makes machines that begin with one another, in a circle: `m0 ::= m1 "x" | "y"`, `m1 ::= m2 "x" | "y"`, …
    fn circle(count: u32) -> Network {
        let mut g = GrammarBuilder::new();
        let root = g.declare("root");
        let empty = g.empty();
        g.define(root, empty);
        let grammar = g.finish(root).expect("it is defined");
        let expr =
            grammar.expr_ids().find(|id| matches!(grammar.expr(*id), Expr::Empty)).expect("it is there");
        let mut network = Network::default();
        for machine in 0..count {
            let first = network.push(Node::Final);
            let x = network.push(Node::Byte { low: b'x', high: b'x', next: first });
            let callee = Callee::Machine(MachineId((machine + 1) % count));
            let call = network.push(Node::Call { callee, next: x });
            let other = network.push(Node::Byte { low: b'y', high: b'y', next: first });
            let (nodes, start) =
                (NodeRange { start: first, end: NodeId(other.0 + 1) }, Box::from([call, other]));
            network.machines.push(Machine { expr, nodes, start, shared: NodeRange::default(), width: 0 });
        }
        network
    }

    #[test]
    fn what_is_too_large_is_refused_before_anything_is_copied() {
        let mut network = circle(100);
        let before = network.nodes.len();
        let error = resolve_left_recursion(&mut network, 10_000).expect_err("100 copies of 400 nodes");
        assert!(matches!(error, CompileError::LeftRecursionTooBig { rules: 100, .. }), "{error}");
        assert_eq!(network.nodes.len(), before);
        resolve_left_recursion(&mut network, 100_000).expect("this is enough");
    }

    #[test]
    fn a_single_machine_stops() {
        let stop = CancelToken::new();
        stop.cancel();
        for _ in 0..40 {
            let result = with_cancel(&stop, || resolve_left_recursion(&mut circle(1), 1_000));
            assert_eq!(result, Err(CompileError::Stopped));
        }
    }
}
