//! What a schema says about the values of an object that is written value by value: their names, and of which types they can be.

use serde_json::{Map, Value, json};

use super::error::{Reason, TagError};
use super::format::Json;
use super::types::{Types, types_of};
use super::wire::{Wire, wire};
use crate::json_schema::path::escaped;

/// A parameter: its name and the schema of its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The schema of its value, with the definitions of the whole.
    pub schema: Value,
    /// Where the schema stands, below that of the whole.
    pub below: String,
    /// Whether it must be there.
    pub required: bool,
    /// The types that its value can have; perhaps fewer do satisfy the schema.
    pub types: Types,
}

/// The parameters of an object.
pub fn parameters(json: &Json) -> Result<Vec<Parameter>, TagError> {
    let Some(wire) = wire(json.style) else { return Ok(Vec::new()) };
    let none = Map::new();
    let object = match &json.schema {
        Value::Bool(true) => &none,
        Value::Object(map) => map,
        _ => return Err(refused(json, "", "no object satisfies this schema".into())),
    };
    let mut error = TagError::default();
    for (keyword, value) in object {
        let is_object = keyword != "type" || value == "object";
        if !is_known(keyword) || !is_object {
            let message =
                format!("`{keyword}`: {} cannot be written as parameters with it", json.style.name());
            error.append(refused(json, &format!("/{}", escaped(keyword)), message));
        }
    }
    error.or(())?;
    members(object, "", json, wire)
}

fn refused(json: &Json, below: &str, message: String) -> TagError {
    let help = "describe an object with `properties` and `required`, or use the style \"json\"";
    TagError::of(Reason::Unsupported, &format!("{}{below}", json.at), message, help)
}

/// Keywords of objects that can be written value by value, and those that ask for nothing.
fn is_known(keyword: &str) -> bool {
    let enforced = ["type", "properties", "required", "additionalProperties"];
    enforced.contains(&keyword) || is_silent(keyword)
}

/// Keywords that ask for nothing.
fn is_silent(keyword: &str) -> bool {
    let silent = [
        "$defs",
        "definitions",
        "title",
        "description",
        "default",
        "examples",
        "$schema",
        "$id",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
        "strict",
    ];
    silent.contains(&keyword) || keyword.starts_with("x-")
}

/// The members of an object that stands somewhere in a schema.
fn members(
    object: &Map<String, Value>,
    below: &str,
    json: &Json,
    wire: Wire,
) -> Result<Vec<Parameter>, TagError> {
    let none = Map::new();
    let properties = object.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<&str> = match object.get("required").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let others = object.get("additionalProperties").unwrap_or(&Value::Bool(true));
    let unnamed = required.iter().filter(|name| !properties.contains_key(**name));
    let unnamed = unnamed.map(|name| (*name, others, format!("{below}/additionalProperties")));
    let named = properties
        .iter()
        .map(|(name, schema)| (&**name, schema, format!("{below}/properties/{}", escaped(name))));
    let mut list = Vec::new();
    for (name, schema, below) in named.chain(unnamed) {
        if !wire.can_write(name) {
            let style = json.style.name();
            let message = format!("{name:?} cannot be the name of a parameter in the style {style}");
            return Err(refused(json, &below, message));
        }
        if *schema == Value::Bool(false) && !required.contains(&name) {
            continue;
        }
        let schema = with_definitions(schema, &json.schema);
        let types = types_of(&schema);
        list.push(Parameter { name: name.into(), schema, below, required: required.contains(&name), types });
    }
    Ok(list)
}

/// An object or a list that can be written value by value.
pub(super) enum Inside {
    Object(Vec<Parameter>),
    List { items: Value, below: String, min: u32, max: Option<u32> },
}

/// What stands inside the values of one type, objects or arrays, if the schema describes them by the names of members or by what each item is.
/// If it does so in another way, they are written as JSON, which is always right.
pub(super) fn inside(parameter: &Parameter, which: Types, json: &Json, wire: Wire) -> Option<Inside> {
    let (map, below) = followed(&parameter.schema, &parameter.below)?;
    let of_lists = ["items", "minItems", "maxItems"];
    if !map.keys().all(|keyword| is_known(keyword) || of_lists.contains(&&**keyword)) {
        return None;
    }
    if which == Types::OBJECT {
        let is_closed = map.get("additionalProperties") == Some(&Value::Bool(false));
        let has_names = map.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
        let members = members(map, &below, json, wire).ok()?;
        return (is_closed || has_names).then_some(Inside::Object(members));
    }
    let items = map.get("items").filter(|items| !items.is_array())?;
    let count = |keyword: &str| match map.get(keyword) {
        None => Some(None),
        Some(count) => count.as_u64().and_then(|count| u32::try_from(count).ok()).map(Some),
    };
    let (min, max) = (count("minItems")?.unwrap_or(0), count("maxItems")?);
    let items = with_definitions(items, &json.schema);
    Some(Inside::List { items, below: format!("{below}/items"), min, max })
}

/// The reference that a schema consists of, if it does; whoever follows references comes by it again.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    schema.as_object()?.get("$ref")?.as_str()
}

/// How many references of references are followed.
const REFERENCES: usize = 8;

/// The schema that a chain of references leads to, and where it stands. Nothing else may stand beside them.
fn followed<'s>(schema: &'s Value, below: &str) -> Option<(&'s Map<String, Value>, String)> {
    let (mut here, mut below) = (schema.as_object()?, below.to_owned());
    for _ in 0..REFERENCES {
        let Some(pointer) = here.get("$ref") else { return Some((here, below)) };
        if !here.keys().all(|keyword| keyword == "$ref" || is_silent(keyword)) {
            return None;
        }
        let pointer = pointer.as_str()?.strip_prefix('#')?;
        (here, below) = (schema.pointer(pointer)?.as_object()?, pointer.to_owned());
    }
    None
}

/// The schema of a property, with what its references need.
fn with_definitions(schema: &Value, whole: &Value) -> Value {
    let (Value::Object(map), Value::Object(whole)) = (schema, whole) else { return schema.clone() };
    let mut map = map.clone();
    for keyword in ["$defs", "definitions", "$schema"] {
        if let Some(definitions) = whole.get(keyword) {
            map.entry(keyword).or_insert_with(|| definitions.clone());
        }
    }
    Value::Object(map)
}

/// The values of a schema that have some types.
pub(super) fn restricted(schema: &Value, types: Types) -> Value {
    let side = json!({"type": types.names().collect::<Vec<_>>()});
    // References are looked up from the root of what is lowered.
    with_definitions(&json!({"allOf": [schema, side]}), schema)
}
