//! What is refused, how, and by which name. After each of them the server goes on.

use std::time::Duration;

use maskwright::service::Settings as Compiling;
use serde_json::{Value, json};

use crate::{
    client::request,
    fake::{Setup, dictated, says, start, start_with, with},
};

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a line for each field")]
async fn fields_are_refused_by_name() {
    let running = start().await;
    let regex = json!({"type": "regex", "pattern": "a"});
    let schema = |schema: Value| json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}});
    for (more, status, param, code) in [
        (json!({"model": "gpt-5"}), 404, "model", "model_not_found"),
        (json!({"model": 5}), 400, "model", "invalid_type"),
        (json!({"mesages": []}), 400, "mesages", "unknown_parameter"),
        (json!({"messages": []}), 400, "messages", "invalid_value"),
        (json!({"messages": null}), 400, "messages", "missing_required_parameter"),
        (json!({"messages": "hello"}), 400, "messages", "invalid_type"),
        (json!({"messages": says(&"long ".repeat(300))}), 400, "messages", "context_length_exceeded"),
        (json!({"temperature": -1}), 400, "temperature", "invalid_value"),
        (json!({"temperature": 1e9}), 400, "temperature", "invalid_value"),
        (serde_json::from_str(r#"{"temperature": 1e400}"#).unwrap(), 400, "temperature", "invalid_value"),
        (json!({"min_tokens": 3}), 400, "min_tokens", "unsupported_parameter"),
        (json!({"use_beam_search": true}), 400, "use_beam_search", "unsupported_parameter"),
        (json!({"n_predict": 3, "max_tokens": 3}), 400, "n_predict", "conflicting_parameters"),
        (
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "tool", "content": "b", "tool_call_id": "c"}]}),
            400,
            "messages[1].tool_call_id",
            "invalid_value",
        ),
        (json!({"top_p": "all"}), 400, "top_p", "invalid_type"),
        (json!({"n": 1000}), 400, "n", "invalid_value"),
        (json!({"n": 4_000_000_000_000_000_000_i64}), 400, "n", "invalid_value"),
        (json!({"regex": "a{100000}"}), 400, "regex", "context_length_exceeded"),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g", "parameters": {"type": "objct"}}}]}),
            400,
            "tools[1].function.parameters",
            "invalid_json_schema",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f"}}], "response_format": {"type": "regex", "pattern": "("}}),
            400,
            "response_format",
            "invalid_regex",
        ),
        (
            json!({"tools": [{"type": "custom", "custom": {"name": "f", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "("}}}}]}),
            400,
            "tools[0].custom.format",
            "invalid_regex",
        ),
        (json!({"max_tokens": 0}), 400, "max_tokens", "invalid_value"),
        (json!({"stop": [""]}), 400, "stop", "invalid_value"),
        (json!({"stop": vec!["a"; 100]}), 400, "stop", "invalid_value"),
        (json!({"logit_bias": {"99999": 1}}), 400, "logit_bias", "invalid_value"),
        (json!({"top_logprobs": 3}), 400, "top_logprobs", "invalid_value"),
        (json!({"logprobs": true, "top_logprobs": 21}), 400, "top_logprobs", "invalid_value"),
        (json!({"stream_options": {"include_usage": true}}), 400, "stream_options", "invalid_value"),
        (json!({"store": true}), 400, "store", "unsupported_parameter"),
        (json!({"modalities": ["audio"]}), 400, "modalities", "unsupported_parameter"),
        (json!({"functions": []}), 400, "functions", "unsupported_parameter"),
        (json!({"regex": "a", "ebnf": "root ::= \"a\""}), 400, "ebnf", "conflicting_parameters"),
        (json!({"regex": "a", "response_format": regex}), 400, "regex", "conflicting_parameters"),
        (
            json!({"guided_json": {}, "structured_outputs": {"regex": "a"}}),
            400,
            "guided_json",
            "conflicting_parameters",
        ),
        (json!({"response_format": {"type": "json"}}), 400, "response_format.type", "invalid_value"),
        (json!({"response_format": "json_object"}), 400, "response_format", "invalid_type"),
        (
            json!({"response_format": {"type": "json_schema"}}),
            400,
            "response_format.schema",
            "missing_required_parameter",
        ),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": null}}),
            400,
            "response_format.schema",
            "missing_required_parameter",
        ),
        (
            json!({"response_format": {"type": "json_schema", "schema": null}}),
            400,
            "response_format.schema",
            "missing_required_parameter",
        ),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}}),
            400,
            "response_format.json_schema.schema",
            "missing_required_parameter",
        ),
        (schema(Value::Null), 400, "response_format.json_schema.schema", "missing_required_parameter"),
        (json!({"regex": "a{5,2}"}), 400, "regex", "invalid_regex"),
        (json!({"ebnf": "root ::= other"}), 400, "ebnf", "invalid_grammar"),
        (
            json!({"structured_outputs": {"grammar": "[0-9]+"}}),
            400,
            "structured_outputs.grammar",
            "invalid_grammar",
        ),
        (json!({"structured_outputs": {"choice": []}}), 400, "structured_outputs.choice", "invalid_choice"),
        (
            schema(json!({"properties": {"a": {"pattern": "(x)\\1"}}})),
            400,
            "response_format",
            "invalid_json_schema",
        ),
        (
            schema(json!({"type": "integer", "minimum": 5, "maximum": 4})),
            400,
            "response_format",
            "invalid_json_schema",
        ),
        (
            json!({"guided_decoding_backend": "outlines"}),
            400,
            "guided_decoding_backend",
            "unsupported_parameter",
        ),
        (
            json!({"response_format": {"type": "structural_tag"}}),
            400,
            "response_format",
            "invalid_structural_tag",
        ),
        (json!({"tools": [{"type": "function"}]}), 400, "tools[0].function", "missing_required_parameter"),
    ] {
        let reply = running.client.chat(&with(dictated("a"), more.clone())).await;
        assert_eq!(reply.error(), (status, param.to_owned(), code.to_owned()), "{more}");
    }
    running.client.chat(&dictated("still here")).await.good();
}

