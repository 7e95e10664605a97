//! Budgets: walks within them finish, masks agree with what is accepted, and the numbers equal those of a search.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use maskwright_engine::{BoundProgram, Budget, BudgetError, CompileError, MatchError, Matcher, Strategy};
use maskwright_grammar::{CharSet, Grammar};
use maskwright_oracle::generate::{self, Rng};
use maskwright_oracle::{Oracle, State};
use maskwright_vocab::TokenId;

use super::{bind, grammar, random_grammars};
use crate::support;

/// Walks at random within a budget, and compares every mask with what is accepted. Returns the tokens of the walk.
fn walk(rng: &mut Rng, matcher: &mut Matcher, tokens: u32, what: &dyn Fn() -> String) -> Vec<TokenId> {
    let mut path = Vec::new();
    for step in 0..tokens {
        let left = matcher.budget_left().expect("there is a budget");
        assert_eq!(left, tokens - step, "{}", what());
        // A matcher without a mask, whose result would be trusted.
        let mut unasked = matcher.fork();
        let mask = matcher.mask().expect("a mask").clone();
        matcher.set_strategy(Strategy::Reference);
        assert_eq!(
            *matcher.mask().expect("a mask"),
            mask,
            "fast and plain differ after {path:?}, {left} left; {}",
            what()
        );
        matcher.set_strategy(Strategy::Fast);
        let accepting = matcher.is_accepting();
        for token in (0..matcher.bound().vocabulary().size() as u32).map(TokenId) {
            let is_taken = unasked.allows(token).expect("no limit is met");
            assert_eq!(
                is_taken,
                mask.contains(token),
                "token {token} after {path:?}, {left} left; {}",
                what()
            );
        }
        let eos = matcher.bound().vocabulary().eos()[0];
        if accepting && (left == 1 || rng.one_in(3)) {
            assert!(mask.contains(eos), "{}", what());
            return path;
        }
        let next: Vec<TokenId> = mask.iter().filter(|token| *token != eos).collect();
        let Some(token) = rng.choose(&next) else {
            assert!(accepting, "stuck after {path:?} with {left} left; {}", what());
            return path;
        };
        matcher.accept(*token).expect("it is in the mask");
        path.push(*token);
    }
    panic!("cut off after {path:?}; {}", what());
}

/// Returns the least number of tokens from a text to a complete one; `None` if there is none within some steps.
fn by_search(oracle: &Oracle, from: &State, tokens: &[Vec<u8>]) -> Option<u32> {
    let mut work = VecDeque::from([(from.clone(), Vec::new(), 0u32)]);
    let mut seen = HashSet::new();
    while let Some((state, text, count)) = work.pop_front() {
        if oracle.is_accepting(&state) {
            return Some(count);
        }
        if seen.len() > 3_000 {
            return None;
        }
        for token in tokens {
            let after = oracle.run(&state, token);
            let text = [&*text, &**token].concat();
            if oracle.is_viable(&after) && seen.insert(text.clone()) {
                work.push_back((after, text, count + 1));
            }
        }
    }
    None
}

