//! From the name of a keyword to the field that it fills.

use super::super::json::{Members, Value};

use super::super::context::Context;
use super::super::decimal::Decimal;
use super::super::dialect::Dialect;
use super::super::options::Strictness;
use super::super::path::PathId;
use super::super::report::Coverage;
use super::super::types::TypeSet;
use super::{Bound, Keywords};

/// Reads the keywords of the schema object at `path`.
pub(super) fn read<'s>(
    context: &mut Context<'_>,
    schema: &'s Members<'s>,
    path: PathId,
    dialect: Dialect,
) -> Keywords<'s> {
    let found = Keywords::everything();
    let mut reader = Reader { context, path, dialect, found, late: Late::default(), combined: false };
    if dialect.reference_stands_alone() && schema.get("$ref").is_some_and(Value::is_string) {
        // Draft-07 and before: beside a `$ref`, nothing else is looked at.
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
        reader.settle();
    }
    reader.found
}

/// What one schema object says, while it is being read.
pub(super) struct Reader<'c, 'x, 's> {
    pub(super) context: &'c mut Context<'x>,
    pub(super) path: PathId,
    pub(super) dialect: Dialect,
    pub(super) found: Keywords<'s>,
    late: Late<'s>,
    /// Whether a combinator was met.
    combined: bool,
}

/// Keywords whose meaning depends on their neighbours.
#[derive(Default)]
struct Late<'s> {
    items: Option<&'s Value<'s>>,
    prefix_items: Option<&'s Value<'s>>,
    additional_items: Option<&'s Value<'s>>,
    minimum: Option<Decimal>,
    maximum: Option<Decimal>,
    exclusive_minimum: Option<&'s Value<'s>>,
    exclusive_maximum: Option<&'s Value<'s>>,
    min_contains: Option<u32>,
    max_contains: Option<u32>,
}

impl<'s> Reader<'_, '_, 's> {
    fn keyword(&mut self, name: &str, value: &'s Value<'s>) {
        use TypeSet as T;
        match name {
            "type" => self.types(value),
            "properties" => {
                self.found.properties = self.map("properties", value, T::OBJECT);
                self.found.local_first = !self.combined;
            }
            "required" => self.required(value),
            "additionalProperties" => {
                self.found.additional = Some(self.about("additionalProperties", value, T::OBJECT));
            }
            "patternProperties" => {
                self.found.pattern_properties = self.map("patternProperties", value, T::OBJECT);
            }
            "propertyNames" if self.dialect >= Dialect::Draft06 => {
                self.found.property_names = Some(self.about("propertyNames", value, T::OBJECT));
            }
            "dependentRequired" if self.dialect >= Dialect::Draft2019 => self.dependent_required(value),
            "dependentSchemas" if self.dialect >= Dialect::Draft2019 => self.dependent_schemas(value),
            "dependencies" => self.dependencies(value),
            "unevaluatedProperties" if self.dialect >= Dialect::Draft2019 => {
                self.found.unevaluated_properties = Some(self.combinator("unevaluatedProperties", value));
            }
            "minProperties" => self.found.property_count.min = self.least("minProperties", T::OBJECT, value),
            "maxProperties" => {
                self.found.property_count.max = self.greatest("maxProperties", T::OBJECT, value);
            }
            // What these mean depends on one another: see `Reader::settle`.
            "items" => self.late.items = Some(value),
            "prefixItems" if self.dialect >= Dialect::Draft2020 => self.late.prefix_items = Some(value),
            "additionalItems" => self.late.additional_items = Some(value),
            "unevaluatedItems" if self.dialect >= Dialect::Draft2019 => {
                self.found.unevaluated_items = Some(self.combinator("unevaluatedItems", value));
            }
            "contains" if self.dialect >= Dialect::Draft06 => {
                self.found.contains = Some(self.about("contains", value, T::ARRAY));
            }
            "minContains" if self.dialect >= Dialect::Draft2019 => {
                self.late.min_contains = Some(self.least("minContains", T::NONE, value));
            }
            "maxContains" if self.dialect >= Dialect::Draft2019 => {
                self.late.max_contains = self.greatest("maxContains", T::NONE, value);
            }
            "uniqueItems" => self.found.unique = self.flag("uniqueItems", T::ARRAY, value),
            "minItems" => self.found.item_count.min = self.least("minItems", T::ARRAY, value),
            "maxItems" => self.found.item_count.max = self.greatest("maxItems", T::ARRAY, value),
            "enum" => self.found.enumeration = self.list("enum", value),
            "const" if self.dialect >= Dialect::Draft06 => {
                self.cover("const");
                self.found.constant = Some(value);
            }
            "$ref" => self.found.reference = self.reference("$ref", value),
            "$dynamicRef" if self.dialect >= Dialect::Draft2020 => self.dynamic("$dynamicRef", value),
            "$recursiveRef" if self.dialect == Dialect::Draft2019 => self.dynamic("$recursiveRef", value),
            "anyOf" => self.found.any_of = self.branches("anyOf", value),
            "oneOf" => self.found.one_of = self.branches("oneOf", value),
            "allOf" => self.found.all_of = self.branches("allOf", value),
            "not" => self.found.not = Some(self.combinator("not", value)),
            "if" if self.dialect >= Dialect::Draft07 => {
                self.found.if_then_else[0] = Some(self.combinator("if", value));
            }
            "then" if self.dialect >= Dialect::Draft07 => {
                self.found.if_then_else[1] = Some(self.combinator("then", value));
            }
            "else" if self.dialect >= Dialect::Draft07 => {
                self.found.if_then_else[2] = Some(self.combinator("else", value));
            }
            "minLength" => self.found.length.min = self.least("minLength", T::STRING, value),
            "maxLength" => self.found.length.max = self.greatest("maxLength", T::STRING, value),
            "pattern" => self.found.pattern = self.text("pattern", T::STRING, value),
            "format" => self.format(value),
            "minimum" => self.late.minimum = self.number("minimum", value),
            "maximum" => self.late.maximum = self.number("maximum", value),
            "exclusiveMinimum" => self.late.exclusive_minimum = Some(value),
            "exclusiveMaximum" => self.late.exclusive_maximum = Some(value),
            "multipleOf" => self.multiple_of(value),
            "$defs" => self.definitions("$defs", value),
            "definitions" => self.definitions("definitions", value),
            // Newer than the draft, older than it, or unknown: the standard says that it constrains nothing.
            _ => self.annotation(name),
        }
    }

