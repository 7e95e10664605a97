//! A lazy DFA over sets of threads, for long walks.
//!
//! Inside an identifier, a word or a line, tens of thousands of tokens can be read, and after nearly every byte the
//! same few threads are in the same places. So each set of threads that a walk reaches gets a number, and the target of
//! a byte from a set is computed once. The rest of the walk is a table lookup for each node of the trie.
//!
//! ```text
//!   {name, after one letter} ── letter ──▶ {name, after more letters} ── letter ──▶ the same
//!                                                        └── space ──▶ {after name}
//! ```
//! Bytes that do the same everywhere in a program share a column of the table
//! ([`byte_classes`](crate::program::Program::byte_classes)). Sets belong to one line and are dropped when the next one
//! starts.
//!
//! Most nodes need not be visited at all. For each node of the vocabulary's trie, the kinds of characters below it are
//! known ([`Kinds`]). If all of them lead from a set to one and the same set, and so on from there to the end of the
//! longest token, then all tokens below the node can be read.

use core::hash::BuildHasher;

use hashbrown::HashTable;
use maskwright_automata::ByteSet;
use maskwright_vocab::{Trie, TrieNode};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::line::Walk;
use super::thread::Thread;
use super::waiting::{Waiting, step_waiting, wait};
use crate::library::reader::{self, Next, Reader, Visited};
use crate::library::{BoundProgram, Bytes, GroupedKinds, Kinds, utf8};
use crate::program::ByteClasses;

/// The sets that a walk has reached, and their transitions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    table: Table,
}

#[derive(Clone, Debug, Default)]
struct Table {
    sets: Vec<Set>,
    /// The threads of all sets, one set after another.
    threads: Vec<Thread>,
    /// The places that may take a byte, for each set that was stepped, one set after another.
    waiting: Vec<Waiting>,
    /// The next set for each set and byte class, or `UNKNOWN`.
    next: Vec<u32>,
    index: HashTable<u32>,
    /// The set in which all characters end, by the set in the middle of a character and the position in its UTF-8.
    /// `None` if there is no such set.
    ends: FxHashMap<(SetId, u8), Option<SetId>>,
    stepped: Vec<Thread>,
}

#[derive(Clone, Copy, Debug)]
struct Set {
    /// The range of its threads in `Table::threads`.
    start: u32,
    end: u32,
    /// The range in `Table::waiting`, or `UNKNOWN` if it was not computed.
    waiting_start: u32,
    waiting_end: u32,
    /// The kinds of characters that are known to lead to `main`, and those that are known not to.
    to_main: Kinds,
    to_others: Kinds,
    main: SetId,
    /// Kinds of characters of which every text of up to `safe_length` characters can be read, because a thread stays in
    /// its leaf.
    safe: GroupedKinds,
    /// The number of characters, or `UNKNOWN` if it was not computed.
    safe_length: u32,
}

/// The number of a set of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SetId(u32);

impl SetId {
    /// The empty set.
    const DEAD: Self = Self(0);
}

const UNKNOWN: u32 = u32::MAX;
/// The greatest height of a subtree ([`Bytes::height`]).
const ANY_HEIGHT: u32 = u8::MAX as u32;

impl Sets {
    pub(crate) fn heap_bytes(&self) -> usize {
        let table = &self.table;
        table.sets.capacity() * size_of::<Set>()
            + (table.threads.capacity() + table.stepped.capacity()) * size_of::<Thread>()
            + table.waiting.capacity() * size_of::<Waiting>()
            + (table.next.capacity() + table.index.capacity()) * 4
            + table.ends.capacity() * size_of::<((SetId, u8), Option<SetId>)>()
    }

    /// Drops all sets.
    pub(crate) fn clear(&mut self) {
        self.table.sets.clear();
        self.table.threads.clear();
        self.table.waiting.clear();
        self.table.next.clear();
        self.table.index.clear();
        self.table.ends.clear();
    }

