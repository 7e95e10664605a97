//! How an answer is written: exact draws, the mass of masks, drafts.

use serde_json::{Value, json};

use crate::fake::{dictated, says, start, with};

const CHOICES: [&str; 3] = ["yes", "no", "perhaps"];

fn choice() -> Value {
    json!({"type": "choice", "choices": CHOICES})
}

/// A question that is answered by chance.
fn asked(own: &Value) -> Value {
    json!({"messages": says("What?"), "response_format": choice(), "seed": 5, "maskwright": own})
}

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

#[tokio::test]
async fn an_exact_draw_says_what_it_took() {
    let running = start().await;
    let body = asked(&json!({"sampling": "exact", "tries": 500}));
    let answer = running.client.chat(&body).await.good();
    let told = &answer["maskwright"]["sampling"];
    assert!(CHOICES.contains(&content(&answer)), "{answer}");
    assert_eq!(told["exact"], json!([true]), "{answer}");
    assert!(told["tries"].as_u64().unwrap() > 1 && told["tokens"].as_u64().unwrap() > 3, "{told}");
    let mass = |name: &str| told["mass"][name].as_f64().unwrap();
    assert!((mass("valid") + mass("lost") + mass("unaccounted") - 1.0).abs() < 1e-9, "{told}");
    assert!(mass("lost") > 0.9 && mass("valid") > 0.0, "{told}");
    // The same seed, the same answer, in one piece, also where it is streamed.
    let chunks = running.client.chat(&with(body, json!({"stream": true}))).await.chunks();
    let text = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned();
    assert_eq!(chunks.iter().map(text).collect::<String>(), content(&answer));
    assert_eq!(&chunks[chunks.len() - 1]["maskwright"]["sampling"], told);
    // What the model would write anyway takes one try.
    let said = with(dictated("perhaps"), json!({"response_format": choice(), "temperature": 1}));
    let answer = running.client.chat(&with(said, json!({"maskwright": {"sampling": "exact"}}))).await.good();
    assert_eq!((content(&answer), &answer["maskwright"]["sampling"]["tries"]), ("perhaps", &json!(1)));
}

#[tokio::test]
async fn several_answers_and_other_endpoints() {
    let running = start().await;
    let body = with(asked(&json!({"sampling": "exact", "tries": 900})), json!({"n": 3}));
    let answer = running.client.chat(&body).await.good();
    assert_eq!(answer["maskwright"]["sampling"]["exact"], json!([true, true, true]), "{answer}");
    for choice in answer["choices"].as_array().unwrap() {
        assert!(CHOICES.contains(&choice["message"]["content"].as_str().unwrap()), "{answer}");
    }
    let own = json!({"sampling": "exact", "tries": 900, "mass": true});
    let body = json!({"prompt": "What?", "response_format": choice(), "maskwright": own});
    let answer = running.client.post("/v1/completions", &body).await.good();
    assert!(CHOICES.contains(&answer["choices"][0]["text"].as_str().unwrap()), "{answer}");
    assert_eq!(answer["maskwright"]["sampling"]["exact"], json!([true]));
    assert!(answer["maskwright"]["mass"][0]["sum"].as_f64().unwrap() < 0.0, "{answer}");
    let body = json!({"input": "What?", "text": {"format": choice()}, "maskwright": own});
    let answer = running.client.post("/v1/responses", &body).await.good();
    assert_eq!(answer["maskwright"]["sampling"]["exact"], json!([true]), "{answer}");
    let body = json!({"prompt": "What?", "response_format": choice(), "maskwright": own});
    let answer = running.client.post("/completion", &body).await.good();
    assert_eq!(answer["maskwright"]["sampling"]["exact"], json!([true]), "{answer}");
}

#[tokio::test]
async fn when_tries_are_used_up_the_answer_is_valid_and_says_so() {
    let running = start().await;
    let answer = running.client.chat(&asked(&json!({"sampling": "exact", "tries": 1}))).await.good();
    let told = &answer["maskwright"]["sampling"];
    assert_eq!((&told["exact"], &told["tries"]), (&json!([false]), &json!(1)));
    assert!(told["mass"]["unaccounted"].as_f64().unwrap() > 0.0, "{told}");
    assert!(CHOICES.contains(&content(&answer)), "{answer}");
    running.idle().await;
}

