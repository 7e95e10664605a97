//! The state of a request: which tokens may come next, and what was accepted so far.
//!
//! A matcher holds a few threads (partial parses; almost always there is one), their stacks, and its history. It is the
//! only thing that changes while text is generated; everything it looks up is shared.
//!
//! Three words have distinct meanings: *accepting* – the text so far is complete, though it may continue; *stopped* –
//! only the end can follow; *terminated* – the end was accepted.

/// Runs an expression with the stacks of a matcher: those that remember values, if values must differ.
macro_rules! with_stacks {
    ($matcher:ident, |$stacks:ident| $body:expr) => {
        match &mut $matcher.distinct {
            Some(distinct) => {
                let before = distinct.text.len();
                let $stacks = &mut distinct.stacks(&$matcher.bound, &mut $matcher.arena, before);
                $body
            }
            None => {
                let $stacks = &mut $matcher.arena;
                $body
            }
        }
    };
}

mod accept;
mod borrowed;
mod budget;
mod fill;
mod info;
mod row;

use std::sync::{Arc, Mutex, PoisonError};

use maskwright_automata::ByteSet;
use maskwright_grammar::ExprId;
use maskwright_vocab::{TokenId, TokenMask};

use self::borrowed::BorrowedMask;
pub(crate) use self::budget::Charge;
pub use self::info::{StateInfo, ThreadInfo};
pub use self::row::MaskRow;
use crate::budget::Deadlines;
use crate::compile::CompileError;
use crate::distinct::{Distinct, registers, search};
use crate::error::MatchError;
use crate::library::BoundProgram;
use crate::parser::line::{Line, LineStacks};
use crate::parser::log::Log;
use crate::parser::mask::{MaskBuffers, Strategy};
use crate::parser::stack::{Arena, Frame, Mark, StackId, Stacks};
use crate::parser::step::{self, Buffers};
use crate::parser::thread::Thread;
use crate::program::network::MachineId;

/// Matches one text against a constraint, token by token.
#[derive(Debug)]
pub struct Matcher {
    bound: Arc<BoundProgram>,
    arena: Arena,
    /// The threads of every checkpoint, one checkpoint after the other.
    history: Log<Thread, TOKENS_PER_CHUNK>,
    checkpoints: Log<Checkpoint, TOKENS_PER_CHUNK>,
    eos_in_mask: bool,
    /// The tokens that end this text, if they differ from those of the vocabulary.
    stops: Option<Arc<[TokenId]>>,
    strategy: Strategy,
    buffers: Buffers,
    /// Tokens of a mask that contain more than one value.
    multi_value: Vec<u32>,
    current: Vec<Thread>,
    next: Vec<Thread>,
    /// The bytes of a token.
    token: Vec<u8>,
    /// The text and its values, if values must differ.
    distinct: Option<Box<Distinct>>,
    /// Deadlines, if there is a budget or some part of the text is limited.
    budget: Option<Box<Deadlines>>,
    /// The least number of tokens to the end, if it was found, and the number of steps after which that was.
    known_completion: Mutex<Option<(usize, u32)>>,
    /// The mask by reference, if it was requested.
    borrowed: Option<Box<BorrowedMask>>,
    mask: Option<TokenMask>,
}

/// Number of tokens in a chunk of history that forks share; there is room for one chunk from the beginning. PERF:
/// growing in the middle of a short text was a twentieth of accepting it.
const TOKENS_PER_CHUNK: usize = 32;

/// What must be known to return to a checkpoint.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    /// The index of its first thread in the history.
    start: u32,
    /// The state of the stacks when it was reached.
    mark: Mark,
    registers: registers::Mark,
    /// Number of bytes and tokens so far.
    bytes: u64,
    tokens: u32,
    terminated: bool,
}

impl BoundProgram {
    /// Returns an error if limits on tokens leave nothing that can be written with this vocabulary.
    pub fn check_limits(self: &Arc<Self>) -> Result<(), CompileError> {
        if !self.program().has_limits() {
            return Ok(());
        }
        let matcher = self.matcher();
        if matcher.upper_bound().is_some() || matcher.shortest_completion().is_some() {
            return Ok(());
        }
        Err(CompileError::LimitTooSmall)
    }

