//! A real model, fetched by `scripts/assets.sh`. Without it these tests say so and pass.

use std::{io::Write, path::PathBuf};

use maskwright::{Compiler, Constraint};
use maskwright_runtime::{
    Guide, Loaded, MatcherGuide, Reason, Request, Sampling, What,
    model::{Feed, LoadOptions, Logits, Model, Wanted},
    scheduler::Options,
    text::chat::Conversation,
};
use maskwright_vocab::TokenId;
use serde_json::json;

pub(crate) fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/assets/smollm2");
    if !folder.is_dir() {
        // Not by a macro, because the test harness would hide it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: smollm2 is not there; run scripts/assets.sh smollm2");
        return None;
    }
    Some(folder)
}

fn greedy(model: &mut dyn Model, prompt: &[TokenId], count: usize) -> Vec<TokenId> {
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

/// One test, because loading the model is most of it.
#[test]
fn smollm2_writes_sensibly_and_what_it_must() {
    let Some(folder) = folder() else { return };
    check(Loaded::open(&folder, &LoadOptions::default()).unwrap());
}

/// What it can is the same whoever computes it.
pub(crate) fn check(mut loaded: Loaded) {
    assert_eq!((loaded.model.width(), loaded.model.context(), loaded.first), (49_152, 8192, None));
    check_continuations(&mut loaded);
    check_template(&loaded);
    check_answers(loaded);
}

fn check_continuations(loaded: &mut Loaded) {
    let Loaded { model, tokenizer, .. } = loaded;
    let prompt = tokenizer.encode("The capital of France is").unwrap();
    let answer = greedy(&mut **model, &prompt, 5);
    assert!(String::from_utf8_lossy(&tokenizer.decode(&answer)).contains("Paris"), "{answer:?}");
    assert_eq!(greedy(&mut **model, &prompt, 5), answer);
    let count = tokenizer.encode("1, 2, 3, 4, 5, 6, 7, 8,").unwrap();
    let answer = greedy(&mut **model, &count, 7);
    assert_eq!(String::from_utf8_lossy(&tokenizer.decode(&answer)), " 9, 10,");
}

fn check_template(loaded: &Loaded) {
    let messages = json!([{"role": "user", "content": "What is <|im_end|>?"}]);
    let tokens = loaded.chat(&Conversation::new(&messages)).unwrap();
    let vocabulary = loaded.tokenizer.vocabulary();
    let spelled = |token: &TokenId| match vocabulary.special_name(*token) {
        Some(name) => name.to_owned(),
        None => String::from_utf8_lossy(vocabulary.bytes(*token)).into_owned(),
    };
    let text: String = tokens.iter().map(spelled).collect();
    let system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
    let expected = format!(
        "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\nWhat is <|im_end|>?<|im_end|>\n<|im_start|>assistant\n"
    );
    assert_eq!(text, expected);
    assert_eq!(tokens.iter().filter(|token| vocabulary.is_special(**token)).count(), 5);
}

/// Three requests at once: free, under a regular expression, under a schema at a high temperature.
fn check_answers(loaded: Loaded) {
    let compiler = Compiler::new(loaded.tokenizer.vocabulary().clone());
    let guide = |constraint: &Constraint| -> Option<Box<dyn Guide>> {
        Some(Box::new(MatcherGuide::new(compiler.compile(constraint).unwrap().matcher())))
    };
    let ask = |question: &str| {
        let messages = json!([{"role": "user", "content": question}]);
        loaded.chat(&Conversation::new(&messages)).unwrap()
    };
    let mut free = Request::new(loaded.prompt("The capital of France is").unwrap());
    free.sampling = Sampling::greedy();
    free.max_tokens = Some(12);
    let mut year =
        Request::new(ask("In which year did the Second World War end? Answer with the year only."));
    year.sampling = Sampling::greedy();
    year.guide = guide(&Constraint::regex("19[0-9]{2}"));
    let mut object = Request::new(ask("Describe a cat as JSON."));
    object.sampling = Sampling { temperature: 1.5, seed: Some(5), ..Sampling::default() };
    object.guide = guide(&Constraint::json_schema(
        r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}, "legs": {"enum": [2, 4]}},
            "required": ["name", "legs"], "additionalProperties": false}"#,
    ));
    let scheduler = loaded.schedule(Options::default());
    let streams = [free, year, object].map(|request| scheduler.stream(request).unwrap());
    let [free, year, object] = streams.map(|stream| {
        let (mut all, mut end) = (String::new(), None);
        for event in stream {
            match event.what {
                What::More { text, .. } => all += &text,
                What::Finished { text, reason, .. } => {
                    all += &text;
                    end = Some(reason);
                }
                What::Failed(failure) => panic!("{failure}"),
            }
        }
        (all, end)
    });
    assert!(free.0.contains("Paris"), "{free:?}");
    assert_eq!(year, ("1945".to_owned(), Some(Reason::Stop)));
    assert_eq!(object.1, Some(Reason::Stop));
    let object: serde_json::Value =
        serde_json::from_str(&object.0).unwrap_or_else(|error| panic!("{error}: {object:?}"));
    assert!(object["name"].as_str().is_some_and(|name| name.chars().count() <= 10), "{object}");
    assert!(object["legs"] == 2 || object["legs"] == 4, "{object}");
}
