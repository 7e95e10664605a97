//! Accepts tokens, and rolls them back.
//!
//! A token is taken byte by byte. While there is one thread and it stays inside a leaf or a literal, that is a short
//! loop ([`run_inside_leaf`]), and two tokens of five need no more; any other byte is a step of all threads
//! ([`step::step_all`]). Every token leaves a [`Checkpoint`]. Data is only ever appended on the way, so rolling back a
//! token means truncating to the checkpoint before it.

use std::sync::PoisonError;

use maskwright_vocab::{MARK, TokenId, number_spelling};
use smallvec::SmallVec;

use super::budget::Charge;
use super::{Checkpoint, MatchError, Matcher};
use crate::distinct::registers::MAX_REMEMBERED_VALUES;
use crate::leaf::Leaf;
use crate::parser::inside::run_inside_leaf;
use crate::parser::stack::{Arena, Resume, StackId};
use crate::parser::step;
use crate::parser::thread::Thread;
use crate::small_set::SmallSet;

/// A step, up to the first byte that needs more than the short loop.
#[derive(Clone, Copy)]
struct PartialStep {
    /// The only thread, if there is one, after the bytes that were taken.
    thread: Option<Thread>,
    bytes: usize,
}

impl Matcher {
    /// Checks whether a token may come next, without computing the whole mask. An error leaves that undecided: a limit
    /// was exceeded, or the work was cancelled.
    pub fn allows(&mut self, token: TokenId) -> Result<bool, MatchError> {
        self.validate(&[token]).map(|taken| taken == 1)
    }

    /// Accepts the next token. An end-of-text token ends the text if it is complete, unless the grammar requires that
    /// very token here.
    pub fn accept(&mut self, token: TokenId) -> Result<(), MatchError> {
        let vocabulary = self.bound.vocabulary();
        if self.now().terminated {
            return Err(MatchError::Terminated);
        }
        if self.stops().contains(&token) {
            if !vocabulary.is_special(token) {
                return self.terminate();
            }
            return self
                .accept_spelling(&number_spelling(token))
                .or_else(|error| if error.is_undecided() { Err(error) } else { self.terminate() });
        }
        if token.0 as usize >= vocabulary.size() {
            return Err(MatchError::UnknownToken);
        }
        if vocabulary.is_numbered() && !vocabulary.is_special(token) && vocabulary.is_used(token) {
            return self.accept_either(token);
        }
        let spelling = vocabulary.spelling(token);
        if spelling.is_empty() {
            return Err(MatchError::NoText);
        }
        let partial = self.begin(spelling);
        if let Some(thread) = partial.thread
            && partial.bytes == spelling.len()
            && !self.is_bounded()
            && !self.bound.program().may_run_out()
        {
            if let Some(distinct) = &mut self.distinct {
                distinct.text.extend_from_slice(spelling);
            }
            let (now, length) = (self.now(), spelling.len());
            self.arrive(&now, &[thread], length, Charge::Token);
            return Ok(());
        }
        // PERF: a copy of a few bytes; keeping a reference to the vocabulary would cost two atomic operations.
        let mut bytes = core::mem::take(&mut self.token);
        bytes.clear();
        bytes.extend_from_slice(spelling);
        let is_known = self.budget.as_ref().is_some_and(|budget| budget.is_known(token));
        let charge = if is_known { Charge::InTime } else { Charge::Token };
        let result = self.advance_from(partial, &bytes, charge);
        self.token = bytes;
        result
    }

    /// Takes bytes in the short loop, if there is one thread: all of them in two tokens of five.
    fn begin(&self, bytes: &[u8]) -> PartialStep {
        let &[mut thread] = self.threads() else { return PartialStep { thread: None, bytes: 0 } };
        let bytes = run_inside_leaf(self.bound.program(), &mut thread, bytes);
        PartialStep { thread: Some(thread), bytes }
    }

