//! The network without its bytes.
//!
//! Most nodes of a network are bytes of keys and other literals, each with one way on. What is found out about the paths through a machine is the same
//! all along such a literal, so it is kept for its end alone: for a *joint*, a node that is no byte.
//!
//! ```text
//!   ⟨split⟩ ─▶ (b'"') ─▶ (b'i') ─▶ (b'd') ─▶ (b'"') ─▶ (call value)      two joints
//! ```

use super::network::{Network, Node, NodeId};

/// A node that is no byte, by its place among those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Joint(pub(super) u32);

impl Joint {
    #[inline]
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All joints of a network.
#[derive(Debug)]
pub(crate) struct Joints {
    nodes: Box<[NodeId]>,
    /// For each node, the joint that it is or that its bytes lead to.
    of: Box<[Joint]>,
}

const UNKNOWN: Joint = Joint(u32::MAX);

impl Joints {
    pub(crate) fn of(network: &Network) -> Self {
        let mut of = vec![UNKNOWN; network.nodes.len()];
        let mut nodes = Vec::new();
        for (id, node) in (0..).map(NodeId).zip(&network.nodes) {
            if !matches!(node, Node::Byte { .. }) {
                of[id.index()] = Joint(nodes.len() as u32);
                nodes.push(id);
            }
        }
        let mut literal = Vec::new();
        for mut id in (0..of.len() as u32).map(NodeId) {
            while of[id.index()] == UNKNOWN
                && let Node::Byte { next, .. } = network.nodes[id.index()]
            {
                literal.push(id);
                id = next;
            }
            for byte in literal.drain(..) {
                of[byte.index()] = of[id.index()];
            }
        }
        Self { nodes: nodes.into(), of: of.into() }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = Joint> + use<> {
        (0..self.nodes.len() as u32).map(Joint)
    }

    /// The joint that a node is, or that its bytes lead to.
    #[inline]
    pub(crate) fn at(&self, node: NodeId) -> Joint {
        self.of[node.index()]
    }

    #[inline]
    pub(super) fn node(&self, joint: Joint) -> NodeId {
        self.nodes[joint.index()]
    }

    /// What a joint is.
    #[inline]
    pub(super) fn get(&self, network: &Network, joint: Joint) -> Node {
        network.nodes[self.node(joint).index()]
    }

    /// The joints that follow in the same machine.
    pub(super) fn successors<'n>(
        &'n self,
        network: &'n Network,
        joint: Joint,
    ) -> impl Iterator<Item = Joint> + 'n {
        successors(network, self.node(joint)).map(|next| self.at(next))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.of)
    }
}

/// The nodes that follow in the same machine.
pub(super) fn successors(network: &Network, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let (one, many): (Option<NodeId>, &[NodeId]) = match network.nodes[node.index()] {
        Node::Byte { next, .. } | Node::Call { next, .. } => (Some(next), &[]),
        Node::Split { start, len } => (None, network.targets(start, len)),
        Node::Final => (None, &[]),
    };
    one.into_iter().chain(many.iter().copied())
}

/// The bytes from a node to its joint, as ranges.
pub(super) fn bytes_from(network: &Network, mut node: NodeId) -> impl Iterator<Item = (u8, u8)> + '_ {
    core::iter::from_fn(move || match network.nodes[node.index()] {
        Node::Byte { low, high, next } => {
            node = next;
            Some((low, high))
        }
        _ => None,
    })
}
