//! Stacks: where a thread continues when a rule is done. They share their tails, and a stack may stand for several at
//! once.
//!
//! A stack is a number: 0 is the bottom, any other number is a node with a frame and the stack below. Stacks are
//! immutable, so threads, history and forks share them. When two threads reach the same state with different stacks,
//! they become one thread on the *union* of the two. This is the graph-structured stack of generalized parsers.
//!
//! ```text
//!   union ─┬─▶ (after x) ─▶ (after list) ─▶ bottom
//!          └─▶ (after y) ──────▲
//! ```
//!
//! # Merging by future
//! A matcher only recognizes; it builds no tree. So two stacks after which the same texts can follow are equivalent, no
//! matter what led to them. Four rules keep stacks small, each of them exact:
//!
//! | rule | |
//! |---|---|
//! | equal frames share what is below, if that is one stack | `A·X ∪ A·Y = A·(X ∪ Y)` |
//! | counts are sets ([`crate::count`]) | `loop(1)·X ∪ loop(2)·X = loop({1, 2})·X` |
//! | a frame that may end at once covers what is below it | `A·X ∪ X = A·X` |
//! | a frame that repeats itself occurs once ([`Program::repeats_itself`]) | `A·A·X = A·X` |
//!
//! By the last rule, `e ::= e "+" e | num` has one stack for a sum of any length: after an operand, `("+" e)*` twice is
//! `("+" e)*`. [`Arena::set_merging`] switches the rules off, for comparison.
//!
//! The first rule is not applied where `X ∪ Y` would be a new union. It would determinize sets of stacks, and there are
//! grammars with exponentially many of them. In that case the members are only listed, as in any graph-structured
//! stack. All merging is bounded (`merge_stacks` in [`crate::tuning`]).

use core::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use smallvec::{SmallVec, smallvec};

use super::log::Log;
use crate::count::Count;
use crate::library::LineNodeId;
use crate::program::network::{LimitId, LoopId, Scope, ScopeId};
use crate::program::words::{Question, WordSetId};
use crate::program::{IS_LIMIT, IS_LOOP, IS_SCOPE, IS_WORDS, NetState, Program};
use crate::tuning::tuning;

/// A stack: the bottom, or a node of an [`Arena`] or of a `Line`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StackId(u32);

/// Marks the ids of stacks that are nodes of a line.
const ON_LINE: u32 = 1 << 31;

impl StackId {
    /// The bottom of every stack. The only frame directly above it is [`Frame::FINISH`].
    pub(crate) const BOTTOM: Self = Self(0);

    /// Returns the stack of a node of an arena.
    #[inline]
    fn of_node(at: usize) -> Self {
        Self(at as u32 + 1)
    }

    /// Returns the index of the node in an arena. For the bottom and for nodes of a line, the index is out of range.
    #[inline]
    fn node(self) -> usize {
        (self.0 as usize).wrapping_sub(1)
    }

    /// Returns the stack of a node of a line.
    #[inline]
    pub(super) const fn on_line(node: LineNodeId) -> Self {
        Self(node.raw() | ON_LINE)
    }

    /// Returns the node of a line, if it is one.
    #[inline]
    pub(super) fn line_node(self) -> Option<LineNodeId> {
        (self.0 & ON_LINE != 0).then_some(LineNodeId::new((self.0 & !ON_LINE) as usize))
    }

    pub(crate) fn raw(self) -> u32 {
        self.0
    }
}

/// The values of a scope: an entry of `Registers`, and whether the scope still lacks a required value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Register(pub(crate) u32);

/// Where to continue: a state of the network, another round of a counted repetition, or the end of a scope or of a
/// limited part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame {
    /// A [`NetState`], or the number of a loop, scope or limit with [`IS_LOOP`], [`IS_SCOPE`], [`IS_WORDS`] or
    /// [`IS_LIMIT`] set.
    pub(crate) raw: u32,
    /// For a loop, the [`Count`] of rounds that have begun. For a scope, a [`Register`] or a [`WordSetId`]. For a
    /// limit, the number of the first token that may no longer belong to it.
    pub(crate) count: u32,
}

