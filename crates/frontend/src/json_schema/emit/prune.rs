//! Removes rules that match no finite text.
//!
//! A rule is *productive* if some finite text matches it. `node = "{" … node … "}"` without an alternative is not, and
//! a mask that leads into it would never let the document end. Productivity is a least fixpoint: bytes are productive,
//! a sequence is if all its parts are, a choice is if one part is. The work is linear in the size of the grammar: each
//! expression waits for its operands, and is visited again only when one of them is found to be productive.

use maskwright_grammar::{Expr, ExprId, Grammar, RuleId};

/// The result of pruning a grammar.
pub(super) enum Pruned {
    /// The grammar without calls of rules that match nothing, and for each expression whether it matches something. The
    /// second list is empty if all rules do. The expressions keep their ids.
    Grammar(Grammar, Vec<bool>),
    /// The root matches nothing, because of an endless recursion or for another reason.
    Nothing { is_endless: bool },
}

/// Removes calls of rules that match nothing. `schemas` are the rules that stand for schemas.
pub(super) fn prune(grammar: Grammar, schemas: &[RuleId]) -> Pruned {
    let root = grammar.rule(grammar.root()).expr();
    if matches!(grammar.expr(root), Expr::Never) {
        return Pruned::Nothing { is_endless: false };
    }
    if is_clearly_productive(&grammar) {
        return Pruned::Grammar(grammar, Vec::new());
    }
    let productive = productive_exprs(&grammar, &vec![false; grammar.rules().len()]);
    let idle: Vec<bool> = grammar.rules().iter().map(|rule| !productive[rule.expr().index()]).collect();
    if idle[grammar.root().index()] {
        return Pruned::Nothing { is_endless: is_endless(&grammar, schemas) };
    }
    if !idle.contains(&true) {
        return Pruned::Grammar(grammar, Vec::new());
    }
    Pruned::Grammar(grammar.without_rules(&idle), productive)
}

/// The maximum number of passes that withdraw assumptions about rules.
const MAX_PASSES: usize = 100;

/// Checks whether the root would match something if schemas could call one another forever. Rules that are not schemas,
/// such as the states of an array, must still end.
fn is_endless(grammar: &Grammar, schemas: &[RuleId]) -> bool {
    let mut assumed = vec![false; grammar.rules().len()];
    for rule in schemas {
        assumed[rule.index()] = true;
    }
    for _ in 0..MAX_PASSES {
        let productive = productive_exprs(grammar, &assumed);
        let is_possible = |rule: RuleId| productive[grammar.rule(rule).expr().index()];
        let wrong: Vec<RuleId> =
            grammar.rule_ids().filter(|rule| assumed[rule.index()] && !is_possible(*rule)).collect();
        if wrong.is_empty() {
            return is_possible(grammar.root());
        }
        for rule in wrong {
            assumed[rule.index()] = false;
        }
    }
    false
}

/// Checks whether a few simple passes find every rule to be productive. False means "perhaps not".
// PERF: nearly every schema ends here, and the lists below cost five times as much as the passes.
fn is_clearly_productive(grammar: &Grammar) -> bool {
    let mut productive = vec![false; grammar.exprs().len()];
    for _ in 0..3 {
        for (i, expr) in grammar.exprs().iter().enumerate() {
            let known = |id: &ExprId| productive[id.index()];
            productive[i] = match expr {
                Expr::Never => false,
                Expr::Seq(parts) => parts.iter().all(known),
                Expr::Alt(parts) => parts.iter().any(known),
                Expr::Repeat { body, min: 1.., .. } => known(body),
                Expr::Scope { body, .. } | Expr::Distinct(body) | Expr::Limit { body, .. } => known(body),
                Expr::Rule(rule) => known(&grammar.rule(*rule).expr()),
                _ => true,
            };
        }
        if grammar.rules().iter().all(|rule| productive[rule.expr().index()]) {
            return true;
        }
    }
    false
}

/// Returns which expressions match some text, assuming that the rules marked in `assumed` do.
fn productive_exprs(grammar: &Grammar, assumed: &[bool]) -> Vec<bool> {
    let exprs = grammar.exprs();
    let mut waiting = Waiting::new(exprs.len());
    // The number of operands that are not yet known to be productive.
    let mut missing = vec![0u32; exprs.len()];
    let mut ready: Vec<u32> = Vec::new();
    for (i, expr) in exprs.iter().enumerate() {
        let needs: &[ExprId] = match expr {
            Expr::Never => {
                missing[i] = u32::MAX;
                continue;
            }
            Expr::Seq(parts) | Expr::Alt(parts) => parts,
            Expr::Repeat { body, min: 1.., .. }
            | Expr::Scope { body, .. }
            | Expr::Distinct(body)
            | Expr::Limit { body, .. } => core::slice::from_ref(body),
            Expr::Rule(rule) if assumed[rule.index()] => &[],
            Expr::Rule(rule) => &[grammar.rule(*rule).expr()],
            // The operands of the others are regular and contain no call that could be empty.
            _ => &[],
        };
        for need in needs {
            waiting.push(need.index(), i as u32);
        }
        missing[i] = if matches!(expr, Expr::Alt(_)) { 1 } else { needs.len() as u32 };
        if missing[i] == 0 {
            ready.push(i as u32);
        }
    }
    let mut productive = vec![false; exprs.len()];
    while let Some(i) = ready.pop() {
        if core::mem::replace(&mut productive[i as usize], true) {
            continue;
        }
        let mut edge = waiting.first[i as usize];
        while let Some(&(user, next)) = waiting.edges.get(edge as usize) {
            let count = &mut missing[user as usize];
            *count = count.saturating_sub(1);
            if *count == 0 {
                ready.push(user);
            }
            edge = next;
        }
    }
    productive
}

/// For each expression, a linked list of the expressions that wait for it.
struct Waiting {
    first: Vec<u32>,
    /// The expression that waits, and the next edge of the same list.
    edges: Vec<(u32, u32)>,
}

impl Waiting {
    fn new(count: usize) -> Self {
        Self { first: vec![u32::MAX; count], edges: Vec::new() }
    }

    fn push(&mut self, awaited: usize, user: u32) {
        self.edges.push((user, self.first[awaited]));
        self.first[awaited] = self.edges.len() as u32 - 1;
    }
}
