//! A compiled grammar: immutable machines and leaves, and the states that are determinized while it is used.
//!
//! A *cell* is a set of nodes of one machine that a text has led to. Cells are found lazily, byte by byte, and
//! interned. So a machine behaves like a DFA for the parts of it that are ever visited:
//!
//! ```text
//!   nodes  {b'"' of "name", b'"' of "nick"}  ── '"' ──▶  {b'n', b'n'} ── 'n' ──▶ {b'a', b'i'} …
//! ```
//! A set with a single byte node (mostly the inside of a literal) needs no cell: the node itself is the state. Calls
//! are not followed here. A cell lists them, and the code that steps it pushes the place to return to.

pub(crate) mod components;
mod debug;
mod exits;
mod joints;
mod levels;
pub(crate) mod network;
mod place;
mod required;
pub(crate) mod words;

use core::hash::BuildHasher;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use maskwright_automata::ByteSet;
use maskwright_grammar::ExprId;
use rustc_hash::{FxBuildHasher, FxHashSet};
use smallvec::SmallVec;

use crate::count::CountSets;
use crate::leaf::{Automaton, Leaf, json_string};
use crate::limits::Limits;
use crate::program::network::Values;
use crate::program::network::{
    Callee, Limit, LimitId, Loop, LoopId, Machine, MachineId, Network, Node, NodeId, Scope, ScopeId, WordId,
    WordScope,
};
use crate::store::Store;

pub use self::debug::{Dot, Listing};
pub(crate) use self::exits::{Exits, Needed, join};
use self::joints::Joints;
pub(crate) use self::levels::Levels;
pub(crate) use self::place::At;
pub(crate) use self::required::{Open, find_unwritable};
use self::words::{Awaited, WordSetId, Words};

/// A compiled constraint, without a vocabulary. It is immutable except for its caches, so it can be shared freely.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Program {
    network: Network,
    leaves: Vec<Leaf>,
    has_strings: bool,
    /// The leaf of plain JSON strings, for strings whose condition no longer matters.
    plain_string: LeafId,
    plain_scopes: bool,
    plain_lists: bool,
    has_lists: bool,
    may_run_out: bool,
    nullable: bool,
    names: Vec<(ExprId, Box<str>)>,
    limits: Limits,
    cells: Store<Cell>,
    /// The start state of each machine, or 0 if it was not computed.
    starts: Box<[AtomicU32]>,
    /// The state at each node that is not a byte, or 0 if it was not computed.
    states_at: Box<[AtomicU32]>,
    firsts: Box<[OnceLock<ByteSet>]>,
    /// The sets of counts that ambiguous texts have led to.
    counts: CountSets,
    classes: OnceLock<Box<ByteClasses>>,
    exits: OnceLock<(Exits, Open)>,
    joints: OnceLock<Joints>,
    levels: OnceLock<Levels>,
    needed: OnceLock<Needed>,
    words: Option<Words>,
}

/// Classes of bytes. The bytes of a class do the same everywhere in a program.
#[derive(Debug)]
pub(crate) struct ByteClasses {
    pub(crate) of: [u8; 256],
    pub(crate) len: usize,
}

/// A leaf of a [`Program`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LeafId(NonZeroU32);

impl LeafId {
    pub(crate) fn new(index: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index as u32))
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A state of the network: a cell, or a single byte node. 0 stands for the end of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NetState(u32);

const IS_NODE: u32 = 1 << 31;
/// Tag bits for a [`Frame`](crate::parser::stack::Frame).
pub(crate) const IS_LOOP: u32 = 1 << 30;
pub(crate) const IS_SCOPE: u32 = 3 << 29;
pub(crate) const IS_LIMIT: u32 = 7 << 28;
pub(crate) const IS_WORDS: u32 = 15 << 27;

/// The meaning of a [`NetState`].
pub(crate) enum Place<'p> {
    /// The end of the root.
    Done,
    Node {
        low: u8,
        high: u8,
        next: NodeId,
    },
    Cell(&'p Cell),
}

