//! A leaf as a table of transitions.
//!
//! Besides its target, a transition carries an [`Action`] on a counter that is kept outside the automaton: `Unit`
//! begins one more unit (a character of a string), and `Close` leaves the counted part, which requires that the minimum
//! has been reached. So the automaton for `"[^"]*"` serves every pair of `minLength` and `maxLength`, and a bound of
//! 100,000 adds no states.

use core::hash::{Hash, Hasher};
use std::collections::VecDeque;
use std::sync::OnceLock;

use maskwright_automata::{ByteSet, Dfa, DfaState, Grouped};
use maskwright_vocab::pack::{Read, Reader, Writer};
use rustc_hash::FxHasher;

use crate::count::Bounds;

/// What a transition does to the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Pass,
    /// Begins a unit: allowed while the count is below the maximum; increments the count.
    Unit,
    /// Ends the counted part: allowed once the count has reached the minimum.
    Close,
}

/// A state of an [`Automaton`] or of a [`super::Text`]. 0 is the dead state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LeafState(pub(crate) u32);

impl LeafState {
    pub(crate) const DEAD: Self = Self(0);

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub(crate) fn is_dead(self) -> bool {
        self.0 == 0
    }
}

/// A target state and an action, packed into one word. 0 is the step to the dead state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Step(u32);

impl Step {
    pub(crate) const DEAD: Self = Self(0);

    pub(crate) fn new(target: LeafState, action: Action) -> Self {
        Self(target.0 << 2 | action as u32)
    }

    #[inline]
    pub(crate) fn target(self) -> LeafState {
        LeafState(self.0 >> 2)
    }

    #[inline]
    pub(crate) fn action(self) -> Action {
        match self.0 & 3 {
            0 => Action::Pass,
            1 => Action::Unit,
            _ => Action::Close,
        }
    }

    #[inline]
    pub(crate) fn is_dead(self) -> bool {
        self.0 == 0
    }
}

/// A lower bound on how many different characters can extend any accepted text to another accepted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Growth {
    /// Possibly none.
    Unknown,
    One,
    /// Two or more.
    Two,
}

/// A frozen automaton. State 0 is dead; every other state can reach an accepting one.
#[derive(Debug)]
pub(crate) struct Automaton {
    classes: Box<[u8; 256]>,
    stride: usize,
    steps: Box<[Step]>,
    states: Box<[State]>,
    start: LeafState,
    /// The bytes with which some accepting state continues. If what follows the leaf begins with none of them, the leaf
    /// ends exactly where its automaton dies.
    open: ByteSet,
    longest_tail: u32,
    /// Whether everything it accepts is a JSON string, with the same number of units as in [`super::json`].
    is_string: bool,
    growth: Growth,
    /// Whether some step begins a unit.
    counts: bool,
    endless: OnceLock<Endless>,
    numbers: OnceLock<Numbers>,
}

/// The states from which infinitely many texts are reachable: see [`Automaton::is_endless`] and
/// [`Automaton::stays_endless`].
#[derive(Debug)]
struct Endless {
    at_once: Box<[bool]>,
    always: Box<[bool]>,
}

