//! `/v1/responses`: the newer API of `OpenAI`, without its memory: nothing is stored, so the whole conversation comes with each request.

use std::sync::Arc;

use axum::{
    extract::State as Extract,
    response::{IntoResponse, Response},
};
use maskwright_runtime::{Event, Reason};
use serde_json::{Value, json};

use super::{aside, chat};
use crate::{
    answer::{
        Gathered, Order, Part,
        gather::{timings, total},
        logprobs,
        sse::{self, Protocol, Told},
    },
    error::{ApiError, Json, Result},
    request::{
        Fields,
        body::Body,
        messages,
        sampling::{self, Choosing},
        wish::{self, Extras},
    },
    state::{State, new_id, now},
};

pub(crate) async fn create(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Response> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let input = body.take("input").ok_or_else(|| ApiError::missing("input"))?;
    let instructions = body.text("instructions")?;
    let (format, told_format) = format(&mut body)?;
    let (wish, extras) = wish::take_format(&mut body, format, &state.settings.options)?;
    let mut choosing = sampling::take(&mut body, &["max_output_tokens"])?;
    if choosing.answers != 1 {
        return Err(ApiError::unsupported("n", "a response is one answer"));
    }
    choosing.sampling.logprobs = logprobs_wanted(&mut body)?;
    let is_streamed = body.flag("stream")?.unwrap_or(false);
    let metadata = body.take("metadata").unwrap_or_else(|| json!({}));
    let user = body.text("user")?;
    unsupported(&mut body)?;
    body.finish()?;
    let shared = state.clone();
    let told_instructions = instructions.clone();
    let prompt = aside(move || {
        let messages = messages::responses(input, instructions)?;
        shared.engine.chat(&messages, None, "input")
    })
    .await?;
    let echo = Echo {
        instructions: told_instructions,
        format: told_format,
        metadata,
        user,
        choosing: choosing.clone(),
    };
    let wants_logprobs = choosing.sampling.logprobs.is_some();
    let mut answers = Order { prompts: vec![prompt], choosing, wish }.start(&state).await?;
    let mut responding = Responding {
        id: new_id("resp_"),
        message: new_id("msg_"),
        created: now(),
        answer: Gathered::default(),
        compile: answers.compile,
        wants_logprobs,
        extras,
        echo,
        number: 0,
        state,
    };
    if is_streamed {
        return Ok(sse::respond(answers, responding));
    }
    while let Some(event) = answers.next().await {
        responding.answer.take(event?.what);
    }
    Ok(Json(responding.whole()).into_response())
}

/// `text.format`, and what is told about it.
fn format(body: &mut Fields) -> Result<(Option<Fields>, Value)> {
    let plain = json!({"type": "text"});
    let Some(mut text) = body.object("text")? else { return Ok((None, plain)) };
    text.refuse("verbosity", &[json!("medium")], "the model has no such setting")?;
    let told = text.take("format");
    text.finish()?;
    let format = told.clone().map(|format| Fields::new(format, "text.format")).transpose()?;
    Ok((format, told.unwrap_or(plain)))
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
    let why = "nothing is stored; send the whole conversation in 'input'";
    body.refuse("previous_response_id", &[], why)?;
    body.refuse("conversation", &[], why)?;
    body.refuse("background", &[json!(false)], "nothing runs in the background")?;
    body.refuse("truncation", &[json!("disabled")], "nothing is left out of a conversation")?;
    body.refuse("prompt", &[], "there are no stored prompts")?;
    body.refuse("max_tool_calls", &[], "the server calls no tools itself")?;
    body.refuse("reasoning", &[json!({}), json!({"effort": null})], "the model has no such setting")?;
    body.refuse(
        "stream_options",
        &[json!({"include_obfuscation": false}), json!({})],
        "streams are not padded",
    )?;
    chat::no_tools_yet(body)?;
    chat::common(body)
}

/// What of a request is repeated in its response.
struct Echo {
    instructions: Option<String>,
    format: Value,
    metadata: Value,
    user: Option<String>,
    choosing: Choosing,
}

/// A response on its way to a client.
struct Responding {
    state: Arc<State>,
    id: String,
    /// The name of its message.
    message: String,
    created: u64,
    answer: Gathered,
    compile: std::time::Duration,
    wants_logprobs: bool,
    extras: Extras,
    echo: Echo,
    /// The number of the next event.
    number: u64,
}

