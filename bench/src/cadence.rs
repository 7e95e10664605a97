//! `mwbench cadence`: masks at the pace of a serving engine.
//!
//! A serving engine asks for the masks of a whole batch every few milliseconds, and computes something else in between.
//! So here some milliseconds pass between two steps, and the caches of the processors are overwritten. Each row follows
//! a document of its own schema; in a step, every row accepts its token and fills its next mask. The measured time is
//! the wall-clock time of the whole step. A row whose document has ended starts again, which is not timed.
//!
//! Our engine uses `step_batch`. A peer's rows are distributed over the same number of threads of a pool, each of which
//! accepts and then fills.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use maskwright::{Compiler, Constraint, Matcher, StepRow, TokenId, step_batch};
use mwbench_abi::{Kind, Source};
use rayon::prelude::*;
use serde_json::json;

use crate::corpus::Case;
use crate::engines::{Compiled, Engine, KeyOrder, Maskwright, OURS, Session};
use crate::progress::Progress;
use crate::random::Random;
use crate::stats::Times;
use crate::tokenizer::Tokenizer;
use crate::{corpus, engines, machine, output};

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  mwbench cadence --data schemas --tokenizer tokenizer.json --engines maskwright,llguidance --rows 1,64,512"
)]
pub struct Arguments {
    /// Folder of files {"schema": …, "tests": […]}
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// A tokenizer.json
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Engines to run; they take turns
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "maskwright,llguidance")]
    engines: Vec<String>,
    /// Folder of the peers' libraries
    #[arg(long, value_name = "DIR", default_value = engines::PEER_FOLDER)]
    peers: PathBuf,
    /// Rows of a batch, each with its own schema
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,16,64,256,512")]
    rows: Vec<usize>,
    /// Steps for each number of rows
    #[arg(long, value_name = "N", default_value_t = 200)]
    steps: usize,
    /// Milliseconds between two steps
    #[arg(long, value_name = "MS", default_value_t = 3)]
    gap_ms: u64,
    /// Megabytes that each thread writes between two steps
    #[arg(long, value_name = "MB", default_value_t = 16)]
    sweep_mb: usize,
    /// Threads of a step; by default one for each processor of the machine
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Seed for the choice of schemas
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Write the numbers as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A schema and a document that it allows.
struct Followed {
    schema: String,
    tokens: Vec<u32>,
}

