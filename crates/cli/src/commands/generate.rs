//! `maskwright generate`: lets a model write, with or without a constraint, and shows what it costs.

use std::io::{self, Write};
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use maskwright::weighted::{Guidance, STEPS, Weights};
use maskwright::{Constraint, Healed, StopStream, StopStrings, heal};
use maskwright_runtime::model::LoadOptions;
use maskwright_runtime::scheduler::{Options, Report, Turn, Written};
use maskwright_runtime::text::chat::Conversation;
use maskwright_runtime::{
    Event, Loaded, MatcherGuide, Reason, Request, Sampling, Scheduler, Tries, Usage, WeightedGuide, What,
};
use maskwright_tokenizers::Tokenizer;
use serde_json::{Value, json};

use super::model::Runtime;
use crate::args::{MaybeConstraintArgs, read_text};
use crate::failure::{Failure, Verdict};
use crate::paint::{Ink, Paint};
use crate::readable;
use crate::source::Source;

/// Let a model write, with or without a constraint
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// A GGUF file, a folder with a model, or `smollm2`, the small model that `make assets` fetches
    #[arg(long, value_name = "PATH", default_value = "smollm2", help_heading = "Model")]
    model: PathBuf,
    /// Threads that compute; by default one less than the number of processors
    #[arg(long, value_name = "N", help_heading = "Model")]
    threads: Option<NonZero<usize>>,
    /// The runtime for the model
    #[arg(long, value_name = "NAME", value_enum, default_value_t, help_heading = "Model")]
    runtime: Runtime,
    /// The prompt for the model
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, required_unless_present = "prompt_file")]
    prompt: Option<String>,
    /// A file with the prompt; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    /// The system message
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "raw")]
    system: Option<String>,
    /// Continue the prompt as plain text instead of answering it in a conversation
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    constraint: MaybeConstraintArgs,
    /// The factor for the log probabilities of --pcfg that are added to the model's; 0 applies only the mask [default:
    /// 1]
    #[arg(long, value_name = "X", allow_hyphen_values = true, help_heading = "Grammars with probabilities")]
    lambda: Option<f64>,
    /// How many of the model's best tokens --pcfg scores; all others are dropped; 0 scores all [default: 64]
    #[arg(long, value_name = "K", help_heading = "Grammars with probabilities")]
    scored: Option<usize>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Ask the model for every token, even if the constraint leaves no choice
    #[arg(long)]
    no_jump_forward: bool,
    /// Complete a constrained answer within --max-tokens instead of cutting it off there
    #[arg(long)]
    finish: bool,
    /// Sample from the model's own distribution over valid answers instead of token by token under the mask; needs a
    /// --temperature above 0
    #[arg(long)]
    exact: bool,
    /// With --exact, the maximum number of tries
    #[arg(long, value_name = "N", default_value_t = 64, requires = "exact")]
    tries: usize,
    /// With --raw, keep the last token of the prompt even if it may be the beginning of a longer token
    #[arg(long)]
    no_heal: bool,
    /// Print without color, as with `NO_COLOR` in the environment
    #[arg(long)]
    no_color: bool,
    /// Print the answers and their cost as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
struct SamplingArgs {
    /// The maximum number of tokens of an answer
    #[arg(long, value_name = "N", default_value_t = 256, help_heading = "Sampling")]
    max_tokens: usize,
    /// A string that ends the answer; repeat the flag for each string
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Sampling")]
    stop: Vec<String>,
    /// The number of answers
    #[arg(short = 'n', long = "answers", value_name = "N", default_value_t = 1, help_heading = "Sampling")]
    answers: usize,
    /// 0 always takes the best token, 1 samples from the model's distribution
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_hyphen_values = true,
        help_heading = "Sampling"
    )]
    temperature: f32,
    /// Keep the K best tokens; 0 keeps all
    #[arg(long, value_name = "K", default_value_t = 0, help_heading = "Sampling")]
    top_k: u32,
    /// Keep the smallest set of best tokens with this total probability
    #[arg(long, value_name = "P", default_value_t = 1.0, help_heading = "Sampling")]
    top_p: f32,
    /// Keep tokens that have at least this share of the best token's probability
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = "Sampling")]
    min_p: f32,
    /// Above 1, tokens that occur in the prompt or the answer become less likely
    #[arg(long, value_name = "X", default_value_t = 1.0, help_heading = "Sampling")]
    repetition_penalty: f32,
    /// Subtracted from the logit of a token for each of its occurrences in the answer
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_hyphen_values = true,
        help_heading = "Sampling"
    )]
    frequency_penalty: f32,
    /// Subtracted from the logits of tokens that occur in the answer
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_hyphen_values = true,
        help_heading = "Sampling"
    )]
    presence_penalty: f32,
    /// The seed; the same seed gives the same answer
    #[arg(long, value_name = "N", help_heading = "Sampling")]
    seed: Option<u64>,
}

