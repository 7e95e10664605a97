//! The messages of frontends about a source text: a severity, a place, a message and help.

use core::fmt;

/// A range of bytes in a source text.
///
/// ```
/// use maskwright_grammar::Span;
///
/// let span = Span::new(2, 5);
/// assert_eq!(&"a {5,2}"[span.start..span.end], "{5,");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Creates a span of the bytes from `start` up to, and without, `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Creates an empty span between two bytes.
    pub fn at(offset: usize) -> Self {
        Self { start: offset, end: offset }
    }
}

/// The severity of a diagnostic.
///
/// ```
/// use maskwright_grammar::{Diagnostic, Severity, Span};
///
/// let diagnostic = Diagnostic::warning(Span::at(3), "nothing uses this rule");
/// assert_eq!(diagnostic.severity, Severity::Warning); // the constraint is accepted all the same
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The constraint is refused.
    Error,
    /// The constraint is accepted, but the author may have meant something else.
    Warning,
}

/// The reason for a diagnostic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The source text is wrong or dubious.
    #[default]
    Source,
    /// Something exceeds a limit.
    Limit,
    /// The work was canceled.
    Stopped,
}

/// A message about a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The place in the source text.
    pub span: Span,
    /// The problem, as one sentence without a full stop.
    pub message: String,
    /// How to fix it, if that is known.
    pub help: Option<String>,
    /// The reason.
    pub cause: Cause,
}

impl Diagnostic {
    /// Creates an error at a place.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, span, message: message.into(), help: None, cause: Cause::Source }
    }

    /// Creates a warning at a place.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// Sets a cause other than the source text.
    #[must_use]
    pub fn because(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// Adds help.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Renders the message with its line and a caret under the place, as compilers print it.
    ///
    /// ```
    /// use maskwright_grammar::{Diagnostic, Span};
    /// let source = "root ::= a\nroot ::= b";
    /// let remark = Diagnostic::error(Span::new(11, 15), "rule `root` is defined twice");
    /// assert_eq!(
    ///     remark.render("g.ebnf", source),
    ///     "g.ebnf:2:1: error: rule `root` is defined twice\n  |\n2 | root ::= b\n  | ^^^^\n"
    /// );
    /// ```
    pub fn render(&self, file: &str, source: &str) -> String {
        let place = Place::find(source, self.span);
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let number = place.line.to_string();
        let gutter = " ".repeat(number.len());
        let carets = "^".repeat(place.width);
        let indent = " ".repeat(place.shown_column);
        let mut out = format!(
            "{file}:{}:{}: {word}: {}\n{gutter} |\n{number} | {}\n{gutter} | {indent}{carets}\n",
            place.line, place.column, self.message, place.shown
        );
        if let Some(help) = &self.help {
            out.extend([&gutter, " = help: ", help, "\n"]);
        }
        out
    }

    /// Returns line and column of the place, both from 1; the column counts characters.
    pub fn line_column(&self, source: &str) -> (usize, usize) {
        let place = Place::find(source, self.span);
        (place.line, place.column)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.span.start, self.message)
    }
}

impl core::error::Error for Diagnostic {}

/// A span in terms of lines, with the part of the line that is shown.
struct Place {
    line: usize,
    column: usize,
    shown: String,
    shown_column: usize,
    width: usize,
}

/// The number of characters of a long line that are shown on each side of the place.
const CONTEXT_CHARS: usize = 60;

impl Place {
    fn find(source: &str, span: Span) -> Self {
        let start = floor_boundary(source, span.start);
        let end = floor_boundary(source, span.end.max(start));
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let before: Vec<char> = source[line_start..start].chars().collect();
        let after: Vec<char> = source[start..line_end].chars().collect();
        let width = source[start..end.clamp(start, line_end)].chars().count().clamp(1, CONTEXT_CHARS);
        let skip = before.len().saturating_sub(CONTEXT_CHARS);
        let mut shown: String = if skip > 0 { "…".into() } else { String::new() };
        // Control characters would shift the caret.
        let plain = |c: &char| if c.is_control() { ' ' } else { *c };
        shown.extend(before[skip..].iter().map(plain));
        let shown_column = shown.chars().count();
        shown.extend(after.iter().take(CONTEXT_CHARS).map(plain));
        if after.len() > CONTEXT_CHARS {
            shown.push('…');
        }
        let line = source[..start].matches('\n').count() + 1;
        Self { line, column: before.len() + 1, shown, shown_column, width }
    }
}

fn floor_boundary(source: &str, offset: usize) -> usize {
    let mut at = offset.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_clamped_to_the_text() {
        let remark = Diagnostic::error(Span::new(99, 120), "unexpected end");
        assert_eq!(remark.render("x", "ab"), "x:1:3: error: unexpected end\n  |\n1 | ab\n  |   ^\n");
        assert_eq!(remark.render("x", ""), "x:1:1: error: unexpected end\n  |\n1 | \n  | ^\n");
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let source = format!("{}ö{}", "a".repeat(500), "b".repeat(500));
        let text = Diagnostic::error(Span::new(500, 502), "no").render("x", &source);
        let line = text.lines().nth(2).unwrap_or_default();
        assert!(line.chars().count() < 140, "{line}");
        assert!(text.starts_with("x:1:501: error: no"));
    }
}