pub(crate) enum Resume {
    At(NetState),
    /// The root is done.
    Finish,
    Loop {
        index: LoopId,
        rounds: Count,
    },
    Scope {
        index: ScopeId,
        register: Register,
    },
    /// The end of a scope that keeps a set of words. If it lists other values as well, the frame for those is below.
    Words {
        index: ScopeId,
        set: WordSetId,
    },
    Limit {
        deadline: u32,
    },
}

impl Frame {
    /// The lowest frame of every stack.
    pub(crate) const FINISH: Self = Self { raw: u32::MAX - 1, count: 0 };

    pub(crate) fn at(state: NetState) -> Self {
        Self { raw: state.raw(), count: 0 }
    }

    pub(crate) fn counted(index: LoopId, rounds: Count) -> Self {
        Self { raw: index.0 | IS_LOOP, count: rounds.raw() }
    }

    pub(crate) fn scope(index: ScopeId, register: Register) -> Self {
        Self { raw: index.0 | IS_SCOPE, count: register.0 }
    }

    pub(crate) fn words(index: ScopeId, set: WordSetId) -> Self {
        Self { raw: index.0 | IS_WORDS, count: set.0 }
    }

    pub(crate) fn limit(index: LimitId, deadline: u32) -> Self {
        Self { raw: index.0 | IS_LIMIT, count: deadline }
    }

    #[inline]
    pub(crate) fn resume(self) -> Resume {
        match self.raw >> 30 {
            0 | 2 => Resume::At(NetState::from_raw(self.raw)),
            1 if self.raw & IS_WORDS == IS_WORDS => {
                Resume::Words { index: ScopeId(self.raw & !IS_WORDS), set: WordSetId(self.count) }
            }
            1 if self.raw & IS_LIMIT == IS_LIMIT => Resume::Limit { deadline: self.count },
            1 if self.raw & IS_SCOPE == IS_SCOPE => {
                Resume::Scope { index: ScopeId(self.raw & !IS_SCOPE), register: Register(self.count) }
            }
            1 => Resume::Loop { index: LoopId(self.raw & !IS_LOOP), rounds: Count::from_raw(self.count) },
            _ => Resume::Finish,
        }
    }
}

/// The operations on stacks that stepping needs.
pub(crate) trait Stacks {
    /// Returns a stack with one more frame.
    fn push(&mut self, program: &Program, frame: Frame, below: StackId) -> StackId;
    /// Appends the top frames of a stack, each with the stack below. The bottom has none.
    fn pop(&mut self, stack: StackId, out: &mut Vec<(Frame, StackId)>);
    /// Returns the union of two stacks.
    fn union(&mut self, program: &Program, a: StackId, b: StackId) -> StackId {
        if a == b { a } else { self.union_all(program, &mut [a, b].into_iter()) }
    }
    /// Returns the union of these stacks, of which there must be at least one. Uniting them one by one would visit the
    /// first one each time.
    fn union_all(&mut self, program: &Program, stacks: &mut dyn Iterator<Item = StackId>) -> StackId;
    /// Checks whether every text that may follow `inner` may also follow `outer`. May return false if that is not easy
    /// to see.
    fn covers(&self, program: &Program, outer: StackId, inner: StackId) -> bool;
    /// Returns whether threads and stacks with the same future are merged.
    fn merges(&self) -> bool;
    /// Checks whether a stack is a union of many stacks.
    fn is_wide(&self, stack: StackId) -> bool;

    /// Returns the cost of unions since the last call, in visited stacks.
    fn effort(&mut self) -> u32;