const EXAMPLES: &str = "\
Text that the model chose is shown plain, text that the constraint left no choice about is dimmed. What it cost goes to
standard error, so that the answer alone can be sent to a file. Exit code 1 says that a constrained answer is incomplete,
because it reached --max-tokens.

Examples:
  maskwright generate --prompt 'What is the capital of France?'
  maskwright generate --prompt 'When did the Second World War end?' --regex '19[0-9]{2}'
  maskwright generate --prompt 'Describe a cat.' --schema cat.json --temperature 1 --seed 7 > cat.txt
  maskwright generate --model model.gguf --runtime llama-cpp --prompt 'Name a colour.' --choice red --choice blue
  maskwright generate --prompt 'A drink, please?' --pcfg drinks.pcfg --lambda 0.5 --temperature 1
  maskwright generate --model model.gguf --raw --prompt 'Once upon a time' --max-tokens 50 --stop '.'";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let source = args.constraint.source()?;
    let guidance = args.guidance(source.as_ref())?;
    let options = LoadOptions { threads: args.threads, context: None };
    let loaded = args.runtime.open(&args.model, options, args.sampling.answers)?;
    let mut request = args.sampling.request(args.tokens(&loaded)?);
    let mut weights = None;
    let mut prefix = 0;
    if let Some(source) = &source {
        let mut healed = Healed { kept: request.prompt.len(), prefix: String::new() };
        // In a conversation an answer starts a new text, so there is nothing to heal.
        let is_weighted = matches!(source.constraint, Constraint::Pcfg(_));
        if (args.raw || loaded.template.is_none()) && !args.no_heal && !is_weighted {
            healed = heal(loaded.tokenizer.vocabulary(), &request.prompt);
        }
        request.prompt.truncate(healed.kept);
        prefix = healed.prefix.len();
        let compiled = source.compile_with_prefix(loaded.tokenizer.vocabulary().clone(), &healed.prefix)?;
        let mut guide = MatcherGuide::new(compiled.matcher()).with_jumps(loaded.tokenizer.clone());
        if args.finish || args.exact {
            let room = loaded.model.context().saturating_sub(request.prompt.len());
            guide.set_budget(request.max_tokens.unwrap_or(room).min(room)).map_err(sentence)?;
        }
        weights.clone_from(&compiled.remarks().weights);
        request.guide = Some(match &weights {
            Some(weights) if guidance.lambda() > 0.0 => {
                let scorer = weights.scorer(loaded.tokenizer.vocabulary().clone());
                Box::new(WeightedGuide::new(guide, scorer, guidance))
            }
            _ => Box::new(guide),
        });
    }
    let tokenizer = loaded.tokenizer.clone();
    let scheduler = loaded.schedule(Options { jump_forward: !args.no_jump_forward, ..Options::default() });
    let answers = request.answers;
    let mut show = Show {
        live: answers == 1 && !args.json,
        // If stop strings hold text back, it cannot be attributed to tokens.
        painter: args.sampling.stop.is_empty().then(|| Painter::new(args.no_color, &tokenizer, prefix)),
        answers: vec![Answer { prefix, ..Answer::default() }; answers],
        report: None,
    };
    if args.exact {
        let (events, report) = draw(&scheduler, request, args.tries)?;
        show.report = Some(report);
        for event in events {
            show.take(event.answer, event.what, out)?;
        }
    } else {
        for event in scheduler.stream(request).map_err(sentence)? {
            show.take(event.answer, event.what, out)?;
        }
    }
    show.end(args.json, weights.as_deref(), out)?;
    let is_incomplete =
        source.is_some() && show.answers.iter().any(|answer| answer.reason == Some(Reason::Length));
    Ok(if is_incomplete { Verdict::No } else { Verdict::Yes })
}

/// Draws the answers, and returns all their events with a report about the draw.
fn draw(scheduler: &Scheduler, request: Request, tries: usize) -> Result<(Vec<Event>, Report), Failure> {
    let mut tries = Tries::new(request, tries, Options::default().max_batch).map_err(sentence)?;
    let mut stream = scheduler.stream(tries.first()).map_err(sentence)?;
    while let Some(event) = stream.next() {
        match tries.take(event) {
            Turn::Wait => {}
            Turn::Next(request) => stream = scheduler.stream(request).map_err(sentence)?,
            Turn::Done(events) => return Ok((events, tries.report())),
            Turn::Failed(failure) => return Err(sentence(failure)),
        }
    }
    Err(Failure::sentence("the model stopped before an answer was there"))
}

