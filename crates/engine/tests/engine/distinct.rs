//! Compares values that must differ with brute force: every text of a small language is enumerated, and a token is
//! right if some text continues with it.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

use std::sync::Arc;

use maskwright_engine::{
    AutomatonCache, BoundProgram, Library, Limits, MatchError, Matcher, Strategy, compile,
};
use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder};
use maskwright_oracle::generate::Rng;
use maskwright_vocab::{TokenId, Vocabulary};

use crate::support;

/// A spelling of a value; spellings of equal values have equal indices.
type Spelling = (usize, String);

/// Returns every text `open part (, part)* close` with `least..=most` parts that differ.
fn texts(
    parts: &[Spelling],
    around: (&str, &str),
    count: (usize, usize),
    is_complete: &dyn Fn(&[usize]) -> bool,
) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut work: Vec<(Vec<usize>, String)> = vec![(Vec::new(), around.0.to_owned())];
    while let Some((used, text)) = work.pop() {
        if used.len() >= count.0 && is_complete(&used) {
            found.push(format!("{text}{}", around.1).into_bytes());
        }
        if used.len() == count.1 {
            continue;
        }
        for (value, spelling) in parts.iter().filter(|(value, _)| !used.contains(value)) {
            let separators: &[&str] = if used.is_empty() { &[""] } else { &[",", ", "] };
            for separator in separators {
                let used = [&*used, &[*value]].concat();
                work.push((used, format!("{text}{separator}{spelling}")));
            }
        }
    }
    found.sort_unstable();
    found
}

/// Returns `open (part (, part){…})? close` in a scope.
fn list(
    g: &mut GrammarBuilder,
    part: ExprId,
    around: (&str, &str),
    count: (usize, usize),
    required: &[&str],
) -> ExprId {
    let (open, close) = (g.bytes(around.0.as_bytes()), g.bytes(around.1.as_bytes()));
    let (comma, space) = (g.bytes(b","), g.bytes(b" "));
    let space = g.optional(space);
    let more = g.seq([comma, space, part]);
    let least = count.0.saturating_sub(1) as u32;
    let more = g.repeat(more, least, Some(count.1 as u32 - 1));
    let some = g.seq([part, more]);
    let parts = if count.0 == 0 { g.optional(some) } else { some };
    let body = g.seq([open, parts, close]);
    g.scope(body, required.iter().map(|&name| name.into()))
}

fn finish(mut g: GrammarBuilder, root: ExprId) -> Grammar {
    let rule = g.declare("root");
    g.define(rule, root);
    g.finish(rule).expect("the grammar is whole")
}

/// Returns a vocabulary of all bytes of the texts, and pieces of texts.
fn vocabulary(rng: &mut Rng, texts: &[Vec<u8>], count: usize) -> Arc<Vocabulary> {
    let mut tokens: Vec<Vec<u8>> =
        (0..=255u8).filter(|b| texts.iter().any(|t| t.contains(b))).map(|b| vec![b]).collect();
    while tokens.len() < count {
        let text = &texts[rng.below(texts.len())];
        let start = rng.below(text.len());
        let end = (start + 2 + rng.below(9)).min(text.len());
        tokens.push(text[start..end].to_vec());
        tokens.sort_unstable();
        tokens.dedup();
    }
    support::vocabulary(&tokens)
}

fn is_prefix(texts: &[Vec<u8>], prefix: &[u8]) -> bool {
    let at = texts.partition_point(|text| &**text < prefix);
    texts.get(at).is_some_and(|text| text.starts_with(prefix))
}

fn mask(matcher: &mut Matcher, strategy: Strategy) -> Vec<u32> {
    let mut words = vec![0; matcher.bound().vocabulary().size().div_ceil(32)];
    matcher.set_strategy(strategy);
    matcher.fill_mask(&mut words).expect("the buffer is large enough");
    assert_eq!(matcher.mask_words().expect("a mask"), words, "by reference");
    words
}

