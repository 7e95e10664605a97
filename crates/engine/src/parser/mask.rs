//! The mask of a thread: from the memo, or computed in the cheapest exact way.
//!
//! | place of the thread | computation |
//! |---|---|
//! | in a leaf that cannot be confused with what follows it | shared inner tokens, and a walk over the suffixes |
//! | in a JSON string that excludes some words | mask of the plain string, minus tokens that complete a word |
//! | in a leaf that has room for most tokens | mask of the leaf without a limit, minus tokens that are too long |
//! | elsewhere: a literal, a choice of keys, punctuation | walk over the vocabulary's trie, pruned at once |
//!
//! The last row is the definition. The others must equal it bit by bit, and [`Strategy::Reference`] lets tests request
//! it.
//!
//! If a thread may end where it is, the tokens of the threads it returns to are allowed as well. Those are separate
//! masks, looked up separately ([`super::step::returns`]).

use core::cell::Cell;
use core::ops::RangeInclusive;

use maskwright_automata::ByteSet;
use smallvec::SmallVec;

use super::line::{Line, LineStacks, Visitor, Walk};
use super::meter::THREAD_STEPS;
use super::stack::{Arena, Frame, Resume, StackId, Stacks, Top};
use super::step::{Buffers, call_from, epsilon_closure_of, threads_after_leaf};
use super::thread::Thread;
use super::walk::{Walker, completion_nodes};
use super::words;
use crate::count::{Bounds, Count, UNBOUNDED, Window};
use crate::leaf::{JSON_BODY, Leaf, LeafState, Text};
use crate::library::{
    Answer, AnswerId, BoundProgram, Difference, Key, Library, LineNodeId, Look, Memo, Part, Tokens, Words,
    max_difference, ones, set_bits,
};
use crate::program::network::LoopId;
use crate::program::{At, LeafId, NetState, Place, Program};
use crate::tuning::{FastPath, may_take, tuning};
use maskwright_vocab::Trie;

/// How masks are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// In the cheapest way, with caching.
    #[default]
    Fast,
    /// By walking the vocabulary's trie thread by thread, without caching and without merging parses that have the same
    /// future. Slow; the reference for `Fast`.
    Reference,
}

/// The number of places that may take the first byte up to which each is handled separately.
const MAX_SEPARATE_ITEMS: usize = 1 << 15;
/// From this many items on, equal stacks are found through an index instead of by comparing with all pushed stacks.
const NUMBERED_ITEMS: usize = 64;

/// Buffers for computing masks. Each OS thread has one set, which all matchers share. So the rows of a batch find it in
/// the processor's cache, and a waiting matcher holds none.
#[derive(Debug, Default)]
pub(crate) struct MaskBuffers {
    pub(crate) line: Line,
    pub(crate) walker: Walker,
    pub(crate) found: Vec<u32>,
    bases: Vec<Words>,
    /// The tokens of long walks, if there were any.
    words: Vec<u32>,
    has_walked: bool,
    /// Whether the buffers may have grown since they were taken.
    is_used: bool,
    pub(crate) items: Vec<Thread>,
    /// The threads that are yet to be expanded; later the threads that continue after a leaf.
    pub(crate) work: Vec<Thread>,
}

thread_local! {
    static BUFFERS: Cell<Option<Box<MaskBuffers>>> = const { Cell::new(None) };
}

/// The most bytes that an OS thread keeps between two masks. Only hostile constraints need more.
const MAX_KEPT_BYTES: usize = 4 << 20;

impl MaskBuffers {
    /// Takes the buffers of this OS thread, or makes new ones if they are in use.
    pub(crate) fn of_thread() -> Box<Self> {
        // An OS thread that is ending has no buffers any more.
        BUFFERS.try_with(Cell::take).ok().flatten().unwrap_or_default()
    }

    pub(crate) fn give_back(mut self: Box<Self>) {
        // PERF: a mask from the memo uses no buffers and takes a quarter of a microsecond.
        let is_small = !core::mem::take(&mut self.is_used) || self.heap_bytes() <= MAX_KEPT_BYTES;
        if is_small {
            let _ = BUFFERS.try_with(|buffers| buffers.set(Some(self)));
        }
    }

