//! Reads each keyword of a schema object into the field of [`Keywords`] that it fills.

use rustc_hash::FxHashSet;

use super::super::super::decimal::Decimal;
use super::super::super::json::{Members, Value};
use super::super::super::options::Strictness;
use super::super::super::path::PathId;
use super::super::super::report::Coverage;
use super::super::super::same::same;
use super::super::super::types::TypeSet;
use super::super::{Bound, Conditional, Dialect, Keywords, SchemaId};
use super::Loader;

/// Reads the keywords of a schema object.
pub(super) fn read<'s>(loader: &mut Loader<'s, '_>, schema: &'s Members<'s>, id: SchemaId) -> Keywords<'s> {
    let origin = loader.origin(id).at;
    let (path, dialect) = (origin.path, loader.resource(origin.resource).dialect);
    let (found, deferred) = (Keywords::everything(), Deferred::default());
    let mut reader = Reader { loader, id, path, dialect, found, deferred, has_combinator: false };
    if dialect.reference_stands_alone() && schema.get("$ref").is_some_and(Value::is_string) {
        // Up to draft-07, the keywords beside a `$ref` are ignored.
        for (name, value) in schema {
            match name {
                "$ref" => reader.keyword(name, value),
                _ => reader.annotation(name),
            }
        }
    } else {
        for (name, value) in schema {
            reader.keyword(name, value);
        }
        reader.finish();
    }
    reader.found
}

/// The state of reading one schema object.
pub(super) struct Reader<'l, 'p, 's> {
    pub(super) loader: &'l mut Loader<'s, 'p>,
    pub(super) id: SchemaId,
    pub(super) path: PathId,
    dialect: Dialect,
    pub(super) found: Keywords<'s>,
    deferred: Deferred<'s>,
    /// Whether a combinator has been read.
    pub(super) has_combinator: bool,
}

/// Keywords whose meaning depends on other keywords.
#[derive(Default)]
struct Deferred<'s> {
    has_properties: bool,
    items: Option<&'s Value<'s>>,
    prefix_items: Option<&'s Value<'s>>,
    additional_items: Option<&'s Value<'s>>,
    exclusive_minimum: Option<&'s Value<'s>>,
    exclusive_maximum: Option<&'s Value<'s>>,
    min_contains: Option<u32>,
    max_contains: Option<u32>,
    condition: Option<SchemaId>,
    then: Option<SchemaId>,
    otherwise: Option<SchemaId>,
}

