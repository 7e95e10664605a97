//! `mwbench regex`: ten patterns that were proposed to measure outlines-core, with our index and its `Index`.
//!
//! Both are built ahead of time: for every state of the automaton, every allowed token. The last four patterns are
//! schemas. outlines-core first converts them to a regex, which is part of its build time; ours uses the schemas
//! directly, with the white space that outlines-core allows, one optional space, so that both accept documents of the
//! same form.
//!
//! The data of the vocabulary is built in advance: theirs, and our library with the trie that indexes share. Each of
//! our builds starts without tables of other builds; the time is the median of three (`--builds`). Theirs, which takes
//! up to a minute, is built once.

mod patterns;

use std::sync::Arc;

use maskwright::{Compiler, Constraint, Index, IndexLimits, Library, Options, StateId, TokenId, json_schema};
use mwbench_abi::{Kind, Source, Vocabulary};
use outlines_core::json_schema as outlines_schema;
use outlines_core::prelude::{Index as OutlinesIndex, Vocabulary as OutlinesVocabulary};
use serde_json::{Map, Value, json};

use self::patterns::{Pattern, patterns};
use crate::clock::Clock;
use crate::engines::Maskwright;
use crate::engines::maskwright::constraint;
use crate::machine;
use crate::output;
use crate::random::Random;
use crate::replay::panic_text;
use crate::stats::{Summary, Times, rounded};
use crate::table::{number, size};
use crate::tokenizer::Tokenizer;

#[derive(clap::Args)]
pub struct Arguments {
    /// The tokenizer.json
    #[arg(long, value_name = "FILE")]
    tokenizer: std::path::PathBuf,
    /// Write the results to this file
    #[arg(long, value_name = "OUT")]
    json: Option<std::path::PathBuf>,
    /// Do not count time that this thread waited for a processor
    #[arg(long)]
    shared_machine: bool,
    /// Run only patterns whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Do not build the index of outlines-core, which takes minutes and gigabytes for some patterns
    #[arg(long)]
    without_outlines: bool,
    /// Number of builds of our index; the time is the median
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    builds: u32,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let tokenizer = Tokenizer::load(&arguments.tokenizer)?;
    let vocabulary = tokenizer.vocabulary();
    let library = Arc::new(Library::new(Maskwright::vocabulary(&vocabulary)?));
    let outlines = if arguments.without_outlines { None } else { Some(outlines_vocabulary(&vocabulary)?) };
    let clock = Clock::new(arguments.shared_machine)?;
    // Creates the trie that all indexes of a vocabulary share.
    compiler(&library)
        .index(&Constraint::choice(["shared"]), &IndexLimits::default())
        .map_err(|e| e.to_string())?;
    let mut results = Map::new();
    print_heading();
    for pattern in patterns() {
        if arguments.only.as_ref().is_some_and(|text| !pattern.name.contains(text.as_str())) {
            continue;
        }
        let ours = measure(&pattern, &library, &clock, arguments.builds as usize);
        let theirs = outlines.as_ref().map(|vocabulary| build_index(&pattern, vocabulary, &clock));
        print_line(pattern.name, &ours, theirs.as_ref());
        results.insert(pattern.name.to_owned(), to_json(&ours, theirs.as_ref()));
        // Written after each pattern, because a later one may take minutes.
        let report = json!({"patterns": results, "setting": {"machine": machine::describe()}});
        output::write_json(arguments.json.as_deref(), &report)?;
    }
    Ok(())
}

/// The results of our index.
struct Ours {
    build_s: f64,
    bytes: i64,
    states: usize,
    /// The time to fill the caller's row.
    fill: Summary,
    /// The time to return the mask by reference.
    borrow: Summary,
    next: Summary,
    load_us: f64,
}

/// The results of outlines-core.
struct Theirs {
    build_s: f64,
    bytes: i64,
}

/// The number of masks to collect, and of tokens in a walk.
const MASKS: usize = 5000;
const WALK: usize = 400;

