//! The shared counters of a service, and the local ones of a matcher.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use super::{Histogram, KindStatistics, Lookup, MatchingStatistics, Outcome, TIMED};
use crate::Kind;

/// The number of buckets. Each bound is twice the previous one.
const BUCKETS: usize = 24;
/// The first bound for masks, in nanoseconds: 125 ns to 1 s.
const MASK_BOUND: u64 = 125;
/// The first bound for compiles, in nanoseconds: 4 µs to 34 s.
const COMPILE_BOUND: u64 = 4_000;
/// The number of masks after which a matcher reports.
const MASKS_PER_REPORT: u64 = 1_024;

/// The shared counters of one service.
#[derive(Debug)]
pub(crate) struct Counters {
    kinds: [KindCounters; Kind::ALL.len()],
    pub(crate) evictions: AtomicU64,
    pub(crate) renewals: AtomicU64,
    pub(crate) upkeep_nanos: AtomicU64,
    pub(crate) running: AtomicU64,
    waits: Times,
    matchers: AtomicU64,
    masks: AtomicU64,
    computed: AtomicU64,
    prepared: AtomicU64,
    tokens: AtomicU64,
    forced: AtomicU64,
    mask_times: Times,
    /// Determines which mask the next matcher times first.
    turn: AtomicU32,
}

#[derive(Debug)]
struct KindCounters {
    requests: [AtomicU64; Lookup::ALL.len()],
    compiles: [AtomicU64; Outcome::ALL.len()],
    times: Times,
    states: AtomicU64,
    bytes: AtomicU64,
}

