//! The token trie with bytes merged into classes.
//!
//! Many automata do not distinguish `g` from `q`: a state of `[a-z]+@` treats all small letters alike. For such an
//! automaton the 274,000 nodes of a large token trie collapse to tens of thousands, because `cat`, `dog` and `sun`
//! become one path. There are two fixed partitions of the bytes:
//!
//! | partition | letters | used for |
//! |---|---|---|
//! | *merged* | `a–z`, `A–Z` | identifiers, words, most text |
//! | *split* | `a–f`, `g–z`, `A–F`, `G–Z` | hexadecimal, escapes, uuid |
//!
//! Both also have these classes: digits; every ASCII punctuation byte alone; space, tab, newline and carriage return
//! each alone; vertical tab with form feed; the other controls; DEL; the lead bytes of UTF-8 by length and by what may
//! follow them; and the continuation bytes in three ranges (`80–8F`, `90–9F`, `A0–BF`), which well-formedness depends
//! on.
//!
//! A class is named by its least byte, and a [`ClassTrie`] is an ordinary [`Trie`] over these names:
//!
//! ```
//! use maskwright_vocab::{ByteClasses, ClassTrie, Trie};
//! let trie = Trie::build([("cat", 1), ("dog", 2), ("Dog", 3)]);
//! let classes = ClassTrie::build(&trie, ByteClasses::merged());
//! let word = classes.trie().find(b"aaa").unwrap();
//! assert_eq!(classes.trie().tokens(word), [1, 2]);
//! // An automaton that treats `q` apart cannot use it.
//! assert!(!classes.classes().respects(|a, b| (a == b'q') == (b == b'q')));
//! ```

use crate::{
    merge::{SAME_BYTES, merge},
    trie::{Trie, TrieNode},
};

/// A partition of the 256 bytes. A class is named by its least member, its *representative*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteClasses {
    representative: [u8; 256],
}

impl ByteClasses {
    /// Returns the coarser partition, with all small letters in one class and all capitals in another.
    pub const fn merged() -> Self {
        Self::from_ranges(&[(b'A', b'Z'), (b'a', b'z')])
    }

    /// Returns the finer partition, with letters split at the hexadecimal digits.
    pub const fn split() -> Self {
        Self::from_ranges(&[(b'A', b'F'), (b'G', b'Z'), (b'a', b'f'), (b'g', b'z')])
    }

    /// Creates a partition: two bytes are in one class if `class` gives them the same number.
    ///
    /// ```
    /// use maskwright_vocab::ByteClasses;
    /// let even = ByteClasses::of(|byte| byte % 2);
    /// assert_eq!((even.representative(8), even.representative(9)), (0, 1));
    /// ```
    pub fn of(class: impl Fn(u8) -> u8) -> Self {
        let mut least = [None; 256];
        let representative =
            std::array::from_fn(|byte| *least[usize::from(class(byte as u8))].get_or_insert(byte as u8));
        Self { representative }
    }

    /// Returns the representative of the class of `byte`.
    #[inline]
    pub const fn representative(&self, byte: u8) -> u8 {
        self.representative[byte as usize]
    }

    /// Returns the representative of every byte.
    pub const fn representatives(&self) -> &[u8; 256] {
        &self.representative
    }

    /// Checks whether every class stays within one class of `same`.
    ///
    /// `same` is called with the representative of a class and each other member, so it must be an equivalence, such as
    /// "all states of my automaton treat the two bytes alike".
    pub fn respects(&self, mut same: impl FnMut(u8, u8) -> bool) -> bool {
        (0..=255).all(|byte| {
            let representative = self.representative(byte);
            byte == representative || same(representative, byte)
        })
    }

    const fn from_ranges(letters: &[(u8, u8)]) -> Self {
        let mut classes = Self { representative: SAME_BYTES };
        classes.join(COMMON);
        classes.join(letters);
        // The other controls have two gaps, so they do not form a range.
        let mut byte = 0x0E;
        while byte < 0x20 {
            classes.representative[byte] = 0;
            byte += 1;
        }
        classes
    }

