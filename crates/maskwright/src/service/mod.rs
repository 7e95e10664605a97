//! Constraints for a whole server: each compiled once, in time, within a memory budget, and counted.
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
//! # How a request goes
//!
//! ```text
//!   request ─▶ cache ─┬─ ready ──────────────▶ compiled ─▶ matchers
//!                     ├─ failed, lately ─────▶ error
//!                     ├─ on its way ─▶ seat ─┐
//!                     └─ unknown ─▶ seat ─▶ queue ─▶ worker ─▶ backend ─▶ lands
//! ```
//! The cache holds what is on its way as well as what is there, so equal requests share one compilation (`flight.rs`). Equal means: the same
//! kind, text, [`Options`] and backend, where schemas may differ in white space.
//!
//! # Memory
//!
//! [`Settings::budget`] bounds everything that is kept between requests: compiled constraints with the masks that they have learnt,
//! what constraints of one vocabulary share, the texts by which they are found, remembered failures. All of it grows while texts are
//! matched, so it is measured again after matching, by a worker. When there is too much, constraints go, least recently used first, but never one that
//! is in use; and when what is shared takes more than half, the backend begins a new library, and constraints of the old one go
//! first, because the last of them frees it. The vocabulary itself is not part of the budget.
//!
//! # What can go wrong
//!
//! A constraint that is wrong, too slow, too large or that makes a backend panic is an [`Error`] of those who asked for it, and of nobody else. It is
//! remembered for [`Settings::failures_for`], so that asking again costs nothing.

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
use self::line::{Line, Waits};
use self::sync::{Arc, Condvar, Mutex, lock};
pub use self::ticket::Ticket;
use self::upkeep::Upkeep;
pub use self::warm::{LoadError, Saved, Warm};
use crate::backend::Backend;
use crate::statistics::{CacheStatistics, Counters, Statistics};
use crate::{Constraint, Kind, Options};
pub use maskwright_vocab::pack::OpenError;

/// How many bytes it may take to compile a byte of text, as measured on constraints that were written to be expensive. A text may be no longer than this part of
/// [`Settings::memory`].
fn bytes_for_text(kind: Kind) -> usize {
    match kind {
        Kind::Choice => 32,
        Kind::Ebnf | Kind::Gbnf => 96,
        Kind::Regex | Kind::Lark | Kind::JsonSchema | Kind::StructuralTag | Kind::Pcfg => 192,
    }
}

/// What a request ends with.
pub type Result<T = Arc<CompiledConstraint>> = core::result::Result<T, Error>;

type Flight = flight::Flight<Result, Arc<CancelToken>>;
type Seat = flight::Seat<Result, Arc<CancelToken>>;

/// How a service works.
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
    /// Threads that compile. At least one is started.
    pub workers: usize,
    /// Threads that may step in for workers while these are at a constraint that takes more than a few milliseconds, so that it keeps
    /// no quick one waiting.
    pub stand_ins: usize,
    /// Bytes that may be kept between requests.
    pub budget: usize,
    /// How long one compilation may take.
    pub timeout: Duration,
    /// Bytes that one compilation may take, and its result hold.
    pub memory: usize,
    /// How long a failure is remembered.
    pub failures_for: Duration,
    /// How many constraints may wait for a worker.
    pub queue: usize,
    /// What a thread does when a compile has taken longer than 5 ms, such as lowering its priority. When the compile has ended another thread takes its place.
    pub when_slow: Option<fn()>,
    /// How long an idle worker may compute masks ahead: those that come first, of a constraint that it has just compiled, and those behind the next token, of a matcher
    /// that [asks for it](Matcher::prepare_soon). A constraint that waits to be compiled ends it. Zero, the default, is never.
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

/// Workers, a cache and statistics. Clones are the same service; when the last of them and of its [clients](Client) is gone, the workers end, and who
/// still waits gets [`Error::Closed`].
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

