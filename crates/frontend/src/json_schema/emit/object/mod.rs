//! Objects: members in the schema's order, each optional one present or not, then other keys.
//!
//! ```text
//! {"properties": {"a": …, "b": …}, "required": ["b"]}
//!
//! object = "{" from_a
//! from_a = "a" : … "," from_b        a is present: b must follow
//!        | from_b                    a is left out
//! from_b = "b" : … others            the rest may be empty
//! others = ("," key : value)* "}"
//! ```
//!
//! `from_i` means "a member must follow, the i-th or a later one". It is a rule if it is used twice, so the size is
//! linear in the number of properties. A run of required members is one flat sequence.
//!
//! Keys that the schema names have one spelling. Other keys may be spelled in any way, but their decoded text is never
//! one of the names, so that no escape sequence evades the schema of a property. [`keys`] sorts the other keys by the
//! schemas that apply to them. Objects that need more than this shape – counts, dependencies, negated schemas, any
//! order – are written state by state in [`counted`] and [`unordered`].

mod breaks;
mod choices;
mod counted;
mod demands;
mod keys;
mod split;
mod unordered;

use maskwright_grammar::ExprId;
use rustc_hash::FxHashMap;

use super::super::cases::{Case, Languages, NodeId, ObjectCase, Signed};
use super::super::options::KeyOrder;
use super::super::path::PathId;
use super::super::schemas::{SchemaId, Window};
use super::Emitter;
use super::layout::Layout;
use breaks::{Breaks, keep_places};
use choices::KeyChoice;
use demands::Demands;
use keys::OtherKeys;

/// The number of open pairs of members, one needing the other, above which the engine remembers them.
const MAX_OPEN_NEEDS: i32 = 2;

/// The maximum number of pairs that the engine remembers, and of members of an object with such pairs.
const MAX_NEEDS: usize = 4_096;

/// The maximum number of other keys that are counted.
const MAX_COUNTED_KEYS: usize = 64;

/// The maximum number of names that are searched linearly. More are hashed.
const MAX_SEARCHED_NAMES: usize = 64;

/// A key that the schema names.
#[derive(Clone, Debug)]
struct Member<'s> {
    name: &'s str,
    /// The schemas that its value must satisfy.
    parts: Vec<Signed>,
    value: ExprId,
    required: bool,
    /// Whether the engine remembers that it was written.
    is_remembered: bool,
}

/// The parts from which an object is built.
#[derive(Clone)]
struct Plan<'s> {
    window: Window,
    members: Vec<Member<'s>>,
    others: Vec<OtherKeys>,
    /// The number of schemas that must be broken, and how each member breaks each of them.
    broken: usize,
    breaks: Vec<Vec<Breaks>>,
    /// Pairs of members: the first needs the second.
    needs: Vec<(usize, usize)>,
    choices: Vec<KeyChoice>,
    path: PathId,
}

impl Plan<'_> {
    /// Checks whether all conditions concern single members, apart from a minimum count and members that need others.
    fn has_only_needs(&self) -> bool {
        self.broken == 0 && self.choices.is_empty() && self.window.max.is_none()
    }

    /// Checks whether the engine can remember the members that need others.
    fn has_few_needs(&self) -> bool {
        self.needs.len() <= MAX_NEEDS && (self.needs.is_empty() || self.members.len() <= MAX_NEEDS)
    }

    /// Checks whether so many pairs are open at some place that states would multiply. A pair is open from its first
    /// member to its last. Pairs that begin with the same member, or end with the same member, make one state.
    fn has_far_needs(&self) -> bool {
        let count = self.members.len();
        let (mut last, mut first) = (vec![0; count], vec![usize::MAX; count]);
        for &(a, b) in &self.needs {
            let (early, late) = (a.min(b), a.max(b));
            last[early] = last[early].max(late);
            first[late] = first[late].min(early);
        }
        let (mut begun, mut ending) = (vec![0i32; count + 1], vec![0i32; count + 1]);
        for at in 0..count {
            if last[at] > at {
                begun[at] += 1;
                begun[last[at]] -= 1;
            }
            if first[at] < at {
                ending[first[at]] += 1;
                ending[at] -= 1;
            }
        }
        let mut open = (0, 0);
        begun.into_iter().zip(ending).any(|(begun, ending)| {
            open = (open.0 + begun, open.1 + ending);
            open.0.min(open.1) > MAX_OPEN_NEEDS
        })
    }

    /// Checks whether all schemas that must be broken are in the set `broken` of bits.
    fn is_broken(&self, broken: u128) -> bool {
        broken.count_ones() as usize == self.broken
    }

    /// Removes some of the schemas that must be broken.
    fn keep(&mut self, is_kept: &[bool]) {
        for row in &mut self.breaks {
            keep_places(row, |i| is_kept[i]);
        }
        for other in &mut self.others {
            keep_places(&mut other.breaks, |i| is_kept[i]);
        }
        self.broken = is_kept.iter().filter(|kept| **kept).count();
    }

    /// Returns the schemas that are broken neither by another key nor by a member that may still come, as bits.
    fn unbreakable(&self, may_come: impl Fn(usize) -> bool) -> u128 {
        let is_broken_by =
            |at: usize, i: usize| self.breaks[at][i].absent || !self.breaks[at][i].by.is_empty();
        let is_breakable = |i: usize| {
            self.others.iter().any(|other| !other.breaks[i].is_empty())
                || (0..self.members.len()).any(|at| is_broken_by(at, i) && may_come(at))
        };
        (0..self.broken).filter(|&i| !is_breakable(i)).fold(0, |bits, i| bits | 1 << i)
    }
}

