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
}

/// How many automata are kept. Beyond it everything is forgotten; programs in use keep what they have.
const KEPT: usize = 4_096;

impl Library {
    /// An empty library, but for what every JSON document needs.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        let library = Self { vocabulary, automata: RwLock::default(), below: RwLock::default() };
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
        automata.values().map(|bound| bound.heap_bytes()).sum()
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
