//! A request's state: which tokens may come next, and what happened so far.
//!
//! A matcher holds a few threads (almost always one), the stacks that they stand on, and its history. It is the
//! only thing that changes while text is generated; everything that it looks up is shared.
//!
//! Three words are kept apart: *accepting* – the text so far is complete, though it may go on; *stopped* – nothing but the end can
//! follow; *terminated* – the end was accepted.

mod budget;
mod doubt;
mod draft;
mod fill;
mod forced;
mod gauge;
mod info;
mod judge;
mod mask;
mod register;
mod shown;
mod stack;
mod step;
mod walk;

use core::fmt;
use std::sync::Arc;

use maskwright_automata::ByteSet;
use maskwright_vocab::{MARK, TokenId, TokenMask, number_spelling};
use rustc_hash::FxHashMap;

use self::budget::Count;
pub use self::budget::{Budget, BudgetError};
use self::doubt::{Doubt, Row, Ways};
pub use self::draft::{DRAFT_ROOT, DraftError, DraftTree};
use self::fill::Fill;
pub use self::fill::fill_masks;
pub use self::forced::{Encode, ForcedText, ForcedTokens, Seam};
pub use self::info::{StateInfo, ThreadInfo};
pub use self::mask::Way;
use self::mask::{MaskBuffers, Masker, Sink};
use self::register::{Registers, Remembering};
use self::shown::Shown;
use self::stack::{Arena, BOTTOM, Frame, Mark, Stacks};
pub(crate) use self::step::count_step;
use self::step::{Buffers, Thread};
use crate::bind::BoundProgram;

/// Matches one text against a constraint, token by token.
#[derive(Clone, Debug)]
pub struct Matcher {
    bound: Arc<BoundProgram>,
    arena: Arena,
    /// The threads of every moment, one moment after the other.
    trail: Vec<Thread>,
    moments: Vec<Moment>,
    eos_in_mask: bool,
    /// The tokens that end this text, if they are not those of the vocabulary.
    stops: Option<Arc<[TokenId]>>,
    way: Way,
    buffers: Buffers,
    scratch: MaskBuffers,
    /// Tokens of a mask that contain more than one value.
    several: Vec<u32>,
    current: Vec<Thread>,
    next: Vec<Thread>,
    /// The bytes of a token.
    token: Vec<u8>,
    /// The whole text, if values have to be remembered, and what is remembered.
    text: Vec<u8>,
    registers: Registers,
    /// Where searches for new values have led.
    ways: Ways,
    /// The mask by reference, if it was asked for.
    shown: Option<Box<Shown>>,
    mask: Option<TokenMask>,
    /// The number of the first token beyond the budget.
    finish: Option<u32>,
    /// How many tokens states need.
    distances: FxHashMap<u32, u32>,
}

/// A step as far as nothing has happened.
#[derive(Clone, Copy)]
struct Begun {
    /// The only thread, if there is one, behind the bytes that were taken.
    thread: Option<Thread>,
    bytes: usize,
}

/// There is room for so many tokens from the beginning. PERF: growing in the middle of a short text was a twentieth of accepting it.
const SHORT: usize = 64;

/// What must be known to return to a moment.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// Where its threads begin on the trail.
    start: u32,
    /// What the stacks held when it was reached.
    mark: Mark,
    registers: register::Mark,
    /// Bytes and tokens so far.
    bytes: u64,
    tokens: u32,
    terminated: bool,
}

/// Why a token, or some bytes, could not be accepted. The matcher is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchError {
    /// The token cannot come next.
    NotAllowed {
        /// How many of its bytes could have been accepted.
        bytes: usize,
    },
    /// The text is not complete, so it cannot end here.
    NotComplete,
    /// The end was accepted before.
    Terminated,
    /// The token is unused, or stands for no text.
    NoText,
    /// There is no such token in the vocabulary.
    UnknownToken,
    /// Fewer steps were taken than were to be undone.
    NothingToUndo {
        /// How many steps could be undone.
        steps: usize,
    },
    /// The text is so ambiguous that following all its readings passes a limit.
    TooAmbiguous,
    /// The grammar allows it, but then the text, or a limited part of it, could not be completed in time.
    OutOfTokens,
    /// Another engine behind the same interface gave up, for this reason. It cannot go on.
    GaveUp(Box<str>),
    /// The buffer for the mask is too small.
    MaskTooShort {
        /// How many words it needs.
        words: usize,
    },
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed { bytes } => write!(f, "not allowed here: it fails after {bytes} of its bytes"),
            Self::NotComplete => f.write_str("the text is not complete, so it cannot end here"),
            Self::Terminated => f.write_str("the end was accepted before; roll back or reset first"),
            Self::NoText => f.write_str("the token is unused, or stands for no text"),
            Self::UnknownToken => f.write_str("there is no such token in the vocabulary"),
            Self::NothingToUndo { steps } => write!(f, "only {steps} steps can be undone"),
            Self::TooAmbiguous => {
                f.write_str("the text has too many readings under this grammar; make it less ambiguous")
            }
            Self::OutOfTokens => {
                f.write_str("not allowed here: too few tokens would be left to complete the text")
            }
            Self::GaveUp(reason) => write!(f, "the engine gave up: {reason}"),
            Self::MaskTooShort { words } => write!(f, "the mask needs {words} words of 32 bits"),
        }
    }
}

