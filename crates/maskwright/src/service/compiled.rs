//! A compiled constraint in use, and matchers that count what they do.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Weak;
use std::time::Instant;

use maskwright_engine::{MaskRow, MatchError, Prepared};
use maskwright_vocab::TokenId;

use super::Shared;
use super::key::SlotId;
use super::sync::Arc;
use crate::backend::{Compiled, Matching, Status};
use crate::statistics::{Counters, Tally};
use crate::{Kind, Remarks};

/// A compiled constraint. As long as somebody holds it, or one of its matchers, the cache keeps it.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let client = Service::new(Settings::default())?.client(Arc::new(compiler));
/// let compiled = client.compile(&Constraint::choice(["yes", "no"]))?;
/// println!("compiled in {:?}, {} bytes", compiled.report().time, compiled.report().bytes);
/// let mut matcher = compiled.matcher();
/// matcher.accept(TokenId(b'y'.into()))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CompiledConstraint {
    inner: Arc<dyn Compiled>,
    report: Report,
    backend: usize,
    slot: SlotId,
    counters: Arc<Counters>,
    service: Weak<Shared>,
    /// Whether it was matched since its bytes were measured.
    has_grown: AtomicBool,
}

/// What is known about one compile.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::{Compiler, Constraint, Kind, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let client = Service::new(Settings::default())?.client(Arc::new(compiler));
/// let report = *client.compile(&Constraint::regex("[0-9]+"))?.report();
/// assert_eq!(report.kind, Kind::Regex);
/// assert!(report.bytes > 0 && report.time > std::time::Duration::ZERO);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The language of the constraint.
    pub kind: Kind,
    /// How long it waited until a worker took it up, because all of them were at other constraints.
    pub waited: Duration,
    /// How long it took, from the moment a worker took it up.
    pub time: Duration,
    /// See [`Compiled::states`].
    pub states: usize,
    /// Bytes that it held right after it was compiled.
    pub bytes: usize,
}

impl CompiledConstraint {
    pub(crate) fn new(
        inner: Arc<dyn Compiled>,
        report: Report,
        backend: usize,
        slot: SlotId,
        service: &Arc<Shared>,
    ) -> Self {
        let (counters, service) = (service.counters.clone(), Arc::downgrade(service));
        Self { inner, report, backend, slot, counters, service, has_grown: AtomicBool::new(false) }
    }

    /// A matcher at the beginning of a text.
    pub fn matcher(self: &Arc<Self>) -> Matcher {
        Matcher {
            inner: self.inner.clone().start(),
            tally: Tally::new(&self.counters),
            constraint: self.clone(),
        }
    }

    /// What is known about its compile.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What was remarked about the constraint; see [`Compiled::remarks`].
    pub fn remarks(&self) -> &Remarks {
        self.inner.remarks()
    }

    /// What the backend made of the constraint.
    pub fn inner(&self) -> &Arc<dyn Compiled> {
        &self.inner
    }

    pub(crate) fn backend(&self) -> usize {
        self.backend
    }

    /// Whether it has grown since the last time this was asked.
    pub(crate) fn take_grown(&self) -> bool {
        self.has_grown.swap(false, Ordering::Relaxed)
    }

    /// Tells the service that texts were matched, so that it measures again.
    fn grown(&self) {
        if !self.has_grown.swap(true, Ordering::Relaxed)
            && let Some(service) = self.service.upgrade()
        {
            service.grown(self.slot);
        }
    }
}

impl fmt::Debug for CompiledConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledConstraint").field("report", &self.report).finish_non_exhaustive()
    }
}

/// One text being written, counted in the service's [statistics](super::Service::statistics).
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let client = Service::new(Settings::default())?.client(Arc::new(compiler));
/// let mut matcher = client.compile(&Constraint::choice(["yes", "no"]))?.matcher();
/// assert!(matcher.allows(TokenId(b'n'.into()))?);
/// // What only the engine of this crate can do:
/// let engine = matcher.inner().as_engine().expect("the backend is a `Compiler`");
/// engine.accept_bytes(b"ye")?;
/// assert_eq!(engine.forced_bytes(10), b"s");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Matcher {
    inner: Box<dyn Matching>,
    tally: Tally,
    constraint: Arc<CompiledConstraint>,
}

