//! Arrays: a prefix of single items, then any number of the others, within a window of counts.
//!
//! ```text
//! prefix a, b   rest r   at least 1 item
//!
//! "["  a  after1
//! after1 = "," b after2  |  "]"
//! after2 = ("," r){0,} "]"
//! ```
//!
//! Bounds are left to the repetition: `maxItems: 10000` adds no expressions. What asks for more than that –
//! `contains`, `uniqueItems`, a negated schema – is counted in states: see [`counted`].

mod counted;
mod unique;

use maskwright_grammar::ExprId;

use super::super::keywords::{Keywords, Window};
use super::super::path::PathId;
use super::super::schemas::{SchemaId, Step};
use super::super::types::TypeSet;
use super::Lowerer;
use super::expand::{Case, Unevaluated};
use super::layout::Layout;
use super::node::{NodeId, Signed};
pub(super) use counted::outside;

impl<'s> Lowerer<'s> {
    /// The arrays of a case.
    pub(super) fn array(&mut self, case: &Case) -> ExprId {
        let path = self.path_of(&case.locals);
        let (mut count, mut prefix, mut plain, mut unique) = (Window::default(), 0, true, false);
        for local in &case.locals {
            let keywords = self.keywords(local.id);
            prefix = prefix.max(keywords.prefix.0.len());
            if local.negative {
                plain = false;
                continue;
            }
            count = count.and(keywords.item_count);
            plain &= keywords.contains.is_none();
            unique |= keywords.unique;
        }
        for others in &case.others {
            for &id in &others.contributors {
                prefix = prefix.max(self.keywords(id).prefix.0.len());
            }
        }
        if count.is_empty() {
            return self.nothing(path, "minItems", "`minItems` exceeds `maxItems`, so no array is possible");
        }
        if count.max.is_some_and(|max| max <= 1) {
            unique = false;
        }
        if unique {
            return self.unique_array(case, prefix, count, plain);
        }
        if plain {
            self.plain_array(case, prefix, count, path, false)
        } else {
            self.counted_array(case, prefix, count, false)
        }
    }

    /// An item of an array whose items must differ, if they must.
    fn told_apart(&mut self, item: ExprId, unique: bool) -> ExprId {
        if unique { self.grammar.distinct(item) } else { item }
    }

    /// An array of which every item is right by itself.
    fn plain_array(
        &mut self,
        case: &Case,
        prefix: usize,
        mut count: Window,
        path: PathId,
        unique: bool,
    ) -> ExprId {
        let reachable = count.max.map_or(prefix, |max| prefix.min(max as usize));
        let mut first = Vec::with_capacity(reachable);
        for place in 0..reachable {
            let parts = self.item_parts(case, place);
            let node = self.node_of(&parts);
            let item = self.part(node);
            if self.is_never(item) {
                break;
            }
            first.push(self.told_apart(item, unique));
        }
        let cut_short = first.len() < prefix;
        let rest = if cut_short || count.max.is_some_and(|max| max as usize <= first.len()) {
            self.grammar.never()
        } else {
            let parts = self.item_parts(case, prefix);
            let node = self.node_of(&parts);
            let item = self.part(node);
            self.told_apart(item, unique)
        };
        if self.is_never(rest) {
            // Nothing can stand after the prefix, or at the first place of it that allows nothing.
            let possible = first.len() as u32;
            count.max = Some(count.max.map_or(possible, |max| max.min(possible)));
            if count.is_empty() {
                return self.nothing(path, "minItems", "fewer items than `minItems` are possible");
            }
        }
        self.items(&first, rest, count, path)
    }

