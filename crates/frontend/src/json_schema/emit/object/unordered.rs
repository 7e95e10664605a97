//! Objects whose keys may come in any order.
//!
//! The set of written members is the state, so n optional members make 2ⁿ states. That is fine for small objects. In
//! large ones the engine remembers the keys ([`maskwright_grammar::Expr::Scope`]), and which of them need which others;
//! only the members that are counted or break schemas are part of the state.
//!
//! Where many schemas must be broken, or there are choices between conditions on several keys, the object is first
//! split into several alternatives ([`super::split`]).

use maskwright_grammar::ExprId;

use super::super::Emitter;
use super::super::layout::Layout;
use super::super::states::States;
use super::breaks::{MAX_BROKEN_SCHEMAS, by_absence};
use super::{Member, Plan};

/// The maximum number of members whose subsets are states.
const MAX_SUBSET_MEMBERS: usize = 3;

/// The maximum number of remembered members: each takes kilobytes.
const MAX_REMEMBERED: usize = 40_000;

/// The written members among those that are part of the state, the number of other keys as far as it matters, and the
/// broken schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    used: u64,
    others: u32,
    broken: u128,
}

impl<'s> Emitter<'s> {
    /// Returns an object in any order.
    pub(super) fn unordered_object(&mut self, plan: &Plan<'s>) -> ExprId {
        if plan.members.len() > MAX_REMEMBERED {
            let message = format!("more than {MAX_REMEMBERED} keys cannot be remembered in any order");
            return self.without_any_order(
                plan,
                message,
                "use the key order of the schema, or name fewer keys",
            );
        }
        if plan.members.len() > MAX_SUBSET_MEMBERS && plan.has_only_needs() && plan.has_few_needs() {
            return self.remembered_object(plan);
        }
        let limit = self.algebra.context.options.limits.states;
        let mut parts = None;
        if !plan.choices.is_empty() {
            parts = self.split_by_choices(plan);
            if parts.is_none() {
                let message = "there are too many conditions on keys to allow any order".to_owned();
                return self.without_any_order(plan, message, "use the key order of the schema");
            }
        } else if plan.broken > 0 {
            parts = self.split_by_broken(plan);
        }
        if let Some(parts) = parts {
            let ways: Vec<ExprId> = parts.iter().map(|plan| self.unordered_object(plan)).collect();
            return self.algebra.grammar.alt(ways);
        }
        let tracks = Tracks::of(plan).filter(|_| plan.broken <= MAX_BROKEN_SCHEMAS);
        let Some(tracks) = tracks else { return self.too_many_states(plan, limit) };
        let layout = self.layout();
        let other = self.other_members(&plan.others);
        let mut states: States<State> = States::new("members", plan.path);
        let (mut state, mut rule) = (State::default(), None);
        let mut first = self.algebra.grammar.never();
        loop {
            // As for other states, there is a limit for one object and one for the whole schema.
            self.state_count += 1;
            for (count, limit) in [(states.len(), limit), (self.state_count, limit.saturating_mul(10))] {
                if count > limit {
                    return self.too_many_states(plan, limit);
                }
            }
            let body = self.unordered_state(plan, &mut states, &tracks, other, state);
            match rule {
                Some(rule) => self.algebra.grammar.define(rule, body),
                None => first = body,
            }
            if self.is_halted() {
                return self.algebra.grammar.never();
            }
            let Some(next) = states.pop() else { break };
            (state, rule) = (next.0, Some(next.1));
        }
        let object = self.algebra.grammar.seq([layout.object_start, first]);
        if !(0..plan.members.len()).any(|at| tracks.is_remembered(at)) {
            return self.with_different_keys(object, &plan.others);
        }
        let members = plan.members.iter().enumerate();
        let required = members.filter(|&(at, member)| member.required && tracks.is_remembered(at));
        let required: Vec<Box<str>> = required.map(|(_, member)| member.name.into()).collect();
        self.algebra.grammar.scope(object, required)
    }

    /// Returns the continuations of a state: a member, another key, or the end.
    fn unordered_state(
        &mut self,
        plan: &Plan<'s>,
        states: &mut States<State>,
        tracks: &Tracks,
        other: Option<ExprId>,
        state: State,
    ) -> ExprId {
        let Layout { enter, comma, colon, after, object_end, object_empty_end, .. } = self.layout();
        let cap = plan.window.cap().max(1);
        let written = (state.used & !tracks.watched).count_ones() + state.others;
        let (before, end) = if written == 0 { (enter, object_empty_end) } else { (comma, object_end) };
        let counted = State { others: (state.others + 1).min(cap), ..state };
        let mut ways = Vec::new();
        let mut go = |this: &mut Self, text: ExprId, next: State, ways: &mut Vec<ExprId>| {
            let then = this.state(states, next);
            ways.push(this.algebra.grammar.seq([before, text, then]));
        };
        if plan.window.max.is_none_or(|max| written < max) {
            for (at, member) in plan.members.iter().enumerate() {
                let bit = tracks.bits[at];
                if state.used & bit != 0 || self.is_never(member.value) {
                    continue;
                }
                let mut key = self.string_literal(member.name);
                let mut next = State { used: state.used | bit, ..state };
                if tracks.is_remembered(at) {
                    key = self.algebra.grammar.distinct(key);
                    next.others = counted.others;
                }
                let is_left = |at: usize| tracks.bits[at] == 0 || next.used & tracks.bits[at] == 0;
                let due = if plan.broken == 0 { 0 } else { plan.unbreakable(is_left) };
                let broken = (state.broken, due);
                self.each_value(member, &[], &plan.breaks[at], broken, plan.path, |this, value, broken| {
                    let text = this.algebra.grammar.seq([key, colon, value, after]);
                    go(this, text, tracks.without_irrelevant(plan, State { broken, ..next }), &mut ways);
                });
            }
            if plan.broken == 0 {
                if let Some(other) = other {
                    go(self, other, counted, &mut ways);
                }
            } else {
                for one in &plan.others {
                    let by = one.breaks.iter().map(|by| &**by);
                    for (more, broken) in self.breaking_ways(&one.parts, by, (state.broken, 0), plan.path) {
                        let text = self.other_member(one, &more);
                        if !self.is_never(text) {
                            let next = tracks.without_irrelevant(plan, State { broken, ..counted });
                            go(self, text, next, &mut ways);
                        }
                    }
                }
            }
        }
        if is_complete(plan, tracks, state, written.min(cap)) {
            ways.push(end);
        }
        self.algebra.grammar.alt(ways)
    }

