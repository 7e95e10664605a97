//! How much of a model's mass lies on some tokens.
//!
//! PERF: the mass is wanted for every token of an answer, over the whole vocabulary, and must cost next to nothing beside a step of the model. The library's `exp` takes one number at a time; this one
//! is a polynomial without branches, so that the compiler can compute several at once: both sums over 49,152 logits take 0.2 to 0.35 ms, about one per cent of a step of a small model.

/// So many sums are kept side by side.
const LANES: usize = 8;

/// The logarithm of the sum of the weights of all logits. −∞ if none is a number.
pub(super) fn log_sum(logits: &[f32]) -> f64 {
    let best = largest(logits);
    if best == f32::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    let mut sums = [0.0_f32; LANES];
    let mut sum = 0.0_f64;
    // Short runs in single precision, so that no digits are lost over a large vocabulary.
    for run in logits.chunks(256) {
        let (lines, rest) = run.as_chunks::<LANES>();
        for line in lines {
            for (sum, &logit) in sums.iter_mut().zip(line) {
                *sum += weight(logit - best);
            }
        }
        sum += rest.iter().map(|&logit| f64::from(weight(logit - best))).sum::<f64>();
        sum += sums.iter().map(|&one| f64::from(one)).sum::<f64>();
        sums = [0.0; LANES];
    }
    f64::from(best) + sum.ln()
}

/// The logarithm of the share that logits have of a whole. `None` if they have none.
pub(super) fn share(logits: &[f32], whole: f64) -> Option<f32> {
    let part = log_sum(logits);
    // Rounding must not make a part larger than the whole.
    (part.is_finite() && whole.is_finite()).then(|| (part - whole).min(0.0) as f32)
}

fn largest(logits: &[f32]) -> f32 {
    let mut most = [f32::NEG_INFINITY; LANES];
    let (lines, rest) = logits.as_chunks::<LANES>();
    for line in lines {
        for (most, &logit) in most.iter_mut().zip(line) {
            // What is not a number is never greater. +∞ is no number either.
            *most = if logit > *most && logit < f32::INFINITY { logit } else { *most };
        }
    }
    let finite = rest.iter().copied().filter(|logit| logit.is_finite());
    finite.chain(most).fold(f32::NEG_INFINITY, f32::max)
}

/// e to the power of a number that is not positive, to seven digits. 0 for what is too small or not a number.
fn weight(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // The logarithm of 2 in two parts, of which the first has few digits, so that its product is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let is_small = !(x > -87.0 && x <= 0.0);
    let x = if is_small { 0.0 } else { x };
    // So large a number has no digits behind the point, and those before it are its last bits.
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
            (0..1003_u16).map(|id| f32::from(id.wrapping_mul(7919) % 1000) / 40.0 - 9.0).collect();
        let slow = |keep: &dyn Fn(usize) -> bool| {
            let kept = logits.iter().enumerate().filter(|(id, _)| keep(*id));
            kept.map(|(_, logit)| f64::from(*logit).exp()).sum::<f64>()
        };
        for every in [2, 3, 17, 1003] {
            let masked: Vec<f32> = (logits.iter().enumerate())
                .map(|(id, &logit)| if id % every == 0 { logit } else { f32::NEG_INFINITY })
                .collect();
            let exact = (slow(&|id| id % every == 0) / slow(&|_| true)).ln();
            let found = share(&masked, log_sum(&logits)).unwrap();
            assert!((f64::from(found) - exact).abs() < 1e-5, "{every}: {found} {exact}");
        }
        // Nothing is lost where everything is allowed, and what has no mass at all has no share.
        assert_eq!(share(&logits, log_sum(&logits)), Some(0.0));
        assert_eq!(share(&[f32::NEG_INFINITY; 9], log_sum(&logits)), None);
        // A share that no single number could hold is still a number.
        let far = [0.0, -900.0];
        assert_eq!(share(&[f32::NEG_INFINITY, -900.0], log_sum(&far)), Some(-900.0));
    }
}
