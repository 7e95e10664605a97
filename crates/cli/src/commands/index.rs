//! `maskwright index`: computes all masks of a constraint ahead of time, in a file.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use maskwright::{Compiler, Error, Index, IndexLimits, map_index};
use serde_json::{Value, json};

use crate::args::{ConstraintArgs, TokenizerArgs};
use crate::failure::{Failure, Verdict};
use crate::readable;
use crate::source::Source;

/// Compile a constraint with finitely many states ahead of time, into a file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  maskwright index build --regex '[0-9]{4}-[0-9]{2}' --out month.mwi
  maskwright index info month.mwi
  maskwright index verify month.mwi --regex '[0-9]{4}-[0-9]{2}'";

#[derive(Debug, clap::Subcommand)]
enum Command {
    Build(BuildArgs),
    Info(InfoArgs),
    Verify(VerifyArgs),
}

/// Build an index and write it to a file
#[derive(Debug, clap::Args)]
#[command(after_help = BUILD_EXAMPLES)]
struct BuildArgs {
    #[command(flatten)]
    indexed: IndexArgs,
    /// The file to write. It is replaced completely or not at all
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const BUILD_EXAMPLES: &str = "\
Examples:
  maskwright index build --choice yes --choice no --out answer.mwi
  maskwright index build --schema person.json --objects closed --out person.mwi
  maskwright index build --regex '[a-z]{0,65535}' --max-states 100000 --out letters.mwi

A constraint whose nesting has no end, or that must remember earlier text, has no index: that is exit code 2.";

/// The constraint to index, and the limits.
#[derive(Debug, clap::Args)]
struct IndexArgs {
    #[command(flatten)]
    constraint: ConstraintArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// The maximum number of states of the automaton
    #[arg(long, value_name = "N", default_value_t = IndexLimits::default().states)]
    max_states: usize,
    /// The maximum size in bytes of the index, and of the memory to build it
    #[arg(long, value_name = "N", default_value_t = IndexLimits::default().bytes)]
    max_bytes: usize,
}

impl IndexArgs {
    /// Returns the constraint, and a compiler with the options of the flags.
    fn load(&self) -> Result<(Source, Compiler), Failure> {
        let source = self.constraint.source()?;
        let vocabulary = self.tokenizer.load()?.vocabulary().clone();
        let compiler = Compiler::with_options(vocabulary, source.options.clone());
        Ok((source, compiler))
    }

