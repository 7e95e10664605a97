//! Arrays: a prefix of single items, then any number of the others, within a window of counts.
//!
//! ```text
//! prefix a, b   rest r   at least 1 item
//!
//! "[" sp  a sp  after1
//! after1 = "," sp b sp after2  |  "]"
//! after2 = ("," sp r sp){0,} "]"
//! ```
//!
//! The white space stands *after* an item, so that a comma or a bracket decides what comes next. Bounds are left
//! to the repetition: `maxItems: 10000` adds no expressions.

use maskwright_grammar::ExprId;

use super::super::keywords::{Keywords, Window};
use super::super::path::PathId;
use super::Lowerer;

impl<'s> Lowerer<'s> {
    /// The arrays that the keywords allow.
    pub(super) fn array(&mut self, keywords: &Keywords<'s>, path: PathId) -> ExprId {
        let mut count = keywords.item_count;
        if count.is_empty() {
            return self.nothing(path, "minItems", "`minItems` exceeds `maxItems`, so no array is possible");
        }
        let prefix = self.prefix(keywords, path, count.max);
        let rest = self.rest(keywords, path, prefix.len(), count.max);
        let never = self.grammar.never();
        if rest == never {
            // Nothing can stand after the prefix, or at the first place of it that allows nothing.
            let possible = prefix.len() as u32;
            count.max = Some(count.max.map_or(possible, |max| max.min(possible)));
            if count.is_empty() {
                return self.nothing(path, "minItems", "fewer items than `minItems` are possible");
            }
        }
        self.items(&prefix, rest, count, path)
    }

    /// The first items, up to the first that cannot be written.
    fn prefix(&mut self, keywords: &Keywords<'s>, path: PathId, max: Option<u32>) -> Vec<ExprId> {
        let (schemas, keyword) = keywords.prefix;
        let reachable = max.map_or(schemas.len(), |max| schemas.len().min(max as usize));
        if reachable == 0 {
            return Vec::new();
        }
        let never = self.grammar.never();
        let path = self.context.report.paths.keyword(path, keyword);
        let mut items = Vec::with_capacity(reachable);
        for (i, schema) in schemas[..reachable].iter().enumerate() {
            let path = self.context.report.paths.index(path, i);
            let item = self.part(schema, path);
            if item == never {
                break;
            }
            items.push(item);
        }
        items
    }

    /// The items after the prefix.
    fn rest(&mut self, keywords: &Keywords<'s>, path: PathId, written: usize, max: Option<u32>) -> ExprId {
        let cut_short = written < keywords.prefix.0.len();
        if cut_short || max.is_some_and(|max| max as usize <= written) {
            return self.grammar.never();
        }
        match keywords.rest {
            Some((schema, keyword)) => {
                let path = self.context.report.paths.keyword(path, keyword);
                self.part(schema, path)
            }
            None => self.any(path, super::TypeSet::ALL),
        }
    }

    fn items(&mut self, prefix: &[ExprId], rest: ExprId, count: Window, path: PathId) -> ExprId {
        let leaves = self.leaves;
        let (start, space, comma, end) = (leaves.array_start, leaves.space, leaves.comma, leaves.array_end);
        let next = self.grammar.seq([comma, space, rest, space]);
        // What follows once `written` items stand there, with the closing bracket.
        let after = |this: &mut Self, written: u32| {
            let min = count.min.saturating_sub(written);
            let max = count.max.map(|max| max.saturating_sub(written));
            let more = this.grammar.repeat(next, min, max);
            this.grammar.seq([more, end])
        };
        let Some((&first, others)) = prefix.split_first() else {
            let more = after(self, 1);
            let some = self.grammar.seq([rest, space, more]);
            let some = if count.max == Some(0) { self.grammar.never() } else { some };
            let body = if count.min == 0 { self.grammar.alt([some, end]) } else { some };
            return self.grammar.seq([start, space, body]);
        };
        // From the last item to the first; the parts of a run that cannot stop are one flat sequence.
        let mut parts = vec![after(self, prefix.len() as u32)];
        for (i, &item) in others.iter().enumerate().rev() {
            parts.extend([space, item, space, comma]);
            if i + 1 >= count.min as usize {
                let tail = self.grammar.seq(parts.drain(..).rev());
                let tail = self.grammar.alt([tail, end]);
                parts.push(self.defined_rule("items", tail, path));
            }
        }
        parts.extend([space, first]);
        let mut body = self.grammar.seq(parts.into_iter().rev());
        if count.min == 0 {
            body = self.grammar.alt([body, end]);
        }
        self.grammar.seq([start, space, body])
    }
}