/// A histogram that many threads add to.
#[derive(Debug)]
struct Times {
    first: u64,
    buckets: [AtomicU64; BUCKETS + 1],
    nanos: AtomicU64,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            kinds: std::array::from_fn(|_| KindCounters {
                requests: Default::default(),
                compiles: Default::default(),
                times: Times::new(COMPILE_BOUND),
                states: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
            }),
            evictions: AtomicU64::new(0),
            renewals: AtomicU64::new(0),
            upkeep_nanos: AtomicU64::new(0),
            running: AtomicU64::new(0),
            waits: Times::new(COMPILE_BOUND),
            matchers: AtomicU64::new(0),
            masks: AtomicU64::new(0),
            computed: AtomicU64::new(0),
            prepared: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            forced: AtomicU64::new(0),
            mask_times: Times::new(MASK_BOUND),
            turn: AtomicU32::new(0),
        }
    }

    pub(crate) fn request(&self, kind: Kind, lookup: Lookup) {
        self.kinds[kind as usize].requests[lookup as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn compile(&self, kind: Kind, outcome: Outcome, time: Duration) {
        let kind = &self.kinds[kind as usize];
        kind.compiles[outcome as usize].fetch_add(1, Relaxed);
        kind.times.add(time);
    }

    /// Counts a compilation that waited this long for a worker.
    pub(crate) fn waited(&self, time: Duration) {
        self.waits.add(time);
    }

    pub(crate) fn waits(&self) -> Histogram {
        self.waits.snapshot()
    }

    /// Counts masks that were computed before they were requested.
    pub(crate) fn prepared(&self, masks: u64) {
        self.prepared.fetch_add(masks, Relaxed);
    }

    pub(crate) fn compiled(&self, kind: Kind, states: usize, bytes: usize) {
        let kind = &self.kinds[kind as usize];
        kind.states.fetch_add(states as u64, Relaxed);
        kind.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn kinds(&self) -> Vec<KindStatistics> {
        let of = |&kind: &Kind| {
            let counters = &self.kinds[kind as usize];
            KindStatistics {
                kind,
                requests: Lookup::ALL
                    .map(|lookup| (lookup, counters.requests[lookup as usize].load(Relaxed))),
                compiles: Outcome::ALL.map(|end| (end, counters.compiles[end as usize].load(Relaxed))),
                seconds: counters.times.snapshot(),
                states: counters.states.load(Relaxed),
                bytes: counters.bytes.load(Relaxed),
            }
        };
        Kind::ALL.iter().map(of).collect()
    }

    pub(crate) fn matching(&self) -> MatchingStatistics {
        MatchingStatistics {
            matchers: self.matchers.load(Relaxed),
            masks: self.masks.load(Relaxed),
            computed: self.computed.load(Relaxed),
            prepared: self.prepared.load(Relaxed),
            tokens: self.tokens.load(Relaxed),
            forced: self.forced.load(Relaxed),
            mask_seconds: self.mask_times.snapshot(),
        }
    }
}

impl Times {
    fn new(first: u64) -> Self {
        Self { first, buckets: Default::default(), nanos: AtomicU64::new(0) }
    }

    fn add(&self, time: Duration) {
        let nanos = nanos(time);
        self.buckets[bucket(self.first, nanos)].fetch_add(1, Relaxed);
        self.nanos.fetch_add(nanos, Relaxed);
    }

    fn snapshot(&self) -> Histogram {
        let bound = |at: usize| Duration::from_nanos(self.first << at);
        let count = |at: usize| self.buckets[at].load(Relaxed);
        Histogram {
            buckets: (0..BUCKETS).map(|at| (bound(at), count(at))).collect(),
            beyond: count(BUCKETS),
            sum: Duration::from_nanos(self.nanos.load(Relaxed)),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the first bucket whose bound is at least `nanos`.
fn bucket(first: u64, nanos: u64) -> usize {
    match nanos.div_ceil(first) {
        0 | 1 => 0,
        times => ((times - 1).ilog2() as usize + 1).min(BUCKETS),
    }
}

/// The counts of one matcher that were not reported yet.
#[derive(Debug)]
pub(crate) struct Tally {
    masks: u64,
    /// The number of masks that the matcher had computed when it last reported.
    computed: u64,
    tokens: u64,
    forced: u64,
    /// The number of masks before the next one that is timed.
    until_timed: u32,
    /// Whether a mask was filled since the last token.
    is_masked: bool,
    times: [u16; BUCKETS + 1],
    nanos: u64,
}

impl Tally {
    /// Creates the counts of a new matcher.
    pub(crate) fn new(counters: &Counters) -> Self {
        counters.matchers.fetch_add(1, Relaxed);
        Self {
            masks: 0,
            computed: 0,
            tokens: 0,
            forced: 0,
            until_timed: counters.turn.fetch_add(1, Relaxed) % TIMED,
            is_masked: false,
            times: [0; BUCKETS + 1],
            nanos: 0,
        }
    }

    /// Counts a mask. Returns whether it must be timed.
    #[inline]
    pub(crate) fn mask(&mut self) -> bool {
        self.masks += 1;
        self.is_masked = true;
        let is_timed = self.until_timed == 0;
        self.until_timed = if is_timed { TIMED - 1 } else { self.until_timed - 1 };
        is_timed
    }

    /// Adds the time of a mask. Returns whether it is time to report.
    pub(crate) fn time(&mut self, time: Duration) -> bool {
        let nanos = nanos(time);
        self.times[bucket(MASK_BOUND, nanos)] += 1;
        self.nanos = self.nanos.saturating_add(nanos);
        self.masks >= MASKS_PER_REPORT
    }

    /// Counts a token.
    #[inline]
    pub(crate) fn token(&mut self) {
        self.tokens += 1;
        self.forced += u64::from(!self.is_masked);
        self.is_masked = false;
    }

    /// Adds all counts to the shared ones and resets them. `computed` is the total number of masks that the matcher has
    /// computed.
    pub(crate) fn report(&mut self, counters: &Counters, computed: u64) {
        counters.computed.fetch_add(computed.saturating_sub(self.computed), Relaxed);
        self.computed = computed;
        let add = |shared: &AtomicU64, own: &mut u64| {
            shared.fetch_add(core::mem::take(own), Relaxed);
        };
        add(&counters.masks, &mut self.masks);
        add(&counters.tokens, &mut self.tokens);
        add(&counters.forced, &mut self.forced);
        for (shared, own) in counters.mask_times.buckets.iter().zip(&mut self.times) {
            if *own > 0 {
                shared.fetch_add(u64::from(core::mem::take(own)), Relaxed);
            }
        }
        counters.mask_times.nanos.fetch_add(core::mem::take(&mut self.nanos), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_the_least_bucket_that_holds_it() {
        for nanos in (0..5_000).chain([u64::MAX, 125 << 23, (125 << 23) + 1]) {
            let at = bucket(125, nanos);
            assert!(at == BUCKETS || nanos <= 125 << at, "{nanos} is above bound {at}");
            assert!(at == 0 || nanos > 125 << (at - 1), "{nanos} fits below bound {at}");
        }
    }

    #[test]
    fn nothing_that_a_matcher_counts_is_lost() {
        let counters = Counters::new();
        for masks in [1, 15, 16, 17, 40, 5_000] {
            let before = counters.matching();
            let mut tally = Tally::new(&counters);
            let mut timed = 0;
            for mask in 0..masks {
                if tally.mask() {
                    timed += 1;
                    if tally.time(Duration::from_nanos(200)) {
                        tally.report(&counters, 0);
                    }
                }
                tally.token();
                if mask % 4 == 0 {
                    tally.token();
                }
            }
            tally.report(&counters, 0);
            let after = counters.matching();
            assert_eq!(after.masks - before.masks, masks);
            assert_eq!(after.tokens - before.tokens, masks + masks.div_ceil(4));
            assert_eq!(after.forced - before.forced, masks.div_ceil(4));
            assert_eq!(after.mask_seconds.count() - before.mask_seconds.count(), timed);
            assert!(timed.abs_diff(masks / u64::from(TIMED)) <= 1);
        }
    }
}
