//! Describes how models write tool calls, as data, and turns a description and a request into a structural tag.
//!
//! ```
//! use maskwright::formats::{Choice, ModelFormat, Request, Tool};
//! use maskwright::{stream::{Event, Reader}, tag};
//! use serde_json::json;
//!
//! let format = ModelFormat::named("qwen3")?;
//! let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
//! let request = Request { tools: vec![Tool::function("weather", schema)], choice: Choice::Auto, ..Request::default() };
//! let tree = format.tag(&request)?;
//!
//! // The tree is a constraint …
//! let grammar = tag::lower(&tree, &tag::Options::default())?;
//! # let _ = grammar;
//! // … and reads what was written under it.
//! let mut events = Vec::new();
//! let mut reader = Reader::new(&tree)?;
//! reader.feed("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>", &mut events);
//! assert!(reader.finish(&mut events).is_complete());
//! let done = Event::CallDone { index: 0, name: "weather".into(), arguments: "{\"city\": \"Oslo\"}".into() };
//! assert_eq!(events.last(), Some(&done));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A format is a small JSON file. The built-in ones are part of the crate ([`ModelFormat::names`]);
//! [`ModelFormat::parse`] reads others at run time:
//!
//! ```
//! # use maskwright::formats::ModelFormat;
//! let mine = ModelFormat::parse(r#"{
//!     "name": "mine",
//!     "reasoning": {"begin": "<think>", "end": "</think>"},
//!     "calls": {
//!         "trigger": "<call ",
//!         "forms": [{"begin": "<call tool=\"{name}\">", "arguments": "json", "end": "</call>"}]
//!     }
//! }"#)?;
//! assert_eq!(mine.name(), "mine");
//! # Ok::<(), maskwright::formats::FormatError>(())
//! ```
//!
//! # The fields of a format
//!
//! | field | meaning |
//! |---|---|
//! | `name`, `models` | for people |
//! | `calls.trigger` | the text that begins a call, or a section of calls, in free text. If it contains `{name}`, every tool has its own trigger, and the section begins with it |
//! | `calls.section` | `begin` and `end` of a wrapper around all calls; `before`: the text that precedes it if a call is required |
//! | `calls.separator` | the text between two calls of a section |
//! | `calls.forms` | the ways to write a call: `begin`, which contains `{name}`; `arguments`, the style of `json_schema`; `end`, a text or a list of texts; `id`, the `pattern` of the call's id: either `{id}` precedes `{name}` in `begin`, or the id stands between `begin` and the arguments and is followed by the text `end` |
//! | `reasoning` | `begin` and `end` of the reasoning, and `after`, a text that belongs neither to it nor to the answer |
//! | `text.excludes` | texts that free text does not contain, besides the trigger and the markers of reasoning |
//! | `messages` | for models that write everything in messages: the `separator`, and `begin` and `end` of a `text` message; `preamble`, the same for a message to the user that is followed by more messages |
//! | `blocks` | for models that write a block of text and then a section of calls: `begin` and `end` of the `text`, and the `end` of everything. With `begun`, a model that does not think continues the block that the prompt has begun |

mod request;
mod tree;

use core::fmt;
use std::collections::BTreeMap;

use maskwright_frontend::{json_schema::Strictness, tag};
use serde::Deserialize;
use serde_json::Value;

