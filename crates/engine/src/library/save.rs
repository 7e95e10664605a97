//! A library on disk: tables of leaves, and what the vocabulary does in their states.
//!
//! This is what takes long to compute and what all constraints share. Programs are not stored: once their tables are
//! known, compiling them again takes a tenth of a millisecond, about as long as reading them would. The body of the
//! file ([`maskwright_vocab::pack`]):
//!
//! ```text
//! fingerprint of the vocabulary
//! automata          the first is that of JSON strings, which every process has
//! tables            for each: what it was made of (the key of the compiler's cache), number of the automaton
//! for each automaton: entries by state, then entries where there is room for any token;
//!                   where states share one, the number of the first of them
//! ```
//! A bitset is stored at its first use; later uses refer to it by number. What can be derived quickly is left out:
//! suffixes, and entries for parts of tries.

use core::fmt;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use maskwright_automata::ByteSet;
use maskwright_vocab::pack::{self, OpenError, Read, Reader, Writer};
use maskwright_vocab::{TrieNode, Vocabulary};
use rustc_hash::FxHashMap;

use super::bitset::Words;
use super::leaf_tokens::{Boundaries, LeafTokens, Run};
use super::shared::{BoundAutomaton, Library, Slot};
use crate::leaf::AutomatonCache;
use crate::leaf::{Automaton, json_string};

const MAGIC: &[u8; 16] = b"maskwright learn";
/// Must be increased with every change of the format, of the automata, of the entries, or of the keys of the compiler's
/// cache.
const VERSION: u32 = 4;

impl Library {
    /// Writes what this library and a cache of tables have learned.
    pub fn save(&self, tables: &AutomatonCache, mut target: impl Write) -> io::Result<()> {
        let mut out = Out { body: Writer::default(), words: FxHashMap::default() };
        out.body.wide(self.vocabulary().fingerprint());
        let mut numbers: FxHashMap<usize, u32> = FxHashMap::default();
        let mut automata: Vec<Arc<Automaton>> = Vec::new();
        let bound = self.bound_automata();
        let kept = tables.entries();
        let used = bound.iter().map(|bound| bound.automaton()).chain(kept.iter().map(|(_, table)| table));
        for automaton in core::iter::once(json_string()).chain(used) {
            numbers.entry(Arc::as_ptr(automaton).addr()).or_insert_with(|| {
                automata.push(automaton.clone());
                automata.len() as u32 - 1
            });
        }
        let number = |automaton: &Arc<Automaton>| numbers[&Arc::as_ptr(automaton).addr()];
        out.body.word(automata.len() as u32);
        for automaton in &automata {
            automaton.write(&mut out.body);
        }
        out.body.word(kept.len() as u32);
        for (key, table) in &kept {
            out.body.bytes(key);
            out.body.word(number(table));
        }
        out.body.word(bound.len() as u32);
        for bound in &bound {
            out.body.word(number(bound.automaton()));
            out.entries(bound.entries());
            out.entries(bound.free_entries());
        }
        target.write_all(&pack::seal(MAGIC, VERSION, &out.body.finish()))
    }

    /// Reads what [`save`](Self::save) wrote for the same vocabulary.
    pub fn load(vocabulary: Arc<Vocabulary>, file: &[u8]) -> Result<(Self, AutomatonCache), LoadError> {
        let body = pack::open(MAGIC, VERSION, file).map_err(LoadError::Open)?;
        let corrupt = |how| LoadError::Open(OpenError::Corrupt(how));
        let mut body = Reader::new(body);
        if body.wide().map_err(corrupt)? != vocabulary.fingerprint() {
            return Err(LoadError::OtherVocabulary);
        }
        let mut file = In { body, words: Vec::new(), vocabulary: &vocabulary };
        let (bound, tables) = file.learned().map_err(corrupt)?;
        Ok((Self::with_automata(vocabulary, bound), tables))
    }
}

