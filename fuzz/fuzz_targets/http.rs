//! Bodies of HTTP requests to every endpoint, with a small model that writes something by chance.

#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use maskwright::Compiler;
use maskwright::service::{Service, Settings as Compiling};
use maskwright_runtime::Sampling;
use maskwright_runtime::model::{ByText, chance};
use maskwright_runtime::scheduler::Options;
use maskwright_runtime::text::chat::ChatTemplate;
use maskwright_server::{Engine, Parts, Server, Settings};
use maskwright_tokenizers::{Options as TokenizerOptions, tiktoken};
use maskwright_vocab::TokenId;
use tower::ServiceExt as _;

const PATHS: [&str; 7] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/grammar/check",
    "/v1/explain",
    "/v1/tokenize",
    "/v1/detokenize",
];
/// A text is at most so many tokens, so that no answer takes long.
const CONTEXT: usize = 160;
const END: u32 = 256;
const TEMPLATE: &str = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}";

static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"));

static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    let lines: Vec<String> = (0..=u8::MAX).map(|byte| format!("{} {byte}", base64(byte))).collect();
    let options =
        TokenizerOptions { specials: vec![(TokenId(END), "<end>".into())], ..TokenizerOptions::default() };
    let tokenizer = tiktoken::from_ranks_with(lines.join("\n").as_bytes(), &options).expect("a sound file");
    let tokenizer = Arc::new(tokenizer);
    let compiler = Arc::new(Compiler::new(tokenizer.vocabulary().clone()));
    let parts = Parts {
        name: "fuzzed".into(),
        model: Box::new(ByText::new(END as usize + 1, CONTEXT, write)),
        tokenizer,
        template: Some(Arc::new(ChatTemplate::new(TEMPLATE).expect("a sound template"))),
        first: None,
        format: None,
        sampling: Sampling::default(),
    };
    let compiling = Compiling { timeout: Duration::from_secs(2), memory: 64 << 20, ..Compiling::default() };
    let service = Service::new(compiling).expect("threads");
    let engine = Engine::start(parts, Options::default(), &service, compiler).expect("a known format");
    Server::new(engine, Settings::default()).router()
});

// The first byte chooses the endpoint, the rest is the body. No request is answered by an internal error.
fuzz_target!(|input: &[u8]| {
    let Some((first, body)) = input.split_first() else { return };
    let path = PATHS[usize::from(*first) % PATHS.len()];
    RUNTIME.block_on(async {
        let request = Request::post(path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_vec()))
            .expect("a sound request");
        let response = ROUTER.clone().oneshot(request).await.expect("a router always answers");
        let status = response.status();
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{path} breaks");
        to_bytes(response.into_body(), 16 << 20).await.expect("the answer comes to an end");
    });
});

/// The base64 of one byte.
fn base64(byte: u8) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = [DIGITS[usize::from(byte >> 2)], DIGITS[usize::from((byte & 3) << 4)]];
    format!("{}==", String::from_utf8_lossy(&digits))
}

/// Its next token depends on the text so far, and the end becomes likely soon.
fn write(text: &[TokenId], row: &mut [f32]) {
    chance(text, row);
    if let Some(end) = row.last_mut() {
        *end += text.len() as f32 / 16.0;
    }
}
