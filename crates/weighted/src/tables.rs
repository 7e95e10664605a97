//! The tables of a parser that do not depend on a text, with the weights of one semiring.
//!
//! Everything that can happen without reading a symbol is computed here in closed form: symbols that vanish (derive the
//! empty text), chains of unit rules, and left recursion. So the chart only moves by nonempty symbols.

use std::sync::Arc;

use maskwright_grammar::{Diagnostic, Span};

use crate::closure::{Closure, Unsolved};
use crate::core::{Core, END};
use crate::empty::empty_weights;
use crate::pcfg::Pcfg;
use crate::semiring::Semiring;

/// A rule that can begin with a symbol because everything before the symbol can vanish.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<V> {
    pub(crate) left: u32,
    /// The dot after the symbol.
    pub(crate) dot: u32,
    /// The weight of the rule and of the vanished symbols.
    pub(crate) weight: V,
}

/// The grammar with the weights of a semiring, with all closures.
#[derive(Debug)]
pub(crate) struct Tables<S: Semiring> {
    pub(crate) core: Arc<Core>,
    /// The weight of each rule.
    pub(crate) weights: Vec<S::Value>,
    /// The weight of the empty text for each symbol with rules.
    pub(crate) empty: Vec<S::Value>,
    /// For each symbol, the rules that can begin with it. Rules that a symbol with rules would complete immediately are
    /// in `units` instead.
    starts: Lists<Start<S::Value>>,
    /// For each symbol with rules, the terminals that can begin one of them, with the weights of those rules.
    firsts: Lists<(u32, S::Value)>,
    /// For each dot, the dots reachable by vanishing symbols at which something can be read.
    skips: Lists<(u32, S::Value)>,
    /// For each dot, the weight of everything after it vanishing.
    pub(crate) ends: Vec<S::Value>,
    /// The left corners: from each symbol to those that can begin it.
    pub(crate) corners: Closure<S>,
    /// For each symbol, the symbols that it can become by chains of unit rules, including itself.
    units: Lists<(u32, S::Value)>,
}

impl<S: Semiring> Tables<S> {
    pub(crate) fn new(pcfg: &Pcfg) -> Result<Self, Diagnostic> {
        let core = Arc::new(Core::new(pcfg)?);
        let weights: Vec<S::Value> = core.rules.iter().map(|rule| S::weight(rule.probability)).collect();
        let tell = |what: &'static str| {
            let core = Arc::clone(&core);
            move |unsolved: Unsolved| complain(pcfg, &core, what, unsolved)
        };
        let empty = empty_weights::<S>(&core, &weights).map_err(tell("empty texts"))?;
        let mut draft = Draft::<S> { core: &core, weights: &weights, empty: &empty, ends: Vec::new() };
        draft.find_ends();
        let skips = draft.skips(pcfg.most_entries())?;
        let (starts, corners, steps) = draft.starts(&skips);
        let corners = Closure::new(corners).map_err(tell("left recursion"))?;
        let units = unit_closure::<S>(steps, pcfg.most_entries()).map_err(tell("unit rules"))?;
        let ends = draft.ends;
        let firsts = firsts(&core, &starts);
        Ok(Self { core, weights, empty, starts, firsts, skips, ends, corners, units })
    }

    pub(crate) fn starts(&self, symbol: u32) -> &[Start<S::Value>] {
        self.starts.of(symbol)
    }

    pub(crate) fn first_terminals(&self, symbol: u32) -> &[(u32, S::Value)] {
        self.firsts.of(symbol)
    }

    pub(crate) fn skips(&self, dot: u32) -> &[(u32, S::Value)] {
        self.skips.of(dot)
    }

    /// Returns the memory in bytes, approximately.
    pub(crate) fn heap_bytes(&self) -> usize {
        let lists = self.starts.heap_bytes() + self.firsts.heap_bytes() + self.skips.heap_bytes();
        let flat = size_of_val(&*self.weights) + size_of_val(&*self.empty) + size_of_val(&*self.ends);
        lists + flat + self.units.heap_bytes() + self.corners.heap_bytes() + self.core.heap_bytes()
    }

    pub(crate) fn units(&self, symbol: u32) -> &[(u32, S::Value)] {
        self.units.of(symbol)
    }
}

/// Many short lists in one block of memory.
#[derive(Debug)]
pub(crate) struct Lists<T> {
    ends: Vec<u32>,
    entries: Vec<T>,
}

impl<T> Lists<T> {
    pub(crate) fn new(lists: Vec<Vec<T>>) -> Self {
        let mut out = Self { ends: Vec::with_capacity(lists.len()), entries: Vec::new() };
        for list in lists {
            out.entries.extend(list);
            out.ends.push(out.entries.len() as u32);
        }
        out
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.ends) + size_of_val(&*self.entries)
    }

    pub(crate) fn of(&self, number: u32) -> &[T] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.entries[start as usize..self.ends[number] as usize]
    }
}

type Graph<V> = Vec<Vec<(u32, V)>>;

/// The starts of each symbol; one step to the left corners; one step up a chain of units.
type Steps<V> = (Lists<Start<V>>, Graph<V>, Graph<V>);

struct Draft<'a, S: Semiring> {
    core: &'a Core,
    weights: &'a [S::Value],
    empty: &'a [S::Value],
    ends: Vec<S::Value>,
}

