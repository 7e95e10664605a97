//! The constraints of a schema on an object that is written value by value: the names of its values and their types.

use maskwright_automata::{Dfa, Limits};
use maskwright_grammar::{Diagnostic, ExprId, GrammarBuilder, RuleId};
use serde_json::{Map, Value, json};

use super::error::{Reason, TagError};
use super::format::{Json, Style};
use super::types::{Types, types_of};
use super::wire::{can_write, wire};
use crate::json_schema::path::escaped;
use crate::regex;

/// A parameter: its name and the schema of its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The schema of its value, with the definitions of the whole schema.
    pub schema: Value,
    /// The place of the schema, below the place of the whole schema.
    pub below: String,
    /// Whether it is required.
    pub required: bool,
    /// The types that its value can have. Some of them may not satisfy the schema.
    pub types: Types,
}

/// Returns the parameters of an object.
pub fn parameters(json: &Json) -> Result<Vec<Parameter>, TagError> {
    if json.style == Style::Json {
        return Ok(Vec::new());
    }
    let none = Map::new();
    let object = match &json.schema {
        Value::Bool(true) => &none,
        Value::Object(map) => map,
        _ => return Err(refused(json, "", "no object satisfies this schema".into())),
    };
    let mut error = TagError::default();
    for (keyword, value) in object {
        let is_object = keyword != "type" || value == "object";
        let is_written = is_known(keyword) || (wire(json.style).is_some() && OF_VALUES.contains(&&**keyword));
        if !is_written || !is_object {
            let message =
                format!("`{keyword}`: {} cannot be written as parameters with it", json.style.name());
            error.append(refused(json, &format!("/{}", escaped(keyword)), message));
        }
    }
    error.or(())?;
    let mut list = members(object, "", json)?;
    if let Some((pattern, names)) = names(json)? {
        let is_named = |name: &str| names.matches(name.as_bytes());
        if let Some(missing) = list.iter().find(|one| one.required && !is_named(&one.name)) {
            let message =
                format!("{:?} is required, and `propertyNames` has the pattern {pattern:?}", missing.name);
            return Err(refused(json, "/propertyNames", message));
        }
        list.retain(|one| is_named(&one.name));
    }
    // A name may match a pattern as well.
    let patterns = Others { patterns: patterns(json)?, ..Others::default() };
    if let Some(map) = object.get("patternProperties").and_then(Value::as_object) {
        for parameter in &mut list {
            let matching = patterns.matching(&parameter.name);
            let also = map.values().enumerate().filter(|(i, _)| matching >> i & 1 == 1);
            let also: Vec<&Value> = also.map(|(_, schema)| schema).collect();
            if also.is_empty() {
                continue;
            }
            let is_named = parameter.below.starts_with("/properties");
            let own = is_named.then(|| parameter.schema.clone());
            let all: Vec<Value> = own.into_iter().chain(also.into_iter().cloned()).collect();
            parameter.schema = with_definitions(&json!({"allOf": all}), &json.schema);
            parameter.types = types_of(&parameter.schema);
        }
    }
    Ok(list)
}

/// The maximum number of patterns for names, which bounds their combinations.
const MAX_NAME_PATTERNS: usize = 5;

/// The constraints on parameters that the schema of an object does not name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Others {
    /// The pattern of `propertyNames`, with its automaton.
    names: Option<Box<(String, Dfa)>>,
    /// The patterns of `patternProperties`, with an automaton for each.
    patterns: Vec<(String, Dfa)>,
    /// For each combination of matching patterns, as bits, the parameter that such names have.
    cells: Vec<(u32, Parameter)>,
}

impl Others {
    /// Checks whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the types that the value of a name can have, or `None` if there is no such parameter.
    pub fn types(&self, name: &str) -> Option<Types> {
        if self.names.as_deref().is_some_and(|(_, dfa)| !dfa.matches(name.as_bytes())) {
            return None;
        }
        let matching = self.matching(name);
        self.cells.iter().find(|(holds, _)| *holds == matching).map(|(_, parameter)| parameter.types)
    }

    /// Returns the patterns that a name matches, as bits.
    fn matching(&self, name: &str) -> u32 {
        let bits = self.patterns.iter().enumerate();
        bits.map(|(i, (_, dfa))| u32::from(dfa.matches(name.as_bytes())) << i).sum()
    }

    /// Returns each combination of matching patterns, as bits, with its parameter.
    pub(super) fn cells(&self) -> impl Iterator<Item = (u32, &Parameter)> {
        self.cells.iter().map(|(holds, parameter)| (*holds, parameter))
    }