    /// Finds every token below a node of a trie that can be read from some threads, which have taken the bytes up to
    /// the node. Tries are numbered; the vocabulary's trie has number 0. Unless `returning`, the threads return to
    /// nothing before the first byte.
    #[expect(clippy::too_many_arguments, reason = "what a walk begins with, and where it puts what it finds")]
    pub(crate) fn walk<O: Out>(
        &mut self,
        walk: &mut Walk<'_, '_>,
        trie: &Trie,
        number: u32,
        node: TrieNode,
        threads: &[Thread],
        returning: bool,
        out: &mut O,
    ) {
        let bound = walk.bound;
        let classes = bound.program().byte_classes();
        // The kinds below a node are known only for the vocabulary's trie, and a visitor wants to see every token.
        let bytes = (number == 0 && walk.visitor.is_none()).then(|| bound.library().bytes());
        let table = &mut self.table;
        if table.sets.is_empty() {
            walk.stacks.keep();
            table.add(&[], classes);
        }
        let set = if returning {
            table.stepped.clear();
            table.stepped.extend_from_slice(threads);
            table.intern(classes)
        } else {
            let set = SetId(table.add(threads, classes));
            table.wait(walk, classes, set, false);
            set
        };
        // PERF: from a wide leaf, most tokens consist of characters that stay in it. These come from a bitset, and only
        // the others are searched.
        let known = match bytes {
            Some(bytes) if node == Trie::ROOT => {
                let known = table.known(bound, bytes, set);
                known.filter(|&kinds| out.known(|| bytes.of_kinds(kinds)))
            }
            _ => None,
        };
        let looping = known.is_some();
        let known = GroupedKinds::from(known.unwrap_or_default());
        // Includes the bytes inside a character.
        let known_bytes = known.kinds.leads().chain(0x80..0xC0).collect();
        let mut reader = SetReader { table, walk, classes, bytes, known, known_bytes, out };
        reader::read(trie, node, WalkState { set, looping }, &mut reader);
    }
}

/// The state of a walk after a node.
struct WalkState {
    set: SetId,
    /// Whether only characters that are known to be allowed have been read.
    looping: bool,
}

/// Reads tokens with sets of threads.
struct SetReader<'r, 'w, 's, O> {
    table: &'r mut Table,
    walk: &'r mut Walk<'w, 's>,
    classes: &'r ByteClasses,
    /// The kinds of characters below nodes, if the trie is the vocabulary's.
    bytes: Option<&'r Bytes>,
    /// The characters whose tokens were already found.
    known: GroupedKinds,
    known_bytes: ByteSet,
    out: &'r mut O,
}

impl<O: Out> Reader for SetReader<'_, '_, '_, O> {
    type State = WalkState;

    #[inline]
    fn take(&mut self, before: &mut WalkState, node: &Visited<'_>) -> Next<WalkState> {
        let Self { table, walk, classes, bytes, known, known_bytes, out } = self;
        let set = table.next(walk, classes, before.set, node.byte);
        if set == SetId::DEAD {
            return Next::Past;
        }
        if walk.visitor.is_some() {
            node.tokens(|tokens| walk.find(tokens, table.threads(set)));
        } else {
            node.tokens(|tokens| out.tokens(walk, tokens));
        }
        if node.children.is_empty() {
            return Next::Past;
        }
        let mut looping = false;
        if let Some(bytes) = bytes {
            looping = before.looping && known_bytes.contains(node.byte) && bytes.is_text(node.node);
            if looping && bytes.has_only(node.node, known) {
                return Next::Past;
            }
            if table.stays(walk, classes, set, bytes, node.node) {
                out.tokens(walk, node.tokens_below());
                return Next::Past;
            }
        }
        if walk.buffers.meter.spend(node.children.len() as u32) {
            Next::Below(WalkState { set, looping })
        } else {
            Next::Stop
        }
    }
}

