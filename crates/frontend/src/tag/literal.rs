//! Documents written as the arguments of a call, in the notation of a language or of a model:
//!
//! ```text
//!   city="Oslo", days=3, exact=True            Style::Python
//!   city:<|"|>Oslo<|"|>,days:3,tags:[{a:1}]    Style::Gemma4
//! ```
//!
//! The values come from the grammar of their JSON, in which only the parts with another spelling are replaced. For
//! Python these are its words, which may also be written as in JSON. For Gemma they are strings, which are written
//! without escapes between special quotes, and names, which have no quotes. Strings of Python are written as JSON
//! strings, as chat templates do. Constraints that compare values (`uniqueItems`) need JSON, so they are refused for
//! Gemma.

use maskwright_grammar::{CharSet, Expr, ExprId, Grammar, GrammarBuilder, RuleId};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::error::{Reason, TagError};
use super::format::{Json, Marker, Style};
use super::parameters::{Others, Parameter, Separated, any_order, others, parameters};
use super::schema::{self, regular_copy};
use super::spelling::{Names, marker_expr};
use super::text;
use super::wire::can_write;
use crate::json_schema::{self, Whitespace};

/// The marker around a string of Gemma.
pub(super) const QUOTE: &str = "<|\"|>";

/// Lowers a document that is written as arguments.
pub(super) fn lower(
    json: &Json,
    options: &json_schema::Options,
    names: &Names<'_>,
    g: &mut GrammarBuilder,
) -> Result<ExprId, TagError> {
    let mut json = json.clone();
    let mut options = options.clone();
    let mut inner = json.clone();
    if json.style == Style::Gemma4 {
        // The template sorts names, and so does the model; no white space is allowed.
        json.schema = sorted(&json.schema, 64);
        options.whitespace = Whitespace::Compact;
        (inner.max_whitespace, inner.any_order) = (None, false);
    }
    let (list, others) = (parameters(&json)?, others(&json)?);
    let mut writer = Writer { g, options: &options, names, json: &json, inner: &inner };
    let mut error = TagError::default();
    let mut parts = Vec::with_capacity(list.len());
    for parameter in &list {
        match writer.value(parameter) {
            Ok(value) => {
                let name = writer.g.bytes(parameter.name.as_bytes());
                parts.push((writer.named(name, value), parameter.required));
            }
            Err(problems) => error.append(problems),
        }
    }
    error.or(())?;
    let other = writer.other(&others, &list)?;
    let separator = g.bytes(if json.style == Style::Python { b", " } else { b"," });
    if json.any_order {
        any_order(&parts, other, (separator, Separated::Between), &json, g)
    } else {
        Ok(in_order(&parts, other, separator, g))
    }
}

/// Returns the schema with the names of objects sorted like Jinja's `dictsort`: alphabetically, ignoring case.
fn sorted(schema: &Value, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return schema.clone() };
    match schema {
        Value::Object(map) => {
            let mut copy = Map::new();
            for (keyword, value) in map {
                let value = match (&**keyword, value) {
                    ("properties", Value::Object(members)) => {
                        let mut members: Vec<(&String, &Value)> = members.iter().collect();
                        members.sort_by_key(|(name, _)| name.to_lowercase());
                        let members =
                            members.into_iter().map(|(name, value)| (name.clone(), sorted(value, depth)));
                        Value::Object(members.collect())
                    }
                    ("const" | "enum" | "default" | "examples", _) => value.clone(),
                    _ => sorted(value, depth),
                };
                copy.insert(keyword.clone(), value);
            }
            Value::Object(copy)
        }
        Value::Array(items) => items.iter().map(|item| sorted(item, depth)).collect(),
        _ => schema.clone(),
    }
}

struct Writer<'w> {
    g: &'w mut GrammarBuilder,
    options: &'w json_schema::Options,
    names: &'w Names<'w>,
    json: &'w Json,
    /// The settings for values, as opposed to the list of arguments.
    inner: &'w Json,
}

impl Writer<'_> {
    fn value(&mut self, parameter: &Parameter) -> Result<ExprId, TagError> {
        let grammar = schema::grammar(&parameter.schema, self.inner, &parameter.below, self.options)?;
        let at = format!("{}{}", self.json.at, parameter.below);
        let quote = marker_expr(&Marker::Text(QUOTE.into()), self.g.empty(), &at, self.names, self.g)?;
        let style = self.json.style;
        let mut copy = Copy {
            grammar: &grammar,
            g: self.g,
            style,
            names: self.names,
            at: &at,
            quote,
            known: FxHashMap::default(),
            rules: FxHashMap::default(),
            work: Vec::new(),
            depth: 0,
        };
        copy.all().map_err(|stop| match stop {
            Stop::Problem(error) => error,
            Stop::Unwritten(what) => {
                let message = format!("{what} cannot be written in the style {}", style.name());
                TagError::of(Reason::Unsupported, &at, message, "use a simpler schema")
            }
        })
    }

    /// Returns a name followed by its value.
    fn named(&mut self, name: ExprId, value: ExprId) -> ExprId {
        let sign = self.g.bytes(if self.json.style == Style::Python { b"=" } else { b":" });
        self.g.seq([name, sign, value])
    }

    /// Returns a value whose name the schema does not list. Returns `None` if there is none.
    fn other(&mut self, others: &Others, named: &[Parameter]) -> Result<Option<ExprId>, TagError> {
        if others.is_empty() {
            return Ok(None);
        }
        let any = name(self.json.style, self.g);
        let named: Vec<ExprId> = named.iter().map(|one| self.g.bytes(one.name.as_bytes())).collect();
        let named = self.g.alt(named);
        let unnamed = self.g.not(named);
        let patterns = others.patterns(self.json, self.g)?;
        let mut ways = Vec::new();
        for (holds, parameter) in others.cells() {
            let mut conditions = vec![any, unnamed];
            for (i, &pattern) in patterns.iter().enumerate() {
                conditions.push(if holds >> i & 1 == 1 { pattern } else { self.g.not(pattern) });
            }
            let name = self.g.and(conditions);
            let value = self.value(parameter)?;
            ways.push(self.named(name, value));
        }
        Ok(Some(self.g.alt(ways)))
    }
}

