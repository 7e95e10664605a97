//! Measures the kernels that apply a mask: `cargo run --release --example kernels`.
//!
//! Each is compared with the simplest possible loop, on a row of 128,256 logits, for three kinds of masks: nearly
//! everything allowed (inside a JSON string), nearly nothing (a keyword), and every other token.
#![expect(clippy::print_stdout, reason = "this program prints its measurements")]

use std::{hint::black_box, time::Instant};

use half::{bf16, f16};
use maskwright_vocab::apply::{self, Logit};

const TOKENS: usize = 128_256;
const WORDS: usize = TOKENS.div_ceil(32);

fn main() {
    let nearly_all: Vec<u32> =
        (0..WORDS).map(|i| if i % 30 == 7 { !0x0010_0400 } else { u32::MAX }).collect();
    let nearly_none: Vec<u32> = (0..WORDS).map(|i| if i % 500 == 7 { 0x0010_0400 } else { 0 }).collect();
    let every_other = vec![0x5555_5555; WORDS];
    for (name, words) in
        [("nearly all", nearly_all), ("nearly none", nearly_none), ("every other", every_other)]
    {
        measure("f32", name, &vec![1.5_f32; TOKENS], &words);
        measure("f16", name, &vec![f16::ONE; TOKENS], &words);
        measure("bf16", name, &vec![bf16::ONE; TOKENS], &words);
    }
}

fn measure<L: Logit>(kind: &str, name: &str, row: &[L], words: &[u32]) {
    let mut target = row.to_vec();
    let copy = micros(|| black_box(&mut target).copy_from_slice(row));
    let in_place = micros(|| apply::mask(black_box(&mut target), words));
    let copying = micros(|| apply::mask_into(row, words, black_box(&mut target)));
    let plain = micros(|| {
        for (token, logit) in black_box(&mut target).iter_mut().enumerate() {
            if words[token / 32] >> (token % 32) & 1 == 0 {
                *logit = L::NEG_INFINITY;
            }
        }
    });
    println!(
        "{kind:4} {name:11}: in place {in_place:6.1} µs, copying {copying:6.1} µs, plain loop {plain:6.1} µs, bare copy {copy:6.1} µs"
    );
}

/// Returns the least time of many runs.
fn micros(mut work: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..2000 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64() * 1e6);
    }
    best
}
