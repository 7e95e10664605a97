//! Compares forced bytes with the oracle, and forced tokens with a tokenizer.

use std::sync::Arc;

use maskwright_engine::{ForcedText, ForcedTokens, Matcher, TokenHealing, resolve};
use maskwright_grammar::{CharSet, TokenRef, TokenSet};
use maskwright_oracle::generate;
use maskwright_oracle::{Oracle, State};
use maskwright_vocab::{TokenId, VocabularyBuilder};

use super::toy::Toy;
use super::{bind, grammar, random_grammars};
use crate::support;

const LIMIT: usize = 40;

/// Returns forced bytes by their definition: while the text is not complete and only one byte can come.
fn forced_by_the_oracle(oracle: &Oracle, mut state: State) -> Vec<u8> {
    let mut forced = Vec::new();
    while forced.len() < LIMIT && !oracle.is_accepting(&state) {
        let [(byte, after)] = &oracle.next_bytes(&state)[..] else { break };
        forced.push(*byte);
        state = after.clone();
    }
    forced
}

#[test]
fn forced_bytes_are_those_of_the_oracle() {
    let vocabulary = support::vocabulary(&(0..=255).map(|byte| vec![byte]).collect::<Vec<_>>());
    let (mut places, mut bytes) = (0, 0);
    for (seed, mut rng, grammar) in random_grammars(5_000..5_150) {
        let Some(bound) = bind(&grammar, vocabulary.clone()) else { continue };
        let oracle = Oracle::new(&grammar);
        let Some(text) = generate::text(&mut rng, &oracle, 12) else { continue };
        let (mut matcher, mut state) = (bound.matcher(), oracle.start());
        for byte in text {
            let wanted = forced_by_the_oracle(&oracle, state.clone());
            assert_eq!(
                matcher.forced_bytes(LIMIT),
                wanted,
                "seed {seed}, byte {}\n{grammar}",
                matcher.steps()
            );
            assert_eq!(matcher.forced_bytes(1), wanted[..wanted.len().min(1)]);
            places += 1;
            bytes += wanted.len();
            matcher.accept_bytes(&[byte]).expect("it is a text of the grammar");
            state = oracle.step(&state, byte);
        }
    }
    eprintln!("{bytes} forced bytes at {places} places");
    assert!(bytes > 100 && places > bytes / 10, "nothing was compared");
}

/// Walks along texts of random grammars as a tokenizer cuts them.
fn walk_along(seeds: core::ops::Range<u64>, cuts_words: bool) {
    let (mut tokens_seen, mut tokens_forced) = (0, 0);
    for (seed, mut rng, grammar) in random_grammars(seeds) {
        let toy = Toy::new(&mut rng, "ab\" é".as_bytes(), 40, cuts_words);
        let Some(bound) = bind(&grammar, toy.vocabulary()) else { continue };
        let oracle = Oracle::new(&grammar);
        for _ in 0..8 {
            let Some(text) = generate::text(&mut rng, &oracle, 14) else { break };
            let Ok(text) = String::from_utf8(text) else { continue };
            let tokens = toy.encode(&text);
            tokens_seen += tokens.len();
            tokens_forced += follow(&mut bound.matcher(), &toy, &tokens).unwrap_or_else(|place| {
                panic!("seed {seed}, text {text:?}: {place}\n{grammar}");
            });
        }
    }
    eprintln!("{tokens_forced} of {tokens_seen} tokens are forced");
    assert!(tokens_forced * 50 > tokens_seen, "nothing was compared");
}

/// Returns how many tokens were forced, or where they differed from those of the tokenizer.
fn follow(matcher: &mut Matcher, toy: &Toy, tokens: &[TokenId]) -> Result<usize, String> {
    let mut count = 0;
    for at in 0..tokens.len() {
        let forced =
            matcher.forced_tokens(&tokens[..at], LIMIT, TokenHealing::Keep, &|text| Some(toy.encode(text)));
        if forced.taken_back > 0 || !tokens[at..].starts_with(&forced.tokens) {
            return Err(format!("after {at} tokens of {tokens:?}: {forced:?}"));
        }
        count += usize::from(!forced.tokens.is_empty());
        matcher.accept(tokens[at]).map_err(|error| error.to_string())?;
    }
    Ok(count)
}

