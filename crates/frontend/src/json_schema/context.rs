//! The state that all stages share: the options, the report, the problems found so far, and whether lowering has
//! stopped.

use maskwright_automata::must_stop;

use super::error::{Problem, Reason, SchemaError};
use super::options::{Options, Strictness};
use super::path::PathId;
use super::report::{Coverage, Note, Report};
use crate::stopped::{STOPPED, STOPPED_HELP};

/// The maximum number of clashes kept for the error about an unsatisfiable schema.
const MAX_CLASHES: usize = 20;

/// The options, the report, and the problems found so far.
#[derive(Debug)]
pub(crate) struct Context<'s> {
    pub(crate) options: &'s Options,
    pub(crate) report: Report,
    pub(crate) error: SchemaError,
    /// The place of the schema that is being lowered.
    pub(crate) here: PathId,
    /// Places that no value satisfies, at most [`MAX_CLASHES`]. They become an error only if the grammar allows no
    /// document.
    clashes: Vec<Problem>,
    /// The number of clashes found, including those not kept.
    pub(crate) clash_count: usize,
    is_halted: bool,
}

impl<'s> Context<'s> {
    pub(crate) fn new(options: &'s Options) -> Self {
        let (report, error) = (Report::new(), SchemaError::default());
        Self {
            options,
            report,
            error,
            here: PathId::ROOT,
            clashes: Vec::new(),
            clash_count: 0,
            is_halted: false,
        }
    }

    /// Prepares for lowering the same schemas once more. Keeps the places, the lines of the report and the problems.
    pub(crate) fn again(self) -> Self {
        Self { report: self.report.again(), here: PathId::ROOT, ..self }
    }

    /// Adds a problem at a keyword of the schema at `path`, or at the schema itself if `keyword` is empty.
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

    /// Records that no value is possible at this place.
    pub(crate) fn clash(&mut self, path: PathId, keyword: &'static str, message: &str) {
        self.report.line(path, "", Coverage::Note(Note::NeverWritten));
        self.clash_count += 1;
        if self.clashes.len() < MAX_CLASHES {
            let help = "change one of the keywords that clash";
            let clash = self.spell_out(Reason::Unsatisfiable, path, keyword, message.to_owned(), help);
            self.clashes.push(clash);
        }
    }

    /// Returns the error for a schema that no document satisfies. It lists the clashes, unless the cause is an endless
    /// recursion: then the clashes are in parts that may be left out.
    pub(crate) fn unsatisfiable(mut self, is_endless: bool) -> SchemaError {
        if is_endless {
            return SchemaError::unsatisfiable("", true);
        }
        for clash in core::mem::take(&mut self.clashes) {
            self.error.insert(clash);
        }
        if self.error.is_empty() {
            let message = "its keywords allow no value together".to_owned();
            let help = "change one of the keywords that clash";
            self.problem(Reason::Unsatisfiable, PathId::ROOT, "", message, help);
        }
        self.error
    }

    /// Handles a keyword that cannot be enforced. With [`Strictness::Lenient`] it is listed in the report, and the
    /// result is `true`: continue without it. Otherwise it is a problem, and the result is `false`.
    pub(crate) fn unenforceable(
        &mut self,
        path: PathId,
        keyword: &'static str,
        message: String,
        help: &str,
    ) -> bool {
        if self.options.strictness == Strictness::Lenient {
            self.report.line(path, keyword, Coverage::Unenforced);
            return true;
        }
        self.problem(Reason::Unsupported, path, keyword, message, help);
        false
    }

    /// Checks whether lowering must end because a limit was exceeded or the work was cancelled.
    pub(crate) fn is_halted(&mut self) -> bool {
        if must_stop() {
            self.halt_for(Reason::Stopped, self.here, "", STOPPED.to_owned(), STOPPED_HELP);
        }
        self.is_halted
    }

    /// Stops lowering because one of the [limits](super::Limits) is exceeded.
    pub(crate) fn exceed(
        &mut self,
        limit: &'static str,
        path: PathId,
        keyword: &'static str,
        message: String,
    ) {
        let help = format!("make the schema smaller, or raise the limit `{limit}`");
        self.halt(path, keyword, message, &help);
    }

    /// Stops lowering because of a limit that no option changes.
    pub(crate) fn halt(&mut self, path: PathId, keyword: &'static str, message: String, help: &str) {
        self.halt_for(Reason::Limit, path, keyword, message, help);
    }

    fn halt_for(&mut self, reason: Reason, path: PathId, keyword: &'static str, message: String, help: &str) {
        if !core::mem::replace(&mut self.is_halted, true) {
            self.problem(reason, path, keyword, message, help);
        }
    }

    fn spell_out(
        &self,
        reason: Reason,
        path: PathId,
        keyword: &'static str,
        message: String,
        help: &str,
    ) -> Problem {
        let pointer = self.report.paths.pointer_to(path, keyword);
        Problem { reason, pointer, keyword: keyword.into(), message, help: help.into() }
    }
}
