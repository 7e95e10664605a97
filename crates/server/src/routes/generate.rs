//! `/generate` of `SGLang`, and `/completion` of llama.cpp: continue a plain text.
//!
//! ```text
//! {"text": "1, 2,", "sampling_params": {"max_new_tokens": 8, "regex": "[0-9, ]+"}}  → {"text": " 3, 4", "meta_info": {…}}
//! {"prompt": "1, 2,", "n_predict": 8, "grammar": "root ::= [0-9, ]+"}               → {"content": " 3, 4", "stop": true, …}
//! ```
//! Constraints, sampling and errors are the same as for all endpoints; only the format of a response differs.

use std::sync::Arc;

use axum::{
    extract::State as Extract,
    response::{IntoResponse, Response},
};
use maskwright_runtime::{Event, Reason};
use serde_json::{Value, json};

use super::{
    body::Body,
    chat,
    completions::{is_text, prompts},
    in_turn,
};
use crate::{
    answer::{
        Finishing, Gathered, Notes, Order, Part, noted,
        sse::{self, Outbox, Protocol},
    },
    error::{ApiError, Json, Result},
    request::{
        Fields, Requested,
        extras::Extras,
        requested::{self, Dialect},
        sampling::{self, Choosing},
        words,
    },
    state::{State, new_id},
};

/// The default token limit of an answer, as in `SGLang`.
const MAX_TOKENS: usize = 128;

/// The server whose notation is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    Sglang,
    LlamaCpp,
}

/// A request.
struct Asked {
    face: Face,
    prompt: Value,
    /// Whether there are several prompts, so that the response is a list.
    is_list: bool,
    choosing: Choosing,
    requested: Option<Requested>,
    extras: Extras,
    is_streamed: bool,
    warnings: Vec<String>,
}

pub(crate) async fn sglang(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Response> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let prompt = match (body.take("text"), body.take("input_ids")) {
        (Some(_), Some(_)) => {
            let message = "cannot specify both 'text' and 'input_ids'; give one of them";
            return Err(ApiError::invalid("input_ids", "conflicting_parameters", message));
        }
        (Some(text), None) => text,
        (None, Some(tokens)) => tokens,
        (None, None) => return Err(ApiError::missing("text")),
    };
    let mut params =
        body.object("sampling_params")?.map_or_else(|| Fields::new(json!({}), "sampling_params"), Ok)?;
    let format = params.object("response_format")?;
    let settings = &state.settings;
    let (requested, extras) =
        requested::take_format(&mut body, format, Some(&mut params), Dialect::Common, settings)?;
    let mut choosing = sampling::take(&mut params, &["max_new_tokens"], state.engine.sampling())?;
    choosing.max_tokens.get_or_insert(MAX_TOKENS);
    let is_streamed = body.flag("stream")?.unwrap_or(false);
    let off = [json!(false)];
    body.refuse("return_logprob", &off, "use /v1/completions with 'logprobs'")?;
    body.refuse("return_hidden_states", &off, "hidden states are not returned")?;
    body.refuse("top_logprobs_num", &[json!(0)], "use /v1/completions with 'logprobs'")?;
    let mut names = words::take(&mut body)?;
    names.extend(words::take(&mut params)?);
    params.finish()?;
    body.finish()?;
    let warnings = chat::ignored(names);
    let is_list = is_list(&prompt);
    let face = Face::Sglang;
    answer(state, Asked { face, prompt, is_list, choosing, requested, extras, is_streamed, warnings }).await
}

pub(crate) async fn llama_cpp(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Response> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let prompt = body.take("prompt").ok_or_else(|| ApiError::missing("prompt"))?;
    let format = body.object("response_format")?;
    let settings = &state.settings;
    let (requested, extras) = requested::take_format(&mut body, format, None, Dialect::LlamaCpp, settings)?;
    let choosing = sampling::take(&mut body, &["max_tokens"], state.engine.sampling())?;
    let is_streamed = body.flag("stream")?.unwrap_or(false);
    let warnings = chat::ignored(words::take(&mut body)?);
    body.finish()?;
    let is_list = is_list(&prompt);
    let face = Face::LlamaCpp;
    answer(state, Asked { face, prompt, is_list, choosing, requested, extras, is_streamed, warnings }).await
}

/// Whether these are several prompts, and not the tokens of one.
fn is_list(prompt: &Value) -> bool {
    prompt.as_array().and_then(|items| items.first()).is_some_and(|first| !first.is_number())
}

