//! Runs the cases in `testdata/lark` and `testdata/gbnf`, with the oracle as the judge, and asks the hostile questions that are too large
//! for a file.

use std::fmt::Write as _;

use maskwright_frontend::ebnf::{self, MAX_REMARKS};
use maskwright_frontend::{gbnf, json_schema, lark};
use maskwright_grammar::{Diagnostic, Grammar};
use maskwright_oracle::Oracle;
use maskwright_oracle::generate::Rng;

use crate::frugal::{check_remarks, within_steps};
use crate::grammar_cases::{Notation, Read, render};

const LARK: Notation = Notation { name: "lark", read: read_lark, matches };
const GBNF: Notation = Notation { name: "gbnf", read: read_gbnf, matches };

type Reader = fn(&str, Option<&str>) -> Read;

fn read_lark(source: &str, start: Option<&str>) -> Read {
    let mut options = lark::Options::default();
    options.start = start.map_or(options.start, str::to_owned);
    lark::grammar(source, &options, &json_schema::Options::default())
}

fn read_gbnf(source: &str, root: Option<&str>) -> Read {
    let mut options = ebnf::Options::default();
    options.root = root.map_or(options.root, str::to_owned);
    gbnf::grammar(source, &options)
}

fn matches(grammar: &Grammar, text: &[u8]) -> bool {
    Oracle::new(grammar).accepts(text)
}

#[test]
fn lark_cases() {
    LARK.cases(110);
}

#[test]
fn gbnf_cases() {
    GBNF.cases(20);
}

#[test]
fn the_documentation_tells_the_truth() {
    LARK.documentation(35);
    GBNF.documentation(12);
}

fn lark_errors(source: &str) -> Vec<Diagnostic> {
    read_lark(source, None).expect_err("this must be refused")
}

fn lark_grammar(source: &str) -> Grammar {
    read_lark(source, None).unwrap_or_else(|errors| panic!("{}", render(&errors, source))).0
}

#[test]
fn a_hundred_thousand_levels_are_an_error_with_a_place() {
    for (open, message) in [
        ("(", "this is nested more than 100 levels deep"),
        ("[", "this is nested more than 100 levels deep"),
        ("~", "this is nested more than 100 levels deep"),
        ("%lark { start: ", "this is nested more than 100 levels deep"),
        ("t{", "this is nested more than 100 levels deep"),
    ] {
        let errors = lark_errors(&format!("start: {}", open.repeat(100_000)));
        assert_eq!(errors[0].message, message, "{open}");
        assert_eq!(errors.len(), 1, "{errors:?}");
    }
    let condition = format!("start: x::0\nx::_ : \"a\" %if {}true", "not(".repeat(100_000));
    assert_eq!(lark_errors(&condition)[0].message, "this is nested more than 100 levels deep");
    let schema = format!("start: %json {}", "{\"not\":".repeat(100_000));
    assert!(lark_errors(&schema)[0].message.contains("recursion limit"));
}

#[test]
fn nesting_up_to_the_limit_is_fine() {
    let source = format!("start: {}\"a\"{}", "(".repeat(99), ")*".repeat(99));
    assert!(matches(&lark_grammar(&source), b"aaa"));
    let source = format!("start: A\nA: {}\"a\"", "~".repeat(98));
    let grammar = lark_grammar(&source);
    assert!(!grammar.exprs().is_empty());
}

#[test]
fn a_megabyte_is_read() {
    let mut source = String::from("start: rule-0\n%ignore \" \"\n");
    for i in 0..10_000 {
        let next = (i + 1) % 10_000;
        writeln!(source, "rule-{i}: \"literal {i}\" rule-{next} | TERM-{i}~2..3 | /[a-z]+{i}/i // eleven")
            .expect("a string");
        writeln!(source, "TERM-{i}: \"x\" (\"a\"..\"f\")+ \"y\"i").expect("a string");
    }
    assert!(source.len() > 1_000_000, "{}", source.len());
    assert_eq!(lark_grammar(&source).rules().len(), 20_003);
}

