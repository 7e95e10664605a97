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
    let mut loose = weather();
    loose["function"]["strict"] = json!(false);
    loose["function"]["name"] = json!("other");
    for (more, param) in [
        (json!({"tools": [weather()], "response_format": {"type": "json_object"}}), "response_format"),
        (json!({"tools": [weather(), weather()]}), "tools[1]"),
        (json!({"tools": [weather(), loose]}), "tools[1].strict"),
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
            "tools",
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
