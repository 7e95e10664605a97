//! Sets of Unicode scalar values, as sorted ranges that neither touch nor overlap.

use core::fmt;

/// A set of Unicode scalar values.
///
/// Surrogates are never members: a range that spans them has a hole there.
///
/// ```
/// use maskwright_grammar::CharSet;
/// let vowels = CharSet::from_ranges([('a', 'a'), ('e', 'e'), ('i', 'i')]);
/// assert!(vowels.contains('e') && !vowels.contains('b'));
/// assert!(vowels.complement().contains('b'));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CharSet {
    ranges: Box<[(char, char)]>,
}

impl CharSet {
    /// Creates the set of all Unicode scalar values.
    pub fn all() -> Self {
        Self::from_ranges([('\0', char::MAX)])
    }

    /// Creates the empty set.
    pub fn none() -> Self {
        Self { ranges: Box::default() }
    }

    /// Creates the union of inclusive ranges, in any order. A range whose end is less than its start is empty.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (char, char)>) -> Self {
        let mut sorted: Vec<(char, char)> = ranges.into_iter().filter(|(a, b)| a <= b).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(char, char)> = Vec::with_capacity(sorted.len());
        for (start, end) in sorted {
            match merged.last_mut() {
                Some(last) if start <= last.1 || Some(start) == successor(last.1) => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Self { ranges: merged.into() }
    }

    /// Returns the ranges, inclusive, ascending, with a gap between any two.
    pub fn ranges(&self) -> &[(char, char)] {
        &self.ranges
    }

    /// Checks whether no character is a member.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Checks whether every character is a member.
    pub fn is_all(&self) -> bool {
        matches!(*self.ranges, [('\0', char::MAX)])
    }

    /// Returns the only member, if there is exactly one.
    pub fn single(&self) -> Option<char> {
        match *self.ranges {
            [(a, b)] if a == b => Some(a),
            _ => None,
        }
    }

    /// Checks whether `c` is a member.
    pub fn contains(&self, c: char) -> bool {
        self.ranges
            .binary_search_by(|&(a, b)| {
                if b < c {
                    core::cmp::Ordering::Less
                } else if a > c {
                    core::cmp::Ordering::Greater
                } else {
                    core::cmp::Ordering::Equal
                }
            })
            .is_ok()
    }

    /// Returns the set of all characters that are not members.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = Some('\0');
        for &(start, end) in &self.ranges {
            if let (Some(from), Some(to)) = (next, predecessor(start))
                && from <= to
            {
                gaps.push((from, to));
            }
            next = successor(end);
        }
        if let Some(from) = next {
            gaps.push((from, char::MAX));
        }
        Self { ranges: gaps.into() }
    }

    /// Returns the set of the characters that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::from_ranges(self.ranges.iter().chain(&other.ranges).copied())
    }

    /// Returns the set of the characters that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.complement().union(&other.complement()).complement()
    }
}

/// Returns the next scalar value, skipping the surrogates.
fn successor(c: char) -> Option<char> {
    match c {
        '\u{D7FF}' => Some('\u{E000}'),
        char::MAX => None,
        _ => char::from_u32(u32::from(c) + 1),
    }
}

/// Returns the previous scalar value, skipping the surrogates.
fn predecessor(c: char) -> Option<char> {
    match c {
        '\u{E000}' => Some('\u{D7FF}'),
        '\0' => None,
        _ => char::from_u32(u32::from(c) - 1),
    }
}

impl fmt::Debug for CharSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for &(a, b) in &self.ranges {
            write!(f, "{}", a.escape_default())?;
            if a != b {
                write!(f, "-{}", b.escape_default())?;
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::CharSet;

    #[test]
    fn ranges_are_merged_when_they_touch() {
        let set = CharSet::from_ranges([('c', 'e'), ('a', 'b'), ('x', 'x'), ('d', 'g'), ('z', 'y')]);
        assert_eq!(set.ranges(), [('a', 'g'), ('x', 'x')]);
    }

    #[test]
    fn complement_steps_over_surrogates() {
        let low = CharSet::from_ranges([('\0', '\u{D7FF}')]);
        assert_eq!(low.complement().ranges(), [('\u{E000}', char::MAX)]);
        assert_eq!(low.complement().complement(), low);
        assert!(CharSet::all().complement().is_empty());
        assert!(CharSet::none().complement().is_all());
    }

    #[test]
    fn intersection_is_what_both_have() {
        let a = CharSet::from_ranges([('a', 'm')]);
        let b = CharSet::from_ranges([('g', 'z')]);
        assert_eq!(a.intersection(&b).ranges(), [('g', 'm')]);
    }
}
