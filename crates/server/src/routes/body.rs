//! Reads the body of a request: checks its size, the time that it takes, and that it is JSON.
//!
//! A body must be declared as `application/json`. This prevents foreign web pages from sending requests from a
//! visitor's browser to a server on the visitor's own machine: before sending such a body, a browser asks the server
//! for permission, which is denied.

use std::sync::Arc;

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, StatusCode, header},
};
use futures_util::StreamExt as _;
use serde_json::Value;

use super::keys;
use crate::{
    error::{ApiError, Result},
    request::Fields,
    state::State,
};

/// A body that is a JSON object.
#[derive(Debug)]
pub(crate) struct Body(pub(crate) Fields);

impl FromRequest<Arc<State>> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<State>) -> Result<Self> {
        if !is_json(request.headers()) {
            return Err(ApiError::other(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "invalid_request_error",
                "unsupported_media_type",
                "the body must be JSON; send the header 'Content-Type: application/json'",
            ));
        }
        if let Some(coding) =
            request.headers().get(header::CONTENT_ENCODING).filter(|coding| *coding != "identity")
        {
            let message = format!(
                "the body is encoded as {:?}, but compressed bodies are not supported; leave 'Content-Encoding' out",
                coding.to_str().unwrap_or("?")
            );
            return Err(ApiError::other(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "invalid_request_error",
                "unsupported_encoding",
                message,
            ));
        }
        let limit = state.settings.max_body;
        let read = read(request.into_body(), limit);
        let bytes = tokio::time::timeout(state.settings.receive_timeout, read).await.map_err(|_| {
            let message = format!(
                "the body did not arrive within {} seconds",
                state.settings.receive_timeout.as_secs()
            );
            ApiError::other(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", "timeout", message)
        })?;
        let bytes = bytes?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| not_json(&error))?;
        if let Some(key) = keys::twice(&bytes) {
            let message =
                format!("the key {key} appears twice in one object of the body; remove one of them");
            return Err(ApiError::other(
                StatusCode::BAD_REQUEST,
                "invalid_request_error",
                "duplicate_key",
                message,
            ));
        }
        Fields::new(value, "").map(Self)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// How much of a body that is too large is read, as a multiple of the limit.
const DRAIN_FACTOR: usize = 8;

/// Reads the bytes of a body. If it is too large, it is still read, up to a point, and dropped: most clients look for a
/// response only after they have sent everything.
async fn read(body: axum::body::Body, limit: usize) -> Result<Vec<u8>> {
    let (mut parts, mut bytes, mut count) = (body.into_data_stream(), Vec::new(), 0_usize);
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| {
            let message = "the body was not received completely";
            ApiError::other(StatusCode::BAD_REQUEST, "invalid_request_error", "incomplete_body", message)
        })?;
        count = count.saturating_add(part.len());
        if count <= limit {
            bytes.extend_from_slice(&part);
        } else if count / DRAIN_FACTOR > limit {
            break;
        } else {
            bytes = Vec::new();
        }
    }
    if count <= limit {
        return Ok(bytes);
    }
    let message = format!("the body has more than {limit} bytes, which is the limit of this server");
    Err(ApiError::other(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", "body_too_large", message))
}

fn not_json(error: &serde_json::Error) -> ApiError {
    let message = format!("the body is not JSON: {error}");
    ApiError::other(StatusCode::BAD_REQUEST, "invalid_request_error", "invalid_json", message)
}
