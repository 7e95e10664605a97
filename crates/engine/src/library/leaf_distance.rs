//! How many tokens it takes to the end of a leaf.
//!
//! It is counted byte by byte, counters included, so the bytes that are tokens by themselves are needed. Vocabularies that lack some of
//! them are small or strange; for those each leaf is searched token by token.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use maskwright_automata::ByteSet;
use maskwright_vocab::{Trie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::clearing_map::ClearingMap;
use crate::count::Count;
use crate::leaf::{Action, Automaton, JSON_BODY, Leaf, LeafState, Text, TextNext, json_string};
use crate::program::{At, LeafId, Program};

/// There is no way to the end.
pub(crate) const NEVER: u32 = u32::MAX;
/// How many states of a leaf are searched.
const SEARCH: usize = 20_000;
/// How many distances that were searched are kept.
const SEARCHED: usize = 1 << 20;
/// How many distances a leaf's table may hold.
const TABLE: usize = 1 << 20;
/// A vocabulary up to this size is searched token by token.
const SMALL: usize = 8_192;
/// The bytes of UTF-8.
const UTF8: [(u8, u8); 2] = [(0x00, 0xBF), (0xC2, 0xF4)];

/// The distances of the leaves of one program with one vocabulary.
#[derive(Debug)]
pub(crate) struct LeafDistances {
    /// By leaf; nothing for those that are searched.
    leaves: Box<[Option<Table>]>,
    /// What was found by searching, by leaf, state and count.
    searched: ClearingMap<InLeaf, u32>,
    singles: ByteSet,
    /// For vocabularies without some bytes: all tokens.
    tokens: Option<Box<[Box<[u8]>]>>,
}

impl LeafDistances {
    pub(super) fn new(program: &Program, vocabulary: &Vocabulary) -> Self {
        let trie = vocabulary.trie();
        let is_token =
            |byte: &u8| trie.child(Trie::ROOT, *byte).is_some_and(|node| !trie.tokens(node).is_empty());
        let mut singles = ByteSet::EMPTY;
        (0..=u8::MAX).filter(is_token).for_each(|byte| singles.insert(byte));
        let lacks = !UTF8.iter().all(|(low, high)| ByteSet::range(*low, *high).is_subset(&singles));
        let tokens = (lacks && vocabulary.len() <= SMALL)
            .then(|| vocabulary.spelled().map(|(_, bytes)| bytes.into()).collect::<Box<[Box<[u8]>]>>());
        let mut known: FxHashMap<*const Automaton, usize> = FxHashMap::default();
        let mut leaves: Vec<Option<Table>> = Vec::new();
        for leaf in program.leaves() {
            let table = match leaf {
                Leaf::Window { automaton, min, .. } if tokens.is_none() => {
                    let at = *known.entry(std::sync::Arc::as_ptr(automaton)).or_insert(leaves.len());
                    let before = leaves.get(at).and_then(Option::as_ref).filter(|table| table.reaches(*min));
                    Some(before.cloned().unwrap_or_else(|| Table::new(automaton, singles, *min)))
                }
                _ => None,
            };
            leaves.push(table);
        }
        Self { leaves: leaves.into(), searched: ClearingMap::new([], SEARCHED), singles, tokens }
    }

    /// The bytes that are tokens.
    pub(super) fn singles(&self) -> ByteSet {
        self.singles
    }

    /// Whether leaves can be written byte by byte.
    pub(super) fn is_by_bytes(&self) -> bool {
        self.tokens.is_none()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let rows = |table: &Table| table.rows.iter().map(|row| size_of_val(&**row)).sum::<usize>();
        size_of_val(&*self.leaves) + self.leaves.iter().flatten().map(rows).sum::<usize>()
    }

    /// From a place in a leaf to its end.
    pub(crate) fn leaf(&self, program: &Program, leaf: LeafId, state: LeafState, count: u32) -> u32 {
        match (program.leaf(leaf), &self.leaves[leaf.index()]) {
            (Leaf::Text(text), _) if text.is_except() && self.tokens.is_none() => {
                self.except(program, text, state)
            }
            (Leaf::Window { min, max, .. }, Some(table)) if table.reaches(min.saturating_sub(count)) => {
                let (tokens, units) = table.from(state, min.saturating_sub(count));
                if units <= max.saturating_sub(count) {
                    tokens
                } else {
                    self.search(program, leaf, state, count)
                }
            }
            _ => self.search(program, leaf, state, count),
        }
    }

    /// The greatest distance of a state of a leaf that has begun so many units, or more; [`NEVER`] if that is not known.
    pub(crate) fn farthest(&self, program: &Program, leaf: LeafId, count: u32) -> u32 {
        match (program.leaf(leaf), &self.leaves[leaf.index()]) {
            (Leaf::Text(text), _) if text.is_except() && self.tokens.is_none() => {
                let plain = self.farthest(program, program.plain_string(), 0);
                plain.saturating_add(1)
            }
            (Leaf::Window { min, max, .. }, Some(table)) if table.reaches(min.saturating_sub(count)) => {
                let (tokens, units) = table.farthest(min.saturating_sub(count));
                if units <= max.saturating_sub(count) { tokens } else { NEVER }
            }
            _ => NEVER,
        }
    }

    /// Through a leaf, which takes a byte at least.
    pub(super) fn through(&self, program: &Program, leaf: LeafId) -> u32 {
        let start = program.leaf(leaf).start();
        if !program.leaf(leaf).is_nullable() {
            return self.leaf(program, leaf, start, 0);
        }
        let moves = self.moves(program, leaf, start, 0).into_iter();
        let behind = |(leaf, state, count)| self.leaf(program, leaf, state, count).saturating_add(1);
        moves.map(behind).min().unwrap_or(NEVER)
    }

    /// In a string that must not be one of some words: if its quote would complete one, one more character is enough.
    fn except(&self, program: &Program, text: &Text, state: LeafState) -> u32 {
        let string = json_string();
        let spelling = text.spelling(state);
        if spelling == string.start() {
            return match text.next(state, b'"') {
                TextNext::Stay(state) => self.except(program, text, state).saturating_add(1),
                TextNext::Plain(_) => 2,
                TextNext::Dead => NEVER,
            };
        }
        if spelling != JSON_BODY {
            // What is left of the escape or character, the quote, and perhaps a character before it.
            return self.leaf(program, program.plain_string(), spelling, 0).saturating_add(1);
        }
        if !matches!(text.next(state, b'"'), TextNext::Dead) {
            return 1;
        }
        let marks = ByteSet::byte(b'"').union(ByteSet::byte(b'\\'));
        let other = ByteSet::range(b' ', b'~').intersection(self.singles).difference(marks);
        if other.difference(text.on_list(state)).is_empty() { NEVER } else { 2 }
    }

    /// Looks for the end of a leaf, breadth first.
    fn search(&self, program: &Program, leaf: LeafId, state: LeafState, count: u32) -> u32 {
        let key = (leaf, state, count);
        if let Some(found) = self.searched.get(&key) {
            return found;
        }
        self.searched.add(key, self.breadth_first(program, key), |found| *found)
    }

    fn breadth_first(&self, program: &Program, start: InLeaf) -> u32 {
        let mut seen = FxHashSet::from_iter([start]);
        let mut work = VecDeque::from([(start, 0u32)]);
        while let Some(((leaf, state, count), tokens)) = work.pop_front() {
            if is_end(program, leaf, state, count) {
                return tokens;
            }
            if seen.len() > SEARCH {
                return NEVER;
            }
            for next in self.moves(program, leaf, state, count) {
                if seen.insert(next) {
                    work.push_back((next, tokens + 1));
                }
            }
        }
        NEVER
    }

    /// Where one token leads inside a leaf.
    fn moves(&self, program: &Program, leaf: LeafId, state: LeafState, count: u32) -> Vec<InLeaf> {
        let mut found = FxHashSet::default();
        let mut read = |bytes: &[u8]| {
            let place =
                bytes.iter().try_fold((leaf, state, count), |place, byte| after(program, place, *byte));
            found.extend(place);
        };
        match &self.tokens {
            Some(tokens) => tokens.iter().for_each(|bytes| read(bytes)),
            None => self.singles.iter().for_each(|byte| read(&[byte])),
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable();
        found
    }
}

/// A place in a leaf, and the units that it has begun.
pub(crate) type InLeaf = (LeafId, LeafState, u32);

/// Where a byte leads inside a leaf.
pub(super) fn after(program: &Program, (leaf, state, count): InLeaf, byte: u8) -> Option<InLeaf> {
    match program.step_leaf(leaf, state, Count::of(count), byte)? {
        (At::Leaf(leaf, state), count) => Some((leaf, state, count.single()?)),
        (At::Network(_), _) => None,
    }
}

fn is_end(program: &Program, leaf: LeafId, state: LeafState, count: u32) -> bool {
    match program.leaf(leaf) {
        Leaf::Window { automaton, min, .. } => count >= *min && automaton.is_accepting(state),
        Leaf::Text(_) => false,
    }
}

/// The distances of an automaton's states, in bytes, by the number of units that must still begin.
#[derive(Clone, Debug)]
struct Table {
    /// For 0, 1, … units: the distance of each state, and the units that begin on the way.
    rows: Vec<Box<[(u32, u32)]>>,
    /// The same for the farthest state of each row and of those before it: a token may begin more units than one.
    farthest: Vec<(u32, u32)>,
    /// If all further rows are the last one and a constant for each: that constant.
    even: Option<u32>,
}

impl Table {
    fn new(automaton: &Automaton, bytes: ByteSet, min: u32) -> Self {
        let edges = Edges::of(automaton, bytes);
        let mut table = Self { rows: Vec::new(), farthest: Vec::new(), even: None };
        table.push(Self::first(automaton, &edges));
        while !table.reaches(min) && table.rows.len() * automaton.len() < TABLE {
            table.add(&edges);
        }
        table
    }

    /// Whether the table knows the distances for so many units.
    fn reaches(&self, units: u32) -> bool {
        self.even.is_some() || (units as usize) < self.rows.len()
    }

    /// Nothing must begin any more.
    fn first(automaton: &Automaton, edges: &Edges) -> Box<[(u32, u32)]> {
        let ends = automaton.live_states().filter(|state| automaton.is_accepting(*state));
        edges.nearest(ends.map(|state| ((0, 0), state)), |_| true)
    }

    /// One more unit must begin: pass on to a unit, and then as in the last row.
    fn add(&mut self, edges: &Edges) {
        let Some(last) = self.rows.last() else { return };
        let begins = edges.list.iter().filter(|edge| edge.action == Action::Unit);
        let starts = begins.filter_map(|edge| {
            let (tokens, units) = last[edge.to.index()];
            (tokens != NEVER).then(|| ((tokens + 1, units + 1), edge.from))
        });
        let row = edges.nearest(starts, |action| action == Action::Pass);
        // If a row is the one before and a constant, all that follow are: each is the same function of the one before.
        let mut steps = row.iter().zip(last).map(|(new, old)| match (new.0, old.0) {
            (NEVER, NEVER) => None,
            (new_tokens, old_tokens) => {
                Some((new_tokens.wrapping_sub(old_tokens), new.1.wrapping_sub(old.1)))
            }
        });
        let first = steps.clone().flatten().next();
        let same = steps.all(|step| step.is_none() || step == first);
        self.even = first.filter(|step| same && step.1 == 1 && step.0 < NEVER / 2).map(|step| step.0);
        self.push(row);
    }

    fn push(&mut self, row: Box<[(u32, u32)]>) {
        let reached = || row.iter().filter(|to| to.0 != NEVER);
        let most = reached().map(|to| to.0).max().zip(reached().map(|to| to.1).max());
        let before = self.farthest.last().filter(|before| before.0 != NEVER);
        self.farthest.push(match (most, before) {
            (Some((tokens, units)), Some(before)) => (tokens.max(before.0), units.max(before.1 + 1)),
            (Some(most), None) => most,
            (None, _) => (NEVER, 0),
        });
        self.rows.push(row);
    }

    /// The distance of a state if so many units must still begin, and how many begin on the way.
    fn from(&self, state: LeafState, need: u32) -> (u32, u32) {
        self.beyond(need, |at| self.rows[at].get(state.index()).copied().unwrap_or((NEVER, 0)))
    }

    fn farthest(&self, need: u32) -> (u32, u32) {
        self.beyond(need, |at| self.farthest[at])
    }

    fn beyond(&self, need: u32, of: impl Fn(usize) -> (u32, u32)) -> (u32, u32) {
        let at = (need as usize).min(self.rows.len() - 1);
        let more = need - at as u32;
        match (of(at), self.even) {
            ((NEVER, _), _) => (NEVER, 0),
            (known, _) if more == 0 => known,
            ((tokens, units), Some(step)) => {
                (tokens.saturating_add(step.saturating_mul(more)), units.saturating_add(more))
            }
            (_, None) => (NEVER, 0),
        }
    }
}

/// The steps of an automaton, each once however many bytes it has.
struct Edges {
    states: usize,
    /// By their targets.
    list: Vec<Edge>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Edge {
    from: LeafState,
    to: LeafState,
    action: Action,
}

impl Edges {
    fn of(automaton: &Automaton, bytes: ByteSet) -> Self {
        let mut edges: Vec<Edge> = Vec::new();
        for from in automaton.live_states() {
            let start = edges.len();
            for byte in automaton.live(from).intersection(bytes).iter() {
                let step = automaton.step(from, byte);
                let edge = Edge { from, to: step.target(), action: step.action() };
                if !step.is_dead() && !edges[start..].contains(&edge) {
                    edges.push(edge);
                }
            }
        }
        edges.sort_unstable_by_key(|edge| edge.to);
        Self { states: automaton.len(), list: edges }
    }

    /// The least distances, given those of some states, along the steps with some actions.
    fn nearest(
        &self,
        known: impl Iterator<Item = ((u32, u32), LeafState)>,
        is_taken: impl Fn(Action) -> bool,
    ) -> Box<[(u32, u32)]> {
        let mut work: BinaryHeap<Reverse<((u32, u32), LeafState)>> = known.map(Reverse).collect();
        let mut found = vec![(NEVER, NEVER); self.states];
        while let Some(Reverse((to, state))) = work.pop() {
            if to >= found[state.index()] {
                continue;
            }
            found[state.index()] = to;
            let first = self.list.partition_point(|edge| edge.to < state);
            for edge in self.list[first..].iter().take_while(|edge| edge.to == state) {
                if is_taken(edge.action) {
                    let units = u32::from(edge.action == Action::Unit);
                    work.push(Reverse(((to.0 + 1, to.1 + units), edge.from)));
                }
            }
        }
        found.into()
    }
}
