//! Keeps a service within its memory budget.
//!
//! Constraints and their shared data grow while texts are matched, outside of the service. So from time to time a
//! worker measures everything that was matched since the last time, and then evicts constraints until the rest fits.
//! Measuring walks over tables, which takes up to some milliseconds. It is therefore not done for each request but
//! after some compilations, and otherwise only so often that it takes no more than a tenth of a worker's time.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::TryLockError;
use std::time::Instant;

use super::key::SlotId;
use super::sync::{Mutex, lock};
use super::{Registered, Shared};
use crate::statistics::Counters;

/// The number of compilations after which measuring is always due: what they and their first texts learn must fit into
/// the free part of the budget.
const MAX_COMPILES_BETWEEN: u64 = 16;
/// The minimum time between two measurements otherwise, unless the budget is full.
const MIN_PAUSE: Duration = Duration::from_millis(20);
/// The minimum pause, as a multiple of the duration of the last measurement. With it, matching alone causes at most a
/// tenth of a worker's time.
const PAUSE_FACTOR: u64 = 10;
/// The part of the budget that may be used, in sixteenths. The rest is for what is learned until the next measurement.
const FULL_SIXTEENTHS: usize = 12;
/// The part that may remain after an eviction, in sixteenths, so that the next constraint does not cause another
/// eviction.
const LEFT_SIXTEENTHS: usize = 11;

/// The events since the last measurement.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// Held while a thread measures.
    turn: Mutex<()>,
    begin: Instant,
    /// The end of the last measurement, in nanoseconds since `begin`, and its duration.
    last: AtomicU64,
    cost: AtomicU64,
    /// The number of compilations since then.
    compiles: AtomicU64,
    /// The constraints that were matched since then.
    grown: Mutex<Vec<SlotId>>,
}

impl Default for Upkeep {
    fn default() -> Self {
        let begin = Instant::now();
        let [last, cost, compiles] = [const { AtomicU64::new(0) }; 3];
        Self { turn: Mutex::default(), begin, last, cost, compiles, grown: Mutex::default() }
    }
}

impl Registered {
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Marks a new generation: constraints compiled from now on share nothing with earlier ones.
    pub(super) fn start_generation(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Renews the backend if its shared data exceeds this size.
    pub(super) fn renew(&self, share: usize, counters: &Counters) {
        if self.backend.renew(share) {
            self.start_generation();
            counters.renewals.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// Records that a constraint was matched, so it may have grown.
    pub(super) fn grown(&self, slot: SlotId) {
        lock(&self.upkeep.grown).push(slot);
        if self.is_pause_over(PAUSE_FACTOR) {
            lock(&self.queue).measure = true;
            self.bell.notify_one();
        }
    }

    /// Measures if that is due. Called after each compilation.
    pub(super) fn upkeep_if_due(&self) {
        let held = lock(&self.cache).bytes() + self.common_bytes.load(Ordering::Relaxed);
        let is_full = held > self.settings.budget / 16 * FULL_SIXTEENTHS;
        let compiles = self.upkeep.compiles.fetch_add(1, Ordering::Relaxed) + 1;
        // If everything is in use, evicting is impossible, so a full budget must not make a worker measure all the
        // time.
        if compiles >= MAX_COMPILES_BETWEEN || self.is_pause_over(if is_full { 1 } else { PAUSE_FACTOR }) {
            self.upkeep_unless_busy();
        }
    }

    /// Measures, unless another thread is measuring.
    pub(super) fn upkeep_unless_busy(&self) {
        match self.upkeep.turn.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            turn => {
                drop(turn);
                self.upkeep();
            }
        }
    }

    /// Measures everything that has grown, and evicts what exceeds the budget.
    pub(super) fn upkeep(&self) {
        let _turn = lock(&self.upkeep.turn);
        let start = self.now();
        self.upkeep.compiles.store(0, Ordering::Relaxed);
        self.measure_grown();
        let (full, left) =
            (self.settings.budget / 16 * FULL_SIXTEENTHS, self.settings.budget / 16 * LEFT_SIXTEENTHS);
        loop {
            let backends = self.backends();
            for backend in &backends {
                backend.renew(full / 2 / backends.len(), &self.counters);
            }
            let shared = backends.iter().map(|registered| registered.backend.shared_bytes()).sum::<usize>();
            self.common_bytes.store(shared, Ordering::Relaxed);
            let generations: Vec<u64> = backends.iter().map(|backend| backend.generation()).collect();
            let mut cache = lock(&self.cache);
            let before = cache.bytes();
            if before + shared <= full {
                break;
            }
            let evicted = cache.evict(before + shared - left, &generations);
            let is_stuck = cache.bytes() == before;
            drop(cache);
            self.counters.evictions.fetch_add(evicted.len() as u64, Ordering::Relaxed);
            drop(evicted);
            if is_stuck {
                break;
            }
        }
        let end = self.now();
        self.upkeep.last.store(end, Ordering::Relaxed);
        self.upkeep.cost.store(end - start, Ordering::Relaxed);
        self.counters.upkeep_nanos.fetch_add(end - start, Ordering::Relaxed);
    }

    fn measure_grown(&self) {
        let grown = core::mem::take(&mut *lock(&self.upkeep.grown));
        for slot in grown {
            let compiled = lock(&self.cache).compiled(slot);
            if let Some(compiled) = compiled
                && compiled.take_grown()
            {
                let bytes = compiled.inner().bytes();
                lock(&self.cache).measured(slot, bytes);
            }
        }
    }

    /// Whether the last measurement ended at least `times` of its duration ago and, unless `times` is 1, at least
    /// [`MIN_PAUSE`] ago.
    fn is_pause_over(&self, times: u64) -> bool {
        let [last, cost] = [&self.upkeep.last, &self.upkeep.cost].map(|nanos| nanos.load(Ordering::Relaxed));
        let least = if times == 1 { 0 } else { MIN_PAUSE.as_nanos() as u64 };
        self.now().saturating_sub(last) >= cost.saturating_mul(times).max(least)
    }

    /// Returns the nanoseconds since the service was created.
    fn now(&self) -> u64 {
        self.upkeep.begin.elapsed().as_nanos() as u64
    }
}