impl NetState {
    /// The end of the root.
    pub(crate) const DONE: Self = Self(0);

    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    /// Returns the node, if the state is one.
    pub(crate) fn node(self) -> Option<NodeId> {
        (self.0 & IS_NODE != 0).then_some(NodeId(self.0 & !IS_NODE))
    }

    pub(crate) fn of_node(node: NodeId) -> Self {
        Self(node.0 | IS_NODE)
    }

    pub(crate) fn from_raw(raw: u32) -> Self {
        Self(raw)
    }
}

/// A set of nodes of one machine, prepared for stepping.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) nodes: Box<[NodeId]>,
    /// Disjoint ranges of bytes, in ascending order.
    edges: Box<[Edge]>,
    pub(crate) calls: Box<[Call]>,
    /// Whether the machine may end here.
    pub(crate) returns: bool,
    /// The bytes that can come next, inside the machine and in what it calls.
    pub(crate) first: ByteSet,
    pub(crate) on_arrival: OnArrival,
    /// The words of which one must come first; see [`words`].
    pub(crate) awaited: Option<Awaited>,
    separate_calls: OnceLock<SeparateCalls>,
    /// The same, if only the end of the text follows the machine.
    separate_calls_at_end: OnceLock<SeparateCalls>,
    /// See [`Program::repeats_itself`].
    repeats: OnceLock<bool>,
}

/// Machines with more nodes than this are not checked for repeating themselves.
const MAX_REPEAT_NODES: usize = 100_000;

/// What must happen at once when a text reaches a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnArrival {
    /// Nothing.
    Stay,
    /// The machine is over.
    End,
    /// A value is over and has to be checked. With `stay`, the cell has other paths as well, so the thread also stays
    /// here.
    Check { stay: bool },
}

/// The calls of a cell to leaves that end where their automaton dies, because what follows begins with none of the
/// bytes by which the leaf could continue. What a vocabulary does in such a leaf is the same for all cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeparateCalls {
    /// Bit i stands for call i.
    calls: u64,
    /// The bytes that everything else can begin with.
    pub(crate) others: ByteSet,
}

impl SeparateCalls {
    #[inline]
    pub(crate) fn contains(self, call: usize) -> bool {
        call < 64 && self.calls >> call & 1 == 1
    }

    pub(crate) fn is_empty(self) -> bool {
        self.calls == 0
    }

    /// Returns the indices of the calls.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.calls;
        core::iter::from_fn(move || {
            let call = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (call < 64).then_some(call)
        })
    }
}

#[derive(Debug)]
struct Edge {
    low: u8,
    high: u8,
    /// The state that the bytes lead to, or 0 if it was not computed.
    target: AtomicU32,
    /// The nodes that the bytes lead to, before splits are followed.
    nodes: Targets,
}

/// One node in most cases.
#[derive(Debug)]
enum Targets {
    One(NodeId),
    Many(Box<[NodeId]>),
}

/// A call that can be made from a cell.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) callee: Callee,
    /// For a check, the word that is the value, if its scope keeps a set of words.
    pub(crate) word: Option<WordId>,
    /// The nodes after the call, before splits are followed.
    after: Targets,
    /// The state after the call, or 0 if it was not computed.
    state: AtomicU32,
    /// Whether only the end of the machine follows, so there is no need to return.
    pub(crate) tail: bool,
    /// The bytes that the callee can begin with.
    pub(crate) first: ByteSet,
}

impl Cell {
    /// Returns the bytes that the cell takes itself, without its calls.
    pub(crate) fn bytes(&self) -> ByteSet {
        let mut bytes = ByteSet::EMPTY;
        self.edges.iter().for_each(|edge| bytes.insert_range(edge.low, edge.high));
        bytes
    }

    fn heap_bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.edges) + size_of_val(&*self.calls)
    }
}

