//! Facts about each expression that are needed before anything is built: can it match at all, can it match the empty
//! text, is it regular, how big is it.
//!
//! The first three are least fixpoints over the rules. Operands precede the expressions that use them, so one pass
//! resolves everything except the rules, and a few passes resolve most grammars. After that, each change is propagated
//! only to the users that it affects, so a chain of 20,000 rules costs 20,000 steps, not their square.

use maskwright_automata::{Grouped, must_stop, must_stop_now};
use maskwright_grammar::{Expr, ExprId, Grammar};

use super::CompileError;
use crate::small_set::SmallSet;

/// A regular rule up to this size, or with [few parts](Facts::few_parts), becomes a table. A larger one stays in the
/// network, which is lazy.
pub(crate) const LEAF_SIZE: u32 = 96;

/// Facts about every expression of a grammar, by its index.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Whether some text matches.
    pub(crate) productive: Vec<bool>,
    /// Whether the empty text matches.
    pub(crate) nullable: Vec<bool>,
    /// Whether the expression is regular, without JSON strings and without large counts, so that it can be one table if
    /// it is small enough. Large counts are left to a counter, because in a table every number would be a state with
    /// its own mask.
    pub(crate) plain: Vec<bool>,
    /// The number of nodes that the expression takes when repetitions and plain rules are written out.
    pub(crate) size: Vec<u32>,
    /// For the plain body of a rule larger than [`LEAF_SIZE`], whether its distinct parts are small together, as in a
    /// number with nineteen digits.
    pub(crate) few_parts: Vec<bool>,
    /// The depth of nested operands, without following rules.
    pub(crate) depth: Vec<u32>,
    /// The number of expressions and rules that use it as an operand.
    pub(crate) uses: Vec<u32>,
}

/// Facts that are known only after leaves were built.
pub(crate) trait Known {
    /// For `And`, `Not` and `JsonString`, returns whether some text matches, and whether the empty text does.
    fn leaf(&self, id: ExprId) -> (bool, bool);
    /// Checks whether a scope is known to match nothing.
    fn is_dead(&self, scope: ExprId) -> bool;
}

/// A repetition with more rounds is left to a counter.
const MAX_TABULATED_ROUNDS: u32 = 16;
/// A larger body is not checked for having few parts.
const LEAF_TREE: u32 = 1 << 16;
/// The greatest total size of a few parts.
const LEAF_PARTS: u32 = 512;
/// The number of passes over all expressions before changes are propagated one by one.
const MAX_PASSES: usize = 4;

pub(crate) fn gather(grammar: &Grammar, known: &impl Known) -> Result<Facts, CompileError> {
    let (bits, order) = least(grammar, known)?;
    let column = |bit: u8| bits.iter().map(|bits| bits & bit != 0).collect::<Vec<bool>>();
    let (productive, nullable, plain) = (column(PRODUCTIVE), column(NULLABLE), column(PLAIN));
    let mut size = vec![1u32; grammar.exprs().len()];
    for &id in &order {
        if must_stop() {
            return Err(CompileError::Stopped);
        }
        size[id as usize] = measure(grammar, &grammar.exprs()[id as usize], &size);
    }
    let few_parts = few_parts(grammar, &size, &order)?;
    let is_leaf = |e: &Expr| matches!(e, Expr::And(_) | Expr::Not(_) | Expr::JsonString(_));
    let mut depth = vec![1u32; grammar.exprs().len()];
    for (id, expr) in grammar.exprs().iter().enumerate() {
        if must_stop() {
            return Err(CompileError::Stopped);
        }
        if !plain[id] && !is_leaf(expr) {
            size[id] = measure(grammar, expr, &size);
        }
        depth[id] = 1 + expr.operands().iter().map(|op| depth[op.index()]).max().unwrap_or(0);
    }
    let mut uses = vec![0; grammar.exprs().len()];
    for operand in grammar.exprs().iter().flat_map(Expr::operands) {
        uses[operand.index()] += 1;
    }
    for rule in grammar.rules() {
        uses[rule.expr().index()] += 1;
    }
    Ok(Facts { productive, nullable, plain, size, few_parts, depth, uses })
}

const PRODUCTIVE: u8 = 1;
const NULLABLE: u8 = 2;
const PLAIN: u8 = 4;

