//! Compares the least number of tokens with a search that reads every sequence of tokens.
//!
//! Vocabularies are a few short tokens, so that tokens often span several leaves and rules, and some bytes are not
//! tokens.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use maskwright_engine::{BoundProgram, Budget, BudgetError, Matcher, Strategy, Tuning};
use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder};
use maskwright_oracle::generate::Rng;
use maskwright_oracle::{Oracle, State};
use maskwright_vocab::TokenId;

use super::{bind, grammar, random_grammars};
use crate::support;

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Least {
    /// This many tokens complete the text.
    Tokens(u32),
    /// No tokens do.
    Never,
    /// The search gave up.
    Unknown,
}

/// Looks for the shortest way to a complete text, breadth first.
struct Search<'o> {
    oracle: &'o Oracle,
    tokens: &'o [Vec<u8>],
    known: RefCell<HashMap<Vec<u8>, Least>>,
    /// Maximum number of texts it visits.
    texts: usize,
}

impl<'o> Search<'o> {
    fn new(oracle: &'o Oracle, tokens: &'o [Vec<u8>], texts: usize) -> Self {
        Self { oracle, tokens, known: RefCell::default(), texts }
    }

    fn least(&self, text: &[u8]) -> Least {
        if let Some(known) = self.known.borrow().get(text) {
            return *known;
        }
        let found = self.breadth_first(self.oracle.run(&self.oracle.start(), text));
        self.known.borrow_mut().insert(text.to_vec(), found);
        found
    }

    fn breadth_first(&self, from: State) -> Least {
        let mut work = VecDeque::from([(from, Vec::new(), 0u32)]);
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        while let Some((state, text, count)) = work.pop_front() {
            if self.oracle.is_accepting(&state) {
                return Least::Tokens(count);
            }
            if seen.len() > self.texts {
                return Least::Unknown;
            }
            for token in self.tokens {
                let after = self.oracle.run(&state, token);
                let text = [&*text, &**token].concat();
                if self.oracle.is_viable(&after) && seen.insert(text.clone()) {
                    work.push_back((after, text, count + 1));
                }
            }
        }
        Least::Never
    }
}

/// How much was compared.
#[derive(Debug, Default)]
struct Compared {
    numbers: usize,
    none: usize,
    masks: usize,
    refused: usize,
}

/// Compares the number at the beginning, and every bit of the masks along random walks within tight budgets.
fn compare(rng: &mut Rng, bound: &Arc<BoundProgram>, search: &Search<'_>, what: &str, all: &mut Compared) {
    let mut matcher = bound.matcher();
    let number = matcher.shortest_completion();
    let least = match search.least(b"") {
        Least::Unknown => return,
        Least::Never => {
            assert_eq!(number, None, "{what}");
            assert_eq!(matcher.set_budget(Some(Budget::new(99))), Err(BudgetError::NoWay), "{what}");
            all.none += 1;
            return;
        }
        // The token that ends the text is included.
        Least::Tokens(least) => least + 1,
    };
    assert_eq!(number, Some(least), "{what}");
    all.numbers += 1;
    let error = matcher.set_budget(Some(Budget::new(least - 1))).expect_err("it is too small");
    assert_eq!(error, BudgetError::TooSmall { tokens: least - 1, need: least }, "{what}");
    for more in 0..3 {
        matcher.reset();
        matcher.set_budget(Some(Budget::new(least + more))).expect("it is large enough");
        walk(rng, &mut matcher, search, what, all);
    }
}

