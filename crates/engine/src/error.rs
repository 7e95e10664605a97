//! The reasons why a token or some bytes cannot be accepted.

use core::fmt;

/// The reason why a token or some bytes could not be accepted. The matcher is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchError {
    /// The token cannot come next.
    NotAllowed {
        /// The number of its bytes that could have been accepted.
        bytes: usize,
    },
    /// The text is not complete, so it cannot end here.
    NotComplete,
    /// The end was already accepted.
    Terminated,
    /// The token is unused, or stands for no text.
    NoText,
    /// There is no such token in the vocabulary.
    UnknownToken,
    /// There are fewer steps to undo than requested.
    NothingToUndo {
        /// The number of steps that can be undone.
        steps: usize,
    },
    /// The text is so ambiguous that following all its readings exceeds a limit.
    TooAmbiguous,
    /// The mask, or taking the token, needs more steps than [`Limits::mask_steps`](crate::Limits::mask_steps).
    TooManySteps {
        /// The limit.
        steps: u64,
        /// The grammar rule in which the text currently is.
        rule: Box<str>,
    },
    /// The work was canceled by the [cancel token](maskwright_automata::CancelToken) of the OS thread.
    Cancelled,
    /// The grammar allows the token, but the text, or a limited part of it, could then not be completed in time.
    OutOfTokens,
    /// Another engine behind the same interface gave up for this reason. It cannot continue.
    GaveUp(Box<str>),
    /// The buffer for the mask is too small.
    MaskTooShort {
        /// The number of words that the mask needs.
        words: usize,
    },
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed { bytes } => write!(f, "not allowed here: it fails after {bytes} of its bytes"),
            Self::NotComplete => f.write_str("the text is not complete, so it cannot end here"),
            Self::Terminated => f.write_str("the end was accepted before; roll back or reset first"),
            Self::NoText => f.write_str("the token is unused or has no text"),
            Self::UnknownToken => f.write_str("there is no such token in the vocabulary"),
            Self::NothingToUndo { steps } => write!(f, "only {steps} steps can be undone"),
            Self::TooAmbiguous => {
                f.write_str("the text has too many readings under this grammar; make it less ambiguous")
            }
            Self::TooManySteps { steps, rule } => write!(
                f,
                "more than {steps} steps are needed here, in rule `{rule}`: the constraint has too many readings, or too few \
                 values are left where values must differ; make repetitions and alternatives in it less ambiguous, demand \
                 fewer different values, or raise the limit `mask_steps`"
            ),
            Self::Cancelled => f.write_str("the work was cancelled"),
            Self::OutOfTokens => {
                f.write_str("not allowed here: too few tokens would be left to complete the text")
            }
            Self::GaveUp(reason) => write!(f, "the engine gave up: {reason}"),
            Self::MaskTooShort { words } => write!(f, "the mask needs {words} words of 32 bits"),
        }
    }
}

impl core::error::Error for MatchError {}
