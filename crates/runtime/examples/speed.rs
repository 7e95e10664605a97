//! How fast a model is here: reading a prompt, writing in batches, and writing under a constraint, with the mass of each mask and without.
//!
//! ```sh
//! cargo run --release -p maskwright-runtime --example speed -- target/assets/smollm2 [threads]
//! cargo run --release -p maskwright-runtime --example speed --features llama-cpp -- target/assets/smollm2 1 llama-cpp
//! ```
//!
//! The ways of writing take turns, and the best of some rounds counts, because machines are shared.

use std::error::Error;
use std::io::{Write, stdout};
use std::num::NonZero;
use std::time::{Duration, Instant};

use maskwright::{CompiledConstraint, Compiler, Constraint};
use maskwright_runtime::model::{Feed, LoadOptions, Logits, Model, SequenceId, Wanted};
use maskwright_runtime::scheduler::{Options, Stream};
use maskwright_runtime::{Loaded, MatcherGuide, Request, Sampling, Scheduler, Usage, What};
use maskwright_vocab::TokenId;

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "name": {"type": "string", "minLength": 60, "maxLength": 80}, "tags": {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 5},
    "price": {"type": "number"}, "size": {"enum": ["small", "medium", "large"]}},
    "required": ["name", "tags", "price", "size"], "additionalProperties": false}"#;
const ROUNDS: usize = 5;
const CONTEXT: usize = 128;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "target/assets/smollm2".into());
    let threads = arguments.next().and_then(|number| number.parse().ok()).and_then(NonZero::new);
    let begin = Instant::now();
    let mut loaded = open(&path, LoadOptions { threads, context: None }, arguments.next().as_deref())?;
    let mut out = stdout();
    writeln!(out, "loaded in {:.1?}", begin.elapsed())?;
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
    let (mut free, mut constrained, mut weighed, mut masks) = (0.0_f64, 0.0_f64, 0.0_f64, Duration::ZERO);
    // Choosing a token, and the share that it has of a step.
    let (mut plain, mut massive) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        free = free.max(answers(scheduler, prompt, None, false, batch)?.rate);
        let told = answers(scheduler, prompt, Some(schema), false, batch)?;
        constrained = constrained.max(told.rate);
        masks = told.usage.mask / u32::try_from(told.usage.masks.max(1))?;
        plain.push(told.choosing);
        let told = answers(scheduler, prompt, Some(schema), true, batch)?;
        weighed = weighed.max(told.rate);
        massive.push(told.choosing);
    }
    let waited = scheduler.statistics().mask_wait;
    writeln!(
        out,
        "{batch:2} requests: free {free:.1} tokens/s, constrained {constrained:.1} tokens/s, ratio {:.3}; mask {masks:.1?}, waited for masks {waited:.1?} in all",
        constrained / free,
    )?;
    let (plain, massive) = (least(&plain), least(&massive));
    let step = 1.0 / constrained;
    writeln!(
        out,
        "{batch:2} requests: with the mass of masks {weighed:.1} tokens/s, ratio {:.3}; choosing a token {:.0} µs without and {:.0} µs with it, which is {:.2} % of the {:.1} ms that a token takes",
        weighed / constrained,
        plain * 1e6,
        massive * 1e6,
        (massive - plain) / step * 100.0,
        step * 1e3,
    )?;
    Ok(())
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// What some answers took.
struct Told {
    /// Tokens a second.
    rate: f64,
    /// Seconds for choosing a token.
    choosing: f64,
    usage: Usage,
}

fn answers(
    scheduler: &Scheduler,
    prompt: &[TokenId],
    schema: Option<&CompiledConstraint>,
    mass: bool,
    batch: usize,
) -> Result<Told, Box<dyn Error>> {
    let before = scheduler.statistics();
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
        request.max_tokens = Some(24);
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
    let choosing = 1.0 / rate(tokens, after.sample.saturating_sub(before.sample));
    Ok(Told { rate: rate(tokens, time), choosing, usage: last })
}
