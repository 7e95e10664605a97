//! Binds a program to a vocabulary: [`BoundProgram`] is what matchers run on, [`Library`] what all programs of a
//! vocabulary share.

mod almost_any_string;
mod bitset;
mod bytes;
mod distance;
mod leaf_distance;
mod leaf_tokens;
mod memo;
pub(crate) mod new_values;
pub(crate) mod reader;
mod safe_chars;
mod save;
mod shared;
mod shortest;
mod token_equivalence;
mod token_order;
pub(crate) mod tries;
mod unbounded;
mod value_tokens;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use maskwright_vocab::{Trie, TrieNode, Vocabulary};

pub(crate) use self::bitset::{Words, ones, set_bits};
pub(crate) use self::bytes::{Bytes, GroupedKinds, Kinds, utf8};
pub(crate) use self::distance::{Distances, ToEnd};
pub(crate) use self::leaf_distance::NEVER;
pub(crate) use self::leaf_tokens::{Boundaries, LeafTokens, NumberedTrie, SuffixSource, Tokens};
pub(crate) use self::memo::{
    Answer, AnswerId, Difference, Key, LineNodeId, Look, Memo, MemoId, Part, max_difference,
};
pub(crate) use self::new_values::NewValues;
pub use self::save::LoadError as LibraryLoadError;
pub use self::shared::Library;
pub(crate) use self::shared::{AMPLE_VALUES, BoundAutomaton};
pub(crate) use self::shortest::leaves::LeafMoves;
pub(crate) use self::shortest::{Arrival, Context, Needs, PlaceSet, Position, ShortestPaths};
pub(crate) use self::value_tokens::ValueTokens;
use crate::count::{Bounds, Count, UNBOUNDED, Window};
use crate::leaf::{Leaf, LeafState, Texts, json_string};
use crate::program::{LeafId, Program};

/// A compiled constraint for one vocabulary. It is immutable except for its caches. Share it between threads, and
/// create a [`Matcher`](crate::Matcher) for each request.
#[derive(Debug)]
pub struct BoundProgram {
    program: Arc<Program>,
    library: Arc<Library>,
    /// The automaton of each leaf; for a text, the automaton of plain strings.
    automata: Box<[Arc<BoundAutomaton>]>,
    memo: Memo,
    /// Upper bounds on the tokens to the end, computed on first use.
    ahead: OnceLock<Distances>,
    /// The least numbers of tokens to the end, computed on first use.
    shortest: OnceLock<Mutex<ShortestPaths>>,
    /// By how much a token can move the end away, with the same keys as masks.
    growth: OnceLock<Box<Memo>>,
    /// The number of bytes of the longest token.
    horizon: u32,
    /// For each leaf, the number of units from which on more room makes no difference to any token.
    distant: Box<[u32]>,
}

impl BoundProgram {
    /// Binds a program to the vocabulary of a library.
    pub fn new(program: Arc<Program>, library: Arc<Library>) -> Arc<Self> {
        let automaton = |leaf: &Leaf| match leaf {
            Leaf::Window { automaton, .. } => library.bind(automaton),
            Leaf::Text(_) => library.bind(json_string()),
        };
        if program.may_run_out() {
            // The masks of this program will need the order. It is built once for a vocabulary and takes milliseconds.
            library.token_order();
        }
        let automata: Box<[Arc<BoundAutomaton>]> = program.leaves().iter().map(automaton).collect();
        let distant = |(leaf, automaton): (&Leaf, &Arc<BoundAutomaton>)| match leaf.bounds() {
            // Nothing is counted.
            Bounds { min: 0, max: UNBOUNDED } => 0,
            _ => automaton.reach(library.vocabulary()) + automaton.automaton().longest_tail(),
        };
        Arc::new(Self {
            distant: program.leaves().iter().zip(&automata).map(distant).collect(),
            automata,
            memo: Memo::new(),
            ahead: OnceLock::new(),
            shortest: OnceLock::new(),
            growth: OnceLock::new(),
            horizon: library.vocabulary().max_token_bytes() as u32,
            program,
            library,
        })
    }