fn is_set(words: &[u32], token: u32) -> bool {
    words[token as usize / 32] >> (token % 32) & 1 == 1
}

/// Walks through the language at random and compares every mask with the texts.
fn judge(name: &str, grammar: &Grammar, texts: &[Vec<u8>], seed: u64) {
    assert!(texts.len() > 5, "{name}: {} texts", texts.len());
    let mut rng = Rng::new(seed);
    let mut compared = 0usize;
    for _ in 0..4 {
        let vocabulary = vocabulary(&mut rng, texts, 150);
        let program = compile(grammar, &AutomatonCache::default(), &Limits::default()).expect("it compiles");
        let bound = BoundProgram::new(Arc::new(program), Arc::new(Library::new(vocabulary.clone())));
        for _ in 0..40 {
            let mut matcher = bound.matcher();
            let mut text: Vec<u8> = Vec::new();
            loop {
                let words = mask(&mut matcher, Strategy::Fast);
                let plain = mask(&mut matcher, Strategy::Reference);
                let mut allowed = Vec::new();
                for (token, bytes) in vocabulary.ordinary() {
                    let right = is_prefix(texts, &[&*text, bytes].concat());
                    let (shown, piece) = (text.escape_ascii(), bytes.escape_ascii());
                    assert_eq!(is_set(&plain, token.0), right, "{name}, plain: `{shown}` and then `{piece}`");
                    assert_eq!(is_set(&words, token.0), right, "{name}, fast: `{shown}` and then `{piece}`");
                    assert_eq!(
                        matcher.allows(token),
                        Ok(right),
                        "{name}, alone: `{shown}` and then `{piece}`"
                    );
                    if right {
                        allowed.push(token);
                    } else {
                        let fits = |length: &usize| is_prefix(texts, &[&*text, &bytes[..*length]].concat());
                        let fitting = (1..bytes.len()).take_while(fits).count();
                        assert_eq!(
                            matcher.accept(token),
                            Err(MatchError::NotAllowed { bytes: fitting }),
                            "{name}"
                        );
                    }
                    compared += 1;
                }
                let goes_on = |byte: &u8| is_prefix(texts, &[&*text, &[*byte]].concat());
                assert_eq!(matcher.next_bytes(), (0..=255).filter(goes_on).collect(), "{name}");
                assert_eq!(matcher.is_stopped(), allowed.is_empty(), "{name}");
                let is_text = texts.binary_search(&text).is_ok();
                assert_eq!(matcher.is_accepting(), is_text, "{name}: {}", text.escape_ascii());
                if allowed.is_empty() {
                    assert!(is_text);
                    break;
                }
                let token = allowed[rng.below(allowed.len())];
                matcher.accept(token).expect("the mask allows it");
                text.extend_from_slice(vocabulary.bytes(token));
                // A rollback changes nothing.
                if rng.below(4) == 0 {
                    matcher.rollback(1).expect("there was a step");
                    matcher.accept(token).expect("the mask allows it");
                }
            }
        }
    }
    eprintln!("{name}: {} texts, {compared} bits compared", texts.len());
}

fn spellings(values: &[&[&str]]) -> Vec<Spelling> {
    let with =
        |(at, ways): (usize, &&[&str])| ways.iter().map(|way| (at, (*way).to_owned())).collect::<Vec<_>>();
    values.iter().enumerate().flat_map(with).collect()
}

#[test]
fn items_of_many_kinds() {
    let values: [&[&str]; 5] = [&["\"a\"", "\"\\u0061\""], &["\"ab\""], &["1", "1.0"], &["12"], &["true"]];
    let array: &[&str] = &["[]", "[ ]"];
    let object: &[&str] = &["{\"a\":1,\"b\":[]}", "{\"b\":[],\"a\":1}"];
    for (values, count, seed) in
        [(&values[..], (0, 3), 1), (&[&values[2..], &[array, object]].concat(), (2, 3), 2)]
    {
        let parts = spellings(values);
        let mut g = GrammarBuilder::new();
        let ways: Vec<ExprId> = parts.iter().map(|(_, text)| g.bytes(text.as_bytes())).collect();
        let item = g.alt(ways);
        let item = g.distinct(item);
        let root = list(&mut g, item, ("[", "]"), count, &[]);
        let texts = texts(&parts, ("[", "]"), count, &|_| true);
        judge("items", &finish(g, root), &texts, seed);
    }
}