fn compiler(library: &Arc<Library>) -> Compiler {
    let mut options = Options::default();
    options.json_schema.whitespace = json_schema::Whitespace::Pattern("[ ]?".into());
    Compiler::with_library(library.clone(), options)
}

fn measure(pattern: &Pattern, library: &Arc<Library>, clock: &Clock, builds: usize) -> Result<Ours, String> {
    let constraint = constraint(Source { kind: pattern.kind, text: &pattern.text });
    let mut times = Vec::new();
    for _ in 0..builds {
        let compiler = compiler(library);
        let (index, nanos) = clock.time(|| compiler.index(&constraint, &IndexLimits::default()));
        index.map_err(|error| error.to_string())?;
        times.push(nanos);
    }
    times.sort_unstable();
    let build_s = times[builds / 2] as f64 / 1e9;
    let compiler = compiler(library);
    let before = mwbench_abi::memory::live_bytes();
    let index = compiler.index(&constraint, &IndexLimits::default()).map_err(|error| error.to_string())?;
    drop(compiler);
    let bytes = mwbench_abi::memory::live_bytes() - before;
    let mut file = Vec::new();
    index.save(&mut file).map_err(|error| error.to_string())?;
    let (loaded, load) = clock.time(|| Index::from_bytes(file));
    let loaded = loaded.map_err(|error| error.to_string())?;
    let [fill, borrow, next] = walk(&loaded, clock)?.map(|times| times.sorted().summary());
    Ok(Ours { build_s, bytes, states: index.len(), fill, borrow, next, load_us: load as f64 / 1e3 })
}

/// Walks randomly under the mask until enough masks are timed: filled, borrowed, and the step to the next state.
fn walk(index: &Index, clock: &Clock) -> Result<[Times; 3], String> {
    let mut random = Random::new(11);
    let mut row = vec![0; index.mask_words()];
    let [mut fill, mut borrow, mut next] = [const { Times(Vec::new()) }; 3];
    while fill.0.len() < MASKS {
        let mut state = index.initial_state();
        for _ in 0..WALK {
            let (filled, nanos) = clock.time(|| index.fill_mask(state, &mut row));
            filled.map_err(|error| error.to_string())?;
            fill.0.push(nanos);
            borrow.0.push(clock.time(|| std::hint::black_box(index.mask(state))).1);
            let Some(token) = random_token(&row, &mut random) else {
                return Err(format!("stuck: state {} allows nothing", state.0));
            };
            let (after, nanos) = clock.time(|| index.next_state(state, TokenId(token)));
            next.0.push(nanos);
            state = after.map_err(|error| error.to_string())?;
            if state == StateId::ENDED {
                break;
            }
        }
    }
    Ok([fill, borrow, next])
}

fn random_token(mask: &[u32], random: &mut Random) -> Option<u32> {
    let count: u32 = mask.iter().map(|word| word.count_ones()).sum();
    if count == 0 {
        return None;
    }
    let mut left = random.below(count as usize) as u32;
    for (index, &word) in mask.iter().enumerate() {
        if left < word.count_ones() {
            let mut word = word;
            for _ in 0..left {
                word &= word - 1;
            }
            return Some(index as u32 * 32 + word.trailing_zeros());
        }
        left -= word.count_ones();
    }
    None
}

fn outlines_vocabulary(vocabulary: &Vocabulary<'_>) -> Result<OutlinesVocabulary, String> {
    let mut theirs = OutlinesVocabulary::new(vocabulary.end[0]);
    for (id, bytes) in vocabulary.tokens.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
        theirs.try_insert(bytes.clone(), id as u32).map_err(|error| error.to_string())?;
    }
    Ok(theirs)
}

