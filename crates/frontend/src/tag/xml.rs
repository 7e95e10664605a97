//! Documents that are written value by value instead of as JSON, as some models do in their tool calls:
//!
//! ```text
//!   <parameter=city>
//!   New York
//!   </parameter>
//!   <parameter=days>
//!   3
//!   </parameter>
//! ```
//!
//! The schema is that of an object, and each of its properties is a parameter. A string is written without quotes, up
//! to the closing tag, which it therefore cannot contain; every other value is written as JSON. Where a style does not
//! state the type, the schema determines it ([`Parameter::types`]), and readers of the parameters apply the same rule.
//! If the value can only be a string, it is one. If it can be a string or something else, text that looks like
//! something else, or like a string in quotes, is JSON, and everything else is a string. `wire` describes the styles as
//! data. In some of them a line break after the opening tag and one before the closing tag belong to the tags, if
//! present.
//!
//! A style may write objects and lists as nested values ([`Wire::item`]). Then white space is allowed between tags:
//!
//! ```text
//!   <cofl:value name="filter" type="dict">
//!     <cofl:value name="tags" type="list"><cofl:value type="raw">new</cofl:value></cofl:value>
//!   </cofl:value>
//! ```
//!
//! Values that the schema does not describe by the names of members or a schema for items are JSON there as well.
//!
//! Parameters that the schema does not name are allowed if it constrains them (`additionalProperties`,
//! `patternProperties`), or names none at all; they follow the named ones. `required` and the order of properties are
//! enforced as for JSON.

use maskwright_grammar::{CharSet, Expr, ExprId, Grammar, GrammarBuilder};
use rustc_hash::FxHashMap;

use super::error::{Reason, TagError};
use super::format::{Json, Marker};
use super::parameters::{
    Count, Inside, Others, Parameter, Separated, any_order, count, inside, others, parameters, reference,
    restricted,
};
use super::spelling::{Names, marker_expr};
use super::types::Types;
use super::wire::Wire;
use super::{schema, text};
use crate::json_schema::{self, Whitespace};

/// Lowers a document that is written value by value.
pub(super) fn lower(
    json: &Json,
    wire: Wire,
    options: &json_schema::Options,
    names: &Names<'_>,
    g: &mut GrammarBuilder,
) -> Result<ExprId, TagError> {
    let (list, others) = (parameters(json)?, others(json)?);
    let line = g.bytes(b"\n");
    let line = g.optional(line);
    let between = if wire.item.is_some() || wire.trims { layout(options, json, g) } else { line };
    let after_all = if wire.item.is_some() { between } else { line };
    let mut writer = Writer { g, options, names, json, wire, between, lists: FxHashMap::default() };
    let other = writer.other(&others, &list)?;
    let count = count(json, other.is_some())?;
    let all = writer.object(&list, other, count, MAX_DEPTH)?;
    Ok(g.seq([all, after_all]))
}

/// The depth to which values are nested; deeper values are JSON.
const MAX_DEPTH: usize = 64;

/// Returns the white space between tags.
fn layout(options: &json_schema::Options, json: &Json, g: &mut GrammarBuilder) -> ExprId {
    let usual = match options.whitespace {
        Whitespace::Flexible { max_run } => max_run,
        _ => 64,
    };
    let blank = CharSet::from_ranges([' ', '\t', '\n', '\r'].map(|c| (c, c)));
    let blank = g.class(blank);
    g.repeat(blank, 0, Some(json.max_whitespace.unwrap_or(usual)))
}

struct Writer<'w> {
    g: &'w mut GrammarBuilder,
    options: &'w json_schema::Options,
    /// The names of special tokens.
    names: &'w Names<'w>,
    json: &'w Json,
    wire: Wire,
    /// The white space that is allowed between two values, and around JSON.
    between: ExprId,
    /// The content of objects and lists that references lead to, because references may be recursive.
    lists: FxHashMap<(String, bool), maskwright_grammar::RuleId>,
}

