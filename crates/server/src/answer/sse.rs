//! Answers as a stream of server-sent events.
//!
//! ```text
//! data: {"object": "chat.completion.chunk", …}
//!
//! data: [DONE]
//! ```
//! A [`Protocol`] says what is told about an event. When the client goes away, the stream is dropped, and with it the receiver
//! of the scheduler's events: the answer ends with the next step of the model.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures_util::stream;
use serde_json::Value;

use super::{Answers, noted};
use crate::error::ApiError;

/// After how much silence a comment is sent, so that nobody in between gives up.
const PATIENCE: Duration = Duration::from_secs(15);

/// How an API tells about events.
pub(crate) trait Protocol: Send + 'static {
    /// What comes first.
    fn begin(&mut self, told: &mut Told);

    /// What an event means.
    fn event(&mut self, event: maskwright_runtime::Event, told: &mut Told);

    /// What comes last, if all went well.
    fn end(&mut self, told: &mut Told);

    /// What comes last otherwise.
    fn fail(&mut self, error: &ApiError, told: &mut Told);
}

/// Events that are to be sent.
#[derive(Debug, Default)]
pub(crate) struct Told(VecDeque<Event>);

impl Told {
    /// An event without a name.
    pub(crate) fn data(&mut self, value: &Value) {
        self.0.push_back(Event::default().data(value.to_string()));
    }

    /// An event with one.
    pub(crate) fn named(&mut self, name: &str, value: &Value) {
        self.0.push_back(Event::default().event(name).data(value.to_string()));
    }

    /// The last one of chat and completions.
    pub(crate) fn done(&mut self) {
        self.0.push_back(Event::default().data("[DONE]"));
    }
}

/// Streams answers.
pub(crate) fn respond(answers: Answers, mut protocol: impl Protocol) -> Response {
    let warnings = answers.warnings.clone();
    let mut told = Told::default();
    protocol.begin(&mut told);
    let stream = stream::unfold((Some(answers), protocol, told), |state| async move {
        let (mut answers, mut protocol, mut told) = state;
        loop {
            if let Some(event) = told.0.pop_front() {
                return Some((Ok::<_, Infallible>(event), (answers, protocol, told)));
            }
            match answers.as_mut()?.next().await {
                Some(Ok(event)) => {
                    protocol.event(event, &mut told);
                }
                Some(Err(error)) => {
                    protocol.fail(&error, &mut told);
                    answers = None;
                }
                None => {
                    protocol.end(&mut told);
                    answers = None;
                }
            }
        }
    });
    let response = Sse::new(stream).keep_alive(KeepAlive::new().interval(PATIENCE)).into_response();
    // Whether an answer is squeezed is told by its last event.
    noted(response, &warnings, false)
}
