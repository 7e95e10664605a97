//! Grammars that request tokens: special ones by name, ordinary ones by number, and all but some.

use std::sync::Arc;

use maskwright_engine::{
    AutomatonCache, BoundProgram, CompileError, Library, Limits, MatchError, Matcher, Strategy, compile,
    resolve,
};
use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder, TokenRef, TokenSet};
use maskwright_vocab::{TokenId, Vocabulary, VocabularyBuilder};

const CALL: TokenId = TokenId(200);
const DONE: TokenId = TokenId(201);
const THINK: TokenId = TokenId(202);
const END: TokenId = TokenId(203);
const RAW: TokenId = TokenId(204);

fn vocabulary() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    let texts = ["a", "b", "ab", "0", "1", "10", "\"", "a\"", "\"a", "{", "}", "é", " "];
    for (id, text) in (0..).zip(texts) {
        builder.token(TokenId(id), text.as_bytes()).unwrap();
    }
    builder.token(TokenId(60), "é".as_bytes().split_last().unwrap().1).unwrap();
    builder.token(RAW, b"\xFF").unwrap();
    for (id, name) in [(CALL, "<|call|>"), (DONE, "<|done|>"), (THINK, "<think>"), (END, "<end>")] {
        builder.special(id, name).unwrap();
    }
    builder.eos(END);
    Arc::new(builder.finish().unwrap())
}

fn grammar(build: impl FnOnce(&mut GrammarBuilder) -> ExprId) -> Grammar {
    let mut g = GrammarBuilder::new();
    let body = build(&mut g);
    let root = g.declare("root");
    g.define(root, body);
    g.finish(root).unwrap()
}

fn named(g: &mut GrammarBuilder, name: &str) -> ExprId {
    g.token(TokenSet::these([TokenRef::name(name)]))
}

fn matcher(grammar: &Grammar) -> Matcher {
    let vocabulary = vocabulary();
    let resolved = resolve(grammar, &vocabulary).unwrap();
    let vocabulary = if resolved.needs_numbers { Arc::new(vocabulary.numbered()) } else { vocabulary };
    let program = compile(&resolved.grammar, &AutomatonCache::default(), &Limits::default()).unwrap();
    BoundProgram::new(Arc::new(program), Arc::new(Library::new(vocabulary))).matcher()
}

/// Returns the allowed tokens. Both strategies must agree with each other, and with a trial of every token.
fn allowed(matcher: &mut Matcher) -> Vec<u32> {
    let mut rows = [Strategy::Reference, Strategy::Fast].map(|way| {
        matcher.set_strategy(way);
        matcher.mask().expect("a mask").iter().map(|token| token.0).collect::<Vec<_>>()
    });
    assert_eq!(rows[0], rows[1]);
    let tried: Vec<u32> = (0..300).filter(|&token| matcher.allows(TokenId(token)) == Ok(true)).collect();
    assert_eq!(rows[1], tried);
    core::mem::take(&mut rows[1])
}

#[test]
fn special_tokens_stand_where_they_are_asked_for() {
    let grammar = grammar(|g| {
        let (call, done) = (named(g, "<|call|>"), named(g, "<|done|>"));
        let digit = g.class(CharSet::from_ranges([('0', '9')]));
        let digits = g.repeat(digit, 1, None);
        let a = g.bytes(b"a");
        g.seq([a, call, digits, done])
    });
    let mut matcher = matcher(&grammar);
    assert_eq!(allowed(&mut matcher), [0]);
    matcher.accept(TokenId(0)).unwrap();
    assert_eq!(allowed(&mut matcher), [CALL.0]);
    assert_eq!(matcher.accept(RAW), Err(MatchError::NoText));
    assert_eq!(matcher.accept_bytes(b"\xFF"), Err(MatchError::NotAllowed { bytes: 0 }));
    matcher.accept(CALL).unwrap();
    assert_eq!(allowed(&mut matcher), [3, 4, 5]);
    matcher.accept(TokenId(5)).unwrap();
    assert_eq!(allowed(&mut matcher), [3, 4, 5, DONE.0]);
    assert!(!matcher.is_accepting());
    matcher.accept(DONE).unwrap();
    assert!(matcher.is_accepting() && matcher.is_stopped());
    assert_eq!(allowed(&mut matcher), [END.0]);
    matcher.rollback(2).unwrap();
    assert_eq!(allowed(&mut matcher), [3, 4, 5]);
}

#[test]
fn an_end_token_can_be_asked_for_and_still_ends_the_text_elsewhere() {
    let grammar = grammar(|g| {
        let end = named(g, "<end>");
        let (a, b) = (g.bytes(b"a"), g.bytes(b"b"));
        g.seq([a, end, b])
    });
    let mut matcher = matcher(&grammar);
    assert_eq!(matcher.accept(END), Err(MatchError::NotComplete));
    matcher.accept(TokenId(0)).unwrap();
    assert_eq!(allowed(&mut matcher), [END.0]);
    matcher.accept(END).unwrap();
    assert!(!matcher.is_terminated());
    assert_eq!(allowed(&mut matcher), [1]);
    matcher.accept(TokenId(1)).unwrap();
    matcher.accept(END).unwrap();
    assert!(matcher.is_terminated());
}

