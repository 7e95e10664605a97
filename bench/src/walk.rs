//! `mwbench walk`: random texts under the mask, checked by two independent validators.
//!
//! A walk starts with the empty text and takes one of the allowed tokens, each with the same probability, until the end
//! is chosen. Uniform choice alone would write strings forever, so the longer a text gets, the more often a token is
//! taken that closes something. A walk that is not finished within its budget is ignored; one in which nothing is
//! allowed is *stuck*, which is a bug of the engine. Every finished document is passed to the Rust crate `jsonschema`
//! and to the Python package with the same name.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use maskwright::{Compiler, Constraint, Matcher, TokenId, Vocabulary};
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::random::Random;
use crate::{corpus, output};

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  mwbench walk --data schemas --tokenizer tokenizer.json --walks 5 --json walks.json"
)]
pub struct Arguments {
    /// Folder of files {"schema": …, "tests": […]}
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// A tokenizer file
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Walks for each schema
    #[arg(long, value_name = "N", default_value_t = 5)]
    walks: usize,
    /// Use only this number of schemas, drawn at random
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Seed for the sample and for the walks
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Tokens after which a walk is given up
    #[arg(long, value_name = "N", default_value_t = 600)]
    budget: usize,
    /// A Python that has the package jsonschema
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
    /// Do not use the Python validator
    #[arg(long)]
    without_python: bool,
    /// Print every document that a validator calls invalid, and every stuck walk
    #[arg(long)]
    verbose: bool,
    /// Write the counts as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Default)]
struct Counts {
    schemas: usize,
    refused: usize,
    walks: usize,
    finished: usize,
    stuck: usize,
    duplicate_keys: usize,
    valid_rust: usize,
    valid_python: usize,
    /// Documents of schemas that a validator itself cannot read; they count as valid.
    unjudged_rust: usize,
    unjudged_python: usize,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let mut files = corpus::list(&arguments.data)?;
    corpus::draw(&mut files, arguments.sample, arguments.seed);
    let tokenizer = maskwright_tokenizers::load(&arguments.tokenizer).map_err(|error| error.to_string())?;
    let compiler = Compiler::new(tokenizer.vocabulary().clone());
    let mut python = if arguments.without_python { None } else { Some(Python::start(&arguments.python)?) };
    let closers = Closers::of(tokenizer.vocabulary());
    let mut counts = Counts::default();
    let mut progress = Progress::new(files.len());
    for (number, file) in (0u64..).zip(&files) {
        let random = Random::new(arguments.seed.wrapping_mul(0x1_0001).wrapping_add(number));
        walk_schema(arguments, file, &compiler, &closers, random, python.as_mut(), &mut counts)?;
        progress.step(&file.file_stem().unwrap_or_default().to_string_lossy());
    }
    drop(progress);
    let python_said = python.is_some();
    println!(
        "{} schemas, {} refused; {} walks, {} finished, {} stuck, {} with a key twice",
        counts.schemas, counts.refused, counts.walks, counts.finished, counts.stuck, counts.duplicate_keys
    );
    println!("valid by the Rust judge    {} ({} not judged)", counts.valid_rust, counts.unjudged_rust);
    if python_said {
        println!(
            "valid by the Python judge  {} ({} not judged)",
            counts.valid_python, counts.unjudged_python
        );
    }
    let report = json!({
        "walks": counts.walks,
        "finished": counts.finished,
        "valid_rust": counts.valid_rust,
        "valid_python": python_said.then_some(counts.valid_python),
        "stuck": counts.stuck,
        "schemas": counts.schemas,
        "refused": counts.refused,
        "duplicate_keys": counts.duplicate_keys,
        "unjudged_rust": counts.unjudged_rust,
        "unjudged_python": python_said.then_some(counts.unjudged_python),
    });
    output::write_json(arguments.json.as_deref(), &report)
}

fn walk_schema(
    arguments: &Arguments,
    file: &Path,
    compiler: &Compiler,
    closers: &Closers,
    mut random: Random,
    python: Option<&mut Python>,
    counts: &mut Counts,
) -> Result<(), String> {
    let (schema, _) = corpus::read(file)?;
    counts.schemas += 1;
    let Ok(compiled) = compiler.compile(&Constraint::json_schema(schema.as_str())) else {
        counts.refused += 1;
        return Ok(());
    };
    let mut documents = Vec::new();
    for _ in 0..arguments.walks {
        counts.walks += 1;
        match walk(&mut compiled.matcher(), closers, &mut random, arguments.budget) {
            Walk::Finished(text) => documents.push(text),
            Walk::GivenUp => {}
            Walk::Stuck(text) => {
                counts.stuck += 1;
                if arguments.verbose {
                    println!("{}: stuck after {}", file.display(), text.escape_ascii());
                }
            }
        }
    }
    counts.finished += documents.len();
    judge(arguments, file, &schema, documents, python, counts)
}

/// Asks both validators.
fn judge(
    arguments: &Arguments,
    file: &Path,
    schema: &str,
    documents: Vec<Vec<u8>>,
    python: Option<&mut Python>,
    counts: &mut Counts,
) -> Result<(), String> {
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let mut values = Vec::with_capacity(documents.len());
    for document in &documents {
        let value: Result<Value, _> = serde_json::from_slice(document);
        match value {
            Ok(value) => {
                // If a key occurs twice, the parser keeps only one, and the numbers of keys differ.
                counts.duplicate_keys += usize::from(count_keys(document) != keys_of(&value));
                values.push(value);
            }
            Err(error) => {
                println!("{}: not JSON ({error}): {}", file.display(), document.escape_ascii());
            }
        }
    }
    let rust = jsonschema::options().should_validate_formats(true).build(&schema);
    let answers = python.map(|python| python.ask(&schema, &values)).transpose()?;
    for (at, value) in values.iter().enumerate() {
        match &rust {
            Ok(rust) if rust.is_valid(value) => counts.valid_rust += 1,
            Ok(rust) => {
                if arguments.verbose {
                    let errors: Vec<_> = rust.iter_errors(value).map(|error| error.to_string()).collect();
                    println!("{}: Rust judge: {}: {value}", file.display(), errors.join("; "));
                }
            }
            Err(_) => {
                counts.unjudged_rust += 1;
                counts.valid_rust += 1;
            }
        }
        match answers.as_deref().map(|answers| answers.get(at)) {
            None => {}
            Some(Some(Answer::Valid)) => counts.valid_python += 1,
            Some(Some(Answer::Unable) | None) => {
                counts.unjudged_python += 1;
                counts.valid_python += 1;
            }
            Some(Some(Answer::Invalid(why))) if arguments.verbose => {
                println!("{}: Python judge: {why}: {value}", file.display());
            }
            Some(Some(Answer::Invalid(_))) => {}
        }
    }
    Ok(())
}

enum Walk {
    Finished(Vec<u8>),
    GivenUp,
    Stuck(Vec<u8>),
}

fn walk(matcher: &mut Matcher, closers: &Closers, random: &mut Random, budget: usize) -> Walk {
    let vocabulary = matcher.bound().vocabulary().clone();
    let mut words = vec![0u32; vocabulary.size().div_ceil(32)];
    let mut text = Vec::new();
    for step in 0..budget {
        if matcher.fill_mask(&mut words).is_err() {
            return Walk::Stuck(text);
        }
        let ends = vocabulary.eos().iter().any(|eos| words[eos.index() / 32] >> (eos.index() % 32) & 1 == 1);
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        let hurry = random.below(budget) < step * 2;
        if ends && (hurry || random.below(count + 8) < 8) {
            return Walk::Finished(text);
        }
        let closing = if hurry { closers.pick(&words, random) } else { None };
        let Some(token) = closing.or_else(|| pick(&words, count, random)) else { return Walk::Stuck(text) };
        if vocabulary.eos().contains(&token) {
            return Walk::Finished(text);
        }
        if matcher.accept(token).is_err() {
            return Walk::Stuck(text);
        }
        text.extend_from_slice(vocabulary.bytes(token));
    }
    Walk::GivenUp
}

/// Returns a random token of a mask.
pub fn pick(words: &[u32], count: usize, random: &mut Random) -> Option<TokenId> {
    if count == 0 {
        return None;
    }
    let mut left = random.below(count) as u32;
    for (at, &word) in words.iter().enumerate() {
        if left < word.count_ones() {
            let mut word = word;
            for _ in 0..left {
                word &= word - 1;
            }
            return Some(TokenId((at * 32) as u32 + word.trailing_zeros()));
        }
        left -= word.count_ones();
    }
    None
}

/// Tokens that close something: a quote, a bracket, a brace, or several.
struct Closers(Vec<TokenId>);

impl Closers {
    fn of(vocabulary: &Arc<Vocabulary>) -> Closers {
        let closes = |bytes: &[u8]| !bytes.is_empty() && bytes.iter().all(|byte| b"\"]}".contains(byte));
        Closers(vocabulary.ordinary().filter(|(_, bytes)| closes(bytes)).map(|(token, _)| token).collect())
    }

