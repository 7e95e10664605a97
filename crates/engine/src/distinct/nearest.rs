//! The distance to the end of a text, computed as if no value had to be new.
//!
//! A search for a way out tries the byte that is nearest to the end first, so it takes a detour only where a value is
//! not new:
//!
//! ```text
//!   [        one more item, with a `b`, is required:     `"` `b` `"` `]` are missing, so strings with a `b` are tried first
//! ```
//! The distances need not be exact: they only decide what is tried first, never what is possible.

use core::cmp::Reverse;

use maskwright_automata::ByteSet;
use rustc_hash::FxHashMap;

use super::trial::Trial;
use crate::library::ToEnd;
use crate::parser::stack::{Frame, Resume, StackId, Top};
use crate::parser::thread::Thread;
use crate::parser::waiting::Waiting;
use crate::program::{At, Place};

/// Rough number of bytes that a missing required key takes.
const KEY_BYTES: u32 = 8;
/// Upper bound of all distances.
const MAX_DISTANCE: u32 = 1 << 20;

/// Known distances from stacks to the end of the text.
#[derive(Debug, Default)]
pub(super) struct DistancesBelow {
    below: FxHashMap<StackId, u32>,
}

impl Trial<'_> {
    /// Sorts `bytes` for a search, which tries the last one first: required bytes are last, and within each group those
    /// nearest to the end. Returns the shortest distance.
    pub(super) fn nearest_last(
        &mut self,
        threads: &[Thread],
        required: ByteSet,
        bytes: &mut [u8],
        known_below: &mut DistancesBelow,
    ) -> u32 {
        let mut waiting = Vec::new();
        self.wait(threads, &mut waiting);
        self.buffers.meter.spend((waiting.len() * bytes.len()) as u32);
        let mut nearest = [MAX_DISTANCE; 256];
        for waiting in &waiting {
            let below = self.distance_below(waiting.thread.stack, known_below);
            for &byte in bytes.iter().filter(|byte| waiting.first.contains(**byte)) {
                let distance = self.distance_after(waiting, byte).saturating_add(below);
                let known = &mut nearest[usize::from(byte)];
                *known = distance.min(*known);
            }
        }
        bytes.sort_by_key(|byte| (required.contains(*byte), Reverse(nearest[usize::from(*byte)])));
        bytes.iter().map(|byte| nearest[usize::from(*byte)]).min().unwrap_or(MAX_DISTANCE)
    }

    /// Returns the distance from the position after `byte` to the end of the machine or leaf that takes it.
    fn distance_after(&self, waiting: &Waiting, byte: u8) -> u32 {
        let program = self.bound.program();
        let state = match waiting.thread.at {
            At::Leaf(leaf, state) => {
                let count = waiting.thread.count;
                return match program.step_leaf(leaf, state, count, byte) {
                    Some((At::Leaf(leaf, state), count)) => {
                        let count = count.single().unwrap_or(program.leaf(leaf).bounds().min);
                        self.bound.distances().leaves().leaf(program, leaf, state, count)
                    }
                    Some((At::Network(_), _)) => 0,
                    None => MAX_DISTANCE,
                };
            }
            At::Network(state) => state,
        };
        let next = match program.place(state) {
            Place::Done => None,
            Place::Node { next, .. } => Some(program.state_at(next)),
            Place::Cell(cell) => program.step(cell, byte),
        };
        next.map_or(MAX_DISTANCE, |next| self.unchecked().state(program, next))
    }

    /// Returns the distance from the top of a stack to the end of the text.
    fn distance_below(&self, stack: StackId, known_below: &mut DistancesBelow) -> u32 {
        let mut work = vec![stack];
        while let Some(&stack) = work.last() {
            if known_below.below.contains_key(&stack) {
                work.pop();
                continue;
            }
            let waiting = work.len();
            let known = |stack: &StackId| known_below.below.get(stack).copied();
            let distance = match self.arena.top(stack) {
                Top::Frame(frame, _) if matches!(frame.resume(), Resume::Finish) => 0,
                Top::Frame(frame, below) => {
                    if let Some(distance) = known(&below) {
                        distance.saturating_add(self.distance_of(frame)).min(MAX_DISTANCE)
                    } else {
                        work.push(below);
                        0
                    }
                }
                Top::Union([]) => 0,
                Top::Union(members) => {
                    work.extend(members.iter().filter(|member| known(member).is_none()));
                    members.iter().filter_map(known).min().unwrap_or(MAX_DISTANCE)
                }
            };
            if work.len() == waiting {
                known_below.below.insert(stack, distance);
            }
        }
        known_below.below[&stack]
    }

    fn distance_of(&self, frame: Frame) -> u32 {
        let program = self.bound.program();
        match frame.resume() {
            Resume::At(state) => self.unchecked().state(program, state),
            Resume::Loop { index, rounds } => {
                let counted = program.counted(index);
                let left = program.counts().need(rounds, counted.bounds());
                self.unchecked().rounds(counted.body, left)
            }
            Resume::Scope { index, register } => {
                self.registers.lacks(register, program.scope(index)).saturating_mul(KEY_BYTES)
            }
            Resume::Words { .. } | Resume::Limit { .. } | Resume::Finish => 0,
        }
    }

    fn unchecked(&self) -> &ToEnd {
        self.bound.distances().unchecked(self.bound.program(), self.bound.vocabulary())
    }
}
