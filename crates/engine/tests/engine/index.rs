//! Compares indexes with matchers, every mask and every transition bit by bit, and tests damaged files.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

use std::collections::HashSet;
use std::sync::Arc;

use maskwright_engine::{
    AutomatonCache, BoundProgram, CompileError, Index, IndexError, IndexLimits, Library, Limits, LoadError,
    Matcher, StateId, compile,
};
use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder};
use maskwright_oracle::generate::{self, Rng, Shape};
use maskwright_vocab::TokenId;

use crate::support::vocabulary;

/// Limits that are enough for small grammars; larger ones are refused, so that tests end.
fn small() -> IndexLimits {
    let mut limits = IndexLimits::default();
    (limits.states, limits.steps, limits.bytes) = (3_000, 4_000_000, 8 << 20);
    limits
}

fn built(grammar: &Grammar, library: &Library) -> Result<Index, IndexError> {
    Index::build(grammar, library, &AutomatonCache::default(), &small())
}

fn grammar(write: impl FnOnce(&mut GrammarBuilder) -> ExprId) -> Grammar {
    let mut builder = GrammarBuilder::new();
    let root = builder.declare("root");
    let expr = write(&mut builder);
    builder.define(root, expr);
    builder.finish(root).expect("a grammar")
}

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    indexes: usize,
    states: usize,
    refused: usize,
}

/// Follows every token of every state in both, and compares masks, transitions and ends.
fn compare(index: &Index, matcher: &Matcher, place: &str) -> usize {
    let words = index.mask_words();
    let mut reached = HashSet::from([index.initial_state()]);
    let mut work = vec![(index.initial_state(), matcher.fork())];
    while let Some((state, mut matcher)) = work.pop() {
        let (mut ours, mut theirs) = (vec![u32::MAX; words + 2], vec![u32::MAX; words + 2]);
        index.fill_mask(state, &mut ours).expect("the row is large enough");
        matcher.fill_mask(&mut theirs).expect("the row is large enough");
        assert_eq!(ours, theirs, "{place}: mask of {state:?}");
        assert_eq!(index.is_terminal(state), matcher.is_accepting(), "{place}: end of {state:?}");
        let mut allowed = Vec::new();
        for token in (0..words as u32 * 32 + 64).map(TokenId) {
            let bit = ours[token.index() / 32] >> (token.0 % 32) & 1 == 1;
            match index.next_state(state, token) {
                Ok(next) => {
                    assert!(bit, "{place}: {token:?} leads on from {state:?} and is not in its mask");
                    assert!(index.allows(state, token));
                    allowed.push(token);
                    if next == StateId::ENDED {
                        matcher.accept(token).expect("the end is allowed");
                        assert!(matcher.is_terminated(), "{place}: {token:?} ends from {state:?}");
                        matcher.rollback(1).expect("one step was made");
                    } else if reached.insert(next) {
                        let mut after = matcher.fork();
                        after.accept(token).expect("its bit is set");
                        work.push((next, after));
                    }
                }
                Err(refused) => {
                    assert!(!bit, "{place}: {token:?} is in the mask of {state:?} and leads nowhere");
                    assert_eq!((refused.state, refused.token), (state, token));
                }
            }
        }
        assert_eq!(index.allowed_tokens(state), allowed);
    }
    assert_eq!(reached.len(), index.len(), "{place}: states that no token leads to");
    reached.len()
}

