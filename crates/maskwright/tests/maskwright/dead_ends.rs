//! No dead end where values must differ: whatever a mask allows leads on to a complete text.

use std::sync::Arc;

use maskwright::json_schema::{self, KeyOrder, Whitespace};
use maskwright::{
    Budget, CompiledConstraint, Compiler, Constraint, Error, MatchError, Options, Strategy, TokenId,
    Vocabulary, VocabularyBuilder,
};

/// Every byte, and tokens that write parts of words, several values, or the end of one and the beginning of the next.
pub(super) fn vocabulary() -> Arc<Vocabulary> {
    vocabulary_with(&[
        "\",\"", "\":", "\": ", ", \"", "1,1", "[],[]", "\"a\"", "a\",\"a", "tem", "temp", "mon", "w", "we",
        "0,", "2024", "-01", "{\"", "\"}", "\"}]", "},{", "\":1,\"", "null,", "1]", "aa", "bbb", "\\u00",
        "zz", ",-", "0,-", "[[],", "[{},", "[1,", "[\"\",", "\":1}", "],\"d", "c\":[",
    ])
}

/// Every byte, and these tokens.
fn vocabulary_with(pieces: &[&str]) -> Arc<Vocabulary> {
    let bytes = (0..=255u8).map(|byte| vec![byte]);
    let tokens: Vec<Vec<u8>> = bytes.chain(pieces.iter().map(|piece| piece.as_bytes().to_vec())).collect();
    let mut builder = VocabularyBuilder::new();
    let mut known = Vec::new();
    for token in tokens {
        if !known.contains(&token) {
            builder.token(TokenId(known.len() as u32), &token).expect("ids are distinct");
            known.push(token);
        }
    }
    let end = TokenId(known.len() as u32);
    builder.special(end, "<end>").expect("the id is free").eos(end);
    Arc::new(builder.finish().expect("there are tokens"))
}

pub(super) fn compiler(order: KeyOrder) -> Compiler {
    with_options(json_schema::Options::default().with_key_order(order))
}

pub(super) fn with_options(json_schema: json_schema::Options) -> Compiler {
    Compiler::with_options(vocabulary(), Options { json_schema, ..Options::default() })
}

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Walks at random. Every step must leave something to write, or be an end.
/// Returns how many walks came to an end.
fn walk(schema: &str, order: KeyOrder, walks: u64, longest: usize) -> u32 {
    let compiler = compiler(order);
    let bound = compiler
        .compile(&Constraint::json_schema(schema))
        .unwrap_or_else(|error| panic!("{schema}: {error}"));
    let vocabulary = bound.vocabulary().clone();
    let mut finished = 0;
    for seed in 0..walks {
        let mut random = Random(seed * 7_919 + 1);
        let mut matcher = bound.matcher();
        let mut text = Vec::new();
        for _ in 0..longest {
            let mask = matcher.mask().unwrap_or_else(|error| panic!("{schema}: {error}")).clone();
            if random.below(8) == 0 {
                let mut plain = matcher.fork();
                plain.set_strategy(Strategy::Reference);
                let plain = plain.mask().unwrap_or_else(|error| panic!("{schema}: {error}"));
                assert_eq!(&mask, plain, "{schema} ({order:?}): after {}", text.escape_ascii());
            }
            let allowed: Vec<TokenId> = mask.iter().collect();
            assert!(!allowed.is_empty(), "{schema} ({order:?}): stuck after {}", text.escape_ascii());
            // Structure comes before everything else, so that values run out.
            let is_structure =
                |token: &&TokenId| vocabulary.bytes(**token).iter().any(|byte| b"[]{},:\"".contains(byte));
            let structure: Vec<TokenId> = allowed.iter().filter(is_structure).copied().collect();
            let choice = if !structure.is_empty() && random.below(3) > 0 { &structure } else { &allowed };
            let token = choice[random.below(choice.len())];
            if vocabulary.is_special(token) {
                finished += 1;
                break;
            }
            let spelled = vocabulary.bytes(token);
            matcher.accept(token).unwrap_or_else(|error| {
                panic!(
                    "{schema} ({order:?}): after {} the mask allows {}, but {error}",
                    text.escape_ascii(),
                    spelled.escape_ascii()
                )
            });
            text.extend_from_slice(spelled);
        }
    }
    finished
}

