//! Errors for structural tags that cannot be turned into a grammar.

use core::fmt;

use crate::problems::{Problems, write_at};

/// The reasons why a structural tag was refused.
pub type TagError = Problems<Problem>;

/// One problem of a structural tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub reason: Reason,
    /// The JSON pointer of the place; empty for the whole document.
    pub pointer: String,
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
    /// A field is missing, unknown, or of the wrong kind.
    Malformed,
    /// Markers overlap in a way that makes the text ambiguous.
    Conflict,
    /// A schema, a pattern or a grammar inside the tag is invalid.
    Content,
    /// The request is valid, but not supported yet.
    Unsupported,
    /// The tag is larger than a limit.
    Limit,
    /// The work was cancelled.
    Stopped,
}

impl TagError {
    pub(crate) fn of(
        reason: Reason,
        pointer: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let mut error = Self::default();
        error.push(reason, pointer, message, help);
        error
    }

    pub(crate) fn push(
        &mut self,
        reason: Reason,
        pointer: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let problem = Problem { reason, pointer: pointer.into(), message: message.into(), help: help.into() };
        self.insert(problem);
    }

    /// Returns the value, if there are no problems.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_at(f, &self.pointer, &self.message, &self.help)
    }
}
