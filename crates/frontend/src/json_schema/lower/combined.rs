//! Strings under many combinators, as one language.
//!
//! Regular languages are closed under *and*, *or* and *not*, so for strings a combinator is an operation on languages, and
//! nothing needs to be split into cases:
//!
//! ```text
//! {"allOf": [{"anyOf": [a, b, c]}, {"anyOf": [d, e, f]}, {"not": {"anyOf": [g, h]}}]}
//!
//! 9 cases:        a ∧ d ∧ ¬g ∧ ¬h,  a ∧ e ∧ ¬g ∧ ¬h, …
//! one language:   (a ∨ b ∨ c) ∧ (d ∨ e ∨ f) ∧ ¬(g ∨ h)
//! ```
//!
//! Few cases are lowered one by one all the same: the engine has better tables for plain conjunctions, and a
//! listed value has one spelling there. This is the way for what would multiply.

use maskwright_grammar::ExprId;

use super::super::json::Value;
use super::super::keywords::Keywords;
use super::super::schemas::{SchemaId, Step};
use super::super::types::TypeSet;
use super::Lowerer;
use super::node::Signed;

/// From how many cases on strings are one language.
const MANY: usize = 32;

/// How deep combinators may lead, and how many schemas may be met on the way.
const DEPTH: usize = 64;
const FUEL: usize = 2_000;

impl<'s> Lowerer<'s> {
    /// The strings of a conjunction by one language, if it would make many cases and is made of what languages can say.
    pub(super) fn combined_string(&mut self, members: &[Signed]) -> Option<ExprId> {
        let (mut cases, mut fuel): (usize, usize) = (1, FUEL);
        for &member in members {
            cases = cases.saturating_mul(self.count_cases(member, DEPTH, &mut fuel)?);
        }
        if cases < MANY {
            return None;
        }
        let mut parts = Vec::with_capacity(members.len());
        for &member in members {
            parts.push(self.signed_text(member)?);
        }
        let text = self.grammar.and(parts);
        // Where one large automaton takes too long, many small ones may not.
        let is_empty = self.is_empty_text(text)?;
        Some(if is_empty { self.grammar.never() } else { self.grammar.json_string(text) })
    }

    /// How many cases a schema makes for strings at most; `None` for what is better said in cases.
    fn count_cases(&mut self, part: Signed, depth: usize, fuel: &mut usize) -> Option<usize> {
        let depth = depth.checked_sub(1)?;
        *fuel = fuel.checked_sub(1)?;
        let keywords = self.keywords(part.id);
        if keywords.is_plain() || !keywords.types.meets(TypeSet::STRING) {
            return Some(1);
        }
        if keywords.dynamic_reference.is_some() || !keywords.choices.is_empty() {
            return None;
        }
        let Parts { all, any, one, not, conditional } = self.parts_of(part.id, &keywords)?;
        // A conjunction multiplies and a choice adds; the sign turns one into the other.
        let (mut product, mut sum) = (1usize, usize::from(part.negative));
        let mut join = |count: usize| {
            product = product.saturating_mul(count);
            sum = sum.saturating_add(count);
        };
        for id in all {
            join(self.count_cases(Signed { id, ..part }, depth, fuel)?);
        }
        if let Some(id) = not {
            join(self.count_cases(Signed { id, negative: !part.negative }, depth, fuel)?);
        }
        for branches in [any, one] {
            let (mut each, mut together) = (0usize, 1usize);
            for &id in &branches {
                let count = self.count_cases(Signed { id, ..part }, depth, fuel)?;
                each = each.saturating_add(count);
                together = together.saturating_mul(count);
            }
            if !branches.is_empty() {
                join(if part.negative { together } else { each });
            }
        }
        for id in conditional.into_iter().flatten() {
            join(self.count_cases(Signed::plus(id), depth, fuel)?.saturating_add(1));
        }
        Some(if part.negative { sum } else { product })
    }

    fn signed_text(&mut self, part: Signed) -> Option<ExprId> {
        let text = self.text_of(part.id)?;
        Some(if part.negative { self.complement(text) } else { text })
    }

    /// The texts of the strings that satisfy a schema. [`Self::count_cases`] has followed the same way, so it ends.
    fn text_of(&mut self, id: SchemaId) -> Option<ExprId> {
        let keywords = self.keywords(id);
        if !keywords.types.meets(TypeSet::STRING) {
            return Some(self.grammar.never());
        }
        let mut parts = vec![self.said(id, &keywords)?];
        if keywords.is_plain() {
            return parts.pop();
        }
        let Parts { all, any, one, not, conditional } = self.parts_of(id, &keywords)?;
        for id in all {
            parts.push(self.text_of(id)?);
        }
        if let Some(id) = not {
            parts.push(self.signed_text(Signed::minus(id))?);
        }
        if !any.is_empty() {
            let mut ways = Vec::with_capacity(any.len());
            for id in any {
                ways.push(self.text_of(id)?);
            }
            parts.push(self.grammar.alt(ways));
        }
        if !one.is_empty() {
            let mut ways = Vec::with_capacity(one.len());
            for id in one {
                ways.push(self.text_of(id)?);
            }
            parts.push(self.exactly_one(&ways));
        }
        if let [Some(condition), then, otherwise] = conditional {
            let condition = self.text_of(condition)?;
            let mut ways = Vec::with_capacity(2);
            for (condition, branch) in [(condition, then), (self.complement(condition), otherwise)] {
                let branch = branch.map(|id| self.text_of(id));
                ways.push(match branch {
                    Some(branch) => self.grammar.and([condition, branch?]),
                    None => condition,
                });
            }
            parts.push(self.grammar.alt(ways));
        }
        Some(self.grammar.and(parts))
    }

    /// The texts that lie in one language and in no other.
    fn exactly_one(&mut self, languages: &[ExprId]) -> ExprId {
        let mut ways = Vec::with_capacity(languages.len());
        for (i, &language) in languages.iter().enumerate() {
            let mut parts = vec![language];
            for (j, &other) in languages.iter().enumerate() {
                if i != j {
                    parts.push(self.complement(other));
                }
            }
            ways.push(self.grammar.and(parts));
        }
        self.grammar.alt(ways)
    }

    /// The schemas that the combinators of a schema name; `None` after a problem.
    fn parts_of(&mut self, id: SchemaId, keywords: &Keywords<'s>) -> Option<Parts> {
        let mut all = self.branches(id, keywords.all_of, "allOf");
        if let Some(reference) = keywords.reference {
            all.push(self.resolve(id, reference)?);
        }
        let mut child = |value: Option<&'s Value<'s>>, keyword| {
            value.map(|value| self.child(id, value, Step::Keyword(keyword)))
        };
        let not = child(keywords.not, "not");
        let [condition, then, otherwise] = keywords.if_then_else;
        let conditional = [child(condition, "if"), child(then, "then"), child(otherwise, "else")];
        Some(Parts {
            all,
            any: self.branches(id, keywords.any_of, "anyOf"),
            one: self.branches(id, keywords.one_of, "oneOf"),
            not,
            conditional,
        })
    }
}

/// What a schema hands the value on to.
struct Parts {
    all: Vec<SchemaId>,
    any: Vec<SchemaId>,
    one: Vec<SchemaId>,
    not: Option<SchemaId>,
    /// `if`, `then` and `else`.
    conditional: [Option<SchemaId>; 3],
}