/// Computes the facts of an expression from those of the others.
fn facts_of(grammar: &Grammar, known: &impl Known, id: ExprId, bits: &[u8]) -> u8 {
    let of = |id: &ExprId| bits[id.index()];
    let all = |parts: &[ExprId]| parts.iter().fold(PRODUCTIVE | NULLABLE | PLAIN, |sum, part| sum & of(part));
    let any = |parts: &[ExprId]| parts.iter().fold(0, |sum, part| sum | of(part));
    let leaf = || {
        let (productive, nullable) = known.leaf(id);
        (if productive { PRODUCTIVE } else { 0 }) | (if nullable { NULLABLE } else { 0 })
    };
    match grammar.expr(id) {
        Expr::Never | Expr::Token(_) => PLAIN,
        Expr::Empty => PRODUCTIVE | NULLABLE | PLAIN,
        Expr::Bytes(_) | Expr::Class(_) => PRODUCTIVE | PLAIN,
        Expr::Seq(parts) => all(parts),
        Expr::Alt(parts) => any(parts) & !PLAIN | all(parts) & PLAIN,
        Expr::Repeat { body, min, max } => {
            let bits = if *min == 0 { of(body) | PRODUCTIVE | NULLABLE } else { of(body) };
            if max.unwrap_or(*min) > MAX_TABULATED_ROUNDS { bits & !PLAIN } else { bits }
        }
        Expr::And(parts) => leaf() | all(parts) & PLAIN,
        Expr::Not(inner) => leaf() | of(inner) & PLAIN,
        Expr::JsonString(_) => leaf(),
        Expr::Scope { .. } if known.is_dead(id) => 0,
        Expr::Scope { body: inner, .. } | Expr::Distinct(inner) => of(inner) & !PLAIN,
        // Without tokens, only the empty text can be written.
        Expr::Limit { body, tokens: 0 } if of(body) & NULLABLE == 0 => 0,
        Expr::Limit { body, .. } => of(body) & !PLAIN,
        Expr::Rule(rule) => of(&grammar.rule(*rule).expr()),
    }
}

/// Returns the size of an expression, given the sizes of its operands.
fn measure(grammar: &Grammar, expr: &Expr, size: &[u32]) -> u32 {
    let of = |id: &ExprId| size[id.index()];
    match expr {
        Expr::Never | Expr::Empty | Expr::Token(_) | Expr::JsonString(_) => 1,
        Expr::Bytes(bytes) => bytes.len() as u32,
        Expr::Class(set) => set.ranges().len() as u32,
        Expr::Seq(parts) | Expr::Alt(parts) | Expr::And(parts) => {
            parts.iter().fold(1u32, |sum, part| sum.saturating_add(of(part)))
        }
        Expr::Not(inner) | Expr::Distinct(inner) => of(inner).saturating_add(1),
        Expr::Scope { .. } | Expr::Limit { .. } => 1,
        Expr::Repeat { body, min, max } => {
            of(body).saturating_mul(max.unwrap_or(*min).max(1)).saturating_add(1)
        }
        Expr::Rule(rule) => size[grammar.rule(*rule).expr().index()],
    }
}

/// See [`Facts::few_parts`]. `order` holds the plain expressions, operands first.
fn few_parts(grammar: &Grammar, size: &[u32], order: &[u32]) -> Result<Vec<bool>, CompileError> {
    let mut few = vec![false; size.len()];
    if order.iter().all(|&id| size[id as usize] <= LEAF_SIZE) {
        return Ok(few);
    }
    let mut is_body = vec![false; size.len()];
    for rule in grammar.rules() {
        is_body[rule.expr().index()] = true;
    }
    // An expression with a part that has many parts has many as well. So a chain of rules is not descended again from
    // each of its members.
    let mut many = vec![false; size.len()];
    for at in order.iter().map(|at| *at as usize) {
        let has_many = |id: &ExprId| many[id.index()];
        let inherits = match &grammar.exprs()[at] {
            Expr::Rule(rule) => has_many(&grammar.rule(*rule).expr()),
            expr => expr.operands().iter().any(has_many),
        };
        many[at] = inherits || size[at] > LEAF_TREE;
        if is_body[at] && size[at] > LEAF_SIZE && !many[at] {
            if must_stop_now() {
                return Err(CompileError::Stopped);
            }
            few[at] = count_parts(grammar, at) <= LEAF_PARTS;
            many[at] = !few[at];
        }
    }
    Ok(few)
}

/// Returns the total size of the distinct parts of a plain expression, or any number greater than [`LEAF_PARTS`].
fn count_parts(grammar: &Grammar, root: usize) -> u32 {
    let (mut work, mut seen, mut sum) = (vec![root], SmallSet::default(), 0u32);
    while let Some(at) = work.pop() {
        if !seen.insert(at as u32) {
            continue;
        }
        let expr = &grammar.exprs()[at];
        sum = sum.saturating_add(match expr {
            Expr::Repeat { min, max, .. } => max.unwrap_or(*min).max(1),
            Expr::Bytes(bytes) => bytes.len() as u32,
            Expr::Class(_) | Expr::Seq(_) | Expr::Alt(_) => 1,
            _ => 0,
        });
        if sum > LEAF_PARTS {
            break;
        }
        work.extend(expr.operands().iter().map(|operand| operand.index()));
        if let Expr::Rule(rule) = expr {
            work.push(grammar.rule(*rule).expr().index());
        }
    }
    sum
}

