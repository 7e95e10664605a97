//! Tools: what is called, how it is told, and how results come back.

use serde_json::{Value, json};

use crate::fake::{dictated, says, start, with};

fn weather() -> Value {
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["city", "days"],
        "additionalProperties": false,
    });
    json!({"type": "function", "function": {"name": "weather", "description": "The weather", "strict": true, "parameters": parameters}})
}

fn code() -> Value {
    let grammar = json!({"syntax": "lark", "definition": "start: \"run \" /[a-z]{3}/"});
    json!({"type": "custom", "custom": {"name": "code", "format": {"type": "grammar", "grammar": grammar}}})
}

const CALL: &str =
    "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n</tool_call>";

#[tokio::test]
async fn a_call_is_told_as_one() {
    let running = start().await;
    let body = with(dictated(&format!("Let me see. {CALL}")), json!({"tools": [weather()]}));
    let answer = running.client.chat(&body).await.good();
    let choice = &answer["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &json!("Let me see. "))
    );
    let call = &choice["message"]["tool_calls"][0];
    assert!(call["id"].as_str().unwrap().starts_with("call_"));
    assert_eq!((&call["type"], &call["function"]["name"]), (&json!("function"), &json!("weather")));
    let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"city": "Oslo", "days": 3}));
    // Without a call the answer is plain text.
    let plain = running.client.chat(&with(dictated("No need."), json!({"tools": [weather()]}))).await.good();
    assert_eq!(
        (&plain["choices"][0]["finish_reason"], &plain["choices"][0]["message"]["content"]),
        (&json!("stop"), &json!("No need."))
    );
}

#[tokio::test]
async fn a_call_is_streamed_argument_by_argument() {
    let running = start().await;
    let body = with(
        dictated(&format!("{CALL}{}", CALL.replace("Oslo", "Rome"))),
        json!({"tools": [weather()], "stream": true}),
    );
    let chunks = running.client.chat(&body).await.chunks();
    let deltas: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0])
        .filter(|delta| !delta.is_null())
        .collect();
    for index in [0, 1] {
        let mine: Vec<&&Value> = deltas.iter().filter(|delta| delta["index"] == index).collect();
        assert_eq!((&mine[0]["type"], &mine[0]["function"]["name"]), (&json!("function"), &json!("weather")));
        assert!(mine[1..].iter().all(|delta| delta.get("id").is_none()));
        let arguments: String =
            mine.iter().filter_map(|delta| delta["function"]["arguments"].as_str()).collect();
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        assert_eq!(arguments["city"], ["Oslo", "Rome"][index]);
        assert!(mine.len() > 10, "{mine:?}");
    }
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn a_choice_of_tools_is_kept_whatever_the_model_wants() {
    let running = start().await;
    let ask = async |more: Value| {
        let tools = json!({"tools": [weather(), code()], "temperature": 1.5, "seed": 5, "max_tokens": 600});
        let body = with(with(json!({"messages": says("I call nothing")}), tools), more);
        running.client.chat(&body).await.good()["choices"][0].clone()
    };
    let valid = |call: &Value| {
        if call["type"] == "custom" {
            return call["custom"]["name"] == "code"
                && regex::Regex::new("^run [a-z]{3}$")
                    .unwrap()
                    .is_match(call["custom"]["input"].as_str().unwrap());
        }
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        let days = arguments["days"].as_i64().unwrap_or(0);
        call["function"]["name"] == "weather"
            && (1..=9).contains(&days)
            && (arguments["city"] == "Oslo" || arguments["city"] == "Rome")
    };
    for (more, kinds) in [
        (json!({"tool_choice": "required", "parallel_tool_calls": false}), vec!["function", "custom"]),
        (json!({"tool_choice": {"type": "function", "function": {"name": "weather"}}}), vec!["function"]),
        (json!({"tool_choice": {"type": "custom", "custom": {"name": "code"}}}), vec!["custom"]),
        (
            json!({"parallel_tool_calls": false, "tool_choice": {"type": "allowed_tools", "allowed_tools": {
                "mode": "required", "tools": [{"type": "custom", "custom": {"name": "code"}}]}}}),
            vec!["custom"],
        ),
    ] {
        let choice = ask(more.clone()).await;
        let calls =
            choice["message"]["tool_calls"].as_array().unwrap_or_else(|| panic!("{more}: {choice}")).clone();
        assert_eq!((calls.len(), &choice["finish_reason"]), (1, &json!("tool_calls")), "{more}: {choice}");
        assert!(kinds.contains(&calls[0]["type"].as_str().unwrap()) && valid(&calls[0]), "{more}: {choice}");
    }
    let none = with(dictated(CALL), json!({"tools": [weather()], "tool_choice": "none"}));
    let answer = running.client.chat(&none).await.good();
    assert!(answer["choices"][0]["message"].get("tool_calls").is_none(), "{answer}");
}

