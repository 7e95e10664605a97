//! One answer, put together from its events.

use maskwright_runtime::{Reason, Usage, What, scheduler::Written};
use serde_json::{Value, json};

/// One answer as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) tokens: Vec<Written>,
    pub(crate) end: Option<(Reason, Usage)>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) is_custom: bool,
}

/// Something that was added to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    #[expect(dead_code, reason = "comes with structural tags")]
    Reasoning(String),
}

impl Gathered {
    /// Takes an event; tells what it added. The tokens of the event are appended to [`Self::tokens`].
    pub(crate) fn take(&mut self, what: What) -> Vec<Part> {
        match what {
            What::More { tokens, text } => {
                self.tokens.extend(tokens);
                self.add(text)
            }
            What::Finished { text, reason, usage } => {
                self.end = Some((reason, usage));
                self.add(text)
            }
            // Failures are errors of the whole request.
            What::Failed(_) => Vec::new(),
        }
    }

    fn add(&mut self, text: String) -> Vec<Part> {
        if text.is_empty() {
            return Vec::new();
        }
        self.text += &text;
        vec![Part::Text(text)]
    }

    /// Why it ended, as the chat API says it.
    pub(crate) fn finish_reason(&self) -> &'static str {
        match self.end {
            Some((Reason::Length, _)) => "length",
            _ if self.calls.is_empty() => "stop",
            _ => "tool_calls",
        }
    }

    /// What it cost.
    pub(crate) fn usage(&self) -> Usage {
        self.end.map(|(_, usage)| usage).unwrap_or_default()
    }
}

/// What some answers cost together, as the chat API says it. `prompts` are how many prompts they answer.
pub(crate) fn usage(answers: &[Gathered], per_prompt: usize) -> Value {
    let total = total(answers, per_prompt);
    json!({
        "prompt_tokens": total.prompt,
        "completion_tokens": total.answer,
        "total_tokens": total.prompt + total.answer,
        "prompt_tokens_details": {"cached_tokens": total.reused, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

/// Sums over answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) prompt: usize,
    pub(crate) reused: usize,
    pub(crate) answer: usize,
}

/// Answers to one prompt share it, so it counts once.
pub(crate) fn total(answers: &[Gathered], per_prompt: usize) -> Total {
    let mut total = Total::default();
    for (number, answer) in answers.iter().enumerate() {
        let usage = answer.usage();
        if number.is_multiple_of(per_prompt.max(1)) {
            total.prompt += usage.prompt_tokens;
            total.reused += usage.reused_tokens;
        }
        total.answer += usage.answer_tokens;
    }
    total
}

/// What answers cost in time, for those who ask: of the first answer, as all ran side by side.
pub(crate) fn timings(usage: &Usage, compile: std::time::Duration) -> Value {
    json!({
        "compile_micros": micros(compile),
        "queued_micros": micros(usage.queued),
        "prefill_micros": micros(usage.prefill),
        "decode_micros": micros(usage.decode),
        "mask_micros": micros(usage.mask),
        "masks": usage.masks,
        "forced_tokens": usage.forced_tokens,
    })
}

/// Microseconds, with what is left of them: a mask takes less than one.
pub(crate) fn micros(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e9).round() / 1e3
}