/// Returns all spellings of texts over some letters.
fn strings(letters: &[(&str, &str)], longest: usize) -> Vec<Spelling> {
    let mut all: Vec<(String, Vec<String>)> = vec![(String::new(), vec![String::new()])];
    let mut from = 0;
    for _ in 0..longest {
        let until = all.len();
        for at in from..until {
            for (plain, escaped) in letters {
                let (text, ways) = all[at].clone();
                let longer = |way: &String| [format!("{way}{plain}"), format!("{way}{escaped}")];
                all.push((format!("{text}{plain}"), ways.iter().flat_map(longer).collect()));
            }
        }
        from = until;
    }
    let quoted = |(at, (_, ways)): (usize, (String, Vec<String>))| {
        ways.into_iter().map(|way| (at, format!("\"{way}\""))).collect::<Vec<_>>()
    };
    all.into_iter().enumerate().flat_map(quoted).collect()
}

#[test]
fn keys_from_a_finite_set() {
    let letters = [("a", "\\u0061"), ("b", "\\u0062")];
    let keys = strings(&letters, 2);
    let members: Vec<Spelling> = keys.iter().map(|(at, key)| (*at, format!("{key}:1"))).collect();
    for (count, seed) in [((0, 3), 3), ((3, 3), 4)] {
        let mut g = GrammarBuilder::new();
        let class = g.class(CharSet::from_ranges([('a', 'b')]));
        let text = g.repeat(class, 0, Some(2));
        let key = g.json_string(text);
        let key = g.distinct(key);
        let value = g.bytes(b":1");
        let member = g.seq([key, value]);
        let root = list(&mut g, member, ("{", "}"), count, &[]);
        judge("keys", &finish(g, root), &texts(&members, ("{", "}"), count, &|_| true), seed);
    }
}

/// Compares both strategies for objects of up to five members with keys like this. There are too many texts to
/// enumerate, so masks are compared along random texts, none of which may reach a dead end. Returns how many masks had
/// few tokens.
fn compare_ways(
    name: &str,
    key: impl FnOnce(&mut GrammarBuilder) -> ExprId,
    sample: &[Vec<u8>],
    rng: &mut Rng,
) -> usize {
    let mut g = GrammarBuilder::new();
    let text = key(&mut g);
    let key = g.json_string(text);
    let (key, value) = (g.distinct(key), g.bytes(b":1"));
    let member = g.seq([key, value]);
    let root = list(&mut g, member, ("{", "}"), (0, 5), &[]);
    let program =
        compile(&finish(g, root), &AutomatonCache::default(), &Limits::default()).expect("it compiles");
    let vocabulary = vocabulary(rng, sample, 90);
    let bound = BoundProgram::new(Arc::new(program), Arc::new(Library::new(vocabulary.clone())));
    let mut narrow = 0;
    for _ in 0..60 {
        let (mut matcher, mut written) = (bound.matcher(), Vec::new());
        loop {
            let words = mask(&mut matcher, Strategy::Fast);
            assert_eq!(words, mask(&mut matcher, Strategy::Reference), "{name}");
            let mut allowed: Vec<TokenId> = Vec::new();
            for (token, bytes) in vocabulary.ordinary() {
                let is_allowed = is_set(&words, token.0);
                assert_eq!(matcher.allows(token), Ok(is_allowed), "{name}: `{}`", bytes.escape_ascii());
                allowed.extend(is_allowed.then_some(token));
            }
            if allowed.is_empty() {
                assert!(
                    matcher.is_accepting(),
                    "{name}: stuck after {:?}",
                    String::from_utf8_lossy(&written)
                );
                break;
            }
            narrow += usize::from(allowed.len() < 20);
            let token = allowed[rng.below(allowed.len())];
            matcher.accept(token).expect("the mask allows it");
            written.extend_from_slice(vocabulary.bytes(token));
        }
    }
    narrow
}

