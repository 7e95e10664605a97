//! All values of some types, and the leaves that every schema shares.
//!
//! The expressions for numbers and free text are made once and used everywhere, so that the engine compiles each of
//! them once. Free JSON is three rules that call one another; where white space depends on the depth, three for
//! each level.

use super::super::json::Value;
use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};
use rustc_hash::FxHashMap;

use super::super::types::TypeSet;
use super::Lowerer;
use super::layout::Layout;
use super::number::spelling;

/// The expressions that every schema shares.
#[derive(Clone, Debug)]
pub(super) struct Leaves {
    /// One character of a text.
    pub(super) character: ExprId,
    /// Any JSON string.
    pub(super) string: ExprId,
    number: Option<ExprId>,
    integer: Option<ExprId>,
    free: FxHashMap<u32, Free>,
}

/// Free JSON: calls of the rules for any value, any array and any object.
#[derive(Clone, Copy, Debug)]
struct Free {
    value: ExprId,
    array: ExprId,
    object: ExprId,
}

impl Leaves {
    pub(super) fn new(grammar: &mut GrammarBuilder) -> Self {
        let character = grammar.class(CharSet::all());
        let text = grammar.star(character);
        let string = grammar.json_string(text);
        Self { character, string, number: None, integer: None, free: FxHashMap::default() }
    }

    /// Forgets what depends on the white space.
    pub(super) fn forget_free(&mut self) {
        self.free.clear();
    }
}

impl Lowerer<'_> {
    /// All values of these types.
    pub(super) fn any(&mut self, types: TypeSet) -> ExprId {
        if types.meets(TypeSet::OBJECT | TypeSet::ARRAY) {
            self.context.report.free.push(self.here);
        }
        match types {
            TypeSet::ALL => return self.free().value,
            TypeSet::STRING => return self.leaves.string,
            _ => {}
        }
        let mut parts = self.scalars(types);
        if types.meets(TypeSet::ARRAY) {
            parts.push(self.free().array);
        }
        if types.meets(TypeSet::OBJECT) {
            parts.push(self.free().object);
        }
        self.grammar.alt(parts)
    }

    /// `null`, `true` or `false`.
    pub(super) fn scalar(&mut self, value: &Value<'_>) -> ExprId {
        match value {
            Value::Bool(true) => self.grammar.bytes(b"true"),
            Value::Bool(false) => self.grammar.bytes(b"false"),
            _ => self.grammar.bytes(b"null"),
        }
    }

    fn scalars(&mut self, types: TypeSet) -> Vec<ExprId> {
        let mut parts = Vec::with_capacity(6);
        if types.meets(TypeSet::STRING) {
            parts.push(self.leaves.string);
        }
        if types.covers(TypeSet::NUMBER) {
            parts.push(*self.leaves.number.get_or_insert_with(|| spelling::number(&mut self.grammar)));
        } else if types.meets(TypeSet::INTEGER) {
            parts.push(*self.leaves.integer.get_or_insert_with(|| spelling::integer(&mut self.grammar)));
        }
        if types.meets(TypeSet::BOOLEAN) {
            parts.extend([self.grammar.bytes(b"true"), self.grammar.bytes(b"false")]);
        }
        if types.meets(TypeSet::NULL) {
            parts.push(self.grammar.bytes(b"null"));
        }
        parts
    }

    /// The rules for free JSON, made on first use.
    fn free(&mut self) -> Free {
        if let Some(free) = self.leaves.free.get(&self.depth) {
            return *free;
        }
        // From this level down to the last one: an inner level must be there before an outer one is written.
        let last = if self.layout.is_layered() { self.context.options.limits.nesting } else { self.depth };
        let depth = self.depth;
        let mut inner: Option<Free> = None;
        for level in (depth..=last).rev() {
            if let Some(known) = self.leaves.free.get(&level) {
                inner = Some(*known);
                continue;
            }
            self.depth = level;
            let free = self.free_level(inner);
            self.leaves.free.insert(level, free);
            inner = Some(free);
        }
        self.depth = depth;
        self.leaves.free[&depth]
    }

    /// Free JSON whose parts are those of the next level; its own, if white space is the same on all.
    fn free_level(&mut self, inner: Option<Free>) -> Free {
        let rules = ["value", "array", "object"].map(|name| self.grammar.declare(name));
        let [value, array, object] = rules.map(|rule| self.grammar.rule(rule));
        let free = Free { value, array, object };
        let part = if self.layout.is_layered() {
            inner.map_or_else(|| self.grammar.never(), |inner| inner.value)
        } else {
            value
        };
        let mut values = self.scalars(TypeSet::ALL);
        values.extend([array, object]);
        let value_expr = self.grammar.alt(values);
        let Layout { array_start, array_end, array_empty_end, colon, .. } = self.layout();
        let Layout { object_start, object_end, object_empty_end, .. } = self.layout();
        let key = self.grammar.distinct(self.leaves.string);
        let member = self.grammar.seq([key, colon, part]);
        let array_expr = self.separated(array_start, part, array_end, array_empty_end);
        let object_expr = self.separated(object_start, member, object_end, object_empty_end);
        let object_expr = self.grammar.scope(object_expr, []);
        for (rule, expr) in rules.into_iter().zip([value_expr, array_expr, object_expr]) {
            self.grammar.define(rule, expr);
        }
        free
    }

    /// `start`, any number of parts with commas between them, `end`.
    fn separated(&mut self, start: ExprId, part: ExprId, end: ExprId, empty_end: ExprId) -> ExprId {
        let Layout { enter, after, comma, .. } = self.layout();
        let next = self.grammar.seq([comma, part, after]);
        let more = self.grammar.star(next);
        if end == empty_end {
            let parts = self.grammar.seq([enter, part, after, more]);
            let parts = self.grammar.optional(parts);
            return self.grammar.seq([start, parts, end]);
        }
        let parts = self.grammar.seq([enter, part, after, more, end]);
        let parts = self.grammar.alt([parts, empty_end]);
        self.grammar.seq([start, parts])
    }
}