/// Each needs the next, and only the last one ends, or none does.
#[test]
fn long_chains_take_no_longer() {
    let chain = |name: &str, last: &str| {
        let mut source = String::from("start: X & Y\nX: \"x\"\nY: /x/\nspare: spare \"s\"\n");
        for i in 0..50_000 {
            writeln!(source, "{name}{i}: {name}{}", i + 1).expect("a string");
        }
        writeln!(source, "{name}50000: {last}").expect("a string");
        source
    };
    let rules = chain("r", "\"end\"").replace("X & Y", "X & Y | r0 | spare");
    assert!(lark_grammar(&rules).rules().len() > 50_000);
    let terminals = chain("T", "/[a-z]+/ \"end\"").replace("X & Y", "X & T0 | spare");
    assert!(lark_grammar(&terminals).rules().len() > 50_000);
    let errors = lark_errors(&chain("T", "T7"));
    assert_eq!(errors[0].message, "terminal `T7` needs itself");
    let errors = lark_errors(&chain("r", "r7").replace("X & Y", "r0"));
    assert!(errors[0].message.contains("again, without end"), "{errors:?}");
}

/// A terminal is a rule of its own, so that this doubles nothing.
#[test]
fn doubling_terminals_stay_small() {
    let mut source = String::from("start: T60\nT0: \"ab\"\n");
    for i in 1..=60 {
        writeln!(source, "T{i}: T{0} T{0}", i - 1).expect("a string");
    }
    assert!(lark_grammar(&source).exprs().len() < 1000);
}

/// A long body that is built for many values of a parameter counts with its length.
#[test]
fn expansion_is_bounded_by_work() {
    let long = format!("\"{}\"", "x".repeat(100_000));
    let source = format!("start: n::0\nn::_ : {long} n::incr([0:20]) | \"\"");
    let errors = lark_errors(&source);
    assert!(errors[0].message.starts_with("with its parameters written out"), "{errors:?}");
}

#[test]
fn many_errors_are_cut_and_counted() {
    let names = (0..1000).map(|i| format!(" gone{i}")).collect::<Vec<_>>().concat();
    assert_eq!(lark_errors(&format!("start:{names}")).len(), MAX_REMARKS + 1);
    assert_eq!(lark_errors(&"a: (\n%x\n".repeat(1000)).len(), MAX_REMARKS + 1);
}

/// None of these may take many steps or break anything, whatever the answer is.
#[test]
fn hostile_repetitions_are_answered() {
    let long = 60_000;
    for piece in [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "'",
        "\\",
        "|",
        "*",
        "+",
        "?",
        ".",
        "-",
        ":",
        "::",
        "::=",
        "a:",
        "A:",
        "#",
        "//",
        "/",
        "/a",
        "\0",
        "é",
        "{1",
        "~",
        "~1",
        "~a",
        "&",
        "->",
        "..",
        "%",
        "%json",
        "%json {",
        "%lark {",
        "%if",
        "%ignore",
        "%import",
        "%import common.WS\n",
        "%regex",
        "%llguidance {}",
        "<",
        "<a",
        "<a>",
        "<[1]>",
        "@",
        "@a",
        "a\n",
        "\n|",
        "a: b\n",
        "\"\\u",
        "a::_",
        "a{",
        "a{b",
        "a[",
        "a[lazy",
        "a[stop=",
        "!",
        "?a",
        "0x",
        "1.",
        "😀 ",
        "\u{c}",
        "\r",
        "\"a\"..",
        "a.1",
        "-> a",
        "%if not(",
        "start: \"a\"\n",
    ] {
        let count = long / piece.len();
        let (lark, gbnf): (Reader, Reader) = (read_lark, read_gbnf);
        for (read, rule) in [(lark, "start: "), (gbnf, "root ::= ")] {
            for source in [piece.repeat(count), format!("{rule}{}", piece.repeat(count))] {
                match within_steps(&source, |source| read(source, None)) {
                    Ok((_, remarks)) | Err(remarks) => check_remarks(&source, &remarks),
                }
            }
        }
    }
}

