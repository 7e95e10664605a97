//! Masks over a real vocabulary, whole bitsets: the fast way against the plain walk and against the oracle.
//!
//! The tokenizer comes from `make assets`; `make test` fetches it first. Without it this test fails, because a test that
//! is skipped in silence shows nothing.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

use std::sync::Arc;

use maskwright::{Compiler, Constraint, Strategy, TokenMask, Vocabulary};
use maskwright_oracle::generate::Rng;
use maskwright_oracle::{Oracle, Tokens};

fn vocabulary() -> Arc<Vocabulary> {
    super::assets::llama().vocabulary().clone()
}

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "nickname": {"type": "string", "minLength": 2, "maxLength": 12},
        "names": {"type": "array", "items": {"type": "string", "maxLength": 3}, "minItems": 1, "maxItems": 40},
        "age": {"type": "integer"},
        "size": {"type": ["number", "null"]},
        "kind": {"enum": ["cat", "cattle", "dog", 1, true, null]},
        "inner": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
        "free": {}
    },
    "required": ["name", "kind"]
}"#;

const ARITHMETIC: &str = r#"
root ::= expr
expr ::= expr "+" expr | expr "*" expr | "(" expr ")" | number | name
number ::= [0-9]+ ("." [0-9]{1,3})?
name ::= [a-zA-Z_é-ü] [a-zA-Z0-9_é-ü]{0,20}
"#;

fn constraints() -> Vec<Constraint> {
    vec![
        Constraint::json_schema(SCHEMA),
        Constraint::json_schema("{}"),
        Constraint::ebnf(ARITHMETIC),
        Constraint::regex(r"(https?://)?([\da-z.-]+)\.([a-z.]{2,6})([/\w .-]*)*/?"),
        Constraint::regex(r"\+?\d{1,4}?[-.\s]?\(?\d{1,3}?\)?[-.\s]?\d{1,4}[-.\s]?\d{1,4}[-.\s]?\d{1,9}"),
        Constraint::regex(r".{0,300}end"),
        Constraint::regex(r"[a-z]{2,5}[a-z0-9]*|\p{Han}+"),
        Constraint::choice(["yes", "yesterday", "no", "never mind", "日本", "日本語"]),
    ]
}

/// A random token of a mask; short ones are preferred, so that walks do not end at once.
fn pick(rng: &mut Rng, mask: &TokenMask) -> Option<maskwright::TokenId> {
    let count = mask.count();
    (count > 0).then(|| mask.iter().nth(rng.below(count)))?
}

/// Walks at random under the mask, and hands the fast mask, the plain one and the text to `check` at each step.
fn walk(
    rounds: u64,
    steps: usize,
    mut check: impl FnMut(&Constraint, &mut maskwright::Matcher, &TokenMask, &[u8]),
) {
    let vocabulary = vocabulary();
    let compiler = Compiler::new(vocabulary.clone());
    for (number, constraint) in constraints().iter().enumerate() {
        let compiled = compiler.compile(constraint).expect("the constraint compiles");
        for round in 0..rounds {
            let mut rng = Rng::new(round * 100 + number as u64);
            let mut matcher = compiled.matcher();
            matcher.set_eos_in_mask(false);
            let mut text = Vec::new();
            for _ in 0..steps {
                let mask = matcher.mask().expect("a mask").clone();
                check(constraint, &mut matcher, &mask, &text);
                let Some(token) = pick(&mut rng, &mask) else { break };
                matcher.accept(token).expect("the mask allows it");
                text.extend_from_slice(vocabulary.bytes(token));
            }
        }
    }
}

fn complain(constraint: &Constraint, text: &[u8], fast: &TokenMask, other: &TokenMask) -> String {
    let wrong: Vec<_> = (0..fast.size() as u32)
        .map(maskwright::TokenId)
        .filter(|&t| fast.contains(t) != other.contains(t))
        .take(5)
        .collect();
    format!("{constraint:?}\nafter {:?}: tokens {wrong:?} differ", String::from_utf8_lossy(text))
}

#[test]
fn the_fast_way_equals_the_plain_walk() {
    let (mut bits, mut row) = (0u64, Vec::new());
    walk(6, 25, |constraint, matcher, fast, text| {
        row.resize(fast.words().len(), 0);
        matcher.fill_mask(&mut row).expect("the row is large enough");
        let copied = TokenMask::from_words(&row, fast.size());
        assert!(*fast == copied, "by reference and copied: {}", complain(constraint, text, fast, &copied));
        matcher.set_strategy(Strategy::Reference);
        let plain = matcher.mask().expect("a mask").clone();
        matcher.set_strategy(Strategy::Fast);
        assert!(*fast == plain, "{}", complain(constraint, text, fast, &plain));
        bits += fast.size() as u64;
    });
    eprintln!("{bits} bits compared with the plain walk");
    assert!(bits > 100_000_000, "only {bits} bits were compared");
}

