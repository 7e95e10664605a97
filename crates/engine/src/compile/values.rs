//! Finds out where values that must differ may run out.
//!
//! A string that can always be continued never lacks a new value, but an enumeration does. A matcher looks for dead
//! ends only where there can be some, so each scope records the kind of its values.

use core::cmp::Reverse;

use maskwright_grammar::{Expr, ExprId, Grammar};

use super::leaves::Leaves;
use crate::program::network::Values;
use crate::small_set::SmallSet;
use crate::value;

/// Returns for each expression the kind of the values in it, without those of inner scopes, and whether it contains an
/// array or object. The second list is empty unless some value that must be new contains one and values may run out.
pub(crate) fn classify(grammar: &Grammar, leaves: &Leaves<'_>) -> (Vec<Values>, Vec<bool>) {
    let is_other = |expr: &Expr| matches!(expr, Expr::Distinct(value) if !is_endless(leaves, *value));
    let mut values = vec![Values::Endless; grammar.exprs().len()];
    // PERF: this is the usual case.
    if !grammar.exprs().iter().any(is_other) {
        return (values, Vec::new());
    }
    let nested = holds(grammar, |id| is_bracket(grammar, id));
    let is_nested = |expr: &Expr| matches!(expr, Expr::Distinct(value) if nested[value.index()]);
    let any_nested = grammar.exprs().iter().any(is_nested);
    // PERF: finding the endless strings searches every table.
    let endless = if any_nested { holds(grammar, |id| is_endless(leaves, id)) } else { Vec::new() };
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
    (values, if any_nested { nested } else { Vec::new() })
}

/// The kinds of values of a scope.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kinds {
    /// The number of values of the finite kinds, or [`MAX_COUNTED_VALUES`] if they cannot be counted.
    pub(crate) finite: u32,
    /// Whether one of these values may also belong to an infinite kind.
    pub(crate) is_mixed: bool,
}

impl Kinds {
    pub(crate) fn of(grammar: &Grammar, leaves: &Leaves<'_>, scope: ExprId) -> Self {
        let (mut seen, mut work) = (SmallSet::default(), grammar.expr(scope).operands().to_vec());
        let (mut infinite, mut others) = (Vec::new(), Vec::new());
        // A key belongs to one member only, so the kinds of keys do not overlap.
        let mut are_keys = false;
        while let Some(id) = work.pop() {
            if !seen.insert(id.index() as u32) {
                continue;
            }
            match grammar.expr(id) {
                Expr::Distinct(value) => {
                    let leaf = leaves.of(body(grammar, *value)).map(|leaf| &leaves.list[leaf.index()]);
                    match leaf.filter(|leaf| leaf.starts_infinite()) {
                        Some(leaf) => infinite.push(leaf),
                        None => others.push(*value),
                    }
                }
                // The values inside it are compared separately.
                Expr::Scope { .. } => {}
                expr => {
                    if let Expr::Seq(parts) = expr {
                        // White space may come between the two.
                        let is_key = |(at, part): (usize, &ExprId)| {
                            matches!(grammar.expr(*part), Expr::Distinct(_))
                                && parts[at + 1..].iter().take(3).any(|next| is_colon(grammar, *next, 8))
                        };
                        are_keys |= parts.iter().enumerate().any(is_key);
                    }
                    work.extend(operands(grammar, expr));
                }
            }
        }
        let sum = |sum: u32, id: &ExprId| sum.saturating_add(count(grammar, *id, &mut { MAX_COUNTED_EXPRS }));
        let may_be = |id: &ExprId| match form(grammar, *id) {
            Some(form) => infinite.iter().any(|leaf| leaf.may_be(&form)),
            None => !infinite.is_empty(),
        };
        Self {
            finite: others.iter().fold(0, sum).min(MAX_COUNTED_VALUES),
            is_mixed: !are_keys && others.iter().any(may_be),
        }
    }
}

/// Checks whether an expression is a colon, perhaps with white space before it.
fn is_colon(grammar: &Grammar, id: ExprId, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match grammar.expr(body(grammar, id)) {
        Expr::Bytes(bytes) => bytes.trim_ascii_start().first() == Some(&b':'),
        Expr::Seq(parts) | Expr::Alt(parts) => parts.iter().any(|part| is_colon(grammar, *part, depth)),
        _ => false,
    }
}

