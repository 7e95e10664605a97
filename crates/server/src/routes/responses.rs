//! `/v1/responses`: the newer API of `OpenAI`. Responses are kept for a while, so that a later request can continue
//! from one ([`stored`](crate::stored)).

use std::{mem, sync::Arc};

use axum::{
    extract::State as Extract,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use maskwright_runtime::Event;
use serde_json::{Value, json};

use super::{Name, body::Body, chat, in_turn};
use crate::{
    answer::{
        Compile, Conversation, Finishing, Gathered, Notes, Part,
        gather::{timings, total},
        items::Items,
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
        tools::{self, Api},
        words,
    },
    state::{State, new_id, now},
    stored::Owner,
};

pub(crate) async fn create(
    Extract(state): Extract<Arc<State>>,
    headers: HeaderMap,
    Body(mut body): Body,
) -> Result<Response> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let input = body.take("input").ok_or_else(|| ApiError::missing("input"))?;
    let instructions = body.text("instructions")?;
    let (format, told_format) = format(&mut body)?;
    let (requested, extras) =
        requested::take_format(&mut body, format, None, requested::Dialect::Common, &state.settings)?;
    requested::Requested::refuse_report(requested.as_ref())?;
    let finishing = Finishing::of(&state, &extras)?;
    let mut choosing = sampling::take(&mut body, &["max_output_tokens"], state.engine.sampling())?;
    if choosing.answers != 1 {
        return Err(ApiError::unsupported("n", "a response is one answer"));
    }
    choosing.sampling.logprobs = logprobs_wanted(&mut body)?;
    let is_streamed = body.flag("stream")?.unwrap_or(false);
    let metadata = body.take("metadata").unwrap_or_else(|| json!({}));
    let user = body.text("user")?;
    let toolbox = tools::take(&mut body, Api::Responses)?;
    let mut thoughts = Thoughts::take_object(&mut body, &state.engine.mind())?;
    let kept = kept(&mut body, &state, &headers)?;
    unsupported(&mut body)?;
    let mut warnings = chat::ignored(words::take(&mut body)?);
    warnings.append(&mut thoughts.warnings);
    body.finish()?;
    let (tools, tool_choice, is_parallel) = match &toolbox {
        Some(toolbox) => (toolbox.told.clone(), toolbox.told_choice.clone(), toolbox.is_parallel()),
        None => (json!([]), json!("auto"), true),
    };
    let described = toolbox.as_ref().map(|toolbox| toolbox.described.clone());
    let shared = state.clone();
    let told_instructions = instructions.clone();
    let (before, variables) = (kept.before, mem::take(&mut thoughts.variables));
    let ((prompt, messages), turn) = in_turn(&state, move || {
        let messages = messages::responses(input, before)?;
        let system = instructions.map(|text| json!({"role": "system", "content": text}));
        let all = system.into_iter().chain(messages.iter().cloned()).collect();
        Ok((shared.engine.chat(&all, described.as_ref(), variables, false, "input")?, messages))
    })
    .await?;
    let echo = Echo {
        instructions: told_instructions,
        format: told_format,
        metadata,
        user,
        choosing: choosing.clone(),
        tools,
        tool_choice,
        is_parallel,
        previous: kept.previous,
        effort: thoughts.effort.clone(),
        is_kept: kept.owner.is_some(),
    };
    let wants_logprobs = choosing.sampling.logprobs.is_some();
    let conversation = Conversation {
        choosing,
        requested,
        finishing,
        toolbox: toolbox.as_ref(),
        thoughts: &thoughts,
        extras: &extras,
        warnings,
        is_open: false,
    };
    let (mut answers, reading) = conversation.start(&state, prompt, turn).await?;
    let mut responding = Responding {
        id: new_id("resp_"),
        created: now(),
        answer: Gathered::read_by(reading),
        items: Items::default(),
        compile: answers.compile,
        notes: answers.notes.clone(),
        wants_logprobs,
        extras,
        echo,
        keep: kept.owner.map(|owner| (owner, messages)),
        state,
    };
    if is_streamed {
        return Ok(sse::respond(answers, responding));
    }
    // The whole response is the same as the result of its stream, whose events are dropped here.
    let mut unheard = Outbox::default();
    while let Some(event) = answers.next().await {
        responding.event(event?, &mut unheard);
        unheard = Outbox::default();
    }
    responding.items.finish(if responding.is_cut() { "incomplete" } else { "completed" }, &mut unheard);
    let is_squeezed = responding.answer.usage().is_squeezed;
    let whole = responding.whole();
    responding.keep(&whole);
    Ok(noted(Json(whole).into_response(), &answers.warnings, is_squeezed))
}

