//! The table of constraints that are compiled, being compiled, or failed, by key, under one lock.
//!
//! ```text
//!   key (backend, options, constraint) ─┐
//!   key (the same, other white space)  ─┴─▶ slot ─▶ flying │ ready │ failed
//! ```
//! A *slot* is one constraint. It is found by the key that requested it, and by the key of its canonical form, so that
//! a schema is found regardless of its white space. A lookup by the original text costs a hash of the text and a
//! comparison; the canonical form is computed only if that fails.
//!
//! [`Cache::evict`] decides which slots are removed if there are too many bytes; the service decides when.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hashbrown::HashTable;

use super::compiled::CompiledConstraint;
use super::flight::board;
use super::key::{Key, KeyRef, SlotId};
use super::sync::Arc;
use super::{Error, Flight, Result, Seat};
use crate::statistics::Lookup;

/// The maximum number of keys that lead to one slot. Further spellings of a schema are still found by its canonical
/// form.
const MAX_KEYS: usize = 8;
/// The approximate size of a slot and of a key without their contents.
const SLOT_BYTES: usize = 256;
const KEY_BYTES: usize = 128;

/// The cache.
pub(crate) struct Cache {
    keys: HashTable<Entry>,
    slots: HashMap<SlotId, Slot>,
    /// The total size of all slots, including their keys.
    bytes: usize,
    next: u64,
    /// A counter that increases with every use.
    clock: u64,
    failures_for: Duration,
}

struct Entry {
    hash: u64,
    key: Key,
    slot: SlotId,
}

struct Slot {
    state: State,
    /// The hashes of the keys that lead here.
    keys: Vec<u64>,
    key_bytes: usize,
    /// The size of the content in bytes, without the keys.
    bytes: usize,
    used: u64,
}

enum State {
    /// `None` only for a moment, until [`board`] creates a flight.
    Flying(Option<Arc<Flight>>),
    Ready {
        compiled: Arc<CompiledConstraint>,
        /// How often the backend had been renewed when this was compiled.
        generation: u64,
    },
    Failed {
        error: Error,
        since: Instant,
    },
}

/// The result of a lookup.
pub(crate) enum Found {
    Ready(Arc<CompiledConstraint>),
    Failed(Error),
    /// It is being compiled. If the flight is new, the caller must queue the work.
    Flying {
        seat: Seat,
        slot: SlotId,
        is_new: bool,
    },
}

impl Found {
    pub(crate) fn lookup(&self) -> Lookup {
        match self {
            Self::Ready(_) => Lookup::Hit,
            Self::Failed(_) => Lookup::KnownFailure,
            Self::Flying { is_new: false, .. } => Lookup::Joined,
            Self::Flying { is_new: true, .. } => Lookup::Miss,
        }
    }
}

impl Cache {
    pub(crate) fn new(failures_for: Duration) -> Self {
        Self { keys: HashTable::new(), slots: HashMap::new(), bytes: 0, next: 0, clock: 0, failures_for }
    }

    /// Returns the slot that a key leads to.
    pub(crate) fn find(&self, hash: u64, key: KeyRef<'_>) -> Option<SlotId> {
        self.keys.find(hash, |entry| key.is(&entry.key)).map(|entry| entry.slot)
    }

    /// Returns one key of each compiled constraint, least recently used first. It is the canonical key if there is one,
    /// so that processes agree on it regardless of a schema's white space.
    pub(crate) fn ready(&self, backend: usize) -> Vec<Key> {
        let mut ready = Vec::new();
        for entry in self.keys.iter().filter(|entry| entry.key.backend == backend) {
            if let Some(slot) = self.slots.get(&entry.slot)
                && matches!(slot.state, State::Ready { .. })
                && slot.keys.first() == Some(&entry.hash)
            {
                ready.push((slot.used, entry.slot, &entry.key));
            }
        }
        ready.sort_unstable_by_key(|(used, slot, _)| (*used, *slot));
        // Removes further keys of the same slot.
        ready.dedup_by_key(|(_, slot, _)| *slot);
        ready.into_iter().map(|(_, _, key)| key.clone()).collect()
    }

    /// Adds a new slot without keys.
    pub(crate) fn add(&mut self) -> SlotId {
        let id = SlotId(self.next);
        self.next += 1;
        let state = State::Flying(None);
        self.slots
            .insert(id, Slot { state, keys: Vec::new(), key_bytes: 0, bytes: SLOT_BYTES, used: self.clock });
        self.bytes += SLOT_BYTES;
        id
    }