impl<'s> Emitter<'s> {
    /// Returns the objects of a case.
    pub(super) fn object(&mut self, case: &Case) -> ExprId {
        let object = self.algebra.object_case(case);
        // Visited even if no key is left to which it could apply, because the visit reports its faults.
        for &id in &object.positive {
            let names = self.algebra.keywords(id).property_names;
            names.map(|names| self.algebra.keywords(names));
        }
        let path = self.algebra.path_of(&case.locals);
        let Some(demands) = self.object_demands(&object) else { return self.algebra.grammar.never() };
        if let [only] = &*demands {
            return self.demanded_object(&object, only, path);
        }
        let ways: Vec<ExprId> =
            demands.iter().map(|demands| self.demanded_object(&object, demands, path)).collect();
        self.algebra.grammar.alt(ways)
    }

    fn demanded_object(&mut self, object: &ObjectCase<'s>, demands: &Demands<'s>, path: PathId) -> ExprId {
        let window = demands.window;
        if window.is_empty() {
            return self.nothing(path, "minProperties", "`minProperties` exceeds `maxProperties`");
        }
        let Some((members, needs)) = self.members(object, demands, path) else {
            return self.algebra.grammar.never();
        };
        let Some(others) = self.other_keys(object, &members, demands) else {
            return self.algebra.grammar.never();
        };
        let breaks = self.member_breaks(object, &demands.broken, &members);
        let broken = demands.broken.len() + object.denied.len();
        let choices = Vec::new();
        let mut plan = Plan { window, members, others, broken, breaks, needs, choices, path };
        if !self.simplify_broken(&mut plan) || !self.close_needs(&mut plan) {
            return self.nothing(path, "", "no object satisfies these keywords together");
        }
        let Some(choices) = self.key_choices(object, &plan) else { return self.algebra.grammar.never() };
        plan.choices = choices;
        let Plan { window, members, others, broken, choices, .. } = &mut plan;
        let required = members.iter().filter(|member| member.required).count();
        if window.max.is_some_and(|max| (max as usize) < required) {
            let why = "more keys are required than `maxProperties` allows";
            return self.nothing(path, "maxProperties", why);
        }
        if window.max == Some(0) && *broken == 0 && choices.is_empty() {
            let Layout { object_start, object_empty_end, .. } = self.layout();
            return self.algebra.grammar.seq([object_start, object_empty_end]);
        }
        if window.min as usize <= required {
            window.min = 0;
        } else {
            // The engine notices when no other key is left. Here the total number of possible keys is counted.
            match self.key_count(members, others) {
                Some(count) if count < window.min as usize => {
                    return self.nothing(
                        path,
                        "minProperties",
                        "fewer keys than `minProperties` are possible",
                    );
                }
                Some(count) if count == window.min as usize => self.require_all(&mut plan),
                _ => {}
            }
        }
        let Plan { window, members, others, .. } = &mut plan;
        if others.is_empty() && window.max.is_some_and(|max| members.len() <= max as usize) {
            window.max = None;
        }
        let window = *window;
        let is_any_order = self.algebra.context.options.key_order == KeyOrder::Any;
        if is_any_order && plan.members.len() + plan.others.len() > 1 {
            return self.unordered_object(&plan);
        }
        let is_plain = plan.needs.is_empty() || plan.has_few_needs() && plan.has_far_needs();
        if is_plain && plan.has_only_needs() && window.min <= 1 {
            let needs = Self::named_needs(&mut plan);
            plan.members.retain(|member| !self.is_never(member.value));
            let other = self.other_members(&plan.others);
            let object = self.plain_object(&plan.members, other, window.min == 1, path);
            return if needs.is_empty() {
                self.with_different_keys(object, &plan.others)
            } else {
                self.algebra.grammar.scope_with_needs(object, [], needs)
            };
        }
        let object = self.counted_object(&plan);
        self.with_different_keys(object, &plan.others)
    }