    fn too_many_states(&mut self, plan: &Plan<'s>, limit: usize) -> ExprId {
        let message = format!("keys in any order that depend on one another need more than {limit} states");
        self.without_any_order(plan, message, "use the key order of the schema, or raise the limit `states`")
    }

    /// Refuses the free order, or falls back to the order of the schema.
    fn without_any_order(&mut self, plan: &Plan<'s>, message: String, help: &str) -> ExprId {
        if !self.algebra.context.unenforceable(plan.path, "properties", message, help) {
            return self.algebra.grammar.never();
        }
        self.counted_object(plan)
    }

    /// Returns members in any order, each key at most once.
    fn remembered_object(&mut self, plan: &Plan<'s>) -> ExprId {
        let Layout { object_start, object_end, object_empty_end, enter, comma, colon, after, .. } =
            self.layout();
        let mut ways = Vec::with_capacity(plan.members.len() + 1);
        for member in &plan.members {
            if !self.is_never(member.value) {
                let key = self.string_literal(member.name);
                let key = self.algebra.grammar.distinct(key);
                ways.push(self.algebra.grammar.seq([key, colon, member.value, after]));
            }
        }
        ways.extend(self.other_members(&plan.others));
        let member = self.algebra.grammar.alt(ways);
        let next = self.algebra.grammar.seq([comma, member]);
        let least = plan.window.min;
        let more = self.algebra.grammar.repeat(next, least.saturating_sub(1), None);
        let mut body = self.algebra.grammar.seq([enter, member, more, object_end]);
        let required = plan.members.iter().filter(|member| member.required);
        let required: Vec<Box<str>> = required.map(|member| member.name.into()).collect();
        if least == 0 && required.is_empty() {
            body = self.algebra.grammar.alt([body, object_empty_end]);
        }
        let body = self.algebra.grammar.seq([object_start, body]);
        let name = |at: usize| plan.members[at].name.into();
        let needs = plan.needs.iter().map(|&(a, b)| (name(a), name(b)));
        self.algebra.grammar.scope_with_needs(body, required, needs)
    }
}

/// The members that are part of the state.
pub(super) struct Tracks {
    /// The bit of each member; 0 for those that only the engine remembers.
    bits: Vec<u64>,
    /// The bits of members that the engine remembers as well. Their absence matters until other schemas are broken.
    watched: u64,
}

impl Tracks {
    /// Returns `None` if there are too many.
    pub(super) fn of(plan: &Plan<'_>) -> Option<Self> {
        let is_needed = |at: usize| plan.needs.iter().any(|&(a, b)| a == at || b == at);
        // If the number of keys is bounded, the required ones must still fit.
        let is_awaited = |at: usize| plan.window.max.is_some() && plan.members[at].required;
        let (mut bits, mut watched, mut next) = (Vec::with_capacity(plan.members.len()), 0, 0u32);
        for (at, breaks) in plan.breaks.iter().enumerate() {
            let is_kept = plan.members.len() <= MAX_SUBSET_MEMBERS || is_needed(at) || is_awaited(at);
            if !is_kept && !breaks.iter().any(|breaks| breaks.absent) {
                bits.push(0);
                continue;
            }
            let bit = 1u64.checked_shl(next)?;
            next += 1;
            bits.push(bit);
            if !is_kept {
                watched |= bit;
            }
        }
        Some(Self { bits, watched })
    }

    /// Returns the number of members that are part of the state.
    pub(super) fn count(&self) -> usize {
        self.bits.iter().filter(|bit| **bit != 0).count()
    }

    /// Checks whether the engine remembers that a member was written.
    fn is_remembered(&self, at: usize) -> bool {
        self.bits[at] & !self.watched == 0
    }

    /// Removes members from a state that make no difference anymore, because all schemas that their absence breaks are
    /// broken.
    fn without_irrelevant(&self, plan: &Plan<'_>, mut state: State) -> State {
        for (&bit, row) in self.bits.iter().zip(&plan.breaks) {
            if bit & self.watched != 0 && by_absence(row) & !state.broken == 0 {
                state.used &= !bit;
            }
        }
        state
    }
}

/// Checks whether an object may end in this state.
fn is_complete(plan: &Plan<'_>, tracks: &Tracks, state: State, count: u32) -> bool {
    let used = |at: usize| state.used & tracks.bits[at] != 0;
    let mut broken = state.broken;
    for (at, row) in plan.breaks.iter().enumerate() {
        if !used(at) {
            broken |= by_absence(row);
        }
    }
    let is_there =
        |(at, member): (usize, &Member<'_>)| !member.required || tracks.is_remembered(at) || used(at);
    plan.members.iter().enumerate().all(is_there)
        && plan.needs.iter().all(|&(a, b)| !used(a) || used(b))
        && plan.is_broken(broken)
        && count >= plan.window.min
}
