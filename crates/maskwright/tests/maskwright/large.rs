//! Constraints that are large where they can be: thousands of keys, long chains of rules, many patterns, huge bounds. They are compiled
//! exactly, or refused by an error that names the limit, the place and a way out; and all of them end when they are told to.

use std::fmt::Write;
use std::sync::Arc;

use maskwright::{Compiler, Constraint, Limits, Options, Strategy, TokenId, Vocabulary, VocabularyBuilder};
use maskwright_automata::{CancelToken, looks, with_cancel};
use serde_json::{Map, Value, json};

/// Every byte, a few longer tokens, and an end.
fn vocabulary() -> Arc<Vocabulary> {
    let pieces = ["\":", "\",\"", ",\"", "{\"", "key_", "\"key_1", "ab", "aa", "bb", "xx", "00", "99\":1}"];
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

fn refusal(constraint: &Constraint, options: Options) -> String {
    match Compiler::with_options(vocabulary(), options).compile(constraint) {
        Ok(_) => panic!("this should be refused"),
        Err(error) => error.to_string(),
    }
}

/// Compares what is accepted byte by byte. The mask of every byte must allow it, and near both ends of the text the fast masks must be the plain ones.
fn check(constraint: &Constraint, right: &[&str], wrong: &[&str]) {
    let bound = Compiler::new(vocabulary()).compile(constraint).unwrap_or_else(|error| panic!("{error}"));
    for (texts, expected) in [(right, true), (wrong, false)] {
        for text in texts {
            let mut matcher = bound.matcher();
            let mut fits = true;
            for (at, byte) in text.bytes().enumerate() {
                let token = TokenId(u32::from(byte));
                let mask = matcher.mask().expect("a mask").clone();
                if at < 12 || at + 12 > text.len() {
                    let mut plain = matcher.clone();
                    plain.set_strategy(Strategy::Reference);
                    assert_eq!(&mask, plain.mask().expect("a mask"), "{text}: at {at}");
                }
                fits = matcher.accept(token).is_ok();
                assert_eq!(mask.contains(token), fits, "{text}: at {at}");
                if !fits {
                    break;
                }
            }
            assert_eq!(fits && matcher.is_accepting(), expected, "{text}");
        }
    }
}

fn schema(schema: &Value) -> Constraint {
    Constraint::json_schema(schema.to_string())
}

fn properties(count: usize) -> Map<String, Value> {
    (0..count).map(|number| (format!("key_{number}"), json!({"type": "integer"}))).collect()
}

#[test]
fn a_limit_is_told_with_its_pointer() {
    // A part that can never be finished is removed, and the places of the others stay.
    let endless = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]});
    let large = json!({"type": "string", "pattern": "^[a-z]{1,100000}[0-9]{1,100000}$"});
    let all = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}, "a": large}, "$defs": {"n": endless}});
    let error = refusal(&schema(&all), Options::default());
    assert!(error.starts_with("/properties/a: "), "{error}");
}

