//! The result of a command: a verdict, or a failure for people or programs.

use std::io::{self, Write};
use std::process::ExitCode;

use maskwright::Diagnostic;
use serde_json::{Value, json};

/// The verdict of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The constraint is valid, and the text or token matches.
    Yes,
    /// The text or the token does not match.
    No,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Yes => Self::SUCCESS,
            Verdict::No => Self::from(1),
        }
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A single sentence.
    Sentence(String),
    /// The constraint is invalid: the diagnostics as text, and as data.
    Constraint { shown: String, data: Value },
    /// The output could not be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn sentence(text: impl Into<String>) -> Self {
        Self::Sentence(text.into())
    }

    /// Reports it, and returns the exit code. A closed pipe means that the reader needs no more output.
    pub(crate) fn report(self, as_json: bool, out: &mut dyn Write) -> ExitCode {
        if let Self::Output(error) = &self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            return ExitCode::SUCCESS;
        }
        let (shown, data) = match self {
            Self::Sentence(text) => (format!("error: {text}\n"), json!({"message": text})),
            Self::Constraint { shown, data } => (shown, data),
            Self::Output(error) => (format!("error: cannot write the answer: {error}\n"), Value::Null),
        };
        // If this fails as well, the error cannot be reported.
        let _ = if as_json && !data.is_null() {
            writeln!(out, "{:#}", json!({"ok": false, "error": data})).and_then(|()| out.flush())
        } else {
            io::stderr().lock().write_all(shown.as_bytes())
        };
        ExitCode::from(2)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<maskwright_tokenizers::Error> for Failure {
    fn from(error: maskwright_tokenizers::Error) -> Self {
        Self::Sentence(error.to_string())
    }
}

/// Returns a diagnostic about a source text as data.
pub(crate) fn diagnostic(remark: &Diagnostic, text: &str) -> Value {
    let (line, column) = remark.line_column(text);
    json!({
        "message": remark.message,
        "help": remark.help,
        "line": line,
        "column": column,
        "start": remark.span.start,
        "end": remark.span.end,
    })
}
