//! Building sequences and alternations in linear time, whatever the nesting.
//!
//! The builder flattens a sequence in a sequence and an alternation in an alternation by copying. Over
//! `((((… a b) c) d) e)` that would cost the square of the source, so the operands travel upwards in a
//! [`Part`], unbuilt, and are built once, at the outermost level to which they belong.

use maskwright_grammar::{Expr, ExprId, GrammarBuilder};

/// An expression, or the operands of one that is not built yet because it may become part of a larger one.
#[derive(Debug)]
pub(crate) enum Part {
    One(ExprId),
    Seq(Vec<ExprId>),
    Alt(Vec<ExprId>),
}

impl Part {
    /// One of these.
    pub(crate) fn alt(parts: Vec<Self>, builder: &mut GrammarBuilder) -> Self {
        let flatten = |part| match part {
            Self::Alt(inner) => Ok(inner),
            part => Err(part),
        };
        Self::joined(parts, flatten, Self::Alt, builder)
    }

    /// One after the other.
    pub(crate) fn seq(mut parts: Vec<Self>, builder: &mut GrammarBuilder) -> Self {
        parts.retain(|part| !matches!(part, Self::One(id) if matches!(builder.expr(*id), Expr::Empty)));
        let flatten = |part| match part {
            Self::Seq(inner) => Ok(inner),
            part => Err(part),
        };
        Self::joined(parts, flatten, Self::Seq, builder)
    }

    /// One part of several; those that are of its kind become a part of it.
    fn joined(
        mut parts: Vec<Self>,
        flatten: impl Fn(Self) -> Result<Vec<ExprId>, Self>,
        join: impl Fn(Vec<ExprId>) -> Self,
        builder: &mut GrammarBuilder,
    ) -> Self {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        let mut operands = Vec::with_capacity(parts.len());
        for part in parts {
            match flatten(part) {
                Ok(inner) => append(&mut operands, inner),
                Err(part) => operands.push(part.build(builder)),
            }
        }
        join(operands)
    }

    /// The part, several times.
    pub(crate) fn repeat(self, min: u32, max: Option<u32>, builder: &mut GrammarBuilder) -> Self {
        match (min, max) {
            (1, Some(1)) => self,
            (0, Some(1)) => self.optional(builder),
            (min, max) => {
                let body = self.build(builder);
                Self::One(builder.repeat(body, min, max))
            }
        }
    }

    /// The part, or nothing.
    pub(crate) fn optional(self, builder: &mut GrammarBuilder) -> Self {
        let mut operands = match self {
            Self::Alt(operands) => operands,
            part => vec![part.build(builder)],
        };
        operands.push(builder.empty());
        Self::Alt(operands)
    }

    /// The expression.
    pub(crate) fn build(self, builder: &mut GrammarBuilder) -> ExprId {
        match self {
            Self::One(id) => id,
            Self::Alt(operands) => builder.alt(operands),
            Self::Seq(operands) => builder.seq(operands),
        }
    }
}

/// Appends, but keeps the longer vector where it can.
fn append(operands: &mut Vec<ExprId>, mut more: Vec<ExprId>) {
    if operands.is_empty() {
        *operands = more;
    } else {
        operands.append(&mut more);
    }
}
