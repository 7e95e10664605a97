//! Whatever a public signature mentions can be named through this crate alone. That this file compiles is most of the test.

use std::sync::Arc;

use maskwright::{
    AutomatonCache, ByteSet, CharSet, Compiler, Constraint, Expr, ExprId, Grammar, GrammarBuilder,
    GrammarError, Index, IndexError, IndexLimits, IndexResource, LimitError, LimitResource, Options,
    Problems, Program, ProgramDot, ProgramListing, Remarks, Rule, RuleId, TokenBase, TokenId, TokenRef,
    TokenSet, Vocabulary, VocabularyBuilder, VocabularyError, VocabularyLoadError, choice, json_schema,
    regex, regular, tag,
};

fn vocabulary() -> Result<Arc<Vocabulary>, VocabularyError> {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=u8::MAX {
        builder.token(TokenId(byte.into()), &[byte])?;
    }
    builder.special(TokenId(256), "<call>")?;
    builder.special(TokenId(257), "<end>")?.eos(TokenId(257));
    Ok(Arc::new(builder.finish()?))
}

/// `<call>` or letters, and what a pattern matches behind them.
fn grammar() -> Result<Grammar, GrammarError> {
    let mut builder = GrammarBuilder::new();
    let root: RuleId = builder.declare("root");
    let call: ExprId = builder.token(TokenSet::these([TokenRef::name("<call>")]));
    let letters = builder.class(CharSet::from_ranges([('a', 'c')]));
    let letters = builder.repeat(letters, 1, Some(3));
    let digit =
        regex::lower("[0-9]", &regex::Options::default(), &mut builder).expect("the pattern is right");
    let begin = builder.alt([call, letters]);
    let whole = builder.seq([begin, digit]);
    builder.define(root, whole);
    builder.finish(root)
}

#[test]
fn a_grammar_is_built_compiled_and_asked_for_bytes() {
    let grammar = grammar().unwrap();
    let rule: &Rule = grammar.rule(grammar.root());
    assert_eq!(rule.name(), "root");
    assert!(matches!(grammar.expr(rule.expr()), Expr::Seq(_)));
    let asks = |expr: &Expr| matches!(expr, Expr::Token(set) if set.base() == TokenBase::Nothing);
    assert_eq!(grammar.exprs().iter().filter(|expr| asks(expr)).count(), 1);

    let compiler = Compiler::new(vocabulary().unwrap());
    let compiled = compiler.compile_grammar(&grammar, Remarks::default()).unwrap();
    let mut matcher = compiled.matcher();
    assert!(matcher.fork().accept(TokenId(256)).is_ok());
    matcher.accept_bytes(b"a").unwrap();
    let next: ByteSet = matcher.next_bytes();
    assert_eq!(next.iter().collect::<Vec<u8>>(), b"0123456789abc");

    let program: Program = compiler.program(&grammar).unwrap();
    let (listing, dot): (ProgramListing<'_>, ProgramDot<'_>) = (program.describe(), program.to_dot());
    assert!(!listing.to_string().is_empty() && dot.to_string().starts_with("digraph"));
}

#[test]
fn options_limits_and_their_errors_can_be_named() {
    let options =
        Options { choice: choice::Limits { choices: 1, ..choice::Limits::default() }, ..Options::default() };
    let refused = Constraint::choice(["a", "b"]).grammar(&options, None).unwrap_err();
    assert!(refused.to_string().contains("2 choices"), "{refused}");

    let (ab, _) = Constraint::regex("[ab]{2,40}").grammar(&Options::default(), None).unwrap();
    let dfa: regular::Dfa = regular::automaton(&ab, &regular::Limits::default()).unwrap();
    assert!(dfa.len() > 40);
    let error: Option<LimitError> =
        match regular::automaton(&ab, &regular::Limits { states: 3, ..regular::Limits::default() }) {
            Err(regular::NotRegular::TooLarge(error)) => Some(error),
            _ => None,
        };
    assert_eq!(error.map(|error| error.resource()), Some(LimitResource::States));

    let compiler = Compiler::new(vocabulary().unwrap());
    let mut limits = IndexLimits::default();
    limits.steps = 50;
    let error = Index::build(&ab, &compiler.library(), &AutomatonCache::default(), &limits).unwrap_err();
    let resource: Option<IndexResource> = match &error {
        IndexError::TooLarge { resource, .. } => Some(*resource),
        _ => None,
    };
    assert_eq!(resource, None, "the automaton alone takes more: {error}");

    let problems: Problems<json_schema::Problem> =
        json_schema::grammar("{", &json_schema::Options::default()).unwrap_err();
    assert_eq!(problems.problems().len(), 1);
    let problems: Problems<tag::Problem> = tag::grammar("{", &tag::Options::default()).unwrap_err();
    assert_eq!(problems.problems().len(), 1);
    let error: VocabularyLoadError = Vocabulary::load(b"nothing").unwrap_err();
    assert!(!error.to_string().is_empty());
}
