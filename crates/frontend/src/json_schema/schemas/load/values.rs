//! Reads the values of keywords, and reports those that have the wrong form.

use super::super::super::decimal::Decimal;
use super::super::super::error::Reason;
use super::super::super::formats;
use super::super::super::json::Value;
use super::super::super::options::Formats;
use super::super::super::report::{Coverage, Line, Note};
use super::super::super::types::TypeSet;
use super::super::{Bound, Properties, Reference, SchemaId};
use super::read::Reader;

impl<'s> Reader<'_, '_, 's> {
    pub(super) fn types(&mut self, value: &Value<'_>) {
        let named = match value {
            Value::String(name) => TypeSet::named(name),
            Value::Array(names) => names.iter().try_fold(TypeSet::NONE, |all, name| {
                name.as_str().and_then(TypeSet::named).map(|one| all | one)
            }),
            _ => None,
        };
        match named {
            Some(types) => {
                self.cover("type", Coverage::Enforced);
                self.found.types = types;
            }
            None => self.malformed("type", "the name of a JSON type or a list of such names"),
        }
    }

    /// Reads an object of schemas for the values of keys.
    pub(super) fn properties(&mut self, keyword: &'static str, value: &'s Value<'s>) -> Properties<'s> {
        let Some(map) = value.as_object() else {
            self.malformed(keyword, "an object of schemas");
            return Properties::default();
        };
        self.assert(keyword, if map.is_empty() { TypeSet::NONE } else { TypeSet::OBJECT });
        let path = self.loader.paths.keyword(self.path, keyword);
        let schemas = map.iter().map(|(key, schema)| {
            let path = self.loader.paths.key(path, key);
            self.loader.child(self.id, schema, path)
        });
        Properties::new(map, schemas.collect())
    }

    /// Reads a subschema that applies to parts of values of these types.
    pub(super) fn subschema(
        &mut self,
        keyword: &'static str,
        value: &'s Value<'s>,
        types: TypeSet,
    ) -> SchemaId {
        self.assert(keyword, types);
        let path = self.loader.paths.keyword(self.path, keyword);
        self.loader.child(self.id, value, path)
    }

    /// Reads a subschema that applies to the value itself.
    pub(super) fn combinator(&mut self, keyword: &'static str, value: &'s Value<'s>) -> SchemaId {
        self.has_combinator = true;
        self.subschema(keyword, value, TypeSet::NONE)
    }

    pub(super) fn required(&mut self, value: &'s Value<'s>) {
        match names(value) {
            Some(names) => {
                self.assert("required", if names.is_empty() { TypeSet::NONE } else { TypeSet::OBJECT });
                self.found.required = names;
            }
            None if value.as_bool().is_some() => {
                self.malformed("required", "a list of property names beside `properties` (not a boolean)");
            }
            None => self.malformed("required", "a list of property names"),
        }
    }

    pub(super) fn dependent_required(&mut self, value: &'s Value<'s>) {
        let Some(map) = value.as_object() else {
            return self.malformed("dependentRequired", "an object of lists of property names");
        };
        self.assert("dependentRequired", if map.is_empty() { TypeSet::NONE } else { TypeSet::OBJECT });
        for (name, needed) in map {
            match names(needed) {
                Some(needed) => self.found.dependent_required.push((name, needed)),
                None => self.malformed("dependentRequired", "an object of lists of property names"),
            }
        }
    }

    pub(super) fn dependent_schemas(&mut self, value: &'s Value<'s>) {
        let Some(map) = value.as_object() else {
            return self.malformed("dependentSchemas", "an object of schemas");
        };
        self.cover("dependentSchemas", Coverage::Enforced);
        for (name, schema) in map {
            self.dependent_schema("dependentSchemas", name, schema);
        }
        self.has_combinator = true;
    }

    /// Reads the old spelling: for each key a list of names, or a schema. Draft-03 also had a single name.
    pub(super) fn dependencies(&mut self, value: &'s Value<'s>) {
        let Some(map) = value.as_object() else {
            return self.malformed("dependencies", "an object of schemas");
        };
        self.cover("dependencies", Coverage::Enforced);
        for (name, needed) in map {
            let names = match needed {
                Value::String(needed) => Some(vec![&**needed]),
                _ => names(needed),
            };
            if let Some(names) = names {
                self.found.dependent_required.push((name, names));
                self.found.asserted = self.found.asserted | TypeSet::OBJECT;
            } else {
                self.dependent_schema("dependencies", name, needed);
            }
        }
    }

    fn dependent_schema(&mut self, keyword: &'static str, name: &'s str, schema: &'s Value<'s>) {
        self.has_combinator = true;
        let path = self.loader.paths.keyword(self.path, keyword);
        let path = self.loader.paths.key(path, name);
        let schema = self.loader.child(self.id, schema, path);
        self.found.dependent_schemas.push((name, schema));
    }

    pub(super) fn list(
        &mut self,
        keyword: &'static str,
        value: &'s Value<'s>,
        expected: &str,
    ) -> Option<&'s [Value<'s>]> {
        match value.as_array() {
            Some(_) => self.cover(keyword, Coverage::Enforced),
            None => self.malformed(keyword, expected),
        }
        value.as_array()
    }

