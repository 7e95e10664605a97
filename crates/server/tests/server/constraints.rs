//! Answers under constraints, whatever the model would like to say.

use serde_json::{Value, json};

use maskwright_server::Finish;

use crate::{
    client::Reply,
    fake::{Setup, dictated, says, start, start_with, with},
};

/// The token that ends an answer is one of `max_tokens`: four letters and the end are five.
#[tokio::test]
async fn a_budget_counts_the_end() {
    let running = start().await;
    let body = |tokens: u32| {
        let more = json!({"regex": "[a-z]{4,}", "max_tokens": tokens, "maskwright": {"finish": true}});
        with(dictated("abcdefghijkl"), more)
    };
    let refused = running.client.chat(&body(4)).await;
    assert_eq!(refused.error(), (400, "max_tokens".into(), "budget_too_small".into()));
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("give at least 5"));
    for (tokens, text) in [(5, "abcd"), (8, "abcdefg")] {
        let answer = running.client.chat(&body(tokens)).await.good();
        assert_eq!(content(&answer), text, "{answer}");
    }
}

const CATS: &str = r#"{"name": "Tom", "legs": 4, "mood": "a very long story about cats"}"#;

fn cat() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}, "legs": {"type": "integer"}, "mood": {"type": "string"}},
           "required": ["name", "legs", "mood"], "additionalProperties": false})
}

/// The server finishes answers unless it is told otherwise, and says of an answer that it was squeezed.
#[tokio::test]
async fn a_small_budget_squeezes_an_answer_and_says_so() {
    let running = start().await;
    let body = |tokens: usize| with(dictated(CATS), json!({"guided_json": cat(), "max_tokens": tokens}));
    let whole = running.client.chat(&body(CATS.len() + 40)).await;
    assert!(!whole.headers.contains_key("x-maskwright-squeezed"));
    let whole = whole.good();
    assert_eq!((content(&whole).as_str(), whole.get("maskwright")), (CATS, None));
    let squeezed = running.client.chat(&body(50)).await;
    assert_eq!(squeezed.headers["x-maskwright-squeezed"], "true");
    let squeezed = squeezed.good();
    assert_eq!(squeezed["maskwright"], json!({"squeezed": true}));
    let document: Value = serde_json::from_str(&content(&squeezed)).unwrap();
    assert_eq!((&document["name"], document.as_object().unwrap().len()), (&json!("Tom"), 3));
    let chunks = running.client.chat(&with(body(50), json!({"stream": true}))).await.chunks();
    let last = chunks.last().unwrap();
    assert_eq!(
        (&last["choices"][0]["finish_reason"], &last["maskwright"]["squeezed"]),
        (&json!("stop"), &json!(true))
    );
    let response = json!({"input": format!("SAY:{CATS}|"), "temperature": 0, "max_output_tokens": 50, "structured_outputs": {"json": cat()}});
    let reply = running.client.post("/v1/responses", &response).await;
    assert_eq!(reply.headers["x-maskwright-squeezed"], "true");
    let answer = reply.good();
    assert_eq!((&answer["status"], &answer["maskwright"]["squeezed"]), (&json!("completed"), &json!(true)));
    // Who wants an answer cut off gets it.
    let cut = running.client.chat(&with(body(30), json!({"maskwright": {"finish": false}}))).await.good();
    assert_eq!(cut["choices"][0]["finish_reason"], "length");
    assert_eq!(cut["choices"][0]["message"]["content"], CATS[..30]);
    // A completion without a number of tokens is not cut at sixteen if it has a constraint.
    let body = json!({"prompt": format!("SAY:{CATS}|"), "temperature": 0, "guided_json": cat()});
    let answer = running.client.post("/v1/completions", &body).await.good();
    assert_eq!(answer["choices"][0]["text"], CATS);
}

#[tokio::test]
async fn a_budget_that_nobody_can_keep_is_told() {
    let running = start().await;
    let item = json!({"type": "string", "pattern": "^(abcdefghij)*$"});
    let unique = json!({"type": "array", "items": item, "uniqueItems": true, "minItems": 2});
    let text = r#"["", "abcdefghij"]"#;
    let body = with(dictated(text), json!({"guided_json": unique}));
    let reply = running.client.chat(&body).await;
    assert!(reply.headers["x-maskwright-warning"].contains("may be cut off"), "{:?}", reply.headers);
    assert_eq!(content(&reply.good()), text);
    let asked = with(body, json!({"maskwright": {"finish": true}}));
    assert_eq!(
        running.client.chat(&asked).await.error(),
        (400, "maskwright.finish".into(), "unsupported_parameter".into())
    );
}

#[tokio::test]
async fn a_keyword_that_is_almost_one_gets_a_hint() {
    let running = start().await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "maxLenght": 2, "title": "x"}}, "required": ["a"]});
    let reply = running.client.chat(&with(dictated("{\"a\": \"x\"}"), json!({"guided_json": schema}))).await;
    let hint = "'guided_json': /properties/a/maxLenght constrains nothing; did you mean maxLength?";
    assert_eq!(reply.headers["x-maskwright-warning"], hint);
    reply.good();
}

