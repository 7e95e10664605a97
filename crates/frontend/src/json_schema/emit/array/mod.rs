//! Arrays: a prefix of single items, then any number of others, within a window of counts.
//!
//! ```text
//! prefix a, b   rest r   at least 1 item
//!
//! "["  a  after1
//! after1 = "," b after2  |  "]"
//! after2 = ("," r){0,} "]"
//! ```
//!
//! Bounds become bounds of the repetition: `maxItems: 10000` adds no expressions. Arrays that need more than this shape
//! – `contains`, a negated schema, `uniqueItems` over few values – are written state by state: see [`counted`] and
//! [`unique`].

mod counted;
mod unique;

use maskwright_grammar::{Expr, ExprId};

use super::super::cases::Case;
use super::super::path::PathId;
use super::super::schemas::Window;
use super::Emitter;
use super::layout::Layout;
use counted::Demands;

/// The maximum number of words marked as distinct one by one. More words stay together, because a tree of them is
/// smaller.
const MAX_WORDS: usize = 1_024;

/// The properties that all ways to write an array share.
#[derive(Clone, Copy, Debug)]
struct Shape<'c> {
    case: &'c Case,
    /// The number of items at the start with individual schemas.
    prefix: usize,
    count: Window,
    is_unique: bool,
    path: PathId,
}

impl Emitter<'_> {
    /// Returns the arrays of a case.
    pub(super) fn array(&mut self, case: &Case) -> ExprId {
        let path = self.algebra.path_of(&case.locals);
        let mut shape = Shape { case, prefix: 0, count: Window::default(), is_unique: false, path };
        let mut is_plain = case.unevaluated.iter().all(|one| !one.is_denied);
        for local in &case.locals {
            let keywords = self.algebra.keywords(local.id);
            shape.prefix = shape.prefix.max(keywords.prefix.len());
            if local.negative {
                is_plain = false;
                continue;
            }
            shape.count = shape.count.and(keywords.item_count);
            is_plain &= keywords.contains.is_none();
            shape.is_unique |= keywords.unique;
        }
        for &id in case.unevaluated.iter().flat_map(|unevaluated| &unevaluated.contributors) {
            shape.prefix = shape.prefix.max(self.algebra.keywords(id).prefix.len());
        }
        if shape.count.is_empty() {
            return self.nothing(path, "minItems", "`minItems` exceeds `maxItems`, so no array is possible");
        }
        shape.is_unique &= shape.count.max.is_none_or(|max| max > 1);
        let clashes = self.algebra.context.clash_count;
        let array = if !is_plain {
            self.counted_array(shape)
        } else if shape.is_unique
            && let Some(array) =
                self.subset_array(shape, &Demands { window: shape.count, ..Demands::default() })
        {
            array
        } else {
            let array = self.plain_array(shape);
            self.scope_of(shape, array)
        };
        if self.is_never(array) && self.algebra.context.clash_count == clashes {
            return self.nothing(path, "", "no array satisfies these keywords together");
        }
        array
    }

    /// Wraps an array in a scope, if its items must differ.
    fn scope_of(&mut self, shape: Shape<'_>, array: ExprId) -> ExprId {
        if shape.is_unique { self.algebra.grammar.scope(array, []) } else { array }
    }

    /// Marks an item as distinct, if the items must differ.
    fn marked_distinct(&mut self, item: ExprId, is_unique: bool) -> ExprId {
        if !is_unique {
            return item;
        }
        // If each word is marked separately, the engine knows which words are still unused.
        let words = self.words_of(item);
        if words.is_empty() {
            return self.algebra.grammar.distinct(item);
        }
        let words: Vec<ExprId> = words.into_iter().map(|word| self.algebra.grammar.distinct(word)).collect();
        self.algebra.grammar.alt(words)
    }

    /// Returns the words of which an item is one. Returns none if it may be something else, or if there are too many.
    fn words_of(&mut self, item: ExprId) -> Vec<ExprId> {
        let is_word = |part: &ExprId| {
            let scalar = |first: u8| first.is_ascii_alphanumeric() || matches!(first, b'"' | b'-');
            matches!(self.algebra.grammar.expr(*part), Expr::Bytes(bytes) if bytes.first().copied().is_some_and(scalar))
        };
        match *self.algebra.grammar.expr(item) {
            Expr::Alt(ref parts) if parts.len() <= MAX_WORDS && parts.iter().all(is_word) => parts.to_vec(),
            Expr::JsonString(language) => self.few_strings(language),
            _ => Vec::new(),
        }
    }

    /// Returns an array with conditions on single items only.
    fn plain_array(&mut self, Shape { case, prefix, mut count, is_unique, path }: Shape<'_>) -> ExprId {
        let reachable = count.max.map_or(prefix, |max| prefix.min(max as usize));
        let mut first = Vec::with_capacity(reachable);
        for place in 0..reachable {
            let item = self.item(case, place);
            if self.is_never(item) {
                break;
            }
            first.push(self.marked_distinct(item, is_unique));
        }
        let has_rest = first.len() == prefix && count.max.is_none_or(|max| max as usize > first.len());
        let rest = if has_rest {
            let item = self.item(case, prefix);
            self.marked_distinct(item, is_unique)
        } else {
            self.algebra.grammar.never()
        };
        if self.is_never(rest) {
            // There are no items after the prefix, or after its first impossible item.
            let possible = first.len() as u32;
            count.max = Some(count.max.map_or(possible, |max| max.min(possible)));
            if count.is_empty() {
                return self.nothing(path, "minItems", "fewer items than `minItems` are possible");
            }
        }
        self.items(&first, rest, count, path)
    }

    /// Returns the item at index `place`.
    fn item(&mut self, case: &Case, place: usize) -> ExprId {
        let parts = self.algebra.item_parts(case, place);
        let node = self.algebra.node_of(&parts);
        self.part(node)
    }

    fn items(&mut self, prefix: &[ExprId], rest: ExprId, count: Window, path: PathId) -> ExprId {
        let Layout {
            array_start: start, enter, after: space, comma, array_end: end, array_empty_end, ..
        } = self.layout();
        let next = self.algebra.grammar.seq([comma, rest, space]);
        // Returns the continuation after `written` items, including the closing bracket.
        let after = |this: &mut Self, written: u32| {
            let Window { min, max } = count.after(written);
            let more = this.algebra.grammar.repeat(next, min, max);
            this.algebra.grammar.seq([more, end])
        };
        let Some((&first, others)) = prefix.split_first() else {
            let more = after(self, 1);
            let some = self.algebra.grammar.seq([enter, rest, space, more]);
            let some = if count.max == Some(0) { self.algebra.grammar.never() } else { some };
            let body = if count.min == 0 { self.algebra.grammar.alt([some, array_empty_end]) } else { some };
            return self.algebra.grammar.seq([start, body]);
        };
        // Built from the last item to the first. A run of required items is one flat sequence.
        let mut parts = vec![after(self, prefix.len() as u32)];
        for (i, &item) in others.iter().enumerate().rev() {
            parts.extend([space, item, comma]);
            if i + 1 >= count.min as usize {
                let tail = self.algebra.grammar.seq(parts.drain(..).rev());
                let tail = self.algebra.grammar.alt([tail, end]);
                parts.push(self.defined_rule("items", tail, path));
            }
        }
        parts.extend([space, first, enter]);
        let mut body = self.algebra.grammar.seq(parts.into_iter().rev());
        if count.min == 0 {
            body = self.algebra.grammar.alt([body, array_empty_end]);
        }
        self.algebra.grammar.seq([start, body])
    }
}