    /// Returns the patterns, as expressions.
    pub(super) fn patterns(&self, json: &Json, g: &mut GrammarBuilder) -> Result<Vec<ExprId>, TagError> {
        let lowered = self.patterns.iter().map(|(pattern, _)| {
            regex::lower(pattern, &regex::Options::json_schema(), g)
                .map_err(|error| wrong_pattern(json, &listed(pattern), &error))
        });
        lowered.collect()
    }

    /// Returns the pattern that all names must match, as an expression.
    pub(super) fn names(&self, json: &Json, g: &mut GrammarBuilder) -> Result<Option<ExprId>, TagError> {
        let Some((pattern, _)) = self.names.as_deref() else { return Ok(None) };
        let lowered = regex::lower(pattern, &regex::Options::json_schema(), g);
        lowered.map(Some).map_err(|error| wrong_pattern(json, OF_NAMES, &error))
    }
}

/// Returns the parameters of an object that its schema does not name. There are some if the schema constrains them, or
/// names none at all.
pub fn others(json: &Json) -> Result<Others, TagError> {
    if json.style == Style::Json {
        return Ok(Others::default());
    }
    let none = Map::new();
    let object = json.schema.as_object().unwrap_or(&none);
    let map = |keyword: &str| object.get(keyword).and_then(Value::as_object).unwrap_or(&none);
    if wire(json.style).is_some_and(|wire| wire.closes_by_name) {
        let speaks = ["additionalProperties", "patternProperties"].into_iter().find(|keyword| {
            object.get(*keyword).is_some_and(|value| *value != Value::Bool(false) && *value != json!({}))
        });
        let said = speaks.or_else(|| (!object.contains_key("properties")).then_some("properties"));
        return match said {
            None => Ok(Others::default()),
            Some(keyword) => {
                let message = "the closing tag repeats the name of a parameter, so all names must be known; name them as `properties`, and no others";
                Err(refused(json, &format!("/{keyword}"), message.into()))
            }
        };
    }
    let patterns = patterns(json)?;
    let list = map("patternProperties");
    let mut cells = Vec::new();
    let mut add = |holds: u32, schema: &Value, below: String| {
        if *schema != Value::Bool(false) {
            let schema = with_definitions(schema, &json.schema);
            let types = types_of(&schema);
            cells.push((holds, Parameter { name: String::new(), schema, below, required: false, types }));
        }
    };
    for holds in 1..1u32 << patterns.len() {
        let mut schemas =
            list.values().enumerate().filter(|(i, _)| holds >> i & 1 == 1).map(|(_, schema)| schema.clone());
        let below = "/patternProperties".to_owned();
        match (schemas.next(), schemas.next()) {
            (Some(only), None) => add(holds, &only, below),
            (first, second) => {
                let all: Vec<Value> = first.into_iter().chain(second).chain(schemas).collect();
                if all.iter().all(|schema| *schema != Value::Bool(false)) {
                    add(holds, &json!({"allOf": all}), below);
                }
            }
        }
    }
    match object.get("additionalProperties") {
        Some(rest) => add(0, rest, "/additionalProperties".into()),
        None if list.is_empty() && map("properties").is_empty() => add(0, &Value::Bool(true), String::new()),
        None => {}
    }
    Ok(Others { names: names(json)?.map(Box::new), patterns, cells })
}

/// A window for the number of parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// The minimum.
    pub min: u32,
    /// The maximum, if there is one.
    pub max: Option<u32>,
}

/// Returns the allowed number of parameters. `has_others` says whether the schema allows names that it does not list.
pub(super) fn count(json: &Json, has_others: bool) -> Result<Count, TagError> {
    let bound = |keyword: &str| match json.schema.get(keyword) {
        None => Ok(None),
        Some(value) => match value.as_u64().and_then(|value| u32::try_from(value).ok()) {
            Some(value) => Ok(Some(value)),
            None => Err(refused(
                json,
                &format!("/{keyword}"),
                format!("`{keyword}` must be a whole number of 32 bits"),
            )),
        },
    };
    let (min, max) = (bound("minProperties")?.unwrap_or(0), bound("maxProperties")?);
    if max.is_some_and(|max| max < min) {
        let message = format!("at least {min} parameters and fewer of them at most is never");
        return Err(refused(json, "/minProperties", message));
    }
    if has_others && min > 1 {
        let message = "a parameter that is not named may occur twice, and would be counted twice; say `minProperties` of named ones alone";
        return Err(refused(json, "/minProperties", message.into()));
    }
    Ok(Count { min, max })
}

