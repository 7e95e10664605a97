//! Compares scopes that keep sets of words with the same scopes that list their values, and checks that no walk reaches
//! a dead end.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

use std::sync::Arc;

use maskwright_engine::{
    AutomatonCache, BoundProgram, FastPath, Library, Limits, MatchError, Tuning, compile,
};
use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder};
use maskwright_oracle::generate::Rng;
use maskwright_vocab::{TokenId, TokenMask};

use crate::support;

/// Returns an object with some keys in any order, whose values may be the whole grammar again.
fn object(g: &mut GrammarBuilder, rng: &mut Rng, again: ExprId) -> ExprId {
    let space = g.bytes(b" ");
    let blank = g.optional(space);
    let blanks = g.star(space);
    let mut names: Vec<String> = Vec::new();
    for _ in 0..=rng.below(9) {
        // Many of them share prefixes, and some are prefixes of others.
        let length = 1 + rng.below(3);
        names.push((0..length).map(|_| char::from(b'a' + rng.below(2) as u8)).collect());
    }
    names.sort_unstable();
    names.dedup();
    let (one, colon) = (g.bytes(b"1"), g.bytes(b":"));
    let mut parts = Vec::new();
    for name in &names {
        let key = g.bytes(format!("\"{name}\"").as_bytes());
        let key = g.distinct(key);
        let value = if rng.below(4) == 0 { again } else { one };
        let after = if rng.below(3) == 0 { blank } else { g.empty() };
        parts.push(g.seq([key, colon, value, after]));
    }
    if rng.below(3) == 0 {
        // Infinitely many other keys.
        let letter = g.class(CharSet::from_ranges([('c', 'd')]));
        let text = g.repeat(letter, 1, None);
        let key = g.json_string(text);
        let key = g.distinct(key);
        parts.push(g.seq([key, colon, one]));
    }
    let member = g.alt(parts);
    let comma = g.bytes(b",");
    let before = [g.empty(), blank, blanks][rng.below(3)];
    let next = g.seq([comma, before, member]);
    let most = if rng.below(6) == 0 { Some(1 + rng.below(4) as u32) } else { None };
    let least = if rng.below(6) == 0 { 1 + rng.below(2) as u32 } else { 0 };
    let more = g.repeat(next, least, most.map(|most| most + least));
    let (open, close) = (g.bytes(b"{"), g.bytes(b"}"));
    // White space that only the end may follow.
    let end = match rng.below(4) {
        0 => g.seq([blank, close]),
        1 => g.seq([blanks, close]),
        _ => close,
    };
    let body = g.seq([open, before, member, more, end]);
    let required: Vec<Box<str>> =
        names.iter().filter(|_| rng.below(4) == 0).map(|name| (**name).into()).collect();
    let body = if required.is_empty() && rng.below(2) == 0 {
        let empty = g.bytes(b"{}");
        g.alt([body, empty])
    } else {
        body
    };
    let mut needs: Vec<(Box<str>, Box<str>)> = Vec::new();
    for _ in 0..if rng.below(2) == 0 { rng.below(5) } else { 0 } {
        let mut name = || rng.choose(&names).map(|name| (**name).into()).unwrap_or_default();
        needs.push((name(), name()));
    }
    g.scope_with_needs(body, required, needs)
}

/// Returns objects whose rules distinguish what was written, like those of `oneOf` and `if`: each key leads to a rule
/// for what may follow.
fn states(rng: &mut Rng) -> Grammar {
    let mut g = GrammarBuilder::new();
    let root = g.declare("root");
    let rules: Vec<_> = (0..=rng.below(4)).map(|at| g.declare(&format!("members_{at}"))).collect();
    let names = &["a", "b", "ab", "ba"][..=rng.below(4)];
    let (space, one, colon, comma) = (g.bytes(b" "), g.bytes(b"1"), g.bytes(b":"), g.bytes(b","));
    let (blank, again) = (g.optional(space), g.rule(root));
    for (at, rule) in rules.iter().enumerate() {
        let mut ways = Vec::new();
        for _ in 0..=rng.below(3) {
            let key = if let Some(name) = names.get(rng.below(names.len() + 1)) {
                g.bytes(format!("\"{name}\"").as_bytes())
            } else {
                let letter = g.class(CharSet::from_ranges([('c', 'd')]));
                let text = g.repeat(letter, 1, None);
                g.json_string(text)
            };
            let key = g.distinct(key);
            let value = if rng.below(6) == 0 { again } else { one };
            // Usually a later rule, which knows what was written.
            let next = if rng.below(3) == 0 { rng.below(rules.len()) } else { (at + 1).min(rules.len() - 1) };
            let next = g.rule(rules[next]);
            let before = if rng.below(3) == 0 { blank } else { g.empty() };
            ways.push(g.seq([before, key, colon, value, comma, next]));
        }
        if at + 1 == rules.len() || rng.below(3) == 0 {
            ways.push(if rng.below(3) == 0 { blank } else { g.empty() });
        }
        let either = g.alt(ways);
        let either = if rng.below(8) == 0 { g.star(either) } else { either };
        g.define(*rule, either);
    }
    let required: Vec<Box<str>> =
        names.iter().filter(|_| rng.below(4) == 0).map(|name| (*name).into()).collect();
    let (open, close, first) = (g.bytes(b"{"), g.bytes(b"}"), g.rule(rules[0]));
    let body = g.seq([open, first, close]);
    let object = g.scope_with_needs(body, required, Vec::new());
    let either = g.alt([one, object]);
    g.define(root, either);
    g.finish(root).expect("all rules are defined")
}

