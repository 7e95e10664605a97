//! `mwbench grammars`: realistic regexes and grammars, with texts of 5 to 20,000 tokens.
//!
//! Each engine runs in a separate process, which is stopped and restarted if a case takes too long or too much memory,
//! because a call cannot be interrupted inside a process. The engines take turns, case by case. Some of the cases are
//! held out: anyone who tunes an engine should not look at them, see [`cases::is_held_out`].

pub mod cases;
mod summary;
mod texts;
mod worker;

use std::path::PathBuf;

use mwbench_abi::Source;
use serde_json::{Map, Value, json};

use self::cases::{Row, Rows};
use self::worker::Worker;
use crate::clock;
use crate::engines::{self, Engine, KeyOrder, OURS};
use crate::machine;
use crate::maskbench::Common;
use crate::output;
use crate::progress::Progress;
use crate::tokenizer::Tokenizer;

const EXAMPLES: &str = "\
Examples:
  mwbench grammars --tokenizer tokenizer.json --engines maskwright,llguidance
  mwbench grammars --tokenizer tokenizer.json --warm --engines maskwright,xgrammar --python bin/python
  mwbench grammars --tokenizer tokenizer.json --only arithmetic --timeout-s 5 --json out.json
  mwbench grammars --tokenizer tokenizer.json --held-out";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    /// Folder of the cases
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/grammars"))]
    cases: PathBuf,
    /// Run only rows whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Run only the cases that are held out
    #[arg(long, conflicts_with = "all")]
    held_out: bool,
    /// Run all cases; those that are held out are reported separately
    #[arg(long)]
    all: bool,
    /// Also replay every text a second time with the warm constraint
    #[arg(long)]
    warm: bool,
    /// Stop an engine that needs longer for a row; what was measured until then is shown
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout_s: u64,
    /// Stop an engine whose process grows beyond this size
    #[arg(long, value_name = "GIGABYTES", default_value_t = 8.0)]
    memory_gb: f64,
    /// A Python that has the package xgrammar, for the engine of that name
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
    /// Print the names of the rows with their numbers of tokens, and run nothing
    #[arg(long)]
    list: bool,
    /// Only check whether the engines accept the texts, without masks and without a time limit
    #[arg(long)]
    check: bool,
    /// Run as a worker for the one engine given: cases come on standard input, measurements go to standard output
    #[arg(long, hide = true)]
    worker: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    if arguments.worker {
        return worker::serve(arguments);
    }
    let rows = cases::read(&arguments.cases)?;
    let tokenizer = Tokenizer::load(&arguments.common.tokenizer)?;
    let parts = parts(arguments, rows);
    if arguments.list {
        return parts.iter().try_for_each(|part| list(part, &tokenizer));
    }
    if arguments.check {
        return check(arguments, &parts, &tokenizer);
    }
    let mut workers = Vec::new();
    for engine in &arguments.common.engines {
        workers.push(Worker::start(engine, arguments)?);
    }
    let mut progress = Progress::new(parts.iter().map(|part| part.rows.len()).sum());
    let mut report = json!({"setting": setting(arguments, &tokenizer, &workers), "parts": {}});
    for part in &parts {
        println!("\n{}: {} rows", part.title, part.rows.len());
        summary::print_heading(arguments.warm);
        let mut rows = Vec::new();
        for (turn, row) in part.rows.iter().enumerate() {
            let row = measure(row, &tokenizer, &mut workers, turn, &arguments.common.engines)?;
            summary::print_row(&row, arguments.warm);
            progress.step(&row.name);
            rows.push(row);
            // Written after each row, because a later row may take long.
            report["parts"][part.key] = to_json(&rows, arguments.warm);
            output::write_json(arguments.common.json.as_deref(), &report)?;
        }
        print!("{}", summary::text(&rows, arguments.warm));
    }
    println!(
        "\n{} tokens, {}; an empty measurement takes {} ns; times in µs; × is how many times ours fits in",
        tokenizer.vocabulary().tokens.len(),
        machine::describe(),
        clock::overhead_ns()
    );
    Ok(())
}

/// Rows that are reported together.
struct Part {
    key: &'static str,
    title: &'static str,
    rows: Rows,
}

fn parts(arguments: &Arguments, rows: Rows) -> Vec<Part> {
    let wanted = |row: &Row| arguments.only.as_ref().is_none_or(|text| row.name.contains(text.as_str()));
    let (held_out, open): (Rows, Rows) =
        rows.into_iter().filter(wanted).partition(|row| cases::is_held_out(&row.case));
    let open = Part { key: "open", title: "open cases", rows: open };
    let held_out = Part { key: "held_out", title: "cases that are held out", rows: held_out };
    match (arguments.all, arguments.held_out) {
        (true, _) => vec![open, held_out],
        (_, true) => vec![held_out],
        _ => vec![open],
    }
}

