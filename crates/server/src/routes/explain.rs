//! `/v1/explain`: follows a text through a constraint, token by token.
//!
//! ```text
//! {"constraint": {"kind": "choice", "source": "[\"USD\", \"EUR\"]"}, "text": "USA"}
//! → {"tokens": [{"id": 2, "text": "US", "allowed": true, "mask_size": 4, "forced": false, "micros": 1}, {"id": 8, "text": "A", "allowed": false, …}],
//!    "rejected": {"index": 1, "byte": 2, "reason": "none of its bytes fits; expected `D`", …},
//!    "complete": false, "next": {"total": 1, "end": false, "tokens": [{"id": 9, "text": "D"}]}}
//! ```
//! `query`, `offset` and `limit` select which of the tokens that may come next are listed. `why` selects others, by
//! their ids or by a text; for each of them the response says whether it may come next, and why not. With `"locate":
//! true` the response locates the end of the accepted tokens in the grammar.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::extract::State as Extract;
use maskwright::{
    Category, Compiler, MatchError, TokenMask, backend::Status, explain::Explanation, locate::Written,
    service::Matcher,
};
use maskwright_vocab::{TokenId, Vocabulary};
use serde_json::{Value, json};

use super::{aside, body::Body, tokens};
use crate::{
    answer::{gather::micros, logprobs},
    error::{ApiError, Json, Result},
    request::{Fields, requested, requested::Requested},
    state::State,
};

/// The maximum number of tokens of a text.
const MAX_TOKENS: usize = 20_000;
/// The maximum number of tokens that are listed.
const MAX_LISTED: usize = 5_000;
/// The maximum number of tokens that `why` selects.
const MAX_ASKED: usize = 50;
/// The time limit.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The selection of next tokens to list.
struct Listing {
    query: String,
    offset: usize,
    limit: usize,
}

pub(crate) async fn explain(Extract(state): Extract<Arc<State>>, Body(mut body): Body) -> Result<Json> {
    state.engine.check_name(body.text("model")?.as_deref())?;
    let text = body.text("text")?;
    let ids = body.list("tokens")?;
    let listing = listing(&mut body)?;
    let is_located = body.flag("locate")?.unwrap_or(false);
    let asked = body.take("why");
    let requested = if body.has("constraint") {
        Some(requested::take_constraint(&mut body, &state.settings)?)
    } else {
        None
    };
    body.finish()?;
    if text.is_some() && ids.is_some() {
        let message = "cannot specify both 'text' and 'tokens'; give one of them";
        return Err(ApiError::invalid("tokens", "conflicting_parameters", message));
    }
    let compiled = match &requested {
        Some(requested) => Some(state.engine.compile(requested).await?.compiled),
        None => None,
    };
    let shared = state.clone();
    aside(&shared, move || {
        let vocabulary = state.engine.vocabulary();
        let tokens = match ids {
            Some(list) => tokens::tokens(&list, "tokens", vocabulary.size())?,
            None => cut(&state, &text.unwrap_or_default())?,
        };
        if tokens.len() > MAX_TOKENS {
            let message =
                format!("the text has {} tokens, but at most {MAX_TOKENS} are explained", tokens.len());
            return Err(ApiError::value("text", message));
        }
        let asked = asked.map(|asked| asked_about(&state, asked)).transpose()?;
        if let Some(compiled) = compiled {
            let mut told = walk(compiled.matcher(), &tokens, vocabulary, &listing, asked.as_deref())?;
            if let (true, Some(requested)) = (is_located, &requested) {
                let fitting = told["rejected"]["index"].as_u64().map_or(tokens.len(), |index| index as usize);
                told["location"] = locate(requested, vocabulary, &tokens[..fitting])?;
            }
            return Ok(Json(told));
        }
        let plain: Vec<Value> = tokens.iter().map(|&token| one(token, vocabulary)).collect();
        Ok(Json(json!({"tokens": plain, "vocabulary": vocabulary.len()})))
    })
    .await
}

