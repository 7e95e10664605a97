//! The recursive transition network: one small NFA, a *machine*, for each rule.
//!
//! ```text
//!   list ::= "[" item ("," item)* "]"
//!
//!   ─▶ (b'[') ─▶ (call item) ─▶ ⟨split⟩ ─▶ (b']') ─▶ ((final))
//!                                │  ▲
//!                                ▼  │
//!                             (b',') ─▶ (call item)
//! ```
//! Every node lies on a path to the final node of its machine, so a match can never run into a dead end. A machine does
//! not match the empty text; where a callee may be empty, the caller has a path around the call.

use core::cmp::Reverse;
use core::fmt;

use maskwright_grammar::ExprId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::LeafId;
use crate::count::Bounds;
use crate::node_visits;
use crate::small_set::SmallSet;

/// Tail calls are followed into a cell while it has at most this many nodes. Larger cells, one for each place in a
/// text, would fill the memory.
const MAX_CELL_NODES: usize = 4_096;

/// The number of words that are tracked by a bit each; see `program::exits`.
pub(crate) const MAX_WORDS: usize = 128;

/// The kind of the values of a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Values {
    /// Strings that can always be continued.
    #[default]
    Endless,
    /// Integers that can always be continued unless they are zero, perhaps together with endless strings.
    Integers,
    /// Strings that can be continued up to a number of characters. Each length is another value.
    Long(Reverse<u32>),
    /// Other values as well.
    Simple,
    /// Arrays and objects as well, without a string that can always be continued.
    Nested,
}

/// A node of a [`Network`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Consecutive nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeRange {
    pub(crate) start: NodeId,
    pub(crate) end: NodeId,
}

impl NodeRange {
    pub(crate) fn contains(self, node: NodeId) -> bool {
        self.start <= node && node < self.end
    }

    pub(crate) fn len(self) -> u32 {
        self.end.0 - self.start.0
    }

    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator {
        (self.start.0..self.end.0).map(NodeId)
    }
}

/// A machine of a [`Network`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MachineId(pub(crate) u32);

impl MachineId {
    /// The machine of the root.
    pub(crate) const ROOT: Self = Self(0);

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A [`Loop`] of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LoopId(pub(crate) u32);

impl LoopId {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A [`Scope`] of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ScopeId(pub(crate) u32);

impl ScopeId {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A [`Limit`] of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LimitId(pub(crate) u32);

impl LimitId {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A word: the only value that a check allows. An index into [`Network::words`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WordId(pub(crate) u32);

/// The words of one scope that keeps a set of them.
#[derive(Clone, Debug)]
pub(crate) struct WordScope {
    /// The words in ascending order. Bit i of a set stands for word i.
    pub(crate) words: Box<[WordId]>,
    /// The words that must be in the set when the scope ends.
    pub(crate) required: Box<[u64]>,
    /// Pairs of bits: if the first is in the set, the second must be, too.
    pub(crate) needs: Box<[(u32, u32)]>,
    /// For each word, the bits of the words that may still come after it. Empty if the words have no fixed order.
    pub(crate) later: Box<[u64]>,
    /// Whether there are other values, which are listed.
    pub(crate) has_others: bool,
}

/// One node of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Takes a byte of a range.
    Byte { low: u8, high: u8, next: NodeId },
    /// Continues at each of several nodes, without taking a byte.
    Split { start: u32, len: u32 },
    /// Matches the callee, then continues at `next`.
    Call { callee: Callee, next: NodeId },
    /// Ends the machine.
    Final,
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Callee {
    Machine(MachineId),
    Leaf(LeafId),
    /// A counted repetition of a machine.
    Loop(LoopId),
    /// A machine inside which values must differ.
    Scope(ScopeId),
    /// A machine that may take at most some number of tokens.
    Limit(LimitId),
    /// A check, which takes no byte: the value that has just ended must be new to its scope.
    Check,
}

/// The automaton of one rule, or of an expression that is used in many places.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The expression that it matches.
    pub(crate) expr: ExprId,
    /// Its nodes, the final one first.
    pub(crate) nodes: NodeRange,
    /// The start nodes. After `compile::left`, the nodes that take the first byte or make the first call.
    pub(crate) start: Box<[NodeId]>,
    /// The nodes that `compile::factor` has made for its start.
    pub(crate) shared: NodeRange,
    /// An upper bound on the number of start nodes when tail calls are followed. 0 if it was not computed, which means
    /// that there are few.
    pub(crate) width: u32,
}

/// `body`, from `min` to `max` times, counted on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Loop {
    pub(crate) body: MachineId,
    pub(crate) min: u32,
    /// The maximum, or `u32::MAX` for "no bound".
    pub(crate) max: u32,
}

impl Loop {
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { min: self.min, max: self.max }
    }
}

/// Two strings: if the first is among the values of a scope, the second must be, too.
pub(crate) type Need = (Box<[u8]>, Box<[u8]>);

/// `body`, whose values must differ.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The scope in the grammar.
    pub(crate) expr: ExprId,
    pub(crate) body: MachineId,
    /// The strings that must be among the values when the scope ends, in the form in which values are compared.
    pub(crate) required: Box<[Box<[u8]>]>,
    /// The pairs in ascending order.
    pub(crate) needs: Box<[Need]>,
    /// The strings that may be missing when the scope ends: those that are required and those that others need, in
    /// ascending order.
    pub(crate) wanted: Box<[Box<[u8]>]>,
    pub(crate) values: Values,
    /// An upper bound on the number of values of its finite kinds. A large number if that is not known.
    pub(crate) finite: u32,
    /// Whether an infinite kind of values overlaps with a finite kind, which has fewer values to choose from.
    pub(crate) is_mixed: bool,
    /// Its words, if they are kept in a set and all other values can always be new.
    pub(crate) words: Option<Box<WordScope>>,
}

impl Scope {
    /// Checks whether some of its values are listed.
    pub(crate) fn has_list(&self) -> bool {
        self.words.as_ref().is_none_or(|words| words.has_others)
    }

