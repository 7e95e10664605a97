//! The wrapper around the body of every exported function: it catches panics, and writes results to the caller's
//! buffers.

use core::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::pointer::{Mut, Out, Owned, Room};
use crate::status::{Failure, Status};

/// Runs the body of a function. An error is written to the caller's buffer, and panics are caught.
pub(crate) fn guard(
    message: Mut<'_, c_char>,
    size: usize,
    body: impl FnOnce() -> Result<(), Failure>,
) -> Status {
    match catch(body) {
        Ok(()) => Status::Ok,
        Err(failure) => {
            // A missing or invalid buffer does not change the status.
            if let Ok(Some(mut room)) = message.optional_room("message", size) {
                write_text(&mut room, &failure.to_string());
            }
            failure.status()
        }
    }
}

/// A value that calls change. A panic during a change leaves it in an unknown state, so every later call is refused.
#[derive(Debug)]
pub(crate) struct Whole<T> {
    value: T,
    is_broken: bool,
}

impl<T> Whole<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value, is_broken: false }
    }

    /// Returns the value for reading.
    pub(crate) fn get(&self) -> Result<&T, Failure> {
        self.check().map(|()| &self.value)
    }

    /// Runs a function on the value, and marks the value as broken if that panics.
    pub(crate) fn run<R>(&mut self, body: impl FnOnce(&mut T) -> Result<R, Failure>) -> Result<R, Failure> {
        self.check()?;
        self.is_broken = true;
        let result = body(&mut self.value);
        self.is_broken = false;
        result
    }

    fn check(&self) -> Result<(), Failure> {
        if !self.is_broken {
            return Ok(());
        }
        Err(Failure::new(
            Status::Internal,
            "an earlier call with this handle failed with a panic; free it and create a new one",
        ))
    }
}

/// Frees a handle. Errors cannot be reported.
pub(crate) fn discard<T>(handle: Owned<T>) {
    let _ = catch(|| {
        drop(handle.take());
        Ok(())
    });
}

/// Runs a function, and converts a panic to a failure.
pub(crate) fn catch<R>(body: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Failure::panicked(&*panic)))
}

/// Writes as many whole characters of a text as fit, and a zero.
pub(crate) fn write_text(target: &mut Room<'_, c_char>, text: &str) {
    let Some(room) = target.len().checked_sub(1) else { return };
    let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let bytes = text.as_bytes()[..end].iter().chain([&0]);
    let bytes: Vec<c_char> = bytes.map(|byte| byte.cast_signed() as c_char).collect();
    target.write(0, &bytes);
}

/// Writes a whole text and a zero to the caller's buffer, and stores its length without the zero. If it does not fit,
/// only the length is stored.
pub(crate) fn write_whole(
    text: &str,
    buffer: Mut<'_, c_char>,
    room: usize,
    length: Out<'_, usize>,
) -> Result<(), Failure> {
    length.get("length")?.write(text.len());
    let mut buffer = buffer.room("text", room)?;
    if room <= text.len() {
        return Err(Failure::too_short("text", room, text.len() + 1));
    }
    write_text(&mut buffer, text);
    Ok(())
}

/// Writes a list to the caller's buffer and stores its length. If it does not fit, only the length is stored.
pub(crate) fn write_list<T: Copy>(
    list: &[T],
    buffer: Mut<'_, T>,
    room: usize,
    count: Out<'_, usize>,
    name: &'static str,
) -> Result<(), Failure> {
    count.get("the count")?.write(list.len());
    let mut target = buffer.room(name, room)?;
    if room < list.len() {
        return Err(Failure::too_short(name, room, list.len()));
    }
    target.write(0, list);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        for (room, expected) in [(1, ""), (2, "a"), (3, "a"), (4, "aé"), (9, "aéx")] {
            let mut buffer = vec![7; room];
            write_text(&mut Room::of(&mut buffer), "aéx");
            let bytes: Vec<u8> = buffer.iter().flat_map(|byte| byte.to_ne_bytes()).collect();
            assert_eq!(&bytes[..expected.len()], expected.as_bytes());
            assert_eq!(bytes[expected.len()], 0);
        }
        write_text(&mut Room::of(&mut []), "a");
    }

    #[test]
    fn panics_are_failures() {
        let failure = catch(|| -> Result<(), Failure> { panic!("oh {}", 1) }).unwrap_err();
        assert_eq!(failure.status(), Status::Internal);
        assert_eq!(failure.to_string(), "a panic, which is a bug: oh 1");
    }
}