impl Program {
    pub(crate) fn new(
        mut network: Network,
        mut leaves: Vec<Leaf>,
        nullable: bool,
        names: Vec<(ExprId, Box<str>)>,
        limits: Limits,
    ) -> Self {
        let has_text = leaves.iter().any(|leaf| matches!(leaf, Leaf::Text(_)));
        let plain_string = LeafId::new(leaves.len());
        if has_text {
            leaves.push(Leaf::plain(json_string().clone()));
        }
        let has_strings = leaves.iter().any(Leaf::is_string);
        let joints = OnceLock::new();
        let words = Words::of(&mut network, &leaves, &joints);
        let unknown = |len: usize| (0..len).map(|_| AtomicU32::new(0)).collect::<Box<[_]>>();
        Self {
            starts: unknown(network.machines.len()),
            states_at: unknown(network.nodes.len()),
            firsts: (0..network.machines.len()).map(|_| OnceLock::new()).collect(),
            plain_lists: network.has_plain_scopes(),
            has_lists: network.scopes.iter().any(Scope::has_list),
            plain_scopes: network.has_plain_scopes() && words.is_none(),
            may_run_out: network.scopes.iter().any(|scope| scope.values != Values::Endless),
            network,
            leaves,
            has_strings,
            plain_string,
            nullable,
            names,
            limits,
            cells: Store::new(),
            counts: CountSets::new(),
            classes: OnceLock::new(),
            exits: OnceLock::new(),
            joints,
            levels: OnceLock::new(),
            needed: OnceLock::new(),
            words,
        }
    }

    /// Returns the word sets of scopes, if there are scopes that keep one.
    #[inline]
    pub(crate) fn words(&self) -> Option<&Words> {
        self.words.as_ref()
    }

    /// Returns the data of a scope that keeps a set of words, and all word sets.
    pub(crate) fn word_scope(&self, index: ScopeId) -> Option<(&Words, &WordScope)> {
        self.words.as_ref().zip(self.scope(index).words.as_deref())
    }

    /// Checks whether the words of a scope come in a fixed order, so that it may be too late for one of them.
    pub(crate) fn has_order(&self, index: ScopeId) -> bool {
        self.scope(index).words.as_ref().is_some_and(|words| !words.later.is_empty())
    }

    /// Returns what a state awaits, if it restricts what may come.
    pub(crate) fn awaited_at(&self, state: NetState) -> Option<Awaited> {
        match self.place(state) {
            Place::Done => None,
            Place::Cell(cell) => cell.awaited,
            Place::Node { .. } => self.words()?.at(self.joints().at(state.node()?)).copied(),
        }
    }

    /// Returns the word of a check, if its scope keeps a set of words.
    fn word_at(&self, check: NodeId) -> Option<WordId> {
        self.network.word_checks.get(&check).copied().filter(|_| self.network.set_checks.contains(&check))
    }

    /// Checks whether a scope that keeps a set of words has seen a word, given by its form.
    pub(crate) fn has_seen(&self, index: ScopeId, set: WordSetId, form: &[u8]) -> bool {
        let Some((words, scope)) = self.word_scope(index) else { return false };
        let word = self.network.words.iter().position(|word| **word == *form);
        word.is_some_and(|at| words.has(scope, set, WordId(at as u32)))
    }

    /// Checks whether the values that a text writes have to be listed somewhere.
    pub(crate) fn has_lists(&self) -> bool {
        self.has_lists
    }

    /// Checks whether the program has JSON strings.
    pub(crate) fn has_strings(&self) -> bool {
        self.has_strings
    }

    pub(crate) fn counts(&self) -> &CountSets {
        &self.counts
    }

    /// See [`Exits`].
    pub(crate) fn exits(&self) -> &Exits {
        &self.exits_and_open().0
    }

    /// See [`Open`].
    pub(crate) fn open(&self) -> &Open {
        &self.exits_and_open().1
    }

    fn exits_and_open(&self) -> &(Exits, Open) {
        self.exits.get_or_init(|| required::exits(&self.network, self.joints(), &self.leaves))
    }

    /// See [`Levels`].
    pub(crate) fn levels(&self) -> &Levels {
        self.levels.get_or_init(|| Levels::of(&self.network, self.joints(), self.exits()))
    }

    /// See [`Needed`].
    pub(crate) fn needed(&self) -> &Needed {
        self.needed.get_or_init(|| Needed::of(&self.network, self.joints()))
    }

    /// See [`Joints`].
    pub(crate) fn joints(&self) -> &Joints {
        self.joints.get_or_init(|| Joints::of(&self.network))
    }

