//! Many matchers at once.

use std::sync::{Mutex, PoisonError};

use maskwright::MatchError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::ThreadPool;

use crate::buffer::{Access, Row, View};
use crate::errors::match_error;
use crate::matcher::{Matcher, tokens};
use crate::pool;

/// A matcher and the row that it fills. It is leased by the thread that fills it, so that little is left to do before.
struct Job<'b> {
    matcher: &'b Matcher,
    row: Row<'b>,
    number: usize,
}

/// Why a row was not filled.
enum Failure {
    InUse { row: usize },
    Match(MatchError),
}

impl Failure {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::InUse { row } => PyRuntimeError::new_err(format!(
                "the matcher for row {row} is in use by another call, or was broken by a panic; if it stands in the batch twice, fork it"
            )),
            Self::Match(error) => match_error(py, &error),
        }
    }
}

/// Fills the masks of many matchers, in parallel. Matcher i fills row `rows[i]`, or row i. With `threads` no more than so many work at the same
/// time, the calling one included.
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
    let mut jobs: Vec<Job<'_>> = Vec::with_capacity(matchers.len());
    for (at, matcher) in matchers.iter().enumerate() {
        let number = rows.as_ref().map_or(at, |rows| rows[at]);
        let row = view.row(number)?;
        if core::mem::replace(&mut is_taken[number], true) {
            return Err(PyValueError::new_err(format!("row {number} is given twice")));
        }
        jobs.push(Job { matcher: matcher.get(), row, number });
    }
    let pool = pool::pool()?;
    let most = threads.unwrap_or(usize::MAX).clamp(1, pool.current_num_threads());
    let helpers = (most - 1).min(jobs.len().saturating_sub(1) / CHUNK);
    py.detach(|| fill_by_many(&mut jobs, helpers, &pool)).map_err(|failure| failure.raise(py))
}

/// Rows that a thread takes at a time: some ten microseconds of work.
const CHUNK: usize = 8;

/// Fills rows on this thread and on some of the pool, each taking the next few until none is left. Nobody waits for a thread to wake up: if none comes to help, this one does it all.
fn fill_by_many(jobs: &mut [Job<'_>], helpers: usize, pool: &ThreadPool) -> Result<(), Failure> {
    if helpers == 0 {
        return fill(jobs);
    }
    let left = Mutex::new(jobs.chunks_mut(CHUNK));
    let failed = Mutex::new(None);
    let work = || {
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(jobs) = next else { break };
            if let Err(error) = fill(jobs) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    pool.in_place_scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|_| work());
        }
        work();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn fill(jobs: &mut [Job<'_>]) -> Result<(), Failure> {
    jobs.iter_mut().try_for_each(|job| {
        let mut matcher = job.matcher.slot.lease().map_err(|_| Failure::InUse { row: job.number })?;
        matcher.fill_mask(job.row.elements()).map_err(Failure::Match)
    })
}

/// Gives each matcher its token. Returns for each whether it was taken.
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
    Ok(py.detach(|| {
        leases.iter_mut().zip(&tokens).map(|(matcher, token)| matcher.accept(*token).is_ok()).collect()
    }))
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