    /// Returns the strings that may be missing among the listed values.
    pub(crate) fn listed(&self) -> &[Box<[u8]>] {
        if self.words.is_some() { &[] } else { &self.wanted }
    }

    /// Returns its words in their order, if they have one.
    pub(crate) fn words_in_order(&self) -> Vec<WordId> {
        let Some(scope) = self.words.as_ref().filter(|scope| !scope.later.is_empty()) else {
            return Vec::new();
        };
        let later = scope.later.chunks(scope.required.len());
        let count = |bits: &[u64]| Reverse(bits.iter().map(|bits| bits.count_ones()).sum::<u32>());
        let mut words: Vec<_> = later.map(count).zip(scope.words.iter().copied()).collect();
        words.sort_unstable();
        words.into_iter().map(|(_, word)| word).collect()
    }

    /// Checks whether listed values may need others.
    pub(crate) fn has_listed_needs(&self) -> bool {
        self.words.is_none() && !self.needs.is_empty()
    }

    /// Returns the strings that a string among the values needs.
    pub(crate) fn needs_of<'s>(&'s self, form: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        let first = self.needs.partition_point(|(one, _)| **one < *form);
        self.needs[first..].iter().take_while(move |(one, _)| **one == *form).map(|(_, other)| &**other)
    }

    /// Checks whether a string is required, or needed by a value that was seen.
    pub(crate) fn wants(&self, form: &[u8], was_seen: impl Fn(&[u8]) -> bool) -> bool {
        self.required.binary_search_by(|name| (**name).cmp(form)).is_ok()
            || self.needs.iter().any(|(one, other)| **other == *form && was_seen(one))
    }
}

/// `body`, in at most this many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) body: MachineId,
    pub(crate) tokens: u32,
}

/// All machines. That of the root is [`MachineId::ROOT`].
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<Node>,
    /// The targets of all splits. The [width](Self::split_width) of each split comes right before its targets.
    pub(crate) targets: Vec<NodeId>,
    /// The greatest width of a split in the machine that is being built.
    pub(crate) widest: u32,
    pub(crate) machines: Vec<Machine>,
    pub(crate) loops: Vec<Loop>,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) limits: Vec<Limit>,
    /// The checks of values of which there are infinitely many, with the leaf of the value.
    pub(crate) endless_checks: FxHashMap<NodeId, LeafId>,
    /// The checks among them whose values are strings that can always be continued.
    pub(crate) lasting_checks: FxHashSet<NodeId>,
    /// The checks of values of which there is only one, with its index in `words`.
    pub(crate) word_checks: FxHashMap<NodeId, WordId>,
    /// The checks of scopes that keep sets of words; see [`super::words`].
    pub(crate) set_checks: FxHashSet<NodeId>,
    /// The values of `word_checks`, in the form in which values are compared.
    pub(crate) words: Vec<Box<[u8]>>,
    /// The strings that are required or needed in some scope, or need others, in the form in which values are compared,
    /// in ascending order.
    pub(crate) names: Vec<Box<[u8]>>,
    /// The checks of values that may be in `names`, with their indices there.
    pub(crate) name_checks: FxHashMap<NodeId, Box<[u32]>>,
    /// The checks for which it is not known whether the value may be in `names`.
    pub(crate) unnamed_checks: FxHashSet<NodeId>,
    /// Whether some values that must differ are arrays or objects, and values may run out.
    pub(crate) nested_values: bool,
    /// Whether some values that must differ are neither words nor leaves with infinitely many values.
    pub(crate) other_values: bool,
    /// Whether a value that must be new is written by a machine that also writes other things, and calls leaves for
    /// parts of the value. The stack then does not show that a text is inside the value.
    pub(crate) scattered_values: bool,
}

