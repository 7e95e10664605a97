//! Parses a text by its grammar and records which rules are open and where each began: Earley's algorithm over
//! expressions.
//!
//! ```text
//!   position 0      waits:  root waits for pair,  pair waits for NAME         ── "age" ──▶
//!   position 3      waits:  pair (after NAME) waits for ":"                   ── ":"   ──▶  …
//! ```
//! `waits` maps each position and expression to the waiters: the expressions that continue when that expression ends.
//! When an expression ends, its waiters at the position where it began advance. At the end of the text, following the
//! waiters from the open terminals up to the root gives the readings.
//!
//! Terminals that are not literals are matched by matchers of the engine, one grammar each, so that the meaning of a
//! character class or a JSON string is implemented only once.

use maskwright_automata::{ByteSet, must_stop};
use maskwright_engine::{
    AutomatonCache, BoundProgram, CompileError, Library, Limits, MatchError, Matcher, compile, resolve,
};
use maskwright_grammar::{Capture, Expr, ExprId, Grammar, Rule, Temperature};
use maskwright_vocab::{TokenId, Vocabulary};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{LocateError, Next};
use crate::Error;

/// A unit of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unit {
    Byte(u8),
    Special(TokenId),
}

impl Unit {
    /// Returns the units of a token.
    pub(super) fn of(token: TokenId, vocabulary: &Vocabulary) -> Vec<Self> {
        if vocabulary.is_special(token) {
            return vec![Self::Special(token)];
        }
        vocabulary.bytes(token).iter().map(|byte| Self::Byte(*byte)).collect()
    }

    /// Passes it to a matcher. Returns `false` if the matcher does not accept it.
    fn take(self, matcher: &mut Matcher) -> bool {
        let taken = match self {
            Self::Byte(byte) => matcher.accept_bytes(&[byte]),
            Self::Special(token) => matcher.accept(token),
        };
        taken.is_ok() && !matcher.is_terminated()
    }
}

/// The maximum number of remembered waiters, at about 100 bytes each.
const MAX_WAITERS: usize = 1_000_000;
/// The maximum number of readings that are listed, and of terminals that may follow.
const MAX_READINGS: usize = 16;
const MAX_NEXT_TERMINALS: usize = 64;
/// The maximum number of steps along the waiters to list them.
const MAX_WAITER_STEPS: usize = 20_000;
/// The maximum length of a terminal's notation, in characters.
const MAX_NOTATION_CHARS: usize = 80;

/// A waiter: an expression that began at `origin`, and how many of its parts (of a sequence) or rounds (of a
/// repetition) are complete once the wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiter {
    expr: ExprId,
    done: u32,
    origin: usize,
}

/// A terminal that has begun, or may begin here.
#[derive(Clone)]
struct Terminal {
    expr: ExprId,
    origin: usize,
    at: At,
    may_end: bool,
}

#[derive(Clone)]
enum At {
    /// The number of matched bytes of a literal.
    Literal(usize),
    Matcher(Box<Matcher>),
}

#[derive(Clone)]
enum Work {
    /// The waiter needs an expression that begins here. The root has no waiter.
    Wait(ExprId, Option<Waiter>),
    /// An expression that began at this position is complete.
    Over(ExprId, usize),
}

#[derive(Clone)]
pub(super) struct Chart {
    library: Arc<Library>,
    tables: Arc<AutomatonCache>,
    grammar: Arc<Grammar>,
    limits: Limits,
    nullable: Vec<bool>,
    /// The programs of terminals; `None` for a terminal that matches nothing.
    programs: HashMap<ExprId, Option<Arc<BoundProgram>>>,
    waits: HashMap<(usize, ExprId), Vec<Waiter>>,
    /// All waiters, for fast membership tests.
    known: HashSet<(usize, ExprId, Waiter)>,
    terminals: Vec<Terminal>,
    position: usize,
    work: Vec<Work>,
    over: HashSet<(ExprId, usize)>,
    /// The positions at which each expression that began somewhere was complete, in ascending order. Only present if
    /// the grammar has captures.
    ends: Option<HashMap<(ExprId, usize), Vec<usize>>>,
}

/// How much of the text a chart remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// Everything, as captures require.
    Whole,
    /// Only what open rules need.
    Open,
}

