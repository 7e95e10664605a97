//! Objects whose keys may come in any order.
//!
//! The set of members that were written is the state, so n optional members make 2ⁿ states. That is fine for small
//! objects. In large ones the engine remembers the keys ([`maskwright_grammar::Expr::Scope`]), and which of them need which others; only
//! the members that are counted or break schemas are part of the state.
//!
//! Where many schemas must be broken, the object is a choice between objects first: by the values of one member, which
//! break different schemas each. A `type` that breaks all schemas but one leaves an object without states.

use maskwright_grammar::ExprId;

use super::super::super::cases::Signed;
use super::super::Emitter;
use super::super::layout::Layout;
use super::super::states::States;
use super::breaks::{Breaks, MAX_BROKEN_SCHEMAS};
use super::{Member, Plan};

/// Up to this many members, the subsets are states.
const MAX_SUBSET_MEMBERS: usize = 3;

/// No more members are remembered: each takes kilobytes.
const MAX_REMEMBERED: usize = 40_000;

/// With more members in the state and schemas to be broken than this, the object is split.
const MAX_UNSPLIT: usize = 8;

/// How many parts an object may be split into.
const MAX_SPLITS: usize = 256;

/// Which members were written, of those that are part of the state; how many other keys, as far as it matters; and
/// which schemas are broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    used: u64,
    others: u32,
    broken: u128,
}

impl<'s> Emitter<'s> {
    /// An object in any order.
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
        if !plan.choices.is_empty() {
            let message = "so many conditions on keys cannot be followed in any order".to_owned();
            return self.without_any_order(plan, message, "use the key order of the schema");
        }
        if plan.broken > 0
            && let Some(ways) = self.split_object(plan)
        {
            let ways: Vec<ExprId> = ways.iter().map(|plan| self.unordered_object(plan)).collect();
            return self.algebra.grammar.alt(ways);
        }
        let bits = state_bits(plan).filter(|_| plan.broken <= MAX_BROKEN_SCHEMAS);
        let Some(bits) = bits else { return self.too_many_states(plan, limit) };
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
            let body = self.unordered_state(plan, &mut states, &bits, other, state);
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
        if bits.iter().all(|bit| *bit != 0) {
            return self.with_different_keys(object, &plan.others);
        }
        let required = plan.members.iter().zip(&bits).filter(|(member, bit)| member.required && **bit == 0);
        let required: Vec<Box<str>> = required.map(|(member, _)| member.name.into()).collect();
        self.algebra.grammar.scope(object, required)
    }

    /// An object with many schemas that must be broken, as several with fewer, told apart by the value of one member. `None` if that is no gain.
    fn split_object(&mut self, plan: &Plan<'s>) -> Option<Vec<Plan<'s>>> {
        let mut done: Vec<Plan<'s>> = Vec::new();
        let mut work = vec![plan.clone()];
        while let Some(plan) = work.pop() {
            let states =
                state_bits(&plan).map_or(usize::MAX, |bits| bits.iter().filter(|bit| **bit != 0).count());
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
            let mut ways: Vec<(Option<Vec<Signed>>, u128)> = Vec::new();
            if !self.is_never(member.value) {
                let present = self.breaking_ways(&member.parts, by, (0, 0), plan.path);
                ways.extend(present.into_iter().map(|(more, broken)| (Some(more), broken)));
            }
            if !member.required {
                let absent = plan.breaks[pivot].iter().enumerate();
                let absent = absent.fold(0, |bits, (i, breaks)| bits | u128::from(breaks.absent) << i);
                ways.push((None, absent));
            }
            for (more, broken) in ways {
                let mut part = plan.clone();
                let member = &mut part.members[pivot];
                match more {
                    Some(mut more) => {
                        member.required = true;
                        if !more.is_empty() {
                            member.parts.append(&mut more);
                            member.value = self.part_with(&member.parts, &[]);
                        }
                    }
                    None => member.value = self.algebra.grammar.never(),
                }
                part.breaks[pivot].iter_mut().for_each(|breaks| {
                    *breaks = Breaks { absent: false, by: Vec::new() };
                });
                let is_kept: Vec<bool> = (0..plan.broken).map(|i| broken >> i & 1 == 0).collect();
                part.keep(&is_kept);
                let is_possible =
                    part.unbreakable(|_| true) == 0 && self.settle(&mut part) && self.close_needs(&mut part);
                if is_possible {
                    work.push(part);
                }
            }
            if self.is_halted() || done.len() + work.len() > MAX_SPLITS {
                return None;
            }
        }
        (done.len() != 1 || done[0].broken < plan.broken).then_some(done)
    }

    /// What may follow in a state: a member, another key, or the end.
    fn unordered_state(
        &mut self,
        plan: &Plan<'s>,
        states: &mut States<State>,
        bits: &[u64],
        other: Option<ExprId>,
        state: State,
    ) -> ExprId {
        let Layout { enter, comma, colon, after, object_end, object_empty_end, .. } = self.layout();
        let cap = plan.window.cap().max(1);
        let written = state.used.count_ones() + state.others;
        let (before, end) = if written == 0 { (enter, object_empty_end) } else { (comma, object_end) };
        let counted = State { others: (state.others + 1).min(cap), ..state };
        let mut ways = Vec::new();
        let mut go = |this: &mut Self, text: ExprId, next: State, ways: &mut Vec<ExprId>| {
            let then = this.state(states, next);
            ways.push(this.algebra.grammar.seq([before, text, then]));
        };
        if plan.window.max.is_none_or(|max| written < max) {
            for (at, member) in plan.members.iter().enumerate() {
                let bit = bits[at];
                if state.used & bit != 0 || self.is_never(member.value) {
                    continue;
                }
                let mut key = self.string_literal(member.name);
                if bit == 0 {
                    key = self.algebra.grammar.distinct(key);
                }
                let next = if bit == 0 { counted } else { State { used: state.used | bit, ..state } };
                let is_left = |at: usize| bits[at] == 0 || next.used & bits[at] == 0;
                let due = if plan.broken == 0 { 0 } else { plan.unbreakable(is_left) };
                let broken = (state.broken, due);
                self.each_value(member, &[], &plan.breaks[at], broken, plan.path, |this, value, broken| {
                    let text = this.algebra.grammar.seq([key, colon, value, after]);
                    go(this, text, State { broken, ..next }, &mut ways);
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
                            go(self, text, State { broken, ..counted }, &mut ways);
                        }
                    }
                }
            }
        }
        if is_complete(plan, bits, state, written.min(cap)) {
            ways.push(end);
        }
        self.algebra.grammar.alt(ways)
    }

    fn too_many_states(&mut self, plan: &Plan<'s>, limit: usize) -> ExprId {
        let message = format!("keys in any order that depend on one another need more than {limit} states");
        self.without_any_order(plan, message, "use the key order of the schema, or raise the limit `states`")
    }

    /// Refuses any order, or falls back to that of the schema.
    fn without_any_order(&mut self, plan: &Plan<'s>, message: String, help: &str) -> ExprId {
        if !self.algebra.context.unenforceable(plan.path, "properties", message, help) {
            return self.algebra.grammar.never();
        }
        self.counted_object(plan)
    }

    /// Members in any order, each key at most once.
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

