//! Learns probabilities from sentences.
//!
//! How often is a rule expected in the derivations of a sentence? That is the derivative of the logarithm of the
//! sentence's probability by that of the rule's. The chart is a long computation that can be differentiated from its
//! end to its beginning: columns from last to first, and in each the complete symbols by ascending origin, the reverse
//! of the order in which they were found. This is the outside pass of the inside–outside algorithm.
//!
//! Sums in closed form are differentiated in closed form. For the units, full = R·c gives c̄ = Rᵀ·full̄, and the step
//! from A down to B is expected c̄(A)·u(A,B)·full(B) times. For empty texts, each vanishing of X is counted, and at the
//! end these counts are distributed to the rules that derive the empty text.
//!
//! Dividing the counts by those of their symbol gives new probabilities, under which the sentences are at least as
//! likely ([`train`]).

use maskwright_grammar::{Diagnostic, Span};

use crate::bytes::ByteParser;
use crate::chart::Chart;
use crate::closure::Closure;
use crate::parser::Parser;
use crate::pcfg::Pcfg;
use crate::semiring::Real;
use crate::tables::Start;

/// Options of training.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The greatest number of rounds.
    pub rounds: usize,
    /// Training ends when a round improves the logarithm of the likelihood by less than this per sentence.
    pub tolerance: f64,
    /// A count that is added to each rule, so that rules that do not occur keep a nonzero probability.
    pub prior: f64,
}

impl Default for Training {
    fn default() -> Self {
        Self { rounds: 50, tolerance: 1e-6, prior: 0.0 }
    }
}

/// The result of training.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The grammar with its new probabilities.
    pub grammar: Pcfg,
    /// The logarithm of the likelihood of all sentences before the first round and after each. It never decreases,
    /// unless there is a prior.
    pub log_likelihoods: Vec<f64>,
}

/// The expected counts of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// The expected number of uses of each rule of the grammar in a derivation.
    pub rules: Vec<f64>,
    /// The logarithm of the sentence's probability.
    pub log_probability: f64,
}

/// Finds probabilities that make the sentences likely, by expectation maximization. An error names the first sentence
/// that the grammar does not derive.
pub fn train(grammar: &Pcfg, sentences: &[Vec<String>], how: &Training) -> Result<Trained, Diagnostic> {
    let mut grammar = grammar.clone();
    let mut log_likelihoods: Vec<f64> = Vec::new();
    for round in 0..=how.rounds {
        let (counts, likelihood) = expectations(&grammar, sentences)?;
        let gain = log_likelihoods.last().map(|last| likelihood - last);
        log_likelihoods.push(likelihood);
        let enough = gain.is_some_and(|gain| gain < how.tolerance * f64::from(sentences.len().max(1) as u32));
        if round == how.rounds || enough {
            break;
        }
        grammar = updated(&grammar, &counts, how.prior);
    }
    Ok(Trained { grammar, log_likelihoods })
}

fn expectations(grammar: &Pcfg, sentences: &[Vec<String>]) -> Result<(Vec<f64>, f64), Diagnostic> {
    let mut parser = Parser::<Real>::keeping(grammar)?;
    let (mut counts, mut likelihood) = (vec![0.0; grammar.rules().len()], 0.0);
    for (number, sentence) in sentences.iter().enumerate() {
        let found = counts_with(&mut parser, grammar, sentence)?.ok_or_else(|| {
            let message =
                format!("sentence {} is not derived by the grammar: {}", number + 1, sentence.join(" "));
            Diagnostic::error(Span::default(), message)
                .with_help("leave it out, or add the rules that it needs")
        })?;
        counts.iter_mut().zip(&found.rules).for_each(|(sum, count)| *sum += count);
        likelihood += found.log_probability;
    }
    Ok((counts, likelihood))
}

