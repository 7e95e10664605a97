//! Earley's chart with weights, after Stolcke, column by column.
//!
//! An *item* (a rule with a dot, and the column where it began) is in the column up to which its part before the dot
//! has been read. It has two weights: *inner*, that of this part alone, and *forward*, that of everything from the
//! beginning of the text. For S → S a [.4] | a [.6]:
//!
//! ```text
//! column 0                column 1                    column 2
//!   wanted: S 1/(1−.4)      S → S·a  from 0             S → S·a  from 0
//!                           inner .4·.6, forward .4     inner .4·.4·.6, forward .16
//!   ─────── a ───────▶      complete: S from 0 (.6)  ── a ──▶  complete: S from 0 (.24)
//! ```
//!
//! # What is not stored
//!
//! *Predictions* are not items. A column stores how much each symbol is *wanted* ([`Column::want`]), with all left
//! recursion summed; a rule of a wanted symbol starts only when its first part has been found. So ten thousand words of
//! a lexicon cost nothing until one of them is read. *Complete* items are not kept either, and everything that vanishes
//! or is a chain of unit rules was summed in advance ([`Tables`]).
//!
//! # Order
//!
//! A symbol that is complete from column j to i consists of parts of which the last begins after j, except for chains
//! of units. So complete symbols are processed by descending origin, and each weight is final when it is used.
//!
//! # Shortcuts
//!
//! In A → a A | a every word completes an A from each column before it, which would be quadratic work. Where exactly
//! one item waits for a symbol and would be complete with it, the end of that chain is stored (Leo's idea, with the
//! weights multiplied), and completing takes one step. With these shortcuts the time is linear for the grammars that a
//! deterministic parser could read (LR-regular ones). A chart that must show its derivations does not use them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::closure::Flow;
use crate::core::Core;
use crate::semiring::Semiring;
use crate::tables::Tables;

/// A rule with a dot in the middle. The symbol after the dot can derive a nonempty text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<V> {
    pub(crate) dot: u32,
    /// The column where the rule began.
    pub(crate) origin: u32,
    /// The weight of everything from the beginning of the text.
    pub(crate) forward: V,
    /// The weight of the part before the dot.
    pub(crate) inner: V,
}

/// The state between two symbols of the input. It never changes, so forks share it.
#[derive(Debug)]
pub(crate) struct Column<S: Semiring> {
    /// Sorted by the symbol after the dot.
    pub(crate) items: Vec<Item<S::Value>>,
    /// The weight with which each symbol is about to be derived here; ascending by symbol.
    pub(crate) want: Vec<(u32, S::Value)>,
    shortcuts: Vec<(u32, Shortcut<S::Value>)>,
    /// The complete symbols, by origin and symbol, if the chart keeps them.
    pub(crate) complete: Vec<(u32, u32, S::Value)>,
    /// The terminals that end here, if the chart keeps them.
    pub(crate) scans: Vec<Scan<S::Value>>,
    /// The weight of the text up to here as a sentence.
    pub(crate) sentence: S::Value,
    /// The weight of all texts with this prefix.
    pub(crate) prefix: S::Value,
    /// The scale of the column: its weights are too great by a factor of e to this power.
    pub(crate) scale: f64,
}

impl<S: Semiring> Column<S> {
    /// Creates a column whose completion is deferred.
    fn owed(prefix: S::Value, scale: f64) -> Self {
        Self {
            items: Vec::new(),
            want: Vec::new(),
            shortcuts: Vec::new(),
            complete: Vec::new(),
            scans: Vec::new(),
            sentence: S::ZERO,
            prefix,
            scale,
        }
    }

    /// Returns the number of stored entries.
    fn size(&self) -> u64 {
        (self.items.len() + self.want.len() + self.complete.len()) as u64
    }
}

/// The final result of completing a symbol.
#[derive(Clone, Copy, Debug)]
struct Shortcut<V> {
    symbol: u32,
    origin: u32,
    factor: V,
}

/// A terminal that has been read: its origin, its symbol, and its weight.
pub(crate) type Scan<V> = (u32, u32, V);

