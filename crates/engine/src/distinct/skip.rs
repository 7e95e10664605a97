//! What a search passes over.

use super::out::Above;
use super::trial::Trial;
use crate::parser::stack::{Resume, Top};
use crate::parser::thread::Thread;
use crate::program::At;

/// A stack that forks into more parts is not passed over.
const MAX_FORKS: usize = 64;
/// The same for a stack with more nodes above the check, counted once for each path.
const MAX_FORKED_STACKS: usize = 1_024;

impl Trial<'_> {
    /// Passes over what does not matter: what is inside of a member's value, of an inner scope that can be completed, or of a value of which
    /// there are infinitely many, makes no difference to what may follow. So one path through it stands for all. Returns the threads behind such things, and
    /// the others.
    pub(super) fn skip_all(&self, threads: Vec<Thread>) -> (Vec<Thread>, Vec<Thread>) {
        let (mut skipped, mut others) = (Vec::new(), Vec::new());
        let mut work: Vec<(Thread, bool)> = threads.into_iter().map(|thread| (thread, false)).collect();
        while let Some((thread, is_skipped)) = work.pop() {
            if let Some(behind) = self.skip_value(&thread) {
                work.extend(behind.into_iter().map(|thread| (thread, true)));
            } else if let Some(next) = self.skip(&thread) {
                work.push((next, true));
            } else {
                if is_skipped { &mut skipped } else { &mut others }.push(thread);
            }
        }
        for threads in [&mut skipped, &mut others] {
            threads.sort_unstable_by_key(|thread| (thread.at, thread.count, thread.stack));
            threads.dedup();
        }
        (skipped, others)
    }

    fn skip(&self, thread: &Thread) -> Option<Thread> {
        let program = self.bound.program();
        // What is passed over is not written, and an array or object that must be new is read back.
        let is_read_back = || program.network().scattered_values || self.has_check_below(thread.stack);
        if program.has_nested_values() && is_read_back() {
            return None;
        }
        self.skip_quiet(thread).or_else(|| self.skip_scope(thread))
    }

    /// Behind the check of a value that can still become one of infinitely many: one that was not seen, and that nothing else needs. What is passed over is not written, so a value around it that
    /// must be new cannot be read back: it is passed over, too, or nothing is.
    fn skip_value(&self, thread: &Thread) -> Option<Vec<Thread>> {
        let program = self.bound.program();
        let above = match thread.at {
            At::Network(state) => Above::of(program, state),
            At::Leaf(..) => Above::new(true, self.is_infinite(thread)),
        };
        let mut work = self.behind_value(thread, above)?;
        if !program.has_nested_values() {
            return Some(work);
        }
        let mut behind = Vec::new();
        while let Some(thread) = work.pop() {
            match thread.at {
                At::Network(state) if self.has_check_below(thread.stack) => {
                    work.extend(self.behind_value(&thread, Above::of_infinite(program, state))?);
                }
                _ => behind.push(thread),
            }
            if behind.len() + work.len() > MAX_FORKS {
                return None;
            }
        }
        Some(behind)
    }

    /// The threads behind the next check on a stack, if a path leads there on which no other check can fail, and which is one of infinitely many.
    fn behind_value(&self, thread: &Thread, above: Above) -> Option<Vec<Thread>> {
        // Where the stack forks, all of its parts must have such a check.
        let (mut behind, mut frames) = (Vec::new(), Vec::new());
        let (mut work, mut stacks) = (vec![(thread.stack, above)], 0);
        while let Some((stack, above)) = work.pop() {
            stacks += 1;
            if stacks > MAX_FORKED_STACKS {
                return None;
            }
            self.arena.frames(stack, &mut frames);
            for (frame, below) in frames.drain(..) {
                let mut above = above.clone();
                match frame.resume() {
                    Resume::At(state) if self.is_check(state) => {
                        if above.infinite != Some(0) {
                            return None;
                        }
                        behind.extend(self.checked(state).map(|(next, _)| Thread::network(next, below)));
                        continue;
                    }
                    Resume::Finish => return None,
                    _ => above.pass(self, frame),
                }
                if above.words.is_none() || behind.len() + work.len() > MAX_FORKS {
                    return None;
                }
                work.push((below, above));
            }
        }
        Some(behind)
    }

    /// Behind a leaf, and behind machines without checks; nowhere if that is a value that is checked.
    fn skip_quiet(&self, thread: &Thread) -> Option<Thread> {
        let program = self.bound.program();
        let mut skipped = *thread;
        loop {
            let can_end = match skipped.at {
                At::Leaf(..) => true,
                At::Network(state) => {
                    program.open().is_quiet(program, state)
                        && program.exits().state(program, state) == Some(0)
                }
            };
            let Top::Frame(frame, below) = self.arena.top(skipped.stack) else { break };
            let Resume::At(next) = frame.resume() else { break };
            if !can_end {
                break;
            }
            if self.is_check(next) {
                return None;
            }
            skipped = Thread::network(next, below);
        }
        (skipped != *thread).then_some(skipped)
    }

    /// Behind the next scope, if it can be completed.
    fn skip_scope(&self, thread: &Thread) -> Option<Thread> {
        let program = self.bound.program();
        let At::Network(state) = thread.at else { return None };
        let (mut above, mut stack) = (Above::of(program, state), thread.stack);
        loop {
            let Top::Frame(frame, below) = self.arena.top(stack) else { return None };
            stack = below;
            above.pass(self, frame);
            if above.is_dead() {
                return None;
            }
            if matches!(frame.resume(), Resume::Scope { .. }) {
                let Top::Frame(frame, below) = self.arena.top(stack) else { return None };
                let Resume::At(next) = frame.resume() else { return None };
                return (!self.is_check(next)).then(|| Thread::network(next, below));
            }
        }
    }
}
