//! The mask of a matcher: copied into a row of the caller's, or by reference.

use maskwright_vocab::TokenMask;

use super::{MatchError, Matcher, Strategy};
use crate::budget::mask::InTime;
use crate::distinct::filter::DistinctFilter;
use crate::distinct::trial::Trial;
use crate::library::{AnswerId, Difference, Library, Part, Words, set_bits};
use crate::parser::mask::{MaskBuffers, Masker, Sink};
use crate::parser::meter::Over;
use crate::parser::row::Row;

impl Matcher {
    /// Writes the mask: bit t % 32 of word t / 32 says whether token t may come next. Words beyond the vocabulary are
    /// cleared.
    pub fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        let need = self.bound.vocabulary().size().div_ceil(32);
        if words.len() < need {
            return Err(MatchError::MaskTooShort { words: need });
        }
        if self.now().terminated {
            words.fill(0);
            return Ok(());
        }
        let mut multi_value = core::mem::take(&mut self.multi_value);
        multi_value.clear();
        let mut fill = Fill::new(words, &mut multi_value);
        let (accepting, in_time) = self.parts(&mut fill);
        fill.finish();
        self.correct(&multi_value, accepting, in_time, &mut &mut *words);
        self.multi_value = multi_value;
        self.within_limits().inspect_err(|_| words.fill(0))
    }

    /// Says so if the work that was just done had to end early. What it has found is incomplete then.
    #[inline]
    pub(super) fn within_limits(&mut self) -> Result<(), MatchError> {
        self.buffers.meter.finish().map_or(Ok(()), |over| Err(self.over(over)))
    }

    /// The same for work that goes on.
    pub(super) fn within_limits_so_far(&mut self) -> Result<(), MatchError> {
        self.buffers.meter.over().map_or(Ok(()), |over| Err(self.over(over)))
    }

    #[cold]
    fn over(&mut self, over: Over) -> MatchError {
        // What a search has found may be incomplete as well.
        if let Some(distinct) = &mut self.distinct {
            distinct.searches.clear();
        }
        match over {
            Over::Stopped => MatchError::Cancelled,
            Over::Steps => MatchError::TooManySteps {
                steps: self.bound.program().limits().mask_steps,
                rule: self.rule().into(),
            },
        }
    }

    /// The mask by reference: the same words as [`Self::fill_mask`] writes, and quicker, because they are not copied where they
    /// lie ready, and otherwise only changed where they differ from the mask before.
    pub fn mask_words(&mut self) -> Result<&[u32], MatchError> {
        let mut borrowed = self.borrowed.take().unwrap_or_default();
        let mut multi_value = core::mem::take(&mut self.multi_value);
        multi_value.clear();
        let mut sink = borrowed.start(self.bound.vocabulary().size().div_ceil(32), &mut multi_value);
        if self.now().terminated {
            sink.finish();
        } else {
            let (accepting, in_time) = self.parts(&mut sink);
            sink.finish();
            self.correct(&multi_value, accepting, in_time, &mut *borrowed);
        }
        self.multi_value = multi_value;
        if let Err(error) = self.within_limits() {
            // The row holds half a mask, which the next one must not be built on.
            self.borrowed = None;
            return Err(error);
        }
        Ok(self.borrowed.insert(borrowed).words())
    }

    /// Hands the parts of the mask to a sink. Returns whether the text may end, and what can be finished in time, if there is a budget.
    fn parts(&mut self, sink: &mut dyn Sink) -> (bool, Option<InTime>) {
        let marks = self.marks();
        let steps = self.step_limit();
        self.buffers.meter.start(steps);
        let accepting = self.gather_threads();
        let current = core::mem::take(&mut self.current);
        let mut scratch = MaskBuffers::of_thread();
        let mut masker = Masker {
            bound: &self.bound,
            arena: &self.arena,
            buffers: &mut self.buffers,
            scratch: &mut scratch,
        };
        // PERF: leaves first. Their masks are mostly bitsets, and a bitset is copied into an empty row but must be
        // united with one that is not.
        for in_network in [false, true] {
            for &thread in current.iter().filter(|thread| thread.is_in_network() == in_network) {
                match self.strategy {
                    _ if thread.is_done() => {}
                    Strategy::Fast => masker.mask(thread, sink),
                    Strategy::Reference => masker.plain(thread, sink),
                }
            }
        }
        scratch.give_back();
        let in_time = if self.is_bounded() { self.in_time(&current) } else { None };
        self.current = current;
        self.truncate(marks);
        (accepting, in_time)
    }

    /// What its parts do not know of a mask: which values must be new, what can be finished in time, and how the text ends.
    fn correct(&mut self, multi_value: &[u32], accepting: bool, in_time: Option<InTime>, row: &mut dyn Row) {
        if self.must_differ(multi_value) {
            self.keep_distinct(multi_value, row);
        }
        if let Some(in_time) = in_time {
            self.keep_in_time(in_time, row.words_mut());
        }
        for &token in self.stops() {
            if accepting && self.eos_in_mask {
                row.set(token.0, true);
            } else if !self.bound.vocabulary().is_special(token) {
                row.set(token.0, false);
            }
        }
    }

    /// Whether the mask may hold tokens that repeat a value.
    fn must_differ(&self, multi_value: &[u32]) -> bool {
        let Some(distinct) = &self.distinct else { return false };
        let is_new = multi_value.is_empty()
            && distinct.registers.is_empty()
            && self.bound.program().has_plain_scopes();
        !is_new || self.strategy == Strategy::Reference
    }

    /// Takes the tokens that repeat a value out of a mask.
    fn keep_distinct(&mut self, multi_value: &[u32], row: &mut dyn Row) {
        let is_fast = self.strategy == Strategy::Fast && !self.bound.vocabulary().is_numbered();
        if let Some(trial) = self.trial() {
            let mut filter = DistinctFilter::new(trial, row);
            if is_fast {
                filter.apply(multi_value);
            } else {
                filter.try_all();
            }
        }
    }

    /// Room to try bytes in, if values must differ.
    pub(super) fn trial(&mut self) -> Option<Trial<'_>> {
        let start = self.now().start as usize;
        let distinct = self.distinct.as_mut()?;
        Some(Trial {
            bound: &self.bound,
            arena: &mut self.arena,
            registers: &mut distinct.registers,
            buffers: &mut self.buffers,
            text: &mut distinct.text,
            searches: &mut distinct.searches,
            threads: self.history.since(start),
        })
    }

    /// The mask, kept by the matcher until it changes.
    pub fn mask(&mut self) -> Result<&TokenMask, MatchError> {
        let size = self.bound.vocabulary().size();
        let mask = TokenMask::from_words(self.mask_words()?, size);
        Ok(self.mask.insert(mask))
    }

    /// How many steps a mask or a token may take. What others are compared with may take as long as it needs.
    #[inline]
    pub(super) fn step_limit(&self) -> u64 {
        if self.strategy == Strategy::Reference { u64::MAX } else { self.bound.program().limits().mask_steps }
    }
}

