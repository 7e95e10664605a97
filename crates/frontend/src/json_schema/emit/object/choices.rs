//! Choices between conditions on single keys, in the schema's order.
//!
//! ```text
//! {"if": {"properties": {"kind": {"const": "card"}}, "required": ["kind"]}, "then": {"required": ["number"]}}
//!
//! alternative 0     kind: present, {+const};  number: present
//! alternative 1     kind: absent, or {−const}
//! ```
//!
//! From the first key that a choice concerns, the alternatives that can still hold are part of the state, until one of
//! them holds. So choices about different keys multiply only where they are open at the same place: twenty choices
//! about two neighboring keys each make twice as many states as there are members.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::super::cases::{Case, ObjectCase, Signed};
use super::super::super::json::Value;
use super::super::super::options::KeyOrder;
use super::super::super::schemas::Window;
use super::super::Emitter;
use super::breaks::{Breaks, MAX_BROKEN_SCHEMAS, MAX_MEMBER_WAYS, by_absence, keep_places};
use super::demands::Demands;
use super::{Member, Plan};

/// A choice: one of these alternatives must hold.
#[derive(Clone, Debug)]
pub(super) struct KeyChoice {
    /// The index of the first member with a condition.
    first: usize,
    pub(super) alternatives: Vec<Alternative>,
}

/// Conditions on some members, by index.
#[derive(Clone, Debug, Default)]
pub(super) struct Alternative {
    pub(super) conditions: BTreeMap<usize, Condition>,
    /// The number of schemas that must be broken.
    pub(super) broken: usize,
}

/// A condition on one member.
#[derive(Clone, Debug, Default)]
pub(super) struct Condition {
    pub(super) required: bool,
    /// The schemas that its value must satisfy.
    pub(super) parts: Vec<Signed>,
    /// How the member breaks each schema that must be broken. Empty if it breaks none.
    pub(super) breaks: Vec<Breaks>,
}

impl KeyChoice {
    /// Checks whether some alternative has a condition on a member.
    pub(super) fn is_about(&self, at: usize) -> bool {
        self.alternatives.iter().any(|one| one.conditions.contains_key(&at))
    }

    /// Returns the member that all conditions concern, if there is only one.
    pub(super) fn only_member(&self) -> Option<usize> {
        let mut places = self.alternatives.iter().flat_map(|one| one.conditions.keys());
        let first = *places.next()?;
        places.all(|&at| at == first).then_some(first)
    }
}

impl Condition {
    /// Returns the schemas by which the values of the member are distinguished.
    pub(super) fn asked(&self) -> impl Iterator<Item = Signed> {
        let by = self.breaks.iter().flat_map(|breaks| breaks.by.iter().flatten());
        self.parts.iter().chain(by).copied()
    }

    fn is_breaking(&self, i: usize) -> bool {
        self.breaks.get(i).is_some_and(|breaks| breaks.absent || !breaks.by.is_empty())
    }
}

impl Alternative {
    /// Checks whether no condition is left after the member `place`.
    fn is_over(&self, place: usize, broken: u128) -> bool {
        let is_left = |(at, condition): (&usize, &Condition)| {
            *at > place && (condition.required || !condition.parts.is_empty())
        };
        broken.count_ones() as usize == self.broken && !self.conditions.iter().any(is_left)
    }

    /// Returns the schemas that no member after `place` breaks, as bits.
    fn due(&self, place: usize) -> u128 {
        let is_breakable =
            |i: usize| self.conditions.iter().any(|(at, condition)| *at > place && condition.is_breaking(i));
        (0..self.broken).filter(|&i| !is_breakable(i)).fold(0, |bits, i| bits | 1 << i)
    }

    /// Checks whether every object satisfies the alternative.
    pub(super) fn holds(&self) -> bool {
        let is_asking = |condition: &Condition| condition.required || !condition.parts.is_empty();
        self.broken == 0 && !self.conditions.values().any(is_asking)
    }

    /// Checks whether some schema must be broken and no member breaks it.
    pub(super) fn is_unbreakable(&self) -> bool {
        !(0..self.broken).all(|i| self.conditions.values().any(|condition| condition.is_breaking(i)))
    }

    /// Checks whether no value of a member satisfies the alternative.
    pub(super) fn excludes(&self, at: usize) -> bool {
        let breaks = self.conditions.get(&at).map_or(&[][..], |condition| &condition.breaks);
        self.conditions.len() == 1 && breaks.iter().any(|breaks| breaks.by.is_empty())
    }