    fn heap_bytes(&self) -> usize {
        (self.found.capacity() + self.words.capacity()) * 4
            + self.walker.heap_bytes()
            + self.line.heap_bytes()
    }
}

/// Everything that is needed to compute a mask, borrowed from the matcher.
pub(crate) struct Masker<'m> {
    pub(crate) bound: &'m BoundProgram,
    pub(crate) arena: &'m Arena,
    pub(crate) buffers: &'m mut Buffers,
    pub(crate) scratch: &'m mut MaskBuffers,
}

/// A receiver of the parts of a mask.
pub(crate) trait Sink {
    /// Called before the first part, with whether the text may end here.
    fn start(&mut self, _is_accepting: bool) {}

    /// Adds a part without the tokens of `less`. The tokens of `several` contain more than one value, so they still
    /// have to be checked. `answer` is the id of the part in the memo, if it has one.
    fn part(
        &mut self,
        library: &Library,
        answer: Option<AnswerId>,
        part: &Part,
        several: &[u32],
        less: &[Words],
    );
}

impl Masker<'_> {
    /// Passes the parts of a thread's mask to `sink`.
    pub(crate) fn mask(&mut self, thread: Thread, sink: &mut dyn Sink) {
        let bound = self.bound;
        if let Some((leaf, state)) = thread.leaf()
            && let Leaf::Text(text) = bound.program().leaf(leaf)
            && text.is_except()
            && may_take(FastPath::ExcludedWords)
        {
            let less = completions_of(bound, text, state, &thread);
            let at = At::Leaf(bound.program().plain_string(), text.spelling(state));
            let plain = Thread { at, ..thread };
            return self.look_up(plain, less, sink);
        }
        if let Some((free, characters)) = self.without_limit(&thread)
            && may_take(FastPath::WithoutLimit)
        {
            if let Some(less) = self.too_long(thread, characters) {
                self.look_up(free, &[less], sink);
            }
            return;
        }
        self.look_up(thread, &[], sink);
    }

    /// Starts a line on a stack.
    pub(crate) fn start_line(&mut self, stack: StackId) {
        self.scratch.line.start(stack, self.arena.merges());
        self.scratch.walker.start();
        self.scratch.has_walked = false;
        self.scratch.is_used = true;
    }

    /// Passes a mask to `sink`, from the memo or computed.
    fn look_up(&mut self, thread: Thread, less: &[Words], sink: &mut dyn Sink) {
        match self.find(&thread) {
            Some(node) => hand_over(self.bound, node, less, sink),
            None => self.compute(thread, less, sink),
        }
    }

    /// Finds the answer for a thread in the memo.
    #[inline]
    fn find(&mut self, thread: &Thread) -> Option<AnswerId> {
        let bound = self.bound;
        let mut node = bound.memo().find(&state_key(bound, thread))?;
        // PERF: without forks, frames are visited in order, so no line is needed to number them.
        let mut stack = thread.stack;
        while let Answer::Look(look) = bound.memo().answer(node) {
            let Top::Frame(frame, below) = self.arena.top(stack) else {
                return self.find_forked(thread);
            };
            stack = below;
            node = bound.memo().find(&frame_key(bound, bound.memo(), node, frame, look))?;
        }
        Some(node)
    }

    /// Does the same where stacks fork.
    fn find_forked(&mut self, thread: &Thread) -> Option<AnswerId> {
        let bound = self.bound;
        let line = &mut self.scratch.line;
        line.start(thread.stack, self.arena.merges());
        let mut node = bound.memo().find(&state_key(bound, thread))?;
        while let Answer::Look(look) = bound.memo().answer(node) {
            line.look_at(look.node, self.arena);
            node = bound.memo().find(&look_key(bound, bound.memo(), node, line, line.looks() - 1, look))?;
        }
        Some(node)
    }

    /// If a leaf has room for most tokens but not for all, returns the thread as if there were no limit, and the number
    /// of characters for which there is room.
    ///
    /// `.{0,80}` has a different mask after each character, because tokens of 80, 79, 78 spaces drop out one by one. So
    /// the mask is that of `.{0,}`, minus the tokens that are too long. To find these, only long tokens are read.
    fn without_limit(&self, thread: &Thread) -> Option<(Thread, u32)> {
        let program = self.bound.program();
        let (leaf, state) = thread.leaf()?;
        let Leaf::Window { automaton, min, max } = program.leaf(leaf) else { return None };
        // PERF: narrow leaves, such as white space before a number, have few tokens; reading the long ones first took
        // ten times as long.
        if *max == UNBOUNDED || program.leaf(leaf).is_string() || self.bound.is_narrow(leaf, state) {
            return None;
        }
        let &[Window { need, room }] =
            &*program.counts().windows(thread.count, Bounds { min: *min, max: *max })
        else {
            return None;
        };
        let characters = room.saturating_sub(automaton.longest_tail());
        if characters < tuning().distant_limit || self.bound.has_room(leaf, room) {
            return None;
        }
        Some((Thread { count: program.counts().unlimited(need), ..*thread }, characters))
    }

    /// Returns the tokens of more than this many characters that cannot be read, from the memo or computed.
    fn too_long(&mut self, thread: Thread, characters: u32) -> Option<Words> {
        let bound = self.bound;
        let node = match self.find(&thread) {
            Some(node) => node,
            None => self.find_too_long(thread, characters)?,
        };
        match bound.memo().answer(node) {
            Answer::Less(less) => less.first().cloned(),
            Answer::Mask(..) | Answer::Growth(_) | Answer::Look(_) => None,
        }
    }

    fn find_too_long(&mut self, thread: Thread, characters: u32) -> Option<AnswerId> {
        let bound = self.bound;
        let long = bound.library().long_tokens(characters);
        self.buffers.computed += 1;
        self.start_line(thread.stack);
        let mut found = core::mem::take(&mut self.scratch.found);
        found.clear();
        self.walk(&mut found, |walker, walk| {
            walker.walk_part(walk, long, &[Thread { stack: Line::TOP, ..thread }]);
        });
        found.sort_unstable();
        let bytes = bound.library().bytes();
        let is_too_long =
            |token: &u32| bytes.length(*token) > characters && found.binary_search(token).is_err();
        let mut less: Vec<u32> = long.trie.all_tokens().iter().copied().filter(is_too_long).collect();
        less.sort_unstable();
        self.scratch.found = found;
        if self.buffers.meter.over().is_some() {
            return None;
        }
        let key = remember_looks(bound, bound.memo(), &thread, &self.scratch.line);
        Some(bound.memo().insert(key, Answer::Less([less.into()].into())))
    }

    /// Computes the mask by the plain walk over the whole trie, for comparison.
    pub(crate) fn plain(&mut self, thread: Thread, sink: &mut dyn Sink) {
        let mut found = Vec::new();
        self.start_line(thread.stack);
        let trie = self.bound.vocabulary().trie();
        self.walk_by((false, false), &mut found, None, |walker, walk| {
            walker.walk(walk, trie, 0, &[Thread { stack: Line::TOP, ..thread }]);
        });
        sink.part(self.bound.library(), None, &Part::List(found.into()), &[], &[]);
    }

    /// Computes a mask, stores it in the memo, and passes it on.
    fn compute(&mut self, thread: Thread, less: &[Words], sink: &mut dyn Sink) {
        self.buffers.computed += 1;
        self.start_line(thread.stack);
        let part = self.part(Thread { stack: Line::TOP, ..thread });
        if self.buffers.meter.over().is_some() {
            return;
        }
        let bound = self.bound;
        let several = several(bound, &thread, &part);
        let key = remember_looks(bound, bound.memo(), &thread, &self.scratch.line);
        let node = bound.memo().insert(key, Answer::Mask(part, several));
        hand_over(bound, node, less, sink);
    }

    /// Returns the mask of a thread on the line, without what it may return to before the next byte.
    fn part(&mut self, thread: Thread) -> Part {
        let mut found = core::mem::take(&mut self.scratch.found);
        found.clear();
        let mut bases = core::mem::take(&mut self.scratch.bases);
        let is_expanded = self.expand(thread);
        let items = core::mem::take(&mut self.scratch.items);
        if is_expanded {
            for &item in &items {
                self.item(item, &mut bases, &mut found);
            }
        } else {
            self.walk_item(thread);
        }
        self.scratch.items = items;
        // Without JSON strings, no bitset is shared with other grammars.
        let is_own = !self.bound.program().has_strings() && needs_bitset(&bases, &found);
        let part = if self.scratch.has_walked {
            self.gather(&mut bases, &found)
        } else if !is_own {
            finish(&mut bases, &found, self.bound.library())
        } else if let [base] = &*bases
            && found.len() <= max_difference(base.len())
        {
            Part::Difference(Difference::with_more(bases.remove(0), &found))
        } else {
            self.gather(&mut bases, &found)
        };
        (self.scratch.found, self.scratch.bases) = (found, bases);
        part
    }

    /// Combines the tokens of long walks with everything else into a part.
    fn gather(&mut self, bases: &mut Vec<Words>, found: &[u32]) -> Part {
        let words = &mut self.scratch.words;
        if !core::mem::take(&mut self.scratch.has_walked) {
            words.clear();
            words.resize(self.bound.vocabulary().size().div_ceil(32), 0);
        }
        for base in bases.drain(..) {
            words.iter_mut().zip(base.iter()).for_each(|(word, base)| *word |= base);
        }
        set_bits(words, found);
        if has_fewer(words, tuning().bitset_tokens) {
            Part::List(ones(words.iter().copied()).collect())
        } else {
            self.bound.memo().bitset(words)
        }
    }

    /// Follows calls and collects the leaves and states that may take the first byte. Returns false if too many paths
    /// lead to them: in `r0 ::= r1? r1? "a"`, `r1 ::= r2? r2? "a"` and so on, their number doubles with every rule. A
    /// walk merges them.
    pub(crate) fn expand(&mut self, thread: Thread) -> bool {
        let program = &**self.bound.program();
        let mut items = core::mem::take(&mut self.scratch.items);
        items.clear();
        let mut stacks = LineStacks { line: &mut self.scratch.line, arena: self.arena };
        let mut is_complete = true;
        let work = &mut self.scratch.work;
        work.clear();
        work.push(thread);
        while let Some(thread) = work.pop() {
            items.push(thread);
            if items.len() > MAX_SEPARATE_ITEMS || !self.buffers.meter.spend(THREAD_STEPS) {
                is_complete = false;
                break;
            }
            if items.len() == NUMBERED_ITEMS {
                stacks.ensure_index();
            }
            if let At::Network(state) = thread.at
                && let Place::Cell(cell) = program.place(state)
            {
                for call in &cell.calls {
                    let called = call_from(program, &mut stacks, call, thread.stack);
                    work.extend(called.map(|(at, stack)| Thread::new(at, stack)));
                }
            }
        }
        self.scratch.items = items;
        is_complete
    }

    fn item(&mut self, item: Thread, bases: &mut Vec<Words>, found: &mut Vec<u32>) {
        let program = &**self.bound.program();
        let (leaf, state) = match item.at {
            At::Network(state) => return self.walk_edges(state, item.stack, found),
            At::Leaf(leaf, state) => (leaf, state),
        };
        match program.leaf(leaf) {
            Leaf::Window { automaton, min, max } => {
                let (follow, after) = self.threads_after_leaf(item.stack);
                if !follow.intersection(*automaton.open()).is_empty() {
                    self.scratch.work = after;
                    return self.walk_item(item);
                }
                let bounds = Bounds { min: *min, max: *max };
                for Window { need, room } in program.counts().windows(item.count, bounds) {
                    self.leaf_item(leaf, state, need..=room, follow, &after, bases, found);
                }
                self.scratch.work = after;
            }
            Leaf::Text(text) if text.is_except() => {
                let (follow, after) = self.threads_after_leaf(item.stack);
                let before = found.len();
                self.leaf_item(leaf, text.spelling(state), 0..=u32::MAX, follow, &after, bases, found);
                self.scratch.work = after;
                let less = completions(self.bound, text, state);
                if !less.is_empty() {
                    let mut at = 0;
                    found.retain(|token| {
                        at += 1;
                        at <= before || !less.iter().any(|list| list.binary_search(token).is_ok())
                    });
                }
            }
            Leaf::Text(_) => self.walk_text(item, found),
        }
    }

    /// Returns the threads that continue after a leaf, and the bytes that they take. The list is `scratch.work`, to be
    /// put back by the caller.
    pub(crate) fn threads_after_leaf(&mut self, stack: StackId) -> (ByteSet, Vec<Thread>) {
        let program = &**self.bound.program();
        let mut threads = core::mem::take(&mut self.scratch.work);
        threads.clear();
        let mut stacks = LineStacks { line: &mut self.scratch.line, arena: self.arena };
        (threads_after_leaf(program, &mut stacks, self.buffers, stack, &mut threads), threads)
    }

    /// Adds the inner tokens of a leaf, and the tokens whose suffixes can follow it.
    #[expect(clippy::too_many_arguments, reason = "the borrowed parts of one computation")]
    fn leaf_item(
        &mut self,
        leaf: LeafId,
        state: LeafState,
        units: RangeInclusive<u32>,
        follow: ByteSet,
        after: &[Thread],
        bases: &mut Vec<Words>,
        found: &mut Vec<u32>,
    ) {
        let bound = self.bound;
        let vocabulary = bound.vocabulary();
        let (need, room) = units.into_inner();
        let entry = bound.entry(leaf, state, room);
        let bytes = bound.library().bytes();
        if need == 0
            && bound.has_room(leaf, room)
            && let Some(words) = entry.unbounded(bytes)
        {
            bases.push(words.clone());
        } else {
            match entry.inner(room, bytes) {
                Tokens::Many(words) => bases.push(words.clone()),
                Tokens::Few(list) => found.extend_from_slice(list),
            }
            found.extend(entry.closing(need, room));
        }
        let boundaries = &entry.boundaries;
        if follow.intersection(*boundaries.bytes()).is_empty() {
            return;
        }
        self.walk(found, |walker, walk| {
            for byte in follow.intersection(*boundaries.bytes()).iter() {
                walker.walk_suffixes(walk, boundaries, byte, need..=room, vocabulary.trie(), 0, after);
            }
        });
    }

    /// Walks the trie from one state. Its calls are separate items.
    fn walk_edges(&mut self, state: NetState, stack: StackId, found: &mut Vec<u32>) {
        let bound = self.bound;
        let program = &**bound.program();
        let trie = bound.vocabulary().trie();
        self.walk(found, |walker, walk| match program.place(state) {
            Place::Done => {}
            // The caller has not checked whether the words awaited here were already seen.
            Place::Node { .. } => {
                let thread = Thread::network(state, stack);
                let threads = epsilon_closure_of(program, walk.stacks, walk.buffers, thread);
                walker.walk(walk, trie, 0, &threads);
            }
            Place::Cell(cell) => {
                for (byte, state) in program.edges(cell) {
                    if let Some(child) = trie.child(Trie::ROOT, byte) {
                        let thread = Thread::network(state, stack);
                        let threads = epsilon_closure_of(program, walk.stacks, walk.buffers, thread);
                        if !threads.is_empty() {
                            walker.walk_from(walk, trie, 0, child, &threads);
                        }
                    }
                }
            }
        });
    }

    /// Walks the whole trie for a text that must be one of some words: few tokens can be read.
    fn walk_text(&mut self, item: Thread, found: &mut Vec<u32>) {
        let trie = self.bound.vocabulary().trie();
        self.walk(found, |walker, walk| walker.walk(walk, trie, 0, &[item]));
    }

    /// Walks over tries with every shortcut. The tokens are added to `found`.
    fn walk(&mut self, found: &mut Vec<u32>, with: impl FnOnce(&mut Walker, &mut Walk<'_, '_>)) {
        self.walk_by((true, true), found, None, with);
    }

    /// Does the same, with or without [shortcuts and sets](Walk), and with a visitor.
    pub(crate) fn walk_by(
        &mut self,
        (shortcuts, sets): (bool, bool),
        found: &mut Vec<u32>,
        visitor: Option<&mut Visitor<'_>>,
        with: impl FnOnce(&mut Walker, &mut Walk<'_, '_>),
    ) {
        let mut stacks = LineStacks { line: &mut self.scratch.line, arena: self.arena };
        let (bound, buffers) = (self.bound, &mut *self.buffers);
        // Mapped, because the visitor may outlive the walk.
        let visitor = visitor.map(|visitor| visitor as &mut Visitor<'_>);
        let mut walk = Walk { bound, stacks: &mut stacks, buffers, found, shortcuts, sets, visitor };
        with(&mut self.scratch.walker, &mut walk);
    }

    /// Walks the whole trie with sets of threads.
    fn walk_item(&mut self, item: Thread) {
        let bound = self.bound;
        let mut words = core::mem::take(&mut self.scratch.words);
        if !self.scratch.has_walked {
            words.clear();
            words.resize(bound.vocabulary().size().div_ceil(32), 0);
        }
        self.walk(&mut Vec::new(), |walker, walk| walker.walk_long(walk, &[item], &mut words));
        self.scratch.has_walked = true;
        self.scratch.words = words;
    }
}