/// Keys up to a length that some tokens reach and others do not.
#[test]
fn keys_up_to_a_length() {
    let mut rng = Rng::new(11);
    let sample: Vec<Vec<u8>> = [1, 4, 9, 12]
        .iter()
        .map(|n| format!("{{\"{}\":1, \"ab\":1}}", "a".repeat(*n)).into_bytes())
        .collect();
    for longest in [3, 9, 12, 24] {
        let key = |g: &mut GrammarBuilder| {
            let class = g.class(CharSet::from_ranges([('a', 'b')]));
            g.repeat(class, 0, Some(longest))
        };
        let narrow = compare_ways(&format!("up to {longest}"), key, &sample, &mut rng);
        assert!(narrow > 50, "too few narrow masks");
    }
}

/// Most keys can continue forever, but not all: once the key `a` was seen, no other key may begin with that letter.
#[test]
fn keys_of_which_some_go_on() {
    let sample: Vec<Vec<u8>> =
        ["{\"a\":1, \"bab\":1}", "{\"\\u0061\":1,\"\\u0062\":1}"].map(|text| text.as_bytes().to_vec()).into();
    let key = |g: &mut GrammarBuilder| {
        let (a, b) = (g.bytes(b"a"), g.bytes(b"b"));
        let class = g.class(CharSet::from_ranges([('a', 'b')]));
        let more = g.repeat(class, 0, None);
        let long = g.seq([b, more]);
        g.alt([a, long])
    };
    assert!(compare_ways("some go on", key, &sample, &mut Rng::new(12)) > 50, "too few narrow masks");
}

#[test]
fn every_value_is_used() {
    let items = strings(&[("a", "\\u0061"), ("b", "\\u0062"), ("c", "\\u0063")], 1);
    let items: Vec<Spelling> = items.into_iter().filter(|(_, text)| text != "\"\"").collect();
    let mut g = GrammarBuilder::new();
    let class = g.class(CharSet::from_ranges([('a', 'c')]));
    let item = g.json_string(class);
    let item = g.distinct(item);
    let root = list(&mut g, item, ("[", "]"), (3, 3), &[]);
    judge("all", &finish(g, root), &texts(&items, ("[", "]"), (3, 3), &|_| true), 5);
}

/// Tests lists of these items, with a minimum and a maximum number.
fn judge_items(name: &str, items: &[Spelling], count: (usize, usize), seed: u64) {
    let mut g = GrammarBuilder::new();
    let ways: Vec<ExprId> = items.iter().map(|(_, text)| g.bytes(text.as_bytes())).collect();
    let item = g.alt(ways);
    let item = g.distinct(item);
    let root = list(&mut g, item, ("[", "]"), count, &[]);
    judge(name, &finish(g, root), &texts(items, ("[", "]"), count, &|_| true), seed);
}

/// There may be more items than there are values.
#[test]
fn values_run_out() {
    let mut items = spellings(&[&["1"], &["2"], &["\"\"", "\"\""], &["\"ab\"", "\"\\u0061b\""]]);
    items.dedup();
    judge_items("running out", &items, (0, 9), 9);
    let keys = strings(&[("a", "\\u0061")], 2);
    let members: Vec<Spelling> = keys.iter().map(|(at, key)| (*at, format!("{key}:1"))).collect();
    let mut g = GrammarBuilder::new();
    let class = g.class(CharSet::from_ranges([('a', 'a')]));
    let text = g.repeat(class, 0, Some(2));
    let key = g.json_string(text);
    let (key, value) = (g.distinct(key), g.bytes(b":1"));
    let member = g.seq([key, value]);
    let root = list(&mut g, member, ("{", "}"), (0, 9), &[]);
    judge("keys run out", &finish(g, root), &texts(&members, ("{", "}"), (0, 9), &|_| true), 10);
}

