//! Walks a trie of tokens with a set of threads, to find the tokens that can be read from here.
//!
//! This is the definition of a mask. The walk visits a node of the trie only if some thread survives its byte, and of
//! the children it tries only those whose byte some thread may take.
//!
//! Shortcuts make it faster without changing the result. The main one: when a thread is inside a leaf, such as a plain
//! JSON string, at a node with many children, the effect of the tokens below does not depend on the grammar. It is
//! computed once for all grammars.
//!
//! The walk runs on a [`Line`](super::line::Line): the frames below the thread, taken from the matcher's stacks one by
//! one and only when a token reaches them. The result depends only on what was visited (`library/memo.rs`).

use core::ops::RangeInclusive;
use std::sync::Arc;

use maskwright_automata::ByteSet;
use maskwright_vocab::{Trie, TrieNode, TrieNodes};
use smallvec::SmallVec;

use super::inside::literal_byte;
use super::line::Walk;
use super::sets::{Bits, Listed, Sets};
use super::stack::Mark;
use super::step::{is_last, live, step_all, step_others, threads_after_leaf};
use super::thread::Thread;
use crate::count::{Bounds, Window};
use crate::leaf::{Leaf, LeafState, Text, TextNext, json_string};
use crate::library::{Boundaries, NumberedTrie, SuffixSource};
use crate::program::network::Callee;
use crate::program::{At, Place, Program};
use crate::tuning::{FastPath, may_take, tuning};

/// The state of a walk, with buffers that are reused.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    /// The threads of all open nodes, one node after another.
    threads: Vec<Thread>,
    levels: Vec<Level>,
    next: Vec<Thread>,
    /// The number of nodes opened since the line was started.
    opened: usize,
    sets: Sets,
}

/// A node whose children are being visited.
#[derive(Clone, Debug)]
struct Level {
    node: TrieNode,
    /// The remaining children.
    children: TrieNodes,
    /// The bytes worth trying. If `few`, only those that were not tried yet.
    live: ByteSet,
    few: bool,
    /// Whether the calls that are [`SeparateCalls`](crate::program::SeparateCalls) are already handled.
    others: bool,
    /// The index of its first thread in `Walker::threads`.
    start: u32,
    mark: Mark,
}

impl Level {
    /// Returns the next child worth trying.
    #[inline]
    fn next(&mut self, trie: &Trie) -> Option<TrieNode> {
        if self.few {
            // PERF: the root has 256 children, and most states have two or three live bytes; looking through all
            // children was two fifths of the walk's own instructions.
            while let Some(byte) = self.live.pop_first() {
                if let Some(child) = trie.child(self.node, byte) {
                    return Some(child);
                }
            }
            return None;
        }
        self.children.find(|&child| self.live.contains(trie.byte(child)))
    }
}

/// Work that is left for the end of a walk, because it is a walk over another trie.
#[derive(Clone, Copy, Debug)]
enum Shortcut<'w> {
    /// A thread that is inside a leaf at a node.
    Leaf { thread: Thread, node: TrieNode, need: u32, room: u32 },
    /// A leaf that ends below a node, where `after` continues with the suffixes of the tokens.
    Suffixes { boundaries: &'w Boundaries, min: u32, max: u32, follow: ByteSet, after: Thread },
}

impl Walker {
    /// Resets the walker. Must be called when a line is started.
    pub(crate) fn start(&mut self) {
        self.opened = 0;
        self.sets.clear();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        (self.threads.capacity() + self.next.capacity()) * size_of::<Thread>()
            + self.levels.capacity() * size_of::<Level>()
            + self.sets.heap_bytes()
    }

    /// Walks the whole vocabulary like [`Self::walk`], for walks that are known to be long, and adds the tokens to a
    /// bitset. Threads return to nothing before the first byte.
    pub(crate) fn walk_long(&mut self, walk: &mut Walk<'_, '_>, threads: &[Thread], words: &mut [u32]) {
        let trie = walk.bound.vocabulary().trie();
        self.sets.walk(walk, trie, 0, Trie::ROOT, threads, false, &mut Bits(words));
    }