/// Returns the tokens that would complete a forbidden word. They do not depend on the stack.
fn completions_of<'b>(
    bound: &'b BoundProgram,
    text: &Text,
    state: LeafState,
    thread: &Thread,
) -> &'b [Words] {
    let memo = bound.memo();
    let key = state_key(bound, thread);
    let node = memo.find(&key).unwrap_or_else(|| {
        let less = completions(bound, text, state);
        memo.insert(key, Answer::Less(less.into()))
    });
    match memo.answer(node) {
        Answer::Less(less) => less,
        Answer::Mask(..) | Answer::Growth(_) | Answer::Look(_) => &[],
    }
}

/// Returns the tokens that would complete a forbidden word: the text stays on the list of words until they close the
/// string. Each list holds the tokens below one node of the vocabulary's trie, in ascending order.
fn completions(bound: &BoundProgram, text: &Text, state: LeafState) -> Vec<Words> {
    let mut lists = Vec::new();
    let (trie, library) = (bound.vocabulary().trie(), bound.library());
    let is_worth = |node| library.is_before_quote(node);
    completion_nodes(text, state, trie, Trie::ROOT, is_worth, |node| lists.push(library.tokens_below(node)));
    lists
}

/// Returns the tokens of a part that contain more than one value.
fn several(bound: &BoundProgram, thread: &Thread, part: &Part) -> Box<[u32]> {
    if !bound.program().has_lists() {
        return Box::default();
    }
    let whole = bound.library().value_tokens();
    let in_string = is_in_string(bound.program(), thread);
    let listed = |list: &[u32]| -> Box<[u32]> {
        list.iter().copied().filter(|&token| whole.has_several(token, in_string)).collect()
    };
    match part {
        Part::List(list) => listed(list),
        Part::Shared { base, more } => {
            let mut found: Vec<u32> = listed(more).into_vec();
            let in_base = |token: &u32| base[*token as usize / 32] >> (token % 32) & 1 == 1;
            found.extend(whole.several.at(in_string).iter().copied().filter(in_base));
            found.into()
        }
        Part::Difference(difference) => {
            let several = whole.several.at(in_string).iter().copied();
            several.filter(|&token| difference.contains(token)).collect()
        }
    }
}

