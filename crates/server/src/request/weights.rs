//! `{"type": "pcfg"}`: a grammar with probabilities, and its weight.
//!
//! | field | |
//! |---|---|
//! | `grammar` | the text; by default the grammar of `--pcfg` |
//! | `normalise`, `start` | options for reading it |
//! | `lambda`, `top_k` | λ · log P(token \| text so far) is added to the logits of the best `top_k` allowed tokens, and all other tokens are dropped |
//! | `report` | whether the response contains the grammar's evaluation of the answer |

use maskwright::{Constraint, Options, weighted::Guidance};

use super::Fields;
use crate::{
    error::{ApiError, Result},
    settings::Settings,
};

/// The options of a request for its weighted grammar.
#[derive(Debug, Clone)]
pub(crate) struct Weighing {
    pub(crate) guidance: Guidance,
    /// Whether the response contains the grammar's evaluation of the answer.
    pub(crate) report: bool,
    normalise: bool,
    start: Option<String>,
}

impl Weighing {
    /// Reads the grammar of a format, with its options.
    pub(crate) fn take(format: &mut Fields, settings: &Settings) -> Result<(Constraint, Self)> {
        let given = format.text("grammar")?;
        let source =
            given.or_else(|| settings.pcfg.clone()).ok_or_else(|| ApiError::missing(format.at("grammar")))?;
        let lambda = format.number("lambda", 0.0, Guidance::GREATEST as f32)?;
        let top_k = format.whole("top_k", 0, i64::from(u32::MAX))?;
        let top_k = top_k.map_or(Guidance::TOP_K, |top_k| usize::try_from(top_k).unwrap_or(usize::MAX));
        let guidance = Guidance::new(lambda.map_or(1.0, f64::from), top_k)
            .map_err(|error| ApiError::value(format.at("lambda"), error.to_string()))?;
        let weighing = Self {
            guidance,
            report: format.flag("report")?.unwrap_or(false),
            normalise: format.flag("normalise")?.unwrap_or(false),
            start: format.text("start")?,
        };
        Ok((Constraint::Pcfg(source), weighing))
    }

    /// Changes options for reading the grammar.
    pub(crate) fn apply_to(&self, options: &mut Options) {
        options.pcfg.normalise = self.normalise;
        options.pcfg.start.clone_from(&self.start);
    }
}