    pub(super) fn branches(&mut self, keyword: &'static str, value: &'s Value<'s>) -> Vec<SchemaId> {
        self.has_combinator = true;
        match value.as_array() {
            Some(list) if !list.is_empty() => {
                self.cover(keyword, Coverage::Enforced);
                self.children(keyword, list)
            }
            _ => {
                self.malformed(keyword, "a list of at least one schema");
                Vec::new()
            }
        }
    }

    pub(super) fn prefix(&mut self, keyword: &'static str, list: &'s [Value<'s>]) -> Vec<SchemaId> {
        self.assert(keyword, TypeSet::ARRAY);
        self.children(keyword, list)
    }

    fn children(&mut self, keyword: &'static str, list: &'s [Value<'s>]) -> Vec<SchemaId> {
        let path = self.loader.paths.keyword(self.path, keyword);
        let children = list.iter().enumerate().map(|(i, schema)| {
            let path = self.loader.paths.index(path, i);
            self.loader.child(self.id, schema, path)
        });
        children.collect()
    }

    pub(super) fn reference(&mut self, keyword: &'static str, value: &'s Value<'s>) -> Option<Reference<'s>> {
        self.has_combinator = true;
        let text = self.text(keyword, TypeSet::NONE, value)?;
        let target = match keyword {
            "$ref" => self.loader.resolve(self.id, text),
            _ => self.loader.resolve_dynamic(self.id, text),
        };
        Some(Reference { keyword, text, target })
    }

    pub(super) fn text(
        &mut self,
        keyword: &'static str,
        types: TypeSet,
        value: &'s Value<'s>,
    ) -> Option<&'s str> {
        match value.as_str() {
            Some(_) => self.assert(keyword, types),
            None => self.malformed(keyword, "a string"),
        }
        value.as_str()
    }

    pub(super) fn unique(&mut self, value: &Value<'_>) {
        match value.as_bool() {
            Some(unique) => {
                self.assert("uniqueItems", if unique { TypeSet::ARRAY } else { TypeSet::NONE });
                self.found.unique = unique;
            }
            None => self.malformed("uniqueItems", "true or false"),
        }
    }

    pub(super) fn least(&mut self, keyword: &'static str, types: TypeSet, value: &Value<'_>) -> u32 {
        match count(value) {
            Some(Ok(least)) => {
                self.assert(keyword, if least == 0 { TypeSet::NONE } else { types });
                return least;
            }
            Some(Err(())) => {
                let message = format!("`{keyword}` is above {}, the greatest count", u32::MAX);
                self.loader.fault(self.id, keyword, Reason::Limit, message, "use a smaller number");
            }
            None => self.malformed(keyword, "a whole number that is not negative"),
        }
        0
    }

    pub(super) fn greatest(
        &mut self,
        keyword: &'static str,
        types: TypeSet,
        value: &Value<'_>,
    ) -> Option<u32> {
        match count(value) {
            Some(Ok(greatest)) => {
                self.assert(keyword, types);
                return Some(greatest);
            }
            Some(Err(())) => {
                self.cover(keyword, Coverage::Enforced);
                let path = self.loader.paths.keyword(self.path, keyword);
                self.loader.lines.push(Line {
                    path,
                    keyword: "",
                    coverage: Coverage::Note(Note::BoundOutOfReach),
                });
            }
            None => self.malformed(keyword, "a whole number that is not negative"),
        }
        None
    }

    pub(super) fn bound(
        &mut self,
        keyword: &'static str,
        value: &Value<'_>,
        exclusive: bool,
    ) -> Option<Bound> {
        self.number(keyword, value).map(|value| Bound { value, exclusive })
    }

    fn number(&mut self, keyword: &'static str, value: &Value<'_>) -> Option<Decimal> {
        if let Value::Number(number) = value {
            self.assert(keyword, TypeSet::NUMBER);
            Some(Decimal::parse(number))
        } else {
            self.malformed(keyword, "a number");
            None
        }
    }

    pub(super) fn multiple_of(&mut self, value: &Value<'_>) {
        match self.number("multipleOf", value) {
            Some(step) if step.is_positive() => self.found.multiple_of = Some(step),
            Some(_) => self.malformed("multipleOf", "a number above 0"),
            None => {}
        }
    }

    /// Reads `format`. Formats of the standard are enforced; any other name constrains nothing and gets a note in the
    /// report.
    pub(super) fn format(&mut self, value: &'s Value<'s>) {
        match value.as_str() {
            Some(name) if formats::is_known(name) && self.loader.source.formats == Formats::Enforced => {
                self.assert("format", TypeSet::STRING);
                self.found.format = Some(name);
            }
            Some(name) if self.loader.source.formats == Formats::Enforced => {
                self.cover("format", Coverage::Note(Note::UnknownFormat { near: formats::near(name) }));
            }
            Some(_) => self.cover("format", Coverage::Annotation),
            None => self.malformed("format", "a string"),
        }
    }

    pub(super) fn definitions(&mut self, keyword: &'static str, value: &Value<'_>) {
        match value.as_object() {
            Some(_) => self.cover(keyword, Coverage::Annotation),
            None => self.malformed(keyword, "an object of schemas"),
        }
    }

    /// Reports a keyword that constrains nothing.
    pub(super) fn annotation(&mut self, name: &str) {
        let path = self.loader.paths.key(self.path, name);
        self.loader.lines.push(Line { path, keyword: "", coverage: Coverage::Annotation });
    }

    /// Reports a keyword that is enforced, and records that it constrains values of these types.
    fn assert(&mut self, keyword: &'static str, types: TypeSet) {
        self.cover(keyword, Coverage::Enforced);
        self.found.asserted = self.found.asserted | types;
    }

    pub(super) fn cover(&mut self, keyword: &'static str, coverage: Coverage) {
        self.loader.lines.push(Line { path: self.path, keyword, coverage });
    }

    pub(super) fn malformed(&mut self, keyword: &'static str, expected: &str) {
        self.loader.malformed(self.id, keyword, expected);
    }
}

fn names<'s>(value: &'s Value<'s>) -> Option<Vec<&'s str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// Reads a count. Returns `None` if the value is not a count, and `Err` if it is too large.
fn count(value: &Value<'_>) -> Option<Result<u32, ()>> {
    let Value::Number(number) = value else { return None };
    if let Ok(n) = number.parse::<u64>() {
        return Some(u32::try_from(n).map_err(|_| ()));
    }
    match Decimal::parse(number).to_count() {
        Ok(n) => Some(Ok(n)),
        Err(true) => Some(Err(())),
        Err(false) => None,
    }
}
