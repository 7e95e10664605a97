//! Notes on how an answer was written, in the object `maskwright` of the body: its mass, its tries, its draft, and its
//! evaluation by a weighted grammar.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use maskwright_runtime::scheduler::{Report, Written};
use serde_json::{Map, Value, json};

use super::Gathered;

/// Notes about the answers to an order. Clones share their content.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    has_mass: bool,
    shared: Arc<Mutex<Shared>>,
}

/// The notes that are collected while answers are written.
#[derive(Debug, Default)]
struct Shared {
    all: Map<String, Value>,
    /// The evaluations by a weighted grammar, by answer.
    judgements: BTreeMap<usize, Value>,
}

impl Notes {
    pub(crate) fn new(has_mass: bool) -> Self {
        Self { has_mass, ..Self::default() }
    }

    /// Adds the result of an exact draw.
    pub(crate) fn exact(&self, report: &Report) {
        let known = report.known;
        let told = json!({
            "exact": report.exact,
            "tries": report.tries,
            "tokens": report.tokens,
            "mass": {"valid": known.valid, "lost": known.lost, "unaccounted": known.unaccounted},
        });
        self.put("sampling", told);
    }

    /// Adds the draft.
    pub(crate) fn draft(&self, text: &str, tokens: usize, is_cut: bool) {
        let finish = if is_cut { "length" } else { "stop" };
        self.put("draft", json!({"text": text, "tokens": tokens, "finish_reason": finish}));
    }

    /// Adds the evaluation of an answer by a weighted grammar.
    pub(crate) fn judge(&self, answer: usize, judgement: Value) {
        self.shared().judgements.insert(answer, judgement);
    }

    fn put(&self, name: &str, value: Value) {
        self.shared().all.insert(name.to_owned(), value);
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all notes into the body of all answers.
    pub(crate) fn tell(&self, body: &mut Value, answers: &[Gathered]) {
        if self.has_mass {
            body["maskwright"]["mass"] = answers.iter().map(|answer| mass(&answer.tokens)).collect();
        }
        let shared = self.shared();
        if !shared.judgements.is_empty() {
            let judgements = (0..answers.len()).map(|answer| shared.judgements.get(&answer).cloned());
            body["maskwright"]["weights"] = judgements.collect();
        }
        shared.tell(body);
    }

    /// Writes all notes into a body of one answer, such as the last piece of a stream.
    pub(crate) fn tell_one(&self, body: &mut Value, index: usize, answer: &Gathered) {
        if self.has_mass {
            body["maskwright"]["mass"] = mass(&answer.tokens);
        }
        let shared = self.shared();
        if let Some(judgement) = shared.judgements.get(&index) {
            body["maskwright"]["weights"] = judgement.clone();
        }
        shared.tell(body);
    }
}

impl Shared {
    fn tell(&self, body: &mut Value) {
        for (name, value) in &self.all {
            body["maskwright"][name] = value.clone();
        }
    }
}

/// Returns the mass of the masks of some tokens: of each, and the sum. A token without a mask has none.
fn mass(tokens: &[Written]) -> Value {
    let each: Vec<Option<f32>> = tokens.iter().map(|written| written.mass).collect();
    // Starting with 0 avoids -0 if there is nothing to add up.
    let sum = each.iter().flatten().fold(0.0, |sum, &mass| sum + f64::from(mass));
    json!({"tokens": each, "sum": sum})
}