impl<'s> Reader<'_, '_, 's> {
    fn keyword(&mut self, name: &str, value: &'s Value<'s>) {
        use TypeSet as T;
        let draft = self.dialect;
        match name {
            "type" => self.types(value),
            "properties" => {
                self.deferred.has_properties = value.as_object().is_some();
                self.found.properties = self.properties("properties", value);
                self.found.local_first = !self.has_combinator;
            }
            "required" => self.required(value),
            "additionalProperties" => {
                self.found.additional = Some(self.subschema("additionalProperties", value, T::OBJECT));
            }
            "patternProperties" => {
                self.found.pattern_properties = self.properties("patternProperties", value);
            }
            "propertyNames" if draft >= Dialect::Draft06 => {
                self.found.property_names = Some(self.subschema("propertyNames", value, T::OBJECT));
            }
            "dependentRequired" if draft >= Dialect::Draft2019 => self.dependent_required(value),
            "dependentSchemas" if draft >= Dialect::Draft2019 => self.dependent_schemas(value),
            "dependencies" => self.dependencies(value),
            "unevaluatedProperties" if draft >= Dialect::Draft2019 => {
                self.found.unevaluated_properties = Some(self.combinator("unevaluatedProperties", value));
            }
            "minProperties" => self.found.property_count.min = self.least("minProperties", T::OBJECT, value),
            "maxProperties" => {
                self.found.property_count.max = self.greatest("maxProperties", T::OBJECT, value);
            }
            "items" => self.deferred.items = Some(value),
            "prefixItems" if draft >= Dialect::Draft2020 => self.deferred.prefix_items = Some(value),
            "additionalItems" => self.deferred.additional_items = Some(value),
            "unevaluatedItems" if draft >= Dialect::Draft2019 => {
                self.found.unevaluated_items = Some(self.combinator("unevaluatedItems", value));
            }
            "contains" if draft >= Dialect::Draft06 => {
                self.found.contains = Some(self.subschema("contains", value, T::ARRAY));
            }
            "minContains" if draft >= Dialect::Draft2019 => {
                self.deferred.min_contains = Some(self.least("minContains", T::NONE, value));
            }
            "maxContains" if draft >= Dialect::Draft2019 => {
                self.deferred.max_contains = self.greatest("maxContains", T::NONE, value);
            }
            "uniqueItems" => self.unique(value),
            "minItems" => self.found.item_count.min = self.least("minItems", T::ARRAY, value),
            "maxItems" => self.found.item_count.max = self.greatest("maxItems", T::ARRAY, value),
            "enum" => self.found.enumeration = self.list("enum", value, "a list"),
            "const" if draft >= Dialect::Draft06 => {
                self.cover("const", Coverage::Enforced);
                self.found.constant = Some(value);
            }
            "$ref" => self.found.reference = self.reference("$ref", value),
            "$dynamicRef" if draft >= Dialect::Draft2020 => {
                self.found.dynamic_reference = self.reference("$dynamicRef", value);
            }
            "$recursiveRef" if draft == Dialect::Draft2019 => {
                self.found.dynamic_reference = self.reference("$recursiveRef", value);
            }
            "anyOf" => self.found.any_of = self.branches("anyOf", value),
            "oneOf" => self.found.one_of = self.branches("oneOf", value),
            "allOf" => self.found.all_of = self.branches("allOf", value),
            "not" => self.found.not = Some(self.combinator("not", value)),
            "if" if draft >= Dialect::Draft07 => self.deferred.condition = Some(self.combinator("if", value)),
            "then" if draft >= Dialect::Draft07 => self.deferred.then = Some(self.combinator("then", value)),
            "else" if draft >= Dialect::Draft07 => {
                self.deferred.otherwise = Some(self.combinator("else", value));
            }
            "minLength" => self.found.length.min = self.least("minLength", T::STRING, value),
            "maxLength" => self.found.length.max = self.greatest("maxLength", T::STRING, value),
            "pattern" => self.found.pattern = self.text("pattern", T::STRING, value),
            "format" => self.format(value),
            "minimum" => self.found.minimum = self.bound("minimum", value, false),
            "maximum" => self.found.maximum = self.bound("maximum", value, false),
            "exclusiveMinimum" => self.deferred.exclusive_minimum = Some(value),
            "exclusiveMaximum" => self.deferred.exclusive_maximum = Some(value),
            "multipleOf" => self.multiple_of(value),
            "$defs" => self.definitions("$defs", value),
            "definitions" => self.definitions("definitions", value),
            // Keywords that are newer than the draft, older, or unknown constrain nothing, as the standard says.
            _ => self.annotation(name),
        }
    }

    /// Handles keywords that depend on one another.
    fn finish(&mut self) {
        self.items();
        self.exclusive_bounds();
        self.constant_of_list();
        if self.found.contains.is_some() {
            self.found.contains_count.min = self.deferred.min_contains.unwrap_or(1);
            self.found.contains_count.max = self.deferred.max_contains;
        }
        let (then, otherwise) = (self.deferred.then, self.deferred.otherwise);
        self.found.conditional =
            self.deferred.condition.map(|condition| Conditional { condition, then, otherwise });
        match self.loader.source.strictness {
            Strictness::Strict => self.close(true),
            Strictness::Closed => self.close(false),
            Strictness::Standard | Strictness::Lenient => {}
        }
    }

