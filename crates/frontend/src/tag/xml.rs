//! Documents that are written as a list of parameters instead of JSON, as some models do in their tool calls:
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
//! The schema is that of an object, and each of its properties is a parameter. A value that can only be a string is written as it is, up to the
//! closing tag, which it therefore does not contain; every other value is written as JSON. What is a string is a question about the
//! schema ([`is_text`]), and whoever reads the parameters asks it in the same way. One line break behind the opening tag and one in
//! front of the closing tag belong to the tags, as far as they are there.
//!
//! Only parameters that the schema names are written, even where it would allow others. `required` and the order of properties are
//! enforced as for JSON.

use maskwright_grammar::{Expr, ExprId, Grammar, GrammarBuilder};
use serde_json::{Map, Value};

use super::error::{Reason, TagError};
use super::format::{Json, Style};
use super::lower::Lower;

/// How one style writes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// In front of the name.
    pub open: &'static str,
    /// Behind the name, if the value is written as it is.
    pub text: &'static str,
    /// Behind the name, if the value is written as JSON.
    pub json: &'static str,
    /// Where a line break may stand inside the part behind the name, if it may: it is cut here in two.
    pub gap: Option<usize>,
    /// Behind the value.
    pub close: &'static str,
    /// Whether a value that may or may not be a string says which it is.
    pub says: bool,
}

/// How a style writes its parameters; `None` for JSON.
pub fn wire(style: Style) -> Option<Wire> {
    Some(match style {
        Style::Json => return None,
        Style::QwenXml => {
            Wire { open: "<parameter=", text: ">", json: ">", gap: None, close: "</parameter>", says: false }
        }
        Style::MinimaxXml => Wire {
            open: "<parameter name=\"",
            text: "\">",
            json: "\">",
            gap: None,
            close: "</parameter>",
            says: false,
        },
        Style::DeepseekXml => Wire {
            open: "<｜DSML｜parameter name=\"",
            text: "\" string=\"true\">",
            json: "\" string=\"false\">",
            gap: None,
            close: "</｜DSML｜parameter>",
            says: true,
        },
        Style::GlmXml => Wire {
            open: "<arg_key>",
            text: "</arg_key><arg_value>",
            json: "</arg_key><arg_value>",
            gap: Some("</arg_key>".len()),
            close: "</arg_value>",
            says: false,
        },
    })
}

/// A parameter: its name and the schema of its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The schema of its value, with the definitions of the whole.
    pub schema: Value,
    /// Where the schema stands, below that of the object.
    pub below: String,
    /// Whether it must be there.
    pub required: bool,
    /// How its value is written.
    pub written: Written,
}

/// How the value of a parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// As it is: it can only be a string.
    Text,
    /// As JSON: it can be no string, or nobody says whether it is one.
    Json,
    /// Either way, and the tag says which.
    Either,
}

/// The parameters of an object.
pub fn parameters(json: &Json) -> Result<Vec<Parameter>, TagError> {
    let style = json.style;
    let refuse = |below: &str, message: String| {
        let at = format!("{}{below}", json.at);
        let help = "describe an object with `properties` and `required`, or use the style \"json\"";
        TagError::of(Reason::Unsupported, &at, message, help)
    };
    let none = Map::new();
    let object = match &json.schema {
        Value::Bool(true) => &none,
        Value::Object(map) => map,
        _ => return Err(refuse("", "no object satisfies this schema".into())),
    };
    let mut error = TagError::default();
    for (keyword, value) in object {
        let known = matches!(
            &**keyword,
            "type"
                | "properties"
                | "required"
                | "additionalProperties"
                | "$defs"
                | "definitions"
                | "title"
                | "description"
                | "default"
                | "examples"
                | "$schema"
                | "$id"
                | "$comment"
                | "deprecated"
                | "readOnly"
                | "writeOnly"
                | "strict"
        );
        let is_object = keyword != "type" || value == "object";
        if !known && !keyword.starts_with("x-") || !is_object {
            let message = format!("`{keyword}`: {} cannot be written as parameters with it", style.name());
            error.append(refuse(&format!("/{}", escaped(keyword)), message));
        }
    }
    error.or(())?;
    let properties = object.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required: Vec<&str> = match object.get("required").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let others = object.get("additionalProperties").unwrap_or(&Value::Bool(true));
    let unnamed = required.iter().filter(|name| !properties.contains_key(**name));
    let unnamed = unnamed.map(|name| (*name, others, "/additionalProperties".to_owned()));
    let named =
        properties.iter().map(|(name, schema)| (&**name, schema, format!("/properties/{}", escaped(name))));
    let mut list = Vec::new();
    for (name, schema, below) in named.chain(unnamed) {
        if name.is_empty() || name.contains(['<', '>', '"', '\n']) {
            let message = format!("{name:?} cannot be the name of a parameter in the style {}", style.name());
            return Err(refuse(&below, message));
        }
        if *schema == Value::Bool(false) && !required.contains(&name) {
            continue;
        }
        let schema = with_definitions(schema, object);
        let written = match (is_text(&schema), wire(style).is_some_and(|wire| wire.says)) {
            (Some(true), _) => Written::Text,
            (None, true) => Written::Either,
            (Some(false) | None, _) => Written::Json,
        };
        list.push(Parameter {
            name: name.into(),
            schema,
            below,
            required: required.contains(&name),
            written,
        });
    }
    Ok(list)
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The schema of a property, with what its references need.
fn with_definitions(schema: &Value, whole: &Map<String, Value>) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    let mut map = map.clone();
    for keyword in ["$defs", "definitions", "$schema"] {
        if let Some(definitions) = whole.get(keyword) {
            map.entry(keyword).or_insert_with(|| definitions.clone());
        }
    }
    Value::Object(map)
}