fn random(rng: &mut Rng) -> Grammar {
    let mut g = GrammarBuilder::new();
    let root = g.declare("root");
    let rule = g.rule(root);
    // Two objects may begin alike, so that stacks fork.
    let mut parts = vec![g.bytes(b"1")];
    for _ in 0..=rng.below(3) {
        parts.push(object(&mut g, rng, rule));
    }
    let either = g.alt(parts);
    g.define(root, either);
    g.finish(root).expect("all rules are defined")
}

fn tokens(rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> = b"{}\":,1 abcd".iter().map(|byte| vec![*byte]).collect();
    let pieces = [
        "{\"",
        "\":",
        "1,",
        "\"a",
        "b\":",
        ",\"",
        "1}",
        " \"",
        "aa",
        "ab",
        "\"b\"",
        "},",
        "}}",
        "1 }",
        "\"a\":1,\"b",
    ];
    for _ in 0..60 {
        let count = 1 + rng.below(3);
        let token: String = (0..count).map(|_| *rng.choose(&pieces).expect("there are pieces")).collect();
        tokens.push(token.into_bytes());
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

#[test]
fn masks_are_those_of_lists() {
    compare(random, 80);
}

#[test]
fn masks_of_states_are_those_of_lists() {
    compare(states, 400);
}

/// Compares the masks of random grammars with those of the same grammars without sets.
fn compare(random: fn(&mut Rng) -> Grammar, seeds: u64) {
    let (mut compared, mut walked, mut listed, mut long, mut with_sets, mut dead) = (0, 0, 0, 0, 0, 0);
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let grammar = random(&mut rng);
        let vocabulary = support::vocabulary(&tokens(&mut rng));
        // Searches for values that are listed may be long.
        let mut limits = Limits::default();
        limits.mask_steps = 20_000;
        let bind = || {
            let program = compile(&grammar, &AutomatonCache::default(), &limits).ok()?;
            let bound = BoundProgram::new(Arc::new(program), Arc::new(Library::new(vocabulary.clone())));
            bound.dead_scopes().is_empty().then_some(bound)
        };
        let before = FastPath::WordSets.taken();
        let Some(bound) = bind().filter(|_| FastPath::WordSets.taken() > before) else {
            listed += 1;
            continue;
        };
        with_sets += 1;
        // It may take too many steps to find out that a scope has no text, if another scope that keeps a set is written
        // in its values.
        let Some(listing) = Tuning::DEFAULT.without(FastPath::WordSets).run(bind) else {
            dead += 1;
            continue;
        };
        for walk in 0..4 {
            let (mut by_set, mut by_list) = (bound.matcher(), listing.matcher());
            let mut text = Vec::new();
            for _ in 0..40 {
                let what = || format!("seed {seed}, after {}\n{grammar}", text.escape_ascii());
                let mask = match by_set.mask() {
                    Ok(mask) => mask.clone(),
                    // Another scope of the grammar lists its values, and a search may be too long.
                    Err(MatchError::TooManySteps { .. }) => {
                        long += 1;
                        break;
                    }
                    Err(error) => panic!("{error}, {}", what()),
                };
                match by_list.mask() {
                    Ok(other) => {
                        let spell = |mask: &TokenMask| {
                            let bytes =
                                mask.iter().map(|token| vocabulary.bytes(token).escape_ascii().to_string());
                            bytes.collect::<Vec<_>>()
                        };
                        assert_eq!(spell(&mask), spell(other), "{}", what());
                    }
                    Err(error) => assert!(matches!(error, MatchError::TooManySteps { .. }), "{error}"),
                }
                compared += 1;
                let allowed: Vec<TokenId> = mask.iter().collect();
                let token = *rng.choose(&allowed).unwrap_or_else(|| panic!("stuck, {}", what()));
                for token in (0..vocabulary.size() as u32).map(TokenId).filter(|_| walk == 0) {
                    let is_taken = match by_set.fork().accept(token) {
                        Err(error) if error.is_limit() => continue,
                        taken => taken.is_ok(),
                    };
                    assert_eq!(is_taken, mask.contains(token), "{token}, {}", what());
                }
                match by_set.accept(token) {
                    Err(error) if error.is_limit() => {
                        long += 1;
                        break;
                    }
                    taken => taken.unwrap_or_else(|error| panic!("{error}, {}", what())),
                }
                if let Err(error) = by_list.accept(token) {
                    assert!(matches!(error, MatchError::TooManySteps { .. }), "{error}, {}", what());
                    break;
                }
                if by_set.is_terminated() {
                    walked += 1;
                    break;
                }
                text.extend_from_slice(vocabulary.bytes(token));
            }
        }
    }
    eprintln!(
        "{compared} masks compared, {walked} walks to the end, {listed} grammars without sets, {with_sets} with sets, {dead} of them dead with lists, {long} searches too long"
    );
    assert!(walked > 60 && long * 10 < walked && with_sets > 20 && dead < 3);
}
