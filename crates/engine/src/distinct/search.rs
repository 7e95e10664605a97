//! Searches for a way out: a continuation in which every value that must be new is new.
//!
//! If a place has no known exit ([`super::out`]), the search continues byte by byte, in rounds, until it reaches a
//! place that has one or has nothing left to try. Each byte takes [`SEARCH_STEPS`] of the steps that a mask may take.
//! If these are used up, the result is an error, never a guess.
//!
//! Rounds alternate between two orders. Depth first finds long ways without choices, such as the members of an object,
//! but it may write `[true,true,true,…` forever where a `false` is required. Cheapest first finds short ways, wherever
//! they are: a text costs a little for its length, and more for each byte that was not the first one tried.
//!
//! ```text
//!   the next byte of     [ 4     [true, 12     [true,true, 20          the `f` of [false 20
//! ```
//!
//! From the second round on, bytes are tried in the order of their distance to the end of the text, computed as if no
//! value had to be new ([`DistancesBelow`]). Cheapest first adds that distance to the cost of a text.
//!
//! A value has many spellings: `"a"` and `"\u0061"`, `1` and `1.0`. One of them is enough, so only the shortest is
//! tried. What was written before the search began stays as it is.

use core::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use maskwright_automata::ByteSet;
use maskwright_grammar::ExprId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Distinct;
use super::nearest::DistancesBelow;
use super::registers;
use super::trial::{KnownExits, Trial};
use crate::leaf::{Automaton, Leaf, LeafState, json_string};
use crate::library::BoundProgram;
use crate::parser::frames::Frames;
use crate::parser::mask::is_in_string;
use crate::parser::stack::{Arena, Frame, Mark, Register, Resume, StackId, Stacks, Top};
use crate::parser::step::{Buffers, may_end};
use crate::parser::thread::Thread;
use crate::program::At;
use crate::program::network::ScopeId;
use crate::value;

/// Cost of a byte tried in the search, in steps of the mask.
const SEARCH_STEPS: u32 = 400;
/// Cost of a byte of a completion that was found from another place, in steps of the mask.
const REPLAY_STEPS: u32 = 40;
/// Number of bytes at the start of a search after each of which completions are tried: where the text ends inside a
/// character, they continue after it.
const BYTES_BEFORE_REPLAY: usize = 3;
/// Maximum number of completions kept, and the maximum length of each.
const MAX_COMPLETIONS: usize = 4;
const MAX_COMPLETION_BYTES: usize = 64;
/// The rounds of a search: its order, how many frames deeper than its start it goes, and how many bytes it tries. A way
/// out is short, nearly always, and where values are recursive, depth first never returns to it. Only the last round
/// decides that there is none, or the first round that is not cut short by these bounds.
const ROUNDS: [(Order, usize, usize); 5] = [
    (Order::DepthFirst, 6, 400),
    (Order::CheapestFirst, usize::MAX, 1_500),
    (Order::DepthFirst, 24, 2_500),
    (Order::CheapestFirst, usize::MAX, 2_500),
    (Order::DepthFirst, usize::MAX, usize::MAX),
];
/// Number of rounds of a search that may give up.
const BRIEF_ROUNDS: usize = 2;
/// Costs of a byte, cheapest first: the only one possible, one of several, and the extra cost for each byte tried
/// before it.
const ONLY_BYTE: u32 = 1;
const CHOSEN_BYTE: u32 = 4;
const BYTE_BEFORE: u32 = 16;
/// Cost of each byte missing to the end of the text.
const BYTE_MISSING: u32 = 4;
/// Cost of a check whether a required name was seen, in steps of the mask.
const NAME_STEPS: u32 = 16;
/// Maximum number of steps to find the dead scopes of a program. Each scope gets half of the steps that are left.
const MAX_FRESH_STEPS: u64 = 40_000_000;
/// Maximum number of threads remembered for a place, by what they have seen.
const MAX_DOMINATING: usize = 16;
/// Maximum number of searches remembered.
const MAX_SEARCHES: usize = 256;
/// Maximum length of the written part of a value in the key of a search.
const MAX_KEY_BYTES: usize = 64;

