//! Many matchers at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use maskwright::MatchError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::ThreadPool;

use crate::buffer::{Access, Row, View};
use crate::errors::{match_error, rows_error};
use crate::matcher::Matcher;
use crate::numbers::tokens;
use crate::pool;

/// A matcher and the row that it fills. It is leased by the thread that fills it, so that little is left to do before.
struct Job {
    matcher: Py<Matcher>,
    row: Row,
    number: usize,
}

/// Why a row was not filled.
enum Failure {
    InUse { row: usize },
    Match { row: usize, error: MatchError },
    Panicked,
}

/// Rows that were not filled.
type Failures = Vec<Failure>;

/// What is wrong with some rows. What is wrong with the caller comes first.
fn raise(py: Python<'_>, failures: Failures) -> PyErr {
    let mut rows = Vec::new();
    for failure in failures {
        match failure {
            Failure::Match { row, error } if error.is_undecided() => rows.push((row, error)),
            failure => return failure.raise(py),
        }
    }
    rows.sort_by_key(|(row, _)| *row);
    rows_error(py, &rows)
}

impl Failure {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::InUse { row } => PyRuntimeError::new_err(format!(
                "the matcher for row {row} is in use by another call, or was broken by a panic; if it stands in the batch twice, fork it"
            )),
            Self::Match { error, .. } => match_error(py, &error),
            Self::Panicked => PyRuntimeError::new_err("filling a mask failed with a panic, which is a bug"),
        }
    }
}

/// Fills the masks of many matchers, in parallel. Matcher i fills row `rows[i]`, or row i. With `threads` no more than so many work at the same
/// time, the calling one included. Raises `LimitError` if some matchers meet a limit: their rows, which are the keys of its `rows`, are empty, and all others are filled.
#[pyfunction]
#[pyo3(signature = (matchers, mask, rows = None, *, threads = None))]
pub(crate) fn fill_masks(
    py: Python<'_>,
    matchers: Vec<Py<Matcher>>,
    mask: &Bound<'_, PyAny>,
    rows: Option<Vec<usize>>,
    threads: Option<usize>,
) -> PyResult<()> {
    let view = View::words(mask, Access::Write)?;
    if let Some(rows) = rows.as_ref().filter(|rows| rows.len() != matchers.len()) {
        let message = format!("there are {} matchers and {} rows", matchers.len(), rows.len());
        return Err(PyValueError::new_err(message));
    }
    let mut is_taken = vec![false; view.count()];
    let mut jobs: Vec<Job> = Vec::with_capacity(matchers.len());
    for (at, matcher) in matchers.into_iter().enumerate() {
        let number = rows.as_ref().map_or(at, |rows| rows[at]);
        let row = view.row(number)?;
        if core::mem::replace(&mut is_taken[number], true) {
            return Err(PyValueError::new_err(format!("row {number} is given twice")));
        }
        jobs.push(Job { matcher, row, number });
    }
    let pool = pool::pool()?;
    let most = threads.unwrap_or(usize::MAX).clamp(1, pool.current_num_threads());
    let helpers = (most - 1).min(jobs.len().saturating_sub(1) / CHUNK);
    let filled = if helpers == 0 {
        py.detach(|| fill(&mut jobs))
    } else {
        let batch = Batch::new(jobs);
        let filled = py.detach(|| batch.fill_with(helpers, &pool));
        // Let go here, where the GIL is: a thread that has not woken up yet still knows the batch.
        drop(core::mem::take(&mut batch.lock().filled));
        filled
    };
    if filled.is_empty() { Ok(()) } else { Err(raise(py, filled)) }
}

/// Rows that a thread takes at a time: some ten microseconds of work.
const CHUNK: usize = 8;

/// Rows that are filled by this thread and by some of the pool, each taking the next few until none is left.
///
/// Nobody waits for a thread to wake up, which on a busy machine takes longer than all the rows: this thread begins at once, and waits in the end only for those that
/// have taken rows. Whoever wakes up later finds nothing to do. That is why the rows are owned and not borrowed.
struct Batch {
    state: Mutex<State>,
    /// Rings when nobody works any more.
    done: Condvar,
}

