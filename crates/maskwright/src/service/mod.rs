//! A service that compiles constraints for a whole server: each only once, with a time limit and a memory budget, and
//! with statistics.
//!
//! ```
//! use std::sync::Arc;
//! use maskwright::service::{Service, Settings};
//! use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
//!
//! # let mut vocabulary = VocabularyBuilder::new();
//! # for (id, token) in (0..).zip(["yes", "no"]) {
//! #     vocabulary.token(TokenId(id), token.as_bytes())?;
//! # }
//! # vocabulary.special(TokenId(2), "<end>")?.eos(TokenId(2));
//! # let vocabulary = Arc::new(vocabulary.finish()?);
//! let service = Service::new(Settings { workers: 2, budget: 64 << 20, ..Settings::default() })?;
//! let client = service.client(Arc::new(Compiler::new(vocabulary)));
//!
//! let ticket = client.request(&Constraint::regex("yes|no"));     // returns at once
//! let compiled = ticket.wait()?;                                   // or poll it, or await it
//! let mut matcher = compiled.matcher();
//! let mut mask = [0; 1];
//! matcher.fill_mask(&mut mask)?;
//! assert_eq!(mask, [0b011]);
//!
//! client.request(&Constraint::regex("yes|no")).wait()?;
//! assert_eq!(service.statistics().requests(maskwright::statistics::Lookup::Hit), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The path of a request
//!
//! ```text
//!   request ─▶ cache ─┬─ ready ──────────────▶ compiled ─▶ matchers
//!                     ├─ failed recently ────▶ error
//!                     ├─ in flight ──▶ seat ─┐
//!                     └─ unknown ─▶ seat ─▶ queue ─▶ worker ─▶ backend ─▶ done
//! ```
//! The cache also holds constraints that are being compiled, so equal requests share one compilation (`flight.rs`).
//! Requests are equal if they have the same kind, text, [`Options`] and backend; the text of schemas may differ in
//! white space.
//!
//! # Memory
//!
//! [`Settings::budget`] limits everything that is kept between requests: compiled constraints with their cached masks,
//! the data that constraints of one vocabulary share, the texts that they are found by, and remembered failures. All of
//! it grows while texts are matched, so a worker measures it again after matching. If there is too much, the least
//! recently used constraints are removed, but never one that is in use. If the shared data exceeds half of the budget,
//! the backend starts a new library, and constraints of the old library are removed first, because the last of them
//! frees it. The vocabulary itself does not count.
//!
//! # Failures
//!
//! If a constraint is invalid, too slow, too large, or makes the backend panic, the requests for it get an [`Error`];
//! no other request is affected. The failure is remembered for [`Settings::failures_for`], so that repeated requests
//! cost nothing.

mod cache;
mod compiled;
mod error;
pub(crate) mod flight;
mod key;
mod line;
mod sync;
mod ticket;
mod upkeep;
mod warm;
mod watch;
mod worker;

use core::hash::BuildHasher;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use core::{fmt, mem};
use std::io;
use std::sync::RwLock;
use std::thread::JoinHandle;
use std::time::Instant;

use hashbrown::DefaultHashBuilder;
use maskwright_automata::CancelToken;

use self::cache::{Cache, Found};
pub use self::compiled::{CompiledConstraint, Matcher, Report};
pub use self::error::Error;
use self::key::{Key, KeyRef, SlotId};
use self::line::{Line, Queued};
use self::sync::{Arc, Condvar, Mutex, lock};
pub use self::ticket::Ticket;
use self::upkeep::Upkeep;
pub use self::warm::{LoadError, Saved, Warm};
use crate::backend::Backend;
use crate::statistics::{CacheStatistics, Counters, Statistics};
use crate::{Constraint, Kind, Options};
pub use maskwright_vocab::pack::OpenError;

/// Returns how many bytes compiling one byte of text may take, as measured on constraints that were written to be
/// expensive. [`Settings::memory`] divided by this number is the maximum length of a text.
fn bytes_for_text(kind: Kind) -> usize {
    match kind {
        Kind::Choice => 32,
        Kind::Ebnf | Kind::Gbnf => 96,
        Kind::Regex | Kind::Lark | Kind::JsonSchema | Kind::StructuralTag | Kind::Pcfg => 192,
    }
}

/// The result of a request.
pub type Result<T = Arc<CompiledConstraint>> = core::result::Result<T, Error>;

