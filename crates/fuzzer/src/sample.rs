//! Random values of a type.

use maskwright_oracle::generate::Rng;
use serde_json::{Map, Value, json};

use crate::document::KEYS;

/// Formats, each with texts that have it or nearly have it.
pub const FORMATS: [(&str, &[&str]); 16] = [
    ("date", &["2024-02-29", "2023-02-29", "1999-12-31", "2024-1-01", "2024-13-01"]),
    ("time", &["12:00:00Z", "23:59:60Z", "12:00:00+01:30", "24:00:00Z", "12:00:00"]),
    ("date-time", &["2024-02-29T12:00:00Z", "2024-02-29t12:00:00.5z", "2024-02-30T12:00:00Z"]),
    ("duration", &["P1D", "PT1H", "P1W", "P", "P1Y2M", "PT", "P1YT1S"]),
    ("email", &["a@b.c", "a.b@c", "a", "@b", "a@", "a..b@c"]),
    ("hostname", &["a.b", "a-b", "-a", "a-", "a..b", "A1"]),
    ("ipv4", &["1.2.3.4", "256.1.1.1", "1.2.3", "01.2.3.4", "0.0.0.0"]),
    ("ipv6", &["::", "::1", "1::2", "1:2:3:4:5:6:7:8", "1:2", "::1.2.3.4", ":::"]),
    ("uri", &["a:b", "http://a/b?c#d", "a", "//a", "http://[::1]/"]),
    ("uri-reference", &["", "a", "#a", "a b", "\\"]),
    ("iri", &["a:é", "é:a", "http://é/"]),
    ("uri-template", &["{a}", "a{b,c}", "{", "{}", "a"]),
    ("uuid", &["00000000-0000-0000-0000-000000000000", "A0000000-0000-0000-0000-00000000000f", "0"]),
    ("json-pointer", &["", "/a", "/a~0", "a", "/~", "/~1/b"]),
    ("relative-json-pointer", &["0", "1/a", "0#", "01", "-1", "/a"]),
    ("regex", &["a", "a|b", "[a]", "(", "a{2}", "*"]),
];

/// Returns any value, nested at most `depth` levels.
pub fn any(rng: &mut Rng, depth: usize) -> Value {
    let kinds = ["null", "boolean", "integer", "number", "string", "array", "object"];
    of_type(kinds[rng.below(if depth == 0 { 5 } else { 7 })], rng, depth)
}

/// Returns a value of a type.
pub fn of_type(kind: &str, rng: &mut Rng, depth: usize) -> Value {
    match kind {
        "null" => Value::Null,
        "boolean" => json!(rng.one_in(2)),
        "integer" => integer(rng),
        "number" => {
            if rng.one_in(2) {
                integer(rng)
            } else {
                json!((f64::from(small(rng, 40)) - 16.0) / 4.0)
            }
        }
        "string" => json!(word(rng)),
        "array" => {
            let count = rng.below(4);
            Value::Array((0..count).map(|_| any(rng, depth.saturating_sub(1))).collect())
        }
        _ => {
            let count = rng.below(4);
            let mut map = Map::new();
            for _ in 0..count {
                map.insert(key(rng), any(rng, depth.saturating_sub(1)));
            }
            map.into()
        }
    }
}

fn integer(rng: &mut Rng) -> Value {
    match rng.below(8) {
        0 => json!([100, 1000, -100, 20, 1_000_000_007, 300][rng.below(6)]),
        _ => json!(small(rng, 14) - 5),
    }
}

/// Returns a number below a small bound.
pub(crate) fn small(rng: &mut Rng, bound: i32) -> i32 {
    (rng.bits() % u64::from(bound.unsigned_abs())) as i32
}

/// Returns a short text.
pub(crate) fn word(rng: &mut Rng) -> String {
    const LETTERS: [&str; 14] = ["a", "a", "a", "b", "b", "c", "bc", "0", "1", "é", "\\", "\"", "\n", "😀"];
    let among = if rng.one_in(2) { 6 } else { LETTERS.len() };
    (0..rng.below(5)).map(|_| LETTERS[rng.below(among)]).collect()
}

/// Returns a key that schemas may use.
pub(crate) fn key(rng: &mut Rng) -> String {
    let among = if rng.one_in(2) { 3 } else { KEYS.len() };
    KEYS[rng.below(among)].to_owned()
}
