//! Converts pointers from C to references. This is the only file with `unsafe` code.
//!
//! The functions of this crate do not take raw pointers but the following types, which have the same layout. Only C can
//! create values of these types (their fields are private, and there is no constructor), so a value in Rust carries a
//! promise that the caller has made by following the header:
//!
//! | type | C | promise, besides that it may be null |
//! |---|---|---|
//! | [`Ref`] | `const T *` | points to a `T`, or to as many as the function requires, until the call returns |
//! | [`Mut`] | `T *` | the same, and nothing else uses it meanwhile; a list is [`Room`], which is copied to and never borrowed |
//! | [`Out`] | `T *` | points to room for a `T`, which may be uninitialized |
//! | [`Owned`] | `T *` | came from this library and was not freed |
//!
//! Everything that can be checked is checked, and causes an error instead of a crash: null, alignment, impossible
//! lengths. The rest is the promise. A test checks that all `unsafe` code of the crate is in this file.

use core::ffi::{CStr, c_char, c_void};
use core::marker::PhantomData;
use core::mem::{MaybeUninit, size_of};
use core::{ptr, slice};

use maskwright::TokenId;

use crate::status::Failure;

/// A pointer to data that C lends for a call.
#[derive(Debug)]
#[repr(transparent)]
pub struct Ref<'c, T>(*const T, PhantomData<&'c T>);

/// A pointer to data that C lends exclusively for a call.
#[derive(Debug)]
#[repr(transparent)]
pub struct Mut<'c, T>(*mut T, PhantomData<&'c mut T>);

/// A pointer to room for a result.
#[derive(Debug)]
#[repr(transparent)]
pub struct Out<'c, T>(*mut T, PhantomData<&'c mut T>);

/// A handle that C returns to the library.
#[derive(Debug)]
#[repr(transparent)]
pub struct Owned<T>(*mut T);

/// A handle that is passed to C, or null. C owns the data until it returns the handle as [`Owned`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Given<T>(*mut T);

/// A pointer that C wants to be passed to its functions.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct UserData(*const c_void);

// SAFETY: we never dereference it; it is only passed to functions that, according to the header, can be called from any
// thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl<T> Clone for Ref<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<'_, T> {}

