//! Decimal numbers, read from text and compared exactly.
//!
//! `1`, `1.0` and `10e-1` are the same number, and `9007199254740993` differs from `9007199254740992`, which a double
//! could not represent. A number is a sign, digits without zeros at either end, and a power of ten.

use core::cmp::Ordering;

/// The maximum number of zeros appended in a division. A remainder that is left after this many never vanishes: each
/// zero removes one factor two and one factor five from the divisor, which has fewer than 64 of them.
const MAX_ZEROS: u64 = 64;

/// A number as `± digits × 10^exponent`. Zero has no digits, no sign and the exponent 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Box<[u8]>,
    exponent: i64,
}

impl Decimal {
    /// Reads a JSON number. An exponent beyond 64 bits is clamped, which still differs from every exponent that occurs
    /// in practice.
    pub(crate) fn parse(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, parse_power(power)),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let kept = digits.iter().rposition(|&d| d != b'0').map_or(0, |last| last + 1);
        let first = digits.iter().position(|&d| d != b'0').unwrap_or(0);
        if kept == 0 {
            return Self { negative: false, digits: Box::default(), exponent: 0 };
        }
        let dropped = digits.len() - kept;
        let exponent = power.saturating_sub(signed(fraction.len())).saturating_add(signed(dropped));
        Self { negative, digits: digits[first..kept].into(), exponent }
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative
    }

    pub(crate) fn is_positive(&self) -> bool {
        !self.negative && !self.digits.is_empty()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The digits, without zeros at either end.
    pub(crate) fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// Returns the power of ten by which the digits are multiplied.
    pub(crate) fn exponent(&self) -> i64 {
        self.exponent
    }

    /// Returns the number of digits before the decimal point; 0 or negative if the first digit is after the point.
    pub(crate) fn magnitude(&self) -> i64 {
        signed(self.digits.len()).saturating_add(self.exponent)
    }

    /// Compares two absolute values.
    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // The digits begin and end with a non-zero digit, so comparing them as texts compares them as fractions.
            _ => self.magnitude().cmp(&other.magnitude()).then_with(|| self.digits.cmp(&other.digits)),
        }
    }

    /// Checks whether the number is a multiple of `step`. Returns `None` if the step has too many digits to calculate
    /// with.
    pub(crate) fn is_multiple_of(&self, step: &Self) -> Option<bool> {
        if self.is_zero() {
            return Some(true);
        }
        let Ok(zeros) = u64::try_from(self.exponent.saturating_sub(step.exponent)) else {
            // The last digit of this number is at a lower place than that of the step.
            return Some(false);
        };
        let modulus = step.digits_as_u64()?;
        let modulus = u128::from(modulus);
        let push = |rest: u128, digit: u8| (rest * 10 + u128::from(digit - b'0')) % modulus;
        let mut rest = self.digits.iter().fold(0, |rest, digit| push(rest, *digit));
        for _ in 0..zeros.min(MAX_ZEROS) {
            rest = push(rest, b'0');
        }
        Some(rest == 0)
    }

    /// Returns the digits as a number, if there are at most 18.
    pub(crate) fn digits_as_u64(&self) -> Option<u64> {
        if self.digits.len() > 18 {
            return None;
        }
        Some(self.digits.iter().fold(0u64, |n, d| n * 10 + u64::from(d - b'0')))
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Returns the number as a count: `Err(true)` for a whole number that is too large, and `Err(false)` for a number
    /// that is not a count.
    pub(crate) fn to_count(&self) -> Result<u32, bool> {
        let Ok(zeros) = u32::try_from(self.exponent.min(20)) else { return Err(false) };
        if self.negative {
            return Err(false);
        }
        if self.digits.len() + zeros as usize > 10 {
            return Err(true);
        }
        let digits = self.digits.iter().fold(0u64, |n, d| n * 10 + u64::from(d - b'0'));
        u32::try_from(digits * 10u64.pow(zeros)).map_err(|_| true)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn parse_power(text: &str) -> i64 {
    let limit = if text.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
    text.parse::<i64>().map_or(limit, |n| n.clamp(i64::MIN / 2, i64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_number_are_equal() {
        for text in ["1", "1.0", "10e-1", "0.1E1", "0.010e+2"] {
            assert_eq!(Decimal::parse(text), Decimal::parse("1"), "{text}");
        }
        for text in ["0", "-0", "0.00", "0e99999999999999999999"] {
            assert_eq!(Decimal::parse(text), Decimal::parse("0"), "{text}");
        }
        assert_ne!(Decimal::parse("9007199254740993"), Decimal::parse("9007199254740992"));
        assert_ne!(Decimal::parse("-1"), Decimal::parse("1"));
    }

    #[test]
    fn counts() {
        assert_eq!(Decimal::parse("100").to_count(), Ok(100));
        assert_eq!(Decimal::parse("2.0").to_count(), Ok(2));
        assert_eq!(Decimal::parse("4294967295").to_count(), Ok(u32::MAX));
        assert_eq!(Decimal::parse("4294967296").to_count(), Err(true));
        assert_eq!(Decimal::parse("1e400").to_count(), Err(true));
        assert_eq!(Decimal::parse("1e99999999999999999999").to_count(), Err(true));
        assert_eq!(Decimal::parse("1.5").to_count(), Err(false));
        assert_eq!(Decimal::parse("-1").to_count(), Err(false));
    }
}
