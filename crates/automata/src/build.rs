//! Builds the minimal automaton of an expression, by one of three constructions.
//!
//! * *Subsets*: Thompson's construction and the subset construction. For everything without ∧ and ¬.
//! * *Derivatives*: every state is an expression. Fast where the whole language is small, even if a part of it is not:
//!   in `(a|b) ∧ ¬(…)` only two bytes of the complement are explored.
//! * *Composition*: operands of ∧ and ¬ become minimal automata, by subsets and then by products, and are embedded in
//!   the nondeterministic automaton of the expression around them. Fast where the operands are small and their product
//!   is large, because a pair of numbers is cheaper than a derivative.
//!
//! With ∧ or ¬, derivatives are tried first with a small allowance, then composition, and if that meets a limit,
//! derivatives again with the full limits.

use rustc_hash::FxHashMap;

use crate::derivative::Derivatives;
use crate::{ByteClasses, Dfa, Draft, Expr, ExprId, Exprs, LimitError, Limits, Nfa, determinize, minimize};

/// The number of steps that derivatives may take before composition is tried.
const FIRST_TRY_STEPS: usize = 2_000;

impl Dfa {
    /// Builds the automaton of an expression.
    pub fn build(exprs: &mut Exprs, id: ExprId, limits: &Limits) -> Result<Self, LimitError> {
        if let Some(nfa) = Nfa::build(exprs, id, limits)? {
            return Ok(minimize(&determinize(&nfa, limits)?));
        }
        let small = Limits { steps: limits.steps.min(FIRST_TRY_STEPS), ..*limits };
        if let Ok(draft) = derive(exprs, id, &small) {
            return Ok(minimize(&draft));
        }
        match compose(exprs, id, limits) {
            Ok(dfa) => Ok(dfa),
            Err(_) => Ok(minimize(&derive(exprs, id, limits)?)),
        }
    }
}

/// Builds the automaton whose states are all derivatives of an expression.
pub(crate) fn derive(exprs: &mut Exprs, id: ExprId, limits: &Limits) -> Result<Draft, LimitError> {
    let classes = ByteClasses::new(exprs.sets_of(id));
    let mut derivatives = Derivatives::new(classes.clone());
    let (mut draft, mut fuel) = (Draft::new(classes), limits.fuel());
    let mut numbers: FxHashMap<ExprId, u32> = FxHashMap::default();
    let mut states = vec![id];
    numbers.insert(id, draft.push(exprs.is_nullable(id), limits)?);
    let mut state = 0;
    while let Some(&expr) = states.get(state) {
        for class in 0..draft.classes.len() {
            fuel.spend(1)?;
            let after = derivatives.derive(exprs, expr, class as u8, limits, &mut fuel)?;
            if after == ExprId::NEVER {
                continue;
            }
            let target = if let Some(&known) = numbers.get(&after) {
                known
            } else {
                let new = draft.push(exprs.is_nullable(after), limits)?;
                numbers.insert(after, new);
                states.push(after);
                new
            };
            draft.set(state as u32, class, target);
        }
        state += 1;
    }
    Ok(draft)
}

/// Builds the automaton of an expression from automata of the operands of its intersections and complements.
pub(crate) fn compose(exprs: &Exprs, id: ExprId, limits: &Limits) -> Result<Dfa, LimitError> {
    let mut built: FxHashMap<ExprId, Dfa> = FxHashMap::default();
    for node in boolean_nodes(exprs, id) {
        let dfa = match exprs.get(node) {
            Expr::Not(inner) => compose_one(exprs, *inner, &built, limits)?.complement(limits)?,
            Expr::And(parts) => {
                let mut parts = parts.iter().map(|&part| compose_one(exprs, part, &built, limits));
                let first = parts.next().unwrap_or_else(|| Ok(Dfa::never()))?;
                parts.try_fold(first, |both, part| both.intersection(&part?, limits))?
            }
            _ => continue,
        };
        built.insert(node, dfa);
    }
    compose_one(exprs, id, &built, limits)
}

/// Builds the automaton of an expression whose intersections and complements are all built.
fn compose_one(
    exprs: &Exprs,
    id: ExprId,
    built: &FxHashMap<ExprId, Dfa>,
    limits: &Limits,
) -> Result<Dfa, LimitError> {
    if let Some(dfa) = built.get(&id) {
        return Ok(dfa.clone());
    }
    let nfa = Nfa::build_around(exprs, id, built, limits)?;
    Ok(minimize(&determinize(&nfa, limits)?))
}

/// Returns the intersections and complements in an expression, operands first: an operand is always older than the
/// expression that uses it.
fn boolean_nodes(exprs: &Exprs, id: ExprId) -> Vec<ExprId> {
    let mut seen = rustc_hash::FxHashSet::default();
    let (mut found, mut work) = (Vec::new(), vec![id]);
    while let Some(id) = work.pop() {
        if exprs.is_plain(id) || !seen.insert(id) {
            continue;
        }
        if matches!(exprs.get(id), Expr::And(_) | Expr::Not(_)) {
            found.push(id);
        }
        exprs.for_each_operand(id, |operand| work.push(operand));
    }
    found.sort_unstable();
    found
}