/// A destination for the tokens that a walk finds.
pub(crate) trait Out {
    fn tokens(&mut self, walk: &mut Walk<'_, '_>, tokens: &[u32]);
    /// Takes a bitset, or returns false if it cannot use one.
    fn known(&mut self, _words: impl FnOnce() -> Vec<u32>) -> bool {
        false
    }
}

/// Adds tokens to the list of the walk.
pub(crate) struct Listed;

impl Out for Listed {
    #[inline]
    fn tokens(&mut self, walk: &mut Walk<'_, '_>, tokens: &[u32]) {
        // PERF: nearly always there is one token.
        for &token in tokens {
            walk.found.push(token);
        }
    }
}

/// Adds tokens to a bitset. PERF: a walk may find a hundred thousand tokens, and a list would have to become a bitset
/// afterwards.
pub(crate) struct Bits<'w>(pub(crate) &'w mut [u32]);

impl Out for Bits<'_> {
    #[inline]
    fn tokens(&mut self, _walk: &mut Walk<'_, '_>, tokens: &[u32]) {
        for &token in tokens {
            self.0[token as usize / 32] |= 1 << (token % 32);
        }
    }

    fn known(&mut self, words: impl FnOnce() -> Vec<u32>) -> bool {
        self.0.iter_mut().zip(words()).for_each(|(word, known)| *word |= known);
        true
    }
}

impl Table {
    fn threads(&self, set: SetId) -> &[Thread] {
        let Set { start, end, .. } = self.sets[set.0 as usize];
        &self.threads[start as usize..end as usize]
    }

