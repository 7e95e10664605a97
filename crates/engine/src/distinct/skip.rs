//! Skips the parts of a text that make no difference to a search for a way out.

use super::out::Above;
use super::trial::Trial;
use crate::parser::stack::{Resume, Top};
use crate::parser::thread::Thread;
use crate::program::At;

/// Maximum number of parts that a stack may fork into; otherwise nothing is skipped.
const MAX_FORKS: usize = 64;
/// Maximum number of stack nodes above the check, counted once for each path; otherwise nothing is skipped.
const MAX_FORKED_STACKS: usize = 1_024;

impl Trial<'_> {
    /// Skips what makes no difference to the text after it: the inside of a member's value, of an inner scope that can
    /// be completed, or of a value of which there are infinitely many. One path through it represents all. Returns the
    /// threads after such parts, and the other threads.
    pub(super) fn skip_all(&self, threads: Vec<Thread>) -> (Vec<Thread>, Vec<Thread>) {
        let (mut skipped, mut others) = (Vec::new(), Vec::new());
        let mut work: Vec<(Thread, bool)> = threads.into_iter().map(|thread| (thread, false)).collect();
        while let Some((thread, is_skipped)) = work.pop() {
            if let Some(after) = self.skip_value(&thread) {
                work.extend(after.into_iter().map(|thread| (thread, true)));
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
        // Skipped text is not written, but an array or object that must be new is read back from the text.
        let is_read_back = || program.network().scattered_values || self.has_check_below(thread.stack);
        if program.has_nested_values() && is_read_back() {
            return None;
        }
        self.skip_without_checks(thread).or_else(|| self.skip_scope(thread))
    }

    /// Returns the threads after the check of a value that can still become one of infinitely many, one not seen and
    /// not needed elsewhere. Skipped text is not written, so an enclosing value that must be new could not be read
    /// back: it must be skipped as well, or nothing is.
    fn skip_value(&self, thread: &Thread) -> Option<Vec<Thread>> {
        let program = self.bound.program();
        let above = match thread.at {
            At::Network(state) => Above::of(program, state),
            At::Leaf(..) => Above::new(true, self.is_infinite(thread)),
        };
        let mut work = self.threads_after_value(thread, above)?;
        if !program.has_nested_values() {
            return Some(work);
        }
        let mut after = Vec::new();
        while let Some(thread) = work.pop() {
            match thread.at {
                At::Network(state) if self.has_check_below(thread.stack) => {
                    work.extend(self.threads_after_value(&thread, Above::of_infinite(program, state))?);
                }
                _ => after.push(thread),
            }
            if after.len() + work.len() > MAX_FORKS {
                return None;
            }
        }
        Some(after)
    }

    /// Returns the threads after the next check on a stack, if a path leads to it on which no other check can fail and
    /// the value is one of infinitely many.
    fn threads_after_value(&self, thread: &Thread, above: Above) -> Option<Vec<Thread>> {
        // If the stack forks, every branch must have such a check.
        let (mut after, mut frames) = (Vec::new(), Vec::new());
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
                        after.extend(self.checked(state).map(|(next, _)| Thread::network(next, below)));
                        continue;
                    }
                    Resume::Finish => return None,
                    _ => above.pass(self, frame),
                }
                if above.words.is_none() || after.len() + work.len() > MAX_FORKS {
                    return None;
                }
                work.push((below, above));
            }
        }
        Some(after)
    }

    /// Returns the thread after a leaf and after machines without checks; `None` if that is a value that is checked.
    fn skip_without_checks(&self, thread: &Thread) -> Option<Thread> {
        let program = self.bound.program();
        let mut skipped = *thread;
        loop {
            let can_end = match skipped.at {
                At::Leaf(..) => true,
                At::Network(state) => {
                    program.open().has_no_checks(program, state)
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

    /// Returns the thread after the next scope, if that scope can be completed.
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
