//! Boolean operations on frozen automata, by running two of them side by side.

use core::hash::Hash;

use rustc_hash::FxHashMap;

use crate::determinize::NONE;
use crate::minimize::number;
use crate::{ByteClasses, Dfa, DfaState, Draft, LimitError, Limits, minimize};

impl Dfa {
    /// Returns the automaton of what both accept.
    pub fn intersection(&self, other: &Self, limits: &Limits) -> Result<Self, LimitError> {
        self.combine(other, |a, b| a && b, limits)
    }

    /// Returns the automaton of what either accepts.
    pub fn union(&self, other: &Self, limits: &Limits) -> Result<Self, LimitError> {
        self.combine(other, |a, b| a || b, limits)
    }

    /// Returns the automaton of what this one accepts and the other does not.
    pub fn difference(&self, other: &Self, limits: &Limits) -> Result<Self, LimitError> {
        self.combine(other, |a, b| a && !b, limits)
    }

    /// Returns the automaton of every byte string that this one does not accept. The states are only renumbered: the
    /// dead state accepts everything now, and the state that accepted everything is dead.
    pub fn complement(&self, limits: &Limits) -> Result<Self, LimitError> {
        let (classes, count) = (self.classes().clone(), self.len() as u32);
        let width = classes.len();
        // The start comes first, the dead state last.
        let place = |state: DfaState| if state == Self::DEAD { count - 1 } else { state.0 - 1 };
        let mut draft = Draft::new(classes);
        let mut blocks = Vec::with_capacity(self.len());
        for state in self.states().skip(1).chain([Self::DEAD]) {
            let number = draft.push(!self.is_accepting(state), limits)?;
            let row = &self.row(state)[..width];
            for (class, &target) in row.iter().enumerate() {
                draft.set(number, class, place(target));
            }
            let is_full = self.is_accepting(state) && row.iter().all(|&target| target == state);
            blocks.push(if is_full { NONE } else { number });
        }
        Ok(number(&draft, &blocks))
    }

    /// Builds the product automaton. `accepts` combines the two answers. Pairs of states are created when they are
    /// reached.
    fn combine(
        &self,
        other: &Self,
        accepts: fn(bool, bool) -> bool,
        limits: &Limits,
    ) -> Result<Self, LimitError> {
        let classes = ByteClasses::new(self.classes().sets().into_iter().chain(other.classes().sets()));
        let accepting = |&(a, b): &(DfaState, DfaState)| accepts(self.is_accepting(a), other.is_accepting(b));
        let step = |&(a, b): &(DfaState, DfaState), byte| Some((self.next(a, byte), other.next(b, byte)));
        Self::explore(classes, (self.start(), other.start()), accepting, step, limits)
    }

    /// Builds the automaton of a transition function. States are created when they are reached from `start`. Bytes of
    /// one class must have the same target from every state; `None` is a state from which nothing is accepted.
    ///
    /// ```
    /// use maskwright_automata::{ByteClasses, ByteSet, Dfa, Limits};
    /// // An even number of `a`.
    /// let classes = ByteClasses::new([ByteSet::byte(b'a')]);
    /// let step = |&odd: &bool, byte: u8| (byte == b'a').then_some(!odd);
    /// let even = Dfa::explore(classes, false, |&odd| !odd, step, &Limits::default()).unwrap();
    /// assert!(even.matches(b"aa") && !even.matches(b"a") && !even.matches(b"ab"));
    /// ```
    pub fn explore<S: Clone + Eq + Hash>(
        classes: ByteClasses,
        start: S,
        accepting: impl Fn(&S) -> bool,
        step: impl Fn(&S, u8) -> Option<S>,
        limits: &Limits,
    ) -> Result<Self, LimitError> {
        let mut draft = Draft::new(classes);
        let bytes = draft.classes.representatives();
        let mut fuel = limits.fuel();
        let mut numbers = FxHashMap::from_iter([(start.clone(), draft.push(accepting(&start), limits)?)]);
        let (mut states, mut at) = (vec![start], 0);
        while at < states.len() {
            fuel.spend(bytes.len())?;
            for (class, &byte) in bytes.iter().enumerate() {
                let Some(state) = step(&states[at], byte) else { continue };
                let target = if let Some(&known) = numbers.get(&state) {
                    known
                } else {
                    let new = draft.push(accepting(&state), limits)?;
                    states.push(state.clone());
                    numbers.insert(state, new);
                    new
                };
                draft.set(at as u32, class, target);
            }
            at += 1;
        }
        Ok(minimize(&draft))
    }
}
