//! Collects one answer from its events.
//!
//! With tools, or if the model's format distinguishes thoughts from answers, the text is parsed with the same tree that
//! constrains it ([`maskwright::stream`]), into parts: text, reasoning, calls. Otherwise all of it is text.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use maskwright::stream::{self, Reader};
use maskwright_runtime::{Reason, Usage, What, scheduler::Written};
use maskwright_vocab::Vocabulary;
use serde_json::{Value, json};

use super::Compile;
use crate::state::new_id;

/// One answer, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    reading: Option<Reading>,
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) tokens: Vec<Written>,
    pub(crate) end: Option<(Reason, Usage)>,
    /// Whether nothing was written after the last call.
    ends_with_call: bool,
}

/// The parser of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) reader: Reader,
    pub(crate) vocabulary: Arc<Vocabulary>,
    /// The tools that take a text.
    pub(crate) custom: BTreeSet<String>,
    /// Whether to parse the text and not the tokens, because a stop string may cut it.
    pub(crate) by_text: bool,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) is_custom: bool,
    /// Whether the call is complete.
    pub(crate) is_done: bool,
}

/// Something that was added to an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Reasoning(String),
    /// A call has begun: its index among the calls.
    Begun(usize),
    /// More of the call's arguments, or of its input.
    Arguments(usize, String),
    /// The call is complete.
    Done(usize),
}

impl Gathered {
    /// Creates an answer that is parsed while it is written.
    pub(crate) fn read_by(reading: Option<Reading>) -> Self {
        Self { reading, ..Self::default() }
    }

    /// Processes an event and returns the parts that it adds. The tokens of the event are appended to [`Self::tokens`].
    pub(crate) fn take(&mut self, what: What) -> Vec<Part> {
        match what {
            What::More { tokens, text } => {
                let known = self.tokens.len();
                self.tokens.extend(tokens);
                self.add(text, known, None)
            }
            What::Finished { text, reason, usage } => {
                self.end = Some((reason, usage));
                self.add(text, self.tokens.len(), Some(reason))
            }
            // Failures are errors of the whole request.
            What::Failed(_) => Vec::new(),
        }
    }

    /// Adds a text, the tokens from index `known` on, and possibly the end.
    fn add(&mut self, text: String, known: usize, end: Option<Reason>) -> Vec<Part> {
        let Some(reading) = &mut self.reading else {
            self.text += &text;
            return if text.is_empty() { Vec::new() } else { vec![Part::Text(text)] };
        };
        let mut events = Vec::new();
        if reading.by_text {
            reading.reader.feed(&text, &mut events);
        } else {
            for written in self.tokens.get(known..).unwrap_or_default() {
                reading.reader.feed_token(written.token, &reading.vocabulary, &mut events);
            }
        }
        match end {
            None => {}
            // The beginning of a marker is not text.
            Some(Reason::Length) => _ = reading.reader.cut(&mut events),
            Some(Reason::Stop) => _ = reading.reader.finish(&mut events),
        }
        let custom = reading.custom.clone();
        events.into_iter().filter_map(|event| self.part(event, &custom)).collect()
    }

    fn part(&mut self, event: stream::Event, custom: &BTreeSet<String>) -> Option<Part> {
        match event {
            stream::Event::Text(text) => {
                self.ends_with_call = false;
                self.text += &text;
                Some(Part::Text(text))
            }
            stream::Event::Reasoning(text) => {
                self.ends_with_call = false;
                self.reasoning += &text;
                Some(Part::Reasoning(text))
            }
            stream::Event::CallBegun { name, .. } => {
                let is_custom = custom.contains(&name);
                let id = new_id("call_");
                self.ends_with_call = false;
                self.calls.push(Call { id, name, arguments: String::new(), is_custom, is_done: false });
                Some(Part::Begun(self.calls.len() - 1))
            }
            stream::Event::ArgumentDelta { index, delta } => {
                self.calls.get_mut(index)?.arguments += &delta;
                Some(Part::Arguments(index, delta))
            }
            stream::Event::CallDone { index, .. } => {
                self.calls.get_mut(index)?.is_done = true;
                self.ends_with_call = true;
                Some(Part::Done(index))
            }
            // A call that was cut off does not count: the answer ended with `length`. The trees of tools have no other
            // tags.
            _ => None,
        }
    }

    /// Returns why it ended, in the notation of the chat API. If it was cut off right after a call, it counts as
    /// complete.
    pub(crate) fn finish_reason(&self) -> &'static str {
        match self.end {
            Some((Reason::Length, _)) if !self.ends_with_call => "length",
            _ if self.calls.is_empty() => "stop",
            _ => "tool_calls",
        }
    }

    /// Whether it ended before it was complete.
    pub(crate) fn is_cut(&self) -> bool {
        self.finish_reason() == "length"
    }

    /// Returns the complete calls.
    pub(crate) fn made(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.is_done)
    }

    /// Returns its usage.
    pub(crate) fn usage(&self) -> Usage {
        self.end.map(|(_, usage)| usage).unwrap_or_default()
    }
}

/// Returns the total usage of some answers, in the notation of the chat API. `per_prompt` is the number of answers to
/// each prompt.
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

/// Adds up the usage of answers. Answers to the same prompt share it, so it counts once.
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

/// Returns the timings of the first answer, since all answers ran in parallel.
pub(crate) fn timings(usage: &Usage, compile: Compile) -> Value {
    json!({
        "compile_micros": micros(compile.time),
        "compile_wait_micros": micros(compile.waited),
        "queued_micros": micros(usage.queued),
        "prefill_micros": micros(usage.prefill),
        "decode_micros": micros(usage.decode),
        "mask_micros": micros(usage.mask),
        "masks": usage.masks,
        "forced_tokens": usage.forced_tokens,
        "squeezed": usage.is_squeezed,
    })
}

/// Returns a time in microseconds, with fractions: a mask takes less than one.
pub(crate) fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e9).round() / 1e3
}