impl Network {
    /// Returns the id of the next node.
    pub(crate) fn end(&self) -> NodeId {
        NodeId(self.nodes.len() as u32)
    }

    /// Returns all machines, starting with the root's.
    pub(crate) fn machine_ids(&self) -> impl DoubleEndedIterator<Item = MachineId> + Clone + use<> {
        (0..self.machines.len() as u32).map(MachineId)
    }

    /// Adds a node.
    pub(crate) fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds a node that continues at each target. A single target is returned as it is.
    pub(crate) fn split(&mut self, targets: &[NodeId]) -> NodeId {
        if let [only] = *targets {
            return only;
        }
        let node = self.split_node(targets);
        self.push(node)
    }

    pub(crate) fn split_node(&mut self, targets: &[NodeId]) -> Node {
        let width = targets.iter().fold(0, |sum: u32, &node| sum.saturating_add(self.split_width(node)));
        self.widest = self.widest.max(width);
        self.targets.push(NodeId(width));
        let start = self.targets.len() as u32;
        self.targets.extend_from_slice(targets);
        Node::Split { start, len: targets.len() as u32 }
    }

    /// Returns the number of nodes that a split leads to, also through splits that existed before it. Returns 1 for
    /// other nodes.
    pub(crate) fn split_width(&self, node: NodeId) -> u32 {
        match self.nodes.get(node.index()) {
            Some(&Node::Split { start, .. }) => self.targets[start as usize - 1].0,
            _ => 1,
        }
    }

    /// Collects the nodes that splits lead to, without the splits, sorted and without duplicates. Returns whether the
    /// final node, which is not collected, is among them.
    pub(crate) fn closure(&self, from: &[NodeId], found: &mut SmallVec<[NodeId; 8]>) -> bool {
        self.close(from, found, false)
    }

    /// Does the same and also follows calls of machines in tail position: to return from such a call is to return from
    /// the caller. So the properties of an object become one automaton, although each of them has a machine.
    pub(crate) fn wide_closure(&self, from: &[NodeId], found: &mut SmallVec<[NodeId; 8]>) -> bool {
        self.close(from, found, true)
    }

    fn close(&self, from: &[NodeId], found: &mut SmallVec<[NodeId; 8]>, wide: bool) -> bool {
        let mut is_final = false;
        let mut seen = SmallSet::default();
        let mut work: SmallVec<[NodeId; 16]> = SmallVec::from_slice(from);
        let mut visited = 0;
        while let Some(node) = work.pop() {
            visited += 1;
            match self.nodes[node.index()] {
                Node::Final => is_final = true,
                Node::Split { start, len } => {
                    if seen.insert(node) {
                        work.extend_from_slice(self.targets(start, len));
                    }
                }
                Node::Call { callee: Callee::Machine(machine), next }
                    if wide
                        && matches!(self.nodes[next.index()], Node::Final)
                        && found.len() + self.machines[machine.index()].width as usize <= MAX_CELL_NODES =>
                {
                    if seen.insert(node) {
                        work.extend_from_slice(&self.machines[machine.index()].start);
                    }
                }
                Node::Byte { .. } | Node::Call { .. } => found.push(node),
            }
        }
        if found.len() > 1 {
            found.sort_unstable();
            found.dedup();
        }
        node_visits::count(visited);
        is_final
    }

    /// Checks whether no listed value is required, and a new one is always possible.
    pub(crate) fn has_plain_scopes(&self) -> bool {
        self.scopes.iter().all(|scope| scope.listed().is_empty() && scope.values == Values::Endless)
    }

    /// Returns the words that are tracked by bits: the first [`MAX_WORDS`].
    pub(crate) fn followed_words(&self) -> &[Box<[u8]>] {
        &self.words[..self.words.len().min(MAX_WORDS)]
    }

    /// Returns the index of the only value of a check, if it is tracked by a bit.
    pub(crate) fn followed_word(&self, check: NodeId) -> Option<u32> {
        self.word_checks.get(&check).map(|word| word.0).filter(|word| (*word as usize) < MAX_WORDS)
    }

    /// Returns the machine that a call runs, if it runs one.
    pub(crate) fn machine_of(&self, callee: Callee) -> Option<MachineId> {
        match callee {
            Callee::Machine(machine) => Some(machine),
            Callee::Loop(index) => Some(self.loops[index.index()].body),
            Callee::Scope(index) => Some(self.scopes[index.index()].body),
            Callee::Limit(index) => Some(self.limits[index.index()].body),
            Callee::Leaf(_) | Callee::Check => None,
        }
    }

    /// Returns how often a call runs its machine.
    pub(crate) fn rounds(&self, callee: Callee) -> Bounds {
        match callee {
            Callee::Loop(index) => self.loops[index.index()].bounds(),
            _ => Bounds { min: 1, max: 1 },
        }
    }

    pub(crate) fn targets(&self, start: u32, len: u32) -> &[NodeId] {
        &self.targets[start as usize..(start + len) as usize]
    }
}