    /// See [`ByteClasses`].
    pub(crate) fn byte_classes(&self) -> &ByteClasses {
        self.classes.get_or_init(|| Box::new(self.find_byte_classes()))
    }

    fn find_byte_classes(&self) -> ByteClasses {
        // The bytes at which a range of the network begins, or at which the table of a leaf distinguishes two
        // neighbors.
        let mut cuts = [false; 257];
        for node in &self.network.nodes {
            if let Node::Byte { low, high, .. } = *node {
                cuts[usize::from(low)] = true;
                cuts[usize::from(high) + 1] = true;
            }
        }
        let mut tables: Vec<&Automaton> = Vec::new();
        for leaf in &self.leaves {
            match leaf {
                Leaf::Window { automaton, .. } => tables.push(automaton),
                Leaf::Text(_) => cuts = [true; 257],
            }
        }
        for table in &tables {
            for byte in 1..=255u8 {
                cuts[usize::from(byte)] |= table.class(byte) != table.class(byte - 1);
            }
        }
        let mut of = [0u8; 256];
        for byte in 1..256 {
            of[byte] = of[byte - 1] + u8::from(cuts[byte]);
        }
        let len = usize::from(of[255]) + 1;
        ByteClasses { of, len }
    }

    /// Checks whether the machine of a state may end there.
    pub(crate) fn may_return(&self, state: NetState) -> bool {
        match self.place(state) {
            Place::Done | Place::Node { .. } => false,
            Place::Cell(cell) => cell.returns,
        }
    }

    /// Checks whether two consecutive runs of a machine from a state are the same as one. That is so if the machine may
    /// end at once, and wherever else it may end, it may also continue as from that state. An example is `("+" e)*`.
    pub(crate) fn repeats_itself(&self, state: NetState) -> bool {
        match self.place(state) {
            Place::Done | Place::Node { .. } => false,
            Place::Cell(cell) => *cell.repeats.get_or_init(|| self.find_repeats(cell)),
        }
    }

    fn find_repeats(&self, cell: &Cell) -> bool {
        if !cell.returns || self.has_scopes() {
            return false;
        }
        let (mut seen, mut work) = (FxHashSet::default(), cell.nodes.to_vec());
        while let Some(node) = work.pop() {
            if !seen.insert(node) {
                continue;
            }
            if seen.len() > MAX_REPEAT_NODES {
                return false;
            }
            let (Node::Byte { next, .. } | Node::Call { next, .. }) = self.network.nodes[node.index()] else {
                continue;
            };
            let mut after = SmallVec::new();
            let may_end = self.network.wide_closure(&[next], &mut after);
            if may_end && !cell.nodes.iter().all(|node| after.binary_search(node).is_ok()) {
                return false;
            }
            work.extend_from_slice(&after);
        }
        true
    }

    pub(crate) fn leaf(&self, leaf: LeafId) -> &Leaf {
        &self.leaves[leaf.index()]
    }

    pub(crate) fn leaf_ids(&self) -> impl Iterator<Item = LeafId> + use<> {
        (0..self.leaves.len()).map(LeafId::new)
    }

    pub(crate) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    pub(crate) fn plain_string(&self) -> LeafId {
        self.plain_string
    }

    pub(crate) fn scope(&self, index: ScopeId) -> &Scope {
        &self.network.scopes[index.index()]
    }

    pub(crate) fn limit(&self, index: LimitId) -> &Limit {
        &self.network.limits[index.index()]
    }