impl Writer<'_> {
    /// Returns the members of an object in sequence.
    fn object(
        &mut self,
        list: &[Parameter],
        other: Option<ExprId>,
        count: Count,
        depth: usize,
    ) -> Result<ExprId, TagError> {
        let mut error = TagError::default();
        let mut parts = Vec::with_capacity(list.len());
        for parameter in list {
            match self.value(parameter, Name::Own, depth) {
                Ok(part) => parts.push((part, parameter.required)),
                Err(problems) => error.append(problems),
            }
        }
        error.or(())?;
        let (g, between) = (&mut *self.g, self.between);
        if count != Count::default() {
            if self.json.any_order || parts.len() > MAX_COUNTED_PARAMETERS {
                let message = if self.json.any_order {
                    "parameters in any order cannot be counted".to_owned()
                } else {
                    format!(
                        "more than {MAX_COUNTED_PARAMETERS} parameters cannot be counted, and these are {}",
                        parts.len()
                    )
                };
                let help = "leave `minProperties` and `maxProperties` out";
                return Err(TagError::of(Reason::Unsupported, &self.json.at, message, help));
            }
            return Ok(counted(&parts, other, between, count, g));
        }
        if self.json.any_order {
            any_order(&parts, other, (between, Separated::Before), self.json, g)
        } else {
            Ok(in_order(&parts, other, between, g))
        }
    }

    /// Returns a value whose name the schema does not list. Returns `None` if there is none.
    fn other(&mut self, others: &Others, named: &[Parameter]) -> Result<Option<ExprId>, TagError> {
        if others.is_empty() {
            return Ok(None);
        }
        let is_written = |c: &char| self.wire.escapes.iter().all(|(special, _)| special != c);
        let unwritten = (0..=127u8).map(char::from).filter(|c| "<>\"\n".contains(*c) || !is_written(c));
        let letters = CharSet::from_ranges(unwritten.map(|c| (c, c))).complement();
        let letter = self.g.class(letters);
        let any = self.g.repeat(letter, 1, None);
        let named: Vec<ExprId> = named.iter().map(|one| self.g.bytes(one.name.as_bytes())).collect();
        let named = self.g.alt(named);
        let unnamed = self.g.not(named);
        let excludes: Vec<ExprId> =
            self.json.excludes.iter().map(|text| self.g.bytes(text.as_bytes())).collect();
        let (all, excluded) = (self.g.any_text(), self.g.alt(excludes));
        let excluded = self.g.seq([all, excluded, all]);
        let clean = self.g.not(excluded);
        let patterns = others.patterns(self.json, self.g)?;
        let names = others.names(self.json, self.g)?;
        let mut ways = Vec::new();
        for (holds, parameter) in others.cells() {
            // A name is impossible if it matches patterns whose schemas have no common value.
            let is_possible = holds.count_ones() < 2
                || schema::possible_grammar(&parameter.schema, self.json, &parameter.below, self.options)?
                    .is_some();
            if !is_possible {
                continue;
            }
            let mut conditions = vec![any, unnamed, clean];
            conditions.extend(names);
            for (i, &pattern) in patterns.iter().enumerate() {
                conditions.push(if holds >> i & 1 == 1 { pattern } else { self.g.not(pattern) });
            }
            let name = self.g.and(conditions);
            ways.push(self.value(parameter, Name::Other(name), MAX_DEPTH)?);
        }
        Ok(Some(self.g.alt(ways)))
    }

    /// Returns one value, with its name or, in a list, without one.
    fn value(&mut self, parameter: &Parameter, name: Name, depth: usize) -> Result<ExprId, TagError> {
        let types = parameter.types;
        // Types that cannot be written as nested values are written as JSON.
        let mut as_json = Types::NONE;
        let mut ways = Vec::new();
        for which in [Types::OBJECT, Types::ARRAY] {
            if self.wire.item.is_none() || types.and(which).is_empty() {
                continue;
            }
            match self.content(parameter, which, depth)? {
                Some(content) => {
                    let after_name =
                        self.wire.parts(which).map(|(_, after_name)| after_name).next().unwrap_or_default();
                    let (open, close) =
                        (self.opening(parameter, name, after_name)?, self.closing(parameter)?);
                    ways.push(self.g.seq([open, content, self.between, close]));
                }
                None => as_json = as_json.or(which),
            }
        }
        let in_values = if self.wire.item.is_some() { Types::OBJECT.or(Types::ARRAY) } else { Types::NONE };
        let scalars = types.without(in_values);
        let mut parts: Vec<(Types, &str)> = self.wire.parts(scalars).collect();
        if types == Types::ALL {
            parts.extend(self.wire.synonyms());
        }
        if !as_json.is_empty() {
            let after_name =
                self.wire.parts(Types::NUMBER).map(|(_, after_name)| after_name).next().unwrap_or_default();
            match parts.iter_mut().find(|(_, known)| *known == after_name) {
                Some((here, _)) => *here = here.or(as_json),
                None => parts.push((as_json, after_name)),
            }
        }
        for (here, after_name) in parts {
            let is_text = here == Types::TEXT;
            let Some(grammar) = self.grammar(parameter, here)? else { continue };
            let open = self.opening(parameter, name, after_name)?;
            let value =
                if is_text { self.text(&grammar, parameter)? } else { self.document(&grammar, parameter)? };
            ways.push(self.g.seq([open, value]));
            if !is_text
                && !here.and(Types::TEXT).is_empty()
                && let Some(bare) = self.bare(parameter, here)?
            {
                ways.push(self.g.seq([open, bare]));
            }
        }
        if ways.is_empty() {
            let at = format!("{}{}", self.json.at, parameter.below);
            let help = "fix the schema, or take the property away";
            return Err(TagError::of(Reason::Content, &at, "no value satisfies this schema", help));
        }
        Ok(self.g.alt(ways))
    }

    /// Returns the grammar of the values of some types. Returns `None` if there are no such values, but values of other
    /// types.
    fn grammar(&mut self, parameter: &Parameter, types: Types) -> Result<Option<Grammar>, TagError> {
        if types == parameter.types {
            return schema::grammar(&parameter.schema, self.json, &parameter.below, self.options).map(Some);
        }
        let schema = restricted(&parameter.schema, types);
        schema::possible_grammar(&schema, self.json, &parameter.below, self.options)
    }

    /// Returns the content of an object or a list, or `None` if it is written as JSON.
    fn content(
        &mut self,
        parameter: &Parameter,
        which: Types,
        depth: usize,
    ) -> Result<Option<ExprId>, TagError> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
        let Some(inside) = inside(parameter, which, self.json) else { return Ok(None) };
        let Some(reference) = reference(&parameter.schema) else {
            return self.list(&inside, depth).map(Some);
        };
        let key = (reference.to_owned(), which == Types::OBJECT);
        if let Some(rule) = self.lists.get(&key) {
            return Ok(Some(self.g.rule(*rule)));
        }
        let rule = self.g.declare("values");
        self.lists.insert(key, rule);
        let body = self.list(&inside, depth)?;
        self.g.define(rule, body);
        Ok(Some(self.g.rule(rule)))
    }

    fn list(&mut self, inside: &Inside, depth: usize) -> Result<ExprId, TagError> {
        match inside {
            Inside::Object(members) => self.object(members, None, Count::default(), depth),
            Inside::List { item, min, max } => {
                let item = self.value(item, Name::None, depth)?;
                let g = &mut *self.g;
                let item = g.seq([self.between, item]);
                Ok(g.repeat(item, *min, *max))
            }
        }
    }

    fn opening(&mut self, parameter: &Parameter, name: Name, after_name: &str) -> Result<ExprId, TagError> {
        let wire = self.wire;
        let (before, after) = after_name.split_at(wire.gap.unwrap_or(after_name.len()));
        let head = match (name, wire.item) {
            // Without a name, the quote after it is left out.
            (Name::None, Some(item)) => {
                return self.marker(&format!("{item}{}", after_name.trim_start_matches('"')));
            }
            (Name::Other(name), _) => {
                let (open, before) = (self.marker(wire.open)?, self.marker(before)?);
                self.g.seq([open, name, before])
            }
            _ => self.marker(&format!("{}{}{before}", wire.open, wire.escape(&parameter.name)))?,
        };
        if after.is_empty() {
            return Ok(head);
        }
        let tail = self.marker(after)?;
        Ok(self.g.seq([head, self.between, tail]))
    }

    fn closing(&mut self, parameter: &Parameter) -> Result<ExprId, TagError> {
        self.marker(&format!("{}{}", self.wire.close, self.tail(parameter)))
    }

    /// Returns the text after `close` in the closing tag. Items of lists have no name.
    fn tail(&self, parameter: &Parameter) -> String {
        let name = self.wire.escape(&parameter.name);
        self.wire.tail((!name.is_empty()).then_some(&*name))
    }

    /// Returns a tag, whose parts may be special tokens.
    fn marker(&mut self, text: &str) -> Result<ExprId, TagError> {
        let empty = self.g.empty();
        marker_expr(&Marker::Text(text.into()), empty, &self.json.at, self.names, self.g)
    }

    /// Returns a value that is written as JSON, with the closing tag.
    fn document(&mut self, grammar: &Grammar, parameter: &Parameter) -> Result<ExprId, TagError> {
        let (close, around) = (self.closing(parameter)?, self.between);
        let value = self.g.embed(grammar);
        Ok(self.g.seq([around, value, around, close]))
    }

    /// Returns a string that is written without quotes, with the closing tag.
    fn text(&mut self, grammar: &Grammar, parameter: &Parameter) -> Result<ExprId, TagError> {
        let mut texts = Texts { grammar, depth: 0 };
        let text = texts.of(grammar.rule(grammar.root()).expr(), self.g).ok_or_else(|| {
            let at = format!("{}{}", self.json.at, parameter.below);
            let message = "the strings of this schema cannot be written without quotes";
            TagError::of(Reason::Unsupported, &at, message, "use a simpler schema, or the style \"json\"")
        })?;
        self.closed_text(text, parameter)
    }

    /// Returns, for a value that may be a string or something else, the strings that are not read as JSON, without
    /// quotes and with the closing tag. Returns `None` if there is no such string, or none that can be written without
    /// quotes.
    fn bare(&mut self, parameter: &Parameter, types: Types) -> Result<Option<ExprId>, TagError> {
        let Some(grammar) = self.grammar(parameter, Types::TEXT)? else { return Ok(None) };
        let mut texts = Texts { grammar: &grammar, depth: 0 };
        let Some(text) = texts.of(grammar.rule(grammar.root()).expr(), self.g) else { return Ok(None) };
        let json = like_json(types, self.g);
        let other = self.g.not(json);
        let text = self.g.and([text, other]);
        self.closed_text(text, parameter).map(Some)
    }

    /// Returns a text with the closing tag, which it does not contain.
    fn closed_text(&mut self, text: ExprId, parameter: &Parameter) -> Result<ExprId, TagError> {
        let tail = self.tail(parameter);
        let tail = self.marker(&tail)?;
        let Wire { close, trims, .. } = self.wire;
        let closed = text::closed(text, close, trims, self.names, &self.json.at, self.g)?;
        Ok(self.g.seq([closed, tail]))
    }
}