/// Locates the end of the accepted tokens. The grammar is always ours, regardless of the backend.
fn locate(requested: &Requested, vocabulary: &Arc<Vocabulary>, tokens: &[TokenId]) -> Result<Value> {
    let compiler = Compiler::new(vocabulary.clone());
    let located = compiler.locate(&requested.constraint, &requested.options, Written::Tokens(tokens));
    located.map(|location| location.json()).map_err(|error| match error.category() {
        Category::Limit => ApiError::constraint_limit("locate", &error),
        category => ApiError::constraint("locate", "invalid_constraint", category, &error),
    })
}

fn listing(body: &mut Fields) -> Result<Listing> {
    let number =
        |value: Option<i64>, other: usize| value.map_or(other, |n| usize::try_from(n).unwrap_or(other));
    let most = i64::try_from(MAX_LISTED).unwrap_or(i64::MAX);
    Ok(Listing {
        query: body.text("query")?.unwrap_or_default().to_lowercase(),
        offset: number(body.whole("offset", 0, i64::MAX)?, 0),
        limit: number(body.whole("limit", 0, most)?, 100),
    })
}

/// Returns the tokens that `why` selects: ids, or all tokens with the given text; if there are none, the first token
/// that the text is encoded to.
fn asked_about(state: &State, asked: Value) -> Result<Vec<TokenId>> {
    let vocabulary = state.engine.vocabulary();
    match asked {
        Value::String(text) => {
            let tokens = (0..vocabulary.size()).filter_map(|id| u32::try_from(id).ok()).map(TokenId);
            let is_it = |token: &TokenId| logprobs::text(*token, vocabulary) == text;
            let found: Vec<TokenId> = tokens.filter(is_it).take(MAX_ASKED).collect();
            Ok(if found.is_empty() { cut(state, &text)?.into_iter().take(1).collect() } else { found })
        }
        Value::Array(list) if list.len() <= MAX_ASKED => tokens::tokens(&list, "why", vocabulary.size()),
        Value::Array(list) => {
            let message = format!("'why' has {} tokens, but at most {MAX_ASKED} are explained", list.len());
            Err(ApiError::value("why", message))
        }
        other => Err(ApiError::wrong_type("why", "a string or an array of tokens", &other)),
    }
}

fn cut(state: &State, text: &str) -> Result<Vec<TokenId>> {
    // Not worth encoding: even the longest tokens would be too many.
    if text.len() / state.engine.vocabulary().max_token_bytes().max(1) > MAX_TOKENS {
        let message = format!("the text has {} bytes, more than {MAX_TOKENS} tokens", text.len());
        return Err(ApiError::value("text", message));
    }
    state.engine.tokenizer().encode(text).map_err(|error| ApiError::value("text", error.to_string()))
}