/// The readings of a text, and the terminals that may follow.
pub(super) struct Located<'g> {
    pub(super) readings: Vec<Found<'g>>,
    pub(super) next: Vec<Next>,
    pub(super) more: bool,
}

/// A reading, with positions in units.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found<'g> {
    pub(super) rules: Vec<(&'g str, usize)>,
    pub(super) terminal: Option<FoundTerminal>,
    /// The position where the outermost JSON document began.
    pub(super) document: Option<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct FoundTerminal {
    pub(super) notation: String,
    pub(super) begin: usize,
    pub(super) length: Option<usize>,
    pub(super) may_end: bool,
}

impl Chart {
    pub(super) fn new(
        (library, tables): (Arc<Library>, Arc<AutomatonCache>),
        grammar: Arc<Grammar>,
        limits: Limits,
        memory: Memory,
    ) -> Result<Self, LocateError> {
        let has_captures = memory == Memory::Whole && captures_something(&grammar);
        let root = grammar.rule(grammar.root()).expr();
        let mut chart = Self {
            library,
            tables,
            grammar,
            limits,
            nullable: Vec::new(),
            programs: HashMap::new(),
            waits: HashMap::new(),
            known: HashSet::new(),
            terminals: Vec::new(),
            position: 0,
            work: Vec::new(),
            over: HashSet::new(),
            ends: has_captures.then(HashMap::new),
        };
        chart.nullable = chart.find_nullable()?;
        chart.work.push(Work::Wait(root, None));
        chart.run_pending()?;
        Ok(chart)
    }

    /// Reads a text that the grammar allows.
    pub(super) fn read(&mut self, units: &[Unit]) -> Result<(), LocateError> {
        for unit in units {
            self.position += 1;
            self.over.clear();
            let grammar = self.grammar.clone();
            let grammar = &*grammar;
            self.terminals.retain_mut(|terminal| terminal.step(grammar, *unit));
            let over = self.terminals.iter().filter(|terminal| terminal.may_end);
            self.work.extend(over.map(|terminal| Work::Over(terminal.expr, terminal.origin)));
            self.terminals.retain(|terminal| !terminal.is_finished(grammar));
            self.run_pending()?;
        }
        Ok(())
    }

    /// Does all pending work before the next unit.
    fn run_pending(&mut self) -> Result<(), LocateError> {
        while let Some(work) = self.work.pop() {
            if self.known.len() > MAX_WAITERS {
                return Err(LocateError::TooLong { read: self.position });
            }
            if must_stop() {
                return Err(LocateError::Text { index: 0, error: MatchError::Cancelled });
            }
            match work {
                Work::Wait(expr, waiter) => self.wait(expr, waiter)?,
                Work::Over(expr, origin) => {
                    if origin == self.position || !self.over.insert((expr, origin)) {
                        // An empty match was already taken into account when it was requested.
                        continue;
                    }
                    if let Some(ends) = &mut self.ends {
                        ends.entry((expr, origin)).or_default().push(self.position);
                    }
                    let waiters = self.waits.get(&(origin, expr)).cloned().unwrap_or_default();
                    for waiter in waiters {
                        self.advance(waiter);
                    }
                }
            }
        }
        Ok(())
    }

    fn wait(&mut self, expr: ExprId, waiter: Option<Waiter>) -> Result<(), LocateError> {
        let here = self.position;
        if let Some(waiter) = waiter
            && !self.known.insert((here, expr, waiter))
        {
            return Ok(());
        }
        let is_new = match self.waits.entry((here, expr)) {
            Entry::Vacant(entry) => {
                entry.insert(waiter.into_iter().collect());
                true
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().extend(waiter);
                false
            }
        };
        if let Some(waiter) = waiter
            && self.nullable[expr.index()]
        {
            self.advance(waiter);
        }
        if is_new { self.begin(expr) } else { Ok(()) }
    }

    /// Starts an expression at the current position.
    fn begin(&mut self, expr: ExprId) -> Result<(), LocateError> {
        let (here, grammar) = (self.position, self.grammar.clone());
        let mut wait = |part: ExprId, done: u32| {
            self.work.push(Work::Wait(part, Some(Waiter { expr, done, origin: here })));
        };
        match grammar.expr(expr) {
            Expr::Never | Expr::Empty => {}
            Expr::Bytes(_) => {
                self.terminals.push(Terminal { expr, origin: here, at: At::Literal(0), may_end: false });
            }
            _ if is_terminal(&grammar, expr) => {
                if let Some(program) = self.program(expr)? {
                    let matcher = Box::new(program.matcher());
                    let at = At::Matcher(matcher);
                    self.terminals.push(Terminal { expr, origin: here, at, may_end: false });
                }
            }
            Expr::Seq(parts) => wait(parts[0], 1),
            // Work is a stack, so the last part is processed first.
            Expr::Alt(parts) => parts.iter().rev().for_each(|part| wait(*part, 0)),
            Expr::Repeat { body, .. } => wait(*body, 1),
            Expr::Rule(rule) => wait(grammar.rule(*rule).expr(), 0),
            Expr::Scope { body, .. } | Expr::Distinct(body) | Expr::Limit { body, .. } => wait(*body, 0),
            Expr::Class(_) | Expr::And(_) | Expr::Not(_) | Expr::JsonString(_) | Expr::Token(_) => {}
        }
        Ok(())
    }

    /// Advances a waiter whose expression ends here.
    fn advance(&mut self, waiter: Waiter) {
        let Waiter { expr, done, origin } = waiter;
        match self.grammar.expr(expr) {
            Expr::Seq(parts) if (done as usize) < parts.len() => {
                let next = Waiter { expr, done: done + 1, origin };
                self.work.push(Work::Wait(parts[done as usize], Some(next)));
            }
            Expr::Repeat { body, min, max } => {
                if done >= *min {
                    self.work.push(Work::Over(expr, origin));
                }
                if max.is_none_or(|max| done < max) {
                    // Without an upper bound, all rounds above the minimum are equivalent.
                    let most = max.unwrap_or((*min).max(1));
                    let next = Waiter { expr, done: (done + 1).min(most), origin };
                    self.work.push(Work::Wait(*body, Some(next)));
                }
            }
            _ => self.work.push(Work::Over(expr, origin)),
        }
    }

    fn program(&mut self, expr: ExprId) -> Result<Option<Arc<BoundProgram>>, LocateError> {
        if let Some(known) = self.programs.get(&expr) {
            return Ok(known.clone());
        }
        let part = self.grammar.part(expr).map_err(LocateError::Part)?;
        let failed = |error| LocateError::Constraint(Error::Compile(error));
        let resolved = resolve(&part, self.library.vocabulary()).map_err(failed)?;
        let program = match compile(&resolved.grammar, &self.tables, &self.limits) {
            Ok(program) => Some(BoundProgram::new(Arc::new(program), self.library.clone())),
            Err(CompileError::Empty { .. }) => None,
            Err(error) => return Err(failed(error)),
        };
        self.programs.insert(expr, program.clone());
        Ok(program)
    }

    /// Finds the expressions that match the empty text.
    fn find_nullable(&mut self) -> Result<Vec<bool>, LocateError> {
        let grammar = self.grammar.clone();
        let count = grammar.exprs().len();
        // `missing` counts the operands that must still be nullable before an expression is; `users` lists the
        // expressions that have it as an operand.
        let mut missing = vec![1usize; count];
        let mut users: Vec<Vec<ExprId>> = vec![Vec::new(); count];
        let mut work = Vec::new();
        let known = without_rules(&grammar);
        for id in grammar.expr_ids() {
            match grammar.expr(id) {
                _ if known[id.index()] == Some(true) => work.push(id),
                _ if known[id.index()].is_some() => {}
                // A complement inverts the answer, so the answer for its operand must be final. The engine knows it.
                Expr::Not(_) => {
                    if self.program(id)?.is_some_and(|program| program.matcher().is_accepting()) {
                        work.push(id);
                    }
                }
                Expr::Rule(rule) => users[grammar.rule(*rule).expr().index()].push(id),
                expr => {
                    if matches!(expr, Expr::Seq(_) | Expr::And(_)) {
                        missing[id.index()] = expr.operands().len();
                    }
                    expr.operands().iter().for_each(|operand| users[operand.index()].push(id));
                }
            }
        }
        let mut nullable = vec![false; count];
        while let Some(id) = work.pop() {
            if core::mem::replace(&mut nullable[id.index()], true) {
                continue;
            }
            for user in &users[id.index()] {
                let left = &mut missing[user.index()];
                *left = left.saturating_sub(1);
                if *left == 0 {
                    work.push(*user);
                }
            }
        }
        Ok(nullable)
    }

    /// Returns the readings, and the terminals that may follow if one of these bytes, or a special token, comes next.
    pub(super) fn locate(&self, next_bytes: ByteSet) -> Located<'_> {
        let none = || Located { readings: Vec::new(), next: Vec::new(), more: false };
        let (mut located, mut steps) = (none(), 0);
        let inside = self.terminals.iter().filter(|terminal| terminal.origin < self.position);
        for terminal in inside {
            let found = FoundTerminal {
                notation: self.notation(terminal.expr),
                begin: terminal.origin,
                length: match self.grammar.expr(terminal.expr) {
                    Expr::Bytes(bytes) => Some(bytes.len()),
                    _ => None,
                },
                may_end: terminal.may_end,
            };
            self.follow(terminal, Some(&found), &mut steps, &mut located);
        }
        let is_between = located.readings.is_empty();
        for terminal in self.terminals.iter().filter(|terminal| self.may_begin(terminal, next_bytes)) {
            if is_between {
                self.follow(terminal, None, &mut steps, &mut located);
            }
            let mut above = none();
            self.follow(terminal, None, &mut steps, &mut above);
            for reading in above.readings {
                let rule = reading.rules.last().map_or("", |(name, _)| name).to_owned();
                let next = Next { rule, notation: self.notation(terminal.expr) };
                if located.next.contains(&next) {
                    continue;
                }
                if located.next.len() == MAX_NEXT_TERMINALS {
                    located.more = true;
                    break;
                }
                located.next.push(next);
            }
            located.more |= above.more;
        }
        if located.readings.is_empty() {
            // The text is complete, and only the root is open.
            let root = self.grammar.rule(self.grammar.root());
            let document = root.is_document().then_some(0);
            let rules = vec![(root.name(), 0)];
            located.readings.push(Found { rules, terminal: None, document });
        }
        located.next.sort();
        located
    }

    /// Returns the temperature for the next token. For every terminal that may continue with one of these bytes (or
    /// with a special token), the innermost rule around it that requests a temperature counts; the result is the
    /// greatest of these.
    pub(super) fn temperature(&self, next_bytes: ByteSet) -> Option<Temperature> {
        let comes =
            |terminal: &&Terminal| terminal.origin < self.position || self.may_begin(terminal, next_bytes);
        let mut ways: Vec<(ExprId, usize)> =
            self.terminals.iter().filter(comes).map(|terminal| (terminal.expr, terminal.origin)).collect();
        let mut known: HashSet<(ExprId, usize)> = ways.iter().copied().collect();
        let wanted = |rule: &Rule| rule.notes().and_then(|notes| notes.temperature);
        let root = self.grammar.rule(self.grammar.root());
        let mut found: Vec<Temperature> = Vec::new();
        while let Some((expr, begin)) = ways.pop() {
            let inner = match self.grammar.expr(expr) {
                Expr::Rule(rule) => wanted(self.grammar.rule(*rule)),
                _ => None,
            };
            if let Some(temperature) = inner {
                found.push(temperature);
                continue;
            }
            if (expr, begin) == (root.expr(), 0) {
                found.extend(wanted(root));
            }
            let above = self.waits.get(&(begin, expr)).into_iter().flatten();
            ways.extend(above.map(|one| (one.expr, one.origin)).filter(|above| known.insert(*above)));
        }
        found.into_iter().max_by(|one, other| one.value().total_cmp(&other.value()))
    }

    /// Forgets all waiters that no open terminal can reach.
    pub(super) fn forget(&mut self) {
        let mut ways: Vec<(ExprId, usize)> =
            self.terminals.iter().map(|terminal| (terminal.expr, terminal.origin)).collect();
        let mut needed: HashSet<(ExprId, usize)> = ways.iter().copied().collect();
        while let Some((expr, begin)) = ways.pop() {
            let above = self.waits.get(&(begin, expr)).into_iter().flatten();
            ways.extend(above.map(|one| (one.expr, one.origin)).filter(|above| needed.insert(*above)));
        }
        self.waits.retain(|(begin, expr), _| needed.contains(&(*expr, *begin)));
        self.known.retain(|(begin, expr, _)| needed.contains(&(*expr, *begin)));
    }

    /// Returns the number of units that were read.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Returns how many waiters are remembered, at about 100 bytes each.
    pub(super) fn entries(&self) -> usize {
        self.known.len()
    }

    /// Whether a terminal may begin here with one of these bytes, or with a special token.
    fn may_begin(&self, terminal: &Terminal, next_bytes: ByteSet) -> bool {
        terminal.origin == self.position && terminal.may_begin(&self.grammar, next_bytes)
    }

    /// Adds the readings that a terminal is part of: one for every path from it to the root.
    fn follow<'g>(
        &'g self,
        terminal: &Terminal,
        found: Option<&FoundTerminal>,
        steps: &mut usize,
        located: &mut Located<'g>,
    ) {
        let empty: &[Waiter] = &[];
        let waiters = |expr, at| self.waits.get(&(at, expr)).map_or(empty, |list| list);
        let top = (self.grammar.rule(self.grammar.root()).expr(), 0);
        // The path so far: each expression with its begin, and the index of the next waiter to follow.
        let mut way = vec![((terminal.expr, terminal.origin), 0)];
        let mut is_new = true;
        while let Some((at, next)) = way.last_mut() {
            let (at, waiter) = (*at, waiters(at.0, at.1).get(*next).copied());
            *next += 1;
            *steps += 1;
            if *steps > MAX_WAITER_STEPS {
                located.more = true;
                return;
            }
            if is_new && at == top {
                let reading = self.reading(way.iter().rev().map(|((expr, begin), _)| (*expr, *begin)), found);
                if !located.readings.contains(&reading) {
                    if located.readings.len() == MAX_READINGS {
                        located.more = true;
                        return;
                    }
                    located.readings.push(reading);
                }
            }
            match waiter {
                None => {
                    way.pop();
                    is_new = false;
                }
                Some(waiter) => {
                    let above = (waiter.expr, waiter.origin);
                    is_new = !way.iter().any(|(known, _)| *known == above);
                    if is_new {
                        way.push((above, 0));
                    }
                }
            }
        }
    }

    fn reading(
        &self,
        way: impl Iterator<Item = (ExprId, usize)>,
        terminal: Option<&FoundTerminal>,
    ) -> Found<'_> {
        let root = self.grammar.rule(self.grammar.root());
        let mut rules = vec![(root.name(), 0)];
        let mut document = root.is_document().then_some(0);
        for (expr, begin) in way {
            if let Expr::Rule(rule) = self.grammar.expr(expr) {
                let rule = self.grammar.rule(*rule);
                rules.push((rule.name(), begin));
                document = document.or_else(|| rule.is_document().then_some(begin));
            }
        }
        Found { rules, terminal: terminal.cloned(), document }
    }

    /// Returns the captured pieces of text as positions, in the order in which they ended. A complete text is captured
    /// by a reading of all of it; otherwise the first reading is used, for the rules that are already complete.
    pub(super) fn captures(&self) -> Result<Vec<Caught<'_>>, LocateError> {
        let Some(ends) = &self.ends else { return Ok(Vec::new()) };
        let root = self.grammar.rule(self.grammar.root());
        let mut reader =
            Captures { grammar: &self.grammar, nullable: &self.nullable, ends, found: Vec::new(), steps: 0 };
        let is_whole = if self.position == 0 {
            self.nullable[root.expr().index()]
        } else {
            reader.ends_of(root.expr(), 0).contains(&self.position)
        };
        let done = if is_whole {
            reader.whole(root, self.position)
        } else {
            match self.first_way() {
                Some(way) => {
                    way.into_iter().rev().try_for_each(|(waiter, begin)| reader.before(waiter, begin))
                }
                None => Ok(()),
            }
        };
        done.map_err(|_| LocateError::TooLong { read: self.position })?;
        Ok(reader.found)
    }

    /// Returns where the ending of a captured text begins, relative to the text's beginning. `steps` is the number of
    /// steps that are still allowed.
    pub(super) fn border(
        &mut self,
        (body, ending): (ExprId, ExprId),
        text: &[Unit],
        steps: &mut usize,
    ) -> Result<usize, LocateError> {
        let ends = self.ends(body, text, steps)?;
        for &at in ends.iter().rev() {
            if self.ends(ending, &text[at..], steps)?.last() == Some(&(text.len() - at)) {
                return Ok(at);
            }
        }
        // Not reached: the text was read with such an ending, so one of the ends above fits.
        Ok(text.len())
    }

    /// Returns the lengths of all prefixes of a text that an expression matches.
    fn ends(&mut self, expr: ExprId, text: &[Unit], steps: &mut usize) -> Result<Vec<usize>, LocateError> {
        let mut ends = Vec::new();
        let Some(program) = self.program(expr)? else { return Ok(ends) };
        let mut matcher = program.matcher();
        for at in 0..=text.len() {
            *steps = steps.checked_sub(1).ok_or(LocateError::TooLong { read: self.position })?;
            if matcher.is_accepting() {
                ends.push(at);
            }
            if !text.get(at).is_some_and(|unit| unit.take(&mut matcher)) {
                break;
            }
        }
        Ok(ends)
    }

    /// Returns the path from a terminal that is open, or may begin, to the root: each waiter, and where the expression
    /// it waits for began.
    fn first_way(&self) -> Option<Vec<(Waiter, usize)>> {
        let top = (self.grammar.rule(self.grammar.root()).expr(), 0);
        let inside = self.terminals.iter().filter(|terminal| terminal.origin < self.position);
        let outside = self.terminals.iter().filter(|terminal| terminal.origin == self.position);
        for terminal in inside.chain(outside) {
            // A depth-first search from the terminal. A place that was tried before need not be tried again.
            let mut tried = HashSet::from([(terminal.expr, terminal.origin)]);
            let mut way: Vec<(Waiter, usize)> = Vec::new();
            let mut here = vec![((terminal.expr, terminal.origin), 0usize)];
            while let Some((at, next)) = here.last_mut() {
                let at = *at;
                if at == top {
                    return Some(way);
                }
                let waiter = self.waits.get(&(at.1, at.0)).and_then(|list| list.get(*next)).copied();
                *next += 1;
                match waiter {
                    None => {
                        here.pop();
                        way.pop();
                    }
                    Some(waiter) => {
                        if tried.insert((waiter.expr, waiter.origin)) {
                            way.push((waiter, at.1));
                            here.push(((waiter.expr, waiter.origin), 0));
                        }
                    }
                }
            }
        }
        None
    }

    fn notation(&self, expr: ExprId) -> String {
        let mut notation = self.grammar.display(expr).to_string();
        if let Some((end, _)) = notation.char_indices().nth(MAX_NOTATION_CHARS) {
            notation.truncate(end);
            notation.push('…');
        }
        notation
    }
}

