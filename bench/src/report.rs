//! Converts records to numbers.
//!
//! An engine that refuses the hard schemas looks fast on the others, so every number exists for several *populations*:
//!
//! * **all**: each engine on the schemas that it compiled (the coverage is shown, too);
//! * **covered**: the schemas that our engine compiled, regardless of others;
//! * **common**: the schemas that all engines of the run compiled. Ratios are mainly computed for these, because all
//!   engines do the same work.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::engines::{Opened, base};
use crate::figures::{Figures, is_right, sorted};
use crate::plot::Curve;
use crate::replay::{Outcome, Record};
use crate::stats::{Summary, rounded};
use crate::table::{Column, number, print_population};

/// The circumstances of the measurements.
pub struct Setting {
    pub data: String,
    pub tokenizer: String,
    pub vocabulary: usize,
    pub seed: u64,
    pub timeout_s: u64,
    pub clock_overhead_ns: u64,
    pub shared_machine: bool,
    pub rows: bool,
    pub machine: String,
}

pub struct Report {
    setting: Setting,
    names: Vec<String>,
    engines: Vec<EngineRecords>,
    /// The index of our engine.
    base: usize,
}

struct EngineRecords {
    name: String,
    release: String,
    open_seconds: f64,
    records: Vec<Record>,
}

/// The schemas that a summary is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Population {
    All,
    Covered,
    Common,
}

impl Report {
    pub fn new(setting: Setting, opened: &[Opened], names: Vec<String>, records: Vec<Vec<Record>>) -> Report {
        let base = base(opened);
        let engines = opened.iter().zip(records).map(|(opened, records)| EngineRecords {
            name: opened.engine.name().to_owned(),
            release: opened.engine.release().to_owned(),
            open_seconds: opened.open_seconds,
            records,
        });
        Report { setting, names, engines: engines.collect(), base }
    }