impl core::error::Error for MatchError {}

impl Matcher {
    pub(crate) fn new(bound: Arc<BoundProgram>) -> Self {
        let mut matcher = Self {
            bound,
            arena: Arena::default(),
            trail: Vec::new(),
            moments: Vec::new(),
            eos_in_mask: true,
            stops: None,
            way: Way::Fast,
            buffers: Buffers::default(),
            scratch: MaskBuffers::default(),
            several: Vec::new(),
            current: Vec::new(),
            next: Vec::new(),
            token: Vec::new(),
            text: Vec::new(),
            registers: Registers::default(),
            ways: Ways::default(),
            shown: None,
            mask: None,
            finish: None,
            distances: FxHashMap::default(),
        };
        matcher.reset();
        matcher
    }

    /// Whether [`Self::fill_mask`] allows the end-of-text tokens where the text is complete. It does by default;
    /// switch it off if the caller decides about stopping by itself.
    pub fn set_eos_in_mask(&mut self, yes: bool) {
        self.eos_in_mask = yes;
    }

    /// Which tokens end this text, in place of those of the vocabulary; `None` goes back to those. A special token among them may still be
    /// asked for by the grammar, as an end-of-text token may. An ordinary one is no text any more: it is allowed where the text
    /// is complete, and ends it. A budget counts on all ordinary tokens, so with ordinary tokens that end the text it may be
    /// too small by a few.
    pub fn set_stops(&mut self, stops: Option<Arc<[TokenId]>>) -> Result<(), MatchError> {
        let size = self.bound.vocabulary().size();
        if stops.iter().flat_map(|stops| stops.iter()).any(|token| token.index() >= size) {
            return Err(MatchError::UnknownToken);
        }
        self.stops = stops;
        Ok(())
    }

    /// The tokens that end this text.
    pub fn stops(&self) -> &[TokenId] {
        self.stops.as_deref().unwrap_or_else(|| self.bound.vocabulary().eos())
    }

    /// How masks are computed; only tests and benchmarks want anything but the default.
    pub fn set_way(&mut self, way: Way) {
        self.way = way;
    }

    /// The constraint that is matched.
    pub fn bound(&self) -> &Arc<BoundProgram> {
        &self.bound
    }

    /// Back to the beginning of the text. A budget is lifted.
    pub fn reset(&mut self) {
        self.arena.clear();
        self.arena.token = 0;
        self.finish = None;
        self.trail.clear();
        self.trail.reserve(SHORT);
        self.moments.clear();
        self.moments.reserve(SHORT);
        self.text.clear();
        self.registers.truncate(register::Mark::default());
        self.ways.clear();
        let program = self.bound.program();
        let stack = self.arena.push(Frame::FINISH, BOTTOM);
        self.trail.push(Thread::network(program.start(0), stack));
        let mark = self.arena.mark();
        let registers = self.registers.mark();
        self.moments.push(Moment { start: 0, mark, registers, bytes: 0, tokens: 0, terminated: false });
    }

    /// How many steps (tokens, and calls of [`Self::accept_bytes`]) were accepted.
    pub fn steps(&self) -> usize {
        self.moments.len() - 1
    }

    fn now(&self) -> Moment {
        self.moments[self.moments.len() - 1]
    }

    fn threads(&self) -> &[Thread] {
        &self.trail[self.now().start as usize..]
    }