    /// Called when a loop on a stack begins another round, with the room that is then left. `None` means that there is
    /// no room for the round.
    fn counts(&mut self, _index: LoopId, _below: StackId, _room: Option<u32>) {}

    /// Called when a step depends on the words that a scope has seen.
    fn asks(&mut self, _words: Frame, _below: StackId, _question: Question) {}

    /// Returns the number of the token that is being read.
    fn token(&self) -> u32;

    /// Returns the register of a scope that begins.
    fn fresh(&mut self, scope: &Scope) -> Register {
        Register::fresh(scope)
    }

    /// Called when a value has ended on this stack, before or after the current byte. Appends the stacks to continue
    /// with: none if its scope has seen the value. The default remembers no values, so all of them are new.
    fn check(&mut self, stack: StackId, _when: When, out: &mut Vec<StackId>) {
        out.push(stack);
    }
}

/// A position relative to the byte that is being stepped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    BeforeByte,
    AfterByte,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    frame: Frame,
    below: StackId,
}

/// Marks a node that is a union: `below` is the index of its first member, and `frame.count` the number of members.
const UNION: u32 = u32::MAX;

/// The number of nodes in a chunk that forks share.
const NODES_PER_CHUNK: usize = 64;

/// The stacks of one matcher.
#[derive(Debug)]
pub(crate) struct Arena {
    nodes: Log<Node, NODES_PER_CHUNK>,
    members: Vec<StackId>,
    /// The first node that the current byte has made. Equal nodes from here on are shared.
    recent: usize,
    /// The number of the token that is being read.
    pub(crate) token: u32,
    /// All nodes by their content, built when the first union is made. Unions multiply unless equal stacks have equal
    /// ids. Without unions, comparing with the recent nodes is enough.
    index: Option<HashTable<StackId>>,
    /// Whether the index is kept even if there are no unions.
    keeps_index: bool,
    merging: bool,
    /// The cost of unions since the last call of [`Stacks::effort`].
    effort: u32,
}

impl Default for Arena {
    fn default() -> Self {
        Self {
            nodes: Log::default(),
            members: Vec::new(),
            recent: 0,
            token: 0,
            index: None,
            keeps_index: false,
            merging: true,
            effort: 0,
        }
    }
}

/// A state of the arena to go back to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    nodes: u32,
    members: u32,
}

impl Arena {
    pub(crate) fn mark(&self) -> Mark {
        Mark { nodes: self.nodes.len() as u32, members: self.members.len() as u32 }
    }

    /// Checks whether a stack was made after a mark.
    pub(crate) fn is_newer(stack: StackId, mark: Mark) -> bool {
        stack.0 > mark.nodes
    }

    /// Removes everything that was made since a mark.
    pub(crate) fn truncate(&mut self, mark: Mark) {
        if mark.members == 0 && !self.keeps_index {
            self.index = None;
        }
        self.retract(mark);
    }