impl Matcher {
    /// Writes the mask; see [`Matching::fill_mask`].
    pub fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        self.counted(|inner| inner.fill_mask(words))
    }

    /// Writes what differs from the mask that is there; see [`Matching::update_mask`].
    pub fn update_mask(&mut self, words: &mut [u32], row: &mut MaskRow) -> Result<bool, MatchError> {
        self.counted(|inner| inner.update_mask(words, row))
    }

    /// The mask by reference; see [`Matching::mask_words`].
    pub fn mask_words(&mut self) -> Result<&[u32], MatchError> {
        self.counted(|inner| inner.mask_words())
    }

    /// The mask by reference, and whether it may be another one than before; see [`Matching::borrow_mask`].
    pub fn borrow_mask(&mut self) -> Result<(&[u32], bool), MatchError> {
        self.counted(|inner| inner.borrow_mask())
    }

    /// A mask, which is counted, and now and then timed.
    fn counted<'m, R: 'm>(&'m mut self, mask: impl FnOnce(&'m mut dyn Matching) -> R) -> R {
        let Self { inner, tally, constraint } = self;
        if !tally.mask() {
            return mask(&mut **inner);
        }
        let computed = inner.computed_masks();
        let start = Instant::now();
        let result = mask(&mut **inner);
        if tally.time(start.elapsed()) {
            report(tally, constraint, computed);
        }
        result
    }

    /// Takes a token; see [`Matching::accept`].
    pub fn accept(&mut self, token: TokenId) -> Result<(), MatchError> {
        let result = self.inner.accept(token);
        if result.is_ok() {
            self.tally.token();
        }
        result
    }

    /// Undoes the last steps: tokens, the end included, and bytes that were accepted at once.
    pub fn rollback(&mut self, steps: usize) -> Result<(), MatchError> {
        self.inner.rollback(steps)
    }

    /// Back to the beginning of the text.
    pub fn reset(&mut self) {
        self.inner.reset();
    }

    /// An independent matcher at the same place.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            inner: self.inner.fork(),
            tally: Tally::new(&self.constraint.counters),
            constraint: self.constraint.clone(),
        }
    }

    /// Where the text stands.
    pub fn status(&mut self) -> Status {
        self.inner.status()
    }

    /// Whether one token may come next, without working out the whole mask; see [`Matching::allows`].
    pub fn allows(&mut self, token: TokenId) -> Result<bool, MatchError> {
        self.inner.allows(token)
    }

    /// Keeps of some candidates, such as the likeliest tokens of a model, those that may come next: for a short list much
    /// less work than a mask. After an error all of them are still there.
    pub fn retain_allowed(&mut self, candidates: &mut Vec<TokenId>) -> Result<(), MatchError> {
        let allowed: Vec<bool> =
            candidates.iter().map(|token| self.inner.allows(*token)).collect::<Result<_, _>>()?;
        let mut allowed = allowed.into_iter();
        candidates.retain(|_| allowed.next().unwrap_or(false));
        Ok(())
    }

    /// How many of some tokens, from the first on, could be taken one after the other. Nothing has changed, and nothing is counted.
    pub fn validate(&mut self, tokens: &[TokenId]) -> Result<usize, MatchError> {
        let mut taken = 0;
        let mut result = Ok(());
        for token in tokens {
            match self.inner.accept(*token) {
                Ok(()) => taken += 1,
                Err(error) => {
                    result = if error.is_undecided() { Err(error) } else { Ok(()) };
                    break;
                }
            }
        }
        self.inner.rollback(taken)?;
        result.map(|()| taken)
    }

    /// Works out masks that may be asked for after the next token, until a moment: something to do while a model thinks.
    pub fn prepare(&self, until: Instant) -> Prepared {
        let prepared = self.inner.prepare(&mut || Instant::now() < until);
        self.constraint.counters.prepared(prepared.masks);
        self.constraint.grown();
        prepared
    }

    /// Has a worker of the service do that, if one is idle and the [settings](super::Settings::prepare) allow it. Returns at once, and says whether there was one.
    pub fn prepare_soon(&self) -> bool {
        let service = self.constraint.service.upgrade();
        service.is_some_and(|service| service.prepare_soon(|| self.fork()))
    }

    /// What the backend gave, for what only it can do; see [`Matching::as_engine`]. What is done there is not counted.
    pub fn inner(&mut self) -> &mut dyn Matching {
        &mut *self.inner
    }

    /// The constraint that is matched.
    pub fn constraint(&self) -> &Arc<CompiledConstraint> {
        &self.constraint
    }
}

/// Adds what a matcher has counted to what is counted for its constraint.
fn report(tally: &mut Tally, constraint: &CompiledConstraint, computed: u64) {
    tally.report(&constraint.counters, computed);
    constraint.grown();
}

impl Matching for Matcher {
    fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        self.fill_mask(words)
    }

    fn mask_words(&mut self) -> Result<&[u32], MatchError> {
        self.mask_words()
    }

    fn update_mask(&mut self, words: &mut [u32], row: &mut MaskRow) -> Result<bool, MatchError> {
        self.update_mask(words, row)
    }

    fn borrow_mask(&mut self) -> Result<(&[u32], bool), MatchError> {
        self.borrow_mask()
    }

    fn accept(&mut self, token: TokenId) -> Result<(), MatchError> {
        self.accept(token)
    }

    fn rollback(&mut self, steps: usize) -> Result<(), MatchError> {
        self.rollback(steps)
    }

    fn reset(&mut self) {
        self.reset();
    }

    fn fork(&self) -> Box<dyn Matching> {
        Box::new(self.fork())
    }

    fn status(&mut self) -> Status {
        self.status()
    }

    fn allows(&mut self, token: TokenId) -> Result<bool, MatchError> {
        self.allows(token)
    }

    fn computed_masks(&self) -> u64 {
        self.inner.computed_masks()
    }

    fn prepare(&self, go_on: &mut dyn FnMut() -> bool) -> Prepared {
        self.inner.prepare(go_on)
    }

    fn as_engine(&mut self) -> Option<&mut maskwright_engine::Matcher> {
        self.inner.as_engine()
    }
}

impl Drop for Matcher {
    fn drop(&mut self) {
        report(&mut self.tally, &self.constraint, self.inner.computed_masks());
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher").field("inner", &self.inner).finish_non_exhaustive()
    }
}
