//! Rounds, and their counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use maskwright::json_schema::{KeyOrder, Whitespace};
use maskwright_oracle::generate::Rng;
use serde_json::Value;

use crate::document::{Document, change};
use crate::find::{Fault, Find, caught};
use crate::judge::{Bench, Judge, Pair, Unjudged};
use crate::settings::Settings;
use crate::shrink::{Case, shrink};
use crate::walk::{Tried, Walker, plan, vocabulary};
use crate::{notation, sample, satisfy, schema};

/// The kinds of rounds: the name, and the number of seeds per round.
const KINDS: [(&str, u64); 7] =
    [("pairs", 1), ("walks", 1), ("orders", 4), ("masks", 8), ("joints", 4), ("grammars", 8), ("tags", 8)];

/// Returns the names of the kinds.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name)
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The first seed; each round takes the next.
    pub seed: u64,
    /// The number of seeds.
    pub count: Option<u64>,
    /// The time limit.
    pub time: Option<Duration>,
    /// Only run rounds of this kind.
    pub only: Option<String>,
    /// The number of finds after which to stop.
    pub finds: usize,
}

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The number of seeds.
    pub seeds: u64,
    /// The number of schemas that were judged, including unsatisfiable ones.
    pub schemas: u64,
    /// The number of those that are unsatisfiable.
    pub unsatisfiable: u64,
    /// The number of schemas that a validator does not accept.
    pub unjudged: u64,
    /// The number of constraints that the engine refuses, by the beginning of the reason.
    pub refused: BTreeMap<String, u64>,
    /// The numbers of pairs of a schema and a document, of valid ones among them, and of those about which the
    /// validators disagree.
    pub pairs: u64,
    /// See `pairs`.
    pub valid: u64,
    /// See `pairs`.
    pub disputed: u64,
    /// The number of pairs with too many orders of keys to try.
    pub undecided: u64,
    /// The number of documents that were judged in both orders of keys.
    pub orders: u64,
    /// The number of walks under a mask.
    pub walks: u64,
    /// The number of those that finished.
    pub finished: u64,
    /// The number of walks that a limit ended; see [`Walker::limited`].
    pub limited: u64,
    /// The number of masks that were compared with trying every token.
    pub masks: u64,
    /// The slowest round.
    pub slowest: (Duration, u64, &'static str),
}