/// Tests random grammars with random vocabularies, which have all bytes or only a few tokens.
fn random_walks(seeds: core::ops::Range<u64>, all_bytes: bool, walks: usize) {
    let (mut finished, mut searched, mut none) = (0, 0, 0);
    for (seed, mut rng, grammar) in random_grammars(seeds) {
        let mut tokens = generate::vocabulary(&mut rng, b"ab\" ", 20);
        tokens.retain(|token| !token.is_empty());
        if !all_bytes {
            tokens.retain(|token| token.len() > 1 && token.iter().all(|byte| b"ab\" ".contains(byte)));
            tokens.truncate(60);
        }
        let Some(bound) = bind(&grammar, support::vocabulary(&tokens)) else { continue };
        let mut matcher = bound.matcher();
        let need = matcher.shortest_completion();
        let oracle = Oracle::new(&grammar);
        // With hundreds of tokens a search goes at most two steps.
        if (tokens.len() < 200 || need <= Some(3))
            && let Some(least) = by_search(&oracle, &oracle.start(), &tokens)
        {
            searched += 1;
            // The token that ends the text is included.
            assert_eq!(need, Some(least + 1), "seed {seed}\n{grammar}");
        }
        let Some(need) = need else {
            assert!(!all_bytes, "seed {seed}: no way is known\n{grammar}");
            assert_eq!(matcher.set_budget(Some(Budget::new(99))), Err(BudgetError::NoWay));
            none += 1;
            continue;
        };
        let error = matcher.set_budget(Some(Budget::new(need - 1))).expect_err("it is too small");
        assert_eq!(error, BudgetError::TooSmall { tokens: need - 1, need });
        for _ in 0..walks {
            matcher.reset();
            let tokens = need + rng.below(8) as u32;
            matcher.set_budget(Some(Budget::new(tokens))).expect("it is large enough");
            let path =
                walk(&mut rng, &mut matcher, tokens, &|| format!("seed {seed}, {tokens} tokens\n{grammar}"));
            let text: Vec<u8> =
                path.iter().flat_map(|token| bound.vocabulary().bytes(*token)).copied().collect();
            assert!(oracle.accepts(&text), "seed {seed}: {}\n{grammar}", text.escape_ascii());
            finished += 1;
        }
    }
    eprintln!("{finished} walks finished; {searched} numbers compared; {none} grammars have no way");
    assert!(finished > walks * 10, "nothing was compared");
}

#[test]
fn walks_within_a_budget_finish() {
    random_walks(9_000..9_040, true, 4);
}

#[test]
fn walks_finish_with_few_tokens() {
    random_walks(10_000..10_080, false, 5);
}

fn bytes() -> Arc<maskwright_vocab::Vocabulary> {
    support::vocabulary(&(0..=255).map(|byte| vec![byte]).collect::<Vec<_>>())
}

#[test]
fn counters_are_counted() {
    // 300 to 400 letters, and 2 to 9 words.
    let grammar = grammar(|g| {
        let letter = g.class(CharSet::from_ranges([('a', 'z')]));
        let letters = g.repeat(letter, 300, Some(400));
        let word = g.bytes(b"a long word;");
        let words = g.repeat(word, 2, Some(9));
        let end = g.bytes(b".");
        g.seq([letters, end, words])
    });
    let mut matcher = bind(&grammar, bytes()).expect("a small grammar").matcher();
    assert_eq!(matcher.shortest_completion(), Some(326));
    matcher.accept_bytes(&[b'x'; 290]).expect("letters");
    assert_eq!(matcher.shortest_completion(), Some(36));
    matcher.set_budget(Some(Budget::new(37))).expect("it is large enough");
    assert_eq!(matcher.budget_left(), Some(37));
    matcher.accept_bytes(&[b'x'; 10]).expect("as one token, letters");
    assert_eq!(matcher.shortest_completion(), Some(26));
    for _ in 0..10 {
        matcher.accept(TokenId(u32::from(b'x'))).expect("there is time");
    }
    assert_eq!(matcher.budget_left(), Some(26));
    assert_eq!(matcher.accept(TokenId(u32::from(b'x'))), Err(MatchError::OutOfTokens));
    assert_eq!(matcher.mask().expect("a mask").iter().collect::<Vec<_>>(), [TokenId(u32::from(b'.'))]);
    // After a rollback the token is allowed again.
    matcher.rollback(1).expect("there was a step");
    assert_eq!(matcher.allows(TokenId(u32::from(b'x'))), Ok(true));
    matcher.set_budget(None).expect("nothing to keep");
    assert_eq!(matcher.budget_left(), None);
}