    /// Returns the set that a byte leads to.
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
        if self.sets[set.0 as usize].waiting_start == UNKNOWN {
            self.wait(walk, classes, set, true);
            if self.next[at] == SetId::DEAD.0 {
                return SetId::DEAD;
            }
        }
        let Set { waiting_start, waiting_end, .. } = self.sets[set.0 as usize];
        let waiting = &self.waiting[waiting_start as usize..waiting_end as usize];
        self.stepped.clear();
        walk.stacks.next_byte();
        step_waiting(walk.bound.program(), walk.stacks, walk.buffers, waiting, byte, &mut self.stepped);
        let next = self.intern(classes);
        self.next[at] = next.0;
        next
    }

    /// Finds the places of a set that may take a byte. All other bytes lead to the empty set.
    fn wait(&mut self, walk: &mut Walk<'_, '_>, classes: &ByteClasses, set: SetId, returning: bool) {
        let Set { start, end, .. } = self.sets[set.0 as usize];
        let before = self.waiting.len();
        walk.stacks.next_byte();
        let threads = &self.threads[start as usize..end as usize];
        wait(walk.bound.program(), walk.stacks, walk.buffers, threads, returning, &mut self.waiting);
        let known = &mut self.sets[set.0 as usize];
        (known.waiting_start, known.waiting_end) = (before as u32, self.waiting.len() as u32);
        let first = self.waiting[before..].iter().fold(ByteSet::EMPTY, |all, one| all.union(one.first));
        let next = &mut self.next[set.0 as usize * classes.len..][..classes.len];
        next.fill(SetId::DEAD.0);
        first.iter().for_each(|byte| next[usize::from(classes.of[usize::from(byte)])] = UNKNOWN);
    }

    /// Returns the number of the set in `stepped`.
    fn intern(&mut self, classes: &ByteClasses) -> SetId {
        if self.stepped.is_empty() {
            return SetId::DEAD;
        }
        let mut stepped = core::mem::take(&mut self.stepped);
        stepped.sort_unstable_by_key(|thread| (thread.at, thread.count, thread.stack));
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
        let (safe, safe_length) = (GroupedKinds::default(), UNKNOWN);
        let (waiting_start, waiting_end) = (UNKNOWN, UNKNOWN);
        self.sets.push(Set {
            start,
            end,
            waiting_start,
            waiting_end,
            to_main,
            to_others,
            main,
            safe,
            safe_length,
        });
        let is_dead = threads.is_empty();
        self.next.resize(self.sets.len() * classes.len, if is_dead { SetId::DEAD.0 } else { UNKNOWN });
        self.sets.len() as u32 - 1
    }

    /// Returns kinds of characters of which every text of any length can be read by the waiting places of a set, if
    /// there are many.
    fn known(&self, bound: &BoundProgram, bytes: &Bytes, set: SetId) -> Option<Kinds> {
        let Set { waiting_start, waiting_end, .. } = self.sets[set.0 as usize];
        let waiting = self.waiting.get(waiting_start as usize..waiting_end as usize)?;
        let (kinds, length) = widest(bound, waiting.iter().map(|waiting| &waiting.thread));
        (!kinds.is_empty() && length as usize >= bytes.longest()).then_some(kinds)
    }

    /// Checks whether all tokens below a node of the vocabulary's trie can be read from a set. May return false if that
    /// is not easy to see.
    #[inline]
    fn stays(
        &mut self,
        walk: &mut Walk<'_, '_>,
        classes: &ByteClasses,
        set: SetId,
        bytes: &Bytes,
        node: TrieNode,
    ) -> bool {
        let Set { safe, safe_length, .. } = &self.sets[set.0 as usize];
        match *safe_length {
            0 | UNKNOWN => self.stays_otherwise(walk, classes, set, bytes, node),
            length => {
                bytes.has_only(node, safe)
                    && bytes.is_between(node)
                    && (length >= ANY_HEIGHT || u32::from(bytes.height(node)) <= length)
            }
        }
    }

    /// Does the same where no thread is known to stay in its leaf.
    fn stays_otherwise(
        &mut self,
        walk: &mut Walk<'_, '_>,
        classes: &ByteClasses,
        set: SetId,
        bytes: &Bytes,
        node: TrieNode,
    ) -> bool {
        if self.sets[set.0 as usize].safe_length == UNKNOWN {
            self.find_safe(walk.bound, set);
            return self.stays(walk, classes, set, bytes, node);
        }
        let Some(kinds) = bytes.kinds_below(node) else { return false };
        self.takes(walk, classes, set, kinds, bytes.height(node))
    }

    /// Checks whether every text of up to `length` characters of some kinds can be read from a set.
    fn takes(
        &mut self,
        walk: &mut Walk<'_, '_>,
        classes: &ByteClasses,
        mut set: SetId,
        kinds: Kinds,
        length: u8,
    ) -> bool {
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

    /// Finds the characters that keep some thread of a set inside its leaf. They are computed once for all grammars.
    #[cold]
    fn find_safe(&mut self, bound: &BoundProgram, set: SetId) {
        let (safe, length) = widest(bound, self.threads(set));
        let known = &mut self.sets[set.0 as usize];
        (known.safe, known.safe_length) = (safe.into(), if safe.is_empty() { 0 } else { length });
    }

    /// Finds the sets that some kinds of characters lead to.
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

    /// Returns the set in which all characters end that are at this position, if it is the same for all of them and not
    /// empty.
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
        if let Some(&known) = self.ends.get(&(set, place)) {
            return known;
        }
        let end = self.find_end(walk, classes, set, place);
        self.ends.insert((set, place), end);
        end
    }

    fn find_end(
        &mut self,
        walk: &mut Walk<'_, '_>,
        classes: &ByteClasses,
        set: SetId,
        place: u8,
    ) -> Option<SetId> {
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

/// Returns kinds of characters of which every text, up to a length, keeps one of the threads inside its leaf: those of
/// the thread with the most kinds.
fn widest<'t>(bound: &BoundProgram, threads: impl IntoIterator<Item = &'t Thread>) -> (Kinds, u32) {
    let safe =
        |thread: &Thread| thread.leaf().and_then(|(leaf, state)| bound.safe_kinds(leaf, state, thread.count));
    let widest = threads.into_iter().filter_map(safe).max_by_key(|(kinds, _)| kinds.len());
    widest.map_or((Kinds::default(), 0), |(kinds, length)| (kinds, length.min(UNKNOWN - 1)))
}