impl<'c, T> Ref<'c, T> {
    /// Returns a reference to the data.
    pub(crate) fn get(self, name: &'static str) -> Result<&'c T, Failure> {
        self.optional(name)?.ok_or_else(|| Failure::null(name))
    }

    /// Returns a reference to the data, or `None` if the pointer is null.
    pub(crate) fn optional(self, name: &'static str) -> Result<Option<&'c T>, Failure> {
        check(self.0, name, 1)?;
        // SAFETY: it is null or aligned; if it is not null, the caller has promised that it points to a `T` for the
        // time of the call.
        Ok(unsafe { self.0.as_ref() })
    }

    /// Returns a list of this length; with length 0, null is allowed.
    pub(crate) fn list(self, name: &'static str, len: usize) -> Result<&'c [T], Failure> {
        if len == 0 {
            return Ok(&[]);
        }
        check(self.0, name, len)?;
        if self.0.is_null() {
            return Err(Failure::null(name));
        }
        // SAFETY: it is aligned, not null, and not longer than memory can be; the caller has promised that there are
        // `len` elements.
        Ok(unsafe { slice::from_raw_parts(self.0, len) })
    }
}

impl<'c> Ref<'c, u8> {
    /// Returns a UTF-8 text of this length.
    pub(crate) fn text(self, name: &'static str, len: usize) -> Result<&'c str, Failure> {
        utf8(self.list(name, len)?, name)
    }
}

impl Ref<'_, u32> {
    /// Returns a list of tokens of this length.
    pub(crate) fn tokens(self, name: &'static str, len: usize) -> Result<Vec<TokenId>, Failure> {
        Ok(self.list(name, len)?.iter().copied().map(TokenId).collect())
    }
}

impl<'c> Ref<'c, c_char> {
    /// Returns a text that ends with a zero.
    pub(crate) fn c_text(self, name: &'static str) -> Result<&'c str, Failure> {
        if self.0.is_null() {
            return Err(Failure::null(name));
        }
        // SAFETY: it is not null, and the caller has promised that the text ends with a zero.
        utf8(unsafe { CStr::from_ptr(self.0) }.to_bytes(), name)
    }
}

impl<'c, T> Mut<'c, T> {
    fn bytes(self) -> Mut<'c, u8> {
        Mut(self.0.cast(), PhantomData)
    }

    /// Returns a mutable reference to the data.
    pub(crate) fn get(self, name: &'static str) -> Result<&'c mut T, Failure> {
        check(self.0, name, 1)?;
        // SAFETY: it is null or aligned; if it is not null, the caller has promised that it points to a `T` that
        // nothing else uses during the call.
        unsafe { self.0.as_mut() }.ok_or_else(|| Failure::null(name))
    }

    /// Returns room for this many elements; with length 0, null is allowed.
    pub(crate) fn room(self, name: &'static str, len: usize) -> Result<Room<'c, T>, Failure> {
        if len > 0 {
            check(self.0, name, len)?;
            if self.0.is_null() {
                return Err(Failure::null(name));
            }
        }
        Ok(Room { start: self.0, len, caller: PhantomData })
    }

    /// Does the same, but returns `None` if the pointer is null.
    pub(crate) fn optional_room(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Option<Room<'c, T>>, Failure> {
        if self.0.is_null() { Ok(None) } else { self.room(name, len).map(Some) }
    }
}

impl<'c, T> Ref<'c, Mut<'c, T>> {
    /// Returns a reference for each of this many pointers. No pointer may occur twice.
    pub(crate) fn all(self, name: &'static str, len: usize) -> Result<Vec<&'c mut T>, Failure> {
        let pointers: Vec<*mut T> = self.list(name, len)?.iter().map(|pointer| pointer.0).collect();
        let mut sorted = pointers.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1] && !pair[0].is_null()) {
            return Err(Failure::argument(format!("one of {name} is given twice")));
        }
        let get = |pointer| Mut(pointer, PhantomData).get("one of the pointers");
        pointers.into_iter().map(get).collect()
    }
}

/// Memory of the caller for a list. It is copied to and from, and never referenced, so nothing that the caller's
/// program does with it meanwhile violates a rule of Rust.
#[derive(Debug)]
pub(crate) struct Room<'c, T> {
    start: *mut T,
    len: usize,
    caller: PhantomData<&'c mut T>,
}

// SAFETY: it is only copied to and from, and its elements can be sent to other threads.
unsafe impl<T: Send> Send for Room<'_, T> {}

impl<T: Copy> Room<'_, T> {
    /// Returns how many elements fit.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies elements into it, starting at element `at`. They must fit.
    pub(crate) fn write(&mut self, at: usize, from: &[T]) {
        if let Some(start) = self.place(at, from.len()) {
            // SAFETY: there is enough room, as the caller has promised, and it is not our own memory, as `from` is.
            unsafe { ptr::copy_nonoverlapping(from.as_ptr(), start, from.len()) }
        }
    }

    /// Copies elements out of it, starting at element `at`.
    pub(crate) fn read(&self, at: usize, to: &mut [T]) {
        if let Some(start) = self.place(at, to.len()) {
            // SAFETY: as above, in the other direction; the caller has promised that the elements are initialized.
            unsafe { ptr::copy_nonoverlapping(start.cast_const(), to.as_mut_ptr(), to.len()) }
        }
    }

    /// Writes the same value to all elements from `from` on.
    pub(crate) fn fill(&mut self, from: usize, value: T) {
        for at in from..self.len {
            self.write(at, &[value]);
        }
    }

    /// Splits it into rows of this many elements.
    pub(crate) fn rows(self, width: usize) -> Vec<Self> {
        let row = |number: usize| Self {
            // The address of an empty row is never used.
            start: if width == 0 { self.start } else { self.start.wrapping_add(number * width) },
            len: width,
            caller: PhantomData,
        };
        let count = self.len.checked_div(width).unwrap_or(0);
        (0..count).map(row).collect()
    }

    /// Returns the address of some elements; `None` if there are none.
    fn place(&self, at: usize, count: usize) -> Option<*mut T> {
        assert!(at <= self.len && count <= self.len - at, "the list has room for {}", self.len);
        // SAFETY: the element is inside the room, as asserted above.
        (count > 0).then(|| unsafe { self.start.add(at) })
    }

    /// Creates room in memory of Rust.
    #[cfg(test)]
    pub(crate) fn of(list: &mut [T]) -> Room<'_, T> {
        Room { start: list.as_mut_ptr(), len: list.len(), caller: PhantomData }
    }
}

/// Data that C has lent for a call, with room for words, on its way to another thread.
#[derive(Debug)]
pub(crate) struct Lent<T> {
    thing: *mut T,
    room: Room<'static, u32>,
}

// SAFETY: it is used by one thread at a time, which is allowed because `T` is `Send`.
unsafe impl<T: Send> Send for Lent<T> {}

impl<T> Lent<T> {
    pub(crate) fn parts(&mut self) -> (&mut T, &mut Room<'static, u32>) {
        // SAFETY: it came from a `&mut` that is borrowed until `lend` returns, and `lend` returns only after all are
        // back.
        (unsafe { &mut *self.thing }, &mut self.room)
    }
}

