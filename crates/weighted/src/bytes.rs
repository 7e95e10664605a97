//! Reading a text byte by byte, whatever its terminals look like.
//!
//! A terminal may take many bytes, and several may be under way at once: after `al` in a grammar of names there are `"alice"`, `"al"` and `/[a-z]+/`,
//! the second of them complete. Each column of the chart that can begin terminals starts *runs*, and every byte moves all runs. When a run can stop, its terminal has been read
//! from the column where it began to the present one.
//!
//! ```text
//! literals that can begin at column j, sorted:      al   alice   bob
//! run after `a`:                                    └─────────┘          depth 1
//! run after `al`:                                   └ read ┘ └─┘         depth 2
//! ```
//!
//! So the literals of a column are one run, a range that narrows, and a lexicon costs two binary searches for each byte.

use std::sync::{Arc, OnceLock};

use maskwright_automata::Dfa;
use maskwright_grammar::Diagnostic;

use crate::chart::{Chart, Scan};
use crate::pcfg::{Pcfg, TerminalId};
use crate::semiring::{MinPlus, Semiring};
use crate::shortest::Shortest;
use crate::tables::Tables;
use crate::terminal::{Pattern, Terminal};

/// A parser over bytes. Like [`Parser`](crate::Parser) it can go back and be copied.
///
/// ```
/// use maskwright_weighted::{ByteParser, Options, Pcfg, Real};
/// let grammar = Pcfg::parse("S -> al [0.2] | alice [0.3] | bob [0.5]", &Options::default()).unwrap();
/// let mut parser = ByteParser::<Real>::new(&grammar).unwrap();
/// assert!(parser.step_bytes(b"al"));
/// assert!((parser.prefix_logprob().exp() - 0.5).abs() < 1e-12);
/// assert!((parser.sentence_logprob().exp() - 0.2).abs() < 1e-12);
/// assert!(!parser.step(b'b'));
/// ```
#[derive(Clone, Debug)]
pub struct ByteParser<S: Semiring> {
    chart: Chart<S>,
    alphabet: Arc<Alphabet>,
    frames: Vec<Arc<Frame<S>>>,
}

/// A terminal of which a part has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Which.
    pub terminal: TerminalId,
    /// How many bytes of it have been read.
    pub read: usize,
    /// How many it has; nothing for a pattern.
    pub of: Option<usize>,
}

/// The terminals, ready to be read byte by byte.
#[derive(Debug)]
struct Alphabet {
    /// Literals with their symbols, sorted by their bytes.
    literals: Vec<(Box<[u8]>, u32)>,
    patterns: Vec<(u32, Pattern, Distances)>,
    /// For each terminal, its place in one of the two.
    place: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Literal(u32),
    Pattern(u32),
}

/// How many bytes it takes from each state to the nearest accepting one.
type Distances = Vec<u64>;

/// What is under way between two bytes.
#[derive(Debug)]
struct Frame<S: Semiring> {
    /// What can begin here, worked out when it is first asked for.
    open: OnceLock<Open<S::Value>>,
    /// What has begun before and can go on.
    runs: Vec<Run<S::Value>>,
}

/// The terminals that can begin in a column, with their forward weights.
#[derive(Debug)]
struct Open<V> {
    /// By place in the alphabet.
    literals: Vec<(u32, V)>,
    patterns: Vec<(u32, V)>,
}

#[derive(Clone, Copy, Debug)]
struct Run<V> {
    /// The column where it began.
    origin: u32,
    /// The weight of the bytes read since.
    weight: V,
    what: What<V>,
}

#[derive(Clone, Copy, Debug)]
enum What<V> {
    /// A range of the literals that began at the origin; they agree in their first `depth` bytes.
    Literals {
        low: u32,
        high: u32,
        depth: u32,
    },
    Pattern {
        pattern: u32,
        state: u32,
        read: u32,
        mass: V,
    },
}

impl<S: Semiring> ByteParser<S> {
    /// A parser at the beginning of a text. An error names a loop whose weights do not add up.
    pub fn new(pcfg: &Pcfg) -> Result<Self, Diagnostic> {
        let chart = Chart::new(Arc::new(Tables::new(pcfg)?), false);
        let alphabet = Arc::new(Alphabet::new(pcfg, chart.core().nonterminals));
        let first = Arc::new(Frame { open: OnceLock::new(), runs: Vec::new() });
        Ok(Self { chart, alphabet, frames: vec![first] })
    }

