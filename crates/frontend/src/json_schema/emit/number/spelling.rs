//! Numbers without bounds: any JSON spelling, and integers in plain digits.
//!
//! Since draft-06 the standard takes `1.0` and `1e2` for integers, but a reader of the document may not. So an integer
//! is written in plain digits. The caller chooses how long a number may be ([`Numbers`]).

use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};

use super::super::super::options::Numbers;

/// The maximum number of characters of a number. The shortest text of a double has at most 24.
const MAX_CHARACTERS: u32 = 40;

/// Returns the numbers that are at most `more` characters longer than [`Numbers`] allows, as a rule. A sequence would
/// be merged into its surroundings, and the engine could not share its table. The length is counted outside the table.
pub(super) fn capped(
    grammar: &mut GrammarBuilder,
    name: &str,
    number: ExprId,
    numbers: Numbers,
    more: u32,
) -> ExprId {
    let number = match numbers {
        Numbers::Any => number,
        Numbers::Double => {
            let any = grammar.class(CharSet::all());
            let short = grammar.repeat(any, 0, Some(MAX_CHARACTERS.saturating_add(more)));
            grammar.and([number, short])
        }
    };
    as_rule(grammar, name, number)
}

/// Returns `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`, as a rule.
pub(in super::super) fn number(grammar: &mut GrammarBuilder, numbers: Numbers) -> ExprId {
    let minus = minus(grammar);
    let whole = whole(grammar);
    let fraction = fraction(grammar);
    let exponent = exponent(grammar, numbers);
    let mut alternatives = vec![grammar.seq([minus, whole, fraction, exponent])];
    if numbers == Numbers::Double {
        let first = grammar.class(CharSet::from_ranges([('1', '9')]));
        let exponent = long_exponent(grammar);
        alternatives.push(grammar.seq([minus, first, fraction, exponent]));
    }
    let number = grammar.alt(alternatives);
    capped(grammar, "number", number, numbers, 0)
}

/// Returns `-?(0|[1-9][0-9]*)`, as a rule.
pub(in super::super) fn integer(grammar: &mut GrammarBuilder, numbers: Numbers) -> ExprId {
    let minus = minus(grammar);
    let whole = whole(grammar);
    let integer = grammar.seq([minus, whole]);
    capped(grammar, "integer", integer, numbers, 0)
}

/// Returns the numbers on one side of zero, in any spelling.
pub(super) fn one_sided(
    grammar: &mut GrammarBuilder,
    negative: bool,
    with_zero: bool,
    numbers: Numbers,
) -> ExprId {
    let exponent = exponent(grammar, numbers);
    let mut alternatives = Vec::with_capacity(4);
    let sign = if negative { grammar.bytes(b"-") } else { grammar.empty() };
    let first = grammar.class(CharSet::from_ranges([('1', '9')]));
    let fraction = fraction(grammar);
    if with_zero && !negative {
        let whole = whole(grammar);
        alternatives.push(grammar.seq([whole, fraction, exponent]));
    } else {
        let digit = digit(grammar);
        let digits = grammar.repeat(digit, 0, None);
        alternatives.push(grammar.seq([sign, first, digits, fraction, exponent]));
        let (start, zero) = (grammar.bytes(b"0."), grammar.bytes(b"0"));
        let zeros = grammar.repeat(zero, 0, None);
        alternatives.push(grammar.seq([sign, start, zeros, first, digits, exponent]));
    }
    if numbers == Numbers::Double {
        let exponent = long_exponent(grammar);
        alternatives.push(grammar.seq([sign, first, fraction, exponent]));
    }
    if with_zero {
        // Zero, with either sign.
        let minus = if negative { minus(grammar) } else { grammar.bytes(b"-") };
        let zero = grammar.bytes(b"0");
        let zeros = grammar.repeat(zero, 1, None);
        let point = grammar.bytes(b".");
        let fraction = grammar.seq([point, zeros]);
        let fraction = grammar.optional(fraction);
        alternatives.push(grammar.seq([minus, zero, fraction, exponent]));
    }
    let number = grammar.alt(alternatives);
    capped(grammar, "number", number, numbers, 0)
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
    let digits = grammar.repeat(digit, 0, None);
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

/// An exponent of 259 is never too large, even with the maximum number of digits before it.
fn exponent(grammar: &mut GrammarBuilder, numbers: Numbers) -> ExprId {
    let digit = digit(grammar);
    let digits = match numbers {
        Numbers::Any => grammar.repeat(digit, 1, None),
        Numbers::Double => exponents(grammar, '2', '5'),
    };
    let exponent = signed_exponent(grammar, digits);
    grammar.optional(exponent)
}

/// After a single digit other than zero, the exponent may be up to 307.
fn long_exponent(grammar: &mut GrammarBuilder) -> ExprId {
    let (up_to_299, zero, digit) = (
        exponents(grammar, '2', '9'),
        grammar.bytes(b"30"),
        grammar.class(CharSet::from_ranges([('0', '7')])),
    );
    let up_to_307 = grammar.seq([zero, digit]);
    let digits = grammar.alt([up_to_299, up_to_307]);
    signed_exponent(grammar, digits)
}

/// Returns up to three digits; of three, the first two are at most `hundreds` and `tens`.
fn exponents(grammar: &mut GrammarBuilder, hundreds: char, tens: char) -> ExprId {
    let digit = digit(grammar);
    let (few, two) = (grammar.repeat(digit, 1, Some(2)), grammar.repeat(digit, 2, Some(2)));
    let below = char::from(hundreds as u8 - 1);
    let low = grammar.class(CharSet::from_ranges([('0', below)]));
    let low = grammar.seq([low, two]);
    let (high, tens) = (
        grammar.class(CharSet::from_ranges([(hundreds, hundreds)])),
        grammar.class(CharSet::from_ranges([('0', tens)])),
    );
    let high = grammar.seq([high, tens, digit]);
    grammar.alt([few, low, high])
}

fn signed_exponent(grammar: &mut GrammarBuilder, digits: ExprId) -> ExprId {
    let e = grammar.class(CharSet::from_ranges([('e', 'e'), ('E', 'E')]));
    let sign = grammar.class(CharSet::from_ranges([('+', '+'), ('-', '-')]));
    let sign = grammar.optional(sign);
    grammar.seq([e, sign, digits])
}

fn digit(grammar: &mut GrammarBuilder) -> ExprId {
    grammar.class(CharSet::from_ranges([('0', '9')]))
}
