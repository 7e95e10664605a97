//! `mwbench tails`: cases that are known to make engines slow, each a constraint with texts that stress it.
//!
//! They come from bug reports about engines of this kind: long bounds that are expanded into states, large enumerations
//! and objects, many tools, deep nesting, text with characters of three bytes.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mwbench_abi::Kind;
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::corpus::{Case, Instance};
use crate::engines::{self, KeyOrder, OURS};
use crate::machine;
use crate::maskbench::Common;
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
    /// Run only cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Stop an engine that needs longer for a case, and count the case as refused
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout_s: u64,
    /// Run only the case of this name with the one engine given, and print its numbers as JSON
    #[arg(long, value_name = "NAME", hide = true)]
    alone: Option<String>,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    if let Some(name) = &arguments.alone {
        println!("{}", run_alone(arguments, name)?);
        return Ok(());
    }
    let names = &arguments.common.engines;
    let ours = names.iter().position(|name| name == OURS).unwrap_or(0);
    let mut by_engine: Vec<Map<String, Value>> = names.iter().map(|_| Map::new()).collect();
    print_heading();
    for draft in drafts().iter().filter(|draft| wanted(arguments, draft)) {
        for (place, engine) in names.iter().enumerate() {
            let figures = run_in_child(arguments, engine, draft.name)?;
            print_line(draft.name, engine, &figures);
            by_engine[place].insert(draft.name.to_owned(), figures);
        }
        // Written after each case, because a later one may take long.
        output::write_json(arguments.common.json.as_deref(), &report(names, &by_engine, ours))?;
    }
    Ok(())
}

fn wanted(arguments: &Arguments, draft: &Draft) -> bool {
    arguments.only.as_ref().is_none_or(|text| draft.name.contains(text.as_str()))
}

fn report(names: &[String], by_engine: &[Map<String, Value>], ours: usize) -> Value {
    let engines: Map<String, Value> =
        names.iter().cloned().zip(by_engine.iter().map(|cases| json!({"cases": cases}))).collect();
    json!({"cases": by_engine[ours], "engines": engines, "setting": {"machine": machine::describe()}})
}

/// Runs this program again for one case and one engine. Some engines expand a long bound for hours, and a call cannot
/// be interrupted inside a process.
fn run_in_child(arguments: &Arguments, engine: &str, case: &str) -> Result<Value, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let common = &arguments.common;
    let mut command = Command::new(program);
    command.args(["tails", "--alone", case, "--engines", engine]);
    command.arg("--tokenizer").arg(&common.tokenizer).arg("--peers").arg(&common.peers);
    command.arg("--timeout-s").arg(arguments.timeout_s.to_string());
    if common.rows {
        command.arg("--rows");
    }
    if common.shared_machine {
        command.arg("--shared-machine");
    }
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("cannot start this program again: {error}"))?;
    // The limit does not include the time for loading the tokenizer.
    let deadline = Instant::now() + Duration::from_secs(arguments.timeout_s + 30);
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(json!({"problem": format!("refused: stopped after {} s", arguments.timeout_s)}));
            }
            Err(error) => return Err(format!("cannot wait for {engine}: {error}")),
        }
    }
    let output = child.wait_with_output().map_err(|error| format!("cannot read from {engine}: {error}"))?;
    match serde_json::from_slice(&output.stdout) {
        Ok(figures) if output.status.success() => Ok(figures),
        _ if output.status.code() == Some(2) => {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
        _ => Ok(json!({"problem": format!("refused: died ({})", output.status)})),
    }
}

fn run_alone(arguments: &Arguments, name: &str) -> Result<Value, String> {
    let tokenizer = Tokenizer::load(&arguments.common.tokenizer)?;
    let vocabulary = tokenizer.vocabulary();
    let opened =
        engines::open(&arguments.common.engines, &arguments.common.peers, &vocabulary, KeyOrder::default())?;
    let draft = drafts().into_iter().find(|draft| draft.name == name);
    let case = draft.ok_or_else(|| format!("there is no case {name:?}"))?.into_case(&tokenizer)?;
    let clock = Clock::new(arguments.common.shared_machine)?;
    let timeout = Duration::from_secs(arguments.timeout_s);
    let rows = arguments.common.rows;
    let options = Options {
        clock: &clock,
        end: vocabulary.end,
        timeout,
        warm: false,
        shared: false,
        rows,
        prepare: None,
        watch: None,
    };
    let mut mask = vec![0; vocabulary.mask_words()];
    let opened = opened.first().ok_or("no engine is given")?;
    Ok(to_json(&replay(opened.engine.as_ref(), &case, &options, &mut mask)))
}

