//! Computes how many tokens it takes to the end of a leaf.
//!
//! Distances are counted byte by byte, counters included, by means of the bytes that are tokens. Vocabularies that lack
//! some of these bytes are small or unusual; with them each leaf is searched token by token.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use maskwright_automata::ByteSet;
use maskwright_vocab::{Trie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::clearing_map::ClearingMap;
use crate::count::Count;
use crate::leaf::{Action, Automaton, JSON_BODY, Leaf, LeafState, Text, TextNext, json_string};
use crate::program::{At, LeafId, Program};

/// The end cannot be reached.
pub(crate) const NEVER: u32 = u32::MAX;
/// The greatest number of states of a leaf that a search visits.
const MAX_SEARCH_STATES: usize = 20_000;
/// The greatest number of searched distances that are kept.
const MAX_KEPT_DISTANCES: usize = 1 << 20;
/// The greatest number of distances in a leaf's table.
const MAX_TABLE_DISTANCES: usize = 1 << 20;
/// Vocabularies up to this size are searched token by token.
const MAX_SMALL_VOCABULARY: usize = 8_192;
/// The bytes that occur in UTF-8.
const UTF8: [(u8, u8); 2] = [(0x00, 0xBF), (0xC2, 0xF4)];

/// The distances of the leaves of one program with one vocabulary.
#[derive(Debug)]
pub(crate) struct LeafDistances {
    /// The table of each leaf; `None` for those that are searched.
    leaves: Box<[Option<Table>]>,
    /// The distances that were found by searching, by leaf, state and count.
    searched: ClearingMap<InLeaf, u32>,
    singles: ByteSet,
    /// All tokens, for small vocabularies without some bytes.
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
        let tokens = (lacks && vocabulary.len() <= MAX_SMALL_VOCABULARY)
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
        Self { leaves: leaves.into(), searched: ClearingMap::new([], MAX_KEPT_DISTANCES), singles, tokens }
    }

    /// Returns the bytes that are tokens.
    pub(super) fn singles(&self) -> ByteSet {
        self.singles
    }

    /// Checks whether leaves can be written byte by byte.
    pub(super) fn is_by_bytes(&self) -> bool {
        self.tokens.is_none()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let rows = |table: &Table| table.rows.iter().map(|row| size_of_val(&**row)).sum::<usize>();
        size_of_val(&*self.leaves) + self.leaves.iter().flatten().map(rows).sum::<usize>()
    }

    /// Returns the distance from a place in a leaf to its end.
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

    /// Returns the greatest distance of a state of a leaf that has begun at least `count` units; [`NEVER`] if that is
    /// not known.
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

    /// Returns the distance through a leaf, which takes at least a byte.
    pub(super) fn through(&self, program: &Program, leaf: LeafId) -> u32 {
        let start = program.leaf(leaf).start();
        if !program.leaf(leaf).is_nullable() {
            return self.leaf(program, leaf, start, 0);
        }
        let moves = self.moves(program, leaf, start, 0).into_iter();
        let distance = |(leaf, state, count)| self.leaf(program, leaf, state, count).saturating_add(1);
        moves.map(distance).min().unwrap_or(NEVER)
    }

    /// Returns the distance in a string that must not be one of some words: if its quote would complete one, one more
    /// character is enough.
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
            // The rest of the escape or character, the quote, and possibly a character before it.
            return self.leaf(program, program.plain_string(), spelling, 0).saturating_add(1);
        }
        if !matches!(text.next(state, b'"'), TextNext::Dead) {
            return 1;
        }
        let marks = ByteSet::byte(b'"').union(ByteSet::byte(b'\\'));
        let other = ByteSet::range(b' ', b'~').intersection(self.singles).difference(marks);
        if other.difference(text.bytes_towards_words(state)).is_empty() { NEVER } else { 2 }
    }

    /// Searches for the end of a leaf, breadth-first.
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
            if seen.len() > MAX_SEARCH_STATES {
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

    /// Returns the places that one token leads to inside a leaf.
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

/// Returns the place after a byte, if it is inside the leaf.
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

/// The distances of an automaton's states in bytes, by the number of units that must still begin.
#[derive(Clone, Debug)]
struct Table {
    /// For 0, 1, … units: the distance of each state, and the units that begin on the way.
    rows: Vec<Box<[(u32, u32)]>>,
    /// For each row, the farthest state of this row and those before it: a token may begin more than one unit.
    farthest: Vec<(u32, u32)>,
    /// If each further row is the one before plus a constant: that constant.
    even: Option<u32>,
}

impl Table {
    fn new(automaton: &Automaton, bytes: ByteSet, min: u32) -> Self {
        let edges = Edges::of(automaton, bytes);
        let mut table = Self { rows: Vec::new(), farthest: Vec::new(), even: None };
        table.push(Self::first(automaton, &edges));
        while !table.reaches(min) && table.rows.len() * automaton.len() < MAX_TABLE_DISTANCES {
            table.add(&edges);
        }
        table
    }

    /// Checks whether the table knows the distances for this many units.
    fn reaches(&self, units: u32) -> bool {
        self.even.is_some() || (units as usize) < self.rows.len()
    }

    /// Computes the row in which no more units must begin.
    fn first(automaton: &Automaton, edges: &Edges) -> Box<[(u32, u32)]> {
        let ends = automaton.live_states().filter(|state| automaton.is_accepting(*state));
        edges.nearest(ends.map(|state| ((0, 0), state)), |_| true)
    }

    /// Adds the row for one more unit: move to the next unit, and continue as in the last row.
    fn add(&mut self, edges: &Edges) {
        let Some(last) = self.rows.last() else { return };
        let begins = edges.list.iter().filter(|edge| edge.action == Action::Unit);
        let starts = begins.filter_map(|edge| {
            let (tokens, units) = last[edge.to.index()];
            (tokens != NEVER).then(|| ((tokens + 1, units + 1), edge.from))
        });
        let row = edges.nearest(starts, |action| action == Action::Pass);
        // If a row is the one before plus a constant, so are all further rows: each is the same function of the one
        // before.
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

    /// Returns the distance of a state if `need` units must still begin, and how many begin on the way.
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

/// The steps of an automaton, without duplicates for several bytes.
struct Edges {
    states: usize,
    /// Sorted by target.
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

    /// Computes the least distances, given those of some states, along the steps whose actions are allowed.
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
