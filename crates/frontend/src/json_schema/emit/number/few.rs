//! Joins several `multipleOf`, and lists the multiples within bounds if they are few.
//!
//! `multipleOf: 6.75` and `multipleOf: 19` have the common step 513, and between 0 and 1000 only 0 and 513 remain. The
//! automaton of the two divisions would have thousands of states.

use super::super::super::decimal::Decimal;
use super::{Conditions, Test};

/// The maximum number of multiples that are listed instead of recognized by an automaton. Integers have one spelling
/// anyway. Other listed numbers lose the spellings with zeros at the end, so fewer of them are listed.
const MAX_MULTIPLES: usize = 64;
const MAX_INTEGERS: usize = 512;

/// Replaces all `multipleOf` by one common step, and removes tests that follow from it. Returns `None` if no number
/// meets the conditions.
pub(super) fn reduced(mut conditions: Conditions) -> Option<Conditions> {
    let is_integer = conditions.all.contains(&Test::Integer);
    let steps = conditions.all.iter().filter_map(|test| match test {
        Test::MultipleOf(step) => Some(Scaled::of(step)),
        _ => None,
    });
    let steps: Vec<Option<Scaled>> = steps.chain(is_integer.then_some(Some(Scaled::ONE))).collect();
    let Some(Some(step)) = steps.into_iter().reduce(|a, b| a?.common_multiple(b?)) else {
        return Some(conditions);
    };
    conditions.all.retain(|test| !matches!(test, Test::MultipleOf(_)));
    let step_value = Decimal::parse(&step.spelled());
    if !is_integer || step != Scaled::ONE {
        conditions.all.push(Test::MultipleOf(step_value.clone()));
    }
    let follows = |test: &Test| match test {
        Test::MultipleOf(other) => step_value.is_multiple_of(other) == Some(true),
        Test::Integer => step_value.is_integer(),
        _ => false,
    };
    for tests in &mut conditions.not_all {
        tests.retain(|test| !follows(test));
    }
    conditions.not_all.iter().all(|tests| !tests.is_empty()).then_some(conditions)
}

/// Returns the numbers that meet the conditions, spelled out, or `None` if they are not few.
pub(super) fn few_values(conditions: &Conditions) -> Option<Vec<String>> {
    let is_integer = conditions.all.contains(&Test::Integer);
    values(conditions, if is_integer { MAX_INTEGERS } else { MAX_MULTIPLES })
}

/// Like [`few_values`], with at most `max` + 1 candidates.
pub(super) fn values(conditions: &Conditions, max: usize) -> Option<Vec<String>> {
    let (mut step, mut low, mut high): (Option<Scaled>, Option<Scaled>, Option<Scaled>) = (None, None, None);
    for test in &conditions.all {
        match test {
            Test::MultipleOf(one) => step = Some(Scaled::of(one)?),
            // The tests below decide whether the ends are included.
            Test::AtLeast(value) | Test::Above(value) => low = low.max(Some(Scaled::of(value)?)),
            Test::AtMost(value) | Test::Below(value) => {
                let value = Scaled::of(value)?;
                high = Some(high.map_or(value, |high| high.min(value)));
            }
            Test::Integer | Test::OneOf(_) => {}
        }
    }
    let (step, low, high) = (step?, low?, high?);
    let first = low.0.div_euclid(step.0);
    let last = high.0.div_euclid(step.0);
    if last - first > max as i128 {
        return None;
    }
    let mut values = Vec::new();
    for count in first..=last {
        let number = Scaled(step.0.checked_mul(count)?);
        let value = Decimal::parse(&number.spelled());
        let passes = |test: &Test| passes(test, &value);
        let all = conditions.all.iter().try_fold(true, |all, test| Some(all && passes(test)?))?;
        let mut right = all;
        for tests in &conditions.not_all {
            right &= !tests.iter().try_fold(true, |all, test| Some(all && passes(test)?))?;
        }
        if right {
            values.push(number.spelled());
        }
    }
    Some(values)
}

fn passes(test: &Test, value: &Decimal) -> Option<bool> {
    Some(match test {
        Test::Integer => value.is_integer(),
        Test::Above(bound) => value > bound,
        Test::AtLeast(bound) => value >= bound,
        Test::Below(bound) => value < bound,
        Test::AtMost(bound) => value <= bound,
        Test::MultipleOf(step) => value.is_multiple_of(step)?,
        Test::OneOf(values) => values.contains(value),
    })
}

/// A number in units of 10⁻¹².
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scaled(i128);

const PLACES: i64 = 12;

impl Scaled {
    const ONE: Self = Self(10i128.pow(PLACES as u32));

    fn of(value: &Decimal) -> Option<Self> {
        let digits = i128::from(if value.is_zero() { 0 } else { value.digits_as_u64()? });
        let power = u32::try_from(value.exponent() + PLACES).ok().filter(|power| *power <= 36)?;
        let scaled = digits.checked_mul(10i128.pow(power))?;
        Some(Self(if value.is_negative() { -scaled } else { scaled }))
    }

    fn common_multiple(self, other: Self) -> Option<Self> {
        let (mut a, mut b) = (self.0, other.0);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        (self.0 / a).checked_mul(other.0).filter(|step| *step < 1 << 100).map(Self)
    }

    fn spelled(self) -> String {
        let unit = 10i128.pow(PLACES as u32);
        let (whole, part) =
            (self.0.unsigned_abs() / unit.unsigned_abs(), self.0.unsigned_abs() % unit.unsigned_abs());
        let sign = if self.0 < 0 { "-" } else { "" };
        if part == 0 {
            return format!("{sign}{whole}");
        }
        let part = format!("{part:012}");
        format!("{sign}{whole}.{}", part.trim_end_matches('0'))
    }
}
