//! Reads states of string tables that behave nearly like the plain string.
//!
//! Take a key that matches `dev_` somewhere, a key that matches it nowhere, or a text that does not begin with a slash.
//! In most states of such strings nearly every token is allowed, as inside any string, and it would be a waste to read
//! a hundred thousand tokens to find that out. A token can differ from the plain string only if it closes the string,
//! or if it is long enough for the table to die where the plain string does not. So the two are walked side by side. A
//! subtree is skipped if none of its tokens has a quote, and either none is as long as the shortest way to die or none
//! has a byte on which the table can die:
//!
//! ```text
//!   no `dev_` anywhere, at the start:      4 bytes to die     ▶ skip all subtrees of height 3; higher ones are rare
//! ```

use maskwright_automata::{ByteSet, Grouped};
use maskwright_vocab::Trie;

use super::bitset::Words;
use super::bytes::{self, Bytes};
use super::leaf_tokens::{Boundaries, LeafTokens};
use super::reader::{self, Next, Reader, Visited};
use crate::leaf::{Action, Automaton, JSON_BODY, LeafState, json_string};
use crate::tuning::tuning;

/// For each state of a string table, the distance to dying where the plain string would not.
#[derive(Debug)]
pub(crate) struct DeathDistances {
    /// In bytes, up to [`FAR`]; 0 for states that correspond to several states of the plain string.
    bytes: Box<[u8]>,
    /// The corresponding state of the plain string automaton.
    plain: Box<[LeafState]>,
    /// The bytes on which some state dies where the plain string would not ([`bytes::class`]).
    deadly: u128,
}

/// At least the height of any subtree.
const FAR: u8 = u8::MAX;
/// A state is read side by side with the plain string if it is at least this many bytes from dying. PERF: with 4, a
/// mask in a `oneOf` of nine words took half as long again; with 2, all masks together took a third longer.
const MIN_BYTES_TO_DIE: u8 = 3;

/// Checks whether computing the distances is worthwhile for a state: only states that accept most characters can be
/// near the plain string.
pub(crate) fn may_be_near(automaton: &Automaton, state: LeafState) -> bool {
    let live = automaton.live(state);
    automaton.is_string()
        && automaton.len() <= tuning().almost_any_states
        && (0x20..0x7F).filter(|&byte| live.contains(byte)).count() >= tuning().almost_any_bytes
}

impl DeathDistances {
    pub(crate) fn of(automaton: &Automaton) -> Self {
        let string = json_string();
        let mut plain = vec![LeafState::DEAD; automaton.len()];
        let mut edges: Vec<(u32, LeafState)> = Vec::new();
        let mut distances = vec![FAR; automaton.len()];
        let (mut level, mut dead, mut is_double) = (Vec::new(), ByteSet::EMPTY, false);
        // One byte represents all that neither automaton distinguishes.
        let mut kinds: Vec<(u8, u8)> = Vec::new();
        let kind = |byte: u8| (automaton.class(byte), string.class(byte));
        let mut bytes = ByteSet::EMPTY;
        for byte in 0..=255 {
            if byte == b'"' || !kinds.contains(&kind(byte)) {
                kinds.push(kind(byte));
                bytes.insert(byte);
            }
        }
        let mut work = vec![(automaton.start(), string.start())];
        plain[automaton.start().index()] = string.start();
        while let Some((state, at)) = work.pop() {
            for byte in string.live(at).intersection(bytes).iter() {
                if at == JSON_BODY && byte == b'"' {
                    continue;
                }
                let (next, next_at) = (automaton.step(state, byte).target(), string.step(at, byte).target());
                if next.is_dead() {
                    dead.insert(byte);
                    if distances[state.index()] == FAR {
                        distances[state.index()] = 1;
                        level.push(state);
                    }
                    continue;
                }
                edges.push((next.0, state));
                match plain[next.index()] {
                    LeafState::DEAD => {
                        plain[next.index()] = next_at;
                        work.push((next, next_at));
                    }
                    known if known == next_at => {}
                    // The state corresponds to two states of the plain string, so it is excluded.
                    _ => {
                        distances[next.index()] = 0;
                        level.push(next);
                        is_double = true;
                    }
                }
            }
        }
        let deadly = (0..=255).filter(|&byte| dead.iter().any(|dead| kind(dead) == kind(byte)));
        // The successors of a state with two plain states were explored for only one of them, so all bytes count as
        // deadly.
        let deadly = deadly.fold(if is_double { !0 } else { 0 }, |all, byte| all | bytes::class(byte));
        let before = Grouped::new(automaton.len(), edges.into_iter());
        // Breadth-first, backwards.
        while !level.is_empty() {
            let mut next = Vec::new();
            for state in level {
                let distance = distances[state.index()].saturating_add(1).min(FAR - 1);
                for &from in before.of(state.0) {
                    if distance < distances[from.index()] {
                        distances[from.index()] = distance;
                        next.push(from);
                    }
                }
            }
            level = next;
        }
        Self { bytes: distances.into(), plain: plain.into(), deadly }
    }

