//! The locks of the service. `tests/maskwright/flight.rs` replaces them with loom's.

use std::sync::PoisonError;
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Takes a lock. Ignoring the poison flag is fine: foreign code, which may panic, is only called while the data is
/// consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification, with or without a time limit.
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
