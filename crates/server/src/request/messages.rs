//! Converts conversations in the notations of the chat and responses APIs to a uniform notation for templates.
//!
//! Templates expect messages with a role and one text. Clients send texts in parts, and use different names:
//! `developer` for `system`, `input_text` for `text`. Inputs that a model cannot read – images, sounds, files – are
//! refused.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Fields;
use crate::error::{ApiError, Result};

/// Converts messages of the chat API.
pub(crate) fn chat(list: Vec<Value>) -> Result<Value> {
    if list.is_empty() {
        return Err(ApiError::value("messages", "'messages' is empty, but must have at least one message"));
    }
    let read = |(i, item)| chat_message(Fields::new(item, format!("messages[{i}]"))?);
    let messages = list.into_iter().enumerate().map(read).collect::<Result<Vec<_>>>()?;
    check_results(&messages, |i| format!("messages[{i}].tool_call_id"))?;
    Ok(Value::Array(messages))
}

/// Checks that the last message is an answer that has begun.
pub(crate) fn check_open(messages: &Value) -> Result<()> {
    let list = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let Some((last, before)) = list.split_last() else { return Ok(()) };
    let at = format!("messages[{}]", before.len());
    let refuse = |field: &str, why: &str| {
        let message = format!("'{at}.{field}' {why}; 'continue_final_message' continues the last message");
        Err(ApiError::value(format!("{at}.{field}"), message))
    };
    if last["role"] != "assistant" {
        return refuse("role", "is not 'assistant'");
    }
    if last.get("tool_calls").is_some() {
        return refuse("tool_calls", "is present, and calls cannot be continued");
    }
    if last["content"].as_str().is_none_or(str::is_empty) {
        return refuse("content", "is empty");
    }
    Ok(())
}

/// Checks that every result belongs to an earlier call.
fn check_results(messages: &[Value], path: impl Fn(usize) -> String) -> Result<()> {
    let mut calls = BTreeSet::new();
    for (i, message) in messages.iter().enumerate() {
        let made = message["tool_calls"].as_array().into_iter().flatten();
        calls.extend(made.filter_map(|call| call["id"].as_str()));
        if let Some(id) = message["tool_call_id"].as_str().filter(|id| !calls.contains(id)) {
            let path = path(i);
            let message =
                format!("'{path}' is {}, but no message before it has a call with this id", Value::from(id));
            return Err(ApiError::value(path, message));
        }
    }
    Ok(())
}

fn chat_message(mut message: Fields) -> Result<Value> {
    let role = message.needed_text("role")?;
    let mut out = Map::new();
    let name = message.text("name")?;
    match role.as_str() {
        "system" | "developer" | "user" => {
            let shown = if role == "user" { "user" } else { "system" };
            out.insert("role".into(), shown.into());
            out.insert("content".into(), needed_content(&mut message)?.into());
        }
        "assistant" => assistant(&mut message, &mut out)?,
        "tool" => {
            out.insert("role".into(), "tool".into());
            out.insert("content".into(), needed_content(&mut message)?.into());
            out.insert("tool_call_id".into(), message.needed_text("tool_call_id")?.into());
        }
        "function" => {
            let why = "messages of functions have become messages of tools; use the role 'tool'";
            return Err(ApiError::unsupported(message.at("role"), why));
        }
        other => return Err(unknown_role(&message, other)),
    }
    if let Some(name) = name {
        out.insert("name".into(), name.into());
    }
    message.finish()?;
    Ok(Value::Object(out))
}

fn assistant(message: &mut Fields, out: &mut Map<String, Value>) -> Result<()> {
    let content = content(message)?;
    let refusal = message.text("refusal")?;
    let calls = message.list("tool_calls")?.unwrap_or_default();
    let reasoning = message.text("reasoning_content")?;
    let why = "calls of functions have become calls of tools; use 'tool_calls'";
    message.refuse("function_call", &[], why)?;
    message.refuse("audio", &[], "the model has no ears")?;
    // Fields that our own answers contain.
    message.ignore(&["annotations", "logprobs"]);
    if content.is_none() && refusal.is_none() && calls.is_empty() {
        return Err(ApiError::missing(message.at("content")));
    }
    out.insert("role".into(), "assistant".into());
    out.insert("content".into(), content.or(refusal).unwrap_or_default().into());
    if let Some(reasoning) = reasoning {
        out.insert("reasoning_content".into(), reasoning.into());
    }
    if !calls.is_empty() {
        let path = message.at("tool_calls");
        let read = |(i, call)| tool_call(Fields::new(call, format!("{path}[{i}]"))?);
        let calls = calls.into_iter().enumerate().map(read).collect::<Result<Vec<_>>>()?;
        out.insert("tool_calls".into(), calls.into());
    }
    Ok(())
}

