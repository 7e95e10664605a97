//! Values that can be computed by hand.

use maskwright_weighted::{Boolean, Count, Log, MaxPlus, MinPlus, Options, Parser, Pcfg, Real, Semiring};

pub(crate) fn grammar(source: &str) -> Pcfg {
    Pcfg::parse(source, &Options::default()).unwrap_or_else(|remarks| {
        panic!("{}", remarks.iter().map(|r| r.render("g", source)).collect::<String>())
    })
}

fn close(got: f64, wanted: f64) {
    let scale = wanted.abs().max(1e-300);
    assert!((got - wanted).abs() <= 1e-12 * scale || got == wanted, "{got} instead of {wanted}");
}

/// Checks prefix and sentence probabilities after 1, 2, 3 … repetitions of the same word.
fn check<S: Semiring>(source: &str, prefixes: &[f64], sentences: &[f64]) {
    let grammar = grammar(source);
    let mut parser = Parser::<S>::new(&grammar).unwrap();
    close(parser.prefix_logprob().exp(), 1.0);
    for (prefix, sentence) in prefixes.iter().zip(sentences) {
        assert!(parser.step_word("a"));
        close(parser.prefix_logprob().exp(), *prefix);
        close(parser.sentence_logprob().exp(), *sentence);
        let next = parser.next_terminal_distribution();
        close(next.end + next.terminals.iter().map(|entry| entry.1).sum::<f64>(), 1.0);
    }
}

#[test]
fn both_recursions_at_once() {
    for p in [0.5, 0.6, 0.75, 0.9] {
        let q: f64 = 1.0 - p;
        let source = format!("S -> a [{p}] | S S [{q}]");
        let prefixes = [1.0, q, (1.0 + p) * q * q];
        let sentences = [p, p * p * q, 2.0 * p * p * p * q * q];
        check::<Real>(&source, &prefixes, &sentences);
        check::<Log>(&source, &prefixes, &sentences);
    }
}

#[test]
fn left_recursion() {
    check::<Real>("S -> S a [.4] | a [.6]", &[1.0, 0.4, 0.16, 0.064], &[0.6, 0.24, 0.096, 0.0384]);
    check::<Log>("S -> S a [.4] | a [.6]", &[1.0, 0.4, 0.16], &[0.6, 0.24, 0.096]);
}

#[test]
fn right_recursion_gives_the_same_through_shortcuts() {
    check::<Real>("S -> a S [.4] | a [.6]", &[1.0, 0.4, 0.16, 0.064], &[0.6, 0.24, 0.096, 0.0384]);
    check::<Log>("S -> a T | a [.6]\nT -> S", &[1.0, 0.4, 0.16, 0.064], &[0.6, 0.24, 0.096, 0.0384]);
}

#[test]
fn a_symbol_before_the_last_does_not_lose_its_probability() {
    let grammar = grammar("S -> A B\nA -> a\nB -> b [0.25] | c [0.75]");
    let mut parser = Parser::<Real>::new(&grammar).unwrap();
    assert!(parser.step_word("a"));
    close(parser.prefix_logprob(), 0.0);
    assert!(!parser.accepted());
    assert!(parser.step_word("b"));
    close(parser.prefix_logprob().exp(), 0.25);
    close(parser.sentence_logprob().exp(), 0.25);
    assert!(!parser.step_word("b"));
    assert_eq!(parser.position(), 2);
}

#[test]
fn trees_are_counted() {
    let catalan = [1, 1, 2, 5, 14, 42, 132, 429, 1430, 4862];
    let grammar = grammar("S -> a [0.6] | S S [0.4]");
    let mut parser = Parser::<Count>::new(&grammar).unwrap();
    for trees in catalan {
        assert!(parser.step_word("a"));
        assert_eq!(parser.sentence(), trees);
    }
    // Three and four coordinated noun phrases: 2 and 5 trees.
    let phrases = self::grammar("NP -> NP and NP [0.3] | Kim [0.7]\nKim -> kim");
    let mut parser = Parser::<Count>::new(&phrases).unwrap();
    for (word, trees) in ["kim", "and", "kim", "and", "kim", "and", "kim"].iter().zip([1, 0, 1, 0, 2, 0, 5]) {
        assert!(parser.step_word(word));
        assert_eq!(parser.sentence(), trees);
    }
}

