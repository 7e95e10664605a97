//! `/v1/completions`: continues a plain text.

use std::sync::Arc;

use axum::{
    extract::State as Extract,
    response::{IntoResponse, Response},
};
use maskwright_runtime::Event;
use maskwright_vocab::TokenId;
use serde_json::{Value, json};

use super::{body::Body, chat, in_turn, tokens::tokens};
use crate::{
    answer::{
        Compile, Finishing, Gathered, Notes, Order, Part,
        gather::{timings, usage},
        logprobs, noted,
        sse::{self, Outbox, Protocol},
    },
    error::{ApiError, Json, Result},
    request::{requested, sampling, words},
    state::{State, new_id, now},
};

/// The maximum number of prompts of one request.
const MAX_PROMPTS: usize = 64;
/// The default token limit of an answer without a constraint, as in the `OpenAI` API. An answer with a constraint has
/// no default limit.
const MAX_TOKENS: usize = 16;

pub(crate) async fn create(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Response> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let prompt = body.take("prompt").ok_or_else(|| ApiError::missing("prompt"))?;
    let (requested, extras) = requested::take(&mut body, &state.settings)?;
    let mut choosing = sampling::take(&mut body, &["max_tokens"], state.engine.sampling())?;
    if requested.is_none() {
        choosing.max_tokens.get_or_insert(MAX_TOKENS);
    }
    let finishing = Finishing::of(&state, &extras)?;
    let top = body.whole("logprobs", 0, 20)?;
    choosing.sampling.logprobs = top.and_then(|top| u8::try_from(top).ok());
    let (is_streamed, has_usage) = sampling::take_stream(&mut body)?;
    chat::common(&mut body)?;
    let warnings = chat::ignored(words::take(&mut body)?);
    let is_echoed = body.flag("echo")?.unwrap_or(false);
    if is_echoed && top.is_some() {
        let why = "prompts have no log-probabilities, so 'echo' and 'logprobs' do not go together";
        return Err(ApiError::unsupported("echo", why));
    }
    body.refuse("reasoning_effort", &[json!("none")], "a plain text has no thoughts")?;
    body.refuse("suffix", &[json!("")], "the model cannot see what follows")?;
    body.refuse("best_of", &[json!(1), json!(choosing.answers)], "all answers are returned; use 'n'")?;
    body.finish()?;
    let shared = state.clone();
    let is_inside = is_text(&prompt);
    let work = move || {
        let texts = if is_echoed { Some(texts(&prompt)) } else { None };
        let prompts = prompts(&shared, prompt)?;
        let echoed = texts.map(|texts| echoed(&shared, &prompts, &texts)).unwrap_or_default();
        Ok((prompts, echoed))
    };
    let ((prompts, echoed), turn) = in_turn(&state, work).await?;
    let (count, per_prompt) = (prompts.len(), choosing.answers);
    let wants_logprobs = top.is_some();
    let decoding = extras.decoding.clone();
    let order = Order { prompts, choosing, requested, finishing, warnings, decoding, is_inside };
    let mut answers = order.start(&state, turn).await?;
    let mut completion = Completion {
        id: new_id("cmpl-"),
        created: now(),
        answers: (0..answers.count).map(|_| Gathered::default()).collect(),
        offsets: vec![0; answers.count],
        echoed,
        per_prompt: if count == 0 { 1 } else { per_prompt },
        compile: answers.compile,
        notes: answers.notes.clone(),
        wants_logprobs,
        has_usage,
        wants_tokens: extras.tokens,
        state,
    };
    if is_streamed {
        return Ok(sse::respond(answers, completion));
    }
    while let Some(event) = answers.next().await {
        completion.take(event?);
    }
    Ok(noted(Json(completion.whole()).into_response(), &answers.warnings, completion.is_squeezed()))
}

/// Whether prompts are texts, not tokens chosen by the client.
pub(crate) fn is_text(prompt: &Value) -> bool {
    match prompt {
        Value::Array(items) => items.iter().all(Value::is_string),
        other => other.is_string(),
    }
}

/// Reads a text, a list of texts, a list of tokens, or a list of such lists.
pub(crate) fn prompts(state: &State, prompt: Value) -> Result<Vec<Vec<TokenId>>> {
    let engine = &state.engine;
    let size = engine.vocabulary().size();
    let numbers = |list: &[Value], path: &str| {
        let tokens = tokens(list, path, size)?;
        engine.check_length(tokens.len(), path)?;
        Ok::<_, ApiError>(tokens)
    };
    match prompt {
        Value::String(text) => Ok(vec![engine.prompt(&text, "prompt")?]),
        Value::Array(items) if items.first().is_some_and(Value::is_number) => {
            Ok(vec![numbers(&items, "prompt")?])
        }
        Value::Array(items) if items.is_empty() => {
            Err(ApiError::value("prompt", "'prompt' is empty, but must have at least one prompt"))
        }
        Value::Array(items) if items.len() > MAX_PROMPTS => {
            let message =
                format!("'prompt' has {} prompts, but at most {MAX_PROMPTS} are allowed", items.len());
            Err(ApiError::value("prompt", message))
        }
        Value::Array(items) => items
            .into_iter()
            .enumerate()
            .map(|(i, item)| match item {
                Value::String(text) => engine.prompt(&text, &format!("prompt[{i}]")),
                Value::Array(list) => numbers(&list, &format!("prompt[{i}]")),
                other => Err(ApiError::wrong_type(format!("prompt[{i}]"), "a string or tokens", &other)),
            })
            .collect(),
        other => Err(ApiError::wrong_type("prompt", "a string, or an array of strings or tokens", &other)),
    }
}