/// Facts about states of numbers. They hold for values, not spellings: `1`, `1.0` and `1.00` are one number.
#[derive(Debug)]
struct Numbers {
    /// For each state, the number of digits to a state from which nonzero digits may follow without end and in any
    /// order.
    endless: Box<[u32]>,
    /// For each state, the number of digits before one that is not zero.
    nonzero: Box<[u32]>,
    /// See [`Automaton::is_integers`].
    are_integers: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct State {
    live: ByteSet,
    accepting: bool,
    /// Whether every live step begins a unit.
    counts_only: bool,
    /// The least number of units that must still begin before the automaton can accept.
    tail: u32,
}

fn any_counts(steps: &[Step]) -> bool {
    steps.iter().any(|step| !step.is_dead() && step.action() == Action::Unit)
}

/// The tail of a state that cannot reach an accepting one, and the distance of a state that is not reached.
const NEVER: u32 = u32::MAX;

const NONZERO: &[u8] = b"123456789";

/// Sparse rows of a table: for each state, ranges of bytes with their steps. The first row is that of the dead state.
pub(super) struct Rows {
    steps: Vec<(u8, u8, Step)>,
    places: Vec<(u32, u32)>,
}

impl Rows {
    /// Creates empty rows for `states` states.
    pub(super) fn new(states: usize) -> Self {
        Self { steps: Vec::new(), places: vec![(0, 0); states] }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn set(&mut self, state: LeafState, row: &[(u8, u8, Step)]) {
        self.places[state.index()] = self.append(row);
    }

    /// Appends the row of a new state.
    pub(super) fn push(&mut self, row: &[(u8, u8, Step)]) -> LeafState {
        let place = self.append(row);
        self.places.push(place);
        LeafState(self.places.len() as u32 - 1)
    }

    fn append(&mut self, row: &[(u8, u8, Step)]) -> (u32, u32) {
        let begin = self.steps.len() as u32;
        self.steps.extend_from_slice(row);
        (begin, self.steps.len() as u32)
    }

    fn iter(&self) -> impl Iterator<Item = &[(u8, u8, Step)]> + Clone {
        self.places.iter().map(|&(begin, end)| &self.steps[begin as usize..end as usize])
    }
}

/// For each of `len` states, computes the least number of units on a path to one of the `ends`.
fn tails<'s>(
    len: usize,
    steps: impl Iterator<Item = (LeafState, &'s Step)> + Clone,
    ends: impl Iterator<Item = LeafState>,
) -> Vec<u32> {
    let live = steps.filter(|(_, step)| !step.is_dead());
    let live = live.map(|(state, step)| (step.target().0, (state, u32::from(step.action() == Action::Unit))));
    let before = Grouped::new(len, live);
    let mut tails = vec![NEVER; len];
    // Breadth-first by units: steps that cost none go to the front of the queue.
    let mut work: VecDeque<LeafState> = ends.collect();
    for end in &work {
        tails[end.index()] = 0;
    }
    while let Some(state) = work.pop_front() {
        for &(from, units) in before.of(state.0) {
            let tail = tails[state.index()] + units;
            if tail < tails[from.index()] {
                tails[from.index()] = tail;
                if units == 0 {
                    work.push_front(from);
                } else {
                    work.push_back(from);
                }
            }
        }
    }
    tails
}

fn longest(tails: &[u32]) -> u32 {
    tails.iter().copied().filter(|&tail| tail != NEVER).max().unwrap_or(0)
}

impl Automaton {
    /// Wraps a DFA; no transition counts.
    pub(crate) fn from_dfa(dfa: &Dfa) -> Self {
        Self::new(
            dfa.len(),
            LeafState(dfa.start().0),
            |s| dfa.is_accepting(DfaState(s.0)),
            |s, b| Step::new(LeafState(dfa.next(DfaState(s.0), b).0), Action::Pass),
        )
    }

    /// Wraps the DFA of `unit*`. No unit may be a prefix of another, so the start state is the only one between two
    /// units.
    #[cfg(test)]
    pub(crate) fn units(star: &Dfa) -> Self {
        let start = LeafState(star.start().0);
        Self::new(
            star.len(),
            start,
            |s| star.is_accepting(DfaState(s.0)),
            |s, b| {
                let action = if s == start { Action::Unit } else { Action::Pass };
                Step::new(LeafState(star.next(DfaState(s.0), b).0), action)
            },
        )
    }

