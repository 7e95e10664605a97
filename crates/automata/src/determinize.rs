//! Subset construction: a deterministic state is the set of places where the nondeterministic automaton
//! could be.
//!
//! A set is kept as the sorted list of its *reading* states plus one bit for acceptance; forks are gone
//! once they have been followed. Two details keep small automata cheap. A state's threads are dealt out
//! into one bucket per byte class, so a thread costs as many steps as its set has classes, not as many as
//! there are classes. And most buckets hold a single target, for which the resulting state is remembered.

use core::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::limits::Fuel;
use crate::nfa::Closure;
use crate::{ByteClasses, LimitError, Limits, Nfa, NfaState};

/// No state.
pub(crate) const NONE: u32 = u32::MAX;

/// A deterministic automaton as a construction leaves it: missing transitions mean rejection, and states
/// may be dead or equivalent. [`minimize`](crate::minimize) makes a [`Dfa`](crate::Dfa) of it.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) classes: ByteClasses,
    /// One row per state, one column per class; [`NONE`] where there is no transition. State 0 is the start.
    pub(crate) table: Vec<u32>,
    pub(crate) accepting: Vec<bool>,
}

impl Draft {
    /// An automaton without states, which the constructions then fill from state 0 on.
    pub(crate) fn new(classes: ByteClasses) -> Self {
        Self { classes, table: Vec::new(), accepting: Vec::new() }
    }

    /// How many states there are, the start included.
    #[expect(clippy::len_without_is_empty, reason = "there is always a start")]
    pub fn len(&self) -> usize {
        self.accepting.len()
    }

    /// Whether the automaton accepts the bytes.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let mut state = 0;
        for &byte in bytes {
            state = self.table[state as usize * self.classes.len() + usize::from(self.classes.class(byte))];
            if state == NONE {
                return false;
            }
        }
        self.accepting[state as usize]
    }

    /// Adds a state without transitions.
    pub(crate) fn push(&mut self, accepting: bool, limits: &Limits) -> Result<u32, LimitError> {
        limits.check_states(self.accepting.len() + 1)?;
        limits.check_bytes((self.table.len() + self.classes.len()) * size_of::<u32>())?;
        self.table.resize(self.table.len() + self.classes.len(), NONE);
        self.accepting.push(accepting);
        Ok(self.accepting.len() as u32 - 1)
    }

    pub(crate) fn set(&mut self, state: u32, class: usize, target: u32) {
        let width = self.classes.len();
        self.table[state as usize * width + class] = target;
    }
}

/// The deterministic automaton of the reachable subsets.
pub fn determinize(nfa: &Nfa, limits: &Limits) -> Result<Draft, LimitError> {
    let classes = ByteClasses::new(nfa.sets().iter().copied());
    let mut subsets = Subsets {
        nfa,
        limits,
        fuel: limits.fuel(),
        closure: Closure::new(nfa),
        draft: Draft::new(classes),
        threads: Vec::new(),
        spans: Vec::new(),
        index: HashTable::new(),
        scratch: Vec::new(),
        single: vec![NONE; nfa.len()],
    };
    subsets.run()?;
    Ok(subsets.draft)
}

struct Subsets<'a> {
    nfa: &'a Nfa,
    limits: &'a Limits,
    fuel: Fuel,
    closure: Closure<'a>,
    draft: Draft,
    /// The threads of all states, one list after the other.
    threads: Vec<u32>,
    /// Where the list of each state lies.
    spans: Vec<(usize, usize)>,
    index: HashTable<u32>,
    scratch: Vec<u32>,
    /// The state after a bucket that holds only this target.
    single: Vec<u32>,
}

impl Subsets<'_> {
    fn run(&mut self) -> Result<(), LimitError> {
        let class_lists = self.class_lists();
        let mut buckets: Vec<Vec<u32>> = vec![Vec::new(); self.draft.classes.len()];
        self.state_of(&[self.nfa.start()])?;
        let mut state = 0;
        while (state as usize) < self.draft.len() {
            let (from, to) = self.spans[state as usize];
            for at in from..to {
                let NfaState::Read { set, next } = self.nfa.states()[self.threads[at] as usize] else {
                    continue;
                };
                let list = &class_lists[set as usize];
                self.fuel.spend(list.len())?;
                for &class in list {
                    buckets[usize::from(class)].push(next);
                }
            }
            for (class, bucket) in buckets.iter_mut().enumerate() {
                if !bucket.is_empty() {
                    let target = self.state_of(bucket)?;
                    self.draft.set(state, class, target);
                    bucket.clear();
                }
            }
            state += 1;
        }
        Ok(())
    }

    /// The classes that each set of the automaton consists of.
    fn class_lists(&self) -> Vec<Vec<u8>> {
        let representatives = self.draft.classes.representatives();
        let members = |set: &crate::ByteSet| {
            let inside = |&class: &u8| set.contains(representatives[usize::from(class)]);
            (0..=(representatives.len() - 1) as u8).filter(inside).collect()
        };
        self.nfa.sets().iter().map(members).collect()
    }

    /// The deterministic state that stands for these targets and all that follows without reading.
    fn state_of(&mut self, targets: &[u32]) -> Result<u32, LimitError> {
        let single = if let [only] = *targets { Some(only as usize) } else { None };
        if let Some(only) = single
            && self.single[only] != NONE
        {
            return Ok(self.single[only]);
        }
        let mut threads = core::mem::take(&mut self.scratch);
        let accepts = self.closure.expand(targets, &mut threads);
        self.fuel.spend(self.closure.visited())?;
        let state = self.intern(&threads, accepts)?;
        self.scratch = threads;
        if let Some(only) = single {
            self.single[only] = state;
        }
        Ok(state)
    }

    fn intern(&mut self, threads: &[u32], accepts: bool) -> Result<u32, LimitError> {
        let hash = FxBuildHasher.hash_one((threads, accepts));
        let (lists, spans, accepting) = (&self.threads, &self.spans, &self.draft.accepting);
        let get = |id: u32| {
            let (from, to) = spans[id as usize];
            (&lists[from..to], accepting[id as usize])
        };
        if let Some(&found) = self.index.find(hash, |&id| get(id) == (threads, accepts)) {
            return Ok(found);
        }
        self.limits.check_bytes((self.threads.len() + threads.len()) * size_of::<u32>())?;
        let id = self.draft.push(accepts, self.limits)?;
        self.spans.push((self.threads.len(), self.threads.len() + threads.len()));
        self.threads.extend_from_slice(threads);
        let (lists, spans, accepting) = (&self.threads, &self.spans, &self.draft.accepting);
        self.index.insert_unique(hash, id, |&id| {
            let (from, to) = spans[id as usize];
            FxBuildHasher.hash_one((&lists[from..to], accepting[id as usize]))
        });
        Ok(id)
    }
}
