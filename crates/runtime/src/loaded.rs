//! A model with its tokenizer and its chat template.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use maskwright_tokenizers::{Tokenizer, gguf::Header};
use maskwright_vocab::TokenId;
use serde_json::Value;

#[cfg(feature = "llama-cpp")]
use crate::model::llama_cpp;
use crate::{
    model::{Llama, LoadError, LoadOptions, Model},
    recommended,
    sampler::Sampling,
    scheduler::{Options, Scheduler},
    text::{
        chat::{ChatTemplate, Conversation},
        encode_prompt, shielded,
    },
};

/// A model, its tokenizer and its chat template.
#[derive(Debug)]
pub struct Loaded {
    /// The model.
    pub model: Box<dyn Model>,
    /// Its tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// Its chat template, if it has one.
    pub template: Option<Arc<ChatTemplate>>,
    /// The token that a plain prompt begins with, if any.
    pub first: Option<TokenId>,
    /// The recommended sampling of its files: `generation_config.json`, or `general.sampling` of a GGUF file.
    pub sampling: Sampling,
}

impl Loaded {
    /// Opens a GGUF file, a folder with exactly one, or a folder with `config.json`, safetensors files and a tokenizer.
    pub fn open(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, LoadError> {
        Self::with(path.as_ref(), |path| Ok(Box::new(Llama::load(path, options)?)))
    }

    /// Opens a GGUF file, or a folder with exactly one, and computes the model with llama.cpp. Tokenizer and template
    /// are still ours.
    #[cfg(feature = "llama-cpp")]
    pub fn open_llama_cpp(path: impl AsRef<Path>, options: &llama_cpp::Options) -> Result<Self, LoadError> {
        Self::with(path.as_ref(), |path| Ok(Box::new(llama_cpp::LlamaCpp::load(path, options)?)))
    }

    fn with(
        path: &Path,
        load: impl FnOnce(&Path) -> Result<Box<dyn Model>, LoadError>,
    ) -> Result<Self, LoadError> {
        let path = model_path(path)?;
        let tokenizer = maskwright_tokenizers::load(&path)?;
        let first = if begins_with_bos(&path)? { tokenizer.bos() } else { None };
        let sampling = recommended::sampling(&path)?;
        let model = load(&path)?;
        let (tokens, width) = (tokenizer.vocabulary().size(), model.width());
        if tokens > width {
            return Err(LoadError::malformed(format!(
                "its tokenizer has {tokens} tokens, but the model {width}"
            )));
        }
        let template = tokenizer.chat_template().map(ChatTemplate::new).transpose();
        let template = template.map_err(|error| LoadError::unsupported(error.to_string()))?.map(Arc::new);
        Ok(Self { model, tokenizer: Arc::new(tokenizer), template, first, sampling })
    }

    /// Returns the tokens of a plain prompt.
    pub fn prompt(&self, text: &str) -> Result<Vec<TokenId>, maskwright_tokenizers::Error> {
        let mut tokens: Vec<TokenId> = self.first.into_iter().collect();
        tokens.extend(self.tokenizer.encode(text)?);
        Ok(tokens)
    }

    /// Returns the tokens of a conversation, by the model's template. Names of special tokens in a message are ordinary
    /// text.
    pub fn chat(&self, conversation: &Conversation<'_>) -> Result<Vec<TokenId>, ChatPromptError> {
        let template = self.template.as_ref().ok_or(ChatPromptError::NoTemplate)?;
        let vocabulary = self.tokenizer.vocabulary();
        let name =
            |token: Option<TokenId>| token.and_then(|token| vocabulary.special_name(token)).unwrap_or("");
        let messages = shielded(&self.tokenizer, conversation.messages);
        let tools = conversation.tools.map(|tools| shielded(&self.tokenizer, tools));
        let conversation = Conversation {
            messages: &messages,
            tools: tools.as_ref(),
            bos_token: name(self.tokenizer.bos()),
            eos_token: name(vocabulary.eos().first().copied()),
            ..conversation.clone()
        };
        let text = template.render(&conversation).map_err(ChatPromptError::Template)?;
        encode_prompt(&self.tokenizer, &text).map_err(ChatPromptError::Tokenizer)
    }

    /// Starts a scheduler for the model.
    pub fn schedule(self, options: Options) -> Scheduler {
        Scheduler::start(self.model, self.tokenizer.vocabulary().clone(), options)
    }
}

/// The reason why a conversation cannot be converted to a prompt.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChatPromptError {
    /// The model has no template.
    NoTemplate,
    /// The template fails.
    Template(crate::text::chat::ChatError),
    /// The tokenizer cannot encode the text.
    Tokenizer(maskwright_tokenizers::Error),
}

impl std::fmt::Display for ChatPromptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoTemplate => f.write_str("the model has no chat template; give it a plain prompt"),
            Self::Template(error) => error.fmt(f),
            Self::Tokenizer(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChatPromptError {}

/// Returns the file or folder of a model: a folder without config.json must contain one GGUF file.
fn model_path(path: &Path) -> Result<PathBuf, LoadError> {
    if !path.is_dir() || path.join("config.json").is_file() {
        return Ok(path.to_owned());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(LoadError::io(path))? {
        let file = entry.map_err(LoadError::io(path))?.path();
        if file.extension().is_some_and(|extension| extension == "gguf") {
            found.push(file);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(LoadError::malformed(format!(
            "{} holds neither a config.json nor a .gguf file",
            path.display()
        ))),
        count => Err(LoadError::malformed(format!(
            "{} holds {count} .gguf files; name one of them",
            path.display()
        ))),
    }
}

/// Whether a plain prompt begins with the token for the beginning of a text.
fn begins_with_bos(path: &Path) -> Result<bool, LoadError> {
    if !path.is_dir() {
        let file = fs::File::open(path).map_err(LoadError::io(path))?;
        let small = |key: &str| {
            matches!(key, "tokenizer.ggml.add_bos_token" | "tokenizer.ggml.model" | "tokenizer.ggml.pre")
        };
        let metadata = Header::read(file, small)?.metadata;
        // If the file does not say so, it depends on the kind of tokenizer.
        let by_kind = metadata.text("tokenizer.ggml.model") == Some("llama")
            || metadata.text("tokenizer.ggml.pre") == Some("llama-bpe");
        return Ok(metadata.number("tokenizer.ggml.add_bos_token").map_or(by_kind, |number| number != 0.0));
    }
    let read =
        |name: &str| -> Option<Value> { serde_json::from_slice(&fs::read(path.join(name)).ok()?).ok() };
    if let Some(says) = read("tokenizer_config.json").and_then(|json| json.get("add_bos_token")?.as_bool()) {
        return Ok(says);
    }
    // Others add it in a post-processing step, a template with special tokens before the text.
    let first = read("tokenizer.json").and_then(|json| {
        let steps = json.get("post_processor")?;
        let steps =
            steps.get("processors").and_then(Value::as_array).cloned().unwrap_or_else(|| vec![steps.clone()]);
        steps.iter().find_map(|step| step.pointer("/single/0/SpecialToken").cloned())
    });
    Ok(first.is_some())
}
