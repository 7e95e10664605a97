//! A lazy DFA over sets of threads, for walks that are long.
//!
//! Inside an identifier, a word or a line, tens of thousands of tokens can be read, and after nearly every byte the same few threads stand in
//! the same places. So each set of threads that a walk comes to gets a number, and where a byte leads from a set is worked out once: the rest
//! of the walk is a table lookup for each node of the trie.
//!
//! ```text
//!   {name, after one letter} ── letter ──▶ {name, after more letters} ── letter ──▶ the same
//!                                                        └── space ──▶ {after name}
//! ```
//! Bytes that do the same everywhere in a program share a column of the table ([`Program::byte_classes`]). Sets belong to one line: they are
//! forgotten when the next one starts.
//!
//! Most nodes need not be visited at all. Below a node of the vocabulary's trie there are characters of known kinds ([`Kinds`]). If all of these
//! lead from a set to one and the same set, and so on from there as far as the tokens go, then all tokens below the node can be read.

use core::hash::BuildHasher;
use core::ops::Range;

use hashbrown::HashTable;
use maskwright_vocab::Trie;
use rustc_hash::FxBuildHasher;

use super::step::{Thread, step_all};
use super::walk::Walk;
use crate::bind::{BoundProgram, Kinds, utf8};
use crate::program::ByteClasses;

/// The sets that a walk has come to, and where bytes lead from them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    table: Table,
    levels: Vec<Level>,
}

#[derive(Clone, Debug, Default)]
struct Table {
    sets: Vec<Set>,
    /// The threads of all sets, one set after the other.
    threads: Vec<Thread>,
    /// For each set and each class of bytes the next set, or `UNKNOWN`.
    next: Vec<u32>,
    index: HashTable<u32>,
    current: Vec<Thread>,
    stepped: Vec<Thread>,
}

#[derive(Clone, Copy, Debug)]
struct Set {
    /// Its threads, in `Table::threads`.
    start: u32,
    end: u32,
    /// Kinds of characters that lead to `main`, and those that do not.
    to_main: Kinds,
    to_others: Kinds,
    main: SetId,
    /// Kinds of which every text of up to `safe_length` characters can be read, because a thread stays in its leaf.
    safe: Kinds,
    /// `UNKNOWN` while nobody has asked.
    safe_length: u32,
}

/// The number of a set of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SetId(u32);

impl SetId {
    /// The empty set.
    const DEAD: Self = Self(0);
}

const UNKNOWN: u32 = u32::MAX;

/// Subtrees with fewer tokens are simply read.
const SMALL: u32 = 6;

/// A node of the trie whose children are being read.
#[derive(Clone, Debug)]
struct Level {
    children: Range<u32>,
    set: SetId,
}

impl Sets {
    /// Forgets all sets.
    pub(crate) fn clear(&mut self) {
        self.table.sets.clear();
        self.table.threads.clear();
        self.table.next.clear();
        self.table.index.clear();
    }

    /// Finds every token below a node of a trie that can be read from some threads, which have taken the bytes up to the node. Tries are
    /// numbered; that of the vocabulary has number 0.
    pub(crate) fn walk(
        &mut self,
        walk: &mut Walk<'_, '_>,
        trie: &Trie,
        number: u32,
        node: u32,
        threads: &[Thread],
    ) {
        let bound = walk.bound;
        let classes = bound.program().byte_classes();
        // Only of the vocabulary's trie it is known what comes below, and whoever judges wants to see every token.
        let bytes = (number == 0 && walk.judge.is_none()).then(|| bound.library().bytes());
        let table = &mut self.table;
        if table.sets.is_empty() {
            walk.stacks.keep();
            table.add(&[], classes);
        }
        table.stepped.clear();
        table.stepped.extend_from_slice(threads);
        let set = table.intern(classes);
        self.levels.clear();
        self.levels.push(Level { children: trie.children(node), set });
        while let Some(level) = self.levels.last_mut() {
            let Some(child) = level.children.next() else {
                self.levels.pop();
                continue;
            };
            if !walk.buffers.meter.spend(1) {
                return;
            }
            let byte = trie.byte(child);
            let next = table.next(walk, classes, level.set, byte);
            if next == SetId::DEAD {
                continue;
            }
            match &mut walk.judge {
                None => trie.append_tokens(child, walk.found),
                Some(_) => walk.find(trie.tokens(child), table.threads(next)),
            }
            let children = trie.children(child);
            if children.is_empty() {
                continue;
            }
            // Wherever in a character the text stands: if what follows is characters, it is these that are asked for.
            if let Some(bytes) = bytes
                && bytes.tokens_below(child) >= SMALL
                && let Some(kinds) = bytes.kinds_below(child, 0)
                && table.stays(walk, classes, next, kinds, bytes.height(child))
            {
                walk.found.extend_from_slice(trie.tokens_below(child));
                continue;
            }
            self.levels.push(Level { children, set: next });
        }
    }
}

impl Table {
    fn threads(&self, set: SetId) -> &[Thread] {
        let Set { start, end, .. } = self.sets[set.0 as usize];
        &self.threads[start as usize..end as usize]
    }

    /// Where a byte leads from a set.
    #[inline]
    fn next(&mut self, walk: &mut Walk<'_, '_>, classes: &ByteClasses, set: SetId, byte: u8) -> SetId {
        let at = set.0 as usize * classes.len + usize::from(classes.of[usize::from(byte)]);
        match self.next[at] {
            UNKNOWN => self.step(walk, classes, set, byte, at),
            known => SetId(known),
        }
    }