    /// Whether the text so far is complete.
    pub fn is_accepting(&mut self) -> bool {
        let (mark, registers) = (self.arena.mark(), self.registers.mark());
        let accepting = self.gather_threads();
        self.arena.truncate(mark);
        self.registers.truncate(registers);
        accepting
    }

    /// Whether nothing but the end can follow.
    pub fn is_stopped(&mut self) -> bool {
        if self.now().terminated || self.budget_left() == Some(0) {
            return true;
        }
        let has_scopes = self.bound.program().has_scopes();
        !self.live_bytes().iter().any(|byte| !has_scopes || self.takes(byte))
    }

    /// Whether the end was accepted.
    pub fn is_terminated(&self) -> bool {
        self.now().terminated
    }

    /// The bytes that may come next.
    pub fn next_bytes(&mut self) -> ByteSet {
        let live = self.live_bytes();
        if !self.bound.program().has_scopes() {
            return live;
        }
        live.iter().filter(|&byte| self.takes(byte)).collect()
    }

    /// The same, and those that would only repeat a value that must be new.
    fn live_bytes(&mut self) -> ByteSet {
        self.current.clear();
        let start = self.now().start as usize;
        self.current.extend_from_slice(&self.trail[start..]);
        let (mark, registers) = (self.arena.mark(), self.registers.mark());
        let program = self.bound.program();
        let live = if program.has_scopes() {
            let before = self.text.len();
            let (arena, registers) = (&mut self.arena, &mut self.registers);
            let mut stacks = Remembering::new(&self.bound, arena, registers, &self.text, before);
            step::live(program, &mut stacks, &mut self.buffers, &self.current)
        } else {
            step::live(program, &mut self.arena, &mut self.buffers, &self.current)
        };
        self.arena.truncate(mark);
        self.registers.truncate(registers);
        live
    }

    /// Puts all threads that the next byte can concern into `current`: those of this moment, and those behind what may
    /// end here. Returns whether the root may end.
    fn gather_threads(&mut self) -> bool {
        let start = self.now().start as usize;
        self.current.clear();
        self.current.extend_from_slice(&self.trail[start..]);
        let program = self.bound.program();
        let done = if program.has_scopes() {
            let before = self.text.len();
            let (arena, registers) = (&mut self.arena, &mut self.registers);
            let mut stacks = Remembering::new(&self.bound, arena, registers, &self.text, before);
            step::returns(program, &mut stacks, &mut self.buffers, &mut self.current)
        } else {
            step::returns(program, &mut self.arena, &mut self.buffers, &mut self.current)
        };
        done || (self.now().bytes == 0 && program.is_nullable())
    }

