//! A parser that reads a text byte by byte, for terminals of any shape.
//!
//! A terminal may have many bytes, and several terminals may be partially read at once: after `al` in a grammar of
//! names there are `"alice"`, `"al"` and `/[a-z]+/`, the second of them complete. Each column of the chart in which
//! terminals can begin starts *runs*, and every byte moves all runs. When a run can stop, its terminal has been read
//! from the column where it began to the current one.
//!
//! ```text
//! all literals, as a tree:      a l ┬ (al)                  run after `a`:   the edge `al`, 1 byte of it read
//!                                   └ i c e (alice)         run after `al`:  its end; "al" has been read
//!                               b o b (bob)
//! ```
//! The literals that begin in a column form one run: a position in a tree that all columns share ([`Literals`]). For
//! each symbol the tree knows the weight of its rules that begin with the literals below a node. Multiplied with how
//! much the column wants the symbol, this is the weight of the run. So a lexicon is never enumerated, and costs one
//! step down the tree for each byte.
//!
//! Most time goes into completing a column, and that is needed only if a terminal begins there. Between the letters of
//! a word none does, although `al` has ended within `alice`. So lookahead skims: the completion of a column is deferred
//! ("owed") until a byte comes that some terminal begins with, and most columns are never completed.

use std::sync::{Arc, OnceLock};

use maskwright_automata::{ByteSet, Dfa, DfaState};
use maskwright_grammar::{Diagnostic, Span};

use crate::chart::{Chart, Scan};
use crate::literals::Literals;
use crate::pcfg::{Pcfg, TerminalId};
use crate::semiring::{MinPlus, Semiring};
use crate::shortest::Shortest;
use crate::tables::Tables;
use crate::terminal::{Pattern, Terminal};

/// A parser over bytes. Like [`Parser`](crate::Parser), it supports rollback and can be cloned.
///
/// ```
/// use maskwright_weighted::{ByteParser, Options, Pcfg, Real};
/// let grammar = Pcfg::parse("S -> al [0.2] | alice [0.3] | bob [0.5]", &Options::default()).unwrap();
/// let mut parser = ByteParser::<Real>::new(&grammar).unwrap();
/// assert!(parser.step_bytes(b"al"));
/// assert!((parser.prefix_logprob().exp() - 0.5).abs() < 1e-12);
/// assert!((parser.sentence_logprob().exp() - 0.2).abs() < 1e-12);
/// assert!((parser.peek(b'i').exp() - 0.3).abs() < 1e-12);
/// assert!(!parser.step(b'b'));
/// ```
#[derive(Clone, Debug)]
pub struct ByteParser<S: Semiring> {
    pub(crate) chart: Chart<S>,
    alphabet: Arc<Alphabet<S>>,
    frames: Vec<Arc<Frame<S>>>,
}

/// A partially read terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The terminal.
    pub terminal: TerminalId,
    /// The number of bytes read.
    pub read: usize,
    /// The number of bytes in all; `None` for a pattern.
    pub of: Option<usize>,
}

/// The terminals, prepared for reading byte by byte.
#[derive(Debug)]
struct Alphabet<S: Semiring> {
    literals: Literals<S>,
    patterns: Vec<(u32, Pattern, Distances)>,
    /// For each symbol with rules, the patterns that can begin one of them, with the weights of those rules.
    first_patterns: Vec<Vec<(u32, S::Value)>>,
    /// The bytes that terminals begin with.
    begins: ByteSet,
    /// The position of each terminal in one of the two.
    place: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Literal(u32),
    Pattern(u32),
}

/// The number of bytes from each state to the nearest accepting one.
type Distances = Vec<u64>;

/// The runs between two bytes.
#[derive(Clone, Debug)]
struct Frame<S: Semiring> {
    /// The terminals that can begin here, computed on first use.
    open: OnceLock<Open<S::Value>>,
    /// The runs that began before and can continue.
    runs: Vec<Run<S::Value>>,
    /// The terminals that end here, if the completion of the column is deferred.
    owed: Option<Vec<Scan<S::Value>>>,
}

