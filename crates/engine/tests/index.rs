//! Indexes against matchers: every mask and every transition, bit by bit, and files that are damaged.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

use std::collections::HashSet;
use std::sync::Arc;

use maskwright_engine::{
    AutomatonCache, BoundProgram, CompileError, Index, IndexError, IndexLimits, Library, Limits, LoadError, Matcher,
    StateId, compile,
};
use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder};
use maskwright_oracle::generate::{self, Rng, Shape};
use maskwright_vocab::{TokenId, Vocabulary, VocabularyBuilder};

fn vocabulary(tokens: &[Vec<u8>]) -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for (id, bytes) in (0..).zip(tokens) {
        builder.token(TokenId(id), bytes).expect("ids are distinct");
    }
    let eos = TokenId(tokens.len() as u32);
    builder.special(eos, "<end>").expect("the id is free");
    builder.eos(eos);
    Arc::new(builder.finish().expect("there are tokens"))
}

/// Enough for small grammars; larger ones are refused, so that tests end.
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
                IndexError::Recursive { .. } | IndexError::Automaton(_) | IndexError::StringTooLarge
                | IndexError::Compile(_) | IndexError::TooLarge { .. },
            ) => {
                tally.refused += 1;
                continue;
            }
            Err(error) => panic!("seed {seed}: {error}\n{grammar}"),
        };
        let program = match compile(&grammar, &AutomatonCache::default(), &Limits::default()) {
            Ok(program) => program,
            // An index does not look at rules that the root does not reach.
            Err(CompileError::NestedJsonString) => continue,
            Err(error) => panic!("seed {seed}: there is an index and no program: {error}\n{grammar}"),
        };
        let matcher = BoundProgram::new(Arc::new(program), library.clone()).matcher();
        tally.states += compare(&index, &matcher, &format!("seed {seed}\n{grammar}\n"));
        tally.indexes += 1;
        let checks = index.check_constraint(
            &grammar,
            library.vocabulary(),
            &AutomatonCache::default(),
            &small(),
        );
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