    /// Returns the scopes that match nothing, because more values must differ than there are. A program that was
    /// [compiled without them](crate::compile_without) has no dead ends there. If this is not found out within the
    /// [steps](crate::Limits::mask_steps) of a mask, a scope is not reported.
    pub fn dead_scopes(&self) -> Vec<ExprId> {
        if self.program().may_run_out() { search::dead_scopes(self) } else { Vec::new() }
    }

    /// Creates a matcher at the beginning of the text.
    pub fn matcher(self: &Arc<Self>) -> Matcher {
        Matcher::new(self.clone())
    }
}

impl Matcher {
    pub(crate) fn new(bound: Arc<BoundProgram>) -> Self {
        let mut matcher = Self {
            bound,
            arena: Arena::default(),
            history: Log::default(),
            checkpoints: Log::default(),
            eos_in_mask: true,
            stops: None,
            strategy: Strategy::Fast,
            buffers: Buffers::default(),
            multi_value: Vec::new(),
            current: Vec::new(),
            next: Vec::new(),
            token: Vec::new(),
            distinct: None,
            budget: None,
            known_completion: Mutex::default(),
            borrowed: None,
            mask: None,
        };
        matcher.reset();
        matcher
    }

    /// Sets whether [`Self::fill_mask`] allows the end-of-text tokens where the text is complete. This is on by
    /// default; switch it off if the caller itself decides when to stop.
    pub fn set_eos_in_mask(&mut self, yes: bool) {
        self.eos_in_mask = yes;
    }

    /// Sets the tokens that end this text, in place of those of the vocabulary; `None` restores those. If one of them
    /// is a special token, the grammar may still require it, as it may require an end-of-text token. An ordinary token
    /// among them no longer counts as text: it is allowed where the text is complete, and ends it. A budget relies on
    /// all ordinary tokens, so if some of them end the text, it may be too small by a few.
    pub fn set_stops(&mut self, stops: Option<Arc<[TokenId]>>) -> Result<(), MatchError> {
        let size = self.bound.vocabulary().size();
        if stops.iter().flat_map(|stops| stops.iter()).any(|token| token.index() >= size) {
            return Err(MatchError::UnknownToken);
        }
        self.stops = stops;
        Ok(())
    }

    /// Returns the tokens that end this text.
    pub fn stops(&self) -> &[TokenId] {
        self.stops.as_deref().unwrap_or_else(|| self.bound.vocabulary().eos())
    }

    /// Sets how masks are computed. Only tests and benchmarks need anything but the default.
    pub fn set_strategy(&mut self, strategy: Strategy) {
        self.strategy = strategy;
        self.arena.set_merging(strategy == Strategy::Fast);
    }

    /// Returns the constraint that is matched.
    pub fn bound(&self) -> &Arc<BoundProgram> {
        &self.bound
    }

    /// Returns to the beginning of the text and removes a budget.
    pub fn reset(&mut self) {
        self.known_completion = Mutex::default();
        self.arena.clear();
        self.arena.token = 0;
        self.history.clear();
        self.history.reserve();
        self.checkpoints.clear();
        self.checkpoints.reserve();
        let program = self.bound.program();
        self.distinct = program.has_lists().then(Box::default);
        self.budget = program.has_limits().then(Box::default);
        let stack = self.arena.push(program, Frame::FINISH, StackId::BOTTOM);
        self.history.push(Thread::network(program.start(MachineId::ROOT), stack));
        let mark = self.arena.mark();
        let registers = registers::Mark::default();
        self.checkpoints.push(Checkpoint {
            start: 0,
            mark,
            registers,
            bytes: 0,
            tokens: 0,
            terminated: false,
        });
    }

    /// Returns the number of accepted steps (tokens, and calls of [`Self::accept_bytes`]).
    pub fn steps(&self) -> usize {
        self.checkpoints.len() - 1
    }

    #[inline]
    fn now(&self) -> Checkpoint {
        *self.checkpoints.last().expect("the beginning is a checkpoint")
    }

    #[inline]
    fn threads(&self) -> &[Thread] {
        self.history.since(self.now().start as usize)
    }

    /// Checks whether the text so far is complete.
    pub fn is_accepting(&self) -> bool {
        let program = self.bound.program();
        if self.threads().iter().any(Thread::is_done) {
            return true;
        }
        let mut threads = Vec::new();
        let may_end = self.on_lines(|stacks, buffers, thread| {
            threads.clear();
            threads.push(thread);
            step::returns(program, stacks, buffers, &mut threads)
        });
        if may_end && self.distinct.is_some() {
            // So far, a value that ends here was assumed to be new. Only the registers know, and checking modifies
            // them.
            return self.fork().gather_threads();
        }
        may_end || self.now().bytes == 0 && program.is_nullable()
    }