fn build_index(pattern: &Pattern, vocabulary: &OutlinesVocabulary, clock: &Clock) -> Result<Theirs, String> {
    let build = || {
        let before = mwbench_abi::memory::live_bytes();
        let (index, nanos) = clock.time(|| {
            let regex = match pattern.kind {
                Kind::JsonSchema => outlines_schema::regex_from_str(&pattern.text, None, None)?,
                _ => pattern.text.clone(),
            };
            OutlinesIndex::new(&regex, vocabulary)
        });
        let index = index.map_err(|error| error.to_string())?;
        let build_s = nanos as f64 / 1e9;
        let bytes = mwbench_abi::memory::live_bytes() - before;
        drop(index);
        Ok(Theirs { build_s, bytes })
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(build)) {
        Ok(result) => result,
        Err(panic) => Err(format!("panicked: {}", panic_text(panic.as_ref()))),
    }
}

fn print_heading() {
    println!(
        "{:20} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8} {:>12} {:>9} {:>8} {:>8}",
        "pattern",
        "build ms",
        "bytes",
        "states",
        "fill p50",
        "p99",
        "ref p50",
        "next p50",
        "load µs",
        "outlines ms",
        "bytes",
        "× build",
        "× bytes"
    );
}

fn print_line(name: &str, ours: &Result<Ours, String>, theirs: Option<&Result<Theirs, String>>) {
    let mut notes = String::new();
    let ours_text = match ours {
        Ok(ours) => format!(
            "{:>9} {:>9} {:>7} {:>8} {:>8} {:>8} {:>8} {:>8}",
            number(ours.build_s * 1e3),
            size(ours.bytes as f64),
            ours.states,
            number(ours.fill.p50),
            number(ours.fill.p99),
            number(ours.borrow.p50),
            number(ours.next.p50),
            number(ours.load_us)
        ),
        Err(message) => {
            notes = format!("  {}", message.lines().next().unwrap_or_default());
            format!("{:>72}", "–")
        }
    };
    let theirs_text = match theirs {
        Some(Ok(theirs)) => format!("{:>12} {:>9}", number(theirs.build_s * 1e3), size(theirs.bytes as f64)),
        Some(Err(message)) => {
            notes = format!("{notes}  outlines-core: {}", message.lines().next().unwrap_or_default());
            format!("{:>12} {:>9}", "–", "–")
        }
        None => format!("{:>12} {:>9}", "", ""),
    };
    let ratios = match (ours, theirs) {
        (Ok(ours), Some(Ok(theirs))) => {
            let bytes = theirs.bytes as f64 / ours.bytes as f64;
            format!("{:>8} {:>8}", number(theirs.build_s / ours.build_s), number(bytes))
        }
        _ => String::new(),
    };
    println!("{name:20} {ours_text} {theirs_text} {ratios}{notes}");
}

fn to_json(ours: &Result<Ours, String>, theirs: Option<&Result<Theirs, String>>) -> Value {
    let mut value = json!({
        "ours_build_s": null, "outlines_build_s": null, "ours_bytes": null, "outlines_bytes": null,
        "mask_us_p50": null,
    });
    match ours {
        Ok(ours) => {
            // A build of a few microseconds would be lost in three decimals.
            value["ours_build_s"] = json!(ours.build_s);
            value["ours_bytes"] = json!(ours.bytes);
            value["ours_states"] = json!(ours.states);
            value["mask_us_p50"] = json!(rounded(ours.fill.p50));
            value["mask_us_p99"] = json!(rounded(ours.fill.p99));
            value["mask_by_reference_us_p50"] = json!(rounded(ours.borrow.p50));
            value["next_state_us_p50"] = json!(rounded(ours.next.p50));
            value["load_us"] = json!(rounded(ours.load_us));
        }
        Err(message) => value["ours_problem"] = json!(message),
    }
    match theirs {
        Some(Ok(theirs)) => {
            value["outlines_build_s"] = json!(theirs.build_s);
            value["outlines_bytes"] = json!(theirs.bytes);
        }
        Some(Err(message)) => value["outlines_problem"] = json!(message),
        None => {}
    }
    value
}
