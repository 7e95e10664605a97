//! Proves that conjunctions are empty, where a proof is cheap.
//!
//! "Clearly empty" means that this is found without emitting anything. A yes is a proof; a no means only that no proof
//! was found. [`super::expand`] asks these questions, and a yes saves a sign or a case. So the questions must be cheap:
//! their depth and number are bounded, and the answers are remembered.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::json::Value;
use super::super::schemas::{Bound, Keywords, SchemaId, Window};
use super::super::types::TypeSet;
use super::expand::{BRANCH_TYPES_DEPTH, Case};
use super::items::item;
use super::members::ObjectCase;
use super::node::Signed;
use super::{Algebra, KINDS, SCALARS};

/// The number of steps into the value that are examined.
const MAX_DEPTH: usize = 4;

/// The maximum number of questions in all. After that, every answer is no.
const MAX_QUESTIONS: usize = 200_000;

/// The number of questions for which a conjunction of patterns counts.
const QUESTIONS_PER_LANGUAGE: usize = 100;

/// The maximum number of listed values that are tried one by one.
const MAX_TRIED_VALUES: usize = 64;

/// The number of first items that are examined.
const MAX_TRIED_ITEMS: u32 = 4;

/// The maximum length of `prefixItems` in arrays that are compared.
const MAX_TRIED_PLACES: usize = 16;

/// The maximum number of branches of a choice that is examined.
const MAX_TRIED_BRANCHES: usize = 16;

/// The depth to which combinators are followed to collect the schemas that hold without a choice.
pub(super) const FLATTEN_DEPTH: usize = 8;

/// The answers so far.
#[derive(Debug, Default)]
pub(super) struct Memo {
    answers: FxHashMap<(Vec<Signed>, TypeSet), bool>,
    questions: usize,
}

/// The schemas that hold without a choice, and the choices.
#[derive(Default)]
pub(super) struct Flat {
    locals: Vec<Signed>,
    choices: Vec<Vec<SchemaId>>,
}

impl Flat {
    /// Returns the schemas that must hold.
    pub(super) fn positive(&self) -> impl Iterator<Item = SchemaId> {
        self.locals.iter().filter(|local| !local.negative).map(|local| local.id)
    }
}

impl<'s> Algebra<'s> {
    /// Checks whether two schemas clearly have no common value of these types.
    pub(super) fn is_disjoint(&mut self, a: SchemaId, b: SchemaId, types: TypeSet) -> bool {
        self.is_clearly_empty(&[Signed::plus(a), Signed::plus(b)], types, MAX_DEPTH)
    }

    /// Like [`Self::is_disjoint`], for values that satisfy the local keywords of the schemas in `beside`.
    pub(super) fn is_disjoint_beside(
        &mut self,
        a: SchemaId,
        b: SchemaId,
        types: TypeSet,
        beside: &[Signed],
    ) -> bool {
        if self.is_disjoint(a, b, types) {
            return true;
        }
        if beside.is_empty() || types != TypeSet::OBJECT || self.overlaps.questions > MAX_QUESTIONS {
            return false;
        }
        self.overlaps.questions += 1;
        let mut flat = Flat { locals: beside.to_vec(), choices: Vec::new() };
        self.flatten(Signed::plus(a), &mut flat, FLATTEN_DEPTH);
        self.flatten(Signed::plus(b), &mut flat, FLATTEN_DEPTH);
        self.is_empty_for(&flat, types, MAX_DEPTH)
    }

    /// Checks whether clearly no value of these types satisfies all these schemas.
    pub(super) fn is_clearly_empty(&mut self, parts: &[Signed], types: TypeSet, depth: usize) -> bool {
        if depth == 0 || self.overlaps.questions > MAX_QUESTIONS {
            return false;
        }
        let mut parts: Vec<Signed> = parts.to_vec();
        parts.sort_unstable();
        parts.dedup();
        if parts.windows(2).any(|pair| pair[0].id == pair[1].id) {
            return true;
        }
        let key = (parts, types);
        if let Some(&known) = self.overlaps.answers.get(&key) {
            return known;
        }
        if self.has_opposites(&key.0) {
            self.overlaps.answers.insert(key, true);
            return true;
        }
        self.overlaps.questions += 1;
        // The answer is no while it is being computed: a circle proves nothing.
        self.overlaps.answers.insert(key.clone(), false);
        let answer = self.prove_empty(&key.0, types, depth);
        if answer {
            self.overlaps.answers.insert(key, true);
        }
        answer
    }

