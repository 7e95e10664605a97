//! A parser for sequences of terminals.
//!
//! ```
//! use maskwright_weighted::{Options, Parser, Pcfg, Real};
//!
//! let grammar = Pcfg::parse("S -> S a [0.4] | a [0.6]", &Options::default()).unwrap();
//! let a = grammar.literal("a").unwrap();
//! let mut parser = Parser::<Real>::new(&grammar).unwrap();
//! assert!(parser.step(a) && parser.step(a));
//! assert!((parser.prefix_logprob().exp() - 0.4).abs() < 1e-12);     // texts that begin with a a
//! assert!((parser.sentence_logprob().exp() - 0.24).abs() < 1e-12);  // the text a a
//! let next = parser.next_terminal_distribution();
//! assert!((next.of(a) - 0.4).abs() < 1e-12 && (next.end - 0.6).abs() < 1e-12);
//! parser.rollback(1);
//! assert_eq!(parser.position(), 1);
//! ```

use std::sync::Arc;

use maskwright_grammar::Diagnostic;
use rustc_hash::FxHashMap;

use crate::chart::{Chart, Scan};
use crate::pcfg::{Pcfg, TerminalId};
use crate::semiring::Semiring;
use crate::shortest::Shortest;
use crate::tables::Tables;
use crate::terminal::Terminal;

/// A parser over terminals. It reads one at a time, supports rollback, and can be cloned at any time; clones share what
/// they have read.
#[derive(Clone, Debug)]
pub struct Parser<S: Semiring> {
    pub(crate) chart: Chart<S>,
    lexicon: Arc<Lexicon>,
}

/// The probability of each terminal to come next.
#[derive(Clone, Debug, PartialEq)]
pub struct Next {
    /// The terminals that can come next with their probabilities, ascending by number.
    pub terminals: Vec<(TerminalId, f64)>,
    /// The probability that the text ends here.
    pub end: f64,
}

impl Next {
    /// Returns the probability of a terminal.
    pub fn of(&self, terminal: TerminalId) -> f64 {
        let found = self.terminals.binary_search_by_key(&terminal, |entry| entry.0);
        found.map_or(0.0, |at| self.terminals[at].1)
    }
}

/// The terminals that a word can be.
#[derive(Debug)]
struct Lexicon {
    literals: FxHashMap<Box<[u8]>, TerminalId>,
    patterns: Vec<(TerminalId, Terminal)>,
}

impl<S: Semiring> Parser<S> {
    /// Creates a parser at the beginning of a text. An error names a loop whose weights do not converge.
    pub fn new(pcfg: &Pcfg) -> Result<Self, Diagnostic> {
        Ok(Self::from_tables(pcfg, Arc::new(Tables::new(pcfg)?), false))
    }

    /// Creates a parser that keeps everything needed to show derivations.
    pub(crate) fn keeping(pcfg: &Pcfg) -> Result<Self, Diagnostic> {
        Ok(Self::from_tables(pcfg, Arc::new(Tables::new(pcfg)?), true))
    }

    fn from_tables(pcfg: &Pcfg, tables: Arc<Tables<S>>, keep: bool) -> Self {
        let mut lexicon = Lexicon { literals: FxHashMap::default(), patterns: Vec::new() };
        for (id, terminal) in (0..).map(TerminalId).zip(pcfg.terminals()) {
            match terminal {
                Terminal::Literal(bytes) => drop(lexicon.literals.insert(bytes.clone(), id)),
                Terminal::Pattern(_) => lexicon.patterns.push((id, terminal.clone())),
            }
        }
        Self { chart: Chart::new(tables, keep), lexicon: Arc::new(lexicon) }
    }

    /// Reads a terminal. Returns `false` and changes nothing if it cannot come next.
    pub fn step(&mut self, terminal: TerminalId) -> bool {
        self.read(&[terminal])
    }

    /// Reads a word as all terminals that it can be: a literal and patterns.
    pub fn step_word(&mut self, word: &str) -> bool {
        let terminals = self.terminals_of(word);
        self.read(&terminals)
    }

