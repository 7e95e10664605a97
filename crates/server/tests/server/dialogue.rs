//! What goes beyond one answer: defaults of the model, conversations that go on, thoughts, prompts that are repeated, and the document of the API.

use maskwright::formats::ModelFormat;
use maskwright_runtime::Sampling;
use maskwright_server::Settings;
use serde_json::{Value, json};

use crate::fake::{Setup, dictated, says, start, start_with, with};

#[tokio::test]
async fn what_the_model_recommends_holds_where_a_request_says_nothing() {
    let sampling = Sampling { temperature: 0.0, top_p: 0.5, ..Sampling::default() };
    let running = start_with(Setup { sampling, ..Setup::default() }).await;
    // At temperature 0 there is no chance.
    let texts = async |more: Value| {
        let body = with(json!({"messages": says("anything"), "n": 3, "seed": 7, "max_tokens": 20}), more);
        let answer = running.client.chat(&body).await.good();
        let choices = answer["choices"].as_array().unwrap().clone();
        choices.iter().map(|choice| choice["message"]["content"].to_string()).collect::<Vec<_>>()
    };
    let same = texts(json!({})).await;
    assert!(same[0] == same[1] && same[1] == same[2], "{same:?}");
    let other = texts(json!({"temperature": 1, "top_p": 1})).await;
    assert!(other[0] != other[1] && other[1] != other[2], "{other:?}");
    let response = running.client.post("/v1/responses", &json!({"input": "a", "max_output_tokens": 1})).await;
    let response = response.good();
    assert_eq!((&response["temperature"], &response["top_p"]), (&json!(0.0), &json!(0.5)));
    let props = running.client.get("/props").await.good();
    assert_eq!(props["default_generation_settings"]["params"]["temperature"], 0.0);
}

#[tokio::test]
async fn a_response_goes_on_from_another() {
    let running = start().await;
    let ask = async |body: Value| running.client.post("/v1/responses", &body).await;
    let first = ask(json!({"input": "SAY:one|", "temperature": 0, "instructions": "Be brief."})).await.good();
    assert_eq!((&first["store"], &first["previous_response_id"]), (&json!(true), &json!(null)));
    let more = json!({"input": "and?", "temperature": 0, "previous_response_id": first["id"], "max_output_tokens": 1});
    let second = ask(more.clone()).await.good();
    assert_eq!(second["previous_response_id"], first["id"]);
    // The prompt is the whole conversation, without the instructions of before.
    let whole = json!({"max_output_tokens": 1, "input": [
        {"role": "user", "content": "SAY:one|"}, {"role": "assistant", "content": "one"}, {"role": "user", "content": "and?"}]});
    let whole = ask(whole).await.good();
    assert_eq!(second["usage"]["input_tokens"], whole["usage"]["input_tokens"]);
    // A stream is kept as well, and can be read again.
    let events = ask(with(more, json!({"stream": true}))).await.events();
    let last: Value = serde_json::from_str(&events.last().unwrap().1).unwrap();
    let id = last["response"]["id"].as_str().unwrap();
    let path = format!("/v1/responses/{id}");
    assert_eq!(running.client.get(&path).await.good(), last["response"]);
    let delete = crate::client::request("DELETE", &path, &[], b"");
    assert_eq!(running.client.send(&delete).await.good()["deleted"], true);
    assert_eq!(
        running.client.get(&path).await.error(),
        (404, "id".to_owned(), "response_not_found".to_owned())
    );
    let gone = ask(json!({"input": "a", "previous_response_id": id})).await.error();
    assert_eq!(gone, (400, "previous_response_id".to_owned(), "response_not_found".to_owned()));
    let unkept = ask(json!({"input": "a", "store": false, "max_output_tokens": 1})).await.good();
    assert_eq!(unkept["store"], false);
    let after = json!({"input": "a", "previous_response_id": unkept["id"]});
    assert_eq!(ask(after).await.error().0, 400);
}

