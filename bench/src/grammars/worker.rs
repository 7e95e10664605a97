//! Runs one process for each engine: the harness starts it, queries it line by line, and stops it when it takes too
//! long.
//!
//! ```text
//! harness ──► {"kind": "lark", "source": "…", "texts": [[ids]]}
//! worker  ──► {"event": "ready"}    once, with its vocabulary loaded
//!             {"event": "begin"}    the clock of the time limit starts
//!             {"event": "so_far", "figures": {…}}    now and then, between two tokens
//!             {"event": "warm"}     the second replay begins, and with it the time limit
//!             {"event": "end", "figures": {…}}
//! ```
//! A worker checks the time limit between tokens and ends the row itself. If it does not, because a single call takes
//! longer, it is stopped, and its last report is shown.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mwbench_abi::Kind;
use serde_json::{Value, json};

use super::Arguments;
use crate::clock::Clock;
use crate::corpus::{Case, Instance};
use crate::engines::{self, KeyOrder};
use crate::replay::{Options, Outcome, Record, SoFar, TIMED_OUT, replay};
use crate::stats::{Times, rounded};
use crate::tokenizer::Tokenizer;

/// The time limit for loading a vocabulary.
const START: Duration = Duration::from_secs(180);
/// The extra time for a worker to end a row itself.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(100);
const SO_FAR: Duration = Duration::from_millis(500);
const XGRAMMAR: &str = "xgrammar";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/grammars.py");

/// The harness's side.
pub struct Worker<'a> {
    engine: String,
    release: String,
    arguments: &'a Arguments,
    process: Process,
}

struct Process {
    child: Child,
    questions: ChildStdin,
    events: Receiver<Value>,
    complaints: Option<JoinHandle<String>>,
}

