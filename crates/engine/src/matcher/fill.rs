//! Computes the mask of a matcher, in a row of the caller or by reference.

use maskwright_vocab::TokenMask;

use super::borrowed::BorrowedMask;
use super::row::{MaskRow, RowSink};
use super::{MatchError, Matcher, Strategy};
use crate::budget::mask::InTime;
use crate::distinct::filter::DistinctFilter;
use crate::distinct::trial::{KnownExits, Trial};
use crate::parser::mask::{MaskBuffers, Masker, Sink};
use crate::parser::meter::Over;
use crate::parser::row::Row;

impl Matcher {
    /// Writes the mask: bit t % 32 of word t / 32 says whether token t may come next. Words beyond the vocabulary are
    /// cleared.
    pub fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        self.update_mask(words, &mut MaskRow::untracked()).map(drop)
    }

    /// Updates the mask in words that were filled before, using the [knowledge](MaskRow) about them: only differences
    /// are written. Returns whether there were any; if not, the words already held this mask.
    pub fn update_mask(&mut self, words: &mut [u32], row: &mut MaskRow) -> Result<bool, MatchError> {
        let need = self.bound.vocabulary().size().div_ceil(32);
        if words.len() < need {
            return Err(MatchError::MaskTooShort { words: need });
        }
        let mut multi_value = core::mem::take(&mut self.multi_value);
        multi_value.clear();
        let memo = self.has_usual_ends().then(|| self.bound.memo().id());
        let mut sink = RowSink::new(row.with(words), &mut multi_value, memo);
        let has_changed = if self.now().terminated {
            sink.finish().finish(false)
        } else {
            let (accepting, in_time) = self.parts(&mut sink);
            let mut written = sink.finish();
            let as_is = in_time.is_none() && !self.must_differ(&multi_value);
            self.correct(&multi_value, accepting, in_time, &mut written.row);
            written.finish(as_is)
        };
        self.multi_value = multi_value;
        self.within_limits().inspect_err(|_| {
            words.fill(0);
            row.forget();
        })?;
        Ok(has_changed)
    }

    /// Returns an error if the work just done had to end early, in which case its result is incomplete.
    #[inline]
    pub(super) fn within_limits(&mut self) -> Result<(), MatchError> {
        self.buffers.meter.finish().map_or(Ok(()), |over| Err(self.over(over)))
    }

    /// Does the same for work that continues.
    pub(super) fn within_limits_so_far(&mut self) -> Result<(), MatchError> {
        self.buffers.meter.over().map_or(Ok(()), |over| Err(self.over(over)))
    }

    #[cold]
    fn over(&mut self, over: Over) -> MatchError {
        // Results of searches may be incomplete as well.
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

    /// Returns the mask by reference: the same words as [`Self::fill_mask`] writes, but faster. Shared words are not
    /// copied, and otherwise only the differences from the mask before are written.
    pub fn mask_words(&mut self) -> Result<&[u32], MatchError> {
        Ok(self.show_mask()?.words())
    }

    /// Returns the mask by reference, and whether it may differ from that of the last such call.
    pub fn borrow_mask(&mut self) -> Result<(&[u32], bool), MatchError> {
        let borrowed = self.show_mask()?;
        let has_changed = borrowed.take_changed();
        Ok((borrowed.words(), has_changed))
    }

    fn show_mask(&mut self) -> Result<&mut BorrowedMask, MatchError> {
        let mut borrowed = self.borrowed.take().unwrap_or_default();
        let mut multi_value = core::mem::take(&mut self.multi_value);
        multi_value.clear();
        let (size, has_usual_ends) = (self.bound.vocabulary().size(), self.has_usual_ends());
        let mut sink = borrowed.start(size.div_ceil(32), &mut multi_value, has_usual_ends);
        if self.now().terminated {
            sink.finish();
            borrowed.finish(false);
        } else {
            let (accepting, in_time) = self.parts(&mut sink);
            sink.finish();
            let as_is = has_usual_ends && in_time.is_none() && !self.must_differ(&multi_value);
            self.correct(&multi_value, accepting, in_time, &mut *borrowed);
            borrowed.finish(as_is);
        }
        self.multi_value = multi_value;
        if let Err(error) = self.within_limits() {
            // The row holds an incomplete mask, which the next one must not be built on.
            self.borrowed = None;
            return Err(error);
        }
        Ok(self.borrowed.insert(borrowed))
    }

    /// Passes the parts of the mask to a sink. Returns whether the text may end, and, with a budget, what can be
    /// finished in time.
    fn parts(&mut self, sink: &mut dyn Sink) -> (bool, Option<InTime>) {
        let marks = self.marks();
        let steps = self.step_limit();
        self.buffers.meter.start(steps);
        let accepting = self.gather_threads();
        sink.start(accepting);
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

    /// Corrects a mask by what its parts do not know: which values must be new, what can be finished in time, and how
    /// the text ends.
    fn correct(&mut self, multi_value: &[u32], accepting: bool, in_time: Option<InTime>, row: &mut dyn Row) {
        let must_differ = self.must_differ(multi_value);
        let mut added = if must_differ { self.keep_distinct(multi_value, row) } else { Vec::new() };
        if let Some(mut in_time) = in_time {
            in_time.untried.append(&mut added);
            if must_differ {
                self.try_values(multi_value, &mut in_time);
            }
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

    /// Returns how many masks, or parts of masks, this matcher has computed because they were not cached.
    pub fn computed_masks(&self) -> u64 {
        self.buffers.computed
    }

    /// Checks whether the text ends as the vocabulary says.
    fn has_usual_ends(&self) -> bool {
        self.stops.is_none() && self.eos_in_mask
    }

    /// Checks whether the mask may contain tokens that repeat a value.
    fn must_differ(&self, multi_value: &[u32]) -> bool {
        let Some(distinct) = &self.distinct else { return false };
        let is_new =
            multi_value.is_empty() && distinct.registers.is_empty() && self.bound.program().has_plain_lists();
        !is_new || self.strategy == Strategy::Reference
    }

    /// Removes the tokens that repeat a value from a mask. Returns the tokens that it adds.
    fn keep_distinct(&mut self, multi_value: &[u32], row: &mut dyn Row) -> Vec<u32> {
        let is_fast = self.strategy == Strategy::Fast && !self.bound.vocabulary().is_numbered();
        let Some(trial) = self.trial() else { return Vec::new() };
        let mut filter = DistinctFilter::new(trial, row);
        if is_fast {
            filter.apply(multi_value);
        } else {
            filter.try_all();
        }
        filter.into_added()
    }

    /// Returns a [`Trial`] to try bytes in, if values must differ.
    pub(super) fn trial(&mut self) -> Option<Trial<'_>> {
        let start = self.now().start as usize;
        let distinct = self.distinct.as_mut()?;
        let known_exits = KnownExits::new(&self.arena);
        Some(Trial {
            bound: &self.bound,
            known_exits,
            arena: &mut self.arena,
            registers: &mut distinct.registers,
            buffers: &mut self.buffers,
            text: &mut distinct.text,
            searches: &mut distinct.searches,
            threads: self.history.since(start),
        })
    }

    /// Returns the mask. The matcher keeps it until the next call.
    pub fn mask(&mut self) -> Result<&TokenMask, MatchError> {
        let size = self.bound.vocabulary().size();
        let mask = TokenMask::from_words(self.mask_words()?, size);
        Ok(self.mask.insert(mask))
    }

    /// Returns how many steps a mask or a token may take. The reference may take as many as it needs.
    #[inline]
    pub(super) fn step_limit(&self) -> u64 {
        if self.strategy == Strategy::Reference { u64::MAX } else { self.bound.program().limits().mask_steps }
    }
}
