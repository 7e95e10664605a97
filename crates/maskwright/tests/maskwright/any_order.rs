//! Objects whose keys may come in any order, with conditions between keys.

use std::sync::Arc;

use maskwright::json_schema::{self, KeyOrder, Limits, Whitespace};
use maskwright::{CompiledConstraint, Compiler, Constraint, Options, TokenId, VocabularyBuilder};
use serde_json::{Value, json};

fn compile(schema: &Value, limits: Limits) -> CompiledConstraint {
    let json_schema = json_schema::Options::default()
        .with_key_order(KeyOrder::Any)
        .with_whitespace(Whitespace::Compact)
        .with_limits(limits);
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=255u8 {
        builder.token(TokenId(u32::from(byte)), &[byte]).expect("ids are distinct");
    }
    builder.special(TokenId(256), "<end>").expect("the id is free").eos(TokenId(256));
    let vocabulary = Arc::new(builder.finish().expect("there are tokens"));
    let compiler = Compiler::with_options(vocabulary, Options { json_schema, ..Options::default() });
    compiler
        .compile(&Constraint::json_schema(schema.to_string()))
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
}

/// Whether a text is accepted. The mask in front of each byte must say the same as accepting it.
fn accepts(compiled: &CompiledConstraint, text: &str) -> bool {
    let mut matcher = compiled.matcher();
    for byte in text.bytes() {
        let token = TokenId(u32::from(byte));
        let is_allowed = matcher.mask().expect("a mask").contains(token);
        assert_eq!(matcher.allows(token), Ok(is_allowed), "{text}");
        if !is_allowed {
            return false;
        }
        matcher.accept(token).expect("it is in the mask");
    }
    matcher.is_accepting()
}

fn check(schema: &Value, right: &[&str], wrong: &[&str]) {
    let compiled = compile(schema, Limits::default());
    for (texts, expected) in [(right, true), (wrong, false)] {
        for text in texts {
            assert_eq!(accepts(&compiled, text), expected, "{schema}: {text}");
        }
    }
}

#[test]
fn kinds_of_objects_are_told_apart_by_the_keys_that_they_require() {
    let kind = |key: &str, more: &str| {
        json!({
            "properties": {"name": {"type": "string"}, (key): {"type": "string"}, (more): {"type": "integer"}, "env": {"type": "array"}},
            "required": ["name", key],
        })
    };
    let schema = json!({"type": "object", "oneOf": [
        kind("exe", "cwd"), kind("image", "port"), kind("project", "build"), kind("function", "path"), kind("repo", "branch"),
        {"properties": {"name": {"type": "string"}, "include": {"type": "string"}}, "required": ["name", "include"]},
    ]});
    let right = [
        r#"{"exe":"x","name":"n"}"#,
        r#"{"env":[],"name":"n","image":"i","zzz":1}"#,
        r#"{"include":"i","env":1,"name":"n"}"#,
        r#"{"image":1,"exe":"x","name":"n"}"#,
        r#"{"port":"p","image":"i","exe":"e","name":"n"}"#,
        r#"{"image":"i","exe":"e","name":"n","port":"p"}"#,
        r#"{"include":"i","repo":"r","env":1,"exe":"e","name":"n"}"#,
    ];
    let wrong = [
        r#"{"name":"n"}"#,
        r#"{"exe":"x"}"#,
        r#"{"exe":"x","image":"i","name":"n"}"#,
        r#"{"name":"n","include":"i","repo":"r"}"#,
        r#"{"image":"i","exe":"e","port":1,"name":"n"}"#,
        r#"{"exe":"x","name":"n","exe":"x"}"#,
        r#"{"include":"i","repo":"r","env":[],"exe":"e","name":"n"}"#,
    ];
    check(&schema, &right, &wrong);
}

