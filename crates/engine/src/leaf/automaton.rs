//! A leaf as a table of transitions.
//!
//! Besides its target, a transition carries an [`Action`], which ties the automaton to a counter that
//! lives outside: `Unit` begins one more unit (a character of a string), `Close` leaves the counted part
//! and so demands that the minimum has been reached. The automaton for `"[^"]*"` thus serves every pair
//! of `minLength` and `maxLength`; a bound of 100,000 adds no states.

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
    /// Begins a unit: allowed while the count is below the maximum, and adds one to it.
    Unit,
    /// Ends the counted part: allowed when the count has reached the minimum.
    Close,
}

/// A state of a leaf: of an [`Automaton`], or of a [`super::Text`]. 0 is dead.
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

/// A target state and an action in one word. The dead state is 0.
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

/// By how many characters at least every text that ends can be made longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Growth {
    /// Perhaps by none.
    Unknown,
    One,
    /// Or more.
    Two,
}

/// A frozen automaton. State 0 is dead; from every other state an accepting one can be reached.
#[derive(Debug)]
pub(crate) struct Automaton {
    classes: Box<[u8; 256]>,
    stride: usize,
    steps: Box<[Step]>,
    states: Box<[State]>,
    start: LeafState,
    /// The bytes by which some accepting state goes on. If what follows the leaf begins with none of
    /// them, then the leaf ends exactly where its automaton dies.
    open: ByteSet,
    longest_tail: u32,
    /// All that it accepts are JSON strings, in the same number of units as in [`super::json`].
    is_string: bool,
    growth: Growth,
    /// Some step begins a unit.
    counts: bool,
    endless: OnceLock<Endless>,
    numbers: OnceLock<Numbers>,
}

/// From which states infinitely many texts lead on: see [`Automaton::is_endless`] and [`Automaton::stays_endless`].
#[derive(Debug)]
struct Endless {
    at_once: Box<[bool]>,
    always: Box<[bool]>,
}