    /// Wraps a DFA over texts whose unit is the character. A maximum creates no dead ends, because every state also
    /// knows the units that must still follow (its tail).
    pub(crate) fn characters(texts: &Dfa) -> Self {
        let action = |byte: u8| if byte & 0xC0 == 0x80 { Action::Pass } else { Action::Unit };
        let mut table = Self::new(
            texts.len(),
            LeafState(texts.start().0),
            |s| texts.is_accepting(DfaState(s.0)),
            |s, b| Step::new(LeafState(texts.next(DfaState(s.0), b).0), action(b)),
        );
        let rows = (0u32..).map(LeafState).zip(table.steps.chunks(table.stride));
        let all = rows.flat_map(|(state, row)| row.iter().map(move |step| (state, step)));
        let ends = table.live_states().filter(|end| table.is_accepting(*end));
        let tails = tails(table.len(), all, ends);
        table.longest_tail = longest(&tails);
        table.states.iter_mut().zip(tails).for_each(|(state, tail)| state.tail = tail);
        table
    }

    /// Tabulates a transition function over the states `0..len`. State 0 is the dead one.
    pub(crate) fn new(
        len: usize,
        start: LeafState,
        accepting: impl Fn(LeafState) -> bool,
        step: impl Fn(LeafState, u8) -> Step,
    ) -> Self {
        let numbers = || (0..len as u32).map(LeafState);
        let mut classes = Box::new([0u8; 256]);
        let mut representatives: Vec<u8> = Vec::new();
        // PERF: columns are compared by hash first; comparing each with all others took a fifth of compiling a class of
        // characters.
        let mut hashes: Vec<u64> = Vec::new();
        for byte in 0..=255u8 {
            let mut hasher = FxHasher::default();
            numbers().for_each(|s| hasher.write_u32(step(s, byte).0));
            let hash = hasher.finish();
            let same = |&at: &usize| {
                hashes[at] == hash && numbers().all(|s| step(s, byte) == step(s, representatives[at]))
            };
            let class = (0..hashes.len()).find(same).unwrap_or_else(|| {
                representatives.push(byte);
                hashes.push(hash);
                hashes.len() - 1
            });
            classes[byte as usize] = class as u8;
        }
        let stride = representatives.len();
        let mut steps = Vec::with_capacity(len * stride);
        let mut states = Vec::with_capacity(len);
        let mut open = ByteSet::EMPTY;
        for s in numbers() {
            let row: Vec<Step> = representatives
                .iter()
                .map(|&b| step(s, b))
                .map(|step| if s.is_dead() || step.target().is_dead() { Step::DEAD } else { step })
                .collect();
            let mut live = ByteSet::EMPTY;
            for byte in 0..=255u8 {
                if !row[classes[byte as usize] as usize].is_dead() {
                    live.insert(byte);
                }
            }
            let accepting = !s.is_dead() && accepting(s);
            if accepting {
                open = open.union(live);
            }
            let counts_only = row.iter().all(|step| step.is_dead() || step.action() == Action::Unit);
            steps.extend(row);
            states.push(State { live, accepting, counts_only, tail: 0 });
        }
        let counts = any_counts(&steps);
        Self {
            classes,
            stride,
            steps: steps.into(),
            states: states.into(),
            start,
            open,
            longest_tail: 0,
            is_string: false,
            growth: Growth::Unknown,
            counts,
            endless: OnceLock::new(),
            numbers: OnceLock::new(),
        }
    }

