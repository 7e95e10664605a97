//! Everything that the grammars of one vocabulary share.

use core::hash::BuildHasher;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use maskwright_automata::ByteSet;
use maskwright_vocab::{TokenId, Trie, TrieNode, Vocabulary};
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::almost_any_string::{self, DeathDistances};
use super::bitset::{Words, bitset, set_bits};
use super::bytes::{self, Bytes, Kinds};
use super::leaf_tokens::{Known, LeafTokens, NumberedTrie, Tokens};
use super::reader::{self, Next, Reader, Visited};
use super::safe_chars::SafeChars;
use super::shortest::leaves::LeafMoves;
use super::token_equivalence::{Equivalences, Reading};
use super::token_order::TokenOrder;
use super::tries::Tries;
use super::unbounded;
use super::value_tokens::ValueTokens;
use crate::clearing_map::ClearingMap;
use crate::leaf::{Automaton, JSON_BODY, LeafState, Texts, json_string};
use crate::store::Store;
use crate::tuning::{FastPath, may_take, tuning};

/// A vocabulary, and everything learned about reading leaves with it. Create one for each tokenizer of a process and
/// bind all programs to it: the work done for one grammar is reused by the others.
#[derive(Debug)]
pub struct Library {
    vocabulary: Arc<Vocabulary>,
    /// By the address of the automaton, which the entry keeps alive.
    automata: ClearingMap<usize, Arc<BoundAutomaton>>,
    /// The tokens at and below nodes of the vocabulary's trie.
    below: ClearingMap<TrieNode, Words>,
    /// Unions of two bitsets, by their addresses.
    unions: ClearingMap<(usize, usize), Union>,
    /// Bitsets with additional tokens, by a hash of the bitset's address and the tokens.
    extended: ClearingMap<u64, Extended>,
    /// Bitsets by a hash of their content.
    bitsets: ClearingMap<u64, Words>,
    bytes: Bytes,
    string_body: OnceLock<Words>,
    whole: ValueTokens,
    order: OnceLock<TokenOrder>,
    tries: Tries,
    /// The tokens with more than 1, 2, 4, 8 … characters.
    long: [OnceLock<NumberedTrie>; 32],
}

/// The union of two bitsets. The operands are kept so that their addresses are not reused.
#[derive(Debug)]
struct Union {
    _of: (Words, Words),
    words: Words,
}

/// A bitset, additional tokens, and the result.
#[derive(Debug)]
struct Extended {
    base: Words,
    tokens: Box<[u32]>,
    words: Words,
}

/// The greatest number of automata. Beyond it, all of them are forgotten; programs in use keep theirs.
const MAX_AUTOMATA: usize = 4_096;
const MAX_EXTENDED: usize = 1_024;
/// The greatest number of states and nodes for which the moves of tokens are kept.
const MAX_MOVES: usize = 65_536;

