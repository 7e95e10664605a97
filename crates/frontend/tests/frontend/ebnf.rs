//! Runs the cases in `testdata/ebnf/*.toml` and the examples in `docs/ebnf.md`, and asks the hostile questions
//! that are too large for a file.

use std::fmt::Write as _;

use maskwright_frontend::ebnf::{self, MAX_REMARKS, Options};
use maskwright_grammar::{Diagnostic, Expr, Grammar};
use maskwright_oracle::Oracle;

use crate::frugal::{check_remarks, within_steps};
use crate::grammar_cases::{Notation, Read, render};
use crate::recognize;

/// The notation under test.
const EBNF: Notation = Notation { name: "ebnf", read, matches };

/// Macros bring complements, of which the oracle is the judge.
fn matches(grammar: &Grammar, text: &[u8]) -> bool {
    let is_plain = !grammar.exprs().iter().any(|expr| matches!(expr, Expr::And(_) | Expr::Not(_)));
    if is_plain { recognize::matches(grammar, text) } else { Oracle::new(grammar).accepts(text) }
}

fn read(source: &str, root: Option<&str>) -> Read {
    let mut options = Options::default();
    options.root = root.map_or(options.root, str::to_owned);
    ebnf::grammar(source, &options)
}

#[test]
fn cases() {
    EBNF.cases(120);
}

#[test]
fn macros_ask_for_tokens() {
    let grammar = |source| grammar_of(source).to_string();
    assert_eq!(grammar("root ::= Token(7, 5) ExcludeToken( 3 , )"), "root ::= <token 7 5> <token but 3>");
    assert_eq!(
        grammar("root ::= TokenTagDispatch((12, body), excludes=(13,))\nbody ::= [a-z]"),
        "root ::= (<token but 12 13>* <token 12> body)* <token but 12 13>*\nbody ::= [a-z]"
    );
    assert_eq!(
        grammar("root ::= TokenTagDispatch((12, body), loop_after_dispatch = false)\nbody ::= [a-z]"),
        "root ::= <token but 12>* <token 12> body | <token but 12>*\nbody ::= [a-z]"
    );
    for wrong in [
        "Token()",
        "Token(x)",
        "Token(\"a\")",
        "Token(99999999999)",
        "TokenTagDispatch((\"a\", root))",
        "Token(((1)))",
        "Token(1",
        "Token(é",
        "Token(1,",
        "TagDispatch((\"\", root))",
    ] {
        assert!(!errors_in(&format!("root ::= {wrong}")).is_empty(), "{wrong}");
    }
}

#[test]
fn the_documentation_tells_the_truth() {
    assert!(EBNF.sources().len() > 120);
    EBNF.documentation(30);
}

fn errors_in(source: &str) -> Vec<Diagnostic> {
    ebnf::grammar(source, &Options::default()).expect_err("this must be refused")
}

fn grammar_of(source: &str) -> Grammar {
    ebnf::grammar(source, &Options::default())
        .unwrap_or_else(|errors| panic!("{}", render(&errors, source)))
        .0
}

#[test]
fn a_hundred_thousand_parentheses_are_an_error_with_a_place() {
    for source in [
        format!("root ::= {}", "(".repeat(100_000)),
        format!("root ::= {}\"a\"{}", "(".repeat(100_000), ")".repeat(100_000)),
    ] {
        let errors = errors_in(&source);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].message, "more than 250 groups are nested");
        assert_eq!(errors[0].line_column(&source), (1, 10 + 250));
    }
}

#[test]
fn nesting_up_to_the_limit_is_fine() {
    let source = format!("root ::= {}\"a\"{}", "(".repeat(250), ")*".repeat(250));
    assert!(recognize::matches(&grammar_of(&source), b"aaa"));
}

#[test]
fn a_megabyte_of_twenty_thousand_rules_is_read() {
    let mut source = String::from("root ::= rule-0\n");
    for i in 0..20_000 {
        let next = (i + 1) % 20_000;
        let times = i % 7 + 2;
        writeln!(source, "rule-{i} ::= \"literal {i}\" rule-{next} | [a-z0-9]{{{times}}} # eleven")
            .expect("a string");
    }
    assert!(source.len() > 1_000_000, "{}", source.len());
    assert_eq!(grammar_of(&source).rules().len(), 20_001);
}

/// Each rule needs the next, and only the last one ends, or none does: passes that go over the rules until
/// nothing changes would need a pass for each.
#[test]
fn long_chains_of_rules_take_no_longer() {
    let chain = |last: &str| {
        let mut source = String::from("root ::= r0\n");
        for i in 0..100_000 {
            writeln!(source, "r{i} ::= r{}", i + 1).expect("a string");
        }
        source + "r100000 ::= " + last
    };
    assert!(recognize_root_body(&chain("\"end\"")));
    let errors = errors_in(&chain("r7"));
    assert_eq!(errors.len(), 1);
    assert_eq!(
        errors[0].message,
        "no text can match rule `root`, because it needs `r0`, which needs `r1`, which needs `r2`, which needs \
         … (99995 more), which needs `r99998`, which needs `r99999`, which needs `r100000`, which needs `r7` \
         again, without end"
    );
}

fn recognize_root_body(source: &str) -> bool {
    let grammar = grammar_of(source);
    matches!(grammar.expr(grammar.rule(grammar.root()).expr()), Expr::Rule(_))
}