    /// Does the same, but keeps the index, so that equal stacks still get equal ids.
    fn retract(&mut self, mark: Mark) {
        if let Some(mut index) = self.index.take() {
            for at in mark.nodes as usize..self.nodes.len() {
                let number = StackId::of_node(at);
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
        self.index = None;
        self.nodes.clear();
        self.members.clear();
        (self.recent, self.effort) = (0, 0);
    }

    /// Returns the bytes that are allocated for stacks.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.nodes.heap_bytes() + self.members.capacity() * 4
    }

    /// Lets forks share the nodes made so far. Called at the end of a token.
    pub(crate) fn freeze(&mut self) {
        self.nodes.freeze(self.recent);
    }

    /// Copies the stacks for another matcher, whose threads are on some of them.
    pub(crate) fn fork(&self, stacks: impl Iterator<Item = StackId>) -> Self {
        let mut fork = Self {
            nodes: self.nodes.clone(),
            members: self.members.clone(),
            recent: self.recent,
            token: self.token,
            index: None,
            keeps_index: false,
            merging: self.merging,
            effort: 0,
        };
        if self.index.is_some() {
            fork.index_near(stacks.collect());
        }
        fork
    }

    /// Builds an index of the nodes near the tops of these stacks. Equal stacks further down may keep different ids.
    fn index_near(&mut self, mut near: Vec<StackId>) {
        near.sort_unstable();
        near.dedup();
        let mut index = HashTable::new();
        let mut at = 0;
        while let Some(&stack) = near.get(at) {
            at += 1;
            let Some(&node) = self.node(stack) else { continue };
            let hash = self.hash(&node);
            if index.find(hash, |&other: &StackId| self.same(&self.nodes[other.node()], &node)).is_some() {
                continue;
            }
            index.insert_unique(hash, stack, |&other| self.hash(&self.nodes[other.node()]));
            if near.len() < MAX_INDEXED_STACKS {
                match self.top(stack) {
                    Top::Frame(_, below) => near.push(below),
                    Top::Union(members) => near.extend_from_slice(members),
                }
            }
        }
        self.index = Some(index);
    }

    /// Starts a new byte.
    pub(crate) fn next_byte(&mut self) {
        self.recent = self.nodes.len();
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len() + self.members.len()
    }

    /// Returns the top frame of a stack, or the stacks that it is a union of. For the bottom, returns an empty union.
    pub(crate) fn top(&self, stack: StackId) -> Top<'_> {
        let Some(node) = self.node(stack) else { return Top::Union(&[]) };
        if node.frame.raw == UNION {
            Top::Union(self.members(node))
        } else {
            Top::Frame(node.frame, node.below)
        }
    }

    /// Checks whether a union is anywhere below the top of a stack.
    pub(crate) fn forks(&self, mut stack: StackId) -> bool {
        loop {
            match self.top(stack) {
                Top::Frame(_, below) => stack = below,
                Top::Union(members) => return !members.is_empty(),
            }
        }
    }

    /// Appends the top frames of a stack, each with the stack below.
    #[inline]
    pub(crate) fn frames(&self, stack: StackId, out: &mut Vec<(Frame, StackId)>) {
        match self.top(stack) {
            Top::Frame(frame, below) => out.push((frame, below)),
            // Unions are flat: no member is a union.
            Top::Union(members) => {
                out.extend(members.iter().filter_map(|&m| self.node(m)).map(|n| (n.frame, n.below)));
            }
        }
    }

    /// Returns the node of a stack. The bottom, and stacks that are stored elsewhere, have none.
    fn node(&self, stack: StackId) -> Option<&Node> {
        self.nodes.get(stack.node())
    }

    fn members(&self, node: &Node) -> &[StackId] {
        let start = node.below.0 as usize;
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

    /// Adds a node. Returns an equal one instead if the index has it.
    fn add(&mut self, node: Node) -> StackId {
        let number = StackId::of_node(self.nodes.len());
        if let Some(mut index) = self.index.take() {
            let hash = self.hash(&node);
            let found = index.find(hash, |&other| self.same(&self.nodes[other.node()], &node)).copied();
            if found.is_none() {
                index.insert_unique(hash, number, |&other| self.hash(&self.nodes[other.node()]));
            }
            self.index = Some(index);
            if let Some(found) = found {
                return found;
            }
        }
        self.nodes.push(node);
        number
    }

    /// Builds the index, so that equal stacks get equal ids from now on.
    fn start_index(&mut self) {
        let mut index = HashTable::with_capacity(self.nodes.len() * 2);
        for (at, node) in self.nodes.iter().enumerate() {
            let hash = self.hash(node);
            if index.find(hash, |&other: &StackId| self.same(&self.nodes[other.node()], node)).is_none() {
                index
                    .insert_unique(hash, StackId::of_node(at), |&other| self.hash(&self.nodes[other.node()]));
            }
        }
        self.index = Some(index);
    }
}

pub(crate) enum Top<'a> {
    Frame(Frame, StackId),
    Union(&'a [StackId]),
}

impl Stacks for Arena {
    #[inline]
    fn push(&mut self, program: &Program, frame: Frame, below: StackId) -> StackId {
        if let Some(node) = self.node(below)
            && (node.frame == frame || node.frame.raw == UNION)
            && let Some(below) = self.absorb(program, frame, below)
        {
            return below;
        }
        self.push_plain(frame, below)
    }