/// A capture and the positions between which its text lies.
pub(super) type Caught<'g> = (&'g Capture, usize, usize);

/// Splits a text into the parts of its expressions, given where each of them begins and ends. Alternatives are tried in
/// order, and each part is as long as possible, from left to right.
struct Captures<'c, 'g> {
    grammar: &'g Grammar,
    nullable: &'c [bool],
    ends: &'c HashMap<(ExprId, usize), Vec<usize>>,
    found: Vec<Caught<'g>>,
    steps: usize,
}

/// The maximum number of steps for splitting a text.
pub(super) const CAPTURE_STEPS: usize = 4_000_000;

/// The limit on steps was exceeded.
struct TooMany;

/// A pending task.
enum Task<'g> {
    Part(ExprId, usize, usize),
    /// A rule that is complete.
    Rule(&'g Rule, usize, usize),
}

impl<'g> Captures<'_, 'g> {
    fn ends_of(&self, expr: ExprId, from: usize) -> &[usize] {
        self.ends.get(&(expr, from)).map_or(&[], |ends| ends)
    }

    fn whole(&mut self, root: &'g Rule, end: usize) -> Result<(), TooMany> {
        self.run(vec![Task::Rule(root, 0, end), Task::Part(root.expr(), 0, end)])
    }

    /// Handles the completed parts of an expression that waits for another one, which began at `to`.
    fn before(&mut self, waiter: Waiter, to: usize) -> Result<(), TooMany> {
        let from = waiter.origin;
        let parts = match self.grammar.expr(waiter.expr) {
            Expr::Seq(parts) => {
                let done = (waiter.done as usize).saturating_sub(1).min(parts.len());
                self.split(&parts[..done], None, from, to)?
            }
            Expr::Repeat { body, .. } => self.split(&[], Some((*body, 0)), from, to)?,
            _ => return Ok(()),
        };
        let tasks = parts.into_iter().rev().map(|(part, from, to)| Task::Part(part, from, to));
        self.run(tasks.collect())
    }

    /// Runs all tasks, the last one first.
    fn run(&mut self, mut tasks: Vec<Task<'g>>) -> Result<(), TooMany> {
        while let Some(task) = tasks.pop() {
            self.steps += 1;
            if self.steps > CAPTURE_STEPS {
                return Err(TooMany);
            }
            let (expr, from, to) = match task {
                Task::Part(expr, from, to) => (expr, from, to),
                Task::Rule(rule, from, to) => {
                    let captures = rule.notes().map_or(&[][..], |notes| &notes.captures);
                    self.found.extend(captures.iter().map(|capture| (capture, from, to)));
                    continue;
                }
            };
            let parts = match self.grammar.expr(expr) {
                _ if is_terminal(self.grammar, expr) => continue,
                Expr::Rule(rule) => {
                    let rule = self.grammar.rule(*rule);
                    tasks.extend([Task::Rule(rule, from, to), Task::Part(rule.expr(), from, to)]);
                    continue;
                }
                Expr::Scope { body, .. } | Expr::Distinct(body) | Expr::Limit { body, .. } => {
                    vec![(*body, from, to)]
                }
                Expr::Alt(parts) => {
                    let spans = |part: &&ExprId| {
                        from == to && self.nullable[part.index()] || self.ends_of(**part, from).contains(&to)
                    };
                    parts.iter().find(spans).map(|part| (*part, from, to)).into_iter().collect()
                }
                Expr::Seq(parts) => self.split(parts, None, from, to)?,
                // An empty repetition has no rounds.
                Expr::Repeat { .. } if from == to => Vec::new(),
                Expr::Repeat { body, min, .. } => self.split(&[], Some((*body, *min)), from, to)?,
                _ => continue,
            };
            tasks.extend(parts.into_iter().rev().map(|(part, from, to)| Task::Part(part, from, to)));
        }
        Ok(())
    }

    /// Splits a piece of text into these parts, or into at least this many rounds of an expression. No round is empty
    /// unless it must be.
    fn split(
        &mut self,
        parts: &[ExprId],
        rounds: Option<(ExprId, u32)>,
        from: usize,
        to: usize,
    ) -> Result<Vec<(ExprId, usize, usize)>, TooMany> {
        let part_at = |step: usize| match rounds {
            Some((body, _)) => Some(body),
            None => parts.get(step).copied(),
        };
        let is_done = |step: usize, at: usize| {
            let enough = match rounds {
                Some((body, min)) => step >= min as usize || self.nullable[body.index()],
                None => step == parts.len(),
            };
            at == to && enough
        };
        // The steps taken so far: where each began, and which of its ends is tried next, the longest first.
        let mut way = vec![(from, 0usize)];
        let mut dead: HashSet<(usize, usize)> = HashSet::new();
        let mut steps = 0;
        while let Some(&(at, tried)) = way.last() {
            steps += 1;
            let step = way.len() - 1;
            if tried == 0 && is_done(step, at) {
                break;
            }
            if self.steps + steps > CAPTURE_STEPS {
                return Err(TooMany);
            }
            let next = part_at(step).and_then(|part| {
                let ends = self.ends_of(part, at);
                let end = ends.iter().rev().filter(|end| **end <= to).nth(tried).copied();
                let count = ends.iter().filter(|end| **end <= to).count();
                let may_be_empty = rounds.is_none() && self.nullable[part.index()] && tried == count;
                end.or_else(|| may_be_empty.then_some(at))
            });
            if let Some(last) = way.last_mut() {
                last.1 += 1;
            }
            match next {
                Some(end) if !dead.contains(&(step + 1, end)) => way.push((end, 0)),
                Some(_) => {}
                None => {
                    way.pop();
                    dead.insert((step, at));
                }
            }
        }
        self.steps += steps;
        let pairs = way.iter().zip(way.iter().skip(1)).enumerate();
        Ok(pairs.filter_map(|(step, (from, to))| Some((part_at(step)?, from.0, to.0))).collect())
    }
}

