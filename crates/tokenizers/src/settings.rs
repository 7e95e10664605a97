//! Reads the files next to a tokenizer.json.
//!
//! A tokenizer.json contains neither the tokens that end a text nor the width of the model's output. A model's folder
//! usually does:
//!
//! | file | used for |
//! |---|---|
//! | `tokenizer_config.json`, `special_tokens_map.json` | `eos_token`, `bos_token`, `chat_template` |
//! | `generation_config.json` | `eos_token_id`, one or several |
//! | `config.json` | `eos_token_id`, `vocab_size` |
//!
//! Missing information is ignored; contradictions to the tokenizer are an error.

use std::path::Path;

use serde_json::Value;

use crate::{Error, draft::Draft, file::read_optional};

/// Reads the files in `folder` and applies them to `draft`.
pub(crate) fn apply(folder: &Path, draft: &mut Draft) -> Result<(), Error> {
    for name in ["tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "config.json"]
    {
        let path = folder.join(name);
        let Some(bytes) = read_optional(&path)? else { continue };
        let place = path.display().to_string();
        let settings: Value = serde_json::from_slice(&bytes)
            .map_err(|error| Error::Settings { place: place.clone(), reason: format!("no JSON: {error}") })?;
        apply_one(&settings, draft).map_err(|reason| Error::Settings { place, reason })?;
    }
    draft.eos.sort_unstable();
    draft.eos.dedup();
    Ok(())
}

fn apply_one(settings: &Value, draft: &mut Draft) -> Result<(), String> {
    if let Some(name) = token_name(settings, "eos_token") {
        let id =
            draft.named(name).ok_or_else(|| format!("eos_token {name:?} is no token of the tokenizer"))?;
        draft.eos.push(id);
    }
    if let Some(name) = token_name(settings, "bos_token") {
        draft.bos = draft.bos.or(draft.named(name));
    }
    for id in numbers(settings.get("eos_token_id")) {
        let known = u32::try_from(id).ok().filter(|id| draft.tokens.iter().any(|(known, _)| known == id));
        draft.eos.push(known.ok_or_else(|| format!("eos_token_id {id} is no token of the tokenizer"))?);
    }
    // Multimodal models have the settings of their language part one level deeper.
    let size = settings.get("vocab_size").or_else(|| settings.get("text_config")?.get("vocab_size"));
    if let Some(size) = size.and_then(Value::as_u64) {
        draft.size = draft.size.max(usize::try_from(size).ok());
    }
    if draft.chat_template.is_none() {
        draft.chat_template = chat_template(settings.get("chat_template")).map(str::to_owned);
    }
    Ok(())
}

/// Returns the name of a token, given as a string or as an object with its content.
fn token_name<'a>(settings: &'a Value, key: &str) -> Option<&'a str> {
    let token = settings.get(key)?;
    token.as_str().or_else(|| token.get("content")?.as_str())
}

/// Reads one number or a list of numbers.
fn numbers(value: Option<&Value>) -> Vec<u64> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_u64).collect(),
        Some(number) => number.as_u64().into_iter().collect(),
        None => vec![],
    }
}

/// Returns the template itself, or the default one of a list of named templates.
fn chat_template(value: Option<&Value>) -> Option<&str> {
    match value? {
        Value::Array(list) => {
            let default =
                list.iter().find(|item| item.get("name").and_then(Value::as_str) == Some("default"));
            default?.get("template")?.as_str()
        }
        template => template.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Format, draft::Piece, encode::Encoder};

    fn draft() -> Draft {
        let tokens = vec![
            (0, Piece::Text(b"a".to_vec())),
            (1, Piece::Special("</s>".into())),
            (2, Piece::Special("<eot>".into())),
        ];
        Draft::new(
            Format::TokenizerJson,
            tokens,
            Encoder::None(Format::TokenizerJson, "this is a test".into()),
        )
    }

    #[test]
    fn names_and_numbers_of_eos_tokens_are_gathered() {
        let mut draft = draft();
        apply_one(&json!({"eos_token": {"content": "</s>"}, "bos_token": "<eot>"}), &mut draft).unwrap();
        apply_one(&json!({"eos_token_id": [2, 1], "text_config": {"vocab_size": 64}}), &mut draft).unwrap();
        assert_eq!((draft.eos, draft.bos, draft.size), (vec![1, 2, 1], Some(2), Some(64)));
    }

    #[test]
    fn tokens_that_do_not_exist_are_errors() {
        let error = apply_one(&json!({"eos_token": "<end>"}), &mut draft()).unwrap_err();
        assert_eq!(error, "eos_token \"<end>\" is no token of the tokenizer");
        let error = apply_one(&json!({"eos_token_id": 9}), &mut draft()).unwrap_err();
        assert_eq!(error, "eos_token_id 9 is no token of the tokenizer");
    }

    #[test]
    fn the_default_of_several_chat_templates() {
        let list = json!([{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]);
        assert_eq!(chat_template(Some(&list)), Some("D"));
        assert_eq!(chat_template(Some(&json!("D"))), Some("D"));
        assert_eq!(chat_template(Some(&json!(3))), None);
    }
}
