//! Compiles a grammar to a program: a list of passes, one file each.
//!
//! | pass | what it computes or builds |
//! |---|---|
//! | [`tokens`] | bytes in place of the tokens that a grammar requests; the only pass that uses a vocabulary |
//! | [`leaves`] | tables for intersections, complements and JSON strings |
//! | [`facts`] | what can match, what may be empty, what is regular and small |
//! | [`network`] | a small NFA for each rule that the root can reach |
//! | [`left`] | the same language without left recursion |
//! | [`factor`] | wide choices as trees |
//!
//! No other pass uses a vocabulary, and nothing is determinized here: that happens while a matcher runs, for the states
//! that it visits ([`crate::program`]).

mod factor;
mod facts;
mod leaves;
mod left;
mod network;
mod tokens;
mod values;

use core::fmt;

use maskwright_automata::{LimitError, Resource};
use maskwright_grammar::{ExprId, Grammar};

pub(crate) use self::leaves::{Leaves, translate_with};
pub use self::tokens::{Resolved, resolve};
use crate::leaf::AutomatonCache;
use crate::limits::Limits;
use crate::program::network::ScopeId;
use crate::program::{Program, find_unwritable};

/// Compiles a grammar.
///
/// ```
/// use maskwright_engine::{AutomatonCache, Limits, compile};
/// use maskwright_grammar::GrammarBuilder;
///
/// let mut g = GrammarBuilder::new();
/// let root = g.declare("root");
/// let yes = g.bytes(b"yes");
/// g.define(root, yes);
/// let grammar = g.finish(root).unwrap();
/// let program = compile(&grammar, &AutomatonCache::default(), &Limits::default()).unwrap();
/// # let _ = program;
/// ```
pub fn compile(grammar: &Grammar, cache: &AutomatonCache, limits: &Limits) -> Result<Program, CompileError> {
    compile_without(grammar, &[], cache, limits)
}

/// Compiles a grammar of which some scopes are known to match nothing; see
/// [`BoundProgram::dead_scopes`](crate::BoundProgram::dead_scopes).
pub fn compile_without(
    grammar: &Grammar,
    dead: &[ExprId],
    cache: &AutomatonCache,
    limits: &Limits,
) -> Result<Program, CompileError> {
    compile_rest(grammar, (dead, false), cache, limits)
}

/// Does the same. With `is_endless`, the scopes are dead because they need themselves in an endless recursion.
fn compile_rest(
    grammar: &Grammar,
    (dead, is_endless): (&[ExprId], bool),
    cache: &AutomatonCache,
    limits: &Limits,
) -> Result<Program, CompileError> {
    check(grammar, limits)?;
    let mut leaves = Leaves::build(grammar, cache, limits).map_err(|error| error.named(grammar))?;
    leaves.dead = dead;
    let facts = facts::gather(grammar, &leaves)?;
    let root = grammar.rule(grammar.root());
    if !facts.productive[root.expr().index()] {
        return Err(match dead.iter().min() {
            // Operands come before the expressions that use them, so this is the innermost scope.
            Some(&inner) => CompileError::ValuesRunOut { place: Place::of(inner), is_endless }.named(grammar),
            None => CompileError::Empty { rule: root.name().into() },
        });
    }
    let deep = grammar.expr_ids().find(|id| facts.depth[id.index()] > limits.depth);
    if let Some(expr) = deep {
        let (depth, limit) = (facts.depth[expr.index()], limits.depth);
        return Err(CompileError::TooDeep { place: Place::of(expr), depth, limit }.named(grammar));
    }
    let mut network =
        network::build(grammar, &facts, &mut leaves, limits).map_err(|error| error.named(grammar))?;
    let unwritable = find_unwritable(&network);
    if !unwritable.scopes.is_empty() {
        // The value of a required key is impossible.
        let is_endless = unwritable.is_endless && (is_endless || dead.is_empty());
        return compile_rest(grammar, (&[dead, &unwritable.scopes].concat(), is_endless), cache, limits);
    }
    if let Some((expr, (one, other))) = unwritable.need {
        let (one, other) = (shown(&one), shown(&other));
        return Err(CompileError::LostNeed { place: Place::of(expr), one, other }.named(grammar));
    }
    if !network.limits.is_empty() && !network.has_plain_scopes() {
        return Err(CompileError::LimitedValues);
    }
    left::resolve_left_recursion(&mut network, limits.nodes).map_err(|error| error.named(grammar))?;
    factor::factor_starts(&mut network, limits.nodes)?;
    let nullable = facts.nullable[root.expr().index()];
    let program = Program::new(network, leaves.list, nullable, names(grammar), *limits);
    match too_many_required(&program) {
        Some(error) => Err(error.named(grammar)),
        None => Ok(program),
    }
}

