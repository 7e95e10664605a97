//! When a schema cannot be turned into a grammar.
//!
//! An error is a list of problems, each with the JSON pointer of the place, the keyword, what is wrong and a
//! way out, so that a person can mend all of them at once:
//!
//! ```text
//! /properties/when/format: "date-time" is not enforced yet; remove the format or describe it with an enum
//! ```

use core::fmt;

/// How many problems an error spells out; the rest is counted.
const SHOWN: usize = 20;

/// Why a schema was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaError {
    problems: Vec<Problem>,
    more: usize,
}

/// One thing that is wrong with a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem this is.
    pub reason: Reason,
    /// The JSON pointer of the keyword, or of the schema if the problem is not about one keyword. The empty
    /// text is the whole document.
    pub pointer: String,
    /// The keyword, or the empty text if the problem is not about one keyword.
    pub keyword: String,
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
    /// A keyword has a value that the standard does not allow.
    Malformed,
    /// The keyword is right, but not enforced yet.
    Unsupported,
    /// A reference leads nowhere, or only back to itself.
    Reference,
    /// No document at all satisfies the schema.
    Unsatisfiable,
    /// The schema is larger than a limit.
    Limit,
}

impl SchemaError {
    /// The problems, in the order in which they were met. At most twenty are kept.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many problems were met beyond those that were kept.
    pub fn more(&self) -> usize {
        self.more
    }

    pub(crate) fn of(problem: Problem) -> Self {
        Self { problems: vec![problem], more: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Adds a problem unless the same one is known: a schema may be met on several ways.
    pub(crate) fn push(&mut self, problem: Problem) {
        if self.problems.contains(&problem) {
            return;
        }
        if self.problems.len() < SHOWN {
            self.problems.push(problem);
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for SchemaError {
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

impl core::error::Error for SchemaError {}