/// The terminals that can begin in a column, except literals at the beginning of wanted symbols; with forward weights.
#[derive(Clone, Debug)]
struct Open<V> {
    /// Literals in the middle of rules, by position in the alphabet, ascending.
    waiting: Vec<(u32, V)>,
    patterns: Vec<(u32, V)>,
}

#[derive(Clone, Copy, Debug)]
struct Run<V> {
    /// The column where it began.
    origin: u32,
    /// The weight of the bytes read since.
    weight: V,
    /// The forward weight at its beginning.
    mass: V,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// All literals below a node of the tree.
    Literals {
        node: u32,
        depth: u32,
    },
    Pattern {
        pattern: u32,
        state: DfaState,
        read: u32,
    },
}

impl<S: Semiring> ByteParser<S> {
    /// Creates a parser at the beginning of a text. An error names a loop whose weights do not converge.
    pub fn new(pcfg: &Pcfg) -> Result<Self, Diagnostic> {
        Self::with(pcfg, false)
    }

    /// Creates a parser that keeps everything needed to show derivations.
    pub(crate) fn keeping(pcfg: &Pcfg) -> Result<Self, Diagnostic> {
        Self::with(pcfg, true)
    }

    fn with(pcfg: &Pcfg, keep: bool) -> Result<Self, Diagnostic> {
        let tables = Arc::new(Tables::new(pcfg)?);
        let alphabet = Arc::new(Alphabet::new(pcfg, &tables)?);
        let first = Arc::new(Frame { open: OnceLock::new(), runs: Vec::new(), owed: None });
        Ok(Self { chart: Chart::new(tables, keep), alphabet, frames: vec![first] })
    }

    /// Reads a byte. Returns `false` and changes nothing if it cannot come next.
    pub fn step(&mut self, byte: u8) -> bool {
        self.skim(byte) && (self.settle() || self.undo())
    }

    /// Reads a byte like [`step`](Self::step), but defers the completion of the column. Until the column is
    /// [completed](Self::settle) or taken back, only the next byte may be queried.
    pub(crate) fn skim(&mut self, byte: u8) -> bool {
        if self.alphabet.begins.contains(byte) && !self.settle() {
            return false;
        }
        let mut moved = Vec::new();
        self.move_all(byte, |run| moved.push(run));
        let mut prefix = moved.iter().fold(S::ZERO, |sum, run| S::add(sum, S::mul(run.weight, run.mass)));
        let is_faint =
            |run: &Run<S::Value>| S::is_faint(run.weight) || S::is_faint(S::mul(run.weight, run.mass));
        self.chart.is_faint |= moved.iter().any(is_faint);
        if S::is_zero(prefix) {
            return false;
        }
        let mut scale = self.chart.last().scale;
        let mut factor = S::ONE;
        if let Some((by, log)) = S::rescale(prefix) {
            factor = by;
            prefix = S::mul(prefix, by);
            scale += log;
        }
        let mut scans: Vec<Scan<S::Value>> = Vec::new();
        for run in &mut moved {
            run.weight = S::mul(run.weight, factor);
            scans.extend(self.ended(run));
        }
        moved.retain(|run| self.goes_on(run));
        self.chart.push_owed(prefix, scale);
        self.frames.push(Arc::new(Frame { open: OnceLock::new(), runs: moved, owed: Some(scans) }));
        true
    }

    /// Completes the column, if that is deferred. Returns `false` and changes nothing if a limit prevents it.
    fn settle(&mut self) -> bool {
        let Some(frame) = self.frames.last_mut().filter(|frame| frame.owed.is_some()) else { return true };
        let frame = Arc::make_mut(frame);
        let Some(scans) = frame.owed.take() else { return true };
        let is_settled = self.chart.settle(&scans);
        if is_settled {
            frame.open = OnceLock::new();
        } else {
            frame.owed = Some(scans);
        }
        is_settled
    }

