//! The engine's errors as exceptions. The classes are defined in Python (`maskwright/errors.py`), where they can have two bases: `ConstraintError` is a
//! `maskwright.Error` and a `ValueError`.

use maskwright::{MatchError, service};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::slot::InUse;

/// An exception class of the package.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    Constraint,
    Timeout,
    Service,
    Token,
    Vocabulary,
    Budget,
    File,
}

impl Class {
    const COUNT: usize = 7;

    fn name(self) -> &'static str {
        match self {
            Self::Constraint => "ConstraintError",
            Self::Timeout => "CompileTimeout",
            Self::Service => "ServiceError",
            Self::Token => "TokenError",
            Self::Vocabulary => "VocabularyError",
            Self::Budget => "BudgetError",
            Self::File => "FileError",
        }
    }

    /// An exception of this class.
    pub(crate) fn err(self, py: Python<'_>, message: impl ToString) -> PyErr {
        static CLASSES: [PyOnceLock<Py<PyType>>; Class::COUNT] = [const { PyOnceLock::new() }; Class::COUNT];
        let class = CLASSES[self as usize].import(py, "maskwright.errors", self.name());
        class.map_or_else(|error| error, |class| PyErr::from_type(class.clone(), (message.to_string(),)))
    }
}

/// Why nothing was compiled.
pub(crate) fn compile_error(py: Python<'_>, error: &service::Error) -> PyErr {
    let class = match error {
        service::Error::Refused(_) | service::Error::TooLarge { .. } | service::Error::TooMuchText { .. } => {
            Class::Constraint
        }
        service::Error::TooLong { .. } => Class::Timeout,
        _ => Class::Service,
    };
    class.err(py, error)
}

/// Why a mask was not filled, or something not undone.
pub(crate) fn match_error(py: Python<'_>, error: &MatchError) -> PyErr {
    match error {
        MatchError::MaskTooShort { .. } | MatchError::NothingToUndo { .. } => {
            pyo3::exceptions::PyValueError::new_err(error.to_string())
        }
        _ => Class::Token.err(py, error),
    }
}

/// Why a token was not taken.
pub(crate) fn token_error(py: Python<'_>, token: u32, error: &MatchError) -> PyErr {
    let raised = Class::Token.err(py, format!("token {token}: {error}"));
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
