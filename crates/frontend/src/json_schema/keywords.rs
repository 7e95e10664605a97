//! One schema object, read once: each keyword's value checked, sorted by what it is about.
//!
//! ```text
//! {"type": ["string", "null"], "maxLength": 9, "title": "Name", "pattern": "^a"}
//!
//! types     {string, null}
//! length    0..=9
//! pending   pattern (about strings)      <- refused, unless no string is possible here
//! report    type: enforced, maxLength: enforced, title: annotation
//! ```
//!
//! A keyword of the standard that is not enforced yet is *pending*: it is refused only if a value of the type that
//! it is about can occur, because `minimum` beside `"type": "string"` constrains nothing. A pending keyword
//! whose value allows everything (`"uniqueItems": false`) constrains nothing either. New keywords move from
//! [`Reader::pend`] to a field of their own.

use serde_json::{Map, Value};

use super::context::Context;
use super::decimal::Decimal;
use super::path::PathId;
use super::report::{Coverage, Note};
use super::types::TypeSet;

/// The keywords of one schema object that constrain.
#[derive(Debug)]
pub(crate) struct Keywords<'s> {
    /// What `type` allows; everything if there is no `type`.
    pub(crate) types: TypeSet,
    /// The types about which a keyword other than `type`, `enum`, `const` and the combinators says something.
    pub(crate) asserted: TypeSet,
    pub(crate) reference: Option<&'s str>,
    pub(crate) any_of: Option<&'s [Value]>,
    pub(crate) one_of: Option<&'s [Value]>,
    pub(crate) all_of: Option<&'s [Value]>,
    pub(crate) constant: Option<&'s Value>,
    pub(crate) enumeration: Option<&'s [Value]>,
    pub(crate) length: Window,
    pub(crate) item_count: Window,
    pub(crate) property_count: Window,
    /// The schemas of the first items, and the keyword that gives them.
    pub(crate) prefix: (&'s [Value], &'static str),
    /// The schema of the other items, and the keyword that gives it.
    pub(crate) rest: Option<(&'s Value, &'static str)>,
    pub(crate) properties: Option<&'s Map<String, Value>>,
    pub(crate) required: &'s [Value],
    pub(crate) additional: Option<&'s Value>,
    /// Keywords that are not enforced yet, each with the types that it is about.
    pub(crate) pending: Vec<(&'static str, TypeSet)>,
}

/// A least and a greatest count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

impl Window {
    pub(crate) fn is_empty(self) -> bool {
        self.max.is_some_and(|max| max < self.min)
    }

    pub(crate) fn holds(self, count: usize) -> bool {
        count >= self.min as usize && self.max.is_none_or(|max| count <= max as usize)
    }
}

impl<'s> Keywords<'s> {
    /// Reads the keywords of the schema object at `path`.
    pub(crate) fn read(context: &mut Context<'_>, schema: &'s Map<String, Value>, path: PathId) -> Self {
        let mut reader = Reader {
            context,
            path,
            schema,
            found: Self::none(),
            items: None,
            prefix_items: None,
            additional_items: None,
        };
        if reader.context.dialect.reference_stands_alone() && schema.keys().any(|name| name == "$ref") {
            reader.reference_alone();
        } else {
            for (name, value) in schema {
                reader.keyword(name, value);
            }
            reader.items();
        }
        reader.found
    }

    /// The combinators that are present, by name.
    pub(crate) fn combinators(&self) -> impl Iterator<Item = &'static str> + use<> {
        let present = [
            (self.reference.is_some(), "$ref"),
            (self.any_of.is_some(), "anyOf"),
            (self.one_of.is_some(), "oneOf"),
            (self.all_of.is_some(), "allOf"),
        ];
        present.into_iter().filter_map(|(present, name)| present.then_some(name))
    }

    fn none() -> Self {
        Self {
            types: TypeSet::ALL,
            asserted: TypeSet::NONE,
            reference: None,
            any_of: None,
            one_of: None,
            all_of: None,
            constant: None,
            enumeration: None,
            length: Window::default(),
            item_count: Window::default(),
            property_count: Window::default(),
            prefix: (&[], "prefixItems"),
            rest: None,
            properties: None,
            required: &[],
            additional: None,
            pending: Vec::new(),
        }
    }
}

struct Reader<'c, 'x, 's> {
    context: &'c mut Context<'x>,
    path: PathId,
    schema: &'s Map<String, Value>,
    found: Keywords<'s>,
    items: Option<&'s Value>,
    prefix_items: Option<&'s Value>,
    additional_items: Option<&'s Value>,
}

impl<'s> Reader<'_, '_, 's> {
    /// Draft-07 and before: beside a `$ref`, nothing else is looked at.
    fn reference_alone(&mut self) {
        for (name, value) in self.schema {
            match name.as_str() {
                "$ref" => self.keyword(name, value),
                _ => self.context.cover_unknown(self.path, name),
            }
        }
    }

