//! Trying bytes: the state of a matcher, and room to go on from it and back.

use core::cell::RefCell;

use maskwright_automata::ByteSet;
use rustc_hash::FxHashMap;

use super::in_string::KnownOuts;
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
use crate::program::{self, Kind, NetState};
use crate::value;

/// The state of a matcher, and room to try bytes in.
pub(crate) struct Trial<'m> {
    pub(crate) bound: &'m BoundProgram,
    pub(crate) arena: &'m mut Arena,
    pub(crate) registers: &'m mut Registers,
    pub(crate) buffers: &'m mut Buffers,
    /// The text so far; longer only while a token is tried.
    pub(crate) text: &'m mut Vec<u8>,
    pub(crate) searches: &'m mut SearchCache,
    pub(crate) threads: &'m [Thread],
    pub(crate) outs: Outs,
}

/// Whether there is a way out below a scope, as long as a trial lasts.
pub(crate) struct Outs {
    /// Of the stacks that there were when it began.
    pub(super) base: Mark,
    /// By the stack below the scope, and whether the path to it is infinite.
    pub(super) known: RefCell<FxHashMap<(StackId, bool), bool>>,
    /// The texts of the last completions that searches have found, the newest first: each leads to a place that is out.
    pub(super) completions: Vec<Vec<u8>>,
    /// The scopes that must not be entered.
    pub(super) closed: Box<[ScopeId]>,
}

impl Outs {
    pub(crate) fn new(arena: &Arena) -> Self {
        Self {
            base: arena.mark(),
            known: RefCell::default(),
            completions: Vec::new(),
            closed: Box::default(),
        }
    }
}

/// What searches for new values have found: by the threads, the frames above the stacks that the matcher has, and what is written of a
/// value. To be forgotten when it goes back, because it will use the numbers of its stacks again. PERF: inside of a string, the
/// tokens that end it and begin another key are tried at every step, and all of them lead to the same few places.
#[derive(Debug, Default)]
pub(crate) struct SearchCache {
    pub(super) found: FxHashMap<Box<[u32]>, bool>,
    /// Tokens that lead to dead ends: of those that end a value and begin another, and of all.
    pub(super) commas: KnownOuts,
    pub(super) tokens: KnownOuts,
}

impl SearchCache {
    pub(crate) fn clear(&mut self) {
        self.found.clear();
        self.commas.clear();
        self.tokens.clear();
    }
}

impl Trial<'_> {
    /// Does something with the threads, and leaves no trace of it.
    pub(super) fn attempt<T>(&mut self, what: impl FnOnce(&mut Self, &mut Vec<Thread>) -> T) -> T {
        let (stacks, registers, length) = (self.arena.mark(), self.registers.mark(), self.text.len());
        let mut threads = self.threads.to_vec();
        let result = what(self, &mut threads);
        self.arena.truncate(stacks);
        self.registers.truncate(registers);
        self.text.truncate(length);
        result
    }

    /// Steps by some bytes. Returns whether a thread survives.
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

    /// Whether no text can use up the values that lead on from a thread.
    pub(super) fn is_infinite(&self, thread: &Thread) -> bool {
        let program = self.bound.program();
        thread.leaf().is_some_and(|(leaf, state)| {
            let leaf = program.leaf(leaf);
            leaf.is_infinite(state, program.counts().room(thread.count, leaf.bounds()))
        })
    }

    /// Whether a thread is in a string that can go on in more than so many ways, whatever token comes next.
    pub(super) fn goes_on(&self, thread: &Thread, values: usize) -> bool {
        thread.leaf().is_some_and(|(leaf, state)| self.bound.goes_on(leaf, state, thread.count, values))
    }

    /// Whether a thread is in a leaf that can go on in more than so many ways now.
    pub(super) fn has_more(&self, thread: &Thread, values: usize) -> bool {
        let Some((leaf, state)) = thread.leaf() else { return false };
        let has_more = || match self.bound.program().leaf(leaf) {
            window @ Leaf::Window { max: UNBOUNDED, .. } => {
                window.is_string() && self.bound.texts(leaf).now[state.index()] as usize > values
            }
            Leaf::Window { .. } | Leaf::Text(_) => false,
        };
        self.is_infinite(thread) || has_more() || self.goes_on_after(thread, values).is_some()
    }

    /// How many units may follow so that a thread is in a string that can still go on in more than so many ways; `None` if it cannot now.
    pub(super) fn goes_on_after(&self, thread: &Thread, values: usize) -> Option<u32> {
        let (leaf, state) = thread.leaf()?;
        self.bound.goes_on_after(leaf, state, thread.count, values)
    }

    /// Whether a state is the check of a value.
    pub(super) fn is_check(&self, state: NetState) -> bool {
        match self.bound.program().place(state) {
            program::Place::Cell(cell) => matches!(cell.kind, Kind::Check { .. }),
            program::Place::Done | program::Place::Node { .. } => false,
        }
    }

    /// Whether what a thread writes may belong to a value that is checked. In the network there may be one that no frame tells of.
    pub(super) fn may_be_checked(&self, thread: &Thread) -> bool {
        thread.leaf().is_none()
            || self.bound.program().network().scattered_values
            || self.has_check_below(thread.stack)
    }

    /// Whether what ends on a stack may belong to a value that is checked.
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

    /// Where the string begins that the text ends in, if it can be a value with a form of up to so many bytes.
    pub(super) fn quote(&self, longest: usize) -> Option<usize> {
        // A character takes up to twelve bytes as an escape, where its form has one at least.
        value::opening_quote(self.text, longest.saturating_mul(12) + 1)
    }

    /// The bytes that may come next.
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

    /// Whether a thread survives these bytes.
    pub(super) fn is_alive_after(&mut self, bytes: &[u8]) -> bool {
        self.attempt(|this, threads| this.steps(bytes, threads))
    }
}
