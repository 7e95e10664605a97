//! Messages for a constraint whose processing was [cancelled](maskwright_automata::CancelToken).

use maskwright_grammar::{Cause, Diagnostic, Span};

pub(crate) const STOPPED: &str = "the work was cancelled before it was done";
pub(crate) const STOPPED_HELP: &str = "allow it more time, or make the constraint smaller";

/// Returns the cancellation as a remark about the place that was reached.
pub(crate) fn stopped(place: usize) -> Diagnostic {
    Diagnostic::error(Span::at(place), STOPPED).with_help(STOPPED_HELP).because(Cause::Stopped)
}
