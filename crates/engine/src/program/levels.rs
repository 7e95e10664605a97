//! What can still happen at a level of nesting: inside one array or object, without what is inside its members.
//!
//! A thread has a level for each frame: the rest of a machine that has called another one. A level is *bracketed* if
//! every path to its end goes through a closing bracket, as inside `{…}`:
//!
//! ```text
//!   [ { "id": 7, "tags": [ "a"      the array of tags, the object and the outer array: a token without a bracket ends none of them
//! ```
//! So a token without a closing bracket does not affect scopes below a bracketed level. If the level is part of a value
//! that must be new, there must also be infinitely many such values, no matter what comes before the bracket. In that
//! case the level is *ample*. Both are properties of nodes, computed once for a program.

use maskwright_automata::Grouped;

use super::exits::Exits;
use super::joints::{Joint, Joints, is_closing_bracket, successors};
use super::network::{Network, Node, NodeId};
use super::{NetState, Place, Program};

/// The joints that are bracketed, and those that are ample. A [`Joint`] is a node that is not a byte.
#[derive(Debug)]
pub(crate) struct Levels {
    bracketed: Box<[bool]>,
    /// Whether each place after a joint, up to the next closing bracket of its machine, has an infinite path to the end
    /// of the machine.
    ample: Box<[bool]>,
}

impl Levels {
    pub(super) fn of(network: &Network, joints: &Joints, exits: &Exits) -> Self {
        let open_edges = joints.all().flat_map(|from| {
            let next = successors(network, joints.node(from));
            next.filter(|next| !joints.closes(*next)).map(move |next| (joints.at(next).0, from))
        });
        let before = Grouped::new(joints.len(), open_edges);
        // Propagates a violation backwards, up to a closing bracket.
        let spread = |first: &dyn Fn(Joint) -> bool| {
            let mut work: Vec<Joint> = joints.all().filter(|joint| first(*joint)).collect();
            let mut holds: Box<[bool]> = vec![true; joints.len()].into();
            while let Some(joint) = work.pop() {
                if core::mem::replace(&mut holds[joint.index()], false) {
                    work.extend_from_slice(before.of(joint.0));
                }
            }
            holds
        };
        let is_infinite = |node: NodeId| exits.leads_out_infinitely(joints.at(node));
        let is_short = |joint: Joint| match joints.get(network, joint) {
            Node::Call { next, .. } => !is_infinite(next),
            Node::Split { start, len } => network.targets(start, len).iter().any(|next| {
                let is_byte = matches!(network.nodes[next.index()], Node::Byte { .. });
                is_byte && !is_closing_bracket(network, *next) && !is_infinite(*next)
            }),
            Node::Byte { .. } | Node::Final => false,
        };
        Self {
            bracketed: spread(&|joint| matches!(joints.get(network, joint), Node::Final)),
            ample: spread(&is_short),
        }
    }

    /// Checks whether every path to the end of a state's machine goes through a closing bracket.
    pub(crate) fn is_bracketed(&self, program: &Program, state: NetState) -> bool {
        let joints = program.joints();
        all_nodes(program, state, |node| joints.closes(node) || self.bracketed[joints.at(node).index()])
    }

    /// Checks whether there are infinitely many paths to the end of a state's machine, even after anything that comes
    /// before the next closing bracket.
    pub(crate) fn is_ample(&self, program: &Program, state: NetState) -> bool {
        let (joints, exits) = (program.joints(), program.exits());
        let is_ample = |node: NodeId| {
            let joint = joints.at(node);
            if joints.node(joint) == node {
                return self.ample[joint.index()];
            }
            let is_infinite = || exits.leads_out_infinitely(joint);
            is_closing_bracket(program.network(), node)
                || is_infinite() && (joints.closes(node) || self.ample[joint.index()])
        };
        exits.infinite_state(program, state) == Some(0) && all_nodes(program, state, is_ample)
    }
}

fn all_nodes(program: &Program, state: NetState, holds: impl Fn(NodeId) -> bool) -> bool {
    match program.place(state) {
        Place::Done => false,
        Place::Node { .. } => state.node().is_some_and(holds),
        Place::Cell(cell) => !cell.returns && cell.nodes.iter().all(|node| holds(*node)),
    }
}