impl<'a> Worker<'a> {
    pub fn start(engine: &str, arguments: &'a Arguments) -> Result<Worker<'a>, String> {
        let (process, release) = Process::start(engine, arguments)?;
        Ok(Worker { engine: engine.to_owned(), release, arguments, process })
    }

    pub fn engine(&self) -> &str {
        &self.engine
    }

    pub fn release(&self) -> &str {
        &self.release
    }

    /// Returns the figures of one row, complete or as far as it got.
    pub fn run(&mut self, kind: Kind, source: &str, tokens: &[Vec<u32>]) -> Result<Value, String> {
        let kind = match kind {
            Kind::Regex => "regex",
            Kind::Lark => "lark",
            Kind::Gbnf => "gbnf",
            Kind::JsonSchema => "json_schema",
        };
        let question = json!({"kind": kind, "source": source, "texts": tokens});
        // If the worker has died, that is noticed below.
        let _ = writeln!(self.process.questions, "{question}").and_then(|()| self.process.questions.flush());
        let (mut figures, problem) = self.process.listen(self.arguments)?;
        if let Some((outcome, problem)) = problem {
            figures["outcome"] = json!(outcome);
            figures["problem"] = json!(problem);
            self.process = Process::start(&self.engine, self.arguments)?.0;
        }
        Ok(figures)
    }
}

/// A failure of a process: an outcome and a sentence.
type Problem = (&'static str, String);

impl Process {
    fn start(engine: &str, arguments: &Arguments) -> Result<(Process, String), String> {
        let mut command = command(engine, arguments)?;
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("cannot start the process of {engine}: {error}"));
        let mut child = child?;
        let (Some(questions), Some(answers), Some(mut complaints)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("the process of {engine} has no pipes"));
        };
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(answers).lines().map_while(Result::ok) {
                // Lines that are not events were printed by the engine itself.
                if let Ok(event) = serde_json::from_str(&line)
                    && sender.send(event).is_err()
                {
                    break;
                }
            }
        });
        let complaints = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = complaints.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).trim().to_owned()
        });
        let mut process = Process { child, questions, events, complaints: Some(complaints) };
        match process.events.recv_timeout(START) {
            Ok(event) => Ok((process, event["release"].as_str().unwrap_or_default().to_owned())),
            Err(_) => Err(format!("{engine} does not start: {}", process.stop())),
        }
    }

    /// Waits for the end of a row.
    fn listen(&mut self, arguments: &Arguments) -> Result<(Value, Option<Problem>), String> {
        let limit = Duration::from_secs(arguments.timeout_s) + GRACE;
        let memory = (arguments.memory_gb * 1e9) as u64;
        let (mut figures, mut begin, mut heard) = (json!({}), Instant::now(), Instant::now());
        loop {
            match self.events.recv_timeout(POLL) {
                Ok(mut event) => {
                    heard = Instant::now();
                    match event["event"].as_str() {
                        Some("begin" | "warm") => begin = heard,
                        Some("so_far") => figures = event["figures"].take(),
                        Some("end") => return Ok((event["figures"].take(), None)),
                        _ => {}
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().map_err(|error| error.to_string())?;
                    let said = self.stop();
                    let said = said.lines().last().unwrap_or_default();
                    return Ok((figures, Some(("died", format!("{status} {said}")))));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let problem = if begin.elapsed() > limit {
                Some(("timeout", format!("no answer for {} s", heard.elapsed().as_secs())))
            } else if resident_bytes(self.child.id()) > memory {
                Some(("memory", format!("more than {} GB", arguments.memory_gb)))
            } else {
                None
            };
            if problem.is_some() {
                self.stop();
                return Ok((figures, problem));
            }
        }
    }

    /// Ends the process and returns its standard error.
    fn stop(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

fn command(engine: &str, arguments: &Arguments) -> Result<Command, String> {
    let common = &arguments.common;
    let mut command = if engine == XGRAMMAR {
        let mut command = Command::new(&arguments.python);
        command.arg(SCRIPT);
        command
    } else {
        let program =
            std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
        let mut command = Command::new(program);
        command.args(["grammars", "--worker", "--engines", engine]).arg("--peers").arg(&common.peers);
        if common.rows {
            command.arg("--rows");
        }
        if common.shared_machine {
            command.arg("--shared-machine");
        }
        command
    };
    command.arg("--tokenizer").arg(&common.tokenizer);
    command.arg("--timeout-s").arg(arguments.timeout_s.to_string());
    if arguments.warm {
        command.arg("--warm");
    }
    Ok(command)
}

/// Returns the memory of a process; zero if the system does not report it.
fn resident_bytes(process: u32) -> u64 {
    let statistics = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages: u64 = statistics.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}

/// Runs the engine's side.
pub fn serve(arguments: &Arguments) -> Result<(), String> {
    let common = &arguments.common;
    let tokenizer = Tokenizer::load(&common.tokenizer)?;
    let vocabulary = tokenizer.vocabulary();
    let opened = engines::open(&common.engines, &common.peers, &vocabulary, KeyOrder::default())?;
    let engine = opened.first().ok_or("no engine is given")?.engine.as_ref();
    let clock = Clock::new(common.shared_machine)?;
    let timeout = Duration::from_secs(arguments.timeout_s);
    let mut mask = vec![0; vocabulary.mask_words()];
    tell(&json!({"event": "ready", "release": engine.release()}));
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let case = case(&serde_json::from_str(&line).map_err(|error| error.to_string())?)?;
        let watch = watch();
        let options = Options {
            clock: &clock,
            end: vocabulary.end,
            timeout,
            warm: arguments.warm,
            // The data of the vocabulary is created and warmed up here, so that the order of rows does not matter.
            shared: true,
            rows: common.rows,
            prepare: None,
            watch: Some(&watch),
        };
        engine.forget();
        engines::warm_up(engine, &vocabulary)?;
        tell(&json!({"event": "begin"}));
        let record = replay(engine, &case, &options, &mut mask);
        tell(&json!({"event": "end", "figures": figures(&record)}));
    }
    Ok(())
}

/// Parses a case from the harness's line.
fn case(question: &Value) -> Result<Case, String> {
    let kind = match question["kind"].as_str() {
        Some("regex") => Kind::Regex,
        Some("lark") => Kind::Lark,
        Some("gbnf") => Kind::Gbnf,
        _ => Kind::JsonSchema,
    };
    let texts: Vec<Vec<u32>> =
        serde_json::from_value(question["texts"].clone()).map_err(|error| error.to_string())?;
    let instance = |tokens| Instance { valid: true, text: String::new(), tokens };
    Ok(Case {
        name: String::new(),
        kind,
        source: question["source"].as_str().unwrap_or_default().to_owned(),
        instances: texts.into_iter().map(instance).collect(),
    })
}

/// Reports progress to the harness from time to time.
fn watch() -> impl Fn(&SoFar<'_>) {
    let (told, is_warm) = (Cell::new(None::<Instant>), Cell::new(false));
    move |so_far| {
        if so_far.is_warm {
            if !is_warm.replace(true) {
                tell(&json!({"event": "warm"}));
            }
        } else if told.get().is_none_or(|told| told.elapsed() > SO_FAR) {
            let figures = measured(Some(so_far.first_mask), so_far.masks, so_far.accepts);
            tell(&json!({"event": "so_far", "figures": figures}));
            told.set(Some(Instant::now()));
        }
    }
}

fn tell(event: &Value) {
    let mut out = std::io::stdout().lock();
    // If the harness is gone, no output is needed.
    let _ = writeln!(out, "{event}").and_then(|()| out.flush());
}

fn figures(record: &Record) -> Value {
    let mut figures = measured(record.first_mask, &record.masks, &record.accepts);
    let (outcome, problem) = match &record.outcome {
        Outcome::Refused(message) if message.starts_with(TIMED_OUT) => ("timeout", message.as_str()),
        Outcome::Refused(message) => ("refused", message.as_str()),
        Outcome::Judged { valid_rejected: true, .. } => ("wrong", ""),
        Outcome::Judged { .. } => ("done", ""),
    };
    figures["outcome"] = json!(outcome);
    if !problem.is_empty() {
        figures["problem"] = json!(problem);
    }
    figures["compile_us"] = json!(record.compile.map(micros));
    figures["bytes"] = json!(record.bytes);
    figures["rejected"] = json!(record.rejected);
    figures["warm_mask_us"] = summary(&record.warm_masks);
    figures["warm_accept_us"] = summary(&record.warm_accepts);
    figures
}

fn measured(first_mask: Option<u64>, masks: &[u64], accepts: &[u64]) -> Value {
    let total: u64 = first_mask.iter().chain(masks).chain(accepts).sum();
    json!({
        "ttfm_us": first_mask.map(micros),
        "mask_us": summary(masks),
        "accept_us": summary(accepts),
        "total_us": micros(total),
    })
}

/// Returns a summary, or null for an empty list: a worker that was stopped early has no median.
fn summary(nanos: &[u64]) -> Value {
    if nanos.is_empty() { Value::Null } else { Times(nanos.to_vec()).sorted().summary().to_json() }
}

fn micros(nanos: u64) -> f64 {
    rounded(nanos as f64 / 1e3)
}
