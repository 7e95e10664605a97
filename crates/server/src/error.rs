//! Errors in the format of the `OpenAI` API.
//!
//! ```text
//! HTTP/1.1 400 Bad Request
//! {"error": {"message": "temperature is 9, but must be between 0 and 2",
//!            "type": "invalid_request_error", "param": "temperature", "code": "invalid_value"}}
//! ```
//!
//! `param` is the path of the field, such as `messages[2].content`; `code` is for programs, the message for people.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use maskwright::Category;
use serde_json::{Value, json};

/// The result of a handler.
pub(crate) type Result<T, E = ApiError> = core::result::Result<T, E>;

/// The reason why a request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    /// The number of seconds after which the client may try again.
    pub(crate) retry_after: Option<u32>,
}

impl ApiError {
    /// Creates the error for an invalid field.
    pub(crate) fn invalid(param: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            kind: "invalid_request_error",
            code: Some(code),
            param: Some(param.into()),
            message: message.into(),
            retry_after: None,
        }
    }

    /// Creates the error for a value that is out of range or unknown.
    pub(crate) fn value(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(param, "invalid_value", message)
    }

    /// Creates the error for a field of the wrong JSON type.
    pub(crate) fn wrong_type(param: impl Into<String>, expected: &str, found: &Value) -> Self {
        let param = param.into();
        let message = format!("'{param}' must be {expected}, but is {}", kind_of(found));
        Self::invalid(param, "invalid_type", message)
    }

    /// Creates the error for a missing field.
    pub(crate) fn missing(param: impl Into<String>) -> Self {
        let param = param.into();
        let message = format!("'{param}' is missing");
        Self::invalid(param, "missing_required_parameter", message)
    }

    /// Creates the error for an unknown field.
    pub(crate) fn unknown(param: impl Into<String>) -> Self {
        let param = param.into();
        let message = format!("'{param}' is not a known parameter; remove it, or check its spelling");
        Self::invalid(param, "unknown_parameter", message)
    }

    /// Creates the error for a field that is known elsewhere, but not supported here.
    pub(crate) fn unsupported(param: impl Into<String>, why: &str) -> Self {
        let param = param.into();
        let message = format!("'{param}' is not supported by this server: {why}");
        Self::invalid(param, "unsupported_parameter", message)
    }

    /// Creates the error for a constraint that exceeded a limit during matching. The reason names the limit, the place
    /// and what to change.
    pub(crate) fn constraint_limit(param: &str, reason: impl std::fmt::Display) -> Self {
        Self::invalid(param, "constraint_limit", format!("'{param}': {reason}"))
    }

    /// Creates the error for a refused constraint. Only this function maps the kind of an error to a status. `code` is
    /// for an invalid constraint.
    pub(crate) fn constraint(
        param: &str,
        code: &'static str,
        category: Category,
        reason: impl std::fmt::Display,
    ) -> Self {
        let invalid = |code| Self::invalid(param, code, format!("'{param}': {reason}"));
        match category {
            Category::Invalid | Category::Unsupported => invalid(code),
            Category::Limit => invalid("constraint_too_large"),
            Category::Timeout => invalid("constraint_timeout"),
            Category::Busy => Self::busy(reason.to_string()),
            Category::Closed | Category::Cancelled => Self::stopping(),
            _ => Self { param: Some(param.into()), ..Self::internal(reason.to_string()) },
        }
    }

    /// Creates the error for two constraints in one request.
    pub(crate) fn both(first: &str, second: &str) -> Self {
        let message = format!(
            "cannot specify both '{first}' and '{second}' in the same request; an answer has one constraint"
        );
        Self::invalid(second, "conflicting_parameters", message)
    }

    /// Creates the error for a prompt that is too long for the model.
    pub(crate) fn too_long(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(param, "context_length_exceeded", message)
    }

    /// Creates an error with another status.
    pub(crate) fn other(
        status: StatusCode,
        kind: &'static str,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { status, kind, code: Some(code), param: None, message: message.into(), retry_after: None }
    }

    /// Creates the error for an unknown model.
    pub(crate) fn no_model(model: &str, served: &str) -> Self {
        let message = format!("the model '{model}' is not served here; '{served}' is");
        let error = Self::other(StatusCode::NOT_FOUND, "invalid_request_error", "model_not_found", message);
        Self { param: Some("model".into()), ..error }
    }

    /// Creates the error for an overloaded server.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        let error = Self::other(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "server_busy", message);
        Self { retry_after: Some(1), ..error }
    }

    /// Creates the error for a server that is stopping.
    pub(crate) fn stopping() -> Self {
        let message = "the server is stopping; try again later";
        let error = Self::other(StatusCode::SERVICE_UNAVAILABLE, "server_error", "stopping", message);
        Self { retry_after: Some(5), ..error }
    }

    /// Creates the error for a bug in this program.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::other(StatusCode::INTERNAL_SERVER_ERROR, "server_error", "internal_error", message)
    }

    /// Creates the error for a timeout.
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::other(StatusCode::GATEWAY_TIMEOUT, "server_error", "timeout", message)
    }

    /// Returns the body.
    pub(crate) fn json(&self) -> Value {
        json!({"error": {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.code,
        }})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.json())).into_response();
        response.extensions_mut().insert(Code(self.code.unwrap_or("unknown")));
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The code of an error, for the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Code(pub(crate) &'static str);

/// A JSON body.
#[derive(Debug, Clone)]
pub(crate) struct Json(pub(crate) Value);

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0.to_string()).into_response()
    }
}

/// Describes the type of a JSON value.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal number",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
