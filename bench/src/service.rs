//! `mwbench service`: the compile service under load.
//!
//! | part | question |
//! |---|---|
//! | budget | many distinct schemas, each used once: does the memory stay within the budget? |
//! | mix | many threads, schemas requested by Zipf's law, cold and then warm: how long does a request wait? |
//! | hit | one thread: what does a request cost that finds its constraint in the cache? |
//! | flight | 64 threads request one schema at once: how many compilations are there? |
//! | count | what do the statistics cost, as a share of a mask? |
//!
//! Memory is measured in three ways: as reported by the service, as counted by the allocator since before the service
//! was created, and as reported by the system for the whole process. The texts of all schemas are read in advance, so
//! the first two do not include them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Instant;

use maskwright::backend::{Backend, Compiled, Matching, Status};
use maskwright::service::{Client, Service, Settings};
use maskwright::statistics::{Lookup, Outcome, Statistics};
use maskwright::{Compiler, Constraint, MatchError, Options, TokenId, Vocabulary};
use mwbench_abi::memory::live_bytes;
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::random::Random;
use crate::stats::{Summary, Times, rounded};
use crate::table::{number, size};
use crate::tokenizer::Tokenizer;
use crate::{corpus, machine, output};

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    mwbench service --data schemas --tokenizer tokenizer.json\n  \
    mwbench service --data schemas --tokenizer tokenizer.json --distinct 10000 --budget 256 --threads 16 --json service.json")]