/// The columns of a text, and work buffers.
#[derive(Clone, Debug)]
pub(crate) struct Chart<S: Semiring> {
    pub(crate) tables: Arc<Tables<S>>,
    pub(crate) columns: Vec<Arc<Column<S>>>,
    /// Whether complete symbols are kept, for derivations and training.
    keep: bool,
    /// The number of steps that may still be taken: moves of a dot, each with its immediate consequences.
    fuel: u64,
    /// The number of entries in all columns.
    size: u64,
    /// The greatest allowed number of entries.
    most: u64,
    /// Whether a column was refused because of a limit.
    pub(crate) is_exhausted: bool,
    /// Whether some weight was so small compared with the rest that it was lost.
    pub(crate) is_faint: bool,
    work: Work<S>,
}

#[derive(Clone, Debug)]
struct Work<S: Semiring> {
    flow: Flow<S>,
    items: FxHashMap<(u32, u32), u32>,
    agenda: BTreeMap<u32, Vec<(u32, S::Value)>>,
    full: Vec<S::Value>,
}

impl<S: Semiring> Chart<S> {
    pub(crate) fn new(tables: Arc<Tables<S>>, keep: bool) -> Self {
        let work = Work {
            flow: tables.corners.flow(),
            items: FxHashMap::default(),
            agenda: BTreeMap::new(),
            full: vec![S::ZERO; tables.core.nonterminals as usize],
        };
        let mut chart = Self {
            tables,
            columns: Vec::new(),
            keep,
            fuel: u64::MAX,
            size: 0,
            most: u64::MAX,
            is_exhausted: false,
            is_faint: false,
            work,
        };
        let start = chart.core().start;
        let sentence = chart.tables.empty[start as usize];
        let sources = if chart.core().nonempty[start as usize] { vec![(start, S::ONE)] } else { Vec::new() };
        let want = chart.tables.corners.reach(&sources, &mut chart.work.flow);
        chart.columns.push(Arc::new(Column {
            items: Vec::new(),
            want,
            shortcuts: Vec::new(),
            complete: Vec::new(),
            scans: Vec::new(),
            sentence,
            prefix: S::ONE,
            scale: 0.0,
        }));
        chart
    }

    pub(crate) fn core(&self) -> &Core {
        &self.tables.core
    }

    /// Sets the number of steps that may be taken from now on, and the number of entries that may be kept. A chart
    /// refuses a column only because of these limits.
    pub(crate) fn set_limits(&mut self, steps: u64, items: u64) {
        (self.fuel, self.most, self.is_exhausted) = (steps, items, false);
    }

    /// Goes back to a number of columns.
    pub(crate) fn truncate(&mut self, columns: usize) {
        let gone = self.columns.get(columns..).unwrap_or_default();
        self.size -= gone.iter().map(|column| column.size()).sum::<u64>();
        self.columns.truncate(columns);
    }

    /// Returns how many symbols have been read.
    pub(crate) fn position(&self) -> u32 {
        self.columns.len() as u32 - 1
    }

    pub(crate) fn column(&self, at: u32) -> &Column<S> {
        &self.columns[at as usize]
    }

    pub(crate) fn last(&self) -> &Column<S> {
        self.column(self.position())
    }

    /// Returns the items of a column that wait for a symbol.
    pub(crate) fn waiting(&self, at: u32, symbol: u32) -> &[Item<S::Value>] {
        let items = &self.column(at).items;
        let behind = |item: &Item<S::Value>| self.tables.core.symbols[item.dot as usize];
        let first = items.partition_point(|item| behind(item) < symbol);
        let count = items[first..].partition_point(|item| behind(item) == symbol);
        &items[first..first + count]
    }

    /// Returns how much a symbol with rules is wanted in a column.
    pub(crate) fn wanted(&self, at: u32, symbol: u32) -> Option<S::Value> {
        let want = &self.column(at).want;
        want.binary_search_by_key(&symbol, |entry| entry.0).ok().map(|found| want[found].1)
    }

