//! What a service has done so far, in numbers.
//!
//! [`Statistics`] is a snapshot, for programs; [`Statistics::to_prometheus`] writes it down for those who collect such numbers
//! from many processes.
//!
//! # How it is counted
//!
//! Compiles are rare, so they count straight into shared atomic numbers. Masks are not: a matcher counts in plain fields of its own and
//! adds them to the shared ones every thousand masks and when it is dropped. Nothing on the way takes a lock. Looking at the clock
//! twice costs a tenth of a typical mask, so only one mask in [`TIMED`] is timed, beginning with another one in each
//! matcher; otherwise the first masks, which are the slow ones, would count for too much.

mod counters;
mod prometheus;

use core::time::Duration;

pub(crate) use self::counters::{Counters, Tally};
use crate::Kind;

/// One mask in so many is timed.
pub const TIMED: u32 = 64;

/// What a service has done so far.
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
    /// Requests and compiles, for each kind of constraint.
    pub kinds: Vec<KindStatistics>,
    /// How long compiles waited until a worker took them up.
    pub waits: Histogram,
    /// The cache as it is now.
    pub cache: CacheStatistics,
    /// Texts that were matched, as far as their matchers have reported.
    pub matching: MatchingStatistics,
}

/// Requests and compiles of one kind.
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
    /// The kind.
    pub kind: Kind,
    /// Requests by what the cache had to say.
    pub requests: [(Lookup, u64); 4],
    /// Compiles that were finished, by their result.
    pub compiles: [(Outcome, u64); 6],
    /// How long the finished ones took, from the moment a worker took them up.
    pub seconds: Histogram,
    /// States of all that was compiled.
    pub states: u64,
    /// Bytes of all that was compiled, right after it.
    pub bytes: u64,
}

/// What the cache had to say about a request.
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
    /// The constraint was there.
    Hit,
    /// It was known that the constraint cannot be compiled.
    KnownFailure,
    /// Somebody else had asked for it, and it was on its way.
    Joined,
    /// It had to be compiled.
    Miss,
}

/// How a compile ended.
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
    /// Well.
    Compiled,
    /// The constraint is wrong, or the backend cannot do it.
    Refused,
    /// It took too long.
    TooLong,
    /// It became too large.
    TooLarge,
    /// It panicked.
    Panicked,
    /// Everybody who waited for it left.
    Cancelled,
}

/// The cache and the queue, as they are now.
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
    /// Constraints in the cache, remembered failures included.
    pub entries: u64,
    /// Bytes held by them, when they were last measured.
    pub bytes: u64,
    /// Bytes held by what constraints share, when it was last measured.
    pub shared_bytes: u64,
    /// How many bytes both together may hold.
    pub budget: u64,
    /// Constraints that were let go to stay within it.
    pub evictions: u64,
    /// How often what constraints share was begun anew.
    pub renewals: u64,
    /// How long workers have measured and evicted.
    pub upkeep: Duration,
    /// Requests that wait for a worker.
    pub queued: u64,
    /// Compiles that are running.
    pub running: u64,
}

/// Texts that were matched.
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
    /// Matchers that were started, forks included.
    pub matchers: u64,
    /// Masks that were filled.
    pub masks: u64,
    /// Masks, or parts of them, that had to be computed for that, because nobody had asked for them before.
    pub computed: u64,
    /// Masks that were [computed ahead](crate::service::Settings::prepare).
    pub prepared: u64,
    /// Tokens that were accepted.
    pub tokens: u64,
    /// Those of them that were accepted without a mask: the caller knew them, because nothing else could follow.
    pub forced: u64,
    /// How long masks took; one in [`TIMED`] is timed.
    pub mask_seconds: Histogram,
}

/// How often something took how long.
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
    /// Upper bounds, ascending, and how many took longer than the bound before and no longer than this one.
    pub buckets: Vec<(Duration, u64)>,
    /// How many took longer than the last bound.
    pub beyond: u64,
    /// All of them together.
    pub sum: Duration,
}

impl Histogram {
    /// An empty one with these upper bounds, which must ascend.
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

    /// Counts one more.
    pub fn add(&mut self, time: Duration) {
        match self.buckets.iter_mut().find(|(bound, _)| time <= *bound) {
            Some((_, count)) => *count += 1,
            None => self.beyond += 1,
        }
        self.sum = self.sum.saturating_add(time);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum::<u64>() + self.beyond
    }

    /// The bound that at least this share of them keeps to; `None` if there were none, or if some of that share took longer than the last.
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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Hit, Self::KnownFailure, Self::Joined, Self::Miss];

    /// Its name, as programs write it.
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
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Compiled, Self::Refused, Self::TooLong, Self::TooLarge, Self::Panicked, Self::Cancelled];

    /// Its name, as programs write it.
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
    /// Requests of all kinds that the cache answered so.
    pub fn requests(&self, lookup: Lookup) -> u64 {
        let counts = self.kinds.iter().flat_map(|kind| kind.requests);
        counts.filter(|(of, _)| *of == lookup).map(|(_, count)| count).sum()
    }

    /// Compiles of all kinds that ended so.
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