    /// Returns the remaining conditions once a member is absent, or has a value that satisfies these schemas. Returns
    /// `None` if the alternative cannot hold.
    pub(super) fn decided(&self, at: usize, value: Option<&[Signed]>) -> Option<Self> {
        let mut left = self.clone();
        let Some(condition) = left.conditions.remove(&at) else { return Some(left) };
        let holds = |part: &Signed| value.is_some_and(|value| value.contains(part));
        let is_met = if value.is_none() { !condition.required } else { condition.parts.iter().all(holds) };
        let is_broken = |breaks: &Breaks| match value {
            None => breaks.absent,
            Some(_) => breaks.by.iter().any(|by| by.as_ref().is_none_or(holds)),
        };
        let is_broken = |i: usize| condition.breaks.get(i).is_some_and(is_broken);
        for condition in left.conditions.values_mut() {
            keep_places(&mut condition.breaks, |i| !is_broken(i));
        }
        left.broken = (0..self.broken).filter(|&i| !is_broken(i)).count();
        is_met.then_some(left)
    }
}

/// An alternative that can still hold. One of those of each choice must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OpenAlternative {
    choice: u32,
    alternative: u32,
    /// The broken schemas, as bits.
    broken: u128,
}

/// A way to write one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    /// The schemas that its value must satisfy in addition to those of the member.
    pub(super) more: Vec<Signed>,
    /// The alternatives that are open after the member.
    pub(super) taken: Vec<OpenAlternative>,
}

impl<'s> Emitter<'s> {
    /// Returns the cases of an object with choices kept, if there are fewer of them and their states are certainly not
    /// too many.
    pub(in super::super) fn fewer_objects(&mut self, members: &[Signed], count: usize) -> Option<Vec<Case>> {
        if self.algebra.context.options.key_order == KeyOrder::Any {
            return None;
        }
        let cases = self.algebra.fewer_cases(members, count)?;
        let limit = self.algebra.context.options.limits.states;
        cases.iter().all(|case| self.most_states(case) <= limit).then_some(cases)
    }

    /// Returns a simple upper bound on the number of states of a case.
    fn most_states(&mut self, case: &Case) -> usize {
        let object = self.algebra.object_case(case);
        let mut window = Window::default();
        for &id in &object.positive {
            let keywords = self.algebra.keywords(id);
            window = window.and(keywords.property_count);
            if !keywords.dependent_required.is_empty() {
                return usize::MAX;
            }
        }
        if !object.negative.is_empty() || !object.denied.is_empty() {
            return usize::MAX;
        }
        let names = self.names(&object, &Demands::default());
        let places: FxHashMap<&str, usize> =
            names.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
        let mut widths = vec![2usize.saturating_mul(window.cap() as usize + 1); names.len()];
        for kept in &object.choices {
            let (mut first, mut last, mut ways) = (names.len(), 0, 1usize);
            for locals in &kept.alternatives {
                let negative = locals.iter().filter(|local| local.negative).count();
                // The alternative is given up, or a subset of its schemas is broken.
                let bits = 1usize.checked_shl(negative as u32).unwrap_or(usize::MAX);
                ways = ways.saturating_mul(bits.saturating_add(1));
                for local in locals {
                    let keywords = self.algebra.keywords(local.id);
                    for name in keywords.properties.keys().chain(keywords.required.iter().copied()) {
                        let place = places.get(name).copied().unwrap_or(0);
                        (first, last) = (first.min(place), last.max(place));
                    }
                }
            }
            for width in widths.iter_mut().take(last + 1).skip(first) {
                *width = width.saturating_mul(ways);
            }
        }
        widths.into_iter().fold(0, usize::saturating_add)
    }

    /// Returns the choices of an object, or `None` after an error.
    pub(super) fn key_choices(&mut self, object: &ObjectCase<'s>, plan: &Plan<'s>) -> Option<Vec<KeyChoice>> {
        let members = &plan.members;
        let places: FxHashMap<&str, usize> =
            members.iter().enumerate().map(|(at, member)| (member.name, at)).collect();
        let mut choices = Vec::with_capacity(object.choices.len());
        for choice in &object.choices {
            let mut alternatives = Vec::with_capacity(choice.alternatives.len());
            for locals in &choice.alternatives {
                alternatives.push(self.alternative(locals, members, &places));
            }
            if alternatives.iter().any(|one| one.broken > MAX_BROKEN_SCHEMAS) {
                let message = format!("more than {MAX_BROKEN_SCHEMAS} schemas of one object are negated");
                self.algebra.context.halt(plan.path, "", message, "negate fewer schemas of this object");
                return None;
            }
            let first = alternatives.iter().flat_map(|one| one.conditions.keys()).min();
            // An alternative without conditions always holds.
            if let Some(&first) = first
                && !alternatives.iter().any(|one| one.conditions.is_empty() && one.broken == 0)
            {
                choices.push(KeyChoice { first, alternatives });
            }
        }
        Some(choices)
    }