    /// Builds a table of JSON strings. `end` is the only accepting state. Drops steps into states that cannot reach it.
    pub(super) fn of_strings(rows: &Rows, start: LeafState, end: LeafState, growth: Growth) -> Self {
        let numbered = (0u32..).map(LeafState).zip(rows.iter());
        let all = numbered.flat_map(|(state, row)| row.iter().map(move |(_, _, step)| (state, step)));
        let tails = tails(rows.len(), all, [end].into_iter());
        let mut cuts = [false; 257];
        for &(low, high, _) in &rows.steps {
            cuts[usize::from(low)] = true;
            cuts[usize::from(high) + 1] = true;
        }
        let mut classes = Box::new([0u8; 256]);
        for byte in 1..256 {
            classes[byte] = classes[byte - 1] + u8::from(cuts[byte]);
        }
        let stride = usize::from(classes[255]) + 1;
        let mut steps = vec![Step::DEAD; rows.len() * stride];
        let mut states = Vec::with_capacity(rows.len());
        let mut open = ByteSet::EMPTY;
        for (number, (row, &tail)) in rows.iter().zip(&tails).enumerate() {
            let (mut live, mut counts_only) = (ByteSet::EMPTY, true);
            for &(low, high, step) in row {
                if step.is_dead() || tails[step.target().index()] == NEVER {
                    continue;
                }
                live.insert_range(low, high);
                counts_only &= step.action() == Action::Unit;
                let (from, to) =
                    (usize::from(classes[usize::from(low)]), usize::from(classes[usize::from(high)]));
                steps[number * stride + from..=number * stride + to].fill(step);
            }
            let accepting = number == end.index();
            if accepting {
                open = open.union(live);
            }
            states.push(State { live, accepting, counts_only, tail });
        }
        let counts = any_counts(&steps);
        let longest_tail = longest(&tails);
        Self {
            classes,
            stride,
            steps: steps.into(),
            states: states.into(),
            start,
            open,
            longest_tail,
            is_string: true,
            growth,
            counts,
            endless: OnceLock::new(),
            numbers: OnceLock::new(),
        }
    }

    /// Checks whether a unit may begin at a state or the last one has ended there.
    pub(crate) fn is_between_units(&self, state: LeafState) -> bool {
        self.row(state).iter().any(|step| !step.is_dead() && step.action() != Action::Pass)
    }

    /// Checks whether infinitely many texts are reachable from a state, that is, whether it can reach a loop.
    pub(crate) fn is_endless(&self, state: LeafState) -> bool {
        self.endless.get_or_init(|| self.find_endless()).at_once[state.index()]
    }

    /// Checks whether a state [is endless](Self::is_endless) and remains so after any further bytes, except at the end
    /// of the text.
    pub(crate) fn stays_endless(&self, state: LeafState) -> bool {
        self.endless.get_or_init(|| self.find_endless()).always[state.index()]
    }

    /// Returns the number of digits from a state to a place where each further digit makes at least nine different
    /// numbers; `None` if there is no such place.
    pub(crate) fn digits_to_endless(&self, state: LeafState) -> Option<u32> {
        let digits = self.numbers().endless[state.index()];
        (digits != NEVER).then_some(digits)
    }

    /// Checks whether a nonzero digit is reachable from a state by way of digits alone.
    pub(crate) fn reaches_nonzero(&self, state: LeafState) -> bool {
        self.numbers().nonzero[state.index()] != NEVER
    }

    /// Checks whether some state has a step by a nonzero digit.
    pub(crate) fn may_have_nonzero(&self) -> bool {
        let has_nonzero = |state| NONZERO.iter().any(|byte| self.live(state).contains(*byte));
        (0..self.len() as u32).map(LeafState).any(has_nonzero)
    }

    /// Checks whether all texts are integers as JSON writes them, and every one of them except zero can always be
    /// extended.
    pub(crate) fn is_integers(&self) -> bool {
        self.numbers().are_integers
    }

    fn numbers(&self) -> &Numbers {
        self.numbers.get_or_init(|| self.find_numbers())
    }

