//! Kernels that write −∞ into the logits of forbidden tokens.
//!
//! ```
//! use maskwright_vocab::apply;
//! let mut logits = [0.5_f32, 1.5, -2.0, 9.0];
//! apply::mask(&mut logits, &[0b0101]);
//! assert_eq!(logits, [0.5, f32::NEG_INFINITY, -2.0, f32::NEG_INFINITY]);
//! ```
//!
//! A mask is applied to the model's raw output, before repetition penalty, temperature or any other sampling step, and
//! also for greedy sampling. Then no later step can bring a forbidden token back.
//!
//! # Rules
//!
//! - Rows are `f32`, [`half::f16`] or [`bf16`]. The result has the same type, and allowed logits keep their bits, NaN
//!   included.
//! - Token t is bit `t % 32` of word `t / 32`, and 1 means allowed. The bool form has one bool per token.
//! - A mask shorter than the row forbids everything beyond its end; a longer one is ignored beyond the row's end. An
//!   empty mask forbids all: the whole row becomes −∞, which the caller must detect.
//!
//! # Performance
//!
//! Most words of a mask are all ones or all zeros: the former are skipped, the latter filled. For the other words each
//! lane tests its own constant bit. The compiler turns this form into vector instructions on every target, without
//! `unsafe` and without detecting features at run time (`examples/kernels.rs` measures five to thirty times the speed
//! of the plain loop).

use std::{error::Error, fmt};

use half::{bf16, f16};

/// A type of logits: `f32`, [`half::f16`] or [`bf16`].
pub trait Logit: Copy + sealed::Sealed {
    /// The logit of a forbidden token.
    const NEG_INFINITY: Self;
}

impl Logit for f32 {
    const NEG_INFINITY: Self = f32::NEG_INFINITY;
}

impl Logit for f16 {
    const NEG_INFINITY: Self = f16::NEG_INFINITY;
}

impl Logit for bf16 {
    const NEG_INFINITY: Self = bf16::NEG_INFINITY;
}

/// Forbids, in place, the tokens whose bit is 0.
pub fn mask<L: Logit>(logits: &mut [L], words: &[u32]) {
    let (blocks, tail) = logits.as_chunks_mut::<32>();
    let mut words = words.iter().copied().chain(std::iter::repeat(0));
    for (block, word) in blocks.iter_mut().zip(words.by_ref()) {
        match word {
            u32::MAX => {}
            0 => *block = [L::NEG_INFINITY; 32],
            _ => L::select(block, word),
        }
    }
    let last = words.next().unwrap_or(0);
    for (bit, logit) in tail.iter_mut().enumerate() {
        if last >> bit & 1 == 0 {
            *logit = L::NEG_INFINITY;
        }
    }
}

/// Copies `source` to `target`, forbidding the tokens whose bit is 0.
///
/// # Panics
///
/// If the rows differ in length.
pub fn mask_into<L: Logit>(source: &[L], words: &[u32], target: &mut [L]) {
    target.copy_from_slice(source);
    // PERF: a second pass over the row is cheap while it is in the cache, and skips whole words of ones.
    mask(target, words);
}

/// Forbids, in place, the tokens whose bool is `false`.
pub fn mask_bools<L: Logit>(logits: &mut [L], allowed: &[bool]) {
    let known = logits.len().min(allowed.len());
    let (head, tail) = logits.split_at_mut(known);
    for (logit, &allowed) in head.iter_mut().zip(allowed) {
        *logit = if allowed { *logit } else { L::NEG_INFINITY };
    }
    tail.fill(L::NEG_INFINITY);
}

/// Copies `source` to `target`, forbidding the tokens whose bool is `false`.
///
/// # Panics
///
/// If the rows differ in length.
pub fn mask_bools_into<L: Logit>(source: &[L], allowed: &[bool], target: &mut [L]) {
    target.copy_from_slice(source);
    mask_bools(target, allowed);
}

/// The layout of several rows in one buffer: row i is `[i * stride .. i * stride + width]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// The number of rows.
    pub count: usize,
    /// The number of elements of a row that are used.
    pub width: usize,
    /// The number of elements from the beginning of one row to the beginning of the next; at least `width`.
    pub stride: usize,
}

impl Rows {
    /// Creates the layout of contiguous rows.
    pub fn dense(count: usize, width: usize) -> Self {
        Self { count, width, stride: width }
    }