    /// Returns the terminals that a word can be.
    pub fn terminals_of(&self, word: &str) -> Vec<TerminalId> {
        let literal = self.lexicon.literals.get(word.as_bytes()).copied();
        let patterns = self.lexicon.patterns.iter().filter(|(_, terminal)| terminal.matches(word.as_bytes()));
        literal.into_iter().chain(patterns.map(|(id, _)| *id)).collect()
    }

    fn read(&mut self, terminals: &[TerminalId]) -> bool {
        let here = self.chart.position();
        let mut prefix = S::ZERO;
        let mut scans: Vec<Scan<S::Value>> = Vec::new();
        for terminal in terminals.iter().filter(|terminal| terminal.0 < self.chart.core().terminals) {
            let symbol = self.chart.core().terminal_symbol(*terminal);
            let mass = S::mul(self.chart.mass(here, symbol), S::letter());
            if !S::is_zero(mass) {
                prefix = S::add(prefix, mass);
                scans.push((here, symbol, S::letter()));
            }
        }
        if scans.is_empty() {
            return false;
        }
        let mut scale = self.chart.last().scale;
        if let Some((factor, log)) = S::rescale(prefix) {
            for scan in &mut scans {
                scan.2 = S::mul(scan.2, factor);
            }
            prefix = S::mul(prefix, factor);
            scale += log;
        }
        self.chart.push(&scans, prefix, scale)
    }

    /// Returns the terminals that can come next, ascending by number.
    pub fn allowed_terminals(&self) -> Vec<TerminalId> {
        let core = self.chart.core();
        self.chart.masses(self.chart.position()).iter().map(|entry| core.terminal_of(entry.0)).collect()
    }

    /// Returns the probability of each terminal to come next, given everything before.
    pub fn next_terminal_distribution(&self) -> Next {
        let core = self.chart.core();
        let last = self.chart.last();
        let whole = S::log(last.prefix);
        let share = |value: S::Value| (S::log(value) - whole).exp();
        let masses = self.chart.masses(self.chart.position());
        let terminals =
            masses.iter().map(|(symbol, mass)| (core.terminal_of(*symbol), share(*mass))).collect();
        Next { terminals, end: share(last.sentence) }
    }

    /// Checks whether the terminals read so far are a sentence.
    pub fn accepted(&self) -> bool {
        !S::is_zero(self.chart.last().sentence)
    }

    /// Returns the weight of the terminals read so far as a sentence. For [`Real`](crate::Real) this is up to a scale;
    /// see [`sentence_logprob`](Self::sentence_logprob).
    pub fn sentence(&self) -> S::Value {
        self.chart.last().sentence
    }

    /// Returns the logarithm of the weight of all texts with this prefix.
    pub fn prefix_logprob(&self) -> f64 {
        self.prefix_logprob_at(self.position())
    }

    /// Returns the same for an earlier position; minus infinity after the end.
    pub fn prefix_logprob_at(&self, position: usize) -> f64 {
        self.chart
            .columns
            .get(position)
            .map_or(f64::NEG_INFINITY, |column| S::log(column.prefix) - column.scale)
    }

    /// Returns the logarithm of the weight of the terminals read so far as a sentence; minus infinity if they are none.
    pub fn sentence_logprob(&self) -> f64 {
        let last = self.chart.last();
        S::log(last.sentence) - last.scale
    }

    /// Returns how many terminals have been read.
    pub fn position(&self) -> usize {
        self.chart.position() as usize
    }

    /// Takes back the last terminals, at most all of them.
    pub fn rollback(&mut self, terminals: usize) {
        let kept = self.position().saturating_sub(terminals) + 1;
        self.chart.truncate(kept);
    }

    /// Goes back to the beginning.
    pub fn reset(&mut self) {
        self.chart.truncate(1);
    }

    /// Returns an independent parser at the same position.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// Returns the least number of terminals that complete a sentence from here.
    pub fn shortest_completion(&self) -> u64 {
        Shortest::new(self.chart.core(), |_| 1).completion(&self.chart)
    }
}
