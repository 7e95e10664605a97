//! Statistics of a service.
//!
//! [`Statistics`] is a snapshot for programs; [`Statistics::to_prometheus`] writes it as text for Prometheus.
//!
//! # How it is counted
//!
//! Compilations are rare, so they count in shared atomic integers. Masks are frequent, so a matcher counts in its own
//! plain fields and adds them to the shared ones every thousand masks and when it is dropped. No lock is taken. Reading
//! the clock twice costs a tenth of a typical mask, so only one mask in [`TIMED`] is timed. Each matcher starts at a
//! different mask; otherwise the first masks, which are the slow ones, would be overrepresented.

mod counters;
mod prometheus;

use core::time::Duration;

pub(crate) use self::counters::{Counters, Tally};
use crate::Kind;

/// One in this many masks is timed.
pub const TIMED: u32 = 64;

/// A snapshot of a service's statistics.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::statistics::Lookup;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let service = Service::new(Settings::default())?;
/// service.client(Arc::new(compiler)).compile(&Constraint::regex("a"))?;
/// let statistics = service.statistics();
/// assert_eq!(statistics.requests(Lookup::Miss), 1);
/// assert!(statistics.to_prometheus(&[]).contains("# TYPE"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// The requests and compilations, for each kind of constraint.
    pub kinds: Vec<KindStatistics>,
    /// The time that compilations waited for a worker.
    pub waits: Histogram,
    /// The current state of the cache.
    pub cache: CacheStatistics,
    /// The texts that were matched, as far as their matchers have reported.
    pub matching: MatchingStatistics,
}

/// The requests and compilations of one kind of constraint.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::{Compiler, Constraint, Kind, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let service = Service::new(Settings::default())?;
/// service.client(Arc::new(compiler)).compile(&Constraint::regex("a"))?;
/// let statistics = service.statistics();
/// let regex = statistics.kinds.iter().find(|kind| kind.kind == Kind::Regex).expect("all kinds are there");
/// assert_eq!((regex.seconds.count(), regex.bytes > 0), (1, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KindStatistics {
    /// The kind of constraint.
    pub kind: Kind,
    /// The number of requests, by the result of the cache lookup.
    pub requests: [(Lookup, u64); 4],
    /// The number of finished compilations, by outcome.
    pub compiles: [(Outcome, u64); 6],
    /// The duration of finished compilations, without the time that they waited for a worker.
    pub seconds: Histogram,
    /// The total number of states of all compiled constraints.
    pub states: u64,
    /// The total size of all compiled constraints in bytes, right after compilation.
    pub bytes: u64,
}

/// The result of the cache lookup for a request.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::service::{Service, Settings};
/// use maskwright::statistics::Lookup;
///
/// let service = Service::new(Settings::default())?;
/// let client = service.client(Arc::new(compiler));
/// for _ in 0..3 {
///     client.compile(&Constraint::regex("a"))?;
/// }
/// let statistics = service.statistics();
/// assert_eq!((statistics.requests(Lookup::Miss), statistics.requests(Lookup::Hit)), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lookup {
    /// The constraint was in the cache.
    Hit,
    /// The cache knew that the constraint cannot be compiled.
    KnownFailure,
    /// Another request had started the compilation, and this one joined it.
    Joined,
    /// The constraint had to be compiled.
    Miss,
}

/// The outcome of a compilation.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::service::{Service, Settings};
/// use maskwright::statistics::Outcome;
///
/// let service = Service::new(Settings::default())?;
/// let client = service.client(Arc::new(compiler));
/// assert!(client.compile(&Constraint::regex("(")).is_err());
/// let refused = service.statistics().kinds.iter().flat_map(|kind| kind.compiles).find(|(outcome, count)| *outcome == Outcome::Refused && *count > 0);
/// assert_eq!(refused, Some((Outcome::Refused, 1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It succeeded.
    Compiled,
    /// The constraint is invalid, or the backend does not support it.
    Refused,
    /// It took too long.
    TooLong,
    /// The result was too large.
    TooLarge,
    /// The backend panicked.
    Panicked,
    /// It was cancelled because no request waited for it any more.
    Cancelled,
}

/// The current state of the cache and the queue.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let service = Service::new(Settings { budget: 64 << 20, ..Settings::default() })?;
/// service.client(Arc::new(compiler)).compile(&Constraint::regex("a"))?;
/// let cache = service.statistics().cache;
/// assert!(cache.entries == 1 && cache.bytes <= cache.budget);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CacheStatistics {
    /// The number of constraints in the cache, including remembered failures.
    pub entries: u64,
    /// The number of bytes that they held when last measured.
    pub bytes: u64,
    /// The number of bytes that the shared data held when last measured.
    pub shared_bytes: u64,
    /// The maximum of both together.
    pub budget: u64,
    /// The number of constraints that were evicted to stay within the budget.
    pub evictions: u64,
    /// How often the shared data was started anew.
    pub renewals: u64,
    /// The time that workers have spent on measuring and evicting.
    pub upkeep: Duration,
    /// The number of requests that wait for a worker.
    pub queued: u64,
    /// The number of running compilations.
    pub running: u64,
}

