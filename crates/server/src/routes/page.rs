//! The page at `/`, and its files: the content of the folder `page`, embedded in the program.

use axum::{
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::Name;
use crate::error::ApiError;

/// A file of the page.
struct File {
    path: &'static str,
    content: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The page only contacts this server, only runs its own files, and cannot be framed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn index() -> Response {
    serve("index.html")
}

pub(crate) async fn file(Name(path): Name) -> Response {
    serve(&path)
}

fn serve(path: &str) -> Response {
    let Some(file) = FILES.iter().find(|file| file.path == path) else {
        let message = format!("there is no file {path}");
        return ApiError::other(StatusCode::NOT_FOUND, "invalid_request_error", "unknown_url", message)
            .into_response();
    };
    let headers: [(HeaderName, &str); 5] = [
        (header::CONTENT_TYPE, content_type(path)),
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, file.content).into_response()
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}