/// The name that is written for a value.
#[derive(Clone, Copy)]
enum Name {
    /// The name of the parameter.
    Own,
    /// One of these names.
    Other(ExprId),
    /// No name.
    None,
}

/// Returns the texts that are read as JSON where a value may be a string or of another of these types. White space
/// around them does not count.
fn like_json(types: Types, g: &mut GrammarBuilder) -> ExprId {
    let blank = CharSet::from_ranges([' ', '\t', '\n', '\r'].map(|c| (c, c)));
    let blank = g.class(blank);
    let (blanks, all) = (g.star(blank), g.any_text());
    let mut ways = Vec::new();
    for (which, start) in [(Types::TEXT, b"\""), (Types::OBJECT, b"{"), (Types::ARRAY, b"[")] {
        if !types.and(which).is_empty() {
            let start = g.bytes(start);
            ways.push(g.seq([blanks, start, all]));
        }
    }
    let mut words = Vec::new();
    if !types.and(Types::NULL).is_empty() {
        words.push(g.bytes(b"null"));
    }
    if !types.and(Types::BOOLEAN).is_empty() {
        words.extend([g.bytes(b"true"), g.bytes(b"false")]);
    }
    if !types.and(Types::NUMBER).is_empty() {
        words.push(number(g));
    }
    let word = g.alt(words);
    ways.push(g.seq([blanks, word, blanks]));
    g.alt(ways)
}

