//! Random values that probably satisfy a schema.

use maskwright_oracle::generate::Rng;
use serde_json::{Map, Value, json};

use crate::sample::{FORMATS, any, key, of_type, small, word};
use crate::schema::resolve;

/// Returns a value that is likely to satisfy the schema: combinators are followed at random, and the other keywords are
/// mostly obeyed.
pub fn for_schema(root: &Value, schema: &Value, rng: &mut Rng, depth: usize) -> Value {
    let Value::Object(keywords) = schema else { return any(rng, 1) };
    if depth == 0 || rng.one_in(40) {
        return any(rng, 1);
    }
    let keywords = merged(root, keywords, rng, 4);
    if let Some(value) = keywords.get("const").filter(|_| !rng.one_in(10)) {
        return value.clone();
    }
    if let Some(Value::Array(list)) = keywords.get("enum").filter(|_| !rng.one_in(10)) {
        return rng.choose(list).cloned().unwrap_or_default();
    }
    let kind = match keywords.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => rng.choose(kinds).and_then(Value::as_str).unwrap_or("null").to_owned(),
        _ => likely_type(&keywords, rng).to_owned(),
    };
    match kind.as_str() {
        "integer" | "number" => number(&kind, &keywords, rng),
        "string" => string(&keywords, rng),
        "array" => array(root, &keywords, rng, depth - 1),
        "object" => object(root, &keywords, rng, depth - 1),
        other => of_type(other, rng, 1),
    }
}

/// Returns the keywords, merged with those of referenced schemas and of randomly chosen branches.
fn merged(root: &Value, keywords: &Map<String, Value>, rng: &mut Rng, depth: usize) -> Map<String, Value> {
    let mut all = keywords.clone();
    if depth == 0 {
        return all;
    }
    let mut branches: Vec<&Value> = Vec::new();
    if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
        branches.extend(resolve(root, reference));
    }
    if let Some(Value::Array(list)) = keywords.get("allOf") {
        branches.extend(list);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(list)) = keywords.get(keyword) {
            branches.extend(rng.choose(list));
        }
    }
    if rng.one_in(2) {
        branches.extend(keywords.get("if"));
        branches.extend(keywords.get("then"));
    } else {
        branches.extend(keywords.get("else"));
    }
    if let Some(Value::Object(map)) = keywords.get("dependentSchemas") {
        branches.extend(map.values().filter(|_| rng.one_in(2)));
    }
    for branch in branches {
        let Value::Object(branch) = branch else { continue };
        for (keyword, value) in merged(root, branch, rng, depth - 1) {
            match (all.get_mut(&keyword), value) {
                (Some(Value::Object(old)), Value::Object(new)) => {
                    for (name, schema) in new {
                        old.entry(name).or_insert(schema);
                    }
                }
                (Some(Value::Array(old)), Value::Array(new)) if keyword == "required" => old.extend(new),
                (Some(old), value) => {
                    if rng.one_in(2) {
                        *old = value;
                    }
                }
                (None, value) => {
                    all.insert(keyword, value);
                }
            }
        }
    }
    all
}

fn likely_type(keywords: &Map<String, Value>, rng: &mut Rng) -> &'static str {
    let has = |names: &[&str]| names.iter().any(|name| keywords.contains_key(*name));
    if rng.one_in(4) {
        return ["null", "boolean", "integer", "number", "string", "array", "object"][rng.below(7)];
    }
    if has(&["properties", "required", "minProperties", "patternProperties", "propertyNames"]) {
        "object"
    } else if has(&["items", "prefixItems", "contains", "minItems", "uniqueItems"]) {
        "array"
    } else if has(&["pattern", "minLength", "maxLength", "format"]) {
        "string"
    } else if has(&["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"]) {
        "number"
    } else {
        ["null", "boolean", "integer", "number", "string", "array", "object"][rng.below(7)]
    }
}