    #[inline]
    fn pop(&mut self, stack: StackId, out: &mut Vec<(Frame, StackId)>) {
        self.frames(stack, out);
    }

    fn token(&self) -> u32 {
        self.token
    }

    fn union_all(&mut self, program: &Program, stacks: &mut dyn Iterator<Item = StackId>) -> StackId {
        let (mut members, mut first, mut last): (Vec<StackId>, _, _) = (Vec::new(), None, None);
        let (mut united, mut room) = (0, MIN_COMPACTED_MEMBERS);
        for stack in stacks {
            if last != Some(stack) {
                self.flatten(stack, &mut members);
                united += 1;
                room = self.compact(&mut members, room);
            }
            first = first.or(Some(stack));
            last = Some(stack);
        }
        match first {
            Some(only) if first == last => only,
            _ => self.union_of(program, members, united),
        }
    }

    fn covers(&self, program: &Program, outer: StackId, inner: StackId) -> bool {
        self.covers_below(program, outer, inner, &mut Effort::new(tuning().merge_stacks))
    }

    fn merges(&self) -> bool {
        self.merging
    }

    #[inline]
    fn is_wide(&self, stack: StackId) -> bool {
        self.node(stack)
            .is_some_and(|node| node.frame.raw == UNION && node.frame.count as usize > MAX_MERGED_MEMBERS)
    }

    fn effort(&mut self) -> u32 {
        core::mem::take(&mut self.effort)
    }
}

/// Larger unions are not checked for members that cover others, and larger groups of equal frames are not merged below
/// the frames.
const MAX_MERGED_MEMBERS: usize = 16;
/// Up to this many members, duplicates are not removed early.
const MIN_COMPACTED_MEMBERS: usize = 64;
/// The number of nodes near the tops of a fork's stacks that are put into its index.
const MAX_INDEXED_STACKS: usize = 256;
/// The number of stacks that are visited below frames that may end at once.
const MAX_POPPED_STACKS: usize = 16;
/// The same, counting the members of unions.
const MAX_POPPED_MEMBERS: usize = 256;
/// The greatest number of member pairs that are compared to check whether one union covers another.
const MAX_COMPARED_PAIRS: usize = 4_096;

/// Visiting this many stacks costs as much as merging one.
const VISITS_PER_MERGE: u32 = 64;

/// A budget of stacks to visit, and the number that was visited in all.
struct Effort {
    left: u32,
    visited: u32,
}

impl Effort {
    fn new(left: u32) -> Self {
        Self { left, visited: 0 }
    }

    fn spend(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        self.visited = self.visited.saturating_add(1);
        is_left
    }

    /// Counts stacks that are visited whether or not the budget allows it.
    fn count_visits(&mut self, stacks: usize) {
        self.visited = self.visited.saturating_add(stacks as u32);
        self.left = self.left.saturating_sub(stacks as u32 / VISITS_PER_MERGE);
    }
}

impl Arena {
    /// Adds a frame without merging.
    #[inline]
    fn push_plain(&mut self, frame: Frame, below: StackId) -> StackId {
        if self.index.is_some() {
            return self.add(Node { frame, below });
        }
        let recent = self.nodes.since(self.recent);
        if let Some(at) = recent.iter().position(|node| node.below == below && node.frame == frame) {
            return StackId::of_node(self.recent + at);
        }
        self.add(Node { frame, below })
    }