    fn check(self, len: usize, what: &'static str) -> Result<(), ShapeError> {
        let fault = ShapeError { rows: self, len, what };
        if self.width > self.stride {
            return Err(fault);
        }
        if self.count == 0 {
            return Ok(());
        }
        let needed =
            (self.count - 1).checked_mul(self.stride).and_then(|start| start.checked_add(self.width));
        if needed.is_some_and(|needed| needed <= len) { Ok(()) } else { Err(fault) }
    }
}

/// Forbids in each row of `logits` the tokens whose bit is 0 in the same row of `words`.
///
/// Elements between rows are left unchanged. If there are fewer rows of words than of logits, nothing is changed and an
/// error is returned.
pub fn mask_rows<L: Logit>(
    logits: &mut [L],
    shape: Rows,
    words: &[u32],
    word_shape: Rows,
) -> Result<(), ShapeError> {
    shape.check(logits.len(), "logits")?;
    word_shape.check(words.len(), "mask words")?;
    if word_shape.count < shape.count {
        return Err(ShapeError {
            rows: word_shape,
            len: words.len(),
            what: "fewer rows of mask words than of logits, the mask words",
        });
    }
    for row in 0..shape.count {
        let from = row * word_shape.stride;
        let words = &words[from..from + word_shape.width];
        mask(&mut logits[row * shape.stride..row * shape.stride + shape.width], words);
    }
    Ok(())
}

/// The error for rows that do not fit their buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeError {
    rows: Rows,
    len: usize,
    what: &'static str,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rows { count, width, stride } = self.rows;
        write!(
            f,
            "{}: {count} rows of {width} at a stride of {stride} do not fit a buffer of {} elements",
            self.what, self.len
        )
    }
}

impl Error for ShapeError {}

mod sealed {
    use half::{bf16, f16};

    pub trait Sealed: Sized {
        /// Forbids the elements whose bit in `word` is 0.
        fn select(block: &mut [Self; 32], word: u32);
    }

    /// The bits of a word, one per lane: `word & BITS[i]` needs no shift by a variable, which the oldest vector
    /// instructions do not have.
    const BITS: [u32; 32] = {
        let mut bits = [0; 32];
        let mut lane = 0;
        while lane < 32 {
            bits[lane] = 1 << lane;
            lane += 1;
        }
        bits
    };

    const HALF_BITS: [u16; 16] = {
        let mut bits = [0; 16];
        let mut lane = 0;
        while lane < 16 {
            bits[lane] = 1 << lane;
            lane += 1;
        }
        bits
    };

    impl Sealed for f32 {
        #[inline]
        fn select(block: &mut [Self; 32], word: u32) {
            for (logit, bit) in block.iter_mut().zip(BITS) {
                let keep = if word & bit == 0 { 0 } else { u32::MAX };
                *logit = f32::from_bits(logit.to_bits() & keep | f32::NEG_INFINITY.to_bits() & !keep);
            }
        }
    }

    macro_rules! select_half {
        ($float:ty) => {
            impl Sealed for $float {
                #[inline]
                fn select(block: &mut [Self; 32], word: u32) {
                    let (halves, _) = block.as_chunks_mut::<16>();
                    for (half, word) in halves.iter_mut().zip([word as u16, (word >> 16) as u16]) {
                        for (logit, bit) in half.iter_mut().zip(HALF_BITS) {
                            let keep = if word & bit == 0 { 0 } else { u16::MAX };
                            let forbidden = <$float>::NEG_INFINITY.to_bits() & !keep;
                            *logit = <$float>::from_bits(logit.to_bits() & keep | forbidden);
                        }
                    }
                }
            }
        };
    }
    select_half!(f16);
    select_half!(bf16);
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    /// The definition: one token at a time.
    fn reference<L: Logit>(logits: &[L], allowed: impl Fn(usize) -> bool) -> Vec<L> {
        logits
            .iter()
            .enumerate()
            .map(|(t, &logit)| if allowed(t) { logit } else { L::NEG_INFINITY })
            .collect()
    }