/// The reason why a saved library cannot be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is of another kind or version, or damaged.
    Open(OpenError),
    /// The library was saved with another vocabulary.
    OtherVocabulary,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(OpenError::Foreign) => f.write_str("this is not a saved library"),
            Self::Open(OpenError::Version { found }) => write!(
                f,
                "the saved library has format {found}, this program reads format {VERSION}; start without it and save again"
            ),
            Self::Open(OpenError::Corrupt(how)) => {
                write!(f, "the saved library is damaged: {how}; start without it and save again")
            }
            Self::Open(_) => f.write_str("the saved library ends too early; start without it and save again"),
            Self::OtherVocabulary => f.write_str(
                "the library was saved with another vocabulary; start without it, or use the tokenizer it was saved with",
            ),
        }
    }
}

impl core::error::Error for LoadError {}

/// A body that is being written, and the bitsets in it.
struct Out {
    body: Writer,
    /// The numbers of bitsets, by address. The library keeps them alive, so addresses are not reused.
    words: FxHashMap<usize, u32>,
}

impl Out {
    fn entries(&mut self, entries: &[Slot]) {
        let known = || entries.iter().enumerate().filter_map(|(state, entry)| Some((state, entry.get()?)));
        self.body.word(known().count() as u32);
        let mut first: FxHashMap<usize, u32> = FxHashMap::default();
        for (state, entry) in known() {
            self.body.word(state as u32);
            let same = first.get(&Arc::as_ptr(entry).addr()).copied();
            self.body.word(same.unwrap_or(state as u32));
            if same.is_none() {
                first.insert(Arc::as_ptr(entry).addr(), state as u32);
                self.entry(entry);
            }
        }
    }

    fn entry(&mut self, entry: &LeafTokens) {
        self.body.word(u32::from(entry.run.is_some()));
        if let Some(run) = &entry.run {
            self.bitset(Some(&run.words));
            self.body.word(u32::from(run.counts));
            self.body.word(run.tail);
        }
        self.body.words(&entry.inner);
        self.body.words(&entry.inner_ends);
        entry.bitsets.iter().for_each(|words| self.bitset(words.get()));
        self.pairs(&entry.closing);
        self.bitset(entry.unbounded.get());
        let (nodes, bytes) = entry.boundaries.parts();
        self.pairs(&nodes.iter().map(|&(node, units)| (node.number(), units)).collect::<Vec<_>>());
        self.body.bytes(&bytes.iter().collect::<Vec<u8>>());
    }

    fn pairs(&mut self, pairs: &[(u32, u32)]) {
        self.body.words(&pairs.iter().flat_map(|&(a, b)| [a, b]).collect::<Vec<u32>>());
    }

    /// Writes 0 for none, the number of a bitset that was written before, or a new number and the words.
    fn bitset(&mut self, words: Option<&Words>) {
        let Some(words) = words else { return self.body.word(0) };
        let next = self.words.len() as u32 + 1;
        let number = *self.words.entry(words.as_ptr().addr()).or_insert(next);
        self.body.word(number);
        if number == next {
            self.body.words(words);
        }
    }
}

struct In<'f> {
    body: Reader<'f>,
    words: Vec<Words>,
    vocabulary: &'f Vocabulary,
}