    /// Does the same for another trie and adds the tokens to the list of the walk.
    pub(crate) fn walk_part(&mut self, walk: &mut Walk<'_, '_>, part: &NumberedTrie, threads: &[Thread]) {
        self.sets.walk(walk, &part.trie, part.number, Trie::ROOT, threads, false, &mut Listed);
    }

    /// Finds every token of the trie that can be read from the threads.
    pub(crate) fn walk(&mut self, walk: &mut Walk<'_, '_>, trie: &Trie, number: u32, threads: &[Thread]) {
        self.threads.clear();
        self.threads.extend_from_slice(threads);
        self.walk_below(walk, trie, number, Trie::ROOT);
    }

    /// Finds the tokens that leave a leaf and continue with `byte`, in the trie with this number, if the threads can
    /// read the rest of them.
    #[expect(clippy::too_many_arguments, reason = "what a suffix is, and the borrowed parts of a walk")]
    pub(crate) fn walk_suffixes(
        &mut self,
        walk: &mut Walk<'_, '_>,
        boundaries: &Boundaries,
        byte: u8,
        units: RangeInclusive<u32>,
        trie: &Trie,
        number: u32,
        threads: &[Thread],
    ) {
        // The threads after the byte, computed on demand.
        let mut after: Option<Vec<Thread>> = None;
        for suffixes in boundaries.suffixes(byte, *units.start(), *units.end(), trie) {
            match suffixes {
                SuffixSource::Trie(suffixes) => self.walk(walk, &suffixes.trie, suffixes.number, threads),
                SuffixSource::Below(node) => {
                    let after = after.get_or_insert_with(|| {
                        let mut after = Vec::new();
                        walk.stacks.next_byte();
                        let program = walk.bound.program();
                        step_all(program, walk.stacks, walk.buffers, threads, byte, &mut after);
                        after
                    });
                    if !after.is_empty() {
                        self.walk_from(walk, trie, number, node, after);
                    }
                }
            }
        }
    }

    /// Finds the tokens at and below a node. The threads have already taken the bytes up to it.
    pub(crate) fn walk_from(
        &mut self,
        walk: &mut Walk<'_, '_>,
        trie: &Trie,
        number: u32,
        node: TrieNode,
        threads: &[Thread],
    ) {
        walk.find(trie.tokens(node), threads);
        if !trie.children(node).is_empty() {
            self.threads.clear();
            self.threads.extend_from_slice(threads);
            self.walk_below(walk, trie, number, node);
        }
    }

    fn walk_below(&mut self, walk: &mut Walk<'_, '_>, trie: &Trie, number: u32, node: TrieNode) {
        self.levels.clear();
        let mut shortcuts = Vec::new();
        self.open(walk, trie, number, node, 0, &mut shortcuts);
        while let Some(level) = self.levels.last_mut() {
            let (start, others) = (level.start as usize, level.others);
            if let Some(child) = level.next(trie) {
                if self.step(walk, trie, child, start, others) {
                    let start = self.threads.len();
                    self.threads.append(&mut self.next);
                    self.open(walk, trie, number, child, start, &mut shortcuts);
                }
            } else {
                self.threads.truncate(start);
                if shortcuts.is_empty() {
                    walk.stacks.truncate(level.mark);
                }
                self.levels.pop();
            }
        }
        for shortcut in shortcuts {
            self.take(walk, trie, number, shortcut);
        }
    }

    /// Steps the threads from `start` on by a child's byte. Returns whether the child is worth opening.
    fn step(
        &mut self,
        walk: &mut Walk<'_, '_>,
        trie: &Trie,
        child: TrieNode,
        start: usize,
        others: bool,
    ) -> bool {
        let byte = trie.byte(child);
        let program = walk.bound.program();
        self.next.clear();
        walk.stacks.next_byte();
        if others {
            let thread = self.threads[start];
            step_others(program, walk.stacks, walk.buffers, thread, byte, &mut self.next);
        } else {
            step_all(program, walk.stacks, walk.buffers, &self.threads[start..], byte, &mut self.next);
        }
        if self.next.is_empty() {
            return false;
        }
        walk.find(trie.tokens(child), &self.next);
        !trie.children(child).is_empty()
    }

