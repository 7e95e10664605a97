//! Splits an object in any order into simpler alternatives, distinguished by the value of one member.
//!
//! ```text
//! {"dependentSchemas": {"radius": {"properties": {"kind": {"const": "circle"}}}, "side": {"properties": {"kind": {"const": "square"}}}}}
//!
//! "kind" is "circle"            no "side"
//! "kind" is "square"            no "radius"
//! "kind" is something else      neither
//! "kind" is absent              –
//! ```
//!
//! In the schema's order such conditions are part of the state only from the first of their keys to the last
//! ([`super::choices`]). In any order they would be part of it from the first member to the end, and multiply. Each
//! alternative has conditions on single members only, or fewer schemas to break.

use super::super::super::cases::Signed;
use super::super::Emitter;
use super::breaks::{Breaks, by_absence};
use super::choices::{Alternative, Condition, KeyChoice};
use super::unordered::Tracks;
use super::{Member, Plan};

/// The number of members in the state plus schemas to be broken, above which the object is split.
const MAX_UNSPLIT: usize = 8;

/// The maximum number of parts into which an object is split.
const MAX_PARTS: usize = 256;

/// The maximum number of kinds of values of one member.
const MAX_KINDS: usize = 64;

/// The role of a member in one part.
enum Kind {
    Absent,
    /// Its value satisfies some more schemas.
    Present {
        more: Vec<Signed>,
        is_required: bool,
    },
}