    /// Checks whether a state is so near the plain string that [`read`] is worthwhile.
    pub(crate) fn is_near(&self, automaton: &Automaton, state: LeafState) -> bool {
        let near = |byte: &u8| {
            let next = automaton.step(state, *byte).target();
            !next.is_dead()
                && self.plain[next.index()] == JSON_BODY
                && self.bytes[next.index()] >= MIN_BYTES_TO_DIE
        };
        self.plain[state.index()] == JSON_BODY
            && (0x20..0x7Fu8).filter(near).count() >= tuning().almost_any_bytes
    }
}

/// Computes what the vocabulary does in such a state, with room for any token; `None` if this takes too many nodes.
/// `inner` holds the inner tokens of the plain string.
pub(crate) fn read(
    automaton: &Automaton,
    distances: &DeathDistances,
    state: LeafState,
    trie: &Trie,
    bytes: &Bytes,
    inner: &Words,
) -> Option<LeafTokens> {
    let start = WalkState { state, plain: distances.plain[state.index()], units: 0 };
    let boundaries = Boundaries::default();
    let (closing, removed) = (Vec::new(), Vec::new());
    let mut reader = SideBySide { automaton, distances, bytes, boundaries, closing, removed, visits: 0 };
    if !reader::read(trie, Trie::ROOT, start, &mut reader) {
        return None;
    }
    let SideBySide { closing, removed, boundaries, .. } = reader;
    let mut run = inner.to_vec();
    for token in removed {
        run[token as usize / 32] &= !(1 << (token % 32));
    }
    Some(LeafTokens::free(Some(run), Vec::new(), closing, boundaries, bytes))
}

/// The table and the plain string, which take the bytes of tokens together.
struct SideBySide<'r> {
    automaton: &'r Automaton,
    distances: &'r DeathDistances,
    bytes: &'r Bytes,
    boundaries: Boundaries,
    /// The tokens that close the string, with their units.
    closing: Vec<(u32, u32)>,
    /// The tokens on which the table dies and the plain string does not.
    removed: Vec<u32>,
    visits: usize,
}

#[derive(Clone, Copy)]
struct WalkState {
    state: LeafState,
    plain: LeafState,
    units: u32,
}

impl Reader for SideBySide<'_> {
    type State = WalkState;

    #[inline]
    fn take(&mut self, before: &mut WalkState, node: &Visited<'_>) -> Next<WalkState> {
        self.visits += 1;
        if self.visits > tuning().almost_any_nodes {
            return Next::Stop;
        }
        let step = self.automaton.step(before.state, node.byte);
        let plain = json_string().step(before.plain, node.byte);
        if plain.is_dead() {
            return Next::Past;
        }
        if plain.action() == Action::Close {
            if !step.is_dead() {
                let units = before.units;
                node.tokens(|tokens| self.closing.extend(tokens.iter().map(|&token| (units, token))));
                self.boundaries.add(node.node, units, node.next_bytes());
            }
            return Next::Past;
        }
        if step.is_dead() {
            node.tokens(|tokens| self.removed.extend_from_slice(tokens));
            self.removed.extend_from_slice(node.tokens_below());
            return Next::Past;
        }
        let (state, below) = (step.target(), self.bytes.below(node.node));
        let is_far = self.bytes.height(node.node) < self.distances.bytes[state.index()]
            || below & self.distances.deadly == 0;
        if is_far && below & bytes::class(b'"') == 0 {
            return Next::Past;
        }
        let units = before.units + u32::from(step.action() == Action::Unit);
        Next::Below(WalkState { state, plain: plain.target(), units })
    }
}
