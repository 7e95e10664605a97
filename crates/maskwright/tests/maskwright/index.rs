//! Indexes over a real vocabulary: walks in which every mask equals the matcher's, and every state read byte by byte.
//!
//! The tokenizer comes from `make assets`, as for `real_vocabulary.rs`.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

use std::fs;
use std::sync::Arc;

use maskwright::{Compiler, Constraint, Error, Index, IndexLimits, StateId, TokenId, Vocabulary};
use maskwright_oracle::generate::Rng;
use serde::Deserialize;

use super::assets::{llama, root};

fn vocabulary() -> Arc<Vocabulary> {
    llama().vocabulary().clone()
}

const CLOSED: &str = r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 4},
    "kind": {"enum": ["cat", "cattle", 1, null]}, "é": {"type": "array", "items": {"type": "number"}}},
    "required": ["name"], "additionalProperties": false}"#;

/// One for each trie that an index may read, and merged ones.
fn constraints() -> Vec<Constraint> {
    vec![
        Constraint::regex(r"[a-z0-9]+@[a-z]+\.[a-z]{2,3}"),
        Constraint::regex(r"[0-9a-f]{8}-[0-9a-f]{4}"),
        Constraint::regex(r"(https?://)?[\da-z.-]+"),
        Constraint::regex(r".{30}"),
        Constraint::regex(r"\p{Han}+|[à-ü]{1,3}"),
        Constraint::choice(["yes", "yesterday", "日本", "日本語"]),
        Constraint::json_schema(CLOSED),
    ]
}

#[test]
fn masks_of_random_walks_equal_the_matchers() {
    let compiler = Compiler::new(vocabulary());
    let (mut rng, mut masks) = (Rng::new(5), 0);
    for constraint in constraints() {
        let index = compiler.index(&constraint, &IndexLimits::default()).expect("a finite number of states");
        let mut file = Vec::new();
        index.save(&mut file).expect("memory is large enough");
        let index = Index::from_bytes(file).expect("as it was saved");
        let bound = compiler.compile(&constraint).expect("a sound constraint");
        let (mut ours, mut theirs) = (vec![0; index.mask_words()], vec![0; index.mask_words()]);
        for _ in 0..6 {
            let (mut state, mut matcher) = (index.initial_state(), bound.matcher());
            for _ in 0..12 {
                index.fill_mask(state, &mut ours).expect("long enough");
                matcher.fill_mask(&mut theirs).expect("long enough");
                assert!(ours == theirs, "{constraint:?}: state {}", state.0);
                assert_eq!(index.is_terminal(state), matcher.is_accepting());
                masks += 1;
                let allowed = index.allowed_tokens(state);
                let Some(&token) = rng.choose(&allowed) else { panic!("{constraint:?}: stuck") };
                let refused = TokenId(rng.below(index.vocabulary_size()) as u32);
                assert_eq!(Ok(index.allows(state, refused)), matcher.allows(refused));
                state = index.next_state(state, token).expect("its bit is set");
                matcher.accept(token).expect("its bit is set");
                if state == StateId::ENDED {
                    assert!(matcher.is_terminated());
                    break;
                }
            }
        }
    }
    eprintln!("{masks} masks");
    assert!(masks > 100);
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    pattern: Option<String>,
    #[serde(default)]
    accept: Vec<String>,
    /// Read with options that are not the default, which other tests do.
    #[serde(default, rename = "ignore_case")]
    folded: bool,
    #[serde(default)]
    ascii: bool,
}

/// The patterns of the test data: texts that must be accepted are, token by token in single bytes, and for small indexes every
/// state and token is read byte by byte.
#[test]
fn the_patterns_of_the_test_data_have_indexes() {
    let vocabulary = vocabulary();
    let compiler = Compiler::new(vocabulary.clone());
    let byte_token = |byte: u8| {
        let node = vocabulary.trie().find(&[byte]).expect("every byte has a token");
        TokenId(vocabulary.trie().tokens(node)[0])
    };
    let (mut indexes, mut states) = (0, 0);
    for file in ["anchors", "classes", "groups_and_flags", "seed_000", "unicode"] {
        let path = root().join(format!("testdata/regex/{file}.toml"));
        let text = fs::read_to_string(&path).expect("the test data is there");
        let cases: Cases = toml::from_str(&text).expect("the test data is sound");
        for case in cases.case {
            let Some(pattern) = case.pattern.as_ref().filter(|_| !case.folded && !case.ascii) else {
                continue;
            };
            let constraint = Constraint::regex(pattern);
            let index = match compiler.index(&constraint, &IndexLimits::default()) {
                Ok(index) => index,
                // Empty languages, and patterns that are wrong on purpose.
                Err(Error::Index(_) | Error::Source(_)) if case.accept.is_empty() => continue,
                Err(error) => panic!("{file}/{}: {error}", case.name),
            };
            for text in &case.accept {
                let end = text.bytes().try_fold(index.initial_state(), |state, byte| {
                    index.next_state(state, byte_token(byte)).ok()
                });
                assert!(end.is_some_and(|end| index.is_terminal(end)), "{file}/{}: {text:?}", case.name);
            }
            indexes += 1;
            states += index.len();
            if index.len() <= 4 {
                let checks = compiler.verify_index(&index, &constraint, &IndexLimits::default());
                assert!(matches!(checks, Ok(Ok(_))), "{file}/{}: {checks:?}", case.name);
            }
        }
    }
    eprintln!("{indexes} indexes, {states} states");
    assert!(indexes > 30, "{indexes}");
}
