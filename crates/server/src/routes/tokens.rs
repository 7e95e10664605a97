//! `/v1/tokenize` and `/v1/detokenize`: convert text to tokens and back.
//!
//! ```text
//! {"text": "Hello"}          → {"tokens": [19556], "count": 1, "texts": ["Hello"], "max_model_len": 8192}
//! {"messages": […]}          → the tokens of the prompt that the chat template makes
//! {"tokens": [19556]}        → {"text": "Hello"}
//! ```

use std::sync::Arc;

use axum::extract::State as Extract;
use maskwright_runtime::text::encode_prompt;
use maskwright_vocab::TokenId;
use serde_json::{Map, Value, json};

use super::{aside, body::Body};
use crate::{
    answer::logprobs::text,
    error::{ApiError, Json, Result},
    request::{messages, words},
    state::State,
};

pub(crate) async fn tokenize(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Json> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    // The field names of vLLM and llama.cpp.
    let mut plain = None;
    for name in ["text", "prompt", "content"] {
        if let Some(text) = body.text(name)?
            && let Some((first, _)) = plain.replace((name, text))
        {
            let message = format!("cannot specify both '{first}' and '{name}'; they mean the same");
            return Err(ApiError::invalid(name, "conflicting_parameters", message));
        }
    }
    let plain = plain.map(|(_, text)| text);
    words::take(&mut body)?;
    body.ignore(&["with_pieces", "add_special"]);
    let messages = body.list("messages")?;
    let has_specials = body.flag("parse_special")?.unwrap_or(false);
    body.finish()?;
    if plain.is_some() && messages.is_some() {
        let message = "cannot specify both 'text' and 'messages'; give one of them";
        return Err(ApiError::invalid("messages", "conflicting_parameters", message));
    }
    let shared = state.clone();
    aside(&shared, move || {
        let engine = &state.engine;
        let tokens = match (plain, messages) {
            (_, Some(list)) => {
                engine.chat(&messages::chat(list)?, None, Map::new(), false, "messages")?.tokens
            }
            (Some(text), None) => {
                let tokens = if has_specials {
                    encode_prompt(engine.tokenizer(), &text)
                } else {
                    engine.tokenizer().encode(&text)
                };
                tokens.map_err(|error| ApiError::value("text", error.to_string()))?
            }
            (None, None) => return Err(ApiError::missing("text")),
        };
        let texts: Vec<String> = tokens.iter().map(|&token| text(token, engine.vocabulary())).collect();
        let ids: Vec<u32> = tokens.iter().map(|token| token.0).collect();
        Ok(Json(json!({
            "tokens": ids, "count": ids.len(), "texts": texts, "max_model_len": engine.context(),
        })))
    })
    .await
}

pub(crate) async fn detokenize(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Json> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let list = body.list("tokens")?.ok_or_else(|| ApiError::missing("tokens"))?;
    body.finish()?;
    let tokens = tokens(&list, "tokens", state.engine.vocabulary().size())?;
    let text = String::from_utf8_lossy(&state.engine.tokenizer().decode(&tokens)).into_owned();
    // vLLM calls it the prompt, llama.cpp the content.
    Ok(Json(json!({"text": text, "prompt": text, "content": text})))
}

/// Reads token ids.
pub(crate) fn tokens(list: &[Value], path: &str, size: usize) -> Result<Vec<TokenId>> {
    let token = |(i, item): (usize, &Value)| {
        let path = format!("{path}[{i}]");
        let id = item.as_u64().ok_or_else(|| ApiError::wrong_type(&path, "the number of a token", item))?;
        match u32::try_from(id) {
            Ok(id) if (id as usize) < size => Ok(TokenId(id)),
            _ => Err(ApiError::value(&path, format!("'{path}' is {id}, but there are {size} tokens"))),
        }
    };
    list.iter().enumerate().map(token).collect()
}
