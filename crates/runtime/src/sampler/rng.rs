//! Random numbers as a function of a seed and a position, without any state.
//!
//! With a stateful generator, the tenth draw would depend on the number of earlier draws. Here the tenth token of an
//! answer always has the same number, whether the nine tokens before it were drawn or forced, and the third of several
//! answers has its own numbers without the first two. The function is the finalizer of `SplitMix64`, applied twice: it
//! spreads every bit of its input over all bits of its output.

use std::hash::{BuildHasher, RandomState};

/// The random numbers of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rng {
    key: u64,
}

impl Rng {
    /// Returns the numbers for an answer, given its index among the answers to one prompt. Without a seed, they differ
    /// each time.
    pub fn new(seed: Option<u64>, answer: u64) -> Self {
        // The standard library seeds its hash tables from the operating system; that is random enough for text.
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0_u64));
        Self { key: mix(mix(seed) ^ answer) }
    }

    /// Returns the number at a position: at least 0, less than 1.
    pub fn at(self, position: u64) -> f64 {
        let bits = mix(mix(self.key ^ position.wrapping_mul(0xA076_1D64_78BD_642F)));
        // A double holds 53 bits.
        #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
        let numerator = (bits >> 11) as f64;
        numerator / 9_007_199_254_740_992.0
    }
}

fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_sign_loss, reason = "no number is negative")]
    fn numbers_are_spread_evenly_and_do_not_repeat() {
        let mut boxes = [0_u32; 16];
        let mut all = std::collections::BTreeSet::new();
        for answer in 0..4 {
            let rng = Rng::new(Some(7), answer);
            for position in 0..4096 {
                let number = rng.at(position);
                assert!((0.0..1.0).contains(&number));
                boxes[(number * 16.0) as usize] += 1;
                assert!(all.insert(number.to_bits()), "a number came twice");
            }
        }
        // 1024 are expected in each; five standard deviations are 155.
        assert!(boxes.iter().all(|&count| count.abs_diff(1024) < 155), "{boxes:?}");
    }

    #[test]
    fn a_seed_gives_the_same_numbers_and_none_gives_others() {
        assert_eq!(Rng::new(Some(1), 2), Rng::new(Some(1), 2));
        assert_ne!(Rng::new(Some(1), 2), Rng::new(Some(2), 1));
        assert_ne!(Rng::new(None, 0), Rng::new(None, 0));
    }
}
