//! How a call ends, and the one place where panics stop.

use core::ffi::{CStr, c_char};
use core::fmt;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use maskwright::{MatchError, service};

use crate::pointer::{Mut, Out, Owned};

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

    /// The same, with what it is about in front.
    #[must_use]
    pub(crate) fn about(mut self, what: &str) -> Self {
        self.text.insert_str(0, &format!("{what}: "));
        self
    }

    fn panicked(panic: &(dyn Any + Send)) -> Self {
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
            MatchError::Stopped => Status::Timeout,
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

/// Runs the body of a function. A failure is told in the caller's buffer, and no panic passes.
pub(crate) fn guard(
    message: Mut<'_, c_char>,
    size: usize,
    body: impl FnOnce() -> Result<(), Failure>,
) -> Status {
    match catch(body) {
        Ok(()) => Status::Ok,
        Err(failure) => {
            // A buffer that is missing or of an impossible size changes nothing about the failure.
            if let Ok(Some(buffer)) = message.optional_list("message", size) {
                write_text(buffer, &failure.text);
            }
            failure.status
        }
    }
}

/// Lets go of a handle. There is nobody to tell that it failed.
pub(crate) fn discard<T>(handle: Owned<T>) {
    let _ = catch(|| {
        drop(handle.take());
        Ok(())
    });
}

/// Runs something. A panic is a failure.
pub(crate) fn catch<R>(body: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Failure::panicked(&*panic)))
}

/// Writes as much of a text as there is room for, in whole characters, and a zero.
pub(crate) fn write_text(buffer: &mut [c_char], text: &str) {
    let Some(room) = buffer.len().checked_sub(1) else { return };
    let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    for (target, byte) in buffer.iter_mut().zip(text.as_bytes()[..end].iter().chain([&0])) {
        *target = byte.cast_signed() as c_char;
    }
}

/// Writes a list where the caller wants it and tells its length. If it does not fit, only the length is told.
pub(crate) fn write_list<T: Copy>(
    list: &[T],
    buffer: Mut<'_, T>,
    room: usize,
    count: Out<'_, usize>,
    name: &'static str,
) -> Result<(), Failure> {
    count.get("the count")?.write(list.len());
    let target = buffer.list(name, room)?.get_mut(..list.len());
    target.ok_or_else(|| Failure::too_short(name, room, list.len()))?.copy_from_slice(list);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        for (room, expected) in [(1, ""), (2, "a"), (3, "a"), (4, "aé"), (9, "aéx")] {
            let mut buffer = vec![7; room];
            write_text(&mut buffer, "aéx");
            let bytes: Vec<u8> = buffer.iter().flat_map(|byte| byte.to_ne_bytes()).collect();
            assert_eq!(&bytes[..expected.len()], expected.as_bytes());
            assert_eq!(bytes[expected.len()], 0);
        }
        write_text(&mut [], "a");
    }

    #[test]
    fn panics_are_failures() {
        let failure = catch(|| -> Result<(), Failure> { panic!("oh {}", 1) }).unwrap_err();
        assert_eq!((failure.status, &*failure.text), (Status::Internal, "a panic, which is a bug: oh 1"));
    }
}
