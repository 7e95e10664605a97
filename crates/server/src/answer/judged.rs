//! Evaluates finished answers with a weighted grammar: prefix probability, best parse, expected counts.

use std::{collections::BTreeMap, sync::Arc};

use maskwright::weighted::{STEPS, Weights};
use maskwright_runtime::{Event, What};
use serde_json::{Value, json};

use super::notes::Notes;
use crate::{error::Result, state::State, turns::aside};

/// The texts of unfinished answers.
#[derive(Debug)]
pub(crate) struct Judged {
    state: Arc<State>,
    weights: Arc<Weights>,
    texts: BTreeMap<usize, String>,
}

impl Judged {
    pub(crate) fn new(state: Arc<State>, weights: Arc<Weights>) -> Self {
        Self { state, weights, texts: BTreeMap::new() }
    }

    /// Adds an event. If it is the last of its answer, the answer is evaluated.
    pub(crate) async fn note(&mut self, event: &Event, notes: &Notes) -> Result<()> {
        let text = self.texts.entry(event.answer).or_default();
        match &event.what {
            What::More { text: more, .. } => *text += more,
            What::Failed(_) => {}
            What::Finished { text: more, .. } => {
                let (text, weights) = (std::mem::take(text) + more, self.weights.clone());
                let report = aside(&self.state, move || Ok(report(&weights, &text))).await?;
                notes.judge(event.answer, report);
            }
        }
        Ok(())
    }
}

/// Returns the report about a text. If that takes too long, it is an error message.
fn report(weights: &Weights, text: &str) -> Value {
    match weights.judge(text.as_bytes(), STEPS) {
        Ok(judgement) => judgement.json(weights.grammar()),
        Err(error) => json!({"error": error.message}),
    }
}
