//! `mwbench budget`: random walks over real schemas, each with a budget drawn at random, must finish within it.
//!
//! A walk takes one of the allowed tokens, each with the same probability, and stops only when only the end is allowed.
//! So it uses its budget up, and the masks near the end must force it to finish. The smallest budget is the shortest
//! completion that the matcher knows. The benchmark also measures the cost of a budget: masks with a budget that is far
//! away, compared with masks without one.

use std::path::PathBuf;
use std::time::Duration;

use maskwright::{Budget, BudgetError, Compiler, Constraint, Matcher, TokenId};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::progress::Progress;
use crate::random::Random;
use crate::walk::pick;
use crate::{corpus, output};

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  mwbench budget --data schemas --tokenizer tokenizer.json --walks 2 --json budget.json"
)]
pub struct Arguments {
    /// Folder of files {"schema": …, "tests": […]}
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// A tokenizer file
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Walks for each schema
    #[arg(long, value_name = "N", default_value_t = 2)]
    walks: usize,
    /// Use only this number of schemas, drawn at random
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Seed for the sample and for the walks
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Maximum number of tokens of a budget beyond the minimum
    #[arg(long, value_name = "N", default_value_t = 40)]
    more: usize,
    /// Do not count the time that this process waits for a processor, on a machine with other work (Linux)
    #[arg(long)]
    shared_machine: bool,
    /// Print every walk that was cut off or got stuck
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
    no_way: usize,
    values: usize,
    walks: usize,
    finished: usize,
    not_json: usize,
    cut_off: usize,
    needs: Vec<u32>,
    /// The time for computing the distances.
    prepared: Vec<Duration>,
    far: Vec<Duration>,
    without: Vec<Duration>,
    near: Vec<Duration>,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let mut files = corpus::list(&arguments.data)?;
    corpus::draw(&mut files, arguments.sample, arguments.seed);
    let tokenizer = maskwright_tokenizers::load(&arguments.tokenizer).map_err(|error| error.to_string())?;
    let compiler = Compiler::new(tokenizer.vocabulary().clone());
    let clock = Clock::new(arguments.shared_machine)?;
    let mut counts = Counts::default();
    let mut progress = Progress::new(files.len());
    for (number, file) in (0u64..).zip(&files) {
        let mut random = Random::of_item(arguments.seed, number);
        let (schema, _) = corpus::read(file)?;
        counts.schemas += 1;
        match compiler.compile(&Constraint::json_schema(schema.as_str())) {
            Ok(compiled) => {
                if let Some(trouble) =
                    walk_schema(arguments, &clock, &mut compiled.matcher(), &mut random, &mut counts)
                    && arguments.verbose
                {
                    println!("{}: {trouble}", file.display());
                }
            }
            Err(_) => counts.refused += 1,
        }
        progress.step(&file.file_stem().unwrap_or_default().to_string_lossy());
    }
    drop(progress);
    report(arguments, counts)
}

fn report(arguments: &Arguments, mut counts: Counts) -> Result<(), String> {
    println!(
        "{} schemas, {} refused, {} without a known way, {} with values that cannot be budgeted",
        counts.schemas, counts.refused, counts.no_way, counts.values
    );
    println!(
        "{} walks, {} finished within their budget, {} cut off; {} of the texts are not JSON",
        counts.walks, counts.finished, counts.cut_off, counts.not_json
    );
    counts.needs.sort_unstable();
    let needs =
        |share: f64| counts.needs.get((counts.needs.len() as f64 * share) as usize).copied().unwrap_or(0);
    println!("tokens needed at the start: p50 {}, p99 {}", needs(0.5), needs(0.99));
    let mut times = serde_json::Map::new();
    for (name, list) in [
        ("distances", &mut counts.prepared),
        ("mask without a budget", &mut counts.without),
        ("mask, budget far away", &mut counts.far),
        ("mask, budget near", &mut counts.near),
    ] {
        list.sort_unstable();
        let at = |share: f64| {
            let time = list.get((list.len() as f64 * share) as usize).copied().unwrap_or_default();
            time.as_secs_f64() * 1e6
        };
        println!("{name:24} p50 {:9.2} µs   p99 {:9.2} µs   p99.9 {:9.2} µs", at(0.5), at(0.99), at(0.999));
        times.insert(name.into(), json!({"p50_us": at(0.5), "p99_us": at(0.99), "p999_us": at(0.999)}));
    }
    let report = json!({
        "schemas": counts.schemas,
        "refused": counts.refused,
        "no_way": counts.no_way,
        "values": counts.values,
        "walks": counts.walks,
        "finished": counts.finished,
        "cut_off": counts.cut_off,
        "not_json": counts.not_json,
        "needs": {"p50": needs(0.5), "p99": needs(0.99)},
        "times": Value::Object(times),
    });
    output::write_json(arguments.json.as_deref(), &report)
}

