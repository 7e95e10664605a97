//! A language model behind the `OpenAI` API, whose answers always satisfy their constraint.
//!
//! ```no_run
//! use std::sync::Arc;
//! use maskwright::{Compiler, service::{Service, Settings as Compiling}};
//! use maskwright_runtime::{Loaded, model::LoadOptions, scheduler::Options};
//! use maskwright_server::{Engine, Parts, Server, Settings};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let loaded = Loaded::open("model.gguf", &LoadOptions::default())?;
//! let compiler = Arc::new(Compiler::new(loaded.tokenizer.vocabulary().clone()));
//! let service = Service::new(Compiling::default())?;
//! let engine = Engine::start(Parts::loaded(loaded, "my-model"), Options::default(), &service, compiler)?;
//! let server = Server::new(engine, Settings::default());
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
//! server.serve(listener, async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await?;
//! # Ok(()) }
//! ```
//!
//! # The path of a request
//!
//! ```text
//! bytes ─▶ access: key, name ─▶ request: JSON to checked values ─▶ engine: prompt to tokens, constraint to a guide
//!                                                                         │ scheduler (its own threads)
//!             SSE or JSON ◀─ routes: the shape of an API ◀─ answer: events to text, calls, usage
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`request`] | reads requests; no field is silently ignored |
//! | [`engine`] | the model, its tokenizer, its scheduler, its constraints |
//! | [`answer`] | converts the events of the scheduler to responses |
//! | [`routes`] | the endpoints, one file each |
//! | [`access`] | keys, request ids and log lines |
//! | [`stored`] | responses that a later request can continue from |
//! | [`turns`] | limits the number of threads for slow work |
//! | [`serve`], [`patient`] | connections, and how they end |
//!
//! No step of the model and no compilation runs on a thread that serves connections. An answer without a constraint has no matcher and no mask.

mod access;
mod answer;
mod engine;
mod error;
mod metrics;
mod patient;
mod request;
mod routes;
mod serve;
mod settings;
mod state;
mod stored;
mod turns;

use std::{io, sync::Arc};

use axum::{Router, http::HeaderValue, middleware};
use tokio::net::TcpListener;
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer},
};

pub use engine::{Engine, Parts};
pub use settings::{Finish, Settings};

use crate::{error::ApiError, state::State};

/// A server for one model.
#[derive(Debug, Clone)]
pub struct Server {
    state: Arc<State>,
}

impl Server {
    /// Creates a server for a model.
    pub fn new(engine: Engine, settings: Settings) -> Self {
        Self { state: Arc::new(State::new(engine, settings)) }
    }

    /// Returns all endpoints, for programs with their own connections.
    pub fn router(&self) -> Router {
        let (open, api) = routes::all();
        let api = api.route_layer(middleware::from_fn_with_state(self.state.clone(), access::keys));
        let router = open
            .merge(api)
            .fallback(routes::nowhere)
            .method_not_allowed_fallback(routes::not_so)
            .layer(CatchPanicLayer::custom(panicked))
            .layer(middleware::from_fn_with_state(self.state.clone(), access::hosts))
            .layer(middleware::from_fn_with_state(self.state.clone(), access::log));
        let router = match cors(&self.state.settings.cors_origins) {
            Some(layer) => router.layer(layer),
            None => router,
        };
        router.with_state(self.state.clone())
    }

    /// Serves until `stop` is ready. Answers that are being written are then finished, within
    /// [`Settings::stop_timeout`]; those that wait for a slow constraint end at once.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) -> io::Result<()> {
        let router = self.router();
        let state = self.state.clone();
        let stop = async move {
            stop.await;
            state.engine.hurry();
        };
        serve::serve(router, listener, self.state.settings.clone(), stop).await
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.state.engine
    }
}

/// Handles a handler that panicked. This is a bug, and does not affect other requests.
fn panicked(_panic: Box<dyn std::any::Any + Send>) -> axum::response::Response {
    let error = ApiError::internal("internal error, please report it: a handler panicked");
    axum::response::IntoResponse::into_response(error)
}

/// Configures which web pages may use the API.
fn cors(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origin = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    // "Any" would not include the header with the key.
    let (methods, headers) = (AllowMethods::mirror_request(), AllowHeaders::mirror_request());
    Some(CorsLayer::new().allow_origin(origin).allow_methods(methods).allow_headers(headers))
}
