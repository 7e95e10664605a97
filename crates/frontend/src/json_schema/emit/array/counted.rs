//! Arrays whose items are counted: `contains`, and negated schemas.
//!
//! A state is a place in the array, the number of items that each `contains` has matched, and the negated schemas that
//! are broken so far. Whether an item matches a `contains` is a choice between two nodes, `item ∧ c` and `item ∧ ¬c`. If
//! there is only a minimum, an item need not be counted, so the second is simply `item`; if there is only a maximum, an
//! item may be counted in any case, so the first is.
//!
//! A negated schema is *broken* by one item that its `items` forbids, which is another choice. Its counts and its
//! `contains` are broken by the opposite count, which makes a case of its own.

use maskwright_grammar::ExprId;

use super::super::super::cases::{Signed, item};
use super::super::super::schemas::{SchemaId, Window};
use super::super::Emitter;
use super::super::layout::Layout;
use super::super::states::States;
use super::Shape;

/// How many negated schemas of one array may have to be broken.
const MAX_BROKEN_SCHEMAS: usize = 16;

/// Conditions on the array as a whole.
#[derive(Clone, Debug, Default)]
struct Demands {
    window: Window,
    /// How many items must satisfy a schema.
    contains: Vec<(SchemaId, Window)>,
    /// Schemas that some item must break.
    broken: Vec<SchemaId>,
}

/// A state between two items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    place: u32,
    /// For each `contains`, how many items matched.
    counts: Vec<u32>,
    /// The schemas that are broken, as bits.
    broken: u64,
}

/// An array under construction.
struct Plan<'c> {
    shape: Shape<'c>,
    demands: Demands,
    /// From this place on, all places are alike.
    last_place: u32,
}

impl Plan<'_> {
    /// Whether an array may end in this state.
    fn is_complete(&self, state: &State) -> bool {
        let mut counts = self.demands.contains.iter().zip(&state.counts);
        counts.all(|((_, window), &count)| window.contains(count as usize))
            && state.broken.count_ones() as usize == self.demands.broken.len()
            && self.demands.window.contains(state.place as usize)
    }
}

