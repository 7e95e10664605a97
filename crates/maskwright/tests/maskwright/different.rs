//! Values that must differ: the items under `uniqueItems`, and the keys of every object.

use std::sync::Arc;

use maskwright::json_schema::{self, KeyOrder};
use maskwright::{
    Compiler, Constraint, MatchError, Options, Strategy, TokenId, Vocabulary, VocabularyBuilder,
};

/// Every byte, and a few tokens that write more than one value.
fn vocabulary() -> Arc<Vocabulary> {
    let pieces = ["\"\",\"\"", "\",\"", "\":", "\":1}", "1,1", "null,null", "[],[]", "\"a\"", "\\u0061\""];
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let tokens: Vec<Vec<u8>> = bytes.chain(pieces.iter().map(|piece| piece.as_bytes().to_vec())).collect();
    let mut builder = VocabularyBuilder::new();
    for (id, token) in (0..).zip(&tokens) {
        builder.token(TokenId(id), token).expect("ids are distinct");
    }
    let end = TokenId(tokens.len() as u32);
    builder.special(end, "<end>").expect("the id is free").eos(end);
    Arc::new(builder.finish().expect("there are tokens"))
}

/// Whether a text is accepted, byte by byte. At each step the mask must say the same as accepting does.
fn accepts(schema: &str, order: KeyOrder, text: &str) -> bool {
    let options =
        Options { json_schema: json_schema::Options::default().with_key_order(order), ..Options::default() };
    let compiler = Compiler::with_options(vocabulary(), options);
    let bound = compiler
        .compile(&Constraint::json_schema(schema))
        .unwrap_or_else(|error| panic!("{schema}: {error}"));
    let mut matcher = bound.matcher();
    let size = bound.vocabulary().size();
    for byte in text.bytes() {
        let mask = matcher.mask().expect("a mask").clone();
        for token in (0..size as u32 - 1).map(TokenId) {
            assert_eq!(matcher.allows(token), Ok(mask.contains(token)), "{schema}: {text}: {token:?}");
        }
        let allowed = mask.contains(TokenId(u32::from(byte)));
        match matcher.accept(TokenId(u32::from(byte))) {
            Ok(()) if allowed => {}
            Ok(()) | Err(MatchError::NotAllowed { .. }) => return false,
            Err(error) => panic!("{schema}: {text}: {error}"),
        }
    }
    matcher.is_accepting()
}

fn check(schema: &str, order: KeyOrder, right: &[&str], wrong: &[&str]) {
    for (texts, expected) in [(right, true), (wrong, false)] {
        for text in texts {
            assert_eq!(accepts(schema, order, text), expected, "{schema}: {text}");
        }
    }
}