#[test]
fn limits_are_named() {
    let refused = |change: fn(&mut lark::Limits), source: &str| {
        let mut options = lark::Options::default();
        change(&mut options.limits);
        let errors =
            lark::grammar(source, &options, &json_schema::Options::default()).expect_err("over the limit");
        assert_eq!(errors.len(), 1, "{errors:?}");
        (errors[0].message.clone(), errors[0].line_column(source))
    };
    assert_eq!(
        refused(|limits| limits.source_bytes = 10, "start: \"1234\""),
        ("the grammar has 13 bytes, more than the limit of 10".into(), (1, 11))
    );
    assert_eq!(
        refused(|limits| limits.definitions = 2, "start: a\na: b\nb: c\nc: \"x\""),
        ("the grammar has more than 2 definitions".into(), (3, 1))
    );
    assert_eq!(
        refused(|limits| limits.chunks = 2, "start: %regex {\"substring_chars\": \"abc\"}"),
        ("a substring of 3 chunks is asked for, and the limit is 2".into(), (1, 15))
    );
    assert_eq!(
        refused(|limits| limits.repetition = 2, "start: \"a\"~3").0,
        "a repetition counts to 2 at most"
    );
    let name = "n".repeat(1001);
    assert_eq!(lark_errors(&format!("start: {name}"))[0].message, "a name has 1000 bytes at most");
}

/// `stop` by its definition: a text of the body behind which some stop comes, such that none came before. Every text over three characters, and every stop up to four.
#[test]
fn stops_are_what_their_definition_says() {
    let mut texts = vec![String::new()];
    let mut last = texts.clone();
    for _ in 0..5 {
        last = last.iter().flat_map(|text| ["a", "b", ";"].map(|c| format!("{text}{c}"))).collect();
        texts.extend(last.iter().cloned());
    }
    let mut told = (0, 0, 0);
    for body in ["/[ab;]*/", "/a[ab;]*|b/", "/(ab)*;?a*/"] {
        for stop in [
            "/a*;/",
            "/;[ab]?/",
            "/[ab];/",
            "/a+b/",
            "/ab|;/",
            "/(ab|b);/",
            "/;;/",
            "/[ab]{2}/",
            "/a(b|;)b/",
            "\";a\"i",
            "/b(a|;)?/",
            "/;?ab/",
        ] {
            let Ok((grammar, _)) = read_lark(&format!("start: x\nx[stop={stop}]: {body}"), None) else {
                told.2 += 1;
                continue;
            };
            let (whole, only) = (
                lark_grammar(&format!("start: X\nX: {body} {stop}")),
                lark_grammar(&format!("start: {stop}")),
            );
            let (body_alone, stops): (_, Vec<_>) = (
                lark_grammar(&format!("start: {body}")),
                texts.iter().filter(|text| text.len() <= 4 && matches(&only, text.as_bytes())).collect(),
            );
            for text in texts.iter().filter(|text| text.len() <= 4) {
                let is_first = |end: &&&String| {
                    let both = format!("{text}{end}");
                    !(0..both.len()).any(|cut| matches(&whole, &both.as_bytes()[..cut]))
                };
                let expected =
                    matches(&body_alone, text.as_bytes()) && stops.iter().any(|end| is_first(&end));
                assert_eq!(matches(&grammar, text.as_bytes()), expected, "{text:?} of {body} before {stop}");
                *if expected { &mut told.0 } else { &mut told.1 } += 1;
            }
        }
    }
    assert!(told.0 > 100 && told.1 > 100 && told.2 <= 9, "{told:?}");
}