type Flight = flight::Flight<Result, Arc<CancelToken>>;
type Seat = flight::Seat<Result, Arc<CancelToken>>;

/// The settings of a service.
///
/// ```
/// use std::time::Duration;
/// use maskwright::service::{Service, Settings};
///
/// let service = Service::new(Settings { budget: 128 << 20, timeout: Duration::from_secs(2), ..Settings::default() })?;
/// assert_eq!(service.statistics().cache.budget, 128 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of threads that compile; at least one is started.
    pub workers: usize,
    /// The maximum number of additional threads that replace workers while these spend more than a few milliseconds on
    /// one constraint, so that quick constraints do not have to wait.
    pub stand_ins: usize,
    /// The maximum number of bytes that are kept between requests.
    pub budget: usize,
    /// The time limit for one compilation.
    pub timeout: Duration,
    /// The maximum number of bytes that one compilation may use, and its result may hold.
    pub memory: usize,
    /// How long a failure is remembered.
    pub failures_for: Duration,
    /// The maximum number of constraints that may wait for a worker.
    pub queue: usize,
    /// A function that a worker thread calls when a compilation has taken longer than 5 ms, for example to lower the
    /// thread's priority. After that compilation another thread replaces it.
    pub when_slow: Option<fn()>,
    /// How long an idle worker may compute masks ahead: the first masks of a constraint that it has just compiled, and
    /// the masks after the next token of a matcher that [requests it](Matcher::prepare_soon). It stops when a
    /// constraint waits to be compiled. Zero, the default, disables this.
    pub prepare: Duration,
}

impl Default for Settings {
    /// Four workers and twelve stand-ins, 512 MiB, ten seconds and 256 MiB for one compilation, failures for ten seconds, a queue of 10,000.
    fn default() -> Self {
        Self {
            workers: 4,
            stand_ins: 12,
            budget: 512 << 20,
            timeout: Duration::from_secs(10),
            memory: 256 << 20,
            failures_for: Duration::from_secs(10),
            queue: 10_000,
            when_slow: None,
            prepare: Duration::ZERO,
        }
    }
}

/// Workers, a cache and statistics. Clones refer to the same service. When the last clone and the last [client](Client)
/// are dropped, the workers end, and requests that still wait fail with [`Error::Closed`].
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
/// // One client for each vocabulary; they share workers, memory and statistics.
/// let client = service.client(Arc::new(compiler));
/// client.compile(&Constraint::regex("[0-9]+"))?;
/// assert_eq!(service.statistics().cache.entries, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Service {
    owner: Arc<Owner>,
}

/// A handle to request constraints for one vocabulary with one set of options. Cheap to clone.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::{Compiler, Constraint, Options, TokenId, VocabularyBuilder, json_schema};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let client = Service::new(Settings::default())?.client(Arc::new(compiler));
/// let mut options = Options::default();
/// options.json_schema.key_order = json_schema::KeyOrder::Any;
/// let any_order = client.with_options(options); // the same service, and other entries of its cache
/// assert!(any_order.compile(&Constraint::json_schema(r#"{"required": ["a", "b"], "type": "object"}"#)).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    owner: Arc<Owner>,
    backend: usize,
    options: Arc<Options>,
    /// The hash of the options.
    hash: u64,
}

