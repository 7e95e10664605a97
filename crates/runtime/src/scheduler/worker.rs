//! The thread that owns the model: admit, feed, choose, again and again.

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
    answer::{self, Answer, Context, Outcome, panic_message},
    masks::{Masks, Order},
    prefix::{Kept, common},
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
    kept: Kept,
    masks: Masks,
    logits: Logits,
    statistics: Statistics,
}

/// What one answer is fed in a step.
struct Part {
    answer: usize,
    end: usize,
}

/// Why a step was not computed.
struct Unfed {
    failure: Failure,
    /// Whether it might be with fewer answers.
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
            options,
            shared,
            jobs,
            is_open: true,
            queue: VecDeque::new(),
            answers: Vec::new(),
            masks: Masks::start(),
            logits: Logits::new(),
            statistics: Statistics::default(),
        }
    }

    pub(super) fn run(mut self) {
        while self.receive() {
            self.drop_gone();
            self.admit();
            self.step();
            self.publish();
        }
        let stopped = |answer: usize| Event { answer, what: What::Failed(Failure::Stopped) };
        for answer in &self.answers {
            answer.shared.sink.borrow_mut().send(stopped(answer.number));
        }
        for mut job in self.queue.drain(..).chain(self.jobs.try_iter()) {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            job.sink.send(stopped(0));
        }
    }

    /// Takes new jobs, and waits for one if there is nothing else to do. `false` if this is the end.
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

    /// Forgets requests that nobody listens to.
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

    /// Takes an answer out; its text is kept for others.
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
        let answer = |number| {
            let sampler = Sampler::new(&request.sampling, &request.prompt, number);
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
        let shared = answer::Shared {
            sink: RefCell::new(sink),
            prompt: request.prompt.len(),
            max_tokens: request.max_tokens.unwrap_or(usize::MAX),
            stop_tokens,
            since,
            started: Instant::now(),
            reused,
        };
        self.statistics.reused_tokens += reused as u64;
        let answer = Answer {
            shared: Rc::new(shared),
            number: 0,
            sequence,
            tokens: request.prompt,
            fed: reused,
            sampler,
            words: vec![0; if request.guide.is_some() { self.model.width().div_ceil(32) } else { 0 }],
            guide: request.guide,
            text,
            others,
            first: None,
            forced: 0,
            mask: Duration::ZERO,
            last_mask: None,
            masks: 0,
        };
        self.answers.push(answer);
        // Several answers part at the first token that is chosen, so what is forced comes behind it.
        if self.answers.last().is_some_and(|answer| answer.others.is_empty()) {
            let index = self.answers.len() - 1;
            let outcome = self.advance(index, Answer::start);
            if outcome != Ok(None) {
                self.end(vec![(index, outcome)]);
            }
        }
    }

    /// A sequence for a prompt, and how much of it the sequence has read already: all but the last token at most, because
    /// somebody must be asked what follows it.
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
            // There is no room for both, but there may be without the text that the prompt begins like.
            Err(error) if error.is_shortage() => Ok((self.model.open(), 0)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// One step of the model, and what follows from it.
    fn step(&mut self) {
        let parts = self.plan();
        if parts.is_empty() {
            return;
        }
        for part in &parts {
            self.begin_mask(part);
        }
        let begin = Instant::now();
        let result = self.feed(&parts);
        self.statistics.model += begin.elapsed();
        self.statistics.steps += 1;
        let begin = Instant::now();
        let mut ends = self.collect_masks();
        self.statistics.mask_wait += begin.elapsed();
        let begin = Instant::now();
        match result {
            Ok(()) => self.choose(&parts, &mut ends),
            Err(Unfed { failure, is_shortage }) => {
                // Without the one that came last, the others may have room: they try again.
                let failed = if is_shortage { &parts[parts.len() - 1..] } else { &parts[..] };
                for part in failed {
                    if !is_ending(&ends, part.answer) {
                        ends.push((part.answer, Err(failure.clone())));
                    }
                }
            }
        }
        self.statistics.sample += begin.elapsed();
        self.end(ends);
    }

    /// Who is fed how much: those who write, all they have; those who read prompts, what is left of the step.
    fn plan(&self) -> Vec<Part> {
        let is_writing = self.answers.iter().any(|answer| !answer.is_reading());
        let mut left = if is_writing { self.options.prefill_beside } else { self.options.prefill }.max(1);
        let mut parts = Vec::new();
        for (index, answer) in self.answers.iter().enumerate() {
            let mut count = answer.tokens.len() - answer.fed;
            if answer.is_reading() {
                count = count.min(left);
                left -= count;
            }
            if count > 0 {
                parts.push(Part { answer: index, end: answer.fed + count });
            }
        }
        parts
    }

    /// The mask for the token behind what is fed, if a token will be chosen there.
    fn begin_mask(&mut self, part: &Part) {
        let answer = &mut self.answers[part.answer];
        if part.end == answer.tokens.len()
            && let Some(guide) = answer.guide.take()
        {
            let words = std::mem::take(&mut answer.words);
            self.masks.begin(Order { answer: part.answer, guide, words });
        }
    }

    /// Puts guides and masks back where they belong; tells whose are lost.
    fn collect_masks(&mut self) -> Vec<(usize, Outcome)> {
        let mut failed = Vec::new();
        for filled in self.masks.collect() {
            let answer = &mut self.answers[filled.answer];
            answer.mask += filled.time;
            answer.last_mask = Some(filled.time);
            answer.masks += 1;
            self.statistics.mask += filled.time;
            match filled.result {
                Ok((guide, words)) => (answer.guide, answer.words) = (Some(guide), words),
                Err(failure) => failed.push((filled.answer, Err(failure))),
            }
        }
        failed
    }

    /// Feeds the model. Texts that are only kept make room if there is too little.
    fn feed(&mut self, parts: &[Part]) -> Result<(), Unfed> {
        let Self { model, answers, kept, logits, statistics, .. } = self;
        let feeds: Vec<Feed<'_>> = parts
            .iter()
            .map(|part| {
                let answer = &answers[part.answer];
                let wanted = if part.end == answer.tokens.len() { Wanted::Last } else { Wanted::None };
                Feed { sequence: answer.sequence, tokens: &answer.tokens[answer.fed..part.end], wanted }
            })
            .collect();
        let step = || kept.make_room(&mut **model, None, |model| model.step(&feeds, logits));
        catch_unwind(AssertUnwindSafe(step))
            .map_err(|panic| Unfed {
                failure: Failure::Internal(panic_message(panic.as_ref())),
                is_shortage: false,
            })?
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

    /// Chooses a token for each answer that has been fed all its tokens, and notes who has ended.
    fn choose(&mut self, parts: &[Part], ends: &mut Vec<(usize, Outcome)>) {
        let mut all = std::mem::replace(&mut self.logits, Logits::new());
        let mut row = 0;
        for part in parts {
            if part.end < self.answers[part.answer].tokens.len() {
                continue;
            }
            let this = row;
            row += 1;
            if is_ending(ends, part.answer) {
                continue;
            }
            let same = match self.branch(part.answer) {
                Ok(same) => same,
                Err(failure) => {
                    ends.push((part.answer, Err(failure)));
                    continue;
                }
            };
            let Some(logits) = all.row_mut(this) else { continue };
            for index in same {
                let mut logits = logits.to_vec();
                let outcome = self.advance(index, |answer, context| answer.advance(&mut logits, context));
                ends.push((index, outcome));
            }
            let outcome = self.advance(part.answer, |answer, context| answer.advance(logits, context));
            ends.push((part.answer, outcome));
        }
        self.logits = all;
    }

    /// Lets an answer grow, and counts what it has grown by.
    fn advance(&mut self, index: usize, grow: impl FnOnce(&mut Answer, &Context<'_>) -> Outcome) -> Outcome {
        let context = Context {
            vocabulary: &self.vocabulary,
            length: self.model.context(),
            jump_forward: self.options.jump_forward,
        };
        let answer = &mut self.answers[index];
        let (written, forced) = (answer.written(), answer.forced);
        let outcome = catch_unwind(AssertUnwindSafe(|| grow(answer, &context)))
            .unwrap_or_else(|panic| Err(Failure::Internal(panic_message(panic.as_ref()))));
        self.statistics.answer_tokens += (answer.written() - written) as u64;
        self.statistics.forced_tokens += (answer.forced - forced) as u64;
        outcome
    }

    /// The other answers to the same prompt begin here, with the same sequence, guide and mask.
    fn branch(&mut self, index: usize) -> Result<std::ops::Range<usize>, Failure> {
        let start = self.answers.len();
        let origin = &mut self.answers[index];
        let others = std::mem::take(&mut origin.others);
        let mut guides = Vec::new();
        for _ in &others {
            let fork = || origin.guide.as_ref().map(|guide| guide.fork());
            let guide = catch_unwind(AssertUnwindSafe(fork))
                .map_err(|panic| Failure::Internal(panic_message(panic.as_ref())))?;
            guides.push(guide);
        }
        let sequences = self.fork(index, others.len())?;
        let origin = &self.answers[index];
        let mut branches = Vec::new();
        for (number, ((sampler, text), (guide, sequence))) in
            others.into_iter().zip(guides.into_iter().zip(sequences)).enumerate()
        {
            branches.push(Answer {
                shared: origin.shared.clone(),
                number: number + 1,
                sequence,
                tokens: origin.tokens.clone(),
                fed: origin.fed,
                sampler,
                guide,
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

    /// So many sequences that go on where the sequence of an answer stands; or none, if there is not room for all.
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

    /// Tells answers that they have ended, and takes them out.
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

/// Whether an answer is among those that end.
fn is_ending(ends: &[(usize, Outcome)], answer: usize) -> bool {
    ends.iter().any(|(ending, _)| *ending == answer)
}
