//! The shape of a model: its width, its depth, and its position encoding.
//!
//! Two kinds of files contain it, with different names ([`gguf`](super::gguf) and [`safetensors`](super::safetensors)
//! translate them). Both are checked alike: [`Config::check`] refuses whatever the forward pass cannot compute, or
//! cannot compute exactly.

use std::f32::consts::PI;

use super::LoadError;

/// The shape of a model of the Llama family.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The family: `llama`, `qwen2`, `qwen3`.
    pub architecture: String,
    /// The number of values of a token between the layers.
    pub hidden: usize,
    /// The number of layers.
    pub layers: usize,
    /// The number of values of a token inside the feed-forward part.
    pub inner: usize,
    /// The number of query heads.
    pub heads: usize,
    /// The number of key-value heads; each serves `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// The number of values of a head.
    pub head_size: usize,
    /// The number of tokens, which is the width of a row of logits.
    pub tokens: usize,
    /// The maximum number of tokens of a text.
    pub context: usize,
    /// A small number that keeps the root mean square from being zero.
    pub epsilon: f32,
    /// The position encoding.
    pub rope: Rope,
}

/// The rotary position encoding: pair j of a head is rotated by the angle `position · frequencies[j]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// One frequency for each pair of values.
    pub frequencies: Vec<f32>,
    /// Which values form a pair.
    pub pairs: Pairs,
}

/// Which values of a head are rotated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// 2j and 2j + 1.
    Neighbors,
    /// j and j + half.
    Halves,
}

/// How the frequencies for a longer context are derived from those for a shorter one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scaling {
    /// They are unchanged.
    None,
    /// All are divided by a factor.
    Linear(f32),
    /// Low frequencies are divided, high ones are kept, with a ramp between them, as in Llama 3.1.
    Llama3 { factor: f32, low: f32, high: f32, context: f32 },
}

impl Rope {
    /// Computes the frequencies for a base and a head size.
    pub(crate) fn new(base: f32, head_size: usize, pairs: Pairs, scaling: Scaling) -> Self {
        let frequency = |pair: usize| base.powf(-(2.0 * pair as f32) / head_size as f32);
        let frequencies = (0..head_size / 2).map(frequency).map(|one| scaling.of(one)).collect();
        Self { frequencies, pairs }
    }

    /// Divides each frequency by its own factor, as some GGUF files require.
    pub(crate) fn divide(&mut self, factors: &[f32]) -> Result<(), LoadError> {
        if factors.len() != self.frequencies.len()
            || factors.iter().any(|&one| !one.is_finite() || one <= 0.0)
        {
            let reason = format!(
                "its rope factors must be {} positive numbers, one for each pair of a head",
                self.frequencies.len()
            );
            return Err(LoadError::malformed(reason));
        }
        for (frequency, factor) in self.frequencies.iter_mut().zip(factors) {
            *frequency /= factor;
        }
        Ok(())
    }
}

impl Scaling {
    fn of(self, frequency: f32) -> f32 {
        match self {
            Self::None => frequency,
            Self::Linear(factor) => frequency / factor,
            Self::Llama3 { factor, low, high, context } => {
                let wave = 2.0 * PI / frequency;
                let smooth = ((context / wave - low) / (high - low)).clamp(0.0, 1.0);
                (1.0 - smooth) * frequency / factor + smooth * frequency
            }
        }
    }
}

/// The number of weights in a block.
pub(crate) const BLOCK: usize = 32;
/// Files beyond these limits are invalid rather than large.
const MAX_SIZE: usize = 1 << 20;
const MAX_LAYERS: usize = 1 << 10;

impl Config {
    /// Returns the number of values of all query heads.
    pub fn query_size(&self) -> usize {
        self.heads * self.head_size
    }

    /// Returns the number of values of all key-value heads.
    pub fn kv_size(&self) -> usize {
        self.kv_heads * self.head_size
    }

    /// Checks whether the model can be computed.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let sizes = [
            ("hidden size", self.hidden),
            ("feed-forward size", self.inner),
            ("number of heads", self.heads),
            ("number of key-value heads", self.kv_heads),
            ("head size", self.head_size),
            ("number of tokens", self.tokens),
        ];
        for (name, size) in sizes {
            if size == 0 || size > MAX_SIZE {
                return Err(LoadError::malformed(format!(
                    "its {name} is {size}; it must be between 1 and {MAX_SIZE}"
                )));
            }
        }
        if self.layers == 0 || self.layers > MAX_LAYERS {
            let reason = format!("it has {} layers; there must be between 1 and {MAX_LAYERS}", self.layers);
            return Err(LoadError::malformed(reason));
        }
        if self.context == 0 {
            return Err(LoadError::malformed("its context is 0 tokens"));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let reason =
                format!("its {} heads cannot share {} key-value heads evenly", self.heads, self.kv_heads);
            return Err(LoadError::malformed(reason));
        }
        if !self.head_size.is_multiple_of(2) {
            return Err(LoadError::malformed(format!("its head size {} is odd", self.head_size)));
        }
        for (name, size) in
            [("hidden", self.hidden), ("feed-forward", self.inner), ("query", self.query_size())]
        {
            if !size.is_multiple_of(BLOCK) {
                let reason = format!(
                    "its {name} size {size} is no multiple of {BLOCK}, the size of a block of weights"
                );
                return Err(LoadError::unsupported(reason));
            }
        }
        if !(self.epsilon > 0.0 && self.epsilon < 1.0) {
            return Err(LoadError::malformed(format!("the epsilon of its norms is {}", self.epsilon)));
        }
        if self.rope.frequencies.iter().any(|one| !one.is_finite()) {
            return Err(LoadError::malformed("its rope frequencies are not finite; look at its rope base"));
        }
        Ok(())
    }
}