#[test]
fn thousands_of_properties() {
    let closed = json!({"type": "object", "properties": properties(10_000), "additionalProperties": false});
    check(
        &schema(&closed),
        &["{}", r#"{"key_0":1}"#, r#"{"key_1":1,"key_10":2,"key_4999":3,"key_9999":4}"#],
        &[
            r#"{"key_10000":1}"#,
            r#"{"key_":1}"#,
            r#"{"other":1}"#,
            r#"{"key_10":1,"key_9":1}"#,
            r#"{"key_5":"a"}"#,
        ],
    );
    let open = json!({"type": "object", "properties": properties(6000)});
    check(
        &schema(&open),
        &["{}", r#"{"key_17":1,"key_5999":2,"key_6000":"other"}"#, r#"{"other":null}"#],
        &[r#"{"key_17":"a"}"#, r#"{"other":1,"key_17":"a"}"#],
    );
}

#[test]
fn a_hundred_thousand_required_names() {
    let names: Vec<String> = (0..100_000).map(|number| format!("n{number}")).collect();
    let object = schema(&json!({"type": "object", "required": names}));
    check(&object, &[], &["{}", r#"{"n1":1}"#, r#"{"n0":1,"n2":1}"#, r#"{"n0":1,"n1":1,"n2":1}"#]);
    let closed = schema(&json!({"type": "object", "required": names, "additionalProperties": false}));
    let error = refusal(&closed, Options::default());
    assert!(error.contains("`n0` is required, but `additionalProperties` forbids it"), "{error}");
    let mut any_order = Options::default();
    any_order.json_schema.key_order = maskwright::json_schema::KeyOrder::Any;
    let error = refusal(&object, any_order);
    assert!(error.contains("more than 40000 keys cannot be remembered in any order"), "{error}");
    let inner = schema(
        &json!({"type": "object", "properties": {"in": {"type": "object", "required": names[..30_000]}}}),
    );
    let mut any_order = Options::default();
    any_order.json_schema.key_order = maskwright::json_schema::KeyOrder::Any;
    let error = refusal(&inner, any_order);
    assert!(error.starts_with("/properties/in: 30000 keys are required in any order, too many"), "{error}");
    let needed = schema(&json!({"type": "object", "dependentRequired": {"a": names}}));
    let error = refusal(&needed, Options::default());
    assert!(error.contains("5000 states") && error.contains("raise the limit `states`"), "{error}");
    // A few of them at their end.
    let names: Vec<String> = (0..70).map(|number| format!("n{number}")).collect();
    let members = |count: usize| (0..count).map(|number| format!("\"n{number}\":0")).collect::<Vec<_>>();
    let (all, most) = (format!("{{{}}}", members(70).join(",")), format!("{{{}}}", members(69).join(",")));
    check(&schema(&json!({"type": "object", "required": names})), &[&all], &[&most]);
    check(
        &schema(&json!({"type": "object", "dependentRequired": {"n0": names[1..]}})),
        &["{}", &all],
        &["{\"n0\":0}", &most],
    );
}

/// A grammar of `root ::= r0`, so many rules that are made by `rule`, and a last one.
fn chain(count: usize, last: &str, rule: impl Fn(usize, &str) -> String) -> String {
    let mut source = String::from("root ::= r0\n");
    for number in 0..count {
        let body = rule(number, &format!("r{}", number + 1));
        writeln!(source, "r{number} ::= {body}").expect("writing to a string");
    }
    source + &format!("r{count} ::= {last}\n")
}

#[test]
fn chains_of_rules() {
    const LONG: usize = 20_000;
    check(&Constraint::ebnf(chain(LONG, "\"x\"", |_, next| next.to_owned())), &["x"], &["", "y", "xx"]);
    let words = chain(LONG, "\"x\"", |number, next| format!("\"a{number}\" | {next}"));
    check(&Constraint::ebnf(words), &["a0", "a19999", "x"], &["a", "a20000", "xx"]);
    let pairs = chain(LONG, "\"x\"", |number, next| format!("\"a{number}\" {next} | {next}"));
    check(&Constraint::ebnf(pairs), &["x", "a0a1x", "a7a19999x"], &["a1a0x", "a7a7x", "a20000x", "a7"]);
    let right = chain(LONG, "\"y\"", |_, next| format!("\"x\" {next}"));
    check(&Constraint::ebnf(right), &[], &["", "y", "xxy"]);
    let left = chain(LONG, "\"y\"", |_, next| format!("{next} \"x\""));
    check(&Constraint::ebnf(left), &[], &["", "y", "yx", "x"]);
    let short = chain(20, "\"y\"", |_, next| format!("{next} \"x\""));
    check(&Constraint::ebnf(short), &[&format!("y{}", "x".repeat(20))], &[&format!("y{}", "x".repeat(19))]);
}

/// Every rule calls the next twice, and all may be empty: the ways to the first byte double with each rule.
#[test]
fn rules_with_many_ways_through_them() {
    let ways = |count: usize| Constraint::ebnf(chain(count, "\"a\"?", |_, next| format!("{next} {next}")));
    check(&ways(4), &["", "a", "aaa", &"a".repeat(16)], &["b", &"a".repeat(17)]);
    let bound = Compiler::new(vocabulary()).compile(&ways(64)).expect("it is small");
    let mut matcher = bound.matcher();
    match matcher.mask() {
        Ok(mask) => {
            assert!(mask.contains(TokenId(u32::from(b'a'))) && !mask.contains(TokenId(u32::from(b'b'))));
        }
        Err(error) => assert!(error.is_limit() && error.to_string().contains("mask_steps"), "{error}"),
    }
}

/// Hundreds of rules that a text may be in at the same time, some of them twice.
#[test]
fn crowds_of_threads() {
    let rules = |body: fn(usize) -> String| -> String {
        let names: Vec<String> = (0..200).map(|number| format!("r{number}")).collect();
        let bodies: Vec<String> = (0..200).map(|number| format!("r{number} ::= {}", body(number))).collect();
        format!("root ::= ({})*\n{}\n", names.join(" | "), bodies.join("\n"))
    };
    let words = Constraint::ebnf(rules(|number| format!("[a-c]+ \"{number};\"")));
    check(&words, &["", "a7;", "abc199;b0;"], &["a200;", "7;", "ab7"]);
    let same = Constraint::ebnf(rules(|number| format!("[ab]+ [a-c]{{0,{}}} \";\"", number % 7)));
    check(&same, &["a;", "abcccccc;b;"], &["c;", "abccccccc;", "a"]);
    let nested = Constraint::ebnf(rules(|number| format!("\"(\" [a-c]* root \")\" [{number}x]?")));
    check(&nested, &["(ab(c)x)", "()7"], &["(ab(c)", ")"]);
}

/// The same schema by many ways is said once.
#[test]
fn references_with_many_ways_through_them() {
    let twice = |keyword: &str, place: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", place + 1)});
        (format!("d{place}"), json!({keyword: [next, next]}))
    };
    for (keyword, right, wrong) in [("allOf", "7", "\"7\""), ("anyOf", "7", "\"7\"")] {
        let mut definitions: Map<String, Value> = (0..60).map(|place| twice(keyword, place)).collect();
        definitions.insert("d60".to_owned(), json!({"type": "integer", "minimum": 5}));
        let all = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        check(&schema(&all), &[right], &[wrong, "4", "null"]);
    }
}

#[test]
fn unanchored_patterns() {
    let patterned = |count: u8| {
        let patterns: Map<String, Value> = (0..count)
            .map(|number| (char::from(b'a' + number).to_string(), json!({"minimum": number})))
            .collect();
        schema(&json!({"type": "object", "patternProperties": patterns}))
    };
    // A key may match any of them, so that there are 2¹² kinds of keys.
    let error = refusal(&patterned(12), Options::default());
    assert!(error.starts_with("/patternProperties: "), "{error}");
    assert!(error.contains("use fewer patterns, or give each its own prefix"), "{error}");
    check(
        &patterned(5),
        &[r#"{"z":-1,"a":0,"ae":4,"cab":2}"#, r#"{"eee":"text"}"#],
        &[r#"{"a":-1}"#, r#"{"ae":3}"#, r#"{"zcz":1}"#],
    );
    // Those that say the same are one.
    let same: Map<String, Value> =
        (0..12).map(|number| (format!("w{number}x"), json!({"type": "integer"}))).collect();
    let same = json!({"type": "object", "properties": {"w1x": {"minimum": 3}}, "patternProperties": same});
    check(
        &schema(&same),
        &[r#"{"w1x":3,"aw11xw2x":2,"w12x":"b","w3":null}"#, r#"{"w1":"b"}"#],
        &[r#"{"w1x":2}"#, r#"{"w1x":"b"}"#, r#"{"a w11x w2x":"b"}"#, r#"{"w0x":null}"#],
    );
    // With prefixes of their own there are as many kinds as patterns, and one.
    let prefixes: Map<String, Value> =
        (0..300).map(|number| (format!("^p{number:03}_"), json!({"const": number}))).collect();
    check(
        &schema(&json!({"type": "object", "patternProperties": prefixes, "additionalProperties": false})),
        &["{}", r#"{"p000_a":0,"p299_":299}"#],
        &[r#"{"p000_a":1}"#, r#"{"p300_":0}"#, r#"{"x":0}"#],
    );
}

#[test]
fn look_aheads() {
    let all = |count: u8| {
        const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
        let looks: String =
            (0..count).flat_map(|n| ["(?=.*", &LETTERS[usize::from(n)..][..1], ")"]).collect();
        Constraint::regex(looks + ".*")
    };
    check(&all(10), &["abcdefghij", "jihgfedcbaj!"], &["", "abcdefghi", "abcdefghia"]);
    let error = refusal(&all(24), Options::default());
    assert!(error.contains("raise the limit `leaf_states`"), "{error}");
}

#[test]
fn huge_counts() {
    check(&Constraint::regex("a{0,1000000}b{0,1000000}"), &["", "aab", "b"], &["ba", "abc"]);
    check(&Constraint::regex("(a{0,1000000}b){0,1000000}"), &["", "b", "aabbab"], &["a", "ba", "c"]);
    check(&Constraint::regex("(a{0,1000000}){0,1000000}"), &["", "aaaa"], &["b", "aab"]);
    check(&Constraint::regex("[ab]{0,1000000}c|[bc]{0,1000000}a"), &["abc", "bca", "a", "c"], &["b", "ac!"]);
    let both = Constraint::regex("(?=a{0,1000000}b)[ab]{0,1000000}");
    let error = refusal(&both, Options::default());
    assert!(error.contains("raise the limit `leaf_states`"), "{error}");
    let both = schema(&json!({"properties": {"deep": {"type": "string", "allOf": [
        {"pattern": "^a{0,1000000}b*$"},
        {"pattern": "^[ab]{0,1000000}$"},
    ]}}}));
    let error = refusal(&both, Options::default());
    assert!(error.contains("/properties/deep"), "{error}");
    assert!(error.contains("raise the limit `leaf_states`"), "{error}");
}

#[test]
fn many_branches() {
    let words: Vec<Value> = (0..5000).map(|number| json!({"const": format!("w{number}")})).collect();
    check(&schema(&json!({"oneOf": words})), &["\"w0\"", "\"w4999\""], &["\"w5000\"", "\"w\""]);
    // Two of many branches share a value, which neither allows then.
    let mut shared = words;
    shared.push(json!({"enum": ["w17", "other"]}));
    check(&schema(&json!({"oneOf": shared})), &["\"w16\"", "\"other\""], &["\"w17\"", "\"w170000\""]);
    let objects = (0..100).map(|number| {
        json!({
            "type": "object",
            "properties": {format!("k{number}"): {"type": "integer"}, "x": {"type": "null"}},
            "required": [format!("k{number}")],
            "additionalProperties": false,
        })
    });
    let mut objects: Vec<Value> = objects.collect();
    let closed = schema(&json!({"oneOf": objects}));
    check(&closed, &[r#"{"k0":1}"#, r#"{"k99":1,"x":null}"#], &["{}", r#"{"k0":1,"k1":1}"#]);
    objects.push(json!({"type": "object", "properties": {"k7": {"const": 7}}, "required": ["k7"]}));
    let open = schema(&json!({"oneOf": objects}));
    check(
        &open,
        &[r#"{"k7":8}"#, r#"{"k7":7,"k8":1}"#, r#"{"k8":7}"#],
        &[r#"{"k7":7}"#, r#"{"k7":8,"k8":1}"#],
    );
    let numbers: Vec<u32> = (0..2000).map(|number| number * 3).collect();
    let not = schema(&json!({"type": "integer", "not": {"enum": numbers}}));
    check(&not, &["1", "2", "5998", "6000", "-3"], &["0", "3", "5997", "-0"]);
}

/// A schema with more parts than are asked about each name must say the same as one with a few.
#[test]
fn many_schemas_of_one_object() {
    let part = |number: usize| json!({"properties": {format!("k{number}"): {"maximum": number}}});
    let wide = |count: usize| {
        let mut parts: Vec<Value> = (0..count).map(part).collect();
        parts.push(json!({"patternProperties": {"3$": {"minimum": 2}}}));
        parts.push(json!({"properties": {"k1": {"minimum": 1}}, "required": ["k2"]}));
        schema(&json!({"type": "object", "allOf": parts}))
    };
    let right = [r#"{"k1":1,"k2":2,"k3":3}"#, r#"{"k2":-5,"k3":2,"z3":7}"#];
    let wrong = [r#"{"k1":0,"k2":1}"#, r#"{"k2":3}"#, r#"{"k2":2,"k3":1}"#, r#"{"k2":2,"z3":1}"#, "{}"];
    check(&wide(4), &right, &wrong);
    check(&wide(400), &right, &wrong);
}

#[test]
fn limits_are_named() {
    let with = |change: fn(&mut Limits)| {
        let mut options = Options::default();
        change(&mut options.limits);
        options
    };
    let nested = "root ::= a\na ::= ((\"x\"* \"y\")* \"z\")*";
    let recursive = "root ::= \"abc\" | a\na ::= \"x\" a \"y\" | \"z\"";
    let cases = [
        (Constraint::ebnf(nested), with(|limits| limits.exprs = 3), "exprs"),
        (Constraint::ebnf(nested), with(|limits| limits.depth = 2), "depth"),
        (Constraint::ebnf(recursive), with(|limits| limits.nodes = 4), "nodes"),
        (Constraint::regex("(?=a.*b)[ab]*"), with(|limits| limits.leaf_states = 2), "leaf_states"),
        (Constraint::regex("(?=a.*b)[ab]*"), with(|limits| limits.leaf_steps = 2), "leaf_steps"),
        (Constraint::regex("(?=a.*b)[ab]*"), with(|limits| limits.table_bytes = 2), "table_bytes"),
        // The nodes of one literal are counted while it is built.
        (Constraint::choice(["x".repeat(5_000)]), with(|limits| limits.nodes = 2_000), "nodes"),
    ];
    for (constraint, options, name) in cases {
        let error = refusal(&constraint, options);
        assert!(error.contains(&format!("raise the limit `{name}`")), "{constraint:?}: {error}");
        assert!(name == "exprs" || error.starts_with("rule `"), "{constraint:?}: {error}");
    }
    let items = json!({"type": "string", "pattern": "^(ab|cd)*$", "not": {"pattern": "^ab"}});
    let nested = json!({"type": "array", "items": items});
    let error = refusal(&schema(&nested), with(|limits| limits.leaf_states = 2));
    assert!(error.starts_with("/items: ") && error.contains("raise the limit `leaf_states`"), "{error}");
    // Each table is small, and all of them together are not.
    let patterned = |number: usize| {
        (format!("k{number}"), json!({"type": "string", "pattern": format!("^a{{{number}}}b*$")}))
    };
    let many: Map<String, Value> = (1..60).map(patterned).collect();
    let error = refusal(&schema(&json!({"properties": many})), with(|limits| limits.table_bytes = 50_000));
    assert!(error.starts_with("/properties/k") && error.contains("raise the limit `table_bytes`"), "{error}");
    let mut short = Options::default();
    short.regex.source_bytes = 10;
    let error =
        maskwright::Compiler::with_options(vocabulary(), short).compile(&Constraint::regex("a".repeat(11)));
    let error = format!("{:?}", error.expect_err("it is too long"));
    assert!(error.contains("11 bytes") && error.contains("raise the limit `source_bytes`"), "{error}");
}

/// Reading long lists and chains looks at the cancel token for every one of their members.
#[test]
fn everything_looks_often() {
    let looks = |constraint: &Constraint| {
        let before = looks();
        Compiler::new(vocabulary()).grammar(constraint).unwrap_or_else(|error| panic!("{error}"));
        looks().wrapping_sub(before)
    };
    let references = |count: usize| {
        let mut definitions: Map<String, Value> = (0..count)
            .map(|place| (format!("d{place}"), json!({"$ref": format!("#/$defs/d{}", place + 1)})))
            .collect();
        definitions.insert(format!("d{count}"), json!({"type": "integer"}));
        schema(&json!({"$ref": "#/$defs/d0", "$defs": definitions}))
    };
    let object = |count: usize| schema(&json!({"type": "object", "properties": properties(count)}));
    for constraint in [references, object] {
        let (some, more) = (looks(&constraint(500)), looks(&constraint(1000)));
        assert!(more >= some + 500, "{some}, {more}");
    }
}

/// With a token that was cancelled beforehand, every reader of every notation ends with an error, however small a part of the work is left.
#[test]
fn everything_stops() {
    let words: Vec<String> = (0..500).map(|number| format!("word{number}")).collect();
    let rules = chain(500, "\"x\"", |number, next| format!("\"a{number}\" | {next}"));
    let lark = rules.replace("::=", ":").replace("root", "start");
    let tags: Vec<Value> = words
        .iter()
        .map(|word| json!({"type": "tag", "begin": format!("<{word}>"), "content": {"type": "any_text"}, "end": "<"}))
        .collect();
    let constraints = [
        Constraint::regex(words.join("|")),
        Constraint::choice(words.clone()),
        Constraint::ebnf(rules.clone()),
        Constraint::gbnf(rules),
        Constraint::lark(lark),
        schema(&json!({"type": "object", "properties": properties(500)})),
        schema(&json!({"enum": words})),
        schema(&json!({"anyOf": words.iter().map(|word| json!({"pattern": word})).collect::<Vec<_>>()})),
        Constraint::structural_tag(
            json!({"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<"], "tags": tags}})
                .to_string(),
        ),
    ];
    let compiler = Compiler::new(vocabulary());
    for constraint in constraints {
        let stop = CancelToken::new();
        stop.cancel();
        let result = with_cancel(&stop, || compiler.compile(&constraint));
        let error = result.expect_err(&format!("{:?} goes on", constraint.kind())).to_string();
        assert!(error.contains("was cancelled"), "{:?}: {error}", constraint.kind());
        compiler.compile(&constraint).unwrap_or_else(|error| panic!("{:?}: {error}", constraint.kind()));
    }
}

/// Many `contains` that are cheap each make no states for combinations that no item has.
#[test]
fn contains_beside_contains() {
    let all = |count: i32, one: &dyn Fn(i32) -> Value| {
        let all: Vec<Value> = (1..=count).map(|number| json!({"contains": one(number)})).collect();
        schema(&json!({"type": "array", "allOf": all}))
    };
    let list = |numbers: core::ops::RangeInclusive<i32>| {
        format!("[{}]", numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(","))
    };
    check(&all(40, &|least| json!({"minimum": least})), &["[40]", "[1,41]", "[{}]"], &["[]", &list(1..=39)]);
    check(&all(12, &|only| json!({"const": only})), &[&list(1..=12)], &[&list(1..=11), &list(2..=20)]);
    let errors = [
        (
            all(9, &|number| json!({"pattern": format!("x{number}")})),
            "/allOf/0/contains: the `contains` of one array part its items into more than 256 kinds",
        ),
        (
            all(12, &|number| json!({"required": [format!("k{number}")]})),
            "/allOf/0: the conditions on the items split one item into more than 1024 ways",
        ),
        (
            all(30, &|only| json!({"const": only})),
            "/allOf/0/contains: counting the items takes more than 20000 states",
        ),
        (
            all(70, &|least| json!({"minimum": least})),
            "/allOf/0/contains: counting the items takes more than 20000 states",
        ),
    ];
    for (constraint, expected) in errors {
        let error = refusal(&constraint, Options::default());
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Items that are parted by all `contains`, against counting.
#[test]
fn kinds_of_items_are_counted() {
    type Test = fn(i64) -> bool;
    let one = |keywords: Value| keywords.as_object().cloned().unwrap_or_default();
    let contains: [(Value, usize, Option<usize>, Test); 5] = [
        (json!({"minimum": 4}), 1, None, |number| number >= 4),
        (json!({"maximum": 6}), 2, None, |number| number <= 6),
        (json!({"multipleOf": 3}), 1, None, |number| number % 3 == 0),
        (json!({"enum": [1, 2, 8]}), 1, None, |number| [1, 2, 8].contains(&number)),
        (json!({"multipleOf": 4}), 0, Some(1), |number| number % 4 == 0),
    ];
    let all: Vec<Value> = contains
        .iter()
        .map(|(schema, min, max, _)| {
            let mut keywords = one(json!({"contains": schema, "minContains": min}));
            keywords.extend(max.map(|max| ("maxContains".to_owned(), json!(max))));
            Value::Object(keywords)
        })
        .collect();
    let constraint =
        schema(&json!({"type": "array", "items": {"type": "integer"}, "maxItems": 5, "allOf": all}));
    let bound = Compiler::new(vocabulary()).compile(&constraint).unwrap_or_else(|error| panic!("{error}"));
    let mut random = 12_345u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut valid = 0;
    for _ in 0..3_000 {
        let numbers: Vec<i64> = (0..next(7)).map(|_| next(10).cast_signed()).collect();
        let expected = numbers.len() <= 5
            && contains.iter().all(|(_, min, max, test)| {
                let count = numbers.iter().filter(|number| test(**number)).count();
                count >= *min && max.is_none_or(|max| count <= max)
            });
        let text = json!(numbers).to_string();
        let mut matcher = bound.matcher();
        let accepted = matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting();
        assert_eq!(accepted, expected, "{text}");
        valid += usize::from(expected);
    }
    assert!(valid > 300, "{valid}");
}
