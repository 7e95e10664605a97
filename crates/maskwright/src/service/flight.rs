//! One piece of work, and everybody who waits for it.
//!
//! Equal requests that come while the work is under way take a seat in the same *flight*:
//!
//! ```text
//!   board ──▶ seat ─┐                         ┌─▶ seat: the outcome
//!   board ──▶ seat ─┼─▶ flight ──land(T)──────┼─▶ seat: the outcome
//!   board ──▶ seat ─┘      │                  └─▶ function or waker: called
//!                          └─ the last seat is left before: abandoned
//! ```
//!
//! Two rules keep it right, and both are decided under the flight's lock:
//!
//! 1. A flight lands once, and everybody who holds a seat, and everybody who takes one later, sees the same outcome.
//! 2. A flight that nobody waits for is abandoned for good: nobody can take a seat in it any more, and who comes later
//!    begins a new one. So nobody waits for work that was told to stop.
//!
//! This file takes its lock from the module above, so that `tests/maskwright/flight.rs` can run every interleaving of it with loom's.

use std::collections::HashMap;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::sync::{Arc, Condvar, Mutex, MutexGuard, lock, wait_timeout};

/// One piece of work that ends with a `T`. The cargo is whatever those who wait and those who work have to share.
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
    /// Whom to tell, by the number of the seat.
    wakers: HashMap<u64, Waker>,
    functions: Vec<Box<dyn FnOnce(T) + Send>>,
}

/// A place in a flight. It counts until it is [left](Seat::leave), which its owner has to do.
pub(crate) struct Seat<T, C> {
    flight: Arc<Flight<T, C>>,
    number: u64,
}

/// Takes a seat in the flight that is under way, or in a new one if there is none, or if it was abandoned. The caller holds the
/// lock of the place where the flight is written down. The answer's second part says whether the flight is new.
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

    /// A seat, unless the flight was abandoned.
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

    /// Whether nobody waits any more, so that the work may be dropped.
    pub(crate) fn is_abandoned(&self) -> bool {
        let state = self.lock();
        state.seats == 0 && state.outcome.is_none()
    }

    /// Ends the flight and tells everybody. Only the first call counts. Functions run here, on the thread of the caller; a
    /// panic of one is caught, because the others have a right to be told.
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

    /// The outcome, if there is one yet.
    pub(crate) fn outcome(&self) -> Option<T> {
        self.flight.lock().outcome.clone()
    }

    /// Waits for the outcome, for ever or until a moment.
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

    /// The outcome, or a promise to wake somebody when it is there. A seat has one such promise, the latest.
    pub(crate) fn outcome_or_wake(&self, waker: &Waker) -> Option<T> {
        let mut state = self.flight.lock();
        if state.outcome.is_none() {
            state.wakers.insert(self.number, waker.clone());
        }
        state.outcome.clone()
    }

    /// Has a function called with the outcome: at once if it is there, otherwise on landing. The function takes over the seat,
    /// which is never left.
    pub(crate) fn call(self, function: Box<dyn FnOnce(T) + Send>) {
        let mut state = self.flight.lock();
        let Some(outcome) = state.outcome.clone() else {
            state.functions.push(function);
            return;
        };
        drop(state);
        function(outcome);
    }

    /// Gives the seat up. Says whether that abandoned the flight.
    pub(crate) fn leave(&self) -> bool {
        let mut state = self.flight.lock();
        state.wakers.remove(&self.number);
        state.seats -= 1;
        state.seats == 0 && state.outcome.is_none()
    }
}
