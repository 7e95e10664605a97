//! Translates a language of texts to expressions of the automata crate.

use maskwright_automata as automata;
use maskwright_grammar::{Expr, ExprId, RuleId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Translates an expression, each operand once, with an explicit stack because rules may form long chains. `rule`
/// returns the body of a rule, if the rule may be followed. On failure, returns the first expression that has no
/// meaning in a language of texts, or that contains itself.
pub(crate) fn translate<'g>(
    expr: impl Fn(ExprId) -> &'g Expr,
    rule: impl Fn(RuleId) -> Option<ExprId>,
    root: ExprId,
    exprs: &mut automata::Exprs,
) -> Result<automata::ExprId, &'g Expr> {
    let mut done: FxHashMap<ExprId, automata::ExprId> = FxHashMap::default();
    let mut open: FxHashSet<ExprId> = FxHashSet::default();
    let mut work = vec![(root, false)];
    while let Some((id, ready)) = work.pop() {
        if done.contains_key(&id) {
            continue;
        }
        let one = expr(id);
        let called = match one {
            Expr::Rule(called) => Some(rule(*called).ok_or(one)?),
            _ => None,
        };
        if !ready {
            // An expression stays on the stack, below its operands, until they are done. So meeting it again means
            // recursion.
            if !open.insert(id) {
                return Err(one);
            }
            work.push((id, true));
            work.extend(one.operands().iter().copied().chain(called).map(|operand| (operand, false)));
            continue;
        }
        let get = |id: &ExprId| done.get(id).copied().unwrap_or(automata::ExprId::NEVER);
        let many = |parts: &[ExprId]| parts.iter().map(get).collect::<Vec<_>>();
        let translated = match one {
            Expr::Never => exprs.never(),
            Expr::Empty => exprs.empty(),
            Expr::Bytes(bytes) => exprs.bytes(bytes),
            Expr::Class(set) => exprs.chars(set.ranges().iter().copied()),
            Expr::Seq(parts) => exprs.concat(many(parts)),
            Expr::Alt(parts) => exprs.alt(many(parts)),
            Expr::And(parts) => exprs.and(many(parts)),
            Expr::Repeat { body, min, max } => exprs.repeat(get(body), *min, *max),
            Expr::Not(inner) => {
                let (not, utf8) = (exprs.not(get(inner)), exprs.utf8_text());
                exprs.and([utf8, not])
            }
            Expr::Rule(_) => called.map_or(automata::ExprId::NEVER, |called| get(&called)),
            Expr::JsonString(_)
            | Expr::Scope { .. }
            | Expr::Distinct(_)
            | Expr::Token(_)
            | Expr::Limit { .. } => return Err(one),
        };
        done.insert(id, translated);
    }
    Ok(done.get(&root).copied().unwrap_or(automata::ExprId::NEVER))
}
