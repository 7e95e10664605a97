//! Builds the automaton of `[...]*` for a set of characters directly, without an expression.
//!
//! A class such as `\w` has hundreds of ranges. Determinizing and minimizing it as an expression over bytes takes
//! milliseconds. But the minimal automaton can be written down directly, because UTF-8 is a tree of at most four
//! levels. From the last bytes upwards, equal rows become one state:
//!
//! ```text
//!   é = C3 A9        start ─ C3 ─▶ {A9} ─ A9 ─▶ start
//! ```

use super::LeafState;
use rustc_hash::FxHashMap;

use super::automaton::{Action, Automaton, Step};

/// The state between two characters, and the only accepting one.
const START: u32 = 1;
/// The first state inside a character.
const INNER: u32 = 2;

/// The number of characters that differ only in the last byte of their spelling.
const BLOCK: u32 = 64;
const BLOCKS: usize = 0x11_0000 / BLOCK as usize;

/// The targets of the 64 continuation bytes.
type Row = [u32; BLOCK as usize];

#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    numbers: FxHashMap<Row, u32>,
}

impl Rows {
    /// Returns the state with this row.
    fn state(&mut self, row: Row) -> u32 {
        if row == [0; BLOCK as usize] {
            return 0;
        }
        let next = INNER + self.rows.len() as u32;
        let state = *self.numbers.entry(row).or_insert(next);
        if state == next {
            self.rows.push(row);
        }
        state
    }
}

/// Builds the automaton of any number of characters from these ranges, each of them a unit.
pub(crate) fn any_number_of(ranges: &[(char, char)]) -> Automaton {
    let mut blocks = blocks(ranges);
    let mut rows = Rows::default();
    let mut root = [0; 256];
    for byte in 0..0x80 {
        root[byte] = u32::from(blocks[byte / 64] >> (byte % 64) & 1 == 1) * START;
    }
    // Finds the states before the last byte of a character. Most blocks are empty or full, and many are alike.
    let mut known: FxHashMap<u64, u32> = FxHashMap::default();
    let mut last = |block: u64, rows: &mut Rows| {
        *known
            .entry(block)
            .or_insert_with(|| rows.state(core::array::from_fn(|at| u32::from(block >> at & 1 == 1) * START)))
    };
    for (lead, &block) in (0xC2..0xE0).zip(&blocks[2..0x20]) {
        root[lead] = last(block, &mut rows);
    }
    // A character's only valid spelling is the shortest one, and surrogates are not characters.
    blocks[..0x20].fill(0);
    let mut full = None;
    let mut third = [0; BLOCKS / 64];
    for (third, children) in third.iter_mut().zip(blocks.chunks(64)) {
        if children.iter().all(|&block| block == 0) {
            continue;
        }
        let is_full = children.iter().all(|&block| block == u64::MAX);
        *third = match full {
            Some(full) if is_full => full,
            _ => {
                let row = core::array::from_fn(|at| last(children[at], &mut rows));
                rows.state(row)
            }
        };
        if is_full {
            full = Some(*third);
        }
    }
    root[0xE0..0xF0].copy_from_slice(&third[..16]);
    for (lead, children) in (0xF0..0xF5).zip(third.chunks(64)) {
        let mut row = [0; BLOCK as usize];
        row[..children.len()].copy_from_slice(children);
        if lead == 0xF0 {
            row[..16].fill(0);
        }
        root[lead] = rows.state(row);
    }
    let len = INNER as usize + rows.rows.len();
    Automaton::new(
        len,
        LeafState(START),
        |state| state == LeafState(START),
        |state, byte| match state.0 {
            0 => Step::DEAD,
            START => Step::new(LeafState(root[usize::from(byte)]), Action::Unit),
            _ if byte & 0xC0 == 0x80 => {
                let row = &rows.rows[(state.0 - INNER) as usize];
                Step::new(LeafState(row[usize::from(byte & 0x3F)]), Action::Pass)
            }
            _ => Step::DEAD,
        },
    )
}

/// Computes the characters of each block, a bit for each.
fn blocks(ranges: &[(char, char)]) -> Vec<u64> {
    let mut blocks = vec![0u64; BLOCKS];
    for &(low, high) in ranges {
        let (low, high) = (u32::from(low), u32::from(high));
        for block in low / BLOCK..=high / BLOCK {
            let from = low.saturating_sub(block * BLOCK);
            let to = (high - block * BLOCK).min(BLOCK - 1);
            blocks[block as usize] |= (u64::MAX << from) & (u64::MAX >> (BLOCK - 1 - to));
        }
    }
    blocks[0xD800 / BLOCK as usize..0xE000 / BLOCK as usize].fill(0);
    blocks
}

#[cfg(test)]
mod tests {
    use maskwright_automata::{Dfa, Exprs, Limits};

    use super::*;

    /// Walks the fast automaton and the one of the expression side by side: all observable properties of their states
    /// must agree.
    #[test]
    fn the_same_as_by_way_of_an_expression() {
        let sets: [&[(char, char)]; 12] = [
            &[],
            &[('a', 'z')],
            &[('\0', char::MAX)],
            &[('\0', '\u{7F}')],
            &[('\u{80}', '\u{7FF}')],
            &[('\u{7FF}', '\u{800}')],
            &[('\u{D7FF}', '\u{E000}')],
            &[('\u{FFFF}', '\u{10000}')],
            &[('a', 'b'), ('é', 'é'), ('一', '龥'), ('😀', '😀')],
            &[('\u{10FFFF}', char::MAX)],
            &[('\u{40}', '\u{13F}'), ('\u{1000}', '\u{1FFFF}')],
            &[('\0', '"'), ('$', '\u{2027}'), ('\u{202A}', char::MAX)],
        ];
        for ranges in sets {
            let mut exprs = Exprs::new();
            let one = exprs.chars(ranges.iter().copied());
            let star = exprs.star(one);
            let dfa = Dfa::build(&mut exprs, star, &Limits::default()).unwrap();
            let (slow, fast) = (Automaton::units(&dfa), any_number_of(ranges));
            assert_eq!(fast.len(), slow.len(), "{ranges:?}");
            let mut pairs = vec![(fast.start(), slow.start())];
            let mut at = 0;
            while let Some(&(a, b)) = pairs.get(at) {
                at += 1;
                assert_eq!(fast.is_accepting(a), slow.is_accepting(b), "{ranges:?}");
                assert_eq!(fast.live(a), slow.live(b), "{ranges:?}");
                for byte in 0..=255 {
                    let (x, y) = (fast.step(a, byte), slow.step(b, byte));
                    assert_eq!(x.is_dead(), y.is_dead(), "{ranges:?} on {byte:#x}");
                    if !x.is_dead() {
                        assert_eq!(x.action(), y.action());
                        if !pairs.contains(&(x.target(), y.target())) {
                            pairs.push((x.target(), y.target()));
                        }
                    }
                }
            }
            assert_eq!(pairs.len(), fast.len() - 1, "{ranges:?}");
        }
    }
}