fn walk(rng: &mut Rng, matcher: &mut Matcher, search: &Search<'_>, what: &str, all: &mut Compared) {
    let eos = matcher.bound().vocabulary().eos()[0];
    let mut text = Vec::new();
    loop {
        let left = matcher.budget_left().expect("there is a budget");
        let what = || format!("after {}, {left} left; {what}", text.escape_ascii());
        // A matcher without a mask, whose result would be trusted.
        let mut unasked = matcher.fork();
        let mask = matcher.mask().expect("a mask").clone();
        matcher.set_strategy(Strategy::Reference);
        assert_eq!(*matcher.mask().expect("a mask"), mask, "fast and plain differ {}", what());
        matcher.set_strategy(Strategy::Fast);
        all.masks += 1;
        let mut next = Vec::new();
        for (id, token) in (0..).map(TokenId).zip(search.tokens) {
            let is_allowed = mask.contains(id);
            assert_eq!(unasked.allows(id), Ok(is_allowed), "{id} {}", what());
            next.extend(is_allowed.then_some(id));
            let longer = [&*text, &**token].concat();
            let state = search.oracle.run(&search.oracle.start(), &longer);
            let is_right = match search.least(&longer) {
                _ if !search.oracle.is_viable(&state) => false,
                // The token itself, these, and the end.
                Least::Tokens(tokens) => tokens + 2 <= left,
                Least::Never => false,
                Least::Unknown => continue,
            };
            assert_eq!(is_allowed, is_right, "{id} {} {}", token.escape_ascii(), what());
            all.refused += usize::from(!is_right && search.oracle.is_viable(&state));
        }
        let is_complete = matcher.is_accepting();
        assert_eq!(mask.contains(eos), is_complete, "{}", what());
        let Some(token) = rng.choose(&next) else {
            assert!(is_complete, "stuck {}", what());
            return;
        };
        if is_complete && rng.one_in(3) {
            return;
        }
        matcher.accept(*token).expect("it is in the mask");
        text.extend_from_slice(&search.tokens[token.index()]);
    }
}

/// Returns short words over some letters, with or without the letters themselves.
fn vocabulary(rng: &mut Rng, letters: &[&str], all_letters: bool, size: usize) -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> = Vec::new();
    if all_letters {
        let bytes: HashSet<u8> = letters.iter().flat_map(|letter| letter.bytes()).collect();
        tokens.extend(bytes.into_iter().map(|byte| vec![byte]));
        tokens.sort_unstable();
    }
    for _ in 0..size * 4 {
        let word: Vec<&str> = (0..2 + rng.below(3)).filter_map(|_| rng.choose(letters).copied()).collect();
        let word = word.concat().into_bytes();
        if tokens.len() < size && !tokens.contains(&word) {
            tokens.push(word);
        }
    }
    tokens
}

fn random(seeds: core::ops::Range<u64>, all_letters: bool) -> Compared {
    let mut all = Compared::default();
    for (seed, mut rng, grammar) in random_grammars(seeds) {
        let tokens = vocabulary(&mut rng, &["a", "b", "\"", " ", "é"], all_letters, 14);
        let Some(bound) = bind(&grammar, support::vocabulary(&tokens)) else { continue };
        let oracle = Oracle::new(&grammar);
        let search = Search::new(&oracle, &tokens, 400);
        let what = format!("seed {seed}, tokens {:?}\n{grammar}", show(&tokens));
        compare(&mut rng, &bound, &search, &what, &mut all);
    }
    all
}

fn show(tokens: &[Vec<u8>]) -> Vec<String> {
    tokens.iter().map(|token| token.escape_ascii().to_string()).collect()
}

#[test]
fn random_grammars_with_all_letters() {
    let all = random(20_000..20_150, true);
    eprintln!("{all:?}");
    assert!(all.numbers > 60 && all.masks > 500 && all.refused > 200, "{all:?}");
}

#[test]
fn random_grammars_with_few_tokens() {
    let all = random(21_000..21_300, false);
    eprintln!("{all:?}");
    assert!(all.numbers > 30 && all.none > 5 && all.masks > 100, "{all:?}");
}