    /// Reads a byte. If it cannot come next, says so and changes nothing.
    pub fn step(&mut self, byte: u8) -> bool {
        let moved = self.moved(byte);
        let mut prefix =
            moved.iter().fold(S::ZERO, |sum, run| S::add(sum, S::mul(run.weight, self.mass(run))));
        if moved.is_empty() || S::is_zero(prefix) {
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
        let mut runs = Vec::with_capacity(moved.len());
        for mut run in moved {
            run.weight = S::mul(run.weight, factor);
            scans.extend(self.ended(&run));
            runs.extend(self.going_on(run));
        }
        self.chart.push(&scans, prefix, scale);
        self.frames.push(Arc::new(Frame { open: OnceLock::new(), runs }));
        true
    }

    /// Reads bytes, all of them or none.
    pub fn step_bytes(&mut self, bytes: &[u8]) -> bool {
        let read = bytes.iter().take_while(|byte| self.step(**byte)).count();
        if read < bytes.len() {
            self.rollback(read);
        }
        read == bytes.len()
    }

    /// All runs after one more byte, those that begin here included.
    fn moved(&self, byte: u8) -> Vec<Run<S::Value>> {
        let here = self.chart.position();
        let frame = &self.frames[here as usize];
        let open = self.open(here);
        let mut out = Vec::new();
        let all = What::Literals { low: 0, high: open.literals.len() as u32, depth: 0 };
        let fresh = Run { origin: here, weight: S::ONE, what: all };
        for run in frame.runs.iter().chain([&fresh]) {
            out.extend(self.move_run(run, byte));
        }
        for &(pattern, mass) in &open.patterns {
            let (_, known, _) = &self.alphabet.patterns[pattern as usize];
            let state = known.dfa().next(known.dfa().start(), byte);
            if state != Dfa::DEAD {
                let weight = S::mul(S::letter(), S::weight(known.of_first()));
                out.push(Run { origin: here, weight, what: What::Pattern { pattern, state, read: 1, mass } });
            }
        }
        out
    }

    fn move_run(&self, run: &Run<S::Value>, byte: u8) -> Option<Run<S::Value>> {
        match run.what {
            What::Literals { low, high, depth } => {
                let open = &self.open(run.origin).literals;
                let at = |entry: &(u32, S::Value)| {
                    self.alphabet.literals[entry.0 as usize].0.get(depth as usize).copied()
                };
                let range = &open[low as usize..high as usize];
                let first = range.partition_point(|entry| at(entry) < Some(byte));
                let count = range[first..].partition_point(|entry| at(entry) == Some(byte));
                let low = low + first as u32;
                let what = What::Literals { low, high: low + count as u32, depth: depth + 1 };
                (count > 0).then(|| Run { weight: S::mul(run.weight, S::letter()), what, ..*run })
            }
            What::Pattern { pattern, state, read, mass } => {
                let (_, known, _) = &self.alphabet.patterns[pattern as usize];
                let next = known.dfa().next(state, byte);
                let weight = S::mul(S::mul(run.weight, S::letter()), S::weight(known.of_byte(state)));
                let what = What::Pattern { pattern, state: next, read: read + 1, mass };
                (next != Dfa::DEAD).then_some(Run { weight, what, ..*run })
            }
        }
    }

    /// The forward weight that a run had when it began.
    fn mass(&self, run: &Run<S::Value>) -> S::Value {
        match run.what {
            What::Literals { low, high, .. } => {
                let range = &self.open(run.origin).literals[low as usize..high as usize];
                range.iter().fold(S::ZERO, |sum, entry| S::add(sum, entry.1))
            }
            What::Pattern { mass, .. } => mass,
        }
    }

    /// The terminal that a run has just read, if it has.
    fn ended(&self, run: &Run<S::Value>) -> Option<Scan<S::Value>> {
        match run.what {
            What::Literals { low, depth, .. } => {
                let (rank, _) = self.open(run.origin).literals[low as usize];
                let (bytes, symbol) = &self.alphabet.literals[rank as usize];
                (bytes.len() == depth as usize).then_some((run.origin, *symbol, run.weight))
            }
            What::Pattern { pattern, state, .. } => {
                let (symbol, known, _) = &self.alphabet.patterns[pattern as usize];
                let stop = S::weight(known.of_stop(state));
                (!S::is_zero(stop)).then(|| (run.origin, *symbol, S::mul(run.weight, stop)))
            }
        }
    }

    /// A run without what has been read to its end.
    fn going_on(&self, mut run: Run<S::Value>) -> Option<Run<S::Value>> {
        let ended = self.ended(&run).is_some();
        match &mut run.what {
            What::Literals { low, high, .. } => {
                *low += u32::from(ended);
                (low < high).then_some(run)
            }
            What::Pattern { pattern, state, .. } => {
                let (_, known, _) = &self.alphabet.patterns[*pattern as usize];
                known.goes_on(*state).then_some(run)
            }
        }
    }

    fn open(&self, at: u32) -> &Open<S::Value> {
        self.frames[at as usize].open.get_or_init(|| {
            let mut open = Open { literals: Vec::new(), patterns: Vec::new() };
            for (symbol, mass) in self.chart.masses(at) {
                match self.alphabet.place[self.chart.core().terminal_of(symbol).0 as usize] {
                    Place::Literal(rank) => open.literals.push((rank, mass)),
                    Place::Pattern(number) => open.patterns.push((number, mass)),
                }
            }
            open.literals.sort_unstable_by_key(|entry| entry.0);
            open
        })
    }

    /// Whether what has been read is a sentence.
    pub fn accepted(&self) -> bool {
        !S::is_zero(self.chart.last().sentence)
    }

    /// The logarithm of the weight of all texts that begin like this.
    pub fn prefix_logprob(&self) -> f64 {
        S::log(self.chart.last().prefix) - self.chart.last().scale
    }

    /// The logarithm of the weight of what has been read as a sentence; minus infinity if it is none.
    pub fn sentence_logprob(&self) -> f64 {
        S::log(self.chart.last().sentence) - self.chart.last().scale
    }

    /// How many bytes have been read.
    pub fn position(&self) -> usize {
        self.chart.position() as usize
    }

    /// Takes back the last bytes, at most all of them.
    pub fn rollback(&mut self, bytes: usize) {
        let kept = self.position().saturating_sub(bytes) + 1;
        self.chart.columns.truncate(kept);
        self.frames.truncate(kept);
    }

    /// Goes back to the beginning.
    pub fn reset(&mut self) {
        self.rollback(self.position());
    }

    /// A parser that goes its own way from here.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// The terminals that can begin here, ascending by number.
    pub fn allowed_terminals(&self) -> Vec<TerminalId> {
        let core = self.chart.core();
        self.chart.masses(self.chart.position()).iter().map(|entry| core.terminal_of(entry.0)).collect()
    }

    /// The terminals of which a part has been read, and that can go on.
    pub fn partial_matches(&self) -> Vec<Partial> {
        let mut out = Vec::new();
        for run in &self.frames[self.position()].runs {
            match run.what {
                What::Literals { low, high, depth } => {
                    for (rank, _) in &self.open(run.origin).literals[low as usize..high as usize] {
                        let (bytes, symbol) = &self.alphabet.literals[*rank as usize];
                        let terminal = self.chart.core().terminal_of(*symbol);
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

    /// How many bytes it takes at the least to complete a sentence from here.
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
                What::Literals { low, high, depth } => {
                    for (rank, _) in &self.open(run.origin).literals[low as usize..high as usize] {
                        let (bytes, symbol) = &self.alphabet.literals[*rank as usize];
                        offer(*symbol, bytes.len() as u64 - u64::from(depth));
                    }
                }
                What::Pattern { pattern, state, .. } => {
                    let (symbol, _, distances) = &self.alphabet.patterns[pattern as usize];
                    offer(*symbol, distances[state as usize]);
                }
            }
        }
        least
    }
}

impl Alphabet {
    fn new(pcfg: &Pcfg, nonterminals: u32) -> Self {
        let mut out = Self { literals: Vec::new(), patterns: Vec::new(), place: Vec::new() };
        for (number, terminal) in pcfg.terminals().iter().enumerate() {
            let symbol = nonterminals + number as u32;
            match terminal {
                Terminal::Literal(bytes) => {
                    out.place.push(Place::Literal(0));
                    out.literals.push((bytes.clone(), symbol));
                }
                Terminal::Pattern(pattern) => {
                    out.place.push(Place::Pattern(out.patterns.len() as u32));
                    out.patterns.push((symbol, pattern.clone(), distances(pattern.dfa())));
                }
            }
        }
        out.literals.sort_unstable();
        for (rank, (_, symbol)) in out.literals.iter().enumerate() {
            out.place[(symbol - nonterminals) as usize] = Place::Literal(rank as u32);
        }
        out
    }

    /// The least length of a terminal that is not empty.
    fn shortest(&self, terminal: u32) -> u64 {
        match self.place[terminal as usize] {
            Place::Literal(rank) => self.literals[rank as usize].0.len() as u64,
            Place::Pattern(number) => {
                let (_, pattern, distances) = &self.patterns[number as usize];
                let edges = pattern.dfa().edges(pattern.dfa().start());
                edges
                    .iter()
                    .map(|edge| distances[edge.1 as usize].saturating_add(1))
                    .min()
                    .unwrap_or(MinPlus::NEVER)
            }
        }
    }
}

fn distances(dfa: &Dfa) -> Distances {
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); dfa.len()];
    for state in 0..dfa.len() as u32 {
        for (_, target) in dfa.edges(state) {
            into[target as usize].push(state);
        }
    }
    let mut out = vec![MinPlus::NEVER; dfa.len()];
    let mut layer: Vec<u32> = (0..dfa.len() as u32).filter(|state| dfa.is_accepting(*state)).collect();
    let mut distance = 0;
    while !layer.is_empty() {
        let mut next = Vec::new();
        for state in layer {
            if out[state as usize] == MinPlus::NEVER {
                out[state as usize] = distance;
                next.extend(&into[state as usize]);
            }
        }
        distance += 1;
        layer = next;
    }
    out
}