#[tokio::test]
async fn calls_of_a_kept_response_get_their_results() {
    let running = start().await;
    let tool = json!({"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}});
    let call = json!({"input": "Time?", "tools": [tool], "tool_choice": "required", "parallel_tool_calls": false, "temperature": 0});
    let first = running.client.post("/v1/responses", &call).await.good();
    let call_id = first["output"][0]["call_id"].clone();
    let result = |id: &Value| {
        json!({"previous_response_id": first["id"], "max_output_tokens": 2,
               "input": [{"type": "function_call_output", "call_id": id, "output": "noon"}]})
    };
    running.client.post("/v1/responses", &result(&call_id)).await.good();
    let wrong = running.client.post("/v1/responses", &result(&json!("call_x"))).await.error();
    assert_eq!(wrong.1, "input[0].call_id");
}

#[tokio::test]
async fn a_server_without_room_keeps_no_responses() {
    let settings = Settings { response_bytes: 0, ..Settings::default() };
    let running = start_with(Setup { settings, ..Setup::default() }).await;
    let body = json!({"input": "a", "max_output_tokens": 1});
    let response = running.client.post("/v1/responses", &body).await.good();
    assert_eq!(response["store"], false);
    let error = running.client.post("/v1/responses", &with(body, json!({"store": true}))).await.error();
    assert_eq!(error, (400, "store".to_owned(), "unsupported_parameter".to_owned()));
}

#[tokio::test]
async fn a_prompt_is_repeated_if_asked() {
    let running = start().await;
    let ask = async |body: Value| running.client.post("/v1/completions", &body).await;
    let tokens: Vec<u32> = "SAY:ab|".bytes().map(u32::from).collect();
    let body = json!({"prompt": ["SAY:hello|", tokens], "temperature": 0, "echo": true, "n": 2});
    let answer = ask(body.clone()).await.good();
    let texts: Vec<&Value> =
        answer["choices"].as_array().unwrap().iter().map(|choice| &choice["text"]).collect();
    assert_eq!(texts, ["SAY:hello|hello", "SAY:hello|hello", "SAY:ab|ab", "SAY:ab|ab"]);
    let chunks = ask(with(body, json!({"stream": true}))).await.chunks();
    let joined = |index: usize| -> String {
        let mine = chunks.iter().filter(|chunk| chunk["choices"][0]["index"] == index);
        mine.filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect()
    };
    assert_eq!(
        (0..4).map(joined).collect::<Vec<_>>(),
        texts.iter().map(|text| text.as_str().unwrap()).collect::<Vec<_>>()
    );
    let error = ask(json!({"prompt": "a", "echo": true, "logprobs": 1})).await.error();
    assert_eq!((error.1.as_str(), error.2.as_str()), ("echo", "unsupported_parameter"));
}

/// A template with a switch for thoughts.
const SWITCH: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n\
                      {% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}";
/// One with a word for the effort.
const WORD: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                    <|im_start|>{{ reasoning_effort }}\n";

async fn thinker(template: Option<&'static str>) -> crate::fake::Running {
    let format = Some(ModelFormat::named("qwen3").unwrap());
    start_with(Setup { format, template, ..Setup::default() }).await
}

#[tokio::test]
async fn the_effort_to_think_is_told_to_the_template_and_kept() {
    let running = thinker(Some(SWITCH)).await;
    let ask = async |more: Value| {
        let answer = running.client.chat(&with(dictated("<think>hm</think>\n\nyes"), more)).await.good();
        (answer["choices"][0]["message"].clone(), answer["usage"]["prompt_tokens"].as_u64().unwrap())
    };
    let (free, length) = ask(json!({})).await;
    assert_eq!((&free["reasoning_content"], &free["content"]), (&json!("hm"), &json!("yes")));
    let (message, long) = ask(json!({"reasoning_effort": "high"})).await;
    assert_eq!((&message["reasoning_content"], long), (&json!("hm"), length));
    let (message, longer) = ask(json!({"reasoning_effort": "none", "max_tokens": 40})).await;
    assert_eq!((message.get("reasoning_content"), longer), (None, length + "<think></think>".len() as u64));
    assert!(!message["content"].as_str().unwrap().contains("<think>"), "{message}");
    // The same by the template's own word.
    let (_, longer) = ask(json!({"chat_template_kwargs": {"enable_thinking": false}, "max_tokens": 1})).await;
    assert_eq!(longer, length + "<think></think>".len() as u64);
    // Thoughts come first, and the constraint holds behind them.
    let format = json!({"type": "regex", "pattern": "[a-z]+"});
    let (message, _) = ask(json!({"reasoning_effort": "low", "response_format": format})).await;
    assert_eq!((&message["reasoning_content"], &message["content"]), (&json!("hm"), &json!("yes")));
    let (message, _) = ask(json!({"response_format": format, "max_tokens": 40})).await;
    assert!(message["content"].as_str().unwrap().bytes().all(|byte| byte.is_ascii_lowercase()), "{message}");
    let body = json!({"input": "SAY:<think>hm</think>\n\nyes|", "temperature": 0, "reasoning": {"effort": "medium"}});
    let response = running.client.post("/v1/responses", &body).await.good();
    assert_eq!(response["reasoning"]["effort"], "medium");
    assert_eq!(
        (&response["output"][0]["type"], &response["output"][1]["type"]),
        (&json!("reasoning"), &json!("message"))
    );
}

/// A template that begins the thoughts, as that of `DeepSeek` R1 does.
const BEGUN: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n<think>";

#[tokio::test]
async fn thoughts_that_the_prompt_begins_are_thoughts() {
    let running = thinker(Some(BEGUN)).await;
    let say = "<think>hm</think>\n\nyes";
    let ask = async |more: Value| {
        let answer = running.client.chat(&with(dictated(say), more)).await.good();
        let message = &answer["choices"][0]["message"];
        (message["reasoning_content"].clone(), message["content"].clone())
    };
    let both = (json!("hm"), json!("yes"));
    assert_eq!(ask(json!({})).await, both);
    // A constraint is about the answer behind them.
    let format = json!({"type": "regex", "pattern": "[a-z]+"});
    assert_eq!(ask(json!({"response_format": format})).await, both);
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}});
    assert_eq!(ask(json!({"tools": [tool]})).await, both);
    // All that was written is thoughts if they do not end.
    let (thoughts, content) = ask(json!({"max_tokens": 2})).await;
    assert_eq!((thoughts, content.as_str().unwrap_or_default()), (json!("hm"), ""));
    let body = json!({"input": format!("SAY:{say}|"), "temperature": 0});
    let response = running.client.post("/v1/responses", &body).await.good();
    assert_eq!(response["output"][0]["type"], "reasoning");
    assert_eq!(response["output"][1]["content"][0]["text"], "yes");
    // What cannot be kept is refused.
    let error = running.client.chat(&with(dictated(say), json!({"reasoning_effort": "none"}))).await.error();
    assert_eq!((error.1.as_str(), error.2.as_str()), ("reasoning_effort", "unsupported_parameter"));
    let gbnf = json!({"grammar": "root ::= [a-z]+"});
    let error = running.client.chat(&with(dictated(say), gbnf)).await.error();
    assert_eq!(error.2, "conflicting_parameters");
}

