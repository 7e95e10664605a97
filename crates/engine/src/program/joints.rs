//! The network without its bytes.
//!
//! Most nodes of a network are bytes of keys and other literals, each with a single successor. Properties of the paths
//! through a machine are the same along such a literal, so they are stored only for its end: for a *joint*, a node that
//! is not a byte.
//!
//! ```text
//!   ⟨split⟩ ─▶ (b'"') ─▶ (b'i') ─▶ (b'd') ─▶ (b'"') ─▶ (call value)      two joints
//! ```

use super::network::{Network, Node, NodeId};

/// A node that is not a byte, by its index among those.
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
    /// For each node, whether a closing bracket is among these bytes.
    closes: Box<[bool]>,
}

const UNKNOWN: Joint = Joint(u32::MAX);

impl Joints {
    pub(crate) fn of(network: &Network) -> Self {
        let mut of = vec![UNKNOWN; network.nodes.len()];
        let mut closes = vec![false; network.nodes.len()];
        let mut nodes = Vec::new();
        let mut late = Vec::new();
        for (id, node) in (0..).map(NodeId).zip(&network.nodes) {
            match node {
                // PERF: literals are built from their ends, so for nearly all bytes the joint is known at once.
                Node::Byte { next, .. } if of[next.index()] != UNKNOWN => {
                    closes[id.index()] = closes[next.index()] || is_closing_bracket(network, id);
                    of[id.index()] = of[next.index()];
                }
                Node::Byte { .. } => late.push(id),
                _ => {
                    of[id.index()] = Joint(nodes.len() as u32);
                    nodes.push(id);
                }
            }
        }
        let mut literal = Vec::new();
        for mut id in late {
            while of[id.index()] == UNKNOWN
                && let Node::Byte { next, .. } = network.nodes[id.index()]
            {
                literal.push(id);
                id = next;
            }
            let (joint, mut has_bracket) = (of[id.index()], closes[id.index()]);
            for byte in literal.drain(..).rev() {
                has_bracket |= is_closing_bracket(network, byte);
                (of[byte.index()], closes[byte.index()]) = (joint, has_bracket);
            }
        }
        Self { nodes: nodes.into(), of: of.into(), closes: closes.into() }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = Joint> + Clone + use<> {
        (0..self.nodes.len() as u32).map(Joint)
    }

    /// Returns the joint that a node is, or that its bytes lead to.
    #[inline]
    pub(crate) fn at(&self, node: NodeId) -> Joint {
        self.of[node.index()]
    }

    /// Checks whether a closing bracket is between a node and its joint.
    #[inline]
    pub(super) fn closes(&self, node: NodeId) -> bool {
        self.closes[node.index()]
    }

    #[inline]
    pub(super) fn node(&self, joint: Joint) -> NodeId {
        self.nodes[joint.index()]
    }

    /// Returns the node of a joint.
    #[inline]
    pub(super) fn get(&self, network: &Network, joint: Joint) -> Node {
        network.nodes[self.node(joint).index()]
    }

    /// Returns the joints that follow in the same machine.
    pub(super) fn successors<'n>(
        &'n self,
        network: &'n Network,
        joint: Joint,
    ) -> impl Iterator<Item = Joint> + 'n {
        successors(network, self.node(joint)).map(|next| self.at(next))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.of) + size_of_val(&*self.closes)
    }
}

/// Returns the nodes that follow in the same machine.
pub(super) fn successors(network: &Network, node: NodeId) -> impl Iterator<Item = NodeId> + Clone + '_ {
    let (one, many): (Option<NodeId>, &[NodeId]) = match network.nodes[node.index()] {
        Node::Byte { next, .. } | Node::Call { next, .. } => (Some(next), &[]),
        Node::Split { start, len } => (None, network.targets(start, len)),
        Node::Final => (None, &[]),
    };
    one.into_iter().chain(many.iter().copied())
}

/// Returns the bytes from a node to its joint, as ranges.
pub(super) fn bytes_from(network: &Network, mut node: NodeId) -> impl Iterator<Item = (u8, u8)> + '_ {
    core::iter::from_fn(move || match network.nodes[node.index()] {
        Node::Byte { low, high, next } => {
            node = next;
            Some((low, high))
        }
        _ => None,
    })
}

pub(super) fn is_closing_bracket(network: &Network, node: NodeId) -> bool {
    matches!(
        network.nodes[node.index()],
        Node::Byte { low: b'}', high: b'}', .. } | Node::Byte { low: b']', high: b']', .. }
    )
}
