//! How tokens are sampled, how many, and where an answer ends.

use maskwright_runtime::Sampling;
use maskwright_vocab::TokenId;
use serde_json::Value;

use super::Fields;
use crate::error::{ApiError, Result};

/// The parameters of an answer without its prompt and its constraint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choosing {
    pub(crate) sampling: Sampling,
    pub(crate) max_tokens: Option<usize>,
    /// The field that sets `max_tokens`, or the one that clients would use.
    pub(crate) length: &'static str,
    pub(crate) stop: Vec<String>,
    pub(crate) stop_tokens: Vec<TokenId>,
    pub(crate) answers: usize,
}

/// Takes the fields that all generating endpoints share. `lengths` are the names of the token limit, `defaults` are
/// recommended by the model's authors.
pub(crate) fn take(body: &mut Fields, lengths: &[&'static str], defaults: &Sampling) -> Result<Choosing> {
    let sampling = Sampling {
        temperature: body.number("temperature", 0.0, 2.0)?.unwrap_or(defaults.temperature),
        top_k: top_k(body)?.unwrap_or(defaults.top_k),
        top_p: body.number("top_p", 0.0, 1.0)?.unwrap_or(defaults.top_p),
        min_p: body.number("min_p", 0.0, 1.0)?.unwrap_or(defaults.min_p),
        repetition_penalty: repetition_penalty(body)?.unwrap_or(defaults.repetition_penalty),
        frequency_penalty: body.number("frequency_penalty", -2.0, 2.0)?.unwrap_or(defaults.frequency_penalty),
        presence_penalty: body.number("presence_penalty", -2.0, 2.0)?.unwrap_or(defaults.presence_penalty),
        logit_bias: logit_bias(body)?,
        seed: body.whole("seed", i64::MIN, i64::MAX)?.map(i64::cast_unsigned),
        ..defaults.clone()
    };
    let (length, max_tokens) = max_tokens(body, lengths)?;
    Ok(Choosing {
        sampling,
        max_tokens,
        length,
        stop: stop(body)?,
        stop_tokens: stop_tokens(body)?,
        answers: body.count("n")?.unwrap_or(1),
    })
}

/// Reads the number of tokens to keep; by convention, 0 and −1 both mean all.
fn top_k(body: &mut Fields) -> Result<Option<u32>> {
    let number = body.whole("top_k", -1, i64::from(u32::MAX))?;
    Ok(number.map(|number| u32::try_from(number).unwrap_or(0)))
}

/// Reads the repetition penalty, which has a second name in llama.cpp.
fn repetition_penalty(body: &mut Fields) -> Result<Option<f32>> {
    let common = body.number("repetition_penalty", 0.01, 10.0)?;
    let other = body.number("repeat_penalty", 0.01, 10.0)?;
    if common.is_some() && other.is_some() {
        return Err(same("repetition_penalty", "repeat_penalty"));
    }
    Ok(common.or(other))
}

/// Returns the error for two fields with the same meaning.
fn same(first: &str, second: &str) -> ApiError {
    let message = format!("cannot specify both '{first}' and '{second}'; they mean the same");
    ApiError::invalid(second, "conflicting_parameters", message)
}

/// Reads the token limit, and returns the field that sets it. The first of the names is the usual one.
fn max_tokens(body: &mut Fields, names: &[&'static str]) -> Result<(&'static str, Option<usize>)> {
    let mut found: Option<(&'static str, usize)> = None;
    let usual = names.first().copied().unwrap_or("max_tokens");
    for &name in names {
        if let Some(count) = body.count(name)? {
            if let Some((first, _)) = found {
                return Err(same(first, name));
            }
            found = Some((name, count));
        }
    }
    // The field of llama.cpp, in which −1 means no limit.
    if let Some(count) = body.whole("n_predict", -1, i64::MAX)? {
        if let Some((first, _)) = found {
            return Err(same(first, "n_predict"));
        }
        if count == 0 {
            let message = "'n_predict' is 0, but must be at least 1, or -1 for no limit";
            return Err(ApiError::value("n_predict", message));
        }
        return Ok(("n_predict", usize::try_from(count).ok()));
    }
    Ok(found.map_or((usual, None), |(name, count)| (name, Some(count))))
}

fn stop(body: &mut Fields) -> Result<Vec<String>> {
    match body.take("stop") {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(items)) => items
            .into_iter()
            .enumerate()
            .map(|(i, item)| match item {
                Value::String(text) => Ok(text),
                other => Err(ApiError::wrong_type(format!("stop[{i}]"), "a string", &other)),
            })
            .collect(),
        Some(other) => Err(ApiError::wrong_type("stop", "a string or an array of strings", &other)),
    }
}

fn stop_tokens(body: &mut Fields) -> Result<Vec<TokenId>> {
    let items = body.list("stop_token_ids")?.unwrap_or_default();
    let token = |(i, item): (usize, &Value)| {
        let id = item.as_u64().and_then(|id| u32::try_from(id).ok());
        let wrong = || ApiError::wrong_type(format!("stop_token_ids[{i}]"), "the number of a token", item);
        id.map(TokenId).ok_or_else(wrong)
    };
    items.iter().enumerate().map(token).collect()
}

/// Reads `{"1234": -100}`.
fn logit_bias(body: &mut Fields) -> Result<Vec<(TokenId, f32)>> {
    let Some(value) = body.take("logit_bias") else { return Ok(Vec::new()) };
    let Value::Object(entries) = &value else {
        return Err(ApiError::wrong_type("logit_bias", "an object from token to number", &value));
    };
    let entry = |(token, bias): (&String, &Value)| {
        let param = format!("logit_bias.{}", token.chars().take(40).collect::<String>());
        let id = token.parse().map(TokenId).map_err(|_| {
            let message = format!("'{param}': the keys of 'logit_bias' are numbers of tokens");
            ApiError::value(&param, message)
        })?;
        let number = bias.as_f64().ok_or_else(|| ApiError::wrong_type(&param, "a number", bias))?;
        if !(-100.0..=100.0).contains(&number) {
            let message = format!("'{param}' is {bias}, but must be between -100 and 100");
            return Err(ApiError::value(&param, message));
        }
        Ok((id, number as f32))
    };
    entries.iter().map(entry).collect()
}

/// Reads whether an answer is streamed, and whether the stream ends with its usage.
pub(crate) fn take_stream(body: &mut Fields) -> Result<(bool, bool)> {
    let is_streamed = body.flag("stream")?.unwrap_or(false);
    let Some(mut options) = body.object("stream_options")? else { return Ok((is_streamed, false)) };
    if !is_streamed {
        let message = "'stream_options' is only allowed when 'stream' is true";
        return Err(ApiError::invalid("stream_options", "invalid_value", message));
    }
    let has_usage = options.flag("include_usage")?.unwrap_or(false);
    // Padding protects against eavesdropping, which is not a concern for a local connection.
    options.refuse("include_obfuscation", &[Value::Bool(false)], "streams are not padded")?;
    options.finish()?;
    Ok((is_streamed, has_usage))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<Choosing> {
        let mut body = Fields::new(body, "").unwrap();
        let recommended = Sampling { temperature: 0.5, top_k: 20, ..Sampling::default() };
        let choosing = take(&mut body, &["max_completion_tokens", "max_tokens"], &recommended)?;
        body.finish()?;
        Ok(choosing)
    }

    #[test]
    fn everything_is_read() {
        let choosing = read(json!({
            "temperature": 0, "top_k": -1, "top_p": 0.5, "min_p": 0.1, "repetition_penalty": 1.1, "frequency_penalty": -1,
            "presence_penalty": 2, "logit_bias": {"7": -100, "8": 1.5}, "seed": -5, "max_tokens": 3, "stop": "x", "n": 2,
            "stop_token_ids": [4],
        }))
        .unwrap();
        let sampling = &choosing.sampling;
        assert_eq!((sampling.temperature, sampling.top_k, sampling.seed), (0.0, 0, Some(u64::MAX - 4)));
        assert_eq!(sampling.logit_bias, [(TokenId(7), -100.0), (TokenId(8), 1.5)]);
        assert_eq!((choosing.max_tokens, choosing.length, choosing.answers), (Some(3), "max_tokens", 2));
        let llama = read(json!({"n_predict": -1, "repeat_penalty": 1.5})).unwrap();
        let said = (llama.max_tokens, llama.length, llama.sampling.repetition_penalty);
        assert_eq!(said, (None, "n_predict", 1.5));
        assert_eq!((choosing.stop, choosing.stop_tokens), (vec!["x".to_owned()], vec![TokenId(4)]));
    }

    #[test]
    fn what_a_request_does_not_say_the_model_recommends() {
        let sampling = read(json!({})).unwrap().sampling;
        assert_eq!((sampling.temperature, sampling.top_k, sampling.top_p), (0.5, 20, 1.0));
        let sampling = read(json!({"temperature": 1, "top_k": -1})).unwrap().sampling;
        assert_eq!((sampling.temperature, sampling.top_k), (1.0, 0));
    }

    #[test]
    fn absurd_values_are_refused_by_name() {
        for (body, param) in [
            (json!({"temperature": -0.1}), "temperature"),
            (json!({"temperature": 2.1}), "temperature"),
            (json!({"temperature": "hot"}), "temperature"),
            (json!({"top_p": 1.5}), "top_p"),
            (json!({"n": 0}), "n"),
            (json!({"max_tokens": 0}), "max_tokens"),
            (json!({"max_tokens": -1}), "max_tokens"),
            (json!({"max_tokens": 5, "max_completion_tokens": 5}), "max_tokens"),
            (json!({"max_tokens": 5, "n_predict": 5}), "n_predict"),
            (json!({"n_predict": 0}), "n_predict"),
            (json!({"repetition_penalty": 1, "repeat_penalty": 1}), "repeat_penalty"),
            (serde_json::from_str(r#"{"temperature": 1e400}"#).unwrap(), "temperature"),
            (json!({"stop": [1]}), "stop[0]"),
            (json!({"stop": {}}), "stop"),
            (json!({"logit_bias": {"a": 1}}), "logit_bias.a"),
            (json!({"logit_bias": {"1": 101}}), "logit_bias.1"),
            (json!({"logit_bias": []}), "logit_bias"),
            (json!({"stop_token_ids": [-1]}), "stop_token_ids[0]"),
            (json!({"seed": 1.5}), "seed"),
        ] {
            assert_eq!(read(body.clone()).unwrap_err().param.as_deref(), Some(param), "{body}");
        }
    }
}
