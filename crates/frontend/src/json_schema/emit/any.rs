//! All values of some types, and the expressions that all schemas share.
//!
//! The expressions of numbers and strings are created once and used everywhere, so that the engine compiles each of
//! them once. Arbitrary JSON is three rules that call one another; where white space depends on the nesting level, it
//! is three rules for each level.

use maskwright_grammar::ExprId;
use rustc_hash::FxHashMap;

use super::super::cases::Algebra;
use super::super::json::Value;
use super::super::types::TypeSet;
use super::Emitter;
use super::layout::Layout;
use super::number::spelling;

/// The expressions that all schemas share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Any JSON string.
    string: ExprId,
    number: Option<ExprId>,
    integer: Option<ExprId>,
    /// Arbitrary JSON, by nesting level.
    any_json: FxHashMap<u32, AnyJson>,
}

/// Arbitrary JSON: calls of the rules for any value, any array and any object.
#[derive(Clone, Copy, Debug)]
struct AnyJson {
    value: ExprId,
    array: ExprId,
    object: ExprId,
}

impl Shared {
    pub(super) fn new(algebra: &mut Algebra<'_>) -> Self {
        let text = algebra.grammar.star(algebra.character);
        let string = algebra.grammar.json_string(text);
        Self { string, number: None, integer: None, any_json: FxHashMap::default() }
    }

    /// Drops the expressions that depend on the white space.
    pub(super) fn clear_any_json(&mut self) {
        self.any_json.clear();
    }
}

impl Emitter<'_> {
    /// Returns all values of these types.
    pub(super) fn any(&mut self, types: TypeSet) -> ExprId {
        if types.meets(TypeSet::OBJECT | TypeSet::ARRAY) {
            self.algebra.context.report.free.push(self.algebra.context.here);
        }
        match types {
            TypeSet::ALL => return self.any_json().value,
            TypeSet::STRING => return self.shared.string,
            _ => {}
        }
        let mut parts = self.scalars(types);
        if types.meets(TypeSet::ARRAY) {
            parts.push(self.any_json().array);
        }
        if types.meets(TypeSet::OBJECT) {
            parts.push(self.any_json().object);
        }
        self.algebra.grammar.alt(parts)
    }

    /// Returns the text of `null`, `true` or `false`.
    pub(super) fn scalar(&mut self, value: &Value<'_>) -> ExprId {
        match value {
            Value::Bool(true) => self.algebra.grammar.bytes(b"true"),
            Value::Bool(false) => self.algebra.grammar.bytes(b"false"),
            _ => self.algebra.grammar.bytes(b"null"),
        }
    }

    fn scalars(&mut self, types: TypeSet) -> Vec<ExprId> {
        let mut parts = Vec::with_capacity(6);
        let numbers = self.algebra.context.options.numbers;
        if types.meets(TypeSet::STRING) {
            parts.push(self.shared.string);
        }
        if types.covers(TypeSet::NUMBER) {
            parts.push(
                *self
                    .shared
                    .number
                    .get_or_insert_with(|| spelling::number(&mut self.algebra.grammar, numbers)),
            );
        } else if types.meets(TypeSet::INTEGER) {
            parts.push(
                *self
                    .shared
                    .integer
                    .get_or_insert_with(|| spelling::integer(&mut self.algebra.grammar, numbers)),
            );
        }
        if types.meets(TypeSet::BOOLEAN) {
            parts.extend([self.algebra.grammar.bytes(b"true"), self.algebra.grammar.bytes(b"false")]);
        }
        if types.meets(TypeSet::NULL) {
            parts.push(self.algebra.grammar.bytes(b"null"));
        }
        parts
    }

    /// Returns the rules for arbitrary JSON at the current level, created on first use.
    fn any_json(&mut self) -> AnyJson {
        if let Some(any_json) = self.shared.any_json.get(&self.level) {
            return *any_json;
        }
        // An outer level calls the next inner one, so the innermost is created first.
        let last =
            if self.layout.is_layered() { self.algebra.context.options.limits.nesting } else { self.level };
        let depth = self.level;
        let mut inner: Option<AnyJson> = None;
        for level in (depth..=last).rev() {
            if let Some(known) = self.shared.any_json.get(&level) {
                inner = Some(*known);
                continue;
            }
            self.level = level;
            let any_json = self.any_json_level(inner);
            self.shared.any_json.insert(level, any_json);
            inner = Some(any_json);
        }
        self.level = depth;
        self.shared.any_json[&depth]
    }

    /// Creates the rules of one level. Their parts are values of the next level, or of the same rules if the white
    /// space does not depend on the level.
    fn any_json_level(&mut self, inner: Option<AnyJson>) -> AnyJson {
        let rules = ["value", "array", "object"].map(|name| self.algebra.grammar.declare(name));
        let [value, array, object] = rules.map(|rule| self.algebra.grammar.rule(rule));
        let any_json = AnyJson { value, array, object };
        let part = if self.layout.is_layered() {
            inner.map_or_else(|| self.algebra.grammar.never(), |inner| inner.value)
        } else {
            value
        };
        let mut values = self.scalars(TypeSet::ALL);
        values.extend([array, object]);
        let value_expr = self.algebra.grammar.alt(values);
        let Layout { array_start, array_end, array_empty_end, colon, .. } = self.layout();
        let Layout { object_start, object_end, object_empty_end, .. } = self.layout();
        let key = self.algebra.grammar.distinct(self.shared.string);
        let member = self.algebra.grammar.seq([key, colon, part]);
        let array_expr = self.separated(array_start, part, array_end, array_empty_end);
        let object_expr = self.separated(object_start, member, object_end, object_empty_end);
        let object_expr = self.algebra.grammar.scope(object_expr, []);
        for (rule, expr) in rules.into_iter().zip([value_expr, array_expr, object_expr]) {
            self.algebra.grammar.define(rule, expr);
        }
        any_json
    }

    /// Returns `start`, any number of parts with commas between them, and `end`.
    fn separated(&mut self, start: ExprId, part: ExprId, end: ExprId, empty_end: ExprId) -> ExprId {
        let Layout { enter, after, comma, .. } = self.layout();
        let next = self.algebra.grammar.seq([comma, part, after]);
        let more = self.algebra.grammar.star(next);
        if end == empty_end {
            let parts = self.algebra.grammar.seq([enter, part, after, more]);
            let parts = self.algebra.grammar.optional(parts);
            return self.algebra.grammar.seq([start, parts, end]);
        }
        let parts = self.algebra.grammar.seq([enter, part, after, more, end]);
        let parts = self.algebra.grammar.alt([parts, empty_end]);
        self.algebra.grammar.seq([start, parts])
    }
}
