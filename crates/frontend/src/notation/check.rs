//! Finds the rules that can match some text.
//!
//! A rule is *dead* if no text matches it: `a ::= a "x"` would need itself without end. The living expressions are
//! found bottom-up, as in Horn clauses (Dowling and Gallier, 1984): a literal lives; a sequence lives when all its
//! operands do, an alternation when one does, a mention when its rule does. Every expression counts the operands for
//! which it still waits, so the whole computation is linear in the size of the grammar.

use std::collections::HashSet;

use maskwright_grammar::{Expr, Grammar, RuleId};

/// The expressions of a grammar that match some text.
#[derive(Debug)]
pub(crate) struct Life<'a> {
    grammar: &'a Grammar,
    /// By the index of the expression.
    living: Vec<bool>,
}

/// Finds the expressions that match some text.
pub(crate) fn find_living(grammar: &Grammar) -> Life<'_> {
    let exprs = grammar.exprs();
    let mut waits_for: Vec<usize> = exprs.iter().map(operands_needed).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); exprs.len()];
    for (user, expr) in exprs.iter().enumerate() {
        for operand in operands(grammar, expr) {
            users[operand].push(user);
        }
    }
    let mut work: Vec<usize> = (0..exprs.len()).filter(|&id| waits_for[id] == 0).collect();
    let mut living = vec![false; exprs.len()];
    while let Some(id) = work.pop() {
        living[id] = true;
        for user in core::mem::take(&mut users[id]) {
            if waits_for[user] > 0 {
                waits_for[user] -= 1;
                if waits_for[user] == 0 {
                    work.push(user);
                }
            }
        }
    }
    Life { grammar, living }
}

/// Returns the number of operands that must live before an expression does.
fn operands_needed(expr: &Expr) -> usize {
    match expr {
        Expr::Never => usize::MAX,
        Expr::Empty | Expr::Bytes(_) | Expr::Class(_) | Expr::Token(_) | Expr::Repeat { min: 0, .. }
        // Only automata can decide whether these match something, so they count as living.
        | Expr::And(_) | Expr::Not(_) | Expr::JsonString(_) => 0,
        Expr::Seq(parts) => parts.len(),
        Expr::Alt(_)
        | Expr::Repeat { .. }
        | Expr::Rule(_)
        | Expr::Scope { .. }
        | Expr::Distinct(_)
        | Expr::Limit { .. } => 1,
    }
}

/// Returns the expressions on which this one depends.
fn operands<'a>(grammar: &'a Grammar, expr: &'a Expr) -> impl Iterator<Item = usize> + 'a {
    let body = match expr {
        Expr::Rule(rule) => Some(grammar.rule(*rule).expr().index()),
        _ => None,
    };
    body.into_iter().chain(expr.operands().iter().map(|operand| operand.index()))
}

/// The end of a path through dead rules.
enum End {
    /// The path returned to this rule.
    Again(RuleId),
    /// The path reached something that matches nothing.
    Nothing,
}

impl Life<'_> {
    /// Returns the rules that match no text.
    pub(crate) fn dead_rules(&self) -> Vec<RuleId> {
        let is_dead = |id: &RuleId| !self.living[self.grammar.rule(*id).expr().index()];
        self.grammar.rule_ids().filter(is_dead).collect()
    }

    /// Explains why a dead rule is dead, as a clause that follows "because".
    ///
    /// Follows one path that the rule must take, such as "it needs `a`, which needs `b`, which needs `a` again, without
    /// end".
    ///
    /// `nothing` describes the end of a path that reaches no further rule.
    pub(crate) fn explain(&self, dead: RuleId, nothing: &str) -> String {
        let (way, end) = self.follow(dead);
        let mut reason = String::new();
        for (i, name) in shorten(&way).into_iter().enumerate() {
            reason += if i == 0 { "it needs " } else { ", which needs " };
            reason += &name;
        }
        let needs = if way.is_empty() { "it needs" } else { ", which needs" };
        match end {
            End::Again(rule) => {
                reason + &format!("{needs} `{}` again, without end", self.grammar.rule(rule).name())
            }
            End::Nothing => reason + &format!("{needs} {nothing}"),
        }
    }

    /// Returns the names of the dead rules on one path from `dead`, and how the path ends.
    fn follow(&self, dead: RuleId) -> (Vec<&str>, End) {
        let mut seen = HashSet::from([dead]);
        let (mut way, mut rule) = (Vec::new(), dead);
        loop {
            match self.first_dead_mention(rule) {
                None => return (way, End::Nothing),
                Some(next) if !seen.insert(next) => return (way, End::Again(next)),
                Some(next) => {
                    way.push(self.grammar.rule(next).name());
                    rule = next;
                }
            }
        }
    }

    /// Returns the first mention of a dead rule in a dead rule, or `None` if the rule is dead for another reason.
    fn first_dead_mention(&self, rule: RuleId) -> Option<RuleId> {
        let mut id = self.grammar.rule(rule).expr();
        loop {
            let expr = self.grammar.expr(id);
            if let Expr::Rule(mentioned) = expr {
                return Some(*mentioned);
            }
            id = *expr.operands().iter().find(|operand| !self.living[operand.index()])?;
        }
    }
}

/// Returns the names in quotes; of a long list, only both ends.
fn shorten(names: &[&str]) -> Vec<String> {
    const SHOWN_AT_EACH_END: usize = 3;
    let quote = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let Some(left_out) = names.len().checked_sub(2 * SHOWN_AT_EACH_END).filter(|n| *n > 1) else {
        return quote(names);
    };
    let mut shown = quote(&names[..SHOWN_AT_EACH_END]);
    shown.push(format!("… ({left_out} more)"));
    shown.extend(quote(&names[names.len() - SHOWN_AT_EACH_END..]));
    shown
}
