//! Prompts that end inside a token, and constraints that begin with the end of one.

use std::sync::Arc;

use maskwright::{Compiler, Constraint, Options, TokenId, Vocabulary, VocabularyBuilder, heal};

const TOKENS: [&str; 9] = ["Answer", ":", " ", " yes", "yes", "no", "\u{e9}", " y", "\n"];
const END: TokenId = TokenId(TOKENS.len() as u32);

fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for (id, token) in (0..).zip(TOKENS) {
        builder.token(TokenId(id), token.as_bytes()).unwrap();
    }
    // The first byte of a character alone, and a token that goes on from there.
    builder.token(TokenId(20), b"\xC3").unwrap().token(TokenId(21), b"\xA9\xC3").unwrap();
    builder.special(END, "<end>").unwrap().eos(END);
    Arc::new(builder.finish().unwrap())
}

fn ids(tokens: &[u32]) -> Vec<TokenId> {
    tokens.iter().copied().map(TokenId).collect()
}

#[test]
fn prompts_are_cut_back_where_a_longer_token_could_stand() {
    let vocabulary = vocabulary();
    for (prompt, kept, prefix) in [
        (&[0, 1, 2][..], 2, " "),
        (&[0, 1, 7], 2, " y"),
        (&[0, 1], 2, ""),
        (&[0, 1, 4], 3, ""),
        // Something must be left for the model to read.
        (&[2], 1, ""),
        (&[], 0, ""),
        // A special token is a boundary, and stays.
        (&[2, 9], 2, ""),
        (&[9, 2], 1, " "),
        // A character is not cut.
        (&[0, 20], 2, ""),
    ] {
        let healed = heal(&vocabulary, &ids(prompt));
        assert_eq!((healed.kept, healed.prefix.as_str()), (kept, prefix), "{prompt:?}");
    }
}

#[test]
fn a_prefix_is_a_part_of_the_constraint() {
    let compiler = Compiler::new(vocabulary());
    let options = Options { prefix: " ".into(), ..Options::default() };
    let answers = [
        Constraint::choice(["yes", "no"]),
        Constraint::regex("yes|no"),
        Constraint::ebnf("root ::= \"yes\" | \"no\""),
        Constraint::gbnf("root ::= \"yes\" | \"no\""),
        Constraint::lark("start: \"yes\" | \"no\""),
        Constraint::structural_tag(r#"{"type": "regex", "pattern": "yes|no"}"#),
    ];
    for constraint in answers {
        let compiled = compiler.compile_with(&constraint, &options).unwrap();
        let mut matcher = compiled.matcher();
        let allowed: Vec<usize> =
            (0..TOKENS.len()).filter(|id| matcher.fork().accept(TokenId(*id as u32)).is_ok()).collect();
        // The blank, the word with it, and its beginning.
        assert_eq!(allowed, [2, 3, 7], "{constraint:?}");
        matcher.accept(TokenId(2)).unwrap();
        assert!(matcher.fork().accept(TokenId(4)).is_ok() && matcher.fork().accept(TokenId(5)).is_ok());
        assert!(!matcher.is_accepting());
    }
    // A schema keeps its report, and its errors their places.
    let schema = Constraint::json_schema(r#"{"type": "boolean", "title": "x"}"#);
    let compiled = compiler.compile_with(&schema, &options).unwrap();
    assert_eq!(compiled.remarks().report.as_ref().unwrap().entries().len(), 2);
    assert!(compiled.matcher().accept_bytes(b" true").is_ok());
    assert!(compiled.matcher().accept_bytes(b"true").is_err());
}
