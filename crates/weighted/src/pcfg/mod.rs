//! Grammars with probabilities.
//!
//! ```text
//! # The first rule is the one that a whole text must match.
//! S  -> NP VP [0.9] | S "and" S [0.1]
//! NP -> "Alice" | "Bob" | Det N [1/2]       without a number: an equal share of what is left
//! VP -> V NP [0.6] | V [0.4]
//! Det -> the | a | ε                        a bare word that no rule defines is a literal
//! N  -> /[a-z]+/                            a pattern
//! V  -> "sees" [0.7]
//!     | "hears" [0.3]
//! ```
//!
//! A bare word that no rule defines represents itself if it begins with a small letter or a digit. With a capital
//! letter it is considered a symbol whose definition is missing. A literal in quotes is always a literal. `ε` (or `""`)
//! is the empty text.
//!
//! The probabilities of each symbol must add up to one, or are normalized on request ([`Options::normalise`]). A
//! definite mistake is an error with its place. Anything that is only unusual is a [warning](Pcfg::warnings): symbols
//! that cannot be reached or that derive no text, and loops that are expected to grow forever.

mod check;
mod consistency;
mod text;
mod useful;
mod write;

use core::fmt;

use maskwright_automata::Limits;
use maskwright_frontend::regex;
use maskwright_grammar::{Diagnostic, Grammar, GrammarBuilder, Span};

use crate::terminal::{Pattern, Terminal};

pub(crate) use useful::{productive, reachable, takes_part};

/// The number of a symbol with rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NonterminalId(pub u32);

/// The number of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TerminalId(pub u32);

/// The number of a rule: one alternative of one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u32);

/// A symbol on the right side of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// A symbol with rules.
    Nonterminal(NonterminalId),
    /// A terminal.
    Terminal(TerminalId),
}

/// One alternative of one symbol.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The derived symbol.
    pub left: NonterminalId,
    /// The symbols that it is replaced with.
    pub right: Box<[Symbol]>,
    /// The probability of this alternative.
    pub probability: f64,
    /// The place in the source.
    pub span: Span,
}

/// Options for reading a grammar.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Options {
    /// Whether probabilities that do not add up to one are divided by their sum instead of being rejected.
    pub normalise: bool,
    /// The symbol that a whole text must match, if it is not that of the first rule.
    pub start: Option<String>,
    /// The greatest size of the source, in bytes.
    pub source_bytes: usize,
    /// The greatest number of symbols on the right sides of all rules.
    pub symbols: usize,
    /// The greatest number of entries of any table of a parser.
    pub entries: usize,
    /// The limits of a pattern's automaton. Not serialized.
    #[serde(skip)]
    pub patterns: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            normalise: false,
            start: None,
            source_bytes: 64 << 20,
            symbols: 1 << 22,
            entries: 1 << 24,
            patterns: Limits::default(),
        }
    }
}

/// A checked grammar with probabilities.
#[derive(Clone, Debug)]
pub struct Pcfg {
    names: Vec<Box<str>>,
    terminals: Vec<Terminal>,
    rules: Vec<Rule>,
    start: NonterminalId,
    warnings: Vec<Diagnostic>,
    /// The value of [`Options::entries`].
    entries: usize,
}

impl Pcfg {
    /// Reads a grammar. Returns all errors if there are any.
    ///
    /// ```
    /// use maskwright_weighted::{Options, Pcfg};
    /// let source = "S -> S a [0.4] | a [0.7]";
    /// let remarks = Pcfg::parse(source, &Options::default()).unwrap_err();
    /// assert_eq!(remarks[0].render("g", source), "\
    /// g:1:1: error: the probabilities of `S` add up to 1.1
    ///   |
    /// 1 | S -> S a [0.4] | a [0.7]
    ///   | ^
    ///   = help: make them add up to 1, or ask for normalisation
    /// ");
    /// ```
    pub fn parse(source: &str, options: &Options) -> Result<Self, Vec<Diagnostic>> {
        let draft = text::read(source, options)?;
        check::check(&draft, options)
    }

