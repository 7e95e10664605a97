//! Writes JSON text like Python's `json.dumps(value, ensure_ascii=False)`.
//!
//! Published measurements pass that text to the engines, so the harness must write the same bytes: `", "` and `": "` as
//! separators, keys in the file's order, only `"`, `\` and control characters escaped, and numbers as Python prints
//! them after parsing: `1E5` becomes `100000.0`, `-0` becomes `0`, a long integer stays exact.

use std::fmt::Write;

use serde_json::Value;

/// Writes `value` as Python would.
pub fn dumps(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

// Recursion is limited: the parser that created the value refuses more than 128 levels.
fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, &number.to_string()),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (position, (key, member)) in members.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                write_string(out, key);
                out.push_str(": ");
                write_value(out, member);
            }
            out.push('}');
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn write_number(out: &mut String, literal: &str) {
    if !literal.contains(['.', 'e', 'E']) {
        out.push_str(if literal == "-0" { "0" } else { literal });
        return;
    }
    // A literal of the JSON grammar always parses; a number that is too large becomes infinite, as in Python.
    let number: f64 = literal.parse().unwrap_or(f64::NAN);
    out.push_str(&float_text(number));
}

/// Returns Python's `repr` of a float: the shortest digits that parse to it, plain between 1e-4 and 1e16, else with
/// exponent.
fn float_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let scientific = format!("{number:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return "NaN".into() };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{number}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(json: &str) -> String {
        dumps(&serde_json::from_str(json).expect("the test's text is JSON"))
    }

    #[test]
    fn separators_and_order() {
        assert_eq!(round_trip(r#"{"b":[1,2,{}],"a":null}"#), r#"{"b": [1, 2, {}], "a": null}"#);
    }

    #[test]
    fn escapes() {
        assert_eq!(round_trip(r#""\u00e9\u0001\n\/\u007f\"""#), "\"é\\u0001\\n/\u{7f}\\\"\"");
    }

    /// Expected values printed by Python 3.11.
    #[test]
    fn numbers() {
        for (json, python) in [
            ("1.0", "1.0"),
            ("1E5", "100000.0"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("1e16", "1e+16"),
            ("123456789012345678.0", "1.2345678901234568e+17"),
            ("1e15", "1000000000000000.0"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.5e-7", "1.5e-07"),
            ("1e400", "Infinity"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("5e-324", "5e-324"),
        ] {
            assert_eq!(round_trip(json), python, "{json}");
        }
    }
}