/// Checks whether a thread is inside a string and not inside an escape, so that nothing changes before a quote.
pub(crate) fn is_in_string(program: &Program, thread: &Thread) -> bool {
    let Some((leaf, state)) = thread.leaf() else { return false };
    match program.leaf(leaf) {
        Leaf::Text(text) => text.is_except() && text.spelling(state) == JSON_BODY,
        Leaf::Window { automaton, .. } => program.leaf(leaf).is_string() && automaton.is_between_units(state),
    }
}

/// Returns the number of tokens from which on a mask without bitsets becomes a bitset.
fn listed_tokens() -> usize {
    tuning().bitset_tokens.saturating_mul(4)
}

/// Checks whether bitsets and tokens together need a new bitset.
fn needs_bitset(bases: &[Words], found: &[u32]) -> bool {
    match bases.len() {
        0 => found.len() >= listed_tokens(),
        1 => found.len() >= tuning().folded_tokens,
        _ => true,
    }
}

/// Makes a part of bitsets and tokens.
fn finish(bases: &mut Vec<Words>, found: &[u32], library: &Library) -> Part {
    // PERF: the same few bitsets are combined in every schema (white space and the beginning of a string), and writing
    // 16 KB for each such mask cost more than the walk.
    match bases.drain(..).reduce(|a, b| library.union(&a, &b)) {
        Some(base) if found.len() < tuning().folded_tokens => Part::Shared { base, more: found.into() },
        Some(base) => Part::Shared { base: library.with_more(&base, found), more: Box::default() },
        None if found.len() >= listed_tokens() => {
            Part::Shared { base: library.bitset(found), more: Box::default() }
        }
        None => Part::List(found.into()),
    }
}

