//! Sampling from the model's own distribution over valid texts.
//!
//! A mask renormalises at every token, and that distorts. Take a model that writes `a` or `b` with ½ each, twice, and allow `aa` and all that begins with `b`:
//!
//! ```text
//!               aa     ba     bb
//! the model     ¼      ¼      ¼      (ab has ¼ too, but is not allowed)
//! given valid   1/3    1/3    1/3
//! masked        ½      ¼      ¼      a is chosen half of the time, though half of its texts are invalid
//! ```
//!
//! Rejection is exact: write without a mask, start again when the text turns out to be invalid. It wastes whole texts, so what is learnt is kept: a trie of prefixes with the share of
//! each prefix's continuations that is *not yet known to be invalid*. Every attempt draws from the model restricted to what is not known to be invalid, and is accepted if it is valid. The known
//! part only ever contains invalid texts and is fixed during an attempt, so what is accepted follows the model given validity, exactly; and as the trie grows, rejections become rare.

use maskwright_vocab::{TokenId, TokenMask};
use rustc_hash::FxHashMap;

use crate::adapter::Adapter;
use crate::sample::Random;
use crate::semiring::Semiring;

/// The state of a text that is checked token by token.
pub trait Checker {
    /// The tokens that may come next.
    fn mask(&self) -> TokenMask;
    /// Accepts a token, or says that it may not come.
    fn accept(&mut self, token: TokenId) -> bool;
    /// Whether the end was accepted.
    fn ended(&self) -> bool;
    /// Goes back to the beginning.
    fn reset(&mut self);
}

impl<S: Semiring> Checker for Adapter<S> {
    fn mask(&self) -> TokenMask {
        self.allowed_token_mask()
    }
    fn accept(&mut self, token: TokenId) -> bool {
        self.step_with_token(token)
    }
    fn ended(&self) -> bool {
        self.ended()
    }
    fn reset(&mut self) {
        self.reset();
    }
}

/// Samples valid texts as the model would write them, and remembers what it learns.
#[derive(Clone, Debug)]
pub struct ExactSampler {
    nodes: Vec<Node>,
    attempts: u64,
}

/// A prefix that has been looked at.
#[derive(Clone, Debug)]
struct Node {
    /// The share of the texts behind this prefix that are not known to be invalid.
    open: f64,
    /// The tokens that may not come here, if the mask has been looked at.
    mask: Option<TokenMask>,
    children: FxHashMap<u32, u32>,
}

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleError {
    /// Everything that the model can write is invalid.
    Impossible,
    /// So many attempts were rejected.
    Attempts(usize),
    /// A text has more than so many tokens.
    Length(usize),
}

impl core::fmt::Display for SampleError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Impossible => f.write_str("the model gives no probability to any valid text"),
            Self::Attempts(most) => {
                write!(f, "{most} attempts in a row were invalid; allow more, or mask instead")
            }
            Self::Length(most) => write!(f, "a text has more than {most} tokens; allow more"),
        }
    }
}

impl core::error::Error for SampleError {}

impl Default for ExactSampler {
    fn default() -> Self {
        Self { nodes: vec![Node::new()], attempts: 0 }
    }
}

impl ExactSampler {
    /// A sampler that knows nothing yet. It belongs to one model and one constraint.
    pub fn new() -> Self {
        Self::default()
    }

    /// One valid text, its end token included. `model` gives the probability of each token after a prefix.
    pub fn sample(
        &mut self,
        mut model: impl FnMut(&[TokenId]) -> Vec<f64>,
        checker: &mut impl Checker,
        random: &mut Random,
        limits: SampleLimits,
    ) -> Result<Vec<TokenId>, SampleError> {
        for _ in 0..limits.attempts {
            self.attempts += 1;
            checker.reset();
            if let Some(text) = self.attempt(&mut model, checker, random, limits)? {
                return Ok(text);
            }
        }
        Err(SampleError::Attempts(limits.attempts))
    }

    /// How many attempts there have been.
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// The share of the model's texts that are not known to be invalid. It falls towards the share that is valid.
    pub fn open_mass(&self) -> f64 {
        self.nodes[0].open
    }

    /// One attempt: a valid text, or nothing and a better trie.
    fn attempt(
        &mut self,
        model: &mut impl FnMut(&[TokenId]) -> Vec<f64>,
        checker: &mut impl Checker,
        random: &mut Random,
        limits: SampleLimits,
    ) -> Result<Option<Vec<TokenId>>, SampleError> {
        let mut text = Vec::new();
        let mut path: Vec<(u32, Vec<f64>)> = Vec::new();
        // Behind the last prefix that is remembered nothing is known to be invalid.
        let mut node = Some(0);
        let verdict = loop {
            if text.len() >= limits.tokens {
                break Err(SampleError::Length(limits.tokens));
            }
            let chances = model(&text);
            let open = |token| node.map_or(1.0, |node: u32| self.open(&self.nodes[node as usize], token));
            let weight = |(token, chance): (usize, &f64)| chance * open(token as u32);
            let chosen = random.choose(chances.iter().enumerate().map(weight));
            if let Some(node) = node {
                // What is learnt about this prefix counts from the next attempt on.
                self.nodes[node as usize].mask.get_or_insert_with(|| checker.mask());
                path.push((node, chances));
            }
            let Some(token) = chosen else {
                break if text.is_empty() { Err(SampleError::Impossible) } else { Ok(false) };
            };
            let token = TokenId(token as u32);
            if !checker.accept(token) {
                break Ok(false);
            }
            text.push(token);
            if checker.ended() {
                break Ok(true);
            }
            node = node.and_then(|node| self.child(node, token, limits.prefixes));
        };
        self.learn(&path);
        Ok(verdict?.then_some(text))
    }

    /// The node of a prefix that is longer by a token; it is made if there is room for it.
    fn child(&mut self, node: u32, token: TokenId, most: usize) -> Option<u32> {
        if let Some(found) = self.nodes[node as usize].children.get(&token.0) {
            return Some(*found);
        }
        let next = u32::try_from(self.nodes.len()).ok().filter(|next| (*next as usize) < most)?;
        self.nodes[node as usize].children.insert(token.0, next);
        self.nodes.push(Node::new());
        Some(next)
    }

    /// The share of what a token leads to that is not known to be invalid.
    fn open(&self, node: &Node, token: u32) -> f64 {
        match (&node.mask, node.children.get(&token)) {
            (Some(mask), _) if !mask.contains(TokenId(token)) => 0.0,
            (_, Some(child)) => self.nodes[*child as usize].open,
            _ => 1.0,
        }
    }

    /// Works out the shares again along a path, from its end.
    fn learn(&mut self, path: &[(u32, Vec<f64>)]) {
        for (number, chances) in path.iter().rev() {
            let node = &self.nodes[*number as usize];
            let open = chances
                .iter()
                .enumerate()
                .map(|(token, chance)| chance * self.open(node, token as u32))
                .sum();
            self.nodes[*number as usize].open = open;
        }
    }
}

impl Node {
    fn new() -> Self {
        Self { open: 1.0, mask: None, children: FxHashMap::default() }
    }
}

/// When to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleLimits {
    /// The most attempts for one text.
    pub attempts: usize,
    /// The most tokens of one text.
    pub tokens: usize,
    /// The most prefixes that are remembered. A prefix takes a mask, 16 KB for a vocabulary of 128,000 tokens. What does
    /// not fit is not learnt, so that more attempts are rejected; what is accepted stays exact.
    pub prefixes: usize,
}

impl Default for SampleLimits {
    fn default() -> Self {
        Self { attempts: 10_000, tokens: 4_096, prefixes: 4_096 }
    }
}