    /// Builds a grammar from rules. A name that is on no left side is a literal.
    ///
    /// ```
    /// use maskwright_weighted::{Options, Pcfg};
    /// let rules = [("S", vec!["S", "a"], 0.4), ("S", vec!["a"], 0.6)];
    /// let grammar = Pcfg::from_rules("S", rules, &Options::default()).unwrap();
    /// assert_eq!(grammar.to_string(), "S -> S a [0.4] | a [0.6]\n");
    /// ```
    pub fn from_rules<'a>(
        start: &str,
        rules: impl IntoIterator<Item = (&'a str, Vec<&'a str>, f64)>,
        options: &Options,
    ) -> Result<Self, Vec<Diagnostic>> {
        let draft = Draft::from_rules(rules);
        check::check(&draft, &Options { start: Some(start.into()), ..options.clone() })
    }

    /// Returns the symbol that a whole text must match.
    pub fn start(&self) -> NonterminalId {
        self.start
    }

    /// Returns all rules, in the order of the source.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns a rule.
    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id.0 as usize]
    }

    /// Returns all terminals.
    pub fn terminals(&self) -> &[Terminal] {
        &self.terminals
    }

    /// Returns a terminal.
    pub fn terminal(&self, id: TerminalId) -> &Terminal {
        &self.terminals[id.0 as usize]
    }

    /// Returns the literal with this text.
    pub fn literal(&self, text: &str) -> Option<TerminalId> {
        let is_it =
            |terminal: &Terminal| matches!(terminal, Terminal::Literal(bytes) if **bytes == *text.as_bytes());
        self.terminals.iter().position(is_it).map(|at| TerminalId(at as u32))
    }

    /// Returns the number of symbols with rules.
    pub fn nonterminals(&self) -> usize {
        self.names.len()
    }

    /// Returns the name of a symbol.
    pub fn name(&self, id: NonterminalId) -> &str {
        &self.names[id.0 as usize]
    }

    /// Returns the symbol with this name.
    pub fn nonterminal(&self, name: &str) -> Option<NonterminalId> {
        self.names.iter().position(|known| **known == *name).map(|at| NonterminalId(at as u32))
    }

    /// Returns the warnings about the grammar.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns the memory in bytes, approximately, without the automata of its patterns.
    pub(crate) fn heap_bytes(&self) -> usize {
        let rules = self.rules.iter().map(|rule| size_of::<Rule>() + size_of_val(&*rule.right));
        let names = self.names.iter().map(|name| name.len() + 16);
        let literals = self.terminals.iter().map(|terminal| match terminal {
            Terminal::Literal(bytes) => bytes.len() + size_of::<Terminal>(),
            Terminal::Pattern(_) => size_of::<Terminal>(),
        });
        rules.sum::<usize>() + names.sum::<usize>() + literals.sum::<usize>()
    }

    /// Returns the greatest number of entries that a table of a parser may have.
    pub(crate) fn most_entries(&self) -> usize {
        self.entries
    }

    /// Formats a rule as it would be written.
    pub fn show_rule(&self, id: RuleId) -> String {
        write::rule(self, self.rule(id))
    }

    /// Returns the same grammar with other probabilities, one for each rule; those of a symbol are divided by their
    /// sum. Returns `None` if a probability is negative or not a number, or if those of a symbol are all zero.
    #[must_use]
    pub fn with_probabilities(&self, probabilities: &[f64]) -> Option<Self> {
        let mut sums = vec![0.0; self.names.len()];
        if probabilities.len() != self.rules.len() {
            return None;
        }
        for (rule, probability) in self.rules.iter().zip(probabilities) {
            if !probability.is_finite() || *probability < 0.0 {
                return None;
            }
            sums[rule.left.0 as usize] += probability;
        }
        let mut out = self.clone();
        for (rule, probability) in out.rules.iter_mut().zip(probabilities) {
            let sum = sums[rule.left.0 as usize];
            if sum <= 0.0 {
                return None;
            }
            rule.probability = probability / sum;
        }
        Some(out)
    }

    /// Converts to a grammar of the same texts, without probabilities, for the mask engine. Rules of probability zero
    /// are left out.
    pub fn to_grammar(&self) -> Result<Grammar, Diagnostic> {
        let mut g = GrammarBuilder::new();
        let ids: Vec<_> = self.names.iter().map(|name| g.declare(name)).collect();
        let mut terminals = Vec::new();
        for terminal in &self.terminals {
            terminals.push(match terminal {
                Terminal::Literal(bytes) => g.bytes(bytes),
                Terminal::Pattern(pattern) => {
                    regex::lower(pattern.source(), &regex::Options::default(), &mut g)?
                }
            });
        }
        let mut alternatives = vec![Vec::new(); ids.len()];
        for rule in self.rules.iter().filter(|rule| rule.probability > 0.0) {
            let mut parts = Vec::new();
            for symbol in &rule.right {
                parts.push(match symbol {
                    Symbol::Nonterminal(id) => g.rule(ids[id.0 as usize]),
                    Symbol::Terminal(id) => terminals[id.0 as usize],
                });
            }
            let body = g.seq(parts);
            alternatives[rule.left.0 as usize].push(body);
        }
        for (id, bodies) in ids.iter().zip(alternatives) {
            let body = g.alt(bodies);
            g.define(*id, body);
        }
        g.finish(ids[self.start.0 as usize])
            .map_err(|error| Diagnostic::error(Span::default(), error.to_string()))
    }
}

impl fmt::Display for Pcfg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write::grammar(self, f)
    }
}

/// Rules as they were written, before any check.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) rules: Vec<DraftRule>,
}

#[derive(Debug)]
pub(crate) struct DraftRule {
    pub(crate) left: Box<str>,
    pub(crate) left_span: Span,
    pub(crate) right: Vec<(DraftSymbol, Span)>,
    pub(crate) probability: Option<f64>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum DraftSymbol {
    /// A name that is a literal if no rule defines it; with `lax` also if it begins with a capital letter.
    Name {
        name: Box<str>,
        lax: bool,
    },
    Literal(Box<[u8]>),
    Pattern(Pattern),
}

impl Draft {
    fn from_rules<'a>(rules: impl IntoIterator<Item = (&'a str, Vec<&'a str>, f64)>) -> Self {
        let mut draft = Self::default();
        for (left, right, probability) in rules {
            let symbol =
                |name: &&str| (DraftSymbol::Name { name: (*name).into(), lax: true }, Span::default());
            draft.rules.push(DraftRule {
                left: left.into(),
                left_span: Span::default(),
                right: right.iter().filter(|name| !name.is_empty()).map(symbol).collect(),
                probability: Some(probability),
                span: Span::default(),
            });
        }
        draft
    }
}
