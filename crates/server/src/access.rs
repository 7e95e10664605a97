//! Access control for the API, and the log of requests.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{MatchedPath, Request, State as Extract},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use hyper::body::{Frame, SizeHint};
use subtle::{Choice, ConstantTimeEq};
use tracing::Instrument;

use crate::{
    error::{ApiError, Code},
    state::{State, new_id},
};

/// The maximum length of a request id that is taken from a client, in bytes.
const LONGEST_ID: usize = 128;

/// Rejects requests without a known key, if keys are required.
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

/// Rejects requests that use an unknown host name. A foreign web page may have a host name that resolves to this
/// machine; its requests carry that name.
pub(crate) async fn hosts(Extract(state): Extract<Arc<State>>, request: Request, next: Next) -> Response {
    let Some(known) = &state.settings.hosts else { return next.run(request).await };
    let given = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let given = given.or_else(|| request.uri().host()).unwrap_or_default();
    if is_own(given, known) {
        return next.run(request).await;
    }
    let message = "the header 'Host' has a name that is not this server's; use its address, or start it with --allowed-host NAME";
    ApiError::other(StatusCode::FORBIDDEN, "invalid_request_error", "unknown_host", message).into_response()
}

/// Whether a host, with or without a port, is an address, `localhost`, or one of these.
fn is_own(host: &str, known: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let name = name.trim_end_matches('.');
    bare.parse::<std::net::IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || known.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Gives each request an id, which is in all its log lines and in its response, and counts it. Prompts and answers are
/// not logged.
pub(crate) async fn log(Extract(state): Extract<Arc<State>>, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let id = request.headers().get("x-request-id").filter(|id| is_plain(id)).cloned();
    let id = id.or_else(|| HeaderValue::try_from(new_id("req_")).ok());
    let id = id.unwrap_or_else(|| HeaderValue::from_static("req_0"));
    // The route and not the path, because clients can invent any number of paths.
    let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default(), %method, route);
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, time) = (response.status().as_u16(), begin.elapsed());
    state.metrics.request(&route, status);
    let error = response.extensions().get::<Code>().map(|code| code.0);
    span.in_scope(|| tracing::info!(status, error, micros = time.as_micros() as u64, "answered"));
    response.headers_mut().insert("x-request-id", id);
    response.map(|body| Body::new(Timed { body, state, route, begin }))
}

/// A body that records the duration of its request when the last byte is sent, or when the client has disconnected.
struct Timed {
    body: Body,
    state: Arc<State>,
    route: String,
    begin: Instant,
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        self.state.metrics.request_ended(&self.route, self.begin.elapsed());
    }
}

fn is_plain(id: &HeaderValue) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !id.is_empty() && id.len() <= LONGEST_ID && id.as_bytes().iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_server() {
        let known = ["models.example".to_owned()];
        for host in [
            "localhost",
            "LOCALHOST:8000",
            "localhost.:80",
            "127.0.0.1",
            "127.0.0.1:8000",
            "[::1]:8000",
            "[::1]",
            "Models.example:1",
        ] {
            assert!(is_own(host, &known), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8000",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            ":8000",
            "models.example.org",
        ] {
            assert!(!is_own(host, &known), "{host}");
        }
    }
}
