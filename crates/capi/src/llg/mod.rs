//! The subset of llguidance's interface that servers use, on our engine.
//!
//! A program that was written for llguidance, such as llama.cpp with its `LLAMA_LLGUIDANCE`, is compiled against
//! `include/llguidance.h` and linked with this library; it does not have to be changed. Names, arguments and the layout
//! of structs are those of llguidance 1.9. So are these habits, which differ from those of `mw_…`:
//!
//! * A constructor of a matcher or constraint always returns one; if its grammar is invalid, it contains the error.
//! * Errors persist: after a token was refused, every call fails until the matcher is freed.
//! * At the end of the text, the mask allows the tokens that end it, any number of times.
//!
//! Unsupported functions do not link: controllers of stop strings, masks in parallel, cancellation. The header lists
//! functions that exist but have no effect here.

pub mod constraint;
pub mod matcher;
mod source;
pub mod tokenizer;

use core::ffi::c_char;

use self::source::read_source;
use self::tokenizer::Tokenizer;
use crate::guard::{catch, guard, write_text};
use crate::pointer::{Mut, Out, Ref};
use crate::status::Failure;

/// `LlgParserLimits`. They are limits of llguidance's parser and are ignored; our engine has its own limits.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ParserLimits {
    max_items_in_row: usize,
    initial_lexer_fuel: u64,
    step_lexer_fuel: u64,
    step_max_items: usize,
    max_lexer_states: usize,
    max_grammar_size: usize,
    precompute_large_lexemes: u8,
    verbose_errors: u8,
}

/// `LlgConstraintInit`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ConstraintInit<'c> {
    tokenizer: Ref<'c, Tokenizer>,
    log_buffer_level: u32,
    log_stderr_level: u32,
    ff_tokens_ok: u8,
    backtrack_ok: u8,
    limits: ParserLimits,
}

/// Sets the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn llg_constraint_init_set_defaults<'c>(
    init: Out<'_, ConstraintInit<'c>>,
    tokenizer: Ref<'c, Tokenizer>,
) {
    let Ok(init) = init.get("init") else { return };
    let limits = ParserLimits {
        max_items_in_row: 2_000,
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 200_000,
        step_max_items: 50_000,
        max_lexer_states: 250_000,
        max_grammar_size: 500_000,
        precompute_large_lexemes: 1,
        verbose_errors: 1,
    };
    init.write(ConstraintInit {
        tokenizer,
        log_buffer_level: 0,
        log_stderr_level: 1,
        ff_tokens_ok: 0,
        backtrack_ok: 0,
        limits,
    });
}

/// Checks whether a grammar can be compiled: returns 0, or −1 and a message.
#[unsafe(no_mangle)]
pub extern "C" fn llg_validate_grammar(
    init: Ref<'_, ConstraintInit<'_>>,
    constraint_type: Ref<'_, c_char>,
    data: Ref<'_, c_char>,
    message: Mut<'_, c_char>,
    message_len: usize,
) -> i32 {
    let validated = catch(|| {
        let source = read_source(constraint_type.c_text("constraint_type")?, data.c_text("data")?)?;
        init.get("init")?.tokenizer()?.compiler().compile(&source).map(drop)
    });
    let text = validated.as_ref().err().map(Failure::to_string).unwrap_or_default();
    // A missing buffer does not change the result.
    if let Ok(Some(mut room)) = message.optional_room("message", message_len) {
        write_text(&mut room, &text);
    }
    if validated.is_ok() { 0 } else { -1 }
}

/// Returns the version, for people.
#[unsafe(no_mangle)]
pub extern "C" fn llg_get_version() -> *const c_char {
    crate::mw_version()
}

impl ConstraintInit<'_> {
    fn tokenizer(&self) -> Result<&Tokenizer, Failure> {
        self.tokenizer.get("init.tokenizer")
    }
}

/// Runs the body of a function that reports errors as text, and returns its result or `nothing`.
fn guarded<R>(
    message: Mut<'_, c_char>,
    size: usize,
    nothing: R,
    body: impl FnOnce() -> Result<R, Failure>,
) -> R {
    let mut result = nothing;
    // The status only indicates that there is a message.
    let _ = guard(message, size, || {
        result = body()?;
        Ok(())
    });
    result
}
