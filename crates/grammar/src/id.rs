//! The ids of expressions and rules.

use core::fmt;

/// The number of an expression in a grammar. Equal expressions have equal ids.
///
/// ```
/// use maskwright_grammar::GrammarBuilder;
///
/// let mut g = GrammarBuilder::new();
/// assert_eq!(g.bytes(b"tea"), g.bytes(b"tea")); // equal expressions are one
/// assert_ne!(g.bytes(b"tea"), g.bytes(b"milk"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

/// The number of a rule in a grammar.
///
/// ```
/// use maskwright_grammar::GrammarBuilder;
///
/// let mut g = GrammarBuilder::new();
/// let root = g.declare("root");
/// let tea = g.bytes(b"tea");
/// g.define(root, tea);
/// let grammar = g.finish(root)?;
/// assert_eq!(grammar.rule(root).name(), "root");
/// # Ok::<(), maskwright_grammar::GrammarError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub(crate) u32);

impl ExprId {
    /// Returns the position of the expression in [`Grammar::exprs`](crate::Grammar::exprs).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl RuleId {
    /// Returns the position of the rule in [`Grammar::rules`](crate::Grammar::rules).
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for ExprId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

impl fmt::Debug for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}
