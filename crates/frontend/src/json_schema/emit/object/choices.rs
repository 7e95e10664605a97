//! Choices between conditions on single keys, in the schema's order.
//!
//! ```text
//! {"if": {"properties": {"kind": {"const": "card"}}, "required": ["kind"]}, "then": {"required": ["number"]}}
//!
//! alternative 0     kind: present, {+const};  number: present
//! alternative 1     kind: absent, or {−const}
//! ```
//!
//! Of each choice one alternative is taken in front of the first key that it is about, and it is part of the state until nothing of it is left. So choices
//! about different keys multiply only where they are open at the same place: twenty of them about two neighbours each make twice as many states as there are members.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::super::cases::{Case, ObjectCase, Signed};
use super::super::super::options::KeyOrder;
use super::super::super::schemas::Window;
use super::super::Emitter;
use super::counted::{Breaks, MAX_BROKEN_SCHEMAS, MAX_MEMBER_WAYS};
use super::demands::Demands;
use super::{Member, Plan};

/// One of some alternatives holds.
#[derive(Clone, Debug)]
pub(super) struct KeyChoice {
    /// The place of the first member that matters.
    first: usize,
    alternatives: Vec<Alternative>,
}

/// Conditions on some members.
#[derive(Clone, Debug, Default)]
struct Alternative {
    conditions: FxHashMap<usize, Condition>,
    /// How many schemas must be broken.
    broken: usize,
}

/// A condition on one member.
#[derive(Clone, Debug, Default)]
struct Condition {
    required: bool,
    /// What its value must satisfy.
    parts: Vec<Signed>,
    /// How it breaks each schema that must be broken.
    breaks: Vec<Breaks>,
}

impl Condition {
    fn is_breaking(&self, i: usize) -> bool {
        self.breaks.get(i).is_some_and(|breaks| breaks.absent || !breaks.by.is_empty())
    }
}

impl Alternative {
    /// Whether nothing is left of it behind a member.
    fn is_over(&self, place: usize, broken: u128) -> bool {
        let is_left = |(at, condition): (&usize, &Condition)| {
            *at > place && (condition.required || !condition.parts.is_empty())
        };
        broken.count_ones() as usize == self.broken && !self.conditions.iter().any(is_left)
    }

    /// The schemas that no member behind a place breaks, as bits.
    fn due(&self, place: usize) -> u128 {
        let is_breakable =
            |i: usize| self.conditions.iter().any(|(at, condition)| *at > place && condition.is_breaking(i));
        (0..self.broken).filter(|&i| !is_breakable(i)).fold(0, |bits, i| bits | 1 << i)
    }
}

/// An alternative that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Taken {
    choice: u32,
    alternative: u32,
    /// The schemas that are broken, as bits.
    broken: u128,
}

/// A way to write one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    /// What its value must satisfy beside its own schemas.
    pub(super) more: Vec<Signed>,
    /// What is open behind it.
    pub(super) taken: Vec<Taken>,
}

impl<'s> Emitter<'s> {
    /// The cases of an object with choices kept, if they are fewer and it is certain that their states are not too many.
    pub(in super::super) fn fewer_objects(&mut self, members: &[Signed], count: usize) -> Option<Vec<Case>> {
        if self.algebra.context.options.key_order == KeyOrder::Any {
            return None;
        }
        let cases = self.algebra.fewer_cases(members, count)?;
        let limit = self.algebra.context.options.limits.states;
        cases.iter().all(|case| self.most_states(case) <= limit).then_some(cases)
    }

