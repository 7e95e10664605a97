//! Scopes to which nothing happens before a bracket closes.
//!
//! Inside of an object in an array whose items must differ, most tokens write more of the object, and there are infinitely many values that it can still become. The levels of the
//! threads tell where that is so ([`crate::program::Levels`]): then only tokens with a closing bracket have to be tried for the sake of the array.

use smallvec::SmallVec;

use super::trial::Trial;
use crate::parser::stack::{Frame, Register, Resume, StackId, Top};
use crate::parser::thread::Thread;
use crate::program::network::ScopeId;
use crate::program::{At, NetState};

/// With more threads, nothing is found.
const MAX_THREADS: usize = 64;
/// The same with more frames on their stacks.
const MAX_FRAMES: usize = 4_096;

/// Whether there is a level of a kind.
#[derive(Clone, Copy, Default)]
struct Kinds {
    bracketed: bool,
    ample: bool,
}

/// What was met on a stack from the top down.
#[derive(Clone, Copy, Default)]
struct Descent {
    /// Levels at which the next scope checks no values, and by which all scopes above it can be completed.
    known: Kinds,
    /// Levels since the last scope.
    own: Kinds,
    /// Whether the value that is checked next can become one of infinitely many, if there is one.
    checked: Option<bool>,
}

impl Descent {
    /// A level, which goes on in one of these states.
    fn level(&mut self, trial: &Trial<'_>, states: &[NetState]) {
        let program = trial.bound.program();
        let (levels, open) = (program.levels(), program.open());
        if states.iter().all(|state| levels.is_bracketed(program, *state)) {
            self.own.bracketed = true;
            self.known.bracketed |= states.iter().all(|state| open.is_quiet(program, *state));
            self.own.ample |= states.iter().all(|state| levels.is_ample(program, *state));
        }
    }

    /// Goes down by a frame; `None` if nothing can be told below it.
    fn pass(&mut self, trial: &Trial<'_>, frame: Frame) -> Option<()> {
        match frame.resume() {
            Resume::At(state) if trial.is_check(state) => {
                self.checked = Some(self.known.ample || self.own.ample);
                let behind: SmallVec<[NetState; 2]> =
                    trial.checked(state).map(|(behind, _)| behind).collect();
                self.level(trial, &behind);
            }
            Resume::At(state) => self.level(trial, &[state]),
            Resume::Scope { index, register } => {
                let has_needs = trial.bound.program().scope(index).has_listed_needs();
                self.leave(register.may_close() && !has_needs);
            }
            Resume::Words { index, .. } => {
                let program = trial.bound.program();
                self.own.ample &= !program.has_order(index);
                // Values that are no words are listed in the frame below, which is of the same scope.
                if program.word_scope(index).is_none_or(|(_, scope)| !scope.has_others) {
                    self.leave(true);
                }
            }
            Resume::Loop { .. } | Resume::Finish => {}
            Resume::Limit { .. } => return None,
        }
        Some(())
    }

    /// Leaves a scope. `may_close` says whether it can be completed by any path.
    fn leave(&mut self, may_close: bool) {
        self.known.bracketed |= self.own.bracketed;
        self.known.ample |= self.own.ample && may_close;
        (self.own, self.checked) = (Kinds::default(), None);
    }

    /// What is so for both.
    fn and(self, other: Self) -> Self {
        let both =
            |a: Kinds, b: Kinds| Kinds { bracketed: a.bracketed && b.bracketed, ample: a.ample && b.ample };
        Self {
            known: both(self.known, other.known),
            own: both(self.own, other.own),
            checked: match (self.checked, other.checked) {
                (Some(a), Some(b)) => Some(a && b),
                (None, None) => None,
                _ => Some(false),
            },
        }
    }
}

/// The scopes that are open.
type Scopes = SmallVec<[(ScopeId, Register); 8]>;

/// What is found below the threads.
#[derive(Default)]
struct Found {
    bracketed: Scopes,
    others: Scopes,
    /// Frames that were looked at.
    frames: usize,
}

impl Trial<'_> {
    /// The scopes that a token without a closing bracket outside of strings does nothing to, and whose next value it leaves possible.
    pub(super) fn bracketed_scopes(&mut self) -> Scopes {
        let found = self.find_bracketed().unwrap_or_default();
        if found.is_empty() || self.each_leads_out_alone() { found } else { Scopes::new() }
    }

    /// Whether it makes no difference which threads a token leaves: each of them has a way out for itself, as far as that can be told.
    fn each_leads_out_alone(&mut self) -> bool {
        let threads = self.threads;
        if threads.iter().any(|thread| self.arena.forks(thread.stack)) {
            return false;
        }
        let before = (self.arena.mark(), self.registers.mark());
        threads.len() == 1
            || threads
                .iter()
                .all(|thread| self.is_out(thread) || self.leads_out(&[*thread], before.0, before.1))
    }

    fn find_bracketed(&self) -> Option<Scopes> {
        let (first, others) = self.threads.split_first().filter(|_| self.threads.len() <= MAX_THREADS)?;
        // What all threads have in common stays as it is whichever of them survive.
        let mut common = self.chain(first.stack);
        for thread in others {
            let chain = self.chain(thread.stack);
            common.retain(|stack| chain.contains(stack));
        }
        let top = *common.first()?;
        let mut found = Found::default();
        let mut levels = self.levels_above(first, top, &mut found)?;
        for thread in others {
            levels = levels.and(self.levels_above(thread, top, &mut found)?);
        }
        self.go_down(top, levels, &mut found)?;
        // A scope that has seen nothing may be open twice.
        let Found { mut bracketed, others, .. } = found;
        bracketed.retain(|scope| !others.contains(scope));
        Some(bracketed)
    }

    /// The stacks below each other down to where they fork, or to the end.
    fn chain(&self, mut stack: StackId) -> Vec<StackId> {
        let mut chain = vec![stack];
        while let Top::Frame(_, below) = self.arena.top(stack) {
            chain.push(below);
            stack = below;
        }
        chain
    }

    /// The levels of a thread above one of its stacks.
    fn levels_above(&self, thread: &Thread, top: StackId, found: &mut Found) -> Option<Descent> {
        let mut levels = Descent::default();
        if let At::Network(state) = thread.at {
            levels.level(self, &[state]);
        }
        let mut stack = thread.stack;
        while stack != top {
            let Top::Frame(frame, below) = self.arena.top(stack) else { return None };
            if let Resume::Scope { index, register } = frame.resume() {
                found.others.push((index, register));
            }
            levels.pass(self, frame)?;
            stack = below;
        }
        Some(levels)
    }

    /// Looks at everything below.
    fn go_down(&self, stack: StackId, levels: Descent, found: &mut Found) -> Option<()> {
        let mut work = vec![(stack, levels)];
        let mut frames = Vec::new();
        while let Some((stack, levels)) = work.pop() {
            self.arena.frames(stack, &mut frames);
            found.frames += frames.len();
            if found.frames > MAX_FRAMES {
                return None;
            }
            for (frame, below) in frames.drain(..) {
                if let Resume::Scope { index, register } = frame.resume() {
                    let is_bracketed = levels.known.bracketed && levels.checked != Some(false);
                    let scopes = if is_bracketed { &mut found.bracketed } else { &mut found.others };
                    scopes.push((index, register));
                }
                let mut levels = levels;
                levels.pass(self, frame)?;
                if !matches!(frame.resume(), Resume::Finish) {
                    work.push((below, levels));
                }
            }
        }
        Some(())
    }
}
