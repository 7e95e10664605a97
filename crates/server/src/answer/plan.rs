//! What an answer must look like, and how it is taken apart.
//!
//! | the request has | constraint | read by |
//! |---|---|---|
//! | tools that may be called | the tree of the tools, in the format of the model | the same tree |
//! | a constraint | it, from the first token to the last | nobody: it is text |
//! | neither | none | a tree without tools, if the model tells its thoughts apart |

use maskwright::{
    Constraint,
    formats::{Choice, Request},
    stream::Reader,
    tag,
};

use super::gather::Reading;
use crate::{
    error::{ApiError, Result},
    request::{Requested, tools::Toolbox},
    state::State,
};

/// What an answer must look like, and how it is taken apart. `by_text`: a stop string may cut the text.
pub(crate) fn plan(
    state: &State,
    toolbox: Option<&Toolbox>,
    requested: Option<Requested>,
    by_text: bool,
) -> Result<(Option<Requested>, Option<Reading>)> {
    let engine = &state.engine;
    let reading = |tree: &tag::Format, toolbox: Option<&Toolbox>| -> Result<Reading> {
        let reader = Reader::new(tree);
        let reader = reader.map_err(|error| ApiError::value("tools", format!("'tools': {error}")))?;
        let custom = toolbox.map(|toolbox| toolbox.custom.clone()).unwrap_or_default();
        Ok(Reading { reader, vocabulary: engine.vocabulary().clone(), custom, by_text })
    };
    match (toolbox.filter(|toolbox| !toolbox.is_closed()), requested) {
        (Some(_), Some(requested)) => Err(ApiError::both("tools", &requested.param)),
        (Some(toolbox), None) => {
            let tree = toolbox.tree(engine.format())?;
            let mut options = state.settings.options.clone();
            options.json_schema.strictness = toolbox.strictness;
            let constraint = Constraint::structural_tag(tree.to_value().to_string());
            let requested = Requested { constraint, options, param: "tools".into() };
            Ok((Some(requested), Some(reading(&tree, Some(toolbox))?)))
        }
        (None, Some(requested)) => Ok((Some(requested), None)),
        (None, None) if engine.format().can_reason() => {
            let nothing = Request { choice: Choice::None, ..Request::default() };
            let tree = engine.format().tag(&nothing);
            let tree = tree.map_err(|error| ApiError::internal(error.to_string()))?;
            Ok((None, Some(reading(&tree, None)?)))
        }
        (None, None) => Ok((None, None)),
    }
}
