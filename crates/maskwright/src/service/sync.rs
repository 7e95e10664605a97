//! The locks of the service. `tests/maskwright/flight.rs` puts loom's in their place.

use std::sync::PoisonError;
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Takes a lock. A thread that panicked under it left it in order: nothing here is half done when foreign code is called.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits to be told, for ever or for some time.
pub(crate) fn wait_timeout<'m, T>(
    condvar: &Condvar,
    guard: MutexGuard<'m, T>,
    time: Option<Duration>,
) -> MutexGuard<'m, T> {
    match time {
        None => condvar.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(time) => condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0,
    }
}
