//! The clock, and what it should not count.
//!
//! On a machine that is doing other work, the scheduler takes the processor away for milliseconds at a time, and a
//! mask of one microsecond shows up as the maximum of the run. Linux counts, for each thread, the time that it was
//! ready to run and did not (`/proc/thread-self/schedstat`, second number). With [`Clock::sharing`] that time is
//! subtracted. Time that an engine waits for its own threads is not: then the thread is not ready.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

pub struct Clock {
    /// The statistics of this thread, if waiting is to be subtracted.
    waiting: Option<File>,
}

/// A thread that lost the processor lost it for longer, so shorter times need no second look.
const UNDISTURBED: Duration = Duration::from_micros(20);

impl Clock {
    /// Wall-clock time as it is.
    pub fn plain() -> Clock {
        Clock { waiting: None }
    }

    /// Wall-clock time less the time that this thread, which must be the one that measures, waited for a processor.
    pub fn sharing() -> Result<Clock, String> {
        let path = "/proc/thread-self/schedstat";
        let file = File::open(path).map_err(|error| format!("--shared-machine needs {path}: {error}"))?;
        Ok(Clock { waiting: Some(file) })
    }

    pub fn new(shared_machine: bool) -> Result<Clock, String> {
        if shared_machine { Clock::sharing() } else { Ok(Clock::plain()) }
    }

    /// Runs `call` and returns its result and its nanoseconds.
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

/// The median of an empty measurement. It is part of every time reported and is not subtracted.
pub fn overhead_ns() -> u64 {
    let clock = Clock::plain();
    let mut empty: Vec<u64> = (0..10_001).map(|_| clock.time(|| ()).1).collect();
    empty.sort_unstable();
    empty[empty.len() / 2]
}