    /// Returns the program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.library.vocabulary()
    }

    /// Returns how much memory this constraint holds, without what it shares with others.
    pub fn heap_bytes(&self) -> usize {
        let own = size_of::<Self>() + size_of::<Program>();
        let growth = self.growth.get().map_or(0, |growth| size_of::<Memo>() + growth.heap_bytes());
        let ahead = self.ahead.get().map_or(0, Distances::heap_bytes) + growth;
        let shortest = self.shortest.get().map_or(0, |_| self.shortest().heap_bytes());
        let leaves = size_of_val(&*self.automata) + size_of_val(&*self.distant);
        own + self.program.heap_bytes() + self.memo.heap_bytes() + ahead + shortest + leaves
    }

    /// Returns the number of entries of the memo: masks, and nodes on the way to masks.
    pub fn memo_len(&self) -> usize {
        self.memo.len()
    }

    pub(crate) fn memo(&self) -> &Memo {
        &self.memo
    }

    pub(crate) fn growth(&self) -> &Memo {
        self.growth.get_or_init(|| Box::new(Memo::new()))
    }

    pub(crate) fn distances(&self) -> &Distances {
        self.ahead.get_or_init(|| Distances::new(&self.program, self.vocabulary()))
    }

    /// Returns the costs of values that must be new.
    pub(crate) fn new_values(&self) -> &NewValues {
        self.distances().new_values()
    }

    /// Returns the moves of tokens from a state of a leaf with a table, below a node of the vocabulary's trie.
    pub(crate) fn leaf_moves(&self, leaf: LeafId, state: LeafState, node: TrieNode) -> Arc<LeafMoves> {
        self.automata[leaf.index()].moves(state, node, self.vocabulary().trie())
    }

    pub(crate) fn shortest(&self) -> MutexGuard<'_, ShortestPaths> {
        let paths = self.shortest.get_or_init(|| Mutex::new(ShortestPaths::new(&self.program)));
        paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn horizon(&self) -> u32 {
        self.horizon
    }

    /// Returns the number of units from which on more room in a leaf makes no difference to any token.
    #[inline]
    pub(crate) fn distant(&self, leaf: LeafId) -> u32 {
        self.distant[leaf.index()]
    }

    /// Returns what the tokens below a node of a trie do in a state of a leaf's automaton. `number` is the trie's
    /// number.
    pub(crate) fn entry_below(
        &self,
        leaf: LeafId,
        state: LeafState,
        trie: &Trie,
        number: u32,
        node: TrieNode,
    ) -> &LeafTokens {
        self.automata[leaf.index()].entry_below(state, trie, number, node, &self.library)
    }

    /// Like [`Self::entry_below`], but returns an entry only if it is known or worth computing: if few bytes are live
    /// in the state, or if it is requested for the n-th time (`times`).
    pub(crate) fn entry_below_if_frequent(
        &self,
        leaf: LeafId,
        state: LeafState,
        trie: &Trie,
        number: u32,
        node: TrieNode,
        times: u8,
    ) -> Option<&LeafTokens> {
        let bound = &self.automata[leaf.index()];
        if bound.is_narrow(state) {
            return Some(bound.entry_below(state, trie, number, node, &self.library));
        }
        bound.entry_below_if_frequent(state, trie, number, node, times, &self.library)
    }

    /// Checks whether, after any one token, a string can still be completed in more than `values` ways, so that one of
    /// them is new.
    pub(crate) fn has_more_values_after_token(
        &self,
        leaf: LeafId,
        state: LeafState,
        count: Count,
        values: usize,
    ) -> bool {
        // A token may use up some of the room at once.
        let reach = self.distant(leaf).saturating_sub(self.automata[leaf.index()].automaton().longest_tail());
        self.units_with_more_values(leaf, state, count, values).is_some_and(|units| units >= reach)
    }

    /// Returns a number of units: after any text that takes at most this many and leaves the leaf open, the string can
    /// still be completed in more than `values` ways. Returns `None` if it cannot even now.
    pub(crate) fn units_with_more_values(
        &self,
        leaf: LeafId,
        state: LeafState,
        count: Count,
        values: usize,
    ) -> Option<u32> {
        let window = self.program.leaf(leaf);
        let (automaton, max) = match window {
            Leaf::Text(text) => return text.is_except().then_some(UNBOUNDED),
            Leaf::Window { automaton, max, .. } => (automaton, *max),
        };
        if max == UNBOUNDED {
            let is_enough = automaton.stays_endless(state)
                || window.is_string() && self.texts(leaf).always[state.index()] as usize > values;
            return is_enough.then_some(UNBOUNDED);
        }
        let Window { need, room } = *self.program.counts().windows(count, window.bounds()).last()?;
        let room_left = room.checked_sub(automaton.longest_tail())?;
        // Each unit has at least two values, or each length is another value.
        let digits = usize::BITS - values.leading_zeros();
        let values = u32::try_from(values).ok()?;
        let least = match () {
            () if automaton.is_integers() => automaton.stays_endless(state).then_some(digits)?,
            () if automaton.branches() || Arc::ptr_eq(automaton, json_string()) => digits,
            () if automaton.grows() && room.saturating_sub(need) > values => values + 1,
            () => return None,
        };
        let units = room_left.checked_sub(least)?;
        (!automaton.live(state).is_empty()).then_some(units)
    }

    /// Returns how many values are reachable from the states of a leaf of JSON strings.
    pub(crate) fn texts(&self, leaf: LeafId) -> &Texts {
        self.automata[leaf.index()].texts()
    }

    /// Returns the tokens that leave a string open with at least [`AMPLE_VALUES`] reachable values, from a state of a
    /// leaf.
    pub(crate) fn ample(&self, leaf: LeafId, state: LeafState) -> Words {
        self.automata[leaf.index()].ample(state, self.vocabulary())
    }

    /// Returns characters, and a number: any text of at most this many of them stays inside a leaf, from a state
    /// between two characters.
    pub(crate) fn safe_kinds(&self, leaf: LeafId, state: LeafState, count: Count) -> Option<(Kinds, u32)> {
        let Leaf::Window { automaton, min, max } = self.program.leaf(leaf) else { return None };
        let room = self.program.counts().room(count, Bounds { min: *min, max: *max });
        let kinds = self.automata[leaf.index()].endless(state)?;
        Some((kinds, if room == UNBOUNDED { room } else { room.saturating_sub(automaton.longest_tail()) }))
    }

    /// Returns what all programs of this vocabulary share.
    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    /// Checks whether few bytes are live in a state of a leaf.
    pub(crate) fn is_narrow(&self, leaf: LeafId, state: LeafState) -> bool {
        self.automata[leaf.index()].is_narrow(state)
    }

    /// Returns what the vocabulary does in a state of a leaf's automaton, with room for `room` units.
    pub(crate) fn entry(&self, leaf: LeafId, state: LeafState, room: u32) -> &LeafTokens {
        let bound = &self.automata[leaf.index()];
        if self.has_room(leaf, room) {
            bound.free(state, &self.library)
        } else {
            bound.entry(state, &self.library)
        }
    }

    /// Checks whether no token can use up the room of a leaf or be too long for it. A text never has room: its closing
    /// tokens are kept apart, because some of them will be removed.
    pub(crate) fn has_room(&self, leaf: LeafId, room: u32) -> bool {
        match self.program.leaf(leaf) {
            Leaf::Window { .. } => room >= self.distant(leaf),
            Leaf::Text(_) => false,
        }
    }
}