/// Checks whether fewer than this many bits are set.
fn has_fewer(words: &[u32], bits: usize) -> bool {
    let mut count = 0;
    // PERF: most bitsets have this many bits in their first words.
    !words.iter().any(|word| {
        count += word.count_ones() as usize;
        count >= bits
    })
}

/// Passes a cached mask on.
fn hand_over(bound: &BoundProgram, answer: AnswerId, less: &[Words], sink: &mut dyn Sink) {
    if let Answer::Mask(part, several) = bound.memo().answer(answer) {
        sink.part(bound.library(), Some(answer), part, several, less);
    }
}

/// Returns the first key of a mask: the state, and its counters as far as a token can see.
pub(crate) fn state_key(bound: &BoundProgram, thread: &Thread) -> Key {
    let program = bound.program();
    let counters = match thread.at {
        At::Network(_) => 0,
        At::Leaf(leaf, _) => match program.leaf(leaf) {
            Leaf::Window { min, max, .. } => {
                let far = bound.distant(leaf) + 1;
                program.counts().view(thread.count, Bounds { min: *min, max: *max }, far)
            }
            Leaf::Text(_) => 0,
        },
    };
    Key { above: AnswerId::START, what: thread.at.key(), counters }
}

/// Records the nodes visited on the way to an answer. Returns the key of the answer.
pub(crate) fn remember_looks(bound: &BoundProgram, memo: &Memo, thread: &Thread, line: &Line) -> Key {
    let mut key = state_key(bound, thread);
    for at in 0..line.looks() {
        let node = memo.insert(key, Answer::Look(Look::at(line.look(at).0)));
        let Answer::Look(look) = memo.answer(node) else { continue };
        look.needs(line.room_needed(bound.program(), at));
        memo.ask(look, line.asked(at));
        key = look_key(bound, memo, node, line, at, look);
    }
    key
}