/// Computes new probabilities from counts. A symbol that was never used keeps its own.
fn updated(grammar: &Pcfg, counts: &[f64], prior: f64) -> Pcfg {
    let mut sums = vec![0.0; grammar.nonterminals()];
    for (rule, count) in grammar.rules().iter().zip(counts) {
        sums[rule.left.0 as usize] += count + prior;
    }
    let new = |(rule, count): (&crate::Rule, &f64)| {
        let sum: f64 = sums[rule.left.0 as usize];
        if sum > 0.0 { (count + prior) / sum } else { rule.probability }
    };
    let probabilities: Vec<f64> = grammar.rules().iter().zip(counts).map(new).collect();
    grammar.with_probabilities(&probabilities).unwrap_or_else(|| grammar.clone())
}

/// Returns the expected number of uses of each rule in the derivations of a sentence; `None` if there are none.
///
/// ```
/// use maskwright_weighted::{Options, Pcfg, expected_counts};
/// let grammar = Pcfg::parse("S -> S S [0.4] | a [0.6]", &Options::default()).unwrap();
/// let counts = expected_counts(&grammar, &["a", "a", "a"]).unwrap().unwrap();
/// assert!((counts.rules[0] - 2.0).abs() < 1e-12 && (counts.rules[1] - 3.0).abs() < 1e-12);
/// ```
pub fn expected_counts<W: AsRef<str>>(grammar: &Pcfg, words: &[W]) -> Result<Option<Counts>, Diagnostic> {
    counts_with(&mut Parser::keeping(grammar)?, grammar, words)
}

/// Returns the same for a text, read byte by byte. Reading takes at most `steps` steps, and more are an error.
///
/// ```
/// use maskwright_weighted::{Options, Pcfg, expected_counts_of_text};
/// let grammar = Pcfg::parse(r#"S -> S "," S [0.4] | /[0-9]+/ [0.6]"#, &Options::default()).unwrap();
/// let counts = expected_counts_of_text(&grammar, b"1,22,3", 1_000).unwrap().unwrap();
/// assert!((counts.rules[0] - 2.0).abs() < 1e-12 && (counts.rules[1] - 3.0).abs() < 1e-12);
/// ```
pub fn expected_counts_of_text(
    grammar: &Pcfg,
    text: &[u8],
    steps: u64,
) -> Result<Option<Counts>, Diagnostic> {
    let mut parser = ByteParser::<Real>::keeping(grammar)?;
    if !parser.read_within(text, steps, |_| {})? {
        return Ok(None);
    }
    counts_of(&parser.chart, grammar).map(Some)
}

fn counts_with<W: AsRef<str>>(
    parser: &mut Parser<Real>,
    grammar: &Pcfg,
    words: &[W],
) -> Result<Option<Counts>, Diagnostic> {
    parser.reset();
    if !words.iter().all(|word| parser.step_word(word.as_ref())) || !parser.accepted() {
        return Ok(None);
    }
    counts_of(&parser.chart, grammar).map(Some)
}

/// Returns the expected counts of a chart that has kept everything.
fn counts_of(chart: &Chart<Real>, grammar: &Pcfg) -> Result<Counts, Diagnostic> {
    let mut outside = Outside::new(chart);
    outside.run();
    let rules = outside.finish(grammar)?;
    let last = chart.last();
    Ok(Counts { rules, log_probability: last.sentence.ln() - last.scale })
}

/// The derivatives of one chart.
struct Outside<'a> {
    chart: &'a Chart<Real>,
    /// Those of the items of each column.
    items: Vec<Vec<f64>>,
    /// Those of the complete symbols of the current column.
    complete: Vec<f64>,
    /// The expected uses of each rule of the core (`rules`), and the expected number of times that each symbol vanishes
    /// (`vanished`).
    rules: Vec<f64>,
    vanished: Vec<f64>,
    /// For each symbol, the dots at which it can be the whole nonempty part of a rule.
    wholes: Vec<Vec<u32>>,
}

