//! The clock, and which times it excludes.
//!
//! On a machine with other work, the scheduler takes the processor away for milliseconds at a time, so a mask of one
//! microsecond can become the maximum of a run. Linux counts, for each thread, the time that it was ready to run but
//! did not (`/proc/thread-self/schedstat`, second number). With [`Clock::sharing`] that time is subtracted. The time
//! that an engine waits for its own threads is not subtracted: then the thread is not ready.
//! subtracted. Time that an engine waits for its own threads is not: then the thread is not ready.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

pub struct Clock {
    /// The statistics of this thread, if waiting is to be subtracted.
    waiting: Option<File>,
}

/// A thread that lost the processor lost it for longer than this, so shorter times need no check.
const UNDISTURBED: Duration = Duration::from_micros(20);

impl Clock {
    /// Measures plain wall-clock time.
    pub fn plain() -> Clock {
        Clock { waiting: None }
    }

    /// Measures wall-clock time minus the time that this thread waited for a processor. Only this thread may measure.
    pub fn sharing() -> Result<Clock, String> {
        let path = "/proc/thread-self/schedstat";
        let file = File::open(path).map_err(|error| format!("--shared-machine needs {path}: {error}"))?;
        Ok(Clock { waiting: Some(file) })
    }

    pub fn new(shared_machine: bool) -> Result<Clock, String> {
        if shared_machine { Clock::sharing() } else { Ok(Clock::plain()) }
    }

    /// Runs `call` and returns its result and its duration in nanoseconds.
    #[inline]
    pub fn time<T>(&self, call: impl FnOnce() -> T) -> (T, u64) {
        let before = self.waited();
        let begin = Instant::now();
        let value = call();
        let elapsed = begin.elapsed();
        if self.waiting.is_none() || elapsed < UNDISTURBED {
            return (value, elapsed.as_nanos() as u64);
        }
        let waited = self.waited().saturating_sub(before);
        (value, (elapsed.as_nanos() as u64).saturating_sub(waited))
    }

    fn waited(&self) -> u64 {
        let Some(file) = &self.waiting else { return 0 };
        let mut line = [0; 96];
        let length = file.read_at(&mut line, 0).unwrap_or(0);
        let line = std::str::from_utf8(&line[..length]).unwrap_or_default();
        line.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// Returns the median of an empty measurement. It is part of every reported time and is not subtracted.
pub fn overhead_ns() -> u64 {
    let clock = Clock::plain();
    let mut empty: Vec<u64> = (0..10_001).map(|_| clock.time(|| ()).1).collect();
    empty.sort_unstable();
    empty[empty.len() / 2]
}
