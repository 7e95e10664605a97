//! The thread that owns the model: it admits requests, feeds the model, and chooses tokens, in a loop.
//!
//! All work with guides is done on other threads ([`masks`](super::masks)), and the other answers only wait for it for
//! a short time. An answer whose guide is late is skipped: it is not fed while tokens are being accepted, and if the
//! model has read all of it before the mask is ready, its logits are held. When the guide is back, the answer continues
//! as if nothing had happened, so the output does not depend on timing.

use std::{
    cell::RefCell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{Arc, PoisonError, atomic::Ordering, mpsc},
    time::{Duration, Instant},
};

use maskwright_vocab::Vocabulary;

use super::{
    Event, Failure, Job, Options, Shared, Statistics, What,
    answer::{self, Answer, CancelOnDrop, Context, Next, Outcome, Place},
    masks::{Filled, Masks, News, Pace, Work},
    prefix::{Kept, common},
    search::Search,
};
use crate::{
    model::{Feed, Logits, Model, SequenceId, Wanted},
    sampler::Sampler,
};

pub(super) struct Worker {
    model: Box<dyn Model>,
    vocabulary: Arc<Vocabulary>,
    options: Options,
    shared: Arc<Shared>,
    jobs: mpsc::Receiver<Job>,
    /// Whether more jobs can come.
    is_open: bool,
    queue: VecDeque<Job>,
    answers: Vec<Answer>,
    /// The id of the next answer.
    next: u64,
    kept: Kept,
    masks: Masks,
    logits: Logits,
    /// The time that the model took for one token when it last read a prompt.
    reading: Option<Duration>,
    statistics: Statistics,
}

/// The tokens that one answer is fed in a step.
struct Part {
    answer: usize,
    end: usize,
    /// Whether these are all of its tokens, so that a token is chosen after them.
    is_last: bool,
}

/// How long other answers wait in each step until tokens are accepted, and again until masks are filled: 20 ms in
/// total.
const STEP_PATIENCE: Duration = Duration::from_millis(10);
/// The target duration of a step that reads prompts, while other answers wait and otherwise. The corresponding number
/// of tokens is only an estimate.
const STEP_TIME_BESIDE: Duration = Duration::from_millis(50);
const STEP_TIME_ALONE: Duration = Duration::from_millis(250);
/// The minimum number of prompt tokens in a step.
const LEAST_READ: usize = 8;
/// If all guides are late, how long until a new or dropped request is noticed.
const NEWS_INTERVAL: Duration = Duration::from_millis(2);

/// The reason why a step was not computed.
struct Unfed {
    failure: Failure,
    /// Whether it may succeed with fewer answers.
    is_shortage: bool,
}

impl Worker {
    pub(super) fn new(
        model: Box<dyn Model>,
        vocabulary: Arc<Vocabulary>,
        options: Options,
        shared: Arc<Shared>,
        jobs: mpsc::Receiver<Job>,
    ) -> Self {
        Self {
            model,
            vocabulary,
            kept: Kept::new(options.kept_texts, options.kept_tokens),
            masks: Masks::new(options.max_batch),
            options,
            shared,
            jobs,
            is_open: true,
            queue: VecDeque::new(),
            answers: Vec::new(),
            next: 0,
            logits: Logits::new(),
            reading: None,
            statistics: Statistics::default(),
        }
    }

    pub(super) fn run(mut self) {
        while self.receive() {
            self.drop_gone();
            self.drop_late();
            self.admit();
            self.step();
            self.publish();
        }
        let stopped = |answer: usize| Event { answer, what: What::Failed(Failure::Stopped) };
        for answer in &self.answers {
            answer.shared.sink.borrow_mut().send(stopped(answer.number));
        }
        // This cancels the work with their guides.
        self.answers.clear();
        for mut job in self.queue.drain(..).chain(self.jobs.try_iter()) {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            job.sink.send(stopped(0));
        }
    }

