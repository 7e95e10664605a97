//! `mwbench tags`: structural tags, for our engine only, because the peers read other notations of them, or none.
//!
//! The times are those of a new compiler. What a library learns from other constraints of a vocabulary would make the
//! first masks faster.

use std::path::PathBuf;
use std::sync::Arc;

use maskwright::{Compiler, Constraint, TokenId};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::output;
use crate::random::Random;
use crate::stats::{Summary, Times, rounded};
use crate::table::number;
use crate::tokenizer::Tokenizer;

#[derive(clap::Args)]
pub struct Arguments {
    /// The tokenizer.json of the vocabulary
    #[arg(long, value_name = "FILE", default_value = "../target/assets/llama3_1/tokenizer.json")]
    tokenizer: PathBuf,
    /// Number of times that each case is compiled
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Do not count the time that this thread waits for a processor
    #[arg(long)]
    shared_machine: bool,
    /// Write the numbers to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let tokenizer = Tokenizer::load(&arguments.tokenizer)?;
    let theirs = tokenizer.vocabulary();
    let vocabulary = crate::engines::maskwright::Maskwright::vocabulary(&theirs)?;
    let clock = Clock::new(arguments.shared_machine)?;
    let mut report = serde_json::Map::new();
    println!(
        "{:24} {:>12} {:>8} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10}",
        "case", "first mask", "masks", "p50", "p99", "max", "warm p50", "warm p99", "accept p50"
    );
    for case in cases() {
        let figures = measure(&case, &tokenizer, &vocabulary, &clock, arguments.rounds)?;
        println!(
            "{:24} {:>12} {:>8} {:>9} {:>9} {:>9} {:>10} {:>9} {:>10}",
            case.name,
            number(figures.first),
            figures.cold.count,
            number(figures.cold.p50),
            number(figures.cold.p99),
            number(figures.cold.max),
            number(figures.warm.p50),
            number(figures.warm.p99),
            number(figures.accept.p50),
        );
        report.insert(case.name.into(), figures.to_json());
        output::write_json(arguments.json.as_deref(), &Value::Object(report.clone()))?;
    }
    Ok(())
}

struct Case {
    name: &'static str,
    tag: Value,
    texts: Vec<String>,
}

/// Times in microseconds.
struct Figures {
    /// The time from the text of the tag to the first mask, the median of the rounds.
    first: f64,
    cold: Summary,
    warm: Summary,
    accept: Summary,
}

impl Figures {
    fn to_json(&self) -> Value {
        json!({
            "first_mask_us": rounded(self.first),
            "mask_us": self.cold.to_json(),
            "warm_mask_us": self.warm.to_json(),
            "accept_us": self.accept.to_json(),
        })
    }
}

fn measure(
    case: &Case,
    tokenizer: &Tokenizer,
    vocabulary: &Arc<maskwright::Vocabulary>,
    clock: &Clock,
    rounds: usize,
) -> Result<Figures, String> {
    let constraint = Constraint::structural_tag(case.tag.to_string());
    let texts = case.texts.iter().map(|text| tokenizer.encode(text)).collect::<Result<Vec<_>, String>>()?;
    let mut mask = vec![0; vocabulary.size().div_ceil(32)];
    let (mut first, mut cold, mut warm, mut accepts) =
        (Times::default(), Times::default(), Times::default(), Times::default());
    for _ in 0..rounds.max(1) {
        let compiler = Compiler::new(vocabulary.clone());
        let (bound, nanos) = clock.time(|| {
            let bound = compiler.compile(&constraint).map_err(|error| error.to_string())?;
            bound.matcher().fill_mask(&mut mask).map_err(|error| error.to_string())?;
            Ok::<_, String>(bound)
        });
        let bound = bound?;
        first.0.push(nanos);
        for times in [&mut cold, &mut warm] {
            for (text, tokens) in case.texts.iter().zip(&texts) {
                let mut matcher = bound.matcher();
                for &token in tokens {
                    let (filled, nanos) = clock.time(|| matcher.fill_mask(&mut mask));
                    filled.map_err(|error| error.to_string())?;
                    times.0.push(nanos);
                    if mask[token as usize / 32] >> (token % 32) & 1 == 0 {
                        return Err(format!("{}: a token of {text:?} is masked", case.name));
                    }
                    let (accepted, nanos) = clock.time(|| matcher.accept(TokenId(token)));
                    accepted.map_err(|error| format!("{}: {error}", case.name))?;
                    accepts.0.push(nanos);
                }
                if !matcher.is_accepting() {
                    return Err(format!("{}: {text:?} is not complete", case.name));
                }
            }
        }
    }
    Ok(Figures {
        first: first.sorted().quantile(0.5),
        cold: cold.sorted().summary(),
        warm: warm.sorted().summary(),
        accept: accepts.sorted().summary(),
    })
}

