//! `maskwright demo`: accepts a text token by token, and shows the size and the time of each mask.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maskwright::explain::Explanation;
use maskwright::{Constraint, Matcher, TokenId, TokenMask, Vocabulary};
use maskwright_tokenizers::Tokenizer;

use crate::args::TokenizerArgs;
use crate::commands::explain;
use crate::commands::mask::tokens_named;
use crate::failure::{Failure, Verdict};
use crate::paint::{Ink, Paint};
use crate::readable;
use crate::source::{Compiled, Source};

/// Show how a text is accepted token by token, with mask sizes and times
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Print without color, as with `NO_COLOR` in the environment
    #[arg(long)]
    no_color: bool,
}

const EXAMPLES: &str = "\
Examples:
  maskwright demo
  maskwright demo --tokenizer model.gguf --no-color";

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "customer": {"type": "string", "minLength": 1, "maxLength": 40},
    "currency": {"enum": ["EUR", "GBP", "USD"]},
    "lines": {
      "type": "array",
      "minItems": 1,
      "items": {
        "type": "object",
        "properties": {
          "item": {"type": "string"},
          "quantity": {"type": "integer"},
          "price": {"type": "number"}
        },
        "required": ["item", "quantity", "price"],
        "additionalProperties": false
      }
    },
    "paid": {"type": "boolean"}
  },
  "required": ["customer", "currency", "lines", "paid"],
  "additionalProperties": false
}"#;

const INVOICE: &str = r#"{"customer": "Ada Lovelace", "currency": "USD", "lines": [{"item": "Brass cogwheel №7", "quantity": 12, "price": 3.75}], "paid": true}"#;

const DATE: &str = "(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";

const SUM: &str = r#"root ::= term (("+" | "*") term)*
term ::= [0-9]+ | "(" root ")""#;

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let paint = Paint::detect(args.no_color);
    let begin = Instant::now();
    let tokenizer = args.tokenizer.load()?;
    let loaded = begin.elapsed();
    let stage = Stage { tokenizer: &tokenizer, paint };
    writeln!(out, "\n{}  which tokens may come next, exactly\n", paint.text(Ink::Bold, "maskwright"))?;
    let path = args.tokenizer.path()?;
    let size = readable::count(tokenizer.vocabulary().size());
    stage.fact(
        "tokenizer",
        format!("{} – {size} tokens, loaded in {}", path.display(), readable::time(loaded)),
        out,
    )?;
    let replay = stage.invoice(out)?;
    stage.rejected_token(out)?;
    stage.small("A regular expression", Constraint::regex(DATE), "2031-1", out)?;
    stage.small("A grammar with recursion", Constraint::ebnf(SUM), "(1+2", out)?;
    stage.summary(&replay, out)?;
    Ok(Verdict::Yes)
}

struct Stage<'t> {
    tokenizer: &'t Tokenizer,
    paint: Paint,
}

/// The cost of accepting one token.
struct Step {
    token: TokenId,
    allowed: usize,
    mask: Duration,
    accept: Duration,
}

struct Replay {
    steps: Vec<Step>,
    compile: Duration,
    first: Duration,
}

