//! The least number of tokens: shortest paths through a program and the vocabulary's trie at once.
//!
//! A text is written token by token, and a token may run over the borders of leaves and rules. So a state of the search
//! is a pair: a position in the program, and a node of the trie, which says how much of a token is written. A byte
//! moves both. A token costs one, when its first byte is written. At a node with a token, the token may end, and the
//! next one begins at the root.
//!
//! ```text
//!   rule       "{\"name\":" string "}"              tokens  {"  name  ":"  "}
//!   position   ╶─{╶─"╶─n╶─a╶─m╶─e╶─"╶─:╶┤"╶─"├╶─}╶─
//!   node        {  {" │n na nam name│"  ":│":"│ "  "}│         costs 4, although `":"` and `"}` cross borders
//! ```
//! Rules call each other, so there are infinitely many positions with their stacks. Instead, an [`Entry`] for a
//! position and a set of nodes stores its [exits](Exit): the numbers of tokens in which the *end of its rule* can be
//! reached, and the nodes where that happens. A call requests the exits of the callee, and continues after the call at
//! the nodes found there.
//!
//! A query looks for the nearest end of a text. It is Dijkstra's algorithm from the current position: the nearest work
//! comes first, in any entry, and when the end is found, everything farther away is left undone. Entries remember what
//! they have found and what is left to do, so the next query continues where this one has stopped. Two things make that
//! possible:
//!
//! * An entry counts from its own beginning. In each query it also has an offset, `since`: the distance of its nearest
//!   caller.
//! * [`Entry::done`] says up to which distance from its beginning everything was explored. A query returns to an entry
//!   only beyond that.
//!
//! [`crate::budget`] follows the stack of a thread: it waits for the exits of entries, and requests those of the next
//! frame.
//!
//! # Where it is not the least number
//!
//! * Repetitions and windows with a maximum use at most [`SLACK`] rounds or units more than they must.
//! * A value that must be new costs more: see [`super::new_values`]. Required values come in the order of [`contexts`].

mod contexts;
pub(super) mod leaves;
mod places;
mod walk;

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use maskwright_vocab::TrieNode;
use rustc_hash::{FxHashMap, FxHashSet};

use self::contexts::Contexts;
pub(crate) use self::contexts::{Context, Needs};
pub(crate) use self::places::PlaceSet;
use self::places::{PlaceSets, SeenNodes};
use super::BoundProgram;
use crate::count::{Bounds, Count, UNBOUNDED, Window};
use crate::leaf::{Leaf, LeafState};
use crate::program::network::{Callee, LoopId, MachineId, Node, NodeId};
use crate::program::{At, LeafId, NetState, Program};

/// The greatest number of optional rounds of a repetition, or units of a leaf, that are used if there is a maximum.
const SLACK: u32 = 32;
/// When there are more entries than this, or more nodes in sets of them, all are forgotten before the next query.
const MAX_ENTRIES: usize = 50_000;
const MAX_NODES: usize = 4_000_000;

/// A position in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Position {
    /// The end of the rule.
    End,
    Node(NodeId),
    /// The bytes of a node.
    Byte(NodeId),
    State(NetState),
    Machine(MachineId),
    /// In a table, with `need` to `room` units to come.
    Leaf {
        leaf: LeafId,
        state: LeafState,
        need: u32,
        room: u32,
    },
    Text(LeafId, LeafState),
    /// Between two rounds of a repetition, with `need` to `room` of them to come.
    Rounds {
        index: LoopId,
        need: u32,
        room: u32,
    },
}

/// What is known of a position and the nodes at which paths reach it.
#[derive(Debug, Default)]
struct Entry {
    /// Ascending. No node occurs twice in a context, except in large sets.
    exits: Vec<Exit>,
    /// The nodes of all exits except large sets, and those sets.
    reached: FxHashSet<(TrieNode, Context)>,
    reached_sets: FxHashSet<(PlaceSet, Context)>,
    /// The entries that continue after this one's end.
    callers: Vec<Caller>,
    /// The entries whose exits this one waits for, and the tokens until then.
    callees: Vec<(EntryId, u32)>,
    /// The positions and nodes that were visited inside the rule.
    walked: SeenNodes<(Position, Context)>,
    /// The work that is left to do, cheapest first.
    work: BinaryHeap<Reverse<Work>>,
    /// All work that costs less is done.
    done: u32,
    /// The last query that reached this entry.
    question: u32,
    /// In that query, the number of tokens to this entry.
    since: u32,
    /// Whether in that query its work and its callees are on the agenda.
    is_open: bool,
    /// The distance at which its work is on the agenda.
    scheduled: u32,
}

