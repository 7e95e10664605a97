//! One schema object, read once: each keyword's value checked, sorted by what it is about.
//!
//! ```text
//! {"type": ["string", "null"], "maxLength": 9, "title": "Name", "anyOf": [a, b]}
//!
//! types     {string, null}
//! asserted  {string}                 <- types about which a keyword of this very object says something
//! length    0..=9
//! any_of    [a, b]                   <- a combinator: about the same value, by other schemas
//! report    type: enforced, maxLength: enforced, title: annotation, anyOf: enforced
//! ```
//!
//! Keywords are *local* (they say something by themselves: `type`, `enum`, bounds, `items`, `properties`) or
//! *combinators* (they hand the value on to other schemas: `$ref`, `allOf`, `not`, `if`, …). A schema without
//! combinators is *plain*; almost all are, and they are lowered without any algebra.

mod dispatch;
mod values;

use super::json::{Members, Value};

use super::context::Context;
use super::decimal::Decimal;
use super::dialect::Dialect;
use super::path::PathId;
use super::schemas::SchemaId;
use super::types::TypeSet;

/// What one schema says.
#[derive(Debug, Default)]
pub(crate) struct Keywords<'s> {
    /// What `type` allows; everything if there is no `type`.
    pub(crate) types: TypeSet,
    /// The types about which a local keyword other than `type`, `enum` and `const` says something.
    pub(crate) asserted: TypeSet,
    pub(crate) constant: Option<&'s Value<'s>>,
    pub(crate) enumeration: Option<&'s [Value<'s>]>,

    pub(crate) reference: Option<&'s str>,
    pub(crate) dynamic_reference: Option<(&'s str, &'static str)>,
    pub(crate) all_of: Option<&'s [Value<'s>]>,
    pub(crate) any_of: Option<&'s [Value<'s>]>,
    pub(crate) one_of: Option<&'s [Value<'s>]>,
    pub(crate) not: Option<&'s Value<'s>>,
    pub(crate) if_then_else: [Option<&'s Value<'s>>; 3],
    /// Schemas that hold if a key is present, and the keyword that gives them.
    pub(crate) dependent_schemas: Vec<(&'s str, &'s Value<'s>, &'static str)>,
    pub(crate) unevaluated_properties: Option<&'s Value<'s>>,
    pub(crate) unevaluated_items: Option<&'s Value<'s>>,
    /// Whether `properties` stands before the first combinator: its keys come first then.
    pub(crate) local_first: bool,

    pub(crate) length: Window,
    pub(crate) pattern: Option<&'s str>,
    pub(crate) format: Option<&'s str>,

    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<Decimal>,

    pub(crate) item_count: Window,
    /// The schemas of the first items, and the keyword that gives them.
    pub(crate) prefix: (&'s [Value<'s>], &'static str),
    /// The schema of the other items, and the keyword that gives it.
    pub(crate) rest: Option<(&'s Value<'s>, &'static str)>,
    pub(crate) contains: Option<&'s Value<'s>>,
    pub(crate) contains_count: Window,
    pub(crate) unique: bool,

    pub(crate) property_count: Window,
    pub(crate) properties: Option<&'s Members<'s>>,
    pub(crate) required: Vec<&'s str>,
    pub(crate) pattern_properties: Option<&'s Members<'s>>,
    pub(crate) additional: Option<&'s Value<'s>>,
    pub(crate) property_names: Option<&'s Value<'s>>,
    /// Keys that must be present if a key is.
    pub(crate) dependent_required: Vec<(&'s str, Vec<&'s str>)>,
    /// Schemas one of which must hold; only where the algebra made the schema up.
    pub(crate) choices: Vec<SchemaId>,
    /// Whether the parts of `prefix` and `properties` are values, not schemas: this is a constant's structure.
    pub(crate) holds_values: bool,
}

/// A bound on numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) value: Decimal,
    pub(crate) exclusive: bool,
}

/// A least and a greatest count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

impl Window {
    pub(crate) fn is_empty(self) -> bool {
        self.max.is_some_and(|max| max < self.min)
    }

    pub(crate) fn is_open(self) -> bool {
        self.min == 0 && self.max.is_none()
    }

    pub(crate) fn holds(self, count: usize) -> bool {
        count >= self.min as usize && self.max.is_none_or(|max| count <= max as usize)
    }

    /// The counts in both windows.
    pub(crate) fn and(self, other: Self) -> Self {
        let max = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { min: self.min.max(other.min), max }
    }
}

impl<'s> Keywords<'s> {
    /// Reads the keywords of the schema object at `path`.
    pub(crate) fn read(
        context: &mut Context<'_>,
        schema: &'s Members<'s>,
        path: PathId,
        dialect: Dialect,
    ) -> Self {
        dispatch::read(context, schema, path, dialect)
    }

    /// What `{}` says.
    pub(crate) fn everything() -> Self {
        Self { types: TypeSet::ALL, prefix: (&[], "prefixItems"), ..Self::default() }
    }

    /// What `false` says.
    pub(crate) fn nothing() -> Self {
        Self { types: TypeSet::NONE, ..Self::everything() }
    }

    /// That a key is present.
    pub(crate) fn presence(name: &'s str) -> Self {
        Self { required: vec![name], asserted: TypeSet::OBJECT, ..Self::everything() }
    }

    /// Exactly one value. The structure of arrays and objects is spelled out for the sake of `not`.
    pub(crate) fn constant(value: &'s Value<'s>) -> Self {
        let mut found = Self { types: TypeSet::of(value), constant: Some(value), ..Self::everything() };
        match value {
            Value::Array(items) => {
                found.prefix = (items, "const");
                let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
                found.item_count = Window { min: count, max: Some(count) };
                found.asserted = TypeSet::ARRAY;
            }
            Value::Object(members) => {
                found.properties = Some(members);
                found.required = members.keys().collect();
                found.additional = Some(&Value::Bool(false));
                found.asserted = TypeSet::OBJECT;
            }
            _ => return found,
        }
        found.holds_values = true;
        found
    }

    /// Whether nothing hands the value on to another schema.
    pub(crate) fn is_plain(&self) -> bool {
        self.reference.is_none() && self.hands_on_by_reference_at_most()
    }

    fn hands_on_by_reference_at_most(&self) -> bool {
        self.all_of.is_none()
            && self.any_of.is_none()
            && self.one_of.is_none()
            && self.not.is_none()
            && self.if_then_else[0].is_none()
            && self.dynamic_reference.is_none()
            && self.dependent_schemas.is_empty()
            && self.unevaluated_properties.is_none()
            && self.unevaluated_items.is_none()
            && self.choices.is_empty()
    }

    /// Whether no local keyword says anything.
    pub(crate) fn is_silent(&self) -> bool {
        self.types == TypeSet::ALL
            && self.asserted.is_empty()
            && self.constant.is_none()
            && self.enumeration.is_none()
    }

    /// The values of `const` or `enum`, if there is one of them.
    pub(crate) fn listed(&self) -> Option<&'s [Value<'s>]> {
        self.constant.map(core::slice::from_ref).or(self.enumeration)
    }

    /// The only reference, if the schema is nothing but a reference.
    pub(crate) fn only_reference(&self) -> Option<&'s str> {
        self.reference.filter(|_| self.is_silent() && self.hands_on_by_reference_at_most())
    }
}
