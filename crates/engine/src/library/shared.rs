//! Everything that grammars share about one vocabulary.

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

/// A vocabulary and what has been found out about leaves read with it. Make one for each tokenizer of a process
/// and bind all programs to it: what one grammar paid for, the others get for nothing.
#[derive(Debug)]
pub struct Library {
    vocabulary: Arc<Vocabulary>,
    /// By the address of the automaton, which the entry keeps alive.
    automata: ClearingMap<usize, Arc<BoundAutomaton>>,
    /// The tokens at and below nodes of the vocabulary's trie.
    below: ClearingMap<TrieNode, Words>,
    /// Unions of two bitsets, by their addresses.
    unions: ClearingMap<(usize, usize), Union>,
    /// Bitsets with more tokens, by a hash of what they were made of.
    extended: ClearingMap<u64, Extended>,
    /// Bitsets by a hash of their content.
    bitsets: ClearingMap<u64, Words>,
    bytes: Bytes,
    string_body: OnceLock<Words>,
    whole: ValueTokens,
    order: OnceLock<TokenOrder>,
    tries: Tries,
    /// The tokens with more than 2, 4, 8 … characters.
    long: [OnceLock<NumberedTrie>; 32],
}

/// Two bitsets, kept so that their addresses stay theirs, and what is in either.
#[derive(Debug)]
struct Union {
    _of: (Words, Words),
    words: Words,
}

/// A bitset, tokens that it lacks, and both together.
#[derive(Debug)]
struct Extended {
    base: Words,
    tokens: Box<[u32]>,
    words: Words,
}

/// How many automata are kept. Beyond it everything is forgotten; programs in use keep what they have.
const KEPT: usize = 4_096;
const EXTENDED: usize = 1_024;
/// Of how many states and nodes it is kept where tokens lead from there.
const MOVES: usize = 65_536;

