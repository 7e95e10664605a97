//! A value that one thread at a time takes out, uses and puts back.
//!
//! A matcher changes with every call, and Python may call it from any thread. A lock would do, but a thread that waits for a lock while it holds the GIL
//! is how programs stand still: the owner of the lock may be waiting for the GIL. So nobody waits. Whoever comes second is told that the
//! matcher is in use, which for a thing that belongs to one request is a mistake in the caller's program anyway.
//!
//! The value is taken *out* rather than locked in place because a lease, unlike a lock's guard, may travel to another thread: a
//! batch leases its matchers here and hands them to the pool.

use core::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// The place of the value: empty while somebody uses it.
#[derive(Debug)]
pub(crate) struct Slot<T>(Mutex<Option<Box<T>>>);

/// Somebody else uses the value, or used it when the engine panicked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InUse;

impl<T> Slot<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(Some(Box::new(value))))
    }

    /// Takes the value until the lease is dropped.
    pub(crate) fn lease(&self) -> Result<Lease<'_, T>, InUse> {
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        value.map(|value| Lease { slot: self, value: Some(value) }).ok_or(InUse)
    }
}

/// The value, for now.
pub(crate) struct Lease<'s, T> {
    slot: &'s Slot<T>,
    /// Empty only while it is dropped.
    value: Option<Box<T>>,
}

impl<T> Deref for Lease<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("a lease holds its value until it is dropped"),
        }
    }
}

impl<T> DerefMut for Lease<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.value {
            Some(value) => value,
            None => unreachable!("a lease holds its value until it is dropped"),
        }
    }
}

impl<T> Drop for Lease<'_, T> {
    fn drop(&mut self) {
        // What has panicked halfway is in no state to go on.
        if !std::thread::panicking() {
            *self.slot.0.lock().unwrap_or_else(PoisonError::into_inner) = self.value.take();
        }
    }
}