/// Returns the scopes that cannot be completed although they have seen nothing yet: more values must differ than there
/// are.
///
/// A scope that can be completed has a shortest text, which contains only scopes with shorter texts, and not itself. So
/// the scopes are checked repeatedly, and a search enters no scope that was not found to have a text before.
pub(crate) fn dead_scopes(bound: &BoundProgram) -> Vec<ExprId> {
    let (program, mut buffers) = (bound.program(), Buffers::default());
    let all = (0..program.network().scopes.len() as u32).map(ScopeId);
    let mut open: Vec<ScopeId> =
        all.filter(|index| !program.exits().scope_at(*index, program.scope(*index))).collect();
    let mut steps = MAX_FRESH_STEPS;
    loop {
        let mut dead = Vec::new();
        for &index in &open {
            // A scope without an answer counts as one with a text. It takes at most half of the remaining steps.
            buffers.meter.start(steps / 2);
            if has_text(bound, &mut buffers, index, &open) == Some(false) {
                dead.push(index);
            }
            steps = steps - steps / 2 + buffers.meter.left();
        }
        if dead.len() == open.len() {
            return dead.into_iter().map(|index| program.scope(index).expr).collect();
        }
        open = dead;
    }
}

/// Checks whether a scope can be completed without one of the `forbidden` scopes inside it. Returns `None` if the
/// answer takes too many steps.
fn has_text(
    bound: &BoundProgram,
    buffers: &mut Buffers,
    index: ScopeId,
    forbidden: &[ScopeId],
) -> Option<bool> {
    let program = bound.program();
    let scope = program.scope(index);
    let (mut arena, mut distinct) = (Arena::default(), Distinct::default());
    let bottom = arena.push(program, Frame::FINISH, StackId::BOTTOM);
    let stack = arena.push(program, Frame::scope(index, Register::fresh(scope)), bottom);
    let threads = [Thread::network(program.start(scope.body), stack)];
    let mut known_exits = KnownExits::new(&arena);
    known_exits.forbidden_scopes = forbidden.into();
    let mut trial = Trial {
        bound,
        known_exits,
        arena: &mut arena,
        registers: &mut distinct.registers,
        buffers,
        text: &mut distinct.text,
        searches: &mut distinct.searches,
        threads: &threads,
    };
    trial.search(&threads)
}

/// The order in which a search continues from its places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// From the place added last.
    DepthFirst,
    /// From the place with the cheapest next byte; the last one of equals.
    CheapestFirst,
}

/// A place that a search has reached.
struct Searched {
    threads: Vec<Thread>,
    /// The place before it, and the byte that led from there to here. The first place has none.
    before: usize,
    byte: u8,
    /// Length of the text.
    length: usize,
    /// Bytes still to be tried, the next one last.
    bytes: Vec<u8>,
    /// The current group of values, if there are infinitely many of their kind: an index into `Search::values`.
    inside: Option<usize>,
    /// Cost of its next byte, including all before it.
    cost: u32,
    /// Cost of the way from here to the nearest end.
    rest: u32,
}

/// What the scopes of a thread have seen, the innermost first.
type Seen = SmallVec<[Register; 4]>;

/// The state of a search.
struct Search {
    order: Order,
    /// Length of the text at its start.
    from: usize,
    places: Vec<Searched>,
    /// The place whose text is written.
    written: usize,
    /// The places that are not finished, the next one on top: by cost, if that counts, and by number.
    agenda: BinaryHeap<(Reverse<u32>, usize)>,
    /// For each group of infinitely many values, how many more of them are tried; `None` if enough were tried.
    values: Vec<Option<usize>>,
    /// The threads after values that were skipped.
    skipped: FxHashSet<Vec<Thread>>,
    /// The positions of these threads, and the values they have seen. A thread at the same position that has seen more
    /// values can do nothing that they cannot.
    dominating: FxHashMap<Box<[u32]>, Vec<Seen>>,
    /// Places with more frames than this are omitted.
    deepest: usize,
    /// Whether a place was omitted.
    is_cut: bool,
    /// Distances to the end, if bytes are ordered by them.
    distances: Option<DistancesBelow>,
}

