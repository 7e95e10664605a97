//! How fast a model is here: reading a prompt, writing in batches, and writing under a constraint.
//!
//! ```sh
//! cargo run --release -p maskwright-runtime --example speed -- target/assets/smollm2 [threads]
//! cargo run --release -p maskwright-runtime --example speed --features llama-cpp -- target/assets/smollm2 1 llama-cpp
//! ```
//!
//! Constrained and free runs take turns, and the best of three rounds counts, because machines are shared. `speed mass [MODEL]` tells what the mass of masks costs: short answers with and without it take turns,
//! and the time on processors counts, which Linux tells, so that it does not matter who else wants them. `speed budget [TOKENIZER]` tells, in the same time, what a budget costs where a trigger must come behind a
//! free text: when it is set, and for all masks of an answer.

use std::error::Error;
use std::io::{Write, stdout};
use std::num::NonZero;
use std::time::{Duration, Instant};

use maskwright::{Budget, CompiledConstraint, Compiler, Constraint};
use maskwright_runtime::model::{Feed, LoadOptions, Logits, Model, SequenceId, Wanted};
use maskwright_runtime::scheduler::{Options, Stream};
use maskwright_runtime::{Loaded, MatcherGuide, Request, Sampling, Scheduler, Usage, What};
use maskwright_vocab::TokenId;

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "name": {"type": "string", "minLength": 60, "maxLength": 80}, "tags": {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 5},
    "price": {"type": "number"}, "size": {"enum": ["small", "medium", "large"]}},
    "required": ["name", "tags", "price", "size"], "additionalProperties": false}"#;
const MODEL: &str = "target/assets/smollm2";
const ROUNDS: usize = 3;
const CONTEXT: usize = 128;
/// The tokens of an answer.
const TOKENS: usize = 24;
/// For the mass of masks: so many rounds, of so many tokens.
const MASS_ROUNDS: usize = 30;
const MASS_TOKENS: usize = 12;
/// For budgets: a trigger behind a free text, and the tokens of an answer.
const TRIGGER: &str = r#"{"type": "structural_tag", "format": {"type": "sequence", "elements": [
    {"type": "any_text"}, {"type": "const_string", "value": "Answer: "}, {"type": "regex", "pattern": "19[0-9]{2}"}]}}"#;
const BUDGET_TOKENS: u32 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|word| word == "budget").is_some() {
        let path = arguments.next().unwrap_or_else(|| MODEL.into());
        return budget(&path, &mut stdout());
    }
    let is_about_mass = arguments.next_if(|word| word == "mass").is_some();
    let path = arguments.next().unwrap_or_else(|| MODEL.into());
    let threads = arguments.next().and_then(|number| number.parse().ok()).and_then(NonZero::new);
    let begin = Instant::now();
    let mut loaded = open(&path, LoadOptions { threads, context: None }, arguments.next().as_deref())?;
    let mut out = stdout();
    writeln!(out, "loaded in {:.1?}", begin.elapsed())?;
    if is_about_mass {
        return mass(loaded, &mut out);
    }
    let text: Vec<TokenId> = (0..256).map(|at| TokenId(at * 37 % 40_000 + 100)).collect();
    writeln!(out, "reading 256 tokens: {:.0} tokens/s", best(|| Ok(read(&mut *loaded.model, &text)))?)?;
    for batch in [1, 4, 16] {
        let rate = best(|| Ok(write_batch(&mut *loaded.model, &text[..CONTEXT], batch)))?;
        writeln!(out, "writing, {batch:2} at once, behind {CONTEXT} tokens: {rate:.1} tokens/s")?;
    }
    let compiler = Compiler::new(loaded.tokenizer.vocabulary().clone());
    let schema = compiler.compile(&Constraint::json_schema(SCHEMA))?;
    let prompt = loaded.prompt("A product of our shop as JSON:\n")?;
    let scheduler = loaded.schedule(Options::default());
    for batch in [1, 16] {
        compare(&scheduler, &prompt, &schema, batch, &mut out)?;
    }
    Ok(())
}

/// By our own runtime, or by the one that is named.
fn open(path: &str, options: LoadOptions, runtime: Option<&str>) -> Result<Loaded, Box<dyn Error>> {
    match runtime {
        None => Ok(Loaded::open(path, &options)?),
        #[cfg(feature = "llama-cpp")]
        Some("llama-cpp") => {
            let options =
                maskwright_runtime::model::llama_cpp::Options { load: options, ..Default::default() };
            Ok(Loaded::open_llama_cpp(path, &options)?)
        }
        Some(other) => Err(format!("there is no runtime `{other}` here").into()),
    }
}

