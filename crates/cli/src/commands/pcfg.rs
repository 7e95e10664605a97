//! `maskwright pcfg`: grammars with probabilities.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use maskwright::Diagnostic;
use maskwright_weighted::{Options, Parser, Pcfg, Random, Real, Sampler, Training, best_parse, train};
use serde_json::{Value, json};

use crate::args::{file_name, read_text};
use crate::failure::{Failure, Verdict, diagnostic};

/// Grammars with probabilities: best parses, prefix probabilities, random sentences, training
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  maskwright pcfg parse  --grammar english.pcfg the dog sees Kim
  maskwright pcfg parse  --grammar english.pcfg --svg tree.svg the dog sees Kim
  maskwright pcfg prefix --grammar english.pcfg --json the dog
  maskwright pcfg sample --grammar english.pcfg --count 5 --seed 1
  maskwright pcfg train  --grammar english.pcfg --sentences corpus.txt > trained.pcfg

A grammar is a text with rules like
  S  -> NP VP [0.9] | S and S [0.1]
  NP -> \"Kim\" [1/2] | Det N [1/2]
  N  -> /[a-z]+/
The first rule is that of a whole sentence; docs/weighted.md has all of it.";

#[derive(Debug, clap::Subcommand)]
enum What {
    /// The most probable parse of a sentence, drawn
    Parse(Parse),
    /// The probability of all sentences with this prefix, after each word
    Prefix(Prefix),
    /// Random sentences
    Sample(Sample),
    /// Find probabilities that make sentences likely, by expectation maximization
    Train(Train),
}