/// Whether every value of a schema is a string; `None` if some are and some are not, or nobody can tell at a glance.
pub(super) fn is_text(schema: &Value) -> Option<bool> {
    // Chains of references are followed a few steps; what is deeper is written as JSON, which is always right.
    let mut schema = schema;
    let whole = schema;
    for _ in 0..8 {
        let map = schema.as_object()?;
        let of = |values: &[Value]| {
            let strings = values.iter().filter(|value| value.is_string()).count();
            if strings == values.len() {
                Some(true)
            } else if strings == 0 {
                Some(false)
            } else {
                None
            }
        };
        if let Some(constant) = map.get("const") {
            return of(core::slice::from_ref(constant));
        }
        if let Some(Value::Array(values)) = map.get("enum")
            && !values.is_empty()
        {
            return of(values);
        }
        match map.get("type") {
            Some(Value::String(name)) => return Some(name == "string"),
            Some(Value::Array(names)) if !names.is_empty() => {
                return if names.iter().all(|name| name == "string") {
                    Some(true)
                } else if names.iter().all(|name| name != "string") {
                    Some(false)
                } else {
                    None
                };
            }
            _ => {}
        }
        let pointer = map.get("$ref")?.as_str()?.strip_prefix('#')?;
        schema = whole.pointer(pointer)?;
    }
    None
}

/// Lowers a document that is written as parameters.
pub(super) fn lower(lower: &mut Lower<'_>, json: &Json) -> Result<ExprId, TagError> {
    let Some(wire) = wire(json.style) else { return lower.document(&json.schema, json, "") };
    let list = parameters(json)?;
    let mut error = TagError::default();
    let mut parts = Vec::with_capacity(list.len());
    for parameter in &list {
        match written(lower, parameter, wire, json) {
            Ok(part) => parts.push((part, parameter.required)),
            Err(problems) => error.append(problems),
        }
    }
    error.or(())?;
    let g = &mut lower.g;
    let line = g.bytes(b"\n");
    let line = g.optional(line);
    let all = if json.any_order { any_order(&parts, json, line, g)? } else { in_order(&parts, line, g) };
    Ok(g.seq([all, line]))
}

fn in_order(parts: &[(ExprId, bool)], line: ExprId, g: &mut GrammarBuilder) -> ExprId {
    let parts = parts.iter().map(|&(part, required)| {
        let part = g.seq([line, part]);
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
    line: ExprId,
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
            ways.push(g.seq([line, part, rest]));
        }
        if parts.iter().enumerate().all(|(i, (_, required))| !required || set >> i & 1 == 1) {
            ways.push(g.empty());
        }
        let body = g.alt(ways);
        g.define(rules[set], body);
    }
    Ok(g.rule(rules[0]))
}