fn sentence(error: impl std::fmt::Display) -> Failure {
    Failure::sentence(error.to_string())
}

impl Args {
    /// Returns the weight of a weighted grammar.
    fn guidance(&self, source: Option<&Source>) -> Result<Guidance, Failure> {
        let is_weighted = source.is_some_and(|source| matches!(source.constraint, Constraint::Pcfg(_)));
        if (self.lambda.is_some() || self.scored.is_some()) && !is_weighted {
            return Err(Failure::sentence("--lambda and --scored are about --pcfg"));
        }
        if is_weighted && self.exact {
            let why = "--exact draws from the model's own distribution, which --pcfg changes; leave out one of them";
            return Err(Failure::sentence(why));
        }
        Guidance::new(self.lambda.unwrap_or(1.0), self.scored.unwrap_or(Guidance::TOP_K)).map_err(sentence)
    }

    /// Returns the tokens of the prompt.
    fn tokens(&self, loaded: &Loaded) -> Result<Vec<maskwright::TokenId>, Failure> {
        let read;
        let text = match (&self.prompt, &self.prompt_file) {
            (Some(text), _) => text,
            (None, Some(path)) => {
                read = read_text(path)?;
                &read
            }
            (None, None) => return Err(Failure::sentence("no prompt was given; use --prompt TEXT")),
        };
        if self.raw || loaded.template.is_none() {
            return loaded.prompt(text).map_err(sentence);
        }
        let mut messages: Vec<Value> = Vec::new();
        messages.extend(self.system.as_ref().map(|text| json!({"role": "system", "content": text})));
        messages.push(json!({"role": "user", "content": text}));
        loaded.chat(&Conversation::new(&Value::from(messages))).map_err(sentence)
    }
}

impl SamplingArgs {
    fn request(&self, prompt: Vec<maskwright::TokenId>) -> Request {
        let mut request = Request::new(prompt);
        request.sampling = Sampling {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            seed: self.seed,
            ..Sampling::default()
        };
        request.max_tokens = Some(self.max_tokens);
        request.stop.clone_from(&self.stop);
        request.answers = self.answers;
        request
    }
}

/// An answer as far as it is known.
#[derive(Clone, Debug, Default)]
struct Answer {
    /// How many bytes of the coming text belong to the prompt.
    prefix: usize,
    text: String,
    reason: Option<Reason>,
    usage: Usage,
}

/// Shows answers: a single one while it is written, several when they are complete.
struct Show {
    live: bool,
    painter: Option<Painter>,
    answers: Vec<Answer>,
    report: Option<Report>,
}

