//! Objects in the schema's order, state by state.
//!
//! A state consists of the next member, the number of members so far (as far as it matters), the later members that are
//! *owed* because a written member needs them, those that are *banned* because they need a member that was left out,
//! the negated schemas that are broken, and the [alternatives](super::choices) that can still hold. Most of these are
//! usually empty, so there are few states.

use std::borrow::Cow;

use maskwright_grammar::ExprId;

use super::super::super::cases::Signed;
use super::super::super::path::PathId;
use super::super::super::schemas::Window;
use super::super::Emitter;
use super::super::layout::Layout;
use super::super::states::States;
use super::breaks::{Breaks, MAX_BROKEN_SCHEMAS, by_absence};
use super::choices::{OpenAlternative, Way};
use super::{Member, Plan};

/// A set of later members.
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

    fn remove(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word &= !(1 << (place % 64));
            while self.0.last() == Some(&0) {
                self.0.pop();
            }
        }
    }
}

/// A state between two members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    place: usize,
    count: u32,
    owed: Later,
    banned: Later,
    /// The broken schemas, as bits.
    broken: u128,
    /// The alternatives that are open.
    taken: Vec<OpenAlternative>,
    /// Whether a member has been written.
    begun: bool,
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

impl<'s> Emitter<'s> {
    /// Returns an object whose members are counted, or depend on one another.
    pub(super) fn counted_object(&mut self, plan: &Plan<'s>) -> ExprId {
        let what = "counting the members of this object, or following their dependencies,";
        if plan.broken > MAX_BROKEN_SCHEMAS {
            let message = format!("more than {MAX_BROKEN_SCHEMAS} schemas of one object are negated");
            self.algebra.context.halt(plan.path, "", message, "negate fewer schemas of this object");
            return self.algebra.grammar.never();
        }
        let limit = self.algebra.context.options.limits.states;
        // There is at least one state before each member.
        if plan.members.len() > limit {
            let message = format!("{what} takes more than {limit} states");
            self.algebra.context.exceed("states", plan.path, "", message);
            return self.algebra.grammar.never();
        }
        let Layout { object_start, .. } = self.layout();
        let links = Links::of(plan.members.len(), &plan.needs);
        // The schemas that must be broken before each place.
        let due: Vec<u128> = match plan.broken {
            0 => vec![0; plan.members.len() + 1],
            _ => (0..=plan.members.len()).map(|place| plan.unbreakable(|at| at >= place)).collect(),
        };
        let mut states = States::new("members", plan.path);
        let first = self.state(&mut states, State::default());
        let is_done = self.write_states(&mut states, limit, what, |this, states, state| {
            if state.place < plan.members.len() {
                this.member_state(plan, states, due[state.place + 1], &links, state)
            } else {
                this.others_state(plan, states, state)
            }
        });
        if !is_done {
            return self.algebra.grammar.never();
        }
        self.algebra.grammar.seq([object_start, first])
    }

    fn member_state(
        &mut self,
        plan: &Plan<'s>,
        states: &mut States<State>,
        due: u128,
        links: &Links,
        state: &State,
    ) -> ExprId {
        let (place, member, breaks) = (state.place, &plan.members[state.place], &plan.breaks[state.place]);
        let mut next = State { place: place + 1, ..state.clone() };
        next.owed.remove(place);
        next.banned.remove(place);
        let mut ways = Vec::new();
        if !member.required && !state.owed.contains(place) {
            let mut left_out = next.clone();
            links.needed_by[place].iter().for_each(|&at| left_out.banned.insert(at));
            left_out.broken |= by_absence(breaks);
            if due & !left_out.broken == 0
                && let Some(taken) = Self::open_without(plan, place, &state.taken)
            {
                ways.push(self.state(states, State { taken, ..left_out }));
            }
        }
        let is_full = plan.window.max.is_some_and(|max| state.count >= max);
        if !state.banned.contains(place) && !is_full && !self.is_never(member.value) {
            next.count = (state.count + 1).min(plan.window.cap());
            next.begun = true;
            links.needs[place].iter().for_each(|&at| next.owed.insert(at));
            let Layout { enter, comma, colon, after, .. } = self.layout();
            let key = self.string_literal(member.name);
            let before = if state.begun { comma } else { enter };
            for Way { more, taken } in self.ways_with(plan, place, &state.taken, &member.parts) {
                let next = State { taken, ..next.clone() };
                let broken = (state.broken, due);
                self.each_value(member, &more, breaks, broken, plan.path, |this, value, broken| {
                    let then = this.state(states, State { broken, ..next.clone() });
                    ways.push(this.algebra.grammar.seq([before, key, colon, value, after, then]));
                });
            }
        }
        self.algebra.grammar.alt(ways)
    }

    /// Returns the state after the last member: other keys, and the end.
    fn others_state(&mut self, plan: &Plan<'s>, states: &mut States<State>, state: &State) -> ExprId {
        let Layout { enter, comma, object_end, object_empty_end, .. } = self.layout();
        let Window { min, max } = plan.window.after(state.count);
        if plan.is_broken(state.broken) {
            let other = self.other_members(&plan.others);
            let other = other.unwrap_or_else(|| self.algebra.grammar.never());
            let next = self.algebra.grammar.seq([comma, other]);
            if state.begun {
                let more = self.algebra.grammar.repeat(next, min, max);
                return self.algebra.grammar.seq([more, object_end]);
            }
            let Window { min: least, max: most } = Window { min, max }.after(1);
            let more = self.algebra.grammar.repeat(next, least, most);
            let mut some = self.algebra.grammar.seq([enter, other, more, object_end]);
            if max == Some(0) {
                some = self.algebra.grammar.never();
            }
            return if min == 0 { self.algebra.grammar.alt([some, object_empty_end]) } else { some };
        }
        let mut ways = Vec::new();
        if max != Some(0) {
            let before = if state.begun { comma } else { enter };
            let count = (state.count + 1).min(plan.window.cap());
            for other in &plan.others {
                let by = other.breaks.iter().map(|by| &**by);
                for (more, broken) in self.breaking_ways(&other.parts, by, (state.broken, 0), plan.path) {
                    let member = self.other_member(other, &more);
                    if !self.is_never(member) {
                        let next = State { count, broken, begun: true, ..state.clone() };
                        let then = self.state(states, next);
                        ways.push(self.algebra.grammar.seq([before, member, then]));
                    }
                }
            }
        }
        self.algebra.grammar.alt(ways)
    }

    /// Writes each kind of value of a member that also satisfies `more`, with the schemas that are broken then.
    /// `broken` are the schemas broken before, and those that must be broken now.
    pub(super) fn each_value(
        &mut self,
        member: &Member<'s>,
        more: &[Signed],
        breaks: &[Breaks],
        broken: (u128, u128),
        path: PathId,
        mut write: impl FnMut(&mut Self, ExprId, u128),
    ) {
        let by = breaks.iter().map(|breaks| &*breaks.by);
        let parts: Cow<'_, [Signed]> =
            if more.is_empty() { (&*member.parts).into() } else { [&*member.parts, more].concat().into() };
        for (breaking, broken) in self.breaking_ways(&parts, by, broken, path) {
            let is_plain = more.is_empty() && breaking.is_empty();
            let value = if is_plain { member.value } else { self.part_with(&parts, &breaking) };
            if !self.is_never(value) {
                write(self, value, broken);
            }
        }
    }
}