/// A way to the end of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The number of tokens on the way, including the one that has begun.
    pub(crate) tokens: u32,
    /// The nodes within a token where it ends.
    pub(crate) places: PlaceSet,
    /// What the scope around the rule needs then.
    pub(crate) context: Context,
}

/// An entry that waits for the exits of another.
#[derive(Clone, Copy, Debug)]
struct Caller {
    entry: EntryId,
    /// The number of tokens until the call.
    cost: u32,
    /// The position after the call.
    after: Position,
    /// The greatest number of tokens that the callee may take.
    limit: u32,
    scope: Around,
}

/// The effect of a call on the scope around it.
#[derive(Clone, Copy, Debug)]
enum Around {
    /// Values in the callee belong to the scope.
    Goes,
    /// Values in the callee do not belong to the scope, so this context is restored.
    Stays(Context),
    /// The callee is a scope, which must be complete; then this context is restored.
    Closes(Context),
}

type EntryId = u32;

/// A unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    cost: u32,
    position: Position,
    places: PlaceSet,
    context: Context,
}

/// An item of a query's agenda. Among items at equal distance, exits come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Exit(Arrival),
    Open(EntryId),
    Work(EntryId),
}

/// A requested end that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrival {
    /// The number of the request.
    pub(crate) request: u32,
    pub(crate) places: PlaceSet,
    pub(crate) context: Context,
}

/// The shortest paths of one program with one vocabulary, as far as they were requested.
#[derive(Debug)]
pub(crate) struct ShortestPaths {
    places: PlaceSets,
    entries: Vec<Entry>,
    contexts: Contexts,
    index: FxHashMap<(Position, PlaceSet, Context), EntryId>,
    /// For each leaf, the first one with the same table.
    same: Box<[LeafId]>,
    /// The number of the query.
    question: u32,
    agenda: BinaryHeap<Reverse<(u32, Item)>>,
    /// The entries that this query has reached.
    open: Vec<EntryId>,
    /// The requests for the exits of each entry: their numbers, and the tokens until there.
    requests: FxHashMap<EntryId, Vec<(u32, u32)>>,
    /// The distance that the query has reached.
    reached: u32,
    /// The number of steps that the query may still take.
    steps: u64,
    /// The number of times that everything was forgotten.
    forgotten: u32,
}

impl ShortestPaths {
    pub(crate) fn new(program: &Program) -> Self {
        let mut first = FxHashMap::default();
        let same = |(id, leaf): (LeafId, &Leaf)| match leaf {
            Leaf::Window { automaton, .. } => *first.entry(Arc::as_ptr(automaton)).or_insert(id),
            Leaf::Text(_) => id,
        };
        Self {
            places: PlaceSets::new(),
            contexts: Contexts::new(program.network()),
            entries: Vec::new(),
            index: FxHashMap::default(),
            same: program.leaf_ids().zip(program.leaves()).map(same).collect(),
            question: 0,
            agenda: BinaryHeap::new(),
            open: Vec::new(),
            requests: FxHashMap::default(),
            reached: 0,
            steps: 0,
            forgotten: 0,
        }
    }

    /// Begins a query, which may take `steps` steps. Returns how often everything was forgotten: sets of nodes from
    /// before that are invalid.
    pub(crate) fn begin(&mut self, steps: u64) -> u32 {
        if self.entries.len() > MAX_ENTRIES || self.places.len() > MAX_NODES {
            self.entries = Vec::new();
            self.index = FxHashMap::default();
            self.places = PlaceSets::new();
            self.forgotten += 1;
        }
        self.question += 1;
        self.agenda.clear();
        self.open.clear();
        self.requests.clear();
        self.reached = 0;
        self.steps = steps;
        self.forgotten
    }