    /// Applies `A·A·X = A·X`, if the frame repeats itself.
    #[cold]
    fn absorb(&mut self, program: &Program, frame: Frame, below: StackId) -> Option<StackId> {
        let Resume::At(state) = frame.resume() else { return None };
        if !self.merging || !program.repeats_itself(state) {
            return None;
        }
        let node = self.node(below)?;
        if node.frame == frame {
            return Some(below);
        }
        // A·(A·X ∪ Y) = A·(X ∪ Y)
        let members = self.members(node).to_vec();
        let same = members.iter().position(|&member| self.node(member).is_some_and(|n| n.frame == frame))?;
        let inner = self.node(members[same])?.below;
        let mut rest: Vec<StackId> =
            members.iter().copied().filter(|&member| member != members[same]).collect();
        self.flatten(inner, &mut rest);
        let below = self.union_of(program, rest, 2);
        Some(self.push_plain(frame, below))
    }

    /// Removes duplicate members, if there are more than `room` members. Returns the number up to which the next call
    /// can be skipped. PERF: a hundred unions may share nearly all of a hundred members.
    fn compact(&mut self, members: &mut Vec<StackId>, room: usize) -> usize {
        if members.len() <= room {
            return room;
        }
        self.effort = self.effort.saturating_add(members.len() as u32);
        members.sort_unstable();
        members.dedup();
        MIN_COMPACTED_MEMBERS.max(2 * members.len())
    }

    /// Appends a stack, or its members if it is a union.
    pub(crate) fn flatten(&self, stack: StackId, members: &mut Vec<StackId>) {
        match self.node(stack) {
            Some(node) if node.frame.raw == UNION => members.extend_from_slice(self.members(node)),
            _ => members.push(stack),
        }
    }

    /// Returns the union of these stacks, none of which is a union. `united` is the number of stacks that they were
    /// flattened from.
    fn union_of(&mut self, program: &Program, members: Vec<StackId>, united: u32) -> StackId {
        let mut effort = Effort::new(tuning().merge_stacks.saturating_mul(united.saturating_sub(1)));
        let union = self.unite(program, members, &mut effort);
        self.effort = self.effort.saturating_add(effort.visited);
        union
    }

    fn unite(&mut self, program: &Program, mut members: Vec<StackId>, effort: &mut Effort) -> StackId {
        // PERF: sorting them takes about as long as this many steps.
        effort.count_visits(members.len() * 4);
        self.sort(&mut members);
        if members.len() > 1 && self.merging && effort.spend() {
            self.merge(program, &mut members, effort);
        }
        if let [only] = *members {
            return only;
        }
        if self.index.is_none() {
            self.start_index();
        }
        let start = self.members.len();
        let count = members.len() as u32;
        self.members.extend_from_slice(&members);
        let number = self.add(Node { frame: Frame { raw: UNION, count }, below: StackId(start as u32) });
        if number.node() + 1 < self.nodes.len() {
            // The union existed already, so the copy of its members is not needed.
            self.members.truncate(start);
        }
        number
    }

    fn is_union(&self, stack: StackId) -> bool {
        self.node(stack).is_some_and(|node| node.frame.raw == UNION)
    }

    /// Sorts stacks by their frames and removes duplicates.
    fn sort(&self, members: &mut Vec<StackId>) {
        // Equal frames on equal stacks are equal. Stacks that are stored elsewhere are compared by their ids.
        let key = |&stack: &StackId| match self.node(stack) {
            Some(node) => (node.frame, node.below),
            None => (Frame { raw: u32::MAX, count: stack.0 }, stack),
        };
        members.sort_unstable_by_key(key);
        members.dedup_by_key(|stack| key(stack));
    }

