//! The threads that compile constraints.

use core::any::Any;
use core::sync::atomic::Ordering;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use maskwright_automata::with_cancel;

use super::compiled::{CompiledConstraint, Matcher, Report};
use super::sync::{Arc, lock, wait_timeout};
use super::{Error, Job, Queue, Result, Shared};
use crate::backend::{Compiled, Matching};
use crate::statistics::Outcome;

/// The stack size of the threads. Frontends limit their recursion so that it fits into this size and smaller ones.
const STACK_BYTES: usize = 8 << 20;

/// A compilation that takes longer is slow: see [`Settings::when_slow`](super::Settings::when_slow). None of a hundred
/// real schemas is. The limit is this low because many threads may compile at once, and each should take only a part of
/// the time that other threads can spare.
const SLOW_COMPILE: Duration = Duration::from_millis(5);

/// Starts a worker.
pub(super) fn start(shared: Arc<Shared>, number: usize) -> io::Result<JoinHandle<()>> {
    spawn(shared, format!("maskwright-{number}"), Role::Worker)
}

/// Starts a thread that helps the workers as long as it is needed.
pub(super) fn start_stand_in(shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    spawn(shared, "maskwright-more".into(), Role::StandIn)
}

/// The role of a thread, which determines when it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A worker ends when the service is closed.
    Worker,
    /// A stand-in ends when no job waits.
    StandIn,
}

fn spawn(shared: Arc<Shared>, name: String, role: Role) -> io::Result<JoinHandle<()>> {
    let next: fn(&Shared) -> Option<Task> = match role {
        Role::Worker => Shared::next,
        Role::StandIn => Shared::next_for_stand_in,
    };
    Builder::new().name(name.clone()).stack_size(STACK_BYTES).spawn(move || {
        while let Some(task) = next(&shared) {
            match task {
                Task::Compile(job) => {
                    shared.run(&job);
                    let was_slow = job.flight.cargo().is_slow();
                    // The job holds its result, which would count as in use.
                    drop(job);
                    shared.upkeep_if_due();
                    if was_slow && shared.is_relieved(role, || spawn(shared.clone(), name.clone(), role)) {
                        return;
                    }
                }
                Task::Measure => shared.upkeep_unless_busy(),
                Task::Prepare(matcher) => shared.prepare(&matcher),
            }
        }
    })
}

enum Task {
    Compile(Job),
    Measure,
    Prepare(Matcher),
}

impl Queue {
    fn take_up(&mut self) -> Option<Job> {
        let job = self.jobs.pop()?;
        self.running.push((job.flight.clone(), Instant::now()));
        Some(job)
    }
}

