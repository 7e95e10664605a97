//! Computes how much of a model's mass certain tokens have.
//!
//! PERF: the mass is computed for every token of an answer, over the whole vocabulary, and must cost almost nothing
//! compared with a step of the model. The library's `exp` processes one number at a time. The function here is a
//! polynomial without branches, so that the compiler can vectorize it, and one pass computes the sums of the allowed
//! and of the other tokens. `examples/speed.rs` measures it (`speed mass`).

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest processor")]

/// The number of parallel sums: one for each bit of a mask word.
const LANES: usize = 32;
/// The number of lines that are summed in single precision, so that no digits are lost over a large vocabulary.
const LINES_PER_RUN: usize = 64;
/// Weights below this, relative to the best, have lost digits, or everything.
const MIN_RELATIVE_WEIGHT: f64 = 1e-25;

/// Returns the logarithm of the share of the allowed tokens. Returns `None` if none of them has a share, or if no logit
/// is a number. Logits beyond the end of the mask are forbidden.
pub(super) fn share(logits: &[f32], mask: &[u32]) -> Option<f32> {
    let best = largest(logits)?;
    let (allowed, rest) = pulp::Arch::new().dispatch(Sums { logits, mask, best });
    if allowed > MIN_RELATIVE_WEIGHT {
        return Some((allowed / (allowed + rest)).ln().min(0.0) as f32);
    }
    // Compared with the best they vanish, so they are weighted among themselves.
    let words = mask.iter().copied().chain(std::iter::repeat(0));
    let faint: Vec<f32> = (logits.chunks(LANES).zip(words))
        .flat_map(|(line, word)| line.iter().enumerate().map(move |(bit, &logit)| (word >> bit & 1, logit)))
        .map(|(bit, logit)| if bit == 1 { logit } else { f32::NEG_INFINITY })
        .collect();
    let own = largest(&faint)?;
    let (all, none) = (vec![u32::MAX; faint.len().div_ceil(LANES)], rest + allowed);
    let (sum, _) = pulp::Arch::new().dispatch(Sums { logits: &faint, mask: &all, best: own });
    Some((f64::from(own) - f64::from(best) + sum.ln() - none.ln()).min(0.0) as f32)
}

/// Computes the sums of the weights of the allowed tokens, and of the others.
struct Sums<'r> {
    logits: &'r [f32],
    mask: &'r [u32],
    /// The largest logit, whose weight is one.
    best: f32,
}

impl pulp::NullaryFnOnce for Sums<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn call(self) -> (f64, f64) {
        let Self { logits, mask, best } = self;
        let mut words = mask.iter().copied().chain(std::iter::repeat(0));
        let (mut allowed, mut rest) = (0.0, 0.0);
        for run in logits.chunks(LINES_PER_RUN * LANES) {
            let (mut in_run, mut beside) = ([0.0_f32; LANES], [0.0_f32; LANES]);
            let (lines, tail) = run.as_chunks::<LANES>();
            for (line, word) in lines.iter().zip(words.by_ref()) {
                match word {
                    0 => add(&mut beside, line, best),
                    u32::MAX => add(&mut in_run, line, best),
                    _ => {
                        for (bit, &logit) in line.iter().enumerate() {
                            let weight = weight(logit - best);
                            let chosen = if word & (1 << bit) == 0 { 0.0 } else { weight };
                            in_run[bit] += chosen;
                            beside[bit] += weight - chosen;
                        }
                    }
                }
            }
            if !tail.is_empty() {
                let word = words.next().unwrap_or(0);
                for (bit, &logit) in tail.iter().enumerate() {
                    let sums = if word & (1 << bit) == 0 { &mut beside } else { &mut in_run };
                    sums[bit] += weight(logit - best);
                }
            }
            allowed += in_run.iter().map(|&one| f64::from(one)).sum::<f64>();
            rest += beside.iter().map(|&one| f64::from(one)).sum::<f64>();
        }
        (allowed, rest)
    }
}

#[inline(always)]
fn add(sums: &mut [f32; LANES], line: &[f32; LANES], best: f32) {
    for (sum, &logit) in sums.iter_mut().zip(line) {
        *sum += weight(logit - best);
    }
}

