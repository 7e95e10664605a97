//! Finds the schemas that apply to a key of an object.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::super::json::Value;
use super::super::schemas::{Keywords, SchemaId};
use super::Algebra;
use super::expand::{Case, KeptChoice, Unevaluated};
use super::language::QUESTION_LIMITS;
use super::node::Signed;

/// The maximum number of schemas without an index of those that name a key.
const MAX_SCHEMAS_WITHOUT_INDEX: usize = 16;

/// A case of objects, with its schemas separated by sign.
#[derive(Clone, Debug)]
pub(crate) struct ObjectCase<'s> {
    pub(crate) positive: Vec<SchemaId>,
    pub(crate) negative: Vec<SchemaId>,
    pub(crate) unevaluated: Vec<Unevaluated>,
    /// The `unevaluatedProperties` that some key must violate.
    pub(crate) denied: Vec<Unevaluated>,
    /// See [`Case::choices`].
    pub(crate) choices: Vec<KeptChoice>,
    /// The schemas that list keys, in the order of the text: the positive ones, and those of the choices.
    pub(crate) naming: Vec<SchemaId>,
    index: Option<Index<'s>>,
}

/// The positive schemas that may apply to a key, by their positions.
#[derive(Clone, Debug, Default)]
struct Index<'s> {
    /// Schemas that apply only to the keys that they name.
    by_name: FxHashMap<&'s str, Vec<usize>>,
    /// All other schemas.
    general: Vec<usize>,
}

impl ObjectCase<'_> {
    pub(super) fn new(case: &Case) -> Self {
        let of = |negative: bool| {
            let locals = case.locals.iter().filter(move |local| local.negative == negative);
            locals.map(|local| local.id).collect()
        };
        let (denied, unevaluated) = case.unevaluated.iter().cloned().partition(|one| one.is_denied);
        let mut naming: Vec<SchemaId> = Vec::with_capacity(case.locals.len());
        let mut choices = case.choices.iter().peekable();
        for at in 0..=case.locals.len() {
            while let Some(kept) = choices.next_if(|kept| kept.after == at) {
                naming.extend(kept.alternatives.iter().flatten().map(|local| local.id));
            }
            naming.extend(case.locals.get(at).filter(|local| !local.negative).map(|local| local.id));
        }
        Self {
            naming,
            positive: of(false),
            negative: of(true),
            unevaluated,
            denied,
            choices: case.choices.clone(),
            index: None,
        }
    }

    /// Returns the positive schemas that may apply to a key, in order.
    fn applying(&self, name: &str) -> Cow<'_, [SchemaId]> {
        let Some(index) = &self.index else { return Cow::Borrowed(&self.positive) };
        let naming = index.by_name.get(name).map_or(&[][..], |places| places);
        let mut places = [naming, &index.general].concat();
        places.sort_unstable();
        Cow::Owned(places.into_iter().map(|place| self.positive[place]).collect())
    }
}

impl<'s> Algebra<'s> {
    /// Prepares a case of objects for questions about many keys.
    pub(crate) fn object_case(&mut self, case: &Case) -> ObjectCase<'s> {
        let mut object = ObjectCase::new(case);
        if object.positive.len() <= MAX_SCHEMAS_WITHOUT_INDEX {
            return object;
        }
        let mut index = Index::default();
        for (place, &id) in object.positive.iter().enumerate() {
            let keywords = self.keywords(id);
            let names_all = keywords.pattern_properties.is_empty()
                && keywords.additional.is_none()
                && keywords.property_names.is_none();
            if names_all {
                keywords
                    .properties
                    .keys()
                    .for_each(|name| index.by_name.entry(name).or_default().push(place));
            } else {
                index.general.push(place);
            }
        }
        object.index = Some(index);
        object
    }

    /// Returns the schemas that the value of a key must satisfy, or `None` if the key is forbidden.
    pub(crate) fn member_parts(&mut self, object: &ObjectCase<'s>, name: &str) -> Option<Vec<Signed>> {
        let applying = object.applying(name);
        let mut parts = Vec::with_capacity(applying.len());
        for &id in &*applying {
            let keywords = self.keywords(id);
            if let Some(names) = keywords.property_names
                && !self.satisfies(&Value::String(name.into()), &[Signed::plus(names)])
            {
                return None;
            }
            parts.extend(self.member_schemas(id, &keywords, name).into_iter().map(Signed::plus));
        }
        for unevaluated in &object.unevaluated {
            parts.extend(self.unevaluated_member(unevaluated, name).map(Signed::plus));
        }
        let is_forbidden = parts.iter().any(|part| self.keywords(part.id).types.is_empty());
        (!is_forbidden).then_some(parts)
    }

    /// Returns the schema that `unevaluatedProperties` applies to the key `name`, if any.
    pub(crate) fn unevaluated_member(&mut self, unevaluated: &Unevaluated, name: &str) -> Option<SchemaId> {
        self.unevaluated_property(unevaluated, |this, id, keywords| {
            keywords.properties.contains_key(name) || !this.matching_patterns(id, keywords, name).is_empty()
        })
    }

    /// Returns the schemas that one schema has for the value of a key.
    pub(crate) fn member_schemas(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        name: &str,
    ) -> Vec<SchemaId> {
        let mut found = Vec::with_capacity(1);
        found.extend(keywords.properties.get(name));
        found.append(&mut self.matching_patterns(id, keywords, name));
        if found.is_empty() {
            found.extend(keywords.additional);
        }
        found
    }

    /// Returns the schemas of the patterns that match a key.
    fn matching_patterns(&mut self, id: SchemaId, keywords: &Keywords<'s>, name: &str) -> Vec<SchemaId> {
        let patterns = keywords.pattern_properties.iter();
        patterns
            .filter(|(pattern, _)| self.key_matches(id, pattern, name))
            .map(|(_, schema)| schema)
            .collect()
    }

    fn key_matches(&mut self, id: SchemaId, pattern: &'s str, name: &str) -> bool {
        let Some(language) = self.pattern(id, "patternProperties", pattern) else { return false };
        self.languages.contains(&self.grammar, language, name).unwrap_or_else(|| {
            self.exceed_language(id, "patternProperties", &format!("matching the pattern `{pattern}`"));
            false
        })
    }

    /// Stops lowering because a question about a regular language is too expensive.
    pub(crate) fn exceed_language(&mut self, id: SchemaId, keyword: &'static str, what: &str) {
        let message = format!(
            "{what} takes more than {} states or {} steps",
            QUESTION_LIMITS.states, QUESTION_LIMITS.steps
        );
        let help = "use simpler patterns, or smaller counts in them";
        self.context.halt(self.path(id), keyword, message, help);
    }

    /// Returns the schema that `unevaluatedProperties` applies to a key, unless a schema of the case evaluates the key.
    pub(crate) fn unevaluated_property(
        &mut self,
        unevaluated: &Unevaluated,
        mut evaluates: impl FnMut(&mut Self, SchemaId, &Keywords<'s>) -> bool,
    ) -> Option<SchemaId> {
        for &id in &unevaluated.contributors {
            let keywords = self.keywords(id);
            let is_inner = id != unevaluated.owner && keywords.unevaluated_properties.is_some();
            if keywords.additional.is_some() || is_inner || evaluates(self, id, &keywords) {
                return None;
            }
        }
        self.keywords(unevaluated.owner).unevaluated_properties
    }
}