#[tokio::test]
async fn the_mass_of_masks_is_told_if_it_is_asked_for() {
    let running = start().await;
    let said = |text: &str, own: Value| {
        with(dictated(text), json!({"response_format": choice(), "maskwright": own}))
    };
    let answer = running.client.chat(&said("yes", json!({}))).await.good();
    assert!(answer.get("maskwright").is_none(), "{answer}");
    let metrics = |page: String| {
        page.lines().filter(|line| line.contains("mask_mass_nats")).map(str::to_owned).collect::<Vec<_>>()
    };
    let page = metrics(String::from_utf8_lossy(&running.client.get("/metrics").await.body).into_owned());
    assert!(page.contains(&"maskwright_mask_mass_nats_count 0".to_owned()), "{page:?}");
    // The model wants to say this: masks do not matter.
    let answer = running.client.chat(&said("yes", json!({"mass": true, "tokens": true}))).await.good();
    let mass = &answer["maskwright"]["mass"][0];
    assert_eq!(mass["tokens"].as_array().unwrap().len(), 3);
    assert!(mass["sum"].as_f64().unwrap() > -1e-3, "{mass}");
    assert!(answer["maskwright"]["tokens"][0][0]["mass"].is_number(), "{answer}");
    // And here it wants to say something else.
    let body = with(said("maybe", json!({"mass": true})), json!({"stream": true}));
    let chunks = running.client.chat(&body).await.chunks();
    let mass = &chunks[chunks.len() - 1]["maskwright"]["mass"];
    assert!(mass["tokens"][0].as_f64().unwrap() < -30.0, "{mass}");
    let sum: f64 = mass["tokens"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
    assert!((mass["sum"].as_f64().unwrap() - sum).abs() < 1e-3);
    let page = metrics(String::from_utf8_lossy(&running.client.get("/metrics").await.body).into_owned());
    let count = 3 + mass["tokens"].as_array().unwrap().len();
    assert!(page.contains(&format!("maskwright_mask_mass_nats_count {count}")), "{page:?}");
    assert!(page.contains(&format!("maskwright_mask_mass_nats_bucket{{le=\"+Inf\"}} {count}")), "{page:?}");
}

#[tokio::test]
async fn a_draft_comes_first_and_is_told() {
    let running = start().await;
    let body = with(
        dictated("Let me think."),
        json!({"response_format": choice(), "maskwright": {"draft": {"max_tokens": 40}}}),
    );
    let answer = running.client.chat(&body).await.good();
    let draft = json!({"text": "Let me think.", "tokens": 13, "finish_reason": "stop"});
    assert_eq!(answer["maskwright"]["draft"], draft);
    assert!(CHOICES.contains(&content(&answer)), "{answer}");
    // The draft is a part of the prompt of the answer, and the two lines behind it.
    let plain = with(dictated("Let me think."), json!({"response_format": choice()}));
    let before = running.client.chat(&plain).await.good()["usage"]["prompt_tokens"].as_u64().unwrap();
    assert_eq!(answer["usage"]["prompt_tokens"], before + 13 + 2);
    let own = json!({"draft": {"max_tokens": 3, "then": ""}, "sampling": "exact", "tries": 900});
    let body = with(body, json!({"temperature": 1, "stream": true, "maskwright": own}));
    let chunks = running.client.chat(&body).await.chunks();
    let told = &chunks[chunks.len() - 1]["maskwright"];
    assert_eq!(told["draft"], json!({"text": "Let", "tokens": 3, "finish_reason": "length"}));
    assert_eq!(told["sampling"]["exact"], json!([true]), "{told}");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_name() {
    let running = start().await;
    let exact = || json!({"sampling": "exact"});
    let cases = [
        (json!({"maskwright": {"sampling": "exact", "tries": 0}}), "maskwright.tries", "invalid_value"),
        (
            json!({"maskwright": {"sampling": "exact", "tries": 1_000_000_000}}),
            "maskwright.tries",
            "invalid_value",
        ),
        (json!({"maskwright": {"tries": 4}}), "maskwright.tries", "invalid_value"),
        (
            json!({"maskwright": {"sampling": "exact", "tries": 2}, "n": 3}),
            "maskwright.tries",
            "invalid_value",
        ),
        (
            json!({"maskwright": {"sampling": "exact", "finish": false}}),
            "maskwright.finish",
            "conflicting_parameters",
        ),
        (json!({"maskwright": exact(), "temperature": 0}), "temperature", "invalid_value"),
        (json!({"maskwright": exact(), "top_p": 0.5}), "top_p", "invalid_value"),
        (json!({"maskwright": exact(), "stop": "x"}), "stop", "invalid_value"),
        (
            json!({"maskwright": exact(), "response_format": null}),
            "maskwright.sampling",
            "conflicting_parameters",
        ),
        (
            json!({"maskwright": {"draft": {"max_tokens": 5000}}}),
            "maskwright.draft.max_tokens",
            "context_length_exceeded",
        ),
        (
            json!({"maskwright": {"draft": {"max_tokens": 9}}, "n": 2}),
            "maskwright.draft",
            "conflicting_parameters",
        ),
        (
            json!({"maskwright": {"draft": {"max_tokens": 9}}, "response_format": null}),
            "maskwright.draft",
            "conflicting_parameters",
        ),
    ];
    for (more, param, code) in cases {
        let reply = running.client.chat(&with(asked(&json!({})), more.clone())).await;
        assert_eq!(reply.status, 400, "{more}");
        let error = reply.json()["error"].clone();
        assert_eq!((&error["param"], &error["code"]), (&json!(param), &json!(code)), "{more}: {error}");
    }
    let body = with(asked(&json!({"draft": {"max_tokens": 5000}})), json!({}));
    let message = running.client.chat(&body).await.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("leaves room for a draft of"), "{message}");
}

/// Rules say at which temperature their tokens are drawn, whatever the request says of all.
#[tokio::test]
async fn rules_have_temperatures() {
    let running = start().await;
    let grammar = "start: cold \":\" hot\ncold[temperature=0]: /[a-z]{6}/\nhot[temperature=50]: /[a-z]{6}/\n";
    let texts = async |grammar: &str, more: Value| {
        let body = json!({"messages": says("What?"), "n": 8, "seed": 3, "response_format": {"type": "lark", "grammar": grammar}});
        let answer = running.client.chat(&with(body, more)).await.good();
        let choices = answer["choices"].as_array().unwrap().clone();
        let text = |choice: &Value| choice["message"]["content"].as_str().unwrap().to_owned();
        choices.iter().map(text).collect::<Vec<_>>()
    };
    let distinct = |texts: &[String], part: usize| {
        texts
            .iter()
            .map(|text| text.split(':').nth(part).unwrap())
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    };
    for temperature in [0.0, 2.0] {
        let found = texts(grammar, json!({"temperature": temperature})).await;
        assert_eq!(distinct(&found, 0), 1, "{found:?}");
        assert!(distinct(&found, 1) > 5, "{found:?}");
    }
    // Without them all is as the request says.
    let plain = grammar.replace("[temperature=0]", "").replace("[temperature=50]", "");
    let found = texts(&plain, json!({"temperature": 0})).await;
    assert_eq!((distinct(&found, 0), distinct(&found, 1)), (1, 1), "{found:?}");
    let found = texts(&plain, json!({"temperature": 2})).await;
    assert!(distinct(&found, 0) > 5, "{found:?}");
    // What is nearly zero is no reason to fail.
    let found = texts(&plain, json!({"temperature": 1e-40})).await;
    assert_eq!(distinct(&found, 0), 1, "{found:?}");
    // An exact draw is at one temperature.
    let body = json!({"messages": says("What?"), "response_format": {"type": "lark", "grammar": grammar}, "maskwright": {"sampling": "exact"}});
    let error = running.client.chat(&body).await.error();
    assert_eq!(error, (400, "maskwright.sampling".into(), "conflicting_parameters".into()));
}
