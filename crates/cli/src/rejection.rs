//! Describes where a text violates the constraint, and what was expected there.

use maskwright::explain::Expectation;
use maskwright::{Diagnostic, MatchError, Matcher, Span};
use serde_json::Value;

use crate::failure::Failure;
use crate::readable;

/// The result of matching a text.
#[derive(Debug)]
pub(crate) enum Reading {
    /// The text matches; the matcher has accepted it.
    Fits,
    /// The text does not match.
    Rejected(Rejection),
}

/// Where and why a text does not match.
#[derive(Debug)]
pub(crate) struct Rejection {
    /// The number of bytes that match.
    pub(crate) offset: usize,
    line: usize,
    column: usize,
    /// Whether the text ended before it was complete.
    too_short: bool,
    /// The character at this place; empty at the end.
    found: String,
    pub(crate) expectation: Expectation,
    shown: String,
}

/// Matches a text. Afterwards the matcher has accepted as much of it as matches. With `whole`, the text must also be
/// complete.
pub(crate) fn read(matcher: &mut Matcher, name: &str, text: &[u8], whole: bool) -> Result<Reading, Failure> {
    let fitting = match matcher.accept_bytes(text) {
        Ok(()) if !whole || matcher.is_accepting() => return Ok(Reading::Fits),
        Ok(()) => text.len(),
        Err(MatchError::NotAllowed { bytes }) => {
            // Expectations are described at a character boundary.
            let characters = complete(text.get(..bytes).unwrap_or(text));
            matcher.accept_bytes(characters).map_err(|error| Failure::sentence(error.to_string()))?;
            bytes
        }
        Err(error) => return Err(Failure::sentence(format!("{name}: {error}"))),
    };
    Ok(Reading::Rejected(Rejection::new(name, text, fitting, Expectation::of(matcher))))
}

impl Rejection {
    fn new(name: &str, text: &[u8], offset: usize, expectation: Expectation) -> Self {
        let (fitting, rest) = text.split_at_checked(offset).unwrap_or((text, &[]));
        let too_short = rest.is_empty();
        let before = String::from_utf8_lossy(complete(fitting));
        let behind = &text[complete(fitting).len()..];
        let found = first_character(behind);
        // Bytes that are not UTF-8 are shown as replacement characters, so the place is computed again.
        let (place, width) = (before.len(), usize::from(!too_short));
        let source = format!("{before}{}", String::from_utf8_lossy(behind));
        let message = if too_short {
            format!("the text ends too early; expected {}", expectation.phrase())
        } else {
            format!("{found} does not fit here; expected {}", expectation.phrase())
        };
        let remark = Diagnostic::error(Span::new(place, place + width), message);
        let (line, column) = remark.line_column(&source);
        let shown = remark.render(name, &source);
        Self { offset, line, column, too_short, found, expectation, shown }
    }

    /// Returns the line, with a caret under the place.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn json(&self) -> Value {
        let mut value = self.expectation.json();
        value["offset"] = self.offset.into();
        value["line"] = self.line.into();
        value["column"] = self.column.into();
        value["too_short"] = self.too_short.into();
        if !self.too_short {
            value["found"] = self.found.clone().into();
        }
        value
    }
}

/// Removes an incomplete character from the end.
fn complete(bytes: &[u8]) -> &[u8] {
    let end = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    &bytes[..end]
}

/// Returns the first character of some bytes, in quotes.
fn first_character(bytes: &[u8]) -> String {
    let Some(chunk) = bytes.utf8_chunks().next() else { return String::new() };
    match chunk.valid().chars().next() {
        Some(c) => readable::quoted(c.to_string().as_bytes()),
        None => readable::quoted(chunk.invalid()),
    }
}