fn random_grammars(seeds: core::ops::Range<u64>, shape: &Shape) {
    let mut tally = Tally::default();
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let grammar = generate::grammar(&mut rng, shape);
        let alphabet: Vec<u8> = shape.alphabet.iter().collect::<String>().into_bytes();
        let mut list = generate::vocabulary(&mut rng, &alphabet, 200);
        list.retain(|bytes| !bytes.is_empty());
        let library = Arc::new(Library::new(vocabulary(&list)));
        let index = match built(&grammar, &library) {
            Ok(index) => index,
            Err(
                IndexError::Recursive { .. }
                | IndexError::Automaton(_)
                | IndexError::StringTooLarge
                | IndexError::Compile(_)
                | IndexError::TooLarge { .. },
            ) => {
                tally.refused += 1;
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}\n{grammar}"),
        };
        let program = match compile(&grammar, &AutomatonCache::default(), &Limits::default()) {
            Ok(program) => program,
            // An index does not visit rules that are unreachable from the root.
            Err(CompileError::NestedJsonString) => continue,
            Err(error) => panic!("seed {seed}: there is an index and no program: {error}\n{grammar}"),
        };
        let matcher = BoundProgram::new(Arc::new(program), library.clone()).matcher();
        tally.states += compare(&index, &matcher, &format!("seed {seed}\n{grammar}\n"));
        tally.indexes += 1;
        let checks =
            index.check_constraint(&grammar, library.vocabulary(), &AutomatonCache::default(), &small());
        assert_eq!(checks.map(|checks| checks.states), Ok(index.len()), "seed {seed}\n{grammar}");
    }
    eprintln!("{tally:?}");
    assert!(tally.indexes > tally.refused && tally.states > 4 * tally.indexes, "{tally:?}");
}

#[test]
fn random_regular_grammars() {
    random_grammars(0..300, &Shape { free_rules: 0, ..Shape::default() });
}

#[test]
fn random_json_strings() {
    let alphabet = vec!['a', '"', '\\', 'u', '0'];
    random_grammars(1000..1200, &Shape { alphabet, free_rules: 0, ..Shape::default() });
}

#[test]
fn counted_loops_have_an_index_or_a_limit() {
    let list: Vec<Vec<u8>> =
        ["a", "b", "ab", "aaaa", "é", "\u{e9}\u{e9}"].iter().map(|t| t.as_bytes().to_vec()).collect();
    let library = Library::new(vocabulary(&list));
    let letters = |max| {
        grammar(|g| {
            let letter = g.class(CharSet::from_ranges([('a', 'z')]));
            g.repeat(letter, 0, Some(max))
        })
    };
    let index = built(&letters(1_000), &library).expect("within the limits");
    assert_eq!(index.len(), 1_001);
    let error = built(&letters(65_535), &library).expect_err("too many states for these limits");
    assert!(error.to_string().contains("3000 states"), "{error}");
    let whole = Index::build(&letters(65_535), &library, &AutomatonCache::default(), &IndexLimits::default());
    let whole = whole.expect("within the usual limits");
    assert_eq!(whole.len(), 65_536);
    // More than a megabyte, which is summed in parts.
    let mut file = Vec::new();
    whole.save(&mut file).expect("memory is large enough");
    assert!(file.len() > 1 << 20);
    let last = file.len() - 1;
    assert_eq!(Index::from_bytes(file.clone()).expect("as it was saved").len(), 65_536);
    file[last] ^= 1;
    assert_eq!(Index::from_bytes(file).map(|_| ()), Err(LoadError::Damaged));
    let mut few = IndexLimits::default();
    few.steps = 10_000;
    let error =
        Index::build(&letters(20_000), &library, &AutomatonCache::default(), &few).expect_err("steps");
    assert!(error.to_string().contains("10000 steps"), "{error}");
    few = IndexLimits::default();
    few.bytes = 100_000;
    let error =
        Index::build(&letters(20_000), &library, &AutomatonCache::default(), &few).expect_err("bytes");
    assert!(error.to_string().contains("100000 bytes"), "{error}");
}

#[test]
fn what_has_no_finite_automaton_is_refused_by_name() {
    let library = Library::new(vocabulary(&[b"a".to_vec()]));
    let mut g = GrammarBuilder::new();
    let (root, inner) = (g.declare("root"), g.declare("inner"));
    let (call, again, a) = (g.rule(inner), g.rule(root), g.bytes(b"a"));
    let nested = g.seq([a, again, a]);
    let either = g.alt([nested, a]);
    g.define(root, call);
    g.define(inner, either);
    let error = built(&g.finish(root).expect("a grammar"), &library).expect_err("recursive");
    assert!(matches!(error, IndexError::Recursive { .. }), "{error}");
    let remembers = grammar(|g| {
        let any = g.any_text();
        let string = g.json_string(any);
        let distinct = g.distinct(string);
        g.scope(distinct, [])
    });
    assert_eq!(built(&remembers, &library).expect_err("unbounded"), IndexError::Remembers);
    let empty = grammar(GrammarBuilder::never);
    assert!(matches!(built(&empty, &library), Err(IndexError::Compile(CompileError::Empty { .. }))));
    let nested = grammar(|g| {
        let any = g.any_text();
        let string = g.json_string(any);
        let quoted = g.bytes(b"\"a\"");
        g.and([string, quoted])
    });
    assert_eq!(built(&nested, &library).expect_err("nested"), CompileError::NestedJsonString.into());
}

