//! Chat templates convert conversations to prompts.
//!
//! A model file contains a template in the language Jinja, which describes how to write the messages of a conversation.
//! It is rendered as Hugging Face's library does: blocks trim their lines, `raise_exception` is an error,
//! `strftime_now` and `tojson` exist, and strings and lists have Python's methods.
//!
//! ```
//! use maskwright_runtime::text::chat::{ChatTemplate, Conversation};
//! use serde_json::json;
//!
//! let template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content.strip() }}\n{% endfor %}\
//!                 {% if add_generation_prompt %}<|assistant|>{% endif %}";
//! let template = ChatTemplate::new(template)?;
//! let messages = json!([{"role": "user", "content": " Hello "}]);
//! assert_eq!(template.render(&Conversation::new(&messages))?, "<|user|>Hello\n<|assistant|>");
//! # Ok::<(), maskwright_runtime::text::chat::ChatError>(())
//! ```
//!
//! A template is a program from an untrusted file, so the number of its steps is limited.

use std::{collections::HashSet, fmt};

use minijinja::{Environment, ErrorKind, Value, syntax::SyntaxConfig, value::ValueKind};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde_json::Value as Json;

/// The maximum number of steps of a template; a conversation of a thousand messages takes about ten thousand.
const MAX_TEMPLATE_STEPS: u64 = 5_000_000;
/// The maximum size of a template in bytes; the largest in circulation have about thirty thousand.
const MAX_BYTES: usize = 1 << 20;
/// The maximum nesting of values; the schema of a tool needs about twenty levels.
const MAX_DEPTH: usize = 200;
const NAME: &str = "chat";

/// A parsed template.
pub struct ChatTemplate {
    environment: Environment<'static>,
    /// The variables that it uses without setting them.
    variables: HashSet<String>,
}

/// A conversation to render.
#[derive(Debug, Clone)]
pub struct Conversation<'c> {
    /// A list of messages in the notation of APIs: objects with a role and a content.
    pub messages: &'c Json,
    /// A list of tools, if there are any.
    pub tools: Option<&'c Json>,
    /// Whether to begin the answer.
    pub add_generation_prompt: bool,
    /// The names of the tokens that begin and end a text.
    pub bos_token: &'c str,
    /// The name of the token that ends a text.
    pub eos_token: &'c str,
    /// Other variables, an object, such as `enable_thinking`.
    pub more: Option<&'c Json>,
}

impl<'c> Conversation<'c> {
    /// Creates a conversation from messages, with the beginning of an answer.
    pub fn new(messages: &'c Json) -> Self {
        Self { messages, tools: None, add_generation_prompt: true, bos_token: "", eos_token: "", more: None }
    }
}

impl ChatTemplate {
    /// Parses a template.
    pub fn new(source: &str) -> Result<Self, ChatError> {
        if source.len() > MAX_BYTES {
            return Err(ChatError(format!(
                "the template has {} bytes, which no chat template needs",
                source.len()
            )));
        }
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|e| ChatError::of(&e))?;
        environment.set_syntax(syntax);
        environment.set_fuel(Some(MAX_TEMPLATE_STEPS));
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.add_filter("tojson", |value: &Value| python_json(value, 0));
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment.add_template_owned(NAME, source.to_owned()).map_err(|error| ChatError::of(&error))?;
        let template = environment.get_template(NAME).map_err(|error| ChatError::of(&error))?;
        let variables = template.undeclared_variables(false);
        Ok(Self { environment, variables })
    }

    /// Whether it uses a variable with this name, such as `enable_thinking`.
    pub fn uses(&self, name: &str) -> bool {
        self.variables.contains(name)
    }

    /// Renders the prompt for a conversation.
    pub fn render(&self, conversation: &Conversation<'_>) -> Result<String, ChatError> {
        let mut variables = serde_json::Map::new();
        if let Some(Json::Object(more)) = conversation.more {
            variables.clone_from(more);
        }
        variables.insert("messages".into(), conversation.messages.clone());
        variables.insert("tools".into(), conversation.tools.cloned().unwrap_or(Json::Null));
        variables.insert("add_generation_prompt".into(), conversation.add_generation_prompt.into());
        variables.insert("bos_token".into(), conversation.bos_token.into());
        variables.insert("eos_token".into(), conversation.eos_token.into());
        let template = self.environment.get_template(NAME).map_err(|error| ChatError::of(&error))?;
        template.render(value(&Json::Object(variables))).map_err(|error| ChatError::of(&error))
    }
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate").finish_non_exhaustive()
    }
}