    /// Returns all tables, ready to be printed.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} schemas, {} tokens, {}; an empty measurement takes {} ns\n",
            self.names.len(),
            self.setting.vocabulary,
            self.setting.machine,
            self.setting.clock_overhead_ns
        );
        for (population, title) in [
            (Population::All, "all schemas, each engine on what it compiles".to_owned()),
            (Population::Covered, format!("schemas that {} compiles", self.engines[self.base].name)),
            (Population::Common, "schemas that all engines compile".to_owned()),
        ] {
            let columns: Vec<Column> =
                self.engines.iter().map(|engine| self.column(engine, population)).collect();
            print_population(&mut text, &title, &columns, self.base);
        }
        for engine in &self.engines {
            let figures = self.figures(engine, Population::All);
            let _ = writeln!(
                text,
                "\n{}: valid rejected: {}, of these by key order alone: {}",
                engine.name, figures.valid_rejected, figures.valid_rejected_by_key_order
            );
        }
        text
    }

    /// Returns the results of our engine for each source of schemas.
    pub fn split(&self) -> String {
        let engine = &self.engines[self.base];
        let mut sources: BTreeMap<&str, [usize; 6]> = BTreeMap::new();
        for (name, record) in self.names.iter().zip(&engine.records) {
            let counts = sources.entry(source_of(name)).or_default();
            let invalid_accepted = matches!(record.outcome, Outcome::Judged { invalid_accepted: true, .. });
            let facts = [
                true,
                is_right(&record.outcome),
                record.is_refused(),
                record.rejects_valid(),
                record.by_key_order,
                invalid_accepted,
            ];
            for (count, fact) in counts.iter_mut().zip(facts) {
                *count += usize::from(fact);
            }
        }
        let mut text = format!(
            "\n{} by source\n{:24}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n",
            engine.name, "", "schemas", "right", "refused", "rejected", "(order)", "accepted"
        );
        for (source, counts) in sources {
            let _ = write!(text, "{source:24}");
            for count in counts {
                let _ = write!(text, "{count:>9}");
            }
            text.push('\n');
        }
        text
    }

    /// Returns the reasons why each engine refuses schemas.
    pub fn reasons(&self) -> String {
        let mut text = String::new();
        for engine in &self.engines {
            let counts = count_reasons(&engine.records);
            let _ = writeln!(text, "\n{} refuses, by reason", engine.name);
            for (reason, count) in counts {
                let _ = writeln!(text, "{count:>8}  {reason}");
            }
        }
        text
    }

    pub fn to_json(&self) -> Value {
        let setting = &self.setting;
        json!({
            "engines": self.engines_json(Population::All),
            "covered": {"schemas": self.size(Population::Covered), "engines": self.engines_json(Population::Covered)},
            "common": {"schemas": self.size(Population::Common), "engines": self.engines_json(Population::Common)},
            "ratios": {"covered": self.ratios(Population::Covered), "common": self.ratios(Population::Common)},
            "refusals": self.per_engine(|engine| refusals(&engine.records)),
            "wrong": self.per_engine(|engine| self.wrong(engine)),
            "slowest": self.per_engine(|engine| self.slowest(engine)),
            "setting": {
                "data": setting.data,
                "tokenizer": setting.tokenizer,
                "vocabulary": setting.vocabulary,
                "schemas": self.names.len(),
                "seed": setting.seed,
                "timeout_s": setting.timeout_s,
                "clock_overhead_ns": setting.clock_overhead_ns,
                "shared_machine": setting.shared_machine,
                "rows": setting.rows,
                "machine": setting.machine,
            },
        })
    }

    /// Returns the tail curves for the schemas that all engines compile.
    pub fn curves(&self) -> Vec<Curve> {
        let curve = |engine: &EngineRecords| {
            let chosen = || self.chosen(engine, Population::Common);
            Curve {
                name: format!("{} {}", engine.name, engine.release),
                panels: [
                    sorted(chosen().flat_map(|record| record.masks.iter().copied())),
                    sorted(chosen().flat_map(|record| record.accepts.iter().copied())),
                    sorted(chosen().filter_map(|record| record.first_mask)),
                ],
            }
        };
        self.engines.iter().map(curve).collect()
    }

    pub fn caption(&self) -> String {
        format!(
            "{} real JSON Schemas that all engines compile, {} tokens, cold caches for every schema, {}",
            number(self.size(Population::Common) as f64),
            number(self.setting.vocabulary as f64),
            self.setting.machine
        )
    }

    fn column(&self, engine: &EngineRecords, population: Population) -> Column {
        Column { name: engine.name.clone(), figures: self.figures(engine, population) }
    }

    fn figures(&self, engine: &EngineRecords, population: Population) -> Figures {
        Figures::of(&self.chosen(engine, population).collect::<Vec<_>>())
    }

    fn chosen<'a>(
        &'a self,
        engine: &'a EngineRecords,
        population: Population,
    ) -> impl Iterator<Item = &'a Record> {
        engine
            .records
            .iter()
            .enumerate()
            .filter(move |(index, _)| self.includes(population, *index))
            .map(|(_, r)| r)
    }

    fn includes(&self, population: Population, index: usize) -> bool {
        match population {
            Population::All => true,
            Population::Covered => !self.engines[self.base].records[index].is_refused(),
            Population::Common => self.engines.iter().all(|engine| !engine.records[index].is_refused()),
        }
    }

    fn size(&self, population: Population) -> usize {
        (0..self.names.len()).filter(|&index| self.includes(population, index)).count()
    }

    fn per_engine(&self, part: impl Fn(&EngineRecords) -> Value) -> Value {
        Value::Object(self.engines.iter().map(|engine| (engine.name.clone(), part(engine))).collect())
    }

    fn engines_json(&self, population: Population) -> Value {
        self.per_engine(|engine| engine_json(engine, &self.figures(engine, population)))
    }

    /// Returns the ratios of each peer's times to ours.
    fn ratios(&self, population: Population) -> Value {
        let ours = self.figures(&self.engines[self.base], population);
        let mut ratios = Map::new();
        for (_, engine) in self.engines.iter().enumerate().filter(|(place, _)| *place != self.base) {
            let theirs = self.figures(engine, population);
            ratios.insert(
                engine.name.clone(),
                json!({
                    "mask": ratio_json(theirs.mask, ours.mask),
                    "accept": ratio_json(theirs.accept, ours.accept),
                    "ttfm": ratio_json(theirs.first_mask, ours.first_mask),
                }),
            );
        }
        Value::Object(ratios)
    }

    fn wrong(&self, engine: &EngineRecords) -> Value {
        let names = |test: fn(&Outcome) -> bool| -> Vec<&str> {
            let judged = engine.records.iter().zip(&self.names);
            judged.filter(|(record, _)| test(&record.outcome)).map(|(_, name)| name.as_str()).collect()
        };
        let by_key_order: Vec<&str> = engine
            .records
            .iter()
            .zip(&self.names)
            .filter(|(record, _)| record.by_key_order)
            .map(|(_, name)| name.as_str())
            .collect();
        json!({
            "valid_rejected_by_key_order": by_key_order,
            "valid_rejected": names(|outcome| matches!(outcome, Outcome::Judged { valid_rejected: true, .. })),
            "invalid_accepted": names(|outcome| matches!(outcome, Outcome::Judged { invalid_accepted: true, .. })),
        })
    }

    /// Returns the schemas with the slowest masks and the slowest first masks, for further analysis.
    fn slowest(&self, engine: &EngineRecords) -> Value {
        let top = |key: fn(&Record) -> u64, show: fn(&Record, &str) -> Value| -> Vec<Value> {
            let mut order: Vec<usize> = (0..engine.records.len()).collect();
            order.sort_by_key(|&index| std::cmp::Reverse(key(&engine.records[index])));
            order.iter().take(10).map(|&index| show(&engine.records[index], &self.names[index])).collect()
        };
        json!({
            "mask": top(|record| record.slowest.0, |record, name| json!({
                "schema": name,
                "us": rounded(record.slowest.0 as f64 / 1e3),
                "instance": record.slowest.1,
                "token": record.slowest.2,
            })),
            "ttfm": top(|record| record.first_mask.unwrap_or(0), |record, name| json!({
                "schema": name,
                "us": rounded(record.first_mask.unwrap_or(0) as f64 / 1e3),
            })),
        })
    }
}

