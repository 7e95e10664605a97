//! What answers look like: whole, streamed, several, cut off.

use serde_json::{Value, json};

use crate::fake::{dictated, says, start, with};

#[tokio::test]
async fn a_chat_answer_has_the_shape_that_sdks_read() {
    let running = start().await;
    let answer = running.client.chat(&dictated("hello")).await.good();
    assert!(answer["id"].as_str().unwrap().starts_with("chatcmpl-"), "{answer}");
    assert_eq!((&answer["object"], &answer["model"]), (&json!("chat.completion"), &json!("fake")));
    assert!(answer["created"].as_u64().unwrap() > 1_600_000_000);
    let message = json!({"role": "assistant", "content": "hello", "refusal": null, "annotations": []});
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"});
    assert_eq!(answer["choices"], json!([choice]));
    let usage = &answer["usage"];
    assert_eq!(usage["completion_tokens"], 5);
    let prompt = usage["prompt_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], prompt + 5);
    // The same prompt again is read from memory, but for its last token.
    let again = running.client.chat(&dictated("hello")).await.good();
    assert_eq!(again["usage"]["prompt_tokens_details"]["cached_tokens"], prompt - 1);
    assert_ne!(again["id"], answer["id"]);
}

#[tokio::test]
async fn a_chat_stream_is_the_same_answer_in_pieces() {
    let running = start().await;
    let body = with(
        dictated("Grüße 😀"),
        json!({"stream": true, "stream_options": {"include_usage": true}, "maskwright": {"tokens": true}}),
    );
    let chunks = running.client.chat(&body).await.chunks();
    let (first, last) = (&chunks[0], &chunks[chunks.len() - 1]);
    assert_eq!(first["choices"][0]["delta"], json!({"role": "assistant", "content": "", "refusal": null}));
    assert!(
        chunks.iter().all(|chunk| chunk["id"] == first["id"] && chunk["object"] == "chat.completion.chunk")
    );
    let delta = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned();
    assert_eq!(chunks.iter().map(delta).collect::<String>(), "Grüße 😀");
    let finishes: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["finish_reason"])
        .filter(|reason| !reason.is_null())
        .collect();
    assert_eq!(finishes, ["stop"]);
    assert_eq!(last["choices"], json!([]));
    let tokens = "Grüße 😀".len();
    assert_eq!(last["usage"]["completion_tokens"], tokens);
    assert!(chunks[..chunks.len() - 1].iter().all(|chunk| chunk["usage"].is_null()));
    // Every token is told once, also those that are half a character.
    let told = chunks.iter().filter_map(|chunk| chunk["maskwright"]["tokens"].as_array()).flatten().count();
    assert_eq!(told, tokens);
    assert!(last["maskwright"]["decode_micros"].is_number(), "{last}");
}

#[tokio::test]
async fn usage_is_told_in_a_stream_only_if_asked() {
    let running = start().await;
    let chunks = running.client.chat(&with(dictated("a"), json!({"stream": true}))).await.chunks();
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none() && chunk.get("maskwright").is_none()));
    assert_eq!(chunks.len(), 3, "{chunks:?}");
}

#[tokio::test]
async fn answers_end_where_they_are_told_to() {
    let running = start().await;
    let finish = async |more: Value| {
        let answer = running.client.chat(&with(dictated("one two three"), more)).await.good();
        let choice = &answer["choices"][0];
        (choice["message"]["content"].as_str().unwrap().to_owned(), choice["finish_reason"].clone())
    };
    assert_eq!(finish(json!({"max_tokens": 3})).await, ("one".into(), json!("length")));
    assert_eq!(finish(json!({"max_completion_tokens": 3})).await, ("one".into(), json!("length")));
    assert_eq!(finish(json!({"stop": " t"})).await, ("one".into(), json!("stop")));
    assert_eq!(finish(json!({"stop": ["zzz", "thr"]})).await, ("one two ".into(), json!("stop")));
    assert_eq!(finish(json!({"stop_token_ids": [119]})).await, ("one t".into(), json!("stop")));
    assert_eq!(finish(json!({"logit_bias": {"32": -100}})).await.0.find(' '), None);
}