const FINITE: [&str; 59] = [
    r#"{"type":"array","items":{"type":"string","maxLength":2},"uniqueItems":true,"minItems":3,"maxItems":4}"#,
    r#"{"type":"array","prefixItems":[{"type":"string","maxLength":2},{"const":"aa"},{"type":"string","maxLength":1}],"items":false,"minItems":3,"uniqueItems":true}"#,
    r#"{"type":"object","propertyNames":{"pattern":"^(monday|tuesday|wednesday)$"}}"#,
    r#"{"type":"object","patternProperties":{"^(temperature|humidity|pressure)$":{"type":"integer"}},"additionalProperties":false}"#,
    r#"{"type":"object","patternProperties":{"^(a|b{9})$":{"type":"null"}},"additionalProperties":false,"minProperties":1}"#,
    r#"{"type":"array","items":{"type":"string","pattern":"^2024-01-0[1-3]$"},"uniqueItems":true}"#,
    r#"{"type":"array","items":{"type":"object","properties":{"day":{"enum":["mo","tu","we"]},"shift":{"enum":["a","b"]}},"required":["day","shift"],"additionalProperties":false},"uniqueItems":true,"minItems":3}"#,
    r#"{"anyOf":[{"type":"array","items":{"type":"string","pattern":"^[ab]$"},"uniqueItems":true,"minItems":3},{"type":"null"}]}"#,
    r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","pattern":"^[ab]$"},"uniqueItems":true,"minItems":3},"b":{"type":"null"}},"additionalProperties":false}"#,
    r#"{"type":"array","items":{"type":"integer","minimum":0,"maximum":5},"uniqueItems":true,"minItems":6}"#,
    r#"{"type":"array","items":{"type":"boolean"},"uniqueItems":true,"minItems":2}"#,
    r#"{"type":"array","prefixItems":[{"type":"string"},{"const":"a"}],"items":false,"minItems":2,"uniqueItems":true}"#,
    r#"{"type":"array","prefixItems":[{"enum":["a","b"]},{"type":"string"},{"const":"a"}],"items":false,"minItems":3,"uniqueItems":true}"#,
    r#"{"type":"array","items":{"type":"array","items":{"type":"boolean"},"maxItems":1},"uniqueItems":true,"minItems":2}"#,
    r#"{"type":"array","items":{"type":"string","maxLength":1,"pattern":"^[a-c]?$"},"uniqueItems":true,"minItems":2}"#,
    r#"{"type":"object","properties":{"a":{"type":"null"}},"required":["a"],"patternProperties":{"^[ab]$":{"type":"null"}},"additionalProperties":false,"minProperties":2}"#,
    r#"{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"required":["a","b"],"maxProperties":2}"#,
    r#"{"type":"object","patternProperties":{"z$":{"type":"null"}},"propertyNames":{"maxLength":2,"pattern":"^[a-c]?z$"},"additionalProperties":false}"#,
    r#"{"properties":{"c":{}},"additionalProperties":{"maxItems":2},"propertyNames":{"enum":["a","c"]},"minProperties":2}"#,
    r#"{"type":"array","items":{"multipleOf":0.5,"minimum":0,"maximum":1},"uniqueItems":true,"minItems":3}"#,
    r#"{"properties":{"c":{}},"propertyNames":{"enum":["a","c"]},"minProperties":2}"#,
    r#"{"type":"array","items":{"type":"number","multipleOf":1},"uniqueItems":true}"#,
    r#"{"type":"array","items":{"maxLength":1},"contains":{"pattern":"é"},"uniqueItems":true}"#,
    r#"{"type":"array","uniqueItems":true,"items":{"multipleOf":3}}"#,
    r#"{"type":"array","minItems":2,"uniqueItems":true,"items":{"type":"object","required":["a"],"additionalProperties":false,"properties":{"a":{"type":"array","uniqueItems":true,"minItems":1,"items":{"type":"string","pattern":"^x"}},"b":{"type":"boolean"}}}}"#,
    r#"{"type":"array","minItems":2,"uniqueItems":true,"items":{"type":"array","items":{"type":"array","items":{"type":"array","maxItems":0}}}}"#,
    r#"{"type":"object","properties":{"c":{"type":"null"},"b":{"type":"null"}},"unevaluatedProperties":false,"patternProperties":{"^$":{"type":"null"},"^a":{"type":"array","maxItems":0}},"minProperties":2,"dependentRequired":{"a":["c"]}}"#,
    r#"{"type":"object","properties":{"c":{"type":"null"},"d":false},"patternProperties":{"^[ab]$":{"type":"null"}},"additionalProperties":false,"minProperties":2,"dependentRequired":{"c":["d"]}}"#,
    r#"{"type":"object","properties":{"c":{"type":"null"},"d":{"type":"null"}},"patternProperties":{"^[ab]$":{"type":"null"}},"additionalProperties":false,"minProperties":3,"dependentRequired":{"c":["d"],"a":["c"]}}"#,
    r#"{"type":"object","patternProperties":{"^[ab]$":{"type":["null","boolean"]}},"additionalProperties":false,"minProperties":2,"not":{"patternProperties":{"^a$":{"type":"null"}}}}"#,
    r#"{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"additionalProperties":false,"minProperties":2}"#,
    r#"{"type":"array","items":{"enum":["a","b"]},"not":{"uniqueItems":true}}"#,
    r#"{"type":"array","items":{"type":"string","pattern":"^a*$","minLength":40,"maxLength":40},"uniqueItems":true}"#,
    r#"{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"kind":{"enum":["a","b"]}},"required":["name","kind"],"additionalProperties":false},"uniqueItems":true,"minItems":3}"#,
    r#"{"type":"array","items":{"type":"object","properties":{"n":{"type":"string","pattern":"^[ab]*$","maxLength":2},"k":{"type":"boolean"}},"additionalProperties":false},"uniqueItems":true,"minItems":4}"#,
    r#"{"type":"array","items":{"type":"object","properties":{"mail":{"type":"string","format":"email"},"id":{"type":"string","format":"uuid"},"n":{"type":"number","minimum":0,"maximum":1}},"required":["n"],"additionalProperties":{"type":"null"}},"uniqueItems":true}"#,
    r#"{"type":"array","items":{"anyOf":[{"type":"string","maxLength":60},{"type":"object","patternProperties":{"^[ab]$":{"type":"null"}},"additionalProperties":false},{"type":"array","items":{"type":"null"},"maxItems":2}]},"uniqueItems":true,"minItems":2}"#,
    r#"{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":123456789},"k":{"type":"number"}},"required":["n"],"additionalProperties":false},"uniqueItems":true}"#,
    r#"{"type":"array","items":{"type":"string","pattern":"^([a-c]{1,9}-){1,9}[ab]$"},"uniqueItems":true}"#,
    r#"{"type":"array","items":{"type":"string","maxLength":20},"uniqueItems":true,"minItems":2,"maxItems":5}"#,
    r#"{"type":"array","items":{"type":"string","maxLength":3},"uniqueItems":true,"minItems":3,"maxItems":4}"#,
    r#"{"type":"array","prefixItems":[{"type":"string","maxLength":4},{"enum":["ab","abcd"]},{"const":"ab"}],"items":false,"uniqueItems":true,"minItems":3}"#,
    r#"{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"object","properties":{"a":{"enum":[1,2]},"b":{"type":"boolean"}}}}"#,
    r#"{"type":"object","patternProperties":{"^[ab]{3}$":{"type":"object","patternProperties":{"^[a-c_]{1,9}$":{"type":["number","boolean"]}},"additionalProperties":false}},"additionalProperties":false}"#,
    r#"{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"array","uniqueItems":true,"minItems":1,"items":{"type":"object","properties":{"k":{"enum":["a","b"]}},"required":["k"],"additionalProperties":false}}}"#,
    r#"{"type":"object","properties":{"responses":{"type":"object","patternProperties":{"^[0-9]$":{"type":"null"},"^x":{"type":"null"}},"additionalProperties":false,"minProperties":1,"not":{"patternProperties":{"^x":{}},"additionalProperties":false}}},"patternProperties":{"^x":{"type":"null"}},"required":["responses"],"additionalProperties":false}"#,
    r#"{"type":"array","uniqueItems":true,"minItems":1,"items":{"anyOf":[{"type":"object","properties":{"k":{"enum":["a","b"]}},"required":["k"],"additionalProperties":false},{"type":"object","properties":{"k":{"type":"null"},"l":{"type":"string"}},"required":["k"]},{"type":"boolean"}]}}"#,
    r#"{"type":"array","uniqueItems":true,"minItems":3,"items":{"type":"object","properties":{"k":{"enum":["a}b","]","{}"]},"l":{"type":["null","string"],"maxLength":1}},"required":["k"],"additionalProperties":false}}"#,
    r#"{"type":"object","patternProperties":{"^[ab]$":{"type":"array","items":{"enum":["}","]"]}}},"additionalProperties":false,"minProperties":2}"#,
    r#"{"type":"object","patternProperties":{"^[ab]{2}$":{"type":"null"}},"additionalProperties":false}"#,
    r#"{"type":"array","items":{"type":"string","pattern":"^[ab]*$","minLength":6,"maxLength":6},"uniqueItems":true,"minItems":5}"#,
    r#"{"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"object","properties":{"tags":{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true,"minItems":1},"n":{"type":"integer","minimum":0,"maximum":1}},"required":["tags"],"maxProperties":2}}"#,
    r#"{"type":"object","properties":{"a":{"type":"null"}},"patternProperties":{"^tem$":{"type":"null"},"^temp$":{"type":"null"}},"additionalProperties":{"type":"boolean"}}"#,
    r#"{"type":"object","properties":{"a":{"type":"null"},"aa":{"type":"null"}},"patternProperties":{"^aa$":{"type":"null"},"^(mon|w|we)$":{"type":"null"}},"additionalProperties":false}"#,
    r#"{"type":"object","patternProperties":{"^(w|we)$":{"type":"null"},"^$":{"type":"null"}},"additionalProperties":false,"required":["we"]}"#,
    r#"{"type":"object","patternProperties":{"^[ab]{2}$":{"type":"null"}},"additionalProperties":{"type":"boolean"},"minProperties":2,"dependentRequired":{"aa":["bb"]}}"#,
    r#"{"type":"array","items":{"anyOf":[{"type":"string","pattern":"^(mon|w|we)?$"},{"type":"null"}]},"uniqueItems":true}"#,
    r#"{"items":{"type":"array","maxItems":0},"uniqueItems":true}"#,
    r#"{"prefixItems":[{},{"type":"string","maxLength":0}],"uniqueItems":true}"#,
];

