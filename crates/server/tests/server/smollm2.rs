//! A real model, fetched by `scripts/assets.sh`. Without it this test says so and passes.

use std::{
    io::Write,
    path::PathBuf,
    sync::{Arc, atomic::AtomicUsize},
};

use maskwright::{
    Compiler,
    service::{Service, Settings as Compiling},
};
use maskwright_runtime::{Loaded, model::LoadOptions, scheduler::Options};
use maskwright_server::{Engine, Parts, Server, Settings};
use serde_json::{Value, json};

use crate::fake::{run, says};

#[tokio::test]
async fn smollm2_answers_with_a_document_of_the_schema() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/assets/smollm2");
    if !folder.is_dir() {
        // Not by a macro, because the test harness would hide it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: smollm2 is not there; run scripts/assets.sh smollm2");
        return;
    }
    let loaded = Loaded::open(&folder, &LoadOptions::default()).unwrap();
    let compiler = Arc::new(Compiler::new(loaded.tokenizer.vocabulary().clone()));
    let service = Service::new(Compiling::default()).unwrap();
    let engine =
        Engine::start(Parts::loaded(loaded, "smollm2"), Options::default(), &service, compiler).unwrap();
    let running = run(Server::new(engine, Settings::default()), Arc::new(AtomicUsize::new(0))).await;
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 12},
            "legs": {"type": "integer", "minimum": 0, "maximum": 8},
            "colours": {"type": "array", "items": {"enum": ["black", "white", "grey"]}, "minItems": 1, "maxItems": 2},
        },
        "required": ["name", "legs", "colours"],
        "additionalProperties": false,
    });
    let body = json!({
        "model": "smollm2",
        "messages": says("Describe a cat as JSON."),
        "temperature": 1.2, "seed": 11, "max_tokens": 200,
        "response_format": {"type": "json_schema", "json_schema": {"name": "cat", "strict": true, "schema": schema}},
        "maskwright": {"whitespace": "spaced"},
    });
    let answer = running.client.chat(&body).await.good();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{answer}");
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let document: Value = serde_json::from_str(text).unwrap();
    let name = document["name"].as_str().map_or(0, |name| name.chars().count());
    let colours = document["colours"].as_array().unwrap();
    assert!((1..=12).contains(&name) && (1..=2).contains(&colours.len()), "{text}");
    assert!(document["legs"].as_i64().is_some_and(|legs| (0..=8).contains(&legs)), "{text}");
    assert!(
        colours.iter().all(|colour| colour == "black" || colour == "white" || colour == "grey"),
        "{text}"
    );
    assert_eq!(document.as_object().map(serde_json::Map::len), Some(3), "{text}");
    // A budget is counted in tokens: these names have 14 letters, and a few tokens spell them.
    let names = ["Czech Republic", "United Kingdom"];
    let body = |tokens: u32| {
        json!({
            "model": "smollm2", "messages": says("Name a country."), "temperature": 0, "max_tokens": tokens,
            "guided_choice": names, "maskwright": {"finish": true},
        })
    };
    let answer = running.client.chat(&body(8)).await.good();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(names.contains(&text) && answer["choices"][0]["finish_reason"] == "stop", "{answer}");
    assert_eq!(running.client.chat(&body(2)).await.error().2, "budget_too_small");
    // A prompt that ends with a blank: the blank becomes a part of the constraint, and of no answer.
    let body = |own: Value| {
        json!({
            "prompt": "Is the sky blue, yes or no? The answer is ", "temperature": 0,
            "guided_choice": ["yes", "no"], "maskwright": own,
        })
    };
    let healed = running.client.post("/v1/completions", &body(json!({"tokens": true}))).await.good();
    let kept =
        running.client.post("/v1/completions", &body(json!({"tokens": true, "heal": false}))).await.good();
    for answer in [&healed, &kept] {
        assert!(["yes", "no"].contains(&answer["choices"][0]["text"].as_str().unwrap()), "{answer}");
    }
    let prompt = |answer: &Value| answer["usage"]["prompt_tokens"].as_u64().unwrap();
    assert_eq!(prompt(&healed) + 1, prompt(&kept));
    let first = |answer: &Value| answer["maskwright"]["tokens"][0][0]["text"].as_str().unwrap().to_owned();
    assert!(first(&healed).starts_with(' ') && !first(&kept).starts_with(' '), "{healed} {kept}");
    // The same in a conversation whose answer has begun.
    let body = |own: Value| {
        let begun = [
            says("Is the sky blue, yes or no?")[0].clone(),
            json!({"role": "assistant", "content": "The answer is "}),
        ];
        json!({
            "messages": begun, "continue_final_message": true, "temperature": 0,
            "guided_choice": ["yes", "no"], "maskwright": own,
        })
    };
    let healed = running.client.chat(&body(json!({"tokens": true}))).await.good();
    let kept = running.client.chat(&body(json!({"tokens": true, "heal": false}))).await.good();
    for answer in [&healed, &kept] {
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(["yes", "no"].contains(&text), "{answer}");
    }
    assert_eq!(prompt(&healed) + 1, prompt(&kept));
    assert!(first(&healed).starts_with(' ') && !first(&kept).starts_with(' '), "{healed} {kept}");
    // Exact draws from a real model.
    let body = json!({
        "messages": says("Is the sky blue? Answer yes or no."), "guided_choice": ["Yes", "No"], "seed": 3,
        "maskwright": {"sampling": "exact", "tries": 300, "mass": true},
    });
    let answer = running.client.chat(&body).await.good();
    assert_eq!(answer["maskwright"]["sampling"]["exact"], json!([true]), "{answer}");
    assert!(answer["maskwright"]["mass"][0]["sum"].as_f64().unwrap() <= 0.0, "{answer}");
}