    fn random(seed: &mut u64) -> u32 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as u32
    }

    /// Returns words of all kinds: none, all, and mixed.
    fn random_words(len: usize, seed: &mut u64) -> Vec<u32> {
        (0..len)
            .map(|_| match random(seed) % 4 {
                0 => 0,
                1 => u32::MAX,
                _ => random(seed) ^ random(seed) << 7,
            })
            .collect()
    }

    fn check_all_kernels<L: Logit + Debug + PartialEq>(from: impl Fn(u32) -> L, bits: impl Fn(L) -> u32) {
        let mut seed = 11;
        let bits = |row: &[L]| row.iter().map(|&l| bits(l)).collect::<Vec<u32>>();
        for len in (0..130).chain([1000, 1023, 4097]) {
            for words in [0, 1, len / 32, len / 32 + 1, len / 32 + 3] {
                let words = random_words(words, &mut seed);
                let row: Vec<L> = (0..len).map(|_| from(random(&mut seed))).collect();
                let allowed = |t: usize| words.get(t / 32).is_some_and(|w| w >> (t % 32) & 1 == 1);
                let expected = bits(&reference(&row, allowed));

                let mut in_place = row.clone();
                mask(&mut in_place, &words);
                assert_eq!(bits(&in_place), expected, "in place, {len}, {words:x?}");
                let mut copied = vec![from(7); len];
                mask_into(&row, &words, &mut copied);
                assert_eq!(bits(&copied), expected);

                let bools: Vec<bool> = (0..words.len() * 32).map(allowed).collect();
                let mut in_place = row.clone();
                mask_bools(&mut in_place, &bools);
                assert_eq!(bits(&in_place), expected);
                mask_bools_into(&row, &bools, &mut copied);
                assert_eq!(bits(&copied), expected);
            }
        }
    }

    #[test]
    fn f32_kernels_equal_the_definition() {
        check_all_kernels(|r| if r.is_multiple_of(9) { f32::NAN } else { f32::from_bits(r) }, f32::to_bits);
    }

    #[test]
    fn f16_kernels_equal_the_definition() {
        check_all_kernels(|r| f16::from_bits(r as u16), |l| u32::from(l.to_bits()));
    }

    #[test]
    fn bf16_kernels_equal_the_definition() {
        check_all_kernels(|r| bf16::from_bits(r as u16), |l| u32::from(l.to_bits()));
    }

    #[test]
    fn nothing_allowed_gives_a_row_of_negative_infinity() {
        let mut row = [1.0_f32; 70];
        mask(&mut row, &[0, 0, 0]);
        assert!(row.iter().all(|&l| l == f32::NEG_INFINITY));
        let mut row = [f16::ONE; 70];
        mask(&mut row, &[]);
        assert!(row.iter().all(|&l| l == f16::NEG_INFINITY));
    }

    #[test]
    fn rows_with_gaps_are_masked_row_by_row() {
        let mut seed = 5;
        let (shape, word_shape) =
            (Rows { count: 3, width: 70, stride: 77 }, Rows { count: 4, width: 3, stride: 5 });
        let logits: Vec<f32> = (0..2 * 77 + 70).map(|_| f32::from(random(&mut seed) as u16)).collect();
        let words = random_words(3 * 5 + 3, &mut seed);
        let expected = reference(&logits, |at| {
            let (row, t) = (at / 77, at % 77);
            t >= 70 || words[row * 5 + t / 32] >> (t % 32) & 1 == 1
        });
        let mut masked = logits.clone();
        mask_rows(&mut masked, shape, &words, word_shape).unwrap();
        assert_eq!(masked, expected);
    }

    #[test]
    fn rows_that_do_not_fit_are_refused_and_nothing_is_changed() {
        let mut logits = vec![1.0_f32; 100];
        let words = [0_u32; 8];
        for (shape, word_shape) in [
            (Rows::dense(2, 51), Rows::dense(2, 2)),
            (Rows { count: 2, width: 10, stride: 9 }, Rows::dense(2, 2)),
            (Rows { count: usize::MAX, width: 2, stride: usize::MAX }, Rows::dense(2, 2)),
            (Rows::dense(2, 50), Rows::dense(5, 2)),
            (Rows::dense(2, 50), Rows::dense(1, 2)),
        ] {
            assert!(mask_rows(&mut logits, shape, &words, word_shape).is_err(), "{shape:?} {word_shape:?}");
        }
        assert_eq!(logits, vec![1.0; 100]);
        assert_eq!(mask_rows(&mut logits, Rows::dense(0, 50), &[], Rows::dense(0, 2)), Ok(()));
    }
}
