//! Fields of other servers that are not supported here.
//!
//! Some of them have no effect on an answer; they are ignored, and the response names them in the header
//! `x-maskwright-warning`. Others would have an effect: they are accepted with the value for the default behavior, and
//! refused with any other. A field in neither list is unknown.

use serde_json::{Value, json};

use super::Fields;
use crate::error::Result;

/// Fields that have no effect on an answer, whatever their value.
const HARMLESS: &[&str] = &[
    "add_special_tokens",
    "cache_prompt",
    "cache_salt",
    "id_slot",
    "kv_transfer_params",
    "n_keep",
    "post_sampling_probs",
    "priority",
    "request_id",
    "response_fields",
    "return_progress",
    "return_tokens",
    "rid",
    "separate_reasoning",
    "spaces_between_special_tokens",
    "stream_interval",
    "stream_reasoning",
    "t_max_predict_ms",
    "timings_per_token",
    "vllm_xargs",
];

/// Takes the remaining fields of other servers from a body. Returns the names of those that were ignored.
pub(crate) fn take(body: &mut Fields) -> Result<Vec<String>> {
    let ends =
        "an answer ends where the model or its constraint ends it; give a constraint with a minimum length";
    let special = "special tokens are never shown as text";
    let turn = "a conversation is always followed by a turn of the model";
    let beams = "there is no search by beams";
    let sampler = "the sampler has no such setting";
    let (off, on, none) = ([json!(false)], [json!(true)], [json!([])]);
    let (zeros, ones) = ([json!(0), json!(0.0)], [json!(1), json!(1.0)]);
    let table: [(&str, &[Value], &str); 33] = [
        ("min_tokens", &zeros, ends),
        ("min_new_tokens", &zeros, ends),
        ("ignore_eos", &off, ends),
        ("skip_special_tokens", &on, special),
        ("include_stop_str_in_output", &off, "a stop string is no part of an answer"),
        ("no_stop_trim", &off, "a stop string is no part of an answer"),
        ("chat_template_kwargs", &[json!({})], "only the messages and the tools are passed to the template"),
        ("chat_template", &[], "the template is the model's"),
        ("documents", &none, "documents are not passed to the template"),
        ("continue_final_message", &off, "only /v1/chat/completions continues a message"),
        ("add_generation_prompt", &on, turn),
        ("use_beam_search", &off, beams),
        ("length_penalty", &ones, beams),
        ("early_stopping", &off, beams),
        ("truncate_prompt_tokens", &[], "a prompt is never cut; shorten it"),
        ("prompt_logprobs", &[], "prompts have no log-probabilities"),
        ("echo_tokens", &off, "the prompt is not repeated"),
        ("return_token_ids", &off, "use 'maskwright': {'tokens': true}"),
        ("return_tokens_as_token_ids", &off, "use 'maskwright': {'tokens': true}"),
        ("bad_words", &none, "use 'logit_bias', or a constraint"),
        ("allowed_token_ids", &none, "use 'logit_bias', or a constraint"),
        ("lora", &none, "there are no adapters"),
        ("lora_path", &[], "there are no adapters"),
        ("samplers", &[], sampler),
        ("typical_p", &ones, sampler),
        ("mirostat", &zeros, sampler),
        ("dynatemp_range", &zeros, sampler),
        ("xtc_probability", &zeros, sampler),
        ("dry_multiplier", &zeros, sampler),
        ("top_a", &zeros, sampler),
        ("n_indent", &zeros, sampler),
        ("n_probs", &zeros, "use 'logprobs'"),
        ("image_data", &none, "the model reads text only"),
    ];
    for (name, neutral, why) in table {
        body.refuse(name, neutral, why)?;
    }
    let ignored: Vec<String> =
        HARMLESS.iter().filter(|name| body.has(name)).map(|name| body.at(name)).collect();
    body.ignore(HARMLESS);
    Ok(ignored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Vec<String>> {
        let mut body = Fields::new(body, "").unwrap();
        let ignored = take(&mut body)?;
        body.finish()?;
        Ok(ignored)
    }

    #[test]
    fn what_changes_nothing_is_ignored_and_named() {
        let body = json!({"cache_prompt": true, "min_tokens": 0, "use_beam_search": false, "priority": 3});
        assert_eq!(read(body).unwrap(), ["cache_prompt", "priority"]);
    }

    #[test]
    fn what_would_change_an_answer_is_refused() {
        for (body, param, code) in [
            (json!({"min_tokens": 5}), "min_tokens", "unsupported_parameter"),
            (json!({"ignore_eos": true}), "ignore_eos", "unsupported_parameter"),
            (json!({"skip_special_tokens": false}), "skip_special_tokens", "unsupported_parameter"),
            (json!({"chat_template_kwargs": {"a": 1}}), "chat_template_kwargs", "unsupported_parameter"),
            (json!({"use_beam_search": true}), "use_beam_search", "unsupported_parameter"),
            (json!({"cache_promt": true}), "cache_promt", "unknown_parameter"),
        ] {
            let error = read(body).unwrap_err();
            assert_eq!((error.param.as_deref(), error.code), (Some(param), Some(code)));
        }
    }
}