    /// Checks whether tokens are counted somewhere.
    pub(crate) fn has_limits(&self) -> bool {
        !self.network.limits.is_empty()
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Checks whether lists of values affect a mask only through the values that they hold. Word sets are not
    /// considered.
    pub(crate) fn has_plain_lists(&self) -> bool {
        self.plain_lists
    }

    /// Checks whether scopes affect a mask only through the values that they have listed. False if there are word sets.
    pub(crate) fn has_plain_scopes(&self) -> bool {
        self.plain_scopes
    }

    /// Checks whether values that must differ may run out somewhere.
    pub(crate) fn may_run_out(&self) -> bool {
        self.may_run_out
    }

    /// Checks whether an array or object may have to differ from others, and values may run out.
    pub(crate) fn has_nested_values(&self) -> bool {
        self.network.nested_values
    }

    /// Checks whether there are scopes, whose values have to be remembered.
    pub(crate) fn has_scopes(&self) -> bool {
        !self.network.scopes.is_empty()
    }

    pub(crate) fn counted(&self, index: LoopId) -> &Loop {
        &self.network.loops[index.index()]
    }

    /// Checks whether the empty text matches.
    pub(crate) fn is_nullable(&self) -> bool {
        self.nullable
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    #[inline]
    pub(crate) fn place(&self, state: NetState) -> Place<'_> {
        if state == NetState::DONE {
            return Place::Done;
        }
        if state.0 & IS_NODE == 0 {
            return Place::Cell(self.cells.get(state.0));
        }
        match self.network.nodes[(state.0 & !IS_NODE) as usize] {
            Node::Byte { low, high, next } => Place::Node { low, high, next },
            _ => unreachable!("only byte nodes are states"),
        }
    }

    /// Returns the start state of a machine. A machine never returns before its first byte.
    pub(crate) fn start(&self, machine: MachineId) -> NetState {
        let known = self.starts[machine.index()].load(Ordering::Acquire);
        if known != 0 {
            return NetState(known);
        }
        let state = self.state_at_all(&self.network.machines[machine.index()].start);
        self.starts[machine.index()].store(state.0, Ordering::Release);
        state
    }

    /// Returns the state that begins at a node.
    #[inline]
    pub(crate) fn state_at(&self, node: NodeId) -> NetState {
        if matches!(self.network.nodes[node.index()], Node::Byte { .. }) {
            return NetState::of_node(node);
        }
        let known = self.states_at[node.index()].load(Ordering::Acquire);
        if known != 0 {
            return NetState(known);
        }
        let state = self.state_at_all(&[node]);
        self.states_at[node.index()].store(state.0, Ordering::Release);
        state
    }

    /// Returns the state that begins at a node, if the node is a single byte.
    #[inline]
    pub(crate) fn byte_state_at(&self, node: NodeId) -> Option<NetState> {
        matches!(self.network.nodes[node.index()], Node::Byte { .. }).then_some(NetState::of_node(node))
    }

    /// Returns the node after `node`, if `node` takes the byte and the next one is a single byte again.
    #[inline]
    pub(crate) fn literal(&self, node: NodeId, byte: u8) -> Option<NodeId> {
        let Node::Byte { low, high, next } = self.network.nodes[node.index()] else { return None };
        let is_inside =
            low <= byte && byte <= high && matches!(self.network.nodes[next.index()], Node::Byte { .. });
        is_inside.then_some(next)
    }

    /// Returns the state that a byte leads to inside a cell.
    #[inline]
    pub(crate) fn step(&self, cell: &Cell, byte: u8) -> Option<NetState> {
        let edge = if cell.edges.len() <= 8 {
            cell.edges.iter().find(|edge| edge.low <= byte && byte <= edge.high)?
        } else {
            let at = cell.edges.partition_point(|edge| edge.high < byte);
            cell.edges.get(at).filter(|edge| edge.low <= byte)?
        };
        let known = edge.target.load(Ordering::Acquire);
        if known != 0 {
            return Some(NetState(known));
        }
        let state = match &edge.nodes {
            Targets::One(node) => self.state_at(*node),
            Targets::Many(nodes) => self.state_at_all(nodes),
        };
        edge.target.store(state.0, Ordering::Release);
        Some(state)
    }

    /// Returns every byte that a cell takes itself, with the state it leads to.
    pub(crate) fn edges(&self, cell: &Cell) -> impl Iterator<Item = (u8, NetState)> {
        cell.edges
            .iter()
            .flat_map(|edge| edge.low..=edge.high)
            .filter_map(|byte| self.step(cell, byte).map(|state| (byte, state)))
    }

    /// Returns the state to return to after a call.
    #[inline]
    pub(crate) fn returning(&self, call: &Call) -> NetState {
        let known = call.state.load(Ordering::Acquire);
        if known != 0 {
            return NetState(known);
        }
        // PERF: the alternatives of a loop all return to its beginning, and there may be thousands of them.
        let state = match call.after {
            Targets::One(node) => self.state_at(node),
            Targets::Many(ref nodes) => self.state_at_all(nodes),
        };
        call.state.store(state.0, Ordering::Release);
        state
    }

    /// See [`SeparateCalls`].
    #[inline]
    pub(crate) fn separate_calls(&self, cell: &Cell) -> SeparateCalls {
        *cell.separate_calls.get_or_init(|| self.find_separate_calls(cell, |state| self.follow(state)))
    }

    /// See [`SeparateCalls`]; for a cell of a machine after which only the end of the text can follow, as in free text.
    pub(crate) fn separate_calls_at_end(&self, cell: &Cell) -> SeparateCalls {
        *cell
            .separate_calls_at_end
            .get_or_init(|| self.find_separate_calls(cell, |state| Some(self.live_at(At::Network(state)))))
    }

    fn find_separate_calls(
        &self,
        cell: &Cell,
        follow: impl Fn(NetState) -> Option<ByteSet>,
    ) -> SeparateCalls {
        let mut separate = SeparateCalls { calls: 0, others: ByteSet::EMPTY };
        for edge in &cell.edges {
            separate.others.insert_range(edge.low, edge.high);
        }
        for (at, call) in cell.calls.iter().enumerate() {
            if at < 64 && self.ends_where_it_dies(call, &follow) {
                separate.calls |= 1 << at;
            } else {
                separate.others = separate.others.union(call.first);
            }
        }
        separate
    }

    fn ends_where_it_dies(&self, call: &Call, follow: impl Fn(NetState) -> Option<ByteSet>) -> bool {
        let Callee::Leaf(leaf) = call.callee else { return false };
        let Leaf::Window { automaton, .. } = self.leaf(leaf) else { return false };
        // Whether the leaf may be called depends on the words that were seen.
        if self.words().is_some_and(Words::looks_before_calls)
            && self.awaited_at(self.returning(call)).is_some()
        {
            return false;
        }
        // What follows a tail call depends on the stack.
        let after = if call.tail { None } else { self.unchecked(self.returning(call)) };
        let follow = after.and_then(follow);
        follow.is_some_and(|follow| follow.intersection(*automaton.open()).is_empty())
    }

    /// Returns the bytes that a state can begin with, if it cannot return before the first one.
    #[inline]
    pub(crate) fn follow(&self, state: NetState) -> Option<ByteSet> {
        (!self.may_return(state)).then(|| self.live_at(At::Network(state)))
    }

    /// Returns the bytes that a callee can begin with.
    fn first_of(&self, callee: Callee) -> ByteSet {
        match callee {
            Callee::Leaf(leaf) => self.leaf(leaf).first(),
            _ => self.network.machine_of(callee).map_or(ByteSet::EMPTY, |machine| self.first(machine)),
        }
    }

    /// Returns the state after the checks of a state that does nothing else; other states are returned as they are.
    /// Returns `None` if there are other paths or several checks.
    pub(crate) fn unchecked(&self, mut state: NetState) -> Option<NetState> {
        while let Place::Cell(cell) = self.place(state) {
            match (cell.on_arrival, &*cell.calls) {
                (OnArrival::Check { stay: false }, [only]) => state = self.returning(only),
                (OnArrival::Check { .. }, _) => return None,
                _ => break,
            }
        }
        Some(state)
    }

    /// Returns the bytes that a machine can begin with. Machines call each other in long chains, hence the explicit
    /// stack. It terminates because left recursion was removed.
    fn first(&self, machine: MachineId) -> ByteSet {
        if let Some(known) = self.firsts[machine.index()].get() {
            return *known;
        }
        let mut work = vec![machine];
        while let Some(&machine) = work.last() {
            let cell = &self.firsts[machine.index()];
            if cell.get().is_some() {
                work.pop();
                continue;
            }
            let (mut first, waiting) = (ByteSet::EMPTY, work.len());
            for &node in &self.network.machines[machine.index()].start {
                let callee = match self.network.nodes[node.index()] {
                    Node::Byte { low, high, .. } => {
                        first.insert_range(low, high);
                        continue;
                    }
                    Node::Call { callee: Callee::Leaf(leaf), .. } => {
                        first = first.union(self.leaf(leaf).first());
                        continue;
                    }
                    // Values are not empty, so no check comes at the start of a machine.
                    Node::Call { callee, .. } => match self.network.machine_of(callee) {
                        Some(machine) => machine,
                        None => continue,
                    },
                    Node::Split { .. } | Node::Final => continue,
                };
                match self.firsts[callee.index()].get() {
                    Some(known) => first = first.union(*known),
                    None => work.push(callee),
                }
            }
            if work.len() == waiting {
                work.pop();
                // If another thread was faster, it found the same.
                let _ = cell.set(first);
            }
        }
        self.firsts[machine.index()].get().copied().unwrap_or(ByteSet::EMPTY)
    }

    /// Returns the state of these nodes, with splits followed.
    fn state_at_all(&self, from: &[NodeId]) -> NetState {
        let mut nodes = SmallVec::new();
        let returns = self.network.wide_closure(from, &mut nodes);
        self.state_of(&nodes, returns)
    }

    /// Returns the state of a closed, sorted set of nodes.
    fn state_of(&self, nodes: &[NodeId], returns: bool) -> NetState {
        if let &[only] = nodes
            && !returns
            && matches!(self.network.nodes[only.index()], Node::Byte { .. })
        {
            return NetState::of_node(only);
        }
        let hash = |nodes: &[NodeId], returns: bool| FxBuildHasher.hash_one((nodes, returns));
        let key = hash(nodes, returns);
        let same = |cell: &Cell| cell.returns == returns && *cell.nodes == *nodes;
        if let Some(found) = self.cells.find(key, same) {
            return NetState(found);
        }
        let cell = self.make_cell(nodes, returns);
        let same = |cell: &Cell| cell.returns == returns && *cell.nodes == *nodes;
        NetState(self.cells.intern(key, same, |cell| hash(&cell.nodes, cell.returns), || cell))
    }

    fn make_cell(&self, nodes: &[NodeId], returns: bool) -> Cell {
        let mut bytes: SmallVec<[(u8, u8, NodeId); 8]> = SmallVec::new();
        let mut calls: SmallVec<[(Callee, Option<WordId>, NodeId); 4]> = SmallVec::new();
        for &node in nodes {
            match self.network.nodes[node.index()] {
                Node::Byte { low, high, next } => bytes.push((low, high, next)),
                Node::Call { callee, next } => calls.push((callee, self.word_at(node), next)),
                Node::Split { .. } | Node::Final => {}
            }
        }
        let edges = disjoint(&mut bytes);
        let calls = self.group_calls(&mut calls);
        let mut first = ByteSet::EMPTY;
        for edge in &edges {
            first.insert_range(edge.low, edge.high);
        }
        for call in &calls {
            first = first.union(call.first);
        }
        let checks = calls.iter().filter(|call| call.callee == Callee::Check).count();
        let on_arrival = if checks > 0 {
            OnArrival::Check { stay: returns || !edges.is_empty() || calls.len() > checks }
        } else if returns && edges.is_empty() && calls.is_empty() {
            OnArrival::End
        } else {
            OnArrival::Stay
        };
        Cell {
            nodes: nodes.into(),
            edges: edges.into(),
            calls: calls.into(),
            returns,
            first,
            on_arrival,
            awaited: self.words.as_ref().and_then(|words| words.of_cell(self.joints(), nodes, returns)),
            separate_calls: OnceLock::new(),
            separate_calls_at_end: OnceLock::new(),
            repeats: OnceLock::new(),
        }
    }

    /// Makes one call for each callee and word, with everything that follows merged.
    fn group_calls(&self, calls: &mut [(Callee, Option<WordId>, NodeId)]) -> Vec<Call> {
        calls.sort_unstable();
        let call = |group: &[(Callee, Option<WordId>, NodeId)]| {
            let is_final =
                |&(.., next): &(_, _, NodeId)| matches!(self.network.nodes[next.index()], Node::Final);
            let after = match group {
                [(.., only)] => Targets::One(*only),
                _ => Targets::Many(group.iter().map(|&(.., next)| next).collect()),
            };
            Call {
                callee: group[0].0,
                word: group[0].1,
                after,
                state: AtomicU32::new(0),
                // A check is passed on arrival, so there must be a state to continue in.
                tail: group[0].0 != Callee::Check && group.iter().all(is_final),
                first: self.first_of(group[0].0),
            }
        };
        let mut grouped = Vec::with_capacity(calls.len());
        grouped.extend(calls.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).map(call));
        grouped
    }

