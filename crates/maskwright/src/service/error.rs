//! The errors of requests to the service.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// The reason why a request failed. It is cheap to clone, because the cache keeps it for repeated requests.
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
    /// The constraint is invalid, or the backend does not support it.
    Refused(Arc<crate::Error>),
    /// Compiling took longer than [`Settings::timeout`](super::Settings::timeout).
    TooLong {
        /// The time limit.
        limit: Duration,
    },
    /// The compiled constraint holds more than [`Settings::memory`](super::Settings::memory).
    TooLarge {
        /// The number of bytes that it holds.
        bytes: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The text of the constraint is too long to be compiled within [`Settings::memory`](super::Settings::memory).
    TooMuchText {
        /// The length of the text in bytes.
        bytes: usize,
        /// The maximum length in bytes.
        limit: usize,
    },
    /// The backend panicked. This is a bug in the backend, and does not affect other requests.
    Panicked {
        /// The panic message.
        message: Arc<str>,
    },
    /// More requests are waiting than [`Settings::queue`](super::Settings::queue) allows, or their texts are larger
    /// than [`Settings::budget`](super::Settings::budget).
    Busy {
        /// The maximum number of waiting requests.
        limit: usize,
    },
    /// The service was closed before the constraint was compiled.
    Closed,
}

impl Error {
    /// Returns the compiler's error if the constraint itself was refused.
    pub fn refusal(&self) -> Option<&crate::Error> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the approximate number of bytes that it holds.
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