    fn alternative(
        &mut self,
        locals: &[Signed],
        members: &[Member<'s>],
        places: &FxHashMap<&str, usize>,
    ) -> Alternative {
        let denied: Vec<Signed> = locals.iter().copied().filter(|local| local.negative).collect();
        let broken = denied.len();
        let mut alternative = Alternative { conditions: BTreeMap::default(), broken };
        for local in locals {
            let keywords = self.algebra.keywords(local.id);
            for name in keywords.properties.keys().chain(keywords.required.iter().copied()) {
                let Some(&at) = places.get(name) else { continue };
                let condition = alternative.conditions.entry(at).or_default();
                if !local.negative {
                    condition.required |= keywords.required.contains(&name);
                    let part = keywords.properties.get(name).map(Signed::plus);
                    condition.parts.extend(part.filter(|part| !condition.parts.contains(part)));
                } else if condition.breaks.is_empty() {
                    for denied in &denied {
                        let breaks = self.breaks_of(denied.id, &members[at]);
                        condition.breaks.push(breaks);
                    }
                }
            }
        }
        alternative
    }

    /// Returns the alternatives that are open after leaving out a member, or `None` if a choice cannot hold anymore.
    pub(super) fn open_without(
        plan: &Plan<'s>,
        place: usize,
        taken: &[OpenAlternative],
    ) -> Option<Vec<OpenAlternative>> {
        let leave_out = |taken: &OpenAlternative| {
            let alternative = alternative(plan, taken);
            let mut broken = taken.broken;
            if let Some(condition) = alternative.conditions.get(&place) {
                if condition.required {
                    return None;
                }
                broken |= by_absence(&condition.breaks);
            }
            (alternative.due(place) & !broken == 0).then_some(OpenAlternative { broken, ..*taken })
        };
        let mut open: Vec<OpenAlternative> = Vec::with_capacity(taken.len());
        for choice in at_place(plan, place, taken) {
            let left: Vec<OpenAlternative> = choice.iter().filter_map(leave_out).collect();
            if left.is_empty() {
                return None;
            }
            // A choice with a fulfilled alternative holds from here on.
            if !left.iter().any(|one| is_over(plan, place, one)) {
                open.extend(left);
            }
        }
        Some(open)
    }

    /// Returns the ways to write a member, given the open choices.
    pub(super) fn ways_with(
        &mut self,
        plan: &Plan<'s>,
        place: usize,
        taken: &[OpenAlternative],
        parts: &[Signed],
    ) -> Vec<Way> {
        let mut ways = vec![Way { more: Vec::new(), taken: Vec::new() }];
        for choice in at_place(plan, place, taken) {
            let mut next: Vec<Way> = Vec::new();
            let mut known: FxHashSet<Way> = FxHashSet::default();
            for way in &ways {
                next.extend(self.ways_of_choice(plan, place, &choice, parts, way));
                if !self.has_few_ways(plan, next.len()) {
                    return Vec::new();
                }
            }
            next.retain(|way| known.insert(way.clone()));
            ways = next;
        }
        ways
    }

    /// Returns the ways to write a member for one more choice, each with the alternatives of the choice that can still
    /// hold.
    ///
    /// Where negation is cheap, the values are split into those that meet a condition and those that do not. Elsewhere
    /// an alternative either continues alone or is given up. Then no schema is negated, and some texts have several
    /// readings.
    fn ways_of_choice(
        &mut self,
        plan: &Plan<'s>,
        place: usize,
        choice: &[OpenAlternative],
        parts: &[Signed],
        way: &Way,
    ) -> Vec<Way> {
        let is_only = choice.len() == 1;
        let mut done: Vec<Way> = Vec::new();
        let mut open: Vec<(Vec<Signed>, Vec<OpenAlternative>)> = vec![(way.more.clone(), Vec::new())];
        // An alternative that requires only the key comes first: if it holds, nothing else matters.
        let asks = |one: &OpenAlternative| {
            let condition = alternative(plan, one).conditions.get(&place);
            condition.is_none_or(|condition| !condition.parts.is_empty() || !condition.breaks.is_empty())
        };
        let mut choice = choice.to_vec();
        choice.sort_by_key(asks);
        for one in &choice {
            let alternative = alternative(plan, one);
            let due = alternative.due(place);
            let Some(condition) = alternative.conditions.get(&place) else {
                if due & !one.broken == 0 {
                    for (_, alive) in &mut open {
                        alive.push(*one);
                    }
                }
                continue;
            };
            let is_split = !is_only && self.is_cheap(condition);
            let mut next: Vec<(Vec<Signed>, Vec<OpenAlternative>)> = Vec::new();
            for (more, alive) in open {
                let mut met = more.clone();
                met.extend(condition.parts.iter().filter(|part| !more.contains(part)));
                let found = if met.len() == more.len() || self.is_possible(parts, &met) {
                    let by = condition.breaks.iter().map(|breaks| &*breaks.by);
                    let asked = (one.broken, if is_split { 0 } else { due });
                    self.breaking_ways(&[parts, &met].concat(), by, asked, plan.path)
                } else {
                    Vec::new()
                };
                for (breaking, broken) in found {
                    let new = breaking.into_iter().filter(|part| !met.contains(part));
                    let all: Vec<Signed> = met.iter().copied().chain(new).collect();
                    let one = OpenAlternative { broken, ..*one };
                    if due & !broken != 0 {
                        next.push((all, alive.clone()));
                    } else if is_over(plan, place, &one) {
                        done.push(Way { more: all, taken: way.taken.clone() });
                    } else if is_split || is_only {
                        next.push((all, [&*alive, &[one]].concat()));
                    } else {
                        done.push(Way { more: all, taken: [&*way.taken, &[one]].concat() });
                    }
                }
                // The values that do not meet the condition.
                if is_split {
                    let mut met = more;
                    for part in &condition.parts {
                        if !met.contains(part) {
                            let failed = [&*met, &[part.flipped()]].concat();
                            if self.is_possible(parts, &failed) {
                                next.push((failed, alive.clone()));
                            }
                            met.push(*part);
                        }
                    }
                } else if !is_only {
                    next.push((more, alive));
                }
                if !self.has_few_ways(plan, next.len() + done.len()) {
                    return Vec::new();
                }
            }
            open = next;
        }
        let open = open.into_iter().filter(|(_, alive)| !alive.is_empty());
        done.extend(open.map(|(more, alive)| Way { more, taken: [&*way.taken, &alive].concat() }));
        done
    }

    /// Checks whether the schemas of a condition are cheap to negate: they list scalars, or only restrict types.
    fn is_cheap(&mut self, condition: &Condition) -> bool {
        let by = condition.breaks.iter().flat_map(|breaks| breaks.by.iter().flatten());
        condition.parts.iter().chain(by).all(|part| {
            let keywords = self.algebra.keywords(part.id);
            let is_scalar = |value: &Value<'_>| !matches!(value, Value::Array(_) | Value::Object(_));
            keywords.is_plain()
                && match keywords.listed() {
                    Some(values) => values.iter().all(is_scalar),
                    None => keywords.asserted.is_empty(),
                }
        })
    }

    fn has_few_ways(&mut self, plan: &Plan<'s>, count: usize) -> bool {
        if count > MAX_MEMBER_WAYS {
            let message =
                format!("the conditions of this object split one key into more than {MAX_MEMBER_WAYS} ways");
            let help = "write the keys of a condition next to one another in `properties`";
            self.algebra.context.halt(plan.path, "", message, help);
        }
        !self.is_halted()
    }
}

fn alternative<'p>(plan: &'p Plan<'_>, taken: &OpenAlternative) -> &'p Alternative {
    &plan.choices[taken.choice as usize].alternatives[taken.alternative as usize]
}

fn is_over(plan: &Plan<'_>, place: usize, taken: &OpenAlternative) -> bool {
    alternative(plan, taken).is_over(place, taken.broken)
}

/// Returns the choices that matter at a place: those that are open, and those that begin there. Each is given as the
/// alternatives that can still hold.
fn at_place(plan: &Plan<'_>, place: usize, taken: &[OpenAlternative]) -> Vec<Vec<OpenAlternative>> {
    let open = taken.chunk_by(|a, b| a.choice == b.choice).map(<[OpenAlternative]>::to_vec);
    let begin = |(choice, of): (usize, &KeyChoice)| {
        let take = |at: usize| OpenAlternative { choice: choice as u32, alternative: at as u32, broken: 0 };
        (0..of.alternatives.len()).map(take).collect()
    };
    let beginning = plan.choices.iter().enumerate().filter(|(_, choice)| choice.first == place);
    open.chain(beginning.map(begin)).collect()
}