impl In<'_> {
    fn learned(&mut self) -> Read<(Vec<BoundAutomaton>, AutomatonCache)> {
        let mut automata: Vec<Arc<Automaton>> = Vec::new();
        for number in 0..self.body.word()? {
            let automaton = Automaton::read(&mut self.body)?;
            if number > 0 {
                automata.push(Arc::new(automaton));
            } else if automaton == **json_string() {
                automata.push(json_string().clone());
            } else {
                return Err("its JSON strings are not those of this program");
            }
        }
        let get = |number: u32| automata.get(number as usize).cloned().ok_or("it has no such table");
        let mut tables = Vec::new();
        for _ in 0..self.body.word()? {
            let key = self.body.bytes()?.into();
            tables.push((key, get(self.body.word()?)?));
        }
        let mut bound = Vec::new();
        for _ in 0..self.body.word()? {
            let automaton = get(self.body.word()?)?;
            let (entries, free) = (self.entries(automaton.len())?, self.entries(automaton.len())?);
            bound.push(BoundAutomaton::with_entries(automaton, entries, free));
        }
        if !self.body.is_empty() {
            return Err("there is something after its last entry");
        }
        Ok((bound, AutomatonCache::with_entries(tables)))
    }

    fn entries(&mut self, states: usize) -> Read<Box<[Slot]>> {
        let entries: Box<[Slot]> = (0..states).map(|_| OnceLock::new()).collect();
        for _ in 0..self.body.word()? {
            let (state, same) = (self.body.word()?, self.body.word()?);
            let entry = if state == same {
                Arc::new(self.entry()?)
            } else {
                let known = entries.get(same as usize).and_then(OnceLock::get);
                known.ok_or("an entry is that of a state without one")?.clone()
            };
            entries
                .get(state as usize)
                .ok_or("an entry has no state")?
                .set(entry)
                .map_err(|_| "a state has two entries")?;
        }
        Ok(entries)
    }

    fn entry(&mut self) -> Read<LeafTokens> {
        let run = if self.body.word()? == 0 {
            None
        } else {
            let words = self.bitset()?.ok_or("a run has no tokens")?;
            Some(Run { words, counts: self.body.word()? != 0, tail: self.body.word()? })
        };
        let inner = self.body.words()?;
        let inner_ends = self.body.words()?;
        let is_end = |end: &u32| *end as usize <= inner.len();
        if inner_ends.is_empty() || !inner_ends.is_sorted() || !inner_ends.iter().all(is_end) {
            return Err("the tokens of an entry are out of order");
        }
        let bitsets = inner_ends.iter().map(|_| self.cell()).collect::<Read<Box<[_]>>>()?;
        let closing = self.pairs()?;
        let unbounded = self.cell()?;
        let nodes = self.pairs()?;
        let mut bytes = ByteSet::EMPTY;
        self.body.bytes()?.iter().for_each(|&byte| bytes.insert(byte));
        let size = self.vocabulary.size() as u32;
        if !inner.iter().chain(closing.iter().map(|(_, token)| token)).all(|token| *token < size) {
            return Err("an entry has a token that does not exist");
        }
        if !closing.is_sorted_by_key(|(units, _)| *units) {
            return Err("the closing tokens of an entry are out of order");
        }
        if !nodes.iter().all(|(node, _)| (*node as usize) < self.vocabulary.trie().len()) {
            return Err("an entry has a node that does not exist");
        }
        Ok(LeafTokens {
            run,
            inner: inner.into(),
            inner_ends: inner_ends.into(),
            bitsets,
            closing: closing.into(),
            unbounded,
            boundaries: Boundaries::from_parts(
                nodes.into_iter().map(|(node, units)| (TrieNode::new(node), units)).collect(),
                bytes,
            ),
        })
    }

    fn cell(&mut self) -> Read<OnceLock<Words>> {
        Ok(self.bitset()?.map_or_else(OnceLock::new, OnceLock::from))
    }

    fn pairs(&mut self) -> Read<Vec<(u32, u32)>> {
        let words = self.body.words()?;
        let (pairs, odd) = words.as_chunks::<2>();
        if odd.is_empty() {
            Ok(pairs.iter().map(|&[a, b]| (a, b)).collect())
        } else {
            Err("half of a pair is missing")
        }
    }

    fn bitset(&mut self) -> Read<Option<Words>> {
        let Some(at) = (self.body.word()? as usize).checked_sub(1) else { return Ok(None) };
        if let Some(words) = self.words.get(at) {
            return Ok(Some(words.clone()));
        }
        let words = Words::from(self.body.words()?);
        let size = self.vocabulary.size();
        let beyond = words.last().map_or(0, |last| u64::from(*last) >> ((size - 1) % 32 + 1));
        if at != self.words.len() || words.len() != size.div_ceil(32) || beyond != 0 {
            return Err("a set of tokens does not fit the vocabulary");
        }
        self.words.push(words.clone());
        Ok(Some(words))
    }
}
