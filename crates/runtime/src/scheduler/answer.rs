//! The state of one answer.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use maskwright::{CancelToken, StopStream, exact::Place as Prefix};
use maskwright_vocab::{TokenId, Vocabulary};

use super::{
    Event, Failure, Reason, Round, Sink, Usage, What, Written,
    masks::{End, Order, Pace, Taken},
    search::Search,
};
use crate::{
    guide::Guide,
    model::SequenceId,
    sampler::{Choice, Sampler, Untaken},
};

/// The number of last tokens that are passed to a guide for finding forced tokens.
const MAX_TOKENS_BEFORE: usize = 64;

/// The data that the answers to one request share.
pub(super) struct Shared {
    pub(super) sink: RefCell<Box<dyn Sink>>,
    pub(super) prompt: usize,
    pub(super) max_tokens: usize,
    /// The tokens that end the answer.
    pub(super) stop_tokens: Arc<[TokenId]>,
    pub(super) since: Instant,
    pub(super) started: Instant,
    pub(super) reused: usize,
    /// The knowledge that tries of an exact draw share, if the answers are such tries.
    pub(super) round: Option<Round>,
}

/// One answer.
pub(super) struct Answer {
    /// A unique id.
    pub(super) id: u64,
    pub(super) shared: Rc<Shared>,
    pub(super) number: usize,
    pub(super) sequence: SequenceId,
    /// The prompt and the tokens that were written.
    pub(super) tokens: Vec<TokenId>,
    /// The number of them that the model has read.
    pub(super) fed: usize,
    pub(super) sampler: Sampler,
    /// In a try, the prefix that was written, if it is remembered.
    pub(super) prefix: Option<Prefix>,
    /// The mass of the last mask, until it was counted.
    pub(super) mass: Option<f32>,
    /// The guide for the answer; `None` if there is none, or while another thread uses it.
    pub(super) guide: Option<Box<dyn Guide>>,
    /// The search for stop strings, if there are a guide and stop strings. It is always with the guide.
    pub(super) search: Option<Box<Search>>,
    pub(super) place: Place,
    pub(super) pace: Pace,
    pub(super) cancel_on_drop: CancelOnDrop,
    /// The mask for the next token, if there is a guide.
    pub(super) words: Vec<u32>,
    /// The logits for the next token, while the mask is not ready.
    pub(super) held: Option<Vec<f32>>,
    /// The chosen token, until the guide has accepted it.
    pub(super) chosen: Option<Written>,
    pub(super) text: StopStream,
    /// The text that was held back when the search was dropped.
    pub(super) rest: String,
    /// Whether the guide had to forbid tokens because few were left.
    pub(super) is_squeezed: bool,
    /// Other answers to the same prompt, which begin when the model has read it.
    pub(super) others: Vec<(Sampler, StopStream)>,
    pub(super) first: Option<Instant>,
    pub(super) forced: usize,
    pub(super) mask: Duration,
    /// The time that the mask for the next token took.
    pub(super) last_mask: Option<Duration>,
    pub(super) masks: usize,
}

/// Whether a token ends an answer.
pub(super) type Outcome = Result<Option<Reason>, Failure>;

/// What follows after a choice.
pub(super) enum Next {
    /// The model computes the next token.
    On,
    /// The guide processes this order.
    Ask(Order),
    /// The answer has ended.
    Ended(Reason),
}

/// The location of an answer's guide, and since when it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The guide is here, or there is none.
    Home,
    /// The guide is accepting tokens.
    Taking(Instant),
    /// The guide is filling the mask.
    Filling(Instant),
}

