//! The effect of every token in one state of a leaf, computed once and shared by all grammars.
//!
//! Take a state of a leaf and read a token from it, byte by byte. If the leaf is still alive at the token's end, the
//! token is *inner*: it is allowed, no matter what follows the leaf. Otherwise there is a first byte on which the leaf
//! dies. Then the token is allowed only if the leaf may end right there and the rest of the token, its *suffix*, can
//! begin what follows:
//!
//! ```text
//!   state: inside a JSON string        token  hello      inner
//!                                      token  o", "      dies on the comma; the rest is  , "
//! ```
//! (The leaf may also end *before* it has to. That matters only if what follows can begin with a byte that the leaf
//! could also take. [`crate::leaf::Automaton::open`] lists those bytes; where the two sets overlap, the plain walk is
//! used instead.)
//!
//! Most tokens are inner, and suffixes repeat: the 1,301 tokens of Llama 3.1 that contain a closing quote have 576
//! distinct ones. So a mask is one shared bitset and a short walk over a small trie of suffixes.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use maskwright_automata::ByteSet;
use maskwright_vocab::{Trie, TrieNode};
use smallvec::SmallVec;

use super::bitset::{Words, set_bits};
use super::bytes::{Bytes, GroupedKinds, Kinds, begins_character};
use super::reader::{self, Next, Reader, Visited};
use super::safe_chars::{SafeChars, first};
use crate::leaf::{Action, Automaton, LeafState};
use crate::tuning::{FastPath, may_take, tuning};

/// The tokens, read from one state of one leaf.
#[derive(Debug)]
pub(crate) struct LeafTokens {
    /// The tokens made of the characters on which the state has a loop, if there are enough such characters.
    pub(super) run: Option<Run>,
    /// The other inner tokens, ascending by their units: those that they begin, and those that must begin after them.
    pub(super) inner: Box<[u32]>,
    /// For each `k`, the end of the tokens with at most `k` units in `inner`.
    pub(super) inner_ends: Box<[u32]>,
    /// For each `k`, all inner tokens with at most `k` units, as a bitset. The last one contains all inner tokens.
    pub(super) bitsets: Box<[OnceLock<Words>]>,
    /// The tokens whose last byte closes a counted part, with their units, ascending by units.
    pub(super) closing: Box<[(u32, u32)]>,
    /// All inner and all closing tokens: those that are allowed no matter what follows, if units do not matter.
    pub(super) unbounded: OnceLock<Words>,
    pub(crate) boundaries: Boundaries,
}

/// Tokens that consist of characters on which a state has a loop.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) words: Words,
    /// Whether each character is a unit.
    pub(super) counts: bool,
    /// The units that must begin after them.
    pub(super) tail: u32,
}