    /// Returns the name of the rule that a state of the network belongs to.
    pub(crate) fn rule_name(&self, state: NetState) -> &str {
        let node = state.node().or_else(|| self.cells.get(state.0).nodes.first().copied());
        let holds = |m: &&Machine, node: NodeId| m.nodes.contains(node) || m.shared.contains(node);
        let machine = node.and_then(|node| self.network.machines.iter().find(|m| holds(m, node)));
        let name = machine.and_then(|m| self.names.iter().find(|(expr, _)| *expr == m.expr));
        name.map_or("?", |(_, name)| name)
    }

    /// Returns the bytes that the program occupies, without leaves that are shared with others.
    pub fn heap_bytes(&self) -> usize {
        let network = self.network.nodes.len() * size_of::<Node>()
            + self.network.targets.len() * 4
            + self.network.machines.iter().map(|m| size_of_val(m) + m.start.len() * 4).sum::<usize>();
        let lazy = (self.starts.len() + self.states_at.len()) * 4
            + self.firsts.len() * size_of::<OnceLock<ByteSet>>()
            + self.cells.heap_bytes()
            + self.cells.iter().map(Cell::heap_bytes).sum::<usize>();
        let names: usize = self.names.iter().map(|(_, name)| name.len() + 24).sum();
        let leaves: usize = self.leaves.iter().map(|leaf| leaf.heap_bytes() + size_of::<Leaf>()).sum();
        network
            + lazy
            + names
            + leaves
            + self.counts.heap_bytes()
            + self.words.as_ref().map_or(0, Words::heap_bytes)
            + self.joints.get().map_or(0, Joints::heap_bytes)
    }
}

