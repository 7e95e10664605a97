//! From a grammar without recursion to an automaton, as plainly as possible.

use maskwright_automata::{Dfa, ExprId, Exprs, LimitError, Limits};
use maskwright_grammar::{Expr, Grammar};

pub(crate) fn automaton(grammar: &Grammar, limits: &Limits) -> Result<Dfa, LimitError> {
    let mut e = Exprs::new();
    let text = e.utf8_text();
    let mut ids: Vec<ExprId> = Vec::new();
    // Operands come first.
    for expr in grammar.exprs() {
        let of = |part: &maskwright_grammar::ExprId| ids[part.index()];
        let id = match expr {
            Expr::Never => e.never(),
            Expr::Empty => e.empty(),
            Expr::Bytes(bytes) => e.bytes(bytes),
            Expr::Class(set) => e.chars(set.ranges().iter().copied()),
            Expr::Seq(parts) => e.concat(parts.iter().map(of).collect::<Vec<_>>()),
            Expr::Alt(parts) => e.alt(parts.iter().map(of)),
            Expr::Repeat { body, min, max } => e.repeat(of(body), *min, *max),
            Expr::And(parts) => e.and(parts.iter().map(of)),
            Expr::Not(inner) => {
                let not = e.not(of(inner));
                e.and([text, not])
            }
            other => panic!("a regex makes no {other:?}"),
        };
        ids.push(id);
    }
    let root = grammar.rule(grammar.root()).expr();
    Dfa::build(&mut e, ids[root.index()], limits)
}
