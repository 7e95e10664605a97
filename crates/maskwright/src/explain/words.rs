//! Describes bytes, byte sets and tokens in words.

use maskwright_automata::ByteSet;
use maskwright_vocab::{TokenId, Vocabulary};

/// Quotes bytes as text, with escapes for invisible characters and invalid UTF-8.
pub fn quoted(bytes: &[u8]) -> String {
    format!("`{}`", visible(bytes))
}

/// Returns bytes as text, with escapes for invisible characters and invalid UTF-8.
pub fn visible(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || (c != ' ' && c.is_whitespace()) || c == '\u{feff}' {
                shown.extend(c.escape_default());
            } else {
                shown.push(c);
            }
        }
        shown.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02X}")));
    }
    shown
}

/// Returns a token's text, or its name if it is special.
pub fn token(vocabulary: &Vocabulary, token: TokenId) -> String {
    match vocabulary.special_name(token) {
        Some(name) => name.to_owned(),
        None => visible(vocabulary.bytes(token)),
    }
}

/// Describes a set of bytes for people: "`0`–`9`, `-` or a space".
pub fn expected(set: &ByteSet) -> String {
    let mut parts = printable(set);
    for (byte, name) in
        [(b' ', "a space"), (b'\n', "a line break"), (b'\t', "a tab"), (b'\r', "a carriage return")]
    {
        if set.contains(byte) {
            parts.push(name.into());
        }
    }
    let others = (0..0x20).chain([0x7F]).filter(|&b| !matches!(b, b'\n' | b'\t' | b'\r') && set.contains(b));
    if others.count() > 0 {
        parts.push("a control character".into());
    }
    parts.extend(beyond_ascii(set));
    listed(&parts)
}

/// Lists the visible ASCII characters of a set: as ranges, or as "any but" if nearly all are in it.
fn printable(set: &ByteSet) -> Vec<String> {
    let visible = ByteSet::range(b'!', b'~');
    let (inside, outside) = (set.intersection(visible), visible.difference(*set));
    if inside.is_empty() {
        return Vec::new();
    }
    if outside.is_empty() {
        return vec!["any visible ASCII character".into()];
    }
    if outside.len() <= 6 {
        let but: Vec<String> = outside.iter().map(|byte| quoted(&[byte])).collect();
        return vec![format!("any visible ASCII character but {}", but.join(" "))];
    }
    inside.ranges().into_iter().flat_map(|(low, high)| range(low, high)).collect()
}

/// Describes a range of characters. Short ranges are spelled out.
fn range(low: u8, high: u8) -> Vec<String> {
    if high - low < 3 {
        (low..=high).map(|byte| quoted(&[byte])).collect()
    } else {
        vec![format!("{}–{}", quoted(&[low]), quoted(&[high]))]
    }
}

/// Describes the bytes of non-ASCII characters.
fn beyond_ascii(set: &ByteSet) -> Option<String> {
    let leads = set.intersection(ByteSet::range(0xC2, 0xF4));
    let rest = set.intersection(ByteSet::range(0x80, 0xFF)).difference(leads);
    let hex = |set: &ByteSet| {
        let ranges = set.ranges().into_iter();
        let one = |(a, b): (u8, u8)| if a == b { format!("{a:02X}") } else { format!("{a:02X}–{b:02X}") };
        ranges.map(one).collect::<Vec<_>>().join(" ")
    };
    match (leads.is_empty(), rest.is_empty()) {
        (true, true) => None,
        (false, true) if leads == ByteSet::range(0xC2, 0xF4) => Some("any character beyond ASCII".into()),
        (false, true) => Some(format!("a character beyond ASCII that begins with byte {}", hex(&leads))),
        (true, false) => Some(format!("the rest of a character (byte {})", hex(&rest))),
        (false, false) => Some(format!("byte {}", hex(&leads.union(rest)))),
    }
}

/// Joins parts as "a, b or c".
pub fn listed(parts: &[String]) -> String {
    match parts {
        [] => "nothing".into(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_said_in_words() {
        let mut set = ByteSet::range(b'0', b'9');
        set.insert(b'-');
        set.insert(b' ');
        assert_eq!(expected(&set), "`-`, `0`–`9` or a space");
        let mut text = ByteSet::range(0x20, 0x7E).difference(ByteSet::byte(b'"'));
        text.insert_range(0xC2, 0xF4);
        assert_eq!(
            expected(&text),
            "any visible ASCII character but `\"`, a space or any character beyond ASCII"
        );
        assert_eq!(expected(&ByteSet::range(0x80, 0xBF)), "the rest of a character (byte 80–BF)");
        assert_eq!(expected(&ByteSet::EMPTY), "nothing");
    }

    #[test]
    fn nothing_invisible_is_shown_as_it_is() {
        assert_eq!(visible(b"a\n\xC3\xA9\xFF \x1b"), "a\\né\\xFF \\u{1b}");
    }
}
