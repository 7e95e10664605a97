//! Parses numbers, the parameters of rules, and the JSON after directives.

use maskwright_grammar::Span;
use serde_json::Value;

use super::super::ast::{Atom, Document};
use super::super::lex::Kind;
use super::super::params::{Bits, Comparison, Condition, Update};
use super::{Parser, Read, Stop};
use crate::notation::nearest;
use crate::notation::substring;

/// The functions that compute a parameter.
const UPDATES: [&str; 6] = ["bit_and", "bit_or", "clear_bit", "decr", "incr", "set_bit"];

/// The conditions on a parameter.
const CONDITIONS: [&str; 20] = [
    "true",
    "and",
    "or",
    "not",
    "bit_clear",
    "bit_set",
    "is_ones",
    "is_zeros",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "bit_count_eq",
    "bit_count_ne",
    "bit_count_lt",
    "bit_count_le",
    "bit_count_gt",
    "bit_count_ge",
];

impl Parser<'_> {
    /// Reads any number, and returns its text.
    pub(super) fn number(&mut self) -> Read<Box<str>> {
        match self.peek() {
            Some(Kind::Number) => {
                let text = self.text(self.here()).into();
                self.at += 1;
                Ok(text)
            }
            _ => self.unexpected("a number"),
        }
    }

    /// Reads a whole number, decimal or hexadecimal.
    pub(super) fn unsigned(&mut self) -> Read<u64> {
        let place = self.here();
        let text = self.number()?;
        let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        match parsed {
            Ok(number) => Ok(number),
            Err(_) => {
                self.fail(place, "this must be a whole number of 64 bits", "write for example `12` or `0x1F`")
            }
        }
    }

    /// Reads how a call computes its parameter.
    pub(super) fn update(&mut self) -> Read<Update> {
        if self.peek() == Some(&Kind::Number) {
            return Ok(Update::Number(self.unsigned()?));
        }
        let place = self.here();
        let name = self.expect_name()?;
        if &*name == "_" {
            return Ok(Update::Same);
        }
        if !UPDATES.contains(&&*name) {
            return self.unknown(place, "function", &name, &UPDATES);
        }
        self.expect("(", "")?;
        let update = match &*name {
            "set_bit" => Update::Or(1 << self.bit()?),
            "clear_bit" => Update::And(!(1 << self.bit()?)),
            "bit_and" => Update::And(self.unsigned()?),
            "bit_or" => Update::Or(self.unsigned()?),
            "incr" => Update::Increase(self.bits()?),
            _ => Update::Decrease(self.bits()?),
        };
        self.expect(")", "")?;
        Ok(update)
    }

    /// Reads the condition after `%if`.
    pub(super) fn condition(&mut self) -> Read<Condition> {
        let place = self.here();
        let name = self.expect_name()?;
        if &*name == "true" {
            if self.eat("(") {
                self.expect(")", "")?;
            }
            return Ok(Condition::True);
        }
        if !CONDITIONS.contains(&&*name) {
            return self.unknown(place, "condition", &name, &CONDITIONS);
        }
        self.expect("(", "")?;
        let condition = self.deeper(|parser| parser.condition_named(&name))?;
        self.expect(")", "")?;
        Ok(condition)
    }

    fn condition_named(&mut self, name: &str) -> Read<Condition> {
        Ok(match name {
            "and" | "or" => {
                let a = Box::new(self.condition()?);
                self.expect(",", " and a second condition")?;
                let b = Box::new(self.condition()?);
                if name == "and" { Condition::Both(a, b) } else { Condition::Either(a, b) }
            }
            "not" => Condition::Not(Box::new(self.condition()?)),
            "bit_clear" | "bit_set" => {
                let bit = u64::from(self.bit()?);
                let bits = Bits::new(bit, bit + 1).unwrap_or(Bits::ALL);
                Condition::Value(bits, Comparison::Equal, u64::from(name == "bit_set"))
            }
            "is_ones" => {
                let bits = self.bits()?;
                Condition::Value(bits, Comparison::Equal, bits.ones())
            }
            "is_zeros" => Condition::Value(self.bits()?, Comparison::Equal, 0),
            _ => {
                let counted = name.strip_prefix("bit_count_");
                let comparison = Comparison::named(counted.unwrap_or(name)).unwrap_or(Comparison::Equal);
                let bits = self.bits()?;
                self.expect(",", " and a number")?;
                let number = self.unsigned()?;
                match counted {
                    Some(_) => Condition::Count(bits, comparison, number),
                    None => Condition::Value(bits, comparison, number),
                }
            }
        })
    }

    fn unknown<T>(&mut self, place: Span, what: &str, name: &str, known: &[&'static str]) -> Read<T> {
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known.join(", ")),
        };
        self.fail(place, format!("there is no {what} `{name}`"), help)
    }

    /// Reads the number of a bit.
    fn bit(&mut self) -> Read<u32> {
        let place = self.here();
        match self.unsigned()? {
            bit @ 0..=63 => Ok(bit as u32),
            _ => self.fail(place, "a parameter has 64 bits", "write a number from 0 to 63"),
        }
    }

    /// Reads `[x:y]` or `_`.
    fn bits(&mut self) -> Read<Bits> {
        let start = self.here();
        if !self.eat("[") {
            if self.peek() == Some(&Kind::Name) && self.text(start) == "_" {
                self.at += 1;
                return Ok(Bits::ALL);
            }
            return self.unexpected("`_` or some bits, such as `[0:3]`");
        }
        let first = self.unsigned()?;
        self.expect(":", "")?;
        let end = self.unsigned()?;
        self.expect("]", "")?;
        let Some(bits) = Bits::new(first, end) else {
            let place = Span::new(start.start, self.end_before());
            return self.fail(
                place,
                "these are no bits of 64",
                "write `[x:y]` with x below y, and y not above 64",
            );
        };
        Ok(bits)
    }

    /// Reads `%json { … }`, `%regex { … }` or `%lark { … }` in a body.
    pub(super) fn inline_directive(&mut self) -> Read<Atom> {
        let place = self.here();
        let word = self.text(place).to_owned();
        match &*word {
            "%json" => {
                self.at += 1;
                let (text, _) = self.json()?;
                Ok(Atom::Json(text, None))
            }
            "%regex" => {
                self.at += 1;
                let (text, span) = self.json()?;
                self.substring(&text, span)
            }
            "%lark" => {
                self.at += 1;
                self.expect("{", " after `%lark`")?;
                let document = self.deeper(|parser| Ok(parser.document(true)))?;
                if !self.eat("}") {
                    if self.errors.is_empty() {
                        return self.fail(place, "this nested grammar is not closed", "close it with `}`");
                    }
                    return Err(Stop);
                }
                self.documents.push(document);
                Ok(Atom::Nested(self.documents.len() - 1))
            }
            _ => {
                let help = "write it on a line of its own";
                self.fail(place, format!("`{word}` belongs in the body of a definition"), help)
            }
        }
    }

    /// Returns the JSON after a directive, as text.
    fn json(&mut self) -> Read<(Box<str>, Span)> {
        let span = self.here();
        if self.peek() != Some(&Kind::Json) {
            return self.unexpected("JSON");
        }
        self.at += 1;
        Ok((self.text(span).into(), span))
    }

    /// Reads the chunks of a `%regex`.
    fn substring(&mut self, text: &str, span: Span) -> Read<Atom> {
        const HELP: &str = "write `{\"substring_chars\": \"…\"}`, `{\"substring_words\": \"…\"}` or `{\"substring_chunks\": [\"…\"]}`";
        let value: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        let chunks = match value.as_object().map(|map| (map.len(), map.iter().next())) {
            Some((1, Some((key, Value::String(text))))) if key == "substring_chars" => substring::chars(text),
            Some((1, Some((key, Value::String(text))))) if key == "substring_words" => substring::words(text),
            Some((1, Some((key, Value::Array(chunks)))))
                if key == "substring_chunks" && chunks.iter().all(Value::is_string) =>
            {
                chunks.iter().filter_map(Value::as_str).map(Into::into).collect()
            }
            _ => return self.fail(span, "`%regex` needs exactly one kind of substring", HELP),
        };
        let limit = self.options.limits.chunks;
        if chunks.len() > limit {
            let message =
                format!("a substring of {} chunks is asked for, and the limit is {limit}", chunks.len());
            return self.fail(
                span,
                message,
                "use `substring_words` or longer chunks, or raise the limit `chunks`",
            );
        }
        Ok(Atom::Substring(chunks))
    }

    /// Reads the options after `%llguidance`.
    pub(super) fn settings(&mut self, document: &mut Document) -> Read<()> {
        let (text, span) = self.json()?;
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let Some(map) = value.as_object() else {
            return self.fail(span, "the options need an object", "write `{}`, or options in it");
        };
        for (key, value) in map {
            match (&**key, value) {
                // The grammar does not affect how forced text is split into tokens.
                ("no_forcing", Value::Bool(_)) | ("allow_invalid_utf8", Value::Bool(false)) => {}
                ("allow_initial_skip", Value::Bool(allowed)) => document.settings.ignored_first = *allowed,
                ("ignore_once", Value::Bool(once)) => document.settings.ignored_once = *once,
                ("skip_repetition", Value::String(how)) if how == "once" || how == "unbounded" => {
                    document.settings.ignored_once = how == "once";
                }
                ("allow_invalid_utf8", Value::Bool(true)) => {
                    let help = "leave it out: what a grammar allows is always UTF-8";
                    return self.fail(span, "text that is not UTF-8 cannot be allowed", help);
                }
                _ => {
                    let message = format!("the option `{key}` is not known, or has another kind of value");
                    let help = "there are allow_initial_skip, ignore_once, no_forcing and skip_repetition";
                    return self.fail(span, message, help);
                }
            }
        }
        Ok(())
    }
}
