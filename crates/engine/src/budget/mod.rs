//! A guaranteed finish: with a limited number of tokens left, only what can still be completed is allowed.
//!
//! A model that is cut off in the middle of a document has produced nothing useful. With a budget, the matcher prevents
//! this: while there is time, masks are the usual ones, and when time runs short, they lose the tokens after which the
//! text could no longer be completed.
//!
//! ```text
//!   {"name": "Ada", "tags": ["x", …      3 tokens left: no further item, but `"`, `]`, `}` or `"]}`
//! ```
//! The same holds for parts of a text with a limit of their own ([`Expr::Limit`](maskwright_grammar::Expr::Limit)). The
//! distance to the end is known for every place ([`crate::library`]). [`deadline`] computes what threads need and have,
//! and [`mask`] which tokens are in time.
//!
//! Where values must differ, a value may have to be longer than the shortest one. That cost is computed in
//! [`crate::library`] for values that have not begun, and in [`least`] for the current one.

pub(crate) mod deadline;
pub(crate) mod least;
pub(crate) mod mask;

use core::fmt;
use std::sync::Arc;

use maskwright_vocab::TokenId;
use rustc_hash::FxHashMap;

use self::least::ENDLESS;

/// The number of tokens that a text may still take, including the one that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The number of tokens.
    pub tokens: u32,
}

impl Budget {
    /// Creates a budget of `tokens` tokens, including the one that ends the text.
    pub fn new(tokens: u32) -> Self {
        Self { tokens }
    }
}

/// Why a budget cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetError {
    /// It takes more tokens to complete the text.
    TooSmall {
        /// The tokens of the budget.
        tokens: u32,
        /// The number of tokens that is enough, including the one that ends the text.
        need: u32,
    },
    /// No way to complete the text with this vocabulary is known.
    NoWay,
    /// Some values must differ, and the distance to a new one is not known.
    Values,
    /// The search for a way to complete the text was cut short: it takes more steps than a mask may.
    Cut {
        /// The number of steps.
        steps: u64,
    },
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { tokens, need } => {
                write!(f, "a budget of {tokens} tokens is too small: {need} are needed to complete the text")
            }
            Self::NoWay => f.write_str("with this vocabulary no way to complete the text is known"),
            Self::Cut { steps } => write!(
                f,
                "the search for the shortest way to complete the text was cut after {steps} steps, so whether a budget is enough is not known; require fewer keys, do without the budget, \
                 or raise the limit `mask_steps`"
            ),
            Self::Values => f.write_str(
                "the constraint has values that must differ and may run out, as the items of an array with `uniqueItems`, or many keys in any order, and how far it is to \
                 its end is not known; do without them, or without the budget",
            ),
        }
    }
}

impl core::error::Error for BudgetError {}

/// What a matcher needs to finish in time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines {
    /// The number of the last token of the budget, the one that ends the text; `None` without a budget. Then only
    /// limited parts of the text have a deadline.
    pub(crate) finish: Option<u32>,
    /// Number of tokens needed from each state.
    pub(crate) distances: FxHashMap<u32, u32>,
    /// Whether there is only the upper bound, because finding the least numbers would take too long.
    pub(crate) has_upper_bound_only: bool,
    /// Whether tokens were removed from a mask since the budget was set.
    pub(crate) is_squeezed: bool,
    /// The tokens that the last mask found to be in time, until the text advances or goes back. Such a token is not
    /// judged again: a search that was short enough for the mask may be too long later, because what is cached of
    /// others has changed.
    pub(crate) in_time: Option<Arc<[u32]>>,
}

impl Deadlines {
    /// Returns the number of the token that ends the text at the latest.
    pub(crate) fn finish(&self) -> i64 {
        self.finish.map_or(ENDLESS, i64::from)
    }

    /// Checks whether a mask has found a token to be in time.
    pub(crate) fn is_known(&self, token: TokenId) -> bool {
        let words = self.in_time.as_deref().unwrap_or_default();
        words.get(token.0 as usize / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1)
    }
}
