//! Log-probabilities and tokens in the formats of the APIs.

use maskwright_runtime::scheduler::Written;
use maskwright_vocab::{TokenId, Vocabulary};
use serde_json::{Map, Value, json};

/// Returns the log-probabilities for the chat API: an entry for each token.
pub(crate) fn chat(tokens: &[Written], vocabulary: &Vocabulary) -> Value {
    let entry = |written: &Written| {
        let mut entry = one(written.token, chosen(written), vocabulary);
        let top = top(written).iter().map(|&(token, log)| one(token, log, vocabulary));
        entry["top_logprobs"] = top.collect();
        entry
    };
    tokens.iter().map(entry).collect()
}

/// Returns the log-probabilities for the completions API: parallel lists.
pub(crate) fn completions(tokens: &[Written], vocabulary: &Vocabulary, begin: usize) -> Value {
    let mut offset = begin;
    let (mut texts, mut logs, mut tops, mut offsets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for written in tokens {
        let shown = text(written.token, vocabulary);
        offsets.push(offset);
        offset += shown.chars().count();
        texts.push(shown);
        logs.push(chosen(written));
        let top = top(written).iter().map(|&(token, log)| (text(token, vocabulary), json!(log)));
        tops.push(top.collect::<Map<String, Value>>());
    }
    json!({"tokens": texts, "token_logprobs": logs, "top_logprobs": tops, "text_offset": offsets})
}

/// Returns the tokens with details.
pub(crate) fn details(tokens: &[Written], vocabulary: &Vocabulary) -> Value {
    let entry = |written: &Written| {
        let text = text(written.token, vocabulary);
        let mut entry = json!({"id": written.token.0, "text": text, "forced": written.is_forced});
        if let Some(mask) = written.mask {
            entry["mask_micros"] = (mask.as_secs_f64() * 1e6).into();
        }
        if let Some(mass) = written.mass {
            entry["mass"] = mass.into();
        }
        entry
    };
    tokens.iter().map(entry).collect()
}

fn one(token: TokenId, log: f32, vocabulary: &Vocabulary) -> Value {
    json!({"token": text(token, vocabulary), "logprob": log, "bytes": vocabulary.bytes(token)})
}

/// Returns the log-probability of a token. A forced token had no alternative, so its probability was 1.
fn chosen(written: &Written) -> f32 {
    written.logprobs.as_ref().map_or(0.0, |logprobs| logprobs.chosen)
}

fn top(written: &Written) -> &[(TokenId, f32)] {
    written.logprobs.as_ref().map_or(&[], |logprobs| &logprobs.top)
}

/// Returns the text of a token, or the name of a special token.
pub(crate) fn text(token: TokenId, vocabulary: &Vocabulary) -> String {
    match vocabulary.special_name(token) {
        Some(name) => name.to_owned(),
        None => String::from_utf8_lossy(vocabulary.bytes(token)).into_owned(),
    }
}
