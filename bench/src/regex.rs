//! `mwbench regex`: ten patterns that were proposed to measure outlines-core, ours against its `Index`.
//!
//! An `Index` is built ahead of time: for every state of the automaton, every token that leads on. Ours compiles at
//! once and finds masks while it runs, so beside build time and memory the table shows what a mask then costs, over
//! random walks under the mask. The last four patterns are schemas: outlines-core turns them into a regex first
//! (that is part of its build time), ours takes them as they are.

use mwbench_abi::{Kind, Source, Vocabulary};
use outlines_core::json_schema;
use outlines_core::prelude::{Index, Vocabulary as OutlinesVocabulary};
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::engines::{self, Compiled, Engine, KeyOrder, OURS};
use crate::machine;
use crate::maskbench::Common;
use crate::output;
use crate::random::Random;
use crate::replay::panic_text;
use crate::stats::{Summary, Times, rounded};
use crate::table::{number, size};
use crate::tokenizer::Tokenizer;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    /// Run only patterns whose name holds this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Do not build the index of outlines-core, which takes minutes and gigabytes for some patterns
    #[arg(long)]
    without_outlines: bool,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let tokenizer = Tokenizer::load(&arguments.common.tokenizer)?;
    let vocabulary = tokenizer.vocabulary();
    // By default ours alone: the other engines of the list are native, but build no index.
    let names: Vec<String> = arguments
        .common
        .engines
        .iter()
        .filter(|name| *name == OURS || arguments.without_outlines)
        .cloned()
        .collect();
    let opened = engines::open(&names, &arguments.common.peers, &vocabulary, KeyOrder::default())?;
    let outlines = if arguments.without_outlines { None } else { Some(outlines_vocabulary(&vocabulary)?) };
    let clock = Clock::new(arguments.common.shared_machine)?;
    let mut patterns = Map::new();
    print_heading();
    for pattern in patterns_of_interest() {
        if arguments.only.as_ref().is_some_and(|text| !pattern.name.contains(text.as_str())) {
            continue;
        }
        let theirs = outlines.as_ref().map(|vocabulary| build_index(&pattern, vocabulary, &clock));
        for opened in &opened {
            let ours = measure(opened.engine.as_ref(), &pattern, &vocabulary, &clock);
            print_line(pattern.name, opened.engine.name(), &ours, theirs.as_ref());
            if opened.engine.name() == OURS {
                patterns.insert(pattern.name.to_owned(), to_json(&ours, theirs.as_ref()));
            }
        }
        if opened.is_empty() {
            let absent = Err("not in this run".to_owned());
            print_line(pattern.name, OURS, &absent, theirs.as_ref());
            patterns.insert(pattern.name.to_owned(), to_json(&absent, theirs.as_ref()));
        }
        // Written after each pattern, because a later one may take minutes.
        let report = json!({"patterns": patterns, "setting": {"machine": machine::describe()}});
        output::write_json(arguments.common.json.as_deref(), &report)?;
    }
    Ok(())
}

struct Pattern {
    name: &'static str,
    kind: Kind,
    text: String,
}

/// What our side of a row shows.
struct Lazy {
    build_s: f64,
    bytes: i64,
    mask: Summary,
    walks_finished: usize,
}

/// What the other side shows.
struct Ahead {
    build_s: f64,
    bytes: i64,
}

fn measure(
    engine: &dyn Engine,
    pattern: &Pattern,
    vocabulary: &Vocabulary<'_>,
    clock: &Clock,
) -> Result<Lazy, String> {
    engine.forget();
    let before = engine.live_bytes();
    let source = Source { kind: pattern.kind, text: &pattern.text };
    let (compiled, build) = clock.time(|| engine.compile(source));
    let compiled = compiled?;
    let mut times = Times(Vec::with_capacity(MASKS + WALK));
    let walks_finished = walk(engine, compiled.as_ref(), vocabulary, clock, &mut times)?;
    let bytes = engine.live_bytes() - before - (times.0.capacity() * size_of::<u64>()) as i64;
    Ok(Lazy { build_s: build as f64 / 1e9, bytes, mask: times.sorted().summary(), walks_finished })
}

