//! A request's state: which tokens may come next, and what happened so far.
//!
//! A matcher holds a few threads (almost always one), the stacks that they stand on, and its history. It is the
//! only thing that changes while text is generated; everything that it looks up is shared.
//!
//! Three words are kept apart: *accepting* – the text so far is complete, though it may go on; *stopped* – nothing but the end can
//! follow; *terminated* – the end was accepted.

mod accept;
mod budget;
mod fill;
mod info;
mod shown;

use std::sync::Arc;

use maskwright_automata::ByteSet;
use maskwright_vocab::{TokenId, TokenMask};
use rustc_hash::FxHashMap;

pub(crate) use self::budget::Charge;
pub use self::fill::fill_masks;
pub use self::info::{StateInfo, ThreadInfo};
use self::shown::Shown;
use crate::compile::CompileError;
use crate::distinct::filter::Ways;
use crate::distinct::registers::{self, Registers, Remembering};
use crate::error::MatchError;
use crate::library::BoundProgram;
use crate::parser::log::Log;
use crate::parser::mask::Way;
use crate::parser::stack::{Arena, BOTTOM, Frame, Mark, Stacks};
use crate::parser::step::{self, Buffers, Thread};

/// Matches one text against a constraint, token by token.
#[derive(Debug)]
pub struct Matcher {
    bound: Arc<BoundProgram>,
    arena: Arena,
    /// The threads of every moment, one moment after the other.
    trail: Log<Thread, HISTORY>,
    moments: Log<Moment, HISTORY>,
    eos_in_mask: bool,
    /// The tokens that end this text, if they are not those of the vocabulary.
    stops: Option<Arc<[TokenId]>>,
    way: Way,
    buffers: Buffers,
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

/// Forks share their history in pieces of so many tokens, and there is room for one piece from the beginning.
/// PERF: growing in the middle of a short text was a twentieth of accepting it.
const HISTORY: usize = 32;

/// What must be known to return to a moment.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// Where its threads begin on the trail.
    start: u32,
    /// What the stacks held when it was reached.
    mark: Mark,
    registers: registers::Mark,
    /// Bytes and tokens so far.
    bytes: u64,
    tokens: u32,
    terminated: bool,
}

impl BoundProgram {
    /// Says so if limits on tokens leave nothing that could be written with this vocabulary.
    pub fn check_limits(self: &Arc<Self>) -> Result<(), CompileError> {
        if self.program().has_limits() && self.matcher().shortest_completion().is_none() {
            return Err(CompileError::LimitTooSmall);
        }
        Ok(())
    }

    /// A matcher at the beginning of the text.
    pub fn matcher(self: &Arc<Self>) -> Matcher {
        Matcher::new(self.clone())
    }
}

impl Matcher {
    pub(crate) fn new(bound: Arc<BoundProgram>) -> Self {
        let mut matcher = Self {
            bound,
            arena: Arena::default(),
            trail: Log::default(),
            moments: Log::default(),
            eos_in_mask: true,
            stops: None,
            way: Way::Fast,
            buffers: Buffers::default(),
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
        self.arena.set_merging(way == Way::Fast);
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
        self.trail.reserve();
        self.moments.clear();
        self.moments.reserve();
        self.text.clear();
        self.registers.truncate(registers::Mark::default());
        self.ways.clear();
        let program = self.bound.program();
        let stack = self.arena.push(program, Frame::FINISH, BOTTOM);
        self.trail.push(Thread::network(program.start(0), stack));
        let mark = self.arena.mark();
        let registers = self.registers.mark();
        self.moments.push(Moment { start: 0, mark, registers, bytes: 0, tokens: 0, terminated: false });
    }

    /// How many steps (tokens, and calls of [`Self::accept_bytes`]) were accepted.
    pub fn steps(&self) -> usize {
        self.moments.len() - 1
    }

    #[inline]
    fn now(&self) -> Moment {
        *self.moments.last().expect("the beginning is a moment")
    }

    #[inline]
    fn threads(&self) -> &[Thread] {
        self.trail.since(self.now().start as usize)
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
    pub(crate) fn live_bytes(&mut self) -> ByteSet {
        self.current.clear();
        let start = self.now().start as usize;
        self.current.extend_from_slice(self.trail.since(start));
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
        self.current.extend_from_slice(self.trail.since(start));
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

    /// An independent matcher at the same place, with the same history. The history is shared, so this costs about the same after ten tokens
    /// and after ten thousand.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            bound: Arc::clone(&self.bound),
            arena: self.arena.fork(self.threads().iter().map(|thread| thread.stack)),
            trail: self.trail.clone(),
            moments: self.moments.clone(),
            eos_in_mask: self.eos_in_mask,
            stops: self.stops.clone(),
            way: self.way,
            buffers: Buffers::default(),
            several: Vec::new(),
            current: Vec::new(),
            next: Vec::new(),
            token: Vec::new(),
            text: self.text.clone(),
            registers: self.registers.clone(),
            ways: Ways::default(),
            shown: self.shown.clone(),
            mask: None,
            finish: self.finish,
            distances: FxHashMap::default(),
        }
    }
}

impl Clone for Matcher {
    fn clone(&self) -> Self {
        self.fork()
    }
}
