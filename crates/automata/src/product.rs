//! Boolean operations on frozen automata, by running two of them side by side.

use rustc_hash::FxHashMap;

use crate::{ByteClasses, Dfa, Draft, LimitError, Limits, minimize};

impl Dfa {
    /// What both automata accept.
    pub fn intersection(&self, other: &Self, limits: &Limits) -> Result<Self, LimitError> {
        self.combine(other, |a, b| a && b, limits)
    }

    /// What either automaton accepts.
    pub fn union(&self, other: &Self, limits: &Limits) -> Result<Self, LimitError> {
        self.combine(other, |a, b| a || b, limits)
    }

    /// What this automaton accepts and the other does not.
    pub fn difference(&self, other: &Self, limits: &Limits) -> Result<Self, LimitError> {
        self.combine(other, |a, b| a && !b, limits)
    }

    /// Every byte string that this automaton does not accept.
    pub fn complement(&self, limits: &Limits) -> Result<Self, LimitError> {
        self.combine(&Self::never(), |a, _| !a, limits)
    }

    /// What is accepted when `accepts` says so about the two answers. Pairs of states are built as they are
    /// reached.
    fn combine(
        &self,
        other: &Self,
        accepts: fn(bool, bool) -> bool,
        limits: &Limits,
    ) -> Result<Self, LimitError> {
        let sets = self.classes().sets().into_iter().chain(other.classes().sets());
        let mut draft = Draft::new(ByteClasses::new(sets));
        let bytes = draft.classes.representatives();
        let accepting = |(a, b)| accepts(self.is_accepting(a), other.is_accepting(b));
        let start = (self.start(), other.start());
        let mut numbers = FxHashMap::from_iter([(start, draft.push(accepting(start), limits)?)]);
        let (mut pairs, mut at) = (vec![start], 0);
        while let Some(&(a, b)) = pairs.get(at) {
            for (class, &byte) in bytes.iter().enumerate() {
                let pair = (self.next(a, byte), other.next(b, byte));
                let target = if let Some(&known) = numbers.get(&pair) {
                    known
                } else {
                    pairs.push(pair);
                    let new = draft.push(accepting(pair), limits)?;
                    numbers.insert(pair, new);
                    new
                };
                draft.set(at as u32, class, target);
            }
            at += 1;
        }
        Ok(minimize(&draft))
    }
}
