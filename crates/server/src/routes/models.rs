//! `/v1/models`: the served model; `/props` and `/version`: the same for clients of llama.cpp and vLLM.

use std::sync::Arc;

use axum::extract::State as Extract;
use maskwright_runtime::Sampling;
use serde_json::{Value, json};

use super::{Name, chat};
use crate::{
    error::{Json, Result},
    state::State,
};

pub(crate) async fn list(Extract(state): Extract<Arc<State>>) -> Json {
    Json(json!({"object": "list", "data": [model(&state)]}))
}

pub(crate) async fn one(Extract(state): Extract<Arc<State>>, Name(id): Name) -> Result<Json> {
    state.engine.check_name(Some(&id))?;
    Ok(Json(model(&state)))
}

/// Returns what llama.cpp reports about a server.
pub(crate) async fn props(Extract(state): Extract<Arc<State>>) -> Json {
    let engine = &state.engine;
    Json(json!({
        "model_alias": engine.name(),
        "chat_template": engine.template().unwrap_or_default(),
        "default_generation_settings": {"n_ctx": engine.context(), "params": params(engine.sampling())},
        "modalities": {"vision": false, "audio": false},
        "build_info": chat::FINGERPRINT,
    }))
}

/// Returns how tokens are sampled unless a request says otherwise.
fn params(sampling: &Sampling) -> Value {
    json!({
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repeat_penalty": sampling.repetition_penalty,
    })
}

pub(crate) async fn version() -> Json {
    Json(json!({"version": env!("CARGO_PKG_VERSION")}))
}

fn model(state: &State) -> Value {
    json!({
        "id": state.engine.name(),
        "object": "model",
        "created": state.since,
        "owned_by": "maskwright",
        "max_model_len": state.engine.context(),
    })
}
