//! Tools: what a model may call, and how it is described to the model.
//!
//! The chat API nests a tool in an object of its type, the responses API does not; both become one [`Toolbox`]. From it
//! the [format](maskwright::formats) of the model creates a structural tag, which is both the constraint of the answer
//! and its parser.

use std::collections::BTreeSet;

use maskwright::{
    Constraint, Options,
    formats::{Choice, Input, ModelFormat, Request, Thinking, Tool},
    json_schema::Strictness,
    tag,
};
use serde_json::{Value, json};

use super::{Fields, Requested, requested::check_name};
use crate::error::{ApiError, Result};

/// The maximum number of tools of a request.
const MAX_TOOLS: usize = 512;

/// The API that received a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Responses,
}

/// The tools of a request.
#[derive(Debug, Clone)]
pub(crate) struct Toolbox {
    tools: Vec<Tool>,
    /// For each tool, the field that describes its input.
    fields: Vec<String>,
    choice: Choice,
    one_call: bool,
    /// The tools as templates expect them.
    pub(crate) described: Value,
    /// The tools that take a text instead of arguments.
    pub(crate) custom: BTreeSet<String>,
    /// The tools as given in the request, for APIs that repeat them.
    pub(crate) told: Value,
    pub(crate) told_choice: Value,
}

/// Takes all fields about tools from a body. Returns `None` if there are none.
pub(crate) fn take(body: &mut Fields, api: Api) -> Result<Option<Toolbox>> {
    let list = body.list("tools")?.unwrap_or_default();
    let choice = body.take("tool_choice");
    let is_parallel = body.flag("parallel_tool_calls")?.unwrap_or(true);
    if list.is_empty() {
        return match choice {
            None => Ok(None),
            Some(Value::String(word)) if word == "none" || word == "auto" => Ok(None),
            Some(_) => Err(ApiError::value(
                "tool_choice",
                "'tool_choice' asks for a tool, but there is none in 'tools'",
            )),
        };
    }
    if list.len() > MAX_TOOLS {
        let message = format!("there are {} tools, but at most {MAX_TOOLS} are allowed", list.len());
        return Err(ApiError::value("tools", message));
    }
    let told = Value::Array(list.clone());
    let mut read = Vec::new();
    for (i, item) in list.into_iter().enumerate() {
        read.push(tool(Fields::new(item, format!("tools[{i}]"))?, api)?);
    }
    let mut names = BTreeSet::new();
    for (i, one) in read.iter().enumerate() {
        if !names.insert(one.tool.name.clone()) {
            let message = format!("there are two tools called '{}'", one.tool.name);
            return Err(ApiError::value(format!("tools[{i}]"), message));
        }
    }
    let told_choice = choice.clone().unwrap_or_else(|| json!("auto"));
    let choice = read_choice(choice, api, &names)?;
    Ok(Some(Toolbox {
        custom: read.iter().filter(|one| one.is_custom).map(|one| one.tool.name.clone()).collect(),
        described: read.iter().map(|one| one.described.clone()).collect(),
        fields: read.iter().map(|one| one.field.clone()).collect(),
        tools: read.into_iter().map(|one| one.tool).collect(),
        choice,
        one_call: !is_parallel,
        told,
        told_choice,
    }))
}

impl Toolbox {
    /// Whether the model may call no tool.
    pub(crate) fn is_closed(&self) -> bool {
        self.choice == Choice::None
    }

    /// Whether the model must call a tool.
    pub(crate) fn is_required(&self) -> bool {
        matches!(self.choice, Choice::Required | Choice::AllowedRequired(_))
    }

    /// Whether it may make several calls.
    pub(crate) fn is_parallel(&self) -> bool {
        !self.one_call
    }

    /// Whether it must call a specific tool.
    pub(crate) fn is_named(&self) -> bool {
        matches!(self.choice, Choice::Named(_))
    }