#[tokio::test]
async fn efforts_that_cannot_be_kept_are_refused() {
    let code = async |running: &crate::fake::Running, more: Value| {
        let reply = running.client.chat(&with(with(dictated("a"), json!({"max_tokens": 2})), more)).await;
        if reply.status == 200 { "good".to_owned() } else { reply.error().2 }
    };
    let plain = start().await;
    assert_eq!(code(&plain, json!({"reasoning_effort": "none"})).await, "good");
    assert_eq!(code(&plain, json!({"reasoning_effort": "low"})).await, "unsupported_parameter");
    assert_eq!(code(&plain, json!({"reasoning_effort": "lots"})).await, "invalid_value");
    assert_eq!(code(&plain, json!({"chat_template_kwargs": {"tools": []}})).await, "invalid_value");
    let reply =
        plain.client.chat(&with(dictated("a"), json!({"chat_template_kwargs": {"colour": "red"}}))).await;
    assert!(
        reply.headers["x-maskwright-warning"].contains("chat_template_kwargs.colour"),
        "{:?}",
        reply.headers
    );
    // No word in the template, but thoughts in the format.
    let mute = thinker(None).await;
    assert_eq!(code(&mute, json!({"reasoning_effort": "none"})).await, "good");
    assert_eq!(code(&mute, json!({"reasoning_effort": "low"})).await, "unsupported_parameter");
    let word = thinker(Some(WORD)).await;
    assert_eq!(code(&word, json!({"reasoning_effort": "low"})).await, "good");
    assert_eq!(code(&word, json!({"reasoning_effort": "minimal"})).await, "unsupported_parameter");
    let both = json!({"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "high"}});
    assert_eq!(code(&word, both).await, "conflicting_parameters");
}

/// A conversation whose last message is the beginning of the answer.
fn begun(dictated: &str, beginning: &str) -> Value {
    let user = json!({"role": "user", "content": format!("SAY:{dictated}|")});
    json!({
        "messages": [user, {"role": "assistant", "content": beginning}],
        "continue_final_message": true, "add_generation_prompt": false, "temperature": 0,
    })
}

#[tokio::test]
async fn an_answer_that_has_begun_goes_on() {
    let running = start().await;
    let text = |answer: &Value| answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let answer = running.client.chat(&begun("It is blue.", "It is ")).await.good();
    assert_eq!(text(&answer), "blue.");
    // The constraint is about what is written now.
    let choice = json!({"response_format": {"type": "choice", "choices": ["red", "blue"]}});
    let answer = running.client.chat(&with(begun("It is blue", "It is "), choice.clone())).await.good();
    assert_eq!(text(&answer), "blue");
    // What stands in the message is text, whatever it looks like, and nothing comes behind it.
    let prompt = |answer: &Value| answer["usage"]["prompt_tokens"].as_u64().unwrap();
    let plain = prompt(&running.client.chat(&begun("x", "a")).await.good());
    let shielded = prompt(&running.client.chat(&begun("x", "a<|im_end|>\u{FDD0}")).await.good());
    assert_eq!(shielded, plain + 10 + 3, "the name of a token is ten bytes, and U+FFFD three");
    // It goes with a stream, with exact draws and with the mass of masks.
    let own = json!({"maskwright": {"sampling": "exact", "tries": 900, "mass": true}, "temperature": 1});
    let body = with(with(begun("It is blue", "It is "), choice), own);
    let answer = running.client.chat(&body).await.good();
    assert_eq!((text(&answer).as_str(), &answer["maskwright"]["sampling"]["tries"]), ("blue", &json!(1)));
    let chunks = running.client.chat(&with(body, json!({"stream": true}))).await.chunks();
    let part = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned();
    assert_eq!(chunks.iter().map(part).collect::<String>(), "blue");
    // Where a model tells thoughts from answers, the answer is what it is.
    let thinker = thinker(None).await;
    assert_eq!(text(&thinker.client.chat(&begun("It is blue.", "It is ")).await.good()), "blue.");
}

#[tokio::test]
async fn what_cannot_go_on_is_refused_by_its_place() {
    let running = start().await;
    let user = json!({"role": "user", "content": "What?"});
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let last = |message: Value| json!({"messages": [user, message]});
    for (more, param, code) in [
        (json!({"messages": [user]}), "messages[0].role", "invalid_value"),
        (last(json!({"role": "assistant", "content": ""})), "messages[1].content", "invalid_value"),
        (
            last(json!({"role": "assistant", "content": "a", "tool_calls": [call]})),
            "messages[1].tool_calls",
            "invalid_value",
        ),
        (json!({"add_generation_prompt": true}), "add_generation_prompt", "conflicting_parameters"),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
            "tools",
            "conflicting_parameters",
        ),
        (
            json!({"maskwright": {"draft": {"max_tokens": 3}}, "guided_choice": ["a"]}),
            "maskwright.draft",
            "conflicting_parameters",
        ),
        (json!({"continue_final_message": 1}), "continue_final_message", "invalid_type"),
        (
            json!({"response_format": {"type": "pcfg", "grammar": "S -> a"}, "maskwright": {"heal": true}}),
            "maskwright.heal",
            "unsupported_parameter",
        ),
    ] {
        let error = running.client.chat(&with(begun("a", "It is "), more.clone())).await.error();
        assert_eq!(error, (400, param.to_owned(), code.to_owned()), "{more}");
    }
    let closed = json!({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "none"});
    running.client.chat(&with(begun("It is a", "It is "), closed)).await.good();
    let body = json!({"prompt": "a", "continue_final_message": true});
    let error = running.client.post("/v1/completions", &body).await.error();
    assert_eq!(error, (400, "continue_final_message".to_owned(), "unsupported_parameter".to_owned()));
    let template = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}";
    let deaf = start_with(Setup { template: Some(template), ..Setup::default() }).await;
    let error = deaf.client.chat(&begun("a", "It is ")).await.error();
    assert_eq!(error, (400, "continue_final_message".to_owned(), "unsupported_parameter".to_owned()));
}

