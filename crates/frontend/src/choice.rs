//! A list of texts, one of which must be written.
//!
//! ```
//! use maskwright_frontend::choice;
//!
//! let choices = choice::parse_list(r#"["yes", "no", "perhaps"]"#).unwrap();
//! let grammar = choice::grammar(&choices, &choice::Limits::default()).unwrap();
//! assert_eq!(grammar.to_string(), r#"choice ::= "yes" | "no" | "perhaps""#);
//! ```
//!
//! A choice is taken byte for byte: no character has a special meaning, and it need not be UTF-8. A text that is listed
//! twice counts once, one choice may be a prefix of another, and the empty text is a choice like any other.

use core::fmt;

use maskwright_automata::must_stop;
use maskwright_grammar::{Diagnostic, Grammar, GrammarBuilder, Span};

use crate::stopped::{STOPPED, STOPPED_HELP};

/// The limits on the size of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The number of choices; 1,000,000 by default.
    pub choices: usize,
    /// The length of all choices together, in bytes; 64 MiB by default.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { choices: 1_000_000, bytes: 64 << 20 }
    }
}

/// The reason why a list is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChoiceError {
    /// The list is empty, so no text would be allowed.
    NoChoices,
    /// There are more choices than [`Limits::choices`].
    TooMany {
        /// The number of choices.
        found: usize,
        /// The maximum number of choices.
        limit: usize,
    },
    /// The choices together are longer than [`Limits::bytes`].
    TooLong {
        /// The index of the first choice that exceeds the limit, counted from 0.
        index: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The work was [cancelled](maskwright_automata::CancelToken).
    Stopped,
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChoices => {
                write!(f, "the list of choices is empty, so nothing could be written; give at least one")
            }
            Self::TooMany { found, limit } => {
                write!(
                    f,
                    "{found} choices are more than the limit of {limit}; give fewer, or raise the limit `choices`"
                )
            }
            Self::TooLong { index, limit } => write!(
                f,
                "with the choice at index {index} the list is longer than the limit of {limit} bytes; \
                 give fewer or shorter choices, or raise the limit `bytes`"
            ),
            Self::Stopped => write!(f, "{STOPPED}; {STOPPED_HELP}"),
        }
    }
}

impl core::error::Error for ChoiceError {}

/// Returns the grammar that matches exactly these texts.
pub fn grammar<C: AsRef<[u8]>>(choices: &[C], limits: &Limits) -> Result<Grammar, ChoiceError> {
    check(choices, limits)?;
    let mut builder = GrammarBuilder::new();
    let mut operands = Vec::with_capacity(choices.len());
    for choice in choices {
        if must_stop() {
            return Err(ChoiceError::Stopped);
        }
        operands.push(builder.bytes(choice.as_ref()));
    }
    let body = builder.alt(operands);
    let root = builder.declare("choice");
    builder.define(root, body);
    // There is one rule, it is defined, and it calls nothing.
    Ok(builder.finish(root).expect("a list of literals is a grammar"))
}

fn check<C: AsRef<[u8]>>(choices: &[C], limits: &Limits) -> Result<(), ChoiceError> {
    if choices.is_empty() {
        return Err(ChoiceError::NoChoices);
    }
    if choices.len() > limits.choices {
        return Err(ChoiceError::TooMany { found: choices.len(), limit: limits.choices });
    }
    let mut left = limits.bytes;
    for (index, choice) in choices.iter().enumerate() {
        left = left
            .checked_sub(choice.as_ref().len())
            .ok_or(ChoiceError::TooLong { index, limit: limits.bytes })?;
    }
    Ok(())
}

/// Reads a list as written on a command line or in a file.
///
/// * A text whose first character, after blanks, is `[` is a JSON array of strings.
/// * Any other text has one choice per line, including leading and trailing spaces. Empty lines are skipped, and a
///   carriage return before the end of a line does not count.
///
/// The empty text, a text with a line break, and a list whose first choice begins with `[` can only be written as JSON.
/// An empty list is not an error here; [`grammar`] refuses it.
pub fn parse_list(text: &str) -> Result<Vec<String>, Diagnostic> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).map_err(|error| json_error(text, &error));
    }
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Returns the error of the JSON parser, at its place.
fn json_error(text: &str, error: &serde_json::Error) -> Diagnostic {
    let line_start: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let place = line_start + error.column().saturating_sub(1);
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
    Diagnostic::error(
        Span::at(place),
        format!("the list begins with `[`, but is no JSON array of strings: {message}"),
    )
    .with_help("write for example `[\"yes\", \"no\"]`; without `[` in front, every line is a choice")
}
