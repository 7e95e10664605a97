//! The endpoints, one file each. `body` reads request bodies, and `keys` looks for duplicate keys.

mod body;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod grammar;
mod keys;
pub(crate) mod models;
pub(crate) mod openapi;
pub(crate) mod page;
pub(crate) mod responses;
pub(crate) mod status;
pub(crate) mod tokens;

use std::sync::Arc;

use axum::{
    Router,
    extract::{FromRequestParts, Path},
    http::{Method, StatusCode, Uri, request::Parts},
    routing::{get, post},
};

pub(crate) use crate::turns::{aside, in_turn};
use crate::{error::ApiError, state::State};

/// Returns all endpoints. Those of the API are in the second router, which may require a key.
pub(crate) fn all() -> (Router<Arc<State>>, Router<Arc<State>>) {
    let open = Router::new()
        .route("/", get(page::index))
        .route("/static/{*path}", get(page::file))
        .route("/openapi.json", get(openapi::document))
        .route("/health", get(status::health))
        .route("/metrics", get(status::metrics));
    let api = Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/completions", post(completions::create))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{id}", get(responses::one).delete(responses::delete))
        .route("/v1/grammar/check", post(grammar::check))
        .route("/v1/explain", post(explain::explain))
        .route("/v1/tokenize", post(tokens::tokenize))
        .route("/v1/detokenize", post(tokens::detokenize))
        // The paths of other servers.
        .route("/generate", post(generate::sglang))
        .route("/completion", post(generate::llama_cpp))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route("/props", get(models::props))
        .route("/version", get(models::version));
    (open, api)
}

/// A parameter in a path.
#[derive(Debug)]
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            // Some bytes of it are not UTF-8.
            Err(rejection) => {
                let message = format!("the path names nothing: {}", rejection.body_text());
                Err(ApiError::other(StatusCode::NOT_FOUND, "invalid_request_error", "unknown_url", message))
            }
        }
    }
}

/// Handles an unknown path.
pub(crate) async fn nowhere(method: Method, uri: Uri) -> ApiError {
    let message = format!("there is no {method} {}", uri.path());
    ApiError::other(StatusCode::NOT_FOUND, "invalid_request_error", "unknown_url", message)
}

/// Handles a known path with another method.
pub(crate) async fn not_so(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} does not take {method}", uri.path());
    ApiError::other(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", "method_not_supported", message)
}
