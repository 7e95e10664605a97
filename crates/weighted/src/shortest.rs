//! The least number of symbols to the end of a sentence: the chart, evaluated with [`MinPlus`].
//!
//! Every symbol has a shortest text. An item still needs the shortest texts of the symbols after its dot, and then what
//! is needed by the item that waited for it in the column where it began. So the needs of a column follow from those of
//! the columns before it.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::chart::Chart;
use crate::core::{Core, END};
use crate::semiring::{MinPlus, Semiring};

/// The shortest texts of a grammar.
#[derive(Debug)]
pub(crate) struct Shortest<'a> {
    core: &'a Core,
    /// The least length of each symbol, terminals included.
    symbols: Vec<u64>,
    /// The least length of everything after each dot.
    rests: Vec<u64>,
}

impl<'a> Shortest<'a> {
    /// Computes the shortest texts. `length` returns the least length of a terminal.
    pub(crate) fn new(core: &'a Core, length: impl Fn(u32) -> u64) -> Self {
        let terminals = (0..core.terminals).map(length);
        let mut symbols = vec![MinPlus::NEVER; core.nonterminals as usize];
        symbols.extend(terminals);
        let mut users: Vec<Vec<u32>> = vec![Vec::new(); core.nonterminals as usize];
        for (number, rule) in core.rules.iter().enumerate() {
            for symbol in core.right(rule).iter().filter(|symbol| **symbol < core.nonterminals) {
                users[*symbol as usize].push(number as u32);
            }
        }
        // Lengths only decrease, and a rule is processed again when one of its parts has decreased.
        let mut work: VecDeque<u32> = (0..core.rules.len() as u32).collect();
        while let Some(number) = work.pop_front() {
            let rule = &core.rules[number as usize];
            let sum = core.right(rule).iter().fold(0, |sum, part| MinPlus::mul(sum, symbols[*part as usize]));
            if sum < symbols[rule.left as usize] {
                symbols[rule.left as usize] = sum;
                work.extend(&users[rule.left as usize]);
            }
        }
        let mut rests = vec![0; core.symbols.len()];
        for dot in (0..rests.len()).rev() {
            let symbol = core.symbols[dot];
            rests[dot] =
                if symbol == END { 0 } else { MinPlus::mul(symbols[symbol as usize], rests[dot + 1]) };
        }
        Self { core, symbols, rests }
    }

    /// Returns the distance from the last column of a chart to the end of a sentence.
    pub(crate) fn completion<S: Semiring>(&self, chart: &Chart<S>) -> u64 {
        let here = chart.position();
        if !S::is_zero(chart.last().sentence) {
            return 0;
        }
        let mut needs = Needs { shortest: self, chart, known: FxHashMap::default() };
        if here == 0 {
            return self.symbols[self.core.start as usize];
        }
        let items = &chart.last().items;
        let of_item = |dot: u32, origin: u32, needs: &mut Needs<'_, S>| {
            MinPlus::mul(self.rests[dot as usize], needs.behind(origin, self.core.left(dot)))
        };
        items.iter().fold(MinPlus::NEVER, |least, item| least.min(of_item(item.dot, item.origin, &mut needs)))
    }

    /// Returns the least that must follow a terminal read from column `at`.
    pub(crate) fn behind_terminal<S: Semiring>(&self, chart: &Chart<S>, at: u32, terminal: u32) -> u64 {
        let mut needs = Needs { shortest: self, chart, known: FxHashMap::default() };
        let mut least = MinPlus::NEVER;
        for item in chart.waiting(at, terminal) {
            let rest = self.rests[item.dot as usize + 1];
            least = least.min(MinPlus::mul(rest, needs.behind(item.origin, self.core.left(item.dot))));
        }
        for start in chart.tables.starts(terminal) {
            if chart.wanted(at, start.left).is_some() {
                let rest = self.rests[start.dot as usize];
                least = least.min(MinPlus::mul(rest, needs.behind(at, start.left)));
            }
        }
        least
    }
}

/// For columns and symbols, the least that must follow once the symbol that began there is complete.
struct Needs<'a, S: Semiring> {
    shortest: &'a Shortest<'a>,
    chart: &'a Chart<S>,
    known: FxHashMap<u32, FxHashMap<u32, u64>>,
}

impl<S: Semiring> Needs<'_, S> {
    /// Returns the need of a symbol. Earlier columns are computed first, because an item depends on the column where it
    /// began.
    fn behind(&mut self, column: u32, symbol: u32) -> u64 {
        let mut work = vec![column];
        while let Some(&at) = work.last() {
            let open = |item: &&crate::chart::Item<S::Value>| !self.known.contains_key(&item.origin);
            if self.known.contains_key(&at) {
                work.pop();
            } else if let Some(item) = self.chart.column(at).items.iter().find(open) {
                work.push(item.origin);
            } else {
                let column = self.column(at);
                self.known.insert(at, column);
                work.pop();
            }
        }
        self.known.get(&column).and_then(|needs| needs.get(&symbol)).copied().unwrap_or(MinPlus::NEVER)
    }

    /// Computes the needs of one column from those of the columns before: shortest paths up the left corners.
    fn column(&self, at: u32) -> FxHashMap<u32, u64> {
        let core = self.shortest.core;
        let mut needs: FxHashMap<u32, u64> = FxHashMap::default();
        let mut work: VecDeque<u32> = VecDeque::new();
        let offer = |needs: &mut FxHashMap<u32, u64>, work: &mut VecDeque<u32>, symbol: u32, need: u64| {
            let known = needs.entry(symbol).or_insert(MinPlus::NEVER);
            if need < *known {
                *known = need;
                work.push_back(symbol);
            }
        };
        if at == 0 {
            offer(&mut needs, &mut work, core.start, 0);
        }
        for item in &self.chart.column(at).items {
            let symbol = core.symbols[item.dot as usize];
            if !core.is_terminal(symbol) {
                let above = self.known.get(&item.origin).and_then(|known| known.get(&core.left(item.dot)));
                let need = MinPlus::mul(
                    self.shortest.rests[item.dot as usize + 1],
                    above.copied().unwrap_or(MinPlus::NEVER),
                );
                offer(&mut needs, &mut work, symbol, need);
            }
        }
        while let Some(symbol) = work.pop_front() {
            let need = needs.get(&symbol).copied().unwrap_or(MinPlus::NEVER);
            let firsts = core.rules_of(symbol).iter().map(|number| core.rules[*number as usize].first);
            for &(dot, _) in firsts.flat_map(|first| self.chart.tables.skips(first)) {
                let part = core.symbols[dot as usize];
                if !core.is_terminal(part) {
                    offer(
                        &mut needs,
                        &mut work,
                        part,
                        MinPlus::mul(need, self.shortest.rests[dot as usize + 1]),
                    );
                }
            }
        }
        needs
    }
}
