//! Counting steps, so that no mask and no token takes for ever.
//!
//! Whoever loops asks [`Meter::spend`] and ends its loop when it says no. What has been found by then is incomplete; whoever started the
//! meter sees [`Meter::over`], throws it away and reports an error. The meter also listens to the
//! [cancel token](maskwright_automata::CancelToken) of the thread.

use maskwright_automata::must_stop_now;

use crate::error::MatchError;
use crate::looked;

impl MatchError {
    /// Whether a limit was met, and not the constraint: another text, or a higher limit, may do. The matcher is as before.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::TooAmbiguous | Self::TooManySteps { .. })
    }

    /// Whether the work ended before there was an answer: at a limit, because it was told to stop, or because another engine gave up. Then it is not known
    /// whether a token may come next.
    pub fn is_undecided(&self) -> bool {
        self.is_limit() || matches!(self, Self::Cancelled | Self::GaveUp(_))
    }
}

/// A limit on steps. A step is about as long as looking at one node of a trie. Without a limit only the stop token ends work.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// Steps until the next look at everything else.
    credit: u32,
    left: u64,
    over: Option<Over>,
}

/// Why work has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The steps are used up.
    Steps,
    /// The work was told to stop.
    Stopped,
}

/// So many steps are taken between two looks at the stop token.
const CHUNK: u32 = 4_096;
/// What one byte for one thread costs, in steps.
pub(crate) const THREAD_STEPS: u32 = 8;

impl Default for Meter {
    fn default() -> Self {
        Self { credit: 0, left: u64::MAX, over: None }
    }
}

impl Meter {
    /// Work begins that may take so many steps.
    pub(crate) fn start(&mut self, steps: u64) {
        *self = Self::with_credit(steps, 0);
    }

    /// The same for work that is expected to be short. PERF: most tokens are taken in fewer steps than there are between two looks.
    #[inline]
    pub(crate) fn start_short(&mut self, steps: u64) {
        *self = Self::with_credit(steps, CHUNK);
    }

    #[inline]
    fn with_credit(steps: u64, credit: u32) -> Self {
        looked::take();
        let credit = u64::from(credit).min(steps) as u32;
        Self { credit, left: steps - u64::from(credit), over: None }
    }

    /// Takes some steps. Returns false if the work has to end.
    #[inline]
    pub(crate) fn spend(&mut self, steps: u32) -> bool {
        if steps <= self.credit {
            self.credit -= steps;
            return true;
        }
        self.refill(steps)
    }

    /// Counts what was looked at so far now, and not later. Returns false if the work has to end.
    pub(crate) fn look(&mut self) -> bool {
        self.left += u64::from(core::mem::take(&mut self.credit));
        self.refill(0)
    }

    #[cold]
    fn refill(&mut self, steps: u32) -> bool {
        if self.over.is_some() {
            return false;
        }
        let missing =
            u64::from(steps - self.credit).saturating_add(looked::take().saturating_mul(looked::NODE_STEPS));
        if self.left < missing {
            (self.over, self.credit) = (Some(Over::Steps), 0);
            return false;
        }
        if must_stop_now() {
            (self.over, self.credit) = (Some(Over::Stopped), 0);
            return false;
        }
        self.left -= missing;
        self.credit = u64::from(CHUNK).min(self.left) as u32;
        self.left -= u64::from(self.credit);
        true
    }

    /// How many steps are left.
    pub(crate) fn left(&self) -> u64 {
        if self.over.is_some() { 0 } else { self.left + u64::from(self.credit) }
    }

    /// The work has to end, because a part of it had to.
    pub(crate) fn give_up(&mut self) {
        (self.over, self.credit) = (self.over.or(Some(Over::Steps)), 0);
    }

    /// Whether the work has to end, and why.
    #[inline]
    pub(crate) fn over(&self) -> Option<Over> {
        self.over
    }

    /// The work is over. Returns why, if it had to end early.
    #[inline]
    pub(crate) fn finish(&mut self) -> Option<Over> {
        let over = self.over;
        *self = Self::default();
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_as_many_steps_as_allowed() {
        for limit in [0, 1, 7, u64::from(CHUNK), 10_000] {
            for start in [Meter::start, Meter::start_short] {
                let mut meter = Meter::default();
                start(&mut meter, limit);
                let taken = (0..20_000).take_while(|_| meter.spend(1)).count();
                assert_eq!(taken as u64, limit);
                assert_eq!(meter.over(), Some(Over::Steps));
                assert!(!meter.spend(1));
                assert_eq!(meter.finish(), Some(Over::Steps));
                assert!(meter.spend(1));
            }
        }
    }

    #[test]
    fn nodes_that_were_looked_at_count() {
        let mut meter = Meter::default();
        meter.start(100_000);
        assert!(meter.spend(CHUNK));
        looked::count(60_000);
        assert!(!meter.spend(CHUNK + 1));
        // What was looked at before is nobody's.
        looked::count(60_000);
        meter.start(100_000);
        assert!(meter.spend(CHUNK) && meter.spend(CHUNK + 1));
    }
}
