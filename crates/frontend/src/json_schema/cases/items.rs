//! Finds the schemas that apply to an item of an array.

use super::super::schemas::{Dialect, Keywords, SchemaId};
use super::Algebra;
use super::expand::{Case, Unevaluated};
use super::node::Signed;

impl Algebra<'_> {
    /// Returns the schemas that the item at index `place` must satisfy.
    pub(crate) fn item_parts(&mut self, case: &Case, place: usize) -> Vec<Signed> {
        let mut parts = Vec::with_capacity(case.locals.len());
        for id in case.positive() {
            parts.extend(item(&self.keywords(id), place).map(Signed::plus));
        }
        for unevaluated in case.unevaluated.iter().filter(|one| !one.is_denied) {
            parts.extend(self.unevaluated_item(unevaluated, place).map(Signed::plus));
        }
        parts
    }

    /// Returns the schema that `unevaluatedItems` applies to the item at index `place`, unless that item is evaluated.
    /// Items that satisfy a `contains` are evaluated as well, so its schema is an alternative.
    pub(crate) fn unevaluated_item(&mut self, unevaluated: &Unevaluated, place: usize) -> Option<SchemaId> {
        let mut choices: Vec<SchemaId> = Vec::new();
        for &id in &unevaluated.contributors {
            let keywords = self.keywords(id);
            let is_inner = id != unevaluated.owner && keywords.unevaluated_items.is_some();
            if is_inner || item(&keywords, place).is_some() {
                return None;
            }
            choices.extend(keywords.contains.filter(|_| self.dialect(id) >= Dialect::Draft2020));
        }
        let own = self.keywords(unevaluated.owner).unevaluated_items?;
        if choices.is_empty() {
            return Some(own);
        }
        choices.push(own);
        Some(self.choice(unevaluated.owner, choices))
    }
}

/// Returns the schema that one set of keywords has for the item at index `place`.
pub(crate) fn item(keywords: &Keywords<'_>, place: usize) -> Option<SchemaId> {
    keywords.prefix.get(place).copied().or(keywords.rest)
}
