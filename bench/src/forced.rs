//! `mwbench forced`: checks whether forced tokens are the tokens that the tokenizer has there, and counts them.
//!
//! Every valid instance is tokenized, and a matcher follows it. If the matcher reports forced tokens, they are compared
//! with the tokens that follow in the instance, and skipped; otherwise one token is accepted, as a model would write
//! it. A difference is a bug: a model would see a text in a tokenization that it has never seen.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use maskwright::{Compiler, Constraint, Matcher, TokenHealing, TokenId};
use maskwright_tokenizers::Tokenizer;
use serde_json::json;

use crate::progress::Progress;
use crate::{corpus, output};

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  mwbench forced --data schemas --tokenizer tokenizer.json --json forced.json"
)]
pub struct Arguments {
    /// Folder of files {"schema": …, "tests": […]}
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// A tokenizer file
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Use only this number of schemas, drawn at random
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Seed for the sample
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Maximum number of forced bytes to compute
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    limit: usize,
    /// Print every difference
    #[arg(long)]
    verbose: bool,
    /// Write the counts as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Default)]
struct Counts {
    schemas: usize,
    refused: usize,
    instances: usize,
    /// Instances that the tokenizer cannot encode, or that the matcher does not accept.
    left_out: usize,
    tokens: usize,
    forced: usize,
    bytes: usize,
    forced_bytes: usize,
    /// How often there were forced tokens.
    runs: usize,
    different: usize,
    asked: usize,
    time: Duration,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let mut files = corpus::list(&arguments.data)?;
    corpus::draw(&mut files, arguments.sample, arguments.seed);
    let tokenizer = maskwright_tokenizers::load(&arguments.tokenizer).map_err(|error| error.to_string())?;
    let compiler = Compiler::new(tokenizer.vocabulary().clone());
    let mut counts = Counts::default();
    let mut progress = Progress::new(files.len());
    for file in &files {
        walk_schema(arguments, file, &compiler, &tokenizer, &mut counts)?;
        progress.step(&file.file_stem().unwrap_or_default().to_string_lossy());
    }
    drop(progress);
    report(arguments, &counts)
}

fn report(arguments: &Arguments, counts: &Counts) -> Result<(), String> {
    let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    let asked_us = counts.time.as_secs_f64() * 1e6 / counts.asked.max(1) as f64;
    println!(
        "{} schemas, {} refused; {} valid instances, {} left out",
        counts.schemas, counts.refused, counts.instances, counts.left_out
    );
    println!(
        "{} tokens, {} of them forced ({:.1} %) in {} runs; {:.1} % of the bytes are forced",
        counts.tokens,
        counts.forced,
        share(counts.forced, counts.tokens),
        counts.runs,
        share(counts.forced_bytes, counts.bytes)
    );
    println!("different from the tokenizer's: {}", counts.different);
    println!("asking took {asked_us:.1} µs on average, encoding included");
    let report = json!({
        "schemas": counts.schemas,
        "refused": counts.refused,
        "instances": counts.instances,
        "left_out": counts.left_out,
        "tokens": counts.tokens,
        "forced": counts.forced,
        "bytes": counts.bytes,
        "forced_bytes": counts.forced_bytes,
        "runs": counts.runs,
        "different": counts.different,
        "asked": counts.asked,
        "asked_us": asked_us,
    });
    output::write_json(arguments.json.as_deref(), &report)
}

fn walk_schema(
    arguments: &Arguments,
    file: &Path,
    compiler: &Compiler,
    tokenizer: &Tokenizer,
    counts: &mut Counts,
) -> Result<(), String> {
    let (schema, instances) = corpus::read(file)?;
    counts.schemas += 1;
    let Ok(compiled) = compiler.compile(&Constraint::json_schema(schema.as_str())) else {
        counts.refused += 1;
        return Ok(());
    };
    for (_, text) in instances.iter().filter(|(valid, _)| *valid) {
        counts.instances += 1;
        let Ok(tokens) = tokenizer.encode(text) else {
            counts.left_out += 1;
            continue;
        };
        if compiled.matcher().validate(&tokens) != Ok(tokens.len()) {
            counts.left_out += 1;
            continue;
        }
        if let Some(place) = walk(arguments.limit, compiled.matcher(), tokenizer, &tokens, counts)
            && arguments.verbose
        {
            println!("{}: {place}", file.display());
        }
    }
    Ok(())
}

/// Follows an instance. Returns where forced tokens differ, if they do.
fn walk(
    limit: usize,
    mut matcher: Matcher,
    tokenizer: &Tokenizer,
    tokens: &[TokenId],
    counts: &mut Counts,
) -> Option<String> {
    let encode = |text: &str| tokenizer.encode(text).ok();
    let length = |tokens: &[TokenId]| tokenizer.decode(tokens).len();
    counts.tokens += tokens.len();
    counts.bytes += length(tokens);
    let mut at = 0;
    while at < tokens.len() {
        let begin = Instant::now();
        let forced = matcher.forced_tokens(&tokens[..at], limit, TokenHealing::Keep, &encode).tokens;
        counts.time += begin.elapsed();
        counts.asked += 1;
        if !tokens[at..].starts_with(&forced) {
            counts.different += 1;
            let show = |tokens: &[TokenId]| {
                let pieces =
                    tokens.iter().map(|token| tokenizer.decode(&[*token]).escape_ascii().to_string());
                pieces.collect::<Vec<_>>().join("|")
            };
            let real = &tokens[at..tokens.len().min(at + forced.len())];
            return Some(format!(
                "after {}: forced {}, really {}",
                show(&tokens[..at]),
                show(&forced),
                show(real)
            ));
        }
        counts.runs += usize::from(!forced.is_empty());
        counts.forced += forced.len();
        counts.forced_bytes += length(&forced);
        let next = at + forced.len().max(1);
        for token in &tokens[at..next] {
            if let Err(error) = matcher.accept(*token) {
                return Some(format!("token {token} was refused: {error}"));
            }
        }
        at = next;
    }
    None
}
