//! Checks whether a JSON document is accepted with the keys of its objects in some order.
//!
//! A matcher is forked at each key, and the remaining keys are tried. They are tried in the order in which the schema
//! lists them, as far as it can be guessed: the guess affects how long the search takes, but not its result. An inner
//! object is written in the first order that is accepted, independently of the rest.

use maskwright::Matcher;
use serde_json::Value;

use crate::python_json::dumps;

/// The maximum number of queries to the matcher for one document.
const BUDGET: usize = 20_000;

/// The lists of keys in a schema.
pub struct Orders(Vec<Vec<String>>);

impl Orders {
    /// Collects the keys of every `properties` in the schema, and a list of all keys.
    pub fn of(schema: &str) -> Orders {
        let mut lists = Vec::new();
        if let Ok(schema) = serde_json::from_str(schema) {
            collect(&schema, &mut lists);
        }
        lists.push(lists.concat());
        Orders(lists)
    }

    /// Sorts members by the list that contains most of them; members that it does not contain come last.
    fn sort(&self, members: &mut [(&String, &Value)]) {
        let known = |list: &&Vec<String>| members.iter().filter(|(key, _)| list.contains(key)).count();
        // Of lists that contain equally many, the first and shortest is used.
        let Some(list) = self.0.iter().max_by_key(|list| (known(list), std::cmp::Reverse(list.len()))) else {
            return;
        };
        let place = |key: &String| list.iter().position(|one| one == key).unwrap_or(usize::MAX);
        members.sort_by_key(|(key, _)| place(key));
    }
}

fn collect(schema: &Value, lists: &mut Vec<Vec<String>>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                lists.push(properties.keys().cloned().collect());
            }
            map.values().for_each(|inner| collect(inner, lists));
        }
        Value::Array(items) => items.iter().for_each(|inner| collect(inner, lists)),
        _ => {}
    }
}

/// Whether the matcher accepts the document with its keys in some order.
pub fn admits(matcher: &Matcher, orders: &Orders, text: &str) -> bool {
    let Ok(value) = serde_json::from_str(text) else { return false };
    let mut search = Search { orders, budget: BUDGET };
    search.write(matcher.fork(), &value).is_some_and(|matcher| matcher.is_accepting())
}

struct Search<'o> {
    orders: &'o Orders,
    budget: usize,
}

impl Search<'_> {
    /// Returns the matcher after the value.
    fn write(&mut self, matcher: Matcher, value: &Value) -> Option<Matcher> {
        match value {
            Value::Object(map) => {
                let mut members: Vec<(&String, &Value)> = map.iter().collect();
                self.orders.sort(&mut members);
                let open = self.take(matcher, "{")?;
                self.write_members(open, &members, true)
            }
            Value::Array(items) => {
                let mut matcher = self.take(matcher, "[")?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        matcher = self.take(matcher, ", ")?;
                    }
                    matcher = self.write(matcher, item)?;
                }
                self.take(matcher, "]")
            }
            _ => self.take(matcher, &dumps(value)),
        }
    }

    /// Returns the matcher after the members in some order, and the closing brace.
    fn write_members(
        &mut self,
        matcher: Matcher,
        members: &[(&String, &Value)],
        first: bool,
    ) -> Option<Matcher> {
        if members.is_empty() {
            return self.take(matcher, "}");
        }
        for (i, (key, value)) in members.iter().enumerate() {
            let comma = if first { "" } else { ", " };
            let start = format!("{comma}{}: ", dumps(&Value::from(key.as_str())));
            let Some(next) = self.take(matcher.fork(), &start) else { continue };
            let Some(next) = self.write(next, value) else { continue };
            let mut rest = members.to_vec();
            rest.remove(i);
            if let Some(done) = self.write_members(next, &rest, false) {
                return Some(done);
            }
        }
        None
    }

    fn take(&mut self, mut matcher: Matcher, text: &str) -> Option<Matcher> {
        self.budget = self.budget.checked_sub(1)?;
        matcher.accept_bytes(text.as_bytes()).ok()?;
        Some(matcher)
    }
}
