//! Questions about regular languages: is one empty, does it hold a text?
//!
//! The grammar's expressions are turned into those of the automata crate, and a lazy automaton answers. Answers are
//! remembered by expression.

use maskwright_automata as automata;
use maskwright_grammar::{Expr, ExprId, GrammarBuilder};
use rustc_hash::FxHashMap;

use super::super::keywords::Window;

/// What one question may cost.
const LIMITS: automata::Limits = automata::Limits { states: 50_000, steps: 2_000_000, bytes: 64 << 20 };

/// Answers about the languages of one grammar.
#[derive(Debug, Default)]
pub(super) struct Languages {
    empty: FxHashMap<ExprId, Option<bool>>,
    machines: FxHashMap<ExprId, Option<Machine>>,
}

#[derive(Debug)]
struct Machine {
    automaton: automata::LazyDfa,
    start: u32,
}

impl Languages {
    /// Says that some text is in the language, for one that is known beforehand.
    pub(super) fn know_inhabited(&mut self, expr: ExprId) {
        self.empty.insert(expr, Some(false));
    }

    /// Whether no text is in the language; `None` if that takes too long to find out.
    pub(super) fn is_empty(&mut self, grammar: &GrammarBuilder, expr: ExprId) -> Option<bool> {
        if let Some(&known) = self.empty.get(&expr) {
            return known;
        }
        match grammar.expr(expr) {
            Expr::Never => return Some(true),
            Expr::Empty | Expr::Bytes(_) | Expr::Class(_) => return Some(false),
            _ if is_clearly_inhabited(grammar, expr) => return Some(false),
            _ => {}
        }
        let answer = Machine::new(grammar, expr).map(|machine| machine.automaton.is_dead(machine.start));
        self.empty.insert(expr, answer);
        answer
    }

    /// Whether no text of the language has a length in the window; `None` if that takes too long to find out.
    pub(super) fn is_empty_within(
        &mut self,
        grammar: &GrammarBuilder,
        language: ExprId,
        window: Window,
        both: ExprId,
    ) -> Option<bool> {
        // The shortest text decides almost always, and costs no counting.
        let machine = self.machines.entry(language).or_insert_with(|| Machine::new(grammar, language));
        if let Some(machine) = machine
            && let Ok(Some(shortest)) = machine.automaton.witness_from(machine.start)
        {
            let length = String::from_utf8_lossy(&shortest).chars().count();
            if window.holds(length) {
                return Some(false);
            }
        }
        self.is_empty(grammar, both)
    }

    /// Whether a text is in the language; `None` if that takes too long to find out.
    pub(super) fn holds(&mut self, grammar: &GrammarBuilder, expr: ExprId, text: &str) -> Option<bool> {
        let machine = self.machines.entry(expr).or_insert_with(|| Machine::new(grammar, expr));
        let machine = machine.as_mut()?;
        let end = machine.automaton.run(machine.start, text.as_bytes()).ok()?;
        Some(machine.automaton.is_accepting(end))
    }
}

impl Machine {
    fn new(grammar: &GrammarBuilder, expr: ExprId) -> Option<Self> {
        let mut exprs = automata::Exprs::new();
        let root = translate(grammar, expr, &mut exprs)?;
        let mut automaton = automata::LazyDfa::new(exprs, LIMITS);
        let start = automaton.state_of(root).ok()?;
        Some(Self { automaton, start })
    }
}

/// Whether it is plain to see that some text is in a language: there is neither intersection nor complement in it, or
/// only words are taken away from infinitely many texts.
fn is_clearly_inhabited(grammar: &GrammarBuilder, expr: ExprId) -> bool {
    match grammar.expr(expr) {
        Expr::Not(inner) => is_words(grammar, *inner),
        Expr::And(parts) => {
            let mut rest = parts.iter().filter(|part| match grammar.expr(**part) {
                Expr::Not(inner) => !is_words(grammar, *inner),
                _ => true,
            });
            match (rest.next(), rest.next()) {
                (Some(only), None) => is_plain(grammar, *only) && is_infinite(grammar, *only),
                (None, _) => true,
                _ => false,
            }
        }
        _ => is_plain(grammar, expr),
    }
}

/// Whether an expression is a list of words.
fn is_words(grammar: &GrammarBuilder, expr: ExprId) -> bool {
    let is_word = |id: ExprId| matches!(grammar.expr(id), Expr::Bytes(_) | Expr::Empty);
    match grammar.expr(expr) {
        Expr::Alt(parts) => parts.iter().all(|part| is_word(*part)),
        _ => is_word(expr),
    }
}

/// Whether a plain expression that is not empty matches infinitely many texts.
fn is_infinite(grammar: &GrammarBuilder, root: ExprId) -> bool {
    // The builder keeps no repetition of nothing, and no part that matches nothing.
    let mut work = vec![(root, 0)];
    while let Some((id, depth)) = work.pop() {
        match grammar.expr(id) {
            Expr::Repeat { max: None, .. } => return true,
            expr if depth < 64 => work.extend(expr.operands().iter().map(|operand| (*operand, depth + 1))),
            _ => {}
        }
    }
    false
}

/// Whether there is neither intersection nor complement in an expression, so that only [`Expr::Never`] is empty.
fn is_plain(grammar: &GrammarBuilder, root: ExprId) -> bool {
    let mut seen = rustc_hash::FxHashSet::default();
    let mut work = vec![root];
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let expr = grammar.expr(id);
        if matches!(expr, Expr::And(_) | Expr::Not(_)) {
            return false;
        }
        work.extend_from_slice(expr.operands());
    }
    true
}

/// The same language in the terms of the automata crate; `None` if it is not a language of texts.
fn translate(
    grammar: &GrammarBuilder,
    root: ExprId,
    exprs: &mut automata::Exprs,
) -> Option<automata::ExprId> {
    let mut done: FxHashMap<ExprId, automata::ExprId> = FxHashMap::default();
    let mut work = vec![(root, false)];
    while let Some((id, ready)) = work.pop() {
        if done.contains_key(&id) {
            continue;
        }
        let expr = grammar.expr(id);
        if !ready {
            work.push((id, true));
            work.extend(expr.operands().iter().map(|operand| (*operand, false)));
            continue;
        }
        let many = |parts: &[ExprId]| parts.iter().map(|part| done[part]).collect::<Vec<_>>();
        let translated = match expr {
            Expr::Never => exprs.never(),
            Expr::Empty => exprs.empty(),
            Expr::Bytes(bytes) => exprs.bytes(bytes),
            Expr::Class(set) => exprs.chars(set.ranges().iter().copied()),
            Expr::Seq(parts) => exprs.concat(many(parts)),
            Expr::Alt(parts) => exprs.alt(many(parts)),
            Expr::And(parts) => exprs.and(many(parts)),
            Expr::Repeat { body, min, max } => exprs.repeat(done[body], *min, *max),
            Expr::Not(inner) => {
                let not = exprs.not(done[inner]);
                let utf8 = exprs.utf8_text();
                exprs.and([utf8, not])
            }
            Expr::Rule(_) | Expr::JsonString(_) | Expr::Scope { .. } | Expr::Distinct(_) => return None,
        };
        done.insert(id, translated);
    }
    done.get(&root).copied()
}
