//! The minimal automaton of a regular constraint.
//!
//! The engine never needs the automaton of a whole constraint; this is for inspecting small ones.
//!
//! ```
//! use maskwright_frontend::{regex, regular};
//!
//! let grammar = regex::grammar("(a|b)*abb", &regex::Options::default())?;
//! let automaton = regular::automaton(&grammar, &Default::default())?;
//! assert_eq!(automaton.len(), 1 + 4); // and one from which nothing is accepted
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::fmt;

pub use maskwright_automata::{Dfa, DfaState, LimitError, Limits, Nfa};
use maskwright_automata::{ExprId, Exprs};
use maskwright_grammar::{Expr, Grammar};

use crate::translate::translate;

/// The reason why a constraint has no automaton.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotRegular {
    /// A rule contains itself.
    Recursive,
    /// Values must differ from one another.
    Distinct,
    /// Some tokens have no text.
    Tokens,
    /// Tokens are counted.
    Limit,
    /// It contains JSON strings: their automaton is finite, but unreadable.
    JsonString,
    /// The automaton would exceed a limit.
    TooLarge(LimitError),
}

impl fmt::Display for NotRegular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recursive => "the grammar is recursive, so there is no finite automaton for it",
            Self::Distinct => {
                "the constraint has values that must differ, which no finite automaton can check"
            }
            Self::Tokens => {
                "the constraint requires tokens that have no text, so there is no automaton over text for it"
            }
            Self::Limit => {
                "the constraint limits a number of tokens, which no automaton over bytes can check"
            }
            Self::JsonString => {
                "the constraint has JSON strings, whose many spellings make no readable automaton"
            }
            Self::TooLarge(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for NotRegular {}

/// Builds the automaton, or returns why there is none.
pub fn automaton(grammar: &Grammar, limits: &Limits) -> Result<Dfa, NotRegular> {
    let (mut exprs, root) = expression(grammar)?;
    Dfa::build(&mut exprs, root, limits).map_err(NotRegular::TooLarge)
}

/// Builds the nondeterministic automaton. Returns `None` if the grammar has an intersection or a complement, for which
/// there is no such automaton.
pub fn nfa(grammar: &Grammar, limits: &Limits) -> Result<Option<Nfa>, NotRegular> {
    let (exprs, root) = expression(grammar)?;
    Nfa::build(&exprs, root, limits).map_err(NotRegular::TooLarge)
}

/// Returns the grammar as one expression.
fn expression(grammar: &Grammar) -> Result<(Exprs, ExprId), NotRegular> {
    let mut exprs = Exprs::new();
    let root = grammar.rule(grammar.root()).expr();
    let rule = |rule| Some(grammar.rule(rule).expr());
    let root = translate(|id| grammar.expr(id), rule, root, &mut exprs).map_err(|expr| match expr {
        Expr::Scope { .. } | Expr::Distinct(_) => NotRegular::Distinct,
        Expr::Token(_) => NotRegular::Tokens,
        Expr::Limit { .. } => NotRegular::Limit,
        Expr::JsonString(_) => NotRegular::JsonString,
        _ => NotRegular::Recursive,
    })?;
    Ok((exprs, root))
}
