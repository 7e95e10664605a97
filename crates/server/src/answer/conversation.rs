//! Starts the next turn of a conversation, for the two APIs that have conversations: plans the answer around tools,
//! thoughts and a constraint.

use std::sync::Arc;

use super::{
    Answers, Finishing, Order,
    gather::Reading,
    plan::{blamed, plan},
};
use crate::{
    engine::Prompt,
    error::Result,
    request::{Requested, extras::Extras, sampling::Choosing, thoughts::Thoughts, tools::Toolbox},
    state::{State, Turn},
};

/// A request without its prompt.
pub(crate) struct Conversation<'r> {
    pub(crate) choosing: Choosing,
    pub(crate) requested: Option<Requested>,
    pub(crate) finishing: Finishing,
    pub(crate) toolbox: Option<&'r Toolbox>,
    pub(crate) thoughts: &'r Thoughts,
    pub(crate) extras: &'r Extras,
    pub(crate) warnings: Vec<String>,
    /// Whether the answer has begun in the prompt. The rest of it is then plain text.
    pub(crate) is_open: bool,
}

impl Conversation<'_> {
    /// Starts the answers, and returns how to parse them. An error about tools names the tool that caused it.
    pub(crate) async fn start(
        self,
        state: &Arc<State>,
        prompt: Prompt,
        turn: Turn,
    ) -> Result<(Answers, Option<Reading>)> {
        let Self { choosing, requested, finishing, toolbox, thoughts, extras, mut warnings, is_open } = self;
        let beside = toolbox.and(requested.clone());
        let (requested, reading) = if is_open {
            (requested, None)
        } else {
            let by_text = !choosing.stop.is_empty();
            let thinking = thoughts.behind(prompt.begins_thoughts)?;
            plan(state, toolbox, requested, extras, by_text, thinking, &mut warnings)?
        };
        let decoding = extras.decoding.clone();
        let prompts = vec![prompt.tokens];
        let order = Order { prompts, choosing, requested, finishing, warnings, decoding, is_inside: is_open };
        match order.start(state, turn).await {
            Ok(answers) => Ok((answers, reading)),
            Err(error) => Err(blamed(state, toolbox, beside, error).await),
        }
    }
}