/// Returns the form of the only text that an expression matches, if it is easy to see that there is only one.
pub(crate) fn form(grammar: &Grammar, value: ExprId) -> Option<Vec<u8>> {
    value::ending(&word(grammar, value)?)
}

/// Returns the only text that an expression matches, if it is easy to see that there is only one.
fn word(grammar: &Grammar, id: ExprId) -> Option<Vec<u8>> {
    match grammar.expr(body(grammar, id)) {
        Expr::Bytes(bytes) => Some(bytes.to_vec()),
        Expr::JsonString(text) => match grammar.expr(body(grammar, *text)) {
            Expr::Bytes(bytes) if !bytes.iter().any(|byte| matches!(byte, b'"' | b'\\' | ..0x20)) => {
                Some([b"\"", &**bytes, b"\""].concat())
            }
            Expr::Empty => Some(b"\"\"".to_vec()),
            _ => None,
        },
        _ => None,
    }
}

/// More values than this are not counted.
const MAX_COUNTED_VALUES: u32 = 1 << 16;
/// The number of expressions that are visited to count one kind of values.
const MAX_COUNTED_EXPRS: u32 = 4_096;

/// Returns an upper bound on the number of texts that match, or [`MAX_COUNTED_VALUES`] if there are more or the number
/// is not known.
fn count(grammar: &Grammar, id: ExprId, left: &mut u32) -> u32 {
    let Some(less) = left.checked_sub(1) else { return MAX_COUNTED_VALUES };
    *left = less;
    let mut of = |id: &ExprId| count(grammar, *id, left);
    let all = match grammar.expr(id) {
        Expr::Never => 0,
        Expr::Empty | Expr::Bytes(_) => 1,
        Expr::Class(set) => {
            set.ranges().iter().fold(0, |sum: u32, &(a, b)| sum.saturating_add(b as u32 - a as u32 + 1))
        }
        Expr::Seq(parts) => parts.iter().fold(1u32, |product, part| product.saturating_mul(of(part))),
        Expr::Alt(parts) => parts.iter().fold(0u32, |sum, part| sum.saturating_add(of(part))),
        Expr::JsonString(text) => of(text),
        Expr::Rule(rule) => of(&grammar.rule(*rule).expr()),
        Expr::Repeat { body, max: Some(max), .. } if *max <= 16 => {
            let one = of(body);
            let mut power = 1u32;
            (0..*max).fold(1u32, |sum, _| {
                power = power.saturating_mul(one);
                sum.saturating_add(power)
            })
        }
        _ => MAX_COUNTED_VALUES,
    };
    all.min(MAX_COUNTED_VALUES)
}

/// Computes for each expression whether a property holds for it or anything inside.
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

/// Returns the operands, and for a rule the expression that defines it.
fn operands<'g>(grammar: &'g Grammar, expr: &'g Expr) -> impl Iterator<Item = ExprId> + 'g {
    let rule = match expr {
        Expr::Rule(rule) => Some(grammar.rule(*rule).expr()),
        _ => None,
    };
    expr.operands().iter().copied().chain(rule)
}

pub(crate) fn is_endless(leaves: &Leaves<'_>, id: ExprId) -> bool {
    leaves.of(id).is_some_and(|leaf| leaves.is_endless(leaf))
}

/// Checks whether an expression is a leaf of integers.
fn is_integers(grammar: &Grammar, leaves: &Leaves<'_>, id: ExprId) -> bool {
    leaves.of(body(grammar, id)).is_some_and(|leaf| leaves.is_integers(leaf))
}

/// Follows a rule, or a chain of rules, to the expression that defines it.
pub(crate) fn body(grammar: &Grammar, mut id: ExprId) -> ExprId {
    // Bounded, because a rule may stand for itself. Such a rule is not a value.
    for _ in grammar.rules() {
        let Expr::Rule(rule) = grammar.expr(id) else { break };
        id = grammar.rule(*rule).expr();
    }
    id
}

/// Checks whether an expression begins an array or object. Strings begin with a quote.
fn is_bracket(grammar: &Grammar, id: ExprId) -> bool {
    matches!(grammar.expr(id), Expr::Bytes(bytes) if matches!(bytes.first(), Some(b'[' | b'{')))
}
