//! The state that all handlers share.

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZero,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::available_parallelism,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{engine::Engine, metrics::Metrics, settings::Settings, stored::Stored};

/// The right to do slow work.
#[derive(Debug)]
pub(crate) struct Turn {
    /// When the request began to wait for it.
    pub(crate) since: Instant,
    /// Its permit, which is released on drop.
    pub(crate) _place: OwnedSemaphorePermit,
}

/// The state that all handlers share.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    /// The permits for slow work, each of which uses a thread.
    pub(crate) turns: Arc<Semaphore>,
    /// The responses that a later request can continue from.
    pub(crate) stored: Stored,
    /// The time at which the server started.
    pub(crate) since: u64,
}

impl State {
    pub(crate) fn new(engine: Engine, settings: Settings) -> Self {
        // More threads than processors, so that a long text does not block short ones.
        let threads = available_parallelism().map_or(1, NonZero::get).max(4);
        let turns = Arc::new(Semaphore::new(threads));
        let stored = Stored::new(settings.response_bytes);
        Self { engine, settings, metrics: Metrics::default(), turns, stored, since: now() }
    }
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns a unique id, such as `chatcmpl-3f…`. It is not secret.
pub(crate) fn new_id(prefix: &str) -> String {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [left, right] = &*KEYS;
    format!("{prefix}{:016x}{:08x}", left.hash_one(number), right.hash_one(number) as u32)
}
