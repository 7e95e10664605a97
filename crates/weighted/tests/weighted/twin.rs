//! Compares the parser with a slow reference: for every string, the equations of the definition are iterated until
//! nothing changes.
//!
//! The reference has no items, no closures and no shortcuts. inside(X, i, j) is the probability that X derives the text
//! from i to j, and begins(X, i) the probability that it derives something that begins with the text from i on. Both
//! are sums over rules and split points.

use maskwright_oracle::generate::Rng;
use maskwright_weighted::{Boolean, Count, Log, MaxPlus, Parser, Pcfg, Real, Symbol, TerminalId};

use crate::grammars::random;

pub(crate) struct Twin<'a> {
    grammar: &'a Pcfg,
    /// Whether the best derivation is taken instead of the sum.
    best: bool,
    /// The probabilities of the rules after useless ones were removed.
    probabilities: Vec<f64>,
}

pub(crate) struct Answers {
    prefix: f64,
    pub(crate) sentence: f64,
}

impl<'a> Twin<'a> {
    pub(crate) fn new(grammar: &'a Pcfg, best: bool) -> Self {
        let count = grammar.nonterminals();
        let mut productive = vec![false; count];
        let lives = |productive: &[bool], symbol: &Symbol| match symbol {
            Symbol::Nonterminal(id) => productive[id.0 as usize],
            Symbol::Terminal(_) => true,
        };
        for _ in 0..=count {
            for rule in grammar.rules() {
                if rule.right.iter().all(|symbol| lives(&productive, symbol)) {
                    productive[rule.left.0 as usize] = true;
                }
            }
        }
        let mut sums = vec![0.0; count];
        let mut probabilities = Vec::new();
        for rule in grammar.rules() {
            let part = if rule.right.iter().all(|symbol| lives(&productive, symbol)) {
                rule.probability
            } else {
                0.0
            };
            sums[rule.left.0 as usize] += part;
            probabilities.push(part);
        }
        for (rule, probability) in grammar.rules().iter().zip(&mut probabilities) {
            if *probability > 0.0 {
                *probability /= sums[rule.left.0 as usize];
            }
        }
        Self { grammar, best, probabilities }
    }

    pub(crate) fn answer(&self, text: &[TerminalId]) -> Answers {
        let (n, count) = (text.len(), self.grammar.nonterminals());
        let start = self.grammar.start().0 as usize;
        let mut inside = vec![vec![vec![0.0; n + 1]; n + 1]; count];
        for length in 0..=n {
            for i in 0..=n - length {
                self.settle(text, i, i + length, &mut inside);
            }
        }
        let mut begins = vec![vec![0.0; n + 1]; count];
        for row in &mut begins {
            row[n] = 1.0;
        }
        for i in (0..n).rev() {
            for _ in 0..100_000 {
                let mut moved = 0.0f64;
                for left in 0..count {
                    let value = self.sum(left, |right| begins_with(text, right, i, &inside, &begins));
                    moved = moved.max((value - begins[left][i]).abs());
                    begins[left][i] = value;
                }
                if moved < 1e-17 {
                    break;
                }
            }
        }
        Answers { prefix: begins[start][0], sentence: inside[start][0][n] }
    }

    fn settle(&self, text: &[TerminalId], i: usize, j: usize, inside: &mut [Vec<Vec<f64>>]) {
        for _ in 0..100_000 {
            let mut moved = 0.0f64;
            for left in 0..inside.len() {
                let value = self.sum(left, |right| self.covers(text, right, i, j, inside));
                moved = moved.max((value - inside[left][i][j]).abs());
                inside[left][i][j] = value;
            }
            if moved < 1e-17 {
                break;
            }
        }
    }

    fn sum(&self, left: usize, weigh: impl Fn(&[Symbol]) -> f64) -> f64 {
        let rules = self.grammar.rules().iter().zip(&self.probabilities);
        let own = rules.filter(|(rule, _)| rule.left.0 as usize == left);
        self.total(own.map(|(rule, p)| p * weigh(&rule.right)))
    }

    fn total(&self, ways: impl Iterator<Item = f64>) -> f64 {
        if self.best { ways.fold(0.0, f64::max) } else { ways.sum() }
    }

    /// Returns the probability that a row of symbols derives the text from i to j.
    fn covers(
        &self,
        text: &[TerminalId],
        right: &[Symbol],
        i: usize,
        j: usize,
        inside: &[Vec<Vec<f64>>],
    ) -> f64 {
        match right.split_first() {
            None => f64::from(u8::from(i == j)),
            Some((Symbol::Terminal(id), rest)) if i < j && text[i] == *id => {
                self.covers(text, rest, i + 1, j, inside)
            }
            Some((Symbol::Terminal(_), _)) => 0.0,
            Some((Symbol::Nonterminal(id), rest)) => {
                self.total((i..=j).map(|k| match inside[id.0 as usize][i][k] {
                    0.0 => 0.0,
                    part => part * self.covers(text, rest, k, j, inside),
                }))
            }
        }
    }
}