/// The place of the pattern of `propertyNames`.
const OF_NAMES: &str = "/propertyNames/pattern";

/// Returns the pattern of `propertyNames`, with its automaton.
fn names(json: &Json) -> Result<Option<(String, Dfa)>, TagError> {
    let said = match json.schema.get("propertyNames") {
        None | Some(Value::Bool(true)) => return Ok(None),
        Some(Value::Object(said)) => said,
        Some(_) => return Err(refused(json, "/propertyNames", "no name satisfies this schema".into())),
    };
    for (keyword, value) in said {
        let is_fine = match &**keyword {
            "pattern" => value.is_string(),
            "type" => value == "string",
            _ => is_silent(keyword),
        };
        if !is_fine {
            let message = format!(
                "`{keyword}`: names are checked by a `pattern` alone where values are written one by one"
            );
            return Err(refused(json, &format!("/propertyNames/{}", escaped(keyword)), message));
        }
    }
    let Some(pattern) = said.get("pattern").and_then(Value::as_str) else { return Ok(None) };
    let dfa = regex::automaton(pattern, &regex::Options::json_schema(), &Limits::default());
    dfa.map(|dfa| Some((pattern.to_owned(), dfa))).map_err(|error| wrong_pattern(json, OF_NAMES, &error))
}

/// Returns the patterns of `patternProperties`, each with its automaton.
fn patterns(json: &Json) -> Result<Vec<(String, Dfa)>, TagError> {
    let Some(map) = json.schema.get("patternProperties").and_then(Value::as_object) else {
        return Ok(Vec::new());
    };
    if map.len() > MAX_NAME_PATTERNS {
        let message =
            format!("{} patterns for names are more than the limit of {MAX_NAME_PATTERNS}", map.len());
        return Err(refused(json, "/patternProperties", message));
    }
    let automaton = |pattern: &String| {
        let dfa = regex::automaton(pattern, &regex::Options::json_schema(), &Limits::default());
        dfa.map(|dfa| (pattern.clone(), dfa)).map_err(|error| wrong_pattern(json, &listed(pattern), &error))
    };
    map.keys().map(automaton).collect()
}

/// Returns the place of a pattern of `patternProperties`.
fn listed(pattern: &str) -> String {
    format!("/patternProperties/{}", escaped(pattern))
}

fn wrong_pattern(json: &Json, below: &str, error: &Diagnostic) -> TagError {
    let at = format!("{}{below}", json.at);
    let help = error.help.clone().unwrap_or_else(|| "fix the pattern".into());
    TagError::of(Reason::Content, &at, error.to_string(), help)
}

fn refused(json: &Json, below: &str, message: String) -> TagError {
    let help = "describe an object with `properties` and `required`, or use the style \"json\"";
    TagError::of(Reason::Unsupported, &format!("{}{below}", json.at), message, help)
}

/// Keywords supported for an object whose values are written one by one in tags, but not for objects inside it.
const OF_VALUES: [&str; 3] = ["maxProperties", "minProperties", "propertyNames"];

/// Checks for keywords of objects that can be written value by value, and those without a constraint.
fn is_known(keyword: &str) -> bool {
    let enforced = ["type", "properties", "required", "additionalProperties", "patternProperties"];
    enforced.contains(&keyword) || is_silent(keyword)
}

/// Checks for keywords without a constraint.
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

