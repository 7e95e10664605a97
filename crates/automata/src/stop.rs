//! Cancels long-running work.
//!
//! [`Limits`](crate::Limits) count steps, so the same input has the same result on every machine. A caller may also
//! have a deadline, or lose interest: then it cancels a [`CancelToken`]. The token is not passed through the options of
//! every layer. The working thread carries it ([`with_cancel`]), and long loops check [`must_stop`].
//!
//! ```
//! use maskwright_automata::{CancelToken, must_stop, with_cancel};
//!
//! let stop = CancelToken::new();
//! let rounds = with_cancel(&stop, || {
//!     for round in 0.. {
//!         if must_stop() {
//!             return round;
//!         }
//!         if round == 5 {
//!             stop.cancel();          // normally another thread does this
//!         }
//!     }
//!     0
//! });
//! assert!(rounds > 5 && stop.is_cancelled());
//! ```
//! A canceled construction fails like one that reaches a limit. Its result is incomplete and must be discarded.

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// One of this many calls of [`must_stop`] reads the clock.
const CALLS_PER_CHECK: u32 = 32;

/// A request to end a piece of work early. Clones of the `Arc` share the state.
#[derive(Debug, Default)]
pub struct CancelToken {
    asked: AtomicBool,
    deadline: OnceLock<Instant>,
    slow: OnceLock<(Instant, fn())>,
    is_slow: AtomicBool,
}

impl CancelToken {
    /// Creates a token that is not canceled and has no deadline.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Requests that the work ends.
    pub fn cancel(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Sets a deadline this far from now. Only the first call has an effect.
    pub fn after(&self, time: Duration) {
        if let Some(deadline) = Instant::now().checked_add(time) {
            self.deadline.get_or_init(|| deadline);
        }
    }

    /// Makes the working thread call a function once if the work takes longer than this from now on; the function may
    /// make room for other work. Only the first call has an effect.
    pub fn when_slow(&self, time: Duration, then: fn()) {
        if let Some(moment) = Instant::now().checked_add(time) {
            self.slow.get_or_init(|| (moment, then));
        }
    }

    /// Checks whether the function of [`Self::when_slow`] was called.
    pub fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    fn notice_slowness(&self) {
        if let Some((moment, then)) = self.slow.get()
            && Instant::now() >= *moment
            && !self.is_slow.swap(true, Ordering::Relaxed)
        {
            then();
        }
    }

    /// Checks whether [`Self::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Checks whether the deadline has passed.
    pub fn is_late(&self) -> bool {
        self.deadline.get().is_some_and(|deadline| Instant::now() >= *deadline)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<CancelToken>>> = const { RefCell::new(None) };
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Runs some work on this thread that the token can end early. Calls may be nested.
pub fn with_cancel<T>(stop: &Arc<CancelToken>, work: impl FnOnce() -> T) -> T {
    /// Restores the previous token, also after a panic.
    struct Before(Option<Arc<CancelToken>>);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _before = Before(CURRENT.replace(Some(stop.clone())));
    work()
}

/// Checks whether the work of this thread should end. Call it often: it reads the clock only now and then.
#[inline]
pub fn must_stop() -> bool {
    let calls = CALLS.get();
    CALLS.set(calls.wrapping_add(1));
    calls.is_multiple_of(CALLS_PER_CHECK) && must_stop_now()
}

/// Returns how often [`must_stop`] was called on this thread, modulo 2³². With it, tests can count whether some work
/// checks often enough, without timing.
pub fn looks() -> u32 {
    CALLS.get()
}

/// Like [`must_stop`], for code that calls it rarely.
pub fn must_stop_now() -> bool {
    CURRENT.with_borrow(|stop| {
        stop.as_ref().is_some_and(|stop| {
            stop.notice_slowness();
            stop.is_cancelled() || stop.is_late()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dfa, Exprs, Limits, Resource};

    /// Builds `(a|b)*a(a|b){15}`, which has 65,536 states.
    fn build_something_long() -> Result<Dfa, crate::LimitError> {
        let mut e = Exprs::new();
        let (a, b) = (e.bytes(b"a"), e.bytes(b"b"));
        let either = e.alt([a, b]);
        let (before, behind) = (e.repeat(either, 0, None), e.repeat(either, 15, Some(15)));
        let all = e.concat([before, a, behind]);
        Dfa::build(&mut e, all, &Limits { states: 1 << 20, steps: usize::MAX, bytes: usize::MAX })
    }

    #[test]
    fn a_construction_ends_when_it_is_asked_to() {
        let stop = CancelToken::new();
        stop.cancel();
        let error = with_cancel(&stop, build_something_long).expect_err("it was stopped");
        assert_eq!(error.resource(), Resource::Time);
        assert!(!must_stop_now(), "nobody is obeyed any more");
    }

    #[test]
    fn a_construction_ends_when_its_time_is_over() {
        let stop = CancelToken::new();
        stop.after(Duration::ZERO);
        assert!(with_cancel(&stop, build_something_long).is_err() && stop.is_late() && !stop.is_cancelled());
    }

    #[test]
    fn slow_work_is_noticed_once_by_who_does_it() {
        thread_local! {
            static NOTICED: Cell<u32> = const { Cell::new(0) };
        }
        let notice = || NOTICED.set(NOTICED.get() + 1);
        let quick = CancelToken::new();
        quick.when_slow(Duration::from_secs(1_000_000), notice);
        assert!(!with_cancel(&quick, must_stop_now) && !quick.is_slow());
        let slow = CancelToken::new();
        slow.when_slow(Duration::ZERO, notice);
        assert!(!slow.is_slow(), "nobody has looked yet");
        for _ in 0..3 {
            assert!(!with_cancel(&slow, must_stop_now), "it goes on");
        }
        assert!(slow.is_slow());
        assert_eq!(NOTICED.get(), 1);
    }

    #[test]
    fn nobody_is_obeyed_after_a_panic() {
        let stop = CancelToken::new();
        stop.cancel();
        let panicked = std::panic::catch_unwind(|| with_cancel(&stop, || panic!("as the test wants it")));
        assert!(panicked.is_err() && !must_stop_now());
    }
}
