//! The least number of tokens: shortest paths through a program and the vocabulary's trie at once.
//!
//! A text is written token by token, and a token may run over the borders of leaves and rules. So a path is more than a position in the program:
//! it is a position and a node of the trie, which says what of a token is written. A byte moves both. Where the node has a token, the token
//! may end: that costs one, and the next begins at the root.
//!
//! ```text
//!   rule       "{\"name\":" string "}"              tokens  {"  name  ":"  "}
//!   position   ╶─{╶─"╶─n╶─a╶─m╶─e╶─"╶─:╶┤"╶─"├╶─}╶─
//!   node        {  {" │n na nam name│"  ":│":"│ "  "}│         costs 4, though `":"` and `"}` run over borders
//! ```
//! Rules call each other, so there is no end to the positions with their stacks. What is kept instead is, for a position and a set of nodes, in how many
//! tokens the *end of its rule* can be reached, and at which nodes: the [exits](ShortestPaths::exits) of an [`Entry`]. A call is made
//! by asking for the exits of the callee, and by going on behind it at the nodes found there. All entries are worked out together, cheapest first: this is
//! Dijkstra's algorithm, with Knuth's generalisation to grammars. What it has found is final, and it is only done for what is asked for.
//!
//! The exits of the frames of a stack are put together by [`crate::budget`].
//!
//! # Where it is no least number
//!
//! * Repetitions and windows with a maximum use no more than [`SLACK`] rounds or units more than they must.
//! * A value that must be new is taken to cost [`NEW_VALUE`] tokens more: so many characters make any string new. If there are finitely many, it is taken to cost as
//!   much more as the longest has bytes. Required values come in the order of [`contexts`].
//! * Beyond [`STEPS`], little more is found.
//!
//! In each of these cases the number is an upper bound, and the promise of [`super::distance`] holds: some token leads to where it is one less.

mod contexts;
mod leaves;
mod places;
mod walk;

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use maskwright_vocab::{Trie, TrieNode};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use self::contexts::Context;
use self::contexts::Contexts;
use self::leaves::LeafMovesCache;
pub(crate) use self::places::PlaceSet;
use self::places::PlaceSets;
use super::distance::NEW_VALUE;
use crate::count::{Bounds, Count, UNBOUNDED, Window};
use crate::leaf::{Leaf, LeafState};
use crate::program::network::{Callee, Node, NodeId};
use crate::program::{At, LeafId, NetState, Program};

/// How many more rounds of a repetition, or units of a leaf, are used than must be, if there is a maximum.
const SLACK: u32 = 32;
/// How many steps all questions about a program may take.
const STEPS: u64 = 20_000_000;
/// How many steps a question may take when those are used up.
const STEPS_MORE: u64 = 10_000;
/// How many entries there may be. Beyond them nothing more is found.
const ENTRIES: usize = 2_000_000;

/// A position in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Position {
    /// The end of the rule.
    End,
    Node(NodeId),
    State(NetState),
    Machine(u32),
    /// In a table, with so many units to come.
    Leaf {
        leaf: LeafId,
        state: LeafState,
        need: u32,
        room: u32,
    },
    Text(LeafId, LeafState),
    /// Between two rounds of a repetition, with so many to come.
    Rounds {
        index: u32,
        need: u32,
        room: u32,
    },
}

/// What is known of a position and the nodes at which a path comes to it.
#[derive(Debug, Default)]
struct Entry {
    /// Ascending, and no node twice in a context.
    exits: Vec<Exit>,
    /// The nodes of all exits.
    reached: FxHashSet<(TrieNode, Context)>,
    /// Who goes on behind the end.
    callers: Vec<Caller>,
    /// What was walked over inside the rule.
    walked: FxHashSet<(Position, TrieNode, Context)>,
}

/// A way to the end of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The tokens on the way.
    pub(crate) tokens: u32,
    /// Where in a token it ends.
    pub(crate) places: PlaceSet,
    /// What the scope around the rule needs then.
    pub(crate) context: Context,
}

/// An entry that waits for the exits of another.
#[derive(Clone, Copy, Debug)]
struct Caller {
    entry: EntryId,
    /// The tokens until the call.
    cost: u32,
    /// Where it goes on.
    behind: Position,
    /// The callee may take no more tokens than this.
    limit: u32,
    scope: Around,
}

/// What a call means for the scope around it.
#[derive(Clone, Copy, Debug)]
enum Around {
    /// Values in the callee belong to it.
    Goes,
    /// They do not, so the context is this again.
    Stays(Context),
    /// The callee is a scope, which must be complete, and then the context is this again.
    Closes(Context),
}

type EntryId = u32;

/// Something to be looked at, the cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    cost: u32,
    entry: EntryId,
    position: Position,
    places: PlaceSet,
    context: Context,
}

