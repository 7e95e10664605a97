//! `mwbench tails`: the cases that are known to make engines slow, each a constraint with texts that dwell in it.
//!
//! They come from bug reports against engines of this kind: long bounds that are unrolled into states, large
//! enumerations and objects, many tools, deep nesting, text in which a character is three bytes.

use std::time::Duration;

use mwbench_abi::Kind;
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::corpus::{Case, Instance};
use crate::engines;
use crate::machine;
use crate::maskbench::{Common, base};
use crate::output;
use crate::python_json::dumps;
use crate::random::Random;
use crate::replay::{Options, Outcome, Record, replay};
use crate::stats::{Times, rounded};
use crate::table::{number, size};
use crate::tokenizer::Tokenizer;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    common: Common,
    /// Run only cases whose name holds this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// A case that takes an engine longer counts as refused (noticed when the engine returns)
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout_s: u64,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let tokenizer = Tokenizer::load(&arguments.common.tokenizer)?;
    let vocabulary = tokenizer.vocabulary();
    let opened = engines::open(&arguments.common.engines, &arguments.common.peers, &vocabulary)?;
    let clock = Clock::new(arguments.common.shared_machine)?;
    let timeout = Duration::from_secs(arguments.timeout_s);
    let options = Options { clock: &clock, end: vocabulary.end, timeout, warm: false, shared: true };
    let mut mask = vec![0; vocabulary.mask_words()];
    let mut by_engine: Vec<Map<String, Value>> = opened.iter().map(|_| Map::new()).collect();
    print_heading();
    for (turn, draft) in drafts().into_iter().filter(|draft| wanted(arguments, draft)).enumerate() {
        let case = draft.into_case(&tokenizer)?;
        for place in 0..opened.len() {
            let place = (turn + place) % opened.len();
            let engine = opened[place].engine.as_ref();
            let record = replay(engine, &case, &options, &mut mask);
            print_line(&case, engine.name(), &record);
            by_engine[place].insert(case.name.clone(), to_json(&record));
        }
    }
    let cases = by_engine.get(base(&opened)).cloned().unwrap_or_default();
    let engines: Map<String, Value> = opened
        .iter()
        .zip(by_engine)
        .map(|(opened, cases)| (opened.engine.name().to_owned(), json!({"cases": cases})))
        .collect();
    let report = json!({"cases": cases, "engines": engines, "setting": {"machine": machine::describe()}});
    output::write_json(arguments.common.json.as_deref(), &report)
}

fn wanted(arguments: &Arguments, draft: &Draft) -> bool {
    arguments.only.as_ref().is_none_or(|text| draft.name.contains(text.as_str()))
}

/// A case before its texts are cut into tokens. All texts are valid.
struct Draft {
    name: &'static str,
    kind: Kind,
    source: String,
    texts: Vec<String>,
}

impl Draft {
    fn schema(name: &'static str, schema: &Value, texts: Vec<String>) -> Draft {
        Draft { name, kind: Kind::JsonSchema, source: schema.to_string(), texts }
    }

    fn into_case(self, tokenizer: &Tokenizer) -> Result<Case, String> {
        let instance = |text: &String| Ok(Instance { valid: true, tokens: tokenizer.encode(text)? });
        let instances = self.texts.iter().map(instance).collect::<Result<_, String>>()?;
        Ok(Case { name: self.name.to_owned(), kind: self.kind, source: self.source, instances })
    }
}

fn drafts() -> Vec<Draft> {
    vec![
        max_length(),
        min_length(),
        regex_counted(),
        pattern_counted(),
        max_items(),
        large_enum(),
        large_object(),
        many_tools(),
        deep_recursion(),
        wide_characters(),
    ]
}

fn max_length() -> Draft {
    let schema = json!({"type": "string", "maxLength": 100_000});
    Draft::schema("max_length_100000", &schema, vec![dumps(&json!(english(4000)))])
}

fn min_length() -> Draft {
    let schema = json!({"type": "array", "items": {"type": "string", "minLength": 200}});
    let items: Vec<String> = (1..30).map(|index| english(50 + index)).collect();
    Draft::schema("min_length_200", &schema, vec![dumps(&json!(items))])
}

fn regex_counted() -> Draft {
    Draft {
        name: "regex_0_65535",
        kind: Kind::Regex,
        source: ".{0,65535}".into(),
        texts: vec![english(3000)],
    }
}

fn pattern_counted() -> Draft {
    let schema = json!({"type": "string", "pattern": "^[a-z ,.]{0,65535}$"});
    Draft::schema("pattern_0_65535", &schema, vec![dumps(&json!(english(3000)))])
}

fn max_items() -> Draft {
    let schema = json!({"type": "array", "items": {"type": "integer"}, "maxItems": 10_000});
    let items: Vec<usize> = (0..3000).map(|index| index * 7919 % 100_000).collect();
    Draft::schema("max_items_10000", &schema, vec![dumps(&json!(items))])
}

fn large_enum() -> Draft {
    let mut random = Random::new(3);
    let values: Vec<String> = (0..10_000).map(|index| format!("{}-{index:05}", slug(&mut random))).collect();
    let texts = (0..50).map(|_| dumps(&json!(values[random.below(values.len())]))).collect();
    Draft::schema("enum_10000", &json!({"enum": values}), texts)
}

