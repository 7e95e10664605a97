//! A canonical form of JSON values: bytes that are equal where the values are equal.
//!
//! Where the items of an array or the keys of an object must differ, two texts have to be compared as values. So each
//! value is brought into one *form*: strings decoded, numbers as digits and an exponent, members sorted, no white
//! space.
//!
//! ```text
//!   "\u0061"                   "a"
//!   1.50e1                     15e0
//!   { "b": [ ], "a": -0 }      {"a":0e0,"b":[]}
//! ```
//! Strings keep the escapes of `"` and `\` and no others. So the form of a prefix is a prefix of the form, which
//! [`prefix`] relies on.
//!
//! The beginning of a value is found by reading backwards from its end: a quote begins a string if an even number of
//! backslashes comes before it.

use std::borrow::Cow;

/// Values that nest deeper are compared as texts.
const MAX_DEPTH: usize = 256;

/// Returns the form of a string.
pub(crate) fn of_string(text: &str) -> Box<[u8]> {
    let mut form = Vec::with_capacity(text.len() + 2);
    form.push(b'"');
    text.bytes().for_each(|byte| push_plain(byte, &mut form));
    form.push(b'"');
    form.into()
}

/// Returns a JSON text whose form is the given form of a string.
pub(crate) fn spelled(form: &[u8]) -> Cow<'_, [u8]> {
    let is_lone = |byte: u8, next: u8| byte == 0xED && next >= 0xA0;
    if !form.iter().any(|byte| *byte < b' ') && !form.windows(2).any(|pair| is_lone(pair[0], pair[1])) {
        return Cow::Borrowed(form);
    }
    let (mut text, mut rest) = (Vec::with_capacity(form.len() + 6), form);
    while let [byte, tail @ ..] = rest {
        let (unit, tail) = match *tail {
            _ if *byte < b' ' => (u32::from(*byte), tail),
            [second, third, ref tail @ ..] if is_lone(*byte, second) => {
                (0xD000 | u32::from(second & 0x3F) << 6 | u32::from(third & 0x3F), tail)
            }
            _ => {
                text.push(*byte);
                rest = tail;
                continue;
            }
        };
        text.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
        rest = tail;
    }
    Cow::Owned(text)
}

/// Checks whether a form is that of an array or an object.
pub(crate) fn is_nested(form: &[u8]) -> bool {
    matches!(form.first(), Some(b'[' | b'{'))
}

/// Returns the form of the value at the end of a text, or `None` if the text does not end with a value.
pub(crate) fn ending(text: &[u8]) -> Option<Vec<u8>> {
    let text = &text[start(text)?..];
    let mut form = Vec::with_capacity(text.len());
    let mut reader = Reader { text, at: 0 };
    match reader.value(&mut form, MAX_DEPTH) {
        Some(()) if reader.at == text.len() => Some(form),
        _ => Some(text.to_vec()),
    }
}

/// Returns the position at which the value at the end of a text begins.
pub(crate) fn start(text: &[u8]) -> Option<usize> {
    match text.last()? {
        b'"' => opening_quote(&text[..text.len() - 1], usize::MAX),
        b'}' | b']' => opening_bracket(text),
        _ => {
            let scalar = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
            let len = text.iter().rev().take_while(|byte| scalar(byte)).count();
            (len > 0).then(|| text.len() - len)
        }
    }
}