/// Masks to collect, and tokens per walk.
const MASKS: usize = 5000;
const WALK: usize = 400;

/// Random walks under the mask until enough masks are timed; returns how many walks came to an end of the text.
fn walk(
    engine: &dyn Engine,
    compiled: &dyn Compiled,
    vocabulary: &Vocabulary<'_>,
    clock: &Clock,
    times: &mut Times,
) -> Result<usize, String> {
    let mut random = Random::new(11);
    let mut mask = vec![0; vocabulary.mask_words()];
    let mut finished = 0;
    while times.0.len() < MASKS {
        let mut session = compiled.start()?;
        for _ in 0..WALK {
            let (filled, nanos) = clock.time(|| session.fill(&mut mask));
            times.0.push(nanos);
            if !filled {
                return Err("gave up while computing a mask".into());
            }
            for &token in vocabulary.end {
                mask[token as usize / 32] &= !(1 << (token % 32));
            }
            let Some(token) = random_token(&mask, &mut random) else {
                if !session.accepting() {
                    return Err(format!(
                        "{} is stuck: nothing is allowed and the text is incomplete",
                        engine.name()
                    ));
                }
                finished += 1;
                break;
            };
            if !session.accept(token) {
                return Err(format!("{} refuses token {token}, which its mask allows", engine.name()));
            }
        }
    }
    Ok(finished)
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

fn build_index(pattern: &Pattern, vocabulary: &OutlinesVocabulary, clock: &Clock) -> Result<Ahead, String> {
    let build = || {
        let before = mwbench_abi::memory::live_bytes();
        let (index, nanos) = clock.time(|| {
            let regex = match pattern.kind {
                Kind::Regex => pattern.text.clone(),
                Kind::JsonSchema => json_schema::regex_from_str(&pattern.text, None, None)?,
            };
            Index::new(&regex, vocabulary)
        });
        let index = index.map_err(|error| error.to_string())?;
        let build_s = nanos as f64 / 1e9;
        let bytes = mwbench_abi::memory::live_bytes() - before;
        drop(index);
        Ok(Ahead { build_s, bytes })
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(build)) {
        Ok(result) => result,
        Err(panic) => Err(format!("panicked: {}", panic_text(panic.as_ref()))),
    }
}

fn print_heading() {
    println!(
        "{:20} {:11} {:>11} {:>10} {:>9} {:>9} {:>9} {:>14} {:>10} {:>9}",
        "pattern",
        "engine",
        "build ms",
        "bytes",
        "mask p50",
        "mask p99",
        "finished",
        "outlines ms",
        "bytes",
        "× build"
    );
}

fn print_line(name: &str, engine: &str, ours: &Result<Lazy, String>, theirs: Option<&Result<Ahead, String>>) {
    let mut notes = String::new();
    let ours_text = match ours {
        Ok(ours) => format!(
            "{:>11} {:>10} {:>9} {:>9} {:>9}",
            number(ours.build_s * 1e3),
            size(ours.bytes as f64),
            number(ours.mask.p50),
            number(ours.mask.p99),
            ours.walks_finished
        ),
        Err(message) => {
            notes = format!("  {engine}: {}", message.lines().next().unwrap_or_default());
            format!("{:>11} {:>10} {:>9} {:>9} {:>9}", "–", "–", "–", "–", "–")
        }
    };
    let theirs_text = match theirs {
        Some(Ok(theirs)) => format!("{:>14} {:>10}", number(theirs.build_s * 1e3), size(theirs.bytes as f64)),
        Some(Err(message)) => {
            notes = format!("{notes}  outlines-core: {}", message.lines().next().unwrap_or_default());
            format!("{:>14} {:>10}", "–", "–")
        }
        None => format!("{:>14} {:>10}", "", ""),
    };
    let ratio = match (ours, theirs) {
        (Ok(ours), Some(Ok(theirs))) => number(theirs.build_s / ours.build_s),
        _ => String::new(),
    };
    println!("{name:20} {engine:11} {ours_text} {theirs_text} {ratio:>9}{notes}");
}

fn to_json(ours: &Result<Lazy, String>, theirs: Option<&Result<Ahead, String>>) -> Value {
    let mut value = json!({
        "ours_build_s": null, "outlines_build_s": null, "ours_bytes": null, "outlines_bytes": null,
        "mask_us_p50": null,
    });
    match ours {
        Ok(ours) => {
            // A build of a few microseconds would vanish in three decimals.
            value["ours_build_s"] = json!(ours.build_s);
            value["ours_bytes"] = json!(ours.bytes);
            value["mask_us_p50"] = json!(rounded(ours.mask.p50));
            value["mask_us_p99"] = json!(rounded(ours.mask.p99));
            value["mask_us_max"] = json!(rounded(ours.mask.max));
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

const EMAIL: &str = concat!(
    r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*",
    r"@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
);
const SIMPLE_PHONE: &str = r"\+?[1-9][0-9]{7,14}";
const COMPLEX_PHONE: &str = r"\+?\d{1,4}?[-.\s]?\(?\d{1,3}?\)?[-.\s]?\d{1,4}[-.\s]?\d{1,4}[-.\s]?\d{1,9}";
const PERMISSIVE_ANY: &str = r".{255}$";
const PERMISSIVE_WORDS: &str = r"[a-zA-Z]{100}";
const HTTPS: &str = r"(https?:\/\/)?([\da-z\.-]+)\.([a-z\.]{2,6})([\/\w \.-]*)*\/?";
const SCHEMA_PHONE: &str = r"\+?\d{1,4}?[-. ]?\(\d{1,3}\)?[-. ]?\d{1,4}[-. ]?\d{1,4}[-. ]?\d{1,9}";

fn patterns_of_interest() -> Vec<Pattern> {
    let regex = |name, text: &str| Pattern { name, kind: Kind::Regex, text: text.to_owned() };
    let schema = |name, schema: Value| Pattern { name, kind: Kind::JsonSchema, text: schema.to_string() };
    vec![
        regex("email", EMAIL),
        regex("simple_phone", SIMPLE_PHONE),
        regex("complex_phone", COMPLEX_PHONE),
        regex("permissive_any", PERMISSIVE_ANY),
        regex("permissive_words", PERMISSIVE_WORDS),
        regex("https", HTTPS),
        schema("schema_simple", person(&[])),
        schema(
            "schema_simple_phone",
            person(&[("complexe_phone", json!({"type": "string", "pattern": SCHEMA_PHONE}))]),
        ),
        schema("schema_complexe", recording()),
        schema("schema_curriculum", curriculum()),
    ]
}

fn person(more: &[(&str, Value)]) -> Value {
    let mut members = vec![("name", json!({"type": "string"})), ("age", json!({"type": "integer"}))];
    members.extend_from_slice(more);
    object(&members)
}

fn recording() -> Value {
    let artist = json!({"$ref": "#/$defs/artist"});
    let mut schema = object(&[
        ("id", json!({"type": "number"})),
        (
            "work",
            object(&[
                ("id", json!({"type": "number"})),
                ("name", json!({"type": "string"})),
                ("composer", artist.clone()),
            ]),
        ),
        ("recording_artists", json!({"type": "array", "items": artist})),
    ]);
    schema["$defs"] = json!({"artist": object(&[
        ("id", json!({"type": "number"})),
        ("name", json!({"type": "string"})),
        ("functions", json!({"type": "array", "items": {"type": "string"}})),
    ])});
    schema
}

fn curriculum() -> Value {
    let entry = object(&[
        ("date", json!({"type": "string", "format": "date"})),
        ("position", json!({"type": "string"})),
    ]);
    object(&[
        ("name", json!({"type": "string"})),
        ("surname", json!({"type": "string"})),
        ("email", json!({"type": "string", "pattern": EMAIL})),
        ("phone", json!({"type": "string", "pattern": COMPLEX_PHONE})),
        ("website", json!({"type": "string", "pattern": HTTPS})),
        ("resume", json!({"type": "array", "items": entry})),
    ])
}

/// An object of exactly these members, all required.
fn object(members: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}
