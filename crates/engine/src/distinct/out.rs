//! Finds places with an exit that is known without a search.
//!
//! A place has a known *exit* if a path to the end of the text is known on which no check can fail
//! ([`crate::program::Exits`]). The path is followed from a thread down its stack, from one scope to the next.

use smallvec::SmallVec;

use super::trial::Trial;
use crate::count::UNBOUNDED;
use crate::parser::frames::Frames;
use crate::parser::stack::{Arena, Frame, Register, Resume, StackId, Top};
use crate::parser::thread::Thread;
use crate::program::network::{Callee, ScopeId};
use crate::program::{At, NetState, Place, Program, join};
use crate::small_set::SmallSet;

/// What is known of the path from a place down to the next scope.
#[derive(Clone, Default)]
pub(super) struct Above {
    /// Scopes for which all required values can be written on the path.
    open: SmallVec<[ScopeId; 4]>,
    /// The words (as bits) written on a path on which no other check can fail; `None` if no such path is known.
    pub(super) words: Option<u128>,
    /// The same for an infinite path; see [`crate::program::Exits`].
    pub(super) infinite: Option<u128>,
    /// Whether every path is infinite, because the place is in a leaf with infinitely many values.
    is_infinite: bool,
    /// The thread whose current value must be new to the next scope, and none of the words of the path.
    value: Option<Thread>,
}

impl Above {
    /// Returns a path that writes nothing, or no path if `leads_out` is false.
    pub(super) fn new(leads_out: bool, is_infinite: bool) -> Self {
        let words = leads_out.then_some(0);
        let infinite = words.filter(|_| is_infinite);
        Self { open: SmallVec::new(), words, infinite, is_infinite, value: None }
    }

    pub(super) fn of(program: &Program, state: NetState) -> Self {
        let exits = program.exits();
        Self {
            open: program.open().state(program, state),
            words: exits.state(program, state),
            infinite: exits.infinite_state(program, state),
            is_infinite: false,
            value: None,
        }
    }

    /// Returns the path from a state that follows a value of which there are infinitely many.
    pub(super) fn of_infinite(program: &Program, state: NetState) -> Self {
        let above = Self::of(program, state);
        Self { infinite: above.words, is_infinite: true, ..above }
    }

    /// Extends the path by the frame below it.
    pub(super) fn pass(&mut self, trial: &Trial<'_>, frame: Frame) {
        let program = trial.bound.program();
        match frame.resume() {
            Resume::At(state) => {
                let before = (self.infinite.is_some() && trial.is_check(state)).then(|| self.clone());
                self.then(Self::of(program, state));
                if let Some(before) = before.filter(|_| self.is_dead()) {
                    // The array or object that ends here is one of infinitely many.
                    *self = Self { words: before.infinite, is_infinite: true, ..before };
                    let mut checked = trial.checked(state).map(|(_, above)| above);
                    self.then(checked.find(|above| !above.is_dead()).unwrap_or_default());
                }
            }
            Resume::Loop { index, rounds } => {
                let (counted, exits) = (program.counted(index), program.exits());
                let may_stop =
                    program.counts().may_stop(rounds, counted.bounds()) || exits.machine(counted.body);
                let mut rounds = Self::new(may_stop, false);
                rounds.open = program.open().counted(index).into();
                if may_stop && counted.bounds().max == UNBOUNDED {
                    rounds.infinite = exits.infinite_machine(counted.body).filter(|words| *words == 0);
                }
                self.then(rounds);
            }
            Resume::Scope { index, register } => {
                // If no wanted key is missing, no key can become required. Otherwise the path must be open for this
                // scope.
                let has_needs =
                    program.scope(index).has_listed_needs() && trial.lacks_wanted(index, register);
                let seen = trial.registers.count(register);
                let can_be_new = |words: u128| {
                    let more = seen.saturating_add(words.count_ones() as usize);
                    self.value.is_none_or(|value| trial.has_more_values(&value, more))
                };
                let is_new = |words: Option<u128>| {
                    words.is_some_and(|words| {
                        !trial.any_seen(words, register) && (words == 0 || !has_needs) && can_be_new(words)
                    })
                };
                let (mut passes, mut infinitely) = (false, false);
                if register.may_close() {
                    (passes, infinitely) = (is_new(self.words), is_new(self.infinite));
                }
                if has_needs || !register.may_close() {
                    // If the current value becomes one of the missing ones, one less is missing.
                    let is_open = self.open.contains(&index) && can_be_new(0);
                    passes |= is_open;
                    infinitely |= is_open && (self.is_infinite || trial.misses_infinite(index, register));
                }
                *self = Self::new(passes || infinitely, infinitely);
            }
            // A scope that keeps a set of words can always be completed.
            Resume::Words { index, set } => {
                let mut all = (0..).zip(program.network().followed_words());
                let mut is_seen = |words: u128| {
                    all.any(|(at, word)| words >> at & 1 == 1 && program.has_seen(index, set, word))
                };
                // If words have an order, it may be too late for one that the path needs.
                let infinitely =
                    !program.has_order(index) && self.infinite.is_some_and(|words| !is_seen(words));
                // Values other than words are listed in the scope below.
                *self = Self { value: self.value, ..Self::new(self.words.is_some(), infinitely) };
            }
            Resume::Limit { .. } | Resume::Finish => {}
        }
    }