impl Show {
    fn take(&mut self, number: usize, what: What, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(answer) = self.answers.get_mut(number) else { return Ok(()) };
        let shown = match what {
            What::More { tokens, text } => {
                let text = cut(text, &mut answer.prefix);
                answer.text += &text;
                match &mut self.painter {
                    Some(painter) => painter.paint(&tokens),
                    None => text,
                }
            }
            What::Finished { text, reason, usage } => {
                let text = cut(text, &mut answer.prefix);
                answer.text += &text;
                (answer.reason, answer.usage) = (Some(reason), usage);
                self.painter.as_mut().map_or(text, Painter::finish)
            }
            What::Failed(failure) => return Err(sentence(failure)),
        };
        if self.live {
            out.write_all(shown.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    }

    fn end(&self, as_json: bool, weights: Option<&Weights>, out: &mut dyn Write) -> Result<(), Failure> {
        if as_json {
            let data = |answer: &Answer| {
                let mut data = answer.data();
                if let Some(weights) = weights {
                    data["weights"] = judgement(weights, &answer.text);
                }
                data
            };
            let answers: Vec<Value> = self.answers.iter().map(data).collect();
            let mut told = json!({"ok": true, "answers": answers});
            if let Some(report) = &self.report {
                let known = report.known;
                told["sampling"] = json!({
                    "exact": report.exact, "tries": report.tries, "tokens": report.tokens,
                    "mass": {"valid": known.valid, "lost": known.lost, "unaccounted": known.unaccounted},
                });
            }
            writeln!(out, "{told:#}")?;
            return Ok(());
        }
        if self.live {
            writeln!(out)?;
        } else {
            for (number, answer) in self.answers.iter().enumerate() {
                writeln!(out, "[{number}] {}", answer.text)?;
            }
        }
        out.flush()?;
        for answer in &self.answers {
            writeln!(io::stderr().lock(), "{}", answer.summary())?;
            if let Some(weights) = weights {
                writeln!(io::stderr().lock(), "{}", judged(weights, &answer.text))?;
            }
        }
        if let Some(report) = &self.report {
            writeln!(io::stderr().lock(), "{}", drawn(report))?;
        }
        Ok(())
    }
}

impl Answer {
    fn data(&self) -> Value {
        let usage = &self.usage;
        json!({
            "text": self.text,
            "finish_reason": self.reason.map(reason_name),
            "prompt_tokens": usage.prompt_tokens,
            "answer_tokens": usage.answer_tokens,
            "forced_tokens": usage.forced_tokens,
            "prefill_ms": milliseconds(usage.prefill),
            "decode_ms": milliseconds(usage.decode),
            "masks": usage.masks,
            "mask_us": milliseconds(usage.mask) * 1000.0,
        })
    }

    /// Returns a line with the number of tokens, the speed, and the cost of the constraint.
    fn summary(&self) -> String {
        let usage = &self.usage;
        // The first token is computed together with the prompt.
        let later = usage.answer_tokens.saturating_sub(1);
        let mut line = format!(
            "{} tokens, {} a second, after {} tokens of prompt in {}; ended by {}",
            usage.answer_tokens,
            rate(later, usage.decode),
            usage.prompt_tokens,
            readable::time(usage.prefill),
            self.reason.map_or("nothing", reason_name),
        );
        if usage.masks > 0 {
            let each = usage.mask / u32::try_from(usage.masks).unwrap_or(u32::MAX);
            line.extend(["; mask ", &readable::time(each), " a token"]);
        }
        if usage.forced_tokens > 0 {
            let share = share(usage.forced_tokens, usage.answer_tokens);
            line.extend(["; ", &usage.forced_tokens.to_string(), " tokens forced (", &share, ")"]);
        }
        line
    }
}

/// Evaluates a text with a weighted grammar.
fn judgement(weights: &Weights, text: &str) -> Value {
    match weights.judge(text.as_bytes(), STEPS) {
        Ok(found) => found.json(weights.grammar()),
        Err(error) => json!({"error": error.message}),
    }
}

/// Returns the same as one line.
fn judged(weights: &Weights, text: &str) -> String {
    match weights.judge(text.as_bytes(), STEPS) {
        Ok(found) => {
            let parse = found.best_parse.map(|tree| format!("; {}", tree.brackets(weights.grammar())));
            format!(
                "log P of the text {:.3}, of its beginning {:.3}{}",
                found.logprob,
                found.prefix_logprob,
                parse.unwrap_or_default()
            )
        }
        Err(error) => error.message,
    }
}

/// Returns a line about what a draw took.
fn drawn(report: &Report) -> String {
    let is_exact = report.exact.iter().all(|is_exact| *is_exact);
    let known = report.known;
    let outcome = if is_exact {
        "drawn from the model's distribution over valid answers"
    } else {
        "the tries were used up: the answer is valid, but was written under the mask"
    };
    format!(
        "{outcome}; {} tries, {} tokens; of the model's mass {:.3e} is known to be valid, {:.3e} is lost, {:.3e} unaccounted for",
        report.tries, report.tokens, known.valid, known.lost, known.unaccounted
    )
}

/// Removes from a text the rest of a prefix that belongs to the prompt.
fn cut(mut text: String, prefix: &mut usize) -> String {
    let length = (*prefix).min(text.len());
    *prefix -= length;
    // A prefix ends at a character boundary.
    if text.is_char_boundary(length) {
        text.drain(..length);
    }
    text
}

fn reason_name(reason: Reason) -> &'static str {
    match reason {
        Reason::Stop => "stop",
        Reason::Length => "length",
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn rate(count: usize, time: Duration) -> String {
    if count == 0 { "–".into() } else { format!("{:.1}", count as f64 / time.as_secs_f64()) }
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn share(part: usize, whole: usize) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole as f64)
}

/// Dims forced tokens.
struct Painter {
    paint: Paint,
    tokenizer: std::sync::Arc<Tokenizer>,
    text: StopStream,
    /// How many bytes of the coming text belong to the prompt.
    prefix: usize,
}

impl Painter {
    fn new(no_color: bool, tokenizer: &std::sync::Arc<Tokenizer>, prefix: usize) -> Self {
        let text = StopStrings::default().stream();
        Self { paint: Paint::detect(no_color), tokenizer: tokenizer.clone(), text, prefix }
    }

    fn paint(&mut self, tokens: &[Written]) -> String {
        let one = |written: &Written| {
            let text = self.text.push(self.tokenizer.vocabulary().bytes(written.token));
            let text = cut(text, &mut self.prefix);
            if written.is_forced && !text.is_empty() { self.paint.text(Ink::Dim, text) } else { text }
        };
        tokens.iter().map(one).collect()
    }

    fn finish(&mut self) -> String {
        self.text.finish()
    }
}
