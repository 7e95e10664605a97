//! Sets of JSON types.
//!
//! `integer` has a bit and "number that is not an integer" has another; `number` is both bits. So the intersection of
//! two sets is a bitwise *and*.

use core::fmt;
use core::ops::{BitAnd, BitOr};

use super::json::Value;

/// A set of JSON types.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct TypeSet(u8);

impl TypeSet {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    /// Integers and all other numbers.
    pub(crate) const NUMBER: Self = Self(4 | 8);
    pub(crate) const STRING: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const ALL: Self = Self(127);

    /// Returns the type with this name in the `type` keyword.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    /// Returns the type of a value. Every number is a `NUMBER`: whether it is an integer depends on its value.
    pub(crate) fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Checks whether the two sets share a type.
    pub(crate) fn meets(self, other: Self) -> bool {
        !(self & other).is_empty()
    }

    /// Returns the types of this set that are not in `other`.
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Checks whether every type of `other` is in this set.
    pub(crate) fn covers(self, other: Self) -> bool {
        self & other == other
    }
}

impl BitAnd for TypeSet {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for TypeSet {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for TypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["null", "boolean", "integer", "number", "string", "array", "object"];
        let held = |(i, _): &(usize, &&str)| self.0 & (1 << i) != 0;
        f.debug_set().entries(names.iter().enumerate().filter(held).map(|(_, name)| name)).finish()
    }
}