#[tokio::test]
async fn fields_of_other_endpoints_are_refused_by_name() {
    let running = start().await;
    for (path, body, param) in [
        ("/v1/completions", json!({}), "prompt"),
        ("/v1/completions", json!({"prompt": []}), "prompt"),
        ("/v1/completions", json!({"prompt": ""}), "prompt"),
        ("/v1/completions", json!({"prompt": [1, -1]}), "prompt[1]"),
        ("/v1/completions", json!({"prompt": [99_999]}), "prompt[0]"),
        ("/v1/completions", json!({"prompt": {}}), "prompt"),
        ("/v1/completions", json!({"prompt": "a", "suffix": "b"}), "suffix"),
        ("/v1/completions", json!({"prompt": vec!["a"; 65]}), "prompt"),
        ("/v1/responses", json!({}), "input"),
        ("/v1/responses", json!({"input": "a", "previous_response_id": "resp_1"}), "previous_response_id"),
        ("/v1/responses", json!({"input": "a", "background": true}), "background"),
        ("/v1/responses", json!({"input": "a", "text": {"format": {"type": "x"}}}), "text.format.type"),
        (
            "/v1/responses",
            json!({"input": "a", "text": {"format": {"type": "json_schema", "name": "n", "schema": null}}}),
            "text.format.schema",
        ),
        ("/v1/responses", json!({"input": "a", "response_format": {"type": "text"}}), "response_format"),
        ("/v1/responses", json!({"input": "a", "include": ["file_search_call.results"]}), "include"),
        ("/generate", json!({"sampling_params": {}}), "text"),
        ("/generate", json!({"text": "a", "input_ids": [1]}), "input_ids"),
        (
            "/generate",
            json!({"text": "a", "sampling_params": {"temprature": 1}}),
            "sampling_params.temprature",
        ),
        (
            "/generate",
            json!({"text": "a", "sampling_params": {"regex": "a", "ebnf": "root ::= \"a\""}}),
            "sampling_params.ebnf",
        ),
        (
            "/generate",
            json!({"text": "a", "regex": "a", "sampling_params": {"regex": "a"}}),
            "sampling_params.regex",
        ),
        ("/completion", json!({}), "prompt"),
        ("/completion", json!({"prompt": "a", "grammar": "root ::= \"a\"", "json_schema": {}}), "grammar"),
        ("/completion", json!({"prompt": "a", "mirostat": 2}), "mirostat"),
        (
            "/v1/responses",
            json!({"input": "a", "structured_outputs": {"regex": "a"}, "text": {"format": {"type": "json_object"}}}),
            "structured_outputs.regex",
        ),
        ("/v1/tokenize", json!({}), "text"),
        ("/v1/detokenize", json!({"tokens": ["a"]}), "tokens[0]"),
        ("/v1/explain", json!({"text": "a", "constraint": {"kind": "regex"}}), "constraint.source"),
        ("/v1/grammar/check", json!({}), "constraint"),
    ] {
        let (status, found, _) = running.client.post(path, &body).await.error();
        assert_eq!((status, found.as_str()), (400, param), "{path} {body}");
    }
    running.client.chat(&dictated("still here")).await.good();
}