    /// Returns the tree of what the model may write: calls, and an answer of some form if it makes none. `objects`
    /// applies to all tools.
    pub(crate) fn tree(
        &self,
        format: &ModelFormat,
        answer: Option<tag::Format>,
        objects: Option<Strictness>,
        thinking: Thinking,
    ) -> Result<tag::Format> {
        let mut tools = self.tools.clone();
        for tool in &mut tools {
            if let (Input::SchemaWith(_, own), Some(objects)) = (&mut tool.input, objects) {
                *own = objects;
            }
        }
        let request = Request {
            tools,
            choice: self.choice.clone(),
            one_call: self.one_call,
            answer,
            thinking,
            ..Request::default()
        };
        format.tag(&request).map_err(|error| ApiError::value("tools", format!("'tools': {error}")))
    }

    /// Returns the input of each tool as a separate constraint: all of them together are one constraint, whose errors
    /// do not name the tool that caused them.
    pub(crate) fn parts(&self, options: &Options) -> Vec<Requested> {
        let part = |(tool, field): (&Tool, &String)| {
            let mut options = options.clone();
            let constraint = match &tool.input {
                Input::Schema(schema) => Constraint::JsonSchema(schema.to_string()),
                Input::SchemaWith(schema, objects) => {
                    options.json_schema.strictness = *objects;
                    Constraint::JsonSchema(schema.to_string())
                }
                Input::Regex(pattern) => Constraint::Regex(pattern.clone()),
                Input::Grammar(tag::Syntax::Ebnf, source) => Constraint::Ebnf(source.clone()),
                Input::Grammar(tag::Syntax::Lark, source) => Constraint::Lark(source.clone()),
                _ => return None,
            };
            Some(Requested { constraint, options, param: field.clone(), weighing: None })
        };
        self.tools.iter().zip(&self.fields).filter_map(part).collect()
    }
}

/// A tool that was read.
struct Read {
    tool: Tool,
    described: Value,
    is_custom: bool,
    /// The field that describes its input.
    field: String,
}

fn tool(mut item: Fields, api: Api) -> Result<Read> {
    let kind = item.needed_text("type")?;
    let mut inner = match (kind.as_str(), api) {
        ("function" | "custom", Api::Chat) => {
            let inner = item.object(&kind)?.ok_or_else(|| ApiError::missing(item.at(&kind)))?;
            item.finish()?;
            inner
        }
        ("function" | "custom", Api::Responses) => item,
        (other, _) => {
            let why = format!(
                "'{other}' is a tool that the server would run, and it has none; use 'function' or 'custom'"
            );
            return Err(ApiError::unsupported(item.at("type"), &why));
        }
    };
    let name = inner.needed_text("name")?;
    check_name(&name, &inner.at("name"))?;
    let description = inner.text("description")?;
    let read = if kind == "custom" {
        custom(&mut inner, name, description)?
    } else {
        function(&mut inner, name, description, api)?
    };
    inner.finish()?;
    Ok(read)
}

fn function(inner: &mut Fields, name: String, description: Option<String>, api: Api) -> Result<Read> {
    let strict = inner.flag("strict")?;
    let parameters = inner.take("parameters");
    if let Some(other) = parameters.as_ref().filter(|value| !value.is_object()) {
        return Err(ApiError::wrong_type(inner.at("parameters"), "an object", other));
    }
    // No parameters means no arguments.
    let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let parameters = parameters.unwrap_or(empty);
    let described = json!({"type": "function", "function": {
        "name": name, "description": description.unwrap_or_default(), "parameters": parameters,
    }});
    // By default, the responses API is strict and the chat API is not.
    let is_strict = strict.unwrap_or(api == Api::Responses);
    // Arguments that the function does not know are useless.
    let objects = if is_strict { Strictness::Strict } else { Strictness::Closed };
    let input = Input::SchemaWith(parameters, objects);
    Ok(Read { tool: Tool { name, input }, described, is_custom: false, field: inner.at("parameters") })
}

fn custom(inner: &mut Fields, name: String, description: Option<String>) -> Result<Read> {
    let input = match inner.object("format")? {
        None => Input::Text,
        Some(format) => custom_format(format)?,
    };
    let described = json!({"type": "function", "function": {
        "name": name, "description": description.unwrap_or_default(),
        "parameters": {"type": "string"},
    }});
    Ok(Read { tool: Tool { name, input }, described, is_custom: true, field: inner.at("format") })
}

