//! Facts about the expressions of a grammar, computed before any text is read.

use maskwright_grammar::{Expr, ExprId, Grammar, RuleId};

use crate::regular::{Arena, NodeId, Unknown, lower};

/// A grammar and the facts derived from it.
#[derive(Debug)]
pub(crate) struct Facts {
    grammar: Grammar,
    nodes: Vec<Option<NodeId>>,
    distance: Vec<Option<u64>>,
}

/// The effective bounds of a repetition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) body: ExprId,
    /// 0 if the body may be empty: empty rounds can replace missing ones.
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

impl Facts {
    pub(crate) fn new(grammar: &Grammar, arena: &mut Arena) -> Result<Self, Unknown> {
        let nodes = lower(grammar, arena);
        let mut facts = Self { grammar: grammar.clone(), nodes, distance: vec![None; grammar.exprs().len()] };
        for (i, expr) in grammar.exprs().iter().enumerate() {
            if is_atom(expr)
                && let Some(node) = facts.nodes[i]
            {
                facts.distance[i] = arena.distance(node)?;
            }
        }
        facts.find_distances();
        Ok(facts)
    }

    /// Decreases the distances until nothing changes. Expressions that then have none derive no text.
    fn find_distances(&mut self) {
        loop {
            let mut changed = false;
            for i in 0..self.distance.len() {
                let Some(now) = self.distance_now(&self.grammar.exprs()[i]) else { continue };
                if self.distance[i].is_none_or(|before| now < before) {
                    self.distance[i] = Some(now);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Computes the distance of an expression that is not an atom, from those of its operands.
    fn distance_now(&self, expr: &Expr) -> Option<u64> {
        match expr {
            Expr::Seq(parts) => parts
                .iter()
                .try_fold(0u64, |sum, &part| self.distance(part).map(|more| sum.saturating_add(more))),
            Expr::Alt(branches) => branches.iter().filter_map(|&branch| self.distance(branch)).min(),
            Expr::Repeat { min: 0, .. } => Some(0),
            Expr::Repeat { body, min, .. } => {
                self.distance(*body).map(|once| once.saturating_mul(u64::from(*min)))
            }
            Expr::Rule(rule) => self.distance(self.rule(*rule)),
            Expr::Scope { body, .. } | Expr::Distinct(body) | Expr::Limit { body, .. } => {
                self.distance(*body)
            }
            _ => None,
        }
    }

    /// Returns the expression of the root rule.
    pub(crate) fn root(&self) -> ExprId {
        self.rule(self.grammar.root())
    }

    pub(crate) fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    pub(crate) fn rule(&self, rule: RuleId) -> ExprId {
        self.grammar.rule(rule).expr()
    }

    pub(crate) fn expr(&self, expr: ExprId) -> &Expr {
        self.grammar.expr(expr)
    }

    /// Returns the regular set of an atom.
    pub(crate) fn node(&self, expr: ExprId) -> Option<NodeId> {
        self.nodes[expr.index()]
    }

    /// Returns an upper bound on the bytes of some text of the expression; `None` if it has no text, and 0 if and only
    /// if it derives the empty text.
    pub(crate) fn distance(&self, expr: ExprId) -> Option<u64> {
        self.distance[expr.index()]
    }

    /// Checks whether the expression derives any text.
    pub(crate) fn is_productive(&self, expr: ExprId) -> bool {
        self.distance(expr).is_some()
    }

    /// Returns the bounds of a repetition; `None` for anything else.
    pub(crate) fn bounds(&self, expr: ExprId) -> Option<Bounds> {
        let Expr::Repeat { body, min, max } = *self.expr(expr) else { return None };
        let min = if self.distance(body) == Some(0) { 0 } else { min };
        Some(Bounds { body, min, max })
    }
}

/// Checks whether the chart reads the expression byte by byte, as a regular set.
fn is_atom(expr: &Expr) -> bool {
    match expr {
        Expr::Never
        | Expr::Empty
        | Expr::Bytes(_)
        | Expr::Class(_)
        | Expr::Token(_)
        | Expr::And(_)
        | Expr::Not(_)
        | Expr::JsonString(_) => true,
        Expr::Seq(_)
        | Expr::Alt(_)
        | Expr::Repeat { .. }
        | Expr::Rule(_)
        | Expr::Scope { .. }
        | Expr::Distinct(_)
        | Expr::Limit { .. } => false,
    }
}