#[test]
fn a_sign_leads_nowhere_if_only_a_second_zero_could_follow() {
    let schema = r#"{"type":"array","items":{"type":"integer","minimum":0},"uniqueItems":true}"#;
    let bound = compiler(KeyOrder::Schema).compile(&Constraint::json_schema(schema)).unwrap();
    for text in ["[", "[0", "[0,", "[1", "[1,", "[1,0", "[10,"] {
        let mut matcher = bound.matcher();
        matcher.accept_bytes(text.as_bytes()).unwrap();
        let mut plain = matcher.fork();
        plain.set_strategy(Strategy::Reference);
        let mask = matcher.mask().unwrap().clone();
        assert_eq!(&mask, plain.mask().unwrap(), "after {text}");
        for token in mask.iter() {
            assert!(matcher.fork().accept(token).is_ok(), "after {text}: {token:?}");
        }
    }
    let sign = TokenId(u32::from(b'-'));
    let mut matcher = bound.matcher();
    matcher.accept_bytes(b"[1,").unwrap();
    assert!(matcher.mask().unwrap().contains(sign), "-0 is the only zero so far");
    matcher.accept_bytes(b"0,").unwrap();
    assert!(!matcher.mask().unwrap().contains(sign));
}

#[test]
fn finite_sets_run_out_without_a_dead_end() {
    for schema in FINITE {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            assert!(walk(schema, order, 60, 300) > 0, "{schema} ({order:?}): no walk came to an end");
        }
    }
}

/// A token that opens an array, writes the only value that there is and asks for another one leads nowhere.
#[test]
fn no_token_writes_all_values_and_a_comma() {
    let schemas = [
        r#"{"items":{"type":"array","maxItems":0},"uniqueItems":true}"#,
        r#"{"items":{"type":"object","maxProperties":0},"uniqueItems":true}"#,
        r#"{"items":{"minimum":1,"anyOf":[{"type":"number","maximum":1}]},"uniqueItems":true}"#,
        r#"{"prefixItems":[{},{"type":"string","maxLength":0}],"uniqueItems":true}"#,
        r#"{"prefixItems":[{},{"type":"array","maxItems":0}],"uniqueItems":true}"#,
        r#"{"items":{"items":{"type":"array","maxItems":0},"uniqueItems":true}}"#,
    ];
    for schema in schemas {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let bound = compiler(order).compile(&Constraint::json_schema(schema)).expect(schema);
            for text in ["", "["] {
                compare_with_tokens(&bound, text);
            }
        }
    }
}

/// A rule that calls itself makes no new value with each round if each round takes a word of a set.
#[test]
fn arrays_of_words_run_out() {
    let schema = r#"{"items": {"items": {"type": "string", "pattern": "^[ab]$"}, "minItems": 1, "uniqueItems": true, "not": {"contains": {"const": "c"}}}, "uniqueItems": true}"#;
    let bound = compiler(KeyOrder::Schema).compile(&Constraint::json_schema(schema)).expect(schema);
    let all = [r#"["a"]"#, r#"["b"]"#, r#"["a","b"]"#, r#"["b","a"]"#];
    for written in 1..=all.len() {
        let text = format!("[{}", all[..written].join(","));
        compare_with_tokens(&bound, &text);
        let goes_on = bound.matcher().accept_bytes(format!("{text},").as_bytes()).is_ok();
        assert_eq!(goes_on, written < all.len(), "{text}");
    }
}

/// What a search passes over is not written, so a value around it must not be read back.
#[test]
fn a_value_around_one_that_was_passed_over_is_new() {
    let schema = r#"{"items":{"prefixItems":[{"type":"number"}],"uniqueItems":true,"maxItems":2},"contains":{"type":"array","items":{"type":"array"}},"uniqueItems":true}"#;
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        let bound = compiler(order).compile(&Constraint::json_schema(schema)).expect(schema);
        for text in ["[[10,[", "[[10,[1", "[\"\",[10,", "[[10,{", "[[10,[]],["] {
            compare_with_tokens(&bound, text);
        }
    }
}

/// A leaf may be a part of an array that must be new, written where the array is checked.
#[test]
fn a_value_is_no_new_one_because_a_part_of_it_is_a_leaf() {
    let schema = r#"{"type":"array","items":{"type":"array","contains":{"type":"boolean"},"maxItems":1,"unevaluatedItems":{"type":"boolean"}},"uniqueItems":true}"#;
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        assert!(walk(schema, order, 60, 40) > 30, "{order:?}");
    }
}

/// Of keys and items that are among a few texts, the engine keeps a set, and nothing has to be searched.
#[test]
fn few_texts_are_kept_as_sets() {
    let schemas = [
        (FINITE[2], 3),
        (FINITE[5], 3),
        (r#"{"type":"object","patternProperties":{"^tem$":{"type":"null"},"^temp$":{"type":"null"}}}"#, 2),
        (
            r#"{"type":"object","patternProperties":{"^(a|b|)$":{"type":"null"}},"additionalProperties":false}"#,
            3,
        ),
    ];
    for (schema, words) in schemas {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let compiler = compiler(order);
            let (grammar, _) = compiler.grammar(&Constraint::json_schema(schema)).expect(schema);
            let network = compiler.program(&grammar).expect(schema).describe().to_string();
            let wanted = format!("a set of {words} words");
            assert!(network.contains(&wanted), "{schema}: {network}");
        }
    }
}

