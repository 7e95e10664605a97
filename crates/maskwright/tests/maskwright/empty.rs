//! If no text can match, the error names the place in the user's text.

use std::sync::Arc;

use maskwright::{Compiler, Constraint, Error, Options, TokenId, VocabularyBuilder};

fn compiler() -> Compiler {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=u8::MAX {
        builder.token(TokenId(byte.into()), &[byte]).unwrap();
    }
    builder.special(TokenId(256), "<end>").unwrap().eos(TokenId(256));
    Compiler::new(Arc::new(builder.finish().unwrap()))
}

/// The part of the source that is blamed, and what is said of it.
fn blamed<'s>(constraint: &Constraint, source: &'s str) -> (&'s str, String) {
    let error = compiler().compile(constraint).unwrap_err();
    match &error {
        Error::Source(remarks) => match &remarks[..] {
            [remark] => (&source[remark.span.start..remark.span.end], remark.message.clone()),
            _ => panic!("{source}: there are several remarks: {error}"),
        },
        _ => panic!("{source}: no place is named: {error}"),
    }
}

#[test]
fn of_a_pattern() {
    for (pattern, part, what) in [
        ("a[b&&c]d", "[b&&c]", "no character is in this class"),
        ("(?:x|y)(?:[a&&b]|[c&&d])z", "[c&&d]", "no character is in this class"),
        ("(?=a)b", "(?=a)", "this look-ahead"),
        ("(?!a|b)[ab]", "(?!a|b)", "this look-ahead"),
        ("a(?<=b)c", "(?<=b)", "this look-behind"),
        (r"a\bb", r"\b", "this word boundary"),
        ("a$b", "$", "this anchor"),
        ("a^b", "^", "this anchor"),
        // The first one leaves `b`, and the second one nothing.
        ("(?=[ab])(?=[bc])(?!b)[a-c]", "(?!b)", "this look-ahead"),
    ] {
        let (blamed, message) = blamed(&Constraint::regex(pattern), pattern);
        assert_eq!(blamed, part, "{pattern}: {message}");
        assert!(message.contains(what), "{pattern}: {message}");
    }
}

#[test]
fn of_a_lark_grammar() {
    for (source, part, what) in [
        ("start: A & B\nA: /a+/\nB: /b+/", "A & B", "this intersection"),
        (
            "start: \"x\" word | deep\nword: /a/ & /b/\ndeep: \"(\" word \")\"",
            "/a/ & /b/",
            "this intersection",
        ),
        ("start: ~ANY\nANY: /(.|\\n)*/", "~ANY", "this complement"),
        ("start: /(?=a)b/ \"c\"", "/(?=a)b/", "this pattern"),
        ("start: (A & /a/) (A & /b/)\nA: /a/", "A & /b/", "this intersection"),
    ] {
        let (blamed, message) = blamed(&Constraint::lark(source), source);
        assert_eq!(blamed, part, "{source}: {message}");
        assert!(message.contains("no text can match `start`") && message.contains(what), "{message}");
    }
}

#[test]
fn the_place_is_the_same_behind_a_prefix() {
    let options = Options { prefix: "the end of a prompt".into(), ..Options::default() };
    let error = compiler().compile_with(&Constraint::regex("a[b&&c]"), &options).unwrap_err();
    assert_eq!(
        error.render("pattern", "a[b&&c]").lines().next(),
        Some("pattern:1:2: error: no text can match this pattern, because no character is in this class")
    );
}