fn large_object() -> Draft {
    let mut random = Random::new(4);
    let (mut properties, mut required, mut value) = (Map::new(), Vec::new(), Map::new());
    for index in 0..587 {
        let name = format!("{}_{index}", slug(&mut random).replace('-', "_"));
        let (schema, example) = match index % 3 {
            0 => (json!({"type": "string"}), json!(english(4))),
            1 => (json!({"type": "integer"}), json!(index * 31)),
            _ => (json!({"type": "array", "items": {"type": "boolean"}}), json!([true, false])),
        };
        properties.insert(name.clone(), schema);
        if index % 4 == 0 {
            required.push(name.clone());
        }
        if index % 4 == 0 || random.below(2) == 0 {
            value.insert(name, example);
        }
    }
    let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    Draft::schema("object_587", &schema, vec![dumps(&Value::Object(value))])
}

fn many_tools() -> Draft {
    let mut random = Random::new(5);
    let (mut tools, mut texts) = (Vec::new(), Vec::new());
    for index in 0..400 {
        let name = format!("{}_{index}", slug(&mut random).replace('-', "_"));
        tools.push(json!({
            "type": "object",
            "properties": {
                "name": {"const": name},
                "arguments": {
                    "type": "object",
                    "properties": {"query": {"type": "string"}, format!("limit_{index}"): {"type": "integer"}},
                    "required": ["query"],
                    "additionalProperties": false,
                },
            },
            "required": ["name", "arguments"],
            "additionalProperties": false,
        }));
        if index % 16 == 0 {
            let arguments = json!({"query": english(12), format!("limit_{index}"): index});
            texts.push(dumps(&json!({"name": name, "arguments": arguments})));
        }
    }
    Draft::schema("tools_400", &json!({"anyOf": tools}), texts)
}

fn deep_recursion() -> Draft {
    let schema = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    });
    Draft::schema("deep_recursion_200", &schema, vec!["[".repeat(200) + &"]".repeat(200)])
}

fn wide_characters() -> Draft {
    let schema = json!({
        "type": "object",
        "properties": {"title": {"type": "string"}, "body": {"type": "string", "maxLength": 5000}},
        "required": ["title", "body"],
        "additionalProperties": false,
    });
    let value = json!({"title": chinese(12), "body": chinese(600)});
    Draft::schema("cjk_text", &schema, vec![dumps(&value)])
}

const WORDS: [&str; 24] = [
    "the",
    "river",
    "carries",
    "small",
    "boats",
    "past",
    "quiet",
    "houses",
    "where",
    "people",
    "read",
    "letters",
    "about",
    "weather",
    "and",
    "distant",
    "mountains",
    "while",
    "children",
    "count",
    "stars",
    "above",
    "their",
    "roofs",
];

fn english(words: usize) -> String {
    let mut random = Random::new(words as u64);
    let chosen: Vec<&str> = (0..words).map(|_| WORDS[random.below(WORDS.len())]).collect();
    chosen.join(" ")
}

fn slug(random: &mut Random) -> String {
    let words: Vec<&str> = (0..3).map(|_| WORDS[random.below(WORDS.len())]).collect();
    words.join("-")
}

const PHRASES: [&str; 12] = [
    "河流",
    "带着",
    "小船",
    "经过",
    "安静的",
    "房子,",
    "人们",
    "在那里",
    "读信。",
    "山が見える",
    "春の雨",
    "별을 센다 ",
];

fn chinese(phrases: usize) -> String {
    let mut random = Random::new(phrases as u64);
    (0..phrases).map(|_| PHRASES[random.below(PHRASES.len())]).collect()
}

fn print_heading() {
    println!(
        "{:20} {:12} {:>12} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "case", "engine", "first mask", "masks", "mask p50", "mask p99", "mask max", "accept p50", "bytes"
    );
}

fn print_line(case: &Case, engine: &str, record: &Record) {
    let masks = micros(&record.masks);
    let first = record.first_mask.map_or_else(|| "–".into(), |nanos| number(nanos as f64 / 1e3));
    println!(
        "{:20} {:12} {:>12} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}  {}",
        case.name,
        engine,
        first,
        masks.count,
        number(masks.p50),
        number(masks.p99),
        number(masks.max),
        number(micros(&record.accepts).p50),
        record.bytes.map_or_else(|| "–".into(), |bytes| size(bytes as f64)),
        problem(record).unwrap_or_default().lines().next().unwrap_or_default(),
    );
}

fn to_json(record: &Record) -> Value {
    let (masks, accepts) = (micros(&record.masks), micros(&record.accepts));
    let mut value = json!({
        "ttfm_us": record.first_mask.map(|nanos| rounded(nanos as f64 / 1e3)),
        "masks": masks.count,
        "mask_us": {"p50": rounded(masks.p50), "p99": rounded(masks.p99), "max": rounded(masks.max)},
        "accept_us": {"p50": rounded(accepts.p50), "p99": rounded(accepts.p99), "max": rounded(accepts.max)},
        "bytes": record.bytes,
    });
    if let Some(problem) = problem(record) {
        value["problem"] = json!(problem);
    }
    value
}

/// Why the case did not go through, if so. All texts are valid, so a rejected one is an error of the engine.
fn problem(record: &Record) -> Option<String> {
    match &record.outcome {
        Outcome::Refused(message) => Some(format!("refused: {message}")),
        Outcome::Judged { valid_rejected: true, .. } => Some("wrong: a valid text was rejected".into()),
        Outcome::Judged { .. } => None,
    }
}

fn micros(nanos: &[u32]) -> crate::stats::Summary {
    Times(nanos.iter().map(|&nanos| u64::from(nanos)).collect()).sorted().summary()
}
