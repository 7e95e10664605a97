//! Objects whose keys may come in every order.
//!
//! Which members were written is the state, so n optional members make 2ⁿ states. That is fine for small objects. In large ones
//! it is left to the engine to remember the keys ([`maskwright_grammar::Expr::Scope`]), and only the members that others depend
//! on are part of the state.

use maskwright_grammar::{ExprId, RuleId};
use rustc_hash::FxHashMap;

use super::super::Lowerer;
use super::super::layout::Layout;
use super::counted::{Breaks, Build};
use super::{Member, Others};

/// With so many members, subsets are states.
const FEW: usize = 6;

/// Which members of those that are part of the state were written, how many other keys (as far as that matters), and what is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    used: u64,
    others: u32,
    broken: u64,
}

impl<'s> Lowerer<'s> {
    /// An object in any order.
    pub(super) fn unordered_object(
        &mut self,
        members: &[Member<'s>],
        others: &[Others],
        build: &Build<'_, 's>,
    ) -> ExprId {
        if members.len() > FEW && build.is_independent() {
            return self.remembered_object(members, others, build);
        }
        let breaks = self.member_breaks(members, build);
        let bits = kept(members, build, &breaks).filter(|_| build.demands.broken.len() <= 60);
        let Some(bits) = bits else { return self.too_many(members, others, build) };
        let limit = self.context.options.limits.states;
        let layout = self.layout();
        let other = self.other_members(others);
        let mut rules: FxHashMap<State, RuleId> = FxHashMap::default();
        let mut work: Vec<(State, Option<RuleId>)> = vec![(State::default(), None)];
        let mut first = self.grammar.never();
        while let Some((state, rule)) = work.pop() {
            if rules.len() > limit {
                return self.too_many(members, others, build);
            }
            let begun = state.used != 0 || state.others != 0;
            let count = (state.used.count_ones() + state.others).min(build.cap().max(1));
            let before = if begun { layout.comma } else { layout.enter };
            let full = build.window.max.is_some_and(|max| state.used.count_ones() + state.others >= max);
            let mut ways = Vec::new();
            let mut go = |this: &mut Self, text: ExprId, next: State, ways: &mut Vec<ExprId>| {
                let then = *rules.entry(next).or_insert_with(|| {
                    let rule = this.grammar.declare("members");
                    work.push((next, Some(rule)));
                    rule
                });
                let then = this.grammar.rule(then);
                ways.push(this.grammar.seq([before, text, then]));
            };
            let others_next = (state.others + 1).min(build.cap().max(1));
            if !full {
                for (at, member) in members.iter().enumerate() {
                    if state.used & bits[at] != 0 || self.is_never(member.value) {
                        continue;
                    }
                    let mut key = self.string_literal(&member.name);
                    if bits[at] == 0 {
                        key = self.grammar.distinct(key);
                    }
                    let by = breaks[at].iter().map(|breaks| &*breaks.by);
                    for (more, broken) in self.choices(&member.parts, by, state.broken, build.path) {
                        let value = if more.is_empty() {
                            member.value
                        } else {
                            self.value_with(&member.parts, &more)
                        };
                        if self.is_never(value) {
                            continue;
                        }
                        let Layout { colon, after, .. } = layout;
                        let text = self.grammar.seq([key, colon, value, after]);
                        let others = if bits[at] == 0 { others_next } else { state.others };
                        go(self, text, State { used: state.used | bits[at], others, broken }, &mut ways);
                    }
                }
                if build.demands.broken.is_empty() {
                    if let Some(other) = other {
                        go(self, other, State { others: others_next, ..state }, &mut ways);
                    }
                } else {
                    for one in others {
                        let by = one.breaks.iter().map(|by| &**by);
                        for (more, broken) in self.choices(&one.parts, by, state.broken, build.path) {
                            let text = self.other_member(one, &more);
                            if !self.is_never(text) {
                                go(self, text, State { others: others_next, broken, ..state }, &mut ways);
                            }
                        }
                    }
                }
            }
            if is_complete(members, &bits, build, &breaks, state, count) {
                ways.push(if begun { layout.object_end } else { layout.object_empty_end });
            }
            let body = self.grammar.alt(ways);
            match rule {
                Some(rule) => {
                    self.count_rule(build.path);
                    self.grammar.define(rule, body);
                }
                None => first = body,
            }
            if self.is_halted() {
                return self.grammar.never();
            }
        }
        let object = self.grammar.seq([layout.object_start, first]);
        if bits.iter().all(|bit| *bit != 0) {
            return self.with_different_keys(object, others);
        }
        let required = members.iter().zip(&bits).filter(|(member, bit)| member.required && **bit == 0);
        let required: Vec<Box<str>> = required.map(|(member, _)| (*member.name).into()).collect();
        self.grammar.scope(object, required)
    }

    /// An object for which there are too many states.
    fn too_many(&mut self, members: &[Member<'s>], others: &[Others], build: &Build<'_, 's>) -> ExprId {
        let limit = self.context.options.limits.states;
        let message = format!("keys that depend on one another, in any order, need more than {limit} states");
        if !self.unenforceable(build.path, "properties", message, "use the order of the schema") {
            return self.grammar.never();
        }
        self.counted_object(members, others, build)
    }

    /// Members in any order, each key at most once.
    fn remembered_object(
        &mut self,
        members: &[Member<'s>],
        others: &[Others],
        build: &Build<'_, 's>,
    ) -> ExprId {
        let Layout { object_start, object_end, object_empty_end, enter, comma, colon, after, .. } =
            self.layout();
        let mut ways = Vec::with_capacity(members.len() + 1);
        for member in members.iter().filter(|member| !self.is_never(member.value)).collect::<Vec<_>>() {
            let key = self.string_literal(&member.name);
            let key = self.grammar.distinct(key);
            ways.push(self.grammar.seq([key, colon, member.value, after]));
        }
        ways.extend(self.other_members(others));
        let member = self.grammar.alt(ways);
        let next = self.grammar.seq([comma, member]);
        let least = build.window.min;
        let more = self.grammar.repeat(next, least.saturating_sub(1), None);
        let some = self.grammar.seq([enter, member, more, object_end]);
        let required: Vec<Box<str>> =
            members.iter().filter(|member| member.required).map(|member| (*member.name).into()).collect();
        let body =
            if least == 0 && required.is_empty() { self.grammar.alt([some, object_empty_end]) } else { some };
        let body = self.grammar.seq([object_start, body]);
        self.grammar.scope(body, required)
    }
}

/// The bit of each member that is part of the state, and 0 for the others; `None` if there are too many.
fn kept(members: &[Member<'_>], build: &Build<'_, '_>, breaks: &[Vec<Breaks>]) -> Option<Vec<u64>> {
    let is_needed = |at: usize| build.needs.iter().any(|&(a, b)| a == at || b == at);
    // Where there is room for so many keys only, those that are required must find some.
    let is_awaited = |at: usize| build.window.max.is_some() && members[at].required;
    let is_kept = |at: usize| {
        let breaks_something = || breaks[at].iter().any(|breaks| breaks.absent);
        members.len() <= FEW || is_needed(at) || is_awaited(at) || breaks_something()
    };
    let mut next = 0u32;
    let mut bit = |at: usize| {
        if !is_kept(at) {
            return Some(0);
        }
        next += 1;
        1u64.checked_shl(next - 1)
    };
    (0..members.len()).map(&mut bit).collect()
}

/// Whether an object may end in this state.
fn is_complete(
    members: &[Member<'_>],
    bits: &[u64],
    build: &Build<'_, '_>,
    breaks: &[Vec<Breaks>],
    state: State,
    count: u32,
) -> bool {
    let used = |at: usize| state.used & bits[at] != 0;
    let mut broken = state.broken;
    for (at, row) in breaks.iter().enumerate() {
        for (i, breaks) in row.iter().enumerate() {
            broken |= u64::from(breaks.absent && !used(at)) << i;
        }
    }
    let is_there = |(at, member): (usize, &Member<'_>)| !member.required || bits[at] == 0 || used(at);
    members.iter().enumerate().all(is_there)
        && build.needs.iter().all(|&(a, b)| !used(a) || used(b))
        && build.is_broken(broken)
        && count >= build.window.min
}
