//! A model that is ready for requests: its tokenizer, its template, its scheduler, and a service for its constraints.

use std::{fmt::Display, sync::Arc, time::Duration};

use maskwright::{
    Category,
    backend::Backend,
    formats::{FormatError, ModelFormat},
    service::{Client, CompiledConstraint, Service},
    statistics::Lookup,
};
use maskwright_runtime::{
    Loaded, Request, Sampling, Scheduler, SubmitError,
    model::Model,
    scheduler::{self, Sink},
    text::{
        MARK,
        chat::{ChatTemplate, Conversation},
        encode_prompt, shielded,
    },
};
use maskwright_tokenizers::Tokenizer;
use maskwright_vocab::{TokenId, Vocabulary};
use serde_json::{Map, Value};

use crate::{
    error::{ApiError, Result},
    request::{Requested, plain_tools, thoughts::Mind},
};

/// The parts of an engine.
pub struct Parts {
    /// The name of the model.
    pub name: String,
    /// The model.
    pub model: Box<dyn Model>,
    /// Its tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// The template for conversations, if it has one.
    pub template: Option<Arc<ChatTemplate>>,
    /// The token that a plain prompt begins with, if any.
    pub first: Option<TokenId>,
    /// The format of its tool calls. If `None`, it is guessed from the template.
    pub format: Option<ModelFormat>,
    /// How tokens are sampled unless a request says otherwise.
    pub sampling: Sampling,
}

