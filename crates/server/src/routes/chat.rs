//! `/v1/chat/completions`: continues a conversation.

use std::{mem, sync::Arc};

use axum::{
    extract::State as Extract,
    response::{IntoResponse, Response},
};
use maskwright::formats::Thinking;
use maskwright_runtime::Event;
use serde_json::{Value, json};

use super::{body::Body, in_turn};
use crate::{
    answer::{
        Compile, Conversation, Finishing, Gathered, Notes, Part,
        gather::{Call, timings, usage},
        logprobs, noted,
        sse::{self, Outbox, Protocol},
    },
    error::{ApiError, Json, Result},
    request::{
        Fields,
        extras::Extras,
        messages, requested,
        sampling::{self, Choosing},
        thoughts::Thoughts,
        tools::{self, Api, Toolbox},
        words,
    },
    state::{State, new_id, now},
};

/// A request without its prompt.
struct Asked {
    choosing: Choosing,
    requested: Option<requested::Requested>,
    toolbox: Option<Toolbox>,
    thoughts: Thoughts,
    extras: Extras,
    /// Whether the last message is the beginning of the answer.
    is_open: bool,
    is_streamed: bool,
    has_usage: bool,
    warnings: Vec<String>,
}

pub(crate) async fn create(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Response> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let list = body.list("messages")?.ok_or_else(|| ApiError::missing("messages"))?;
    let mut asked = read(&mut body, &state)?;
    body.finish()?;
    let finishing = Finishing::of(&state, &asked.extras)?;
    let shared = state.clone();
    let described = asked.toolbox.as_ref().map(|toolbox| toolbox.described.clone());
    let variables = mem::take(&mut asked.thoughts.variables);
    let is_open = asked.is_open;
    let work = move || {
        let messages = messages::chat(list)?;
        if is_open {
            messages::check_open(&messages)?;
        }
        shared.engine.chat(&messages, described.as_ref(), variables, is_open, "messages")
    };
    let (prompt, turn) = in_turn(&state, work).await?;
    let wants_logprobs = asked.choosing.sampling.logprobs.is_some();
    let conversation = Conversation {
        choosing: asked.choosing,
        requested: asked.requested,
        finishing,
        toolbox: asked.toolbox.as_ref(),
        thoughts: &asked.thoughts,
        extras: &asked.extras,
        warnings: asked.warnings,
        is_open,
    };
    let (mut answers, reading) = conversation.start(&state, prompt, turn).await?;
    let chat = Chat {
        id: new_id("chatcmpl-"),
        created: now(),
        answers: (0..answers.count).map(|_| Gathered::read_by(reading.clone())).collect(),
        compile: answers.compile,
        notes: answers.notes.clone(),
        wants_logprobs,
        has_usage: asked.has_usage,
        extras: asked.extras,
        state,
    };
    if asked.is_streamed {
        return Ok(sse::respond(answers, chat));
    }
    let mut chat = chat;
    while let Some(event) = answers.next().await {
        chat.take(event?);
    }
    Ok(noted(Json(chat.whole()).into_response(), &answers.warnings, chat.is_squeezed()))
}

fn read(body: &mut Fields, state: &State) -> Result<Asked> {
    let (requested, extras) = requested::take(body, &state.settings)?;
    let lengths = ["max_completion_tokens", "max_tokens"];
    let mut choosing = sampling::take(body, &lengths, state.engine.sampling())?;
    choosing.sampling.logprobs = logprobs_wanted(body)?;
    let (is_streamed, has_usage) = sampling::take_stream(body)?;
    let toolbox = tools::take(body, Api::Chat)?;
    let mut thoughts = Thoughts::take(body, &state.engine.mind())?;
    common(body)?;
    let is_open = body.flag("continue_final_message")?.unwrap_or(false);
    if is_open {
        check_open(body, toolbox.as_ref(), &thoughts, &extras)?;
    }
    let mut warnings = ignored(words::take(body)?);
    warnings.append(&mut thoughts.warnings);
    body.refuse("modalities", &[json!(["text"])], "the model writes text only")?;
    body.refuse("audio", &[], "the model writes text only")?;
    body.refuse("prediction", &[], "predicted outputs are not used")?;
    body.refuse("web_search_options", &[], "the server searches nothing")?;
    body.refuse("functions", &[], "functions have become tools; use 'tools'")?;
    body.refuse("function_call", &[json!("none")], "functions have become tools; use 'tool_choice'")?;
    Ok(Asked { choosing, requested, toolbox, thoughts, extras, is_open, is_streamed, has_usage, warnings })
}

