//! What a weighted grammar thinks of finished answers: prefix probability, best parse, expected counts.

use std::{collections::BTreeMap, sync::Arc};

use maskwright::weighted::{STEPS, Weights};
use maskwright_runtime::{Event, What};
use serde_json::{Value, json};

use super::notes::Notes;
use crate::{error::Result, state::State, turns::aside};

/// The texts of answers, until they are finished.
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

    /// Takes note of an event; if it is the last of its answer, that is judged.
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

/// A text that takes too long has an error for its report.
fn report(weights: &Weights, text: &str) -> Value {
    match weights.judge(text.as_bytes(), STEPS) {
        Ok(judgement) => judgement.json(weights.grammar()),
        Err(error) => json!({"error": error.message}),
    }
}