impl Library {
    /// An empty library, but for what every JSON document needs.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self::with_automata(vocabulary, Vec::new())
    }

    /// A library that knows these automata.
    pub(super) fn with_automata(vocabulary: Arc<Vocabulary>, known: Vec<BoundAutomaton>) -> Self {
        let by_address = |bound: BoundAutomaton| (Arc::as_ptr(&bound.automaton).addr(), Arc::new(bound));
        let library = Self {
            bytes: Bytes::of(&vocabulary),
            whole: ValueTokens::of(&vocabulary),
            vocabulary,
            automata: ClearingMap::new(known.into_iter().map(by_address), KEPT),
            below: ClearingMap::new([], KEPT),
            unions: ClearingMap::new([], tuning().kept_unions),
            extended: ClearingMap::new([], EXTENDED),
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

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// How much memory the library holds beyond the vocabulary.
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

    /// Whether the library is three quarters full of tables. A full one forgets all of them, and programs that still use some
    /// hold them alone, where [`Self::heap_bytes`] does not see them.
    pub fn is_nearly_full(&self) -> bool {
        let automata = self.automata.read();
        automata.len() >= KEPT / 4 * 3
    }

    /// All automata with what is known of them.
    pub(super) fn bound_automata(&self) -> Vec<Arc<BoundAutomaton>> {
        self.automata.read().values().cloned().collect()
    }

    /// The tokens at and below a node of the vocabulary's trie, ascending.
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

    /// The tokens that stay inside any string.
    fn string_body(&self) -> &Words {
        self.string_body.get_or_init(|| {
            let string = self.bind(json_string());
            match string.entry(JSON_BODY, self).inner(u32::MAX, &self.bytes) {
                Tokens::Many(words) => words.clone(),
                Tokens::Few(list) => bitset(list, self.vocabulary.size()),
            }
        })
    }

    /// The tokens that contain whole values.
    pub(crate) fn value_tokens(&self) -> &ValueTokens {
        &self.whole
    }

    /// The order in which tokens are tried.
    pub(crate) fn token_order(&self) -> &TokenOrder {
        self.order.get_or_init(|| TokenOrder::of(&self.vocabulary))
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What indexes share.
    pub(crate) fn tries(&self) -> &Tries {
        &self.tries
    }

    /// All ordinary tokens with more than so many characters, and perhaps some with fewer.
    pub(crate) fn long_tokens(&self, characters: u32) -> &NumberedTrie {
        let power = characters.max(1).ilog2();
        self.long[power as usize].get_or_init(|| {
            let tokens = self.bytes.longer_than(1 << power);
            NumberedTrie::build(tokens.map(|token| (self.vocabulary.bytes(TokenId(token)), token)))
        })
    }

    /// Whether some token below a node of the vocabulary's trie goes on with a quote.
    #[inline]
    pub(crate) fn is_before_quote(&self, node: TrieNode) -> bool {
        self.bytes.below(node) & bytes::class(b'"') != 0
    }

    /// All bits of two bitsets.
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

    /// These tokens as a bitset. Equal bitsets are one, up to some number of them.
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

    /// A bitset and these tokens.
    pub(crate) fn with_more(&self, base: &Words, tokens: &[u32]) -> Words {
        // Tokens come in the order of a walk, which may differ from grammar to grammar.
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

    /// The automaton as this vocabulary reads it.
    pub(crate) fn bind(&self, automaton: &Arc<Automaton>) -> Arc<BoundAutomaton> {
        let address = Arc::as_ptr(automaton).addr();
        if let Some(found) = self.automata.read().get(&address) {
            return found.clone();
        }
        self.automata.add(address, Arc::new(BoundAutomaton::new(automaton.clone())), Arc::clone)
    }
}

/// What is known of a state; states that no token tells apart share it ([`super::token_equivalence`]). PERF: tables of patterns have thousands of states,
/// of which few are ever asked for; with the entries in place, making room for them took a tenth of compiling.
pub(super) type Slot = OnceLock<Arc<LeafTokens>>;

/// An automaton with what is known of each state that was asked for.
#[derive(Debug)]
pub(crate) struct BoundAutomaton {
    automaton: Arc<Automaton>,
    entries: Box<[Slot]>,
    /// The same where there is room for any token.
    free: Box<[Slot]>,
    distances: OnceLock<DeathDistances>,
    /// See [`Self::reach`].
    reach: OnceLock<u32>,
    safe_chars: Mutex<SafeChars>,
    equivalences: Mutex<Equivalences>,
    /// Entries for parts of tries.
    parts: Store<TriePart>,
    /// What tokens do, for those who look for a shortest path: whole tokens, and tokens of which only the first byte is written, as those are many.
    moves: ClearingMap<(LeafState, TrieNode), Arc<LeafMoves>>,
    /// Tokens that leave strings open, with [`AMPLE_VALUES`] or more behind them; for those who look whether values run out.
    ample: ClearingMap<LeafState, Words>,
    texts: OnceLock<Texts>,
    measured: Measured,
}

/// So many values are more than a scope has seen, nearly always.
pub(crate) const AMPLE_VALUES: u32 = 1 << 24;

/// The number of a trie, a node of it, and a state.
type PartKey = (u32, TrieNode, LeafState);

/// The tokens below a node of a trie, in a state.
#[derive(Debug)]
struct TriePart {
    key: PartKey,
    /// Boxed, because most parts are asked for once or twice and never read.
    entry: OnceLock<Box<LeafTokens>>,
    wanted: Wanted,
}

/// How often somebody would have liked to know what tokens do in a state. To find that out takes some four times as long as a walk from the
/// state and what follows it in one place; so it is done when it was wanted for the fourth time, or for the second where tokens are many.
#[derive(Debug, Default)]
struct Wanted(AtomicU8);

impl Wanted {
    fn is_enough(&self, times: u8) -> bool {
        let before = self.0.load(Ordering::Relaxed);
        if before + 1 < times {
            self.0.store(before + 1, Ordering::Relaxed);
        }
        before + 1 >= times
    }
}

/// How many bytes an automaton reads of any token at most, from whatever state, if that is quickly found out: in numbers there are few
/// tokens, and in strings nearly all.
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

/// So many steps are made for it.
const READING_STEPS: usize = 50_000;

/// What an automaton held when it was last measured, and whether it was used since. PERF: a library has thousands of automata, few of
/// which grow between two measurements, and measuring one walks over all its entries.
#[derive(Debug)]
struct Measured {
    bytes: AtomicUsize,
    is_old: AtomicBool,
}

impl Measured {
    #[inline]
    fn used(&self) {
        // A store by every matcher at every step would move the line from core to core.
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

    /// An automaton of which these entries are known; there is a place for each state.
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
            moves: ClearingMap::new([], MOVES),
            ample: ClearingMap::new([], KEPT),
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

    /// The tokens below a node of a trie with this number.
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

    /// The same, if they are known already, or are wanted for the n-th time.
    pub(crate) fn entry_below_if_worth(
        &self,
        state: LeafState,
        trie: &Trie,
        number: u32,
        node: TrieNode,
        times: u8,
        library: &Library,
    ) -> Option<&LeafTokens> {
        let part = self.part((number, node, state));
        let is_worth = part.entry.get().is_some() || part.wanted.is_enough(times);
        is_worth.then(|| self.part_entry(part, trie, library))
    }

    fn part_entry<'p>(&self, part: &'p TriePart, trie: &Trie, library: &Library) -> &'p LeafTokens {
        let (number, node, state) = part.key;
        part.entry.get_or_init(|| {
            // Only of the vocabulary's trie it is known what comes below, and characters are not counted from a node.
            let is_known = number == 0 && !self.automaton.counts();
            let mut safe_chars = is_known.then(|| self.safe_chars());
            let known = safe_chars.as_deref_mut().map(|safe_chars| Known::below(&library.bytes, safe_chars));
            LeafTokens::below(&self.automaton, state, trie, node, known).into()
        })
    }

    fn part(&self, key: PartKey) -> &TriePart {
        self.measured.used();
        let hash = |key: &PartKey| FxBuildHasher.hash_one(key);
        let make = || TriePart { key, entry: OnceLock::new(), wanted: Wanted::default() };
        let found = self.parts.intern(hash(&key), |part| part.key == key, |part| hash(&part.key), make);
        self.parts.get(found)
    }

    /// The whole vocabulary in a state.
    pub(crate) fn entry(&self, state: LeafState, library: &Library) -> &LeafTokens {
        self.measured.used();
        self.entries[state.index()].get_or_init(|| {
            let (automaton, trie) = (&*self.automaton, library.vocabulary.trie());
            self.equivalent(&self.entries, true, state, library).unwrap_or_else(|| {
                LeafTokens::new(automaton, &mut self.safe_chars(), state, trie, &library.bytes).into()
            })
        })
    }

    /// What tokens do from a state, below a node of the vocabulary's trie.
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

    /// How many values lead on from the states, if they are of JSON strings.
    pub(crate) fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| Texts::of(&self.automaton))
    }

    /// The tokens that leave a string open in which [`AMPLE_VALUES`] or more lead on, from a state.
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

    /// No token begins more units.
    pub(super) fn reach(&self, vocabulary: &Vocabulary) -> u32 {
        *self.reach.get_or_init(|| {
            let longest = vocabulary.max_token_bytes() as u32;
            longest_reading(&self.automaton, vocabulary.trie()).unwrap_or(longest)
        })
    }

    /// Whether little is read from a state.
    pub(super) fn is_narrow(&self, state: LeafState) -> bool {
        self.automaton.live(state).len() < tuning().loop_kinds as usize
    }

    /// Characters of which every text keeps the automaton alive, from a state between two of them; if they are not many, `None`.
    pub(super) fn endless(&self, state: LeafState) -> Option<Kinds> {
        self.safe_chars().endless(&self.automaton, state).map(|endless| endless.kinds)
    }

    fn safe_chars(&self) -> MutexGuard<'_, SafeChars> {
        self.safe_chars.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, in these places, of a state that no token tells apart from this one.
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

    /// The same where there is room for any token.
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

/// A string table that takes the bytes of tokens, as long as it is left open.
struct Ample<'r> {
    automaton: &'r Automaton,
    /// How many values lead on from each state.
    values: &'r [u32],
    /// The tokens behind which [`AMPLE_VALUES`] or more do.
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