/// Returns a name that the schema does not list.
fn name(style: Style, g: &mut GrammarBuilder) -> ExprId {
    let letters = [('A', 'Z'), ('_', '_'), ('a', 'z')];
    let (first, more) =
        (CharSet::from_ranges(letters), CharSet::from_ranges(letters.into_iter().chain([('0', '9')])));
    let more = if style == Style::Python { more } else { more.union(&CharSet::from_ranges([('-', '.')])) };
    let (first, more) = (g.class(first), g.class(more));
    let more = g.star(more);
    g.seq([first, more])
}

/// The context of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Value,
    /// Before a colon.
    Name,
    /// In a value that is compared with others: it stays JSON.
    Compared,
}

enum Stop {
    Problem(TagError),
    /// A construct that the style cannot express.
    Unwritten(&'static str),
}

/// Copies the grammar of a JSON document into another notation.
struct Copy<'c, 'g> {
    grammar: &'c Grammar,
    g: &'g mut GrammarBuilder,
    style: Style,
    names: &'c Names<'c>,
    at: &'c str,
    /// The marker around a string, in all its spellings.
    quote: ExprId,
    known: FxHashMap<(ExprId, Place), ExprId>,
    rules: FxHashMap<(RuleId, Place), RuleId>,
    /// Rules that are declared but not defined.
    work: Vec<(RuleId, Place)>,
    depth: usize,
}

/// The maximum nesting depth of expressions inside a rule.
const MAX_DEPTH: usize = 2_000;

impl Copy<'_, '_> {
    fn all(&mut self) -> Result<ExprId, Stop> {
        let root = self.rule(self.grammar.root(), Place::Value);
        while let Some((rule, place)) = self.work.pop() {
            let body = self.expr(self.grammar.rule(rule).expr(), place)?;
            self.g.define(self.rules[&(rule, place)], body);
        }
        Ok(root)
    }

    fn rule(&mut self, rule: RuleId, place: Place) -> ExprId {
        if let Some(known) = self.rules.get(&(rule, place)) {
            return self.g.rule(*known);
        }
        let copy = self.g.declare(self.grammar.rule(rule).name());
        self.rules.insert((rule, place), copy);
        self.work.push((rule, place));
        self.g.rule(copy)
    }

    fn expr(&mut self, id: ExprId, place: Place) -> Result<ExprId, Stop> {
        if let Some(known) = self.known.get(&(id, place)) {
            return Ok(*known);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Stop::Unwritten("so deep a schema"));
        }
        let copy = self.new_expr(id, place)?;
        self.depth -= 1;
        self.known.insert((id, place), copy);
        Ok(copy)
    }