    /// Receives new jobs, and waits for one if there is nothing else to do. Returns `false` at the end.
    fn receive(&mut self) -> bool {
        if self.answers.is_empty() && self.queue.is_empty() {
            let Ok(job) = self.jobs.recv() else { return false };
            self.queue.push_back(job);
        }
        while self.is_open {
            match self.jobs.try_recv() {
                Ok(job) => self.queue.push_back(job),
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => self.is_open = false,
            }
        }
        !self.shared.is_stopped.load(Ordering::Relaxed)
    }

    /// Drops requests whose receivers are gone.
    fn drop_gone(&mut self) {
        let before = self.queue.len();
        self.queue.retain(|job| !job.sink.is_closed());
        self.shared.waiting.fetch_sub(before - self.queue.len(), Ordering::Relaxed);
        for index in (0..self.answers.len()).rev() {
            if self.answers[index].is_gone() {
                self.leave(index);
            }
        }
    }

    /// If the server is about to end, drops answers whose guides are late.
    fn drop_late(&mut self) {
        if !self.shared.is_hurried.load(Ordering::Relaxed) {
            return;
        }
        let is_late = |answer: &Answer| match answer.place {
            Place::Home => false,
            Place::Taking(since) | Place::Filling(since) => since.elapsed() > STEP_PATIENCE,
        };
        let late = (0..self.answers.len()).filter(|index| is_late(&self.answers[*index]));
        self.end(late.map(|index| (index, Err(Failure::Stopped))).collect());
    }

    /// Removes an answer, cancels the work with its guide, and keeps its text for reuse.
    fn leave(&mut self, index: usize) {
        let mut answer = self.answers.remove(index);
        answer.tokens.truncate(answer.fed);
        self.kept.put(&mut *self.model, answer.sequence, answer.tokens);
    }

    fn admit(&mut self) {
        let mut taken: usize = self.answers.iter().map(Answer::places).sum();
        while let Some(job) = self.queue.front() {
            taken += job.request.answers;
            if taken > self.options.max_batch.max(1) {
                break;
            }
            if let Some(job) = self.queue.pop_front() {
                self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
                self.begin(job);
            }
        }
    }

