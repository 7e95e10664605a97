//! Numbers without bounds: any JSON spelling, and integers in plain digits.
//!
//! `1.0` and `1e2` are integers to the standard since draft-06, but a reader of the document may well not think so;
//! an integer is written in plain digits. How many digits there may be is the caller's choice ([`Numbers`]).

use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};

use super::super::super::options::Numbers;

/// How many digits may follow each other. The shortest text of a double has up to 22 behind the point, and 21 in front of it.
const DIGITS: u32 = 24;

/// The greatest number of digits in a row, less those that must be there; `None` if there may be any number of them.
pub(super) fn most(numbers: Numbers, less: u32) -> Option<u32> {
    match numbers {
        Numbers::Double => Some(DIGITS - less),
        Numbers::Any => None,
    }
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`, as a rule: a sequence would dissolve into what stands around it, and
/// the engine could not share its table.
pub(in super::super) fn number(grammar: &mut GrammarBuilder, numbers: Numbers) -> ExprId {
    let minus = minus(grammar);
    let whole = whole(grammar, numbers);
    let fraction = fraction(grammar, numbers);
    let exponent = exponent(grammar, numbers);
    let number = grammar.seq([minus, whole, fraction, exponent]);
    as_rule(grammar, "number", number)
}

/// `-?(0|[1-9][0-9]*)`, as a rule.
pub(in super::super) fn integer(grammar: &mut GrammarBuilder, numbers: Numbers) -> ExprId {
    let minus = minus(grammar);
    let whole = whole(grammar, numbers);
    let integer = grammar.seq([minus, whole]);
    as_rule(grammar, "integer", integer)
}

/// Numbers on one side of zero, in any spelling.
pub(super) fn one_sided(
    grammar: &mut GrammarBuilder,
    negative: bool,
    with_zero: bool,
    numbers: Numbers,
) -> ExprId {
    let exponent = exponent(grammar, numbers);
    let mut ways = Vec::with_capacity(2);
    let sign = if negative { grammar.bytes(b"-") } else { grammar.empty() };
    if with_zero && !negative {
        let (whole, fraction) = (whole(grammar, numbers), fraction(grammar, numbers));
        ways.push(grammar.seq([whole, fraction, exponent]));
    } else {
        let digit = digit(grammar);
        let digits = grammar.repeat(digit, 0, most(numbers, 1));
        let first = grammar.class(CharSet::from_ranges([('1', '9')]));
        let fraction = fraction(grammar, numbers);
        ways.push(grammar.seq([sign, first, digits, fraction, exponent]));
        let (start, zero) = (grammar.bytes(b"0."), grammar.bytes(b"0"));
        let zeros = grammar.repeat(zero, 0, most(numbers, 1));
        ways.push(grammar.seq([sign, start, zeros, first, digits, exponent]));
    }
    if with_zero {
        // Zero itself, with either sign.
        let minus = if negative { minus(grammar) } else { grammar.bytes(b"-") };
        let zero = grammar.bytes(b"0");
        let zeros = grammar.repeat(zero, 1, most(numbers, 0));
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

fn whole(grammar: &mut GrammarBuilder, numbers: Numbers) -> ExprId {
    let zero = grammar.bytes(b"0");
    let first = grammar.class(CharSet::from_ranges([('1', '9')]));
    let digit = digit(grammar);
    let digits = grammar.repeat(digit, 0, most(numbers, 1));
    let positive = grammar.seq([first, digits]);
    grammar.alt([zero, positive])
}

fn fraction(grammar: &mut GrammarBuilder, numbers: Numbers) -> ExprId {
    let digit = digit(grammar);
    let digits = grammar.repeat(digit, 1, most(numbers, 0));
    let point = grammar.bytes(b".");
    let fraction = grammar.seq([point, digits]);
    grammar.optional(fraction)
}

/// A double has three digits of it: with the digits in front, 279 is never too much.
fn exponent(grammar: &mut GrammarBuilder, numbers: Numbers) -> ExprId {
    let e = grammar.class(CharSet::from_ranges([('e', 'e'), ('E', 'E')]));
    let sign = grammar.class(CharSet::from_ranges([('+', '+'), ('-', '-')]));
    let sign = grammar.optional(sign);
    let digit = digit(grammar);
    let digits = match numbers {
        Numbers::Any => grammar.repeat(digit, 1, None),
        Numbers::Double => {
            let (few, two) = (grammar.repeat(digit, 1, Some(2)), grammar.repeat(digit, 2, Some(2)));
            let low = grammar.class(CharSet::from_ranges([('0', '1')]));
            let low = grammar.seq([low, two]);
            let (high, tens) = (grammar.bytes(b"2"), grammar.class(CharSet::from_ranges([('0', '7')])));
            let high = grammar.seq([high, tens, digit]);
            grammar.alt([few, low, high])
        }
    };
    let exponent = grammar.seq([e, sign, digits]);
    grammar.optional(exponent)
}

fn digit(grammar: &mut GrammarBuilder) -> ExprId {
    grammar.class(CharSet::from_ranges([('0', '9')]))
}