    /// Accepts an ordinary token of a numbered vocabulary, which the grammar may request by its text and by its number.
    fn accept_either(&mut self, token: TokenId) -> Result<(), MatchError> {
        let before = self.now();
        let mut by_number = self.threads().to_vec();
        let bytes = self.bound.vocabulary().spelling(token).to_vec();
        let by_text = if bytes.is_empty() { Err(MatchError::NoText) } else { self.accept_spelling(&bytes) };
        if let Err(error) = by_text {
            if error.is_undecided() {
                return Err(error);
            }
            let by_number = self.accept_spelling(&number_spelling(token));
            return by_number.map_err(|other| if other.is_undecided() { other } else { error });
        }
        // Steps the same threads again; the new stacks come after those of the first reading.
        let now = self.now();
        // It is still the same token.
        self.arena.token = before.tokens;
        let mut next = Vec::new();
        let is_alive = number_spelling(token).iter().all(|&byte| {
            self.step_byte(byte, &by_number, &mut next);
            core::mem::swap(&mut by_number, &mut next);
            !by_number.is_empty()
        });
        if let Some(distinct) = &mut self.distinct {
            distinct.text.truncate(now.bytes as usize);
        }
        if !is_alive {
            self.restore(&now);
            return Ok(());
        }
        if self.distinct.is_some() {
            // Values are remembered for one text, and these are two.
            self.undo(1);
            return Err(MatchError::TooAmbiguous);
        }
        if self.is_bounded() && !self.enforce(&mut by_number, Charge::Token) {
            self.restore(&now);
            return Ok(());
        }
        self.arena.token = now.tokens;
        self.history.extend_from_slice(&by_number);
        let (mark, registers) = self.marks();
        if let Some(checkpoint) = self.checkpoints.last_mut() {
            (checkpoint.mark, checkpoint.registers) = (mark, registers);
        }
        Ok(())
    }

    /// Ends the text.
    fn terminate(&mut self) -> Result<(), MatchError> {
        if !self.is_accepting() {
            return Err(MatchError::NotComplete);
        }
        let now = self.now();
        let start = self.history.len() as u32;
        let threads = self.threads().to_vec();
        self.history.extend_from_slice(&threads);
        self.checkpoints.push(Checkpoint {
            start,
            terminated: true,
            tokens: now.tokens.saturating_add(1),
            ..now
        });
        Ok(())
    }