/// One parameter.
fn written(
    lower: &mut Lower<'_>,
    parameter: &Parameter,
    wire: Wire,
    json: &Json,
) -> Result<ExprId, TagError> {
    let mut ways = Vec::new();
    if parameter.written != Written::Json {
        let schema = restricted(&parameter.schema, parameter.written, true);
        let open = opening(wire, &parameter.name, wire.text, &mut lower.g);
        let text = text_value(lower, &schema, parameter, wire, json)?;
        ways.push(lower.g.seq([open, text]));
    }
    if parameter.written != Written::Text {
        let schema = restricted(&parameter.schema, parameter.written, false);
        let open = opening(wire, &parameter.name, wire.json, &mut lower.g);
        let value = lower.document(&schema, json, &parameter.below)?;
        let g = &mut lower.g;
        let (line, close) = (g.bytes(b"\n"), g.bytes(wire.close.as_bytes()));
        let line = g.optional(line);
        ways.push(g.seq([open, line, value, line, close]));
    }
    Ok(lower.g.alt(ways))
}

/// Only the strings of a schema, or all but them, if the tag says which it is.
fn restricted(schema: &Value, written: Written, strings: bool) -> Value {
    if written != Written::Either {
        return schema.clone();
    }
    let string = serde_json::json!({"type": "string"});
    let side = if strings { string } else { serde_json::json!({"not": string}) };
    let mut map = Map::new();
    if let Value::Object(object) = schema {
        // References are looked up from the root of what is lowered.
        for keyword in ["$defs", "definitions", "$schema"] {
            if let Some(definitions) = object.get(keyword) {
                map.insert(keyword.into(), definitions.clone());
            }
        }
    }
    map.insert("allOf".into(), Value::Array(vec![schema.clone(), side]));
    Value::Object(map)
}

fn opening(wire: Wire, name: &str, behind: &str, g: &mut GrammarBuilder) -> ExprId {
    let (before, after) = behind.split_at(wire.gap.unwrap_or(behind.len()));
    let head = g.bytes(format!("{}{name}{before}", wire.open).as_bytes());
    if after.is_empty() {
        return head;
    }
    let (line, tail) = (g.bytes(b"\n"), g.bytes(after.as_bytes()));
    let line = g.optional(line);
    g.seq([head, line, tail])
}

/// A string that is written as it is, with the closing tag.
fn text_value(
    lower: &mut Lower<'_>,
    schema: &Value,
    parameter: &Parameter,
    wire: Wire,
    json: &Json,
) -> Result<ExprId, TagError> {
    let grammar = lower.schema_grammar(schema, json, &parameter.below)?;
    let mut texts = Texts { grammar: &grammar, depth: 0 };
    let text = texts.of(grammar.rule(grammar.root()).expr(), &mut lower.g).ok_or_else(|| {
        let at = format!("{}{}", json.at, parameter.below);
        let message = "the strings of this schema cannot be written without quotes";
        TagError::of(Reason::Unsupported, &at, message, "use a simpler schema, or the style \"json\"")
    })?;
    Ok(closed(text, wire.close, &mut lower.g))
}

/// A text up to its closing tag, with a line break on each side that does not count.
fn closed(text: ExprId, close: &str, g: &mut GrammarBuilder) -> ExprId {
    let all = g.any_text();
    let end = g.bytes(close.as_bytes());
    if text == all {
        // The most frequent case: every text, line breaks or not, up to the first closing tag.
        return up_to(close, g);
    }
    let line = g.bytes(b"\n");
    let first = g.seq([line, all]);
    let last = g.seq([all, line]);
    let (no_first, no_last) = (g.not(first), g.not(last));
    let both = g.seq([line, text, line]);
    let left = g.and([text, no_last]);
    let left = g.seq([line, left]);
    let right = g.and([text, no_first]);
    let right = g.seq([right, line]);
    let neither = g.and([text, no_first, no_last]);
    let written = g.alt([both, left, right, neither]);
    let any = g.class(maskwright_grammar::CharSet::all());
    let early = g.seq([all, end, any, all]);
    let in_time = g.not(early);
    let written = g.seq([written, end]);
    g.and([written, in_time])
}

/// Any text up to and with a marker, as a leaf that all constraints share.
fn up_to(close: &str, g: &mut GrammarBuilder) -> ExprId {
    let all = g.any_text();
    let any = g.class(maskwright_grammar::CharSet::all());
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
        let mut copies: rustc_hash::FxHashMap<ExprId, ExprId> = rustc_hash::FxHashMap::default();
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