/// Returns a stored response.
pub(crate) async fn one(
    Extract(state): Extract<Arc<State>>,
    Name(id): Name,
    headers: HeaderMap,
) -> Result<Json> {
    let owner = state.stored.owner(&headers);
    state.stored.body(&id, owner).map(Json).ok_or_else(|| not_there(StatusCode::NOT_FOUND, "id"))
}

/// Deletes a stored response.
pub(crate) async fn delete(
    Extract(state): Extract<Arc<State>>,
    Name(id): Name,
    headers: HeaderMap,
) -> Result<Json> {
    if !state.stored.delete(&id, state.stored.owner(&headers)) {
        return Err(not_there(StatusCode::NOT_FOUND, "id"));
    }
    Ok(Json(json!({"id": id, "object": "response", "deleted": true})))
}

/// The options of a request about stored responses: the previous one, and whether to store its own.
struct Kept {
    previous: Option<String>,
    before: Vec<Value>,
    /// Who may continue from this response; `None` if it is not stored.
    owner: Option<Owner>,
}

fn kept(body: &mut Fields, state: &State, headers: &HeaderMap) -> Result<Kept> {
    let owner = state.stored.owner(headers);
    let previous = body.text("previous_response_id")?;
    let before = match &previous {
        None => Vec::new(),
        Some(id) => state
            .stored
            .messages(id, owner)
            .ok_or_else(|| not_there(StatusCode::BAD_REQUEST, "previous_response_id"))?,
    };
    let is_kept = match body.flag("store")? {
        Some(true) if !state.stored.is_on() => {
            return Err(ApiError::unsupported("store", "it was started without room for responses"));
        }
        wanted => wanted.unwrap_or(true) && state.stored.is_on(),
    };
    Ok(Kept { previous, before, owner: is_kept.then_some(owner) })
}

fn not_there(status: StatusCode, param: &str) -> ApiError {
    let message = format!(
        "'{param}' is no response that is kept here; those with 'store': false are not kept, and the oldest are forgotten. Send the whole conversation in 'input'"
    );
    let error = ApiError::other(status, "invalid_request_error", "response_not_found", message);
    ApiError { param: Some(param.into()), ..error }
}

/// Reads `text.format`, and returns how to repeat it.
fn format(body: &mut Fields) -> Result<(Option<Fields>, Value)> {
    let plain = json!({"type": "text"});
    let Some(mut text) = body.object("text")? else { return Ok((None, plain)) };
    text.refuse("verbosity", &[json!("medium")], "the model has no such setting")?;
    let given = text.take("format");
    text.finish()?;
    let format = given.clone().map(|format| Fields::new(format, "text.format")).transpose()?;
    Ok((format, given.unwrap_or(plain)))
}

fn logprobs_wanted(body: &mut Fields) -> Result<Option<u8>> {
    let top = body.whole("top_logprobs", 0, 20)?.unwrap_or(0);
    let include = body.texts("include")?.unwrap_or_default();
    let wanted = "message.output_text.logprobs";
    if let Some(other) = include.iter().find(|name| *name != wanted) {
        let why = format!("'{other}' is not there to be included");
        return Err(ApiError::unsupported("include", &why));
    }
    let is_wanted = top > 0 || include.iter().any(|name| name == wanted);
    Ok(is_wanted.then(|| u8::try_from(top).unwrap_or(0)))
}

fn unsupported(body: &mut Fields) -> Result<()> {
    let why = "conversations are not stored; use 'previous_response_id', or send all of it in 'input'";
    body.refuse("conversation", &[], why)?;
    body.refuse("background", &[json!(false)], "nothing runs in the background")?;
    body.refuse("truncation", &[json!("disabled")], "nothing is left out of a conversation")?;
    body.refuse("prompt", &[], "there are no stored prompts")?;
    body.refuse("max_tool_calls", &[], "the server calls no tools itself")?;
    body.refuse(
        "stream_options",
        &[json!({"include_obfuscation": false}), json!({})],
        "streams are not padded",
    )?;
    chat::common(body)
}

/// The fields of a request that its response repeats.
struct Echo {
    instructions: Option<String>,
    format: Value,
    metadata: Value,
    user: Option<String>,
    choosing: Choosing,
    tools: Value,
    tool_choice: Value,
    is_parallel: bool,
    previous: Option<String>,
    effort: Option<String>,
    is_kept: bool,
}

/// A response on its way to a client.
struct Responding {
    state: Arc<State>,
    id: String,
    created: u64,
    answer: Gathered,
    items: Items,
    compile: Compile,
    notes: Notes,
    wants_logprobs: bool,
    extras: Extras,
    echo: Echo,
    /// The owner of the response, and the conversation before it, if it is stored.
    keep: Option<(Owner, Vec<Value>)>,
}