    /// Writes the mask: bit t % 32 of word t / 32 says whether token t may come next. Words beyond the vocabulary are
    /// cleared.
    pub fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        let need = self.bound.vocabulary().size().div_ceil(32);
        if words.len() < need {
            return Err(MatchError::MaskTooShort { words: need });
        }
        if self.now().terminated {
            words.fill(0);
            return Ok(());
        }
        let mut several = core::mem::take(&mut self.several);
        several.clear();
        let mut fill = Fill::new(words, &mut several);
        let (accepting, in_time) = self.parts(&mut fill);
        fill.finish();
        if self.is_in_doubt(&several) {
            self.settle(&several, &mut &mut *words);
        }
        self.several = several;
        if let Some(in_time) = in_time {
            self.keep_in_time(&in_time, accepting, words);
        }
        for &token in self.stops() {
            let (word, bit) = (&mut words[token.index() / 32], 1 << (token.0 % 32));
            if accepting && self.eos_in_mask {
                *word |= bit;
            } else if !self.bound.vocabulary().is_special(token) {
                *word &= !bit;
            }
        }
        Ok(())
    }

    /// The mask by reference: the same words as [`Self::fill_mask`] writes, and quicker, because they are not copied where they
    /// lie ready, and otherwise only changed where they differ from the mask before.
    pub fn mask_words(&mut self) -> &[u32] {
        let mut shown = self.shown.take().unwrap_or_default();
        let mut several = core::mem::take(&mut self.several);
        several.clear();
        let mut showing = shown.start(self.bound.vocabulary().size().div_ceil(32), &mut several);
        if self.now().terminated {
            showing.finish();
        } else {
            let (accepting, in_time) = self.parts(&mut showing);
            showing.finish();
            if self.is_in_doubt(&several) {
                self.settle(&several, &mut *shown);
            }
            if let Some(in_time) = in_time {
                self.keep_in_time(&in_time, accepting, shown.words_mut());
            }
            for &token in self.stops() {
                if accepting && self.eos_in_mask {
                    shown.set(token.0, true);
                } else if !self.bound.vocabulary().is_special(token) {
                    shown.set(token.0, false);
                }
            }
        }
        self.several = several;
        self.shown.insert(shown).words()
    }

    /// Hands the parts of the mask to a sink. Returns whether the text may end, and what can be finished in time, if there is a budget.
    fn parts(&mut self, sink: &mut dyn Sink) -> (bool, Option<Vec<u32>>) {
        let (mark, registers) = (self.arena.mark(), self.registers.mark());
        let accepting = self.gather_threads();
        let current = core::mem::take(&mut self.current);
        let mut masker = Masker {
            bound: &self.bound,
            arena: &self.arena,
            buffers: &mut self.buffers,
            scratch: &mut self.scratch,
        };
        // PERF: leaves first. Their masks are mostly bitsets, and a bitset is copied into an empty row but must be
        // united with one that is not.
        for in_network in [false, true] {
            for &thread in current.iter().filter(|thread| (thread.leaf == step::NETWORK) == in_network) {
                match self.way {
                    _ if thread.is_done() => {}
                    Way::Fast => masker.mask(thread, sink),
                    Way::Plain => masker.plain(thread, sink),
                }
            }
        }
        let in_time = if self.is_bounded() { self.in_time(&current) } else { None };
        self.current = current;
        self.arena.truncate(mark);
        self.registers.truncate(registers);
        (accepting, in_time)
    }

    /// Whether tokens of a mask have to be tried.
    fn is_in_doubt(&self, several: &[u32]) -> bool {
        let program = self.bound.program();
        let is_settled = several.is_empty() && self.registers.is_empty() && program.has_plain_scopes();
        !is_settled || self.way == Way::Plain && program.has_scopes()
    }

    /// Corrects a mask by what the scopes remember.
    fn settle(&mut self, several: &[u32], row: &mut dyn Row) {
        let is_fast = self.way == Way::Fast && !self.bound.vocabulary().is_numbered();
        let mut doubt = self.doubt(row);
        if is_fast {
            doubt.settle(several);
        } else {
            doubt.try_all();
        }
    }

    /// Room to try tokens in, with the registers that they would meet.
    fn doubt<'m>(&'m mut self, row: &'m mut dyn Row) -> Doubt<'m> {
        let start = self.now().start as usize;
        Doubt {
            bound: &self.bound,
            arena: &mut self.arena,
            registers: &mut self.registers,
            buffers: &mut self.buffers,
            text: &mut self.text,
            ways: &mut self.ways,
            threads: &self.trail[start..],
            budget: if self.way == Way::Fast { doubt::SEARCHES } else { usize::MAX },
            row,
        }
    }

    /// The mask, kept by the matcher until it changes.
    pub fn mask(&mut self) -> &TokenMask {
        let size = self.bound.vocabulary().size();
        let mask = TokenMask::from_words(self.mask_words(), size);
        self.mask.insert(mask)
    }

    /// Whether one token may come next, without working out the whole mask.
    pub fn allows(&mut self, token: TokenId) -> bool {
        let accepted = self.accept(token).is_ok();
        if accepted {
            self.undo(1);
        }
        accepted
    }

    /// Takes the next token. An end-of-text token ends the text if it is complete, unless the grammar asks for that
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
            return self.accept_spelling(&number_spelling(token)).or_else(|_| self.terminate());
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
        let begun = self.begin(spelling);
        if let Some(thread) = begun.thread
            && begun.bytes == spelling.len()
            && !self.is_bounded()
            && !self.bound.program().may_run_out()
        {
            if self.bound.program().has_scopes() {
                self.text.extend_from_slice(spelling);
            }
            let (now, length) = (self.now(), spelling.len());
            self.arrive(&now, &[thread], length, Count::Token);
            return Ok(());
        }
        // PERF: a copy of a few bytes; holding on to the vocabulary would cost two atomic operations.
        let mut bytes = core::mem::take(&mut self.token);
        bytes.clear();
        bytes.extend_from_slice(spelling);
        let mut result = self.advance_from(begun, &bytes, Count::Token);
        if result == Err(MatchError::OutOfTokens) {
            result = self.accept_late(token, &bytes);
        }
        self.token = bytes;
        result
    }

    /// Takes the bytes on which nothing happens, if there is one thread: all of them in two tokens of five.
    fn begin(&self, bytes: &[u8]) -> Begun {
        let &[mut thread] = self.threads() else { return Begun { thread: None, bytes: 0 } };
        let bytes = step::glide(self.bound.program(), &mut thread, bytes);
        Begun { thread: Some(thread), bytes }
    }

    /// Takes an ordinary token of a numbered vocabulary, which the grammar may ask for by its text and by its number.
    fn accept_either(&mut self, token: TokenId) -> Result<(), MatchError> {
        let before = self.now();
        let bytes = self.bound.vocabulary().spelling(token).to_vec();
        let by_text = if bytes.is_empty() { Err(MatchError::NoText) } else { self.accept_spelling(&bytes) };
        let Ok(()) = by_text else {
            return self.accept_spelling(&number_spelling(token)).map_err(|_| by_text.unwrap_err());
        };
        // From the same threads once more, behind the stacks of the first reading.
        let now = self.now();
        let mut by_number = self.trail[before.start as usize..now.start as usize].to_vec();
        // It is still the same token.
        self.arena.token = before.tokens;
        let mut next = Vec::new();
        let is_alive = number_spelling(token).iter().all(|&byte| {
            self.step_byte(byte, &by_number, &mut next);
            core::mem::swap(&mut by_number, &mut next);
            !by_number.is_empty()
        });
        self.text.truncate(now.bytes as usize);
        if !is_alive {
            self.restore(&now);
            return Ok(());
        }
        if self.bound.program().has_scopes() {
            // What is remembered belongs to one text, and these are two.
            self.undo(1);
            return Err(MatchError::TooAmbiguous);
        }
        if self.is_bounded() && !self.enforce(&mut by_number) {
            self.restore(&now);
            return Ok(());
        }
        self.arena.token = now.tokens;
        self.trail.extend_from_slice(&by_number);
        let (mark, registers) = (self.arena.mark(), self.registers.mark());
        if let Some(moment) = self.moments.last_mut() {
            (moment.mark, moment.registers) = (mark, registers);
        }
        Ok(())
    }

    /// Ends the text.
    fn terminate(&mut self) -> Result<(), MatchError> {
        if !self.is_accepting() {
            return Err(MatchError::NotComplete);
        }
        let now = self.now();
        let start = self.trail.len() as u32;
        self.trail.extend_from_within(now.start as usize..);
        self.moments.push(Moment { start, terminated: true, tokens: now.tokens.saturating_add(1), ..now });
        Ok(())
    }

    /// Takes some bytes, as one step. Where tokens are counted, they are one.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<(), MatchError> {
        let Some(at) = bytes.iter().position(|&byte| byte == MARK) else {
            return self.accept_spelling(bytes);
        };
        // No text has this byte, and nobody but a token may write it.
        self.accept_spelling(&bytes[..at])?;
        self.undo(1);
        Err(MatchError::NotAllowed { bytes: at })
    }

    fn accept_spelling(&mut self, bytes: &[u8]) -> Result<(), MatchError> {
        self.advance(bytes, Count::Token)
    }

    fn advance(&mut self, bytes: &[u8], count: Count) -> Result<(), MatchError> {
        if self.now().terminated {
            return Err(MatchError::Terminated);
        }
        self.advance_from(self.begin(bytes), bytes, count)
    }

    /// Goes on from where a step has begun.
    fn advance_from(&mut self, begun: Begun, bytes: &[u8], count: Count) -> Result<(), MatchError> {
        let now = self.now();
        let mut current = core::mem::take(&mut self.current);
        let mut next = core::mem::take(&mut self.next);
        current.clear();
        match begun.thread {
            Some(thread) => current.push(thread),
            None => current.extend_from_slice(&self.trail[now.start as usize..]),
        }
        let has_scopes = self.bound.program().has_scopes();
        if has_scopes {
            self.text.extend_from_slice(&bytes[..begun.bytes]);
        }
        let mut result = Ok(());
        let mut at = begun.bytes;
        while let Some(&byte) = bytes.get(at) {
            self.step_byte(byte, &current, &mut next);
            core::mem::swap(&mut current, &mut next);
            if current.is_empty() {
                result = Err(MatchError::NotAllowed { bytes: at });
                break;
            }
            let limits = self.bound.program().limits();
            if current.len() > limits.threads || self.arena.len() > limits.stack {
                result = Err(MatchError::TooAmbiguous);
                break;
            }
            at += 1;
            if at < bytes.len()
                && let [thread] = &mut *current
            {
                let inside = step::glide(self.bound.program(), thread, &bytes[at..]);
                if has_scopes {
                    self.text.extend_from_slice(&bytes[at..at + inside]);
                }
                at += inside;
            }
        }
        if self.bound.program().may_run_out() {
            result = self.settle_step(result, bytes, &current, &now);
        }
        if result.is_ok() && count != Count::Nothing && self.is_bounded() {
            let before = if count == Count::Late { current.clone() } else { Vec::new() };
            if !self.enforce(&mut current) {
                if count == Count::Late {
                    current = before;
                } else {
                    result = Err(MatchError::OutOfTokens);
                }
            }
        }
        if result.is_ok() {
            self.arrive(&now, &current, bytes.len(), count);
        } else {
            self.restore(&now);
        }
        (self.current, self.next) = (current, next);
        result
    }

    /// Another moment, so many bytes after the last.
    fn arrive(&mut self, now: &Moment, threads: &[Thread], length: usize, count: Count) {
        let start = self.trail.len() as u32;
        self.trail.extend_from_slice(threads);
        let (mark, registers) = (self.arena.mark(), self.registers.mark());
        let tokens = now.tokens.saturating_add(u32::from(count != Count::Nothing));
        self.arena.token = tokens;
        let bytes = now.bytes + length as u64;
        self.moments.push(Moment { start, mark, registers, bytes, tokens, terminated: false });
    }

    /// What becomes of a step where values that must be new may run out: it must lead on, as far as it is taken.
    fn settle_step(
        &mut self,
        result: Result<(), MatchError>,
        bytes: &[u8],
        threads: &[Thread],
        now: &Moment,
    ) -> Result<(), MatchError> {
        let fitting = match result {
            Ok(()) if self.doubt(&mut &mut [][..]).leads_out(threads, now.mark, now.registers) => {
                return result;
            }
            Ok(()) => bytes.len().saturating_sub(1),
            Err(MatchError::NotAllowed { bytes }) => bytes,
            Err(_) => return result,
        };
        self.restore(now);
        let mut none = &mut [][..];
        let mut doubt = self.doubt(&mut none);
        // If a text leads on, so does its beginning.
        let lengths: Vec<usize> = (1..=fitting).collect();
        let fitting = lengths.partition_point(|&length| doubt.leads_on(&bytes[..length]));
        Err(MatchError::NotAllowed { bytes: fitting })
    }

    /// The threads behind one more byte.
    #[inline]
    fn step_byte(&mut self, byte: u8, current: &[Thread], next: &mut Vec<Thread>) {
        next.clear();
        self.arena.next_byte();
        let program = self.bound.program();
        if program.has_scopes() {
            let before = self.text.len();
            self.text.push(byte);
            self.registers.next_byte();
            let (arena, registers) = (&mut self.arena, &mut self.registers);
            let mut stacks = Remembering::new(&self.bound, arena, registers, &self.text, before);
            step::step_on(program, &mut stacks, &mut self.buffers, current, byte, next);
        } else {
            step::step_on(program, &mut self.arena, &mut self.buffers, current, byte, next);
        }
    }

    /// How many of these tokens, from the first on, could be accepted one after the other. The matcher is unchanged.
    pub fn validate(&mut self, tokens: &[TokenId]) -> usize {
        let accepted = tokens.iter().take_while(|token| self.accept(**token).is_ok()).count();
        self.undo(accepted);
        accepted
    }

    /// Undoes the last steps, termination included.
    pub fn rollback(&mut self, steps: usize) -> Result<(), MatchError> {
        if steps > self.steps() {
            return Err(MatchError::NothingToUndo { steps: self.steps() });
        }
        self.undo(steps);
        Ok(())
    }

    fn undo(&mut self, steps: usize) {
        for _ in 0..steps {
            let Some(moment) = self.moments.pop() else { break };
            self.trail.truncate(moment.start as usize);
        }
        let now = self.now();
        self.restore(&now);
    }

    /// Forgets what was made since a moment.
    fn restore(&mut self, moment: &Moment) {
        self.arena.truncate(moment.mark);
        self.arena.token = moment.tokens;
        self.registers.truncate(moment.registers);
        self.ways.clear();
        self.text.truncate(moment.bytes as usize);
    }

    /// An independent matcher at the same place, with the same history.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.clone()
    }
}
