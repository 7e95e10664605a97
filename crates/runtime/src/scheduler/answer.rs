//! One answer being written.

use std::{
    any::Any,
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

use maskwright::StopStream;
use maskwright_vocab::{TokenId, Vocabulary};

use super::{Event, Failure, Reason, Sink, Usage, What, Written};
use crate::{
    guide::{Guide, GuideError},
    model::SequenceId,
    sampler::Sampler,
};

/// What the answers to one request share.
pub(super) struct Shared {
    pub(super) sink: RefCell<Box<dyn Sink>>,
    pub(super) prompt: usize,
    pub(super) max_tokens: usize,
    /// Tokens that end the answer.
    pub(super) stop_tokens: Vec<TokenId>,
    pub(super) since: Instant,
    pub(super) started: Instant,
    pub(super) reused: usize,
}

/// One answer.
pub(super) struct Answer {
    pub(super) shared: Rc<Shared>,
    pub(super) number: usize,
    pub(super) sequence: SequenceId,
    /// The prompt, and what was written.
    pub(super) tokens: Vec<TokenId>,
    /// How many of them the model has read.
    pub(super) fed: usize,
    pub(super) sampler: Sampler,
    pub(super) guide: Option<Box<dyn Guide>>,
    /// The mask for the next token, if there is a guide.
    pub(super) words: Vec<u32>,
    pub(super) text: StopStream,
    /// Other answers to the same prompt, which begin when it has been read.
    pub(super) others: Vec<(Sampler, StopStream)>,
    pub(super) first: Option<Instant>,
    pub(super) forced: usize,
    pub(super) mask: Duration,
    /// What the mask for the next token took.
    pub(super) last_mask: Option<Duration>,
    pub(super) masks: usize,
}

/// What a token does to an answer, besides making it longer.
pub(super) type Outcome = Result<Option<Reason>, Failure>;

impl Answer {
    /// Whether the prompt is not yet read.
    pub(super) fn is_reading(&self) -> bool {
        self.fed < self.shared.prompt
    }

    /// How many places of a batch it takes, or will take.
    pub(super) fn places(&self) -> usize {
        1 + self.others.len()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.shared.sink.borrow().is_closed()
    }

    /// Chooses the next token, takes what is forced behind it, and tells what came of it.
    pub(super) fn advance(&mut self, logits: &mut [f32], context: &Context<'_>) -> Outcome {
        self.first.get_or_insert_with(Instant::now);
        let mask = self.guide.is_some().then_some(&self.words[..]);
        let choice = self.sampler.choose(logits, mask).map_err(|_| Failure::NoToken)?;
        let mut more = More::default();
        let chosen = Written {
            token: choice.token,
            is_forced: false,
            logprobs: choice.logprobs,
            mask: self.last_mask.take(),
        };
        let mut outcome = self.grow(chosen, context, &mut more);
        if outcome == Ok(None) {
            outcome = self.jump(context, &mut more);
        }
        self.tell(more);
        outcome
    }

    /// Takes what is forced before the model is asked for anything.
    pub(super) fn start(&mut self, context: &Context<'_>) -> Outcome {
        let mut more = More::default();
        let outcome = self.jump(context, &mut more);
        self.tell(more);
        outcome
    }

    /// Takes what is forced.
    fn jump(&mut self, context: &Context<'_>, more: &mut More) -> Outcome {
        if !context.jump_forward {
            return Ok(None);
        }
        let forced = self.guide.as_mut().map(|guide| guide.forced(&self.tokens)).unwrap_or_default();
        for token in forced {
            let written = Written { token, is_forced: true, logprobs: None, mask: None };
            let outcome = self.grow(written, context, more);
            if outcome != Ok(None) {
                return outcome;
            }
        }
        Ok(None)
    }

    fn tell(&self, more: More) {
        if !more.tokens.is_empty() {
            self.send(What::More { tokens: more.tokens, text: more.text });
        }
    }

    /// Adds one token.
    fn grow(&mut self, written: Written, context: &Context<'_>, more: &mut More) -> Outcome {
        let token = written.token;
        if self.shared.stop_tokens.contains(&token) {
            return Ok(Some(Reason::Stop));
        }
        if let Some(guide) = &mut self.guide {
            guide.accept(token).map_err(|error: GuideError| Failure::Guide(error.to_string()))?;
        }
        self.tokens.push(token);
        self.sampler.accept(token);
        self.forced += usize::from(written.is_forced);
        more.tokens.push(written);
        more.text += &self.text.push(context.vocabulary.bytes(token));
        if self.text.stopped().is_some() || self.guide.as_mut().is_some_and(|guide| guide.is_finished()) {
            return Ok(Some(Reason::Stop));
        }
        let is_full = self.written() >= self.shared.max_tokens || self.tokens.len() >= context.length;
        Ok(is_full.then_some(Reason::Length))
    }

    /// Tokens of the answer.
    pub(super) fn written(&self) -> usize {
        self.tokens.len() - self.shared.prompt
    }

    pub(super) fn finish(&mut self, reason: Reason) {
        let text = self.text.finish();
        let usage = self.usage();
        self.send(What::Finished { text, reason, usage });
    }

    /// Ends it, and the others to the same prompt that have not begun.
    pub(super) fn fail(&mut self, failure: &Failure) {
        let others = std::mem::take(&mut self.others);
        self.send(What::Failed(failure.clone()));
        for number in 1..=others.len() {
            let event = Event { answer: number, what: What::Failed(failure.clone()) };
            self.shared.sink.borrow_mut().send(event);
        }
    }

    pub(super) fn send(&self, what: What) {
        self.shared.sink.borrow_mut().send(Event { answer: self.number, what });
    }

    fn usage(&self) -> Usage {
        let first = self.first.unwrap_or(self.shared.started);
        Usage {
            prompt_tokens: self.shared.prompt,
            reused_tokens: self.shared.reused,
            answer_tokens: self.written(),
            forced_tokens: self.forced,
            queued: self.shared.started - self.shared.since,
            prefill: first - self.shared.started,
            decode: first.elapsed(),
            mask: self.mask,
            masks: self.masks,
        }
    }
}

/// What answers must know of the world.
pub(super) struct Context<'w> {
    pub(super) vocabulary: &'w Vocabulary,
    /// The most tokens of a text.
    pub(super) length: usize,
    pub(super) jump_forward: bool,
}

/// What a step adds to an answer.
#[derive(Default)]
struct More {
    tokens: Vec<Written>,
    text: String,
}

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}
