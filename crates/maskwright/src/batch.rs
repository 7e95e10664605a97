//! Fills the masks of many matchers at once, in parallel.
//!
//! The calling thread starts at once, and threads of a [pool](crate::set_threads) join in. Each thread takes the next
//! few rows until none is left. No thread waits for another one to wake up, which on a busy machine takes longer than
//! all the rows: at the end the caller waits only for threads that have taken rows, and a thread that wakes up later
//! finds nothing to do. For this reason rows are owned, not borrowed: they are moved in and returned.
//!
//! Waking a thread takes some microseconds, so a thread is woken only if it saves at least [`WAKE_NANOS`] of work,
//! judging by how long recent rows took. Each thread that wakes up wakes two others; a caller that woke fifteen threads
//! itself would be busy with that for as long as the rows take.

use core::any::Any;
use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use maskwright_engine::{MaskRow, MatchError};
use maskwright_vocab::TokenId;
use rayon::ThreadPool;

use crate::backend::Matching;
use crate::pool::pool;

/// The work that a thread takes at a time, in nanoseconds; [`CHUNK_ROWS`] limits it in rows.
const CHUNK_NANOS: u64 = 10_000;
const CHUNK_ROWS: u64 = 8;

/// The work that one more thread must save the others, in nanoseconds.
const WAKE_NANOS: u64 = 20_000;

/// How long recent rows took on average, in nanoseconds.
static ROW_NANOS: AtomicU64 = AtomicU64::new(2_000);

/// A row of a batch: it can fill a mask, and knows where to write it.
///
/// A matcher with a vector of words is a row. To write into other memory, implement this trait for your own type.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, FillRow, Matcher, TokenId, VocabularyBuilder, fill_masks};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// /// A row that counts its tokens.
/// struct Counted(Matcher, usize);
///
/// impl FillRow for Counted {
///     type Error = maskwright::MatchError;
///
///     fn fill_row(&mut self) -> Result<(), Self::Error> {
///         self.1 = self.0.mask()?.count();
///         Ok(())
///     }
/// }
///
/// let rows = ["[0-9]", "[ab]"].map(|pattern| compiler.compile(&Constraint::regex(pattern)).map(|compiled| Counted(compiled.matcher(), 0)));
/// let filled = fill_masks(rows.into_iter().collect::<Result<_, _>>()?, 2);
/// assert_eq!(filled.rows.iter().map(|row| row.1).collect::<Vec<_>>(), [10, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FillRow: Send + 'static {
    /// The reason why a mask cannot be filled.
    type Error: Send + 'static;

    /// Fills the mask. After an error, the row decides what its words contain; the rows of this crate are cleared.
    fn fill_row(&mut self) -> Result<(), Self::Error>;
}

impl<M: Matching + 'static> FillRow for (M, Vec<u32>) {
    type Error = MatchError;

    fn fill_row(&mut self) -> Result<(), MatchError> {
        let (matcher, words) = self;
        matcher.fill_mask(words).inspect_err(|_| words.fill(0))
    }
}

/// A row that accepts a token before it fills its mask; see [`step_batch`].
///
/// Only steps write its words, so a step writes only the differences from the previous mask.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// use maskwright::{StepRow, step_batch};
///
/// let compiled = compiler.compile(&Constraint::regex("[ab][0-9]"))?;
/// let mut row = StepRow::new(compiled.matcher(), 9);      // 257 tokens take nine words
/// row.set_token(Some(TokenId(b'a'.into())));
/// let done = step_batch(vec![row], 1);
/// assert!(done.errors.is_empty() && done.rows[0].has_changed());
/// assert_eq!(done.rows[0].words()[1], 0b11_1111_1111 << 16); // the digits are the tokens 48 to 57
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StepRow<M> {
    // PERF: rows are moved to the threads and back, and a matcher is large.
    inner: Box<Inner<M>>,
}

#[derive(Debug)]
struct Inner<M> {
    matcher: M,
    token: Option<TokenId>,
    words: Vec<u32>,
    row: MaskRow,
    has_changed: bool,
}

impl<M: Matching> StepRow<M> {
    /// Creates a row with this number of words.
    pub fn new(matcher: M, words: usize) -> Self {
        let row = MaskRow::default();
        let inner = Inner { matcher, token: None, words: vec![0; words], row, has_changed: false };
        Self { inner: Box::new(inner) }
    }

    /// Sets the token that the next step accepts (only that step). With `None`, the step only fills the mask.
    pub fn set_token(&mut self, token: Option<TokenId>) {
        self.inner.token = token;
    }

    /// Returns the matcher, for example to roll it back or reset it.
    pub fn matcher(&mut self) -> &mut M {
        &mut self.inner.matcher
    }

    /// Returns the mask.
    pub fn words(&self) -> &[u32] {
        &self.inner.words
    }

    /// Whether the last step may have changed the mask. If not, a copy on a device is still valid.
    pub fn has_changed(&self) -> bool {
        self.inner.has_changed
    }
}