/// Some tokens, as a bitset or a list.
pub(crate) enum Tokens<'e> {
    Many(&'e Words),
    Few(&'e [u32]),
}

/// The places in tokens where they leave the leaf.
#[derive(Debug, Default)]
pub(crate) struct Boundaries {
    /// The nodes of the trie at which the leaf can end, with the units begun before.
    nodes: Vec<(TrieNode, u32)>,
    /// The bytes with which tokens continue after these nodes.
    bytes: ByteSet,
    /// The suffixes by their first byte.
    suffixes: OnceLock<Box<[OnceLock<Suffixes>]>>,
}

/// A trie with a unique number, by which caches refer to it. The vocabulary's trie has number 0.
#[derive(Debug)]
pub(crate) struct NumberedTrie {
    pub(crate) trie: Trie,
    pub(crate) number: u32,
}

impl NumberedTrie {
    pub(super) fn build<'r>(entries: impl Iterator<Item = (&'r [u8], u32)>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self { trie: Trie::build(entries), number: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

/// The suffixes that begin with one byte.
#[derive(Debug)]
enum Suffixes {
    /// As separate tries, in which equal suffixes of different tokens are merged.
    Tries(Box<SuffixTries>),
    /// The nodes that the byte leads to in the trie that was read, with the units begun before, ascending. Used where
    /// there are a few large subtrees, as after a space: copying them would cost more than it saves.
    Nodes(Box<[(TrieNode, u32)]>),
}

/// Some of the suffixes that begin with one byte.
pub(crate) enum SuffixSource<'e> {
    /// A trie in which the byte is the only child of the root.
    Trie(&'e NumberedTrie),
    /// The tokens at and below a node of the trie that was read, which the byte leads to.
    Below(TrieNode),
}

#[derive(Debug)]
struct SuffixTries {
    all: NumberedTrie,
    /// The least and the greatest number of units begun before them.
    units: (u32, u32),
    /// The suffixes by number of units, ascending. Computed when some of them have too few or too many.
    by_units: OnceLock<Box<[(u32, NumberedTrie)]>>,
}

/// A suffix during collection: a range of the common text, and its token.
struct Suffix {
    units: u32,
    start: usize,
    end: usize,
    token: u32,
}

/// Suffixes, and the text that contains them.
struct Gathered {
    text: Vec<u8>,
    suffixes: Vec<Suffix>,
}

impl Gathered {
    fn build(&self, suffixes: &[Suffix]) -> NumberedTrie {
        NumberedTrie::build(suffixes.iter().map(|rest| (&self.text[rest.start..rest.end], rest.token)))
    }

    fn all(self) -> SuffixTries {
        let units = || self.suffixes.iter().map(|rest| rest.units);
        let units = (units().min().unwrap_or(0), units().max().unwrap_or(0));
        SuffixTries { all: self.build(&self.suffixes), units, by_units: OnceLock::new() }
    }

    fn by_units(mut self) -> Box<[(u32, NumberedTrie)]> {
        self.suffixes.sort_by_key(|rest| rest.units);
        let groups = self.suffixes.chunk_by(|a, b| a.units == b.units);
        groups.map(|group| (group[0].units, self.build(group))).collect()
    }
}

/// The state of the leaf after a node.
struct WalkState {
    node: TrieNode,
    state: LeafState,
    units: u32,
    /// The number of characters that have begun.
    characters: u32,
    /// Whether a counted part has been closed.
    closed: bool,
    /// Whether all characters so far are known to be allowed.
    looping: bool,
    /// Whether the leaf may end here and no boundary has been recorded for this node yet.
    may_end: bool,
}

/// Receives what is found while tokens are read.
pub(super) trait Found {
    /// Takes the tokens of a node, with the state there, the units begun, and whether a counted part was closed.
    fn at(&mut self, tokens: &[u32], state: LeafState, units: u32, closed: bool);
    /// Takes all tokens below a node, none of which leaves the leaf. `characters` have begun up to the node.
    fn below(&mut self, node: &Visited<'_>, state: LeafState, units: u32, characters: u32);
}

/// What is known of a whole vocabulary, so that parts of it need not be read.
pub(super) struct Known<'b> {
    pub(super) bytes: &'b Bytes,
    pub(super) safe_chars: &'b mut SafeChars,
    /// Tokens of these characters, up to `longest` of them, are known to be inner and are not reported.
    pub(super) kinds: Kinds,
    pub(super) longest: usize,
    /// Characters on which such tokens die without a suffix.
    pub(super) dead: Kinds,
    /// The number of characters that begin on the path to the node below which tokens are read.
    pub(super) before: u32,
}

impl<'b> Known<'b> {
    /// For a part of the vocabulary: nothing is known, all tokens are reported. `before` characters begin on the path
    /// to its node.
    pub(super) fn below(bytes: &'b Bytes, safe_chars: &'b mut SafeChars, before: u32) -> Self {
        let (kinds, dead) = (Kinds::default(), Kinds::default());
        Self { bytes, safe_chars, kinds, longest: usize::MAX, dead, before }
    }

    /// Checks whether all tokens below a node stay in the state. The node must be between two characters.
    #[inline]
    fn stays(&mut self, automaton: &Automaton, state: LeafState, node: TrieNode) -> bool {
        self.bytes.has_only(node, self.safe_chars.loops(automaton, state))
    }
}

/// Reads every token below a node of a trie from `state`, as far as the leaf is alive. For the vocabulary's trie,
/// tokens that are `known` are skipped.
pub(super) fn read(
    automaton: &Automaton,
    state: LeafState,
    trie: &Trie,
    from: TrieNode,
    known: Option<Known<'_>>,
    found: &mut impl Found,
) -> Boundaries {
    let (first, longest) = known.as_ref().map_or((Kinds::default(), 0), |known| (known.kinds, known.longest));
    let passed_by = known.as_ref().map_or(first, |known| first.or(known.dead));
    let start = WalkState {
        node: from,
        state,
        units: 0,
        characters: known.as_ref().map_or(0, |known| known.before),
        closed: false,
        looping: !first.is_empty(),
        may_end: false,
    };
    let mut reader = LeafReader {
        automaton,
        trie,
        known,
        longest,
        passed_by: passed_by.into(),
        // Including continuation bytes.
        known_bytes: first.leads().chain(0x80..0xC0).collect(),
        boundaries: Boundaries::default(),
        found,
    };
    reader::read(trie, from, start, &mut reader);
    reader.boundaries
}

/// A leaf that takes the bytes of tokens.
struct LeafReader<'r, F> {
    automaton: &'r Automaton,
    trie: &'r Trie,
    known: Option<Known<'r>>,
    /// The greatest number of characters of a token that is known.
    longest: usize,
    passed_by: GroupedKinds,
    known_bytes: ByteSet,
    boundaries: Boundaries,
    found: &'r mut F,
}

impl<F: Found> Reader for LeafReader<'_, F> {
    type State = WalkState;

    #[inline]
    fn take(&mut self, before: &mut WalkState, node: &Visited<'_>) -> Next<WalkState> {
        let (automaton, longest) = (self.automaton, self.longest);
        let step = automaton.step(before.state, node.byte);
        if step.is_dead() {
            if before.may_end {
                before.may_end = false;
                let live = automaton.live(before.state);
                let dead = self.trie.child_bytes(before.node).iter().filter(|&&byte| !live.contains(byte));
                self.boundaries.add(before.node, before.units, dead);
            }
            return Next::Past;
        }
        let state = step.target();
        let units = before.units + u32::from(step.action() == Action::Unit);
        let closed = before.closed || step.action() == Action::Close;
        let characters = before.characters + u32::from(begins_character(node.byte));
        let looping = before.looping
            && self.known_bytes.contains(node.byte)
            && characters as usize <= longest
            && self.known.as_ref().is_some_and(|known| known.bytes.is_text(node.node));
        if !looping {
            node.tokens(|tokens| self.found.at(tokens, state, units, closed));
        }
        if node.children.is_empty() {
            return Next::Past;
        }
        if !closed && let Some(known) = &mut self.known {
            let fits = || {
                longest == usize::MAX
                    || characters as usize + usize::from(known.bytes.height(node.node)) <= longest
            };
            if looping {
                if known.bytes.has_only(node.node, &self.passed_by) && fits() {
                    return Next::Past;
                }
            } else if known.bytes.is_between(node.node) && known.stays(automaton, state, node.node) {
                self.found.below(node, state, units, characters);
                return Next::Past;
            }
        }
        let may_end = automaton.is_accepting(state);
        Next::Below(WalkState { node: node.node, state, units, characters, closed, looping, may_end })
    }
}