    fn items(&mut self, prefix: &[ExprId], rest: ExprId, count: Window, path: PathId) -> ExprId {
        let Layout {
            array_start: start, enter, after: space, comma, array_end: end, array_empty_end, ..
        } = self.layout();
        let next = self.grammar.seq([comma, rest, space]);
        // What follows once `written` items stand there, with the closing bracket.
        let after = |this: &mut Self, written: u32| {
            let min = count.min.saturating_sub(written);
            let max = count.max.map(|max| max.saturating_sub(written));
            let more = this.grammar.repeat(next, min, max);
            this.grammar.seq([more, end])
        };
        let Some((&first, others)) = prefix.split_first() else {
            let more = after(self, 1);
            let some = self.grammar.seq([enter, rest, space, more]);
            let some = if count.max == Some(0) { self.grammar.never() } else { some };
            let body = if count.min == 0 { self.grammar.alt([some, array_empty_end]) } else { some };
            return self.grammar.seq([start, body]);
        };
        // From the last item to the first; the parts of a run that cannot stop are one flat sequence.
        let mut parts = vec![after(self, prefix.len() as u32)];
        for (i, &item) in others.iter().enumerate().rev() {
            parts.extend([space, item, comma]);
            if i + 1 >= count.min as usize {
                let tail = self.grammar.seq(parts.drain(..).rev());
                let tail = self.grammar.alt([tail, end]);
                parts.push(self.defined_rule("items", tail, path));
            }
        }
        parts.extend([space, first, enter]);
        let mut body = self.grammar.seq(parts.into_iter().rev());
        if count.min == 0 {
            body = self.grammar.alt([body, array_empty_end]);
        }
        self.grammar.seq([start, body])
    }

    /// The schema of the item at a place, if one schema says something about it.
    pub(super) fn item(&mut self, id: SchemaId, keywords: &Keywords<'s>, place: usize) -> Option<SchemaId> {
        let (list, keyword) = keywords.prefix;
        if let Some(value) = list.get(place) {
            return Some(if keywords.holds_values {
                self.schemas.constant(id, value)
            } else {
                self.child(id, value, Step::Index(keyword, place))
            });
        }
        let (value, keyword) = keywords.rest?;
        Some(self.child(id, value, Step::Keyword(keyword)))
    }

    /// What the item at a place must satisfy.
    pub(super) fn item_parts(&mut self, case: &Case, place: usize) -> Vec<Signed> {
        let mut parts = Vec::with_capacity(case.locals.len());
        for local in case.locals.iter().filter(|local| !local.negative) {
            let keywords = self.keywords(local.id);
            if let Some(item) = self.item(local.id, &keywords, place) {
                parts.push(Signed::plus(item));
            }
        }
        for others in &case.others {
            if let Some(item) = self.unevaluated_item(others, place) {
                parts.push(Signed::plus(item));
            }
        }
        parts
    }

    /// What `unevaluatedItems` says about a place: its schema, unless the item was evaluated by place; or one of
    /// the schemas of `contains`, whose items are evaluated as well.
    fn unevaluated_item(&mut self, others: &Unevaluated, place: usize) -> Option<SchemaId> {
        let mut contained: Vec<SchemaId> = Vec::new();
        for &id in &others.contributors {
            let keywords = self.keywords(id);
            let inner = id != others.owner && keywords.unevaluated_items.is_some();
            if place < keywords.prefix.0.len() || keywords.rest.is_some() || inner {
                return None;
            }
            if let Some(contains) = keywords.contains
                && self.schemas.dialect_of(id) >= super::super::dialect::Dialect::Draft2020
            {
                contained.push(self.child(id, contains, Step::Keyword("contains")));
            }
        }
        let keywords = self.keywords(others.owner);
        let value = keywords.unevaluated_items?;
        let own = self.child(others.owner, value, Step::Keyword("unevaluatedItems"));
        if contained.is_empty() {
            return Some(own);
        }
        contained.push(own);
        Some(self.schemas.choice(others.owner, contained))
    }

    /// The expression of an item: its parts and some more.
    fn item_with(&mut self, parts: &[Signed], more: &[Signed]) -> ExprId {
        let mut all = parts.to_vec();
        all.extend_from_slice(more);
        let node = self.node_of(&all);
        if node == NodeId::NEVER || self.is_node_clearly_empty(&all) {
            return self.grammar.never();
        }
        self.part(node)
    }

    fn is_node_clearly_empty(&mut self, parts: &[Signed]) -> bool {
        parts.len() > 1 && self.is_clearly_empty(parts, TypeSet::ALL, 3)
    }
}
