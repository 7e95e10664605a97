//! What every backend must do, for each of them. With the crate feature `llguidance` there are two.

use std::sync::Arc;

use maskwright::backend::{Backend, Matching, Status};
use maskwright::service::{Service, Settings};
use maskwright::{Compiler, Constraint, Error, MatchError, Options, TokenId, Vocabulary, VocabularyBuilder};
use maskwright_oracle::generate::Rng;

const END: TokenId = TokenId(300);

/// All single bytes, some longer tokens, and an end.
fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=255u8 {
        builder.token(TokenId(u32::from(byte)), &[byte]).expect("a new token");
    }
    let longer =
        ["yes", "no", "ye", "true", "{\"", "\":", ", ", "[1", "12", "\"}", "na", "é", "\"name\": \""];
    for (id, text) in (256..).zip(longer) {
        builder.token(TokenId(id), text.as_bytes()).expect("a new token");
    }
    builder.special(END, "<end>").expect("a new token").eos(END);
    Arc::new(builder.finish().expect("a vocabulary"))
}

fn backends() -> Vec<Arc<dyn Backend>> {
    vec![
        Arc::new(Compiler::new(vocabulary())),
        #[cfg(feature = "llguidance")]
        Arc::new(maskwright::backend::Llguidance::new(vocabulary()).expect("it takes the vocabulary")),
    ]
}

