//! White space, commas, colons and brackets, in each style.
//!
//! ```text
//! flexible   [ sp item sp , sp item sp ]           sp: any blanks
//! indented   [ ⏎·· item , ⏎·· item ⏎ ]             and [] if there are no items
//! ```
//!
//! White space comes *after* an item, so that a comma or a bracket decides how the array continues. In an indented
//! document the white space depends on the nesting level, so every level has a separate layout and separate rules.

use maskwright_grammar::{CharSet, ExprId};

use super::super::error::Reason;
use super::super::options::Whitespace;
use super::super::path::PathId;
use super::Emitter;
use crate::regex;

/// The white space of [`Whitespace::Tidy`] after an opening bracket or a comma, and before a closing bracket. Elsewhere
/// at most one blank is allowed.
const TIDY: &str = r" ?|\n[ \t]{0,40}";

/// One way to write white space.
#[derive(Clone, Debug)]
pub(super) enum Style {
    /// The same language in all places.
    Flexible(u32),
    Pattern(String),
    Tidy,
    Compact,
    Spaced,
    /// A line for each item, indented by this text per level.
    Indent(String),
}

impl Style {
    /// Returns the styles in which a document may be written.
    pub(super) fn of(whitespace: &Whitespace) -> Vec<Self> {
        let indent = |width: u32| Self::Indent(" ".repeat(width.min(64) as usize));
        match whitespace {
            Whitespace::Flexible { max_run } => vec![Self::Flexible(*max_run)],
            Whitespace::Tidy => vec![Self::Tidy],
            Whitespace::Compact => vec![Self::Compact],
            Whitespace::Pattern(pattern) => vec![Self::Pattern(pattern.clone())],
            Whitespace::Spaced => vec![Self::Spaced],
            Whitespace::Indent(width) => vec![indent(*width)],
            Whitespace::Natural => {
                vec![Self::Compact, Self::Spaced, indent(2), indent(4), Self::Indent("\t".to_owned())]
            }
        }
    }
}

/// The text between the parts of a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The opening bracket.
    pub(super) array_start: ExprId,
    pub(super) object_start: ExprId,
    /// Before the first item or member, if there is one.
    pub(super) enter: ExprId,
    /// After an item or member.
    pub(super) after: ExprId,
    pub(super) comma: ExprId,
    pub(super) colon: ExprId,
    /// The closing bracket after an item, and that of an empty array or object.
    pub(super) array_end: ExprId,
    pub(super) object_end: ExprId,
    pub(super) array_empty_end: ExprId,
    pub(super) object_empty_end: ExprId,
}

/// The layouts of one style, by nesting level.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    style: Option<Style>,
    by_level: Vec<Layout>,
}

impl Layouts {
    pub(super) fn new(style: Style) -> Self {
        Self { style: Some(style), by_level: Vec::with_capacity(1) }
    }

    /// Checks whether white space depends on the nesting level.
    pub(super) fn is_layered(&self) -> bool {
        matches!(self.style, Some(Style::Indent(_)))
    }
}

impl Emitter<'_> {
    /// Returns the layout of the value that is being written.
    pub(super) fn layout(&mut self) -> Layout {
        if let Some(known) = self.layout.by_level.get(self.level as usize) {
            return *known;
        }
        let style = self.layout.style.clone().unwrap_or(Style::Compact);
        while self.layout.by_level.len() <= self.level as usize {
            let layout = self.make_layout(&style, self.layout.by_level.len());
            self.layout.by_level.push(layout);
        }
        self.layout.by_level[self.level as usize]
    }

    fn make_layout(&mut self, style: &Style, level: usize) -> Layout {
        let g = &mut self.algebra.grammar;
        let empty = g.empty();
        match style {
            Style::Flexible(max_run) => {
                let blank = g.class(CharSet::from_ranges([('\t', '\n'), ('\r', '\r'), (' ', ' ')]));
                let space = g.repeat(blank, 0, Some(*max_run));
                self.uniform(space)
            }
            Style::Compact => self.uniform(empty),
            Style::Pattern(pattern) => {
                let space = self.pattern(pattern);
                self.uniform(space)
            }
            Style::Tidy => {
                let space = self.pattern(TIDY);
                let all = self.uniform(space);
                let g = &mut self.algebra.grammar;
                let blank = g.bytes(b" ");
                let blank = g.optional(blank);
                let colon = g.bytes(b":");
                Layout {
                    after: empty,
                    colon: g.seq([blank, colon, blank]),
                    array_end: g.seq([space, all.array_end]),
                    object_end: g.seq([space, all.object_end]),
                    ..all
                }
            }
            Style::Spaced => {
                let compact = self.uniform(empty);
                let (comma, colon) = (self.algebra.grammar.bytes(b", "), self.algebra.grammar.bytes(b": "));
                Layout { comma, colon, ..compact }
            }
            Style::Indent(unit) => {
                let compact = self.uniform(empty);
                let g = &mut self.algebra.grammar;
                let inner = format!("\n{}", unit.repeat(level + 1));
                let outer = format!("\n{}", unit.repeat(level));
                Layout {
                    enter: g.bytes(inner.as_bytes()),
                    comma: g.bytes(format!(",{inner}").as_bytes()),
                    colon: g.bytes(b": "),
                    array_end: g.bytes(format!("{outer}]").as_bytes()),
                    object_end: g.bytes(format!("{outer}}}").as_bytes()),
                    ..compact
                }
            }
        }
    }

    /// Returns white space given by a regular expression.
    fn pattern(&mut self, pattern: &str) -> ExprId {
        let g = &mut self.algebra.grammar;
        regex::lower(pattern, &regex::Options::default(), g).unwrap_or_else(|error| {
            let empty = g.empty();
            let message = format!("the white space pattern cannot be used: {error}");
            self.algebra.context.problem(Reason::Malformed, PathId::ROOT, "", message, "fix the pattern");
            empty
        })
    }

    /// Returns a layout with the same white space everywhere.
    fn uniform(&mut self, space: ExprId) -> Layout {
        let g = &mut self.algebra.grammar;
        let [array_start, object_start, comma] = [b"[", b"{", b","].map(|text| {
            let text = g.bytes(text);
            g.seq([text, space])
        });
        let colon = g.bytes(b":");
        let (array_end, object_end) = (g.bytes(b"]"), g.bytes(b"}"));
        Layout {
            array_start,
            object_start,
            enter: g.empty(),
            after: space,
            comma,
            colon: g.seq([space, colon, space]),
            array_end,
            object_end,
            array_empty_end: array_end,
            object_empty_end: object_end,
        }
    }
}