    fn keyword(&mut self, name: &str, value: &'s Value) {
        use TypeSet as T;
        match name {
            "type" => self.types(value),
            "properties" => self.properties(value),
            "required" => self.required(value),
            "additionalProperties" => {
                self.assert("additionalProperties", T::OBJECT);
                self.found.additional = Some(value);
            }
            // What these mean depends on one another: see `Reader::items`.
            "items" => self.items = Some(value),
            "prefixItems" => self.prefix_items = Some(value),
            "additionalItems" => self.additional_items = Some(value),
            "enum" => self.found.enumeration = self.list("enum", value),
            "const" => {
                self.cover("const");
                self.found.constant = Some(value);
            }
            "$ref" => self.reference(value),
            "anyOf" => self.found.any_of = self.branches("anyOf", value),
            "oneOf" => self.found.one_of = self.branches("oneOf", value),
            "allOf" => self.found.all_of = self.branches("allOf", value),
            "minLength" => self.found.length.min = self.least("minLength", T::STRING, value),
            "maxLength" => self.found.length.max = self.greatest("maxLength", T::STRING, value),
            "minItems" => self.found.item_count.min = self.least("minItems", T::ARRAY, value),
            "maxItems" => self.found.item_count.max = self.greatest("maxItems", T::ARRAY, value),
            "minProperties" => self.found.property_count.min = self.least("minProperties", T::OBJECT, value),
            "maxProperties" => {
                self.found.property_count.max = self.greatest("maxProperties", T::OBJECT, value);
            }
            "format" => self.format(value),
            "$defs" => self.definitions("$defs", value),
            "definitions" => self.definitions("definitions", value),
            "$id" | "id" => self.id(name, value),
            _ => match unenforced(name) {
                Some((name, types)) => self.pend(name, types, value),
                None => self.context.cover_unknown(self.path, name),
            },
        }
    }

    fn types(&mut self, value: &Value) {
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

    fn properties(&mut self, value: &'s Value) {
        let Some(map) = value.as_object() else {
            return self.malformed("properties", "an object of schemas");
        };
        self.assert("properties", if map.is_empty() { TypeSet::NONE } else { TypeSet::OBJECT });
        self.found.properties = Some(map);
    }

    fn required(&mut self, value: &'s Value) {
        match value.as_array() {
            Some(names) if names.iter().all(Value::is_string) => {
                self.assert("required", if names.is_empty() { TypeSet::NONE } else { TypeSet::OBJECT });
                self.found.required = names;
            }
            _ if value.is_boolean() => {
                self.malformed("required", "a list of property names beside `properties` (not a boolean)");
            }
            _ => self.malformed("required", "a list of property names"),
        }
    }

    fn list(&mut self, keyword: &'static str, value: &'s Value) -> Option<&'s [Value]> {
        let list = value.as_array();
        if list.is_some() {
            self.cover(keyword);
        } else {
            self.malformed(keyword, "a list");
        }
        list.map(Vec::as_slice)
    }