/// Returns the prompts that are texts.
fn texts(prompt: &Value) -> Vec<Option<String>> {
    match prompt {
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        other => vec![other.as_str().map(str::to_owned)],
    }
}

/// Returns the prompts as they are repeated: texts unchanged, and tokens decoded.
fn echoed(state: &State, prompts: &[Vec<TokenId>], texts: &[Option<String>]) -> Vec<String> {
    let read =
        |tokens: &[TokenId]| String::from_utf8_lossy(&state.engine.tokenizer().decode(tokens)).into_owned();
    let all = prompts.iter().enumerate();
    all.map(|(i, tokens)| texts.get(i).cloned().flatten().unwrap_or_else(|| read(tokens))).collect()
}

/// Answers on their way to a client.
struct Completion {
    state: Arc<State>,
    id: String,
    created: u64,
    answers: Vec<Gathered>,
    /// The number of characters of each answer's tokens that were sent.
    offsets: Vec<usize>,
    /// The text before the answers to each prompt, if it must be repeated.
    echoed: Vec<String>,
    per_prompt: usize,
    compile: Compile,
    notes: Notes,
    wants_logprobs: bool,
    has_usage: bool,
    wants_tokens: bool,
}

impl Completion {
    fn take(&mut self, event: Event) -> Option<(usize, String, usize)> {
        let answer = self.answers.get_mut(event.answer)?;
        let known = answer.tokens.len();
        let texts = answer.take(event.what).into_iter().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            // Plain texts are not parsed.
            _ => None,
        });
        Some((event.answer, texts.collect(), known))
    }

    fn head(&self) -> Value {
        json!({
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.state.engine.name(),
            "system_fingerprint": chat::FINGERPRINT,
        })
    }

    fn whole(&self) -> Value {
        let vocabulary = self.state.engine.vocabulary();
        let choice = |(index, answer): (usize, &Gathered)| {
            let logprobs = self.wants_logprobs.then(|| logprobs::completions(&answer.tokens, vocabulary, 0));
            json!({
                "index": index,
                "text": format!("{}{}", self.echo(index), answer.text),
                "logprobs": logprobs,
                "finish_reason": answer.finish_reason(),
            })
        };
        let mut body = self.head();
        body["choices"] = self.answers.iter().enumerate().map(choice).collect();
        body["usage"] = usage(&self.answers, self.per_prompt);
        if self.wants_tokens {
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

    /// Returns the prompt of an answer, if it must be repeated.
    fn echo(&self, index: usize) -> &str {
        self.echoed.get(index / self.per_prompt.max(1)).map_or("", String::as_str)
    }

    /// Whether one of the answers is squeezed: tokens were forbidden so that it could end in time.
    fn is_squeezed(&self) -> bool {
        self.answers.iter().any(|answer| answer.usage().is_squeezed)
    }

    fn timings(&self) -> Value {
        timings(&self.answers.first().map(Gathered::usage).unwrap_or_default(), self.compile)
    }
}

impl Protocol for Completion {
    fn begin(&mut self, outbox: &mut Outbox) {
        for index in 0..if self.echoed.is_empty() { 0 } else { self.answers.len() } {
            let mut chunk = self.head();
            let text = self.echo(index);
            chunk["choices"] =
                json!([{"index": index, "text": text, "logprobs": null, "finish_reason": null}]);
            if self.has_usage {
                chunk["usage"] = Value::Null;
            }
            outbox.data(&chunk);
        }
    }

    fn event(&mut self, event: Event, outbox: &mut Outbox) {
        let Some((index, text, known)) = self.take(event) else { return };
        let (Some(answer), Some(offset)) = (self.answers.get(index), self.offsets.get_mut(index)) else {
            return;
        };
        let vocabulary = self.state.engine.vocabulary();
        let tokens = answer.tokens.get(known..).unwrap_or_default();
        let finish = answer.end.is_some().then(|| answer.finish_reason());
        let logprobs = (self.wants_logprobs && !tokens.is_empty())
            .then(|| logprobs::completions(tokens, vocabulary, *offset));
        let told_tokens = logprobs::details(tokens, vocabulary);
        *offset +=
            tokens.iter().map(|one| logprobs::text(one.token, vocabulary).chars().count()).sum::<usize>();
        if text.is_empty() && finish.is_none() && !self.wants_logprobs && !self.wants_tokens {
            return;
        }
        let has_tokens = self.wants_tokens && !tokens.is_empty();
        let mut chunk = self.head();
        chunk["choices"] =
            json!([{"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}]);
        if self.has_usage {
            chunk["usage"] = Value::Null;
        }
        if has_tokens {
            chunk["maskwright"] = json!({"tokens": told_tokens});
        }
        if finish.is_some() && answer.usage().is_squeezed {
            chunk["maskwright"]["squeezed"] = true.into();
        }
        if finish.is_some() {
            self.notes.tell_one(&mut chunk, index, answer);
        }
        outbox.data(&chunk);
    }

    fn end(&mut self, outbox: &mut Outbox) {
        if self.has_usage {
            let mut chunk = self.head();
            chunk["choices"] = json!([]);
            chunk["usage"] = usage(&self.answers, self.per_prompt);
            if self.wants_tokens {
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
