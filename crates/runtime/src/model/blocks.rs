//! Rows of numbers in eight-bit blocks, and their dot products.
//!
//! A *block* is 32 integers from −127 to 127 with a common factor. A row of 576 floats (2,304 bytes) becomes 18 blocks
//! (648 bytes), and a dot product of two rows becomes 18 dot products of small integers, of which processors compute 32
//! at a time:
//!
//! ```text
//! row   [ 0.31 −0.02 … ]  ─▶  127 · 0.00244  −8 · 0.00244 …
//! dot   Σ over blocks: (factor · factor) · Σ of 32 products of whole numbers
//! ```
//!
//! The numbers of several rows are multiplied with those of several others in one go (a *tile*), so that each number is
//! loaded only once and its sign is only examined once. Every dot product of a tile has its own sum, which is built in
//! the same order for all tile sizes: **its bits do not depend on its neighbors**.
//!
//! There are two implementations: [`Avx2`](Way::Avx2) for x86-64 processors of the last decade, and
//! [`Plain`](Way::Plain) for all others, which the compiler vectorizes as far as possible. The choice is made at run
//! time.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest processor")]

use super::config::BLOCK;

type Block = [i8; BLOCK];

/// Rows of blocks, all with the same width.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocks {
    numbers: Vec<Block>,
    factors: Vec<f32>,
    /// The number of blocks in a row.
    width: usize,
}

/// One row.
#[derive(Clone, Copy)]
pub(crate) struct Row<'b> {
    numbers: &'b [Block],
    factors: &'b [f32],
}

impl Blocks {
    /// Creates rows with this many floats, a multiple of the block size.
    pub(crate) fn new(rows: &[f32], columns: usize) -> Self {
        let mut blocks = Self::default();
        blocks.fill(rows, columns);
        blocks
    }

    /// Replaces the content by other rows, and reuses the memory.
    pub(crate) fn fill(&mut self, rows: &[f32], columns: usize) {
        self.width = columns / BLOCK;
        self.numbers.resize(rows.len() / BLOCK, [0; BLOCK]);
        self.factors.resize(rows.len() / BLOCK, 0.0);
        Way::detect().run(Quantise { rows, numbers: &mut self.numbers, factors: &mut self.factors });
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.factors.len().checked_div(self.width).unwrap_or(0)
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        self.numbers.append(&mut other.numbers);
        self.factors.append(&mut other.factors);
    }

    /// Converts a row to floats.
    pub(crate) fn floats(&self, row: usize, out: &mut [f32]) {
        let Row { numbers, factors } = self.row(row);
        for ((out, block), factor) in out.chunks_exact_mut(BLOCK).zip(numbers).zip(factors) {
            for (out, number) in out.iter_mut().zip(block) {
                *out = f32::from(*number) * factor;
            }
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.numbers.len() * (BLOCK + size_of::<f32>())
    }

    #[inline(always)]
    fn row(&self, row: usize) -> Row<'_> {
        let place = row * self.width..(row + 1) * self.width;
        Row { numbers: &self.numbers[place.clone()], factors: &self.factors[place] }
    }
}

/// The implementation of dot products.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// For every processor.
    Plain,
    /// For x86-64 with AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
}

impl Way {
    /// Returns the best implementation for this processor. This is cheap.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Self::Avx2(simd);
        }
        Self::Plain
    }

    /// Runs some work with all instructions that the implementation may use.
    pub(crate) fn run<W: Work>(self, work: W) {
        match self {
            Self::Plain => work.run(Plain),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.vectorize(Vectorized { simd, work }),
        }
    }
}

/// Time-consuming work.
pub(crate) trait Work {
    /// Runs it. This function and all time-consuming functions that it calls must be `#[inline(always)]`, or they are
    /// compiled for the oldest processor.
    fn run(self, tiles: impl Tiles);
}

/// Dot products of several rows with several others.
pub(crate) trait Tiles: Copy {
    fn tile<const R: usize, const I: usize>(self, rows: [Row<'_>; R], inputs: [Row<'_>; I]) -> [[f32; I]; R];
}

/// Multiplies each of these rows of a matrix with each input: `out` has, for each row, a number for each input.
pub(crate) struct Products<'b> {
    pub(crate) matrix: &'b Blocks,
    pub(crate) first: usize,
    pub(crate) inputs: &'b Blocks,
    pub(crate) out: &'b mut [f32],
}

