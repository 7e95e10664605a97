//! Fast paths switched off one by one, and thresholds moved, over a real vocabulary: no mask changes.
//!
//! The tokenizer comes from `make assets`; `make test` fetches it first.

use std::sync::Arc;

use maskwright::json_schema::{self, KeyOrder};
use maskwright::{Budget, Compiler, Constraint, Matcher, Options, Vocabulary};
use maskwright_engine::{FastPath, Tuning};

fn vocabulary() -> Arc<Vocabulary> {
    super::assets::tokenizer("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf").vocabulary().clone()
}

const OBJECT: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "code": {"type": "string", "pattern": "^[a-z]{2,60}$"},
        "text": {"type": "string", "not": {"const": "none"}, "minLength": 2},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 9}},
        "size": {"type": "number"}
    },
    "additionalProperties": {"type": "integer"}
}"#;

/// More keys than there are states for.
const KEYS: &str = r#"{
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "name": {"type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
        "nick": {"enum": ["x", "y"]},
        "id": {"type": "integer"},
        "ident": {"type": "boolean"},
        "inner": {
            "type": "object",
            "properties": {"k1": {}, "k2": {}, "k3": {}, "k4": {}, "k5": {}, "k6": {}, "k7": {}, "k8": {}},
            "additionalProperties": {"type": "integer"},
            "required": ["k8"]
        },
        "zip": {"type": "string", "maxLength": 4}
    },
    "required": ["id", "name"],
    "additionalProperties": false
}"#;

const ARITHMETIC: &str = r#"start: expr
expr: expr "+" expr | expr "*" expr | "(" expr ")" | NUMBER | NAME
NUMBER: /[0-9]+(\.[0-9]+)?/
NAME: /[a-zA-Z_][a-zA-Z_0-9]*/
%ignore /[ \t\n]+/"#;

/// Constraints and texts which together take every fast path.
fn cases() -> Vec<(Constraint, &'static str)> {
    vec![
        (
            Constraint::json_schema(OBJECT),
            r#"{"name": "Ada Lovelace", "code": "analytical", "text": "notes", "tags": ["a", "bc"], "other": 12}"#,
        ),
        (
            Constraint::json_schema(r#"{"type": "string", "pattern": "^(\\S+\\s+){0,40}\\S+$"}"#),
            "\"one two three four five six seven eight nine ten eleven twelve thirteen\"",
        ),
        (
            Constraint::json_schema(r#"{"type": "string", "not": {"pattern": "dev_"}}"#),
            "\"a text about developers\"",
        ),
        (Constraint::regex(r"([^\n]{0,80}\n){1,20}"), "The first line\nand the second one\n"),
        (Constraint::regex(r"[a-z]{2,5}[a-z0-9]*( [^\n]{0,200})?"), "word and what follows it"),
        (Constraint::lark(ARITHMETIC), "foo + 12 * (bar_2 + 3.5) * x + 7"),
    ]
}

/// The same for keys in any order.
fn unordered_cases() -> Vec<(Constraint, &'static str)> {
    let texts = [
        r#"{"nick": "x", "name": "Ada", "inner": {"k3": 1, "o": 2, "k8": "t", "op": 7}, "id": 1, "names": [], "zip": "1234"}"#,
        r#"{"zip":"1","ident":true,"inner":{"k8":[],"k1":{"k1":1}},"nick":"y","names":["q"],"id":2,"a":3,"name":"B"}"#,
    ];
    texts.map(|text| (Constraint::json_schema(KEYS), text)).into()
}

/// Every mask on the way through the texts, copied and by reference, and once more with a budget.
fn masks(vocabulary: &Arc<Vocabulary>) -> Vec<Vec<u32>> {
    let compiler = Compiler::new(vocabulary.clone());
    let mut masks = Vec::new();
    let mut add = |matcher: &mut Matcher, text: &str| {
        let mut row = vec![0; vocabulary.size().div_ceil(32)];
        // Two characters at a time, so that masks are asked for everywhere.
        for piece in text.as_bytes().chunks(2) {
            matcher.fill_mask(&mut row).expect("within limits");
            assert_eq!(matcher.mask_words().expect("within limits"), row, "by reference and copied");
            masks.push(row.clone());
            matcher.accept_bytes(piece).expect("the text is valid");
        }
    };
    for (constraint, text) in cases() {
        let compiled = compiler.compile(&constraint).expect("the constraint compiles");
        for _ in 0..2 {
            add(&mut compiled.matcher(), text);
        }
        let mut matcher = compiled.matcher();
        matcher.set_budget(Some(Budget::new(80))).expect("that is enough");
        add(&mut matcher, text);
    }
    let json_schema = json_schema::Options::default().with_key_order(KeyOrder::Any);
    let unordered = Compiler::with_options(vocabulary.clone(), Options { json_schema, ..Options::default() });
    for (constraint, text) in unordered_cases() {
        let compiled = unordered.compile(&constraint).expect("the constraint compiles");
        for _ in 0..2 {
            add(&mut compiled.matcher(), text);
        }
    }
    masks
}

#[test]
fn no_fast_path_and_no_threshold_changes_a_mask() {
    let vocabulary = vocabulary();
    let expected = masks(&vocabulary);
    let unused: Vec<FastPath> = FastPath::ALL.into_iter().filter(|path| path.taken() == 0).collect();
    assert!(unused.is_empty(), "nothing is shown of {unused:?}");
    let without =
        FastPath::ALL.into_iter().map(|path| (format!("without {path:?}"), Tuning::DEFAULT.without(path)));
    let at =
        [0, 1, 3, u64::MAX].into_iter().map(|value| (format!("thresholds at {value}"), Tuning::all(value)));
    for (name, tuning) in without.chain(at) {
        let found = tuning.run(|| masks(&vocabulary));
        let different = expected.iter().zip(&found).position(|(expected, found)| expected != found);
        assert_eq!(different, None, "{name}: the first mask that differs");
    }
}