    /// Returns the forward weight of everything that can continue with this terminal.
    pub(crate) fn mass(&self, at: u32, terminal: u32) -> S::Value {
        let waiting = self.waiting(at, terminal).iter().fold(S::ZERO, |sum, item| S::add(sum, item.forward));
        self.tables.starts(terminal).iter().fold(waiting, |sum, start| match self.wanted(at, start.left) {
            Some(want) => S::add(sum, S::mul(want, start.weight)),
            None => sum,
        })
    }

    /// Returns the forward weight of every terminal that can come next, ascending by terminal.
    pub(crate) fn masses(&self, at: u32) -> Vec<(u32, S::Value)> {
        let core = self.core();
        let mut found: Vec<(u32, S::Value)> = Vec::new();
        for item in &self.column(at).items {
            let symbol = core.symbols[item.dot as usize];
            if core.is_terminal(symbol) {
                found.push((symbol, item.forward));
            }
        }
        for (left, want) in &self.column(at).want {
            let first = |&(terminal, weight): &(u32, S::Value)| (terminal, S::mul(*want, weight));
            found.extend(self.tables.first_terminals(*left).iter().map(first));
        }
        // A few sorted lists: the stable sort only has to merge them.
        found.sort_by_key(|entry| entry.0);
        found.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = S::add(kept.1, next.1);
            }
            same
        });
        found.retain(|entry| !S::is_zero(entry.1));
        found
    }

    /// Adds a column after these terminals. `scale` is that of the new column. Returns `false` and adds nothing if the
    /// steps run out before it is complete, or if there would be too many entries.
    pub(crate) fn push(&mut self, scans: &[Scan<S::Value>], prefix: S::Value, scale: f64) -> bool {
        let mut step = Step { new: Vec::new(), complete: Vec::new(), sentence: S::ZERO };
        self.work.items.clear();
        self.work.agenda.clear();
        for &(origin, symbol, weight) in scans {
            self.work.agenda.entry(origin).or_default().push((symbol, weight));
        }
        while let Some((origin, found)) = self.work.agenda.pop_last() {
            self.complete(origin, found, &mut step);
            if self.fuel == 0 || self.size + step.new.len() as u64 > self.most {
                self.is_exhausted = true;
                return false;
            }
        }
        let Step { new, mut complete, sentence } = step;
        complete.sort_unstable_by_key(|entry| (entry.0, entry.1));
        let mut column = self.freeze(new, sentence, prefix, scale);
        if self.keep {
            (column.complete, column.scans) = (complete, scans.to_vec());
        }
        self.size += column.size();
        self.columns.push(Arc::new(column));
        let shortcuts = if self.keep { Vec::new() } else { self.shortcuts() };
        if let Some(last) = self.columns.last_mut().and_then(Arc::get_mut) {
            last.shortcuts = shortcuts;
        }
        true
    }

    /// Adds a column of which only the weight is known. Its completion is deferred ("owed").
    pub(crate) fn push_owed(&mut self, prefix: S::Value, scale: f64) {
        self.columns.push(Arc::new(Column::owed(prefix, scale)));
    }

    /// Completes the last column, which was deferred, or leaves it deferred; see [`push`](Self::push).
    pub(crate) fn settle(&mut self, scans: &[Scan<S::Value>]) -> bool {
        let Some(owed) = self.columns.pop() else { return false };
        let is_settled = self.push(scans, owed.prefix, owed.scale);
        if !is_settled {
            self.columns.push(owed);
        }
        is_settled
    }

    /// Processes everything that is complete from one column to the new one.
    fn complete(&mut self, origin: u32, found: Vec<(u32, S::Value)>, step: &mut Step<S>) {
        let tables = Arc::clone(&self.tables);
        let mut whole = Vec::new();
        for (symbol, weight) in found {
            if tables.core.is_terminal(symbol) {
                self.consume(origin, symbol, weight, Some(&mut whole), step);
            } else {
                whole.push((symbol, weight));
            }
        }
        // Chains of unit rules, all at once.
        let mut touched = Vec::new();
        for (symbol, weight) in whole {
            for &(upper, factor) in tables.units(symbol) {
                let sum = &mut self.work.full[upper as usize];
                if S::is_zero(*sum) {
                    touched.push(upper);
                }
                *sum = S::add(*sum, S::mul(weight, factor));
            }
        }
        touched.sort_unstable();
        for symbol in touched {
            let weight = std::mem::replace(&mut self.work.full[symbol as usize], S::ZERO);
            if S::is_zero(weight) || self.wanted(origin, symbol).is_none() {
                continue;
            }
            if self.keep {
                step.complete.push((origin, symbol, weight));
            }
            if origin == 0 && symbol == tables.core.start {
                step.sentence = S::add(step.sentence, weight);
            }
            self.consume(origin, symbol, weight, None, step);
        }
    }

    /// Moves every dot that waits for the symbol at its origin. Rules that consist only of a terminal are added to
    /// `whole`; those that consist of one other symbol are chains of units, which were processed before.
    fn consume(
        &mut self,
        at: u32,
        symbol: u32,
        weight: S::Value,
        mut whole: Option<&mut Vec<(u32, S::Value)>>,
        step: &mut Step<S>,
    ) {
        let column = Arc::clone(&self.columns[at as usize]);
        if let Ok(found) = column.shortcuts.binary_search_by_key(&symbol, |entry| entry.0) {
            let Shortcut { symbol, origin, factor } = column.shortcuts[found].1;
            self.work.agenda.entry(origin).or_default().push((symbol, S::mul(factor, weight)));
            return;
        }
        let tables = Arc::clone(&self.tables);
        let behind = |item: &Item<S::Value>| tables.core.symbols[item.dot as usize];
        let first = column.items.partition_point(|item| behind(item) < symbol);
        for item in column.items[first..].iter().take_while(|item| behind(item) == symbol) {
            let (forward, inner) = (S::mul(item.forward, weight), S::mul(item.inner, weight));
            self.advance(item.dot + 1, item.origin, forward, inner, step);
            let end = tables.ends[item.dot as usize + 1];
            if !S::is_zero(end) {
                let done = (tables.core.left(item.dot), S::mul(inner, end));
                self.work.agenda.entry(item.origin).or_default().push(done);
            }
        }
        for start in tables.starts(symbol) {
            let Some(want) = self.wanted(at, start.left) else { continue };
            let inner = S::mul(start.weight, weight);
            self.advance(start.dot, at, S::mul(want, inner), inner, step);
            if let Some(whole) = &mut whole {
                let end = tables.ends[start.dot as usize];
                if !S::is_zero(end) {
                    whole.push((start.left, S::mul(inner, end)));
                }
            }
        }
    }

    /// Adds the items at a dot and after the symbols that vanish there.
    fn advance(&mut self, dot: u32, origin: u32, forward: S::Value, inner: S::Value, step: &mut Step<S>) {
        self.fuel = self.fuel.saturating_sub(1);
        for &(dot, factor) in self.tables.skips(dot) {
            let (forward, inner) = (S::mul(forward, factor), S::mul(inner, factor));
            self.is_faint |= S::is_faint(forward) || S::is_faint(inner);
            if S::is_zero(inner) {
                continue;
            }
            let at = *self.work.items.entry((dot, origin)).or_insert(step.new.len() as u32) as usize;
            match step.new.get_mut(at) {
                None => step.new.push(Item { dot, origin, forward, inner }),
                Some(item) => {
                    item.forward = S::add(item.forward, forward);
                    item.inner = S::add(item.inner, inner);
                }
            }
        }
    }

    fn freeze(
        &mut self,
        mut items: Vec<Item<S::Value>>,
        sentence: S::Value,
        prefix: S::Value,
        scale: f64,
    ) -> Column<S> {
        let core = &self.tables.core;
        items.sort_unstable_by_key(|item| (core.symbols[item.dot as usize], item.dot, item.origin));
        let mut sources: Vec<(u32, S::Value)> = Vec::new();
        for item in &items {
            let symbol = core.symbols[item.dot as usize];
            match sources.last_mut() {
                _ if core.is_terminal(symbol) => break,
                Some(last) if last.0 == symbol => last.1 = S::add(last.1, item.forward),
                _ => sources.push((symbol, item.forward)),
            }
        }
        let want = self.tables.corners.reach(&sources, &mut self.work.flow);
        Column {
            items,
            want,
            shortcuts: Vec::new(),
            complete: Vec::new(),
            scans: Vec::new(),
            sentence,
            prefix,
            scale,
        }
    }

    /// Computes the shortcuts of the last column.
    fn shortcuts(&self) -> Vec<(u32, Shortcut<S::Value>)> {
        let (tables, here) = (&*self.tables, self.position());
        let items = &self.last().items;
        let symbol_of = |item: &Item<S::Value>| tables.core.symbols[item.dot as usize];
        let mut out = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let symbol = symbol_of(item);
            if tables.core.is_terminal(symbol) {
                break;
            }
            let alone = at.checked_sub(1).is_none_or(|before| symbol_of(&items[before]) != symbol)
                && items.get(at + 1).is_none_or(|next| symbol_of(next) != symbol);
            let end = tables.ends[item.dot as usize + 1];
            if !alone
                || !tables.skips(item.dot + 1).is_empty()
                || S::is_zero(end)
                || self.begins(here, symbol)
            {
                continue;
            }
            let first = Shortcut {
                symbol: tables.core.left(item.dot),
                origin: item.origin,
                factor: S::mul(item.inner, end),
            };
            out.push((symbol, self.follow(first)));
        }
        out
    }

    /// Extends a shortcut as long as there is only one way.
    fn follow(&self, from: Shortcut<S::Value>) -> Shortcut<S::Value> {
        let mut only = None;
        for &(upper, factor) in self.tables.units(from.symbol) {
            let root = from.origin == 0 && upper == self.tables.core.start;
            if root || !self.waiting(from.origin, upper).is_empty() || self.begins(from.origin, upper) {
                if root || only.is_some() {
                    return from;
                }
                only = Some((upper, factor));
            }
        }
        let shortcuts = &self.column(from.origin).shortcuts;
        let next = only.and_then(|(upper, factor)| {
            let found = shortcuts.binary_search_by_key(&upper, |entry| entry.0).ok()?;
            Some((shortcuts[found].1, factor))
        });
        next.map_or(from, |(next, factor)| Shortcut {
            factor: S::mul(S::mul(from.factor, factor), next.factor),
            ..next
        })
    }

    /// Checks whether a wanted rule can begin with the symbol in a column.
    fn begins(&self, at: u32, symbol: u32) -> bool {
        self.tables.starts(symbol).iter().any(|start| self.wanted(at, start.left).is_some())
    }
}