/// The rows of one engine.
trait Rows {
    /// Makes every row accept its token, if there is one, and fill its mask. Returns whether all succeeded.
    fn step(&mut self, tokens: &[Option<u32>]) -> bool;
    fn restart(&mut self, row: usize) -> Result<(), String>;
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let threads =
        arguments.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| format!("cannot start {threads} threads: {error}"))?;
    let count = std::num::NonZero::new(threads).ok_or("there must be a thread")?;
    maskwright::set_threads(count).map_err(|error| error.to_string())?;
    let tokenizer = Tokenizer::load(&arguments.tokenizer)?;
    let vocabulary = tokenizer.vocabulary();
    let compiler = Compiler::new(Maskwright::vocabulary(&vocabulary)?);
    let opened = engines::open(&arguments.engines, &arguments.peers, &vocabulary, KeyOrder::Schema)?;
    let engines: Vec<&dyn Engine> = opened.iter().map(|opened| &*opened.engine).collect();
    let most = arguments.rows.iter().copied().max().unwrap_or(0);
    let followed = choose(arguments, &tokenizer, &engines, most)?;
    if followed.len() < most {
        return Err(format!("all engines follow a document of {} schemas only", followed.len()));
    }

    println!("{}, {threads} threads, {} ms between steps", machine::describe(), arguments.gap_ms);
    println!(
        "{:>6} {:<12} {:>9} {:>9} {:>9} {:>9}   µs a step",
        "rows", "engine", "avg", "p50", "p95", "p99"
    );
    let words = vocabulary.mask_words();
    let mut sweep = vec![0u64; threads * arguments.sweep_mb * (1 << 20) / 8];
    let mut report = Vec::new();
    for &count in &arguments.rows {
        let followed = &followed[..count];
        let compiled = compile(followed, &engines)?;
        let mut batches: Vec<Box<dyn Rows + '_>> = Vec::new();
        for (engine, compiled) in engines.iter().zip(&compiled) {
            batches.push(if engine.name() == OURS {
                Box::new(Ours::new(&compiler, followed, words, threads)?)
            } else {
                Box::new(Theirs::new(compiled, words, &pool)?)
            });
        }
        let mut times = vec![Times::default(); batches.len()];
        let mut at = vec![0; count];
        for step in 0..=arguments.steps {
            let is_first = step == 0;
            let tokens: Vec<Option<u32>> =
                followed.iter().zip(&at).map(|(row, at)| (!is_first).then(|| row.tokens[*at])).collect();
            for turn in 0..batches.len() {
                let engine = (step + turn) % batches.len();
                pause(arguments, &pool, &mut sweep);
                let begin = Instant::now();
                let is_done = batches[engine].step(&tokens);
                let nanos = begin.elapsed().as_nanos() as u64;
                if !is_done {
                    return Err(format!("{} failed in step {step}", engines[engine].name()));
                }
                if !is_first {
                    times[engine].0.push(nanos);
                }
            }
            if !is_first {
                at.iter_mut().for_each(|at| *at += 1);
            }
            for row in (0..count).filter(|row| at[*row] == followed[*row].tokens.len()).collect::<Vec<_>>() {
                at[row] = 0;
                batches.iter_mut().try_for_each(|batch| batch.restart(row))?;
            }
        }
        for (engine, times) in engines.iter().zip(times) {
            let sorted = times.sorted();
            let (summary, p95) = (sorted.summary(), sorted.quantile(0.95));
            println!(
                "{count:>6} {:<12} {:>9.1} {:>9.1} {p95:>9.1} {:>9.1}",
                engine.name(),
                summary.avg,
                summary.p50,
                summary.p99
            );
            report.push(json!({
                "rows": count, "engine": engine.name(), "avg_us": summary.avg, "p50_us": summary.p50, "p95_us": p95, "p99_us": summary.p99,
            }));
        }
    }
    let report = json!({
        "machine": machine::describe(), "threads": threads, "gap_ms": arguments.gap_ms, "steps": arguments.steps, "cadence": report,
    });
    output::write_json(arguments.json.as_deref(), &report)
}

/// Chooses schemas, each with a document that all engines follow to its end.
fn choose(
    arguments: &Arguments,
    tokenizer: &Tokenizer,
    engines: &[&dyn Engine],
    most: usize,
) -> Result<Vec<Followed>, String> {
    let mut files = corpus::list(&arguments.data)?;
    Random::new(arguments.seed).shuffle(&mut files);
    let mut chosen = Vec::new();
    let mut progress = Progress::new(most);
    for file in files {
        if chosen.len() == most {
            break;
        }
        let Case { name, source, instances, .. } = corpus::load(&file, tokenizer)?;
        // A document of two tokens would be restarted all the time.
        let document = instances.into_iter().find(|instance| instance.valid && instance.tokens.len() >= 16);
        let Some(document) = document else { continue };
        let followed = Followed { schema: source, tokens: document.tokens };
        if engines.iter().all(|engine| follows(*engine, &followed)) {
            chosen.push(followed);
            progress.step(&name);
        }
    }
    Ok(chosen)
}

fn follows(engine: &dyn Engine, followed: &Followed) -> bool {
    let source = Source { kind: Kind::JsonSchema, text: &followed.schema };
    let Ok(compiled) = engine.compile(source) else { return false };
    let Ok(mut session) = compiled.start() else { return false };
    followed.tokens.iter().all(|token| session.accept(*token))
}