    fn pick(&self, words: &[u32], random: &mut Random) -> Option<TokenId> {
        let allowed: Vec<TokenId> =
            self.0.iter().copied().filter(|t| words[t.index() / 32] >> (t.index() % 32) & 1 == 1).collect();
        (!allowed.is_empty()).then(|| allowed[random.below(allowed.len())])
    }
}

/// Counts the keys of a JSON text, including duplicates.
fn count_keys(text: &[u8]) -> usize {
    let (mut in_string, mut escaped, mut keys) = (false, false, 0);
    for &byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else {
            in_string = byte == b'"';
            keys += usize::from(byte == b':');
        }
    }
    keys
}

fn keys_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(keys_of).sum(),
        Value::Object(map) => map.len() + map.values().map(keys_of).sum::<usize>(),
        _ => 0,
    }
}

/// The Python validator, a process that answers line by line.
struct Python {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

enum Answer {
    Valid,
    Invalid(String),
    /// It cannot read the schema.
    Unable,
}

const JUDGE: &str = include_str!("../python/judge.py");

impl Python {
    fn start(python: &Path) -> Result<Python, String> {
        let name = python.display();
        let mut child = Command::new(python)
            .args(["-c", JUDGE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                format!("cannot start {name}: {error}; name one with --python, or use --without-python")
            })?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("cannot talk to {name}"));
        };
        let mut python = Python { child, questions, answers: BufReader::new(answers) };
        if python.line()?.trim() != "ready" {
            return Err(format!(
                "{name} lacks the package jsonschema; install it, name another with --python, or use --without-python"
            ));
        }
        Ok(python)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| format!("the Python judge: {error}"))?;
        Ok(line)
    }

    fn ask(&mut self, schema: &Value, documents: &[Value]) -> Result<Vec<Answer>, String> {
        let question = json!({"schema": schema, "documents": documents});
        writeln!(self.questions, "{question}").map_err(|error| format!("the Python judge: {error}"))?;
        self.questions.flush().map_err(|error| format!("the Python judge: {error}"))?;
        let line = self.line()?;
        let answers: Vec<Value> = serde_json::from_str(&line)
            .map_err(|error| format!("the Python judge said {line:?}: {error}"))?;
        let answer = |value: &Value| match value {
            Value::Bool(true) => Answer::Valid,
            Value::Null => Answer::Unable,
            other => Answer::Invalid(other.as_str().unwrap_or("invalid").to_owned()),
        };
        Ok(answers.iter().map(answer).collect())
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // The process may already be gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
