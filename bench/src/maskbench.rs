//! `mwbench maskbench`: real schemas with their valid and invalid instances.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use mwbench_abi::Source;

use crate::clock::{self, Clock};
use crate::corpus::{self, Case};
use crate::engines::{self, Engine, KeyOrder, Opened};
use crate::machine;
use crate::output;
use crate::plot;
use crate::progress::Progress;
use crate::replay::{Options, Record, replay};
use crate::report::{Report, Setting};
use crate::tokenizer::Tokenizer;

#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of schema files: {"schema": …, "tests": [{"valid": …, "data": …}]}
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    #[command(flatten)]
    pub common: Common,
    /// Use only this number of schemas, drawn with the seed
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use only schemas whose file name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Skip schemas that the first engine refuses, to compare on its schemas without waiting for the rest
    #[arg(long)]
    only_slice: bool,
    /// Also replay every instance a second time with the warm constraint
    #[arg(long)]
    warm: bool,
    /// Make maskwright forget, before each schema, even what it learned about the vocabulary from earlier ones
    #[arg(long)]
    forget: bool,
    /// Before each token, let maskwright prepare masks for this time, in which a model would compute
    #[arg(long, value_name = "MS")]
    prepare_ms: Option<u64>,
    /// The order in which maskwright allows keys
    #[arg(long, value_name = "ORDER", default_value = "schema")]
    key_order: KeyOrder,
    /// Print the results for each source of schemas, which is the part of the file name before `---`
    #[arg(long)]
    split: bool,
    /// Print the reasons why schemas are refused, with counts
    #[arg(long)]
    reasons: bool,
    /// Print the slowest mask of the slowest schemas of our engine: microseconds, schema, instance, token, and the text before it
    #[arg(long, value_name = "N", default_value_t = 0)]
    slowest: usize,
    /// Count a schema that takes an engine longer than this as refused (checked when the engine returns)
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout_s: u64,
    /// Draw the tails of all engines to this file
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// Arguments of every benchmark.
#[derive(clap::Args)]
pub struct Common {
    /// A tokenizer.json
    #[arg(long, value_name = "FILE")]
    pub tokenizer: PathBuf,
    /// Engines to run; the first one starts with the first schema, then they take turns
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAMES",
        default_value = "maskwright,llguidance,glrmask"
    )]
    pub engines: Vec<String>,
    /// Folder of the peers' libraries
    #[arg(long, value_name = "DIR", default_value = engines::PEER_FOLDER)]
    pub peers: PathBuf,
    /// Make every engine write its masks into a row of the caller, even if it can return them by reference
    #[arg(long)]
    pub rows: bool,
    /// Do not count the time that this process waits for a processor, on a machine with other work (Linux)
    #[arg(long)]
    pub shared_machine: bool,
    /// Write the numbers as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let tokenizer = Tokenizer::load(&arguments.common.tokenizer)?;
    let mut files = corpus::list(&arguments.data)?;
    if let Some(text) = &arguments.only {
        files.retain(|file| {
            file.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(text.as_str()))
        });
    }
    corpus::draw(&mut files, arguments.sample, arguments.seed);
    let opened = engines::open(
        &arguments.common.engines,
        &arguments.common.peers,
        &tokenizer.vocabulary(),
        arguments.key_order,
    )?;
    let (names, records) = measure(arguments, &tokenizer, &opened, &files)?;

    let setting = Setting {
        data: arguments.data.display().to_string(),
        tokenizer: arguments.common.tokenizer.display().to_string(),
        vocabulary: tokenizer.vocabulary().tokens.len(),
        seed: arguments.seed,
        timeout_s: arguments.timeout_s,
        clock_overhead_ns: clock::overhead_ns(),
        shared_machine: arguments.common.shared_machine,
        rows: arguments.common.rows,
        machine: machine::describe(),
    };
    let slowest = slowest(arguments, &tokenizer, &files, &names, &records[engines::base(&opened)])?;
    let report = Report::new(setting, &opened, names, records);
    print!("{}", report.table());
    if arguments.split {
        print!("{}", report.split());
    }
    if arguments.reasons {
        print!("{}", report.reasons());
    }
    print!("{slowest}");
    output::write_json(arguments.common.json.as_deref(), &report.to_json())?;
    match &arguments.plot {
        Some(path) => output::write(path, &plot::tails(&report.curves(), &report.caption())),
        None => Ok(()),
    }
}