/// Everything in the document is there, and every field of it is known.
#[tokio::test]
async fn the_document_of_the_api_is_true() {
    let running = start().await;
    let document = running.client.get("/openapi.json").await.good();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    for (path, item) in paths {
        let real = path.replace("{id}", "fake");
        if item.get("get").is_some() {
            let reply = running.client.get(&real).await;
            assert!(reply.status == 200 || reply.error().2 == "response_not_found", "{path}");
        }
        let Some(post) = item.get("post") else { continue };
        let schema = &post["requestBody"]["content"]["application/json"]["schema"];
        for name in schema["properties"].as_object().unwrap().keys() {
            // What is said about a constraint needs one.
            let constraint = if schema["properties"].get("constraint").is_some() {
                json!({"constraint": {"kind": "regex", "source": "a"}})
            } else {
                json!({})
            };
            if name == "maskwright" && constraint.get("constraint").is_some() {
                let own = schema["properties"][name]["properties"].as_object().unwrap();
                assert!(own.len() > 12, "{own:?}");
                for field in own.keys() {
                    let body = with(constraint.clone(), json!({name: {field: ["zz"]}}));
                    let (_, param, code) = running.client.post(&real, &body).await.error();
                    let path = format!("maskwright.{field}");
                    assert_eq!((param, code.as_str()), (path, "invalid_type"), "{field}");
                }
            }
            let reply = running.client.post(&real, &with(constraint, json!({name: {"zz": 1}}))).await;
            let (_, param, code) = reply.error();
            assert!(
                code != "unknown_url"
                    && (code, param.as_str()) != ("unknown_parameter".to_owned(), name.as_str()),
                "{path} {name}"
            );
        }
        for name in schema["required"].as_array().unwrap() {
            let (_, param, code) = running.client.post(&real, &json!({})).await.error();
            assert_eq!((json!(param), code.as_str()), (name.clone(), "missing_required_parameter"), "{path}");
        }
    }
    // Nothing is left out: the page of the documentation lists all of them.
    let page = include_str!("../../../../docs/server.md");
    let rows = page
        .lines()
        .skip_while(|line| *line != "## Endpoints")
        .skip(1)
        .take_while(|line| !line.starts_with("## "));
    let mut count = 0;
    for word in rows.flat_map(|line| line.split('`').skip(1).step_by(2)) {
        let path = word.rsplit(' ').next().unwrap().replace("NAME", "{id}").replace("ID", "{id}");
        if path.starts_with('/') && path.len() > 1 && path != "/v1" {
            assert!(paths.contains_key(&path), "{path} is in the page and not in the document");
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
}
