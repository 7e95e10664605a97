//! `/v1/grammar/check`: is a constraint right, what becomes of it, and what does it cost?
//!
//! A constraint that is wrong is an answer, `"ok": false` with its diagnostics, and no failure of the request.

use std::{fmt::Write, sync::Arc, time::Instant};

use axum::extract::State as Extract;
use maskwright::{Category, Constraint, Diagnostic, Error, Grammar, Severity, json_schema, regular, service};
use serde_json::{Value, json};

use super::{aside, body::Body};
use crate::{
    answer::gather::micros,
    error::{ApiError, Json, Result},
    request::{Requested, requested},
    state::State,
};

/// How many rules are listed, and how much of each.
const RULES: usize = 200;
const RULE_BYTES: usize = 500;
/// How many states an automaton has that is worth a picture.
const STATES: usize = 40;
/// How many places of a report are listed.
const ENTRIES: usize = 2_000;

pub(crate) async fn check(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Json> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let requested = match requested::take_constraint(&mut body, &state.settings) {
        Ok(requested) => requested,
        // The text of a list is as much a part of the question as any other.
        Err(error) if error.code == Some("invalid_choice") => {
            let diagnostic = json!({"severity": "error", "message": error.message});
            return Ok(Json(json!({"ok": false, "kind": "choice", "diagnostics": [diagnostic]})));
        }
        Err(error) => return Err(error),
    };
    body.finish()?;
    let client = state.engine.grammars().with_options(requested.options.clone());
    match client.request(&requested.constraint).await {
        Ok(compiled) => {
            // What took so long to compile takes no longer to read again.
            let shared = state.clone();
            aside(&shared, move || Ok(Json(good(&state, &requested, &compiled)))).await
        }
        // The constraint was not looked at.
        Err(error) if matches!(error.category(), Category::Busy | Category::Closed) => {
            Err(ApiError::constraint("constraint", "invalid_constraint", error.category(), error))
        }
        Err(error) => Ok(Json(json!({
            "ok": false,
            "kind": requested.constraint.kind().name(),
            "diagnostics": problems(&error, source(&requested.constraint)),
        }))),
    }
}

/// What there is to say about a constraint that is right.
fn good(state: &State, requested: &Requested, compiled: &Arc<service::CompiledConstraint>) -> Value {
    let report = compiled.report();
    let begin = Instant::now();
    let mut words = vec![0; state.engine.vocabulary().size().div_ceil(32)];
    let mut matcher = compiled.matcher();
    let first_mask = matcher.fill_mask(&mut words).map(|()| begin.elapsed());
    let allowed = words.iter().map(|word| word.count_ones()).sum::<u32>();
    let mut diagnostics = Vec::new();
    match &first_mask {
        Err(error) => diagnostics.push(json!({"severity": "error", "message": error.to_string()})),
        Ok(_) if allowed == 0 => diagnostics.push(json!({
            "severity": "error",
            "message": "this vocabulary cannot spell the constraint: no token begins with what must come first",
        })),
        Ok(_) => {}
    }
    let is_good = diagnostics.is_empty();
    let mut answer = json!({
        "ok": is_good,
        "kind": report.kind.name(),
        "diagnostics": diagnostics,
        "size": {"states": report.states, "bytes": compiled.inner().bytes()},
        "first_mask": allowed,
        "vocabulary": state.engine.vocabulary().len(),
        "micros": {"compile": micros(report.time), "first_mask": first_mask.map_or(0.0, micros)},
    });
    if let Some(dialect) = requested.options.dialect_of(&requested.constraint) {
        answer["dialect"] = dialect.name().into();
    }
    let remarks = compiled.remarks();
    let source = source(&requested.constraint);
    let warnings = remarks.warnings.iter().map(|warning| diagnostic(warning, source));
    let of_schema = remarks
        .schema_warnings()
        .into_iter()
        .map(|(pointer, message)| json!({"severity": "warning", "message": message, "pointer": pointer}));
    if let Some(list) = answer["diagnostics"].as_array_mut() {
        list.extend(warnings.chain(of_schema));
    }
    if let Some(report) = &remarks.report {
        answer["report"] = entries(report);
    }
    // Nobody keeps the grammar, so it is read again for those who want to look at it.
    let vocabulary = state.engine.vocabulary();
    if let Ok((grammar, _)) = requested.constraint.grammar(&requested.options, Some(vocabulary)) {
        answer["size"]["rules"] = grammar.rules().len().into();
        answer["size"]["expressions"] = grammar.exprs().len().into();
        answer["rules_total"] = grammar.rules().len().into();
        answer["rules"] = rules(&grammar);
        // Of several rules their network says more.
        if grammar.rules().len() == 1 {
            answer["automaton"] = automaton(&grammar);
        }
    }
    answer
}