#[test]
fn forced_tokens_are_those_of_the_tokenizer() {
    walk_along(6_000..6_120, true);
}

#[test]
fn forced_tokens_are_those_of_a_tokenizer_without_words() {
    walk_along(7_000..7_120, false);
}

#[test]
fn a_seam_is_cut_anew_if_that_is_wanted() {
    // The tokenizer has the token `ab`, but the text contains `a` alone.
    let toy = Toy::of(&[(u32::from(b'a'), u32::from(b'b'))]);
    let grammar = grammar(|g| g.bytes(b"xabab;"));
    let bound = bind(&grammar, toy.vocabulary()).expect("a literal");
    let whole = toy.encode("xabab;");
    let mut matcher = bound.matcher();
    let written = [TokenId(u32::from(b'x')), TokenId(u32::from(b'a'))];
    assert_eq!(matcher.validate(&written), Ok(2));
    for token in written {
        matcher.accept(token).expect("a literal");
    }
    let encode = |text: &str| Some(toy.encode(text));
    // With `Keep`, nothing is forced until the cut is the tokenizer's again.
    assert_eq!(matcher.forced_tokens(&written, LIMIT, TokenHealing::Keep, &encode), ForcedTokens::default());
    // With `Cut`, a new text begins after it.
    let forced = matcher.forced_tokens(&written, LIMIT, TokenHealing::Cut, &encode);
    assert_eq!(forced, ForcedTokens { taken_back: 0, tokens: toy.encode("bab;") });
    let forced = matcher.forced_tokens(&written, LIMIT, TokenHealing::Retokenize, &encode);
    assert_eq!(forced, ForcedTokens { taken_back: 1, tokens: whole[1..].to_vec() });
    assert_eq!(matcher.steps(), 2, "asking changes nothing");
    matcher.rollback(forced.taken_back).expect("it was taken");
    assert_eq!(matcher.validate(&forced.tokens), Ok(forced.tokens.len()));
}

#[test]
fn a_token_that_could_go_on_is_not_forced() {
    // After "name": a word follows, and ` a` is a token: the space is not certain, the colon is.
    let tokens = [" a", " ", ":", "a", "b", "\"", "name", "\"name"].map(|token| token.as_bytes().to_vec());
    let vocabulary = support::vocabulary(&tokens);
    let grammar = grammar(|g| {
        let head = g.bytes(b"\"name\": ");
        let letter = g.class(CharSet::from_ranges([('a', 'b')]));
        g.seq([head, letter])
    });
    let bound = bind(&grammar, vocabulary).expect("a small grammar");
    // Longest match, which has the cut property.
    let encode = |text: &str| {
        let mut rest = text.as_bytes();
        let mut ids = Vec::new();
        while !rest.is_empty() {
            let fits = |(_, token): &(usize, &Vec<u8>)| rest.starts_with(token);
            let (id, token) = tokens.iter().enumerate().filter(fits).max_by_key(|(_, token)| token.len())?;
            ids.push(TokenId(id as u32));
            rest = &rest[token.len()..];
        }
        Some(ids)
    };
    let mut matcher = bound.matcher();
    assert_eq!(matcher.forced_bytes(99), b"\"name\": ");
    let forced = matcher.forced_tokens(&[], 99, TokenHealing::Keep, &encode);
    assert_eq!(forced, ForcedTokens { taken_back: 0, tokens: vec![TokenId(7), TokenId(5), TokenId(2)] });
    // A tokenizer that returns `None` forces nothing, and neither does one that spells another text.
    assert_eq!(matcher.forced_tokens(&[], 99, TokenHealing::Keep, &|_| None), ForcedTokens::default());
    let wrong = matcher.forced_tokens(&[], 99, TokenHealing::Keep, &|_| Some(vec![TokenId(0)]));
    assert_eq!(wrong, ForcedTokens::default());
}

