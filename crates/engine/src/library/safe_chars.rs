//! Finds characters that cannot make a leaf die.
//!
//! It would be a waste to read a hundred thousand tokens only to find that nearly all of them are allowed. For a state
//! and a number n, [`SafeChars`] computes a set of characters such that *every* text of up to n of them keeps the leaf
//! alive:
//!
//! ```text
//!   "[^"]*\.csv"        in the body: all characters but the quote and the backslash, any number of them
//!   [a-z]{1,64}@…       after 60 letters: the lowercase letters for 4 characters, none for 5
//!   no "dev_" anywhere  all characters but the underscore (or the v; one of them must be excluded)
//! ```
//! The tokens made of such characters are a bitset that the vocabulary has ([`super::bytes`]), and need not be read.
//!
//! A set for texts of any length is tried first: every state reachable by its characters must accept all of its
//! characters. If no such set is large enough, sets are computed for ascending lengths: a set for n characters must be
//! contained in the sets for n − 1 of all states that its characters lead to. In both cases, a character that leads to
//! a state with few live bytes is removed if that keeps more characters than it costs.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::bytes::{GroupedKinds, Kinds, utf8};
use crate::leaf::{Action, Automaton, LeafState};
use crate::tuning::tuning;

/// The greatest number of characters that can be requested. Few tokens are longer.
pub(crate) const MAX_CHARS: u8 = 16;
/// A first byte whose characters lead to more states than this is left out.
const MAX_ENDS: usize = 4;
/// The number of states that are found without hashing; a power of two.
const RECENT_STATES: usize = 8;

/// What is known of the states of one automaton.
#[derive(Debug, Default)]
pub(crate) struct SafeChars {
    /// By state and number of characters.
    known: FxHashMap<(LeafState, u8), Kinds>,
    /// The sets for texts of any length, where they are large enough.
    endless: FxHashMap<LeafState, Option<Endless>>,
    /// The characters that lead from a state back to it.
    loops: FxHashMap<LeafState, GroupedKinds>,
    /// The loops of some recent states. PERF: a walk asks at every node, and alternates between a few states.
    recent: [(LeafState, GroupedKinds); RECENT_STATES],
    /// By state and position within a character: the states in which characters end, or `None` if some character dies.
    ends: FxHashMap<(LeafState, u8), Option<Ends>>,
}

type Ends = SmallVec<[LeafState; MAX_ENDS]>;

/// Characters that keep a state alive for ever, and characters on which all the states die that the former lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endless {
    pub(crate) kinds: Kinds,
    pub(crate) dead: Kinds,
}

impl SafeChars {
    /// Returns characters of which every text keeps the automaton alive, from a state between two characters; `None` if
    /// there are not many.
    pub(crate) fn endless(&mut self, automaton: &Automaton, state: LeafState) -> Option<Endless> {
        if let Some(found) = self.endless.get(&state) {
            return *found;
        }
        let mut kept = Kinds::ALL;
        let mut found = None;
        for _ in 0..tuning().safe_rounds {
            let (less, states) = self.smaller(automaton, state, kept);
            if less.len() < tuning().safe_kinds || states.len() > tuning().safe_states {
                break;
            }
            if less == kept {
                found = Some(self.share(automaton, &states, kept));
                break;
            }
            kept = less;
        }
        self.endless.insert(state, found);
        found
    }

    /// Stores a set for all states that its characters lead to, except those that may have a better one.
    fn share(&mut self, automaton: &Automaton, states: &[LeafState], kinds: Kinds) -> Endless {
        let all: SmallVec<[Kinds; 32]> = states.iter().map(|&state| first(automaton, state)).collect();
        let dead = Kinds::ALL.without(all.iter().fold(Kinds::default(), |all, taken| all.or(*taken)));
        let found = Endless { kinds, dead };
        for (&state, taken) in states.iter().zip(&all) {
            if taken.without(kinds).len() <= tuning().safe_missing {
                self.endless.entry(state).or_insert(Some(found));
            }
        }
        found
    }

    /// Returns the characters that lead from a state, between two of them, back to it. All of them begin a unit, or
    /// none does: see [`Automaton::unit`].
    #[inline]
    pub(crate) fn loops(&mut self, automaton: &Automaton, state: LeafState) -> &GroupedKinds {
        let at = state.index() % RECENT_STATES;
        if self.recent[at].0 != state {
            self.recent[at] = (state, self.find_loops(automaton, state));
        }
        &self.recent[at].1
    }

    fn find_loops(&mut self, automaton: &Automaton, state: LeafState) -> GroupedKinds {
        if let Some(found) = self.loops.get(&state) {
            return *found;
        }
        let (mut found, unit) = (Kinds::default(), automaton.unit());
        for byte in automaton.live(state).iter() {
            let step = automaton.step(state, byte);
            let is_loop = step.action() == unit
                && match utf8(0, byte) {
                    Some(0) => step.target() == state,
                    Some(place) => {
                        self.ends(automaton, step.target(), place).is_some_and(|ends| *ends == [state])
                    }
                    None => false,
                };
            if is_loop {
                found = found.or(Kinds::of(byte));
            }
        }
        let found = found.into();
        self.loops.insert(state, found);
        found
    }

