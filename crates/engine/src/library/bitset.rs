//! Bitsets over the tokens of a vocabulary.

use std::sync::Arc;

/// A bitset over the vocabulary, 32 tokens per word.
pub(crate) type Words = Arc<[u32]>;

/// Creates a bitset of these tokens.
pub(crate) fn bitset(tokens: &[u32], size: usize) -> Words {
    let mut words = vec![0u32; size.div_ceil(32)];
    set_bits(&mut words, tokens);
    words.into()
}

/// Adds tokens to a bitset.
pub(crate) fn set_bits(words: &mut [u32], tokens: &[u32]) {
    // PERF: bits of the same word are collected first. Hundreds of special tokens have consecutive numbers, and setting
    // each of them in memory would wait for the one before.
    let (mut at, mut bits) = (0, 0);
    for &token in tokens {
        let word = token as usize / 32;
        if word != at {
            words[at] |= bits;
            (at, bits) = (word, 0);
        }
        bits |= 1 << (token % 32);
    }
    if bits != 0 {
        words[at] |= bits;
    }
}

/// Returns the numbers of the bits that are set.
pub(crate) fn ones(words: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    words.enumerate().flat_map(|(at, word)| {
        let mut left = word;
        core::iter::from_fn(move || {
            (left != 0).then(|| {
                let bit = left.trailing_zeros();
                left &= left - 1;
                at as u32 * 32 + bit
            })
        })
    })
}