    /// Opens a node: determines which of its children are worth trying.
    fn open<'w>(
        &mut self,
        walk: &mut Walk<'w, '_>,
        trie: &Trie,
        number: u32,
        node: TrieNode,
        start: usize,
        shortcuts: &mut Vec<Shortcut<'w>>,
    ) {
        let Some(node) = self.follow_literal(walk, trie, node, start) else {
            self.threads.truncate(start);
            return;
        };
        self.opened += 1;
        if walk.shortcuts && self.leave_to_tables(walk, trie, number, node, start, shortcuts) {
            return;
        }
        if walk.sets && self.opened > tuning().thread_nodes && may_take(FastPath::ThreadSets) {
            self.sets.walk(walk, trie, number, node, &self.threads[start..], true, &mut Listed);
            self.threads.truncate(start);
            return;
        }
        let children = trie.children(node);
        if walk.shortcuts && children.len() >= tuning().table_children {
            let mut at = start;
            while at < self.threads.len() {
                if is_in_plain_string(walk.bound.program(), &self.threads[at])
                    && may_take(FastPath::StringTables)
                {
                    let thread = self.threads.swap_remove(at);
                    shortcuts.push(Shortcut::Leaf { thread, node, need: 0, room: u32::MAX });
                } else {
                    at += 1;
                }
            }
            if self.threads.len() == start {
                return;
            }
        }
        let mark = walk.stacks.mark();
        // A few children are cheaper to try than to check for live bytes first.
        let others = self.enter_apart(walk, trie, number, node, start, shortcuts);
        let (live, few) = if let Some(others) = others {
            if others.is_empty() {
                self.threads.truncate(start);
                return;
            }
            (others, children.len() >= tuning().table_children && others.len() * 4 <= children.len())
        } else if children.len() <= tuning().tried_children {
            (ByteSet::ALL, false)
        } else {
            let live = live(walk.bound.program(), walk.stacks, walk.buffers, &self.threads[start..]);
            (live, children.len() >= tuning().table_children && live.len() * 4 <= children.len())
        };
        let (start, others) = (start as u32, others.is_some());
        self.levels.push(Level { node, children, live, few, others, start, mark });
    }

    /// Removes threads that are inside leaves, at a node with many tokens below it: their tokens are read from cached
    /// tables, at the end of the walk. Returns whether no thread is left.
    fn leave_to_tables(
        &mut self,
        walk: &mut Walk<'_, '_>,
        trie: &Trie,
        number: u32,
        node: TrieNode,
        start: usize,
        shortcuts: &mut Vec<Shortcut<'_>>,
    ) -> bool {
        if trie.positions_below(node).len() < tuning().table_tokens {
            return false;
        }
        let mut at = start;
        while let Some(&thread) = self.threads.get(at) {
            let is_worth = |_: &Window| {
                let times = tuning().asked_before_many;
                let entry = thread.leaf().and_then(|(leaf, state)| {
                    walk.bound.entry_below_if_frequent(leaf, state, trie, number, node, times)
                });
                entry.is_some() && may_take(FastPath::LeafTables)
            };
            match units_in_leaf(walk, &thread).filter(is_worth) {
                Some(Window { need, room }) => {
                    shortcuts.push(Shortcut::Leaf { thread, node, need, room });
                    self.threads.swap_remove(at);
                }
                None => at += 1,
            }
        }
        self.threads.len() == start
    }

    /// Handles a single thread in a cell that calls leaves which end where they die: adds the tokens through these
    /// leaves from cached tables. Returns the bytes by which the thread can continue otherwise.
    fn enter_apart<'w>(
        &mut self,
        walk: &mut Walk<'w, '_>,
        trie: &Trie,
        number: u32,
        node: TrieNode,
        start: usize,
        shortcuts: &mut Vec<Shortcut<'w>>,
    ) -> Option<ByteSet> {
        let bound = walk.bound;
        let program = &**bound.program();
        let [thread] = self.threads[start..] else { return None };
        let At::Network(state) = thread.at else { return None };
        if !walk.shortcuts {
            return None;
        }
        let Place::Cell(cell) = program.place(state) else { return None };
        // A cell that may return is handled only if only the end of the text follows it, as in free text.
        let separate =
            if cell.returns { program.separate_calls_at_end(cell) } else { program.separate_calls(cell) };
        if separate.is_empty() || cell.returns && !is_last(walk.stacks, walk.buffers, thread.stack) {
            return None;
        }
        let calls = separate.iter().map(|at| &cell.calls[at]).filter_map(|call| {
            let Callee::Leaf(leaf) = call.callee else { return None };
            let Leaf::Window { automaton, min, max } = program.leaf(leaf) else { return None };
            Some((call, leaf, automaton, min, max))
        });
        let entries: Option<SmallVec<[_; 4]>> = calls
            .map(|(call, leaf, automaton, min, max)| {
                let times = tuning().asked_before_reading;
                let entry =
                    bound.entry_below_if_frequent(leaf, automaton.start(), trie, number, node, times)?;
                Some((call, entry, min, max))
            })
            .collect();
        let entries = entries.filter(|_| may_take(FastPath::LeafTables))?;
        for (call, entry, min, max) in entries {
            walk.found.extend_from_slice(entry.list(*max));
            walk.found.extend(entry.closing(*min, *max));
            let boundaries = &entry.boundaries;
            let Some(returning) = program.unchecked(program.returning(call)) else { continue };
            let follow = if cell.returns {
                Some(program.live_at(At::Network(returning)))
            } else {
                program.follow(returning)
            };
            let follow = follow.unwrap_or(ByteSet::EMPTY).intersection(*boundaries.bytes());
            if !follow.is_empty() {
                let after = Thread::network(returning, thread.stack);
                shortcuts.push(Shortcut::Suffixes { boundaries, min: *min, max: *max, follow, after });
            }
        }
        Some(separate.others)
    }

    /// Follows a single thread through a literal, where only one child can match and there is nothing to come back to.
    /// Returns the node at which there is a choice again, if the trie reaches that far.
    #[inline]
    fn follow_literal(
        &mut self,
        walk: &mut Walk<'_, '_>,
        trie: &Trie,
        mut node: TrieNode,
        start: usize,
    ) -> Option<TrieNode> {
        let [thread] = &mut self.threads[start..] else { return Some(node) };
        while let Some((byte, next)) = literal_byte(walk.bound.program(), thread)
            && may_take(FastPath::Literals)
        {
            node = trie.child(node, byte)?;
            walk.find(trie.tokens(node), &[next]);
            if trie.children(node).is_empty() {
                return None;
            }
            *thread = next;
        }
        Some(node)
    }

    /// Reads the tokens below a node from cached tables.
    fn take<'w>(&mut self, walk: &mut Walk<'w, '_>, trie: &Trie, number: u32, shortcut: Shortcut<'w>) {
        let (thread, node, need, room) = match shortcut {
            Shortcut::Leaf { thread, node, need, room } => (thread, node, need, room),
            Shortcut::Suffixes { boundaries, min, max, follow, after } => {
                for byte in follow.iter() {
                    self.walk_suffixes(walk, boundaries, byte, min..=max, trie, number, &[after]);
                }
                return;
            }
        };
        let bound = walk.bound;
        let program = bound.program();
        let Some((leaf, state)) = thread.leaf() else { return };
        let text = match program.leaf(leaf) {
            Leaf::Text(text) => Some(text),
            Leaf::Window { .. } => None,
        };
        let spelling = text.map_or(state, |text| text.spelling(state));
        let entry = bound.entry_below(leaf, spelling, trie, number, node);
        let boundaries = &entry.boundaries;
        walk.found.extend_from_slice(entry.list(room));
        let before = walk.found.len();
        walk.found.extend(entry.closing(need, room));
        if !boundaries.bytes().is_empty() {
            let mut threads = Vec::new();
            let follow = threads_after_leaf(program, walk.stacks, walk.buffers, thread.stack, &mut threads);
            for byte in follow.intersection(*boundaries.bytes()).iter() {
                self.walk_suffixes(walk, boundaries, byte, need..=room, trie, number, &threads);
            }
        }
        if let Some(text) = text {
            let less = completions(text, state, trie, node);
            if !less.is_empty() {
                let mut at = 0;
                walk.found.retain(|token| {
                    at += 1;
                    at <= before || !less.contains(token)
                });
            }
        }
    }
}

