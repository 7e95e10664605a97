//! Tests limits by exceeding them: the number of parses, the depth of stacks, and caches that are cleared when they are
//! full.

use std::sync::Arc;

use maskwright_engine::{
    AutomatonCache, BoundProgram, Library, Limits, MatchError, Matcher, Strategy, compile,
};
use maskwright_grammar::{CharSet, Grammar, GrammarBuilder};
use maskwright_vocab::TokenId;

use crate::support::vocabulary;

fn bind(grammar: &Grammar, tokens: &[Vec<u8>], limits: &Limits) -> Arc<BoundProgram> {
    let program = compile(grammar, &AutomatonCache::default(), limits).expect("the grammar compiles");
    BoundProgram::new(Arc::new(program), Arc::new(Library::new(vocabulary(tokens))))
}

fn mask(matcher: &mut Matcher) -> Vec<u32> {
    let mut row = vec![0; matcher.bound().vocabulary().size().div_ceil(32)];
    matcher.fill_mask(&mut row).expect("a mask is within limits");
    row
}

/// Accepts a text repeatedly until it is refused. Returns the error and how often the text was accepted.
fn until_refused(matcher: &mut Matcher, text: &[u8]) -> (MatchError, usize) {
    for taken in 0..10_000 {
        let before = (mask(matcher), matcher.steps());
        if let Err(error) = matcher.accept_bytes(text) {
            assert_eq!((mask(matcher), matcher.steps()), before, "a refusal changes nothing");
            return (error, taken);
        }
    }
    panic!("nothing was refused");
}

/// `root ::= r0 | r1 | …` and `r0 ::= "a" r0 "0" | "0"`, `r1 ::= "a" r1 "1" | "1"` and so on: only the end shows which
/// rule it is, so all are followed.
#[test]
fn too_many_parses_are_an_error() {
    const RULES: usize = 12;
    let mut g = GrammarBuilder::new();
    let a = g.bytes(b"a");
    let mut rules = Vec::new();
    for number in 0..RULES as u8 {
        let rule = g.declare(&format!("r{number}"));
        let (call, end) = (g.rule(rule), g.bytes(&[b'A' + number]));
        let longer = g.seq([a, call, end]);
        let either = g.alt([longer, end]);
        g.define(rule, either);
        rules.push(call);
    }
    let root = g.declare("root");
    let any = g.alt(rules);
    g.define(root, any);
    let grammar = g.finish(root).expect("all rules are defined");
    let tokens = [b"a".to_vec(), b"aa".to_vec(), b"A".to_vec(), b"aB".to_vec()];
    let mut limits = Limits::default();
    let mut free = bind(&grammar, &tokens, &limits).matcher();
    let most = (0..100).map(|_| {
        free.accept_bytes(b"a").expect("within the usual limits");
        free.state_info().threads.len()
    });
    let most = most.max().expect("something was taken");
    assert!(most > 1, "several rules are followed");
    limits.parses = most;
    let mut enough = bind(&grammar, &tokens, &limits).matcher();
    assert!((0..100).all(|_| enough.accept_bytes(b"a").is_ok()));
    limits.parses = most - 1;
    let mut matcher = bind(&grammar, &tokens, &limits).matcher();
    let (error, taken) = until_refused(&mut matcher, b"a");
    assert_eq!(error, MatchError::TooAmbiguous);
    assert!(error.is_limit() && error.is_undecided());
    assert!(taken < 100, "{taken}");
    // It is not known whether the token may come; an answer of no would be a guess.
    assert_eq!(matcher.allows(TokenId(0)), Err(MatchError::TooAmbiguous));
    assert_eq!(matcher.allowed_of(&[TokenId(2), TokenId(0)]), Err(MatchError::TooAmbiguous));
    assert_eq!(matcher.validate(&[TokenId(0)]), Err(MatchError::TooAmbiguous));
    let stride = mask(&mut matcher).len();
    let chain = matcher.fill_masks_for_chain(&[TokenId(0)], &mut vec![0; 2 * stride], stride);
    assert_eq!(chain, Err(MatchError::TooAmbiguous));
    assert_eq!(matcher.steps(), taken, "nothing has changed");
    // Texts with fewer parses are still accepted.
    matcher.accept_bytes(b"B").expect("one rule is left");
}

