//! The way back: from a grammar to a regular expression.
//!
//! ```
//! use maskwright_frontend::regex::{self, WriteLimits};
//!
//! // A look-ahead is an intersection, which a plain expression has to do without.
//! let grammar = regex::grammar("(?!ab)[abc]{2}", &regex::Options::default()).unwrap();
//! assert_eq!(regex::write(&grammar, &WriteLimits::default()).unwrap(), "a[ac]|[bc][a-c]");
//! ```
//!
//! A grammar whose rules do not recurse is regular, and is written out by putting rules in place of their calls. What is
//! written is plain: characters, classes, `(?:…)`, `|`, `?`, `*`, `+` and `{n,m}`, with escapes that the Rust `regex`
//! crate, Python's `re` and our own reader take alike. It describes *whole* texts and has no anchors.
//!
//! # What has no counterpart
//!
//! - **Intersection and complement** become the smallest automaton over characters ([`letters`]), whose states are
//!   then taken away one by one until a single arrow is left ([`eliminate`]).
//! - **A JSON string** of a set of texts is that set with every character spelled out: `a` becomes `a|\\u0061` ([`spell`]).
//!
//! # Size
//!
//! Rules are shared, and a regular expression cannot share. Parts are therefore held in an arena in which equal ones are
//! one ([`parts`]); the length of the text is known for each before anything is printed, and
//! [`WriteLimits`] says how long it may become.

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

/// How large a written expression, and what is built on the way, may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteLimits {
    /// Bytes of the regular expression.
    pub length: usize,
    /// States of an automaton that an intersection or a complement needs.
    pub states: usize,
}

impl Default for WriteLimits {
    /// One million bytes, and 2,000 states.
    fn default() -> Self {
        Self { length: 1_000_000, states: 2_000 }
    }
}

/// Why there is no regular expression for a grammar.
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
    /// An intersection or a complement needs more than [`WriteLimits::states`], or more work than is reasonable.
    TooManyStates(usize),
    /// No text at all is in the language, and there is no plain expression for that.
    Empty,
    /// Some text of the language is not UTF-8.
    NotText,
    /// A JSON string stands inside an intersection, a complement or another JSON string.
    NestedString,
    /// Values must differ, which takes a memory of those before.
    Differ,
    /// A token is asked for that stands for no text.
    Token,
    /// A part is limited to a number of tokens, of which a regular expression knows nothing.
    Limit,
}

impl WriteError {
    /// What is wrong.
    pub fn kind(&self) -> WriteErrorKind {
        self.kind
    }

    /// The names of the rules on the way from the root to the place.
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
            Self::NestedString => f.write_str("a JSON string stands inside an intersection or a complement"),
        }
    }
}

impl core::error::Error for WriteError {}

/// Writes a regular expression that matches, as a whole, exactly the texts of the grammar.
pub fn write(grammar: &Grammar, limits: &WriteLimits) -> Result<String, WriteError> {
    let mut writer = Writer { grammar, limits, parts: Parts::new(), done: FxHashMap::default() };
    let root = writer.root()?;
    if root == PartId::NEVER {
        return Err(WriteError::of(WriteErrorKind::Empty));
    }
    writer.check_length(root)?;
    Ok(print::print(&writer.parts, root))
}

/// How many operands all parts may have together: some hundred megabytes.
const MAX_OPERANDS: usize = 10_000_000;

struct Writer<'g> {
    grammar: &'g Grammar,
    limits: &'g WriteLimits,
    parts: Parts,
    done: FxHashMap<ExprId, PartId>,
}

/// What is left to do for an expression.
#[derive(Clone, Copy)]
enum Task {
    Open(ExprId),
    /// Its operands are done.
    Close(ExprId),
}

impl Writer<'_> {
    fn root(&mut self) -> Result<PartId, WriteError> {
        let root = self.grammar.rule(self.grammar.root()).expr();
        // The expressions whose operands are being written, outermost first: to meet one of them again is recursion.
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
                    // A part may be long and stand nowhere in the end, but what it costs is paid.
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

    /// What must be written before an expression. The texts of JSON strings, intersections and complements are none
    /// of it: they are written in a way of their own.
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

    /// An expression whose needs are done.
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

    /// A language of texts without JSON strings, over characters. Plain parts are taken as they are; an intersection or
    /// a complement becomes an automaton.
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
                // The rules here do not recurse: the builder of the grammar has seen to that.
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

    /// An intersection of repeated classes: `[a-z]* ∧ .{2,5}` is `[a-z]{2,5}`. Lengths beside a pattern look like this.
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

    /// The same language by way of its smallest automaton.
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
        // A character has up to four bytes, each with a state between it and the next.
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

    /// An error with the rules that lead to it.
    fn at(&self, open: &[ExprId], kind: WriteErrorKind) -> WriteError {
        let called = open.iter().filter_map(|id| match self.grammar.expr(*id) {
            Expr::Rule(rule) => Some(self.grammar.rule(*rule).name().into()),
            _ => None,
        });
        WriteError { kind, rules: called.collect() }
    }
}
