//! What a rule says beside which texts it matches.

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
    /// The part of a text from one byte to another.
    pub fn of(self, begin: usize, end: usize) -> (usize, usize) {
        match self {
            Self::All => (begin, end),
            Self::Without(bytes) => (begin, end.saturating_sub(bytes).max(begin)),
            Self::Last(bytes) => (end.saturating_sub(bytes).max(begin), end),
        }
    }
}