    /// Makes a key lead to a slot, unless it already leads to one.
    pub(crate) fn add_key(&mut self, hash: u64, key: KeyRef<'_>, id: SlotId) {
        if self.find(hash, key).is_some() {
            return;
        }
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| slot.keys.len() < MAX_KEYS) else { return };
        let bytes = key.constraint.bytes() + KEY_BYTES;
        slot.keys.push(hash);
        slot.key_bytes += bytes;
        self.bytes += bytes;
        self.keys.insert_unique(hash, Entry { hash, key: key.to_key(), slot: id }, |entry| entry.hash);
    }

    /// Returns the content of a slot, or a seat in the flight that compiles it. Returns `None` only if the slot does
    /// not exist; a slot that was found or added under the same lock does.
    pub(crate) fn take(&mut self, id: SlotId) -> Option<Found> {
        self.clock += 1;
        let slot = self.slots.get_mut(&id)?;
        slot.used = self.clock;
        match &mut slot.state {
            State::Ready { compiled, .. } => return Some(Found::Ready(compiled.clone())),
            State::Failed { error, since } if since.elapsed() < self.failures_for => {
                return Some(Found::Failed(error.clone()));
            }
            State::Failed { .. } => slot.state = State::Flying(None),
            State::Flying(_) => {}
        }
        let State::Flying(flight) = &mut slot.state else { return None };
        let (seat, is_new) = board(flight);
        Some(Found::Flying { seat, slot: id, is_new })
    }

    /// Stores the outcome of a flight, if the slot still waits for it. `generation` is the backend's generation at
    /// which it was compiled.
    pub(crate) fn store_outcome(
        &mut self,
        id: SlotId,
        flight: &Arc<Flight>,
        outcome: &Result,
        generation: u64,
    ) {
        let Some(slot) = self.waiting(id, flight) else { return };
        let (state, bytes) = match outcome {
            Ok(compiled) => {
                (State::Ready { compiled: compiled.clone(), generation }, compiled.report().bytes)
            }
            Err(error) => (State::Failed { error: error.clone(), since: Instant::now() }, error.bytes()),
        };
        slot.state = state;
        let before = core::mem::replace(&mut slot.bytes, SLOT_BYTES + bytes);
        self.bytes = self.bytes - before + SLOT_BYTES + bytes;
    }

    /// Removes a slot that waits for this flight, because the flight was abandoned.
    pub(crate) fn forget(&mut self, id: SlotId, flight: &Arc<Flight>) {
        if self.waiting(id, flight).is_some() {
            self.remove(id);
        }
    }

    fn waiting(&mut self, id: SlotId, flight: &Arc<Flight>) -> Option<&mut Slot> {
        let is_it = |slot: &&mut Slot| match &slot.state {
            State::Flying(Some(known)) => Arc::ptr_eq(known, flight),
            _ => false,
        };
        self.slots.get_mut(&id).filter(is_it)
    }

    /// Returns the compiled constraint in a slot.
    pub(crate) fn compiled(&self, id: SlotId) -> Option<Arc<CompiledConstraint>> {
        match &self.slots.get(&id)?.state {
            State::Ready { compiled, .. } => Some(compiled.clone()),
            _ => None,
        }
    }

    /// Updates the size of a compiled constraint.
    pub(crate) fn measured(&mut self, id: SlotId, bytes: usize) {
        if let Some(slot) = self.slots.get_mut(&id)
            && matches!(slot.state, State::Ready { .. })
        {
            self.bytes = self.bytes + SLOT_BYTES + bytes - slot.bytes;
            slot.bytes = SLOT_BYTES + bytes;
        }
    }

    /// Removes unused slots until at least `bytes` are free. Slots of an outdated backend generation go first, because
    /// they keep shared data alive; then the least recently used ones. `generations` is the current generation of each
    /// backend. The caller drops the removed constraints, without holding the lock.
    pub(crate) fn evict(&mut self, bytes: usize, generations: &[u64]) -> Vec<Evicted> {
        let mut idle: Vec<(bool, u64, SlotId)> = Vec::new();
        #[expect(clippy::iter_over_hash_type, reason = "they are sorted below")]
        for (&id, slot) in &self.slots {
            let is_current = match &slot.state {
                State::Ready { compiled, .. } if Arc::strong_count(compiled) > 1 => continue,
                State::Ready { compiled, generation } => {
                    generations.get(compiled.backend()) == Some(generation)
                }
                State::Failed { since, .. } => since.elapsed() < self.failures_for,
                State::Flying(_) => continue,
            };
            idle.push((is_current, slot.used, id));
        }
        idle.sort_unstable();
        let target = self.bytes.saturating_sub(bytes);
        let mut evicted = Vec::new();
        for (is_current, _, id) in idle {
            // All slots of an outdated generation are removed together: the last one frees their shared data.
            if is_current && self.bytes <= target {
                break;
            }
            evicted.extend(self.remove(id));
        }
        evicted
    }

    /// Removes everything except slots that are being compiled.
    pub(crate) fn clear(&mut self) -> Vec<Evicted> {
        let is_settled =
            |(id, slot): (&SlotId, &Slot)| (!matches!(slot.state, State::Flying(_))).then_some(*id);
        let mut settled: Vec<SlotId> = self.slots.iter().filter_map(is_settled).collect();
        settled.sort_unstable();
        settled.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    fn remove(&mut self, id: SlotId) -> Option<Evicted> {
        let slot = self.slots.remove(&id)?;
        for hash in slot.keys {
            if let Ok(entry) = self.keys.find_entry(hash, |entry| entry.slot == id) {
                entry.remove();
            }
        }
        self.bytes -= slot.bytes + slot.key_bytes;
        // Shrinks the table, since a hash table keeps its capacity otherwise.
        if self.keys.capacity() > 1_024 && self.keys.len() * 8 < self.keys.capacity() {
            self.keys.shrink_to(self.keys.len() * 2, |entry| entry.hash);
        }
        match slot.state {
            State::Ready { compiled, .. } => Some(Evicted { _compiled: compiled }),
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A constraint that was removed from the cache. Dropping it frees its memory, unless it is still in use.
pub(crate) struct Evicted {
    _compiled: Arc<CompiledConstraint>,
}