fn list(part: &Part, tokenizer: &Tokenizer) -> Result<(), String> {
    println!("{}: {} rows", part.title, part.rows.len());
    for row in &part.rows {
        let tokens = row.tokens(tokenizer)?;
        println!("{:34} {:>6}", row.name, tokens.iter().map(Vec::len).sum::<usize>());
    }
    Ok(())
}

/// Checks whether all constraints accept their texts. Accepting alone takes hardly any time.
fn check(arguments: &Arguments, parts: &[Part], tokenizer: &Tokenizer) -> Result<(), String> {
    let common = &arguments.common;
    let opened = engines::open(&common.engines, &common.peers, &tokenizer.vocabulary(), KeyOrder::default())?;
    let mut bad = 0;
    for row in parts.iter().flat_map(|part| &part.rows) {
        for opened in &opened {
            let engine = opened.engine.as_ref();
            if let Err(problem) = accept(row, engine, tokenizer) {
                println!("{} {}: {problem}", row.name, engine.name());
                bad += 1;
            }
        }
    }
    if bad == 0 { Ok(()) } else { Err(format!("{bad} rows are not accepted")) }
}

fn accept(row: &Row, engine: &dyn Engine, tokenizer: &Tokenizer) -> Result<(), String> {
    let Some((kind, text)) = row.source_for(engine.name()) else { return Ok(()) };
    let compiled = engine.compile(Source { kind, text })?;
    let tokens = row.tokens(tokenizer)?;
    for (index, text) in tokens.iter().enumerate() {
        let mut session = compiled.start()?;
        let place = text.iter().position(|&token| !session.accept(token));
        if let Some(place) = place.or_else(|| (!session.accepting()).then_some(text.len())) {
            return Err(rejection(tokenizer, &tokens, index, place).unwrap_or_default());
        }
    }
    Ok(())
}

/// Runs all engines on one row, in turn; a different one begins each time.
fn measure<'a>(
    row: &Row,
    tokenizer: &Tokenizer,
    workers: &mut [Worker<'_>],
    turn: usize,
    engines: &'a [String],
) -> Result<summary::Row<'a>, String> {
    let tokens = row.tokens(tokenizer)?;
    let mut figures = vec![Value::Null; workers.len()];
    let count = workers.len();
    for place in (turn..turn + count).map(|place| place % count) {
        let worker = &mut workers[place];
        let mut measured = match row.source_for(worker.engine()) {
            Some((kind, source)) => worker.run(kind, source, &tokens)?,
            None => json!({"outcome": "absent"}),
        };
        let rejected = |index: usize| Some(measured["rejected"].get(index)?.as_u64()? as usize);
        if let (Some(text), Some(place)) = (rejected(0), rejected(1)) {
            measured["problem"] = json!(rejection(tokenizer, &tokens, text, place));
        }
        figures[place] = measured;
    }
    let base = engines.iter().position(|name| name == OURS).unwrap_or(0);
    Ok(summary::Row {
        name: row.name.clone(),
        tokens: tokens.iter().map(Vec::len).sum(),
        engines,
        base,
        figures,
    })
}

/// Describes where a text was rejected.
fn rejection(tokenizer: &Tokenizer, tokens: &[Vec<u32>], text: usize, place: usize) -> Option<String> {
    let spell = |ids: &[u32]| -> Vec<u8> {
        ids.iter().flat_map(|&id| tokenizer.vocabulary().tokens[id as usize].clone()).collect()
    };
    let before = spell(tokens.get(text)?.get(..place)?);
    let before = String::from_utf8_lossy(&before[before.len().saturating_sub(24)..]).into_owned();
    let next = tokens[text].get(place).map(|&id| String::from_utf8_lossy(&spell(&[id])).into_owned());
    let next = next.map_or_else(|| "the end".into(), |next| format!("{next:?}"));
    Some(format!("text {} of {} is rejected: {next} behind {before:?}", text + 1, tokens.len()))
}

fn to_json(rows: &[summary::Row<'_>], warm: bool) -> Value {
    let figures = |row: &summary::Row<'_>| {
        let engines: Map<String, Value> =
            row.engines.iter().cloned().zip(row.figures.iter().cloned()).collect();
        (row.name.clone(), json!({"tokens": row.tokens, "engines": engines}))
    };
    let by_name: Map<String, Value> = rows.iter().map(figures).collect();
    json!({"rows": by_name, "summary": summary::to_json(rows, warm)})
}

fn setting(arguments: &Arguments, tokenizer: &Tokenizer, workers: &[Worker<'_>]) -> Value {
    let releases: Map<String, Value> =
        workers.iter().map(|worker| (worker.engine().to_owned(), json!(worker.release()))).collect();
    json!({
        "engines": releases,
        "tokenizer": arguments.common.tokenizer.display().to_string(),
        "vocabulary": tokenizer.vocabulary().tokens.len(),
        "timeout_s": arguments.timeout_s,
        "warm": arguments.warm,
        "rows": arguments.common.rows,
        "shared_machine": arguments.common.shared_machine,
        "clock_overhead_ns": clock::overhead_ns(),
        "machine": machine::describe(),
    })
}
