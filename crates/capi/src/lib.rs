//! The C library: constrained decoding for programs in C and in languages that can call C.
//!
//! One library has two sets of functions:
//!
//! | header | functions | for |
//! |---|---|---|
//! | `include/maskwright.h` | `mw_…` | everybody |
//! | `include/llguidance.h` | `llg_…` | programs that were written for llguidance, such as llama.cpp: a subset of its interface |
//!
//! The header is the documentation for users, and `docs/c.md` their page. The internal structure is:
//!
//! ```text
//!   C ──▶ mw_… / llg_… ──▶ guard ──▶ body ──▶ maskwright
//!              │              └─ panics end here, and become a status with a text
//!              └─ arguments are `pointer::{Ref, Mut, Out, Owned}`: pointers that only C can make
//! ```
//!
//! * `pointer` is the only file with `unsafe` code; everything else exports names, and is plain Rust.
//! * A function that can fail returns a [`Status`] and has a buffer for a text as its last two parameters.
//! * Compiling uses the compile service of `maskwright`, so constraints are cached and limited in size and time.
//! * The tests compile C programs against the headers, and compare every signature with that in Rust (`tests/capi`).

#![allow(unsafe_code, reason = "names are exported, and pointers come from C")]
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod batch;
pub mod compiler;
mod guard;
pub mod llg;
pub mod mask;
pub mod matcher;
pub mod pointer;
pub mod statistics;
pub mod status;
pub mod tools;
pub mod vocabulary;
pub mod weighted;

use core::ffi::{CStr, c_char};

pub use status::Status;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the version of the library, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn mw_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Checks the promises of the headers about threads.
const _: () = {
    const fn any_number<T: Send + Sync>() {}
    const fn one_at_a_time<T: Send>() {}
    any_number::<vocabulary::Vocabulary>();
    any_number::<compiler::Compiler>();
    any_number::<compiler::CompiledConstraint>();
    any_number::<compiler::Request>();
    any_number::<llg::tokenizer::Tokenizer>();
    one_at_a_time::<matcher::Matcher>();
    one_at_a_time::<tools::Reader>();
    one_at_a_time::<weighted::Scorer>();
    one_at_a_time::<llg::matcher::Matcher>();
    one_at_a_time::<llg::constraint::Constraint>();
};
