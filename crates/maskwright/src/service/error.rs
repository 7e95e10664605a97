//! When the service has no compiled constraint to give.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// Why a request got nothing. Cheap to clone: it is kept for those who ask again.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Error, Service, Settings};
/// # use maskwright::{Category, Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let client = Service::new(Settings::default())?.client(Arc::new(compiler));
/// let error = client.compile(&Constraint::regex("(")).unwrap_err();
/// assert!(matches!(error, Error::Refused(_)));
/// assert_eq!(error.category(), Category::Invalid);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The constraint is wrong, or the backend cannot do it.
    Refused(Arc<crate::Error>),
    /// Compiling took longer than [`Settings::timeout`](super::Settings::timeout).
    TooLong {
        /// How long it may take.
        limit: Duration,
    },
    /// The compiled constraint holds more than [`Settings::memory`](super::Settings::memory).
    TooLarge {
        /// How many bytes it holds.
        bytes: usize,
        /// How many it may.
        limit: usize,
    },
    /// The text of the constraint is too long to be compiled within [`Settings::memory`](super::Settings::memory).
    TooMuchText {
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// The backend panicked: a bug of it, and of no concern to other requests.
    Panicked {
        /// What it said.
        message: Arc<str>,
    },
    /// More requests wait than [`Settings::queue`](super::Settings::queue) allows, or their texts are larger than
    /// [`Settings::budget`](super::Settings::budget).
    Busy {
        /// How many may wait.
        limit: usize,
    },
    /// The service was closed before the constraint was compiled.
    Closed,
}

impl Error {
    /// The constraint's own fault, if it is that.
    pub fn refusal(&self) -> Option<&crate::Error> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }

    /// What it takes to remember it.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Refused(error) => size_of::<crate::Error>() + error.to_string().len(),
            Self::Panicked { message } => message.len(),
            _ => 0,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "{error}"),
            Self::TooLong { limit } => write!(
                f,
                "compiling takes longer than the limit of {limit:?}; make the constraint simpler or raise the timeout"
            ),
            Self::TooLarge { bytes, limit } => write!(
                f,
                "the compiled constraint holds {bytes} bytes, more than the limit of {limit}; make it smaller or raise the limit"
            ),
            Self::TooMuchText { bytes, limit } => write!(
                f,
                "the constraint's text has {bytes} bytes, more than the limit of {limit}; make it smaller or raise the memory limit"
            ),
            Self::Panicked { message } => {
                write!(f, "compiling failed with a panic, which is a bug: {message}")
            }
            Self::Busy { limit } => {
                write!(f, "{limit} constraints, or very large ones, wait to be compiled; try again later")
            }
            Self::Closed => f.write_str("the service was closed"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(error) => Some(&**error),
            _ => None,
        }
    }
}