impl<'s> Emitter<'s> {
    /// Splits an object with many schemas that must be broken into several with fewer. Returns `None` if that is no
    /// improvement.
    pub(super) fn split_by_broken(&mut self, plan: &Plan<'s>) -> Option<Vec<Plan<'s>>> {
        let mut done: Vec<Plan<'s>> = Vec::new();
        let mut work = vec![plan.clone()];
        while let Some(plan) = work.pop() {
            let states = Tracks::of(&plan).map_or(usize::MAX, |tracks| tracks.count());
            let broken_by = |at: usize| {
                let row = plan.breaks[at].iter();
                row.filter(|breaks| breaks.absent || !breaks.by.is_empty()).count()
            };
            let pivot = (0..plan.members.len()).rev().max_by_key(|&at| broken_by(at));
            let pivot = pivot.filter(|&at| broken_by(at) > 1);
            let Some(pivot) = pivot.filter(|_| states.saturating_add(plan.broken) > MAX_UNSPLIT) else {
                done.push(plan);
                continue;
            };
            let member = &plan.members[pivot];
            let by = plan.breaks[pivot].iter().map(|breaks| &*breaks.by);
            let mut absent = (!member.required).then(|| by_absence(&plan.breaks[pivot]));
            let mut kinds: Vec<(Kind, u128)> = Vec::new();
            if !self.is_never(member.value) {
                for (more, broken) in self.breaking_ways(&member.parts, by, (0, 0), plan.path) {
                    // If a value breaks the same schemas as the absence of the member, both share one part.
                    let is_required = absent.take_if(|absent| *absent == broken).is_none();
                    kinds.push((Kind::Present { more, is_required }, broken));
                }
            }
            kinds.extend(absent.map(|broken| (Kind::Absent, broken)));
            for (kind, broken) in kinds {
                let mut part = plan.clone();
                self.restrict_to_kind(&mut part.members[pivot], kind);
                part.breaks[pivot].iter_mut().for_each(|breaks| *breaks = Breaks::default());
                let is_kept: Vec<bool> = (0..plan.broken).map(|i| broken >> i & 1 == 0).collect();
                part.keep(&is_kept);
                if self.is_possible_part(&mut part) {
                    work.push(part);
                }
            }
            if self.is_halted() || done.len() + work.len() > MAX_PARTS {
                return None;
            }
        }
        (done.len() != 1 || done[0].broken < plan.broken).then_some(done)
    }

    /// Splits an object with choices into several without. Returns `None` if there are too many.
    pub(super) fn split_by_choices(&mut self, plan: &Plan<'s>) -> Option<Vec<Plan<'s>>> {
        let mut done: Vec<Plan<'s>> = Vec::new();
        let mut work = vec![plan.clone()];
        while let Some(mut plan) = work.pop() {
            if !self.decide(&mut plan) || !self.is_possible_part(&mut plan) {
                continue;
            }
            // The member that most choices concern; the first of several.
            let count = |at: usize| plan.choices.iter().filter(|choice| choice.is_about(at)).count();
            let pivot = (0..plan.members.len()).rev().max_by_key(|&at| count(at));
            let Some(pivot) = pivot.filter(|&at| count(at) > 0) else {
                done.push(plan);
                continue;
            };
            for kind in self.kinds_of_values(&plan, pivot)? {
                let value = match &kind {
                    Kind::Absent => None,
                    Kind::Present { more, .. } => Some(&**more),
                };
                let mut part = plan.clone();
                for KeyChoice { alternatives, .. } in &mut part.choices {
                    *alternatives = alternatives.iter().filter_map(|one| one.decided(pivot, value)).collect();
                }
                self.restrict_to_kind(&mut part.members[pivot], kind);
                work.push(part);
            }
            if self.is_halted() || done.len() + work.len() > MAX_PARTS {
                return None;
            }
        }
        Some(done)
    }

    /// Restricts a member to one kind of values.
    fn restrict_to_kind(&mut self, member: &mut Member<'s>, kind: Kind) {
        let Kind::Present { mut more, is_required } = kind else {
            member.value = self.algebra.grammar.never();
            return;
        };
        member.required |= is_required;
        if !more.is_empty() {
            member.parts.append(&mut more);
            member.value = self.part_with(&member.parts, &[]);
        }
    }

    /// Checks whether an object may be possible, and applies the consequences of its conditions.
    fn is_possible_part(&mut self, part: &mut Plan<'s>) -> bool {
        part.unbreakable(|_| true) == 0 && self.simplify_broken(part) && self.close_needs(part)
    }

    /// Returns the values of a member, distinguished by the conditions in the choices, and its absence. Returns `None`
    /// if there are too many.
    fn kinds_of_values(&mut self, plan: &Plan<'s>, at: usize) -> Option<Vec<Kind>> {
        let member = &plan.members[at];
        let mut kinds: Vec<Kind> = Vec::new();
        if !member.required {
            kinds.push(Kind::Absent);
        }
        if self.is_never(member.value) {
            return Some(kinds);
        }
        let mut asked: Vec<Signed> = Vec::new();
        for alternative in plan.choices.iter().flat_map(|choice| &choice.alternatives) {
            let Some(condition) = alternative.conditions.get(&at) else { continue };
            for part in condition.asked() {
                if !asked.contains(&part) && !asked.contains(&part.flipped()) {
                    asked.push(part);
                }
            }
        }
        let mut values: Vec<Vec<Signed>> = vec![Vec::new()];
        for part in asked {
            let mut next = Vec::with_capacity(values.len() + 1);
            for value in values {
                for part in [part, part.flipped()] {
                    let value = [&*value, &[part]].concat();
                    if self.is_possible(&member.parts, &value) {
                        next.push(value);
                    }
                }
            }
            values = next;
            if values.len() > MAX_KINDS {
                return None;
            }
        }
        kinds.extend(values.into_iter().map(|more| Kind::Present { more, is_required: true }));
        Some(kinds)
    }

    /// Applies the choices with one alternative left, and removes those that always hold. Returns false if a choice
    /// cannot hold.
    fn decide(&mut self, plan: &mut Plan<'s>) -> bool {
        for mut choice in core::mem::take(&mut plan.choices) {
            let all = &mut choice.alternatives;
            all.retain(|one| !one.is_unbreakable());
            if let [only] = &**all {
                if !self.apply(plan, only) {
                    return false;
                }
                continue;
            }
            let holds = |left: Option<Alternative>| left.is_some_and(|left| left.holds());
            if all.is_empty() {
                return false;
            }
            if all.iter().any(Alternative::holds) {
                continue;
            }
            // A choice about a single member may only decide whether that member is present.
            let Some(at) = choice.only_member() else {
                plan.choices.push(choice);
                continue;
            };
            let may_be_absent = choice.alternatives.iter().any(|one| holds(one.decided(at, None)));
            let may_be_any = choice.alternatives.iter().any(|one| holds(one.decided(at, Some(&[]))));
            let member = &mut plan.members[at];
            match (may_be_absent, may_be_any) {
                (true, true) => {}
                (false, true) => member.required = true,
                (true, false) if choice.alternatives.iter().all(|one| one.excludes(at)) => {
                    member.value = self.algebra.grammar.never();
                }
                _ => plan.choices.push(choice),
            }
        }
        true
    }

    /// Adds the conditions of an alternative to those of the object.
    fn apply(&mut self, plan: &mut Plan<'s>, alternative: &Alternative) -> bool {
        for (at, member) in plan.members.iter_mut().enumerate() {
            let condition = alternative.conditions.get(&at);
            if let Some(Condition { required, parts, .. }) = condition {
                member.required |= required;
                if !parts.is_empty() && !self.is_never(member.value) {
                    member.parts.extend(parts);
                    member.value = self.part_with(&member.parts, &[]);
                }
            }
            let breaks = |i: usize| condition.and_then(|condition| condition.breaks.get(i)).cloned();
            plan.breaks[at].extend((0..alternative.broken).map(|i| breaks(i).unwrap_or_default()));
        }
        for other in &mut plan.others {
            other.breaks.extend((0..alternative.broken).map(|_| Vec::new()));
        }
        plan.broken += alternative.broken;
        plan.members.iter().all(|member| !member.required || !self.is_never(member.value))
    }
}