/// Requests for one vocabulary, with one set of options. Cheap to clone.
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
    /// Starts the workers.
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
            // If one cannot be started, those that were end with their owner.
            let worker = worker::start(owner.shared.clone(), number)?;
            owner.workers.push(worker);
        }
        if owner.shared.settings.stand_ins > 0 {
            owner.workers.push(watch::start(owner.shared.clone())?);
        }
        Ok(Self { owner: Arc::new(owner) })
    }

    /// A client of a backend. If a backend of the same name and vocabulary is known already, the client uses that one.
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

    /// Forgets all constraints and failures, and what constraints shared. What is in use or on its way stays with those who use it or
    /// wait for it; they lose nothing.
    pub fn clear(&self) {
        let shared = &self.owner.shared;
        let cleared = lock(&shared.cache).clear();
        drop(cleared);
        for backend in shared.backends() {
            backend.renew(0, &shared.counters);
        }
        shared.upkeep();
    }

    /// What has happened so far.
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

    /// Measures everything now and lets go of what is too much. A worker does so by itself now and then.
    pub fn tidy(&self) {
        self.owner.shared.upkeep();
    }
}

impl Client {
    fn new(owner: Arc<Owner>, backend: usize, options: Options) -> Self {
        let hash = owner.shared.hasher.hash_one(&options);
        Self { owner, backend, options: Arc::new(options), hash }
    }

    /// A client of the same backend with other options.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self::new(self.owner.clone(), self.backend, options)
    }

    /// Asks for a constraint. Returns at once.
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
        // The canonical form takes a while, so it is worked out without the lock.
        let canonical = constraint.canonical();
        let canonical = canonical.as_ref().map(|constraint| KeyRef { constraint, ..key });
        let canonical = canonical.map(|key| (key.hash(self.hash, &shared.hasher), key));
        let mut cache = lock(&shared.cache);
        let known = cache.find(hash, key);
        let known = known.or_else(|| canonical.and_then(|(hash, key)| cache.find(hash, key)));
        let slot = known.unwrap_or_else(|| cache.add());
        for (hash, key) in canonical.into_iter().chain([(hash, key)]) {
            cache.lead(hash, key, slot);
        }
        match cache.take(slot) {
            Some(found) => self.seat(cache, found, constraint),
            // A slot that was found under this lock is there; if it were not, the service would be broken.
            None => Ticket::refused(Error::Closed),
        }
    }

    /// Asks for a constraint and waits for it.
    pub fn compile(&self, constraint: &Constraint) -> Result {
        self.request(constraint).wait()
    }

    /// The service.
    pub fn service(&self) -> Service {
        Service { owner: self.owner.clone() }
    }

    /// Makes a ticket of what was found. A new flight goes to the queue while the cache is locked, so that nobody can join one that is refused.
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

/// What all threads of a service share.
pub(crate) struct Shared {
    settings: Settings,
    cache: Mutex<Cache>,
    queue: Mutex<Queue>,
    /// Rings when there is something in the queue.
    bell: Condvar,
    /// Rings when somebody waits for whom no worker is free.
    watch_bell: Condvar,
    backends: RwLock<Vec<Arc<Registered>>>,
    pub(crate) counters: Arc<Counters>,
    upkeep: Upkeep,
    /// Bytes of what constraints share, when they were last measured.
    common_bytes: AtomicUsize,
    hasher: DefaultHashBuilder,
}

/// A backend that the service works for.
struct Registered {
    backend: Arc<dyn Backend>,
    /// How often it has begun anew.
    generation: AtomicU64,
}

#[derive(Default)]
struct Queue {
    jobs: Line<Job>,
    /// Workers and stand-ins.
    threads: usize,
    /// Those of them that wait for something to do.
    idle: usize,
    stand_ins: Vec<JoinHandle<()>>,
    /// Threads that took the place of others.
    successors: Vec<JoinHandle<()>>,
    /// Whether the watch is awake.
    is_watched: bool,
    /// Whether a worker should measure.
    measure: bool,
    /// Matchers whose next masks are to be computed ahead, the last first. No more than there are idle workers.
    prepare: Vec<Matcher>,
    is_closed: bool,
    /// What is being compiled, and since when.
    running: Vec<(Arc<Flight>, Instant)>,
}

/// A compilation to be done.
struct Job {
    flight: Arc<Flight>,
    slot: SlotId,
    key: Key,
    /// When it was asked for.
    since: Instant,
}

impl Waits for Job {
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

    /// Forgets a flight that nobody waits for.
    fn abandon(&self, slot: SlotId, flight: &Arc<Flight>) {
        lock(&self.cache).forget(slot, flight);
        lock(&self.queue).jobs.remove(flight);
    }
}

/// Ends the workers when it goes.
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
            // A function that runs on a worker may hold the last client; a thread cannot wait for itself.
            if worker.thread().id() != here {
                // Workers catch what backends throw, so there is nothing to hear from them.
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
