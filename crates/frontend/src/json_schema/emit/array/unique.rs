//! `uniqueItems` over few values.
//!
//! If the items come from a small set, the set of used values is the state. An array of different values out of `a`,
//! `b`, `c` is a walk through their subsets, and it is known which of the values satisfy a `contains`. For a large or
//! infinite set, the engine remembers the values that were written ([`maskwright_grammar::Expr::Scope`]).

use std::sync::LazyLock;

use maskwright_grammar::ExprId;

use super::super::super::cases::{Case, KINDS, NodeId, SCALARS, Signed, item};
use super::super::super::json::Value;
use super::super::super::same::same;
use super::super::super::schemas::{SchemaId, Window};
use super::super::super::types::TypeSet;
use super::super::layout::Layout;
use super::super::states::States;
use super::super::{Emitter, NODE_TYPES_DEPTH};
use super::Shape;
use super::counted::{Broken, Demands};

/// The array without items.
static EMPTY: LazyLock<Value<'static>> = LazyLock::new(|| Value::Array(Box::default()));
/// The maximum number of different values whose subsets are states.
const MAX_VALUES: usize = 12;
/// The maximum number of places of a prefix that are examined to bound the number of items.
const MAX_PLACES: usize = 64;

impl<'s> Emitter<'s> {
    /// Returns an array of different values out of few. Returns `None` if there are too many values, or if it is not
    /// easily decided which conditions they satisfy.
    pub(super) fn subset_array(&mut self, shape: Shape<'_>, demands: &Demands) -> Option<ExprId> {
        let shape = Shape { count: demands.window, ..shape };
        let (places, values) = self.place_values(shape)?;
        if values.len() < shape.count.min as usize {
            let why = "fewer different items than `minItems` are possible";
            return Some(self.nothing(shape.path, "minItems", why));
        }
        let is_hopeless = demands.contains.iter().any(|(_, window)| window.is_empty());
        if demands.broken.len() + values.len() > MAX_VALUES || is_hopeless {
            return None;
        }
        let mut few = Few { places, counted: Vec::new(), breaking: Vec::new() };
        for &(schema, window) in &demands.contains {
            let satisfy = (0..few.places.len())
                .map(|place| self.values_at(shape, place, Signed::plus(schema), &values))
                .try_fold(0, |all, some| Some(all | some?))?;
            if satisfy.count_ones() < window.min {
                let why = "fewer different items than `minContains` satisfy `contains`";
                return Some(self.nothing(shape.path, "minContains", why));
            }
            few.counted.push((satisfy, window));
        }
        for broken in &demands.broken {
            let &Broken::Schema(schema) = broken else { return None };
            let breaking = (0..few.places.len()).map(|place| {
                let item = item(&self.algebra.keywords(schema), place);
                item.map_or(Some(0), |item| self.values_at(shape, place, Signed::minus(item), &values))
            });
            few.breaking.push(breaking.collect::<Option<_>>()?);
        }
        Some(self.subsets(shape, &few, &values))
    }

    /// Returns the values that are possible at a place and satisfy one more condition, as bits.
    fn values_at(
        &mut self,
        shape: Shape<'_>,
        place: usize,
        more: Signed,
        values: &[&'s Value<'s>],
    ) -> Option<u64> {
        let mut parts = self.algebra.item_parts(shape.case, place);
        parts.push(more);
        let found = self.finite_values(&parts)?;
        let bit = |(at, value): (usize, &&'s Value<'s>)| {
            if found.iter().any(|one| same(one, value)) { 1 << at } else { 0 }
        };
        Some(values.iter().enumerate().map(bit).sum())
    }