    fn limits(&self) -> IndexLimits {
        let mut limits = IndexLimits::default();
        (limits.states, limits.bytes) = (self.max_states, self.max_bytes);
        limits
    }
}

/// Show the properties of an index
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  maskwright index info month.mwi\n  maskwright index info month.mwi --json"
)]
struct InfoArgs {
    /// The index file
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Compare every state and every token of an index with its constraint, byte by byte
#[derive(Debug, clap::Args)]
#[command(after_help = VERIFY_EXAMPLES)]
struct VerifyArgs {
    /// The index file
    file: PathBuf,
    #[command(flatten)]
    indexed: IndexArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  maskwright index verify answer.mwi --choice yes --choice no
  maskwright index verify person.mwi --schema person.json --objects closed

Exit code 1 means that the index and the constraint differ, 2 that the file cannot be used at all.";

impl Args {
    pub(crate) fn wants_json(&self) -> bool {
        match &self.command {
            Command::Build(args) => args.json,
            Command::Info(args) => args.json,
            Command::Verify(args) => args.json,
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    match &args.command {
        Command::Build(args) => build(args, out),
        Command::Info(args) => info(args, out),
        Command::Verify(args) => verify(args, out),
    }
}

fn build(args: &BuildArgs, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let (source, compiler) = args.indexed.load()?;
    let begin = Instant::now();
    let index =
        with_progress("building the index", || compiler.index(&source.constraint, &args.indexed.limits()))
            .map_err(|error| match error {
                Error::Index(error) => Failure::sentence(format!("{}: {error}", source.name)),
                error => source.failure(&error),
            })?;
    let took = begin.elapsed();
    replace(&args.out, &index)
        .map_err(|error| Failure::sentence(format!("cannot write {}: {error}", args.out.display())))?;
    if args.json {
        let mut value = numbers(&index);
        value["build_ms"] = (took.as_secs_f64() * 1e3).into();
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(out, "{}: {} in {}", args.out.display(), summary(&index), readable::time(took))?;
    }
    Ok(Verdict::Yes)
}

fn info(args: &InfoArgs, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let begin = Instant::now();
    let index = open(&args.file)?;
    let took = begin.elapsed();
    if args.json {
        let mut value = numbers(&index);
        value["load_ms"] = (took.as_secs_f64() * 1e3).into();
        writeln!(out, "{value:#}")?;
        return Ok(Verdict::Yes);
    }
    writeln!(out, "{}: {}, loaded in {}", args.file.display(), summary(&index), readable::time(took))?;
    writeln!(out, "  {:<16}{:032x}", "vocabulary", index.vocabulary())?;
    let (masks, bases) = (readable::count(index.masks()), readable::count(index.bases()));
    writeln!(out, "  {:<16}{masks}, {bases} of them bitsets", "masks")?;
    for (name, bytes) in index.sections() {
        writeln!(out, "  {name:<16}{}", readable::size(bytes))?;
    }
    Ok(Verdict::Yes)
}

fn verify(args: &VerifyArgs, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let index = open(&args.file)?;
    let (source, compiler) = args.indexed.load()?;
    let refuse = |text: String| Failure::sentence(format!("{}: {text}", args.file.display()));
    index.check_vocabulary(compiler.vocabulary()).map_err(|error| refuse(error.to_string()))?;
    let checked = with_progress("comparing", || {
        compiler.verify_index(&index, &source.constraint, &args.indexed.limits())
    })
    .map_err(|error| source.failure(&error))?;
    match checked {
        Ok(checks) if args.json => {
            let value = json!({"ok": true, "states": checks.states, "transitions": checks.transitions});
            writeln!(out, "{value:#}")?;
            Ok(Verdict::Yes)
        }
        Ok(checks) => {
            let (states, transitions) = (readable::count(checks.states), readable::count(checks.transitions));
            writeln!(out, "{}: right, {states} states and {transitions} transitions", args.file.display())?;
            Ok(Verdict::Yes)
        }
        Err(flaw) if args.json => {
            writeln!(out, "{:#}", json!({"ok": false, "flaw": flaw.to_string()}))?;
            Ok(Verdict::No)
        }
        Err(flaw) => {
            writeln!(out, "{}: {flaw}", args.file.display())?;
            Ok(Verdict::No)
        }
    }
}

fn open(path: &Path) -> Result<Index, Failure> {
    map_index(path).map_err(|error| Failure::sentence(format!("{}: {error}", path.display())))
}

fn summary(index: &Index) -> String {
    format!(
        "{} states, {} classes of tokens, {}",
        readable::count(index.len()),
        readable::count(index.classes()),
        readable::size(index.byte_len())
    )
}

fn numbers(index: &Index) -> Value {
    let sections: serde_json::Map<String, Value> =
        index.sections().map(|(name, bytes)| (name.to_owned(), bytes.into())).collect();
    json!({
        "ok": true,
        "states": index.len(),
        "classes": index.classes(),
        "masks": index.masks(),
        "bases": index.bases(),
        "bytes": index.byte_len(),
        "vocabulary": format!("{:032x}", index.vocabulary()),
        "vocabulary_size": index.vocabulary_size(),
        "sections": sections,
    })
}

/// Writes a new file and renames it, so that no process ever reads an incomplete one.
fn replace(path: &Path, index: &Index) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", process::id()));
    let new = path.with_file_name(name);
    let write = || {
        let mut file = fs::File::create(&new)?;
        index.save(&mut file)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_file(&new);
    })
}

/// Runs a function that may take long, and shows the seconds on a terminal.
fn with_progress<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, wait) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let begin = Instant::now();
            let mut shown = false;
            while wait.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                shown = true;
                // A failure to show progress is no reason to stop.
                let _ = write!(io::stderr(), "\r{what}: {} s", begin.elapsed().as_secs());
            }
            if shown {
                let _ = write!(io::stderr(), "\r{:width$}\r", "", width = what.len() + 16);
            }
        });
        let result = work();
        drop(done);
        result
    })
}