/// Constraints that every backend has, with texts that are complete, texts that can be completed, and texts that cannot.
type Case = (Constraint, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

fn cases() -> Vec<Case> {
    let person = r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
                     "required": ["name"], "additionalProperties": false}"#;
    vec![
        (
            Constraint::choice(["yes", "no", "not (yet)"]),
            &["yes", "no", "not (yet)"],
            &["", "ye", "not"],
            &["yet", "noy"],
        ),
        (
            Constraint::regex("[a-c]+(-[0-9]{2})?"),
            &["a", "abc", "ab-12"],
            &["", "a-", "a-1"],
            &["d", "-", "a-123"],
        ),
        (Constraint::regex("é*x"), &["x", "ééx"], &["é", "\u{e9}\u{e9}"], &["ex", "xé"]),
        (
            Constraint::json_schema(person),
            &[r#"{"name": "Ada"}"#, r#"{"name": "é\n", "age": -7}"#],
            &["{", r#"{"name""#],
            &[r#"{"x"#, r#"{"name": 1"#, "[", r#"{"name": "Ada"}}"#],
        ),
        (
            Constraint::json_schema(
                r#"{"type": "array", "items": {"enum": [12, true, "na"]}, "maxItems": 2}"#,
            ),
            &["[]", "[12, true]", "[\"na\"]"],
            &["[1", "[12,"],
            &["[13", "[12, 12,"],
        ),
    ]
}

/// The text as single bytes, which every vocabulary here has.
fn bytes(text: &str) -> impl Iterator<Item = TokenId> {
    text.bytes().map(|byte| TokenId(u32::from(byte)))
}

fn accept_all(matcher: &mut dyn Matching, text: &str) -> Result<(), MatchError> {
    bytes(text).try_for_each(|token| matcher.accept(token))
}

fn mask(matcher: &mut dyn Matching) -> Vec<u32> {
    let mut words = vec![u32::MAX; END.index().div_ceil(32) + 2];
    matcher.fill_mask(&mut words).expect("there is room");
    let shown = matcher.mask_words().expect("a mask");
    assert_eq!(shown, &words[..shown.len()], "by reference and copied");
    words
}

fn is_set(mask: &[u32], token: TokenId) -> bool {
    mask[token.index() / 32] >> (token.index() % 32) & 1 == 1
}

/// Runs a check on every backend and every constraint.
fn each(check: impl Fn(&dyn Fn() -> Box<dyn Matching>, &Case)) {
    for backend in backends() {
        for case in cases() {
            let compiled = Backend::compile(&*backend, &case.0, &Options::default());
            let compiled =
                compiled.unwrap_or_else(|error| panic!("{}: {:?}: {error}", backend.name(), case.0));
            check(&|| compiled.clone().start(), &case);
        }
    }
}

#[test]
fn texts_are_accepted_or_refused() {
    each(|start, (constraint, complete, open, wrong)| {
        for text in *complete {
            let mut matcher = start();
            accept_all(&mut *matcher, text).unwrap_or_else(|error| panic!("{constraint:?}: {text}: {error}"));
            assert!(matcher.status() >= Status::Accepting, "{constraint:?}: {text}");
            assert!(is_set(&mask(&mut *matcher), END), "{constraint:?}: {text}");
            matcher.accept(END).expect("a complete text can end");
            assert_eq!(matcher.status(), Status::Terminated);
            assert!(mask(&mut *matcher).iter().all(|word| *word == 0), "nothing follows the end");
            assert_eq!(matcher.accept(END), Err(MatchError::Terminated));
        }
        for text in *open {
            let mut matcher = start();
            accept_all(&mut *matcher, text).unwrap_or_else(|error| panic!("{constraint:?}: {text}: {error}"));
            assert_eq!(matcher.status(), Status::Open, "{constraint:?}: {text}");
            assert_eq!(matcher.accept(END), Err(MatchError::NotComplete), "{constraint:?}: {text}");
        }
        for text in *wrong {
            assert!(accept_all(&mut *start(), text).is_err(), "{constraint:?}: {text}");
        }
    });
}

/// A token is accepted if and only if the mask allows it, and a refusal changes nothing.
#[test]
fn masks_and_acceptance_agree() {
    let vocabulary = vocabulary();
    each(|start, (constraint, complete, ..)| {
        let mut matcher = start();
        for token in bytes(complete[complete.len() - 1]) {
            let before = mask(&mut *matcher);
            for id in (0..vocabulary.size() as u32 + 40).map(TokenId) {
                let is_allowed = vocabulary.is_used(id) && is_set(&before, id);
                assert_eq!(matcher.allows(id), Ok(is_allowed), "{constraint:?}: token {id}");
            }
            assert_eq!(mask(&mut *matcher), before, "{constraint:?}: asking changed something");
            matcher.accept(token).expect("it belongs to the text");
        }
    });
}

/// Random walks with rollbacks, forks and resets end where a fresh matcher ends.
#[test]
fn history_can_be_undone_and_copied() {
    each(|start, (constraint, ..)| {
        let mut rng = Rng::new(7);
        let (mut matcher, mut path) = (start(), Vec::new());
        for _ in 0..150 {
            let words = mask(&mut *matcher);
            let allowed: Vec<TokenId> =
                (0..=END.0).map(TokenId).filter(|token| is_set(&words, *token)).collect();
            match (rng.below(6), rng.choose(&allowed)) {
                (0, _) | (_, None) => {
                    let steps = rng.below(path.len() + 1).min(5).max(usize::from(allowed.is_empty()));
                    matcher.rollback(steps).expect("so many steps were taken");
                    path.truncate(path.len() - steps);
                }
                (1, _) => matcher = matcher.fork(),
                (2, _) if path.len() > 40 => {
                    matcher.reset();
                    path.clear();
                }
                (_, Some(&token)) => {
                    matcher.accept(token).unwrap_or_else(|error| panic!("{constraint:?}: {path:?}: {error}"));
                    path.push(token);
                }
            }
            let mut fresh = start();
            path.iter().try_for_each(|token| fresh.accept(*token)).expect("the same path");
            assert_eq!(mask(&mut *fresh), mask(&mut *matcher), "{constraint:?}: {path:?}");
            assert_eq!(fresh.status(), matcher.status(), "{constraint:?}: {path:?}");
        }
        let steps = path.len();
        assert_eq!(matcher.rollback(steps + 1), Err(MatchError::NothingToUndo { steps }));
    });
}

#[test]
fn what_is_wrong_is_refused() {
    for backend in backends() {
        let compile = |constraint| Backend::compile(&*backend, &constraint, &Options::default());
        for wrong in [
            Constraint::regex("(a"),
            Constraint::json_schema("{"),
            Constraint::json_schema(r#"{"type": "nonsense"}"#),
        ] {
            let error = compile(wrong.clone()).expect_err("it is wrong");
            assert!(!error.to_string().is_empty(), "{}: {wrong:?}", backend.name());
        }
        let compiled = compile(Constraint::regex("a*")).expect("it is right");
        let mut matcher = compiled.start();
        assert!(matches!(matcher.fill_mask(&mut [0; 2]), Err(MatchError::MaskTooShort { words: 10 })));
        assert_eq!(matcher.accept(TokenId(9_999)), Err(MatchError::UnknownToken));
        assert_eq!(matcher.accept(TokenId(299)), Err(MatchError::NoText), "{}", backend.name());
        assert_eq!(matcher.rollback(1), Err(MatchError::NothingToUndo { steps: 0 }));
        assert_eq!(matcher.status(), Status::Accepting, "nothing of this changed it");
    }
}

/// Where the languages are the same, so are the masks, bit by bit.
#[test]
fn backends_allow_the_same_tokens() {
    for (constraint, complete, ..) in cases().into_iter().take(3) {
        let compile = |backend: &Arc<dyn Backend>| {
            Backend::compile(&**backend, &constraint, &Options::default()).expect("it compiles").start()
        };
        let mut matchers: Vec<_> = backends().iter().map(compile).collect();
        for token in bytes(complete[complete.len() - 1]) {
            let masks: Vec<_> = matchers.iter_mut().map(|matcher| mask(&mut **matcher)).collect();
            assert!(masks.iter().all(|mask| *mask == masks[0]), "{constraint:?}");
            for matcher in &mut matchers {
                matcher.accept(token).expect("it belongs to the text");
            }
        }
    }
}

#[test]
fn the_service_works_over_every_backend() {
    let service = Service::new(Settings::default()).expect("threads can be started");
    for backend in backends() {
        let name = backend.name();
        let client = service.client(backend);
        for (constraint, complete, ..) in cases() {
            let mut matcher = client.compile(&constraint).expect("it compiles").matcher();
            for token in bytes(complete[0]) {
                matcher.accept(token).expect("it belongs to the text");
            }
            assert!(matcher.status() >= Status::Accepting, "{name}: {constraint:?}");
            assert_eq!(matcher.inner().as_engine().is_some(), name == "maskwright");
        }
    }
    let entries = service.statistics().cache.entries;
    assert_eq!(entries, (cases().len() * backends().len()) as u64, "backends do not share constraints");
}

#[cfg(feature = "llguidance")]
#[test]
fn llguidance_says_what_it_has_not() {
    use maskwright::json_schema::{Options as SchemaOptions, Strictness};
    let backend = maskwright::backend::Llguidance::new(vocabulary()).expect("it takes the vocabulary");
    let error =
        backend.compile(&Constraint::ebnf("root ::= \"a\""), &Options::default()).expect_err("no EBNF");
    assert_eq!(
        error.to_string(),
        "the backend llguidance has no EBNF grammars; use the backend maskwright, or leave it out"
    );
    let json_schema = SchemaOptions::default().with_strictness(Strictness::Strict);
    let options = Options { json_schema, ..Options::default() };
    let error = backend.compile(&Constraint::json_schema("{}"), &options).expect_err("no such option");
    assert!(matches!(error, Error::Unsupported { backend: "llguidance", .. }), "{error}");
    // Limits are no choice of a language: the service lowers them for every request.
    assert!(backend.compile(&Constraint::json_schema("{}"), &Options::default().within(1 << 26)).is_ok());
    let mut builder = VocabularyBuilder::new();
    builder.token(TokenId(0), b"a").expect("a token");
    let endless = Arc::new(builder.finish().expect("a vocabulary"));
    assert!(matches!(maskwright::backend::Llguidance::new(endless), Err(Error::Unsupported { .. })));
}

#[cfg(not(feature = "llguidance"))]
#[test]
fn errors_of_other_backends_are_readable() {
    let error = Error::Unsupported { backend: "other", what: "EBNF grammars".into() };
    assert_eq!(
        error.to_string(),
        "the backend other has no EBNF grammars; use the backend maskwright, or leave it out"
    );
}