/// Collects tokens with their units. They are sorted by counting, at the end.
struct Sorter<'b> {
    automaton: &'b Automaton,
    /// Present if the characters of loops are units.
    bytes: Option<&'b Bytes>,
    inner: Vec<u32>,
    /// The units of each inner token.
    units: Vec<u32>,
    closing: Vec<(u32, u32)>,
}

impl Found for Sorter<'_> {
    #[inline]
    fn at(&mut self, tokens: &[u32], state: LeafState, units: u32, closed: bool) {
        if closed {
            self.closing.extend(tokens.iter().map(|&token| (units, token)));
        } else {
            let units = units + self.automaton.tail(state);
            for &token in tokens {
                self.inner.push(token);
                self.units.push(units);
            }
        }
    }

    fn below(&mut self, node: &Visited<'_>, state: LeafState, units: u32, characters: u32) {
        let units = units + self.automaton.tail(state);
        let tokens = node.tokens_below();
        self.inner.extend_from_slice(tokens);
        match self.bytes {
            Some(bytes) => {
                let lengths = bytes.lengths(node.positions_below());
                self.units.extend(lengths.iter().map(|&length| units + u32::from(length) - characters));
            }
            None => self.units.resize(self.inner.len(), units),
        }
    }
}

impl Sorter<'_> {
    /// Returns the inner tokens in ascending order of units, and for each number of units where the tokens with at most
    /// this many end.
    fn sorted(inner: Vec<u32>, units: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let most = units.iter().copied().max().unwrap_or(0) as usize;
        let mut ends = vec![0u32; most + 2];
        // PERF: most leaves count nothing, so there is nothing to sort.
        if units.iter().all(|&units| units as usize == most) {
            ends.truncate(most + 1);
            ends[most] = inner.len() as u32;
            return (inner, ends);
        }
        for &units in units {
            ends[units as usize + 1] += 1;
        }
        for bucket in 0..=most {
            ends[bucket + 1] += ends[bucket];
        }
        let mut sorted = vec![0; inner.len()];
        for (token, &units) in inner.into_iter().zip(units) {
            sorted[ends[units as usize] as usize] = token;
            ends[units as usize] += 1;
        }
        // Each bucket's entry has moved to its end, so the last one counts everything.
        ends.truncate(most + 1);
        (sorted, ends)
    }
}

