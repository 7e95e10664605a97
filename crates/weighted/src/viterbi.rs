//! The best derivation of a text.
//!
//! The chart is filled with [`MaxPlus`], where addition takes the maximum. It then knows the weight of the best
//! derivation of everything. The derivation itself is found from the top, by searching the rule and the split that have
//! that weight. This costs nothing while reading, and a tree is requested once.
//!
//! Chains of unit rules and empty texts can have loops. A loop is never better, but rounding may make it look as good,
//! so a chain never contains the same symbol twice over the same part of the text.

use core::cmp::Ordering;

use maskwright_grammar::Diagnostic;

use crate::bytes::ByteParser;
use crate::chart::Chart;
use crate::core::Core;
use crate::parser::Parser;
use crate::pcfg::{NonterminalId, Pcfg};
use crate::semiring::MaxPlus;
use crate::tree::{Label, Node, Tree};

/// Returns the most probable derivation of a sequence of words; `None` if they are not a sentence.
///
/// ```
/// use maskwright_weighted::{Options, Pcfg, best_parse};
/// let grammar = Pcfg::parse("NP -> NP and NP [0.3] | kim [0.4] | sandy [0.3]", &Options::default()).unwrap();
/// let tree = best_parse(&grammar, &["kim", "and", "sandy"]).unwrap().unwrap();
/// assert_eq!(tree.brackets(&grammar), "(NP (NP kim) and (NP sandy))");
/// assert!((tree.log_probability.exp() - 0.3 * 0.4 * 0.3).abs() < 1e-12);
/// assert_eq!(best_parse(&grammar, &["kim", "and"]).unwrap(), None);
/// ```
pub fn best_parse<W: AsRef<str>>(grammar: &Pcfg, words: &[W]) -> Result<Option<Tree>, Diagnostic> {
    let mut parser = Parser::<MaxPlus>::keeping(grammar)?;
    if !words.iter().all(|word| parser.step_word(word.as_ref())) || !parser.accepted() {
        return Ok(None);
    }
    let word = |from: u32, to: u32| words[from as usize..to as usize].iter().map(AsRef::as_ref).collect();
    Ok(Some(best_tree(&parser.chart, &word)))
}

/// Returns the most probable derivation of a text, read byte by byte; `None` if the grammar does not derive it. Reading
/// takes at most `steps` steps, and more are an error.
///
/// ```
/// use maskwright_weighted::{Options, Pcfg, best_parse_of_text};
/// let grammar = Pcfg::parse(r#"S -> Name " is " /[0-9]+/ [0.5] | /[A-Za-z ]+/ [0.5]
///                              Name -> "Kim" [0.3] | "Kimberly" [0.7]"#, &Options::default()).unwrap();
/// let tree = best_parse_of_text(&grammar, b"Kim is 42", 1_000).unwrap().unwrap();
/// assert_eq!(tree.brackets(&grammar), r#"(S (Name Kim) " is " 42)"#);
/// assert_eq!(best_parse_of_text(&grammar, b"42", 1_000).unwrap(), None);
/// assert!(best_parse_of_text(&grammar, b"Kim is 42", 3).unwrap_err().message.contains("3 steps"));
/// ```
pub fn best_parse_of_text(grammar: &Pcfg, text: &[u8], steps: u64) -> Result<Option<Tree>, Diagnostic> {
    let mut parser = ByteParser::<MaxPlus>::keeping(grammar)?;
    if !parser.read_within(text, steps, |_| {})? {
        return Ok(None);
    }
    let part = |from: u32, to: u32| String::from_utf8_lossy(&text[from as usize..to as usize]).into_owned();
    Ok(Some(best_tree(&parser.chart, &part)))
}

/// Returns the best tree of a chart that has kept everything. `leaf` returns the text between two columns.
fn best_tree(chart: &Chart<MaxPlus>, leaf: &dyn Fn(u32, u32) -> String) -> Tree {
    let mut search = Search { core: chart.core(), chart, leaf, nodes: Vec::new() };
    search.run();
    let last = chart.last();
    Tree { nodes: search.nodes, log_probability: last.sentence - last.scale }
}