/// Collects the nodes that some ranges lead to.
fn targets(ranges: &[(u8, u8, NodeId)]) -> Targets {
    let mut nodes: Vec<NodeId> = ranges.iter().map(|range| range.2).collect();
    nodes.sort_unstable();
    nodes.dedup();
    match *nodes {
        [only] => Targets::One(only),
        _ => Targets::Many(nodes.into()),
    }
}

/// Splits overlapping ranges into disjoint ones, each with all the nodes that it leads to.
fn disjoint(bytes: &mut [(u8, u8, NodeId)]) -> Vec<Edge> {
    bytes.sort_unstable();
    let edge = |low: u8, high: u8, nodes: &[(u8, u8, NodeId)]| Edge {
        low,
        high,
        target: AtomicU32::new(0),
        nodes: targets(nodes),
    };
    let same_or_apart = |pair: &[(u8, u8, NodeId)]| {
        let (a, b) = (pair[0], pair[1]);
        (a.0, a.1) == (b.0, b.1) || a.1 < b.0
    };
    if bytes.windows(2).all(same_or_apart) {
        let mut edges = Vec::with_capacity(bytes.len());
        let groups = bytes.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        edges.extend(groups.map(|group| edge(group[0].0, group[0].1, group)));
        return edges;
    }
    let mut cuts: Vec<u16> = bytes.iter().flat_map(|b| [u16::from(b.0), u16::from(b.1) + 1]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut edges = Vec::new();
    for cut in cuts.windows(2) {
        let (low, high) = (cut[0] as u8, (cut[1] - 1) as u8);
        let inside: Vec<_> = bytes.iter().filter(|b| b.0 <= low && high <= b.1).copied().collect();
        if !inside.is_empty() {
            edges.push(edge(low, high, &inside));
        }
    }
    edges
}