/// Returns the units that a thread has left in its leaf, if the leaf cannot end earlier than where it dies. Returns
/// `None` for strings, which have other tables: plain JSON strings, and the strings of a schema, which nearly always
/// occur in one place.
fn units_in_leaf(walk: &mut Walk<'_, '_>, thread: &Thread) -> Option<Window> {
    let program = walk.bound.program();
    let (leaf, state) = thread.leaf()?;
    let Leaf::Window { automaton, min, max } = program.leaf(leaf) else { return None };
    let windows = program.counts().windows(thread.count, Bounds { min: *min, max: *max });
    let &[window] = &*windows else { return None };
    // PERF: where nearly all tokens continue, sets of threads take whole subtrees; a table of them took three times as
    // long to build.
    if program.leaf(leaf).is_string() || automaton.live(state).len() > tuning().table_bytes {
        return None;
    }
    let follow = threads_after_leaf(program, walk.stacks, walk.buffers, thread.stack, &mut Vec::new());
    follow.intersection(*automaton.open()).is_empty().then_some(window)
}

/// Checks whether a thread is in a plain string, or in one that only excludes some words. In both, the tokens that stay
/// inside are the same everywhere.
fn is_in_plain_string(program: &Program, thread: &Thread) -> bool {
    let Some((leaf, _)) = thread.leaf() else { return false };
    match program.leaf(leaf) {
        Leaf::Window { automaton, min: 0, max: u32::MAX } => Arc::ptr_eq(automaton, json_string()),
        Leaf::Window { .. } => false,
        Leaf::Text(text) => text.is_except(),
    }
}