/// How one family of models writes its tool calls.
///
/// ```
/// use maskwright::formats::ModelFormat;
///
/// assert!(ModelFormat::names().any(|name| name == "hermes"));
/// let format = ModelFormat::named("qwen3")?;
/// assert!(format.can_reason());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct ModelFormat {
    name: String,
    #[serde(default)]
    models: String,
    #[serde(default)]
    text: Text,
    #[serde(default)]
    reasoning: Option<Reasoning>,
    #[serde(default)]
    messages: Option<Messages>,
    #[serde(default)]
    blocks: Option<Blocks>,
    calls: Calls,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    excludes: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Reasoning {
    begin: String,
    end: Ends,
    #[serde(default)]
    after: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Messages {
    separator: String,
    text: Message,
    #[serde(default)]
    preamble: Option<Message>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Blocks {
    text: Message,
    #[serde(default)]
    begun: bool,
    #[serde(default)]
    end: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Message {
    begin: String,
    end: Ends,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Calls {
    #[serde(default)]
    trigger: String,
    #[serde(default)]
    section: Option<Section>,
    #[serde(default)]
    separator: String,
    forms: Vec<Form>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Section {
    #[serde(default)]
    before: String,
    begin: String,
    end: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Form {
    begin: String,
    #[serde(default)]
    arguments: Option<String>,
    #[serde(default)]
    id: Option<Id>,
    end: Ends,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Id {
    pattern: String,
    #[serde(default)]
    end: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
enum Ends {
    One(String),
    Several(Vec<String>),
}

/// A request: the tools of a model, and what it may write.
///
/// ```
/// use maskwright::formats::{Choice, ModelFormat, Request, Thinking, Tool};
/// use serde_json::json;
///
/// let request = Request {
///     tools: vec![Tool::function("now", json!({"type": "object", "properties": {}}))],
///     choice: Choice::Required,
///     one_call: true,
///     thinking: Thinking::Off,
///     ..Request::default()
/// };
/// let tree = ModelFormat::named("qwen3")?.tag(&request)?; // a structural tag: compile it, and read answers with it
/// # let _ = tree;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The tools that the model knows.
    pub tools: Vec<Tool>,
    /// Whether it may, must or must not call them.
    pub choice: Choice,
    /// Whether it may make only one call.
    pub one_call: bool,
    /// Whether it thinks first.
    pub thinking: Thinking,
    /// The format of an answer without calls. By default it may be any text.
    pub answer: Option<tag::Format>,
    /// Whether arguments may be written in any order.
    pub any_order: bool,
}

/// A tool.
///
/// ```
/// use maskwright::formats::{Input, Tool};
///
/// let search = Tool::function("search", serde_json::json!({"type": "object"}));
/// let python = Tool { name: "python".into(), input: Input::Text };
/// assert!(matches!(search.input, Input::Schema(_)) && python.input == Input::Text);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name, as the model writes it.
    pub name: String,
    /// The input that it takes.
    pub input: Input,
}

/// The input of a tool.
///
/// ```
/// use maskwright::formats::{Input, Tool};
///
/// let query = Tool { name: "sql".into(), input: Input::Regex("SELECT [a-z]+ FROM [a-z]+".into()) };
/// assert!(matches!(query.input, Input::Regex(_)));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Arguments that satisfy a JSON Schema.
    Schema(Value),
    /// The same, with a strictness that applies to this tool only.
    SchemaWith(Value, Strictness),
    /// A text that matches a regular expression.
    Regex(String),
    /// A text in the language of a grammar.
    Grammar(tag::Syntax, String),
    /// Any text.
    Text,
}

/// Which tools a model may call.
///
/// ```
/// use maskwright::formats::{Choice, ModelFormat, Request};
///
/// // A call is required, and there is no tool to call.
/// let request = Request { choice: Choice::Required, ..Request::default() };
/// assert!(ModelFormat::named("qwen3").unwrap().tag(&request).is_err());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Any or none.
    #[default]
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one, once.
    Named(String),
    /// Only these: any or none of them.
    Allowed(Vec<String>),
    /// Only these, and at least one of them.
    AllowedRequired(Vec<String>),
}

/// Whether a model thinks before it answers.
///
/// ```
/// use maskwright::formats::{ModelFormat, Request, Thinking};
/// use maskwright::stream::{Event, Reader};
///
/// // The prompt ends with `<think>`.
/// let request = Request { thinking: Thinking::Begun, ..Request::default() };
/// let mut reader = Reader::new(&ModelFormat::named("qwen3")?.tag(&request)?)?;
/// let mut events = Vec::new();
/// reader.feed("Hm.</think>", &mut events);
/// assert_eq!(events[0], Event::Reasoning("Hm.".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Thinking {
    /// It may think; it then writes the begin marker of the reasoning itself.
    #[default]
    Optional,
    /// It does not think.
    Off,
    /// It must think.
    Required,
    /// The prompt ends inside the reasoning.
    Begun,
}

/// The reason why a format or a request cannot be turned into a structural tag.
///
/// ```
/// use maskwright::formats::{FormatError, ModelFormat};
///
/// assert!(matches!(ModelFormat::named("abacus"), Err(FormatError::Unknown { .. })));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// There is no format with this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// The description of a format is invalid.
    Malformed {
        /// What is wrong, and where.
        message: String,
    },
    /// A request in JSON is invalid.
    Request {
        /// What is wrong, and where.
        message: String,
    },
    /// The request names a tool that does not exist, or that no model could call.
    Tool {
        /// The name of the tool.
        name: String,
        /// What is wrong with it.
        message: String,
    },
}

impl ModelFormat {
    /// Returns the names of the formats that are part of this crate.
    pub fn names() -> impl Iterator<Item = &'static str> {
        known().into_keys()
    }

    /// Returns the built-in format with this name.
    pub fn named(name: &str) -> Result<Self, FormatError> {
        match known().get(name) {
            Some(text) => Self::parse(text),
            None => Err(FormatError::Unknown { name: name.into() }),
        }
    }

    /// Parses the description of a format.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let malformed = |message: String| FormatError::Malformed { message };
        let format: Self = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        format.check().map_err(malformed)?;
        Ok(format)
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Describes which models use this format, for people.
    pub fn models(&self) -> &str {
        &self.models
    }

    /// Whether it can distinguish reasoning from answers.
    pub fn can_reason(&self) -> bool {
        self.reasoning.is_some()
    }

    /// Returns the markers around reasoning: the one that begins it, and those that may end it. Returns `None` if
    /// markers alone do not identify it: the format has no reasoning, or puts everything in messages or blocks.
    ///
    /// ```
    /// use maskwright::formats::ModelFormat;
    ///
    /// let qwen = ModelFormat::named("qwen3")?;
    /// assert_eq!(qwen.reasoning_markers(), Some(("<think>", &["</think>".to_owned()][..])));
    /// assert_eq!(ModelFormat::named("harmony")?.reasoning_markers(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reasoning_markers(&self) -> Option<(&str, &[String])> {
        if self.messages.is_some() || self.blocks.is_some() {
            return None;
        }
        self.reasoning.as_ref().map(|reasoning| (&*reasoning.begin, reasoning.end.list()))
    }

    /// Checks whether a prompt ends with the beginning of reasoning, so that the model continues inside it
    /// ([`Thinking::Begun`]).
    ///
    /// ```
    /// use maskwright::formats::ModelFormat;
    ///
    /// let format = ModelFormat::named("qwen3")?;
    /// assert!(format.is_begun_by("<|im_start|>assistant\n<think>\n"));
    /// assert!(!format.is_begun_by("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_begun_by(&self, prompt: &str) -> bool {
        let begins = |reasoning: &Reasoning| prompt.trim_end().ends_with(reasoning.begin.trim_end());
        self.reasoning
            .as_ref()
            .is_some_and(|reasoning| !reasoning.begin.trim().is_empty() && begins(reasoning))
    }

    /// Returns a structural tag for everything that a model may write.
    pub fn tag(&self, request: &Request) -> Result<tag::Format, FormatError> {
        tree::tree(self, request)
    }

    fn check(&self) -> Result<(), String> {
        let calls = &self.calls;
        if calls.forms.is_empty() {
            return Err("`calls.forms` is empty; describe at least one way to write a call".into());
        }
        for form in &calls.forms {
            if form.begin.matches("{name}").count() != 1 {
                return Err(format!(
                    "the begin {:?} must contain {{name}} once: that is where the tool is named",
                    form.begin
                ));
            }
            let parts: Vec<&str> = form.begin.split("{id}").collect();
            let is_in_front = parts.len() == 2 && parts[1].contains("{name}");
            match &form.id {
                _ if parts.len() > 2 || parts.len() == 2 && !is_in_front => {
                    return Err(format!(
                        "the begin {:?} may contain {{id}} once, before {{name}}",
                        form.begin
                    ));
                }
                None if is_in_front => {
                    return Err(format!(
                        "the begin {:?} has an {{id}}; say what it looks like as `id.pattern`",
                        form.begin
                    ));
                }
                Some(id) if is_in_front && !id.end.is_empty() => {
                    return Err(
                        "`id.end` is for an id after the begin; after {id} the begin itself says what follows"
                            .into(),
                    );
                }
                Some(_) if is_in_front && (parts[0].is_empty() || parts[1].starts_with("{name}")) => {
                    return Err(format!("the begin {:?} must have text before and after {{id}}", form.begin));
                }
                _ => {}
            }
            if let Some(style) = &form.arguments
                && tag::Style::of_name(style).is_none()
            {
                let names = tag::Style::ALL.map(tag::Style::name).join(", ");
                return Err(format!("there is no style {style:?} of arguments; the styles are {names}"));
            }
        }
        if self.messages.is_some() && self.blocks.is_some() {
            return Err("a model writes `messages` or `blocks`, but not both; leave one of them out".into());
        }
        if self.blocks.is_some() && calls.section.is_none() {
            return Err("after `blocks` the calls are in a section; describe it as `calls.section`".into());
        }
        if self.messages.is_some() || self.blocks.is_some() {
            return Ok(());
        }
        let begin = calls.section.as_ref().map_or(&*calls.forms[0].begin, |section| &section.begin);
        let before = |form: &Form| {
            let named = form.begin.split("{name}").next().unwrap_or_default();
            named.split("{id}").next().unwrap_or_default().to_owned()
        };
        let fits = match &calls.section {
            Some(section) if calls.has_trigger_for_each() => {
                let form = &calls.forms[0].begin;
                calls.forms.len() == 1
                    && calls.forms[0].id.is_none()
                    && format!("{}{form}", section.begin).starts_with(&calls.trigger)
            }
            Some(section) => section.begin.starts_with(&calls.trigger),
            None if calls.has_trigger_for_each() => false,
            None => calls.forms.iter().all(|form| before(form).starts_with(&calls.trigger)),
        };
        if calls.trigger.is_empty() || !fits {
            return Err(format!(
                "`calls.trigger` is {:?}, but what it triggers begins with {begin:?}; write the beginning of that, up to the name at most",
                calls.trigger
            ));
        }
        Ok(())
    }
}