struct State {
    waiting: Vec<Vec<Job>>,
    filled: Vec<Vec<Job>>,
    /// Threads that fill rows at present.
    working: usize,
    failures: Failures,
}

impl Batch {
    fn new(jobs: Vec<Job>) -> Arc<Self> {
        let mut waiting = Vec::with_capacity(jobs.len().div_ceil(CHUNK));
        let mut jobs = jobs.into_iter();
        loop {
            let chunk: Vec<Job> = jobs.by_ref().take(CHUNK).collect();
            if chunk.is_empty() {
                break;
            }
            waiting.push(chunk);
        }
        let filled = Vec::with_capacity(waiting.len());
        Arc::new(Self {
            state: Mutex::new(State { waiting, filled, working: 0, failures: Vec::new() }),
            done: Condvar::new(),
        })
    }

    fn fill_with(self: &Arc<Self>, helpers: usize, pool: &ThreadPool) -> Failures {
        for _ in 0..helpers {
            let batch = self.clone();
            pool.spawn(move || batch.work());
        }
        self.work();
        let mut state = self.lock();
        while state.working > 0 {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        core::mem::take(&mut state.failures)
    }

    /// Fills rows until none is left.
    fn work(&self) {
        let mut state = self.lock();
        while let Some(mut jobs) = state.waiting.pop() {
            state.working += 1;
            drop(state);
            // A panic in a thread of the pool would end the process.
            let failures = catch_unwind(AssertUnwindSafe(|| fill(&mut jobs)))
                .unwrap_or_else(|_| vec![Failure::Panicked]);
            state = self.lock();
            state.working -= 1;
            state.filled.push(jobs);
            state.failures.extend(failures);
        }
        if state.working == 0 {
            self.done.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fills all rows that can be filled: what is wrong with one concerns no other. Returns what was wrong.
fn fill(jobs: &mut [Job]) -> Failures {
    let fill_row = |job: &mut Job| {
        let mut matcher = job.matcher.get().slot.lease().map_err(|_| Failure::InUse { row: job.number })?;
        matcher.fill_mask(job.row.elements()).map_err(|error| Failure::Match { row: job.number, error })
    };
    jobs.iter_mut().filter_map(|job| fill_row(job).err()).collect()
}

/// Gives each matcher its token. Returns for each whether it was taken. Raises `LimitError` if that is not known for some: these, which are the keys of its `rows`, are as before,
/// all others have taken or refused theirs, and its `taken` is what would have been returned.
#[pyfunction]
pub(crate) fn accept_tokens(
    py: Python<'_>,
    matchers: Vec<Py<Matcher>>,
    tokens: &Bound<'_, PyAny>,
) -> PyResult<Vec<bool>> {
    let tokens = self::tokens(tokens)?;
    if tokens.len() != matchers.len() {
        let message = format!("there are {} matchers and {} tokens", matchers.len(), tokens.len());
        return Err(PyValueError::new_err(message));
    }
    let leases: Result<Vec<_>, _> = matchers.iter().map(|matcher| matcher.get().slot.lease()).collect();
    let mut leases = leases?;
    let results: Vec<Result<(), MatchError>> =
        py.detach(|| leases.iter_mut().zip(&tokens).map(|(matcher, token)| matcher.accept(*token)).collect());
    let taken: Vec<bool> = results.iter().map(Result::is_ok).collect();
    let open = |(row, result): (usize, Result<(), MatchError>)| Some((row, result.err()?));
    let open: Vec<_> = results.into_iter().enumerate().filter_map(open).collect();
    let open: Vec<_> = open.into_iter().filter(|(_, error)| error.is_undecided()).collect();
    if open.is_empty() {
        return Ok(taken);
    }
    let raised = rows_error(py, &open);
    raised.value(py).setattr("taken", taken)?;
    Err(raised)
}

/// How many threads fill batches; as many as the machine has unless told otherwise.
#[pyfunction]
pub(crate) fn set_threads(py: Python<'_>, threads: usize) -> PyResult<()> {
    if !(1..=1024).contains(&threads) {
        return Err(PyValueError::new_err(format!(
            "there must be between 1 and 1024 threads, not {threads}"
        )));
    }
    py.detach(|| pool::resize(threads))
}
