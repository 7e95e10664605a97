//! Splits ranges of characters into sequences of byte ranges.
//!
//! An automaton over bytes has to know how characters are spelled in UTF-8. A range of characters becomes a few
//! sequences, each a product of byte ranges, which are disjoint and in order:
//!
//! ```
//! use maskwright_automata::utf8::sequences;
//! let spelled: Vec<String> = sequences('e', 'ﬁ').iter().map(|s| format!("{s:?}")).collect();
//! assert_eq!(spelled, [
//!     "[65-7f]",
//!     "[c2-df][80-bf]",
//!     "[e0][a0-bf][80-bf]",
//!     "[e1-ec][80-bf][80-bf]",
//!     "[ed][80-9f][80-bf]",
//!     "[ee][80-bf][80-bf]",
//!     "[ef][80-ab][80-bf]",
//!     "[ef][ac][80-81]",
//! ]);
//! ```
//!
//! The first byte ranges of two sequences of disjoint ranges are either disjoint or equal: a range of several lead
//! bytes occurs only if *all* their continuations belong to it. That is why [`Exprs::chars`](crate::Exprs::chars) can
//! build a deterministic tree by grouping equal heads.

use core::fmt;

/// A product of one to four inclusive byte ranges.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sequence {
    ranges: [(u8, u8); 4],
    len: u8,
}

impl Sequence {
    /// Returns the ranges, one for each byte of the spelling.
    pub fn ranges(&self) -> &[(u8, u8)] {
        &self.ranges[..usize::from(self.len)]
    }

    fn push(mut self, range: (u8, u8)) -> Self {
        self.ranges[usize::from(self.len)] = range;
        self.len += 1;
        self
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &(start, end) in self.ranges() {
            if start == end { write!(f, "[{start:02x}]")? } else { write!(f, "[{start:02x}-{end:02x}]")? }
        }
        Ok(())
    }
}

/// Returns the spellings of the characters from `start` to `end`, both included. They are disjoint and ascending.
/// Surrogates inside the range are not characters and are left out.
pub fn sequences(start: char, end: char) -> Vec<Sequence> {
    let mut out = Vec::new();
    push_sequences(start, end, &mut out);
    out
}

/// The first and the last character of each block whose spellings have the same length. Surrogates divide the
/// three-byte spellings into two blocks.
const BLOCKS: [(char, char); 5] = [
    ('\0', '\u{7F}'),
    ('\u{80}', '\u{7FF}'),
    ('\u{800}', '\u{D7FF}'),
    ('\u{E000}', '\u{FFFF}'),
    ('\u{10000}', char::MAX),
];

/// Appends the result of [`sequences`].
pub(crate) fn push_sequences(start: char, end: char, out: &mut Vec<Sequence>) {
    for (low, high) in BLOCKS {
        let (low, high) = (low.max(start), high.min(end));
        if low <= high {
            let (mut a, mut b) = ([0; 4], [0; 4]);
            let low = low.encode_utf8(&mut a).as_bytes();
            let high = high.encode_utf8(&mut b).as_bytes();
            split(Sequence { ranges: [(0, 0); 4], len: 0 }, low, high, out);
        }
    }
}

/// Covers the spellings from `low` to `high`, which have the same length, after a common prefix. The depth of the
/// recursion is the length of a spelling.
fn split(prefix: Sequence, low: &[u8], high: &[u8], out: &mut Vec<Sequence>) {
    let (&[mut first, ref low_rest @ ..], &[mut last, ref high_rest @ ..]) = (low, high) else {
        out.push(prefix);
        return;
    };
    let (lowest, highest) = (&[0x80; 3][..low_rest.len()], &[0xBF; 3][..low_rest.len()]);
    if first == last {
        return split(prefix.push((first, first)), low_rest, high_rest, out);
    }
    // A lead byte whose continuations do not all belong to the range forms its own sequences.
    if low_rest != lowest {
        split(prefix.push((first, first)), low_rest, highest, out);
        first += 1;
    }
    let ragged_end = high_rest != highest;
    if ragged_end {
        last -= 1;
    }
    if first <= last {
        split(prefix.push((first, last)), lowest, highest, out);
    }
    if ragged_end {
        split(prefix.push((last + 1, last + 1)), lowest, high_rest, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(sequences: &[Sequence], c: char) -> usize {
        let mut buffer = [0; 4];
        let bytes = c.encode_utf8(&mut buffer).as_bytes();
        let fits = |s: &&Sequence| {
            s.ranges().len() == bytes.len()
                && s.ranges().iter().zip(bytes).all(|(&(low, high), &byte)| low <= byte && byte <= high)
        };
        sequences.iter().filter(fits).count()
    }

    #[test]
    fn every_character_is_covered_once_or_not_at_all() {
        let edges = [
            '\0',
            '\u{1}',
            'e',
            '\u{7F}',
            '\u{80}',
            '\u{BF}',
            '\u{C0}',
            'é',
            '\u{7FF}',
            '\u{800}',
            '\u{FFF}',
            '\u{1000}',
            '\u{D7FF}',
            '\u{E000}',
            '\u{FB01}',
            '\u{FFFF}',
            '\u{10000}',
            '\u{1F600}',
            '\u{3FFFF}',
            '\u{40000}',
            '\u{10FFFE}',
            char::MAX,
        ];
        for (i, &start) in edges.iter().enumerate() {
            for &end in &edges[i..] {
                let found = sequences(start, end);
                // All characters near an edge, and a sample of the others.
                let near = edges.iter().flat_map(|&e| u32::from(e).saturating_sub(70)..=u32::from(e) + 70);
                let sample = (0..=u32::from(char::MAX)).step_by(997);
                for c in near.chain(sample).filter_map(char::from_u32) {
                    let expected = usize::from(start <= c && c <= end);
                    assert_eq!(matches(&found, c), expected, "{start:?}-{end:?} {c:?}");
                }
            }
        }
    }

    #[test]
    fn the_whole_of_unicode_is_the_table_of_the_standard() {
        let all: Vec<String> = sequences('\0', char::MAX).iter().map(|s| format!("{s:?}")).collect();
        assert_eq!(
            all,
            [
                "[00-7f]",
                "[c2-df][80-bf]",
                "[e0][a0-bf][80-bf]",
                "[e1-ec][80-bf][80-bf]",
                "[ed][80-9f][80-bf]",
                "[ee-ef][80-bf][80-bf]",
                "[f0][90-bf][80-bf][80-bf]",
                "[f1-f3][80-bf][80-bf][80-bf]",
                "[f4][80-8f][80-bf][80-bf]",
            ]
        );
    }

    #[test]
    fn a_reversed_range_is_empty() {
        assert!(sequences('b', 'a').is_empty());
    }
}