/// Checks whether a text ends in a number with a fraction or an exponent.
pub(crate) fn ends_in_fraction(text: &[u8]) -> bool {
    let number = &text[start(text).unwrap_or(text.len())..];
    matches!(number.first(), Some(b'-' | b'0'..=b'9'))
        && number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// Finds the last unescaped quote among the last `far` bytes.
pub(crate) fn opening_quote(text: &[u8], far: usize) -> Option<usize> {
    let first = text.len().saturating_sub(far);
    let quotes = (first..text.len()).rev().filter(|&at| text[at] == b'"');
    quotes.into_iter().find(|&at| is_even(text[..at].iter().rev().take_while(|byte| **byte == b'\\').count()))
}

fn is_even(count: usize) -> bool {
    count.is_multiple_of(2)
}

fn opening_bracket(text: &[u8]) -> Option<usize> {
    let (mut at, mut open) = (text.len(), 0usize);
    while at > 0 {
        at -= 1;
        match text[at] {
            b'"' => at = opening_quote(&text[..at], usize::MAX)?,
            b'}' | b']' => open += 1,
            b'{' | b'[' => {
                open -= 1;
                if open == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the form of the beginning of a string, up to its last complete character, and whether that is all of it.
/// `text` starts after the quote.
pub(crate) fn prefix(text: &[u8]) -> (Vec<u8>, bool) {
    let mut form = Vec::with_capacity(text.len() + 1);
    form.push(b'"');
    let mut reader = Reader { text, at: 0 };
    while reader.peek().is_some_and(|byte| byte != b'"') {
        if reader.character(&mut form).is_none() {
            return (form, false);
        }
    }
    (form, true)
}

/// Returns the forms of the complete strings in a text. The text must begin outside of a string.
pub(crate) fn strings(text: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    let mut reader = Reader { text, at: 0 };
    while let Some(quote) = text[reader.at..].iter().position(|&byte| byte == b'"') {
        reader.at += quote;
        let mut form = Vec::new();
        if reader.string(&mut form).is_none() {
            break;
        }
        forms.push(form);
    }
    forms
}

/// Returns the form of the end of a string, with its quote, or `None` if there is no unescaped quote.
pub(crate) fn rest(text: &[u8]) -> Option<Vec<u8>> {
    let mut form = Vec::with_capacity(text.len());
    let mut reader = Reader { text, at: 0 };
    while reader.peek()? != b'"' {
        reader.character(&mut form)?;
    }
    form.push(b'"');
    Some(form)
}

/// Appends a byte that needs no decoding.
fn push_plain(byte: u8, form: &mut Vec<u8>) {
    if matches!(byte, b'"' | b'\\') {
        form.push(b'\\');
    }
    form.push(byte);
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, form: &mut Vec<u8>, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        self.space();
        match self.peek()? {
            b'"' => self.string(form),
            b'[' => self.array(form, depth),
            b'{' => self.object(form, depth),
            b'-' | b'0'..=b'9' => self.number(form),
            _ => self.word(form),
        }
    }

    fn word(&mut self, form: &mut Vec<u8>) -> Option<()> {
        let rest = &self.text[self.at..];
        let words: [&[u8]; 3] = [b"true", b"false", b"null"];
        let word = words.into_iter().find(|word| rest.starts_with(word))?;
        form.extend_from_slice(word);
        self.at += word.len();
        Some(())
    }

    fn string(&mut self, form: &mut Vec<u8>) -> Option<()> {
        self.take(b'"')?;
        form.push(b'"');
        while self.peek()? != b'"' {
            self.character(form)?;
        }
        form.push(b'"');
        self.take(b'"')
    }

    /// Reads one character of a string, or one escape.
    fn character(&mut self, form: &mut Vec<u8>) -> Option<()> {
        let byte = self.peek()?;
        if byte != b'\\' {
            // A character beyond ASCII is read as a whole.
            let length = match byte {
                0xC0..=0xDF => 2,
                0xE0..=0xEF => 3,
                0xF0..=0xFF => 4,
                _ => 1,
            };
            form.extend_from_slice(self.text.get(self.at..self.at + length)?);
            self.at += length;
            return Some(());
        }
        let (decoded, length) = match *self.text.get(self.at + 1)? {
            b'u' => {
                let unit = self.unit(self.at)?;
                match self.unit(self.at + 6) {
                    Some(low @ 0xDC00..0xE000) if (0xD800..0xDC00).contains(&unit) => {
                        (0x10000 + ((unit - 0xD800) << 10 | (low - 0xDC00)), 12)
                    }
                    // The other half of the pair is still to come.
                    None if (0xD800..0xDC00).contains(&unit) => return None,
                    _ => (unit, 6),
                }
            }
            b'b' => (8, 2),
            b'f' => (12, 2),
            b'n' => (10, 2),
            b'r' => (13, 2),
            b't' => (9, 2),
            other => (u32::from(other), 2),
        };
        self.at += length;
        match char::from_u32(decoded) {
            Some(c) => {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer).bytes().for_each(|byte| push_plain(byte, form));
            }
            // A lone surrogate is not a character, but must still differ from other values.
            None => form.extend_from_slice(&[
                0xE0 | (decoded >> 12) as u8,
                0x80 | (decoded >> 6 & 0x3F) as u8,
                0x80 | (decoded & 0x3F) as u8,
            ]),
        }
        Some(())
    }

    /// Returns the number after `\u`.
    fn unit(&self, at: usize) -> Option<u32> {
        let escape = self.text.get(at..at + 6)?;
        let digits = escape.strip_prefix(b"\\u")?;
        let digits = core::str::from_utf8(digits).ok()?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    }

    /// Appends all digits except zeros at both ends, and an exponent of ten.
    fn number(&mut self, form: &mut Vec<u8>) -> Option<()> {
        let negative = self.take(b'-').is_some();
        let mut digits = Vec::new();
        self.digits(&mut digits);
        let mut exponent = 0i64;
        if self.take(b'.').is_some() {
            let before = digits.len();
            self.digits(&mut digits);
            exponent -= i64::try_from(digits.len() - before).ok()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            let minus = self.take(b'-').is_some();
            if !minus {
                let _plus = self.take(b'+');
            }
            let mut power = Vec::new();
            self.digits(&mut power);
            let power: i64 = core::str::from_utf8(&power).ok()?.parse().ok()?;
            exponent = exponent.checked_add(if minus { -power } else { power })?;
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent = exponent.checked_add(1)?;
        }
        if digits.is_empty() {
            form.extend_from_slice(b"0e0");
            return Some(());
        }
        if negative {
            form.push(b'-');
        }
        form.extend_from_slice(&digits);
        form.extend_from_slice(format!("e{exponent}").as_bytes());
        Some(())
    }

    fn digits(&mut self, digits: &mut Vec<u8>) {
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            digits.push(digit);
            self.at += 1;
        }
    }

    fn array(&mut self, form: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.take(b'[')?;
        form.push(b'[');
        self.space();
        if self.take(b']').is_none() {
            loop {
                self.value(form, depth)?;
                self.space();
                if self.take(b']').is_some() {
                    break;
                }
                self.take(b',')?;
                form.push(b',');
            }
        }
        form.push(b']');
        Some(())
    }

    fn object(&mut self, form: &mut Vec<u8>, depth: usize) -> Option<()> {
        self.take(b'{')?;
        let mut members: Vec<Vec<u8>> = Vec::new();
        self.space();
        if self.take(b'}').is_none() {
            loop {
                let mut member = Vec::new();
                self.space();
                self.string(&mut member)?;
                self.space();
                self.take(b':')?;
                member.push(b':');
                self.value(&mut member, depth)?;
                members.push(member);
                self.space();
                if self.take(b'}').is_some() {
                    break;
                }
                self.take(b',')?;
            }
        }
        members.sort_unstable();
        form.push(b'{');
        for (i, member) in members.iter().enumerate() {
            if i > 0 {
                form.push(b',');
            }
            form.extend_from_slice(member);
        }
        form.push(b'}');
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> String {
        String::from_utf8(ending(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_text_with_the_form_of_a_string_has_this_form() {
        for string in [r#""""#, r#""\"\\\/ä\u0007\n\t""#, r#""\ud834\udd1e\ud834x\udd1e""#] {
            let form = ending(string.as_bytes()).unwrap();
            let text = spelled(&form);
            let is_json = core::str::from_utf8(&text).is_ok_and(|text| !text.contains(char::is_control));
            assert!(is_json && ending(&text).as_ref() == Some(&form), "{string}: {}", text.escape_ascii());
        }
    }

    #[test]
    fn equal_values_have_equal_forms() {
        for same in [
            &[r#""a""#, r#""\u0061""#][..],
            &[r#""\"\\/""#, r#""\u0022\u005c\/""#],
            &["\"\u{1F600}\"", r#""\ud83d\uDE00""#],
            &["1", "1.0", "10e-1", "0.1E+1", "1.000"],
            &["0", "-0", "0.0", "0e99"],
            &["-120", "-1.2e2"],
            &[r#"{"a": 1, "b": [ ]}"#, r#"{"b":[],"a":1.0}"#, "{ \"\\u0061\" :1,\n\"b\" : [\t] }"],
            &["[[1], {}]", "[ [ 1 ] , { } ]"],
            &["true"],
        ] {
            for text in same {
                assert_eq!(form(text), form(same[0]), "{text}");
            }
        }
    }

    #[test]
    fn different_values_have_different_forms() {
        let values = [
            "1",
            "-1",
            "10",
            "1.5",
            "0",
            "true",
            "false",
            "null",
            "\"1\"",
            "\"true\"",
            "\"\"",
            "[]",
            "{}",
            "[1]",
            "[[1]]",
            "[1,1]",
            r#"{"a":1}"#,
            r#"{"a":2}"#,
            r#"["a:1"]"#,
            r#"["a\",\"b"]"#,
            r#"["a","b"]"#,
            r#"{"a":{}}"#,
        ];
        for (i, a) in values.iter().enumerate() {
            for b in &values[..i] {
                assert_ne!(form(a), form(b), "{a} and {b}");
            }
        }
    }

    #[test]
    fn a_value_is_found_from_its_end() {
        for (before, value) in [
            (r#"{"a": "#, r#""b\"c""#),
            (r#"["\\", "#, r#""\\\\""#),
            (r#"["]", "#, r#"[{"}": "{["}, "\"]"]"#),
            ("[1, ", "-2.5e+3"),
            ("[ ", "null"),
            ("[{},", "{}"),
        ] {
            let text = format!("{before}{value}");
            assert_eq!(start(text.as_bytes()), Some(before.len()), "{text}");
        }
        assert_eq!(start(b""), None);
        assert_eq!(start(b"}"), None);
        assert_eq!(start(b"a\""), None);
    }

    #[test]
    fn the_rest_of_a_string_ends_with_its_quote() {
        assert_eq!(rest(br#"\u0061\"b", c"#), Some(br#"a\"b""#.to_vec()));
        assert_eq!(rest(br#"\""#), None);
        assert_eq!(rest(b"a"), None);
    }

    #[test]
    fn strings_are_found_in_a_text() {
        let found = |text: &[u8]| {
            strings(text).into_iter().map(|form| String::from_utf8(form).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(found(br#", "a\u0062", 5, {"c\"]": "#), [r#""ab""#, r#""c\"]""#]);
        assert_eq!(found(br#", "a", "b"#), [r#""a""#]);
        assert_eq!(found(b"]}"), [""; 0]);
    }

    #[test]
    fn the_form_of_a_prefix_is_a_prefix_of_the_form() {
        let text = "\"a\\u00e9\\n\\\"\u{e9}\\ud83d\\ude00\u{1F600}b\"";
        let whole = ending(text.as_bytes()).unwrap();
        for end in 1..text.len() {
            let (prefix, _) = prefix(&text.as_bytes()[1..end]);
            assert!(whole.starts_with(&prefix), "{end}: {prefix:?}");
        }
    }
}