#[test]
fn dead_and_unknown_states_allow_nothing() {
    let (index, _) = sample();
    let mut words = vec![u32::MAX; index.mask_words() + 1];
    for state in [StateId::DEAD, StateId::ENDED, StateId(u32::MAX), StateId(2 + index.len() as u32)] {
        assert_eq!(index.allowed_tokens(state), []);
        index.fill_mask(state, &mut words).expect("long enough");
        assert!(words.iter().all(|&word| word == 0));
        assert!(index.next_state(state, TokenId(0)).is_err());
        assert_eq!(index.is_terminal(state), state == StateId::ENDED);
    }
    let start = index.initial_state();
    for token in [TokenId(u32::MAX), TokenId(index.vocabulary_size() as u32), TokenId(1 << 20)] {
        assert_eq!(index.next_state(start, token).expect_err("no such token").token, token);
    }
    assert!(index.fill_mask(start, &mut words[..0]).is_err(), "a row that is too short");
}

/// Masks with thousands of tokens are bitsets, and each is initialized with what it differs least from: all tokens,
/// none, or another mask.
#[test]
fn masks_of_many_tokens() {
    let library = Arc::new(numbers());
    let grammar = grammar(|g| {
        let any = g.any_text();
        let string = g.json_string(any);
        let mut digits = |brackets: [&[u8]; 2], last| {
            let digit = g.class(CharSet::from_ranges([('0', '9'), ('a', last)]));
            let digits = g.repeat(digit, 1, Some(3));
            let [open, close] = brackets.map(|bracket| g.bytes(bracket));
            g.seq([open, digits, close])
        };
        let (all, most, few) =
            (digits([b"x", b"x"], 'f'), digits([b"{", b"}"], 'e'), digits([b"[", b"]"], 'a'));
        g.alt([string, all, most, few])
    });
    let index = built(&grammar, &library).expect("a regular language");
    assert!(index.bases() > 4, "{} bases", index.bases());
    let program = compile(&grammar, &AutomatonCache::default(), &Limits::default()).expect("a grammar");
    let matcher = BoundProgram::new(Arc::new(program), library.clone()).matcher();
    compare(&index, &matcher, "many tokens");
    index
        .check_constraint(&grammar, library.vocabulary(), &AutomatonCache::default(), &small())
        .expect("an index of this grammar");
}

/// Returns a vocabulary of 3,000 hexadecimal numbers and some punctuation.
fn numbers() -> Library {
    let mut list: Vec<Vec<u8>> = (0..3000u32).map(|i| format!("{i:x}").into_bytes()).collect();
    let others = ["\"", "\\", "\\n", "x", "\":", "{\"", "é", "{", "}", "[", "]"];
    list.extend(others.map(|text| text.as_bytes().to_vec()));
    list.sort();
    list.dedup();
    Library::new(vocabulary(&list))
}

/// Returns an index with all sections in use, and its file.
fn sample() -> (Index, Vec<u8>) {
    let library = numbers();
    let document = grammar(|g| {
        let any = g.any_text();
        let string = g.json_string(any);
        let (open, close) = (g.bytes(b"{\"x\":"), g.bytes(b"}"));
        let digit = g.class(CharSet::from_ranges([('0', '9')]));
        let digits = g.repeat(digit, 1, Some(4));
        let value = g.alt([string, digits]);
        g.seq([open, value, close])
    });
    let index = built(&document, &library).expect("a regular language");
    assert!(index.sections().all(|(_, bytes)| bytes > 0), "{:?}", index.sections().collect::<Vec<_>>());
    index.check(library.vocabulary()).expect("consistent");
    let mut file = Vec::new();
    index.save(&mut file).expect("memory is large enough");
    assert_eq!(file.len(), index.byte_len());
    (index, file)
}

