//! Arrays whose items are counted: `contains`, and negated schemas.
//!
//! A state is a place in the array, the number of items that each `contains` has matched, and the negated schemas that
//! are broken so far. Whether an item matches a `contains` is a choice between two nodes, `item ∧ c` and `item ∧ ¬c`.
//! If there is only a minimum, an item need not be counted, so the second node is simply `item`. If there is only a
//! maximum, an item may always be counted, so the first node is simply `item`.
//!
//! If an item may be counted or not, one text has two readings, and k such schemas make 2ᵏ. Where there are more than a
//! few, and each can be negated at little cost, the items are partitioned into [kinds](Kind) by all of them,
//! `item ∧ c ∧ ¬d`. Then every text has one reading, and only combinations that some item satisfies make states. Ten
//! bounds 1, 2, …, 10 make eleven.
//!
//! Once everything is matched and broken, the remaining items are a plain repetition. So is a single `contains` in an
//! array without other conditions. In these cases bounds of thousands add no states.
//!
//! A negated schema is *broken* by one item that its `items` forbids, which is another choice. Its counts and its
//! `contains` are broken by the opposite count, which makes a separate case.

use maskwright_grammar::ExprId;
use rustc_hash::FxHashMap;

use super::super::super::cases::{NodeId, Signed, Unevaluated, item};
use super::super::super::json::Value;
use super::super::super::schemas::{SchemaId, Window};
use super::super::super::types::TypeSet;
use super::super::Emitter;
use super::super::layout::Layout;
use super::super::states::States;
use super::Shape;

/// The maximum number of negated schemas of one array that must be broken item by item.
const MAX_BROKEN_SCHEMAS: usize = 16;

/// The maximum number of ways to write one item.
const MAX_ITEM_WAYS: usize = 1_024;

/// The number of `contains` with only a minimum from which items are partitioned into kinds.
const MIN_PARTITIONED_CONTAINS: usize = 4;

/// The maximum number of `contains` for which items are partitioned: all combinations of two are examined.
const MAX_PARTITIONED_CONTAINS: usize = 64;

/// The maximum number of kinds into which items are partitioned.
const MAX_KINDS: usize = 256;

/// The count from which the items of a single `contains` are a repetition instead of states.
const MIN_REPEATED: u32 = 32;

/// Conditions on a whole array.
#[derive(Clone, Debug, Default)]
pub(super) struct Demands {
    pub(super) window: Window,
    /// For each schema, how many items must satisfy it.
    pub(super) contains: Vec<(SchemaId, Window)>,
    /// Schemas that some item must break.
    pub(super) broken: Vec<Broken>,
    /// The schema whose `uniqueItems` must be broken by two equal items.
    pub(super) repeated: Option<SchemaId>,
}

/// A condition that some item must break.
#[derive(Clone, Debug)]
pub(super) enum Broken {
    Schema(SchemaId),
    /// `unevaluatedItems`, broken by an item that is not evaluated.
    Unevaluated(Unevaluated),
}

/// A state between two items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    place: u32,
    /// For each `contains`, the number of items that matched.
    counts: Vec<u32>,
    /// The broken schemas, as bits.
    broken: u64,
}

/// An array under construction.
struct Plan<'c> {
    shape: Shape<'c>,
    demands: Demands,
    /// The place from which on all places are alike.
    last_place: u32,
    /// The kinds of items at each place, if items are partitioned. The last entry is for all further places.
    kinds: Option<Vec<Vec<Kind>>>,
}

/// The items at a place that satisfy the same `contains`.
#[derive(Clone, Debug)]
struct Kind {
    item: ExprId,
    /// For each `contains`, whether the items satisfy it.
    satisfies: Vec<bool>,
}

impl Plan<'_> {
    /// Checks whether an array may end in this state.
    fn is_complete(&self, state: &State) -> bool {
        let mut counts = self.demands.contains.iter().zip(&state.counts);
        counts.all(|((_, window), &count)| window.contains(count as usize))
            && state.broken.count_ones() as usize == self.demands.broken.len()
            && self.demands.window.contains(state.place as usize)
    }

    /// Checks whether only the number of items matters from this state on.
    fn is_free(&self, state: &State) -> bool {
        let mut counts = self.demands.contains.iter().zip(&state.counts);
        counts.all(|((_, window), &count)| window.max.is_none() && count >= window.min)
            && state.broken.count_ones() as usize == self.demands.broken.len()
            && state.place as usize >= self.shape.prefix
    }
}

