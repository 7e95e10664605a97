//! `/openapi.json`: the endpoints and the fields of their requests, for programs that generate clients.
//!
//! It describes what can be sent, with the ranges that are checked. Responses have the formats of the original APIs,
//! and are only mentioned by name.

use maskwright::exact::MAX_TRIES;
use serde_json::{Map, Value, json};

use crate::error::Json;

pub(crate) async fn document() -> Json {
    Json(all())
}

/// A field of a request: its name, its schema, and its purpose.
type Field = (&'static str, Value, &'static str);

fn all() -> Value {
    let mut paths = Map::new();
    for (path, summary, needed, fields) in posts() {
        let body = object(fields, &needed);
        paths.insert(
            path.into(),
            json!({"post": {
                "summary": summary,
                "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
                "responses": answers(),
            }}),
        );
    }
    for (path, summary, names) in gets() {
        let parameters: Vec<Value> = names
            .iter()
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": text()}))
            .collect();
        let mut get = json!({"get": {"summary": summary, "parameters": parameters, "responses": answers()}});
        if path == "/v1/responses/{id}" {
            get["delete"] =
                json!({"summary": "Forget a response", "parameters": parameters, "responses": answers()});
        }
        paths.insert(path.into(), get);
    }
    let error = json!({
        "type": "object",
        "properties": {"error": {
            "type": "object",
            "properties": {
                "message": text(),
                "type": text(),
                "param": {"type": ["string", "null"], "description": "the path of the field, as in messages[2].content"},
                "code": {"type": ["string", "null"]},
            },
            "required": ["message", "type", "param", "code"],
        }},
        "required": ["error"],
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "maskwright",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A model with an OpenAI-compatible API, whose answers satisfy their constraint.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": error},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        // A key is only needed if the server was started with one.
        "security": [{}, {"key": []}],
    })
}

fn answers() -> Value {
    let error = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}});
    json!({
        "200": {"description": "the answer; with `stream`, server-sent events"},
        "4XX": {"description": "the request is refused, and the error names the field", "content": error},
        "5XX": {"description": "the server failed", "content": error},
    })
}

fn object(fields: Vec<Field>, needed: &[&str]) -> Value {
    let one = |(name, mut schema, about): Field| {
        if !about.is_empty() {
            schema["description"] = about.into();
        }
        (name.to_owned(), schema)
    };
    let properties: Map<String, Value> = fields.into_iter().map(one).collect();
    json!({"type": "object", "properties": properties, "required": needed, "additionalProperties": false})
}

fn gets() -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    vec![
        ("/v1/models", "What is served", &[]),
        ("/v1/models/{id}", "One of them", &["id"]),
        ("/v1/responses/{id}", "A response that is kept", &["id"]),
        ("/props", "What clients of llama.cpp ask for first", &[]),
        ("/version", "What clients of vLLM ask for first", &[]),
        ("/health", "How the server is doing", &[]),
        ("/metrics", "The same for Prometheus", &[]),
        ("/openapi.json", "This document", &[]),
    ]
}

