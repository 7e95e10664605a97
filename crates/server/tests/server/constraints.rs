//! Answers under constraints, whatever the model would like to say.

use serde_json::{Value, json};

use crate::fake::{Setup, dictated, says, start, start_with, with};

/// The token that ends an answer is one of `max_tokens`: four letters and the end are five.
#[tokio::test]
async fn a_budget_counts_the_end() {
    let running = start().await;
    let body = |tokens: u32| {
        let more = json!({"regex": "[a-z]{4,}", "max_tokens": tokens, "maskwright": {"finish": true}});
        with(dictated("abcdefghijkl"), more)
    };
    let refused = running.client.chat(&body(4)).await;
    assert_eq!(refused.error(), (400, "regex".into(), "budget_too_small".into()));
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("5 are needed"));
    for (tokens, text) in [(5, "abcd"), (8, "abcdefg")] {
        let answer = running.client.chat(&body(tokens)).await.good();
        assert_eq!(content(&answer), text, "{answer}");
    }
}

/// The content of an answer that ended by itself.
fn content(answer: &Value) -> String {
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "stop", "{answer}");
    choice["message"]["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_kind_of_constraint_is_kept() {
    let running = start().await;
    let schema = json!({"type": "object", "properties": {"a": {"enum": [1, 22]}}, "required": ["a"], "additionalProperties": false});
    let compact = json!({"whitespace": "compact"});
    let strict =
        json!({"name": "a", "strict": true, "schema": {"type": "object", "properties": {"a": {"const": 1}}}});
    let (year, object) = ("^19[0-9]{2}$", r#"^\{"a":(1|22)\}$"#);
    for (more, pattern) in [
        (json!({"response_format": {"type": "regex", "pattern": "19[0-9]{2}"}}), year),
        (json!({"structured_outputs": {"regex": "19[0-9]{2}"}}), year),
        (json!({"guided_regex": "19[0-9]{2}"}), year),
        (json!({"regex": "19[0-9]{2}"}), year),
        (json!({"grammar": "root ::= \"19\" [0-9] [0-9]"}), year),
        (json!({"response_format": {"type": "ebnf", "grammar": "root ::= \"19\" [0-9]{2}"}}), year),
        (json!({"response_format": {"type": "lark", "grammar": "start: \"19\" /[0-9]{2}/"}}), year),
        (json!({"ebnf": "root ::= \"19\" [0-9]{2}"}), year),
        (json!({"response_format": {"type": "choice", "choices": ["yes", "no"]}}), "^(yes|no)$"),
        (json!({"structured_outputs": {"choice": ["yes", "no"]}}), "^(yes|no)$"),
        (json!({"json_schema": schema, "maskwright": compact}), object),
        (json!({"json_schema": schema.to_string(), "maskwright": compact}), object),
        (json!({"structured_outputs": {"json": schema, "disable_any_whitespace": true}}), object),
        (json!({"structured_outputs": {"json": schema, "whitespace_pattern": ""}}), object),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}, "maskwright": compact}),
            object,
        ),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": strict}, "maskwright": {"whitespace": "spaced"}}),
            r#"^\{"a": 1\}$"#,
        ),
    ] {
        let body = with(
            json!({"messages": says("no constraint for me"), "temperature": 1.5, "seed": 3}),
            more.clone(),
        );
        let answer = running.client.chat(&body).await.good();
        let text = content(&answer);
        let is_kept = regex_matches(pattern, &text);
        assert!(is_kept, "{more}: {text:?} does not match {pattern}");
    }
    // What the model wants to say is kept where it is allowed.
    let body = with(dictated("1945"), json!({"regex": "19[0-9]{2}"}));
    assert_eq!(content(&running.client.chat(&body).await.good()), "1945");
    let body = json!({"input": "SAY:1945|", "temperature": 0, "text": {"format": {"type": "regex", "pattern": "19[0-9]{2}"}}});
    let answer = running.client.post("/v1/responses", &body).await.good();
    assert_eq!(answer["output"][0]["content"][0]["text"], "1945");
    let body = json!({"prompt": "1", "regex": "[ab]{8}", "max_tokens": 8});
    let answer = running.client.post("/v1/completions", &body).await.good();
    assert!(regex_matches("^[ab]{8}$", answer["choices"][0]["text"].as_str().unwrap()));
}