/// With more required values than this, no search decides which of them may still come.
const MAX_SEARCHED: usize = 4_096;

/// Finds a scope with so many required values that no search could check whether each of them can still come, and for
/// which that is not proved either. Returns the error for it.
fn too_many_required(program: &Program) -> Option<CompileError> {
    let scopes = (0..).map(ScopeId).zip(&program.network().scopes);
    let mut large = scopes.filter(|(_, scope)| scope.words.is_none() && scope.required.len() > MAX_SEARCHED);
    let (_, scope) = large.find(|(index, scope)| !program.exits().scope_at(*index, scope))?;
    Some(CompileError::TooManyRequired { place: Place::of(scope.expr), required: scope.required.len() })
}

/// Checks what later passes rely on.
pub(crate) fn check(grammar: &Grammar, limits: &Limits) -> Result<(), CompileError> {
    if grammar.exprs().len() > limits.exprs {
        return Err(CompileError::TooManyExprs { exprs: grammar.exprs().len(), limit: limits.exprs });
    }
    if grammar.has_tokens() {
        let message = "the grammar refers to tokens whose numbers are not known; `resolve` it first";
        return Err(CompileError::Tokens(message.into()));
    }
    Ok(())
}

/// Formats the form of a string for messages.
fn shown(form: &[u8]) -> Box<str> {
    String::from_utf8_lossy(
        form.strip_prefix(b"\"").and_then(|form| form.strip_suffix(b"\"")).unwrap_or(form),
    )
    .into()
}

/// Returns the names of rules, for messages, with the expressions that define them.
fn names(grammar: &Grammar) -> Vec<(ExprId, Box<str>)> {
    grammar.rules().iter().map(|rule| (rule.expr(), rule.name().into())).collect()
}

