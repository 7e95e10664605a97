//! Arrays whose items are counted: `contains`, and schemas that must not hold.
//!
//! A state is a place in the array, how many items each `contains` has met so far, and which negated schemas
//! are still to be broken. Whether an item meets a `contains` is a choice between two nodes, `item ∧ c` and `item ∧ ¬c`. Where
//! only a least number is asked for, an item need not be counted, so the second is simply `item`; where only a
//! greatest one is, an item may be counted for nothing, so the first is.
//!
//! A negated schema is broken by one item that its `items` forbids: another choice. What it says about
//! counts and about `contains` is broken by the opposite count, which makes a case of its own.

use maskwright_grammar::{ExprId, RuleId};
use rustc_hash::FxHashMap;

use super::super::super::keywords::Window;
use super::super::super::schemas::{SchemaId, Step};
use super::super::Lowerer;
use super::super::expand::Case;
use super::super::layout::Layout;
use super::super::node::Signed;

/// What is asked of the items as a whole.
#[derive(Clone, Debug, Default)]
struct Demands {
    window: Window,
    /// How many items must satisfy a schema.
    contains: Vec<(SchemaId, Window)>,
    /// Schemas that some item must break.
    broken: Vec<SchemaId>,
}

/// How far an array is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    place: u32,
    counts: Vec<u32>,
    /// Which of the demands for a broken schema are met.
    broken: u64,
}

/// An array in the making.
struct Build<'c> {
    case: &'c Case,
    demands: Demands,
    /// From this place on, items and the rest of the state do not depend on the place.
    last_place: u32,
    rules: FxHashMap<State, RuleId>,
    work: Vec<(State, RuleId)>,
    /// Whether the items must differ.
    unique: bool,
}

