//! Runs the cases in `testdata/json_schema/*.toml`, and asks the hostile questions that are too large for a file.

use std::fs;
use std::path::Path;

use maskwright_frontend::json_schema::{
    Coverage, Formats, KeyOrder, Limits, Options, Reason, Report, Resolver, SchemaError, Strictness,
    Whitespace, grammar, grammar_of,
};
use maskwright_grammar::Grammar;
use maskwright_oracle::Oracle;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    schema: String,
    /// Without white space.
    #[serde(default)]
    compact: bool,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    reject: Vec<String>,
    /// Texts that no accepted text begins with.
    #[serde(default)]
    prefix_reject: Vec<String>,
    /// Part of the rendered error.
    error: Option<String>,
    /// How many problems there are in all; one unless told otherwise.
    count: Option<usize>,
    /// Lines of the report, as `"pointer" coverage`.
    #[serde(default)]
    report: Vec<String>,
    /// Why the case is here.
    #[expect(dead_code, reason = "for the reader of the file; deserializing checks that it is there")]
    why: String,
}

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/json_schema");
    let (mut run, mut wrong) = (0, Vec::new());
    for entry in fs::read_dir(&folder).expect("testdata/json_schema is there") {
        let path = entry.expect("the folder can be read").path();
        let text = fs::read_to_string(&path).expect("a case file is UTF-8");
        let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in file.case {
            if let Err(what) = check(&case) {
                wrong.push(format!("{}: {}: {what}", path.display(), case.name));
            }
            run += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(run > 120, "only {run} cases were found");
}

/// Says what is wrong, if anything is.
fn check(case: &Case) -> Result<(), String> {
    let mut options = case.options.clone();
    if case.compact {
        options = options.with_whitespace(Whitespace::Compact);
    }
    match (grammar(&case.schema, &options), &case.error) {
        (Ok((grammar, report)), None) => {
            check_texts(&grammar, case)?;
            check_report(&report, case)
        }
        (Err(error), Some(expected)) => check_error(&error, expected, case.count.unwrap_or(1)),
        (Ok((grammar, _)), Some(_)) => Err(format!("an error was expected\n{grammar}")),
        (Err(error), None) => Err(format!("refused\n{error}")),
    }
}

fn check_error(error: &SchemaError, expected: &str, count: usize) -> Result<(), String> {
    if !error.to_string().contains(expected) {
        return Err(format!("{expected:?} was not said\n{error}"));
    }
    let said = error.problems().len() + error.more();
    if said == count { Ok(()) } else { Err(format!("{said} problems instead of {count}\n{error}")) }
}

fn check_texts(grammar: &Grammar, case: &Case) -> Result<(), String> {
    let oracle = Oracle::new(grammar);
    let all = |texts: &[String], what: &str, right: &dyn Fn(&[u8]) -> bool| match texts
        .iter()
        .find(|text| !right(text.as_bytes()))
    {
        Some(text) => Err(format!("should {what} {text}\n{grammar}")),
        None => Ok(()),
    };
    all(&case.accept, "accept", &|text| oracle.accepts(text))?;
    all(&case.reject, "reject", &|text| !oracle.accepts(text))?;
    all(&case.prefix_reject, "not begin with", &|text| !oracle.is_prefix(text))
}

fn check_report(report: &Report, case: &Case) -> Result<(), String> {
    let entries = report.entries();
    let lines: Vec<_> =
        entries.iter().map(|entry| format!("{:?} {}", entry.pointer, entry.coverage)).collect();
    match case.report.iter().find(|expected| !lines.contains(expected)) {
        Some(expected) => Err(format!("{expected} is not in the report\n{}", lines.join("\n"))),
        None => Ok(()),
    }
}

fn accept(schema: &Value) -> Grammar {
    grammar_of(schema, &Options::default()).unwrap_or_else(|error| panic!("{error}")).0
}

fn refuse(schema: &Value) -> SchemaError {
    grammar_of(schema, &Options::default()).expect_err("the schema should be refused")
}

/// An object with n optional properties.
fn wide(n: usize) -> Value {
    let properties: serde_json::Map<_, _> =
        (0..n).map(|i| (format!("p{i}"), json!({"type": "null"}))).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

#[test]
fn optional_properties_cost_a_constant_each() {
    let (small, large) = (accept(&wide(100)), accept(&wide(200)));
    let size =
        |grammar: &Grammar| grammar.exprs().iter().map(|expr| 1 + expr.operands().len()).sum::<usize>();
    assert!(size(&large) < 2 * size(&small), "{} for 100, {} for 200", size(&small), size(&large));
    assert!(large.exprs().len() < 200 * 12, "{} expressions", large.exprs().len());
}

#[test]
fn required_properties_cost_a_constant_each() {
    let mut schema = wide(2000);
    schema["required"] = (0..2000).map(|i| format!("p{i}")).collect();
    let grammar = accept(&schema);
    let size: usize = grammar.exprs().iter().map(|expr| 1 + expr.operands().len()).sum();
    assert!(size < 2000 * 20, "{size} operands");
}

#[test]
fn a_long_tuple_costs_a_constant_for_each_item() {
    for min in [0, 1000, 2000] {
        let items: Vec<_> = (0..2000).map(|i| json!({"const": i})).collect();
        let grammar = accept(&json!({"type": "array", "prefixItems": items, "minItems": min}));
        let size: usize = grammar.exprs().iter().map(|expr| 1 + expr.operands().len()).sum();
        assert!(size < 2000 * 20, "{size} operands with minItems {min}");
    }
}

#[test]
fn no_expression_nests_deep_in_a_wide_schema() {
    let mut alternating = wide(1000);
    alternating["required"] = (0..500).map(|i| format!("p{}", 2 * i)).collect();
    for schema in [wide(1000), alternating] {
        let grammar = accept(&schema);
        let mut depth = vec![0usize; grammar.exprs().len()];
        for (i, expr) in grammar.exprs().iter().enumerate() {
            depth[i] = 1 + expr.operands().iter().map(|op| depth[op.index()]).max().unwrap_or(0);
        }
        assert!(depth.iter().all(|&depth| depth < 20), "{:?}", depth.iter().max());
    }
}

#[test]
fn a_chain_of_references_needs_no_stack() {
    let n = 50_000;
    let mut defs: serde_json::Map<_, _> =
        (0..n).map(|i| (format!("d{i}"), json!({"$ref": format!("#/$defs/d{}", i + 1)}))).collect();
    defs.insert(format!("d{n}"), json!({"type": "null"}));
    accept(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
}

#[test]
fn a_large_enum_is_linear() {
    let values: Vec<_> = (0..10_000).map(|i| format!("value {i}")).collect();
    let grammar = accept(&json!({"enum": values, "minLength": 1}));
    assert!(grammar.exprs().len() < 10_100);
}

#[test]
fn every_problem_is_named_up_to_twenty() {
    let properties: serde_json::Map<_, _> = (0..30)
        .map(|i| (format!("p{i}"), json!({"type": "string", "pattern": format!("(x){i}\\1")})))
        .collect();
    let error = refuse(&json!({"properties": properties}));
    assert_eq!((error.problems().len(), error.more()), (20, 10));
    assert_eq!(error.problems()[19].pointer, "/properties/p19/pattern");
    assert!(error.to_string().ends_with("… and 10 more"));
}

#[test]
fn nesting_is_limited() {
    let text = "{\"items\":".repeat(100_000);
    let error = grammar(&text, &Options::default()).expect_err("too deep");
    assert_eq!(error.problems()[0].reason, Reason::Limit, "{error}");

    let mut deep = json!({});
    for _ in 0..1000 {
        deep = json!({"anyOf": [deep]});
    }
    let error = refuse(&deep);
    assert_eq!(error.problems()[0].reason, Reason::Limit, "{error}");
    // serde_json drops a value by recursion; 1000 levels are safe.
}

#[test]
fn the_deepest_text_that_is_read_is_lowered() {
    let text = format!("{}{{\"type\": \"null\"}}{}", "{\"items\":".repeat(126), "}".repeat(126));
    let (grammar, _) = grammar(&text, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(Oracle::new(&grammar).accepts(b"[[[]]]"));
}

#[test]
fn limits_are_named() {
    let with = |change: &dyn Fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        Options::default().with_limits(limits)
    };
    let reason = |schema: Value, options: &Options| {
        let error = grammar(&schema.to_string(), options).expect_err("a limit is passed");
        (error.problems()[0].reason, error.problems()[0].message.clone())
    };
    let (kind, message) = reason(wide(10), &with(&|limits| limits.schema_bytes = 50));
    assert!(kind == Reason::Limit && message.contains("the limit is 50"), "{message}");
    let (kind, message) = reason(wide(10), &with(&|limits| limits.rules = 5));
    assert!(kind == Reason::Limit && message.contains("more than 5 rules"), "{message}");
    let (kind, message) = reason(json!({"enum": [1, 2, [3, 4]]}), &with(&|limits| limits.literals = 4));
    assert!(kind == Reason::Limit && message.contains("more than 4 values"), "{message}");
    let list = json!({"enum": [[1, 2, 3]], "items": {"type": "integer"}});
    let (kind, message) = reason(list, &with(&|limits| limits.checks = 2));
    assert!(kind == Reason::Limit && message.contains("more than 2 steps"), "{message}");
    let (kind, message) = reason(json!({"items": {"items": {}}}), &with(&|limits| limits.depth = 1));
    assert!(kind == Reason::Limit && message.contains("more than 1 levels"), "{message}");
}

#[test]
fn exponential_branches_stay_within_limits() {
    // Each definition is a choice of two references to the next: 2⁶⁰ ways, 60 rules.
    let mut defs = serde_json::Map::new();
    for i in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        defs.insert(format!("d{i}"), json!({"oneOf": [{"type": "array", "items": next}, {"type": "object", "additionalProperties": next}]}));
    }
    defs.insert("d60".to_owned(), json!({"type": "null"}));
    let grammar = accept(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
    assert!(grammar.rules().len() < 100);

    let mut defs = serde_json::Map::new();
    for i in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        defs.insert(format!("d{i}"), json!({"oneOf": [next, next]}));
    }
    defs.insert("d60".to_owned(), json!({"type": "null"}));
    let error = refuse(&json!({"const": null, "$ref": "#/$defs/d0", "$defs": defs}));
    assert_eq!(error.problems()[0].reason, Reason::Limit, "{error}");
}

#[test]
fn many_tagged_branches_are_told_apart() {
    let branches: Vec<_> = (0..200)
        .map(|i| json!({"type": "object", "properties": {"id": {"type": "string"}, "tag": {"const": format!("t{i}")}}, "required": ["id", "tag"]}))
        .collect();
    let grammar = accept(&json!({"oneOf": branches}));
    let oracle = Oracle::new(&grammar);
    assert!(oracle.accepts(br#"{"id": "x", "tag": "t150"}"#));
    assert!(!oracle.accepts(br#"{"id": "x", "tag": "t200"}"#));
}

/// Whether the texts are accepted under these options.
fn accepts(schema: &Value, options: &Options, texts: &[&str]) -> Vec<bool> {
    let (grammar, _) = grammar_of(schema, options).unwrap_or_else(|error| panic!("{error}"));
    let oracle = Oracle::new(&grammar);
    texts.iter().map(|text| oracle.accepts(text.as_bytes())).collect()
}

#[test]
fn styles_of_white_space() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "null"}}, "b": {}}, "additionalProperties": false});
    let texts = [
        r#"{"a":[null,null],"b":{}}"#,
        r#"{"a": [null, null], "b": {}}"#,
        "{\n  \"a\": [\n    null,\n    null\n  ],\n  \"b\": {}\n}",
        "{\n\t\"a\": [\n\t\tnull,\n\t\tnull\n\t],\n\t\"b\": {}\n}",
        "{\n  \"a\": [null, null], \"b\": {}}",
        "{\n  \"b\": {\n    \"x\": [\n      1\n    ]\n  }\n}",
    ];
    let with = |whitespace| Options::default().with_whitespace(whitespace);
    let check = |whitespace, expected: [bool; 6]| {
        assert_eq!(accepts(&schema, &with(whitespace), &texts), expected);
    };
    check(Whitespace::Compact, [true, false, false, false, false, false]);
    check(Whitespace::Spaced, [false, true, false, false, false, false]);
    check(Whitespace::Indent(2), [false, false, true, false, false, true]);
    check(Whitespace::Natural, [true, true, true, true, false, true]);
    check(Whitespace::Pattern(" ?".to_owned()), [true, true, false, false, false, false]);
    check(Whitespace::default(), [true; 6]);
    check(Whitespace::Tidy, [true; 6]);
    let untidy =
        ["{ \"b\" :\n\n1}", "{  \"b\": 1}", "{ \n\"b\": 1}", "{\"b\":\r1}", "{\"b\"\n:1}", "{\"b\":\n1}"];
    assert_eq!(accepts(&schema, &with(Whitespace::Tidy), &untidy), [false; 6]);
    assert_eq!(accepts(&schema, &with(Whitespace::default()), &untidy), [true; 6]);
    let error = grammar_of(&schema, &with(Whitespace::Pattern("(".to_owned()))).expect_err("no pattern");
    assert_eq!(error.problems()[0].reason, Reason::Malformed);
}