    /// Takes back a byte that could not be read.
    fn undo(&mut self) -> bool {
        self.rollback(1);
        false
    }

    /// Like [`peek`](Self::peek), after bytes that were skimmed.
    pub(crate) fn peek_on(&mut self, byte: u8) -> f64 {
        if self.alphabet.begins.contains(byte) && !self.settle() {
            return f64::NEG_INFINITY;
        }
        self.peek(byte)
    }

    /// Reads bytes, all of them or none.
    pub fn step_bytes(&mut self, bytes: &[u8]) -> bool {
        let read = bytes.iter().take_while(|byte| self.step(**byte)).count();
        if read < bytes.len() {
            self.rollback(read);
        }
        read == bytes.len()
    }

    /// See [`Chart::set_limits`].
    pub(crate) fn set_limits(&mut self, steps: u64, items: u64) {
        self.chart.set_limits(steps, items);
    }

    /// Checks whether a byte was refused because of a limit.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.chart.is_exhausted
    }

    /// Checks whether some weight was so small compared with the rest that it was lost.
    pub(crate) fn is_faint(&self) -> bool {
        self.chart.is_faint
    }

    /// Returns the memory in bytes, approximately, without what it has read.
    pub(crate) fn heap_bytes(&self) -> usize {
        let patterns = self.alphabet.patterns.iter();
        let patterns = patterns.map(|(_, pattern, far)| pattern.dfa().memory() + size_of_val(&**far));
        self.chart.tables.heap_bytes() + self.alphabet.literals.heap_bytes() + patterns.sum::<usize>()
    }

    /// Reads a text, all of it or the longest possible prefix, in at most `steps` steps; more are an error. Calls
    /// `told` with the prefix probability after each byte, and returns whether the grammar derives the text.
    ///
    /// ```
    /// use maskwright_weighted::{ByteParser, Options, Pcfg, Real};
    /// let grammar = Pcfg::parse("S -> ab [0.25] | abc [0.25] | b [0.5]", &Options::default()).unwrap();
    /// let (mut parser, mut prefixes) = (ByteParser::<Real>::new(&grammar).unwrap(), Vec::new());
    /// assert!(parser.read_within(b"ab", 100, |prefix| prefixes.push(prefix.exp())).unwrap());
    /// assert!(prefixes.iter().all(|prefix| (prefix - 0.5).abs() < 1e-12));
    /// ```
    pub fn read_within(
        &mut self,
        text: &[u8],
        steps: u64,
        mut told: impl FnMut(f64),
    ) -> Result<bool, Diagnostic> {
        self.chart.set_limits(steps, steps);
        let mut is_read = true;
        for byte in text {
            is_read = is_read && self.step(*byte);
            if is_read {
                told(self.prefix_logprob());
            }
        }
        if self.chart.is_exhausted {
            let message = format!("reading {} bytes takes more than {steps} steps", text.len());
            return Err(Diagnostic::error(Span::default(), message)
                .with_help("allow more of them, shorten the text, or make the grammar less ambiguous"));
        }
        Ok(is_read && self.accepted())
    }

    /// Returns what [`prefix_logprob`](Self::prefix_logprob) would be after one more byte; minus infinity if it cannot
    /// come. Reads nothing, which is much faster.
    pub fn peek(&self, byte: u8) -> f64 {
        let mut prefix = S::ZERO;
        self.move_all(byte, |run| prefix = S::add(prefix, S::mul(run.weight, run.mass)));
        S::log(prefix) - self.chart.last().scale
    }

    /// Calls `found` with all runs after one more byte, including those that begin here.
    fn move_all(&self, byte: u8, mut found: impl FnMut(Run<S::Value>)) {
        let here = self.chart.position();
        let open = self.open(here);
        for run in &self.frames[here as usize].runs {
            if let Some(run) = self.move_run(run, byte) {
                found(run);
            }
        }
        let what = What::Literals { node: Literals::<S>::ROOT, depth: 0 };
        let fresh = Run { origin: here, weight: S::ONE, mass: S::ZERO, what };
        if let Some(run) = self.move_run(&fresh, byte) {
            found(run);
        }
        for &(pattern, mass) in &open.patterns {
            let (_, known, _) = &self.alphabet.patterns[pattern as usize];
            let state = known.dfa().next(known.dfa().start(), byte);
            if state != Dfa::DEAD {
                let weight = S::mul(S::letter(), S::weight(known.of_first()));
                found(Run { origin: here, weight, mass, what: What::Pattern { pattern, state, read: 1 } });
            }
        }
    }

    fn move_run(&self, run: &Run<S::Value>, byte: u8) -> Option<Run<S::Value>> {
        match run.what {
            What::Literals { node, depth } => {
                let next = self.alphabet.literals.step(node, depth, byte)?;
                // On an edge of the tree nothing branches, so the weight stays.
                let stays = next == node && depth > 0;
                let mass = if stays { run.mass } else { self.mass(run.origin, next) };
                let what = What::Literals { node: next, depth: depth + 1 };
                let weight = S::mul(run.weight, S::letter());
                (!S::is_zero(mass)).then_some(Run { weight, mass, what, ..*run })
            }
            What::Pattern { pattern, state, read } => {
                let (_, known, _) = &self.alphabet.patterns[pattern as usize];
                let next = known.dfa().next(state, byte);
                if next == Dfa::DEAD {
                    return None;
                }
                let weight = S::mul(S::mul(run.weight, S::letter()), S::weight(known.of_byte(state)));
                Some(Run { weight, what: What::Pattern { pattern, state: next, read: read + 1 }, ..*run })
            }
        }
    }

    /// Returns the forward weight of the literals below a node that begin at a column.
    fn mass(&self, origin: u32, node: u32) -> S::Value {
        let literals = &self.alphabet.literals;
        let (low, high) = literals.range(node);
        let waiting = &self.open(origin).waiting;
        let first = waiting.partition_point(|entry| entry.0 < low);
        let waiting = waiting[first..].iter().take_while(|entry| entry.0 < high);
        let sum = waiting.fold(S::ZERO, |sum, entry| S::add(sum, entry.1));
        S::add(sum, literals.mass(node, &self.chart.column(origin).want))
    }

    /// Returns the terminal that a run has just read, if it has.
    fn ended(&self, run: &Run<S::Value>) -> Option<Scan<S::Value>> {
        match run.what {
            What::Literals { node, depth } => {
                let symbol = self.alphabet.literals.ended(node, depth)?;
                Some((run.origin, symbol, run.weight))
            }
            What::Pattern { pattern, state, .. } => {
                let (symbol, known, _) = &self.alphabet.patterns[pattern as usize];
                let stop = S::weight(known.of_stop(state));
                (!S::is_zero(stop)).then(|| (run.origin, *symbol, S::mul(run.weight, stop)))
            }
        }
    }

    /// Checks whether a run can continue.
    fn goes_on(&self, run: &Run<S::Value>) -> bool {
        match run.what {
            What::Literals { node, depth } => self.alphabet.literals.goes_on(node, depth),
            What::Pattern { pattern, state, .. } => self.alphabet.patterns[pattern as usize].1.goes_on(state),
        }
    }

    fn open(&self, at: u32) -> &Open<S::Value> {
        self.frames[at as usize].open.get_or_init(|| {
            let (core, column) = (self.chart.core(), self.chart.column(at));
            let mut open = Open { waiting: Vec::new(), patterns: Vec::new() };
            let first =
                column.items.partition_point(|item| !core.is_terminal(core.symbols[item.dot as usize]));
            for item in &column.items[first..] {
                let symbol = core.symbols[item.dot as usize];
                match self.alphabet.place[core.terminal_of(symbol).0 as usize] {
                    Place::Literal(rank) => open.waiting.push((rank, item.forward)),
                    Place::Pattern(number) => open.patterns.push((number, item.forward)),
                }
            }
            for (left, want) in &column.want {
                let firsts = &self.alphabet.first_patterns[*left as usize];
                open.patterns.extend(firsts.iter().map(|(number, weight)| (*number, S::mul(*want, *weight))));
            }
            open.waiting.sort_by_key(|entry| entry.0);
            open.patterns.sort_by_key(|entry| entry.0);
            open.patterns.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 = S::add(kept.1, next.1);
                }
                same
            });
            open.patterns.retain(|entry| !S::is_zero(entry.1));
            open
        })
    }

    /// Returns the literals of a run that its column can begin, by position in the alphabet.
    fn literals_of(&self, run: &Run<S::Value>) -> Vec<u32> {
        let What::Literals { node, depth } = run.what else { return Vec::new() };
        let literals = &self.alphabet.literals;
        let (low, high) = literals.range(node);
        let core = self.chart.core();
        let is_open = |rank: &u32| {
            let (bytes, symbol) = literals.literal(*rank);
            let is_behind = bytes.len() > depth as usize;
            is_behind && core.is_terminal(symbol) && !S::is_zero(self.chart.mass(run.origin, symbol))
        };
        (low..high).filter(is_open).collect()
    }

    /// Checks whether the bytes read so far are a sentence.
    pub fn accepted(&self) -> bool {
        !S::is_zero(self.chart.last().sentence)
    }

    /// Returns the logarithm of the weight of all texts with this prefix.
    pub fn prefix_logprob(&self) -> f64 {
        S::log(self.chart.last().prefix) - self.chart.last().scale
    }

    /// Returns the logarithm of the weight of the bytes read so far as a sentence; minus infinity if they are none.
    pub fn sentence_logprob(&self) -> f64 {
        S::log(self.chart.last().sentence) - self.chart.last().scale
    }

    /// Returns how many bytes have been read.
    pub fn position(&self) -> usize {
        self.chart.position() as usize
    }

    /// Takes back the last bytes, at most all of them.
    pub fn rollback(&mut self, bytes: usize) {
        let kept = self.position().saturating_sub(bytes) + 1;
        self.chart.truncate(kept);
        self.frames.truncate(kept);
    }

    /// Goes back to the beginning.
    pub fn reset(&mut self) {
        self.rollback(self.position());
    }

    /// Returns an independent parser at the same position.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// Returns the terminals that can begin here, ascending by number.
    pub fn allowed_terminals(&self) -> Vec<TerminalId> {
        let core = self.chart.core();
        self.chart.masses(self.chart.position()).iter().map(|entry| core.terminal_of(entry.0)).collect()
    }

    /// Returns the partially read terminals that can continue.
    pub fn partial_matches(&self) -> Vec<Partial> {
        let mut out = Vec::new();
        for run in &self.frames[self.position()].runs {
            match run.what {
                What::Literals { depth, .. } => {
                    for rank in self.literals_of(run) {
                        let (bytes, symbol) = self.alphabet.literals.literal(rank);
                        let terminal = self.chart.core().terminal_of(symbol);
                        out.push(Partial { terminal, read: depth as usize, of: Some(bytes.len()) });
                    }
                }
                What::Pattern { pattern, read, .. } => {
                    let terminal = self.chart.core().terminal_of(self.alphabet.patterns[pattern as usize].0);
                    out.push(Partial { terminal, read: read as usize, of: None });
                }
            }
        }
        out
    }

    /// Returns the least number of bytes that complete a sentence from here.
    pub fn shortest_completion(&self) -> u64 {
        if self.accepted() {
            return 0;
        }
        let shortest = Shortest::new(self.chart.core(), |terminal| self.alphabet.shortest(terminal));
        let mut least = shortest.completion(&self.chart);
        for run in &self.frames[self.position()].runs {
            let mut offer = |symbol: u32, rest: u64| {
                least =
                    least.min(MinPlus::mul(rest, shortest.behind_terminal(&self.chart, run.origin, symbol)));
            };
            match run.what {
                What::Literals { depth, .. } => {
                    for rank in self.literals_of(run) {
                        let (bytes, symbol) = self.alphabet.literals.literal(rank);
                        offer(symbol, bytes.len() as u64 - u64::from(depth));
                    }
                }
                What::Pattern { pattern, state, .. } => {
                    let (symbol, _, distances) = &self.alphabet.patterns[pattern as usize];
                    offer(*symbol, distances[state.index()]);
                }
            }
        }
        least
    }
}