/// Checks a request whose answer has begun: the rest is text, and nothing can precede it.
fn check_open(
    body: &mut Fields,
    toolbox: Option<&Toolbox>,
    thoughts: &Thoughts,
    extras: &Extras,
) -> Result<()> {
    let conflict = |param: &str, why: &str| {
        let message = format!("'{param}' and 'continue_final_message': {why}");
        Err(ApiError::invalid(param, "conflicting_parameters", message))
    };
    if body.flag("add_generation_prompt")? == Some(true) {
        return conflict("add_generation_prompt", "a turn either begins or continues; leave one of them out");
    }
    if toolbox.is_some_and(|toolbox| !toolbox.is_closed()) {
        let why = "an answer that continues a message calls no tools; leave one of them out, or give 'tool_choice': 'none'";
        return conflict("tools", why);
    }
    if thoughts.thinking == Some(Thinking::Optional) {
        return conflict("reasoning_effort", "the answer has begun, so there is no thinking before it");
    }
    if extras.decoding.draft.is_some() {
        return conflict("maskwright.draft", "the answer has begun, so there is no draft before it");
    }
    Ok(())
}

/// Returns warnings about ignored fields.
pub(crate) fn ignored(names: Vec<String>) -> Vec<String> {
    names.into_iter().map(|name| format!("'{name}' is ignored: it changes nothing about an answer")).collect()
}

/// Handles fields that several APIs have, which have no effect here or whose behavior is fixed.
pub(crate) fn common(body: &mut Fields) -> Result<()> {
    body.ignore(&["user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"]);
    body.refuse("store", &[json!(false)], "nothing is stored")?;
    body.refuse("service_tier", &[json!("auto"), json!("default")], "there is one tier")?;
    body.refuse("verbosity", &[json!("medium")], "the model has no such setting")
}

fn logprobs_wanted(body: &mut Fields) -> Result<Option<u8>> {
    let is_wanted = body.flag("logprobs")?.unwrap_or(false);
    let top = body.whole("top_logprobs", 0, 20)?;
    if top.is_some() && !is_wanted {
        let message = "'top_logprobs' is only allowed when 'logprobs' is true";
        return Err(ApiError::value("top_logprobs", message));
    }
    Ok(is_wanted.then(|| u8::try_from(top.unwrap_or(0)).unwrap_or(0)))
}

/// Answers on their way to a client.
struct Chat {
    state: Arc<State>,
    id: String,
    created: u64,
    answers: Vec<Gathered>,
    compile: Compile,
    notes: Notes,
    wants_logprobs: bool,
    has_usage: bool,
    extras: Extras,
}

impl Chat {
    /// Processes an event. Returns the index of the answer, the parts that were added, and how many of its tokens were
    /// known before.
    fn take(&mut self, event: Event) -> Option<(usize, Vec<Part>, usize)> {
        let answer = self.answers.get_mut(event.answer)?;
        let known = answer.tokens.len();
        Some((event.answer, answer.take(event.what), known))
    }

    /// Returns all answers in one piece.
    fn whole(&self) -> Value {
        let vocabulary = self.state.engine.vocabulary();
        let choice = |(index, answer): (usize, &Gathered)| {
            let logprobs = self
                .wants_logprobs
                .then(|| json!({"content": logprobs::chat(&answer.tokens, vocabulary), "refusal": null}));
            json!({
                "index": index,
                "message": message(answer),
                "logprobs": logprobs,
                "finish_reason": answer.finish_reason(),
            })
        };
        let choices: Vec<Value> = self.answers.iter().enumerate().map(choice).collect();
        let mut body = self.head("chat.completion");
        body["choices"] = choices.into();
        body["usage"] = usage(&self.answers, self.answers.len());
        if self.extras.tokens {
            let mut details = self.timings();
            let tokens = |answer: &Gathered| logprobs::details(&answer.tokens, vocabulary);
            details["tokens"] = self.answers.iter().map(tokens).collect();
            body["maskwright"] = details;
        }
        if self.is_squeezed() {
            body["maskwright"]["squeezed"] = true.into();
        }
        self.notes.tell(&mut body, &self.answers);
        body
    }

    /// Whether one of the answers is squeezed: tokens were forbidden so that it could end in time.
    fn is_squeezed(&self) -> bool {
        self.answers.iter().any(|answer| answer.usage().is_squeezed)
    }

