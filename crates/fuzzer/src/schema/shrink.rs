//! Smaller schemas.

use serde_json::{Map, Value, json};

use super::{LIST, MAP, SCHEMA, refers_well};

/// Returns smaller schemas to try, beginning with those that omit most. All their references are valid.
pub fn smaller(root: &Value) -> Vec<Value> {
    let size = |schema: &Value| schema.to_string().len();
    let mut all = candidates(root);
    all.retain(|schema| size(schema) < size(root) && refers_well(schema));
    all.sort_by_key(size);
    all.dedup();
    all
}

fn candidates(schema: &Value) -> Vec<Value> {
    let Value::Object(keywords) = schema else {
        return if *schema == json!(false) { vec![json!(true)] } else { Vec::new() };
    };
    let mut all = vec![json!(true), json!({})];
    for (keyword, value) in keywords {
        let name = keyword.as_str();
        let mut less = keywords.clone();
        less.shift_remove(keyword);
        all.push(Value::Object(less));
        let with = |value: Value| {
            let mut other = keywords.clone();
            other.insert(keyword.clone(), value);
            Value::Object(other)
        };
        match value {
            _ if SCHEMA.contains(&name) => {
                all.push(lifted(keywords, keyword, value));
                all.extend(candidates(value).into_iter().map(with));
            }
            Value::Array(list) if LIST.contains(&name) => {
                for (at, one) in list.iter().enumerate() {
                    all.push(lifted(keywords, keyword, one));
                    let mut shorter = list.clone();
                    shorter.remove(at);
                    if !shorter.is_empty() {
                        all.push(with(shorter.into()));
                    }
                    all.extend(candidates(one).into_iter().map(|one| {
                        let mut other = list.clone();
                        other[at] = one;
                        with(other.into())
                    }));
                }
            }
            Value::Object(map) if MAP.contains(&name) => {
                for (key, one) in map {
                    all.push(lifted(keywords, keyword, one));
                    let mut shorter = map.clone();
                    shorter.shift_remove(key);
                    all.push(with(shorter.into()));
                    all.extend(candidates(one).into_iter().map(|one| {
                        let mut other = map.clone();
                        other.insert(key.clone(), one);
                        with(other.into())
                    }));
                }
            }
            plain => all.extend(simpler(name, plain).into_iter().map(with)),
        }
    }
    all
}

/// Returns a subschema in place of the schema that contains it; definitions are kept.
fn lifted(keywords: &Map<String, Value>, from: &str, child: &Value) -> Value {
    match (child, keywords.get("$defs")) {
        (Value::Object(child), Some(definitions)) if from != "$defs" && !child.contains_key("$defs") => {
            let mut child = child.clone();
            child.insert("$defs".to_owned(), definitions.clone());
            Value::Object(child)
        }
        _ => child.clone(),
    }
}

/// Returns simpler values of a keyword without subschemas.
fn simpler(keyword: &str, value: &Value) -> Vec<Value> {
    match value {
        Value::Array(list) if list.len() > 1 => (0..list.len())
            .map(|at| {
                let mut shorter = list.clone();
                shorter.remove(at);
                // A list with one type means the same as the type.
                if keyword == "type" && shorter.len() == 1 { shorter.remove(0) } else { shorter.into() }
            })
            .collect(),
        Value::Object(map) => map
            .keys()
            .map(|key| {
                let mut shorter = map.clone();
                shorter.shift_remove(key);
                shorter.into()
            })
            .collect(),
        Value::Number(number) if keyword != "multipleOf" && number.to_string().len() > 1 => {
            vec![json!(0), json!(1)]
        }
        Value::String(text) if keyword == "pattern" && text.chars().count() > 1 => {
            let characters: Vec<char> = text.chars().collect();
            (0..characters.len())
                .map(|at| {
                    let mut shorter = characters.clone();
                    shorter.remove(at);
                    shorter.into_iter().collect::<String>().into()
                })
                .collect()
        }
        _ => Vec::new(),
    }
}
