//! Validates a single JSON value against a schema.
//!
//! `{"type": "string", "maxLength": 3, "enum": ["red", "green"]}` allows only `"red"`: a listed value must satisfy all
//! keywords beside the list. The same check decides about `null`, `true` and `false`, and about keys under
//! `propertyNames`. This is a complete validator, which also records which keys and items were *evaluated*, as
//! `unevaluatedProperties` and `unevaluatedItems` require.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::decimal::Decimal;
use super::super::json::{Members, Value};
use super::super::same::{canonical, same};
use super::super::schemas::{Bound, Dialect, Keywords, SchemaId};
use super::super::types::TypeSet;
use super::Algebra;
use super::items::item;
use super::node::Signed;

/// The maximum number of schemas that may apply one through the other to a value and its parts.
const MAX_DEPTH: usize = 200;

/// The maximum number of values that are compared one by one. More are hashed.
const MAX_COMPARED_VALUES: usize = 8;

/// The cost of validation so far, and what it remembers.
#[derive(Debug, Default)]
pub(super) struct Checks {
    count: usize,
    /// The values of long lists, by the address of the list.
    listed: FxHashMap<usize, FxHashSet<Box<str>>>,
}

/// For each key or item of a value, whether it was evaluated.
#[derive(Clone, Debug, Default)]
struct Evaluated {
    places: Vec<bool>,
}

impl Evaluated {
    fn none(value: &Value<'_>) -> Self {
        let count = match value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        Self { places: vec![false; count] }
    }

    fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.places.iter_mut().zip(&other.places) {
            *mine |= theirs;
        }
    }
}

impl<'s> Algebra<'s> {
    /// Checks whether a value satisfies all these schemas.
    pub(crate) fn satisfies(&mut self, value: &Value<'_>, parts: &[Signed]) -> bool {
        parts.iter().all(|part| self.evaluate(part.id, value, MAX_DEPTH).is_some() != part.negative)
    }

    /// Checks whether a value has one of these types and satisfies all these schemas.
    pub(crate) fn allows(&mut self, value: &Value<'_>, types: TypeSet, parts: &[Signed]) -> bool {
        TypeSet::of(value).meets(types) && self.satisfies(value, parts)
    }

    /// Checks whether a value satisfies the local keywords of a schema, or, for a negative sign, violates them.
    pub(super) fn satisfies_local(&mut self, value: &Value<'_>, local: Signed) -> bool {
        let keywords = self.keywords(local.id);
        let mut evaluated = Evaluated::none(value);
        self.check_local(local.id, &keywords, value, MAX_DEPTH - 1, &mut evaluated) != local.negative
    }

    /// Returns the parts of a value that a schema evaluates, or `None` if the value does not satisfy the schema.
    fn evaluate(&mut self, id: SchemaId, value: &Value<'_>, depth: usize) -> Option<Evaluated> {
        self.checks.count += 1;
        let limit = self.context.options.limits.checks;
        if self.checks.count > limit {
            let message =
                format!("checking single values, such as those of `enum`, takes more than {limit} steps");
            self.context.exceed("checks", self.path(id), "", message);
            return None;
        }
        let Some(depth) = depth.checked_sub(1) else {
            let message =
                format!("more than {MAX_DEPTH} schemas apply one through the other to the same value");
            let help = "shorten the chain of references and combinators";
            self.context.halt(self.path(id), "", message, help);
            return None;
        };
        let keywords = self.keywords(id);
        let mut evaluated = Evaluated::none(value);
        let holds = self.check_local(id, &keywords, value, depth, &mut evaluated)
            && (keywords.is_plain() || self.check_combinators(id, &keywords, value, depth, &mut evaluated));
        holds.then_some(evaluated)
    }

    /// Checks whether a value satisfies a schema that applies to the same value, and adds the parts that it evaluates.
    fn joins(&mut self, id: SchemaId, value: &Value<'_>, depth: usize, evaluated: &mut Evaluated) -> bool {
        let inner = self.evaluate(id, value, depth);
        inner.as_ref().inspect(|inner| evaluated.join(inner)).is_some()
    }

    fn check_combinators(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        value: &Value<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        let Some(targets) = self.targets(id, keywords) else { return false };
        let dependent = keywords.dependent_schemas.iter().filter(|(name, _)| value.get(name).is_some());
        let needed = keywords.all_of.iter().chain(&targets).chain(dependent.map(|(_, schema)| schema));
        for &schema in needed {
            if !self.joins(schema, value, depth, evaluated) {
                return false;
            }
        }
        if keywords.not.is_some_and(|not| self.evaluate(not, value, depth).is_some()) {
            return false;
        }
        for (branches, is_exclusive) in [(&keywords.any_of, false), (&keywords.one_of, true)] {
            let held = branches.iter().filter(|branch| self.joins(**branch, value, depth, evaluated)).count();
            if !branches.is_empty() && (held == 0 || is_exclusive && held > 1) {
                return false;
            }
        }
        if let Some(conditional) = keywords.conditional {
            let holds = self.joins(conditional.condition, value, depth, evaluated);
            let branch = if holds { conditional.then } else { conditional.otherwise };
            if branch.is_some_and(|branch| !self.joins(branch, value, depth, evaluated)) {
                return false;
            }
        }
        self.check_unevaluated(keywords, value, depth, evaluated)
    }

