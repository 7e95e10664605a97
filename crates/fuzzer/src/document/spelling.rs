//! Other spellings of the same number or string.

use maskwright_oracle::generate::Rng;

/// Returns the text of a spelled string; `None` if it is not a string.
pub fn decode(spelled: &str) -> Option<String> {
    serde_json::from_str(spelled).ok()
}

/// Returns a string with its quotes, and escapes only the characters that must be escaped.
pub fn encode(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the same string with some unnecessary escapes.
pub fn respell_string(spelled: &str, rng: &mut Rng) -> String {
    let Some(text) = decode(spelled) else { return spelled.to_owned() };
    let mut out = String::from("\"");
    for character in text.chars() {
        let mut units = [0; 2];
        match (character, rng.below(3)) {
            ('/', 0) => out.push_str("\\/"),
            (_, 0) => {
                for unit in character.encode_utf16(&mut units) {
                    let upper = rng.one_in(2);
                    let digits = if upper { format!("{unit:04X}") } else { format!("{unit:04x}") };
                    out.push_str("\\u");
                    out.push_str(&digits);
                }
            }
            _ => {
                let plain = encode(&character.to_string());
                out.push_str(&plain[1..plain.len() - 1]);
            }
        }
    }
    out.push('"');
    out
}

/// Returns sign, digits and exponent of ten, without trailing zeros: `-1.50` is (true, "15", -1).
fn parts(number: &str) -> Option<(bool, String, i32)> {
    let (negative, rest) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i32 = exponent.parse().ok()?;
    let digits = format!("{whole}{fraction}");
    let mut exponent = exponent - i32::try_from(fraction.len()).ok()?;
    let mut digits = digits.trim_start_matches('0').to_owned();
    while digits.ends_with('0') {
        digits.pop();
        exponent += 1;
    }
    if digits.is_empty() {
        return Some((false, "0".to_owned(), 0));
    }
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some((negative, digits, exponent))
}

/// Returns a number in plain digits, without a fraction if it is an integer: `1.50e1` is `15`. Returns `None` if it is
/// not a number, or a very long one.
pub fn plain_number(number: &str) -> Option<String> {
    const LONGEST: i32 = 40;
    let (negative, mut digits, exponent) = parts(number)?;
    if exponent.abs() > LONGEST {
        return None;
    }
    if exponent >= 0 {
        digits.push_str(&"0".repeat(exponent.unsigned_abs() as usize));
    } else {
        let fraction = exponent.unsigned_abs() as usize;
        if digits.len() <= fraction {
            digits = format!("{}{digits}", "0".repeat(fraction + 1 - digits.len()));
        }
        digits.insert(digits.len() - fraction, '.');
    }
    Some(format!("{}{digits}", if negative { "-" } else { "" }))
}

/// Returns the same number in another notation.
pub fn respell_number(number: &str, rng: &mut Rng) -> String {
    let Some(plain) = plain_number(number) else { return number.to_owned() };
    let point = plain.contains('.');
    match rng.below(6) {
        0 => format!("{plain}{}", if point { "0" } else { ".0" }),
        1 => format!("{plain}{}", if point { "00" } else { ".00" }),
        2 => format!("{plain}e0"),
        3 => format!("{plain}E+0"),
        4 if plain == "0" => "-0".to_owned(),
        // Multiplied by ten, with an exponent of minus one.
        _ => match plain_number(&format!("{plain}e1")) {
            Some(shifted) => format!("{shifted}e-1"),
            None => plain,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_digits() {
        for (number, plain) in [
            ("1.50e1", "15"),
            ("-0.0", "0"),
            ("1e3", "1000"),
            ("12.5", "12.5"),
            ("25E-3", "0.025"),
            ("-120", "-120"),
        ] {
            assert_eq!(plain_number(number).as_deref(), Some(plain));
        }
    }

    #[test]
    fn other_spellings_are_equal() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let text = "a/\"\\\n\u{e9}\u{1f600}";
            assert_eq!(decode(&respell_string(&encode(text), &mut rng)).as_deref(), Some(text));
            for number in ["0", "-1.5", "20", "0.25"] {
                assert_eq!(plain_number(&respell_number(number, &mut rng)).as_deref(), Some(number));
            }
        }
    }
}
