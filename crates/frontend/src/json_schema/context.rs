//! What all parts of the frontend share: the options, and what has been said about the schema so far.

use super::error::{Problem, Reason, SchemaError};
use super::options::Options;
use super::path::PathId;
use super::report::{Coverage, Note, Report};

/// How many clashes are remembered for the error about a schema that nothing satisfies.
const CLASHES: usize = 20;

/// The options, the report, and the problems met so far.
#[derive(Debug)]
pub(crate) struct Context<'s> {
    pub(crate) options: &'s Options,
    pub(crate) report: Report,
    pub(crate) error: SchemaError,
    /// Places where no value is left: an error only if they leave no document at all.
    clashes: Vec<Problem>,
}

impl<'s> Context<'s> {
    pub(crate) fn new(options: &'s Options) -> Self {
        Self { options, report: Report::new(), error: SchemaError::default(), clashes: Vec::new() }
    }

    /// Says what became of a keyword of the schema at `path`.
    pub(crate) fn cover(&mut self, path: PathId, keyword: &'static str, coverage: Coverage) {
        self.report.keyword(path, keyword, coverage);
    }

    /// The same for a keyword that is not known.
    pub(crate) fn cover_unknown(&mut self, path: PathId, keyword: &str) {
        let path = self.report.paths.key(path, keyword);
        self.report.push(path, Coverage::Annotation);
    }

    /// Tells the reader of the report something about a place.
    pub(crate) fn note(&mut self, path: PathId, note: Note) {
        self.report.push(path, Coverage::Note(note));
    }

    /// A keyword's value is not what the standard asks for.
    pub(crate) fn malformed(&mut self, path: PathId, keyword: &'static str, expected: &str) {
        let message = if keyword.is_empty() {
            format!("a schema must be {expected}")
        } else {
            format!("`{keyword}` must be {expected}")
        };
        self.problem(Reason::Malformed, path, keyword, message, "fix the value or remove the keyword");
    }

    /// A limit is passed.
    pub(crate) fn limit(&mut self, path: PathId, keyword: &'static str, message: String) {
        self.problem(Reason::Limit, path, keyword, message, "use a smaller number");
    }

    /// Adds a problem at a keyword of the schema at `path`, or at the schema itself if it is about no keyword.
    pub(crate) fn problem(
        &mut self,
        reason: Reason,
        path: PathId,
        keyword: &'static str,
        message: String,
        help: &str,
    ) {
        let problem = self.spell_out(reason, path, keyword, message, help);
        self.error.insert(problem);
    }

    /// Remembers that no value is left at this place.
    pub(crate) fn clash(&mut self, path: PathId, keyword: &'static str, message: &str) {
        self.note(path, Note::NeverWritten);
        if self.clashes.len() < CLASHES {
            let help = "change one of the keywords that clash";
            let clash = self.spell_out(Reason::Unsatisfiable, path, keyword, message.to_owned(), help);
            self.clashes.push(clash);
        }
    }

    /// No document satisfies the schema: the clashes become the error.
    pub(crate) fn unsatisfiable(mut self) -> SchemaError {
        for clash in core::mem::take(&mut self.clashes) {
            self.error.insert(clash);
        }
        if self.error.is_empty() {
            let message = "every value would have to contain another one without end".to_owned();
            self.problem(
                Reason::Unsatisfiable,
                PathId::ROOT,
                "",
                message,
                "give the recursion a way to stop",
            );
        }
        self.error
    }

    fn spell_out(
        &self,
        reason: Reason,
        path: PathId,
        keyword: &'static str,
        message: String,
        help: &str,
    ) -> Problem {
        let mut pointer = self.report.paths.pointer(path);
        if !keyword.is_empty() {
            pointer.push('/');
            pointer.push_str(keyword);
        }
        Problem { reason, pointer, keyword: keyword.into(), message, help: help.into() }
    }
}
