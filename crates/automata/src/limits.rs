//! Limits on the work and memory of a construction, and the error when they are exceeded.

use core::fmt;

use crate::stop::must_stop_now;

/// The resources that a construction may use. Limits are counted, not timed, so that the result is the same on every
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The greatest number of states of an NFA, and of a DFA.
    pub states: usize,
    /// The greatest number of elementary steps: threads visited by the subset construction, derivatives computed. For a
    /// lazy automaton this applies to each query, not to its whole lifetime.
    pub steps: usize,
    /// The greatest number of bytes of tables and expressions.
    pub bytes: usize,
}

impl Default for Limits {
    /// Returns 100,000 states, 10 million steps, 64 MiB: at most some tenths of a second.
    fn default() -> Self {
        Self { states: 100_000, steps: 10_000_000, bytes: 64 << 20 }
    }
}

/// The resource that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// [`Limits::states`].
    States,
    /// [`Limits::steps`].
    Steps,
    /// [`Limits::bytes`].
    Bytes,
    /// Time: the construction was asked to [stop](crate::CancelToken).
    Time,
}

/// An automaton would need more than its [`Limits`] allow.
///
/// ```
/// use maskwright_automata::{ByteSet, Dfa, Exprs, Limits, Resource};
///
/// let mut e = Exprs::new();
/// let letter = e.set(ByteSet::range(b'a', b'z'));
/// let long = e.repeat(letter, 100, Some(100));
/// let error = Dfa::build(&mut e, long, &Limits { states: 10, ..Limits::default() }).unwrap_err();
/// assert_eq!((error.resource(), error.limit()), (Resource::States, 10));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LimitError {
    resource: Resource,
    limit: usize,
}

impl LimitError {
    /// Returns the resource that ran out.
    pub fn resource(&self) -> Resource {
        self.resource
    }

    /// Returns how much of it was allowed.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.resource {
            Resource::Time => return f.write_str("the construction was cancelled"),
            Resource::States => "states",
            Resource::Steps => "steps of work",
            Resource::Bytes => "bytes of memory",
        };
        write!(
            f,
            "the automaton needs more than {} {what}; lower a repetition bound, split the expression, or raise the limit",
            self.limit
        )
    }
}

impl core::error::Error for LimitError {}

impl Limits {
    /// Fails if there are more states than allowed, or if the work has to stop.
    pub(crate) fn check_states(&self, states: usize) -> Result<(), LimitError> {
        if states.is_multiple_of(STEPS_BETWEEN_CHECKS / 4) && must_stop_now() {
            return Err(STOPPED);
        }
        Self::check(states, self.states, Resource::States)
    }

    /// Fails if there are more bytes than allowed.
    pub(crate) fn check_bytes(&self, bytes: usize) -> Result<(), LimitError> {
        Self::check(bytes, self.bytes, Resource::Bytes)
    }

    /// Creates a meter for [`Limits::steps`].
    pub(crate) fn fuel(&self) -> Fuel {
        Fuel { used: 0, limit: self.steps, next_check: STEPS_BETWEEN_CHECKS }
    }

    fn check(used: usize, limit: usize, resource: Resource) -> Result<(), LimitError> {
        // Ids are u32 and their largest value means "none" in the tables.
        if used <= limit && used < u32::MAX as usize { Ok(()) } else { Err(LimitError { resource, limit }) }
    }
}

const STOPPED: LimitError = LimitError { resource: Resource::Time, limit: 0 };

/// The number of steps after which a construction checks whether it has to stop: a few times per millisecond.
const STEPS_BETWEEN_CHECKS: usize = 4_096;

/// A counter of steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fuel {
    used: usize,
    limit: usize,
    /// The number of steps at which to check again whether the work has to stop.
    next_check: usize,
}

impl Fuel {
    /// Spends some steps. Fails if there are not enough left, or if the work has to stop.
    #[inline]
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), LimitError> {
        self.used = self.used.saturating_add(steps);
        if self.used > self.limit {
            return Err(LimitError { resource: Resource::Steps, limit: self.limit });
        }
        if self.used > self.next_check {
            return self.check();
        }
        Ok(())
    }

    #[cold]
    fn check(&mut self) -> Result<(), LimitError> {
        self.next_check = self.used.saturating_add(STEPS_BETWEEN_CHECKS);
        if must_stop_now() { Err(STOPPED) } else { Ok(()) }
    }
}
