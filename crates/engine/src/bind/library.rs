//! Everything that grammars share about one vocabulary.

use core::hash::BuildHasher;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use maskwright_vocab::{Trie, Vocabulary};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::entry::{Entry, Words};
use crate::leaf::{Automaton, JSON_BODY, json_string};
use crate::store::Store;

/// A vocabulary and what has been found out about leaves read with it. Make one for each tokenizer of a process
/// and bind all programs to it: what one grammar paid for, the others get for nothing.
#[derive(Debug)]
pub struct Library {
    vocabulary: Arc<Vocabulary>,
    /// By the address of the automaton, which the entry keeps alive.
    automata: RwLock<FxHashMap<usize, Arc<BoundAutomaton>>>,
    /// The tokens at and below nodes of the vocabulary's trie.
    below: RwLock<FxHashMap<u32, Words>>,
    /// Unions of two bitsets, by their addresses.
    unions: RwLock<FxHashMap<(usize, usize), Union>>,
    /// A bit for each node of the vocabulary's trie: whether some token below it goes on with a quote.
    quotes: Box<[u64]>,
}

/// Two bitsets, kept so that their addresses stay theirs, and what is in either.
#[derive(Debug)]
struct Union {
    _of: (Words, Words),
    words: Words,
}

/// How many automata are kept. Beyond it everything is forgotten; programs in use keep what they have.
const KEPT: usize = 4_096;
/// The same for unions of bitsets.
const UNIONS: usize = 512;

impl Library {
    /// An empty library, but for what every JSON document needs.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        let library = Self {
            quotes: nodes_before(vocabulary.trie(), b'"'),
            vocabulary,
            automata: RwLock::default(),
            below: RwLock::default(),
            unions: RwLock::default(),
        };
        let string = library.bind(json_string());
        for state in 1..json_string().len() as u32 {
            let entry = string.entry(state, &library.vocabulary);
            if state == JSON_BODY {
                entry.prepare(library.vocabulary.size());
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
        let automata = self.automata.read().unwrap_or_else(PoisonError::into_inner);
        let unions = self.unions.read().unwrap_or_else(PoisonError::into_inner);
        automata.values().map(|bound| bound.heap_bytes()).sum::<usize>()
            + unions.values().map(|union| union.words.len() * 4).sum::<usize>()
            + size_of_val(&*self.quotes)
    }

    /// The tokens at and below a node of the vocabulary's trie, ascending.
    pub(crate) fn tokens_below(&self, node: u32) -> Words {
        if let Some(found) = self.below.read().unwrap_or_else(PoisonError::into_inner).get(&node) {
            return found.clone();
        }
        let trie = self.vocabulary.trie();
        let (mut tokens, mut work) = (Vec::new(), vec![node]);
        while let Some(node) = work.pop() {
            tokens.extend_from_slice(trie.tokens(node));
            work.extend(trie.children(node));
        }
        tokens.sort_unstable();
        let tokens = Words::from(tokens);
        let mut below = self.below.write().unwrap_or_else(PoisonError::into_inner);
        if below.len() >= KEPT {
            below.clear();
        }
        below.entry(node).or_insert(tokens).clone()
    }

    /// Whether some token below a node of the vocabulary's trie goes on with a quote.
    #[inline]
    pub(crate) fn is_before_quote(&self, node: u32) -> bool {
        self.quotes[node as usize / 64] >> (node % 64) & 1 == 1
    }

    /// All bits of two bitsets.
    pub(crate) fn union(&self, a: &Words, b: &Words) -> Words {
        let address = |words: &Words| words.as_ptr().addr();
        let (a, b) = if address(a) <= address(b) { (a, b) } else { (b, a) };
        let key = (address(a), address(b));
        if key.0 == key.1 {
            return a.clone();
        }
        if let Some(found) = self.unions.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return found.words.clone();
        }
        let words: Words = a.iter().zip(b.iter()).map(|(a, b)| a | b).collect();
        let mut unions = self.unions.write().unwrap_or_else(PoisonError::into_inner);
        if unions.len() >= UNIONS {
            unions.clear();
        }
        unions.insert(key, Union { _of: (a.clone(), b.clone()), words: words.clone() });
        words
    }

    /// The automaton as this vocabulary reads it.
    pub(crate) fn bind(&self, automaton: &Arc<Automaton>) -> Arc<BoundAutomaton> {
        let address = Arc::as_ptr(automaton).addr();
        if let Some(found) = self.automata.read().unwrap_or_else(PoisonError::into_inner).get(&address) {
            return found.clone();
        }
        let mut automata = self.automata.write().unwrap_or_else(PoisonError::into_inner);
        if automata.len() >= KEPT {
            automata.clear();
        }
        automata.entry(address).or_insert_with(|| Arc::new(BoundAutomaton::new(automaton.clone()))).clone()
    }
}

/// A bit for each node of a trie: whether there is an edge with this byte somewhere below. Children come after
/// their parents, so one pass from the end is enough.
fn nodes_before(trie: &Trie, byte: u8) -> Box<[u64]> {
    let mut bits = vec![0u64; trie.len().div_ceil(64)];
    for node in (0..trie.len() as u32).rev() {
        let is_before =
            |child: u32| trie.byte(child) == byte || bits[child as usize / 64] >> (child % 64) & 1 == 1;
        if trie.children(node).any(is_before) {
            bits[node as usize / 64] |= 1 << (node % 64);
        }
    }
    bits.into()
}

/// An automaton with an [`Entry`] for each state that was asked for.
#[derive(Debug)]
pub(crate) struct BoundAutomaton {
    automaton: Arc<Automaton>,
    entries: Box<[OnceLock<Entry>]>,
    /// Entries for parts of tries: by the number of the trie, the node, and the state.
    parts: Store<((u32, u32, u32), Entry)>,
}

impl BoundAutomaton {
    fn new(automaton: Arc<Automaton>) -> Self {
        let entries = (0..automaton.len()).map(|_| OnceLock::new()).collect();
        Self { automaton, entries, parts: Store::new() }
    }

    /// The same for the tokens below a node of a trie with this number.
    pub(crate) fn entry_below(&self, state: u32, trie: &Trie, number: u32, node: u32) -> &Entry {
        let key = (number, node, state);
        let hash = |key: &(u32, u32, u32)| FxBuildHasher.hash_one(key);
        let make = || (key, Entry::new(&self.automaton, state, trie, node));
        let found = self.parts.intern(hash(&key), |(k, _)| *k == key, |(k, _)| hash(k), make);
        &self.parts.get(found).1
    }

    pub(crate) fn entry(&self, state: u32, vocabulary: &Vocabulary) -> &Entry {
        self.entries[state as usize].get_or_init(|| Entry::new(&self.automaton, state, vocabulary.trie(), 0))
    }

    fn heap_bytes(&self) -> usize {
        let entries = self.entries.iter().filter_map(OnceLock::get).map(Entry::heap_bytes);
        self.automaton.heap_bytes()
            + self.entries.len() * size_of::<OnceLock<Entry>>()
            + entries.sum::<usize>()
            + self.parts.heap_bytes()
            + self.parts.iter().map(|(_, entry)| entry.heap_bytes()).sum::<usize>()
    }
}
