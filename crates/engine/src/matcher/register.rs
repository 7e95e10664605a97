//! What scopes remember: the values that stood in them.
//!
//! A grammar cannot say that the keys of an object differ, so that part of the state is kept outside of it. The frame of a scope
//! on the stack carries a *register*: a list of values, newest first, that shares its tail with older lists.
//!
//! ```text
//!   {"a": 1, "b": {"a": …         stack:  scope ["a"] ─▶ (after the value) ─▶ scope ["b", "a"] ─▶ bottom
//! ```
//! Where a value ends, the network has a *check*. It looks down the stack for the scope, and either the value is new,
//! and the scope's frame is replaced by one that knows it, or the thread ends there.
//!
//! Masks are computed and remembered without any of this, as if every value were new; what registers make of a mask is
//! settled afterwards ([`super::doubt`]). The one thing that a mask does see is whether a scope may close.

use core::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

use super::stack::{Arena, Frame, Resume, Stacks, When};
use crate::bind::{BoundProgram, Whole};
use crate::compile::network::Scope;
use crate::program::Program;
use crate::value;

/// The values of a scope: an entry of [`Registers`], and whether the scope still lacks a value that it requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Register(pub(crate) u32);

const LACKS: u32 = 1 << 31;

impl Register {
    pub(crate) fn fresh(scope: &Scope) -> Self {
        Self::new(0, !scope.required.is_empty())
    }

    fn new(entry: u32, lacks: bool) -> Self {
        Self(if lacks { entry | LACKS } else { entry })
    }

    #[inline]
    pub(crate) fn may_close(self) -> bool {
        self.0 & LACKS == 0
    }

    /// The newest entry, if there is one.
    fn newest(self) -> Option<usize> {
        ((self.0 & !LACKS) as usize).checked_sub(1)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.newest().is_none()
    }
}

/// All lists of values that one matcher's frames refer to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    entries: Vec<Entry>,
    /// The forms of all values, one after the other.
    forms: Vec<u8>,
    /// The last value that was looked at: where its text ends, and its form.
    last: Option<(usize, Vec<u8>)>,
    /// How many values were not new so far.
    refused: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Whose list it is: another scope may require other values.
    scope: u32,
    /// The list that this value was added to.
    older: Register,
    hash: u64,
    start: u32,
    end: u32,
    /// How many required values are still missing.
    missing: u32,
    summary: Summary,
}

/// What is known of a whole list without looking through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Summary {
    /// The length of the longest form.
    pub(crate) longest: u32,
    /// Some token contains one of the values as a whole.
    pub(crate) in_token: bool,
    /// There are objects or arrays among them.
    pub(crate) nested: bool,
    /// There are others among them.
    pub(crate) simple: bool,
    /// There are numbers or literals among them.
    pub(crate) unquoted: bool,
}

/// A point to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    entries: u32,
    forms: u32,
}

/// So many entries are looked at for one that was just made by another thread.
const RECENT: usize = 4;

impl Registers {
    pub(crate) fn mark(&self) -> Mark {
        Mark { entries: self.entries.len() as u32, forms: self.forms.len() as u32 }
    }

    pub(crate) fn truncate(&mut self, mark: Mark) {
        self.entries.truncate(mark.entries as usize);
        self.forms.truncate(mark.forms as usize);
        self.last = None;
    }

    /// Whether nothing was added after a mark.
    pub(crate) fn is_at(&self, mark: Mark) -> bool {
        self.entries.len() == mark.entries as usize
    }

    /// How many values were not new, ever since.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether nothing is remembered at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A new byte begins.
    pub(crate) fn next_byte(&mut self) {
        self.last = None;
    }

    /// The forms of the values, newest first.
    pub(crate) fn forms(&self, register: Register) -> impl Iterator<Item = &[u8]> {
        let mut next = register.newest();
        core::iter::from_fn(move || {
            let entry = &self.entries[next?];
            next = entry.older.newest();
            Some(self.form(entry))
        })
    }

    pub(crate) fn summary(&self, register: Register) -> Summary {
        register.newest().map_or(Summary::default(), |at| self.entries[at].summary)
    }

    fn form(&self, entry: &Entry) -> &[u8] {
        &self.forms[entry.start as usize..entry.end as usize]
    }