#[test]
fn a_stack_that_is_too_deep_is_an_error() {
    let mut g = GrammarBuilder::new();
    let root = g.declare("root");
    let (call, open, close, a) = (g.rule(root), g.bytes(b"("), g.bytes(b")"), g.bytes(b"a"));
    let nested = g.seq([open, call, close]);
    let either = g.alt([nested, a]);
    g.define(root, either);
    let grammar = g.finish(root).expect("the rule is defined");
    for way in [Strategy::Fast, Strategy::Reference] {
        let mut limits = Limits::default();
        limits.stack = 50;
        let bound = bind(&grammar, &[b"(".to_vec(), b")".to_vec(), b"a".to_vec()], &limits);
        let mut matcher = bound.matcher();
        matcher.set_strategy(way);
        let (error, taken) = until_refused(&mut matcher, b"(");
        assert_eq!(error, MatchError::TooAmbiguous);
        assert!((20..=50).contains(&taken), "{taken}");
        // After a rollback of some of it there is room again, and the text can be ended.
        matcher.rollback(3).expect("that much was taken");
        matcher.accept_bytes(b"a").expect("there is room");
        for _ in 0..taken - 3 {
            matcher.accept_bytes(b")").expect("a parenthesis is open");
        }
        assert!(matcher.is_accepting());
    }
}

/// Thousands of different leaves share one cache of tables and one library. Both are cleared when they are full,
/// programs in use keep their tables, and no mask changes.
#[test]
fn full_caches_forget_everything_and_change_no_mask() {
    let cache = AutomatonCache::default();
    let tokens: Vec<Vec<u8>> = ["a", "b", "c", "d", "ab", "abc", "\"", "\"a", "a\"", "abcabc"]
        .iter()
        .map(|token| token.as_bytes().to_vec())
        .collect();
    let library = Arc::new(Library::new(vocabulary(&tokens)));
    // A JSON string of seven letters, each one of up to four letters; every number has a table of its own.
    let program = |number: u32| {
        let mut g = GrammarBuilder::new();
        let letters = (0..7).map(|digit| {
            let letter = [b'a', b'b', b'c', b'd'][(number >> (2 * digit)) as usize % 4];
            g.class(CharSet::from_ranges([('a', letter.into())]))
        });
        let letters: Vec<_> = letters.collect();
        let text = g.seq(letters);
        let string = g.json_string(text);
        let root = g.declare("root");
        g.define(root, string);
        let grammar = g.finish(root).expect("the rule is defined");
        let program = compile(&grammar, &cache, &Limits::default()).expect("the grammar compiles");
        BoundProgram::new(Arc::new(program), library.clone())
    };
    let masks = |bound: &Arc<BoundProgram>, strategy: Strategy| {
        let mut matcher = bound.matcher();
        matcher.set_strategy(strategy);
        ["\"", "a", "a"].map(|text| {
            matcher.accept_bytes(text.as_bytes()).expect("it begins like this");
            mask(&mut matcher)
        })
    };
    let first = program(0);
    let before = masks(&first, Strategy::Fast);
    let (mut tables, mut entries) = ((0, 0), (0, 0));
    for number in 1..4_500 {
        let bound = program(number);
        if number % 16 == 0 || (4_090..4_100).contains(&number) {
            assert_eq!(masks(&bound, Strategy::Fast), masks(&bound, Strategy::Reference), "{number}");
        } else {
            masks(&bound, Strategy::Fast);
        }
        drop(bound);
        if number % 10 != 0 {
            continue;
        }
        for (held, (last, forgot)) in
            [(cache.heap_bytes(), &mut tables), (library.heap_bytes(), &mut entries)]
        {
            *forgot += u32::from(held < *last / 2);
            *last = held;
        }
    }
    assert_eq!(tables.1, 1, "the cache of tables was full once");
    assert_eq!(entries.1, 1, "the library was full once");
    assert_eq!(masks(&first, Strategy::Fast), before, "a program in use keeps what it has");
    assert_eq!(masks(&program(0), Strategy::Fast), before, "what was forgotten is made again");
}