pub struct Arguments {
    /// Folder of files {"schema": …, "tests": […]}
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// A tokenizer file
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Distinct schemas for the budget; if there are fewer files, they are reused with different comments
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    distinct: usize,
    /// The cache's budget in megabytes of 1,048,576 bytes
    #[arg(long, value_name = "MB", default_value_t = 256)]
    budget: usize,
    /// Threads that send requests
    #[arg(long, value_name = "N", default_value_t = 8)]
    threads: usize,
    /// Threads that compile
    #[arg(long, value_name = "N", default_value_t = 2)]
    workers: usize,
    /// Requests of the mix, once cold and once warm
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    requests: usize,
    /// Schemas of the mix
    #[arg(long, value_name = "N", default_value_t = 500)]
    mix: usize,
    /// Zipf's exponent: the schema of rank r is requested 1/r^s as often as the first
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    skew: f64,
    /// Seed for the sample, the mix and its order
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Write the numbers as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A schema with one text to write under it.
struct Case {
    constraint: Constraint,
    tokens: Vec<TokenId>,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    if arguments.threads == 0 || arguments.distinct == 0 || arguments.mix == 0 {
        return Err("--threads, --distinct and --mix must be at least 1".into());
    }
    let tokenizer = Tokenizer::load(&arguments.tokenizer)?;
    let loaded = maskwright_tokenizers::load(&arguments.tokenizer).map_err(|error| error.to_string())?;
    let vocabulary = loaded.vocabulary().clone();
    let cases = read(arguments, &tokenizer)?;
    let bench = Bench { arguments, vocabulary, cases };
    println!("{}; {} schemas read", machine::describe(), bench.cases.len());
    let budget = bench.budget()?;
    let (mix, client) = bench.mix()?;
    let hit = bench.hit(&client);
    drop(client);
    let flight = bench.flight()?;
    let count = bench.count()?;
    let warm = bench.warm()?;
    let numbers = json!({
        "machine": machine::describe(),
        "budget": budget, "mix": mix, "hit": hit, "flight": flight, "count": count, "warm": warm,
    });
    output::write_json(arguments.json.as_deref(), &numbers)
}

/// Reads as many files as requested, and creates variants of them if there are not enough.
fn read(arguments: &Arguments, tokenizer: &Tokenizer) -> Result<Vec<Case>, String> {
    let wanted = arguments.distinct.max(arguments.mix);
    let mut files = corpus::list(&arguments.data)?;
    corpus::draw(&mut files, Some(wanted), arguments.seed);
    Random::new(arguments.seed).shuffle(&mut files);
    let mut progress = Progress::new(files.len());
    let mut cases = Vec::with_capacity(wanted);
    for file in &files {
        let case = corpus::load(file, tokenizer)?;
        let text = case.instances.into_iter().find(|instance| instance.valid);
        let tokens = text.map(|text| text.tokens.into_iter().map(TokenId).collect()).unwrap_or_default();
        cases.push(Case { constraint: Constraint::json_schema(case.source), tokens });
        progress.step(&case.name);
    }
    for at in cases.len()..wanted {
        let Case { constraint, tokens } = &cases[at % files.len()];
        let (constraint, tokens) = (with_comment(constraint, at), tokens.clone());
        cases.push(Case { constraint, tokens });
    }
    Ok(cases)
}

/// Returns the same schema as a different text.
fn with_comment(constraint: &Constraint, number: usize) -> Constraint {
    let Constraint::JsonSchema(text) = constraint else { return constraint.clone() };
    match text.strip_prefix('{').map(str::trim_start) {
        Some(rest) if rest.starts_with('"') => {
            Constraint::json_schema(format!(r#"{{"$comment":"number {number}",{rest}"#))
        }
        _ => Constraint::json_schema(format!(r#"{{"$comment":"number {number}","allOf":[{text}]}}"#)),
    }
}

struct Bench<'a> {
    arguments: &'a Arguments,
    vocabulary: Arc<Vocabulary>,
    cases: Vec<Case>,
}

impl Bench<'_> {
    fn service(&self) -> Result<(Service, Client), String> {
        let settings = Settings {
            workers: self.arguments.workers,
            budget: self.arguments.budget << 20,
            ..Settings::default()
        };
        let service = Service::new(settings).map_err(|error| format!("cannot start a thread: {error}"))?;
        let client = service.client(Arc::new(Compiler::new(self.vocabulary.clone())));
        Ok((service, client))
    }

    /// Requests every schema once, from all threads, and writes a text for each.
    fn budget(&self) -> Result<Value, String> {
        let resident_before = resident();
        let before = live_bytes();
        let (service, client) = self.service()?;
        let cases = &self.cases[..self.arguments.distinct];
        let (next, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (held, live, seen) = (AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0));
        let progress = Mutex::new(Progress::new(cases.len()));
        let begin = Instant::now();
        self.on_threads(|_| {
            let mut mask = self.mask();
            while let Some(case) = cases.get(next.fetch_add(1, Relaxed)) {
                match client.compile(&case.constraint) {
                    Ok(handle) => write(&mut handle.matcher(), &case.tokens, &mut mask),
                    Err(_) => refused.fetch_add(1, Relaxed),
                };
                // `resident` is slow, so it is only called for every 16th case below.
                let cache = service.statistics().cache;
                held.fetch_max((cache.bytes + cache.shared_bytes) as i64, Relaxed);
                live.fetch_max(live_bytes() - before, Relaxed);
                let mut progress = progress.lock().expect("no thread panics");
                progress.step("budget");
                if next.load(Relaxed) % 16 == 0 {
                    seen.fetch_max(resident(), Relaxed);
                }
            }
        });
        drop(progress);
        let seconds = begin.elapsed().as_secs_f64();
        service.tidy();
        let at_end = live_bytes() - before;
        let statistics = service.statistics();
        let refused = refused.into_inner();
        let [held, live, seen] = [held, live, seen].map(AtomicI64::into_inner);
        println!(
            "budget   {} distinct schemas ({refused} refused) through {} in {seconds:.0} s, {} threads\n         \
             held at most: {} by the service, {} by the allocator, {} resident (process: {} before)\n         \
             at the end {} by the service, {} by the allocator; {} evictions, {} new libraries, {} in the cache, {:.1} s of upkeep",
            cases.len(),
            size((self.arguments.budget << 20) as f64),
            self.arguments.threads,
            size(held as f64),
            size(live as f64),
            size(seen as f64),
            size(resident_before as f64),
            size((statistics.cache.bytes + statistics.cache.shared_bytes) as f64),
            size(at_end as f64),
            statistics.cache.evictions,
            statistics.cache.renewals,
            statistics.cache.entries,
            statistics.cache.upkeep.as_secs_f64(),
        );
        Ok(json!({
            "schemas": cases.len(), "refused": refused, "seconds": rounded(seconds),
            "budget_bytes": self.arguments.budget << 20,
            "held_bytes_max": held, "live_bytes_max": live, "live_bytes_end": at_end,
            "resident_bytes_max": seen, "resident_bytes_before": resident_before,
            "evictions": statistics.cache.evictions, "renewals": statistics.cache.renewals,
            "compiles": compiles(&statistics), "upkeep_seconds": rounded(statistics.cache.upkeep.as_secs_f64()),
        }))
    }

    /// Runs the mix twice on the same service: cold, then warm. Returns a client of the warm service.
    fn mix(&self) -> Result<(Value, Client), String> {
        let (service, client) = self.service()?;
        let ranks = Zipf::new(self.arguments.mix, self.arguments.skew);
        let mut numbers = serde_json::Map::new();
        for pass in ["cold", "warm"] {
            let before = service.statistics();
            let (next, masks) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let waits = Mutex::new([Times::default(), Times::default(), Times::default()]);
            let progress = Mutex::new(Progress::new(self.arguments.requests));
            let begin = Instant::now();
            self.on_threads(|thread| {
                let mut random = Random::new(self.arguments.seed ^ (thread as u64) << 32);
                let mut mask = self.mask();
                let mut own = [Times::default(), Times::default(), Times::default()];
                while next.fetch_add(1, Relaxed) < self.arguments.requests {
                    let case = &self.cases[ranks.draw(&mut random)];
                    let start = Instant::now();
                    let ticket = client.request(&case.constraint);
                    let class = match ticket.lookup() {
                        Lookup::Hit | Lookup::KnownFailure => 0,
                        Lookup::Joined => 1,
                        _ => 2,
                    };
                    let result = ticket.wait();
                    own[class].0.push(start.elapsed().as_nanos() as u64);
                    if let Ok(handle) = result {
                        masks.fetch_add(write(&mut handle.matcher(), &case.tokens, &mut mask), Relaxed);
                    }
                    progress.lock().expect("no thread panics").step(pass);
                }
                let mut waits = waits.lock().expect("no thread panics");
                waits.iter_mut().zip(own).for_each(|(all, own)| all.0.extend(own.0));
            });
            drop(progress);
            let seconds = begin.elapsed().as_secs_f64();
            let masks = masks.into_inner();
            let [hit, joined, miss] =
                waits.into_inner().expect("no thread panics").map(|times| times.sorted().summary());
            let compiled = compiles(&service.statistics()) - compiles(&before);
            println!(
                "{pass:8} {} requests over {} schemas (Zipf {}), {} threads: {} requests/s, {} masks/s, {compiled} compiles",
                self.arguments.requests,
                self.arguments.mix,
                self.arguments.skew,
                self.arguments.threads,
                number(self.arguments.requests as f64 / seconds),
                number(masks as f64 / seconds),
            );
            for (name, summary) in [("hit", hit), ("joined", joined), ("miss", miss)] {
                print_waits(name, summary);
            }
            let of_pass = json!({
                "requests": self.arguments.requests, "seconds": rounded(seconds), "masks": masks, "compiles": compiled,
                "hit_us": hit.to_json(), "joined_us": joined.to_json(), "miss_us": miss.to_json(),
            });
            numbers.insert(pass.into(), of_pass);
        }
        Ok((Value::Object(numbers), client))
    }

    /// Times requests that find their constraint, one after the other.
    fn hit(&self, client: &Client) -> Value {
        let known: Vec<&Case> = (self.cases[..self.arguments.mix].iter())
            .filter(|case| client.request(&case.constraint).lookup() == Lookup::Hit)
            .collect();
        let mut times = Times::default();
        let mut random = Random::new(self.arguments.seed);
        for _ in 0..if known.is_empty() { 0 } else { 20_000 } {
            let case = known[random.below(known.len())];
            let start = Instant::now();
            let ticket = client.request(&case.constraint);
            let time = start.elapsed();
            if ticket.lookup() == Lookup::Hit {
                times.0.push(time.as_nanos() as u64);
            }
        }
        let summary = times.sorted().summary();
        let bytes = known.iter().map(|case| case.constraint.bytes()).sum::<usize>() as f64
            / known.len().max(1) as f64;
        println!("hit      one thread, {} constraints of {} on average", known.len(), size(bytes));
        print_waits("hit", summary);
        json!({ "constraints": known.len(), "text_bytes_avg": bytes.round(), "hit_us": summary.to_json() })
    }

    /// Lets 64 threads request the same schema at the same time, repeatedly with different schemas.
    fn flight(&self) -> Result<Value, String> {
        const THREADS: usize = 64;
        let (service, client) = self.service()?;
        let rounds = self.cases.len().min(50);
        let barrier = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for case in &self.cases[..rounds] {
                        barrier.wait();
                        // Only the number of compilations matters here, not the results.
                        drop(client.compile(&case.constraint));
                    }
                });
            }
        });
        let compiles = compiles(&service.statistics());
        let canonical = |case: &Case| case.constraint.canonical().unwrap_or_else(|| case.constraint.clone());
        let distinct =
            self.cases[..rounds].iter().map(canonical).collect::<std::collections::HashSet<_>>().len();
        println!("flight   {distinct} cold schemas, {THREADS} threads at once for each: {compiles} compiles");
        Ok(json!({ "threads": THREADS, "distinct": distinct, "compiles": compiles }))
    }

    /// Compiles every schema of the mix and writes its text, with a new service and with one that has loaded what the
    /// first has saved.
    fn warm(&self) -> Result<Value, String> {
        let cases = &self.cases[..self.arguments.mix];
        let mut mask = self.mask();
        let mut all = |client: &Client| {
            let (mut first, mut text) = (Times::default(), Times::default());
            for case in cases {
                let start = Instant::now();
                let Ok(handle) = client.compile(&case.constraint) else { continue };
                let mut matcher = handle.matcher();
                // Only the time matters here, not the result.
                drop(matcher.fill_mask(&mut mask));
                first.0.push(start.elapsed().as_nanos() as u64);
                write(&mut matcher, &case.tokens, &mut mask);
                text.0.push(start.elapsed().as_nanos() as u64);
            }
            (first.sorted().summary(), text.sorted().summary())
        };
        let (_service, cold) = self.service()?;
        let (cold_first, cold_text) = all(&cold);
        let mut file = Vec::new();
        let start = Instant::now();
        let saved = cold.save(&mut file).map_err(|error| error.to_string())?;
        let save = start.elapsed().as_secs_f64();
        drop(cold);
        let (_service, warm) = self.service()?;
        let start = Instant::now();
        warm.load(&file).map_err(|error| error.to_string())?;
        let load = start.elapsed().as_secs_f64();
        let (warm_first, warm_text) = all(&warm);
        println!(
            "warm     {} constraints and what they share: {} saved in {:.0} ms, loaded in {:.0} ms",
            saved.constraints,
            size(file.len() as f64),
            save * 1e3,
            load * 1e3
        );
        for (name, summary) in [
            ("cold 1st", cold_first),
            ("warm 1st", warm_first),
            ("cold txt", cold_text),
            ("warm txt", warm_text),
        ] {
            print_waits(name, summary);
        }
        Ok(json!({
            "constraints": saved.constraints, "bytes": file.len(), "save_s": save, "load_s": load,
            "cold_first": cold_first.to_json(), "warm_first": warm_first.to_json(),
            "cold_text": cold_text.to_json(), "warm_text": warm_text.to_json(),
        }))
    }

    /// Measures what counting adds to a mask: the service's matcher over a matcher that does nothing, compared with
    /// that matcher alone; and the time of real masks.
    fn count(&self) -> Result<Value, String> {
        let (service, client) = self.service()?;
        let nothing = service.client(Arc::new(Nothing(self.vocabulary.clone())));
        let handle = nothing.compile(&Constraint::regex("")).map_err(|error| error.to_string())?;
        let (mut counted, mut plain) = (handle.matcher(), handle.inner().clone().start());
        let (mut mask, mut costs) = ([0u32; 1], Vec::new());
        const MASKS: u32 = 100_000;
        for _ in 0..51 {
            let start = Instant::now();
            for _ in 0..MASKS {
                let _ = std::hint::black_box(&mut plain).fill_mask(&mut mask);
                let _ = std::hint::black_box(&mut plain).accept(TokenId(0));
            }
            let alone = start.elapsed();
            let start = Instant::now();
            for _ in 0..MASKS {
                let _ = std::hint::black_box(&mut counted).fill_mask(&mut mask);
                let _ = std::hint::black_box(&mut counted).accept(TokenId(0));
            }
            costs.push((start.elapsed().as_secs_f64() - alone.as_secs_f64()) * 1e9 / f64::from(MASKS));
        }
        costs.sort_by(f64::total_cmp);
        let cost = costs[costs.len() / 2];
        let (cold, warm) = (self.mask_nanos(&client), self.mask_nanos(&client));
        println!(
            "count    statistics cost {} ns for a mask and a token; a mask takes {} ns on average when it is new ({} %), {} ns later ({} %)",
            number(cost),
            number(cold),
            number(cost / cold * 100.0),
            number(warm),
            number(cost / warm * 100.0)
        );
        Ok(json!({ "cost_ns": rounded(cost), "mask_ns_cold": rounded(cold), "mask_ns_warm": rounded(warm) }))
    }

    /// Returns the average time of a mask, without counting.
    fn mask_nanos(&self, client: &Client) -> f64 {
        let (mut mask, mut masks, mut nanos) = (self.mask(), 0, 0);
        for case in &self.cases[..self.cases.len().min(300)] {
            let Ok(handle) = client.compile(&case.constraint) else { continue };
            let mut matcher = handle.inner().clone().start();
            for &token in &case.tokens {
                let start = Instant::now();
                let filled = matcher.fill_mask(&mut mask);
                nanos += start.elapsed().as_nanos();
                masks += 1;
                if filled.is_err() || matcher.accept(token).is_err() {
                    break;
                }
            }
        }
        nanos as f64 / f64::from(masks.max(1))
    }

    fn mask(&self) -> Vec<u32> {
        vec![0; self.vocabulary.size().div_ceil(32)]
    }

    fn on_threads(&self, work: impl Fn(usize) + Sync) {
        std::thread::scope(|scope| {
            for thread in 0..self.arguments.threads {
                let work = &work;
                scope.spawn(move || work(thread));
            }
        });
    }
}