    /// Merges sorted stacks by the rules of the [module](self).
    fn merge(&mut self, program: &Program, members: &mut Vec<StackId>, effort: &mut Effort) {
        let raw = |arena: &Self, stack: StackId| arena.node(stack).map(|node| node.frame.raw);
        let mut merged: Vec<StackId> = Vec::with_capacity(members.len());
        let mut at = 0;
        while at < members.len() {
            let first = raw(self, members[at]);
            let len = 1 + members[at + 1..]
                .iter()
                .take_while(|&&other| first.is_some() && raw(self, other) == first)
                .count();
            let group = &members[at..at + len];
            at += len;
            match group {
                [only] => merged.push(*only),
                _ => self.merge_group(program, group, effort, &mut merged),
            }
        }
        if merged.len() > 1 && merged.len() <= MAX_MERGED_MEMBERS {
            self.drop_covered(program, &mut merged, effort);
        }
        self.sort(&mut merged);
        *members = merged;
    }

    /// Merges stacks whose top frames belong to the same place.
    fn merge_group(
        &mut self,
        program: &Program,
        group: &[StackId],
        effort: &mut Effort,
        merged: &mut Vec<StackId>,
    ) {
        let mut parts: Vec<(Frame, StackId)> =
            group.iter().filter_map(|&stack| self.node(stack).map(|node| (node.frame, node.below))).collect();
        if let Some((Resume::Loop { index, .. }, _)) =
            parts.first().map(|(frame, below)| (frame.resume(), below))
        {
            let bounds = program.counted(index).bounds();
            // Counts over the same stack become one set.
            parts.sort_unstable_by_key(|&(frame, below)| (below, frame.count));
            parts.dedup_by(|next, kept| {
                let is_same = next.1 == kept.1;
                if is_same {
                    let counts = (Count::from_raw(kept.0.count), Count::from_raw(next.0.count));
                    kept.0.count = program.counts().union(counts.0, counts.1, bounds).raw();
                }
                is_same
            });
            parts.sort_unstable();
        }
        for same in parts.chunk_by(|a, b| a.0 == b.0) {
            let frame = same[0].0;
            // So many calls from one place come from many positions in the text, and the stacks below them were not one
            // stack so far.
            if effort.left == 0 || same.len() > MAX_MERGED_MEMBERS {
                merged.extend(same.iter().map(|&(frame, below)| self.push_plain(frame, below)));
                continue;
            }
            if let &[(_, below)] = same {
                merged.push(self.push_plain(frame, below));
                continue;
            }
            let mark = self.mark();
            let (mut belows, mut room) = (Vec::new(), MIN_COMPACTED_MEMBERS);
            for &(_, below) in same {
                self.flatten(below, &mut belows);
                room = self.compact(&mut belows, room);
            }
            let below = self.unite(program, belows, effort);
            if self.is_union(below) && self.mark() != mark {
                // A union that did not exist before is of no use: there would be one for every set of stacks.
                self.retract(mark);
                merged.extend(same.iter().map(|&(frame, below)| self.push_plain(frame, below)));
            } else {
                merged.push(self.push_plain(frame, below));
            }
        }
    }

