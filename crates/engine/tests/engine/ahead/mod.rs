//! Tests of lookahead: forced bytes and tokens, drafts, and budgets, each compared with a slower and simpler method.

#![expect(clippy::print_stderr, reason = "how much was compared is a result")]

mod budget;
mod drafts;
mod forced;
mod least;
mod toy;

use std::sync::Arc;

use maskwright_engine::{AutomatonCache, BoundProgram, CompileError, Library, Limits, compile};
use maskwright_grammar::{Grammar, GrammarBuilder};
use maskwright_oracle::generate::{self, Rng, Shape};
use maskwright_vocab::Vocabulary;

/// Returns the program of a grammar; `None` for the documented refusals, which random grammars can cause.
fn bind(grammar: &Grammar, vocabulary: Arc<Vocabulary>) -> Option<Arc<BoundProgram>> {
    match compile(grammar, &AutomatonCache::default(), &Limits::default()) {
        Ok(program) => Some(BoundProgram::new(Arc::new(program), Arc::new(Library::new(vocabulary)))),
        Err(
            CompileError::LeftRecursionInRepeat { .. }
            | CompileError::Leaf { .. }
            | CompileError::NestedJsonString,
        ) => None,
        Err(error) => panic!("{error}\n{grammar}"),
    }
}

/// Returns a grammar of one rule.
fn grammar(root: impl FnOnce(&mut GrammarBuilder) -> maskwright_grammar::ExprId) -> Grammar {
    let mut g = GrammarBuilder::new();
    let expr = root(&mut g);
    let rule = g.declare("root");
    g.define(rule, expr);
    g.finish(rule).expect("the grammar is whole")
}

/// Returns random grammars over letters, quotes and spaces, each with a random generator for the test.
fn random_grammars(seeds: core::ops::Range<u64>) -> impl Iterator<Item = (u64, Rng, Grammar)> {
    let shape = Shape { alphabet: vec!['a', 'b', '"', ' ', 'é'], large_counts: false, ..Shape::default() };
    seeds.map(move |seed| {
        let mut rng = Rng::new(seed);
        let grammar = generate::grammar(&mut rng, &shape);
        (seed, rng, grammar)
    })
}