    fn find_numbers(&self) -> Numbers {
        let states = || (0..self.len() as u32).map(LeafState);
        let targets = |state: LeafState, bytes: &'static [u8]| {
            let steps = bytes.iter().map(move |&byte| self.step(state, byte));
            steps.filter(|step| !step.is_dead()).map(Step::target)
        };
        let distances = |bytes: &'static [u8], ends: VecDeque<LeafState>| -> Box<[u32]> {
            let before = states().flat_map(|state| targets(state, bytes).map(move |to| (to.0, state)));
            let before = Grouped::new(self.len(), before);
            let (mut distances, mut work) = (vec![NEVER; self.len()], ends);
            for end in &work {
                distances[end.index()] = 0;
            }
            while let Some(state) = work.pop_front() {
                let distance = distances[state.index()] + 1;
                for &from in before.of(state.0) {
                    if distances[from.index()] == NEVER {
                        distances[from.index()] = distance;
                        work.push_back(from);
                    }
                }
            }
            distances.into()
        };
        // Finds the states whose nine nonzero digits all lead to such states again, by removing the others one after
        // another.
        let before = states().flat_map(|state| targets(state, NONZERO).map(move |to| (to.0, state)));
        let before = Grouped::new(self.len(), before);
        let mut digits: Vec<usize> = states().map(|state| targets(state, NONZERO).count()).collect();
        let mut work: Vec<LeafState> =
            states().filter(|state| digits[state.index()] < NONZERO.len()).collect();
        while let Some(state) = work.pop() {
            for &from in before.of(state.0) {
                digits[from.index()] -= 1;
                if digits[from.index()] + 1 == NONZERO.len() {
                    work.push(from);
                }
            }
        }
        let is_endless = |state: &LeafState| digits[state.index()] == NONZERO.len();
        let is_nonzero = |state: &LeafState| targets(*state, NONZERO).next().is_some();
        Numbers {
            endless: distances(b"-.0123456789", states().filter(is_endless).collect()),
            nonzero: distances(b"0123456789", states().filter(is_nonzero).collect()),
            are_integers: self.are_integers(),
        }
    }

    fn are_integers(&self) -> bool {
        let start = self.start;
        let minus = self.step(start, b'-').target();
        // A text that cannot continue must be a zero. It is recognized by its predecessor: the start or the minus sign.
        let is_right = |state: LeafState, byte: u8| {
            let next = self.step(state, byte).target();
            let is_first = state == start || state == minus;
            match byte {
                b'-' if state == start => true,
                b'0' if is_first => self.live(next).is_empty(),
                b'0'..=b'9' => self.is_endless(next) && next != start && next != minus,
                _ => false,
            }
        };
        !start.is_dead()
            && self.is_endless(start)
            && self.live_states().all(|state| self.live(state).iter().all(|byte| is_right(state, byte)))
    }

    fn find_endless(&self) -> Endless {
        // Neighboring classes often lead to the same state, and only whether a state is a target matters, not how
        // often.
        let targets = |state: LeafState| {
            let row = self.row(state);
            let is_first = move |at: usize| !row[at].is_dead() && (at == 0 || row[at - 1] != row[at]);
            (0..row.len()).filter(move |&at| is_first(at)).map(move |at| (row[at].target().0, state))
        };
        let states = (0..self.len() as u32).map(LeafState);
        let mut left: Vec<usize> = states.clone().map(|state| targets(state).count()).collect();
        let before = Grouped::new(self.len(), states.clone().flat_map(targets));
        // Remove states without a successor until every remaining state has one.
        let mut at_once: Box<[bool]> = vec![true; self.len()].into();
        let mut work: Vec<LeafState> = states.clone().filter(|&state| left[state.index()] == 0).collect();
        while let Some(state) = work.pop() {
            at_once[state.index()] = false;
            for &state in before.of(state.0) {
                left[state.index()] -= 1;
                if left[state.index()] == 0 {
                    work.push(state);
                }
            }
        }
        // States that can reach a removed state, other than an end of the text, are not always endless.
        let runs_out = |state: &LeafState| !at_once[state.index()] && !self.live(*state).is_empty();
        let mut always: Box<[bool]> = states.clone().map(|state| !runs_out(&state)).collect();
        let mut work: Vec<LeafState> = states.filter(runs_out).collect();
        while let Some(state) = work.pop() {
            let before = before.of(state.0).iter().copied();
            work.extend(before.filter(|&before| core::mem::take(&mut always[before.index()])));
        }
        Endless { at_once, always }
    }