impl Lowerer<'_> {
    /// The arrays of a case with demands on the items as a whole.
    pub(super) fn counted_array(
        &mut self,
        case: &Case,
        prefix: usize,
        count: Window,
        unique: bool,
    ) -> ExprId {
        let path = self.path_of(&case.locals);
        let Some(demands) = self.demands(case, count) else { return self.grammar.never() };
        let mut ways = Vec::with_capacity(demands.len());
        for demands in demands {
            ways.push(self.demanded(case, prefix, demands, unique));
        }
        let expr = self.grammar.alt(ways);
        if self.is_never(expr) {
            return self.nothing(path, "", "no array satisfies these keywords together");
        }
        expr
    }

    /// The demands of a case: several, if a negated schema can be broken in several ways. `None` after a problem.
    fn demands(&mut self, case: &Case, window: Window) -> Option<Vec<Demands>> {
        let mut all = vec![Demands { window, ..Demands::default() }];
        for local in &case.locals {
            let keywords = self.keywords(local.id);
            let contains = keywords.contains.map(|value| {
                (self.child(local.id, value, Step::Keyword("contains")), keywords.contains_count)
            });
            if !local.negative {
                for demands in &mut all {
                    demands.contains.extend(contains);
                }
                continue;
            }
            let mut ways: Vec<Demands> = Vec::new();
            for demands in &all {
                if keywords.rest.is_some() || !keywords.prefix.0.is_empty() {
                    let mut way = demands.clone();
                    way.broken.push(local.id);
                    ways.push(way);
                }
                for window in outside(keywords.item_count) {
                    let mut way = demands.clone();
                    way.window = way.window.and(window);
                    ways.push(way);
                }
                if let Some((schema, counts)) = contains {
                    for window in outside(counts) {
                        let mut way = demands.clone();
                        way.contains.push((schema, window));
                        ways.push(way);
                    }
                }
            }
            if keywords.unique {
                let message = "that items repeat (a negated `uniqueItems`) cannot be enforced".to_owned();
                let help = "negate the other keywords by hand";
                if !self.unenforceable(self.schemas.path(local.id), "uniqueItems", message, help) {
                    return None;
                }
            }
            all = ways;
        }
        all.retain(|demands| !demands.window.is_empty());
        Some(all)
    }

    fn demanded(&mut self, case: &Case, prefix: usize, demands: Demands, unique: bool) -> ExprId {
        let Layout { array_start, array_empty_end, enter, .. } = self.layout();
        let path = self.path_of(&case.locals);
        // Every place up to the greatest one that a bound names is a place of its own.
        let mut last_place = u32::try_from(prefix).unwrap_or(u32::MAX);
        for &id in &demands.broken {
            last_place = last_place.max(self.keywords(id).prefix.0.len() as u32);
        }
        last_place = last_place.max(demands.window.min);
        last_place = last_place.max(demands.window.max.map_or(0, |max| max.saturating_add(1)));
        let limit = self.context.options.limits.states;
        let counts = demands.contains.iter().map(|(_, window)| cap(*window) as usize + 1);
        let states = counts.fold(last_place as usize + 1, usize::saturating_mul);
        if states > limit || demands.broken.len() > 16 {
            let message = format!("counting the items takes more than {limit} states");
            self.exceed("states", path, "", message);
            return self.grammar.never();
        }
        let start = State { place: 0, counts: vec![0; demands.contains.len()], broken: 0 };
        let (rules, work) = (FxHashMap::default(), Vec::new());
        let mut build = Build { case, demands, last_place, rules, work, unique };
        let first = self.next_items(&mut build, &start, enter, array_empty_end);
        while let Some((state, rule)) = build.work.pop() {
            let layout = self.layout();
            let body = self.next_items(&mut build, &state, layout.comma, layout.array_end);
            self.grammar.define(rule, body);
            self.state_count += 1;
            if self.state_count > limit.saturating_mul(10) {
                self.exceed("states", path, "", format!("counting the items takes more than {limit} states"));
            }
            if self.is_halted() {
                return self.grammar.never();
            }
        }
        self.grammar.seq([array_start, first])
    }

    /// What may stand in a state: another item, or the end.
    fn next_items(&mut self, build: &mut Build<'_>, state: &State, before: ExprId, end: ExprId) -> ExprId {
        let mut ways = Vec::new();
        if build.is_complete(state) {
            ways.push(end);
        }
        if build.demands.window.max.is_none_or(|max| state.place < max) {
            let parts = self.item_parts(build.case, state.place as usize);
            for (more, next) in self.item_choices(build, state) {
                let item = self.item_with(&parts, &more);
                if self.is_never(item) {
                    continue;
                }
                let item = self.told_apart(item, build.unique);
                let after = self.layout().after;
                let then = self.items_rule(build, next);
                ways.push(self.grammar.seq([before, item, after, then]));
            }
        }
        self.grammar.alt(ways)
    }

    /// The ways to write one item: what it must satisfy beside its place's schemas, and the state after it.
    fn item_choices(&mut self, build: &Build<'_>, state: &State) -> Vec<(Vec<Signed>, State)> {
        let next = State { place: (state.place + 1).min(build.last_place), ..state.clone() };
        let mut choices = vec![(Vec::new(), next)];
        for (i, &(schema, window)) in build.demands.contains.iter().enumerate() {
            let mut more = Vec::with_capacity(choices.len() * 2);
            for (parts, next) in choices {
                let (mut counted, mut passed) = (parts.clone(), parts);
                let mut after = next.clone();
                after.counts[i] = (after.counts[i] + 1).min(cap(window));
                let full = window.max.is_some_and(|max| state.counts[i] >= max);
                let enough = window.max.is_none() && state.counts[i] >= window.min;
                if window.max.is_some() {
                    passed.push(Signed::minus(schema));
                }
                if window.min > 0 || window.max.is_none() {
                    counted.push(Signed::plus(schema));
                }
                if !full && !enough {
                    more.push((counted, after));
                }
                more.push((passed, next));
            }
            choices = more;
        }
        for (i, &id) in build.demands.broken.iter().enumerate() {
            if state.broken & (1 << i) != 0 {
                continue;
            }
            let keywords = self.keywords(id);
            let Some(item) = self.item(id, &keywords, state.place as usize) else { continue };
            // An item that does not break the schema satisfies it, so that a text is read in one way only.
            let mut more = choices.clone();
            for (parts, next) in &mut more {
                parts.push(Signed::minus(item));
                next.broken |= 1 << i;
            }
            for (parts, _) in &mut choices {
                parts.push(Signed::plus(item));
            }
            choices.extend(more);
        }
        choices
    }

    fn items_rule(&mut self, build: &mut Build<'_>, state: State) -> ExprId {
        if let Some(&rule) = build.rules.get(&state) {
            return self.grammar.rule(rule);
        }
        let rule = self.grammar.declare("items");
        self.count_rule(self.path_of(&build.case.locals));
        build.rules.insert(state.clone(), rule);
        build.work.push((state, rule));
        self.grammar.rule(rule)
    }
}

impl Build<'_> {
    /// Whether an array may end in this state.
    fn is_complete(&self, state: &State) -> bool {
        let met = (self.demands.contains.iter().zip(&state.counts))
            .all(|((_, window), &count)| window.holds(count as usize));
        let broken = state.broken.count_ones() as usize == self.demands.broken.len();
        let count = state.place;
        met && broken
            && count >= self.demands.window.min
            && self.demands.window.max.is_none_or(|max| count <= max)
    }
}

/// Above this many, a count makes no difference.
fn cap(window: Window) -> u32 {
    window.max.map_or(window.min, |max| max.max(window.min))
}

/// The counts outside a window.
pub(in super::super) fn outside(window: Window) -> Vec<Window> {
    let mut windows = Vec::with_capacity(2);
    if window.min > 0 {
        windows.push(Window { min: 0, max: Some(window.min - 1) });
    }
    if let Some(max) = window.max.filter(|max| *max < u32::MAX) {
        windows.push(Window { min: max + 1, max: None });
    }
    windows
}
