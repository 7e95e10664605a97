//! Tools for models whose template does not support them.
//!
//! They are described in the system message, and calls and their results are written into the conversation, in the
//! format that most models have seen: JSON between `<tool_call>` tags.

use serde_json::{Map, Value, json};

/// Returns the conversation with all tools, calls and results written as text.
pub(crate) fn write(messages: &Value, tools: Option<&Value>) -> Value {
    let mut out: Vec<Value> = messages.as_array().into_iter().flatten().map(plain).collect();
    let Some(tools) = tools else { return Value::Array(out) };
    let description = describe(tools);
    match out
        .first_mut()
        .and_then(Value::as_object_mut)
        .filter(|first| first.get("role") == Some(&json!("system")))
    {
        Some(system) => {
            let text = system.get("content").and_then(Value::as_str).unwrap_or_default();
            let text = format!("{text}\n\n{description}");
            system.insert("content".into(), text.into());
        }
        None => out.insert(0, json!({"role": "system", "content": description})),
    }
    Value::Array(out)
}

fn describe(tools: &Value) -> String {
    let lines: Vec<String> = tools.as_array().into_iter().flatten().map(Value::to_string).collect();
    format!(
        "You may call tools to answer. These are the tools, one a line, with the JSON Schema of their arguments:\n<tools>\n{}\n</tools>\n\
         To call a tool, write a JSON object between tags:\n<tool_call>\n{{\"name\": \"the tool\", \"arguments\": {{…}}}}\n</tool_call>",
        lines.join("\n")
    )
}

fn plain(message: &Value) -> Value {
    let Some(fields) = message.as_object() else { return message.clone() };
    let text = fields.get("content").and_then(Value::as_str).unwrap_or_default();
    if fields.get("role") == Some(&json!("tool")) {
        return json!({"role": "user", "content": format!("<tool_response>\n{text}\n</tool_response>")});
    }
    let Some(calls) = fields.get("tool_calls").and_then(Value::as_array) else { return message.clone() };
    let mut written = text.to_owned();
    for call in calls {
        let mut shown = Map::new();
        shown.insert("name".into(), call["function"]["name"].clone());
        shown.insert("arguments".into(), call["function"]["arguments"].clone());
        let gap = if written.is_empty() { "" } else { "\n" };
        written.extend([gap, "<tool_call>\n", &Value::Object(shown).to_string(), "\n</tool_call>"]);
    }
    json!({"role": "assistant", "content": written})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_results_become_text() {
        let messages = json!([
            {"role": "user", "content": "add"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"x": 1}}}]},
            {"role": "tool", "content": "2", "tool_call_id": "1"},
        ]);
        let tools = json!([{"type": "function", "function": {"name": "f"}}]);
        let written = write(&messages, Some(&tools));
        assert_eq!(written[0]["role"], "system");
        assert!(written[0]["content"].as_str().unwrap().contains("\"name\":\"f\""));
        assert_eq!(
            written[2]["content"],
            "<tool_call>\n{\"name\":\"f\",\"arguments\":{\"x\":1}}\n</tool_call>"
        );
        assert_eq!(written[3], json!({"role": "user", "content": "<tool_response>\n2\n</tool_response>"}));
        assert_eq!(
            write(&json!([{"role": "user", "content": "a"}]), None),
            json!([{"role": "user", "content": "a"}])
        );
    }
}