/// Computes the least solution for all expressions, and the order in which they became plain.
fn least(grammar: &Grammar, known: &impl Known) -> Result<(Vec<u8>, Vec<u32>), CompileError> {
    let mut least = Least { bits: vec![0; grammar.exprs().len()], order: Vec::new() };
    least.order.reserve(least.bits.len());
    // Most grammars are resolved by one or two passes, and computing the users of each expression would cost more than
    // that. Another pass is needed if there is a new fact about a rule that an earlier expression calls.
    let mut called = vec![false; least.bits.len()];
    for _ in 0..MAX_PASSES {
        let mut again = false;
        for (id, expr) in grammar.expr_ids().zip(grammar.exprs()) {
            if must_stop() {
                return Err(CompileError::Stopped);
            }
            if let Expr::Rule(rule) = expr {
                called[grammar.rule(*rule).expr().index()] = true;
            }
            let found = facts_of(grammar, known, id, &least.bits);
            again |= least.learn(id.index(), found) != 0 && called[id.index()];
        }
        if !again {
            return Ok((least.bits, least.order));
        }
    }
    least.spread(grammar, known)?;
    Ok((least.bits, least.order))
}

/// The facts known so far.
struct Least {
    bits: Vec<u8>,
    order: Vec<u32>,
}

impl Least {
    /// Adds facts about an expression. Returns the new ones.
    fn learn(&mut self, at: usize, found: u8) -> u8 {
        let new = found & !self.bits[at];
        if new & PLAIN != 0 {
            self.order.push(at as u32);
        }
        self.bits[at] |= new;
        new
    }

    /// Propagates all facts to the users that they affect, until nothing is new. Long lists of operands are not
    /// searched again for each operand: they count the operands for which a fact is still missing.
    fn spread(&mut self, grammar: &Grammar, known: &impl Known) -> Result<(), CompileError> {
        let users = Users::of(grammar);
        let ids: Vec<ExprId> = grammar.expr_ids().collect();
        let mut missing: Vec<[u32; 3]> = vec![[0; 3]; self.bits.len()];
        for (missing, expr) in missing.iter_mut().zip(grammar.exprs()) {
            for operand in expr.operands() {
                count_off(missing, !self.bits[operand.index()], 1);
            }
        }
        let mut work: Vec<(u32, u8)> = Vec::new();
        for id in grammar.expr_ids() {
            if must_stop() {
                return Err(CompileError::Stopped);
            }
            let new = self.learn(id.index(), facts_of(grammar, known, id, &self.bits));
            work.push((id.index() as u32, new));
        }
        while let Some((at, new)) = work.pop() {
            if must_stop() {
                return Err(CompileError::Stopped);
            }
            if new == 0 {
                continue;
            }
            for user in users.at(at) {
                let (id, missing) = (ids[user as usize], &mut missing[user as usize]);
                let expr = grammar.expr(id);
                let found = match expr {
                    Expr::Seq(_) | Expr::Alt(_) | Expr::And(_) => {
                        count_off(missing, new, u32::MAX);
                        let all = complete_facts(missing);
                        match expr {
                            Expr::Seq(_) => all,
                            Expr::Alt(_) => new & !PLAIN | all & PLAIN,
                            _ => all & PLAIN,
                        }
                    }
                    _ => facts_of(grammar, known, id, &self.bits),
                };
                let new = self.learn(user as usize, found);
                work.push((user, new));
            }
        }
        Ok(())
    }
}

/// Adds a number, modulo 2³², to the counters of some facts.
fn count_off(missing: &mut [u32; 3], bits: u8, number: u32) {
    for (count, bit) in missing.iter_mut().zip([PRODUCTIVE, NULLABLE, PLAIN]) {
        if bits & bit != 0 {
            *count = count.wrapping_add(number);
        }
    }
}

/// Returns the facts that are missing for no operand.
fn complete_facts(missing: &[u32; 3]) -> u8 {
    let of = |(count, bit): (&u32, u8)| if *count == 0 { bit } else { 0 };
    missing.iter().zip([PRODUCTIVE, NULLABLE, PLAIN]).map(of).sum()
}

/// The users of expressions: those that have an expression as an operand, and the calls of the rule that it defines.
struct Users {
    of_operand: Grouped<u32>,
    of_body: Grouped<u32>,
}

impl Users {
    fn of(grammar: &Grammar) -> Self {
        let exprs = || (0u32..).zip(grammar.exprs());
        let operands =
            exprs().flat_map(|(user, expr)| expr.operands().iter().map(move |op| (op.index() as u32, user)));
        let bodies = exprs().filter_map(|(user, expr)| match expr {
            Expr::Rule(rule) => Some((grammar.rule(*rule).expr().index() as u32, user)),
            _ => None,
        });
        let count = grammar.exprs().len();
        Self { of_operand: Grouped::new(count, operands), of_body: Grouped::new(count, bodies) }
    }

    fn at(&self, expr: u32) -> impl Iterator<Item = u32> + '_ {
        self.of_operand.of(expr).iter().chain(self.of_body.of(expr)).copied()
    }
}
