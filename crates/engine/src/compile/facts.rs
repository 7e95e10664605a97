//! What can be said of each expression before anything is built: can it match at all, can it match
//! nothing, is it regular, how big is it.
//!
//! The first three are least fixpoints over the rules. Expressions come in an order in which operands
//! precede their users, so one pass settles everything but the rules; from then on a change is carried
//! to the users that it concerns, and a chain of 20,000 rules costs 20,000 steps, not their square.

use maskwright_grammar::{Expr, ExprId, Grammar};

/// Facts about every expression of a grammar, by its index.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Some text matches.
    pub(crate) productive: Vec<bool>,
    /// The empty text matches.
    pub(crate) nullable: Vec<bool>,
    /// Regular, without JSON strings and without large counts: can be one table, if it is small enough. What is counted
    /// far belongs to a counter, because every number would be a state with a mask of its own.
    pub(crate) plain: Vec<bool>,
    /// How many nodes the expression takes when repetitions and plain rules are written out.
    pub(crate) size: Vec<u32>,
    /// How deep operands nest, rules not followed.
    pub(crate) depth: Vec<u32>,
    /// How many expressions and rules use it as an operand.
    pub(crate) uses: Vec<u32>,
}

/// What the leaves that must be built to be understood turned out to be.
pub(crate) trait Known {
    /// For `And`, `Not` and `JsonString`: does some text match, and does the empty one?
    fn leaf(&self, id: ExprId) -> (bool, bool);
}

/// A repetition with more rounds is left to a counter.
const COUNTED: u32 = 16;

pub(crate) fn gather(grammar: &Grammar, known: &impl Known) -> Facts {
    let users = Users::of(grammar);
    let is_leaf = |e: &Expr| matches!(e, Expr::And(_) | Expr::Not(_) | Expr::JsonString(_));
    let (productive, _) = least(grammar, &users, |id, expr, get| match expr {
        Expr::Never => false,
        Expr::Empty | Expr::Bytes(_) | Expr::Class(_) => true,
        Expr::Seq(parts) => parts.iter().all(get),
        Expr::Alt(parts) => parts.iter().any(get),
        Expr::Repeat { body, min, .. } => *min == 0 || get(body),
        Expr::And(_) | Expr::Not(_) | Expr::JsonString(_) => known.leaf(id).0,
        Expr::Rule(_) => false,
    });
    let (nullable, _) = least(grammar, &users, |id, expr, get| match expr {
        Expr::Empty => true,
        Expr::Never | Expr::Bytes(_) | Expr::Class(_) | Expr::Rule(_) => false,
        Expr::Seq(parts) => parts.iter().all(get),
        Expr::Alt(parts) => parts.iter().any(get),
        Expr::Repeat { body, min, .. } => *min == 0 || get(body),
        Expr::And(_) | Expr::Not(_) | Expr::JsonString(_) => known.leaf(id).1,
    });
    let (plain, order) = least(grammar, &users, |_, expr, get| match expr {
        Expr::JsonString(_) | Expr::Rule(_) => false,
        Expr::Repeat { min, max, .. } if max.unwrap_or(*min) > COUNTED => false,
        _ => expr.operands().iter().all(get),
    });
    let mut size = vec![1u32; grammar.exprs().len()];
    for id in order {
        size[id] = measure(grammar, &grammar.exprs()[id], &size);
    }
    for (id, expr) in grammar.exprs().iter().enumerate() {
        if !plain[id] && !is_leaf(expr) {
            size[id] = measure(grammar, expr, &size);
        }
    }
    let mut depth = vec![1u32; grammar.exprs().len()];
    for (id, expr) in grammar.exprs().iter().enumerate() {
        depth[id] = 1 + expr.operands().iter().map(|op| depth[op.index()]).max().unwrap_or(0);
    }
    let uses = users.counts();
    Facts { productive, nullable, plain, size, depth, uses }
}