    /// The list with one more value; `None` if it is there already.
    fn add(&mut self, scope: (u32, &Scope), older: Register, form: &[u8], whole: &Whole) -> Option<Register> {
        let (index, scope) = scope;
        let hash = FxBuildHasher.hash_one(form);
        let mut next = older.newest();
        while let Some(at) = next {
            let entry = &self.entries[at];
            if entry.hash == hash && self.form(entry) == form {
                self.refused += 1;
                return None;
            }
            next = entry.older.newest();
        }
        // Threads that differ elsewhere find the same value; their lists should be the same as well.
        let recent = self.entries.len().saturating_sub(RECENT);
        for at in recent..self.entries.len() {
            let entry = &self.entries[at];
            if entry.scope == index && entry.older == older && entry.hash == hash && self.form(entry) == form
            {
                return Some(Register::new(at as u32 + 1, entry.missing > 0));
            }
        }
        let missing = older.newest().map_or(scope.required.len() as u32, |at| self.entries[at].missing);
        let is_required = scope.required.binary_search_by(|name| (**name).cmp(form)).is_ok();
        let missing = missing - u32::from(is_required);
        let before = self.summary(older);
        let is_nested = value::is_nested(form);
        let summary = Summary {
            longest: before.longest.max(form.len() as u32),
            in_token: before.in_token || whole.tokens_with(form).is_some(),
            nested: before.nested || is_nested,
            simple: before.simple || !is_nested,
            unquoted: before.unquoted || !is_nested && form.first() != Some(&b'"'),
        };
        let start = self.forms.len() as u32;
        self.forms.extend_from_slice(form);
        let end = self.forms.len() as u32;
        self.entries.push(Entry { scope: index, older, hash, start, end, missing, summary });
        Some(Register::new(self.entries.len() as u32, missing > 0))
    }
}

/// The stacks of a matcher, with everything that their scopes remember.
pub(crate) struct Remembering<'m> {
    program: &'m Program,
    whole: &'m Whole,
    arena: &'m mut Arena,
    registers: &'m mut Registers,
    text: &'m [u8],
    /// How much of the text lies before the byte that is being taken.
    before: usize,
}

impl<'m> Remembering<'m> {
    pub(crate) fn new(
        bound: &'m BoundProgram,
        arena: &'m mut Arena,
        registers: &'m mut Registers,
        text: &'m [u8],
        before: usize,
    ) -> Self {
        let whole = bound.library().whole();
        Self { program: bound.program(), whole, arena, registers, text, before }
    }
}

impl Stacks for Remembering<'_> {
    #[inline]
    fn push(&mut self, program: &Program, frame: Frame, below: u32) -> u32 {
        self.arena.push(program, frame, below)
    }

    #[inline]
    fn pop(&mut self, stack: u32, out: &mut Vec<(Frame, u32)>) {
        self.arena.pop(stack, out);
    }

    fn token(&self) -> u32 {
        self.arena.token
    }

    fn union(&mut self, program: &Program, a: u32, b: u32) -> u32 {
        self.arena.union(program, a, b)
    }

    fn covers(&self, program: &Program, outer: u32, inner: u32) -> bool {
        self.arena.covers(program, outer, inner)
    }

    fn merges(&self) -> bool {
        self.arena.merges()
    }

    fn effort(&mut self) -> u32 {
        self.arena.effort()
    }

    fn check(&mut self, stack: u32, when: When, out: &mut Vec<u32>) {
        let end = match when {
            When::BeforeByte => self.before,
            When::AfterByte => self.text.len(),
        };
        let last = self.registers.last.take().filter(|last| last.0 == end);
        let Some(last) = last.or_else(|| Some((end, value::ending(&self.text[..end])?))) else {
            // Not JSON: there is nothing to compare.
            out.push(stack);
            return;
        };
        self.add(stack, &last.1, out);
        self.registers.last = Some(last);
    }
}

impl Remembering<'_> {
    /// Adds a value to the scopes that are nearest on a stack.
    fn add(&mut self, stack: u32, form: &[u8], out: &mut Vec<u32>) {
        // Where stacks fork, each way has a scope of its own.
        let mut ways: Vec<(Vec<Frame>, u32)> = vec![(Vec::new(), stack)];
        let mut frames = Vec::new();
        while let Some((above, stack)) = ways.pop() {
            frames.clear();
            self.arena.frames(stack, &mut frames);
            for &(frame, below) in &frames {
                let renewed = match frame.resume() {
                    Resume::Scope { index, register } => {
                        let scope = self.program.scope(index);
                        let register = self.registers.add((index, scope), register, form, self.whole);
                        register.map(|register| Frame::scope(index, register))
                    }
                    Resume::Finish => Some(frame),
                    Resume::At(_) | Resume::Loop { .. } | Resume::Limit { .. } => {
                        let mut above = above.clone();
                        above.push(frame);
                        ways.push((above, below));
                        continue;
                    }
                };
                if let Some(frame) = renewed {
                    let program = self.program;
                    let bottom = self.arena.push(program, frame, below);
                    let push = |stack, frame: &Frame| self.arena.push(program, *frame, stack);
                    out.push(above.iter().rev().fold(bottom, push));
                }
            }
        }
    }
}
