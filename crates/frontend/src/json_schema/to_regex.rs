//! Writes a schema as one regular expression, if its language is regular.
//!
//! ```
//! use maskwright_frontend::json_schema::{Options, Whitespace, to_regex};
//! use maskwright_frontend::regex::WriteLimits;
//!
//! let schema = r#"{"type": "array", "items": {"enum": ["a", 1]}, "minItems": 1}"#;
//! let options = Options::default().with_whitespace(Whitespace::Compact);
//! let (regex, _) = to_regex(schema, &options, &WriteLimits::default()).unwrap();
//! assert_eq!(regex, r#"\[(?:"a"|1)(?:,(?:"a"|1))*\]"#);
//! ```
//!
//! As a full match, the expression accepts exactly the texts that the schema's grammar accepts with [`Numbers::Any`].
//! Counting the characters of a number would make the expression a hundred times as long. A schema is regular only if
//! the nesting of its documents is bounded. So three kinds of schema are refused, each by JSON pointer: those that
//! refer to themselves, those that allow an arbitrary value, and those whose objects allow other keys, since these keys
//! must not repeat.

use super::super::regex::{WriteError, WriteErrorKind, WriteLimits, write};
use super::{Numbers, Options, Problem, Reason, Report, SchemaError, grammar};

/// Returns the regular expression of a schema, given as text.
pub fn to_regex(
    schema_text: &str,
    options: &Options,
    limits: &WriteLimits,
) -> Result<(String, Report), SchemaError> {
    let (grammar, report) = grammar(schema_text, &options.clone().with_numbers(Numbers::Any))?;
    match write(&grammar, limits) {
        Ok(regex) => Ok((regex, report)),
        Err(error) => Err(explain(&error, &report)),
    }
}

/// Translates an error of the regex writer into a schema error with a JSON pointer.
fn explain(error: &WriteError, report: &Report) -> SchemaError {
    let innermost = error.rules().last().unwrap_or_default();
    let place = report.called.iter().copied().find(|path| report.paths.last(*path) == innermost);
    let pointer = place.map(|path| report.paths.pointer(path)).unwrap_or_default();
    let keyword = String::new();
    if error.kind() == WriteErrorKind::Differ && report.free.is_empty() {
        let help = "close objects by `additionalProperties: false`, or compile the schema itself";
        let (message, help) = (error.kind().to_string(), help.to_owned());
        return SchemaError::of(Problem { reason: Reason::Unsupported, pointer, keyword, message, help });
    }
    if !matches!(error.kind(), WriteErrorKind::Recursive | WriteErrorKind::Differ) {
        let help = "make the schema smaller, use the compact white space, or compile the schema itself";
        let (message, help) = (error.kind().to_string(), help.to_owned());
        return SchemaError::of(Problem { reason: Reason::Limit, pointer, keyword, message, help });
    }
    if place.is_some() || report.free.is_empty() {
        let message = "the schema refers to itself, and no regular expression can follow that".to_owned();
        let help = "write the levels out, or compile the schema itself".to_owned();
        return SchemaError::of(Problem { reason: Reason::Unsupported, pointer, keyword, message, help });
    }
    let mut all = SchemaError::default();
    for path in &report.free {
        let message = "arrays or objects of any kind are allowed here, and no regular expression can follow \
                       their nesting"
            .to_owned();
        let help = "say what the items are, and close objects by `additionalProperties: false`".to_owned();
        let pointer = report.paths.pointer(*path);
        let keyword = String::new();
        all.insert(Problem { reason: Reason::Unsupported, pointer, keyword, message, help });
    }
    all
}