    /// Requests the ways to the end of a position's rule. A path reaches the position after `tokens` tokens, at one of
    /// these nodes of the trie, in a context. The place between two tokens must not be in a set with other nodes.
    pub(crate) fn ask(
        &mut self,
        bound: &BoundProgram,
        (position, places, context): (Position, PlaceSet, Context),
        tokens: u32,
        request: u32,
    ) {
        let entry = self.entry(bound.program(), position, places, context);
        self.requests.entry(entry).or_default().push((request, tokens));
        for at in 0..self.entries[entry as usize].exits.len() {
            let exit = self.entries[entry as usize].exits[at];
            self.report(request, tokens, exit);
        }
        self.reach_entry(entry, tokens);
    }

    /// Returns the nearest requested end that was not returned yet, and its number of tokens; `None` if there is none
    /// within `most` tokens, or if the steps are used up.
    pub(crate) fn next(&mut self, bound: &BoundProgram, most: u32) -> Option<(u32, Arrival)> {
        while self.steps > 0
            && let Some(Reverse((tokens, item))) = self.agenda.pop()
        {
            self.reached = tokens;
            if tokens > most {
                return None;
            }
            self.steps -= 1;
            match item {
                Item::Exit(arrival) => return Some((tokens, arrival)),
                Item::Open(entry) => self.open(entry, tokens),
                Item::Work(entry) => self.work(bound, entry, tokens),
            }
        }
        if self.steps > 0 {
            self.reached = u32::MAX;
        }
        None
    }

    /// Returns how many steps the query may still take.
    pub(crate) fn steps_left(&self) -> u64 {
        self.steps
    }

    /// Ends a query. Returns whether the steps were enough.
    pub(crate) fn end(&mut self) -> bool {
        for &entry in &self.open {
            let entry = &mut self.entries[entry as usize];
            entry.done = entry.done.max(self.reached.saturating_sub(entry.since));
        }
        self.steps > 0
    }

    /// Returns the positions of a thread. Each covers a part of what may follow.
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

    /// Returns the positions after some rounds of a repetition.
    pub(crate) fn rounds(program: &Program, index: LoopId, rounds: Count) -> Vec<Position> {
        let windows = program.counts().windows(rounds, program.counted(index).bounds());
        windows.into_iter().map(|window| between_rounds(index, window)).collect()
    }

    pub(crate) fn context(&mut self, needs: Needs) -> Context {
        self.contexts.intern(needs)
    }

    /// Checks whether a scope may close.
    pub(crate) fn may_close(&self, context: Context) -> bool {
        self.contexts.may_close(context)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let entry = |entry: &Entry| {
            size_of_val(&*entry.exits)
                + size_of_val(&*entry.callers)
                + size_of_val(&*entry.callees)
                + entry.reached.len() * 8
                + entry.reached_sets.len() * 8
                + entry.walked.heap_bytes()
                + entry.work.len() * size_of::<Work>()
                + 2 * size_of::<Entry>()
        };
        self.entries.iter().map(entry).sum::<usize>() + self.places.heap_bytes()
    }

    fn in_leaf(&self, program: &Program, leaf: LeafId, state: LeafState, window: Window) -> Position {
        let Leaf::Window { automaton, .. } = program.leaf(leaf) else { return Position::Text(leaf, state) };
        let least = window.need.max(automaton.tail(state));
        let (need, room) = (window.need, within_slack(window.room, least));
        Position::Leaf { leaf: self.same[leaf.index()], state, need, room }
    }

    /// Puts the remaining work of an entry on the agenda, and that of its callees.
    fn open(&mut self, entry: EntryId, tokens: u32) {
        let at = &mut self.entries[entry as usize];
        if at.is_open || at.since.saturating_add(at.done) != tokens {
            return;
        }
        at.is_open = true;
        let since = at.since;
        self.schedule(entry);
        for called in 0..self.entries[entry as usize].callees.len() {
            let (callee, cost) = self.entries[entry as usize].callees[called];
            self.reach_entry(callee, since.saturating_add(cost));
        }
    }

    /// Records that a path reaches an entry after `tokens` tokens.
    fn reach_entry(&mut self, entry: EntryId, tokens: u32) {
        let at = &mut self.entries[entry as usize];
        if at.question != self.question {
            at.question = self.question;
            self.open.push(entry);
        } else if at.since <= tokens {
            return;
        }
        at.since = tokens;
        at.is_open = false;
        at.scheduled = u32::MAX;
        self.agenda.push(Reverse((tokens.saturating_add(at.done), Item::Open(entry))));
    }