impl<M: Matching + 'static> FillRow for StepRow<M> {
    type Error = MatchError;

    fn fill_row(&mut self) -> Result<(), MatchError> {
        let Inner { matcher, token, words, row, has_changed } = &mut *self.inner;
        let taken = token.take().map_or(Ok(()), |token| matcher.accept(token));
        let updated = matcher.update_mask(words, row).inspect_err(|_| {
            words.fill(0);
            row.forget();
        });
        *has_changed = *updated.as_ref().unwrap_or(&true);
        updated.and(taken)
    }
}

/// Runs one step of a batch: every row accepts its token, if it has one, and fills its next mask. At most `threads`
/// threads work at the same time, the calling one included. An error affects one row only. If its token is refused, its
/// matcher and its mask stay as they are; if its mask cannot be filled, the mask is cleared.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, StepRow, TokenId, VocabularyBuilder, step_batch};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let (word, date) = (compiler.compile(&Constraint::regex("[a-z]+"))?, compiler.compile(&Constraint::regex("[0-9]{4}-[0-9]{2}"))?);
/// let mut rows = vec![StepRow::new(word.matcher(), 9), StepRow::new(date.matcher(), 9)];
/// rows = step_batch(rows, usize::MAX).rows; // the first masks
///
/// for text in ["ab", "cd", "ef"].map(str::as_bytes) {
///     // A model has chosen a token for each row.
///     rows[0].set_token(Some(TokenId(text[0].into())));
///     rows[1].set_token(Some(TokenId(b'2'.into())));
///     rows = step_batch(rows, usize::MAX).rows;
/// }
/// // The word may end or go on, as before; its mask need not be copied anywhere. The year still lacks a digit.
/// assert!(!rows[0].has_changed());
/// rows[1].set_token(Some(TokenId(b'2'.into())));
/// let rows = step_batch(rows, usize::MAX).rows;
/// assert!(rows[1].has_changed() && rows[1].words()[1] == 1 << (b'-' % 32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn step_batch<M: Matching + 'static>(rows: Vec<StepRow<M>>, threads: usize) -> Filled<StepRow<M>> {
    fill_masks(rows, threads)
}

/// The result of [`fill_masks`].
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder, fill_masks};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let compiled = compiler.compile(&Constraint::regex("[ab]"))?;
/// let filled = fill_masks(vec![(compiled.matcher(), vec![0; 9])], 1);
/// let (matcher, mask) = &filled.rows[0]; // what was moved in comes back
/// assert_eq!(mask[3], 0b110); // `a` is byte 97, and `b` 98
/// # let _ = matcher;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Filled<R: FillRow> {
    /// The rows, in their original order.
    pub rows: Vec<R>,
    /// The indices of the rows that could not be filled, ascending, each with the reason.
    pub errors: Vec<(usize, RowError<R::Error>)>,
}

/// The reason why a row was not filled.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, MatchError, RowError, TokenId, VocabularyBuilder, fill_masks};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let compiled = compiler.compile(&Constraint::regex("a+"))?;
/// let filled = fill_masks(vec![(compiled.matcher(), vec![0; 9]), (compiled.matcher(), vec![0; 2])], 1);
/// let [(1, RowError::Mask(error))] = &filled.errors[..] else { panic!() }; // the second row is too short
/// assert!(matches!(error, MatchError::MaskTooShort { .. }), "{error:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowError<E> {
    /// The mask could not be filled.
    Mask(E),
    /// Filling the mask panicked, which is a bug. Do not use the row's matcher any more.
    Panicked(String),
}

impl<E: fmt::Display> fmt::Display for RowError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mask(error) => write!(f, "{error}"),
            Self::Panicked(message) => {
                write!(f, "filling a mask failed with a panic, which is a bug: {message}")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for RowError<E> {}

/// Fills the masks of many rows. At most `threads` threads work at the same time, the calling one included. An error
/// affects one row only; all others are filled.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder, fill_masks};
/// # let mut vocabulary = VocabularyBuilder::new();
/// # vocabulary.token(TokenId(0), b"yes")?.token(TokenId(1), b"no")?;
/// # let compiler = Compiler::new(Arc::new(vocabulary.finish()?));
/// let (yes, no) = (compiler.compile(&Constraint::choice(["yes"]))?, compiler.compile(&Constraint::choice(["no"]))?);
/// let rows = vec![(yes.matcher(), vec![0; 1]), (no.matcher(), vec![0; 1])];
/// let filled = fill_masks(rows, usize::MAX);
/// assert!(filled.errors.is_empty());
/// assert_eq!([&filled.rows[0].1[..], &filled.rows[1].1[..]], [[0b01], [0b10]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fill_masks<R: FillRow>(mut rows: Vec<R>, threads: usize) -> Filled<R> {
    let row_nanos = ROW_NANOS.load(Ordering::Relaxed).max(1);
    let useful = (rows.len() as u64 * row_nanos / WAKE_NANOS) as usize;
    let chunk = (CHUNK_NANOS / row_nanos).clamp(1, CHUNK_ROWS) as usize;
    let helpers = useful.min(rows.len().saturating_sub(1) / chunk).min(threads.max(1) - 1);
    // If no thread can be started, this thread does all the work.
    let pool = if helpers > 0 { pool().ok() } else { None };
    if let Some(pool) = pool.filter(|pool| pool.current_num_threads() > 1) {
        let helpers = helpers.min(pool.current_num_threads() - 1);
        return Batch::new(rows, chunk, helpers, pool).fill();
    }
    let start = Instant::now();
    let errors = fill(&mut rows, 0);
    remember(start, rows.len());
    Filled { rows, errors }
}