#[tokio::test]
async fn a_format_that_is_not_known_is_told() {
    let running = start().await;
    let schema = json!({"type": "string", "format": "guid"});
    let reply = running.client.chat(&with(dictated("\"x\""), json!({"guided_json": schema.clone()}))).await;
    let told = "/format constrains nothing, because there is no format of this name; did you mean uuid?";
    assert_eq!(reply.headers["x-maskwright-warning"], format!("'guided_json': {told}"));
    assert_eq!(content(&reply.good()), "\"x\"");
    let constraint = json!({"kind": "json_schema", "source": schema.to_string()});
    let checked = running.client.post("/v1/grammar/check", &json!({"constraint": constraint})).await.good();
    assert_eq!(checked["ok"], true);
    let note = &told["/format ".len()..];
    let warning = json!({"severity": "warning", "message": note, "pointer": "/format"});
    assert_eq!(checked["diagnostics"], json!([warning]));
    let entry = json!({"pointer": "/format", "coverage": "note", "note": note});
    assert!(checked["report"].as_array().unwrap().contains(&entry), "{checked}");

    // Many of them do not become as many headers.
    let properties: serde_json::Map<String, Value> = (0..30)
        .map(|number| (format!("key{number}"), json!({"type": "string", "format": "phone"})))
        .collect();
    let schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let reply = running.client.chat(&with(dictated("{}"), json!({"guided_json": schema}))).await;
    assert!(reply.headers["x-maskwright-warning"].contains("22 more warnings"), "{:?}", reply.headers);
    reply.good();
}

#[tokio::test]
async fn whether_answers_are_finished_is_up_to_the_server() {
    let ask = async |finish: Finish, own: Option<bool>| {
        let mut setup = Setup::default();
        setup.settings.finish = finish;
        let running = start_with(setup).await;
        let mut body = with(dictated("abcdefgh;"), json!({"regex": "[a-z]+;", "max_tokens": 5}));
        if let Some(own) = own {
            body["maskwright"] = json!({"finish": own});
        }
        running.client.chat(&body).await
    };
    let text = |reply: Reply| reply.good()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert_eq!(text(ask(Finish::Always, None).await), "abc;");
    assert_eq!(text(ask(Finish::Always, Some(false)).await), "abcde");
    assert_eq!(text(ask(Finish::Ask, None).await), "abcde");
    assert_eq!(text(ask(Finish::Ask, Some(true)).await), "abc;");
    assert_eq!(text(ask(Finish::Never, Some(false)).await), "abcde");
    assert_eq!(
        ask(Finish::Never, Some(true)).await.error(),
        (400, "maskwright.finish".into(), "unsupported_parameter".into())
    );
}

#[tokio::test]
async fn a_stop_string_cuts_no_document() {
    let running = start().await;
    let body = with(dictated(CATS), json!({"guided_json": cat(), "stop": ["\"legs\"", "}"]}));
    assert_eq!(content(&running.client.chat(&body).await.good()), CATS);
    let free = with(dictated("one. two. three"), json!({"regex": "[a-z. ]+", "stop": ["."]}));
    assert_eq!(content(&running.client.chat(&free).await.good()), "one");
}

/// Each word means what it means where it comes from.
#[tokio::test]
async fn objects_are_as_closed_as_the_word_says() {
    let running = start().await;
    let schema = json!({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]});
    let more = r#"{"a": 1, "b": 2}"#;
    let own = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    for (body, is_open) in [
        (json!({"response_format": own}), true),
        (json!({"response_format": {"type": "json_object", "schema": schema}}), true),
        (json!({"guided_json": schema}), false),
        (json!({"structured_outputs": {"json": schema}}), false),
        (json!({"json_schema": schema}), false),
    ] {
        let text = content(&running.client.chat(&with(dictated(more), body.clone())).await.good());
        assert_eq!(text == more, is_open, "{body}: {text}");
    }
    let ask = async |path: &str, body: Value| running.client.post(path, &body).await.good();
    let prompt = format!("SAY:{more}|");
    let llama = ask("/completion", json!({"prompt": prompt, "temperature": 0, "json_schema": schema})).await;
    assert_eq!(llama["content"], more);
    let params = json!({"temperature": 0, "json_schema": schema.to_string()});
    let sglang = ask("/generate", json!({"text": prompt, "sampling_params": params})).await;
    assert_ne!(sglang["text"], more);
    assert!(sglang["text"].as_str().unwrap().starts_with(r#"{"a": 1"#), "{sglang}");
}

#[tokio::test]
async fn tidy_white_space_breaks_lines_only_at_brackets_and_behind_commas() {
    let running = start().await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"const": 1}}, "b": {"const": 2}}, "required": ["a", "b"], "additionalProperties": false});
    let ask = async |text: &str| {
        let answer = running.client.chat(&with(dictated(text), json!({"guided_json": schema}))).await.good();
        content(&answer) == text
    };
    for good in [
        "{\"a\":[1,1],\"b\":2}",
        "{ \"a\" : [ 1, 1 ], \"b\": 2 }",
        "{\n  \"a\": [\n\t1,\n\t1\n  ],\n  \"b\": 2\n}",
        "{\"a\":[ ],\"b\":2}",
        "{\"a\":[\n],\"b\":2}",
    ] {
        assert!(ask(good).await, "{good}");
    }
    for bad in [
        "{\"a\"\n:[1],\"b\":2}",
        "{\"a\":\n[1],\"b\":2}",
        "{\"a\":[1\n,1],\"b\":2}",
        "{\"a\":[1]\n,\"b\":2}",
        "{\"a\":[1],\n\n\"b\":2}",
    ] {
        assert!(!ask(bad).await, "{bad}");
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
    let body = json!({"prompt": "1", "regex": "[ab]{8}", "max_tokens": 9});
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
    let body = with(dictated("abc"), json!({"response_format": {"type": "json_object"}, "max_tokens": 5}));
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
