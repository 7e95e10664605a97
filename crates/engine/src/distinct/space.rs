//! What may follow white space in front of a token.
//!
//! Tokens that differ by such white space only lead to the same places, as long as it makes no difference what it is. In the default style that is nearly always so: a vocabulary has hundreds of
//! ways to write white space, and the threads behind them are the same few. So each set of threads is looked at once.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::trial::Trial;
use crate::count::Count;
use crate::leaf::Leaf;
use crate::parser::thread::Thread;

/// What may take a byte behind white space that is no white space itself: a number for those threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BehindSpace(usize);

/// The places that white space leads to.
#[derive(Default)]
pub(super) struct Spaces {
    places: Vec<Place>,
    known: FxHashMap<Key, usize>,
    behind: FxHashMap<Key, BehindSpace>,
}

/// What tells threads from others.
type Key = Box<[u32]>;

/// A set of threads behind white space.
struct Place {
    /// What leads there.
    space: Vec<u8>,
    behind: Option<BehindSpace>,
    /// By the byte: the place behind it, `None` if it cannot be told apart from others.
    next: SmallVec<[(u8, Option<usize>); 4]>,
}

impl Spaces {
    pub(super) fn new(trial: &mut Trial<'_>) -> Self {
        let mut spaces = Self::default();
        spaces.add(trial, Vec::new());
        spaces
    }

    /// What may follow this white space, if that can be told.
    pub(super) fn behind(&mut self, trial: &mut Trial<'_>, space: &[u8]) -> Option<BehindSpace> {
        let mut place = 0;
        for &byte in space {
            let known = self.places.get(place)?.next.iter().find(|(known, _)| *known == byte);
            let next = if let Some(&(_, next)) = known {
                next
            } else {
                let mut longer = self.places[place].space.clone();
                longer.push(byte);
                let next = self.add(trial, longer);
                self.places[place].next.push((byte, next));
                next
            };
            place = next?;
        }
        self.places.get(place)?.behind
    }

    /// The place behind some white space.
    fn add(&mut self, trial: &mut Trial<'_>, space: Vec<u8>) -> Option<usize> {
        let (key, behind) = trial.places_behind(&space)?;
        let new = self.places.len();
        let place = *self.known.entry(key).or_insert(new);
        if place == new {
            let number = BehindSpace(self.behind.len());
            let behind = behind.map(|key| *self.behind.entry(key).or_insert(number));
            self.places.push(Place { space, behind, next: SmallVec::new() });
        }
        Some(place)
    }
}

impl Trial<'_> {
    /// The threads behind white space, and those of them that may take another byte; `None` if the threads cannot be told apart from others.
    fn places_behind(&mut self, space: &[u8]) -> Option<(Key, Option<Key>)> {
        let before = (self.arena.mark(), self.registers.mark());
        self.attempt(|this, threads| {
            if !this.steps(space, threads) {
                return None;
            }
            // In front of the white space, the text is the same, and in values, white space is nothing.
            let key = match **threads {
                [thread] if this.counts_space_only(&thread) => {
                    this.key_of(&[Thread { count: Count::ZERO, ..thread }], before)?
                }
                _ => this.key_of(threads, before)?,
            };
            let mut waiting = Vec::new();
            this.wait(threads, &mut waiting);
            waiting.retain(|waiting| waiting.first.iter().any(|byte| !byte.is_ascii_whitespace()));
            let mut behind: Vec<Thread> = waiting.into_iter().map(|waiting| waiting.thread).collect();
            behind.sort_unstable_by_key(|thread| (thread.at.key(), thread.count.raw(), thread.stack.raw()));
            Some((key, this.key_of(&behind, before)))
        })
    }

    /// Whether how much white space was written makes no difference to what may follow, except to whether there may be more of it. PERF: runs of up to 64 bytes would be so many places.
    fn counts_space_only(&self, thread: &Thread) -> bool {
        let Some((leaf, state)) = thread.leaf() else { return false };
        let (program, leaf) = (self.bound.program(), self.bound.program().leaf(leaf));
        let Leaf::Window { automaton, .. } = leaf else { return false };
        automaton.counts_only(state)
            && program.counts().may_stop(thread.count, leaf.bounds())
            && automaton.live(state).iter().all(|byte| byte.is_ascii_whitespace())
    }
}