#[tokio::test]
async fn several_answers_differ_and_a_seed_repeats_them() {
    let running = start().await;
    let body = json!({"messages": says("anything"), "n": 3, "seed": 7, "max_tokens": 20});
    let texts = |answer: &Value| -> Vec<String> {
        let choices = answer["choices"].as_array().unwrap();
        choices.iter().map(|choice| choice["message"]["content"].to_string()).collect()
    };
    let first = running.client.chat(&body).await.good();
    let again = running.client.chat(&body).await.good();
    assert_eq!(texts(&first), texts(&again));
    let all = texts(&first);
    assert!(all.len() == 3 && all[0] != all[1] && all[1] != all[2], "{all:?}");
    // A prompt counts once.
    let one = running.client.chat(&with(body.clone(), json!({"n": 1}))).await.good();
    assert_eq!(first["usage"]["prompt_tokens"], one["usage"]["prompt_tokens"]);
    let streamed = running.client.chat(&with(body, json!({"stream": true}))).await.chunks();
    let joined = |index: usize| -> String {
        let mine = streamed.iter().filter(|chunk| chunk["choices"][0]["index"] == index);
        mine.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
    };
    let joined: Vec<String> = (0..3).map(|index| json!(joined(index)).to_string()).collect();
    assert_eq!(joined, all);
}

#[tokio::test]
async fn log_probabilities_of_chat_and_completions() {
    let running = start().await;
    let more = json!({"logprobs": true, "top_logprobs": 2});
    let answer = running.client.chat(&with(dictated("ab"), more.clone())).await.good();
    let content = answer["choices"][0]["logprobs"]["content"].as_array().unwrap().clone();
    assert_eq!(content.len(), 2);
    assert_eq!((&content[0]["token"], &content[0]["bytes"]), (&json!("a"), &json!([97])));
    assert!(content[0]["logprob"].as_f64().unwrap() > -0.01);
    assert_eq!(content[0]["top_logprobs"].as_array().unwrap().len(), 2);
    let chunks =
        running.client.chat(&with(with(dictated("ab"), more), json!({"stream": true}))).await.chunks();
    let streamed: Vec<Value> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["logprobs"]["content"].as_array())
        .flatten()
        .cloned()
        .collect();
    assert_eq!(streamed, content);
    let body = json!({"prompt": "SAY:ab|", "temperature": 0, "logprobs": 1});
    let answer = running.client.post("/v1/completions", &body).await.good();
    let logprobs = &answer["choices"][0]["logprobs"];
    assert_eq!((&logprobs["tokens"], &logprobs["text_offset"]), (&json!(["a", "b"]), &json!([0, 1])));
}

#[tokio::test]
async fn completions_take_texts_and_tokens() {
    let running = start().await;
    let complete = async |prompt: Value, more: Value| {
        let body = with(json!({"prompt": prompt, "temperature": 0}), more);
        running.client.post("/v1/completions", &body).await.good()
    };
    let answer = complete(json!("SAY:hello|"), json!({})).await;
    assert!(answer["id"].as_str().unwrap().starts_with("cmpl-"));
    assert_eq!(answer["object"], "text_completion");
    let choice = json!({"index": 0, "text": "hello", "logprobs": null, "finish_reason": "stop"});
    assert_eq!(answer["choices"], json!([choice]));
    let tokens: Vec<u32> = "SAY:ab|".bytes().map(u32::from).collect();
    assert_eq!(complete(json!(tokens), json!({})).await["choices"][0]["text"], "ab");
    let both = complete(json!(["SAY:ab|", tokens, "SAY:c|"]), json!({"n": 2})).await;
    let texts: Vec<&Value> =
        both["choices"].as_array().unwrap().iter().map(|choice| &choice["text"]).collect();
    assert_eq!(texts, ["ab", "ab", "ab", "ab", "c", "c"]);
    assert_eq!(
        (&both["usage"]["prompt_tokens"], &both["usage"]["completion_tokens"]),
        (&json!(20), &json!(10))
    );
    // Sixteen tokens unless told otherwise.
    let long = complete(json!("SAY:0123456789abcdefghij|"), json!({})).await;
    assert_eq!(
        (&long["choices"][0]["text"], &long["choices"][0]["finish_reason"]),
        (&json!("0123456789abcdef"), &json!("length"))
    );
    let body = json!({"prompt": "SAY:xyz|", "temperature": 0, "stream": true, "stream_options": {"include_usage": true}});
    let chunks = running.client.post("/v1/completions", &body).await.chunks();
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["text"].as_str()).collect();
    assert_eq!((text.as_str(), &chunks.last().unwrap()["usage"]["completion_tokens"]), ("xyz", &json!(3)));
}