/// Converts JSON by hand, because our JSON numbers keep their digits, and look like objects to generic code.
fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(bit) => Value::from(*bit),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole),
            (None, Some(float)) => Value::from(float),
            (None, None) => Value::from(number.to_string()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from(items.iter().map(value).collect::<Vec<_>>()),
        Json::Object(entries) => {
            Value::from_pairs(entries.iter().map(|(key, entry)| (key.as_str(), value(entry))))
        }
    }
}

/// Writes JSON like Python: with a space after commas and colons, and without unnecessary escapes. Models were trained
/// on this format.
fn python_json(value: &Value, depth: usize) -> Result<String, minijinja::Error> {
    if depth > MAX_DEPTH {
        let message = format!("tojson was given values nested more than {MAX_DEPTH} deep");
        return Err(minijinja::Error::new(ErrorKind::InvalidOperation, message));
    }
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => "null".into(),
        ValueKind::Bool | ValueKind::Number => value.to_string().to_lowercase(),
        ValueKind::Map => {
            let mut entries = Vec::new();
            for key in value.try_iter()? {
                let entry = python_json(&value.get_item(&key)?, depth + 1)?;
                entries.push(format!("{}: {entry}", Json::from(key.to_string())));
            }
            format!("{{{}}}", entries.join(", "))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.map(|item| python_json(&item, depth + 1));
            format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
        _ => Json::from(value.to_string()).to_string(),
    })
}

fn raise_exception(message: String) -> Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
}

/// Some templates write the date into the prompt. Only the parts of a date are supported.
fn strftime_now(format: &str) -> Result<String, minijinja::Error> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = since.map_or(0, |since| since.as_secs() / 86_400);
    date(format, days).ok_or_else(|| {
        let message = format!("strftime_now knows %Y, %m, %d, %b, %B and %-d, but not all of {format:?}");
        minijinja::Error::new(ErrorKind::InvalidOperation, message)
    })
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn date(format: &str, days: u64) -> Option<String> {
    let (year, month, day) = civil(days);
    let name = MONTHS.get(month as usize - 1)?;
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match rest.next()? {
            'Y' => out += &year.to_string(),
            'm' => out += &two_digits(month),
            'd' => out += &two_digits(day),
            'b' => out += &name[..3],
            'B' => out += name,
            '-' if rest.next()? == 'd' => out += &day.to_string(),
            _ => return None,
        }
    }
    Some(out)
}

fn two_digits(number: u64) -> String {
    format!("{number:02}")
}

/// Returns year, month and day of a day since January 1, 1970.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

/// The reason why a template cannot be used, or refuses a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatError(String);

impl ChatError {
    fn of(error: &minijinja::Error) -> Self {
        let place = error.line().map(|line| format!(" in its line {line}")).unwrap_or_default();
        let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        Self(format!("the chat template failed{place}: {detail}"))
    }
}

