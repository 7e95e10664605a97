//! Errors for schemas that cannot be turned into a grammar.
//!
//! An error is a list of problems, so that all of them can be fixed at once. Each problem names the JSON pointer of the
//! place, the keyword, what is wrong and what to do:
//!
//! ```text
//! /properties/a/multipleOf: `multipleOf` must be a number above 0; fix the value or remove the keyword
//! ```

use core::fmt;

use crate::problems::{Problems, write_at};

/// The reasons why a schema was refused.
pub type SchemaError = Problems<Problem>;

/// The message and help for an endless recursion.
pub(crate) const ENDLESS: (&str, &str) =
    ("the recursion never ends: every value must contain another one", "make one of the references optional");

/// One problem of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub reason: Reason,
    /// The JSON pointer of the keyword, or of the schema if the problem does not concern a single keyword. Empty for
    /// the whole document.
    pub pointer: String,
    /// The keyword, or empty if the problem does not concern a single keyword.
    pub keyword: String,
    /// The description of the problem, as a sentence without a full stop.
    pub message: String,
    /// The suggested fix.
    pub help: String,
}

/// The kind of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The text is not JSON.
    NotJson,
    /// A keyword has a value that the standard does not allow.
    Malformed,
    /// A keyword is valid but cannot be enforced.
    Unsupported,
    /// A reference leads nowhere, or only back to itself.
    Reference,
    /// No document satisfies the schema.
    Unsatisfiable,
    /// The schema is larger than a limit.
    Limit,
    /// The work was cancelled.
    Stopped,
}

impl SchemaError {
    /// Returns the error for a schema whose grammar turned out empty when it was compiled: either every value must
    /// contain another one (`is_endless`), or more values must differ than exist, or a required key has no possible
    /// value.
    pub fn unsatisfiable(pointer: &str, is_endless: bool) -> Self {
        let (message, help) = if is_endless {
            ENDLESS
        } else {
            let message = "this allows no value: more values must differ than there are, or a required key has no possible value";
            (message, "require fewer, or allow more different values")
        };
        Self::of(Problem {
            reason: Reason::Unsatisfiable,
            pointer: pointer.to_owned(),
            keyword: String::new(),
            message: message.to_owned(),
            help: help.to_owned(),
        })
    }

    pub(crate) fn of(problem: Problem) -> Self {
        let mut error = Self::default();
        error.insert(problem);
        error
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_at(f, &self.pointer, &self.message, &self.help)
    }
}