    /// Extends the path by the place below it. A scope that is open above needs a path without words below, and one
    /// that is open below needs such a path above.
    pub(super) fn then(&mut self, below: Self) {
        if below.words != Some(0) {
            self.open.clear();
        }
        if self.words == Some(0) {
            self.open.extend(below.open);
        }
        self.infinite = join(self.infinite, below.words).or_else(|| join(self.words, below.infinite));
        self.words = join(self.words, below.words);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.words.is_none() && self.open.is_empty()
    }
}

impl Trial<'_> {
    /// Returns how many values to try in a leaf with infinitely many values (or nearly so) until one of them is neither
    /// seen nor one of the finitely many that something else may need. Returns `None` in any other leaf.
    pub(super) fn infinite_values(&self, thread: &Thread) -> Option<usize> {
        thread.leaf()?;
        let values = self.values_below(thread.stack);
        self.has_more_values(thread, values).then_some(values)
    }

    /// Returns how many values the scopes on a stack have seen or may need at most, plus one.
    pub(super) fn values_below(&self, stack: StackId) -> usize {
        self.scopes_below(stack, true).iter().fold(1usize, |sum, &(index, register)| {
            let finite = self.bound.program().scope(index).finite as usize;
            sum.saturating_add(self.registers.count(register)).saturating_add(finite)
        })
    }

    /// Returns all scopes on a stack, or only the nearest one on each branch.
    pub(super) fn scopes_below(&self, stack: StackId, all: bool) -> SmallVec<[(ScopeId, Register); 4]> {
        let (mut scopes, mut frames) = (SmallVec::new(), Frames::of(self.arena, [stack]));
        while let Some((frame, below)) = frames.next() {
            let scope = match frame.resume() {
                Resume::Scope { index, register } => Some((index, register)),
                _ => None,
            };
            scopes.extend(scope);
            if scope.is_none() || all {
                frames.follow(below);
            }
        }
        scopes
    }

    /// Checks whether a way to the end of the text is known on which no check can fail.
    pub(super) fn has_known_exit(&self, thread: &Thread) -> bool {
        let program = self.bound.program();
        match thread.at {
            At::DONE => return true,
            At::Network(state) => return self.has_exit_below(thread.stack, Above::of(program, state)),
            At::Leaf(..) => {}
        }
        let mut frames = Vec::new();
        self.arena.frames(thread.stack, &mut frames);
        frames.into_iter().any(|(frame, below)| match frame.resume() {
            Resume::At(after) if self.is_check(after) => {
                let checked = self.checked(after).map(|(_, above)| above);
                let has_known_exit = |above| {
                    let mut all = Above { value: Some(*thread), ..self.at_leaf(thread) };
                    all.then(above);
                    self.has_exit_below(below, all)
                };
                checked.filter(|above| !above.is_dead()).any(has_known_exit)
            }
            // Any other frame: follow the whole stack.
            _ => self.has_exit_below(thread.stack, self.at_leaf(thread)),
        })
    }

    /// Returns the path through the rest of a leaf.
    pub(super) fn at_leaf(&self, thread: &Thread) -> Above {
        let is_nested = self.bound.program().has_nested_values();
        Above::new(true, is_nested && self.infinite_values(thread).is_some())
    }

    /// Checks whether a key that is required, or may become required, was not seen.
    fn lacks_wanted(&self, index: ScopeId, register: Register) -> bool {
        let mut wanted = self.bound.program().scope(index).wanted.iter();
        wanted.any(|name| !self.registers.has(register, name))
    }

    /// Checks whether such a key was not seen whose member has infinitely many values.
    pub(super) fn misses_infinite(&self, index: ScopeId, register: Register) -> bool {
        let program = self.bound.program();
        let mut wanted = program.scope(index).wanted.iter().zip(program.open().infinite(index));
        wanted.any(|(name, is_infinite)| *is_infinite && !self.registers.has(register, name))
    }

    /// Returns the states after the checks of a state, and the paths from there.
    pub(super) fn checked(&self, state: NetState) -> impl Iterator<Item = (NetState, Above)> + '_ {
        let program = self.bound.program();
        let calls = match program.place(state) {
            Place::Cell(cell) => &*cell.calls,
            Place::Done | Place::Node { .. } => &[],
        };
        let checks = calls.iter().filter(|call| call.callee == Callee::Check);
        let after = checks.map(|call| program.returning(call));
        after.map(|state| (state, Above::of(program, state)))
    }

    /// Checks whether the path `above` can be continued down a stack to the end of the text.
    pub(super) fn has_exit_below(&self, stack: StackId, above: Above) -> bool {
        self.leads_down(stack, above, |below, is_infinite| {
            // PERF: hundreds of tokens are tried from the same place, and the stack below its scope is the same for all
            // of them.
            if Arena::is_newer(below, self.known_exits.base) {
                return None;
            }
            let known = self.known_exits.below_scopes.borrow().get(&(below, is_infinite)).copied();
            Some(known.unwrap_or_else(|| {
                let has_known_exit = self.leads_down(below, Above::new(true, is_infinite), |_, _| None);
                self.known_exits.below_scopes.borrow_mut().insert((below, is_infinite), has_known_exit);
                has_known_exit
            }))
        })
    }

    /// Does the same as [`Self::has_exit_below`]. `below_scope` may know the answer for the stack below a scope; its
    /// second argument tells whether the path there is infinite.
    pub(super) fn leads_down(
        &self,
        stack: StackId,
        above: Above,
        below_scope: impl Fn(StackId, bool) -> Option<bool>,
    ) -> bool {
        if above.is_dead() {
            return false;
        }
        let (mut work, mut frames, mut visited) = (vec![(stack, above)], Vec::new(), SmallSet::default());
        while let Some((stack, above)) = work.pop() {
            if !visited.insert(stack) {
                continue;
            }
            self.arena.frames(stack, &mut frames);
            for (frame, below) in frames.drain(..) {
                let mut above = above.clone();
                above.pass(self, frame);
                if matches!(frame.resume(), Resume::Finish) && above.words.is_some() {
                    return true;
                }
                if above.is_dead() {
                    continue;
                }
                let is_scope = matches!(frame.resume(), Resume::Scope { .. } | Resume::Words { .. });
                match is_scope.then(|| below_scope(below, above.infinite.is_some())).flatten() {
                    Some(true) => return true,
                    Some(false) => {}
                    None => work.push((below, above)),
                }
            }
        }
        false
    }

    /// Checks whether one of these words was seen.
    pub(super) fn any_seen(&self, words: u128, register: Register) -> bool {
        let mut all = (0..).zip(self.bound.program().network().followed_words());
        words != 0 && all.any(|(at, word)| words >> at & 1 == 1 && self.registers.has(register, word))
    }

    /// Checks whether every continuation of a thread writes a value that was already seen in its scope.
    pub(super) fn needs_seen(&self, thread: &Thread) -> bool {
        let (program, needed) = (self.bound.program(), self.bound.program().needed());
        let mut words = match thread.at {
            At::Network(state) => needed.state(program, state),
            At::Leaf(..) => 0,
        };
        let mut stack = thread.stack;
        loop {
            let Top::Frame(frame, below) = self.arena.top(stack) else { return false };
            match frame.resume() {
                Resume::At(state) => words |= needed.state(program, state),
                Resume::Loop { index, rounds } => {
                    let counted = program.counted(index);
                    if !program.counts().may_stop(rounds, counted.bounds()) {
                        words |= needed.machine(counted.body);
                    }
                }
                Resume::Limit { .. } => {}
                // No thread exists where all words of a set were seen.
                Resume::Words { .. } | Resume::Finish => return false,
                Resume::Scope { register, .. } => return self.any_seen(words, register),
            }
            stack = below;
        }
    }

    /// Returns the largest number of values seen by a nearest scope on a stack.
    pub(super) fn seen_below(&self, stack: StackId) -> usize {
        let scopes = self.scopes_below(stack, false).into_iter();
        scopes.map(|(_, register)| self.registers.count(register)).max().unwrap_or(0)
    }
}
