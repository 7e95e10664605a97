//! Numbers: bounds, `multipleOf`, `integer` and excluded values, as one automaton over the digits.
//!
//! Each condition is a small automaton that reads a number's text from left to right: one compares with 10.5, one
//! computes the remainder modulo 3, one looks for a fraction. They run in parallel, and their answers are combined at
//! the end. This is exact, without floating point, and a negated schema is only another way to combine the answers. See
//! [`machine`].
//!
//! With such conditions a number is written without an exponent, because the value of `9e…` is known only at its end. A
//! bound at zero constrains only the sign, so every spelling is allowed. [`Numbers`](super::super::Numbers) limits the
//! length of numbers, except of multiples of a number.

mod few;
mod machine;
pub(super) mod spelling;

use maskwright_grammar::{ExprId, GrammarBuilder};

use super::super::cases::Case;
use super::super::decimal::Decimal;
use super::super::json::Value;
use super::super::schemas::Keywords;
use super::super::types::TypeSet;
use super::Emitter;

/// A condition on a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Test {
    Integer,
    Above(Decimal),
    AtLeast(Decimal),
    Below(Decimal),
    AtMost(Decimal),
    MultipleOf(Decimal),
    OneOf(Vec<Decimal>),
}

/// All conditions on a number: tests that all hold, and lists of tests of which at least one fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Conditions {
    all: Vec<Test>,
    not_all: Vec<Vec<Test>>,
}

impl Conditions {
    /// Returns the total number of characters of the numbers in all conditions, written in plain digits.
    fn characters(&self) -> u32 {
        let length = |number: &Decimal| {
            let characters = number.magnitude().max(1).saturating_add((-number.exponent()).max(0));
            u32::try_from(characters).unwrap_or(u32::MAX)
        };
        let of_test = |test: &Test| match test {
            Test::Integer => 0,
            Test::Above(bound) | Test::AtLeast(bound) | Test::Below(bound) | Test::AtMost(bound) => {
                length(bound)
            }
            Test::MultipleOf(step) => length(step),
            Test::OneOf(values) => values.iter().map(length).max().unwrap_or(0),
        };
        let tests = self.all.iter().chain(self.not_all.iter().flatten());
        tests.fold(0, |sum, test| sum.saturating_add(of_test(test)))
    }
}

impl Emitter<'_> {
    /// Returns the numbers of a case.
    pub(super) fn number(&mut self, case: &Case) -> ExprId {
        let mut conditions = Conditions::default();
        for local in &case.locals {
            let keywords = self.algebra.keywords(local.id);
            let mut tests = tests(&keywords);
            if local.negative {
                if let Some(values) = keywords.listed() {
                    let numbers = values.iter().filter_map(|value| match value {
                        Value::Number(number) => Some(Decimal::parse(number)),
                        _ => None,
                    });
                    let numbers: Vec<Decimal> = numbers.collect();
                    if numbers.is_empty() {
                        // Every number differs from listed values that are not numbers.
                        continue;
                    }
                    tests.push(Test::OneOf(numbers));
                }
                conditions.not_all.push(tests);
            } else {
                conditions.all.extend(tests);
            }
        }
        conditions.all.dedup();
        if let Some(&known) = self.numbers.get(&conditions) {
            return known;
        }
        let expr = self.numbers_of(conditions.clone(), case);
        self.numbers.insert(conditions, expr);
        expr
    }

    fn numbers_of(&mut self, conditions: Conditions, case: &Case) -> ExprId {
        let path = self.algebra.path_of(&case.locals);
        let keyword = self.number_keyword(case);
        let why = "no number satisfies these keywords together";
        let Some(conditions) = &few::reduced(conditions) else { return self.nothing(path, keyword, why) };
        let numbers = self.algebra.context.options.numbers;
        let grammar = &mut self.algebra.grammar;
        if conditions.not_all.is_empty() {
            let (bound, is_negative, has_zero) = match &*conditions.all {
                [] => return self.any(TypeSet::NUMBER),
                [Test::Integer] => return self.any(TypeSet::INTEGER),
                [Test::AtLeast(bound)] => (Some(bound), false, true),
                [Test::Above(bound)] => (Some(bound), false, false),
                [Test::AtMost(bound)] => (Some(bound), true, true),
                [Test::Below(bound)] => (Some(bound), true, false),
                _ => (None, false, false),
            };
            if bound.is_some_and(Decimal::is_zero) {
                return spelling::one_sided(grammar, is_negative, has_zero, numbers);
            }
        }
        let limit = self.algebra.context.options.limits.states;
        let list = |grammar: &mut GrammarBuilder, values: Vec<String>| {
            let ways: Vec<ExprId> = values.iter().map(|text| grammar.bytes(text.as_bytes())).collect();
            let is_empty = ways.is_empty();
            let expr = grammar.alt(ways);
            if is_empty { expr } else { spelling::as_rule(grammar, "number", expr) }
        };
        let built = match few::few_values(conditions) {
            Some(values) => Ok(list(grammar, values)),
            None => machine::build(grammar, conditions, limit, numbers).or_else(|what| {
                // Too large for an automaton, but few enough to be listed.
                few::values(conditions, limit).map(|values| list(grammar, values)).ok_or(what)
            }),
        };
        match built {
            Ok(expr) if self.is_never(expr) => self.nothing(path, keyword, why),
            Ok(expr) => expr,
            Err(what) => {
                let help = "use numbers with fewer digits, or smaller ones";
                if self.algebra.context.unenforceable(path, keyword, what, help) {
                    return self.any(TypeSet::NUMBER);
                }
                self.algebra.grammar.never()
            }
        }
    }

    /// Returns a keyword of the case that constrains numbers, for an error message.
    fn number_keyword(&mut self, case: &Case) -> &'static str {
        let first = case.locals.iter().find(|local| !local.negative);
        let Some(keywords) = first.map(|local| self.algebra.keywords(local.id)) else { return "" };
        match &*keywords {
            Keywords { multiple_of: Some(_), .. } => "multipleOf",
            Keywords { minimum: Some(bound), .. } if bound.exclusive => "exclusiveMinimum",
            Keywords { minimum: Some(_), .. } => "minimum",
            Keywords { maximum: Some(bound), .. } if bound.exclusive => "exclusiveMaximum",
            Keywords { maximum: Some(_), .. } => "maximum",
            _ => "",
        }
    }
}

/// Returns the tests of the local keywords of a schema, without listed values.
fn tests(keywords: &Keywords<'_>) -> Vec<Test> {
    let mut tests = Vec::with_capacity(3);
    if !keywords.types.covers(TypeSet::NUMBER) && keywords.types.meets(TypeSet::INTEGER) {
        tests.push(Test::Integer);
    }
    if let Some(bound) = &keywords.minimum {
        let value = bound.value.clone();
        tests.push(if bound.exclusive { Test::Above(value) } else { Test::AtLeast(value) });
    }
    if let Some(bound) = &keywords.maximum {
        let value = bound.value.clone();
        tests.push(if bound.exclusive { Test::Below(value) } else { Test::AtMost(value) });
    }
    if let Some(step) = &keywords.multiple_of {
        tests.push(Test::MultipleOf(step.clone()));
    }
    tests
}