/// Returns the slowest masks, one for each schema.
fn slowest(
    arguments: &Arguments,
    tokenizer: &Tokenizer,
    files: &[PathBuf],
    names: &[String],
    records: &[Record],
) -> Result<String, String> {
    let mut order: Vec<usize> = (0..records.len()).filter(|&at| records[at].slowest.0 > 0).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(records[at].slowest.0));
    let mut text = String::new();
    for at in order.into_iter().take(arguments.slowest) {
        let (nanos, instance, token) = records[at].slowest;
        // The first mask of the first instance is counted separately.
        let token = token + usize::from(instance == 0);
        let is_it =
            |file: &&PathBuf| file.file_stem().is_some_and(|stem| stem.to_string_lossy() == *names[at]);
        let Some(file) = files.iter().find(is_it) else { continue };
        let case = corpus::load(file, tokenizer)?;
        let vocabulary = tokenizer.vocabulary();
        let before = case.instances[instance].tokens.iter().take(token);
        let before: Vec<u8> = before.flat_map(|id| vocabulary.tokens[*id as usize].iter().copied()).collect();
        let from = before.len().saturating_sub(60);
        let micros = nanos as f64 / 1e3;
        let last = String::from_utf8_lossy(&before[from..]);
        let _ =
            writeln!(text, "{micros:>10.1} µs  {}, instance {instance}, token {token}: {last:?}", names[at]);
    }
    Ok(text)
}

/// Returns the names of the schemas, and a record for each engine and schema.
fn measure(
    arguments: &Arguments,
    tokenizer: &Tokenizer,
    opened: &[Opened],
    files: &[PathBuf],
) -> Result<(Vec<String>, Vec<Vec<Record>>), String> {
    let vocabulary = tokenizer.vocabulary();
    let clock = Clock::new(arguments.common.shared_machine)?;
    let options = Options {
        clock: &clock,
        end: vocabulary.end,
        timeout: Duration::from_secs(arguments.timeout_s),
        warm: arguments.warm,
        shared: !arguments.forget,
        rows: arguments.common.rows,
        prepare: arguments.prepare_ms.map(Duration::from_millis),
        watch: None,
    };
    let mut mask = vec![0; vocabulary.mask_words()];
    let mut names = Vec::new();
    let mut records: Vec<Vec<Record>> = opened.iter().map(|_| Vec::new()).collect();
    let mut progress = Progress::new(files.len());
    for (turn, file) in files.iter().enumerate() {
        let case = corpus::load(file, tokenizer)?;
        progress.step(&case.name);
        let first = if arguments.only_slice { 0 } else { turn % opened.len() };
        let order: Vec<usize> = (0..opened.len()).map(|place| (first + place) % opened.len()).collect();
        if let Some(round) = play_round(&case, &order, opened, &options, arguments.only_slice, &mut mask) {
            names.push(case.name);
            for (engine, record) in round {
                records[engine].push(record);
            }
        }
    }
    Ok((names, records))
}

/// Runs all engines on one schema, in turn; returns nothing if the first one refuses it and only its schemas are
/// wanted.
fn play_round(
    case: &Case,
    order: &[usize],
    opened: &[Opened],
    options: &Options<'_>,
    only_slice: bool,
    mask: &mut [u32],
) -> Option<Vec<(usize, Record)>> {
    let mut round = Vec::with_capacity(order.len());
    for &engine in order {
        let mut record = replay(opened[engine].engine.as_ref(), case, options, mask);
        if only_slice && engine == 0 && record.is_refused() {
            return None;
        }
        if record.rejects_valid() {
            record.by_key_order = is_order_alone(opened[engine].engine.as_ref(), case);
        }
        record.shrink();
        round.push((engine, record));
    }
    Some(round)
}

/// Whether all valid instances are accepted with their keys in some order.
fn is_order_alone(engine: &dyn Engine, case: &Case) -> bool {
    let source = Source { kind: case.kind, text: &case.source };
    let valid: Vec<&str> = case
        .instances
        .iter()
        .filter(|instance| instance.valid)
        .map(|instance| instance.text.as_str())
        .collect();
    engine.admits_reordered(source, &valid) == Some(true)
}