/// Whether a rule of a grammar has a capture.
fn captures_something(grammar: &Grammar) -> bool {
    grammar.rules().iter().any(|rule| rule.notes().is_some_and(|notes| !notes.captures.is_empty()))
}

impl Terminal {
    /// Consumes a unit, if possible.
    fn step(&mut self, grammar: &Grammar, unit: Unit) -> bool {
        match (&mut self.at, grammar.expr(self.expr), unit) {
            (At::Literal(done), Expr::Bytes(bytes), Unit::Byte(byte)) => {
                let fits = bytes.get(*done) == Some(&byte);
                *done += 1;
                self.may_end = *done == bytes.len();
                fits
            }
            (At::Matcher(matcher), _, unit) => {
                let taken = unit.take(matcher);
                self.may_end = matcher.is_accepting();
                taken
            }
            _ => false,
        }
    }

    /// Whether no more of it can follow.
    fn is_finished(&self, grammar: &Grammar) -> bool {
        match &self.at {
            At::Literal(done) => {
                matches!(grammar.expr(self.expr), Expr::Bytes(bytes) if bytes.len() == *done)
            }
            At::Matcher(matcher) => self.may_end && matcher.next_bytes().is_empty(),
        }
    }

    /// Whether it can begin with one of these bytes, or with a special token.
    fn may_begin(&self, grammar: &Grammar, next: ByteSet) -> bool {
        match (&self.at, grammar.expr(self.expr)) {
            (At::Literal(_), Expr::Bytes(bytes)) => bytes.first().is_some_and(|byte| next.contains(*byte)),
            (At::Matcher(matcher), _) => !matcher.next_bytes().intersection(next).is_empty(),
            (At::Literal(_), _) => false,
        }
    }
}