/// Runs the walks of one schema. Returns the last error.
fn walk_schema(
    arguments: &Arguments,
    clock: &Clock,
    matcher: &mut Matcher,
    random: &mut Random,
    counts: &mut Counts,
) -> Option<String> {
    let (need, time) = clock.time(|| matcher.shortest_completion());
    counts.prepared.push(Duration::from_nanos(time));
    let mut trouble = None;
    for _ in 0..arguments.walks {
        matcher.reset();
        let Some(need) = need else {
            counts.no_way += 1;
            return Some("no way is known".into());
        };
        let tokens = need + random.below(arguments.more + 1) as u32;
        match matcher.set_budget(Some(Budget::new(tokens))) {
            Ok(()) => {}
            Err(BudgetError::Values) => {
                counts.values += 1;
                return None;
            }
            Err(error) => return Some(error.to_string()),
        }
        counts.needs.push(need);
        counts.walks += 1;
        match walk(clock, matcher, random, counts) {
            Ok(text) => {
                counts.finished += 1;
                counts.not_json += usize::from(serde_json::from_slice::<Value>(&text).is_err());
            }
            Err(what) => {
                counts.cut_off += 1;
                trouble = Some(format!("{tokens} tokens, {need} needed: {what}"));
            }
        }
    }
    trouble
}

/// Runs one walk, until only the end is allowed.
fn walk(
    clock: &Clock,
    matcher: &mut Matcher,
    random: &mut Random,
    counts: &mut Counts,
) -> Result<Vec<u8>, String> {
    let vocabulary = matcher.bound().vocabulary().clone();
    let mut words = vec![0u32; vocabulary.size().div_ceil(32)];
    let mut text = Vec::new();
    loop {
        let show = |text: &[u8]| text.escape_ascii().to_string();
        let (filled, time) = clock.time(|| matcher.fill_mask(&mut words));
        filled.map_err(|error| error.to_string())?;
        counts.near.push(Duration::from_nanos(time));
        compare(clock, matcher, &mut words.clone(), counts);
        for eos in vocabulary.eos() {
            words[eos.index() / 32] &= !(1 << (eos.index() % 32));
        }
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        let token = likely(&words, matcher, random).or_else(|| pick(&words, count, random));
        let Some(token) = token else {
            let complete = matcher.is_accepting();
            return if complete { Ok(text) } else { Err(format!("stuck after {}", show(&text))) };
        };
        if matcher.budget_left().is_some_and(|left| left <= 1) {
            return Err(format!("cut off after {}", show(&text)));
        }
        matcher.accept(token).map_err(|error| format!("{error} after {}", show(&text)))?;
        text.extend_from_slice(vocabulary.bytes(token));
    }
}

/// Sometimes chooses a token of one byte, because otherwise the walks would mostly write long words.
fn likely(words: &[u32], matcher: &Matcher, random: &mut Random) -> Option<TokenId> {
    const TELLING: &[u8] = b"\"{}[],:\\ ";
    if random.below(2) == 0 {
        return None;
    }
    let trie = matcher.bound().vocabulary().trie();
    let node = trie.child(maskwright::trie::Trie::ROOT, TELLING[random.below(TELLING.len())])?;
    let token = *trie.tokens(node).first()?;
    (words[token as usize / 32] >> (token % 32) & 1 == 1).then_some(TokenId(token))
}

/// Times a mask with a budget that is far away and one without a budget.
fn compare(clock: &Clock, matcher: &mut Matcher, words: &mut [u32], counts: &mut Counts) {
    let mut far = matcher.fork();
    let mut without = matcher.fork();
    if far.set_budget(Some(Budget::new(1_000_000))).is_err() || without.set_budget(None).is_err() {
        return;
    }
    // The first mask of each may not be cached yet.
    for (matcher, times) in [(&mut far, &mut counts.far), (&mut without, &mut counts.without)] {
        if matcher.fill_mask(words).is_ok() {
            let (filled, time) = clock.time(|| matcher.fill_mask(words));
            times.extend(filled.is_ok().then(|| Duration::from_nanos(time)));
        }
    }
}