impl Search {
    /// Sets the text to that of a place. Depth first, it is always an extension of a prefix of the text written last.
    fn write(&mut self, place: usize, text: &mut Vec<u8>) {
        let length = self.places[place].length;
        if core::mem::replace(&mut self.written, place) == place || self.order == Order::DepthFirst {
            return text.truncate(length);
        }
        text.truncate(self.from);
        text.resize(length, 0);
        let mut place = &self.places[place];
        while place.length > self.from {
            text[place.length - 1] = place.byte;
            place = &self.places[place.before];
        }
    }

    /// Checks whether a place is inside values of which enough were tried.
    fn is_done(&self, place: usize) -> bool {
        self.places[place].inside.is_some_and(|values| self.values[values].is_none())
    }

    fn schedule(&mut self, place: usize) {
        let cost = match self.order {
            Order::DepthFirst => 0,
            Order::CheapestFirst => self.places[place].cost.saturating_add(self.places[place].rest),
        };
        self.agenda.push((Reverse(cost), place));
    }
}

/// The result of a round.
enum Round {
    Found,
    /// There is no way out.
    Nothing,
    /// The bounds were too small.
    Unknown,
}

impl Trial<'_> {
    /// Checks whether there is a way out after these bytes.
    pub(crate) fn has_exit_after(&mut self, bytes: &[u8]) -> bool {
        let before = (self.arena.mark(), self.registers.mark());
        self.attempt(|this, threads| this.steps(bytes, threads) && this.finds_exit(threads, before))
    }

    /// Checks whether there is a way out from `threads`, the result of a step that was taken. `stacks` and `registers`
    /// are the marks from before it.
    pub(crate) fn has_exit_from(
        &mut self,
        threads: &[Thread],
        stacks: Mark,
        registers: registers::Mark,
    ) -> bool {
        self.attempt(|this, _| this.finds_exit(threads, (stacks, registers)))
    }

    /// Checks whether there is a way out in which all values that must be new are new. `before` marks what the matcher
    /// itself has.
    fn finds_exit(&mut self, threads: &[Thread], before: (Mark, registers::Mark)) -> bool {
        let key = self.key(threads, before);
        if let Some(&known) = key.as_ref().and_then(|key| self.searches.found.get(&**key)) {
            return known;
        }
        // If the steps are used up, the caller discards the answer.
        let Some(found) = (if self.replays(threads) { Some(true) } else { self.search(threads) }) else {
            return true;
        };
        let Some(key) = key else { return found };
        if self.searches.found.len() >= MAX_SEARCHES {
            self.searches.found.clear();
        }
        self.searches.found.insert(key.into_vec().into(), found);
        found
    }

    /// Checks whether one of the last completions leads to a way out from here as well. PERF: thousands of tokens fill
    /// a string up to its maximum length, and each makes another value.
    fn replays(&mut self, threads: &[Thread]) -> bool {
        let completions = core::mem::take(&mut self.known_exits.completions);
        let leads_out = |completion: &Vec<u8>| {
            self.attempt(|this, _| {
                let mut threads = threads.to_vec();
                let mut is_taken = |byte: &u8| {
                    // The completion may lack the text that was skipped when it was found.
                    let (mut all, others) = this.skip_all(core::mem::take(&mut threads));
                    all.extend(others);
                    threads = all;
                    this.buffers.meter.spend(REPLAY_STEPS)
                        && this.steps(core::slice::from_ref(byte), &mut threads)
                };
                completion.iter().all(&mut is_taken)
                    && threads.iter().any(|thread| this.has_known_exit(thread))
            })
        };
        let found = completions.iter().position(leads_out);
        self.known_exits.completions = completions;
        if let Some(at) = found {
            self.known_exits.completions[..=at].rotate_right(1);
        }
        found.is_some()
    }

    /// Returns everything that a search depends on, if that can be said: no value that is checked is being written, or
    /// one without others in it, whose written part is then included.
    fn key(&self, threads: &[Thread], before: (Mark, registers::Mark)) -> Option<SmallVec<[u32; 32]>> {
        let mut key: SmallVec<[u32; 32]> = SmallVec::new();
        if threads.iter().any(|thread| self.may_be_checked(thread)) {
            key.extend(self.text_of_value()?.iter().map(|&byte| u32::from(byte)));
        }
        key.push(u32::MAX);
        self.add_to_key(threads, before, &mut key).then_some(key)
    }

    /// Returns the part of the text that a search depends on if a value may be checked: the written part of a value
    /// without others in it, if that is short.
    pub(super) fn text_of_value(&self) -> Option<&[u8]> {
        if self.bound.program().has_nested_values() {
            return None;
        }
        // The current value begins with this quote or after it.
        let quote = value::opening_quote(self.text, MAX_KEY_BYTES)?;
        Some(&self.text[quote + 1..])
    }

    /// Adds some threads to a key. Returns false if they cannot be identified by what existed before.
    fn add_to_key(
        &self,
        threads: &[Thread],
        (stacks, registers): (Mark, registers::Mark),
        key: &mut SmallVec<[u32; 32]>,
    ) -> bool {
        for &Thread { at, count, mut stack } in threads {
            key.extend_from_slice(&[(at.key() >> 32) as u32, at.key() as u32, count.raw()]);
            while Arena::is_newer(stack, stacks) {
                let Top::Frame(frame, below) = self.arena.top(stack) else { return false };
                key.extend_from_slice(&[1, frame.raw, frame.count]);
                stack = below;
            }
            key.extend_from_slice(&[0, stack.raw()]);
        }
        self.registers.is_at(registers)
    }

    /// Searches for a way out; `None` if the steps are used up.
    pub(super) fn search(&mut self, threads: &[Thread]) -> Option<bool> {
        self.search_in(&ROUNDS, threads)
    }

    /// Searches in the brief rounds only, for callers for whom the answer affects speed and nothing else.
    pub(super) fn search_briefly(&mut self, threads: &[Thread]) -> Option<bool> {
        self.search_in(&ROUNDS[..BRIEF_ROUNDS], threads)
    }

    /// Searches for a way out in some rounds; `None` if they do not decide, or if the steps are used up.
    fn search_in(&mut self, rounds: &[(Order, usize, usize)], threads: &[Thread]) -> Option<bool> {
        if threads.iter().any(|thread| self.has_known_exit(thread)) {
            return Some(true);
        }
        let depth = self.depth(threads);
        for (at, &(order, deeper, bytes)) in rounds.iter().enumerate() {
            let deepest = depth.saturating_add(deeper);
            // PERF: nearly every search ends in the first round, and measuring a large program takes a while.
            let distances = (at > 0).then(DistancesBelow::default);
            let found =
                self.attempt(|this, _| this.search_round(threads, (order, distances), deepest, bytes));
            match found {
                Round::Found => return Some(true),
                Round::Nothing => return self.buffers.meter.over().is_none().then_some(false),
                Round::Unknown if self.buffers.meter.over().is_some() => return None,
                Round::Unknown => {}
            }
        }
        None
    }

    /// Searches with at most `deepest` frames and `bytes_left` bytes.
    fn search_round(
        &mut self,
        threads: &[Thread],
        (order, distances): (Order, Option<DistancesBelow>),
        deepest: usize,
        mut bytes_left: usize,
    ) -> Round {
        let from = self.text.len();
        let mut search = Search {
            order,
            from,
            places: Vec::new(),
            written: 0,
            agenda: BinaryHeap::new(),
            values: Vec::new(),
            skipped: FxHashSet::default(),
            dominating: FxHashMap::default(),
            deepest,
            is_cut: false,
            distances,
        };
        self.add_places(&mut search, threads.to_vec(), None, (0, 0));
        while let Some((_, at)) = search.agenda.pop() {
            if search.is_done(at) {
                continue;
            }
            let place = &mut search.places[at];
            let Some(byte) = place.bytes.pop() else { continue };
            let length = self.text.len() - from;
            if bytes_left == 0 || !self.buffers.meter.spend(SEARCH_STEPS + length as u32 / 4) {
                return Round::Unknown;
            }
            bytes_left -= 1;
            let (cost, inside, length) = (place.cost, place.inside, place.length);
            // A place without bytes is no longer needed.
            let mut next = if place.bytes.is_empty() {
                core::mem::take(&mut place.threads)
            } else {
                place.threads.clone()
            };
            if !place.bytes.is_empty() {
                place.cost = cost.saturating_add(BYTE_BEFORE);
                search.schedule(at);
            }
            search.write(at, self.text);
            if !self.steps(&[byte], &mut next) {
                continue;
            }
            next.retain(|thread| !self.is_in_forbidden_scope(thread));
            if next.iter().any(|thread| self.has_known_exit(thread)) {
                if let Some(text) = self.text.get(from..).filter(|text| text.len() <= MAX_COMPLETION_BYTES) {
                    self.known_exits.completions.truncate(MAX_COMPLETIONS - 1);
                    self.known_exits.completions.insert(0, text.to_vec());
                }
                return Round::Found;
            }
            let in_fraction = matches!(byte, b'.' | b'0')
                && value::ends_in_fraction(self.text)
                && !(length == from && self.text[..length].ends_with(b"."));
            next.retain(|thread| !(self.needs_seen(thread) || in_fraction && self.has_zeros_only(thread)));
            if self.text.len() - from <= BYTES_BEFORE_REPLAY && self.replays(&next) {
                return Round::Found;
            }
            self.add_places(&mut search, next, inside, (at, cost));
        }
        if search.is_cut { Round::Unknown } else { Round::Nothing }
    }

    /// Checks whether a thread has entered a scope that must not be entered. The search itself may have begun in one.
    fn is_in_forbidden_scope(&self, thread: &Thread) -> bool {
        let (mut stack, mut entered) = (thread.stack, 0);
        while entered < 2 && !self.known_exits.forbidden_scopes.is_empty() {
            let Top::Frame(frame, below) = self.arena.top(stack) else { return false };
            match frame.resume() {
                Resume::Finish => return false,
                Resume::Scope { index, .. } => {
                    entered += usize::from(self.known_exits.forbidden_scopes.contains(&index));
                }
                _ => {}
            }
            stack = below;
        }
        entered == 2
    }

    /// Returns the number of frames on the deepest stack, following the first branch of each fork.
    fn depth(&self, threads: &[Thread]) -> usize {
        let of = |thread: &Thread| {
            let (mut stack, mut depth) = (thread.stack, 0);
            loop {
                match self.arena.top(stack) {
                    Top::Frame(frame, _) if matches!(frame.resume(), Resume::Finish) => return depth,
                    Top::Frame(_, below) => {
                        stack = below;
                        depth += 1;
                    }
                    Top::Union(members) => match members.first() {
                        Some(first) => stack = *first,
                        None => return depth,
                    },
                }
            }
        };
        threads.iter().map(of).max().unwrap_or(0)
    }

    /// Adds the places of some threads. `inside` is the group of values that the last byte was part of. `from` is the
    /// place before it, and the cost up to that byte.
    fn add_places(
        &mut self,
        search: &mut Search,
        threads: Vec<Thread>,
        inside: Option<usize>,
        from: (usize, u32),
    ) {
        let (mut skipped, mut others) = self.skip_all(threads);
        if !search.dominating.is_empty() {
            others.retain(|thread| !self.is_dominated(thread, search));
        }
        skipped.retain(|thread| {
            if self.is_dominated(thread, search) {
                return false;
            }
            if let Some((at, seen)) = self.position_key(thread) {
                let all = search.dominating.entry(at).or_default();
                if all.len() < MAX_DOMINATING {
                    all.push(seen);
                }
            }
            true
        });
        // The text of skipped values does not matter, so reaching the place after them once is enough.
        let is_new = !skipped.is_empty() && search.skipped.insert(skipped.clone());
        // The place added last is tried first. After skipped values there are as many ways as before, but among the
        // others there may be a million values that lead nowhere.
        if inside.is_none() && !others.is_empty() {
            self.add_place(search, others, None, from);
            others = Vec::new();
        }
        if is_new {
            self.add_place(search, skipped, inside, from);
        }
        if !others.is_empty() {
            self.add_place(search, others, inside, from);
        }
    }

    fn add_place(
        &mut self,
        search: &mut Search,
        threads: Vec<Thread>,
        inside_before: Option<usize>,
        (before, cost): (usize, u32),
    ) {
        if search.deepest != usize::MAX && self.depth(&threads) > search.deepest {
            search.is_cut = true;
            return;
        }
        let values = match &*threads {
            [thread] => self.infinite_values(thread),
            _ => None,
        };
        let inside = match (values, inside_before) {
            (None, _) => None,
            (Some(_), Some(same)) => Some(same),
            (Some(left), None) => {
                search.values.push(Some(left));
                Some(search.values.len() - 1)
            }
        };
        if let Some(values) = inside_before
            && inside != inside_before
        {
            // One more of infinitely many values. If this many do not help, none does: what follows cannot distinguish
            // the others.
            let Some(left) = &mut search.values[values] else { return };
            let Some(less) = left.checked_sub(1) else {
                search.values[values] = None;
                return;
            };
            *left = less;
        }
        let required = self.required_bytes(&threads);
        let mut bytes = self.order(&threads, required, search.from);
        let rest = match &mut search.distances {
            Some(distances) => {
                self.nearest_last(&threads, required, &mut bytes, distances).saturating_mul(BYTE_MISSING)
            }
            None => 0,
        };
        let chosen = if bytes.len() > 1 { CHOSEN_BYTE } else { ONLY_BYTE };
        let (length, cost) = (self.text.len(), cost.saturating_add(chosen));
        let byte = self.text.last().copied().unwrap_or_default();
        search.places.push(Searched { threads, before, byte, length, bytes, inside, cost, rest });
        search.written = search.places.len() - 1;
        search.schedule(search.written);
    }

    /// Checks whether a thread that skipped values was at the same position before, and had seen nothing that this one
    /// has not.
    fn is_dominated(&self, thread: &Thread, search: &Search) -> bool {
        let Some((at, seen)) = self.position_key(thread) else { return false };
        let is_less =
            |less: &Seen| less.iter().zip(&seen).all(|(less, more)| self.registers.extends(*more, *less));
        search.dominating.get(&at).is_some_and(|all| all.iter().any(is_less))
    }

    /// Returns the position of a thread including how many values its scopes lack, and what they have seen. If values
    /// need others, one more value may require further ones, so the seen values are then part of the position.
    fn position_key(&self, thread: &Thread) -> Option<(Box<[u32]>, Seen)> {
        let at = thread.at.key();
        let mut key: SmallVec<[u32; 64]> =
            SmallVec::from_slice(&[(at >> 32) as u32, at as u32, thread.count.raw()]);
        let (mut stack, mut seen) = (thread.stack, Seen::new());
        loop {
            let Top::Frame(frame, below) = self.arena.top(stack) else { return None };
            match frame.resume() {
                Resume::Finish => return Some((key.into_vec().into(), seen)),
                Resume::Scope { index, register } => {
                    let scope = self.bound.program().scope(index);
                    if scope.has_listed_needs() {
                        key.extend_from_slice(&[0, frame.raw, frame.count]);
                    } else {
                        key.extend_from_slice(&[1, index.0, self.registers.lacks(register, scope)]);
                        seen.push(register);
                    }
                }
                _ => key.extend_from_slice(&[0, frame.raw, frame.count]),
            }
            stack = below;
        }
    }

    /// Returns the bytes to try, in reverse order: bytes that may end something are tried before everything else. White
    /// space between values, which is a leaf, leads only where the bytes after it lead, so it is omitted. `required`
    /// are bytes that continue a missing key, and `from` is where the search began.
    fn order(&mut self, threads: &[Thread], required: ByteSet, from: usize) -> Vec<u8> {
        let live = self.live(threads);
        let in_number = threads.iter().all(|thread| self.number(thread).is_some());
        let is_shortest = |&byte: &u8| {
            if in_number {
                let is_open = self.text.len() == from && self.text.ends_with(b".");
                is_open || threads.iter().any(|thread| self.is_shortest_number(thread, byte))
            } else {
                is_shortest_text(self.text, from, byte)
            }
        };
        let mut bytes: Vec<u8> = live.iter().filter(is_shortest).collect();
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        if bytes.iter().any(is_space) && !bytes.iter().all(is_space) {
            let text = self.text_bytes(threads);
            bytes.retain(|byte| !is_space(byte) || text.contains(*byte));
        }
        let restrictive = self.most_restrictive_bytes(threads);
        // Inside a string, brackets and commas are text, and the quote ends it. Opening brackets are tried last, since
        // a recursion could continue forever.
        let in_string = threads.iter().any(|thread| is_in_string(self.bound.program(), thread));
        bytes.sort_by_key(|byte| match byte {
            _ if required.contains(*byte) => 6,
            b'"' => 5,
            b'}' | b']' if !in_string => 4,
            b',' if !in_string => 3,
            b'{' | b'[' if !in_string => 0,
            _ if restrictive.contains(*byte) => 2,
            _ => 1,
        });
        bytes
    }

    /// Returns the bytes of the thread that accepts the fewest, if there are several threads: a required word is tried
    /// before texts that are merely allowed, of which there may be a million.
    fn most_restrictive_bytes(&mut self, threads: &[Thread]) -> ByteSet {
        if threads.len() < 2 {
            return ByteSet::EMPTY;
        }
        let live = threads.iter().map(|thread| self.live(core::slice::from_ref(thread)));
        live.filter(|live| !live.is_empty()).min_by_key(ByteSet::len).unwrap_or(ByteSet::EMPTY)
    }

    /// Returns the bytes that continue a missing required key, if the text ends inside a key.
    fn required_bytes(&mut self, threads: &[Thread]) -> ByteSet {
        let mut bytes = ByteSet::EMPTY;
        let Some(quote) = value::opening_quote(self.text, MAX_KEY_BYTES) else { return bytes };
        let (typed, true) = value::prefix(&self.text[quote + 1..]) else { return bytes };
        for thread in threads {
            for (index, register) in self.scopes_below(thread.stack, false) {
                if register.may_close() {
                    continue;
                }
                let wanted = &self.bound.program().scope(index).wanted;
                self.buffers.meter.spend((wanted.len() as u32).saturating_mul(NAME_STEPS));
                let missing = wanted.iter().filter(|name| !self.registers.has(register, name));
                let next = missing.filter_map(|name| name.strip_prefix(&*typed)?.first());
                next.for_each(|&byte| bytes.insert(byte));
            }
        }
        bytes
    }

    /// Returns the table of a leaf that is not a string, and the state in it.
    fn number(&self, thread: &Thread) -> Option<(&Automaton, LeafState)> {
        let (leaf, state) = thread.leaf()?;
        match self.bound.program().leaf(leaf) {
            Leaf::Window { automaton, .. }
                if !automaton.is_string() && !Arc::ptr_eq(automaton, json_string()) =>
            {
                Some((automaton, state))
            }
            Leaf::Window { .. } | Leaf::Text(_) => None,
        }
    }

    /// Checks whether a byte continues a spelling of a number without an exponent and without a fraction of zeros.
    fn is_shortest_number(&self, thread: &Thread, byte: u8) -> bool {
        let Some((automaton, state)) = self.number(thread) else { return true };
        let number = &self.text[value::start(self.text).unwrap_or(self.text.len())..];
        match byte {
            b'e' | b'E' => !number.last().is_some_and(u8::is_ascii_digit),
            b'.' => automaton.reaches_nonzero(automaton.step(state, byte).target()),
            b'0' if number.contains(&b'.') => automaton.reaches_nonzero(automaton.step(state, byte).target()),
            _ => true,
        }
    }

    /// Checks whether only zeros can follow in a number that is not a leaf, so that its value stays the same.
    fn has_zeros_only(&self, thread: &Thread) -> bool {
        let program = self.bound.program();
        let reaches_nonzero = |state| program.exits().reaches_nonzero(program, state);
        let At::Network(state) = thread.at else { return false };
        if reaches_nonzero(state) {
            return false;
        }
        let mut frames = Frames::of(self.arena, [thread.stack]);
        while let Some((frame, below)) = frames.next() {
            match frame.resume() {
                Resume::At(state) if self.is_check(state) => {}
                Resume::At(state) if !reaches_nonzero(state) => frames.follow(below),
                _ => return false,
            }
        }
        true
    }

    /// Returns the bytes that are taken inside strings and literals, in network states, and in white space that must be
    /// written.
    fn text_bytes(&mut self, threads: &[Thread]) -> ByteSet {
        let program = self.bound.program();
        let mut waiting = Vec::new();
        self.wait(threads, &mut waiting);
        let is_text = |thread: &Thread| {
            thread.is_in_network() || is_in_string(program, thread) || !may_end(program, thread)
        };
        let texts = waiting.iter().filter(|waiting| is_text(&waiting.thread));
        texts.fold(ByteSet::EMPTY, |all, waiting| all.union(waiting.first))
    }
}

