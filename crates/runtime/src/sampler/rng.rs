//! Chance as a function: a seed and a position give a number, and nothing is remembered.
//!
//! A generator with a state would make the tenth draw depend on how many draws there were before. Here the tenth token of an
//! answer has its number, whether the nine before it were drawn or forced, and the third of several answers has its own
//! without the first two. The function is the finaliser of `SplitMix64`, twice: it spreads every bit of its input over all
//! bits of its output.

use std::hash::{BuildHasher, RandomState};

/// The numbers of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rng {
    key: u64,
}

impl Rng {
    /// The numbers for an answer, by its number among the answers to one prompt. Without a seed, others each time.
    pub fn new(seed: Option<u64>, answer: u64) -> Self {
        // The standard library keys its hash tables by numbers from the system; that is chance enough for text.
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0_u64));
        Self { key: mix(mix(seed) ^ answer) }
    }

    /// The number at a position: at least 0, less than 1.
    pub fn at(self, position: u64) -> f64 {
        let bits = mix(mix(self.key ^ position.wrapping_mul(0xA076_1D64_78BD_642F)));
        // 53 bits are what a double holds.
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
