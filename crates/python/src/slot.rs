//! A slot for a value that one thread at a time takes out, uses and puts back.
//!
//! A matcher changes with every call, and Python may call it from any thread. A lock would work, but a thread that
//! waits for a lock while it holds the GIL can cause a deadlock: the owner of the lock may be waiting for the GIL. So
//! no thread waits. A second thread gets an error that the matcher is in use, which for an object that belongs to one
//! request is a bug in the caller's program anyway.
//!
//! The value is taken *out* rather than locked in place because a lease, unlike a lock's guard, can be sent to another
//! thread: a batch leases its matchers and passes them to the pool.

use core::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// The place of the value, which is empty while the value is leased.
#[derive(Debug)]
pub(crate) struct Slot<T>(Mutex<Option<Box<T>>>);

/// The error if another thread uses the value, or used it when the engine panicked.
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

/// A leased value.
pub(crate) struct Lease<'s, T> {
    slot: &'s Slot<T>,
    /// `None` only during drop.
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
        // A value whose use panicked may be inconsistent, so it is not put back.
        if !std::thread::panicking() {
            *self.slot.0.lock().unwrap_or_else(PoisonError::into_inner) = self.value.take();
        }
    }
}