/// Converts a call that the model made before.
fn tool_call(mut call: Fields) -> Result<Value> {
    let id = call.text("id")?.unwrap_or_default();
    let kind = call.text("type")?.unwrap_or_else(|| "function".into());
    call.ignore(&["index"]);
    let called = match kind.as_str() {
        "function" | "custom" => call.object(&kind)?.ok_or_else(|| ApiError::missing(call.at(&kind))),
        other => {
            let message = format!("'{}' is '{other}', but must be one of function, custom", call.at("type"));
            Err(ApiError::value(call.at("type"), message))
        }
    };
    let mut called = called?;
    let name = called.needed_text("name")?;
    let arguments = called.needed_text(if kind == "custom" { "input" } else { "arguments" })?;
    called.finish()?;
    call.finish()?;
    Ok(call_json(&id, &name, arguments, kind == "custom"))
}

/// Returns a call as templates expect it: arguments are a JSON value if possible.
fn call_json(id: &str, name: &str, arguments: String, is_custom: bool) -> Value {
    let parsed = if is_custom { None } else { serde_json::from_str::<Value>(&arguments).ok() };
    let arguments = parsed.unwrap_or(Value::String(arguments));
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Converts input of the responses API, a text or a list of items, and appends it to the messages of a conversation.
pub(crate) fn responses(input: Value, mut messages: Vec<Value>) -> Result<Vec<Value>> {
    match input {
        Value::String(text) => messages.push(json!({"role": "user", "content": text})),
        Value::Array(items) => {
            if items.is_empty() {
                return Err(ApiError::value("input", "'input' is empty, but must have at least one item"));
            }
            let mut places = vec![0; messages.len()];
            for (i, item) in items.into_iter().enumerate() {
                responses_item(Fields::new(item, format!("input[{i}]"))?, &mut messages)?;
                places.resize(messages.len(), i);
            }
            check_results(&messages, |at| format!("input[{}].call_id", places.get(at).unwrap_or(&0)))?;
        }
        other => return Err(ApiError::wrong_type("input", "a string or an array", &other)),
    }
    Ok(messages)
}

fn responses_item(mut item: Fields, messages: &mut Vec<Value>) -> Result<()> {
    let kind = item.text("type")?.unwrap_or_else(|| "message".into());
    // Fields that the items of our own answers contain.
    item.ignore(&["id", "status"]);
    match kind.as_str() {
        "message" => {
            let role = item.needed_text("role")?;
            let shown = match role.as_str() {
                "user" | "assistant" => role.as_str(),
                "system" | "developer" => "system",
                other => return Err(unknown_role(&item, other)),
            };
            let text = needed_content(&mut item)?;
            messages.push(json!({"role": shown, "content": text}));
        }
        "function_call" | "custom_tool_call" => {
            let is_custom = kind == "custom_tool_call";
            let id = item.needed_text("call_id")?;
            let name = item.needed_text("name")?;
            let arguments = item.needed_text(if is_custom { "input" } else { "arguments" })?;
            push_call(messages, call_json(&id, &name, arguments, is_custom));
        }
        "function_call_output" | "custom_tool_call_output" => {
            let id = item.needed_text("call_id")?;
            let output = parts(item.take("output"), &item.at("output"))?;
            let output = output.ok_or_else(|| ApiError::missing(item.at("output")))?;
            messages.push(json!({"role": "tool", "content": output, "tool_call_id": id}));
        }
        // A model does not see its earlier thoughts again.
        "reasoning" => item.ignore(&["summary", "content", "encrypted_content"]),
        other => {
            let message = format!("'{}' is '{other}', which this server does not know", item.at("type"));
            return Err(ApiError::value(item.at("type"), message));
        }
    }
    item.finish()
}

/// Adds a call. Calls of one turn belong to one message.
fn push_call(messages: &mut Vec<Value>, call: Value) {
    if let Some(Value::Object(last)) = messages.last_mut()
        && last.get("role").and_then(Value::as_str) == Some("assistant")
    {
        match last.entry("tool_calls").or_insert_with(|| json!([])) {
            Value::Array(calls) => calls.push(call),
            other => *other = json!([call]),
        }
        return;
    }
    messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
}

fn unknown_role(fields: &Fields, role: &str) -> ApiError {
    let path = fields.at("role");
    let message =
        format!("'{path}' is '{role}', but must be one of system, developer, user, assistant, tool");
    ApiError::value(path, message)
}

fn needed_content(message: &mut Fields) -> Result<String> {
    content(message)?.ok_or_else(|| ApiError::missing(message.at("content")))
}

fn content(message: &mut Fields) -> Result<Option<String>> {
    parts(message.take("content"), &message.at("content"))
}

/// Reads a text, or a list of parts, all of which are text.
fn parts(value: Option<Value>, path: &str) -> Result<Option<String>> {
    let items = match value {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(text)),
        Some(Value::Array(items)) => items,
        Some(other) => {
            return Err(ApiError::wrong_type(path, "a string or an array of parts", &other));
        }
    };
    let mut text = String::new();
    for (i, item) in items.into_iter().enumerate() {
        let mut part = Fields::new(item, format!("{path}[{i}]"))?;
        let kind = part.needed_text("type")?;
        match kind.as_str() {
            "text" | "input_text" | "output_text" => text += &part.needed_text("text")?,
            "refusal" => text += &part.needed_text("refusal")?,
            other => {
                let why = format!("the model reads text only, and this part is '{other}'");
                return Err(ApiError::unsupported(part.at("type"), &why));
            }
        }
        part.ignore(&["annotations", "logprobs"]);
        part.finish()?;
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(messages: &Value) -> Result<Value> {
        chat(messages.as_array().cloned().unwrap_or_default())
    }

    #[test]
    fn roles_and_parts_become_uniform() {
        let messages = json!([
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "Ada"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
            {"role": "tool", "content": "2", "tool_call_id": "c1"},
        ]);
        let expected = json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "ab", "name": "Ada"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]},
            {"role": "tool", "content": "2", "tool_call_id": "c1"},
        ]);
        assert_eq!(read(&messages).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_its_path() {
        for (messages, param) in [
            (json!([]), "messages"),
            (json!([1]), "messages[0]"),
            (json!([{"role": "king", "content": "a"}]), "messages[0].role"),
            (json!([{"content": "a"}]), "messages[0].role"),
            (json!([{"role": "user"}]), "messages[0].content"),
            (json!([{"role": "user", "content": 1}]), "messages[0].content"),
            (json!([{"role": "user", "content": "a", "extra": 1}]), "messages[0].extra"),
            (json!([{"role": "assistant"}]), "messages[0].content"),
            (json!([{"role": "tool", "content": "a"}]), "messages[0].tool_call_id"),
            (json!([{"role": "tool", "content": "a", "tool_call_id": "x"}]), "messages[0].tool_call_id"),
            (
                json!([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
                "messages[0].content[0].type",
            ),
        ] {
            assert_eq!(read(&messages).unwrap_err().param.as_deref(), Some(param), "{messages}");
        }
    }

    #[test]
    fn items_of_the_responses_api() {
        let input = json!([
            {"role": "user", "content": [{"type": "input_text", "text": "add"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
            {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "x"},
            {"type": "function_call_output", "call_id": "c1", "output": "3"},
        ]);
        let expected = json!([
            {"role": "user", "content": "before"},
            {"role": "user", "content": "add"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {}}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "x"}}]},
            {"role": "tool", "content": "3", "tool_call_id": "c1"},
        ]);
        let before = vec![json!({"role": "user", "content": "before"})];
        assert_eq!(Value::from(responses(input, before.clone()).unwrap()), expected);
        let lone = json!([{"role": "user", "content": "a"}, {"type": "function_call_output", "call_id": "c9", "output": "3"}]);
        let error = responses(lone, before).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("input[1].call_id"));
        let error = responses(json!([{"type": "item_reference"}]), Vec::new()).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("input[0].type"));
    }
}
