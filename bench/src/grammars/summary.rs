//! The table of a run, and in how many rows our engine is ahead.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::stats::rounded;
use crate::table::{number, size};

/// A column of the table: its place in the JSON, and its format.
struct Column {
    label: &'static str,
    pointer: &'static str,
    show: fn(f64) -> String,
}

const fn time(label: &'static str, pointer: &'static str) -> Column {
    Column { label, pointer, show: number }
}

/// The last two only exist with `--warm`.
const COLUMNS: [Column; 10] = [
    time("first mask", "/ttfm_us"),
    time("mask p50", "/mask_us/p50"),
    time("p99", "/mask_us/p99"),
    time("max", "/mask_us/max"),
    time("accept p50", "/accept_us/p50"),
    time("avg", "/accept_us/avg"),
    Column { label: "total ms", pointer: "/total_us", show: |micros| number(micros / 1e3) },
    Column { label: "bytes", pointer: "/bytes", show: size },
    time("warm p50", "/warm_mask_us/p50"),
    time("warm p99", "/warm_mask_us/p99"),
];
const WARM: usize = 2;

fn columns(warm: bool) -> &'static [Column] {
    if warm { &COLUMNS } else { &COLUMNS[..COLUMNS.len() - WARM] }
}

const NAME: usize = 30;
const ENGINE: usize = 11;
const CELL: usize = 11;
const RATIO: usize = 7;

pub fn print_heading(warm: bool) {
    print!("{:NAME$} {:>6} {:ENGINE$}", "row", "tokens", "engine");
    for column in columns(warm) {
        print!("{:>CELL$}{:>RATIO$}", column.label, "×");
    }
    println!();
}

/// Prints a line for each engine: its times, and their ratios to ours.
pub fn print_row(row: &Row, warm: bool) {
    let ours = &row.figures[row.base];
    for (place, (engine, figures)) in row.engines.iter().zip(&row.figures).enumerate() {
        match place {
            0 => print!("{:NAME$} {:>6} ", row.name, row.tokens),
            _ => print!("{:NAME$} {:>6} ", "", ""),
        }
        print!("{engine:ENGINE$}");
        for column in columns(warm) {
            let value = value(figures, column).filter(|_| outcome(figures) != "wrong");
            let ratio = if place == row.base { None } else { ratio(ours, figures, column) };
            let value = value.map_or_else(|| "–".into(), column.show);
            print!("{value:>CELL$}{:>RATIO$}", ratio.map(number).unwrap_or_default());
        }
        match outcome(figures) {
            "done" => println!(),
            "absent" => println!("  –"),
            outcome => println!("  {outcome}: {}", first_line(&figures["problem"])),
        }
    }
}

/// The results of all engines for one row.
pub struct Row<'a> {
    pub name: String,
    pub tokens: usize,
    pub engines: &'a [String],
    /// The index of our engine.
    pub base: usize,
    pub figures: Vec<Value>,
}

/// A comparison of our engine with one peer in one column, over the rows that both finish.
struct Comparison<'a> {
    rows: usize,
    ahead: usize,
    geometric_mean: f64,
    /// The rows in which ours is behind, the worst first.
    behind: Vec<(f64, &'a str)>,
}

pub fn text(rows: &[Row], warm: bool) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let mut text = format!("\n{:24}", "");
    for outcome in OUTCOMES {
        let _ = write!(text, "{outcome:>9}");
    }
    text.push('\n');
    for (place, engine) in first.engines.iter().enumerate() {
        let _ = write!(text, "{engine:24}");
        for count in outcomes(rows, place) {
            let _ = write!(text, "{count:>9}");
        }
        text.push('\n');
    }
    for (peer, name) in peers(first) {
        let _ = write!(text, "\n{:24}", format!("against {name}"));
        let comparisons: Vec<_> =
            columns(warm).iter().map(|column| (column, compare(rows, peer, column))).collect();
        for (column, _) in &comparisons {
            let _ = write!(text, "{:>CELL$}", column.label);
        }
        let mut line = |label: &str, show: &dyn Fn(&Comparison) -> String| {
            let _ = write!(text, "\n{label:24}");
            for (_, comparison) in &comparisons {
                let _ = write!(text, "{:>CELL$}", show(comparison));
            }
        };
        line("rows that both finish", &|comparison| comparison.rows.to_string());
        line("ours is ahead in", &|comparison| comparison.ahead.to_string());
        line("× in the geometric mean", &|comparison| number(comparison.geometric_mean));
        line("× at worst", &|comparison| {
            comparison.behind.first().map(|worst| number(worst.0)).unwrap_or_default()
        });
        text.push('\n');
        for (who, names) in
            [("theirs", alone(rows, peer, first.base)), ("ours", alone(rows, first.base, peer))]
        {
            if !names.is_empty() {
                let _ = writeln!(text, "  finished by {who} alone: {}", names.join(", "));
            }
        }
        for (column, comparison) in comparisons.iter().filter(|(_, comparison)| !comparison.behind.is_empty())
        {
            let shown = comparison.behind.iter().take(SHOWN);
            let worst: Vec<String> = shown.map(|(ratio, row)| format!("{row} {}", number(*ratio))).collect();
            let _ = writeln!(text, "  behind in {}: {}", column.label, worst.join(", "));
        }
    }
    text
}

