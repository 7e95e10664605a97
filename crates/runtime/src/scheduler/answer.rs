//! One answer being written.

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

/// So many of the last tokens are shown to a guide that looks for forced ones.
const BEFORE: usize = 64;

/// What the answers to one request share.
pub(super) struct Shared {
    pub(super) sink: RefCell<Box<dyn Sink>>,
    pub(super) prompt: usize,
    pub(super) max_tokens: usize,
    /// Tokens that end the answer.
    pub(super) stop_tokens: Arc<[TokenId]>,
    pub(super) since: Instant,
    pub(super) started: Instant,
    pub(super) reused: usize,
    /// What tries of an exact draw know, if that is what the answers are.
    pub(super) round: Option<Round>,
}

/// One answer.
pub(super) struct Answer {
    /// A number that no other answer has.
    pub(super) id: u64,
    pub(super) shared: Rc<Shared>,
    pub(super) number: usize,
    pub(super) sequence: SequenceId,
    /// The prompt, and what was written.
    pub(super) tokens: Vec<TokenId>,
    /// How many of them the model has read.
    pub(super) fed: usize,
    pub(super) sampler: Sampler,
    /// In a try, the prefix that was written, if it is remembered.
    pub(super) prefix: Option<Prefix>,
    /// The mass of the last mask, until it was counted.
    pub(super) mass: Option<f32>,
    /// What the answer must look like. While something is done with the guide, it is elsewhere.
    pub(super) guide: Option<Box<dyn Guide>>,
    /// Looks for stop strings, if there is a guide and there are some. It goes where the guide goes.
    pub(super) search: Option<Box<Search>>,
    pub(super) place: Place,
    pub(super) pace: Pace,
    pub(super) leash: Leash,
    /// The mask for the next token, if there is a guide.
    pub(super) words: Vec<u32>,
    /// What the model thinks of the next token, while the mask is not there.
    pub(super) held: Option<Vec<f32>>,
    /// A token that was chosen, until the guide has taken it.
    pub(super) chosen: Option<Written>,
    pub(super) text: StopStream,
    /// What was held back when the search went away for good.
    pub(super) rest: String,
    /// Whether the guide had to leave tokens out because few were left.
    pub(super) is_squeezed: bool,
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

/// What comes behind a choice.
pub(super) enum Next {
    /// The model is asked for more.
    On,
    /// The guide is.
    Ask(Order),
    /// Nothing.
    Ended(Reason),
}

/// Where the guide of an answer is, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Here, or there is none.
    Home,
    /// It takes tokens.
    Taking(Instant),
    /// It fills the mask.
    Filling(Instant),
}

/// Whoever drops it ends all work on an answer.
#[derive(Debug, Default)]
pub(super) struct Leash(Arc<CancelToken>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Answer {
    /// Whether the prompt is not yet read.
    pub(super) fn is_reading(&self) -> bool {
        self.fed < self.shared.prompt
    }

    /// How many of its tokens the model can be given now. The last one of a prompt waits for what is forced behind it.
    pub(super) fn ready(&self) -> usize {
        self.tokens.len() - usize::from(matches!(self.place, Place::Taking(_)))
    }

    /// Until when others wait for its guide: for a while, unless it is known to be slow.
    pub(super) fn awaited(&self, patience: Duration) -> Option<Instant> {
        match self.place {
            Place::Taking(since) if !self.pace.takes_long => Some(since + patience),
            Place::Filling(since) if !self.pace.fills_long => Some(since + patience),
            _ => None,
        }
    }

    /// How many places of a batch it takes, or will take.
    pub(super) fn places(&self) -> usize {
        1 + self.others.len()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.shared.sink.borrow().is_closed()
    }

    /// Chooses the next token. An answer without a guide grows by it; a guide is asked first.
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

    /// Chooses a token under the mask, or has a try draw one.
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

    /// In a try, notes that the text is complete.
    fn note_end(&self) {
        if let Some(round) = &self.shared.round {
            round.prefixes.lock().unwrap_or_else(PoisonError::into_inner).end(self.prefix);
        }
    }

    /// Whether a token ends the answer. Under a constraint a stop token does so only where the answer is complete, as the end of the text does.
    fn ends(&mut self, token: TokenId, context: &Context<'_>) -> Result<bool, Failure> {
        if !self.shared.stop_tokens.contains(&token) {
            return Ok(false);
        }
        match &mut self.guide {
            Some(guide) if !context.vocabulary.eos().contains(&token) => Ok(guide.completes(&[])?),
            _ => Ok(true),
        }
    }

    /// What is to be done before the model is asked for anything: take what is forced, fill the mask.
    pub(super) fn start(&mut self, context: &Context<'_>) -> Option<Order> {
        let guide = self.guide.take()?;
        Some(self.order(guide, None, context))
    }

    fn order(&mut self, guide: Box<dyn Guide>, token: Option<TokenId>, context: &Context<'_>) -> Order {
        // Several answers part at the first token that is chosen, so what is forced comes behind it.
        let is_try = self.shared.round.is_some();
        let jumps = context.jump_forward && self.others.is_empty() && !is_try && !self.sampler.asks_for_all();
        let before = &self.tokens[self.tokens.len().saturating_sub(BEFORE)..];
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
            // The model may not want to end the text, and that is a part of what it thinks of it.
            is_to_end: is_try && !context.vocabulary.eos().is_empty(),
            left,
            stop: self.leash.0.clone(),
            pace: self.pace,
        };
        let now = Instant::now();
        self.place = if order.takes() { Place::Taking(now) } else { Place::Filling(now) };
        order
    }

    /// Grows by what the guide has taken.
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

    /// Adds one token, and what the search says that it adds to the text, if there is one. Returns why the answer ends with it, if it does.
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

    /// Tokens of the answer.
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
            is_squeezed: self.is_squeezed,
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
