//! Copies a finished grammar into another one, as an expression.
//!
//! So one constraint language can quote another: a Lark rule that contains a JSON Schema, a tag whose content is a
//! regular expression. The rules keep their names, because names are for people and need not be unique.
//!
//! ```
//! use maskwright_grammar::GrammarBuilder;
//!
//! // inner: nest ::= "(" nest ")" | "x"
//! let mut inner = GrammarBuilder::new();
//! let nest = inner.declare("nest");
//! let (open, close, x) = (inner.bytes(b"("), inner.bytes(b")"), inner.bytes(b"x"));
//! let again = inner.rule(nest);
//! let deeper = inner.seq([open, again, close]);
//! let body = inner.alt([deeper, x]);
//! inner.define(nest, body);
//! let inner = inner.finish(nest).unwrap();
//!
//! let mut outer = GrammarBuilder::new();
//! let quoted = outer.embed(&inner);
//! let end = outer.bytes(b";");
//! let body = outer.seq([quoted, end]);
//! let root = outer.declare("root");
//! outer.define(root, body);
//! assert_eq!(outer.finish(root).unwrap().to_string(), "root ::= nest \";\"\nnest ::= \"(\" nest \")\" | \"x\"");
//! ```

use crate::{Expr, ExprId, Grammar, GrammarBuilder, GrammarError, Notes, Rule, RuleId};

impl GrammarBuilder {
    /// Copies everything that the root of another grammar reaches, and returns an expression that matches what that
    /// grammar matches.
    ///
    /// A root that no rule calls is inlined, so that a grammar of one rule can be used where rules are not allowed. A
    /// caller that uses the result more than once may want to define a rule for it. Embedding a grammar twice copies
    /// its rules twice.
    pub fn embed(&mut self, grammar: &Grammar) -> ExprId {
        self.copy_all(grammar, grammar.rule(grammar.root()).expr(), &mut |_, _| None).0
    }

    /// Copies everything that `whole` reaches. Returns the copy of `whole`, and the rule of the root if it became a
    /// rule.
    fn copy_all(
        &mut self,
        grammar: &Grammar,
        whole: ExprId,
        replace: &mut dyn FnMut(&mut Self, &Expr) -> Option<ExprId>,
    ) -> (ExprId, Option<RuleId>) {
        let mut reached = Reached::of(grammar, whole, |expr| replace(self, expr));
        let rules: Vec<Option<RuleId>> = grammar
            .rule_ids()
            .map(|id| {
                let is_wanted = reached.called[id.index()];
                is_wanted.then(|| self.declare_like(grammar.rule(id)))
            })
            .collect();
        // Operands come first, so one pass is enough. Unreached expressions are skipped.
        for id in grammar.expr_ids().filter(|id| reached.exprs[id.index()]) {
            if reached.copies[id.index()].is_none() {
                let copy = self.copy(grammar.expr(id), &reached.copies, &rules);
                reached.copies[id.index()] = Some(copy);
            }
        }
        let mut copy_of = |id: ExprId| match reached.copies[id.index()] {
            Some(copy) => copy,
            None => self.never(),
        };
        let root = copy_of(whole);
        let mut like =
            |rule: &Rule| (copy_of(rule.expr()), rule.notes().map(|notes| notes.with_exprs(&mut copy_of)));
        let bodies: Vec<(ExprId, Option<Notes>)> = grammar.rules().iter().map(&mut like).collect();
        for (rule, (body, notes)) in rules.iter().zip(&bodies) {
            if let Some(rule) = rule {
                self.define_with(*rule, *body, notes.clone());
            }
        }
        match rules[grammar.root().index()] {
            None if whole == grammar.rule(grammar.root()).expr()
                && grammar.rule(grammar.root()).notes().is_some() =>
            {
                let rule = self.declare_like(grammar.rule(grammar.root()));
                let notes = bodies[grammar.root().index()].1.clone();
                self.define_with(rule, root, notes);
                (self.rule(rule), Some(rule))
            }
            Some(rule) if whole == grammar.rule(grammar.root()).expr() => (self.rule(rule), Some(rule)),
            _ => (root, None),
        }
    }

    /// Declares a rule with the name and the kind of another one.
    fn declare_like(&mut self, rule: &Rule) -> RuleId {
        self.declare_as(rule.name(), rule.is_document())
    }

    fn define_with(&mut self, rule: RuleId, body: ExprId, notes: Option<Notes>) {
        self.define(rule, body);
        if let Some(notes) = notes {
            self.annotate(rule, notes);
        }
    }

