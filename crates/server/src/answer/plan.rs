//! Plans how an answer is constrained, and how it is parsed.
//!
//! | the request has | constraint | parsed with |
//! |---|---|---|
//! | tools that may be called | the tree of the tools, in the format of the model | the same tree |
//! | both | the tree of the tools, in which an answer without calls satisfies the constraint | the same tree |
//! | a constraint | that constraint, from the first token to the last | nothing: it is text |
//! | a constraint, and a reasoning effort, or a prompt that has begun the reasoning | a tree of thoughts and an answer that satisfies the constraint | the same tree |
//! | neither | none; if it must not think, a tree without thoughts | a tree without tools, if the model's format distinguishes thoughts |

use maskwright::{
    Constraint,
    formats::{Choice, Request, Thinking},
    stream::Reader,
    tag::{self, Json, Kind},
};
use serde_json::Value;

use super::gather::Reading;
use crate::{
    engine::{Engine, refused},
    error::{ApiError, Result},
    request::{Requested, extras::Extras, tools::Toolbox},
    state::State,
    turns::aside,
};

/// Plans an answer. `by_text`: a stop string may cut the text.
pub(crate) fn plan(
    state: &State,
    toolbox: Option<&Toolbox>,
    requested: Option<Requested>,
    extras: &Extras,
    by_text: bool,
    thinking: Option<Thinking>,
    warnings: &mut Vec<String>,
) -> Result<(Option<Requested>, Option<Reading>)> {
    let engine = &state.engine;
    let reading = |tree: &tag::Format, toolbox: Option<&Toolbox>| -> Result<Reading> {
        let reader = Reader::new(tree);
        let reader = reader.map_err(|error| ApiError::value("tools", format!("'tools': {error}")))?;
        let custom = toolbox.map(|toolbox| toolbox.custom.clone()).unwrap_or_default();
        Ok(Reading { reader, vocabulary: engine.vocabulary().clone(), custom, by_text })
    };
    match (toolbox.filter(|toolbox| !toolbox.is_closed()), requested) {
        (Some(toolbox), Some(requested)) if toolbox.is_required() => {
            let param = &requested.param;
            let message = format!(
                "'tool_choice' requires a call, so there is no answer that '{param}' could be about; leave one of them out"
            );
            Err(ApiError::invalid(param, "conflicting_parameters", message))
        }
        (Some(toolbox), mut requested) => {
            // Some clients that name a tool also send the response format that they would use without it.
            if toolbox.is_named()
                && let Some(Requested { param, .. }) = requested.take()
            {
                warnings.push(format!(
                    "'{param}' is ignored: 'tool_choice' names a tool, so there is no answer that it could be about"
                ));
            }
            let answer = requested.as_ref().map(|requested| part(requested, "'tools'")).transpose()?;
            let thinking = thinking.unwrap_or_default();
            let tree = toolbox.tree(engine.format(), answer, extras.strictness, thinking)?;
            let options = requested.map_or_else(|| extras.over(&state.settings.options), |one| one.options);
            let constraint = Constraint::structural_tag(tree.to_value().to_string());
            let requested = Requested { constraint, options, param: "tools".into(), weighing: None };
            Ok((Some(requested), Some(reading(&tree, Some(toolbox))?)))
        }
        (None, Some(requested)) if matches!(thinking, Some(Thinking::Optional | Thinking::Begun)) => {
            let thinking = thinking.unwrap_or_default();
            let beside = match thinking {
                Thinking::Begun => "thoughts, which the prompt of the model begins",
                _ => "'reasoning_effort'",
            };
            let answer = Some(part(&requested, beside)?);
            let tree = without_tools(engine, thinking, answer)?;
            let constraint = Constraint::structural_tag(tree.to_value().to_string());
            Ok((Some(Requested { constraint, ..requested }), Some(reading(&tree, None)?)))
        }
        // The constraint holds from the first token on, so there is no room for thoughts.
        (None, Some(requested)) => Ok((Some(requested), None)),
        (None, None) if engine.format().can_reason() => {
            let tree = without_tools(engine, thinking.unwrap_or_default(), None)?;
            let requested = (thinking == Some(Thinking::Off)).then(|| Requested {
                constraint: Constraint::structural_tag(tree.to_value().to_string()),
                options: extras.over(&state.settings.options),
                param: "reasoning_effort".into(),
                weighing: None,
            });
            Ok((requested, Some(reading(&tree, None)?)))
        }
        (None, None) => Ok((None, None)),
    }
}

/// Attributes an error about all tools to the tool that caused it, or to the constraint beside them.
pub(crate) async fn blamed(
    state: &State,
    toolbox: Option<&Toolbox>,
    beside: Option<Requested>,
    error: ApiError,
) -> ApiError {
    let Some(toolbox) = toolbox.filter(|_| error.param.as_deref() == Some("tools")) else { return error };
    let parts = toolbox.parts(&state.settings.options).into_iter().chain(beside);
    let parts: Vec<Requested> = parts.collect();
    let find = move || {
        let wrong = |part: &Requested| {
            let error = part.constraint.grammar(&part.options, None).err()?;
            Some(refused(&error, error.category(), part))
        };
        Ok(parts.iter().find_map(wrong))
    };
    aside(state, find).await.ok().flatten().unwrap_or(error)
}

/// Returns the tree for a model without tools.
fn without_tools(engine: &Engine, thinking: Thinking, answer: Option<tag::Format>) -> Result<tag::Format> {
    let request = Request { choice: Choice::None, thinking, answer, ..Request::default() };
    engine.format().tag(&request).map_err(|error| ApiError::internal(error.to_string()))
}

/// Converts a constraint to a part of a tree, as another field requires.
fn part(requested: &Requested, beside: &str) -> Result<tag::Format> {
    let Requested { constraint, options, param, .. } = requested;
    let at = format!("/{param}");
    let kind = match constraint {
        Constraint::JsonSchema(source) => Kind::Json(Json {
            at: at.clone(),
            schema: schema(source, param)?,
            style: tag::Style::Json,
            any_order: false,
            max_whitespace: None,
            excludes: Vec::new(),
            objects: Some(options.json_schema.strictness),
        }),
        Constraint::Regex(pattern) => Kind::Regex(pattern.clone()),
        Constraint::Choice(choices) => {
            let one = |text: &String| tag::Format::new(at.clone(), Kind::Const(text.clone()));
            Kind::Or(choices.iter().map(one).collect())
        }
        Constraint::Ebnf(source) => Kind::Grammar(tag::Syntax::Ebnf, source.clone()),
        Constraint::Lark(source) => Kind::Grammar(tag::Syntax::Lark, source.clone()),
        Constraint::StructuralTag(source) => {
            let tree = tag::parse(source, &tag::Options::default());
            return tree.map_err(|error| {
                ApiError::invalid(param, "invalid_structural_tag", format!("'{param}': {error}"))
            });
        }
        _ => {
            let message = format!(
                "a grammar in this notation cannot be combined with {beside}; write '{param}' in EBNF or Lark"
            );
            return Err(ApiError::invalid(param, "conflicting_parameters", message));
        }
    };
    Ok(tag::Format::new(at, kind))
}

/// Parses a schema.
fn schema(source: &str, param: &str) -> Result<Value> {
    if source.trim() == "$$ANY$$" {
        return Ok(Value::Bool(true));
    }
    serde_json::from_str(source).map_err(|error| {
        ApiError::invalid(param, "invalid_json_schema", format!("'{param}' is not JSON: {error}"))
    })
}