impl LeafTokens {
    /// Reads a whole vocabulary. Tokens that stay in the state's loop are known without reading them.
    pub(crate) fn new(
        automaton: &Automaton,
        safe_chars: &mut SafeChars,
        state: LeafState,
        trie: &Trie,
        bytes: &Bytes,
    ) -> Self {
        let counts = automaton.counts();
        let kinds = safe_chars.loops(automaton, state).kinds;
        let kinds = if kinds.len() >= tuning().loop_kinds { kinds } else { Kinds::default() };
        // Nothing can end inside a string, so tokens that die there have no suffix. After characters of the loop, a
        // token dies on the same characters as in the state itself.
        let dead = if automaton.is_string() {
            Kinds::ALL.without(first(automaton, state))
        } else {
            Kinds::default()
        };
        let known = Known { bytes, safe_chars, kinds, longest: usize::MAX, dead, before: 0 };
        let mut entry = Self::below(automaton, state, trie, Trie::ROOT, Some(known));
        if kinds.is_empty() {
            return entry;
        }
        let tail = automaton.tail(state);
        entry.run = Some(Run { words: bytes.of_kinds(kinds).into(), counts, tail });
        // One bitset for each number of units that distinguishes tokens.
        let most = tail as usize + if counts { bytes.longest() } else { 0 };
        let last = entry.inner_ends[entry.inner_ends.len() - 1];
        let mut ends = core::mem::take(&mut entry.inner_ends).into_vec();
        ends.resize(ends.len().max(most + 1), last);
        entry.bitsets = ends.iter().map(|_| OnceLock::new()).collect();
        entry.inner_ends = ends.into();
        entry
    }

    /// Reads the tokens below a node.
    pub(super) fn below(
        automaton: &Automaton,
        state: LeafState,
        trie: &Trie,
        from: TrieNode,
        known: Option<Known<'_>>,
    ) -> Self {
        let bytes = known.as_ref().map(|known| known.bytes).filter(|_| automaton.counts());
        let mut found =
            Sorter { automaton, bytes, inner: Vec::new(), units: Vec::new(), closing: Vec::new() };
        if automaton.live(state).len() >= tuning().loop_kinds as usize {
            let most = trie.positions_below(from).len();
            found.inner.reserve(most);
            found.units.reserve(most);
        }
        let boundaries = read(automaton, state, trie, from, known, &mut found);
        let Sorter { inner, units, mut closing, .. } = found;
        closing.sort_unstable();
        let (inner, ends) = Sorter::sorted(inner, &units);
        Self {
            run: None,
            bitsets: ends.iter().map(|_| OnceLock::new()).collect(),
            inner_ends: ends.into(),
            inner: inner.into(),
            closing: closing.into(),
            unbounded: OnceLock::new(),
            boundaries,
        }
    }

    /// Creates the entry of a state with room for any token ([`super::unbounded`]), from inner tokens as a bitset
    /// (`run`), further inner tokens, and closing tokens with their units.
    pub(crate) fn free(
        run: Option<Vec<u32>>,
        inner: Vec<u32>,
        mut closing: Vec<(u32, u32)>,
        boundaries: Boundaries,
        bytes: &Bytes,
    ) -> Self {
        let is_wide = run.is_some() || inner.len() >= tuning().bitset_tokens;
        closing.sort_unstable();
        let unbounded = if is_wide {
            let mut words = run.unwrap_or_else(|| vec![0; bytes.words()]);
            set_bits(&mut words, &inner);
            set_closing(&mut words, &closing);
            OnceLock::from(Words::from(words))
        } else {
            OnceLock::new()
        };
        let inner = if is_wide { Vec::new() } else { inner };
        Self {
            run: None,
            inner_ends: [inner.len() as u32].into(),
            inner: inner.into(),
            bitsets: [OnceLock::new()].into(),
            closing: closing.into(),
            unbounded,
            boundaries,
        }
    }