/// The best of a few rounds.
fn best(mut round: impl FnMut() -> Result<f64, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut best = 0.0;
    for _ in 0..ROUNDS {
        best = f64::max(best, round()?);
    }
    Ok(best)
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn read(model: &mut dyn Model, text: &[TokenId]) -> f64 {
    let sequence = model.open();
    let begin = Instant::now();
    step(model, &[sequence], text);
    model.close(sequence);
    rate(text.len(), begin.elapsed())
}

fn write_batch(model: &mut dyn Model, text: &[TokenId], batch: usize) -> f64 {
    let first = model.open();
    step(model, &[first], text);
    let mut all = vec![first];
    for _ in 1..batch {
        all.extend(model.fork(first, text.len()));
    }
    let steps = 32 / batch.isqrt();
    let begin = Instant::now();
    for at in 0..steps {
        step(model, &all, &text[at..=at]);
    }
    let time = begin.elapsed();
    for sequence in all {
        model.close(sequence);
    }
    rate(steps * batch, time)
}

fn step(model: &mut dyn Model, sequences: &[SequenceId], tokens: &[TokenId]) {
    let feeds: Vec<Feed<'_>> =
        sequences.iter().map(|&sequence| Feed { sequence, tokens, wanted: Wanted::Last }).collect();
    // What is fed here fits.
    let _ = model.step(&feeds, &mut Logits::new());
}

/// Constrained and free answers of the same length, in turn.
fn compare(
    scheduler: &Scheduler,
    prompt: &[TokenId],
    schema: &CompiledConstraint,
    batch: usize,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let (mut free, mut constrained, mut masks) = (0.0_f64, 0.0_f64, Duration::ZERO);
    for _ in 0..ROUNDS {
        free = free.max(answers(scheduler, prompt, None, batch, TOKENS, false)?.rate);
        let told = answers(scheduler, prompt, Some(schema), batch, TOKENS, false)?;
        constrained = constrained.max(told.rate);
        masks = told.usage.mask / u32::try_from(told.usage.masks.max(1))?;
    }
    let waited = scheduler.statistics().mask_wait;
    writeln!(
        out,
        "{batch:2} requests: free {free:.1} tokens/s, constrained {constrained:.1} tokens/s, ratio {:.3}; mask {masks:.1?}, waited for masks {waited:.1?} in all",
        constrained / free,
    )?;
    Ok(())
}

/// What the mass of masks costs.
fn mass(loaded: Loaded, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let compiler = Compiler::new(loaded.tokenizer.vocabulary().clone());
    let schema = compiler.compile(&Constraint::json_schema(SCHEMA))?;
    let prompt = loaded.prompt("A product of our shop as JSON:\n")?;
    let scheduler = loaded.schedule(Options::default());
    for batch in [1, 4] {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..MASS_ROUNDS {
            without.push(answers(&scheduler, &prompt, Some(&schema), batch, MASS_TOKENS, false)?.busy);
            with.push(answers(&scheduler, &prompt, Some(&schema), batch, MASS_TOKENS, true)?.busy);
        }
        without.sort_by(f64::total_cmp);
        with.sort_by(f64::total_cmp);
        for (name, at) in [("least", 0), ("median", MASS_ROUNDS / 2)] {
            writeln!(
                out,
                "{batch} requests, {name} of {MASS_ROUNDS} rounds: a token takes {:.2} ms on processors, and {:.2} ms with the mass of its mask, {:+.2} %",
                without[at] * 1e3,
                with[at] * 1e3,
                (with[at] / without[at] - 1.0) * 100.0,
            )?;
        }
    }
    Ok(())
}

/// What a budget costs, the first time and later. Tokens are drawn from the masks.
fn budget(path: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let vocabulary = maskwright_tokenizers::load(path)?.vocabulary().clone();
    let compiled = Compiler::new(vocabulary.clone()).compile(&Constraint::structural_tag(TRIGGER))?;
    for round in 1..=ROUNDS {
        let (begin, mut matcher) = (busy(), compiled.matcher());
        matcher.set_budget(Some(Budget::new(BUDGET_TOKENS)))?;
        let (set, mut seed) = (busy(), 1_u64);
        while !matcher.is_stopped() {
            let allowed: Vec<TokenId> = matcher.mask()?.iter().collect();
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            matcher.accept(allowed[(seed >> 33) as usize % allowed.len()])?;
        }
        let size = vocabulary.size();
        let (set, masks) = (set.saturating_sub(begin), busy().saturating_sub(set));
        writeln!(
            out,
            "{size} tokens, answer {round}: to set the budget {set:.0?}, masks in all {masks:.0?}"
        )?;
    }
    Ok(())
}

/// What some answers took.
struct Told {
    /// Tokens a second.
    rate: f64,
    /// Seconds that a token takes on processors.
    busy: f64,
    usage: Usage,
}

fn answers(
    scheduler: &Scheduler,
    prompt: &[TokenId],
    schema: Option<&CompiledConstraint>,
    batch: usize,
    tokens: usize,
    mass: bool,
) -> Result<Told, Box<dyn Error>> {
    let (before, busy_before) = (scheduler.statistics(), busy());
    let mut streams: Vec<Stream> = Vec::new();
    for seed in 0..batch as u64 {
        let mut request = Request::new(prompt.to_vec());
        // Free text must not end early, or the two would differ in length.
        request.sampling = Sampling {
            seed: Some(seed),
            mass,
            logit_bias: vec![(TokenId(2), -100.0), (TokenId(0), -100.0)],
            ..Sampling::default()
        };
        request.max_tokens = Some(tokens);
        if let Some(schema) = schema {
            request.guide = Some(Box::new(MatcherGuide::new(schema.matcher())));
        }
        streams.push(scheduler.stream(request)?);
    }
    let mut last = Usage::default();
    for stream in streams {
        for event in stream {
            match event.what {
                What::Finished { usage, .. } => last = usage,
                What::Failed(failure) => return Err(failure.into()),
                What::More { .. } => {}
            }
        }
    }
    // The time of the model and of choosing, without the prompt, which is the same text each time and is read once.
    let after = scheduler.statistics();
    let time = (after.model + after.sample + after.mask_wait)
        .saturating_sub(before.model + before.sample + before.mask_wait);
    let tokens = (after.answer_tokens - before.answer_tokens) as usize;
    let busy = 1.0 / rate(tokens, busy().saturating_sub(busy_before));
    Ok(Told { rate: rate(tokens, time), busy, usage: last })
}

/// How long all threads of this process have been on processors; only Linux tells.
fn busy() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let told = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    let times = told.filter_map(|told| told.split(' ').next()?.parse::<u64>().ok());
    Duration::from_nanos(times.sum())
}