#[derive(Debug, clap::Args)]
struct Source {
    /// A file with a grammar; `-` is standard input
    #[arg(long, value_name = "FILE")]
    grammar: PathBuf,
    /// Divide the probabilities of each symbol by their sum if it is not one
    #[arg(long)]
    normalise: bool,
    /// The symbol of a whole sentence; by default that of the first rule
    #[arg(long, value_name = "SYMBOL")]
    start: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Parse {
    #[command(flatten)]
    source: Source,
    /// Write the tree as an SVG picture to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The sentence, word by word
    words: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Prefix {
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The words
    words: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Sample {
    #[command(flatten)]
    source: Source,
    /// The number of sentences
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    count: usize,
    /// The seed of the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// The maximum number of words of a sentence
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    max_words: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Train {
    #[command(flatten)]
    source: Source,
    /// A file with sentences, one per line, words separated by spaces; `-` is standard input
    #[arg(long, value_name = "FILE")]
    sentences: PathBuf,
    /// The maximum number of rounds
    #[arg(long, value_name = "NUMBER", default_value_t = Training::default().rounds)]
    rounds: usize,
    /// The number of additional observations that are assumed for each rule
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    prior: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn wants_json(&self) -> bool {
        match &self.what {
            What::Parse(args) => args.json,
            What::Prefix(args) => args.json,
            What::Sample(args) => args.json,
            What::Train(args) => args.json,
        }
    }
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    match &args.what {
        What::Parse(args) => parse(args, out),
        What::Prefix(args) => prefix(args, out),
        What::Sample(args) => sample(args, out),
        What::Train(args) => training(args, out),
    }
}

/// A grammar with its source text, for messages.
struct Grammar {
    name: String,
    text: String,
    pcfg: Pcfg,
}

impl Source {
    fn read(&self) -> Result<Grammar, Failure> {
        let (name, text) = (file_name(&self.grammar), read_text(&self.grammar)?);
        let options = Options { normalise: self.normalise, start: self.start.clone(), ..Options::default() };
        let pcfg = Pcfg::parse(&text, &options).map_err(|remarks| refusal(&name, &text, &remarks))?;
        let shown: String = pcfg.warnings().iter().map(|remark| remark.render(&name, &text)).collect();
        // Warnings go to standard error; failing to write them is no reason to stop.
        let _ = std::io::stderr().lock().write_all(shown.as_bytes());
        Ok(Grammar { name, text, pcfg })
    }
}

impl Grammar {
    fn refuse(&self, remark: Diagnostic) -> Failure {
        refusal(&self.name, &self.text, &[remark])
    }
}

fn refusal(name: &str, text: &str, remarks: &[Diagnostic]) -> Failure {
    let problems: Vec<Value> = remarks.iter().map(|remark| diagnostic(remark, text)).collect();
    let message = remarks.first().map_or("the grammar is wrong", |remark| &remark.message);
    Failure::Constraint {
        shown: remarks.iter().map(|remark| remark.render(name, text)).collect(),
        data: json!({"message": message, "problems": problems}),
    }
}

fn parse(args: &Parse, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let grammar = args.source.read()?;
    let tree = best_parse(&grammar.pcfg, &args.words).map_err(|remark| grammar.refuse(remark))?;
    let Some(tree) = tree else {
        if args.json {
            writeln!(out, "{:#}", json!({"ok": true, "tree": null, "log_probability": null}))?;
        } else {
            writeln!(out, "no sentence of this grammar")?;
        }
        return Ok(Verdict::No);
    };
    if let Some(path) = &args.svg {
        write_file(path, &tree.svg(&grammar.pcfg))?;
    }
    let brackets = tree.brackets(&grammar.pcfg);
    if args.json {
        writeln!(
            out,
            "{:#}",
            json!({"ok": true, "tree": brackets, "log_probability": tree.log_probability})
        )?;
    } else {
        write!(out, "{}", tree.draw(&grammar.pcfg))?;
        writeln!(
            out,
            "probability {:e}, its logarithm {}",
            tree.log_probability.exp(),
            tree.log_probability
        )?;
    }
    Ok(Verdict::Yes)
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| Failure::sentence(format!("cannot write {}: {error}", file_name(path))))
}

/// Returns a logarithm for JSON, which has no infinity.
fn finite(log: f64) -> Value {
    if log.is_finite() { log.into() } else { Value::Null }
}

fn prefix(args: &Prefix, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let grammar = args.source.read()?;
    let mut parser = Parser::<Real>::new(&grammar.pcfg).map_err(|remark| grammar.refuse(remark))?;
    let mut logs = Vec::new();
    for word in &args.words {
        let went_on = logs.last().is_none_or(|log| *log > f64::NEG_INFINITY) && parser.step_word(word);
        logs.push(if went_on { parser.prefix_logprob() } else { f64::NEG_INFINITY });
    }
    let fits = logs.last().is_none_or(|log| *log > f64::NEG_INFINITY);
    let sentence = if fits { parser.sentence_logprob() } else { f64::NEG_INFINITY };
    if args.json {
        let logs: Vec<Value> = logs.iter().map(|log| finite(*log)).collect();
        writeln!(out, "{}", json!({"prefix_logprobs": logs, "sentence_logprob": finite(sentence)}))?;
    } else {
        for (word, log) in args.words.iter().zip(&logs) {
            writeln!(out, "{word:20} {:<14.6e} {log}", log.exp())?;
        }
        writeln!(out, "{:20} {:<14.6e} {sentence}", "as a sentence", sentence.exp())?;
        if fits {
            next(&grammar.pcfg, &parser, out)?;
        }
    }
    Ok(if fits { Verdict::Yes } else { Verdict::No })
}

/// Writes the most likely next words.
fn next(pcfg: &Pcfg, parser: &Parser<Real>, out: &mut dyn Write) -> Result<(), Failure> {
    const MAX_SHOWN_WORDS: usize = 10;
    let next = parser.next_terminal_distribution();
    let mut likely = next.terminals;
    likely.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named =
        likely.iter().take(MAX_SHOWN_WORDS).map(|(id, chance)| (pcfg.terminal(*id).to_string(), *chance));
    writeln!(out, "next:")?;
    for (name, chance) in named.chain((next.end > 0.0).then(|| ("the end".to_owned(), next.end))) {
        writeln!(out, "  {name:18} {chance:.6}")?;
    }
    if likely.len() > MAX_SHOWN_WORDS {
        writeln!(out, "  and {} more", likely.len() - MAX_SHOWN_WORDS)?;
    }
    Ok(())
}

fn sample(args: &Sample, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let grammar = args.source.read()?;
    let sampler = Sampler::new(&grammar.pcfg, args.max_words).map_err(|remark| grammar.refuse(remark))?;
    let mut random = Random::new(args.seed);
    let mut sentences = Vec::new();
    for _ in 0..args.count {
        let words = sampler.sentence(&mut random).map_err(|remark| grammar.refuse(remark))?;
        if args.json {
            sentences.push(words);
        } else {
            writeln!(out, "{}", words.join(" "))?;
        }
    }
    if args.json {
        writeln!(out, "{:#}", json!({"ok": true, "sentences": sentences}))?;
    }
    Ok(Verdict::Yes)
}

fn training(args: &Train, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let grammar = args.source.read()?;
    let is_stdin = |path: &Path| path.as_os_str() == "-";
    if is_stdin(&args.source.grammar) && is_stdin(&args.sentences) {
        return Err(Failure::sentence("the grammar and the sentences cannot both come from standard input"));
    }
    if !(args.prior.is_finite() && args.prior >= 0.0) {
        return Err(Failure::sentence("--prior is a number that is not negative"));
    }
    let text = read_text(&args.sentences)?;
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let sentences: Vec<Vec<String>> =
        text.lines().filter(|line| !line.trim().is_empty()).map(words).collect();
    if sentences.is_empty() {
        return Err(Failure::sentence(format!(
            "{} has no sentences; write one a line",
            file_name(&args.sentences)
        )));
    }
    let how = Training { rounds: args.rounds, prior: args.prior, ..Training::default() };
    let trained =
        train(&grammar.pcfg, &sentences, &how).map_err(|remark| Failure::sentence(remark.message))?;
    if args.json {
        let answer = json!({
            "ok": true, "grammar": trained.grammar.to_string(), "log_likelihoods": trained.log_likelihoods,
        });
        writeln!(out, "{answer:#}")?;
    } else {
        for (round, log) in trained.log_likelihoods.iter().enumerate() {
            writeln!(out, "# round {round}: the logarithm of the likelihood is {log}")?;
        }
        write!(out, "{}", trained.grammar)?;
    }
    Ok(Verdict::Yes)
}
