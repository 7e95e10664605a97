//! A recognizer that is slow and obviously right: the judge of the accept and reject cases.
//!
//! For every pair (expression, start) that matters it keeps the set of ends: the positions up to which the
//! expression can match from there. All sets begin empty, and every pass computes each from the others by
//! the plain meaning of the expression, until a pass changes nothing. That is the least solution, so
//! left recursion, ambiguity and rules that call themselves without reading need no thought.

use std::collections::{BTreeMap, BTreeSet};

use maskwright_grammar::{Expr, ExprId, Grammar};

/// Whether the whole text matches the root.
pub(crate) fn matches(grammar: &Grammar, text: &[u8]) -> bool {
    let mut chart = Chart { grammar, text, ends: BTreeMap::new(), changed: false };
    let root = grammar.rule(grammar.root()).expr();
    loop {
        chart.changed = false;
        chart.ends(root, 0);
        for (expr, start) in chart.ends.keys().copied().collect::<Vec<_>>() {
            chart.update(expr, start);
        }
        if !chart.changed {
            return chart.ends(root, 0).contains(&text.len());
        }
    }
}

type Ends = BTreeSet<usize>;

struct Chart<'a> {
    grammar: &'a Grammar,
    text: &'a [u8],
    ends: BTreeMap<(ExprId, usize), Ends>,
    changed: bool,
}

impl Chart<'_> {
    /// What is known so far; asking for the first time is a change, because it must be computed.
    fn ends(&mut self, expr: ExprId, start: usize) -> Ends {
        if let Some(known) = self.ends.get(&(expr, start)) {
            return known.clone();
        }
        self.changed = true;
        self.ends.insert((expr, start), Ends::new());
        Ends::new()
    }

    fn update(&mut self, expr: ExprId, start: usize) {
        let found = self.compute(expr, start);
        let known = self.ends.entry((expr, start)).or_default();
        let before = known.len();
        known.extend(found);
        self.changed |= known.len() > before;
    }

    fn compute(&mut self, expr: ExprId, start: usize) -> Ends {
        let rest = &self.text[start..];
        match self.grammar.expr(expr).clone() {
            Expr::Empty => Ends::from([start]),
            Expr::Bytes(bytes) if rest.starts_with(&bytes) => Ends::from([start + bytes.len()]),
            Expr::Never | Expr::Bytes(_) => Ends::new(),
            Expr::Class(set) => match first_char(rest) {
                Some(c) if set.contains(c) => Ends::from([start + c.len_utf8()]),
                _ => Ends::new(),
            },
            Expr::Seq(parts) => {
                parts.iter().fold(Ends::from([start]), |starts, part| self.after(*part, &starts))
            }
            Expr::Alt(parts) => parts.iter().flat_map(|part| self.ends(*part, start)).collect(),
            Expr::Repeat { body, min, max } => self.repeat(body, min, max, start),
            Expr::Rule(rule) => self.ends(self.grammar.rule(rule).expr(), start),
            other => panic!("neither frontend under test makes {other:?}"),
        }
    }

    /// Where `expr` can end when it begins at any of `starts`.
    fn after(&mut self, expr: ExprId, starts: &Ends) -> Ends {
        starts.iter().flat_map(|&start| self.ends(expr, start)).collect()
    }

    fn repeat(&mut self, body: ExprId, min: u32, max: Option<u32>, start: usize) -> Ends {
        let (mut all, mut here) = (Ends::new(), Ends::from([start]));
        for count in 0.. {
            if count >= min {
                all.extend(&here);
            }
            let next = self.after(body, &here);
            // Positions only grow, so the sets settle, and when they do all later ones are the same.
            if next == here {
                all.extend(&here);
            }
            if next.is_empty() || next == here || max == Some(count) {
                break;
            }
            here = next;
        }
        all
    }
}

fn first_char(bytes: &[u8]) -> Option<char> {
    bytes.utf8_chunks().next()?.valid().chars().next()
}