/// Checks whether a byte continues the shortest spelling of a string, considering only the text written from `from` on.
fn is_shortest_text(text: &[u8], from: usize, byte: u8) -> bool {
    // Inside an escape: at most five bytes back there is a backslash that is not escaped itself.
    let tail = &text[text.len().saturating_sub(5)..];
    if let Some(at) = tail.iter().rposition(|&byte| byte == b'\\') {
        let start = text.len() - tail.len() + at;
        let backslashes = text[..=start].iter().rev().take_while(|&&byte| byte == b'\\').count();
        let digits = &text[start + 1..];
        if backslashes % 2 == 1 && (digits.is_empty() || digits[0] == b'u') {
            // The second half of a surrogate pair belongs to the first.
            return if start < from || ends_in_half(&text[..start]) {
                // Hexadecimal digits have two spellings.
                !matches!(byte, b'A'..=b'F') || digits.is_empty()
            } else {
                match digits.len() {
                    0 => matches!(byte, b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' | b'u'),
                    1 | 2 => byte == b'0',
                    3 => matches!(byte, b'0' | b'1'),
                    _ => match digits[3] {
                        b'0' => !matches!(byte, b'8' | b'9' | b'a' | b'c' | b'd' | b'A'..=b'F'),
                        _ => !matches!(byte, b'A'..=b'F'),
                    },
                }
            };
        }
    }
    true
}

/// Checks whether a text ends in an escape that is the first half of a surrogate pair.
fn ends_in_half(text: &[u8]) -> bool {
    let escape = text.last_chunk::<6>();
    escape.is_some_and(|escape| {
        matches!(escape, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..])
    })
}

#[cfg(test)]
mod tests {
    use super::is_shortest_text;

    #[test]
    fn one_spelling_is_tried() {
        let tried = |text: &str, from: usize, bytes: &[u8]| -> Vec<u8> {
            bytes.iter().copied().filter(|&byte| is_shortest_text(text.as_bytes(), from, byte)).collect()
        };
        assert_eq!(tried(r#"["a\"#, 2, b"\"/nuxU"), b"\"nu");
        assert_eq!(tried(r#"["a\\"#, 2, b"\"/nu"), b"\"/nu", "the backslash is a character");
        assert_eq!(tried(r#"["\u00"#, 0, b"0123ff"), b"01");
        assert_eq!(tried(r#"["\u000"#, 0, b"0189abcdefABF"), b"01bef");
        assert_eq!(tried(r#"["\u00"#, 6, b"09afAF"), b"09af", "written before");
        assert_eq!(tried(r#"["\ud83d\u"#, 9, b"0dD"), b"0d", "half a character");
        assert_eq!(tried(r#"["\ud83d\ude"#, 4, b"08fF"), b"08f", "half a character");
        assert_eq!(tried(r#"["1"#, 0, b"0eE\""), b"0eE\"", "no number");
    }
}
