//! Who may use the API, and what is written down about it.

use std::{sync::Arc, time::Instant};

use axum::{
    extract::{MatchedPath, Request, State as Extract},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use subtle::{Choice, ConstantTimeEq};
use tracing::Instrument;

use crate::{
    error::ApiError,
    state::{State, new_id},
};

/// The longest name of a request that is taken over from a client.
const LONGEST_ID: usize = 128;

/// Lets requests pass that carry a key, if keys are wanted.
pub(crate) async fn keys(Extract(state): Extract<Arc<State>>, request: Request, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if state.settings.api_keys.is_empty() || given.is_some_and(|given| is_known(&state, given)) {
        return next.run(request).await;
    }
    let message =
        "an API key is needed; send the header 'Authorization: Bearer KEY' with one that the server knows";
    let error =
        ApiError::other(StatusCode::UNAUTHORIZED, "invalid_request_error", "invalid_api_key", message);
    let mut response = error.into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Compares with every key in a time that does not depend on their content.
fn is_known(state: &State, given: &[u8]) -> bool {
    let (scheme, key) = given.split_at_checked(7).unwrap_or((given, &[]));
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer ");
    let same = state
        .settings
        .api_keys
        .iter()
        .fold(Choice::from(0), |same, known| same | known.as_bytes().ct_eq(key));
    bool::from(same) && is_bearer
}

/// Gives each request a name, which is in all its log lines and in its answer, and counts it. Prompts and answers are not written down.
pub(crate) async fn log(Extract(state): Extract<Arc<State>>, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let id = request.headers().get("x-request-id").filter(|id| is_plain(id)).cloned();
    let id = id.or_else(|| HeaderValue::try_from(new_id("req_")).ok());
    let id = id.unwrap_or_else(|| HeaderValue::from_static("req_0"));
    // The route and not the path: paths are as many as there are strangers.
    let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default(), %method, route);
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, time) = (response.status().as_u16(), begin.elapsed());
    state.metrics.request(&route, status, time);
    span.in_scope(|| tracing::info!(status, micros = time.as_micros() as u64, "answered"));
    response.headers_mut().insert("x-request-id", id);
    response
}

fn is_plain(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !id.is_empty() && id.len() <= LONGEST_ID && id.as_bytes().iter().all(is_plain)
}