    const fn join(&mut self, ranges: &[(u8, u8)]) {
        let mut index = 0;
        while index < ranges.len() {
            let (low, high) = ranges[index];
            let mut byte = low as usize;
            while byte <= high as usize {
                self.representative[byte] = low;
                byte += 1;
            }
            index += 1;
        }
        // 0xC0, 0xC1 and 0xF5..=0xFF never occur in UTF-8; EE and EF may be followed by the same bytes as E1.
        self.representative[0xC1] = 0xC0;
        let mut byte = 0xF5;
        while byte < 256 {
            self.representative[byte] = 0xC0;
            byte += 1;
        }
        self.representative[0xEE] = 0xE1;
        self.representative[0xEF] = 0xE1;
    }
}

/// The ranges that both partitions share.
const COMMON: &[(u8, u8)] = &[
    (0x00, 0x08),
    (0x0B, 0x0C),
    (b'0', b'9'),
    (0x80, 0x8F),
    (0x90, 0x9F),
    (0xA0, 0xBF),
    (0xC2, 0xDF),
    (0xE1, 0xEC),
    (0xF1, 0xF3),
];

/// A token trie whose edges are byte classes; see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassTrie {
    pub(crate) trie: Trie,
    pub(crate) classes: ByteClasses,
}

impl ClassTrie {
    /// Merges the nodes of a trie that `classes` does not distinguish.
    pub fn build(trie: &Trie, classes: ByteClasses) -> Self {
        let tops: Vec<TrieNode> = trie.children(Trie::ROOT).collect();
        Self { trie: merge(trie, &tops, &classes.representative), classes }
    }

    /// Returns the trie. Edge bytes are representatives, and a node has all tokens with its string of classes.
    #[inline]
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// Returns the partition.
    #[inline]
    pub fn classes(&self) -> &ByteClasses {
        &self.classes
    }

    /// Checks whether every class stays within one class of `same`. See [`ByteClasses::respects`].
    pub fn respects(&self, same: impl FnMut(u8, u8) -> bool) -> bool {
        self.classes.respects(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(classes: ByteClasses, bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| classes.representative(byte) == classes.representative(bytes[0]))
    }

    #[test]
    fn representatives_are_the_least_members() {
        for classes in [ByteClasses::merged(), ByteClasses::split()] {
            for byte in 0..=255 {
                let representative = classes.representative(byte);
                assert!(representative <= byte);
                assert_eq!(classes.representative(representative), representative);
            }
        }
    }

    #[test]
    fn classes_are_the_documented_ones() {
        let (merged, split) = (ByteClasses::merged(), ByteClasses::split());
        let count = |c: ByteClasses| (0..=255).filter(|&b| c.representative(b) == b).count();
        // Digits, 32 punctuation bytes, 4 + 1 kinds of white space, controls, DEL, 3 ranges of continuation bytes, 8
        // kinds of lead bytes; and the letters.
        let shared = 1 + 32 + 5 + 1 + 1 + 3 + 8;
        assert_eq!((count(merged), count(split)), (shared + 2, shared + 4));
        assert!(alike(merged, b"agz") && alike(merged, b"AGZ") && !alike(merged, b"aA"));
        assert!(alike(split, b"af") && alike(split, b"gz") && !alike(split, b"fg") && !alike(split, b"FG"));
        for classes in [merged, split] {
            assert!(
                alike(classes, b"0189")
                    && alike(classes, &[0, 1, 8, 0x0E, 0x1F])
                    && alike(classes, b"\x0b\x0c")
            );
            assert!(alike(classes, &[0xC0, 0xC1, 0xF5, 0xFF]) && alike(classes, &[0xE1, 0xEC, 0xEE, 0xEF]));
            for (left, right) in
                [(0xE0, 0xE1), (0xEC, 0xED), (0xF0, 0xF1), (0xF3, 0xF4), (0x8F, 0x90), (0x9F, 0xA0)]
            {
                assert!(!alike(classes, &[left, right]));
            }
        }
    }

    #[test]
    fn respects_asks_about_every_byte() {
        let merged = ByteClasses::merged();
        assert!(merged.respects(|a, b| a.is_ascii_lowercase() == b.is_ascii_lowercase()));
        assert!(!merged.respects(|a, b| a.is_ascii_hexdigit() == b.is_ascii_hexdigit()));
        assert!(ByteClasses::split().respects(|a, b| a.is_ascii_hexdigit() == b.is_ascii_hexdigit()));
        assert!(!merged.respects(|a, b| (a == 0xFF) == (b == 0xFF)));
    }
}