    /// How many states a case makes at most, as far as that is easily told.
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
            let (mut first, mut last, mut ways) = (names.len(), 0, 0usize);
            for locals in &kept.alternatives {
                let negative = locals.iter().filter(|local| local.negative).count();
                ways = ways.saturating_add(1usize.checked_shl(negative as u32).unwrap_or(usize::MAX));
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

    /// The choices of an object; `None` after an error.
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
        let mut alternative = Alternative { conditions: FxHashMap::default(), broken };
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

    /// What may be open behind a member that is left out.
    pub(super) fn open_without(&mut self, plan: &Plan<'s>, place: usize, taken: &[Taken]) -> Vec<Vec<Taken>> {
        let leave_out = |taken: &Taken| {
            let alternative = &plan.choices[taken.choice as usize].alternatives[taken.alternative as usize];
            let mut broken = taken.broken;
            if let Some(condition) = alternative.conditions.get(&place) {
                if condition.required {
                    return None;
                }
                for (i, breaks) in condition.breaks.iter().enumerate() {
                    broken |= u128::from(breaks.absent) << i;
                }
            }
            (alternative.due(place) & !broken == 0).then_some(Taken { broken, ..*taken })
        };
        let mut all: Vec<Vec<Taken>> = vec![Vec::new()];
        for options in options(plan, place, taken) {
            let mut left: Vec<Taken> = options.iter().filter_map(leave_out).collect();
            if left.iter().any(|one| is_over(plan, place, one)) {
                // It holds, whatever comes.
                continue;
            }
            left.dedup();
            let with =
                |open: &Vec<Taken>| left.iter().map(|one| [&**open, &[*one]].concat()).collect::<Vec<_>>();
            all = all.iter().flat_map(with).collect();
            if !self.has_few_ways(plan, all.len()) {
                return Vec::new();
            }
        }
        all
    }

    /// The ways to write a member beside the choices that are open.
    pub(super) fn ways_with(
        &mut self,
        plan: &Plan<'s>,
        place: usize,
        taken: &[Taken],
        parts: &[Signed],
    ) -> Vec<Way> {
        let mut ways = vec![Way { more: Vec::new(), taken: Vec::new() }];
        for options in options(plan, place, taken) {
            let mut next: Vec<Way> = Vec::new();
            let mut known: FxHashSet<Way> = FxHashSet::default();
            for way in &ways {
                let first = next.len();
                for option in &options {
                    let found = self.taken_ways(plan, place, option, parts, way);
                    // If an alternative asks for nothing more, the others add nothing.
                    let is_free = found.iter().any(|one| one.more == way.more && one.taken == way.taken);
                    if is_free {
                        next.truncate(first);
                    }
                    next.extend(found);
                    if is_free {
                        break;
                    }
                }
            }
            next.retain(|way| known.insert(way.clone()));
            ways = next;
            if !self.has_few_ways(plan, ways.len()) {
                return Vec::new();
            }
        }
        ways
    }

    /// The ways to write a member if an alternative is taken.
    fn taken_ways(
        &mut self,
        plan: &Plan<'s>,
        place: usize,
        taken: &Taken,
        parts: &[Signed],
        way: &Way,
    ) -> Vec<Way> {
        let alternative = &plan.choices[taken.choice as usize].alternatives[taken.alternative as usize];
        let Some(condition) = alternative.conditions.get(&place) else {
            let is_possible = alternative.due(place) & !taken.broken == 0;
            let mut open = way.taken.clone();
            open.push(*taken);
            return if is_possible { vec![Way { more: way.more.clone(), taken: open }] } else { Vec::new() };
        };
        let mut more = way.more.clone();
        more.extend(condition.parts.iter().filter(|part| !way.more.contains(part)));
        if more.len() > way.more.len() && !self.is_possible(parts, &more) {
            return Vec::new();
        }
        let broken = (taken.broken, alternative.due(place));
        let by = condition.breaks.iter().map(|breaks| &*breaks.by);
        let all = [parts, &*more].concat();
        let found = self.breaking_ways(&all, by, broken, plan.path);
        let mut ways = Vec::with_capacity(found.len());
        for (breaking, broken) in found {
            if broken & alternative.due(place) != alternative.due(place) {
                continue;
            }
            let one = Taken { broken, ..*taken };
            let mut open = way.taken.clone();
            if !is_over(plan, place, &one) {
                open.push(one);
            }
            let new = breaking.into_iter().filter(|part| !more.contains(part));
            ways.push(Way { more: more.iter().copied().chain(new).collect(), taken: open });
        }
        ways
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

fn is_over(plan: &Plan<'_>, place: usize, taken: &Taken) -> bool {
    let choice = &plan.choices[taken.choice as usize];
    choice.alternatives[taken.alternative as usize].is_over(place, taken.broken)
}

/// The alternatives that may be taken at a place, for each choice that matters there: all of one that begins, and the one that was taken of another.
fn options(plan: &Plan<'_>, place: usize, taken: &[Taken]) -> Vec<Vec<Taken>> {
    let begin = |(choice, _): (usize, &KeyChoice)| {
        let count = plan.choices[choice].alternatives.len();
        let take = |at: usize| Taken { choice: choice as u32, alternative: at as u32, broken: 0 };
        (0..count).map(take).collect()
    };
    let beginning = plan.choices.iter().enumerate().filter(|(_, choice)| choice.first == place);
    taken.iter().map(|one| vec![*one]).chain(beginning.map(begin)).collect()
}