    fn new_expr(&mut self, id: ExprId, place: Place) -> Result<ExprId, Stop> {
        let grammar = self.grammar;
        let is_gemma = self.style == Style::Gemma4;
        Ok(match grammar.expr(id) {
            Expr::Never => self.g.never(),
            Expr::Empty => self.g.empty(),
            Expr::Bytes(bytes) => self.bytes(bytes, place)?,
            Expr::Rule(rule) => self.rule(*rule, place),
            Expr::Alt(parts) => {
                let parts =
                    parts.iter().map(|part| self.expr(*part, place)).collect::<Result<Vec<_>, _>>()?;
                self.g.alt(parts)
            }
            Expr::JsonString(text) => {
                let text = regular_copy(grammar, *text, self.g).ok_or(Stop::Unwritten("this string"))?;
                self.string(text, place)?
            }
            Expr::Distinct(value) if !is_gemma => {
                let value = self.expr(*value, Place::Compared)?;
                self.g.distinct(value)
            }
            // Repeated names are not detected, as in the other styles of parameters.
            Expr::Distinct(value) if place == Place::Name => self.expr(*value, place)?,
            Expr::Distinct(_) => {
                return Err(Stop::Unwritten("an array whose items must differ (`uniqueItems`)"));
            }
            Expr::Scope { body, required, needs } if !is_gemma => {
                let body = self.expr(*body, place)?;
                self.g.scope_with_needs(body, required.iter().cloned(), needs.iter().cloned())
            }
            Expr::Scope { body, required, needs } if required.is_empty() && needs.is_empty() => {
                self.expr(*body, place)?
            }
            Expr::Scope { .. } => return Err(Stop::Unwritten("an object whose names come in any order")),
            _ if place == Place::Name => return Err(Stop::Unwritten("a name like this")),
            Expr::Seq(parts) => {
                let mut copies = Vec::with_capacity(parts.len());
                for (i, part) in parts.iter().enumerate() {
                    let next =
                        parts[i + 1..].iter().map(|id| grammar.expr(*id)).find(|next| **next != Expr::Empty);
                    let is_name =
                        is_gemma && matches!(next, Some(Expr::Bytes(bytes)) if bytes.starts_with(b":"));
                    copies.push(self.expr(*part, if is_name { Place::Name } else { place })?);
                }
                self.g.seq(copies)
            }
            Expr::Repeat { body, min, max } => {
                let body = self.expr(*body, place)?;
                self.g.repeat(body, *min, *max)
            }
            Expr::Limit { body, tokens } => {
                let body = self.expr(*body, place)?;
                self.g.limit(body, *tokens)
            }
            Expr::Class(set) => self.g.class(set.clone()),
            // Numbers, which have the same spelling in all notations.
            Expr::And(_) | Expr::Not(_) => {
                regular_copy(grammar, id, self.g).ok_or(Stop::Unwritten("this schema"))?
            }
            Expr::Token(_) => return Err(Stop::Unwritten("this schema")),
        })
    }

    /// Returns a string whose text is in a language.
    fn string(&mut self, text: ExprId, place: Place) -> Result<ExprId, Stop> {
        if self.style == Style::Python {
            return Ok(self.g.json_string(text));
        }
        if place == Place::Name {
            let any = name(self.style, self.g);
            return Ok(self.g.and([any, text]));
        }
        let closed = text::closed(text, QUOTE, false, self.names, self.at, self.g).map_err(Stop::Problem)?;
        Ok(self.g.seq([self.quote, closed]))
    }

    /// Copies a piece of JSON with a fixed spelling: tokens of JSON, and parts of numbers.
    fn bytes(&mut self, bytes: &[u8], place: Place) -> Result<ExprId, Stop> {
        let mut rest = core::str::from_utf8(bytes).map_err(|_| Stop::Unwritten("this schema"))?;
        let mut parts = Vec::new();
        while let Some(c) = rest.chars().next() {
            let length = match c {
                '"' => {
                    let length = string_length(rest).ok_or(Stop::Unwritten("this string"))?;
                    let is_name = place == Place::Name || rest[length..].starts_with(':');
                    parts.push(self.literal(&rest[..length], is_name)?);
                    length
                }
                'a'..='z' => {
                    let length = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
                    parts.push(self.word(&rest[..length], place));
                    length
                }
                c => {
                    parts.push(self.g.bytes(c.encode_utf8(&mut [0; 4]).as_bytes()));
                    c.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        Ok(self.g.seq(parts))
    }

    /// Copies a JSON string with a fixed spelling.
    fn literal(&mut self, written: &str, is_name: bool) -> Result<ExprId, Stop> {
        if self.style == Style::Python {
            return Ok(self.g.bytes(written.as_bytes()));
        }
        let text: String = serde_json::from_str(written).map_err(|_| Stop::Unwritten("this string"))?;
        if is_name {
            if !can_write(self.style, &text) {
                return Err(Stop::Unwritten("a name like this"));
            }
            return Ok(self.g.bytes(text.as_bytes()));
        }
        let text = self.g.bytes(text.as_bytes());
        self.string(text, Place::Value)
    }

    /// Copies `true`, `false` and `null`; other letters are parts of numbers.
    fn word(&mut self, word: &str, place: Place) -> ExprId {
        let own = self.g.bytes(word.as_bytes());
        let python = match word {
            "true" => "True",
            "false" => "False",
            "null" => "None",
            _ => return own,
        };
        if self.style != Style::Python || place == Place::Compared {
            return own;
        }
        let python = self.g.bytes(python.as_bytes());
        self.g.alt([python, own])
    }
}

/// Returns the length of the string at the start of a piece of JSON.
fn string_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Returns values in the order of the schema, with separators.
fn in_order(
    parts: &[(ExprId, bool)],
    other: Option<ExprId>,
    separator: ExprId,
    g: &mut GrammarBuilder,
) -> ExprId {
    let (mut first, mut after) = (g.empty(), g.empty());
    if let Some(other) = other {
        let more = g.seq([separator, other]);
        after = g.star(more);
        let some = g.seq([other, after]);
        first = g.optional(some);
    }
    for &(part, required) in parts.iter().rev() {
        let rest = g.declare("arguments");
        g.define(rest, after);
        let rest = g.rule(rest);
        let with = g.seq([part, rest]);
        let next = g.seq([separator, with]);
        (first, after) = if required { (with, next) } else { (g.alt([with, first]), g.alt([next, rest])) };
    }
    first
}