#[test]
fn unique_items() {
    let order = KeyOrder::Schema;
    check(
        r#"{"type": "array", "uniqueItems": true}"#,
        order,
        &[
            r#"[1, "1", true, "true", null, [], {}, [1], {"a": 1}, {"a": 2}, "a", "b", 10, 1.5]"#,
            r#"["a", ["a"], [["a"]]]"#,
            r#"[{"a": 1, "b": 2}, {"a": 2, "b": 1}]"#,
        ],
        &[
            "[1, 1]",
            "[1, 1.0]",
            "[10, 1e1]",
            "[0, -0]",
            r#"["a", "b", "a"]"#,
            r#"["a", "\u0061"]"#,
            "[null, null]",
            "[[1], [1]]",
            "[[1, 2], [3], [ 1,2 ]]",
            r#"[{"a": 1, "b": 2}, {"b": 2, "a": 1}]"#,
            r#"[[{"x": []}], 1, [{"x": [ ]}]]"#,
        ],
    );
    check(
        r#"{"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 15}, "uniqueItems": true, "minItems": 2}"#,
        order,
        &["[1, 15]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"],
        &["[1]", "[1, 1]", "[15, 15]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1]"],
    );
    check(
        r#"{"type": "array", "contains": {"type": "string"}, "uniqueItems": true}"#,
        order,
        &[r#"[1, "a", 2]"#],
        &["[1, 2]", r#"["a", "a"]"#, r#"[1, 1, "a"]"#],
    );
    check(
        r#"{"anyOf": [{"type": "array", "items": {"type": "string"}, "uniqueItems": true}, {"type": "array", "maxItems": 2}]}"#,
        order,
        &[r#"["a", "a"]"#, r#"["a", "b", "c"]"#, "[1, 1]"],
        &[r#"["a", "b", "a"]"#, r#"["a", "a", "b"]"#],
    );
}

#[test]
fn keys_are_not_repeated() {
    check(
        r#"{"type": "object", "properties": {"a": {"type": "integer"}}}"#,
        KeyOrder::Schema,
        &[r#"{"a": 1, "b": 1, "c": {"b": 1, "c": 2}}"#, r#"{"b": [{"b": 1}, {"b": 1}]}"#],
        &[
            r#"{"b": 1, "b": 1}"#,
            r#"{"b": 1, "c": 1, "\u0062": 1}"#,
            r#"{"a": 1, "a": 1}"#,
            r#"{"b": {"x": 1, "x": 1}}"#,
            r#"{"b": {"x": 1}, "b": 1}"#,
        ],
    );
    check("{}", KeyOrder::Schema, &[r#"{"a": {"a": [{"a": 1}]}}"#], &[r#"[{"a": 1, "a": 2}]"#]);
    check(
        r#"{"type": "object", "patternProperties": {"^[ab]$": {"type": "null"}}, "additionalProperties": false, "minProperties": 2}"#,
        KeyOrder::Schema,
        &[r#"{"a": null, "b": null}"#, r#"{"b": null, "a": null}"#],
        &[r#"{"a": null}"#, r#"{"a": null, "a": null}"#],
    );
}

/// Keys that the schema does not name one by one, but of which there are only a few: a count must not wait for more.
#[test]
fn few_keys_are_counted() {
    let schema = r#"{"type": "object", "patternProperties": {"^[a-e]$": {"type": "null"}}, "additionalProperties": false,
        "required": ["d"], "dependencies": {"a": {"not": {"required": ["b"]}}}, "minProperties": 4}"#;
    check(
        schema,
        KeyOrder::Any,
        &[
            r#"{"a": null, "d": null, "c": null, "e": null}"#,
            r#"{"e": null, "d": null, "c": null, "b": null}"#,
        ],
        &[r#"{"d": null, "c": null, "e": null}"#, r#"{"d": null, "a": null, "b": null"#],
    );
    let least = r#"{"type": "object", "propertyNames": {"enum": ["x", "y"]}, "minProperties": 3}"#;
    let error = Compiler::new(vocabulary()).compile(&Constraint::json_schema(least)).expect_err("no value");
    assert!(error.to_string().contains("minProperties"), "{error}");
}

#[test]
fn any_order() {
    let names: Vec<String> = (0..20).map(|i| format!("key{i}")).collect();
    let properties: Vec<String> =
        names.iter().map(|name| format!(r#""{name}": {{"type": "integer"}}"#)).collect();
    let properties = properties.join(", ");
    let open =
        format!(r#"{{"type": "object", "properties": {{{properties}}}, "required": ["key3", "key11"]}}"#);
    let closed = format!("{}, \"additionalProperties\": false}}", open.strip_suffix('}').unwrap_or(&open));
    for (schema, others) in [(&open, true), (&closed, false)] {
        check(
            schema,
            KeyOrder::Any,
            &[r#"{"key11": 1, "key3": 2}"#, r#"{"key7": 0, "key3": 1, "key19": 2, "key1": 3, "key11": 4}"#],
            &[
                r#"{"key3": 1}"#,
                r#"{"key11": 1, "key3": 2, "key11": 1}"#,
                r#"{"key11": "x", "key3": 2}"#,
                "{}",
            ],
        );
        let other = r#"{"x": "y", "key11": 1, "key3": 2, "z": null}"#;
        assert_eq!(accepts(schema, KeyOrder::Any, other), others);
        assert!(!accepts(schema, KeyOrder::Any, r#"{"x": "y", "key11": 1, "key3": 2, "x": null}"#));
    }
}

/// Wide objects whose keys depend on one another, or are counted.
/// Which keys need which others is remembered, so nothing multiplies: fifteen pairs that are far from one another, and twenty keys in a chain.
#[test]
fn keys_need_others() {
    let names = |of: char| (0..15).map(|at| format!(r#""{of}{at}": {{}}"#)).collect::<Vec<_>>().join(", ");
    let pairs = (0..15).map(|at| format!(r#""a{at}": ["b{at}"]"#)).collect::<Vec<_>>().join(", ");
    let far = |properties: String, more: &str| {
        format!(
            r#"{{"type": "object", "properties": {{{properties}}}, "dependentRequired": {{{pairs}}}{more}}}"#
        )
    };
    let (a, b) = (names('a'), names('b'));
    check(
        &far(format!("{a}, {b}"), ""),
        KeyOrder::Schema,
        &["{}", r#"{"a0": 1, "a3": 1, "b0": 1, "b3": 1}"#, r#"{"b5": 1}"#, r#"{"a14": 1, "b14": 1, "c": 1}"#],
        &[
            r#"{"a0": 1, "a3": 1, "b0": 1}"#,
            r#"{"a14": 1}"#,
            r#"{"a14": 1, "c": 1}"#,
            r#"{"b0": 1, "a0": 1}"#,
            r#"{"a3": 1, "b4": 1, "b3": 1}"#,
        ],
    );
    check(
        &far(format!("{b}, {a}"), r#", "additionalProperties": false"#),
        KeyOrder::Schema,
        &["{}", r#"{"b0": 1, "b3": 1, "a0": 1, "a3": 1}"#, r#"{"b5": 1}"#],
        &[r#"{"b0": 1, "a3": 1}"#, r#"{"a14": 1}"#, r#"{"b0": 1, "a0": 1, "a1": 1}"#],
    );
    check(
        &far(format!("{a}, {b}"), ""),
        KeyOrder::Any,
        &["{}", r#"{"b3": 1, "a0": 1, "a3": 1, "b0": 1}"#, r#"{"b14": 1, "c": 1, "a14": 1}"#],
        &[r#"{"a0": 1, "a3": 1, "b0": 1}"#, r#"{"a14": 1}"#, r#"{"a14": 1, "c": 1}"#],
    );
    let keys = (0..20).map(|at| format!(r#""k{at}": {{}}"#)).collect::<Vec<_>>().join(", ");
    let chain = (0..19).map(|at| format!(r#""k{at}": ["k{}"]"#, at + 1)).collect::<Vec<_>>().join(", ");
    check(
        &format!(r#"{{"type": "object", "properties": {{{keys}}}, "dependentRequired": {{{chain}}}}}"#),
        KeyOrder::Any,
        &["{}", r#"{"k19": 1, "k18": 1}"#, r#"{"k17": 1, "k19": 1, "k18": 1}"#],
        &[r#"{"k18": 1}"#, r#"{"k17": 1, "k19": 1}"#],
    );
}

#[test]
fn any_order_with_conditions() {
    let properties: Vec<String> = (0..12).map(|i| format!(r#""k{i}": {{"type": "integer"}}"#)).collect();
    let properties = properties.join(", ");
    let schema = |more: &str| {
        format!(
            r#"{{"type": "object", "properties": {{{properties}}}, "additionalProperties": false, {more}}}"#
        )
    };
    let order = KeyOrder::Any;
    check(
        &schema(r#""dependentRequired": {"k3": ["k1"]}, "required": ["k0"]"#),
        order,
        &[r#"{"k3": 1, "k0": 1, "k1": 1}"#, r#"{"k1": 1, "k0": 1}"#, r#"{"k11": 1, "k5": 1, "k0": 1}"#],
        &[r#"{"k3": 1, "k0": 1}"#, r#"{"k3": 1, "k1": 1}"#, r#"{"k5": 1, "k0": 1, "k5": 1}"#],
    );
    check(
        &schema(r#""maxProperties": 3, "minProperties": 2, "required": ["k7", "k8"]"#),
        order,
        &[r#"{"k8": 1, "k7": 1}"#, r#"{"k8": 1, "k2": 1, "k7": 1}"#],
        &[r#"{"k8": 1, "k2": 1, "k3": 1"#, r#"{"k8": 1, "k2": 1, "k7": 1, "k3": 1}"#, r#"{"k2": 1, "k3": 1"#],
    );
    check(
        &schema(r#""anyOf": [{"required": ["k1"]}, {"required": ["k2", "k3"]}]"#),
        order,
        &[r#"{"k5": 0, "k1": 1}"#, r#"{"k3": 1, "k5": 1, "k2": 1}"#, r#"{"k3": 1, "k1": 1}"#],
        &[r#"{"k3": 1}"#, r#"{"k5": 1}"#, r#"{"k1": 1, "k1": 1}"#],
    );
    check(
        &schema(r#""not": {"required": ["k1", "k2"]}, "minProperties": 1"#),
        order,
        &[r#"{"k1": 1, "k9": 1}"#, r#"{"k9": 1, "k2": 1}"#, r#"{"k9": 1}"#],
        &[r#"{"k1": 1, "k9": 1, "k2": 1}"#, "{}", r#"{"k9": 1, "k9": 1}"#],
    );
    check(
        &schema(r#""not": {"properties": {"k1": {"maximum": 5}}, "required": ["k2"]}"#),
        order,
        &[r#"{"k1": 6, "k2": 1}"#, r#"{"k2": 1, "k5": 1, "k1": 6}"#, r#"{"k1": 1}"#, "{}"],
        &[r#"{"k1": 5, "k2": 1}"#, r#"{"k2": 1}"#, r#"{"k2": 1, "k1": 4}"#],
    );
}

#[test]
fn any_order_of_overlapping_branches() {
    let object = |name: String| {
        format!(r#"{{"properties": {{"{name}": {{"type": "string"}}}}, "required": ["{name}"]}}"#)
    };
    let branches: Vec<String> = (0..20).map(|i| object(format!("p{i}"))).collect();
    let open = format!(r#"{{"type": "object", "oneOf": [{}]}}"#, branches.join(", "));
    let right = [r#"{"p2": 1, "z": 2, "p1": ""}"#, r#"{"p19": "a"}"#, r#"{"z": 1, "p0": ""}"#];
    let wrong = ["{}", r#"{"p2": "", "p1": ""}"#, r#"{"p1": 1}"#, r#"{"z": 1}"#];
    check(&open, KeyOrder::Any, &right, &wrong);

    // The last branch has no tag, so all others must be broken: by the tag, or by a key that is missing.
    let tagged = |i: usize| {
        format!(
            r#"{{"properties": {{"t": {{"enum": ["v{i}"]}}, "a{i}": {{"type": "string"}}}}, "required": ["t", "a{i}", "b{i}"]}}"#
        )
    };
    let mut branches: Vec<String> = (0..8).map(tagged).collect();
    branches.push(r#"{"required": ["t", "m", "n"]}"#.to_owned());
    let schema = format!(r#"{{"type": "object", "oneOf": [{}]}}"#, branches.join(", "));
    let right = [
        r#"{"n": 1, "m": 2, "t": "other"}"#,
        r#"{"b0": 1, "t": "v0", "a0": ""}"#,
        r#"{"m": 1, "t": "v0", "n": 2, "a0": ""}"#,
        r#"{"n": 1, "b2": 1, "t": "v1", "m": 1, "a2": ""}"#,
        r#"{"n": 1, "b1": 1, "t": "v1", "m": 1, "a1": 3}"#,
    ];
    let wrong = [
        r#"{"b0": 1, "t": "v0", "a0": "", "n": 1, "m": 2}"#,
        r#"{"n": 1, "b1": 1, "a1": "", "m": 1, "t": "v1"}"#,
        r#"{"t": "v0", "a0": ""}"#,
        r#"{"m": 1, "n": 1}"#,
    ];
    check(&schema, KeyOrder::Any, &right, &wrong);
}

#[test]
fn no_comma_without_a_new_key() {
    let schema = r#"{"type": "object", "patternProperties": {"^e$": {}}, "properties": {"d": {}}, "additionalProperties": false}"#;
    for value in ["1", "\"x\"", "[]", "[1]", "{}", "true", "{\"a\": [1]}"] {
        let text = format!("{{\"d\": 1, \"e\": {value}");
        check(
            schema,
            KeyOrder::Schema,
            &[&format!("{text}}}")],
            &[&format!("{text},"), &format!("{text} ,")],
        );
        assert!(!reaches(schema, &format!("{text},")), "{text},");
        assert!(!reaches(schema, &format!("{text} ,")), "{text} ,");
    }
}

/// Whether every byte of a text is in the mask before it.
fn reaches(schema: &str, text: &str) -> bool {
    let bound = Compiler::new(vocabulary()).compile(&Constraint::json_schema(schema)).expect("it compiles");
    let mut matcher = bound.matcher();
    text.bytes().all(|byte| {
        let token = TokenId(u32::from(byte));
        matcher.mask().expect("a mask").contains(token) && matcher.accept(token).is_ok()
    })
}

/// With hundreds of values, tokens are asked which values they end: the masks are those of trying every token.
#[test]
fn many_values() {
    let pieces = [
        "\",\"",
        "\"]",
        "ab\"",
        "b\",",
        "b\\u0061\"",
        "\\u0061",
        "12",
        "3,",
        "0,",
        ",0",
        " 0",
        "-0",
        ",-0",
        "0",
        "10,0",
        "7,\"",
        "\"a\",\"b\"",
        "1]",
        "99",
        "0]",
        "aa",
    ];
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let tokens: Vec<Vec<u8>> = bytes.chain(pieces.iter().map(|piece| piece.as_bytes().to_vec())).collect();
    let mut builder = VocabularyBuilder::new();
    for (id, token) in (0..).zip(&tokens) {
        // Some pieces are bytes already.
        let _ = builder.token(TokenId(id), token);
    }
    let compiler = Compiler::new(Arc::new(builder.finish().expect("there are tokens")));
    let strings = (0..600).map(|i| {
        let letters = ["a", "b", "ab", "\\u0061", "\\\"", "é"];
        format!("\"{}{}\"", letters[i % 6].repeat(i / 36), letters[i / 6 % 6])
    });
    let integers = (0..400).map(|i: i64| (if i % 3 == 0 { -i } else { i * 7 }).to_string());
    let cases = [
        (
            r#"{"type": "string"}"#,
            strings.clone().collect::<Vec<_>>(),
            &["\"", "\"a", "\"aab", "\"\\", "\"é", "\"\\u00"][..],
        ),
        (r#"{"type": "integer"}"#, integers.clone().collect(), &["", "-", "1", "12", "-3", " ", "9"][..]),
        (
            r#"{"type": ["integer", "string"]}"#,
            strings.chain(integers).collect(),
            &["", "\"a", "-", "1", "\"ab"][..],
        ),
    ];
    for (items, values, ends) in cases {
        for with_zero in [false, true] {
            let schema = format!(r#"{{"type": "array", "items": {items}, "uniqueItems": true}}"#);
            let bound = compiler.compile(&Constraint::json_schema(&schema)).expect("a schema");
            let mut matcher = bound.matcher();
            matcher.accept_bytes(b"[").expect("an array");
            let mut count = 0;
            for value in &values {
                if value == "0" && !with_zero {
                    continue;
                }
                // Some are the same, and are refused.
                if matcher.accept_bytes(format!("{value},").as_bytes()).is_ok() {
                    count += 1;
                }
            }
            assert!(count > 256, "{schema}: {count} values");
            for end in ends {
                let mut fast = matcher.fork();
                fast.accept_bytes(end.as_bytes()).expect("it may come");
                let mut plain = fast.fork();
                plain.set_strategy(Strategy::Reference);
                let (fast, plain) = (fast.mask().expect("a mask"), plain.mask().expect("a mask"));
                let differ = |token: &TokenId| fast.contains(*token) != plain.contains(*token);
                let wrong: Vec<_> =
                    (0..bound.vocabulary().size() as u32).map(TokenId).filter(differ).collect();
                let spell = |token: &TokenId| {
                    String::from_utf8_lossy(bound.vocabulary().spelling(*token)).into_owned()
                };
                let wrong: Vec<_> = wrong.iter().map(|t| (spell(t), fast.contains(*t))).collect();
                assert!(wrong.is_empty(), "{schema}, after {end:?}, with zero: {with_zero}: {wrong:?}");
            }
        }
    }
}
