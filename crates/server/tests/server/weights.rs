//! Answers under grammars with probabilities.

use serde_json::{Value, json};

use crate::fake::{Setup, dictated, says, start, start_with, with};

const DRINKS: &str = "S -> D [0.5] | D \", \" S [0.5]\nD -> tea [0.9] | coffee [0.1]";

fn pcfg(more: Value) -> Value {
    json!({"response_format": with(json!({"type": "pcfg", "grammar": DRINKS}), more)})
}

#[tokio::test]
async fn a_grammar_counts_as_much_as_it_is_told() {
    let running = start().await;
    let text = async |more: Value| {
        let answer = running.client.chat(&with(dictated("coffee"), pcfg(more))).await.good();
        answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    // The model prefers `coffee` by some 50, the grammar `tea` by 2.2.
    assert_eq!(text(json!({"lambda": 0})).await, "coffee");
    assert_eq!(text(json!({})).await, "coffee");
    assert_eq!(text(json!({"lambda": 100})).await[..3], *"tea");
    // Only the best token of the model is left, so the grammar has no choice.
    assert_eq!(text(json!({"lambda": 100, "top_k": 1})).await, "coffee");
    assert_eq!(text(json!({"lambda": 100, "top_k": 0})).await[..3], *"tea");
}

#[tokio::test]
async fn a_model_without_an_opinion_writes_as_the_grammar_does() {
    let running = start().await;
    // The fake's logits lie between 0 and 4, by chance: with λ = 40 they hardly count against 0.9 : 0.1 = e^2.2.
    let more = json!({"lambda": 40});
    let body = with(json!({"messages": says("what?"), "temperature": 40.0, "seed": 7, "n": 8}), pcfg(more));
    let reply = running.client.chat(&with(body, json!({"temperature": 2.0}))).await.good();
    let choices = reply["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 8);
    for choice in choices {
        let text = choice["message"]["content"].as_str().unwrap();
        assert!(text.split(", ").all(|drink| drink == "tea"), "{text}");
    }
}

#[tokio::test]
async fn an_answer_tells_what_the_grammar_thinks_of_it() {
    let running = start().await;
    let body = with(dictated("tea, coffee"), pcfg(json!({"lambda": 0.5, "report": true})));
    let answer = running.client.chat(&body).await.good();
    assert_eq!(answer["choices"][0]["message"]["content"], "tea, coffee");
    let report = answer["maskwright"]["weights"][0].clone();
    let near = |value: &Value, wanted: f64| {
        let got = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
        assert!((got - wanted).abs() < 1e-9, "{got} is not {wanted}");
    };
    near(&report["logprob"], (0.5f64 * 0.9 * 0.5 * 0.1).ln());
    near(&report["prefix_logprob"], (0.5f64 * 0.9 * 0.1).ln());
    assert_eq!(report["best_parse"], "(S (D tea) \", \" (S (D coffee)))");
    let counts = report["expected_counts"].as_array().unwrap();
    assert_eq!(counts.len(), 4);
    assert_eq!(counts[0]["rule"], "S -> D");
    near(&counts[0]["count"], 1.0);
    // In a stream it stands with the reason for the end.
    let chunks = running.client.chat(&with(body.clone(), json!({"stream": true}))).await.chunks();
    let last = chunks.iter().find(|chunk| !chunk["choices"][0]["finish_reason"].is_null()).unwrap();
    assert_eq!(last["maskwright"]["weights"], report);
    let plain = with(json!({"prompt": "SAY:tea, coffee|", "temperature": 0}), pcfg(json!({"report": true})));
    let answer = running.client.post("/v1/completions", &plain).await.good();
    assert_eq!(answer["maskwright"]["weights"][0]["best_parse"], report["best_parse"]);
    let chunks = running.client.post("/v1/completions", &with(plain, json!({"stream": true}))).await.chunks();
    assert!(chunks.iter().any(|chunk| chunk["maskwright"]["weights"] == answer["maskwright"]["weights"][0]));
    // Without being asked for, nothing is told.
    let body = with(dictated("tea"), pcfg(json!({})));
    assert!(running.client.chat(&body).await.good()["maskwright"].is_null());
}

#[tokio::test]
async fn an_incomplete_answer_has_no_parse() {
    let running = start().await;
    let limits = json!({"max_tokens": 2, "maskwright": {"finish": false}});
    let body = with(with(dictated("tea"), pcfg(json!({"report": true}))), limits);
    let report = running.client.chat(&body).await.good()["maskwright"]["weights"][0].clone();
    assert!((report["prefix_logprob"].as_f64().unwrap() - 0.9f64.ln()).abs() < 1e-9, "{report}");
    assert!(report["logprob"].is_null() && report["best_parse"].is_null());
}

#[tokio::test]
async fn the_server_may_have_a_grammar_of_its_own() {
    let mut setup = Setup::default();
    setup.settings.pcfg = Some("S -> yes [0.5] | no [0.5]".into());
    let running = start_with(setup).await;
    let body = with(dictated("no"), json!({"response_format": {"type": "pcfg"}}));
    assert_eq!(running.client.chat(&body).await.good()["choices"][0]["message"]["content"], "no");
    // A request may bring another.
    let body = with(dictated("tea"), pcfg(json!({})));
    assert_eq!(running.client.chat(&body).await.good()["choices"][0]["message"]["content"], "tea");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_its_place() {
    let running = start().await;
    let ask = async |format: Value| {
        let body = with(dictated("tea"), json!({"response_format": format}));
        let reply = running.client.chat(&body).await;
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        (reply.error(), message)
    };
    let at = |name: &str| format!("response_format{name}");
    for (format, param, code, part) in [
        (json!({"lambda": "x"}), ".lambda", "invalid_type", "must be a number"),
        (json!({"lambda": -1}), ".lambda", "invalid_value", "between 0 and 1000"),
        (json!({"lambda": 1e300}), ".lambda", "invalid_value", "between 0 and 1000"),
        (json!({"top_k": -1}), ".top_k", "invalid_value", "between 0"),
        (json!({"top_k": 1.5}), ".top_k", "invalid_type", "whole number"),
        (json!({"report": 1}), ".report", "invalid_type", "boolean"),
        (json!({"weight": 1}), ".weight", "unknown_parameter", "weight"),
        (json!({"start": "X"}), "", "invalid_grammar", "`X` has no rule"),
        (json!({"grammar": "S -> a [0.5] | b [0.6]"}), "", "invalid_grammar", "add up to 1.1"),
        (json!({"grammar": "S -> a [0.5"}), "", "invalid_grammar", "not closed"),
        (json!({"grammar": "S -> S"}), "", "invalid_grammar", "derives no text"),
        // The sum is one, and yet the loop is as good as certain: no prefix has a finite weight.
        (json!({"grammar": "S -> S a [0.9999999999999] | a"}), "", "invalid_grammar", "never ends"),
    ] {
        let format = with(json!({"type": "pcfg", "grammar": DRINKS}), format);
        let (error, message) = ask(format.clone()).await;
        assert_eq!(error, (400, at(param), code.to_owned()), "{format}: {message}");
        assert!(message.contains(part), "{format}: {message}");
    }
    assert_eq!(
        ask(json!({"type": "pcfg"})).await.0,
        (400, at(".grammar"), "missing_required_parameter".into())
    );
    let body = json!({"input": "x", "text": {"format": {"type": "pcfg", "grammar": DRINKS, "report": true}}});
    let error = running.client.post("/v1/responses", &body).await.error();
    assert_eq!(error, (400, "text.format.report".into(), "unsupported_parameter".into()));
    // The same place that others have in the text.
    let body = json!({"constraint": {"kind": "pcfg", "source": "S -> a [0.5] | b [0.6]"}});
    let answer = running.client.post("/v1/grammar/check", &body).await.good();
    assert_eq!(
        (&answer["diagnostics"][0]["line"], &answer["diagnostics"][0]["column"]),
        (&json!(1), &json!(1)),
        "{answer}"
    );
}
