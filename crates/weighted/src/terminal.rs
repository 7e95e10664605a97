//! Terminals: a literal text, or a pattern.
//!
//! A pattern says which texts are allowed but not how likely they are, and a probability over texts needs both. The
//! simplest choice that adds up to one is used: in each state of the pattern's automaton, every byte that may come next
//! is equally likely, and so is stopping if the state accepts.
//!
//! ```text
//! /ab?/    a: 1     then  b: 1/2,  stop: 1/2     so  "a" has 1/2 and "ab" has 1/2
//! ```
//!
//! If a text is a sequence of *terminals* and not of bytes ([`Parser`](crate::Parser)), a terminal is one symbol and
//! its content does not matter.

use core::fmt;
use std::sync::Arc;

use maskwright_automata::{Dfa, DfaState};

/// A terminal symbol.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Terminal {
    /// Exactly these bytes; at least one.
    Literal(Box<[u8]>),
    /// One of the texts of a regular expression.
    Pattern(Pattern),
}

/// A regular expression with its automaton.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: Box<str>,
    dfa: Arc<Dfa>,
}

impl Terminal {
    /// Checks whether the terminal can be this text.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Literal(bytes) => **bytes == *text,
            Self::Pattern(pattern) => pattern.dfa.matches(text),
        }
    }
}

impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            Self::Pattern(pattern) => write!(f, "/{}/", pattern.source.replace('/', "\\/")),
        }
    }
}

impl Pattern {
    pub(crate) fn new(source: &str, dfa: Dfa) -> Self {
        Self { source: source.into(), dfa: Arc::new(dfa) }
    }

    /// Returns the expression as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns its automaton.
    pub fn dfa(&self) -> &Dfa {
        &self.dfa
    }

    /// Returns the probability of each byte that may come next.
    pub(crate) fn of_byte(&self, state: DfaState) -> f64 {
        1.0 / self.choices(state)
    }

    /// Returns the probability of each byte that may come first, given that there is one.
    pub(crate) fn of_first(&self) -> f64 {
        1.0 / f64::from(self.dfa.live(self.dfa.start()).len() as u32)
    }

    /// Returns the probability of stopping.
    pub(crate) fn of_stop(&self, state: DfaState) -> f64 {
        if self.dfa.is_accepting(state) { 1.0 / self.choices(state) } else { 0.0 }
    }

    /// Checks whether a text can continue after this state.
    pub(crate) fn goes_on(&self, state: DfaState) -> bool {
        !self.dfa.live(state).is_empty()
    }

    fn choices(&self, state: DfaState) -> f64 {
        f64::from(self.dfa.live(state).len() as u32 + u32::from(self.dfa.is_accepting(state)))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

impl core::hash::Hash for Pattern {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.source.hash(state);
    }
}