/// Returns all answers of an index.
fn answers(index: &Index) -> Vec<(bool, Vec<TokenId>, Vec<StateId>)> {
    let of = |state| {
        let tokens = index.allowed_tokens(state);
        let next = tokens.iter().filter_map(|&token| index.next_state(state, token).ok()).collect();
        (index.is_terminal(state), tokens, next)
    };
    index.states().map(of).collect()
}

#[test]
fn what_is_loaded_equals_what_was_saved() {
    let (index, file) = sample();
    let expected = answers(&index);
    // At every alignment, and from anything that can be read as bytes.
    for shift in 0..5 {
        struct Shifted(Vec<u8>, usize);
        impl AsRef<[u8]> for Shifted {
            fn as_ref(&self) -> &[u8] {
                &self.0[self.1..]
            }
        }
        let bytes = [vec![0; shift], file.clone()].concat();
        let loaded = Index::from_bytes(Shifted(bytes, shift)).expect("as it was saved");
        assert_eq!(answers(&loaded), expected);
        let mut again = Vec::new();
        loaded.save(&mut again).expect("memory is large enough");
        assert_eq!(again, file);
    }
    let loaded = Index::from_bytes(Arc::<[u8]>::from(file)).expect("as it was saved");
    assert_eq!(
        (loaded.len(), loaded.classes(), loaded.masks()),
        (index.len(), index.classes(), index.masks())
    );
    let other = vocabulary(&[b"a".to_vec()]);
    assert_eq!(loaded.check_vocabulary(&other), Err(LoadError::OtherVocabulary));
}

#[test]
fn foreign_old_short_and_damaged_files_are_told_apart() {
    let (_, file) = sample();
    let load = |bytes: &[u8]| Index::from_bytes(bytes.to_vec()).map(|_| ()).expect_err("not as it was saved");
    assert_eq!(load(b""), LoadError::Foreign);
    assert_eq!(load(b"{\"a\": 1}"), LoadError::Foreign);
    let mut other = file.clone();
    other[16] = 9;
    assert_eq!(load(&other), LoadError::Version { found: 9 });
    for length in (16..file.len()).step_by(37).chain(16..200) {
        assert_eq!(load(&file[..length]), LoadError::Length, "{length}");
    }
    assert_eq!(load(&[&file[..], b"more"].concat()), LoadError::Length);
    for at in (32..file.len()).step_by(11) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x20;
        assert_eq!(load(&damaged), LoadError::Damaged, "byte {at}");
    }
}

#[test]
fn a_forged_file_leads_to_an_answer_and_not_to_a_panic() {
    let (_, file) = sample();
    let mut rng = Rng::new(7);
    let (mut refused, mut loaded) = (0, 0);
    let vocabulary = vocabulary(&[b"a".to_vec()]);
    for _ in 0..1_500 {
        let mut forged = file.clone();
        for _ in 0..=rng.below(3) {
            // The header and the small sections at the beginning, as often as all the rest.
            let end = if rng.below(2) == 0 { 600 } else { forged.len() };
            let at = 48 + rng.below(end - 48);
            forged[at] = [0, 1, 0x7F, 0xFF, forged[at] ^ 1, forged[at].wrapping_add(1)][rng.below(6)];
        }
        let sum = maskwright_vocab::checksum(&forged[48..]);
        forged[32..48].copy_from_slice(&sum.to_le_bytes());
        let Ok(index) = Index::from_bytes(forged) else {
            refused += 1;
            continue;
        };
        loaded += 1;
        for state in index.states().take(40).chain([StateId::DEAD, StateId::ENDED, StateId(u32::MAX)]) {
            let mut words = vec![0; index.mask_words().min(1 << 16)];
            index.mask(state).write(&mut words);
            for token in (0..200).chain([3_000, u32::MAX]).map(TokenId) {
                if let Ok(next) = index.next_state(state, token) {
                    assert!(next.0 < 2 + index.len() as u32);
                }
            }
        }
        let _ = index.check(&vocabulary);
    }
    assert!(refused > 50 && loaded > 500, "{refused} refused, {loaded} loaded");
}