/// The number of inputs that are processed together for all rows; they and the rows stay in the nearest cache.
const INPUTS_PER_PASS: usize = 16;

impl Work for Products<'_> {
    #[inline(always)]
    fn run(mut self, tiles: impl Tiles) {
        let count = self.inputs.rows();
        if count == 1 {
            return self.rows::<4, 1>(tiles, 0, 1);
        }
        for start in (0..count).step_by(INPUTS_PER_PASS) {
            let end = count.min(start + INPUTS_PER_PASS);
            let fours = start + (end - start) / 4 * 4;
            self.rows::<2, 4>(tiles, start, fours);
            self.rows::<2, 1>(tiles, fours, end);
        }
    }
}

impl Products<'_> {
    /// Computes all rows for the inputs from `start` to `end`, whose number is a multiple of I.
    #[inline(always)]
    fn rows<const R: usize, const I: usize>(&mut self, tiles: impl Tiles, start: usize, end: usize) {
        let rows = self.out.len() / self.inputs.rows().max(1);
        let whole = rows / R * R;
        for row in (0..whole).step_by(R) {
            self.inputs_by::<R, I>(tiles, row, start, end);
        }
        for row in whole..rows {
            self.inputs_by::<1, I>(tiles, row, start, end);
        }
    }

    #[inline(always)]
    fn inputs_by<const R: usize, const I: usize>(
        &mut self,
        tiles: impl Tiles,
        row: usize,
        start: usize,
        end: usize,
    ) {
        let (matrix, inputs, count) = (self.matrix, self.inputs, self.inputs.rows());
        let rows: [Row<'_>; R] = std::array::from_fn(|at| matrix.row(self.first + row + at));
        for input in (start..end).step_by(I) {
            let tile = tiles.tile(rows, std::array::from_fn::<_, I, _>(|at| inputs.row(input + at)));
            for (at, numbers) in tile.iter().enumerate() {
                let place = (row + at) * count + input;
                self.out[place..place + I].copy_from_slice(numbers);
            }
        }
    }
}

struct Quantise<'b> {
    rows: &'b [f32],
    numbers: &'b mut [Block],
    factors: &'b mut [f32],
}

impl Work for Quantise<'_> {
    #[inline(always)]
    fn run(self, _: impl Tiles) {
        for ((floats, block), factor) in self.rows.chunks_exact(BLOCK).zip(self.numbers).zip(self.factors) {
            let most = floats.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
            *factor = most / 127.0;
            let inverse = if most == 0.0 { 0.0 } else { 127.0 / most };
            for (number, float) in block.iter_mut().zip(floats) {
                *number = (float * inverse).round_ties_even() as i8;
            }
        }
    }
}

/// Loops that the compiler can vectorize.
#[derive(Clone, Copy)]
struct Plain;

impl Tiles for Plain {
    #[inline(always)]
    fn tile<const R: usize, const I: usize>(self, rows: [Row<'_>; R], inputs: [Row<'_>; I]) -> [[f32; I]; R] {
        rows.map(|row| inputs.map(|input| plain_dot(row, input)))
    }
}

fn plain_dot(row: Row<'_>, input: Row<'_>) -> f32 {
    let mut sum = 0.0;
    let blocks = row.numbers.iter().zip(input.numbers);
    for ((left, right), (x, y)) in blocks.zip(row.factors.iter().zip(input.factors)) {
        let whole: i32 = left.iter().zip(right).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
        sum += whole as f32 * (x * y);
    }
    sum
}

#[cfg(target_arch = "x86_64")]
struct Vectorized<W> {
    simd: pulp::x86::V3,
    work: W,
}

#[cfg(target_arch = "x86_64")]
impl<W: Work> pulp::NullaryFnOnce for Vectorized<W> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.work.run(self.simd);
    }
}