/// Lends data to threads that cannot borrow it. `body` must return all of it; if it does not, or panics, the process is
/// aborted, because a thread might still use the data after C takes it back.
pub(crate) fn lend<T, R>(
    things: Vec<(&mut T, Room<'_, u32>)>,
    body: impl FnOnce(Vec<Lent<T>>) -> (Vec<Lent<T>>, R),
) -> R {
    struct Abort;
    impl Drop for Abort {
        fn drop(&mut self) {
            std::process::abort();
        }
    }
    let (count, unless_back) = (things.len(), Abort);
    let lent = |(thing, room): (&mut T, Room<'_, u32>)| Lent {
        thing: ptr::from_mut(thing),
        room: Room { start: room.start, len: room.len, caller: PhantomData },
    };
    let (back, result) = body(things.into_iter().map(lent).collect());
    if back.len() == count {
        core::mem::forget(unless_back);
    }
    result
}

impl<'c, T> Out<'c, T> {
    /// Returns the room for the result.
    pub(crate) fn get(self, name: &'static str) -> Result<&'c mut MaybeUninit<T>, Failure> {
        check(self.0, name, 1)?;
        // SAFETY: as in `Mut::get`; the memory need not hold a `T` yet.
        unsafe { self.0.cast::<MaybeUninit<T>>().as_mut() }.ok_or_else(|| Failure::null(name))
    }
}

impl<T> Owned<T> {
    /// Returns the handle; `None` if it is null.
    pub(crate) fn take(self) -> Option<Box<T>> {
        // SAFETY: if it is not null, it came from `Given::new`, and the caller has promised that it was not taken
        // before.
        (!self.0.is_null()).then(|| unsafe { Box::from_raw(self.0) })
    }
}

impl<T> Given<T> {
    /// Passes a value to C.
    pub(crate) fn new(value: T) -> Self {
        Self(Box::into_raw(Box::new(value)))
    }

    /// Returns null.
    pub(crate) fn none() -> Self {
        Self(ptr::null_mut())
    }
}

/// A struct that may have more fields in other versions of the header. Its first field is its size, as known to the
/// caller.
///
/// # Safety
///
/// It must be `repr(C)`, begin with a `usize`, and be valid for all byte values, as long as its pointers follow the
/// header.
pub(crate) unsafe trait Versioned: Copy {
    /// Its name in the header.
    const NAME: &'static str;
    /// The size of the first version in bytes.
    const FIRST: usize;
}

/// A struct that is written for the caller.
///
/// # Safety
///
/// It must have no padding between its fields, which would be uninitialized.
pub(crate) unsafe trait Dense: Versioned {}

/// Reads a struct. Fields that an older caller does not have are zero; fields that a newer caller adds must be zero.
pub(crate) fn read<T: Versioned>(from: Ref<'_, T>, name: &'static str) -> Result<T, Failure> {
    let size = declared_size::<T>(from.0, name)?;
    let given = Ref::<u8>(from.0.cast(), PhantomData).list(name, size)?;
    let (known, unknown) = given.split_at(size.min(size_of::<T>()));
    if unknown.iter().any(|byte| *byte != 0) {
        let text = format!("{} sets fields that this version of the library does not know", T::NAME);
        return Err(Failure::argument(text));
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: both places hold `known.len()` bytes, at most the size of `T`, and one of them is ours. All bytes of
    // `value` are set, and a `Versioned` is valid for all byte values.
    unsafe {
        ptr::copy_nonoverlapping(known.as_ptr(), value.as_mut_ptr().cast(), known.len());
        Ok(value.assume_init())
    }
}

/// Reads a struct. If the pointer is null, all its fields are zero.
pub(crate) fn read_or_zero<T: Versioned>(from: Ref<'_, T>, name: &'static str) -> Result<T, Failure> {
    if from.0.is_null() {
        // SAFETY: a `Versioned` is valid for all byte values.
        return Ok(unsafe { MaybeUninit::zeroed().assume_init() });
    }
    read(from, name)
}

/// Writes the fields of a struct that the caller knows. Additional fields of a newer caller become zero.
pub(crate) fn write<T: Dense>(to: Mut<'_, T>, name: &'static str, value: &T) -> Result<(), Failure> {
    let size = declared_size::<T>(to.0, name)?;
    let mut target = to.bytes().room(name, size)?;
    // SAFETY: a `Dense` has no uninitialized bytes between its fields.
    let bytes = unsafe { slice::from_raw_parts(ptr::from_ref(value).cast::<u8>(), size_of::<T>()) };
    let known = size.min(bytes.len());
    // The first field is the caller's size and stays.
    target.write(size_of::<usize>(), &bytes[size_of::<usize>()..known]);
    target.fill(known, 0);
    Ok(())
}

/// The maximum size of any version of a struct. A larger size is garbage.
const MAX_STRUCT_BYTES: usize = 4_096;

fn declared_size<T: Versioned>(pointer: *const T, name: &'static str) -> Result<usize, Failure> {
    let size = *Ref::<usize>(pointer.cast(), PhantomData).get(name)?;
    if (T::FIRST..=MAX_STRUCT_BYTES).contains(&size) {
        return Ok(size);
    }
    let text = format!("struct_size of {name} is {size}; set it to sizeof({})", T::NAME);
    Err(Failure::argument(text))
}

fn check<T>(pointer: *const T, name: &'static str, len: usize) -> Result<(), Failure> {
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("{name} is not aligned")));
    }
    if len.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Failure::argument(format!("{name} cannot have {len} elements")));
    }
    Ok(())
}

fn utf8<'c>(bytes: &'c [u8], name: &'static str) -> Result<&'c str, Failure> {
    str::from_utf8(bytes).map_err(|error| {
        Failure::argument(format!("{name} is not UTF-8: wrong byte at {}", error.valid_up_to()))
    })
}
