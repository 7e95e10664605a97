//! Operations on many matchers at once.

use std::num::NonZero;

use maskwright::{FillRow, MatchError, RowError, TokenId};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::buffer::{Access, Row, View};
use crate::errors::{match_error, rows_error};
use crate::matcher::{Matcher, fill_row};
use crate::numbers::{optional_tokens, tokens};

/// A matcher and the row that it fills. The thread that fills it also leases it, so that little work is left for the
/// calling thread.
struct Job {
    matcher: Py<Matcher>,
    row: Row,
    number: usize,
    /// The token to accept first.
    token: Option<TokenId>,
    /// Whether to skip writing the row if its mask has not changed.
    keep: bool,
    has_changed: bool,
}

/// The reason why a row was not filled.
enum Failure {
    InUse,
    /// The matcher refused its token.
    Refused,
    Match(MatchError),
}

impl FillRow for Job {
    type Error = Failure;

    fn fill_row(&mut self) -> Result<(), Failure> {
        let matcher = self.matcher.get();
        let words = matcher.size().div_ceil(32);
        let mut matcher = matcher.slot.lease().map_err(|_| Failure::InUse)?;
        let taken = self.token.map_or(Ok(()), |token| matcher.accept(token));
        self.has_changed = fill_row(&mut matcher, &mut self.row, words, self.keep).map_err(Failure::Match)?;
        taken.map_err(|error| if error.is_undecided() { Failure::Match(error) } else { Failure::Refused })
    }
}

/// Fills the masks of many matchers, in parallel. Matcher i fills row `rows[i]`, or row i. At most `threads` threads
/// work at the same time, the calling one included. Raises `LimitError` if some matchers exceed a limit: their rows,
/// which are the keys of its `rows`, are empty, and all others are filled.
#[pyfunction]
#[pyo3(signature = (matchers, mask, rows = None, *, threads = None))]
pub(crate) fn fill_masks(
    py: Python<'_>,
    matchers: Vec<Py<Matcher>>,
    mask: &Bound<'_, PyAny>,
    rows: Option<Vec<usize>>,
    threads: Option<usize>,
) -> PyResult<()> {
    let jobs = jobs(matchers, mask, rows)?;
    let filled = py.detach(|| maskwright::fill_masks(jobs, threads.unwrap_or(usize::MAX)));
    let failures = filled.errors.into_iter().map(|(at, error)| (filled.rows[at].number, error)).collect();
    raise(py, failures)
}

/// The result of a step of a batch.
#[pyclass(frozen, get_all, module = "maskwright")]
pub(crate) struct Step {
    /// For each matcher, whether it accepted its token, or had none.
    taken: Vec<bool>,
    /// The rows whose masks may have changed, in the order of the matchers.
    changed: Vec<usize>,
}

/// Runs a step of a batch: each matcher accepts its token (unless that is `None`), and fills its next mask, in
/// parallel, as `fill_masks` does. If a matcher refuses its token, its state and its mask do not change. With `keep`,
/// rows whose masks have not changed are not written: each row must still hold what the last step of its matcher wrote.
/// Raises `LimitError` like `fill_masks`, with the result as its `step`.
#[pyfunction]
#[pyo3(signature = (matchers, tokens, mask, rows = None, *, keep = false, threads = None))]
pub(crate) fn step_batch(
    py: Python<'_>,
    matchers: Vec<Py<Matcher>>,
    tokens: &Bound<'_, PyAny>,
    mask: &Bound<'_, PyAny>,
    rows: Option<Vec<usize>>,
    keep: bool,
    threads: Option<usize>,
) -> PyResult<Py<Step>> {
    let tokens = optional_tokens(tokens)?;
    if tokens.len() != matchers.len() {
        let message = format!("there are {} matchers and {} tokens", matchers.len(), tokens.len());
        return Err(PyValueError::new_err(message));
    }
    let mut jobs = jobs(matchers, mask, rows)?;
    for (job, token) in jobs.iter_mut().zip(tokens) {
        (job.token, job.keep) = (token, keep);
    }
    let stepped = py.detach(|| maskwright::fill_masks(jobs, threads.unwrap_or(usize::MAX)));
    let mut taken = vec![true; stepped.rows.len()];
    let mut failures = Vec::new();
    for (at, error) in stepped.errors {
        match error {
            RowError::Mask(Failure::Refused) => taken[at] = false,
            error => failures.push((stepped.rows[at].number, error)),
        }
    }
    let changed = stepped.rows.iter().filter(|job| job.has_changed).map(|job| job.number).collect();
    let step = Py::new(py, Step { taken, changed })?;
    match raise(py, failures) {
        Ok(()) => Ok(step),
        Err(raised) => {
            raised.value(py).setattr("step", step)?;
            Err(raised)
        }
    }
}

/// Creates a job for each matcher.
fn jobs(matchers: Vec<Py<Matcher>>, mask: &Bound<'_, PyAny>, rows: Option<Vec<usize>>) -> PyResult<Vec<Job>> {
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
        jobs.push(Job { matcher, row, number, token: None, keep: false, has_changed: true });
    }
    Ok(jobs)
}

/// Raises an error for the failed rows. Errors of the caller take precedence.
fn raise(py: Python<'_>, failures: Vec<(usize, RowError<Failure>)>) -> PyResult<()> {
    let mut rows = Vec::new();
    for (row, failure) in failures {
        match failure {
            RowError::Mask(Failure::Match(error)) if error.is_undecided() => rows.push((row, error)),
            RowError::Mask(Failure::Match(error)) => return Err(match_error(py, &error)),
            RowError::Mask(Failure::Refused) => {}
            RowError::Mask(Failure::InUse) => {
                return Err(PyRuntimeError::new_err(format!(
                    "the matcher for row {row} is in use by another call, or was broken by a panic; if it is in the batch twice, fork it"
                )));
            }
            RowError::Panicked(said) => {
                return Err(PyRuntimeError::new_err(format!(
                    "filling row {row} failed with a panic, which is a bug: {said}"
                )));
            }
        }
    }
    rows.sort_by_key(|(row, _)| *row);
    if rows.is_empty() { Ok(()) } else { Err(rows_error(py, &rows)) }
}

/// Makes each matcher accept its token. Returns for each whether it was accepted. Raises `LimitError` if that is
/// unknown for some: these, which are the keys of its `rows`, do not change; all others have accepted or refused their
/// tokens, and its `taken` is the result.
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

/// Sets how many threads fill batches; the default is one for each processor of the machine.
#[pyfunction]
pub(crate) fn set_threads(py: Python<'_>, threads: usize) -> PyResult<()> {
    let count = NonZero::new(threads).filter(|threads| threads.get() <= 1024).ok_or_else(|| {
        PyValueError::new_err(format!("there must be between 1 and 1024 threads, not {threads}"))
    })?;
    let set = py.detach(|| maskwright::set_threads(count));
    set.map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
