//! The schemas in a tag: each becomes a separate grammar.

use maskwright_grammar::{Expr, ExprId, Grammar, GrammarBuilder};
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::error::{Reason, TagError};
use super::format::Json;
use crate::json_schema::{self, KeyOrder, Options, Problem, SchemaError, Whitespace};

/// Returns the grammar of the documents that satisfy a schema. The schema belongs to `json`, at the place `below` its
/// whole schema.
pub(super) fn grammar(
    schema: &Value,
    json: &Json,
    below: &str,
    options: &Options,
) -> Result<Grammar, TagError> {
    let grammar = read(schema, json, options).map_err(|error| at_place_in_tag(&error, json, below))?;
    without(grammar, json, below)
}

/// Like [`grammar`], but returns `None` if nothing satisfies the schema.
pub(super) fn possible_grammar(
    schema: &Value,
    json: &Json,
    below: &str,
    options: &Options,
) -> Result<Option<Grammar>, TagError> {
    let is_empty = |problem: &Problem| problem.reason == json_schema::Reason::Unsatisfiable;
    match read(schema, json, options) {
        Ok(grammar) => without(grammar, json, below).map(Some),
        Err(error) if error.problems().iter().all(is_empty) => Ok(None),
        Err(error) => Err(at_place_in_tag(&error, json, below)),
    }
}

fn read(schema: &Value, json: &Json, options: &Options) -> Result<Grammar, SchemaError> {
    let mut options = options.clone();
    if json.any_order {
        options.key_order = KeyOrder::Any;
    }
    if let Some(max_run) = json.max_whitespace {
        options.whitespace = Whitespace::Flexible { max_run };
    }
    json_schema::grammar_of(schema, &options).map(|(grammar, _report)| grammar)
}

/// Returns the documents in which no string contains an excluded text, in any spelling.
fn without(grammar: Grammar, json: &Json, below: &str) -> Result<Grammar, TagError> {
    if json.excludes.is_empty() {
        return Ok(grammar);
    }
    let at = format!("{}{below}", json.at);
    let spelled = json.excludes.iter().map(|text| Value::from(&**text).to_string());
    let marks: Vec<String> = spelled.map(|text| text[1..text.len() - 1].to_owned()).collect();
    let is_named = |mark: &&String| {
        let mark = mark.as_bytes();
        let has_it = |expr: &Expr| matches!(expr, Expr::Bytes(bytes) if bytes.windows(mark.len()).any(|part| part == mark));
        grammar.exprs().iter().any(has_it)
    };
    if let Some(mark) = marks.iter().find(is_named) {
        let message = format!("the schema itself says {mark:?}, which `excludes` forbids");
        return Err(TagError::of(Reason::Conflict, &at, message, "take one of them out"));
    }
    let mut is_regular = true;
    let replaced = grammar.replacing(|g, expr| {
        let Expr::JsonString(text) = expr else { return None };
        let Some(text) = regular_copy(&grammar, *text, g) else {
            is_regular = false;
            return None;
        };
        let marks: Vec<ExprId> = json.excludes.iter().map(|mark| g.bytes(mark.as_bytes())).collect();
        let (all, mark) = (g.any_text(), g.alt(marks));
        let marked = g.seq([all, mark, all]);
        let clean = g.not(marked);
        let text = if text == all { clean } else { g.and([text, clean]) };
        Some(g.json_string(text))
    });
    match replaced {
        Ok(grammar) if is_regular => Ok(grammar),
        _ => {
            let message = "`excludes` cannot be enforced for the strings of this schema";
            Err(TagError::of(
                Reason::Unsupported,
                &at,
                message,
                "leave `excludes` out, or use a simpler schema",
            ))
        }
    }
}

/// Copies a regular expression, such as the texts of a string, from a grammar. Returns `None` if it is not regular.
pub(super) fn regular_copy(grammar: &Grammar, id: ExprId, g: &mut GrammarBuilder) -> Option<ExprId> {
    let mut copies: FxHashMap<ExprId, ExprId> = FxHashMap::default();
    let mut work = vec![(id, false)];
    while let Some((id, ready)) = work.pop() {
        if copies.contains_key(&id) {
            continue;
        }
        let expr = grammar.expr(id);
        let called = match expr {
            Expr::Rule(rule) => Some(grammar.rule(*rule).expr()),
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

/// Moves the problems of a schema to its place in a tag.
fn at_place_in_tag(error: &SchemaError, json: &Json, below: &str) -> TagError {
    let mut problems = TagError::default();
    for problem in error.problems() {
        let at = format!("{}{below}{}", json.at, problem.pointer);
        problems.push(Reason::Content, &at, problem.message.clone(), problem.help.clone());
    }
    problems
}