/// The bit of each member that is part of the state, and 0 for all others. `None` if there are too many.
fn state_bits(plan: &Plan<'_>) -> Option<Vec<u64>> {
    let is_needed = |at: usize| plan.needs.iter().any(|&(a, b)| a == at || b == at);
    // Where the number of keys is bounded, the required ones must still fit.
    let is_awaited = |at: usize| plan.window.max.is_some() && plan.members[at].required;
    let is_kept = |at: usize| {
        let breaks_something = || plan.breaks[at].iter().any(|breaks| breaks.absent);
        plan.members.len() <= MAX_SUBSET_MEMBERS || is_needed(at) || is_awaited(at) || breaks_something()
    };
    let mut next = 0u32;
    let mut bit = |at: usize| {
        if !is_kept(at) {
            return Some(0);
        }
        next += 1;
        1u64.checked_shl(next - 1)
    };
    (0..plan.members.len()).map(&mut bit).collect()
}

/// Whether an object may end in this state.
fn is_complete(plan: &Plan<'_>, bits: &[u64], state: State, count: u32) -> bool {
    let used = |at: usize| state.used & bits[at] != 0;
    let mut broken = state.broken;
    for (at, row) in plan.breaks.iter().enumerate() {
        for (i, breaks) in row.iter().enumerate() {
            broken |= u128::from(breaks.absent && !used(at)) << i;
        }
    }
    let is_there = |(at, member): (usize, &Member<'_>)| !member.required || bits[at] == 0 || used(at);
    plan.members.iter().enumerate().all(is_there)
        && plan.needs.iter().all(|&(a, b)| !used(a) || used(b))
        && plan.is_broken(broken)
        && count >= plan.window.min
}
