//! A small real model, run by candle, writes JSON that satisfies a schema.
//!
//! ```text
//! cargo run --release --manifest-path examples/candle/Cargo.toml [FILE.gguf]
//! ```
//!
//! `make assets` fetches the file that is taken otherwise.

use std::error::Error;
use std::fs::File;

use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use maskwright::{Budget, Compiler, Constraint, apply};

const DEFAULT: &str = "target/assets/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": false
}"#;
const MAX_TOKENS: u32 = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| DEFAULT.into());
    let device = Device::Cpu;
    let mut file = File::open(&path)?;
    let content = Content::read(&mut file)?;
    let mut model = ModelWeights::from_gguf(content, &mut file, &device)?;

    // Once for each model.
    let tokenizer = maskwright_tokenizers::load(&path)?;
    let compiler = Compiler::new(tokenizer.vocabulary().clone());
    let compiled = compiler.compile(&Constraint::json_schema(SCHEMA))?;

    // Once for each text. The budget makes sure that it is complete when generation stops.
    let mut matcher = compiled.matcher();
    matcher.set_budget(Some(Budget::new(MAX_TOKENS)))?;
    let prompt = "<|im_start|>user\nWho wrote Faust? Answer in JSON.<|im_end|>\n<|im_start|>assistant\n";
    let mut input: Vec<u32> = tokenizer.encode(prompt)?.iter().map(|token| token.0).collect();
    let (mut position, mut written) = (0, Vec::new());
    loop {
        let scores = model.forward(&Tensor::new(&*input, &device)?.unsqueeze(0)?, position)?;
        let mut scores: Vec<f32> = scores.squeeze(0)?.to_vec1()?;
        position += input.len();

        // What may not come gets −∞. Any sampler may follow; this one takes the best.
        apply::mask(&mut scores, matcher.mask_words()?);
        let (best, _) = (0..).zip(&scores).max_by(|(_, a), (_, b)| a.total_cmp(b)).ok_or("the model has no tokens")?;
        let token = maskwright::TokenId(best);
        matcher.accept(token)?;
        if matcher.is_terminated() {
            break;
        }
        written.push(token);
        input = vec![best];
    }
    println!("{}", String::from_utf8(tokenizer.decode(&written))?);
    Ok(())
}
