//! Which conjunctions are clearly empty.
//!
//! "Clearly" means: seen without lowering anything. A yes is a proof; a no means only that nothing was found. The questions come
//! from [`super::expand`], where a yes saves a sign or a case, so they must be cheap: the depth and the number
//! of steps are bounded, and answers are remembered.
//!
//! Almost all real `oneOf`s are told apart here: by type, by listed values, by a required key that the other
//! forbids, or by a required tag whose values differ.

use super::super::json::{Members, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::keywords::{Bound, Window};
use super::super::schemas::SchemaId;
use super::super::types::TypeSet;
use super::Lowerer;
use super::expand::Case;
use super::node::Signed;
use super::object::Facts;
use super::validate::canonical;

/// How many steps into the value are looked at.
const DEPTH: usize = 4;

/// How many questions are answered in all; after that every answer is no.
const FUEL: usize = 200_000;

/// Of so many branches each pair is looked at.
const ALL_PAIRS: usize = 32;

/// How many listed values are tried one by one.
const VALUES: usize = 64;

/// Answers so far.
#[derive(Debug, Default)]
pub(super) struct Memory {
    known: FxHashMap<(Vec<Signed>, TypeSet), bool>,
    spent: usize,
}

impl<'s> Lowerer<'s> {
    /// Whether two schemas clearly have no value of these types in common.
    pub(super) fn is_disjoint(&mut self, a: SchemaId, b: SchemaId, types: TypeSet) -> bool {
        self.is_clearly_empty(&[Signed::plus(a), Signed::plus(b)], types, DEPTH)
    }

    /// The same for values that satisfy what some other schemas say by themselves.
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
        if beside.is_empty() || types != TypeSet::OBJECT || self.overlaps.spent > FUEL {
            return false;
        }
        self.overlaps.spent += 1;
        let mut flat = Flat { locals: beside.to_vec(), choices: Vec::new() };
        self.flatten(Signed::plus(a), &mut flat, 8);
        self.flatten(Signed::plus(b), &mut flat, 8);
        self.is_empty_kind(&flat, types, DEPTH)
    }

    /// Whether no value of these types clearly satisfies all of these.
    pub(super) fn is_clearly_empty(&mut self, parts: &[Signed], types: TypeSet, depth: usize) -> bool {
        if depth == 0 || self.overlaps.spent > FUEL {
            return false;
        }
        let mut key: Vec<Signed> = parts.to_vec();
        key.sort_unstable();
        key.dedup();
        if key.windows(2).any(|pair| pair[0].id == pair[1].id) {
            return true;
        }
        if let Some(&known) = self.overlaps.known.get(&(key.clone(), types)) {
            return known;
        }
        self.overlaps.spent += 1;
        // Assume nothing while looking: a circle proves nothing.
        self.overlaps.known.insert((key.clone(), types), false);
        let answer = self.look(&key, types, depth);
        if answer {
            self.overlaps.known.insert((key, types), true);
        }
        answer
    }

    fn look(&mut self, parts: &[Signed], types: TypeSet, depth: usize) -> bool {
        let mut types = types;
        for &part in parts {
            types = types & self.types_of(part, depth);
        }
        if types.is_empty() {
            return true;
        }
        let mut flat = Flat::default();
        for &part in parts {
            self.flatten(part, &mut flat, 8);
        }
        if let Some(values) = self.listed_values(&flat) {
            return values.len() <= VALUES
                && !values
                    .iter()
                    .any(|value| TypeSet::of(value).meets(types) && self.satisfies(value, parts));
        }
        if types.meets(TypeSet::NULL | TypeSet::BOOLEAN) {
            let scalars = [&Value::Null, &Value::Bool(true), &Value::Bool(false)];
            if scalars.iter().any(|value| TypeSet::of(value).meets(types) && self.satisfies(value, parts)) {
                return false;
            }
        }
        for kind in [TypeSet::STRING, TypeSet::NUMBER, TypeSet::ARRAY, TypeSet::OBJECT] {
            if types.meets(kind) && !self.is_empty_kind(&flat, kind, depth) {
                return false;
            }
        }
        true
    }

    fn is_empty_kind(&mut self, flat: &Flat, kind: TypeSet, depth: usize) -> bool {
        let case = Case { locals: self.about(&flat.locals, kind), others: Vec::new() };
        if self.is_empty_at(&case, kind, depth) {
            return true;
        }
        // A choice all of whose branches clash.
        for choice in &flat.choices {
            let all = choice.iter().all(|&branch| {
                let mut inner = Flat::default();
                self.flatten(Signed::plus(branch), &mut inner, 8);
                let types = self.types_of(Signed::plus(branch), 4);
                if !types.meets(kind) {
                    return true;
                }
                let mut locals = case.locals.clone();
                locals.extend(self.about(&inner.locals, kind));
                let joined = Case { locals, others: Vec::new() };
                depth > 1 && self.is_empty_at(&joined, kind, depth - 1)
            });
            if all {
                return true;
            }
        }
        false
    }

    /// The locals that say something about a type.
    fn about(&mut self, locals: &[Signed], kind: TypeSet) -> Vec<Signed> {
        let mut about = Vec::with_capacity(locals.len());
        for &local in locals {
            let keywords = self.keywords(local.id);
            let lists_other = keywords
                .listed()
                .is_some_and(|values| !values.iter().any(|value| TypeSet::of(value).meets(kind)));
            // What no value of this type satisfies is negated for free.
            let granted = local.negative && (!keywords.types.meets(kind) || lists_other);
            if !granted && super::expand::says_about(&keywords, kind) && !about.contains(&local) {
                about.push(local);
            }
        }
        about
    }

    /// Collects what holds without a choice, and the choices.
    fn flatten(&mut self, part: Signed, flat: &mut Flat, depth: usize) {
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
        if let Some(reference) = keywords.reference
            && let Ok(target) = self.schemas.resolve(&mut self.context, part.id, reference)
        {
            self.flatten(Signed::plus(target), flat, depth - 1);
        }
        for branch in self.branches(part.id, keywords.all_of, "allOf") {
            self.flatten(Signed::plus(branch), flat, depth - 1);
        }
        if let Some(not) = keywords.not {
            let not = self.child(part.id, not, super::Step::Keyword("not"));
            self.flatten(Signed::minus(not), flat, depth - 1);
        }
        for (branches, keyword) in [(keywords.any_of, "anyOf"), (keywords.one_of, "oneOf")] {
            if branches.is_some_and(|branches| branches.len() <= 16) {
                flat.choices.push(self.branches(part.id, branches, keyword));
            }
        }
    }

    fn listed_values(&mut self, flat: &Flat) -> Option<&'s [Value<'s>]> {
        let positive = flat.locals.iter().filter(|local| !local.negative).map(|local| local.id);
        positive.collect::<Vec<_>>().into_iter().find_map(|id| self.keywords(id).listed())
    }

    /// Whether a case of one type is clearly empty.
    pub(super) fn is_clearly_empty_case(&mut self, case: &Case, kind: TypeSet) -> bool {
        if case.locals.len() < 2 || self.overlaps.spent > FUEL {
            return false;
        }
        self.overlaps.spent += 1;
        if let Some(id) = self.listing(case) {
            let keywords = self.keywords(id);
            let values = keywords.listed().unwrap_or_default();
            if values.len() > VALUES {
                return false;
            }
            return !values.iter().any(|value| {
                TypeSet::of(value).meets(kind)
                    && case.locals.iter().all(|&local| self.satisfies_local(value, local))
            });
        }
        self.is_empty_at(case, kind, DEPTH)
    }

    fn is_empty_at(&mut self, case: &Case, kind: TypeSet, depth: usize) -> bool {
        match kind {
            TypeSet::STRING => self.no_string(case),
            TypeSet::NUMBER => self.no_number(case),
            TypeSet::ARRAY => self.no_array(case, depth),
            _ => self.no_object(case, depth),
        }
    }

    fn no_string(&mut self, case: &Case) -> bool {
        let (mut window, mut conditions) = (Window::default(), 0);
        for local in &case.locals {
            let keywords = self.keywords(local.id);
            if local.negative {
                conditions += 1;
            } else {
                window = window.and(keywords.length);
                conditions += usize::from(keywords.pattern.is_some());
                conditions += usize::from(keywords.format.is_some());
            }
        }
        if window.is_empty() {
            return true;
        }
        if conditions < 2 {
            return false;
        }
        self.overlaps.spent += 100;
        let text = self.text(case);
        text.is_some_and(|text| self.languages.is_clearly_empty(&self.grammar, text))
    }

    fn no_number(&mut self, case: &Case) -> bool {
        let (mut low, mut high): (Option<Bound>, Option<Bound>) = (None, None);
        for local in case.locals.iter().filter(|local| !local.negative) {
            let keywords = self.keywords(local.id);
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
        match (low, high) {
            (Some(low), Some(high)) => {
                low.value > high.value || low.value == high.value && (low.exclusive || high.exclusive)
            }
            _ => false,
        }
    }

    fn no_array(&mut self, case: &Case, depth: usize) -> bool {
        let mut window = Window::default();
        for local in case.locals.iter().filter(|local| !local.negative) {
            window = window.and(self.keywords(local.id).item_count);
        }
        if window.is_empty() {
            return true;
        }
        (0..window.min.min(4) as usize).any(|place| {
            let parts = self.item_parts(case, place);
            parts.len() > 1 && self.is_clearly_empty(&parts, TypeSet::ALL, depth - 1)
        })
    }

    fn no_object(&mut self, case: &Case, depth: usize) -> bool {
        let facts = Facts::new(self, case);
        let mut required: Vec<&'s str> = Vec::new();
        let mut seen: FxHashSet<&'s str> = FxHashSet::default();
        for &id in &facts.positive {
            required.extend(self.keywords(id).required.iter().filter(|name| seen.insert(name)));
        }
        for name in &required {
            match facts.parts(self, name) {
                None => return true,
                Some(parts) if parts.len() > 1 => {
                    if self.is_clearly_empty(&parts, TypeSet::ALL, depth - 1) {
                        return true;
                    }
                }
                Some(_) => {}
            }
        }
        let negative = facts.negative.clone();
        negative.into_iter().any(|id| self.cannot_fail(id, &facts, &seen, depth))
    }

    /// Whether an object of this case clearly satisfies what a schema says by itself.
    fn cannot_fail(
        &mut self,
        id: SchemaId,
        facts: &Facts<'s>,
        required: &FxHashSet<&'s str>,
        depth: usize,
    ) -> bool {
        let keywords = self.keywords(id);
        let only = (keywords.listed().is_none() || keywords.holds_values)
            && keywords.pattern_properties.is_none()
            && keywords.additional.is_none()
            && keywords.property_names.is_none()
            && keywords.dependent_required.is_empty()
            && keywords.property_count.is_open();
        if !only || !keywords.required.iter().all(|name| required.contains(name)) {
            return false;
        }
        let Some(properties) = keywords.properties else { return true };
        properties.iter().all(|(name, value)| {
            let Some(mut parts) = facts.parts(self, name) else { return true };
            parts.push(Signed::minus(self.property(id, &keywords, name, value)));
            self.is_clearly_empty(&parts, TypeSet::ALL, depth - 1)
        })
    }

    /// The pairs of branches that may have a value in common, without asking about each pair: if there are many branches, most are told apart
    /// by a value that only one of them lists, or by a key that one requires and the other does not know. `None` if there are too many pairs.
    pub(super) fn neighbours(&mut self, branches: &[SchemaId], kind: TypeSet) -> Option<Vec<(usize, usize)>> {
        if branches.len() <= ALL_PAIRS {
            let pairs = (0..branches.len()).flat_map(|i| (i + 1..branches.len()).map(move |j| (i, j)));
            return Some(pairs.collect());
        }
        let mut by_value: FxHashMap<Box<str>, Vec<usize>> = FxHashMap::default();
        let mut by_key: FxHashMap<&'s str, Vec<usize>> = FxHashMap::default();
        let (mut listed, mut closed, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut pairs = Vec::new();
        for (at, &branch) in branches.iter().enumerate() {
            let first = pairs.len();
            match self.profile(branch, kind) {
                Profile::Listed(values) => {
                    for value in values {
                        let same = by_value.entry(canonical(value)).or_default();
                        pairs.extend(same.iter().filter(|&&other| other != at).map(|&other| (other, at)));
                        same.push(at);
                    }
                    pairs.extend(closed.iter().chain(&others).map(|&other| (other, at)));
                    listed.push(at);
                }
                Profile::Object { required, keys } => {
                    // A closed object takes part only if it knows the rarest of the required keys.
                    let knowing = |name: &&'s str| by_key.get(name).map_or(&[][..], |list| &**list);
                    let rarest = required.iter().map(knowing).min_by_key(|list| list.len());
                    let around = listed.iter().chain(&others).chain(rarest.unwrap_or(&closed));
                    pairs.extend(around.map(|&other| (other, at)));
                    match keys {
                        Some(keys) => {
                            keys.keys().for_each(|name| by_key.entry(name).or_default().push(at));
                            closed.push(at);
                        }
                        None => others.push(at),
                    }
                }
            }
            let mut new = pairs.split_off(first);
            new.sort_unstable();
            new.dedup();
            pairs.append(&mut new);
            if pairs.len() > FUEL {
                return None;
            }
        }
        Some(pairs)
    }

    /// What tells a branch apart from others.
    fn profile(&mut self, branch: SchemaId, kind: TypeSet) -> Profile<'s> {
        let mut flat = Flat::default();
        self.flatten(Signed::plus(branch), &mut flat, 8);
        if let Some(values) = self.listed_values(&flat) {
            return Profile::Listed(values);
        }
        let (mut required, mut keys) = (Vec::new(), None);
        if self.types_of(Signed::plus(branch), 8) & kind == TypeSet::OBJECT {
            for local in flat.locals.iter().filter(|local| !local.negative) {
                let keywords = self.keywords(local.id);
                required.extend_from_slice(&keywords.required);
                if keywords.additional == Some(&Value::Bool(false)) && keywords.pattern_properties.is_none() {
                    keys = keys.or(keywords.properties);
                }
            }
        }
        Profile::Object { required, keys }
    }

    /// Whether all branches require one key whose listed values tell them apart.
    pub(super) fn is_tagged(&mut self, branches: &[SchemaId], kind: TypeSet) -> bool {
        let Some(&first) = branches.first() else { return true };
        for &branch in branches {
            if self.types_of(Signed::plus(branch), 8) & kind != TypeSet::OBJECT {
                return false;
            }
        }
        let mut flat = Flat::default();
        self.flatten(Signed::plus(first), &mut flat, 8);
        let mut names: Vec<&'s str> = Vec::new();
        for local in flat.locals.iter().filter(|local| !local.negative) {
            names.extend(&self.keywords(local.id).required);
        }
        names.into_iter().any(|name| self.tells_apart(branches, name))
    }

    fn tells_apart(&mut self, branches: &[SchemaId], name: &str) -> bool {
        let mut seen: FxHashSet<&'s str> = FxHashSet::default();
        branches.iter().all(|&branch| {
            let mut flat = Flat::default();
            self.flatten(Signed::plus(branch), &mut flat, 8);
            let (mut required, mut values) = (false, None);
            for local in flat.locals.iter().filter(|local| !local.negative) {
                let keywords = self.keywords(local.id);
                required |= keywords.required.contains(&name);
                let property = keywords.properties.and_then(|map| map.get_key_value(name));
                if let Some((name, value)) = property {
                    let id = self.property(local.id, &keywords, name, value);
                    let node = self.node(id);
                    let id = node.as_single().unwrap_or(id);
                    values = values.or(self.keywords(id).listed());
                }
            }
            let Some(values) = values.filter(|_| required) else { return false };
            let mut tags = values.iter().map(Value::as_str);
            tags.all(|tag| tag.is_some_and(|tag| seen.insert(tag)))
        })
    }
}

/// What tells a branch of a `oneOf` apart from others.
enum Profile<'s> {
    /// The only values that it allows.
    Listed(&'s [Value<'s>]),
    /// Keys that an object must have, and the only ones that it may have. Nothing, if it may be something else.
    Object { required: Vec<&'s str>, keys: Option<&'s Members<'s>> },
}

/// What holds without a choice, and the choices.
#[derive(Default)]
struct Flat {
    locals: Vec<Signed>,
    choices: Vec<Vec<SchemaId>>,
}