/// A case before its texts are tokenized. All texts are valid.
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
        let instance =
            |text: &String| Ok(Instance { valid: true, text: text.clone(), tokens: tokenizer.encode(text)? });
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
        very_large_object(),
        rule_chain(),
        unanchored_patterns(),
        look_aheads(),
        many_required(),
        nested_counts(),
        counts_and_counts(),
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

fn very_large_object() -> Draft {
    let name = |index: usize| format!("property_{index:05}");
    let properties: Map<String, Value> =
        (0..10_000).map(|index| (name(index), json!({"type": "integer"}))).collect();
    let value: Map<String, Value> =
        (0..10_000).step_by(97).map(|index| (name(index), json!(index))).collect();
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    Draft::schema("object_10000", &schema, vec![dumps(&Value::Object(value))])
}

/// Each rule may call the next one or begin with its own word.
fn rule_chain() -> Draft {
    let mut source = String::from("root ::= r0\n");
    for index in 0..20_000 {
        source += &format!("r{index} ::= \"w{index};\" r{0} | r{0}\n", index + 1);
    }
    source += "r20000 ::= \"end\"\n";
    let words: String = (0..20_000).step_by(777).map(|index| format!("w{index};")).collect();
    Draft { name: "rule_chain_20000", kind: Kind::Gbnf, source, texts: vec![words + "end"] }
}

/// A key may match any of the patterns, so there are 4,096 kinds of keys. Refusing this is fine, if it is fast.
fn unanchored_patterns() -> Draft {
    let patterns: Map<String, Value> = (0..12)
        .map(|index| (WORDS[index].to_owned(), json!({"type": "string", "minLength": index})))
        .collect();
    let schema = json!({"type": "object", "patternProperties": patterns});
    Draft::schema("patterns_12", &schema, vec![dumps(&json!({"the river": english(20)}))])
}

fn look_aheads() -> Draft {
    let looks: String = ('a'..='j').map(|letter| format!("(?=.*{letter})")).collect();
    let text = english(20) + " abcdefghij";
    Draft { name: "look_aheads_10", kind: Kind::Regex, source: looks + ".*", texts: vec![text] }
}

fn many_required() -> Draft {
    let names: Vec<String> = (0..100_000).map(|index| format!("name_{index:05}")).collect();
    // An object would have equally many members, which no engine reads in reasonable time. Other values are not
    // restricted.
    Draft::schema("required_100000", &json!({"required": names}), vec![dumps(&json!([english(20), 7, null]))])
}

fn nested_counts() -> Draft {
    let text = "aaaaab".repeat(300);
    let source = "(a{0,1000000}b){0,1000000}".into();
    Draft { name: "counts_nested", kind: Kind::Regex, source, texts: vec![text] }
}

/// Two bounds that both apply have a table as large as their product. Refusing this is fine, if it is fast.
fn counts_and_counts() -> Draft {
    let source = "(?=a{0,1000000}b)[ab]{0,1000000}".into();
    Draft { name: "counts_both", kind: Kind::Regex, source, texts: vec!["aaaaaabab".into()] }
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

pub fn english(words: usize) -> String {
    let mut random = Random::new(words as u64);
    let chosen: Vec<&str> = (0..words).map(|_| WORDS[random.below(WORDS.len())]).collect();
    chosen.join(" ")
}

/// Returns a random word.
pub fn word(random: &mut Random) -> &'static str {
    WORDS[random.below(WORDS.len())]
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

fn print_line(case: &str, engine: &str, figures: &Value) {
    let show = |pointer: &str, show: fn(f64) -> String| {
        figures.pointer(pointer).and_then(Value::as_f64).map_or_else(|| "–".into(), show)
    };
    let problem = figures["problem"].as_str().and_then(|text| text.lines().next()).unwrap_or_default();
    println!(
        "{case:20} {engine:12} {:>12} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10}  {problem}",
        show("/ttfm_us", number),
        show("/masks", |count| format!("{count}")),
        show("/mask_us/p50", number),
        show("/mask_us/p99", number),
        show("/mask_us/max", number),
        show("/accept_us/p50", number),
        show("/bytes", size),
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

/// Returns the reason why the case failed, if so. All texts are valid, so a rejected one is an error of the engine.
fn problem(record: &Record) -> Option<String> {
    match &record.outcome {
        Outcome::Refused(message) => Some(format!("refused: {message}")),
        Outcome::Judged { valid_rejected: true, .. } => Some("wrong: a valid text was rejected".into()),
        Outcome::Judged { .. } => None,
    }
}

fn micros(nanos: &[u64]) -> crate::stats::Summary {
    Times(nanos.to_vec()).sorted().summary()
}