    fn branches(&mut self, keyword: &'static str, value: &'s Value) -> Option<&'s [Value]> {
        match value.as_array() {
            Some(list) if !list.is_empty() => self.list(keyword, value),
            _ => {
                self.malformed(keyword, "a list of at least one schema");
                None
            }
        }
    }

    fn reference(&mut self, value: &'s Value) {
        match value.as_str() {
            Some(text) => {
                self.cover("$ref");
                self.found.reference = Some(text);
            }
            None => self.malformed("$ref", "a text"),
        }
    }

    fn least(&mut self, keyword: &'static str, types: TypeSet, value: &Value) -> u32 {
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

    fn greatest(&mut self, keyword: &'static str, types: TypeSet, value: &Value) -> Option<u32> {
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

    fn format(&mut self, value: &Value) {
        match value.as_str() {
            Some(name) if is_known_format(name) => self.pend("format", TypeSet::STRING, value),
            Some(_) => self.context.cover(self.path, "format", Coverage::Annotation),
            None => self.malformed("format", "a text"),
        }
    }

    fn definitions(&mut self, keyword: &'static str, value: &Value) {
        if value.is_object() {
            self.context.cover(self.path, keyword, Coverage::Annotation);
        } else {
            self.malformed(keyword, "an object of schemas");
        }
    }

    fn id(&mut self, name: &str, value: &Value) {
        self.context.cover_unknown(self.path, name);
        // An id that is only a fragment names the schema and leaves the base address alone.
        let moves_base = value.as_str().is_some_and(|id| !id.starts_with('#'));
        if moves_base && self.path != PathId::ROOT && name == self.context.dialect.id_keyword() {
            self.context.report.paths.rebase(self.path);
        }
    }

    /// `items` is a schema for all items that no prefix covers, or, in the old spelling, the prefix itself with
    /// `additionalItems` for the rest.
    fn items(&mut self) {
        match self.prefix_items {
            Some(Value::Array(list)) => {
                self.assert("prefixItems", TypeSet::ARRAY);
                self.found.prefix = (list, "prefixItems");
            }
            Some(_) => self.malformed("prefixItems", "a list of schemas"),
            None => {}
        }
        match self.items {
            Some(Value::Array(_)) if self.prefix_items.is_some() => {
                self.malformed("items", "a schema where `prefixItems` is present");
            }
            Some(Value::Array(list)) => {
                self.assert("items", TypeSet::ARRAY);
                self.found.prefix = (list, "items");
                if let Some(more) = self.additional_items {
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
        if self.additional_items.is_some() {
            self.context.cover(self.path, "additionalItems", Coverage::Annotation);
        }
    }

    /// Keeps a keyword that is not enforced yet, unless it allows everything anyway.
    fn pend(&mut self, keyword: &'static str, types: TypeSet, value: &Value) {
        if allows_everything(keyword, value, self.schema) {
            self.cover(keyword);
        } else {
            self.found.pending.push((keyword, types));
        }
    }

    fn assert(&mut self, keyword: &'static str, types: TypeSet) {
        self.cover(keyword);
        self.found.asserted = self.found.asserted | types;
    }

    fn cover(&mut self, keyword: &'static str) {
        self.context.cover(self.path, keyword, Coverage::Enforced);
    }

    fn malformed(&mut self, keyword: &'static str, expected: &str) {
        self.context.malformed(self.path, keyword, expected);
    }
}

/// The keywords of all drafts that are not enforced yet, each with the types that it is about.
fn unenforced(name: &str) -> Option<(&'static str, TypeSet)> {
    use TypeSet as T;
    Some(match name {
        "minimum" => ("minimum", T::NUMBER),
        "maximum" => ("maximum", T::NUMBER),
        "exclusiveMinimum" => ("exclusiveMinimum", T::NUMBER),
        "exclusiveMaximum" => ("exclusiveMaximum", T::NUMBER),
        "multipleOf" => ("multipleOf", T::NUMBER),
        "divisibleBy" => ("divisibleBy", T::NUMBER),
        "pattern" => ("pattern", T::STRING),
        "uniqueItems" => ("uniqueItems", T::ARRAY),
        "contains" => ("contains", T::ARRAY),
        "minContains" => ("minContains", T::ARRAY),
        "maxContains" => ("maxContains", T::ARRAY),
        "unevaluatedItems" => ("unevaluatedItems", T::ARRAY),
        "patternProperties" => ("patternProperties", T::OBJECT),
        "propertyNames" => ("propertyNames", T::OBJECT),
        "dependencies" => ("dependencies", T::OBJECT),
        "dependentRequired" => ("dependentRequired", T::OBJECT),
        "dependentSchemas" => ("dependentSchemas", T::OBJECT),
        "unevaluatedProperties" => ("unevaluatedProperties", T::OBJECT),
        "not" => ("not", T::ALL),
        "if" => ("if", T::ALL),
        "then" => ("then", T::ALL),
        "else" => ("else", T::ALL),
        "disallow" => ("disallow", T::ALL),
        "extends" => ("extends", T::ALL),
        "$dynamicRef" => ("$dynamicRef", T::ALL),
        "$recursiveRef" => ("$recursiveRef", T::ALL),
        _ => return None,
    })
}

/// Whether a keyword with this value constrains nothing.
fn allows_everything(keyword: &str, value: &Value, schema: &Map<String, Value>) -> bool {
    let open = |schema: &Value| match schema {
        Value::Bool(allowed) => *allowed,
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match keyword {
        // In draft-04, the exclusive bounds are flags on `minimum` and `maximum`.
        "uniqueItems" | "exclusiveMinimum" | "exclusiveMaximum" | "not" => value == &Value::Bool(false),
        "patternProperties" | "dependencies" | "dependentRequired" | "dependentSchemas" => {
            value.as_object().is_some_and(Map::is_empty)
        }
        "propertyNames" | "unevaluatedProperties" | "unevaluatedItems" => open(value),
        "if" => !schema.contains_key("then") && !schema.contains_key("else"),
        "then" | "else" => !schema.contains_key("if") || open(value),
        "minContains" | "maxContains" => !schema.contains_key("contains"),
        _ => false,
    }
}

/// The formats of the standard. Any other name is an annotation.
fn is_known_format(name: &str) -> bool {
    matches!(
        name,
        "date-time"
            | "date"
            | "time"
            | "duration"
            | "email"
            | "idn-email"
            | "hostname"
            | "idn-hostname"
            | "ipv4"
            | "ipv6"
            | "uri"
            | "uri-reference"
            | "iri"
            | "iri-reference"
            | "uri-template"
            | "uuid"
            | "json-pointer"
            | "relative-json-pointer"
            | "regex"
    )
}

/// A count as a keyword gives it: `None` if the value is no count, `Err` if it is too large.
fn count(value: &Value) -> Option<Result<u32, ()>> {
    let Value::Number(number) = value else { return None };
    if let Some(n) = number.as_u64() {
        return Some(u32::try_from(n).map_err(|_| ()));
    }
    match Decimal::of(number).to_count() {
        Ok(n) => Some(Ok(n)),
        Err(true) => Some(Err(())),
        Err(false) => None,
    }
}
