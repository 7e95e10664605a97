//! `/v1/grammar/check`: checks a constraint, and reports how it is treated and what it costs.
//!
//! An invalid constraint is not a failure of the request: the response has `"ok": false` with diagnostics.

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

/// The maximum number of rules that are listed, and the length of each in bytes.
const MAX_RULES: usize = 200;
const MAX_RULE_BYTES: usize = 500;
/// The maximum number of states of an automaton that is drawn.
const MAX_STATES: usize = 40;
/// The maximum number of entries of a report that are listed.
const MAX_ENTRIES: usize = 2_000;

pub(crate) async fn check(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Json> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let requested = match requested::take_constraint(&mut body, &state.settings) {
        Ok(requested) => requested,
        // An invalid list of choices is reported like any other invalid constraint.
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
            // Reading it again takes no longer than compiling it did.
            let shared = state.clone();
            aside(&shared, move || Ok(Json(good(&state, &requested, &compiled)))).await
        }
        // The constraint was not processed.
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

/// Returns the report about a valid constraint.
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
    // The grammar was not kept, so it is read again to be shown.
    let vocabulary = state.engine.vocabulary();
    if let Ok((grammar, _)) = requested.constraint.grammar(&requested.options, Some(vocabulary)) {
        answer["size"]["rules"] = grammar.rules().len().into();
        answer["size"]["expressions"] = grammar.exprs().len().into();
        answer["rules_total"] = grammar.rules().len().into();
        answer["rules"] = rules(&grammar);
        // For several rules, their network is more informative.
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
    entries.iter().take(MAX_ENTRIES).map(entry).collect()
}

/// Returns the automaton of a regular constraint, if it is small enough to be drawn.
fn automaton(grammar: &Grammar) -> Value {
    let limits = regular::Limits { states: 20 * MAX_STATES, steps: 100_000, bytes: 1 << 20 };
    let Some(dfa) = regular::automaton(grammar, &limits).ok().filter(|dfa| dfa.len() <= 1 + MAX_STATES)
    else {
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

/// Returns the first rules as text.
fn rules(grammar: &Grammar) -> Value {
    let mut text = Bounded { text: String::new(), left: MAX_RULES * MAX_RULE_BYTES };
    // It fails when the limit is reached.
    let _ = write!(text, "{grammar}");
    let lines = text.text.lines().take(MAX_RULES);
    let rule = |line: &str| {
        let (name, body) = line.split_once(" ::= ")?;
        let shown: String = body.chars().take(MAX_RULE_BYTES).collect();
        let more = if shown.len() < body.len() { "…" } else { "" };
        Some(json!({"name": name, "text": format!("{shown}{more}")}))
    };
    lines.filter_map(rule).collect()
}

/// A text with a maximum length in bytes.
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

/// Returns the text that places refer to.
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

/// Returns all problems with their places.
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
