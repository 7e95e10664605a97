//! The keywords of one schema object, checked and sorted by subject.
//!
//! ```text
//! {"type": ["string", "null"], "maxLength": 9, "title": "Name", "anyOf": [a, b]}
//!
//! types     {string, null}
//! asserted  {string}                 types that a local keyword constrains
//! length    0..=9
//! any_of    [a, b]                   a combinator: ids of other schemas for the same value
//! ```
//!
//! A keyword is *local* if it constrains the value without reference to other schemas for the same value (`type`,
//! `enum`, bounds, `items`, `properties`). It is a *combinator* if it applies other schemas to the same value (`$ref`,
//! `allOf`, `not`, `if`, …). A schema without combinators is *plain*. Most schemas are plain, and they are emitted
//! without any algebra.

use super::super::decimal::Decimal;
use super::super::json::{Members, Value};
use super::super::types::TypeSet;
use super::SchemaId;
use super::miss::Miss;

/// The keywords of one schema.
#[derive(Debug, Default)]
pub(crate) struct Keywords<'s> {
    /// The types that `type` allows; all types without a `type`.
    pub(crate) types: TypeSet,
    /// The types that a local keyword other than `type`, `enum` and `const` constrains.
    pub(crate) asserted: TypeSet,
    pub(crate) constant: Option<&'s Value<'s>>,
    /// The values of `enum`. Beside a `const`: empty if the `const` value is not listed, `None` if it is.
    pub(crate) enumeration: Option<&'s [Value<'s>]>,

    pub(crate) reference: Option<Reference<'s>>,
    /// `$dynamicRef` or `$recursiveRef`.
    pub(crate) dynamic_reference: Option<Reference<'s>>,
    pub(crate) all_of: Vec<SchemaId>,
    pub(crate) any_of: Vec<SchemaId>,
    pub(crate) one_of: Vec<SchemaId>,
    pub(crate) not: Option<SchemaId>,
    pub(crate) conditional: Option<Conditional>,
    /// Schemas that apply if a key is present.
    pub(crate) dependent_schemas: Vec<(&'s str, SchemaId)>,
    pub(crate) unevaluated_properties: Option<SchemaId>,
    pub(crate) unevaluated_items: Option<SchemaId>,
    /// Whether `properties` precedes the first combinator in the text. Then its keys are written first.
    pub(crate) local_first: bool,

    pub(crate) length: Window,
    pub(crate) pattern: Option<&'s str>,
    pub(crate) format: Option<&'s str>,

    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<Decimal>,

    pub(crate) item_count: Window,
    /// The schemas of the first items: `prefixItems`, or `items` as a list.
    pub(crate) prefix: Vec<SchemaId>,
    /// The schema of the items after the prefix: `items` or `additionalItems`.
    pub(crate) rest: Option<SchemaId>,
    pub(crate) contains: Option<SchemaId>,
    pub(crate) contains_count: Window,
    pub(crate) unique: bool,

    pub(crate) property_count: Window,
    pub(crate) properties: Properties<'s>,
    pub(crate) required: Vec<&'s str>,
    pub(crate) pattern_properties: Properties<'s>,
    pub(crate) additional: Option<SchemaId>,
    pub(crate) property_names: Option<SchemaId>,
    /// For a key, the keys that must be present if it is.
    pub(crate) dependent_required: Vec<(&'s str, Vec<&'s str>)>,
    /// Whether this schema was derived from a value. Then `prefix` and `properties` describe the structure of
    /// `constant`.
    pub(crate) is_structure: bool,
}

/// A reference and its target.
#[derive(Debug)]
pub(crate) struct Reference<'s> {
    pub(crate) keyword: &'static str,
    pub(crate) text: &'s str,
    pub(crate) target: Result<SchemaId, Miss>,
}

/// `if`, `then` and `else`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditional {
    pub(crate) condition: SchemaId,
    pub(crate) then: Option<SchemaId>,
    pub(crate) otherwise: Option<SchemaId>,
}

impl Conditional {
    /// Returns both outcomes of the condition: whether the condition is negated, and the schema that then applies.
    pub(crate) fn outcomes(self) -> [(bool, Option<SchemaId>); 2] {
        [(false, self.then), (true, self.otherwise)]
    }
}

/// The schemas of `properties` or `patternProperties`, by key.
#[derive(Debug, Default)]
pub(crate) struct Properties<'s> {
    members: Option<&'s Members<'s>>,
    schemas: Vec<SchemaId>,
}

impl<'s> Properties<'s> {
    /// Pairs keys with schemas, which must be in the order of the members.
    pub(crate) fn new(members: &'s Members<'s>, schemas: Vec<SchemaId>) -> Self {
        debug_assert_eq!(members.len(), schemas.len(), "one schema for each key");
        Self { members: Some(members), schemas }
    }

    pub(crate) fn len(&self) -> usize {
        self.schemas.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.schemas.is_empty()
    }

    pub(crate) fn get(&self, key: &str) -> Option<SchemaId> {
        Some(self.schemas[self.members?.position(key)?])
    }

    pub(crate) fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &'s str> + use<'s> {
        self.members.into_iter().flat_map(Members::keys)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'s str, SchemaId)> {
        self.keys().zip(self.schemas.iter().copied())
    }

