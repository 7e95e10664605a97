//! Reading a vocabulary from a state where nothing is counted.
//!
//! The same as [`Entry::new`], and much quicker where most tokens stay in the leaf: tokens of characters that keep it alive, whatever
//! their order, come from sets that the vocabulary has by kinds of characters ([`super::bytes`]), and subtrees of
//! such tokens are passed by ([`super::alive`]).

use core::ops::Range;

use maskwright_vocab::{TokenId, Trie, Vocabulary};

use super::alive::{Alive, LONGEST};
use super::bytes::{Bytes, Kinds, utf8};
use super::entry::{Entry, Exits, ones};
use crate::leaf::{Action, Automaton};

/// Fewer kinds of characters are not worth a bitset.
const WIDE: u32 = 16;

/// Finding out about a state is not worth it for fewer tokens.
const LARGE: u32 = 64;

/// Nodes that have yet to be read, and how the leaf stands before them.
struct Below {
    children: Range<u32>,
    depth: usize,
    state: u32,
    /// In UTF-8, if the token is text so far.
    place: Option<u8>,
    /// The string has been closed.
    closed: bool,
    /// All that has been read is of the kinds that are known to be allowed.
    known: bool,
}

/// What the vocabulary does in a state.
pub(crate) fn read(
    automaton: &Automaton,
    alive: &mut Alive,
    state: u32,
    vocabulary: &Vocabulary,
    bytes: &Bytes,
) -> Entry {
    let trie = vocabulary.trie();
    let is_wide = alive.kinds(automaton, state, 1).len() >= WIDE;
    let endless = if is_wide { alive.endless(automaton, state) } else { None };
    let kinds = match endless {
        Some(endless) => endless.kinds,
        None if is_wide => alive.kinds(automaton, state, LONGEST),
        None => Kinds::default(),
    };
    // Inside a string nothing can end, so tokens that die there leave nothing behind: those with control characters always do, and
    // long ones can be read one by one.
    let in_string = automaton.is_string();
    let dead = match endless {
        Some(endless) if in_string => endless.dead,
        None if in_string => Kinds::CONTROLS,
        _ => Kinds::default(),
    };
    let limit = if endless.is_some() { usize::MAX } else { usize::from(LONGEST) };
    let longest = if in_string { usize::MAX } else { limit };
    let (mut inner, mut closing) = (Vec::new(), Vec::new());
    let run = (kinds.len() >= WIDE).then(|| {
        let run = bytes.of_kinds(kinds);
        let short = bytes.no_longer(&run, limit);
        if in_string && limit < bytes.longest() {
            let long = run.iter().zip(&short).map(|(run, short)| run & !short);
            inner.extend(ones(long).filter(|&token| {
                let bytes = vocabulary.bytes(TokenId(token));
                automaton.after(state, bytes) != 0
            }));
        }
        short
    });
    let mut exits = Exits::default();
    let children = trie.children(Trie::ROOT);
    let mut work =
        vec![Below { children, depth: 0, state, place: Some(0), closed: false, known: run.is_some() }];
    while let Some(below) = work.last_mut() {
        let Some(node) = below.children.next() else {
            work.pop();
            continue;
        };
        let byte = trie.byte(node);
        let step = automaton.step(below.state, byte);
        if step.is_dead() {
            continue;
        }
        let next = step.target();
        let place = below.place.and_then(|place| utf8(place, byte));
        let closed = below.closed || step.action() == Action::Close;
        let is_kind = below.place != Some(0) || !Kinds::of(byte).and(kinds).is_empty();
        let depth = below.depth + 1;
        let known = below.known && place.is_some() && is_kind && depth <= longest;
        match closed {
            _ if known => {}
            true => closing.extend_from_slice(trie.tokens(node)),
            false => inner.extend_from_slice(trie.tokens(node)),
        }
        let children = trie.children(node);
        if children.is_empty() {
            continue;
        }
        let height = bytes.height(node);
        if !closed
            && let Some(place) = place
            && let Some(found) = bytes.kinds_below(node, place)
        {
            let fits = depth + usize::from(height) <= longest;
            if known && fits && found.without(kinds).without(dead).is_empty() {
                continue;
            }
            let is_asked = !known && place == 0 && bytes.tokens_below(node) >= LARGE;
            if is_asked && alive.takes(automaton, next, found, height) {
                inner.extend_from_slice(trie.tokens_below(node));
                continue;
            }
        }
        if automaton.is_accepting(next) {
            let dead = trie.child_bytes(node).iter().filter(|&&byte| automaton.step(next, byte).is_dead());
            exits.add(node, 0, dead);
        }
        work.push(Below { children, depth, state: next, place, closed, known });
    }
    Entry::free(run, inner, closing, exits, bytes)
}