fn cases() -> Vec<Case> {
    vec![
        tools("tools_400", "<function="),
        tools("tools_400_hermes", "<tool_call>\n"),
        triggers(),
        reasoning(),
    ]
}

/// Returns a case with four hundred tools behind one trigger, and free text between the calls.
fn tools(name: &'static str, trigger: &str) -> Case {
    let mut random = Random::new(5);
    let (mut tags, mut texts) = (Vec::new(), Vec::new());
    for index in 0..400 {
        let tool = format!("{}_{}_{index}", crate::tails::word(&mut random), crate::tails::word(&mut random));
        let limit = format!("limit_{index}");
        let is_json = trigger.starts_with("<tool");
        let begin = if is_json {
            format!("{trigger}{{\"name\": \"{tool}\", \"arguments\": ")
        } else {
            format!("{trigger}{tool}>")
        };
        let end = if is_json { "}\n</tool_call>" } else { "</function>" };
        let schema = json!({
            "type": "object",
            "properties": {"query": {"type": "string"}, limit.as_str(): {"type": "integer"}},
            "required": ["query"],
            "additionalProperties": false,
        });
        let content = json!({"type": "json_schema", "json_schema": schema});
        tags.push(json!({"type": "tag", "begin": begin, "content": content, "end": end}));
        if index % 16 == 0 {
            let arguments = json!({"query": crate::tails::english(12), limit.as_str(): index});
            let (before, after) = (crate::tails::english(30), crate::tails::english(20));
            let arguments = crate::python_json::dumps(&arguments);
            texts.push(format!("{before}: a <b> is not a call. {begin}{arguments}{end}\n{after}."));
        }
    }
    let tag = json!({"type": "triggered_tags", "triggers": [trigger.trim_end()], "tags": tags});
    Case { name, tag: json!({"type": "structural_tag", "format": tag}), texts }
}

/// Returns a case with free text in which twenty markers could begin.
fn triggers() -> Case {
    let mut random = Random::new(6);
    let names: Vec<String> =
        (0..20).map(|index| format!("<{}-{index:02}", crate::tails::word(&mut random))).collect();
    let tag = |name: &String| json!({"type": "tag", "begin": format!("{name}>"), "content": {"type": "any_text"}, "end": "</end>"});
    let tags: Vec<Value> = names.iter().map(tag).collect();
    let text = |index: usize| {
        let (a, b, c) =
            (crate::tails::english(120 + index), crate::tails::english(40), crate::tails::english(60));
        format!("{a}, if x < y and y <river> {b}{}>{b}</end>{c}", names[index % 20])
    };
    Case {
        name: "triggers_20",
        tag: json!({"type": "triggered_tags", "triggers": names, "tags": tags}),
        texts: (0..25).map(text).collect(),
    }
}

/// Returns a case with reasoning, and then an answer that is JSON.
fn reasoning() -> Case {
    let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"], "additionalProperties": false});
    let tag = json!({"type": "sequence", "elements": [
        {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
        {"type": "json_schema", "json_schema": schema},
    ]});
    let text = |index: usize| {
        let answer = crate::python_json::dumps(&json!({"answer": crate::tails::english(20)}));
        format!("<think>{}</think>{answer}", crate::tails::english(150 + index))
    };
    Case { name: "reasoning", tag, texts: (0..10).map(text).collect() }
}