    /// Applies the consequences of the pairs to the members: a member that a required one needs is required, and a
    /// member that needs an impossible one is impossible. Returns false if a member is both.
    fn close_needs(&mut self, plan: &mut Plan<'s>) -> bool {
        let Plan { members, needs, .. } = plan;
        if needs.is_empty() {
            return true;
        }
        let required = members.iter().map(|member| member.required).collect();
        for (member, required) in members.iter_mut().zip(reached(required, needs.iter().copied())) {
            member.required = required;
        }
        let never = members.iter().map(|member| self.is_never(member.value)).collect();
        let never = reached(never, needs.iter().map(|&(a, b)| (b, a)));
        for (member, _) in members.iter_mut().zip(never).filter(|(_, is_never)| *is_never) {
            member.value = self.algebra.grammar.never();
        }
        needs.retain(|&(a, b)| !members[b].required && !self.is_never(members[a].value));
        members.iter().all(|member| !member.required || !self.is_never(member.value))
    }

    /// Returns which keys need which others, by name. The engine remembers those keys.
    fn named_needs(plan: &mut Plan<'s>) -> Vec<(Box<str>, Box<str>)> {
        let Plan { members, needs, .. } = plan;
        for &(a, b) in &*needs {
            (members[a].is_remembered, members[b].is_remembered) = (true, true);
        }
        needs.iter().map(|&(a, b)| (members[a].name.into(), members[b].name.into())).collect()
    }

    /// Checks whether a member breaks a schema in every object.
    fn always_breaks(&mut self, member: &Member<'s>, breaks: &Breaks) -> bool {
        if !member.required || self.is_never(member.value) {
            return breaks.absent && self.is_never(member.value);
        }
        let unbroken: Vec<Signed> = breaks.by.iter().flatten().map(|part| part.flipped()).collect();
        // With a narrow format, a value may satisfy a schema although it cannot be written as satisfying it.
        let is_plain = !unbroken.iter().any(|part| self.algebra.has_narrow_format(part.id));
        breaks.by.contains(&None)
            || is_plain && !unbroken.is_empty() && !self.is_possible(&member.parts, &unbroken)
    }

    /// Removes schemas that are broken in any case, and turns each schema that only one key can break into a condition
    /// on that key. Returns false if one cannot be broken.
    fn simplify_broken(&mut self, plan: &mut Plan<'s>) -> bool {
        if plan.broken == 0 {
            return true;
        }
        let Plan { members, others, breaks, .. } = plan;
        let mut more: Vec<Vec<Signed>> = vec![Vec::new(); members.len()];
        let mut is_kept = vec![true; plan.broken];
        for (i, kept) in is_kept.iter_mut().enumerate() {
            let mut all = members.iter().zip(&*breaks);
            if all.any(|(member, row)| self.always_breaks(member, &row[i])) {
                *kept = false;
                continue;
            }
            if others.iter().any(|other| !other.breaks[i].is_empty()) {
                continue;
            }
            let is_breaking = |at: &usize| {
                let Breaks { absent, by } = &breaks[*at][i];
                *absent || !by.is_empty() && !self.is_never(members[*at].value)
            };
            let mut breaking = (0..members.len()).filter(is_breaking);
            let (Some(at), None) = (breaking.next(), breaking.next()) else { continue };
            match *breaks[at][i].by {
                [] => members[at].value = self.algebra.grammar.never(),
                [Some(part)] => more[at].push(part),
                ref by if by.contains(&None) => {}
                _ => continue,
            }
            members[at].required |= !breaks[at][i].absent;
            *kept = false;
        }
        for (member, mut more) in members.iter_mut().zip(more) {
            if !more.is_empty() && !self.is_never(member.value) {
                member.parts.append(&mut more);
                member.value = self.part_with(&member.parts, &[]);
            }
        }
        plan.keep(&is_kept);
        plan.members.iter().all(|member| !member.required || !self.is_never(member.value))
    }

