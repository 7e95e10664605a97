//! The 64-bit parameter of parametric rules, with the functions and conditions on it.
//!
//! ```text
//! start   : perm::0x0
//! perm::_ : ""                    %if is_ones([0:2])
//!         | "a" perm::set_bit(0)  %if bit_clear(0)
//!         | "b" perm::set_bit(1)  %if bit_clear(1)
//! ```
//!
//! A rule is built once for each value that can be reached; here there are four. So a parametric grammar is a
//! context-free grammar like any other, but one that would be tedious to write by hand.

/// A range of adjacent bits of the parameter: `[start:end]`, without the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    start: u32,
    end: u32,
}

/// How the parameter of a call is computed from that of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// `_`: unchanged.
    Same,
    /// A number.
    Number(u64),
    /// `bit_and(v)`, `clear_bit(k)`.
    And(u64),
    /// `bit_or(v)`, `set_bit(k)`.
    Or(u64),
    /// `incr(bits)`: increased by one, unless all bits are set.
    Increase(Bits),
    /// `decr(bits)`: decreased by one, unless no bit is set.
    Decrease(Bits),
}

/// The condition of `%if`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `true`.
    True,
    /// Compares the bits, as a number.
    Value(Bits, Comparison, u64),
    /// Compares the number of bits that are set.
    Count(Bits, Comparison, u64),
    /// `and(c, c)`.
    Both(Box<Condition>, Box<Condition>),
    /// `or(c, c)`.
    Either(Box<Condition>, Box<Condition>),
    /// `not(c)`.
    Not(Box<Condition>),
}

/// `eq`, `ne`, `lt`, `le`, `gt` and `ge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `eq`.
    Equal,
    /// `ne`.
    Different,
    /// `lt`.
    Less,
    /// `le`.
    AtMost,
    /// `gt`.
    Greater,
    /// `ge`.
    AtLeast,
}

impl Bits {
    /// All 64 bits.
    pub const ALL: Self = Self { start: 0, end: 64 };

    /// Returns the bits from `start` up to `end`, without `end`, or `None` if that is not a range of 64 bits.
    pub fn new(start: u64, end: u64) -> Option<Self> {
        (start < end && end <= 64).then_some(Self { start: start as u32, end: end as u32 })
    }

    /// Returns the value of the range when all its bits are set.
    pub fn ones(self) -> u64 {
        u64::MAX >> (64 - (self.end - self.start))
    }

    fn of(self, value: u64) -> u64 {
        value >> self.start & self.ones()
    }
}

impl Update {
    /// Checks whether it needs the parameter of the caller.
    pub fn needs_value(self) -> bool {
        !matches!(self, Self::Number(_))
    }

    /// Returns the parameter of the call.
    pub fn apply(self, value: u64) -> u64 {
        match self {
            Self::Same => value,
            Self::Number(number) => number,
            Self::And(mask) => value & mask,
            Self::Or(mask) => value | mask,
            Self::Increase(bits) if bits.of(value) < bits.ones() => value + (1 << bits.start),
            Self::Decrease(bits) if bits.of(value) > 0 => value - (1 << bits.start),
            Self::Increase(_) | Self::Decrease(_) => value,
        }
    }
}

impl Condition {
    /// Checks whether it holds for a parameter. Recurses once per level; the parser bounds the number of levels.
    pub fn holds(&self, value: u64) -> bool {
        match self {
            Self::True => true,
            Self::Value(bits, comparison, number) => comparison.holds(bits.of(value), *number),
            Self::Count(bits, comparison, number) => {
                comparison.holds(bits.of(value).count_ones().into(), *number)
            }
            Self::Both(a, b) => a.holds(value) && b.holds(value),
            Self::Either(a, b) => a.holds(value) || b.holds(value),
            Self::Not(inner) => !inner.holds(value),
        }
    }
}

impl Comparison {
    /// Returns the comparison with this name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Equal,
            "ne" => Self::Different,
            "lt" => Self::Less,
            "le" => Self::AtMost,
            "gt" => Self::Greater,
            "ge" => Self::AtLeast,
            _ => return None,
        })
    }

    fn holds(self, a: u64, b: u64) -> bool {
        match self {
            Self::Equal => a == b,
            Self::Different => a != b,
            Self::Less => a < b,
            Self::AtMost => a <= b,
            Self::Greater => a > b,
            Self::AtLeast => a >= b,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stay_within_their_bits() {
        let bits = Bits::new(3, 5).expect("a range");
        let mut value = 0b111;
        for expected in [0b01_111, 0b10_111, 0b11_111, 0b11_111] {
            value = Update::Increase(bits).apply(value);
            assert_eq!(value, expected);
        }
        for expected in [0b10_111, 0b01_111, 0b00_111, 0b00_111] {
            value = Update::Decrease(bits).apply(value);
            assert_eq!(value, expected);
        }
        assert_eq!(Update::Increase(Bits::ALL).apply(u64::MAX), u64::MAX);
        assert_eq!(Update::Decrease(Bits::ALL).apply(0), 0);
    }

    #[test]
    fn conditions_see_their_bits_alone() {
        let bits = Bits::new(1, 3).expect("a range");
        assert!(Condition::Value(bits, Comparison::Equal, 0b10).holds(0b1_101));
        assert!(Condition::Count(bits, Comparison::Less, 2).holds(0b1_101));
        assert!(!Condition::Count(Bits::ALL, Comparison::Less, 3).holds(0b1_101));
        assert_eq!((Bits::new(0, 65), Bits::new(3, 3), Bits::new(u64::MAX, 0)), (None, None, None));
    }
}