/// An event of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// The rounds of a seed begin; with the counts so far.
    Seed(u64, &'a Counts),
    /// A round has a fault, which is about to be made smaller.
    Fault(u64, &'static str, &'a Fault),
    /// A fault was found.
    Found(&'a Find),
}

/// Runs rounds until a limit is reached.
pub fn run(orders: &Orders, tell: &mut dyn FnMut(Event<'_>)) -> (Counts, Vec<Find>) {
    let bench = Bench::new(vocabulary());
    let (mut counts, mut finds, mut known) = (Counts::default(), Vec::new(), BTreeSet::new());
    let start = Instant::now();
    for seed in orders.seed.. {
        let spent = orders.time.is_some_and(|time| start.elapsed() >= time);
        if spent
            || orders.count.is_some_and(|count| seed - orders.seed >= count)
            || finds.len() >= orders.finds
        {
            break;
        }
        tell(Event::Seed(seed, &counts));
        counts.seeds += 1;
        for (kind, every) in KINDS {
            let due = match &orders.only {
                Some(only) => only == kind,
                None => seed % every == 0,
            };
            if !due {
                continue;
            }
            let begun = Instant::now();
            if let Some(find) = round(&bench, kind, seed, &mut counts, tell) {
                // The same small case counts only once.
                if known.insert((find.fault.parts().0, find.constraint.to_string())) {
                    tell(Event::Found(&find));
                    finds.push(find);
                }
            }
            counts.slowest = counts.slowest.max((begun.elapsed(), seed, kind));
        }
        bench.tidy();
    }
    (counts, finds)
}

/// Runs one round.
fn round(
    bench: &Bench,
    kind: &'static str,
    seed: u64,
    counts: &mut Counts,
    tell: &mut dyn FnMut(Event<'_>),
) -> Option<Find> {
    if matches!(kind, "grammars" | "tags") {
        let compiler = bench.compiler();
        let mut constraint = Value::Null;
        let done = caught(|| {
            let done = if kind == "tags" {
                notation::tags(compiler, seed)
            } else {
                notation::grammars(compiler, seed)
            };
            done.map_err(|(text, fault)| {
                constraint = text;
                fault
            })
        });
        return match done {
            Ok(tally) => {
                counts.masks += tally.masks;
                counts.walks += tally.walks;
                if tally.refused > 0 {
                    *counts.refused.entry(kind.to_owned()).or_default() += tally.refused;
                }
                None
            }
            Err(fault) => Some(Find { seed, kind, constraint, settings: None, fault, verdicts: None }),
        };
    }
    let (schema, settings) = if kind == "joints" { ambiguous_schema_of(seed) } else { schema_of(seed) };
    let mut trace = Trace::default();
    let result = caught(|| schema_round(bench, kind, &schema, &settings, seed, counts, &mut trace));
    let fault = result.err()?;
    tell(Event::Fault(seed, kind, &fault));
    let Trace { document, prefix } = trace;
    let case = Case { schema, settings, document, prefix, seed };
    let (case, fault) = shrink(bench, case, fault, tried_of(kind));
    let verdicts = case.document.as_ref().and_then(|document| {
        let judge = bench.judge(&case.schema, &case.settings).ok()?;
        Some(judge.verdicts(&document.value()?, fault.parts().1))
    });
    Some(Find { seed, kind, constraint: case.schema, settings: Some(case.settings), fault, verdicts })
}

/// Returns the schema of a seed, and its options.
pub fn schema_of(seed: u64) -> (Value, Settings) {
    let mut rng = Rng::new(seed);
    let schema = schema::random(&mut rng);
    (schema, settings(&mut rng))
}

fn ambiguous_schema_of(seed: u64) -> (Value, Settings) {
    let mut rng = Rng::new(seed);
    let schema = schema::ambiguous(&mut rng);
    (schema, settings(&mut rng))
}

/// Returns the tokens that rounds of a kind compare masks with.
fn tried_of(kind: &str) -> Tried {
    match kind {
        "masks" => Tried::All,
        "joints" => Tried::Joints,
        _ => Tried::None,
    }
}

fn settings(rng: &mut Rng) -> Settings {
    let order = if rng.one_in(2) { KeyOrder::Any } else { KeyOrder::Schema };
    let whitespace = match rng.below(8) {
        0 | 1 => Whitespace::default(),
        2 => Whitespace::Tidy,
        3 => Whitespace::Spaced,
        4 => Whitespace::Indent(2),
        5 => Whitespace::Natural,
        _ => Whitespace::Compact,
    };
    Settings { order, whitespace, cases: rng.one_in(8).then_some(4) }
}

/// What was being checked when a fault occurred.
#[derive(Debug, Default)]
struct Trace {
    /// The document that was judged.
    document: Option<Document>,
    /// The text after which a walk could not continue.
    prefix: Option<Vec<u8>>,
}

/// Runs a round with a schema.
fn schema_round(
    bench: &Bench,
    kind: &str,
    schema: &Value,
    settings: &Settings,
    seed: u64,
    counts: &mut Counts,
    trace: &mut Trace,
) -> Result<(), Fault> {
    let judge = match bench.judge(schema, settings) {
        Ok(judge) => judge,
        Err(Unjudged::Refused(message)) => {
            *counts.refused.entry(reason(&message)).or_default() += 1;
            return Ok(());
        }
        Err(Unjudged::ByValidator) => {
            counts.unjudged += 1;
            return Ok(());
        }
        Err(Unjudged::Fault(fault)) => return Err(fault),
    };
    counts.schemas += 1;
    counts.unsatisfiable += u64::from(judge.compiled().is_none());
    // Other random numbers than those that the schema was drawn from.
    let mut rng = Rng::new(!seed);
    if kind == "orders" {
        return orders(bench, &judge, &mut rng, seed, counts, trace);
    }
    if kind != "pairs" {
        return walks(&judge, tried_of(kind), &mut rng, counts, trace);
    }
    for document in documents(&judge, &mut rng, counts, trace)? {
        let document = trace.document.insert(document);
        pair(&judge, document, seed, counts)?;
        trace.document = None;
    }
    Ok(())
}

/// Compares the schema's own order of keys with any order.
fn orders(
    bench: &Bench,
    judge: &Judge,
    rng: &mut Rng,
    seed: u64,
    counts: &mut Counts,
    trace: &mut Trace,
) -> Result<(), Fault> {
    let Some(other) = bench.in_other_order(judge) else { return Ok(()) };
    for document in documents(judge, rng, counts, trace)? {
        let document = trace.document.insert(document);
        counts.orders += 1;
        counts.undecided += u64::from(judge.agrees_with(&other, document, seed)? == Pair::Undecided);
        trace.document = None;
    }
    Ok(())
}

fn pair(judge: &Judge, document: &Document, seed: u64, counts: &mut Counts) -> Result<(), Fault> {
    counts.pairs += 1;
    match judge.pair(document, seed)? {
        Pair::Valid => counts.valid += 1,
        Pair::Invalid => {}
        Pair::Disputed => counts.disputed += 1,
        Pair::Undecided => counts.undecided += 1,
    }
    Ok(())
}

/// Returns documents to judge: made for the schema, at random, written under the mask, and changed ones.
fn documents(
    judge: &Judge,
    rng: &mut Rng,
    counts: &mut Counts,
    trace: &mut Trace,
) -> Result<Vec<Document>, Fault> {
    let schema = judge.schema();
    let mut all: Vec<Document> =
        (0..14).map(|_| Document::of(&satisfy::for_schema(schema, schema, rng, 4))).collect();
    all.extend((0..3).map(|_| Document::of(&sample::any(rng, 2))));
    if let Some(compiled) = judge.compiled() {
        let mut walker = Walker::of_schema(compiled, judge.schema());
        for _ in 0..3 {
            counts.walks += 1;
            if let Some(text) = walker.walk(&plan(rng, Tried::None), rng, &mut trace.prefix)? {
                counts.finished += 1;
                all.push(judge.reads(&text)?);
            }
        }
        counts.limited += walker.limited;
    }
    for _ in 0..20 {
        let base = all[rng.below(all.len())].clone();
        let mut other = |rng: &mut Rng| Document::of(&satisfy::for_schema(schema, schema, rng, 2));
        all.push(change(&base, rng, &mut other));
    }
    let mut texts = BTreeSet::new();
    all.retain(|document| texts.insert(document.to_string()));
    Ok(all)
}

fn walks(
    judge: &Judge,
    tried: Tried,
    rng: &mut Rng,
    counts: &mut Counts,
    trace: &mut Trace,
) -> Result<(), Fault> {
    let Some(compiled) = judge.compiled() else { return Ok(()) };
    let mut walker = Walker::of_schema(compiled, judge.schema());
    for _ in 0..if tried == Tried::All { 2 } else { 8 } {
        counts.walks += 1;
        let Some(text) = walker.walk(&plan(rng, tried), rng, &mut trace.prefix)? else { continue };
        counts.finished += 1;
        let document = trace.document.insert(judge.reads(&text)?);
        pair(judge, document, 0, counts)?;
        trace.document = None;
    }
    counts.masks += walker.masks;
    counts.limited += walker.limited;
    Ok(())
}

/// Returns the words of a message that do not depend on the schema.
fn reason(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let line = line.split_once(": ").map_or(line, |(_, rest)| rest);
    line.chars().filter(|character| !character.is_ascii_digit()).take(70).collect()
}
