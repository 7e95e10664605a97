//! Equality of JSON values as the standard defines it: numbers by value, objects regardless of order.

use super::decimal::Decimal;
use super::json::Value;

/// Checks whether two values are equal.
pub(crate) fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || Decimal::parse(a) == Decimal::parse(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Returns a hashable text that two values share if and only if they are the [`same`].
pub(crate) fn canonical(value: &Value<'_>) -> Box<str> {
    let mut out = String::new();
    write(value, &mut out);
    out.into()
}

fn write(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Null => out.push('n'),
        Value::Bool(flag) => out.push(if *flag { 't' } else { 'f' }),
        Value::Number(number) => {
            let number = Decimal::parse(number);
            out.push(if number.is_negative() { '-' } else { '+' });
            out.extend(number.digits().iter().map(|digit| char::from(*digit)));
            out.push('e');
            out.push_str(&number.exponent().to_string());
            out.push(';');
        }
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            items.iter().for_each(|item| write(item, out));
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&str, &Value<'_>)> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, member) in members {
                write_text(name, out);
                write(member, out);
            }
            out.push('}');
        }
    }
}

/// Writes the length first, so that a text cannot be confused with what follows it.
fn write_text(text: &str, out: &mut String) {
    out.push_str(&text.len().to_string());
    out.push(':');
    out.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_canonical_text() {
        let texts = [
            "1",
            "1.0",
            "10e-1",
            "\"1\"",
            "-1",
            "0",
            "-0",
            "[1]",
            "[1.0]",
            "[[1]]",
            "{}",
            "[]",
            "null",
            "\"n\"",
            r#"{"a":1,"b":2}"#,
            r#"{"b":2,"a":1.0}"#,
            r#"{"a":1}"#,
            r#"["ab","c"]"#,
            r#"["a","bc"]"#,
        ];
        let read = |text| Value::read(text, 10).expect("JSON");
        for a in texts {
            for b in texts {
                let (x, y) = (read(a), read(b));
                assert_eq!(same(&x, &y), canonical(&x) == canonical(&y), "{a} and {b}");
            }
        }
        assert!(same(&read("1.0"), &read("1")));
        assert!(!same(&read("\"1\""), &read("1")));
    }
}