impl Emitter<'_> {
    /// Returns an array with conditions that concern several items.
    pub(super) fn counted_array(&mut self, shape: Shape<'_>) -> ExprId {
        // Arrays of different values out of few need no scope.
        let (mut few, mut others) = (Vec::new(), Vec::new());
        for demands in self.array_demands(shape) {
            let is_unique = shape.is_unique && demands.repeated.is_none();
            match if is_unique { self.subset_array(shape, &demands) } else { None } {
                Some(array) => few.push(array),
                None => others.push(self.demanded_array(shape, demands)),
            }
        }
        let others = self.algebra.grammar.alt(others);
        few.push(self.scope_of(shape, others));
        self.algebra.grammar.alt(few)
    }

    /// Returns the alternative demands of a case. There are several if a negated schema can be broken in several ways.
    fn array_demands(&mut self, shape: Shape<'_>) -> Vec<Demands> {
        let denied = shape.case.unevaluated.iter().filter(|one| one.is_denied).cloned();
        let broken = denied.map(Broken::Unevaluated).collect();
        let mut all = vec![Demands { window: shape.count, broken, ..Demands::default() }];
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
                    add(&|way| way.broken.push(Broken::Schema(local.id)));
                }
                for window in keywords.item_count.complement() {
                    add(&|way| way.window = way.window.and(window));
                }
                if let Some((schema, counts)) = contains {
                    counts.complement().for_each(|window| add(&|way| way.contains.push((schema, window))));
                }
            }
            // If the items must differ, or there are fewer than two, no item repeats.
            if keywords.unique && !shape.is_unique {
                for demands in all.iter().filter(|demands| demands.window.max.is_none_or(|max| max > 1)) {
                    ways.push(Demands { repeated: Some(local.id), ..demands.clone() });
                }
            }
            all = ways;
        }
        all.retain(|demands| !demands.window.is_empty());
        all
    }

    /// Returns an array in which an item repeats. States can express this if the items come from few values and nothing
    /// else is counted.
    fn repeating_array(&mut self, shape: Shape<'_>, demands: &Demands, id: SchemaId) -> ExprId {
        let shape = Shape { count: demands.window, ..shape };
        if demands.contains.is_empty()
            && demands.broken.is_empty()
            && let Some(array) = self.repeated_array_of_few(shape)
        {
            return array;
        }
        let message =
            "a negated `uniqueItems` (some items repeat) can be enforced only if the items come from few values"
                .to_owned();
        let help = "list the values of the items, or write the negation of the other keywords out";
        self.algebra.context.unenforceable(self.algebra.path(id), "uniqueItems", message, help);
        self.algebra.grammar.never()
    }

    fn demanded_array(&mut self, shape: Shape<'_>, demands: Demands) -> ExprId {
        if let Some(id) = demands.repeated {
            return self.repeating_array(shape, &demands, id);
        }
        let Layout { array_start, array_empty_end, enter, comma, array_end, .. } = self.layout();
        // Every place up to the greatest one that a bound names has its own states.
        let mut last_place = u32::try_from(shape.prefix).unwrap_or(u32::MAX);
        for broken in &demands.broken {
            if let Broken::Schema(id) = *broken {
                last_place = last_place.max(self.algebra.keywords(id).prefix.len() as u32);
            }
        }
        last_place = last_place.max(demands.window.min);
        last_place = last_place.max(demands.window.max.map_or(0, |max| max.saturating_add(1)));
        if demands.contains.iter().any(|(_, window)| window.is_empty()) {
            return self.algebra.grammar.never();
        }
        if demands.contains.iter().any(|(schema, window)| self.lacks_values(shape, *schema, window.min)) {
            let why = "fewer different items than `minContains` satisfy `contains`";
            return self.nothing(shape.path, "minContains", why);
        }
        if let ([only], []) = (&*demands.contains, &*demands.broken)
            && shape.prefix == 0
            && demands.window.max.is_none()
            && demands.window.min <= only.1.min
            && only.1.cap() >= MIN_REPEATED
        {
            return self.repeated_array(shape, *only);
        }
        if demands.broken.len() > MAX_BROKEN_SCHEMAS {
            let message = format!("more than {MAX_BROKEN_SCHEMAS} schemas of one array are negated");
            self.algebra.context.halt(shape.path, "", message, "negate fewer schemas of this array");
            return self.algebra.grammar.never();
        }
        // Here a state is a rule with few expressions, so more states are allowed.
        let limit = self.algebra.context.options.limits.states.saturating_mul(4);
        let parts = self.algebra.item_parts(shape.case, shape.prefix);
        let kinds = self.kinds(shape, &demands);
        let mut least = 1usize;
        for (at, &(schema, window)) in demands.contains.iter().enumerate() {
            // Without a maximum, an item may be counted for one schema only, if some item satisfies only that schema.
            let counted = [&*parts, &[Signed::plus(schema)]].concat();
            let is_alone = |kind: &Kind| {
                kind.satisfies.iter().enumerate().all(|(other, is_counted)| *is_counted == (other == at))
            };
            if kinds
                .as_ref()
                .is_some_and(|kinds| !kinds.last().is_some_and(|kinds| kinds.iter().any(is_alone)))
            {
                continue;
            }
            if window.max.is_none() && self.algebra.possible_node_of(&counted) != NodeId::NEVER {
                least = least.saturating_mul(window.min as usize + 1);
            }
        }
        if least > limit {
            let message = format!("counting the items takes more than {limit} states");
            self.algebra.context.exceed("states", shape.path, "contains", message);
            return self.algebra.grammar.never();
        }
        let start = State { place: 0, counts: vec![0; demands.contains.len()], broken: 0 };
        let plan = Plan { shape, demands, last_place, kinds };
        let mut states = States::new("items", shape.path);
        let first = self.items_state(&plan, &mut states, &start, enter, array_empty_end);
        let is_done = self.write_states(&mut states, limit, "counting the items", |this, states, state| {
            if plan.is_free(state) {
                return this.free_items(&plan, state.place);
            }
            this.items_state(&plan, states, state, comma, array_end)
        });
        if !is_done {
            return self.algebra.grammar.never();
        }
        self.algebra.grammar.seq([array_start, first])
    }

    /// Partitions the items of each place by all `contains`. Returns `None` if this is not simple, or if there are too
    /// many kinds.
    fn kinds(&mut self, shape: Shape<'_>, demands: &Demands) -> Option<Vec<Vec<Kind>>> {
        let least = demands.contains.iter().filter(|(_, window)| window.max.is_none() && window.min > 0);
        if least.count() < MIN_PARTITIONED_CONTAINS
            || demands.contains.len() > MAX_PARTITIONED_CONTAINS
            || !demands.broken.is_empty()
            || !demands.contains.iter().all(|(id, _)| self.is_simple(*id, 1))
        {
            return None;
        }
        (0..=shape.prefix).map(|place| self.kinds_at(shape, demands, place)).collect()
    }

    fn kinds_at(&mut self, shape: Shape<'_>, demands: &Demands, place: usize) -> Option<Vec<Kind>> {
        let own = self.algebra.item_parts(shape.case, place);
        let mut kinds = vec![own.clone()];
        for &(schema, _) in &demands.contains {
            let both = [Signed::plus(schema), Signed::minus(schema)];
            kinds = kinds.iter().flat_map(|parts| both.map(|sign| [&**parts, &[sign]].concat())).collect();
            kinds.retain(|parts| self.algebra.possible_node_of(parts) != NodeId::NEVER);
            if kinds.len() > MAX_KINDS {
                // Several readings of an object are cheap, because they differ from some key on.
                if !demands.contains.iter().all(|(id, _)| self.is_about_objects(*id)) {
                    let message = format!(
                        "the `contains` of one array part its items into more than {MAX_KINDS} kinds"
                    );
                    let help = "use fewer `contains`, or such that exclude one another";
                    self.algebra.context.halt(shape.path, "contains", message, help);
                }
                return None;
            }
        }
        let mut found = Vec::with_capacity(kinds.len());
        for parts in kinds {
            let signs = &parts[own.len()..];
            let item = self.part_with(&own, signs);
            if !self.is_never(item) {
                let item = self.marked_distinct(item, shape.is_unique);
                found.push(Kind { item, satisfies: signs.iter().map(|sign| !sign.negative).collect() });
            }
        }
        Some(found)
    }

    /// Adds the ways to write another item, by kind. Kinds that lead to the same state are joined.
    fn items_of_kinds(
        &mut self,
        plan: &Plan<'_>,
        kinds: &[Vec<Kind>],
        states: &mut States<State>,
        state: &State,
        before: ExprId,
        ways: &mut Vec<ExprId>,
    ) {
        let place = (state.place as usize).min(plan.shape.prefix);
        let mut items: Vec<(State, Vec<ExprId>)> = Vec::new();
        let mut known: FxHashMap<State, usize> = FxHashMap::default();
        for kind in &kinds[place] {
            let mut next = State { place: (state.place + 1).min(plan.last_place), ..state.clone() };
            let mut is_allowed = true;
            for ((count, (_, window)), _) in (next.counts.iter_mut().zip(&plan.demands.contains))
                .zip(&kind.satisfies)
                .filter(|(_, is_counted)| **is_counted)
            {
                is_allowed &= window.max.is_none_or(|max| *count < max);
                *count = (*count + 1).min(window.cap());
            }
            if is_allowed {
                let at = *known.entry(next.clone()).or_insert(items.len());
                if at == items.len() {
                    items.push((next, Vec::new()));
                }
                items[at].1.push(kind.item);
            }
        }
        let after = self.layout().after;
        for (next, items) in items {
            let item = self.algebra.grammar.alt(items);
            let then = self.state(states, next);
            ways.push(self.algebra.grammar.seq([before, item, after, then]));
        }
    }

    fn is_about_objects(&mut self, id: SchemaId) -> bool {
        let keywords = self.algebra.keywords(id);
        !keywords.asserted.meets(TypeSet::STRING)
            && !keywords.asserted.meets(TypeSet::NUMBER)
            && keywords.listed().is_none()
    }

    /// Checks whether the negation of a schema is a single condition on a string, a number, a type, or one key of an
    /// object.
    fn is_simple(&mut self, id: SchemaId, depth: usize) -> bool {
        let Some(id) = self.algebra.followed(id) else { return false };
        let keywords = self.algebra.keywords(id);
        let is_scalar = |value: &Value<'_>| !matches!(value, Value::Array(_) | Value::Object(_));
        if !keywords.is_plain()
            || keywords.format.is_some()
            || keywords.asserted.meets(TypeSet::ARRAY)
            || !keywords.listed().is_none_or(|values| values.iter().all(is_scalar))
        {
            return false;
        }
        if !keywords.asserted.meets(TypeSet::OBJECT) {
            return true;
        }
        let is_one_key = keywords.pattern_properties.is_empty()
            && keywords.additional.is_none()
            && keywords.property_names.is_none()
            && keywords.property_count.is_open()
            && keywords.dependent_required.is_empty()
            && keywords.properties.len() <= 1
            && keywords.required.len() <= 1
            && keywords
                .required
                .iter()
                .all(|name| keywords.properties.is_empty() || keywords.properties.contains_key(name));
        depth > 0
            && is_one_key
            && keywords.properties.iter().all(|(_, schema)| self.is_simple(schema, depth - 1))
    }

    /// Returns the continuations of a state: another item, or the end.
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
            if let Some(kinds) = &plan.kinds {
                self.items_of_kinds(plan, kinds, states, state, before, &mut ways);
                return self.algebra.grammar.alt(ways);
            }
            let parts = self.algebra.item_parts(plan.shape.case, state.place as usize);
            for (more, next) in self.item_choices(plan, state, &parts) {
                let item = self.part_with(&parts, &more);
                if self.is_never(item) {
                    continue;
                }
                let item = self.marked_distinct(item, plan.shape.is_unique);
                let after = self.layout().after;
                let then = self.state(states, next);
                ways.push(self.algebra.grammar.seq([before, item, after, then]));
            }
        }
        self.algebra.grammar.alt(ways)
    }

    /// Returns the continuations where only the number of items matters: more items, and the end.
    fn free_items(&mut self, plan: &Plan<'_>, place: u32) -> ExprId {
        let Layout { comma, after, array_end, .. } = self.layout();
        let least = plan.demands.window.after(place).min as usize;
        // PERF: one item is possible, or its expression shows that none is.
        if plan.shape.is_unique && least > 1 {
            let parts = self.algebra.item_parts(plan.shape.case, place as usize);
            if self.finite_values(&parts).is_some_and(|values| values.len() < least) {
                return self.algebra.grammar.never();
            }
        }
        let item = self.item(plan.shape.case, place as usize);
        let item = self.marked_distinct(item, plan.shape.is_unique);
        let next = self.algebra.grammar.seq([comma, item, after]);
        let Window { min, max } = plan.demands.window.after(place);
        let more = self.algebra.grammar.repeat(next, min, max);
        self.algebra.grammar.seq([more, array_end])
    }

    /// Returns an array with one `contains` and no other condition: each round skips some items and then counts one.
    fn repeated_array(&mut self, shape: Shape<'_>, (schema, window): (SchemaId, Window)) -> ExprId {
        let Layout { array_start, array_empty_end, enter, comma, after, array_end, .. } = self.layout();
        let parts = self.algebra.item_parts(shape.case, 0);
        let denied = [Signed::minus(schema)];
        let passed = self.part_with(&parts, if window.max.is_some() { &denied } else { &[] });
        let counted = self.part_with(&parts, &[Signed::plus(schema)]);
        let [passed, counted] = [passed, counted].map(|item| self.marked_distinct(item, shape.is_unique));
        let next_passed = self.algebra.grammar.seq([comma, passed, after]);
        let next_passed = self.algebra.grammar.star(next_passed);
        let round = self.algebra.grammar.seq([next_passed, comma, counted, after]);
        let mut ways = Vec::with_capacity(3);
        let items = [(passed, window), (counted, window.after(1))];
        for (first, Window { min, max }) in items {
            let rounds = self.algebra.grammar.repeat(round, min, max);
            ways.push(self.algebra.grammar.seq([enter, first, after, rounds, next_passed, array_end]));
        }
        if window.min == 0 {
            ways.push(array_empty_end);
        }
        let body = self.algebra.grammar.alt(ways);
        self.algebra.grammar.seq([array_start, body])
    }

    /// Returns the ways to write one item: the schemas that it must satisfy in addition to those of its place, and the
    /// state after it. Clearly empty ways are left out.
    fn item_choices(&mut self, plan: &Plan<'_>, state: &State, own: &[Signed]) -> Vec<(Vec<Signed>, State)> {
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
            choices = self.possible_choices(plan, own, more);
        }
        for (i, broken) in plan.demands.broken.iter().enumerate() {
            if state.broken & (1 << i) != 0 {
                continue;
            }
            let place = state.place as usize;
            let schema = match broken {
                Broken::Schema(id) => item(&self.algebra.keywords(*id), place),
                Broken::Unevaluated(denied) => self.algebra.unevaluated_item(denied, place),
            };
            let Some(item) = schema else { continue };
            // An item that does not break the schema must satisfy it, so that every text is parsed in one way only. The
            // exception is a schema with a narrow format, where some values can do neither.
            let mut breaking = choices.clone();
            for (parts, next) in &mut breaking {
                parts.push(Signed::minus(item));
                next.broken |= 1 << i;
            }
            if !self.algebra.has_narrow_format(item) {
                for (parts, _) in &mut choices {
                    parts.push(Signed::plus(item));
                }
            }
            choices.extend(breaking);
            choices = self.possible_choices(plan, own, choices);
        }
        choices
    }

    fn possible_choices(
        &mut self,
        plan: &Plan<'_>,
        own: &[Signed],
        mut choices: Vec<(Vec<Signed>, State)>,
    ) -> Vec<(Vec<Signed>, State)> {
        choices.retain(|(parts, _)| {
            let node = self.algebra.possible_node_of(&[own, parts].concat());
            node != NodeId::NEVER
        });
        if choices.len() > MAX_ITEM_WAYS {
            let message =
                format!("the conditions on the items split one item into more than {MAX_ITEM_WAYS} ways");
            let help = "use fewer `contains`, and negate fewer schemas of this array";
            self.algebra.context.halt(plan.shape.path, "", message, help);
            choices.clear();
        }
        choices
    }
}