/// After a word that was seen before, a space leads to words that were not.
#[test]
fn words_with_spaces() {
    let items = spellings(&[&["\"ab\""], &["\"ab a\""], &["\"ab a b\""], &["\"b \""], &["\"b\""]]);
    judge_items("spaces", &items, (0, 9), 13);
}

#[test]
fn numbers_from_a_range() {
    let items: Vec<Spelling> = (1..=13).map(|n| (n, n.to_string())).collect();
    judge_items("numbers", &items, (0, 4), 6);
}

/// Returns one of these members, with a key that must be new.
fn any_member(g: &mut GrammarBuilder, members: &[Spelling]) -> ExprId {
    let mut ways = Vec::new();
    for (_, text) in members {
        let (key, value) = text.split_at(text.find(':').expect("a member has a colon"));
        let (key, value) = (g.bytes(key.as_bytes()), g.bytes(value.as_bytes()));
        let key = g.distinct(key);
        ways.push(g.seq([key, value]));
    }
    g.alt(ways)
}

/// Named keys in any order, some of them required, each with a value of its own.
#[test]
fn members_in_any_order() {
    let members = spellings(&[&["\"a\":1"], &["\"ab\":\"\"", "\"ab\":\"x\""], &["\"b\":{}"], &["\"\":[1]"]]);
    let is_complete = |used: &[usize]| used.contains(&0) && used.contains(&1);
    let mut g = GrammarBuilder::new();
    let member = any_member(&mut g, &members);
    let root = list(&mut g, member, ("{", "}"), (0, 4), &["a", "ab"]);
    judge("any order", &finish(g, root), &texts(&members, ("{", "}"), (0, 4), &is_complete), 7);
}

/// The same members in two scopes at once, which require different keys.
#[test]
fn either_of_two_keys() {
    let members = spellings(&[&["\"a\":1"], &["\"b\":2"], &["\"c\":3"], &["\"d\":4"]]);
    let is_complete = |used: &[usize]| used.contains(&0) || used.contains(&1) && used.contains(&3);
    let mut g = GrammarBuilder::new();
    let member = any_member(&mut g, &members);
    let first = list(&mut g, member, ("{", "}"), (0, 4), &["a"]);
    let second = list(&mut g, member, ("{", "}"), (0, 4), &["b", "d"]);
    let root = g.alt([first, second]);
    judge("either", &finish(g, root), &texts(&members, ("{", "}"), (0, 4), &is_complete), 12);
}

/// Arrays of arrays: each level has a scope of its own.
#[test]
fn scopes_nest() {
    let inner = texts(&spellings(&[&["1"], &["2"]]), ("[", "]"), (0, 2), &|_| true);
    let inner: Vec<Spelling> = inner
        .into_iter()
        .map(|text| String::from_utf8(text).expect("it is text"))
        // Arrays are equal if they have the same items in the same order.
        .map(|text| (text.chars().filter(char::is_ascii_digit).fold(0, |n, c| n * 3 + c as usize - 48), text))
        .collect();
    let mut g = GrammarBuilder::new();
    let (one, two) = (g.bytes(b"1"), g.bytes(b"2"));
    let digit = g.alt([one, two]);
    let digit = g.distinct(digit);
    let item = list(&mut g, digit, ("[", "]"), (0, 2), &[]);
    let item = g.distinct(item);
    let root = list(&mut g, item, ("[", "]"), (0, 3), &[]);
    let texts = texts(&inner, ("[", "]"), (0, 3), &|_| true);
    judge("nested", &finish(g, root), &texts, 8);
}
