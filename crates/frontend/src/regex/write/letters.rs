//! Converts an automaton over bytes to one over characters.
//!
//! Its states are those in which a character may begin, and an arrow carries the set of characters that lead from one
//! state to another. These characters are found by following their UTF-8 encodings: each continuation byte after a lead
//! byte carries six bits, so the targets of k of them are a list of ranges of 6·k-bit numbers.

use maskwright_automata::{Dfa, DfaState};
use maskwright_grammar::CharSet;
use rustc_hash::FxHashMap;

/// An automaton over characters. State 0 is the start; there is no dead state.
pub(super) struct Letters {
    pub(super) states: Vec<State>,
}

pub(super) struct State {
    pub(super) accepts: bool,
    /// The characters that lead to each next state.
    pub(super) arrows: Vec<(CharSet, usize)>,
}

/// Returns the automaton over characters. For an empty language it has no states.
pub(super) fn of(dfa: &Dfa) -> Letters {
    let mut reader = Reader { dfa, tails: FxHashMap::default() };
    let mut states = Vec::new();
    if dfa.is_empty() {
        return Letters { states };
    }
    let mut numbers: FxHashMap<DfaState, usize> = FxHashMap::default();
    let mut found = vec![dfa.start()];
    numbers.insert(dfa.start(), 0);
    while let Some(&state) = found.get(states.len()) {
        let mut arrows: Vec<(Vec<(char, char)>, usize)> = Vec::new();
        for (first, last, target) in reader.characters(state) {
            let (Some(first), Some(last)) = (char::from_u32(first), char::from_u32(last)) else { continue };
            let number = *numbers.entry(target).or_insert_with(|| {
                found.push(target);
                found.len() - 1
            });
            match arrows.iter_mut().find(|arrow| arrow.1 == number) {
                Some(arrow) => arrow.0.push((first, last)),
                None => arrows.push((vec![(first, last)], number)),
            }
        }
        let arrows = arrows.into_iter().map(|(ranges, to)| (CharSet::from_ranges(ranges), to)).collect();
        states.push(State { accepts: dfa.is_accepting(state), arrows });
    }
    Letters { states }
}

/// A range of numbers and the state after them.
type Range = (u32, u32, DfaState);

struct Reader<'d> {
    dfa: &'d Dfa,
    tails: FxHashMap<(DfaState, u32), Vec<Range>>,
}

/// Lead bytes: the first and last of a kind, the number of continuation bytes, and the bits that mark the kind.
const LEADS: [(u8, u8, u32, u8); 4] =
    [(0x00, 0x7F, 0, 0x00), (0xC2, 0xDF, 1, 0xC0), (0xE0, 0xEF, 2, 0xE0), (0xF0, 0xF4, 3, 0xF0)];

impl Reader<'_> {
    /// Returns all characters that lead to a live state, in ascending order.
    fn characters(&mut self, state: DfaState) -> Vec<Range> {
        let mut ranges = Vec::new();
        for (first, last, more, mark) in LEADS {
            for lead in first..=last {
                let next = self.dfa.next(state, lead);
                let high = u32::from(lead - mark) << (6 * more);
                for (low, to, target) in self.tail(next, more) {
                    join(&mut ranges, (high | low, high | to, target));
                }
            }
        }
        // A range that crosses the surrogates would begin or end at a number that is not a character.
        ranges.into_iter().flat_map(without_surrogates).collect()
    }

    /// Returns the targets of `more` continuation bytes. The depth of the recursion is at most three.
    fn tail(&mut self, state: DfaState, more: u32) -> Vec<Range> {
        if state == Dfa::DEAD {
            return Vec::new();
        }
        let Some(less) = more.checked_sub(1) else { return vec![(0, 0, state)] };
        if let Some(known) = self.tails.get(&(state, more)) {
            return known.clone();
        }
        let mut ranges = Vec::new();
        for bits in 0..64u8 {
            let next = self.dfa.next(state, 0x80 | bits);
            let high = u32::from(bits) << (6 * less);
            for (low, to, target) in self.tail(next, less) {
                join(&mut ranges, (high | low, high | to, target));
            }
        }
        self.tails.insert((state, more), ranges.clone());
        ranges
    }
}

/// Appends a range, or extends the last one.
fn join(ranges: &mut Vec<Range>, (first, last, target): Range) {
    match ranges.last_mut() {
        Some(range) if range.2 == target && range.1 + 1 == first => range.1 = last,
        _ => ranges.push((first, last, target)),
    }
}

fn without_surrogates((first, last, target): Range) -> impl Iterator<Item = Range> {
    let below = (first, last.min(0xD7FF), target);
    let above = (first.max(0xE000), last, target);
    [below, above].into_iter().filter(|(first, last, _)| first <= last)
}