/// The reason why a grammar could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileError {
    /// No text matches the root.
    Empty {
        /// The name of the root.
        rule: Box<str>,
    },
    /// More expressions than [`Limits::exprs`].
    TooManyExprs {
        /// The number of expressions.
        exprs: usize,
        /// The allowed number.
        limit: usize,
    },
    /// Operands nest deeper than [`Limits::depth`].
    TooDeep {
        /// The place of the expression.
        place: Place,
        /// The depth of the operands.
        depth: u32,
        /// The allowed depth.
        limit: u32,
    },
    /// The network needs more nodes than [`Limits::nodes`].
    TooBig {
        /// The place at which there were too many.
        place: Place,
        /// The allowed number of nodes.
        nodes: usize,
    },
    /// Rules that begin with one another are copied for each of them, and the copies need more nodes than
    /// [`Limits::nodes`].
    LeftRecursionTooBig {
        /// One of the rules.
        place: Place,
        /// The number of rules that begin with one another.
        rules: usize,
        /// The allowed number of nodes.
        nodes: usize,
    },
    /// An intersection, a complement or the condition on a JSON string needs too large a table: more than
    /// [`Limits::leaf_states`], [`Limits::leaf_steps`] or [`Limits::leaf_bytes`].
    Leaf {
        /// The place of the expression.
        place: Place,
        /// The limit that was exceeded.
        error: LimitError,
    },
    /// All tables of the grammar together need more bytes than [`Limits::table_bytes`].
    TablesTooBig {
        /// The place at which there were too many.
        place: Place,
        /// The allowed number of bytes.
        bytes: usize,
    },
    /// A JSON string is inside an intersection, a complement or another JSON string.
    NestedJsonString,
    /// The vocabulary does not have a token that the grammar requests.
    UnknownToken(String),
    /// The requested tokens could not be replaced by their spellings.
    Tokens(String),
    /// Values that must differ are inside an intersection, a complement or a JSON string.
    NestedScope,
    /// A limit on tokens is inside an intersection, a complement or a JSON string.
    NestedLimit,
    /// The grammar limits tokens somewhere, and elsewhere requires keys in any order, or requires values to differ of
    /// which there are finitely many.
    LimitedValues,
    /// No text is known that keeps the limits on tokens.
    LimitTooSmall,
    /// Values must differ and there are not enough of them, or a key is required for which no value is possible.
    ValuesRunOut {
        /// The place of the scope.
        place: Place,
        /// Whether the reason is that every value must contain another one.
        is_endless: bool,
    },
    /// So many values are required in any order that it is not known whether each of them can still come.
    TooManyRequired {
        /// The place of the scope.
        place: Place,
        /// The number of required values.
        required: usize,
    },
    /// A key needs another one, which is impossible because the values in it must differ and there are not enough of
    /// them.
    LostNeed {
        /// The place of the scope.
        place: Place,
        /// The key that needs another one.
        one: Box<str>,
        /// The key that it needs.
        other: Box<str>,
    },
    /// A rule begins with a counted repetition of itself.
    LeftRecursionInRepeat {
        /// The place of the rule.
        place: Place,
    },
    /// The work was [canceled](maskwright_automata::CancelToken).
    Stopped,
}

/// A place in a grammar: an expression, and a name for the part that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    expr: ExprId,
    name: Box<str>,
}

impl Place {
    pub(crate) fn of(expr: ExprId) -> Self {
        Self { expr, name: Box::default() }
    }

    /// Returns the expression.
    pub fn expr(&self) -> ExprId {
        self.expr
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.name.is_empty() { "the grammar" } else { &self.name })
    }
}

impl CompileError {
    fn leaf(error: LimitError, expr: ExprId) -> Self {
        match error.resource() {
            Resource::Time => Self::Stopped,
            _ => Self::Leaf { place: Place::of(expr), error },
        }
    }