#[test]
fn keys_in_any_order() {
    let schema = json!({"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"], "additionalProperties": {"type": "null"}});
    let options = Options::default().with_key_order(KeyOrder::Any);
    let texts = [
        r#"{"b": 1}"#,
        r#"{"c": 1, "b": 1, "a": 1}"#,
        r#"{"x": null, "b": 1, "y": null, "a": 1}"#,
        r#"{"c": 1, "a": 1}"#,
        r#"{"b": 1, "b": 1}"#,
        r#"{"b": 1, "x": 1}"#,
    ];
    assert_eq!(accepts(&schema, &options, &texts), [true, true, true, false, false, false]);
    assert!(grammar_of(&wide(40), &options).is_ok(), "many keys are remembered");
    let mut bounded = wide(40);
    bounded["maxProperties"] = json!(20);
    assert!(grammar_of(&bounded, &options).is_ok(), "they are counted");
    let mut dependent = wide(40);
    let names: Vec<String> =
        dependent["properties"].as_object().expect("an object").keys().cloned().collect();
    let pairs = names.iter().zip(names.iter().skip(1)).map(|(a, b)| (a.clone(), json!([b])));
    dependent["dependentRequired"] = pairs.collect::<serde_json::Map<_, _>>().into();
    assert!(grammar_of(&dependent, &options).is_ok(), "which of them need others is remembered");
    dependent["maxProperties"] = json!(20);
    let error = grammar_of(&dependent, &options).expect_err("too many states");
    assert_eq!(error.problems()[0].reason, Reason::Unsupported, "{error}");
}