/// The maximum number of rows to name in which ours is behind.
const SHOWN: usize = 6;
const OUTCOMES: [&str; 7] = ["done", "wrong", "timeout", "memory", "died", "refused", "absent"];

pub fn to_json(rows: &[Row], warm: bool) -> Value {
    let Some(first) = rows.first() else { return json!({}) };
    let mut outcome_counts = Map::new();
    for (place, engine) in first.engines.iter().enumerate() {
        let counts: Map<String, Value> = OUTCOMES
            .iter()
            .zip(outcomes(rows, place))
            .map(|(name, count)| ((*name).to_owned(), json!(count)))
            .collect();
        outcome_counts.insert(engine.clone(), Value::Object(counts));
    }
    let mut against = Map::new();
    for (peer, name) in peers(first) {
        let columns: Map<String, Value> = columns(warm)
            .iter()
            .map(|column| {
                let comparison = compare(rows, peer, column);
                let behind: Map<String, Value> = comparison
                    .behind
                    .iter()
                    .map(|(ratio, row)| ((*row).to_owned(), json!(rounded(*ratio))))
                    .collect();
                let value = json!({
                    "rows": comparison.rows,
                    "ahead": comparison.ahead,
                    "geometric_mean": rounded(comparison.geometric_mean),
                    "behind": behind,
                });
                (column.pointer.trim_start_matches('/').replace('/', "_"), value)
            })
            .collect();
        against.insert(name.to_owned(), Value::Object(columns));
    }
    json!({"outcomes": outcome_counts, "against": against})
}

fn peers<'a>(row: &Row<'a>) -> impl Iterator<Item = (usize, &'a str)> {
    let base = row.base;
    row.engines.iter().map(String::as_str).enumerate().filter(move |(place, _)| *place != base)
}

fn compare<'a>(rows: &'a [Row], peer: usize, column: &Column) -> Comparison<'a> {
    let mut ratios: Vec<(f64, &str)> = rows
        .iter()
        .filter_map(|row| {
            Some((ratio(&row.figures[row.base], &row.figures[peer], column)?, row.name.as_str()))
        })
        .collect();
    ratios.sort_by(|left, right| left.0.total_cmp(&right.0));
    let logarithms: f64 = ratios.iter().map(|(ratio, _)| ratio.ln()).sum();
    let behind: Vec<(f64, &str)> = ratios.iter().copied().filter(|(ratio, _)| *ratio < 1.0).collect();
    Comparison {
        rows: ratios.len(),
        ahead: ratios.iter().filter(|(ratio, _)| *ratio > 1.0).count(),
        geometric_mean: (logarithms / ratios.len().max(1) as f64).exp(),
        behind,
    }
}

/// Returns the rows that one engine finishes and the other does not.
fn alone<'a>(rows: &'a [Row], engine: usize, other: usize) -> Vec<&'a str> {
    let is_done = |row: &Row, engine: usize| outcome(&row.figures[engine]) == "done";
    let rows = rows.iter().filter(|row| is_done(row, engine) && !is_done(row, other));
    rows.map(|row| row.name.as_str()).collect()
}

fn outcomes(rows: &[Row], engine: usize) -> [usize; OUTCOMES.len()] {
    OUTCOMES.map(|name| rows.iter().filter(|row| outcome(&row.figures[engine]) == name).count())
}

/// Returns the ratio of the peer's time to ours, if both finished.
fn ratio(ours: &Value, theirs: &Value, column: &Column) -> Option<f64> {
    if outcome(ours) != "done" || outcome(theirs) != "done" {
        return None;
    }
    let (ours, theirs) = (value(ours, column)?, value(theirs, column)?);
    (ours > 0.0 && theirs > 0.0).then_some(theirs / ours)
}

fn value(figures: &Value, column: &Column) -> Option<f64> {
    figures.pointer(column.pointer).and_then(Value::as_f64)
}

fn outcome(figures: &Value) -> &str {
    figures["outcome"].as_str().unwrap_or_default()
}

fn first_line(problem: &Value) -> &str {
    problem.as_str().and_then(|text| text.lines().next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finished_rows_are_compared() {
        let engines = ["ours".to_owned(), "theirs".to_owned()];
        let row = |name: &str, ours: f64, theirs: f64, outcome: &str| Row {
            name: name.into(),
            tokens: 1,
            engines: &engines,
            base: 0,
            figures: vec![
                json!({"outcome": "done", "ttfm_us": ours}),
                json!({"outcome": outcome, "ttfm_us": theirs}),
            ],
        };
        let rows = [row("a", 1.0, 8.0, "done"), row("b", 4.0, 2.0, "done"), row("c", 1.0, 100.0, "timeout")];
        let comparison = compare(&rows, 1, &COLUMNS[0]);
        assert_eq!((comparison.rows, comparison.ahead), (2, 1));
        assert_eq!(comparison.behind, [(0.5, "b")]);
        assert!((comparison.geometric_mean - 2.0).abs() < 1e-9);
        assert_eq!(outcomes(&rows, 1), [2, 0, 1, 0, 0, 0, 0]);
    }
}
