//! Strings under many combinators, as one language.
//!
//! Regular languages are closed under *and*, *or* and *not*. So for strings a combinator is an operation on languages,
//! and nothing needs to be split into cases:
//!
//! ```text
//! {"allOf": [{"anyOf": [a, b, c]}, {"anyOf": [d, e, f]}, {"not": {"anyOf": [g, h]}}]}
//!
//! 9 cases:        a ∧ d ∧ ¬g ∧ ¬h,  a ∧ e ∧ ¬g ∧ ¬h, …
//! one language:   (a ∨ b ∨ c) ∧ (d ∨ e ∨ f) ∧ ¬(g ∨ h)
//! ```
//!
//! This is used only where there would be many cases. The engine has better tables for plain conjunctions, and a listed
//! value has one spelling there.

use maskwright_grammar::ExprId;

use super::super::formats;
use super::super::schemas::{Keywords, SchemaId};
use super::super::types::TypeSet;
use super::Algebra;
use super::node::Signed;

/// The number of cases from which the strings are built as one language.
const MIN_CASES: usize = 32;

/// Limits on the depth to which combinators are followed, and on the number of schemas visited.
const MAX_DEPTH: usize = 64;
const MAX_VISITS: usize = 2_000;

impl<'s> Algebra<'s> {
    /// Returns the strings of a conjunction as one language. Returns `None` if there are few cases, or if a keyword is
    /// not an operation on languages.
    pub(crate) fn combined_text(&mut self, members: &[Signed]) -> Option<ExprId> {
        let (mut cases, mut visits): (usize, usize) = (1, MAX_VISITS);
        for &member in members {
            cases = cases.saturating_mul(self.count_cases(member, MAX_DEPTH, &mut visits)?);
        }
        if cases < MIN_CASES {
            return None;
        }
        let parts = members.iter().map(|&member| self.signed_text(member)).collect::<Option<Vec<_>>>()?;
        Some(self.grammar.and(parts))
    }

    /// Returns an upper bound on the number of string cases of a schema, or `None` for schemas that should be split
    /// into cases.
    fn count_cases(&mut self, part: Signed, depth: usize, visits: &mut usize) -> Option<usize> {
        let depth = depth.checked_sub(1)?;
        *visits = visits.checked_sub(1)?;
        let keywords = self.keywords(part.id);
        // The complement of a language that is smaller than its format is not the negation of the format.
        if keywords.format.is_some_and(formats::is_smaller_than_format) {
            return None;
        }
        if keywords.is_plain() || !keywords.types.meets(TypeSet::STRING) {
            return Some(1);
        }
        if keywords.dynamic_reference.is_some() {
            return None;
        }
        // A conjunction multiplies the counts and a choice adds them; a negative sign swaps the two.
        let (mut product, mut sum) = (1usize, usize::from(part.negative));
        let mut join = |count: usize| {
            product = product.saturating_mul(count);
            sum = sum.saturating_add(count);
        };
        for id in self.conjuncts(part.id, &keywords)? {
            join(self.count_cases(Signed { id, ..part }, depth, visits)?);
        }
        if let Some(id) = keywords.not {
            join(self.count_cases(Signed { id, negative: !part.negative }, depth, visits)?);
        }
        for branches in [&keywords.any_of, &keywords.one_of] {
            let (mut each, mut together) = (0usize, 1usize);
            for &id in branches {
                let count = self.count_cases(Signed { id, ..part }, depth, visits)?;
                each = each.saturating_add(count);
                together = together.saturating_mul(count);
            }
            if !branches.is_empty() {
                join(if part.negative { together } else { each });
            }
        }
        if let Some(conditional) = keywords.conditional {
            let schemas = [Some(conditional.condition), conditional.then, conditional.otherwise];
            for id in schemas.into_iter().flatten() {
                join(self.count_cases(Signed::plus(id), depth, visits)?.saturating_add(1));
            }
        }
        Some(if part.negative { sum } else { product })
    }

    fn signed_text(&mut self, part: Signed) -> Option<ExprId> {
        let text = self.text_of(part.id)?;
        Some(if part.negative { self.complement(text) } else { text })
    }

    /// Returns the strings that satisfy a schema. The recursion ends because [`Self::count_cases`] followed the same
    /// path.
    fn text_of(&mut self, id: SchemaId) -> Option<ExprId> {
        let keywords = self.keywords(id);
        if !keywords.types.meets(TypeSet::STRING) {
            return Some(self.grammar.never());
        }
        let mut parts = vec![self.local_text(id, &keywords, false)?];
        if keywords.is_plain() {
            return parts.pop();
        }
        let conjuncts = self.conjuncts(id, &keywords)?;
        parts.append(&mut self.texts(&conjuncts)?);
        if let Some(id) = keywords.not {
            parts.push(self.signed_text(Signed::minus(id))?);
        }
        if !keywords.any_of.is_empty() {
            let texts = self.texts(&keywords.any_of)?;
            parts.push(self.grammar.alt(texts));
        }
        if !keywords.one_of.is_empty() {
            let texts = self.texts(&keywords.one_of)?;
            parts.push(self.exactly_one(&texts));
        }
        if let Some(conditional) = keywords.conditional {
            let condition = self.text_of(conditional.condition)?;
            let conditions = [condition, self.complement(condition)];
            let mut ways = Vec::with_capacity(2);
            for (condition, (_, branch)) in conditions.into_iter().zip(conditional.outcomes()) {
                ways.push(match branch {
                    Some(branch) => {
                        let branch = self.text_of(branch)?;
                        self.grammar.and([condition, branch])
                    }
                    None => condition,
                });
            }
            parts.push(self.grammar.alt(ways));
        }
        Some(self.grammar.and(parts))
    }

    fn texts(&mut self, schemas: &[SchemaId]) -> Option<Vec<ExprId>> {
        schemas.iter().map(|&id| self.text_of(id)).collect()
    }

    /// Returns the texts that are in exactly one of these languages.
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

    /// Returns the schemas that must hold: `allOf` and the targets of references. Returns `None` after an error.
    fn conjuncts(&mut self, id: SchemaId, keywords: &Keywords<'s>) -> Option<Vec<SchemaId>> {
        let targets = self.targets(id, keywords)?;
        Some(keywords.all_of.iter().copied().chain(targets).collect())
    }
}