async fn answer(state: Arc<State>, asked: Asked) -> Result<Response> {
    let Asked { face, prompt, is_list, choosing, requested, extras, is_streamed, warnings } = asked;
    Requested::refuse_report(requested.as_ref())?;
    let finishing = Finishing::of(&state, &extras)?;
    let shared = state.clone();
    let is_inside = is_text(&prompt);
    let (prompts, turn) = in_turn(&state, move || prompts(&shared, prompt)).await?;
    let is_list = is_list || choosing.answers > 1;
    let has_stops = !choosing.stop.is_empty() || !choosing.stop_tokens.is_empty();
    let decoding = extras.decoding.clone();
    let order = Order { prompts, choosing, requested, finishing, warnings, decoding, is_inside };
    let mut answers = order.start(&state, turn).await?;
    let mut plain = Plain {
        face,
        is_list,
        has_stops,
        id: new_id("gen-"),
        answers: (0..answers.count).map(|_| Gathered::default()).collect(),
        notes: answers.notes.clone(),
        state,
    };
    if is_streamed {
        return Ok(sse::respond(answers, plain));
    }
    while let Some(event) = answers.next().await {
        plain.take(event?);
    }
    let is_squeezed = plain.answers.iter().any(|answer| answer.usage().is_squeezed);
    Ok(noted(Json(plain.whole()).into_response(), &answers.warnings, is_squeezed))
}

/// Answers on their way to a client.
struct Plain {
    state: Arc<State>,
    face: Face,
    is_list: bool,
    /// Whether a stop string or stop token, and not only the model, may have ended an answer.
    has_stops: bool,
    id: String,
    answers: Vec<Gathered>,
    notes: Notes,
}

impl Plain {
    /// Processes an event. Returns the index of the answer, and the text that was added.
    fn take(&mut self, event: Event) -> Option<(usize, String)> {
        let answer = self.answers.get_mut(event.answer)?;
        let parts = answer.take(event.what).into_iter();
        // Plain texts are not parsed.
        let text = parts.filter_map(|part| if let Part::Text(text) = part { Some(text) } else { None });
        Some((event.answer, text.collect()))
    }

    fn whole(&self) -> Value {
        if !self.is_list {
            return self.one(0, None);
        }
        (0..self.answers.len()).map(|index| self.one(index, None)).collect()
    }

    /// Returns an answer so far. `delta` is the text that was added, unless the whole answer must be returned.
    fn one(&self, index: usize, delta: Option<&str>) -> Value {
        let Some(answer) = self.answers.get(index) else { return Value::Null };
        let usage = answer.usage();
        let mut body = match self.face {
            Face::Sglang => {
                let finish = match answer.end {
                    None => Value::Null,
                    Some((Reason::Length, _)) => json!({"type": "length", "length": usage.answer_tokens}),
                    Some((Reason::Stop, _)) => json!({"type": "stop"}),
                };
                json!({"text": answer.text, "index": index, "meta_info": {
                    "id": self.id, "finish_reason": finish, "prompt_tokens": usage.prompt_tokens,
                    "completion_tokens": answer.tokens.len(), "cached_tokens": usage.reused_tokens,
                }})
            }
            Face::LlamaCpp => {
                let mut body = json!({
                    "index": index, "content": delta.unwrap_or(&answer.text), "stop": answer.end.is_some(),
                });
                if let Some((reason, _)) = answer.end {
                    body["model"] = self.state.engine.name().into();
                    body["tokens_predicted"] = usage.answer_tokens.into();
                    body["tokens_evaluated"] = usage.prompt_tokens.into();
                    body["tokens_cached"] = usage.reused_tokens.into();
                    body["truncated"] = false.into();
                    // With stop strings it is unknown what ended the answer.
                    match reason {
                        Reason::Length => body["stop_type"] = "limit".into(),
                        Reason::Stop if !self.has_stops => body["stop_type"] = "eos".into(),
                        Reason::Stop => {}
                    }
                }
                body
            }
        };
        if usage.is_squeezed {
            body["maskwright"]["squeezed"] = true.into();
        }
        if answer.end.is_some() {
            self.notes.tell_one(&mut body, index, answer);
        }
        body
    }
}

impl Protocol for Plain {
    fn begin(&mut self, _outbox: &mut Outbox) {}

    fn event(&mut self, event: Event, outbox: &mut Outbox) {
        let Some((index, text)) = self.take(event) else { return };
        let is_over = self.answers.get(index).is_some_and(|answer| answer.end.is_some());
        if !text.is_empty() || is_over {
            outbox.data(&self.one(index, Some(&text)));
        }
    }

    fn end(&mut self, outbox: &mut Outbox) {
        if self.face == Face::Sglang {
            outbox.done();
        }
    }

    fn fail(&mut self, error: &ApiError, outbox: &mut Outbox) {
        outbox.data(&error.json());
    }
}