/// The shortest paths of one program with one vocabulary, as far as they were asked for.
#[derive(Debug)]
pub(crate) struct ShortestPaths {
    places: PlaceSets,
    entries: Vec<Entry>,
    contexts: Contexts,
    index: FxHashMap<(Position, PlaceSet, Context), EntryId>,
    work: BinaryHeap<Reverse<Work>>,
    leaves: LeafMovesCache,
    /// For each leaf, the first one with the same table.
    same: Box<[LeafId]>,
    /// How many steps may be taken, for all questions and for this one.
    all_steps: u64,
    steps: u64,
}

/// What paths run through.
#[derive(Clone, Copy)]
struct Ground<'g> {
    program: &'g Program,
    trie: &'g Trie,
}

impl ShortestPaths {
    pub(crate) fn new(program: &Program) -> Self {
        let mut first = FxHashMap::default();
        let same = |(id, leaf): (LeafId, &Leaf)| match leaf {
            Leaf::Window { automaton, .. } => *first.entry(std::sync::Arc::as_ptr(automaton)).or_insert(id),
            Leaf::Text(_) => id,
        };
        Self {
            places: PlaceSets::new(),
            contexts: Contexts::new(program.network()),
            entries: Vec::new(),
            index: FxHashMap::default(),
            work: BinaryHeap::new(),
            leaves: LeafMovesCache::default(),
            same: program.leaf_ids().zip(program.leaves()).map(same).collect(),
            all_steps: STEPS,
            steps: 0,
        }
    }

    /// The ways to the end of a position's rule. `places` are the nodes at which a path comes to the position, in a context. The place between two tokens
    /// is never in a set with others.
    pub(crate) fn exits(
        &mut self,
        program: &Program,
        trie: &Trie,
        position: Position,
        places: PlaceSet,
        context: Context,
    ) -> &[Exit] {
        let known = self.index.get(&(position, places, context)).copied();
        let granted = match known {
            Some(_) => self.all_steps,
            None => self.all_steps.max(STEPS_MORE),
        };
        self.steps = granted;
        let Some(entry) = self.entry(position, places, context) else { return &[] };
        let ground = Ground { program, trie };
        while self.steps > 0
            && let Some(Reverse(work)) = self.work.pop()
        {
            match work.position {
                Position::End => self.arrive(work),
                _ => self.walk(ground, work),
            }
        }
        self.all_steps = self.all_steps.saturating_sub(granted - self.steps);
        &self.entries[entry as usize].exits
    }

    /// The positions of a thread. It need not be in all of them at once: each has a part of what may follow.
    pub(crate) fn positions(&self, program: &Program, at: At, count: Count) -> Vec<Position> {
        match at {
            At::DONE => vec![Position::End],
            At::Network(state) => vec![Position::State(state)],
            At::Leaf(leaf, state) => {
                let windows = program.counts().windows(count, program.leaf(leaf).bounds());
                windows.into_iter().map(|window| self.in_leaf(program, leaf, state, window)).collect()
            }
        }
    }

    /// Behind some rounds of a repetition.
    pub(crate) fn rounds(program: &Program, index: u32, rounds: Count) -> Vec<Position> {
        let windows = program.counts().windows(rounds, program.counted(index).bounds());
        windows.into_iter().map(|window| between_rounds(index, window)).collect()
    }

    /// The context in a scope that may have begun another value, and lacks some. `None` if its end cannot be found.
    pub(crate) fn context(
        &mut self,
        program: &Program,
        scope: u32,
        is_empty: bool,
        lacks: impl Fn(&[u8]) -> bool,
    ) -> Option<Context> {
        self.contexts.of(program.network(), program.scope(scope), (true, is_empty), lacks)
    }

    /// Whether a scope may close.
    pub(crate) fn may_close(&self, context: Context) -> bool {
        self.contexts.may_close(context)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let entry = |entry: &Entry| {
            size_of_val(&*entry.exits)
                + size_of_val(&*entry.callers)
                + entry.reached.len() * 8
                + entry.walked.len() * 32
                + 2 * size_of::<Entry>()
        };
        self.entries.iter().map(entry).sum::<usize>() + self.places.heap_bytes() + self.leaves.heap_bytes()
    }

    fn in_leaf(&self, program: &Program, leaf: LeafId, state: LeafState, window: Window) -> Position {
        let Leaf::Window { automaton, .. } = program.leaf(leaf) else { return Position::Text(leaf, state) };
        let least = window.need.max(automaton.tail(state));
        let (need, room) = (window.need, within_slack(window.room, least));
        Position::Leaf { leaf: self.same[leaf.index()], state, need, room }
    }

