//! The threads that fill batches and build indexes.
//!
//! Rayon's global pool does not survive `fork`: the child has the pool but none of its threads, and work that is given
//! to it never finishes. Programs that use this library from Python or C do fork, so this pool records the process that
//! created it, and a child creates its own.

use core::fmt;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

static POOL: Mutex<Option<Made>> = Mutex::new(None);

struct Made {
    process: u32,
    pool: Arc<ThreadPool>,
}

/// The error when threads cannot be started.
///
/// ```
/// // A machine that has no threads left says so, instead of filling nothing.
/// if let Err(error) = maskwright::set_threads(std::num::NonZero::<usize>::MIN) {
///     assert!(error.to_string().contains("could not be started"));
/// }
/// ```
#[derive(Debug)]
pub struct PoolError(rayon::ThreadPoolBuildError);

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the threads that fill masks could not be started: {}", self.0)
    }
}

impl std::error::Error for PoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Sets how many threads fill batches in this process from now on; the default is one for each processor of the
/// machine. Calls that are running keep the old threads until they finish.
///
/// ```
/// use std::num::NonZero;
///
/// maskwright::set_threads(NonZero::new(2).unwrap())?;
/// assert_eq!(maskwright::in_pool(|| 6 * 7)?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_threads(threads: NonZero<usize>) -> Result<(), PoolError> {
    let mut made = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    replace(&mut made, threads.get()).map(drop)
}

/// Runs a function in this pool: its parallel parts, such as [`Index::build`](crate::Index::build), use these threads.
///
/// ```
/// // Work of one's own on the threads that fill masks, so that there are not twice as many threads as processors.
/// let sum = maskwright::in_pool(|| (1..=100).sum::<u32>())?;
/// assert_eq!(sum, 5_050);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R, PoolError> {
    Ok(pool()?.install(work))
}

/// Returns the pool of this process.
pub(crate) fn pool() -> Result<Arc<ThreadPool>, PoolError> {
    let mut made = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    match &*made {
        Some(known) if known.process == std::process::id() => Ok(known.pool.clone()),
        _ => replace(&mut made, std::thread::available_parallelism().map_or(1, NonZero::get)),
    }
}

fn replace(made: &mut Option<Made>, threads: usize) -> Result<Arc<ThreadPool>, PoolError> {
    let name = |number| format!("maskwright-{number}");
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().map_err(PoolError)?;
    let pool = Arc::new(pool);
    let new = Made { process: std::process::id(), pool: pool.clone() };
    if let Some(old) = made.replace(new)
        && old.process != std::process::id()
    {
        // Its threads exist only in the parent process; dropping the pool would wait for them forever.
        core::mem::forget(old);
    }
    Ok(pool)
}
