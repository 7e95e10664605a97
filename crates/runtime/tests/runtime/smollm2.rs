//! A real model, fetched by `scripts/assets.sh`. Without it these tests say so and pass.

use std::{io::Write, path::PathBuf};

use maskwright_runtime::model::{Feed, Llama, LoadOptions, Logits, Model, Wanted};
use maskwright_tokenizers::Tokenizer;
use maskwright_vocab::TokenId;

fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/assets/smollm2");
    if !folder.is_dir() {
        // Not by a macro, because the test harness would hide it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: smollm2 is not there; run scripts/assets.sh smollm2");
        return None;
    }
    Some(folder)
}

fn gguf(folder: &PathBuf) -> PathBuf {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "gguf")).unwrap()
}

fn greedy(model: &mut Llama, prompt: &[TokenId], count: usize) -> Vec<TokenId> {
    let sequence = model.open();
    let mut logits = Logits::new();
    let mut answer: Vec<TokenId> = Vec::new();
    let mut next = prompt.to_vec();
    while answer.len() < count {
        model.step(&[Feed { sequence, tokens: &next, wanted: Wanted::Last }], &mut logits).unwrap();
        let row = logits.row(0).unwrap();
        let best = (0..row.len()).max_by(|&left, &right| row[left].total_cmp(&row[right])).unwrap();
        answer.push(TokenId(best as u32));
        next = vec![TokenId(best as u32)];
    }
    model.close(sequence);
    answer
}

#[test]
fn smollm2_continues_sensibly() {
    let Some(folder) = folder() else { return };
    let tokenizer: Tokenizer = maskwright_tokenizers::load(&folder).unwrap();
    let mut model = Llama::load(gguf(&folder), &LoadOptions::default()).unwrap();
    assert_eq!((model.width(), model.context()), (49_152, 8192));
    let prompt = tokenizer.encode("The capital of France is").unwrap();
    let answer = greedy(&mut model, &prompt, 5);
    assert!(String::from_utf8_lossy(&tokenizer.decode(&answer)).contains("Paris"), "{answer:?}");
    assert_eq!(greedy(&mut model, &prompt, 5), answer);
    let count = tokenizer.encode("1, 2, 3, 4, 5, 6, 7, 8,").unwrap();
    let answer = greedy(&mut model, &count, 7);
    assert_eq!(String::from_utf8_lossy(&tokenizer.decode(&answer)), " 9, 10,");
}