    pub(crate) fn start(&self) -> LeafState {
        self.start
    }

    #[inline]
    pub(crate) fn step(&self, state: LeafState, byte: u8) -> Step {
        self.steps[state.index() * self.stride + self.classes[byte as usize] as usize]
    }

    /// Returns the steps from a state, one for each byte class.
    pub(crate) fn row(&self, state: LeafState) -> &[Step] {
        &self.steps[state.index() * self.stride..(state.index() + 1) * self.stride]
    }

    /// Returns the state after some bytes; 0 if they lead to the dead state.
    pub(crate) fn after(&self, state: LeafState, bytes: &[u8]) -> LeafState {
        bytes.iter().fold(state, |state, &byte| self.step(state, byte).target())
    }

    #[inline]
    pub(crate) fn is_accepting(&self, state: LeafState) -> bool {
        self.states[state.index()].accepting
    }

    /// Returns the bytes that keep the automaton alive, regardless of the counter.
    #[inline]
    pub(crate) fn live(&self, state: LeafState) -> &ByteSet {
        &self.states[state.index()].live
    }

    /// Checks whether every live step from a state begins a unit.
    #[inline]
    pub(crate) fn counts_only(&self, state: LeafState) -> bool {
        self.states[state.index()].counts_only
    }

    /// Checks whether a text may end at a state and can only continue with another unit, if at all.
    #[inline]
    pub(crate) fn may_have_to_end(&self, state: LeafState) -> bool {
        let State { accepting, counts_only, .. } = self.states[state.index()];
        accepting && counts_only
    }

    /// Returns the least number of units that must still begin.
    #[inline]
    pub(crate) fn tail(&self, state: LeafState) -> u32 {
        self.states[state.index()].tail
    }

    /// Returns the bytes with which some accepting state continues.
    pub(crate) fn open(&self) -> &ByteSet {
        &self.open
    }

    /// Returns the greatest [`tail`](Self::tail).
    pub(crate) fn longest_tail(&self) -> u32 {
        self.longest_tail
    }

    /// Checks whether a window on the number of units creates no dead ends. A maximum never does, because every step
    /// checks the units that must still follow. A minimum does not if no text is shorter, or if every text can be
    /// extended.
    pub(crate) fn takes_window(&self, min: u32, max: u32) -> bool {
        let shortest = self.tail(self.start);
        min <= max && shortest <= max && (min <= shortest || self.grows())
    }

    /// Checks whether every accepted text can be extended by one character, so that there is a text of each further
    /// length.
    pub(crate) fn grows(&self) -> bool {
        self.growth >= Growth::One
    }

    /// Checks whether every accepted text can be extended by one of two characters, so that each length has twice as
    /// many texts as the one before.
    pub(crate) fn branches(&self) -> bool {
        self.growth == Growth::Two
    }

    /// Returns the class of a byte. Bytes of one class have the same target from every state.
    pub(crate) fn class(&self, byte: u8) -> u8 {
        self.classes[usize::from(byte)]
    }

    /// Checks whether the table was built as JSON strings, counted like [`super::json`].
    pub(crate) fn is_string(&self) -> bool {
        self.is_string
    }

    /// Checks whether some step begins a unit.
    pub(crate) fn counts(&self) -> bool {
        self.counts
    }

    /// Returns the count after a step; `None` if the counter does not allow the step.
    #[inline]
    pub(crate) fn count_step(&self, step: Step, count: u32, bounds: Bounds) -> Option<u32> {
        let Bounds { min, max } = bounds;
        if step.is_dead() {
            return None;
        }
        let count = match step.action() {
            Action::Pass => count,
            Action::Unit if max == u32::MAX => return Some((count + 1).min(min)),
            Action::Unit => count + 1,
            Action::Close => return (count >= min).then_some(count),
        };
        // There must be room for the units that have to follow.
        (count <= max && self.tail(step.target()) <= max - count).then_some(count)
    }

