//! Is a JSON document admitted if the keys of its objects stand in another order?
//!
//! A matcher is forked at each key and asked which of the keys that are left it takes next; that finds an order without
//! knowing the schema. An inner object is written in the first order that works for it by itself.

use maskwright::Matcher;
use serde_json::Value;

use crate::python_json::dumps;

/// How often the matcher may be asked about one document.
const BUDGET: usize = 20_000;

/// Whether the matcher admits the document with its keys in some order.
pub fn admits(matcher: &Matcher, text: &str) -> bool {
    let Ok(value) = serde_json::from_str(text) else { return false };
    let mut budget = BUDGET;
    write(matcher.fork(), &value, &mut budget).is_some_and(|mut matcher| matcher.is_accepting())
}

/// The matcher after the value.
fn write(matcher: Matcher, value: &Value, budget: &mut usize) -> Option<Matcher> {
    match value {
        Value::Object(map) => {
            let members: Vec<(&String, &Value)> = map.iter().collect();
            let open = take(matcher, "{", budget)?;
            write_members(open, &members, true, budget)
        }
        Value::Array(items) => {
            let mut matcher = take(matcher, "[", budget)?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    matcher = take(matcher, ", ", budget)?;
                }
                matcher = write(matcher, item, budget)?;
            }
            take(matcher, "]", budget)
        }
        _ => take(matcher, &dumps(value), budget),
    }
}

/// The matcher after the members in some order, and the closing brace.
fn write_members(
    matcher: Matcher,
    members: &[(&String, &Value)],
    first: bool,
    budget: &mut usize,
) -> Option<Matcher> {
    if members.is_empty() {
        return take(matcher, "}", budget);
    }
    for (i, (key, value)) in members.iter().enumerate() {
        let comma = if first { "" } else { ", " };
        let start = format!("{comma}{}: ", dumps(&Value::from(key.as_str())));
        let Some(next) = take(matcher.fork(), &start, budget) else { continue };
        let Some(next) = write(next, value, budget) else { continue };
        let mut rest = members.to_vec();
        rest.remove(i);
        if let Some(done) = write_members(next, &rest, false, budget) {
            return Some(done);
        }
    }
    None
}

fn take(mut matcher: Matcher, text: &str, budget: &mut usize) -> Option<Matcher> {
    *budget = budget.checked_sub(1)?;
    matcher.accept_bytes(text.as_bytes()).ok()?;
    Some(matcher)
}