#[test]
fn a_text_can_have_stop_tokens_of_its_own() {
    // `a`, a call, and then any number of `b`.
    let grammar = grammar(|g| {
        let (a, call, b) = (g.bytes(b"a"), named(g, "<|call|>"), g.bytes(b"b"));
        let some = g.star(b);
        g.seq([a, call, some])
    });
    let mut matcher = matcher(&grammar);
    let space = TokenId(12);
    assert_eq!(matcher.set_stops(Some(Arc::new([space, TokenId(205)]))), Err(MatchError::UnknownToken));
    assert_eq!(matcher.stops(), [END]);

    // A special token that the grammar requests, an ordinary one that it never uses, and one that it needs.
    matcher.set_stops(Some(Arc::new([CALL, space, TokenId(1)]))).unwrap();
    assert_eq!(allowed(&mut matcher), [0]);
    assert_eq!(matcher.accept(CALL), Err(MatchError::NotComplete));
    matcher.accept(TokenId(0)).unwrap();
    assert_eq!(allowed(&mut matcher), [CALL.0]);
    assert_eq!(matcher.accept(space), Err(MatchError::NotComplete));
    matcher.accept(CALL).unwrap();
    assert!(!matcher.is_terminated());
    // Now the text is complete. The end token of the vocabulary does not end it, but `b` does.
    assert_eq!(allowed(&mut matcher), [1, space.0, CALL.0]);
    for stop in [CALL, space, TokenId(1)] {
        matcher.accept(stop).unwrap();
        assert!(matcher.is_terminated());
        matcher.rollback(1).unwrap();
    }
    let mut fork = matcher.fork();
    fork.set_stops(None).unwrap();
    assert_eq!(allowed(&mut fork), [1, END.0]);

    matcher.set_eos_in_mask(false);
    assert_eq!(matcher.mask().expect("a mask").iter().next(), None);
}

#[test]
fn free_text_with_special_tokens_in_between() {
    let grammar = grammar(|g| {
        let special = g.token(TokenSet::specials_but([TokenRef::name("<|call|>"), TokenRef::name("<gone>")]));
        let character = g.class(CharSet::all());
        let one = g.alt([special, character]);
        let free = g.star(one);
        let call = named(g, "<|call|>");
        let text = g.any_text();
        let string = g.json_string(text);
        g.seq([free, call, string])
    });
    let mut matcher = matcher(&grammar);
    let all: Vec<u32> = (0..13).chain([60, CALL.0, DONE.0, THINK.0]).collect();
    assert_eq!(allowed(&mut matcher), all);
    matcher.accept(THINK).unwrap();
    assert_eq!(allowed(&mut matcher), all);
    // Inside a character no special token can come.
    matcher.accept(TokenId(60)).unwrap();
    assert_eq!(allowed(&mut matcher), [] as [u32; 0]);
    matcher.rollback(1).unwrap();
    matcher.accept(CALL).unwrap();
    assert_eq!(allowed(&mut matcher), [6, 8]);
    matcher.accept(TokenId(8)).unwrap();
    assert!(!allowed(&mut matcher).contains(&THINK.0));
}

#[test]
fn ordinary_tokens_by_number() {
    let grammar = grammar(|g| {
        let some =
            g.token(TokenSet::all_but([TokenRef::Ids(1, 11), TokenRef::id(60), TokenRef::name("<|done|>")]));
        let (a, b) = (g.bytes(b"a"), g.bytes(b"b"));
        let text = g.seq([a, b, b]);
        let token = g.seq([some, b]);
        g.alt([token, text])
    });
    let mut matcher = matcher(&grammar);
    // By number: a, the space, the raw byte and two special tokens; by text: a and ab.
    assert_eq!(allowed(&mut matcher), [0, 2, 12, CALL.0, THINK.0, RAW.0]);
    matcher.accept(RAW).unwrap();
    assert_eq!(allowed(&mut matcher), [1]);
    matcher.rollback(1).unwrap();
    matcher.accept(TokenId(0)).unwrap();
    assert_eq!(allowed(&mut matcher), [1]);
    matcher.accept(TokenId(1)).unwrap();
    // Two readings: the token `a` and `b`, which is complete, and the prefix of `abb`.
    assert!(matcher.is_accepting());
    assert_eq!(allowed(&mut matcher), [1, END.0]);
    matcher.rollback(2).unwrap();
    matcher.accept(TokenId(2)).unwrap();
    assert!(!matcher.is_accepting());
}

#[test]
fn unknown_tokens_are_named() {
    let refused = |set| resolve(&grammar(|g| g.token(set)), &vocabulary()).unwrap_err().to_string();
    assert_eq!(
        refused(TokenSet::these([TokenRef::name("<|CALL|>")])),
        "there is no token `<|CALL|>`; is `<|call|>` meant?"
    );
    assert!(refused(TokenSet::these([TokenRef::name("<x>")])).starts_with("there is no token `<x>`;"));
    assert_eq!(refused(TokenSet::these([TokenRef::id(150)])), "there is no token 150");
    assert_eq!(
        refused(TokenSet::these([TokenRef::Ids(100, u32::MAX - 1), TokenRef::Ids(400, 500)])),
        "there is no token from 400 to 500"
    );
    let unresolved = grammar(|g| named(g, "<end>"));
    let error = compile(&unresolved, &AutomatonCache::default(), &Limits::default()).unwrap_err();
    assert!(matches!(error, CompileError::Tokens(_)));
}
