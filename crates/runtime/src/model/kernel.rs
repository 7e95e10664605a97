//! The time-consuming loops of the forward pass.
//!
//! Products of matrices are tiles of dot products of eight-bit [blocks](super::blocks). This module divides the rows of
//! a matrix into pieces for the threads, and a piece is multiplied with *all* inputs while it is in the cache.
//!
//! Every number of a result is computed by the same operations in the same order, regardless of the rest of the batch
//! and of the number of threads.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest processor")]

use rayon::prelude::*;

use super::{
    blocks::{Blocks, Products, Way},
    config::{Pairs, Rope},
    weights::Matrix,
};

/// The number of rows of a matrix in one piece of work. 64 rows of a small model are 40 KB, which stay in the cache of
/// a core.
const ROWS_PER_PIECE: usize = 64;

/// Whether work is distributed over the threads of the current pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    One,
    All,
}

impl Spread {
    /// Calls a function with each piece of this length.
    pub(crate) fn pieces(self, all: &mut [f32], length: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
        if self == Self::All && all.len() > length {
            all.par_chunks_mut(length).enumerate().for_each(|(index, piece)| work(index, piece));
        } else {
            all.chunks_mut(length).enumerate().for_each(|(index, piece)| work(index, piece));
        }
    }
}

/// Multiplies each input with a matrix: `out` gets a row of `matrix.rows` floats for each input.
pub(crate) fn product(
    matrix: &Matrix,
    inputs: &Blocks,
    out: &mut Vec<f32>,
    turned: &mut Vec<f32>,
    spread: Spread,
) {
    let (count, rows) = (inputs.rows(), matrix.rows());
    let way = Way::detect();
    let multiply = |piece: usize, out: &mut [f32]| {
        way.run(Products { matrix: &matrix.blocks, first: piece * ROWS_PER_PIECE, inputs, out });
    };
    out.resize(count * rows, 0.0);
    if count == 1 {
        return spread.pieces(out, ROWS_PER_PIECE, multiply);
    }
    // One row of the matrix gives a number for each input, so the result is transposed.
    turned.resize(count * rows, 0.0);
    spread.pieces(turned, ROWS_PER_PIECE * count, multiply);
    spread.pieces(out, rows, |input, numbers| {
        for (row, number) in numbers.iter_mut().enumerate() {
            *number = turned[row * count + input];
        }
    });
}

/// Divides each row by its root mean square, and multiplies its values with weights.
pub(crate) fn norm(rows: &mut [f32], weights: &[f32], epsilon: f32) {
    for row in rows.chunks_exact_mut(weights.len()) {
        let scale = 1.0 / (dot(row, row) / row.len() as f32 + epsilon).sqrt();
        for (number, weight) in row.iter_mut().zip(weights) {
            *number *= scale * weight;
        }
    }
}

/// Cosines and sines of the angles of some positions: one row of pairs for each position.
#[derive(Debug, Default)]
pub(crate) struct Angles {
    pairs: Vec<(f32, f32)>,
}

impl Angles {
    pub(crate) fn fill(&mut self, rope: &Rope, positions: impl Iterator<Item = usize>) {
        self.pairs.clear();
        for position in positions {
            let turn = |frequency: &f32| {
                let (sine, cosine) = (position as f32 * frequency).sin_cos();
                (cosine, sine)
            };
            self.pairs.extend(rope.frequencies.iter().map(turn));
        }
    }

    /// Rotates the heads of a row by the angles of its position.
    pub(crate) fn turn(&self, row: usize, heads: &mut [f32], rope: &Rope) {
        let half = rope.frequencies.len();
        let angles = &self.pairs[row * half..(row + 1) * half];
        for head in heads.chunks_exact_mut(2 * half) {
            match rope.pairs {
                Pairs::Neighbors => {
                    for (pair, &(cosine, sine)) in head.chunks_exact_mut(2).zip(angles) {
                        (pair[0], pair[1]) = rotated(pair[0], pair[1], cosine, sine);
                    }
                }
                Pairs::Halves => {
                    let (left, right) = head.split_at_mut(half);
                    for ((left, right), &(cosine, sine)) in left.iter_mut().zip(right).zip(angles) {
                        (*left, *right) = rotated(*left, *right, cosine, sine);
                    }
                }
            }
        }
    }
}

fn rotated(x: f32, y: f32, cosine: f32, sine: f32) -> (f32, f32) {
    (x * cosine - y * sine, x * sine + y * cosine)
}

/// Computes `silu(gate) · up`, where each row holds all gates and then all ups.
pub(crate) fn gated(gate_up: &[f32], inner: usize, out: &mut Vec<f32>) {
    out.clear();
    for row in gate_up.chunks_exact(2 * inner) {
        let (gates, ups) = row.split_at(inner);
        out.extend(gates.iter().zip(ups).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up));
    }
}

/// Converts scores to shares of 1.
#[inline(always)]
pub(crate) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in &mut *scores {
        *score = (*score - most).exp();
        sum += *score;
    }
    for score in scores {
        *score /= sum;
    }
}

/// PERF: eight parallel sums, because the compiler may not reorder a single sum of floats.
#[inline(always)]
pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 8];
    let (lefts, rights) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest: f32 = lefts.remainder().iter().zip(rights.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in lefts.zip(rights) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
            *sum += x * y;
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// Adds a multiple of one row to another.
#[inline(always)]
pub(crate) fn add(row: &mut [f32], factor: f32, other: &[f32]) {
    for (number, other) in row.iter_mut().zip(other) {
        *number += factor * other;
    }
}
