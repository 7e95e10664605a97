//! Tries bytes on the state of a matcher and then restores it.

use core::cell::RefCell;

use maskwright_automata::ByteSet;
use rustc_hash::FxHashMap;

use super::dead_end_cache::DeadEndCache;
use super::registers::{Registers, Remembering};
use crate::count::UNBOUNDED;
use crate::leaf::Leaf;
use crate::library::BoundProgram;
use crate::parser::frames::Frames;
use crate::parser::stack::{Arena, Mark, Resume, StackId};
use crate::parser::step::{self, Buffers};
use crate::parser::thread::Thread;
use crate::parser::waiting::{Waiting, wait};
use crate::program::network::ScopeId;
use crate::program::{self, NetState, OnArrival};
use crate::value;

/// The state of a matcher, with the buffers to try bytes on it.
pub(crate) struct Trial<'m> {
    pub(crate) bound: &'m BoundProgram,
    pub(crate) arena: &'m mut Arena,
    pub(crate) registers: &'m mut Registers,
    pub(crate) buffers: &'m mut Buffers,
    /// The text so far; longer only while a token is tried.
    pub(crate) text: &'m mut Vec<u8>,
    pub(crate) searches: &'m mut SearchCache,
    pub(crate) threads: &'m [Thread],
    pub(crate) known_exits: KnownExits,
}

/// What is known about the exits below scopes, for the duration of a trial.
pub(crate) struct KnownExits {
    /// Mark of the stacks that existed when the trial began.
    pub(super) base: Mark,
    /// Whether there is a known exit, by the stack below the scope and whether the path to it is infinite.
    pub(super) below_scopes: RefCell<FxHashMap<(StackId, bool), bool>>,
    /// The last completions that searches found, newest first: each is a text that leads to a place with a known exit.
    pub(super) completions: Vec<Vec<u8>>,
    /// Scopes that must not be entered.
    pub(super) forbidden_scopes: Box<[ScopeId]>,
}

impl KnownExits {
    pub(crate) fn new(arena: &Arena) -> Self {
        Self {
            base: arena.mark(),
            below_scopes: RefCell::default(),
            completions: Vec::new(),
            forbidden_scopes: Box::default(),
        }
    }
}

/// Results of searches for new values, by the threads, the frames above the stacks of the matcher, and the written part
/// of a value. It must be cleared when the matcher goes back, because stack numbers are then reused. PERF: inside a
/// string, the tokens that end it and begin another key are tried at every step, and all of them lead to the same few
/// places.
#[derive(Debug, Default)]
pub(crate) struct SearchCache {
    pub(super) found: FxHashMap<Box<[u32]>, bool>,
    /// Tokens that lead to dead ends: among those that end a value and begin another (`commas`), and among all
    /// (`tokens`).
    pub(super) commas: DeadEndCache,
    pub(super) tokens: DeadEndCache,
}

impl SearchCache {
    pub(crate) fn clear(&mut self) {
        self.found.clear();
        self.commas.clear();
        self.tokens.clear();
    }
}