impl Responding {
    fn whole(&self) -> Value {
        let is_cut = matches!(self.answer.end, Some((Reason::Length, _)));
        let mut body = self.body(if is_cut { "incomplete" } else { "completed" });
        body["output"] = json!([self.item(if is_cut { "incomplete" } else { "completed" })]);
        if is_cut {
            body["incomplete_details"] = json!({"reason": "max_output_tokens"});
        }
        let total = total(std::slice::from_ref(&self.answer), 1);
        body["usage"] = json!({
            "input_tokens": total.prompt,
            "input_tokens_details": {"cached_tokens": total.reused},
            "output_tokens": total.answer,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": total.prompt + total.answer,
        });
        if self.extras.tokens {
            let mut told = timings(&self.answer.usage(), self.compile);
            told["tokens"] = logprobs::details(&self.answer.tokens, self.state.engine.vocabulary());
            body["maskwright"] = told;
        }
        body
    }

    /// Everything but the answer.
    fn body(&self, status: &str) -> Value {
        let Echo { instructions, format, metadata, user, choosing } = &self.echo;
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
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "reasoning": {"effort": null, "summary": null},
            "store": false,
            "temperature": choosing.sampling.temperature,
            "text": {"format": format},
            "tool_choice": "auto",
            "tools": [],
            "top_logprobs": choosing.sampling.logprobs.unwrap_or(0),
            "top_p": choosing.sampling.top_p,
            "truncation": "disabled",
            "usage": null,
            "user": user,
            "metadata": metadata,
        })
    }

    fn item(&self, status: &str) -> Value {
        json!({
            "id": self.message, "type": "message", "role": "assistant", "status": status, "content": [self.part()],
        })
    }

    fn part(&self) -> Value {
        json!({
            "type": "output_text", "text": self.answer.text, "annotations": [], "logprobs": self.logprobs(0),
        })
    }

    /// Of the tokens from this one on.
    fn logprobs(&self, from: usize) -> Value {
        let tokens = self.answer.tokens.get(from..).unwrap_or_default();
        if !self.wants_logprobs {
            return json!([]);
        }
        logprobs::chat(tokens, self.state.engine.vocabulary())
    }

    /// Sends an event with the next number.
    fn tell(&mut self, told: &mut Told, name: &str, mut event: Value) {
        event["type"] = name.into();
        event["sequence_number"] = self.number.into();
        self.number += 1;
        told.named(name, &event);
    }

    /// Where the text is.
    fn place(&self) -> Value {
        json!({"item_id": self.message, "output_index": 0, "content_index": 0})
    }
}

impl Protocol for Responding {
    fn begin(&mut self, told: &mut Told) {
        let body = self.body("in_progress");
        self.tell(told, "response.created", json!({"response": body}));
        self.tell(told, "response.in_progress", json!({"response": body}));
        let item = json!({
            "id": self.message, "type": "message", "role": "assistant", "status": "in_progress", "content": [],
        });
        self.tell(told, "response.output_item.added", json!({"output_index": 0, "item": item}));
        let mut event = self.place();
        event["part"] = json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []});
        self.tell(told, "response.content_part.added", event);
    }

    fn event(&mut self, event: Event, told: &mut Told) {
        let mut known = self.answer.tokens.len();
        for part in self.answer.take(event.what) {
            let (Part::Text(text) | Part::Reasoning(text)) = part;
            let mut event = self.place();
            event["delta"] = text.into();
            event["logprobs"] = self.logprobs(known);
            known = usize::MAX;
            self.tell(told, "response.output_text.delta", event);
        }
    }

    fn end(&mut self, told: &mut Told) {
        let whole = self.whole();
        let mut event = self.place();
        event["text"] = self.answer.text.as_str().into();
        event["logprobs"] = self.logprobs(0);
        self.tell(told, "response.output_text.done", event);
        let mut event = self.place();
        event["part"] = self.part();
        self.tell(told, "response.content_part.done", event);
        let item = whole["output"][0].clone();
        self.tell(told, "response.output_item.done", json!({"output_index": 0, "item": item}));
        let is_cut = whole["status"] == "incomplete";
        let name = if is_cut { "response.incomplete" } else { "response.completed" };
        self.tell(told, name, json!({"response": whole}));
    }

    fn fail(&mut self, error: &ApiError, told: &mut Told) {
        let mut body = self.body("failed");
        body["error"] = json!({"code": "server_error", "message": error.message});
        self.tell(told, "response.failed", json!({"response": body}));
    }
}
