//! The types of JSON values, and the types that the values of a schema can have.

use serde_json::Value;

/// A set of types of JSON values. Integers are numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types(u8);

impl Types {
    /// No type.
    pub const NONE: Self = Self(0);
    /// Strings.
    pub const TEXT: Self = Self(1);
    /// Numbers, integers or not.
    pub const NUMBER: Self = Self(2);
    /// `true` and `false`.
    pub const BOOLEAN: Self = Self(4);
    /// `null`.
    pub const NULL: Self = Self(8);
    /// Objects.
    pub const OBJECT: Self = Self(16);
    /// Arrays.
    pub const ARRAY: Self = Self(32);
    /// Numbers, booleans and null.
    pub const SCALAR: Self = Self(2 | 4 | 8);
    /// All types except strings.
    pub const NO_TEXT: Self = Self(2 | 4 | 8 | 16 | 32);
    /// All types.
    pub const ALL: Self = Self(1 | 2 | 4 | 8 | 16 | 32);

    const NAMES: [(Self, &'static str); 6] = [
        (Self::TEXT, "string"),
        (Self::NUMBER, "number"),
        (Self::BOOLEAN, "boolean"),
        (Self::NULL, "null"),
        (Self::OBJECT, "object"),
        (Self::ARRAY, "array"),
    ];

    /// Returns the types in both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the types in either set.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the types that are not in `others`.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Checks whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the names of the types in a schema.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(one, _)| !self.and(*one).is_empty()).map(|(_, name)| name)
    }

    /// Returns the type with this name in a schema.
    pub(super) fn of_name(name: &str) -> Self {
        let name = if name == "integer" { "number" } else { name };
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map_or(Self::NONE, |(one, _)| one)
    }
}

/// Returns the types that the values of a schema can have. The result may contain impossible types, because the schema
/// is not solved for this.
pub(super) fn types_of(schema: &Value) -> Types {
    types_in(schema, schema, 16, &mut 1_000)
}

/// Examines `depth` levels and `looks` schemas. Beyond these limits, every type is possible.
fn types_in(schema: &Value, whole: &Value, depth: usize, looks: &mut usize) -> Types {
    let (Some(depth), Some(left)) = (depth.checked_sub(1), looks.checked_sub(1)) else { return Types::ALL };
    *looks = left;
    let map = match schema {
        Value::Object(map) => map,
        Value::Bool(false) => return Types::NONE,
        _ => return Types::ALL,
    };
    let mut types = Types::ALL;
    if let Some(constant) = map.get("const") {
        types = types.and(type_of(constant));
    }
    if let Some(values) = map.get("enum").and_then(Value::as_array) {
        types = types.and(any(values.iter().map(type_of)));
    }
    match map.get("type") {
        Some(Value::String(name)) => types = types.and(Types::of_name(name)),
        Some(Value::Array(names)) => {
            types = types.and(any(names.iter().filter_map(Value::as_str).map(Types::of_name)));
        }
        _ => {}
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(parts) = map.get(keyword).and_then(Value::as_array) {
            types = types.and(any(parts.iter().map(|part| types_in(part, whole, depth, looks))));
        }
    }
    for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        types = types.and(types_in(part, whole, depth, looks));
    }
    let target = map.get("$ref").and_then(Value::as_str).and_then(|pointer| pointer.strip_prefix('#'));
    if let Some(target) = target.and_then(|pointer| whole.pointer(pointer)) {
        types = types.and(types_in(target, whole, depth, looks));
    }
    types
}

fn any(types: impl Iterator<Item = Types>) -> Types {
    types.fold(Types::NONE, Types::or)
}

fn type_of(value: &Value) -> Types {
    match value {
        Value::Null => Types::NULL,
        Value::Bool(_) => Types::BOOLEAN,
        Value::Number(_) => Types::NUMBER,
        Value::String(_) => Types::TEXT,
        Value::Array(_) => Types::ARRAY,
        Value::Object(_) => Types::OBJECT,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_of_schemas() {
        let cases = [
            (json!({"type": "string"}), Types::TEXT),
            (json!({"type": "integer"}), Types::NUMBER),
            (json!({"type": ["string", "null"]}), Types::TEXT.or(Types::NULL)),
            (json!({"enum": ["a", 1]}), Types::TEXT.or(Types::NUMBER)),
            (json!({"const": true}), Types::BOOLEAN),
            (json!({"anyOf": [{"type": "array"}, {"type": "object"}]}), Types::ARRAY.or(Types::OBJECT)),
            (json!({"allOf": [{"type": ["array", "null"]}, {"type": "null"}]}), Types::NULL),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "boolean"}}}), Types::BOOLEAN),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}), Types::ALL),
            (json!({"$ref": "elsewhere"}), Types::ALL),
            (json!({}), Types::ALL),
            (json!(true), Types::ALL),
            (json!(false), Types::NONE),
        ];
        for (schema, types) in cases {
            assert_eq!(types_of(&schema), types, "{schema}");
        }
    }
}