#[tokio::test]
async fn a_response_has_the_shape_that_sdks_read() {
    let running = start().await;
    let body = json!({"model": "fake", "input": "SAY:hello|", "temperature": 0, "metadata": {"a": "b"}, "store": false});
    let answer = running.client.post("/v1/responses", &body).await.good();
    assert!(answer["id"].as_str().unwrap().starts_with("resp_"));
    assert_eq!((&answer["object"], &answer["status"]), (&json!("response"), &json!("completed")));
    let content = json!([{"type": "output_text", "text": "hello", "annotations": [], "logprobs": []}]);
    let item = &answer["output"][0];
    assert_eq!(
        (&item["type"], &item["status"], &item["content"]),
        (&json!("message"), &json!("completed"), &content)
    );
    assert_eq!((&answer["usage"]["output_tokens"], &answer["metadata"]), (&json!(5), &json!({"a": "b"})));
    let input = json!([{"role": "user", "content": [{"type": "input_text", "text": "SAY:hello|"}]}]);
    let cut = json!({"input": input, "instructions": "Be brief.", "max_output_tokens": 2, "temperature": 0});
    let answer = running.client.post("/v1/responses", &cut).await.good();
    assert_eq!(
        (&answer["status"], &answer["incomplete_details"]),
        (&json!("incomplete"), &json!({"reason": "max_output_tokens"}))
    );
    assert_eq!(answer["output"][0]["content"][0]["text"], "he");
}

#[tokio::test]
async fn a_response_stream_numbers_its_events() {
    let running = start().await;
    let body = json!({"input": "SAY:ab|", "temperature": 0, "stream": true});
    let reply = running.client.post("/v1/responses", &body).await;
    let events: Vec<(String, Value)> =
        reply.events().into_iter().map(|(name, data)| (name, serde_json::from_str(&data).unwrap())).collect();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names, expected);
    for (number, (name, event)) in events.iter().enumerate() {
        assert_eq!((&event["sequence_number"], &event["type"]), (&json!(number), &json!(name)));
    }
    let last = &events.last().unwrap().1["response"];
    assert_eq!(last["output"][0]["content"][0]["text"], "ab");
    assert_eq!(last["output"][0]["id"], events[2].1["item"]["id"]);
    assert_eq!(last["id"], events[0].1["response"]["id"]);
}

/// The endpoints of other servers, with their shapes.
#[tokio::test]
async fn sglang_and_llama_cpp_have_their_own_shapes() {
    let running = start().await;
    let ask = async |path: &str, body: Value| running.client.post(path, &body).await;
    let params = json!({"temperature": 0, "max_new_tokens": 9, "regex": "[a-z]+"});
    let answer = ask("/generate", json!({"text": "SAY:hello|", "sampling_params": params})).await.good();
    assert_eq!(answer["text"], "hello");
    let info = &answer["meta_info"];
    assert_eq!(
        (&info["completion_tokens"], &info["prompt_tokens"], &info["finish_reason"]),
        (&json!(5), &json!(10), &json!({"type": "stop"}))
    );
    let two =
        json!({"text": ["SAY:ab|", "SAY:c|"], "sampling_params": {"temperature": 0, "max_new_tokens": 1}});
    let answer = ask("/generate", two).await.good();
    assert_eq!((&answer[0]["text"], &answer[1]["text"]), (&json!("a"), &json!("c")));
    assert_eq!(answer[0]["meta_info"]["finish_reason"], json!({"type": "length", "length": 1}));
    let streamed = json!({"text": "SAY:abc|", "sampling_params": {"temperature": 0}, "stream": true});
    let chunks = ask("/generate", streamed).await.chunks();
    // What was said so far, again and again.
    let texts: Vec<&Value> = chunks.iter().map(|chunk| &chunk["text"]).collect();
    assert_eq!((texts[0], *texts.last().unwrap()), (&json!("a"), &json!("abc")));

    let body = json!({"prompt": "SAY:hello|", "temperature": 0, "n_predict": 9, "grammar": "root ::= [a-z]+", "cache_prompt": true});
    let reply = ask("/completion", body.clone()).await;
    assert!(
        reply.headers["x-maskwright-warning"].starts_with("'cache_prompt' is ignored"),
        "{:?}",
        reply.headers
    );
    let answer = reply.good();
    assert_eq!(
        (&answer["content"], &answer["stop"], &answer["stop_type"]),
        (&json!("hello"), &json!(true), &json!("eos"))
    );
    assert_eq!((&answer["tokens_predicted"], &answer["tokens_evaluated"]), (&json!(5), &json!(10)));
    let events = ask("/completion", with(body, json!({"stream": true}))).await.events();
    let events: Vec<Value> = events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect();
    let text: String = events.iter().filter_map(|event| event["content"].as_str()).collect();
    assert_eq!((text.as_str(), &events.last().unwrap()["stop"]), ("hello", &json!(true)));

    let props = running.client.get("/props").await.good();
    assert_eq!(props["default_generation_settings"]["n_ctx"], 1000);
    assert!(running.client.get("/version").await.good()["version"].is_string());
    assert_eq!(ask("/tokenize", json!({"content": "ab"})).await.good()["tokens"], json!([97, 98]));
    assert_eq!(ask("/detokenize", json!({"tokens": [97]})).await.good()["content"], "a");
}
