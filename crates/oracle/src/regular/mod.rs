//! Regular sets by Brzozowski derivatives.
//!
//! The derivative of a set by a byte is what may follow that byte: `b⁻¹L = { w : bw ∈ L }`. A text is in `L` if the
//! derivative by all its bytes contains the empty text. Derivatives of unions, intersections and complements are the
//! unions, intersections and complements of the derivatives, so this needs no automaton (Brzozowski, *Derivatives of
//! Regular Expressions*, 1964):
//!
//! ```text
//! a⁻¹((ab)* ∧ ¬aba)  =  a⁻¹(ab)* ∧ ¬ a⁻¹aba  =  b(ab)* ∧ ¬ba
//! ```
//!
//! The sets contain bytes, not characters: a class is expanded to its UTF-8 encodings ([`utf8`]), and a JSON string
//! contains the derivative of the text that it represents ([`json`]).
//!
//! Nodes are interned, and facts about a node (its derivatives, its shortest text) are cached. They are facts about an
//! immutable value, so nothing has to be invalidated.
//!
//! Functions here recurse as deep as an expression nests. That is fine for a test tool, and the reason not to use it
//! for anything else.

mod json;
mod lower;
mod shortest;
mod utf8;

use rustc_hash::FxHashMap;

use json::{Stage, Step};
pub(crate) use lower::lower;

/// A regular set inside one [`Arena`]. Equal ids are equal sets; the converse need not hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct NodeId(u32);

/// The error if a query took more steps than allowed, so that there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// The number of nodes that were derived.
    pub steps: u64,
}

impl core::fmt::Display for Unknown {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "it is unknown whether an intersection or complement is empty: gave up after {} steps; \
             allow more with `Oracle::with_limit` or use a smaller grammar",
            self.steps
        )
    }
}

impl core::error::Error for Unknown {}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Node {
    Never,
    Empty,
    /// One byte of an inclusive range.
    Range(u8, u8),
    Seq(NodeId, NodeId),
    Alt(Box<[NodeId]>),
    Repeat {
        body: NodeId,
        min: u32,
        max: Option<u32>,
    },
    And(Box<[NodeId]>),
    /// Every byte string, well-formed or not, that is not in the set.
    Complement(NodeId),
    /// The rest of a JSON string at this stage. The node is the rest of its text, within well-formed UTF-8.
    Json(Stage, NodeId),
}

/// All nodes, and the facts about them.
#[derive(Debug)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    index: FxHashMap<Node, NodeId>,
    nullable: Vec<bool>,
    derivatives: FxHashMap<(NodeId, u8), NodeId>,
    shortest: FxHashMap<NodeId, Option<u64>>,
    /// The number of operands derived so far.
    steps: u64,
    /// The number of operands that one query may derive.
    limit: u64,
}

impl Arena {
    /// Creates an empty arena that takes at most `limit` steps for one query.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            nodes: Vec::new(),
            index: FxHashMap::default(),
            nullable: Vec::new(),
            derivatives: FxHashMap::default(),
            shortest: FxHashMap::default(),
            steps: 0,
            limit,
        }
    }

    /// Checks whether the empty text is in the set.
    pub(crate) fn is_nullable(&self, node: NodeId) -> bool {
        self.nullable[node.0 as usize]
    }

    /// Returns the set of what may follow `byte`.
    pub(crate) fn derivative(&mut self, node: NodeId, byte: u8) -> NodeId {
        if let Some(&known) = self.derivatives.get(&(node, byte)) {
            return known;
        }
        self.steps += 1;
        let derived = match self.nodes[node.0 as usize].clone() {
            Node::Never | Node::Empty => self.never(),
            Node::Range(low, high) => {
                if (low..=high).contains(&byte) {
                    self.empty()
                } else {
                    self.never()
                }
            }
            Node::Seq(first, rest) => {
                let longer_first = self.derivative(first, byte);
                let within_first = self.seq(longer_first, rest);
                if self.is_nullable(first) {
                    let within_rest = self.derivative(rest, byte);
                    self.alt(vec![within_first, within_rest])
                } else {
                    within_first
                }
            }
            Node::Alt(parts) => {
                let parts = parts.iter().map(|&part| self.derivative(part, byte)).collect();
                self.alt(parts)
            }
            Node::Repeat { body, min, max } => {
                // For a nullable body `min` is 0, so the byte can be assumed to be in the first round.
                let first = self.derivative(body, byte);
                let rest = self.repeat(body, min.saturating_sub(1), max.map(|max| max - 1));
                self.seq(first, rest)
            }
            Node::And(parts) => {
                let parts = parts.iter().map(|&part| self.derivative(part, byte)).collect();
                self.and(parts)
            }
            Node::Complement(inner) => {
                let inner = self.derivative(inner, byte);
                self.complement(inner)
            }
            Node::Json(stage, text) => self.json_derivative(stage, text, byte),
        };
        self.derivatives.insert((node, byte), derived);
        derived
    }

    fn json_derivative(&mut self, stage: Stage, text: NodeId, byte: u8) -> NodeId {
        match stage.step(byte) {
            Step::To(stage) => self.json(stage, text),
            Step::Raw(byte) => {
                let text = self.derivative(text, byte);
                self.json(Stage::Text, text)
            }
            Step::Decoded(c) => {
                let mut text = text;
                for &byte in c.encode_utf8(&mut [0; 4]).as_bytes() {
                    text = self.derivative(text, byte);
                }
                self.json(Stage::Text, text)
            }
            Step::Closed if self.is_nullable(text) => self.empty(),
            Step::Closed | Step::Refused => self.never(),
        }
    }
}

