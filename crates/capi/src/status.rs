//! The result of a call: a number for the program, and a text for people.

use core::ffi::{CStr, c_char};
use core::fmt;
use std::any::Any;

use maskwright::{BudgetError, Category, MatchError, service};

/// The result of a call. Numbers never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// An argument is null, out of range, not UTF-8, or contradicts another.
    Argument = 1,
    /// A buffer is too short.
    TooShort = 2,
    /// A file cannot be read.
    File = 3,
    /// A tokenizer or a list of tokens does not form a valid vocabulary.
    Vocabulary = 4,
    /// The constraint is invalid.
    Constraint = 5,
    /// Compiling took too long.
    Timeout = 6,
    /// A limit was exceeded.
    Limit = 7,
    /// Too many constraints wait to be compiled.
    Busy = 8,
    /// The token may not come next.
    NotAllowed = 9,
    /// There is no such token.
    NoToken = 10,
    /// The result is not there yet.
    Pending = 11,
    /// A bug in this library.
    Internal = 12,
    /// The constraint may be valid, but cannot be enforced exactly.
    Unsupported = 13,
    /// The compiler was freed, or the work was cancelled.
    Cancelled = 14,
}

impl Status {
    /// All statuses, in numerical order.
    const ALL: [Self; 15] = [
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
        Self::Unsupported,
        Self::Cancelled,
    ];

    /// Returns its name in the header.
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
            Self::Unsupported => c"MW_UNSUPPORTED",
            Self::Cancelled => c"MW_CANCELLED",
        }
    }
}

/// Returns the name of a status, or a text for an unknown one.
#[unsafe(no_mangle)]
pub extern "C" fn mw_status_name(status: i32) -> *const c_char {
    let known = Status::ALL.into_iter().find(|known| *known as i32 == status);
    known.map_or(c"unknown status", Status::name).as_ptr()
}

/// The reason why a call failed.
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

    /// Adds a subject at the beginning of the message.
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

/// Maps the kind of an error to a status.
impl From<Category> for Status {
    fn from(category: Category) -> Self {
        match category {
            Category::Invalid => Self::Constraint,
            Category::Unsupported => Self::Unsupported,
            Category::Limit | Category::Budget => Self::Limit,
            Category::Timeout => Self::Timeout,
            Category::Cancelled | Category::Closed => Self::Cancelled,
            Category::Busy => Self::Busy,
            Category::NotAllowed => Self::NotAllowed,
            Category::UnknownToken => Self::NoToken,
            Category::BufferTooShort => Self::TooShort,
            Category::Argument => Self::Argument,
            _ => Self::Internal,
        }
    }
}

impl From<MatchError> for Failure {
    fn from(error: MatchError) -> Self {
        Self::new(Category::from(&error).into(), error)
    }
}

impl From<BudgetError> for Failure {
    fn from(error: BudgetError) -> Self {
        Self::new(Category::from(&error).into(), error)
    }
}

impl From<service::Error> for Failure {
    fn from(error: service::Error) -> Self {
        Self::new(error.category().into(), error)
    }
}