    /// Returns the place of the error, if it has one.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::TooDeep { place, .. }
            | Self::TooBig { place, .. }
            | Self::LeftRecursionTooBig { place, .. }
            | Self::Leaf { place, .. }
            | Self::TablesTooBig { place, .. }
            | Self::ValuesRunOut { place, .. }
            | Self::LostNeed { place, .. }
            | Self::TooManyRequired { place, .. }
            | Self::LeftRecursionInRepeat { place } => Some(place),
            _ => None,
        }
    }

    /// Returns the same error with another name for its place, such as a JSON pointer.
    #[must_use]
    pub fn with_place(mut self, name: &str) -> Self {
        match &mut self {
            Self::TooDeep { place, .. }
            | Self::TooBig { place, .. }
            | Self::LeftRecursionTooBig { place, .. }
            | Self::Leaf { place, .. }
            | Self::TablesTooBig { place, .. }
            | Self::ValuesRunOut { place, .. }
            | Self::LostNeed { place, .. }
            | Self::TooManyRequired { place, .. }
            | Self::LeftRecursionInRepeat { place } => place.name = name.into(),
            _ => {}
        }
        self
    }

    /// Names the rule in which the error is.
    fn named(self, grammar: &Grammar) -> Self {
        let Some(place) = self.place() else { return self };
        // Operands come before the expressions that use them.
        let mut holds = vec![false; grammar.exprs().len()];
        for (id, expr) in grammar.expr_ids().zip(grammar.exprs()) {
            holds[id.index()] =
                id == place.expr || expr.operands().iter().any(|operand| holds[operand.index()]);
        }
        let rule = grammar.rules().iter().find(|rule| holds[rule.expr().index()]);
        let name = rule.map(|rule| format!("rule `{}`", rule.name()));
        self.with_place(&name.unwrap_or_default())
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { rule } => write!(f, "no text can match rule `{rule}`"),
            Self::TooManyExprs { exprs, limit } => write!(
                f,
                "the grammar has {exprs} expressions, more than the limit of {limit}; \
                 make it smaller, or raise the limit `exprs`"
            ),
            Self::TooDeep { place, depth, limit } => write!(
                f,
                "{place}: expressions nest {depth} deep, more than the limit of {limit}; \
                 move inner parts into rules of their own, or raise the limit `depth`"
            ),
            Self::TooBig { place, nodes } => write!(
                f,
                "{place}: the grammar needs more than {nodes} nodes; \
                 give repeated parts a rule of their own, or raise the limit `nodes`"
            ),
            Self::LeftRecursionTooBig { place, rules, nodes } => write!(
                f,
                "{place}: {rules} rules begin with one another, which needs more than {nodes} nodes; \
                 write the recursion on the right, or raise the limit `nodes`"
            ),
            Self::Leaf { place, error } => {
                let limit = match error.resource() {
                    Resource::States => "leaf_states",
                    Resource::Steps => "leaf_steps",
                    _ => "leaf_bytes",
                };
                write!(
                    f,
                    "{place}: an intersection, a complement or the condition on a string is too large: {error} `{limit}`"
                )
            }
            Self::TablesTooBig { place, bytes } => write!(
                f,
                "{place}: with this, all conditions on strings, intersections and complements together need tables of more than {bytes} bytes; \
                 lower the bounds in the patterns, use fewer patterns, or raise the limit `table_bytes`"
            ),
            Self::NestedJsonString => f.write_str(
                "a JSON string cannot be inside an intersection, a complement or another JSON string; state the condition on its text",
            ),
            Self::NestedScope => f.write_str(
                "values that must differ cannot be inside an intersection, a complement or a JSON string",
            ),
            Self::UnknownToken(message) | Self::Tokens(message) => f.write_str(message),
            Self::NestedLimit => f.write_str(
                "a limit on tokens cannot be inside an intersection, a complement or a JSON string; put it around the whole",
            ),
            Self::LimitedValues => f.write_str(
                "tokens cannot be limited together with keys that are required in any order, or with different values out of finitely many; \
                 fix the order of keys, or do without the limit",
            ),
            Self::LimitTooSmall => f.write_str(
                "with this vocabulary no text is known that keeps the limits on tokens; raise them",
            ),
            Self::ValuesRunOut { place, is_endless: true } => write!(
                f,
                "{place}: the recursion never ends: every value must contain another one; make one of the references optional"
            ),
            Self::ValuesRunOut { place, .. } => write!(
                f,
                "{place}: this allows no value: more values must differ than there are, or a required key has no possible value; require fewer, or allow more different values"
            ),
            Self::LostNeed { place, one, other } => write!(
                f,
                "{place}: the key `{one}` needs `{other}`, which has no possible value, so neither may be written; forbid `{one}`"
            ),
            Self::TooManyRequired { place, required } => write!(
                f,
                "{place}: {required} keys are required in any order, too many to find out whether each of them can always be written; fix their order, or require fewer"
            ),
            Self::Stopped => f.write_str("the compilation was cancelled"),
            Self::LeftRecursionInRepeat { place } => write!(
                f,
                "{place}: a counted repetition begins with the rule that it is in; \
                 write the recursion on the right, or without the bounds"
            ),
        }
    }
}

impl core::error::Error for CompileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Leaf { error, .. } => Some(error),
            _ => None,
        }
    }
}