impl<S: Semiring> Draft<'_, S> {
    fn vanishes(&self, symbol: u32) -> S::Value {
        self.empty.get(symbol as usize).copied().unwrap_or(S::ZERO)
    }

    /// Computes `ends` from the back of each rule to its front.
    fn find_ends(&mut self) {
        let mut ends = vec![S::ZERO; self.core.symbols.len()];
        for dot in (0..ends.len()).rev() {
            let symbol = self.core.symbols[dot];
            ends[dot] = if symbol == END { S::ONE } else { S::mul(self.vanishes(symbol), ends[dot + 1]) };
        }
        self.ends = ends;
    }

    fn skips(&self, most: usize) -> Result<Lists<(u32, S::Value)>, Diagnostic> {
        let mut out = Lists { ends: Vec::with_capacity(self.core.symbols.len()), entries: Vec::new() };
        for dot in 0..self.core.symbols.len() {
            let mut weight = S::ONE;
            for (behind, &symbol) in self.core.symbols[dot..].iter().enumerate() {
                if self.core.may_be_something(symbol) {
                    out.entries.push(((dot + behind) as u32, weight));
                }
                if !self.core.may_be_empty(symbol) {
                    break;
                }
                weight = S::mul(weight, self.vanishes(symbol));
            }
            out.ends.push(out.entries.len() as u32);
            if out.entries.len() > most {
                let message = "the rules have too many symbols in a row that may be empty";
                return Err(Diagnostic::error(Span::default(), message).with_help("split the longest rules"));
            }
        }
        Ok(out)
    }

    fn starts(&self, skips: &Lists<(u32, S::Value)>) -> Steps<S::Value> {
        let core = self.core;
        let symbols = (core.nonterminals + core.terminals) as usize;
        let mut starts = vec![Vec::new(); symbols];
        let mut corners: Graph<S::Value> = vec![Vec::new(); core.nonterminals as usize];
        let mut units: Graph<S::Value> = vec![Vec::new(); core.nonterminals as usize];
        for (number, rule) in core.rules.iter().enumerate() {
            for &(dot, vanished) in skips.of(rule.first) {
                let symbol = core.symbols[dot as usize];
                let weight = S::mul(self.weights[number], vanished);
                let after = dot + 1;
                if core.is_terminal(symbol) || !skips.of(after).is_empty() {
                    starts[symbol as usize].push(Start { left: rule.left, dot: after, weight });
                }
                if !core.is_terminal(symbol) {
                    corners[rule.left as usize].push((symbol, weight));
                    let whole = S::mul(weight, self.ends[after as usize]);
                    if !S::is_zero(whole) {
                        units[symbol as usize].push((rule.left, whole));
                    }
                }
            }
        }
        (Lists::new(starts), merged::<S>(corners), merged::<S>(units))
    }
}

/// Computes the terminals that can begin a rule of each symbol.
fn firsts<V: Copy>(core: &Core, starts: &Lists<Start<V>>) -> Lists<(u32, V)> {
    let mut firsts = vec![Vec::new(); core.nonterminals as usize];
    for terminal in core.nonterminals..core.nonterminals + core.terminals {
        for start in starts.of(terminal) {
            firsts[start.left as usize].push((terminal, start.weight));
        }
    }
    Lists::new(firsts)
}

/// Merges parallel edges.
fn merged<S: Semiring>(mut graph: Graph<S::Value>) -> Graph<S::Value> {
    for row in &mut graph {
        row.sort_by_key(|edge| edge.0);
        row.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = S::add(kept.1, next.1);
            }
            same
        });
    }
    graph
}

fn unit_closure<S: Semiring>(
    steps: Graph<S::Value>,
    most: usize,
) -> Result<Lists<(u32, S::Value)>, Unsolved> {
    let count = steps.len();
    let closure = Closure::<S>::new(steps)?;
    let mut flow = closure.flow();
    let mut out = Lists { ends: Vec::with_capacity(count), entries: Vec::new() };
    for symbol in 0..count as u32 {
        out.entries.extend(closure.reach(&[(symbol, S::ONE)], &mut flow));
        out.ends.push(out.entries.len() as u32);
        if out.entries.len() > most {
            return Err(Unsolved::TooLarge(count));
        }
    }
    Ok(out)
}

/// Creates an error that names the loop and a rule on it.
fn complain(pcfg: &Pcfg, core: &Core, what: &str, unsolved: Unsolved) -> Diagnostic {
    let way = match unsolved {
        Unsolved::TooLarge(size) => {
            let message =
                format!("{size} symbols hang together by {what}, which is more than can be solved at once");
            return Diagnostic::error(Span::default(), message)
                .with_help("break the grammar's loops, or split it");
        }
        Unsolved::Loop(way) => way,
    };
    let name = |symbol: &u32| {
        if (*symbol as usize) < pcfg.nonterminals() {
            pcfg.name(crate::NonterminalId(*symbol))
        } else {
            "a pattern"
        }
    };
    let names: Vec<&str> = way.iter().map(name).collect();
    let on_it = |rule: &&crate::core::CoreRule| {
        let right = core.right(rule);
        way.windows(2).any(|step| {
            step == [rule.left, step[1]] && right.contains(&step[1])
                || step == [step[0], rule.left] && right.contains(&step[0])
        })
    };
    let rule = core.rules.iter().find(on_it).and_then(|rule| rule.source);
    let mut message = format!("the loop {} never ends: its {what} adds up to one or more", names.join(" → "));
    if let Some(rule) = rule {
        message.extend([", as in `", &pcfg.show_rule(rule), "`"]);
    }
    let span = rule.map_or(Span::default(), |rule| pcfg.rule(rule).span);
    Diagnostic::error(span, message)
        .with_help("give the alternatives that leave the loop a greater probability")
}
