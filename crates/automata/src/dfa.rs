//! The frozen automaton: deterministic, minimal, dense.
//!
//! ```text
//! [a-z]+@      class of byte:   @ → 1   a-z → 2   all others → 0
//!
//!              class   0   1   2
//!   state 0 (dead)     0   0   0
//!   state 1 (start)    0   0   2
//!   state 2            0   3   2
//!   state 3 accepts    0   0   0
//! ```
//!
//! A transition takes two loads: the byte's class, and the cell of the table. The length of a row is the number of
//! classes, rounded up to a power of two, so that a state's row is found by a shift.
//!
//! State 0 is dead and always exists, even where nothing leads to it. Every other state can reach an accepting one, no
//! two states have the same future, and the numbering is breadth-first by ascending byte. So the automaton depends on
//! the language alone, and `==` compares languages.

use core::fmt;
use core::hash::Hash;

use rustc_hash::FxHashMap;

use crate::{ByteClasses, ByteSet};

/// A state of a [`Dfa`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DfaState(pub u32);

impl DfaState {
    /// Returns the position of the state among all states.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for DfaState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The minimal deterministic automaton of a regular language.
///
/// ```
/// use maskwright_automata::{ByteSet, Dfa, Exprs, Limits};
/// let mut e = Exprs::new();
/// let digit = e.set(ByteSet::range(b'0', b'9'));
/// let digits = e.repeat(digit, 1, None);
/// let twice = { let more = e.star(digit); e.concat([digit, more]) };
/// let dfa = Dfa::build(&mut e, digits, &Limits::default()).unwrap();
/// assert_eq!(dfa, Dfa::build(&mut e, twice, &Limits::default()).unwrap());
///
/// let state = dfa.next(dfa.start(), b'7');
/// assert!(dfa.is_accepting(state));
/// assert_eq!(dfa.next(state, b'x'), Dfa::DEAD);
/// assert_eq!(dfa.live(state), ByteSet::range(b'0', b'9'));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dfa {
    classes: ByteClasses,
    /// The binary logarithm of the length of a row.
    shift: u32,
    table: Box<[DfaState]>,
    accepting: Box<[bool]>,
    live: Box<[ByteSet]>,
}

impl Dfa {
    /// The state from which nothing is accepted.
    pub const DEAD: DfaState = DfaState(0);

    /// Creates the automaton of the empty language, which has only the dead state.
    pub fn never() -> Self {
        Self::freeze(&ByteClasses::new([]), &[Self::DEAD], [false].into())
    }

    /// Packs the rows of a minimal automaton whose states are already numbered.
    pub(crate) fn freeze(classes: &ByteClasses, rows: &[DfaState], accepting: Box<[bool]>) -> Self {
        let (width, count) = (classes.len(), accepting.len());
        let (classes, kept) = classes.merge(&column_numbers(rows, width));
        let shift = kept.len().next_power_of_two().trailing_zeros();
        let mut table = vec![Self::DEAD; count << shift].into_boxed_slice();
        let mut live = vec![ByteSet::EMPTY; count].into_boxed_slice();
        let sets = classes.sets();
        for state in 0..count {
            for (class, &old) in kept.iter().enumerate() {
                let target = rows[state * width + old];
                table[state << shift | class] = target;
                if target != Self::DEAD {
                    live[state] = live[state].union(sets[class]);
                }
            }
        }
        Self { classes, shift, table, accepting, live }
    }

    /// Returns the start state: state 1, or the dead state if the language is empty.
    #[inline]
    pub fn start(&self) -> DfaState {
        DfaState(u32::from(self.len() > 1))
    }

    /// Returns the state after a byte. Panics if the state is not one of this automaton.
    #[inline]
    pub fn next(&self, state: DfaState, byte: u8) -> DfaState {
        self.table[state.index() << self.shift | usize::from(self.classes.class(byte))]
    }

    /// Returns the states after each class of bytes, followed by meaningless ones, to read many bytes from one state.
    /// Panics if the state is not one of this automaton.
    #[inline]
    pub fn row(&self, state: DfaState) -> &[DfaState] {
        &self.table[state.index() << self.shift..(state.index() + 1) << self.shift]
    }

    /// Returns the state after some bytes.
    #[inline]
    pub fn run(&self, state: DfaState, bytes: &[u8]) -> DfaState {
        bytes.iter().fold(state, |state, &byte| self.next(state, byte))
    }

    /// Checks whether the bytes that lead to a state are in the language.
    #[inline]
    pub fn is_accepting(&self, state: DfaState) -> bool {
        self.accepting[state.index()]
    }

    /// Returns the bytes after which something can still be accepted.
    #[inline]
    pub fn live(&self, state: DfaState) -> ByteSet {
        self.live[state.index()]
    }

    /// Returns all states, the dead one first.
    pub fn states(&self) -> impl DoubleEndedIterator<Item = DfaState> + ExactSizeIterator + Clone + use<> {
        (0..self.accepting.len()).map(|at| DfaState(at as u32))
    }

    /// Returns the number of states, including the dead one.
    #[inline]
    pub fn len(&self) -> usize {
        self.accepting.len()
    }

    /// Returns the classes of bytes that the automaton distinguishes.
    pub fn classes(&self) -> &ByteClasses {
        &self.classes
    }