    /// Removes stacks that are covered by others.
    fn drop_covered(&self, program: &Program, stacks: &mut Vec<StackId>, effort: &mut Effort) {
        let mut at = 0;
        while at < stacks.len() {
            let inner = stacks[at];
            let is_covered = |&outer: &StackId| {
                let (Some(o), Some(i)) = (self.node(outer), self.node(inner)) else {
                    return outer != inner && self.may_shrink_to(program, outer, inner, effort);
                };
                // PERF: nearly all frames differ and cannot end at once. Then there is nothing to compare.
                let is_worth = o.frame.raw == i.frame.raw || may_end_at_once(program, o.frame);
                outer != inner
                    && is_worth
                    && (self.covers_below(program, outer, inner, effort)
                        || self.may_shrink_to(program, outer, inner, effort))
            };
            if stacks.iter().any(is_covered) {
                stacks.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Checks whether `target` can be reached from `stack` by popping only frames that may end at once.
    fn may_shrink_to(&self, program: &Program, stack: StackId, target: StackId, effort: &mut Effort) -> bool {
        let mut work: SmallVec<[StackId; MAX_POPPED_STACKS]> = smallvec![stack];
        let mut at = 0;
        while let Some(&stack) = work.get(at) {
            at += 1;
            effort.count_visits(1);
            if stack == target {
                return true;
            }
            let below = match self.node(stack) {
                Some(node) if node.frame.raw == UNION => {
                    let members = self.members(node);
                    if work.len() + members.len() > MAX_POPPED_MEMBERS {
                        return false;
                    }
                    work.extend_from_slice(members);
                    continue;
                }
                Some(node) if may_end_at_once(program, node.frame) => node.below,
                Some(_) | None => continue,
            };
            if work.len() >= MAX_POPPED_STACKS {
                return false;
            }
            work.push(below);
        }
        false
    }

    fn covers_below(&self, program: &Program, outer: StackId, inner: StackId, effort: &mut Effort) -> bool {
        if outer == inner {
            return true;
        }
        let (Some(_), Some(_)) = (self.node(outer), self.node(inner)) else { return false };
        if !effort.spend() {
            return false;
        }
        let (mut outers, mut inners) = (SmallVec::<[StackId; 4]>::new(), SmallVec::<[StackId; 4]>::new());
        for (stack, list) in [(outer, &mut outers), (inner, &mut inners)] {
            match self.top(stack) {
                Top::Frame(..) => list.push(stack),
                Top::Union(members) => list.extend_from_slice(members),
            }
        }
        if outers.len() * inners.len() > MAX_COMPARED_PAIRS {
            return false;
        }
        effort.count_visits(outers.len() * inners.len());
        inners.iter().all(|&inner| {
            outers.iter().any(|&outer| {
                if outer == inner {
                    return true;
                }
                let (Some(o), Some(i)) = (self.node(outer), self.node(inner)) else { return false };
                o.frame.raw == i.frame.raw
                    && covers_frame(program, o.frame, i.frame)
                    && self.covers_below(program, o.below, i.below, effort)
                    || may_end_at_once(program, o.frame) && self.covers_below(program, o.below, inner, effort)
            })
        })
    }

    /// Switches merging on or off; see the [module](self).
    pub(crate) fn set_merging(&mut self, merging: bool) {
        self.merging = merging;
    }

    /// Keeps the index even without unions and after a [truncation](Self::truncate), or stops doing so. While it is
    /// kept, equal stacks that are made from now on get equal ids.
    pub(crate) fn keep_index(&mut self, keeps: bool) {
        self.keeps_index = keeps;
        if keeps && self.index.is_none() {
            self.index = Some(HashTable::new());
        }
    }

    /// Returns whether equal stacks get equal ids.
    pub(crate) fn has_index(&self) -> bool {
        self.index.is_some()
    }

    /// Gives equal stacks equal ids from now on, including stacks equal to existing ones.
    pub(crate) fn ensure_index(&mut self) {
        if self.index.is_none() {
            self.start_index();
        }
    }
}

/// Checks whether a frame may be popped without taking a byte.
fn may_end_at_once(program: &Program, frame: Frame) -> bool {
    match frame.resume() {
        Resume::At(state) => program.may_return(state),
        Resume::Loop { index, rounds } => program.counts().may_stop(rounds, program.counted(index).bounds()),
        Resume::Finish | Resume::Scope { .. } | Resume::Words { .. } | Resume::Limit { .. } => false,
    }
}

/// Checks whether `outer` may do everything that `inner` may, for two frames of the same place.
fn covers_frame(program: &Program, outer: Frame, inner: Frame) -> bool {
    match outer.resume() {
        Resume::Loop { index, rounds } => {
            let bounds = program.counted(index).bounds();
            program.counts().contains(rounds, Count::from_raw(inner.count), bounds)
        }
        _ => outer.count == inner.count,
    }
}