/// The words that are asked for are found beside a million short strings, and inside of other items.
#[test]
fn words_are_found_among_many_texts() {
    let schema = r#"{"contains":{"enum":["abaa","baab"],"minLength":2},"maxContains":2,"uniqueItems":true}"#;
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        let bound = compiler(order).compile(&Constraint::json_schema(schema)).expect("it compiles");
        for text in [r#"["abaa","abaa"]"#, r#"["abaa",1,1]"#, "[1]"] {
            assert!(bound.matcher().accept_bytes(text.as_bytes()).is_err(), "{text}");
        }
        for text in ["[", "[\"", "[\"a\",\"", "[\"\",[],{},null,", "[[\"", "[{\"a\":[1,"] {
            compare_with_tokens(&bound, text);
        }
    }
}

/// Compares the mask behind a text with each token by itself: the plain way would have to search behind all of them within the steps of one mask.
fn compare_with_tokens(bound: &CompiledConstraint, text: &str) {
    let mut matcher = bound.matcher();
    matcher.accept_bytes(text.as_bytes()).expect(text);
    let mask = matcher.mask().expect(text).clone();
    for token in (0..bound.vocabulary().size() as u32).map(TokenId) {
        let error = matcher.fork().accept(token).err();
        assert!(!error.as_ref().is_some_and(MatchError::is_limit), "{text}, then {token:?}: {error:?}");
        assert_eq!(mask.contains(token), error.is_none(), "{text}, then {token:?}: {error:?}");
    }
}

/// With so few tokens that an escape is too long, it is not in the mask.
#[test]
fn escapes_are_in_time_or_not_in_the_mask() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"string","minLength":2,"pattern":"^a{2}$","not":{"const":"b"}}},"unevaluatedProperties":false}"#;
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        let bound = compiler(order).compile(&Constraint::json_schema(schema)).expect(schema);
        for text in [r#"{"a":834,"ab":"#, r#"{"a":834,"ab":""#] {
            for more in 0..16 {
                let mut matcher = bound.matcher();
                matcher.accept_bytes(text.as_bytes()).expect(text);
                let need = matcher.shortest_completion().expect("a number");
                matcher.set_budget(Some(Budget::new(need + more))).expect("it is enough");
                let unasked = matcher.fork();
                let mask = matcher.mask().expect(text).clone();
                for token in (0..bound.vocabulary().size() as u32).map(TokenId) {
                    let error = unasked.fork().accept(token).err();
                    assert_eq!(
                        mask.contains(token),
                        error.is_none(),
                        "{text}, {more} more, then {token:?}: {error:?}"
                    );
                }
            }
        }
    }
}

/// Hundreds of tokens that leave a string open are completed in the same way, which is looked for once.
#[test]
fn tokens_inside_a_value_share_a_way_out() {
    let schema = r#"{"items":{"maxLength":3},"uniqueItems":true,"if":{"type":"null"},"else":{"contains":{"type":"boolean"}}}"#;
    let bound = compiler(KeyOrder::Schema).compile(&Constraint::json_schema(schema)).expect(schema);
    for text in [r#"[1,{"a":""#, r#"[{"a":"}"#, r#"["abc",[[""#] {
        compare_with_tokens(&bound, text);
    }
}

/// A short way out is found where going on and on is another way that never ends.
#[test]
fn short_ways_are_found_beside_endless_ones() {
    let cases: [(&str, &[&str]); 4] = [
        (
            r#"{"contains":{"enum":["a","b"]},"allOf":[{"items":{"maxLength":2},"uniqueItems":true}]}"#,
            &["", "[", "[[", "[\"", "[\"a\",", "[\"xy\",\"", "[{\"a\":[1,"],
        ),
        (
            r#"{"prefixItems":[{"items":{"type":"boolean"},"contains":{"const":false}}],"uniqueItems":true}"#,
            &["", "[", "[[", "[[true,", "[[true,true,t", "[[false],[[", "[[false],[fals"],
        ),
        (
            r#"{"type":"object","minProperties":2,"dependentRequired":{"ab":["a","b"]}}"#,
            &["", "{", "{\"", "{\"x", "{\"ab\":1,\""],
        ),
        (
            r#"{"contains":{"enum":["abaa","baab"],"minLength":2},"maxContains":2,"uniqueItems":true}"#,
            &["", "[", "[\""],
        ),
    ];
    for (schema, texts) in cases {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let bound = compiler(order).compile(&Constraint::json_schema(schema)).expect(schema);
            for text in texts {
                compare_with_tokens(&bound, text);
            }
            assert!(walk(schema, order, 20, 200) > 0, "{schema} ({order:?}): no walk came to an end");
        }
    }
}

/// The nearest end is tried first: it is found also where it is long, because of line breaks or of strings that have to hold something.
#[test]
fn ways_out_are_found_by_their_length() {
    let indent = Whitespace::Indent(2);
    let cases: [(&str, Whitespace, &[&str]); 6] = [
        (
            r##"{"items":{"type":"array","items":{"$ref":"#","type":"array"},"prefixItems":[{"type":"array","unevaluatedItems":false},{}],"contains":{"type":"boolean"},"uniqueItems":true},"minItems":2}"##,
            indent.clone(),
            &["[\n  [\n    [],\n    true,\n    [\n      [\n        [],\n        false"],
        ),
        // The line break behind `1` is not one that may be left out.
        (
            r#"{"contains":{"type":"array","items":{"type":"integer","exclusiveMinimum":0,"maximum":1},"minItems":2},"maxContains":3,"uniqueItems":true,"unevaluatedItems":true}"#,
            Whitespace::Natural,
            &["[", "[\n  [\n    1,\n    1"],
        ),
        (
            r#"{"items":{"maxLength":2},"contains":{"type":"string","pattern":"(b|b)$"},"uniqueItems":true}"#,
            indent,
            &["[", "[\n  {}", "[\n  \"a"],
        ),
        (
            r#"{"uniqueItems":true,"anyOf":[{"items":{"type":"string","maxLength":2},"contains":{"pattern":"9]|()2}$"}}]}"#,
            Whitespace::Compact,
            &["", "[", "[\"9", "[\"aa\",\""],
        ),
        (
            r#"{"items":{"maxLength":5,"pattern":"é{1}b"},"contains":{"type":"string","pattern":"^.[a-c]{2}(ac)|^$"},"uniqueItems":true}"#,
            Whitespace::Compact,
            &["", "[", "[1,\"é"],
        ),
        (
            r#"{"additionalProperties":{"items":{"maxLength":2},"contains":{"type":"string","pattern":"^a*[9][^a]{1}"},"uniqueItems":true}}"#,
            Whitespace::Compact,
            &["{\":[}]],[ۋ\":[{\":[\":null},", "{\"a\":[\"9b\",\""],
        ),
    ];
    for (schema, style, texts) in cases {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let options =
                json_schema::Options::default().with_key_order(order).with_whitespace(style.clone());
            let bound = with_options(options).compile(&Constraint::json_schema(schema)).expect(schema);
            for text in texts {
                compare_with_tokens(&bound, text);
            }
        }
    }
}

