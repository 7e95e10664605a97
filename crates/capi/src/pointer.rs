//! The small room: what comes from C as a pointer, and how it becomes a reference.
//!
//! Functions of this crate do not take raw pointers but these types, which are laid out like them. Only C can make
//! one – their fields are private, and there is no constructor – so whoever holds one in Rust holds what a caller has promised
//! in the header:
//!
//! | type | C | promise, besides that it may be null |
//! |---|---|---|
//! | [`Ref`] | `const T *` | points to a `T`, or to as many as the function says, until the call returns |
//! | [`Mut`] | `T *` | the same, and nobody else uses it meanwhile; a list is [`Room`], which is copied to and never borrowed |
//! | [`Out`] | `T *` | points to room for a `T`, whatever is in it |
//! | [`Owned`] | `T *` | came from this library and was not freed |
//!
//! What can be checked is checked, and an error instead of a crash: null, alignment, lengths that no memory has. What cannot be checked is the promise.
//! All `unsafe` of the crate is in this file, and a test sees to it.

use core::ffi::{CStr, c_char, c_void};
use core::marker::PhantomData;
use core::mem::{MaybeUninit, size_of};
use core::{ptr, slice};

use maskwright::TokenId;

use crate::status::Failure;

/// A pointer to something that C lends for a call.
#[derive(Debug)]
#[repr(transparent)]
pub struct Ref<'c, T>(*const T, PhantomData<&'c T>);

/// A pointer to something that C lends for a call, for this call alone.
#[derive(Debug)]
#[repr(transparent)]
pub struct Mut<'c, T>(*mut T, PhantomData<&'c mut T>);

/// A pointer to room for a result.
#[derive(Debug)]
#[repr(transparent)]
pub struct Out<'c, T>(*mut T, PhantomData<&'c mut T>);

/// A handle that C gives back.
#[derive(Debug)]
#[repr(transparent)]
pub struct Owned<T>(*mut T);

/// A handle that C is given; null where there is none. C owns what it points to until it gives it back as [`Owned`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Given<T>(*mut T);

/// What C wants to be handed to its functions.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct UserData(*const c_void);

