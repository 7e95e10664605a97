//! A flight: one piece of work, and all requests that wait for it.
//!
//! Equal requests that arrive while the work is in progress take a seat in the same *flight*:
//!
//! ```text
//!   board ──▶ seat ─┐                         ┌─▶ seat: the outcome
//!   board ──▶ seat ─┼─▶ flight ──land(T)──────┼─▶ seat: the outcome
//!   board ──▶ seat ─┘      │                  └─▶ function or waker: called
//!                          └─ the last seat is left before: abandoned
//! ```
//!
//! Two rules keep this correct, and both are enforced under the flight's lock:
//!
//! 1. A flight lands once. All seats, including those taken later, see the same outcome.
//! 2. A flight without seats is abandoned for good: no seat can be taken in it any more, and a later request starts a
//!    new flight. So no request waits for cancelled work.
//!
//! This file takes its lock type from the module above, so that `tests/maskwright/flight.rs` can run all interleavings
//! with loom's lock.

use std::collections::HashMap;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::sync::{Arc, Condvar, Mutex, MutexGuard, lock, wait_timeout};

/// A piece of work whose result is a `T`. The cargo is data that waiters and workers share.
pub(crate) struct Flight<T, C> {
    cargo: C,
    state: Mutex<State<T>>,
    landed: Condvar,
}

struct State<T> {
    seats: usize,
    /// The number of the next seat.
    next: u64,
    outcome: Option<T>,
    /// The wakers to call, by seat number.
    wakers: HashMap<u64, Waker>,
    functions: Vec<Box<dyn FnOnce(T) + Send>>,
}

/// A place in a flight. It counts until its owner [leaves](Seat::leave) it.
pub(crate) struct Seat<T, C> {
    flight: Arc<Flight<T, C>>,
    number: u64,
}

/// Takes a seat in the current flight, or in a new one if there is none or it was abandoned. The caller holds the lock
/// of the slot that stores the flight. The second result is whether the flight is new.
pub(crate) fn board<T: Clone, C: Default>(under_way: &mut Option<Arc<Flight<T, C>>>) -> (Seat<T, C>, bool) {
    if let Some(seat) = under_way.as_ref().and_then(Flight::join) {
        return (seat, false);
    }
    let state = State { seats: 1, next: 1, outcome: None, wakers: HashMap::default(), functions: Vec::new() };
    let flight = Arc::new(Flight { cargo: C::default(), state: Mutex::new(state), landed: Condvar::new() });
    *under_way = Some(flight.clone());
    (Seat { flight, number: 0 }, true)
}

impl<T: Clone, C> Flight<T, C> {
    pub(crate) fn cargo(&self) -> &C {
        &self.cargo
    }

    /// Takes a seat, unless the flight was abandoned.
    fn join(self: &Arc<Self>) -> Option<Seat<T, C>> {
        let mut state = self.lock();
        if state.seats == 0 && state.outcome.is_none() {
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.seats += 1;
        Some(Seat { flight: self.clone(), number })
    }

    /// Whether no request waits any more, so that the work may be dropped.
    pub(crate) fn is_abandoned(&self) -> bool {
        let state = self.lock();
        state.seats == 0 && state.outcome.is_none()
    }

    /// Ends the flight and notifies all waiters. Only the first call has an effect. Functions run here, on the caller's
    /// thread; if one panics, the panic is caught, so that the others are still called.
    pub(crate) fn land(&self, outcome: &T) {
        let mut state = self.lock();
        if state.outcome.is_some() {
            return;
        }
        state.outcome = Some(outcome.clone());
        let wakers = std::mem::take(&mut state.wakers);
        let functions = std::mem::take(&mut state.functions);
        drop(state);
        self.landed.notify_all();
        wakers.into_values().for_each(Waker::wake);
        for function in functions {
            let call = std::panic::AssertUnwindSafe(|| function(outcome.clone()));
            drop(std::panic::catch_unwind(call));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }
}

impl<T: Clone, C> Seat<T, C> {
    pub(crate) fn flight(&self) -> &Arc<Flight<T, C>> {
        &self.flight
    }

    /// Returns the outcome, if the flight has landed.
    pub(crate) fn outcome(&self) -> Option<T> {
        self.flight.lock().outcome.clone()
    }

    /// Waits for the outcome, without a time limit or until `until`.
    pub(crate) fn wait(&self, until: Option<Instant>) -> Option<T> {
        let mut state = self.flight.lock();
        loop {
            if let Some(outcome) = &state.outcome {
                return Some(outcome.clone());
            }
            let left = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return None,
                left => left,
            };
            state = wait_timeout(&self.flight.landed, state, left);
        }
    }

    /// Returns the outcome, or registers a waker to be called when it is there. A seat has one waker, the latest.
    pub(crate) fn outcome_or_wake(&self, waker: &Waker) -> Option<T> {
        let mut state = self.flight.lock();
        if state.outcome.is_none() {
            state.wakers.insert(self.number, waker.clone());
        }
        state.outcome.clone()
    }

    /// Calls a function with the outcome: at once if the flight has landed, otherwise when it lands. The function takes
    /// over the seat, which is never left.
    pub(crate) fn call(self, function: Box<dyn FnOnce(T) + Send>) {
        let mut state = self.flight.lock();
        let Some(outcome) = state.outcome.clone() else {
            state.functions.push(function);
            return;
        };
        drop(state);
        function(outcome);
    }

    /// Gives up the seat. Returns whether that abandoned the flight.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.flight.lock();
        state.wakers.remove(&self.number);
        state.seats -= 1;
        state.seats == 0 && state.outcome.is_none()
    }
}