/// Writes the union of parts into a row of words.
pub(super) struct Fill<'w> {
    words: &'w mut [u32],
    started: bool,
    multi_value: &'w mut Vec<u32>,
}

impl<'w> Fill<'w> {
    pub(super) fn new(words: &'w mut [u32], multi_value: &'w mut Vec<u32>) -> Self {
        Self { words, started: false, multi_value }
    }

    /// Adds to what the words hold already.
    pub(super) fn onto(words: &'w mut [u32], multi_value: &'w mut Vec<u32>) -> Self {
        Self { words, started: true, multi_value }
    }

    fn set(&mut self, tokens: &[u32]) {
        set_bits(self.words, tokens);
    }

    fn clear(&mut self, tokens: &[u32]) {
        for token in tokens {
            self.words[*token as usize / 32] &= !(1 << (token % 32));
        }
    }

    /// To be called behind the last part.
    pub(super) fn finish(&mut self) {
        if !self.started {
            self.words.fill(0);
        }
    }
}

impl Sink for Fill<'_> {
    #[inline]
    fn part(&mut self, _: &Library, _: Option<AnswerId>, part: &Part, multi_value: &[u32], less: &[Words]) {
        self.multi_value.extend_from_slice(multi_value);
        let lists = || less.iter().map(|list| &**list).chain([part.less()]);
        // What another part allows stays allowed.
        let is_allowed = |words: &[u32], token: u32| words[token as usize / 32] >> (token % 32) & 1 == 1;
        let others: Vec<u32> = if self.started {
            lists().flatten().copied().filter(|&token| is_allowed(self.words, token)).collect()
        } else {
            Vec::new()
        };
        match part {
            Part::List(list) => {
                self.finish();
                self.set(list);
            }
            Part::Shared { base, more } | Part::Difference(Difference { base, more, .. }) => {
                if self.started {
                    self.words.iter_mut().zip(base.iter()).for_each(|(word, base)| *word |= base);
                } else {
                    let (used, beyond) = self.words.split_at_mut(base.len());
                    used.copy_from_slice(base);
                    beyond.fill(0);
                }
                self.set(more);
            }
        }
        lists().for_each(|list| self.clear(list));
        self.set(&others);
        self.started = true;
    }
}

/// Fills the masks of many matchers at once, in parallel. `masks` holds one row of `stride` words for each. An error concerns one matcher: the rows
/// of all others are filled all the same, and its own is cleared. The first error is returned, with the number of its row.
pub fn fill_masks(
    matchers: &mut [Matcher],
    masks: &mut [u32],
    stride: usize,
) -> Result<(), (usize, MatchError)> {
    use rayon::prelude::*;
    if masks.len() < matchers.len() * stride {
        let row = masks.len() / stride.max(1);
        return Err((row, MatchError::MaskTooShort { words: matchers.len() * stride }));
    }
    let fill = |(at, (matcher, row)): (usize, (&mut Matcher, &mut [u32]))| {
        matcher.fill_mask(row).err().map(|error| {
            row.fill(0);
            (at, error)
        })
    };
    let rows = matchers.par_iter_mut().zip(masks.par_chunks_mut(stride.max(1))).enumerate();
    rows.filter_map(fill).min_by_key(|(at, _)| *at).map_or(Ok(()), Err)
}
