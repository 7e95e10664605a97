//! Pieces with scores, as in SentencePiece models and GGUF files.

/// A piece of a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScoredPiece {
    pub(crate) text: String,
    pub(crate) score: f32,
    pub(crate) kind: Kind,
}

/// The type of a piece, numbered as in both file formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

impl Kind {
    pub(crate) fn from_number(number: i64) -> Option<Self> {
        Some(match number {
            1 => Self::Normal,
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => return None,
        })
    }
}