/// Reads `{"type": "grammar", "grammar": {"syntax", "definition"}}`, or the same without the inner object.
fn custom_format(mut format: Fields) -> Result<Input> {
    let kind = format.needed_text("type")?;
    match kind.as_str() {
        "text" => {
            format.finish()?;
            Ok(Input::Text)
        }
        "grammar" => {
            let mut inner = match format.object("grammar")? {
                Some(inner) => {
                    format.finish()?;
                    inner
                }
                None => format,
            };
            let syntax = inner.needed_text("syntax")?;
            let definition = inner.needed_text("definition")?;
            let path = inner.at("syntax");
            inner.finish()?;
            match syntax.as_str() {
                "regex" => Ok(Input::Regex(definition)),
                "lark" => Ok(Input::Grammar(tag::Syntax::Lark, definition)),
                other => {
                    let message = format!("'{path}' is '{other}', but must be one of lark, regex");
                    Err(ApiError::value(path, message))
                }
            }
        }
        other => {
            let path = format.at("type");
            let message = format!("'{path}' is '{other}', but must be one of text, grammar");
            Err(ApiError::value(path, message))
        }
    }
}

fn read_choice(choice: Option<Value>, api: Api, names: &BTreeSet<String>) -> Result<Choice> {
    let mut choice = match choice {
        None => return Ok(Choice::Auto),
        Some(Value::String(word)) => {
            return match word.as_str() {
                "auto" => Ok(Choice::Auto),
                "none" => Ok(Choice::None),
                "required" => Ok(Choice::Required),
                other => {
                    let message = format!(
                        "'tool_choice' is '{other}', but must be one of auto, none, required, or an object"
                    );
                    Err(ApiError::value("tool_choice", message))
                }
            };
        }
        Some(value) => Fields::new(value, "tool_choice")?,
    };
    let kind = choice.needed_text("type")?;
    let read = match kind.as_str() {
        "function" | "custom" => Choice::Named(named(&mut choice, &kind, api, names)?),
        "allowed_tools" => match choice.object("allowed_tools")? {
            Some(mut inner) => {
                let read = allowed(&mut inner, api, names)?;
                inner.finish()?;
                read
            }
            None => allowed(&mut choice, api, names)?,
        },
        other => {
            let message = format!(
                "'tool_choice.type' is '{other}', but must be one of function, custom, allowed_tools"
            );
            return Err(ApiError::value("tool_choice.type", message));
        }
    };
    choice.finish()?;
    Ok(read)
}

/// Reads a choice of some tools, any or at least one of which is called.
fn allowed(fields: &mut Fields, api: Api, names: &BTreeSet<String>) -> Result<Choice> {
    let mode = fields.needed_text("mode")?;
    let path = fields.at("tools");
    let list = fields.list("tools")?.ok_or_else(|| ApiError::missing(&path))?;
    let mut allowed = Vec::new();
    for (i, item) in list.into_iter().enumerate() {
        let mut item = Fields::new(item, format!("{path}[{i}]"))?;
        let kind = item.needed_text("type")?;
        allowed.push(named(&mut item, &kind, api, names)?);
        item.finish()?;
    }
    match mode.as_str() {
        "auto" => Ok(Choice::Allowed(allowed)),
        "required" => Ok(Choice::AllowedRequired(allowed)),
        other => {
            let path = fields.at("mode");
            let message = format!("'{path}' is '{other}', but must be one of auto, required");
            Err(ApiError::value(path, message))
        }
    }
}

/// Reads the name of an existing tool, which is nested in chat, but not in responses.
fn named(fields: &mut Fields, kind: &str, api: Api, names: &BTreeSet<String>) -> Result<String> {
    let (name, path) = match (api, fields.object(kind)?) {
        (Api::Chat, Some(mut inner)) => {
            let name = inner.needed_text("name")?;
            let path = inner.at("name");
            inner.finish()?;
            (name, path)
        }
        _ => (fields.needed_text("name")?, fields.at("name")),
    };
    if !names.contains(&name) {
        let message = format!("'{path}' is '{name}', which is not among 'tools'");
        return Err(ApiError::value(path, message));
    }
    Ok(name)
}
