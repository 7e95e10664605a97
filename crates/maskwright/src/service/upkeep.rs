//! Staying within the budget.
//!
//! Constraints and what they share grow while texts are matched, far from here. So everything that was matched since the last time is
//! measured again, now and then, by a worker; then constraints go until what is held fits. Measuring walks over tables, which takes
//! up to some milliseconds, so it is not done for each request but when enough has happened.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::TryLockError;
use std::time::Instant;

use super::cache::SlotId;
use super::sync::{Mutex, lock};
use super::{Registered, Shared};
use crate::statistics::Counters;

/// How many constraints may be compiled until the next time.
const COMPILES: u64 = 8;
/// How much time may pass until the next time if something has grown.
const PAUSE: Duration = Duration::from_millis(20);
/// The part of the budget that may be full, in sixteenths. The rest is room for what is learnt until the next time.
const FULL: usize = 13;
/// The part that is left when something has to go, so that the next constraint does not bring us here again.
const LEFT: usize = 12;

/// What has happened since the last time.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// Held while somebody is at it.
    turn: Mutex<()>,
    begin: Instant,
    /// Milliseconds from `begin` to the last time.
    last: AtomicU64,
    compiles: AtomicU64,
    /// Constraints that were matched.
    grown: Mutex<Vec<SlotId>>,
}

impl Default for Upkeep {
    fn default() -> Self {
        let begin = Instant::now();
        let (last, compiles) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { turn: Mutex::default(), begin, last, compiles, grown: Mutex::default() }
    }
}

impl Registered {
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Lets the backend begin anew if what it shares takes more than this.
    pub(super) fn renew(&self, share: usize, counters: &Counters) {
        if self.backend.renew(share) {
            self.generation.fetch_add(1, Ordering::Relaxed);
            counters.renewals.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// A constraint was matched, so it may have grown.
    pub(super) fn grown(&self, slot: SlotId) {
        lock(&self.upkeep.grown).push(slot);
        if self.is_pause_over() {
            lock(&self.queue).measure = true;
            self.bell.notify_one();
        }
    }

    /// Called after each compilation.
    pub(super) fn upkeep_if_due(&self) {
        let compiles = self.upkeep.compiles.fetch_add(1, Ordering::Relaxed) + 1;
        let held = lock(&self.cache).bytes() + self.shared_bytes.load(Ordering::Relaxed);
        if compiles >= COMPILES || held > self.settings.budget / 16 * FULL || self.is_pause_over() {
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
        self.upkeep.compiles.store(0, Ordering::Relaxed);
        self.measure_grown();
        let (full, left) = (self.settings.budget / 16 * FULL, self.settings.budget / 16 * LEFT);
        loop {
            let backends = self.backends();
            for backend in &backends {
                backend.renew(full / 2 / backends.len(), &self.counters);
            }
            let shared = backends.iter().map(|registered| registered.backend.shared_bytes()).sum::<usize>();
            self.shared_bytes.store(shared, Ordering::Relaxed);
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
        self.upkeep.last.store(self.now(), Ordering::Relaxed);
    }

    fn measure_grown(&self) {
        let grown = core::mem::take(&mut *lock(&self.upkeep.grown));
        for slot in grown {
            let handle = lock(&self.cache).handle(slot);
            if let Some(handle) = handle
                && handle.take_grown()
            {
                let bytes = handle.compiled().bytes();
                lock(&self.cache).measured(slot, bytes);
            }
        }
    }

    fn is_pause_over(&self) -> bool {
        let last = self.upkeep.last.load(Ordering::Relaxed);
        self.now().saturating_sub(last) >= PAUSE.as_millis() as u64
    }

    /// Milliseconds since the service began.
    fn now(&self) -> u64 {
        self.upkeep.begin.elapsed().as_millis() as u64
    }
}