impl fmt::Display for ChatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChatError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(template: &str, conversation: &Conversation<'_>) -> Result<String, ChatError> {
        ChatTemplate::new(template)?.render(conversation)
    }

    /// Similar to the templates of Qwen models: tools, calls, results, and thoughts that are removed.
    const QWEN_LIKE: &str = r#"{%- if tools %}
    {{- '<|im_start|>system\n# Tools\n' }}
    {%- for tool in tools %}
        {{- "\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- endif %}
{%- set ns = namespace(last=-1) %}
{%- for message in messages[::-1] %}
    {%- if ns.last == -1 and message.role == 'user' %}
        {%- set ns.last = (messages|length - 1) - loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'assistant' and message.tool_calls is defined %}
        {{- '<|im_start|>assistant' }}
        {%- for call in message.tool_calls %}
            {{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {%- if call.function.arguments is string %}
                {{- call.function.arguments }}
            {%- else %}
                {{- call.function.arguments | tojson }}
            {%- endif %}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- else %}
        {%- set content = message.content %}
        {%- if '</think>' in content %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"#;

    #[test]
    fn tools_calls_and_thoughts() {
        let messages = json!([
            {"role": "user", "content": "Weather in Ulm?"},
            {"role": "assistant", "content": null,
             "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Ulm", "days": 2, "x": 1.5}}}]},
            {"role": "tool", "content": "rain"},
            {"role": "assistant", "content": "<think>hm</think>\n\nIt rains."},
            {"role": "user", "content": "Thanks"},
        ]);
        let tools = json!([{"type": "function", "function": {"name": "weather"}}]);
        let more = json!({"enable_thinking": false});
        let conversation =
            Conversation { tools: Some(&tools), more: Some(&more), ..Conversation::new(&messages) };
        let expected = "<|im_start|>system\n# Tools\n\n{\"type\": \"function\", \"function\": {\"name\": \"weather\"}}<|im_end|>\n\
            <|im_start|>user\nWeather in Ulm?<|im_end|>\n\
            <|im_start|>assistant\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Ulm\", \"days\": 2, \"x\": 1.5}}\n</tool_call><|im_end|>\n\
            <|im_start|>tool\nrain<|im_end|>\n\
            <|im_start|>assistant\nIt rains.<|im_end|>\n\
            <|im_start|>user\nThanks<|im_end|>\n\
            <|im_start|>assistant\n<think>\n\n</think>\n\n";
        assert_eq!(render(QWEN_LIKE, &conversation).unwrap(), expected);
        let template = ChatTemplate::new(QWEN_LIKE).unwrap();
        assert!(template.uses("enable_thinking") && template.uses("tools") && !template.uses("ns"));
        let late = ChatTemplate::new(
            "{% if not thinking is defined %}{% set thinking = false %}{% endif %}{{ thinking }}",
        );
        assert!(late.unwrap().uses("thinking"));
    }

    /// Similar to the template of Llama 3: a date, trimmed contents, the name of the first token.
    #[test]
    fn headers_and_the_first_token() {
        let template = "{{ bos_token }}{% for message in messages %}\n  {% if loop.first and message['role'] != 'user' %}\n{{ raise_exception('begin with a user') }}\n  {% endif %}\n\
            {{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}";
        let messages = json!([{"role": "user", "content": "  Hi \n"}]);
        let conversation = Conversation { bos_token: "<s>", ..Conversation::new(&messages) };
        let text = render(template, &conversation).unwrap();
        assert_eq!(text, "<s><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>");
        let messages = json!([{"role": "system", "content": "Hi"}]);
        let error = render(template, &Conversation::new(&messages)).unwrap_err().to_string();
        assert!(error.contains("begin with a user"), "{error}");
    }

    #[test]
    fn templates_that_fail_say_where_and_do_not_run_for_ever() {
        let messages = json!([]);
        let conversation = Conversation::new(&messages);
        let error = |template: &str| render(template, &conversation).unwrap_err().to_string();
        assert!(error("a\n{% for %}").contains("line 2"));
        assert!(error("{{ messages.nothing.deeper }}").contains("chat template failed"));
        assert!(error("{{ strftime_now('%H:%M') }}").contains("strftime_now"));
        assert!(
            error("{% for a in range(9999) %}{% for b in range(9999) %}{{ a }}{% endfor %}{% endfor %}")
                .contains("fuel")
        );
        assert!(error(&"x".repeat(MAX_BYTES + 1)).contains("bytes"));
        assert!(ChatTemplate::new(&"{% if a %}".repeat(100_000)).is_err());
        let deep = format!("{}1{}", "(".repeat(50_000), ")".repeat(50_000));
        assert!(ChatTemplate::new(&format!("{{{{ {deep} }}}}")).is_err());
    }

    #[test]
    fn dates() {
        assert_eq!(date("%d %b %Y", 0).as_deref(), Some("01 Jan 1970"));
        assert_eq!(date("%-d %B %Y", 19_782).as_deref(), Some("29 February 2024"));
        assert_eq!(date("%Y-%m-%d", 20_818).as_deref(), Some("2026-12-31"));
        assert_eq!(date("%Y-%m-%d", 20_819).as_deref(), Some("2027-01-01"));
        assert_eq!(date("%q", 0), None);
        assert_eq!(date("%", 0), None);
    }
}
