//! Shrinks a find: the first smaller case with a fault of the same kind replaces it, until there is none.

use maskwright::json_schema::{KeyOrder, Whitespace};
use maskwright_oracle::generate::Rng;
use serde_json::Value;

use crate::document::{self, Document};
use crate::find::{Fault, caught};
use crate::judge::{Bench, Unjudged};
use crate::schema;
use crate::settings::Settings;
use crate::walk::{Tried, Walker, look, plan};

/// The maximum number of cases to try. Walks take longer than documents.
const MAX_CASES: usize = 3_000;
const MAX_WALK_CASES: usize = 300;
/// The number of walks that search for the fault in one smaller schema.
const WALKS_PER_SCHEMA: u64 = 10;

/// A case with a fault.
#[derive(Clone, Debug)]
pub struct Case {
    /// The schema.
    pub schema: Value,
    /// The options.
    pub settings: Settings,
    /// The document; `None` if the fault was found by a walk.
    pub document: Option<Document>,
    /// The text after which a walk could not continue; `None` if the fault is about a budget.
    pub prefix: Option<Vec<u8>>,
    /// The seed for white space and walks.
    pub seed: u64,
}

impl Case {
    /// Returns the fault of this case, if it has one.
    pub fn fault(&self, bench: &Bench, tried: Tried) -> Option<Fault> {
        caught(|| self.check(bench, tried)).err()
    }

    fn check(&self, bench: &Bench, tried: Tried) -> Result<(), Fault> {
        let judge = match bench.judge(&self.schema, &self.settings) {
            Ok(judge) => judge,
            Err(Unjudged::Fault(fault)) => return Err(fault),
            Err(_) => return Ok(()),
        };
        if let Some(document) = &self.document {
            judge.pair(document, self.seed)?;
            if let Some(other) = bench.in_other_order(&judge) {
                judge.agrees_with(&other, document, self.seed)?;
            }
            return Ok(());
        }
        let Some(compiled) = judge.compiled() else { return Ok(()) };
        if let Some(prefix) = &self.prefix {
            let mut matcher = compiled.matcher();
            return if matcher.accept_bytes(prefix).is_ok() {
                look(&mut matcher, prefix, tried != Tried::None)
            } else {
                Ok(())
            };
        }
        let mut walker = Walker::of_schema(compiled, judge.schema());
        for number in 0..WALKS_PER_SCHEMA {
            let mut rng = Rng::new(self.seed.wrapping_add(number));
            if let Some(text) = walker.walk(&plan(&mut rng, tried), &mut rng, &mut None)? {
                judge.reads(&text)?;
            }
        }
        Ok(())
    }
}

/// Returns the smallest case that was found, with its fault.
pub fn shrink(bench: &Bench, case: Case, fault: Fault, tried: Tried) -> (Case, Fault) {
    let limit = if case.document.is_some() || case.prefix.is_some() { MAX_CASES } else { MAX_WALK_CASES };
    let (mut best, mut shown, mut tries) = (case, fault, 0);
    loop {
        let better = candidates(&best).into_iter().find_map(|candidate| {
            tries += 1;
            if tries > limit {
                return None;
            }
            let fault = candidate.fault(bench, tried)?;
            fault.is_like(&shown).then_some((candidate, fault))
        });
        match better {
            Some((case, fault)) => (best, shown) = (case, fault),
            None => return (best, shown),
        }
    }
}

fn candidates(case: &Case) -> Vec<Case> {
    let mut all = Vec::new();
    let Settings { order, cases, .. } = case.settings;
    let plain = |order, cases| Settings { order, whitespace: Whitespace::Compact, cases };
    for settings in [plain(KeyOrder::Schema, None), plain(order, None), plain(order, cases)] {
        if settings != case.settings
            && (settings.cases, &settings.whitespace) != (cases, &case.settings.whitespace)
        {
            all.push(Case { settings, ..case.clone() });
        }
    }
    all.extend(schema::smaller(&case.schema).into_iter().map(|schema| Case { schema, ..case.clone() }));
    if let Some(prefix) = &case.prefix {
        // Without one of the parts between commas.
        let parts: Vec<&[u8]> = prefix.split_inclusive(|&byte| byte == b',').collect();
        for at in 0..parts.len() {
            let shorter = [&parts[..at], &parts[at + 1..]].concat().concat();
            all.push(Case { prefix: Some(shorter), ..case.clone() });
        }
    }
    for document in case.document.iter().flat_map(document::smaller) {
        all.push(Case { document: Some(document), ..case.clone() });
    }
    all
}
