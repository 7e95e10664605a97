//! Errors say what kind of failure they are, and where they come from.

use core::error::Error as _;
use core::time::Duration;
use std::sync::Arc;

use maskwright::service::{Service, Settings};
use maskwright::{
    BudgetError, Category, CompileError, Compiler, Constraint, Diagnostic, Error, IndexError, IndexLimits,
    MatchError, Options, TokenId, VocabularyBuilder, choice, json_schema, service, tag,
};
use maskwright_automata::{CancelToken, with_cancel};

fn compiler(options: Options) -> Compiler {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=u8::MAX {
        builder.token(TokenId(byte.into()), &[byte]).unwrap();
    }
    builder.special(TokenId(256), "<end>").unwrap().eos(TokenId(256));
    Compiler::with_options(Arc::new(builder.finish().unwrap()), options)
}

fn refused(constraint: &Constraint) -> Error {
    let mut options = Options::default();
    options.choice.choices = 2;
    options.limits.nodes = 400;
    options.json_schema.limits.schema_bytes = 200;
    compiler(options).compile(constraint).expect_err("it is wrong")
}

fn too_many_nodes() -> Constraint {
    Constraint::ebnf(format!("root ::= \"{}\" root | \"x\"", "ab".repeat(500)))
}

#[test]
fn refused_constraints_are_wrong_not_supported_or_too_large() {
    let draft_3 = r#"{"$schema": "http://json-schema.org/draft-03/schema#"}"#;
    let both = r#"{"$schema": "http://json-schema.org/draft-03/schema#", "type": 7}"#;
    let long = format!(r#"{{"title": "{}"}}"#, "x".repeat(200));
    for (constraint, category) in [
        (Constraint::regex("(a"), Category::Invalid),
        (Constraint::ebnf("root ::= missing"), Category::Invalid),
        (Constraint::lark("start: start"), Category::Invalid),
        (Constraint::choice::<String>([]), Category::Invalid),
        (Constraint::choice(["a", "b", "c"]), Category::Limit),
        (Constraint::json_schema("{"), Category::Invalid),
        (Constraint::json_schema(draft_3), Category::Unsupported),
        (Constraint::json_schema(both), Category::Invalid),
        (Constraint::json_schema(long), Category::Limit),
        (Constraint::structural_tag("[]"), Category::Invalid),
        (too_many_nodes(), Category::Limit),
    ] {
        let error = refused(&constraint);
        assert_eq!(error.category(), category, "{constraint:?}: {error}");
    }
}

#[test]
fn what_was_told_to_stop_is_not_wrong() {
    let compiler = compiler(Options::default());
    for constraint in [
        Constraint::regex("a".repeat(100_000)),
        Constraint::ebnf("root ::= ".to_owned() + &"\"a\" ".repeat(100_000)),
        Constraint::lark("start: ".to_owned() + &"\"a\" ".repeat(100_000)),
        Constraint::json_schema(
            r#"{"type": "object", "properties": {"a": {"type": "string", "pattern": "a"}}}"#,
        ),
        Constraint::structural_tag(
            r#"{"type": "sequence", "elements": [{"type": "regex", "pattern": "a"}]}"#,
        ),
    ] {
        let stop = CancelToken::new();
        stop.cancel();
        let error = with_cancel(&stop, || compiler.compile(&constraint)).expect_err("it stops");
        assert_eq!(error.category(), Category::Cancelled, "{:?}: {error}", constraint.kind());
    }
    let mut options = Options::default();
    options.regex.source_bytes = 3;
    options.ebnf.limits.rules = 1;
    options.lark.limits.source_bytes = 3;
    for constraint in [
        Constraint::regex("abcd"),
        Constraint::ebnf("root ::= a\na ::= \"a\""),
        Constraint::lark("start: \"a\""),
    ] {
        let error = self::compiler(options.clone()).compile(&constraint).expect_err("it is too large");
        assert_eq!(error.category(), Category::Limit, "{:?}: {error}", constraint.kind());
    }
}

#[test]
fn the_source_is_the_error_of_the_stage() {
    fn is<E: core::error::Error + 'static>(constraint: &Constraint) {
        let error = refused(constraint);
        let source = error.source().expect("there is a source");
        assert!(source.is::<E>(), "{constraint:?}: {source:?}");
        assert!(error.to_string().contains(&source.to_string()));
    }
    is::<Diagnostic>(&Constraint::regex("(a"));
    is::<choice::ChoiceError>(&Constraint::choice(["a", "b", "c"]));
    is::<json_schema::SchemaError>(&Constraint::json_schema("{"));
    is::<tag::TagError>(&Constraint::structural_tag("[]"));
    is::<CompileError>(&too_many_nodes());
    let recursive = Constraint::ebnf("root ::= \"(\" root? \")\"");
    let error = compiler(Options::default()).index(&recursive, &IndexLimits::default()).unwrap_err();
    assert_eq!(error.category(), Category::Unsupported);
    assert!(error.source().is_some_and(<dyn core::error::Error>::is::<IndexError>));
}

#[test]
fn the_service_has_kinds_of_its_own() {
    let settings = Settings { timeout: Duration::ZERO, ..Settings::default() };
    let client = Service::new(settings).unwrap().client(Arc::new(compiler(Options::default())));
    let error = client.compile(&Constraint::regex("a")).unwrap_err();
    assert_eq!(error.category(), Category::Timeout, "{error}");
    let client = Service::new(Settings::default()).unwrap().client(Arc::new(compiler(Options::default())));
    let error = client.compile(&Constraint::regex("(a")).unwrap_err();
    assert_eq!(error.category(), Category::Invalid, "as what it refuses for");
    assert!(error.source().is_some_and(<dyn core::error::Error>::is::<Error>));
    for (error, category) in [
        (service::Error::TooLarge { bytes: 2, limit: 1 }, Category::Limit),
        (service::Error::TooMuchText { bytes: 2, limit: 1 }, Category::Limit),
        (service::Error::Panicked { message: "oh".into() }, Category::Internal),
        (service::Error::Busy { limit: 1 }, Category::Busy),
        (service::Error::Closed, Category::Closed),
    ] {
        assert_eq!(error.category(), category, "{error}");
    }
}

#[test]
fn so_have_errors_of_matching() {
    for (error, category) in [
        (MatchError::NotAllowed { bytes: 0 }, Category::NotAllowed),
        (MatchError::NotComplete, Category::NotAllowed),
        (MatchError::OutOfTokens, Category::NotAllowed),
        (MatchError::UnknownToken, Category::UnknownToken),
        (MatchError::NothingToUndo { steps: 0 }, Category::Argument),
        (MatchError::TooAmbiguous, Category::Limit),
        (MatchError::Cancelled, Category::Cancelled),
        (MatchError::MaskTooShort { words: 1 }, Category::BufferTooShort),
        (MatchError::GaveUp("oh".into()), Category::Internal),
    ] {
        assert_eq!(Category::from(&error), category, "{error}");
        // Where it is not known whether a token may come, it is not said that it may not.
        assert_eq!(error.is_limit(), category == Category::Limit);
        assert!(!error.is_undecided() || category != Category::NotAllowed);
    }
    assert_eq!(Category::from(&BudgetError::NoWay), Category::Budget);
}