impl Service {
    /// Starts a service with its workers.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let workers = settings.workers.max(1);
        let shared = Arc::new(Shared {
            cache: Mutex::new(Cache::new(settings.failures_for)),
            queue: Mutex::new(Queue { threads: workers, ..Queue::default() }),
            bell: Condvar::new(),
            watch_bell: Condvar::new(),
            backends: RwLock::default(),
            counters: Arc::new(Counters::new()),
            upkeep: Upkeep::default(),
            common_bytes: AtomicUsize::new(0),
            hasher: DefaultHashBuilder::default(),
            settings,
        });
        let mut owner = Owner { shared, workers: Vec::with_capacity(workers) };
        for number in 0..workers {
            // If one cannot be started, dropping the owner ends those that were.
            let worker = worker::start(owner.shared.clone(), number)?;
            owner.workers.push(worker);
        }
        if owner.shared.settings.stand_ins > 0 {
            owner.workers.push(watch::start(owner.shared.clone())?);
        }
        Ok(Self { owner: Arc::new(owner) })
    }

    /// Returns a client for a backend. If a backend with the same name and vocabulary is already registered, the client
    /// uses that one.
    pub fn client(&self, backend: Arc<dyn Backend>) -> Client {
        let is_same = |known: &Registered| {
            known.backend.name() == backend.name()
                && known.backend.vocabulary().fingerprint() == backend.vocabulary().fingerprint()
        };
        let mut backends =
            self.owner.shared.backends.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let index = backends.iter().position(|known| is_same(known)).unwrap_or_else(|| {
            backends.push(Arc::new(Registered { backend, generation: AtomicU64::new(0) }));
            backends.len() - 1
        });
        drop(backends);
        Client::new(self.owner.clone(), index, Options::default())
    }

    /// Forgets all constraints and failures, and the data that constraints share. Constraints that are in use or being
    /// compiled are not affected.
    pub fn clear(&self) {
        let shared = &self.owner.shared;
        let cleared = lock(&shared.cache).clear();
        drop(cleared);
        for backend in shared.backends() {
            backend.renew(0, &shared.counters);
        }
        shared.upkeep();
    }

    /// Returns a snapshot of the statistics.
    pub fn statistics(&self) -> Statistics {
        let shared = &self.owner.shared;
        let counters = &shared.counters;
        let (entries, bytes) = {
            let cache = lock(&shared.cache);
            (cache.len() as u64, cache.bytes() as u64)
        };
        let cache = CacheStatistics {
            entries,
            bytes,
            shared_bytes: shared.common_bytes.load(Ordering::Relaxed) as u64,
            budget: shared.settings.budget as u64,
            evictions: counters.evictions.load(Ordering::Relaxed),
            renewals: counters.renewals.load(Ordering::Relaxed),
            upkeep: Duration::from_nanos(counters.upkeep_nanos.load(Ordering::Relaxed)),
            queued: lock(&shared.queue).jobs.len() as u64,
            running: counters.running.load(Ordering::Relaxed),
        };
        Statistics { kinds: counters.kinds(), waits: counters.waits(), cache, matching: counters.matching() }
    }

    /// Measures everything now and evicts what exceeds the budget. Workers also do this from time to time.
    pub fn tidy(&self) {
        self.owner.shared.upkeep();
    }
}

impl Client {
    fn new(owner: Arc<Owner>, backend: usize, options: Options) -> Self {
        let hash = owner.shared.hasher.hash_one(&options);
        Self { owner, backend, options: Arc::new(options), hash }
    }

    /// Returns a client of the same backend with other options.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self::new(self.owner.clone(), self.backend, options)
    }

    /// Requests a constraint. Returns at once.
    pub fn request(&self, constraint: &Constraint) -> Ticket {
        let shared = &self.owner.shared;
        let key = KeyRef { backend: self.backend, options: &self.options, constraint };
        let hash = key.hash(self.hash, &shared.hasher);
        let mut cache = lock(&shared.cache);
        if let Some(found) = cache.find(hash, key).and_then(|slot| cache.take(slot)) {
            return self.seat(cache, found, constraint);
        }
        drop(cache);
        let (bytes, limit) = (constraint.bytes(), shared.settings.memory / bytes_for_text(constraint.kind()));
        if bytes > limit {
            return Ticket::refused(Error::TooMuchText { bytes, limit });
        }
        // Computing the canonical form takes a while, so the lock is not held.
        let canonical = constraint.canonical();
        let canonical = canonical.as_ref().map(|constraint| KeyRef { constraint, ..key });
        let canonical = canonical.map(|key| (key.hash(self.hash, &shared.hasher), key));
        let mut cache = lock(&shared.cache);
        let known = cache.find(hash, key);
        let known = known.or_else(|| canonical.and_then(|(hash, key)| cache.find(hash, key)));
        let slot = known.unwrap_or_else(|| cache.add());
        for (hash, key) in canonical.into_iter().chain([(hash, key)]) {
            cache.add_key(hash, key, slot);
        }
        match cache.take(slot) {
            Some(found) => self.seat(cache, found, constraint),
            // Cannot happen: a slot that was found under this lock exists.
            None => Ticket::refused(Error::Closed),
        }
    }

    /// Requests a constraint and waits for it.
    pub fn compile(&self, constraint: &Constraint) -> Result {
        self.request(constraint).wait()
    }

    /// Returns the service.
    pub fn service(&self) -> Service {
        Service { owner: self.owner.clone() }
    }

    /// Creates a ticket for the result of a lookup. A new flight is queued while the cache is locked, so that no other
    /// request can join a flight that the queue refuses.
    fn seat(&self, mut cache: sync::MutexGuard<'_, Cache>, found: Found, constraint: &Constraint) -> Ticket {
        let shared = &self.owner.shared;
        shared.counters.request(constraint.kind(), found.lookup());
        if let Found::Flying { seat, slot, is_new: true } = &found {
            let key =
                Key { backend: self.backend, options: self.options.clone(), constraint: constraint.clone() };
            let job = Job { flight: seat.flight().clone(), slot: *slot, key, since: Instant::now() };
            if let Err(error) = shared.enqueue(job) {
                cache.forget(*slot, seat.flight());
                return Ticket::refused(error);
            }
        }
        drop(cache);
        Ticket::new(found, Arc::downgrade(shared))
    }
}

