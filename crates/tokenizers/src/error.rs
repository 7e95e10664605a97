//! The errors of loading and using tokenizers.

use std::{error, fmt, io, path::PathBuf};

use maskwright_vocab::VocabularyError;

use crate::Format;

/// The reason why a tokenizer cannot be loaded, or cannot encode a text. Every message is one sentence that also
/// suggests a solution.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file is larger than any tokenizer.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The maximum size in bytes.
        limit: u64,
    },
    /// The content has no known format.
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// The content has this format, but is invalid.
    Malformed {
        /// The format.
        format: Format,
        /// What is wrong, and where.
        reason: String,
    },
    /// The file is valid, but requires something that cannot be done exactly.
    Unsupported {
        /// The format.
        format: Format,
        /// The required feature.
        reason: String,
    },
    /// A file next to the tokenizer contradicts it.
    Settings {
        /// The file, or "the options".
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The tokens do not form a valid vocabulary.
    Vocabulary(VocabularyError),
    /// The tokenizer has no tokens that spell this text.
    NotSpelled {
        /// The number of bytes of the text that its tokens spell.
        at: usize,
    },
}

impl Error {
    pub(crate) fn malformed(format: Format, reason: impl Into<String>) -> Self {
        Self::Malformed { format, reason: reason.into() }
    }

    pub(crate) fn unsupported(format: Format, reason: impl Into<String>) -> Self {
        Self::Unsupported { format, reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Self::TooLarge { path, limit } => {
                write!(f, "{} is no tokenizer: it has more than {limit} bytes", path.display())
            }
            Self::Unknown { path } => write!(
                f,
                "{} is no tokenizer that is known here; it should be a tokenizer.json, a tiktoken rank file, a SentencePiece model or a GGUF file",
                path.display()
            ),
            Self::Malformed { format, reason } => write!(f, "the {format} is broken: {reason}"),
            Self::Unsupported { format, reason } => write!(f, "the {format} is not supported: {reason}"),
            Self::Settings { place, reason } => write!(f, "{place}: {reason}"),
            Self::Vocabulary(source) => write!(f, "the tokenizer has no usable vocabulary: {source}"),
            Self::NotSpelled { at } => {
                write!(f, "the tokenizer cannot spell this text exactly: it goes wrong at byte {at}")
            }
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Vocabulary(source) => Some(source),
            _ => None,
        }
    }
}

impl From<VocabularyError> for Error {
    fn from(source: VocabularyError) -> Self {
        Self::Vocabulary(source)
    }
}