#[test]
fn literals_are_spelled_in_few_tokens() {
    let tokens = ["{\"", "name", "\":", "\"", "}", "\"}", "n", "a"].map(|token| token.as_bytes().to_vec());
    let all: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).chain(tokens).collect();
    let all: Vec<Vec<u8>> =
        all.iter().enumerate().filter(|(at, t)| !all[..*at].contains(t)).map(|(_, t)| t.clone()).collect();
    let grammar = grammar(|g| {
        let head = g.bytes(b"{\"name\":");
        let any = g.any_text();
        let string = g.json_string(any);
        let tail = g.bytes(b"}");
        g.seq([head, string, tail])
    });
    let bound = bind(&grammar, support::vocabulary(&all)).expect("a small grammar");
    // {" name ": " "} and the end
    assert_eq!(bound.matcher().shortest_completion(), Some(6));
}

#[test]
fn keys_that_must_differ_are_kept_within_a_budget() {
    // Objects with at least two keys, all different.
    let grammar = grammar(|g| {
        let any = g.any_text();
        let key = g.json_string(any);
        let key = g.distinct(key);
        let colon = g.bytes(b":1");
        let member = g.seq([key, colon]);
        let comma = g.bytes(b",");
        let more = g.seq([comma, member]);
        let more = g.repeat(more, 1, None);
        let (open, close) = (g.bytes(b"{"), g.bytes(b"}"));
        let object = g.seq([open, member, more, close]);
        g.scope(object, [])
    });
    let bound = bind(&grammar, bytes()).expect("a small grammar");
    let mut rng = Rng::new(3);
    for round in 0..60 {
        let mut matcher = bound.matcher();
        let need = matcher.shortest_completion().expect("a way");
        let tokens = need + rng.below(12) as u32;
        matcher.set_budget(Some(Budget::new(tokens))).expect("it is large enough");
        // Few letters, so that keys repeat.
        let mut text = Vec::new();
        for left in (1..=tokens).rev() {
            let mask = matcher.mask().expect("a mask").clone();
            if mask.contains(bound.vocabulary().eos()[0]) {
                break;
            }
            assert!(left > 1, "round {round}: cut off at {}", text.escape_ascii());
            let next: Vec<TokenId> = mask.iter().collect();
            let likely: Vec<TokenId> =
                next.iter().copied().filter(|token| b"a\",:1}".contains(&(token.0 as u8))).collect();
            let token = *rng
                .choose(if likely.is_empty() { &next } else { &likely })
                .unwrap_or_else(|| panic!("round {round}: stuck at {}", text.escape_ascii()));
            matcher.accept(token).expect("it is in the mask");
            text.push(token.0 as u8);
        }
        assert!(matcher.is_accepting(), "round {round}: {}", text.escape_ascii());
    }
}

/// Returns `<` letters `>` with at most `tokens` tokens between, then one more letter.
fn limited(tokens: u32) -> Grammar {
    grammar(|g| {
        let (open, close) = (g.bytes(b"<"), g.bytes(b">"));
        let letter = g.class(CharSet::from_ranges([('a', 'b')]));
        let letters = g.star(letter);
        let limited = g.limit(letters, tokens);
        g.seq([open, limited, close, letter])
    })
}

/// Returns how many tokens have a letter between the brackets.
fn inside(tokens: &[Vec<u8>], path: &[TokenId]) -> u32 {
    let (mut open, mut count) = (false, 0);
    for token in path {
        let mut counts = false;
        for byte in &tokens[token.index()] {
            match byte {
                b'<' => open = true,
                b'>' => open = false,
                _ => counts |= open,
            }
        }
        count += u32::from(counts);
    }
    count
}