/// Writes a text as far as the constraint allows it; returns the number of masks.
fn write(matcher: &mut maskwright::service::Matcher, tokens: &[TokenId], mask: &mut [u32]) -> usize {
    let mut masks = 0;
    for &token in tokens {
        masks += 1;
        if matcher.fill_mask(mask).is_err() || matcher.accept(token).is_err() {
            break;
        }
    }
    masks
}

fn compiles(statistics: &Statistics) -> u64 {
    Outcome::ALL.iter().map(|outcome| statistics.compiles(*outcome)).sum()
}

fn print_waits(name: &str, summary: Summary) {
    if summary.count > 0 {
        println!(
            "         {name:7} {:>7}   µs: avg {}, p50 {}, p90 {}, p99 {}, max {}",
            summary.count,
            number(summary.avg),
            number(summary.p50),
            number(summary.p90),
            number(summary.p99),
            number(summary.max)
        );
    }
}

/// Returns the bytes of this process in memory, as reported by the system; 0 if it does not report them.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|text| text.parse::<i64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}

/// Draws ranks by Zipf's law.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(ranks: usize, skew: f64) -> Self {
        let mut sum = 0.0;
        let up_to = |rank: usize| {
            sum += (rank as f64).powf(-skew);
            sum
        };
        Self((1..=ranks).map(up_to).collect())
    }

    fn draw(&self, random: &mut Random) -> usize {
        let all = self.0[self.0.len() - 1];
        let at = (random.next() >> 11) as f64 / (1u64 << 53) as f64 * all;
        self.0.partition_point(|&up_to| up_to <= at).min(self.0.len() - 1)
    }
}

