//! Writes a grammar as a regular expression.
//!
//! ```
//! use maskwright_frontend::regex::{self, WriteLimits};
//!
//! // A look-ahead is an intersection, which a plain expression has to do without.
//! let grammar = regex::grammar("(?!ab)[abc]{2}", &regex::Options::default()).unwrap();
//! assert_eq!(regex::write(&grammar, &WriteLimits::default()).unwrap(), "a[ac]|[bc][a-c]");
//! ```
//!
//! A grammar whose rules do not recurse is regular, and is written by inserting rules in place of their calls. The
//! result is plain: characters, classes, `(?:…)`, `|`, `?`, `*`, `+` and `{n,m}`, with escapes that the Rust `regex`
//! crate, Python's `re` and the reader of this crate all accept. It describes *whole* texts and has no anchors.
//!
//! # Constructs without a counterpart
//!
//! - **Intersection and complement** become the minimal automaton over characters ([`letters`]), whose states are then
//!   eliminated one by one until a single arrow is left ([`eliminate`]).
//! - **A JSON string** over a set of texts is that set with every character spelled out: `a` becomes `a|\\u0061`
//!   ([`spell`]).
//!
//! # Size
//!
//! Rules are shared, and a regular expression cannot share. So parts are held in an arena in which equal parts are
//! stored once ([`parts`]). The length of the text is known for each part before anything is printed, and
//! [`WriteLimits`] bounds it.

mod eliminate;
mod letters;
mod parts;
mod print;
mod spell;
mod syntax;

use core::fmt;

use maskwright_automata as automata;
use maskwright_grammar::{CharSet, Expr, ExprId, Grammar};
use rustc_hash::FxHashMap;

use crate::translate::translate;

use self::parts::{PartId, Parts};

/// Limits on the size of a written expression and of intermediate results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteLimits {
    /// Bytes of the regular expression.
    pub length: usize,
    /// States of an automaton for an intersection or a complement.
    pub states: usize,
}

impl Default for WriteLimits {
    /// Returns one million bytes and 2,000 states.
    fn default() -> Self {
        Self { length: 1_000_000, states: 2_000 }
    }
}

/// The reason why there is no regular expression for a grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError {
    kind: WriteErrorKind,
    rules: Vec<Box<str>>,
}

/// The kind of a [`WriteError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// A rule calls itself, so that the language need not be regular.
    Recursive,
    /// The expression would be longer than [`WriteLimits::length`].
    TooLong(usize),
    /// An intersection or a complement needs more than [`WriteLimits::states`], or too much work.
    TooManyStates(usize),
    /// The language is empty, and there is no plain expression for that.
    Empty,
    /// Some text of the language is not UTF-8.
    NotText,
    /// A JSON string is inside an intersection, a complement or another JSON string.
    NestedString,
    /// Values must differ, which requires remembering earlier values.
    Differ,
    /// A token is required that has no text.
    Token,
    /// A part is limited to a number of tokens, which a regular expression cannot count.
    Limit,
}

impl WriteError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> WriteErrorKind {
        self.kind
    }

    /// Returns the names of the rules on the path from the root to the place.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|name| &**name)
    }

    fn of(kind: WriteErrorKind) -> Self {
        Self { kind, rules: Vec::new() }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.rules.is_empty() {
            write!(f, "in {}: ", self.rules.join(" → "))?;
        }
        write!(f, "{}", self.kind)
    }
}

impl fmt::Display for WriteErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recursive => f.write_str("the grammar recurses, and no regular expression can follow it"),
            Self::TooLong(limit) => write!(f, "the regular expression would have more than {limit} bytes"),
            Self::TooManyStates(limit) => {
                write!(f, "an intersection or a complement needs an automaton of more than {limit} states")
            }
            Self::Empty => f.write_str("no text matches"),
            Self::NotText => f.write_str("it allows bytes that are no text"),
            Self::Differ => {
                f.write_str("keys or items must differ here, and no regular expression can remember them")
            }
            Self::Token => f.write_str("a token is asked for here, and no text spells it"),
            Self::Limit => {
                f.write_str("a number of tokens is limited here, and a regular expression has none")
            }
            Self::NestedString => f.write_str("a JSON string is inside an intersection or a complement"),
        }
    }
}

impl core::error::Error for WriteError {}