#[tokio::test]
async fn messages_name_the_place_and_both_fields() {
    let running = start().await;
    let message = async |more: Value| {
        let reply = running.client.chat(&with(dictated("a"), more)).await;
        reply.json()["error"]["message"].as_str().unwrap().to_owned()
    };
    let both = message(json!({"json_schema": {}, "regex": "a"})).await;
    assert!(both.starts_with("cannot specify both 'regex' and 'json_schema' in the same request"), "{both}");
    let schema =
        message(json!({"json_schema": {"properties": {"a": {"items": {"pattern": "(x)\\1"}}}}})).await;
    assert!(schema.contains("/properties/a/items/pattern"), "{schema}");
    let regex = message(json!({"regex": "a{5,2}"})).await;
    assert!(regex.contains("at byte 1"), "{regex}");
}

#[tokio::test]
async fn bodies_that_are_no_json() {
    let mut setup = Setup::default();
    setup.settings.max_body = 10_000;
    let running = start_with(setup).await;
    let json = [("Content-Type", "application/json")];
    let path = "/v1/chat/completions";
    let send = async |headers: &[(&str, &str)], body: &[u8]| {
        running.client.send(&request("POST", path, headers, body)).await.error()
    };
    let code = |(status, _, code): (u16, String, String)| (status, code);
    assert_eq!(code(send(&json, b"{\"messages\": [").await), (400, "invalid_json".into()));
    assert_eq!(code(send(&json, b"").await), (400, "invalid_json".into()));
    assert_eq!(code(send(&json, b"{\"model\": \"\xFF\xFE\"}").await), (400, "invalid_json".into()));
    assert_eq!(code(send(&json, "[".repeat(9_000).as_bytes()).await), (400, "invalid_json".into()));
    assert_eq!(code(send(&json, b"[1, 2]").await), (400, "invalid_type".into()));
    assert_eq!(code(send(&json, b"null").await), (400, "invalid_type".into()));
    assert_eq!(code(send(&[], b"{}").await), (415, "unsupported_media_type".into()));
    assert_eq!(
        code(send(&[("Content-Type", "text/plain")], b"{}").await),
        (415, "unsupported_media_type".into())
    );
    assert_eq!(code(send(&json, &vec![b' '; 10_001]).await), (413, "body_too_large".into()));
    let gzip = [("Content-Type", "application/json"), ("Content-Encoding", "gzip")];
    assert_eq!(code(send(&gzip, b"\x1f\x8b").await), (415, "unsupported_encoding".into()));
    assert_eq!(
        code(send(&json, br#"{"n": 1, "model": "fake", "n": 2}"#).await),
        (400, "duplicate_key".into())
    );
    let charset = [("Content-Type", "Application/JSON; charset=utf-8")];
    assert_eq!(code(send(&charset, b"{}").await), (400, "missing_required_parameter".into()));
}

#[tokio::test]
async fn a_compilation_that_takes_too_long_names_the_limit() {
    let compiling = Compiling { timeout: Duration::from_nanos(1), ..Compiling::default() };
    let running = start_with(Setup { compiling, ..Setup::default() }).await;
    let reply =
        running.client.chat(&with(dictated("a"), json!({"regex": "([a-z]{3}|[0-9]{4}){5,50}"}))).await;
    assert_eq!(reply.error(), (400, "regex".into(), "constraint_timeout".into()));
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("1ns"), "{:?}", reply.json());
    running.client.chat(&dictated("unconstrained")).await.good();
}

/// More readings than there are steps.
const HOSTILE: &str = "root ::= r\nr ::= ([ab] (\"ba\" | r) (r | \"b\")){0,4}";

#[tokio::test]
async fn a_mask_that_takes_too_many_steps_names_the_limit_and_ends_its_request_alone() {
    let mut setup = Setup::default();
    setup.settings.options.limits.mask_steps = 10;
    let running = start_with(setup).await;
    let hostile = with(dictated("abab"), json!({"ebnf": HOSTILE}));
    let names = |error: &Value| {
        let message = error["message"].as_str().unwrap();
        for part in ["'ebnf'", "mask_steps", "10", "rule `r`", "less ambiguous"] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!((&error["param"], &error["code"]), (&json!("ebnf"), &json!("constraint_limit")));
    };
    let reply = running.client.chat(&hostile).await;
    assert_eq!(reply.error(), (400, "ebnf".into(), "constraint_limit".into()));
    names(&reply.json()["error"]);
    // In a stream it is an event.
    let events = running.client.chat(&with(hostile.clone(), json!({"stream": true}))).await.events();
    let last: Value = serde_json::from_str(&events.last().unwrap().1).unwrap();
    names(&last["error"]);
    let body = json!({"constraint": {"kind": "ebnf", "source": HOSTILE}, "text": "abab"});
    let reply = running.client.post("/v1/explain", &body).await;
    assert_eq!(reply.error(), (400, "constraint".into(), "constraint_limit".into()));
    // Others beside it go on.
    let (free, _) =
        tokio::join!(async { running.client.chat(&dictated("free")).await }, running.client.chat(&hostile));
    assert_eq!(free.good()["choices"][0]["message"]["content"], "free");
    running.idle().await;
}

#[tokio::test]
async fn keys_are_asked_for() {
    let mut setup = Setup::default();
    setup.settings.api_keys = vec!["first-key".into(), "second".into()];
    let running = start_with(setup).await;
    let body = dictated("hi");
    let status = async |header: Option<&str>| {
        let headers: Vec<(&str, &str)> = header.into_iter().map(|value| ("Authorization", value)).collect();
        running.client.post_with("/v1/chat/completions", &body, &headers).await
    };
    for good in ["Bearer first-key", "bearer second"] {
        assert_eq!(status(Some(good)).await.status, 200, "{good}");
    }
    for bad in [
        None,
        Some("Bearer first-ke"),
        Some("Bearer "),
        Some("Basic first-key"),
        Some("first-key"),
        Some("x"),
    ] {
        let reply = status(bad).await;
        assert_eq!(reply.error(), (401, String::new(), "invalid_api_key".into()), "{bad:?}");
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
    }
    assert_eq!(running.client.get("/v1/models").await.status, 401);
    assert_eq!(running.client.get("/health").await.status, 200);
    assert_eq!(running.client.get("/").await.status, 200);
}

/// A page of somebody else may bear a name that leads to this machine.
#[tokio::test]
async fn foreign_names_are_refused_where_names_are_known() {
    let mut setup = Setup::default();
    setup.settings.hosts = Some(vec!["models.example".into()]);
    let running = start_with(setup).await;
    let get = async |host: &str| {
        let bytes = format!("GET /v1/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        running.client.send(bytes.as_bytes()).await
    };
    for host in ["localhost:8000", "127.0.0.1", "[::1]:1", "models.example"] {
        assert_eq!(get(host).await.status, 200, "{host}");
    }
    assert_eq!(get("evil.example:8000").await.error(), (403, String::new(), "unknown_host".into()));
}

/// Bytes that are no text name nothing, and the answer has the shape of the API's.
#[tokio::test]
async fn paths_that_are_no_text() {
    let running = start().await;
    for path in ["/v1/responses/%ff", "/v1/models/a%ff", "/static/%ff"] {
        assert_eq!(
            running.client.get(path).await.error(),
            (404, String::new(), "unknown_url".into()),
            "{path}"
        );
    }
}
