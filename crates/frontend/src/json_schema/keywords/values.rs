//! The values of keywords: what each must look like, and what is said if it does not.

use super::super::json::{Members, Value};

use super::super::decimal::Decimal;
use super::super::report::{Coverage, Note};
use super::super::types::TypeSet;
use super::dispatch::Reader;

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
                self.cover("type");
                self.found.types = types;
            }
            None => self.malformed("type", "the name of a JSON type or a list of such names"),
        }
    }

    /// An object of schemas that is about values of these types.
    pub(super) fn map(
        &mut self,
        keyword: &'static str,
        value: &'s Value<'s>,
        types: TypeSet,
    ) -> Option<&'s Members<'s>> {
        let Some(map) = value.as_object() else {
            self.malformed(keyword, "an object of schemas");
            return None;
        };
        self.assert(keyword, if map.is_empty() { TypeSet::NONE } else { types });
        Some(map)
    }

    /// A schema that is about values of these types.
    pub(super) fn about(
        &mut self,
        keyword: &'static str,
        value: &'s Value<'s>,
        types: TypeSet,
    ) -> &'s Value<'s> {
        self.assert(keyword, types);
        value
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
        let Some(map) = self.map("dependentRequired", value, TypeSet::OBJECT) else { return };
        for (name, needed) in map {
            match names(needed) {
                Some(needed) => self.found.dependent_required.push((name, needed)),
                None => self.malformed("dependentRequired", "an object of lists of property names"),
            }
        }
    }

    pub(super) fn dependent_schemas(&mut self, value: &'s Value<'s>) {
        let Some(map) = self.map("dependentSchemas", value, TypeSet::NONE) else { return };
        self.combine();
        let schemas = map.iter().map(|(name, schema)| (name, schema, "dependentSchemas"));
        self.found.dependent_schemas.extend(schemas);
    }

    /// The old spelling: a list of names, or a schema. Draft-03 also had a single name.
    pub(super) fn dependencies(&mut self, value: &'s Value<'s>) {
        let Some(map) = self.map("dependencies", value, TypeSet::NONE) else { return };
        for (name, needed) in map {
            if let Some(needed) = names(needed) {
                self.found.dependent_required.push((name, needed));
                self.found.asserted = self.found.asserted | TypeSet::OBJECT;
            } else if let Value::String(needed) = needed {
                self.found.dependent_required.push((name, vec![needed]));
                self.found.asserted = self.found.asserted | TypeSet::OBJECT;
            } else {
                self.combine();
                self.found.dependent_schemas.push((name, needed, "dependencies"));
            }
        }
    }

    pub(super) fn list(&mut self, keyword: &'static str, value: &'s Value<'s>) -> Option<&'s [Value<'s>]> {
        let list = value.as_array();
        if list.is_some() {
            self.cover(keyword);
        } else {
            self.malformed(keyword, "a list");
        }
        list
    }

    pub(super) fn branches(
        &mut self,
        keyword: &'static str,
        value: &'s Value<'s>,
    ) -> Option<&'s [Value<'s>]> {
        self.combine();
        match value.as_array() {
            Some(list) if !list.is_empty() => self.list(keyword, value),
            _ => {
                self.malformed(keyword, "a list of at least one schema");
                None
            }
        }
    }

    pub(super) fn reference(&mut self, keyword: &'static str, value: &'s Value<'s>) -> Option<&'s str> {
        self.combine();
        self.text(keyword, TypeSet::NONE, value)
    }

    pub(super) fn dynamic(&mut self, keyword: &'static str, value: &'s Value<'s>) {
        self.found.dynamic_reference = self.reference(keyword, value).map(|text| (text, keyword));
    }

    pub(super) fn text(
        &mut self,
        keyword: &'static str,
        types: TypeSet,
        value: &'s Value<'s>,
    ) -> Option<&'s str> {
        let text = value.as_str();
        if text.is_some() {
            self.assert(keyword, types);
        } else {
            self.malformed(keyword, "a text");
        }
        text
    }

    pub(super) fn flag(&mut self, keyword: &'static str, types: TypeSet, value: &Value<'_>) -> bool {
        if let Some(flag) = value.as_bool() {
            self.assert(keyword, if flag { types } else { TypeSet::NONE });
            flag
        } else {
            self.malformed(keyword, "true or false");
            false
        }
    }

    pub(super) fn least(&mut self, keyword: &'static str, types: TypeSet, value: &Value<'_>) -> u32 {
        match count(value) {
            Some(Ok(0)) => {
                self.cover(keyword);
                0
            }
            Some(Ok(n)) => {
                self.assert(keyword, types);
                n
            }
            Some(Err(())) => {
                let message = format!("`{keyword}` is above 4294967295");
                self.context.limit(self.path, keyword, message);
                0
            }
            None => {
                self.malformed(keyword, "a whole number that is not negative");
                0
            }
        }
    }

    pub(super) fn greatest(
        &mut self,
        keyword: &'static str,
        types: TypeSet,
        value: &Value<'_>,
    ) -> Option<u32> {
        match count(value) {
            Some(Ok(n)) => {
                self.assert(keyword, types);
                Some(n)
            }
            Some(Err(())) => {
                self.cover(keyword);
                let path = self.context.report.paths.keyword(self.path, keyword);
                self.context.note(path, Note::BoundOutOfReach);
                None
            }
            None => {
                self.malformed(keyword, "a whole number that is not negative");
                None
            }
        }
    }

    pub(super) fn number(&mut self, keyword: &'static str, value: &Value<'_>) -> Option<Decimal> {
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

    /// A format of the standard is enforced; any other name is an annotation.
    pub(super) fn format(&mut self, value: &'s Value<'s>) {
        match value.as_str() {
            Some(name) if super::super::lower::format::is_known(name) => {
                self.assert("format", TypeSet::STRING);
                self.found.format = Some(name);
            }
            Some(_) => self.context.cover(self.path, "format", Coverage::Annotation),
            None => self.malformed("format", "a text"),
        }
    }

    pub(super) fn definitions(&mut self, keyword: &'static str, value: &Value<'_>) {
        if value.as_object().is_some() {
            self.context.cover(self.path, keyword, Coverage::Annotation);
        } else {
            self.malformed(keyword, "an object of schemas");
        }
    }

    pub(super) fn annotation(&mut self, name: &str) {
        self.context.cover_unknown(self.path, name);
    }

    pub(super) fn assert(&mut self, keyword: &'static str, types: TypeSet) {
        self.cover(keyword);
        self.found.asserted = self.found.asserted | types;
    }

    pub(super) fn cover(&mut self, keyword: &'static str) {
        self.context.cover(self.path, keyword, Coverage::Enforced);
    }

    pub(super) fn malformed(&mut self, keyword: &'static str, expected: &str) {
        self.context.malformed(self.path, keyword, expected);
    }
}

fn names<'s>(value: &'s Value<'s>) -> Option<Vec<&'s str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// A count as a keyword gives it: `None` if the value is no count, `Err` if it is too large.
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
