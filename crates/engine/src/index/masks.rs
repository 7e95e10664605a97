//! Stores masks as a few bitsets and many small differences.
//!
//! A mask of 128,000 tokens takes 16 KB as a bitset. Most states of an index have the mask of another state, or nearly:
//! one more character may follow, or one fewer. So a mask is stored in one of two ways:
//!
//! * few tokens: a list;
//! * many tokens: the closest *base*, which tokens to add, and which to remove.
//!
//! A mask that is far from all bases becomes a base itself. Bases are copied completely into the caller's row, so a few
//! of them stay in the processor's cache.

use rustc_hash::FxHashMap;

use super::classes::{Classes, NONE};
use super::walk::Rows;
use super::{IndexError, IndexLimits};

/// Maximum number of tokens in a list, or in a difference from a base. PERF: setting a bit takes about a nanosecond,
/// copying a base two hundred; and a base takes as much memory as 4,000 numbers.
const MAX_PATCH_TOKENS: u32 = 192;

/// Number of earlier bases, the next larger ones, that a new base may begin as a copy of. PERF: for a schema, setting
/// and clearing the bits that differ is a tenth of setting all.
const MAX_CANDIDATES: usize = 4;

/// No base: a list.
pub(super) const NO_BASE: u32 = u32::MAX;

/// The masks of an index.
#[derive(Debug, Default)]
pub(super) struct Masks {
    /// For each state, the number of its mask.
    pub(super) of_state: Vec<u32>,
    pub(super) list: Vec<Mask>,
    /// Bitsets, concatenated.
    pub(super) bases: Vec<u32>,
    /// The tokens to add and to remove, mask by mask.
    pub(super) patches: Vec<u32>,
    /// The classes of each base.
    ranges: Vec<Ranges>,
}

/// A mask: a base, and how many tokens to add and to remove.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mask {
    pub(super) base: u32,
    pub(super) add: u32,
    pub(super) remove: u32,
}

/// The classes that a mask allows, as ranges.
type Ranges = Box<[(u32, u32)]>;

impl Masks {
    /// Computes the masks of all rows. `all_tokens` is the bitset of all tokens that the rows refer to.
    pub(super) fn of(
        rows: &Rows<'_>,
        classes: &Classes,
        all_tokens: &[u32],
        limits: &IndexLimits,
    ) -> Result<Self, IndexError> {
        let mut steps = 0;
        let mut masks = Self::default();
        let mut known: FxHashMap<Ranges, u32> = FxHashMap::default();
        let mut bases: Vec<(Ranges, u32)> = Vec::new();
        let mut all: Vec<(Ranges, u32)> = Vec::new();
        for row in &classes.rows {
            let ranges = live(row, classes.len() as u32);
            let number = *known.entry(ranges).or_insert_with_key(|ranges| {
                all.push((ranges.clone(), count(ranges, classes)));
                all.len() as u32 - 1
            });
            masks.of_state.push(number);
        }
        // The largest first: smaller masks are then close to an existing base.
        let mut order: Vec<u32> = (0..all.len() as u32).collect();
        order.sort_by_key(|&mask| core::cmp::Reverse(all[mask as usize].1));
        let mut made: Vec<(Mask, Vec<u32>)> =
            vec![(Mask { base: NO_BASE, add: 0, remove: 0 }, Vec::new()); all.len()];
        let writer = Writer { rows, classes, all: all_tokens };
        for number in order {
            let (ranges, size) = &all[number as usize];
            made[number as usize] = if *size <= MAX_PATCH_TOKENS {
                (Mask { base: NO_BASE, add: *size, remove: 0 }, writer.tokens(ranges))
            } else if let Some((base, difference)) = nearest(&bases, ranges, *size, classes, &mut steps) {
                let (add, remove) = (writer.tokens(&difference.add), writer.tokens(&difference.remove));
                let mask = Mask { base: base as u32, add: add.len() as u32, remove: remove.len() as u32 };
                (mask, [add, remove].concat())
            } else {
                steps += writer.write_base(ranges, *size, &bases, &mut masks.bases);
                bases.push((ranges.clone(), *size));
                (Mask { base: bases.len() as u32 - 1, add: 0, remove: 0 }, Vec::new())
            };
            limits.check_steps(steps)?;
            limits.check_bytes(4 * masks.bases.len())?;
        }
        for (mask, patch) in made {
            masks.list.push(mask);
            masks.patches.extend(patch);
        }
        masks.ranges = bases.into_iter().map(|(ranges, _)| ranges).collect();
        Ok(masks)
    }

    /// Returns a base that contains a class.
    pub(super) fn base_with(&self, class: u32) -> Option<u32> {
        let holds = |ranges: &Ranges| ranges.iter().any(|range| (range.0..range.1).contains(&class));
        self.ranges.iter().position(holds).map(|base| base as u32)
    }
}

/// Returns the classes that are not dead in a row.
fn live(row: &[(u32, u32)], classes: u32) -> Ranges {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let ends = row.iter().skip(1).map(|next| next.0).chain([classes]);
    for (&(start, target), end) in row.iter().zip(ends) {
        match ranges.last_mut() {
            _ if target == 0 => {}
            Some(last) if last.1 == start => last.1 = end,
            _ => ranges.push((start, end)),
        }
    }
    ranges.into()
}

