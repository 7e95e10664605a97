//! A slow, simple, independent recognizer, with which the fast engine is compared.
//!
//! The [`Oracle`] answers two questions about a text, byte by byte: is it a whole text of the grammar, and can it still
//! become one? It follows the definitions as closely as possible: Earley's algorithm for rules, derivatives for
//! intersections, complements and JSON strings, and a search for a witness where a set may be empty. It shares no code
//! with the engine except the [`Grammar`].
//!
//! ```
//! use maskwright_grammar::GrammarBuilder;
//! use maskwright_oracle::Oracle;
//!
//! // nest ::= "(" nest ")" | ""
//! let mut g = GrammarBuilder::new();
//! let nest = g.declare("nest");
//! let (open, call, close) = (g.bytes(b"("), g.rule(nest), g.bytes(b")"));
//! let body = g.seq([open, call, close]);
//! let body = g.optional(body);
//! g.define(nest, body);
//! let oracle = Oracle::new(&g.finish(nest).unwrap());
//!
//! assert!(oracle.accepts(b"(())"));
//! let half = oracle.run(&oracle.start(), b"((");
//! assert!(oracle.is_viable(&half) && !oracle.is_accepting(&half));
//! assert_eq!(oracle.completion(&half).unwrap(), b"))");
//! assert!(!oracle.is_viable(&oracle.step(&oracle.start(), b')')));
//! ```
//!
//! # Overview
//!
//! | module | content |
//! |---|---|
//! | this one, [`mask`] | the oracle, and its answer for every token of a vocabulary |
//! | [`generate`] | random grammars, texts and vocabularies, reproducible by seed |
//! | [`laws`] | the laws that everything that fills masks must obey, as functions over a [`laws::Subject`] |
//!
//! # Limitations
//!
//! This is a test tool: it is slow, its memory grows with the text, and it recurses as deep as expressions nest.
//! Emptiness of an intersection is found by search. If that takes more than [`DEFAULT_LIMIT`] steps, the oracle reports
//! it ([`Unknown`] from [`Oracle::with_limit`], a panic later on) and never guesses.

mod chart;
mod completion;
mod facts;
pub mod generate;
pub mod laws;
pub mod mask;
mod regular;

use core::cell::RefCell;
use std::sync::Arc;

use maskwright_grammar::Grammar;

use chart::Set;
use facts::Facts;
pub use mask::{Mask, Tokens};
use regular::Arena;
pub use regular::Unknown;

/// The greatest number of steps to find out whether one set is empty. A step derives one operand by one byte.
pub const DEFAULT_LIMIT: u64 = 20_000_000;

/// The recognizer of one grammar.
///
/// It caches derivatives, so it is not `Sync`: create one for each thread.
#[derive(Debug)]
pub struct Oracle {
    facts: Facts,
    arena: RefCell<Arena>,
}

/// The state after some bytes. It may only be used with the oracle that created it.
#[derive(Clone, Debug)]
pub struct State {
    /// One set for each position, the first before any byte.
    sets: Vec<Arc<Set>>,
}

impl State {
    /// Returns how many bytes have been read.
    pub fn position(&self) -> usize {
        self.sets.len() - 1
    }

    /// Returns the number of partial readings of the text. The more there are, the slower the next step.
    pub fn ambiguity(&self) -> usize {
        self.sets.last().map_or(0, |set| set.size())
    }
}

impl Oracle {
    /// Creates the oracle of a grammar.
    ///
    /// # Panics
    /// If it cannot be determined whether an intersection is empty; see [`Self::with_limit`].
    pub fn new(grammar: &Grammar) -> Self {
        Self::with_limit(grammar, DEFAULT_LIMIT).unwrap_or_else(|unknown| panic!("{unknown}"))
    }

    /// Creates the oracle of a grammar. At most `limit` steps are taken to find out whether one set is empty.
    pub fn with_limit(grammar: &Grammar, limit: u64) -> Result<Self, Unknown> {
        let mut arena = Arena::new(limit);
        let facts = Facts::new(grammar, &mut arena)?;
        Ok(Self { facts, arena: RefCell::new(arena) })
    }

    /// Returns the grammar.
    pub fn grammar(&self) -> &Grammar {
        self.facts.grammar()
    }

    /// Returns the state before the first byte.
    pub fn start(&self) -> State {
        let set = chart::first_set(&self.facts, &self.arena.borrow());
        State { sets: vec![Arc::new(set)] }
    }

    /// Returns the state after one more byte.
    ///
    /// # Panics
    /// If it cannot be determined whether an intersection is empty.
    #[must_use]
    pub fn step(&self, state: &State, byte: u8) -> State {
        self.try_step(state, byte).unwrap_or_else(|unknown| panic!("{unknown}"))
    }

    /// Returns the state after one more byte, if it can be determined.
    pub fn try_step(&self, state: &State, byte: u8) -> Result<State, Unknown> {
        let mut next = state.clone();
        next.sets.push(Arc::new(self.next_set(&state.sets, byte)?));
        Ok(next)
    }

    /// Returns the state after some more bytes.
    #[must_use]
    pub fn run(&self, state: &State, bytes: &[u8]) -> State {
        let mut next = state.clone();
        for &byte in bytes {
            self.push(&mut next.sets, byte);
        }
        next
    }

    /// Checks whether some continuation, possibly the empty one, makes it a text of the grammar.
    pub fn is_viable(&self, state: &State) -> bool {
        state.sets.last().is_some_and(|set| !set.is_empty())
    }

    /// Checks whether it is a text of the grammar.
    pub fn is_accepting(&self, state: &State) -> bool {
        state.sets.last().is_some_and(|set| set.is_done(self.facts.root(), 0))
    }

    /// Checks whether these bytes are a text of the grammar.
    pub fn accepts(&self, text: &[u8]) -> bool {
        self.is_accepting(&self.run(&self.start(), text))
    }

    /// Checks whether these bytes are a prefix of a text of the grammar.
    pub fn is_prefix(&self, text: &[u8]) -> bool {
        self.is_viable(&self.run(&self.start(), text))
    }

    fn push(&self, sets: &mut Vec<Arc<Set>>, byte: u8) {
        let set = self.next_set(sets, byte).unwrap_or_else(|unknown| panic!("{unknown}"));
        sets.push(Arc::new(set));
    }

    fn next_set(&self, sets: &[Arc<Set>], byte: u8) -> Result<Set, Unknown> {
        chart::next_set(&self.facts, &mut self.arena.borrow_mut(), sets, byte)
    }
}