/// With `stops_are_written` a `stop` is a `suffix`, of any terminal; without `ignored_first` nothing is ignored in front, unless the source says so.
#[test]
fn what_other_readers_understand_can_be_chosen() {
    let options = lark::Options { ignored_first: false, stops_are_written: true, ..lark::Options::default() };
    let read = |source: &str| {
        let read = lark::grammar(source, &options, &json_schema::Options::default());
        read.unwrap_or_else(|errors| panic!("{}", render(&errors, source))).0
    };
    for stop in ["\"end\"", "/[0-9]{2}/", "/x*y/"] {
        let [stopped, suffixed] =
            ["stop", "suffix"].map(|word| format!("start: a \"z\"\na[{word}={stop}]: /[a-z0-9]*/"));
        let (stopped, suffixed) = (read(&stopped), lark_grammar(&suffixed));
        let mut judged = (0, 0);
        for text in
            ["z", "az", "endz", "aendz", "aendendz", "1z", "12z", "a123z", "yz", "xxyz", "xyyz", "yyz"]
        {
            let expected = matches(&suffixed, text.as_bytes());
            assert_eq!(matches(&stopped, text.as_bytes()), expected, "{text:?} with {stop}");
            *if expected { &mut judged.0 } else { &mut judged.1 } += 1;
        }
        assert!(judged.0 >= 1 && judged.1 >= 2, "{judged:?} with {stop}");
    }
    let spaced = "start: A B\nA: \"a\"\nB: \"b\"\n%ignore \" \"";
    let grammar = read(spaced);
    assert!(matches(&grammar, b"a b ") && !matches(&grammar, b" a b"));
    assert!(matches(&lark_grammar(spaced), b" a b"));
    let grammar = read(&format!("%llguidance {{\"allow_initial_skip\": true}}\n{spaced}"));
    assert!(matches(&grammar, b" a b"));
    let nested = read(&format!("start: %lark {{\n{spaced}\n}}"));
    assert!(matches(&nested, b"a b") && !matches(&nested, b" a b"));
}

fn named(grammars: &[(&str, lark::Named)], source: &str) -> Read {
    let grammars = grammars.iter().map(|(name, one)| ((*name).to_owned(), one.clone())).collect();
    let options = lark::Options { grammars, ..lark::Options::default() };
    lark::grammar(source, &options, &json_schema::Options::default())
}

/// A grammar behind `@name` is what it is inside of `%lark { … }`, and a schema what it is behind `%json`: the texts that both match are the same, at every cut.
#[test]
fn grammars_by_name_are_those_in_place() {
    let inner = "start: x \",\" X\nx: X+\nX: /[0-9]/\n%ignore \" \"";
    let schema = r#"{"type": "array", "items": {"const": 1}, "maxItems": 2}"#;
    let called = named(
        &[
            ("inner", lark::Named::Lark(inner.into())),
            ("list", lark::Named::JsonSchema { schema: schema.into(), options: None }),
        ],
        "start: \"(\" @inner \")\" @list (\"|\" @inner)? // @nothing\nX: \"@inner\"",
    );
    let (called, _) = called.unwrap_or_else(|errors| panic!("{errors:?}"));
    let in_place = lark_grammar(&format!(
        "start: \"(\" %lark {{\n{inner}\n}} \")\" %json {schema} (\"|\" %lark {{\n{inner}\n}})?"
    ));
    let mut judged = (0, 0);
    for text in [
        "(1,2)[]",
        "( 1 2 , 3 )[1, 1]|1,1",
        "(1,2)",
        "(1,2)[2]",
        "(,)[]",
        "(1,2)[]|",
        "(12,3) []",
        "(1, 2) [1]",
    ] {
        for cut in 0..=text.len() {
            let text = &text.as_bytes()[..cut];
            assert_eq!(matches(&called, text), matches(&in_place, text), "{cut}");
            *if matches(&called, text) { &mut judged.0 } else { &mut judged.1 } += 1;
        }
    }
    assert!(judged.0 >= 4 && judged.1 > 30, "{judged:?}");
}