impl<'a> Outside<'a> {
    fn new(chart: &'a Chart<Real>) -> Self {
        let core = chart.core();
        let tables = &chart.tables;
        let mut wholes = vec![Vec::new(); core.nonterminals as usize];
        for rule in &core.rules {
            for &(dot, _) in tables.skips(rule.first) {
                let symbol = core.symbols[dot as usize];
                if !core.is_terminal(symbol) && tables.ends[dot as usize + 1] > 0.0 {
                    wholes[symbol as usize].push(dot);
                }
            }
        }
        Self {
            chart,
            items: chart.columns.iter().map(|column| vec![0.0; column.items.len()]).collect(),
            complete: Vec::new(),
            rules: vec![0.0; core.rules.len()],
            vanished: vec![0.0; core.nonterminals as usize],
            wholes,
        }
    }

    fn run(&mut self) {
        let chart = self.chart;
        let last = chart.position();
        if last == 0 {
            self.vanished[chart.core().start as usize] += 1.0;
        }
        for to in (1..=last).rev() {
            let column = chart.column(to);
            self.complete = vec![0.0; column.complete.len()];
            let mut at = 0;
            while let Some(&(origin, _, _)) = column.complete.get(at) {
                let end = at + column.complete[at..].partition_point(|entry| entry.0 == origin);
                for number in at..end {
                    let (_, symbol, weight) = column.complete[number];
                    let root = origin == 0 && symbol == chart.core().start && to == last;
                    let first = if root { 1.0 / column.sentence } else { 0.0 };
                    self.complete[number] = first + self.used(origin, symbol, weight, to);
                }
                for number in at..end {
                    let (_, symbol, weight) = column.complete[number];
                    self.chain(origin, symbol, weight, to);
                }
                at = end;
            }
            for &(from, terminal, weight) in &column.scans {
                self.used(from, terminal, weight, to);
            }
        }
    }

    /// Returns the derivative of a symbol that is complete from one column to another, and adds its uses to other
    /// derivatives.
    fn used(&mut self, at: u32, symbol: u32, weight: f64, to: u32) -> f64 {
        let chart = self.chart;
        let core = chart.core();
        let mut sum = 0.0;
        let waiting = chart.waiting(at, symbol);
        let first = chart.column(at).items.partition_point(|item| core.symbols[item.dot as usize] < symbol);
        for (number, item) in waiting.iter().enumerate() {
            let ahead = self.ahead(item.dot + 1, item.origin, to, true, item.inner * weight);
            sum += item.inner * ahead;
            self.items[at as usize][first + number] += weight * ahead;
        }
        let is_terminal = core.is_terminal(symbol);
        for &Start { left, dot, weight: start } in chart.tables.starts(symbol) {
            if chart.wanted(at, left).is_none() {
                continue;
            }
            let ahead = self.ahead(dot, at, to, is_terminal, start * weight);
            sum += start * ahead;
            let count = start * weight * ahead;
            let rule = core.rule_of[dot as usize] as usize;
            self.rules[rule] += count;
            self.vanish(core.rules[rule].first, dot - 1, count);
        }
        sum
    }

    /// Returns the derivative of reaching a dot: of the items there and after the symbols that vanish, and of the whole
    /// rule if it ends there. `inner` is the weight of the part before the dot.
    fn ahead(&mut self, dot: u32, origin: u32, to: u32, may_end: bool, inner: f64) -> f64 {
        let chart = self.chart;
        let core = chart.core();
        let mut sum = 0.0;
        for &(behind, factor) in chart.tables.skips(dot) {
            let symbol = core.symbols[behind as usize];
            let items = &chart.column(to).items;
            let found = items.binary_search_by_key(&(symbol, behind, origin), |item| {
                (core.symbols[item.dot as usize], item.dot, item.origin)
            });
            if let Ok(number) = found {
                let part = self.items[to as usize][number] * factor;
                sum += part;
                self.vanish(dot, behind, inner * part);
            }
        }
        let end = chart.tables.ends[dot as usize];
        if may_end && end > 0.0 {
            let part = end * self.below_units(origin, core.left(dot), to);
            sum += part;
            let rule = &core.rules[core.rule_of[dot as usize] as usize];
            self.vanish(dot, rule.first + rule.length, inner * part);
        }
        sum
    }

