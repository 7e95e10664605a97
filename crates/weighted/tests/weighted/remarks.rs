//! Errors and warnings about grammars.

use maskwright_oracle::generate::Rng;
use maskwright_weighted::{Boolean, MaxPlus, Options, Parser, Pcfg, Real};

fn errors(source: &str) -> String {
    let remarks = Pcfg::parse(source, &Options::default()).expect_err("the grammar should be refused");
    remarks.iter().map(|remark| remark.render("g", source)).collect()
}

fn warnings(source: &str) -> String {
    let grammar = Pcfg::parse(source, &Options::default()).expect("the grammar should be accepted");
    grammar.warnings().iter().map(|remark| remark.render("g", source)).collect()
}

#[test]
fn wrong_grammars_are_refused_with_their_place() {
    let cases = [
        ("", "the grammar has no rules"),
        ("S -> a [-0.5] | b [1.5]", "g:1:8: error: the probability -0.5 is negative"),
        ("S -> a [NaN]", "g:1:8: error: the probability NaN is no number"),
        ("S -> a [1e999]", "is no number"),
        ("S -> a [0] | b [0]", "the probabilities of `S` add up to zero"),
        ("S -> a [0.5] | b [0.4]", "the probabilities of `S` add up to 0.9"),
        ("S -> a [1] | b", "alternatives without a probability"),
        ("S -> a [x]", "`x` is no probability"),
        ("S -> a [0.5", "the probability is not closed"),
        ("S -> Np a", "g:1:6: error: the symbol `Np` in a rule of `S` has no rule"),
        ("S -> \"a", "the literal does not end on its line"),
        ("S -> \"\\q\"", "this escape is not known"),
        ("S -> /a(/", "error"),
        ("S -> /[^\\s\\S]/", "nothing matches this pattern"),
        ("S -> a |", "an alternative of `S` is empty"),
        ("S a", "an arrow `->` should follow the name `S`"),
        ("S -> a [1] b", "a new rule begins on a new line"),
        ("-> a", "a rule begins with the name of its symbol"),
        ("S -> ( a )", "`(` has no meaning here"),
        ("S -> S", "the start symbol `S` derives no text: its rules never end, as in `S -> S`"),
        ("A -> B\nB -> A", "the start symbol `A` derives no text: its rules never end, as in `A -> B`"),
    ];
    for (source, says) in cases {
        let said = errors(source);
        assert!(said.contains(says), "{source:?} should say {says:?}, but says\n{said}");
    }
    // Every error is reported.
    let said = errors("S -> X [0.5] | Y [0.6]\nT -> \"a");
    assert!(said.contains("does not end"), "{said}");
    let said = errors("S -> X [0.5] | Y [0.6]");
    assert!(said.contains("`X`") && said.contains("`Y`") && said.contains("add up to 1.1"), "{said}");
}

#[test]
fn strange_grammars_are_remarked_upon() {
    let cases = [
        ("S -> a\nT -> b", "g:2:1: warning: `T` is not used"),
        ("S -> a [0.5] | T [0.5]\nT -> T b", "`T` derives no text"),
        ("S -> S S [0.6] | a [0.4]", "the loop S → S grows by a factor of 1.2"),
        ("S -> A A [0.5] | a [0.5]\nA -> S", "the loop S → A → S grows by a factor of 1"),
        ("S -> S S [0.5] | a [0.5]", "their expected length is infinite"),
    ];
    for (source, says) in cases {
        let said = warnings(source);
        assert!(said.contains(says), "{source:?} should say {says:?}, but says\n{said}");
    }
    assert_eq!(warnings("S -> S S [0.4] | a [0.6]"), "");
}

#[test]
fn a_loop_that_never_ends_is_refused_by_name() {
    // A chain of units that is left once in ten million million times: its sum would consist of rounding errors only.
    let source = "T -> x S\nS -> A [1]\nA -> S [0.9999999999999] | a [0.0000000000001]";
    let grammar = Pcfg::parse(source, &Options::default()).unwrap();
    let Err(error) = Parser::<Real>::new(&grammar) else { panic!("the loop should be refused") };
    assert!(error.message.contains("the loop S → A → S never ends"), "{error}");
    assert!(error.message.contains("as in `S -> A`") && error.span.start == 14, "{error:?}");
    // Whether there is a derivation, and which is best, does not depend on that.
    assert!(Parser::<Boolean>::new(&grammar).is_ok() && Parser::<MaxPlus>::new(&grammar).is_ok());
}

#[test]
fn what_is_written_can_be_read() {
    let source = "S -> A \"B\" [1/4] | \"say \\\"hi\\\"\\n\" [0.25] | x [0.25] | /a\\/b+/ [0.25]  # a comment\n\nA -> ε [0.5]\n   | b [0.5]\n";
    let grammar = Pcfg::parse(source, &Options::default()).unwrap();
    let written = grammar.to_string();
    let again = Pcfg::parse(&written, &Options::default()).unwrap();
    assert_eq!(again.to_string(), written);
    assert_eq!(grammar.rules().len(), 6);
    assert!(written.starts_with("S -> A \"B\" [0.25] | "), "{written}");
}

#[test]
fn shares_are_given_to_alternatives_without_a_probability() {
    let grammar = Pcfg::parse("S -> a [0.5] | b | c", &Options::default()).unwrap();
    let shares: Vec<f64> = grammar.rules().iter().map(|rule| rule.probability).collect();
    assert_eq!(shares, [0.5, 0.25, 0.25]);
    let options = Options { normalise: true, ..Options::default() };
    let grammar = Pcfg::parse("S -> a [3] | b [1]", &options).unwrap();
    assert_eq!(grammar.rules()[0].probability, 0.75);
}

#[test]
fn no_text_makes_the_reader_panic() {
    let pieces = [
        "S", "A", " -> ", "a", "b", " | ", "\n", "[0.5]", "[1/2]", "[", "]", "ε", "\"x\"", "'", "/a*/", "/",
        "\\", "#", "(", "é", "\t", "-", "0",
    ];
    let mut rng = Rng::new(1);
    let options = Options { normalise: true, ..Options::default() };
    let (mut sound, mut refused) = (0, 0);
    for _ in 0..6_000 {
        let mut source = String::from(if rng.one_in(2) { "S -> " } else { "" });
        for _ in 0..=rng.below(14) {
            source.push_str(rng.choose(&pieces).copied().unwrap_or_default());
        }
        match Pcfg::parse(&source, &options) {
            Ok(grammar) => {
                sound += 1;
                if let Ok(mut parser) = Parser::<Real>::new(&grammar) {
                    let words: Vec<_> =
                        (0..6).map(|_| *rng.choose(&["a", "b", "x", "0", "aaa"]).unwrap_or(&"a")).collect();
                    for word in words {
                        parser.step_word(word);
                    }
                    assert!(parser.prefix_logprob() <= 1e-9, "{source}");
                }
                let written = grammar.to_string();
                let again =
                    Pcfg::parse(&written, &options).unwrap_or_else(|_| panic!("{source:?}\n{written}"));
                assert_eq!(again.rules().len(), grammar.rules().len(), "{source:?}\n{written}");
            }
            Err(remarks) => {
                refused += 1;
                assert!(remarks.iter().all(|remark| !remark.render("g", &source).is_empty()));
            }
        }
    }
    assert!(sound > 100 && refused > 100, "{sound} sound, {refused} refused");
}