fn count(ranges: &[(u32, u32)], classes: &Classes) -> u32 {
    ranges.iter().map(|&(start, end)| classes.size(start..end)).sum()
}

/// Classes to add to a base, and to remove from it.
#[derive(Default)]
struct Difference {
    add: Vec<(u32, u32)>,
    remove: Vec<(u32, u32)>,
}

/// Returns the base that differs least, if it differs in at most [`MAX_PATCH_TOKENS`] tokens.
fn nearest(
    bases: &[(Ranges, u32)],
    ranges: &[(u32, u32)],
    size: u32,
    classes: &Classes,
    steps: &mut usize,
) -> Option<(usize, Difference)> {
    let mut best: Option<(usize, Difference)> = None;
    let mut least = MAX_PATCH_TOKENS + 1;
    for (number, (base, base_size)) in bases.iter().enumerate() {
        *steps += 1;
        if size.abs_diff(*base_size) >= least {
            continue;
        }
        *steps += base.len() + ranges.len();
        if let Some((distance, difference)) = difference(base, ranges, least, classes) {
            least = distance;
            best = Some((number, difference));
        }
    }
    best
}

/// Returns the difference between two masks, if it is fewer than `limit` tokens.
fn difference(
    base: &[(u32, u32)],
    mask: &[(u32, u32)],
    limit: u32,
    classes: &Classes,
) -> Option<(u32, Difference)> {
    let mut found = Difference::default();
    let mut distance = 0;
    let (mut base, mut mask) = (base.iter().copied().peekable(), mask.iter().copied().peekable());
    let mut at = 0;
    loop {
        // The part from `at` on in which neither changes.
        let part = |range: Option<&(u32, u32)>| match range {
            Some(&(start, end)) if start <= at => (true, end),
            Some(&(start, _)) => (false, start),
            None => (false, u32::MAX),
        };
        let ((in_base, base_end), (in_mask, mask_end)) = (part(base.peek()), part(mask.peek()));
        let end = base_end.min(mask_end);
        if end == u32::MAX {
            return Some((distance, found));
        }
        if in_base != in_mask {
            distance += classes.size(at..end);
            if distance >= limit {
                return None;
            }
            let list = if in_mask { &mut found.add } else { &mut found.remove };
            list.push((at, end));
        }
        base.next_if(|range| range.1 <= end);
        mask.next_if(|range| range.1 <= end);
        at = end;
    }
}

/// Translates classes to tokens.
struct Writer<'a> {
    rows: &'a Rows<'a>,
    classes: &'a Classes,
    /// The bitset of all tokens.
    all: &'a [u32],
}

impl Writer<'_> {
    fn for_each(&self, ranges: &[(u32, u32)], mut visit: impl FnMut(u32)) {
        for &(start, end) in ranges {
            for positions in self.classes.positions(start..end) {
                for &token in &self.rows.tokens[positions] {
                    visit(token);
                }
            }
        }
    }

    fn tokens(&self, ranges: &[(u32, u32)]) -> Vec<u32> {
        let mut tokens = Vec::new();
        self.for_each(ranges, |token| tokens.push(token));
        tokens.sort_unstable();
        tokens
    }

    /// Appends a bitset. Returns how many steps it took to find what to begin with: a base, all tokens, or none,
    /// whichever differs least.
    fn write_base(
        &self,
        ranges: &[(u32, u32)],
        size: u32,
        others: &[(Ranges, u32)],
        bases: &mut Vec<u32>,
    ) -> usize {
        let (first, words) = (bases.len(), self.all.len());
        let without = self.rows.tokens.len() as u32 - size;
        let (mut least, mut best, mut steps) = (size.min(without), None, 0);
        for (number, (other, _)) in others.iter().enumerate().rev().take(MAX_CANDIDATES) {
            steps += other.len() + ranges.len();
            if let Some((distance, difference)) = difference(other, ranges, least, self.classes) {
                least = distance;
                best = Some((number, difference));
            }
        }
        match best {
            Some((number, difference)) => {
                bases.extend_from_within(number * words..(number + 1) * words);
                let base = &mut bases[first..];
                self.for_each(&difference.add, |token| set(base, token));
                self.for_each(&difference.remove, |token| clear(base, token));
            }
            None if without < size => {
                bases.extend_from_slice(self.all);
                let base = &mut bases[first..];
                self.for_each(&complement(ranges, self.classes.len() as u32), |token| clear(base, token));
                for (_, positions) in self.classes.by_position().filter(|(class, _)| *class == NONE) {
                    self.rows.tokens[positions].iter().for_each(|&token| clear(base, token));
                }
            }
            None => {
                bases.resize(first + words, 0);
                let base = &mut bases[first..];
                self.for_each(ranges, |token| set(base, token));
            }
        }
        steps
    }
}

fn set(bits: &mut [u32], token: u32) {
    bits[token as usize / 32] |= 1 << (token % 32);
}

fn clear(bits: &mut [u32], token: u32) {
    bits[token as usize / 32] &= !(1 << (token % 32));
}

/// Returns the classes that are in none of these ranges.
fn complement(ranges: &[(u32, u32)], classes: u32) -> Vec<(u32, u32)> {
    let starts = [0].into_iter().chain(ranges.iter().map(|range| range.1));
    let ends = ranges.iter().map(|range| range.0).chain([classes]);
    starts.zip(ends).filter(|(start, end)| start < end).collect()
}