/// Returns grammars in which tokens span every kind of border.
fn chosen() -> Vec<(&'static str, Grammar, &'static [&'static str])> {
    let one = |root: fn(&mut GrammarBuilder) -> ExprId| grammar(root);
    let nested = {
        let mut g = GrammarBuilder::new();
        let list = g.declare("list");
        let (open, close, comma, x) = (g.bytes(b"["), g.bytes(b"]"), g.bytes(b","), g.bytes(b"xy"));
        let inner = g.rule(list);
        let item = g.alt([inner, x]);
        let more = g.seq([comma, item]);
        let more = g.repeat(more, 1, Some(3));
        let body = g.seq([open, item, more, close]);
        g.define(list, body);
        g.finish(list).expect("the grammar is whole")
    };
    let strings = one(|g| {
        let any = g.any_text();
        let string = g.json_string(any);
        let letter = g.class(CharSet::from_ranges([('a', 'b')]));
        let long = g.repeat(letter, 3, Some(6));
        let long = g.json_string(long);
        let (open, colon, close) = (g.bytes(b"{"), g.bytes(b":"), g.bytes(b"}"));
        g.seq([open, string, colon, long, close])
    });
    let counted = one(|g| {
        let letter = g.class(CharSet::from_ranges([('a', 'b')]));
        let letters = g.repeat(letter, 5, Some(9));
        let pair = g.bytes(b"ab;");
        let pairs = g.repeat(pair, 3, Some(5));
        let end = g.bytes(b".");
        g.seq([letters, end, pairs])
    });
    let open_leaf = one(|g| {
        let letter = g.class(CharSet::from_ranges([('a', 'b')]));
        let letters = g.repeat(letter, 1, None);
        let tail = g.bytes(b"ab;a");
        g.seq([letters, tail])
    });
    vec![
        ("nested", nested, &["[", "]", ",", "x", "y", "[[", "[x", "y,", "y]", "y,x", "],[", "]]", "xy,xy"]),
        (
            "strings",
            strings,
            &["{", "}", ":", "\"", "a", "b", "{\"", "\":\"", "\"\"", "ab", "aba", "b\"}", "\"a"],
        ),
        (
            "counted",
            counted,
            &["a", "b", ";", ".", "aa", "abab", "b.a", ";ab", "b;ab", ".ab;", ";ab;a", "aaa."],
        ),
        ("open leaf", open_leaf, &["a", "b", ";", "ab", "bab;", ";a", "aab;a", "bb"]),
    ]
}

fn borders() -> Compared {
    let mut all = Compared::default();
    for (name, grammar, tokens) in chosen() {
        for without in 0..=tokens.len() {
            // Each token may be missing.
            let tokens: Vec<Vec<u8>> = tokens
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != without)
                .map(|(_, t)| t.as_bytes().to_vec())
                .collect();
            let bound = bind(&grammar, support::vocabulary(&tokens)).expect("a small grammar");
            let oracle = Oracle::new(&grammar);
            let search = Search::new(&oracle, &tokens, 4_000);
            let what = format!("{name}, tokens {:?}", show(&tokens));
            compare(&mut Rng::new(without as u64), &bound, &search, &what, &mut all);
        }
    }
    all
}

#[test]
fn tokens_run_over_borders() {
    let all = borders();
    eprintln!("{all:?}");
    assert!(all.numbers > 30 && all.refused > 100, "{all:?}");
}

/// Large sets of nodes, and walks over sets of threads, give the same numbers and masks; here every set is large, or
/// none is.
#[test]
fn thresholds_change_no_number() {
    for value in [0, 1, 2, u64::MAX] {
        let all = Tuning::all(value).run(|| [random(22_000..22_060, true), borders()]);
        eprintln!("{value}: {all:?}");
        assert!(all.iter().all(|all| all.numbers > 20 && all.masks > 100 && all.refused > 50), "{all:?}");
    }
}

/// Returns the least number of tokens that complete a text where values must differ, including the end: by forks,
/// breadth first.
fn by_forks(matcher: &Matcher) -> Option<u32> {
    let mut work = VecDeque::from([(matcher.fork(), Vec::new(), 1u32)]);
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    while let Some((mut matcher, text, count)) = work.pop_front() {
        if matcher.is_accepting() {
            return Some(count);
        }
        let mask = matcher.mask().expect("a mask").clone();
        for token in mask.iter() {
            let mut fork = matcher.fork();
            fork.accept(token).expect("it is in the mask");
            let text = [&*text, matcher.bound().vocabulary().bytes(token)].concat();
            if seen.len() < 20_000 && seen.insert(text.clone()) {
                work.push_back((fork, text, count + 1));
            }
        }
    }
    None
}

/// Checks that walks within budgets finish, and that masks tell what is accepted and what fits. Returns how many tokens
/// were allowed, and how many others would have fitted.
fn walk_with_values(rng: &mut Rng, bound: &Arc<BoundProgram>, need: u32) -> (usize, usize) {
    let eos = bound.vocabulary().eos()[0];
    let (mut allowed, mut missed) = (0, 0);
    for round in 0..24 {
        let mut matcher = bound.matcher();
        matcher.set_budget(Some(Budget::new(need + round % 6))).expect("it is large enough");
        let mut text = Vec::new();
        while !matcher.is_terminated() {
            let left = matcher.budget_left().expect("there is a budget");
            let what = format!("round {round}, {left} left after {}", text.escape_ascii());
            assert!(left > 0, "{what}");
            let mut unasked = matcher.fork();
            let mask = matcher.mask().expect("a mask").clone();
            for token in (0..bound.vocabulary().size() as u32).map(TokenId) {
                assert_eq!(unasked.allows(token), Ok(mask.contains(token)), "{token}, {what}");
                let mut free = matcher.fork();
                free.set_budget(None).expect("nothing to keep");
                if token == eos || free.accept(token).is_err() {
                    continue;
                }
                let fits = by_forks(&free).is_some_and(|least| least < left);
                assert!(fits || !mask.contains(token), "{token} does not fit, {what}");
                allowed += usize::from(mask.contains(token));
                missed += usize::from(fits && !mask.contains(token));
            }
            let next: Vec<TokenId> = mask.iter().collect();
            let token = *rng.choose(&next).unwrap_or_else(|| panic!("stuck, {what}"));
            matcher.accept(token).expect("it is in the mask");
            text.extend_from_slice(bound.vocabulary().bytes(token));
        }
    }
    (allowed, missed)
}

