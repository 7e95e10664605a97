//! Whether the model thinks before it answers: `reasoning_effort`, `reasoning.effort`, and `chat_template_kwargs`.
//!
//! | the template of the model supports | `none` | `minimal`, `low`, `medium`, `high`, `xhigh` |
//! |---|---|---|
//! | `reasoning_effort` | no thoughts are allowed | `low`, `medium` and `high` are passed to the template, others are refused |
//! | `enable_thinking` or `thinking` | the variable is set to false, and no thoughts are allowed | the variable is set to true |
//! | neither, but the format has reasoning | no thoughts are allowed | refused |
//! | the format has no reasoning | no effect | refused |
//!
//! Some templates end the prompt where thoughts begin. The model is then inside them, whatever was requested, and
//! `none` is refused.

use maskwright::formats::Thinking;
use maskwright_runtime::text::chat::ChatTemplate;
use serde_json::{Map, Value};

use super::{Fields, fields::not_among};
use crate::error::{ApiError, Result};

const EFFORTS: &str = "none, minimal, low, medium, high, xhigh";
/// Variables that a template always gets.
const RESERVED: [&str; 5] = ["messages", "tools", "add_generation_prompt", "bos_token", "eos_token"];

/// The properties of a model that matter here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mind<'m> {
    /// Whether its format distinguishes thoughts from answers.
    pub(crate) can_reason: bool,
    pub(crate) template: Option<&'m ChatTemplate>,
}

impl Mind<'_> {
    /// Whether the template uses a variable of this name.
    fn knows(&self, word: &str) -> bool {
        self.template.is_some_and(|template| template.uses(word))
    }
}

/// The fields about thinking, and further variables for the template.
#[derive(Debug, Clone, Default)]
pub(crate) struct Thoughts {
    /// Whether it must or must not think; `None` if the request does not say.
    pub(crate) thinking: Option<Thinking>,
    /// The field that sets it.
    said: String,
    /// Variables for the template.
    pub(crate) variables: Map<String, Value>,
    /// The requested effort.
    pub(crate) effort: Option<String>,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

impl Thoughts {
    /// Reads `reasoning_effort` and `chat_template_kwargs` of the chat API.
    pub(crate) fn take(body: &mut Fields, mind: &Mind<'_>) -> Result<Self> {
        let mut thoughts = Self::default();
        thoughts.variables(body, mind)?;
        thoughts.effort(body, "reasoning_effort", mind)?;
        Ok(thoughts)
    }

    /// Reads `reasoning` and `chat_template_kwargs` of the responses API.
    pub(crate) fn take_object(body: &mut Fields, mind: &Mind<'_>) -> Result<Self> {
        let mut thoughts = Self::default();
        thoughts.variables(body, mind)?;
        if let Some(mut reasoning) = body.object("reasoning")? {
            let why = "reasoning is returned as it is, and not summarized";
            reasoning.refuse("summary", &[], why)?;
            reasoning.refuse("generate_summary", &[], why)?;
            thoughts.effort(&mut reasoning, "effort", mind)?;
            reasoning.finish()?;
        }
        Ok(thoughts)
    }

    /// Returns the thinking after a prompt, which may have begun the thoughts.
    pub(crate) fn behind(&self, is_begun: bool) -> Result<Option<Thinking>> {
        match self.thinking {
            thinking if !is_begun => Ok(thinking),
            Some(Thinking::Off) => {
                let why = "the template of the model begins its thoughts in the prompt";
                Err(ApiError::unsupported(self.said.as_str(), why))
            }
            _ => Ok(Some(Thinking::Begun)),
        }
    }

    fn variables(&mut self, body: &mut Fields, mind: &Mind<'_>) -> Result<()> {
        let name = "chat_template_kwargs";
        let path = body.at(name);
        let Some(fields) = body.object(name)? else { return Ok(()) };
        let Value::Object(variables) = fields.all() else { return Ok(()) };
        for word in variables.keys() {
            if RESERVED.contains(&word.as_str()) {
                let message = format!("'{path}.{word}' is set by the server for the template; remove it");
                return Err(ApiError::value(format!("{path}.{word}"), message));
            }
            if !mind.knows(word) {
                self.warnings
                    .push(format!("'{path}.{word}' is ignored: the template of the model does not know it"));
            }
        }
        self.variables = variables;
        Ok(())
    }

    fn effort(&mut self, fields: &mut Fields, name: &str, mind: &Mind<'_>) -> Result<()> {
        let path = fields.at(name);
        let Some(effort) = fields.text(name)? else { return Ok(()) };
        if !EFFORTS.split(", ").any(|known| known == effort) {
            return Err(not_among(fields, name, &effort, EFFORTS));
        }
        let can_reason = mind.can_reason;
        let switch = ["enable_thinking", "thinking"].into_iter().find(|word| mind.knows(word));
        match (effort.as_str(), switch) {
            ("none", _) if !can_reason => {}
            ("none", switch) => {
                self.thinking = Some(Thinking::Off);
                if let Some(word) = switch {
                    self.say(word, false.into(), &path)?;
                }
            }
            _ if !can_reason => {
                return Err(ApiError::unsupported(
                    path,
                    "the model does not separate reasoning from answers",
                ));
            }
            ("low" | "medium" | "high", _) if mind.knows("reasoning_effort") => {
                self.say("reasoning_effort", effort.clone().into(), &path)?;
                self.thinking = Some(Thinking::Optional);
            }
            (_, Some(word)) if !mind.knows("reasoning_effort") => {
                self.say(word, true.into(), &path)?;
                self.thinking = Some(Thinking::Optional);
            }
            _ if mind.knows("reasoning_effort") => {
                return Err(ApiError::unsupported(
                    path,
                    "the model knows 'none', 'low', 'medium' and 'high'",
                ));
            }
            _ => {
                let why = "the template of the model has no word for it; only 'none' can be kept";
                return Err(ApiError::unsupported(path, why));
            }
        }
        self.effort = Some(effort);
        self.said = path;
        Ok(())
    }

    /// Sets a variable for the template, unless it already has another value.
    fn say(&mut self, word: &str, value: Value, path: &str) -> Result<()> {
        if self.variables.get(word).is_some_and(|other| *other != value) {
            let message = format!("'{path}' and 'chat_template_kwargs.{word}' contradict each other");
            return Err(ApiError::invalid(path, "conflicting_parameters", message));
        }
        self.variables.insert(word.to_owned(), value);
        Ok(())
    }
}
