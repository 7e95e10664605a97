//! `/health` and `/metrics`: the state of the server.

use std::sync::Arc;

use axum::{
    extract::State as Extract,
    http::header,
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::{error::Json, metrics, state::State};

pub(crate) async fn health(Extract(state): Extract<Arc<State>>) -> Json {
    let statistics = state.engine.statistics();
    Json(json!({
        "status": "ok",
        "model": state.engine.name(),
        "waiting": statistics.waiting,
        "running": statistics.running,
    }))
}

pub(crate) async fn metrics(Extract(state): Extract<Arc<State>>) -> Response {
    let page = metrics::page(&state.engine, &state.metrics);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response()
}