impl Emitter<'_> {
    /// An array with conditions on the items as a whole.
    pub(super) fn counted_array(&mut self, shape: Shape<'_>) -> ExprId {
        let Some(demands) = self.array_demands(shape) else { return self.algebra.grammar.never() };
        let ways: Vec<ExprId> =
            demands.into_iter().map(|demands| self.demanded_array(shape, demands)).collect();
        let expr = self.algebra.grammar.alt(ways);
        if self.is_never(expr) {
            return self.nothing(shape.path, "", "no array satisfies these keywords together");
        }
        expr
    }

    /// The alternative demands of a case: a negated schema can be broken in several ways. `None` after an error.
    fn array_demands(&mut self, shape: Shape<'_>) -> Option<Vec<Demands>> {
        let mut all = vec![Demands { window: shape.count, ..Demands::default() }];
        for local in &shape.case.locals {
            let keywords = self.algebra.keywords(local.id);
            let contains = keywords.contains.map(|schema| (schema, keywords.contains_count));
            if !local.negative {
                for demands in &mut all {
                    demands.contains.extend(contains);
                }
                continue;
            }
            let mut ways: Vec<Demands> = Vec::new();
            for demands in &all {
                let mut add = |change: &dyn Fn(&mut Demands)| {
                    let mut way = demands.clone();
                    change(&mut way);
                    ways.push(way);
                };
                if keywords.rest.is_some() || !keywords.prefix.is_empty() {
                    add(&|way| way.broken.push(local.id));
                }
                for window in keywords.item_count.complement() {
                    add(&|way| way.window = way.window.and(window));
                }
                if let Some((schema, counts)) = contains {
                    counts.complement().for_each(|window| add(&|way| way.contains.push((schema, window))));
                }
            }
            if keywords.unique {
                let message = "a negated `uniqueItems` (some items repeat) cannot be enforced".to_owned();
                let help = "write the negation of the other keywords out";
                let path = self.algebra.path(local.id);
                if !self.algebra.context.unenforceable(path, "uniqueItems", message, help) {
                    return None;
                }
            }
            all = ways;
        }
        all.retain(|demands| !demands.window.is_empty());
        Some(all)
    }

    fn demanded_array(&mut self, shape: Shape<'_>, demands: Demands) -> ExprId {
        let Layout { array_start, array_empty_end, enter, comma, array_end, .. } = self.layout();
        // Every place up to the greatest one that a bound names is a place of its own.
        let mut last_place = u32::try_from(shape.prefix).unwrap_or(u32::MAX);
        for &id in &demands.broken {
            last_place = last_place.max(self.algebra.keywords(id).prefix.len() as u32);
        }
        last_place = last_place.max(demands.window.min);
        last_place = last_place.max(demands.window.max.map_or(0, |max| max.saturating_add(1)));
        let limit = self.algebra.context.options.limits.states;
        let counts = demands.contains.iter().map(|(_, window)| window.cap() as usize + 1);
        let least = counts.fold(last_place as usize + 1, usize::saturating_mul);
        if least > limit {
            let message = format!("counting the items takes more than {limit} states");
            self.algebra.context.exceed("states", shape.path, "", message);
            return self.algebra.grammar.never();
        }
        if demands.broken.len() > MAX_BROKEN_SCHEMAS {
            let message = format!("more than {MAX_BROKEN_SCHEMAS} schemas of one array are negated");
            self.algebra.context.halt(shape.path, "", message, "negate fewer schemas of this array");
            return self.algebra.grammar.never();
        }
        let start = State { place: 0, counts: vec![0; demands.contains.len()], broken: 0 };
        let plan = Plan { shape, demands, last_place };
        let mut states = States::new("items", shape.path);
        let first = self.items_state(&plan, &mut states, &start, enter, array_empty_end);
        let is_done =
            self.write_states(&mut states, usize::MAX, "counting the items", |this, states, state| {
                this.items_state(&plan, states, state, comma, array_end)
            });
        if !is_done {
            return self.algebra.grammar.never();
        }
        self.algebra.grammar.seq([array_start, first])
    }

    /// What may follow in a state: another item, or the end.
    fn items_state(
        &mut self,
        plan: &Plan<'_>,
        states: &mut States<State>,
        state: &State,
        before: ExprId,
        end: ExprId,
    ) -> ExprId {
        let mut ways = Vec::new();
        if plan.is_complete(state) {
            ways.push(end);
        }
        if plan.demands.window.max.is_none_or(|max| state.place < max) {
            let parts = self.algebra.item_parts(plan.shape.case, state.place as usize);
            for (more, next) in self.item_choices(plan, state) {
                let item = self.part_with(&parts, &more);
                if self.is_never(item) {
                    continue;
                }
                let item = self.told_apart(item, plan.shape.is_unique);
                let after = self.layout().after;
                let then = self.state(states, next);
                ways.push(self.algebra.grammar.seq([before, item, after, then]));
            }
        }
        self.algebra.grammar.alt(ways)
    }

    /// The ways to write one item: what it must satisfy beside the schemas of its place, and the state after it.
    fn item_choices(&mut self, plan: &Plan<'_>, state: &State) -> Vec<(Vec<Signed>, State)> {
        let next = State { place: (state.place + 1).min(plan.last_place), ..state.clone() };
        let mut choices = vec![(Vec::new(), next)];
        for (i, &(schema, window)) in plan.demands.contains.iter().enumerate() {
            let mut more = Vec::with_capacity(choices.len() * 2);
            for (parts, next) in choices {
                let (mut counted, mut passed) = (parts.clone(), parts);
                let mut after = next.clone();
                after.counts[i] = (after.counts[i] + 1).min(window.cap());
                let is_full = window.max.is_some_and(|max| state.counts[i] >= max);
                let is_enough = window.max.is_none() && state.counts[i] >= window.min;
                if window.max.is_some() {
                    passed.push(Signed::minus(schema));
                }
                if window.min > 0 || window.max.is_none() {
                    counted.push(Signed::plus(schema));
                }
                if !is_full && !is_enough {
                    more.push((counted, after));
                }
                more.push((passed, next));
            }
            choices = more;
        }
        for (i, &id) in plan.demands.broken.iter().enumerate() {
            if state.broken & (1 << i) != 0 {
                continue;
            }
            let Some(item) = item(&self.algebra.keywords(id), state.place as usize) else { continue };
            // An item that does not break the schema satisfies it, so that every text is parsed in one way only.
            let mut breaking = choices.clone();
            for (parts, next) in &mut breaking {
                parts.push(Signed::minus(item));
                next.broken |= 1 << i;
            }
            for (parts, _) in &mut choices {
                parts.push(Signed::plus(item));
            }
            choices.extend(breaking);
        }
        choices
    }
}