#[test]
fn a_schema_by_name_may_have_options_of_its_own() {
    let schema = r#"{"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 2}"#.to_owned();
    let mut options = json_schema::Options::default();
    options.whitespace = json_schema::Whitespace::Compact;
    let compact = lark::Named::JsonSchema { schema: schema.clone(), options: Some(Box::new(options)) };
    let other = lark::Named::JsonSchema { schema, options: None };
    let (grammar, _) = named(&[("a", compact), ("b", other)], "start: @a @b").expect("good");
    assert!(matches(&grammar, b"[1,1][1, 1]"));
    assert!(!matches(&grammar, b"[1, 1][1,1]"));
}

#[test]
fn grammars_by_name_may_be_in_other_languages() {
    let ebnf = |source: &str| lark::Named::Ebnf { source: source.into(), options: None };
    let gbnf = lark::Named::Gbnf { source: "root ::= \"<\" [0-9]{2} \">\"".into(), options: None };
    let pattern = lark::Named::Regex { pattern: "[a-c]+|x{2}".into(), options: None };
    let (grammar, _) = named(
        &[("list", ebnf("root ::= \"(\" root? \")\"")), ("number", gbnf), ("word", pattern)],
        "start: @word \"=\" @list @number? rest\nrest: \";\" @word\n%ignore \" \"",
    )
    .unwrap_or_else(|errors| panic!("{errors:?}"));
    for text in ["abc=(());a", "xx=()<12>;xx", "xx = () <12> ; a"] {
        assert!(matches(&grammar, text.as_bytes()), "{text}");
    }
    for text in ["abd=();a", "xx=();", "x x=();a", "a=(;a", "a=()<1 2>;a"] {
        assert!(!matches(&grammar, text.as_bytes()), "{text}");
    }
    let terminal = named(&[("list", ebnf("root ::= \"a\""))], "start: A\nA: @list").expect_err("wrong");
    assert!(terminal[0].message.contains("cannot be used in a terminal"), "{terminal:?}");
}