/// A symbol over a part of the text that must be derived. `above` are the symbols on the path to it over the same part.
struct Task {
    symbol: u32,
    from: u32,
    to: u32,
    parent: Option<usize>,
    above: Vec<u32>,
}

/// A derivation of a symbol: the rule, and the part that each symbol of its right side covers.
struct Derivation {
    rule: u32,
    /// The position where each symbol begins, and at the end the position where the last one ends.
    cuts: Vec<u32>,
}

struct Search<'a> {
    core: &'a Core,
    chart: &'a Chart<MaxPlus>,
    leaf: &'a dyn Fn(u32, u32) -> String,
    nodes: Vec<Node>,
}

impl Search<'_> {
    fn run(&mut self) {
        let to = self.chart.position();
        let mut work = vec![Task { symbol: self.core.start, from: 0, to, parent: None, above: Vec::new() }];
        while let Some(task) = work.pop() {
            if self.core.is_terminal(task.symbol) {
                self.attach(Label::Word((self.leaf)(task.from, task.to)), task.parent);
                continue;
            }
            let found = if task.from == task.to { self.empty(&task) } else { self.best(&task) };
            // The chart has a weight for the symbol, so there is a derivation.
            let Some(Derivation { rule, cuts }) = found else { continue };
            let rule = &self.core.rules[rule as usize];
            let parent = match rule.source {
                Some(source) => {
                    Some(self.attach(Label::Symbol(NonterminalId(rule.left), source), task.parent))
                }
                None => task.parent,
            };
            if rule.length == 0 && rule.source.is_some() {
                self.attach(Label::Empty, parent);
            }
            for (at, &symbol) in self.core.right(rule).iter().enumerate().rev() {
                let (from, to) = (cuts[at], cuts[at + 1]);
                let mut above = Vec::new();
                if (from, to) == (task.from, task.to) {
                    above.clone_from(&task.above);
                    above.push(task.symbol);
                }
                work.push(Task { symbol, from, to, parent, above });
            }
        }
    }

    fn attach(&mut self, label: Label, parent: Option<usize>) -> usize {
        let at = self.nodes.len();
        self.nodes.push(Node { label, children: Vec::new() });
        if let Some(parent) = parent {
            self.nodes[parent].children.push(at);
        }
        at
    }

    /// Returns the best derivation of the empty text from a symbol.
    fn empty(&self, task: &Task) -> Option<Derivation> {
        let tables = &self.chart.tables;
        let mut best: Option<(f64, u32)> = None;
        for &number in self.core.rules_of(task.symbol) {
            let right = self.core.right(&self.core.rules[number as usize]);
            if right.iter().any(|symbol| *symbol == task.symbol || task.above.contains(symbol)) {
                continue;
            }
            let weight = tables.weights[number as usize]
                + right.iter().map(|symbol| self.vanishes(*symbol)).sum::<f64>();
            if weight > f64::NEG_INFINITY && best.is_none_or(|known| weight > known.0) {
                best = Some((weight, number));
            }
        }
        let (_, rule) = best?;
        let length = self.core.rules[rule as usize].length as usize;
        Some(Derivation { rule, cuts: vec![task.from; length + 1] })
    }

    fn vanishes(&self, symbol: u32) -> f64 {
        self.chart.tables.empty.get(symbol as usize).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Returns the best derivation of a symbol over a nonempty part.
    fn best(&self, task: &Task) -> Option<Derivation> {
        let tables = &self.chart.tables;
        let mut best: Option<(f64, u32, Last)> = None;
        for &number in self.core.rules_of(task.symbol) {
            let rule = &self.core.rules[number as usize];
            for dot in (rule.first..rule.first + rule.length).rev() {
                let end = tables.ends[dot as usize + 1];
                if end == f64::NEG_INFINITY {
                    break;
                }
                for (last, weight) in self.lasts(dot, task.from, task.to) {
                    let symbol = self.core.symbols[dot as usize];
                    let circle =
                        last.from == task.from && (symbol == task.symbol || task.above.contains(&symbol));
                    // A right side of which one symbol covers everything is tried last: among equally good ones, the
                    // chain should end.
                    let chain = last.from == task.from && !self.core.is_terminal(symbol);
                    let weight = weight + end;
                    let better = best.as_ref().is_none_or(|known| match weight.total_cmp(&known.0) {
                        Ordering::Greater => true,
                        Ordering::Equal => !chain,
                        Ordering::Less => false,
                    });
                    if !circle && better {
                        best = Some((weight, number, last));
                    }
                }
            }
        }
        let (_, rule, last) = best?;
        Some(Derivation { rule, cuts: self.cuts(rule, last, task) })
    }

    /// Returns every way in which the symbol at a dot can be the last nonempty part of a rule from `origin`.
    fn lasts(&self, dot: u32, origin: u32, to: u32) -> Vec<(Last, f64)> {
        let symbol = self.core.symbols[dot as usize];
        let mut out = Vec::new();
        let mut offer = |from: u32, weight: f64| {
            let before = self.before(dot, origin, from);
            if before > f64::NEG_INFINITY {
                out.push((Last { dot, from }, before + weight));
            }
        };
        if self.core.is_terminal(symbol) {
            for &(from, found, weight) in &self.chart.column(to).scans {
                if found == symbol && from >= origin {
                    offer(from, weight);
                }
            }
        } else {
            for &(from, found, weight) in &self.chart.column(to).complete {
                if found == symbol && from >= origin {
                    offer(from, weight);
                }
            }
        }
        out
    }

    /// Returns the weight of everything before a dot, from the origin of its rule to a column.
    fn before(&self, dot: u32, origin: u32, to: u32) -> f64 {
        let chart = self.chart;
        if origin == to {
            // Everything before the dot vanishes.
            let rule = self.core.rule_of[dot as usize] as usize;
            let first = self.core.rules[rule].first;
            let gone: f64 = self.core.symbols[first as usize..dot as usize]
                .iter()
                .map(|symbol| self.vanishes(*symbol))
                .sum();
            return chart.tables.weights[rule] + gone;
        }
        let waiting = chart.waiting(to, self.core.symbols[dot as usize]);
        let found = waiting.binary_search_by_key(&(dot, origin), |item| (item.dot, item.origin));
        found.map_or(f64::NEG_INFINITY, |at| waiting[at].inner)
    }

    /// Goes back through the rule, part by part.
    fn cuts(&self, rule: u32, last: Last, task: &Task) -> Vec<u32> {
        let rule = &self.core.rules[rule as usize];
        let mut cuts = vec![task.to; rule.length as usize + 1];
        let mut last = last;
        loop {
            for cut in &mut cuts[..=(last.dot - rule.first) as usize] {
                *cut = last.from;
            }
            if last.from == task.from {
                return cuts;
            }
            let mut best: Option<(f64, Last)> = None;
            let mut skipped = 0.0;
            for dot in (rule.first..last.dot).rev() {
                for (earlier, weight) in self.lasts(dot, task.from, last.from) {
                    if best.as_ref().is_none_or(|known| weight + skipped > known.0) {
                        best = Some((weight + skipped, earlier));
                    }
                }
                skipped += self.vanishes(self.core.symbols[dot as usize]);
                if skipped == f64::NEG_INFINITY {
                    break;
                }
            }
            match best {
                Some((_, earlier)) => last = earlier,
                None => return cuts,
            }
        }
    }
}

/// The last nonempty part of a rule: its dot, and where it begins.
#[derive(Clone, Copy)]
struct Last {
    dot: u32,
    from: u32,
}