/// What states mean for numbers, however they are spelled: `1`, `1.0` and `1.00` are one number.
#[derive(Debug)]
struct Numbers {
    /// How many digits it takes to a state from which any number of digits may follow, each of them any but zero.
    endless: Box<[u32]>,
    /// How many digits come before one that is not zero.
    nonzero: Box<[u32]>,
    /// See [`Automaton::is_integers`].
    are_integers: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct State {
    live: ByteSet,
    accepting: bool,
    /// Every way on begins a unit.
    counts_only: bool,
    /// How many units must yet begin before the automaton can accept.
    tail: u32,
}

fn any_counts(steps: &[Step]) -> bool {
    steps.iter().any(|step| !step.is_dead() && step.action() == Action::Unit)
}

/// The tail of a state from which nothing is accepted, and the distance from which nothing is reached.
const NEVER: u32 = u32::MAX;

const NONZERO: &[u8] = b"123456789";

/// Sparse rows of a table: for each state, ranges of bytes and where they lead. The first is that of the dead state.
pub(super) struct Rows {
    steps: Vec<(u8, u8, Step)>,
    places: Vec<(u32, u32)>,
}

impl Rows {
    /// Empty rows for so many states.
    pub(super) fn new(states: usize) -> Self {
        Self { steps: Vec::new(), places: vec![(0, 0); states] }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn set(&mut self, state: LeafState, row: &[(u8, u8, Step)]) {
        self.places[state.index()] = self.append(row);
    }

    /// One more state.
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

/// For each of `len` states, the least number of units on a way to one of the `ends`.
fn tails<'s>(
    len: usize,
    steps: impl Iterator<Item = (LeafState, &'s Step)> + Clone,
    ends: impl Iterator<Item = LeafState>,
) -> Vec<u32> {
    let live = steps.filter(|(_, step)| !step.is_dead());
    let live = live.map(|(state, step)| (step.target().0, (state, u32::from(step.action() == Action::Unit))));
    let before = Grouped::new(len, live);
    let mut tails = vec![NEVER; len];
    // Breadth first by units: what costs none goes to the front.
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
    /// A DFA whose transitions count nothing.
    pub(crate) fn from_dfa(dfa: &Dfa) -> Self {
        Self::new(
            dfa.len(),
            LeafState(dfa.start().0),
            |s| dfa.is_accepting(DfaState(s.0)),
            |s, b| Step::new(LeafState(dfa.next(DfaState(s.0), b).0), Action::Pass),
        )
    }

    /// Any number of units, given as the DFA of their star. A unit is no prefix of another, so the start state, and no
    /// other, is "between two units".
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

    /// Texts whose unit is the character. A limit on their number leads into no dead end, because what must follow a state counts, too.
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

    /// Tabulates a transition function over states `0..len`, of which 0 is the dead one.
    pub(crate) fn new(
        len: usize,
        start: LeafState,
        accepting: impl Fn(LeafState) -> bool,
        step: impl Fn(LeafState, u8) -> Step,
    ) -> Self {
        let numbers = || (0..len as u32).map(LeafState);
        let mut classes = Box::new([0u8; 256]);
        let mut representatives: Vec<u8> = Vec::new();
        // PERF: columns are compared by a hash first; to compare each with all others took a fifth of compiling a class of characters.
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

    /// A table of JSON strings. One state accepts. Steps into states from which it cannot be reached are left out.
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

    /// Whether a state is where a unit may begin or the last one has ended.
    pub(crate) fn is_between_units(&self, state: LeafState) -> bool {
        self.row(state).iter().any(|step| !step.is_dead() && step.action() != Action::Pass)
    }

    /// For each state, whether infinitely many texts lead on from it: whether it comes to a loop.
    pub(crate) fn is_endless(&self, state: LeafState) -> bool {
        self.endless.get_or_init(|| self.find_endless()).at_once[state.index()]
    }

    /// The same whatever comes next: nothing but the end leads out of the loops.
    pub(crate) fn stays_endless(&self, state: LeafState) -> bool {
        self.endless.get_or_init(|| self.find_endless()).always[state.index()]
    }

    /// How many digits it takes from a state to where each further one makes nine other numbers or more; `None` if there is no such place.
    pub(crate) fn digits_to_endless(&self, state: LeafState) -> Option<u32> {
        let digits = self.numbers().endless[state.index()];
        (digits != NEVER).then_some(digits)
    }

    /// Whether a digit that is not zero can come, after other digits.
    pub(crate) fn reaches_nonzero(&self, state: LeafState) -> bool {
        self.numbers().nonzero[state.index()] != NEVER
    }

    /// Whether such a digit stands in some text.
    pub(crate) fn may_have_nonzero(&self) -> bool {
        let has_nonzero = |state| NONZERO.iter().any(|byte| self.live(state).contains(*byte));
        (0..self.len() as u32).map(LeafState).any(has_nonzero)
    }

    /// Whether all texts are integers as JSON writes them, and every one of them but zero can always go on.
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
        // The states from which nine digits lead to such states again. Others are taken away until all that are left are such.
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
        // Where a text ends for good, it must be a zero, which can be told by where it comes from.
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
        // Neighbouring classes often lead to the same state, and how often one leads there does not matter.
        let targets = |state: LeafState| {
            let row = self.row(state);
            let is_first = move |at: usize| !row[at].is_dead() && (at == 0 || row[at - 1] != row[at]);
            (0..row.len()).filter(move |&at| is_first(at)).map(move |at| (row[at].target().0, state))
        };
        let states = (0..self.len() as u32).map(LeafState);
        let mut left: Vec<usize> = states.clone().map(|state| targets(state).count()).collect();
        let before = Grouped::new(self.len(), states.clone().flat_map(targets));
        // States without a way on are taken away until every one that is left has one.
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
        // Those that lead to one that was taken away, and is not the end, are not endless for ever.
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

    /// The steps from a state, one for each class of bytes.
    pub(crate) fn row(&self, state: LeafState) -> &[Step] {
        &self.steps[state.index() * self.stride..(state.index() + 1) * self.stride]
    }

    /// The state after some bytes; 0 if they lead nowhere.
    pub(crate) fn after(&self, state: LeafState, bytes: &[u8]) -> LeafState {
        bytes.iter().fold(state, |state, &byte| self.step(state, byte).target())
    }

    #[inline]
    pub(crate) fn is_accepting(&self, state: LeafState) -> bool {
        self.states[state.index()].accepting
    }

    /// The bytes that keep the automaton alive, whatever the counter says.
    #[inline]
    pub(crate) fn live(&self, state: LeafState) -> &ByteSet {
        &self.states[state.index()].live
    }

    /// Whether every way on from here begins a unit.
    #[inline]
    pub(crate) fn counts_only(&self, state: LeafState) -> bool {
        self.states[state.index()].counts_only
    }

    /// Whether a text may end here, and can go on, if at all, only with another unit.
    #[inline]
    pub(crate) fn may_have_to_end(&self, state: LeafState) -> bool {
        let State { accepting, counts_only, .. } = self.states[state.index()];
        accepting && counts_only
    }

    /// How many units must yet begin, at least.
    #[inline]
    pub(crate) fn tail(&self, state: LeafState) -> u32 {
        self.states[state.index()].tail
    }

    /// See the field.
    pub(crate) fn open(&self) -> &ByteSet {
        &self.open
    }

    /// The greatest [`tail`](Self::tail).
    pub(crate) fn longest_tail(&self) -> u32 {
        self.longest_tail
    }

    /// Whether a window on the number of units leads into no dead end. What must follow a state is taken into account at
    /// every step, so a maximum does not; a minimum does not if no text is shorter, or if a text can always go on.
    pub(crate) fn takes_window(&self, min: u32, max: u32) -> bool {
        let shortest = self.tail(self.start);
        min <= max && shortest <= max && (min <= shortest || self.grows())
    }

    /// Whether every text that ends can be made longer by one character, so that each length is another text.
    pub(crate) fn grows(&self) -> bool {
        self.growth >= Growth::One
    }

    /// Whether every text that ends can be made longer by one of two characters, so that each length has twice as many texts as the one before.
    pub(crate) fn branches(&self) -> bool {
        self.growth == Growth::Two
    }

    /// Bytes of a class lead the same way from every state.
    pub(crate) fn class(&self, byte: u8) -> u8 {
        self.classes[usize::from(byte)]
    }

    /// See the field.
    pub(crate) fn is_string(&self) -> bool {
        self.is_string
    }

    /// Whether anything is counted.
    pub(crate) fn counts(&self) -> bool {
        self.counts
    }

    /// The units that have begun after a step; `None` if the step cannot be made.
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
        // There must be room for what has to follow.
        (count <= max && self.tail(step.target()) <= max - count).then_some(count)
    }

    /// What a character does that is counted, if anything is.
    pub(crate) fn unit(&self) -> Action {
        if self.counts { Action::Unit } else { Action::Pass }
    }

    /// All states but the dead one.
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

/// On disk ([`crate::library`]): what cannot be read off the rest.
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

/// Everything else follows from these.
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
