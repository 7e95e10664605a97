//! Numbers without bounds: any JSON spelling, and integers in plain digits.
//!
//! `1.0` and `1e2` are integers to the standard since draft-06, but a reader of the document may well not think so;
//! an integer is written in plain digits.

use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`, as a rule: a sequence would dissolve into what stands around it, and
/// the engine could not share its table.
pub(in super::super) fn number(grammar: &mut GrammarBuilder) -> ExprId {
    let minus = minus(grammar);
    let whole = whole(grammar);
    let fraction = fraction(grammar);
    let exponent = exponent(grammar);
    let number = grammar.seq([minus, whole, fraction, exponent]);
    as_rule(grammar, "number", number)
}

/// `-?(0|[1-9][0-9]*)`, as a rule.
pub(in super::super) fn integer(grammar: &mut GrammarBuilder) -> ExprId {
    let minus = minus(grammar);
    let whole = whole(grammar);
    let integer = grammar.seq([minus, whole]);
    as_rule(grammar, "integer", integer)
}

/// Numbers on one side of zero, in any spelling.
pub(super) fn one_sided(grammar: &mut GrammarBuilder, negative: bool, with_zero: bool) -> ExprId {
    let exponent = exponent(grammar);
    let mut ways = Vec::with_capacity(2);
    let sign = if negative { grammar.bytes(b"-") } else { grammar.empty() };
    if with_zero && !negative {
        let (whole, fraction) = (whole(grammar), fraction(grammar));
        ways.push(grammar.seq([whole, fraction, exponent]));
    } else {
        let digit = digit(grammar);
        let digits = grammar.star(digit);
        let first = grammar.class(CharSet::from_ranges([('1', '9')]));
        let fraction = fraction(grammar);
        ways.push(grammar.seq([sign, first, digits, fraction, exponent]));
        let (start, zero) = (grammar.bytes(b"0."), grammar.bytes(b"0"));
        let zeros = grammar.star(zero);
        ways.push(grammar.seq([sign, start, zeros, first, digits, exponent]));
    }
    if with_zero {
        // Zero itself, with either sign.
        let minus = if negative { minus(grammar) } else { grammar.bytes(b"-") };
        let zero = grammar.bytes(b"0");
        let zeros = grammar.repeat(zero, 1, None);
        let point = grammar.bytes(b".");
        let fraction = grammar.seq([point, zeros]);
        let fraction = grammar.optional(fraction);
        ways.push(grammar.seq([minus, zero, fraction, exponent]));
    }
    let number = grammar.alt(ways);
    as_rule(grammar, "number", number)
}

pub(super) fn as_rule(grammar: &mut GrammarBuilder, name: &str, expr: ExprId) -> ExprId {
    let rule = grammar.declare(name);
    grammar.define(rule, expr);
    grammar.rule(rule)
}

fn minus(grammar: &mut GrammarBuilder) -> ExprId {
    let minus = grammar.bytes(b"-");
    grammar.optional(minus)
}

fn whole(grammar: &mut GrammarBuilder) -> ExprId {
    let zero = grammar.bytes(b"0");
    let first = grammar.class(CharSet::from_ranges([('1', '9')]));
    let digit = digit(grammar);
    let digits = grammar.star(digit);
    let positive = grammar.seq([first, digits]);
    grammar.alt([zero, positive])
}

fn fraction(grammar: &mut GrammarBuilder) -> ExprId {
    let digit = digit(grammar);
    let digits = grammar.repeat(digit, 1, None);
    let point = grammar.bytes(b".");
    let fraction = grammar.seq([point, digits]);
    grammar.optional(fraction)
}

fn exponent(grammar: &mut GrammarBuilder) -> ExprId {
    let e = grammar.class(CharSet::from_ranges([('e', 'e'), ('E', 'E')]));
    let sign = grammar.class(CharSet::from_ranges([('+', '+'), ('-', '-')]));
    let sign = grammar.optional(sign);
    let digit = digit(grammar);
    let digits = grammar.repeat(digit, 1, None);
    let exponent = grammar.seq([e, sign, digits]);
    grammar.optional(exponent)
}

fn digit(grammar: &mut GrammarBuilder) -> ExprId {
    grammar.class(CharSet::from_ranges([('0', '9')]))
}
