//! Finds tokens that behave alike.
//!
//! Two tokens are in one *class* if they lead from every state to the same state. Masks and transitions can then refer
//! to classes, of which there are few: for a phone number all tokens of three digits are one class, for a JSON document
//! the hundred thousand tokens that stay inside a string are one.
//!
//! Rows come as runs of positions. Where no row has a border, tokens cannot differ, so positions fall into *atoms*:
//!
//! ```text
//! row of state 2     |───── 5 ─────|        |── 7 ──|
//! row of state 3     |── 6 ──|── 8 ──|
//! atoms              |   a   |  b  | c |    |   d   |
//! ```
//! Atoms with the same targets are then put into one class. They are found by a sum: every run adds a number made of
//! its state and target to the atoms that it covers, which takes two additions for a run if the sum is formed from left
//! to right at the end. Equal sums are only a guess. While rows are translated, a check ensures that all atoms of a
//! class lead the same way. Should it ever fail, atoms are used as classes, which is correct as well, only larger.

use core::ops::Range;

use maskwright_automata::Grouped;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::walk::{Rows, Run};
use super::{IndexError, IndexLimits};

/// No class: the tokens are dead everywhere.
pub(super) const NONE: u32 = u32::MAX;

/// Number of pairs of atoms and rows below which waking other threads takes longer than the work. Not measured closely.
const MIN_PARALLEL_PAIRS: usize = 1 << 20;

/// The classes at which another target begins, with that target; 0 is the dead state.
type ClassRow = Box<[(u32, u32)]>;

/// The classes of tokens, and the rows in terms of them.
#[derive(Debug)]
pub(super) struct Classes {
    /// The start of each atom, and the end of the last.
    starts: Vec<u32>,
    /// The class of each atom.
    of_atom: Vec<u32>,
    /// The atoms of each class.
    atoms: Grouped<u32>,
    /// The number of tokens in the classes before each one, and the total.
    tokens_before: Vec<u32>,
    /// One row for each state.
    pub(super) rows: Vec<ClassRow>,
}

impl Classes {
    /// Finds the classes of the tokens of all rows. Afterwards the runs of the rows refer to atoms.
    pub(super) fn of(rows: &mut Rows<'_>, limits: &IndexLimits) -> Result<Self, IndexError> {
        let borders = Borders::of(rows);
        for run in &mut rows.runs {
            (run.start, run.end) = (borders.atom(run.start), borders.atom(run.end));
        }
        limits.check_steps(rows.runs.iter().map(|run| (run.end - run.start) as usize).sum())?;
        let starts = borders.positions();
        let (sums, live) = sums(rows, starts.len());
        let mut classes = Self::number(starts, &live, |atom| sums[atom]);
        let rows = classes.translate(rows).or_else(|| {
            let starts = core::mem::take(&mut classes.starts);
            classes = Self::number(starts, &live, |atom| atom as u64);
            classes.translate(rows)
        });
        // A single atom leads one way by definition, so the second attempt succeeds.
        classes.rows = rows.unwrap_or_default();
        Ok(classes)
    }

    /// Returns the number of classes.
    pub(super) fn len(&self) -> usize {
        self.tokens_before.len() - 1
    }

    /// Returns the number of tokens in a range of classes.
    pub(super) fn size(&self, classes: Range<u32>) -> u32 {
        self.tokens_before[classes.end as usize] - self.tokens_before[classes.start as usize]
    }

    /// Returns the ranges of positions of the tokens of some classes.
    pub(super) fn positions(&self, classes: Range<u32>) -> impl Iterator<Item = Range<usize>> {
        let atoms = self.atoms.within(classes).iter();
        atoms.map(|&atom| self.starts[atom as usize] as usize..self.starts[atom as usize + 1] as usize)
    }

    /// Returns all positions, ascending, as ranges with one class, or [`NONE`].
    pub(super) fn by_position(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        let ranges = self.starts.windows(2).map(|ends| ends[0] as usize..ends[1] as usize);
        self.of_atom.iter().copied().zip(ranges)
    }

    /// Assigns the same number to live atoms with the same key, in the order of their first positions.
    fn number(starts: Vec<u32>, live: &[bool], key: impl Fn(usize) -> u64) -> Self {
        let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
        let mut tokens_before: Vec<u32> = vec![0];
        let mut of_atom = Vec::with_capacity(live.len());
        for (atom, &live) in live.iter().enumerate() {
            if !live {
                of_atom.push(NONE);
                continue;
            }
            let class = *numbers.entry(key(atom)).or_insert_with(|| {
                tokens_before.push(0);
                tokens_before.len() as u32 - 2
            });
            tokens_before[class as usize + 1] += starts[atom + 1] - starts[atom];
            of_atom.push(class);
        }
        for class in 1..tokens_before.len() {
            tokens_before[class] += tokens_before[class - 1];
        }
        let live = of_atom.iter().copied().zip(0..).filter(|&(class, _)| class != NONE);
        let atoms = Grouped::new(tokens_before.len() - 1, live);
        Self { starts, of_atom, atoms, tokens_before, rows: Vec::new() }
    }

