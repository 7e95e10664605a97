//! The threads that fill batches.
//!
//! Rayon's global pool does not survive `fork`: the child has the pool and none of its threads, and whoever gives it work waits for ever. Python programs
//! fork, so the pool here remembers the process it was made in, and a child makes its own.

use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

static POOL: Mutex<Option<Made>> = Mutex::new(None);

struct Made {
    process: u32,
    pool: Arc<ThreadPool>,
}

/// The pool of this process.
pub(crate) fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut made = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    match &*made {
        Some(known) if known.process == std::process::id() => Ok(known.pool.clone()),
        _ => replace(&mut made, std::thread::available_parallelism().map_or(1, NonZero::get)),
    }
}

/// A pool of so many threads from now on. Whoever uses the old one finishes there.
pub(crate) fn resize(threads: usize) -> PyResult<()> {
    let mut made = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    replace(&mut made, threads).map(drop)
}

fn replace(made: &mut Option<Made>, threads: usize) -> PyResult<Arc<ThreadPool>> {
    let name = |number| format!("maskwright-{number}");
    let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build();
    let pool = Arc::new(pool.map_err(|error| {
        PyRuntimeError::new_err(format!("the threads that fill masks could not be started: {error}"))
    })?);
    let new = Made { process: std::process::id(), pool: pool.clone() };
    if let Some(old) = made.replace(new)
        && old.process != std::process::id()
    {
        // Its threads stayed in the other process; letting it go would wait for them.
        std::mem::forget(old);
    }
    Ok(pool)
}
