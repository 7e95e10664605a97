//! Samples from the model's own distribution over valid texts.
//!
//! A mask renormalizes at every token, which distorts the distribution. Take a model that writes `a` or `b` with ½
//! each, twice, and allow `aa` and all that begins with `b`:
//!
//! ```text
//!               aa     ba     bb
//! the model     ¼      ¼      ¼      (ab has ¼ too, but is not allowed)
//! given valid   1/3    1/3    1/3
//! masked        ½      ¼      ¼      a is chosen half of the time, though half of its texts are invalid
//! ```
//!
//! Rejection is exact: write without a mask, and start again if the text turns out to be invalid. It wastes whole
//! texts, so what is learned is kept in a trie of prefixes, with the share of each prefix's continuations that is *not
//! yet known to be invalid*. Every attempt draws from the model restricted to what is not known to be invalid, and is
//! accepted if it is valid. The known part contains only invalid texts and is fixed during an attempt, so accepted
//! texts follow exactly the model's distribution given validity. As the trie grows, rejections become rare.

use maskwright_vocab::{TokenId, TokenMask};
use rustc_hash::FxHashMap;

use crate::adapter::Adapter;
use crate::sample::Random;
use crate::semiring::Semiring;

/// The state of a text that is checked token by token.
pub trait Checker {
    /// Returns the tokens that may come next.
    fn mask(&self) -> TokenMask;
    /// Accepts a token. Returns `false` if it may not come.
    fn accept(&mut self, token: TokenId) -> bool;
    /// Checks whether the end was accepted.
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

/// A prefix that was visited.
#[derive(Clone, Debug)]
struct Node {
    /// The share of the texts with this prefix that are not known to be invalid.
    open: f64,
    /// The tokens that may come here, if the mask has been computed.
    mask: Option<TokenMask>,
    children: FxHashMap<u32, u32>,
}

/// The reason why there is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleError {
    /// Everything that the model can write is invalid.
    Impossible,
    /// This many attempts were rejected.
    Attempts(usize),
    /// A text has more than this many tokens.
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
    /// Creates a sampler that knows nothing yet. It belongs to one model and one constraint.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns one valid text, including its end token. `model` returns the probability of each token after a prefix.
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

    /// Returns the number of attempts so far.
    pub fn attempts(&self) -> u64 {
        self.attempts
    }

    /// Returns the share of the model's texts that are not known to be invalid. It decreases towards the share of valid
    /// texts.
    pub fn open_mass(&self) -> f64 {
        self.nodes[0].open
    }

    /// Makes one attempt: returns a valid text, or `None` after improving the trie.
    fn attempt(
        &mut self,
        model: &mut impl FnMut(&[TokenId]) -> Vec<f64>,
        checker: &mut impl Checker,
        random: &mut Random,
        limits: SampleLimits,
    ) -> Result<Option<Vec<TokenId>>, SampleError> {
        let mut text = Vec::new();
        let mut path: Vec<(u32, Vec<f64>)> = Vec::new();
        // After the last stored prefix nothing is known to be invalid.
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
                // What is learned about this prefix counts from the next attempt on.
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

    /// Returns the node of a prefix extended by a token, and creates it if there is room for it.
    fn child(&mut self, node: u32, token: TokenId, most: usize) -> Option<u32> {
        if let Some(found) = self.nodes[node as usize].children.get(&token.0) {
            return Some(*found);
        }
        let next = u32::try_from(self.nodes.len()).ok().filter(|next| (*next as usize) < most)?;
        self.nodes[node as usize].children.insert(token.0, next);
        self.nodes.push(Node::new());
        Some(next)
    }

    /// Returns the share of a token's continuations that is not known to be invalid.
    fn open(&self, node: &Node, token: u32) -> f64 {
        match (&node.mask, node.children.get(&token)) {
            (Some(mask), _) if !mask.contains(TokenId(token)) => 0.0,
            (_, Some(child)) => self.nodes[*child as usize].open,
            _ => 1.0,
        }
    }

    /// Updates the shares along a path, from its end.
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
    /// The greatest number of attempts for one text.
    pub attempts: usize,
    /// The greatest number of tokens of one text.
    pub tokens: usize,
    /// The greatest number of stored prefixes. A prefix takes a mask, 16 KB for a vocabulary of 128,000 tokens.
    /// Prefixes that do not fit are not learned, so more attempts are rejected; accepted texts remain exact.
    pub prefixes: usize,
}

impl Default for SampleLimits {
    fn default() -> Self {
        Self { attempts: 10_000, tokens: 4_096, prefixes: 4_096 }
    }
}
