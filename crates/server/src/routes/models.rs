//! `/v1/models`: what is served.

use std::sync::Arc;

use axum::extract::{Path, State as Extract};
use serde_json::{Value, json};

use crate::{
    error::{Json, Result},
    state::State,
};

pub(crate) async fn list(Extract(state): Extract<Arc<State>>) -> Json {
    Json(json!({"object": "list", "data": [model(&state)]}))
}

pub(crate) async fn one(Extract(state): Extract<Arc<State>>, Path(id): Path<String>) -> Result<Json> {
    state.engine.check_name(Some(&id))?;
    Ok(Json(model(&state)))
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