/// Statistics of matched texts.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let service = Service::new(Settings::default())?;
/// let compiled = service.client(Arc::new(compiler)).compile(&Constraint::regex("a"))?;
/// let mut matcher = compiled.matcher();
/// matcher.accept(TokenId(b'a'.into()))?;
/// drop(matcher); // it counts by itself, and adds up when it goes
/// assert_eq!(service.statistics().matching.tokens, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MatchingStatistics {
    /// The number of matchers that were started, including forks.
    pub matchers: u64,
    /// The number of masks that were filled.
    pub masks: u64,
    /// The number of masks, or parts of masks, that had to be computed because they were not cached.
    pub computed: u64,
    /// The number of masks that were [computed ahead](crate::service::Settings::prepare).
    pub prepared: u64,
    /// The number of tokens that were accepted.
    pub tokens: u64,
    /// The number of those that were accepted without a mask, because the caller knew that no other token could follow.
    pub forced: u64,
    /// The time that masks took; one in [`TIMED`] is timed.
    pub mask_seconds: Histogram,
}

/// A histogram of durations.
///
/// ```
/// use std::time::Duration;
/// use maskwright::statistics::Histogram;
///
/// let ms = Duration::from_millis;
/// let waits = Histogram { buckets: vec![(ms(1), 90), (ms(10), 9)], beyond: 1, sum: ms(150) };
/// assert_eq!(waits.count(), 100);
/// assert_eq!(waits.quantile(0.5), Some(ms(1)));
/// assert_eq!(waits.quantile(0.99), Some(ms(10)));
/// assert_eq!(waits.quantile(1.0), None); // longer than the last bound
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The upper bounds, ascending, each with the number of durations above the previous bound and up to this one.
    pub buckets: Vec<(Duration, u64)>,
    /// The number of durations above the last bound.
    pub beyond: u64,
    /// The sum of all durations.
    pub sum: Duration,
}

impl Histogram {
    /// Creates an empty histogram with these upper bounds, which must ascend.
    ///
    /// ```
    /// use std::time::Duration;
    /// use maskwright::statistics::Histogram;
    ///
    /// let mut waits = Histogram::with_bounds([1, 10].map(Duration::from_millis));
    /// waits.add(Duration::from_millis(10));
    /// waits.add(Duration::from_millis(11));
    /// assert_eq!((waits.buckets[1].1, waits.beyond), (1, 1));
    /// ```
    pub fn with_bounds(bounds: impl IntoIterator<Item = Duration>) -> Self {
        Self { buckets: bounds.into_iter().map(|bound| (bound, 0)).collect(), ..Self::default() }
    }

    /// Adds a duration.
    pub fn add(&mut self, time: Duration) {
        match self.buckets.iter_mut().find(|(bound, _)| time <= *bound) {
            Some((_, count)) => *count += 1,
            None => self.beyond += 1,
        }
        self.sum = self.sum.saturating_add(time);
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum::<u64>() + self.beyond
    }

    /// Returns the smallest bound that at least this share of the durations does not exceed. Returns `None` if there
    /// are no durations, or if the share includes durations above the last bound.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of a count is no less than 0, and nobody minds the last of 2⁵³"
    )]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        let mut left = (share.clamp(0.0, 1.0) * count as f64).ceil() as u64;
        let found = self.buckets.iter().find(|(_, in_bucket)| {
            let reached = left <= *in_bucket;
            left = left.saturating_sub(*in_bucket);
            reached
        });
        found.filter(|_| count > 0).map(|(bound, _)| *bound)
    }
}

impl Lookup {
    /// All results.
    pub const ALL: [Self; 4] = [Self::Hit, Self::KnownFailure, Self::Joined, Self::Miss];

    /// Returns the name that programs use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::KnownFailure => "known_failure",
            Self::Joined => "joined",
            Self::Miss => "miss",
        }
    }
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 6] =
        [Self::Compiled, Self::Refused, Self::TooLong, Self::TooLarge, Self::Panicked, Self::Cancelled];

    /// Returns the name that programs use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compiled => "compiled",
            Self::Refused => "refused",
            Self::TooLong => "too_long",
            Self::TooLarge => "too_large",
            Self::Panicked => "panicked",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Statistics {
    /// Returns the number of requests of all kinds with this lookup result.
    pub fn requests(&self, lookup: Lookup) -> u64 {
        let counts = self.kinds.iter().flat_map(|kind| kind.requests);
        counts.filter(|(of, _)| *of == lookup).map(|(_, count)| count).sum()
    }

    /// Returns the number of compilations of all kinds with this outcome.
    pub fn compiles(&self, outcome: Outcome) -> u64 {
        let counts = self.kinds.iter().flat_map(|kind| kind.compiles);
        counts.filter(|(of, _)| *of == outcome).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_bounds() {
        let bounds = [1, 2, 4].map(Duration::from_micros);
        let histogram = Histogram {
            buckets: vec![(bounds[0], 5), (bounds[1], 0), (bounds[2], 4)],
            beyond: 1,
            sum: Duration::ZERO,
        };
        assert_eq!(histogram.count(), 10);
        assert_eq!(histogram.quantile(0.5), Some(bounds[0]));
        assert_eq!(histogram.quantile(0.51), Some(bounds[2]));
        assert_eq!(histogram.quantile(0.9), Some(bounds[2]));
        assert_eq!(histogram.quantile(1.0), None);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