fn number(kind: &str, keywords: &Map<String, Value>, rng: &mut Rng) -> Value {
    let bound = |name: &str| keywords.get(name).and_then(Value::as_f64);
    let low = bound("minimum").or(bound("exclusiveMinimum"));
    let high = bound("maximum").or(bound("exclusiveMaximum"));
    let step = bound("multipleOf").unwrap_or(if kind == "integer" { 1.0 } else { 0.5 });
    let near = match (low, high) {
        (Some(low), Some(high)) if rng.one_in(2) => low.midpoint(high),
        (Some(low), _) if rng.one_in(2) => low,
        (_, Some(high)) => high,
        (Some(low), None) => low,
        (None, None) => return of_type(kind, rng, 0),
    };
    let number = ((near / step).round() + f64::from(small(rng, 4)) - 1.0) * step;
    let number = if kind == "integer" { number.round() } else { number };
    #[expect(clippy::float_cmp, reason = "a number that is an integer is written as one")]
    if number == number.round() { json!(number as i64) } else { json!(number) }
}

fn string(keywords: &Map<String, Value>, rng: &mut Rng) -> Value {
    let format = keywords.get("format").and_then(Value::as_str).filter(|_| !rng.one_in(8));
    if let Some((_, examples)) = FORMATS.iter().find(|(name, _)| Some(*name) == format) {
        return json!(examples[rng.below(examples.len())]);
    }
    let mut text = word(rng);
    let length = |name: &str| keywords.get(name).and_then(Value::as_u64).map(|length| length as usize);
    if let Some(most) = length("maxLength").filter(|_| !rng.one_in(6)) {
        text = text.chars().take(most).collect();
    }
    while length("minLength").is_some_and(|least| text.chars().count() < least) && !rng.one_in(8) {
        text.push(['a', 'b', 'é'][rng.below(3)]);
    }
    json!(text)
}

fn array(root: &Value, keywords: &Map<String, Value>, rng: &mut Rng, depth: usize) -> Value {
    let size = |name: &str| keywords.get(name).and_then(Value::as_u64).map(|size| size as usize);
    let least = size("minItems").unwrap_or(0);
    let most = size("maxItems").unwrap_or(least + 3).max(least);
    let count = least + rng.below(most - least + 1);
    let prefix = keywords.get("prefixItems").and_then(Value::as_array);
    let free = Value::Bool(true);
    let mut items: Vec<Value> = Vec::new();
    for at in 0..count {
        let schema = prefix.and_then(|prefix| prefix.get(at)).or(keywords.get("items")).unwrap_or(&free);
        let schema = match keywords.get("contains") {
            Some(contains) if rng.one_in(3) => contains,
            _ => schema,
        };
        if *schema == json!(false) && !rng.one_in(8) {
            break;
        }
        let mut item = for_schema(root, schema, rng, depth);
        if keywords.get("uniqueItems") == Some(&json!(true)) && items.contains(&item) {
            item = for_schema(root, schema, rng, depth);
        }
        items.push(item);
    }
    Value::Array(items)
}

fn object(root: &Value, keywords: &Map<String, Value>, rng: &mut Rng, depth: usize) -> Value {
    let empty = Map::new();
    let properties = keywords.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> = keywords
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let free = Value::Bool(true);
    let others = keywords.get("additionalProperties").unwrap_or(&free);
    let mut map = Map::new();
    let pattern = keywords
        .get("patternProperties")
        .and_then(Value::as_object)
        .and_then(|patterns| patterns.values().next());
    for (name, schema) in properties {
        if (required.contains(&name.as_str()) && !rng.one_in(12)) || rng.one_in(2) {
            map.insert(name.clone(), for_schema(root, schema, rng, depth));
        }
    }
    let mut names: Vec<String> = required.iter().map(|name| (*name).to_owned()).collect();
    if *others != json!(false) || pattern.is_some() || rng.one_in(8) {
        names.extend((0..rng.below(3)).map(|_| key(rng)));
    }
    for name in names {
        let schema = properties.get(&name).or(pattern.filter(|_| rng.one_in(2))).unwrap_or(others);
        if !map.contains_key(&name) {
            map.insert(name, for_schema(root, schema, rng, depth));
        }
    }
    map.into()
}