    /// Returns an array of few values in which one value occurs twice. Returns `None` if there are too many values, or
    /// if places differ. The states are sets of used values until one of them is repeated; after that, the items are a
    /// plain repetition.
    pub(super) fn repeated_array_of_few(&mut self, shape: Shape<'_>) -> Option<ExprId> {
        let (places, values) = self.place_values(shape)?;
        let [_] = *places else { return None };
        let Layout { array_start, array_end, enter, comma, after, .. } = self.layout();
        let Shape { count, path, .. } = shape;
        let literal = |value: &&Value<'_>| self.nested(|this| this.literal(value, path, "enum"));
        let literals: Vec<ExprId> = values.iter().map(literal).collect();
        let any = self.algebra.grammar.alt(literals.iter().copied());
        let next = self.algebra.grammar.seq([comma, any, after]);
        let mut states: States<u64> = States::new("items", path);
        let body = |this: &mut Self, states: &mut States<u64>, used: u64, before: ExprId| {
            let written = used.count_ones();
            let mut ways = Vec::new();
            for (at, &literal) in literals.iter().enumerate() {
                let bit = 1 << at;
                let then = if used & bit == 0 {
                    this.state(states, used | bit)
                } else if count.max.is_none_or(|max| written < max) {
                    let Window { min, max } = count.after(written + 1);
                    let more = this.algebra.grammar.repeat(next, min, max);
                    this.algebra.grammar.seq([more, array_end])
                } else {
                    continue;
                };
                ways.push(this.algebra.grammar.seq([before, literal, after, then]));
            }
            this.algebra.grammar.alt(ways)
        };
        let first = body(self, &mut states, 0, enter);
        while let Some((used, rule)) = states.pop() {
            // One more item would be the one that repeats.
            let is_full = count.max.is_some_and(|max| used.count_ones() >= max);
            let expr =
                if is_full { self.algebra.grammar.never() } else { body(self, &mut states, used, comma) };
            self.algebra.grammar.define(rule, expr);
        }
        Some(self.algebra.grammar.seq([array_start, first]))
    }

    /// Returns a list of values and, for each place, the set of those that are possible there, as bits. The last entry
    /// is for all further places. Returns `None` if there are too many values.
    fn place_values(&mut self, shape: Shape<'_>) -> Option<(Vec<u64>, Vec<&'s Value<'s>>)> {
        let Shape { case, prefix, count, .. } = shape;
        let mut values: Vec<&'s Value<'s>> = Vec::new();
        let reachable = count.max.map_or(prefix, |max| prefix.min(max as usize));
        let mut places = Vec::with_capacity(reachable + 1);
        for place in 0..=reachable {
            let parts = self.algebra.item_parts(case, place);
            let possible = match self.finite_values(&parts) {
                Some(possible) => possible,
                // A place beyond the maximum count does not matter.
                None if count.max.is_some_and(|max| place >= max as usize) => Vec::new(),
                None => return None,
            };
            let mut set = 0u64;
            for value in possible {
                let at = place_of(value, &mut values);
                if values.len() > MAX_VALUES {
                    return None;
                }
                set |= 1 << at;
            }
            places.push(set);
        }
        Some((places, values))
    }

    /// Returns all values of a conjunction, if they are few.
    pub(super) fn finite_values(&mut self, parts: &[Signed]) -> Option<Vec<&'s Value<'s>>> {
        let node = self.algebra.node_of(parts);
        if node == NodeId::NEVER {
            return Some(Vec::new());
        }
        let members = self.algebra.members(node);
        let types = self.algebra.types_of_all(&members, NODE_TYPES_DEPTH);
        let mut found: Vec<&'s Value<'s>> = Vec::new();
        found.extend(SCALARS.iter().filter(|value| self.algebra.allows(value, types, &members)));
        for kind in KINDS.into_iter().filter(|&kind| types.meets(kind)) {
            for case in self.algebra.cases(&members, kind)? {
                let count = if kind == TypeSet::ARRAY { self.plain_count(&case) } else { Window::default() };
                if count.max == Some(0) {
                    if self.algebra.allows(&EMPTY, kind, &members) {
                        found.push(&EMPTY);
                    }
                    continue;
                }
                if count.is_empty() {
                    continue;
                }
                let id = self.algebra.listing(&case)?;
                for value in self.algebra.keywords(id).listed().unwrap_or_default() {
                    if self.algebra.allows(value, kind, &members) {
                        found.push(value);
                    }
                    if found.len() > 4 * MAX_VALUES {
                        return None;
                    }
                }
            }
        }
        Some(found)
    }

