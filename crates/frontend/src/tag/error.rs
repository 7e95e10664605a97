//! When a structural tag cannot be turned into a grammar.

use core::fmt;

/// How many problems an error spells out; the rest is counted.
const SHOWN: usize = 20;

/// Why a structural tag was refused: a list of problems, each with its place and a way out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagError {
    problems: Vec<Problem>,
    more: usize,
}

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
}

impl TagError {
    /// The problems, in the order in which they were met. At most twenty are kept.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many problems were met beyond those that were kept.
    pub fn more(&self) -> usize {
        self.more
    }

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
        if self.problems.contains(&problem) {
            return;
        }
        if self.problems.len() < SHOWN {
            self.problems.push(problem);
        } else {
            self.more += 1;
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.more += other.more;
        for Problem { reason, pointer, message, help } in other.problems {
            self.push(reason, &pointer, message, help);
        }
    }

    /// The value, if nothing is wrong.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.problems.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for TagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        if self.more > 0 {
            write!(f, "\n… and {} more", self.more)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The whole document has the empty pointer, which would look like a missing word.
        let place = if self.pointer.is_empty() { "(root)" } else { &self.pointer };
        write!(f, "{place}: {}; {}", self.message, self.help)
    }
}

impl core::error::Error for TagError {}