#[test]
fn half_a_character_is_no_text() {
    let vocabulary = support::vocabulary(&(0..=255).map(|byte| vec![byte]).collect::<Vec<_>>());
    // à to ï begin with the same byte.
    let grammar = grammar(|g| {
        let head = g.bytes("é=".as_bytes());
        let letter = g.class(CharSet::from_ranges([('à', 'ï')]));
        g.seq([head, letter])
    });
    let bound = bind(&grammar, vocabulary).expect("a small grammar");
    let mut matcher = bound.matcher();
    assert_eq!(matcher.forced_bytes(99), b"\xC3\xA9=\xC3");
    assert_eq!(matcher.forced_text(99), ForcedText { completes: vec![], text: "é=".into() });
    matcher.accept_bytes(b"\xC3").expect("the first byte of é");
    assert_eq!(matcher.forced_text(99), ForcedText { completes: vec![0xA9], text: "=".into() });
}

#[test]
fn values_that_must_differ_force_what_is_left() {
    let vocabulary = support::vocabulary(&(0..=255).map(|byte| vec![byte]).collect::<Vec<_>>());
    // [ "on" | "off", "on" | "off" ], different ones.
    let grammar = grammar(|g| {
        let (on, off) = (g.bytes(b"\"on\""), g.bytes(b"\"off\""));
        let word = g.alt([on, off]);
        let word = g.distinct(word);
        let (open, comma, close) = (g.bytes(b"["), g.bytes(b","), g.bytes(b"]"));
        let list = g.seq([open, word, comma, word, close]);
        g.scope(list, [])
    });
    let bound = bind(&grammar, vocabulary).expect("a small grammar");
    let mut matcher = bound.matcher();
    assert_eq!(matcher.forced_bytes(99), b"[\"o");
    matcher.accept_bytes(b"[\"on\"").expect("a text of the grammar");
    assert_eq!(matcher.forced_bytes(99), b",\"off\"]");
    matcher.accept_bytes(b",\"off\"]").expect("a text of the grammar");
    assert_eq!(matcher.forced_bytes(99), b"");
}

#[test]
fn a_special_token_ends_the_text_before_it() {
    let mut builder = VocabularyBuilder::new();
    let tokens = ["a", "b", "ab", " "];
    for (id, token) in (0..).zip(tokens) {
        builder.token(TokenId(id), token.as_bytes()).expect("ids are distinct");
    }
    builder.special(TokenId(7), "<|call|>").expect("the id is free");
    builder.special(TokenId(9), "<end>").expect("the id is free").eos(TokenId(9));
    let vocabulary = Arc::new(builder.finish().expect("there are tokens"));
    let grammar = grammar(|g| {
        let (a, b) = (g.bytes(b"a"), g.bytes(b"b"));
        let call = g.token(TokenSet::these([TokenRef::name("<|call|>")]));
        let end = g.alt([a, b]);
        g.seq([a, call, end])
    });
    let resolved = resolve(&grammar, &vocabulary).expect("the token is there");
    let mut matcher = bind(&resolved.grammar, vocabulary).expect("a small grammar").matcher();
    let encode = |text: &str| Some(text.chars().map(|c| TokenId(u32::from(c == 'b'))).collect());
    assert_eq!(matcher.forced_bytes(99), b"a");
    // `ab` is a token, but it cannot come here.
    let forced = matcher.forced_tokens(&[], 99, TokenHealing::Keep, &encode).tokens;
    assert_eq!(forced, [TokenId(0), TokenId(7)]);
    assert_eq!(matcher.shortest_completion(), Some(4));
    matcher.accept(TokenId(0)).expect("it is forced");
    assert_eq!(matcher.forced_bytes(99), b"");
    let forced = matcher.forced_tokens(&[TokenId(0)], 99, TokenHealing::Keep, &encode).tokens;
    assert_eq!(forced, [TokenId(7)]);
    matcher.accept(TokenId(7)).expect("it is forced");
    assert_eq!(
        matcher.forced_tokens(&[TokenId(0), TokenId(7)], 99, TokenHealing::Keep, &encode),
        ForcedTokens::default()
    );
}