    /// Reads the schemas of items. `items` is the schema of the items after the prefix. In the old spelling it is the
    /// prefix itself, and `additionalItems` is the schema of the rest.
    fn items(&mut self) {
        let Deferred { items, prefix_items, additional_items, .. } = self.deferred;
        let mut has_old_prefix = false;
        match prefix_items {
            Some(Value::Array(list)) => self.found.prefix = self.prefix("prefixItems", list),
            Some(_) => self.malformed("prefixItems", "a list of schemas"),
            None => {}
        }
        match items {
            Some(Value::Array(_)) if prefix_items.is_some() => {
                self.malformed("items", "a schema where `prefixItems` is present");
            }
            Some(Value::Array(list)) => {
                self.found.prefix = self.prefix("items", list);
                has_old_prefix = true;
            }
            Some(schema) => self.found.rest = Some(self.subschema("items", schema, TypeSet::ARRAY)),
            None => {}
        }
        match additional_items {
            Some(rest) if has_old_prefix => {
                self.found.rest = Some(self.subschema("additionalItems", rest, TypeSet::ARRAY));
            }
            Some(_) => self.cover("additionalItems", Coverage::Annotation),
            None => {}
        }
    }

    /// Combines `const` and `enum`: if the `const` value is listed, only `const` remains; otherwise no value is
    /// allowed.
    fn constant_of_list(&mut self) {
        if let (Some(only), Some(values)) = (self.found.constant, self.found.enumeration) {
            let is_listed = values.iter().any(|value| same(value, only));
            self.found.enumeration = if is_listed { None } else { Some(&[]) };
        }
    }

    /// Combines inclusive and exclusive bounds. In draft-04, the exclusive bounds are flags on `minimum` and `maximum`.
    fn exclusive_bounds(&mut self) {
        let Deferred { exclusive_minimum, exclusive_maximum, .. } = self.deferred;
        let minimum = self.found.minimum.take();
        self.found.minimum = self.exclusive("exclusiveMinimum", exclusive_minimum, minimum, |a, b| a >= b);
        let maximum = self.found.maximum.take();
        self.found.maximum = self.exclusive("exclusiveMaximum", exclusive_maximum, maximum, |a, b| a <= b);
    }

    /// Returns the stricter of an inclusive and an exclusive bound: the exclusive one if `is_stricter` holds for their
    /// values.
    fn exclusive(
        &mut self,
        keyword: &'static str,
        value: Option<&'s Value<'s>>,
        inclusive: Option<Bound>,
        is_stricter: impl Fn(&Decimal, &Decimal) -> bool,
    ) -> Option<Bound> {
        match value {
            Some(Value::Bool(exclusive)) => {
                self.cover(keyword, Coverage::Enforced);
                inclusive.map(|bound| Bound { exclusive: *exclusive, ..bound })
            }
            Some(value) => match (self.bound(keyword, value, true), inclusive) {
                (Some(exclusive), Some(inclusive)) if !is_stricter(&exclusive.value, &inclusive.value) => {
                    Some(inclusive)
                }
                (exclusive, inclusive) => exclusive.or(inclusive),
            },
            None => inclusive,
        }
    }

    /// Closes a schema that lists keys in `properties`: it allows no other keys unless `additionalProperties` says so,
    /// and with `require` it requires all listed keys.
    fn close(&mut self, require: bool) {
        if !self.deferred.has_properties {
            return;
        }
        if require {
            let known: FxHashSet<&str> = self.found.required.iter().copied().collect();
            let more = self.found.properties.keys().filter(|name| !known.contains(name));
            self.found.required.extend(more);
        }
        self.found.asserted = self.found.asserted | TypeSet::OBJECT;
        if self.found.additional.is_none() {
            let path = self.loader.paths.keyword(self.path, "additionalProperties");
            self.found.additional = Some(self.loader.nothing(self.id, path));
        }
    }
}
