//! All values of some types, and the leaves that every schema shares.
//!
//! The expressions for white space, numbers and free text are made once and used everywhere, so that the engine
//! compiles each of them once. Free JSON is three rules that call one another.

use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};

use super::super::options::Whitespace;
use super::super::path::PathId;
use super::super::report::Note;
use super::super::types::TypeSet;
use super::Lowerer;
use super::number;

/// The expressions that every schema shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaves {
    pub(super) space: ExprId,
    pub(super) comma: ExprId,
    pub(super) colon: ExprId,
    pub(super) array_start: ExprId,
    pub(super) array_end: ExprId,
    pub(super) object_start: ExprId,
    pub(super) object_end: ExprId,
    /// One character of a text.
    pub(super) character: ExprId,
    /// Any JSON string.
    pub(super) string: ExprId,
    number: Option<ExprId>,
    integer: Option<ExprId>,
    free: Option<Free>,
}

/// Free JSON: calls of the rules for any value, any array and any object.
#[derive(Clone, Copy, Debug)]
struct Free {
    value: ExprId,
    array: ExprId,
    object: ExprId,
}

impl Leaves {
    pub(super) fn new(grammar: &mut GrammarBuilder, whitespace: Whitespace) -> Self {
        let space = match whitespace {
            Whitespace::Flexible { max_run } => {
                let blank = grammar.class(CharSet::from_ranges([('\t', '\n'), ('\r', '\r'), (' ', ' ')]));
                grammar.repeat(blank, 0, Some(max_run))
            }
            Whitespace::Compact => grammar.empty(),
        };
        let character = grammar.class(CharSet::all());
        let text = grammar.star(character);
        Self {
            space,
            comma: grammar.bytes(b","),
            colon: grammar.bytes(b":"),
            array_start: grammar.bytes(b"["),
            array_end: grammar.bytes(b"]"),
            object_start: grammar.bytes(b"{"),
            object_end: grammar.bytes(b"}"),
            character,
            string: grammar.json_string(text),
            number: None,
            integer: None,
            free: None,
        }
    }
}

impl Lowerer<'_> {
    /// All values of these types.
    pub(super) fn any(&mut self, path: PathId, types: TypeSet) -> ExprId {
        if types.meets(TypeSet::OBJECT) {
            self.context.note(path, Note::RepeatedKeys);
        }
        if types == TypeSet::ALL {
            return self.free().value;
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

    fn scalars(&mut self, types: TypeSet) -> Vec<ExprId> {
        let mut parts = Vec::with_capacity(6);
        if types.meets(TypeSet::STRING) {
            parts.push(self.leaves.string);
        }
        if types.covers(TypeSet::NUMBER) {
            parts.push(*self.leaves.number.get_or_insert_with(|| number::number(&mut self.grammar)));
        } else if types.meets(TypeSet::INTEGER) {
            parts.push(*self.leaves.integer.get_or_insert_with(|| number::integer(&mut self.grammar)));
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
        if let Some(free) = self.leaves.free {
            return free;
        }
        let rules = ["value", "array", "object"].map(|name| self.grammar.declare(name));
        let [value, array, object] = rules.map(|rule| self.grammar.rule(rule));
        let free = Free { value, array, object };
        self.leaves.free = Some(free);

        let mut values = self.scalars(TypeSet::ALL);
        values.extend([array, object]);
        let value_expr = self.grammar.alt(values);
        let Leaves { array_start, array_end, object_start, object_end, space, colon, string, .. } =
            self.leaves;
        let member = self.grammar.seq([string, space, colon, space, value]);
        let array_expr = self.separated(array_start, value, array_end);
        let object_expr = self.separated(object_start, member, object_end);
        for (rule, expr) in rules.into_iter().zip([value_expr, array_expr, object_expr]) {
            self.grammar.define(rule, expr);
        }
        free
    }

    /// `start`, any number of parts with commas between them, `end`.
    fn separated(&mut self, start: ExprId, part: ExprId, end: ExprId) -> ExprId {
        let Leaves { space, comma, .. } = self.leaves;
        let next = self.grammar.seq([comma, space, part, space]);
        let more = self.grammar.star(next);
        let parts = self.grammar.seq([part, space, more]);
        let parts = self.grammar.optional(parts);
        self.grammar.seq([start, space, parts, end])
    }
}