    /// Returns the inner tokens with at most `room` units.
    pub(crate) fn inner(&self, room: u32, bytes: &Bytes) -> Tokens<'_> {
        let at = (room as usize).min(self.inner_ends.len() - 1);
        let few = &self.inner[..self.inner_ends[at] as usize];
        if self.run.is_none() && few.len() < tuning().bitset_tokens && self.free_words().is_none() {
            Tokens::Few(few)
        } else {
            Tokens::Many(self.bitset_at(at, bytes))
        }
    }

    /// Like [`Self::inner`], as a list. Only for an entry that was read below a node.
    pub(crate) fn list(&self, room: u32) -> &[u32] {
        let at = (room as usize).min(self.inner_ends.len() - 1);
        &self.inner[..self.inner_ends[at] as usize]
    }

    /// Returns the inner and the closing tokens as one bitset, if there are many.
    pub(crate) fn unbounded(&self, bytes: &Bytes) -> Option<&Words> {
        if let Some(words) = self.unbounded.get() {
            return Some(words);
        }
        let many = self.run.is_some() || self.inner.len() >= tuning().bitset_tokens;
        many.then(|| {
            self.unbounded.get_or_init(|| {
                let inner = self.bitset_at(self.bitsets.len() - 1, bytes);
                if self.closing.is_empty() {
                    return inner.clone();
                }
                let mut words = inner.to_vec();
                set_closing(&mut words, &self.closing);
                words.into()
            })
        })
    }

    /// Returns the bitset of all tokens, if the entry is that of a state with room for any token and has many.
    fn free_words(&self) -> Option<&Words> {
        if self.run.is_none() && self.inner.is_empty() { self.unbounded.get() } else { None }
    }

    fn bitset_at(&self, at: usize, bytes: &Bytes) -> &Words {
        self.bitsets[at].get_or_init(|| {
            if let Some(words) = self.free_words() {
                if self.closing.is_empty() {
                    return words.clone();
                }
                let mut words = words.to_vec();
                for &(_, token) in &self.closing {
                    words[token as usize / 32] &= !(1 << (token % 32));
                }
                return words.into();
            }
            let inside = &self.inner[..self.inner_ends[at] as usize];
            let mut words = match &self.run {
                Some(run) if run.tail as usize > at => vec![0; bytes.words()],
                Some(run) if run.counts => bytes.no_longer(&run.words, at - run.tail as usize),
                Some(run) if inside.is_empty() => return run.words.clone(),
                Some(run) => run.words.to_vec(),
                None => vec![0; bytes.words()],
            };
            set_bits(&mut words, inside);
            words.into()
        })
    }

    /// Builds the bitsets for small numbers of units in advance, because they take the longest.
    pub(crate) fn prepare(&self, bytes: &Bytes) {
        for room in 0..self.bitsets.len().min(tuning().prepared_units) {
            self.inner(room as u32, bytes);
        }
        self.unbounded(bytes);
    }

    /// Returns the tokens whose last byte closes the counted part after `need` to `room` units.
    pub(crate) fn closing(&self, need: u32, room: u32) -> impl Iterator<Item = u32> {
        let from = self.closing.partition_point(|&(units, _)| units < need);
        self.closing[from..].iter().take_while(move |&&(units, _)| units <= room).map(|&(_, token)| token)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let run = self.run.iter().map(|run| &run.words);
        let bitsets = self.bitsets.iter().chain([&self.unbounded]).filter_map(OnceLock::get).chain(run);
        // Some of them are shared.
        let mut bitsets: SmallVec<[&Words; 8]> = bitsets.collect();
        bitsets.sort_unstable_by_key(|words| words.as_ptr());
        bitsets.dedup_by_key(|words| words.as_ptr());
        let bitsets = bitsets.into_iter();
        (self.inner.len() + self.inner_ends.len()) * 4
            + size_of_val(&*self.bitsets)
            + self.closing.len() * 8
            + bitsets.map(|words| words.len() * 4).sum::<usize>()
            + self.boundaries.heap_bytes()
    }
}

