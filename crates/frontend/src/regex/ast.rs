//! The syntax tree of a pattern, with groups, flags, classes and escapes resolved.

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

/// The kind of a part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Matches the empty text.
    Empty,
    /// One character.
    Char(char),
    /// One character of a set, which may be empty. Equal sets in one pattern are shared.
    Class(Arc<CharSet>),
    /// These parts in sequence.
    Concat(Vec<Ast>),
    /// One of these parts.
    Alt(Vec<Ast>),
    /// The body, at least `min` and at most `max` times (`None`: no upper bound).
    Repeat {
        /// The repeated part.
        body: Box<Ast>,
        /// The minimum number of repetitions.
        min: u32,
        /// The maximum number of repetitions, not below `min`.
        max: Option<u32>,
    },
    /// A condition on the position between two characters.
    Place(Place),
    /// A condition on the text before or after a position.
    Look(Look, Box<Ast>),
}

/// A condition on a position that depends only on the adjacent characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `^`, `\A`: the start of the text.
    TextStart,
    /// `$`, `\z`: the end of the text.
    TextEnd,
    /// `(?m:^)`: the start of a line.
    LineStart,
    /// `(?m:$)`: the end of a line.
    LineEnd,
    /// `\b`, `\B` and similar escapes. `holds` says whether the condition is met, depending on whether the character
    /// before and the character after the position are word characters: `[neither, after, before, both]`.
    Word {
        /// The word characters.
        word: Arc<CharSet>,
        /// The result in each of the four situations.
        holds: [bool; 4],
    },
}

/// The direction of a look-around, and whether it is negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether it looks at the text after the position, instead of the text before it.
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

    /// Returns the kind of the part.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(super) fn into_kind(self) -> Kind {
        self.kind
    }

    /// Returns the place of the part in the pattern.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Checks that the part contains no condition on a position, so that its matches do not depend on the text around
    /// it.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Checks whether the part can match the empty text, at a position that meets all its conditions.
    pub(super) fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Checks whether the part matches only the empty text, where it matches at all.
    pub(super) fn is_zero_width(&self) -> bool {
        match &self.kind {
            Kind::Empty | Kind::Place(_) | Kind::Look(..) => true,
            Kind::Char(_) | Kind::Class(_) => false,
            Kind::Concat(parts) | Kind::Alt(parts) => parts.iter().all(Self::is_zero_width),
            Kind::Repeat { body, max, .. } => *max == Some(0) || body.is_zero_width(),
        }
    }

    /// Returns the pattern that matches the same texts read backwards.
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

    /// Calls `visit` for the part and for all parts in it.
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