    /// Follows the characters until a state does not accept all of them, and then removes some.
    fn smaller(
        &mut self,
        automaton: &Automaton,
        state: LeafState,
        kept: Kinds,
    ) -> (Kinds, SmallVec<[LeafState; 32]>) {
        let mut states: SmallVec<[LeafState; 32]> = SmallVec::from_slice(&[state]);
        let mut through: SmallVec<[Kinds; 32]> = SmallVec::from_slice(&[Kinds::default()]);
        let mut at = 0;
        while at < states.len() && at < tuning().safe_states {
            let (targets, taken) = self.targets(automaton, states[at], kept);
            if taken != kept {
                let is_cheap = at == 0 || kept.without(taken).len() <= through[at].len();
                return (if is_cheap { taken } else { kept.without(through[at]) }, states);
            }
            for (target, kinds) in targets {
                if let Some(known) = states.iter().position(|known| *known == target) {
                    through[known] = through[known].or(kinds);
                } else {
                    states.push(target);
                    through.push(kinds);
                }
            }
            at += 1;
        }
        (kept, states)
    }

    /// Returns characters of which every text of up to `count` keeps the automaton alive, from a state between two of
    /// them. `count` is at most [`MAX_CHARS`].
    pub(crate) fn kinds(&mut self, automaton: &Automaton, state: LeafState, count: u8) -> Kinds {
        if count == 0 {
            return Kinds::ALL;
        }
        if let Some(found) = self.known.get(&(state, count)) {
            return *found;
        }
        let shorter = self.kinds(automaton, state, count - 1);
        let (mut targets, mut kept) = self.targets(automaton, state, shorter);
        targets.sort_by_key(|(_, kinds)| core::cmp::Reverse(kinds.len()));
        for (target, through) in targets {
            if kept.and(through).is_empty() {
                continue;
            }
            let after = self.kinds(automaton, target, count - 1);
            if kept.without(after).len() <= kept.and(through).len() {
                kept = kept.and(after);
            } else {
                kept = kept.without(through);
            }
        }
        self.known.insert((state, count), kept);
        kept
    }

    /// Returns the states that some characters lead to, each with its characters, and all characters that lead to a
    /// live state.
    fn targets(
        &mut self,
        automaton: &Automaton,
        state: LeafState,
        among: Kinds,
    ) -> (SmallVec<[(LeafState, Kinds); 8]>, Kinds) {
        let mut targets: SmallVec<[(LeafState, Kinds); 8]> = SmallVec::new();
        let mut all = Kinds::default();
        let mut add =
            |target: LeafState, kind: Kinds| match targets.iter_mut().find(|(one, _)| *one == target) {
                Some((_, kinds)) => *kinds = kinds.or(kind),
                None => targets.push((target, kind)),
            };
        for byte in automaton.live(state).iter().filter(|&byte| !among.and(Kinds::of(byte)).is_empty()) {
            let step = automaton.step(state, byte);
            if step.action() == Action::Close {
                continue;
            }
            if byte < 0x80 {
                all = all.or(Kinds::of(byte));
                add(step.target(), Kinds::of(byte));
            } else if let Some(place) = utf8(0, byte)
                && let Some(ends) = self.ends(automaton, step.target(), place)
            {
                all = all.or(Kinds::of(byte));
                ends.iter().for_each(|&end| add(end, Kinds::of(byte)));
            }
        }
        (targets, all)
    }

    /// Returns the states in which characters end that have come to this position.
    fn ends(&mut self, automaton: &Automaton, state: LeafState, place: u8) -> Option<Ends> {
        if let Some(known) = self.ends.get(&(state, place)) {
            return known.clone();
        }
        let found = self.find_ends(automaton, state, place);
        self.ends.insert((state, place), found.clone());
        found
    }

    fn find_ends(&mut self, automaton: &Automaton, state: LeafState, place: u8) -> Option<Ends> {
        let mut ends = Ends::new();
        // The bytes of a class lead to the same state, but not all of them are valid at this position.
        let mut last = None;
        for byte in 0x80..0xC0 {
            let Some(next) = utf8(place, byte) else { continue };
            let step = automaton.step(state, byte);
            if step.is_dead() || step.action() == Action::Close {
                return None;
            }
            if last.replace((step.target(), next)) == Some((step.target(), next)) {
                continue;
            }
            let more = if next == 0 {
                Ends::from_slice(&[step.target()])
            } else {
                self.ends(automaton, step.target(), next)?
            };
            for end in more {
                if !ends.contains(&end) {
                    ends.push(end);
                }
            }
            if ends.len() > MAX_ENDS {
                return None;
            }
        }
        Some(ends)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.known.capacity() * size_of::<((LeafState, u8), Kinds)>()
            + self.endless.capacity() * size_of::<(LeafState, Option<Endless>)>()
            + self.loops.capacity() * size_of::<(LeafState, GroupedKinds)>()
            + self.ends.capacity() * size_of::<((LeafState, u8), Option<Ends>)>()
    }
}

/// Returns the kinds of characters whose first bytes are live in a state.
pub(crate) fn first(automaton: &Automaton, state: LeafState) -> Kinds {
    automaton.live(state).iter().fold(Kinds::default(), |all, byte| all.or(Kinds::of(byte)))
}