impl Parts {
    /// Creates the parts for a loaded model with this name.
    pub fn loaded(loaded: Loaded, name: impl Into<String>) -> Self {
        let Loaded { model, tokenizer, template, first, sampling } = loaded;
        Self { name: name.into(), model, tokenizer, template, first, format: None, sampling }
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A model that is ready for requests.
#[derive(Debug)]
pub struct Engine {
    name: String,
    tokenizer: Arc<Tokenizer>,
    template: Option<Arc<ChatTemplate>>,
    first: Option<TokenId>,
    format: ModelFormat,
    /// Whether the template supports tools.
    knows_tools: bool,
    context: usize,
    sampling: Sampling,
    max_batch: usize,
    /// Whether a constraint may include the end of a prompt.
    can_heal: bool,
    scheduler: Scheduler,
    grammars: Client,
}

impl Engine {
    /// Starts a scheduler for a model, and a client of the service that compiles constraints with a backend for its
    /// vocabulary.
    ///
    /// # Errors
    ///
    /// Fails if there is no format with the guessed name.
    pub fn start(
        parts: Parts,
        scheduling: scheduler::Options,
        service: &Service,
        backend: Arc<dyn Backend>,
    ) -> Result<Self, FormatError> {
        let Parts { name, model, tokenizer, template, first, format, sampling } = parts;
        let source = tokenizer.chat_template().unwrap_or_default();
        let knows_tools = source.contains("tools");
        let format = match format {
            Some(format) => format,
            None => ModelFormat::named(guess_format(source))?,
        };
        let context = model.context();
        let max_batch = scheduling.max_batch;
        let can_heal = backend.name() == "maskwright";
        let scheduler = Scheduler::start(model, tokenizer.vocabulary().clone(), scheduling);
        let grammars = service.client(backend);
        Ok(Self {
            name,
            tokenizer,
            template,
            first,
            format,
            knows_tools,
            context,
            sampling,
            max_batch,
            can_heal,
            scheduler,
            grammars,
        })
    }

    /// Returns the client that compiles constraints.
    pub fn grammars(&self) -> &Client {
        &self.grammars
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    pub(crate) fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.tokenizer.vocabulary()
    }

    /// Returns the format of the model's tool calls.
    pub(crate) fn format(&self) -> &ModelFormat {
        &self.format
    }

    /// Returns the template for conversations.
    pub(crate) fn template(&self) -> Option<&str> {
        self.tokenizer.chat_template()
    }

    /// Returns what is known about the model's reasoning.
    pub(crate) fn mind(&self) -> Mind<'_> {
        Mind { can_reason: self.format.can_reason(), template: self.template.as_deref() }
    }

    /// Returns how tokens are sampled unless a request says otherwise.
    pub(crate) fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    pub(crate) fn context(&self) -> usize {
        self.context
    }

    /// Returns the maximum number of answers that are written at the same time.
    pub(crate) fn max_batch(&self) -> usize {
        self.max_batch
    }

    pub(crate) fn can_heal(&self) -> bool {
        self.can_heal
    }

    pub(crate) fn statistics(&self) -> scheduler::Statistics {
        self.scheduler.statistics()
    }

    /// Prepares for the end of the server: answers whose constraint is still compiled are not waited for.
    pub(crate) fn hurry(&self) {
        self.scheduler.hurry();
    }

    /// Checks that a request is for this model, or names none.
    pub(crate) fn check_name(&self, model: Option<&str>) -> Result<()> {
        match model {
            Some(model) if model != self.name => Err(ApiError::no_model(model, &self.name)),
            _ => Ok(()),
        }
    }

    /// Returns the tokens of a plain prompt.
    pub(crate) fn prompt(&self, text: &str, param: &str) -> Result<Vec<TokenId>> {
        self.check_size(text, param)?;
        let mut tokens: Vec<TokenId> = self.first.into_iter().collect();
        let encoded = self.tokenizer.encode(text);
        tokens.extend(encoded.map_err(|error| ApiError::value(param, error.to_string()))?);
        self.check_length(tokens.len(), param)?;
        Ok(tokens)
    }

    /// Converts a conversation to a prompt that ends where an answer begins; or, if `is_open`, at the end of its last
    /// message, which the model continues.
    pub(crate) fn chat(
        &self,
        messages: &Value,
        tools: Option<&Value>,
        variables: Map<String, Value>,
        is_open: bool,
        param: &str,
    ) -> Result<Prompt> {
        let template = self.template.as_ref().ok_or_else(|| {
            let message = "the model has no chat template; use /v1/completions with a plain prompt";
            ApiError::value(param, message)
        })?;
        // Names of special tokens in a message are ordinary text. Those that we write below are not.
        let messages = shielded(&self.tokenizer, messages);
        let tools = tools.map(|tools| shielded(&self.tokenizer, tools));
        let (mut messages, tools) = if self.knows_tools {
            (messages, tools)
        } else {
            (plain_tools::write(&messages, tools.as_ref()), None)
        };
        if let (true, Some(last)) = (is_open, messages.as_array_mut().and_then(|list| list.last_mut())) {
            last["content"] = format!("{}{MARK}", last["content"].as_str().unwrap_or_default()).into();
        }
        let variables = shielded(&self.tokenizer, &Value::Object(variables));
        let vocabulary = self.vocabulary();
        let name =
            |token: Option<TokenId>| token.and_then(|token| vocabulary.special_name(token)).unwrap_or("");
        let conversation = Conversation {
            bos_token: name(self.tokenizer.bos()),
            eos_token: name(vocabulary.eos().first().copied()),
            tools: tools.as_ref(),
            more: Some(&variables),
            add_generation_prompt: !is_open,
            ..Conversation::new(&messages)
        };
        let mut text =
            template.render(&conversation).map_err(|error| ApiError::value(param, error.to_string()))?;
        if is_open {
            let end = text.rfind(MARK).ok_or_else(|| {
                let why = "the template of the model does not write down the last message as it is";
                ApiError::unsupported("continue_final_message", why)
            })?;
            text.truncate(end);
        }
        self.check_size(&text, param)?;
        let tokens = encode_prompt(&self.tokenizer, &text);
        let tokens = tokens.map_err(|error| ApiError::value(param, error.to_string()))?;
        self.check_length(tokens.len(), param)?;
        Ok(Prompt { tokens, begins_thoughts: self.format.is_begun_by(&text) })
    }

    /// Rejects a text that is longer than the context can hold, before encoding it.
    fn check_size(&self, text: &str, param: &str) -> Result<()> {
        let least = text.len() / self.vocabulary().max_token_bytes().max(1);
        self.check_length(least, param)
    }

    pub(crate) fn check_length(&self, length: usize, param: &str) -> Result<()> {
        if length < self.context {
            return Ok(());
        }
        let message = format!(
            "'{param}' has at least {length} tokens, which leaves no room for an answer in the model's context of {} \
             tokens; shorten it",
            self.context
        );
        Err(ApiError::too_long(param, message))
    }

    /// Requests a constraint and waits for it.
    pub(crate) async fn compile(&self, requested: &Requested) -> Result<Found> {
        let client = self.grammars.with_options(requested.options.clone());
        let ticket = client.request(&requested.constraint);
        let is_new = ticket.lookup() == Lookup::Miss;
        let compiled = ticket.await.map_err(|error| refused(&error, error.category(), requested))?;
        let waited = if is_new { compiled.report().waited } else { Duration::ZERO };
        Ok(Found { compiled, waited, is_new })
    }

    pub(crate) fn submit(&self, request: Request, sink: Box<dyn Sink>) -> Result<()> {
        self.scheduler.submit(request, sink).map_err(|error| unsubmitted(&error))
    }
}

/// A conversation as tokens.
pub(crate) struct Prompt {
    pub(crate) tokens: Vec<TokenId>,
    /// Whether it ends where the model's thoughts begin.
    pub(crate) begins_thoughts: bool,
}

/// Returns the error for a request that the scheduler refused.
pub(crate) fn unsubmitted(error: &SubmitError) -> ApiError {
    match error {
        SubmitError::Invalid { field: field @ ("tries" | "sampling"), problem } => {
            ApiError::value(format!("maskwright.{field}"), problem.clone())
        }
        SubmitError::Invalid { field, problem } => ApiError::value(*field, problem.clone()),
        SubmitError::Busy { .. } => ApiError::busy(error.to_string()),
        SubmitError::Closed => ApiError::stopping(),
        other => ApiError::internal(other.to_string()),
    }
}

/// A compiled constraint.
pub(crate) struct Found {
    pub(crate) compiled: Arc<CompiledConstraint>,
    /// How long it waited for a worker, if it was new.
    pub(crate) waited: Duration,
    pub(crate) is_new: bool,
}

/// Guesses the format of a template: each format has words that no other has.
fn guess_format(template: &str) -> &'static str {
    const SIGNS: [(&str, &str); 12] = [
        ("<|channel|>", "harmony"),
        ("<|tool_calls_section_begin|>", "kimi_k2"),
        ("<|open|>", "kimi_k3"),
        ("<｜DSML｜tool_calls>", "deepseek_v4"),
        ("<｜DSML｜ calls>", "deepseek_v4_1"),
        ("<｜DSML｜", "deepseek_v3_2"),
        ("<｜tool▁calls▁begin｜>", "deepseek_v3_1"),
        ("<minimax:tool_call>", "minimax"),
        ("<arg_key>", "glm"),
        ("[TOOL_CALLS]", "mistral"),
        ("<|python_tag|>", "llama3"),
        ("<function=", "qwen3_coder"),
    ];
    match SIGNS.iter().find(|(sign, _)| template.contains(sign)) {
        Some((_, name)) => name,
        None if template.contains("<think>") => "qwen3",
        None => "hermes",
    }
}

/// Returns the error for a refused constraint, with its place.
pub(crate) fn refused(error: &dyn Display, category: Category, requested: &Requested) -> ApiError {
    let code = match requested.constraint {
        maskwright::Constraint::JsonSchema(_) => "invalid_json_schema",
        maskwright::Constraint::Regex(_) => "invalid_regex",
        maskwright::Constraint::Choice(_) => "invalid_choice",
        maskwright::Constraint::StructuralTag(_) => "invalid_structural_tag",
        _ => "invalid_grammar",
    };
    ApiError::constraint(&requested.param, code, category, error)
}