    /// Checks whether the language is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Checks whether the bytes are in the language.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        self.is_accepting(self.run(self.start(), bytes))
    }

    /// Returns the transitions of a state to live states, by ascending smallest byte, with one entry for each target.
    pub fn edges(&self, state: DfaState) -> Vec<(ByteSet, DfaState)> {
        self.edges_by(state, &self.classes.sets())
    }

    /// Like [`Self::edges`], for callers that query many states: `sets` are the bytes of all classes.
    pub(crate) fn edges_by(&self, state: DfaState, sets: &[ByteSet]) -> Vec<(ByteSet, DfaState)> {
        let mut edges: Vec<(ByteSet, DfaState)> = Vec::new();
        for (&set, &target) in sets.iter().zip(self.row(state)) {
            match edges.iter_mut().find(|edge| edge.1 == target) {
                _ if target == Self::DEAD => {}
                Some(edge) => edge.0 = edge.0.union(set),
                None => edges.push((set, target)),
            }
        }
        edges
    }

    /// Returns the shortest member of the language, and the least of these; `None` if the language is empty.
    pub fn witness(&self) -> Option<Vec<u8>> {
        self.witness_from(self.start())
    }

    /// Returns the shortest string, and the least of these, that leads from a state to an accepting one.
    pub fn witness_from(&self, state: DfaState) -> Option<Vec<u8>> {
        let mut came_from: FxHashMap<DfaState, (DfaState, u8)> = FxHashMap::default();
        let mut queue = vec![state];
        let mut at = 0;
        while let Some(&here) = queue.get(at) {
            if self.is_accepting(here) {
                return Some(trace_back(&came_from, state, here));
            }
            for byte in self.classes.representatives() {
                let target = self.next(here, byte);
                if target != Self::DEAD && target != state && !came_from.contains_key(&target) {
                    came_from.insert(target, (here, byte));
                    queue.push(target);
                }
            }
            at += 1;
        }
        None
    }

    /// Returns all members of the language in the order of their bytes, if there are at most `most` of them.
    ///
    /// ```
    /// use maskwright_automata::{Dfa, Exprs, Limits};
    /// let mut e = Exprs::new();
    /// let (a, b) = (e.bytes(b"a"), e.bytes(b"b"));
    /// let either = e.alt([a, b]);
    /// let (few, many) = (e.repeat(either, 0, Some(2)), e.star(either));
    /// let few = Dfa::build(&mut e, few, &Limits::default())?;
    /// let words: [&[u8]; 7] = [b"", b"a", b"aa", b"ab", b"b", b"ba", b"bb"];
    /// assert_eq!(few.members(7).unwrap(), words);
    /// assert_eq!(few.members(6), None);
    /// assert_eq!(Dfa::build(&mut e, many, &Limits::default())?.members(1_000), None);
    /// # Ok::<(), maskwright_automata::LimitError>(())
    /// ```
    pub fn members(&self, most: usize) -> Option<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        let mut path = Vec::new();
        // The remaining bytes of each state on the path, the next one last. A path longer than the number of states
        // contains a loop.
        let mut work = vec![(self.start(), self.bytes_from(self.start()))];
        if self.is_accepting(self.start()) {
            found.push(Vec::new());
        }
        while let Some((state, bytes)) = work.last_mut() {
            let Some(byte) = bytes.pop() else {
                work.pop();
                path.pop();
                continue;
            };
            let next = self.next(*state, byte);
            path.push(byte);
            if self.is_accepting(next) {
                found.push(path.clone());
            }
            if found.len() > most || path.len() > self.len() {
                return None;
            }
            work.push((next, self.bytes_from(next)));
        }
        Some(found)
    }

    /// Returns the bytes that lead from a state to live ones, descending.
    fn bytes_from(&self, state: DfaState) -> Vec<u8> {
        (0..=255u8).rev().filter(|&byte| self.next(state, byte) != Self::DEAD).collect()
    }

    /// Returns the memory in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + size_of::<[u8; 256]>()
            + size_of_val(&*self.table)
            + size_of_val(&*self.accepting)
            + size_of_val(&*self.live)
    }
}

/// Assigns a number to each column; equal columns get equal numbers.
fn column_numbers(rows: &[DfaState], width: usize) -> Vec<usize> {
    // PERF: the table is read row by row; only columns with equal hashes are compared cell by cell.
    let mut hashes = vec![0u64; width];
    for row in rows.chunks_exact(width) {
        for (hash, &target) in hashes.iter_mut().zip(row) {
            *hash = (hash.rotate_left(5) ^ u64::from(target.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    let column = |class: usize| rows.iter().skip(class).step_by(width);
    let equal = |a: usize, b: usize| hashes[a] == hashes[b] && column(a).eq(column(b));
    (0..width).map(|class| (0..class).find(|&earlier| equal(earlier, class)).unwrap_or(class)).collect()
}

/// Returns the bytes on the path from `start` to `end`.
pub(crate) fn trace_back<S: Copy + Eq + Hash>(
    came_from: &FxHashMap<S, (S, u8)>,
    start: S,
    end: S,
) -> Vec<u8> {
    let (mut path, mut at) = (Vec::new(), end);
    while at != start
        && let Some(&(before, byte)) = came_from.get(&at)
    {
        path.push(byte);
        at = before;
    }
    path.reverse();
    path
}
