//! Subset construction: a deterministic state is the set of states in which the nondeterministic automaton can be.
//!
//! A set is stored as the sorted list of its *reading* states plus one bit for acceptance; forks are left out once they
//! have been followed. Two details keep this cheap. A state's threads are distributed to one bucket per byte class, so
//! a thread costs as many steps as its set has classes, not as there are classes in all. And the successor of a bucket
//! is cached by the bucket, which is short, whereas the set of threads that it leads to may be long: the end of a
//! character leads to hundreds of beginnings of the next.
//!
//! Of the copies that a counted repetition has of its body, a set keeps only the best one for each place, because it
//! can do everything that the others can. So `(a+ ?){1,50}` has a set for each number of words, and not for each pair
//! of a least and a greatest number.

use core::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::limits::Fuel;
use crate::nfa::Closure;
use crate::{ByteClasses, LimitError, Limits, Nfa, NfaState};

/// The number for "no state".
pub(crate) const NONE: u32 = u32::MAX;

/// A deterministic automaton as a construction produces it: missing transitions mean rejection, and states may be dead
/// or equivalent. [`minimize`](crate::minimize()) turns it into a [`Dfa`](crate::Dfa).
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) classes: ByteClasses,
    /// One row per state, one column per class; [`NONE`] where there is no transition. State 0 is the start.
    pub(crate) table: Vec<u32>,
    pub(crate) accepting: Vec<bool>,
}

impl Draft {
    /// Creates an automaton without states. The constructions add them, the start first.
    pub(crate) fn new(classes: ByteClasses) -> Self {
        Self { classes, table: Vec::new(), accepting: Vec::new() }
    }

    /// Returns the number of states, including the start.
    #[expect(clippy::len_without_is_empty, reason = "there is always a start")]
    pub fn len(&self) -> usize {
        self.accepting.len()
    }

    /// Checks whether the automaton accepts the bytes.
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

/// Builds the deterministic automaton of the reachable subsets.
pub fn determinize(nfa: &Nfa, limits: &Limits) -> Result<Draft, LimitError> {
    let classes = ByteClasses::new(nfa.sets().iter().copied());
    let mut subsets = Subsets {
        nfa,
        limits,
        fuel: limits.fuel(),
        closure: Closure::new(nfa),
        ranks: Ranks::new(nfa),
        draft: Draft::new(classes),
        threads: Lists::default(),
        buckets: Lists::default(),
        after_bucket: Vec::new(),
        scratch: Vec::new(),
    };
    subsets.run()?;
    Ok(subsets.draft)
}

struct Subsets<'a> {
    nfa: &'a Nfa,
    limits: &'a Limits,
    fuel: Fuel,
    closure: Closure<'a>,
    ranks: Option<Ranks>,
    draft: Draft,
    /// The threads of each state. The accepting state of the NFA, if it is reached, is the first one.
    threads: Lists,
    /// The buckets met so far, and the state that follows each.
    buckets: Lists,
    after_bucket: Vec<u32>,
    scratch: Vec<u32>,
}

impl Subsets<'_> {
    fn run(&mut self) -> Result<(), LimitError> {
        let class_lists = self.class_lists();
        let mut buckets: Vec<Vec<u32>> = vec![Vec::new(); self.draft.classes.len()];
        self.state_of(&[self.nfa.start()])?;
        let mut state = 0;
        while (state as usize) < self.draft.len() {
            for &thread in self.threads.get(state) {
                let NfaState::Read { set, next } = self.nfa.states()[thread as usize] else { continue };
                let list = &class_lists[set as usize];
                self.fuel.spend(list.len())?;
                for &class in list {
                    buckets[usize::from(class)].push(next);
                }
            }
            for (class, bucket) in buckets.iter_mut().enumerate() {
                if !bucket.is_empty() {
                    bucket.sort_unstable();
                    bucket.dedup();
                    let target = self.state_of(bucket)?;
                    self.draft.set(state, class, target);
                    bucket.clear();
                }
            }
            state += 1;
        }
        Ok(())
    }

    /// Returns the classes of which each set of the automaton consists.
    fn class_lists(&self) -> Vec<Vec<u8>> {
        let representatives = self.draft.classes.representatives();
        let members = |set: &crate::ByteSet| {
            let inside = |&class: &u8| set.contains(representatives[usize::from(class)]);
            (0..=(representatives.len() - 1) as u8).filter(inside).collect()
        };
        self.nfa.sets().iter().map(members).collect()
    }

    /// Returns the deterministic state for these sorted targets and everything that follows without reading.
    fn state_of(&mut self, bucket: &[u32]) -> Result<u32, LimitError> {
        let (number, is_new) = self.buckets.intern(bucket);
        if !is_new {
            return Ok(self.after_bucket[number as usize]);
        }
        let mut threads = core::mem::take(&mut self.scratch);
        let accepts = self.closure.expand(bucket, &mut threads);
        self.fuel.spend(self.closure.visited())?;
        if let Some(ranks) = &mut self.ranks {
            ranks.keep_best(&mut threads);
        }
        let (state, is_new) = self.threads.intern(&threads);
        self.scratch = threads;
        self.after_bucket.push(state);
        if is_new {
            self.limits.check_bytes(self.threads.memory() + self.buckets.memory())?;
            self.draft.push(accepts, self.limits)?;
        }
        Ok(state)
    }
}

