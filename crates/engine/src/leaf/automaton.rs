//! A leaf as a table of transitions.
//!
//! Besides its target, a transition carries an [`Action`], which ties the automaton to a counter that
//! lives outside: `Unit` begins one more unit (a character of a string), `Close` leaves the counted part
//! and so demands that the minimum has been reached. The automaton for `"[^"]*"` thus serves every pair
//! of `minLength` and `maxLength`; a bound of 100,000 adds no states.

use core::hash::{Hash, Hasher};

use maskwright_automata::{ByteSet, Dfa};

/// What a transition does to the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Pass,
    /// Begins a unit: allowed while the count is below the maximum, and adds one to it.
    Unit,
    /// Ends the counted part: allowed when the count has reached the minimum.
    Close,
}

/// A target state and an action in one word. The dead state is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Step(u32);

impl Step {
    pub(crate) const DEAD: Self = Self(0);

    pub(crate) fn new(target: u32, action: Action) -> Self {
        Self(target << 2 | action as u32)
    }

    #[inline]
    pub(crate) fn target(self) -> u32 {
        self.0 >> 2
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

/// A frozen automaton. State 0 is dead; from every other state an accepting one can be reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Automaton {
    classes: Box<[u8; 256]>,
    stride: usize,
    steps: Box<[Step]>,
    states: Box<[State]>,
    start: u32,
    /// The bytes by which some accepting state goes on. If what follows the leaf begins with none of
    /// them, then the leaf ends exactly where its automaton dies.
    open: ByteSet,
}

#[derive(Debug, PartialEq, Eq)]
struct State {
    live: ByteSet,
    accepting: bool,
    /// Every way on begins a unit.
    counts_only: bool,
}

impl Automaton {
    /// A DFA whose transitions count nothing.
    pub(crate) fn from_dfa(dfa: &Dfa) -> Self {
        Self::new(
            dfa.len(),
            dfa.start(),
            |s| dfa.is_accepting(s),
            |s, b| Step::new(dfa.next(s, b), Action::Pass),
        )
    }

    /// Any number of units, given as the DFA of their star. A unit is no prefix of another, so the start state, and no
    /// other, is "between two units".
    pub(crate) fn units(star: &Dfa) -> Self {
        let start = star.start();
        Self::new(
            star.len(),
            start,
            |s| star.is_accepting(s),
            |s, b| {
                let action = if s == start { Action::Unit } else { Action::Pass };
                Step::new(star.next(s, b), action)
            },
        )
    }

    /// Tabulates a transition function over states `0..len`, of which 0 is the dead one.
    pub(crate) fn new(
        len: usize,
        start: u32,
        accepting: impl Fn(u32) -> bool,
        step: impl Fn(u32, u8) -> Step,
    ) -> Self {
        let mut classes = Box::new([0u8; 256]);
        let mut representatives: Vec<u8> = Vec::new();
        for byte in 0..=255u8 {
            let same = |&other: &u8| (0..len as u32).all(|s| step(s, byte) == step(s, other));
            let class = representatives.iter().position(same).unwrap_or_else(|| {
                representatives.push(byte);
                representatives.len() - 1
            });
            classes[byte as usize] = class as u8;
        }
        let stride = representatives.len();
        let mut steps = Vec::with_capacity(len * stride);
        let mut states = Vec::with_capacity(len);
        let mut open = ByteSet::EMPTY;
        for s in 0..len as u32 {
            let row: Vec<Step> = representatives
                .iter()
                .map(|&b| step(s, b))
                .map(|step| if s == 0 || step.target() == 0 { Step::DEAD } else { step })
                .collect();
            let mut live = ByteSet::EMPTY;
            for byte in 0..=255u8 {
                if !row[classes[byte as usize] as usize].is_dead() {
                    live.insert(byte);
                }
            }
            let accepting = s != 0 && accepting(s);
            if accepting {
                open = open.union(live);
            }
            let counts_only = row.iter().all(|step| step.is_dead() || step.action() == Action::Unit);
            steps.extend(row);
            states.push(State { live, accepting, counts_only });
        }
        Self { classes, stride, steps: steps.into(), states: states.into(), start, open }
    }

    pub(crate) fn start(&self) -> u32 {
        self.start
    }

    #[inline]
    pub(crate) fn step(&self, state: u32, byte: u8) -> Step {
        self.steps[state as usize * self.stride + self.classes[byte as usize] as usize]
    }

    #[inline]
    pub(crate) fn is_accepting(&self, state: u32) -> bool {
        self.states[state as usize].accepting
    }

    /// The bytes that keep the automaton alive, whatever the counter says.
    #[inline]
    pub(crate) fn live(&self, state: u32) -> &ByteSet {
        &self.states[state as usize].live
    }

    /// Whether every way on from here begins a unit.
    #[inline]
    pub(crate) fn counts_only(&self, state: u32) -> bool {
        self.states[state as usize].counts_only
    }

    /// See the field.
    pub(crate) fn open(&self) -> &ByteSet {
        &self.open
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.steps) + size_of_val(&*self.states) + 256
    }
}

impl Hash for Automaton {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.start.hash(state);
        self.steps.hash(state);
        self.classes.hash(state);
    }
}
