//! Reads a request from JSON, for callers in other languages.

use maskwright_frontend::tag;
use serde_json::{Map, Value};

use super::{Choice, FormatError, Input, Request, Thinking, Tool};

impl Request {
    /// Reads a request from JSON: an object with the optional members `tools`, `choice`, `one_call`, `thinking`,
    /// `answer` and `any_order`.
    ///
    /// A tool has a `name` and one of `parameters` (a JSON Schema), `regex`, `lark`, `ebnf` and `text` (`true`: any
    /// text); without any of them it takes an empty object. The tool notation of chat completions, `{"type":
    /// "function", "function": {…}}`, is accepted, too.
    /// A `choice` is `"auto"`, `"none"`, `"required"`, `{"name": …}`, or `{"allowed": […], "required": …}`.
    ///
    /// ```
    /// use maskwright::formats::{Choice, Request, Thinking};
    /// use serde_json::json;
    ///
    /// let request = Request::from_json(&json!({
    ///     "tools": [{"name": "add", "parameters": {"type": "object"}}, {"type": "function", "function": {"name": "now"}}],
    ///     "choice": {"name": "add"},
    ///     "thinking": "off",
    /// }))?;
    /// assert_eq!((request.tools.len(), request.choice, request.thinking), (2, Choice::Named("add".into()), Thinking::Off));
    /// # Ok::<(), maskwright::formats::FormatError>(())
    /// ```
    pub fn from_json(value: &Value) -> Result<Self, FormatError> {
        let mut request = Self::default();
        for (key, value) in object(value, "a request")? {
            match &**key {
                "tools" => request.tools = tools(value)?,
                "choice" => request.choice = choice(value)?,
                "one_call" => request.one_call = flag(value, "`one_call`")?,
                "any_order" => request.any_order = flag(value, "`any_order`")?,
                "thinking" => request.thinking = thinking(value)?,
                "answer" if value.is_null() => {}
                "answer" => {
                    let wrong = |error: tag::TagError| malformed(format!("`answer`: {error}"));
                    request.answer = Some(tag::parse_value(value).map_err(wrong)?);
                }
                _ => {
                    let message =
                        "a request has `tools`, `choice`, `one_call`, `thinking`, `answer` and `any_order`";
                    return Err(malformed(format!("{message}, and no `{key}`")));
                }
            }
        }
        Ok(request)
    }
}

fn tools(value: &Value) -> Result<Vec<Tool>, FormatError> {
    let list = value.as_array().ok_or_else(|| malformed("`tools` must be a list".into()))?;
    list.iter().enumerate().map(|(number, tool)| one_tool(tool, &format!("`tools[{number}]`"))).collect()
}

fn one_tool(value: &Value, at: &str) -> Result<Tool, FormatError> {
    let outer = object(value, at)?;
    // OpenAI's API wraps the function in another object.
    let fields = match outer.get("function") {
        Some(inner) => object(inner, &format!("{at}.function"))?,
        None => outer,
    };
    let mut name = None;
    let mut input = None;
    for (key, value) in fields {
        let given = match (&**key, value) {
            ("name", Value::String(text)) => {
                name = Some(text.clone());
                continue;
            }
            ("type" | "description" | "strict", _) => continue,
            ("parameters" | "regex" | "lark" | "ebnf" | "text", Value::Null) => continue,
            ("parameters", schema) => Input::Schema(schema.clone()),
            ("regex", Value::String(pattern)) => Input::Regex(pattern.clone()),
            ("lark", Value::String(source)) => Input::Grammar(tag::Syntax::Lark, source.clone()),
            ("ebnf", Value::String(source)) => Input::Grammar(tag::Syntax::Ebnf, source.clone()),
            ("text", Value::Bool(true)) => Input::Text,
            _ => {
                let message = "a tool has a `name`, a string, and one of `parameters`, `regex`, `lark`, `ebnf` and `text`";
                return Err(malformed(format!("{at}: {message}; this one has `{key}`: {value}")));
            }
        };
        if input.replace(given).is_some() {
            return Err(malformed(format!("{at}: a tool takes one thing, and this one has two")));
        }
    }
    let name = name.ok_or_else(|| malformed(format!("{at} has no `name`")))?;
    let nothing = || serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false});
    Ok(Tool { name, input: input.unwrap_or_else(|| Input::Schema(nothing())) })
}

fn choice(value: &Value) -> Result<Choice, FormatError> {
    match value {
        Value::Null => return Ok(Choice::Auto),
        Value::String(word) => match &**word {
            "auto" => return Ok(Choice::Auto),
            "none" => return Ok(Choice::None),
            "required" => return Ok(Choice::Required),
            _ => {}
        },
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("name") => {
            if let Some(Value::String(name)) = fields.get("name") {
                return Ok(Choice::Named(name.clone()));
            }
        }
        Value::Object(fields) if fields.keys().all(|key| key == "allowed" || key == "required") => {
            let required =
                fields.get("required").map_or(Ok(false), |value| flag(value, "`choice.required`"))?;
            let names = fields.get("allowed").and_then(Value::as_array);
            let names: Option<Vec<String>> =
                names.and_then(|list| list.iter().map(|name| name.as_str().map(str::to_owned)).collect());
            if let Some(names) = names {
                return Ok(if required { Choice::AllowedRequired(names) } else { Choice::Allowed(names) });
            }
        }
        _ => {}
    }
    let known = "\"auto\", \"none\", \"required\", {\"name\": …} or {\"allowed\": […], \"required\": …}";
    Err(malformed(format!("`choice` must be {known}, and is {value}")))
}

fn thinking(value: &Value) -> Result<Thinking, FormatError> {
    match value.as_str() {
        Some("optional") => Ok(Thinking::Optional),
        Some("off") => Ok(Thinking::Off),
        Some("required") => Ok(Thinking::Required),
        Some("begun") => Ok(Thinking::Begun),
        _ => {
            let known = "\"optional\", \"off\", \"required\" or \"begun\"";
            Err(malformed(format!("`thinking` must be {known}, and is {value}")))
        }
    }
}

fn flag(value: &Value, what: &str) -> Result<bool, FormatError> {
    value.as_bool().ok_or_else(|| malformed(format!("{what} must be true or false, and is {value}")))
}

fn object<'v>(value: &'v Value, what: &str) -> Result<&'v Map<String, Value>, FormatError> {
    value.as_object().ok_or_else(|| malformed(format!("{what} must be an object, and is {value}")))
}

fn malformed(message: String) -> FormatError {
    FormatError::Request { message }
}
