//! Builds one automaton for a whole grammar.
//!
//! A grammar without recursion is a regular expression with names: rules are inlined where they are used, JSON strings
//! become tables – the same ones that the matcher reads, with their lengths counted inside – and the result is
//! determinized and minimized. All later steps need only [`Dfa::next`].
//!
//! Two kinds of grammars have no such automaton. Recursion may nest without end; and values that must differ from those
//! before them ([`Expr::Distinct`]) would need a state for every set of values. Both are refused with an error of their
//! own.

use maskwright_automata::{self as automata, ByteClasses, ByteSet, Dfa};
use maskwright_grammar::{Expr, ExprId, Grammar, RuleId};

use super::{IndexError, IndexLimits};
use crate::compile::{CompileError, Leaves, check, translate_with};
use crate::leaf::AutomatonCache;
use crate::leaf::{Action, Automaton, Leaf, LeafState};
use crate::limits::Limits;

/// Returns the minimal automaton of everything that the root matches.
pub(super) fn automaton(
    grammar: &Grammar,
    cache: &AutomatonCache,
    limits: &IndexLimits,
) -> Result<Dfa, IndexError> {
    let engine_limits = Limits::default();
    check(grammar, &engine_limits)?;
    check_finite(grammar)?;
    let limits = automata::Limits { states: limits.states, steps: limits.steps, bytes: limits.bytes };
    let mut leaves = Leaves::new(grammar, cache, &engine_limits);
    let mut exprs = automata::Exprs::new();
    let root = grammar.rule(grammar.root());
    let language = translate_with(grammar, root.expr(), &mut exprs, |text, exprs| {
        Ok::<_, IndexError>(exprs.table(string_table(&mut leaves, text, &limits)?))
    })?;
    let dfa = Dfa::build(&mut exprs, language, &limits).map_err(IndexError::Automaton)?;
    if dfa.is_empty() {
        return Err(CompileError::Empty { rule: root.name().into() }.into());
    }
    Ok(dfa)
}

/// Returns the automaton of the JSON strings with a text, lengths included.
fn string_table(leaves: &mut Leaves<'_>, text: ExprId, limits: &automata::Limits) -> Result<Dfa, IndexError> {
    let leaf = leaves.json_leaf(text)?;
    if let Leaf::Window { automaton, min, max } = &leaves.list[leaf.index()] {
        return counted(automaton, *min, *max, limits);
    }
    // The matcher builds such a string state by state; here all states are needed.
    match leaves.json_table(text)? {
        Some(automaton) => counted(&automaton, 0, u32::MAX, limits),
        None => Err(IndexError::StringTooLarge),
    }
}

/// Moves the counter of a table inside: a state of the result is a state of the table and a number of units.
fn counted(automaton: &Automaton, min: u32, max: u32, limits: &automata::Limits) -> Result<Dfa, IndexError> {
    let mut sets = vec![ByteSet::EMPTY; 256];
    for byte in 0..=255 {
        sets[usize::from(automaton.class(byte))].insert(byte);
    }
    let classes = ByteClasses::new(sets.into_iter().filter(|set| !set.is_empty()));
    // Without an upper bound, all counts from the minimum on are equivalent.
    let most = if max == u32::MAX { min } else { max };
    let step = |&(state, count): &(LeafState, u32), byte: u8| {
        let step = automaton.step(state, byte);
        match step.action() {
            _ if step.is_dead() => None,
            Action::Pass => Some((step.target(), count)),
            Action::Unit if count < max => Some((step.target(), (count + 1).min(most))),
            Action::Close if count >= min => Some((step.target(), count)),
            Action::Unit | Action::Close => None,
        }
    };
    let accepting = |&(state, count): &(LeafState, u32)| automaton.is_accepting(state) && count >= min;
    Dfa::explore(classes, (automaton.start(), 0), accepting, step, limits).map_err(IndexError::Automaton)
}

/// Refuses what no finite automaton can represent, and what the rest of the engine refuses.
fn check_finite(grammar: &Grammar) -> Result<(), IndexError> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        /// The rules below it are being visited.
        Open,
        Done,
    }
    let mut seen = vec![Seen::Not; grammar.rules().len()];
    // Open rules, and the rules they have yet to visit.
    let mut work: Vec<(RuleId, Vec<RuleId>)> = Vec::new();
    let mut visited = vec![false; grammar.exprs().len()];
    let open = |rule: RuleId, visited: &mut Vec<bool>| -> Result<_, IndexError> {
        Ok((rule, calls(grammar, grammar.rule(rule).expr(), visited)?))
    };
    seen[grammar.root().index()] = Seen::Open;
    work.push(open(grammar.root(), &mut visited)?);
    while let Some((rule, calls)) = work.last_mut() {
        let Some(called) = calls.pop() else {
            seen[rule.index()] = Seen::Done;
            work.pop();
            continue;
        };
        match seen[called.index()] {
            Seen::Done => {}
            Seen::Open => return Err(IndexError::Recursive { rule: grammar.rule(called).name().into() }),
            Seen::Not => {
                seen[called.index()] = Seen::Open;
                work.push(open(called, &mut visited)?);
            }
        }
    }
    Ok(())
}

/// Returns the rules that an expression calls, or why it has no automaton.
fn calls(grammar: &Grammar, root: ExprId, visited: &mut [bool]) -> Result<Vec<RuleId>, IndexError> {
    let mut calls = Vec::new();
    // An expression shared by two rules is visited for each of them.
    let mut touched = Vec::new();
    let mut work = vec![(root, false)];
    while let Some((id, inside)) = work.pop() {
        if core::mem::replace(&mut visited[id.index()], true) && !inside {
            continue;
        }
        touched.push(id);
        let expr = grammar.expr(id);
        let inside = match expr {
            Expr::JsonString(_) if inside => return Err(CompileError::NestedJsonString.into()),
            Expr::Scope { .. } | Expr::Distinct(_) => return Err(IndexError::Remembers),
            Expr::Limit { .. } => return Err(IndexError::CountsTokens),
            Expr::Rule(rule) => {
                calls.push(*rule);
                continue;
            }
            Expr::And(_) | Expr::Not(_) | Expr::JsonString(_) => true,
            _ => inside,
        };
        work.extend(expr.operands().iter().map(|&operand| (operand, inside)));
    }
    for id in touched {
        visited[id.index()] = false;
    }
    Ok(calls)
}