const EXPRESSIONS: &str = r#"start: expr
expr: expr "+" expr | expr "*" expr | "(" expr ")" | NUMBER | NAME
NUMBER: /[0-9]+(\.[0-9]+)?/
NAME: /(?!(if|else)\b)[a-zA-Z_][a-zA-Z_0-9]*/
%ignore /[ \t\n]+/"#;

const STATEMENTS: &str = r#"start: "SELECT"i NAME ("," NAME)* "FROM"i NAME ("WHERE"i test)?
test: test "AND"i test | test "OR"i test | NAME ("=" | "<") (NAME | STRING) | NAME "IN"i "(" STRING ("," STRING)* ")"
NAME: /[a-zA-Z_]\w{0,30}/
STRING: /'[^']*'/
%ignore /\s+/"#;

/// Counted and ambiguous constraints, each with a text: the mask is compared before the first token and after every other one.
#[test]
fn ambiguous_constraints_have_the_masks_of_the_plain_walk() {
    let vocabulary = vocabulary();
    let compiler = Compiler::new(vocabulary.clone());
    let cases = [
        (Constraint::regex("([A-Za-z]{1,7} ?){1,5}"), "inter one"),
        (Constraint::regex(r"(\w+\s?){1,4}"), "né w 三"),
        (Constraint::regex("([^,]{1,6},?){1,3}"), "a b,c"),
        (Constraint::regex(r"(.{0,9}\n?){1,3}"), "a b\n\nc"),
        (Constraint::regex(r"[a-z]{2,40}(-[a-z]{1,3}){0,5}"), "some-a-b"),
        (Constraint::lark(EXPRESSIONS), "a + (1.5 * if_2)"),
        (Constraint::lark(STATEMENTS), "select a from t where a = 'x y' and b in ('z')"),
        (Constraint::ebnf(r#"root ::= root "+" root | [0-9]+"#), "12+3+456"),
        (Constraint::ebnf(r#"root ::= root root | "a" | "ab""#), "aabaab"),
    ];
    let mut compared = 0;
    for (constraint, text) in &cases {
        let compiled = compiler.compile(constraint).expect("the constraint compiles");
        let mut matcher = compiled.matcher();
        let mut at = 0;
        loop {
            let fast = matcher.mask().expect("a mask").clone();
            let mut plain = matcher.fork();
            plain.set_strategy(Strategy::Reference);
            let plain = plain.mask().expect("a mask").clone();
            assert!(fast == plain, "{}", complain(constraint, &text.as_bytes()[..at], &fast, &plain));
            compared += 1;
            let Some(piece) =
                text.as_bytes().get(at..text.len().min(at + 3)).filter(|piece| !piece.is_empty())
            else {
                break;
            };
            matcher.accept_bytes(piece).expect("the text fits");
            at += piece.len();
        }
        assert!(matcher.is_accepting(), "{constraint:?}: the text is whole");
    }
    assert!(compared > 30, "only {compared} masks were compared");
}

/// What was learned goes to a file and comes back; masks with it equal masks without it.
#[test]
fn a_loaded_library_gives_the_same_masks() {
    let vocabulary = vocabulary();
    let schemas = || STRINGS.iter().map(|(schema, texts)| (Constraint::json_schema(*schema), *texts));
    let masks = |compiler: &Compiler| -> Vec<TokenMask> {
        let mut masks = Vec::new();
        for (constraint, texts) in schemas() {
            let compiled = compiler.compile(&constraint).expect("the constraint compiles");
            for text in texts {
                let mut matcher = compiled.matcher();
                matcher.accept_bytes(text.as_bytes()).expect("the text begins a valid one");
                masks.push(matcher.mask().expect("a mask").clone());
            }
        }
        masks
    };
    let first = Compiler::new(vocabulary.clone());
    let expected = masks(&first);
    let mut file = Vec::new();
    first.save_learnt(&mut file).expect("memory");
    let second = Compiler::new(vocabulary);
    second.load_learnt(&file).expect("the file is right");
    assert!(second.library().heap_bytes() * 2 > first.library().heap_bytes(), "little was loaded");
    assert!(masks(&second) == expected);
}

/// Strings with conditions, and texts that lead into states of all kinds: loops, nearly any string, windows that run out.
const STRINGS: [(&str, &[&str]); 18] = [
    (
        r#"{"type": "string", "pattern": "dev_[a-z]+"}"#,
        &["\"", "\"dev", "\"my dev_", "\"dev_x", "\"d\\u006", "\"日"],
    ),
    (r#"{"type": "string", "not": {"pattern": "dev_"}}"#, &["\"", "\"de", "\"my dev", "\"\\ud83d"]),
    (r#"{"type": "string", "pattern": "^[^/]"}"#, &["\"", "\"a", "\"é"]),
    (
        r#"{"type": "string", "pattern": "^[a-z0-9-]+$", "maxLength": 6}"#,
        &["\"", "\"abc", "\"abcde", "\"abcdef"],
    ),
    (
        r#"{"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$", "minLength": 3, "maxLength": 200}"#,
        &["\"", "\"a", "\"ab-"],
    ),
    (
        r#"{"type": "string", "pattern": "^(\\S+\\s+){0,3}\\S+$", "maxLength": 9}"#,
        &["\"", "\"one two", "\"a b c d"],
    ),
    (
        r#"{"type": "string", "format": "email", "maxLength": 20}"#,
        &["\"", "\"me@", "\"me@example.c", "\"me@example.com.abcd"],
    ),
    (
        r#"{"type": "string", "format": "email"}"#,
        &[
            "\"",
            "\"me",
            "\"me.",
            "\"me@",
            "\"me@example.c",
            "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz",
        ],
    ),
    (r#"{"type": "string", "pattern": "^[\\w ]+\\.csv$"}"#, &["\"", "\"a", "\"a.c", "\"a.csv", "\"a\\u006"]),
    (
        r#"{"type": "string", "pattern": "^.*\\.(csv|日本)$"}"#,
        &["\"", "\"a", "\"a.", "\"a.日", "\"a.\\u65e5"],
    ),
    (
        r#"{"type": "string", "pattern": "^(\\S+\\s+){0,40}\\S+$"}"#,
        &[
            "\"",
            "\"one",
            "\"one two ",
            "\"a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m",
        ],
    ),
    (
        r#"{"type": "string", "pattern": "^[a-z\\u00e9-\\u00ff\\u4e00-\\u9fff]{1,70}(!|\\?)$"}"#,
        &["\"", "\"日", "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl", "\"é!"],
    ),
    // Of a known length, and of up to one.
    (
        r#"{"type": "string", "pattern": "^@\\w{1,15}$"}"#,
        &["\"@", "\"@ab", "\"@abcdefghijk", "\"@abcdefghijklmn"],
    ),
    (r#"{"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-zé]{6}$"}"#, &["\"", "\"012345", "\"01234567-a"]),
    // Nearly any string: to die takes the letters of another word.
    (
        r#"{"type": "string", "oneOf": [{"pattern": "customer"}, {"pattern": "maker"}, {"pattern": "admin"}, {"pattern": "designer"}]}"#,
        &["\"", "\"make", "\"a maker, admi", "\"customer", "\"\\u0061dmi"],
    ),
    (
        r#"{"type": "string", "not": {"pattern": "dev_|[Xx]-ray"}}"#,
        &["\"", "\"de", "\"dev", "\"an x-r", "\"\\u0064ev"],
    ),
    (r#"{"type": "string", "pattern": "^.{2,5}$"}"#, &["\"", "\"日本", "\"ab\\t"]),
    (
        r#"{"type": "object", "patternProperties": {"^x-": {"type": "string"}, "[0-9]": {"type": "integer"}}}"#,
        &["{\"", "{\"x", "{\"x-", "{\"x-a", "{\"a1\": 3, \"", "{\"a\": \""],
    ),
];

#[test]
fn strings_with_conditions_equal_the_plain_walk() {
    let vocabulary = vocabulary();
    let compiler = Compiler::new(vocabulary.clone());
    let mut bits = 0u64;
    for (schema, prefixes) in STRINGS {
        let constraint = Constraint::json_schema(schema);
        let compiled = compiler.compile(&constraint).expect("the schema compiles");
        for (seed, prefix) in (0..).zip(prefixes) {
            let mut rng = Rng::new(seed);
            let mut matcher = compiled.matcher();
            matcher.set_eos_in_mask(false);
            matcher
                .accept_bytes(prefix.as_bytes())
                .unwrap_or_else(|error| panic!("{schema}: {prefix}: {error}"));
            let mut text = prefix.as_bytes().to_vec();
            for _ in 0..4 {
                let fast = matcher.mask().expect("a mask").clone();
                matcher.set_strategy(Strategy::Reference);
                let plain = matcher.mask().expect("a mask").clone();
                matcher.set_strategy(Strategy::Fast);
                assert!(fast == plain, "{}", complain(&constraint, &text, &fast, &plain));
                bits += fast.size() as u64;
                let Some(token) = pick(&mut rng, &fast) else { break };
                matcher.accept(token).expect("the mask allows it");
                text.extend_from_slice(vocabulary.bytes(token));
            }
        }
    }
    eprintln!("{bits} bits of strings with conditions compared with the plain walk");
    assert!(bits > 10_000_000, "only {bits} bits were compared");
}

/// Strings of which many states are alike, and texts that go through them: states share what is known of them as far as tokens cannot
/// tell them apart, and no farther.
const CHAINS: [(&str, &str); 9] = [
    (r#"{"type": "string", "pattern": "^(\\S+\\s+){0,14}\\S+$"}"#, " aé b"),
    (r#"{"type": "string", "pattern": "^(\\S+\\s+){0,14}\\S+$", "minLength": 4, "maxLength": 70}"#, " ab c"),
    (r#"{"type": "string", "pattern": "^[a-z一-鿿]{3,24}!?$"}"#, "a一"),
    (r#"{"type": "string", "pattern": "[0-9a-f]{20}"}"#, "1f"),
    (
        r#"{"type": "string", "oneOf": [{"pattern": "maker"}, {"pattern": "admin"}, {"pattern": "buyer"}]}"#,
        "make admi",
    ),
    // With a minimum, and room for any token or not.
    (r#"{"type": "string", "pattern": "a", "minLength": 24}"#, "b é"),
    (r#"{"type": "string", "pattern": "é|^x", "minLength": 9, "maxLength": 400}"#, "bç d"),
    (r#"{"type": "string", "pattern": "^[a-zA-Z0-9_]+$", "minLength": 5, "maxLength": 20}"#, "a_B9"),
    (r#"{"type": "string", "pattern": "[a-z]{2}", "minLength": 2, "maxLength": 3}"#, "y"),
];

#[test]
fn chains_equal_the_plain_walk() {
    let compiler = Compiler::new(vocabulary());
    let mut bits = 0u64;
    for (schema, part) in CHAINS {
        let constraint = Constraint::json_schema(schema);
        let compiled = compiler.compile(&constraint).expect("the schema compiles");
        let mut matcher = compiled.matcher();
        matcher.set_eos_in_mask(false);
        let text = format!("\"x{}", part.repeat(30));
        let mut read = String::new();
        for character in text.chars() {
            if matcher.accept_bytes(character.encode_utf8(&mut [0; 4]).as_bytes()).is_err() {
                break;
            }
            read.push(character);
            let fast = matcher.mask().expect("a mask").clone();
            matcher.set_strategy(Strategy::Reference);
            let plain = matcher.mask().expect("a mask").clone();
            matcher.set_strategy(Strategy::Fast);
            assert!(fast == plain, "{}", complain(&constraint, read.as_bytes(), &fast, &plain));
            bits += fast.size() as u64;
        }
    }
    eprintln!("{bits} bits of chains compared with the plain walk");
    assert!(bits > 20_000_000, "only {bits} bits were compared");
}

#[test]
fn masks_equal_the_oracle() {
    let vocabulary = vocabulary();
    let ordinary = vocabulary.ordinary().map(|(token, bytes)| (token.0, bytes));
    let tokens = Tokens::new(vocabulary.size(), ordinary);
    let compiler = Compiler::new(vocabulary.clone());
    let mut oracle: Option<(Constraint, Oracle)> = None;
    let mut bits = 0u64;
    walk(7, 18, |constraint, _, fast, text| {
        if oracle.as_ref().is_none_or(|(of, _)| of != constraint) {
            let (grammar, _) = compiler.grammar(constraint).expect("it was compiled before");
            oracle = Some((constraint.clone(), Oracle::new(&grammar)));
        }
        let Some((_, oracle)) = &oracle else { return };
        let state = oracle.run(&oracle.start(), text);
        let expected = TokenMask::from_words(oracle.mask(&state, &tokens).words(), vocabulary.size());
        assert!(*fast == expected, "{}", complain(constraint, text, fast, &expected));
        bits += fast.size() as u64;
    });
    eprintln!("{bits} bits compared with the oracle");
    assert!(bits > 100_000_000, "only {bits} bits were compared");
}
