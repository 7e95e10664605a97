//! Escapes: the meaning of a backslash and the characters after it.

use maskwright_grammar::CharSet;

/// The meaning of an escape.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// One character.
    Char(char),
    /// A set of characters: `\d` and similar escapes, which are allowed only in a class.
    Set(CharSet),
}

/// The reason why an escape is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadEscape {
    pub(crate) message: String,
    pub(crate) help: String,
}

/// Reads the escape at the start of `text`, which is a backslash. Returns its meaning, and in either case its length in
/// bytes.
pub(crate) fn read(text: &str) -> (Result<Escape, BadEscape>, usize) {
    let Some(letter) = text.chars().nth(1).filter(|c| *c != '\n') else {
        return (Err(at_line_end()), 1);
    };
    let len = 1 + letter.len_utf8();
    let digits = &text[len..];
    match letter {
        'x' => fixed_hex(digits, letter, 2),
        'u' if digits.starts_with('{') => braced_hex(digits),
        'u' => fixed_hex(digits, letter, 4),
        'U' => fixed_hex(digits, letter, 8),
        _ => (simple(letter), len),
    }
}

fn at_line_end() -> BadEscape {
    BadEscape {
        message: "a backslash at the end of the line escapes nothing".into(),
        help: "write `\\\\` for a backslash and `\\n` for a line break".into(),
    }
}

/// Reads escapes of one letter.
fn simple(letter: char) -> Result<Escape, BadEscape> {
    Ok(Escape::Char(match letter {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' => '\u{1B}',
        'f' => '\u{C}',
        'v' => '\u{B}',
        c if c.is_ascii_punctuation() => c,
        c => return named_set(c).map(Escape::Set).ok_or_else(|| unknown(c)),
    }))
}

/// Returns `\d`, `\s`, `\w` and their complements, limited to ASCII.
fn named_set(letter: char) -> Option<CharSet> {
    let set = match letter.to_ascii_lowercase() {
        'd' => CharSet::from_ranges([('0', '9')]),
        's' => CharSet::from_ranges([('\t', '\r'), (' ', ' ')]),
        'w' => CharSet::from_ranges([('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { set.complement() } else { set })
}

fn unknown(letter: char) -> BadEscape {
    let shown = show(letter);
    BadEscape {
        message: format!("`\\` before {shown} is no escape"),
        help: format!("write `\\\\` for a backslash; {shown} itself needs none"),
    }
}

/// Reads `\xHH`, `\uHHHH` and `\UHHHHHHHH`, with exactly this number of digits.
fn fixed_hex(digits: &str, letter: char, count: usize) -> (Result<Escape, BadEscape>, usize) {
    let found = digits.bytes().take(count).take_while(u8::is_ascii_hexdigit).count();
    let len = 2 + found;
    if found < count {
        let bad = BadEscape {
            message: format!("`\\{letter}` needs {count} hexadecimal digits, but {found} follow"),
            help: format!(
                "write `\\{letter}{}`, or `\\u{{…}}` with as many digits as you like",
                "0".repeat(count)
            ),
        };
        return (Err(bad), len);
    }
    let code = hex(&digits[..count]);
    (scalar(code, &digits[count..]), len)
}

/// Reads `\u{H…}`, with one to eight digits.
fn braced_hex(text: &str) -> (Result<Escape, BadEscape>, usize) {
    let digits = text[1..].bytes().take_while(u8::is_ascii_hexdigit).count();
    let closed = text[1 + digits..].starts_with('}');
    let len = 3 + digits + usize::from(closed);
    if !closed || digits == 0 {
        let bad = BadEscape {
            message: "`\\u{` needs hexadecimal digits and a closing `}`".into(),
            help: "write for example `\\u{e9}` for é".into(),
        };
        return (Err(bad), len);
    }
    let code = if digits <= 8 { hex(&text[1..=digits]) } else { u32::MAX };
    (scalar(code, ""), len)
}

fn hex(digits: &str) -> u32 {
    digits.chars().filter_map(|c| c.to_digit(16)).fold(0, |code, digit| code << 4 | digit)
}

/// Returns the character with this code. `rest` is the following text, for recognizing the other half of a pair.
fn scalar(code: u32, rest: &str) -> Result<Escape, BadEscape> {
    if let Some(c) = char::from_u32(code) {
        return Ok(Escape::Char(c));
    }
    if code > 0x10_FFFF {
        let message = "no character has a number above 10FFFF".into();
        return Err(BadEscape { message, help: "write a number from 0 to 10FFFF".into() });
    }
    let low = rest.strip_prefix("\\u").and_then(|rest| rest.get(..4)).map(hex);
    let help = match low {
        Some(low @ 0xDC00..0xE000) if code < 0xDC00 => {
            format!(
                "write the pair as one character: `\\u{{{:X}}}`",
                0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            )
        }
        _ => "write the whole character, as itself or as `\\u{…}`".into(),
    };
    Err(BadEscape {
        message: format!("`\\u{code:X}` is half of a surrogate pair, which is not a character"),
        help,
    })
}

/// Returns a character in a form that is readable in a message.
pub(crate) fn show(c: char) -> String {
    if c.is_control() || (c.is_whitespace() && c != ' ') {
        format!("U+{:04X}", u32::from(c))
    } else {
        format!("`{c}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn char_of(text: &str) -> (char, usize) {
        match read(text) {
            (Ok(Escape::Char(c)), len) => (c, len),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn each_form_takes_exactly_its_digits() {
        assert_eq!(char_of(r"\n1"), ('\n', 2));
        assert_eq!(char_of(r"\x411"), ('A', 4));
        assert_eq!(char_of(r"\u00e91"), ('é', 6));
        assert_eq!(char_of(r"\U0001F6001"), ('😀', 10));
        assert_eq!(char_of(r"\u{1F600}1"), ('😀', 9));
        assert_eq!(char_of(r"\u{41}"), ('A', 6));
        assert_eq!(char_of(r"\]"), (']', 2));
        assert_eq!(char_of(r"\xFF"), ('ÿ', 4));
    }

    #[test]
    fn a_pair_is_put_together_in_the_help() {
        let (result, len) = read(r"\uD83D\uDE00");
        assert_eq!(len, 6);
        assert!(result.is_err_and(|bad| bad.help.contains(r"\u{1F600}")));
    }

    #[test]
    fn what_cannot_be_read_is_refused_whatever_follows() {
        for text in [
            r"\",
            "\\\n",
            r"\x",
            r"\xg",
            r"\x4é",
            r"\u12",
            r"\u{",
            r"\u{}",
            r"\u{é}",
            r"\u{110000}",
            r"\U00110000",
            r"\uD800\u",
            r"\u{FFFFFFFFFFFFFFFFFFFFF}",
            r"\z",
            r"\é",
        ] {
            let (result, len) = read(text);
            assert!(result.is_err(), "{text}");
            assert!(text.is_char_boundary(len), "{text}");
        }
    }
}