    fn head(&self, object: &str) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.state.engine.name(),
            "system_fingerprint": FINGERPRINT,
        })
    }

    fn chunk(&self, index: usize, delta: &Value, known: usize, finish: Option<&str>) -> Value {
        let vocabulary = self.state.engine.vocabulary();
        let tokens =
            self.answers.get(index).and_then(|answer| answer.tokens.get(known..)).unwrap_or_default();
        let logprobs = (self.wants_logprobs && !tokens.is_empty())
            .then(|| json!({"content": logprobs::chat(tokens, vocabulary), "refusal": null}));
        let mut chunk = self.head("chat.completion.chunk");
        chunk["choices"] =
            json!([{"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}]);
        if self.has_usage {
            chunk["usage"] = Value::Null;
        }
        if self.extras.tokens && !tokens.is_empty() {
            chunk["maskwright"] = json!({"tokens": logprobs::details(tokens, vocabulary)});
        }
        chunk
    }

    /// Returns what a part adds to the message.
    fn delta(&self, index: usize, part: Part) -> Option<Value> {
        let call = |number: usize| self.answers.get(index)?.calls.get(number);
        Some(match part {
            Part::Text(text) => json!({"content": text}),
            Part::Reasoning(text) => json!({"reasoning_content": text}),
            Part::Begun(number) => {
                let mut begun = call_json(&Call { arguments: String::new(), ..call(number)?.clone() });
                begun["index"] = number.into();
                json!({"tool_calls": [begun]})
            }
            Part::Arguments(number, delta) if call(number)?.is_custom => {
                json!({"tool_calls": [{"index": number, "custom": {"input": delta}}]})
            }
            Part::Arguments(number, delta) => {
                json!({"tool_calls": [{"index": number, "function": {"arguments": delta}}]})
            }
            Part::Done(_) => return None,
        })
    }

    fn timings(&self) -> Value {
        timings(&self.answers.first().map(Gathered::usage).unwrap_or_default(), self.compile)
    }
}

impl Protocol for Chat {
    fn begin(&mut self, outbox: &mut Outbox) {
        for index in 0..self.answers.len() {
            let delta = json!({"role": "assistant", "content": "", "refusal": null});
            outbox.data(&self.chunk(index, &delta, usize::MAX, None));
        }
    }

    fn event(&mut self, event: Event, outbox: &mut Outbox) {
        let Some((index, parts, mut known)) = self.take(event) else { return };
        for part in parts {
            let Some(delta) = self.delta(index, part) else { continue };
            outbox.data(&self.chunk(index, &delta, known, None));
            // The tokens of an event are sent only once.
            known = usize::MAX;
        }
        let Some(answer) = self.answers.get(index) else { return };
        let is_silent = known < answer.tokens.len() && (self.wants_logprobs || self.extras.tokens);
        if is_silent {
            outbox.data(&self.chunk(index, &json!({}), known, None));
        }
        if answer.end.is_some() {
            let mut chunk = self.chunk(index, &json!({}), usize::MAX, Some(answer.finish_reason()));
            if answer.usage().is_squeezed {
                chunk["maskwright"]["squeezed"] = true.into();
            }
            self.notes.tell_one(&mut chunk, index, answer);
            outbox.data(&chunk);
        }
    }

    fn end(&mut self, outbox: &mut Outbox) {
        if self.has_usage {
            let mut chunk = self.head("chat.completion.chunk");
            chunk["choices"] = json!([]);
            chunk["usage"] = usage(&self.answers, self.answers.len());
            if self.extras.tokens {
                chunk["maskwright"] = self.timings();
            }
            outbox.data(&chunk);
        }
        outbox.done();
    }

    fn fail(&mut self, error: &ApiError, outbox: &mut Outbox) {
        outbox.data(&error.json());
    }
}

/// The program that wrote an answer.
pub(crate) const FINGERPRINT: &str = concat!("maskwright-", env!("CARGO_PKG_VERSION"));

fn message(answer: &Gathered) -> Value {
    let mut message = json!({
        "role": "assistant", "content": answer.text, "refusal": null, "annotations": [],
    });
    if !answer.reasoning.is_empty() {
        message["reasoning_content"] = answer.reasoning.as_str().into();
    }
    if answer.made().next().is_some() {
        message["tool_calls"] = answer.made().map(call_json).collect();
        if answer.text.is_empty() {
            message["content"] = Value::Null;
        }
    }
    message
}

fn call_json(call: &Call) -> Value {
    let Call { id, name, arguments, is_custom, .. } = call;
    if *is_custom {
        json!({"id": id, "type": "custom", "custom": {"name": name, "input": arguments}})
    } else {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }
}