    /// Translates all rows to classes; `None` if the atoms of some class lead different ways.
    fn translate(&self, rows: &Rows<'_>) -> Option<Vec<ClassRow>> {
        let make = || Scratch { target: vec![0; self.len()], atoms: vec![0; self.len()], met: Vec::new() };
        if self.of_atom.len() * rows.len() < MIN_PARALLEL_PAIRS {
            let mut scratch = make();
            return rows.rows().map(|row| self.translate_row(row, &mut scratch)).collect();
        }
        let states = (0..rows.len()).into_par_iter();
        states.map_init(make, |scratch, state| self.translate_row(rows.row(state), scratch)).collect()
    }

    fn translate_row(&self, row: &[Run], scratch: &mut Scratch) -> Option<ClassRow> {
        let Scratch { target, atoms, met } = scratch;
        let mut one_way = true;
        for run in row {
            for &class in &self.of_atom[run.start as usize..run.end as usize] {
                let class = class as usize;
                if atoms[class] == 0 {
                    met.push(class as u32);
                    target[class] = run.target;
                }
                atoms[class] += 1;
                one_way &= target[class] == run.target;
            }
        }
        met.sort_unstable();
        let mut found: Vec<(u32, u32)> = Vec::new();
        let mut next = 0;
        for &class in met.iter() {
            let at = class as usize;
            one_way &= atoms[at] as usize == self.atoms.of(class).len();
            atoms[at] = 0;
            if class != next {
                // The classes in between are dead.
                if found.last().is_none_or(|last| last.1 != 0) {
                    found.push((next, 0));
                }
            }
            if found.last().is_none_or(|last| last.1 != target[at]) {
                found.push((class, target[at]));
            }
            next = class + 1;
        }
        if next < self.len() as u32 && found.last().is_some_and(|last| last.1 != 0) {
            found.push((next, 0));
        }
        met.clear();
        one_way.then(|| found.into())
    }
}

struct Scratch {
    target: Vec<u32>,
    /// Number of atoms of each class that were met in this row.
    atoms: Vec<u32>,
    met: Vec<u32>,
}

/// Returns a hash of "this state leads to that target".
fn mixed(state: usize, target: u32) -> u64 {
    let both = (state as u64) << 32 | u64::from(target);
    let once = (both ^ both >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (once ^ once >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Returns for each atom the sum over all rows, and whether any row contains it.
fn sums(rows: &Rows<'_>, atoms: usize) -> (Vec<u64>, Vec<bool>) {
    let mut changes = vec![(0u64, 0i32); atoms];
    for (state, row) in rows.rows().enumerate() {
        for run in row {
            let number = mixed(state, run.target);
            let (first, end) = (run.start as usize, run.end as usize);
            changes[first].0 = changes[first].0.wrapping_add(number);
            changes[first].1 += 1;
            changes[end].0 = changes[end].0.wrapping_sub(number);
            changes[end].1 -= 1;
        }
    }
    let (mut sum, mut cover) = (0u64, 0);
    // The last border is an end, not an atom.
    let sums = changes[..atoms - 1].iter().map(|change| {
        sum = sum.wrapping_add(change.0);
        cover += change.1;
        (sum, cover > 0)
    });
    sums.unzip()
}

/// A set of positions, numbered in ascending order.
struct Borders {
    words: Vec<u64>,
    /// Number of positions in the words before each one.
    before: Vec<u32>,
}

impl Borders {
    /// Collects where runs begin or end, and the first and last border.
    fn of(rows: &Rows<'_>) -> Self {
        let len = rows.tokens.len();
        let mut words = vec![0u64; len / 64 + 1];
        let mut add = |position: usize| words[position / 64] |= 1 << (position % 64);
        add(0);
        add(len);
        for run in &rows.runs {
            add(run.start as usize);
            add(run.end as usize);
        }
        let mut count = 0;
        let before = |word: &u64| {
            count += word.count_ones();
            count - word.count_ones()
        };
        let before = words.iter().map(before).collect();
        Self { words, before }
    }

    fn positions(&self) -> Vec<u32> {
        let mut positions = Vec::new();
        for (index, &word) in self.words.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                positions.push(index as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
            }
        }
        positions
    }

    /// Returns the atom that begins at a border.
    #[inline]
    fn atom(&self, border: u32) -> u32 {
        let (word, bit) = (border as usize / 64, border % 64);
        self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones()
    }
}