impl Boundaries {
    /// Returns the nodes and the bytes after them, from which everything else is derived.
    pub(super) fn parts(&self) -> (&[(TrieNode, u32)], &ByteSet) {
        (&self.nodes, &self.bytes)
    }

    pub(super) fn from_parts(nodes: Vec<(TrieNode, u32)>, bytes: ByteSet) -> Self {
        Self { nodes, bytes, suffixes: OnceLock::new() }
    }

    /// Adds a node at which the leaf ends, if there are bytes after it.
    pub(crate) fn add<'b>(&mut self, node: TrieNode, units: u32, bytes: impl IntoIterator<Item = &'b u8>) {
        let mut bytes = bytes.into_iter().peekable();
        if bytes.peek().is_some() {
            self.nodes.push((node, units));
            bytes.for_each(|&byte| self.bytes.insert(byte));
        }
    }

    /// Returns the bytes that suffixes can begin with.
    #[inline]
    pub(crate) fn bytes(&self) -> &ByteSet {
        &self.bytes
    }

    /// Returns the suffixes that begin with `byte`, for boundaries after `need` to `room` units.
    pub(crate) fn suffixes<'e>(
        &'e self,
        byte: u8,
        need: u32,
        room: u32,
        trie: &Trie,
    ) -> impl Iterator<Item = SuffixSource<'e>> {
        let by_byte = self.suffixes.get_or_init(|| (0..256).map(|_| OnceLock::new()).collect());
        let (tries, nodes) = match by_byte[byte as usize].get_or_init(|| self.find_suffixes(byte, trie)) {
            Suffixes::Tries(tries) => (Some(tries), &[][..]),
            Suffixes::Nodes(nodes) => (None, &**nodes),
        };
        let nodes = nodes.iter().filter(move |(_, units)| (need..=room).contains(units));
        let tries =
            tries.into_iter().flat_map(move |suffixes| self.some_suffixes(suffixes, byte, need, room, trie));
        tries.map(SuffixSource::Trie).chain(nodes.map(|&(node, _)| SuffixSource::Below(node)))
    }

    fn find_suffixes(&self, byte: u8, trie: &Trie) -> Suffixes {
        let nodes = || self.nodes.iter().filter_map(|&(exit, units)| Some((trie.child(exit, byte)?, units)));
        let (mut count, mut tokens) = (0, 0);
        for (node, _) in nodes() {
            count += 1;
            tokens += trie.positions_below(node).len();
        }
        let are_many = tokens >= tuning().suffixes_per_node.saturating_mul(count);
        if tokens > 0 && (are_many || !may_take(FastPath::SuffixTries)) {
            Suffixes::Nodes(nodes().collect())
        } else {
            Suffixes::Tries(Box::new(self.gather(byte, trie).all()))
        }
    }

    fn some_suffixes<'e>(
        &'e self,
        suffixes: &'e SuffixTries,
        byte: u8,
        need: u32,
        room: u32,
        trie: &Trie,
    ) -> impl Iterator<Item = &'e NumberedTrie> + use<'e> {
        let (fewest, most) = suffixes.units;
        let all = (need <= fewest && most <= room).then_some(&suffixes.all);
        let some = if all.is_some() || most < need || room < fewest {
            &[][..]
        } else {
            suffixes.by_units.get_or_init(|| self.gather(byte, trie).by_units())
        };
        let some = some.iter().filter(move |(units, _)| (need..=room).contains(units)).map(|(_, trie)| trie);
        all.into_iter().filter(|suffixes| suffixes.trie.len() > 1).chain(some)
    }

    /// Collects the suffixes that begin with a byte, from the trie that was read.
    fn gather(&self, byte: u8, trie: &Trie) -> Gathered {
        // PERF: all suffixes are in one buffer; there may be thousands.
        let (mut text, mut path) = (Vec::new(), Vec::new());
        let mut found: Vec<Suffix> = Vec::new();
        let mut work = Vec::new();
        for &(exit, units) in &self.nodes {
            let Some(child) = trie.child(exit, byte) else { continue };
            work.push((child, 1usize));
            while let Some((node, depth)) = work.pop() {
                path.truncate(depth - 1);
                path.push(trie.byte(node));
                let tokens = trie.tokens(node);
                if !tokens.is_empty() {
                    let start = text.len();
                    text.extend_from_slice(&path);
                    let rest = |&token: &u32| Suffix { units, start, end: start + depth, token };
                    found.extend(tokens.iter().map(rest));
                }
                work.extend(trie.children(node).map(|child| (child, depth + 1)));
            }
        }
        Gathered { text, suffixes: found }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let by_byte = self.suffixes.get().map_or(&[][..], |suffixes| suffixes);
        let suffixes = by_byte.iter().filter_map(OnceLock::get).map(|suffixes| match suffixes {
            Suffixes::Nodes(nodes) => size_of_val(&**nodes),
            Suffixes::Tries(r) => {
                r.all.trie.heap_bytes()
                    + r.by_units
                        .get()
                        .iter()
                        .flat_map(|tries| tries.iter())
                        .map(|(_, r)| r.trie.heap_bytes() + size_of::<(u32, NumberedTrie)>())
                        .sum::<usize>()
            }
        });
        self.nodes.len() * 8 + suffixes.sum::<usize>() + size_of_val(by_byte)
    }
}