    /// Checks whether the parts contain a schema and the negation of a schema with the same meaning.
    fn has_opposites(&mut self, parts: &[Signed]) -> bool {
        parts
            .iter()
            .filter(|part| part.negative)
            .any(|denied| parts.iter().any(|part| !part.negative && self.are_alike(part.id, denied.id)))
    }

    fn prove_empty(&mut self, parts: &[Signed], types: TypeSet, depth: usize) -> bool {
        let types = types & self.types_of_all(parts, depth);
        if types.is_empty() {
            return true;
        }
        let mut flat = Flat::default();
        for &part in parts {
            self.flatten(part, &mut flat, FLATTEN_DEPTH);
        }
        if let Some(values) = self.listed_values(&flat) {
            return values.len() <= MAX_TRIED_VALUES
                && !values.iter().any(|value| self.allows(value, types, parts));
        }
        if SCALARS.iter().any(|value| self.allows(value, types, parts)) {
            return false;
        }
        !KINDS.iter().any(|&kind| types.meets(kind) && !self.is_empty_for(&flat, kind, depth))
    }

    /// Checks whether clearly no value of one type is possible.
    fn is_empty_for(&mut self, flat: &Flat, kind: TypeSet, depth: usize) -> bool {
        // Every value of a type satisfies a schema that does not constrain the type, so its negation is empty.
        let mut denied = flat.locals.iter().filter(|local| local.negative);
        if denied.any(|local| {
            let keywords = self.keywords(local.id);
            keywords.is_plain() && keywords.types.meets(kind) && !keywords.constrains(kind)
        }) {
            return true;
        }
        let case = Case { locals: self.relevant_locals(&flat.locals, kind), ..Case::default() };
        if self.is_empty_case(&case, kind, depth) {
            return true;
        }
        // A choice in which no branch is possible.
        flat.choices.iter().any(|choice| {
            choice.iter().all(|&branch| {
                let branch = Signed::plus(branch);
                let mut inner = Flat::default();
                self.flatten(branch, &mut inner, FLATTEN_DEPTH);
                if !self.types_of(branch, BRANCH_TYPES_DEPTH).meets(kind) {
                    return true;
                }
                let mut joined = case.clone();
                joined.locals.extend(self.relevant_locals(&inner.locals, kind));
                depth > 1 && self.is_empty_case(&joined, kind, depth - 1)
            })
        })
    }

    /// Returns the schemas whose local keywords constrain values of a type.
    fn relevant_locals(&mut self, locals: &[Signed], kind: TypeSet) -> Vec<Signed> {
        let mut relevant = Vec::with_capacity(locals.len());
        for &local in locals {
            let keywords = self.keywords(local.id);
            // The negation of a schema that no value of this type satisfies always holds.
            let is_trivial = local.negative && !(keywords.types.meets(kind) && keywords.may_list(kind));
            if !is_trivial && keywords.constrains(kind) && !relevant.contains(&local) {
                relevant.push(local);
            }
        }
        relevant
    }

    /// Collects the schemas that hold without a choice, and the choices.
    pub(super) fn flatten(&mut self, part: Signed, flat: &mut Flat, depth: usize) {
        let keywords = self.keywords(part.id);
        if part.negative {
            if keywords.is_plain() {
                flat.locals.push(part);
            }
            return;
        }
        if flat.locals.contains(&part) {
            return;
        }
        flat.locals.push(part);
        if keywords.is_plain() || depth == 0 {
            return;
        }
        let target = keywords.reference.as_ref().and_then(|reference| self.target(reference));
        for &id in target.iter().chain(&keywords.all_of) {
            self.flatten(Signed::plus(id), flat, depth - 1);
        }
        if let Some(not) = keywords.not {
            self.flatten(Signed::minus(not), flat, depth - 1);
        }
        for branches in [&keywords.any_of, &keywords.one_of] {
            if !branches.is_empty() && branches.len() <= MAX_TRIED_BRANCHES {
                flat.choices.push(branches.clone());
            }
        }
    }