fn regex_matches(pattern: &str, text: &str) -> bool {
    regex::Regex::new(pattern).unwrap().is_match(text)
}

/// What the schema of things asks for, by hand.
fn is_thing(document: &Value) -> bool {
    let Some(keys) = document.as_object().map(|object| object.keys().map(String::as_str).collect::<Vec<_>>())
    else {
        return false;
    };
    let name = document["name"].as_str().map_or(0, |name| name.chars().count());
    let tags = document["tags"].as_array().map_or(&[][..], |tags| tags);
    let size = document["size"].as_i64().unwrap_or(0);
    keys == ["name", "tags", "size", "more"]
        && (1..=6).contains(&name)
        && document["tags"].is_array()
        && tags.len() <= 3
        && tags.iter().all(|tag| ["red", "green", "blue"].iter().any(|known| tag == known))
        && (5..=300).contains(&size)
        && (document["more"].is_null() || document["more"].is_boolean())
}

#[tokio::test]
async fn random_answers_satisfy_their_schema() {
    let running = start().await;
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 6},
            "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 3},
            "size": {"type": "integer", "minimum": 5, "maximum": 300},
            "more": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
        },
        "required": ["name", "tags", "size", "more"],
        "additionalProperties": false,
    });
    let mut different = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let format = json!({"type": "json_schema", "json_schema": {"name": "thing", "schema": schema}});
        let body = json!({
            "messages": says("a thing"), "temperature": 1.5, "seed": seed, "response_format": format,
            "maskwright": {"whitespace": "flexible:2"},
        });
        let text = content(&running.client.chat(&body).await.good());
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"));
        assert!(is_thing(&document), "{text}");
        different.insert(text);
    }
    assert!(different.len() > 30, "{different:?}");
}

#[tokio::test]
async fn no_constraint_means_no_matcher() {
    let running = start().await;
    let text = json!({"response_format": {"type": "text"}});
    running.client.chat(&with(dictated("abc"), text)).await.good();
    let statistics = running.server.engine().grammars().service().statistics();
    assert_eq!(statistics.matching.matchers, 0);
    let body = with(dictated("abc"), json!({"response_format": {"type": "json_object"}, "max_tokens": 1}));
    running.client.chat(&body).await.good();
    running.idle().await;
    let statistics = running.server.engine().grammars().service().statistics();
    assert_eq!(statistics.matching.matchers, 1);
}

#[tokio::test]
async fn the_server_has_defaults_for_white_space_and_requests_overrule_them() {
    let mut setup = Setup::default();
    setup.settings.options.json_schema.whitespace = maskwright::json_schema::Whitespace::Compact;
    let running = start_with(setup).await;
    let schema = json!({"type": "array", "items": {"const": 1}, "minItems": 3, "maxItems": 3});
    let ask = async |more: Value| {
        let body = with(dictated("[1, 1, 1]"), with(json!({"json_schema": schema}), more));
        content(&running.client.chat(&body).await.good())
    };
    assert_eq!(ask(json!({})).await, "[1,1,1]");
    assert_eq!(ask(json!({"maskwright": {"whitespace": "spaced"}})).await, "[1, 1, 1]");
    assert_eq!(ask(json!({"maskwright": {"whitespace": {"pattern": " ?"}}})).await, "[1, 1, 1]");
}

#[tokio::test]
async fn keys_may_come_in_any_order_if_asked() {
    let running = start().await;
    let schema = json!({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"], "additionalProperties": false});
    let wanted = r#"{"b":2,"a":1}"#;
    let body = with(dictated(wanted), json!({"json_schema": schema, "maskwright": {"key_order": "any"}}));
    assert_eq!(content(&running.client.chat(&body).await.good()), wanted);
}
