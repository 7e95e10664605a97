//! Whether one JSON value satisfies a schema.
//!
//! `{"type": "string", "maxLength": 3, "enum": ["red", "green"]}` allows only `"red"`: a listed value counts only if
//! it satisfies everything beside it. The same question decides about `null`, `true` and `false`, and
//! about keys under `propertyNames`. All keywords are known here; what was *evaluated* is handed back, for
//! the sake of `unevaluatedProperties` and `unevaluatedItems`.

use super::super::json::{Members, Value};

use super::super::decimal::Decimal;
use super::super::dialect::Dialect;
use super::super::keywords::Keywords;
use super::super::schemas::{SchemaId, Step};
use super::super::types::TypeSet;
use super::Lowerer;
use super::node::Signed;
use rustc_hash::FxHashSet;

/// How deep references and combinators may lead at one place of the value.
const DEPTH: usize = 200;

/// So many values are compared one by one; more are hashed.
const FEW_VALUES: usize = 8;

/// Which keys and items of a value some schema looked at.
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

    fn mark(&mut self, place: usize) {
        if let Some(slot) = self.places.get_mut(place) {
            *slot = true;
        }
    }

    fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.places.iter_mut().zip(&other.places) {
            *mine |= theirs;
        }
    }
}

impl<'s> Lowerer<'s> {
    /// Whether a value satisfies all of these.
    pub(super) fn satisfies(&mut self, value: &Value<'_>, parts: &[Signed]) -> bool {
        parts.iter().all(|part| self.holds(part.id, value, DEPTH).is_some() != part.negative)
    }

    /// Whether a value satisfies what one schema says by itself, or fails to.
    pub(super) fn satisfies_local(&mut self, value: &Value<'_>, local: Signed) -> bool {
        let keywords = self.keywords(local.id);
        let mut evaluated = Evaluated::none(value);
        self.local(local.id, &keywords, value, DEPTH, &mut evaluated) != local.negative
    }

    fn holds(&mut self, id: SchemaId, value: &Value<'_>, depth: usize) -> Option<Evaluated> {
        self.checks += 1;
        if self.checks > self.context.options.limits.checks || depth == 0 {
            let path = self.schemas.path(id);
            let message = "checking the `enum` and `const` values takes too many steps".to_owned();
            self.exceed("checks", path, "", message);
            return None;
        }
        let keywords = self.keywords(id);
        let mut evaluated = Evaluated::none(value);
        if !self.local(id, &keywords, value, depth, &mut evaluated) {
            return None;
        }
        if keywords.is_plain() {
            return Some(evaluated);
        }
        self.combined(id, &keywords, value, depth, &mut evaluated).then_some(evaluated)
    }

    fn combined(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        value: &Value<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        let mut needed = self.branches(id, keywords.all_of, "allOf");
        if let Some(reference) = keywords.reference {
            let Some(target) = self.resolve(id, reference) else { return false };
            needed.push(target);
        }
        if let Some((reference, keyword)) = keywords.dynamic_reference {
            let Some(target) = self.resolve_dynamic(id, reference, keyword) else { return false };
            needed.push(target);
        }
        if let Value::Object(members) = value {
            for &(name, schema, keyword) in &keywords.dependent_schemas {
                if members.contains_key(name) {
                    needed.push(self.child(id, schema, Step::Key(keyword, name)));
                }
            }
        }
        for part in needed {
            match self.holds(part, value, depth - 1) {
                Some(inner) => evaluated.join(&inner),
                None => return false,
            }
        }
        if let Some(not) = keywords.not {
            let not = self.child(id, not, Step::Keyword("not"));
            if self.holds(not, value, depth - 1).is_some() {
                return false;
            }
        }
        let any = self.branches(id, keywords.any_of, "anyOf");
        let one = self.branches(id, keywords.one_of, "oneOf");
        let right = self.count_branches(&any, value, depth, evaluated) > 0 || any.is_empty();
        let right = right && (self.count_branches(&one, value, depth, evaluated) == 1 || one.is_empty());
        let choices = keywords.choices.clone();
        let right =
            right && (self.count_branches(&choices, value, depth, evaluated) > 0 || choices.is_empty());
        right
            && self.conditional(id, keywords, value, depth, evaluated)
            && self.unevaluated(id, keywords, value, depth, evaluated)
    }