impl Calls {
    /// Whether the trigger contains the tool name, so that every tool has its own.
    fn has_trigger_for_each(&self) -> bool {
        self.trigger.contains("{name}")
    }
}

impl Tool {
    /// Creates a function whose arguments satisfy a schema.
    pub fn function(name: impl Into<String>, schema: Value) -> Self {
        Self { name: name.into(), input: Input::Schema(schema) }
    }
}

impl Ends {
    fn list(&self) -> &[String] {
        match self {
            Self::One(end) => core::slice::from_ref(end),
            Self::Several(ends) => ends,
        }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => {
                let names: Vec<&str> = ModelFormat::names().collect();
                write!(f, "there is no format {name:?}; there are {}", names.join(", "))
            }
            Self::Malformed { message } => write!(f, "the description of the format is wrong: {message}"),
            Self::Request { message } => write!(f, "the request is wrong: {message}"),
            Self::Tool { name, message } => write!(f, "tool {name:?}: {message}"),
        }
    }
}

impl core::error::Error for FormatError {}

/// Returns the descriptions that are part of the crate, by name.
fn known() -> BTreeMap<&'static str, &'static str> {
    macro_rules! known {
        ($($name:literal),*) => {
            BTreeMap::from([$(($name, include_str!(concat!("../../formats/", $name, ".json")))),*])
        };
    }
    known![
        "deepseek_r1",
        "deepseek_v3_1",
        "deepseek_v3_2",
        "deepseek_v4",
        "deepseek_v4_1",
        "cohere",
        "cohere_xml",
        "exaone4",
        "gemma4",
        "glm",
        "granite3",
        "granite4",
        "harmony",
        "hermes",
        "hunyuan",
        "internlm2",
        "json",
        "kimi_k2",
        "kimi_k3",
        "llama3",
        "longcat",
        "mimo",
        "minimax",
        "minimax_m3",
        "mistral",
        "mistral_v3",
        "olmo3",
        "phi4_mini",
        "pythonic",
        "qwen3",
        "qwen3_coder",
        "seed_oss",
        "step3"
    ]
}
