//! The narrow bridge between the harness and the engines it measures.
//!
//! # Why a bridge at all
//! The peers cannot be linked into one Rust program: `glrmask` 0.5.0 insists on `derivre =0.3.8`, `llguidance`
//! 1.9.1 on `derivre =0.3.13`, and Cargo admits one of two compatible versions. Linking would also switch on, for
//! the peers, features of shared crates that they do not ask for (`serde_json/arbitrary_precision`). So each peer
//! is a small shared library with its own lock file, built as its authors would build it, and the harness loads
//! all of them into **one process**: same clock, same allocator, same cores, same token ids.
//!
//! # Shape
//! A library exports one symbol, [`ENTRY_SYMBOL`], that returns a [`Table`] of C functions. Authors of a peer do
//! not see it: they implement [`Peer`] and write [`export_peer!`].
//!
//! ```text
//!   host                                    library
//!   open(vocabulary)            ─────────►  Peer::open
//!   compile(engine, source)     ─────────►  Peer::compile      refusal: a message
//!   start(compiled)             ─────────►  Peer::start        one session per instance
//!   mask / accept / accepting   ─────────►  Session            the calls that are timed
//! ```
//!
//! A call costs an indirect jump, about a nanosecond. A panic inside a peer is caught on the library's side and
//! becomes a message or a failed call.

pub mod memory;

mod export;

pub use export::{Exported, quiet_panics};

/// Bumped whenever [`Table`] changes, so that a stale library is refused instead of misread.
pub const VERSION: u32 = 4;

/// The symbol that a library exports: `extern "C" fn() -> *const Table`.
pub const ENTRY_SYMBOL: &[u8] = b"mwbench_peer\0";

/// What a constraint is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    JsonSchema = 0,
    Regex = 1,
    Lark = 2,
    Gbnf = 3,
}

impl TryFrom<u32> for Kind {
    type Error = String;

    fn try_from(number: u32) -> Result<Kind, String> {
        let kinds = [Kind::JsonSchema, Kind::Regex, Kind::Lark, Kind::Gbnf];
        kinds
            .into_iter()
            .find(|&kind| kind as u32 == number)
            .ok_or_else(|| format!("there is no kind {number}"))
    }
}

/// A constraint as text.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub kind: Kind,
    pub text: &'a str,
}

/// What every engine is built from: the tokenizer's file and the bytes of its tokens.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary<'a> {
    /// Path of the tokenizer file, for engines that bring a loader of their own.
    pub path: &'a str,
    /// Bytes of token `i` at index `i`; empty for special tokens and holes.
    pub tokens: &'a [Vec<u8>],
    /// Ids that end a text.
    pub end: &'a [u32],
}

impl Vocabulary<'_> {
    /// Number of `u32` words in a mask.
    pub fn mask_words(&self) -> usize {
        self.tokens.len().div_ceil(32)
    }
}

/// An engine under test.
pub trait Peer: Sized + 'static {
    type Compiled: 'static;
    type Session<'a>: Session;

    /// Name and version, e.g. `("llguidance", "1.9.1")`.
    const NAME: &'static str;
    const RELEASE: &'static str;
    /// Whether an end token shows up in the mask; if not, the harness asks [`Session::accepting`] at the end.
    const END_IN_MASK: bool;

    fn open(vocabulary: &Vocabulary<'_>) -> Result<Self, String>;
    fn compile(&self, source: Source<'_>) -> Result<Self::Compiled, String>;
    fn start<'a>(&'a self, compiled: &'a Self::Compiled) -> Result<Self::Session<'a>, String>;
}

/// One text being written.
pub trait Session {
    /// Writes the allowed tokens into `mask`, bit `t % 32` of word `t / 32`. `false`: the engine gave up.
    fn fill(&mut self, mask: &mut [u32]) -> bool;
    /// The allowed tokens as the engine gives them: in its own memory, or written into `row`. `None`: it gave up.
    fn mask<'s>(&'s mut self, row: &'s mut [u32]) -> Option<&'s [u32]> {
        self.fill(row).then_some(row)
    }
    /// Works ahead for the next token, for so long at most. Most engines cannot.
    fn prepare(&mut self, _time: std::time::Duration) {}
    /// Takes a token; `false`: refused.
    fn accept(&mut self, token: u32) -> bool;
    /// Whether the text may end here.
    fn accepting(&mut self) -> bool;
}

/// A borrowed slice of bytes on its way through the C functions.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Slice {
    pub data: *const u8,
    pub len: usize,
}

impl Slice {
    pub fn new(bytes: &[u8]) -> Slice {
        Slice { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// # Safety
    /// The slice must come from [`Slice::new`] over bytes that are still alive.
    pub unsafe fn as_bytes<'a>(self) -> &'a [u8] {
        // SAFETY: the caller upholds the contract above.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// A vocabulary on its way through the C functions: `token_count` slices and `end_count` ids.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawVocabulary {
    pub path: Slice,
    pub tokens: *const Slice,
    pub token_count: usize,
    pub end: *const u32,
    pub end_count: usize,
}

/// Receives an error message; called at most once per failed call, with the context given beside it.
pub type Complain = unsafe extern "C" fn(context: *mut std::ffi::c_void, message: Slice);

/// An opaque object of the library.
pub type Handle = *mut std::ffi::c_void;

/// The functions of a library. Null handles mean failure and follow a call of [`Complain`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Table {
    pub version: u32,
    pub end_in_mask: bool,
    pub name: Slice,
    pub release: Slice,
    pub open: unsafe extern "C" fn(*const RawVocabulary, Complain, Handle) -> Handle,
    pub compile: unsafe extern "C" fn(Handle, u32, Slice, Complain, Handle) -> Handle,
    pub start: unsafe extern "C" fn(Handle, Handle, Complain, Handle) -> Handle,
    pub fill: unsafe extern "C" fn(Handle, *mut u32, usize) -> bool,
    /// The last argument is told how many words there are. Null: the engine gave up.
    pub mask: unsafe extern "C" fn(Handle, *mut u32, usize, *mut usize) -> *const u32,
    pub accept: unsafe extern "C" fn(Handle, u32) -> bool,
    pub accepting: unsafe extern "C" fn(Handle) -> bool,
    pub end_session: unsafe extern "C" fn(Handle),
    pub drop_compiled: unsafe extern "C" fn(Handle),
    pub live_bytes: unsafe extern "C" fn() -> i64,
}

// SAFETY: the table holds function pointers and slices of constants.
unsafe impl Sync for Table {}
