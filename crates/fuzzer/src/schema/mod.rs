//! Random schemas, and how to shrink them.

mod generate;
mod shrink;

pub use generate::{ambiguous, random};
pub use shrink::smaller;

use serde_json::Value;

/// Keywords whose value is a schema.
const SCHEMA: [&str; 12] = [
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
    "contentSchema",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
const MAP: [&str; 4] = ["$defs", "dependentSchemas", "patternProperties", "properties"];
/// Those that apply to the same value as the schema that contains them.
const IN_PLACE: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// Calls a function for each direct subschema, with its keyword.
fn for_each_child(schema: &Value, act: &mut dyn FnMut(&str, &Value)) {
    let Value::Object(keywords) = schema else { return };
    for (keyword, value) in keywords {
        let keyword = keyword.as_str();
        match value {
            _ if SCHEMA.contains(&keyword) => act(keyword, value),
            Value::Array(list) if LIST.contains(&keyword) => list.iter().for_each(|one| act(keyword, one)),
            Value::Object(map) if MAP.contains(&keyword) => map.values().for_each(|one| act(keyword, one)),
            _ => {}
        }
    }
}

/// Calls a function for a schema and all its subschemas.
pub fn for_each(schema: &Value, act: &mut dyn FnMut(&Value)) {
    act(schema);
    for_each_child(schema, &mut |_, child| for_each(child, act));
}

/// Resolves a reference to `#` or into `$defs`.
pub fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Whether every reference can be resolved, and none leads back to itself without entering a value. Validators follow
/// the latter until their stack overflows.
pub fn refers_well(root: &Value) -> bool {
    let mut well = true;
    for_each(root, &mut |schema| well &= ends(root, schema, 0));
    well
}

fn ends(root: &Value, schema: &Value, depth: usize) -> bool {
    const MAX_DEPTH: usize = 12;
    if depth > MAX_DEPTH {
        return false;
    }
    let mut well = match schema.get("$ref").and_then(Value::as_str) {
        None => true,
        Some(reference) => resolve(root, reference).is_some_and(|target| ends(root, target, depth + 1)),
    };
    for_each_child(schema, &mut |keyword, child| {
        if IN_PLACE.contains(&keyword) {
            well = well && ends(root, child, depth + 1);
        }
    });
    well
}

/// Whether the schema or one of its subschemas has one of the keywords.
pub fn mentions(schema: &Value, keywords: &[&str]) -> bool {
    let mut found = false;
    for_each(schema, &mut |one| found |= keywords.iter().any(|keyword| one.get(*keyword).is_some()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references() {
        let well = json!({"$defs": {"d0": {"items": {"$ref": "#/$defs/d0"}}}, "$ref": "#/$defs/d0"});
        assert!(refers_well(&well));
        assert!(!refers_well(&json!({"$defs": {"d0": {"allOf": [{"$ref": "#/$defs/d0"}]}}})));
        assert!(!refers_well(&json!({"not": {"$ref": "#"}})));
        assert!(!refers_well(&json!({"$ref": "#/$defs/d1"})));
    }
}
