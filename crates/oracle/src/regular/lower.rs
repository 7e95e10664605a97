//! Lowers the regular expressions of a grammar to nodes.

use maskwright_grammar::{CharSet, Expr, Grammar};

use super::{Arena, Node, NodeId, json::Stage, utf8::byte_ranges};

/// Returns the node of every expression that reaches no recursive rule; `None` for the others.
///
/// Expressions come after their operands, so one pass would be enough except for rules, which may be called before they
/// are defined. Each further pass resolves at least one more level of rules.
pub(crate) fn lower(grammar: &Grammar, arena: &mut Arena) -> Vec<Option<NodeId>> {
    let mut nodes: Vec<Option<NodeId>> = vec![None; grammar.exprs().len()];
    loop {
        let mut changed = false;
        for (i, expr) in grammar.exprs().iter().enumerate() {
            if nodes[i].is_none() {
                nodes[i] = lower_expr(grammar, expr, &nodes, arena);
                changed |= nodes[i].is_some();
            }
        }
        if !changed {
            return nodes;
        }
    }
}

fn lower_expr(grammar: &Grammar, expr: &Expr, known: &[Option<NodeId>], arena: &mut Arena) -> Option<NodeId> {
    let operands: Vec<NodeId> = expr.operands().iter().map(|op| known[op.index()]).collect::<Option<_>>()?;
    Some(match expr {
        // A token is not text. Code that compares masks replaces it with its spelling first.
        Expr::Never | Expr::Token(_) => arena.never(),
        Expr::Empty => arena.empty(),
        Expr::Bytes(bytes) => arena.sequence(bytes.iter().map(|&b| (b, b))),
        Expr::Class(set) => arena.class(set),
        Expr::Seq(_) => {
            let empty = arena.empty();
            operands.iter().rev().fold(empty, |rest, &first| arena.seq(first, rest))
        }
        Expr::Alt(_) => arena.alt(operands),
        Expr::Repeat { min, max, .. } => arena.repeat(operands[0], *min, *max),
        Expr::And(_) => arena.and(operands),
        Expr::Not(_) => {
            let other = arena.complement(operands[0]);
            arena.well_formed(other)
        }
        Expr::JsonString(_) => {
            let text = arena.well_formed(operands[0]);
            arena.json(Stage::Open, text)
        }
        // That values differ is checked elsewhere, by enumerating all texts.
        Expr::Scope { .. } | Expr::Distinct(_) => operands[0],
        // How a text is split into tokens does not change the text.
        Expr::Limit { .. } => operands[0],
        Expr::Rule(rule) => known[grammar.rule(*rule).expr().index()]?,
    })
}

impl Arena {
    /// Builds one character of the set.
    pub(super) fn class(&mut self, set: &CharSet) -> NodeId {
        let mut boxes = Vec::new();
        for &(first, last) in set.ranges() {
            for ranges in byte_ranges(first, last) {
                boxes.push(self.sequence(ranges.into_iter()));
            }
        }
        self.alt(boxes)
    }

    /// Builds one byte after another.
    fn sequence(&mut self, ranges: impl DoubleEndedIterator<Item = (u8, u8)>) -> NodeId {
        let mut rest = self.empty();
        for (low, high) in ranges.rev() {
            let first = self.intern(Node::Range(low, high));
            rest = self.seq(first, rest);
        }
        rest
    }

    /// Builds the well-formed texts of a set.
    fn well_formed(&mut self, set: NodeId) -> NodeId {
        let character = self.class(&CharSet::all());
        let texts = self.repeat(character, 0, None);
        self.and(vec![texts, set])
    }
}
