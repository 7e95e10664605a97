//! Finds states that no token can distinguish.
//!
//! "At most a hundred words" is a chain of more than a hundred states that are all alike: after ninety words and after
//! eighty-nine, the same tokens are allowed, because no token contains ten words. Reading a vocabulary for each of them
//! would be a waste. One entry serves them all.
//!
//! ```text
//!   word 90 ─▶ space 90 ─▶ word 91 ─▶ word 92 ─▶ …  ─▶ word 100     no more words
//!      ╎          ╎           ╎          ╎                ╎
//!   word 89 ─▶ space 89 ─▶ word 90 ─▶ word 91 ─▶ …  ─▶ word 99 ─▶   one more: distinguished here, not earlier
//!   └────────── the tokens reach this far ────────┘
//! ```
//! The *footprint* of a state, all states that tokens lead to from it, is computed once. Another state is equivalent if
//! both can be walked side by side, on all bytes, and all pairs of states agree within the footprint. That compares a
//! few hundred pairs of states and reads no token.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use maskwright_vocab::Trie;

use super::bytes::Bytes;
use super::reader::{self, Next, Reader, Visited};
use super::safe_chars::SafeChars;
use crate::leaf::{Automaton, LeafState, Step};
use crate::tuning::tuning;

/// A footprint is computed only if the two states agree for this many bytes.
const PRECHECK_BYTES: usize = 6;
/// The greatest number of nodes of the trie that are visited for a footprint.
const MAX_FOOTPRINT_NODES: usize = 32_768;

/// The states of one automaton that may have equivalents.
#[derive(Debug)]
pub(super) struct Equivalences {
    /// The states that were read last, newest first.
    recent: SmallVec<[LeafState; 4]>,
    /// The footprint of each state; `None` if it would take too long to compute.
    footprints: FxHashMap<LeafState, Option<Footprint>>,
    /// The number of further footprints that may be computed without success. Where states have no equivalents, looking
    /// for them should cost little.
    failures_left: u32,
}

impl Default for Equivalences {
    fn default() -> Self {
        Self {
            recent: SmallVec::new(),
            footprints: FxHashMap::default(),
            failures_left: tuning().equivalence_failures,
        }
    }
}

/// For each state of the automaton, whether tokens lead to it.
type Footprint = Box<[bool]>;

/// The context in which states are compared.
pub(super) struct Reading<'a> {
    pub(super) automaton: &'a Automaton,
    pub(super) safe_chars: &'a mut SafeChars,
    /// Whether tails matter, because there is not room for any token.
    pub(super) tails: bool,
    pub(super) trie: &'a Trie,
    pub(super) bytes: &'a Bytes,
}

impl Equivalences {
    /// Returns a state with a known entry that no token can distinguish from this one. If there is none, this state
    /// will be read, and becomes a candidate for others.
    pub(super) fn find(
        &mut self,
        state: LeafState,
        is_known: impl Fn(LeafState) -> bool,
        reading: &mut Reading<'_>,
    ) -> Option<LeafState> {
        if self.failures_left == 0 || !reading.has_many_tokens(state) {
            return None;
        }
        let known = self.recent.iter().copied().filter(|&other| is_known(other));
        for other in known.collect::<SmallVec<[LeafState; 4]>>() {
            let is_alike = || reading.compared().are_alike((other, state), PRECHECK_BYTES, |_| true);
            if !self.footprints.contains_key(&other) && !is_alike() {
                continue;
            }
            let footprint = self.footprints.entry(other).or_insert_with(|| {
                self.failures_left -= 1;
                reading.footprint(other)
            });
            let is_alike = |footprint: &Footprint| {
                reading.compared().are_alike((other, state), usize::MAX, |state| footprint[state.index()])
            };
            if footprint.as_ref().is_some_and(is_alike) {
                self.failures_left = self.failures_left.max(tuning().equivalence_failures);
                return Some(other);
            }
            if self.failures_left == 0 {
                return None;
            }
        }
        if !self.recent.contains(&state) {
            self.recent.truncate(tuning().equivalence_candidates.saturating_sub(1));
            self.recent.insert(0, state);
        }
        None
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let footprints = self.footprints.values().flatten().map(|footprint| footprint.len());
        self.footprints.capacity() * size_of::<(LeafState, Option<Footprint>)>() + footprints.sum::<usize>()
    }
}

impl Reading<'_> {
    /// Checks whether many tokens have a first byte that is live in a state.
    fn has_many_tokens(&self, state: LeafState) -> bool {
        let nodes = self.trie.children(Trie::ROOT);
        let live = nodes.filter(|&node| self.automaton.live(state).contains(self.trie.byte(node)));
        let tokens =
            live.map(|node| self.trie.tokens(node).len() as u32 + self.bytes.tokens_below(node)).sum::<u32>();
        tokens.saturating_mul(tuning().equivalence_share) >= self.bytes.tokens_below(Trie::ROOT)
    }

    fn compared(&self) -> Compared<'_> {
        Compared { automaton: self.automaton, tails: self.tails }
    }

    /// Computes a superset of the states that tokens lead to; `None` if it takes too long.
    fn footprint(&mut self, state: LeafState) -> Option<Footprint> {
        let Self { automaton, safe_chars: &mut ref mut safe_chars, trie, bytes, .. } = *self;
        let mut footprint: Footprint = vec![false; automaton.len()].into();
        footprint[state.index()] = true;
        let mut visitor = Footsteps { automaton, safe_chars, bytes, footprint, loops: Vec::new(), nodes: 0 };
        if !reader::read(trie, Trie::ROOT, state, &mut visitor) {
            return None;
        }
        let Footsteps { mut footprint, mut loops, .. } = visitor;
        // Characters beyond ASCII that lead from a state back to it pass through other states.
        loops.sort_unstable();
        loops.dedup();
        for state in loops {
            let longer = automaton.live(state).iter().filter(|&byte| byte >= 0xC0);
            let mut work: Vec<LeafState> = longer.map(|byte| automaton.step(state, byte).target()).collect();
            while let Some(inside) = work.pop() {
                if inside != state && !core::mem::replace(&mut footprint[inside.index()], true) {
                    let next = (0x80..0xC0).map(|byte| automaton.step(inside, byte).target());
                    work.extend(next.filter(|next| !next.is_dead()));
                }
            }
        }
        Some(footprint)
    }
}