/// Path, summary, required fields, all fields.
type Post = (&'static str, &'static str, Vec<&'static str>, Vec<Field>);

fn posts() -> Vec<Post> {
    let tokens = |path| {
        let fields = vec![
            ("text", text(), ""),
            ("prompt", text(), "vLLM's word for `text`"),
            ("content", text(), "llama.cpp's word for `text`"),
            ("messages", list(&json!({"type": "object"})), "a conversation, by the model's template"),
            ("parse_special", flag(), "whether names of special tokens in the text are those tokens"),
            ("model", text(), ""),
        ];
        (path, "Text to tokens", vec![], fields)
    };
    let texts = |path| {
        let fields = vec![("tokens", list(&whole(0)), ""), ("model", text(), "")];
        (path, "Tokens to text", vec!["tokens"], fields)
    };
    vec![
        ("/v1/chat/completions", "The next message of a conversation", vec!["messages"], chat()),
        ("/v1/completions", "The continuation of a plain text", vec!["prompt"], completions()),
        ("/v1/responses", "The newer API", vec!["input"], responses()),
        ("/generate", "SGLang's own endpoint", vec![], sglang()),
        ("/completion", "llama.cpp's own endpoint", vec!["prompt"], llama_cpp()),
        (
            "/v1/grammar/check",
            "Compile a constraint only",
            vec!["constraint"],
            vec![
                (
                    "constraint",
                    json!({"type": "object"}),
                    "like `response_format`, or a `kind` and its `source`",
                ),
                ("maskwright", extras(), ""),
                ("model", text(), ""),
            ],
        ),
        (
            "/v1/explain",
            "How a text goes through a constraint",
            vec![],
            vec![
                ("constraint", json!({"type": "object"}), "as above"),
                ("text", text(), ""),
                ("tokens", list(&whole(0)), "instead of a text"),
                ("query", text(), "which of the tokens that may come next are listed"),
                ("offset", whole(0), ""),
                ("limit", whole(0), ""),
                (
                    "locate",
                    flag(),
                    "whether the answer reports the place that the text has reached, in terms of the grammar",
                ),
                (
                    "why",
                    json!({"type": ["string", "array"]}),
                    "tokens, or a text: which of them may come next, and why not",
                ),
                ("maskwright", extras(), ""),
                ("model", text(), ""),
            ],
        ),
        tokens("/v1/tokenize"),
        tokens("/tokenize"),
        texts("/v1/detokenize"),
        texts("/detokenize"),
    ]
}

fn chat() -> Vec<Field> {
    let mut fields = vec![
        ("messages", list(&json!({"type": "object"})), "objects with `role` and `content`"),
        ("max_completion_tokens", whole(1), "the most tokens, the one that ends the answer included"),
        ("max_tokens", whole(1), "the same"),
        ("n", whole(1), "how many answers"),
        ("logprobs", flag(), ""),
        ("top_logprobs", range(0.0, 20.0), ""),
        ("tools", list(&json!({"type": "object"})), "functions, and custom tools that take a text"),
        ("tool_choice", json!({}), "`auto`, `none`, `required`, or one tool by name"),
        ("parallel_tool_calls", flag(), "false: one call at most"),
        ("stream_options", json!({"type": "object"}), "`include_usage`"),
        ("reasoning_effort", effort(), "where the model's format has reasoning"),
        ("chat_template_kwargs", json!({"type": "object"}), "variables for the model's template"),
        (
            "response_format",
            json!({"type": "object"}),
            "`json_schema`, `json_object`, `regex`, `ebnf`, `gbnf`, `lark`, `grammar`, `choice`, `pcfg`, `structural_tag`, `text`",
        ),
        ("continue_final_message", flag(), "whether the answer continues the last message"),
        ("add_generation_prompt", flag(), "the opposite"),
    ];
    fields.extend(shared());
    fields
}

fn completions() -> Vec<Field> {
    let mut fields = vec![
        ("prompt", json!({"type": ["string", "array"]}), "a text, tokens, or a list of either"),
        ("max_tokens", whole(1), "16 without a constraint"),
        ("n", whole(1), "how many answers to each prompt"),
        ("logprobs", range(0.0, 20.0), ""),
        ("echo", flag(), "whether the prompt is repeated before the answer"),
        ("stream_options", json!({"type": "object"}), "`include_usage`"),
        ("response_format", json!({"type": "object"}), "as in chat"),
    ];
    fields.extend(shared());
    fields
}

fn responses() -> Vec<Field> {
    let mut fields = vec![
        ("input", json!({"type": ["string", "array"]}), "a text, or a list of items"),
        ("instructions", text(), ""),
        ("previous_response_id", text(), "a response that is kept, to continue from"),
        ("store", flag(), "whether the response is kept; true unless the server has no room for any"),
        ("max_output_tokens", whole(1), ""),
        ("text", json!({"type": "object"}), "`format` is what `response_format` is elsewhere"),
        ("tools", list(&json!({"type": "object"})), ""),
        ("tool_choice", json!({}), ""),
        ("parallel_tool_calls", flag(), ""),
        ("top_logprobs", range(0.0, 20.0), ""),
        ("include", list(&text()), "`message.output_text.logprobs`"),
        ("reasoning", json!({"type": "object"}), "`effort`, where the model's format has reasoning"),
        ("chat_template_kwargs", json!({"type": "object"}), "variables for the model's template"),
        ("metadata", json!({"type": "object"}), "is repeated"),
        ("user", text(), "is repeated"),
    ];
    fields.extend(shared());
    fields
}

fn sglang() -> Vec<Field> {
    let mut params = vec![
        ("max_new_tokens", whole(1), "128 by default"),
        ("n", whole(1), ""),
        ("response_format", json!({"type": "object"}), "as in chat"),
    ];
    params.extend(choosing());
    params.extend(top_level());
    let mut fields = vec![
        ("text", json!({"type": ["string", "array"]}), "a text, or a list of texts"),
        ("input_ids", json!({"type": "array"}), "tokens, instead of a text"),
        ("sampling_params", object(params, &[]), ""),
        ("stream", flag(), ""),
        ("model", text(), ""),
        ("maskwright", extras(), ""),
    ];
    fields.extend(constraints());
    fields
}

fn llama_cpp() -> Vec<Field> {
    let mut fields = vec![
        ("prompt", json!({"type": ["string", "array"]}), "a text, tokens, or a list of either"),
        ("max_tokens", whole(1), ""),
        ("n", whole(1), ""),
        ("response_format", json!({"type": "object"}), "as in chat"),
    ];
    fields.extend(shared());
    fields
}

/// Returns the fields that all generating endpoints share.
fn shared() -> Vec<Field> {
    let mut fields =
        vec![("model", text(), ""), ("stream", flag(), "server-sent events"), ("maskwright", extras(), "")];
    fields.extend(choosing());
    fields.extend(constraints());
    fields
}

fn choosing() -> Vec<Field> {
    let recommended = "without it, what the model's authors recommend";
    vec![
        ("temperature", range(0.0, 2.0), recommended),
        ("top_k", whole(-1), recommended),
        ("top_p", range(0.0, 1.0), recommended),
        ("min_p", range(0.0, 1.0), recommended),
        ("repetition_penalty", range(0.01, 10.0), recommended),
        ("repeat_penalty", range(0.01, 10.0), "llama.cpp's word for it"),
        ("frequency_penalty", range(-2.0, 2.0), ""),
        ("presence_penalty", range(-2.0, 2.0), ""),
        ("logit_bias", json!({"type": "object"}), "from tokens to numbers between -100 and 100"),
        ("seed", json!({"type": "integer"}), ""),
        ("n_predict", whole(-1), "llama.cpp's word for the most tokens"),
        ("stop", json!({"type": ["string", "array"]}), "ends a constrained answer only where it is complete"),
        ("stop_token_ids", list(&whole(0)), "the same for tokens"),
    ]
}

/// Returns the fields for constraints. An answer has one constraint.
fn constraints() -> Vec<Field> {
    let mut fields = vec![
        (
            "structured_outputs",
            json!({"type": "object"}),
            "vLLM's: `json`, `regex`, `choice`, `grammar`, `json_object`, `structural_tag`",
        ),
        ("guided_json", json!({}), "vLLM's, older"),
        ("guided_regex", text(), "vLLM's, older"),
        ("guided_choice", list(&text()), "vLLM's, older"),
        ("guided_grammar", text(), "vLLM's, older"),
        ("guided_structural_tag", json!({}), "vLLM's, older"),
        ("guided_whitespace_pattern", text(), "vLLM's, older"),
    ];
    fields.extend(top_level());
    fields
}

fn top_level() -> Vec<Field> {
    vec![
        ("regex", text(), "SGLang's"),
        ("ebnf", text(), "SGLang's"),
        ("json_schema", json!({}), "SGLang's, and in /completion llama.cpp's"),
        ("structural_tag", json!({}), "SGLang's"),
        ("grammar", text(), "llama.cpp's: GBNF"),
    ]
}

fn extras() -> Value {
    let draft = object(
        vec![("max_tokens", whole(1), ""), ("then", text(), "what comes between it and the answer")],
        &["max_tokens"],
    );
    let fields = vec![
        (
            "whitespace",
            json!({"type": ["string", "object"]}),
            "`tidy`, `flexible`, `flexible:N`, `compact`, `spaced`, `indent:N`, `natural`, or a `pattern`",
        ),
        ("key_order", one_of(&["schema", "any"]), ""),
        ("objects", one_of(&["standard", "closed", "strict", "lenient"]), ""),
        ("dialect", one_of(&["ecma", "python", "rust"]), "how patterns are read"),
        ("numbers", one_of(&["double", "any"]), ""),
        ("formats", one_of(&["enforced", "annotation"]), ""),
        ("finish", flag(), "whether a constrained answer is complete when its tokens are used up"),
        ("tokens", flag(), "whether the answer lists its tokens"),
        ("mass", flag(), "whether the answer reports how much of the model's probability each mask left"),
        ("sampling", one_of(&["masked", "exact"]), "how tokens are drawn"),
        ("tries", json!({"type": "integer", "minimum": 1, "maximum": MAX_TRIES}), "of an exact draw"),
        ("draft", draft, "what the model writes first, in its own words"),
        ("heal", flag(), "whether a prompt that ends inside a token is cut back"),
    ];
    object(fields, &[])
}

fn effort() -> Value {
    one_of(&["none", "minimal", "low", "medium", "high", "xhigh"])
}

fn one_of(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn whole(least: i64) -> Value {
    json!({"type": "integer", "minimum": least})
}

fn range(least: f64, most: f64) -> Value {
    json!({"type": "number", "minimum": least, "maximum": most})
}

fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}