impl<S: Semiring> Alphabet<S> {
    fn new(pcfg: &Pcfg, tables: &Tables<S>) -> Result<Self, Diagnostic> {
        let nonterminals = tables.core.nonterminals;
        let (mut literals, mut patterns) = (Vec::new(), Vec::new());
        let mut place = Vec::new();
        for (symbol, terminal) in (nonterminals..).zip(pcfg.terminals()) {
            match terminal {
                Terminal::Literal(bytes) => {
                    place.push(Place::Literal(0));
                    literals.push((bytes.clone(), symbol));
                }
                Terminal::Pattern(pattern) => {
                    place.push(Place::Pattern(patterns.len() as u32));
                    patterns.push((symbol, pattern.clone(), distances(pattern.dfa())));
                }
            }
        }
        let literals = Literals::new(literals, tables, pcfg.most_entries())?;
        for (rank, symbol) in literals.symbols() {
            place[(symbol - nonterminals) as usize] = Place::Literal(rank);
        }
        let mut first_patterns = vec![Vec::new(); nonterminals as usize];
        for (number, (symbol, ..)) in (0..).zip(&patterns) {
            for start in tables.starts(*symbol) {
                first_patterns[start.left as usize].push((number, start.weight));
            }
        }
        let mut begins: ByteSet =
            literals.symbols().filter_map(|(rank, _)| literals.literal(rank).0.first().copied()).collect();
        for (_, pattern, _) in &patterns {
            let edges = pattern.dfa().edges(pattern.dfa().start());
            begins = edges.into_iter().fold(begins, |begins, (bytes, _)| begins.union(bytes));
        }
        Ok(Self { literals, patterns, first_patterns, begins, place })
    }