/// The size of one expression, given those of its operands.
fn measure(grammar: &Grammar, expr: &Expr, size: &[u32]) -> u32 {
    let of = |id: &ExprId| size[id.index()];
    match expr {
        Expr::Never | Expr::Empty | Expr::JsonString(_) => 1,
        Expr::Bytes(bytes) => bytes.len() as u32,
        Expr::Class(set) => set.ranges().len() as u32,
        Expr::Seq(parts) | Expr::Alt(parts) | Expr::And(parts) => {
            parts.iter().fold(1u32, |sum, part| sum.saturating_add(of(part)))
        }
        Expr::Not(inner) => of(inner).saturating_add(1),
        Expr::Repeat { body, min, max } => {
            of(body).saturating_mul(max.unwrap_or(*min).max(1)).saturating_add(1)
        }
        Expr::Rule(rule) => size[grammar.rule(*rule).expr().index()],
    }
}

/// The least solution of a monotone system of truth values, and the order in which they became true.
/// A rule's call has the value of the rule's expression.
fn least(
    grammar: &Grammar,
    users: &Users,
    eval: impl Fn(ExprId, &Expr, &dyn Fn(&ExprId) -> bool) -> bool,
) -> (Vec<bool>, Vec<usize>) {
    let exprs = grammar.exprs();
    let mut value = vec![false; exprs.len()];
    let mut order = Vec::with_capacity(exprs.len());
    let mut work: Vec<usize> = Vec::new();
    for (id, expr) in exprs.iter().enumerate() {
        if eval(users.ids[id], expr, &|op| value[op.index()]) {
            value[id] = true;
            order.push(id);
            work.extend(users.calls_of_body(id).iter().map(|&call| call as usize));
        }
    }
    while let Some(id) = work.pop() {
        if value[id] {
            continue;
        }
        let expr = &exprs[id];
        if !matches!(expr, Expr::Rule(_)) && !eval(users.ids[id], expr, &|op| value[op.index()]) {
            continue;
        }
        value[id] = true;
        order.push(id);
        work.extend(users.of_expr(id).iter().map(|&user| user as usize));
        work.extend(users.calls_of_body(id).iter().map(|&call| call as usize));
    }
    (value, order)
}

/// Who uses an expression: the expressions it is an operand of, and the calls of the rules it defines.
struct Users {
    ids: Vec<ExprId>,
    start: Vec<u32>,
    list: Vec<u32>,
    call_start: Vec<u32>,
    call_list: Vec<u32>,
    rule_uses: Vec<u32>,
}

impl Users {
    fn of(grammar: &Grammar) -> Self {
        let exprs = grammar.exprs();
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut call_edges: Vec<(u32, u32)> = Vec::new();
        let mut rule_uses = vec![0; exprs.len()];
        for (user, expr) in exprs.iter().enumerate() {
            edges.extend(expr.operands().iter().map(|op| (op.index() as u32, user as u32)));
            if let Expr::Rule(rule) = expr {
                call_edges.push((grammar.rule(*rule).expr().index() as u32, user as u32));
            }
        }
        for rule in grammar.rules() {
            rule_uses[rule.expr().index()] += 1;
        }
        let (start, list) = group(&edges, exprs.len());
        let (call_start, call_list) = group(&call_edges, exprs.len());
        let ids = grammar.expr_ids().collect();
        Self { ids, start, list, call_start, call_list, rule_uses }
    }

    fn of_expr(&self, id: usize) -> &[u32] {
        &self.list[self.start[id] as usize..self.start[id + 1] as usize]
    }

    fn calls_of_body(&self, id: usize) -> &[u32] {
        &self.call_list[self.call_start[id] as usize..self.call_start[id + 1] as usize]
    }

    fn counts(&self) -> Vec<u32> {
        self.start.windows(2).zip(&self.rule_uses).map(|(w, rules)| w[1] - w[0] + rules).collect()
    }
}

/// Sorts pairs by their first member, by counting.
fn group(edges: &[(u32, u32)], len: usize) -> (Vec<u32>, Vec<u32>) {
    let mut start = vec![0u32; len + 1];
    for &(key, _) in edges {
        start[key as usize + 1] += 1;
    }
    for i in 0..len {
        start[i + 1] += start[i];
    }
    let mut at = start.clone();
    let mut list = vec![0; edges.len()];
    for &(key, value) in edges {
        list[at[key as usize] as usize] = value;
        at[key as usize] += 1;
    }
    (start, list)
}