    /// Does the work of an entry that is `tokens` tokens from the start of the query.
    fn work(&mut self, bound: &BoundProgram, entry: EntryId, tokens: u32) {
        if self.entries[entry as usize].scheduled != tokens {
            return;
        }
        while self.steps > 0 {
            let at = &mut self.entries[entry as usize];
            let is_now = |work: &Work| at.since.saturating_add(work.cost) <= tokens;
            let Some(work) = at.work.peek().map(|Reverse(work)| *work).filter(is_now) else { break };
            at.work.pop();
            match work.position {
                Position::End => self.arrive(entry, work),
                _ if self.is_shared(bound.program(), entry, work) => {}
                _ => self.walk(bound, entry, work),
            }
        }
        self.entries[entry as usize].scheduled = u32::MAX;
        self.schedule(entry);
    }

    /// Moves work at a large set of nodes to an entry of its own. Returns whether that is a different entry. PERF:
    /// after every token of a free text the same nodes occur again, in every entry in which the text may continue.
    fn is_shared(&mut self, program: &Program, entry: EntryId, work: Work) -> bool {
        let Work { cost, position, places, context } = work;
        if places == PlaceSet::BETWEEN
            || !places::is_large(self.places.nodes(places).len())
            || self.entry(program, position, places, context) == entry
        {
            return false;
        }
        let caller = Caller { entry, cost, after: Position::End, limit: u32::MAX, scope: Around::Goes };
        self.call(program, (position, places, context), caller);
        true
    }

    /// Puts the first work of an entry on the agenda, if it is not there.
    fn schedule(&mut self, entry: EntryId) {
        let at = &mut self.entries[entry as usize];
        let Some(Reverse(work)) = at.work.peek() else { return };
        let next = at.since.saturating_add(work.cost);
        if at.is_open && at.question == self.question && next < at.scheduled {
            at.scheduled = next;
            self.agenda.push(Reverse((next, Item::Work(entry))));
        }
    }

    /// Adds work to an entry.
    fn add_work(&mut self, entry: EntryId, work: Work) {
        self.entries[entry as usize].work.push(Reverse(work));
        self.schedule(entry);
    }

