//! Counts how many values are reachable from the states of a table of JSON strings.
//!
//! Where values must differ, a mask needs to know whether an unused value remains. One character has several spellings,
//! so there are more texts than values. Therefore only plain spellings are counted: each of them is a different value.

use maskwright_automata::Grouped;

use super::automaton::{Automaton, LeafState};

/// Lower bounds on numbers of values. [`u32::MAX`] means that many or more, or infinitely many.
#[derive(Debug)]
pub(crate) struct Texts {
    /// For each state, the values reachable from it.
    pub(crate) now: Box<[u32]>,
    /// For each state, the minimum of `now` over the state and all states reachable from it while the string stays
    /// open.
    pub(crate) always: Box<[u32]>,
}

/// Not counted yet. No count is equal to it: counts stop one below, and endless states have [`u32::MAX`].
const UNKNOWN: u32 = u32::MAX - 1;

impl Texts {
    pub(crate) fn of(automaton: &Automaton) -> Self {
        let states = || (0..automaton.len() as u32).map(LeafState);
        let mut now: Box<[u32]> =
            states().map(|state| if automaton.is_endless(state) { u32::MAX } else { UNKNOWN }).collect();
        let bytes_of = class_sizes(automaton);
        // A state that is not endless reaches no loop, so this terminates.
        let mut path: Vec<LeafState> = Vec::new();
        for state in states() {
            path.push(state);
            while let Some(&state) = path.last() {
                let row = automaton.row(state).iter().filter(|step| !step.is_dead());
                let unknown = row.map(|step| step.target()).find(|to| now[to.index()] == UNKNOWN);
                if let Some(first) = unknown.filter(|_| now[state.index()] == UNKNOWN) {
                    path.push(first);
                    continue;
                }
                if now[state.index()] == UNKNOWN {
                    now[state.index()] = count(automaton, state, &bytes_of, &now);
                }
                path.pop();
            }
        }
        let always = least(automaton, &now);
        Self { now, always }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.now) + size_of_val(&*self.always)
    }
}

/// For each class, counts the bytes that represent themselves in a string.
fn class_sizes(automaton: &Automaton) -> Vec<u32> {
    let mut sizes = vec![0; automaton.row(automaton.start()).len()];
    for byte in (0..=255u8).filter(|byte| *byte != b'\\') {
        sizes[usize::from(automaton.class(byte))] += 1;
    }
    sizes
}

fn count(automaton: &Automaton, state: LeafState, bytes_of: &[u32], now: &[u32]) -> u32 {
    if automaton.is_accepting(state) {
        return 1;
    }
    let steps = automaton.row(state).iter().zip(bytes_of).filter(|(step, _)| !step.is_dead());
    let of = |to: LeafState| now[to.index()];
    if automaton.is_between_units(state) {
        let all = steps.map(|(step, bytes)| of(step.target()).saturating_mul(*bytes));
        all.fold(0, u32::saturating_add).min(UNKNOWN - 1)
    } else {
        // Inside an escape or a multi-byte character.
        steps.map(|(step, _)| of(step.target())).max().unwrap_or(0)
    }
}

fn least(automaton: &Automaton, now: &[u32]) -> Box<[u32]> {
    let states = || (0..automaton.len() as u32).map(LeafState);
    let edges = states().flat_map(|state| {
        let targets = automaton.row(state).iter().filter(|step| !step.is_dead()).map(|step| step.target());
        targets.filter(|to| !automaton.is_accepting(*to)).map(move |to| (to.0, state))
    });
    let before = Grouped::new(automaton.len(), edges);
    let mut always: Box<[u32]> = vec![UNKNOWN; automaton.len()].into();
    let mut order: Vec<LeafState> = states().collect();
    order.sort_by_key(|state| now[state.index()]);
    // States are visited in ascending order of `now`, so the first visit of a state comes from the minimum.
    for from in order {
        let mut work = vec![from];
        while let Some(state) = work.pop() {
            if always[state.index()] == UNKNOWN {
                always[state.index()] = now[from.index()];
                work.extend_from_slice(before.of(state.0));
            }
        }
    }
    always
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::json_string;

    #[test]
    fn any_string_has_more_values_than_can_be_counted() {
        let texts = Texts::of(json_string());
        let automaton = json_string();
        let inside = automaton.step(automaton.start(), b'"').target();
        assert_eq!((texts.now[inside.index()], texts.always[inside.index()]), (u32::MAX, u32::MAX));
        let end = automaton.step(inside, b'"').target();
        assert_eq!(texts.now[end.index()], 1);
    }
}
