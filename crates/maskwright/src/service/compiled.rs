//! Compiled constraints in use, and matchers that count their work.

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

/// A compiled constraint. The cache keeps it as long as it, or one of its matchers, is in use.
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
    /// Whether it was matched since its size was last measured.
    has_grown: AtomicBool,
}

/// A report about one compilation.
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
    /// How long it waited for a worker.
    pub waited: Duration,
    /// How long it took after a worker had started it.
    pub time: Duration,
    /// See [`Compiled::states`].
    pub states: usize,
    /// The number of bytes that it held right after compilation.
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

    /// Returns a matcher at the beginning of a text.
    pub fn matcher(self: &Arc<Self>) -> Matcher {
        Matcher {
            inner: self.inner.clone().start(),
            tally: Tally::new(&self.counters),
            constraint: self.clone(),
        }
    }

    /// Returns the report about its compilation.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the remarks about the constraint; see [`Compiled::remarks`].
    pub fn remarks(&self) -> &Remarks {
        self.inner.remarks()
    }

    /// Returns the constraint as the backend compiled it.
    pub fn inner(&self) -> &Arc<dyn Compiled> {
        &self.inner
    }

    pub(crate) fn backend(&self) -> usize {
        self.backend
    }

    /// Whether it has grown since the last call.
    pub(crate) fn take_grown(&self) -> bool {
        self.has_grown.swap(false, Ordering::Relaxed)
    }

    /// Informs the service that texts were matched, so that it measures the constraint again.
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

/// The matcher for one text. Its work is counted in the service's [statistics](super::Service::statistics).
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

    /// Writes only the differences from the mask that is already in `words`; see [`Matching::update_mask`].
    pub fn update_mask(&mut self, words: &mut [u32], row: &mut MaskRow) -> Result<bool, MatchError> {
        self.counted(|inner| inner.update_mask(words, row))
    }

    /// Returns the mask by reference; see [`Matching::mask_words`].
    pub fn mask_words(&mut self) -> Result<&[u32], MatchError> {
        self.counted(|inner| inner.mask_words())
    }

    /// Returns the mask by reference, and whether it may have changed; see [`Matching::borrow_mask`].
    pub fn borrow_mask(&mut self) -> Result<(&[u32], bool), MatchError> {
        self.counted(|inner| inner.borrow_mask())
    }

    /// Computes a mask, counts it, and times some of them.
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

    /// Accepts a token; see [`Matching::accept`].
    pub fn accept(&mut self, token: TokenId) -> Result<(), MatchError> {
        let result = self.inner.accept(token);
        if result.is_ok() {
            self.tally.token();
        }
        result
    }

    /// Undoes the last steps. A step is a token (an end token counts, too) or one call that accepted bytes.
    pub fn rollback(&mut self, steps: usize) -> Result<(), MatchError> {
        self.inner.rollback(steps)
    }

    /// Returns to the beginning of the text.
    pub fn reset(&mut self) {
        self.inner.reset();
    }

    /// Returns an independent matcher in the same state.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            inner: self.inner.fork(),
            tally: Tally::new(&self.constraint.counters),
            constraint: self.constraint.clone(),
        }
    }

    /// Returns whether the text is complete, and whether it can continue.
    pub fn status(&mut self) -> Status {
        self.inner.status()
    }

    /// Checks whether one token may come next, without computing the whole mask; see [`Matching::allows`].
    pub fn allows(&mut self, token: TokenId) -> Result<bool, MatchError> {
        self.inner.allows(token)
    }

    /// Removes the tokens that may not come next from a list of candidates, such as the model's most likely tokens. For
    /// a short list this is much less work than a mask. After an error the list is unchanged.
    pub fn retain_allowed(&mut self, candidates: &mut Vec<TokenId>) -> Result<(), MatchError> {
        let allowed: Vec<bool> =
            candidates.iter().map(|token| self.inner.allows(*token)).collect::<Result<_, _>>()?;
        let mut allowed = allowed.into_iter();
        candidates.retain(|_| allowed.next().unwrap_or(false));
        Ok(())
    }

    /// Returns how many of these tokens, from the first on, could be accepted one after the other. The matcher does not
    /// change, and nothing is counted.
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

    /// Computes masks that may be needed after the next token, until `until`. Call it while the model computes.
    pub fn prepare(&self, until: Instant) -> Prepared {
        let prepared = self.inner.prepare(&mut || Instant::now() < until);
        self.constraint.counters.prepared(prepared.masks);
        self.constraint.grown();
        prepared
    }

    /// Lets an idle worker of the service do that, if there is one and the [settings](super::Settings::prepare) allow
    /// it. Returns at once, and returns whether there was one.
    pub fn prepare_soon(&self) -> bool {
        let service = self.constraint.service.upgrade();
        service.is_some_and(|service| service.prepare_soon(|| self.fork()))
    }

    /// Returns the backend's matcher, for features that only it has; see [`Matching::as_engine`]. Its use is not
    /// counted.
    pub fn inner(&mut self) -> &mut dyn Matching {
        &mut *self.inner
    }

    /// Returns the constraint that is matched.
    pub fn constraint(&self) -> &Arc<CompiledConstraint> {
        &self.constraint
    }
}

/// Adds the counts of a matcher to those of its constraint.
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
