//! Classifies errors by the kind of failure, for programs that must decide how to react.

use maskwright_automata::{LimitError, Resource};
use maskwright_engine::{BudgetError, CompileError, IndexError, MatchError};
use maskwright_frontend::choice::ChoiceError;
use maskwright_frontend::{json_schema, tag};
use maskwright_grammar::Cause;

use crate::{Error, service};

/// The kind of failure of an error. It determines the Python exception, the C status and the HTTP status.
///
/// ```
/// use maskwright::{Category, Constraint, MatchError, Options};
///
/// let refused = |constraint: Constraint| constraint.grammar(&Options::default(), None).unwrap_err().category();
/// assert_eq!(refused(Constraint::regex("(a")), Category::Invalid);
/// let old = r#"{"$schema": "http://json-schema.org/draft-03/schema#"}"#;
/// assert_eq!(refused(Constraint::json_schema(old)), Category::Unsupported);
/// assert_eq!(Category::from(&MatchError::UnknownToken), Category::UnknownToken);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The constraint is invalid.
    Invalid,
    /// The constraint may be valid, but cannot be enforced exactly.
    Unsupported,
    /// A limit on size or steps was exceeded.
    Limit,
    /// Compiling took longer than allowed.
    Timeout,
    /// The work was cancelled.
    Cancelled,
    /// There is too much work already; try again later.
    Busy,
    /// The service was closed.
    Closed,
    /// The token or the text may not come next.
    NotAllowed,
    /// There is no such token.
    UnknownToken,
    /// The text cannot be completed within a budget of tokens.
    Budget,
    /// A buffer is too short.
    BufferTooShort,
    /// The call is invalid, for example because it undoes more steps than were taken.
    Argument,
    /// A bug, here or in another backend.
    Internal,
}

impl Error {
    /// Returns the kind of failure. If there are several problems, the worst kind counts: invalid before unsupported,
    /// then limit, then cancelled.
    pub fn category(&self) -> Category {
        match self {
            // A feature that a notation does not have is a mistake in the constraint.
            Self::Backend { .. } => Category::Invalid,
            Self::Source(diagnostics) => worst(diagnostics.iter().map(|diagnostic| match diagnostic.cause {
                Cause::Limit => Category::Limit,
                Cause::Stopped => Category::Cancelled,
                _ => Category::Invalid,
            })),
            Self::Choice(error) => match error {
                ChoiceError::TooMany { .. } | ChoiceError::TooLong { .. } => Category::Limit,
                ChoiceError::Stopped => Category::Cancelled,
                _ => Category::Invalid,
            },
            Self::Schema(error) => worst(error.problems().iter().map(|problem| match problem.reason {
                json_schema::Reason::Unsupported => Category::Unsupported,
                json_schema::Reason::Limit => Category::Limit,
                json_schema::Reason::Stopped => Category::Cancelled,
                _ => Category::Invalid,
            })),
            Self::Tag(error) => worst(error.problems().iter().map(|problem| match problem.reason {
                tag::Reason::Unsupported => Category::Unsupported,
                tag::Reason::Limit => Category::Limit,
                tag::Reason::Stopped => Category::Cancelled,
                _ => Category::Invalid,
            })),
            Self::Compile(error) => error.into(),
            Self::Unsupported { .. } => Category::Unsupported,
            Self::Index(error) => error.into(),
        }
    }
}

fn worst(categories: impl Iterator<Item = Category>) -> Category {
    let rank = |category: &Category| match category {
        Category::Cancelled => 0,
        Category::Limit => 1,
        Category::Unsupported => 2,
        _ => 3,
    };
    categories.max_by_key(rank).unwrap_or(Category::Invalid)
}

impl service::Error {
    /// Returns the kind of failure.
    pub fn category(&self) -> Category {
        match self {
            Self::Refused(error) => error.category(),
            Self::TooLong { .. } => Category::Timeout,
            Self::TooLarge { .. } | Self::TooMuchText { .. } => Category::Limit,
            Self::Panicked { .. } => Category::Internal,
            Self::Busy { .. } => Category::Busy,
            Self::Closed => Category::Closed,
        }
    }
}

impl From<&CompileError> for Category {
    fn from(error: &CompileError) -> Self {
        match error {
            CompileError::TooManyExprs { .. }
            | CompileError::TooDeep { .. }
            | CompileError::TooBig { .. }
            | CompileError::LeftRecursionTooBig { .. }
            | CompileError::TablesTooBig { .. } => Self::Limit,
            CompileError::Leaf { error, .. } => error.into(),
            CompileError::NestedJsonString
            | CompileError::NestedScope
            | CompileError::NestedLimit
            | CompileError::LimitedValues
            | CompileError::LeftRecursionInRepeat { .. } => Self::Unsupported,
            CompileError::Stopped => Self::Cancelled,
            // The grammar matches no text, or names a token that does not exist.
            _ => Self::Invalid,
        }
    }
}

impl From<&IndexError> for Category {
    fn from(error: &IndexError) -> Self {
        match error {
            IndexError::Compile(error) => error.into(),
            IndexError::Automaton(error) => error.into(),
            IndexError::StringTooLarge | IndexError::TooLarge { .. } => Self::Limit,
            // A matcher may still be able to use the constraint.
            _ => Self::Unsupported,
        }
    }
}

impl From<&LimitError> for Category {
    fn from(error: &LimitError) -> Self {
        if error.resource() == Resource::Time { Self::Cancelled } else { Self::Limit }
    }
}

impl From<&MatchError> for Category {
    fn from(error: &MatchError) -> Self {
        match error {
            MatchError::NotAllowed { .. }
            | MatchError::NotComplete
            | MatchError::Terminated
            | MatchError::NoText
            | MatchError::OutOfTokens => Self::NotAllowed,
            MatchError::UnknownToken => Self::UnknownToken,
            MatchError::NothingToUndo { .. } => Self::Argument,
            MatchError::TooAmbiguous | MatchError::TooManySteps { .. } => Self::Limit,
            MatchError::Cancelled => Self::Cancelled,
            MatchError::MaskTooShort { .. } => Self::BufferTooShort,
            _ => Self::Internal,
        }
    }
}

impl From<&BudgetError> for Category {
    fn from(_: &BudgetError) -> Self {
        Self::Budget
    }
}
