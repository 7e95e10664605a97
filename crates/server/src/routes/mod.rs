//! The endpoints, a file each; `body` reads what is sent to them.

mod body;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod grammar;
pub(crate) mod models;
pub(crate) mod page;
pub(crate) mod responses;
pub(crate) mod status;
pub(crate) mod tokens;

use std::{fmt::Display, sync::Arc};

use axum::{
    Router,
    http::{Method, StatusCode, Uri},
    routing::{get, post},
};

use maskwright::{CancelToken, with_cancel};

use crate::{
    error::{ApiError, Result},
    state::{State, Turn},
};

/// All endpoints. Those of the API are in the second router, which may want a key.
pub(crate) fn all() -> (Router<Arc<State>>, Router<Arc<State>>) {
    let open = Router::new()
        .route("/", get(page::index))
        .route("/static/{*path}", get(page::file))
        .route("/health", get(status::health))
        .route("/metrics", get(status::metrics));
    let api = Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/completions", post(completions::create))
        .route("/v1/responses", post(responses::create))
        .route("/v1/grammar/check", post(grammar::check))
        .route("/v1/explain", post(explain::explain))
        .route("/v1/tokenize", post(tokens::tokenize))
        .route("/v1/detokenize", post(tokens::detokenize));
    (open, api)
}

/// What is not there.
pub(crate) async fn nowhere(method: Method, uri: Uri) -> ApiError {
    let message = format!("there is no {method} {}", uri.path());
    ApiError::other(StatusCode::NOT_FOUND, "invalid_request_error", "unknown_url", message)
}

/// What is there, but by another method.
pub(crate) async fn not_so(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} does not take {method}", uri.path());
    ApiError::other(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", "method_not_supported", message)
}

/// Runs something that takes a while where it disturbs nobody: on a thread of its own, and on few of them at the same time. A thread for
/// each of a thousand requests would take its share of the processor from the compiles and from the model, and keep its memory.
pub(crate) async fn aside<T: Send + 'static>(
    state: &State,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    in_turn(state, work).await.map(|(value, _)| value)
}

/// The same for a request that has more to do before the model can begin: it keeps its turn. Of a thousand requests that come at once the first are then with
/// the model while the last still wait, instead of all of them having been cut into tokens and none compiled.
pub(crate) async fn in_turn<T: Send + 'static>(
    state: &State,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<(T, Turn)> {
    let broken =
        |error: &dyn Display| ApiError::internal(format!("internal error, please report it: {error}"));
    let turn = state.turns.clone().acquire_owned().await.map_err(|error| broken(&error))?;
    // Whoever stops waiting asks the work to end. That may take a moment, so the turn goes along.
    let leash = Leash(CancelToken::new());
    let stop = leash.0.clone();
    let work = move || with_cancel(&stop, work).map(|value| (value, turn));
    let result = tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(broken(&error)));
    drop(leash);
    result
}

/// Whoever drops it asks some work to end.
struct Leash(Arc<CancelToken>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
