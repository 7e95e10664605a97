//! Formats numbers, sizes and times for people; bytes and tokens are formatted by [`maskwright::explain`].

use std::time::Duration;

pub(crate) use maskwright::explain::{quoted, token, visible};

/// Returns at most `width` characters of a text.
pub(crate) fn clipped(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut shown: String = text.chars().take(width.saturating_sub(1)).collect();
    shown.push('…');
    shown
}

/// Formats 128256 as "128,256".
pub(crate) fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Formats "1 rule", "2 rules".
pub(crate) fn several(number: usize, word: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {word}{s}", count(number))
}

/// Formats a number of bytes with a unit.
pub(crate) fn size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let bytes_f = bytes as f64;
    match bytes {
        0..10_000 => format!("{} B", count(bytes)),
        10_000..10_000_000 => format!("{:.1} kB", bytes_f / 1e3),
        _ => format!("{:.1} MB", bytes_f / 1e6),
    }
}

/// Formats a time with a unit.
pub(crate) fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..1_000.0 => format!("{micros:.1} µs"),
        ..1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_commas_and_texts_their_end() {
        assert_eq!(clipped("abcdef", 4), "abc…");
        assert_eq!(
            (count(999), count(128_256), count(1_000_000)),
            ("999".into(), "128,256".into(), "1,000,000".into())
        );
    }
}