/// Records the states that tokens lead to.
struct Footsteps<'r> {
    automaton: &'r Automaton,
    safe_chars: &'r mut SafeChars,
    bytes: &'r Bytes,
    footprint: Footprint,
    /// States in which all tokens below some node stay.
    loops: Vec<LeafState>,
    nodes: usize,
}

impl Reader for Footsteps<'_> {
    type State = LeafState;

    #[inline]
    fn take(&mut self, before: &mut LeafState, node: &Visited<'_>) -> Next<LeafState> {
        self.nodes += 1;
        if self.nodes > MAX_FOOTPRINT_NODES {
            return Next::Stop;
        }
        let next = self.automaton.step(*before, node.byte).target();
        if next.is_dead() {
            return Next::Past;
        }
        self.footprint[next.index()] = true;
        let loops = self.safe_chars.loops(self.automaton, next);
        if self.bytes.is_between(node.node) && self.bytes.has_only(node.node, loops) {
            self.loops.push(next);
            return Next::Past;
        }
        Next::Below(next)
    }
}

/// Compares states of an automaton.
#[derive(Clone, Copy)]
struct Compared<'a> {
    automaton: &'a Automaton,
    tails: bool,
}

impl Compared<'_> {
    /// Checks whether all texts of up to `length` bytes behave alike from both states, as long as the first one is in a
    /// state that `matters`.
    fn are_alike(
        self,
        states: (LeafState, LeafState),
        length: usize,
        matters: impl Fn(LeafState) -> bool,
    ) -> bool {
        let mut seen: FxHashSet<(LeafState, LeafState)> = FxHashSet::from_iter([states]);
        let mut level = vec![states];
        for _ in 0..length {
            let mut next = Vec::new();
            for pair in level {
                if !self.are_alike_locally(pair) {
                    return false;
                }
                let mut last = pair;
                for (a, b) in self.rows(pair) {
                    let pair = (a.target(), b.target());
                    // Adjacent classes often lead to the same states.
                    if pair.0 != pair.1 && pair != last && matters(pair.0) && seen.insert(pair) {
                        next.push(pair);
                    }
                    last = pair;
                }
            }
            if seen.len() > tuning().equivalence_pairs {
                return false;
            }
            if next.is_empty() {
                return true;
            }
            level = next;
        }
        level.into_iter().all(|pair| self.are_alike_locally(pair))
    }

    /// Checks whether two states have the same live bytes with the same actions, and both accept or neither does.
    fn are_alike_locally(self, pair: (LeafState, LeafState)) -> bool {
        let Self { automaton, tails } = self;
        automaton.is_accepting(pair.0) == automaton.is_accepting(pair.1)
            && (!tails || automaton.tail(pair.0) == automaton.tail(pair.1))
            && self.rows(pair).all(|(a, b)| a.is_dead() == b.is_dead() && a.action() == b.action())
    }

    fn rows(self, (a, b): (LeafState, LeafState)) -> impl Iterator<Item = (Step, Step)> {
        self.automaton.row(a).iter().copied().zip(self.automaton.row(b).iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use maskwright_automata::{Dfa, Exprs, Limits};
    use maskwright_vocab::{TokenId, Vocabulary, VocabularyBuilder};

    use super::super::Library;
    use super::*;

    /// At most ten words.
    fn words() -> Dfa {
        let mut e = Exprs::new();
        let letter = e.chars([('a', 'z'), ('é', 'é')]);
        let space = e.bytes(b" ");
        let word = e.repeat(letter, 1, None);
        let spaced = e.concat([word, space]);
        let before = e.repeat(spaced, 0, Some(9));
        let all = e.concat([before, word]);
        Dfa::build(&mut e, all, &Limits::default()).expect("it is small")
    }

    fn vocabulary() -> Arc<Vocabulary> {
        let mut builder = VocabularyBuilder::new();
        for (id, text) in (0..).zip(["a", "bc", " ", "é", "été", "x y", "of the", " a b c", "\n"]) {
            builder.token(TokenId(id), text.as_bytes()).expect("it is new");
        }
        Arc::new(builder.finish().expect("it is right"))
    }

    /// Tokens have up to three spaces. After five, three more lead to a state that takes a space; after six they do
    /// not.
    #[test]
    fn chains_share_an_entry_as_far_as_tokens_cannot_see_their_end() {
        let (automaton, library) = (Arc::new(Automaton::from_dfa(&words())), Library::new(vocabulary()));
        let bound = library.bind(&automaton);
        let entry = |spaces: usize| {
            let state = automaton.after(automaton.start(), format!("a{}", " é".repeat(spaces)).as_bytes());
            core::ptr::from_ref(bound.free(state, &library))
        };
        for spaces in 0..9 {
            assert_eq!(entry(spaces) == entry(spaces + 1), spaces < 5, "{spaces} spaces and one more");
        }
    }
}