    fn count_branches(
        &mut self,
        branches: &[SchemaId],
        value: &Value<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> usize {
        let mut count = 0;
        for &branch in branches {
            if let Some(inner) = self.holds(branch, value, depth - 1) {
                evaluated.join(&inner);
                count += 1;
            }
        }
        count
    }

    fn conditional(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        value: &Value<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        let [Some(condition), then, otherwise] = keywords.if_then_else else { return true };
        let condition = self.child(id, condition, Step::Keyword("if"));
        let (branch, keyword) = match self.holds(condition, value, depth - 1) {
            Some(inner) => {
                evaluated.join(&inner);
                (then, "then")
            }
            None => (otherwise, "else"),
        };
        let Some(branch) = branch else { return true };
        let branch = self.child(id, branch, Step::Keyword(keyword));
        match self.holds(branch, value, depth - 1) {
            Some(inner) => {
                evaluated.join(&inner);
                true
            }
            None => false,
        }
    }

    fn unevaluated(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        value: &Value<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        let (schema, keyword, parts): (_, _, Vec<&Value<'_>>) = match value {
            Value::Array(items) => (keywords.unevaluated_items, "unevaluatedItems", items.iter().collect()),
            Value::Object(members) => {
                (keywords.unevaluated_properties, "unevaluatedProperties", members.values().collect())
            }
            _ => return true,
        };
        let Some(schema) = schema else { return true };
        let schema = self.child(id, schema, Step::Keyword(keyword));
        for (place, part) in parts.into_iter().enumerate() {
            if !evaluated.places.get(place).copied().unwrap_or(true) {
                if self.holds(schema, part, depth - 1).is_none() {
                    return false;
                }
                evaluated.mark(place);
            }
        }
        true
    }

    /// What a schema says by itself.
    fn local(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        value: &Value<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        if !self.has_type(id, keywords.types, value) {
            return false;
        }
        if let Some(list) = keywords.enumeration
            && !self.lists(list, value)
        {
            return false;
        }
        if let Some(one) = keywords.constant
            && !same(one, value)
        {
            return false;
        }
        match value {
            Value::String(text) => self.text_fits(id, keywords, text),
            Value::Number(number) => number_fits(keywords, &Decimal::parse(number)),
            Value::Array(items) => self.items_fit(id, keywords, items, depth, evaluated),
            Value::Object(members) => self.members_fit(id, keywords, members, depth, evaluated),
            Value::Null | Value::Bool(_) => true,
        }
    }

    /// Whether a list holds a value. The values of long lists are remembered, because they are compared with those of other lists.
    fn lists(&mut self, list: &'s [Value<'s>], value: &Value<'_>) -> bool {
        if list.len() <= FEW_VALUES {
            return list.iter().any(|one| same(one, value));
        }
        let listed = self.listed.entry(list.as_ptr().addr());
        listed.or_insert_with(|| list.iter().map(canonical).collect()).contains(&canonical(value))
    }

    pub(super) fn has_type(&self, id: SchemaId, types: TypeSet, value: &Value<'_>) -> bool {
        match value {
            Value::Number(number) if !types.covers(TypeSet::NUMBER) => {
                types.meets(TypeSet::INTEGER)
                    && if self.schemas.dialect_of(id).integer_by_value() {
                        Decimal::parse(number).is_integer()
                    } else {
                        !number.contains(['.', 'e', 'E'])
                    }
            }
            _ => types.meets(TypeSet::of(value)),
        }
    }

    fn text_fits(&mut self, id: SchemaId, keywords: &Keywords<'s>, text: &str) -> bool {
        if !keywords.asserted.meets(TypeSet::STRING) {
            return true;
        }
        if !keywords.length.is_open() && !keywords.length.holds(text.chars().count()) {
            return false;
        }
        let pattern = keywords.pattern.map(|pattern| self.pattern(id, "pattern", pattern));
        let format = keywords.format.map(|format| Some(self.format(format)));
        for language in [pattern, format].into_iter().flatten() {
            let Some(language) = language else { return false };
            match self.languages.holds(&self.grammar, language, text) {
                Some(true) => {}
                Some(false) => return false,
                None => {
                    let path = self.schemas.path(id);
                    self.halt(path, "pattern", "matching the pattern takes too many steps".to_owned());
                    return false;
                }
            }
        }
        true
    }

