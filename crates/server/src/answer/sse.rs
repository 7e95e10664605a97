//! Answers as a stream of server-sent events.
//!
//! ```text
//! data: {"object": "chat.completion.chunk", …}
//!
//! data: [DONE]
//! ```
//! A [`Protocol`] decides what is sent for an event. When the client disconnects, the stream is dropped, and with it
//! the receiver of the scheduler's events: the answer ends with the next step of the model.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures_util::stream;
use serde_json::Value;

use super::{Answers, noted};
use crate::error::ApiError;

/// The silence after which a comment is sent, so that proxies do not time out.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// How an API sends events.
pub(crate) trait Protocol: Send + 'static {
    /// Sends the first events.
    fn begin(&mut self, outbox: &mut Outbox);

    /// Sends an event of the scheduler.
    fn event(&mut self, event: maskwright_runtime::Event, outbox: &mut Outbox);

    /// Sends the last events after a success.
    fn end(&mut self, outbox: &mut Outbox);

    /// Sends the last events after an error.
    fn fail(&mut self, error: &ApiError, outbox: &mut Outbox);
}

/// Events to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox(VecDeque<Event>);

impl Outbox {
    /// Adds an event without a name.
    pub(crate) fn data(&mut self, value: &Value) {
        self.0.push_back(Event::default().data(value.to_string()));
    }

    /// Adds an event with a name.
    pub(crate) fn named(&mut self, name: &str, value: &Value) {
        self.0.push_back(Event::default().event(name).data(value.to_string()));
    }

    /// Adds the last event of chat and completions.
    pub(crate) fn done(&mut self) {
        self.0.push_back(Event::default().data("[DONE]"));
    }
}

/// Streams answers.
pub(crate) fn respond(answers: Answers, mut protocol: impl Protocol) -> Response {
    let warnings = answers.warnings.clone();
    let mut outbox = Outbox::default();
    protocol.begin(&mut outbox);
    let stream = stream::unfold((Some(answers), protocol, outbox), |state| async move {
        let (mut answers, mut protocol, mut outbox) = state;
        loop {
            if let Some(event) = outbox.0.pop_front() {
                return Some((Ok::<_, Infallible>(event), (answers, protocol, outbox)));
            }
            match answers.as_mut()?.next().await {
                Some(Ok(event)) => {
                    protocol.event(event, &mut outbox);
                }
                Some(Err(error)) => {
                    protocol.fail(&error, &mut outbox);
                    answers = None;
                }
                None => {
                    protocol.end(&mut outbox);
                    answers = None;
                }
            }
        }
    });
    let response =
        Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)).into_response();
    // Whether an answer is squeezed is reported by its last event.
    noted(response, &warnings, false)
}
