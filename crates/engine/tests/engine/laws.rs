//! Compares the engine with the oracle: random grammars, tiny vocabularies, every law, whole bitsets.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

use std::sync::Arc;

use maskwright_engine::{
    AutomatonCache, BoundProgram, CompileError, FastPath, Library, Limits, MatchError, Matcher, Strategy,
    Tuning, compile,
};
use maskwright_grammar::{CharSet, ExprId, Grammar, GrammarBuilder};
use maskwright_oracle::generate::{self, Rng, Shape};
use maskwright_oracle::laws::{self, Case, Effort, Subject, Tally};
use maskwright_oracle::{Oracle, Tokens};
use maskwright_vocab::TokenId;

use crate::support::vocabulary;

struct Engine(Matcher);

impl Subject for Engine {
    fn fill(&mut self, words: &mut [u32]) {
        self.0.fill_mask(words).expect("the buffer is large enough");
        let shown = self.0.mask_words().expect("within limits");
        assert_eq!(shown, &words[..shown.len()], "by reference and copied");
        assert!(words[shown.len()..].iter().all(|word| *word == 0), "beyond the vocabulary");
    }
    fn accept(&mut self, token: u32) -> bool {
        let allowed = self.0.allows(TokenId(token)).expect("the limits are made for worse than this");
        let accepted = self.0.accept(TokenId(token));
        assert_ne!(accepted, Err(MatchError::TooAmbiguous), "the limits are made for worse than this");
        assert_eq!(accepted.is_ok(), allowed, "allows() and accept() disagree");
        allowed
    }
    fn accept_bytes(&mut self, bytes: &[u8]) -> bool {
        self.0.accept_bytes(bytes).is_ok()
    }
    fn rollback(&mut self, count: usize) -> bool {
        self.0.rollback(count).is_ok()
    }
    fn fork(&self) -> Self {
        Self(self.0.fork())
    }
    fn reset(&mut self) {
        self.0.reset();
    }
    fn is_accepting(&mut self) -> bool {
        self.0.is_accepting()
    }
}

/// Checks one random grammar with a strategy.
fn judge(seed: u64, shape: &Shape, strategy: Strategy) -> Tally {
    let mut rng = Rng::new(seed);
    let grammar = generate::grammar(&mut rng, shape);
    let alphabet: Vec<u8> = shape.alphabet.iter().collect::<String>().into_bytes();
    judge_grammar(seed, &grammar, &alphabet, rng, strategy)
}

fn judge_grammar(seed: u64, grammar: &Grammar, alphabet: &[u8], mut rng: Rng, strategy: Strategy) -> Tally {
    let mut list = generate::vocabulary(&mut rng, alphabet, 200);
    list.retain(|bytes| !bytes.is_empty());
    let tokens =
        Tokens::new(list.len() + 1, (0..).zip(list.iter().map(Vec::as_slice))).with_eos([list.len() as u32]);
    let program = match compile(grammar, &AutomatonCache::default(), &Limits::default()) {
        Ok(program) => program,
        // The documented refusals.
        Err(
            CompileError::LeftRecursionInRepeat { .. }
            | CompileError::Leaf { .. }
            | CompileError::NestedJsonString,
        ) => return Tally::default(),
        Err(error) => panic!("seed {seed}: {error}\n{grammar}"),
    };
    let bound = BoundProgram::new(Arc::new(program), Arc::new(Library::new(vocabulary(&list))));
    let fresh = || {
        let mut matcher = bound.matcher();
        matcher.set_strategy(strategy);
        Engine(matcher)
    };
    let oracle = Oracle::new(grammar);
    let case = Case::new(format!("seed {seed}\n{grammar}\n"), &oracle, &tokens);
    match laws::all(&case, &fresh, &mut rng, &Effort::default()) {
        Ok(tally) => tally,
        Err(broken) => panic!("{broken}"),
    }
}

fn run(seeds: core::ops::Range<u64>, shape: &Shape, strategy: Strategy) {
    let mut tally = Tally::default();
    for seed in seeds {
        tally += judge(seed, shape, strategy);
    }
    assert!(tally.bits > 0, "nothing was compared");
    eprintln!("{tally:?}");
}

/// The long run, for `make soak`.
#[test]
#[ignore = "takes minutes; run it with `make soak`"]
fn many_random_grammars() {
    run(10_000..14_000, &Shape::default(), Strategy::Fast);
}

#[test]
fn random_grammars() {
    run(0..120, &Shape::default(), Strategy::Fast);
}

#[test]
fn random_grammars_by_the_plain_way() {
    run(1000..1030, &Shape::default(), Strategy::Reference);
}

#[test]
fn context_free_grammars() {
    let shape = Shape {
        alphabet: vec!['a', 'b', 'c'],
        free_rules: 4,
        word_rules: 0,
        booleans: false,
        json_strings: false,
        wide_classes: false,
        large_counts: false,
        ..Shape::default()
    };
    run(2000..2100, &shape, Strategy::Fast);
}

