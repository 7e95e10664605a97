//! Whether a value satisfies a schema, for the values of `enum` and `const`.
//!
//! `{"type": "string", "maxLength": 3, "enum": ["red", "green"]}` allows only `"red"`: a listed value counts only if
//! it satisfies the keywords beside it. The keywords here are those that the frontend enforces; any
//! other that is about the value is a problem, never a silent yes.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::context::Context;
use super::decimal::Decimal;
use super::keywords::Keywords;
use super::path::PathId;
use super::resolve::resolve;
use super::types::TypeSet;

/// How deep references and combinators may lead at one place of the value.
const DEPTH: usize = 128;

/// Checks values against schemas of one document.
#[derive(Debug, Default)]
pub(crate) struct Validator {
    /// The schemas whose keywords are in the report already, by address.
    reported: HashSet<usize>,
    steps: usize,
}

impl Validator {
    /// Whether `value` satisfies a schema object whose keywords have been read, `enum` and `const` aside.
    pub(crate) fn satisfies_beside_literals(
        &mut self,
        context: &mut Context<'_>,
        keywords: &Keywords<'_>,
        path: PathId,
        value: &Value,
    ) -> bool {
        let (entries, paths) = (context.report.mark(), context.report.paths.mark());
        let satisfied = self.keywords(context, keywords, path, value, 0);
        if context.report.mark() == entries {
            // Nobody remembers the places that were visited for this value.
            context.report.paths.forget_since(paths);
        }
        satisfied
    }

    fn schema(
        &mut self,
        context: &mut Context<'_>,
        schema: &Value,
        path: PathId,
        value: &Value,
        depth: usize,
    ) -> bool {
        self.steps += 1;
        if self.steps > context.options.limits.checks || depth > DEPTH {
            let message = "checking the `enum` and `const` values takes too many steps".to_owned();
            context.limit(path, "", message);
            return false;
        }
        match schema {
            Value::Bool(allowed) => *allowed,
            Value::Object(map) => self.object(context, map, path, value, depth),
            _ => {
                context.malformed(path, "", "an object or a boolean");
                false
            }
        }
    }

    fn object(
        &mut self,
        context: &mut Context<'_>,
        map: &Map<String, Value>,
        path: PathId,
        value: &Value,
        depth: usize,
    ) -> bool {
        let keywords = self.read(context, map, path);
        let listed = keywords.enumeration.is_none_or(|list| list.iter().any(|one| same(one, value)))
            && keywords.constant.is_none_or(|one| same(one, value));
        listed && self.keywords(context, &keywords, path, value, depth)
    }

    /// Reads the keywords, and keeps the report from growing with each value that is checked.
    fn read<'s>(
        &mut self,
        context: &mut Context<'_>,
        map: &'s Map<String, Value>,
        path: PathId,
    ) -> Keywords<'s> {
        let known = !self.reported.insert(core::ptr::from_ref(map).addr());
        let length = context.report.mark();
        let keywords = Keywords::read(context, map, path);
        if known {
            context.report.forget_since(length);
        }
        keywords
    }

    fn keywords(
        &mut self,
        context: &mut Context<'_>,
        keywords: &Keywords<'_>,
        path: PathId,
        value: &Value,
        depth: usize,
    ) -> bool {
        if !has_type(context, keywords.types, value) {
            return false;
        }
        for &(keyword, types) in &keywords.pending {
            if types.meets(TypeSet::of(value)) {
                let message = format!("`{keyword}` beside or below `enum` or `const` is not enforced yet");
                context.unsupported(
                    path,
                    keyword,
                    message,
                    "list only the values that satisfy it, and remove it",
                );
                return false;
            }
        }
        let fits = match value {
            Value::String(text) => keywords.length.holds(text.chars().count()),
            Value::Array(items) => self.items(context, keywords, path, items, depth),
            Value::Object(members) => self.members(context, keywords, path, members, depth),
            _ => true,
        };
        fits && self.combinators(context, keywords, path, value, depth)
    }

    fn items(
        &mut self,
        context: &mut Context<'_>,
        keywords: &Keywords<'_>,
        path: PathId,
        items: &[Value],
        depth: usize,
    ) -> bool {
        let (prefix, keyword) = keywords.prefix;
        if !keywords.item_count.holds(items.len()) {
            return false;
        }
        items.iter().enumerate().all(|(i, item)| {
            if let Some(schema) = prefix.get(i) {
                let path = context.report.paths.keyword(path, keyword);
                let path = context.report.paths.index(path, i);
                self.schema(context, schema, path, item, depth + 1)
            } else if let Some((schema, keyword)) = keywords.rest {
                let path = context.report.paths.keyword(path, keyword);
                self.schema(context, schema, path, item, depth + 1)
            } else {
                true
            }
        })
    }

    fn members(
        &mut self,
        context: &mut Context<'_>,
        keywords: &Keywords<'_>,
        path: PathId,
        members: &Map<String, Value>,
        depth: usize,
    ) -> bool {
        let required = keywords.required.iter().filter_map(Value::as_str);
        if !keywords.property_count.holds(members.len())
            || !required.into_iter().all(|name| members.contains_key(name))
        {
            return false;
        }
        members.iter().all(|(name, member)| {
            if let Some(schema) = keywords.properties.and_then(|properties| properties.get(name)) {
                let path = context.report.paths.keyword(path, "properties");
                let path = context.report.paths.key(path, name);
                self.schema(context, schema, path, member, depth + 1)
            } else if let Some(schema) = keywords.additional {
                let path = context.report.paths.keyword(path, "additionalProperties");
                self.schema(context, schema, path, member, depth + 1)
            } else {
                true
            }
        })
    }

    fn combinators(
        &mut self,
        context: &mut Context<'_>,
        keywords: &Keywords<'_>,
        path: PathId,
        value: &Value,
        depth: usize,
    ) -> bool {
        if let Some(reference) = keywords.reference {
            let Some((target, at)) = resolve(context, reference, path) else { return false };
            if !self.schema(context, target, at, value, depth + 1) {
                return false;
            }
        }
        let mut count = |branches: &[Value], keyword: &'static str| {
            let path = context.report.paths.keyword(path, keyword);
            let valid = branches.iter().enumerate().filter(|&(i, branch)| {
                let path = context.report.paths.index(path, i);
                self.schema(context, branch, path, value, depth + 1)
            });
            valid.count()
        };
        keywords.all_of.is_none_or(|all| count(all, "allOf") == all.len())
            && keywords.any_of.is_none_or(|any| count(any, "anyOf") > 0)
            && keywords.one_of.is_none_or(|one| count(one, "oneOf") == 1)
    }
}

/// Whether a value has one of the types.
pub(crate) fn has_type(context: &Context<'_>, types: TypeSet, value: &Value) -> bool {
    match value {
        Value::Number(number) if !types.covers(TypeSet::NUMBER) => {
            types.meets(TypeSet::INTEGER)
                && if context.dialect.integer_by_value() {
                    Decimal::of(number).is_integer()
                } else {
                    !number.as_str().contains(['.', 'e', 'E'])
                }
        }
        _ => types.meets(TypeSet::of(value)),
    }
}

/// Whether two values are equal as the standard says: numbers by value, objects without order.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Decimal::of(a) == Decimal::of(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}
