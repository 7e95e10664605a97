//! Where a text leaves the constraint, and what could have stood there.

use maskwright::{Diagnostic, MatchError, Matcher, Span};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::readable;

/// What may come next, in words.
#[derive(Debug)]
pub(crate) struct Expectation {
    /// The next byte, in words: "`0`–`9` or `-`", "the end of the text".
    pub(crate) words: String,
    /// The only way in which the text can go on, if there is one for two bytes or more.
    pub(crate) forced: Option<Vec<u8>>,
    /// The next byte, as inclusive ranges.
    pub(crate) ranges: Vec<(u8, u8)>,
    /// The text may end here.
    pub(crate) end: bool,
    /// The rules that are being matched, the innermost first; a list for each reading of the text.
    pub(crate) rules: Vec<Vec<String>>,
}

/// How much of a continuation without alternatives is shown.
const FORCED: usize = 60;

impl Expectation {
    /// What may come next for a matcher.
    pub(crate) fn of(matcher: &Matcher) -> Self {
        let mut matcher = matcher.fork();
        let (next, end) = (matcher.next_bytes(), matcher.is_accepting());
        let info = matcher.state_info();
        let mut rules: Vec<Vec<String>> = Vec::new();
        for thread in info.threads {
            // What the compiler made a machine of its own has no name.
            let mut stack: Vec<String> = thread.rules.into_iter().filter(|rule| rule != "?").collect();
            stack.dedup();
            if !stack.is_empty() && !rules.contains(&stack) {
                rules.push(stack);
            }
        }
        let mut words = if next.is_empty() { String::new() } else { readable::expected(&next) };
        if end {
            words += if words.is_empty() { "the end of the text" } else { ", or the end of the text" };
        }
        Self { words, forced: forced(&mut matcher), ranges: next.ranges(), end, rules }
    }

    /// One phrase: what could have stood here.
    pub(crate) fn phrase(&self) -> String {
        match &self.forced {
            Some(bytes) => readable::quoted(bytes),
            None => self.words.clone(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "expected": self.phrase(),
            "next_bytes": self.ranges,
            "forced": self.forced.as_ref().map(|bytes| String::from_utf8_lossy(bytes)),
            "end": self.end,
            "rules": self.rules,
        })
    }
}

/// Follows the text while there is one way only.
fn forced(matcher: &mut Matcher) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < FORCED && !matcher.is_accepting() {
        let next = matcher.next_bytes();
        let Some(byte) = next.first().filter(|_| next.len() == 1) else { break };
        if matcher.accept_bytes(&[byte]).is_err() {
            break;
        }
        bytes.push(byte);
    }
    (bytes.len() > 1).then_some(bytes)
}

/// How a text relates to a constraint.
#[derive(Debug)]
pub(crate) enum Reading {
    /// The text fits; the matcher stands behind it.
    Fits,
    /// It does not.
    Rejected(Rejection),
}

/// Where and why a text does not fit.
#[derive(Debug)]
pub(crate) struct Rejection {
    /// How many bytes fit.
    pub(crate) offset: usize,
    line: usize,
    column: usize,
    /// The text ended before it was complete.
    too_short: bool,
    /// What stands at the place; empty at the end.
    found: String,
    pub(crate) expectation: Expectation,
    shown: String,
}

/// Takes a text, and stands behind as much of it as fits. With `whole`, the text must be complete as well.
pub(crate) fn read(matcher: &mut Matcher, name: &str, text: &[u8], whole: bool) -> Result<Reading, Failure> {
    let fitting = match matcher.accept_bytes(text) {
        Ok(()) if !whole || matcher.is_accepting() => return Ok(Reading::Fits),
        Ok(()) => text.len(),
        Err(MatchError::NotAllowed { bytes }) => {
            // What is expected is said about whole characters.
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
        // Bytes that are no text are shown as replacement characters, so the place is counted again.
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

    /// The line, with a caret under the place.
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

/// The bytes without the beginning of a character that was cut in two.
fn complete(bytes: &[u8]) -> &[u8] {
    let end = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    &bytes[..end]
}

/// The character at the beginning of some bytes, in quotes.
fn first_character(bytes: &[u8]) -> String {
    let Some(chunk) = bytes.utf8_chunks().next() else { return String::new() };
    match chunk.valid().chars().next() {
        Some(c) => readable::quoted(c.to_string().as_bytes()),
        None => readable::quoted(chunk.invalid()),
    }
}