#[test]
fn nested_groups_do_not_multiply_their_content() {
    let words: Vec<String> = (0..20_000).map(|i| format!("\"w{i}\"")).collect();
    for (separator, tail) in [(" x ", " x)"), ("|", "|\"t\")"), ("|", "|\"t\")?"), (" ", " \"\")")] {
        let body = words.join(separator);
        let source = format!("root ::= {}{body}{}\nx ::= [xy]", "(".repeat(200), tail.repeat(200));
        let Ok((grammar, _)) = ebnf::grammar(&source, &Options::default()) else {
            panic!("{separator}{tail}")
        };
        let operands: usize = grammar.exprs().iter().map(|expr| expr.operands().len()).sum();
        let bytes: usize = grammar
            .exprs()
            .iter()
            .map(|expr| match expr {
                Expr::Bytes(bytes) => bytes.len(),
                _ => 0,
            })
            .sum();
        assert!(operands + bytes < 400_000, "{separator}{tail}: {operands} operands, {bytes} bytes");
    }
}

#[test]
fn many_errors_are_cut_and_counted() {
    let source = format!("root ::= {}", "@ a ".repeat(1000));
    let errors = errors_in(&source);
    assert_eq!(errors.len(), MAX_REMARKS + 1);
    assert_eq!(errors[MAX_REMARKS].message, "980 more errors not shown, the first of them here");

    let source = numbered(|i| format!("root ::= gone{i}"));
    assert_eq!(errors_in(&source).len(), MAX_REMARKS + 1);

    let unused = numbered(|i| format!("r{i} ::= \"a\""));
    let (_, warnings) =
        ebnf::grammar(&format!("root ::= \"a\"\n{unused}"), &Options::default()).expect("good");
    assert_eq!(warnings.len(), MAX_REMARKS + 1);
}

/// A thousand lines.
fn numbered(line: impl Fn(usize) -> String) -> String {
    (0..1000).map(line).collect::<Vec<_>>().join("\n")
}

/// None of these may take many steps, whatever the answer is.
#[test]
fn hostile_repetitions_of_one_character_are_answered() {
    let long = 300_000;
    for piece in [
        "(", ")", "[", "]", "{", "}", "\"", "'", "\\", "|", "*", "+", "?", ".", "-", ":", "::=", "a ::=",
        "#", "\0", "é", "{1", "{ ", "[a", "[a-", "\"\\u{", "(a", "a|", "a\n", "<", "a-", "a.", ".a", "\u{c}",
        "\r", "😀 ", "\"\n", "[\n", "(\na::=", "{1}",
    ] {
        let count = long / piece.len();
        for source in [piece.repeat(count), format!("root ::= {}", piece.repeat(count))] {
            match within_steps(&source, |source| read(source, None)) {
                Ok((_, remarks)) | Err(remarks) => check_remarks(&source, &remarks),
            }
        }
    }
}

#[test]
fn limits_are_named() {
    let mut options = Options::default();
    options.limits.source_bytes = 20;
    let errors = ebnf::grammar("root ::= \"12345678901\"", &options).expect_err("too long");
    assert_eq!(errors[0].message, "the grammar has 22 bytes, more than the limit of 20");

    let mut options = Options::default();
    options.limits.rules = 2;
    let errors = ebnf::grammar("root ::= a\na ::= b\nb ::= \"x\"", &options).expect_err("too many");
    assert_eq!((errors.len(), errors[0].line_column("root ::= a\na ::= b\nb ::= \"x\"")), (1, (3, 1)));
    assert_eq!(errors[0].message, "the grammar has more than 2 rules");

    let mut options = Options::default();
    options.limits.repetition = 2;
    let errors = ebnf::grammar("root ::= \"a\"{3}", &options).expect_err("too often");
    assert_eq!(errors[0].message, "a repetition counts to 2 at most");
    assert!(ebnf::grammar("root ::= \"a\"{2}", &options).is_ok());

    let name = "n".repeat(1001);
    let source = format!("root ::= {name}\n{name} ::= \"a\"");
    let errors = errors_in(&source);
    assert_eq!(errors[0].message, "a name has 1000 bytes at most");
    assert!(recognize::matches(&grammar_of(&source.replace(&name, &name[1..])), b"a"));
}

#[test]
fn spans_in_the_document_lead_back_to_the_text() {
    let source = "root ::= \"a\" | (b [x-z]{2,3}) # done\nb ::=";
    let document = ebnf::parse(source, &Options::default()).expect("good");
    let text = |span: maskwright_grammar::Span| &source[span.start..span.end];
    let body = &document.rules[0].body;
    assert_eq!(text(document.rules[0].name_span), "root");
    assert_eq!(text(body.span), "\"a\" | (b [x-z]{2,3})");
    assert_eq!(text(body.alternatives[1].items[0].span), "(b [x-z]{2,3})");
    let ebnf::ast::Atom::Group(group) = &body.alternatives[1].items[0].atom else { panic!("{body:?}") };
    assert_eq!(text(group.alternatives[0].span), "b [x-z]{2,3}");
    assert_eq!(text(group.alternatives[0].items[1].span), "[x-z]");
    assert_eq!(text(group.alternatives[0].items[1].repeat.expect("{2,3}").span), "{2,3}");
    assert_eq!(document.rules[1].body.alternatives.len(), 1);
}

/// What matches nothing must not be in the grammar: its first step would be a step into a dead end.
#[test]
fn dead_rules_leave_nothing_behind() {
    let source = "root ::= \"x\" dead | \"y\" (dead)* | \"z\" dead{0,2}\ndead ::= \"d\" dead";
    let (grammar, warnings) = ebnf::grammar(source, &Options::default()).expect("good");
    assert_eq!(grammar.to_string(), "root ::= \"y\" | \"z\"");
    assert_eq!(warnings.len(), 1);
}
