//! Where to go on when a rule is done: stacks that share their tails and can be many at once.
//!
//! A stack is a number: 0 is the bottom, every other number a node with a frame and the stack below. Stacks are never
//! changed, so threads, history and forks share them. When two threads come to the same state with different
//! stacks, they become one thread on the *union* of the two – this is the graph-structured stack of generalised
//! parsers, and what keeps ambiguous grammars polynomial.
//!
//! ```text
//!   union ─┬─▶ (after x) ─▶ (after list) ─▶ bottom
//!          └─▶ (after y) ──────▲
//! ```

use core::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::register::Register;
use crate::compile::network::Scope;
use crate::program::{IS_LIMIT, IS_LOOP, IS_SCOPE, NetState};

/// The bottom of every stack. The only frame that stands directly on it is [`Frame::FINISH`].
pub(crate) const BOTTOM: u32 = 0;

/// Where to go on: a state of the network, another round of a counted repetition, or the end of a scope or of something limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame {
    /// A [`NetState`], or the number of a loop, scope or limit with [`IS_LOOP`], [`IS_SCOPE`] or [`IS_LIMIT`] set.
    pub(crate) raw: u32,
    /// Rounds that are done, for a loop; a [`Register`], for a scope; for a limit the number of the first token that may not
    /// belong to it any more.
    pub(crate) count: u32,
}

pub(crate) enum Resume {
    At(NetState),
    /// The root is done.
    Finish,
    Loop {
        index: u32,
        rounds: u32,
    },
    Scope {
        index: u32,
        register: Register,
    },
    Limit {
        deadline: u32,
    },
}

impl Frame {
    /// What stands at the bottom of every stack.
    pub(crate) const FINISH: Self = Self { raw: u32::MAX - 1, count: 0 };

    pub(crate) fn at(state: NetState) -> Self {
        Self { raw: state.raw(), count: 0 }
    }

    pub(crate) fn counted(index: u32, rounds: u32) -> Self {
        Self { raw: index | IS_LOOP, count: rounds }
    }

    pub(crate) fn scope(index: u32, register: Register) -> Self {
        Self { raw: index | IS_SCOPE, count: register.0 }
    }

    pub(crate) fn limit(index: u32, deadline: u32) -> Self {
        Self { raw: index | IS_LIMIT, count: deadline }
    }

    #[inline]
    pub(crate) fn resume(self) -> Resume {
        match self.raw >> 30 {
            0 | 2 => Resume::At(NetState::from_raw(self.raw)),
            1 if self.raw & IS_LIMIT == IS_LIMIT => Resume::Limit { deadline: self.count },
            1 if self.raw & IS_SCOPE == IS_SCOPE => {
                Resume::Scope { index: self.raw & !IS_SCOPE, register: Register(self.count) }
            }
            1 => Resume::Loop { index: self.raw & !IS_LOOP, rounds: self.count },
            _ => Resume::Finish,
        }
    }
}

/// What stepping needs of stacks.
pub(crate) trait Stacks {
    /// A stack with one more frame.
    fn push(&mut self, frame: Frame, below: u32) -> u32;
    /// Appends the top frames of a stack, each with what is below; nothing for the bottom.
    fn pop(&mut self, stack: u32, out: &mut Vec<(Frame, u32)>);
    /// Both stacks.
    fn union(&mut self, a: u32, b: u32) -> u32;

    /// The number of the token that is being read.
    fn token(&self) -> u32;

    /// What a scope remembers when it begins.
    fn fresh(&mut self, scope: &Scope) -> Register {
        Register::fresh(scope)
    }

    /// A value has ended on this stack, before or after the current byte. Appends the stacks to go on with: none if the
    /// value is not new to its scope. Unless somebody remembers values, all are new.
    fn check(&mut self, stack: u32, _when: When, out: &mut Vec<u32>) {
        out.push(stack);
    }
}

/// A place in the text, as seen by a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    BeforeByte,
    AfterByte,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    frame: Frame,
    below: u32,
}

/// A `Node` with this frame is a union: `below` is where its members begin, `frame.count` how many there are.
const UNION: u32 = u32::MAX;

/// The stacks of one matcher.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    members: Vec<u32>,
    /// Nodes from here on were made by the current byte; equal ones among them are shared.
    recent: usize,
    /// The number of the token that is being read.
    pub(crate) token: u32,
    /// All nodes by their content, from the first union on. Unions multiply unless equal stacks have equal numbers;
    /// without unions nothing can multiply, and looking at the recent nodes is enough.
    index: Option<HashTable<u32>>,
}

/// A point to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    nodes: u32,
    members: u32,
}

impl Arena {
    pub(crate) fn mark(&self) -> Mark {
        Mark { nodes: self.nodes.len() as u32, members: self.members.len() as u32 }
    }

    /// Whether a stack was made after a mark.
    pub(crate) fn is_newer(stack: u32, mark: Mark) -> bool {
        stack > mark.nodes
    }

    /// Forgets what was made since.
    pub(crate) fn truncate(&mut self, mark: Mark) {
        if mark.members == 0 {
            self.index = None;
        }
        if let Some(mut index) = self.index.take() {
            for at in mark.nodes as usize..self.nodes.len() {
                let number = at as u32 + 1;
                if let Ok(entry) = index.find_entry(self.hash(&self.nodes[at]), |&other| other == number) {
                    entry.remove();
                }
            }
            self.index = Some(index);
        }
        self.nodes.truncate(mark.nodes as usize);
        self.members.truncate(mark.members as usize);
        self.recent = self.recent.min(self.nodes.len());
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(Mark::default());
    }