    #[cold]
    fn step(
        &mut self,
        walk: &mut Walk<'_, '_>,
        classes: &ByteClasses,
        set: SetId,
        byte: u8,
        at: usize,
    ) -> SetId {
        let mut current = core::mem::take(&mut self.current);
        current.clear();
        current.extend_from_slice(self.threads(set));
        self.stepped.clear();
        walk.stacks.next_byte();
        step_all(walk.bound.program(), walk.stacks, walk.buffers, &current, byte, &mut self.stepped);
        self.current = current;
        let next = self.intern(classes);
        self.next[at] = next.0;
        next
    }

    /// The number of the set in `stepped`.
    fn intern(&mut self, classes: &ByteClasses) -> SetId {
        if self.stepped.is_empty() {
            return SetId::DEAD;
        }
        let mut stepped = core::mem::take(&mut self.stepped);
        stepped.sort_unstable_by_key(|thread| (thread.leaf, thread.state, thread.count, thread.stack));
        let key = FxBuildHasher.hash_one(&*stepped);
        let known = self.index.find(key, |&set| *self.threads(SetId(set)) == *stepped).copied();
        let set = known.unwrap_or_else(|| {
            let set = self.add(&stepped, classes);
            let (sets, threads) = (&self.sets, &self.threads);
            let hash = |&set: &u32| {
                let Set { start, end, .. } = sets[set as usize];
                FxBuildHasher.hash_one(&threads[start as usize..end as usize])
            };
            *self.index.insert_unique(key, set, hash).get()
        });
        self.stepped = stepped;
        SetId(set)
    }

    fn add(&mut self, threads: &[Thread], classes: &ByteClasses) -> u32 {
        let start = self.threads.len() as u32;
        self.threads.extend_from_slice(threads);
        let end = self.threads.len() as u32;
        let (to_main, to_others, main) = (Kinds::default(), Kinds::default(), SetId::DEAD);
        let (safe, safe_length) = (Kinds::default(), UNKNOWN);
        self.sets.push(Set { start, end, to_main, to_others, main, safe, safe_length });
        let is_dead = threads.is_empty();
        self.next.resize(self.sets.len() * classes.len, if is_dead { SetId::DEAD.0 } else { UNKNOWN });
        self.sets.len() as u32 - 1
    }

    /// Whether every text of up to `length` characters of some kinds can be read from a set, as far as that is easily seen.
    fn stays(
        &mut self,
        walk: &mut Walk<'_, '_>,
        classes: &ByteClasses,
        mut set: SetId,
        kinds: Kinds,
        length: u8,
    ) -> bool {
        if self.sets[set.0 as usize].safe_length == UNKNOWN {
            self.find_safe(walk.bound, set);
        }
        let Set { safe, safe_length, .. } = self.sets[set.0 as usize];
        if !safe.is_empty() {
            return u32::from(length) <= safe_length && kinds.without(safe).is_empty();
        }
        for _ in 0..length {
            let known = &self.sets[set.0 as usize];
            let unknown = kinds.without(known.to_main).without(known.to_others);
            if !unknown.is_empty() {
                self.follow(walk, classes, set, unknown);
            }
            let Set { to_others, main, .. } = self.sets[set.0 as usize];
            if !kinds.and(to_others).is_empty() {
                return false;
            }
            if main == set {
                return true;
            }
            set = main;
        }
        true
    }

    /// Finds out which characters keep some thread of a set inside its leaf. That is known once for all grammars.
    #[cold]
    fn find_safe(&mut self, bound: &BoundProgram, set: SetId) {
        let (mut safe, mut safe_length) = (Kinds::default(), 0);
        for thread in self.threads(set) {
            if let Some((kinds, length)) = bound.safe_kinds(thread.leaf, thread.state, thread.count)
                && kinds.len() > safe.len()
            {
                (safe, safe_length) = (kinds, length);
            }
        }
        let known = &mut self.sets[set.0 as usize];
        (known.safe, known.safe_length) = (safe, safe_length.min(UNKNOWN - 1));
    }

    /// Finds out where some kinds of characters lead from a set.
    #[cold]
    fn follow(&mut self, walk: &mut Walk<'_, '_>, classes: &ByteClasses, set: SetId, kinds: Kinds) {
        for lead in kinds.leads() {
            let place = utf8(0, lead).unwrap_or(0);
            let target = match self.next(walk, classes, set, lead) {
                SetId::DEAD => None,
                next => self.end(walk, classes, next, place),
            };
            let known = &mut self.sets[set.0 as usize];
            match target {
                Some(target) if known.to_main.is_empty() || known.main == target => {
                    known.main = target;
                    known.to_main = known.to_main.or(Kinds::of(lead));
                }
                _ => known.to_others = known.to_others.or(Kinds::of(lead)),
            }
        }
    }

    /// The set in which all characters end that have come to this place, if it is the same for all of them and is not dead.
    fn end(
        &mut self,
        walk: &mut Walk<'_, '_>,
        classes: &ByteClasses,
        set: SetId,
        place: u8,
    ) -> Option<SetId> {
        if place == 0 {
            return Some(set);
        }
        let (mut end, mut last) = (None, None);
        for byte in 0x80..0xC0 {
            let Some(place) = utf8(place, byte) else { continue };
            let class = classes.of[usize::from(byte)];
            if last.replace((class, place)) == Some((class, place)) {
                continue;
            }
            let next = self.next(walk, classes, set, byte);
            if next == SetId::DEAD {
                return None;
            }
            let found = self.end(walk, classes, next, place)?;
            if end.replace(found).is_some_and(|end| end != found) {
                return None;
            }
        }
        end
    }
}