    fn items_fit(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        items: &[Value<'_>],
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        if !keywords.asserted.meets(TypeSet::ARRAY) {
            return true;
        }
        if !keywords.item_count.holds(items.len()) {
            return false;
        }
        for (place, item) in items.iter().enumerate() {
            if let Some(schema) = self.item(id, keywords, place) {
                if self.holds(schema, item, depth - 1).is_none() {
                    return false;
                }
                evaluated.mark(place);
            }
        }
        if let Some(contains) = keywords.contains {
            let schema = self.child(id, contains, Step::Keyword("contains"));
            let mut count = 0;
            for (place, item) in items.iter().enumerate() {
                if self.holds(schema, item, depth - 1).is_some() {
                    count += 1;
                    if self.schemas.dialect_of(id) >= Dialect::Draft2020 {
                        evaluated.mark(place);
                    }
                }
            }
            if !keywords.contains_count.holds(count) {
                return false;
            }
        }
        !keywords.unique || are_different(items)
    }

    fn members_fit(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        members: &Members<'_>,
        depth: usize,
        evaluated: &mut Evaluated,
    ) -> bool {
        if !keywords.asserted.meets(TypeSet::OBJECT) {
            return true;
        }
        if !keywords.property_count.holds(members.len())
            || !keywords.required.iter().all(|name| members.contains_key(name))
        {
            return false;
        }
        for (name, needed) in &keywords.dependent_required {
            if members.contains_key(name) && !needed.iter().all(|name| members.contains_key(name)) {
                return false;
            }
        }
        for (place, (name, member)) in members.iter().enumerate() {
            if let Some(names) = keywords.property_names {
                let names = self.child(id, names, Step::Keyword("propertyNames"));
                let name = Value::String(name.into());
                if self.holds(names, &name, depth - 1).is_none() {
                    return false;
                }
            }
            let schemas = self.member_schemas(id, keywords, name);
            if !schemas.is_empty() {
                evaluated.mark(place);
            }
            for schema in schemas {
                if self.holds(schema, member, depth - 1).is_none() {
                    return false;
                }
            }
        }
        true
    }
}

fn number_fits(keywords: &Keywords<'_>, number: &Decimal) -> bool {
    let above = |bound: &super::super::keywords::Bound| {
        *number > bound.value || !bound.exclusive && *number == bound.value
    };
    let below = |bound: &super::super::keywords::Bound| {
        *number < bound.value || !bound.exclusive && *number == bound.value
    };
    keywords.minimum.as_ref().is_none_or(above)
        && keywords.maximum.as_ref().is_none_or(below)
        // A step with more digits than we calculate with is refused where the number is lowered.
        && keywords.multiple_of.as_ref().is_none_or(|step| number.is_multiple_of(step) == Some(true))
}

/// Whether no two values are equal.
fn are_different(values: &[Value<'_>]) -> bool {
    if values.len() <= FEW_VALUES {
        let repeats = |(i, value): (usize, &Value)| values[..i].iter().any(|other| same(other, value));
        return !values.iter().enumerate().any(repeats);
    }
    let mut seen = FxHashSet::default();
    values.iter().all(|value| seen.insert(canonical(value)))
}

/// A text that two values have in common if and only if they are [`same`].
pub(super) fn canonical(value: &Value<'_>) -> Box<str> {
    fn write(value: &Value<'_>, out: &mut String) {
        match value {
            Value::Null => out.push('n'),
            Value::Bool(flag) => out.push(if *flag { 't' } else { 'f' }),
            Value::Number(number) => {
                let number = Decimal::parse(number);
                out.push(if number.is_negative() { '-' } else { '+' });
                out.extend(number.digits().iter().map(|digit| char::from(*digit)));
                out.push('e');
                out.push_str(&number.exponent().to_string());
                out.push(';');
            }
            Value::String(text) => write_text(text, out),
            Value::Array(items) => {
                out.push('[');
                items.iter().for_each(|item| write(item, out));
                out.push(']');
            }
            Value::Object(members) => {
                let mut members: Vec<(&str, &Value<'_>)> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                out.push('{');
                for (name, member) in members {
                    write_text(name, out);
                    write(member, out);
                }
                out.push('}');
            }
        }
    }
    /// With its length in front, so that no text can look like something else.
    fn write_text(text: &str, out: &mut String) {
        out.push_str(&text.len().to_string());
        out.push(':');
        out.push_str(text);
    }
    let mut out = String::new();
    write(value, &mut out);
    out.into()
}

/// Whether two values are equal as the standard says: numbers by value, objects without order.
pub(super) fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || Decimal::parse(a) == Decimal::parse(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
