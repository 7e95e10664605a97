//! Sets of bytes, and the partition of all bytes that a list of sets induces.
//!
//! Automata rarely distinguish all 256 bytes. For `[a-z]+@[a-z]+` there are three kinds of bytes: the letters, `@`, and
//! the rest. [`ByteClasses`] finds these kinds, so that tables have one column per class instead of one per byte.

use core::fmt;

/// A set of bytes.
///
/// ```
/// use maskwright_automata::ByteSet;
/// let hex = ByteSet::range(b'0', b'9').union(ByteSet::range(b'a', b'f'));
/// assert_eq!(hex.len(), 16);
/// assert_eq!(format!("{hex:?}"), "[0-9a-f]");
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// The empty set.
    pub const EMPTY: Self = Self([0; 4]);
    /// The set of all bytes.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Creates a set of one byte.
    pub fn byte(byte: u8) -> Self {
        let mut set = Self::EMPTY;
        set.insert(byte);
        set
    }

    /// Creates the set of the bytes from `start` to `end`, both included.
    pub fn range(start: u8, end: u8) -> Self {
        let mut set = Self::EMPTY;
        set.insert_range(start, end);
        set
    }

    /// Adds a byte.
    #[inline]
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Adds the bytes from `start` to `end`, both included; nothing if `end` is less than `start`.
    pub fn insert_range(&mut self, start: u8, end: u8) {
        if start > end {
            return;
        }
        let (first, last) = (usize::from(start >> 6), usize::from(end >> 6));
        for word in first..=last {
            let from = if word == first { start & 63 } else { 0 };
            let to = if word == last { end & 63 } else { 63 };
            self.0[word] |= (u64::MAX >> (63 - (to - from))) << from;
        }
    }

    /// Checks whether a byte is a member.
    #[inline]
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// Returns the bytes that are in either set.
    #[inline]
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// Returns the bytes that are in both sets.
    #[inline]
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// Returns the bytes of this set that are not in the other.
    #[inline]
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        Self(core::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// Returns the bytes that are not members.
    #[inline]
    #[must_use]
    pub fn complement(self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// Checks whether the set has no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Checks whether every byte of this set is in the other.
    #[inline]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(*other).is_empty()
    }

    /// Returns the number of members.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the smallest member.
    #[inline]
    pub fn first(&self) -> Option<u8> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some((word as u8) << 6 | self.0[word].trailing_zeros() as u8)
    }

    /// Removes and returns the smallest member.
    #[inline]
    pub fn pop_first(&mut self) -> Option<u8> {
        let word = self.0.iter().position(|&word| word != 0)?;
        let bit = self.0[word].trailing_zeros() as u8;
        self.0[word] &= self.0[word] - 1;
        Some((word as u8) << 6 | bit)
    }

    /// Returns the members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let mut rest = *self;
        core::iter::from_fn(move || rest.pop_first())
    }

    /// Returns the members as inclusive ranges, ascending, with a gap between any two.
    pub fn ranges(&self) -> Vec<(u8, u8)> {
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        for byte in self.iter() {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == byte => *end = byte,
                _ => ranges.push((byte, byte)),
            }
        }
        ranges
    }

    /// Returns the set as four words: bit `b % 64` of word `b / 64` is set if `b` is a member.
    pub fn words(&self) -> [u64; 4] {
        self.0
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        let mut set = Self::EMPTY;
        bytes.into_iter().for_each(|byte| set.insert(byte));
        set
    }
}

/// Formats the set as in a regular expression: `[0-9a-f]`, and `[^"]` where the complement is shorter.
impl fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plain, negated) = (self.ranges(), self.complement().ranges());
        let (sign, ranges) = if negated.len() < plain.len() { ("^", negated) } else { ("", plain) };
        write!(f, "[{sign}")?;
        for (start, end) in ranges {
            write!(f, "{}", Shown(start))?;
            if start != end {
                write!(f, "-{}", Shown(end))?;
            }
        }
        f.write_str("]")
    }
}

/// A byte in a class, escaped where it would be misread.
struct Shown(u8);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            byte @ (b'[' | b']' | b'^' | b'-') => write!(f, "\\{}", char::from(byte)),
            byte => write!(f, "{}", byte.escape_ascii()),
        }
    }
}

/// A partition of the bytes into classes, numbered from 0 in the order of their smallest bytes.
///
/// ```
/// use maskwright_automata::{ByteClasses, ByteSet};
/// let classes = ByteClasses::new([ByteSet::range(b'a', b'z'), ByteSet::byte(b'@')]);
/// assert_eq!(classes.len(), 3);
/// assert_eq!(classes.class(b'q'), classes.class(b'x'));
/// assert_ne!(classes.class(b'q'), classes.class(b'@'));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ByteClasses {
    of: Box<[u8; 256]>,
    count: u16,
}

impl ByteClasses {
    /// Creates the coarsest partition in which every given set is a union of classes.
    pub fn new(sets: impl IntoIterator<Item = ByteSet>) -> Self {
        let mut parts = vec![ByteSet::ALL];
        for set in sets {
            for i in 0..parts.len() {
                let (inside, outside) = (parts[i].intersection(set), parts[i].difference(set));
                if !inside.is_empty() && !outside.is_empty() {
                    parts[i] = inside;
                    parts.push(outside);
                }
            }
        }
        Self::from_partition(parts)
    }

