//! A thread that fills masks while the model computes.
//!
//! Guides travel to it and back, so nothing is shared and nothing is locked. A guide that panics is not seen again.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{Failure, answer::panic_message};
use crate::guide::Guide;

/// A mask to be filled.
pub(super) struct Order {
    /// Whose it is.
    pub(super) answer: usize,
    pub(super) guide: Box<dyn Guide>,
    pub(super) words: Vec<u32>,
}

/// A mask that was filled, or why not.
pub(super) struct Filled {
    pub(super) answer: usize,
    pub(super) time: Duration,
    pub(super) result: Result<(Box<dyn Guide>, Vec<u32>), Failure>,
}

/// The thread.
pub(super) struct Masks {
    orders: Option<mpsc::Sender<Order>>,
    filled: mpsc::Receiver<Filled>,
    thread: Option<JoinHandle<()>>,
    /// How many are on their way.
    open: Vec<usize>,
}

impl Masks {
    pub(super) fn start() -> Self {
        let (orders, inbox) = mpsc::channel::<Order>();
        let (outbox, filled) = mpsc::channel();
        let run = move || {
            for order in inbox {
                if outbox.send(fill(order)).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("masks".into()).spawn(run);
        Self { orders: Some(orders), filled, thread: thread.ok(), open: Vec::new() }
    }

    /// Hands over a mask to be filled.
    pub(super) fn begin(&mut self, order: Order) {
        self.open.push(order.answer);
        if let Some(orders) = &self.orders {
            // If the thread is gone, `collect` says so.
            let _ = orders.send(order);
        }
    }

    /// Waits for all masks that were begun.
    pub(super) fn collect(&mut self) -> Vec<Filled> {
        let mut all = Vec::with_capacity(self.open.len());
        while all.len() < self.open.len() {
            let Ok(filled) = self.filled.recv() else { break };
            all.push(filled);
        }
        for answer in self.open.drain(..) {
            if !all.iter().any(|filled| filled.answer == answer) {
                let result = Err(Failure::Internal("there is no thread to fill masks".into()));
                all.push(Filled { answer, time: Duration::ZERO, result });
            }
        }
        all
    }
}

impl Drop for Masks {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // Guides that panic are caught; nothing else in the thread can.
            let _ = thread.join();
        }
    }
}

fn fill(order: Order) -> Filled {
    let begin = Instant::now();
    let Order { answer, mut guide, mut words } = order;
    let work = move || {
        guide.fill(&mut words).map(|()| (guide, words)).map_err(|error| Failure::Guide(error.to_string()))
    };
    let result = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Failure::Internal(panic_message(panic.as_ref()))));
    Filled { answer, time: begin.elapsed(), result }
}
