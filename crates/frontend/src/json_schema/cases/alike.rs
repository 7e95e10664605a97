//! Recognizes schemas with the same meaning, by comparing them keyword by keyword.
//!
//! Documents repeat themselves: two branches of a `oneOf` contain the same `address`, written out twice. These are
//! different schemas, but `{+address, −address}` is still empty, and recognizing this saves more than any other proof.
//! Keywords that constrain nothing are not compared, and references are followed.

use rustc_hash::FxHashMap;

use super::super::same::same;
use super::super::schemas::{Conditional, Keywords, Properties, Reference, SchemaId};
use super::Algebra;

/// The maximum number of pairs of schemas compared in all. After that, every answer is no.
const MAX_PAIRS: usize = 100_000;

/// The answers so far. A pair counts as alike while it is compared, so that recursion ends.
#[derive(Debug, Default)]
pub(super) struct Alike {
    answers: FxHashMap<(SchemaId, SchemaId), bool>,
    compared: usize,
}

impl Algebra<'_> {
    /// Checks whether two schemas have the same meaning, keyword by keyword.
    pub(super) fn are_alike(&mut self, a: SchemaId, b: SchemaId) -> bool {
        let mut assumed = Vec::new();
        let answer = self.compare(a, b, &mut assumed);
        if !answer {
            // Answers found on the way may depend on an assumption that turned out wrong.
            for pair in assumed {
                self.alike.answers.remove(&pair);
            }
            self.alike.answers.insert((a.min(b), a.max(b)), false);
        }
        answer
    }

    fn compare(&mut self, a: SchemaId, b: SchemaId, assumed: &mut Vec<(SchemaId, SchemaId)>) -> bool {
        let mut work = vec![(a, b)];
        while let Some((a, b)) = work.pop() {
            let (Some(a), Some(b)) = (self.target_of(a), self.target_of(b)) else { return false };
            let pair = (a.min(b), a.max(b));
            if a == b {
                continue;
            }
            match self.alike.answers.get(&pair) {
                Some(true) => continue,
                Some(false) => return false,
                None => {}
            }
            self.alike.compared += 1;
            let (x, y) = (self.schema(a), self.schema(b));
            let is_same = self.alike.compared <= MAX_PAIRS && x.dialect == y.dialect;
            if !is_same || !x.keywords.is_like(&y.keywords) {
                return false;
            }
            work.extend(x.keywords.subschemas().zip(y.keywords.subschemas()));
            self.alike.answers.insert(pair, true);
            assumed.push(pair);
        }
        true
    }

    /// Follows a schema that is only a reference. Returns `None` if the reference is broken or the chain is longer than
    /// 7.
    fn target_of(&self, mut id: SchemaId) -> Option<SchemaId> {
        for _ in 0..8 {
            let Some(reference) = self.schema(id).keywords.only_reference() else { return Some(id) };
            id = *reference.target.as_ref().ok()?;
        }
        None
    }
}

impl Keywords<'_> {
    /// Checks whether two schemas have the same meaning, provided that their subschemas do.
    fn is_like(&self, other: &Self) -> bool {
        let (a, b) = (self, other);
        let are_listed_alike = match (a.listed(), b.listed()) {
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            (None, None) => true,
            _ => false,
        };
        let counts = |one: &Self| [one.all_of.len(), one.any_of.len(), one.one_of.len(), one.prefix.len()];
        let single = |one: &Self| {
            let Conditional { then, otherwise, .. } = one.conditional.unwrap_or(Conditional {
                condition: SchemaId(0),
                then: None,
                otherwise: None,
            });
            [
                one.conditional.is_some(),
                then.is_some(),
                otherwise.is_some(),
                one.not.is_some(),
                one.rest.is_some(),
                one.contains.is_some(),
                one.additional.is_some(),
                one.property_names.is_some(),
                one.unevaluated_properties.is_some(),
                one.unevaluated_items.is_some(),
                one.unique,
                one.is_structure,
            ]
        };
        let targets = |one: &Self| [one.reference.is_some(), one.dynamic_reference.is_some()];
        let is_found = |one: &Option<Reference<'_>>| one.as_ref().is_none_or(|one| one.target.is_ok());
        let windows = |one: &Self| [one.length, one.item_count, one.contains_count, one.property_count];
        let keys = |a: &Properties<'_>, b: &Properties<'_>| a.len() == b.len() && a.keys().eq(b.keys());
        (a.types, a.asserted, a.pattern, a.format) == (b.types, b.asserted, b.pattern, b.format)
            && windows(a) == windows(b)
            && (counts(a), single(a), targets(a)) == (counts(b), single(b), targets(b))
            && is_found(&a.reference)
            && is_found(&b.reference)
            && is_found(&a.dynamic_reference)
            && is_found(&b.dynamic_reference)
            && (&a.minimum, &a.maximum, &a.multiple_of) == (&b.minimum, &b.maximum, &b.multiple_of)
            && keys(&a.properties, &b.properties)
            && keys(&a.pattern_properties, &b.pattern_properties)
            && (&a.required, &a.dependent_required) == (&b.required, &b.dependent_required)
            && a.dependent_schemas
                .iter()
                .map(|(name, _)| name)
                .eq(b.dependent_schemas.iter().map(|(name, _)| name))
            && are_listed_alike
    }

    /// Returns the subschemas and the targets of references, in a fixed order.
    pub(super) fn subschemas(&self) -> impl Iterator<Item = SchemaId> {
        let conditional = self.conditional.map(|one| [Some(one.condition), one.then, one.otherwise]);
        let targets = self.reference.iter().chain(&self.dynamic_reference);
        let targets = targets.filter_map(|reference| reference.target.as_ref().ok().copied());
        let lists = [&self.all_of, &self.any_of, &self.one_of, &self.prefix];
        let single = [
            self.not,
            self.rest,
            self.contains,
            self.additional,
            self.property_names,
            self.unevaluated_properties,
            self.unevaluated_items,
        ];
        lists
            .into_iter()
            .flatten()
            .copied()
            .chain(conditional.into_iter().flatten().chain(single).flatten())
            .chain(targets)
            .chain(self.properties.iter().chain(self.pattern_properties.iter()).map(|(_, schema)| schema))
            .chain(self.dependent_schemas.iter().map(|(_, schema)| *schema))
    }
}
