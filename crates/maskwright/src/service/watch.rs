//! A thread that sees to it that nobody waits long for the compile of somebody else.
//!
//! ```text
//!   workers    ████████████ slow ████████████▶
//!   line       a waits… b waits…
//!   watch           └─ after [`PATIENCE`]: a stand-in ─▶ a ─▶ b ─▶ goes, when nobody waits or the worker is back
//! ```
//! A few workers are best as long as compiles are short: each has a processor for itself, and who came first is served first. But a worker that is at
//! a constraint for longer than that is lost to the others. So for each such worker another thread is started while somebody waits, up to
//! [`Settings::stand_ins`](super::Settings::stand_ins) of them: they bound what the slow ones take together.

use core::time::Duration;
use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use super::sync::{Arc, lock, wait_timeout};
use super::{Queue, Shared, worker};

/// A worker that is at a constraint for longer is lost to the others. Twice that is about the longest wait for a stand-in.
pub(super) const PATIENCE: Duration = Duration::from_millis(2);

/// Starts the thread.
pub(super) fn start(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    Builder::new().name("maskwright-watch".into()).spawn(move || shared.watch())
}

impl Queue {
    /// Whether somebody waits for whom no worker is free.
    fn is_stuck(&self) -> bool {
        self.jobs.len() > self.idle
    }

    /// Threads that are not lost to others.
    pub(super) fn quick(&self) -> usize {
        let now = Instant::now();
        let is_lost = |since: Instant| now.saturating_duration_since(since) >= PATIENCE;
        let lost = self.running.iter().filter(|(_, since)| is_lost(*since)).count();
        self.threads - lost
    }
}

impl Shared {
    /// Wakes the watch if it has something to watch. The caller holds the queue.
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
            let is_short_of = queue.quick() < self.settings.workers.max(1);
            if is_short_of && queue.stand_ins.len() < self.settings.stand_ins {
                // If there is no thread to be had, those that wait go on waiting for the workers.
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
