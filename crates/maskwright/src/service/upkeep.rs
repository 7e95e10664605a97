//! Staying within the budget.
//!
//! Constraints and what they share grow while texts are matched, far from here. So everything that was matched since the last time is
//! measured again, now and then, by a worker; then constraints go until what is held fits. Measuring walks over tables, which takes
//! up to some milliseconds, so it is not done for each request but after some compilations, and otherwise as often as it takes no more than a tenth of
//! a worker's time.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::TryLockError;
use std::time::Instant;

use super::key::SlotId;
use super::sync::{Mutex, lock};
use super::{Registered, Shared};
use crate::statistics::Counters;

/// After so many compilations it is time, whatever it costs: what they and their first texts learn must fit into the room that is left.
const COMPILES: u64 = 16;
/// Otherwise so much time passes until the next time, at least, unless the budget is full.
const PAUSE: Duration = Duration::from_millis(20);
/// How many times as long as it takes there is a pause: then texts alone cause no more than a tenth of a worker's time.
const PAUSES: u64 = 10;
/// The part of the budget that may be full, in sixteenths. The rest is room for what is learnt until the next time.
const FULL: usize = 12;
/// The part that is left when something has to go, so that the next constraint does not bring us here again.
const LEFT: usize = 11;

/// What has happened since the last time.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// Held while somebody is at it.
    turn: Mutex<()>,
    begin: Instant,
    /// Nanoseconds from `begin` to the end of the last time, and what it took.
    last: AtomicU64,
    cost: AtomicU64,
    /// Compilations since then.
    compiles: AtomicU64,
    /// Constraints that were matched.
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

    /// What is compiled from now on shares nothing with what was compiled before.
    pub(super) fn began_anew(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets the backend begin anew if what it shares takes more than this.
    pub(super) fn renew(&self, share: usize, counters: &Counters) {
        if self.backend.renew(share) {
            self.began_anew();
            counters.renewals.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// A constraint was matched, so it may have grown.
    pub(super) fn grown(&self, slot: SlotId) {
        lock(&self.upkeep.grown).push(slot);
        if self.is_pause_over(PAUSES) {
            lock(&self.queue).measure = true;
            self.bell.notify_one();
        }
    }

    /// Called after each compilation.
    pub(super) fn upkeep_if_due(&self) {
        let held = lock(&self.cache).bytes() + self.common_bytes.load(Ordering::Relaxed);
        let is_full = held > self.settings.budget / 16 * FULL;
        let compiles = self.upkeep.compiles.fetch_add(1, Ordering::Relaxed) + 1;
        // Where everything is in use, being full leads to nothing, and must not take all the time.
        if compiles >= COMPILES || self.is_pause_over(if is_full { 1 } else { PAUSES }) {
            self.upkeep_unless_busy();
        }
    }

    /// The same for workers: if somebody else is at it, that is enough.
    pub(super) fn upkeep_unless_busy(&self) {
        match self.upkeep.turn.try_lock() {
            Err(TryLockError::WouldBlock) => {}
            turn => {
                drop(turn);
                self.upkeep();
            }
        }
    }

    /// Measures, and lets go of what is too much.
    pub(super) fn upkeep(&self) {
        let _turn = lock(&self.upkeep.turn);
        let start = self.now();
        self.upkeep.compiles.store(0, Ordering::Relaxed);
        self.measure_grown();
        let (full, left) = (self.settings.budget / 16 * FULL, self.settings.budget / 16 * LEFT);
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

    /// Whether the last time is as long ago as it took, so many times, and as [`PAUSE`] unless the haste is greatest.
    fn is_pause_over(&self, times: u64) -> bool {
        let [last, cost] = [&self.upkeep.last, &self.upkeep.cost].map(|nanos| nanos.load(Ordering::Relaxed));
        let least = if times == 1 { 0 } else { PAUSE.as_nanos() as u64 };
        self.now().saturating_sub(last) >= cost.saturating_mul(times).max(least)
    }

    /// Nanoseconds since the service began.
    fn now(&self) -> u64 {
        self.upkeep.begin.elapsed().as_nanos() as u64
    }
}
