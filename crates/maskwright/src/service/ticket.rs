//! Tickets: what a request returns at once.

use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Weak;
use std::time::Instant;

use super::cache::Found;
use super::key::SlotId;
use super::{Result, Seat, Shared};
use crate::statistics::Lookup;

/// A pending request. Wait for it, poll it, register a function, or `await` it: it is a [`Future`] that needs no
/// particular runtime.
///
/// Dropping it ends the wait. When the last request for a constraint is dropped, its compilation is cancelled: it is
/// removed from the queue, or asked to stop.
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
/// let client = Service::new(Settings::default())?.client(Arc::new(compiler));
/// let ticket = client.request(&Constraint::regex("[a-z]+")); // returns at once
/// let compiled = ticket.wait()?; // or `ticket.await`
/// assert_eq!(client.request(&Constraint::regex("[a-z]+")).lookup(), Lookup::Hit);
/// # drop(compiled);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a ticket that is dropped no longer waits"]
pub struct Ticket {
    place: Place,
    lookup: Lookup,
}

enum Place {
    Served(Result),
    Waiting(Waiting),
    /// A registered function has taken over the seat.
    Gone,
}

/// A seat that is left on drop.
struct Waiting {
    seat: Option<Seat>,
    slot: SlotId,
    service: Weak<Shared>,
}

impl Ticket {
    pub(crate) fn new(found: Found, service: Weak<Shared>) -> Self {
        let lookup = found.lookup();
        let place = match found {
            Found::Ready(compiled) => Place::Served(Ok(compiled)),
            Found::Failed(error) => Place::Served(Err(error)),
            Found::Flying { seat, slot, .. } => Place::Waiting(Waiting { seat: Some(seat), slot, service }),
        };
        Self { place, lookup }
    }

    pub(crate) fn refused(error: super::Error) -> Self {
        Self { place: Place::Served(Err(error)), lookup: Lookup::Miss }
    }

    /// Returns what the cache had when the request was made.
    pub fn lookup(&self) -> Lookup {
        self.lookup
    }

    /// Waits for the constraint. Do not call it inside a function passed to [`Self::on_ready`]: that runs on a worker,
    /// which might wait for itself.
    pub fn wait(self) -> Result {
        match self.wait_until(None) {
            Some(result) => result,
            // Only a deadline ends the wait without a result, and there is none.
            None => Err(super::Error::Closed),
        }
    }

    /// Waits for the constraint for at most this time. The ticket can be used again afterwards.
    pub fn wait_for(&self, time: Duration) -> Option<Result> {
        // A time that overflows the clock means no limit.
        self.wait_until(Instant::now().checked_add(time))
    }

    /// Returns the result if there is one. Does not wait.
    pub fn try_get(&self) -> Option<Result> {
        match &self.place {
            Place::Served(result) => Some(result.clone()),
            Place::Waiting(waiting) => waiting.seat.as_ref()?.outcome(),
            Place::Gone => None,
        }
    }

    /// Returns the result if there is one; otherwise registers a waker, which replaces an earlier one. Does not wait.
    /// This is what `await` does, for callers that cannot use it, such as the event loop of another language.
    pub fn try_get_or_wake(&self, waker: &Waker) -> Option<Result> {
        match &self.place {
            Place::Served(result) => Some(result.clone()),
            Place::Waiting(waiting) => waiting.seat.as_ref()?.outcome_or_wake(waker),
            Place::Gone => None,
        }
    }

    /// Calls a function with the result: at once if there is one, otherwise on the worker's thread, so the function
    /// should be short. After this call the request can no longer be cancelled.
    pub fn on_ready(mut self, function: impl FnOnce(Result) + Send + 'static) {
        match core::mem::replace(&mut self.place, Place::Gone) {
            Place::Served(result) => function(result),
            Place::Waiting(mut waiting) => {
                if let Some(seat) = waiting.seat.take() {
                    seat.call(Box::new(function));
                }
            }
            Place::Gone => {}
        }
    }

    fn wait_until(&self, until: Option<Instant>) -> Option<Result> {
        match &self.place {
            Place::Served(result) => Some(result.clone()),
            Place::Waiting(waiting) => waiting.seat.as_ref()?.wait(until),
            Place::Gone => None,
        }
    }
}

impl Future for Ticket {
    type Output = Result;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result> {
        self.try_get_or_wake(context.waker()).map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take()
            && seat.leave()
        {
            seat.flight().cargo().cancel();
            if let Some(service) = self.service.upgrade() {
                service.abandon(self.slot, seat.flight());
            }
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_ready = self.try_get().is_some();
        f.debug_struct("Ticket")
            .field("lookup", &self.lookup)
            .field("is_ready", &is_ready)
            .finish_non_exhaustive()
    }
}
