//! Semirings: the weights that a parser computes with. One algorithm answers many questions.
//!
//! Weights are added where two derivations give the same text, and multiplied along one derivation. With other weights
//! the same chart answers other questions:
//!
//! | semiring | add | multiply | value of a sentence |
//! |---|---|---|---|
//! | [`Boolean`] | or | and | whether it belongs to the language |
//! | [`Real`] | + | × | its probability; columns are rescaled, so that long texts do not underflow |
//! | [`Log`] | log-sum-exp | + | the logarithm of its probability |
//! | [`MaxPlus`] | max | + | the logarithm of the probability of its best derivation |
//! | [`Count`] | + | × | its number of derivations |
//! | [`MinPlus`] | min | + | its number of symbols; for the rest of a text, the shortest completion |
//!
//! Loops (left recursion, chains of unit rules) need the sum 1 + a + a² + …, which [`Semiring::star`] gives in closed
//! form.

use core::fmt::Debug;

/// The method for the least solution of equations with loops, used for rules that derive the empty text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixpoint {
    /// Addition is idempotent, and going around a loop is never better: as many rounds as there are unknowns are
    /// enough.
    Rounds,
    /// Every loop has infinite weight.
    Infinite,
    /// The values are probabilities: Newton's method.
    Newton,
}

/// Weights with an addition, a multiplication, and sums over loops.
pub trait Semiring: Clone + Copy + Debug + Default + Send + Sync + 'static {
    /// A weight.
    type Value: Copy + Debug + PartialEq + Send + Sync;
    /// The weight of no derivation.
    const ZERO: Self::Value;
    /// The weight of a derivation without steps.
    const ONE: Self::Value;
    /// The method for loops of rules that derive the empty text.
    const FIXPOINT: Fixpoint;

    /// Adds the weights of two derivations of the same text.
    fn add(a: Self::Value, b: Self::Value) -> Self::Value;
    /// Multiplies the weights of two parts of a derivation.
    fn mul(a: Self::Value, b: Self::Value) -> Self::Value;
    /// Returns 1 + a + a² + …; `None` if the sum diverges.
    fn star(a: Self::Value) -> Option<Self::Value>;
    /// Returns the weight of a choice with this probability.
    fn weight(probability: f64) -> Self::Value;
    /// Returns the weight of reading a symbol of the input.
    fn letter() -> Self::Value {
        Self::ONE
    }
    /// Returns the logarithm of a weight, as a logarithm of a probability.
    fn log(a: Self::Value) -> f64;
    /// Returns a factor that brings a small weight back to a medium size, and the factor's logarithm.
    fn rescale(_prefix: Self::Value) -> Option<(Self::Value, f64)> {
        None
    }
    /// Checks whether a nonzero weight is so small compared with its column that some or all of its digits are lost.
    fn is_faint(_: Self::Value) -> bool {
        false
    }
    /// Checks whether there is no derivation.
    fn is_zero(a: Self::Value) -> bool {
        a == Self::ZERO
    }
}

/// Whether there is a derivation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Boolean;

impl Semiring for Boolean {
    type Value = bool;
    const ZERO: bool = false;
    const ONE: bool = true;
    const FIXPOINT: Fixpoint = Fixpoint::Rounds;

    fn add(a: bool, b: bool) -> bool {
        a || b
    }
    fn mul(a: bool, b: bool) -> bool {
        a && b
    }
    fn star(_: bool) -> Option<bool> {
        Some(true)
    }
    fn weight(probability: f64) -> bool {
        probability > 0.0
    }
    fn log(a: bool) -> f64 {
        if a { 0.0 } else { f64::NEG_INFINITY }
    }
}

/// Probabilities, rescaled column by column.
///
/// All weights of a column share one scale. A weight that is 10³⁰⁰ times smaller than the rest is lost, and with it
/// everything that only it could continue.
/// [`Log`] keeps such weights. Use [`Boolean`] to find out whether a text is allowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

/// A loop of at least this probability counts as certain: its sum would consist of rounding errors.
const CERTAIN: f64 = 1.0 - 1e-12;

impl Semiring for Real {
    type Value = f64;
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const FIXPOINT: Fixpoint = Fixpoint::Newton;

    fn add(a: f64, b: f64) -> f64 {
        a + b
    }
    fn mul(a: f64, b: f64) -> f64 {
        a * b
    }
    fn star(a: f64) -> Option<f64> {
        (a < CERTAIN).then(|| 1.0 / (1.0 - a))
    }
    fn weight(probability: f64) -> f64 {
        probability
    }
    fn log(a: f64) -> f64 {
        a.ln()
    }
    fn rescale(prefix: f64) -> Option<(f64, f64)> {
        // A power of two changes no digit. With the number's own exponent, it comes back to between 1 and 2.
        if !(prefix > 0.0 && prefix < 2f64.powi(-100)) {
            return None;
        }
        let exponent = (-prefix.log2().floor()).min(1000.0);
        Some((exponent.exp2(), exponent * core::f64::consts::LN_2))
    }
    fn is_faint(a: f64) -> bool {
        // Smaller numbers lose digits; this leaves some room for the multiplications of one step.
        a < 1e-280
    }
}

