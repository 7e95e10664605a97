//! Draws from a model's own distribution over valid texts.

use maskwright::TokenId;
use maskwright::exact::{DrawError, MAX_TRIES, Options, Sampler, SetupError};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::errors::{Class, match_error};
use crate::matcher::Matcher;
use crate::numbers::floats;
use crate::slot::Slot;

/// Draws texts from a model's distribution, given that they are valid. The more texts were drawn, the fewer tries a
/// draw takes.
#[pyclass(frozen, module = "maskwright")]
pub(crate) struct ExactSampler {
    slot: Slot<Sampler>,
}

/// A text that was drawn.
#[pyclass(frozen, get_all, module = "maskwright")]
pub(crate) struct Drawn {
    /// Its tokens, including the one that ends it.
    tokens: Vec<u32>,
    /// Whether it was drawn from the model's distribution. If not, all tries failed, and it was drawn under the mask:
    /// it is valid, but its distribution is not exact.
    is_exact: bool,
    /// The number of tries.
    tries: usize,
    /// How often the model was called.
    asked: usize,
    /// The share of the model's mass on texts that are known to be valid.
    valid: f64,
    /// The share on texts that are known to be invalid.
    lost: f64,
    /// The share on all other texts.
    unaccounted: f64,
}

#[pymethods]
impl Drawn {
    fn __repr__(&self) -> String {
        let Self { tokens, is_exact, tries, .. } = self;
        format!("<Drawn {tokens:?} {}exact, tries={tries}>", if *is_exact { "" } else { "not " })
    }
}

#[pymethods]
impl ExactSampler {
    #[new]
    #[pyo3(signature = (matcher, *, tries = 64, max_tokens = 256, kept_bytes = 64 << 20))]
    fn new(
        py: Python<'_>,
        matcher: &Matcher,
        #[pyo3(from_py_with = number_of_tries)] tries: usize,
        max_tokens: usize,
        kept_bytes: usize,
    ) -> PyResult<Self> {
        let options = Options { tries, max_tokens, kept_bytes };
        let start = matcher.slot.lease()?.fork();
        let sampler = Sampler::new(start, &matcher.vocabulary.get().vocabulary, options);
        let sampler = sampler.map_err(|error| match error {
            SetupError::Budget(_) => Class::Budget.err(py, error),
            error => PyValueError::new_err(error.to_string()),
        })?;
        Ok(Self { slot: Slot::new(sampler) })
    }

    /// Draws a text. `next_logits` is called with a list of tokens and returns the logits after them; `chance` returns
    /// numbers that are at least 0 and less than 1, by default from `random.random`.
    #[pyo3(signature = (next_logits, chance = None))]
    fn draw(
        &self,
        py: Python<'_>,
        next_logits: &Bound<'_, PyAny>,
        chance: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Drawn> {
        static RANDOM: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let chance = match chance {
            Some(chance) => chance.clone(),
            None => RANDOM.import(py, "random", "random")?.clone(),
        };
        let mut sampler = self.slot.lease()?;
        let mut failure = None;
        let ask = |tokens: &[TokenId]| {
            let tokens: Vec<u32> = tokens.iter().map(|token| token.0).collect();
            floats(&next_logits.call1((tokens,))?)
        };
        let number = || {
            let number = chance.call0().and_then(|number| number.extract::<f64>());
            number.and_then(checked).unwrap_or_else(|error| {
                failure = Some(error);
                0.0
            })
        };
        let drawn = sampler.draw(ask, number);
        if let Some(error) = failure {
            return Err(error);
        }
        let drawn = drawn.map_err(|error| match error {
            DrawError::Model(error) => error,
            DrawError::Match(error) => match_error(py, &error),
            error => PyValueError::new_err(error.to_string()),
        })?;
        let known = drawn.known;
        Ok(Drawn {
            tokens: drawn.tokens.iter().map(|token| token.0).collect(),
            is_exact: drawn.is_exact,
            tries: drawn.tries,
            asked: drawn.asked,
            valid: known.valid,
            lost: known.lost,
            unaccounted: known.unaccounted,
        })
    }
}

fn checked(number: f64) -> PyResult<f64> {
    if (0.0..1.0).contains(&number) {
        return Ok(number);
    }
    let message = format!("chance gave {number}, but must give numbers that are at least 0 and less than 1");
    Err(PyValueError::new_err(message))
}

/// Returns the number of tries. A number that does not even fit into a machine word is refused like other numbers out
/// of range.
fn number_of_tries(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            let message = format!("there are {value} tries, but there must be 1 to {MAX_TRIES}");
            return PyValueError::new_err(message);
        }
        error
    })
}