    /// Returns the maximum number of keys of an object, or `None` if it is unknown or large.
    fn key_count(&self, members: &[Member<'s>], others: &[OtherKeys]) -> Option<usize> {
        let mut count = members.iter().filter(|member| !self.is_never(member.value)).count();
        for other in others {
            count += Languages::texts(&self.algebra.grammar, other.key, MAX_COUNTED_KEYS)?.len();
        }
        Some(count)
    }

    /// Requires every member, because the minimum number of keys equals the number of possible keys.
    fn require_all(&mut self, plan: &mut Plan<'s>) {
        for member in &mut plan.members {
            member.required |= !self.is_never(member.value);
        }
        if plan.others.is_empty() {
            plan.window.min = 0;
        }
        let Plan { members, needs, .. } = plan;
        needs.retain(|&(a, b)| !members[b].required && !self.is_never(members[a].value));
    }

    /// Wraps an object in a scope in which the other keys do not repeat.
    fn with_different_keys(&mut self, object: ExprId, others: &[OtherKeys]) -> ExprId {
        if others.is_empty() { object } else { self.algebra.grammar.scope(object, []) }
    }

    /// Returns the keys that the schemas name, in order, and which of them need which others. Returns `None` if a
    /// required one is impossible.
    #[expect(clippy::type_complexity, reason = "the pair is taken apart at once")]
    fn members(
        &mut self,
        object: &ObjectCase<'s>,
        demands: &Demands<'s>,
        path: PathId,
    ) -> Option<(Vec<Member<'s>>, Vec<(usize, usize)>)> {
        let names = self.names(object, demands);
        let mut members = Vec::with_capacity(names.len());
        let mut place: FxHashMap<&'s str, usize> = FxHashMap::default();
        let has_needs =
            object.positive.iter().any(|&id| !self.algebra.keywords(id).dependent_required.is_empty());
        let only = match (&*object.positive, &*object.unevaluated, &*object.negative) {
            ([id], [], []) if object.choices.is_empty() && demands.is_plain() && object.denied.is_empty() => {
                Some(*id)
            }
            _ => None,
        };
        for (name, required) in names {
            if self.is_halted() {
                return None;
            }
            let listed = only.and_then(|id| self.listed_property(id, name));
            let parts = match listed {
                Some(_) => Some(Vec::new()),
                None if demands.forbidden.contains(&name) => None,
                None => self.algebra.member_parts(object, name),
            };
            let node = match (listed, &parts) {
                (Some(id), _) => self.algebra.node(id),
                (None, Some(parts)) => self.algebra.node_of(parts),
                (None, None) => NodeId::NEVER,
            };
            let value = self.part(node);
            if self.is_never(value) {
                if required {
                    let message = if parts.is_some() {
                        format!("property `{name}` is required, but no value for it is possible")
                    } else {
                        format!("`{name}` is required, but {} forbids it", self.forbidding(object, name))
                    };
                    if self.algebra.context.error.is_empty() {
                        self.algebra.context.clash(path, "required", &message);
                    }
                    return None;
                }
                if !has_needs && demands.broken.is_empty() && object.choices.is_empty() {
                    continue;
                }
            }
            if has_needs {
                place.insert(name, members.len());
            }
            let parts = parts.unwrap_or_default();
            members.push(Member { name, parts, value, required, is_remembered: false });
        }
        let needs = if has_needs { self.needs(object, &mut members, &place, path)? } else { Vec::new() };
        Some((members, needs))
    }

    /// Returns the keyword that forbids a key, for an error message.
    fn forbidding(&mut self, object: &ObjectCase<'s>, name: &str) -> &'static str {
        for &id in &object.positive {
            let keywords = self.algebra.keywords(id);
            let is_closed = keywords.additional.is_some_and(|id| self.algebra.is_false(id));
            if is_closed && !keywords.properties.contains_key(name) {
                return "`additionalProperties`";
            }
            if keywords.property_names.is_some() {
                return "`propertyNames`";
            }
        }
        "another keyword"
    }

    /// Returns the schema of a key that a single schema lists, if no other keyword applies to the key.
    fn listed_property(&mut self, id: SchemaId, name: &str) -> Option<SchemaId> {
        let keywords = self.algebra.keywords(id);
        let is_simple = keywords.pattern_properties.is_empty() && keywords.property_names.is_none();
        keywords.properties.get(name).filter(|_| is_simple)
    }

    /// Returns the names in the order in which they are written, and whether they are required.
    fn names(&mut self, object: &ObjectCase<'s>, demands: &Demands<'s>) -> Vec<(&'s str, bool)> {
        if let ([id], [], []) = (&*object.positive, &*object.negative, &*object.choices)
            && demands.is_plain()
        {
            return self.names_of_one(*id);
        }
        let mut names: Vec<(&'s str, bool)> = Vec::new();
        let mut place: FxHashMap<&'s str, usize> = FxHashMap::default();
        let mut add = |name: &'s str, required: bool| {
            let at = *place.entry(name).or_insert_with(|| {
                names.push((name, false));
                names.len() - 1
            });
            names[at].1 |= required;
        };
        let all = || object.naming.iter().chain(&object.negative);
        for &id in all() {
            self.algebra.keywords(id).properties.keys().for_each(|name| add(name, false));
        }
        for &id in &object.positive {
            self.algebra.keywords(id).required.iter().for_each(|name| add(name, true));
        }
        demands.required.iter().for_each(|name| add(name, true));
        demands.forbidden.iter().for_each(|name| add(name, false));
        for &id in all() {
            let keywords = self.algebra.keywords(id);
            keywords.required.iter().for_each(|name| add(name, false));
            for (name, needed) in &keywords.dependent_required {
                add(name, false);
                for name in needed {
                    add(name, false);
                }
            }
        }
        names
    }

    /// Like `names`, for a single schema. PERF: a few names are searched instead of hashed.
    fn names_of_one(&mut self, id: SchemaId) -> Vec<(&'s str, bool)> {
        let keywords = self.algebra.keywords(id);
        let listed = keywords.properties.len();
        let mut names: Vec<(&'s str, bool)> = Vec::with_capacity(listed + keywords.required.len());
        names.extend(keywords.properties.keys().map(|name| (name, false)));
        let needed =
            keywords.dependent_required.iter().flat_map(|(name, needed)| [name].into_iter().chain(needed));
        let more = || {
            keywords
                .required
                .iter()
                .map(|name| (*name, true))
                .chain(needed.clone().map(|name| (*name, false)))
        };
        if listed + more().count() <= MAX_SEARCHED_NAMES {
            for (name, required) in more() {
                match names.iter_mut().find(|(one, _)| *one == name) {
                    Some(known) => known.1 |= required,
                    None => names.push((name, required)),
                }
            }
            return names;
        }
        let mut place: FxHashMap<&'s str, usize> =
            names.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
        for (name, required) in more() {
            let at = *place.entry(name).or_insert(names.len());
            if at == names.len() {
                names.push((name, false));
            }
            names[at].1 |= required;
        }
        names
    }

    /// Returns which keys need which others. Consequences of required and impossible keys are applied to the members,
    /// and the pairs concerned are left out.
    fn needs(
        &mut self,
        object: &ObjectCase<'s>,
        members: &mut [Member<'s>],
        place: &FxHashMap<&'s str, usize>,
        path: PathId,
    ) -> Option<Vec<(usize, usize)>> {
        let mut needs: Vec<(usize, usize)> = Vec::new();
        for &id in &object.positive {
            for (name, needed) in &self.algebra.keywords(id).dependent_required {
                let Some(&at) = place.get(name) else { continue };
                needs.extend(needed.iter().filter_map(|name| Some((at, *place.get(name)?))));
            }
        }
        needs.retain(|(a, b)| a != b);
        needs.sort_unstable();
        needs.dedup();
        let never = members.iter().find(|member| self.is_never(member.value)).map(|member| member.value);
        // A key that a required key needs is required, and a key that needs an impossible key is impossible.
        let required = members.iter().map(|member| member.required).collect();
        for (member, required) in members.iter_mut().zip(reached(required, needs.iter().copied())) {
            member.required = required;
        }
        if let Some(never) = never {
            let impossible = members.iter().map(|member| self.is_never(member.value)).collect();
            let needed_by = needs.iter().map(|&(a, b)| (b, a));
            for (member, is_impossible) in members.iter_mut().zip(reached(impossible, needed_by)) {
                if is_impossible {
                    member.value = never;
                }
            }
        }
        if let Some(member) = members.iter().find(|member| member.required && self.is_never(member.value)) {
            let message = format!(
                "property `{}` is required by another one, but no value for it is possible",
                member.name
            );
            self.algebra.context.clash(path, "dependentRequired", &message);
            return None;
        }
        needs.retain(|&(a, b)| !members[b].required && !self.is_never(members[a].value));
        Some(needs)
    }

    /// Returns an object with conditions on single members only.
    fn plain_object(
        &mut self,
        members: &[Member<'s>],
        other: Option<ExprId>,
        at_least_one: bool,
        path: PathId,
    ) -> ExprId {
        let layout = self.layout();
        let Layout { object_start, enter, after: space, comma, colon, object_end: end, .. } = layout;
        let others = match other {
            Some(other) => {
                let next = self.algebra.grammar.seq([comma, other]);
                self.algebra.grammar.star(next)
            }
            None => self.algebra.grammar.empty(),
        };
        // The text that follows a member, in reverse, and the text where a member must follow.
        let mut after = vec![end, others];
        let mut from = match other {
            Some(other) => self.algebra.grammar.seq([other, others, end]),
            None => self.algebra.grammar.never(),
        };
        let mut must_follow = false;
        for (i, member) in members.iter().enumerate().rev() {
            if self.is_halted() {
                break;
            }
            let mut key = self.string_literal(member.name);
            if member.is_remembered {
                key = self.algebra.grammar.distinct(key);
            }
            after.extend([space, member.value, colon, key]);
            let shared = i > 0 && !members[i - 1].required;
            if member.required && !shared && i > 0 {
                // The member before cannot be left out, so there is only one path to this place.
                after.push(comma);
                must_follow = true;
                continue;
            }
            let written = self.algebra.grammar.seq(after.drain(..).rev());
            let choice = if member.required { written } else { self.algebra.grammar.alt([written, from]) };
            must_follow |= member.required;
            if i == 0 {
                from = choice;
                break;
            }
            from = self.defined_rule(member.name, choice, path);
            if must_follow {
                after.extend([from, comma]);
            } else {
                let more = self.algebra.grammar.seq([comma, from]);
                after.push(self.algebra.grammar.alt([more, end]));
            }
        }
        let some = self.algebra.grammar.seq([enter, from]);
        let body = if must_follow || at_least_one {
            some
        } else {
            self.algebra.grammar.alt([some, layout.object_empty_end])
        };
        self.algebra.grammar.seq([object_start, body])
    }

    /// Returns all members whose key the schema does not name.
    fn other_members(&mut self, others: &[OtherKeys]) -> Option<ExprId> {
        let ways: Vec<ExprId> = others.iter().map(|other| self.other_member(other, &[])).collect();
        let expr = self.algebra.grammar.alt(ways);
        (!self.is_never(expr)).then_some(expr)
    }

    fn other_member(&mut self, other: &OtherKeys, more: &[Signed]) -> ExprId {
        let value = self.part_with(&other.parts, more);
        if self.is_never(value) {
            return value;
        }
        let Layout { colon, after, .. } = self.layout();
        let key = self.other_key(other.key);
        self.algebra.grammar.seq([key, colon, value, after])
    }

    /// Returns a key that must be new. If the language has few texts, each is marked as distinct separately, so that
    /// the engine knows which of them are left.
    fn other_key(&mut self, language: ExprId) -> ExprId {
        let mut keys = self.few_strings(language);
        if keys.is_empty() {
            keys.push(self.algebra.grammar.json_string(language));
        }
        let keys: Vec<ExprId> = keys.into_iter().map(|key| self.algebra.grammar.distinct(key)).collect();
        self.algebra.grammar.alt(keys)
    }
}

/// Returns the places that are marked, or reached from a marked place by these steps.
fn reached(mut marked: Vec<bool>, steps: impl Iterator<Item = (usize, usize)> + Clone) -> Vec<bool> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); marked.len()];
    for (from, to) in steps {
        next[from].push(to);
    }
    let mut work: Vec<usize> = (0..marked.len()).filter(|&at| marked[at]).collect();
    while let Some(at) = work.pop() {
        work.extend(next[at].drain(..).filter(|&to| !core::mem::replace(&mut marked[to], true)));
    }
    marked
}
