//! How a call ends: a number for the program, and a text for a person.

use core::ffi::{CStr, c_char};
use core::fmt;
use std::any::Any;

use maskwright::{MatchError, service};

/// How a call ended. Numbers never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// Well.
    Ok = 0,
    /// An argument is null, out of range, not UTF-8, or contradicts another.
    Argument = 1,
    /// A buffer is too short.
    TooShort = 2,
    /// A file cannot be read.
    File = 3,
    /// A tokenizer or a list of tokens makes no vocabulary.
    Vocabulary = 4,
    /// The constraint is wrong, or cannot be enforced.
    Constraint = 5,
    /// Compiling took too long.
    Timeout = 6,
    /// A limit was passed.
    Limit = 7,
    /// Too many constraints wait to be compiled.
    Busy = 8,
    /// The token cannot come next.
    NotAllowed = 9,
    /// There is no such token.
    NoToken = 10,
    /// It is not there yet.
    Pending = 11,
    /// A bug of this library.
    Internal = 12,
}

impl Status {
    /// All of them, by their numbers.
    const ALL: [Self; 13] = [
        Self::Ok,
        Self::Argument,
        Self::TooShort,
        Self::File,
        Self::Vocabulary,
        Self::Constraint,
        Self::Timeout,
        Self::Limit,
        Self::Busy,
        Self::NotAllowed,
        Self::NoToken,
        Self::Pending,
        Self::Internal,
    ];

    /// Its name in the header.
    fn name(self) -> &'static CStr {
        match self {
            Self::Ok => c"MW_OK",
            Self::Argument => c"MW_ARGUMENT",
            Self::TooShort => c"MW_TOO_SHORT",
            Self::File => c"MW_FILE",
            Self::Vocabulary => c"MW_VOCABULARY",
            Self::Constraint => c"MW_CONSTRAINT",
            Self::Timeout => c"MW_TIMEOUT",
            Self::Limit => c"MW_LIMIT",
            Self::Busy => c"MW_BUSY",
            Self::NotAllowed => c"MW_NOT_ALLOWED",
            Self::NoToken => c"MW_NO_TOKEN",
            Self::Pending => c"MW_PENDING",
            Self::Internal => c"MW_INTERNAL",
        }
    }
}

/// The name of a status, or of none.
#[unsafe(no_mangle)]
pub extern "C" fn mw_status_name(status: i32) -> *const c_char {
    let known = Status::ALL.into_iter().find(|known| *known as i32 == status);
    known.map_or(c"unknown status", Status::name).as_ptr()
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, error: impl fmt::Display) -> Self {
        Self { status, text: error.to_string() }
    }

    pub(crate) fn argument(text: String) -> Self {
        Self { status: Status::Argument, text }
    }

    pub(crate) fn null(name: &'static str) -> Self {
        Self::argument(format!("{name} is null"))
    }

    pub(crate) fn too_short(name: &'static str, len: usize, need: usize) -> Self {
        Self::new(Status::TooShort, format!("{name} has room for {len}, and {need} are needed"))
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// The same, with what it is about in front.
    #[must_use]
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.text.insert_str(0, &format!("{what}: "));
        self
    }

    pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let said = panic.downcast_ref::<&str>().copied();
        let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::new(
            Status::Internal,
            format!("a panic, which is a bug: {}", said.unwrap_or("without a message")),
        )
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<MatchError> for Failure {
    fn from(error: MatchError) -> Self {
        let status = match &error {
            MatchError::NotAllowed { .. }
            | MatchError::NotComplete
            | MatchError::Terminated
            | MatchError::NoText
            | MatchError::OutOfTokens => Status::NotAllowed,
            MatchError::UnknownToken => Status::NoToken,
            MatchError::NothingToUndo { .. } => Status::Argument,
            MatchError::TooAmbiguous | MatchError::TooManySteps { .. } => Status::Limit,
            MatchError::Cancelled => Status::Timeout,
            MatchError::MaskTooShort { .. } => Status::TooShort,
            _ => Status::Internal,
        };
        Self::new(status, error)
    }
}

impl From<service::Error> for Failure {
    fn from(error: service::Error) -> Self {
        let status = match &error {
            service::Error::Refused(_) => Status::Constraint,
            service::Error::TooLong { .. } => Status::Timeout,
            service::Error::TooLarge { .. } | service::Error::TooMuchText { .. } => Status::Limit,
            service::Error::Busy { .. } => Status::Busy,
            _ => Status::Internal,
        };
        Self::new(status, error)
    }
}