/// Constructors. Each normalizes the order of its operands, so that a node has finitely many derivatives.
impl Arena {
    fn never(&mut self) -> NodeId {
        self.intern(Node::Never)
    }

    fn empty(&mut self) -> NodeId {
        self.intern(Node::Empty)
    }

    fn any_bytes(&mut self) -> NodeId {
        let never = self.never();
        self.intern(Node::Complement(never))
    }

    fn seq(&mut self, first: NodeId, rest: NodeId) -> NodeId {
        match (&self.nodes[first.0 as usize], &self.nodes[rest.0 as usize]) {
            (Node::Never, _) | (_, Node::Empty) => first,
            (_, Node::Never) | (Node::Empty, _) => rest,
            (&Node::Seq(first, middle), _) => {
                let rest = self.seq(middle, rest);
                self.seq(first, rest)
            }
            _ => self.intern(Node::Seq(first, rest)),
        }
    }

    fn alt(&mut self, parts: Vec<NodeId>) -> NodeId {
        let (never, everything) = (self.never(), self.any_bytes());
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match &self.nodes[part.0 as usize] {
                Node::Alt(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        flat.sort_unstable();
        flat.dedup();
        flat.retain(|&part| part != never);
        match *flat {
            [] => never,
            [only] => only,
            _ if flat.contains(&everything) => everything,
            _ => self.intern(Node::Alt(flat.into())),
        }
    }

    fn and(&mut self, parts: Vec<NodeId>) -> NodeId {
        let (never, everything) = (self.never(), self.any_bytes());
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match &self.nodes[part.0 as usize] {
                Node::And(inner) => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        self.join_json(&mut flat);
        flat.sort_unstable();
        flat.dedup();
        flat.retain(|&part| part != everything);
        match *flat {
            [] => everything,
            [only] => only,
            _ if flat.contains(&never) || self.is_contradiction(&flat) => never,
            _ => self.intern(Node::And(flat.into())),
        }
    }

    /// Checks whether one part excludes another: `x ∧ ¬x`, or `x ∧ ¬(x ∨ y)`. Most empty sets are of this form.
    fn is_contradiction(&self, parts: &[NodeId]) -> bool {
        parts.iter().any(|part| match self.nodes[part.0 as usize] {
            Node::Complement(excluded) => {
                let among = match &self.nodes[excluded.0 as usize] {
                    Node::Alt(branches) => branches,
                    _ => &[][..],
                };
                parts.contains(&excluded) || among.iter().any(|branch| parts.contains(branch))
            }
            _ => false,
        })
    }

    /// Merges several JSON strings at the same stage.
    ///
    /// How a spelling is decoded depends on the stage alone. So a spelling of a text in `L` that is (not) a spelling of
    /// a text in `M` represents a text that is in `L` and (not) in `M`.
    fn join_json(&mut self, parts: &mut Vec<NodeId>) {
        let Some(stage) = parts.iter().find_map(|&part| match self.nodes[part.0 as usize] {
            Node::Json(stage, _) => Some(stage),
            _ => None,
        }) else {
            return;
        };
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        for &part in &*parts {
            match self.nodes[part.0 as usize] {
                Node::Json(at, text) if at == stage => texts.push(text),
                Node::Complement(inner) => match self.nodes[inner.0 as usize] {
                    Node::Json(at, text) if at == stage => texts.push(self.complement(text)),
                    _ => others.push(part),
                },
                _ => others.push(part),
            }
        }
        let text = self.and(texts);
        others.push(self.json(stage, text));
        *parts = others;
    }

    fn complement(&mut self, inner: NodeId) -> NodeId {
        match self.nodes[inner.0 as usize] {
            Node::Complement(inner) => inner,
            _ => self.intern(Node::Complement(inner)),
        }
    }

    fn repeat(&mut self, body: NodeId, min: u32, max: Option<u32>) -> NodeId {
        // A nullable body can replace missing rounds.
        let min = if self.is_nullable(body) { 0 } else { min };
        match (&self.nodes[body.0 as usize], max) {
            (_, Some(0)) | (Node::Empty, _) => self.empty(),
            (Node::Never, _) => {
                if min == 0 {
                    self.empty()
                } else {
                    body
                }
            }
            _ => self.intern(Node::Repeat { body, min, max }),
        }
    }

    /// N.B. `text` must be within well-formed UTF-8, or within the rest of it after a few bytes.
    fn json(&mut self, stage: Stage, text: NodeId) -> NodeId {
        if text == self.never() {
            return text;
        }
        let Some((missing, rest)) = stage.missing().zip(self.common_rest(stage, text)) else {
            return self.intern(Node::Json(stage, text));
        };
        // The text continues in the same way, however the escape ends. Represented without the digits read so far, this
        // is one node instead of thousands.
        let mut node = self.json(Stage::Text, rest);
        for choices in missing.into_iter().rev() {
            let choices = choices.iter().map(|&(low, high)| self.intern(Node::Range(low, high))).collect();
            let byte = self.alt(choices);
            node = self.seq(byte, node);
        }
        node
    }

    /// Returns the derivative of a text by each character that the escape can still represent, if all derivatives are
    /// the same.
    fn common_rest(&mut self, stage: Stage, text: NodeId) -> Option<NodeId> {
        let mut common = None;
        for &(first, last) in stage.spellable()?.ranges() {
            for ranges in utf8::byte_ranges(first, last) {
                if !self.is_common_rest(text, &ranges, &mut common) {
                    return None;
                }
            }
        }
        common
    }

    /// Checks whether all derivatives by bytes of the ranges are equal to `common`, which is set by the first of them.
    fn is_common_rest(&mut self, text: NodeId, ranges: &[(u8, u8)], common: &mut Option<NodeId>) -> bool {
        let Some((&(low, high), ranges)) = ranges.split_first() else {
            return *common.get_or_insert(text) == text;
        };
        let cuts = self.cuts(text);
        (low..=high).filter(|&byte| byte == low || cuts.contains(byte)).all(|byte| {
            let text = self.derivative(text, byte);
            self.is_common_rest(text, ranges, common)
        })
    }

    fn intern(&mut self, node: Node) -> NodeId {
        if let Some(&known) = self.index.get(&node) {
            return known;
        }
        let id = NodeId(self.nodes.len() as u32);
        let all = |parts: &[NodeId]| parts.iter().all(|&part| self.is_nullable(part));
        let nullable = match &node {
            Node::Never | Node::Range(..) | Node::Json(..) => false,
            Node::Empty => true,
            Node::Seq(first, rest) => all(&[*first, *rest]),
            Node::Alt(parts) => parts.iter().any(|&part| self.is_nullable(part)),
            Node::Repeat { body, min, .. } => *min == 0 || self.is_nullable(*body),
            Node::And(parts) => all(parts),
            Node::Complement(inner) => !self.is_nullable(*inner),
        };
        self.nodes.push(node.clone());
        self.nullable.push(nullable);
        self.index.insert(node, id);
        id
    }
}
