//! Tests of the emitter: which expressions and rules a schema becomes, and which limits errors name.

use super::super::json::Value;
use super::super::options::{KeyOrder, Limits, Options, Whitespace};
use super::super::schemas::{Source, load};
use super::*;

fn emit(text: &str, options: &Options) -> Result<Grammar, SchemaError> {
    let root = Value::read(text, 100).expect("JSON");
    let mut context = Context::new(options);
    let (strictness, formats) = (options.strictness, options.formats);
    let source = Source { root: &root, documents: &[], strictness, formats, tracks_scopes: false };
    let schemas = load(source, &mut context.report.paths);
    let mut emitter = Emitter::new(Algebra::new(context, schemas));
    loop {
        let start = emitter.emit();
        match emitter.finish(start) {
            Finished::Whole(result) => return result.map(|(grammar, _)| grammar),
            Finished::Again(again) => emitter = *again,
        }
    }
}

/// Returns the names of the rules of a schema, in compact style.
fn rules(text: &str) -> Vec<String> {
    let options = Options::default().with_whitespace(Whitespace::Compact);
    let grammar = emit(text, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    grammar.rules().iter().map(|rule| rule.name().to_owned()).collect()
}

#[test]
fn only_schemas_that_are_shared_are_rules() {
    let point =
        r#"{"prefixItems": [{"const": 1}, {"const": 2}], "items": false, "minItems": 2, "type": "array"}"#;
    assert_eq!(rules(point), ["root"]);
    let nested = format!(r#"{{"type": "array", "items": {point}}}"#);
    assert_eq!(rules(&nested), ["root"]);
    let referenced = format!(
        r##"{{"type": "array", "items": {{"$ref": "#/$defs/point"}}, "$defs": {{"point": {point}}}}}"##
    );
    assert_eq!(rules(&referenced), ["root", "point"]);
}

#[test]
fn optional_properties_are_linear() {
    let count = |properties: usize| {
        let properties: Vec<String> =
            (0..properties).map(|i| format!(r#""p{i}": {{"type": "null"}}"#)).collect();
        let text = format!(
            r#"{{"type": "object", "properties": {{{}}}, "additionalProperties": false}}"#,
            properties.join(", ")
        );
        rules(&text).len()
    };
    assert_eq!((count(10), count(20), count(40)), (10, 20, 40));
}

#[test]
fn unique_items_of_few_values_are_subsets() {
    let text = r#"{"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": true}"#;
    // One rule for each nonempty subset.
    assert_eq!(rules(text).len(), 1 + 7);
}

#[test]
fn circles_that_describe_nothing_are_refused() {
    let error = emit(r##"{"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}"##, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("leads back to itself"), "{error}");
}

#[test]
fn limits_name_themselves_and_a_place() {
    let limits = Limits { states: 20, rules: 30, literals: 5, ..Limits::default() };
    let options = Options::default().with_limits(limits);
    let many: Vec<String> = (0..60).map(|i| format!(r#""p{i}": {{"type": "null"}}"#)).collect();
    let object = format!(
        r#"{{"type": "object", "properties": {{{}}}, "additionalProperties": false}}"#,
        many.join(",")
    );
    let counted = format!(r#"{{"maxProperties": 3, "allOf": [{object}]}}"#);
    let contains: Vec<String> = (0..7).map(|i| format!(r#"{{"contains": {{"const": {i}}}}}"#)).collect();
    let array = format!(r#"{{"type": "array", "allOf": [{}]}}"#, contains.join(","));
    for (text, limit) in [
        (&*object, "more than 30 rules"),
        (&*counted, "more than 20 states"),
        (&*array, "more than 80 states"),
        (r#"{"enum": [1, 2, 3, 4, 5, 6]}"#, "more than 5 values"),
    ] {
        let error = emit(text, &options).unwrap_err().to_string();
        assert!(error.contains(limit) && error.contains("raise the limit `"), "{error}");
    }
    let unordered = r#"{"type": "object", "maxProperties": 4, "dependentRequired": {"a": ["b"], "c": ["d"], "e": ["f"]}}"#;
    let error = emit(unordered, &options.with_key_order(KeyOrder::Any)).unwrap_err().to_string();
    assert!(error.contains("more than 20 states") && error.contains("raise the limit `states`"), "{error}");
}
