//! Finds scopes that only tokens with a closing bracket can affect.
//!
//! Inside an object in an array with `uniqueItems`, most tokens write more of the object, and the object can still
//! become infinitely many values. The levels of the threads show where that is so ([`crate::program::Levels`]). There,
//! the array requires a trial only of tokens with a closing bracket.

use smallvec::SmallVec;

use super::trial::Trial;
use crate::parser::stack::{Frame, Register, Resume, StackId, Top};
use crate::parser::thread::Thread;
use crate::program::network::ScopeId;
use crate::program::{At, NetState};

/// With more threads than this, nothing is found.
const MAX_THREADS: usize = 64;
/// With more frames than this on the stacks, nothing is found.
const MAX_FRAMES: usize = 4_096;

/// The kinds of levels that were met; see [`crate::program::Levels`].
#[derive(Clone, Copy, Default)]
struct Kinds {
    bracketed: bool,
    ample: bool,
}

/// What was met on a stack from the top down.
#[derive(Clone, Copy, Default)]
struct Descent {
    /// Levels that count for the next scope: a bracketed level in which that scope checks no value, and an ample level
    /// in scopes above, all of which can be completed.
    known: Kinds,
    /// Levels since the last scope.
    own: Kinds,
    /// Whether the value that is checked next can become one of infinitely many; `None` if no check was met since the
    /// last scope.
    checked: Option<bool>,
}

impl Descent {
    /// Adds a level that continues in one of these states.
    fn level(&mut self, trial: &Trial<'_>, states: &[NetState]) {
        let program = trial.bound.program();
        let (levels, open) = (program.levels(), program.open());
        if states.iter().all(|state| levels.is_bracketed(program, *state)) {
            self.own.bracketed = true;
            self.known.bracketed |= states.iter().all(|state| open.has_no_checks(program, *state));
            self.own.ample |= states.iter().all(|state| levels.is_ample(program, *state));
        }
    }

    /// Goes down by a frame. Returns `None` if nothing is known below it.
    fn pass(&mut self, trial: &Trial<'_>, frame: Frame) -> Option<()> {
        match frame.resume() {
            Resume::At(state) if trial.is_check(state) => {
                self.checked = Some(self.known.ample || self.own.ample);
                let after: SmallVec<[NetState; 2]> = trial.checked(state).map(|(after, _)| after).collect();
                self.level(trial, &after);
            }
            Resume::At(state) => self.level(trial, &[state]),
            Resume::Scope { index, register } => {
                let has_needs = trial.bound.program().scope(index).has_listed_needs();
                self.leave(register.may_close() && !has_needs);
            }
            Resume::Words { index, .. } => {
                let program = trial.bound.program();
                self.own.ample &= !program.has_order(index);
                // Values other than words are listed in the frame below, which belongs to the same scope.
                if program.word_scope(index).is_none_or(|(_, scope)| !scope.has_others) {
                    self.leave(true);
                }
            }
            Resume::Loop { .. } | Resume::Finish => {}
            Resume::Limit { .. } => return None,
        }
        Some(())
    }

    /// Leaves a scope. `may_close` is true if any path can complete it.
    fn leave(&mut self, may_close: bool) {
        self.known.bracketed |= self.own.bracketed;
        self.known.ample |= self.own.ample && may_close;
        (self.own, self.checked) = (Kinds::default(), None);
    }

    /// Returns what holds for both.
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

/// Open scopes.
type Scopes = SmallVec<[(ScopeId, Register); 8]>;

/// The scopes found below the threads.
#[derive(Default)]
struct Found {
    bracketed: Scopes,
    others: Scopes,
    /// Number of frames visited.
    frames: usize,
}

impl Trial<'_> {
    /// Returns the scopes that a token without a closing bracket (outside of strings) cannot affect: it adds no value
    /// to them, and their next value can still be new.
    pub(super) fn bracketed_scopes(&mut self) -> Scopes {
        let found = self.find_bracketed().unwrap_or_default();
        if found.is_empty() || self.each_has_exit_alone() { found } else { Scopes::new() }
    }

    /// Checks whether it is irrelevant which threads survive a token: each of them is known to have a way out without
    /// the others.
    fn each_has_exit_alone(&mut self) -> bool {
        let threads = self.threads;
        if threads.iter().any(|thread| self.arena.forks(thread.stack)) {
            return false;
        }
        let before = (self.arena.mark(), self.registers.mark());
        threads.len() == 1
            || threads.iter().all(|thread| {
                self.has_known_exit(thread) || self.has_exit_from(&[*thread], before.0, before.1)
            })
    }

    fn find_bracketed(&self) -> Option<Scopes> {
        let (first, others) = self.threads.split_first().filter(|_| self.threads.len() <= MAX_THREADS)?;
        // The common part of the stacks stays as it is whichever threads survive.
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
        // A scope that has seen no value yet may be open twice.
        let Found { mut bracketed, others, .. } = found;
        bracketed.retain(|scope| !others.contains(scope));
        Some(bracketed)
    }

    /// Returns the stacks below each other, down to the first fork or the bottom.
    fn chain(&self, mut stack: StackId) -> Vec<StackId> {
        let mut chain = vec![stack];
        while let Top::Frame(_, below) = self.arena.top(stack) {
            chain.push(below);
            stack = below;
        }
        chain
    }

    /// Collects the levels of a thread above `top`, which is one of its stacks.
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

    /// Visits all frames below `stack`.
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
