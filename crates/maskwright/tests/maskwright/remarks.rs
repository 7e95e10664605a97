//! What frontends say about constraints that they accept comes with the compiled constraint.

use std::sync::Arc;

use maskwright::backend::Backend;
use maskwright::service::{Service, Settings};
use maskwright::{Compiler, Constraint, Options, Remarks, TokenId, Vocabulary, VocabularyBuilder};

fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=u8::MAX {
        builder.token(TokenId(byte.into()), &[byte]).unwrap();
    }
    builder.special(TokenId(256), "<end>").unwrap().eos(TokenId(256));
    Arc::new(builder.finish().unwrap())
}

const SCHEMA: &str = r#"{"type": "integer", "title": "Age"}"#;
/// A rule that nobody uses, in each notation.
const EBNF: &str = "root ::= \"yes\"\nunused ::= \"no\"";
const LARK: &str = "start: \"yes\"\nunused: \"no\"";

fn report(remarks: &Remarks) -> Vec<String> {
    let entries = remarks.report.as_ref().expect("a schema has a report").entries();
    let mut lines: Vec<String> =
        entries.iter().map(|entry| format!("{} {}", entry.pointer, entry.coverage)).collect();
    lines.sort();
    lines
}

#[test]
fn compiling_gives_the_report_and_the_warnings() {
    let compiler = Compiler::new(vocabulary());
    let compiled = compiler.compile(&Constraint::json_schema(SCHEMA)).unwrap();
    assert_eq!(report(compiled.remarks()), ["/title annotation", "/type enforced"]);
    assert!(compiled.remarks().warnings.is_empty());
    assert!(compiled.heap_bytes() > compiled.bound().heap_bytes(), "remarks take memory");
    for constraint in [Constraint::ebnf(EBNF), Constraint::gbnf(EBNF), Constraint::lark(LARK)] {
        let compiled = compiler.compile(&constraint).unwrap();
        let warnings = &compiled.remarks().warnings;
        assert_eq!(warnings.len(), 1, "{constraint:?}");
        assert!(warnings[0].message.contains("unused"), "{}", warnings[0]);
        assert!(compiled.remarks().report.is_none());
        assert!(compiled.heap_bytes() > compiled.bound().heap_bytes(), "{constraint:?}");
    }
    let compiled = compiler.compile(&Constraint::regex("a+")).unwrap();
    assert!(compiled.remarks().warnings.is_empty() && compiled.remarks().report.is_none());
    assert_eq!(compiled.heap_bytes(), compiled.bound().heap_bytes());
}

#[test]
fn so_do_the_stages_the_traits_and_the_service() {
    let compiler = Arc::new(Compiler::new(vocabulary()));
    let (schema, grammar) = (Constraint::json_schema(SCHEMA), Constraint::ebnf(EBNF));
    let (read, remarks) = schema.grammar(&Options::default(), None).unwrap();
    let compiled = compiler.compile_grammar(&read, remarks).unwrap();
    assert_eq!(report(compiled.remarks()).len(), 2);
    let through_trait = Backend::compile(&*compiler, &schema, &Options::default()).unwrap();
    assert_eq!(report(through_trait.remarks()).len(), 2);
    let client = Service::new(Settings::default()).unwrap().client(compiler);
    for _ in 0..2 {
        // The second time it comes out of the cache.
        assert_eq!(report(client.compile(&schema).unwrap().remarks()).len(), 2);
        assert_eq!(client.compile(&grammar).unwrap().remarks().warnings.len(), 1);
    }
}

/// An error that is found behind the frontend names the place in the schema, also where the stages are called one by one.
#[test]
fn places_of_schemas_are_named() {
    let mut options = Options::default();
    options.limits.nodes = 20;
    let compiler = Compiler::with_options(vocabulary(), options);
    let schema = Constraint::json_schema(r#"{"properties": {"a": {"enum": ["some word", "another word"]}}}"#);
    let error = compiler.compile(&schema).unwrap_err().to_string();
    let (grammar, remarks) = compiler.grammar(&schema).unwrap();
    let staged = compiler.compile_grammar(&grammar, remarks).unwrap_err().to_string();
    assert_eq!(error, staged);
    let bare = compiler.compile_grammar(&grammar, Remarks::default()).unwrap_err().to_string();
    assert_ne!(error, bare, "without the report nobody knows the place");
}
