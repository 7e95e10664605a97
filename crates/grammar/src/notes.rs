//! Annotations of a rule, in addition to the texts that it matches.

use crate::ExprId;

/// Annotations of a rule. They do not change the language; code that reports places in a text reports them as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The names under which the text of the rule is reported.
    pub captures: Vec<Capture>,
    /// The temperature for sampling tokens inside the rule.
    pub temperature: Option<Temperature>,
}

/// A name for the text of a rule, or for a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The name.
    pub name: Box<str>,
    /// The part of the text that has the name.
    pub part: Captured,
}

/// A part of the text of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captured {
    /// The whole text.
    All,
    /// The whole text except this many bytes at its end.
    Without(usize),
    /// This many bytes at the end.
    Last(usize),
    /// The text before an ending of variable length: the longest prefix that matches `body` and whose rest matches
    /// `ending`.
    Before {
        /// The expression of this part.
        body: ExprId,
        /// The expression of the ending.
        ending: ExprId,
    },
    /// The ending of variable length itself.
    Ending {
        /// The expression of the text before it.
        body: ExprId,
        /// The expression of this part.
        ending: ExprId,
    },
}

/// A temperature: a finite number that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Temperature(u32);

impl Temperature {
    /// Creates a temperature; `None` if the number is negative, infinite or NaN.
    pub fn new(value: f32) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then_some(Self(value.to_bits()))
    }

    /// Returns the number.
    pub fn value(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl Captured {
    /// Returns the expressions that determine where an ending of variable length begins: those of the text before it,
    /// and of the ending.
    pub fn border(self) -> Option<(ExprId, ExprId)> {
        match self {
            Self::All | Self::Without(_) | Self::Last(_) => None,
            Self::Before { body, ending } | Self::Ending { body, ending } => Some((body, ending)),
        }
    }

    /// Returns the same part with the expressions mapped.
    pub(crate) fn with_exprs(self, mut of: impl FnMut(ExprId) -> ExprId) -> Self {
        match self {
            Self::All | Self::Without(_) | Self::Last(_) => self,
            Self::Before { body, ending } => Self::Before { body: of(body), ending: of(ending) },
            Self::Ending { body, ending } => Self::Ending { body: of(body), ending: of(ending) },
        }
    }

    /// Returns the range of this part in a text from `begin` to `end` whose ending begins at `border`.
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
    /// Returns the expressions that captures need.
    pub(crate) fn exprs(&self) -> impl Iterator<Item = ExprId> {
        self.captures.iter().filter_map(|capture| capture.part.border()).flat_map(<[ExprId; 2]>::from)
    }

    /// Returns the same notes with the expressions mapped, for another grammar.
    pub(crate) fn with_exprs(&self, mut of: impl FnMut(ExprId) -> ExprId) -> Self {
        let capture = |capture: &Capture| Capture {
            name: capture.name.clone(),
            part: capture.part.with_exprs(&mut of),
        };
        Self { captures: self.captures.iter().map(capture).collect(), temperature: self.temperature }
    }
}
