//! The expressions, the rules, and the grammar that contains them.

use crate::{CharSet, ExprId, Notes, RuleId, TokenSet};

/// A set of byte strings, in terms of smaller ones.
///
/// The builder normalizes while it builds, so that some shapes never occur in a finished grammar:
/// `Seq` and `Alt` have at least two operands and none of their own kind, `Never` occurs only where
/// the whole expression is empty, `Bytes` and `Class` are not empty, and adjacent `Bytes` in a
/// `Seq` are one.
///
/// ```
/// use maskwright_grammar::{Expr, GrammarBuilder};
///
/// let mut g = GrammarBuilder::new();
/// let root = g.declare("root");
/// let parts = [g.bytes(b"tea"), g.bytes(b" for two")];
/// let both = g.seq(parts);
/// g.define(root, both);
/// let grammar = g.finish(root)?;
/// // Neighboring bytes have become one expression.
/// assert_eq!(grammar.expr(grammar.rule(root).expr()), &Expr::Bytes((*b"tea for two").into()));
/// # Ok::<(), maskwright_grammar::GrammarError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// Nothing: the empty set.
    Never,
    /// Only the empty text.
    Empty,
    /// Exactly these bytes.
    Bytes(Box<[u8]>),
    /// One character of the set, as UTF-8.
    Class(CharSet),
    /// The operands one after another.
    Seq(Box<[ExprId]>),
    /// One of the operands.
    Alt(Box<[ExprId]>),
    /// `body`, at least `min` and at most `max` times in a row (`None`: no upper bound).
    Repeat {
        /// The repeated expression.
        body: ExprId,
        /// The least number of repetitions.
        min: u32,
        /// The greatest number of repetitions.
        max: Option<u32>,
    },
    /// The intersection of these sets. The operands are regular.
    And(Box<[ExprId]>),
    /// Every well-formed UTF-8 text that is not in this set. The operand is regular.
    Not(ExprId),
    /// The language of the rule.
    Rule(RuleId),
    /// One whole token of the set. It represents no text, so nothing regular contains it.
    Token(TokenSet),
    /// A JSON string, from the opening to the closing quote, whose *decoded* text lies in the set.
    ///
    /// All spellings count: `"a"`, `"\u0061"`. A character outside the basic plane may be written as a
    /// surrogate pair of escapes; a lone surrogate is no character and is not allowed.
    /// Control characters below U+0020 must be escaped, `/` may be. The operand is regular.
    JsonString(ExprId),
    /// A JSON object or array whose [`Distinct`](Self::Distinct) parts differ from one another.
    Scope {
        /// The object or array.
        body: ExprId,
        /// Strings that must be among the parts when the body ends.
        required: Box<[Box<str>]>,
        /// Pairs of strings: if the first is among the parts when the body ends, the second must be.
        needs: Box<[(Box<str>, Box<str>)]>,
    },
    /// A JSON value that differs from all earlier values of a `Distinct` in the innermost [`Scope`](Self::Scope).
    /// Values are compared, not texts: `1.0` equals `1`, `"\u0061"` equals `"a"`, and members have no order.
    Distinct(ExprId),
    /// `body`, in at most `tokens` tokens. A token counts if one of its bytes belongs to the body, so a token that also
    /// contains text before or after the body counts in full.
    ///
    /// This restricts how a text is written, not which text it is. Where no tokens are involved, it means `body`.
    Limit {
        /// The limited expression.
        body: ExprId,
        /// The greatest number of tokens.
        tokens: u32,
    },
}

/// A named expression.
///
/// ```
/// use maskwright_grammar::GrammarBuilder;
///
/// let mut g = GrammarBuilder::new();
/// let (root, drink) = (g.declare("root"), g.declare("drink"));
/// let (call, tea) = (g.rule(drink), g.bytes(b"tea"));
/// g.define(root, call);
/// g.define(drink, tea);
/// let grammar = g.finish(root)?;
/// let names: Vec<&str> = grammar.rules().iter().map(|rule| rule.name()).collect();
/// assert!(names.contains(&"root"));
/// # Ok::<(), maskwright_grammar::GrammarError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(crate) name: Box<str>,
    pub(crate) expr: ExprId,
    pub(crate) is_document: bool,
    pub(crate) notes: Option<Box<Notes>>,
}

impl Rule {
    /// Returns the name of the rule, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the expression of the rule.
    pub fn expr(&self) -> ExprId {
        self.expr
    }

    /// Checks whether the rule matches whole JSON documents and was [declared](crate::GrammarBuilder::declare_document)
    /// so.
    pub fn is_document(&self) -> bool {
        self.is_document
    }

    /// Returns the annotations of the rule.
    pub fn notes(&self) -> Option<&Notes> {
        self.notes.as_deref()
    }
}

/// A finished grammar: every rule is defined, and `And`, `Not` and `JsonString` occur only over
/// regular operands.
///
/// ```
/// use maskwright_grammar::GrammarBuilder;
///
/// let mut g = GrammarBuilder::new();
/// let root = g.declare("root");
/// let body = [g.bytes(b"("), g.rule(root), g.bytes(b")")];
/// let (nested, empty) = (g.seq(body), g.empty());
/// let either = g.alt([nested, empty]);
/// g.define(root, either);
/// let grammar = g.finish(root)?;
/// assert_eq!(grammar.to_string().trim(), r#"root ::= "(" root ")" | """#);
/// # Ok::<(), maskwright_grammar::GrammarError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar {
    pub(crate) exprs: Vec<Expr>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) root: RuleId,
}

impl Grammar {
    /// Returns the rule that a whole text must match.
    pub fn root(&self) -> RuleId {
        self.root
    }

    /// Returns the rule with this id.
    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id.index()]
    }

    /// Returns all rules, in the order in which they were declared.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the ids of all rules, in order.
    pub fn rule_ids(&self) -> impl ExactSizeIterator<Item = RuleId> + use<> {
        (0..self.rules.len() as u32).map(RuleId)
    }

    /// Returns the expression with this id.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// Returns the ids of all expressions, in order.
    pub fn expr_ids(&self) -> impl ExactSizeIterator<Item = ExprId> + use<> {
        (0..self.exprs.len() as u32).map(ExprId)
    }

    /// Checks whether some expression requires a token, so that the grammar depends on the vocabulary.
    pub fn has_tokens(&self) -> bool {
        self.exprs.iter().any(|expr| matches!(expr, Expr::Token(_)))
    }

    /// Returns all expressions. Operands come before the expressions that use them.
    pub fn exprs(&self) -> &[Expr] {
        &self.exprs
    }
}

impl Expr {
    /// Returns the direct operands.
    pub fn operands(&self) -> &[ExprId] {
        match self {
            Self::Seq(parts) | Self::Alt(parts) | Self::And(parts) => parts,
            Self::Repeat { body, .. } | Self::Scope { body, .. } | Self::Limit { body, .. } => {
                core::slice::from_ref(body)
            }
            Self::Not(inner) | Self::JsonString(inner) | Self::Distinct(inner) => {
                core::slice::from_ref(inner)
            }
            Self::Never | Self::Empty | Self::Bytes(_) | Self::Class(_) | Self::Rule(_) | Self::Token(_) => {
                &[]
            }
        }
    }
}