#[test]
fn a_loop_of_units_has_infinitely_many_trees_and_one_probability() {
    // A is a with 1/2, or B, which is A with 1/2 or b: A = a + ½(½A + ½b).
    let source = "A -> a [0.5] | B [0.5]\nB -> A [0.5] | b [0.5]";
    let grammar = grammar(source);
    let mut parser = Parser::<Real>::new(&grammar).unwrap();
    assert!(parser.step_word("a"));
    close(parser.sentence_logprob().exp(), 2.0 / 3.0);
    close(parser.prefix_logprob().exp(), 2.0 / 3.0);
    let mut count = Parser::<Count>::new(&grammar).unwrap();
    assert!(count.step_word("b"));
    assert_eq!(count.sentence(), Count::MANY);
    let mut best = Parser::<MaxPlus>::new(&grammar).unwrap();
    assert!(best.step_word("b"));
    close(best.sentence().exp(), 0.25);
}

#[test]
fn empty_texts_are_the_least_solution() {
    // e = .6 e² + .4 has the solutions 2/3 and 1.
    let grammar = grammar("T -> S a\nS -> S S [0.3] | ε [0.5] | b [0.2]");
    let mut parser = Parser::<Real>::new(&grammar).unwrap();
    let empty = (1.0 - (1.0f64 - 4.0 * 0.3 * 0.5).sqrt()) / 0.6;
    assert!(parser.step_word("a"));
    close(parser.sentence_logprob().exp(), empty);
    let whole = self::grammar("S -> a [0.5] | ε [0.5]");
    close(Parser::<Real>::new(&whole).unwrap().sentence_logprob().exp(), 0.5);
    assert!(Parser::<Boolean>::new(&whole).unwrap().accepted());
}

#[test]
fn palindromes() {
    let grammar = grammar("S -> a S a [0.3] | b S b [0.3] | ε [0.4]");
    let mut parser = Parser::<Real>::new(&grammar).unwrap();
    for word in ["a", "b", "b", "a"] {
        assert!(parser.step_word(word));
    }
    close(parser.sentence_logprob().exp(), 0.3 * 0.3 * 0.4);
}

#[test]
fn long_texts_do_not_underflow() {
    let grammar = grammar("S -> a S [0.001] | b [0.999]");
    let (mut real, mut log) = (Parser::<Real>::new(&grammar).unwrap(), Parser::<Log>::new(&grammar).unwrap());
    for _ in 0..2_000 {
        assert!(real.step_word("a") && log.step_word("a"));
    }
    let wanted = 2_000.0 * 0.001f64.ln();
    assert!((real.prefix_logprob() - wanted).abs() < 1e-8, "{}", real.prefix_logprob());
    assert!((log.prefix_logprob() - wanted).abs() < 1e-8);
    assert!(real.step_word("b"));
    assert!((real.sentence_logprob() - wanted - 0.999f64.ln()).abs() < 1e-8);
}

#[test]
fn patterns_are_terminals_of_their_own() {
    let grammar = grammar("S -> N V\nN -> /[a-z]+/ [0.7] | \"bob\" [0.3]\nV -> runs");
    let mut parser = Parser::<Real>::new(&grammar).unwrap();
    assert_eq!(parser.allowed_terminals().len(), 2);
    assert!(parser.step_word("bob"));
    close(parser.prefix_logprob().exp(), 1.0);
    parser.reset();
    assert!(parser.step_word("carol"));
    close(parser.prefix_logprob().exp(), 0.7);
    assert!(!parser.step_word("walks"));
}

#[test]
fn history_can_be_taken_back_and_copied() {
    let grammar = grammar("S -> a S b [0.4] | a b [0.6]");
    let mut parser = Parser::<Real>::new(&grammar).unwrap();
    assert!(parser.step_word("a") && parser.step_word("a"));
    let mut fork = parser.fork();
    let before = parser.prefix_logprob();
    assert!(fork.step_word("b") && fork.step_word("b"));
    assert!(fork.accepted() && !parser.accepted());
    assert_eq!(parser.prefix_logprob(), before);
    fork.rollback(2);
    assert_eq!(fork.prefix_logprob(), before);
    assert_eq!(fork.allowed_terminals(), parser.allowed_terminals());
    fork.reset();
    assert_eq!(fork.position(), 0);
    fork.rollback(7);
    assert_eq!(fork.position(), 0);
}

#[test]
fn the_shortest_completion_is_what_is_still_open() {
    let grammar = grammar("S -> a S b [0.4] | a c b [0.6]");
    let mut parser = Parser::<Boolean>::new(&grammar).unwrap();
    assert_eq!(parser.shortest_completion(), 3);
    for (word, left) in [("a", 2), ("a", 3), ("c", 2), ("b", 1), ("b", 0)] {
        assert!(parser.step_word(word));
        assert_eq!(parser.shortest_completion(), left, "after {word}");
    }
    let mut length = Parser::<MinPlus>::new(&grammar).unwrap();
    assert!(length.step_word("a") && length.step_word("c") && length.step_word("b"));
    assert_eq!(length.sentence(), 3);
}