/// Repetitions inside repetitions, with bounds that are too large to be expanded.
#[test]
fn counted_repetitions() {
    let shape = Shape {
        alphabet: vec!['a', 'b'],
        free_rules: 1,
        recursion: false,
        word_rules: 1,
        depth: 4,
        booleans: false,
        json_strings: false,
        wide_classes: false,
        large_counts: false,
        counts: 7,
        ambiguity: 400,
    };
    run(4000..4150, &shape, Strategy::Fast);
    run(4100..4105, &shape, Strategy::Reference);
}

#[test]
fn json_strings() {
    let shape = Shape { alphabet: vec!['a', '"', '\\', 'u', '0'], free_rules: 1, ..Shape::default() };
    run(3000..3200, &shape, Strategy::Fast);
}

/// Returns a choice of many words with common prefixes, in one of the forms that the engine turns into a tree: a chain
/// of rules each of which may call the next, a sequence of optional words, or one long alternative. Between the words
/// there are parts that no tree can hold.
fn wide_choice(rng: &mut Rng) -> Grammar {
    let mut g = GrammarBuilder::new();
    let root = g.declare("root");
    let again = g.rule(root);
    let (open, close, comma, dot) = (g.bytes(b"("), g.bytes(b")"), g.bytes(b","), g.bytes(b"."));
    let nested = g.seq([open, again, close]);
    let letter = g.class(CharSet::from_ranges([('a', 'b')]));
    let form = rng.below(3);
    let more = g.seq([nested, dot]);
    let mut rest: ExprId = g.alt([more, dot]);
    let mut ways = vec![rest];
    for number in 0..66 + rng.below(60) {
        let word: Vec<u8> = (0..=rng.below(7)).map(|_| b'a' + rng.below(2) as u8).collect();
        let word = if rng.below(12) == 0 { letter } else { g.bytes(&word) };
        // The rest may be empty, the end, the rest of the chain, or the whole choice again.
        let behind = match rng.below(4) {
            0 => g.seq([word, comma, rest]),
            1 => g.seq([word, nested]),
            2 => g.seq([word, dot, dot]),
            _ => g.seq([word, dot]),
        };
        match form {
            0 => {
                let rule = g.declare(&format!("from{number}"));
                let either = g.alt([behind, rest]);
                g.define(rule, either);
                rest = g.rule(rule);
            }
            1 => {
                let word = g.optional(word);
                rest = g.seq([word, rest]);
            }
            _ => ways.push(behind),
        }
    }
    let choice = if form == 2 { g.alt(ways) } else { rest };
    let either = g.alt([choice, nested]);
    g.define(root, either);
    g.finish(root).expect("all rules are defined")
}

#[test]
fn wide_choices() {
    let mut tally = Tally::default();
    for seed in 4000..4024 {
        let mut rng = Rng::new(seed);
        let grammar = wide_choice(&mut rng);
        let way = if seed % 4 == 0 { Strategy::Reference } else { Strategy::Fast };
        tally += judge_grammar(seed, &grammar, b"ab,.()", rng, way);
    }
    eprintln!("{tally:?}");
}

/// Returns shapes of grammars that reach different fast paths.
fn shapes() -> [Shape; 3] {
    let counted =
        Shape { alphabet: vec!['a', 'b'], depth: 4, counts: 7, json_strings: false, ..Shape::default() };
    let strings = Shape { free_rules: 2, large_counts: true, ..Shape::default() };
    [Shape::default(), counted, strings]
}

/// Thresholds choose between paths to the same mask, so they may have any value. If all are low, every fast path is
/// taken.
#[test]
fn thresholds_change_no_mask() {
    for value in [0, 1, 3, u64::MAX] {
        for (shape, from) in shapes().iter().zip([20_000, 21_000, 22_000]) {
            Tuning::all(value).run(|| run(from..from + 12, shape, Strategy::Fast));
        }
    }
    // Strings with conditions, and budgets, need more than random grammars: `maskwright/tests/maskwright/ablation.rs`
    // has them.
    let elsewhere = [
        FastPath::StringTables,
        FastPath::ExcludedWords,
        FastPath::AlmostAnyString,
        FastPath::TokenEquivalence,
        FastPath::WithoutLimit,
        FastPath::BudgetGrowth,
        FastPath::WordSets,
    ];
    for path in FastPath::ALL.into_iter().filter(|path| !elsewhere.contains(path)) {
        assert!(path.taken() > 0, "nothing is shown of {path:?}");
    }
}

/// Each fast path has a reference, which gives the same masks.
#[test]
fn no_fast_path_changes_a_mask() {
    for path in FastPath::ALL {
        for tuning in [Tuning::DEFAULT, Tuning::all(1)] {
            for (shape, from) in shapes().iter().zip([23_000, 24_000, 25_000]) {
                tuning.without(path).run(|| run(from..from + 2, shape, Strategy::Fast));
            }
        }
    }
}
