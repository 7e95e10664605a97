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
//! The schema is that of an object, and each of its properties is a parameter. A string is written as it is, up to the closing tag, which it
//! therefore does not contain; every other value is written as JSON. Where a style does not say which it is, only what can be nothing
//! but a string is taken for one: that is a question about the schema ([`Parameter::types`]), and whoever reads the parameters asks it in the same way. `wire` has the
//! styles as data. For some of them a line break behind the opening tag and one in front of the closing tag belong to the tags, as far as they are there.
//!
//! A style may write objects and lists as values inside values ([`Wire::item`]), and then there may be white space between tags:
//!
//! ```text
//!   <cofl:value name="filter" type="dict">
//!     <cofl:value name="tags" type="list"><cofl:value type="raw">new</cofl:value></cofl:value>
//!   </cofl:value>
//! ```
//! What the schema describes by other means than names of members and a schema for items, is JSON there as well.
//!
//! Only parameters that the schema names are written, even where it would allow others. `required` and the order of properties are
//! enforced as for JSON.

use maskwright_grammar::{CharSet, Expr, ExprId, Grammar, GrammarBuilder};
use rustc_hash::FxHashMap;

use super::error::{Reason, TagError};
use super::format::{Json, Marker};
use super::parameters::{Inside, Parameter, inside, parameters, reference, restricted};
use super::schema;
use super::spelling::{Names, Symbol, marker_expr, spellings, symbols_expr};
use super::types::{Types, types_of};
use super::wire::Wire;
use crate::json_schema::{self, Whitespace};

/// Lowers a document that is written value by value.
pub(super) fn lower(
    json: &Json,
    wire: Wire,
    options: &json_schema::Options,
    names: &Names<'_>,
    g: &mut GrammarBuilder,
) -> Result<ExprId, TagError> {
    let list = parameters(json)?;
    let line = g.bytes(b"\n");
    let line = g.optional(line);
    let between = if wire.item.is_some() { layout(options, json, g) } else { line };
    let mut writer = Writer { g, options, names, json, wire, line, between, lists: FxHashMap::default() };
    let all = writer.object(&list, DEPTH)?;
    Ok(g.seq([all, between]))
}

/// How deep values are written as values; below that they are JSON.
const DEPTH: usize = 64;

/// White space between tags.
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
    /// A line break, or nothing.
    line: ExprId,
    /// What may stand between two values.
    between: ExprId,
    /// The content of objects and lists that references lead to: they may lead to themselves.
    lists: FxHashMap<(String, bool), maskwright_grammar::RuleId>,
}

