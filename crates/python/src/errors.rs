//! Converts the engine's errors to exceptions. The classes are defined in Python (`maskwright/errors.py`), where they
//! can have two bases: `ConstraintError` is a `maskwright.Error` and a `ValueError`.

use maskwright::{Category, MatchError, service};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::slot::InUse;

/// An exception class of the package.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    Constraint,
    Unsupported,
    Timeout,
    Service,
    Token,
    Vocabulary,
    Budget,
    File,
    Limit,
}

impl Class {
    const COUNT: usize = 9;

    fn name(self) -> &'static str {
        match self {
            Self::Constraint => "ConstraintError",
            Self::Unsupported => "UnsupportedError",
            Self::Timeout => "CompileTimeout",
            Self::Service => "ServiceError",
            Self::Token => "TokenError",
            Self::Vocabulary => "VocabularyError",
            Self::Budget => "BudgetError",
            Self::File => "FileError",
            Self::Limit => "LimitError",
        }
    }

    /// Creates an exception of this class.
    pub(crate) fn err(self, py: Python<'_>, message: impl ToString) -> PyErr {
        static CLASSES: [PyOnceLock<Py<PyType>>; Class::COUNT] = [const { PyOnceLock::new() }; Class::COUNT];
        let class = CLASSES[self as usize].import(py, "maskwright.errors", self.name());
        class.map_or_else(|error| error, |class| PyErr::from_type(class.clone(), (message.to_string(),)))
    }
}

/// Maps the kind of an error to an exception class. `None` is Python's own `ValueError`.
fn class(category: Category) -> Option<Class> {
    Some(match category {
        Category::Invalid => Class::Constraint,
        Category::Unsupported => Class::Unsupported,
        Category::Limit => Class::Limit,
        Category::Timeout => Class::Timeout,
        Category::NotAllowed | Category::UnknownToken => Class::Token,
        Category::Budget => Class::Budget,
        Category::BufferTooShort | Category::Argument => return None,
        _ => Class::Service,
    })
}

/// Returns the exception for an error of this kind.
pub(crate) fn raise(py: Python<'_>, category: Category, message: impl ToString) -> PyErr {
    match class(category) {
        Some(class) => class.err(py, message),
        None => pyo3::exceptions::PyValueError::new_err(message.to_string()),
    }
}

/// Returns the exception for a failed compilation.
pub(crate) fn compile_error(py: Python<'_>, error: &service::Error) -> PyErr {
    raise(py, error.category(), error)
}

/// Returns the exception for a refused constraint.
pub(crate) fn refused(py: Python<'_>, error: &maskwright::Error) -> PyErr {
    raise(py, error.category(), error)
}

/// Returns the exception for a failed mask or rollback.
pub(crate) fn match_error(py: Python<'_>, error: &MatchError) -> PyErr {
    raise(py, error.into(), error)
}

/// Returns whether a token was accepted. Raises if that is unknown.
pub(crate) fn taken(py: Python<'_>, result: Result<(), MatchError>) -> PyResult<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.is_undecided() => Err(match_error(py, &error)),
        Err(_) => Ok(false),
    }
}

/// Returns the exception for rows of a batch that exceeded a limit. Its `rows` maps their indices to the messages.
pub(crate) fn rows_error(py: Python<'_>, rows: &[(usize, MatchError)]) -> PyErr {
    let Some((row, error)) = rows.first() else {
        return pyo3::exceptions::PyRuntimeError::new_err("a batch failed without a reason, which is a bug");
    };
    let raised = raise(py, error.into(), format!("row {row}: {error}"));
    let all: std::collections::BTreeMap<usize, String> =
        rows.iter().map(|(row, error)| (*row, error.to_string())).collect();
    match raised.value(py).setattr("rows", all) {
        Ok(()) => raised,
        Err(error) => error,
    }
}

/// Returns the exception for a token that was not accepted.
pub(crate) fn token_error(py: Python<'_>, token: u32, error: &MatchError) -> PyErr {
    let raised = raise(py, error.into(), format!("token {token}: {error}"));
    // If the attribute cannot be set, the message still has the number.
    let _ = raised.value(py).setattr("token", token);
    raised
}

impl From<InUse> for PyErr {
    fn from(_: InUse) -> Self {
        pyo3::exceptions::PyRuntimeError::new_err(
            "the matcher is in use by another call, or was broken by a panic; a matcher belongs to one request, so fork it for a second one",
        )
    }
}