fn engine_json(engine: &EngineRecords, figures: &Figures) -> Value {
    let mut value = json!({
        "release": engine.release,
        "open_s": rounded(engine.open_seconds),
        "schemas": figures.schemas,
        "right": figures.right,
        "refused": figures.refused,
        "valid_rejected": figures.valid_rejected,
        "valid_rejected_by_key_order": figures.valid_rejected_by_key_order,
        "invalid_accepted": figures.invalid_accepted,
        "mask_us": figures.mask.to_json(),
        "accept_us": figures.accept.to_json(),
        "step_us": {"avg": rounded(figures.step_avg)},
        "ttfm_us": figures.first_mask.to_json(),
        "compile_us": figures.compile.to_json(),
        "bytes": {"p50": figures.bytes.p50, "p99": figures.bytes.p99, "max": figures.bytes.max},
    });
    if let Some((mask, accept)) = figures.warm {
        value["warm_mask_us"] = mask.to_json();
        value["warm_accept_us"] = accept.to_json();
    }
    value
}

fn ratio_json(theirs: Summary, ours: Summary) -> Value {
    let names = ["avg", "p50", "p90", "p99", "p999", "max"];
    let ratio =
        |(theirs, ours): (f64, f64)| if ours > 0.0 { json!(rounded(theirs / ours)) } else { Value::Null };
    let ratios = theirs.columns().into_iter().zip(ours.columns()).map(ratio);
    Value::Object(names.into_iter().map(str::to_owned).zip(ratios).collect())
}

/// Returns the most frequent reasons for refusals.
fn refusals(records: &[Record]) -> Value {
    let counts = count_reasons(records);
    Value::Object(counts.into_iter().take(25).map(|(reason, count)| (reason, json!(count))).collect())
}

/// Returns the reasons for refusals, the most frequent first; similar messages are counted together.
fn count_reasons(records: &[Record]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for record in records {
        if let Outcome::Refused(message) = &record.outcome {
            *counts.entry(reason(message)).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// Returns the source of a schema: the part of its name before `---`, or before its last number.
fn source_of(name: &str) -> &str {
    match name.split_once("---") {
        Some((source, _)) => source,
        None => name.rsplit_once('_').map_or(name, |(source, _)| source),
    }
}

/// Returns the first line of a message without the parts that depend on the schema: the place, names in backticks,
/// digits.
fn reason(message: &str) -> String {
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim();
    let line = match line.split_once(": ") {
        Some((place, rest)) if place.starts_with('/') || place == "(root)" => rest,
        _ => line,
    };
    let mut reason = String::new();
    let mut quoted = false;
    for character in line.chars().take(160) {
        match character {
            // Names of properties differ; names of keywords are part of the reason.
            '`' => {
                quoted = !quoted && (reason.ends_with("property ") || line.contains("is required"));
                reason.push_str(if quoted { "`…" } else { "`" });
            }
            _ if quoted => {}
            '0'..='9' if reason.ends_with('#') => {}
            '0'..='9' => reason.push('#'),
            _ => reason.push(character),
        }
    }
    reason
}
