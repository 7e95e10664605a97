//! Generates random sentences with the probabilities of the grammar.

use maskwright_grammar::{Diagnostic, Span};

use crate::core::Core;
use crate::pcfg::Pcfg;
use crate::terminal::{Pattern, Terminal};

/// A reproducible random number generator (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number from 0 to 1, excluding 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns an index with the probability of its weight; `None` if all weights are zero.
    pub fn choose(&mut self, weights: impl Iterator<Item = f64> + Clone) -> Option<usize> {
        let mut left = self.unit() * weights.clone().sum::<f64>();
        let mut last = None;
        for (at, weight) in weights.enumerate() {
            if weight > 0.0 {
                last = Some(at);
                if left < weight {
                    break;
                }
                left -= weight;
            }
        }
        last
    }
}

/// A generator of random sentences.
#[derive(Debug)]
pub struct Sampler {
    core: Core,
    grammar: Pcfg,
    /// The greatest number of terminals, and of bytes of one of them.
    limit: usize,
}

impl Sampler {
    /// Creates a sampler that gives up on sentences with more than `limit` terminals, and on terminals with more than
    /// `limit` bytes.
    pub fn new(grammar: &Pcfg, limit: usize) -> Result<Self, Diagnostic> {
        Ok(Self { core: Core::new(grammar)?, grammar: grammar.clone(), limit })
    }

    /// Returns a sentence: the text of each of its terminals.
    ///
    /// ```
    /// use maskwright_weighted::{Options, Pcfg, Random, Sampler};
    /// let grammar = Pcfg::parse("S -> a S [0.5] | b [0.5]", &Options::default()).unwrap();
    /// let words = Sampler::new(&grammar, 1_000).unwrap().sentence(&mut Random::new(7)).unwrap();
    /// assert_eq!(words.last().map(String::as_str), Some("b"));
    /// ```
    pub fn sentence(&self, random: &mut Random) -> Result<Vec<String>, Diagnostic> {
        let mut out = Vec::new();
        let mut work = vec![self.core.start];
        while let Some(symbol) = work.pop() {
            if work.len() > self.limit.saturating_mul(64) || out.len() > self.limit {
                let message = format!("a random sentence has more than {} terminals", self.limit);
                return Err(Diagnostic::error(Span::default(), message)
                    .with_help("raise the limit, or give the rules that end a greater probability"));
            }
            if self.core.is_terminal(symbol) {
                out.push(self.terminal(self.grammar.terminal(self.core.terminal_of(symbol)), random)?);
                continue;
            }
            let rules = self.core.rules_of(symbol);
            let chances = rules.iter().map(|number| self.core.rules[*number as usize].probability);
            if let Some(at) = random.choose(chances) {
                work.extend(self.core.right(&self.core.rules[rules[at] as usize]).iter().rev());
            }
        }
        Ok(out)
    }

    fn terminal(&self, terminal: &Terminal, random: &mut Random) -> Result<String, Diagnostic> {
        let bytes = match terminal {
            Terminal::Literal(bytes) => bytes.to_vec(),
            Terminal::Pattern(pattern) => self.pattern(pattern, random)?,
        };
        // Patterns and literals consist of whole characters.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns a nonempty text of a pattern: the empty one has a separate rule.
    fn pattern(&self, pattern: &Pattern, random: &mut Random) -> Result<Vec<u8>, Diagnostic> {
        let dfa = pattern.dfa();
        let mut state = dfa.start();
        let mut out = Vec::new();
        loop {
            if !out.is_empty() && random.unit() < pattern.of_stop(state) {
                return Ok(out);
            }
            let bytes: Vec<u8> = dfa.live(state).iter().collect();
            let Some(at) = random.choose(bytes.iter().map(|_| 1.0)) else { return Ok(out) };
            state = dfa.next(state, bytes[at]);
            out.push(bytes[at]);
            if out.len() > self.limit {
                let message =
                    format!("a random text of /{}/ has more than {} bytes", pattern.source(), self.limit);
                return Err(Diagnostic::error(Span::default(), message)
                    .with_help("raise the limit, or bound the pattern"));
            }
        }
    }
}