#[test]
fn what_many_keys_need_of_one_splits_the_object() {
    let types = |types: &[&str]| json!({"properties": {"type": {"enum": types}}});
    let needs = json!({
        "analyzer": types(&["auto", "string"]), "grams": types(&["auto"]), "fold": types(&["auto"]), "dynamic": types(&["document"]),
        "fields": types(&["document"]), "shapes": types(&["geo"]), "ints": types(&["number"]), "doubles": types(&["number"]),
        "store": types(&["string"]), "norms": types(&["string"]), "multi": types(&["string"]), "above": types(&["string"]),
        "search": types(&["string"]),
    });
    let mut properties = json!({"type": {"enum": ["auto", "document", "geo", "number", "string", "date"]}});
    for key in needs.as_object().expect("an object").keys() {
        properties[key] = json!({"type": "boolean"});
    }
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "dependentSchemas": needs,
    });
    let right = [
        "{}",
        r#"{"grams":true,"fold":false}"#,
        r#"{"store":true,"type":"string","analyzer":true}"#,
        r#"{"shapes":true,"type":"geo"}"#,
        r#"{"type":"date"}"#,
        r#"{"ints":true,"store":true,"grams":false}"#,
    ];
    let wrong = [
        r#"{"type":"date","g"#,
        r#"{"shapes":true,"type":"a"#,
        r#"{"grams":true,"store":true,"t"#,
        r#"{"type":"geo","ints":true}"#,
        r#"{"grams":true,"grams":true}"#,
    ];
    check(&schema, &right, &wrong);
}

#[test]
fn choices_that_are_kept_mean_the_same_as_cases() {
    let a_is_1 = json!({"properties": {"a": {"const": 1}}, "required": ["a"]});
    let schemas = [
        json!([
            {"if": a_is_1, "then": {"required": ["b"]}, "else": {"properties": {"c": {"type": "integer"}}}},
            {"if": {"properties": {"b": {"type": "string"}}}, "then": {"required": ["c"]}},
            {"anyOf": [{"required": ["a"]}, {"required": ["c"]}]},
        ]),
        json!([
            {"oneOf": [a_is_1, {"properties": {"b": {"type": "string"}}}]},
            {"not": {"allOf": [{"required": ["a", "c"]}, {"properties": {"b": {"enum": [1, 2]}}}]}},
            {"dependentSchemas": {"a": {"properties": {"c": false}}}},
        ]),
        json!([
            {"oneOf": [{"required": ["a", "b"]}, {"required": ["b", "c"]}, {"required": ["c"]}]},
            {"if": {"required": ["c"]}, "then": {"not": {"required": ["a", "b"]}}, "else": {"required": ["b"]}},
            {"anyOf": [{"required": ["d"]}, {"properties": {"a": {"const": 1}, "b": {"const": 1}}}, {"properties": {"b": false}}]},
        ]),
    ];
    let mut few = Limits::default();
    few.cases = 5;
    for choices in schemas {
        // With more than three keys, the engine remembers them.
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": ["integer", "null"]}, "b": {}, "c": {"enum": [1, 2, null]}, "d": {}, "e": {}},
            "allOf": choices,
        });
        let (all, kept) = (compile(&schema, Limits::default()), compile(&schema, few.clone()));
        let (mut right, mut wrong) = (0, 0);
        for text in objects() {
            let is_right = accepts(&all, &text);
            *if is_right { &mut right } else { &mut wrong } += 1;
            assert_eq!(accepts(&kept, &text), is_right, "{schema} {text}");
        }
        assert!(right > 50 && wrong > 50, "{schema}: {right} and {wrong}");
    }
}

/// Objects of `a` to `d` with values out of a few, in two orders.
fn objects() -> Vec<String> {
    let values = ["", "1", "\"x\"", "null"];
    let mut objects = Vec::new();
    for at in 0..values.len().pow(4) {
        let chosen = [at % 4, at / 4 % 4, at / 16 % 4, at / 64];
        let members = ["a", "b", "c", "d"].iter().zip(chosen).filter(|(_, value)| *value > 0);
        let mut members: Vec<String> =
            members.map(|(key, value)| format!("\"{key}\":{}", values[value])).collect();
        objects.push(format!("{{{}}}", members.join(",")));
        members.reverse();
        objects.push(format!("{{{}}}", members.join(",")));
    }
    objects
}