/// Returns the largest of the logits that are numbers.
fn largest(logits: &[f32]) -> Option<f32> {
    // Comparisons with NaN are false. +∞ does not count as a number either.
    let greater = |most: f32, logit: f32| if logit > most && logit < f32::INFINITY { logit } else { most };
    let mut most = [f32::NEG_INFINITY; LANES];
    let (lines, tail) = logits.as_chunks::<LANES>();
    for line in lines {
        for (most, &logit) in most.iter_mut().zip(line) {
            *most = greater(*most, logit);
        }
    }
    let most = most.iter().chain(tail).copied().fold(f32::NEG_INFINITY, greater);
    (most > f32::NEG_INFINITY).then_some(most)
}

/// Computes e to the power of a number that is not positive, to seven digits. Returns 0 for numbers that are too small
/// and for NaN.
#[inline(always)]
fn weight(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // The logarithm of 2 in two parts. The first has few digits, so that its product is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let is_small = !(x > -87.0 && x <= 0.0);
    let x = if is_small { 0.0 } else { x };
    // A number of this size has no digits after the point, and the integer is in its last bits.
    let rounded = x * LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = x - n * LN_2_HIGH - n * LN_2_LOW;
    let p = 1.987_569_1e-4_f32;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let value = p * r * r + r + 1.0;
    let power = f32::from_bits(rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    if is_small { 0.0 } else { value * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_powers_of_e() {
        for step in 0..20_000_i16 {
            let x = -f32::from(step) / 230.0;
            let (found, exact) = (f64::from(weight(x)), f64::from(x).exp());
            assert!((found / exact - 1.0).abs() < 4e-7, "{x}: {found} {exact}");
        }
        let none = [-88.0, f32::NEG_INFINITY, f32::NAN, f32::INFINITY];
        assert!(none.into_iter().all(|x| weight(x) == 0.0));
    }

    #[test]
    fn shares_are_those_of_a_slow_sum() {
        let logits: Vec<f32> =
            (0..3003_u16).map(|id| f32::from(id.wrapping_mul(7919) % 1000) / 40.0 - 9.0).collect();
        let slow = |keep: &dyn Fn(usize) -> bool| {
            let kept = logits.iter().enumerate().filter(|(id, _)| keep(*id));
            kept.map(|(_, logit)| f64::from(*logit).exp()).sum::<f64>()
        };
        let mask = |keep: &dyn Fn(usize) -> bool| {
            let mut words = vec![0_u32; logits.len().div_ceil(32)];
            (0..logits.len()).filter(|id| keep(*id)).for_each(|id| words[id / 32] |= 1 << (id % 32));
            words
        };
        let keeps: [&dyn Fn(usize) -> bool; 6] = [
            &|id| id % 2 == 0,
            &|id| id % 17 == 0,
            &|id| id % 3001 == 0,
            &|id| id / 64 % 2 == 0,
            &|id| id >= 3000,
            &|id| id != 77,
        ];
        for (number, keep) in keeps.iter().enumerate() {
            let exact = (slow(keep) / slow(&|_| true)).ln();
            let found = share(&logits, &mask(keep)).unwrap();
            assert!((f64::from(found) - exact).abs() < 1e-5, "{number}: {found} {exact}");
        }
        // Nothing is lost if everything is allowed, and tokens without any mass have no share.
        assert_eq!(share(&logits, &mask(&|_| true)), Some(0.0));
        assert_eq!(share(&logits, &[]), None);
        assert_eq!(share(&[f32::NEG_INFINITY; 9], &[u32::MAX]), None);
        assert_eq!(share(&[0.0, f32::NEG_INFINITY, f32::NAN], &[0b110]), None);
        // A short mask forbids the rest.
        let mut row = logits.clone();
        row[..32].fill(3.0);
        let short = share(&row, &[u32::MAX]).unwrap();
        let all: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
        assert!((f64::from(short) - (32.0 * 3.0_f64.exp() / all).ln()).abs() < 1e-5, "{short}");
        // A share that is too small for a float still has a logarithm.
        assert_eq!(share(&[0.0, -900.0], &[0b10]), Some(-900.0));
        let faint = [0.0, -900.0, -901.0];
        let exact = -900.0 + (1.0 + (-1.0_f64).exp()).ln();
        assert!((f64::from(share(&faint, &[0b110]).unwrap()) - exact).abs() < 1e-3);
    }
}