fn tokens(tokens: &[&str]) -> Arc<maskwright_vocab::Vocabulary> {
    support::vocabulary(&tokens.iter().map(|token| token.as_bytes().to_vec()).collect::<Vec<_>>())
}

#[test]
fn keys_in_any_order_are_kept_within_a_budget() {
    let grammar = grammar(|g| {
        let mut members = Vec::new();
        for (key, value) in [("\"a\"", ":1"), ("\"b\"", ":22"), ("\"c\"", ":3")] {
            let key = g.bytes(key.as_bytes());
            let key = g.distinct(key);
            let value = g.bytes(value.as_bytes());
            members.push(g.seq([key, value]));
        }
        let member = g.alt(members);
        let comma = g.bytes(b",");
        let more = g.seq([comma, member]);
        let more = g.star(more);
        let (open, close) = (g.bytes(b"{"), g.bytes(b"}"));
        let object = g.seq([open, member, more, close]);
        g.scope(object, ["b".into(), "c".into()])
    });
    let vocabulary =
        tokens(&["{\"", "a", "b", "c", "\":", "1", "2", "3", ",\"", "}", "\"", "2,\"", "3}", ","]);
    let bound = bind(&grammar, vocabulary).expect("a small grammar");
    // {" b ": 2 2," c ": 3} and the end
    assert_eq!(by_forks(&bound.matcher()), Some(9));
    assert_eq!(bound.matcher().shortest_completion(), Some(9));
    let (allowed, missed) = walk_with_values(&mut Rng::new(5), &bound, 9);
    eprintln!("{allowed} tokens allowed, {missed} missed");
    assert!(allowed > 100 && missed * 5 < allowed, "{allowed} allowed, {missed} missed");
}

/// Returns an array of at least two items that must differ.
fn different(item: impl Fn(&mut GrammarBuilder) -> ExprId) -> Grammar {
    grammar(|g| {
        let item = item(g);
        let item = g.distinct(item);
        array(g, item, 1)
    })
}

/// Returns an array in a scope of its own, with at least `more` items after the first.
fn array(g: &mut GrammarBuilder, item: ExprId, more: u32) -> ExprId {
    let comma = g.bytes(b",");
    let next = g.seq([comma, item]);
    let others = g.repeat(next, more, None);
    let (open, close) = (g.bytes(b"["), g.bytes(b"]"));
    let array = g.seq([open, item, others, close]);
    g.scope(array, [])
}

#[test]
fn different_words_are_kept_within_a_budget() {
    let grammar = grammar(|g| {
        let words = ["\"red\"", "\"blue\"", "\"green\"", "\"grey\""].map(|word| {
            let word = g.bytes(word.as_bytes());
            g.distinct(word)
        });
        let item = g.alt(words);
        array(g, item, 2)
    });
    let vocabulary = tokens(&[
        "[\"", "red", "blue", "g", "reen", "r", "e", "y", "d", "b", "l", "u", "n", "\",\"", "\"]", "\"", ",",
        "]",
    ]);
    let bound = bind(&grammar, vocabulary).expect("a small grammar");
    // [" red "," blue "," g reen "] and the end
    assert_eq!(by_forks(&bound.matcher()), Some(9));
    assert_eq!(bound.matcher().shortest_completion(), Some(9));
    let (allowed, missed) = walk_with_values(&mut Rng::new(7), &bound, 9);
    eprintln!("{allowed} tokens allowed, {missed} missed");
    assert!(allowed > 100 && missed * 5 < allowed, "{allowed} allowed, {missed} missed");
}

