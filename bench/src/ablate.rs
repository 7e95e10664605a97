//! `mwbench ablate`: measures the gain of each fast path. The full engine and engines with one path switched off take
//! turns on the same work.
//!
//! Each engine has its own library, created with its tuning. A round replays everything with new libraries. For each
//! mask, token and first mask the fastest round counts, because other load on the machine only adds time.

use std::path::PathBuf;
use std::time::Duration;

use maskwright::{FastPath, Tuning};
use serde_json::json;

use crate::clock::Clock;
use crate::corpus::{self, Case, Instance};
use crate::engines::{KeyOrder, Maskwright, OURS};
use crate::figures::Figures;
use crate::grammars::cases;
use crate::maskbench::Common;
use crate::output;
use crate::progress::Progress;
use crate::replay::{Options, Record, replay};
use crate::tokenizer::Tokenizer;

/// What each fast path of the engine gains: each is switched off in turn.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    /// Folder of files {"schema": …, "tests": […]}
    #[arg(long, value_name = "DIR", required_unless_present = "cases")]
    data: Option<PathBuf>,
    /// Folder of regexes and grammars, instead of schemas: bench/grammars
    #[arg(long, value_name = "DIR", conflicts_with = "data")]
    cases: Option<PathBuf>,
    /// Draw this number of schemas
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// Seed of the draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of times that everything is replayed
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these paths
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
}

/// An engine of the run.
struct Variant {
    name: String,
    tuning: Tuning,
    /// One for each case, with the fastest times of all rounds.
    records: Vec<Record>,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let tokenizer = Tokenizer::load(&arguments.common.tokenizer)?;
    let cases = load(arguments, &tokenizer)?;
    let mut variants = vec![Variant { name: "full".into(), tuning: Tuning::DEFAULT, records: Vec::new() }];
    for path in FastPath::ALL {
        let name = format!("{path:?}");
        if arguments.only.is_empty() || arguments.only.contains(&name) {
            variants.push(Variant { name, tuning: Tuning::DEFAULT.without(path), records: Vec::new() });
        }
    }
    let mut progress = Progress::new(cases.len() * arguments.rounds);
    for round in 0..arguments.rounds {
        play(arguments, &tokenizer, &cases, &mut variants, round, &mut progress)?;
        print(&cases, &variants, round + 1);
    }
    let rows = variants.iter().map(|variant| {
        let figures = Figures::of(&variant.records.iter().collect::<Vec<_>>());
        let columns = columns(&figures).map(|(name, value)| (name.to_owned(), json!(value)));
        (variant.name.clone(), serde_json::Value::Object(columns.into_iter().collect()))
    });
    let rows = serde_json::Value::Object(rows.collect());
    output::write_json(
        arguments.common.json.as_deref(),
        &json!({"cases": cases.len(), "rounds": arguments.rounds, "paths": rows}),
    )
}

fn load(arguments: &Arguments, tokenizer: &Tokenizer) -> Result<Vec<Case>, String> {
    if let Some(folder) = &arguments.cases {
        let rows = cases::read(folder)?;
        let rows = rows.iter().filter(|row| !row.name.ends_with("/long"));
        return rows
            .map(|row| {
                let (kind, source) = row.source_for(OURS).ok_or("a case without a source")?;
                let mut instances = Vec::new();
                for (text, tokens) in row.texts.iter().zip(row.tokens(tokenizer)?) {
                    instances.push(Instance { valid: true, text: text.clone(), tokens });
                }
                Ok(Case { name: row.name.clone(), kind, source: source.to_owned(), instances })
            })
            .collect();
    }
    let folder = arguments.data.as_ref().ok_or("--data or --cases is needed")?;
    let mut files = corpus::list(folder)?;
    corpus::draw(&mut files, arguments.sample, arguments.seed);
    files.iter().map(|file| corpus::load(file, tokenizer)).collect()
}

/// Runs all variants over all cases, with new libraries.
fn play(
    arguments: &Arguments,
    tokenizer: &Tokenizer,
    cases: &[Case],
    variants: &mut [Variant],
    round: usize,
    progress: &mut Progress,
) -> Result<(), String> {
    let vocabulary = tokenizer.vocabulary();
    let clock = Clock::new(arguments.common.shared_machine)?;
    let options = Options {
        clock: &clock,
        end: vocabulary.end,
        timeout: Duration::from_secs(20),
        warm: false,
        shared: true,
        rows: arguments.common.rows,
        prepare: None,
        watch: None,
    };
    let engines =
        variants.iter().map(|variant| variant.tuning.run(|| Maskwright::open(&vocabulary, KeyOrder::Schema)));
    let engines: Vec<Maskwright> = engines.collect::<Result<_, _>>()?;
    let mut row = vec![0; vocabulary.mask_words()];
    for (number, case) in cases.iter().enumerate() {
        progress.step(&case.name);
        for turn in 0..variants.len() {
            let at = (number + round + turn) % variants.len();
            let variant = &mut variants[at];
            let record = variant.tuning.run(|| replay(&engines[at], case, &options, &mut row));
            match variant.records.get_mut(number) {
                Some(best) => keep_fastest(best, &record),
                None => variant.records.push(record),
            }
        }
    }
    Ok(())
}

fn keep_fastest(best: &mut Record, record: &Record) {
    let least = |best: &mut Vec<u64>, new: &[u64]| {
        best.iter_mut().zip(new).for_each(|(best, new)| *best = (*best).min(*new));
    };
    least(&mut best.masks, &record.masks);
    least(&mut best.accepts, &record.accepts);
    best.first_mask = best.first_mask.min(record.first_mask);
    best.bytes = best.bytes.min(record.bytes);
}

fn columns(figures: &Figures) -> [(&'static str, f64); 8] {
    [
        ("mask avg", figures.mask.avg),
        ("p50", figures.mask.p50),
        ("p99", figures.mask.p99),
        ("p99.9", figures.mask.p999),
        ("accept avg", figures.accept.avg),
        ("first avg", figures.first_mask.avg),
        ("first p99", figures.first_mask.p99),
        ("bytes", figures.bytes.avg),
    ]
}

/// Prints the full engine in microseconds, and the others as multiples of it.
fn print(cases: &[Case], variants: &[Variant], rounds: usize) {
    println!(
        "\n{} cases, the fastest of {rounds} rounds; µs of the full engine, then × without a path",
        cases.len()
    );
    let mut full = None;
    for variant in variants {
        let figures = Figures::of(&variant.records.iter().collect::<Vec<_>>());
        let columns = columns(&figures);
        let Some(full) = &full else {
            print!("{:18}", "");
            columns.iter().for_each(|(name, _)| print!(" {name:>10}"));
            print!("\n{:18}", variant.name);
            columns.iter().for_each(|(_, value)| print!(" {value:>10.2}"));
            println!("  refused {}", figures.refused);
            full = Some(columns);
            continue;
        };
        print!("{:18}", variant.name);
        columns
            .iter()
            .zip(full)
            .for_each(|((_, value), (_, full))| print!(" {:>10.3}", value / full.max(1e-9)));
        println!("  refused {}", figures.refused);
    }
}
