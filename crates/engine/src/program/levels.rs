//! What can still happen at the level of a value: inside one array or object, what it holds not counted.
//!
//! A thread has a level for each frame: the rest of a machine that has called another. A level is *bracketed* if no path leads to its end but
//! through a closing bracket, as inside of `{…}`:
//!
//! ```text
//!   [ { "id": 7, "tags": [ "a"      the array of tags, the object and the outer array: a token without a bracket ends none of them
//! ```
//! So a token without a closing bracket does nothing to scopes below a bracketed level. If the level is part of a value that must be new, there must be
//! infinitely many such values as well, whatever comes before the bracket: then the level is *ample*. Both are properties of nodes, found once for a program.

use maskwright_automata::Grouped;

use super::exits::Exits;
use super::joints::{Joints, successors};
use super::network::{Network, Node, NodeId};
use super::{NetState, Place, Program};

/// Which nodes are bracketed, and which are ample.
#[derive(Debug)]
pub(crate) struct Levels {
    bracketed: Box<[bool]>,
    /// Whether each place behind a node, up to the next closing bracket of its machine, has an infinite path to the end of the machine.
    ample: Box<[bool]>,
}

impl Levels {
    pub(super) fn of(network: &Network, joints: &Joints, exits: &Exits) -> Self {
        let all = || (0..network.nodes.len() as u32).map(NodeId);
        let edges: Vec<(u32, NodeId)> =
            all().flat_map(|from| successors(network, from).map(move |to| (to.0, from))).collect();
        let before = Grouped::new(network.nodes.len(), edges.iter().copied());
        let is_bracket = |node: NodeId| match network.nodes[node.index()] {
            Node::Byte { low, high, .. } => low == high && matches!(low, b'}' | b']'),
            _ => false,
        };
        let is_final = |node: &NodeId| matches!(network.nodes[node.index()], Node::Final);
        let is_short = |node: &NodeId| match network.nodes[node.index()] {
            Node::Byte { next, .. } | Node::Call { next, .. } => {
                !is_bracket(*node) && !exits.leads_out_infinitely(joints.at(next))
            }
            Node::Split { .. } | Node::Final => false,
        };
        // What is not so is carried backwards, up to the next bracket.
        let spread = |mut work: Vec<NodeId>| {
            let mut holds: Box<[bool]> = vec![true; network.nodes.len()].into();
            while let Some(node) = work.pop() {
                if core::mem::replace(&mut holds[node.index()], false) {
                    work.extend(before.of(node.0).iter().filter(|from| !is_bracket(**from)));
                }
            }
            holds
        };
        Self {
            bracketed: spread(all().filter(is_final).collect()),
            ample: spread(all().filter(is_short).collect()),
        }
    }

    /// Whether a closing bracket comes before the end of a state's machine, whatever else does.
    pub(crate) fn is_bracketed(&self, program: &Program, state: NetState) -> bool {
        all_nodes(program, state, &self.bracketed)
    }

    /// Whether there are infinitely many paths to the end of a state's machine, also behind anything that comes before the next closing bracket.
    pub(crate) fn is_ample(&self, program: &Program, state: NetState) -> bool {
        program.exits().infinite_state(program, state) == Some(0) && all_nodes(program, state, &self.ample)
    }
}

fn all_nodes(program: &Program, state: NetState, holds: &[bool]) -> bool {
    match program.place(state) {
        Place::Done => false,
        Place::Node { .. } => state.node().is_some_and(|node| holds[node.index()]),
        Place::Cell(cell) => !cell.returns && cell.nodes.iter().all(|node| holds[node.index()]),
    }
}
