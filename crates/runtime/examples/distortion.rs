//! How far masks bend a model, and exact draws do not, where all texts can be listed.
//!
//! ```sh
//! scripts/assets.sh smollm2 && cargo run --release -p maskwright-runtime --example distortion
//! ```
//! For each constraint: the distance (total variation) from the truth to what masks make of it, computed, and to 100,000 exact draws, counted; the same for plain rejection, of which as many texts are counted as come
//! out of 50,000,000 tries, and at most 100,000; the tries that plain rejection takes for a text on average, and those of the first draw, on average over 50 samplers, and of all later ones.

#![allow(clippy::print_stdout, clippy::cast_precision_loss, reason = "a program for people")]

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
};

use maskwright::{Budget, Compiler, Constraint, Matcher, TokenId, exact};
use maskwright_runtime::{
    Loaded,
    model::{Feed, LoadOptions, Logits, ModelError, SequenceId, Wanted},
    sampler::rng::Rng,
    text::chat::Conversation,
};
use serde_json::json;

const DRAWS: u32 = 100_000;
const FIRST: u32 = 50;
/// The tries of plain rejection.
const MOST: u32 = 50_000_000;
/// Of fewer texts than this a distance would say nothing.
const LEAST: u32 = 1_000;
const MAX_TOKENS: u32 = 24;

type Texts = BTreeMap<Vec<TokenId>, f64>;
/// For each beginning of a valid text, the tokens that may come next, with the sums of the model's shares up to each.
type Steps = HashMap<Vec<TokenId>, Vec<(TokenId, f64)>>;

/// Rows of logits behind a prompt, each computed once.
struct Rows {
    loaded: Loaded,
    /// The prompt, but for its last token, as the model has read it.
    read: Option<SequenceId>,
    prompt: Vec<TokenId>,
    known: BTreeMap<Vec<TokenId>, Vec<f32>>,
}

impl Rows {
    /// Reads a prompt.
    fn read(&mut self, prompt: Vec<TokenId>) -> Result<(), ModelError> {
        self.known.clear();
        let model = &mut self.loaded.model;
        let sequence = model.open();
        let tokens = &prompt[..prompt.len().saturating_sub(1)];
        model.step(&[Feed { sequence, tokens, wanted: Wanted::None }], &mut Logits::new())?;
        (self.read, self.prompt) = (Some(sequence), prompt);
        Ok(())
    }

    fn behind(&mut self, text: &[TokenId]) -> Result<Vec<f32>, ModelError> {
        if let Some(row) = self.known.get(text) {
            return Ok(row.clone());
        }
        let model = &mut self.loaded.model;
        let length = self.prompt.len().saturating_sub(1);
        let sequence = match self.read {
            Some(read) => model.fork(read, length)?,
            None => model.open(),
        };
        let tokens: Vec<TokenId> = self.prompt[length..].iter().chain(text).copied().collect();
        let mut logits = Logits::new();
        model.step(&[Feed { sequence, tokens: &tokens, wanted: Wanted::Last }], &mut logits)?;
        model.close(sequence);
        let row = logits.row(0).unwrap_or_default().to_vec();
        self.known.insert(text.to_vec(), row.clone());
        Ok(row)
    }
}

/// All texts, with the model's mass of each, and what masks make of it; and the ways there.
fn list(rows: &mut Rows, start: &Matcher) -> Result<(Texts, Texts, Steps), Box<dyn Error>> {
    let (mut truth, mut masked, mut steps) = (Texts::new(), Texts::new(), Steps::new());
    let mut open = vec![(Vec::new(), start.fork(), 1.0, 1.0)];
    while let Some((text, mut matcher, mass, under_mask)) = open.pop() {
        let logits = rows.behind(&text)?;
        let best = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f64 = logits.iter().map(|&logit| f64::from(logit - best).exp()).sum();
        let words = matcher.mask_words()?.to_vec();
        let allowed: Vec<(u32, f64)> = (0..)
            .zip(&logits)
            .filter(|(id, _)| words.get(*id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1))
            .map(|(id, &logit)| (id, f64::from(logit - best).exp() / total))
            .collect();
        let sum: f64 = allowed.iter().map(|(_, share)| share).sum();
        let mut below = 0.0;
        let sums = allowed.iter().map(|&(id, share)| {
            below += share;
            (TokenId(id), below)
        });
        steps.insert(text.clone(), sums.collect());
        for (id, share) in allowed {
            let mut matcher = matcher.fork();
            matcher.accept(TokenId(id))?;
            let mut next = text.clone();
            next.push(TokenId(id));
            if matcher.is_terminated() {
                truth.insert(next.clone(), mass * share);
                masked.insert(next, under_mask * share / sum);
            } else {
                open.push((next, matcher, mass * share, under_mask * share / sum));
            }
        }
    }
    Ok((truth, masked, steps))
}

