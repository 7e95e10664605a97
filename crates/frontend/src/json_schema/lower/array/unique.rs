//! `uniqueItems`.
//!
//! If the items come from a small set, which values were used is the state: an array of different values out of `a`, `b`, `c`
//! is a walk through their subsets. Over a large or an infinite set it is left to the engine to remember what was written
//! ([`maskwright_grammar::Expr::Scope`]).

use super::super::super::json::Value;
use maskwright_grammar::{ExprId, RuleId};
use rustc_hash::FxHashMap;

use super::super::super::keywords::Window;
use super::super::super::types::TypeSet;
use super::super::Lowerer;
use super::super::expand::Case;
use super::super::layout::Layout;
use super::super::node::{NodeId, Signed};
use super::super::validate::same;

/// The greatest number of different items that subsets are made of.
const VALUES: usize = 12;

static SCALARS: [Value<'static>; 3] = [Value::Null, Value::Bool(true), Value::Bool(false)];

impl<'s> Lowerer<'s> {
    /// The arrays of a case whose items differ.
    pub(super) fn unique_array(&mut self, case: &Case, prefix: usize, count: Window, plain: bool) -> ExprId {
        let values = if plain { self.place_values(case, prefix, count) } else { None };
        let Some((places, values)) = values else {
            let array = if plain {
                let path = self.path_of(&case.locals);
                self.plain_array(case, prefix, count, path, true)
            } else {
                self.counted_array(case, prefix, count, true)
            };
            return self.grammar.scope(array, []);
        };
        self.subsets(case, &places, &values, count)
    }

    /// The values that each place may have, the last entry for all places beyond, as sets of places in a list of
    /// values; `None` if there are too many.
    fn place_values(
        &mut self,
        case: &Case,
        prefix: usize,
        count: Window,
    ) -> Option<(Vec<u64>, Vec<&'s Value<'s>>)> {
        let mut values: Vec<&'s Value<'s>> = Vec::new();
        let reachable = count.max.map_or(prefix, |max| prefix.min(max as usize));
        let mut places = Vec::with_capacity(reachable + 1);
        for place in 0..=reachable {
            let parts = self.item_parts(case, place);
            let possible = match self.finite(&parts) {
                Some(possible) => possible,
                // A place beyond the greatest count does not matter.
                None if count.max.is_some_and(|max| place >= max as usize) => Vec::new(),
                None => return None,
            };
            let mut set = 0u64;
            for value in possible {
                let known = values.iter().position(|one| same(one, value));
                let at = known.unwrap_or(values.len());
                if known.is_none() {
                    values.push(value);
                }
                if values.len() > VALUES {
                    return None;
                }
                set |= 1 << at;
            }
            places.push(set);
        }
        Some((places, values))
    }

    /// All values of a conjunction, if they are few.
    fn finite(&mut self, parts: &[Signed]) -> Option<Vec<&'s Value<'s>>> {
        let node = self.node_of(parts);
        if node == NodeId::NEVER {
            return Some(Vec::new());
        }
        let members = self.nodes.members(node);
        let mut types = TypeSet::ALL;
        for &member in &members {
            types = types & self.types_of(member, 8);
        }
        let mut found: Vec<&'s Value<'s>> = Vec::new();
        for value in &SCALARS {
            if types.meets(TypeSet::of(value)) && self.satisfies(value, &members) {
                found.push(value);
            }
        }
        for kind in [TypeSet::STRING, TypeSet::NUMBER, TypeSet::ARRAY, TypeSet::OBJECT] {
            if !types.meets(kind) {
                continue;
            }
            for case in self.cases(&members, kind)? {
                let id = self.listing(&case)?;
                let values = self.keywords(id).listed().unwrap_or_default();
                for value in values {
                    if TypeSet::of(value).meets(kind) && self.satisfies(value, &members) {
                        found.push(value);
                    }
                    if found.len() > 4 * VALUES {
                        return None;
                    }
                }
            }
        }
        Some(found)
    }

    fn subsets(&mut self, case: &Case, places: &[u64], values: &[&'s Value<'s>], count: Window) -> ExprId {
        let Layout { array_start, array_empty_end, array_end, enter, comma, after, .. } = self.layout();
        let path = self.path_of(&case.locals);
        let literals: Vec<ExprId> = values
            .iter()
            .map(|value| {
                let depth = self.depth;
                self.depth += u32::from(self.layout.is_layered());
                let literal = self.literal(value, path, "enum");
                self.depth = depth;
                literal
            })
            .collect();
        let mut rules: FxHashMap<u64, RuleId> = FxHashMap::default();
        // How many items were written is the size of the subset.
        let mut work: Vec<(u64, Option<RuleId>)> = vec![(0, None)];
        let mut first = self.grammar.never();
        while let Some((used, rule)) = work.pop() {
            let written = used.count_ones();
            let mut ways = Vec::new();
            if count.holds(written as usize) {
                ways.push(if written == 0 { array_empty_end } else { array_end });
            }
            if count.max.is_none_or(|max| written < max) {
                let place = places.get(written as usize).or(places.last()).copied().unwrap_or(0);
                for (at, &literal) in literals.iter().enumerate() {
                    let bit = 1 << at;
                    if place & bit == 0 || used & bit != 0 {
                        continue;
                    }
                    let next = used | bit;
                    let then = *rules.entry(next).or_insert_with(|| {
                        let rule = self.grammar.declare("items");
                        work.push((next, Some(rule)));
                        rule
                    });
                    let then = self.grammar.rule(then);
                    let before = if written == 0 { enter } else { comma };
                    ways.push(self.grammar.seq([before, literal, after, then]));
                }
            }
            let body = self.grammar.alt(ways);
            match rule {
                Some(rule) => {
                    self.count_rule(path);
                    self.grammar.define(rule, body);
                }
                None => first = body,
            }
        }
        self.grammar.seq([array_start, first])
    }
}
