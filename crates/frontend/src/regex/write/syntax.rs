//! Writes the smallest elements – characters, classes, the bounds of repetitions – in the syntax that the Rust `regex`
//! crate, Python's `re` and the reader of this crate share.

use core::fmt::Write;

use maskwright_grammar::CharSet;

/// Returns the bounds of a repetition.
pub(super) fn times(min: u32, max: Option<u32>) -> String {
    match (min, max) {
        (0, None) => "*".into(),
        (1, None) => "+".into(),
        (0, Some(1)) => "?".into(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) if min == max => format!("{{{min}}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    }
}

/// Returns a class for one character of a set.
pub(super) fn class(set: &CharSet) -> String {
    let mut out = String::new();
    if let Some(c) = set.single() {
        push_char(c, &mut out);
        return out;
    }
    if set.is_all() {
        // Both halves together are every character, in every dialect.
        return r"[\s\S]".into();
    }
    let outside = set.complement();
    // A set with the last character is usually shorter when written as the complement.
    let negated = set.contains(char::MAX);
    out.push_str(if negated { "[^" } else { "[" });
    for &(first, last) in if negated { outside.ranges() } else { set.ranges() } {
        push_char(first, &mut out);
        if first != last {
            if u32::from(last) > u32::from(first) + 1 {
                out.push('-');
            }
            push_char(last, &mut out);
        }
    }
    out.push(']');
    out
}

/// Writes a character, escaped if it has a special meaning or would be invisible. Special punctuation is always
/// escaped: some of it is special only inside classes, or only in one of the dialects.
fn push_char(c: char, out: &mut String) {
    let number = u32::from(c);
    // Writing to a string cannot fail.
    let _ = match c {
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' | '-' | '&'
        | '~' | '#' => {
            write!(out, "\\{c}")
        }
        ' '..='~' => write!(out, "{c}"),
        _ if c.is_alphabetic() => write!(out, "{c}"),
        _ if number < 0x80 => write!(out, "\\x{number:02x}"),
        _ if number <= 0xFFFF => write!(out, "\\u{number:04x}"),
        _ => write!(out, "\\U{number:08x}"),
    };
}
