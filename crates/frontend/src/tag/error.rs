//! When a structural tag cannot be turned into a grammar.

use core::fmt;

use crate::problems::{Problems, write_at};

/// Why a structural tag was refused.
pub type TagError = Problems<Problem>;

/// One thing that is wrong with a structural tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem this is.
    pub reason: Reason,
    /// The JSON pointer of the place; the empty text is the whole document.
    pub pointer: String,
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
    /// What to do about it.
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
    /// Texts that steer the reading get in each other's way.
    Conflict,
    /// A schema, a pattern or a grammar inside the tag is wrong.
    Content,
    /// What is asked for is right, but not enforced yet.
    Unsupported,
    /// The tag is larger than a limit.
    Limit,
    /// The work was told to stop.
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

    /// The value, if nothing is wrong.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_at(f, &self.pointer, &self.message, &self.help)
    }
}