    /// Accepts some bytes, as one step. It counts as one token.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<(), MatchError> {
        self.accept_text(bytes, Charge::Token)
    }

    /// Accepts some bytes, as one step that counts as no token: text that the model was given and did not write.
    pub fn accept_given_bytes(&mut self, bytes: &[u8]) -> Result<(), MatchError> {
        self.accept_text(bytes, Charge::Given)
    }

    fn accept_text(&mut self, bytes: &[u8], charge: Charge) -> Result<(), MatchError> {
        let Some(at) = bytes.iter().position(|&byte| byte == MARK) else {
            return self.advance(bytes, charge);
        };
        // No text contains this byte; only spellings of tokens do.
        self.advance(&bytes[..at], charge)?;
        self.undo(1);
        Err(MatchError::NotAllowed { bytes: at })
    }

    fn accept_spelling(&mut self, bytes: &[u8]) -> Result<(), MatchError> {
        self.advance(bytes, Charge::Token)
    }

    pub(crate) fn advance(&mut self, bytes: &[u8], charge: Charge) -> Result<(), MatchError> {
        if self.now().terminated {
            return Err(MatchError::Terminated);
        }
        self.advance_from(self.begin(bytes), bytes, charge)
    }

    /// Continues a step that has begun.
    fn advance_from(&mut self, partial: PartialStep, bytes: &[u8], charge: Charge) -> Result<(), MatchError> {
        let now = self.now();
        let steps = self.step_limit();
        self.buffers.meter.start_short(steps);
        let mut current = core::mem::take(&mut self.current);
        current.clear();
        match partial.thread {
            Some(thread) => current.push(thread),
            None => current.extend_from_slice(self.history.since(now.start as usize)),
        }
        let mut result = self.read(partial.bytes, bytes, &mut current);
        // PERF: most tokens need no further checks.
        if self.bound.program().may_run_out() || self.is_bounded() || self.buffers.meter.over().is_some() {
            result = self.check_step(result, bytes, charge, &mut current, &now);
        }
        self.buffers.meter.finish();
        match result {
            Ok(()) => self.arrive(&now, &current, bytes.len(), charge),
            Err(_) => self.restore(&now),
        }
        self.current = current;
        result
    }

    /// Steps threads over the bytes from `at` on.
    fn read(&mut self, mut at: usize, bytes: &[u8], current: &mut Vec<Thread>) -> Result<(), MatchError> {
        let mut next = core::mem::take(&mut self.next);
        if let Some(distinct) = &mut self.distinct {
            distinct.text.extend_from_slice(&bytes[..at]);
        }
        let mut result = Ok(());
        while let Some(&byte) = bytes.get(at) {
            self.step_byte(byte, current, &mut next);
            core::mem::swap(current, &mut next);
            // If the steps are used up, no thread is left either.
            if current.is_empty() {
                result = Err(MatchError::NotAllowed { bytes: at });
                break;
            }
            let limits = self.bound.program().limits();
            if current.len() > limits.parses || self.arena.len() > limits.stack {
                result = Err(MatchError::TooAmbiguous);
                break;
            }
            at += 1;
            if at < bytes.len()
                && let [thread] = &mut **current
            {
                let inside = run_inside_leaf(self.bound.program(), thread, &bytes[at..]);
                if let Some(distinct) = &mut self.distinct {
                    distinct.text.extend_from_slice(&bytes[at..at + inside]);
                }
                at += inside;
            }
        }
        self.next = next;
        result
    }

    /// Checks a step if values may run out, tokens are counted, or the steps are used up.
    #[cold]
    fn check_step(
        &mut self,
        mut result: Result<(), MatchError>,
        bytes: &[u8],
        charge: Charge,
        current: &mut Vec<Thread>,
        now: &Checkpoint,
    ) -> Result<(), MatchError> {
        let values = self.distinct.as_ref().map_or(0, |distinct| distinct.registers.len());
        if values > MAX_REMEMBERED_VALUES && self.bound.program().leaves().iter().any(Leaf::is_bounded_string)
        {
            self.buffers.meter.give_up();
        }
        self.within_limits_so_far()?;
        if self.bound.program().may_run_out() {
            result = self.check_distinct(result, bytes, current, now);
        }
        if result.is_ok() && charge != Charge::Nothing && self.is_bounded() && !self.enforce(current, charge)
        {
            result = Err(MatchError::OutOfTokens);
        }
        self.within_limits_so_far()?;
        if result.is_ok()
            && let Some(budget) = &mut self.budget
        {
            budget.in_time = None;
        }
        result
    }

    /// Adds a checkpoint `length` bytes after the last one. PERF: a call was a fiftieth of accepting a token.
    #[expect(clippy::inline_always, reason = "measured")]
    #[inline(always)]
    fn arrive(&mut self, now: &Checkpoint, threads: &[Thread], length: usize, charge: Charge) {
        let start = self.history.len() as u32;
        self.history.extend_from_slice(threads);
        if let Some(distinct) = &self.distinct
            && !distinct.registers.is_at(now.registers)
        {
            self.forget_unfinished(threads, now);
        }
        let (mark, registers) = self.marks();
        let tokens = now.tokens.saturating_add(charge.tokens());
        self.arena.token = tokens;
        let bytes = now.bytes + length as u64;
        self.checkpoints.push(Checkpoint { start, mark, registers, bytes, tokens, terminated: false });
        if self.checkpoints.is_long() {
            self.freeze();
        }
    }

    /// Makes forks share the history so far.
    #[cold]
    fn freeze(&mut self) {
        self.history.freeze(self.now().start as usize);
        self.checkpoints.freeze(self.checkpoints.len());
        self.arena.freeze();
        if let Some(distinct) = &mut self.distinct {
            distinct.registers.freeze();
        }
    }

    /// Removes values that no thread has finished. A number may end after each digit, and if it continues, the shorter
    /// number was no value.
    #[inline(never)]
    fn forget_unfinished(&mut self, threads: &[Thread], since: &Checkpoint) {
        if !self.remembers_more(threads, since)
            && let Some(distinct) = &mut self.distinct
        {
            distinct.registers.truncate(since.registers);
            distinct.searches.clear();
        }
    }

    /// Checks whether a thread is in a scope that was given another value after a checkpoint.
    fn remembers_more(&self, threads: &[Thread], since: &Checkpoint) -> bool {
        if self.arena.has_index() {
            // Then a new stack may have the number of an older one.
            return true;
        }
        let mut work: SmallVec<[StackId; 8]> = threads.iter().map(|thread| thread.stack).collect();
        let (mut seen, mut frames) = (SmallSet::default(), Vec::new());
        while let Some(stack) = work.pop() {
            if !Arena::is_newer(stack, since.mark) || !seen.insert(stack) {
                continue;
            }
            frames.clear();
            self.arena.frames(stack, &mut frames);
            for &(frame, below) in &frames {
                if let Resume::Scope { register, .. } = frame.resume()
                    && !register.is_before(since.registers)
                {
                    return true;
                }
                work.push(below);
            }
        }
        false
    }

    /// Checks a step if values that must be new may run out: there must be a way out after it. Otherwise the error
    /// tells how many of its bytes are possible.
    fn check_distinct(
        &mut self,
        result: Result<(), MatchError>,
        bytes: &[u8],
        threads: &[Thread],
        now: &Checkpoint,
    ) -> Result<(), MatchError> {
        let Some(mut trial) = self.trial() else { return result };
        let fitting = match result {
            Ok(()) if trial.has_exit_from(threads, now.mark, now.registers) => return result,
            Ok(()) => bytes.len().saturating_sub(1),
            Err(MatchError::NotAllowed { bytes }) => bytes,
            Err(_) => return result,
        };
        self.restore(now);
        let Some(mut trial) = self.trial() else { return result };
        // If a text has a way out, so do its prefixes.
        let lengths: Vec<usize> = (1..=fitting).collect();
        let fitting = lengths.partition_point(|&length| trial.has_exit_after(&bytes[..length]));
        Err(MatchError::NotAllowed { bytes: fitting })
    }

    /// Steps the threads over one more byte.
    #[inline]
    fn step_byte(&mut self, byte: u8, current: &[Thread], next: &mut Vec<Thread>) {
        next.clear();
        self.arena.next_byte();
        let program = self.bound.program();
        if let Some(distinct) = &mut self.distinct {
            let before = distinct.text.len();
            distinct.text.push(byte);
            distinct.registers.next_byte();
            let mut stacks = distinct.stacks(&self.bound, &mut self.arena, before);
            step::step_all(program, &mut stacks, &mut self.buffers, current, byte, next);
        } else {
            step::step_all(program, &mut self.arena, &mut self.buffers, current, byte, next);
        }
    }

    /// Returns how many of these tokens, from the first on, could be accepted one after the other. The matcher is
    /// unchanged. An error leaves that undecided: a limit was exceeded, or the work was cancelled.
    pub fn validate(&mut self, tokens: &[TokenId]) -> Result<usize, MatchError> {
        let (accepted, error) = self.try_tokens(tokens);
        error.filter(MatchError::is_undecided).map_or(Ok(accepted), Err)
    }

    /// Returns how many of some tokens are accepted, and why the next one is not.
    pub(crate) fn try_tokens(&mut self, tokens: &[TokenId]) -> (usize, Option<MatchError>) {
        let mut accepted = 0;
        let error = tokens.iter().find_map(|token| {
            let error = self.accept(*token).err();
            accepted += usize::from(error.is_none());
            error
        });
        self.undo(accepted);
        (accepted, error)
    }

    /// Undoes the last steps, including termination.
    pub fn rollback(&mut self, steps: usize) -> Result<(), MatchError> {
        if steps > self.steps() {
            return Err(MatchError::NothingToUndo { steps: self.steps() });
        }
        self.undo(steps);
        Ok(())
    }

    pub(crate) fn undo(&mut self, steps: usize) {
        for _ in 0..steps {
            let Some(checkpoint) = self.checkpoints.pop() else { break };
            self.history.truncate(checkpoint.start as usize);
        }
        if let Some(budget) = &mut self.budget {
            budget.in_time = None;
        }
        let now = self.now();
        self.history.thaw(now.start as usize);
        self.restore(&now);
    }

    /// Removes what was added after a checkpoint.
    pub(super) fn restore(&mut self, checkpoint: &Checkpoint) {
        *self.known_completion.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        self.arena.truncate(checkpoint.mark);
        self.arena.token = checkpoint.tokens;
        if let Some(distinct) = &mut self.distinct {
            distinct.restore(checkpoint.registers, checkpoint.bytes as usize);
        }
    }
}