impl Trial<'_> {
    /// Calls `what` with a copy of the threads, then restores stacks, registers and text.
    pub(super) fn attempt<T>(&mut self, what: impl FnOnce(&mut Self, &mut Vec<Thread>) -> T) -> T {
        let (stacks, registers, length) = (self.arena.mark(), self.registers.mark(), self.text.len());
        let mut threads = self.threads.to_vec();
        let result = what(self, &mut threads);
        self.arena.truncate(stacks);
        self.registers.truncate(registers);
        self.text.truncate(length);
        result
    }

    /// Steps over some bytes. Returns whether a thread survives.
    pub(super) fn steps(&mut self, bytes: &[u8], threads: &mut Vec<Thread>) -> bool {
        let mut next = Vec::new();
        for &byte in bytes {
            self.text.push(byte);
            next.clear();
            self.arena.next_byte();
            self.registers.next_byte();
            let before = self.text.len() - 1;
            let mut stacks = Remembering::new(self.bound, self.arena, self.registers, self.text, before);
            step::step_all(self.bound.program(), &mut stacks, self.buffers, threads, byte, &mut next);
            core::mem::swap(threads, &mut next);
            if threads.is_empty() {
                return false;
            }
        }
        true
    }

    /// Checks whether a thread is in a leaf with more possible values than any text can use up.
    pub(super) fn is_infinite(&self, thread: &Thread) -> bool {
        let program = self.bound.program();
        thread.leaf().is_some_and(|(leaf, state)| {
            let leaf = program.leaf(leaf);
            leaf.is_infinite(state, program.counts().room(thread.count, leaf.bounds()))
        })
    }

    /// Checks whether a thread is in a string that can continue in more than `values` ways, whichever token comes next.
    pub(super) fn has_more_values_after_token(&self, thread: &Thread, values: usize) -> bool {
        thread.leaf().is_some_and(|(leaf, state)| {
            self.bound.has_more_values_after_token(leaf, state, thread.count, values)
        })
    }

    /// Checks whether a thread is in a leaf that can continue in more than `values` ways now.
    pub(super) fn has_more_values(&self, thread: &Thread, values: usize) -> bool {
        let Some((leaf, state)) = thread.leaf() else { return false };
        let has_more = || match self.bound.program().leaf(leaf) {
            window @ Leaf::Window { max: UNBOUNDED, .. } => {
                window.is_string() && self.bound.texts(leaf).now[state.index()] as usize > values
            }
            Leaf::Window { .. } | Leaf::Text(_) => false,
        };
        self.is_infinite(thread) || has_more() || self.units_with_more_values(thread, values).is_some()
    }

    /// Returns how many units may follow such that the current string of a thread can still continue in more than
    /// `values` ways; `None` if it cannot even now.
    pub(super) fn units_with_more_values(&self, thread: &Thread, values: usize) -> Option<u32> {
        let (leaf, state) = thread.leaf()?;
        self.bound.units_with_more_values(leaf, state, thread.count, values)
    }

    /// Checks whether a state is the check of a value.
    pub(super) fn is_check(&self, state: NetState) -> bool {
        match self.bound.program().place(state) {
            program::Place::Cell(cell) => matches!(cell.on_arrival, OnArrival::Check { .. }),
            program::Place::Done | program::Place::Node { .. } => false,
        }
    }

    /// Checks whether a thread may be writing a part of a value that is checked. In the network, such a value may have
    /// no frame.
    pub(super) fn may_be_checked(&self, thread: &Thread) -> bool {
        thread.leaf().is_none()
            || self.bound.program().network().scattered_values
            || self.has_check_below(thread.stack)
    }

    /// Checks whether a value that ends on this stack may be checked.
    pub(super) fn has_check_below(&self, stack: StackId) -> bool {
        let mut frames = Frames::of(self.arena, [stack]);
        while let Some((frame, below)) = frames.next() {
            match frame.resume() {
                Resume::At(state) if self.is_check(state) => return true,
                Resume::Finish => {}
                _ => frames.follow(below),
            }
        }
        false
    }

    /// Returns the position of the opening quote of the current string, if the string can still be a value whose form
    /// has at most `longest` bytes.
    pub(super) fn quote(&self, longest: usize) -> Option<usize> {
        // An escaped character takes up to twelve bytes, and its form at least one.
        value::opening_quote(self.text, longest.saturating_mul(12) + 1)
    }

    /// Returns the bytes that may come next.
    pub(super) fn live(&mut self, threads: &[Thread]) -> ByteSet {
        let before = self.text.len();
        let mut stacks = Remembering::new(self.bound, self.arena, self.registers, self.text, before);
        step::live(self.bound.program(), &mut stacks, self.buffers, threads)
    }

    /// Finds everything that may take the next byte.
    pub(super) fn wait(&mut self, threads: &[Thread], out: &mut Vec<Waiting>) {
        let before = self.text.len();
        let mut stacks = Remembering::new(self.bound, self.arena, self.registers, self.text, before);
        wait(self.bound.program(), &mut stacks, self.buffers, threads, true, out);
    }

    /// Checks whether a thread survives these bytes.
    pub(super) fn is_alive_after(&mut self, bytes: &[u8]) -> bool {
        self.attempt(|this, threads| this.steps(bytes, threads))
    }
}
