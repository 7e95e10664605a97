//! Where values that must differ may run out.
//!
//! A string that can always go on never lacks a new value; an enumeration does. A matcher looks out for dead ends only where there
//! can be some, so each scope is told what its values are like.

use core::cmp::Reverse;

use maskwright_grammar::{Expr, ExprId, Grammar};

use super::leaves::Leaves;
use crate::program::network::Values;

/// For each expression, what the values in it are like, those of inner scopes not counted; and whether there are arrays or objects among
/// them, if some may run out.
pub(crate) fn classify(grammar: &Grammar, leaves: &Leaves<'_>) -> (Vec<Values>, bool) {
    let is_other = |expr: &Expr| matches!(expr, Expr::Distinct(value) if !is_endless(leaves, *value));
    let mut values = vec![Values::Endless; grammar.exprs().len()];
    // PERF: nearly always ends here.
    if !grammar.exprs().iter().any(is_other) {
        return (values, false);
    }
    let (endless, nested) =
        (holds(grammar, |id| is_endless(leaves, id)), holds(grammar, |id| is_bracket(grammar, id)));
    let of_distinct = |value: ExprId| match leaves.of(value).and_then(|leaf| leaves.room(leaf)) {
        _ if is_endless(leaves, value) => Values::Endless,
        _ if is_integers(grammar, leaves, value) => Values::Integers,
        Some(room) => Values::Long(Reverse(room)),
        None if nested[value.index()] && !endless[value.index()] => Values::Nested,
        None => Values::Simple,
    };
    loop {
        let mut changed = false;
        for (i, expr) in grammar.exprs().iter().enumerate() {
            let inside = operands(grammar, expr).map(|op| values[op.index()]).max().unwrap_or_default();
            let new = match expr {
                Expr::Distinct(value) => of_distinct(*value).max(inside),
                Expr::Scope { .. } => Values::Endless,
                _ => inside,
            };
            changed |= new != values[i];
            values[i] = new;
        }
        if !changed {
            break;
        }
    }
    for (i, expr) in grammar.exprs().iter().enumerate() {
        if let Expr::Scope { body, .. } = expr {
            values[i] = values[body.index()];
        }
    }
    let is_nested = |expr: &Expr| matches!(expr, Expr::Distinct(value) if nested[value.index()]);
    (values, grammar.exprs().iter().any(is_nested))
}

/// For each expression, whether something holds for it or anything inside.
fn holds(grammar: &Grammar, of: impl Fn(ExprId) -> bool) -> Vec<bool> {
    let mut found: Vec<bool> = grammar.expr_ids().map(of).collect();
    loop {
        let mut changed = false;
        for (i, expr) in grammar.exprs().iter().enumerate() {
            if !found[i] && operands(grammar, expr).any(|op| found[op.index()]) {
                found[i] = true;
                changed = true;
            }
        }
        if !changed {
            return found;
        }
    }
}

/// The operands, and what a rule stands for.
fn operands<'g>(grammar: &'g Grammar, expr: &'g Expr) -> impl Iterator<Item = ExprId> + 'g {
    let rule = match expr {
        Expr::Rule(rule) => Some(grammar.rule(*rule).expr()),
        _ => None,
    };
    expr.operands().iter().copied().chain(rule)
}

fn is_endless(leaves: &Leaves<'_>, id: ExprId) -> bool {
    leaves.of(id).is_some_and(|leaf| leaves.is_endless(leaf))
}

/// Whether an expression is integers that have become a leaf.
fn is_integers(grammar: &Grammar, leaves: &Leaves<'_>, id: ExprId) -> bool {
    leaves.of(body(grammar, id)).is_some_and(|leaf| leaves.is_integers(leaf))
}

/// What a rule stands for.
pub(crate) fn body(grammar: &Grammar, mut id: ExprId) -> ExprId {
    // A rule that stands for itself is no value.
    for _ in grammar.rules() {
        let Expr::Rule(rule) = grammar.expr(id) else { break };
        id = grammar.rule(*rule).expr();
    }
    id
}

/// Whether an expression begins an array or object: strings are quoted.
fn is_bracket(grammar: &Grammar, id: ExprId) -> bool {
    matches!(grammar.expr(id), Expr::Bytes(bytes) if matches!(bytes.first(), Some(b'[' | b'{')))
}