#[test]
fn a_limit_counts_the_tokens_that_have_a_byte_inside() {
    let tokens: Vec<Vec<u8>> = ["<", ">", "a", "b", "ab", "<a", "a>", ">b", "a>a", "<a>"]
        .map(|token| token.as_bytes().to_vec())
        .into();
    for limit in 0..4 {
        let bound = bind(&limited(limit), support::vocabulary(&tokens)).expect("a small grammar");
        // Every sequence of tokens, by brute force.
        let mut work: Vec<Vec<TokenId>> = vec![Vec::new()];
        let mut texts = 0;
        let oracle = Oracle::new(&limited(limit));
        let spell = |path: &[TokenId]| {
            path.iter().flat_map(|token| tokens[token.index()].clone()).collect::<Vec<u8>>()
        };
        while let Some(path) = work.pop() {
            let mut matcher = bound.matcher();
            for token in &path {
                matcher.accept(*token).expect("it was in the mask");
            }
            texts += usize::from(matcher.is_accepting());
            for token in (0..tokens.len() as u32).map(TokenId) {
                let longer = [&*path, &[token]].concat();
                let state = oracle.run(&oracle.start(), &spell(&longer));
                // Every text that can continue continues with `>`, which takes no token from inside.
                let is_right = oracle.is_viable(&state) && inside(&tokens, &longer) <= limit;
                assert_eq!(matcher.allows(token), Ok(is_right), "limit {limit}, {path:?} and then {token}");
                assert_eq!(
                    matcher.mask().expect("a mask").contains(token),
                    is_right,
                    "limit {limit}, {path:?} and then {token}"
                );
                if is_right && path.len() < 6 {
                    work.push(longer);
                }
            }
        }
        assert!(texts > 2, "nothing was compared");
    }
}

#[test]
fn a_limited_part_is_closed_in_time() {
    // Nested brackets: each that is opened must be closed within the limit.
    let tokens: Vec<Vec<u8>> = ["(", ")", "((", "))", "x", ";"].map(|token| token.as_bytes().to_vec()).into();
    let mut g = maskwright_grammar::GrammarBuilder::new();
    let nest = g.declare("nest");
    let (open, close, x) = (g.bytes(b"("), g.bytes(b")"), g.bytes(b"x"));
    let again = g.rule(nest);
    let again = g.star(again);
    let deeper = g.seq([open, again, close]);
    let body = g.alt([deeper, x]);
    g.define(nest, body);
    let call = g.rule(nest);
    let limited = g.limit(call, 5);
    let end = g.bytes(b";");
    let all = g.seq([limited, end, limited, end]);
    let root = g.declare("root");
    g.define(root, all);
    let grammar = g.finish(root).expect("the grammar is whole");
    let bound: Arc<BoundProgram> = bind(&grammar, support::vocabulary(&tokens)).expect("a small grammar");
    let mut rng = Rng::new(11);
    let mut deepest = 0;
    for _ in 0..300 {
        let mut matcher = bound.matcher();
        let mut path: Vec<TokenId> = Vec::new();
        while !matcher.is_stopped() {
            let next: Vec<TokenId> = matcher.mask().expect("a mask").iter().collect();
            let token = *rng.choose(&next).unwrap_or_else(|| panic!("stuck after {path:?}"));
            matcher.accept(token).expect("it is in the mask");
            path.push(token);
            // A fork and a rollback keep the same count.
            let mask = matcher.mask().expect("a mask").clone();
            assert_eq!(*matcher.fork().mask().expect("a mask"), mask);
            matcher.rollback(1).expect("there was a step");
            matcher.accept(token).expect("it is in the mask");
            assert_eq!(*matcher.mask().expect("a mask"), mask);
        }
        for part in path.split(|token| *token == TokenId(5)) {
            assert!(part.len() <= 5, "{path:?}");
            deepest = deepest.max(part.len());
        }
        assert!(matcher.is_accepting(), "{path:?}");
    }
    assert_eq!(deepest, 5, "the limit is never reached");
}