impl Responding {
    fn is_cut(&self) -> bool {
        self.answer.is_cut()
    }

    /// Returns the response after its last item is closed.
    fn whole(&self) -> Value {
        let mut body = self.body(if self.is_cut() { "incomplete" } else { "completed" });
        body["output"] = self.items.done.clone().into();
        if self.is_cut() {
            body["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        let total = total(std::slice::from_ref(&self.answer), 1);
        body["usage"] = json!({
            "input_tokens": total.prompt,
            "input_tokens_details": {"cached_tokens": total.reused, "cache_write_tokens": 0},
            "output_tokens": total.answer,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": total.prompt + total.answer,
        });
        if self.extras.tokens {
            let mut details = timings(&self.answer.usage(), self.compile);
            details["tokens"] = logprobs::details(&self.answer.tokens, self.state.engine.vocabulary());
            body["maskwright"] = details;
        }
        if self.answer.usage().is_squeezed {
            body["maskwright"]["squeezed"] = true.into();
        }
        self.notes.tell_one(&mut body, 0, &self.answer);
        body
    }

    /// Stores the whole response, so that a later request can continue from it.
    fn keep(&mut self, whole: &Value) {
        let Some((owner, messages)) = self.keep.take() else { return };
        // The items are our own, so none of them is unknown.
        if let Ok(messages) = messages::responses(whole["output"].clone(), messages) {
            self.state.stored.put(&self.id, owner, messages, whole.clone());
        }
    }

    /// Returns everything except the answer.
    fn body(&self, status: &str) -> Value {
        let Echo { instructions, format, metadata, user, choosing, tools, tool_choice, .. } = &self.echo;
        let Echo { is_parallel, previous, effort, is_kept, .. } = &self.echo;
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": null,
            "instructions": instructions,
            "max_output_tokens": choosing.max_tokens,
            "model": self.state.engine.name(),
            "output": [],
            "parallel_tool_calls": is_parallel,
            "previous_response_id": previous,
            "reasoning": {"effort": effort, "summary": null},
            "store": is_kept,
            "temperature": choosing.sampling.temperature,
            "text": {"format": format},
            "tool_choice": tool_choice,
            "tools": tools,
            "top_logprobs": choosing.sampling.logprobs.unwrap_or(0),
            "top_p": choosing.sampling.top_p,
            "truncation": "disabled",
            "usage": null,
            "user": user,
            "metadata": metadata,
        })
    }

    /// Returns the log-probabilities of the tokens from this index on.
    fn logprobs(&self, from: usize) -> Value {
        let tokens = self.answer.tokens.get(from..).unwrap_or_default();
        if !self.wants_logprobs {
            return json!([]);
        }
        logprobs::chat(tokens, self.state.engine.vocabulary())
    }
}

impl Protocol for Responding {
    fn begin(&mut self, outbox: &mut Outbox) {
        let body = self.body("in_progress");
        self.items.send(outbox, "response.created", json!({"response": body}));
        self.items.send(outbox, "response.in_progress", json!({"response": body}));
    }

    fn event(&mut self, event: Event, outbox: &mut Outbox) {
        let mut known = self.answer.tokens.len();
        for part in self.answer.take(event.what) {
            match part {
                Part::Text(text) => {
                    // The tokens of an event are sent only once.
                    let logprobs = self.logprobs(known);
                    known = usize::MAX;
                    self.items.text(&text, logprobs, outbox);
                }
                Part::Reasoning(text) => self.items.reasoning(&text, outbox),
                Part::Begun(index) => {
                    if let Some(call) = self.answer.calls.get(index) {
                        self.items.call(call, outbox);
                    }
                }
                Part::Arguments(_, delta) => self.items.arguments(&delta, outbox),
                Part::Done(_) => self.items.close("completed", outbox),
            }
        }
    }

    fn end(&mut self, outbox: &mut Outbox) {
        let is_cut = self.is_cut();
        self.items.finish(if is_cut { "incomplete" } else { "completed" }, outbox);
        let name = if is_cut { "response.incomplete" } else { "response.completed" };
        let whole = self.whole();
        self.keep(&whole);
        self.items.send(outbox, name, json!({"response": whole}));
    }

    fn fail(&mut self, error: &ApiError, outbox: &mut Outbox) {
        let mut body = self.body("failed");
        body["error"] = json!({"code": "server_error", "message": error.message});
        self.items.send(outbox, "response.failed", json!({"response": body}));
    }
}
