//! The minimal automaton of a constraint that is regular.
//!
//! The engine never needs the automaton of a whole constraint; this is for looking at small ones.

use std::collections::HashMap;

use maskwright::Grammar;
use maskwright_automata::{Dfa, ExprId as AutomatonId, Exprs, Limits};
use maskwright_grammar::{Expr, ExprId};

use crate::failure::Failure;

/// Builds the automaton, or says why there is none.
pub(crate) fn automaton(grammar: &Grammar) -> Result<Dfa, Failure> {
    let mut exprs = Exprs::new();
    let root = translate(grammar, &mut exprs)?;
    Dfa::build(&mut exprs, root, &Limits::default()).map_err(|error| Failure::sentence(error.to_string()))
}

/// What has become of an expression.
#[derive(Clone, Copy)]
enum Progress {
    /// Its operands are being translated; to meet it again means recursion.
    Open,
    Done(AutomatonId),
}

/// The grammar in terms of the automata crate. Rules may form long chains, hence the explicit stack.
fn translate(grammar: &Grammar, exprs: &mut Exprs) -> Result<AutomatonId, Failure> {
    let root = grammar.rule(grammar.root()).expr();
    let mut progress: HashMap<ExprId, Progress> = HashMap::new();
    let mut work = vec![(root, false)];
    while let Some((id, ready)) = work.pop() {
        let expr = grammar.expr(id);
        if ready {
            let translated = one(grammar, expr, exprs, &|operand| match progress.get(&operand) {
                Some(Progress::Done(done)) => Some(*done),
                _ => None,
            })?;
            progress.insert(id, Progress::Done(translated));
            continue;
        }
        match progress.get(&id) {
            Some(Progress::Done(_)) => continue,
            Some(Progress::Open) => return Err(recursive()),
            None => progress.insert(id, Progress::Open),
        };
        work.push((id, true));
        work.extend(expr.operands().iter().map(|operand| (*operand, false)));
        if let Expr::Rule(rule) = expr {
            work.push((grammar.rule(*rule).expr(), false));
        }
    }
    match progress.get(&root) {
        Some(Progress::Done(done)) => Ok(*done),
        _ => Err(recursive()),
    }
}

/// One expression whose operands are done.
fn one(
    grammar: &Grammar,
    expr: &Expr,
    exprs: &mut Exprs,
    done: &dyn Fn(ExprId) -> Option<AutomatonId>,
) -> Result<AutomatonId, Failure> {
    let get = |id: ExprId| done(id).ok_or_else(recursive);
    let many = |parts: &[ExprId]| parts.iter().map(|part| get(*part)).collect::<Result<Vec<_>, _>>();
    Ok(match expr {
        Expr::Never => exprs.never(),
        Expr::Empty => exprs.empty(),
        Expr::Bytes(bytes) => exprs.bytes(bytes),
        Expr::Class(set) => exprs.chars(set.ranges().iter().copied()),
        Expr::Seq(parts) => exprs.concat(many(parts)?),
        Expr::Alt(parts) => exprs.alt(many(parts)?),
        Expr::And(parts) => exprs.and(many(parts)?),
        Expr::Repeat { body, min, max } => exprs.repeat(get(*body)?, *min, *max),
        Expr::Not(inner) => {
            let (not, utf8) = (exprs.not(get(*inner)?), exprs.utf8_text());
            exprs.and([utf8, not])
        }
        Expr::Rule(rule) => get(grammar.rule(*rule).expr())?,
        Expr::Scope { .. } | Expr::Distinct(_) => {
            return Err(Failure::sentence(
                "the constraint has values that must differ, which no finite automaton can tell; \
                 look at `debug network`",
            ));
        }
        Expr::Token(_) => {
            return Err(Failure::sentence(
                "the constraint asks for tokens that stand for no text, so it is no automaton over text; \
                 look at `debug network`",
            ));
        }
        Expr::Limit { .. } => {
            return Err(Failure::sentence(
                "the constraint limits a number of tokens, which no automaton over bytes can tell; \
                 look at `debug network`",
            ));
        }
        Expr::JsonString(_) => {
            return Err(Failure::sentence(
                "the constraint has JSON strings, whose many spellings make no readable automaton; \
                 look at `debug network`",
            ));
        }
    })
}

fn recursive() -> Failure {
    Failure::sentence(
        "the grammar is recursive, so there is no finite automaton for it; look at `debug network`",
    )
}
