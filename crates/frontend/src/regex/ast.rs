//! A pattern after reading: groups, flags, classes and escapes are resolved.

use std::sync::Arc;

use maskwright_grammar::{CharSet, Span};

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ast {
    kind: Kind,
    span: Span,
    plain: bool,
    nullable: bool,
}

/// What a part of a pattern is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Matches the empty text.
    Empty,
    /// One character.
    Char(char),
    /// One character of a set, which may be empty. Equal sets of one pattern are shared.
    Class(Arc<CharSet>),
    /// One after the other.
    Concat(Vec<Ast>),
    /// One of these.
    Alt(Vec<Ast>),
    /// The body, at least `min` and at most `max` times (`None`: no upper bound).
    Repeat {
        /// What is repeated.
        body: Box<Ast>,
        /// The least number of repetitions.
        min: u32,
        /// The greatest number of repetitions, not below `min`.
        max: Option<u32>,
    },
    /// A property of a place between two characters.
    Place(Place),
    /// A property of the text before or after a place.
    Look(Look, Box<Ast>),
}

/// A property of a place that can be seen from the characters beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `^`, `\A`: no text before it.
    TextStart,
    /// `$`, `\z`: no text after it.
    TextEnd,
    /// `(?m:^)`: at the start of a line.
    LineStart,
    /// `(?m:$)`: at the end of a line.
    LineEnd,
    /// `\b`, `\B` and their kin. Whether the place has the property, for each answer to "is the character
    /// before it a word character?" and "is the one after it?": `[neither, after, before, both]`.
    Word {
        /// The word characters.
        word: Arc<CharSet>,
        /// The four answers.
        holds: [bool; 4],
    },
}

/// Which text a look-around speaks about, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The text after the place, or the text before it.
    pub ahead: bool,
    /// Whether the text must not match.
    pub negated: bool,
}

impl Ast {
    pub(super) fn new(kind: Kind, span: Span) -> Self {
        let plain = match &kind {
            Kind::Empty | Kind::Char(_) | Kind::Class(_) => true,
            Kind::Concat(parts) | Kind::Alt(parts) => parts.iter().all(Self::is_plain),
            Kind::Repeat { body, .. } => body.plain,
            Kind::Place(_) | Kind::Look(..) => false,
        };
        let nullable = match &kind {
            Kind::Empty | Kind::Place(_) | Kind::Look(..) => true,
            Kind::Char(_) | Kind::Class(_) => false,
            Kind::Concat(parts) => parts.iter().all(Self::is_nullable),
            Kind::Alt(parts) => parts.iter().any(Self::is_nullable),
            Kind::Repeat { body, min, .. } => *min == 0 || body.nullable,
        };
        Self { kind, span, plain, nullable }
    }

    /// What the part is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(super) fn into_kind(self) -> Kind {
        self.kind
    }

    /// Where it stands in the pattern.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether no property of a place stands in it, so that what it matches depends on nothing outside.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether it can match the empty text, at a place that has all the properties it asks for.
    pub(super) fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Whether it matches nothing but the empty text, wherever it does match.
    pub(super) fn is_zero_width(&self) -> bool {
        match &self.kind {
            Kind::Empty | Kind::Place(_) | Kind::Look(..) => true,
            Kind::Char(_) | Kind::Class(_) => false,
            Kind::Concat(parts) | Kind::Alt(parts) => parts.iter().all(Self::is_zero_width),
            Kind::Repeat { body, max, .. } => *max == Some(0) || body.is_zero_width(),
        }
    }

    /// The pattern that matches all texts read backwards.
    pub(super) fn reversed(&self) -> Self {
        let kind = match &self.kind {
            Kind::Concat(parts) => Kind::Concat(parts.iter().rev().map(Self::reversed).collect()),
            Kind::Alt(parts) => Kind::Alt(parts.iter().map(Self::reversed).collect()),
            Kind::Repeat { body, min, max } => {
                Kind::Repeat { body: Box::new(body.reversed()), min: *min, max: *max }
            }
            Kind::Place(place) => Kind::Place(place.reversed()),
            Kind::Look(look, body) => {
                Kind::Look(Look { ahead: !look.ahead, ..*look }, Box::new(body.reversed()))
            }
            Kind::Empty | Kind::Char(_) | Kind::Class(_) => self.kind.clone(),
        };
        Self { kind, ..*self }
    }

    /// Calls `visit` for the part and everything in it.
    pub(super) fn for_each(&self, visit: &mut impl FnMut(&Self)) {
        visit(self);
        match &self.kind {
            Kind::Concat(parts) | Kind::Alt(parts) => parts.iter().for_each(|part| part.for_each(visit)),
            Kind::Repeat { body, .. } | Kind::Look(_, body) => body.for_each(visit),
            Kind::Empty | Kind::Char(_) | Kind::Class(_) | Kind::Place(_) => {}
        }
    }
}

impl Place {
    fn reversed(&self) -> Self {
        match self {
            Self::TextStart => Self::TextEnd,
            Self::TextEnd => Self::TextStart,
            Self::LineStart => Self::LineEnd,
            Self::LineEnd => Self::LineStart,
            Self::Word { word, holds: [neither, after, before, both] } => {
                Self::Word { word: word.clone(), holds: [*neither, *before, *after, *both] }
            }
        }
    }
}
