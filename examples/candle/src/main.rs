//! A small real model, run by candle, writes JSON that satisfies a schema.
//!
//! ```text
//! cargo run --release --manifest-path examples/candle/Cargo.toml [FILE.gguf]
//! ```
//! `make assets` fetches the file that is taken otherwise: a model of the Llama family. Other families have modules of their own in `candle_transformers`.

use std::error::Error;
use std::fs::File;

use candle_core::quantized::gguf_file;
use candle_core::{Device, IndexOp, Tensor};
use candle_transformers::generation::LogitsProcessor;
use candle_transformers::models::quantized_llama::ModelWeights;
use maskwright::json_schema::Whitespace;
use maskwright::{Budget, Compiler, Constraint, Matcher, Options, TokenId, apply};
use maskwright_tokenizers::Tokenizer;

const DEFAULT: &str = "target/assets/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const PERSON: &str = r#"{
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": false
}"#;
const MAX_TOKENS: u32 = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| DEFAULT.into());
    let device = Device::Cpu;
    let mut file = File::open(&path)?;
    let content = gguf_file::Content::read(&mut file)?;
    let mut model = ModelWeights::from_gguf(content, &mut file, &device)?;

    // Once for each model.
    let tokenizer = maskwright_tokenizers::load(&path)?;
    let compiler = Compiler::new(tokenizer.vocabulary().clone());
    let mut options = Options::default();
    options.json_schema.whitespace = Whitespace::Tidy;
    let person = compiler.compile_with(&Constraint::json_schema(PERSON), &options)?;

    for question in ["Who wrote Faust?", "Who was Ada Lovelace?"] {
        let prompt = chat(&tokenizer, &format!("{question} Answer in JSON."))?;
        let mut matcher = person.matcher();
        // The budget makes sure that the text is complete when generation stops.
        matcher.set_budget(Some(Budget::new(MAX_TOKENS)))?;
        let written = generate(&mut model, prompt, &mut matcher, &device)?;
        println!("{question} {}", String::from_utf8(tokenizer.decode(&written))?);
    }
    Ok(())
}

/// A question in the format of SmolLM2. Text never spells a special token, so those are put in by hand.
fn chat(tokenizer: &Tokenizer, question: &str) -> Result<Vec<TokenId>, Box<dyn Error>> {
    let special = |name: &str| tokenizer.vocabulary().special(name).ok_or(format!("no token {name}"));
    let (start, end) = (special("<|im_start|>")?, special("<|im_end|>")?);
    let mut prompt = vec![start];
    prompt.extend(tokenizer.encode(&format!("user\n{question}"))?);
    prompt.push(end);
    prompt.extend(tokenizer.encode("\n")?);
    prompt.push(start);
    prompt.extend(tokenizer.encode("assistant\n")?);
    Ok(prompt)
}

/// Writes until the end is taken.
fn generate(
    model: &mut ModelWeights,
    prompt: Vec<TokenId>,
    matcher: &mut Matcher,
    device: &Device,
) -> Result<Vec<TokenId>, Box<dyn Error>> {
    let mut sampler = LogitsProcessor::new(7, Some(0.8), None);
    let mut next: Vec<u32> = prompt.iter().map(|token| token.0).collect();
    let (mut written, mut position) = (Vec::new(), 0);
    while !matcher.is_terminated() {
        let logits = model.forward(&Tensor::new(next.as_slice(), device)?.unsqueeze(0)?, position)?;
        position += next.len();

        let mut logits: Vec<f32> = logits.i(0)?.to_vec1()?;
        apply::mask(&mut logits, matcher.mask_words()?);
        let size = logits.len();
        let token = sampler.sample(&Tensor::from_vec(logits, size, device)?)?;
        matcher.accept(TokenId(token))?;
        written.push(TokenId(token));
        next = vec![token];
    }
    Ok(written)
}