    /// Returns a window that contains the number of items of every array of a case, from an inexpensive analysis.
    fn plain_count(&mut self, case: &Case) -> Window {
        let (mut count, mut prefix) = (Window::default(), 0);
        for local in case.locals.iter().filter(|local| !local.negative) {
            let keywords = self.algebra.keywords(local.id);
            count = count.and(keywords.item_count);
            prefix = prefix.max(keywords.prefix.len());
        }
        for place in 0..=prefix.min(MAX_PLACES) {
            let item = self.algebra.item_parts(case, place);
            if self.algebra.possible_node_of(&item) == NodeId::NEVER {
                return count.and(Window { min: 0, max: Some(place as u32) });
            }
        }
        count
    }

    /// Checks whether fewer different values satisfy a `contains` than it requires.
    pub(super) fn lacks_values(&mut self, shape: Shape<'_>, schema: SchemaId, least: u32) -> bool {
        if !shape.is_unique || least < 2 || shape.prefix > MAX_PLACES {
            return false;
        }
        let mut different: Vec<&'s Value<'s>> = Vec::new();
        for place in 0..=shape.prefix {
            let mut parts = self.algebra.item_parts(shape.case, place);
            parts.push(Signed::plus(schema));
            let Some(values) = self.finite_values(&parts) else { return false };
            for value in values {
                place_of(value, &mut different);
            }
        }
        different.len() < least as usize
    }

    /// Writes the array state by state. A state is the set of used values, whose size is the number of items, and the
    /// set of broken schemas, both as bits.
    fn subsets(&mut self, shape: Shape<'_>, few: &Few, values: &[&'s Value<'s>]) -> ExprId {
        let Layout { array_start, array_empty_end, array_end, enter, comma, after, .. } = self.layout();
        let Shape { count, path, .. } = shape;
        let literal = |value: &&Value<'_>| self.nested(|this| this.literal(value, path, "enum"));
        let literals: Vec<ExprId> = values.iter().map(literal).collect();
        let mut states: States<(u64, u64)> = States::new("items", path);
        let body = |this: &mut Self, states: &mut States<_>, (used, broken), before: ExprId, end: ExprId| {
            let used: u64 = used;
            let written = used.count_ones();
            let mut ways = Vec::new();
            if count.contains(written as usize) && few.is_complete(used, broken) {
                ways.push(end);
            }
            if count.max.is_none_or(|max| written < max) {
                let place = (written as usize).min(few.places.len() - 1);
                for (at, &literal) in literals.iter().enumerate() {
                    let bit = 1 << at;
                    if few.places[place] & bit != 0 && used & bit == 0 {
                        let breaks = few.broken_by(bit, place);
                        let then = this.state(states, (used | bit, broken | breaks));
                        ways.push(this.algebra.grammar.seq([before, literal, after, then]));
                    }
                }
            }
            this.algebra.grammar.alt(ways)
        };
        let first = body(self, &mut states, (0, 0), enter, array_empty_end);
        while let Some((state, rule)) = states.pop() {
            let expr = body(self, &mut states, state, comma, array_end);
            self.algebra.grammar.define(rule, expr);
        }
        self.algebra.grammar.seq([array_start, first])
    }
}

/// Returns the position of a value in a list of different values, and adds it if it is new.
fn place_of<'s>(value: &'s Value<'s>, different: &mut Vec<&'s Value<'s>>) -> usize {
    different.iter().position(|one| same(one, value)).unwrap_or_else(|| {
        different.push(value);
        different.len() - 1
    })
}

/// The conditions on an array of few values, as sets of bits.
struct Few {
    /// The values that are possible at each place. The last entry is for all further places.
    places: Vec<u64>,
    /// For each `contains`, the values that satisfy it, and how many of them there must be.
    counted: Vec<(u64, Window)>,
    /// For each schema, the values that break it at each place.
    breaking: Vec<Vec<u64>>,
}

impl Few {
    /// Returns the schemas that a value breaks at a place.
    fn broken_by(&self, value: u64, place: usize) -> u64 {
        let breaks = self.breaking.iter().map(|places| u64::from(places[place] & value != 0));
        breaks.enumerate().fold(0, |all, (at, breaks)| all | breaks << at)
    }

    /// Checks whether an array may end that has used these values and broken these schemas.
    fn is_complete(&self, used: u64, broken: u64) -> bool {
        let is_counted =
            |(satisfy, window): &(u64, Window)| window.contains((used & satisfy).count_ones() as usize);
        broken.count_ones() as usize == self.breaking.len() && self.counted.iter().all(is_counted)
    }
}
