//! Numbers: any JSON spelling of a number, and integers without fraction and exponent.
//!
//! `1.0` and `1e2` are integers to the standard since draft-06, but a reader of the document may well not think so;
//! an integer is written in plain digits.

use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`, as a rule: a sequence would dissolve into what stands around it, and
/// the engine could not share its table.
pub(super) fn number(grammar: &mut GrammarBuilder) -> ExprId {
    let integer = whole(grammar);
    let digit = digit(grammar);
    let digits = grammar.repeat(digit, 1, None);

    let point = grammar.bytes(b".");
    let fraction = grammar.seq([point, digits]);
    let fraction = grammar.optional(fraction);

    let e = grammar.class(CharSet::from_ranges([('e', 'e'), ('E', 'E')]));
    let sign = grammar.class(CharSet::from_ranges([('+', '+'), ('-', '-')]));
    let sign = grammar.optional(sign);
    let exponent = grammar.seq([e, sign, digits]);
    let exponent = grammar.optional(exponent);

    let number = grammar.seq([integer, fraction, exponent]);
    as_rule(grammar, "number", number)
}

/// `-?(0|[1-9][0-9]*)`, as a rule.
pub(super) fn integer(grammar: &mut GrammarBuilder) -> ExprId {
    let integer = whole(grammar);
    as_rule(grammar, "integer", integer)
}

fn as_rule(grammar: &mut GrammarBuilder, name: &str, expr: ExprId) -> ExprId {
    let rule = grammar.declare(name);
    grammar.define(rule, expr);
    grammar.rule(rule)
}

fn whole(grammar: &mut GrammarBuilder) -> ExprId {
    let minus = grammar.bytes(b"-");
    let minus = grammar.optional(minus);
    let zero = grammar.bytes(b"0");
    let first = grammar.class(CharSet::from_ranges([('1', '9')]));
    let digit = digit(grammar);
    let digits = grammar.star(digit);
    let positive = grammar.seq([first, digits]);
    let digits = grammar.alt([zero, positive]);
    grammar.seq([minus, digits])
}

fn digit(grammar: &mut GrammarBuilder) -> ExprId {
    grammar.class(CharSet::from_ranges([('0', '9')]))
}