fn entries(report: &json_schema::Report) -> Value {
    let entries = report.entries();
    let entry = |entry: &json_schema::Entry| {
        let (coverage, note) = match entry.coverage {
            json_schema::Coverage::Note(note) => ("note".to_owned(), Some(note.to_string())),
            other => (other.to_string(), None),
        };
        json!({"pointer": entry.pointer, "coverage": coverage, "note": note})
    };
    entries.iter().take(ENTRIES).map(entry).collect()
}

/// The automaton of a regular constraint, if it is small enough to be looked at.
fn automaton(grammar: &Grammar) -> Value {
    let limits = regular::Limits { states: 20 * STATES, steps: 100_000, bytes: 1 << 20 };
    let Some(dfa) = regular::automaton(grammar, &limits).ok().filter(|dfa| dfa.len() <= 1 + STATES) else {
        return Value::Null;
    };
    let live = dfa.states().skip(1);
    let edges = live.clone().flat_map(|from| dfa.edges(from).into_iter().map(move |edge| (from, edge)));
    let edge = |(from, (set, to)): (regular::DfaState, (_, regular::DfaState))| json!({"from": from.0, "to": to.0, "label": format!("{set:?}")});
    let state = |state: regular::DfaState| json!({"state": state.0, "accepting": dfa.is_accepting(state)});
    json!({
        "start": dfa.start().0,
        "states": live.map(state).collect::<Vec<_>>(),
        "edges": edges.map(edge).collect::<Vec<_>>(),
    })
}

/// The first rules as text.
fn rules(grammar: &Grammar) -> Value {
    let mut text = Bounded { text: String::new(), left: RULES * RULE_BYTES };
    // It fails when there is enough.
    let _ = write!(text, "{grammar}");
    let lines = text.text.lines().take(RULES);
    let rule = |line: &str| {
        let (name, body) = line.split_once(" ::= ")?;
        let shown: String = body.chars().take(RULE_BYTES).collect();
        let more = if shown.len() < body.len() { "…" } else { "" };
        Some(json!({"name": name, "text": format!("{shown}{more}")}))
    };
    lines.filter_map(rule).collect()
}

/// A text that takes no more than so many bytes.
struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        self.left = self.left.checked_sub(part.len()).ok_or(std::fmt::Error)?;
        self.text.push_str(part);
        Ok(())
    }
}

/// The text in which places are counted.
fn source(constraint: &Constraint) -> &str {
    match constraint {
        Constraint::Regex(text)
        | Constraint::Ebnf(text)
        | Constraint::Gbnf(text)
        | Constraint::Lark(text)
        | Constraint::JsonSchema(text)
        | Constraint::StructuralTag(text)
        | Constraint::Pcfg(text) => text,
        _ => "",
    }
}

/// What is wrong, by its place.
pub(crate) fn problems(error: &service::Error, source: &str) -> Vec<Value> {
    match error.refusal() {
        Some(Error::Source(diagnostics)) => diagnostics.iter().map(|one| diagnostic(one, source)).collect(),
        Some(Error::Schema(error)) => error
            .problems()
            .iter()
            .map(|problem| {
                json!({
                    "severity": "error", "message": problem.message, "help": problem.help,
                    "pointer": problem.pointer, "keyword": problem.keyword,
                })
            })
            .collect(),
        Some(Error::Tag(error)) => error
            .problems()
            .iter()
            .map(|problem| {
                json!({
                    "severity": "error", "message": problem.message, "help": problem.help,
                    "pointer": problem.pointer,
                })
            })
            .collect(),
        _ => vec![json!({"severity": "error", "message": error.to_string()})],
    }
}

fn diagnostic(diagnostic: &Diagnostic, source: &str) -> Value {
    let (line, column) = diagnostic.line_column(source);
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    json!({
        "severity": severity, "message": diagnostic.message, "help": diagnostic.help,
        "line": line, "column": column, "start": diagnostic.span.start, "end": diagnostic.span.end,
    })
}