#[test]
fn what_is_wrong_with_a_grammar_by_name_is_told_where_it_is_called() {
    type Case<'c> = (&'c [(&'c str, lark::Named)], &'c str, &'c str);

    let lark = |text: &str| lark::Named::Lark(text.into());
    let long = "x".repeat(100);
    let cases: &[Case<'_>] = &[
        (&[], "start: @gone", "no grammar named `gone` was given"),
        (&[("come", lark("start: \"a\""))], "start: @gone", "no grammar named `gone` was given"),
        (
            &[("a", lark("start: \"x\" @b")), ("b", lark("start: @a"))],
            "start: \"y\" @a",
            "in `@b`, line 1, column 8: the grammar `a` calls itself",
        ),
        (&[("a", lark("start: (\"x\""))], "start: @a", "in `@a`, line 1, column 8: this `(` is not closed"),
        (
            &[("a", lark("start: x\nx: \"ä\" y"))],
            "start: @a",
            "in `@a`, line 2, column 8: `y` is not defined",
        ),
        (&[("a", lark("begin: \"x\""))], "start: @a", "in `@a`, line 1, column 1: "),
        (&[("a", lark("start: /(/"))], "start: @a", "in `@a`, line 1, column 9: "),
        (&[("a", lark(&long))], "start: @a", "in `@a`, line 1, column 101: "),
        (&[("a", lark("start: \"x"))], "start: @a", "in `@a`, line 1, column 8: "),
    ];
    for (grammars, source, message) in cases {
        let errors = named(grammars, source).expect_err("wrong");
        assert!(errors[0].message.starts_with(message), "{source}: {errors:?}");
        let call = source.find('@').expect("a call");
        for error in &errors {
            assert_eq!(error.span.start, call, "{source}: {error:?}");
        }
        check_remarks(source, &errors);
    }
    let pattern = lark::Named::Regex { pattern: "ab\nc(".into(), options: None };
    let errors = named(&[("a", pattern)], "start: \"x\" @a").expect_err("wrong");
    assert!(errors[0].message.starts_with("in `@a`, line 2, column 2: "), "{errors:?}");
    let ebnf = lark::Named::Ebnf { source: "root ::= gone".into(), options: None };
    let errors = named(&[("a", ebnf)], "start: \"x\" @a").expect_err("wrong");
    assert!(errors[0].message.starts_with("in `@a`, line 1, column 10: "), "{errors:?}");
    assert_eq!(errors[0].span.start, 11);
    let schema = lark::Named::JsonSchema { schema: "{\"type\": \"nothing\"}".into(), options: None };
    let errors = named(&[("a", schema)], "start: @a").expect_err("wrong");
    assert!(errors[0].message.starts_with("in this schema"), "{errors:?}");
    // What nobody calls is not read.
    assert!(named(&[("a", lark("start: ("))], "start: \"x\"").is_ok());
    // Warnings have a place, too.
    let (_, warnings) =
        named(&[("a", lark("start: x\nx[stop=\"b\"]: /a*/"))], "start: \"x\" @a").expect("good");
    assert!(
        warnings
            .iter()
            .any(|warning| warning.message.starts_with("in `@a`, line 2") && warning.span.start == 11),
        "{warnings:?}"
    );
}

#[test]
fn spans_in_the_source_lead_back_to_the_text() {
    let text = "start: \"a\" | (b /[x-z]/i~2..3) // done\nb[suffix=\"x\"]: \"c\"";
    let source = lark::parse(text, &lark::Options::default()).expect("good");
    let at = |span: maskwright_grammar::Span| &text[span.start..span.end];
    let [document] = &*source.documents else { panic!("{source:?}") };
    let body = &document.definitions[0].body;
    assert_eq!(at(document.definitions[1].span), "b");
    assert_eq!(at(body.span), "\"a\" | (b /[x-z]/i~2..3)");
    let group = &body.alternatives[1].conjuncts[0][0];
    assert_eq!(at(group.span), "(b /[x-z]/i~2..3)");
    let lark::ast::Atom::Group(group) = &group.atom else { panic!("{body:?}") };
    assert_eq!(at(group.alternatives[0].conjuncts[0][1].span), "/[x-z]/i");
    let (_, ending) = document.definitions[1].attributes.ending.as_ref().expect("a suffix");
    assert_eq!(at(*ending), "suffix=\"x\"");
}

/// Pieces of the cases are cut out and others put in. Whatever comes of it, there is an answer, and its places lie in the text.
#[test]
fn damaged_grammars_are_answered() {
    let sources = LARK.sources().into_iter().map(|source| (source, LARK));
    let sources: Vec<_> = sources.chain(GBNF.sources().into_iter().map(|source| (source, GBNF))).collect();
    let pieces = [
        "(", ")", "[", "]", "{", "}", "\"", "/", "\\", "*", "~", "~2..1", "{9}", "::", ":", "::=", "%if",
        "%json", "%lark {", "%ignore", "<", "<[1]>", "&", "|", "->", "é", "\0", "\n", "#", "_", "..", "i",
        "start", "A",
    ];
    let (mut rng, mut good) = (Rng::new(9), 0);
    for round in 0..4_000 {
        let (source, notation) = &sources[rng.below(sources.len())];
        let mut chars: Vec<char> = source.chars().collect();
        for _ in 0..=rng.below(3) {
            let at = rng.below(chars.len() + 1);
            let end = (at + rng.below(6)).min(chars.len());
            let piece = pieces[rng.below(pieces.len())].chars();
            chars.splice(at..end, piece.take(rng.below(2) * 9));
        }
        let damaged: String = chars.into_iter().collect();
        let remarks = match (notation.read)(&damaged, None) {
            Ok((_, warnings)) => {
                good += 1;
                warnings
            }
            Err(errors) => {
                assert!(!errors.is_empty(), "{damaged}");
                errors
            }
        };
        for remark in remarks {
            assert!(
                remark.span.start <= remark.span.end && remark.span.end <= damaged.len(),
                "{round}: {remark:?}\n{damaged}"
            );
            assert!(!remark.render("g", &damaged).is_empty());
        }
    }
    assert!((150..3_700).contains(&good), "{good} of them are grammars");
}
