//! The ten patterns of a benchmark that was proposed for outlines-core in its pull request "V2Index and TokensDFA".

use mwbench_abi::Kind;
use serde_json::{Map, Value, json};

pub struct Pattern {
    pub name: &'static str,
    pub kind: Kind,
    pub text: String,
}

pub fn patterns() -> Vec<Pattern> {
    let regex = |name, text: &str| Pattern { name, kind: Kind::Regex, text: text.to_owned() };
    let schema = |name, schema: Value| Pattern { name, kind: Kind::JsonSchema, text: schema.to_string() };
    vec![
        regex("email", EMAIL),
        regex("simple_phone", SIMPLE_PHONE),
        regex("complex_phone", COMPLEX_PHONE),
        regex("permissive_any", PERMISSIVE_ANY),
        regex("permissive_words", PERMISSIVE_WORDS),
        regex("https", HTTPS),
        schema("schema_simple", person(&[])),
        schema(
            "schema_simple_phone",
            person(&[("complexe_phone", json!({"type": "string", "pattern": SCHEMA_PHONE}))]),
        ),
        schema("schema_complexe", recording()),
        schema("schema_curriculum", curriculum()),
    ]
}

const EMAIL: &str = concat!(
    r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*",
    r"@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
);
const SIMPLE_PHONE: &str = r"\+?[1-9][0-9]{7,14}";
const COMPLEX_PHONE: &str = r"\+?\d{1,4}?[-.\s]?\(?\d{1,3}?\)?[-.\s]?\d{1,4}[-.\s]?\d{1,4}[-.\s]?\d{1,9}";
const PERMISSIVE_ANY: &str = r".{255}$";
const PERMISSIVE_WORDS: &str = r"[a-zA-Z]{100}";
const HTTPS: &str = r"(https?:\/\/)?([\da-z\.-]+)\.([a-z\.]{2,6})([\/\w \.-]*)*\/?";
const SCHEMA_PHONE: &str = r"\+?\d{1,4}?[-. ]?\(\d{1,3}\)?[-. ]?\d{1,4}[-. ]?\d{1,4}[-. ]?\d{1,9}";

fn person(more: &[(&str, Value)]) -> Value {
    let mut members = vec![("name", json!({"type": "string"})), ("age", json!({"type": "integer"}))];
    members.extend_from_slice(more);
    object(&members)
}

fn recording() -> Value {
    let artist = json!({"$ref": "#/$defs/artist"});
    let mut schema = object(&[
        ("id", json!({"type": "number"})),
        (
            "work",
            object(&[
                ("id", json!({"type": "number"})),
                ("name", json!({"type": "string"})),
                ("composer", artist.clone()),
            ]),
        ),
        ("recording_artists", json!({"type": "array", "items": artist})),
    ]);
    schema["$defs"] = json!({"artist": object(&[
        ("id", json!({"type": "number"})),
        ("name", json!({"type": "string"})),
        ("functions", json!({"type": "array", "items": {"type": "string"}})),
    ])});
    schema
}

fn curriculum() -> Value {
    let entry = object(&[
        ("date", json!({"type": "string", "format": "date"})),
        ("position", json!({"type": "string"})),
    ]);
    object(&[
        ("name", json!({"type": "string"})),
        ("surname", json!({"type": "string"})),
        ("email", json!({"type": "string", "pattern": EMAIL})),
        ("phone", json!({"type": "string", "pattern": COMPLEX_PHONE})),
        ("website", json!({"type": "string", "pattern": HTTPS})),
        ("resume", json!({"type": "array", "items": entry})),
    ])
}

/// Returns an object with exactly these members, all required.
fn object(members: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}
