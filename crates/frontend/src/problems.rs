//! A list of problems as an error: everything that is wrong with a document, so that it can be fixed in one go.

use core::fmt;

/// The maximum number of problems that an error lists; the rest is counted.
const MAX_SHOWN: usize = 20;

/// The reasons why a document was refused: a list of problems, each with its place and a suggested fix.
///
/// ```
/// use maskwright_frontend::json_schema::{Options, grammar};
///
/// let problems = grammar(r#"{"type": "strin"}"#, &Options::default()).unwrap_err();
/// assert_eq!(problems.problems().len(), 1);
/// assert_eq!(problems.more(), 0); // beyond twenty they are counted only
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems<P> {
    problems: Vec<P>,
    more: usize,
}

impl<P> Default for Problems<P> {
    fn default() -> Self {
        Self { problems: Vec::new(), more: 0 }
    }
}

impl<P: PartialEq> Problems<P> {
    /// Returns the problems, in the order in which they were found. At most twenty are kept.
    pub fn problems(&self) -> &[P] {
        &self.problems
    }

    /// Returns the number of problems beyond those that were kept.
    pub fn more(&self) -> usize {
        self.more
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Adds a problem unless the same one is known: a place may be reached in several ways.
    pub(crate) fn insert(&mut self, problem: P) {
        if self.problems.contains(&problem) {
            return;
        }
        if self.problems.len() < MAX_SHOWN {
            self.problems.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Adds the problems of another list.
    pub(crate) fn append(&mut self, other: Self) {
        self.more += other.more;
        other.problems.into_iter().for_each(|problem| self.insert(problem));
    }
}

impl<P: fmt::Display> fmt::Display for Problems<P> {
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

impl<P: fmt::Debug + fmt::Display> core::error::Error for Problems<P> {}

/// Writes a problem at a place. The empty pointer of the whole document is shown as `(root)`.
pub(crate) fn write_at(f: &mut fmt::Formatter<'_>, pointer: &str, message: &str, help: &str) -> fmt::Result {
    let place = if pointer.is_empty() { "(root)" } else { pointer };
    write!(f, "{place}: {message}; {help}")
}