/// The state that all threads of a service share.
pub(crate) struct Shared {
    settings: Settings,
    cache: Mutex<Cache>,
    queue: Mutex<Queue>,
    /// Signaled when there is work in the queue.
    bell: Condvar,
    /// Signaled when a job waits and no worker is free.
    watch_bell: Condvar,
    backends: RwLock<Vec<Arc<Registered>>>,
    pub(crate) counters: Arc<Counters>,
    upkeep: Upkeep,
    /// The size of the data that constraints share, when it was last measured.
    common_bytes: AtomicUsize,
    hasher: DefaultHashBuilder,
}

/// A backend that is registered with the service.
struct Registered {
    backend: Arc<dyn Backend>,
    /// How often it has been renewed.
    generation: AtomicU64,
}

#[derive(Default)]
struct Queue {
    jobs: Line<Job>,
    /// The number of workers and stand-ins.
    threads: usize,
    /// The number of these that are idle.
    idle: usize,
    stand_ins: Vec<JoinHandle<()>>,
    /// Threads that replaced others.
    successors: Vec<JoinHandle<()>>,
    /// Whether the watch thread is awake.
    is_watched: bool,
    /// Whether a worker should measure.
    measure: bool,
    /// Matchers whose next masks are to be computed ahead, in a stack. There are at most as many as idle workers.
    prepare: Vec<Matcher>,
    is_closed: bool,
    /// The running compilations, and when each began.
    running: Vec<(Arc<Flight>, Instant)>,
}

/// A compilation to be run.
struct Job {
    flight: Arc<Flight>,
    slot: SlotId,
    key: Key,
    /// The time of the request.
    since: Instant,
}

impl Queued for Job {
    type Outcome = Result;
    type Cargo = Arc<CancelToken>;

    fn bytes(&self) -> usize {
        self.key.constraint.bytes()
    }

    fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }
}

impl Shared {
    fn backends(&self) -> Vec<Arc<Registered>> {
        self.backends.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn enqueue(&self, job: Job) -> Result<()> {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return Err(Error::Closed);
        }
        let (limit, bytes) = (self.settings.queue, queue.jobs.bytes() + job.bytes());
        if queue.jobs.len() >= limit || bytes > self.settings.budget {
            return Err(Error::Busy { limit });
        }
        queue.jobs.push(job);
        self.call_watch(&mut queue);
        drop(queue);
        self.bell.notify_one();
        Ok(())
    }

    /// Removes a flight that no request waits for.
    fn abandon(&self, slot: SlotId, flight: &Arc<Flight>) {
        lock(&self.cache).forget(slot, flight);
        lock(&self.queue).jobs.remove(flight);
    }
}

/// Ends the workers when it is dropped.
struct Owner {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.queue);
        queue.is_closed = true;
        let jobs = mem::take(&mut queue.jobs);
        let others = mem::take(&mut queue.stand_ins)
            .into_iter()
            .chain(mem::take(&mut queue.successors))
            .collect::<Vec<_>>();
        for (flight, _) in &queue.running {
            flight.cargo().cancel();
        }
        drop(queue);
        self.shared.bell.notify_all();
        self.shared.watch_bell.notify_all();
        for job in jobs {
            job.flight.land(&Err(Error::Closed));
        }
        let here = std::thread::current().id();
        for worker in self.workers.drain(..).chain(others) {
            // A function that runs on a worker may hold the last client, and a thread cannot join itself.
            if worker.thread().id() != here {
                // Workers catch panics of backends, so there is no result to look at.
                drop(worker.join());
            }
        }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}
