//! What a rule says beside which texts it matches.

use crate::ExprId;

/// Notes on a rule. They change no language; whoever tells places in a text tells them, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The names under which its text is told.
    pub captures: Vec<Capture>,
    /// The temperature at which tokens inside it are meant to be drawn.
    pub temperature: Option<Temperature>,
}

/// A name for the text of a rule, or for a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The name.
    pub name: Box<str>,
    /// Which part it is.
    pub part: Captured,
}

/// Which part of the text of a rule is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captured {
    /// All of it.
    All,
    /// All but so many bytes at its end.
    Without(usize),
    /// So many bytes at its end.
    Last(usize),
    /// What stands before an ending of any length: the longest beginning that matches `body`, of which the rest matches `ending`.
    Before {
        /// What is meant.
        body: ExprId,
        /// What follows it.
        ending: ExprId,
    },
    /// That rest.
    Ending {
        /// What stands before it.
        body: ExprId,
        /// What is meant.
        ending: ExprId,
    },
}

/// A temperature: a number that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Temperature(u32);

impl Temperature {
    /// That number; `None` if it is negative, infinite or none at all.
    pub fn new(value: f32) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then_some(Self(value.to_bits()))
    }

    /// The number.
    pub fn value(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl Captured {
    /// The expressions that tell where the ending begins, if its length does not: what stands before it, and the ending.
    pub fn border(self) -> Option<(ExprId, ExprId)> {
        match self {
            Self::All | Self::Without(_) | Self::Last(_) => None,
            Self::Before { body, ending } | Self::Ending { body, ending } => Some((body, ending)),
        }
    }

    /// The same part, with other expressions for those of its border.
    pub(crate) fn with_exprs(self, mut of: impl FnMut(ExprId) -> ExprId) -> Self {
        match self {
            Self::All | Self::Without(_) | Self::Last(_) => self,
            Self::Before { body, ending } => Self::Before { body: of(body), ending: of(ending) },
            Self::Ending { body, ending } => Self::Ending { body: of(body), ending: of(ending) },
        }
    }

    /// The part of a text from one byte to another, of which the ending begins at `border`.
    pub fn of(self, begin: usize, end: usize, border: usize) -> (usize, usize) {
        match self {
            Self::All => (begin, end),
            Self::Without(bytes) => (begin, end.saturating_sub(bytes).max(begin)),
            Self::Last(bytes) => (end.saturating_sub(bytes).max(begin), end),
            Self::Before { .. } => (begin, border),
            Self::Ending { .. } => (border, end),
        }
    }
}

impl Notes {
    /// The expressions that captures need.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = ExprId> {
        self.captures.iter().filter_map(|capture| capture.part.border()).flat_map(<[ExprId; 2]>::from)
    }

    /// The same notes in a grammar that has other expressions for these.
    pub(crate) fn with_exprs(&self, mut of: impl FnMut(ExprId) -> ExprId) -> Self {
        let capture = |capture: &Capture| Capture {
            name: capture.name.clone(),
            part: capture.part.with_exprs(&mut of),
        };
        Self { captures: self.captures.iter().map(capture).collect(), temperature: self.temperature }
    }
}