#[tokio::test]
async fn results_come_back_and_the_responses_api_has_its_own_shapes() {
    let running = start().await;
    let messages = json!([
        {"role": "user", "content": "Weather? SAY:It rains.|"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]);
    let answer = running
        .client
        .chat(&json!({"messages": messages, "tools": [weather()], "temperature": 0}))
        .await
        .good();
    assert_eq!(answer["choices"][0]["message"]["content"], "It rains.");
    let flat = json!({"type": "function", "name": "weather", "strict": true, "parameters": weather()["function"]["parameters"]});
    let body = json!({"input": format!("SAY:Wait. {CALL}|"), "tools": [flat], "temperature": 0});
    let answer = running.client.post("/v1/responses", &body).await.good();
    let kinds: Vec<&Value> = answer["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["message", "function_call"]);
    assert_eq!(answer["parallel_tool_calls"], true);
    let one = with(body.clone(), json!({"parallel_tool_calls": false}));
    assert_eq!(running.client.post("/v1/responses", &one).await.good()["parallel_tool_calls"], false);
    let call = &answer["output"][1];
    assert_eq!((&call["name"], &call["status"]), (&json!("weather"), &json!("completed")));
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["days"], 3);
    let events = running.client.post("/v1/responses", &with(body, json!({"stream": true}))).await.events();
    let mut names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn tools_that_make_no_sense_are_refused() {
    let running = start().await;
    for (more, param) in [
        (
            json!({"tools": [weather()], "tool_choice": "required", "response_format": {"type": "json_object"}}),
            "response_format",
        ),
        (json!({"tools": [weather()], "grammar": "root ::= \"a\""}), "grammar"),
        (json!({"tools": [weather(), weather()]}), "tools[1]"),
        (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
        (json!({"tools": [{"type": "function"}]}), "tools[0].function"),
        (json!({"tools": [{"type": "function", "function": {"name": "a b"}}]}), "tools[0].function.name"),
        (json!({"tools": [weather()], "tool_choice": "sometimes"}), "tool_choice"),
        (
            json!({"tools": [weather()], "tool_choice": {"type": "function", "function": {"name": "x"}}}),
            "tool_choice.function.name",
        ),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"pattern": "(x)\\1"}}}}}]}),
            "tools[0].function.parameters",
        ),
        (
            json!({"tools": [{"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "peg", "definition": ""}}}}]}),
            "tools[0].custom.format.grammar.syntax",
        ),
    ] {
        let (status, found, _) = running.client.chat(&with(dictated("a"), more.clone())).await.error();
        assert_eq!((status, found.as_str()), (400, param), "{more}");
    }
}

/// Either a call, or an answer in the format.
#[tokio::test]
async fn tools_and_a_format_go_together() {
    let running = start().await;
    let schema = json!({"type": "object", "properties": {"warm": {"type": "boolean"}}, "required": ["warm"], "additionalProperties": false});
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema}});
    for more in [
        json!({"response_format": format}),
        json!({"guided_json": schema}),
        json!({"regex": r#"\{"warm": (true|false)\}"#}),
        json!({"guided_choice": ["{\"warm\": true}", "{\"warm\": false}"]}),
        json!({"ebnf": "root ::= \"{\\\"warm\\\": true}\""}),
        json!({"structural_tag": {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}}),
    ] {
        let ask = async |text: &str| {
            let body = with(with(dictated(text), json!({"tools": [weather()]})), more.clone());
            let choice = running.client.chat(&body).await.good()["choices"][0].clone();
            (choice["finish_reason"].as_str().unwrap().to_owned(), choice["message"].clone())
        };
        let (reason, message) = ask(CALL).await;
        assert_eq!(
            (&*reason, &message["tool_calls"][0]["function"]["name"]),
            ("tool_calls", &json!("weather")),
            "{more}"
        );
        let (reason, message) = ask("{\"warm\": true}").await;
        assert_eq!((&*reason, &message["content"]), ("stop", &json!("{\"warm\": true}")), "{more}");
        assert!(message.get("tool_calls").is_none());
        // Free text is neither.
        let (_, message) = ask("It is warm.").await;
        assert_ne!(message["content"], "It is warm.", "{more}");
    }
    let flat =
        json!({"type": "function", "name": "weather", "parameters": weather()["function"]["parameters"]});
    let text = json!({"format": {"type": "json_schema", "name": "answer", "strict": true, "schema": schema}});
    for (said, kind) in [(CALL, "function_call"), ("{\"warm\": true}", "message")] {
        let body = json!({"input": format!("SAY:{said}|"), "tools": [flat], "text": text, "temperature": 0});
        let answer = running.client.post("/v1/responses", &body).await.good();
        assert_eq!(
            (answer["output"].as_array().unwrap().len(), &answer["output"][0]["type"]),
            (1, &json!(kind)),
            "{answer}"
        );
    }
    // Some clients name a tool and send the format along.
    let named = json!({"type": "function", "name": "weather"});
    let body = json!({"input": "a", "tools": [flat], "tool_choice": named, "text": text, "temperature": 0});
    let reply = running.client.post("/v1/responses", &body).await;
    assert!(reply.headers["x-maskwright-warning"].starts_with("'text.format' is ignored"), "{reply:?}");
    assert_eq!(reply.good()["output"][0]["type"], "function_call");
}

/// Some functions may be strict and others not; none has arguments that it does not list.
#[tokio::test]
async fn every_function_is_as_strict_as_it_says() {
    let running = start().await;
    let parameters =
        json!({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a"]});
    let tool = |name: &str, strict: bool| json!({"type": "function", "function": {"name": name, "strict": strict, "parameters": parameters}});
    let tools = json!({"tools": [tool("tight", true), tool("loose", false)]});
    let ask = async |name: &str, arguments: &str| {
        let call = format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>");
        let answer = running.client.chat(&with(dictated(&call), tools.clone())).await.good();
        answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == arguments
    };
    assert!(ask("loose", "{\"a\": 1}").await);
    assert!(ask("tight", "{\"a\": 1, \"b\": 2}").await);
    assert!(!ask("tight", "{\"a\": 1}").await);
    assert!(!ask("loose", "{\"a\": 1, \"c\": 3}").await);
}

/// Where a call is required, nothing stands behind the last one.
#[tokio::test]
async fn required_calls_end_with_the_last_one() {
    let running = start().await;
    let ask = async |text: String, more: Value| {
        let tools = with(json!({"tools": [weather()], "tool_choice": "required"}), more);
        let choice = running.client.chat(&with(dictated(&text), tools)).await.good()["choices"][0].clone();
        assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
        (choice["message"]["content"].clone(), choice["message"]["tool_calls"].as_array().unwrap().len())
    };
    for gap in ["", "\n"] {
        assert_eq!(ask(format!("{CALL}{gap}{CALL}"), json!({})).await, (Value::Null, 2));
    }
    let (content, calls) = ask(format!("{CALL} That is all."), json!({"max_tokens": 300})).await;
    assert!(content.is_null() && calls >= 1);
    assert_eq!(ask(format!("{CALL}{CALL}"), json!({"parallel_tool_calls": false})).await, (Value::Null, 1));
}

/// At the last token a complete call is a call, and half a call is nothing.
#[tokio::test]
async fn a_call_that_is_cut_off_leaves_nothing_behind() {
    let running = start().await;
    let text = format!("Wait. {CALL}");
    let end = text.len() - "}\n</tool_call>".len();
    for tokens in 1..=text.len() {
        let cut = json!({"tools": [weather()], "max_tokens": tokens, "maskwright": {"finish": false}});
        let body = with(dictated(&text), cut);
        let choice = running.client.chat(&body).await.good()["choices"][0].clone();
        let is_called = tokens >= end;
        let content = "Wait. ".get(..tokens).unwrap_or("Wait. ");
        assert_eq!(choice["message"]["content"], content, "{tokens}: {choice}");
        assert_eq!(choice["message"].get("tool_calls").is_some(), is_called, "{tokens}: {choice}");
        let reason = if is_called { "tool_calls" } else { "length" };
        assert_eq!(choice["finish_reason"], reason, "{tokens}: {choice}");
        let chunks = running.client.chat(&with(body, json!({"stream": true}))).await.chunks();
        let streamed: String =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(streamed, content, "{tokens}");
    }
    // With a budget it is complete, or not begun.
    for tokens in [10, 60, 100] {
        let body = with(dictated(&text), json!({"tools": [weather()], "max_tokens": tokens}));
        let choice = running.client.chat(&body).await.good()["choices"][0].clone();
        assert_ne!(choice["finish_reason"], "length", "{tokens}: {choice}");
    }
}