    /// A new byte begins.
    pub(crate) fn next_byte(&mut self) {
        self.recent = self.nodes.len();
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len() + self.members.len()
    }

    /// The top frame of a stack, or the stacks that it is a union of. The bottom has neither.
    pub(crate) fn top(&self, stack: u32) -> Top<'_> {
        let Some(node) = self.node(stack) else { return Top::Union(&[]) };
        if node.frame.raw == UNION {
            Top::Union(self.members(node))
        } else {
            Top::Frame(node.frame, node.below)
        }
    }

    /// Appends the top frames of a stack, each with what is below.
    #[inline]
    pub(crate) fn frames(&self, stack: u32, out: &mut Vec<(Frame, u32)>) {
        match self.top(stack) {
            Top::Frame(frame, below) => out.push((frame, below)),
            // Unions are flat: their members are plain.
            Top::Union(members) => {
                out.extend(members.iter().filter_map(|&m| self.node(m)).map(|n| (n.frame, n.below)));
            }
        }
    }

    /// The node of a stack; the bottom, and stacks that are kept elsewhere, have none.
    fn node(&self, stack: u32) -> Option<&Node> {
        self.nodes.get((stack as usize).wrapping_sub(1))
    }

    fn members(&self, node: &Node) -> &[u32] {
        let start = node.below as usize;
        &self.members[start..start + node.frame.count as usize]
    }

    fn hash(&self, node: &Node) -> u64 {
        if node.frame.raw == UNION {
            FxBuildHasher.hash_one(self.members(node))
        } else {
            FxBuildHasher.hash_one((node.frame, node.below))
        }
    }

    fn same(&self, a: &Node, b: &Node) -> bool {
        match (a.frame.raw == UNION, b.frame.raw == UNION) {
            (true, true) => self.members(a) == self.members(b),
            (false, false) => (a.frame, a.below) == (b.frame, b.below),
            _ => false,
        }
    }

    /// Adds a node, or finds its equal.
    fn add(&mut self, node: Node) -> u32 {
        let number = self.nodes.len() as u32 + 1;
        if let Some(mut index) = self.index.take() {
            let hash = self.hash(&node);
            let found = index.find(hash, |&other| self.same(&self.nodes[other as usize - 1], &node)).copied();
            if found.is_none() {
                index.insert_unique(hash, number, |&other| self.hash(&self.nodes[other as usize - 1]));
            }
            self.index = Some(index);
            if let Some(found) = found {
                return found;
            }
        }
        self.nodes.push(node);
        number
    }

    /// Begins to number equal stacks equally.
    fn start_index(&mut self) {
        let mut index = HashTable::with_capacity(self.nodes.len() * 2);
        for (at, node) in self.nodes.iter().enumerate() {
            let hash = self.hash(node);
            if index.find(hash, |&other: &u32| self.same(&self.nodes[other as usize - 1], node)).is_none() {
                index.insert_unique(hash, at as u32 + 1, |&other| self.hash(&self.nodes[other as usize - 1]));
            }
        }
        self.index = Some(index);
    }
}

pub(crate) enum Top<'a> {
    Frame(Frame, u32),
    Union(&'a [u32]),
}

impl Stacks for Arena {
    #[inline]
    fn push(&mut self, frame: Frame, below: u32) -> u32 {
        if self.index.is_some() {
            return self.add(Node { frame, below });
        }
        let recent = &self.nodes[self.recent..];
        if let Some(at) = recent.iter().position(|node| node.below == below && node.frame == frame) {
            return (self.recent + at) as u32 + 1;
        }
        self.add(Node { frame, below })
    }

    #[inline]
    fn pop(&mut self, stack: u32, out: &mut Vec<(Frame, u32)>) {
        self.frames(stack, out);
    }

    fn token(&self) -> u32 {
        self.token
    }

    fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let mut members: Vec<u32> = Vec::new();
        self.flatten(a, &mut members);
        self.flatten(b, &mut members);
        self.union_of(members)
    }
}

impl Arena {
    /// Appends a stack, or the members of a union.
    pub(crate) fn flatten(&self, stack: u32, members: &mut Vec<u32>) {
        match self.node(stack) {
            Some(node) if node.frame.raw == UNION => members.extend_from_slice(self.members(node)),
            _ => members.push(stack),
        }
    }

    /// All of these stacks, none of which is a union.
    pub(crate) fn union_of(&mut self, mut members: Vec<u32>) -> u32 {
        // Equal frames on equal stacks are one; stacks of elsewhere are told apart by their number.
        let key = |&stack: &u32| match self.node(stack) {
            Some(node) => (node.frame, node.below),
            None => (Frame { raw: u32::MAX, count: stack }, stack),
        };
        members.sort_unstable_by_key(key);
        members.dedup_by_key(|stack| key(stack));
        if let [only] = *members {
            return only;
        }
        if self.index.is_none() {
            self.start_index();
        }
        let below = self.members.len() as u32;
        let count = members.len() as u32;
        self.members.extend_from_slice(&members);
        let number = self.add(Node { frame: Frame { raw: UNION, count }, below });
        if (number as usize) < self.nodes.len() {
            // It was there before; its members need not be kept twice.
            self.members.truncate(below as usize);
        }
        number
    }
}