    fn begin(&mut self, job: Job) {
        let Job { request, stops, mut sink, since } = job;
        let vocabulary = self.vocabulary.clone();
        let first = request.round.as_ref().map_or(0, |round| round.first);
        let root =
            |round: &super::Round| round.prefixes.lock().unwrap_or_else(PoisonError::into_inner).root();
        let prefix = request.round.as_ref().map(root);
        let answer = |number| {
            let sampler = Sampler::new(&request.sampling, &request.prompt, first + number);
            Ok((sampler.map_err(|error| error.to_string())?, stops.stream()))
        };
        let answers = (0..request.answers as u64).map(answer).collect::<Result<Vec<_>, String>>();
        // Requests were checked when they were submitted.
        let (mut others, sequence) = match (answers, self.open(&request.prompt)) {
            (Ok(answers), Ok(sequence)) if !answers.is_empty() => (answers, sequence),
            (Err(reason), _) | (_, Err(reason)) => {
                return sink.send(Event { answer: 0, what: What::Failed(Failure::Internal(reason)) });
            }
            (Ok(_), Ok((sequence, _))) => return self.model.close(sequence),
        };
        let (sequence, reused) = sequence;
        let (sampler, text) = others.remove(0);
        let mut stop_tokens = request.stop_tokens;
        stop_tokens.extend_from_slice(self.vocabulary.eos());
        let id = self.number();
        let shared = answer::Shared {
            sink: RefCell::new(sink),
            prompt: request.prompt.len(),
            max_tokens: request.max_tokens.unwrap_or(usize::MAX),
            stop_tokens: stop_tokens.into(),
            since,
            started: Instant::now(),
            reused,
            round: request.round,
        };
        self.statistics.reused_tokens += reused as u64;
        let answer = Answer {
            id,
            shared: Rc::new(shared),
            number: 0,
            sequence,
            tokens: request.prompt,
            fed: reused,
            sampler,
            prefix,
            mass: None,
            words: vec![0; if request.guide.is_some() { self.model.width().div_ceil(32) } else { 0 }],
            guide: request.guide,
            search: None,
            rest: String::new(),
            is_squeezed: false,
            place: Place::Home,
            pace: Pace::default(),
            cancel_on_drop: CancelOnDrop::default(),
            held: None,
            chosen: None,
            text,
            others,
            first: None,
            forced: 0,
            mask: Duration::ZERO,
            last_mask: None,
            masks: 0,
        };
        let is_guided = answer.guide.is_some();
        self.answers.push(answer);
        let index = self.answers.len() - 1;
        // The search for stop strings is done together with the guide.
        let search = |answer: &mut Answer, _: &Context<'_>| {
            let search = Search::new(&stops, &**answer.guide.as_ref()?, &vocabulary);
            answer.search = search.map(Box::new);
            Some(())
        };
        if is_guided && let Err(failure) = self.ask(index, search) {
            return self.end(vec![(index, Err(failure))]);
        }
        if let Some(order) = self.ask(index, Answer::start).ok().flatten()
            && let Err(failure) = self.masks.begin(order)
        {
            self.end(vec![(index, Err(failure))]);
        }
    }

    /// Returns a new id for an answer.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Returns a sequence for a prompt, and how much of the prompt it has already read: at most all but the last token,
    /// because the model must compute what follows that.
    fn open(&mut self, prompt: &[maskwright_vocab::TokenId]) -> Result<(SequenceId, usize), String> {
        let wanted = &prompt[..prompt.len() - 1];
        let running =
            self.answers.iter().map(|answer| (answer.sequence, common(&answer.tokens[..answer.fed], wanted)));
        let best = running.chain(self.kept.longest(wanted)).max_by_key(|&(_, length)| length);
        let Some((sequence, length)) = best.filter(|&(_, length)| length > 0) else {
            return Ok((self.model.open(), 0));
        };
        let fork = |model: &mut dyn Model| model.fork(sequence, length);
        match self.kept.make_room(&mut *self.model, Some(sequence), fork) {
            Ok(fork) => Ok((fork, length)),
            // There is no room for both texts, but there may be if the prompt's own text replaces the similar one.
            Err(error) if error.is_shortage() => Ok((self.model.open(), 0)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Runs one step of the model, and processes its results.
    fn step(&mut self) {
        let mut ends = Vec::new();
        self.go_on(&mut ends);
        self.wait(|answer| matches!(answer.place, Place::Taking(_)), &mut ends);
        self.end(ends);
        let parts = self.plan();
        let mut ends = Vec::new();
        if parts.is_empty() {
            if !self.answers.is_empty()
                && let Some(news) = self.masks.wait(NEWS_INTERVAL)
            {
                self.hear(news, &mut ends);
                self.end(ends);
            }
            return;
        }
        let tokens: usize = parts.iter().map(|part| part.end - self.answers[part.answer].fed).sum();
        let is_reading = parts.iter().any(|part| self.answers[part.answer].is_reading());
        let begin = Instant::now();
        let result = self.feed(&parts);
        let time = begin.elapsed();
        self.statistics.model += time;
        if is_reading {
            self.reading = Some(time / u32::try_from(tokens).unwrap_or(u32::MAX).max(1));
        }
        self.statistics.steps += 1;
        let is_chosen =
            |answer: &Answer| matches!(answer.place, Place::Filling(_)) && answer.fed == answer.tokens.len();
        self.wait(is_chosen, &mut ends);
        let begin = Instant::now();
        match result {
            Ok(()) => self.choose(&parts, &mut ends),
            Err(Unfed { failure, is_shortage }) => {
                // Without the last answer, the others may have enough room: they try again.
                let failed = if is_shortage { &parts[parts.len() - 1..] } else { &parts[..] };
                for part in failed {
                    note(&mut ends, part.answer, Err(failure.clone()));
                }
            }
        }
        self.statistics.sample += begin.elapsed();
        self.end(ends);
    }

    /// Decides how many tokens each answer is fed: answers that are being written get all they have, and answers that
    /// read prompts share the rest of the step. Half of that is for the oldest, and the rest for those with the fewest
    /// tokens left to read. So short prompts do not wait for a long one, and the long one still makes progress.
    fn plan(&self) -> Vec<Part> {
        let unread = |answer: &Answer| answer.ready().saturating_sub(answer.fed);
        let mut reading: Vec<usize> =
            (0..self.answers.len()).filter(|index| self.answers[*index].is_reading()).collect();
        // All other answers wait for this step.
        let (most, time) = match self.answers.len() {
            1 => (self.options.prefill, STEP_TIME_ALONE),
            _ => (self.options.prefill_beside, STEP_TIME_BESIDE),
        };
        let count =
            |one: Duration| usize::try_from(time.as_nanos() / one.as_nanos().max(1)).unwrap_or(usize::MAX);
        let in_time = self.reading.map_or(most, count);
        let mut left = most.min(in_time.max(LEAST_READ)).max(1);
        let mut shares = vec![0; self.answers.len()];
        if let Some(&first) = reading.first() {
            shares[first] = unread(&self.answers[first]).min(left.div_ceil(2));
            left -= shares[first];
        }
        reading.sort_by_key(|index| unread(&self.answers[*index]));
        for index in reading {
            let more = (unread(&self.answers[index]) - shares[index]).min(left);
            shares[index] += more;
            left -= more;
        }
        let mut parts = Vec::new();
        for (index, answer) in self.answers.iter().enumerate() {
            let count = if answer.is_reading() { shares[index] } else { unread(answer) };
            if count > 0 {
                let end = answer.fed + count;
                parts.push(Part { answer: index, end, is_last: end == answer.tokens.len() });
            }
        }
        parts
    }

    /// Processes the results of guides, and chooses tokens for answers whose masks were late.
    fn go_on(&mut self, ends: &mut Vec<(usize, Outcome)>) {
        while let Some(news) = self.masks.try_news() {
            self.hear(news, ends);
        }
        for index in 0..self.answers.len() {
            let answer = &mut self.answers[index];
            if answer.place == Place::Home
                && !is_ending(ends, index)
                && let Some(mut logits) = answer.held.take()
            {
                self.pick(index, &mut logits, ends);
            }
        }
    }

    /// Waits for guides, for a limited time.
    fn wait(&mut self, is_meant: impl Fn(&Answer) -> bool, ends: &mut Vec<(usize, Outcome)>) {
        let begin = Instant::now();
        loop {
            while let Some(news) = self.masks.try_news() {
                self.hear(news, ends);
            }
            let waited = self.answers.iter().enumerate();
            let waited = waited.filter(|(index, answer)| is_meant(answer) && !is_ending(ends, *index));
            let until = waited.filter_map(|(_, answer)| answer.awaited(STEP_PATIENCE)).max();
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let Some(left) = left.filter(|left| !left.is_zero()) else { break };
            if let Some(news) = self.masks.wait(left) {
                self.hear(news, ends);
            }
        }
        self.statistics.mask_wait += begin.elapsed();
    }

    /// Processes the result of a guide. Results for answers that have ended are ignored.
    fn hear(&mut self, news: News, ends: &mut Vec<(usize, Outcome)>) {
        let Some(index) = self.answers.iter().position(|answer| answer.id == news.answer) else { return };
        let is_long = news.time > STEP_PATIENCE;
        let outcome = match news.what {
            Work::Taken(taken) => {
                self.answers[index].pace.takes_long = is_long;
                self.ask(index, |answer, context| answer.taken(taken, context)).and_then(|outcome| outcome)
            }
            Work::Filled(result) => {
                let answer = &mut self.answers[index];
                answer.pace.fills_long = is_long;
                answer.place = Place::Home;
                answer.mask += news.time;
                answer.last_mask = Some(news.time);
                answer.masks += 1;
                self.statistics.mask += news.time;
                result.map(|Filled { mut guide, search, words, temperature }| {
                    answer.is_squeezed |= guide.is_squeezed();
                    answer.sampler.set_temperature(temperature);
                    (answer.guide, answer.search, answer.words) = (Some(guide), search, words);
                    None
                })
            }
        };
        note(ends, index, outcome);
    }

    /// Feeds the model. Kept texts are dropped if there is not enough room.
    fn feed(&mut self, parts: &[Part]) -> Result<(), Unfed> {
        let Self { model, answers, kept, logits, statistics, .. } = self;
        let feeds: Vec<Feed<'_>> = parts
            .iter()
            .map(|part| {
                let answer = &answers[part.answer];
                let wanted = if part.is_last { Wanted::Last } else { Wanted::None };
                Feed { sequence: answer.sequence, tokens: &answer.tokens[answer.fed..part.end], wanted }
            })
            .collect();
        let step = || kept.make_room(&mut **model, None, |model| model.step(&feeds, logits));
        catch_unwind(AssertUnwindSafe(step))
            .map_err(|panic| Unfed { failure: Failure::panicked(panic.as_ref()), is_shortage: false })?
            .map_err(|error| Unfed {
                failure: Failure::Model(error.to_string()),
                is_shortage: error.is_shortage(),
            })?;
        for part in parts {
            let answer = &mut answers[part.answer];
            let read = part.end.min(answer.shared.prompt).saturating_sub(answer.fed);
            statistics.prompt_tokens += read as u64;
            answer.fed = part.end;
        }
        Ok(())
    }

    /// Chooses a token for each answer that was fed all its tokens, and records which answers end. An answer whose mask
    /// is late must wait.
    fn choose(&mut self, parts: &[Part], ends: &mut Vec<(usize, Outcome)>) {
        let mut all = std::mem::replace(&mut self.logits, Logits::new());
        let wanted = parts.iter().filter(|part| part.is_last);
        for (row, part) in wanted.enumerate() {
            let Some(logits) = all.row_mut(row) else { continue };
            if is_ending(ends, part.answer) {
                continue;
            }
            let answer = &mut self.answers[part.answer];
            if answer.place == Place::Home {
                self.pick(part.answer, logits, ends);
            } else {
                answer.held = Some(logits.to_vec());
            }
        }
        self.logits = all;
    }

    /// Chooses a token for an answer, and for the other answers to the same prompt if they begin here.
    fn pick(&mut self, index: usize, logits: &mut [f32], ends: &mut Vec<(usize, Outcome)>) {
        let same = match self.branch(index) {
            Ok(same) => same,
            Err(failure) => return note(ends, index, Err(failure)),
        };
        for index in same {
            let mut logits = logits.to_vec();
            let outcome = self.advance(index, &mut logits);
            note(ends, index, outcome);
        }
        let outcome = self.advance(index, logits);
        note(ends, index, outcome);
    }

    /// Chooses a token for an answer, and passes its guide on if it has one.
    fn advance(&mut self, index: usize, logits: &mut [f32]) -> Outcome {
        match self.ask(index, |answer, context| answer.choose(logits, context))?? {
            Next::On => Ok(None),
            Next::Ended(reason) => Ok(Some(reason)),
            Next::Ask(order) => self.masks.begin(order).map(|()| None),
        }
    }

    /// Calls a function with an answer, and counts the tokens that it adds.
    fn ask<T>(
        &mut self,
        index: usize,
        work: impl FnOnce(&mut Answer, &Context<'_>) -> T,
    ) -> Result<T, Failure> {
        let context = Context {
            vocabulary: &self.vocabulary,
            length: self.model.context(),
            jump_forward: self.options.jump_forward,
        };
        let answer = &mut self.answers[index];
        let (written, forced) = (answer.written(), answer.forced);
        let result = catch_unwind(AssertUnwindSafe(|| work(answer, &context)))
            .map_err(|panic| Failure::panicked(panic.as_ref()));
        if let Some(mass) = answer.mass.take() {
            self.statistics.masses.count(mass);
        }
        self.statistics.answer_tokens += (answer.written() - written) as u64;
        self.statistics.forced_tokens += (answer.forced - forced) as u64;
        result
    }

    /// Starts the other answers to the same prompt, with the same sequence, guide and mask.
    fn branch(&mut self, index: usize) -> Result<std::ops::Range<usize>, Failure> {
        let start = self.answers.len();
        let origin = &mut self.answers[index];
        let others = std::mem::take(&mut origin.others);
        let mut guides = Vec::new();
        for _ in &others {
            let fork = || {
                let search = origin.search.as_ref().map(|search| Box::new(search.fork()));
                (origin.guide.as_ref().map(|guide| guide.fork()), search)
            };
            let guide =
                catch_unwind(AssertUnwindSafe(fork)).map_err(|panic| Failure::panicked(panic.as_ref()))?;
            guides.push(guide);
        }
        let sequences = self.fork(index, others.len())?;
        let first = self.next + 1;
        self.next += others.len() as u64;
        let origin = &self.answers[index];
        let mut branches = Vec::new();
        for (number, ((mut sampler, text), ((guide, search), sequence))) in
            others.into_iter().zip(guides.into_iter().zip(sequences)).enumerate()
        {
            sampler.set_temperature(origin.sampler.wanted());
            branches.push(Answer {
                id: first + number as u64,
                shared: origin.shared.clone(),
                number: number + 1,
                sequence,
                tokens: origin.tokens.clone(),
                fed: origin.fed,
                sampler,
                prefix: origin.prefix,
                mass: None,
                guide,
                search,
                rest: String::new(),
                is_squeezed: origin.is_squeezed,
                place: Place::Home,
                pace: origin.pace,
                cancel_on_drop: CancelOnDrop::default(),
                held: None,
                chosen: None,
                words: origin.words.clone(),
                text,
                others: Vec::new(),
                first: None,
                forced: 0,
                mask: origin.mask,
                last_mask: origin.last_mask,
                masks: origin.masks,
            });
        }
        self.answers.extend(branches);
        Ok(start..self.answers.len())
    }

    /// Forks the sequence of an answer `count` times; none if there is not enough room for all.
    fn fork(&mut self, index: usize, count: usize) -> Result<Vec<SequenceId>, Failure> {
        let Self { model, answers, kept, .. } = self;
        let (sequence, length) = (answers[index].sequence, answers[index].fed);
        let mut forks = Vec::new();
        for _ in 0..count {
            match kept.make_room(&mut **model, None, |model| model.fork(sequence, length)) {
                Ok(fork) => forks.push(fork),
                Err(error) => {
                    for fork in forks {
                        model.close(fork);
                    }
                    return Err(Failure::Model(error.to_string()));
                }
            }
        }
        Ok(forks)
    }

    /// Sends the end of answers, and removes them.
    fn end(&mut self, mut ends: Vec<(usize, Outcome)>) {
        ends.sort_by_key(|(index, _)| std::cmp::Reverse(*index));
        for (index, outcome) in ends {
            let answer = &mut self.answers[index];
            match outcome {
                Ok(None) => continue,
                Ok(Some(reason)) => answer.finish(reason),
                Err(failure) => answer.fail(&failure),
            }
            self.leave(index);
        }
    }

    fn publish(&mut self) {
        self.statistics.running = self.answers.len();
        self.statistics.cache_bytes = self.model.cache_bytes();
        *self.shared.statistics.lock().unwrap_or_else(PoisonError::into_inner) = self.statistics;
    }
}

/// Records that an answer ends, unless it was already recorded.
fn note(ends: &mut Vec<(usize, Outcome)>, answer: usize, outcome: Outcome) {
    if outcome != Ok(None) && !is_ending(ends, answer) {
        ends.push((answer, outcome));
    }
}

/// Whether an answer is among those that end.
fn is_ending(ends: &[(usize, Outcome)], answer: usize) -> bool {
    ends.iter().any(|(ending, _)| *ending == answer)
}