/// A column under construction.
struct Step<S: Semiring> {
    new: Vec<Item<S::Value>>,
    complete: Vec<(u32, u32, S::Value)>,
    sentence: S::Value,
}

#[cfg(test)]
mod tests {
    use crate::{Options, Parser, Pcfg, Real};

    /// After any number of words one shortcut leads all the way back, so completing takes one step and not one for each
    /// column.
    #[test]
    fn right_recursion_is_one_step_deep() {
        for source in ["S -> a S [0.4] | a [0.6]", "S -> a T [0.4] | a [0.6]\nT -> U\nU -> S"] {
            let grammar = Pcfg::parse(source, &Options::default()).unwrap();
            let mut parser = Parser::<Real>::new(&grammar).unwrap();
            for _ in 0..50 {
                assert!(parser.step_word("a"));
                let last = parser.chart.last();
                assert_eq!((last.items.len(), last.shortcuts.len()), (1, 1), "{source}");
                assert_eq!(last.shortcuts[0].1.origin, 0, "{source}");
            }
            assert!((parser.sentence_logprob() - (0.6f64.ln() + 49.0 * 0.4f64.ln())).abs() < 1e-10);
        }
    }

    /// Two items wait for the same symbol, so no shortcut may skip them.
    #[test]
    fn there_is_no_shortcut_where_two_wait() {
        let grammar = Pcfg::parse("S -> a S [0.3] | a S b [0.3] | a [0.4]", &Options::default()).unwrap();
        let mut parser = Parser::<Real>::new(&grammar).unwrap();
        assert!(parser.step_word("a") && parser.step_word("a"));
        assert!(parser.chart.last().shortcuts.is_empty());
    }
}