/// Returns the numbers of JSON.
fn number(g: &mut GrammarBuilder) -> ExprId {
    let one = |g: &mut GrammarBuilder, letters: &[(char, char)]| {
        g.class(CharSet::from_ranges(letters.iter().copied()))
    };
    let (digit, first) = (one(g, &[('0', '9')]), one(g, &[('1', '9')]));
    let (digits, more) = (g.repeat(digit, 1, None), g.star(digit));
    let (zero, minus, point) = (g.bytes(b"0"), g.bytes(b"-"), g.bytes(b"."));
    let (sign, power) = (one(g, &[('+', '+'), ('-', '-')]), one(g, &[('E', 'E'), ('e', 'e')]));
    let whole = g.seq([first, more]);
    let whole = g.alt([zero, whole]);
    let fraction = g.seq([point, digits]);
    let sign = g.optional(sign);
    let exponent = g.seq([power, sign, digits]);
    let (minus, fraction, exponent) = (g.optional(minus), g.optional(fraction), g.optional(exponent));
    g.seq([minus, whole, fraction, exponent])
}

/// The maximum number of parameters that are counted.
const MAX_COUNTED_PARAMETERS: usize = 200;

/// Returns parameters in order, whose number is within the window: a rule for the rest after each number of written
/// parameters.
fn counted(
    parts: &[(ExprId, bool)],
    other: Option<ExprId>,
    between: ExprId,
    Count { min, max }: Count,
    g: &mut GrammarBuilder,
) -> ExprId {
    let other = other.map(|other| g.seq([between, other]));
    let written = || 0..=u32::try_from(parts.len()).unwrap_or(u32::MAX);
    let mut rest: Vec<ExprId> = written()
        .map(|written| match (max.map(|max| max.checked_sub(written)), other) {
            (Some(None), _) => g.never(),
            (max, Some(other)) => g.repeat(other, min.saturating_sub(written), max.flatten()),
            (_, None) if written < min => g.never(),
            (_, None) => g.empty(),
        })
        .collect();
    for (place, &(part, required)) in parts.iter().enumerate().rev() {
        let part = g.seq([between, part]);
        rest = (0..=place)
            .map(|written| {
                let with = g.seq([part, rest[written + 1]]);
                let body = if required { with } else { g.alt([with, rest[written]]) };
                let rule = g.declare("counted");
                g.define(rule, body);
                g.rule(rule)
            })
            .collect();
    }
    rest[0]
}