/// Plain rejection: the model writes token by token, and what becomes invalid is thrown away. How many texts came out, and their shares.
fn reject(steps: &Steps, chance: &mut impl FnMut() -> f64) -> (u32, Texts) {
    let (mut count, mut found) = (0_u32, Texts::new());
    let mut text = Vec::new();
    for _ in 0..MOST {
        text.clear();
        while let Some(sums) = steps.get(&text) {
            let drawn = chance();
            let Some(&(token, _)) = sums.get(sums.partition_point(|&(_, below)| below <= drawn)) else {
                break;
            };
            text.push(token);
        }
        if steps.contains_key(&text) {
            continue;
        }
        count += 1;
        *found.entry(text.clone()).or_default() += 1.0;
        if count == DRAWS {
            break;
        }
    }
    for share in found.values_mut() {
        *share /= f64::from(count);
    }
    (count, found)
}

fn distance(left: &Texts, right: &Texts) -> f64 {
    let of = |texts: &Texts, text| texts.get(text).copied().unwrap_or(0.0);
    let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    keys.into_iter().map(|key| (of(left, key) - of(right, key)).abs()).sum::<f64>() / 2.0
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "target/assets/smollm2".into());
    let loaded = Loaded::open(path, &LoadOptions::default())?;
    let vocabulary = loaded.tokenizer.vocabulary().clone();
    let compiler = Compiler::new(vocabulary.clone());
    let mut rows = Rows { loaded, read: None, prompt: Vec::new(), known: BTreeMap::new() };
    let cases = [
        ("choice", "Is the sky blue? Answer yes or no.", Constraint::choice(["yes", "no", "Yes", "No"])),
        (
            "regex",
            "When did the Second World War end? Answer with the year.",
            Constraint::regex("(19[0-4][0-9]|In 1945)\\.?"),
        ),
        (
            "json_schema",
            "Name one or two of the numbers 1 and 2, as a JSON array.",
            Constraint::json_schema(
                r#"{"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 2}"#,
            ),
        ),
        (
            "ebnf",
            "Name a colour.",
            Constraint::ebnf(
                "root ::= (\"A \" | \"The \")? (\"red\" | \"blue\" | \"green\" | \"black\") (\".\" | \"\")",
            ),
        ),
    ];
    println!(
        "| constraint | texts | valid mass | masked TV | exact TV | rejection TV, of so many | rejection's tries | first draw's | later draws' |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (name, question, constraint) in cases {
        let messages = json!([{"role": "user", "content": question}]);
        let prompt = rows.loaded.chat(&Conversation::new(&messages))?;
        rows.read(prompt)?;
        let mut options = maskwright::Options::default();
        options.json_schema.whitespace = maskwright::json_schema::Whitespace::Compact;
        let mut start = compiler.compile_with(&constraint, &options)?.matcher();
        start.set_budget(Some(Budget::new(MAX_TOKENS)))?;
        let (mut truth, masked, steps) = list(&mut rows, &start)?;
        let mass: f64 = truth.values().sum();
        for one in truth.values_mut() {
            *one /= mass;
        }
        let rng = Rng::new(Some(1), 0);
        let mut number = 0;
        let mut chance = || {
            number += 1;
            rng.at(number)
        };
        let new = || {
            let options = exact::Options {
                tries: exact::MAX_TRIES,
                max_tokens: MAX_TOKENS as usize,
                ..exact::Options::default()
            };
            exact::Sampler::new(start.fork(), &vocabulary, options)
        };
        let mut first = 0;
        for _ in 0..FIRST {
            let mut sampler = new()?;
            first += sampler.draw(|text| rows.behind(text), &mut chance)?.tries;
        }
        let mut sampler = new()?;
        let (mut found, mut later) = (Texts::new(), 0);
        for draw in 0..DRAWS {
            let drawn = sampler.draw(|text| rows.behind(text), &mut chance)?;
            assert!(drawn.is_exact, "the tries were used up");
            later += if draw == 0 { 0 } else { drawn.tries };
            *found.entry(drawn.tokens).or_default() += 1.0 / f64::from(DRAWS);
        }
        let (count, rejected) = reject(&steps, &mut chance);
        let rejected = if count < LEAST {
            format!("–, {count}")
        } else {
            format!("{:.4}, {count}", distance(&rejected, &truth))
        };
        println!(
            "| {name} | {} | {mass:.2e} | {:.3} | {:.4} | {rejected} | {:.3e} | {:.1} | {:.4} |",
            truth.len(),
            distance(&masked, &truth),
            distance(&found, &truth),
            1.0 / mass,
            first as f64 / f64::from(FIRST),
            later as f64 / f64::from(DRAWS - 1),
        );
    }
    Ok(())
}
