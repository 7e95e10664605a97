//! Builds sequences and alternations in linear time, at any nesting depth.
//!
//! The builder flattens a sequence in a sequence and an alternation in an alternation by copying. For
//! `((((… a b) c) d) e)` this would be quadratic in the size of the source. So the operands are passed up in a
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
    /// Returns the alternation of these parts.
    pub(crate) fn alt(parts: Vec<Self>, builder: &mut GrammarBuilder) -> Self {
        let flatten = |part| match part {
            Self::Alt(inner) => Ok(inner),
            part => Err(part),
        };
        Self::joined(parts, flatten, Self::Alt, builder)
    }

    /// Returns the sequence of these parts.
    pub(crate) fn seq(mut parts: Vec<Self>, builder: &mut GrammarBuilder) -> Self {
        parts.retain(|part| !matches!(part, Self::One(id) if matches!(builder.expr(*id), Expr::Empty)));
        let flatten = |part| match part {
            Self::Seq(inner) => Ok(inner),
            part => Err(part),
        };
        Self::joined(parts, flatten, Self::Seq, builder)
    }

    /// Joins several parts into one. Parts of the same kind are flattened into it.
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

    /// Returns the repetition of the part.
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

    /// Returns the part or the empty text.
    pub(crate) fn optional(self, builder: &mut GrammarBuilder) -> Self {
        let mut operands = match self {
            Self::Alt(operands) => operands,
            part => vec![part.build(builder)],
        };
        operands.push(builder.empty());
        Self::Alt(operands)
    }

    /// Builds the expression.
    pub(crate) fn build(self, builder: &mut GrammarBuilder) -> ExprId {
        match self {
            Self::One(id) => id,
            Self::Alt(operands) => builder.alt(operands),
            Self::Seq(operands) => builder.seq(operands),
        }
    }
}

/// Appends, and reuses the new vector if the old one is empty.
fn append(operands: &mut Vec<ExprId>, mut more: Vec<ExprId>) {
    if operands.is_empty() {
        *operands = more;
    } else {
        operands.append(&mut more);
    }
}
