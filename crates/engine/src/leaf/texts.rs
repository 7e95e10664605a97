//! How many values lead on from the states of a table of JSON strings.
//!
//! Where values must differ it matters whether there is a new one. A character can be spelled in several ways, so texts are more than values;
//! what is counted here is only what is written plainly, each of which is a value of its own.

use maskwright_automata::Grouped;

use super::automaton::{Automaton, LeafState};

/// Lower bounds; [`u32::MAX`] is that many or more, or infinitely many.
#[derive(Debug)]
pub(crate) struct Texts {
    /// From each state.
    pub(crate) now: Box<[u32]>,
    /// The least of what leads on from a state, and from every state that a text leads to from there which leaves the string open.
    pub(crate) always: Box<[u32]>,
}

/// Not counted yet. No state has as many, because [`u32::MAX`] comes before it.
const UNKNOWN: u32 = u32::MAX - 1;

impl Texts {
    pub(crate) fn of(automaton: &Automaton) -> Self {
        let states = || (0..automaton.len() as u32).map(LeafState);
        let mut now: Box<[u32]> =
            states().map(|state| if automaton.is_endless(state) { u32::MAX } else { UNKNOWN }).collect();
        let bytes_of = class_sizes(automaton);
        // A state that is not endless leads to no loop, so this ends.
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

/// How many bytes each class has that stand for themselves in a string.
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
        // Inside an escape, or a character of several bytes.
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
    // Whoever comes to a state first comes from the least.
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