    /// Returns the action of a step that takes one character: a unit if anything is counted.
    pub(crate) fn unit(&self) -> Action {
        if self.counts { Action::Unit } else { Action::Pass }
    }

    /// Returns all states except the dead one.
    pub(crate) fn live_states(&self) -> impl Iterator<Item = LeafState> + use<> {
        (1..self.len() as u32).map(LeafState)
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.steps) + size_of_val(&*self.states) + 256
    }
}

/// The format on disk ([`crate::library`]): only what cannot be derived from the rest.
impl Automaton {
    pub(crate) fn write(&self, out: &mut Writer) {
        out.bytes(&self.classes[..]);
        out.words(&self.steps.iter().map(|step| step.0).collect::<Vec<u32>>());
        out.words(&self.states.iter().map(|state| state.tail).collect::<Vec<u32>>());
        out.bytes(&self.states.iter().map(|state| u8::from(state.accepting)).collect::<Vec<u8>>());
        out.word(self.start.0);
        out.word(u32::from(self.is_string) | (self.growth as u32) << 1);
    }

    pub(crate) fn read(file: &mut Reader<'_>) -> Read<Self> {
        let classes: Box<[u8; 256]> =
            file.bytes()?.to_vec().try_into().map_err(|_| "a table has too few or too many bytes")?;
        let steps: Box<[Step]> = file.words()?.into_iter().map(Step).collect();
        let (tails, accepting, start) = (file.words()?, file.bytes()?, LeafState(file.word()?));
        let flags = file.word()?;
        let stride = classes.iter().max().map_or(1, |class| usize::from(*class) + 1);
        let fits = steps.len() == stride * tails.len() && accepting.len() == tails.len();
        let is_state = |state: LeafState| state.index() < tails.len();
        if !fits || !is_state(start) || !steps.iter().all(|step| is_state(step.target()) && step.0 & 3 != 3) {
            return Err("the states of a table do not fit together");
        }
        if !steps[..stride].iter().all(|step| step.is_dead()) || accepting[0] != 0 {
            return Err("the dead state of a table is alive");
        }
        let mut open = ByteSet::EMPTY;
        let mut states = Vec::with_capacity(tails.len());
        for ((row, &tail), &accepting) in steps.chunks(stride).zip(&tails).zip(accepting) {
            let mut live = ByteSet::EMPTY;
            for (byte, &class) in (0..=255).zip(classes.iter()) {
                if !row[usize::from(class)].is_dead() {
                    live.insert(byte);
                }
            }
            let accepting = accepting != 0;
            if accepting {
                open = open.union(live);
            }
            let counts_only = row.iter().all(|step| step.is_dead() || step.action() == Action::Unit);
            states.push(State { live, accepting, counts_only, tail });
        }
        Ok(Self {
            stride,
            start,
            open,
            longest_tail: longest(&tails),
            is_string: flags & 1 != 0,
            growth: match flags >> 1 {
                0 => Growth::Unknown,
                1 => Growth::One,
                _ => Growth::Two,
            },
            counts: any_counts(&steps),
            endless: OnceLock::new(),
            numbers: OnceLock::new(),
            classes,
            steps,
            states: states.into(),
        })
    }
}

/// Compares the fields from which all others are derived.
impl PartialEq for Automaton {
    fn eq(&self, other: &Self) -> bool {
        self.start == other.start
            && self.classes == other.classes
            && self.steps == other.steps
            && self.states == other.states
            && (self.is_string, self.growth) == (other.is_string, other.growth)
    }
}

impl Eq for Automaton {}

impl Hash for Automaton {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.start.hash(state);
        self.steps.hash(state);
        self.classes.hash(state);
    }
}