impl Writer<'_> {
    /// The members of an object, one after the other.
    fn object(&mut self, list: &[Parameter], depth: usize) -> Result<ExprId, TagError> {
        let mut error = TagError::default();
        let mut parts = Vec::with_capacity(list.len());
        for parameter in list {
            match self.value(parameter, true, depth) {
                Ok(part) => parts.push((part, parameter.required)),
                Err(problems) => error.append(problems),
            }
        }
        error.or(())?;
        let (g, between) = (&mut *self.g, self.between);
        if self.json.any_order {
            any_order(&parts, self.json, between, g)
        } else {
            Ok(in_order(&parts, between, g))
        }
    }

    /// One value, with its name or, in a list, without one.
    fn value(&mut self, parameter: &Parameter, is_named: bool, depth: usize) -> Result<ExprId, TagError> {
        let types = parameter.types;
        // What cannot be written as values in values is JSON.
        let mut as_json = Types::NONE;
        let mut ways = Vec::new();
        for which in [Types::OBJECT, Types::ARRAY] {
            if self.wire.item.is_none() || types.and(which).is_empty() {
                continue;
            }
            match self.content(parameter, which, depth)? {
                Some(content) => {
                    let behind = self.wire.parts(which).map(|(_, behind)| behind).next().unwrap_or_default();
                    let (open, close) = (self.opening(parameter, is_named, behind)?, self.closing()?);
                    ways.push(self.g.seq([open, content, self.between, close]));
                }
                None => as_json = as_json.or(which),
            }
        }
        let in_values = if self.wire.item.is_some() { Types::OBJECT.or(Types::ARRAY) } else { Types::NONE };
        let scalars = types.without(in_values);
        let mut parts: Vec<(Types, &str)> = self.wire.parts(scalars).collect();
        if !as_json.is_empty() {
            let behind = self.wire.parts(Types::NUMBER).map(|(_, behind)| behind).next().unwrap_or_default();
            match parts.iter_mut().find(|(_, known)| *known == behind) {
                Some((here, _)) => *here = here.or(as_json),
                None => parts.push((as_json, behind)),
            }
        }
        for (here, behind) in parts {
            let is_text = here == Types::TEXT;
            let Some(grammar) = self.grammar(parameter, here)? else { continue };
            let open = self.opening(parameter, is_named, behind)?;
            let value = if is_text { self.text(&grammar, parameter)? } else { self.document(&grammar)? };
            ways.push(self.g.seq([open, value]));
        }
        if ways.is_empty() {
            let at = format!("{}{}", self.json.at, parameter.below);
            let help = "fix the schema, or take the property away";
            return Err(TagError::of(Reason::Content, &at, "no value satisfies this schema", help));
        }
        Ok(self.g.alt(ways))
    }

    /// The grammar of the values that have some types; `None` if there are none of them, but others.
    fn grammar(&mut self, parameter: &Parameter, types: Types) -> Result<Option<Grammar>, TagError> {
        if types == parameter.types {
            return schema::grammar(&parameter.schema, self.json, &parameter.below, self.options).map(Some);
        }
        let schema = restricted(&parameter.schema, types);
        schema::possible_grammar(&schema, self.json, &parameter.below, self.options)
    }

    /// What stands inside an object or a list; `None` if it is written as JSON.
    fn content(
        &mut self,
        parameter: &Parameter,
        which: Types,
        depth: usize,
    ) -> Result<Option<ExprId>, TagError> {
        let Some(depth) = depth.checked_sub(1) else { return Ok(None) };
        let Some(inside) = inside(parameter, which, self.json, self.wire) else { return Ok(None) };
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
            Inside::Object(members) => self.object(members, depth),
            Inside::List { items, below, min, max } => {
                let (schema, below, types) = (items.clone(), below.clone(), types_of(items));
                let item = Parameter { name: String::new(), schema, below, required: false, types };
                let item = self.value(&item, false, depth)?;
                let g = &mut *self.g;
                let item = g.seq([self.between, item]);
                Ok(g.repeat(item, *min, *max))
            }
        }
    }

    fn opening(&mut self, parameter: &Parameter, is_named: bool, behind: &str) -> Result<ExprId, TagError> {
        let wire = self.wire;
        let (open, name) = match wire.item {
            // The quote behind the name is not needed without it.
            Some(item) if !is_named => {
                return self.marker(&format!("{item}{}", behind.trim_start_matches('"')));
            }
            _ => (wire.open, wire.escape(&parameter.name)),
        };
        let (before, after) = behind.split_at(wire.gap.unwrap_or(behind.len()));
        let head = self.marker(&format!("{open}{name}{before}"))?;
        if after.is_empty() {
            return Ok(head);
        }
        let tail = self.marker(after)?;
        Ok(self.g.seq([head, self.line, tail]))
    }

    fn closing(&mut self) -> Result<ExprId, TagError> {
        self.marker(self.wire.close)
    }

    /// A tag, whose parts may be special tokens.
    fn marker(&mut self, text: &str) -> Result<ExprId, TagError> {
        let empty = self.g.empty();
        marker_expr(&Marker::Text(text.into()), empty, &self.json.at, self.names, self.g)
    }

    /// A value that is written as JSON, with the closing tag.
    fn document(&mut self, grammar: &Grammar) -> Result<ExprId, TagError> {
        let close = self.closing()?;
        let around = if self.wire.item.is_some() { self.between } else { self.line };
        let value = self.g.embed(grammar);
        Ok(self.g.seq([around, value, around, close]))
    }

    /// A string that is written as it is, with the closing tag.
    fn text(&mut self, grammar: &Grammar, parameter: &Parameter) -> Result<ExprId, TagError> {
        let mut texts = Texts { grammar, depth: 0 };
        let text = texts.of(grammar.rule(grammar.root()).expr(), self.g).ok_or_else(|| {
            let at = format!("{}{}", self.json.at, parameter.below);
            let message = "the strings of this schema cannot be written without quotes";
            TagError::of(Reason::Unsupported, &at, message, "use a simpler schema, or the style \"json\"")
        })?;
        let close = Marker::Text(self.wire.close.into());
        let spellings = spellings(&close, self.names, &self.json.at)?;
        let g = &mut *self.g;
        let mut ways = vec![closed(text, self.wire, g)];
        for spelling in &spellings {
            // A tag that is begun with characters is finished with characters: where it begins, nothing can be told apart from the text.
            if matches!(spelling.symbols.first(), Some(Symbol::Token(_))) {
                let text = unclosed(text, self.wire, g);
                let symbols = symbols_expr(&spelling.symbols, g);
                ways.push(g.seq([text, symbols]));
            }
        }
        Ok(g.alt(ways))
    }
}

fn in_order(parts: &[(ExprId, bool)], between: ExprId, g: &mut GrammarBuilder) -> ExprId {
    let parts = parts.iter().map(|&(part, required)| {
        let part = g.seq([between, part]);
        if required { part } else { g.optional(part) }
    });
    let parts: Vec<ExprId> = parts.collect();
    g.seq(parts)
}

/// More parameters than this have too many orders.
const ORDERED: usize = 8;

