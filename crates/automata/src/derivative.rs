//! Brzozowski derivatives: the language that remains after a byte.
//!
//! The derivative of a language L by a byte b is `{ w : b·w ∈ L }`. It is computed on the expression:
//!
//! ```text
//! ∂(set)     = ε if b ∈ set, else ∅        ∂(x | y) = ∂x | ∂y
//! ∂(x·y)     = ∂x·y  (| ∂y if ε ∈ x)       ∂(x ∧ y) = ∂x ∧ ∂y
//! ∂(x{m,n})  = ∂x·x{m-1,n-1}               ∂(¬x)    = ¬∂x
//! ```
//!
//! The rule for a counted repetition requires `m = 0` if the body matches the empty string, which the constructors
//! ensure. Expressions can be deep and their derivatives share parts, so the computation uses an explicit stack and a
//! memo instead of recursion.
//!
//! (J. Brzozowski, "Derivatives of Regular Expressions", 1964; S. Owens, J. Reppy, A. Turon,
//! "Regular-expression derivatives re-examined", 2009.)

use rustc_hash::FxHashMap;

use crate::limits::Fuel;
use crate::{ByteClasses, ByteSet, Expr, ExprId, Exprs, LimitError, Limits};

/// Computes derivatives by classes of bytes, and caches them.
#[derive(Clone, Debug)]
pub(crate) struct Derivatives {
    classes: ByteClasses,
    representatives: Vec<u8>,
    memo: FxHashMap<(ExprId, u8), ExprId>,
    stack: Vec<ExprId>,
}

impl Derivatives {
    /// Creates a cache for expressions whose sets are unions of these classes.
    pub(crate) fn new(classes: ByteClasses) -> Self {
        let representatives = classes.representatives();
        Self { classes, representatives, memo: FxHashMap::default(), stack: Vec::new() }
    }

    pub(crate) fn classes(&self) -> &ByteClasses {
        &self.classes
    }

    /// Returns a byte of the class.
    pub(crate) fn representative(&self, class: u8) -> u8 {
        self.representatives[usize::from(class)]
    }

    /// Returns the memory in bytes, approximately.
    pub(crate) fn memory(&self) -> usize {
        self.memo.capacity() * (size_of::<((ExprId, u8), ExprId)>() + 1)
    }

    /// Computes the derivative of an expression by the bytes of a class.
    pub(crate) fn derive(
        &mut self,
        exprs: &mut Exprs,
        id: ExprId,
        class: u8,
        limits: &Limits,
        fuel: &mut Fuel,
    ) -> Result<ExprId, LimitError> {
        if let Some(known) = self.known(exprs, id, class) {
            return Ok(known);
        }
        self.stack.clear();
        self.stack.push(id);
        while let Some(&top) = self.stack.last() {
            if self.known(exprs, top, class).is_some() {
                self.stack.pop();
                continue;
            }
            let waiting = self.stack.len();
            let operands = self.push_unknown_operands(exprs, top, class);
            fuel.spend(1 + operands)?;
            if self.stack.len() == waiting {
                let derivative = self.combine(exprs, top, class);
                self.memo.insert((top, class), derivative);
                self.stack.pop();
                limits.check_bytes(exprs.memory() + self.memory())?;
            }
        }
        Ok(self.known(exprs, id, class).unwrap_or(ExprId::NEVER))
    }

    /// Returns the derivative if it was computed before or is obvious.
    fn known(&self, exprs: &Exprs, id: ExprId, class: u8) -> Option<ExprId> {
        let starts = |set: &ByteSet| set.contains(self.representative(class));
        match *exprs.get(id) {
            Expr::Never | Expr::Empty => Some(ExprId::NEVER),
            Expr::Set(ref set) => Some(if starts(set) { ExprId::EMPTY } else { ExprId::NEVER }),
            Expr::Concat(head, tail) => match exprs.get(head) {
                Expr::Set(set) => Some(if starts(set) { tail } else { ExprId::NEVER }),
                _ => self.memo.get(&(id, class)).copied(),
            },
            _ => self.memo.get(&(id, class)).copied(),
        }
    }

    /// Pushes the operands whose derivatives are needed and missing. Returns how many derivatives are needed.
    fn push_unknown_operands(&mut self, exprs: &Exprs, id: ExprId, class: u8) -> usize {
        let mut stack = core::mem::take(&mut self.stack);
        let mut push = |id: ExprId| {
            if self.known(exprs, id, class).is_none() {
                stack.push(id);
            }
        };
        let needed = match exprs.get(id) {
            Expr::Never | Expr::Empty | Expr::Set(_) | Expr::Table { .. } => 0,
            Expr::Concat(head, tail) => {
                push(*head);
                if exprs.is_nullable(*head) {
                    push(*tail);
                }
                2
            }
            Expr::Alt(parts) | Expr::And(parts) => {
                parts.iter().for_each(|&part| push(part));
                parts.len()
            }
            Expr::Repeat { body: inner, .. } | Expr::Not(inner) => {
                push(*inner);
                1
            }
        };
        self.stack = stack;
        needed
    }

    /// Computes the derivative of an expression from those of its operands.
    fn combine(&self, exprs: &mut Exprs, id: ExprId, class: u8) -> ExprId {
        // The operands were derived before; `Never` is used only for one that is not needed.
        let derived = |exprs: &Exprs, id| self.known(exprs, id, class).unwrap_or(ExprId::NEVER);
        match *exprs.get(id) {
            Expr::Never | Expr::Empty | Expr::Set(_) => derived(exprs, id),
            Expr::Table { table, state } => {
                let after = exprs.table_of(table).next(state, self.representative(class));
                exprs.table_at(table, after)
            }
            Expr::Concat(head, tail) => {
                let after_head = derived(exprs, head);
                let first = exprs.concat2(after_head, tail);
                if exprs.is_nullable(head) {
                    let second = derived(exprs, tail);
                    exprs.alt([first, second])
                } else {
                    first
                }
            }
            Expr::Repeat { body, min, max } => {
                let once = derived(exprs, body);
                let rest = exprs.repeat(body, min.saturating_sub(1), max.map(|max| max.saturating_sub(1)));
                exprs.concat2(once, rest)
            }
            Expr::Not(inner) => {
                let inner = derived(exprs, inner);
                exprs.not(inner)
            }
            Expr::Alt(ref parts) => {
                let parts: Vec<ExprId> = parts.iter().map(|&part| derived(exprs, part)).collect();
                exprs.alt(parts)
            }
            Expr::And(ref parts) => {
                let parts: Vec<ExprId> = parts.iter().map(|&part| derived(exprs, part)).collect();
                exprs.and(parts)
            }
        }
    }
}
