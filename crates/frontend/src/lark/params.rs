//! The 64-bit parameter of parametric rules: what can be computed from it, and what can be asked about it.
//!
//! ```text
//! start   : perm::0x0
//! perm::_ : ""                    %if is_ones([0:2])
//!         | "a" perm::set_bit(0)  %if bit_clear(0)
//!         | "b" perm::set_bit(1)  %if bit_clear(1)
//! ```
//!
//! A rule is built once for each value that can be reached; here there are four. So a parametric grammar is a context-free
//! grammar like any other, only one that nobody would want to write down.

/// Some neighbouring bits of the parameter: `[start:end]`, the end not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    start: u32,
    end: u32,
}

/// How the parameter of a call comes about from that of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// `_`: the same.
    Same,
    /// A number.
    Number(u64),
    /// `bit_and(v)`, `clear_bit(k)`.
    And(u64),
    /// `bit_or(v)`, `set_bit(k)`.
    Or(u64),
    /// `incr(bits)`: one more, unless all bits are set.
    Increase(Bits),
    /// `decr(bits)`: one less, unless no bit is set.
    Decrease(Bits),
}

/// What `%if` asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `true`.
    True,
    /// The bits, as a number.
    Value(Bits, Comparison, u64),
    /// How many of the bits are set.
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
    /// The same.
    Equal,
    /// Not the same.
    Different,
    /// Less.
    Less,
    /// Not greater.
    AtMost,
    /// Greater.
    Greater,
    /// Not less.
    AtLeast,
}

impl Bits {
    /// All of them.
    pub const ALL: Self = Self { start: 0, end: 64 };

    /// The bits from `start` up to, and without, `end`; `None` if that is no range of 64 bits.
    pub fn new(start: u64, end: u64) -> Option<Self> {
        (start < end && end <= 64).then_some(Self { start: start as u32, end: end as u32 })
    }

    /// All bits of the range, as the number that the range holds when they are set.
    pub fn ones(self) -> u64 {
        u64::MAX >> (64 - (self.end - self.start))
    }

    fn of(self, value: u64) -> u64 {
        value >> self.start & self.ones()
    }
}

impl Update {
    /// Whether it needs the parameter of the caller.
    pub fn needs_value(self) -> bool {
        !matches!(self, Self::Number(_))
    }

    /// The parameter of the call.
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
    /// Whether it holds for a parameter. Calls itself once per level, of which the parser bounds the number.
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
    /// The comparison of this name.
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
