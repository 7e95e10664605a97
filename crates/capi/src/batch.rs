//! Operations on many matchers at once.

use core::ffi::c_char;

use maskwright::{FillRow, RowError, TokenId, fill_masks};

use crate::guard::guard;
use crate::matcher::Matcher;
use crate::pointer::{Lent, Mut, Ref, lend};
use crate::status::{Failure, Status};

/// `MW_SKIP`: the value that means no token.
const SKIP: u32 = u32::MAX;

/// Fills the masks of many matchers, in parallel.
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
        let batch = Batch { matchers, matcher_count, words, stride, threads, statuses };
        batch.run(&[], false, |_, _| {})
    })
}

/// Runs a step of many matchers, in parallel: each accepts its token, and writes its next mask.
#[unsafe(no_mangle)]
pub extern "C" fn mw_step_batch<'c>(
    matchers: Ref<'c, Mut<'c, Matcher>>,
    matcher_count: usize,
    tokens: Ref<'_, u32>,
    words: Mut<'_, u32>,
    stride: usize,
    keep_rows: i32,
    threads: usize,
    changed: Mut<'_, u8>,
    statuses: Mut<'_, i32>,
    message: Mut<'_, c_char>,
    message_size: usize,
) -> Status {
    guard(message, message_size, || {
        let tokens = tokens.list("tokens", matcher_count)?;
        let mut changed = changed.optional_room("changed", matcher_count)?;
        let batch = Batch { matchers, matcher_count, words, stride, threads, statuses };
        batch.run(tokens, keep_rows != 0, |row, has_changed| {
            if let Some(changed) = &mut changed {
                changed.write(row, &[has_changed.into()]);
            }
        })
    })
}

/// The arguments of a batch, lent by C for the call.
struct Batch<'c, 'w, 's> {
    matchers: Ref<'c, Mut<'c, Matcher>>,
    matcher_count: usize,
    words: Mut<'w, u32>,
    stride: usize,
    threads: usize,
    statuses: Mut<'s, i32>,
}

impl Batch<'_, '_, '_> {
    /// Fills all rows, and reports which of them may have changed.
    fn run(
        self,
        tokens: &[u32],
        keep_rows: bool,
        mut changed: impl FnMut(usize, bool),
    ) -> Result<(), Failure> {
        let Self { matchers, matcher_count, words, stride, threads, statuses } = self;
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
        let token = |at: usize| tokens.get(at).copied().filter(|token| *token != SKIP).map(TokenId);
        let errors = lend(matchers.into_iter().zip(rows).collect(), |lent| {
            let rows = lent.into_iter().enumerate();
            let rows = rows.map(|(at, lent)| Row { lent, token: token(at), keep_rows, has_changed: true });
            let filled = fill_masks(rows.collect(), threads);
            filled.rows.iter().enumerate().for_each(|(at, row)| changed(at, row.has_changed));
            (filled.rows.into_iter().map(|row| row.lent).collect(), filled.errors)
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
    }
}

/// A matcher with its words.
struct Row {
    lent: Lent<Matcher>,
    /// The token to accept first.
    token: Option<TokenId>,
    /// Whether to leave the words alone if the mask has not changed.
    keep_rows: bool,
    has_changed: bool,
}

impl FillRow for Row {
    type Error = Failure;

    fn fill_row(&mut self) -> Result<(), Failure> {
        let (matcher, room) = self.lent.parts();
        let taken = self.token.map_or(Ok(()), |token| matcher.accept(token));
        self.has_changed = matcher.fill_mask(room, self.keep_rows)?;
        taken
    }
}

fn failure(error: &RowError<Failure>) -> Failure {
    match error {
        RowError::Mask(failure) => Failure::new(failure.status(), failure),
        RowError::Panicked(_) => Failure::new(Status::Internal, error),
    }
}
