//! Reads tokens from the numbers that Python programs pass: in a list, an array or a tensor, and possibly invalid.

use core::time::Duration;

use maskwright::TokenId;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

/// A number that is not a token of any vocabulary, in place of numbers that do not fit.
pub(crate) const NO_TOKEN: TokenId = TokenId(u32::MAX);

/// Converts any number to a token.
pub(crate) fn token(number: i64) -> TokenId {
    u32::try_from(number).map_or(NO_TOKEN, TokenId)
}

/// Reads tokens from a list, an array or a tensor.
pub(crate) fn tokens(object: &Bound<'_, PyAny>) -> PyResult<Vec<TokenId>> {
    Ok(numbers(object)?.into_iter().map(token).collect())
}

/// Reads tokens, with `None` where there is no token.
pub(crate) fn optional_tokens(object: &Bound<'_, PyAny>) -> PyResult<Vec<Option<TokenId>>> {
    let numbers: Vec<Option<i64>> = items(object)?;
    Ok(numbers.into_iter().map(|number| number.map(token)).collect())
}

/// Reads integers from a list, an array or a tensor.
pub(crate) fn numbers(object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    items(object)
}

/// Reads logits from a list, an array or a tensor.
pub(crate) fn floats(object: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    items(object)
}

fn items<T: for<'a> FromPyObject<'a, 'a, Error: Into<PyErr>>>(object: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    let list = match object.getattr_opt(intern!(object.py(), "tolist"))? {
        Some(tolist) => tolist.call0()?,
        None => object.clone(),
    };
    let items = list.try_iter().map_err(|_| {
        let found = object.get_type();
        PyTypeError::new_err(format!(
            "tokens and logits must be a list, an array or a tensor of numbers, and this is {found}"
        ))
    })?;
    items.map(|item| item?.extract::<T>().map_err(Into::into)).collect()
}

/// Converts seconds to a duration.
pub(crate) fn seconds(number: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(number)
        .map_err(|_| PyValueError::new_err(format!("{number} is no number of seconds")))
}
