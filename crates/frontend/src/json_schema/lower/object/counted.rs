//! Objects in the schema's order, state by state.
//!
//! A state says which member comes next, how many were written (as far as that matters), which later members are *owed* because
//! one that was written needs them, which are *banned* because one that was left out is needed by them, and
//! which of the schemas that must be broken are. Most of that is empty most of the time, so there are few states.

use maskwright_grammar::{ExprId, RuleId};
use rustc_hash::FxHashMap;

use super::super::super::json::Value;
use super::super::super::keywords::Window;
use super::super::super::path::PathId;
use super::super::super::types::TypeSet;
use super::super::Lowerer;
use super::super::layout::Layout;
use super::super::node::{NodeId, Signed};
use super::{Demands, Member, Others};

/// What an object is built from.
pub(super) struct Build<'b, 's> {
    pub(super) demands: &'b Demands<'s>,
    pub(super) window: Window,
    /// Pairs of members: the first needs the second.
    pub(super) needs: Vec<(usize, usize)>,
    pub(super) path: PathId,
}

/// Members that come later and are needed, or must not come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Later(Vec<u64>);

impl Later {
    fn contains(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    fn insert(&mut self, place: usize) {
        if self.0.len() <= place / 64 {
            self.0.resize(place / 64 + 1, 0);
        }
        self.0[place / 64] |= 1 << (place % 64);
    }

    /// Forgets a member that is no longer to come.
    fn settle(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word &= !(1 << (place % 64));
            while self.0.last() == Some(&0) {
                self.0.pop();
            }
        }
    }
}

/// How far an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    place: usize,
    count: u32,
    owed: Later,
    banned: Later,
    broken: u64,
    /// Whether something was written.
    begun: bool,
}

/// The states so far.
#[derive(Default)]
struct States {
    rules: FxHashMap<State, RuleId>,
    work: Vec<(State, RuleId)>,
}

impl Build<'_, '_> {
    /// Above this many, the number of members makes no difference.
    pub(super) fn cap(&self) -> u32 {
        self.window.max.unwrap_or(self.window.min).max(self.window.min)
    }

    /// Whether each member is right by itself, but for a least number of them.
    pub(super) fn is_independent(&self) -> bool {
        self.needs.is_empty() && self.demands.broken.is_empty() && self.window.max.is_none()
    }

    /// Whether all schemas that must be broken are.
    pub(super) fn is_broken(&self, broken: u64) -> bool {
        broken.count_ones() as usize == self.demands.broken.len()
    }
}