#[test]
fn limits_and_budgets_go_together() {
    let bound = bind(&limited(9), bytes()).expect("a small grammar");
    let mut matcher = bound.matcher();
    matcher.set_budget(Some(Budget::new(7))).expect("it is large enough");
    for byte in *b"<ab" {
        matcher.accept(TokenId(u32::from(byte))).expect("there is time");
    }
    // Three left: one more letter is possible.
    matcher.accept(TokenId(u32::from(b'a'))).expect("there is time");
    assert_eq!(matcher.mask().expect("a mask").iter().collect::<Vec<_>>(), [TokenId(u32::from(b'>'))]);
}

#[test]
fn text_that_is_given_counts_as_no_token() {
    let bound = bind(&limited(2), bytes()).expect("a small grammar");
    let mut matcher = bound.matcher();
    matcher.set_budget(Some(Budget::new(4))).expect("it is large enough");
    let (a, close) = (TokenId(u32::from(b'a')), TokenId(u32::from(b'>')));
    matcher.accept_given_bytes(b"<ababab").expect("it may stand there");
    assert_eq!((matcher.budget_left(), matcher.steps()), (Some(4), 1));
    // Of the four tokens, three are for the bracket, the letter behind it and the end.
    matcher.accept(a).expect("one token inside");
    assert_eq!(matcher.mask().expect("a mask").iter().collect::<Vec<_>>(), [close]);
    matcher.set_budget(None).expect("without one");
    matcher.accept_given_bytes(b"b").expect("text has no end of its own");
    matcher.accept(a).expect("the other token");
    assert_eq!(matcher.mask().expect("a mask").iter().collect::<Vec<_>>(), [close]);
    assert!(matcher.accept_given_bytes(b"a").is_err(), "the part is over");
    matcher.rollback(3).expect("there were four steps");
    matcher.accept_bytes(b"aaa").expect("one token inside");
    matcher.accept_bytes(b"b").expect("the other one");
    assert_eq!(matcher.mask().expect("a mask").iter().collect::<Vec<_>>(), [close]);
    // What leads to where more tokens are needed than are left may not be given, either.
    let nested = grammar(|g| {
        let nest = g.declare("nest");
        let (open, shut, again) = (g.bytes(b"("), g.bytes(b")"), g.rule(nest));
        let more = g.star(again);
        let body = g.seq([open, more, shut]);
        g.define(nest, body);
        g.limit(again, 3)
    });
    let mut matcher = bind(&nested, bytes()).expect("a small grammar").matcher();
    assert_eq!(matcher.accept_given_bytes(b"(((("), Err(MatchError::OutOfTokens));
    matcher.accept_given_bytes(b"(((").expect("three tokens end it");
    assert_eq!(matcher.mask().expect("a mask").iter().collect::<Vec<_>>(), [TokenId(u32::from(b')'))]);
}

#[test]
fn limits_on_characters_are_counted_repetitions() {
    // Free text of 2 to 4 characters.
    let grammar = grammar(|g| {
        let any = g.class(CharSet::all());
        g.repeat(any, 2, Some(4))
    });
    let mut matcher = bind(&grammar, bytes()).expect("a small grammar").matcher();
    matcher.accept_bytes("é".as_bytes()).expect("one");
    assert!(!matcher.is_accepting());
    matcher.accept_bytes("éé".as_bytes()).expect("three");
    assert!(matcher.is_accepting());
    matcher.accept_bytes(b"x").expect("four");
    assert!(matcher.is_stopped());
}

#[test]
fn limits_that_leave_nothing_are_told() {
    let words = |tokens: u32| {
        grammar(|g| {
            let words = g.bytes(b"four");
            g.limit(words, tokens)
        })
    };
    let bound = |tokens: u32| bind(&words(tokens), bytes()).expect("a small grammar");
    assert_eq!(bound(4).check_limits(), Ok(()));
    assert_eq!(bound(3).check_limits(), Err(CompileError::LimitTooSmall));
    assert!(bound(3).matcher().mask().expect("a mask").is_empty());
}
