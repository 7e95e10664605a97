//! Runs the stages: from a schema to a grammar and a report.

use maskwright_grammar::Grammar;

use super::cases::Algebra;
use super::context::Context;
use super::emit::{Emitter, Finished};
use super::error::SchemaError;
use super::json::Value;
use super::options::Options;
use super::report::Report;
use super::schemas::{Source, load, metaschemas};

/// Lowers a whole document.
///
/// Three facts become known only during the work: which other documents references lead to, whether the dynamic scope
/// matters, and which keys have no possible value. When a pass finds such a fact, the work is repeated with it.
pub(super) fn lower(root: &Value<'_>, options: &Options) -> Result<(Grammar, Report), SchemaError> {
    let mut fetched: Vec<(String, serde_json::Value)> = Vec::new();
    let mut tracks_scopes = false;
    loop {
        let documents: Vec<(String, Value<'_>)> =
            fetched.iter().map(|(address, document)| (address.clone(), Value::of(document))).collect();
        let Options { strictness, formats, .. } = *options;
        let source = Source { root, documents: &documents, strictness, formats, tracks_scopes };
        let mut context = Context::new(options);
        let schemas = load(source, &mut context.report.paths);
        let mut emitter = Emitter::new(Algebra::new(context, schemas));
        let mut start = emitter.emit();
        if emitter.algebra.needs_scopes && !tracks_scopes {
            tracks_scopes = true;
            continue;
        }
        let found = fetch(&emitter.algebra.missing, &fetched, options);
        if found.is_empty() {
            loop {
                match emitter.finish(start) {
                    Finished::Whole(result) => return result,
                    Finished::Again(again) => emitter = *again,
                }
                start = emitter.emit();
            }
        }
        drop(emitter);
        drop(documents);
        fetched.extend(found);
    }
}

/// Returns the missing documents that the caller's resolver finds or that are well known.
fn fetch(
    missing: &[String],
    known: &[(String, serde_json::Value)],
    options: &Options,
) -> Vec<(String, serde_json::Value)> {
    let mut found: Vec<(String, serde_json::Value)> = Vec::new();
    for address in missing {
        let is_known = known.iter().chain(&found).any(|(one, _)| one == address);
        if is_known || known.len() + found.len() >= options.limits.documents {
            continue;
        }
        let given = options.resolver.as_ref().and_then(|resolver| resolver.find(address));
        if let Some(document) = given.or_else(|| metaschemas::find(address))
            && !is_deeper(&document, options.limits.depth)
        {
            found.push((address.clone(), document));
        }
    }
    found
}

/// Checks whether arrays and objects are nested deeper than the limit. After this check, all other walks may recurse.
pub(super) fn is_deeper(value: &serde_json::Value, limit: usize) -> bool {
    use serde_json::Value;
    let mut work = vec![(value, 0)];
    while let Some((value, depth)) = work.pop() {
        if depth > limit {
            return true;
        }
        let mut descend = |part| {
            if matches!(part, &Value::Array(_) | &Value::Object(_)) {
                work.push((part, depth + 1));
            }
        };
        match value {
            Value::Array(items) => items.iter().for_each(&mut descend),
            Value::Object(map) => map.values().for_each(&mut descend),
            _ => {}
        }
    }
    false
}