#[cfg(target_arch = "x86_64")]
impl Tiles for pulp::x86::V3 {
    #[inline(always)]
    fn tile<const R: usize, const I: usize>(self, rows: [Row<'_>; R], inputs: [Row<'_>; I]) -> [[f32; I]; R] {
        use std::arch::x86_64::__m256i;

        let blocks = rows[0].numbers.len();
        // The same length for all, so that the compiler checks bounds only once.
        let rows = rows.map(|row| Row { numbers: &row.numbers[..blocks], factors: &row.factors[..blocks] });
        let inputs =
            inputs.map(|row| Row { numbers: &row.numbers[..blocks], factors: &row.factors[..blocks] });
        let ones = self.avx._mm256_set1_epi16(1);
        let mut sums = [[self.avx._mm256_setzero_ps(); I]; R];
        for block in 0..blocks {
            let right: [__m256i; I] = std::array::from_fn(|at| bytemuck::cast(inputs[at].numbers[block]));
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let left: __m256i = bytemuck::cast(row.numbers[block]);
                // One factor of a product must be unsigned: |x| · (y with the sign of x) is x · y, and two of these
                // products fit into 16 bits.
                let size = self.avx2._mm256_abs_epi8(left);
                for (at, sum) in sums.iter_mut().enumerate() {
                    let signed = self.avx2._mm256_sign_epi8(right[at], left);
                    let pairs = self.avx2._mm256_maddubs_epi16(size, signed);
                    let fours = self.avx._mm256_cvtepi32_ps(self.avx2._mm256_madd_epi16(pairs, ones));
                    let factor = self.avx._mm256_set1_ps(row.factors[block] * inputs[at].factors[block]);
                    *sum = self.fma._mm256_fmadd_ps(fours, factor, *sum);
                }
            }
        }
        sums.map(|sums| sums.map(|sum| bytemuck::cast::<_, [f32; 8]>(sum).iter().sum()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::rng::Rng;

    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let rng = Rng::new(Some(seed), 0);
        (0..count as u64).map(|at| (rng.at(at) * 2.0 - 1.0) as f32).collect()
    }

    fn products(way: Way, matrix: &Blocks, inputs: &Blocks) -> Vec<f32> {
        let mut out = vec![0.0; matrix.rows() * inputs.rows()];
        way.run(Products { matrix, first: 0, inputs, out: &mut out });
        out
    }

    #[test]
    fn rounding_is_within_half_a_step_and_exact_on_its_own_results() {
        let mut floats = numbers(1, 320);
        floats[32..64].fill(0.0);
        let blocks = Blocks::new(&floats, 64);
        let mut back = vec![0.0; 320];
        for (row, out) in back.chunks_exact_mut(64).enumerate() {
            blocks.floats(row, out);
        }
        for (block, back) in floats.chunks(32).zip(back.chunks(32)) {
            let step = block.iter().fold(0.0_f32, |most, number| most.max(number.abs())) / 127.0;
            assert!(block.iter().zip(back).all(|(x, y)| (x - y).abs() <= step * 0.501));
        }
        assert_eq!(Blocks::new(&back, 64).numbers, blocks.numbers);
    }

    /// Compares both implementations with double-precision sums of the same integers.
    #[test]
    fn every_way_gives_the_dot_products() {
        for (rows, count, columns) in [(1, 1, 32), (5, 1, 96), (7, 3, 64), (9, 23, 160), (4, 16, 576)] {
            let matrix = Blocks::new(&numbers(2, rows * columns), columns);
            let inputs = Blocks::new(&numbers(3, count * columns), columns);
            for way in [Way::Plain, Way::detect()] {
                let out = products(way, &matrix, &inputs);
                let (mut left, mut right) = (vec![0.0; columns], vec![0.0; columns]);
                for row in 0..rows {
                    matrix.floats(row, &mut left);
                    for input in 0..count {
                        inputs.floats(input, &mut right);
                        let exact: f64 =
                            left.iter().zip(&right).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
                        let found = f64::from(out[row * count + input]);
                        assert!((found - exact).abs() < 1e-4, "{way:?}: {found} for {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let matrix = Blocks::new(&[1.0; 64], 64);
        let inputs = Blocks::new(&[-1.0; 64], 64);
        for way in [Way::Plain, Way::detect()] {
            assert!((products(way, &matrix, &inputs)[0] + 64.0).abs() < 1e-4);
        }
    }

    #[test]
    fn neighbors_change_no_bit() {
        let (rows, count, columns) = (11, 21, 128);
        let matrix = Blocks::new(&numbers(4, rows * columns), columns);
        let all = numbers(5, count * columns);
        let together = products(Way::detect(), &matrix, &Blocks::new(&all, columns));
        for (input, floats) in all.chunks_exact(columns).enumerate() {
            let alone = products(Way::detect(), &matrix, &Blocks::new(floats, columns));
            assert!((0..rows).all(|row| alone[row].to_bits() == together[row * count + input].to_bits()));
        }
    }
}