    /// Creates a partition from its parts: not empty, disjoint, and together all bytes.
    fn from_partition(mut parts: Vec<ByteSet>) -> Self {
        parts.sort_unstable_by_key(ByteSet::first);
        let mut of = Box::new([0; 256]);
        for (class, part) in parts.iter().enumerate() {
            for byte in part.iter() {
                of[usize::from(byte)] = class as u8;
            }
        }
        Self { of, count: parts.len() as u16 }
    }

    /// Merges the classes whose numbers are equal. Returns the new partition, and for each new class an old class that
    /// represents it.
    pub(crate) fn merge(&self, numbers: &[usize]) -> (Self, Vec<usize>) {
        let mut kept: Vec<usize> = Vec::new();
        let mut renamed = Vec::with_capacity(self.len());
        for (class, number) in numbers.iter().enumerate() {
            let known = kept.iter().position(|&old| numbers[old] == *number);
            renamed.push(known.unwrap_or(kept.len()) as u8);
            if known.is_none() {
                kept.push(class);
            }
        }
        let of = Box::new(self.of.map(|class| renamed[usize::from(class)]));
        (Self { of, count: kept.len() as u16 }, kept)
    }

    /// Returns the class of a byte.
    #[inline]
    pub fn class(&self, byte: u8) -> u8 {
        self.of[usize::from(byte)]
    }

    /// Returns the number of classes, between 1 and 256.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "there is always a class")]
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Returns the bytes of every class.
    pub fn sets(&self) -> Vec<ByteSet> {
        let mut sets = vec![ByteSet::EMPTY; self.len()];
        for byte in 0..=255 {
            sets[usize::from(self.class(byte))].insert(byte);
        }
        sets
    }

    /// Returns the smallest byte of every class.
    pub fn representatives(&self) -> Vec<u8> {
        let mut found = Vec::with_capacity(self.len());
        for byte in 0..=255 {
            if usize::from(self.class(byte)) == found.len() {
                found.push(byte);
            }
        }
        found
    }
}

impl fmt::Debug for ByteClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sets()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_agree_with_single_inserts() {
        for start in (0..=255u8).step_by(7).chain([63, 64, 127, 128, 255]) {
            for end in (0..=255u8).step_by(5).chain([0, 63, 64, 255]) {
                let slow: ByteSet = (start..=end).collect();
                assert_eq!(ByteSet::range(start, end), slow, "{start}-{end}");
                assert_eq!(slow.iter().collect::<Vec<_>>(), (start..=end).collect::<Vec<_>>());
                assert_eq!(slow.len(), (start..=end).count());
                assert_eq!(slow.first(), (start..=end).next());
            }
        }
    }

    #[test]
    fn algebra_is_that_of_sets() {
        let (a, b) = (ByteSet::range(10, 100), ByteSet::range(90, 200));
        for byte in 0..=255 {
            let (x, y) = (a.contains(byte), b.contains(byte));
            assert_eq!(a.union(b).contains(byte), x || y);
            assert_eq!(a.intersection(b).contains(byte), x && y);
            assert_eq!(a.difference(b).contains(byte), x && !y);
            assert_eq!(a.complement().contains(byte), !x);
        }
        assert!(a.intersection(b).is_subset(&a) && !a.is_subset(&b));
    }

    #[test]
    fn sets_print_like_regex_classes() {
        assert_eq!(format!("{:?}", ByteSet::EMPTY), "[]");
        assert_eq!(format!("{:?}", ByteSet::ALL), "[^]");
        assert_eq!(format!("{:?}", ByteSet::byte(b'"').complement()), "[^\\\"]");
        assert_eq!(format!("{:?}", ByteSet::from_iter(*b"a-]\n")), "[\\n\\-\\]a]");
        assert_eq!(format!("{:?}", ByteSet::range(0x80, 0xff)), "[\\x80-\\xff]");
    }

    #[test]
    fn classes_are_the_coarsest_that_respect_the_sets() {
        let sets = [ByteSet::range(b'a', b'z'), ByteSet::range(b'm', 0xff), ByteSet::from_iter(*b"az")];
        let classes = ByteClasses::new(sets);
        for x in 0..=255u8 {
            for y in 0..=255u8 {
                let alike = sets.iter().all(|set| set.contains(x) == set.contains(y));
                assert_eq!(classes.class(x) == classes.class(y), alike, "{x} {y}");
            }
        }
        let firsts = classes.representatives();
        assert_eq!(firsts.len(), classes.len());
        assert!(firsts.is_sorted());
        assert!(firsts.iter().enumerate().all(|(i, &byte)| usize::from(classes.class(byte)) == i));
    }

    #[test]
    fn every_byte_may_be_its_own_class() {
        let classes = ByteClasses::new((0..=255).map(ByteSet::byte));
        assert_eq!(classes.len(), 256);
        assert!((0..=255).all(|byte| classes.class(byte) == byte));
        assert_eq!(ByteClasses::new([]).len(), 1);
        let parities: Vec<usize> = (0..256).map(|class| class % 2).collect();
        let (merged, kept) = classes.merge(&parities);
        assert_eq!((merged.len(), kept), (2, vec![0, 1]));
    }
}
