//! The sampling parameters of a request, and their ranges.

use std::fmt;

use maskwright_vocab::TokenId;

/// The maximum number of alternatives that may be requested.
pub const MAX_TOP_LOGPROBS: u8 = 20;
/// The maximum number of tokens with a bias.
const MAX_BIASES: usize = 4096;

/// The sampling parameters of a request. The default changes nothing: temperature 1, and every token can be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// 0 always takes the best token; 1 keeps the shares; higher values make them more equal. At most 100.
    pub temperature: f32,
    /// The number of tokens to keep; 0 keeps all.
    pub top_k: u32,
    /// The total share of the kept tokens, from 0 to 1.
    pub top_p: f32,
    /// The minimum share of a token relative to the best one, from 0 to 1.
    pub min_p: f32,
    /// Above 1, tokens of prompt and answer become less likely. More than 0, at most 10.
    pub repetition_penalty: f32,
    /// Subtracted from a logit for each occurrence of the token in the answer. From −2 to 2.
    pub frequency_penalty: f32,
    /// Subtracted from a logit if the token occurs in the answer. From −2 to 2.
    pub presence_penalty: f32,
    /// Added to logits. From −100 to 100.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// The seed of the random numbers. Without one, they differ each time.
    pub seed: Option<u64>,
    /// The number of alternatives with log-probabilities, besides the chosen token. `None` if log-probabilities are not
    /// needed.
    pub logprobs: Option<u8>,
    /// Whether to compute the [mass](super::Choice::mass) of each mask.
    pub mass: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            logit_bias: Vec::new(),
            seed: None,
            logprobs: None,
            mass: false,
        }
    }
}

impl Sampling {
    /// Always takes the best token.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// Checks whether every number is in its range.
    pub fn check(&self) -> Result<(), SamplingError> {
        within("temperature", self.temperature, 0.0, 100.0)?;
        within("top_p", self.top_p, 0.0, 1.0)?;
        within("min_p", self.min_p, 0.0, 1.0)?;
        within("repetition_penalty", self.repetition_penalty, 0.01, 10.0)?;
        within("frequency_penalty", self.frequency_penalty, -2.0, 2.0)?;
        within("presence_penalty", self.presence_penalty, -2.0, 2.0)?;
        if self.logit_bias.len() > MAX_BIASES {
            let problem =
                format!("has {} entries, but at most {MAX_BIASES} are allowed", self.logit_bias.len());
            return Err(SamplingError { field: "logit_bias", problem });
        }
        for (_, bias) in &self.logit_bias {
            within("logit_bias", *bias, -100.0, 100.0)?;
        }
        if let Some(top) = self.logprobs.filter(|top| *top > MAX_TOP_LOGPROBS) {
            let problem = format!("is {top}, but at most {MAX_TOP_LOGPROBS} are allowed");
            return Err(SamplingError { field: "top_logprobs", problem });
        }
        Ok(())
    }

    /// Whether earlier tokens affect the result.
    pub(super) fn repeats_matter(&self) -> bool {
        let deviations = [self.repetition_penalty - 1.0, self.frequency_penalty, self.presence_penalty];
        deviations.iter().any(|&deviation| deviation != 0.0)
    }
}

fn within(field: &'static str, number: f32, least: f32, most: f32) -> Result<(), SamplingError> {
    if number >= least && number <= most {
        return Ok(());
    }
    Err(SamplingError { field, problem: format!("is {number}, but must be between {least} and {most}") })
}

/// A number that is out of range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingError {
    /// The name of the field in APIs.
    pub field: &'static str,
    problem: String,
}

impl fmt::Display for SamplingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.problem)
    }
}

impl std::error::Error for SamplingError {}