impl<'s> Lowerer<'s> {
    /// An object whose members are counted, or depend on one another.
    pub(super) fn counted_object(
        &mut self,
        members: &[Member<'s>],
        others: &[Others],
        build: &Build<'_, 's>,
    ) -> ExprId {
        if build.demands.broken.len() > 60 {
            self.halt(build.path, "", "more than 60 schemas of one object are negated".to_owned());
            return self.grammar.never();
        }
        let limit = self.context.options.limits.states;
        let too_many = format!("the members of this object need more than {limit} states");
        // There is a state in front of each member at least.
        if members.len() > limit {
            self.exceed("states", build.path, "", too_many);
            return self.grammar.never();
        }
        let Layout { object_start, .. } = self.layout();
        let breaks = self.member_breaks(members, build);
        let links = Links::of(members.len(), &build.needs);
        let mut states = States::default();
        let start = State::default();
        let first = self.state_rule(&mut states, start, build.path);
        while let Some((state, rule)) = states.work.pop() {
            let body = if state.place < members.len() {
                self.member_state(&mut states, members, &breaks, build, &links, &state)
            } else {
                self.others_state(&mut states, others, build, &state)
            };
            self.grammar.define(rule, body);
            self.state_count += 1;
            if states.rules.len() > limit || self.state_count > limit.saturating_mul(10) {
                self.exceed("states", build.path, "", too_many.clone());
            }
            if self.is_halted() {
                return self.grammar.never();
            }
        }
        self.grammar.seq([object_start, first])
    }

    /// For each member and each schema that must be broken: whether leaving it out breaks it, and what values do.
    pub(super) fn member_breaks(
        &mut self,
        members: &[Member<'s>],
        build: &Build<'_, 's>,
    ) -> Vec<Vec<Breaks>> {
        let mut all = Vec::with_capacity(members.len());
        for member in members {
            let mut row = Vec::with_capacity(build.demands.broken.len());
            for &id in &build.demands.broken {
                let keywords = self.keywords(id);
                let absent = keywords.required.contains(&&*member.name);
                let schemas = self.member_schemas(id, &keywords, &member.name);
                let mut by: Vec<Option<Signed>> =
                    schemas.into_iter().map(|schema| Some(Signed::minus(schema))).collect();
                if let Some(names) = keywords.property_names {
                    let names = self.child(id, names, super::Step::Keyword("propertyNames"));
                    let name = Value::String(member.name.clone());
                    if self.satisfies(&name, &[Signed::minus(names)]) {
                        by.push(None);
                    }
                }
                row.push(Breaks { absent, by });
            }
            all.push(row);
        }
        all
    }

    fn member_state(
        &mut self,
        states: &mut States,
        members: &[Member<'s>],
        breaks: &[Vec<Breaks>],
        build: &Build<'_, 's>,
        links: &Links,
        state: &State,
    ) -> ExprId {
        let (place, member) = (state.place, &members[state.place]);
        let mut next = State { place: place + 1, ..state.clone() };
        next.owed.settle(place);
        next.banned.settle(place);
        let mut ways = Vec::new();
        if !member.required && !state.owed.contains(place) {
            let mut left_out = next.clone();
            links.needed_by[place].iter().for_each(|&at| left_out.banned.insert(at));
            for (i, breaks) in breaks[place].iter().enumerate() {
                left_out.broken |= u64::from(breaks.absent) << i;
            }
            ways.push(self.state_rule(states, left_out, build.path));
        }
        let full = build.window.max.is_some_and(|max| state.count >= max);
        if !state.banned.contains(place) && !full && !self.is_never(member.value) {
            next.count = (state.count + 1).min(build.cap());
            next.begun = true;
            links.needs[place].iter().for_each(|&at| next.owed.insert(at));
            let Layout { enter, comma, colon, after, .. } = self.layout();
            let key = self.string_literal(&member.name);
            let before = if state.begun { comma } else { enter };
            let by = breaks[place].iter().map(|breaks| &*breaks.by);
            for (more, broken) in self.choices(&member.parts, by, state.broken, build.path) {
                let value =
                    if more.is_empty() { member.value } else { self.value_with(&member.parts, &more) };
                if self.is_never(value) {
                    continue;
                }
                let then = self.state_rule(states, State { broken, ..next.clone() }, build.path);
                ways.push(self.grammar.seq([before, key, colon, value, after, then]));
            }
        }
        self.grammar.alt(ways)
    }

    /// After the last member: other keys, and the end.
    fn others_state(
        &mut self,
        states: &mut States,
        others: &[Others],
        build: &Build<'_, 's>,
        state: &State,
    ) -> ExprId {
        let Layout { enter, comma, object_end, object_empty_end, .. } = self.layout();
        let min = build.window.min.saturating_sub(state.count);
        let max = build.window.max.map(|max| max.saturating_sub(state.count));
        if build.is_broken(state.broken) {
            let other = self.other_members(others);
            let other = other.unwrap_or_else(|| self.grammar.never());
            let next = self.grammar.seq([comma, other]);
            if state.begun {
                let more = self.grammar.repeat(next, min, max);
                return self.grammar.seq([more, object_end]);
            }
            let more = self.grammar.repeat(next, min.saturating_sub(1), max.map(|max| max.saturating_sub(1)));
            let mut some = self.grammar.seq([enter, other, more, object_end]);
            if max == Some(0) {
                some = self.grammar.never();
            }
            return if min == 0 { self.grammar.alt([some, object_empty_end]) } else { some };
        }
        let mut ways = Vec::new();
        if max != Some(0) {
            let before = if state.begun { comma } else { enter };
            let count = (state.count + 1).min(build.cap());
            for other in others {
                let by = other.breaks.iter().map(|by| &**by);
                for (more, broken) in self.choices(&other.parts, by, state.broken, build.path) {
                    let member = self.other_member(other, &more);
                    if self.is_never(member) {
                        continue;
                    }
                    let next = State { count, broken, begun: true, ..state.clone() };
                    let then = self.state_rule(states, next, build.path);
                    ways.push(self.grammar.seq([before, member, then]));
                }
            }
        }
        self.grammar.alt(ways)
    }

    fn state_rule(&mut self, states: &mut States, state: State, path: PathId) -> ExprId {
        if let Some(&rule) = states.rules.get(&state) {
            return self.grammar.rule(rule);
        }
        let rule = self.grammar.declare("members");
        self.count_rule(path);
        states.rules.insert(state.clone(), rule);
        states.work.push((state, rule));
        self.grammar.rule(rule)
    }
}

/// For each member, the later ones that it needs, and the later ones that need it.
struct Links {
    needs: Vec<Vec<usize>>,
    needed_by: Vec<Vec<usize>>,
}

impl Links {
    fn of(members: usize, needs: &[(usize, usize)]) -> Self {
        let mut links = Self { needs: vec![Vec::new(); members], needed_by: vec![Vec::new(); members] };
        for &(a, b) in needs {
            if a < b {
                links.needs[a].push(b);
            } else {
                links.needed_by[b].push(a);
            }
        }
        links
    }
}

/// How a member breaks a schema.
pub(super) struct Breaks {
    /// By being absent.
    pub(super) absent: bool,
    /// By its value, or by its name alone.
    pub(super) by: Vec<Option<Signed>>,
}

/// How many ways there may be to write one member.
const WAYS: usize = 512;

impl Lowerer<'_> {
    /// The ways to write one member: what its value must satisfy beside its own schemas, and what is broken then.
    ///
    /// A value that does not break a schema satisfies it, so that the ways exclude one another and a text is read in one
    /// way only; the clearly empty ones are dropped, so that there are few.
    pub(super) fn choices<'b>(
        &mut self,
        parts: &[Signed],
        breaks: impl Iterator<Item = &'b [Option<Signed>]>,
        broken: u64,
        path: PathId,
    ) -> Vec<(Vec<Signed>, u64)> {
        let mut choices: Vec<(Vec<Signed>, u64)> = vec![(Vec::new(), broken)];
        for (i, by) in breaks.enumerate() {
            let bit = 1 << i;
            if broken & bit != 0 || by.is_empty() {
                continue;
            }
            if by.contains(&None) {
                // The name is enough.
                for choice in &mut choices {
                    choice.1 |= bit;
                }
                continue;
            }
            let mut next = Vec::with_capacity(choices.len() + 1);
            for (more, broken) in choices {
                let mut satisfied = more;
                for way in by.iter().flatten() {
                    let mut breaking = satisfied.clone();
                    breaking.push(*way);
                    if self.may_hold(parts, &breaking) {
                        next.push((breaking, broken | bit));
                    }
                    satisfied.push(way.flipped());
                }
                if self.may_hold(parts, &satisfied) {
                    next.push((satisfied, broken));
                }
            }
            choices = next;
            if choices.len() > WAYS {
                self.halt(path, "", format!("the negated schemas split one key into more than {WAYS} ways"));
                return Vec::new();
            }
        }
        choices
    }

    fn may_hold(&mut self, parts: &[Signed], more: &[Signed]) -> bool {
        let mut all = parts.to_vec();
        all.extend_from_slice(more);
        self.node_of(&all) != NodeId::NEVER
            && (all.len() < 2 || !self.is_clearly_empty(&all, TypeSet::ALL, 3))
    }
}