    /// Calls something, and goes on behind it.
    fn call_callee(
        &mut self,
        program: &Program,
        callee: Callee,
        work: Work,
        behind: Position,
        places: PlaceSet,
    ) {
        let Work { cost, entry, context, .. } = work;
        let mut caller = Caller { entry, cost, behind, limit: u32::MAX, scope: Around::Stays(context) };
        let mut inner = Context::NONE;
        if program.network().machine_of(callee).is_some_and(|machine| self.contexts.has_checks(machine)) {
            (caller.scope, inner) = (Around::Goes, context);
        }
        let position = match callee {
            Callee::Machine(machine) => Position::Machine(machine),
            Callee::Scope(index) => {
                let scope = program.scope(index);
                let fresh = self.contexts.of(program.network(), scope, (false, true), |_| true);
                let Some(fresh) = fresh else { return };
                (caller.scope, inner) = (Around::Closes(context), fresh);
                Position::Machine(scope.body)
            }
            Callee::Leaf(leaf) => {
                let window = program.leaf(leaf).bounds().window(0);
                self.in_leaf(program, leaf, program.leaf(leaf).start(), window)
            }
            Callee::Loop(index) => {
                // A repetition takes a round at least: the way around it is part of the network.
                let Bounds { min, max } = program.counted(index).bounds();
                between_rounds(index, Window { need: min.max(1), room: max })
            }
            Callee::Limit(index) => {
                let limit = program.limit(index);
                caller.limit = limit.tokens;
                Position::Machine(limit.body)
            }
            Callee::Check => return,
        };
        self.call((position, places, inner), caller);
    }

    /// A value has ended, and must be new: what that costs, and the context behind it.
    fn check(&mut self, program: &Program, check: NodeId, context: Context) -> Option<(u32, Context)> {
        let network = program.network();
        if self.contexts.is_plain {
            return Some((NEW_VALUE, context));
        }
        if let Some(word) = network.word_checks.get(&check) {
            return self.contexts.after_word(context, *word).map(|context| (0, context));
        }
        let more = match network.longest_values.get(&check) {
            _ if self.contexts.is_empty(context) => 0,
            _ if network.endless_checks.contains(&check) => NEW_VALUE,
            // Any value that is left is no longer than this.
            Some(longest) => *longest,
            None => return None,
        };
        Some((more, self.contexts.after_value(context)))
    }

    /// The entry of a position, which may be new.
    fn entry(&mut self, position: Position, places: PlaceSet, context: Context) -> Option<EntryId> {
        if let Some(known) = self.index.get(&(position, places, context)) {
            return Some(*known);
        }
        if self.entries.len() >= ENTRIES {
            return None;
        }
        let entry = self.entries.len() as EntryId;
        self.entries.push(Entry::default());
        self.index.insert((position, places, context), entry);
        self.work.push(Reverse(Work { cost: 0, entry, position, places, context }));
        Some(entry)
    }

    /// Goes on behind the end of another entry, for all exits that are known and those that will be.
    fn call(&mut self, (position, places, context): (Position, PlaceSet, Context), caller: Caller) {
        let Some(callee) = self.entry(position, places, context) else { return };
        if callee == caller.entry && caller.behind == Position::End {
            // It would find what it knows already, at a higher cost.
            return;
        }
        self.entries[callee as usize].callers.push(caller);
        for at in 0..self.entries[callee as usize].exits.len() {
            let exit = self.entries[callee as usize].exits[at];
            self.go_on(caller, exit);
        }
    }

    /// The callee of somebody has come to its end.
    fn go_on(&mut self, caller: Caller, Exit { tokens, places, context }: Exit) {
        let begun = u32::from(places != PlaceSet::BETWEEN);
        if tokens.saturating_add(begun) > caller.limit {
            return;
        }
        let context = match caller.scope {
            Around::Goes => context,
            Around::Stays(before) => before,
            Around::Closes(before) if self.contexts.may_close(context) => before,
            Around::Closes(_) => return,
        };
        let (cost, position) = (tokens.saturating_add(caller.cost), caller.behind);
        self.work.push(Reverse(Work { cost, entry: caller.entry, position, places, context }));
    }

    /// The end of an entry's rule is reached.
    fn arrive(&mut self, Work { cost, entry, places, context, .. }: Work) {
        let nodes = self.places.nodes(places);
        let known = &mut self.entries[entry as usize];
        let new: Vec<TrieNode> =
            nodes.iter().copied().filter(|node| known.reached.insert((*node, context))).collect();
        self.steps = self.steps.saturating_sub(nodes.len() as u64 + 1);
        if new.is_empty() {
            return;
        }
        let places = if new.len() == nodes.len() { places } else { self.places.intern(new) };
        let exit = Exit { tokens: cost, places, context };
        self.entries[entry as usize].exits.push(exit);
        for at in 0..self.entries[entry as usize].callers.len() {
            let caller = self.entries[entry as usize].callers[at];
            self.go_on(caller, exit);
        }
    }
}

fn between_rounds(index: u32, Window { need, room }: Window) -> Position {
    Position::Rounds { index, need, room: within_slack(room, need) }
}

/// More room than this is not used.
fn within_slack(room: u32, need: u32) -> u32 {
    if room == UNBOUNDED { UNBOUNDED } else { room.min(need.saturating_add(SLACK)) }
}

/// The position behind a node, in its shortest form.
fn behind(program: &Program, node: NodeId) -> Position {
    match program.network().nodes[node.index()] {
        Node::Final => Position::End,
        _ => Position::Node(node),
    }
}
