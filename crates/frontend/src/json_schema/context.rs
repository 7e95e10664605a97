//! What all stages share: the options, the report, the errors so far, and whether the work goes on.

use maskwright_automata::must_stop;

use super::error::{Problem, Reason, SchemaError};
use super::options::{Options, Strictness};
use super::path::PathId;
use super::report::{Coverage, Note, Report};
use crate::stopped::{STOPPED, STOPPED_HELP};

/// How many clashes are kept for the error about a schema that nothing satisfies.
const MAX_CLASHES: usize = 20;

/// The options, the report, and the problems met so far.
#[derive(Debug)]
pub(crate) struct Context<'s> {
    pub(crate) options: &'s Options,
    pub(crate) report: Report,
    pub(crate) error: SchemaError,
    /// The schema that is being lowered.
    pub(crate) here: PathId,
    /// Places that no value satisfies. They are an error only if no document is left.
    clashes: Vec<Problem>,
    /// How many there are in all.
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

    /// For doing the same work again. Places and what was said of them stay.
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

    /// Notes that no value is possible at this place.
    pub(crate) fn clash(&mut self, path: PathId, keyword: &'static str, message: &str) {
        self.report.line(path, "", Coverage::Note(Note::NeverWritten));
        self.clash_count += 1;
        if self.clashes.len() < MAX_CLASHES {
            let help = "change one of the keywords that clash";
            let clash = self.spell_out(Reason::Unsatisfiable, path, keyword, message.to_owned(), help);
            self.clashes.push(clash);
        }
    }

    /// The error about a schema that no document satisfies: its clashes, unless it is a recursion without an end. Then the clashes are in parts that
    /// may be left out.
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

    /// Refuses a keyword that cannot be enforced. With [`Strictness::Lenient`] it is only reported, and the answer
    /// is true: go on without it.
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

    /// Whether lowering is over: a limit was exceeded, or the work was cancelled.
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

    /// Stops lowering because of a fixed limit.
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