    /// Calls a callee and continues at a position after it.
    fn call_callee(
        &mut self,
        program: &Program,
        callee: Callee,
        (entry, work): (EntryId, Work),
        after: Position,
        places: PlaceSet,
    ) {
        let Work { cost, context, .. } = work;
        let mut caller = Caller { entry, cost, after, limit: u32::MAX, scope: Around::Stays(context) };
        let mut inner = Context::NONE;
        if program.network().machine_of(callee).is_some_and(|machine| self.contexts.has_checks(machine)) {
            (caller.scope, inner) = (Around::Goes, context);
        }
        let position = match callee {
            Callee::Machine(machine) => Position::Machine(machine),
            Callee::Scope(index) => {
                let scope = program.scope(index);
                let Some(fresh) = Needs::fresh(program.network(), scope) else { return };
                (caller.scope, inner) = (Around::Closes(context), self.contexts.intern(fresh));
                Position::Machine(scope.body)
            }
            Callee::Leaf(leaf) => {
                let window = program.leaf(leaf).bounds().window(0);
                self.in_leaf(program, leaf, program.leaf(leaf).start(), window)
            }
            Callee::Loop(index) => {
                // A repetition takes at least one round: the way around it is part of the network.
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
        self.call(program, (position, places, inner), caller);
    }

    /// Returns the entry of a position, which may be new.
    fn entry(
        &mut self,
        program: &Program,
        position: Position,
        places: PlaceSet,
        context: Context,
    ) -> EntryId {
        if let Some(known) = self.index.get(&(position, places, context)) {
            return *known;
        }
        let id = self.entries.len() as EntryId;
        let mut entry = Entry::default();
        let mut add = |cost, position| {
            entry.work.push(Reverse(Work { cost, position, places, context }));
        };
        match position {
            // Every step of a leaf begins another token.
            Position::Leaf { leaf, state, need, .. } if places == PlaceSet::BETWEEN => {
                if need == 0 && is_accepting(program, leaf, state) {
                    add(0, Position::End);
                }
                add(1, position);
            }
            Position::Text(..) if places == PlaceSet::BETWEEN => add(1, position),
            _ => add(0, position),
        }
        self.entries.push(entry);
        self.index.insert((position, places, context), id);
        id
    }

    /// Continues after the end of another entry, for all exits that are known and those still to be found.
    fn call(
        &mut self,
        program: &Program,
        (position, places, context): (Position, PlaceSet, Context),
        caller: Caller,
    ) {
        let callee = self.entry(program, position, places, context);
        if callee == caller.entry && caller.after == Position::End {
            // It would only find what it knows already, at a higher cost.
            return;
        }
        self.entries[callee as usize].callers.push(caller);
        let from = &mut self.entries[caller.entry as usize];
        from.callees.push((callee, caller.cost));
        let tokens = from.since.saturating_add(caller.cost);
        for at in 0..self.entries[callee as usize].exits.len() {
            let exit = self.entries[callee as usize].exits[at];
            self.go_on(caller, exit);
        }
        self.reach_entry(callee, tokens);
    }

    /// Continues a caller after an exit of its callee.
    fn go_on(&mut self, caller: Caller, Exit { tokens, places, context }: Exit) {
        if tokens > caller.limit {
            return;
        }
        let context = match caller.scope {
            Around::Goes => context,
            Around::Stays(before) => before,
            Around::Closes(before) if self.contexts.may_close(context) => before,
            Around::Closes(_) => return,
        };
        let (cost, position) = (tokens.saturating_add(caller.cost), caller.after);
        self.add_work(caller.entry, Work { cost, position, places, context });
    }

    /// Records that the end of an entry's rule is reached.
    fn arrive(&mut self, entry: EntryId, Work { cost, places, context, .. }: Work) {
        let nodes = self.places.nodes(places);
        let known = &mut self.entries[entry as usize];
        let mut places = places;
        if places::is_large(nodes.len()) {
            // The set is kept whole, so that what follows it can be shared, even if some of its nodes were reached
            // before.
            self.steps = self.steps.saturating_sub(1);
            if !known.reached_sets.insert((places, context)) {
                return;
            }
        } else {
            self.steps = self.steps.saturating_sub(nodes.len() as u64 + 1);
            let is_new = |node: &TrieNode| known.reached.insert((*node, context));
            let new: Vec<TrieNode> = nodes.iter().copied().filter(is_new).collect();
            if new.is_empty() {
                return;
            }
            if new.len() < nodes.len() {
                places = self.places.intern(new);
            }
        }
        let exit = Exit { tokens: cost, places, context };
        self.entries[entry as usize].exits.push(exit);
        for at in 0..self.entries[entry as usize].callers.len() {
            let caller = self.entries[entry as usize].callers[at];
            self.go_on(caller, exit);
        }
        for at in 0..self.requests.get(&entry).map_or(0, Vec::len) {
            let (request, tokens) = self.requests[&entry][at];
            self.report(request, tokens, exit);
        }
    }

    fn report(&mut self, request: u32, before: u32, Exit { tokens, places, context }: Exit) {
        let arrival = Arrival { request, places, context };
        self.agenda.push(Reverse((before.saturating_add(tokens), Item::Exit(arrival))));
    }
}

fn is_accepting(program: &Program, leaf: LeafId, state: LeafState) -> bool {
    match program.leaf(leaf) {
        Leaf::Window { automaton, .. } => automaton.is_accepting(state),
        Leaf::Text(_) => false,
    }
}

fn between_rounds(index: LoopId, Window { need, room }: Window) -> Position {
    Position::Rounds { index, need, room: within_slack(room, need) }
}

/// Limits the room to what is used.
fn within_slack(room: u32, need: u32) -> u32 {
    if room == UNBOUNDED { UNBOUNDED } else { room.min(need.saturating_add(SLACK)) }
}

/// Returns the position of a node, in its shortest form.
fn position_at(program: &Program, node: NodeId) -> Position {
    match program.network().nodes[node.index()] {
        Node::Final => Position::End,
        _ => Position::Node(node),
    }
}