/// Returns the tokens below a node that would complete a forbidden word: the text stays on the list of words until they
/// close the string.
fn completions(text: &Text, state: LeafState, trie: &Trie, from: TrieNode) -> Vec<u32> {
    let mut tokens = Vec::new();
    completion_nodes(
        text,
        state,
        trie,
        from,
        |_| true,
        |node| {
            tokens.extend_from_slice(trie.tokens(node));
            tokens.extend_from_slice(trie.tokens_below(node));
        },
    );
    tokens
}

/// Finds the nodes at which such a text closes the string. `is_worth` may return false for nodes without a quote below.
pub(crate) fn completion_nodes(
    text: &Text,
    state: LeafState,
    trie: &Trie,
    from: TrieNode,
    is_worth: impl Fn(TrieNode) -> bool,
    mut add: impl FnMut(TrieNode),
) {
    let mut work = vec![(from, state)];
    while let Some((node, state)) = work.pop() {
        for byte in text.bytes_towards_words(state).iter() {
            let Some(child) = trie.child(node, byte) else { continue };
            match text.next(state, byte) {
                TextNext::Stay(next) if is_worth(child) => work.push((child, next)),
                TextNext::Stay(_) | TextNext::Plain(_) => {}
                // A quote that the plain string would take but this one does not.
                TextNext::Dead if text.live(state).contains(byte) => add(child),
                TextNext::Dead => {}
            }
        }
    }
}
