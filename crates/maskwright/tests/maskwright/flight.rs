//! Every interleaving of the single flight, with loom in place of the locks of the standard library.

use std::sync::atomic::{AtomicUsize, Ordering};

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    // Sharing is not what is examined here, and loom's cannot be the type of `self`.
    pub(crate) use std::sync::Arc;
    use std::time::Duration;

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("nobody panics under this lock")
    }

    /// Loom has no clock, and these tests set no deadline.
    pub(crate) fn wait_timeout<'m, T>(
        condvar: &Condvar,
        guard: MutexGuard<'m, T>,
        time: Option<Duration>,
    ) -> MutexGuard<'m, T> {
        assert!(time.is_none());
        condvar.wait(guard).expect("nobody panics under this lock")
    }
}

#[expect(dead_code, reason = "the service uses all of it, these tests a part")]
#[path = "../../src/service/flight.rs"]
mod real;

use real::{Flight, Seat, board};
use sync::{Arc, Mutex, lock};

type Number = Flight<usize, ()>;

/// What a service has for one key, and how much work was done for it.
#[derive(Clone)]
struct Place {
    under_way: Arc<Mutex<Option<Arc<Number>>>>,
    ready: Arc<Mutex<Option<usize>>>,
    compiles: Arc<AtomicUsize>,
}

enum Answer {
    Ready(usize),
    Seat(Seat<usize, ()>, bool),
}

impl Place {
    fn new() -> Self {
        let (under_way, ready) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
        Self { under_way, ready, compiles: Arc::default() }
    }

    /// As the cache does: what is ready, or a seat.
    fn request(&self) -> Answer {
        let mut under_way = lock(&self.under_way);
        if let Some(ready) = *lock(&self.ready) {
            return Answer::Ready(ready);
        }
        let (seat, is_new) = board(&mut under_way);
        Answer::Seat(seat, is_new)
    }

    /// As a worker does: an abandoned flight is dropped, another lands.
    fn work(&self, flight: &Arc<Number>) {
        if flight.is_abandoned() {
            return;
        }
        let outcome = self.compiles.fetch_add(1, Ordering::Relaxed);
        let mut under_way = lock(&self.under_way);
        if under_way.as_ref().is_some_and(|known| Arc::ptr_eq(known, flight)) {
            *under_way = None;
            *lock(&self.ready) = Some(outcome);
        }
        drop(under_way);
        flight.land(&outcome);
    }

    /// Asks, works if the flight is new, and waits.
    fn ask_and_wait(&self) -> usize {
        match self.request() {
            Answer::Ready(outcome) => outcome,
            Answer::Seat(seat, is_new) => {
                if is_new {
                    self.work(seat.flight());
                }
                let outcome = seat.wait(None).expect("there is no deadline");
                assert!(!seat.leave(), "a flight that has landed is not abandoned");
                outcome
            }
        }
    }
}

#[test]
fn equal_requests_share_one_compile() {
    loom::model(|| {
        let place = Place::new();
        let other = place.clone();
        let thread = loom::thread::spawn(move || other.ask_and_wait());
        assert_eq!(place.ask_and_wait(), 0);
        assert_eq!(thread.join().expect("no panic"), 0);
        assert_eq!(place.compiles.load(Ordering::Relaxed), 1);
    });
}

/// One who waits leaves while another comes: whoever stays gets an outcome, and nobody waits for a flight that was dropped.
#[test]
fn who_stays_is_served_though_others_leave() {
    loom::model(|| {
        let place = Place::new();
        let Answer::Seat(first, true) = place.request() else { panic!("the first flight is new") };
        let flight = first.flight().clone();
        let (worker, other) = (place.clone(), place.clone());
        let worker = loom::thread::spawn(move || worker.work(&flight));
        let other = loom::thread::spawn(move || other.ask_and_wait());
        let was_abandoned = first.leave();
        let outcome = other.join().expect("no panic");
        worker.join().expect("no panic");
        let compiles = place.compiles.load(Ordering::Relaxed);
        assert!(outcome < compiles && compiles <= 2);
        assert!(was_abandoned || compiles == 1, "a second compile needs an abandoned first");
    });
}

/// Leaving and landing at the same time: either the work is dropped, or there is an outcome; never both, never neither.
#[test]
fn a_flight_lands_or_is_abandoned() {
    loom::model(|| {
        let place = Place::new();
        let Answer::Seat(seat, true) = place.request() else { panic!("the first flight is new") };
        let (flight, worker) = (seat.flight().clone(), place.clone());
        let thread = loom::thread::spawn(move || worker.work(&flight));
        let is_abandoned = seat.leave();
        assert!(!is_abandoned || board_again(&place), "who comes later begins a new flight");
        thread.join().expect("no panic");
    });
}

/// Whether the next request is served or gets a flight that somebody works on.
fn board_again(place: &Place) -> bool {
    match place.request() {
        Answer::Ready(_) => true,
        Answer::Seat(seat, is_new) => {
            seat.leave();
            is_new
        }
    }
}

/// A function that is registered while the flight lands is called once, with the outcome.
#[test]
fn a_function_is_called_once() {
    loom::model(|| {
        let place = Place::new();
        let Answer::Seat(seat, true) = place.request() else { panic!("the first flight is new") };
        let (flight, worker) = (seat.flight().clone(), place.clone());
        let thread = loom::thread::spawn(move || worker.work(&flight));
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        seat.call(Box::new(move |outcome| {
            counted.fetch_add(1 + outcome, Ordering::Relaxed);
        }));
        thread.join().expect("no panic");
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    });
}

/// A task that is woken when the flight lands: it has the outcome at once, or is woken, in every order.
#[test]
fn a_task_is_woken() {
    struct Woken(AtomicUsize);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    loom::model(|| {
        let place = Place::new();
        let Answer::Seat(seat, true) = place.request() else { panic!("the first flight is new") };
        let (flight, worker) = (seat.flight().clone(), place.clone());
        let thread = loom::thread::spawn(move || worker.work(&flight));
        let woken = Arc::new(Woken(AtomicUsize::new(0)));
        let now = seat.outcome_or_wake(&woken.clone().into());
        thread.join().expect("no panic");
        let times = woken.0.load(Ordering::Relaxed);
        assert_eq!(usize::from(now.is_some()) + times, 1);
        assert_eq!(seat.outcome(), Some(0));
    });
}