/// Finds which expressions match the empty text, for those that do not depend on a rule.
fn without_rules(grammar: &Grammar) -> Vec<Option<bool>> {
    let mut known: Vec<Option<bool>> = Vec::with_capacity(grammar.exprs().len());
    // Operands precede the expressions that use them.
    for expr in grammar.exprs() {
        let mut of = expr.operands().iter().map(|operand| known[operand.index()]);
        let found = match expr {
            Expr::Empty | Expr::Repeat { min: 0, .. } => Some(true),
            Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Token(_) | Expr::JsonString(_) => {
                Some(false)
            }
            Expr::Rule(_) => None,
            Expr::Not(inner) => known[inner.index()].map(|is_nullable| !is_nullable),
            Expr::Seq(_) | Expr::And(_) if of.clone().any(|one| one == Some(false)) => Some(false),
            Expr::Alt(_) if of.clone().any(|one| one == Some(true)) => Some(true),
            Expr::Alt(_) => of.all(|one| one == Some(false)).then_some(false),
            _ => of
                .clone()
                .all(|one| one == Some(true))
                .then_some(true)
                .or_else(|| of.next().flatten().filter(|_| expr.operands().len() == 1)),
        };
        known.push(found);
    }
    known
}

/// Whether an expression is a terminal, which is not split further.
fn is_terminal(grammar: &Grammar, expr: ExprId) -> bool {
    match grammar.expr(expr) {
        Expr::Bytes(_)
        | Expr::Class(_)
        | Expr::And(_)
        | Expr::Not(_)
        | Expr::JsonString(_)
        | Expr::Token(_) => true,
        Expr::Repeat { body, .. } => is_character(grammar, *body),
        _ => false,
    }
}

/// Whether an expression is a literal, a class, or a choice of these.
fn is_character(grammar: &Grammar, expr: ExprId) -> bool {
    match grammar.expr(expr) {
        Expr::Bytes(_) | Expr::Class(_) => true,
        Expr::Alt(parts) => {
            parts.iter().all(|part| matches!(grammar.expr(*part), Expr::Bytes(_) | Expr::Class(_)))
        }
        _ => false,
    }
}