/// Cancels all work on an answer on drop.
#[derive(Debug, Default)]
pub(super) struct CancelOnDrop(Arc<CancelToken>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Answer {
    /// Whether the prompt was not read completely yet.
    pub(super) fn is_reading(&self) -> bool {
        self.fed < self.shared.prompt
    }

    /// Returns how many of its tokens the model may be fed now. The last token waits while the guide finds forced
    /// tokens after it.
    pub(super) fn ready(&self) -> usize {
        self.tokens.len() - usize::from(matches!(self.place, Place::Taking(_)))
    }

    /// Returns until when other answers wait for its guide: for a while, unless the guide is known to be slow.
    pub(super) fn awaited(&self, patience: Duration) -> Option<Instant> {
        match self.place {
            Place::Taking(since) if !self.pace.takes_long => Some(since + patience),
            Place::Filling(since) if !self.pace.fills_long => Some(since + patience),
            _ => None,
        }
    }

    /// Returns how many places of a batch it uses, or will use.
    pub(super) fn places(&self) -> usize {
        1 + self.others.len()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.shared.sink.borrow().is_closed()
    }

    /// Chooses the next token. An answer without a guide grows by it; otherwise the guide must accept it first.
    pub(super) fn choose(&mut self, logits: &mut [f32], context: &Context<'_>) -> Result<Next, Failure> {
        self.first.get_or_insert_with(Instant::now);
        let choice = self.pick(logits)?;
        self.mass = choice.mass;
        if self.ends(choice.token, context)? {
            self.note_end();
            return Ok(Next::Ended(Reason::Stop));
        }
        let chosen = Written {
            token: choice.token,
            is_forced: false,
            logprobs: choice.logprobs,
            mask: self.last_mask.take(),
            mass: choice.mass,
        };
        if let Some(guide) = self.guide.take() {
            let token = chosen.token;
            self.chosen = Some(chosen);
            return Ok(Next::Ask(self.order(guide, Some(token), context)));
        }
        let mut more = More::default();
        let outcome = self.grow(chosen, None, false, context, &mut more);
        self.tell(more);
        Ok(outcome.map_or(Next::On, Next::Ended))
    }

    /// Chooses a token under the mask, or draws one for a try.
    fn pick(&mut self, logits: &mut [f32]) -> Result<Choice, Failure> {
        let mask = self.guide.is_some().then_some(&self.words[..]);
        let (Some(round), Some(mask)) = (&self.shared.round, mask) else {
            let (guide, mut weighed) = (&mut self.guide, Ok(()));
            let choice = self.sampler.choose_by(logits, mask, |row| {
                weighed = guide.as_mut().map_or(Ok(()), |guide| guide.weigh(row));
            });
            weighed?;
            return choice.map_err(|_| Failure::NoToken);
        };
        let mut prefixes = round.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = (&mut *prefixes, self.prefix, round.mode);
        match self.sampler.attempt(logits, mask, known) {
            Ok((choice, prefix)) => {
                self.prefix = prefix;
                Ok(choice)
            }
            Err(Untaken::Rejected) => Err(Failure::Rejected),
            Err(Untaken::NoToken) => Err(Failure::NoToken),
        }
    }

    /// Records that a try has completed its text.
    fn note_end(&self) {
        if let Some(round) = &self.shared.round {
            round.prefixes.lock().unwrap_or_else(PoisonError::into_inner).end(self.prefix);
        }
    }

    /// Whether a token ends the answer. Under a constraint, a stop token only ends it if the text is complete. The
    /// vocabulary's end tokens always end it, because the mask allows them only then.
    fn ends(&mut self, token: TokenId, context: &Context<'_>) -> Result<bool, Failure> {
        if !self.shared.stop_tokens.contains(&token) {
            return Ok(false);
        }
        match &mut self.guide {
            Some(guide) if !context.vocabulary.eos().contains(&token) => Ok(guide.completes(&[])?),
            _ => Ok(true),
        }
    }

    /// Returns the first order for the guide, before the model is used: accept forced tokens, fill the mask.
    pub(super) fn start(&mut self, context: &Context<'_>) -> Option<Order> {
        let guide = self.guide.take()?;
        Some(self.order(guide, None, context))
    }

    fn order(&mut self, guide: Box<dyn Guide>, token: Option<TokenId>, context: &Context<'_>) -> Order {
        // Several answers diverge at the first chosen token, so forced tokens can only come after that.
        let is_try = self.shared.round.is_some();
        let jumps = context.jump_forward && self.others.is_empty() && !is_try && !self.sampler.asks_for_all();
        let before = &self.tokens[self.tokens.len().saturating_sub(MAX_TOKENS_BEFORE)..];
        let left = (self.shared.max_tokens.saturating_sub(self.written()))
            .min(context.length.saturating_sub(self.tokens.len()));
        let order = Order {
            answer: self.id,
            guide,
            search: self.search.take(),
            words: std::mem::take(&mut self.words),
            token,
            before: jumps.then(|| before.to_vec()),
            ends: self.shared.stop_tokens.clone(),
            // A try counts whether the model would end the text, so it must choose the end itself.
            is_to_end: is_try && !context.vocabulary.eos().is_empty(),
            left,
            stop: self.cancel_on_drop.0.clone(),
            pace: self.pace,
        };
        let now = Instant::now();
        self.place = if order.takes() { Place::Taking(now) } else { Place::Filling(now) };
        order
    }

    /// Appends the tokens that the guide has accepted.
    pub(super) fn taken(&mut self, taken: Taken, context: &Context<'_>) -> Outcome {
        self.place = Place::Filling(Instant::now());
        let mut more = More::default();
        let chosen = self.chosen.take().filter(|_| taken.chosen);
        let forced = |token| Written { token, is_forced: true, logprobs: None, mask: None, mass: None };
        let all: Vec<Written> = chosen.into_iter().chain(taken.forced.into_iter().map(forced)).collect();
        let last = all.len();
        if taken.end == Ok(End::Finished) {
            self.note_end();
        }
        let mut texts = taken.texts.into_iter();
        let mut ended = None;
        for (number, written) in (1..).zip(all) {
            let is_finished = number == last && taken.end == Ok(End::Finished);
            ended = self.grow(written, texts.next(), is_finished, context, &mut more);
            if ended.is_some() {
                break;
            }
        }
        self.rest = taken.rest;
        self.tell(more);
        match (ended, taken.end) {
            (Some(reason), _) => Ok(Some(reason)),
            (None, Err(failure)) => Err(failure),
            (None, Ok(End::Ended)) => Ok(Some(Reason::Stop)),
            (None, Ok(_)) => Ok(None),
        }
    }

    fn tell(&self, more: More) {
        if !more.tokens.is_empty() {
            self.send(What::More { tokens: more.tokens, text: more.text });
        }
    }

    /// Adds one token, and the text that the search has released for it, if there is a search. Returns the reason if
    /// the answer ends with this token.
    fn grow(
        &mut self,
        written: Written,
        shown: Option<String>,
        is_finished: bool,
        context: &Context<'_>,
        more: &mut More,
    ) -> Option<Reason> {
        let token = written.token;
        self.tokens.push(token);
        self.sampler.accept(token);
        self.forced += usize::from(written.is_forced);
        more.tokens.push(written);
        more.text += &shown.unwrap_or_else(|| self.text.push(context.vocabulary.bytes(token)));
        if self.text.stopped().is_some() || is_finished {
            return Some(Reason::Stop);
        }
        let is_full = self.written() >= self.shared.max_tokens || self.tokens.len() >= context.length;
        is_full.then_some(Reason::Length)
    }

    /// Returns the number of tokens of the answer.
    pub(super) fn written(&self) -> usize {
        self.tokens.len() - self.shared.prompt
    }

    pub(super) fn finish(&mut self, reason: Reason) {
        let mut text = std::mem::take(&mut self.rest);
        text += &self.search.as_mut().map(|search| search.finish()).unwrap_or_default();
        text += &self.text.finish();
        let usage = self.usage();
        self.send(What::Finished { text, reason, usage });
    }

    /// Ends it, and the other answers to the same prompt that have not begun.
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
            is_squeezed: self.is_squeezed,
        }
    }
}

/// The environment of answers.
pub(super) struct Context<'w> {
    pub(super) vocabulary: &'w Vocabulary,
    /// The maximum number of tokens of a text.
    pub(super) length: usize,
    pub(super) jump_forward: bool,
}

/// The tokens and the text that a step adds to an answer.
#[derive(Default)]
struct More {
    tokens: Vec<Written>,
    text: String,
}