/// A word that must come twice where values differ is impossible, though there are a million other strings of one character.
#[test]
fn short_strings_are_no_reason_to_go_on() {
    let schema = r#"{"properties":{"a":{"type":"array","contains":{"const":"ab","minLength":2},"minContains":2,"maxContains":3,"uniqueItems":true}}}"#;
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        let bound = compiler(order).compile(&Constraint::json_schema(schema)).expect(schema);
        for text in ["", "{\"", "{\"b\":"] {
            compare_with_tokens(&bound, text);
        }
        assert!(bound.matcher().accept_bytes(br#"{"a":["#).is_err(), "no such array is possible");
        assert!(bound.matcher().accept_bytes(br#"{"b":["ab","ab"]}"#).is_ok());
    }
    // Strings of one character, and no other: each may stand there once.
    let schema =
        r#"{"items":{"type":"string","maxLength":1},"uniqueItems":true,"type":"array","minItems":3}"#;
    let bound = compiler(KeyOrder::Schema).compile(&Constraint::json_schema(schema)).expect(schema);
    for text in
        ["[", "[\"a\",\"", "[\"a\",\"\",\"a", "[\"a\",\"\",\"b\"", "[\"a\",\"\\u00", "[\"a\",\"\\u006"]
    {
        if bound.matcher().accept_bytes(text.as_bytes()).is_ok() {
            compare_with_tokens(&bound, text);
        }
    }
    assert!(bound.matcher().accept_bytes(br#"["a","a"#).is_err(), "`a` stands there");
}

/// Short strings count as endless, so that a text with as many of them as there might not be enough for is an error and not a dead end.
#[test]
fn short_strings_do_not_run_out_in_silence() {
    let schema = r#"{"type":"array","items":{"type":"string","maxLength":1},"uniqueItems":true}"#;
    let bound = compiler(KeyOrder::Schema).compile(&Constraint::json_schema(schema)).expect(schema);
    let mut matcher = bound.matcher();
    matcher.accept_bytes(b"[").expect("an array begins");
    let mut characters = ('\u{1000}'..=char::MAX).map(|character| format!("\"{character}\","));
    let refused = loop {
        // Many at once, because nothing is asked between them.
        let text: String = characters.by_ref().take(4_096).collect();
        assert!(!text.is_empty(), "the error comes before the strings run out");
        if let Err(error) = matcher.accept_bytes(text.as_bytes()) {
            break error;
        }
    };
    assert!(refused.is_limit(), "{refused}");
    let written = matcher.steps() * 4_096;
    assert!((400_000..600_000).contains(&written), "{written}");
}

/// Which tokens may end a string and begin another value is known from its first character on. The answer must be the one of a matcher that comes there anew.
#[test]
fn commas_are_known_while_a_string_goes_on() {
    let schemas = [
        r#"{"type":"object","patternProperties":{"^[ab]$":{"type":"string"}},"additionalProperties":false}"#,
        r#"{"type":"object","patternProperties":{"^[ab]$":{"type":"string","maxLength":7}},"additionalProperties":false}"#,
        r#"{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"},"b":{"enum":[1,2]}},"required":["a","b"],"additionalProperties":false},"uniqueItems":true,"maxItems":2}"#,
    ];
    let texts: [&[&str]; 3] = [
        &["{\"b\":\"aw,ew\"", ",\"a\":\"a,tem,\""],
        &["{\"b\":\"", "aw,w\"", ",\"a\":\"a,w\""],
        &["[{\"a\":\"a,w\""],
    ];
    for (schema, texts) in schemas.iter().zip(texts) {
        let bound = compiler(KeyOrder::Schema).compile(&Constraint::json_schema(*schema)).expect(schema);
        let mut matcher = bound.matcher();
        let mut text = Vec::new();
        for byte in texts.concat().bytes() {
            matcher.accept_bytes(&[byte]).expect(schema);
            text.push(byte);
            let mask = matcher.mask().expect(schema).clone();
            let mut anew = bound.matcher();
            anew.accept_bytes(&text).expect(schema);
            assert_eq!(&mask, anew.mask().expect(schema), "{schema}: after {}", text.escape_ascii());
            anew.set_strategy(Strategy::Reference);
            assert_eq!(&mask, anew.mask().expect(schema), "{schema}: after {}", text.escape_ascii());
        }
    }
}

/// Of keys that nothing asks for, one is tried for all that a token may write. The answer must be that of each token by itself, whatever it writes behind the key.
#[test]
fn keys_that_are_alike_are_tried_once() {
    let keys = ["a", "b", "w", "x", "aa", "\u{e9}"];
    let pieces = keys.iter().flat_map(|key| {
        let other = if *key == "w" { "x" } else { "w" };
        [
            format!("{key}\""),
            format!("{key}\":"),
            format!("\"{key}\":1"),
            format!("\"{key}\":\""),
            format!("\"{key}\":1,\"{key}\":"),
            format!("\"{key}\":1,\"{other}\":1}}"),
            format!("{key}\":1,\"a\":1,\""),
            format!(",\"{key}\",\""),
            format!("\",\"{key}\":"),
        ]
    });
    let pieces: Vec<String> = pieces.collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let schemas = [
        r#"{"properties":{"b":{"type":"string"}},"dependentRequired":{"a":["b"],"w":["a"]},"anyOf":[{"required":["a"]},{"properties":{"x":{"type":"null"}}},{"propertyNames":{"maxLength":1}}]}"#,
        r#"{"patternProperties":{"^[abwx]$":{"type":"integer"}},"additionalProperties":false,"minProperties":3,"dependentRequired":{"a":["w"]}}"#,
        r##"{"additionalProperties":{"$ref":"#"},"type":["object","integer"],"dependentSchemas":{"a":{"anyOf":[{"required":["b"]},{"required":["aa"],"maxProperties":2}]}}}"##,
        r#"{"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"a":{"enum":[1,2]}},"anyOf":[{"required":["a"]},{"required":["w"]}],"maxProperties":2}}"#,
        r#"{"type":"array","items":{"type":"string","maxLength":2,"pattern":"^[abwx]*$"},"uniqueItems":true,"contains":{"enum":["w","aa"]}}"#,
    ];
    for schema in schemas {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let json_schema = json_schema::Options::default().with_key_order(order);
            let compiler = Compiler::with_options(
                vocabulary_with(&pieces),
                Options { json_schema, ..Options::default() },
            );
            let bound = compiler.compile(&Constraint::json_schema(schema)).expect(schema);
            for seed in 0..12 {
                let (mut random, mut matcher, mut text) = (Random(seed), bound.matcher(), Vec::new());
                for _ in 0..12 {
                    let before = matcher.fork();
                    let mask = matcher.mask().expect(schema).clone();
                    for token in (0..bound.vocabulary().size() as u32).map(TokenId) {
                        let is_taken = before.fork().accept(token).is_ok();
                        let spelled = bound.vocabulary().bytes(token);
                        let (text, spelled) = (text.escape_ascii(), spelled.escape_ascii());
                        assert_eq!(mask.contains(token), is_taken, "{schema}: after {text}: {spelled}");
                    }
                    let long = |token: &TokenId| bound.vocabulary().bytes(*token).len() > 1;
                    let longer: Vec<TokenId> = mask.iter().filter(long).collect();
                    let allowed = if longer.is_empty() { mask.iter().collect() } else { longer };
                    let token = allowed[random.below(allowed.len())];
                    if bound.vocabulary().is_special(token) {
                        break;
                    }
                    matcher.accept(token).expect(schema);
                    text.extend_from_slice(bound.vocabulary().bytes(token));
                }
            }
        }
    }
}

/// A line break that has to be written is no white space that may be left out.
#[test]
fn line_breaks_that_must_come_lead_out() {
    let schemas = [
        r#"{"prefixItems":[{"multipleOf":3}],"uniqueItems":true,"unevaluatedItems":false}"#,
        r#"{"items":{"multipleOf":2},"maxItems":1,"uniqueItems":true}"#,
    ];
    for schema in schemas {
        for style in [Whitespace::Natural, Whitespace::Indent(2)] {
            let options = json_schema::Options::default().with_whitespace(style);
            let bound = with_options(options).compile(&Constraint::json_schema(schema)).expect(schema);
            for text in ["[\n  12", "[\n  12.", "[\n  12.0"] {
                compare_with_tokens(&bound, text);
            }
            assert!(bound.matcher().accept_bytes(b"[\n  12.0\n]").is_ok(), "{schema}");
        }
    }
}

/// A value may be none of the words that must follow it. Until it is over, that is no reason to stop.
#[test]
fn a_value_is_none_of_the_words_behind_it() {
    let schema = r#"{"type":"array","prefixItems":[{"type":"string","pattern":"^(a|bc)$"},{"enum":["a"]}],"minItems":2,"uniqueItems":true}"#;
    let bound = compiler(KeyOrder::Schema).compile(&Constraint::json_schema(schema)).unwrap();
    for text in ["[", "[\"", "[\"b"] {
        compare_with_tokens(&bound, text);
    }
    assert!(bound.matcher().accept_bytes(br#"["a"#).is_err());
    assert!(bound.matcher().accept_bytes(br#"["bc","a"#).is_ok());
    // Of the only string there must be two.
    let items =
        r#"{"items":{"pattern":"^é$"},"contains":{"type":"string"},"minContains":2,"uniqueItems":true}"#;
    let bound = compiler(KeyOrder::Schema)
        .compile(&Constraint::json_schema(format!(r#"{{"additionalProperties":{items}}}"#)))
        .unwrap();
    for text in ["", "{\"", "{\"a\":"] {
        compare_with_tokens(&bound, text);
    }
    assert!(bound.matcher().accept_bytes(br#"{"a":["#).is_err(), "no such array is possible");
    assert!(bound.matcher().accept_bytes(br#"{"a":[1]"#).is_err(), "no such array is possible");
    assert!(bound.matcher().accept_bytes(br#"{"a":{}}"#).is_ok());
}

/// Keys that may be spelled in several ways are leaves. One that was written is not begun once more.
#[test]
fn a_word_in_a_leaf_is_not_begun_again() {
    let schemas = [
        r#"{"required":["b"],"not":{"propertyNames":{"enum":["a"]}}}"#,
        r#"{"required":["b"],"propertyNames":{"enum":["a","b"]},"not":{"propertyNames":{"enum":["a"]}}}"#,
        r#"{"required":["b"],"propertyNames":{"enum":["a","b","aa"]},"not":{"propertyNames":{"enum":["a"]}}}"#,
    ];
    for schema in schemas {
        let bound = compiler(KeyOrder::Any).compile(&Constraint::json_schema(schema)).expect(schema);
        for text in ["{", "{\"a\":0,", "{\"a\":0,\"", "{\"b\":0,\"a\":1", "{\"b\":0,\"a\":1,", "{\"b\":0,\"a"]
        {
            if bound.matcher().accept_bytes(text.as_bytes()).is_ok() {
                compare_with_tokens(&bound, text);
            }
        }
        assert!(bound.matcher().accept_bytes(br#"{"a":0,"b":1}"#).is_ok(), "{schema}");
        walk(schema, KeyOrder::Any, 40, 200);
    }
}

/// A number that is the same however many zeros follow is no new one, also where more than one scope reads it.
#[test]
fn zeros_behind_a_point_make_no_new_number() {
    let cases = [
        (r#"{"prefixItems":[{},{"multipleOf":1.5}],"contains":{"type":"number"},"uniqueItems":true}"#, "[0,"),
        (r#"{"items":{"multipleOf":7},"contains":{"type":"number"},"uniqueItems":true}"#, "[91,-0,"),
        (
            r#"{"contains":{"multipleOf":2},"uniqueItems":true,"unevaluatedItems":{"multipleOf":1.5}}"#,
            "[10,0,",
        ),
        (
            r#"{"oneOf":[{"items":{"exclusiveMaximum":6,"multipleOf":1.5},"uniqueItems":true},{"items":{"type":"boolean"},"maxItems":3}]}"#,
            "[4.500,",
        ),
    ];
    for (schema, text) in cases {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let bound = compiler(order).compile(&Constraint::json_schema(schema)).expect(schema);
            compare_with_tokens(&bound, text);
        }
    }
}

/// Keys that are words are kept in one frame, and the others in the next, of the same scope.
#[test]
fn other_keys_are_not_repeated_beside_words() {
    let cases = [
        (
            r#"{"patternProperties":{"^(a|ab)$":{"properties":{"b":{},"a":{}},"oneOf":[{"required":["ab","c"]}]}}}"#,
            r#"{"a":{"":6,""#,
        ),
        (
            r#"{"propertyNames":{"maxLength":2},"anyOf":[{"patternProperties":{"^a|b":{"properties":{"c":true},"required":["ab"],"dependentRequired":{"a":["b"]}}}}]}"#,
            r#"{"b":{":":1,"":"",""#,
        ),
        (
            r#"{"patternProperties":{"^.{1,2}$":{"properties":{"a":{}},"dependentRequired":{"d":["b"]},"oneOf":[{"dependentSchemas":{"c":true}}]}}}"#,
            r#"{"}":{"a":true,"":"","}":"",""#,
        ),
    ];
    for (schema, text) in cases {
        let bound = compiler(KeyOrder::Any).compile(&Constraint::json_schema(schema)).expect(schema);
        compare_with_tokens(&bound, text);
        let quote = TokenId(u32::from(b'"'));
        let mut matcher = bound.matcher();
        matcher.accept_bytes(text.as_bytes()).expect(text);
        assert!(!matcher.mask().expect(text).contains(quote), "{text}: the empty key stands there");
    }
}

/// The only way to two of them would be one more inside of itself, and so on.
#[test]
fn a_value_that_needs_itself_is_a_dead_end() {
    let schema = r##"{"$ref":"#/$defs/d","$defs":{"d":{"type":"array","prefixItems":[{"type":"array","items":{"$ref":"#/$defs/d"},"uniqueItems":true,"minItems":2}]}}}"##;
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        let bound = compiler(order).compile(&Constraint::json_schema(schema)).expect("`[]` is left");
        compare_with_tokens(&bound, "");
        assert!(bound.matcher().accept_bytes(b"[]").is_ok());
        assert!(bound.matcher().accept_bytes(b"[[").is_err());
    }
    // Here an end is left.
    let schema = schema.replace(r#""items":{"#, r#""items":{"maxItems":2,"#);
    let schema =
        schema.replace(r#""type":"array","prefixItems""#, r#""type":["array","null"],"prefixItems""#);
    let bound = compiler(KeyOrder::Schema).compile(&Constraint::json_schema(&*schema)).expect("it compiles");
    assert!(bound.matcher().accept_bytes(b"[[[],null]]").is_ok());
}

/// A required key whose value has that key, too, and so on, is a dead end in any order as well.
#[test]
fn a_required_key_without_an_end_is_a_dead_end() {
    let refused = r##"{"type":"object","properties":{"b":{},"a":{"$ref":"#"}},"required":["a"],"unevaluatedProperties":false,"not":{"patternProperties":{"^(a|ab)$":{"required":["c","d"]},"b$":{"properties":{"b":{"const":null}},"required":["a","d"]}}}}"##;
    assert!(compiler(KeyOrder::Any).compile(&Constraint::json_schema(refused)).is_err());
    let schema = r##"{"anyOf":[{"$ref":"#/$defs/d"},{"type":"null"}],"$defs":{"d":{"type":"object","properties":{"ab":{"$ref":"#/$defs/d"}},"required":["ab","a"],"propertyNames":{"maxLength":2},"if":{"properties":{"a":{"$ref":"#"},"c":{"enum":[5.5]}},"required":["b","c"],"additionalProperties":false},"else":{"properties":{}}}}}"##;
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        let bound = compiler(order).compile(&Constraint::json_schema(schema)).expect("null is left");
        compare_with_tokens(&bound, "");
        assert!(bound.matcher().accept_bytes(b"{").is_err());
    }
}

/// Where a required key is missing, white space before the end leads nowhere, even if nothing was seen.
#[test]
fn nothing_ends_without_a_required_key() {
    let schemas = [
        r#"{"required":["ab"],"oneOf":[{"required":["c"]},{"required":["a","b"]}]}"#,
        r#"{"required":["ab"],"properties":{"c":{},"d":{},"e":{}},"not":{"required":["c","d"]}}"#,
    ];
    let texts = [
        "{",
        "{\"",
        "{\"a\":0",
        "{\"a\":0,",
        "{\"a\": [],\n  ",
        "{\"c\":0",
        "{\"c\":[]",
        "{\"ab\":1,\"c\":2",
        "{\"ab\":1,\"",
        "{\"b\":1,\"a",
    ];
    for schema in schemas {
        for whitespace in [Whitespace::Tidy, Whitespace::Compact] {
            let json_schema = json_schema::Options::default().with_key_order(KeyOrder::Any);
            let json_schema = json_schema.with_whitespace(whitespace.clone());
            let options = Options { json_schema, ..Options::default() };
            let compiler = Compiler::with_options(vocabulary(), options);
            let bound = compiler.compile(&Constraint::json_schema(schema)).expect(schema);
            for text in texts.iter().filter(|text| whitespace == Whitespace::Tidy || !text.contains(' ')) {
                compare_with_tokens(&bound, text);
            }
        }
    }
}

/// More than a dozen keys are not followed by states, but by what was seen.
#[test]
fn keys_that_need_others_can_be_written_with_them() {
    let members = |names: &[&str]| {
        names.iter().map(|name| format!(r#""{name}":{{"type":"null"}}"#)).collect::<Vec<_>>().join(",")
    };
    let pairs = r#""dependentRequired":{"a":["w"],"aa":["x"],"bbb":["y"],"zz":["z","a"]}"#;
    let (first, last) = (["a", "aa", "bbb", "zz"], ["w", "x", "y", "z"]);
    for names in [
        [first, last].concat(),
        [last, first].concat(),
        ["a", "w", "y", "bbb", "zz", "z", "x", "aa"].to_vec(),
    ] {
        for rest in [
            "",
            r#","additionalProperties":false"#,
            r#","required":["zz"],"additionalProperties":false"#,
            r#","minProperties":1"#,
        ] {
            let schema = format!(r#"{{"type":"object","properties":{{{}}},{pairs}{rest}}}"#, members(&names));
            for order in [KeyOrder::Schema, KeyOrder::Any] {
                assert!(walk(&schema, order, 60, 300) > 0, "{schema} ({order:?}): no walk came to an end");
            }
        }
    }
}

fn many_keys(required: &str, rest: &str) -> String {
    let keys: Vec<String> =
        ('a'..='n').map(|key| format!(r#""{key}":{{"type":["null","boolean"]}}"#)).collect();
    format!(r#"{{"type":"object","properties":{{{}}},"required":{required}{rest}}}"#, keys.join(","))
}

#[test]
fn required_keys_can_always_be_written() {
    let closed = r#","additionalProperties":false"#;
    let inner = many_keys(r#"["b","c"]"#, closed);
    let schemas = [
        many_keys(r#"["a","c","n"]"#, closed),
        many_keys(r#"["a","c","n","other"]"#, ""),
        many_keys(r#"["a"]"#, &format!(r#","additionalProperties":{inner}"#)),
        format!(
            r#"{{"oneOf":[{},{{"type":"object","required":["p","q"],"properties":{{"p":{{"type":"null"}}}}}}]}}"#,
            many_keys(r#"["a","b"]"#, "")
        ),
        many_keys(
            "[]",
            r#","oneOf":[{"properties":{"a":{"type":"null"}}},{"properties":{"a":{"const":true}}}]"#,
        ),
        many_keys("[]", r#","if":{"required":["b"]},"then":{"required":["c","d"]}"#),
    ];
    for schema in schemas {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            walk(&schema, order, 40, 400);
        }
    }
}

/// Of these arrays there are two, and three must differ. Only the engine finds that out.
const IMPOSSIBLE: &str = r#"{"type":"array","items":{"type":"array","items":{"enum":[1]},"uniqueItems":true,"maxItems":1},"uniqueItems":true,"minItems":3}"#;

/// An object that requires a key of which no value is possible is not begun, though other keys could be written for ever.
#[test]
fn a_required_key_without_a_value_is_a_dead_end() {
    let by_patterns = r#""patternProperties":{"^a":{"type":"string"},"^(a|ab)$":{"not":{}}},"dependentRequired":{"a":["b","é"]},"properties":{"c":{"uniqueItems":true}}"#;
    let by_values = format!(r#""properties":{{"a":{IMPOSSIBLE},"b":{{}},"c":{{}},"d":{{}}}}"#);
    for keywords in [by_patterns, &by_values] {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let compile = |types: &str| {
                let schema = format!(r#"{{"type":{types},"required":["a"],{keywords}}}"#);
                compiler(order).compile(&Constraint::json_schema(schema))
            };
            let bound = compile(r#"["object","null"]"#).expect("null is left");
            let mut matcher = bound.matcher();
            assert!(matcher.fork().accept_bytes(b"{").is_err(), "{keywords} ({order:?})");
            let mask = matcher.mask().expect("a mask");
            assert!(!mask.contains(TokenId(u32::from(b'{'))), "{keywords} ({order:?})");
            assert!(compile(r#""object""#).is_err(), "{keywords} ({order:?})");
        }
    }
}

/// A key that needs such a one cannot be written either. Where only the engine knows, that is refused in any order.
#[test]
fn a_key_that_needs_one_without_a_value_is_refused_by_name() {
    let schema = |order, a: &str| {
        let members = format!(r#""properties":{{"a":{a},"b":{{}},"c":{{}},"d":{{}}}}"#);
        let schema = format!(r#"{{"type":"object",{members},"dependentRequired":{{"b":["a"]}}}}"#);
        compiler(order).compile(&Constraint::json_schema(schema))
    };
    let error = schema(KeyOrder::Any, IMPOSSIBLE).map(|_| ()).expect_err("`b` could be written");
    assert!(error.to_string().contains("the key `b` needs `a`"), "{error}");
    let clashing = r#"{"anyOf":[{"allOf":[{"type":"string"},{"type":"null"}]},{"allOf":[{"minLength":2,"type":"string"},{"maxLength":1}]}]}"#;
    for (order, a) in
        [(KeyOrder::Schema, IMPOSSIBLE), (KeyOrder::Schema, clashing), (KeyOrder::Any, clashing)]
    {
        let bound = schema(order, a).expect("other keys are left");
        assert!(bound.matcher().accept_bytes(br#"{"c":1,"bb":2}"#).is_ok(), "{a} ({order:?})");
        assert!(bound.matcher().accept_bytes(br#"{"b":"#).is_err(), "{a} ({order:?})");
    }
}

#[test]
fn what_nothing_satisfies_is_refused() {
    let cases = [
        r#"{"type":"array","items":{"type":"integer","minimum":0,"maximum":5},"uniqueItems":true,"minItems":7}"#,
        r#"{"type":"array","items":{"type":"array","maxItems":0},"uniqueItems":true,"minItems":2}"#,
        r#"{"type":"object","patternProperties":{"^[ab]$":{"type":"null"}},"additionalProperties":false,"minProperties":3}"#,
        r#"{"type":"array","prefixItems":[{"const":"a"},{"const":"a"}],"minItems":2,"uniqueItems":true}"#,
        r#"{"type":"array","contains":{"type":"null"},"minContains":2,"uniqueItems":true,"maxItems":3}"#,
        r#"{"type":"array","contains":{"enum":[""]},"minContains":2,"uniqueItems":true}"#,
    ];
    for schema in cases {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let result = compiler(order).compile(&Constraint::json_schema(schema));
            let error = result.map(|_| ()).expect_err(schema);
            let message = error.to_string();
            let is_said =
                ["allows no value", "fewer different items"].iter().any(|part| message.contains(part));
            assert!(is_said, "{schema}: {message}");
        }
    }
}

/// A literal in front of words that were all seen leads nowhere, be it the beginning of a counted repetition.
#[test]
fn no_literal_leads_to_words_that_were_seen() {
    let texts = [
        (Whitespace::Compact, "^$", r#"{"":true"#),
        (Whitespace::Indent(2), "^$", "{\n  \"\": {}"),
        (Whitespace::Indent(2), "^a$", "{\n  \"a\": true"),
        (Whitespace::Indent(2), "^(a|b)$", "{\n  \"b\": true"),
        (Whitespace::Indent(2), "^(a|b)$", "{\n  \"b\": true,\n  \"a\": {}"),
        (Whitespace::Spaced, "^(a|b)$", r#"{"a": {}, "b": true"#),
    ];
    for (style, names, text) in texts {
        for most in [3, 5] {
            let schema = format!(
                r#"{{"type":"object","additionalProperties":false,"patternProperties":{{"{names}":{{"type":["object","boolean"]}}}},"maxProperties":{most}}}"#
            );
            let options = json_schema::Options::default().with_whitespace(style.clone());
            let bound = with_options(options).compile(&Constraint::json_schema(schema.as_str()));
            compare_with_tokens(&bound.expect(&schema), text);
        }
    }
}

/// A recursion without an end is told in the same way, whether it is found in the schema's order of keys or in any, and by whom.
#[test]
fn what_never_ends_is_refused_in_the_same_words() {
    let cases = [
        r##"{"type":"object","properties":{"kind":{"enum":["a","b"]},"next":{"$ref":"#"}},"required":["kind","next"]}"##,
        r##"{"type":"object","properties":{"next":{"type":"array","minItems":1,"items":{"$ref":"#"}}},"required":["next"]}"##,
    ];
    for schema in cases {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let result = compiler(order).compile(&Constraint::json_schema(schema));
            let error = result.map(|_| ()).expect_err(schema);
            let message = "(root): the recursion never ends: every value must contain another one; make one of the references optional";
            assert_eq!(error.to_string(), message, "{schema} ({order:?})");
            assert!(matches!(error, Error::Schema(_)), "{schema} ({order:?})");
        }
    }
    // Where values run out, the error names the place.
    let schema = r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","minimum":0,"maximum":5},"minItems":7,"uniqueItems":true}},"required":["a"]}"#;
    for order in [KeyOrder::Schema, KeyOrder::Any] {
        let error = compiler(order).compile(&Constraint::json_schema(schema)).map(|_| ()).expect_err(schema);
        assert!(error.to_string().starts_with("/properties/a: this allows no value"), "{error}");
    }
}