#[test]
fn values_that_may_run_out_are_refused_by_name() {
    let grammar = different(|g| {
        let words = ["\"red\"", "\"blue\"", "\"green\"", "\"grey\""].map(|word| g.bytes(word.as_bytes()));
        g.alt(words)
    });
    let bound = bind(&grammar, bytes_and(&["\",\"", "\"]"])).expect("a small grammar");
    let mut matcher = bound.matcher();
    assert_eq!(matcher.shortest_completion(), None);
    assert_eq!(matcher.set_budget(Some(Budget::new(99))), Err(BudgetError::Values));
    assert_eq!(matcher.budget_left(), None);
}

/// Returns a vocabulary of every byte and these tokens.
fn bytes_and(more: &[&str]) -> Arc<maskwright_vocab::Vocabulary> {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let more = more.iter().map(|token| token.as_bytes().to_vec());
    support::vocabulary(&bytes.chain(more).collect::<Vec<_>>())
}

/// Walks that tend to repeat what was written. Each finishes within its budget, and masks tell what is accepted.
fn walks_finish(bound: &Arc<BoundProgram>, likely: &[u8], seeds: core::ops::Range<u64>) {
    let eos = bound.vocabulary().eos()[0];
    let need = bound.matcher().shortest_completion().expect("there is a way");
    let (mut late, mut repeated) = (0, 0);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut matcher = bound.matcher();
        matcher.set_budget(Some(Budget::new(need + rng.below(60) as u32))).expect("it is large enough");
        let mut text = Vec::new();
        while !matcher.is_terminated() {
            let left = matcher.budget_left().expect("there is a budget");
            let what = format!("seed {seed}, {left} left after {}", text.escape_ascii());
            assert!(left > 0, "{what}");
            let mut unasked = matcher.fork();
            let mask = matcher.mask().expect("a mask").clone();
            matcher.set_strategy(Strategy::Reference);
            assert_eq!(*matcher.mask().expect("a mask"), mask, "fast and plain differ, {what}");
            matcher.set_strategy(Strategy::Fast);
            let mut free = matcher.fork();
            free.set_budget(None).expect("nothing to keep");
            for token in (0..bound.vocabulary().size() as u32).map(TokenId) {
                assert_eq!(unasked.allows(token), Ok(mask.contains(token)), "{token}, {what}");
                late += usize::from(!mask.contains(token) && free.allows(token).expect("no limit is met"));
                repeated += usize::from(
                    !mask.contains(token) && !free.allows(token).expect("no limit is met") && token != eos,
                );
            }
            // The end comes only where it must, so that the budget is used up.
            let all: Vec<TokenId> = mask.iter().filter(|token| *token != eos).collect();
            let chosen = |token: &&TokenId| {
                let bytes = bound.vocabulary().bytes(**token);
                bytes.iter().all(|byte| likely.contains(byte))
            };
            let few: Vec<TokenId> = all.iter().filter(chosen).copied().collect();
            let token = match rng.choose(if few.is_empty() { &all } else { &few }) {
                Some(token) => *token,
                None if mask.contains(eos) => eos,
                None => panic!("stuck, {what}"),
            };
            matcher.accept(token).expect("it is in the mask");
            text.extend_from_slice(bound.vocabulary().bytes(token));
        }
    }
    assert!(late > 20 && repeated > 100, "{late} {repeated}");
}

#[test]
fn different_strings_are_kept_within_a_budget() {
    let any = different(|g| {
        let any = g.any_text();
        g.json_string(any)
    });
    let vocabulary = bytes_and(&["\",\"", "\"]", "[\"", "aa", "\"a", "a\"", ",\"a\"", "ab", "\\u0061"]);
    let bound = bind(&any, vocabulary.clone()).expect("a small grammar");
    // [" ",": the second costs up to 4 bytes, as it must differ from the first.
    walks_finish(&bound, b"a\",[", 0..12);
    walks_finish(&bound, b"ab\\u061\",[", 12..24);
    let pattern = different(|g| {
        let letter = g.class(CharSet::from_ranges([('a', 'b')]));
        let letters = g.repeat(letter, 1, None);
        g.json_string(letters)
    });
    let bound = bind(&pattern, vocabulary).expect("a small grammar");
    walks_finish(&bound, b"ab\",[", 24..36);
}

#[test]
fn strings_of_which_there_are_few_are_refused_by_name() {
    // A hundred of them have a thousand bytes together.
    let grammar = different(|g| {
        let word = g.bytes(b"abcdefghij");
        let words = g.star(word);
        g.json_string(words)
    });
    let bound = bind(&grammar, bytes_and(&[])).expect("a small grammar");
    assert_eq!(bound.matcher().set_budget(Some(Budget::new(9_999))), Err(BudgetError::Values));
}