/// A backend that does nothing, to measure the cost of everything else.
#[derive(Debug)]
struct Nothing(Arc<Vocabulary>);

impl Backend for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.0
    }

    fn compile(&self, _: &Constraint, _: &Options) -> Result<Arc<dyn Compiled>, maskwright::Error> {
        Ok(Arc::new(Idle))
    }
}

#[derive(Debug)]
struct Idle;

impl Compiled for Idle {
    fn start(self: Arc<Self>) -> Box<dyn Matching> {
        Box::new(Idle)
    }

    fn bytes(&self) -> usize {
        0
    }

    fn states(&self) -> usize {
        0
    }
}

impl Matching for Idle {
    fn fill_mask(&mut self, _: &mut [u32]) -> Result<(), MatchError> {
        Ok(())
    }

    fn mask_words(&mut self) -> Result<&[u32], MatchError> {
        Ok(&[])
    }

    fn accept(&mut self, _: TokenId) -> Result<(), MatchError> {
        Ok(())
    }

    fn rollback(&mut self, _: usize) -> Result<(), MatchError> {
        Ok(())
    }

    fn reset(&mut self) {}

    fn fork(&self) -> Box<dyn Matching> {
        Box::new(Idle)
    }

    fn status(&mut self) -> Status {
        Status::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_with_a_comment_are_other_texts_of_the_same_schema() {
        let texts = [r#"{"type": "null"}"#, "{ }", "true"]
            .map(|text| with_comment(&Constraint::json_schema(text), 7));
        for constraint in &texts {
            let Constraint::JsonSchema(text) = constraint else { panic!("a schema") };
            let value: Value = serde_json::from_str(text).expect("it is still JSON");
            assert_eq!(value["$comment"], "number 7");
        }
    }

    #[test]
    fn low_ranks_come_more_often() {
        let (zipf, mut random) = (Zipf::new(100, 1.0), Random::new(1));
        let mut counts = [0; 100];
        (0..10_000).for_each(|_| counts[zipf.draw(&mut random)] += 1);
        assert!(counts[0] > 3 * counts[9] && counts[9] > counts[99]);
    }
}