    /// Copies one expression, with the copies of its operands.
    fn copy(&mut self, expr: &Expr, copies: &[Option<ExprId>], rules: &[Option<RuleId>]) -> ExprId {
        let never = self.never();
        let of = |id: &ExprId| copies[id.index()].unwrap_or(never);
        match expr {
            Expr::Seq(parts) => self.seq(parts.iter().map(of)),
            Expr::Alt(parts) => self.alt(parts.iter().map(of)),
            Expr::And(parts) => self.and(parts.iter().map(of)),
            Expr::Repeat { body, min, max } => self.repeat(of(body), *min, *max),
            Expr::Not(inner) => self.not(of(inner)),
            Expr::Rule(rule) => rules[rule.index()].map_or(never, |rule| self.rule(rule)),
            Expr::JsonString(text) => self.json_string(of(text)),
            Expr::Scope { body, required, needs } => {
                self.scope_with_needs(of(body), required.iter().cloned(), needs.iter().cloned())
            }
            Expr::Distinct(value) => self.distinct(of(value)),
            Expr::Limit { body, tokens } => self.limit(of(body), *tokens),
            Expr::Never | Expr::Empty | Expr::Bytes(_) | Expr::Class(_) | Expr::Token(_) => {
                self.intern(expr.clone())
            }
        }
    }
}

impl Grammar {
    /// Returns the part of this grammar that its root reaches, with some expressions replaced: those for which
    /// `replace` returns another.
    pub fn replacing(
        &self,
        mut replace: impl FnMut(&mut GrammarBuilder, &Expr) -> Option<ExprId>,
    ) -> Result<Self, GrammarError> {
        let mut g = GrammarBuilder::new();
        let top = self.rule(self.root());
        let (body, root) = g.copy_all(self, top.expr(), &mut replace);
        let root = root.unwrap_or_else(|| {
            let root = g.declare_like(top);
            g.define(root, body);
            root
        });
        g.finish(root)
    }
}

impl Grammar {
    /// Returns one expression as a separate grammar, with the rules that it reaches.
    pub fn part(&self, expr: ExprId) -> Result<Self, GrammarError> {
        let mut g = GrammarBuilder::new();
        let (body, _) = g.copy_all(self, expr, &mut |_, _| None);
        let root = g.declare("part");
        g.define(root, body);
        g.finish(root)
    }

    /// Replaces the calls of some rules, given by index, with [`Expr::Never`]. All expressions keep their positions.
    #[must_use]
    pub fn without_rules(mut self, removed: &[bool]) -> Self {
        for expr in &mut self.exprs {
            if matches!(expr, Expr::Rule(rule) if removed[rule.index()]) {
                *expr = Expr::Never;
            }
        }
        self
    }
}

/// The expressions and rules that are reached.
struct Reached {
    exprs: Vec<bool>,
    /// The replacements of expressions. Nothing is reached through a replaced expression.
    copies: Vec<Option<ExprId>>,
    /// The rules that are called.
    called: Vec<bool>,
}

impl Reached {
    fn of(grammar: &Grammar, whole: ExprId, mut replace: impl FnMut(&Expr) -> Option<ExprId>) -> Self {
        let mut reached = Self {
            exprs: vec![false; grammar.exprs().len()],
            copies: vec![None; grammar.exprs().len()],
            called: vec![false; grammar.rules().len()],
        };
        let mut work = vec![whole];
        let root = grammar.rule(grammar.root());
        if root.expr() == whole {
            work.extend(root.notes().iter().flat_map(|notes| notes.exprs()));
        }
        while let Some(id) = work.pop() {
            if core::mem::replace(&mut reached.exprs[id.index()], true) {
                continue;
            }
            let expr = grammar.expr(id);
            reached.copies[id.index()] = replace(expr);
            if reached.copies[id.index()].is_some() {
                continue;
            }
            if let Expr::Rule(rule) = expr
                && !core::mem::replace(&mut reached.called[rule.index()], true)
            {
                let rule = grammar.rule(*rule);
                work.push(rule.expr());
                work.extend(rule.notes().iter().flat_map(|notes| notes.exprs()));
            }
            work.extend_from_slice(expr.operands());
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CharSet;

    #[test]
    fn every_kind_of_expression_comes_along() {
        let mut g = GrammarBuilder::new();
        let digit = g.class(CharSet::from_ranges([('0', '9')]));
        let digits = g.repeat(digit, 1, Some(3));
        let (nine, word) = (g.bytes(b"999"), g.bytes(b"word"));
        let other = g.not(nine);
        let number = g.and([digits, other]);
        let string = g.json_string(word);
        let distinct = g.distinct(string);
        let list = g.star(distinct);
        let scope = g.scope(list, ["word".into()]);
        let (used, unused, root) = (g.declare("used"), g.declare("unused"), g.declare("root"));
        let limited = g.limit(scope, 7);
        g.define(used, limited);
        g.define(unused, number);
        let call = g.rule(used);
        let body = g.alt([number, call]);
        g.define(root, body);
        let inner = g.finish(root).unwrap();

        let mut outer = GrammarBuilder::new();
        let body = outer.embed(&inner);
        let root = outer.declare("root");
        outer.define(root, body);
        let outer = outer.finish(root).unwrap();
        let mut rules: Vec<String> = inner.to_string().lines().map(str::to_owned).collect();
        rules.retain(|rule| !rule.starts_with("unused"));
        assert_eq!(outer.to_string().lines().collect::<Vec<_>>(), rules);
    }
}