    /// Calls `ask` for each thread, on stacks that leave those of the matcher unchanged. Returns whether an answer was
    /// true.
    fn on_lines(&self, mut ask: impl FnMut(&mut LineStacks<'_>, &mut Buffers, Thread) -> bool) -> bool {
        let mut scratch = MaskBuffers::of_thread();
        let mut buffers = Buffers::default();
        let is_yes = self.threads().iter().any(|thread| {
            scratch.line.start(thread.stack, self.arena.merges());
            let mut stacks = LineStacks { line: &mut scratch.line, arena: &self.arena };
            ask(&mut stacks, &mut buffers, Thread { stack: Line::TOP, ..*thread })
        });
        scratch.give_back();
        is_yes
    }

    /// Checks whether only the end can follow.
    pub fn is_stopped(&self) -> bool {
        if self.now().terminated || self.budget_left().is_some_and(|left| left <= 1) {
            return true;
        }
        let live = self.live_bytes();
        if self.distinct.is_none() || live.is_empty() {
            return live.is_empty();
        }
        let mut fork = self.fork();
        !live.iter().any(|byte| fork.takes(byte).unwrap_or(true))
    }

    /// Checks whether the end was accepted.
    pub fn is_terminated(&self) -> bool {
        self.now().terminated
    }

    /// Returns the bytes that may come next. A byte that cannot be decided within the steps of a token is included.
    pub fn next_bytes(&self) -> ByteSet {
        let live = self.live_bytes();
        if self.distinct.is_none() {
            return live;
        }
        let mut fork = self.fork();
        live.iter().filter(|&byte| fork.takes(byte).unwrap_or(true)).collect()
    }

    /// Returns the bytes that may come next, including those that would only repeat a value that must be new.
    pub(crate) fn live_bytes(&self) -> ByteSet {
        let mut live = ByteSet::EMPTY;
        self.on_lines(|stacks, buffers, thread| {
            live = live.union(step::live(self.bound.program(), stacks, buffers, &[thread]));
            false
        });
        live
    }

    /// Returns marks of the current state of the stacks and the registers.
    #[inline]
    fn marks(&self) -> (Mark, registers::Mark) {
        let registers =
            self.distinct.as_ref().map_or_else(Default::default, |distinct| distinct.registers.mark());
        (self.arena.mark(), registers)
    }

    /// Removes what was added to the stacks and the registers after some marks.
    #[inline]
    fn truncate(&mut self, (stacks, registers): (Mark, registers::Mark)) {
        self.arena.truncate(stacks);
        if let Some(distinct) = &mut self.distinct {
            distinct.registers.truncate(registers);
        }
    }

    /// Puts all threads that the next byte can affect into `current`: those of this checkpoint, and those after what
    /// may end here. Returns whether the root may end.
    fn gather_threads(&mut self) -> bool {
        let start = self.now().start as usize;
        self.current.clear();
        self.current.extend_from_slice(self.history.since(start));
        let program = self.bound.program();
        let done =
            with_stacks!(self, |stacks| step::returns(program, stacks, &mut self.buffers, &mut self.current));
        done || (self.now().bytes == 0 && program.is_nullable())
    }

    /// Creates an independent matcher at the same position, with the same history. The history is shared, so this costs
    /// about the same after ten tokens and after ten thousand.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            bound: Arc::clone(&self.bound),
            arena: self.arena.fork(self.threads().iter().map(|thread| thread.stack)),
            history: self.history.clone(),
            checkpoints: self.checkpoints.clone(),
            eos_in_mask: self.eos_in_mask,
            stops: self.stops.clone(),
            strategy: self.strategy,
            buffers: Buffers::default(),
            multi_value: Vec::new(),
            current: Vec::new(),
            next: Vec::new(),
            token: Vec::new(),
            distinct: self.distinct.as_ref().map(|distinct| Box::new(distinct.fork())),
            budget: self.budget.clone(),
            known_completion: Mutex::new(
                *self.known_completion.lock().unwrap_or_else(PoisonError::into_inner),
            ),
            borrowed: self.borrowed.clone(),
            mask: None,
        }
    }
}

impl Clone for Matcher {
    fn clone(&self) -> Self {
        self.fork()
    }
}
