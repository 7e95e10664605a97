//! Writes −∞ into the logits of forbidden tokens.

use core::ffi::c_char;

use maskwright::apply;

use crate::guard::guard;
use crate::pointer::{Mut, Ref};
use crate::status::{Failure, Status};

/// The number of logits that are copied, changed and copied back at a time.
const BLOCK: usize = 2_048;

/// Forbids the tokens whose bit is 0, in place.
#[unsafe(no_mangle)]
pub extern "C" fn mw_apply_mask(
    logits: Mut<'_, f32>,
    logit_count: usize,
    words: Ref<'_, u32>,
    word_count: usize,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let mut logits = logits.room("logits", logit_count)?;
        let words = words.list("words", word_count)?;
        if words.len() < logits.len().div_ceil(32) {
            return Err(Failure::too_short("words", words.len(), logits.len().div_ceil(32)));
        }
        // One block at a time, so that it stays in the cache.
        let mut block = [0.0; BLOCK];
        for at in (0..logits.len()).step_by(BLOCK) {
            let block = &mut block[..BLOCK.min(logits.len() - at)];
            logits.read(at, block);
            apply::mask(block, &words[at / 32..]);
            logits.write(at, block);
        }
        Ok(())
    })
}