/// Returns the members of an object at some place in a schema.
fn members(object: &Map<String, Value>, below: &str, json: &Json) -> Result<Vec<Parameter>, TagError> {
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
        if !can_write(json.style, name) {
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
#[derive(Clone, Debug, PartialEq)]
pub enum Inside {
    /// The members of an object.
    Object(Vec<Parameter>),
    /// The items of a list.
    List {
        /// The schema of the items, as a parameter without a name.
        item: Box<Parameter>,
        /// The minimum number of items.
        min: u32,
        /// The maximum number of items.
        max: Option<u32>,
    },
}

/// Returns the content of the values of one type, objects or arrays, if the schema describes them by the names of
/// members or by a schema for items. Otherwise they are written as JSON, which is always correct.
pub fn inside(parameter: &Parameter, which: Types, json: &Json) -> Option<Inside> {
    let (map, below) = followed(&parameter.schema, &parameter.below)?;
    let of_lists = ["items", "minItems", "maxItems"];
    let has_patterns = map.contains_key("patternProperties");
    if has_patterns || !map.keys().all(|keyword| is_known(keyword) || of_lists.contains(&&**keyword)) {
        return None;
    }
    if which == Types::OBJECT {
        let is_closed = map.get("additionalProperties") == Some(&Value::Bool(false));
        let has_names = map.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
        let members = members(map, &below, json).ok()?;
        return (is_closed || has_names).then_some(Inside::Object(members));
    }
    let items = map.get("items").filter(|items| !items.is_array())?;
    let count = |keyword: &str| match map.get(keyword) {
        None => Some(None),
        Some(count) => count.as_u64().and_then(|count| u32::try_from(count).ok()).map(Some),
    };
    let (min, max) = (count("minItems")?.unwrap_or(0), count("maxItems")?);
    let items = with_definitions(items, &json.schema);
    let types = types_of(&items);
    let item = Parameter {
        name: String::new(),
        schema: items,
        below: format!("{below}/items"),
        required: false,
        types,
    };
    Some(Inside::List { item: Box::new(item), min, max })
}

/// Returns the `$ref` of a schema. Following references may lead to the same one again.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    schema.as_object()?.get("$ref")?.as_str()
}

/// The maximum length of a chain of references.
const MAX_REFERENCE_CHAIN: usize = 8;

/// Returns the schema that a chain of references leads to, and its place. Returns `None` if constraining keywords are
/// beside a reference.
fn followed<'s>(schema: &'s Value, below: &str) -> Option<(&'s Map<String, Value>, String)> {
    let (mut here, mut below) = (schema.as_object()?, below.to_owned());
    for _ in 0..MAX_REFERENCE_CHAIN {
        let Some(pointer) = here.get("$ref") else { return Some((here, below)) };
        if !here.keys().all(|keyword| keyword == "$ref" || is_silent(keyword)) {
            return None;
        }
        let pointer = pointer.as_str()?.strip_prefix('#')?;
        (here, below) = (schema.pointer(pointer)?.as_object()?, pointer.to_owned());
    }
    None
}

/// Returns the schema of a property, with the definitions that its references need.
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

/// Returns the schema of the values of these types that satisfy `schema`.
pub(super) fn restricted(schema: &Value, types: Types) -> Value {
    let side = json!({"type": types.names().collect::<Vec<_>>()});
    // References are resolved from the root of the lowered schema.
    with_definitions(&json!({"allOf": [schema, side]}), schema)
}

/// The maximum number of parameters in any order.
const MAX_ORDERED: usize = 8;

/// The position of a separator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Separated {
    /// Before every parameter.
    Before,
    /// Between two parameters.
    Between,
}

/// Returns parameters in any order, given with whether each is required. There is a rule for each set of parameters
/// that are already written.
pub(super) fn any_order(
    parts: &[(ExprId, bool)],
    other: Option<ExprId>,
    (separator, separated): (ExprId, Separated),
    json: &Json,
    g: &mut GrammarBuilder,
) -> Result<ExprId, TagError> {
    if parts.len() > MAX_ORDERED {
        let message =
            format!("{} parameters in any order are more than the limit of {MAX_ORDERED}", parts.len());
        return Err(TagError::of(Reason::Limit, &json.at, message, "leave `any_order` out"));
    }
    let sets = 1usize << parts.len();
    let after: Vec<RuleId> = (0..sets).map(|set| g.declare(&format!("parameters~{set}"))).collect();
    // Returns one more parameter after a set, and whether the set is complete without it.
    let next = |set: usize, g: &mut GrammarBuilder| {
        let mut next = Vec::new();
        for (i, &(part, _)) in parts.iter().enumerate().filter(|(i, _)| set >> i & 1 == 0) {
            let rest = g.rule(after[set | 1 << i]);
            next.push(g.seq([part, rest]));
        }
        if let Some(other) = other {
            let same = g.rule(after[set]);
            next.push(g.seq([other, same]));
        }
        let is_over = parts.iter().enumerate().all(|(i, (_, required))| !required || set >> i & 1 == 1);
        (g.alt(next), is_over)
    };
    for (set, rule) in after.iter().enumerate() {
        let (more, is_over) = next(set, g);
        let more = g.seq([separator, more]);
        let body = if is_over { g.optional(more) } else { more };
        g.define(*rule, body);
    }
    if separated == Separated::Before {
        return Ok(g.rule(after[0]));
    }
    let (first, is_over) = next(0, g);
    Ok(if is_over { g.optional(first) } else { first })
}