/// Logarithms of probabilities. Slower than [`Real`] and without scaling; the tests compare the two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log;

impl Semiring for Log {
    type Value = f64;
    const ZERO: f64 = f64::NEG_INFINITY;
    const ONE: f64 = 0.0;
    const FIXPOINT: Fixpoint = Fixpoint::Newton;

    fn add(a: f64, b: f64) -> f64 {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
    }
    fn mul(a: f64, b: f64) -> f64 {
        a + b
    }
    fn star(a: f64) -> Option<f64> {
        (a < CERTAIN.ln()).then(|| -(-a.exp_m1()).ln())
    }
    fn weight(probability: f64) -> f64 {
        probability.ln()
    }
    fn log(a: f64) -> f64 {
        a
    }
}

/// Logarithms of probabilities of best derivations.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxPlus;

impl Semiring for MaxPlus {
    type Value = f64;
    const ZERO: f64 = f64::NEG_INFINITY;
    const ONE: f64 = 0.0;
    const FIXPOINT: Fixpoint = Fixpoint::Rounds;

    fn add(a: f64, b: f64) -> f64 {
        a.max(b)
    }
    fn mul(a: f64, b: f64) -> f64 {
        a + b
    }
    fn star(a: f64) -> Option<f64> {
        (a <= 0.0).then_some(0.0)
    }
    fn weight(probability: f64) -> f64 {
        probability.ln()
    }
    fn log(a: f64) -> f64 {
        a
    }
}

/// The number of derivations. [`Count::MANY`] means infinitely many, or more than fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count;

impl Count {
    /// Infinitely many, or more than fit into 64 bits.
    pub const MANY: u64 = u64::MAX;
}

impl Semiring for Count {
    type Value = u64;
    const ZERO: u64 = 0;
    const ONE: u64 = 1;
    const FIXPOINT: Fixpoint = Fixpoint::Infinite;

    fn add(a: u64, b: u64) -> u64 {
        a.saturating_add(b)
    }
    fn mul(a: u64, b: u64) -> u64 {
        a.saturating_mul(b)
    }
    fn star(a: u64) -> Option<u64> {
        Some(if a == 0 { 1 } else { Self::MANY })
    }
    fn weight(probability: f64) -> u64 {
        u64::from(probability > 0.0)
    }
    #[expect(clippy::cast_precision_loss, reason = "a logarithm has no use for the last digits")]
    fn log(a: u64) -> f64 {
        (a as f64).ln()
    }
}

/// The least number of symbols of a derivation. [`MinPlus::NEVER`] means that there is no derivation.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinPlus;

impl MinPlus {
    /// No derivation.
    pub const NEVER: u64 = u64::MAX;
}

impl Semiring for MinPlus {
    type Value = u64;
    const ZERO: u64 = u64::MAX;
    const ONE: u64 = 0;
    const FIXPOINT: Fixpoint = Fixpoint::Rounds;

    fn add(a: u64, b: u64) -> u64 {
        a.min(b)
    }
    fn mul(a: u64, b: u64) -> u64 {
        a.saturating_add(b)
    }
    fn star(_: u64) -> Option<u64> {
        Some(0)
    }
    fn weight(probability: f64) -> u64 {
        if probability > 0.0 { 0 } else { Self::NEVER }
    }
    fn letter() -> u64 {
        1
    }
    #[expect(clippy::cast_precision_loss, reason = "texts are shorter than 2^53 symbols")]
    fn log(a: u64) -> f64 {
        if a == Self::NEVER { f64::NEG_INFINITY } else { -(a as f64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_summed_and_certain_loops_refused() {
        assert_eq!(Real::star(0.5), Some(2.0));
        assert_eq!(Real::star(1.0), None);
        assert!((Log::star(0.5f64.ln()).unwrap() - 2f64.ln()).abs() < 1e-15);
        assert_eq!(Log::star(0.0), None);
        assert_eq!(Count::star(1), Some(Count::MANY));
        assert_eq!(MinPlus::star(3), Some(0));
    }

    #[test]
    fn small_numbers_come_back_and_keep_their_digits() {
        let (factor, log) = Real::rescale(3e-200).unwrap();
        let scaled = 3e-200 * factor;
        assert!((1.0..2.0).contains(&scaled), "{scaled}");
        assert!((scaled.ln() - log - 3e-200f64.ln()).abs() < 1e-12);
        assert_eq!(Real::rescale(0.25), None);
        // Even for the smallest of all numbers the factor is finite.
        assert!(Real::rescale(f64::from_bits(1)).unwrap().0.is_finite());
    }
}
