//! Objects whose keys may come in every order.
//!
//! Which members were written is the state, so n optional members make 2ⁿ states. That is fine for small objects. In large ones
//! it is left to the engine to remember the keys ([`maskwright_grammar::Expr::Scope`]); that is enough unless members
//! depend on one another.

use maskwright_grammar::{ExprId, RuleId};
use rustc_hash::FxHashMap;

use super::super::Lowerer;
use super::super::layout::Layout;
use super::counted::Build;
use super::{Member, Others};

/// With so many members, subsets are states.
const FEW: usize = 6;

/// Which members were written, how many other keys (as far as that matters), and what is broken.
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
        let limit = self.context.options.limits.states;
        let states = 1usize.checked_shl(members.len() as u32).filter(|_| members.len() < 60);
        if states.is_none_or(|states| states > limit) || build.demands.broken.len() > 16 {
            let message =
                format!("an object with {} keys in any order needs more than {limit} states", members.len());
            let help = "use the order of the schema";
            if !self.unenforceable(build.path, "properties", message, help) {
                return self.grammar.never();
            }
            return self.counted_object(members, others, build);
        }
        let breaks = self.member_breaks(members, build);
        let layout = self.layout();
        let other = self.other_members(others);
        let mut rules: FxHashMap<State, RuleId> = FxHashMap::default();
        let mut work: Vec<(State, Option<RuleId>)> = vec![(State::default(), None)];
        let mut first = self.grammar.never();
        while let Some((state, rule)) = work.pop() {
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
            if !full {
                for (at, member) in members.iter().enumerate() {
                    if state.used & (1 << at) != 0 || self.is_never(member.value) {
                        continue;
                    }
                    let key = self.string_literal(member.name);
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
                        go(self, text, State { used: state.used | 1 << at, broken, ..state }, &mut ways);
                    }
                }
                let others_next = (state.others + 1).min(build.cap().max(1));
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
            if is_complete(members, build, &breaks, state, count) {
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
        self.with_different_keys(object, others)
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
            let key = self.string_literal(member.name);
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
            members.iter().filter(|member| member.required).map(|member| member.name.into()).collect();
        let body =
            if least == 0 && required.is_empty() { self.grammar.alt([some, object_empty_end]) } else { some };
        let body = self.grammar.seq([object_start, body]);
        self.grammar.scope(body, required)
    }
}

/// Whether an object may end in this state.
fn is_complete(
    members: &[Member<'_>],
    build: &Build<'_, '_>,
    breaks: &[Vec<super::counted::Breaks>],
    state: State,
    count: u32,
) -> bool {
    let used = |at: usize| state.used & (1 << at) != 0;
    let mut broken = state.broken;
    for (at, row) in breaks.iter().enumerate() {
        for (i, breaks) in row.iter().enumerate() {
            broken |= u64::from(breaks.absent && !used(at)) << i;
        }
    }
    members.iter().enumerate().all(|(at, member)| !member.required || used(at))
        && build.needs.iter().all(|&(a, b)| !used(a) || used(b))
        && build.is_broken(broken)
        && count >= build.window.min
}