/// Adds tokens with their units to a bitset.
fn set_closing(words: &mut [u32], closing: &[(u32, u32)]) {
    for &(_, token) in closing {
        words[token as usize / 32] |= 1 << (token % 32);
    }
}

#[cfg(test)]
mod tests {
    use maskwright_automata::{Dfa, Exprs, Limits};
    use maskwright_vocab::{TokenId, Vocabulary, VocabularyBuilder};

    use super::*;
    use crate::library::ones;

    fn vocabulary() -> Vocabulary {
        let texts = [
            "a", "abc", "été", " ", " a", " ab", " abc", " abcd", " été", " é", " of the", " x,", " x,y",
            "  a", ",", ", a", "-",
        ];
        let mut builder = VocabularyBuilder::new();
        // Enough words after one space for a bitset.
        let words = (0..200).map(|n| {
            format!(" w{}", "abcdefgh".repeat(n / 26) + &char::from(b'a' + (n % 26) as u8).to_string())
        });
        for (id, text) in (0..).zip(texts.map(String::from).into_iter().chain(words)) {
            builder.token(TokenId(id), text.as_bytes()).expect("it is new");
        }
        builder.token(TokenId(500), b" \xC3").expect("it is new");
        builder.finish().expect("it is right")
    }

    /// `[a-zé]+`, and `[a-zé]*` with letters as units.
    fn automata() -> [Automaton; 2] {
        let mut e = Exprs::new();
        let letter = e.chars([('a', 'z'), ('é', 'é')]);
        let (some, any) = (e.repeat(letter, 1, None), e.repeat(letter, 0, None));
        let mut build = |root| Dfa::build(&mut e, root, &Limits::default()).expect("it is small");
        [Automaton::from_dfa(&build(some)), Automaton::units(&build(any))]
    }

    #[test]
    fn what_is_known_of_a_vocabulary_is_what_is_read_in_it() {
        let vocabulary = vocabulary();
        let (trie, bytes) = (vocabulary.trie(), Bytes::of(&vocabulary));
        for automaton in automata() {
            for state in [automaton.start(), automaton.step(automaton.start(), b'a').target()] {
                let read = LeafTokens::below(&automaton, state, trie, Trie::ROOT, None);
                let known = LeafTokens::new(&automaton, &mut SafeChars::default(), state, trie, &bytes);
                for units in 0..100 {
                    let mut list = read.list(units).to_vec();
                    list.sort_unstable();
                    let mut inner: Vec<u32> = match known.inner(units, &bytes) {
                        Tokens::Few(few) => few.to_vec(),
                        Tokens::Many(words) => ones(words.iter().copied()).collect(),
                    };
                    inner.sort_unstable();
                    assert_eq!(list, inner, "in {state:?}, {units} units");
                }
                assert_eq!(
                    (&read.closing, read.boundaries.parts()),
                    (&known.closing, known.boundaries.parts())
                );
            }
        }
    }
}