impl Shared {
    /// Waits for the next task. Returns `None` when the service is closed.
    fn next(&self) -> Option<Task> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_closed {
                return None;
            }
            if let Some(job) = queue.take_up() {
                return Some(Task::Compile(job));
            }
            if core::mem::take(&mut queue.measure) {
                return Some(Task::Measure);
            }
            if let Some(matcher) = queue.prepare.pop() {
                return Some(Task::Prepare(matcher));
            }
            queue.idle += 1;
            queue = wait_timeout(&self.bell, queue, None);
            queue.idle -= 1;
        }
    }

    /// Returns the next task of a stand-in. Returns `None` if no job waits, or if enough other threads are available.
    fn next_for_stand_in(&self) -> Option<Task> {
        let mut queue = lock(&self.queue);
        let is_needed = !queue.is_closed && queue.available_threads() <= self.settings.workers.max(1);
        let job = if is_needed { queue.take_up() } else { None };
        if job.is_none() {
            queue.threads -= 1;
        }
        job.map(Task::Compile)
    }

    /// Whether this thread, which a slow compilation may have changed, can end. A worker is replaced by a new thread;
    /// for a stand-in, the watch starts another one when it is needed.
    fn is_relieved(&self, role: Role, start: impl FnOnce() -> io::Result<JoinHandle<()>>) -> bool {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return false;
        }
        if role == Role::StandIn {
            queue.threads -= 1;
            return true;
        }
        queue.successors.retain(|successor| !successor.is_finished());
        start().map(|successor| queue.successors.push(successor)).is_ok()
    }

    /// Lets an idle worker compute masks ahead for a matcher, if there is one.
    pub(super) fn prepare_soon(&self, matcher: impl FnOnce() -> Matcher) -> bool {
        if self.settings.prepare.is_zero() {
            return false;
        }
        let is_possible =
            |queue: &Queue| !queue.is_closed && queue.jobs.len() == 0 && queue.prepare.len() < queue.idle;
        if !is_possible(&lock(&self.queue)) {
            return false;
        }
        let matcher = matcher();
        let mut queue = lock(&self.queue);
        let is_possible = is_possible(&queue);
        if is_possible {
            queue.prepare.push(matcher);
            self.bell.notify_one();
        }
        is_possible
    }

    /// Computes masks ahead until the time is over or a job waits for a worker.
    fn prepare(&self, matcher: &Matcher) {
        let until = Instant::now().checked_add(self.settings.prepare);
        let mut turn = 0u32;
        let mut go_on = || {
            turn += 1;
            until.is_none_or(|until| Instant::now() < until)
                && (!turn.is_multiple_of(16) || self.is_queue_empty())
        };
        // A panic is a bug; it will occur again when the mask is requested.
        let prepared = catch_unwind(AssertUnwindSafe(|| Matching::prepare(matcher, &mut go_on)));
        self.counters.prepared(prepared.unwrap_or_default().masks);
    }

    /// Whether no job waits for a worker.
    fn is_queue_empty(&self) -> bool {
        let queue = lock(&self.queue);
        !queue.is_closed && queue.jobs.len() == 0
    }

    fn run(self: &Arc<Self>, job: &Job) {
        self.counters.running.fetch_add(1, Ordering::Relaxed);
        let generation = self.backends().get(job.key.backend).map_or(0, |backend| backend.generation());
        let outcome = self.compile(job);
        let mut queue = lock(&self.queue);
        queue.running.retain(|(flight, _)| !Arc::ptr_eq(flight, &job.flight));
        let is_closed = queue.is_closed;
        drop(queue);
        self.counters.running.fetch_sub(1, Ordering::Relaxed);
        if let Some(outcome) = outcome {
            lock(&self.cache).store_outcome(job.slot, &job.flight, &outcome, generation);
            job.flight.land(&outcome);
            if let Ok(compiled) = &outcome
                && !self.settings.prepare.is_zero()
            {
                self.prepare(&compiled.matcher());
            }
        } else {
            lock(&self.cache).forget(job.slot, &job.flight);
            // No request waits here, unless the service was closed while some did.
            if is_closed {
                job.flight.land(&Err(Error::Closed));
            }
        }
    }

    /// Compiles a job and counts the outcome. Returns `None` if it was cancelled.
    fn compile(self: &Arc<Self>, job: &Job) -> Option<Result> {
        let (kind, settings, stop) = (job.key.constraint.kind(), &self.settings, job.flight.cargo());
        let backend = self.backends().get(job.key.backend)?.backend.clone();
        if job.flight.is_abandoned() {
            self.counters.compile(kind, Outcome::Cancelled, Duration::ZERO);
            return None;
        }
        let options = (*job.key.options).clone().within(settings.memory);
        let start = Instant::now();
        let waited = start.saturating_duration_since(job.since);
        self.counters.waited(waited);
        stop.after(settings.timeout);
        if let Some(when_slow) = settings.when_slow {
            stop.when_slow(SLOW_COMPILE, when_slow);
        }
        let work = || with_cancel(stop, || backend.compile(&job.key.constraint, &options));
        let compiled = catch_unwind(AssertUnwindSafe(work));
        let time = start.elapsed();
        let result = if stop.is_cancelled() {
            self.counters.compile(kind, Outcome::Cancelled, time);
            return None;
        } else if stop.is_late() {
            // The result may be incomplete, so it is ignored.
            Err((Outcome::TooLong, Error::TooLong { limit: settings.timeout }))
        } else {
            judge(compiled, settings.memory)
        };
        let (outcome, result) = match result {
            Ok(compiled) => {
                let report =
                    Report { kind, waited, time, states: compiled.states(), bytes: compiled.bytes() };
                self.counters.compiled(kind, report.states, report.bytes);
                let compiled = CompiledConstraint::new(compiled, report, job.key.backend, job.slot, self);
                (Outcome::Compiled, Ok(Arc::new(compiled)))
            }
            Err((outcome, error)) => (outcome, Err(error)),
        };
        self.counters.compile(kind, outcome, time);
        Some(result)
    }
}

type Thrown = Box<dyn Any + Send>;

/// Converts the result of a compilation that was not interrupted.
fn judge(
    compiled: core::result::Result<core::result::Result<Arc<dyn Compiled>, crate::Error>, Thrown>,
    limit: usize,
) -> core::result::Result<Arc<dyn Compiled>, (Outcome, Error)> {
    match compiled {
        Err(thrown) => {
            let message = text(&*thrown).into();
            Err((Outcome::Panicked, Error::Panicked { message }))
        }
        Ok(Err(error)) => Err((Outcome::Refused, Error::Refused(Arc::new(error)))),
        Ok(Ok(compiled)) => match compiled.bytes() {
            bytes if bytes > limit => Err((Outcome::TooLarge, Error::TooLarge { bytes, limit })),
            _ => Ok(compiled),
        },
    }
}

/// Returns the message of a panic.
fn text(thrown: &(dyn Any + Send)) -> &str {
    let text = thrown.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| thrown.downcast_ref::<&str>().copied()).unwrap_or("(without a message)")
}
