//! Counts steps, so that no mask and no token takes forever.
//!
//! Every loop calls [`Meter::spend`] and ends when it returns false. The results up to then are incomplete: the code
//! that started the meter sees [`Meter::over`], drops them and reports an error. The meter also checks the [cancel
//! token](maskwright_automata::CancelToken) of the OS thread.

use maskwright_automata::must_stop_now;

use crate::error::MatchError;
use crate::node_visits;

impl MatchError {
    /// Checks whether a limit was exceeded, rather than the constraint violated: another text, or a higher limit, may
    /// work. The matcher is unchanged.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::TooAmbiguous | Self::TooManySteps { .. })
    }

    /// Checks whether the work ended without an answer: at a limit, because it was canceled, or because another engine
    /// gave up. It is then unknown whether a token may come next.
    pub fn is_undecided(&self) -> bool {
        self.is_limit() || matches!(self, Self::Cancelled | Self::GaveUp(_))
    }
}

/// A limit on steps. A step takes about as long as visiting one node of a trie. Without a limit, only the cancel token
/// ends the work.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// The steps until `left`, the node count and the cancel token are checked again.
    credit: u32,
    left: u64,
    over: Option<Over>,
}

/// The reason why work has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The steps are used up.
    Steps,
    /// The work was canceled.
    Stopped,
}

/// The number of steps between two checks of the cancel token.
const STEPS_PER_CHECK: u32 = 4_096;
/// The cost of one byte for one thread, in steps.
pub(crate) const THREAD_STEPS: u32 = 8;

impl Default for Meter {
    fn default() -> Self {
        Self { credit: 0, left: u64::MAX, over: None }
    }
}

impl Meter {
    /// Starts work that may take this many steps.
    pub(crate) fn start(&mut self, steps: u64) {
        *self = Self::with_credit(steps, 0);
    }

    /// Does the same for work that is expected to be short. PERF: most tokens take fewer steps than there are between
    /// two checks.
    #[inline]
    pub(crate) fn start_short(&mut self, steps: u64) {
        *self = Self::with_credit(steps, STEPS_PER_CHECK);
    }

    #[inline]
    fn with_credit(steps: u64, credit: u32) -> Self {
        node_visits::take();
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

    /// Charges the nodes that were visited so far now, instead of at the next check. Returns false if the work has to
    /// end.
    pub(crate) fn look(&mut self) -> bool {
        self.left += u64::from(core::mem::take(&mut self.credit));
        self.refill(0)
    }

    #[cold]
    fn refill(&mut self, steps: u32) -> bool {
        if self.over.is_some() {
            return false;
        }
        let missing = u64::from(steps - self.credit)
            .saturating_add(node_visits::take().saturating_mul(node_visits::NODE_STEPS));
        if self.left < missing {
            (self.over, self.credit) = (Some(Over::Steps), 0);
            return false;
        }
        if must_stop_now() {
            (self.over, self.credit) = (Some(Over::Stopped), 0);
            return false;
        }
        self.left -= missing;
        self.credit = u64::from(STEPS_PER_CHECK).min(self.left) as u32;
        self.left -= u64::from(self.credit);
        true
    }

    /// Returns the number of steps that are left.
    pub(crate) fn left(&self) -> u64 {
        if self.over.is_some() { 0 } else { self.left + u64::from(self.credit) }
    }

    /// Ends the work because a part of it had to end.
    pub(crate) fn give_up(&mut self) {
        (self.over, self.credit) = (self.over.or(Some(Over::Steps)), 0);
    }

    /// Returns why the work has to end, if it has to.
    #[inline]
    pub(crate) fn over(&self) -> Option<Over> {
        self.over
    }

    /// Ends the metered work. Returns why it had to end early, if it had to.
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
        for limit in [0, 1, 7, u64::from(STEPS_PER_CHECK), 10_000] {
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
        assert!(meter.spend(STEPS_PER_CHECK));
        node_visits::count(60_000);
        assert!(!meter.spend(STEPS_PER_CHECK + 1));
        // Nodes that were visited before the start are not charged.
        node_visits::count(60_000);
        meter.start(100_000);
        assert!(meter.spend(STEPS_PER_CHECK) && meter.spend(STEPS_PER_CHECK + 1));
    }
}