/// Every order: a rule for each set of parameters that are already there.
fn any_order(
    parts: &[(ExprId, bool)],
    json: &Json,
    between: ExprId,
    g: &mut GrammarBuilder,
) -> Result<ExprId, TagError> {
    if parts.len() > ORDERED {
        let message = format!("{} parameters in any order are more than the limit of {ORDERED}", parts.len());
        return Err(TagError::of(Reason::Limit, &json.at, message, "leave `any_order` out"));
    }
    let sets = 1usize << parts.len();
    let rules: Vec<_> = (0..sets).map(|set| g.declare(&format!("parameters~{set}"))).collect();
    for set in 0..sets {
        let mut ways = Vec::new();
        for (i, &(part, _)) in parts.iter().enumerate().filter(|(i, _)| set >> i & 1 == 0) {
            let rest = g.rule(rules[set | 1 << i]);
            ways.push(g.seq([between, part, rest]));
        }
        if parts.iter().enumerate().all(|(i, (_, required))| !required || set >> i & 1 == 1) {
            ways.push(g.empty());
        }
        let body = g.alt(ways);
        g.define(rules[set], body);
    }
    Ok(g.rule(rules[0]))
}

/// A text up to and with its closing tag.
fn closed(text: ExprId, wire: Wire, g: &mut GrammarBuilder) -> ExprId {
    if text == g.any_text() {
        // The most frequent case: every text, line breaks or not, up to the first closing tag.
        return up_to(wire.close, g);
    }
    let written = written(text, wire, g);
    let (all, any, end) = (g.any_text(), g.class(CharSet::all()), g.bytes(wire.close.as_bytes()));
    let early = g.seq([all, end, any, all]);
    let in_time = g.not(early);
    let written = g.seq([written, end]);
    g.and([written, in_time])
}

/// A text that does not contain its closing tag.
fn unclosed(text: ExprId, wire: Wire, g: &mut GrammarBuilder) -> ExprId {
    let (all, end) = (g.any_text(), g.bytes(wire.close.as_bytes()));
    let marked = g.seq([all, end, all]);
    let clean = g.not(marked);
    if text == all {
        return clean;
    }
    let written = written(text, wire, g);
    g.and([written, clean])
}

/// A text between its tags: for some styles with a line break on each side that does not count.
fn written(text: ExprId, wire: Wire, g: &mut GrammarBuilder) -> ExprId {
    if !wire.trims {
        return text;
    }
    let (all, line) = (g.any_text(), g.bytes(b"\n"));
    let first = g.seq([line, all]);
    let last = g.seq([all, line]);
    let (no_first, no_last) = (g.not(first), g.not(last));
    let both = g.seq([line, text, line]);
    let left = g.and([text, no_last]);
    let left = g.seq([line, left]);
    let right = g.and([text, no_first]);
    let right = g.seq([right, line]);
    let neither = g.and([text, no_first, no_last]);
    g.alt([both, left, right, neither])
}

/// Any text up to and with a marker, as a leaf that all constraints share.
fn up_to(close: &str, g: &mut GrammarBuilder) -> ExprId {
    let all = g.any_text();
    let any = g.class(CharSet::all());
    let end = g.bytes(close.as_bytes());
    let ended = g.seq([all, end]);
    let early = g.seq([all, end, any, all]);
    let in_time = g.not(early);
    g.and([ended, in_time])
}

/// The texts that JSON strings of a grammar stand for.
struct Texts<'g> {
    grammar: &'g Grammar,
    depth: usize,
}

impl Texts<'_> {
    /// `None` if something else than strings is there, or a string in many spellings.
    fn of(&mut self, id: ExprId, g: &mut GrammarBuilder) -> Option<ExprId> {
        self.depth += 1;
        if self.depth > 10_000 {
            return None;
        }
        match self.grammar.expr(id) {
            Expr::Never => Some(g.never()),
            Expr::JsonString(text) => self.copy(*text, g),
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

    /// Copies the texts of a string, which are regular.
    fn copy(&self, id: ExprId, g: &mut GrammarBuilder) -> Option<ExprId> {
        let mut copies: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        let mut work = vec![(id, false)];
        while let Some((id, ready)) = work.pop() {
            if copies.contains_key(&id) {
                continue;
            }
            let expr = self.grammar.expr(id);
            let called = match expr {
                Expr::Rule(rule) => Some(self.grammar.rule(*rule).expr()),
                _ => None,
            };
            if !ready {
                work.push((id, true));
                work.extend(expr.operands().iter().copied().chain(called).map(|id| (id, false)));
                continue;
            }
            let never = g.never();
            let of = |id: &ExprId| copies.get(id).copied().unwrap_or(never);
            let copy = match expr {
                Expr::Never => never,
                Expr::Empty => g.empty(),
                Expr::Bytes(bytes) => g.bytes(bytes),
                Expr::Class(set) => g.class(set.clone()),
                Expr::Seq(parts) => g.seq(parts.iter().map(of)),
                Expr::Alt(parts) => g.alt(parts.iter().map(of)),
                Expr::And(parts) => g.and(parts.iter().map(of)),
                Expr::Not(inner) => g.not(of(inner)),
                Expr::Repeat { body, min, max } => g.repeat(of(body), *min, *max),
                Expr::Rule(_) => called.map_or(never, |called| of(&called)),
                _ => return None,
            };
            copies.insert(id, copy);
        }
        copies.get(&id).copied()
    }
}