/// Returns the next key of a mask: the frames of a visited node, as far as the answers below it depend on them.
fn look_key(bound: &BoundProgram, memo: &Memo, above: AnswerId, line: &Line, at: usize, look: &Look) -> Key {
    let (node, frames) = line.look(at);
    match *frames {
        // Without forks, nodes are numbered from the top down.
        [(frame, below)] if below.index() == node.index() + 1 && node.index() == at => {
            frame_key(bound, memo, above, frame, look)
        }
        _ => {
            let words = |&(frame, below): &(Frame, LineNodeId)| {
                let counters = match frame.resume() {
                    Resume::Loop { index, rounds } => view_of_rounds(bound, index, rounds, u32::MAX),
                    Resume::Scope { register, .. } => u64::from(register.may_close()),
                    Resume::Words { set, .. } => u64::from(set.0),
                    _ => 0,
                };
                [u64::from(frame.raw) << 32 | u64::from(below.raw()), counters]
            };
            let frames: SmallVec<[u64; 8]> = frames.iter().flat_map(words).collect();
            Key { above, what: 1 << 63 | u64::from(memo.forks(&frames)), counters: 0 }
        }
    }
}

/// Does the same for a node with one frame.
pub(crate) fn frame_key(
    bound: &BoundProgram,
    memo: &Memo,
    above: AnswerId,
    frame: Frame,
    look: &Look,
) -> Key {
    let counters = match frame.resume() {
        Resume::Loop { index, rounds } => view_of_rounds(bound, index, rounds, look.enough()),
        // A cached mask must not depend on the values that were seen, only on whether the scope may close.
        Resume::Scope { register, .. } => u64::from(register.may_close()),
        Resume::Words { set, .. } => {
            memo.answers(look.asked(), set.0, |question| words::answer(bound.program(), frame, question))
        }
        _ => 0,
    };
    Key { above, what: u64::from(frame.raw), counters }
}

/// Returns the count of a loop as far as a token can see. Any room of `enough` or more is the same.
fn view_of_rounds(bound: &BoundProgram, index: LoopId, rounds: Count, enough: u32) -> u64 {
    let program = bound.program();
    program.counts().view_of_room(rounds, program.counted(index).bounds(), bound.horizon() + 1, enough)
}
