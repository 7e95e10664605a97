//! Describes the state of a matcher, for people and for debugging.

use super::Matcher;
use crate::leaf::Leaf;
use crate::parser::stack::{self, Top};
use crate::parser::thread::Thread;
use crate::program::At;

/// The state of a matcher.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateInfo {
    /// Bytes accepted so far.
    pub bytes: u64,
    /// Steps accepted so far.
    pub steps: usize,
    /// Whether the text so far is complete.
    pub accepting: bool,
    /// Whether only the end can follow.
    pub stopped: bool,
    /// Whether the end was accepted.
    pub terminated: bool,
    /// The bytes that may come next, as inclusive ranges.
    pub next_bytes: Vec<(u8, u8)>,
    /// The partial parses.
    pub threads: Vec<ThreadInfo>,
}

/// One partial parse.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadInfo {
    /// The rules that are being matched, the innermost first. Where the stack forks, one branch is shown.
    pub rules: Vec<String>,
    /// For a counted piece of text (a string with a length): the units begun, the minimum and the maximum.
    pub units: Option<(u32, u32, Option<u32>)>,
}

/// Number of rules shown of a stack.
const MAX_SHOWN_RULES: usize = 64;

impl Matcher {
    /// Describes the state of the matcher.
    pub fn state_info(&self) -> StateInfo {
        let next_bytes = self.next_bytes().ranges();
        let threads = self.threads().iter().map(|thread| self.describe(thread)).collect();
        StateInfo {
            bytes: self.now().bytes,
            steps: self.steps(),
            accepting: self.is_accepting(),
            stopped: self.is_stopped(),
            terminated: self.is_terminated(),
            next_bytes,
            threads,
        }
    }

    /// Returns the innermost named rule at the current position.
    pub(super) fn rule(&self) -> String {
        let rules = self.threads().iter().flat_map(|thread| self.describe(thread).rules);
        rules.into_iter().find(|rule| rule != "?").unwrap_or_else(|| "?".to_owned())
    }

    fn describe(&self, thread: &Thread) -> ThreadInfo {
        let program = self.bound.program();
        let mut rules = Vec::new();
        let mut units = None;
        match thread.at {
            At::DONE => {}
            At::Network(state) => rules.push(program.rule_name(state).to_owned()),
            At::Leaf(leaf, _) => {
                if let Leaf::Window { min, max, .. } = program.leaf(leaf) {
                    let bound = (*max != u32::MAX).then_some(*max);
                    units = (*min > 0 || bound.is_some()).then_some((thread.count.shown(), *min, bound));
                }
            }
        }
        let mut stack = thread.stack;
        while rules.len() < MAX_SHOWN_RULES {
            let (frame, below) = match self.arena.top(stack) {
                Top::Frame(frame, below) => (frame, below),
                Top::Union(members) => match members.first() {
                    Some(&member) => {
                        stack = member;
                        continue;
                    }
                    None => break,
                },
            };
            if let stack::Resume::At(state) = frame.resume() {
                rules.push(program.rule_name(state).to_owned());
            }
            stack = below;
        }
        ThreadInfo { rules, units }
    }
}