#[test]
fn strictness() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}});
    let strict = Options::default().with_strictness(Strictness::Strict);
    let texts = [r#"{"a": null, "b": null}"#, r#"{"a": null}"#, r#"{"a": null, "b": null, "c": 1}"#];
    assert_eq!(accepts(&schema, &strict, &texts), [true, false, false]);
    assert_eq!(accepts(&schema, &Options::default(), &texts), [true, true, true]);

    let schema = json!({"type": "string", "pattern": "(a|b)\\1"});
    let lenient = Options::default().with_strictness(Strictness::Lenient);
    let (_, report) = grammar_of(&schema, &lenient).unwrap_or_else(|error| panic!("{error}"));
    let unenforced: Vec<_> =
        report.entries().into_iter().filter(|entry| entry.coverage == Coverage::Unenforced).collect();
    assert_eq!(unenforced.len(), 1);
    assert_eq!(unenforced[0].pointer, "/pattern");
}

#[test]
fn formats_that_are_not_known_are_told_by_place() {
    let key = json!({"type": "string", "format": "e-mail"});
    let schema = json!({
        "type": "object",
        "properties": {
            "a": key,
            "b": {"$ref": "#/$defs/b"},
            "c": {"$ref": "#/$defs/b"},
            "format": {"type": "string", "format": "date", "title": "x"},
            "number": {"type": "integer", "format": "int32"},
        },
        "$defs": {"b": {"type": "string", "format": "colour"}},
        "required": ["a"], "additionalProperties": false,
    });
    let place = |schema: &Value, options: &Options, pointer: &str| {
        let (_, report) = grammar_of(schema, options).unwrap_or_else(|error| panic!("{error}"));
        let found = report.entries().into_iter().filter(|entry| entry.pointer == pointer);
        (found.map(|entry| entry.coverage.to_string()).collect::<Vec<_>>(), report.warnings())
    };
    let options = Options::default();
    let nothing = "constrains nothing, because there is no format of this name";
    let (coverage, warnings) = place(&schema, &options, "/properties/a/format");
    assert_eq!(coverage, [format!("note: {nothing}; did you mean email?")]);
    let told = [
        ("/properties/a/format", format!("{nothing}; did you mean email?")),
        ("/$defs/b/format", nothing.to_owned()),
        ("/properties/number/format", nothing.to_owned()),
    ];
    let told = told.map(|(pointer, message)| (pointer.to_owned(), message));
    let sorted = |mut warnings: Vec<(String, String)>| {
        warnings.sort();
        warnings
    };
    assert_eq!(sorted(warnings), sorted(told.to_vec()));
    assert_eq!(place(&schema, &options, "/properties/format/format").0, ["enforced"]);
    assert_eq!(accepts(&schema, &options, &[r#"{"a": "x"}"#, r#"{"a": 1}"#]), [true, false]);
    // Who wants annotations gets them, and no warnings.
    let annotations = Options::default().with_formats(Formats::Annotation);
    assert_eq!(place(&schema, &annotations, "/properties/a/format"), (vec!["annotation".into()], vec![]));
    // Beside the wrong type it is an error, as ever.
    assert!(refuse(&json!({"format": 3})).to_string().contains("/format"));
}

#[test]
fn other_documents_come_from_the_resolver() {
    let schema = json!({"$id": "https://example.com/root.json", "type": "array", "items": {"$ref": "parts.json#/$defs/n"}});
    let error = refuse(&schema);
    assert!(error.to_string().contains("is in another document"), "{error}");
    let resolver = Resolver::new(|address| match address {
        "https://example.com/parts.json" => Some(json!({"$defs": {"n": {"$ref": "numbers.json"}}})),
        "https://example.com/numbers.json" => Some(json!({"type": "integer"})),
        _ => None,
    });
    let options = Options::default().with_resolver(resolver);
    assert_eq!(accepts(&schema, &options, &["[1, 2]", r#"["a"]"#]), [true, false]);
}

#[test]
fn any_json_by_its_own_word() {
    let (grammar, _) = grammar("$$ANY$$", &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let oracle = Oracle::new(&grammar);
    assert!(oracle.accepts(b"[1, {\"a\": null}]") && !oracle.accepts(b"[1"));
}

#[test]
fn hostile_combinations_meet_a_limit() {
    // Every branch overlaps every other one in a different way.
    let branch = |i: usize| json!({"allOf": [{"properties": {format!("a{i}"): {"type": "integer"}}}, {"properties": {format!("b{i}"): {"type": "integer"}}}]});
    let schema = json!({"type": "object", "oneOf": (0..40).map(branch).collect::<Vec<_>>()});
    let broken = |from: usize| (from..40).map(|i| format!("\"a{i}\": null")).collect::<Vec<_>>().join(", ");
    let texts = [
        format!("{{{}}}", broken(1)),
        format!("{{{}}}", broken(2)),
        format!("{{{}}}", broken(0)),
        "{}".into(),
    ];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(accepts(&schema, &Options::default(), &texts), [true, false, false, false]);

    let branch = |i: usize| json!({"allOf": [{"patternProperties": {format!("^a{i}"): {"type": "integer"}}}, {"properties": {format!("b{i}"): {"type": "integer"}}}]});
    let schema = json!({"type": "object", "oneOf": (0..40).map(branch).collect::<Vec<_>>()});
    let error = refuse(&schema);
    assert_eq!(error.problems()[0].reason, Reason::Limit, "{error}");

    let mut deep = json!({"type": "null"});
    for _ in 0..60 {
        deep = json!({"anyOf": [deep, {"type": "string"}]});
    }
    accept(&deep);
    let error = refuse(&json!({"multipleOf": 999_983, "minimum": 1_000_000_000, "type": "number"}));
    assert_eq!(error.problems()[0].reason, Reason::Unsupported, "{error}");
}

#[test]
fn cases_do_not_nest_the_stack() {
    // Each definition leads to the next through a combination, not through a plain reference.
    let n = 3_000;
    let mut defs: serde_json::Map<_, _> = (0..n)
        .map(|i| {
            let next = json!({"minProperties": 1, "allOf": [{"$ref": format!("#/$defs/d{}", i + 1)}]});
            (format!("d{i}"), json!({"type": ["object", "null"], "properties": {"x": next}}))
        })
        .collect();
    defs.insert(format!("d{n}"), json!({"type": "null"}));
    accept(&json!({"$ref": "#/$defs/d0", "$defs": defs}));
}

/// Every object of the keys `a`, `b` and `c`, in this order or in the opposite one, with values out of a few.
fn small_objects(is_reversed: bool) -> Vec<String> {
    let values = ["", "1", "2", "\"x\"", "null"];
    let mut objects = Vec::new();
    for at in 0..values.len().pow(3) {
        let chosen = [at % 5, at / 5 % 5, at / 25];
        let members = ["a", "b", "c"].iter().zip(chosen).filter(|(_, value)| *value > 0);
        let mut members: Vec<String> =
            members.map(|(key, value)| format!("\"{key}\":{}", values[value])).collect();
        if is_reversed {
            members.reverse();
        }
        objects.push(format!("{{{}}}", members.join(",")));
    }
    objects
}

#[test]
fn choices_that_are_kept_mean_the_same_as_cases() {
    let a_is_1 = json!({"properties": {"a": {"const": 1}}, "required": ["a"]});
    let b_is_text = json!({"properties": {"b": {"type": "string"}}});
    let choices = [
        vec![
            json!({"if": a_is_1, "then": {"required": ["b"]}, "else": {"properties": {"c": {"type": "integer"}}}}),
            json!({"if": b_is_text, "then": {"required": ["c"]}}),
            json!({"anyOf": [{"required": ["a"]}, {"required": ["c"]}]}),
        ],
        vec![
            json!({"oneOf": [a_is_1, b_is_text]}),
            json!({"not": {"allOf": [{"required": ["a", "c"]}, {"properties": {"b": {"enum": [1, 2]}}}]}}),
            json!({"dependentSchemas": {"a": {"properties": {"c": false}}}}),
        ],
        vec![
            json!({"anyOf": [{"properties": {"a": {"const": 1}, "b": {"const": 1}}}, {"properties": {"b": {"const": 2}, "c": {"const": 2}}}]}),
            json!({"oneOf": [{"required": ["a", "b"]}, {"required": ["b", "c"]}, {"required": ["c"]}]}),
            json!({"if": {"required": ["c"]}, "then": {"not": {"required": ["a", "b"]}}, "else": {"required": ["b"]}}),
        ],
    ];
    let mut limits = Limits::default();
    limits.cases = 5;
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        let all = Options::default().with_whitespace(Whitespace::Compact).with_key_order(order);
        let few = all.clone().with_limits(limits.clone());
        let mut objects = small_objects(false);
        if order == KeyOrder::Any {
            objects.extend(small_objects(true));
        }
        for (at, choices) in choices.iter().enumerate() {
            for more in [
                json!({}),
                json!({"additionalProperties": false, "minProperties": 2}),
                json!({"maxProperties": 2}),
            ] {
                let mut schema = json!({
                    "type": "object",
                    "properties": {"a": {"type": ["integer", "null"]}, "b": {}, "c": {"enum": [1, 2, null]}},
                    "allOf": choices,
                });
                let keywords = schema.as_object_mut().expect("an object");
                keywords.extend(more.as_object().expect("an object").clone());
                let text = schema.to_string();
                let (all, _) = grammar(&text, &all).unwrap_or_else(|error| panic!("{error}"));
                let (kept, _) = grammar(&text, &few).unwrap_or_else(|error| panic!("{at}: {error}"));
                let (all, kept) = (Oracle::new(&all), Oracle::new(&kept));
                let right: Vec<bool> = objects.iter().map(|text| all.accepts(text.as_bytes())).collect();
                assert!(right.contains(&true) && right.contains(&false), "{schema}");
                for (object, right) in objects.iter().zip(right) {
                    assert_eq!(kept.accepts(object.as_bytes()), right, "{schema} {object}");
                }
            }
        }
    }
}

#[test]
fn conditions_about_different_keys_do_not_multiply() {
    let object = |count: usize| {
        let keys = (0..count).flat_map(|i| [format!("a{i}"), format!("b{i}")]);
        let properties: serde_json::Map<String, Value> =
            keys.map(|key| (key, json!({"type": "string"}))).collect();
        let condition = |i: usize| json!({"if": {"properties": {format!("a{i}"): {"const": "x"}}}, "then": {"required": [format!("b{i}")]}});
        json!({"type": "object", "properties": properties, "allOf": (0..count).map(condition).collect::<Vec<_>>()})
    };
    let rules = |count: usize| accept(&object(count)).rules().len();
    let (some, many) = (rules(20), rules(40));
    assert!(many <= 2 * some + 10, "{some} and {many} rules");
    let any_order = Options::default().with_key_order(KeyOrder::Any);
    let error = grammar(&object(20).to_string(), &any_order).expect_err("they are open all the time");
    assert!(error.to_string().starts_with("/properties: there are too many conditions on keys"), "{error}");
}