    fn check_unevaluated(
        &mut self,
        keywords: &Keywords<'s>,
        value: &Value<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        let Some(schema) = keywords.unevaluated(TypeSet::of(value)) else { return true };
        let parts: Vec<&Value<'_>> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            _ => return true,
        };
        parts.into_iter().zip(&mut evaluated.places).all(|(part, is_evaluated)| {
            *is_evaluated = *is_evaluated || self.evaluate(schema, part, depth).is_some();
            *is_evaluated
        })
    }

    fn check_local(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        value: &Value<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        if !self.has_type(id, keywords.types, value)
            || keywords.enumeration.is_some_and(|list| !self.lists(list, value))
            || keywords.constant.is_some_and(|one| !same(one, value))
        {
            return false;
        }
        if !keywords.asserted.meets(TypeSet::of(value)) {
            return true;
        }
        match value {
            Value::String(text) => self.check_text(id, keywords, text),
            Value::Number(number) => check_number(keywords, &Decimal::parse(number)),
            Value::Array(items) => self.check_items(id, keywords, items, depth, evaluated),
            Value::Object(members) => self.check_members(id, keywords, members, depth, evaluated),
            Value::Null | Value::Bool(_) => true,
        }
    }

    /// Checks whether a list contains a value. Long lists are hashed once, because they are compared with other lists.
    fn lists(&mut self, list: &'s [Value<'s>], value: &Value<'_>) -> bool {
        if list.len() <= MAX_COMPARED_VALUES {
            return list.iter().any(|one| same(one, value));
        }
        let listed = self.checks.listed.entry(list.as_ptr().addr());
        listed.or_insert_with(|| list.iter().map(canonical).collect()).contains(&canonical(value))
    }

    /// Checks whether a value has one of the types that a schema allows.
    pub(crate) fn has_type(&self, id: SchemaId, types: TypeSet, value: &Value<'_>) -> bool {
        match value {
            Value::Number(number) if !types.covers(TypeSet::NUMBER) => {
                types.meets(TypeSet::INTEGER)
                    && if self.dialect(id).integer_by_value() {
                        Decimal::parse(number).is_integer()
                    } else {
                        !number.contains(['.', 'e', 'E'])
                    }
            }
            _ => types.meets(TypeSet::of(value)),
        }
    }

    fn check_text(&mut self, id: SchemaId, keywords: &Keywords<'s>, text: &str) -> bool {
        if !keywords.length.is_open() && !keywords.length.contains(text.chars().count()) {
            return false;
        }
        let pattern = keywords.pattern.map(|pattern| self.pattern(id, "pattern", pattern));
        let format = keywords.format.map(|format| Some(self.format(format)));
        [pattern, format].into_iter().flatten().all(|language| {
            let Some(language) = language else { return false };
            self.languages.contains(&self.grammar, language, text).unwrap_or_else(|| {
                self.exceed_language(id, "pattern", "matching the pattern");
                false
            })
        })
    }

    fn check_items(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        items: &[Value<'_>],
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        if !keywords.item_count.contains(items.len()) {
            return false;
        }
        for (place, value) in items.iter().enumerate() {
            if let Some(schema) = item(keywords, place) {
                if self.evaluate(schema, value, depth).is_none() {
                    return false;
                }
                evaluated.places[place] = true;
            }
        }
        if let Some(schema) = keywords.contains {
            let mut count = 0;
            for (place, value) in items.iter().enumerate() {
                if self.evaluate(schema, value, depth).is_some() {
                    count += 1;
                    evaluated.places[place] |= self.dialect(id) >= Dialect::Draft2020;
                }
            }
            if !keywords.contains_count.contains(count) {
                return false;
            }
        }
        !keywords.unique || are_different(items)
    }

    fn check_members(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        members: &Members<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        let are_present = |names: &[&str]| names.iter().all(|name| members.contains_key(name));
        let mut dependent = keywords.dependent_required.iter();
        if !keywords.property_count.contains(members.len())
            || !are_present(&keywords.required)
            || !dependent.all(|(name, needed)| !members.contains_key(name) || are_present(needed))
        {
            return false;
        }
        for (place, (name, member)) in members.iter().enumerate() {
            if let Some(names) = keywords.property_names
                && self.evaluate(names, &Value::String(name.into()), depth).is_none()
            {
                return false;
            }
            let schemas = self.member_schemas(id, keywords, name);
            evaluated.places[place] |= !schemas.is_empty();
            if !schemas.into_iter().all(|schema| self.evaluate(schema, member, depth).is_some()) {
                return false;
            }
        }
        true
    }
}

fn check_number(keywords: &Keywords<'_>, number: &Decimal) -> bool {
    let above = |bound: &Bound| *number > bound.value || !bound.exclusive && *number == bound.value;
    let below = |bound: &Bound| *number < bound.value || !bound.exclusive && *number == bound.value;
    keywords.minimum.as_ref().is_none_or(above)
        && keywords.maximum.as_ref().is_none_or(below)
        // A step with too many digits is refused when the number is emitted.
        && keywords.multiple_of.as_ref().is_none_or(|step| number.is_multiple_of(step) == Some(true))
}

/// Checks whether no two values are equal.
fn are_different(values: &[Value<'_>]) -> bool {
    if values.len() <= MAX_COMPARED_VALUES {
        let repeats = |(i, value): (usize, &Value)| values[..i].iter().any(|other| same(other, value));
        return !values.iter().enumerate().any(repeats);
    }
    let mut seen = FxHashSet::default();
    values.iter().all(|value| seen.insert(canonical(value)))
}
