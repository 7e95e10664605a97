//! The errors of loading a model.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The reason why a model cannot be loaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// A file cannot be read.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is invalid.
    Malformed(String),
    /// The file is valid, but the model is not supported.
    Unsupported(String),
    /// Its tokenizer cannot be used.
    Tokenizer(maskwright_tokenizers::Error),
    /// The threads could not be started.
    Threads(String),
}

impl LoadError {
    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self::Malformed(reason.into())
    }

    pub(crate) fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported(reason.into())
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Io { path, source }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Self::Malformed(reason) => write!(f, "the model is broken: {reason}"),
            Self::Unsupported(reason) => write!(f, "the model cannot be run here: {reason}"),
            Self::Tokenizer(error) => write!(f, "the model's tokenizer cannot be used: {error}"),
            Self::Threads(reason) => write!(f, "cannot start threads for the model: {reason}; ask for fewer"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Tokenizer(error) => Some(error),
            _ => None,
        }
    }
}

impl From<maskwright_tokenizers::Error> for LoadError {
    fn from(error: maskwright_tokenizers::Error) -> Self {
        Self::Tokenizer(error)
    }
}