/// Writes a regular expression that, as a full match, accepts exactly the texts of the grammar.
pub fn write(grammar: &Grammar, limits: &WriteLimits) -> Result<String, WriteError> {
    let mut writer = Writer { grammar, limits, parts: Parts::new(), done: FxHashMap::default() };
    let root = writer.root()?;
    if root == PartId::NEVER {
        return Err(WriteError::of(WriteErrorKind::Empty));
    }
    writer.check_length(root)?;
    Ok(print::print(&writer.parts, root))
}

/// The maximum number of operands of all parts together: some hundred megabytes.
const MAX_OPERANDS: usize = 10_000_000;

struct Writer<'g> {
    grammar: &'g Grammar,
    limits: &'g WriteLimits,
    parts: Parts,
    done: FxHashMap<ExprId, PartId>,
}

/// A remaining step for an expression.
#[derive(Clone, Copy)]
enum Task {
    Open(ExprId),
    /// All operands are done.
    Close(ExprId),
}

impl Writer<'_> {
    fn root(&mut self) -> Result<PartId, WriteError> {
        let root = self.grammar.rule(self.grammar.root()).expr();
        // The expressions whose operands are being written, outermost first. Meeting one of them again is a recursion.
        let mut open: Vec<ExprId> = Vec::new();
        let mut is_open = rustc_hash::FxHashSet::default();
        let mut work = vec![Task::Open(root)];
        while let Some(task) = work.pop() {
            match task {
                Task::Open(id) if self.done.contains_key(&id) => {}
                Task::Open(id) if is_open.contains(&id) => {
                    return Err(self.at(&open, WriteErrorKind::Recursive));
                }
                Task::Open(id) => {
                    open.push(id);
                    is_open.insert(id);
                    work.push(Task::Close(id));
                    self.push_needs(id, &mut work);
                }
                Task::Close(id) => {
                    let part = self.one(id).map_err(|kind| self.at(&open, kind))?;
                    // A long part may not occur in the result, but its cost counts.
                    if self.parts.operands() > MAX_OPERANDS {
                        return Err(self.at(&open, WriteErrorKind::TooLong(self.limits.length)));
                    }
                    self.done.insert(id, part);
                    open.pop();
                    is_open.remove(&id);
                }
            }
        }
        Ok(self.part(root))
    }

    /// Pushes the expressions that must be written before this one. The operands of JSON strings, intersections and
    /// complements are not among them, because they are written by [`Self::regular`].
    fn push_needs(&self, id: ExprId, work: &mut Vec<Task>) {
        match self.grammar.expr(id) {
            Expr::And(_) | Expr::Not(_) | Expr::JsonString(_) => {}
            Expr::Rule(rule) => work.push(Task::Open(self.grammar.rule(*rule).expr())),
            expr => work.extend(expr.operands().iter().rev().map(|operand| Task::Open(*operand))),
        }
    }

    fn part(&self, id: ExprId) -> PartId {
        self.done.get(&id).copied().unwrap_or(PartId::NEVER)
    }

    /// Writes an expression whose operands are done.
    fn one(&mut self, id: ExprId) -> Result<PartId, WriteErrorKind> {
        let many = |this: &Self, list: &[ExprId]| list.iter().map(|id| this.part(*id)).collect::<Vec<_>>();
        let grammar = self.grammar;
        Ok(match grammar.expr(id) {
            Expr::Never => PartId::NEVER,
            Expr::Empty => PartId::EMPTY,
            Expr::Bytes(bytes) => {
                let text = core::str::from_utf8(bytes).map_err(|_| WriteErrorKind::NotText)?;
                self.parts.text(text)
            }
            Expr::Class(set) => self.parts.class(set.clone()),
            Expr::Seq(list) => {
                let list = many(self, list);
                self.parts.seq(list)
            }
            Expr::Alt(list) => {
                let list = many(self, list);
                self.parts.alt(list)
            }
            Expr::Repeat { body, min, max } => {
                let body = self.part(*body);
                self.parts.repeat(body, *min, *max)
            }
            Expr::Rule(rule) => self.part(grammar.rule(*rule).expr()),
            Expr::And(_) | Expr::Not(_) => self.regular(id)?,
            Expr::Scope { .. } | Expr::Distinct(_) => return Err(WriteErrorKind::Differ),
            Expr::Token(_) => return Err(WriteErrorKind::Token),
            Expr::Limit { .. } => return Err(WriteErrorKind::Limit),
            Expr::JsonString(text) => {
                let text = self.regular(*text)?;
                spell::json_string(&mut self.parts, text)
            }
        })
    }

    /// Writes a language of texts without JSON strings, over characters. Plain parts are written unchanged; an
    /// intersection or a complement becomes an automaton.
    fn regular(&mut self, root: ExprId) -> Result<PartId, WriteErrorKind> {
        let mut done: FxHashMap<ExprId, PartId> = FxHashMap::default();
        let mut work = vec![Task::Open(root)];
        let grammar = self.grammar;
        while let Some(task) = work.pop() {
            match task {
                Task::Open(id) if done.contains_key(&id) => {}
                Task::Open(id) => match grammar.expr(id) {
                    Expr::And(list) => {
                        let part = match self.window(list) {
                            Some(part) => part,
                            None => self.automaton(id)?,
                        };
                        done.insert(id, part);
                    }
                    Expr::Not(_) => {
                        let part = self.automaton(id)?;
                        done.insert(id, part);
                    }
                    Expr::JsonString(_) => return Err(WriteErrorKind::NestedString),
                    _ => {
                        work.push(Task::Close(id));
                        self.push_needs(id, &mut work);
                    }
                },
                // The rules here do not recurse: the builder of the grammar guarantees this.
                Task::Close(id) => {
                    let outer = core::mem::replace(&mut self.done, done);
                    let part = self.one(id);
                    done = core::mem::replace(&mut self.done, outer);
                    done.insert(id, part?);
                }
            }
        }
        Ok(done.get(&root).copied().unwrap_or(PartId::NEVER))
    }

    /// Writes an intersection of repeated classes: `[a-z]* ∧ .{2,5}` is `[a-z]{2,5}`. A length beside a pattern has
    /// this form.
    fn window(&mut self, list: &[ExprId]) -> Option<PartId> {
        let (mut set, mut low, mut high) = (CharSet::all(), 0, None::<u32>);
        for id in list {
            let Expr::Repeat { body, min, max } = self.grammar.expr(*id) else { return None };
            let Expr::Class(class) = self.grammar.expr(*body) else { return None };
            set = set.intersection(class);
            low = low.max(*min);
            high = [high, *max].into_iter().flatten().min();
        }
        let body = self.parts.class(set);
        Some(self.parts.repeat(body, low, high))
    }

    /// Writes a language by converting it to its minimal automaton.
    fn automaton(&mut self, root: ExprId) -> Result<PartId, WriteErrorKind> {
        let limit = self.limits.states;
        let too_many = WriteErrorKind::TooManyStates(limit);
        let mut exprs = automata::Exprs::new();
        let grammar = self.grammar;
        let rule = |rule| Some(grammar.rule(rule).expr());
        let translated =
            translate(|id| grammar.expr(id), rule, root, &mut exprs).map_err(|refused| match refused {
                Expr::JsonString(_) => WriteErrorKind::NestedString,
                Expr::Token(_) => WriteErrorKind::Token,
                Expr::Limit { .. } => WriteErrorKind::Limit,
                _ => WriteErrorKind::Differ,
            })?;
        // A character has up to four bytes, with a state between each two.
        let limits = automata::Limits { states: limit.saturating_mul(8), ..automata::Limits::default() };
        let dfa = automata::Dfa::build(&mut exprs, translated, &limits).map_err(|_| too_many)?;
        let letters = letters::of(&dfa);
        if letters.states.len() > limit {
            return Err(too_many);
        }
        eliminate::eliminate(&letters, &mut self.parts, self.limits.length as u64)
            .ok_or(WriteErrorKind::TooLong(self.limits.length))
    }

    fn check_length(&self, part: PartId) -> Result<(), WriteError> {
        let limit = self.limits.length;
        if self.parts.length(part) > limit as u64 {
            return Err(WriteError::of(WriteErrorKind::TooLong(limit)));
        }
        Ok(())
    }

    /// Returns an error with the rules that lead to it.
    fn at(&self, open: &[ExprId], kind: WriteErrorKind) -> WriteError {
        let called = open.iter().filter_map(|id| match self.grammar.expr(*id) {
            Expr::Rule(rule) => Some(self.grammar.rule(*rule).name().into()),
            _ => None,
        });
        WriteError { kind, rules: called.collect() }
    }
}
