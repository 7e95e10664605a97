//! Many matchers at once.

use core::ffi::c_char;

use maskwright::{FillRow, RowError, fill_masks};

use crate::guard::guard;
use crate::matcher::Matcher;
use crate::pointer::{Lent, Mut, Ref, lend};
use crate::status::{Failure, Status};

/// Writes which tokens may come next, for many matchers, in parallel.
#[unsafe(no_mangle)]
pub extern "C" fn mw_fill_masks<'c>(
    matchers: Ref<'c, Mut<'c, Matcher>>,
    matcher_count: usize,
    words: Mut<'_, u32>,
    stride: usize,
    threads: usize,
    statuses: Mut<'_, i32>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let matchers = matchers.all("matchers", matcher_count)?;
        let too_many =
            || Failure::argument(format!("there cannot be {matcher_count} rows of {stride} words"));
        let word_count = matcher_count.checked_mul(stride).ok_or_else(too_many)?;
        let rows = words.room("words", word_count)?.rows(stride);
        let statuses = statuses.optional_room("statuses", matcher_count)?;
        if rows.len() < matcher_count {
            return Err(Failure::too_short("a row of words", stride, 1));
        }
        let threads = if threads == 0 { usize::MAX } else { threads };
        let errors = lend(matchers.into_iter().zip(rows).collect(), |rows| {
            let filled = fill_masks(rows, threads);
            (filled.rows, filled.errors)
        });
        if let Some(mut statuses) = statuses {
            statuses.fill(0, Status::Ok as i32);
            for (row, error) in &errors {
                statuses.write(*row, &[failure(error).status() as i32]);
            }
        }
        match errors.first() {
            Some((row, error)) => Err(failure(error).about(&format!("row {row}"))),
            None => Ok(()),
        }
    })
}

impl FillRow for Lent<Matcher> {
    type Error = Failure;

    fn fill_row(&mut self) -> Result<(), Failure> {
        let (matcher, room) = self.parts();
        matcher.fill_mask(room)
    }
}

fn failure(error: &RowError<Failure>) -> Failure {
    match error {
        RowError::Mask(failure) => Failure::new(failure.status(), failure),
        RowError::Panicked(_) => Failure::new(Status::Internal, error),
    }
}