fn in_order(
    parts: &[(ExprId, bool)],
    other: Option<ExprId>,
    between: ExprId,
    g: &mut GrammarBuilder,
) -> ExprId {
    let parts = parts.iter().map(|&(part, required)| {
        let part = g.seq([between, part]);
        if required { part } else { g.optional(part) }
    });
    let mut parts: Vec<ExprId> = parts.collect();
    if let Some(other) = other {
        let other = g.seq([between, other]);
        parts.push(g.star(other));
    }
    g.seq(parts)
}

/// Collects the texts of the JSON strings of a grammar.
struct Texts<'g> {
    grammar: &'g Grammar,
    depth: usize,
}

impl Texts<'_> {
    /// Returns `None` if the expression contains anything but strings, or a string with many spellings.
    fn of(&mut self, id: ExprId, g: &mut GrammarBuilder) -> Option<ExprId> {
        self.depth += 1;
        if self.depth > 10_000 {
            return None;
        }
        match self.grammar.expr(id) {
            Expr::Never => Some(g.never()),
            Expr::JsonString(text) => schema::regular_copy(self.grammar, *text, g),
            Expr::Bytes(bytes) => {
                let text: String = serde_json::from_slice(bytes).ok()?;
                Some(g.bytes(text.as_bytes()))
            }
            Expr::Alt(parts) => {
                let parts = parts.iter().map(|part| self.of(*part, g));
                let parts = parts.collect::<Option<Vec<_>>>()?;
                Some(g.alt(parts))
            }
            Expr::Rule(rule) => self.of(self.grammar.rule(*rule).expr(), g),
            _ => None,
        }
    }
}
