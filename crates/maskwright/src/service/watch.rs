//! A watch thread that keeps requests from waiting long for the compilations of others.
//!
//! ```text
//!   workers    ████████████ slow ████████████▶
//!   line       a waits… b waits…
//!   watch           └─ after [`PATIENCE`]: a stand-in ─▶ a ─▶ b ─▶ ends when no job waits or the worker is free
//! ```
//! As long as compilations are short, a few workers are best: each has a processor for itself, and requests are served
//! in order. But while a worker compiles a slow constraint, it is not available for others. So while a job waits, the
//! watch starts one more thread for each such worker, at most [`Settings::stand_ins`](super::Settings::stand_ins): this
//! bounds the total cost of slow constraints.

use core::time::Duration;
use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use super::sync::{Arc, lock, wait_timeout};
use super::{Queue, Shared, worker};

/// A worker that is busy with one constraint for longer than this counts as unavailable. The longest wait for a
/// stand-in is about twice this time.
pub(super) const PATIENCE: Duration = Duration::from_millis(2);

/// Starts the watch thread.
pub(super) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    Builder::new().name("maskwright-watch".into()).spawn(move || shared.watch())
}

impl Queue {
    /// Whether a job waits and no worker is free.
    fn is_stuck(&self) -> bool {
        self.jobs.len() > self.idle
    }

    /// Returns the number of threads that are not busy with a slow constraint.
    pub(super) fn available_threads(&self) -> usize {
        let now = Instant::now();
        let is_lost = |since: Instant| now.saturating_duration_since(since) >= PATIENCE;
        let lost = self.running.iter().filter(|(_, since)| is_lost(*since)).count();
        self.threads - lost
    }
}

impl Shared {
    /// Wakes the watch if there is something to watch. The caller holds the lock of the queue.
    pub(super) fn call_watch(&self, queue: &mut Queue) {
        if queue.is_stuck() && !queue.is_watched {
            queue.is_watched = true;
            self.watch_bell.notify_one();
        }
    }

    fn watch(self: &Arc<Self>) {
        let mut queue = lock(&self.queue);
        while !queue.is_closed {
            if !queue.is_stuck() {
                queue.is_watched = false;
                queue = wait_timeout(&self.watch_bell, queue, None);
                continue;
            }
            let is_short_of = queue.available_threads() < self.settings.workers.max(1);
            if is_short_of && queue.stand_ins.len() < self.settings.stand_ins {
                // If no thread can be started, the jobs keep waiting for the workers.
                if let Ok(stand_in) = worker::start_stand_in(self.clone()) {
                    queue.threads += 1;
                    queue.stand_ins.push(stand_in);
                }
            }
            queue = wait_timeout(&self.watch_bell, queue, Some(PATIENCE));
            queue.stand_ins.retain(|stand_in| !stand_in.is_finished());
        }
    }
}