/// Adds the time of some rows to the moving average.
fn remember(start: Instant, rows: usize) {
    if rows > 0 {
        let each = u64::try_from(start.elapsed().as_nanos() / rows as u128).unwrap_or(u64::MAX);
        let before = ROW_NANOS.load(Ordering::Relaxed);
        // The cap keeps one slow mask among many fast ones from distorting the plan for the next batch.
        ROW_NANOS.store((before * 7 + each.min(1_000_000)) / 8, Ordering::Relaxed);
    }
}

type Errors<R> = Vec<(usize, RowError<<R as FillRow>::Error>)>;

struct Batch<R: FillRow> {
    state: Mutex<State<R>>,
    /// Signaled when no thread is working any more.
    done: Condvar,
    pool: Arc<ThreadPool>,
    /// The number of threads still to be woken.
    sleeping: AtomicUsize,
    /// The number of rows that a thread takes at a time.
    chunk: usize,
}

struct State<R: FillRow> {
    /// The rows that no thread has taken yet: a prefix of all rows, since threads take them from the back.
    waiting: Vec<R>,
    /// The filled rows, by index.
    filled: Vec<Option<R>>,
    /// The number of threads that are filling rows.
    working: usize,
    errors: Errors<R>,
}

impl<R: FillRow> Batch<R> {
    fn new(rows: Vec<R>, chunk: usize, helpers: usize, pool: Arc<ThreadPool>) -> Arc<Self> {
        let filled = rows.iter().map(|_| None).collect();
        let state = State { waiting: rows, filled, working: 0, errors: Vec::new() };
        let sleeping = AtomicUsize::new(helpers);
        Arc::new(Self { state: Mutex::new(state), done: Condvar::new(), pool, sleeping, chunk })
    }

    /// Wakes two of the remaining threads, each of which wakes two more.
    fn wake(self: &Arc<Self>) {
        for _ in 0..2 {
            let one_less = |sleeping: usize| sleeping.checked_sub(1);
            if self.sleeping.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
                return;
            }
            let batch = self.clone();
            self.pool.spawn(move || {
                batch.wake();
                batch.work();
            });
        }
    }

    fn fill(self: Arc<Self>) -> Filled<R> {
        self.wake();
        let start = Instant::now();
        let rows = self.work();
        remember(start, rows);
        let mut state = self.lock();
        while state.working > 0 {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // A thread that has not woken up yet keeps the batch alive, but holds none of its rows.
        let (filled, mut errors) = (core::mem::take(&mut state.filled), core::mem::take(&mut state.errors));
        drop(state);
        errors.sort_by_key(|(row, _)| *row);
        Filled { rows: filled.into_iter().flatten().collect(), errors }
    }

    /// Fills rows until none is left. Returns how many rows it has filled.
    fn work(&self) -> usize {
        let (mut count, mut rows) = (0, Vec::with_capacity(self.chunk));
        let mut state = self.lock();
        while !state.waiting.is_empty() {
            let first = state.waiting.len().saturating_sub(self.chunk);
            rows.extend(state.waiting.drain(first..));
            state.working += 1;
            drop(state);
            let errors = fill(&mut rows, first);
            count += rows.len();
            state = self.lock();
            state.working -= 1;
            for (number, row) in (first..).zip(rows.drain(..)) {
                state.filled[number] = Some(row);
            }
            state.errors.extend(errors);
        }
        if state.working == 0 {
            // No rows are left, so no further threads need to be woken.
            self.sleeping.store(0, Ordering::Relaxed);
            self.done.notify_all();
        }
        count
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fills all rows that can be filled. A panic in a thread of the pool would end the process, so panics are caught.
fn fill<R: FillRow>(rows: &mut [R], first: usize) -> Errors<R> {
    let fill_one = |row: &mut R| match catch_unwind(AssertUnwindSafe(|| row.fill_row())) {
        Ok(result) => result.map_err(RowError::Mask),
        Err(thrown) => Err(RowError::Panicked(panic_message(&*thrown).to_owned())),
    };
    (first..).zip(rows).filter_map(|(number, row)| Some((number, fill_one(row).err()?))).collect()
}

/// Returns the message of a panic.
fn panic_message(thrown: &(dyn Any + Send)) -> &str {
    let text = thrown.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| thrown.downcast_ref::<&str>().copied()).unwrap_or("(without a message)")
}