    /// A schema that is about the value itself.
    fn combinator(&mut self, keyword: &'static str, value: &'s Value<'s>) -> &'s Value<'s> {
        self.combined = true;
        self.about(keyword, value, TypeSet::NONE)
    }

    /// Notes that a combinator was met.
    pub(super) fn combine(&mut self) {
        self.combined = true;
    }

    /// Settles what depends on several keywords.
    fn settle(&mut self) {
        self.items();
        self.bounds();
        self.contains();
        if self.found.if_then_else[0].is_none() {
            self.found.if_then_else = [None; 3];
        }
        match self.context.options.strictness {
            Strictness::Strict => self.close(true),
            Strictness::Closed => self.close(false),
            Strictness::Standard | Strictness::Lenient => {}
        }
    }

    /// `items` is a schema for all items that no prefix covers, or, in the old spelling, the prefix itself with
    /// `additionalItems` for the rest.
    fn items(&mut self) {
        match self.late.prefix_items {
            Some(Value::Array(list)) => {
                self.assert("prefixItems", TypeSet::ARRAY);
                self.found.prefix = (list, "prefixItems");
            }
            Some(_) => self.malformed("prefixItems", "a list of schemas"),
            None => {}
        }
        match self.late.items {
            Some(Value::Array(_)) if self.late.prefix_items.is_some() => {
                self.malformed("items", "a schema where `prefixItems` is present");
            }
            Some(Value::Array(list)) => {
                self.assert("items", TypeSet::ARRAY);
                self.found.prefix = (list, "items");
                if let Some(more) = self.late.additional_items {
                    self.assert("additionalItems", TypeSet::ARRAY);
                    self.found.rest = Some((more, "additionalItems"));
                }
                return;
            }
            Some(schema) => {
                self.assert("items", TypeSet::ARRAY);
                self.found.rest = Some((schema, "items"));
            }
            None => {}
        }
        if self.late.additional_items.is_some() {
            self.context.cover(self.path, "additionalItems", Coverage::Annotation);
        }
    }

    /// In draft-04, the exclusive bounds are flags on `minimum` and `maximum`.
    fn bounds(&mut self) {
        let inclusive = |value: Decimal| Bound { value, exclusive: false };
        self.found.minimum = self.late.minimum.take().map(inclusive);
        self.found.maximum = self.late.maximum.take().map(inclusive);
        match self.late.exclusive_minimum {
            Some(Value::Bool(flag)) => {
                self.cover("exclusiveMinimum");
                if let Some(bound) = &mut self.found.minimum {
                    bound.exclusive = *flag;
                }
            }
            Some(value) => {
                let below = self.number("exclusiveMinimum", value);
                let bound = below.map(|value| Bound { value, exclusive: true });
                let stricter = |a: &Bound, b: &Bound| a.value.cmp(&b.value).is_ge();
                self.found.minimum = Bound::stricter(self.found.minimum.take(), bound, stricter);
            }
            None => {}
        }
        match self.late.exclusive_maximum {
            Some(Value::Bool(flag)) => {
                self.cover("exclusiveMaximum");
                if let Some(bound) = &mut self.found.maximum {
                    bound.exclusive = *flag;
                }
            }
            Some(value) => {
                let above = self.number("exclusiveMaximum", value);
                let bound = above.map(|value| Bound { value, exclusive: true });
                let stricter = |a: &Bound, b: &Bound| a.value.cmp(&b.value).is_le();
                self.found.maximum = Bound::stricter(self.found.maximum.take(), bound, stricter);
            }
            None => {}
        }
    }

    fn contains(&mut self) {
        if self.found.contains.is_some() {
            self.found.contains_count.min = self.late.min_contains.unwrap_or(1);
            self.found.contains_count.max = self.late.max_contains;
        }
    }

    /// No keys but the listed ones and, if they are required, all of these.
    fn close(&mut self, require: bool) {
        if let Some(properties) = self.found.properties {
            if require {
                self.found.required = properties.keys().collect();
            }
            self.found.asserted = self.found.asserted | TypeSet::OBJECT;
            self.found.additional.get_or_insert(&Value::Bool(false));
        } else if self.found.types == TypeSet::OBJECT && self.found.is_plain() {
            self.found.asserted = self.found.asserted | TypeSet::OBJECT;
            self.found.additional.get_or_insert(&Value::Bool(false));
        }
    }
}

impl Bound {
    /// The stricter of two bounds; `first_wins` decides, given a second that is exclusive.
    fn stricter(
        first: Option<Self>,
        second: Option<Self>,
        second_wins: impl Fn(&Self, &Self) -> bool,
    ) -> Option<Self> {
        match (first, second) {
            (Some(a), Some(b)) => Some(if second_wins(&b, &a) { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}