    /// Returns the derivative of a symbol before chains of units are added.
    fn below_units(&self, origin: u32, symbol: u32, to: u32) -> f64 {
        let complete = &self.chart.column(to).complete;
        let part = |&(upper, factor): &(u32, f64)| {
            let found = complete.binary_search_by_key(&(origin, upper), |entry| (entry.0, entry.1));
            found.map_or(0.0, |at| factor * self.complete[at])
        };
        self.chart.tables.units(symbol).iter().map(part).sum()
    }

    /// Counts the steps of chains of units from above down to a symbol.
    fn chain(&mut self, origin: u32, symbol: u32, weight: f64, to: u32) {
        let chart = self.chart;
        let (core, tables) = (chart.core(), &chart.tables);
        for dot in self.wholes[symbol as usize].clone() {
            let number = core.rule_of[dot as usize] as usize;
            let rule = &core.rules[number];
            let above = self.below_units(origin, rule.left, to);
            if above == 0.0 {
                continue;
            }
            let before =
                tables.skips(rule.first).iter().find(|skip| skip.0 == dot).map_or(0.0, |skip| skip.1);
            let count = above * tables.weights[number] * before * tables.ends[dot as usize + 1] * weight;
            self.rules[number] += count;
            self.vanish(rule.first, dot, count);
            self.vanish(dot + 1, rule.first + rule.length, count);
        }
    }

    /// Counts that the symbols from one dot to another have vanished this often.
    fn vanish(&mut self, from: u32, to: u32, count: f64) {
        for symbol in &self.chart.core().symbols[from as usize..to as usize] {
            self.vanished[*symbol as usize] += count;
        }
    }

    /// Distributes the counts of vanished symbols, and maps the rules to those of the grammar.
    fn finish(mut self, grammar: &Pcfg) -> Result<Vec<f64>, Diagnostic> {
        let (core, tables) = (self.chart.core(), &self.chart.tables);
        let of_rule = |number: usize| {
            let rule = &core.rules[number];
            let gone = core
                .right(rule)
                .iter()
                .map(|symbol| tables.empty.get(*symbol as usize).copied().unwrap_or(0.0));
            let whole = tables.empty[rule.left as usize];
            if whole > 0.0 { tables.weights[number] * gone.product::<f64>() / whole } else { 0.0 }
        };
        let shares: Vec<f64> = (0..core.rules.len()).map(of_rule).collect();
        let mut edges = vec![Vec::new(); core.nonterminals as usize];
        for (rule, share) in core.rules.iter().zip(&shares).filter(|(_, share)| **share > 0.0) {
            edges[rule.left as usize].extend(core.right(rule).iter().map(|symbol| (*symbol, *share)));
        }
        let closure = Closure::<Real>::new(edges).map_err(|_| {
            Diagnostic::error(
                Span::default(),
                "the empty text has derivations of infinite length, so they cannot be counted",
            )
        })?;
        let noted = self.vanished.iter().enumerate().filter(|(_, count)| **count > 0.0);
        let sources: Vec<(u32, f64)> = noted.map(|(symbol, count)| (symbol as u32, *count)).collect();
        let mut total = vec![0.0; core.nonterminals as usize];
        for (symbol, count) in closure.reach(&sources, &mut closure.flow()) {
            total[symbol as usize] = count;
        }
        for (number, share) in shares.iter().enumerate() {
            self.rules[number] += total[core.rules[number].left as usize] * share;
        }
        let mut out = vec![0.0; grammar.rules().len()];
        for (rule, count) in core.rules.iter().zip(&self.rules) {
            if let Some(source) = rule.source {
                out[source.0 as usize] += count;
            }
        }
        Ok(out)
    }
}