impl Stage<'_> {
    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.tokenizer.vocabulary()
    }

    fn fact(&self, label: &str, text: impl AsRef<str>, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "  {}  {}", self.paint.text(Ink::Cyan, format!("{label:<10}")), text.as_ref())?;
        Ok(())
    }

    fn heading(&self, text: &str, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "\n{}", self.paint.text(Ink::Bold, text))?;
        Ok(())
    }

    fn compile(&self, constraint: Constraint) -> Result<Compiled, Failure> {
        Source::new("demo", SCHEMA, constraint).compile(self.vocabulary().clone())
    }

    /// Accepts the invoice token by token.
    fn invoice(&self, out: &mut dyn Write) -> Result<Replay, Failure> {
        let tokens = self.tokenizer.encode(INVOICE)?;
        let compiled = self.compile(Constraint::json_schema(SCHEMA))?;
        let (time, bytes) = (readable::time(compiled.time), readable::size(compiled.constraint.heap_bytes()));
        self.fact("constraint", format!("JSON Schema of an invoice – compiled in {time}, {bytes}"), out)?;
        let mut matcher = compiled.constraint.matcher();
        let replay = replay(&mut matcher, &tokens, compiled.time)?;
        self.heading("Token by token: how many tokens are allowed, and which one is taken", out)?;
        self.write_steps(&replay.steps, out)?;
        self.heading("The whole text, as the tokenizer cuts it", out)?;
        let mut line = String::new();
        for (at, step) in replay.steps.iter().enumerate() {
            line += &self.paint.text(Ink::Token(at), readable::token(self.vocabulary(), step.token));
        }
        writeln!(out, "  {line}")?;
        let complete = matcher.is_accepting();
        let verdict = if complete { "complete: now the text may end" } else { "not complete" };
        writeln!(out, "  {}", self.paint.text(if complete { Ink::Green } else { Ink::Red }, verdict))?;
        Ok(replay)
    }

    fn write_steps(&self, steps: &[Step], out: &mut dyn Write) -> Result<(), Failure> {
        let head = format!("  {:<18}{:<28}{:>9}{:>11}{:>11}", "token", "", "allowed", "mask", "accept");
        writeln!(out, "{}", self.paint.text(Ink::Dim, head))?;
        for (at, step) in steps.iter().enumerate() {
            let name = readable::clipped(&readable::token(self.vocabulary(), step.token), 16);
            let pad = " ".repeat(18_usize.saturating_sub(name.chars().count()));
            let bar = bar(step.allowed, self.vocabulary().size());
            let ink = match step.allowed {
                0..=1 => Ink::Cyan,
                2..=999 => Ink::Yellow,
                _ => Ink::Green,
            };
            writeln!(
                out,
                "  {}{pad}{}{:>9}{:>11}{:>11}",
                self.paint.text(Ink::Token(at), &name),
                self.paint.text(ink, format!("{bar:<28}")),
                readable::count(step.allowed),
                readable::time(step.mask),
                readable::time(step.accept),
            )?;
        }
        Ok(())
    }

    /// Shows a token of which only the beginning is allowed.
    fn rejected_token(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let after =
            INVOICE.split_inclusive("USD").next().and_then(|text| text.strip_suffix("USD")).unwrap_or("");
        let compiled = self.compile(Constraint::json_schema(SCHEMA))?;
        let mut matcher = compiled.constraint.matcher();
        accept_text(&mut matcher, after)?;
        let candidates = ["USA", "Euro", "USE", "Eu", "GB ", "U.", "X", "x"];
        let found = candidates.iter().flat_map(|text| tokens_named(self.vocabulary(), text));
        let is_wrong = |token: &TokenId| matches!(matcher.allows(*token), Ok(false));
        let Some(token) = found.into_iter().find(is_wrong) else { return Ok(()) };
        self.heading("A token that is not allowed, and why", out)?;
        let mut shown = Vec::new();
        explain::write(&Explanation::of(&matcher, token), self.vocabulary(), after, self.paint, &mut shown)?;
        for line in String::from_utf8_lossy(&shown).lines() {
            writeln!(out, "  {line}")?;
        }
        Ok(())
    }

    /// Shows another constraint, and what may come after some text.
    fn small(
        &self,
        title: &str,
        constraint: Constraint,
        after: &str,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        self.heading(title, out)?;
        if let Constraint::Regex(text) | Constraint::Ebnf(text) = &constraint {
            for line in text.lines() {
                writeln!(out, "  {}", self.paint.text(Ink::Dim, line))?;
            }
        }
        let compiled = self.compile(constraint)?;
        let mut matcher = compiled.constraint.matcher();
        accept_text(&mut matcher, after)?;
        let (allowed, time) = timed_mask(&mut matcher)?;
        let mut some: Vec<String> = Vec::new();
        for token in allowed.iter().take(10) {
            let number = some.len();
            some.push(self.paint.text(Ink::Token(number), readable::token(self.vocabulary(), token)));
        }
        let more = if allowed.count() > some.len() { " …" } else { "" };
        let number = readable::count(allowed.count());
        let time = readable::time(time);
        writeln!(
            out,
            "  after {}: {number} tokens in {time}: {}{more}",
            self.paint.text(Ink::Bold, after),
            some.join(" ")
        )?;
        Ok(())
    }

    fn summary(&self, replay: &Replay, out: &mut dyn Write) -> Result<(), Failure> {
        let middle = |pick: fn(&Step) -> Duration| {
            let mut times: Vec<Duration> = replay.steps.iter().map(pick).collect();
            times.sort_unstable();
            readable::time(times.get(times.len() / 2).copied().unwrap_or_default())
        };
        let tokens = replay.steps.len();
        let text = format!(
            "{tokens} tokens accepted: half of the masks within {}, half of the accepts within {}; constraint to first mask {}.",
            middle(|step| step.mask),
            middle(|step| step.accept),
            readable::time(replay.compile + replay.first),
        );
        writeln!(out, "\n{}", self.paint.text(Ink::Bold, text))?;
        Ok(())
    }
}

fn replay(matcher: &mut Matcher, tokens: &[TokenId], compile: Duration) -> Result<Replay, Failure> {
    let mut steps = Vec::with_capacity(tokens.len());
    for &token in tokens {
        let (allowed, mask) = timed_mask(matcher)?;
        let begin = Instant::now();
        matcher.accept(token).map_err(|error| Failure::sentence(format!("token {}: {error}", token.0)))?;
        let accept = begin.elapsed();
        steps.push(Step { token, allowed: allowed.count(), mask, accept });
    }
    let first = steps.first().map_or(Duration::ZERO, |step: &Step| step.mask);
    Ok(Replay { steps, compile, first })
}

fn timed_mask(matcher: &mut Matcher) -> Result<(TokenMask, Duration), Failure> {
    let size = matcher.bound().vocabulary().size();
    let mut words = vec![0; size.div_ceil(32)];
    let begin = Instant::now();
    matcher.fill_mask(&mut words).map_err(|error| Failure::sentence(error.to_string()))?;
    let time = begin.elapsed();
    Ok((TokenMask::from_words(&words, size), time))
}

fn accept_text(matcher: &mut Matcher, text: &str) -> Result<(), Failure> {
    matcher.accept_bytes(text.as_bytes()).map_err(|error| Failure::sentence(error.to_string()))
}

/// Returns a bar on a logarithmic scale: one block for one allowed token and 26 for all of them.
fn bar(allowed: usize, size: usize) -> String {
    if allowed == 0 {
        return String::new();
    }
    let scale = |number: usize| u64::from(number.max(1).ilog2());
    let length = 1 + 25 * scale(allowed) / scale(size).max(1);
    "█".repeat(usize::try_from(length).unwrap_or(1))
}