    pub(super) fn listed_values(&mut self, flat: &Flat) -> Option<&'s [Value<'s>]> {
        flat.positive().find_map(|id| self.keywords(id).listed())
    }

    /// Checks whether a case is clearly empty.
    pub(super) fn is_clearly_empty_case(&mut self, case: &Case, kind: TypeSet) -> bool {
        if case.locals.len() < 2 || self.overlaps.questions > MAX_QUESTIONS {
            return false;
        }
        self.overlaps.questions += 1;
        if let Some(id) = self.listing(case) {
            let values = self.keywords(id).listed().unwrap_or_default();
            let mut is_possible = |value: &Value<'_>| {
                TypeSet::of(value).meets(kind)
                    && case.locals.iter().all(|&local| self.satisfies_local(value, local))
            };
            return values.len() <= MAX_TRIED_VALUES && !values.iter().any(&mut is_possible);
        }
        self.is_empty_case(case, kind, MAX_DEPTH)
    }

    fn is_empty_case(&mut self, case: &Case, kind: TypeSet, depth: usize) -> bool {
        if self.has_opposites(&case.locals) {
            return true;
        }
        match kind {
            TypeSet::STRING => self.has_no_string(case),
            TypeSet::NUMBER => self.has_no_number(case),
            TypeSet::ARRAY => self.has_no_array(case, depth),
            _ => self.has_no_object(case, depth),
        }
    }

    fn has_no_string(&mut self, case: &Case) -> bool {
        let (mut window, mut languages) = (Window::default(), 0);
        for local in &case.locals {
            let keywords = self.keywords(local.id);
            if local.negative {
                languages += 1;
            } else {
                window = window.and(keywords.length);
                languages += usize::from(keywords.pattern.is_some());
                languages += usize::from(keywords.format.is_some());
            }
        }
        let is_within = |keywords: &Keywords<'_>| {
            let has_only_length =
                keywords.pattern.is_none() && keywords.format.is_none() && keywords.listed().is_none();
            has_only_length && window.and(keywords.length) == window
        };
        let mut denied = case.locals.iter().filter(|local| local.negative);
        if window.is_empty() || denied.any(|local| is_within(&self.keywords(local.id))) {
            return true;
        }
        if languages < 2 {
            return false;
        }
        self.overlaps.questions += QUESTIONS_PER_LANGUAGE;
        let text = self.text(case);
        text.is_some_and(|text| self.languages.is_clearly_empty(&self.grammar, text))
    }

    fn has_no_number(&mut self, case: &Case) -> bool {
        let (mut low, mut high): (Option<Bound>, Option<Bound>) = (None, None);
        for id in case.positive() {
            let keywords = self.keywords(id);
            if let Some(bound) = &keywords.minimum
                && low
                    .as_ref()
                    .is_none_or(|low| (&bound.value, bound.exclusive) > (&low.value, low.exclusive))
            {
                low = Some(bound.clone());
            }
            if let Some(bound) = &keywords.maximum
                && high.as_ref().is_none_or(|high| {
                    bound.value < high.value || bound.value == high.value && bound.exclusive
                })
            {
                high = Some(bound.clone());
            }
        }
        let is_beyond = |low: &Bound, high: &Bound| {
            low.value > high.value || low.value == high.value && (low.exclusive || high.exclusive)
        };
        if low.as_ref().zip(high.as_ref()).is_some_and(|(low, high)| is_beyond(low, high)) {
            return true;
        }
        // Checks whether every number of this case clearly satisfies a negated schema.
        let opposite = |bound: &Bound| Bound { exclusive: !bound.exclusive, ..bound.clone() };
        case.locals.iter().filter(|local| local.negative).any(|local| {
            let denied = self.keywords(local.id);
            denied.listed().is_none()
                && denied
                    .minimum
                    .iter()
                    .all(|bound| low.as_ref().is_some_and(|low| is_beyond(low, &opposite(bound))))
                && denied
                    .maximum
                    .iter()
                    .all(|bound| high.as_ref().is_some_and(|high| is_beyond(&opposite(bound), high)))
                && denied.multiple_of.iter().all(|step| {
                    let mut steps = case.positive().filter_map(|id| self.keywords(id).multiple_of.clone());
                    steps.any(|one| one.is_multiple_of(step) == Some(true))
                })
                && (denied.types.covers(TypeSet::NUMBER)
                    || denied.types.meets(TypeSet::INTEGER)
                        && case.positive().any(|id| !self.keywords(id).types.covers(TypeSet::NUMBER)))
        })
    }

    fn has_no_array(&mut self, case: &Case, depth: usize) -> bool {
        let mut window = Window::default();
        for id in case.positive() {
            window = window.and(self.keywords(id).item_count);
        }
        window.is_empty()
            || (0..window.min.min(MAX_TRIED_ITEMS) as usize).any(|place| {
                let parts = self.item_parts(case, place);
                parts.len() > 1 && self.is_clearly_empty(&parts, TypeSet::ALL, depth - 1)
            })
            || case
                .locals
                .iter()
                .filter(|local| local.negative)
                .any(|local| self.always_fits(case, window, local.id, depth))
    }

    /// Checks whether every array of this case clearly satisfies the local keywords of a schema.
    fn always_fits(&mut self, case: &Case, window: Window, id: SchemaId, depth: usize) -> bool {
        let denied = self.keywords(id);
        let mut places = denied.prefix.len();
        let mut is_unique = window.max.is_some_and(|max| max < 2);
        for id in case.positive() {
            let keywords = self.keywords(id);
            places = places.max(keywords.prefix.len());
            is_unique |= keywords.unique;
        }
        denied.listed().is_none()
            && denied.contains.is_none()
            && window.and(denied.item_count) == window
            && (is_unique || !denied.unique)
            && places <= MAX_TRIED_PLACES
            && case.unevaluated.is_empty()
            && (0..=places).all(|place| {
                let Some(item) = item(&denied, place) else { return true };
                let mut parts = self.item_parts(case, place);
                parts.push(Signed::minus(item));
                window.max.is_some_and(|max| place >= max as usize)
                    || self.is_clearly_empty(&parts, TypeSet::ALL, depth - 1)
            })
    }

    fn has_no_object(&mut self, case: &Case, depth: usize) -> bool {
        let object = ObjectCase::new(case);
        let mut required: FxHashSet<&'s str> = FxHashSet::default();
        let mut names: Vec<&'s str> = Vec::new();
        for &id in &object.positive {
            names.extend(self.keywords(id).required.iter().filter(|name| required.insert(name)));
        }
        names.into_iter().any(|name| {
            let parts = self.member_parts(&object, name);
            parts
                .is_none_or(|parts| parts.len() > 1 && self.is_clearly_empty(&parts, TypeSet::ALL, depth - 1))
        }) || object.negative.iter().any(|&id| self.always_satisfies(&object, id, &required, depth))
    }

    /// Checks whether every object of this case clearly satisfies the local keywords of a schema.
    fn always_satisfies(
        &mut self,
        object: &ObjectCase<'s>,
        id: SchemaId,
        required: &FxHashSet<&'s str>,
        depth: usize,
    ) -> bool {
        let keywords = self.keywords(id);
        let has_only_properties = (keywords.listed().is_none() || keywords.is_structure)
            && keywords.pattern_properties.is_empty()
            && keywords.additional.is_none()
            && keywords.property_names.is_none()
            && keywords.dependent_required.is_empty()
            && keywords.property_count.is_open();
        has_only_properties
            && keywords.required.iter().all(|name| required.contains(name))
            && keywords.properties.iter().all(|(name, property)| {
                let Some(mut parts) = self.member_parts(object, name) else { return true };
                parts.push(Signed::minus(property));
                self.is_clearly_empty(&parts, TypeSet::ALL, depth - 1)
            })
    }
}