// SAFETY: we never look at what it points to; we hand it to functions of which the header demands that they may be called from any thread.
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
    /// What it points to.
    pub(crate) fn get(self, name: &'static str) -> Result<&'c T, Failure> {
        self.optional(name)?.ok_or_else(|| Failure::null(name))
    }

    /// What it points to, if it is not null.
    pub(crate) fn optional(self, name: &'static str) -> Result<Option<&'c T>, Failure> {
        check(self.0, name, 1)?;
        // SAFETY: it is null or aligned; if it is not null, the caller has promised that it points to a `T` for the time of the call.
        Ok(unsafe { self.0.as_ref() })
    }

    /// So many of them; null is an empty list.
    pub(crate) fn list(self, name: &'static str, len: usize) -> Result<&'c [T], Failure> {
        if len == 0 {
            return Ok(&[]);
        }
        check(self.0, name, len)?;
        if self.0.is_null() {
            return Err(Failure::null(name));
        }
        // SAFETY: it is aligned, not null, and no longer than memory can be; the caller has promised that so many are there.
        Ok(unsafe { slice::from_raw_parts(self.0, len) })
    }
}

impl<'c> Ref<'c, u8> {
    /// So many bytes of UTF-8.
    pub(crate) fn text(self, name: &'static str, len: usize) -> Result<&'c str, Failure> {
        utf8(self.list(name, len)?, name)
    }
}

impl Ref<'_, u32> {
    /// So many tokens.
    pub(crate) fn tokens(self, name: &'static str, len: usize) -> Result<Vec<TokenId>, Failure> {
        Ok(self.list(name, len)?.iter().copied().map(TokenId).collect())
    }
}

impl<'c> Ref<'c, c_char> {
    /// A text that ends with a zero.
    pub(crate) fn c_text(self, name: &'static str) -> Result<&'c str, Failure> {
        if self.0.is_null() {
            return Err(Failure::null(name));
        }
        // SAFETY: it is not null, and the caller has promised that there is a zero behind the text.
        utf8(unsafe { CStr::from_ptr(self.0) }.to_bytes(), name)
    }
}

impl<'c, T> Mut<'c, T> {
    fn bytes(self) -> Mut<'c, u8> {
        Mut(self.0.cast(), PhantomData)
    }

    /// What it points to.
    pub(crate) fn get(self, name: &'static str) -> Result<&'c mut T, Failure> {
        check(self.0, name, 1)?;
        // SAFETY: it is null or aligned; if it is not null, the caller has promised that it points to a `T` which nobody else uses during the call.
        unsafe { self.0.as_mut() }.ok_or_else(|| Failure::null(name))
    }

    /// Room for so many of them; null is no room.
    pub(crate) fn room(self, name: &'static str, len: usize) -> Result<Room<'c, T>, Failure> {
        if len > 0 {
            check(self.0, name, len)?;
            if self.0.is_null() {
                return Err(Failure::null(name));
            }
        }
        Ok(Room { start: self.0, len, caller: PhantomData })
    }

    /// The same, or `None` if it is null.
    pub(crate) fn optional_room(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Option<Room<'c, T>>, Failure> {
        if self.0.is_null() { Ok(None) } else { self.room(name, len).map(Some) }
    }
}

impl<'c, T> Ref<'c, Mut<'c, T>> {
    /// What each of so many pointers points to. None may come twice.
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

/// Memory of the caller for a list. It is copied to and from, and no reference to it is made: whatever else the caller's program does with it meanwhile, no
/// promise of ours is broken.
#[derive(Debug)]
pub(crate) struct Room<'c, T> {
    start: *mut T,
    len: usize,
    caller: PhantomData<&'c mut T>,
}

// SAFETY: it is only copied to and from, and what it points to may travel.
unsafe impl<T: Send> Send for Room<'_, T> {}

impl<T: Copy> Room<'_, T> {
    /// For how many there is room.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies some elements into it, from one on. They must fit.
    pub(crate) fn write(&mut self, at: usize, from: &[T]) {
        if let Some(start) = self.place(at, from.len()) {
            // SAFETY: there is so much room, as the caller has promised, and it is no memory of ours, which `from` is.
            unsafe { ptr::copy_nonoverlapping(from.as_ptr(), start, from.len()) }
        }
    }

    /// Copies some elements out of it, from one on.
    pub(crate) fn read(&self, at: usize, to: &mut [T]) {
        if let Some(start) = self.place(at, to.len()) {
            // SAFETY: as above, in the other direction; the caller has promised that there are elements in it.
            unsafe { ptr::copy_nonoverlapping(start.cast_const(), to.as_mut_ptr(), to.len()) }
        }
    }

    /// The same value from one element on.
    pub(crate) fn fill(&mut self, from: usize, value: T) {
        for at in from..self.len {
            self.write(at, &[value]);
        }
    }

    /// Rows of so many elements.
    pub(crate) fn rows(self, width: usize) -> Vec<Self> {
        let row = |number: usize| Self {
            // An empty row has no place worth speaking of.
            start: if width == 0 { self.start } else { self.start.wrapping_add(number * width) },
            len: width,
            caller: PhantomData,
        };
        let count = self.len.checked_div(width).unwrap_or(0);
        (0..count).map(row).collect()
    }

    /// Where some elements lie; `None` if there are none.
    fn place(&self, at: usize, count: usize) -> Option<*mut T> {
        assert!(at <= self.len && count <= self.len - at, "the list has room for {}", self.len);
        // SAFETY: the element is inside of the room, by the line above.
        (count > 0).then(|| unsafe { self.start.add(at) })
    }

    /// Room in memory of Rust.
    #[cfg(test)]
    pub(crate) fn of(list: &mut [T]) -> Room<'_, T> {
        Room { start: list.as_mut_ptr(), len: list.len(), caller: PhantomData }
    }
}

/// Something that C has lent for a call, with room for words, on its way to another thread.
#[derive(Debug)]
pub(crate) struct Lent<T> {
    thing: *mut T,
    room: Room<'static, u32>,
}

// SAFETY: it is used by one thread at a time, as what it points to may be.
unsafe impl<T: Send> Send for Lent<T> {}

impl<T> Lent<T> {
    pub(crate) fn parts(&mut self) -> (&mut T, &mut Room<'static, u32>) {
        // SAFETY: it came from a `&mut` that is borrowed until `lend` returns, which it does not before all are back.
        (unsafe { &mut *self.thing }, &mut self.room)
    }
}

/// Lends things to threads that may not borrow. `body` has to give all of them back; where it does not, or panics, the process ends, because
/// somebody might still use what C takes back.
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
    /// The room.
    pub(crate) fn get(self, name: &'static str) -> Result<&'c mut MaybeUninit<T>, Failure> {
        check(self.0, name, 1)?;
        // SAFETY: as in `Mut::get`; what is there need not be a `T` yet.
        unsafe { self.0.cast::<MaybeUninit<T>>().as_mut() }.ok_or_else(|| Failure::null(name))
    }
}

impl<T> Owned<T> {
    /// The handle itself; `None` if it is null.
    pub(crate) fn take(self) -> Option<Box<T>> {
        // SAFETY: if it is not null, it came from `Given::new`, and the caller has promised that it was not taken before.
        (!self.0.is_null()).then(|| unsafe { Box::from_raw(self.0) })
    }
}

impl<T> Given<T> {
    /// Hands a value over.
    pub(crate) fn new(value: T) -> Self {
        Self(Box::into_raw(Box::new(value)))
    }

    /// Nothing.
    pub(crate) fn none() -> Self {
        Self(ptr::null_mut())
    }
}

/// A struct that may have more fields in other versions of the header. Its first field is its size, as the caller knows it.
///
/// # Safety
///
/// It is `repr(C)`, begins with a `usize`, and holds a value whatever its bytes are, as long as its pointers are what the header says.
pub(crate) unsafe trait Versioned: Copy {
    /// Its name in the header.
    const NAME: &'static str;
    /// Bytes of it in the first version.
    const FIRST: usize;
}

/// A struct that is written for the caller.
///
/// # Safety
///
/// It has no bytes between its fields, which would be undefined.
pub(crate) unsafe trait Dense: Versioned {}

/// Reads a struct. Fields that an older caller does not have are zero; those that a newer one has must be.
pub(crate) fn read<T: Versioned>(from: Ref<'_, T>, name: &'static str) -> Result<T, Failure> {
    let size = declared_size::<T>(from.0, name)?;
    let given = Ref::<u8>(from.0.cast(), PhantomData).list(name, size)?;
    let (known, unknown) = given.split_at(size.min(size_of::<T>()));
    if unknown.iter().any(|byte| *byte != 0) {
        let text = format!("{} asks for what this version of the library does not know", T::NAME);
        return Err(Failure::argument(text));
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: both places hold `known.len()` bytes, at most the size of `T`, and one of them is ours. All bytes of `value` are set, and a
    // `Versioned` holds a value whatever they are.
    unsafe {
        ptr::copy_nonoverlapping(known.as_ptr(), value.as_mut_ptr().cast(), known.len());
        Ok(value.assume_init())
    }
}

/// Reads a struct that may be missing: then all its fields are zero.
pub(crate) fn read_or_zero<T: Versioned>(from: Ref<'_, T>, name: &'static str) -> Result<T, Failure> {
    if from.0.is_null() {
        // SAFETY: a `Versioned` holds a value whatever its bytes are.
        return Ok(unsafe { MaybeUninit::zeroed().assume_init() });
    }
    read(from, name)
}

/// Writes as much of a struct as the caller knows. What the caller knows beyond it becomes zero.
pub(crate) fn write<T: Dense>(to: Mut<'_, T>, name: &'static str, value: &T) -> Result<(), Failure> {
    let size = declared_size::<T>(to.0, name)?;
    let mut target = to.bytes().room(name, size)?;
    // SAFETY: a `Dense` has no undefined bytes between its fields.
    let bytes = unsafe { slice::from_raw_parts(ptr::from_ref(value).cast::<u8>(), size_of::<T>()) };
    let known = size.min(bytes.len());
    // The first field is the caller's, and stays.
    target.write(size_of::<usize>(), &bytes[size_of::<usize>()..known]);
    target.fill(known, 0);
    Ok(())
}

/// The longest that any version of a struct will be; a size beyond it is garbage.
const LONGEST: usize = 4_096;

fn declared_size<T: Versioned>(pointer: *const T, name: &'static str) -> Result<usize, Failure> {
    let size = *Ref::<usize>(pointer.cast(), PhantomData).get(name)?;
    if (T::FIRST..=LONGEST).contains(&size) {
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
