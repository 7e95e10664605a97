//! Collects a limited number of diagnostics.

use maskwright_grammar::{Cause, Diagnostic, Severity, Span};

/// The maximum number of remarks about one source; one more says how many were left out.
pub const MAX_REMARKS: usize = 20;

/// Errors, or warnings, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    kept: Vec<Diagnostic>,
    dropped: usize,
    first_dropped: Span,
}

impl Remarks {
    pub(crate) fn push(&mut self, remark: Diagnostic) {
        if self.kept.contains(&remark) {
            return;
        }
        if self.kept.len() < MAX_REMARKS {
            self.kept.push(remark);
            return;
        }
        if self.dropped == 0 {
            self.first_dropped = remark.span;
        }
        self.dropped += 1;
    }

    /// Checks whether another remark would be dropped, so that it need not be computed.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() >= MAX_REMARKS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Checks whether there is a remark at a place from `start` on and before `end`.
    pub(crate) fn any_within(&self, start: usize, end: usize) -> bool {
        self.kept.iter().any(|remark| (start..end).contains(&remark.span.start))
    }

    /// Returns the remarks, in the order of their places.
    pub(crate) fn into_vec(mut self) -> Vec<Diagnostic> {
        // If the source was not read to its end, other errors may only be due to the missing rest.
        if self.kept.iter().any(|remark| remark.cause == Cause::Stopped) {
            self.kept.retain(|remark| remark.cause == Cause::Stopped);
            self.dropped = 0;
        }
        self.kept.sort_by_key(|remark| remark.span.start);
        if let (true, Some(last)) = (self.dropped > 0, self.kept.last()) {
            let severity = last.severity;
            let word = if severity == Severity::Error { "error" } else { "warning" };
            let s = if self.dropped == 1 { "" } else { "s" };
            let message = format!("{} more {word}{s} not shown, the first of them here", self.dropped);
            let help = Some(format!("the first {MAX_REMARKS} are shown; fix these and look again"));
            let cause = Cause::Source;
            self.kept.push(Diagnostic { severity, span: self.first_dropped, message, help, cause });
        }
        self.kept
    }
}