/// Compiles the schemas with each peer.
fn compile<'e>(
    followed: &[Followed],
    engines: &[&'e dyn Engine],
) -> Result<Vec<Vec<Box<dyn Compiled + 'e>>>, String> {
    let all = |engine: &'e dyn Engine| {
        // Our own are compiled by our compiler, for our batch.
        let rows = if engine.name() == OURS { &[][..] } else { followed };
        let source = |row: &'_ Followed| engine.compile(Source { kind: Kind::JsonSchema, text: &row.schema });
        rows.iter().map(source).collect()
    };
    engines.iter().map(|engine| all(*engine)).collect()
}

/// Simulates the time between two steps of a serving engine: time passes, and the caches are overwritten.
fn pause(arguments: &Arguments, pool: &rayon::ThreadPool, sweep: &mut [u64]) {
    let begin = Instant::now();
    let share = sweep.len().div_ceil(pool.current_num_threads()).max(1);
    pool.install(|| {
        sweep.par_chunks_mut(share).for_each(|part| {
            part.iter_mut().step_by(8).for_each(|word| *word = word.wrapping_add(1));
        });
    });
    std::hint::black_box(sweep);
    std::thread::sleep(Duration::from_millis(arguments.gap_ms).saturating_sub(begin.elapsed()));
}

/// Our own rows.
struct Ours {
    rows: Vec<StepRow<Matcher>>,
    threads: usize,
}

impl Ours {
    fn new(compiler: &Compiler, followed: &[Followed], words: usize, threads: usize) -> Result<Self, String> {
        let row = |row: &Followed| {
            let compiled = compiler.compile(&Constraint::json_schema(row.schema.as_str()));
            compiled.map(|compiled| StepRow::new(compiled.matcher(), words))
        };
        let rows: Result<_, _> = followed.iter().map(row).collect();
        Ok(Self { rows: rows.map_err(|error| error.to_string())?, threads })
    }
}

impl Rows for Ours {
    fn step(&mut self, tokens: &[Option<u32>]) -> bool {
        for (row, token) in self.rows.iter_mut().zip(tokens) {
            row.set_token(token.map(TokenId));
        }
        let stepped = step_batch(std::mem::take(&mut self.rows), self.threads);
        self.rows = stepped.rows;
        stepped.errors.is_empty()
    }

    fn restart(&mut self, row: usize) -> Result<(), String> {
        self.rows[row].matcher().reset();
        Ok(())
    }
}

/// The rows of a peer.
struct Theirs<'c> {
    compiled: &'c [Box<dyn Compiled + 'c>],
    rows: Vec<Row<'c>>,
    pool: &'c rayon::ThreadPool,
}

struct Row<'c> {
    session: Movable<'c>,
    words: Vec<u32>,
}

/// A session that moves between threads.
struct Movable<'c>(Box<dyn Session + 'c>);

// SAFETY: the sessions of the peers are values that are not bound to a thread (a `Matcher` of llguidance is `Send`),
// and one thread at a time uses them.
unsafe impl Send for Movable<'_> {}

impl<'c> Theirs<'c> {
    fn new(
        compiled: &'c [Box<dyn Compiled + 'c>],
        words: usize,
        pool: &'c rayon::ThreadPool,
    ) -> Result<Self, String> {
        let rows = compiled.iter().map(|compiled| {
            Ok::<_, String>(Row { session: Movable(compiled.start()?), words: vec![0; words] })
        });
        Ok(Self { compiled, rows: rows.collect::<Result<_, _>>()?, pool })
    }
}

impl Rows for Theirs<'_> {
    fn step(&mut self, tokens: &[Option<u32>]) -> bool {
        let rows = &mut self.rows;
        let step = |(row, token): (&mut Row<'_>, &Option<u32>)| {
            let Row { session: Movable(session), words } = row;
            token.is_none_or(|token| session.accept(token)) && session.fill(words)
        };
        if rows.len() == 1 {
            return rows.iter_mut().zip(tokens).all(step);
        }
        self.pool.install(|| rows.par_iter_mut().zip(tokens).map(step).reduce(|| true, |a, b| a && b))
    }

    fn restart(&mut self, row: usize) -> Result<(), String> {
        self.rows[row].session = Movable(self.compiled[row].start()?);
        Ok(())
    }
}