/// Returns the probability that a row of symbols derives something that begins with the text from i on.
fn begins_with(
    text: &[TerminalId],
    right: &[Symbol],
    i: usize,
    inside: &[Vec<Vec<f64>>],
    begins: &[Vec<f64>],
) -> f64 {
    if i == text.len() {
        return 1.0;
    }
    match right.split_first() {
        None => 0.0,
        Some((Symbol::Terminal(id), rest)) if text[i] == *id => {
            begins_with(text, rest, i + 1, inside, begins)
        }
        Some((Symbol::Terminal(_), _)) => 0.0,
        Some((Symbol::Nonterminal(id), rest)) => {
            let part = |k: usize| inside[id.0 as usize][i][k] * begins_with(text, rest, k, inside, begins);
            begins[id.0 as usize][i] + (i..text.len()).map(part).sum::<f64>()
        }
    }
}

struct Walk<'a> {
    twin: Twin<'a>,
    source: &'a str,
    real: Parser<Real>,
    log: Parser<Log>,
    boolean: Parser<Boolean>,
    count: Parser<Count>,
    best: Parser<MaxPlus>,
    text: Vec<TerminalId>,
    checked: usize,
}

impl Walk<'_> {
    /// Checks every text of at most `depth` more terminals.
    fn all(&mut self, depth: usize) {
        self.check();
        if depth == 0 {
            return;
        }
        for terminal in (0..self.twin.grammar.terminals().len() as u32).map(TerminalId) {
            self.text.push(terminal);
            let likely = self.twin.answer(&self.text).prefix;
            let took = self.real.step(terminal);
            assert_eq!(took, likely > 0.0, "{}\n{:?}", self.source, self.text);
            for also in [
                self.log.step(terminal),
                self.boolean.step(terminal),
                self.count.step(terminal),
                self.best.step(terminal),
            ] {
                assert_eq!(also, took, "{}\n{:?}", self.source, self.text);
            }
            if took {
                self.all(depth - 1);
                self.real.rollback(1);
                self.log.rollback(1);
                self.boolean.rollback(1);
                self.count.rollback(1);
                self.best.rollback(1);
            }
            self.text.pop();
        }
    }

    fn check(&mut self) {
        self.checked += 1;
        let Answers { prefix, sentence } = self.twin.answer(&self.text);
        let context = || format!("{}\n{:?}", self.source, self.text);
        let near = |got: f64, wanted: f64, what: &str| {
            assert!(
                (got - wanted).abs() <= 1e-12 + 1e-10 * wanted,
                "{what}: {got} instead of {wanted}\n{}",
                context()
            );
        };
        near(self.real.prefix_logprob().exp(), prefix, "prefix");
        near(self.log.prefix_logprob().exp(), prefix, "prefix by logarithms");
        near(self.real.sentence_logprob().exp(), sentence, "sentence");
        near(self.log.sentence_logprob().exp(), sentence, "sentence by logarithms");
        assert_eq!(self.boolean.accepted(), sentence > 0.0, "{}", context());
        assert_eq!(self.count.accepted(), sentence > 0.0, "{}", context());
        assert!(self.best.sentence() <= self.real.sentence_logprob() + 1e-9, "{}", context());
        let next = self.real.next_terminal_distribution();
        near(
            next.end + next.terminals.iter().map(|entry| entry.1).sum::<f64>(),
            1.0,
            "the sum of what comes next",
        );
        assert_eq!(self.real.allowed_terminals(), self.boolean.allowed_terminals(), "{}", context());
    }
}

fn compare(seed: u64, depth: usize) -> usize {
    let (source, grammar) = random(&mut Rng::new(seed));
    let context = |what: &str| format!("seed {seed}, {what}\n{source}");
    let mut walk = Walk {
        twin: Twin::new(&grammar, false),
        source: &source,
        real: Parser::new(&grammar).unwrap_or_else(|error| panic!("{}", context(&error.message))),
        log: Parser::new(&grammar).unwrap_or_else(|error| panic!("{}", context(&error.message))),
        boolean: Parser::new(&grammar).unwrap_or_else(|error| panic!("{}", context(&error.message))),
        count: Parser::new(&grammar).unwrap_or_else(|error| panic!("{}", context(&error.message))),
        best: Parser::new(&grammar).unwrap_or_else(|error| panic!("{}", context(&error.message))),
        text: Vec::new(),
        checked: 0,
    };
    walk.all(depth);
    walk.checked
}

#[test]
fn random_grammars_agree_with_their_definition() {
    let checked: usize = (0..150).map(|seed| compare(seed, 4)).sum();
    assert!(checked > 1_000, "only {checked} texts were looked at");
}

#[test]
fn all_strings_up_to_length_eight() {
    let checked: usize = (1_000..1_110).map(|seed| compare(seed, 8)).sum();
    assert!(checked > 2_000, "only {checked} texts were looked at");
}
