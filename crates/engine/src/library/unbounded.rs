//! Reads a vocabulary from a state with room for any token.
//!
//! Has the same result as [`LeafTokens::new`], but is much faster where most tokens stay in the leaf. Tokens whose
//! characters keep the leaf alive in any order ([`super::safe_chars`]) come from the vocabulary's sets of tokens by
//! kinds of characters ([`super::bytes`]).

use maskwright_vocab::{TokenId, Trie, Vocabulary};

use super::bitset::ones;
use super::bytes::{Bytes, Kinds};
use super::leaf_tokens::{self, Found, Known, LeafTokens};
use super::reader::Visited;
use super::safe_chars::{MAX_CHARS, SafeChars};
use crate::leaf::{Automaton, LeafState};
use crate::tuning::tuning;

/// Inner tokens, and tokens that close a string.
#[derive(Default)]
struct Tokens {
    inner: Vec<u32>,
    /// With their units.
    closing: Vec<(u32, u32)>,
}

impl Found for Tokens {
    #[inline]
    fn at(&mut self, tokens: &[u32], _state: LeafState, units: u32, closed: bool) {
        if closed {
            self.closing.extend(tokens.iter().map(|&token| (units, token)));
        } else {
            // PERF: there is nearly always exactly one.
            for &token in tokens {
                self.inner.push(token);
            }
        }
    }

    #[inline]
    fn below(&mut self, node: &Visited<'_>, _: LeafState, _units: u32, _characters: u32) {
        self.inner.extend_from_slice(node.tokens_below());
    }
}

/// Computes what the vocabulary does in a state.
pub(crate) fn read(
    automaton: &Automaton,
    safe_chars: &mut SafeChars,
    state: LeafState,
    vocabulary: &Vocabulary,
    bytes: &Bytes,
) -> LeafTokens {
    let is_wide = safe_chars.kinds(automaton, state, 1).len() >= tuning().loop_kinds;
    let endless = if is_wide { safe_chars.endless(automaton, state) } else { None };
    let (kinds, limit) = match endless {
        Some(endless) => (endless.kinds, usize::MAX),
        None if is_wide => safe_so_far(automaton, safe_chars, state),
        None => (Kinds::default(), usize::from(MAX_CHARS)),
    };
    // Nothing can end inside a string, so tokens that die there have no suffix. Tokens with control characters always
    // die there, and long ones can be read one by one.
    let in_string = automaton.is_string();
    let dead = match endless {
        Some(endless) if in_string => endless.dead,
        None if in_string => Kinds::CONTROLS,
        _ => Kinds::default(),
    };
    let kinds = if kinds.len() >= tuning().loop_kinds { kinds } else { Kinds::default() };
    // Of the tokens that are longer than the limit, a few are read one by one, and many from the trie.
    let has_few_longer = in_string && limit >= usize::from(MAX_CHARS);
    let longest = if has_few_longer { usize::MAX } else { limit };
    let mut found = Tokens::default();
    let run = (!kinds.is_empty()).then(|| {
        let run = bytes.of_kinds(kinds);
        let short = bytes.no_longer(&run, limit);
        if has_few_longer && limit < bytes.longest() {
            let long = run.iter().zip(&short).map(|(run, short)| run & !short);
            let is_alive =
                |token: &u32| automaton.after(state, vocabulary.spelling(TokenId(*token))) != LeafState::DEAD;
            found.inner.extend(ones(long).filter(is_alive));
        }
        short
    });
    let known = Known { bytes, safe_chars, kinds, longest, dead, before: 0 };
    let boundaries =
        leaf_tokens::read(automaton, state, vocabulary.trie(), Trie::ROOT, Some(known), &mut found);
    LeafTokens::free(run, found.inner, found.closing, boundaries, bytes)
}

/// Finds characters such that every text of them up to some length keeps a state alive, and the greatest length for
/// which there are enough of them.
fn safe_so_far(automaton: &Automaton, safe_chars: &mut SafeChars, state: LeafState) -> (Kinds, usize) {
    // PERF: in ascending order, because a greater length needs the sets of all nearer states, and sets only get
    // smaller.
    let lengths = (1..=MAX_CHARS).map(|length| (safe_chars.kinds(automaton, state, length), length));
    let found = lengths.take_while(|(kinds, _)| kinds.len() >= tuning().loop_kinds).last();
    let (kinds, length) = found.unwrap_or((Kinds::default(), MAX_CHARS));
    (kinds, usize::from(length))
}