    /// Returns the keys, their schemas, and the JSON values of these schemas.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'s str, SchemaId, &'s Value<'s>)> {
        let members = self.members.into_iter().flatten();
        members.zip(&self.schemas).map(|((key, value), schema)| (key, *schema, value))
    }
}

/// A lower or upper bound on numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) value: Decimal,
    pub(crate) exclusive: bool,
}

/// A minimum and a maximum count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Window {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

impl Window {
    pub(crate) fn is_empty(self) -> bool {
        self.max.is_some_and(|max| max < self.min)
    }

    /// Checks whether every count is allowed.
    pub(crate) fn is_open(self) -> bool {
        self.min == 0 && self.max.is_none()
    }

    pub(crate) fn contains(self, count: usize) -> bool {
        count >= self.min as usize && self.max.is_none_or(|max| count <= max as usize)
    }

    /// Returns the counts that are in both windows.
    pub(crate) fn and(self, other: Self) -> Self {
        let max = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { min: self.min.max(other.min), max }
    }

    /// Returns the window that remains after `count` elements were written.
    pub(crate) fn after(self, count: u32) -> Self {
        Self { min: self.min.saturating_sub(count), max: self.max.map(|max| max.saturating_sub(count)) }
    }

    /// Returns the count that is equivalent to all greater ones.
    pub(crate) fn cap(self) -> u32 {
        self.max.unwrap_or(self.min).max(self.min)
    }

    /// Returns the counts outside the window, as windows.
    pub(crate) fn complement(self) -> impl Iterator<Item = Self> {
        let below = self.min.checked_sub(1).map(|max| Self { min: 0, max: Some(max) });
        let above = self.max.and_then(|max| Some(Self { min: max.checked_add(1)?, max: None }));
        below.into_iter().chain(above)
    }
}

impl<'s> Keywords<'s> {
    /// Returns the keywords of `{}`.
    pub(crate) fn everything() -> Self {
        Self { types: TypeSet::ALL, ..Self::default() }
    }

    /// Returns the keywords of `false`.
    pub(crate) fn nothing() -> Self {
        Self::default()
    }

    /// Checks that there is no combinator.
    pub(crate) fn is_plain(&self) -> bool {
        self.reference.is_none() && self.has_no_combinator_but_a_reference()
    }

    fn has_no_combinator_but_a_reference(&self) -> bool {
        self.all_of.is_empty()
            && self.any_of.is_empty()
            && self.one_of.is_empty()
            && self.not.is_none()
            && self.conditional.is_none()
            && self.dynamic_reference.is_none()
            && self.dependent_schemas.is_empty()
            && self.unevaluated_properties.is_none()
            && self.unevaluated_items.is_none()
    }

    /// Checks that no local keyword constrains anything.
    pub(crate) fn is_silent(&self) -> bool {
        self.types == TypeSet::ALL
            && self.asserted.is_empty()
            && self.constant.is_none()
            && self.enumeration.is_none()
    }

    /// Returns the values that `const` and `enum` allow, if one of them is present.
    pub(crate) fn listed(&self) -> Option<&'s [Value<'s>]> {
        match (self.constant, self.enumeration) {
            (Some(_), Some([])) => Some(&[]),
            (Some(only), _) => Some(core::slice::from_ref(only)),
            (None, values) => values,
        }
    }

    /// Checks whether `const` or `enum` lists a value of these types. Returns true without them.
    pub(crate) fn may_list(&self, types: TypeSet) -> bool {
        self.listed().is_none_or(|values| values.iter().any(|value| TypeSet::of(value).meets(types)))
    }

    /// Returns the reference of a schema that consists of a `$ref` only.
    pub(crate) fn only_reference(&self) -> Option<&Reference<'s>> {
        let reference = self.reference.as_ref()?;
        (self.is_silent() && self.has_no_combinator_but_a_reference()).then_some(reference)
    }

    /// Returns `unevaluatedProperties` for objects and `unevaluatedItems` for arrays.
    pub(crate) fn unevaluated(&self, kind: TypeSet) -> Option<SchemaId> {
        match kind {
            TypeSet::OBJECT => self.unevaluated_properties,
            TypeSet::ARRAY => self.unevaluated_items,
            _ => None,
        }
    }

    /// Checks whether the local keywords constrain values of a type.
    pub(crate) fn constrains(&self, kind: TypeSet) -> bool {
        self.asserted.meets(kind)
            || self.listed().is_some()
            || kind == TypeSet::NUMBER && !self.types.covers(TypeSet::NUMBER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows() {
        let window = |min, max| Window { min, max };
        assert!(window(3, Some(2)).is_empty());
        assert_eq!(window(1, None).and(window(0, Some(4))), window(1, Some(4)));
        assert_eq!(window(2, Some(5)).after(3), window(0, Some(2)));
        let outside: Vec<Window> = window(2, Some(5)).complement().collect();
        assert_eq!(outside, [window(0, Some(1)), window(6, None)]);
        assert_eq!(window(0, None).complement().count(), 0);
        assert_eq!((window(3, None).cap(), window(1, Some(7)).cap()), (3, 7));
    }
}