impl Library {
    /// Creates an empty library, except for what every JSON document needs.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self::with_automata(vocabulary, Vec::new())
    }

    /// Creates a library that knows these automata.
    pub(super) fn with_automata(vocabulary: Arc<Vocabulary>, known: Vec<BoundAutomaton>) -> Self {
        let by_address = |bound: BoundAutomaton| (Arc::as_ptr(&bound.automaton).addr(), Arc::new(bound));
        let library = Self {
            bytes: Bytes::of(&vocabulary),
            whole: ValueTokens::of(&vocabulary),
            vocabulary,
            automata: ClearingMap::new(known.into_iter().map(by_address), MAX_AUTOMATA),
            below: ClearingMap::new([], MAX_AUTOMATA),
            unions: ClearingMap::new([], tuning().kept_unions),
            extended: ClearingMap::new([], MAX_EXTENDED),
            bitsets: ClearingMap::new([], tuning().kept_bitsets),
            string_body: OnceLock::new(),
            order: OnceLock::new(),
            tries: Tries::default(),
            long: [const { OnceLock::new() }; 32],
        };
        let string = library.bind(json_string());
        for state in json_string().live_states() {
            let entry = string.entry(state, &library);
            if state == JSON_BODY {
                entry.prepare(&library.bytes);
            }
        }
        library
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns how much memory the library holds beyond the vocabulary.
    pub fn heap_bytes(&self) -> usize {
        let automata = self.automata.read();
        let unions = self.unions.read();
        let below = self.below.read();
        let extended = self.extended.read();
        let bitsets = self.bitsets.read();
        automata.values().map(|bound| bound.heap_bytes()).sum::<usize>()
            + unions.values().map(|union| union.words.len() * 4 + size_of::<Union>()).sum::<usize>()
            + below.values().map(|tokens| tokens.len() * 4 + size_of::<Words>()).sum::<usize>()
            + extended
                .values()
                .map(|one| (one.words.len() + one.tokens.len()) * 4 + size_of::<(u64, Extended)>())
                .sum::<usize>()
            + bitsets.values().map(|words| words.len() * 4 + size_of::<(u64, Words)>()).sum::<usize>()
            + self.bytes.heap_bytes()
            + self.whole.heap_bytes()
            + self.order.get().map_or(0, TokenOrder::heap_bytes)
            + self.tries.heap_bytes()
            + self.long.iter().filter_map(OnceLock::get).map(|long| long.trie.heap_bytes()).sum::<usize>()
    }

    /// Checks whether the library is three quarters full of tables. A full library forgets all of them; then programs
    /// that still use some are their only owners, and [`Self::heap_bytes`] does not count them.
    pub fn is_nearly_full(&self) -> bool {
        let automata = self.automata.read();
        automata.len() >= MAX_AUTOMATA / 4 * 3
    }

    /// Returns all automata with what is known of them.
    pub(super) fn bound_automata(&self) -> Vec<Arc<BoundAutomaton>> {
        self.automata.read().values().cloned().collect()
    }

    /// Returns the tokens at and below a node of the vocabulary's trie, ascending.
    pub(crate) fn tokens_below(&self, node: TrieNode) -> Words {
        if let Some(found) = self.below.read().get(&node) {
            return found.clone();
        }
        let trie = self.vocabulary.trie();
        let mut tokens = [trie.tokens(node), trie.tokens_below(node)].concat();
        tokens.sort_unstable();
        let tokens = Words::from(tokens);
        self.below.add(node, tokens, Words::clone)
    }

    /// Returns how many characters begin on the path to a node of the vocabulary's trie.
    fn characters_before(&self, node: TrieNode) -> u32 {
        let trie = self.vocabulary.trie();
        let token = trie.tokens(node).iter().chain(trie.tokens_below(node)).next();
        let path = token.map_or(&[][..], |&token| self.vocabulary.spelling(TokenId(token)));
        let (mut at, mut characters) = (Trie::ROOT, 0);
        for &byte in path {
            if at == node {
                break;
            }
            let Some(child) = trie.child(at, byte) else { break };
            at = child;
            characters += u32::from(bytes::begins_character(byte));
        }
        characters
    }

    /// Returns the tokens that stay inside any string.
    fn string_body(&self) -> &Words {
        self.string_body.get_or_init(|| {
            let string = self.bind(json_string());
            match string.entry(JSON_BODY, self).inner(u32::MAX, &self.bytes) {
                Tokens::Many(words) => words.clone(),
                Tokens::Few(list) => bitset(list, self.vocabulary.size()),
            }
        })
    }

    /// Returns the tokens that contain whole values.
    pub(crate) fn value_tokens(&self) -> &ValueTokens {
        &self.whole
    }

    /// Returns the order in which tokens are tried.
    pub(crate) fn token_order(&self) -> &TokenOrder {
        self.order.get_or_init(|| TokenOrder::of(&self.vocabulary))
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the tries that indexes share.
    pub(crate) fn tries(&self) -> &Tries {
        &self.tries
    }

    /// Returns all ordinary tokens with more than `characters` characters, and possibly some with fewer.
    pub(crate) fn long_tokens(&self, characters: u32) -> &NumberedTrie {
        let power = characters.max(1).ilog2();
        self.long[power as usize].get_or_init(|| {
            let tokens = self.bytes.longer_than(1 << power);
            NumberedTrie::build(tokens.map(|token| (self.vocabulary.bytes(TokenId(token)), token)))
        })
    }

    /// Checks whether some token below a node of the vocabulary's trie continues with a quote.
    #[inline]
    pub(crate) fn is_before_quote(&self, node: TrieNode) -> bool {
        self.bytes.below(node) & bytes::class(b'"') != 0
    }

    /// Returns the union of two bitsets.
    pub(crate) fn union(&self, a: &Words, b: &Words) -> Words {
        let address = |words: &Words| words.as_ptr().addr();
        let (a, b) = if address(a) <= address(b) { (a, b) } else { (b, a) };
        let key = (address(a), address(b));
        if key.0 == key.1 {
            return a.clone();
        }
        if let Some(found) = self.unions.read().get(&key) {
            return found.words.clone();
        }
        let words: Words = a.iter().zip(b.iter()).map(|(a, b)| a | b).collect();
        let union = Union { _of: (a.clone(), b.clone()), words };
        self.unions.add(key, union, |union| union.words.clone())
    }

    /// Returns a bitset of these tokens. Equal bitsets share their memory, up to some number of them.
    pub(crate) fn bitset(&self, tokens: &[u32]) -> Words {
        let words = bitset(tokens, self.vocabulary.size());
        let hash = FxBuildHasher.hash_one(&*words);
        if let Some(found) = self.bitsets.read().get(&hash)
            && *found == words
        {
            return found.clone();
        }
        self.bitsets.add(hash, words.clone(), |found| if *found == words { found.clone() } else { words })
    }

    /// Returns a bitset with additional tokens.
    pub(crate) fn with_more(&self, base: &Words, tokens: &[u32]) -> Words {
        // The tokens come in the order of a walk, which may differ between grammars, so the hash does not depend on the
        // order.
        let mixed = tokens.iter().map(|&token| (u64::from(token) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let hash =
            mixed.fold(base.as_ptr().addr() as u64, |sum, token| sum.wrapping_add(token ^ token >> 29));
        let known = |found: &Extended| {
            (Arc::ptr_eq(&found.base, base) && *found.tokens == *tokens).then(|| found.words.clone())
        };
        if let Some(words) = self.extended.read().get(&hash).and_then(known) {
            return words;
        }
        let mut words = Words::from(&**base);
        set_bits(Arc::get_mut(&mut words).expect("nobody else has it yet"), tokens);
        if let Some(found) = self.extended.read().get(&hash)
            && found.words == words
        {
            return found.words.clone();
        }
        // Another bitset may have the same hash.
        let extended = Extended { base: base.clone(), tokens: tokens.into(), words: words.clone() };
        self.extended.add(hash, extended, |_| words)
    }

    /// Returns the automaton with what this vocabulary knows of it.
    pub(crate) fn bind(&self, automaton: &Arc<Automaton>) -> Arc<BoundAutomaton> {
        let address = Arc::as_ptr(automaton).addr();
        if let Some(found) = self.automata.read().get(&address) {
            return found.clone();
        }
        self.automata.add(address, Arc::new(BoundAutomaton::new(automaton.clone())), Arc::clone)
    }
}

/// The entry of a state, if known. States that no token can distinguish share it ([`super::token_equivalence`]). PERF:
/// tables of patterns have thousands of states, few of which are ever used; with the entries stored inline, reserving
/// their memory took a tenth of compiling.
pub(super) type Slot = OnceLock<Arc<LeafTokens>>;

/// An automaton with what is known of each state that was used.
#[derive(Debug)]
pub(crate) struct BoundAutomaton {
    automaton: Arc<Automaton>,
    entries: Box<[Slot]>,
    /// The entries for room for any token.
    free: Box<[Slot]>,
    distances: OnceLock<DeathDistances>,
    /// See [`Self::reach`].
    reach: OnceLock<u32>,
    safe_chars: Mutex<SafeChars>,
    equivalences: Mutex<Equivalences>,
    /// Entries for parts of tries.
    parts: Store<TriePart>,
    /// The moves of tokens for shortest paths: of whole tokens, and of tokens after their first byte, as those are
    /// many.
    moves: ClearingMap<(LeafState, TrieNode), Arc<LeafMoves>>,
    /// The tokens that leave a string open with at least [`AMPLE_VALUES`] reachable values; used to check whether
    /// values run out.
    ample: ClearingMap<LeafState, Words>,
    texts: OnceLock<Texts>,
    measured: Measured,
}

/// Nearly always more values than a scope has seen.
pub(crate) const AMPLE_VALUES: u32 = 1 << 24;

/// The number of a trie, a node of it, and a state.
type PartKey = (u32, TrieNode, LeafState);

/// The tokens below a node of a trie, in a state.
#[derive(Debug)]
struct TriePart {
    key: PartKey,
    /// Boxed, because most parts are requested once or twice and never read.
    entry: OnceLock<Box<LeafTokens>>,
    requests: RequestCount,
}

/// Counts the requests for the entry of a state. Computing it takes about four times as long as a walk from the state
/// and what follows it in one place. So it is computed on the fourth request, or on the second where there are many
/// tokens.
#[derive(Debug, Default)]
struct RequestCount(AtomicU8);

impl RequestCount {
    fn is_enough(&self, times: u8) -> bool {
        let before = self.0.load(Ordering::Relaxed);
        if before + 1 < times {
            self.0.store(before + 1, Ordering::Relaxed);
        }
        before + 1 >= times
    }
}

/// Returns the greatest number of bytes that an automaton reads of any token, from any state, if that is quick to
/// compute. It is for numbers, which have few tokens, but not for strings, which accept nearly all.
fn longest_reading(automaton: &Automaton, trie: &Trie) -> Option<u32> {
    let is_narrow = |state: LeafState| automaton.live(state).len() < tuning().loop_kinds as usize;
    if !automaton.live_states().all(is_narrow) {
        return None;
    }
    let (mut longest, mut steps) = (0, 0);
    let mut work = vec![(Trie::ROOT, 0, automaton.live_states().collect::<Vec<_>>())];
    while let Some((node, depth, states)) = work.pop() {
        longest = longest.max(depth);
        let live = states.iter().fold(ByteSet::EMPTY, |all, state| all.union(*automaton.live(*state)));
        for byte in live.iter() {
            let Some(child) = trie.child(node, byte) else { continue };
            steps += states.len();
            if steps > READING_STEPS {
                return None;
            }
            let next = states.iter().map(|&state| automaton.step(state, byte).target());
            let mut next: Vec<LeafState> = next.filter(|state| !state.is_dead()).collect();
            if !next.is_empty() {
                next.sort_unstable();
                next.dedup();
                work.push((child, depth + 1, next));
            }
        }
    }
    Some(longest)
}

/// The greatest number of steps for this.
const READING_STEPS: usize = 50_000;

/// The memory of an automaton at its last measurement, and whether it was used since. PERF: a library has thousands of
/// automata, few of which grow between two measurements, and measuring one walks over all its entries.
#[derive(Debug)]
struct Measured {
    bytes: AtomicUsize,
    is_old: AtomicBool,
}

impl Measured {
    #[inline]
    fn used(&self) {
        // If every matcher stored at every step, the cache line would move from core to core.
        if !self.is_old.load(Ordering::Relaxed) {
            self.is_old.store(true, Ordering::Relaxed);
        }
    }

    fn get(&self, measure: impl FnOnce() -> usize) -> usize {
        if self.is_old.swap(false, Ordering::Relaxed) {
            self.bytes.store(measure(), Ordering::Relaxed);
        }
        self.bytes.load(Ordering::Relaxed)
    }
}

impl BoundAutomaton {
    fn new(automaton: Arc<Automaton>) -> Self {
        let unknown = || (0..automaton.len()).map(|_| OnceLock::new()).collect();
        let (entries, free) = (unknown(), unknown());
        Self::with_entries(automaton, entries, free)
    }

    /// Creates an automaton with these entries, one slot for each state.
    pub(super) fn with_entries(automaton: Arc<Automaton>, entries: Box<[Slot]>, free: Box<[Slot]>) -> Self {
        Self {
            automaton,
            entries,
            free,
            distances: OnceLock::new(),
            reach: OnceLock::new(),
            safe_chars: Mutex::default(),
            equivalences: Mutex::default(),
            parts: Store::new(),
            moves: ClearingMap::new([], MAX_MOVES),
            ample: ClearingMap::new([], MAX_AUTOMATA),
            texts: OnceLock::new(),
            measured: Measured { bytes: AtomicUsize::new(0), is_old: AtomicBool::new(true) },
        }
    }

    pub(super) fn automaton(&self) -> &Arc<Automaton> {
        &self.automaton
    }

    pub(super) fn entries(&self) -> &[Slot] {
        &self.entries
    }

    pub(super) fn free_entries(&self) -> &[Slot] {
        &self.free
    }

    /// Returns the entry of the tokens below a node of the trie with this number.
    pub(crate) fn entry_below(
        &self,
        state: LeafState,
        trie: &Trie,
        number: u32,
        node: TrieNode,
        library: &Library,
    ) -> &LeafTokens {
        self.part_entry(self.part((number, node, state)), trie, library)
    }

    /// Like [`Self::entry_below`], but returns an entry only if it is known already or requested for the n-th time
    /// (`times`).
    pub(crate) fn entry_below_if_frequent(
        &self,
        state: LeafState,
        trie: &Trie,
        number: u32,
        node: TrieNode,
        times: u8,
        library: &Library,
    ) -> Option<&LeafTokens> {
        let part = self.part((number, node, state));
        let is_frequent = part.entry.get().is_some() || part.requests.is_enough(times);
        is_frequent.then(|| self.part_entry(part, trie, library))
    }

    fn part_entry<'p>(&self, part: &'p TriePart, trie: &Trie, library: &Library) -> &'p LeafTokens {
        let (number, node, state) = part.key;
        part.entry.get_or_init(|| {
            // Summaries of the tokens below a node exist for the vocabulary's trie alone.
            let mut safe_chars = (number == 0).then(|| self.safe_chars());
            let known = safe_chars
                .as_deref_mut()
                .map(|safe_chars| Known::below(&library.bytes, safe_chars, library.characters_before(node)));
            LeafTokens::below(&self.automaton, state, trie, node, known).into()
        })
    }

    fn part(&self, key: PartKey) -> &TriePart {
        self.measured.used();
        let hash = |key: &PartKey| FxBuildHasher.hash_one(key);
        let make = || TriePart { key, entry: OnceLock::new(), requests: RequestCount::default() };
        let found = self.parts.intern(hash(&key), |part| part.key == key, |part| hash(&part.key), make);
        self.parts.get(found)
    }

    /// Returns the entry of a state for the whole vocabulary.
    pub(crate) fn entry(&self, state: LeafState, library: &Library) -> &LeafTokens {
        self.measured.used();
        self.entries[state.index()].get_or_init(|| {
            let (automaton, trie) = (&*self.automaton, library.vocabulary.trie());
            self.equivalent(&self.entries, true, state, library).unwrap_or_else(|| {
                LeafTokens::new(automaton, &mut self.safe_chars(), state, trie, &library.bytes).into()
            })
        })
    }

    /// Returns the moves of tokens from a state, below a node of the vocabulary's trie.
    pub(super) fn moves(&self, state: LeafState, node: TrieNode, trie: &Trie) -> Arc<LeafMoves> {
        let is_kept = node == Trie::ROOT || trie.children(Trie::ROOT).contains(node);
        if is_kept && let Some(known) = self.moves.get(&(state, node)) {
            return known;
        }
        let moves = Arc::new(LeafMoves::below(&self.automaton, state, trie, node));
        if !is_kept {
            return moves;
        }
        self.measured.used();
        self.moves.add((state, node), moves, Arc::clone)
    }

    /// Returns how many values are reachable from the states. The automaton must accept JSON strings.
    pub(crate) fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| Texts::of(&self.automaton))
    }

    /// Returns the tokens that leave a string open with at least [`AMPLE_VALUES`] reachable values, from a state.
    pub(crate) fn ample(&self, state: LeafState, vocabulary: &Vocabulary) -> Words {
        if let Some(known) = self.ample.get(&state) {
            return known;
        }
        let words = vec![0u32; vocabulary.size().div_ceil(32)];
        let mut ample = Ample { automaton: &self.automaton, values: &self.texts().now, words };
        reader::read(vocabulary.trie(), Trie::ROOT, state, &mut ample);
        self.measured.used();
        self.ample.add(state, ample.words.into(), Words::clone)
    }

    /// Returns an upper bound on the units that any token begins.
    pub(super) fn reach(&self, vocabulary: &Vocabulary) -> u32 {
        *self.reach.get_or_init(|| {
            let longest = vocabulary.max_token_bytes() as u32;
            longest_reading(&self.automaton, vocabulary.trie()).unwrap_or(longest)
        })
    }

    /// Checks whether few bytes are live in a state.
    pub(super) fn is_narrow(&self, state: LeafState) -> bool {
        self.automaton.live(state).len() < tuning().loop_kinds as usize
    }

    /// Returns characters of which every text keeps the automaton alive, from a state between two characters; `None` if
    /// there are not many.
    pub(super) fn endless(&self, state: LeafState) -> Option<Kinds> {
        self.safe_chars().endless(&self.automaton, state).map(|endless| endless.kinds)
    }

    fn safe_chars(&self) -> MutexGuard<'_, SafeChars> {
        self.safe_chars.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entry, among these, of a state that no token can distinguish from this one.
    fn equivalent(
        &self,
        entries: &[Slot],
        tails: bool,
        state: LeafState,
        library: &Library,
    ) -> Option<Arc<LeafTokens>> {
        if !tuning().has(FastPath::TokenEquivalence) {
            return None;
        }
        let (automaton, safe_chars) = (&*self.automaton, &mut *self.safe_chars());
        let (trie, bytes) = (library.vocabulary.trie(), &library.bytes);
        let known = |state: LeafState| entries[state.index()].get();
        let mut equivalences = self.equivalences.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reading = Reading { automaton, safe_chars, tails, trie, bytes };
        let equivalent =
            equivalences.find(state, |state| known(state).is_some(), &mut reading).and_then(known);
        equivalent.filter(|_| may_take(FastPath::TokenEquivalence)).cloned()
    }

    /// Returns the entry of a state with room for any token.
    pub(crate) fn free(&self, state: LeafState, library: &Library) -> &LeafTokens {
        self.measured.used();
        let automaton = &*self.automaton;
        if self.entries[state.index()].get().is_some() || !may_take(FastPath::UnboundedLeaves) {
            return self.entry(state, library);
        }
        self.free[state.index()].get_or_init(|| {
            if let Some(equivalent) = self.equivalent(&self.free, false, state, library) {
                return equivalent;
            }
            let bytes = &library.bytes;
            if almost_any_string::may_be_near(automaton, state) && may_take(FastPath::AlmostAnyString) {
                let distances = self.distances.get_or_init(|| DeathDistances::of(automaton));
                let (trie, body) = (library.vocabulary.trie(), library.string_body());
                let is_near = distances.is_near(automaton, state);
                let found =
                    is_near.then(|| almost_any_string::read(automaton, distances, state, trie, bytes, body));
                if let Some(entry) = found.flatten() {
                    return entry.into();
                }
            }
            unbounded::read(automaton, &mut self.safe_chars(), state, &library.vocabulary, bytes).into()
        })
    }

    fn heap_bytes(&self) -> usize {
        self.measured.get(|| self.measure())
    }

    fn measure(&self) -> usize {
        let known = self.entries.iter().chain(&self.free).filter_map(OnceLock::get);
        let mut seen = FxHashSet::default();
        let entries = known
            .filter(|entry| seen.insert(Arc::as_ptr(entry)))
            .map(|entry| size_of::<LeafTokens>() + entry.heap_bytes());
        size_of::<Self>()
            + self.automaton.heap_bytes()
            + (self.entries.len() + self.free.len()) * size_of::<Slot>()
            + entries.sum::<usize>()
            + self.safe_chars().heap_bytes()
            + self.equivalences.lock().unwrap_or_else(PoisonError::into_inner).heap_bytes()
            + self.parts.heap_bytes()
            + self.moves.read().values().map(|moves| moves.heap_bytes()).sum::<usize>()
            + self.texts.get().map_or(0, Texts::heap_bytes)
            + self.ample.read().values().map(|words| size_of_val(&**words)).sum::<usize>()
            + self
                .parts
                .iter()
                .filter_map(|part| part.entry.get())
                .map(|entry| size_of::<LeafTokens>() + entry.heap_bytes())
                .sum::<usize>()
    }
}

/// A string table that takes the bytes of tokens as long as the string is open.
struct Ample<'r> {
    automaton: &'r Automaton,
    /// The number of values reachable from each state.
    values: &'r [u32],
    /// The tokens that lead to a state with at least [`AMPLE_VALUES`].
    words: Vec<u32>,
}

impl Reader for Ample<'_> {
    type State = LeafState;

    #[inline]
    fn take(&mut self, before: &mut LeafState, node: &Visited<'_>) -> Next<LeafState> {
        let step = self.automaton.step(*before, node.byte);
        if step.is_dead() || self.automaton.is_accepting(step.target()) {
            return Next::Past;
        }
        if self.values[step.target().index()] >= AMPLE_VALUES {
            node.tokens(|tokens| set_bits(&mut self.words, tokens));
        }
        Next::Below(step.target())
    }
}