    /// Returns the least length of a nonempty text of a terminal.
    fn shortest(&self, terminal: u32) -> u64 {
        match self.place[terminal as usize] {
            Place::Literal(rank) => self.literals.literal(rank).0.len() as u64,
            Place::Pattern(number) => {
                let (_, pattern, distances) = &self.patterns[number as usize];
                let edges = pattern.dfa().edges(pattern.dfa().start());
                edges
                    .iter()
                    .map(|edge| distances[edge.1.index()].saturating_add(1))
                    .min()
                    .unwrap_or(MinPlus::NEVER)
            }
        }
    }
}

fn distances(dfa: &Dfa) -> Distances {
    let mut into: Vec<Vec<DfaState>> = vec![Vec::new(); dfa.len()];
    for state in dfa.states() {
        for (_, target) in dfa.edges(state) {
            into[target.index()].push(state);
        }
    }
    let mut out = vec![MinPlus::NEVER; dfa.len()];
    let mut layer: Vec<DfaState> = dfa.states().filter(|state| dfa.is_accepting(*state)).collect();
    let mut distance = 0;
    while !layer.is_empty() {
        let mut next = Vec::new();
        for state in layer {
            if out[state.index()] == MinPlus::NEVER {
                out[state.index()] = distance;
                next.extend(&into[state.index()]);
            }
        }
        distance += 1;
        layer = next;
    }
    out
}
