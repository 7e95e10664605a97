//! Sets of tokens, 32 per word.
//!
//! Token t is bit `t % 32` of word `t / 32`, the layout that serving engines and GPU kernels read.
//! Bits beyond the size are always 0, so two masks are equal exactly when their sets are.
//!
//! ```
//! use maskwright_vocab::{TokenId, TokenMask};
//! let mut mask = TokenMask::new(40);
//! mask.insert(TokenId(33));
//! assert_eq!(mask.words(), [0, 0b10]);
//! assert_eq!(mask.iter().collect::<Vec<_>>(), [TokenId(33)]);
//! ```

use crate::TokenId;

/// A set of the tokens below [`size`](Self::size); see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenMask {
    words: Vec<u32>,
    size: usize,
}

impl TokenMask {
    /// Creates an empty mask of `size` tokens.
    pub fn new(size: usize) -> Self {
        Self { words: vec![0; size.div_ceil(32)], size }
    }

    /// Creates a mask from its words. Bits at and beyond `size` are dropped, missing words are 0.
    pub fn from_words(words: &[u32], size: usize) -> Self {
        let mut mask = Self::new(size);
        let len = words.len().min(mask.words.len());
        mask.words[..len].copy_from_slice(&words[..len]);
        mask.drop_bits_beyond_size();
        mask
    }

    /// Creates a mask from one bool per token.
    pub fn from_bools(allowed: &[bool]) -> Self {
        let mut mask = Self::new(allowed.len());
        for (word, chunk) in mask.words.iter_mut().zip(allowed.chunks(32)) {
            *word = chunk.iter().rev().fold(0, |word, &bit| word << 1 | u32::from(bit));
        }
        mask
    }

    /// Returns one bool per token.
    pub fn to_bools(&self) -> Vec<bool> {
        (0..self.size).map(|t| self.words[t / 32] >> (t % 32) & 1 == 1).collect()
    }

    /// Returns the number of tokens that the mask covers, allowed or not.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the words, with token t at bit `t % 32` of word `t / 32`.
    #[inline]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Checks whether a token is in the set. A token beyond the size is not.
    #[inline]
    pub fn contains(&self, token: TokenId) -> bool {
        self.words.get(token.index() / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1)
    }

    /// Adds a token.
    ///
    /// # Panics
    ///
    /// If the token is not below [`size`](Self::size).
    #[inline]
    pub fn insert(&mut self, token: TokenId) {
        assert!(token.index() < self.size, "token {} is beyond the mask's size {}", token.0, self.size);
        self.words[token.index() / 32] |= 1 << (token.0 % 32);
    }

    /// Adds tokens by their bare ids, as [`Trie::tokens`](crate::Trie::tokens) lists them.
    ///
    /// # Panics
    ///
    /// If one of them is not below [`size`](Self::size).
    #[inline]
    pub fn insert_all(&mut self, tokens: &[u32]) {
        for &token in tokens {
            self.insert(TokenId(token));
        }
    }

    /// Removes a token, if it is there.
    #[inline]
    pub fn remove(&mut self, token: TokenId) {
        if let Some(word) = self.words.get_mut(token.index() / 32) {
            *word &= !(1 << (token.0 % 32));
        }
    }

    /// Removes all tokens.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Adds all tokens of `other`.
    ///
    /// # Panics
    ///
    /// If `other` has a token that is not below this mask's size.
    pub fn union(&mut self, other: &Self) {
        if other.size > self.size {
            assert!(other.iter().all(|t| t.index() < self.size), "union with a larger mask");
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Becomes a copy of `other`, without allocating when the sizes agree.
    pub fn copy_from(&mut self, other: &Self) {
        self.words.clone_from(&other.words);
        self.size = other.size;
    }

    /// Returns the number of tokens in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Checks whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Returns the tokens, ascending.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let base = index as u32 * 32;
            Bits(word).map(move |bit| TokenId(base + bit))
        })
    }

    /// Returns the memory on the heap in bytes.
    pub fn heap_bytes(&self) -> usize {
        4 * self.words.capacity()
    }

    fn drop_bits_beyond_size(&mut self) {
        if !self.size.is_multiple_of(32)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (self.size % 32)) - 1;
        }
    }
}

/// An iterator over the positions of the ones of a word, ascending.
struct Bits(u32);

impl Iterator for Bits {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let bit = self.0.trailing_zeros();
        (bit < 32).then(|| {
            self.0 &= self.0 - 1;
            bit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bools_and_back_at_odd_sizes() {
        for size in [0, 1, 31, 32, 33, 63, 64, 65, 1000] {
            let bools: Vec<bool> = (0..size).map(|t| t * t % 7 == 2).collect();
            let mask = TokenMask::from_bools(&bools);
            assert_eq!(mask.to_bools(), bools);
            assert_eq!(mask.count(), bools.iter().filter(|&&b| b).count());
            let listed: Vec<usize> = mask.iter().map(TokenId::index).collect();
            let expected: Vec<usize> = (0..size).filter(|&t| bools[t]).collect();
            assert_eq!(listed, expected);
        }
    }

    #[test]
    fn insert_remove_union() {
        let mut left = TokenMask::new(70);
        left.insert_all(&[0, 31, 69]);
        left.remove(TokenId(31));
        left.remove(TokenId(5000));
        let mut right = TokenMask::new(70);
        right.insert(TokenId(32));
        right.union(&left);
        assert_eq!(right.words(), [1, 1, 1 << 5]);
        assert!(!right.contains(TokenId(5000)));
    }

    #[test]
    fn words_beyond_the_size_are_dropped() {
        let mask = TokenMask::from_words(&[u32::MAX, u32::MAX, u32::MAX], 33);
        assert_eq!(mask.words(), [u32::MAX, 1]);
        assert_eq!(TokenMask::from_words(&[], 33), TokenMask::new(33));
    }

    #[test]
    #[should_panic(expected = "token 40 is beyond the mask's size 40")]
    fn inserting_beyond_the_size_is_a_bug() {
        TokenMask::new(40).insert(TokenId(40));
    }
}