/// Follows the tokens as far as they are allowed.
fn walk(
    mut matcher: Matcher,
    tokens: &[TokenId],
    vocabulary: &Vocabulary,
    listing: &Listing,
    asked: Option<&[TokenId]>,
) -> Result<Value> {
    let begin = Instant::now();
    let mut words = vec![0; vocabulary.size().div_ceil(32)];
    let (mut told, mut rejected, mut bytes) = (Vec::with_capacity(tokens.len()), None, 0);
    for (index, &token) in tokens.iter().enumerate() {
        let mut entry = one(token, vocabulary);
        if rejected.is_none() {
            if begin.elapsed() > TIME_LIMIT {
                let message = format!(
                    "explaining the text takes longer than the limit of {} seconds; give a shorter one",
                    TIME_LIMIT.as_secs()
                );
                return Err(ApiError::invalid("text", "constraint_timeout", message));
            }
            let (size, time) = fill(&mut matcher, &mut words)?;
            let is_allowed =
                words.get(token.index() / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1);
            entry["mask_size"] = size.into();
            entry["micros"] = time.into();
            entry["allowed"] = is_allowed.into();
            entry["forced"] = (is_allowed && size == 1).into();
            if is_allowed {
                matcher.accept(token).map_err(|error| failed(&error))?;
                bytes += vocabulary.bytes(token).len();
            } else {
                rejected = Some(why(&mut matcher, index, token, bytes));
            }
        } else {
            entry["allowed"] = Value::Null;
        }
        told.push(entry);
    }
    let status = matcher.status();
    let is_complete = rejected.is_none() && status != Status::Open;
    let next = if status == Status::Terminated {
        json!({"total": 0, "matching": 0, "end": true, "tokens": []})
    } else {
        fill(&mut matcher, &mut words)?;
        let mask = TokenMask::from_words(&words, vocabulary.size());
        next(&mask, status != Status::Open, vocabulary, listing)
    };
    let count = told.len();
    let mut answer = json!({
        "tokens": told,
        "rejected": rejected,
        "complete": is_complete,
        "vocabulary": vocabulary.len(),
        "next": next,
    });
    if let Some(asked) = asked {
        let is_over = status == Status::Terminated;
        let about = |&token: &TokenId| {
            let mut entry = one(token, vocabulary);
            let is_allowed =
                !is_over && words.get(token.index() / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1);
            entry["allowed"] = is_allowed.into();
            if is_over {
                entry["reason"] = "the text has ended".into();
            } else if !is_allowed {
                let why = why(&mut matcher, count, token, bytes);
                entry["reason"] = why["reason"].clone();
                entry["rules"] = why["rules"].clone();
            }
            entry
        };
        answer["why"] = asked.iter().map(about).collect();
    }
    Ok(answer)
}

/// Fills a mask; returns how many tokens it allows, and how long it took.
fn fill(matcher: &mut Matcher, words: &mut [u32]) -> Result<(u32, f64)> {
    let begin = Instant::now();
    matcher.fill_mask(words).map_err(|error| failed(&error))?;
    let time = micros(begin.elapsed());
    Ok((words.iter().map(|word| word.count_ones()).sum(), time))
}

/// Returns the error for a text that was not followed to its end.
fn failed(error: &MatchError) -> ApiError {
    match Category::from(error) {
        Category::Limit => ApiError::constraint_limit("constraint", error),
        category => ApiError::constraint("constraint", "invalid_constraint", category, error),
    }
}

/// Explains why a token is not allowed, as far as the backend can tell.
fn why(matcher: &mut Matcher, index: usize, token: TokenId, bytes: usize) -> Value {
    let Some(engine) = matcher.inner().as_engine() else {
        return json!({
            "index": index, "byte": bytes, "token_byte": bytes, "reason": "the token is not allowed here",
            "expected": null, "rules": [],
        });
    };
    let why = Explanation::of(engine, token);
    json!({
        "index": index,
        "byte": bytes + why.fitting,
        "token_byte": bytes,
        "reason": why.reason(),
        "expected": why.expectation.phrase(),
        "rules": why.expectation.rules,
    })
}

/// Returns the selected tokens that may come next.
fn next(mask: &TokenMask, may_end: bool, vocabulary: &Vocabulary, listing: &Listing) -> Value {
    let matches = |token: &TokenId| {
        listing.query.is_empty() || logprobs::text(*token, vocabulary).to_lowercase().contains(&listing.query)
    };
    let (mut matching, mut listed) = (0_usize, Vec::new());
    for token in mask.iter().filter(matches) {
        if matching >= listing.offset && listed.len() < listing.limit {
            listed.push(one(token, vocabulary));
        }
        matching += 1;
    }
    json!({"total": mask.count(), "matching": matching, "end": may_end, "tokens": listed})
}

fn one(token: TokenId, vocabulary: &Vocabulary) -> Value {
    let mut entry = json!({"id": token.0, "text": logprobs::text(token, vocabulary)});
    let bytes = vocabulary.bytes(token);
    if vocabulary.is_special(token) {
        entry["special"] = true.into();
    } else if std::str::from_utf8(bytes).is_err() {
        let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
        let hex: String = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        entry["bytes"] = hex.into();
    }
    entry
}