/// The rank of each state among its copies.
struct Ranks {
    /// The index of the first rank of each state. A state in nested repetitions has several.
    first: Vec<u32>,
    /// The number of a place, and how many copies of it are better.
    places: Vec<(u32, u32)>,
    /// For each place, the round in which it was last seen, and the best copy in that round.
    best: Vec<(u32, u32)>,
    round: u32,
}

impl Ranks {
    /// Returns `None` if there are no copies.
    fn new(nfa: &Nfa) -> Option<Self> {
        if nfa.copies().is_empty() {
            return None;
        }
        let mut found: Vec<(u32, u32, u32)> = Vec::new();
        let mut places = 0;
        for copies in nfa.copies() {
            for (rank, &start) in copies.starts.iter().enumerate() {
                found.extend((0..copies.len).map(|at| (start + at, places + at, rank as u32)));
            }
            places += copies.len;
        }
        found.sort_unstable();
        let mut first = Vec::with_capacity(nfa.len() + 1);
        let mut at = 0;
        for state in 0..=nfa.len() as u32 {
            at += found[at..].iter().take_while(|one| one.0 < state).count();
            first.push(at as u32);
        }
        let best = vec![(0, 0); places as usize];
        let places = found.into_iter().map(|(_, place, rank)| (place, rank)).collect();
        Some(Self { first, places, best, round: 0 })
    }

    fn of(&self, state: u32) -> &[(u32, u32)] {
        &self.places[self.first[state as usize] as usize..self.first[state as usize + 1] as usize]
    }

    /// Removes the states that have a better copy.
    fn keep_best(&mut self, threads: &mut Vec<u32>) {
        if threads.len() < 2 {
            return;
        }
        self.round += 1;
        for &thread in &*threads {
            for i in self.first[thread as usize]..self.first[thread as usize + 1] {
                let (place, rank) = self.places[i as usize];
                let best = &mut self.best[place as usize];
                if best.0 != self.round || rank < best.1 {
                    *best = (self.round, rank);
                }
            }
        }
        threads.retain(|&thread| {
            self.of(thread).iter().all(|&(place, rank)| rank == self.best[place as usize].1)
        });
    }
}

/// Interned lists of numbers.
#[derive(Debug, Default)]
struct Lists {
    /// All lists, one after another.
    items: Vec<u32>,
    /// The end of each list.
    ends: Vec<usize>,
    index: HashTable<u32>,
}

impl Lists {
    fn get(&self, number: u32) -> &[u32] {
        slice(&self.items, &self.ends, number)
    }

    /// Returns the number of a list, and whether it is new.
    fn intern(&mut self, list: &[u32]) -> (u32, bool) {
        let hash = FxBuildHasher.hash_one(list);
        let Self { items, ends, index } = self;
        if let Some(&found) = index.find(hash, |&number| slice(items, ends, number) == list) {
            return (found, false);
        }
        let number = ends.len() as u32;
        items.extend_from_slice(list);
        ends.push(items.len());
        index.insert_unique(hash, number, |&number| FxBuildHasher.hash_one(slice(items, ends, number)));
        (number, true)
    }

    /// Returns the memory in bytes, approximately.
    fn memory(&self) -> usize {
        self.items.len() * size_of::<u32>() + self.ends.len() * (size_of::<usize>() + size_of::<u32>() + 1)
    }
}

fn slice<'a>(items: &'a [u32], ends: &[usize], number: u32) -> &'a [u32] {
    let number = number as usize;
    let first = number.checked_sub(1).map_or(0, |before| ends[before]);
    &items[first..ends[number]]
}
